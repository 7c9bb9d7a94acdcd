//! The privacy loss of grids and double precision: a bound that is added to every `ε` that relies on masks.
//!
//! # The ideal mechanism
//!
//! `M*` sends `x_k + z_k* + Σ_j ±p_kj*` for every client, with real Gaussian `z*` of standard deviation `σ_z` and `p*` of standard
//! deviation `σ_p = σ_m/√K`. The accounting composes its curve. The implementation sends
//!
//! ```text
//! u_k = round_Q( x_k' + m̃_k + σ_z·ñ_k ),     m̃_k = Σ_j ±p̃_kj
//! ```
//!
//! `x_k'` is the update rounded toward zero to multiples of `q`. The sum `x_k' + m̃_k` is exact. The implementation is compared with `M*`
//! in three steps. Each is taken twice, for the data set and for its neighbour. `u = 2⁻⁵³`.
//!
//! # 1. The client's own noise
//!
//! Given all masks `p̃`, a value that is sent is a release of [`release`](crate::release) with mean `x_k' + m̃_k`, noise `σ_z` and the
//! grid of that noise. [`FloatingPointLoss`] has the proof that rounding and inexact normal values add at most `ε₁` to the loss, for
//! `N = K·d·T/2` pairs of values, except with probability `e^{−200}`. Here the mean has no error. The constants there hold from
//! `N = 2³⁰` on, as `λ` decreases with `N`; for fewer pairs, 2³⁰ are counted. Up to 2⁵¹ pairs the total probability of a radius beyond 22
//! is below `e^{−206}`.
//!
//! Ideal noise and rounding to `Q` are the mechanism `M₁`, which is post-processing of `x_k' + m̃_k + z_k*`.
//!
//! # 2. The masks
//!
//! Couple the words of a mask with real uniforms that they are the first bits of, and let `p*` be the exact normal values that these
//! make. `release::normal` bounds the error of a normal value by `11u·r`, with `r` the radius of its pair. The scale and its product add
//! `3u·r` at most, and the grid `q/2`:
//!
//! ```text
//! |p̃ − p*| ≤ α + β·r,     α = q/2,   β = 14u·σ_p
//! ```
//!
//! Signs are bits of their own, and a change of sign changes the sign of `p̃` and of `p*`. So the errors are symmetric: given their
//! magnitudes, their signs are independent and fair.
//!
//! Let `e_k = m̃_k − m_k*`. Both mechanisms have the same joint distribution of `(p*, p̃)`, and given these they send Gaussian vectors of
//! the same covariance `σ_z² I` whose means differ by `e`. With `L` the log-likelihood ratio of everything, and `c = λ(1 + λ)/(2σ_z²)`,
//!
//! ```text
//! E[e^{λL}] = E[ e^{c·‖e‖²} ]
//! ```
//!
//! under either mechanism, for `L` or `−L`. Take one coordinate, and the magnitudes as given. `e = B·s`: `s` has the independent signs of
//! the pairs, `B Bᵀ` is the Laplacian of the complete graph with the squares of the magnitudes as weights. Signs are sub-Gaussian, so that
//! `E[e^{c‖Bs‖²}] ≤ det(I − 2c·BBᵀ)^{−1/2}`. With all magnitudes at most `a = α + 22β` the largest eigenvalue is at most `K·a²`, hence
//!
//! ```text
//! E[e^{c‖e‖²}] ≤ exp( c·κ₁·tr BBᵀ ),     tr BBᵀ = 2·Σ_pairs |p̃ − p*|²,     κ₁ = 1/(1 − 2cKa²)
//! ```
//!
//! The magnitudes of different pairs of values are independent. Their squares have a mean of at most
//!
//! ```text
//! v = E[(α + β·r)²] = α² + 2αβ·√(π/2) + 2β²
//! ```
//!
//! and are bounded by `a²`, so that their expectation costs a factor `κ₂ = (e^y − 1)/y` in the exponent, `y = 4cκ₁a²`. Over all
//! coordinates and rounds `E[e^{λL}] ≤ e^{λ(1+λ)η²/2}` with
//!
//! ```text
//! η² = 1.1·K(K − 1)·d·T·v/σ_z²,      1.1 ≥ κ₁·κ₂
//! ```
//!
//! and with Chernoff's bound, `λ = 20/η`:
//!
//! ```text
//! P[L > ε₂] ≤ e^{−200}     for     ε₂ = η·√(2·200) + η²/2
//! ```
//!
//! With this `λ` and `η ≤ 1`, `2cKa² ≤ 420·(a²/v)/((K − 1)dT)`, and `a²/v ≤ 242`: below 0.049 if `(K − 1)·d·T ≥ 2²¹`. Then `κ₁ ≤ 1.052` and
//! `κ₂ ≤ 1.03`. For smaller rounds, 2²¹ is counted: an adversary who sees more coordinates. Radii beyond 22 have a total probability below
//! `e^{−201}` for `K(K − 1)·d·T ≤ 2⁶⁰`, which goes to `δ`. Adaptively chosen rounds have fresh masks, so that the expectations multiply.
//!
//! Silent clients and colluders leave fewer errors than are counted: the bound holds for them too.
//!
//! # 3. The update
//!
//! `‖x_k'‖ ≤ ‖x_k‖`: a sensitivity that follows from the norm of updates does not grow. For any other sensitivity, the update of the
//! client whose data differ moves by less than `q` in each value. The others' updates are the same in both data sets. The mean of a
//! Gaussian vector of covariance at least `σ_z² I` moves by `τ = q·√(d·T)/σ_z` standard deviations in all rounds, so that
//! `ε₃ = τ·√(2·200) + τ²/2`.
//!
//! # Together
//!
//! With `ε' = ε₁ + ε₂ + ε₃`:
//!
//! ```text
//! ε + 2ε',     e^{ε'}·δ + 10·e^{ε+2ε'−200}
//! ```
//!
//! For `K = 10⁴`, `d = 10⁸`, `T = 100` and `σ_m = 2.2·√K·σ_z` this is `2ε' < 10⁻³`; for `K = 1000`, `d = 10⁶`, `T = 40` it is below
//! `10⁻⁵`. Masks are pseudo-random: ChaCha20's words are taken as uniform, for an adversary who cannot break X25519, HKDF-SHA256 or the
//! cipher.

