//! The noise with which a candidate's clients have the benchmark's `ε` after all rounds.
//!
//! In this order: the noise of the scheme itself, if it has some that gives a guarantee in the candidate's view; unused sequences, for a
//! view in which the base station runs the prescribed receiver; masks that cancel in the sum, for a linear scheme; and noise with which
//! each client protects itself.

use floras_core::{Rounding, View};
use floras_sim::benchmark::ProtectedBy;
use floras_sim::inquiry::{ExperimentAccount, Find, calibrate_experiment};
use floras_sim::number::compact;
use floras_sim::schemes::Trust;
use floras_sim::{ExperimentBuilder, SimError};
use serde::{Deserialize, Serialize};

use crate::noise::sufficient_std;

/// Maximum number of chips per parameter.
const MAX_LENGTH: usize = 1 << 14;

/// A protected experiment.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Protected {
    /// The experiment, as a file.
    pub(super) file: String,
    /// What protects its clients.
    pub(super) by: ProtectedBy,
}

/// The experiment with an `ε` of at most `epsilon` after all rounds in a view; `None` if no noise gives it.
pub(super) fn protect(
    builder: &ExperimentBuilder,
    view: View,
    epsilon: f64,
) -> Result<Option<Protected>, SimError> {
    let experiment = builder.build()?;
    let scheme = &experiment.settings().uplink.scheme;
    if let Some(own) = scheme.noise_key() {
        let found = calibrate_experiment(builder, epsilon, view, Find::Noise)?;
        let is_proven = |views: &floras_privacy::Views| views.get(view).is_some_and(|bound| bound.guarantee);
        if let (Some(value), Some(report), Some(file)) = (found.value, &found.report, found.file)
            && is_proven(&report.views)
        {
            let by = ProtectedBy { noise: format!("{} = {}", own.key, compact(value)), trust: own.trust };
            return Ok(Some(Protected { file, by }));
        }
    }
    if view != View::RawSignal && scheme.sequences().is_some() {
        return with_sequences(builder, view, epsilon);
    }
    if scheme.is_linear() && view == View::RawSignal {
        let found = calibrate_experiment(builder, epsilon, view, Find::Masks)?;
        if let (Some(masks), Some(file)) = (found.masks, found.file) {
            let noise = format!(
                "masks {}, noise {} of each client",
                compact(masks.mask_std),
                compact(masks.noise_std)
            );
            let trust = if masks.mask_std > 0.0 { Trust::Clients } else { Trust::NoOne };
            return Ok(Some(Protected { file, by: ProtectedBy { noise, trust } }));
        }
    }
    with_local_noise(builder, view, epsilon)
}

/// The smallest number of sequences in the shortest length that has enough of them.
fn with_sequences(
    builder: &ExperimentBuilder,
    view: View,
    epsilon: f64,
) -> Result<Option<Protected>, SimError> {
    let mut length = builder.build()?.settings().uplink.radio.length;
    while length <= MAX_LENGTH {
        let longer = builder.clone().set_to("uplink.length", length as u64)?;
        let found = calibrate_experiment(&longer, epsilon, view, Find::Sequences)?;
        if let (Some(gamma), Some(file)) = (found.gamma, found.file) {
            let noise = format!("{gamma} unused sequences of length {length}");
            return Ok(Some(Protected { file, by: ProtectedBy { noise, trust: Trust::BaseStation } }));
        }
        length *= 2;
    }
    Ok(None)
}

fn with_local_noise(
    builder: &ExperimentBuilder,
    view: View,
    epsilon: f64,
) -> Result<Option<Protected>, SimError> {
    let experiment = builder.build()?;
    let settings = experiment.settings();
    let Some(clip) = settings.privacy.clip else { return Ok(None) };
    let std = sufficient_std(clip, settings.rounds, epsilon, settings.privacy.delta)?;
    // Few digits, on the private side.
    let std = Rounding::Up.significant(std, 6);
    let noisy = builder.clone().set_to("masks.noise_std", std)?;
    let account = ExperimentAccount::new(&noisy.build()?)?;
    let views = account.views(settings.rounds)?;
    let meets = views
        .get(view)
        .is_some_and(|bound| bound.guarantee && bound.epsilon.is_some_and(|reached| reached <= epsilon));
    let by = ProtectedBy { noise: format!("noise {} of each client", compact(std)), trust: Trust::NoOne };
    Ok(meets.then(|| Protected { file: noisy.to_toml(), by }))
}
