//! `blind`: clients know no channel, and the base station combines many antennas (Amiri, Duman, Gündüz, Kulkarni and Poor).
//!
//! A base station that keeps the samples of all antennas has `μ = Δ·‖h_k‖/σ`. The decoded sum is the projection of these samples on the
//! direction of the estimate `ĥ`, so that `μ = Δ·|⟨ĥ, h_k⟩|/(σ·‖ĥ‖)` is smaller. Both depend on the client's channel without a limit, so
//! that no bound holds for every channel.
//!
//! **Rayleigh fading.** `‖h_k‖²` has a gamma distribution of shape `R`. The entries of `h_k` and of `ĥ = Σ_j h_j + e` are jointly normal
//! and independent between antennas. With `ρ = 1/(K + 2σ_p²)`, given `ĥ` every entry of `h_k` is `ρ·ĥ_r + CN(0, 1 − ρ)`, and `ρ‖ĥ‖²` is gamma
//! distributed with shape `R`. So `⟨ĥ, h_k⟩/‖ĥ‖ = √(ρG) + CN(0, 1 − ρ)` with such a `G`. Given `G`, the square of its magnitude over `1 − ρ` is
//! a gamma variable of shape `1 + N`, where `N` is a Poisson variable of mean `ρG/(1 − ρ)`; that of its real part has shape `½ + N`. Averaged
//! over `G`, `N` has the negative binomial probabilities `C(R + n − 1, n)·ρⁿ(1 − ρ)^R`, and the density of the magnitude `r`, with
//! `z = r²/(1 − ρ)`, is proportional to
//!
//! ```text
//! magnitude   r·e^{−z}·Σ_n C(R+n−1, n)·(ρz)ⁿ/n!
//! real part     e^{−z}·Σ_n C(R+n−1, n)·(ρz)ⁿ/(½)_n          (½)_n = ½·(3/2)·…·(n − ½)
//! ```

use std::f64::consts::LN_10;

use floras_core::{Choice, Fading, Modulation, NoiseReference, ParametersPerSymbol, Pilot, View};
use floras_phy::{Blind, BlindSettings, Uplink, UplinkError};
use floras_privacy::{Account, Coefficients, MuDistribution, PrivacyError, Source};
use serde::{Deserialize, Serialize};

use super::{
    BOTH_DIMENSIONS, ChannelKnowledge, NO_NOISE, Scheme, SchemeFile, check_coherence, require_equal_channels,
};
use crate::accounting::AccountContext;
use crate::error::SimError;
use crate::experiment::{ExperimentError, Radio, is_default};

/// Blind aggregation with several antennas.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct BlindScheme {
    /// The number of parameters in a symbol.
    #[serde(skip_serializing_if = "is_default")]
    pub parameters_per_symbol: ParametersPerSymbol,
    /// Amplitude and repetitions of the common pilot.
    pub pilot: Pilot,
    /// Noise relative to FLORAS: that of one symbol (`σ`), or that of the same bandwidth (`σ/√L`).
    pub noise: NoiseReference,
}

impl SchemeFile for BlindScheme {
    const NAME: &'static str = "blind";
    const LABEL: &'static str = "blind aggregation";
    type Keys = Self;

    fn read(keys: Self) -> Result<Self, ExperimentError> {
        Ok(keys)
    }
}

/// Why there is no bound for every channel.
const NO_LIMIT: &str =
    "this scheme has no bound for every channel: a client is as visible as its channel is strong";

/// The assumptions of the bounds.
const ASSUMPTIONS: [&str; 2] = [
    "the receiver's noise in every antenna is at least the stated one",
    "the channels of all clients and antennas have one distribution, drawn independently for every client and round",
];

impl BlindScheme {
    fn over(&self, radio: &Radio) -> Result<Blind, UplinkError> {
        let Self { parameters_per_symbol, pilot, noise } = *self;
        let (antennas, length, channels, snr) =
            (radio.antennas, radio.length, radio.channels()?, radio.snr()?);
        Blind::new(BlindSettings { antennas, parameters_per_symbol, pilot, noise, length, channels, snr })
    }

    /// The distribution of `μ` of the decoded sum under Rayleigh fading for one of `clients ≥ 2`.
    fn decoded(
        &self,
        uplink: &Blind,
        clients: u32,
        sensitivity: f64,
    ) -> Result<MuDistribution, PrivacyError> {
        let antennas = uplink.settings().antennas;
        let correlation = 1.0 / (f64::from(clients) + 2.0 * uplink.pilot_noise_std().powi(2));
        // `|⟨ĥ, h⟩|/‖ĥ‖ ≤ ‖h‖`, whose square is gamma distributed: beyond this a share below 1e-30.
        let range = (0.0, (antennas as f64 - 0.5).sqrt() + 9.0);
        let density = density(self.parameters_per_symbol, antennas, correlation);
        Coefficients::from_density(uplink.receiver_noise_std(), range, density)?.raw_signal(sensitivity)
    }
}

