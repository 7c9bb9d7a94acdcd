//! The measurements of a round.

use floras_phy::Cost;
use serde::{Deserialize, Serialize};

/// One line of `metrics.jsonl`: the measurements of a round of a trial.
///
/// Losses are mean cross-entropies; `train_loss` and `test_loss` include the penalty `λ‖w‖²`, `local_loss` does not.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RoundMetrics {
    /// The trial, counted from 0.
    pub trial: u32,
    /// The round, counted from 1. The model is measured after it.
    pub round: u32,
    /// Whether training diverged in this round. It is then the trial's last line, without other measurements.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub diverged: bool,
    /// Learning rate `η_t` of the round.
    pub rate: f64,
    /// Number of clients whose update was not finite and was sent as zero. It depends on their data and is not private.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub broken: u32,
    /// Number of selected clients that were silent; absent if the experiment has no dropouts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<u32>,
    /// Mean loss over all clients' mini-batches, each before its step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_loss: Option<f64>,
    /// Loss over all training samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub train_loss: Option<f64>,
    /// Loss over the test samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_loss: Option<f64>,
    /// Share of the test samples that are classified correctly.
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
    /// Mean transmit power of the clients, relative to that of a unit symbol. This and the following are the round's [`Cost`]; they
    /// are absent under schemes without a radio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_mean: Option<f64>,
    /// Largest transmit power of a client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_peak: Option<f64>,
    /// Increase of the dynamic range of the clients' signals by the channels, in decibels.
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
    /// Total energy of all clients, in channel uses at the power of a unit symbol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<f64>,
}

impl RoundMetrics {
    /// The line of a round in which training diverged.
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

    /// The cost of the round on the air; `None` for a scheme without a radio, and for lines of earlier versions.
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

    /// Removes values that are not finite. They depend on the clients' data, so training must not stop because of them.
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
