//! The raw-signal view: a base station that stores its samples, `μ = Δ·|h|/s` ([`Coefficients::raw_signal`]).
//!
//! Raw samples of the payload depend neither on the pilot nor on the receiver.
//!
//! [`Coefficients::raw_signal`]: crate::Coefficients::raw_signal

use crate::account::Source;
use crate::error::PrivacyError;
use crate::setting::Setting;
use crate::views::DetailSource;
use crate::views::actual::ONE_DISTRIBUTION;

/// The view of a federation.
pub(super) fn view(setting: &Setting) -> Result<(Source, DetailSource), PrivacyError> {
    let source = setting.averaged(|channel| channel.raw_signal(setting.sensitivity()))?;
    let assumptions = ["nothing but the channel's own noise in both branches", ONE_DISTRIBUTION];
    Ok((source.assuming(assumptions), DetailSource::Absent))
}
