//! Standard normal values in double precision, 128 at a time.
//!
//! From two words: `U` on (0, 1), an angle `r` on [−π/4, π/4) with 52 bits, and two signs:
//!
//! ```text
//! ρ = √(−ln U),   n₀ = ±ρ(cos r − sin r),   n₁ = ±ρ(cos r + sin r)
//! ```
//!
//! which is the transform of Box and Muller in one quadrant, as in the simulation's generator.
//!
//! # Error
//!
//! Let `U*` and `r*` be uniform real numbers whose first bits are the words', `n*` the exact pair that they make, and
//! `r* = |n*|` its radius. In units of `u = 2⁻⁵³`:
//!
//! | quantity | error | because |
//! |---|---|---|
//! | `−ln U` | `8u`, relative | `uniform` |
//! | `ρ` | `5u`, relative | half of it, and the square root |
//! | angle | `2.4u` | 1.6 for the bits that follow, 0.8 for `π/2` and the product |
//! | `cos r ∓ sin r` | `6.4u` | `√2·2.4` for the angle, 1 each for cosine, sine and their sum |
//! | `n` | `(6.4/√2 + 5 + 1)·u·r* < 11u·r*` | `ρ = r*/√2`, and the product |
//!
//! With the addition to the sum, which `loss` describes, this is below `2⁻⁴⁹·(1 + r*) = 16u·(1 + r*)`.
//!
//! # Citations
//! Box, Muller, *A note on the generation of random normal deviates*, Ann. Math. Statist. 29 (1958).

use std::f64::consts::FRAC_PI_2;

use zeroize::Zeroizing;

use super::key::{ReleaseKey, WordBuffer, Words};
use super::math::{cosine, sine};
use super::uniform::{is_short, minus_ln_continued, minus_ln_uniform};

/// Number of pairs computed in parallel.
const LANES: usize = 64;
/// Number of values computed together.
pub(super) const TILE: usize = 2 * LANES;
/// Number of values whose words are drawn together.
pub(crate) const BLOCK: usize = 8 * TILE;

/// Maximum number of values that can be drawn from one key: 2³⁵.
pub(crate) const MAX_RELEASED: u64 = 1 << 35;

/// The values of one key, drawn block by block. To be inlined into a kernel that runs under `pulp`'s dispatch.
pub(crate) struct Normals<'a> {
    key: &'a ReleaseKey,
    words: Words,
    buffer: WordBuffer<BLOCK>,
    /// The index of the next value.
    next: u64,
    values: Zeroizing<[f64; BLOCK]>,
}

impl<'a> Normals<'a> {
    /// The values from index `first` on, a multiple of [`TILE`].
    pub(crate) fn new(key: &'a ReleaseKey, first: u64) -> Self {
        let (words, buffer) = (key.words_from(first), WordBuffer::new());
        Self { key, words, buffer, next: first, values: Zeroizing::new([0.0; BLOCK]) }
    }

    /// The next [`BLOCK`] values.
    #[inline(always)]
    pub(crate) fn next_block(&mut self) -> &[f64; BLOCK] {
        self.words.fill(&mut self.buffer);
        let (tiles, _) = self.values.as_chunks_mut::<TILE>();
        let (words, _) = self.buffer.bytes().as_chunks::<TILE>();
        for (tile, words) in tiles.iter_mut().zip(words) {
            if write_tile(words, tile) {
                continue_short(self.key, self.next / 2, words, tile);
            }
            self.next += TILE as u64;
        }
        &self.values
    }
}

/// Writes the values of a tile: 64 words for the radius, 64 for the angle. Returns whether some of the former are short.
#[inline(always)]
fn write_tile(words: &[[u8; 8]; TILE], tile: &mut [f64; TILE]) -> bool {
    let (radius_words, angle_words) = words.split_at(LANES);
    let (left, right) = tile.split_at_mut(LANES);
    let mut any_short = false;
    for lane in 0..LANES {
        let word = u64::from_le_bytes(radius_words[lane]);
        let pair = pair(minus_ln_uniform(word), u64::from_le_bytes(angle_words[lane]));
        left[lane] = pair[0];
        right[lane] = pair[1];
        any_short |= is_short(word);
    }
    any_short
}

/// Recomputes the pairs of a tile whose radius words are short, with further words. The tile's first pair has number `first`.
#[cold]
#[inline(never)]
fn continue_short(key: &ReleaseKey, first: u64, words: &[[u8; 8]; TILE], tile: &mut [f64; TILE]) {
    let (radius_words, angle_words) = words.split_at(LANES);
    for lane in 0..LANES {
        let word = u64::from_le_bytes(radius_words[lane]);
        if is_short(word) {
            let mut further = key.further_words(first + lane as u64);
            let minus_ln = minus_ln_continued(word, &mut further);
            [tile[lane], tile[LANES + lane]] = pair(minus_ln, u64::from_le_bytes(angle_words[lane]));
        }
    }
}

