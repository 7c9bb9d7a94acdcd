//! Composition: what `T` rounds give away together.
//!
//! The losses of independent rounds add up, so their distributions are convolved: masses of one round on a grid
//! ([`crate::loss`]), tilted by `e^{θl}`, folded into a window, raised to the power `T` by FFT, and tilted back:
//!
//! ```text
//! δ_T(ε) = E[(1 − e^{ε − S})₊],     S = l_1 + … + l_T
//! ```
//!
//! The tilt moves the middle of the distribution to the `ε` in question, where the transform is exact relative to what is
//! there; without it, a `δ` of 1e-15 would drown in rounding. Everything that is left out is counted as given away: what
//! lies beyond the grid and above the window (Chernoff's bound), what is infinite, and the rounding of the transform. So
//! the upper bound is one.
//!
//! The lower bound shows how far off it can be. Connecting the dots moves a loss by `Y`, less than a step `h`, with
//! `E[e^{−Y}] = 1` given the loss; by Hoeffding's lemma `0 ≤ E[Y] ≤ h²/8`, and all `T` together exceed
//! `T·h²/8 + h·√(T·ln(1/η)/2)` with a chance of at most `η`.
//!
//! # Citations
//! Koskela, Jälkö, Honkela, *Computing tight differential privacy guarantees using FFT*, AISTATS 2020. Gopi, Lee, Wutschitz,
//! *Numerical composition of differential privacy*, NeurIPS 2021.

use crate::error::{PrivacyError, require, require_delta, require_epsilon, require_rounds};
use crate::fourier::{self, fast_length};
use crate::law::{Law, Side};
use crate::loss::{LossDistribution, Sketch, log_sum_exp};
use crate::sampling::{Curve, Direction, Pair, Sampling, amplified, diluted, value};
use crate::solve::{first_at_most, least_at};
use crate::table::Table;

/// No `ε` beyond this is looked for.
pub const MOST_EPSILON: f64 = 1e9;
/// Points in a window, unless a step is given.
const WINDOW: f64 = (1_u32 << 18) as f64;
/// Points in a round's loss, if a window has fewer.
const ROUND: f64 = (1_u32 << 16) as f64;
/// Points in a window that only serves to find out where to look.
const ROUGH: f64 = (1_u32 << 12) as f64;
/// No `δ` below this is told from 0.
const LEAST_DELTA: f64 = 1e-200;
/// A grid or a window never has more points.
const MOST_POINTS: f64 = (1_u32 << 21) as f64;
/// What is cut off a round's loss, relative to `δ/T`.
const CUT: f64 = 1e-7;
/// `−ln` of what may lie above the window relative to `δ`, and below it under the tilted measure.
const BEYOND: f64 = 25.0;
/// A curve that is known less well than this has wrinkles.
pub(crate) const WRINKLED: f64 = 1e-9;
/// Steps of golden section with which a tilt is chosen.
const GOLDEN_STEPS: usize = 40;
/// Pieces in the table of a curve that is not smooth are not shorter than this, relative to their end.
const SHORTEST: f64 = 0.15;
/// So many tilts are tried at most.
const MOST_TILTS: usize = 30;
/// The share of `δ` that the lower bound spends on unlucky rounding.
const UNLUCKY: f64 = 1e-3;

/// A value that lies between two others.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Bounds {
    /// The truth is not below.
    pub lower: f64,
    /// The truth is not above: the one to state.
    pub upper: f64,
}

/// How finely the loss of a round is resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Grid {
    /// As finely as a quarter of a million points allow.
    #[default]
    Auto,
    /// In steps of this `ε`, or finer ones where a round's loss would not show in them.
    Step(f64),
}

/// `T` rounds with the same curve.
pub struct Composition<'a> {
    curve: &'a dyn Curve,
    sampling: Sampling,
    rounds: u64,
    grid: Grid,
}

impl<'a> Composition<'a> {
    /// `rounds` rounds with a curve, each with its own draw of who takes part.
    pub fn new(curve: &'a dyn Curve, sampling: Sampling, rounds: u64) -> Result<Self, PrivacyError> {
        sampling.check()?;
        require_rounds(rounds)?;
        Ok(Self { curve, sampling, rounds, grid: Grid::Auto })
    }

