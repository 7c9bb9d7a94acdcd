//! Signal-to-noise ratio: the only place that converts decibels to the standard deviation of noise.
//!
//! A transmitted symbol has unit power, and a channel has `E|h|² = 1`. The receiver's noise has variance `σ²/L` per chip and
//! real dimension (paper, section III-B), so a despread symbol carries noise of standard deviation `s = σ/√L`. The paper does
//! not define which noise power its SNR refers to; [`SnrConvention`] lists the readings.

use std::fmt;

use crate::choice::{Choice, ChoiceError};
use crate::named_choice;

/// The noise power that the SNR refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SnrConvention {
    /// `σ² = 10^(−SNR/10)`: the noise that the receiver collects, in one real dimension, over all `L` chips of a symbol.
    /// Spreading then gains a factor `L`, because `s² = σ²/L`. The project's reading of the paper.
    #[default]
    Symbol,
    /// `σ² = ½·10^(−SNR/10)`: the same for complex noise, half of which falls on the real dimension that is decoded.
    ComplexSymbol,
    /// `s² = 10^(−SNR/10)`: the noise of a despread symbol, whatever `L` is.
    Despread,
}

named_choice!(
    SnrConvention,
    "SNR convention",
    [Symbol => "symbol", "unit symbol power over σ², noise variance σ²/L per chip and real dimension"],
    [ComplexSymbol => "complex-symbol", "unit symbol power over 2σ², noise variance σ²/L per chip and real dimension"],
    [Despread => "despread", "unit symbol power over s² = σ²/L, the noise of a despread symbol"],
);

/// A signal-to-noise ratio with its convention.
///
/// ```
/// use floras_core::{Snr, SnrConvention};
///
/// let snr = Snr::new(20.0, SnrConvention::Symbol)?;
/// assert!((snr.symbol_noise_std(32) - 0.1).abs() < 1e-12);
/// assert!((snr.despread_noise_std(25) - 0.02).abs() < 1e-12);
/// assert_eq!(snr.to_string(), "20 dB (unit symbol power over σ², noise variance σ²/L per chip and real dimension)");
/// # Ok::<(), floras_core::ChoiceError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snr {
    decibels: f64,
    convention: SnrConvention,
}

impl Snr {
    /// A channel without noise.
    pub const NOISELESS: Self = Self { decibels: f64::INFINITY, convention: SnrConvention::Symbol };

    /// An SNR between −100 and 100 dB, or `f64::INFINITY` for a channel without noise.
    ///
    /// The chip level stores chips in single precision, with rounding errors about 140 dB below the signal; noise weaker than
    /// −100 dB would disappear in them.
    pub fn new(snr_db: f64, convention: SnrConvention) -> Result<Self, ChoiceError> {
        if snr_db.abs() <= 100.0 || snr_db == f64::INFINITY {
            return Ok(Self { decibels: snr_db, convention });
        }
        Err(ChoiceError { what: "SNR in dB", allowed: Self::ALLOWED.to_owned(), value: snr_db.to_string() })
    }

    /// The allowed decibels, in words.
    pub const ALLOWED: &'static str = "between -100 and 100, or inf for no noise";

    /// The convention of the ratio.
    pub fn convention(self) -> SnrConvention {
        self.convention
    }

    /// `σ`: standard deviation of the noise over one whole symbol of `length ≥ 1` chips, in one real dimension.
    pub fn symbol_noise_std(self, length: usize) -> f64 {
        let noise_power = 1.0 / 10_f64.powf(self.decibels / 10.0);
        match self.convention {
            SnrConvention::Symbol => noise_power.sqrt(),
            SnrConvention::ComplexSymbol => (noise_power / 2.0).sqrt(),
            SnrConvention::Despread => (noise_power * length.max(1) as f64).sqrt(),
        }
    }

    /// `s = σ/√L`: standard deviation of the noise in one chip, and in a symbol despread by a sequence of unit energy.
    pub fn despread_noise_std(self, length: usize) -> f64 {
        self.symbol_noise_std(length) / (length.max(1) as f64).sqrt()
    }
}

impl fmt::Display for Snr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.decibels {
            f64::INFINITY => write!(f, "∞ dB")?,
            finite => write!(f, "{finite} dB")?,
        }
        write!(f, " ({})", self.convention.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conventions_differ_by_the_factors_they_state() {
        let std_of = |convention| Snr::new(7.0, convention).unwrap().despread_noise_std(64);
        let symbol = std_of(SnrConvention::Symbol);
        assert!((std_of(SnrConvention::Despread) / symbol - 8.0).abs() < 1e-12);
        assert!((std_of(SnrConvention::ComplexSymbol) / symbol - 0.5_f64.sqrt()).abs() < 1e-12);
        assert!((symbol * symbol * 64.0 * 10_f64.powf(0.7) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn infinite_snr_is_no_noise() {
        assert_eq!(Snr::NOISELESS.despread_noise_std(8), 0.0);
        assert!(Snr::NOISELESS.to_string().starts_with("∞ dB"));
    }

    #[test]
    fn a_nan_snr_is_refused() {
        for snr_db in [f64::NAN, f64::NEG_INFINITY, 100.1, -1e9] {
            assert!(Snr::new(snr_db, SnrConvention::Symbol).is_err());
        }
    }
}
