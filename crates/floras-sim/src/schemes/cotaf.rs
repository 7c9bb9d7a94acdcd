//! `cotaf`: time-varying precoding (Sery, Shlezinger, Cohen, Eldar).

use floras_core::{Admission, View};
use floras_phy::{Cotaf, CotafSettings, Uplink, UplinkError};
use floras_privacy::{Account, Source};
use serde::{Deserialize, Serialize};

use super::{ChannelKnowledge, ONE_ANTENNA, Scheme, SchemeFile, check_admission};
use crate::accounting::AccountContext;
use crate::error::SimError;
use crate::experiment::{ExperimentError, Radio};

/// Why the numbers are no guarantee.
const DATA_SCALE: &str = "the scale of a round is the norm of its longest update, which depends on the data, and the base station receives the norm of every update; the number treats the scale as a public constant and the \
     norms as unknown (channel-inversion at unit power has a constant scale)";
/// What the numbers assume besides.
const ASSUMPTIONS: [&str; 2] =
    ["clients know their channels without error", "the receiver's noise is at least the stated one"];

/// The settings of time-varying precoding.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct CotafScheme {
    /// The weakest channel with which a client takes part, by amplitude `|h|` or power `|h|²`.
    pub admission: Admission,
}

impl SchemeFile for CotafScheme {
    const NAME: &'static str = "cotaf";
    const LABEL: &'static str = "time-varying precoding";
    type Keys = Self;

    fn read(keys: Self) -> Result<Self, ExperimentError> {
        Ok(keys)
    }
}

impl CotafScheme {
    fn over(&self, radio: &Radio) -> Result<Cotaf, UplinkError> {
        let (length, channels, snr) = (radio.length, radio.channels()?, radio.snr()?);
        Cotaf::new(CotafSettings { admission: self.admission, length, channels, snr })
    }
}

impl Scheme for CotafScheme {
    fn build(&self, radio: &Radio, _: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        Ok(Box::new(self.over(radio)?))
    }

    /// Given the scale, every client arrives with at most the amplitude `θ`, whatever its channel is, and raw samples show no more than
    /// the sum.
    fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError> {
        let Some(parameters) = context.parameters() else {
            return context.without_guarantee("an uplink on its own does not know the number of parameters");
        };
        let mu = self.over(context.radio())?.mu(parameters);
        let mut account = context.account()?;
        for view in [View::Actual, View::AnyChannel, View::RawSignal] {
            let source = match mu.is_finite() {
                true => context.constant(mu).with_caveat(DATA_SCALE).assuming(ASSUMPTIONS).without_lower(),
                false => Source::Nothing("the receiver has no noise".to_owned()),
            };
            let source = if view == View::Actual { source } else { source.assuming([ONE_ANTENNA]) };
            account.set(view, source);
        }
        Ok(account)
    }

    fn channel_knowledge(&self) -> ChannelKnowledge {
        ChannelKnowledge::Coefficient
    }

    fn summary(&self, _: u32) -> String {
        Self::NAME.to_owned()
    }

    fn description(&self, _: &Radio, _: u32) -> String {
        "Over the radio with time-varying precoding: every client undoes its channel, and all multiply by the same factor, with which \
         the longest update of the round takes the full power. The noise shrinks as the updates do."
            .to_owned()
    }

    fn is_linear(&self) -> bool {
        false
    }

    fn check_radio(&self, radio: &Radio) -> Result<(), ExperimentError> {
        let refused = |key: &str, reason: &str| Err(ExperimentError::refused(key, reason));
        if radio.antennas != 1 {
            return refused("uplink.antennas", "this scheme receives with 1 antenna");
        }
        if radio.channel_error != 0.0 {
            return refused(
                "uplink.channel_error",
                "clients of this scheme know their channels without error",
            );
        }
        if radio.ages() {
            return refused("uplink.ageing", "channels of this scheme are constant over a round");
        }
        check_admission(radio, self.admission)
    }

    fn adversary(&self, view: View) -> Option<&'static str> {
        (view == View::RawSignal).then_some(
            "a base station that keeps its raw samples, as if it did not know the scale of the round",
        )
    }
}
