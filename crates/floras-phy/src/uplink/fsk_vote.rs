//! A majority vote by frequency-shift keying: no channel knowledge anywhere.
//!
//! Each parameter has two tones. A client sends on one of them, by the sign of its update, with all of its energy. It rotates each
//! symbol by a random phase. The base station compares the energies of the tones, and the model takes a step of fixed size:
//!
//! ```text
//! e₊ = |Σ_{x_k ≥ 0} √E·h_k + n₊|²,   e₋ likewise,     x̃ = K·step·(+1 if e₊ > e₋, else −1)
//! ```
//!
//! Over Rayleigh channels that are independent between clients, tones and parameters the energies are exponential, and
//!
//! ```text
//! P(+) = (K₊·E + s)/(K·E + 2s)
//! ```
//!
//! for `K₊` votes of `K`, with the noise energy `s = 2σ²` of a tone. The simulation draws the votes from this probability. A client sends
//! on one of two channel uses, at a mean power of 1 over both, so that `E = 2`.
//!
//! # Citations
//! Şahin, Everette, Hoque, *Distributed learning over a wireless network with FSK-based majority vote*, CommNet 2021, arXiv:2111.01850:
//! equation 24 is the probability of a vote. There a value of exactly 0 is a random vote, and clients have unequal mean powers.
//!
//! Şahin, *A demonstration of over-the-air computation for federated edge learning*, 2022, arXiv:2209.09954; Şahin, *Distributed learning
//! over a wireless network with non-coherent majority vote computation*, IEEE TWC 22 (2023), arXiv:2209.04692.

use floras_core::Snr;
use floras_core::random::Purpose;
use rand::RngExt;

use super::nonlinear::{Nonlinear, Received};
use super::votes::{add_margins, scale_votes};
use super::{Sent, Uplink};
use crate::cost::{Cost, Transmission};
use crate::effective::EffectiveChannel;
use crate::error::{UplinkError, require};
use crate::memory::ClientMemory;
use crate::round::Round;

/// Settings of the vote.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FskVoteSettings {
    /// Magnitude of the mean update in every parameter, from 1e-30 to 1e30, in units of the update.
    pub step: f64,
    /// Sequence length `L` to which the SNR refers, from 1 to 2²⁴.
    pub length: usize,
    /// Signal-to-noise ratio, with the noise power that it refers to.
    pub snr: Snr,
}

/// The uplink with a vote by energy detection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FskVote {
    step: f64,
    noise_energy: f64,
}

impl FskVote {
    /// `E`: energy of a client's tone, in channel uses at unit power.
    pub const ENERGY: f64 = 2.0;

    /// Builds the uplink. A step or a length out of range is an error.
    pub fn new(settings: FskVoteSettings) -> Result<Self, UplinkError> {
        let FskVoteSettings { step, length, snr } = settings;
        require((1e-30..=1e30).contains(&step), "the step of a vote", "between 1e-30 and 1e30", step)?;
        crate::sequences::check_sizes(1, length)?;
        Ok(Self { step, noise_energy: 2.0 * snr.symbol_noise_std(length).powi(2) })
    }

    /// `s = 2σ²`: noise energy of a tone, in channel uses at unit power.
    pub fn noise_energy(&self) -> f64 {
        self.noise_energy
    }

    /// Probability of a vote for `+` if `plus` of `clients` clients vote for it.
    pub fn probability(&self, plus: f64, clients: f64) -> f64 {
        (plus * Self::ENERGY + self.noise_energy) / (clients * Self::ENERGY + 2.0 * self.noise_energy)
    }
}

impl Uplink for FskVote {
    fn name(&self) -> &'static str {
        "fsk-vote"
    }

    fn realise(&self, _: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        Err(UplinkError::NotLinear { scheme: self.name() })
    }

    fn nonlinear(&self) -> Option<&dyn Nonlinear> {
        Some(self)
    }
}

