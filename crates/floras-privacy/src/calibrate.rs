//! Calibration: finds a setting that meets `(ε, δ)` in a view, or reports why no setting does.
//!
//! | function | result |
//! |---|---|
//! | [`fewest_sequences`] | the smallest `N`: more unused sequences make more noise |
//! | [`least_noise`] | the `(N, c)` of the clipped projector with the least noise: with more sequences, each may be clipped harder |
//! | [`largest_clip`] | the largest clip norm `C` |
//! | [`most_rounds`] | the largest number of rounds `T` |
//! | [`quietest_masks`] | the masks with the least noise in the decoded sum |

use std::cell::{Cell, RefCell};

use floras_core::{ClipLevel, Masks, Receiver, Rounding, View};

use crate::account::Account;
use crate::engine::compose::{Composition, MAX_EPSILON};
use crate::engine::distribution::MuDistribution;
use crate::engine::sampling::Sampling;
use crate::error::{PrivacyError, require, require_positive, require_rounds};
use crate::numerics::solve::{least_at, refine};
use crate::setting::Setting;
use crate::views::masks::{masks_for, with_digits};

/// Range of the clipped projector's level in the search.
const LEVELS: (f64, f64) = (0.1, 50.0);
/// Relative tolerance of the levels and clip norms found.
const CLOSE: f64 = 2e-3;

/// Range of the masks' standard deviation in the search, relative to central noise, and the number of steps.
const MASK_RANGE: (f64, f64) = (1e-3, 1e3);
const MASK_STEPS: usize = 24;

/// The privacy target of a calibration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The view in which the target must hold.
    pub view: View,
    /// Upper limit of `ε`; above 0 and at most 1e5.
    pub epsilon: f64,
    /// Number of rounds `T`, from 1 to 1e9.
    pub rounds: u64,
}

/// A setting that meets a [`Target`].
#[derive(Clone, Debug, PartialEq)]
pub struct Calibrated {
    /// The setting that meets the target: the given one with the found quantity in place.
    pub setting: Setting,
    /// Number of rounds `T`.
    pub rounds: u64,
    /// `ε` of the setting in the target's view; at most the target.
    pub epsilon: f64,
}

impl Target {
    fn check(&self, setting: &Setting) -> Result<(), PrivacyError> {
        let holds = self.epsilon > 0.0 && self.epsilon <= MAX_EPSILON;
        require(holds, "epsilon", "above 0 and at most 1e5", self.epsilon)?;
        require_rounds(self.rounds)?;
        setting.check()?;
        let needs_channel = matches!(self.view, View::Actual | View::RawSignal) && setting.masks.is_none();
        if setting.channel.is_none() && needs_channel {
            return Err(PrivacyError::NeedsChannel { view: self.view });
        }
        Ok(())
    }

    /// `ε` of a setting; infinite if no finite `ε` is established.
    fn epsilon_of(&self, setting: &Setting) -> Result<f64, PrivacyError> {
        let account = Account::of_view(setting, self.view)?;
        Ok(account.epsilon(self.view, self.rounds)?.unwrap_or(f64::INFINITY))
    }

    fn no_solution(&self, why: String) -> PrivacyError {
        PrivacyError::NothingMeets { view: self.view, epsilon: self.epsilon, why }
    }
}

/// Finds the smallest `N`, up to `most`, whose `γ = N − K` unused sequences meet the target.
pub fn fewest_sequences(setting: &Setting, target: Target, most: u64) -> Result<Calibrated, PrivacyError> {
    // The idealised view is computed quickly, and its result is close to those of the other views.
    let mut guess = 1;
    if matches!(target.view, View::Actual | View::AnyChannel) {
        let ideal = Target { view: View::Idealised, ..target };
        let largest = most.saturating_sub(setting.per_round);
        let with = |gamma: u64| Setting { sequences: setting.per_round + gamma, ..setting.clone() };
        target.check(&with(1))?;
        let epsilon_of = |gamma| ideal.epsilon_of(&with(gamma));
        let found = smallest(target.epsilon, 1, largest.max(1), epsilon_of)?;
        guess = found.map_or(largest, |(gamma, _)| gamma);
    }
    fewest_sequences_near(setting, target, most, guess)
}

