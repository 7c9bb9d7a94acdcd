//! Power control for privacy: clients send at so low a power that the receiver's noise alone protects them.
//!
//! Every admitted client inverts its channel and arrives with the common amplitude `c_t` in round `t`. A client of channel `h_k` sends a
//! unit symbol at the power `c_t²/|h_k|²`, which must not exceed 1. The base station divides by `c_t`:
//!
//! ```text
//! x̃ = Σ_{k admitted} x_k + (σ/c_t)·n,     ν_t = σ/c_t ≥ ν_min
//! ```
//!
//! | policy | level `c_t` | noise `ν_t` |
//! |---|---|---|
//! | fixed | `min(a, σ/ν_min)`, with the admission threshold `a` | `max(σ/a, ν_min)`, the same in all rounds |
//! | water-filling | `min(c_max,t, σ/ν_min)`, with `c_max,t = min |h_k|` over the admitted clients | `max(σ/c_max,t, ν_min)` |
//!
//! Minimising the total noise `Σ_t ν_t²` under a privacy budget `Σ_t (Δ·c_t/σ)² ≤ B` and the power limit `c_t ≤ c_max,t` gives
//! `c_t = min(c_max,t, ℓ)` with one water level `ℓ`, because the derivative of `1/c²` by `c²` is equal in all rounds that do not send at
//! full power. The optimal `ℓ` depends on future channels. The level `ℓ = σ/ν_min` does not, and keeps the budget `B = T·(Δ/ν_min)²` for
//! every channel; it leaves unspent what rounds with weak channels do not use.
//!
//! # Citations
//! Koda, Yamamoto, Nishio, Morikura, *Differentially private AirComp federated learning with power adaptation harnessing receiver
//! noise*, GLOBECOM 2020, arXiv:2004.06337. Liu, Simeone, *Privacy for free: wireless federated learning via uncoded transmission
//! with adaptive power control*, IEEE JSAC 39 (2021), arXiv:2006.05459.

use floras_core::{Admission, Fidelity, NoiseReference, PowerRule, Snr, named_choice};

use super::{ChannelInversion, ChannelInversionSettings, Signal, Uplink};
use crate::channels::Channels;
use crate::chip::ChipLink;
use crate::cost::Transmission;
use crate::effective::EffectiveChannel;
use crate::error::{UplinkError, require};
use crate::round::Round;

/// How the common received amplitude of a round is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LevelPolicy {
    /// One level for all rounds, which every admitted client reaches whatever its channel is.
    #[default]
    Fixed,
    /// The largest level that all admitted clients of the round reach, up to one water level for all rounds.
    WaterFilling,
}

named_choice!(
    LevelPolicy,
    "power policy",
    [Fixed => "fixed", "one level for all rounds"],
    [WaterFilling => "water-filling", "the level of the weakest admitted client, up to a water level"],
);

/// Settings of power control.
#[derive(Clone, Debug, PartialEq)]
pub struct PowerControlSettings {
    /// `ν_min`: the minimum standard deviation of the receiver's noise in each parameter of the sum, in units of a sent symbol; from
    /// 1e-30 to 1e30.
    pub min_noise_std: f64,
    /// How the level of a round is set.
    pub policy: LevelPolicy,
    /// The threshold at which clients are admitted.
    pub admission: Admission,
    /// The noise in a comparison with FLORAS: per symbol, or over the same bandwidth.
    pub noise: NoiseReference,
    /// Sequence length `L` of the FLORAS system for comparison, from 1 to 2²⁴.
    pub length: usize,
    /// Source of the channel coefficients.
    pub channels: Channels,
    /// Signal-to-noise ratio, with the noise power that it refers to; finite.
    pub snr: Snr,
}

/// The uplink with power control: channel inversion to a level that the noise covers.
#[derive(Clone, Debug, PartialEq)]
pub struct PowerControl {
    settings: PowerControlSettings,
    inversion: ChannelInversion,
}