/// The density of `|⟨ĥ, h_k⟩|/‖ĥ‖`, or of its real part's magnitude, up to a factor, for a correlation `ρ` of at most ½.
fn density(packing: ParametersPerSymbol, antennas: usize, correlation: f64) -> impl Fn(f64) -> f64 {
    let antennas = antennas as f64;
    move |r: f64| {
        let z = r * r / (1.0 - correlation);
        // The sum is scaled while it grows, so that it does not overflow.
        let (mut term, mut sum, mut log_scale, mut n) = (1.0, 1.0, 0.0, 0.0);
        loop {
            let divisor = match packing {
                ParametersPerSymbol::One => n + 0.5,
                ParametersPerSymbol::Two => n + 1.0,
            };
            let ratio = (antennas + n) / (n + 1.0) * correlation * z / divisor;
            term *= ratio;
            sum += term;
            n += 1.0;
            if ratio < 0.5 && term < 1e-18 * sum {
                break;
            }
            if sum > 1e200 {
                (term, sum, log_scale) = (term * 1e-200, sum * 1e-200, log_scale + 200.0 * LN_10);
            }
        }
        let jacobian = match packing {
            ParametersPerSymbol::One => 1.0,
            ParametersPerSymbol::Two => r,
        };
        jacobian * sum * (log_scale - z).exp()
    }
}

impl Scheme for BlindScheme {
    fn build(&self, radio: &Radio, _: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        Ok(Box::new(self.over(radio)?))
    }

    fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError> {
        let (mut account, radio) = (context.account()?, context.radio());
        let uplink = self.over(radio)?;
        let noise_std = uplink.receiver_noise_std();
        if noise_std == 0.0 {
            for view in [View::Actual, View::AnyChannel, View::RawSignal] {
                account.set(view, Source::Nothing(NO_NOISE.to_owned()));
            }
            return Ok(account);
        }
        let sensitivity = context.sent_sensitivity().unwrap_or(f64::INFINITY);
        let bound =
            |distribution| context.caveat(Source::of(distribution)).assuming(ASSUMPTIONS.map(str::to_owned));
        let fading = radio.channels()?.fading().filter(|_| !radio.ages());
        let raw = match fading {
            Some(fading) => {
                Coefficients::of_antennas(fading, Modulation::Complex, radio.antennas, noise_std)?
            }
            None => None,
        };
        account.set(View::AnyChannel, Source::Nothing(NO_LIMIT.to_owned()));
        let raw = match raw {
            Some(channel) => bound(channel.raw_signal(sensitivity)?),
            None => context.estimate_by(&mut |round| uplink.raw_mu(round, sensitivity))?,
        };
        account.set(View::RawSignal, raw);
        // With silent clients the number of channels in the sum is random.
        let clients = context.clients().per_round;
        let actual = match fading == Some(Fading::Rayleigh) && clients > 1 && !context.has_silent() {
            true => bound(self.decoded(&uplink, clients, sensitivity)?),
            false => context.estimate()?,
        };
        account.set(View::Actual, actual);
        Ok(account)
    }

    fn channel_knowledge(&self) -> ChannelKnowledge {
        ChannelKnowledge::Nothing
    }

    fn parameters_per_symbol(&self) -> ParametersPerSymbol {
        self.parameters_per_symbol
    }

    fn summary(&self, _: u32) -> String {
        match self.parameters_per_symbol {
            ParametersPerSymbol::One => Self::NAME.to_owned(),
            ParametersPerSymbol::Two => format!("{} with 2 parameters per symbol", Self::NAME),
        }
    }

    fn description(&self, radio: &Radio, _: u32) -> String {
        let antennas = match radio.antennas {
            1 => "1 antenna".to_owned(),
            several => format!("{several} antennas"),
        };
        format!(
            "Over the radio without channel knowledge: clients send their updates as they are, and the base station combines {antennas} \
             by its estimate of the sum of all channels, from one common pilot."
        )
    }

    fn check_radio(&self, radio: &Radio) -> Result<(), ExperimentError> {
        require_equal_channels(radio)?;
        check_coherence(radio, self.parameters_per_symbol)
    }

