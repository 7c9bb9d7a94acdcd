//! What is measured in a round.

use floras_phy::Cost;
use serde::{Deserialize, Serialize};

/// One line of `metrics.jsonl`: a trial's round, and what was measured in it.
///
/// Losses are mean cross-entropies; `train_loss` and `test_loss` include the penalty `λ‖w‖²`, `local_loss` does not.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RoundMetrics {
    /// From 0.
    pub trial: u32,
    /// From 1; what is measured is the model after it.
    pub round: u32,
    /// Only in a trial's last line, if it diverged: nothing else is measured then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub diverged: bool,
    /// `η_t`.
    pub rate: f64,
    /// Clients whose update was not finite, and who sent zero instead. A function of their data, and not private.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub broken: u32,
    /// Selected clients that were silent; absent if the experiment has no dropouts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<u32>,
    /// Mean over all clients' mini-batches, before each step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_loss: Option<f64>,
    /// Over all training samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_loss: Option<f64>,
    /// Over the test samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_loss: Option<f64>,
    /// Share of the test samples whose class was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_accuracy: Option<f64>,
    /// Mean norm of the clients' updates, before they are clipped or normalised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_norm: Option<f64>,
    /// Mean of the gains `g_k`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_gain: Option<f64>,
    /// `ν`, standard deviation of the noise in every parameter of the sum, on the scale on which updates are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_std: Option<f64>,
    /// Mean transmit power of the clients, in that of a unit symbol. This and the following are the round's [`Cost`]; they are
    /// absent under schemes without a radio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_mean: Option<f64>,
    /// Transmit power of the client that sends at the highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_peak: Option<f64>,
    /// What the channels add to the dynamic range of the clients' signals, in decibels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamic_range_db: Option<f64>,
    /// Channel uses of the updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_uses: Option<u64>,
    /// Channel uses of the pilots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pilot_uses: Option<u64>,
    /// Channel uses of side information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_uses: Option<u64>,
    /// Energy that all clients spend together, in channel uses at the power of a unit symbol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<f64>,
}

impl RoundMetrics {
    /// The line of a round in which training broke down.
    pub(crate) fn diverged(trial: u32, round: u32, rate: f64) -> Self {
        Self { trial, round, rate, diverged: true, ..Self::default() }
    }

    /// The measured values, each with its name.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let named = [
            ("rate", Some(self.rate)),
            ("broken", Some(f64::from(self.broken)).filter(|&broken| broken > 0.0)),
            ("silent", self.silent.map(f64::from)),
            ("local_loss", self.local_loss),
            ("train_loss", self.train_loss),
            ("test_loss", self.test_loss),
            ("test_accuracy", self.test_accuracy),
            ("update_norm", self.update_norm),
            ("mean_gain", self.mean_gain),
            ("noise_std", self.noise_std),
            ("power_mean", self.power_mean),
            ("power_peak", self.power_peak),
            ("dynamic_range_db", self.dynamic_range_db),
            ("payload_uses", self.payload_uses.map(|uses| uses as f64)),
            ("pilot_uses", self.pilot_uses.map(|uses| uses as f64)),
            ("control_uses", self.control_uses.map(|uses| uses as f64)),
            ("energy", self.energy),
        ];
        named.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)))
    }

    /// What the round cost on the air; `None` for a scheme without a radio, and for lines of earlier versions.
    pub fn cost(&self) -> Option<Cost> {
        Some(Cost {
            power_mean: self.power_mean?,
            power_peak: self.power_peak?,
            dynamic_range_db: self.dynamic_range_db,
            payload_uses: self.payload_uses?,
            pilot_uses: self.pilot_uses?,
            control_uses: self.control_uses?,
            energy: self.energy?,
        })
    }

    pub(crate) fn set_cost(&mut self, cost: Cost) {
        self.power_mean = Some(cost.power_mean);
        self.power_peak = Some(cost.power_peak);
        self.dynamic_range_db = cost.dynamic_range_db;
        self.payload_uses = Some(cost.payload_uses);
        self.pilot_uses = Some(cost.pilot_uses);
        self.control_uses = Some(cost.control_uses);
        self.energy = Some(cost.energy);
    }

    /// Leaves out what is not a number. Whether training continues must not depend on it: it is a function of the clients' data.
    pub(crate) fn keep_finite(&mut self) {
        let measured =
            [&mut self.local_loss, &mut self.train_loss, &mut self.test_loss, &mut self.update_norm];
        for value in measured {
            *value = value.filter(|value| value.is_finite());
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