use super::grid::MaskGrid;
use crate::release::{FloatingPointLoss, LOG_FAILURE, MAX_EPSILON, noise_loss};

/// Maximum number of sent values, over all clients and rounds: 2⁵².
const MAX_SENT: f64 = 4_503_599_627_370_496.0;
/// Maximum of `K(K − 1)·d·T`: 2⁶⁰.
const MAX_MASK_VALUES: f64 = 1_152_921_504_606_846_976.0;
/// The constants of step 1 hold from this number of pairs on: 2³⁰.
const MIN_PAIRS: f64 = 1_073_741_824.0;
/// The constants of step 2 hold from this `(K − 1)·d·T` on: 2²¹.
const MIN_MASK_VALUES: f64 = 2_097_152.0;
/// Maximum error of a mask's value per unit of the radius, in units of `σ_p`: `β/σ_p = 14u`.
const MASK_ERROR: f64 = 7.0 * f64::EPSILON;
/// `√(π/2)`, rounded up: the mean radius.
const MEAN_RADIUS: f64 = 1.253_315;
/// `κ₁·κ₂`, rounded up.
const GROWTH: f64 = 1.1;

impl MaskGrid {
    /// The increase of `ε` and `δ` by grids and double precision, rounded outward. `None` if there are more than 2⁵² values in all, or more
    /// than 2⁶⁰ mask values, or if the bound is above 1.
    ///
    /// The statement itself may have an `ε` of at most [`MAX_EPSILON`].
    ///
    /// # Arguments
    /// * `parameters`: number of parameters `d` in an update.
    /// * `rounds`: number of rounds `T`.
    pub fn loss(&self, parameters: u64, rounds: u64) -> Option<FloatingPointLoss> {
        let clients = f64::from(self.clients());
        let values = parameters as f64 * rounds as f64;
        let mask_values = (clients - 1.0) * values;
        if clients * values > MAX_SENT || clients * mask_values > MAX_MASK_VALUES {
            return None;
        }
        let own = noise_loss((clients * values / 2.0).max(MIN_PAIRS));
        let (grid, arithmetic) = (self.fine_step() / 2.0, MASK_ERROR * self.pair_std());
        let mean_square = grid * grid + 2.0 * MEAN_RADIUS * grid * arithmetic + 2.0 * arithmetic * arithmetic;
        let variance = GROWTH * clients * mask_values.max(MIN_MASK_VALUES) * mean_square;
        let masks = shift_loss(variance.sqrt() / self.noise_std());
        let update = shift_loss(self.fine_step() * values.sqrt() / self.noise_std());
        // The last factors cover the rounding of these few operations.
        let epsilon = 2.0 * (own + masks + update) * (1.0 + 1e-9);
        let delta = 10.0 * (MAX_EPSILON - LOG_FAILURE + 1.0).exp() * (1.0 + 1e-9);
        (epsilon <= 1.0).then_some(FloatingPointLoss { epsilon, delta })
    }
}

