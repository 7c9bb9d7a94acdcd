//! The largest values of an update, found by counting.
//!
//! The bits of positive numbers are ordered as the numbers are. A threshold for `q` values is found by counting the values that reach a
//! number of bits, in an interval that shrinks by interpolation and bisection. A count is one pass of a vector unit. About ten of them take
//! less time than a selection that moves values, whatever their distribution is: error feedback makes many magnitudes nearly equal.

use std::ops::Range;

/// The values among which the largest are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Order {
    /// All values but 0, by magnitude.
    Magnitude,
    /// Values above 0.
    Positive,
    /// Values below 0, by magnitude.
    Negative,
}

/// The `q` largest values in an order, or all of them if there are fewer. Among equal ones the first are taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Largest {
    order: Order,
    /// Values before `until` are taken from this key on, the others from the next key on.
    threshold: i32,
    until: usize,
    length: usize,
    /// Number of values that are taken.
    count: usize,
}

impl Order {
    /// `(flip, keep)`: a value with the bits `b` has the key `(b ⊕ flip) & keep`. It is above 0 and in the order of the values, and 0 or
    /// less for values that are not in the order.
    #[inline(always)]
    fn masks(self) -> (i32, i32) {
        match self {
            Self::Magnitude => (0, i32::MAX),
            Self::Positive => (0, -1),
            Self::Negative => (i32::MIN, -1),
        }
    }

    #[inline(always)]
    fn key(self, value: f32) -> i32 {
        let (flip, keep) = self.masks();
        (value.to_bits() as i32 ^ flip) & keep
    }
}

impl Largest {
    /// The `count` largest of these values. The search begins at the key `hint`, which becomes the one found; the result does not depend on
    /// it. To be inlined into a kernel that runs under `pulp`'s dispatch.
    #[inline(always)]
    pub(super) fn find(values: &[f32], order: Order, count: usize, hint: &mut i32) -> Self {
        if count > COLUMNS / 4 || values.len() < 4 * COLUMNS {
            return Self::search(values, order, count, hint);
        }
        // At least `count` values reach the `count`th largest of the columns' maxima, and not many more.
        let maxima = maxima(values, order);
        *hint = Self::search(&maxima, Order::Positive, count, hint).threshold;
        Self::search(values, order, count, hint)
    }

    #[inline(always)]
    fn search(values: &[f32], order: Order, count: usize, hint: &mut i32) -> Self {
        let length = values.len();
        if count == 0 {
            return Self { order, threshold: i32::MAX, until: 0, length, count };
        }
        // More than `count` values reach `low`, unless it is 0, and fewer reach `high`.
        let (mut low, mut of_low, mut high, mut of_high) = (0, length, i32::MAX, 0);
        let (mut probe, mut width, mut failures) = ((*hint).clamp(1, i32::MAX - 1), WIDTH, 0);
        while high - low > 1 {
            let reached = number(values, order, probe);
            if reached == count {
                *hint = probe;
                return Self { order, threshold: probe, until: length, length, count };
            }
            let before = high - low;
            if reached > count {
                (low, of_low) = (probe, reached);
            } else {
                (high, of_high) = (probe, reached);
            }
            probe = if low == 0 {
                width = width.saturating_mul(8);
                high.saturating_sub(width / 8)
            } else if high == i32::MAX {
                width = width.saturating_mul(8);
                low.saturating_add(width / 8)
            } else {
                // Interpolation does not help where many values are nearly equal.
                let has_failed = high - low > before / 2;
                failures += i32::from(has_failed);
                if has_failed || failures > 3 {
                    low + (high - low) / 2
                } else {
                    let share = (of_low - count) as f64 / (of_low - of_high) as f64;
                    low + (share * f64::from(high - low)) as i32
                }
            };
            probe = probe.min(high - 1).max(low + 1);
        }
        if low == 0 {
            return Self { order, threshold: 1, until: length, length, count: of_high };
        }
        *hint = low;
        // Several values are equal to `low`, and the first of them are taken.
        let (mut left, mut until) = (count - of_high, length);
        for (place, value) in values.iter().enumerate() {
            if order.key(*value) == low {
                if left == 0 {
                    until = place;
                    break;
                }
                left -= 1;
            }
        }
        Self { order, threshold: low, until, length, count }
    }

    /// Two ranges of places, each with the key from which on its values are taken.
    #[inline(always)]
    fn parts(&self) -> [(Range<usize>, i32); 2] {
        [(0..self.until, self.threshold), (self.until..self.length, self.threshold.saturating_add(1))]
    }

    /// Moves the values that are taken to `taken`, where the others are 0, and leaves 0 in their places.
    #[inline(always)]
    pub(super) fn take(&self, values: &mut [f32], taken: &mut [f32]) {
        for (range, threshold) in self.parts() {
            for (value, taken) in values[range.clone()].iter_mut().zip(&mut taken[range]) {
                let is_taken = self.order.key(*value) >= threshold;
                *taken = if is_taken { *value } else { 0.0 };
                *value = if is_taken { 0.0 } else { *value };
            }
        }
    }

    /// The mean of the values that are taken, or 0 if there is none.
    #[inline(always)]
    pub(super) fn mean(&self, values: &[f32]) -> f32 {
        let mut sums = [0.0_f64; LANES];
        for (range, threshold) in self.parts() {
            let (blocks, last) = values[range].as_chunks::<LANES>();
            for block in blocks {
                for lane in 0..LANES {
                    let is_taken = self.order.key(block[lane]) >= threshold;
                    sums[lane] += f64::from(if is_taken { block[lane] } else { 0.0 });
                }
            }
            for (lane, &value) in last.iter().enumerate() {
                let is_taken = self.order.key(value) >= threshold;
                sums[lane] += f64::from(if is_taken { value } else { 0.0 });
            }
        }
        let mut sum = 0.0;
        for of_lane in sums {
            sum += of_lane;
        }
        (sum / self.count.max(1) as f64) as f32
    }

