//! Where to look: a round's curve in a table, a sketch of its loss, and the tilt that moves the middle of the sum to the `ε`
//! in question.
//!
//! With `K(θ) = ln E[e^{θl}]` of one round, `T` rounds together have `T·K(θ)`, and exceed an `ε` with a chance of at most
//! `e^{T·K(θ) − θε}` (Chernoff's bound). The `θ` for which this is least is the tilt for `ε`.

use crate::compose::{Composition, Grid, MOST_EPSILON, WRINKLED};
use crate::error::PrivacyError;
use crate::law::Side;
use crate::loss::{LossDistribution, Sketch};
use crate::sampling::{Direction, Pair, value};
use crate::solve::{first_at_most, least_at};
use crate::table::Table;
use crate::window::{BEYOND, Composed, Window};

/// Points in a window, unless a step is given.
pub(crate) const WINDOW: f64 = (1_u32 << 18) as f64;
/// Points in a round's loss, if a window has fewer.
const ROUND: f64 = (1_u32 << 16) as f64;
/// Points in a window that only serves to find out where to look.
pub(crate) const ROUGH: f64 = (1_u32 << 12) as f64;
/// A grid or a window never has more points.
const MOST_POINTS: f64 = (1_u32 << 21) as f64;
/// What is cut off a round's loss, relative to `δ/T`.
const CUT: f64 = 1e-7;
/// Steps of golden section with which a tilt is chosen.
const GOLDEN_STEPS: usize = 40;
/// Pieces in the table of a curve that is not smooth are not shorter than this, relative to their end.
const SHORTEST: f64 = 0.15;
/// So many tilts are tried at most.
const MOST_TILTS: usize = 30;

