//! Artificial noise out of the clients' own power: every client sends its update and noise, together at most at power 1.
//!
//! All admitted clients, `|h_k| ≥ a`, arrive with the common amplitude `c`. A client multiplies its update by `b_k = c/|h_k|`, and adds noise
//! of the power `q_k`:
//!
//! ```text
//! y = Σ_k c·x_k + Σ_k |h_k|·√q_k·n_k + σ·n,     b_k² + q_k ≤ 1,     q_k ≥ r·b_k²
//! ```
//!
//! A client at the power limit spends the fraction `1/(1 + r)` of its power on its update, so that `c = |h|/√(1 + r)`, with `|h|` that of the
//! weakest admitted client, or `c = a/√(1 + r)`. The base station divides by `c`:
//!
//! ```text
//! x̃ = Σ_{k admitted} x_k + ν·n,     ν² = (σ² + Σ_k |h_k|²·q_k)/c²
//! ```
//!
//! | split | noise power `q_k` | received noise, in units of an update |
//! |---|---|---|
//! | equal | `r·b_k²` | `ν² = m·r + σ²/c²` with `m` admitted clients |
//! | full | `1 − b_k²` | `ν² = Σ_k (|h_k|²/c² − 1) + σ²/c²` |
//!
//! In both, `m` admitted clients make noise of at least `m·r`, whatever the channels are: `|h_k|² − c² ≥ r·c²` for every admitted client. So
//! a client's `μ = Δ·c/√(c²·m·r + σ²)` is at most `Δ/√(m·r)` if the others do not reveal their noise, which falls as `1/√m`, and at most
//! `Δ/√r` if they do.
//!
//! Over channels that age, or that clients know with an error, the noise of a client arrives with the gain of its update, as in
//! [`ChannelInversion`].
//!
//! # Citations
//! Seif, Tandon, Li, *Wireless federated learning with local differential privacy*, ISIT 2020, arXiv:2002.05151.

use floras_core::{Admission, Fidelity, NoiseReference, PowerRule, Snr, named_choice};

use super::{ChannelInversion, ChannelInversionSettings, Signal, Uplink};
use crate::channels::{Channels, mean_above};
use crate::chip::ChipLink;
use crate::cost::Transmission;
use crate::effective::EffectiveChannel;
use crate::error::{UplinkError, require};
use crate::round::Round;

/// How clients split their power between update and noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PowerSplit {
    /// Every client in the same ratio. Clients with strong channels send at less than full power.
    #[default]
    Equal,
    /// Every client sends at full power: what its update leaves is noise.
    Full,
}

named_choice!(
    PowerSplit,
    "power split",
    [Equal => "equal", "the same ratio for all clients"],
    [Full => "full", "full power, of which the update takes what it needs"],
);

/// Settings of aggregation with artificial noise.
#[derive(Clone, Debug, PartialEq)]
pub struct ArtificialNoiseSettings {
    /// `r`: minimum power of a client's noise relative to that of its update, from 1e-12 to 1e12.
    pub noise_ratio: f64,
    /// How clients split their power.
    pub split: PowerSplit,
    /// The threshold at which clients are admitted.
    pub admission: Admission,
    /// The rule for the common amplitude `c`: the weakest admitted client, or a constant.
    pub power: PowerRule,
    /// The noise in a comparison with FLORAS: per symbol, or over the same bandwidth.
    pub noise: NoiseReference,
    /// Sequence length `L` of the FLORAS system for comparison, from 1 to 2²⁴.
    pub length: usize,
    /// Source of the channel coefficients.
    pub channels: Channels,
    /// Signal-to-noise ratio, with the noise power that it refers to.
    pub snr: Snr,
}

/// The uplink with artificial noise: channel inversion that shares its power with noise.
#[derive(Clone, Debug, PartialEq)]
pub struct ArtificialNoise {
    settings: ArtificialNoiseSettings,
    inversion: ChannelInversion,
}

impl ArtificialNoise {
    /// Builds the uplink. Settings out of range are errors.
    pub fn new(settings: ArtificialNoiseSettings) -> Result<Self, UplinkError> {
        let ArtificialNoiseSettings { noise_ratio, split, admission, power, noise, length, snr, .. } =
            settings;
        let holds = (1e-12..=1e12).contains(&noise_ratio);
        require(holds, "the ratio of noise to update", "between 1e-12 and 1e12", noise_ratio)?;
        let inversion = ChannelInversion::new(ChannelInversionSettings {
            admission,
            power,
            noise,
            length,
            channels: settings.channels.clone(),
            snr,
            artificial_noise_std: 0.0,
        })?;
        Ok(Self { inversion: inversion.with_split(noise_ratio, split), settings })
    }

