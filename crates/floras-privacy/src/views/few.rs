//! The distribution of a sum of a few terms, on a grid that grows by a constant factor.
//!
//! MMSE weights may be close to 0, so a few unused sequences produce almost no noise with a relevant probability. With two
//! sequences, `P(ν² < x)` is about `x`. An equally spaced grid rounds such values to 0. On the grid `x_i = x_0·e^{ih}`,
//!
//! ```text
//! x_i + x_j = x_0·e^{(i + ln(1 + e^{−(i−j)h})/h)·h},     j ≤ i
//! ```
//!
//! so the index of the sum of two values depends on the distance of their indices only. Every value is rounded down: less noise
//! hides less.

/// Width of a bin in `ln x`.
const STEP: f64 = 0.002;
/// Maximum sum of values below the grid, relative to the sum of all terms.
const NEGLIGIBLE: f64 = 1e-3;
/// The probability that all terms are below the grid is smaller than this.
const MIN_PROBABILITY: f64 = 1e-31;
/// Lower limit of the grid, relative to the largest value of a term.
const MIN_RELATIVE: f64 = 1e-56;

/// Masses on the grid, and the mass of values that count as 0.
#[derive(Clone)]
pub(crate) struct LogSum {
    /// First point of the grid, `x_0`.
    least: f64,
    masses: Vec<f64>,
    pub(crate) zero: f64,
    /// Number of times that values were rounded down.
    rounded: u32,
    /// Upper bound on the sum of all values below the grid.
    lost: f64,
}

/// Independent terms with the same distribution.
pub(crate) struct Few<'a> {
    /// Number of terms, at least 1.
    pub(crate) count: u64,
    /// Maximum value of a term.
    pub(crate) most: f64,
    /// `P(Y < y)` for `0 < y ≤ most`.
    pub(crate) below: &'a dyn Fn(f64) -> f64,
}

impl Few<'_> {
    fn probability_below(&self, x: f64) -> f64 {
        if x > self.most { 1.0 } else { (self.below)(x) }
    }
}