/// The curve of a round tabulated, with a sketch of its loss.
pub(crate) struct Prepared<'a> {
    composition: &'a Composition<'a>,
    table: Table,
    direction: Direction,
    side: Side,
    sketch: Sketch,
    lowest: f64,
    highest: f64,
    cut: f64,
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(
        composition: &'a Composition<'a>,
        direction: Direction,
        side: Side,
        delta: f64,
    ) -> Result<Self, PrivacyError> {
        let chance = composition.sampling.chance();
        let cut = (CUT * delta / composition.rounds as f64).max(1e-280);
        let curve = |epsilon: f64| value(composition.curve, epsilon, side);
        let out_of_reach = PrivacyError::EpsilonOutOfReach { most: MOST_EPSILON };
        let floor = 0.5 * cut / chance;
        let end = first_at_most(curve, floor, 1e-6, MOST_EPSILON, 1e-3).ok_or(out_of_reach)?;
        let tolerance = composition.curve.tolerance();
        let end = end.max(1e-12);
        // Never 0, whose logarithm the table could not hold.
        let above_zero = |epsilon: f64| curve(epsilon).max(1e-3 * floor);
        let shortest = if tolerance > WRINKLED { SHORTEST } else { 0.0 };
        let table = Table::new(above_zero, end, 0.1 * tolerance, shortest, side);
        let pair = Pair::new(&table, direction, chance, composition.curve).finite();
        let reach = |sign: f64| {
            let at = |epsilon: f64| pair.excess(sign * epsilon);
            first_at_most(at, cut, 1e-6, MOST_EPSILON, 1e-3).unwrap_or(MOST_EPSILON).max(1e-12)
        };
        let (lowest, highest) = (-reach(-1.0), reach(1.0));
        let sketch = Sketch::new(&pair, lowest, highest);
        Ok(Self { composition, direction, side, sketch, lowest, highest, cut, table })
    }

    fn rounds(&self) -> f64 {
        self.composition.rounds as f64
    }

    /// The `θ > 0` where a function that first falls and then rises is least.
    fn best_theta(&self, f: impl Fn(f64) -> f64) -> f64 {
        let scale = 1.0 / self.highest;
        least_at(|log_theta| f(scale * log_theta.exp()), -16.0, 16.0, GOLDEN_STEPS).exp() * scale
    }

    /// `min_θ [T·K(θ) + ln(1/tail)]/θ`: what the sum exceeds with a chance of at most `tail`, and the `θ` that shows it.
    fn quantile(&self, log_tail: f64) -> (f64, f64) {
        let quantile = |theta: f64| (self.rounds() * self.sketch.log_moment(theta) - log_tail) / theta;
        let theta = self.best_theta(quantile);
        (quantile(theta), theta)
    }

    /// The composed loss around the `ε` that belongs to a `δ`, found from afar: with a tilt for too large an `ε`, the
    /// rounding of the transform hides the true one, but shows a smaller one than before. Where a loss has a heavy tail, a
    /// tilt may show nothing at all below, and the true one is looked for by halving.
    pub(crate) fn around_delta(&self, delta: f64) -> Result<Composed, PrivacyError> {
        let (mut epsilon, _) = self.quantile(delta.ln());
        let (mut below, mut above) = (0.0, f64::INFINITY);
        for _ in 0..MOST_TILTS {
            let rough = self.around_epsilon(epsilon, ROUGH);
            let found = rough.epsilon_upper(delta)?;
            let is_hidden = found > 0.0 && rough.delta_upper(found) < 0.1 * delta;
            if is_hidden || found >= above {
                if is_hidden {
                    above = above.min(found)
                } else {
                    below = epsilon
                }
                epsilon = 0.5 * (below + above);
                if above - below <= 0.01 * above {
                    break;
                }
                continue;
            }
            let moved = (found - epsilon).abs();
            epsilon = found;
            if moved <= 0.05 * self.tilted_reach(self.theta_at(epsilon), 1.0) {
                break;
            }
        }
        Ok(self.view(self.theta_at(epsilon), delta.ln(), WINDOW))
    }

    pub(crate) fn around_epsilon(&self, epsilon: f64, points: f64) -> Composed {
        let theta = self.theta_at(epsilon);
        let log_delta = self.rounds() * self.sketch.log_moment(theta) - theta * epsilon;
        self.view(theta, log_delta.min(0.0), points)
    }

    /// Where `T·K(θ) − θ·ε` is least: the tilt that brings the mean of the sum to `ε`.
    fn theta_at(&self, epsilon: f64) -> f64 {
        self.best_theta(|theta| self.rounds() * self.sketch.log_moment(theta) - theta * epsilon)
    }

    /// The composed loss around the tilted mean, with everything that matters for a `δ` of `e^{log_delta}`.
    fn view(&self, theta: f64, log_delta: f64, points: f64) -> Composed {
        let (beyond, top_theta) = self.quantile(log_delta - BEYOND);
        let middle = self.rounds() * self.sketch.tilted_mean(theta);
        let below = self.tilted_reach(theta, -1.0).max(0.0);
        let above = self.tilted_reach(theta, 1.0).max(beyond - middle).max(0.0);
        // The grid spreads the loss a little more than the sketch does.
        let margin = 0.02 * (below + above);
        let window = Window { theta, top_theta, below: below + margin, above: above + margin };
        let step = self.step(window.below + window.above, points);
        let Composition { curve, sampling, rounds, .. } = *self.composition;
        let mut pair = Pair::new(&self.table, self.direction, sampling.chance(), curve);
        if self.side == Side::Lower {
            pair = pair.lower();
        }
        let round = LossDistribution::on_grid(&pair, step, self.lowest, self.highest);
        let mut composed = Composed::new(&round, rounds, window);
        composed.cut_off = 2.0 * self.rounds() * self.cut;
        composed
    }

    /// How far from its mean the tilted sum strays to one side, but with a chance of `e^{−BEYOND}`.
    fn tilted_reach(&self, theta: f64, sign: f64) -> f64 {
        let at_theta = self.sketch.log_moment(theta);
        let mean = self.sketch.tilted_mean(theta);
        let reach = |log_shift: f64| {
            let shift = log_shift.exp() / self.highest;
            let rise = self.sketch.log_moment(theta + sign * shift) - at_theta - sign * shift * mean;
            (BEYOND + self.rounds() * rise) / shift
        };
        reach(least_at(reach, -16.0, 16.0, GOLDEN_STEPS))
    }

    fn step(&self, window: f64, points: f64) -> f64 {
        let reach = self.highest - self.lowest;
        let least = window.max(reach) / MOST_POINTS;
        // A round's own spread has to show, and T·h²/12, by which connecting the dots moves the sum, must not take it out of
        // the window.
        let showing = |points: f64| {
            let points = points.max((points * self.rounds()).sqrt());
            let shift = 0.5 * (window / self.rounds()).sqrt() * (ROUGH / points).sqrt();
            (window / points).min(shift).max(reach / points.max(ROUND)).max(least)
        };
        match self.composition.grid {
            Grid::Step(step) if points == WINDOW => step.min(showing(ROUGH)).max(least),
            _ => showing(points),
        }
    }
}
