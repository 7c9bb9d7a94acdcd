//! Standard normal numbers, 128 at a time, without a branch and with the same bits on every processor.
//!
//! From two words of Philox, `u` uniform on (0, 1] and an angle `π/4 + r` with `r` uniform on [−π/4, π/4):
//!
//! ```text
//! ρ = √(−ln u),   n₀ = ±ρ(cos r − sin r),   n₁ = ±ρ(cos r + sin r)
//! ```
//!
//! which is the transform of Box and Muller, `√(−2 ln u)·(cos, sin)(π/4 + r)`, in one quadrant, with two random
//! signs for the other three. Logarithm and sine are polynomials over fused multiply-adds: every processor computes
//! the same bits, and those with vector units do so for 8 or 16 numbers at once. `u` has 31 bits and a half step, so that
//! numbers reach ±6.66; a standard normal exceeds this once in 37 billion draws.
//!
//! # Citations
//! Box, Muller, *A note on the generation of random normal deviates*, Ann. Math. Statist. 29 (1958).

use std::f32::consts::{FRAC_PI_2, LN_2};

use super::{StreamName, philox};

/// Blocks of Philox computed together: two vectors of the widest kind, so that one computes while the other waits.
pub(super) const LANES: usize = 32;
/// Numbers in one tile, the unit in which normal numbers are made.
pub const TILE: usize = 4 * LANES;

/// One tile of numbers.
pub type Tile = [f32; TILE];

/// A stream of independent standard normal numbers with random access by index.
///
/// ```
/// use floras_core::random::{Purpose, StreamName, TILE};
///
/// let field = StreamName::new(1, Purpose::PAYLOAD_NOISE).normals();
/// let mut all = vec![0.0; 1000];
/// field.fill(0, &mut all);
/// let mut from_the_third_tile = vec![0.0; 100];
/// field.fill(3, &mut from_the_third_tile);
/// assert_eq!(all[3 * TILE..3 * TILE + 100], from_the_third_tile);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormalField {
    name: StreamName,
}

impl NormalField {
    /// Number of tiles in a field: 2³⁵, which is 4·10¹² numbers.
    pub const TILES: u64 = 1 << 35;

    pub(super) const fn new(name: StreamName) -> Self {
        Self { name }
    }

    /// Fills `out` with the numbers from index `TILE * first_tile`, using the best instructions of this processor. The field
    /// repeats after its last tile.
    pub fn fill(&self, first_tile: u64, out: &mut [f32]) {
        pulp::Arch::new().dispatch(Fill { field: self, first_tile, out });
    }

    /// [`fill`](Self::fill) on the instructions that the caller is compiled for.
    #[inline(always)]
    pub fn fill_portably(&self, first_tile: u64, out: &mut [f32]) {
        let (tiles, rest) = out.as_chunks_mut::<TILE>();
        let rest_at = first_tile.wrapping_add(tiles.len() as u64);
        for (offset, tile) in tiles.iter_mut().enumerate() {
            *tile = tile_of_normals(self, first_tile.wrapping_add(offset as u64));
        }
        if !rest.is_empty() {
            rest.copy_from_slice(&tile_of_normals(self, rest_at)[..rest.len()]);
        }
    }
}

/// A call of [`NormalField::fill`]. A closure would do, but the compiler does not inline it into `pulp`'s dispatch.
struct Fill<'a> {
    field: &'a NormalField,
    first_tile: u64,
    out: &'a mut [f32],
}

impl pulp::WithSimd for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        self.field.fill_portably(self.first_tile, self.out);
    }
}

/// The numbers with indices `TILE·tile .. TILE·(tile + 1)`. To be inlined into a kernel that runs under `pulp`'s dispatch.
#[inline(always)]
pub fn tile_of_normals(field: &NormalField, tile: u64) -> Tile {
    let [w0, w1, w2, w3] = blocks_of_tile(field.name, tile);

    let mut out = [0.0; TILE];
    let (first, second) = out.split_at_mut(2 * LANES);
    write_pairs(&w0, &w1, first);
    write_pairs(&w2, &w3, second);
    out
}

/// The blocks with numbers `LANES·tile .. LANES·(tile + 1)`; word `j` of lane `i` is at `[j][i]`.
#[inline(always)]
pub(super) fn blocks_of_tile(name: StreamName, tile: u64) -> [[u32; LANES]; 4] {
    let first_block = tile.wrapping_mul(LANES as u64);
    let [named, round, client] = name.counter_tail((first_block >> 32) as u8);
    let mut block = [0; LANES];
    for (lane, block) in block.iter_mut().enumerate() {
        *block = first_block as u32 + lane as u32;
    }
    philox::blocks(name.key(), [block, [named; LANES], [round; LANES], [client; LANES]])
}

#[inline(always)]
fn write_pairs(radius_words: &[u32; LANES], angle_words: &[u32; LANES], out: &mut [f32]) {
    let (left, right) = out.split_at_mut(LANES);
    for lane in 0..LANES {
        let pair = normal_pair(radius_words[lane], angle_words[lane]);
        left[lane] = pair[0];
        right[lane] = pair[1];
    }
}

