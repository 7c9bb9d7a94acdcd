//! The keys of a sweep and their values in words: `SNR 0 dB, clipped receiver c = 2`.

use floras_sim::SweepRow;

use super::Digit;
use crate::plot::scale::number_text;

/// A key with its name on an axis and the words before and after a value.
type Known = (&'static str, &'static str, &'static str, &'static str);

const KNOWN: [Known; 22] = [
    ("rounds", "rounds", "", " rounds"),
    ("seed", "seed", "seed ", ""),
    ("uplink.snr_db", "SNR (dB)", "SNR ", " dB"),
    ("uplink.sequences", "sequences N", "", " sequences"),
    ("uplink.length", "chips per sequence L", "", " chips"),
    ("uplink.antennas", "antennas R", "", " antennas"),
    ("uplink.truncate", "bound B of decoded values", "B = ", ""),
    ("uplink.scheme", "scheme", "", ""),
    ("uplink.receiver", "receiver", "", " receiver"),
    ("uplink.modulation", "modulation", "", " modulation"),
    ("privacy.clip", "clip norm C", "C = ", ""),
    ("privacy.budget", "budget of ε", "budget ε = ", ""),
    ("privacy.view", "view", "", " view"),
    ("clients.total", "clients M", "", " clients"),
    ("clients.per_round", "clients per round K", "", " clients per round"),
    ("clients.dropout", "dropout probability", "dropout ", ""),
    ("local.rate", "learning rate", "learning rate ", ""),
    ("local.steps", "local steps", "", " local steps"),
    ("local.epochs", "local epochs", "", " local epochs"),
    ("data.partition", "partition", "", " partition"),
    ("masks.mask_std", "standard deviation of the masks", "masks ", ""),
    ("masks.noise_std", "standard deviation of the clients' noise", "noise ", ""),
];

/// A key of a sweep with all of its values, in the order of the grid.
pub(super) struct Key {
    name: String,
    /// The distinct values, as in the table.
    values: Vec<String>,
}

impl Key {
    /// The keys of a table, with the values of some of its rows.
    pub(super) fn all(names: &[String], rows: &[SweepRow]) -> Vec<Self> {
        let key = |(number, name): (usize, &String)| {
            let mut values: Vec<String> = Vec::new();
            for value in rows.iter().filter_map(|row| row.values.get(number)) {
                if !values.contains(value) {
                    values.push(value.clone());
                }
            }
            Self { name: name.clone(), values }
        };
        names.iter().enumerate().map(key).collect()
    }

    fn known(&self) -> Option<Known> {
        KNOWN.into_iter().find(|(name, ..)| *name == self.name)
    }

    /// The name for an axis.
    pub(super) fn axis(&self) -> String {
        let last = || self.name.rsplit('.').next().unwrap_or_default().replace('_', " ");
        self.known().map_or_else(last, |(_, axis, ..)| axis.to_owned())
    }

    /// The number of a value among the values of the key.
    pub(super) fn index(&self, value: &str) -> usize {
        self.values.iter().position(|other| other == value).unwrap_or_default()
    }

    /// The number of a value with the number of all values.
    pub(super) fn digit(&self, value: &str) -> Digit {
        Digit { number: self.index(value), base: self.values.len() }
    }

    /// All values as numbers; `None` if a value is not a number.
    pub(super) fn numbers(&self) -> Option<Vec<f64>> {
        self.values.iter().map(|value| value.parse().ok().filter(|number: &f64| number.is_finite())).collect()
    }

    /// All values without their key, for the marks of an axis.
    pub(super) fn categories(&self) -> Vec<String> {
        self.values.iter().map(|value| plain(value)).collect()
    }

    /// Whether the values need a logarithmic axis: all positive, and more than two decades apart.
    pub(super) fn is_logarithmic(&self) -> bool {
        self.numbers().is_some_and(|numbers| {
            let (low, high) =
                numbers.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), &n| (low.min(n), high.max(n)));
            low > 0.0 && high > 100.0 * low
        })
    }

    /// A value with its key in words.
    pub(super) fn words(&self, value: &str) -> String {
        match (self.known(), parameter(value)) {
            (Some(("uplink.receiver", ..)), Some((kind, number))) => {
                let symbol = if kind == "clipped" { "c" } else { "κ" };
                format!("{kind} receiver {symbol} = {number}")
            }
            (Some((_, _, before, after)), _) => format!("{before}{}{after}", plain(value)),
            (None, _) => format!("{} {}", self.axis(), plain(value)),
        }
    }
}

/// The kind and the number of a value such as `{ clipped = 2.0 }`.
fn parameter(value: &str) -> Option<(&str, String)> {
    let (kind, number) = value.trim().strip_prefix('{')?.strip_suffix('}')?.split_once('=')?;
    Some((kind.trim(), number_text(number.trim().parse().ok()?)))
}

/// A value in words: numbers without needless zeros, tables without braces.
fn plain(value: &str) -> String {
    match (value.parse::<f64>(), parameter(value)) {
        (Ok(number), _) if number.is_finite() => number_text(number),
        (_, Some((kind, number))) => format!("{kind} {number}"),
        _ => value.replace("mmse", "MMSE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_words_and_not_toml() {
        let words = |name: &str, value: &str| Key { name: name.to_owned(), values: Vec::new() }.words(value);
        assert_eq!(words("uplink.snr_db", "0.0"), "SNR 0 dB");
        assert_eq!(words("uplink.receiver", "{ clipped = 2.0 }"), "clipped receiver c = 2");
        assert_eq!(words("uplink.receiver", "mmse"), "MMSE receiver");
        assert_eq!(words("data.partition", "{ dirichlet = 0.5 }"), "dirichlet 0.5 partition");
        assert_eq!(words("model.hidden_units", "64"), "hidden units 64");
    }

    #[test]
    fn wide_positive_ranges_need_a_logarithmic_axis() {
        let key = |values: &[&str]| Key {
            name: String::new(),
            values: values.iter().map(|&v| v.to_owned()).collect(),
        };
        assert!(key(&["0.1", "1", "100"]).is_logarithmic());
        assert!(!key(&["20", "25", "30"]).is_logarithmic());
        assert!(!key(&["0", "1000"]).is_logarithmic());
        assert!(!key(&["iid", "one-label"]).is_logarithmic());
    }
}
