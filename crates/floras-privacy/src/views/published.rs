//! The published view: the paper's theorems as printed. It has no distribution of `μ`.

use crate::account::Source;
use crate::error::PrivacyError;
use crate::published::theorems::Participation;
use crate::setting::Setting;
use crate::views::DetailSource;

/// The view of a federation, with either meaning of `p`.
pub(super) fn view(setting: &Setting) -> Result<(Source, DetailSource), PrivacyError> {
    let [per_clients, plus_one] =
        [Participation::PerClients, Participation::PerClientsPlusOne].map(|p| setting.published(p));
    let rounds = per_clients.and_then(|round| Ok((round, plus_one?)));
    Ok((Source::Absent, DetailSource::Published(rounds)))
}
