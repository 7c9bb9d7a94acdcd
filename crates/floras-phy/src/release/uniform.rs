//! Uniform values on (0, 1) with at least 53 significant bits at both ends, as their logarithm.
//!
//! A word `w` of 64 bits means that `U` lies in `[w, w + 1)·2⁻⁶⁴`. The double next to `w·2⁻⁶⁴` then has a relative error of
//! at most `2⁻⁵² = 2u`, as long as `w ≥ 2⁵³`. The double next to `(2⁶⁴ − 1 − w)·2⁻⁶⁴` approximates `1 − U` equally well, as
//! long as `w < 2⁶⁴ − 2⁵³`. Near 1 the logarithm is computed from `1 − U`. The other words, one in 1024, are continued by
//! further words, as many as are needed: `U` has no smallest and no largest value.

use super::key::Words;
use super::math::minus_ln;

/// Words from this one on are near 1: `√½·2⁶⁴`, rounded up.
const NEAR_ONE: u64 = 13_043_817_825_332_782_213;
/// Words below this one, and words within the same distance of 2⁶⁴, need further words.
const SHORT: u64 = 1 << 53;
/// Value of the last bit of a word: 2⁻⁶⁴.
const LAST_BIT: f64 = 1.0 / 18_446_744_073_709_551_616.0;

/// Whether a word has too few significant bits on one of its sides.
#[inline(always)]
pub(crate) fn is_short(word: u64) -> bool {
    word.wrapping_sub(SHORT) >= 0_u64.wrapping_sub(2 * SHORT)
}

/// `−ln U` for a word that is not short, with a relative error of at most `8u`: at most `5.8u` from `U`, `2u` from the
/// logarithm.
#[inline(always)]
pub(crate) fn minus_ln_uniform(word: u64) -> f64 {
    let (k, f) = reduced(word as f64 * LAST_BIT);
    let below_one = !word as f64 * -LAST_BIT;
    minus_ln(k, if word >= NEAR_ONE { below_one } else { f })
}

/// `−ln U` for any word, with the words that follow it if it is short.
pub(crate) fn minus_ln_continued(word: u64, further: &mut Words) -> f64 {
    if !is_short(word) {
        return minus_ln_uniform(word);
    }
    if word < SHORT {
        let (zeros, significant) = significant(word, || further.next_word());
        let (k, f) = reduced(significant);
        return minus_ln(k - 64.0 * zeros, f);
    }
    let (zeros, significant) = significant(!word, || !further.next_word());
    minus_ln(0.0, -significant * LAST_BIT.powf(zeros))
}

/// Reads words up to and including the one after the first nonzero word. Returns the number of zero words, and the fraction
/// that the last two words represent, with a relative error of at most `2u`.
fn significant(first: u64, mut next: impl FnMut() -> u64) -> (f64, f64) {
    let (mut zeros, mut high) = (0.0, first);
    while high == 0 {
        zeros += 1.0;
        high = next();
    }
    let both = u128::from(high) << 64 | u128::from(next());
    (zeros, both as f64 * LAST_BIT * LAST_BIT)
}

/// `u = 2^k·(1 + f)` with `√½ ≤ 1 + f < √2`, exactly, for `2⁻¹²⁸ ≤ u ≤ 1`.
#[inline(always)]
fn reduced(u: f64) -> (f64, f64) {
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    const MANTISSA: u64 = (1 << 52) - 1;
    const BIAS: u64 = 1024;
    // The bits of 2⁵², to which a small integer is added without a conversion, which many processors lack.
    const TWO_TO_52: u64 = 0x4330_0000_0000_0000;
    let bits = u.to_bits().wrapping_sub(SQRT_HALF);
    let exponent = bits.wrapping_add(BIAS << 52) >> 52;
    let k = f64::from_bits(exponent | TWO_TO_52) - (4_503_599_627_370_496.0 + BIAS as f64);
    (k, f64::from_bits((bits & MANTISSA) + SQRT_HALF) - 1.0)
}

#[cfg(test)]
mod tests {
    use super::super::key::ReleaseKey;
    use super::*;

    fn further() -> Words {
        ReleaseKey::known([5; 32]).further_words(3)
    }

    #[test]
    fn short_words_are_those_near_both_ends() {
        let far = u64::MAX - SHORT;
        for (word, expected) in [
            (0, true),
            (SHORT - 1, true),
            (SHORT, false),
            (1 << 63, false),
            (far, false),
            (far + 1, true),
            (u64::MAX, true),
        ] {
            assert_eq!(is_short(word), expected, "{word}");
        }
        let square = |word: u64| u128::from(word).pow(2);
        assert!(square(NEAR_ONE) >= 1 << 127 && square(NEAR_ONE - 1) < 1 << 127);
    }

    #[test]
    fn an_argument_is_reduced_exactly() {
        for u in [1.0, 0.999, 0.5_f64.sqrt(), 0.7, 0.5, 1e-3, 2.0_f64.powi(-64), 1.3e-30] {
            let (k, f) = reduced(u);
            assert_eq!(k.exp2() * (1.0 + f), u);
            assert!(k <= 0.0 && (0.5_f64.sqrt()..2.0_f64.sqrt()).contains(&(1.0 + f)), "{u}: {k} {f}");
        }
    }

    /// Both sides of the word from which the logarithm is computed from `1 − U`.
    #[test]
    fn the_logarithm_has_no_step_near_one() {
        let at = |word: u64| minus_ln_uniform(word);
        for word in [NEAR_ONE - 2048, NEAR_ONE - 1, NEAR_ONE, NEAR_ONE + 2048] {
            let exact = -(word as f64 * LAST_BIT).ln();
            assert!((at(word) - exact).abs() <= 4.0 * f64::EPSILON * exact, "{word}");
        }
        assert!(at(NEAR_ONE - 4096) > at(NEAR_ONE) && at(NEAR_ONE) > at(NEAR_ONE + 4096));
    }

    #[test]
    fn a_zero_word_extends_the_simulated_range() {
        // −ln U > 64·ln 2 = 44.4, which is a radius of 9.4.
        let far = minus_ln_continued(0, &mut further());
        assert!((44.36..120.0).contains(&far), "{far}");
        assert!((2.0 * far).sqrt() > 9.4);
        // Each zero word adds 64·ln 2, without a limit.
        let mut words = [0, 0, 0, 1 << 63, 0].into_iter();
        let (zeros, value) = significant(0, || words.next().unwrap());
        assert_eq!((zeros, value), (4.0, 0.5));
        let (k, f) = reduced(value);
        assert!((minus_ln(k - 64.0 * zeros, f) - 257.0 * std::f64::consts::LN_2).abs() < 1e-12);
    }

    #[test]
    fn a_word_of_ones_has_all_its_digits() {
        // 1 − U < 2⁻⁶⁴, where the double next to U is 1.
        let near = minus_ln_continued(u64::MAX, &mut further());
        assert!(near > 0.0 && near < LAST_BIT, "{near}");
        let word = !5;
        let next = further().next_word();
        let expected = (5.0 + (!next as f64) * LAST_BIT) * LAST_BIT;
        let near = minus_ln_continued(word, &mut further());
        assert!((near / expected - 1.0).abs() < 4.0 * f64::EPSILON, "{near} {expected}");
    }

    #[test]
    fn a_short_word_and_its_neighbour_agree() {
        let (short, long) = (SHORT - 1, SHORT);
        let difference = minus_ln_continued(short, &mut further()) - minus_ln_uniform(long);
        assert!((0.0..2.0_f64.powi(-51)).contains(&difference.abs()), "{difference}");
    }
}