    /// The same on a given grid.
    pub fn on_grid(self, grid: Grid) -> Result<Self, PrivacyError> {
        if let Grid::Step(step) = grid {
            require((1e-12..=1.0).contains(&step), "the grid's step", "between 1e-12 and 1", step)?;
        }
        Ok(Self { grid, ..self })
    }

    /// The least `ε` for a `δ`.
    pub fn epsilon(&self, delta: f64) -> Result<Bounds, PrivacyError> {
        self.bounds_of_epsilon(delta, true)
    }

    /// The upper bound alone of [`Composition::epsilon`], in half the time.
    pub fn epsilon_upper(&self, delta: f64) -> Result<f64, PrivacyError> {
        Ok(self.bounds_of_epsilon(delta, false)?.upper)
    }

    fn bounds_of_epsilon(&self, delta: f64, wants_lower: bool) -> Result<Bounds, PrivacyError> {
        require_delta(delta)?;
        let least = at_least_once(self.sampling.chance() * self.curve.infinite(), self.rounds);
        if least >= delta {
            return Err(PrivacyError::DeltaOutOfReach { delta, least });
        }
        self.worst(|direction| self.epsilon_of(direction, delta, wants_lower))
    }

    /// The least `δ` for an `ε`.
    pub fn delta(&self, epsilon: f64) -> Result<Bounds, PrivacyError> {
        require_epsilon(epsilon)?;
        self.worst(|direction| self.delta_of(direction, epsilon))
    }

    /// Both bounds of the worse direction.
    fn worst(
        &self,
        bounds: impl Fn(Direction) -> Result<Bounds, PrivacyError>,
    ) -> Result<Bounds, PrivacyError> {
        let mut worst = Bounds { lower: 0.0, upper: 0.0 };
        for &direction in self.sampling.directions() {
            let Bounds { lower, upper } = bounds(direction)?;
            worst = Bounds { lower: worst.lower.max(lower), upper: worst.upper.max(upper) };
        }
        Ok(Bounds { lower: worst.lower.min(worst.upper), upper: worst.upper })
    }

    /// A single round that is the same as all rounds together, if there is one.
    fn as_one_round(&self) -> Option<Law> {
        if self.sampling.chance() < 1.0 { None } else { self.curve.composed(self.rounds) }
    }

    /// Without `wants_lower`, the lower bound is 0.
    fn epsilon_of(
        &self,
        direction: Direction,
        delta: f64,
        wants_lower: bool,
    ) -> Result<Bounds, PrivacyError> {
        let one_round = |curve: &dyn Curve, p: f64| {
            let at = |side| one_round_epsilon(curve, direction, p, side, delta);
            Ok(Bounds { lower: at(Side::Lower)?, upper: at(Side::Upper)? })
        };
        if let Some(law) = self.as_one_round() {
            return one_round(&law, 1.0);
        }
        if self.rounds == 1 {
            return one_round(self.curve, self.sampling.chance());
        }
        // Total variation at most adds up.
        let chance = self.sampling.chance();
        let apart = chance * (self.curve.upper(0.0) * (1.0 + self.curve.tolerance()) + self.curve.infinite());
        if self.rounds as f64 * apart <= delta {
            return Ok(Bounds { lower: 0.0, upper: 0.0 });
        }
        let composed = Prepared::new(self, direction, Side::Upper, delta)?.around_delta(delta)?;
        let upper = composed.epsilon_upper(delta)?;
        let lower = if !wants_lower {
            0.0
        } else if self.curve.is_rounded() {
            Prepared::new(self, direction, Side::Lower, delta)?.around_delta(delta)?.epsilon_lower(delta)
        } else {
            composed.epsilon_lower(delta)
        };
        Ok(Bounds { lower, upper })
    }