/// [`fewest_sequences`] with an initial guess of `γ`: the same result in less time.
pub fn fewest_sequences_near(
    setting: &Setting,
    target: Target,
    most: u64,
    guess: u64,
) -> Result<Calibrated, PrivacyError> {
    let with = |gamma: u64| Setting { sequences: setting.per_round + gamma, ..setting.clone() };
    target.check(&with(1))?;
    if setting.masks.is_some() && target.view != View::Published {
        let epsilon = target.epsilon_of(&with(0))?;
        if epsilon <= target.epsilon {
            return Ok(Calibrated { setting: with(0), rounds: target.rounds, epsilon });
        }
    }
    if target.view == View::RawSignal {
        let why = "it does not depend on N: an adversary with the raw samples despreads a client's own sequence; only a smaller \
                   clip norm, fewer rounds or a noisier channel help";
        return Err(target.no_solution(why.to_owned()));
    }
    let largest = most.saturating_sub(setting.per_round);
    if largest == 0 {
        let why = format!("there are no unused sequences with N ≤ {most} and K = {}", setting.per_round);
        return Err(target.no_solution(why));
    }
    match smallest(target.epsilon, guess, largest, |gamma| target.epsilon_of(&with(gamma)))? {
        Some((gamma, epsilon)) => Ok(Calibrated { setting: with(gamma), rounds: target.rounds, epsilon }),
        None => Err(target.no_solution(format!(
            "with N = {}, the maximum, epsilon is still {}",
            setting.per_round + largest,
            Rounding::Up.fixed(target.epsilon_of(&with(largest))?, 4)
        ))),
    }
}

/// The smallest number from 1 to `most` whose `ε` is at most the target, with that `ε`. The search begins at a guess. `ε` must fall
/// with the number.
fn smallest(
    target: f64,
    guess: u64,
    most: u64,
    epsilon_of: impl Fn(u64) -> Result<f64, PrivacyError>,
) -> Result<Option<(u64, f64)>, PrivacyError> {
    let guess = guess.clamp(1, most);
    let at_guess = epsilon_of(guess)?;
    // Bracket with ε: the largest number that is too small, if any, and the smallest that is sufficient.
    let (mut lower, mut upper) = (None, None);
    if at_guess <= target {
        upper = Some((guess, at_guess))
    } else {
        lower = Some((guess, at_guess))
    }
    let mut step = 1;
    loop {
        let next = match (lower, upper) {
            (None, Some((1, below))) => return Ok(Some((1, below))),
            (None, Some((upper, below))) => {
                // ε falls about with the inverse of the number, or with its root.
                let towards = upper as f64 * (below / target).clamp(0.25, 1.0);
                upper.saturating_sub(step).min(towards as u64).max(1)
            }
            (Some((lower, _)), None) if lower >= most => return Ok(None),
            (Some((lower, above)), None) => {
                let towards = lower as f64 * (above / target).min(4.0);
                lower.saturating_add(step).max(towards as u64).min(most)
            }
            (Some((lower, _)), Some((upper, below))) if upper - lower == 1 => {
                return Ok(Some((upper, below)));
            }
            (Some(lower), Some(upper)) => between(lower, upper, target, step),
            (None, None) => return Ok(None),
        };
        let epsilon = epsilon_of(next)?;
        if epsilon <= target {
            upper = Some((next, epsilon))
        } else {
            lower = Some((next, epsilon))
        }
        step = step.saturating_mul(2);
    }
}

/// A number between two others: by turns an interpolation of `ln ε` over the logarithm of the number, and the midpoint.
fn between((lower, above): (u64, f64), (upper, below): (u64, f64), target: f64, step: u64) -> u64 {
    let middle = lower + (upper - lower) / 2;
    let is_interpolated = above.is_finite() && below > 0.0 && !step.trailing_zeros().is_multiple_of(3);
    if !is_interpolated {
        return middle;
    }
    let share = (above / target).ln() / (above / below).ln();
    let number = lower as f64 * (upper as f64 / lower as f64).powf(share);
    // On a straight curve the next integer is enough. It and the integer before it are tried alternately.
    let number = if step.trailing_zeros() % 3 == 1 { number.ceil() } else { number.floor() };
    (number as u64).clamp(lower + 1, upper - 1)
}

/// Settings that differ in one positive number. The `ε` of each is computed once.
struct Family<F> {
    target: Target,
    with: F,
    known: RefCell<Vec<(f64, f64)>>,
}

impl<F: Fn(f64) -> Setting> Family<F> {
    fn new(target: Target, with: F) -> Self {
        Self { target, with, known: RefCell::default() }
    }

    fn epsilon_of(&self, value: f64) -> Result<f64, PrivacyError> {
        if let Some(&(_, epsilon)) = self.known.borrow().iter().find(|&&(asked, _)| asked == value) {
            return Ok(epsilon);
        }
        let epsilon = self.target.epsilon_of(&(self.with)(value))?;
        self.known.borrow_mut().push((value, epsilon));
        Ok(epsilon)
    }

    fn is_met(&self, value: f64) -> Result<bool, PrivacyError> {
        Ok(self.epsilon_of(value)? <= self.target.epsilon)
    }

