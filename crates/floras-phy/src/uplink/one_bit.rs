//! One-bit aggregation: a majority vote of signs over inverted channels (OBDA).
//!
//! A client sends the signs of two parameters in each symbol of a quaternary phase-shift keying, at unit power, with
//! [truncated inversion](super::BroadbandInversion) on every subcarrier. The base station takes the sign of what arrives:
//!
//! ```text
//! y_i = √(ρ₀/2)·Σ_{k admitted} sign(x_{k,i}) + σ·n_i,     x̃_i = K·step·sign(y_i)
//! ```
//!
//! For a margin `m` of the admitted clients, `P(+) = Φ(√(ρ₀/2)·m/σ)`. A value of 0 counts as positive. A block of parameters to which no
//! client is admitted is not decoded: its sum is 0.
//!
//! # Citations
//! Zhu, Du, Gündüz, Huang, *One-bit over-the-air aggregation for communication-efficient federated edge learning: design and convergence
//! analysis*, IEEE TWC 20 (2021), arXiv:2001.05713. Bernstein, Wang, Azizzadenesheli, Anandkumar, *signSGD: compressed optimisation for
//! non-convex problems*, ICML 2018, for the vote.

use floras_core::ParametersPerSymbol;
use floras_core::random::Purpose;

use super::nonlinear::{Nonlinear, Received};
use super::votes::{add_margins, scale_votes};
use super::{BroadbandInversion, BroadbandInversionSettings, Sent, Uplink};
use crate::cost::Cost;
use crate::effective::EffectiveChannel;
use crate::error::{UplinkError, require};
use crate::memory::ClientMemory;
use crate::round::Round;

/// The uplink with a vote of signs.
#[derive(Clone, Debug, PartialEq)]
pub struct OneBit {
    channel: BroadbandInversion,
    step: f64,
}

impl OneBit {
    /// Builds the uplink over subcarriers with truncated inversion. `step` is the magnitude of the mean update in every parameter, from
    /// 1e-30 to 1e30. Settings of the subcarriers out of range are errors; so are channels that age, or that clients know with an error.
    pub fn new(channel: BroadbandInversionSettings, step: f64) -> Result<Self, UplinkError> {
        require((1e-30..=1e30).contains(&step), "the step of a vote", "between 1e-30 and 1e30", step)?;
        let error = channel.channels.estimation_error_std();
        require(error == 0.0, "the error of a client's channel estimate", "0 for votes of signs", error)?;
        require(!channel.channels.ages(), "the ageing of channels", "none for votes of signs", 1.0)?;
        Ok(Self { channel: BroadbandInversion::new(channel)?, step })
    }

    /// `σ/√(ρ₀/2)`: standard deviation of the noise in units of one vote.
    pub fn noise_std(&self) -> f64 {
        std::f64::consts::SQRT_2 * self.channel.noise_over_amplitude()
    }

    /// `μ` of a round with `parameters` parameters for a base station that keeps its samples: all signs of a client change, each by 2.
    pub fn mu(&self, parameters: usize) -> f64 {
        2.0 * (parameters as f64).sqrt() / self.noise_std()
    }
}

impl Uplink for OneBit {
    fn name(&self) -> &'static str {
        "one-bit"
    }

    fn realise(&self, _: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        Err(UplinkError::NotLinear { scheme: self.name() })
    }

    fn nonlinear(&self) -> Option<&dyn Nonlinear> {
        Some(self)
    }
}

impl Nonlinear for OneBit {
    fn receive(
        &self,
        round: &Round<'_>,
        updates: &[Sent<'_>],
        _: &mut ClientMemory,
        decoded: &mut [f32],
    ) -> Result<Received, UplinkError> {
        let (parameters, noise_std) = (decoded.len(), self.noise_std() as f32);
        let mut noise = vec![0.0; parameters];
        round.stream_name(Purpose::PAYLOAD_NOISE).normals().fill(0, &mut noise);
        decoded.fill(0.0);
        let mut first = 0;
        for block in self.channel.realise(round)?.blocks() {
            let end = first + block.parameters.min(parameters - first);
            let (margins, noise) = (&mut decoded[first..end], &noise[first..end]);
            if block.gains.iter().any(|gain| *gain != 0.0) {
                let admitted = updates.iter().zip(&block.gains).filter(|(_, gain)| **gain != 0.0);
                add_margins(admitted.map(|(update, _)| update), first, margins);
                for (margin, noise) in margins.iter_mut().zip(noise) {
                    *margin = if *margin + noise_std * noise >= 0.0 { 1.0 } else { -1.0 };
                }
            }
            first = end;
        }
        scale_votes(decoded, updates.len(), self.step);
        let transmission = self.channel.transmission(round)?;
        let cost = transmission.map(|mut transmission| {
            // Every parameter has half the energy of its symbol.
            transmission.parameters_per_symbol = ParametersPerSymbol::Two;
            Cost::new(&transmission, &vec![0.5; updates.len()], parameters)
        });
        Ok(Received { channel: None, cost: cost.transpose()? })
    }
}

#[cfg(test)]
mod tests {
    use floras_core::{Admission, Fading, NoiseReference, Snr, SnrConvention};