#[inline(always)]
fn normal_pair(radius_word: u32, angle_word: u32) -> [f32; 2] {
    const SIGN: u32 = 1 << 31;
    // Through i32, because converting unsigned words takes several instructions where there is no AVX-512.
    let uniform = ((radius_word >> 1) as i32 as f32 + 0.5) * (0.5_f32).powi(31);
    let rho = minus_ln(uniform).sqrt();
    let angle = (angle_word << 2) as i32 as f32 * (FRAC_PI_2 * (0.5_f32).powi(32));
    let (sine, cosine) = (sine(angle), cosine(angle));
    let left = ((cosine - sine) * rho).to_bits() ^ (angle_word & SIGN);
    let right = ((cosine + sine) * rho).to_bits() ^ (angle_word << 1 & SIGN);
    [f32::from_bits(left), f32::from_bits(right)]
}

/// `−ln u` for positive, normal `u`: `u = 2^e·(1 + f)` with `1 + f` in [√½, √2), and `ln(1 + f)` as a Chebyshev fit.
#[inline(always)]
fn minus_ln(u: f32) -> f32 {
    const SQRT_HALF: u32 = 0x3f35_04f3;
    const MANTISSA: u32 = 0x007f_ffff;
    const FIT: [f32; 9] = [
        0.333_333_3,
        -0.249_999_97,
        0.200_007_16,
        -0.166_678_02,
        0.142_490_58,
        -0.124_256_87,
        0.116_854_2,
        -0.114_797_34,
        0.069_716_11,
    ];
    let bits = u.to_bits().wrapping_sub(SQRT_HALF);
    let exponent = (bits as i32 >> 23) as f32;
    let f = f32::from_bits((bits & MANTISSA) + SQRT_HALF) - 1.0;
    let f2 = f * f;
    // ln(1 + f) = f − f²/2 + f³·fit(f)
    let curve = (polynomial(&FIT, f) * f).mul_add(f2, -0.5 * f2);
    -exponent.mul_add(LN_2, f + curve)
}

/// `sin r` on [−π/4, π/4].
#[inline(always)]
fn sine(r: f32) -> f32 {
    const FIT: [f32; 3] = [-0.166_666_65, 0.008_332_748, -0.000_195_878_9];
    let r2 = r * r;
    (polynomial(&FIT, r2) * r2).mul_add(r, r)
}

/// `cos r` on [−π/4, π/4].
#[inline(always)]
fn cosine(r: f32) -> f32 {
    const FIT: [f32; 3] = [0.041_666_664, -0.001_388_830_3, 0.000_024_547_942];
    let r2 = r * r;
    (polynomial(&FIT, r2) * r2).mul_add(r2, (-0.5_f32).mul_add(r2, 1.0))
}

/// Horner's rule, lowest coefficient first.
#[inline(always)]
fn polynomial<const TERMS: usize>(coefficients: &[f32; TERMS], x: f32) -> f32 {
    let mut value = coefficients[TERMS - 1];
    for coefficient in coefficients[..TERMS - 1].iter().rev() {
        value = value.mul_add(x, *coefficient);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::super::Purpose;
    use super::*;

    #[test]
    fn logarithm_and_sines_are_within_three_ulps() {
        for step in 0..1_000_000 {
            let t = (step as f32 + 0.5) / 1e6;
            for u in [t, t.powi(4).max(1e-10)] {
                let exact = -f64::from(u).ln();
                let error = (f64::from(minus_ln(u)) - exact).abs();
                assert!(error <= 3.6e-7 * exact.max(1e-9), "minus_ln({u}) is off by {error}");
            }
            let r = (t - 0.5) * FRAC_PI_2;
            assert!((f64::from(sine(r)) - f64::from(r).sin()).abs() < 1.2e-7);
            assert!((f64::from(cosine(r)) - f64::from(r).cos()).abs() < 1.2e-7);
        }
    }

    #[test]
    fn extreme_words_give_finite_numbers_within_reach() {
        for radius in [0, 1, 2, u32::MAX - 1, u32::MAX] {
            for angle in [0, 1, 1 << 29, 1 << 30, 1 << 31, (1 << 31) - 1, u32::MAX] {
                for n in normal_pair(radius, angle) {
                    assert!(n.is_finite() && n.abs() < 6.67, "{radius} {angle} gave {n}");
                }
            }
        }
        assert!(normal_pair(0, 1 << 29)[0] > 6.66);
    }

    #[test]
    fn portable_and_vector_code_give_the_same_bits() {
        let field = StreamName::new(9, Purpose::PAYLOAD_NOISE).normals();
        let mut vectorised = vec![0.0; 10 * TILE + 5];
        field.fill(7, &mut vectorised);
        let mut portable = vec![0.0; 10 * TILE + 5];
        field.fill_portably(7, &mut portable);
        assert_eq!(vectorised, portable);
    }

    /// Tile 2²⁸ + 3 begins with block 2³³ + 96.
    #[test]
    fn the_block_number_carries_into_its_upper_bits() {
        let name = StreamName::new(9, Purpose::PAYLOAD_NOISE);
        let tile = tile_of_normals(&name.normals(), (1 << 28) + 3);
        let counter = [96, u32::from(Purpose::PAYLOAD_NOISE.0) << 8 | 2, 0, 0];
        let [w0, w1, w2, w3] = rand_philox::philox4x32_10(counter, [9, 0]);
        let expected = [normal_pair(w0, w1), normal_pair(w2, w3)].concat();
        assert_eq!([tile[0], tile[LANES], tile[2 * LANES], tile[3 * LANES]].as_slice(), expected);
    }
}
