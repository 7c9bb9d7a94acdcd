//! Cells of coefficients from the density of a channel's amplitude.

use std::f64::consts::{FRAC_PI_2, PI};
use std::sync::Arc;

use crate::error::{PrivacyError, require, require_positive};
use crate::numerics::normal;
use crate::numerics::quadrature::{narrow_panels, short_panel};
use crate::numerics::table::Smooth;
use crate::views::actual::coefficients::{Angle, Coefficient};
use crate::views::gains::STEP;

/// Coefficients below this value count as equal to it.
const WEAKEST: f64 = 1e-5;
/// Width of a cell in `ln t` and in `ln μ` for raw samples. Their `ε` is large, and its transition relatively sharp.
pub(super) const RAW_STEP: f64 = 0.003;
/// Width of a cell in `ln t` for lower bounds.
pub(super) const NARROW: f64 = 0.5 * STEP;

/// The cells of a density of `|h|`, and narrower ones.
pub(super) fn seen_cells(
    noise_std: f64,
    range: (f64, f64),
    density: impl Fn(f64) -> f64,
) -> Result<[Arc<[Coefficient]>; 2], PrivacyError> {
    Ok([cells_of(noise_std, range, &density, STEP)?, cells_of(noise_std, range, &density, NARROW)?])
}

/// The same for a density that is itself an integral. It is interpolated to a relative 1e-11, less than the slack of every bound.
pub(super) fn integral_cells(
    noise_std: f64,
    range: (f64, f64),
    density: impl Fn(f64) -> f64,
) -> Result<[Arc<[Coefficient]>; 2], PrivacyError> {
    let from = (WEAKEST * noise_std).max(range.0).ln();
    let smooth = Smooth::new(|x| density(x.exp()), from, range.1.ln(), 0.5, 1e-11);
    let interpolated = |x: f64| smooth.value(x.ln()).unwrap_or_else(|| density(x));
    seen_cells(noise_std, range, interpolated)
}

/// The cells of a density of `|h|`, in units of the despread noise, with this width in `ln t`.
pub(super) fn cells_of(
    noise_std: f64,
    range: (f64, f64),
    density: impl Fn(f64) -> f64,
    width: f64,
) -> Result<Arc<[Coefficient]>, PrivacyError> {
    require_positive("the despread noise", noise_std)?;
    require_positive("the largest channel coefficient", range.1)?;
    let (from, to) = (range.0.max(0.0) / noise_std, range.1 / noise_std);
    let at = |t: f64| density(t * noise_std);
    let mut cells = Vec::new();
    if from < WEAKEST {
        // Panels that halve towards 0, where a density may be unbounded.
        let ends: Vec<f64> = (0..120).rev().map(|power| WEAKEST * 0.5_f64.powi(power)).collect();
        let mass: f64 = narrow_panels(&ends, f64::INFINITY).into_iter().map(|(t, w)| w * at(t)).sum();
        cells.push(Coefficient { mass, least: 0.0, largest: WEAKEST, mean: WEAKEST });
    }
    // Cells end at integer multiples of the step, and are at most a fixed share of the range.
    let parts = (width * to / (0.02 * (to - from))).ceil().max(1.0);
    let step = width / parts;
    let mut number = (from.max(WEAKEST).ln() / step).floor();
    loop {
        let (least, largest) = ((number * step).exp(), ((number + 1.0) * step).exp());
        if least >= to {
            break;
        }
        let nodes = short_panel(least.max(from), largest.min(to));
        let (mass, first) = nodes.fold((0.0, 0.0), |(mass, first), (t, weight)| {
            let part = weight * at(t);
            (mass + part, first + part * t)
        });
        if mass > 0.0 || mass.is_nan() {
            cells.push(Coefficient { mass, least, largest, mean: first / mass });
        }
        number += 1.0;
    }
    normalised(cells)
}

