//! The optimal composition of pure mechanisms: the smallest `ε` that `T` rounds of `u`-DP are guaranteed to meet at `δ`.
//!
//! The worst `u`-DP mechanism answers one bit, and lies with probability `1/(1 + e^u)`. With `l` lies among `T` rounds the
//! loss is `(T − 2l)u`, so that
//!
//! ```text
//! δ(ε) = Σ_l C(T, l)·[e^{(T−l)u} − e^{ε+lu}]₊ / (1 + e^u)^T = Σ_l P(l)·[1 − e^{ε−(T−2l)u}]₊,   l ~ Bin(T, 1/(1 + e^u))
//! ```
//!
//! Between two neighbouring losses this is linear in `e^ε`. One pass upwards in `l`, from where the terms begin to matter,
//! finds the piece that contains `δ`. The piece is solved in closed form. This takes about `√T` steps, without
//! subtractions.
//!
//! # Citations
//! Kairouz, Oh, Viswanath, *The composition theorem for differential privacy*, IEEE Trans. Inf. Theory 63, 2017, theorem
//! 3.3. Loader, *Fast and accurate computation of binomial probabilities*, 2000: `P(l)` without large cancelling terms.

use std::f64::consts::TAU;

/// Terms below `e^{−70}·δ` are left out: all of them together are below `10⁻²¹·δ`.
const LEAST: f64 = 70.0;
/// Coefficients of Stirling's series for `ln n!`.
const STIRLING: [f64; 5] = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0];

/// The smallest `ε ≥ 0` with `δ(ε) ≤ δ`, for `u > 0`, `rounds ≥ 1` and `0 < δ < 1`.
pub(crate) fn optimal_epsilon(u: f64, rounds: u64, delta: f64) -> f64 {
    let log_mass = |lies: u64| log_binomial(lies, rounds, u) - delta.ln();
    let mut lies = first_that_matters(log_mass, most_likely(rounds, u));
    // In units of δ: P(l), Σ_{j<l} P(j)·e^{−2(l−j)u}, and δ(ε) at ε = (T − 2l)u.
    let (mut mass, mut held, mut spent) = (log_mass(lies).exp(), 0.0, 0.0);
    let step = -(-2.0 * u).exp_m1();
    while 2 * lies < rounds {
        let slope = held + mass;
        if spent + slope * step >= 1.0 {
            let back = -(-(1.0 - spent) / slope).ln_1p();
            return ((rounds - 2 * lies) as f64 * u - back.min(2.0 * u)).max(0.0);
        }
        spent += slope * step;
        held = slope * (-2.0 * u).exp();
        mass *= (rounds - lies) as f64 / (lies + 1) as f64 * (-u).exp();
        lies += 1;
    }
    0.0
}

/// The smallest `l` up to `mode` whose mass is not negligible; masses increase up to the mode.
fn first_that_matters(log_mass: impl Fn(u64) -> f64, mode: u64) -> u64 {
    let (mut below, mut above) = (0, mode);
    while below < above {
        let middle = below + (above - below) / 2;
        if log_mass(middle) >= -LEAST { above = middle } else { below = middle + 1 }
    }
    above
}

/// The mode of `Bin(T, 1/(1 + e^u))`.
fn most_likely(rounds: u64, u: f64) -> u64 {
    (((rounds + 1) as f64 / (1.0 + u.exp())) as u64).min(rounds / 2)
}

/// `ln P(l)` for `l` lies among `T` rounds, `l ≤ T/2`.
fn log_binomial(lies: u64, rounds: u64, u: f64) -> f64 {
    let all = rounds as f64;
    if lies == 0 {
        return -all * (-u).exp().ln_1p();
    }
    let (lies, truths) = (lies as f64, (rounds - lies) as f64);
    stirling_error(all)
        - stirling_error(lies)
        - stirling_error(truths)
        - deviance(lies, all / (1.0 + u.exp()))
        - deviance(truths, all / (1.0 + (-u).exp()))
        + 0.5 * (all / (TAU * lies * truths)).ln()
}

/// `ln n! − ln(√(2πn)·(n/e)^n)`.
fn stirling_error(n: f64) -> f64 {
    if n <= 15.0 {
        return libm::lgamma(n + 1.0) - (n + 0.5) * n.ln() + n - 0.5 * TAU.ln();
    }
    STIRLING.iter().rev().fold(0.0, |sum, term| sum / (n * n) + term) / n
}

