//! Channel inversion: each admitted client divides by its channel, so that the air adds equal terms.
//!
//! A client with `|h_k|` below a threshold stays silent. The others send `√η·x_k/h_k` with power at most 1, hence
//! `√η ≤ |h_k|` for all of them, and the base station divides by `√η`:
//!
//! ```text
//! x̃ = Σ_{k admitted} x_k + n/√η
//! ```
//!
//! For privacy the admitted clients may add noise of their own before they divide: each of `m` adds `N(0, a²/m)`, so that
//! the sum holds `N(0, a²)` whatever the channels are, and `ν² = a² + σ²/η`. They need to be told `m` beside `√η`.
//! The power of that noise is not counted against the limit, but in the [cost](crate::Cost).
//!
//! # Citations
//! Zhu, Wang, Huang, *Broadband analog aggregation for low-latency federated edge learning*, IEEE TWC 19 (2020).

use floras_core::{Admission, Fidelity, NoiseReference, PowerRule, Snr};
use num_complex::Complex64;

use super::unspread::UnspreadNoise;
use super::{Signal, Uplink};
use crate::channels::Channels;
use crate::chip::ChipLink;
use crate::cost::Transmission;
use crate::effective::EffectiveChannel;
use crate::error::{UplinkError, require};
use crate::round::Round;

/// What channel inversion consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelInversionSettings {
    /// Who takes part.
    pub admission: Admission,
    /// How the power is set.
    pub power: PowerRule,
    /// Which noise applies.
    pub noise: NoiseReference,
    /// `L` of the FLORAS system that this is compared with.
    pub length: usize,
    /// Where the channel coefficients come from.
    pub channels: Channels,
    /// The noise.
    pub snr: Snr,
    /// `a`: standard deviation of the artificial noise in each parameter of the sum, shared equally by the admitted
    /// clients; 0 for none.
    pub artificial_noise_std: f64,
}

/// The channel inversion uplink.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelInversion {
    settings: ChannelInversionSettings,
    noise: UnspreadNoise,
}

/// Who is admitted in a round, and at which common amplitude the admitted arrive.
struct Alignment {
    /// `h_k`.
    channels: Vec<Complex64>,
    /// `|h_k|`.
    amplitudes: Vec<f64>,
    admitted: Vec<bool>,
    /// `√η`; `None` if nobody is admitted.
    common_amplitude: Option<f64>,
}

impl ChannelInversion {
    /// Checks the settings.
    pub fn new(settings: ChannelInversionSettings) -> Result<Self, UplinkError> {
        let artificial = settings.artificial_noise_std;
        let holds = artificial.is_finite() && artificial >= 0.0;
        require(holds, "the artificial noise's standard deviation", "finite and not negative", artificial)?;
        let noise = UnspreadNoise::new(settings.noise, settings.length, settings.snr)?;
        Ok(Self { settings, noise })
    }

    /// What the uplink consists of.
    pub fn settings(&self) -> &ChannelInversionSettings {
        &self.settings
    }

    /// Standard deviation of the noise that each admitted client adds: `a/√m`.
    fn share(&self, admitted: &[bool]) -> f64 {
        let count = admitted.iter().filter(|&&admitted| admitted).count().max(1);
        self.settings.artificial_noise_std / (count as f64).sqrt()
    }

    fn align(&self, round: &Round<'_>) -> Result<Alignment, UplinkError> {
        let threshold = self.settings.admission.amplitude();
        let channels = self.settings.channels.draw(round)?;
        let amplitudes: Vec<f64> = channels.iter().map(|h| h.norm()).collect();
        let weakest = amplitudes.iter().copied().filter(|&h| h >= threshold).min_by(f64::total_cmp);
        let admitted = amplitudes.iter().map(|&h| h >= threshold).collect();
        let common_amplitude = weakest.map(|weakest| match self.settings.power {
            PowerRule::WorstAdmitted => weakest,
            PowerRule::FixedAtThreshold => threshold,
        });
        Ok(Alignment { channels, amplitudes, admitted, common_amplitude })
    }
}

impl Alignment {
    /// The amplitude at which each client arrives, and the factor that undoes it: `√η` and `1/√η`, 0 for the silent.
    fn arriving(&self) -> (Vec<f64>, f64) {
        let amplitude = self.common_amplitude.unwrap_or(0.0);
        let arriving = self.admitted.iter().map(|&admitted| amplitude * f64::from(admitted)).collect();
        (arriving, self.common_amplitude.map_or(0.0, |amplitude| 1.0 / amplitude))
    }
}

