//! What the schemes without spreading sequences share: one received amplitude a client, and one noise.

use crate::chip::ChipLink;
use crate::error::UplinkError;
use crate::sequences::SequenceSet;
use crate::snr::Snr;

/// Which noise a scheme without spreading meets, next to FLORAS that spends `L` chips on a symbol.
///
/// The paper compares per symbol. With the same bandwidth the scheme may repeat its symbol `L` times, and the noise
/// falls by `√L`: the comparison that spends equal resources. Report both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NoiseReference {
    /// One channel use a parameter: noise `σ`.
    #[default]
    PerSymbol,
    /// As many chips a parameter as FLORAS with sequences of this length: noise `σ/√L`.
    SameBandwidth {
        /// `L`.
        length: usize,
    },
}

impl NoiseReference {
    /// Chips that one parameter takes.
    fn length(self) -> usize {
        match self {
            Self::PerSymbol => 1,
            Self::SameBandwidth { length } => length,
        }
    }

    /// `Ok` unless the length is 0.
    pub(super) fn check(self) -> Result<(), UplinkError> {
        match self.length() {
            0 => Err(UplinkError::EmptySequenceSet { sequences: 1, length: 0 }),
            _ => Ok(()),
        }
    }

    /// Standard deviation of the noise in a received symbol of unit energy.
    pub(super) fn noise_std(self, snr: Snr) -> f64 {
        snr.despread_noise_std(self.length())
    }

    /// The link on which everyone repeats its symbol and the base station averages, then multiplies by `scale`.
    pub(super) fn link(self, amplitudes: Vec<f64>, scale: f64, snr: Snr) -> Result<ChipLink, UplinkError> {
        repeat_link(self.length(), amplitudes, scale, self.noise_std(snr))
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
    ChipLink::new(&set, &vec![0; amplitudes.len()], amplitudes, projector, chip_noise_std)
}
