//! `digital`: orthogonal access with quantised updates and outage.
//!
//! The base station decodes every client's update. Without noise nothing is private. Noise of a trusted base station gives
//! `μ = Δ/σ_c`; noise of the clients is that of the section `[masks]`. Masks that cancel need unquantised updates (`levels = 0`), and are left
//! in the sum by clients in outage.

use std::ops::RangeInclusive;

use floras_core::{TransmitPower, View};
use floras_phy::{CodeRate, Digital, DigitalSettings, Uplink, UplinkError};
use floras_privacy::Account;
use serde::{Deserialize, Serialize};

use super::{BOTH_DIMENSIONS, ChannelKnowledge, NoiseKey, SHARED_USES, Scheme, SchemeFile, Trust};
use crate::accounting::AccountContext;
use crate::error::SimError;
use crate::experiment::{ExperimentError, Radio, within};

const LEVELS: RangeInclusive<u32> = 0..=65_535;
const RATE: RangeInclusive<f64> = 1e-3..=100.0;
const OUTAGE: RangeInclusive<f64> = 1e-9..=0.999;
const CENTRAL_NOISE: RangeInclusive<f64> = 0.0..=1e30;
/// Bits per complex channel use, without another choice.
const DEFAULT_RATE: f64 = 2.0;

/// Orthogonal access with quantised updates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(into = "DigitalKeys")]
pub struct DigitalScheme {
    /// `s`: quantisation levels above 0, from 1 to 65,535; 0 for numbers of 32 bits. A value is one of `2s + 1` symbols, which take
    /// `⌈log₂(2s + 1)⌉` bits: `2ⁿ − 1` levels use `n + 1` bits in full, and one more level takes one more bit.
    pub levels: u32,
    /// The rate of a client's code.
    pub rate: CodeRate,
    /// Standard deviation of the noise that a trusted base station adds to each parameter of the sum: from 0 to 1e30.
    pub central_noise_std: f64,
}

impl Default for DigitalScheme {
    fn default() -> Self {
        Self { levels: 4, rate: CodeRate::Bits(DEFAULT_RATE), central_noise_std: 0.0 }
    }
}

/// The keys of the scheme in a file.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct DigitalKeys {
    levels: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outage: Option<f64>,
    central_noise_std: f64,
}

impl Default for DigitalKeys {
    fn default() -> Self {
        let DigitalScheme { levels, central_noise_std, .. } = DigitalScheme::default();
        Self { levels, rate: None, outage: None, central_noise_std }
    }
}

impl From<DigitalScheme> for DigitalKeys {
    fn from(scheme: DigitalScheme) -> Self {
        let DigitalScheme { levels, rate, central_noise_std } = scheme;
        let (rate, outage) = match rate {
            CodeRate::Bits(bits) => (Some(bits), None),
            CodeRate::Outage(probability) => (None, Some(probability)),
        };
        Self { levels, rate, outage, central_noise_std }
    }
}

impl SchemeFile for DigitalScheme {
    const NAME: &'static str = "digital";
    const LABEL: &'static str = "orthogonal access with quantised updates";
    type Keys = DigitalKeys;

    fn read(keys: DigitalKeys) -> Result<Self, ExperimentError> {
        let DigitalKeys { levels, rate, outage, central_noise_std } = keys;
        within("uplink.levels", Some(levels), LEVELS)?;
        within("uplink.rate", rate, RATE)?;
        within("uplink.outage", outage, OUTAGE)?;
        within("uplink.central_noise_std", Some(central_noise_std), CENTRAL_NOISE)?;
        let rate = match (rate, outage) {
            (Some(_), Some(_)) => {
                return Err(ExperimentError::refused(
                    "uplink.outage",
                    "it determines the rate: leave out uplink.rate",
                ));
            }
            (None, Some(probability)) => CodeRate::Outage(probability),
            (bits, None) => CodeRate::Bits(bits.unwrap_or(DEFAULT_RATE)),
        };
        Ok(Self { levels, rate, central_noise_std })
    }
}

impl DigitalScheme {
    fn over(&self, radio: &Radio) -> Result<Digital, UplinkError> {
        let Self { levels, rate, central_noise_std } = *self;
        let levels = Some(levels).filter(|&levels| levels > 0);
        let (length, channels, snr) = (radio.length, radio.channels()?, radio.snr()?);
        Digital::new(DigitalSettings { levels, rate, central_noise_std, length, channels, snr })
    }

    fn rate_in_words(&self) -> String {
        match self.rate {
            CodeRate::Bits(bits) => format!("{bits} bits per channel use"),
            CodeRate::Outage(probability) => format!("the rate with an outage of {probability}"),
        }
    }
}

