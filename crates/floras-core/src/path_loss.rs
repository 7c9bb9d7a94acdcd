//! Path loss and shadowing in a cell, and the power control that compensates for part of them.
//!
//! A client is at distance `r` from the base station, uniform over the disc between `m` and the cell's radius 1. Its long-term
//! loss, relative to the cell edge without shadowing, is
//!
//! ```text
//! PL = 10·n·log₁₀(r) + X   dB,     X ~ N(0, σ²)
//! ```
//!
//! Open-loop power control with factor `κ` raises the client's power by `κ·PL` dB; the client arrives with `−(1 − κ)·PL` dB.
//! Received powers are divided by their mean over all positions and shadows, which keeps `E|h|² = 1`: the SNR refers to the
//! mean received power over clients. With `q = 1 − κ` and `a = n·q` the mean is
//!
//! ```text
//! E 10^(−q·PL/10) = (2/(1 − m²))·(1 − m^(2−a))/(2 − a) · exp((q·σ·ln 10/10)²/2)
//! ```
//!
//! Transmit power is stated relative to that of a client at the edge without shadowing: `10^(κ·PL/10)`.
//!
//! # Citations
//! 3GPP TS 36.213, section 5.1.1 (fractional power control), and TR 36.814, annex A (path loss and shadowing in cells).

use std::f64::consts::LN_10;
use std::fmt;
use std::str::FromStr;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::{Serialize, Serializer};

use crate::choice::{Choice, ChoiceError, split};

/// Long-term gains of clients: different by position in a cell, or equal.
///
/// In a file it is a table, `{ exponent = 3.7, shadowing_db = 8, min_distance = 0.1, power_control = 0.8 }`, or the same as
/// text, `exponent=3.7,shadowing_db=8,min_distance=0.1,power_control=0.8`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum PathLoss {
    /// All clients have the same mean power.
    #[default]
    None,
    /// Clients spread over a cell.
    Cell(Cell),
}

/// The parameters of a cell, in range by construction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell(Parts);

#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "none, or a table { exponent = n, shadowing_db = s, min_distance = m, power_control = k }"
)]
struct Parts {
    exponent: f64,
    shadowing_db: f64,
    min_distance: f64,
    power_control: f64,
}

impl Default for Parts {
    fn default() -> Self {
        Self { exponent: 3.7, shadowing_db: 0.0, min_distance: 0.1, power_control: 0.0 }
    }
}

impl Cell {
    /// A cell.
    ///
    /// - `exponent`: path-loss exponent, 0 to 8
    /// - `shadowing_db`: standard deviation of the shadowing in dB, 0 to 20
    /// - `min_distance`: minimum distance relative to the cell's radius, 0.001 to 1
    /// - `power_control`: share of the loss in dB that clients compensate for, 0 to 1
    pub fn new(
        exponent: f64,
        shadowing_db: f64,
        min_distance: f64,
        power_control: f64,
    ) -> Result<Self, ChoiceError> {
        Parts { exponent, shadowing_db, min_distance, power_control }.try_into()
    }

    /// Path-loss exponent `n`: received power falls with the `n`-th power of the distance; between 0 and 8.
    pub fn exponent(self) -> f64 {
        self.0.exponent
    }

    /// Standard deviation `σ` of the log-normal shadowing, in dB: between 0 and 20.
    pub fn shadowing_db(self) -> f64 {
        self.0.shadowing_db
    }

    /// Minimum distance `m` of a client from the base station, relative to the cell's radius: between 0.001 and 1.
    pub fn min_distance(self) -> f64 {
        self.0.min_distance
    }

    /// `κ`: between 0 and 1.
    pub fn power_control(self) -> f64 {
        self.0.power_control
    }

    /// Whether all clients arrive with the same mean power at every position.
    pub fn is_equalised(self) -> bool {
        self.0.power_control == 1.0
            || (self.0.shadowing_db == 0.0 && (self.0.exponent == 0.0 || self.0.min_distance == 1.0))
    }

    /// `PL` in dB for two draws: `place`, uniform between 0 and 1, and `shadow`, standard normal.
    pub fn loss_db(self, place: f64, shadow: f64) -> f64 {
        let nearest = self.0.min_distance.powi(2);
        let square = nearest + place * (1.0 - nearest);
        5.0 * self.0.exponent * square.log10() + self.0.shadowing_db * shadow
    }

    /// Received amplitude of a client with this `PL`: positive, with root mean square 1 over clients.
    pub fn received_amplitude(self, loss_db: f64) -> f64 {
        if self.is_equalised() {
            return 1.0;
        }
        let left = 1.0 - self.0.power_control;
        10_f64.powf(-left * loss_db / 20.0) / self.mean_of_power(left).sqrt()
    }

    /// Transmit amplitude of a client with this `PL`: positive, 1 at the cell edge without shadowing.
    pub fn sent_amplitude(self, loss_db: f64) -> f64 {
        10_f64.powf(self.0.power_control * loss_db / 20.0)
    }

