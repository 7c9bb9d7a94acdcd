//! From a pair's seed to its mask: normal values, scaled to `σ_p` and rounded to the grid.
//!
//! The transform is that of [`release`](crate::release): 64 bits for the radius, 62 bits for the angle and the signs, further
//! words where the radius is far or near, no largest value. The words of 128 values are in 16 blocks of ChaCha20 under the
//! seed. Pair `16j + b` of the tile, with `j < 4` and `b < 16`, has word `j` of block `b` for its radius and word `4 + j` for
//! its angle, in 64-bit words; it makes the values `16j + b` and `64 + 16j + b`.
//!
//! ```text
//! p = round(n·(σ_p/q))      in units of q, to the nearest integer, ties to even
//! ```
//!
//! Sums, products, quotients, square roots and fused multiply-adds are correctly rounded everywhere, so that both clients of a
//! pair compute the same integers on every processor. `docs/reference/mask-format.md` lists the operations in their order.

use pulp::Simd;
use zeroize::Zeroizing;

use super::grid::MaskGrid;
use super::keystream::{self, BLOCKS};
use super::pair::{MaskSign, PairSeed};
use crate::release::{ReleaseKey, is_short, minus_ln_continued, minus_ln_uniform, pair};

/// Number of values that are computed from one group of blocks.
pub(super) const TILE: usize = 128;
/// Number of pairs in a tile.
const PAIRS: usize = TILE / 2;

/// `1.5·2⁵²`: added to a number below 2⁵¹ in magnitude, it leaves the nearest integer in the last bits.
const ROUNDING_OFFSET: f64 = 6_755_399_441_055_744.0;
/// Magnitude from which rounding with `ROUNDING_OFFSET` can be incorrect: 2⁵¹.
const ROUNDING_LIMIT: f64 = 2_251_799_813_685_248.0;

/// Adds to `values` the mask of a pair from index `first` on, a multiple of [`TILE`]. Runs on the current thread.
pub(super) fn add(seed: &PairSeed, sign: MaskSign, grid: &MaskGrid, first: usize, values: &mut [i64]) {
    let scale = grid.mask_scale();
    let scale = match sign {
        MaskSign::Plus => scale,
        MaskSign::Minus => -scale,
    };
    pulp::Arch::new().dispatch(Add { key: seed.key(), scale, first, values });
}

struct Add<'a> {
    key: &'a ReleaseKey,
    scale: f64,
    first: usize,
    values: &'a mut [i64],
}

impl pulp::WithSimd for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let key = Zeroizing::new(keystream::key_words(self.key.secret()));
        let mut rows = Zeroizing::new([[0; BLOCKS]; 16]);
        let mut scaled = Zeroizing::new([0.0; TILE]);
        let first_tile = self.first / TILE;
        for (number, values) in self.values.chunks_mut(TILE).enumerate() {
            let tile = first_tile + number;
            // A seed has 2³² blocks, and `mask_update` takes at most 2³⁵ values.
            keystream::fill(simd, &key, (tile * BLOCKS) as u32, &mut rows);
            if write_tile(&rows, self.scale, &mut scaled) {
                continue_short(self.key, (tile * PAIRS) as u64, &rows, self.scale, &mut scaled);
            }
            if let Ok(values) = <&mut [i64; TILE]>::try_from(&mut *values) {
                add_rounded(scaled.as_slice(), values);
            } else {
                add_rounded(&scaled[..values.len()], values);
            }
        }
    }
}

/// The radius word and the angle word of pair `16j + b`.
#[inline(always)]
fn words(rows: &keystream::Rows, j: usize, b: usize) -> [u64; 2] {
    let word = |at: usize| u64::from(rows[at][b]) | u64::from(rows[at + 1][b]) << 32;
    [word(2 * j), word(8 + 2 * j)]
}

/// Writes the scaled values of a tile; returns whether some of its radii need further words.
#[inline(always)]
fn write_tile(rows: &keystream::Rows, scale: f64, tile: &mut [f64; TILE]) -> bool {
    let (left, right) = tile.split_at_mut(PAIRS);
    let mut any_short = false;
    for j in 0..PAIRS / BLOCKS {
        for b in 0..BLOCKS {
            let [radius, angle] = words(rows, j, b);
            let values = pair(minus_ln_uniform(radius), angle);
            left[BLOCKS * j + b] = values[0] * scale;
            right[BLOCKS * j + b] = values[1] * scale;
            any_short |= is_short(radius);
        }
    }
    any_short
}