    use super::*;
    use crate::aggregation::Aggregation;

    fn one_bit(fading: Fading, power: f64, snr_db: f64) -> OneBit {
        let channel = BroadbandInversionSettings {
            admission: Admission::at_power(power).unwrap(),
            subcarriers: 4,
            noise: NoiseReference::PerSymbol,
            length: 25,
            channels: fading.into(),
            snr: Snr::new(snr_db, SnrConvention::Symbol).unwrap(),
        };
        OneBit::new(channel, 0.5).unwrap()
    }

    /// Without fading `ρ₀ = 1`. At 0 dB a vote of margin 1 is right with probability `Φ(1/√2) = 0.76025`, of margin 3 with `Φ(3/√2) =
    /// 0.98305`. Shares of 40,000 have a standard error below 0.0022, and the test allows five.
    #[test]
    fn votes_err_as_the_normal_distribution_says() {
        let uplink = one_bit(Fading::None, 0.5, 0.0);
        let clients = [0, 1, 2];
        for (plus, expected) in [(3, 0.983_05), (2, 0.760_25), (1, 1.0 - 0.760_25)] {
            let update = |client: &u32| vec![if *client < plus { 1e-6_f32 } else { -7.0 }; 40_000];
            let updates: Vec<Vec<f32>> = clients.iter().map(update).collect();
            let round = Round::new(2, 0, 1, &clients).unwrap();
            let sum = Aggregation::default().run(&uplink, round, &updates).unwrap().sum;
            assert!(sum.iter().all(|vote| vote.abs() == 1.5));
            let share = sum.iter().filter(|&&vote| vote > 0.0).count() as f64 / 40_000.0;
            assert!((share - expected).abs() < 0.011, "{plus}: {share}, not {expected}");
        }
        // Δ = 2 votes of amplitude √½ in each of 100 parameters, with σ = 1.
        assert!((uplink.mu(100) - 10.0 * 2_f64.sqrt()).abs() < 1e-9);
    }

    /// `P(|h|² ≥ 2) = e^−2` for each of two clients: a block has none with probability 0.7477. Over 8000 blocks the standard error is
    /// 0.005, and the test allows five.
    #[test]
    fn blocks_without_clients_are_not_decoded() {
        let uplink = one_bit(Fading::Rayleigh, 2.0, 60.0);
        let mut silent = 0;
        for number in 1..=2000 {
            let round = Round::new(2, 0, number, &[3, 8]).unwrap();
            let updates = [[1.0_f32, 1.0, -1.0, -1.0]; 2];
            let sum = Aggregation::default().run(&uplink, round, &updates).unwrap().sum;
            silent += sum.iter().filter(|&&vote| vote == 0.0).count();
            assert!(sum.iter().zip(updates[0]).all(|(vote, x)| *vote == 0.0 || (*vote == x)));
        }
        assert!((silent as f64 / 8000.0 - (1.0 - (-2_f64).exp()).powi(2)).abs() < 0.025, "{silent}");
    }

    #[test]
    fn symbols_have_unit_power() {
        let uplink = one_bit(Fading::None, 0.5, 0.0);
        let round = Round::new(2, 0, 1, &[0, 1]).unwrap();
        let aggregate = Aggregation::default().run(&uplink, round, &[[9.0; 100]; 2]).unwrap();
        let cost = aggregate.cost(&uplink, &round).unwrap().unwrap();
        assert_eq!(cost.payload_uses, 50);
        assert!((cost.power_peak - 1.0).abs() < 1e-6);
    }

    #[test]
    fn steps_out_of_range_are_refused() {
        let settings = one_bit(Fading::Rayleigh, 0.5, 0.0).channel.settings().clone();
        assert!(OneBit::new(settings.clone(), 0.0).is_err());
        assert!(OneBit::new(BroadbandInversionSettings { subcarriers: 0, ..settings }, 1.0).is_err());
    }
}
