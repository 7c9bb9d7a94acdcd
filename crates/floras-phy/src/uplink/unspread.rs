//! What the schemes without spreading sequences share: one received amplitude a client, and one noise.

use floras_core::{NoiseReference, Snr};
use num_complex::Complex64;

use super::Signal;
use crate::chip::ChipLink;
use crate::error::UplinkError;
use crate::sequences::{SequenceSet, check_sizes};

/// The noise of a scheme without spreading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct UnspreadNoise {
    /// Chips that one parameter takes.
    repetitions: usize,
    /// Standard deviation of the noise in a received symbol of unit energy, and in each of its chips.
    pub(super) std: f64,
}

impl UnspreadNoise {
    /// The noise at an SNR that is stated for FLORAS with sequences of `length` chips.
    pub(super) fn new(reference: NoiseReference, length: usize, snr: Snr) -> Result<Self, UplinkError> {
        check_sizes(1, length)?;
        Ok(match reference {
            NoiseReference::PerSymbol => Self { repetitions: 1, std: snr.symbol_noise_std(length) },
            NoiseReference::SameBandwidth => {
                Self { repetitions: length, std: snr.despread_noise_std(length) }
            }
        })
    }

    /// Channel uses of one parameter.
    pub(super) fn uses_per_parameter(self) -> usize {
        self.repetitions
    }

    /// The link on which everyone repeats its symbol and the base station averages, then multiplies by `scale`.
    pub(super) fn link(self, amplitudes: Vec<f64>, scale: f64) -> Result<ChipLink, UplinkError> {
        repeat_link(self.repetitions, amplitudes, scale, self.std)
    }

    /// The signal of that link.
    pub(super) fn signal(self, channels: Vec<Complex64>, amplitudes: Vec<f64>, scale: f64) -> Signal {
        Signal {
            channels,
            amplitudes,
            assigned: Vec::new(),
            estimates: Vec::new(),
            weights: vec![scale],
            length: self.repetitions,
            symbol_noise_std: self.std,
            pilot_noise_std: None,
        }
    }
}

/// Everyone on the same sequence of `length` equal chips of unit energy.
pub(super) fn repeat_link(
    length: usize,
    amplitudes: Vec<f64>,
    scale: f64,
    chip_noise_std: f64,
) -> Result<ChipLink, UplinkError> {
    let set = SequenceSet::orthonormal(1, length)?;
    let projector = set.spread(&[scale])?;
    ChipLink::new(set, vec![0; amplitudes.len()], amplitudes, projector, chip_noise_std)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floras_core::SnrConvention;

    #[test]
    fn a_length_that_cannot_be_is_refused() {
        for length in [0, usize::MAX] {
            assert!(UnspreadNoise::new(NoiseReference::SameBandwidth, length, Snr::NOISELESS).is_err());
        }
    }

    #[test]
    fn the_same_bandwidth_lowers_the_noise_by_the_root_of_l_in_every_convention() {
        for convention in [SnrConvention::Symbol, SnrConvention::ComplexSymbol, SnrConvention::Despread] {
            let snr = Snr::new(3.0, convention).unwrap();
            let [symbol, chips] = [NoiseReference::PerSymbol, NoiseReference::SameBandwidth]
                .map(|reference| UnspreadNoise::new(reference, 25, snr).unwrap().std);
            assert!((symbol / chips - 5.0).abs() < 1e-12, "{convention}");
            let [one, many] = [NoiseReference::PerSymbol, NoiseReference::SameBandwidth].map(|reference| {
                let noise = UnspreadNoise::new(reference, 25, snr).unwrap();
                noise.link(vec![1.0], 1.0).unwrap().length()
            });
            assert_eq!((one, many), (1, 25));
        }
    }
}
