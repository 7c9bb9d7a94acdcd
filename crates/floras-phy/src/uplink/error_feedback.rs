//! Code shared by the schemes whose clients send a part of their update and keep the rest for later rounds.

use crate::error::{UplinkError, require};

/// The error of a number of channel uses per parameter that is out of range.
pub(super) fn require_uses(per_parameter: f64) -> Result<(), UplinkError> {
    let holds = (1e-3..=1.0).contains(&per_parameter);
    require(holds, "the number of channel uses per parameter", "between 0.001 and 1", per_parameter)
}

/// `s`: channel uses of a round, at least two.
pub(super) fn channel_uses(per_parameter: f64, parameters: usize) -> usize {
    ((per_parameter * parameters as f64).ceil() as usize).max(2)
}

/// Adds an update to what a client has not sent so far.
pub(super) fn add(unsent: &mut [f32], update: &[f32]) {
    unsent.iter_mut().zip(update).for_each(|(unsent, x)| *unsent += x);
}

/// The places of the `count` largest keys above 0, in ascending order. Among equal keys the first are taken.
pub(super) fn largest(values: &[f32], count: usize, key: impl Fn(f32) -> u32) -> Vec<u32> {
    let keys: Vec<u32> = values.iter().map(|value| key(*value)).collect();
    let threshold = threshold(&keys, count);
    let mut places = places(&keys, threshold, count);
    if places.len() > count {
        let is_above = |place: &u32| keys[*place as usize] > threshold;
        let mut allowed = count.saturating_sub(places.iter().filter(|place| is_above(place)).count());
        places.retain(|place| {
            let takes = is_above(place) || allowed > 0;
            allowed -= usize::from(takes && !is_above(place));
            takes
        });
    }
    places
}

/// The `count`th largest key, or 1 if that is 0 or does not exist; `u32::MAX` for the 0th.
///
/// The key is found digit by digit, by counting. That takes a fraction of the time of a selection, which moves keys, and does not depend on
/// their distribution: error feedback makes many magnitudes nearly equal.
fn threshold(keys: &[u32], count: usize) -> u32 {
    if count == 0 || count > keys.len() {
        return if count == 0 { u32::MAX } else { 1 };
    }
    let (mut inside, mut left) = (keys.to_vec(), count);
    for shift in [22, 11, 0] {
        let digit = |key: u32| (key >> shift) as usize % DIGITS;
        // Two counts of each digit, because equal digits in a row would wait for one another.
        let mut counts = [[0_u32; DIGITS]; 2];
        let (blocks, last) = inside.as_chunks::<2>();
        for block in blocks {
            counts.iter_mut().zip(block).for_each(|(counts, key)| counts[digit(*key)] += 1);
        }
        last.iter().for_each(|key| counts[0][digit(*key)] += 1);
        let mut found = DIGITS - 1;
        let of_digit = loop {
            let of_digit = (counts[0][found] + counts[1][found]) as usize;
            if of_digit >= left {
                break of_digit;
            }
            left -= of_digit;
            found -= 1;
        };
        keep(&mut inside, of_digit, |_, key| (key, digit(key) == found));
    }
    inside[0].max(1)
}

/// Number of values of a digit.
const DIGITS: usize = 1 << 11;

/// The places of the keys that are at least `threshold`, about `expected` of them, in ascending order.
fn places(keys: &[u32], threshold: u32, expected: usize) -> Vec<u32> {
    let mut places = keys.to_vec();
    keep(&mut places, expected, |place, key| (place, key >= threshold));
    places
}

/// Replaces the values by those that `choose` returns for place and value, where it returns `true` too, about `expected` times.
///
/// A processor cannot predict which values are kept, unless they are few. Otherwise every result is written, and kept unless the next one
/// overwrites it.
fn keep(values: &mut Vec<u32>, expected: usize, choose: impl Fn(u32, u32) -> (u32, bool)) {
    let mut length = 0;
    if expected < values.len() / 16 {
        for place in 0..values.len() {
            let (value, is_kept) = choose(place as u32, values[place]);
            if is_kept {
                values[length] = value;
                length += 1;
            }
        }
    } else {
        for place in 0..values.len() {
            let (value, is_kept) = choose(place as u32, values[place]);
            values[length] = value;
            length += usize::from(is_kept);
        }
    }
    values.truncate(length);
}

/// A key with the order of the magnitudes: the bits of positive numbers are ordered as the numbers are.
pub(super) fn magnitude(value: f32) -> u32 {
    value.abs().to_bits()
}

/// A key with the order of the positive values, and 0 for the others.
pub(super) fn positive(value: f32) -> u32 {
    if value > 0.0 { value.to_bits() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_keys_are_found() {
        let values = [1.0_f32, -3.0, 2.0, -2.0, 0.0, 2.0];
        let by = |count, key: fn(f32) -> u32| largest(&values, count, key);
        for (count, expected) in [
            (0, vec![]),
            (1, vec![1]),
            (2, vec![1, 2]),
            (3, vec![1, 2, 3]),
            (5, vec![0, 1, 2, 3, 5]),
            (6, vec![0, 1, 2, 3, 5]),
            (9, vec![0, 1, 2, 3, 5]),
        ] {
            assert_eq!(by(count, magnitude), expected, "{count}");
        }
        assert_eq!([by(1, positive), by(2, positive), by(6, positive)], [vec![2], vec![2, 5], vec![0, 2, 5]]);
        assert_eq!(largest(&values, 2, |value| positive(-value)), [1, 3]);
    }

    /// Values with many ties, and with zeros.
    #[test]
    fn the_largest_keys_are_those_of_sorting() {
        let mut values = crate::updates::random_updates(1, 2000).remove(0);
        values.iter_mut().step_by(3).for_each(|x| *x = (*x * 4.0).round());
        for count in [1, 5, 100, 700, 1999, 2000] {
            for key in [magnitude, positive] {
                let mut order: Vec<u32> = (0..2000).filter(|&at| key(values[at as usize]) > 0).collect();
                order.sort_by_key(|&at| std::cmp::Reverse(key(values[at as usize])));
                order.truncate(count);
                order.sort_unstable();
                assert_eq!(largest(&values, count, key), order, "{count}");
            }
        }
    }

    #[test]
    fn uses_are_at_least_two() {
        assert_eq!([1, 10, 4010].map(|parameters| channel_uses(0.5, parameters)), [2, 5, 2005]);
        assert!(require_uses(0.5).is_ok() && require_uses(0.0).is_err() && require_uses(1.5).is_err());
    }
}