impl PowerControl {
    /// Builds the uplink. Settings out of range are errors, and so is a receiver without noise.
    pub fn new(settings: PowerControlSettings) -> Result<Self, UplinkError> {
        let PowerControlSettings { min_noise_std, policy, admission, noise, length, snr, .. } = settings;
        let holds = (1e-30..=1e30).contains(&min_noise_std);
        require(holds, "the minimum noise", "between 1e-30 and 1e30", min_noise_std)?;
        let inversion = ChannelInversion::new(ChannelInversionSettings {
            admission,
            power: match policy {
                LevelPolicy::Fixed => PowerRule::FixedAtThreshold,
                LevelPolicy::WaterFilling => PowerRule::WorstAdmitted,
            },
            noise,
            length,
            channels: settings.channels.clone(),
            snr,
            artificial_noise_std: 0.0,
        })?;
        let receiver_noise = inversion.receiver_noise_std();
        require(receiver_noise > 0.0, "the receiver's noise", "above 0 for power control", receiver_noise)?;
        Ok(Self { settings, inversion: inversion.with_min_noise(min_noise_std) })
    }

    /// The settings of the uplink.
    pub fn settings(&self) -> &PowerControlSettings {
        &self.settings
    }

    /// The smallest noise `ν_t` of any round, over all channels: `max(σ/a, ν_min)` with a fixed level, else `ν_min`.
    pub fn least_noise_std(&self) -> f64 {
        let min_noise_std = self.settings.min_noise_std;
        match self.settings.policy {
            LevelPolicy::Fixed => {
                let at_threshold = self.inversion.receiver_noise_std() / self.settings.admission.amplitude();
                at_threshold.max(min_noise_std)
            }
            LevelPolicy::WaterFilling => min_noise_std,
        }
    }

    /// `μ_k` of a base station that keeps its samples of both quadratures, in the block where it is largest: a change of client
    /// `k`'s update by `sensitivity` in norm changes the samples by at most `μ_k` standard deviations of their noise.
    pub fn raw_mu(&self, round: &Round<'_>, sensitivity: f64) -> Result<Vec<f64>, UplinkError> {
        self.inversion.raw_mu(round, sensitivity)
    }
}

impl Uplink for PowerControl {
    fn name(&self) -> &'static str {
        "power-control"
    }

    fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        self.inversion.realise(round)
    }

    fn link(&self, round: &Round<'_>) -> Result<ChipLink, UplinkError> {
        self.inversion.link(round)
    }

    /// An admitted client multiplies by `c_t/|ĥ_k|`, at most 1.
    fn transmission(&self, round: &Round<'_>) -> Result<Option<Transmission>, UplinkError> {
        self.inversion.transmission(round)
    }

    fn signal(&self, round: &Round<'_>, fidelity: Fidelity) -> Result<Option<Signal>, UplinkError> {
        self.inversion.signal(round, fidelity)
    }
}

#[cfg(test)]
mod tests {
    use floras_core::{Fading, SnrConvention};
    use num_complex::Complex64;

    use super::*;

    /// σ = 0.1, threshold 0.3.
    fn settings(policy: LevelPolicy, min_noise_std: f64, channels: Channels) -> PowerControlSettings {
        PowerControlSettings {
            min_noise_std,
            policy,
            admission: Admission::at_amplitude(0.3).unwrap(),
            noise: NoiseReference::PerSymbol,
            length: 32,
            channels,
            snr: Snr::new(20.0, SnrConvention::Symbol).unwrap(),
        }
    }

    fn uplink(policy: LevelPolicy, min_noise_std: f64, channels: Channels) -> PowerControl {
        PowerControl::new(settings(policy, min_noise_std, channels)).unwrap()
    }

    /// |h| = 0.5, 2 and 0.1; the last one is not admitted.
    fn three_channels() -> Channels {
        Channels::fixed(&[(0.3, 0.4), (0.0, -2.0), (0.1, 0.0)].map(|(re, im)| Complex64::new(re, im)))
            .unwrap()
    }