    fn delta_of(&self, direction: Direction, epsilon: f64) -> Result<Bounds, PrivacyError> {
        let one_round = |curve: &dyn Curve, p: f64| {
            let at = |side| one_round_delta(curve, direction, p, side, epsilon).min(1.0);
            Ok(Bounds { lower: at(Side::Lower), upper: at(Side::Upper) })
        };
        if let Some(law) = self.as_one_round() {
            return one_round(&law, 1.0);
        }
        if self.rounds == 1 {
            return one_round(self.curve, self.sampling.chance());
        }
        let composed = self.around_epsilon(direction, Side::Upper, epsilon)?;
        let upper = composed.delta_upper(epsilon);
        let lower = if self.curve.is_rounded() {
            self.around_epsilon(direction, Side::Lower, epsilon)?.delta_lower(epsilon)
        } else {
            composed.delta_lower(epsilon)
        };
        Ok(Bounds { lower, upper })
    }

    /// What is cut off a round's loss has to be small beside a `δ` that is not known yet.
    fn around_epsilon(
        &self,
        direction: Direction,
        side: Side,
        epsilon: f64,
    ) -> Result<Composed, PrivacyError> {
        let mut guess = 1e-9;
        loop {
            let prepared = Prepared::new(self, direction, side, guess)?;
            let rough = prepared.around_epsilon(epsilon, ROUGH);
            let estimate = rough.delta_upper(epsilon).max(LEAST_DELTA);
            if estimate >= guess || guess <= LEAST_DELTA {
                return Ok(prepared.around_epsilon(epsilon, WINDOW));
            }
            guess = estimate.min(1e-3 * guess).max(LEAST_DELTA);
        }
    }
}

/// `1 − (1 − p)^T`.
fn at_least_once(chance: f64, rounds: u64) -> f64 {
    -(rounds as f64 * (-chance.min(1.0)).ln_1p()).exp_m1()
}

/// `D(e^ε)` of one round.
fn one_round_delta(curve: &dyn Curve, direction: Direction, p: f64, side: Side, epsilon: f64) -> f64 {
    let infinite = if side == Side::Upper { p * curve.infinite() } else { 0.0 };
    infinite
        + match direction {
            Direction::Replace | Direction::Remove => p * value(curve, amplified(epsilon, p), side),
            Direction::Add => {
                let y = 1.0 + (-epsilon).exp_m1() / p;
                if y <= 0.0 { 0.0 } else { epsilon.exp() * p * y * value(curve, -y.ln(), side) }
            }
        }
}

fn one_round_epsilon(
    curve: &dyn Curve,
    direction: Direction,
    p: f64,
    side: Side,
    delta: f64,
) -> Result<f64, PrivacyError> {
    let infinite = if side == Side::Upper { p * curve.infinite() } else { 0.0 };
    let epsilon = if direction == Direction::Add {
        let at = |epsilon: f64| one_round_delta(curve, direction, p, side, epsilon);
        first_at_most(at, delta, 1e-3, MOST_EPSILON, 1e-12)
    } else {
        let target = (delta - infinite) / p;
        let at = |epsilon: f64| value(curve, epsilon, side);
        first_at_most(at, target, 1e-3, MOST_EPSILON, 1e-12).map(|epsilon| diluted(epsilon, p))
    };
    epsilon.ok_or(PrivacyError::EpsilonOutOfReach { most: MOST_EPSILON })
}

