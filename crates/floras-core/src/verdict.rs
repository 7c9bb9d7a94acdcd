//! What a proven `ε` is worth, in one word: the thresholds and words of every privacy table.
//!
//! An adversary decides between two data sets that it considers equally likely. After it has seen the output of an
//! `(ε, δ)`-private mechanism, it is right with probability at most `e^ε/(1 + e^ε)`, apart from a term of order `δ`
//! (Kairouz, Oh and Viswanath 2015).

use std::fmt;

use serde::{Deserialize, Serialize};

/// Largest `ε` of a strong guarantee.
pub const STRONG: f64 = 1.0;
/// Largest `ε` of a moderate guarantee.
pub const MODERATE: f64 = 4.0;
/// Largest `ε` of a weak guarantee.
pub const WEAK: f64 = 10.0;

/// Decimals of a percentage that [`guess`] prints at most.
const MAX_DECIMALS: i32 = 4;

/// The strength of a privacy statement.
///
/// A verdict judges one number against one adversary. Published formulas and estimates from drawn channels have numbers
/// without a proof, so that their verdict is [`Verdict::NotProven`] however small the number is. A bound that is proven
/// for a model, such as a channel that never fades, has the verdict of its number; tables mark it with "(model)".
///
/// ```
/// use floras_core::verdict::Verdict;
///
/// assert_eq!(Verdict::of(Some(0.8), true).to_string(), "strong");
/// assert_eq!(Verdict::of(Some(0.8), false).to_string(), "not proven");
/// assert_eq!(Verdict::of(None, true).to_string(), "none");
/// ```
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// `ε ≤ 1`.
    Strong,
    /// `1 < ε ≤ 4`.
    Moderate,
    /// `4 < ε ≤ 10`.
    Weak,
    /// `ε > 10`, or no finite `ε`.
    None,
    /// There is a number, but no proof.
    #[serde(rename = "not proven")]
    NotProven,
}

impl Verdict {
    /// All verdicts, from the strongest to those without a guarantee.
    pub const ALL: [Self; 5] = [Self::Strong, Self::Moderate, Self::Weak, Self::None, Self::NotProven];

    /// The verdict on an upper bound of `ε`; `proven` is false for the published formula and for estimates. Without a number
    /// there is no guarantee, proven or not.
    pub fn of(epsilon: Option<f64>, proven: bool) -> Self {
        match epsilon {
            None => Self::None,
            Some(_) if !proven => Self::NotProven,
            Some(epsilon) if epsilon <= STRONG => Self::Strong,
            Some(epsilon) if epsilon <= MODERATE => Self::Moderate,
            Some(epsilon) if epsilon <= WEAK => Self::Weak,
            Some(_) => Self::None,
        }
    }

    /// The word for a table.
    pub fn label(self) -> &'static str {
        match self {
            Self::Strong => "strong",
            Self::Moderate => "moderate",
            Self::Weak => "weak",
            Self::None => "none",
            Self::NotProven => "not proven",
        }
    }

    /// Whether the number limits what an adversary can learn.
    pub fn is_guarantee(self) -> bool {
        matches!(self, Self::Strong | Self::Moderate | Self::Weak)
    }

    /// One sentence on what `epsilon` means.
    pub fn meaning(self, epsilon: Option<f64>) -> String {
        match (self, epsilon) {
            (Self::NotProven, _) => "No proof exists for this number.".to_owned(),
            (_, None) => "No finite ε is established: there is no guarantee.".to_owned(),
            (Self::None, Some(_)) => {
                "The adversary may guess right almost always: this gives no protection in practice."
                    .to_owned()
            }
            (_, Some(epsilon)) => {
                format!(
                    "Between two equally likely data sets, the adversary guesses right with probability at most {}.",
                    guess(epsilon)
                )
            }
        }
    }

    /// The thresholds and words in one sentence.
    pub fn scale() -> String {
        format!(
            "Verdicts: strong for ε ≤ {STRONG}, moderate for ε ≤ {MODERATE}, weak for ε ≤ {WEAK}, none above."
        )
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}

/// The largest probability with which an adversary decides correctly between two equally likely data sets:
/// `e^ε/(1 + e^ε)`, between ½ (at `ε = 0`) and 1.
pub fn guess_probability(epsilon: f64) -> f64 {
    1.0 / (1.0 + (-epsilon).exp())
}

/// [`guess_probability`] as a percentage, rounded up: `73.2 %` at `ε = 1`.
///
/// ```
/// assert_eq!(floras_core::verdict::guess(8.0), "99.97 %");
/// ```
pub fn guess(epsilon: f64) -> String {
    let doubt = 100.0 / (1.0 + epsilon.exp());
    let decimals = if doubt > 0.0 {
        (-doubt.log10().floor()).clamp(1.0, f64::from(MAX_DECIMALS)) as i32
    } else {
        MAX_DECIMALS
    };
    let unit = 10_f64.powi(decimals);
    // The doubt is rounded down, so that the bound is rounded up.
    let units = 100.0 * unit - (doubt * unit).floor();
    let text = format!("{:.*}", decimals as usize, units / unit);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_belong_to_the_better_verdict() {
        let verdicts = [0.0, STRONG, 1.01, MODERATE, 4.01, WEAK, 10.01, f64::INFINITY, f64::NAN]
            .map(|epsilon| Verdict::of(Some(epsilon), true).label());
        let expected = ["strong", "strong", "moderate", "moderate", "weak", "weak", "none", "none", "none"];
        assert_eq!(verdicts, expected);
    }

    #[test]
    fn unproven_numbers_are_never_strong() {
        assert_eq!(Verdict::of(Some(0.1), false), Verdict::NotProven);
        assert_eq!(Verdict::of(None, false), Verdict::None);
    }

    /// e/(1 + e) = 0.731059, e⁴/(1 + e⁴) = 0.982014, e⁸/(1 + e⁸) = 0.999665.
    #[test]
    fn guessing_probabilities_are_rounded_up() {
        let shown = [0.0, 1.0, 4.0, 8.0, 10.0, 40.0, f64::INFINITY].map(guess);
        assert_eq!(shown, ["50 %", "73.2 %", "98.3 %", "99.97 %", "99.996 %", "100 %", "100 %"]);
        assert!((guess_probability(1.0) - 0.731_058_578).abs() < 1e-9);
    }

    #[test]
    fn meanings_name_the_guessing_probability() {
        let meaning = |epsilon| Verdict::of(Some(epsilon), true).meaning(Some(epsilon));
        assert!(meaning(1.0).contains("at most 73.2 %"));
        assert!(meaning(50.0).contains("no protection"));
        assert!(Verdict::NotProven.meaning(Some(1.0)).contains("No proof"));
        assert!(Verdict::None.meaning(None).contains("No finite ε"));
    }
}
