//! Code shared by the schemes without spreading: one received amplitude per client, and one noise.

use floras_core::{NoiseReference, Snr};
use num_complex::Complex64;

use super::Signal;
use crate::chip::{ChipBlock, ChipLink};
use crate::error::UplinkError;
use crate::sequences::{SequenceSet, check_sizes};

/// The noise of a scheme without spreading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct UnspreadNoise {
    /// Number of chips per parameter.
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

    /// The link on which every client repeats its symbol and the base station averages, then multiplies by `scale`.
    pub(super) fn link(self, payload: Vec<ChipBlock>, scale: f64) -> Result<ChipLink, UplinkError> {
        let first = payload.first().map_or_else(Vec::new, |block| block.amplitudes.clone());
        let link = repeat_link(self.repetitions, first, scale, self.std)?;
        if payload.len() == 1 { Ok(link) } else { link.with_blocks(payload) }
    }

    /// The signal of that link.
    pub(super) fn signal(self, channels: Vec<Complex64>, amplitudes: Vec<f64>, scale: f64) -> Signal {
        Signal {
            branches: 1,
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

/// Complex gains of a block of parameters.
pub(super) struct ComplexBlock {
    pub(super) parameters: usize,
    /// `c_k`, one for each client.
    pub(super) gains: Vec<Complex64>,
}

/// `μ_k` of both quadratures of what is received, in the block where it is largest.
///
/// A block holds `Σ_k c_k·(x_k + b_k·n_k) + ν·n` in two dimensions, with `b_k` the entries of `client_noise_stds` and `ν` the
/// noise of each quadrature. Its covariance is `S = ν²·I + Σ_k b_k²·c_k·c_kᵀ`, and `μ_k² = Δ²·c_kᵀ·S⁻¹·c_k`.
pub(super) fn largest_mu(
    blocks: &[ComplexBlock],
    client_noise_stds: &[f64],
    noise_std: f64,
    sensitivity: f64,
) -> Vec<f64> {
    let mut largest = vec![0.0_f64; client_noise_stds.len()];
    for block in blocks {
        let (mut re, mut im, mut cross) = (noise_std.powi(2), noise_std.powi(2), 0.0);
        for (c, std) in block.gains.iter().zip(client_noise_stds) {
            re += (std * c.re).powi(2);
            im += (std * c.im).powi(2);
            cross += std * std * c.re * c.im;
        }
        let determinant = re * im - cross * cross;
        for (largest, c) in largest.iter_mut().zip(&block.gains) {
            let form = im * c.re * c.re + re * c.im * c.im - 2.0 * cross * c.re * c.im;
            let mu = match (c.norm_sqr() == 0.0, determinant > 0.0) {
                (true, _) => 0.0,
                (false, true) => sensitivity * (form / determinant).sqrt(),
                (false, false) => f64::INFINITY,
            };
            *largest = largest.max(mu);
        }
    }
    largest
}

/// A link on which all clients share one sequence of `length` equal chips of unit energy.
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

    /// Without noise of the clients `μ = Δ·|c|/ν`. One client with noise `b` alone in a direction has `Δ·|c|/√(ν² + b²|c|²)`.
    #[test]
    fn both_quadratures_are_seen() {
        let gains = vec![Complex64::new(0.6, 0.8), Complex64::new(0.0, -2.0), Complex64::ZERO];
        let block = || ComplexBlock { parameters: 1, gains: gains.clone() };
        let plain = largest_mu(&[block()], &[0.0; 3], 0.5, 2.0);
        assert!(plain.iter().zip([4.0, 8.0, 0.0]).all(|(mu, expected)| (mu - expected).abs() < 1e-12));
        let noisy = largest_mu(&[block()], &[0.0, 0.3, 0.0], 0.5, 2.0);
        assert!((noisy[1] - 4.0 / (0.25_f64 + 0.36).sqrt()).abs() < 1e-12, "{noisy:?}");
        assert_eq!(largest_mu(&[block()], &[0.0; 3], 0.0, 2.0), [f64::INFINITY, f64::INFINITY, 0.0]);
    }

    #[test]
    fn lengths_out_of_range_are_refused() {
        for length in [0, usize::MAX] {
            assert!(UnspreadNoise::new(NoiseReference::SameBandwidth, length, Snr::NOISELESS).is_err());
        }
    }

    #[test]
    fn repetition_lowers_the_noise_by_root_l() {
        for convention in [SnrConvention::Symbol, SnrConvention::ComplexSymbol, SnrConvention::Despread] {
            let snr = Snr::new(3.0, convention).unwrap();
            let [symbol, chips] = [NoiseReference::PerSymbol, NoiseReference::SameBandwidth]
                .map(|reference| UnspreadNoise::new(reference, 25, snr).unwrap().std);
            assert!((symbol / chips - 5.0).abs() < 1e-12, "{convention}");
            let [one, many] = [NoiseReference::PerSymbol, NoiseReference::SameBandwidth].map(|reference| {
                let noise = UnspreadNoise::new(reference, 25, snr).unwrap();
                noise
                    .link(vec![ChipBlock { parameters: usize::MAX, amplitudes: vec![1.0] }], 1.0)
                    .unwrap()
                    .length()
            });
            assert_eq!((one, many), (1, 25));
        }
    }
}
