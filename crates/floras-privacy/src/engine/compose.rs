//! Composition: the privacy loss of `T` rounds together.
//!
//! The losses of independent rounds add up, so their distributions are convolved: masses of one round on a grid
//! ([`crate::engine::loss`]), tilted by `e^{θl}`, folded into a window, raised to the power `T` by FFT, and tilted back:
//!
//! ```text
//! δ_T(ε) = E[(1 − e^{ε − S})₊],     S = l_1 + … + l_T
//! ```
//!
//! The tilt moves the bulk of the distribution to the `ε` of interest. There the rounding error of the transform is small relative to
//! the masses; without a tilt, it would exceed a `δ` of 1e-15. Everything that is left out counts as leaked: losses beyond the grid,
//! losses above the window (Chernoff's bound), infinite losses, and the rounding error of the transform. So the result is a valid
//! upper bound.
//!
//! Rounds may be of several kinds, each with its own curve and probability of taking part: `T_i` rounds of kind `i`. Their losses are
//! independent too. On one common grid, the powers of the transforms are multiplied, and the masses that are left out are added. The
//! number of rounds of each kind must not depend on anyone's data.
//!
//! The lower bound shows how far the upper bound can be from the truth. Connecting the dots moves a loss by `Y`, less than a step
//! `h`, with `E[e^{−Y}] = 1` given the loss. By Hoeffding's lemma `0 ≤ E[Y] ≤ h²/8`. The moves of all `T` rounds together exceed
//! `T·h²/8 + h·√(T·ln(1/η)/2)` with probability at most `η`, for rounds of any kinds.
//!
//! # Citations
//! Koskela, Jälkö, Honkela, *Computing tight differential privacy guarantees using FFT*, AISTATS 2020. Gopi, Lee, Wutschitz,
//! *Numerical composition of differential privacy*, NeurIPS 2021.

use crate::engine::distribution::{MuDistribution, Side};
use crate::engine::prepared::{CUT, Prepared, Resolution};
use crate::engine::sampling::{Curve, Direction, Sampling, amplified, diluted, value};
use crate::engine::window::{Composed, MIN_DELTA};
use crate::error::{PrivacyError, require, require_composed, require_delta, require_epsilon, require_rounds};
use crate::numerics::solve::{first_at_most, first_at_most_from};

/// The largest `ε` of every search. In one round, a loss above it counts as infinite.
pub const MAX_EPSILON: f64 = 1e5;
/// A curve with a larger tolerance may deviate from convexity by more than rounding.
pub(crate) const CONVEX_TOLERANCE: f64 = 1e-9;
/// Shares of `δ` for which rare, large losses may count as infinite, in the order in which they are tried.
const HEAVY_TAIL_CUTS: [f64; 3] = [1e-3, 0.02, 0.2];

/// A lower and an upper bound on a value.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Bounds {
    /// The true value is at least this.
    pub lower: f64,
    /// The true value is at most this: the bound to state.
    pub upper: f64,
}

/// Resolution of a round's loss.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Grid {
    /// Chosen for the number of rounds: 2¹⁶ to 2¹⁸ points.
    #[default]
    Auto,
    /// Steps of this `ε`, or finer steps if they would not resolve the loss of a round.
    Step(f64),
}

/// Rounds of one kind.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// The curve of a round in which the client certainly takes part.
    pub curve: &'a dyn Curve,
    /// How clients are sampled, independently in each round.
    pub sampling: Sampling,
    /// Number of rounds of this kind, `T_i`, from 1 to 1e9.
    pub rounds: u64,
}

/// `T` rounds, of one kind or of several.
///
/// ```
/// use floras_privacy::{Composition, MuDistribution, Part, Sampling, gaussian};
///
/// // Gaussian mechanisms compose to one with the root of the sum of squares: 4·0.3² + 9·0.1².
/// let (loud, quiet) = (MuDistribution::Constant(0.3), MuDistribution::Constant(0.1));
/// let sampling = Sampling::Everyone;
/// let composition = Composition::mixed(&[
///     Part { curve: &loud, sampling, rounds: 4 },
///     Part { curve: &quiet, sampling, rounds: 9 },
/// ])?;
/// let exact = gaussian::epsilon(1e-5, 0.45_f64.sqrt())?;
/// assert!((composition.epsilon_upper(1e-5)? / exact - 1.0).abs() < 1e-9);
/// # Ok::<(), floras_privacy::PrivacyError>(())
/// ```
pub struct Composition<'a> {
    pub(crate) parts: Vec<Part<'a>>,
    pub(crate) directions: &'static [Direction],
    grid: Grid,
}

