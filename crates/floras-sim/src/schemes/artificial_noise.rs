//! `artificial-noise`: every client splits its power between update and noise (Seif, Tandon and Li).
//!
//! A client sends `b_k·x_k + √q_k·n_k` with `q_k ≥ r·b_k²`. Three bounds follow, for a change of its update by at most `Δ`:
//!
//! - *Its own noise.* What it sends is a Gaussian mechanism with `μ = Δ·b_k/√q_k ≤ Δ/√r`. Everything that anyone receives is computed from
//!   that and from signals and noise of others, which do not depend on its data. So the bound holds over every channel, for every receiver, and
//!   against all other clients together.
//! - *The noise of all.* If clients know their channels, the `m` admitted ones arrive in phase with the amplitude `c`, and the noise of
//!   each arrives with the power `|h_j|²·q_j ≥ r·c²`. If `u` of the others reveal theirs, `μ ≤ Δ/√(r·(m − u))`, without any noise of the
//!   receiver. Samples of the other quadrature have no signal.
//! - *Averaged over channels.* A client is admitted with the probability `p = P(|h| ≥ a)`, and then `m − 1` of the `K − 1` others have a
//!   binomial distribution, because channels are independent.

use std::ops::RangeInclusive;

use floras_core::{Admission, Choice, NoiseReference, PowerRule, View};
use floras_phy::{ArtificialNoise, ArtificialNoiseSettings, PowerSplit, Uplink, UplinkError};
use floras_privacy::{Account, MuDistribution, Source, Values};
use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, Discrete};

use super::{
    ChannelKnowledge, NoiseKey, ONE_ANTENNA, Scheme, SchemeFile, Trust, admits_always, check_admission,
    require_one_antenna,
};
use crate::accounting::AccountContext;
use crate::error::SimError;
use crate::experiment::{ExperimentError, Radio, within};
use crate::number::compact;

const NOISE_RATIO: RangeInclusive<f64> = 1e-12..=1e12;

/// Channel inversion that shares its power with noise.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArtificialNoiseScheme {
    /// `r`, minimum power of a client's noise relative to that of its update: from 1e-12 to 1e12.
    pub noise_ratio: f64,
    /// How clients split their power.
    pub split: PowerSplit,
    /// The weakest channel with which a client takes part, by amplitude `|h|` or power `|h|²`.
    pub admission: Admission,
    /// The rule for the amplitude that all admitted clients share.
    pub power_rule: PowerRule,
    /// Noise relative to FLORAS: that of one symbol (`σ`), or that of the same bandwidth (`σ/√L`).
    pub noise: NoiseReference,
}

impl Default for ArtificialNoiseScheme {
    fn default() -> Self {
        Self {
            noise_ratio: 1.0,
            split: PowerSplit::default(),
            admission: Admission::default(),
            power_rule: PowerRule::default(),
            noise: NoiseReference::default(),
        }
    }
}

impl SchemeFile for ArtificialNoiseScheme {
    const NAME: &'static str = "artificial-noise";
    const LABEL: &'static str = "artificial noise of the clients";
    type Keys = Self;

    fn read(keys: Self) -> Result<Self, ExperimentError> {
        within("uplink.noise_ratio", Some(keys.noise_ratio), NOISE_RATIO)?;
        Ok(keys)
    }
}

/// The assumption of the idealised view.
const ALL_ADMITTED: &str = "every selected client takes part, is admitted, and arrives with a gain of 1";

/// The assumptions of the bound averaged over channels.
const AVERAGED: [&str; 3] = [
    "the channels of all clients have one distribution, drawn independently for every client and round",
    "the coefficient that every client inverts is correct, although the base station can return another, and every client adds its noise",
    ONE_ANTENNA,
];

/// Why the idealised view is no guarantee where clients can be silent or have unequal gains.
const NOT_ALL: &str = "it counts the noise of every client with a gain of 1, and clients that are not admitted or drop out add none; over a \
     channel that ages, or that clients know with an error, gains differ; the raw-signal view allows for it";

impl ArtificialNoiseScheme {
    fn over(&self, radio: &Radio) -> Result<ArtificialNoise, UplinkError> {
        let Self { noise_ratio, split, admission, power_rule: power, noise } = *self;
        let (length, channels, snr) = (radio.length, radio.channels()?, radio.snr()?);
        ArtificialNoise::new(ArtificialNoiseSettings {
            noise_ratio,
            split,
            admission,
            power,
            noise,
            length,
            channels,
            snr,
        })
    }

    /// The power of a client's noise over that of all that it sends, at the limit of its power.
    fn fraction(&self) -> f64 {
        self.noise_ratio / (1.0 + self.noise_ratio)
    }