/// `x·ln(x/m) + m − x`, by its series where `x` is close to `m`.
fn deviance(x: f64, m: f64) -> f64 {
    let v = (x - m) / (x + m);
    if v.abs() >= 0.1 {
        return x * (x / m).ln() + m - x;
    }
    let mut sum = (x - m) * v;
    let mut power = 2.0 * x * v;
    for order in 1..=9 {
        power *= v * v;
        sum += power / f64::from(2 * order + 1);
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `δ(ε)` term by term.
    fn delta(epsilon: f64, u: f64, rounds: u64) -> f64 {
        let mut log_choose = 0.0;
        let mut sum = 0.0;
        for lies in 0..=rounds {
            let loss = (rounds as f64 - 2.0 * lies as f64) * u;
            if loss > epsilon {
                let log_mass = log_choose - lies as f64 * u - rounds as f64 * (-u).exp().ln_1p();
                sum += log_mass.exp() * -(epsilon - loss).exp_m1();
            }
            log_choose += ((rounds - lies) as f64 / (lies + 1) as f64).ln();
        }
        sum
    }

    #[test]
    fn one_round_is_slightly_below_its_bound() {
        // δ = (e^u − e^ε)/(1 + e^u).
        for (u, allowed) in [(0.02_f64, 1e-5), (1.0, 0.1), (50.0, 0.5)] {
            let expected = (u.exp() - allowed * (1.0 + u.exp())).ln();
            assert!((optimal_epsilon(u, 1, allowed) / expected - 1.0).abs() < 1e-12);
        }
    }

    /// Expected values are from sums in 50-digit arithmetic.
    #[test]
    fn many_rounds_agree_with_long_arithmetic() {
        for (u, rounds, delta, expected) in [
            (0.02, 10, 1e-5, 0.190_686_595_566_631),
            (0.02, 1000, 1e-5, 2.590_618_990_173_76),
            (0.5, 100, 1e-9, 38.369_194_280_606_0),
            (3.0, 50, 1e-6, 149.999_988_648_235),
            (50.0, 20, 1e-5, 999.999_989_999_95),
            (1e-3, 1_000_000, 1e-5, 4.377_171_092_662_96),
            (0.3, 100_000, 1e-15, 5_209.624_336_942_63),
            (1e-9, 1_000_000, 1e-10, 3.363_013_253_372_05e-6),
            (20.0, 1000, 0.3, 19_999.643_324_172_7),
            (1e-4, 1_000_000, 0.02, 0.050_877_965_637_630_4),
        ] {
            let error = optimal_epsilon(u, rounds, delta) / expected - 1.0;
            assert!(error.abs() < 1e-11, "u = {u}, T = {rounds}: off by {error:e}");
        }
    }

    #[test]
    fn a_large_delta_needs_no_epsilon() {
        assert_eq!(optimal_epsilon(1e-9, 1_000_000, 1e-5), 0.0);
        assert_eq!(optimal_epsilon(1e-70, 1, 1e-5), 0.0);
        assert_eq!(optimal_epsilon(1.0, 2, 0.9), 0.0);
    }

    #[test]
    fn masses_add_up_to_one() {
        for (rounds, u) in [(1_u64, 0.3), (2, 1e-9), (31, 0.1), (501, 2.0)] {
            let upper = |lies: u64| log_binomial(lies, rounds, u).exp();
            // P(T − l) = P(l)·e^{−(T − 2l)u}.
            let both = |lies: u64| upper(lies) * (1.0 + (-((rounds - 2 * lies) as f64) * u).exp());
            let half: f64 = (0..rounds.div_ceil(2)).map(both).sum();
            let middle = if rounds % 2 == 0 { upper(rounds / 2) } else { 0.0 };
            assert!((half + middle - 1.0).abs() < 1e-13, "T = {rounds}: {}", half + middle);
        }
    }

    proptest! {
        #[test]
        fn the_sum_term_by_term_gives_back_delta(
            log_u in -9.0_f64..1.7,
            rounds in 1_u64..2000,
            log_delta in -15.0_f64..-0.3,
        ) {
            let (u, allowed) = (10_f64.powf(log_u), 10_f64.powf(log_delta));
            let epsilon = optimal_epsilon(u, rounds, allowed);
            prop_assert!((0.0..=rounds as f64 * u).contains(&epsilon));
            let back = delta(epsilon, u, rounds);
            // A rounding of ε changes δ by a similar relative amount.
            let slack = 1e-9 * allowed + 1e-15 * epsilon;
            if epsilon == 0.0 {
                prop_assert!(back <= allowed + slack, "{back}");
            } else {
                prop_assert!((back - allowed).abs() <= slack, "{back} for {allowed} at {epsilon}");
            }
        }

        #[test]
        fn epsilon_is_monotone_in_every_parameter(
            log_u in -9.0_f64..2.4,
            log_rounds in 0.0_f64..9.0,
            log_delta in -299.0_f64..-1e-9,
            step in 1e-3_f64..1.0,
        ) {
            let (u, rounds) = (10_f64.powf(log_u), 10_f64.powf(log_rounds) as u64);
            let allowed = 10_f64.powf(log_delta);
            let here = optimal_epsilon(u, rounds, allowed);
            let slack = 1e-9 * here;
            prop_assert!((0.0..=rounds as f64 * u).contains(&here));
            prop_assert!(optimal_epsilon(u * (1.0 + step), rounds, allowed) >= here - slack);
            prop_assert!(optimal_epsilon(u, rounds + 1, allowed) >= here - slack);
            prop_assert!(optimal_epsilon(u, rounds, 0.5 * allowed) >= here - slack);
        }
    }
}