/// The curve of a round tabulated, with a sketch of its loss.
struct Prepared<'a> {
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
    fn new(
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
    fn around_delta(&self, delta: f64) -> Result<Composed, PrivacyError> {
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

    fn around_epsilon(&self, epsilon: f64, points: f64) -> Composed {
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

/// Which part of the sum's distribution is looked at, and under which measure.
#[derive(Clone, Copy)]
struct Window {
    theta: f64,
    /// The tilt with which Chernoff's bound is tightest above the window.
    top_theta: f64,
    /// How far the window reaches below and above the tilted mean.
    below: f64,
    above: f64,
}

/// The sum of all losses, on a window of a grid, under a tilted measure.
struct Composed {
    step: f64,
    start: i64,
    rounds: f64,
    theta: f64,
    /// `T·K(θ) − θ·reference`.
    log_scale: f64,
    reference: f64,
    /// `Σ_{i≥j} f_i e^{−θ(S_i − reference)}`.
    above: Vec<f64>,
    /// `Σ_{i≥j} f_i e^{−θ(S_i − reference) − (S_i − S_j)}`.
    above_other: Vec<f64>,
    /// The first point whose sums could be formed.
    sound_from: usize,
    /// How far a tilted mass may be off.
    rounding: f64,
    /// What is infinite or above the window.
    beyond: f64,
    /// What was cut off all rounds' losses.
    cut_off: f64,
}

impl Composed {
    fn new(round: &LossDistribution, rounds: u64, window: Window) -> Self {
        let (step, theta) = (round.step, window.theta);
        let count = fast_length(((window.below + window.above) / step).ceil() as usize + 2);
        let log_moment = log_moment(round, theta);
        let mut tilted = vec![0.0; count];
        let (mut spread, mut mean) = (0.0, 0.0);
        for (index, &mass) in (round.first..).zip(&round.masses) {
            if mass > 0.0 {
                let weight = mass * (theta * step * index as f64 - log_moment).exp();
                tilted[index.rem_euclid(count as i64) as usize] += weight;
                spread += weight * weight;
                mean += weight * index as f64;
            }
        }
        let start = (rounds as f64 * mean - window.below / step).floor() as i64;
        let peak = power_of_transform(&mut tilted, rounds);
        tilted.rotate_left(start.rem_euclid(count as i64) as usize);
        let size: f64 = tilted.iter().map(|f| f * f).sum();
        // Rounding errors of a transform are as good as independent: no point gets more than a few times its share.
        let digits = 8.0 * f64::EPSILON * (count as f64).log2() / (count as f64).sqrt();
        let rounding = digits * (rounds as f64 * peak * spread.sqrt().min(1.0) + size.sqrt());
        let top = step * (start + count as i64) as f64;
        let top_moment = self::log_moment(round, window.top_theta);
        let above_window = (rounds as f64 * top_moment - window.top_theta * top).exp();
        let reference = step * (rounds as f64 * mean).round();
        let mut composed = Self {
            step,
            start,
            rounds: rounds as f64,
            theta,
            log_scale: rounds as f64 * log_moment - theta * reference,
            reference,
            above: Vec::new(),
            above_other: Vec::new(),
            sound_from: 0,
            rounding,
            beyond: at_least_once(round.infinite, rounds) + above_window,
            cut_off: 0.0,
        };
        composed.add_up(&tilted);
        composed
    }

    fn loss(&self, point: usize) -> f64 {
        self.step * (self.start + point as i64) as f64
    }

    fn add_up(&mut self, tilted: &[f64]) {
        self.above = vec![0.0; tilted.len() + 1];
        self.above_other = vec![0.0; tilted.len() + 1];
        // Factors from one point to the next, set right every so often: an exponential for each point takes longer.
        const BLOCK: usize = 64;
        let (ratio, other_ratio) = ((self.theta * self.step).exp(), (-self.step).exp());
        let mut untilt = 0.0;
        for (done, point) in (0..tilted.len()).rev().enumerate() {
            if done.is_multiple_of(BLOCK) {
                let distance = self.loss(point) - self.reference;
                untilt = (-self.theta * distance).exp();
                if untilt.is_nan() || untilt > 1e200 {
                    self.sound_from = point + 1;
                    break;
                }
            }
            let mass = tilted[point].max(0.0) * untilt;
            self.above[point] = self.above[point + 1] + mass;
            self.above_other[point] = self.above_other[point + 1] * other_ratio + mass;
            untilt *= ratio;
        }
    }

    /// `δ(ε)` by what is in the window, and how far rounding may have moved it; `None` below the window.
    fn in_window(&self, epsilon: f64) -> Option<(f64, f64)> {
        let point = ((epsilon / self.step).floor() as i64 + 1 - self.start).max(0) as usize;
        if point < self.sound_from {
            return None;
        }
        let point = point.min(self.above.len() - 1);
        let distance = epsilon - self.reference;
        // The exponent is between −step and 0: a larger one could overflow where the sum is too small for a double.
        let kept = self.above[point] - (epsilon - self.loss(point)).min(0.0).exp() * self.above_other[point];
        let scale = self.log_scale.exp();
        let points = (1.0 / -(-self.theta * self.step).exp_m1()).min(self.above.len() as f64);
        let error = self.rounding * points * (-self.theta * distance).exp();
        Some((scale * kept.max(0.0), scale * error))
    }

    /// Never too small.
    fn delta_upper(&self, epsilon: f64) -> f64 {
        let Some((kept, error)) = self.in_window(epsilon) else { return 1.0 };
        (kept + error + self.beyond).min(1.0)
    }

    /// Never too large, but for the rounding of losses to the grid.
    fn delta_before_rounding(&self, epsilon: f64) -> f64 {
        let Some((kept, error)) = self.in_window(epsilon) else { return 0.0 };
        let folded = (self.log_scale - self.theta * (epsilon - self.reference) - BEYOND).exp();
        (kept - error - self.beyond - self.cut_off - folded).max(0.0)
    }

    /// What rounding to the grid can add to the sum of all losses, but with a chance of `η`.
    fn rounding_of_losses(&self, unlucky: f64) -> f64 {
        let (h, rounds) = (self.step, self.rounds);
        rounds * h * h / 8.0 + h * (0.5 * rounds * (1.0 / unlucky).ln()).sqrt()
    }

    /// Never too large.
    fn delta_lower(&self, epsilon: f64) -> f64 {
        let unlucky = (UNLUCKY * self.delta_upper(epsilon)).max(LEAST_DELTA);
        (self.delta_before_rounding(epsilon + self.rounding_of_losses(unlucky)) - unlucky).max(0.0)
    }

    fn epsilon_upper(&self, delta: f64) -> Result<f64, PrivacyError> {
        let guess = self.reference.max(self.step);
        let epsilon = first_at_most(|epsilon| self.delta_upper(epsilon), delta, guess, MOST_EPSILON, 1e-10);
        epsilon.ok_or(PrivacyError::EpsilonOutOfReach { most: MOST_EPSILON })
    }

    fn epsilon_lower(&self, delta: f64) -> f64 {
        let unlucky = UNLUCKY * delta;
        let is_above = |epsilon: f64| self.delta_before_rounding(epsilon) > delta + unlucky;
        // From the upper bound downwards, as far as the window is sound.
        let mut upper = self.epsilon_upper(delta).unwrap_or(0.0);
        let mut width = self.rounding_of_losses(unlucky).max(1e-6 * upper);
        let mut lower = upper;
        while !is_above(lower) {
            if lower <= 0.0 {
                return 0.0;
            }
            (upper, lower) = (lower, (lower - width).max(0.0));
            width *= 2.0;
        }
        for _ in 0..60 {
            let middle = 0.5 * (lower + upper);
            if is_above(middle) { lower = middle } else { upper = middle }
        }
        (lower - self.rounding_of_losses(unlucky)).max(0.0)
    }
}

/// `ln Σ m e^{θl}` of what is finite.
fn log_moment(round: &LossDistribution, theta: f64) -> f64 {
    let terms = (round.first..).zip(&round.masses).filter(|&(_, &mass)| mass > 0.0);
    let exponent = |index: i64| theta * round.step * index as f64;
    let sum: f64 = terms.clone().map(|(index, mass)| mass * exponent(index).exp()).sum();
    if sum.is_finite() && sum > 0.0 {
        return sum.ln();
    }
    log_sum_exp(terms.map(|(index, mass)| mass.ln() + exponent(index)))
}

/// Replaces masses by their cyclic convolution with themselves, `rounds` times. Returns the mean magnitude of the result's
/// transform, which no mass of the result exceeds.
fn power_of_transform(masses: &mut Vec<f64>, rounds: u64) -> f64 {
    let mut spectrum = fourier::forward(masses);
    let mut magnitudes = 0.0;
    for value in &mut spectrum {
        *value = fourier::power(*value, rounds);
        magnitudes += 2.0 * value.norm_sqr().sqrt();
    }
    let count = masses.len();
    *masses = fourier::inverse(spectrum, count);
    magnitudes / count as f64
}