    /// `Δ/√(r·m)` with the binomial distribution of the number `m − 1` of `others` that are admitted, and 0 if the client is not
    /// admitted itself.
    fn averaged(&self, admission: f64, others: u32, sensitivity: f64) -> MuDistribution {
        let number = Binomial::new(admission, others.into()).expect("a probability is between 0 and 1");
        let silent = (0.0, 1.0 - admission);
        let admitted = (0..=u64::from(others)).map(|others| {
            let mu = sensitivity / (self.noise_ratio * (others + 1) as f64).sqrt();
            (mu, admission * number.pmf(others))
        });
        MuDistribution::Values(Values::new(admitted.chain([silent])))
    }
}

impl Scheme for ArtificialNoiseScheme {
    fn build(&self, radio: &Radio, _: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        Ok(Box::new(self.over(radio)?))
    }

    fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError> {
        let (mut account, radio) = (context.account()?, context.radio());
        let uplink = self.over(radio)?;
        let sensitivity = context.sent_sensitivity().unwrap_or(f64::INFINITY);
        account.set(View::Actual, context.estimate()?);
        let own = context.constant(sensitivity / uplink.least_noise_std(1));
        account.set(View::AnyChannel, own.clone());
        let honest = context.clients().per_round.saturating_sub(context.colluding()).max(1);
        let idealised = context.constant(sensitivity / uplink.least_noise_std(honest));
        let others = match context.colluding() {
            0 => "no other client reveals its noise".to_owned(),
            colluding => format!("at most {colluding} other clients reveal their noise"),
        };
        // With the full split, strong clients add more noise than the bound counts.
        let bounded = |source: Source| match self.split {
            PowerSplit::Equal => source,
            PowerSplit::Full => source.without_lower(),
        };
        let idealised = bounded(idealised).assuming([ALL_ADMITTED, others.as_str()]);
        let idealised = match admits_always(radio, self.admission) && !context.has_silent() {
            true => idealised,
            false => idealised.without_lower().with_caveat(NOT_ALL),
        };
        account.set(View::Idealised, idealised);
        let admission = uplink.admission_probability().filter(|_| !radio.ages() && !context.has_silent());
        let raw = match admission {
            Some(admission) => {
                let distribution = self.averaged(admission, honest - 1, sensitivity);
                bounded(context.caveat(Source::of(distribution))).assuming(AVERAGED).assuming([others])
            }
            // This base station has neither the channels nor the noise of others that the bound allows for.
            None => own.without_lower(),
        };
        account.set(View::RawSignal, raw);
        Ok(account)
    }

    fn channel_knowledge(&self) -> ChannelKnowledge {
        ChannelKnowledge::Coefficient
    }

    fn summary(&self, _: u32) -> String {
        match self.noise_ratio {
            1.0 => format!("{} ({}) with the power of the update", Self::NAME, self.split),
            ratio => format!(
                "{} ({}) with {} times the power of the update",
                Self::NAME,
                self.split,
                compact(ratio)
            ),
        }
    }

    fn description(&self, _: &Radio, _: u32) -> String {
        format!(
            "Over the radio by channel inversion with artificial noise: every client sends its update together with noise of its own, \
             {:.1}% of the power of a client at its limit ({}). The noise of all clients adds up at the base station and protects each of them.",
            100.0 * self.fraction(),
            self.split.label()
        )
    }

    fn allows_weights(&self) -> bool {
        true
    }

    fn check_radio(&self, radio: &Radio) -> Result<(), ExperimentError> {
        require_one_antenna(radio)?;
        check_admission(radio, self.admission)
    }

    fn adversary(&self, view: View) -> Option<&'static str> {
        match view {
            View::Idealised => {
                Some("a receiver of the sum that adds no noise itself, if all clients add theirs")
            }
            View::AnyChannel => Some(
                "every receiver, with any channels, antennas and noise, that may know who takes part and the noise of all other clients",
            ),
            View::RawSignal => Some("a base station without noise that keeps its raw samples"),
            View::Published | View::Actual => None,
        }
    }

    fn has_raw_samples(&self, view: View) -> bool {
        matches!(view, View::AnyChannel | View::RawSignal)
    }

    fn adversary_sees(&self, view: View) -> Option<&'static str> {
        (view == View::AnyChannel).then_some("all sent symbols")
    }

    fn details(&self, _: u32) -> Vec<(&'static str, String)> {
        vec![
            ("noise over update", self.noise_ratio.to_string()),
            ("split", self.split.label()),
            ("admission", self.admission.label()),
        ]
    }

    fn noise_key(&self) -> Option<NoiseKey> {
        Some(NoiseKey { key: "noise_ratio", range: NOISE_RATIO, trust: Trust::Clients })
    }
}