    /// The settings of the uplink.
    pub fn settings(&self) -> &ArtificialNoiseSettings {
        &self.settings
    }

    /// `√(m·r)`: the minimum standard deviation of the noise of `clients = m` admitted clients, in units of a sent update, whatever
    /// their channels are.
    pub fn least_noise_std(&self, clients: u32) -> f64 {
        (f64::from(clients) * self.settings.noise_ratio).sqrt()
    }

    /// The probability that a client is admitted; `None` for channels without one distribution for all clients, and for clients that
    /// know their channels with an error.
    pub fn admission_probability(&self) -> Option<f64> {
        let channels = &self.settings.channels;
        let is_known = !channels.is_unequal() && channels.estimation_error_std() == 0.0;
        let fading = channels.fading().filter(|_| is_known)?;
        Some(mean_above(fading, self.settings.admission.amplitude(), |_| 1.0).clamp(0.0, 1.0))
    }

    /// `μ_k` of a base station that keeps its samples of both quadratures, in the block where it is largest: a change of client
    /// `k`'s update by `sensitivity` in norm changes the samples by at most `μ_k` standard deviations of their noise.
    pub fn raw_mu(&self, round: &Round<'_>, sensitivity: f64) -> Result<Vec<f64>, UplinkError> {
        self.inversion.raw_mu(round, sensitivity)
    }
}