pub(super) fn normalised(mut cells: Vec<Coefficient>) -> Result<Arc<[Coefficient]>, PrivacyError> {
    let total: f64 = cells.iter().map(|cell| cell.mass).sum();
    let holds = total.is_finite() && total > 0.0;
    require(holds, "the density of the channel", "finite and not zero everywhere", total)?;
    cells.iter_mut().for_each(|cell| cell.mass /= total);
    cells.retain(|cell| cell.mass > 0.0);
    Ok(cells.into())
}

/// Coefficients in cells of this width in `ln t`.
pub(super) fn groups(coefficients: &[Coefficient], width: f64) -> impl Iterator<Item = Coefficient> {
    grouped(coefficients, move |_| width)
}

/// Coefficients in cells of a width in `ln t` that depends on them.
pub(super) fn grouped(
    coefficients: &[Coefficient],
    width: impl Fn(f64) -> f64,
) -> impl Iterator<Item = Coefficient> {
    let number = move |cell: &Coefficient| {
        let width = width(cell.mean);
        (width, (cell.mean.ln() / width).floor())
    };
    let same = move |a: &Coefficient, b: &Coefficient| number(a) == number(b);
    coefficients.chunk_by(same).map(|cells| {
        let mass: f64 = cells.iter().map(|cell| cell.mass).sum();
        let first: f64 = cells.iter().map(|cell| cell.mass * cell.mean).sum();
        let least = cells.iter().map(|cell| cell.least).fold(f64::INFINITY, f64::min);
        let largest = cells.iter().map(|cell| cell.largest).fold(0.0, f64::max);
        Coefficient { mass, least, largest, mean: first / mass }
    })
}

impl Angle {
    /// Values of `|cos θ|` with their weights, finer near 0.
    pub(super) fn cosines(self) -> Vec<(f64, f64)> {
        let density: Box<dyn Fn(f64) -> f64> = match self {
            Self::Zero | Self::Within(0.0) | Self::Normal(0.0) => return vec![(1.0, 1.0)],
            Self::Uniform | Self::Within(_) => Box::new(|_| 1.0),
            Self::Normal(std) => Box::new(move |angle| normal::density(angle / std)),
        };
        let most = match self {
            Self::Within(half_width) => half_width,
            // Wider distributions are uniform to the accuracy of the account.
            Self::Normal(std) if std < 1.5 => 8.0 * std,
            _ => FRAC_PI_2,
        };
        let wide = !matches!(self, Self::Within(_)) && most == FRAC_PI_2;
        let mut points = vec![0.0, most];
        for quarter in 0..(most / PI).ceil() as usize + 1 {
            let zero = FRAC_PI_2 + quarter as f64 * PI;
            let near = (0..12).flat_map(|power| [zero - 0.5_f64.powi(power), zero + 0.5_f64.powi(power)]);
            points.extend(near.chain([zero]));
        }
        points.retain(|&point| (0.0..=most).contains(&point));
        points.sort_by(f64::total_cmp);
        points.dedup();
        let nodes = narrow_panels(&points, 0.5);
        let weights = nodes.iter().map(|&(angle, weight)| weight * if wide { 1.0 } else { density(angle) });
        let total: f64 = weights.clone().sum();
        nodes.iter().zip(weights).map(|(&(angle, _), weight)| (angle.cos().abs(), weight / total)).collect()
    }
}

/// The density of `r·|cos θ|` with a uniform angle: `(2/π)∫ f(r)/√(r² − x²) dr`, with `r = x·cosh v` equal to `(2/π)∫ f(x·cosh v) dv`,
/// whose integrand has no singularity.
pub(super) fn real_part_density(density: &dyn Fn(f64) -> f64, low: f64, high: f64, x: f64) -> f64 {
    let angle = |radius: f64| (radius / x).max(1.0).acosh();
    let (from, to) = (angle(low), angle(high));
    if x <= 0.0 || to <= from {
        return 0.0;
    }
    // f(x·cosh v) falls like a double exponential at its end, and like a power of e^v before.
    narrow_panels(&[from, to], 0.35).into_iter().map(|(v, weight)| weight * density(x * v.cosh())).sum()
}