impl Scheme for DigitalScheme {
    fn build(&self, radio: &Radio, _: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        Ok(Box::new(self.over(radio)?))
    }

    fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError> {
        if self.central_noise_std == 0.0 {
            return context.without_guarantee("the base station decodes the update of every client");
        }
        if self.levels > 0 && context.adds_local_noise() {
            // What is quantised has the norm of update and noise together, and rounding it is not limited by C.
            return context.without_guarantee(
                "quantising updates with local noise changes them by more than the clip norm; the central noise has no bound of its own",
            );
        }
        let mut account = context.account()?;
        let bound = context.constant(context.sensitivity() / self.central_noise_std);
        // A client in outage leaks nothing, and the bound counts it. An adversary who chooses channels lets all of them be received.
        account.set(View::Actual, bound.clone().without_lower());
        account.set(View::AnyChannel, bound);
        Ok(account)
    }

    fn has_outage(&self) -> bool {
        true
    }

    fn channel_knowledge(&self) -> ChannelKnowledge {
        ChannelKnowledge::Nothing
    }

    fn summary(&self, _: u32) -> String {
        let numbers = match self.levels {
            0 => "numbers of 32 bits".to_owned(),
            1 => "1 level".to_owned(),
            levels => format!("{levels} levels"),
        };
        format!("{} with {numbers} at {}", Self::NAME, self.rate_in_words())
    }

    fn description(&self, _: &Radio, _: u32) -> String {
        let numbers = match self.levels {
            0 => "as numbers of 32 bits".to_owned(),
            1 => "quantised with 1 level".to_owned(),
            levels => format!("quantised with {levels} levels"),
        };
        let noise = match self.central_noise_std {
            0.0 => String::new(),
            std => format!(
                " A trusted base station adds noise with standard deviation {std} to each parameter of the sum."
            ),
        };
        format!(
            "Over the radio digitally: every client sends its update in its own share of the channel uses, {numbers}, at {}. Updates of \
             clients in outage are lost.{noise}",
            self.rate_in_words()
        )
    }

    fn is_linear(&self) -> bool {
        self.levels == 0
    }

    fn allows_weights(&self) -> bool {
        true
    }

    fn check_radio(&self, radio: &Radio) -> Result<(), ExperimentError> {
        if radio.antennas != 1 {
            return Err(ExperimentError::refused("uplink.antennas", "this scheme receives with 1 antenna"));
        }
        if self.is_linear() && radio.power == TransmitPower::Unit {
            let reason = "bits are sent at unit power, whatever the updates are: leave it out";
            return Err(ExperimentError::refused("uplink.power", reason));
        }
        if let CodeRate::Outage(outage) = self.rate {
            if radio.snr_db == f64::INFINITY {
                let reason = "a rate by outage needs noise, and there is none at inf dB";
                return Err(ExperimentError::refused("uplink.snr_db", reason));
            }
            let is_known =
                radio.trace().is_none() && !radio.channels().is_ok_and(|channels| channels.is_unequal());
            if !is_known {
                let reason = "the probability is known for a distribution of channels with one mean power for all clients: give \
                              uplink.rate instead";
                return Err(ExperimentError::refused("uplink.outage", reason));
            }
            if let Err(error) = self.over(radio) {
                let reason = format!("{error}; give more than {outage} at {} dB", radio.snr_db);
                return Err(ExperimentError::refused("uplink.outage", reason));
            }
        }
        if radio.ages() {
            let reason = "channels of this scheme are constant over a client's share of the round";
            return Err(ExperimentError::refused("uplink.ageing", reason));
        }
        Ok(())
    }

    fn adversary(&self, view: View) -> Option<&'static str> {
        (self.central_noise_std > 0.0 && matches!(view, View::Actual | View::AnyChannel)).then_some(
            "everyone who sees the noisy sum, but not the trusted base station that decodes the updates and adds the noise",
        )
    }

    fn adversary_sees(&self, view: View) -> Option<&'static str> {
        (self.central_noise_std > 0.0 && matches!(view, View::Actual | View::AnyChannel))
            .then_some("noisy sums")
    }

    fn remarks(&self) -> Vec<&'static str> {
        let mut remarks = vec![
            SHARED_USES,
            BOTH_DIMENSIONS,
            "the base station knows all channels without error from one pilot of each client",
        ];
        if self.is_linear() {
            remarks.push("with masks, an update that is lost leaves its masks in the sum");
        }
        remarks
    }

    fn noise_key(&self) -> Option<NoiseKey> {
        Some(NoiseKey { key: "central_noise_std", range: CENTRAL_NOISE, trust: Trust::BaseStation })
    }
}