    /// The mean of [`received_amplitude`](Self::received_amplitude) over clients: between 0 and 1.
    pub fn mean_amplitude(self) -> f64 {
        if self.is_equalised() {
            return 1.0;
        }
        let left = 1.0 - self.0.power_control;
        self.mean_of_power(left / 2.0) / self.mean_of_power(left).sqrt()
    }

    /// The mean of the square of [`sent_amplitude`](Self::sent_amplitude) over clients: positive.
    pub fn mean_sent_power(self) -> f64 {
        self.mean_of_power(-self.0.power_control)
    }

    /// The mean of `10^(−q·PL/10)` over positions and shadows: `E 10^(−q·PL/10)`.
    fn mean_of_power(self, q: f64) -> f64 {
        let shadow = (q * self.0.shadowing_db * LN_10 / 10.0).powi(2) / 2.0;
        self.mean_inverse_distance(self.0.exponent * q) * shadow.exp()
    }

    /// The mean of `r^(−a)` over positions: `E r^(−a)`.
    fn mean_inverse_distance(self, a: f64) -> f64 {
        let m = self.0.min_distance;
        if m == 1.0 {
            return 1.0;
        }
        let (left, log) = (2.0 - a, m.ln());
        // (1 − m^(2−a))/(2 − a), which tends to −ln m.
        let integral = if (left * log).abs() < 1e-9 { -log } else { -libm::expm1(left * log) / left };
        2.0 * integral / (1.0 - m * m)
    }
}

impl TryFrom<Parts> for Cell {
    type Error = ChoiceError;

    fn try_from(parts: Parts) -> Result<Self, ChoiceError> {
        let checks = [
            ("path-loss exponent", parts.exponent, 0.0..=8.0, "between 0 and 8"),
            ("shadowing in dB", parts.shadowing_db, 0.0..=20.0, "between 0 and 20"),
            (
                "minimum distance, relative to the cell's radius,",
                parts.min_distance,
                0.001..=1.0,
                "between 0.001 and 1",
            ),
            ("power-control factor", parts.power_control, 0.0..=1.0, "between 0 and 1"),
        ];
        for (what, value, range, allowed) in checks {
            if !range.contains(&value) {
                return Err(ChoiceError { what, allowed: allowed.to_owned(), value: value.to_string() });
            }
        }
        Ok(Self(parts))
    }
}

impl PathLoss {
    /// The cell, if its clients arrive with unequal mean powers; otherwise `None`.
    pub fn unequal(self) -> Option<Cell> {
        self.cell().filter(|cell| !cell.is_equalised())
    }

    /// The cell; `None` without path loss.
    pub fn cell(self) -> Option<Cell> {
        match self {
            Self::None => None,
            Self::Cell(cell) => Some(cell),
        }
    }
}

impl Choice for PathLoss {
    const WHAT: &'static str = "path loss";
    const FORMS: &'static [&'static str] =
        &["none", "exponent=n,shadowing_db=s,min_distance=m,power_control=k"];
    const RANGES: &'static str =
        "n between 0 and 8, s between 0 and 20 dB, m between 0.001 and 1, k between 0 and 1";

    fn label(&self) -> String {
        let Self::Cell(Cell(Parts { exponent, shadowing_db, min_distance, power_control })) = self else {
            return "no path loss".to_owned();
        };
        format!(
            "path-loss exponent {exponent}, shadowing {shadowing_db} dB, distances from {min_distance}, power control \
             {power_control}"
        )
    }
}

impl FromStr for PathLoss {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        if text.trim() == "none" {
            return Ok(Self::None);
        }
        let mut parts = Parts::default();
        let mut names = Vec::new();
        for part in text.split(',') {
            let name = split(part).0;
            if names.contains(&name) {
                return Err(Self::refuse(text));
            }
            names.push(name);
            let place = match name {
                "exponent" => &mut parts.exponent,
                "shadowing_db" => &mut parts.shadowing_db,
                "min_distance" => &mut parts.min_distance,
                "power_control" => &mut parts.power_control,
                _ => return Err(Self::refuse(text)),
            };
            let number = split(part).1.and_then(|number| number.parse().ok());
            *place = number.ok_or_else(|| Self::refuse(text))?;
        }
        parts.try_into().map(Self::Cell)
    }
}

impl fmt::Display for PathLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Cell(Cell(Parts { exponent, shadowing_db, min_distance, power_control })) = self else {
            return f.pad("none");
        };
        write!(
            f,
            "exponent={exponent},shadowing_db={shadowing_db},min_distance={min_distance},power_control={power_control}"
        )
    }
}

impl Serialize for PathLoss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PathLoss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrTable)
    }
}

struct TextOrTable;