    /// Subtracts a number from the values that are taken, and adds it to `sums` in their places.
    #[inline(always)]
    pub(super) fn transfer(&self, number: f32, values: &mut [f32], sums: &mut [f32]) {
        for (range, threshold) in self.parts() {
            for (value, sum) in values[range.clone()].iter_mut().zip(&mut sums[range]) {
                let part = if self.order.key(*value) >= threshold { number } else { 0.0 };
                *value -= part;
                *sum += part;
            }
        }
    }
}

/// Number of columns over whose maxima a search for few values narrows its interval.
const COLUMNS: usize = 256;
/// Number of partial sums, which vector units add at once.
const LANES: usize = 32;
/// First distance between two probes of a search: a factor of 1.06 between values.
const WIDTH: i32 = 1 << 19;

/// The largest key of every [`COLUMNS`]th value, as a number with the same bits; 0 if none is above 0.
#[inline(always)]
fn maxima(values: &[f32], order: Order) -> [f32; COLUMNS] {
    let (flip, keep) = order.masks();
    let mut maxima = [0_i32; COLUMNS];
    let (rows, last) = values.as_chunks::<COLUMNS>();
    for row in rows {
        for column in 0..COLUMNS {
            maxima[column] = maxima[column].max((row[column].to_bits() as i32 ^ flip) & keep);
        }
    }
    for (maximum, value) in maxima.iter_mut().zip(last) {
        *maximum = (*maximum).max(order.key(*value));
    }
    let mut out = [0.0; COLUMNS];
    for column in 0..COLUMNS {
        out[column] = f32::from_bits(maxima[column] as u32);
    }
    out
}

/// The number of values whose keys are at least `threshold`.
#[inline(always)]
fn number(values: &[f32], order: Order, threshold: i32) -> usize {
    let (flip, keep) = order.masks();
    let mut count = 0_u32;
    // The compiler adds integers in any order: with partial counts of its own it is faster than with given ones.
    for value in values {
        let key = (value.to_bits() as i32 ^ flip) & keep;
        count += u32::from(key >= threshold);
    }
    count as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of the largest values, in ascending order.
    fn largest(values: &[f32], order: Order, count: usize) -> Vec<usize> {
        let mut taken = vec![f32::NAN; values.len()];
        let mut left = values.to_vec();
        let mut hint = (count as i32) << 20;
        Largest::find(values, order, count, &mut hint).take(&mut left, &mut taken);
        let is_taken = |place: &usize| taken[*place] != 0.0;
        for place in 0..values.len() {
            let (kept, gone) = if is_taken(&place) { (0.0, values[place]) } else { (values[place], 0.0) };
            assert_eq!((left[place], taken[place]), (kept, gone), "{place}");
        }
        (0..values.len()).filter(is_taken).collect()
    }

    #[test]
    fn the_largest_values_are_found() {
        let values = [1.0_f32, -3.0, 2.0, -2.0, 0.0, 2.0];
        for (count, expected) in [
            (0, vec![]),
            (1, vec![1]),
            (2, vec![1, 2]),
            (3, vec![1, 2, 3]),
            (5, vec![0, 1, 2, 3, 5]),
            (6, vec![0, 1, 2, 3, 5]),
            (9, vec![0, 1, 2, 3, 5]),
        ] {
            assert_eq!(largest(&values, Order::Magnitude, count), expected, "{count}");
        }
        let positive = [1, 2, 6].map(|count| largest(&values, Order::Positive, count));
        assert_eq!(positive, [vec![2], vec![2, 5], vec![0, 2, 5]]);
        assert_eq!(largest(&values, Order::Negative, 2), [1, 3]);
    }

    /// Values with many ties, and with zeros.
    #[test]
    fn the_largest_values_are_those_of_sorting() {
        let mut values = crate::updates::random_updates(1, 2000).remove(0);
        values.iter_mut().step_by(3).for_each(|x| *x = (*x * 4.0).round());
        for count in [1, 5, 100, 700, 1999, 2000] {
            for order in [Order::Magnitude, Order::Positive, Order::Negative] {
                let key = |at: usize| order.key(values[at]);
                let mut expected: Vec<usize> = (0..2000).filter(|&at| key(at) > 0).collect();
                expected.sort_by_key(|&at| std::cmp::Reverse(key(at)));
                expected.truncate(count);
                expected.sort_unstable();
                assert_eq!(largest(&values, order, count), expected, "{order:?} {count}");
                let found = Largest::find(&values, order, count, &mut 0);
                for mut hint in [1, 0x3f80_0000, i32::MAX] {
                    let from_hint = Largest::find(&values, order, count, &mut hint);
                    let mut taken = [vec![0.0; 2000], vec![0.0; 2000]];
                    found.take(&mut values.clone(), &mut taken[0]);
                    from_hint.take(&mut values.clone(), &mut taken[1]);
                    assert_eq!(taken[0], taken[1], "{hint}");
                }
                let mean =
                    expected.iter().map(|&at| f64::from(values[at])).sum::<f64>() / expected.len() as f64;
                assert!((f64::from(found.mean(&values)) - mean).abs() < 1e-6 * mean.abs());
                let (mut left, mut sums) = (values.clone(), vec![1.0; 2000]);
                found.transfer(0.5, &mut left, &mut sums);
                for at in 0..2000 {
                    let part = if expected.binary_search(&at).is_ok() { 0.5 } else { 0.0 };
                    assert_eq!((left[at], sums[at]), (values[at] - part, 1.0 + part), "{at}");
                }
            }
        }
    }
}