    /// The level is the smaller one of the reached level and `σ/ν_min`; factors are `c/|h|`.
    #[test]
    fn the_level_is_capped_by_the_noise() {
        let round = Round::new(1, 0, 1, &[0, 1, 2]).unwrap();
        let (fixed, water) = (LevelPolicy::Fixed, LevelPolicy::WaterFilling);
        for (policy, min_noise_std, level) in [
            (fixed, 0.01, 0.3),
            (fixed, 0.25, 0.3),
            (fixed, 0.8, 0.125),
            (water, 0.01, 0.5),
            (water, 0.25, 0.4),
            (water, 0.8, 0.125),
        ] {
            let uplink = uplink(policy, min_noise_std, three_channels());
            let channels =
                [uplink.realise(&round).unwrap(), uplink.link(&round).unwrap().effective().unwrap()];
            for channel in channels {
                assert!(channel.gains().iter().zip([1.0, 1.0, 0.0]).all(|(g, of)| (g - of).abs() < 1e-12));
                assert!((channel.noise_std() - 0.1 / level).abs() < 1e-12, "{policy} {min_noise_std}");
            }
            let factors = uplink.transmission(&round).unwrap().unwrap().factors;
            assert!(
                factors.iter().zip([2.0 * level, level / 2.0, 0.0]).all(|(b, of)| (b - of).abs() < 1e-12)
            );
        }
    }

    #[test]
    fn no_round_has_less_noise() {
        let clients: Vec<u32> = (0..10).collect();
        for (policy, differs) in [(LevelPolicy::Fixed, false), (LevelPolicy::WaterFilling, true)] {
            let uplink = uplink(policy, 0.25, Fading::Rayleigh.into());
            let least = uplink.least_noise_std();
            let noise = (1..=500).map(|number| {
                let round = Round::new(1, 0, number, &clients).unwrap();
                let factors = uplink.transmission(&round).unwrap().unwrap().factors;
                assert!(factors.iter().all(|factor| *factor <= 1.0 + 1e-12), "peak power");
                uplink.realise(&round).unwrap().noise_std()
            });
            let noise: Vec<f64> = noise.collect();
            assert!(noise.iter().all(|noise| *noise >= least * (1.0 - 1e-12)), "{policy}");
            assert_eq!(noise.iter().any(|noise| *noise > 1.01 * least), differs, "{policy}");
        }
    }

    /// Among all levels `c_t = q·min(c_max,t, ℓ_t)` with the same total `Σ c_t²`, one water level has the least total noise.
    #[test]
    fn one_water_level_has_the_least_noise() {
        let clients: Vec<u32> = (0..10).collect();
        let weakest = |number: u32| {
            let round = Round::new(1, 0, number, &clients).unwrap();
            let drawn = Channels::from(Fading::Rayleigh).draw(&round).unwrap();
            drawn.iter().map(|h| h.norm()).filter(|h| *h >= 0.3).fold(f64::INFINITY, f64::min)
        };
        let levels: Vec<f64> = (1..=200).map(|number| weakest(number).min(0.4)).collect();
        let total = |levels: &[f64]| levels.iter().map(|c| c.powi(-2)).sum::<f64>();
        let best = total(&levels);
        for (a, b) in (0..199).map(|t| (t, t + 1)) {
            for moved in [0.004, -0.004] {
                // A part of one round's budget moves to the next one, if its power allows.
                let mut changed = levels.clone();
                changed[a] = (levels[a].powi(2) - moved).sqrt();
                changed[b] = (levels[b].powi(2) + moved).sqrt();
                let allowed = [a, b].iter().all(|&t| changed[t] <= weakest(t as u32 + 1));
                assert!(!allowed || total(&changed) > best, "{a} {moved}");
            }
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let channels = || Channels::from(Fading::Rayleigh);
        for min_noise_std in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(PowerControl::new(settings(LevelPolicy::Fixed, min_noise_std, channels())).is_err());
        }
        let noiseless =
            PowerControlSettings { snr: Snr::NOISELESS, ..settings(LevelPolicy::Fixed, 1.0, channels()) };
        let error = PowerControl::new(noiseless).unwrap_err().to_string();
        assert!(error.contains("the receiver's noise must be above 0"), "{error}");
    }
}