impl<'de> Visitor<'de> for TextOrTable {
    type Value = PathLoss;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&PathLoss::allowed())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<PathLoss, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PathLoss, A::Error> {
        let parts = Parts::deserialize(MapAccessDeserializer::new(map))?;
        Cell::try_from(parts).map(PathLoss::Cell).map_err(A::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(exponent: f64, shadowing_db: f64, min_distance: f64, power_control: f64) -> Cell {
        Cell::new(exponent, shadowing_db, min_distance, power_control).unwrap()
    }

    /// The mean over the disc by the midpoint rule in `r²`, and the mean over shadows by the trapezoidal rule.
    fn mean(cell: Cell, of: impl Fn(f64) -> f64) -> f64 {
        let (places, step) = (4000, 0.05);
        let mut total = 0.0;
        for index in -200..=200 {
            let shadow = step * f64::from(index);
            let weight = step * (-shadow * shadow / 2.0).exp() / std::f64::consts::TAU.sqrt();
            let place = |index: i32| (f64::from(index) + 0.5) / f64::from(places);
            let sum: f64 = (0..places).map(|index| of(cell.loss_db(place(index), shadow))).sum();
            total += weight * sum / f64::from(places);
        }
        total
    }

    /// The third cell has `a = 2`, the logarithmic case.
    #[test]
    fn means_over_the_cell_have_their_closed_forms() {
        for cell in [
            cell(3.7, 8.0, 0.1, 0.8),
            cell(3.7, 0.0, 0.1, 0.0),
            cell(4.0, 3.0, 0.2, 0.5),
            cell(2.0, 6.0, 1.0, 0.3),
            cell(3.0, 8.0, 0.1, 1.0),
        ] {
            let amplitude = |loss: f64| cell.received_amplitude(loss);
            assert!((mean(cell, |loss| amplitude(loss).powi(2)) - 1.0).abs() < 1e-3, "{cell:?}");
            assert!((mean(cell, amplitude) - cell.mean_amplitude()).abs() < 1e-3, "{cell:?}");
            let sent = mean(cell, |loss| cell.sent_amplitude(loss).powi(2));
            assert!((sent / cell.mean_sent_power() - 1.0).abs() < 1e-3, "{cell:?}");
        }
    }

    #[test]
    fn full_power_control_and_flat_cells_equalise_exactly() {
        for cell in [cell(3.7, 8.0, 0.1, 1.0), cell(0.0, 0.0, 0.1, 0.3), cell(3.7, 0.0, 1.0, 0.0)] {
            for (place, shadow) in [(0.0, -3.0), (0.3, 0.4), (1.0, 2.0)] {
                assert_eq!(cell.received_amplitude(cell.loss_db(place, shadow)), 1.0);
            }
            assert_eq!((cell.mean_amplitude(), PathLoss::Cell(cell).unequal()), (1.0, None));
        }
        assert!(!cell(3.7, 0.0, 0.1, 0.99).is_equalised());
    }

    #[test]
    fn a_file_has_a_table_or_a_text() {
        let read = |text: &str| serde_json::from_str::<PathLoss>(text);
        let expected = PathLoss::Cell(cell(3.7, 8.0, 0.1, 0.8));
        let table = r#"{"exponent": 3.7, "shadowing_db": 8, "min_distance": 0.1, "power_control": 0.8}"#;
        let text = "\"exponent=3.7,shadowing_db=8,min_distance=0.1,power_control=0.8\"";
        assert_eq!((read(table).unwrap(), read(text).unwrap()), (expected, expected));
        assert_eq!(serde_json::to_string(&expected).unwrap(), text);
        assert_eq!(read(r#"{"exponent": 2}"#).unwrap(), PathLoss::Cell(cell(2.0, 0.0, 0.1, 0.0)));
        assert_eq!(read("\"none\"").unwrap(), PathLoss::None);
    }

    #[test]
    fn wrong_cells_are_refused_by_name() {
        let message = |text: &str| text.parse::<PathLoss>().unwrap_err().to_string();
        assert_eq!(message("exponent=9"), "the path-loss exponent must be between 0 and 8, not 9");
        assert_eq!(message("shadowing_db=-1"), "the shadowing in dB must be between 0 and 20, not -1");
        assert!(message("min_distance=0").ends_with("must be between 0.001 and 1, not 0"));
        assert_eq!(message("power_control=1.5"), "the power-control factor must be between 0 and 1, not 1.5");
        assert!(message("exponent=NaN").ends_with("not NaN"));
        for text in ["radius=1", "exponent", "exponent=x", "", "exponent=3,exponent=4"] {
            assert!(message(text).starts_with("the path loss must be none or exponent=n,"), "{text}");
        }
        for wrong in [r#"{"radius": 1}"#, r#"{"exponent": 9}"#, "3.7", "\"exponent\""] {
            assert!(serde_json::from_str::<PathLoss>(wrong).is_err(), "{wrong}");
        }
    }
}