/// The pair with a given `−ln U`; an angle of 52 bits and two signs come from a word.
#[inline(always)]
pub(crate) fn pair(minus_ln: f64, angle_word: u64) -> [f64; 2] {
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    const SIGN: u64 = 1 << 63;
    /// Half a step of the angle's bits.
    const HALF_STEP: f64 = 1.0 / 9_007_199_254_740_992.0;
    let rho = minus_ln.sqrt();
    let turn = f64::from_bits(angle_word >> 12 | ONE) - 1.5;
    let r = turn.mul_add(FRAC_PI_2, HALF_STEP * FRAC_PI_2);
    let (sine, cosine) = (sine(r), cosine(r));
    let left = ((cosine - sine) * rho).to_bits() ^ (angle_word << 63);
    let right = ((cosine + sine) * rho).to_bits() ^ (angle_word << 62 & SIGN);
    [f64::from_bits(left), f64::from_bits(right)]
}

/// Writes standard normal values, with the best instructions that this processor has.
///
/// This function is for measurements. Noise for a release is added by
/// [`EffectiveChannel::release_into`](crate::EffectiveChannel::release_into) or [`add_noise_into`](super::add_noise_into),
/// which round the noisy sum to a grid.
pub fn fill_normals(key: ReleaseKey, out: &mut [f64]) {
    pulp::Arch::new().dispatch(Fill { key: &key, out });
}

struct Fill<'a> {
    key: &'a ReleaseKey,
    out: &'a mut [f64],
}