impl Uplink for ArtificialNoise {
    fn name(&self) -> &'static str {
        "artificial-noise"
    }

    fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        self.inversion.realise(round)
    }

    fn link(&self, round: &Round<'_>) -> Result<ChipLink, UplinkError> {
        self.inversion.link(round)
    }

    /// An admitted client multiplies its update by `c/|ĥ_k|`, and sends noise of the power `q_k` besides.
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
    use crate::cost::Cost;
    use crate::uplink::UnitPower;

    /// σ = 0.1, threshold 0.3, r = 3: half of the amplitude is the update's.
    fn settings(split: PowerSplit, power: PowerRule, channels: Channels) -> ArtificialNoiseSettings {
        ArtificialNoiseSettings {
            noise_ratio: 3.0,
            split,
            admission: Admission::at_amplitude(0.3).unwrap(),
            power,
            noise: NoiseReference::PerSymbol,
            length: 32,
            channels,
            snr: Snr::new(20.0, SnrConvention::Symbol).unwrap(),
        }
    }

    fn uplink(split: PowerSplit, power: PowerRule, channels: Channels) -> ArtificialNoise {
        ArtificialNoise::new(settings(split, power, channels)).unwrap()
    }

    /// |h| = 0.5, 2 and 0.1; the last one is not admitted.
    fn three_channels() -> Channels {
        Channels::fixed(&[(0.3, 0.4), (0.0, -2.0), (0.1, 0.0)].map(|(re, im)| Complex64::new(re, im)))
            .unwrap()
    }

    /// `c` is 0.25, or 0.15 at the threshold. Full power: `|h|²/c² − 1` is 3 and 63, or 91/9 and 1591/9.
    #[test]
    fn noise_has_its_closed_form() {
        let round = Round::new(1, 0, 1, &[0, 1, 2]).unwrap();
        let (equal, full) = (PowerSplit::Equal, PowerSplit::Full);
        let (worst, fixed) = (PowerRule::WorstAdmitted, PowerRule::FixedAtThreshold);
        for (split, power, of_clients, level) in [
            (equal, worst, 6.0, 0.25_f64),
            (equal, fixed, 6.0, 0.15),
            (full, worst, 66.0, 0.25),
            (full, fixed, 1682.0 / 9.0, 0.15),
        ] {
            let uplink = uplink(split, power, three_channels());
            let expected = of_clients + 0.01 / level.powi(2);
            let channels =
                [uplink.realise(&round).unwrap(), uplink.link(&round).unwrap().effective().unwrap()];
            for channel in channels {
                assert!(channel.gains().iter().zip([1.0, 1.0, 0.0]).all(|(g, of)| (g - of).abs() < 1e-12));
                assert!((channel.noise_std().powi(2) / expected - 1.0).abs() < 1e-9, "{split} {power}");
            }
        }
    }

    /// Update and noise of a unit symbol together: at most power 1, and exactly 1 at full power.
    #[test]
    fn update_and_noise_share_the_power() {
        let clients: Vec<u32> = (0..20).collect();
        for split in PowerSplit::ALL {
            let uplink = uplink(split, PowerRule::WorstAdmitted, Fading::Rayleigh.into());
            for number in 1..=100 {
                let round = Round::new(1, 0, number, &clients).unwrap();
                let sent = uplink.transmission(&round).unwrap().unwrap();
                let powers = sent.factors.iter().zip(&sent.own_noise_powers);
                let powers: Vec<f64> = powers.map(|(factor, noise)| factor * factor + noise).collect();
                let cost = Cost::new(&sent, &[1.0; 20], 100).unwrap();
                assert!((cost.power_mean - powers.iter().sum::<f64>() / 20.0).abs() < 1e-12);
                assert!((cost.power_peak - 1.0).abs() < 1e-9, "{}", cost.power_peak);
                let is_full = |power: &f64| *power == 0.0 || (power - 1.0).abs() < 1e-9;
                assert_eq!(powers.iter().all(is_full), split == PowerSplit::Full, "{number}");
            }
        }
    }

    /// Symbols are sent `β = 10` times as large as the updates, noise as it is.
    #[test]
    fn unit_power_does_not_scale_the_noise() {
        let clients: Vec<u32> = (0..20).collect();
        let round = Round::new(1, 0, 1, &clients).unwrap().with_parameters(100);
        for split in PowerSplit::ALL {
            let plain = uplink(split, PowerRule::WorstAdmitted, Fading::Rayleigh.into());
            let expected = plain.realise(&round).unwrap().noise_std() / 10.0;
            let scaled = UnitPower::new(Box::new(plain.clone()), 1.0, None).unwrap();
            for channel in
                [scaled.realise(&round).unwrap(), scaled.link(&round).unwrap().effective().unwrap()]
            {
                assert!((channel.noise_std() / expected - 1.0).abs() < 1e-9, "{split}");
            }
            let cost = |uplink: &dyn Uplink, square: f64| {
                let sent = uplink.transmission(&round).unwrap().unwrap();
                Cost::new(&sent, &[square; 20], 100).unwrap().power_mean
            };
            assert!((cost(&scaled, 0.01) - cost(&plain, 1.0)).abs() < 1e-12);
        }
    }

    /// `√(m·r)` over 500 rounds of Rayleigh fading; the equal split has exactly that without the receiver's noise.
    #[test]
    fn admitted_clients_make_the_least_noise() {
        let clients: Vec<u32> = (0..20).collect();
        for (split, snr) in [(PowerSplit::Equal, Snr::NOISELESS), (PowerSplit::Full, Snr::NOISELESS)] {
            for power in [PowerRule::WorstAdmitted, PowerRule::FixedAtThreshold] {
                let settings = settings(split, power, Fading::Rayleigh.into());
                let uplink = ArtificialNoise::new(ArtificialNoiseSettings { snr, ..settings }).unwrap();
                for number in 1..=500 {
                    let channel = uplink.realise(&Round::new(1, 0, number, &clients).unwrap()).unwrap();
                    let admitted = channel.gains().iter().filter(|&&gain| gain == 1.0).count();
                    let ratio = channel.noise_std() / uplink.least_noise_std(admitted as u32);
                    assert!(ratio >= 1.0 - 1e-12, "{split}: {ratio}");
                    assert_eq!((ratio - 1.0).abs() < 1e-9, split == PowerSplit::Equal, "{split}: {ratio}");
                }
            }
        }
    }

    /// `e^{−a²}` under Rayleigh fading, and 1 or 0 without fading.
    #[test]
    fn the_admission_probability_has_its_closed_form() {
        let of = |channels: Channels| {
            uplink(PowerSplit::Equal, PowerRule::WorstAdmitted, channels).admission_probability()
        };
        let rayleigh = of(Fading::Rayleigh.into()).unwrap();
        assert!((rayleigh - (-0.09_f64).exp()).abs() < 1e-10, "{rayleigh}");
        assert_eq!(of(Fading::None.into()), Some(1.0));
        assert_eq!(of(three_channels()), None);
        let in_error = Channels::from(Fading::Rayleigh).with_estimation_error(0.1).unwrap();
        assert_eq!(of(in_error), None);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        for noise_ratio in [0.0, -1.0, 1e13, f64::NAN, f64::INFINITY] {
            let settings = settings(PowerSplit::Equal, PowerRule::WorstAdmitted, Fading::Rayleigh.into());
            let error = ArtificialNoise::new(ArtificialNoiseSettings { noise_ratio, ..settings });
            assert!(error.unwrap_err().to_string().contains("between 1e-12 and 1e12"));
        }
    }
}
