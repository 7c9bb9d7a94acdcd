//! The received amplitudes of a client's channel under a modulation.
//!
//! Without phase correction it is the real part of `h`. A client that knows its channel's phase as `φ + error` rotates `h` to
//! `|h|·e^{−j·error}`, and the base station decodes `|h|·cos(error)` (the paper's Remark 2, after Sery and Cohen 2020).
//!
//! A client with the estimate `ĥ` of its channel at the time of the pilot rotates by `arg ĥ + error`. The received amplitudes are
//! then
//!
//! ```text
//! pilot    Re(h_0·e^{−j(arg ĥ + error)})
//! payload  Re(h_b·e^{−j(arg ĥ + error)})     in block b
//! ```
//!
//! With complex modulation the base station sees both branches, `Re h` and `Im h`, of every antenna. With real modulation and several
//! antennas it sees `Re h` of each. A client's amplitudes are adjacent: with `B` branches, that of client `k` in branch `b` is at
//! `k·B + b`, and antenna `r` has the branches `2r` and `2r + 1` of complex modulation.

use floras_core::random::{Purpose, Stream};
use floras_core::{Modulation, PhaseError};
use num_complex::Complex64;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use crate::channels::{Channels, PayloadBlock};
use crate::chip::ChipBlock;
use crate::error::UplinkError;
use crate::round::Round;

/// The received amplitudes of a round's clients.
pub(super) struct Arrivals {
    /// The channels at the time of the pilot: that of client `k` at antenna `r` is at `k·R + r`.
    pub(super) channels: Vec<Complex64>,
    /// The amplitudes during the pilot: that of client `k` in branch `b` is at `k·B + b`.
    pub(super) pilot: Vec<f64>,
    /// The amplitudes during each block of the payload; `None` if they are the pilot's.
    pub(super) payload: Option<Vec<ChipBlock>>,
}

impl Arrivals {
    /// Draws the amplitudes at the antennas of a base station.
    pub(super) fn new(
        modulation: Modulation,
        antennas: usize,
        channels: &Channels,
        round: &Round<'_>,
    ) -> Result<Self, UplinkError> {
        modulation.check_antennas(antennas)?;
        let drawn = channels.draw_at(round, antennas)?;
        let error = match modulation {
            Modulation::PhaseCorrected(error) => error,
            Modulation::Real => {
                let real = |channels: &[Complex64]| channels.iter().map(|h| h.re).collect();
                let (pilot, payload) = (real(&drawn), payload(channels, round, antennas, real)?);
                return Ok(Self { channels: drawn, pilot, payload });
            }
            Modulation::Complex => {
                let both = |channels: &[Complex64]| channels.iter().flat_map(|h| [h.re, h.im]).collect();
                let (pilot, payload) = (both(&drawn), payload(channels, round, antennas, both)?);
                return Ok(Self { channels: drawn, pilot, payload });
            }
        };
        if channels.estimation_error_std() == 0.0 && !channels.ages() {
            let pilot = corrected_amplitudes(error, &drawn, round);
            return Ok(Self { channels: drawn, pilot, payload: None });
        }
        let rotations: Vec<Complex64> = rotations(error, &channels.draw_estimates(round)?, round);
        let rotated = |channels: &[Complex64]| {
            channels.iter().zip(&rotations).map(|(h, rotation)| (h * rotation).re).collect()
        };
        let (pilot, payload) = (rotated(&drawn), payload(channels, round, antennas, rotated)?);
        Ok(Self { channels: drawn, pilot, payload })
    }

    /// The blocks of the payload, at least one.
    pub(super) fn into_payload(self) -> Vec<ChipBlock> {
        let Self { pilot, payload, .. } = self;
        payload.unwrap_or_else(|| vec![ChipBlock { parameters: usize::MAX, amplitudes: pilot }])
    }
}