impl pulp::WithSimd for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let mut normals = Normals::new(self.key, 0);
        for block in self.out.chunks_mut(BLOCK) {
            block.copy_from_slice(&normals.next_block()[..block.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{LN_2, SQRT_2};

    use statrs::distribution::{ContinuousCDF, Normal};

    use super::super::double_double::{self, DoubleDouble, ln_1p, sine_cosine};
    use super::*;

    const U: f64 = f64::EPSILON / 2.0;

    fn key(byte: u8) -> ReleaseKey {
        ReleaseKey::known([byte; 32])
    }

    /// `−ln((word + part)/2⁶⁴)` in double-double arithmetic.
    fn exact_minus_ln(word: u64, part: f64) -> DoubleDouble {
        let zeros = word.leading_zeros();
        let mantissa = word << zeros;
        let whole = DoubleDouble::of((mantissa >> 32) as f64 * 2.0_f64.powi(-32))
            .add(DoubleDouble::of((mantissa & 0xffff_ffff) as f64 * 2.0_f64.powi(-64)))
            .add(DoubleDouble::of(part * f64::from(zeros).exp2() * 2.0_f64.powi(-64)));
        // In (½, 1], because the series converges fast near 1.
        let (value, halvings) = if whole.0 < 0.7 { (whole.add(whole), 1.0) } else { (whole, 0.0) };
        let ln = ln_1p(value.add(DoubleDouble::of(-1.0)));
        let exponent = DoubleDouble::of(f64::from(zeros) + halvings);
        exponent.times(double_double::LN_2).add(ln.negated())
    }

    fn exact_pair(word: u64, angle_word: u64, part: f64) -> [DoubleDouble; 2] {
        let rho = exact_minus_ln(word, part).sqrt();
        let step = DoubleDouble::of((angle_word >> 12) as f64).add(DoubleDouble::of(part));
        let turn = step.times(DoubleDouble::of(2.0_f64.powi(-52))).add(DoubleDouble::of(-0.5));
        let (sine, cosine) = sine_cosine(turn.times(double_double::FRAC_PI_2));
        let sign = |bit: u64, value: DoubleDouble| if bit & 1 == 1 { value.negated() } else { value };
        let left = rho.times(cosine.add(sine.negated()));
        let right = rho.times(cosine.add(sine));
        [sign(angle_word, left), sign(angle_word >> 1, right)]
    }

    /// The bits that follow a word are arbitrary: the bound must hold at both ends of their range.
    #[test]
    fn values_err_by_eleven_units_of_the_radius() {
        let mut words = key(1).words_from(0);
        let mut worst = 0.0_f64;
        for step in 0..200_000 {
            // All magnitudes on both sides.
            let mut word = words.next_word() >> (step % 11);
            if step & 1 == 1 {
                word = !word;
            }
            if is_short(word) {
                continue;
            }
            let angle_word = words.next_word();
            let computed = pair(minus_ln_uniform(word), angle_word);
            for part in [0.0, 1.0] {
                let [left, right] = exact_pair(word, angle_word, part);
                let radius = left.0.hypot(right.0);
                let error = left.minus(computed[0]).abs().max(right.minus(computed[1]).abs());
                worst = worst.max(error / radius);
            }
        }
        assert!(worst <= 11.0 * U, "{} units", worst / U);
        assert!(worst >= 3.0 * U, "the reference sees only {} units", worst / U);
    }

    #[test]
    fn portable_and_vector_code_give_the_same_bits() {
        let mut vectorised = vec![0.0; 20 * BLOCK + 5];
        fill_normals(key(2), &mut vectorised);
        let key = key(2);
        let mut normals = Normals::new(&key, 0);
        let portable: Vec<f64> = (0..21).flat_map(|_| *normals.next_block()).collect();
        assert_eq!(vectorised, portable[..vectorised.len()]);
        // Some of these 10,000 pairs have short words: one in 1024 has.
        let mut words = key.words_from(0);
        let short = (0..20 * BLOCK / TILE)
            .map(|_| (0..TILE).filter(|&at| is_short(words.next_word()) && at < LANES).count())
            .sum::<usize>();
        assert!((2..30).contains(&short), "{short}");
    }

    #[test]
    fn values_do_not_depend_on_where_reading_begins() {
        let key = key(3);
        let mut from_start = Normals::new(&key, 0);
        from_start.next_block();
        let second = *from_start.next_block();
        assert_eq!(second, *Normals::new(&key, BLOCK as u64).next_block());
        assert_eq!(second[TILE..2 * TILE], Normals::new(&key, (BLOCK + TILE) as u64).next_block()[..TILE]);
    }

    /// Each of 13 numbers is within five standard errors: a false alarm once in 130,000 keys, and the key is fixed. A variance
    /// that is off by 10⁻³, or a tail that is off by a twentieth at 4σ, is found with a probability above 0.99.
    #[test]
    fn moments_and_tails_are_normal() {
        const COUNT: usize = 1 << 26;
        let key = key(4);
        let mut normals = Normals::new(&key, 0);
        let mut moments = [0.0_f64; 6];
        let mut beyond = [0_u64; 6];
        let mut product = 0.0;
        for _ in 0..COUNT / BLOCK {
            let block = normals.next_block();
            for &n in block {
                let mut power = 1.0;
                for moment in &mut moments {
                    power *= n;
                    *moment += power;
                }
                for (limit, count) in (1_u32..).zip(&mut beyond) {
                    *count += u64::from(n.abs() > f64::from(limit));
                }
            }
            // Within the pairs, and between neighbours.
            for tile in block.chunks(TILE) {
                product += (0..LANES).map(|lane| tile[lane] * tile[LANES + lane]).sum::<f64>();
            }
        }
        let count = COUNT as f64;
        let exact = [(0.0, 1.0), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0), (0.0, 945.0), (15.0, 10_170.0)];
        for (moment, (mean, variance)) in moments.iter().zip(exact) {
            let z = (moment / count - mean) / (variance / count).sqrt();
            assert!(z.abs() < 5.0, "a moment of {mean} is off by {z} standard errors");
        }
        let z = product / (count / 2.0).sqrt();
        assert!(z.abs() < 5.0, "the pairs correlate by {z} standard errors");
        for (limit, &count_beyond) in (1_u32..).zip(&beyond) {
            let expected = count * libm::erfc(f64::from(limit) / SQRT_2);
            let z = (count_beyond as f64 - expected) / expected.sqrt();
            assert!(z.abs() < 5.0, "{count_beyond} values beyond {limit}, not {expected:.1}");
        }
    }

    /// Kolmogorov–Smirnov over 2²⁰ values: a false alarm with a probability of 4·10⁻⁵, and the key is fixed. A distribution
    /// function that is off by 0.004 anywhere is found with a probability above 0.99.
    #[test]
    fn the_distribution_function_is_normal() {
        let mut values = vec![0.0; 1 << 20];
        fill_normals(key(5), &mut values);
        values.sort_by(f64::total_cmp);
        let normal = Normal::standard();
        let count = values.len() as f64;
        let distance = values
            .iter()
            .enumerate()
            .map(|(rank, &value)| (normal.cdf(value) - (rank as f64 + 0.5) / count).abs())
            .fold(0.0, f64::max);
        assert!(distance * count.sqrt() < 2.3, "{}", distance * count.sqrt());
    }

    /// Words that begin with 32 zeros: `r > 6.66`, where the simulation's generator ends. Given that, `−ln U − 32·ln 2` is
    /// exponential, whatever the scale. Five standard errors: a false alarm once in a million keys, and the key is fixed.
    #[test]
    fn the_tail_extends_beyond_the_simulations_end() {
        const COUNT: u32 = 1 << 20;
        let key = key(6);
        let mut words = key.words_from(0);
        let (mut sum, mut beyond_eight) = (0.0, 0);
        for number in 0..COUNT {
            let word = words.next_word() >> 32;
            let minus_ln = minus_ln_continued(word, &mut key.further_words(number.into()));
            assert!((2.0 * minus_ln).sqrt() > 6.66);
            sum += minus_ln - 32.0 * LN_2;
            beyond_eight += u32::from((2.0 * minus_ln).sqrt() > 8.0);
        }
        let count = f64::from(COUNT);
        assert!((sum / count - 1.0).abs() < 5.0 / count.sqrt(), "{}", sum / count);
        // P(r > 8 | U < 2⁻³²) = e^{−32}·2³².
        let expected = count * (32.0 * LN_2 - 32.0).exp();
        assert!(
            (f64::from(beyond_eight) - expected).abs() < 5.0 * expected.sqrt(),
            "{beyond_eight} {expected}"
        );
    }
}
