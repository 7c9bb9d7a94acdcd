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
    let mut places = places(&keys, |key| key >= threshold);
    let mut excess = places.len().saturating_sub(count);
    for at in (0..places.len()).rev() {
        if excess == 0 {
            break;
        }
        if keys[places[at] as usize] == threshold {
            places.remove(at);
            excess -= 1;
        }
    }
    places
}

/// The `count`th largest key, or 1 if that is 0 or does not exist.
///
/// The bucket of the key is found by counting, and the key by a selection within its bucket. That is several times as fast as a
/// selection among all keys.
fn threshold(keys: &[u32], count: usize) -> u32 {
    const SHIFT: u32 = 20;
    let mut buckets = [0_u32; 1 << (u32::BITS - SHIFT)];
    keys.iter().for_each(|key| buckets[(key >> SHIFT) as usize] += 1);
    let mut above = 0;
    for bucket in (0..buckets.len() as u32).rev() {
        let reached = above + buckets[bucket as usize] as usize;
        if reached >= count {
            let mut inside = places(keys, |key| key >> SHIFT == bucket);
            inside.iter_mut().for_each(|place| *place = keys[*place as usize]);
            let rank = reached - count;
            // No key is to be reached if `count` is 0.
            return if rank < inside.len() { (*inside.select_nth_unstable(rank).1).max(1) } else { u32::MAX };
        }
        above = reached;
    }
    1
}

/// The places of the keys for which `holds` is true, in ascending order.
///
/// Every place is written, and kept unless the next one overwrites it, because a processor cannot predict which keys hold.
fn places(keys: &[u32], holds: impl Fn(u32) -> bool) -> Vec<u32> {
    let (mut places, mut length) = (vec![0; keys.len() + 1], 0);
    for (place, key) in (0..).zip(keys) {
        places[length] = place;
        length += usize::from(holds(*key));
    }
    places.truncate(length);
    places
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

    #[test]
    fn uses_are_at_least_two() {
        assert_eq!([1, 10, 4010].map(|parameters| channel_uses(0.5, parameters)), [2, 5, 2005]);
        assert!(require_uses(0.5).is_ok() && require_uses(0.0).is_err() && require_uses(1.5).is_err());
    }
}