impl<'a> Composition<'a> {
    /// `rounds` rounds with a curve; clients are sampled independently in each round.
    pub fn new(curve: &'a dyn Curve, sampling: Sampling, rounds: u64) -> Result<Self, PrivacyError> {
        Self::mixed(&[Part { curve, sampling, rounds }])
    }

    /// Rounds of several kinds, in any order. Either all of them have replace-one neighbours, or all add-or-remove ones.
    pub fn mixed(parts: &[Part<'a>]) -> Result<Self, PrivacyError> {
        Self::checked(parts, require_rounds)
    }

    /// Rounds of several kinds, whose numbers count every part of a round: at most [`MAX_COMPOSED`](crate::error::MAX_COMPOSED).
    pub(crate) fn of_parts(parts: &[Part<'a>]) -> Result<Self, PrivacyError> {
        Self::checked(parts, require_composed)
    }

    fn checked(parts: &[Part<'a>], check: Check) -> Result<Self, PrivacyError> {
        let directions = common_directions(parts.iter().map(|part| (part.sampling, part.rounds)), check)?;
        Ok(Self { parts: parts.to_vec(), directions, grid: Grid::Auto })
    }

    /// The same composition on a given grid, whose step must be between 1e-12 and 1.
    pub fn on_grid(self, grid: Grid) -> Result<Self, PrivacyError> {
        if let Grid::Step(step) = grid {
            require((1e-12..=1.0).contains(&step), "the grid's step", "between 1e-12 and 1", step)?;
        }
        Ok(Self { grid, ..self })
    }

    /// Bounds on the smallest `ε` at `delta`.
    pub fn epsilon(&self, delta: f64) -> Result<Bounds, PrivacyError> {
        let upper = self.epsilon_upper(delta)?;
        Ok(Bounds { lower: self.epsilon_lower(delta)?.min(upper), upper })
    }

    /// The upper bound of [`epsilon`](Self::epsilon) only, in about half the time.
    pub fn epsilon_upper(&self, delta: f64) -> Result<f64, PrivacyError> {
        require_delta(delta)?;
        let least = at_least_once(&self.parts);
        if least >= delta {
            return Err(PrivacyError::DeltaOutOfReach { delta, least });
        }
        self.largest(|direction| self.epsilon_of(direction, Side::Upper, delta))
    }

    /// The lower bound of [`epsilon`](Self::epsilon) only: a pair of neighbours exists that has at least this `ε`.
    pub fn epsilon_lower(&self, delta: f64) -> Result<f64, PrivacyError> {
        require_delta(delta)?;
        self.largest(|direction| self.epsilon_of(direction.realised(), Side::Lower, delta))
    }

    /// Bounds on the smallest `δ` at `epsilon`.
    pub fn delta(&self, epsilon: f64) -> Result<Bounds, PrivacyError> {
        let upper = self.delta_upper(epsilon)?;
        let lower = self.largest(|direction| self.delta_of(direction.realised(), Side::Lower, epsilon))?;
        Ok(Bounds { lower: lower.min(upper), upper })
    }

    /// The upper bound of [`delta`](Self::delta) only, which takes less time.
    pub fn delta_upper(&self, epsilon: f64) -> Result<f64, PrivacyError> {
        require_epsilon(epsilon)?;
        self.largest(|direction| self.delta_of(direction, Side::Upper, epsilon))
    }

    /// The largest value of all directions.
    fn largest(&self, of: impl Fn(Direction) -> Result<f64, PrivacyError>) -> Result<f64, PrivacyError> {
        self.directions.iter().try_fold(0.0, |worst: f64, &direction| Ok(worst.max(of(direction)?)))
    }

    /// Evaluates one round that is equivalent to all rounds together, with the probability of taking part in it. `None` if there is
    /// no such round.
    fn with_one_round<R>(&self, use_it: impl FnOnce(&dyn Curve, f64) -> R) -> Option<R> {
        if let Some(distribution) = self.as_one_distribution() {
            return Some(use_it(&distribution, 1.0));
        }
        match self.parts[..] {
            [Part { curve, sampling, rounds: 1 }] => Some(use_it(curve, sampling.probability())),
            _ => None,
        }
    }

    /// The distribution of `μ` of all rounds together, if every client takes part and a closed form exists. If `μ` of every kind is
    /// constant, it is `√(Σ μ²)`.
    pub(crate) fn as_one_distribution(&self) -> Option<MuDistribution> {
        let of_part = |part: &Part<'_>| {
            if part.sampling.probability() < 1.0 { None } else { part.curve.composed(part.rounds) }
        };
        if let [part] = &self.parts[..] {
            return of_part(part);
        }
        let square = |part: &Part<'_>| match of_part(part) {
            Some(MuDistribution::Constant(mu)) => Some(mu * mu),
            _ => None,
        };
        let squares: f64 = self.parts.iter().map(square).sum::<Option<f64>>()?;
        Some(MuDistribution::Constant(squares.sqrt()))
    }

    /// An upper bound on the total variation of all rounds: the sum over the rounds.
    fn total_variation(&self) -> f64 {
        let of_part = |Part { curve, sampling, rounds }: &Part<'_>| {
            let apart =
                sampling.probability() * (curve.upper(0.0) * (1.0 + curve.tolerance()) + curve.infinite());
            *rounds as f64 * apart
        };
        self.parts.iter().map(of_part).sum()
    }