impl Nonlinear for FskVote {
    fn receive(
        &self,
        round: &Round<'_>,
        updates: &[Sent<'_>],
        _: &mut ClientMemory,
        decoded: &mut [f32],
    ) -> Result<Received, UplinkError> {
        let clients = updates.len();
        decoded.fill(0.0);
        add_margins(updates.iter(), 0, decoded);
        let mut stream = round.stream(Purpose::PAYLOAD_NOISE);
        for vote in decoded.iter_mut() {
            let plus = 0.5 * (clients as f64 + f64::from(*vote));
            let is_plus = stream.random::<f64>() < self.probability(plus, clients as f64);
            *vote = if is_plus { 1.0 } else { -1.0 };
        }
        scale_votes(decoded, clients, self.step);
        let transmission = Transmission::new(vec![1.0; clients], 2);
        let cost = Cost::new(&transmission, &vec![1.0; clients], decoded.len())?;
        Ok(Received { channel: None, cost: Some(cost) })
    }
}

#[cfg(test)]
mod tests {
    use floras_core::SnrConvention;
    use num_complex::Complex64;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::aggregation::Aggregation;

    fn vote(snr_db: f64) -> FskVote {
        let snr = Snr::new(snr_db, SnrConvention::Symbol).unwrap();
        FskVote::new(FskVoteSettings { step: 0.5, length: 32, snr }).unwrap()
    }

    /// Shares of `+` in 40,000 parameters have a standard error of at most 0.0025; the test allows five of them. Without the noise
    /// energy, the shares at 0 dB would differ by 0.1.
    #[test]
    fn votes_follow_energies_of_rayleigh_channels() {
        const PARAMETERS: usize = 40_000;
        let clients: Vec<u32> = (0..7).collect();
        let round = Round::new(5, 0, 3, &clients).unwrap();
        let mut stream = round.stream(Purpose::BENCHMARK);
        let mut gaussian = |power: f64| -> Complex64 {
            let [re, im]: [f64; 2] = std::array::from_fn(|_| StandardNormal.sample(&mut stream));
            Complex64::new(re, im) * (power / 2.0).sqrt()
        };
        for snr_db in [0.0, 20.0] {
            let vote = vote(snr_db);
            for plus in [0, 2, 7] {
                let update = |client: &u32| vec![if *client < plus { 0.3_f32 } else { -0.1 }; PARAMETERS];
                let updates: Vec<Vec<f32>> = clients.iter().map(update).collect();
                let sum = Aggregation::default().run(&vote, round, &updates).unwrap().sum;
                assert!(sum.iter().all(|vote| vote.abs() == 3.5));
                let share = sum.iter().filter(|&&vote| vote > 0.0).count() as f64 / PARAMETERS as f64;
                // Every client's symbol on its own, with its own channel.
                let mut energy = |voters: u32| {
                    let signal: Complex64 = (0..voters).map(|_| gaussian(1.0) * FskVote::ENERGY.sqrt()).sum();
                    (signal + gaussian(vote.noise_energy())).norm_sqr()
                };
                let detected = (0..PARAMETERS).filter(|_| energy(plus) > energy(7 - plus)).count();
                let expected = detected as f64 / PARAMETERS as f64;
                assert!((share - expected).abs() < 0.0175, "{snr_db} dB, {plus}: {share}, {expected}");
                assert!((share - vote.probability(plus.into(), 7.0)).abs() < 0.0125);
            }
        }
    }

    #[test]
    fn a_vote_takes_two_channel_uses() {
        let aggregation = Aggregation { measure_norms: true, ..Aggregation::default() };
        let round = Round::new(5, 0, 3, &[4, 9]).unwrap();
        let aggregate = aggregation.run(&vote(10.0), round, &[[0.1_f32; 50]; 2]).unwrap();
        let cost = aggregate.cost(&vote(10.0), &round).unwrap().unwrap();
        assert_eq!((cost.channel_uses(), cost.power_mean, cost.energy), (100, 1.0, 200.0));
        assert_eq!(aggregate.channel, None);
    }

    #[test]
    fn steps_out_of_range_are_refused() {
        let snr = Snr::new(0.0, SnrConvention::Symbol).unwrap();
        for step in [0.0, f64::NAN, 1e31] {
            assert!(FskVote::new(FskVoteSettings { step, length: 32, snr }).is_err());
        }
    }
}