/// The amplitudes of the payload; `None` if the channels are the pilot's.
fn payload(
    channels: &Channels,
    round: &Round<'_>,
    antennas: usize,
    amplitudes: impl Fn(&[Complex64]) -> Vec<f64>,
) -> Result<Option<Vec<ChipBlock>>, UplinkError> {
    if !channels.ages() {
        return Ok(None);
    }
    let block = |block: PayloadBlock| ChipBlock {
        parameters: block.parameters,
        amplitudes: amplitudes(&block.channels),
    };
    Ok(Some(channels.draw_payload_at(round, antennas)?.into_iter().map(block).collect()))
}

/// `e^{−j(arg ĥ_k + error_k)}`: the factors by which the clients of a round multiply their symbols.
pub(super) fn rotations(error: PhaseError, estimates: &[Complex64], round: &Round<'_>) -> Vec<Complex64> {
    let clients = estimates.iter().zip(round.clients());
    clients
        .map(|(estimate, &client)| {
            let error_rad = draw(error, &mut round.stream_of(Purpose::PHASE_ERROR, client));
            Complex64::from_polar(1.0, -estimate.arg() - error_rad)
        })
        .collect()
}

/// `|h_k|·cos(error_k)` for the clients of a round.
fn corrected_amplitudes(error: PhaseError, channels: &[Complex64], round: &Round<'_>) -> Vec<f64> {
    let clients = channels.iter().zip(round.clients());
    clients
        .map(|(h, &client)| {
            let error_rad = draw(error, &mut round.stream_of(Purpose::PHASE_ERROR, client));
            h.norm() * error_rad.cos()
        })
        .collect()
}

fn draw(error: PhaseError, stream: &mut Stream) -> f64 {
    match error {
        PhaseError::None => 0.0,
        PhaseError::Uniform(half_width) => half_width.get() * (2.0 * stream.random::<f64>() - 1.0),
        PhaseError::Gaussian(std) => {
            let normal: f64 = StandardNormal.sample(stream);
            std.get() * normal
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `E cos(error)` is `sin(a)/a` for a uniform error and `e^{−σ²/2}` for a Gaussian one.
    #[test]
    fn the_lost_gain_has_its_closed_form_mean() {
        let clients: Vec<u32> = (0..100_000).collect();
        let round = Round::new(1, 0, 1, &clients).unwrap();
        let channels = vec![Complex64::from_polar(1.0, 2.0); clients.len()];
        let a: f64 = 1.2;
        let cases = [
            (PhaseError::None, 1.0),
            (PhaseError::uniform(a).unwrap(), a.sin() / a),
            (PhaseError::gaussian(0.7).unwrap(), (-0.245_f64).exp()),
        ];
        for (error, expected) in cases {
            let mean =
                corrected_amplitudes(error, &channels, &round).iter().sum::<f64>() / clients.len() as f64;
            // cos has a standard deviation below 0.3 here: five standard errors are below 0.005.
            assert!((mean - expected).abs() < 0.005, "{error}: {mean} instead of {expected}");
        }
    }

    /// `h = 0.6 + 0.8j` and `−2j`: what the base station sees of them under each modulation.
    #[test]
    fn modulations_see_their_part_of_the_channel() {
        let rows = "round,client,real,imaginary\n0,0,0.6,0.8\n0,1,0,-2\n";
        let channels = Channels::from(crate::Trace::from_reader(rows.as_bytes()).unwrap());
        let round = Round::new(1, 0, 1, &[0, 1]).unwrap();
        let error = PhaseError::uniform(1.0).unwrap();
        let seen = |modulation: Modulation| Arrivals::new(modulation, 1, &channels, &round).unwrap().pilot;
        assert_eq!(seen(Modulation::Real), [0.6, 0.0]);
        assert_eq!(seen(Modulation::Complex), [0.6, 0.8, 0.0, -2.0]);
        assert_eq!(seen(Modulation::PhaseCorrected(PhaseError::None)), [1.0, 2.0]);
        let erring = seen(Modulation::PhaseCorrected(error));
        assert_eq!(erring, corrected_amplitudes(error, &channels.draw(&round).unwrap(), &round));
        assert!(erring[0] < 1.0 && erring[0] > 1.0_f64.cos() && erring[1] < 2.0);
    }
}
