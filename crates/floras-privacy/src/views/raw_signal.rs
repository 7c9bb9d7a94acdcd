//! The raw-signal view: a base station that keeps its samples, `μ = Δ·|h|/s` ([`Coefficients::raw_signal`]).
//!
//! Raw samples of the payload depend neither on the pilot nor on the receiver.
//!
//! [`Coefficients::raw_signal`]: crate::Coefficients::raw_signal

use crate::error::PrivacyError;
use crate::setting::Setting;
use crate::views::actual::ONE_DISTRIBUTION;
use crate::views::{Beside, Seen};

/// The view of a federation.
pub(super) fn view(setting: &Setting) -> Result<Seen, PrivacyError> {
    let source = setting.averaged(|channel| channel.raw_signal(setting.sensitivity()))?;
    let assumptions = ["nothing but the channel's own noise in both branches", ONE_DISTRIBUTION];
    let source = source.assuming(assumptions.map(str::to_owned).to_vec());
    Ok(Seen { source: source.assuming(setting.secret_participation()), beside: Beside::Nothing })
}
