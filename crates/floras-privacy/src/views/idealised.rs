//! The idealised view: high SNR, where only the noise of the unused sequences counts, `μ = Δ/ν_γ`.

use floras_core::{Clipping, Receiver};

use crate::account::Source;
use crate::engine::distribution::{CellsBuilder, FINE_CELL, MuDistribution, Side};
use crate::error::{PrivacyError, require_positive};
use crate::published::rdp::RenyiRound;
use crate::setting::{Decoder, Margins, Setting, require_branches};
use crate::views::noise::{Noise, NoiseCell};
use crate::views::pilot::BEYOND_REACH;
use crate::views::receiver::noise_of_branches;
use crate::views::{DetailSource, boxed};

/// Upper limit of `μ`; with a larger `μ`, every `ε` is out of range.
pub(super) const MAX_MU: f64 = 1e8;

/// The view of a federation. For the paper's receiver with fixed clipping and without margins, a round has a Rényi form.
pub(super) fn view(setting: &Setting) -> Result<(Source, DetailSource), PrivacyError> {
    let source = setting.decoded(|decoder| {
        let Decoder { receiver, branches, unused, sensitivity, .. } = decoder;
        Source::or_reason(idealised_of_branches(receiver, branches, unused, sensitivity).map(boxed))
    })?;
    let has_form = setting.receiver == Receiver::Paper
        && setting.branches == 1
        && setting.clipping == Clipping::Each
        && setting.gamma() > 0
        && setting.margins == Margins::default();
    let details = match has_form {
        true => {
            DetailSource::Renyi(RenyiRound::new(setting.decoded_sensitivity() / 2.0, setting.gamma() as f64)?)
        }
        false => DetailSource::Absent,
    };
    Ok((source.assuming(["no client's channel fades: the SNR is high for everyone"]), details))
}

/// The distribution of `μ` at high SNR, where only the noise of the unused sequences counts: `Δ/ν_γ`.
pub fn idealised(receiver: Receiver, unused: u64, sensitivity: f64) -> Result<MuDistribution, PrivacyError> {
    idealised_of_branches(receiver, 1, unused, sensitivity)
}

/// The same for sequences that are received on `branches ≥ 1` real branches: `μ = Δ/√(Σ_{j≤γ} w(R_j)²)`, where `R_j` is the length of a
/// vector of `branches` standard normal numbers. For the paper's weights and one unused sequence, `μ = Δ·R`: the noise then has a
/// multivariate t distribution, with as many degrees of freedom as branches.
pub fn idealised_of_branches(
    receiver: Receiver,
    branches: u32,
    unused: u64,
    sensitivity: f64,
) -> Result<MuDistribution, PrivacyError> {
    require_branches(branches)?;
    require_positive("the sensitivity", sensitivity)?;
    if unused == 0 {
        return Err(PrivacyError::NoUnusedSequences);
    }
    if receiver == Receiver::Paper && unused == 1 && branches > 1 {
        return Ok(MuDistribution::Chi { scale: sensitivity, rounds: branches.into() });
    }
    if receiver == Receiver::Paper && branches == 1 {
        return Ok(MuDistribution::HalfNormal { scale: sensitivity / unused as f64 });
    }
    let of = |noise: f64| [(sensitivity / noise.sqrt(), 1.0)];
    let above = without_channel(&noise_of_branches(receiver, branches, unused, Side::Upper), of);
    Ok(above.build_above(move || cells_below(receiver, branches, unused, sensitivity)))
}

/// The cells of the lower bound, with the noise rounded up.
fn cells_below(receiver: Receiver, branches: u32, unused: u64, sensitivity: f64) -> CellsBuilder {
    let noise = noise_of_branches(receiver, branches, unused, Side::Lower);
    let strength = |noise: f64| sensitivity / noise.sqrt();
    let limited = || noise.cells().iter().filter(|cell| strength(cell.least) < MAX_MU);
    let largest = limited().map(|cell| strength(cell.least)).fold(0.0, f64::max);
    let mut below = CellsBuilder::new(largest, FINE_CELL, Side::Lower);
    for cell in limited() {
        // A convex function of the noise has a mean that is at least its value at the mean.
        below.add_range(strength(cell.mean), (strength(cell.largest), strength(cell.least)), cell.mass);
    }
    below.add_exception(noise.none);
    below
}

/// Cells of `factor/√(ν² + …)` for an upper bound. Only the noise limits this `μ`: outcomes without noise count as infinite losses. A
/// convex decreasing function returns factors and probabilities for the smallest and the largest noise of a cell.
pub(super) fn without_channel<I>(noise: &Noise, values_of: impl Fn(f64) -> I) -> CellsBuilder
where
    I: IntoIterator<Item = (f64, f64)>,
{
    let ends = |cell: &NoiseCell| {
        let highs = values_of(cell.least).into_iter();
        highs
            .zip(values_of(cell.largest))
            .map(|((high, share), (low, _))| (high, low, share))
            .collect::<Vec<_>>()
    };
    let values: Vec<(NoiseCell, Vec<_>)> = noise.cells().iter().map(|&cell| (cell, ends(&cell))).collect();
    let highs = values.iter().flat_map(|(_, ends)| ends.iter().map(|&(high, ..)| high));
    let largest = highs.filter(|&mu| mu < MAX_MU).fold(0.0, f64::max);
    let mut cells = CellsBuilder::new(largest, FINE_CELL, Side::Upper);
    for (cell, ends) in values {
        for (high, low, share) in ends {
            let mass = cell.mass * share;
            if high < MAX_MU {
                cells.add_range(cell.chord(high, low), (low, high), mass);
            } else {
                cells.add_infinite(mass);
            }
        }
    }
    cells.add_infinite(noise.none + BEYOND_REACH);
    cells
}