    fn adversary(&self, view: View) -> Option<&'static str> {
        (view == View::RawSignal).then_some(
            "a base station that keeps the samples of all antennas, with no less noise than stated",
        )
    }

    fn adversary_sees(&self, view: View) -> Option<&'static str> {
        (view == View::RawSignal).then_some("samples, all antennas")
    }

    fn remarks(&self) -> Vec<&'static str> {
        match self.parameters_per_symbol {
            ParametersPerSymbol::One => Vec::new(),
            ParametersPerSymbol::Two => vec![BOTH_DIMENSIONS],
        }
    }

    fn details(&self, _: u32) -> Vec<(&'static str, String)> {
        vec![("symbols", self.parameters_per_symbol.label())]
    }
}

#[cfg(test)]
mod tests {
    use floras_core::{Fading, Snr, SnrConvention};
    use floras_phy::Round;

    use super::*;

    fn uplink(packing: ParametersPerSymbol, antennas: usize, snr_db: f64) -> Blind {
        Blind::new(BlindSettings {
            antennas,
            parameters_per_symbol: packing,
            pilot: Pilot::default(),
            noise: NoiseReference::PerSymbol,
            length: 32,
            channels: Fading::Rayleigh.into(),
            snr: Snr::new(snr_db, SnrConvention::Symbol).unwrap(),
        })
        .unwrap()
    }

    const PACKINGS: [ParametersPerSymbol; 2] = [ParametersPerSymbol::One, ParametersPerSymbol::Two];

    /// `E[u²] = (1 − ρ)·m/2 + ρR·(1 for two parameters, 1 for one)` with `m` parameters per symbol, and the density's integral against it.
    #[test]
    fn the_density_has_its_mean_square() {
        for (packing, half) in PACKINGS.into_iter().zip([0.5, 1.0]) {
            for (antennas, correlation) in [(1, 0.5), (16, 0.2), (64, 0.01), (64, 0.5)] {
                let density = density(packing, antennas, correlation);
                let at = |step: u32| f64::from(step) * 1e-3;
                let sum = |power: i32| {
                    (0..20_000).map(|step| density(at(step)) * at(step).powi(power)).sum::<f64>()
                };
                // The trapezoidal rule; its end at 0 has half the weight.
                let mean = sum(2) / (sum(0) - 0.5 * density(0.0));
                let expected = (1.0 - correlation) * half + correlation * antennas as f64;
                assert!(
                    (mean / expected - 1.0).abs() < 1e-4,
                    "{packing} {antennas} {correlation}: {mean}, {expected}"
                );
            }
        }
    }

    /// The `δ` curve against that of 40,000 drawn values; at 4.5 standard errors, 1 false alarm in 10⁵. One with `ρ = 1/(K − 1)` or the other
    /// packing would differ.
    #[test]
    fn the_distribution_is_that_of_drawn_rounds() {
        for packing in PACKINGS {
            for (antennas, snr_db, clients) in [(1, 10.0, 2), (8, 0.0, 4), (32, 10.0, 8)] {
                let uplink = uplink(packing, antennas, snr_db);
                let scheme = BlindScheme { parameters_per_symbol: packing, ..BlindScheme::default() };
                let sensitivity = uplink.receiver_noise_std();
                let distribution = scheme.decoded(&uplink, clients, sensitivity).unwrap();
                let list: Vec<u32> = (0..clients).collect();
                // One client of each round, so that values are independent.
                let drawn: Vec<f64> = (1..=40_000)
                    .map(|number| {
                        let round = Round::new(5, 0, number, &list).unwrap();
                        uplink.realise(&round).unwrap().mu(sensitivity)[0]
                    })
                    .collect();
                for epsilon in [0.1, 1.0, 3.0] {
                    let values: Vec<f64> = drawn
                        .iter()
                        .map(|&mu| if mu < 1e-3 { 0.0 } else { floras_privacy::gaussian::delta(epsilon, mu) })
                        .collect();
                    let count = values.len() as f64;
                    let mean = values.iter().sum::<f64>() / count;
                    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
                    let (upper, lower) =
                        (distribution.delta_upper(epsilon), distribution.delta_lower(epsilon));
                    let allowed = 4.5 * (variance / count).sqrt() + 1e-9;
                    assert!(lower <= upper && upper - lower < 0.02 * upper, "{lower} {upper}");
                    assert!(
                        lower - allowed < mean && mean < upper + allowed,
                        "{packing} {antennas} {clients} {epsilon}: {mean} ± {allowed}, not {upper}"
                    );
                }
            }
        }
    }
}