/// Recomputes the pairs of a tile whose radius words are short, with further words. The tile's first pair has number `first`.
#[cold]
#[inline(never)]
fn continue_short(key: &ReleaseKey, first: u64, rows: &keystream::Rows, scale: f64, tile: &mut [f64; TILE]) {
    for lane in 0..PAIRS {
        let [radius, angle] = words(rows, lane / BLOCKS, lane % BLOCKS);
        if is_short(radius) {
            let minus_ln = minus_ln_continued(radius, &mut key.further_words(first + lane as u64));
            let values = pair(minus_ln, angle);
            [tile[lane], tile[PAIRS + lane]] = values.map(|value| value * scale);
        }
    }
}

/// Adds the nearest integers. Sums wrap beyond 64 bits; that has a negligible probability and no effect on privacy.
#[inline(always)]
fn add_rounded(scaled: &[f64], values: &mut [i64]) {
    let mut wide = false;
    for (value, &scaled) in values.iter_mut().zip(scaled) {
        let integer = (scaled + ROUNDING_OFFSET).to_bits().wrapping_sub(ROUNDING_OFFSET.to_bits());
        *value = value.wrapping_add(integer as i64);
        wide |= scaled.abs() >= ROUNDING_LIMIT;
    }
    if wide {
        correct_wide(scaled, values);
    }
}

