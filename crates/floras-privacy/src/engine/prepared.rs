//! From curves to their composition: each curve in a table, all losses on a grid of one step, around the `ε` of interest.

use crate::engine::compose::{CONVEX_TOLERANCE, Grid, MAX_EPSILON, Part};
use crate::engine::distribution::Side;
use crate::engine::loss::{LossDistribution, Sketch};
use crate::engine::sampling::{Direction, Pair, diluted, value};
use crate::engine::tabulated::TOLERANCE_BELOW;
use crate::engine::tilt::Tilts;
use crate::engine::window::{Composed, step_within};
use crate::error::PrivacyError;
use crate::numerics::solve::first_at_most;
use crate::numerics::table::Table;

/// Number of points in a window of the coarse search, and in a round's loss for it.
const ROUGH: f64 = (1_u32 << 12) as f64;
const ROUGH_ROUND: f64 = (1_u32 << 14) as f64;
/// Minimum number of points in a round's loss.
const ROUND: f64 = (1_u32 << 16) as f64;
/// Number of points in a window for a thousand rounds, and its limits for other numbers of rounds.
const WINDOW: f64 = (1_u32 << 16) as f64;
const WINDOWS: (f64, f64) = ((1_u32 << 16) as f64, (1_u32 << 18) as f64);
/// Maximum number of points of a grid or a window.
const MAX_POINTS: f64 = (1_u32 << 21) as f64;
/// Relative distance between the bounds that the grid may cause, as long as a window needs at most the maximum number of points.
const GAP: f64 = 0.03;
/// Estimates of `δ` at the largest `ε` are correct up to this factor. A wrong one leaves out a bound, and states no false one.
const ESTIMATE: f64 = 100.0;

/// Resolution of a composition.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Resolution {
    /// For the coarse search.
    Rough,
    /// For a plot.
    Plot,
    /// For the bounds.
    Fine,
}

impl Resolution {
    /// Numbers of points in a window and in a round's loss. Connecting the dots moves the sum of `T` losses by `T·h²/12`, so more
    /// rounds need a finer step `h`.
    fn points(self, rounds: f64) -> (f64, f64) {
        match self {
            Self::Rough => (ROUGH, ROUGH_ROUND),
            Self::Plot => (2.0 * ROUGH, ROUGH_ROUND),
            Self::Fine => ((WINDOW * (rounds / 1000.0).sqrt()).clamp(WINDOWS.0, WINDOWS.1), ROUND),
        }
    }
}

/// Probability that is cut off a round's loss and counts as infinite, relative to `δ/T`.
pub(crate) const CUT: f64 = 1e-7;
/// Minimum length of a piece in the table of a non-smooth curve, relative to its end.
const SHORTEST: f64 = 0.15;
/// The tilts that are tried first, relative to the tilt from the sketch.
const TILT_SHARES: [f64; 4] = [1.0, 0.8, 0.5, 0.0];
/// Maximum number of tilts that are tried.
const MAX_TILTS: usize = 30;

/// The tabulated curve of one kind of rounds, with a sketch of its loss.
struct Kind<'a> {
    part: Part<'a>,
    table: Table,
    /// Probability of a loss beyond the end of the table, which counts as infinite.
    beyond: f64,
    lowest: f64,
    highest: f64,
}

impl<'a> Kind<'a> {
    fn new(part: Part<'a>, direction: Direction, side: Side, cut: f64) -> Self {
        let probability = part.sampling.probability();
        let floor = 0.5 * cut / probability;
        let part = Part { curve: part.curve.for_composition(floor).unwrap_or(part.curve), ..part };
        let curve = |epsilon: f64| value(part.curve, epsilon, side);
        let end = first_at_most(curve, floor, 1e-6, MAX_EPSILON, 1e-3).unwrap_or(MAX_EPSILON).max(1e-12);
        let tolerance = part.curve.tolerance();
        let beyond = probability * (1.0 + tolerance) * curve(end);
        // Above 0, because the table holds the logarithm.
        let above_zero = |epsilon: f64| curve(epsilon).max(1e-3 * floor);
        let shortest = if tolerance > CONVEX_TOLERANCE { SHORTEST } else { 0.0 };
        let close = if side == Side::Lower && tolerance > CONVEX_TOLERANCE {
            TOLERANCE_BELOW
        } else {
            0.1 * tolerance
        };
        let table = Table::new(above_zero, end, close, shortest, side);
        let pair = Pair::new(&table, direction, probability, part.curve).finite();
        // Beyond the table the curve is zero.
        let furthest = if direction == Direction::Known { end } else { diluted(end, probability) };
        let reach = |sign: f64| {
            let at = |epsilon: f64| pair.excess(sign * epsilon);
            let guess = (1e-3 * furthest).min(1e-6);
            first_at_most(at, cut, guess, furthest, 1e-3).unwrap_or(furthest).max(1e-12)
        };
        let (lowest, highest) = (-reach(-1.0), reach(1.0));
        Self { part, table, beyond, lowest, highest }
    }