impl LogSum {
    /// The sum of all terms, of which there is at least one.
    pub(crate) fn new(terms: &[Few<'_>]) -> Self {
        let most = terms.iter().map(|term| term.most).fold(0.0, f64::max);
        let all_below = |x: f64| -> f64 {
            terms.iter().map(|term| term.probability_below(x).powf(term.count as f64)).product()
        };
        let is_deep = |x: f64| x < MIN_RELATIVE * most || all_below(x) < MIN_PROBABILITY;
        let mut depth = 1.0;
        while !is_deep(most * f64::exp(-depth)) {
            depth *= 1.1;
        }
        // The sum is hardly ever smaller than this, and much smaller values do not contribute to it.
        let number: f64 = terms.iter().map(|term| term.count as f64).sum();
        let bins = ((depth + (number / NEGLIGIBLE).ln()) / STEP).ceil() as usize;
        let least = most * (-(bins as f64) * STEP).exp();
        let powers = terms.iter().map(|term| Self::of_one(term, least, bins).times(term.count));
        powers.reduce(|sum, power| sum.plus(&power)).expect("there is a term")
    }

    fn of_one(term: &Few<'_>, least: f64, bins: usize) -> Self {
        let mut up_to: Vec<f64> =
            (0..bins).map(|i| term.probability_below(least * (i as f64 * STEP).exp())).collect();
        up_to.push(1.0);
        let masses = up_to.windows(2).map(|ends| (ends[1] - ends[0]).max(0.0)).collect();
        Self { least, masses, zero: up_to[0], rounded: 1, lost: least }
    }

    /// The sum of `count ≥ 1` independent copies, by doubling.
    fn times(self, count: u64) -> Self {
        let (mut sum, mut power, mut rest): (Option<Self>, _, _) = (None, self, count);
        loop {
            if rest % 2 == 1 {
                sum = Some(match sum {
                    None => power.clone(),
                    Some(sum) => sum.plus(&power),
                });
            }
            rest /= 2;
            if rest == 0 {
                return sum.unwrap_or(power);
            }
            power = power.plus(&power);
        }
    }

    fn plus(&self, other: &Self) -> Self {
        let starts = starts_of_rises();
        let length = self.masses.len().max(other.masses.len());
        let mut masses = vec![0.0; length + starts.len()];
        // First the pairs in which the value of `self` is at least as large, then those in which that of `other` is larger.
        for (large, small, least_distance) in [(self, other, 0), (other, self, 1)] {
            let below = small.sums_below(length);
            for (rise, &start) in starts.iter().enumerate() {
                let start = start.max(least_distance);
                let end = rise.checked_sub(1).map(|less| starts[less]);
                add_products(&mut masses[rise..], &large.masses, &below, start, end);
            }
        }
        Self {
            least: self.least,
            masses,
            zero: self.zero * other.zero,
            rounded: self.rounded.max(other.rounded) + 1,
            lost: self.lost + other.lost,
        }
    }

    /// For each index up to `length`, the mass of 0 and of all values before it.
    fn sums_below(&self, length: usize) -> Vec<f64> {
        let masses = self.masses.iter().copied().chain(std::iter::repeat(0.0)).take(length);
        let mut sum = self.zero;
        let sums = masses.map(|mass| {
            sum += mass;
            sum
        });
        [self.zero].into_iter().chain(sums).collect()
    }

    /// The values, in ascending order, with their masses.
    pub(crate) fn values(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let value = |(i, &mass): (usize, &f64)| (self.least * (i as f64 * STEP).exp(), mass);
        self.masses.iter().enumerate().map(value)
    }

    /// The largest value that may have been rounded down to this one. By induction, a sum of two is rounded down by less than a bin,
    /// in addition to the rounding of its parts.
    pub(crate) fn rounded_up(&self, value: f64) -> f64 {
        (value + self.lost) * (f64::from(self.rounded) * STEP).exp()
    }
}

/// For each `rise`, the minimum distance in bins of two values so that their sum is at most `rise` bins above the larger one.
fn starts_of_rises() -> Vec<usize> {
    let mut starts = Vec::new();
    // From this distance on, a value raises another one by less than a bin.
    let mut distance = (STEP.ln() / -STEP).ceil() as usize + 1;
    while distance > 0 {
        let rise = ((-((distance - 1) as f64) * STEP).exp().ln_1p() / STEP).floor() as usize;
        starts.resize(rise, distance);
        distance -= 1;
    }
    starts.push(0);
    starts
}

/// Adds to each sum a mass of `large` times the mass of all values at distances from `start` to below `end`, or without upper limit.
fn add_products(sums: &mut [f64], large: &[f64], below: &[f64], start: usize, end: Option<usize>) {
    let Some(end) = end else {
        // Without an upper limit, the values include 0.
        for (i, (sum, mass)) in sums.iter_mut().zip(large).enumerate() {
            *sum += mass * below[(i + 1).saturating_sub(start)];
        }
        return;
    };
    if start >= end || start >= large.len() {
        return;
    }
    let turn = (end - 1).min(large.len());
    for ((sum, mass), up_to) in sums[start..turn].iter_mut().zip(&large[start..turn]).zip(&below[1..]) {
        *sum += mass * (up_to - below[0]);
    }
    let values = below[turn - start + 1..].iter().zip(below);
    for ((sum, mass), (up_to, before)) in sums[turn..].iter_mut().zip(&large[turn..]).zip(values) {
        *sum += mass * (up_to - before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Y = U²` with uniform `U`: three of them are below `x ≤ 1` with the probability of an eighth of a ball, `π/6·x^{3/2}`.
    #[test]
    fn sums_of_squares_fill_balls() {
        let term = |count: u64| Few { count, most: 1.0, below: &f64::sqrt };
        for sum in [LogSum::new(&[term(3)]), LogSum::new(&[term(1), term(2)])] {
            is_a_ball(&sum);
        }
    }

    #[track_caller]
    fn is_a_ball(sum: &LogSum) {
        assert!(sum.rounded_up(1.0) < 1.015);
        let total: f64 = sum.values().map(|(_, mass)| mass).sum();
        assert!((total + sum.zero - 1.0).abs() < 1e-12);
        for x in [1e-20, 1e-12, 1e-6, 1e-3, 0.1, 0.9] {
            let ball = |x: f64| std::f64::consts::PI / 6.0 * x.powf(1.5);
            let ours: f64 =
                sum.zero + sum.values().filter(|&(value, _)| value < x).map(|(_, mass)| mass).sum::<f64>();
            let largest = ball(sum.rounded_up(x) * STEP.exp());
            assert!(ours >= ball(x) && ours <= largest, "{x}: {} of the ball", ours / ball(x));
        }
    }

    /// The sum of two different distributions, pair by pair.
    #[test]
    fn sums_equal_those_of_all_pairs() {
        let masses = |count: usize, power: i32| -> Vec<f64> {
            (0..count).map(|i| 1e-3 * f64::powi((1 + i % 97) as f64 / 97.0, power)).collect()
        };
        let of = |masses: Vec<f64>, zero: f64| LogSum { least: 1.0, masses, zero, rounded: 1, lost: 1.0 };
        let (one, other) = (of(masses(5000, 2), 0.01), of(masses(3500, 9), 0.2));
        let sum = one.plus(&other);
        let mut expected = vec![0.0; sum.masses.len()];
        for (i, a) in one.masses.iter().enumerate() {
            expected[i] += a * other.zero;
            for (j, b) in other.masses.iter().enumerate() {
                let rise = (-(i.abs_diff(j) as f64) * STEP).exp().ln_1p() / STEP;
                expected[i.max(j) + rise as usize] += a * b;
            }
        }
        for (j, b) in other.masses.iter().enumerate() {
            expected[j] += b * one.zero;
        }
        for (i, (ours, expected)) in sum.masses.iter().zip(&expected).enumerate() {
            assert!((ours - expected).abs() <= 1e-11 * expected + 1e-15, "{i}: {ours}, not {expected}");
        }
    }
}