    pub(crate) fn prepared(
        &self,
        direction: Direction,
        side: Side,
        delta: f64,
    ) -> Result<Prepared<'a>, PrivacyError> {
        Prepared::new(&self.parts, self.grid, direction, side, delta, CUT)
    }

    fn epsilon_of(&self, direction: Direction, side: Side, delta: f64) -> Result<f64, PrivacyError> {
        if let Some(epsilon) =
            self.with_one_round(|curve, p| one_round_epsilon(curve, direction, p, side, delta))
        {
            return epsilon;
        }
        if self.total_variation() <= delta {
            return Ok(0.0);
        }
        // All rounds together leak at least as much as one of them.
        if side == Side::Upper && self.parts.iter().any(|part| is_beyond_reach(part, direction, delta)) {
            return Err(PrivacyError::EpsilonOutOfReach { most: MAX_EPSILON });
        }
        self.composed_epsilon(direction, side, delta)
    }

    /// A bound on `ε`. Rare, large losses can spoil the transform or take up its grid. Then more of them count as infinite, which
    /// costs less of `δ` than the rounding would.
    fn composed_epsilon(&self, direction: Direction, side: Side, delta: f64) -> Result<f64, PrivacyError> {
        let mut best: Option<f64> = None;
        for cut in [CUT].into_iter().chain(HEAVY_TAIL_CUTS) {
            let prepared = Prepared::new(&self.parts, self.grid, direction, side, delta, cut)?;
            if prepared.is_out_of_reach(delta) {
                break;
            }
            // If a transform yields no bound, one with fewer large losses may.
            let Ok(composed) = prepared.around_delta(delta) else { continue };
            best = match side {
                Side::Upper => best.into_iter().chain(composed.epsilon_upper(delta)).reduce(f64::min),
                Side::Lower => best.into_iter().chain([composed.epsilon_lower(delta)]).reduce(f64::max),
            };
            if composed.resolves(delta) && prepared.is_fine(&composed, best.unwrap_or(0.0), delta) {
                break;
            }
        }
        best.ok_or(PrivacyError::EpsilonOutOfReach { most: MAX_EPSILON })
    }

    fn delta_of(&self, direction: Direction, side: Side, epsilon: f64) -> Result<f64, PrivacyError> {
        if let Some(delta) =
            self.with_one_round(|curve, p| one_round_delta(curve, direction, p, side, epsilon).min(1.0))
        {
            return Ok(delta);
        }
        let composed = self.around_epsilon(direction, side, epsilon)?;
        Ok(match side {
            Side::Upper => composed.delta_upper(epsilon),
            Side::Lower => composed.delta_lower(epsilon),
        })
    }

    /// The probability that is cut off a round's loss must be small relative to `δ`, which is not known yet.
    fn around_epsilon(
        &self,
        direction: Direction,
        side: Side,
        epsilon: f64,
    ) -> Result<Composed, PrivacyError> {
        let mut guess = 1e-9;
        let mut prepared = self.prepared(direction, side, guess)?;
        let estimate = prepared.guess_delta(epsilon);
        if estimate < guess {
            guess = estimate.max(MIN_DELTA);
            prepared = self.prepared(direction, side, guess)?;
        }
        loop {
            let composed = prepared.around_epsilon(epsilon, Resolution::Fine);
            let found = composed.delta_upper(epsilon);
            // The cut-off probability is 1e-7 of the guess.
            if found >= 1e-3 * guess || guess <= MIN_DELTA {
                return Ok(composed);
            }
            guess = found.max(MIN_DELTA);
            prepared = self.prepared(direction, side, guess)?;
        }
    }
}