    fn met_by(&self, value: f64) -> Result<Calibrated, PrivacyError> {
        let epsilon = self.epsilon_of(value)?;
        Ok(Calibrated { setting: (self.with)(value), rounds: self.target.rounds, epsilon })
    }

    /// The largest value whose `ε` is at most the target, to a relative [`CLOSE`]; `is_met` meets the target and `is_not` does not.
    fn largest(&self, is_met: f64, is_not: f64) -> Result<f64, PrivacyError> {
        let error = Cell::new(None);
        let or_infinite = |epsilon: Result<f64, PrivacyError>| {
            epsilon.unwrap_or_else(|found| {
                error.set(Some(found));
                f64::INFINITY
            })
        };
        let epsilon_of = |inverse: f64| or_infinite(self.epsilon_of(1.0 / inverse));
        let [lower, upper] = [is_not, is_met].map(|value| (1.0 / value, or_infinite(self.epsilon_of(value))));
        let found = 1.0 / refine(&epsilon_of, self.target.epsilon, lower, upper, CLOSE);
        error.take().map_or(Ok(found), Err)
    }
}

/// The number of sequences, up to `most`, and the level `c` of the clipped projector that together make the least noise.
///
/// A larger `c` bounds every sequence's noise more tightly, so that more sequences are needed. With more sequences the noise
/// is closer to Gaussian noise, and less of it is needed.
pub fn least_noise(setting: &Setting, target: Target, most: u64) -> Result<Calibrated, PrivacyError> {
    if target.view == View::Published {
        return Err(target.no_solution("the paper's theorems do not cover the clipped projector".to_owned()));
    }
    let largest = most.saturating_sub(setting.per_round);
    let of = |gamma: u64| {
        let with = |c: f64| Setting {
            sequences: setting.per_round + gamma,
            receiver: Receiver::clipped(c).expect("the search stays within the range of levels"),
            ..setting.clone()
        };
        target.check(&with(1.0))?;
        largest_level(&Family::new(target, with))
    };
    let mut best: Option<(f64, Calibrated)> = None;
    let mut gamma = largest;
    'halving: while gamma >= 1 {
        // Two numbers are computed in parallel; the second result may be unused.
        for found in std::thread::scope(|scope| {
            let of = &of;
            let threads = [gamma, gamma / 2]
                .map(|gamma| scope.spawn(move || if gamma > 0 { of(gamma) } else { Ok(None) }));
            threads.map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        }) {
            let Some(found) = found? else { break 'halving };
            let noise = found.setting.noise_std().unwrap_or(f64::INFINITY);
            if best.as_ref().is_some_and(|(least, _)| noise >= *least) {
                break 'halving;
            }
            best = Some((noise, found));
        }
        gamma /= 4;
    }
    match best {
        Some((_, found)) => Ok(found),
        // The same error as without a choice of c.
        None => fewest_sequences(
            &Setting { receiver: Receiver::Clipped(ClipLevel::ONE), ..setting.clone() },
            target,
            most,
        ),
    }
}

/// The largest level that meets the target: `ε` first falls and then rises with it.
fn largest_level(levels: &Family<impl Fn(f64) -> Setting>) -> Result<Option<Calibrated>, PrivacyError> {
    let mut met = None;
    for c in [1.0, 0.5, 2.0] {
        if levels.is_met(c)? {
            met = Some(c);
            break;
        }
    }
    if met.is_none() {
        let epsilon = |log_c: f64| levels.epsilon_of(log_c.exp()).unwrap_or(f64::INFINITY);
        let best = least_at_roughly(epsilon, LEVELS.0.ln(), 5_f64.ln()).exp();
        met = levels.is_met(best)?.then_some(best);
    }
    let Some(lower) = met else { return Ok(None) };
    if levels.is_met(LEVELS.1)? {
        return levels.met_by(LEVELS.1).map(Some);
    }
    let found = levels.largest(lower, LEVELS.1)?;
    // Round down to three decimals.
    let short = (found * 1e3).floor() / 1e3;
    let level = if short > 0.0 && levels.is_met(short)? { short } else { found };
    levels.met_by(level).map(Some)
}

/// Golden section with few steps, for functions that are expensive to evaluate.
fn least_at_roughly(f: impl Fn(f64) -> f64, from: f64, to: f64) -> f64 {
    least_at(f, from, to, 8)
}

/// The largest clip norm that meets the target.
pub fn largest_clip(setting: &Setting, target: Target) -> Result<Calibrated, PrivacyError> {
    target.check(setting)?;
    let clips = Family::new(target, |clip: f64| Setting { clip, ..setting.clone() });
    let (mut lower, mut upper) = (setting.clip, setting.clip);
    let limits = (1e-20, 1e20);
    while !clips.is_met(lower)? {
        upper = lower;
        lower /= 4.0;
        if lower < limits.0 {
            let reason = target.reason(setting)?;
            return Err(target.no_solution(format!("no clip norm is small enough: {reason}")));
        }
    }
    while lower == upper || clips.is_met(upper)? {
        lower = lower.max(upper);
        upper *= 4.0;
        if upper > limits.1 {
            return clips.met_by(lower);
        }
    }
    clips.met_by(clips.largest(lower, upper)?)
}

