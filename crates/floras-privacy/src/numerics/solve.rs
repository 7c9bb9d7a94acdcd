//! Searches: where a decreasing function reaches a target, where a function is minimal, the largest integer with a property.

/// Maximum number of bisection or interpolation steps.
const MAX_STEPS: usize = 200;
/// Maximum factor between two upper ends that are tried.
const MAX_FACTOR: f64 = 32.0;

/// The smallest `x ≥ 0` at which the decreasing `f` is at most `target`, to a relative `tolerance`. The result is always on the far
/// side, where `f(x) ≤ target`. `None` if there is no such `x` below `most`.
pub(crate) fn first_at_most(
    f: impl Fn(f64) -> f64,
    target: f64,
    guess: f64,
    most: f64,
    tolerance: f64,
) -> Option<f64> {
    let mut lower = (0.0, f(0.0));
    if lower.1 <= target {
        return Some(0.0);
    }
    let mut upper = guess.min(most);
    let mut factor = 2.0;
    loop {
        let value = f(upper);
        if value <= target {
            return Some(refine(&f, target, lower, (upper, value), tolerance));
        }
        if upper >= most {
            return None;
        }
        lower = (upper, value);
        // A guess may be far too small, and a narrow interval saves little: the search closes in fast.
        upper = (factor * upper).min(most);
        factor = (2.0 * factor).min(MAX_FACTOR);
    }
}

/// [`first_at_most`] for a function that is known to exceed the target below `start`; the search begins there with growing steps.
pub(crate) fn first_at_most_from(
    f: impl Fn(f64) -> f64,
    target: f64,
    start: f64,
    most: f64,
    tolerance: f64,
) -> Option<f64> {
    if start <= 0.0 {
        return first_at_most(f, target, 1e-3, most, tolerance);
    }
    let mut lower = (start, f(start));
    if lower.1 <= target {
        return Some(start);
    }
    let mut factor = 1.5;
    while lower.0 < most {
        let upper = (factor * lower.0).min(most);
        let value = f(upper);
        if value <= target {
            return Some(refine(&f, target, lower, (upper, value), tolerance));
        }
        lower = (upper, value);
        factor *= 1.2;
    }
    None
}

/// [`first_at_most`] between two points with their values; the first exceeds the target and the second does not. Bisection in `x`
/// alternates with false position in `ln f`, in which privacy curves are nearly straight.
pub(crate) fn refine(
    f: &impl Fn(f64) -> f64,
    target: f64,
    mut lower: (f64, f64),
    mut upper: (f64, f64),
    tolerance: f64,
) -> f64 {
    for step in 0..MAX_STEPS {
        let width = upper.0 - lower.0;
        if width <= tolerance * upper.0 {
            break;
        }
        let mut x = 0.5 * (lower.0 + upper.0);
        if step % 3 != 2 && upper.1 > 0.0 && lower.1.is_finite() {
            let share = (lower.1 / target).ln() / (lower.1 / upper.1).ln();
            // Slightly beyond the estimate, on alternating sides, so that both ends move.
            let nudge = if step % 3 == 0 { 1.0 } else { -1.0 } * 0.4 * tolerance * upper.0;
            let estimate = lower.0 + share * width + nudge;
            if estimate > lower.0 && estimate < upper.0 {
                x = estimate;
            }
        }
        let value = f(x);
        if value <= target { upper = (x, value) } else { lower = (x, value) }
    }
    upper.0
}

/// The minimiser on an interval of a function that first falls and then rises, by golden section.
pub(crate) fn least_at(f: impl Fn(f64) -> f64, mut from: f64, mut to: f64, steps: usize) -> f64 {
    let ratio = 0.5 * (5_f64.sqrt() - 1.0);
    let inner = |from: f64, to: f64| (to - ratio * (to - from), from + ratio * (to - from));
    let (mut left, mut right) = inner(from, to);
    let (mut at_left, mut at_right) = (f(left), f(right));
    for _ in 0..steps {
        if at_left <= at_right {
            (to, right, at_right) = (right, left, at_left);
            left = inner(from, to).0;
            at_left = f(left);
        } else {
            (from, left, at_left) = (left, right, at_right);
            right = inner(from, to).1;
            at_right = f(right);
        }
    }
    0.5 * (from + to)
}

/// The largest integer from 0 to `max` for which `holds` returns `true`; 0 is taken to hold and is not evaluated.
///
/// If it holds for an integer, it must hold for all smaller ones. The search starts at 1 and doubles, because the callers'
/// functions are cheaper for small integers; then it bisects.
pub fn largest_integer<E>(max: u64, holds: impl Fn(u64) -> Result<bool, E>) -> Result<u64, E> {
    let mut lower = 0_u64;
    let mut upper = loop {
        if lower == max {
            return Ok(max);
        }
        let next = lower.saturating_mul(2).clamp(1, max);
        if !holds(next)? {
            break next;
        }
        lower = next;
    };
    while upper - lower > 1 {
        let middle = lower + (upper - lower) / 2;
        if holds(middle)? { lower = middle } else { upper = middle }
    }
    Ok(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_integer_is_found_within_the_limit() {
        for max in [0, 1, 2, 3, 7, 100, u64::MAX] {
            for last in [0, 1, 2, 3, 6, 7, 64, 99, 100, 1 << 40, u64::MAX] {
                let found = largest_integer(max, |n| Ok::<bool, ()>(n <= last));
                assert_eq!(found, Ok(last.min(max)));
            }
        }
        assert_eq!(largest_integer(9, |_| Err("failed")), Err("failed"));
    }

    #[test]
    fn the_root_is_met_from_the_far_side() {
        let calls = std::cell::Cell::new(0);
        let f = |x: f64| {
            calls.set(calls.get() + 1);
            (-x * x - 0.1 * x).exp()
        };
        for exact in [1e-9, 1e-3, 1.0, 25.0] {
            calls.set(0);
            let found = first_at_most(f, f(exact), 1e-3, 1e9, 1e-12).unwrap();
            assert!(f(found) <= f(exact), "{found}");
            assert!((found / exact - 1.0).abs() < 1e-6, "{found} for {exact}");
            assert!(calls.get() < 80, "{} calls", calls.get());
        }
    }

    #[test]
    fn steps_and_unreachable_targets_are_handled() {
        let step = |x: f64| if x < 3.0 { 1.0 } else { 0.0 };
        let found = first_at_most(step, 0.5, 1.0, 1e9, 1e-12).unwrap();
        assert!((found - 3.0).abs() < 1e-11);
        assert_eq!(first_at_most(|_| 1.0, 0.5, 1.0, 100.0, 1e-9), None);
        assert_eq!(first_at_most(|_| 0.0, 0.5, 1.0, 100.0, 1e-9), Some(0.0));
    }
}