/// A check of a number of rounds.
type Check = fn(u64) -> Result<(), PrivacyError>;

/// The directions that all kinds of rounds share; an error if the rounds cannot be composed.
pub(crate) fn common_directions(
    kinds: impl Iterator<Item = (Sampling, u64)>,
    check: Check,
) -> Result<&'static [Direction], PrivacyError> {
    let (mut common, mut total) = (None, 0_u64);
    for (sampling, rounds) in kinds {
        sampling.check()?;
        check(rounds)?;
        total = total.saturating_add(rounds);
        let directions = sampling.directions();
        if *common.get_or_insert(directions) != directions {
            return Err(PrivacyError::MixedNeighbours);
        }
    }
    let common = common.ok_or(PrivacyError::NoRounds)?;
    check(total)?;
    Ok(common)
}

/// Probability of at least one infinite loss, `1 − Π (1 − p_i)^{T_i}`.
fn at_least_once(parts: &[Part<'_>]) -> f64 {
    let never = |Part { curve, sampling, rounds }: &Part<'_>| {
        *rounds as f64 * (-(sampling.probability() * curve.infinite()).min(1.0)).ln_1p()
    };
    -parts.iter().map(never).sum::<f64>().exp_m1()
}

/// `D(e^ε)` of one round.
pub(crate) fn one_round_delta(
    curve: &dyn Curve,
    direction: Direction,
    p: f64,
    side: Side,
    epsilon: f64,
) -> f64 {
    // With p = 1 all directions have the same curve, and `Add` would subtract large numbers.
    let direction = if p == 1.0 { Direction::Replace } else { direction };
    let infinite = if side == Side::Upper { p * curve.infinite() } else { 0.0 };
    infinite
        + match direction {
            Direction::Replace | Direction::Remove => p * value(curve, amplified(epsilon, p), side),
            Direction::Known => p * value(curve, epsilon, side),
            Direction::Add => {
                let y = 1.0 + (-epsilon).exp_m1() / p;
                if y <= 0.0 { 0.0 } else { epsilon.exp() * p * y * value(curve, -y.ln(), side) }
            }
        }
}

/// Whether one round alone exceeds a `δ` at the largest `ε`.
fn is_beyond_reach(part: &Part<'_>, direction: Direction, delta: f64) -> bool {
    one_round_delta(part.curve, direction, part.sampling.probability(), Side::Upper, MAX_EPSILON) > delta
}

fn one_round_epsilon(
    curve: &dyn Curve,
    direction: Direction,
    p: f64,
    side: Side,
    delta: f64,
) -> Result<f64, PrivacyError> {
    if one_round_delta(curve, direction, p, side, MAX_EPSILON) > delta {
        return Err(PrivacyError::EpsilonOutOfReach { most: MAX_EPSILON });
    }
    let infinite = if side == Side::Upper { p * curve.infinite() } else { 0.0 };
    let epsilon = if direction == Direction::Add && p < 1.0 {
        let at = |epsilon: f64| one_round_delta(curve, direction, p, side, epsilon);
        first_at_most(at, delta, 1e-3, MAX_EPSILON, 1e-12)
    } else {
        let target = (delta - infinite) / p;
        let at = |epsilon: f64| value(curve, epsilon, side);
        let simpler = |distribution: &MuDistribution| {
            first_at_most(|e| distribution.lower(e), target, 1e-3, MAX_EPSILON, 1e-3)
        };
        let epsilon = match curve.simpler().map(simpler) {
            // The root of the simpler curve is at most that of this curve.
            Some(start) => {
                first_at_most_from(at, target, 0.99 * start.unwrap_or(MAX_EPSILON), MAX_EPSILON, 1e-9)
            }
            None => first_at_most(at, target, 1e-3, MAX_EPSILON, 1e-12),
        };
        epsilon.map(|epsilon| if direction == Direction::Known { epsilon } else { diluted(epsilon, p) })
    };
    epsilon.ok_or(PrivacyError::EpsilonOutOfReach { most: MAX_EPSILON })
}
