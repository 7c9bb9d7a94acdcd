//! Whether the noise of a round is fit for release, and the statements about it.
//!
//! Statements of an [`AirInterface`](super::AirInterface) are about noise that is fit for release ([`floras_phy::release`]): the
//! ideal mechanism is evaluated at a `δ` that is reduced for floating-point arithmetic, and the loss is added to every `ε` except
//! the published one, which is the paper's formula as printed. A statement about rounds whose noise is not fit for release is not a
//! guarantee, and gives the reason.

use floras_core::{Fidelity, View};
use floras_phy::release::{
    FloatingPointLoss, MAX_EPSILON, MAX_VALUES, floating_point_loss, summation_is_covered,
};
use floras_phy::{EffectiveChannel, Noise};
use floras_privacy::Statement;

use crate::experiment::Settings;

/// Why there is no guarantee under the simulation's generator.
const SIMULATED: &str =
    "the noise comes from the simulation's generator, which is reproducible and not fit for real data";
/// Why there is no guarantee at the chip level.
const CHIPS: &str = "the noise of every chip comes from the simulation's generator, which is not fit for real data; \
     take fidelity = \"symbol\"";
/// Why there is no guarantee for a sum that is much larger than its noise.
const LOUD: &str = "the sum is so much larger than its noise that the rounding of the sum is not covered";
/// Why there is no guarantee at a very small δ.
const SMALL_DELTA: &str = "delta is smaller than what the bound on floating-point arithmetic covers, 1e-20";
/// Why there is no guarantee for a very large ε.
const LARGE_EPSILON: &str = "the bound on floating-point arithmetic covers no epsilon above 150";

/// The loss of floating-point arithmetic at the `δ` of an interface.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    loss: f64,
    inner_delta: Option<f64>,
}

impl Release {
    pub(super) fn new(delta: f64) -> Self {
        let loss = floating_point_loss(MAX_VALUES);
        let epsilon = loss.map_or(f64::INFINITY, |loss| loss.epsilon);
        Self { loss: epsilon, inner_delta: loss.and_then(|loss: FloatingPointLoss| loss.inner_delta(delta)) }
    }

    /// The loss that is added to every rigorous `ε`.
    pub(super) fn epsilon(self) -> f64 {
        self.loss
    }

    /// The `δ` at which the ideal mechanism is evaluated, for a statement at `delta`.
    pub(super) fn inner_delta(self, delta: f64) -> f64 {
        self.inner_delta.unwrap_or(delta)
    }

    /// `ε` with the loss.
    pub(super) fn stated(self, view: View, epsilon: f64) -> f64 {
        if view == View::Published { epsilon } else { epsilon + self.loss }
    }

    /// Adds the loss to a statement, and the reason why it is no guarantee, if there is one.
    pub(super) fn complete(self, view: View, statement: &mut Statement, unfit: Option<&str>) {
        if view == View::Published {
            return;
        }
        statement.epsilon = statement.epsilon.map(|epsilon| epsilon + self.loss);
        for epsilon in statement.details.values_mut() {
            *epsilon += self.loss;
        }
        let large = statement.epsilon.filter(|&epsilon| epsilon > MAX_EPSILON).map(|_| LARGE_EPSILON);
        let small = self.inner_delta.is_none().then_some(SMALL_DELTA);
        if let (true, Some(reason)) = (statement.guarantee, unfit.or(small).or(large)) {
            statement.guarantee = false;
            statement.reason = Some(reason.to_owned());
        }
    }
}

/// Why the noise of every round of an interface is not fit for release, if it is not.
pub(super) fn always_unfit(settings: &Settings) -> Option<&'static str> {
    (settings.uplink.fidelity == Fidelity::Chip).then_some(CHIPS)
}

/// Why the noise of one round is not fit for release, if it is not.
pub(super) fn unfit(settings: &Settings, noise: Noise, channel: &EffectiveChannel) -> Option<&'static str> {
    let clip = settings.privacy.clip?;
    let is_loud = || !summation_is_covered(&channel.mu(1.0), 1.0, clip);
    match noise {
        Noise::Simulated => Some(SIMULATED),
        Noise::Release => always_unfit(settings).or_else(|| is_loud().then_some(LOUD)),
    }
}