/// The loss of a Gaussian whose mean is off by `shift` standard deviations, except with probability `e^{−200}`.
fn shift_loss(shift: f64) -> f64 {
    shift * (2.0 * LOG_FAILURE).sqrt() + shift * shift / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epsilon(clients: u32, parameters: u64, rounds: u64) -> f64 {
        let mask_std = 2.2 * f64::from(clients).sqrt();
        MaskGrid::new(clients, mask_std, 1.0).unwrap().loss(parameters, rounds).unwrap().epsilon
    }

    #[test]
    fn the_loss_is_small_in_normal_use() {
        assert!(epsilon(1000, 4010, 40) < 3e-6, "{}", epsilon(1000, 4010, 40));
        assert!(epsilon(1000, 1_000_000, 40) < 1e-5, "{}", epsilon(1000, 1_000_000, 40));
        assert!(epsilon(10_000, 100_000_000, 100) < 1e-3, "{}", epsilon(10_000, 100_000_000, 100));
    }

    #[test]
    fn the_loss_grows_with_everything() {
        let losses = [
            epsilon(1000, 1 << 20, 10),
            epsilon(2000, 1 << 20, 10),
            epsilon(2000, 1 << 21, 10),
            epsilon(2000, 1 << 21, 20),
        ];
        assert!(losses.is_sorted_by(|a, b| a < b), "{losses:?}");
        let louder = MaskGrid::new(1000, 1e4, 1.0).unwrap().loss(1 << 20, 10).unwrap();
        assert!(louder.epsilon > 10.0 * losses[0]);
    }

    #[test]
    fn rounds_too_large_to_bound_have_no_loss() {
        let grid = MaskGrid::new(10_000, 220.0, 1.0).unwrap();
        assert_eq!(grid.loss(1 << 40, 1), None);
        assert_eq!(MaskGrid::new(1000, 1e6, 1.0).unwrap().loss(1 << 40, 100), None);
        assert_eq!(grid.loss(u64::MAX, u64::MAX), None);
    }

    /// `κ₁·κ₂` at the ends of what `α/β` can be, where the proof needs it to be at most 1.1.
    #[test]
    fn the_growth_factor_is_rounded_up() {
        for ratio in [0.0, 0.1, 1.0, 2.0, 3.0, 1e3] {
            let a = ratio + 22.0;
            let v = ratio * ratio + 2.0 * MEAN_RADIUS * ratio + 2.0;
            let eigenvalue = 420.0 * a * a / v / MIN_MASK_VALUES;
            let first = 1.0 / (1.0 - eigenvalue);
            // At K = 2, the smallest.
            let y = 2.0 * eigenvalue / 2.0 * first;
            let growth = first * y.exp_m1() / y;
            assert!(growth <= GROWTH, "{growth} at {ratio}");
        }
        assert!(MEAN_RADIUS > (std::f64::consts::PI / 2.0).sqrt());
    }

    /// `E[e^{c‖Bs‖²}]` over all signs, for four clients with pairs of unequal weights, compared with the bound of step 2.
    #[test]
    fn the_bound_on_random_signs_holds() {
        const PAIRS: [(usize, usize); 6] = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
        for magnitudes in [[1.0; 6], [1.0, 0.2, 0.7, 0.0, 1.0, 0.4], [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]] {
            for c in [1e-3, 0.01, 0.05, 0.1] {
                let mean = (0_u32..64)
                    .map(|signs| {
                        let mut e = [0.0_f64; 4];
                        for (pair, (&(k, j), magnitude)) in PAIRS.iter().zip(magnitudes).enumerate() {
                            let signed = if signs >> pair & 1 == 1 { magnitude } else { -magnitude };
                            e[k] += signed;
                            e[j] -= signed;
                        }
                        (c * e.iter().map(|e| e * e).sum::<f64>()).exp() / 64.0
                    })
                    .sum::<f64>();
                let trace = 2.0 * magnitudes.iter().map(|magnitude| magnitude * magnitude).sum::<f64>();
                let bound = (c * trace / (1.0 - 2.0 * c * 4.0)).exp();
                assert!(mean <= bound && mean >= (c * trace).exp() * (1.0 - 1e-12), "{mean} {bound}");
            }
        }
    }

    /// The error of masks, bounded as in the proof: 2²⁰ values are compared with the exact transform of the same normal values.
    #[test]
    fn masks_err_less_than_the_proof_allows() {
        use crate::masks::{MaskSign, PairSeed, expansion};
        let grid = MaskGrid::new(7, 5.3, 0.9).unwrap();
        let fine = MaskGrid::new(4, 2.0, 1e-3).unwrap();
        let (mut coarse_values, mut unit_values) = (vec![0; 1 << 20], vec![0; 1 << 20]);
        let seed = PairSeed::from_bytes([9; 32]);
        expansion::add(&seed, MaskSign::Plus, &grid, 0, &mut coarse_values);
        // σ_p = 1: the normal values themselves, to 2⁻⁴⁷.
        expansion::add(&seed, MaskSign::Plus, &fine, 0, &mut unit_values);
        assert_eq!(fine.pair_std(), 1.0);
        for (&value, &unit) in coarse_values.iter().zip(&unit_values) {
            let exact = unit as f64 * fine.fine_step() * (5.3 / 7.0_f64.sqrt());
            let off = (value as f64 * grid.fine_step() - exact).abs();
            let allowed = grid.fine_step() / 2.0 + grid.pair_std() * fine.fine_step() / 2.0 + 8.0 * 2e-15;
            assert!(off <= allowed, "{off} {allowed}");
        }
    }
}