impl Target {
    /// The reason why a setting has no finite `ε`.
    fn reason(&self, setting: &Setting) -> Result<String, PrivacyError> {
        let account = Account::of_view(setting, self.view)?;
        let statement = account.statement(self.view, self.rounds)?;
        Ok(statement
            .and_then(|statement| statement.reason)
            .unwrap_or_else(|| "the noise is too weak".to_owned()))
    }
}

/// The largest number of rounds, up to `target.rounds`, that meets the target.
pub fn most_rounds(setting: &Setting, target: Target) -> Result<Calibrated, PrivacyError> {
    target.check(setting)?;
    let account = Account::of_view(setting, target.view)?;
    let rounds = account.most_rounds(target.view, target.epsilon, target.rounds)?;
    if rounds == 0 {
        let why = match account.epsilon(target.view, 1)? {
            Some(epsilon) => format!("one round alone has {}", Rounding::Up.fixed(epsilon, 4)),
            None => target.reason(setting)?,
        };
        return Err(target.no_solution(why));
    }
    let epsilon = account.epsilon(target.view, rounds)?.unwrap_or(f64::INFINITY);
    Ok(Calibrated { setting: setting.clone(), rounds, epsilon })
}

/// The largest `μ` of a Gaussian round with which `rounds` rounds meet `epsilon` at `delta`, against an adversary who sees who takes
/// part. The result is up to 0.01% too small.
pub fn gaussian_mu(epsilon: f64, delta: f64, rounds: u64, sampling: Sampling) -> Result<f64, PrivacyError> {
    require(epsilon > 0.0 && epsilon <= MAX_EPSILON, "epsilon", "above 0 and at most 1e5", epsilon)?;
    let sampling = match sampling {
        Sampling::Everyone => sampling,
        other => Sampling::Known(other.probability()),
    };
    let is_met = |mu: f64| -> Result<bool, PrivacyError> {
        match Composition::new(&MuDistribution::Constant(mu), sampling, rounds)?.epsilon_upper(delta) {
            Ok(spent) => Ok(spent <= epsilon),
            Err(error) if error.is_no_guarantee() => Ok(false),
            Err(error) => Err(error),
        }
    };
    let (mut met, mut is_not) = (1.0, 1.0);
    while !is_met(met)? {
        is_not = met;
        met /= 4.0;
        require(met > 1e-20, "epsilon", "such that some noise meets it", epsilon)?;
    }
    while met == is_not || is_met(is_not)? {
        met = is_not.max(met);
        is_not *= 4.0;
    }
    while is_not / met > 1.0 + 1e-4 {
        let middle = (met * is_not).sqrt();
        if is_met(middle)? { met = middle } else { is_not = middle }
    }
    Ok(met)
}

/// The masks that have `μ` in a round and leave the least noise in the decoded sum.
///
/// With larger masks the clients need less noise of their own, but a sum whose gains differ keeps a larger part of the masks.
/// `noise` returns the noise that masks leave, for example the median over simulated rounds. It must first fall and then rise with
/// the masks' standard deviation.
///
/// # Arguments
/// * `mu`: `μ`, above 0.
/// * `sensitivity`: `Δ`, the largest change of a client's update, in norm.
/// * `per_round`: `K`, number of clients that are selected for a round.
/// * `colluding`: number of clients of a round that may reveal their secrets, at most `K − 2`.
pub fn quietest_masks(
    mu: f64,
    sensitivity: f64,
    per_round: u64,
    colluding: u32,
    noise: impl Fn(Masks) -> f64,
) -> Result<Masks, PrivacyError> {
    require_positive("μ", mu)?;
    require_positive("the sensitivity", sensitivity)?;
    let masks = |log_std: f64| {
        // Four digits are enough: the minimum is flat.
        masks_for(mu, sensitivity, per_round, colluding, with_digits(log_std.exp(), 4, f64::round))
    };
    let unit = (sensitivity / mu).ln();
    let of = |log_std: f64| masks(log_std).map_or(f64::INFINITY, &noise);
    masks(unit)?;
    let best = masks(least_at(of, unit + MASK_RANGE.0.ln(), unit + MASK_RANGE.1.ln(), MASK_STEPS))?;
    let without = masks_for(mu, sensitivity, per_round, colluding, 0.0)?;
    Ok(if noise(without) < noise(best) { without } else { best })
}