impl Uplink for ChannelInversion {
    fn name(&self) -> &'static str {
        "channel-inversion"
    }

    fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        let Alignment { admitted, common_amplitude, .. } = self.align(round)?;
        let gains = admitted.into_iter().map(f64::from).collect();
        // A round without any admitted client is not decoded: no signal and no noise.
        let of_round = |amplitude: f64| self.settings.artificial_noise_std.hypot(self.noise.std / amplitude);
        EffectiveChannel::new(gains, common_amplitude.map_or(0.0, of_round))
    }

    fn link(&self, round: &Round<'_>) -> Result<ChipLink, UplinkError> {
        let alignment = self.align(round)?;
        let (amplitudes, scale) = alignment.arriving();
        let share = self.share(&alignment.admitted);
        let shares = alignment.admitted.into_iter().map(|admitted| share * f64::from(admitted)).collect();
        self.noise.link(amplitudes, scale)?.with_client_noise(shares)
    }

    /// An admitted client multiplies by `√η/|h_k|`. With artificial noise all are told how many are admitted.
    fn transmission(&self, round: &Round<'_>) -> Result<Option<Transmission>, UplinkError> {
        let Alignment { amplitudes, admitted, common_amplitude, .. } = self.align(round)?;
        let arriving = common_amplitude.unwrap_or(0.0);
        let factor = |(&h, &admitted): (&f64, &bool)| if admitted { arriving / h } else { 0.0 };
        let factors = amplitudes.iter().zip(&admitted).map(factor).collect();
        let mut transmission =
            Transmission::new(factors, self.noise.uses_per_parameter()).with_channel_knowledge();
        if self.settings.artificial_noise_std > 0.0 {
            transmission.added_noise_power = self.share(&admitted).powi(2);
            transmission.control_uses += 1;
        }
        Ok(Some(transmission))
    }

    fn signal(&self, round: &Round<'_>, _: Fidelity) -> Result<Option<Signal>, UplinkError> {
        let alignment = self.align(round)?;
        let (amplitudes, scale) = alignment.arriving();
        Ok(Some(self.noise.signal(alignment.channels, amplitudes, scale)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::Trace;
    use floras_core::SnrConvention;

    const ROWS: &str =
        "round,client,real,imaginary\n0,0,0.3,0.4\n0,1,0,-2\n0,2,0.05,0\n1,0,0.01,0\n1,1,0,0\n";

    fn inversion(power: PowerRule, noise: NoiseReference, admission: Admission) -> ChannelInversion {
        ChannelInversion::new(ChannelInversionSettings {
            admission,
            power,
            noise,
            length: 25,
            channels: Trace::from_reader(ROWS.as_bytes()).unwrap().into(),
            snr: Snr::new(20.0, SnrConvention::Symbol).unwrap(),
            artificial_noise_std: 0.0,
        })
        .unwrap()
    }

    fn with_artificial_noise(uplink: ChannelInversion, artificial_noise_std: f64) -> ChannelInversion {
        let settings = ChannelInversionSettings { artificial_noise_std, ..uplink.settings };
        ChannelInversion::new(settings).unwrap()
    }

    /// Channels |h| = 0.5, 2 and 0.05, σ = 0.1.
    fn realise(power: PowerRule, noise: NoiseReference, admission: Admission) -> EffectiveChannel {
        let round = Round::new(1, 0, 1, &[0, 1, 2]).unwrap();
        inversion(power, noise, admission).realise(&round).unwrap()
    }

    #[test]
    fn a_client_below_the_threshold_stays_silent() {
        for admission in [Admission::at_amplitude(0.1).unwrap(), Admission::at_power(0.01).unwrap()] {
            let channel = realise(PowerRule::WorstAdmitted, NoiseReference::PerSymbol, admission);
            assert_eq!(channel.gains(), [1.0, 1.0, 0.0]);
        }
        let channel = realise(
            PowerRule::WorstAdmitted,
            NoiseReference::PerSymbol,
            Admission::at_power(0.0025).unwrap(),
        );
        assert_eq!(channel.gains(), [1.0, 1.0, 1.0]);
    }

    #[test]
    fn the_noise_follows_power_rule_and_bandwidth() {
        let noise_of =
            |power, noise| realise(power, noise, Admission::at_amplitude(0.1).unwrap()).noise_std();
        let same = NoiseReference::SameBandwidth;
        assert!((noise_of(PowerRule::WorstAdmitted, NoiseReference::PerSymbol) - 0.2).abs() < 1e-12);
        assert!((noise_of(PowerRule::FixedAtThreshold, NoiseReference::PerSymbol) - 1.0).abs() < 1e-12);
        assert!((noise_of(PowerRule::WorstAdmitted, same) - 0.04).abs() < 1e-12);
    }

    #[test]
    fn a_round_in_which_nobody_is_admitted_decodes_to_nothing() {
        let uplink = inversion(
            PowerRule::WorstAdmitted,
            NoiseReference::PerSymbol,
            Admission::at_amplitude(0.1).unwrap(),
        );
        let uplink = with_artificial_noise(uplink, 3.0);
        let round = Round::new(1, 0, 2, &[0, 1]).unwrap();
        for channel in [uplink.realise(&round).unwrap(), uplink.link(&round).unwrap().effective().unwrap()] {
            assert_eq!(channel.gains(), [0.0, 0.0]);
            assert_eq!(channel.noise_std(), 0.0);
        }
    }

    /// |h| = 0.5 and 2 are admitted, 0.05 is not: σ/√η = 0.2 per symbol.
    #[test]
    fn artificial_noise_adds_up_to_what_was_asked_for_at_both_fidelities() {
        for (reference, of_channel) in
            [(NoiseReference::PerSymbol, 0.2), (NoiseReference::SameBandwidth, 0.04_f64)]
        {
            let uplink =
                inversion(PowerRule::WorstAdmitted, reference, Admission::at_amplitude(0.1).unwrap());
            let uplink = with_artificial_noise(uplink, 3.0);
            let round = Round::new(1, 0, 1, &[0, 1, 2]).unwrap();
            let channels =
                [uplink.realise(&round).unwrap(), uplink.link(&round).unwrap().effective().unwrap()];
            for channel in channels {
                assert!(channel.gains().iter().zip([1.0, 1.0, 0.0]).all(|(g, of)| (g - of).abs() < 1e-12));
                assert!((channel.noise_std() / 3_f64.hypot(of_channel) - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let settings =
            inversion(PowerRule::default(), NoiseReference::default(), Admission::at_amplitude(1.0).unwrap())
                .settings;
        for artificial_noise_std in [-1.0, f64::NAN, f64::INFINITY] {
            let settings = ChannelInversionSettings { artificial_noise_std, ..settings.clone() };
            assert!(ChannelInversion::new(settings).is_err());
        }
    }
}