    /// Probability of an infinite loss in one round, including losses that count as infinite.
    fn infinite(&self) -> f64 {
        self.part.sampling.probability() * self.part.curve.infinite() + self.beyond
    }

    fn reach(&self) -> f64 {
        self.highest - self.lowest
    }

    /// A sketch of the loss, on the points of a grid if a step is given.
    fn sketch(&self, direction: Direction, step: Option<f64>) -> Sketch {
        let pair =
            Pair::new(&self.table, direction, self.part.sampling.probability(), self.part.curve).finite();
        match step {
            None => Sketch::new(&pair, self.lowest, self.highest),
            Some(step) => Sketch::on_grid(&pair, step, self.lowest, self.highest),
        }
    }

    fn on_grid(&self, direction: Direction, side: Side, step: f64) -> LossDistribution {
        let mut pair = Pair::new(&self.table, direction, self.part.sampling.probability(), self.part.curve);
        if side == Side::Lower {
            pair = pair.lower();
        }
        let mut loss = LossDistribution::on_grid(&pair, step, self.lowest, self.highest);
        if side == Side::Upper {
            loss.infinite += self.beyond;
        }
        loss
    }
}

/// All kinds of rounds, in one direction and for one side of the bounds.
pub(crate) struct Prepared<'a> {
    kinds: Vec<Kind<'a>>,
    tilts: Tilts,
    grid: Grid,
    direction: Direction,
    side: Side,
    /// Total number of rounds of all kinds, `T`.
    rounds: f64,
    cut: f64,
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(
        parts: &[Part<'a>],
        grid: Grid,
        direction: Direction,
        side: Side,
        delta: f64,
        cut: f64,
    ) -> Result<Self, PrivacyError> {
        let rounds = parts.iter().map(|part| part.rounds).sum::<u64>() as f64;
        let cut = (cut * delta / rounds).max(1e-280);
        let of_side =
            |side: Side| parts.iter().map(|&part| Kind::new(part, direction, side, cut)).collect::<Vec<_>>();
        let tilts = |kinds: &[Kind<'_>]| {
            // The finest possible step.
            let step = longest_reach(kinds) / MAX_POINTS;
            tilts(kinds, direction, (kinds.len() > 1).then_some(step))
        };
        let kinds = of_side(side);
        // A lower bound has jumps, which a sketch takes for losses. The tilt is therefore found from the upper bound.
        let tilts = if side == Side::Lower { tilts(&of_side(Side::Upper)) } else { tilts(&kinds) };
        Ok(Self { kinds, tilts, grid, direction, side, rounds, cut })
    }

    /// The composed loss around the `ε` that belongs to a `δ`.
    ///
    /// The tilt from the sketch nearly always suits. If it does not, for example because of a heavy tail, weaker tilts are tried. If
    /// none suits, `ε` is approached from above: with a tilt for too large an `ε`, the rounding of the transform hides the true one,
    /// but yields a smaller upper bound than before. If a tilt yields no bound at all, the true `ε` is found by bisection.
    pub(crate) fn around_delta(&self, delta: f64) -> Result<Composed, PrivacyError> {
        if self.is_out_of_reach(delta) {
            return Err(PrivacyError::EpsilonOutOfReach { most: MAX_EPSILON });
        }
        let theta = self.tilts.theta_for(delta.ln());
        for share in TILT_SHARES {
            let composed = self.view(share * theta, delta.ln(), Resolution::Fine);
            if !composed.resolves(delta) {
                continue;
            }
            // With a heavy tail, ε may be far below the middle of the window, and the step too coarse for it.
            let epsilon = composed.epsilon_upper(delta)?;
            if self.is_fine(&composed, epsilon, delta) {
                return Ok(composed);
            }
            return Ok(self.view(self.tilts.theta_at(epsilon), delta.ln(), Resolution::Fine));
        }
        let (mut epsilon, _) = self.tilts.quantile(delta.ln());
        let (mut below, mut above) = (0.0, f64::INFINITY);
        for _ in 0..MAX_TILTS {
            let rough = self.around_epsilon(epsilon, Resolution::Rough);
            // A window far above the true ε yields no bound at all.
            let found = rough.epsilon_upper(delta).unwrap_or(f64::INFINITY);
            let is_hidden = found > 0.0 && rough.delta_upper(found) < 0.1 * delta;
            if is_hidden || found >= above {
                if is_hidden {
                    above = above.min(found).min(epsilon)
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
            if moved <= 0.05 * self.tilts.reach(self.tilts.theta_at(epsilon), 1.0).0 {
                break;
            }
        }
        Ok(self.view(self.tilts.theta_at(epsilon), delta.ln(), Resolution::Fine))
    }

    /// Whether the step of the grid is small enough for an `ε`, or was given by the caller.
    pub(crate) fn is_fine(&self, composed: &Composed, epsilon: f64, delta: f64) -> bool {
        let enough = step_within(1.3 * GAP * epsilon, self.rounds, delta.ln());
        epsilon == 0.0 || enough >= composed.step() || self.grid != Grid::Auto
    }

    /// Whether a transform is unnecessary, because every `ε` up to the largest one belongs to a larger `δ`.
    pub(crate) fn is_out_of_reach(&self, delta: f64) -> bool {
        if self.side == Side::Lower {
            return false;
        }
        let never = |kind: &Kind<'_>| kind.part.rounds as f64 * (-kind.infinite().min(1.0)).ln_1p();
        let infinite = -self.kinds.iter().map(never).sum::<f64>().exp_m1();
        // With half of the mass at least 1 above ε, δ is at least ½·(1 − 1/e).
        infinite >= delta
            || (delta < 0.3 && self.tilts.is_mostly_above(1.2 * MAX_EPSILON))
            || self.guess_delta(MAX_EPSILON) > ESTIMATE * delta
    }

    /// An estimate of the `δ` that belongs to an `ε`.
    pub(crate) fn guess_delta(&self, epsilon: f64) -> f64 {
        self.tilts.log_delta(epsilon).min(0.0).exp()
    }

    pub(crate) fn around_epsilon(&self, epsilon: f64, resolution: Resolution) -> Composed {
        let theta = self.tilts.theta_at(epsilon);
        let log_delta = self.tilts.moments(theta).log_moment - theta * epsilon;
        self.view(theta, log_delta.min(0.0), resolution)
    }

    /// The composed loss around the tilted mean, with all losses that matter for a `δ` of `e^{log_delta}`.
    fn view(&self, theta: f64, log_delta: f64, resolution: Resolution) -> Composed {
        let mut window = self.tilts.window(theta, log_delta);
        let mut step = self.step(window.below + window.above, resolution);
        if resolution == Resolution::Fine && self.grid == Grid::Auto {
            let epsilon = self.tilts.moments(theta).mean;
            let least = (window.below + window.above).max(longest_reach(&self.kinds)) / WINDOWS.1;
            step = step.min(step_within(GAP * epsilon, self.rounds, log_delta).max(least));
        }
        // The step of a single kind suits its own loss. A common step may be coarse for some kinds, whose losses then spread
        // noticeably.
        if self.kinds.len() > 1 {
            window = tilts(&self.kinds, self.direction, Some(step)).window(theta, log_delta);
            step = step.max((window.below + window.above) / MAX_POINTS);
        }
        let rounds =
            self.kinds.iter().map(|kind| (kind.on_grid(self.direction, self.side, step), kind.part.rounds));
        let mut composed = Composed::new(rounds, step, window);
        composed.cut_off = 2.0 * self.rounds * self.cut;
        composed
    }

    /// The loss of one round of each kind on a grid.
    pub(crate) fn round_losses(&self, step: f64) -> Vec<LossDistribution> {
        self.kinds.iter().map(|kind| kind.on_grid(self.direction, self.side, step)).collect()
    }

    /// Length of the interval of a round's losses, for the kind with the longest one.
    pub(crate) fn reach(&self) -> f64 {
        longest_reach(&self.kinds)
    }

    fn step(&self, window: f64, resolution: Resolution) -> f64 {
        let reach = longest_reach(&self.kinds);
        let least = window.max(reach) / MAX_POINTS;
        // The step must resolve the spread of one round. It must also keep T·h²/12, by which connecting the dots moves the sum, within
        // the window.
        let showing = |resolution: Resolution| {
            let (points, of_round) = resolution.points(self.rounds);
            let points = points.max((points * self.rounds).sqrt());
            let shift = 0.5 * (window / self.rounds).sqrt() * (ROUGH / points).sqrt();
            (window / points).min(shift).max(reach / points.max(of_round)).max(least)
        };
        match self.grid {
            Grid::Step(step) if resolution == Resolution::Fine => {
                step.min(showing(Resolution::Rough)).max(least)
            }
            _ => showing(resolution),
        }
    }
}

fn longest_reach(kinds: &[Kind<'_>]) -> f64 {
    kinds.iter().map(Kind::reach).fold(0.0, f64::max)
}

fn tilts(kinds: &[Kind<'_>], direction: Direction, step: Option<f64>) -> Tilts {
    let sketches = kinds.iter().map(|kind| (kind.part.rounds as f64, kind.sketch(direction, step)));
    let highest = kinds.iter().map(|kind| kind.highest).fold(0.0, f64::max);
    Tilts::new(sketches.collect(), highest)
}
