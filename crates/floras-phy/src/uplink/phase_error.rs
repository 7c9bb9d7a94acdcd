//! What is left of a client's phase after it has corrected for its channel.
//!
//! A client that knows its channel's phase as `φ + error` turns `h` into `|h|·e^{−j·error}`; the base station decodes
//! the real part, `|h|·cos(error)` (the paper's Remark 2, after Sery and Cohen 2020).

use num_complex::Complex64;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::FRAC_PI_2;

use crate::error::{UplinkError, require};
use crate::random::{Purpose, Stream};
use crate::round::Round;

/// The law of the phase correction's error, drawn anew for every client and round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum PhaseError {
    /// Perfect correction, as the paper assumes.
    #[default]
    None,
    /// Uniform between `±half_width_rad`, at most `±π/2`.
    Uniform {
        /// Half of the interval's width, in radians.
        half_width_rad: f64,
    },
    /// Gaussian; a large error may turn a client's sign.
    Gaussian {
        /// Standard deviation in radians.
        std_rad: f64,
    },
}

impl PhaseError {
    /// `Ok` if the law's parameter is in range.
    pub fn check(self) -> Result<(), UplinkError> {
        match self {
            Self::None => Ok(()),
            Self::Uniform { half_width_rad } => require(
                (0.0..=FRAC_PI_2).contains(&half_width_rad),
                "the phase error's half width in radians",
                "between 0 and π/2",
                half_width_rad,
            ),
            Self::Gaussian { std_rad } => require(
                (0.0..=100.0).contains(&std_rad),
                "the phase error's standard deviation in radians",
                "between 0 and 100",
                std_rad,
            ),
        }
    }

    /// `|h_k|·cos(error_k)` for the clients of a round.
    pub(super) fn corrected_amplitudes(self, channels: &[Complex64], round: &Round<'_>) -> Vec<f64> {
        let clients = channels.iter().zip(round.clients());
        clients
            .map(|(h, &client)| {
                let error_rad = self.draw(&mut round.stream_of(Purpose::PHASE_ERROR, client));
                h.norm() * error_rad.cos()
            })
            .collect()
    }

    fn draw(self, stream: &mut Stream) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Uniform { half_width_rad } => half_width_rad * (2.0 * stream.random::<f64>() - 1.0),
            Self::Gaussian { std_rad } => {
                let normal: f64 = StandardNormal.sample(stream);
                std_rad * normal
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `E cos(error)` is `sin(a)/a` for a uniform error and `e^{−σ²/2}` for a Gaussian one.
    #[test]
    fn the_lost_gain_has_the_mean_of_its_closed_form() {
        let clients: Vec<u32> = (0..100_000).collect();
        let round = Round::new(1, 0, 0, &clients).unwrap();
        let channels = vec![Complex64::from_polar(1.0, 2.0); clients.len()];
        let a: f64 = 1.2;
        let cases = [
            (PhaseError::None, 1.0),
            (PhaseError::Uniform { half_width_rad: a }, a.sin() / a),
            (PhaseError::Gaussian { std_rad: 0.7 }, (-0.245_f64).exp()),
        ];
        for (law, expected) in cases {
            let mean = law.corrected_amplitudes(&channels, &round).iter().sum::<f64>() / clients.len() as f64;
            // cos has a standard deviation below 0.3 here: five standard errors are below 0.005.
            assert!((mean - expected).abs() < 0.005, "{law:?}: {mean} instead of {expected}");
        }
    }

    #[test]
    fn errors_beyond_a_quarter_turn_and_negative_spreads_are_refused() {
        for law in [
            PhaseError::Uniform { half_width_rad: 1.6 },
            PhaseError::Uniform { half_width_rad: -0.1 },
            PhaseError::Gaussian { std_rad: -1.0 },
            PhaseError::Gaussian { std_rad: f64::NAN },
        ] {
            assert!(law.check().is_err(), "{law:?}");
        }
    }
}