/// Corrects the integers of values beyond 2⁵¹, which are at least eight standard deviations.
#[cold]
#[inline(never)]
fn correct_wide(scaled: &[f64], values: &mut [i64]) {
    for (value, &scaled) in values.iter_mut().zip(scaled) {
        let wrong = (scaled + ROUNDING_OFFSET).to_bits().wrapping_sub(ROUNDING_OFFSET.to_bits()) as i64;
        let right = scaled.round_ties_even() as i64;
        *value = value.wrapping_sub(wrong).wrapping_add(right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> MaskGrid {
        MaskGrid::new(20, 8.0, 1.0).unwrap()
    }

    fn seed(byte: u8) -> PairSeed {
        PairSeed::from_bytes([byte; 32])
    }

    fn mask(byte: u8, count: usize) -> Vec<i64> {
        let mut values = vec![0; count];
        add(&seed(byte), MaskSign::Plus, &grid(), 0, &mut values);
        values
    }

    #[test]
    fn portable_and_vector_code_give_the_same_integers() {
        const COUNT: usize = 100 * TILE + 5;
        let mut portable = vec![0; COUNT];
        let (seed, scale) = (seed(1), grid().mask_scale());
        let add = Add { key: seed.key(), scale, first: 0, values: &mut portable };
        pulp::WithSimd::with_simd(add, pulp::Scalar::new());
        assert_eq!(mask(1, COUNT), portable);
    }

    #[test]
    fn values_do_not_depend_on_where_reading_begins() {
        let whole = mask(2, 10 * TILE);
        for (first, count) in [(TILE, 3), (3 * TILE, TILE), (9 * TILE, 70)] {
            let mut part = vec![0; count];
            add(&seed(2), MaskSign::Plus, &grid(), first, &mut part);
            assert_eq!(part, whole[first..first + count]);
        }
    }

    #[test]
    fn minus_takes_away_what_plus_added() {
        let mut values: Vec<i64> = (0..1000).collect();
        let before = values.clone();
        add(&seed(3), MaskSign::Plus, &grid(), 0, &mut values);
        assert!(values.iter().zip(&before).all(|(after, before)| after != before));
        add(&seed(3), MaskSign::Minus, &grid(), 0, &mut values);
        assert_eq!(values, before);
    }

    #[test]
    fn wide_values_are_rounded_as_the_others() {
        let scaled =
            [0.5, -0.5, 1.5, 2.0_f64.powi(51) + 3.0, -(2.0_f64.powi(55)) - 64.0, 2.0_f64.powi(51) - 0.75];
        let mut values = [7; 6];
        add_rounded(&scaled, &mut values);
        let expected = scaled.map(|scaled| 7 + scaled.round_ties_even() as i64);
        assert_eq!(values, expected);
    }

    /// The mask in units of its standard deviation.
    fn normalised(byte: u8, count: usize) -> Vec<f64> {
        let per_std = 1.0 / grid().mask_scale();
        mask(byte, count).into_iter().map(|value| value as f64 * per_std).collect()
    }

    /// Each of 13 numbers is within five standard errors: a false alarm once in 130,000 seeds, and the seed is fixed. A
    /// variance that is off by 10⁻³, or a tail that is off by a twentieth at 4σ, is found with a probability above 0.99.
    #[test]
    fn moments_and_tails_are_normal() {
        const COUNT: usize = 1 << 26;
        let (mut moments, mut beyond, mut product) = ([0.0_f64; 6], [0_u64; 6], 0.0);
        let mut values = vec![0; 1 << 16];
        let (seed, grid) = (seed(4), grid());
        let per_std = 1.0 / grid.mask_scale();
        for first in (0..COUNT).step_by(values.len()) {
            values.fill(0);
            add(&seed, MaskSign::Plus, &grid, first, &mut values);
            for &value in &values {
                let n = value as f64 * per_std;
                let mut power = 1.0;
                for moment in &mut moments {
                    power *= n;
                    *moment += power;
                }
                for (limit, count) in (1_u32..).zip(&mut beyond) {
                    *count += u64::from(n.abs() > f64::from(limit));
                }
            }
            for tile in values.chunks(TILE) {
                let products = (0..PAIRS).map(|lane| tile[lane] as f64 * tile[PAIRS + lane] as f64);
                product += products.sum::<f64>() * per_std * per_std;
            }
        }
        let count = COUNT as f64;
        let exact = [(0.0, 1.0), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0), (0.0, 945.0), (15.0, 10_170.0)];
        for (moment, (mean, variance)) in moments.iter().zip(exact) {
            let z = (moment / count - mean) / f64::sqrt(variance / count);
            assert!(z.abs() < 5.0, "a moment of {mean} is off by {z} standard errors");
        }
        let z = product / (count / 2.0).sqrt();
        assert!(z.abs() < 5.0, "the pairs correlate by {z} standard errors");
        for (limit, &count_beyond) in (1_u32..).zip(&beyond) {
            let expected = count * libm::erfc(f64::from(limit) / std::f64::consts::SQRT_2);
            let z = (count_beyond as f64 - expected) / expected.sqrt();
            assert!(z.abs() < 5.0, "{count_beyond} values beyond {limit}, not {expected:.1}");
        }
    }

    /// Kolmogorov–Smirnov over 2²⁰ values: a false alarm with a probability of 4·10⁻⁵, and the seed is fixed. A distribution
    /// function that is off by 0.004 anywhere is found with a probability above 0.99.
    #[test]
    fn the_distribution_function_is_normal() {
        let mut values = normalised(5, 1 << 20);
        values.sort_by(f64::total_cmp);
        let count = values.len() as f64;
        let cdf = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
        let distance = values
            .iter()
            .enumerate()
            .map(|(rank, &value)| (cdf(value) - (rank as f64 + 0.5) / count).abs())
            .fold(0.0, f64::max);
        assert!(distance * count.sqrt() < 2.3, "{}", distance * count.sqrt());
    }

    /// The radius of some pairs needs further words beyond those of a tile: given `U < 2⁻¹¹`, `−ln U − 11·ln 2` is exponential.
    /// This holds for some 2·10³ pairs of 2²². Five standard errors: a false alarm once in a million seeds.
    #[test]
    fn the_far_tail_is_that_of_the_radius() {
        const COUNT: usize = 1 << 23;
        let values = normalised(6, COUNT);
        let limit = 11.0 * std::f64::consts::LN_2;
        let (mut sum, mut count) = (0.0, 0.0);
        for tile in values.chunks(TILE) {
            for lane in 0..PAIRS {
                let minus_ln = (tile[lane].powi(2) + tile[PAIRS + lane].powi(2)) / 2.0;
                if minus_ln > limit {
                    sum += minus_ln - limit;
                    count += 1.0;
                }
            }
        }
        let expected = COUNT as f64 / 2.0 / 2048.0;
        assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{count} instead of {expected}");
        assert!((sum / count - 1.0).abs() < 5.0 / f64::sqrt(count), "{}", sum / count);
    }

    /// Five standard errors: a false alarm once in two million seeds.
    #[test]
    fn masks_of_different_seeds_are_uncorrelated() {
        let (left, right) = (normalised(7, 1 << 20), normalised(8, 1 << 20));
        let product: f64 = left.iter().zip(&right).map(|(left, right)| left * right).sum();
        assert!(product.abs() < 5.0 * f64::from(1 << 20).sqrt(), "{product}");
    }
}
