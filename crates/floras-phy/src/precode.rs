//! Precoding: how a client scales its update before transmission, and how the base station undoes it.
//!
//! Two modes. **Clipping** scales an update down to norm `C` if it is longer; no client's signal depends on another's,
//! and the sensitivity of the sum is `2C`. **The paper's normalisation** (section III-B)
//!
//! ```text
//! 𝗑_k = C·(x_k − μ_k)/C_max,    C_max = max_k ‖x_k − μ_k‖,    x̃ = (C_max/C)·𝗑̃ + Σ_k μ_k
//! ```
//!
//! with `μ_k` the mean of `x_k`'s entries, uses the dynamic range better. But `C_max` and `μ_k` are functions of the
//! data and are sent in the clear. One client can rescale all others, and the sensitivity is `(K+1)·C`.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use floras_core::Clipping;
use rayon::prelude::*;

use crate::error::{UplinkError, require, require_count};
use crate::updates;

/// Range of norms and bounds: far from the limits of single precision, so that rounding errors are relative.
const NORM_RANGE: RangeInclusive<f64> = 1e-30..=1e30;

/// Checks a clip norm `C`.
fn check_clip(clip: f64) -> Result<(), UplinkError> {
    require(NORM_RANGE.contains(&clip), "the clip norm C", "between 1e-30 and 1e30", clip)
}

/// Euclidean norm of an update, accumulated in double precision.
pub fn norm(update: &[f32]) -> f64 {
    centred_norm(update, 0.0)
}

/// Euclidean norm of an update whose values are centred around `mean`.
pub(crate) fn centred_norm(update: &[f32], mean: f64) -> f64 {
    sum_of(update, Term::SquareAround(mean)).sqrt()
}

fn mean(update: &[f32]) -> f64 {
    sum_of(update, Term::Value) / update.len() as f64
}

/// Sums over an update.
#[derive(Clone, Copy)]
enum Term {
    Value,
    SquareAround(f64),
}

fn sum_of(update: &[f32], term: Term) -> f64 {
    pulp::Arch::new().dispatch(Sum { update, term })
}

/// A sum in double precision, over lanes that a vector unit can add in parallel.
struct Sum<'a> {
    update: &'a [f32],
    term: Term,
}

impl pulp::WithSimd for Sum<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> f64 {
        const LANES: usize = 32;
        let (chunks, rest) = self.update.as_chunks::<LANES>();
        let mut lanes = [0.0; LANES];
        match self.term {
            Term::Value => {
                for chunk in chunks {
                    for lane in 0..LANES {
                        lanes[lane] += f64::from(chunk[lane]);
                    }
                }
                for (lane, &value) in rest.iter().enumerate() {
                    lanes[lane] += f64::from(value);
                }
            }
            Term::SquareAround(mean) => {
                for chunk in chunks {
                    for lane in 0..LANES {
                        let deviation = f64::from(chunk[lane]) - mean;
                        lanes[lane] = deviation.mul_add(deviation, lanes[lane]);
                    }
                }
                for (lane, &value) in rest.iter().enumerate() {
                    let deviation = f64::from(value) - mean;
                    lanes[lane] = deviation.mul_add(deviation, lanes[lane]);
                }
            }
        }
        let mut sum = 0.0;
        for lane in lanes {
            sum += lane;
        }
        sum
    }
}

/// The change of an update before it is sent: `x → (x − mean)·factor`, rounded to single precision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Subtracted from every value; 0 unless the paper's normalisation is used.
    pub mean: f64,
    /// Multiplies every value after the subtraction.
    pub factor: f64,
}

impl Scale {
    /// Sends the update unchanged.
    pub const UNCHANGED: Self = Self { mean: 0.0, factor: 1.0 };

    fn clip(norm: f64, clip: f64) -> Self {
        let factor = if norm > clip { shrink_safely(clip / norm) } else { 1.0 };
        Self { mean: 0.0, factor }
    }

    /// Changes an update in memory.
    pub fn apply(self, update: &mut [f32]) {
        if self != Self::UNCHANGED {
            pulp::Arch::new().dispatch(Apply { update, scale: self });
        }
    }
}

struct Apply<'a> {
    update: &'a mut [f32],
    scale: Scale,
}

impl pulp::WithSimd for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        for value in self.update {
            *value = ((f64::from(*value) - self.scale.mean) * self.scale.factor) as f32;
        }
    }
}

/// A factor slightly below `factor`, so that rounding each scaled value to single precision cannot exceed the bound.
fn shrink_safely(factor: f64) -> f64 {
    factor * (1.0 - f64::from(f32::EPSILON))
}

/// The clients' changes to the updates of a round, and the data with which the base station undoes them.
#[derive(Clone, Debug, PartialEq)]
pub struct Precoding {
    /// The change of each update.
    pub scales: Vec<Scale>,
    /// The norm of each update before the change.
    pub norms: Vec<f64>,
    /// How the paper's normalisation is undone, if it was applied.
    pub normalisation: Option<Normalisation>,
}

impl Precoding {
    /// The precoding of some updates: no change without a clip norm, otherwise clipping or the paper's normalisation.
    ///
    /// An update with a value that is not finite is refused.
    pub fn new<U: AsRef<[f32]> + Sync>(
        updates: &[U],
        clip: Option<f64>,
        clipping: Clipping,
    ) -> Result<Self, UplinkError> {
        if let (Some(clip), Clipping::Paper) = (clip, clipping) {
            return Self::paper(updates, clip);
        }
        if let Some(clip) = clip {
            check_clip(clip)?;
        }
        let norms: Vec<f64> = updates.par_iter().map(|update| norm(update.as_ref())).collect();
        // A sum of squares in double precision cannot overflow, so that it is finite if and only if every value is.
        if norms.iter().any(|norm| !norm.is_finite()) {
            updates::check_finite(updates)?;
        }
        let scale = |&norm: &f64| clip.map_or(Scale::UNCHANGED, |clip| Scale::clip(norm, clip));
        Ok(Self { scales: norms.iter().map(scale).collect(), norms, normalisation: None })
    }

    fn paper<U: AsRef<[f32]> + Sync>(updates: &[U], clip: f64) -> Result<Self, UplinkError> {
        check_clip(clip)?;
        let parameters = updates::check_shape(updates, updates.len())? as f64;
        let measured: Vec<(f64, f64)> = updates
            .par_iter()
            .map(|update| {
                let mean = mean(update.as_ref());
                (mean, centred_norm(update.as_ref(), mean))
            })
            .collect();
        if measured.iter().any(|&(mean, norm)| !(mean + norm).is_finite()) {
            updates::check_finite(updates)?;
        }
        let largest_norm = measured.iter().map(|&(_, norm)| norm).fold(0.0, f64::max);
        // Constant updates have no variation to scale.
        let factor = if largest_norm > 0.0 { shrink_safely(clip / largest_norm) } else { 0.0 };
        // ‖x‖² = ‖x − μ‖² + d·μ²
        let norm = |&(mean, norm): &(f64, f64)| (norm * norm + parameters * mean * mean).sqrt();
        Ok(Self {
            scales: measured.iter().map(|&(mean, _)| Scale { mean, factor }).collect(),
            norms: measured.iter().map(norm).collect(),
            normalisation: Some(Normalisation {
                means: measured.iter().map(|&(mean, _)| mean).collect(),
                largest_norm,
                clip,
            }),
        })
    }

    /// The updates as they are sent; only those that change are copied.
    pub fn sent<'a, U: AsRef<[f32]> + Sync>(&self, updates: &'a [U]) -> Vec<Cow<'a, [f32]>> {
        let sent = updates.par_iter().zip(&self.scales).map(|(update, scale)| {
            let mut sent = Cow::Borrowed(update.as_ref());
            if *scale != Scale::UNCHANGED {
                scale.apply(sent.to_mut());
            }
            sent
        });
        sent.collect()
    }

    /// Precodes the updates in memory.
    pub fn apply(&self, updates: &mut [Vec<f32>]) {
        updates.par_iter_mut().zip(&self.scales).for_each(|(update, scale)| scale.apply(update));
    }
}

/// Scales every update that is longer than `clip` down to that norm; returns the norms they had before.
///
/// The result is never longer than `clip`, rounding included.
///
/// ```
/// let mut updates = vec![vec![3.0, 4.0], vec![0.3, 0.4]];
/// let norms = floras_phy::precode::clip(&mut updates, 1.0)?;
/// assert_eq!(norms[0], 5.0);
/// assert!((updates[0][0] - 0.6).abs() < 1e-6);
/// assert_eq!(updates[1], [0.3, 0.4]);
/// # Ok::<(), floras_phy::UplinkError>(())
/// ```
pub fn clip(updates: &mut [Vec<f32>], clip: f64) -> Result<Vec<f64>, UplinkError> {
    let precoding = Precoding::new(updates, Some(clip), Clipping::Each)?;
    precoding.apply(updates);
    Ok(precoding.norms)
}

/// Data that the base station needs to undo the paper's normalisation. It depends on the updates and is sent in the clear.
#[derive(Clone, Debug, PartialEq)]
pub struct Normalisation {
    means: Vec<f64>,
    largest_norm: f64,
    clip: f64,
}

impl Normalisation {
    /// `μ_k`, the mean over the entries of each client's update.
    pub fn means(&self) -> &[f64] {
        &self.means
    }

    /// `C_max`, the longest centred update of the round.
    pub fn largest_norm(&self) -> f64 {
        self.largest_norm
    }

    /// `x̃ = (C_max/C)·𝗑̃ + Σ_k μ_k`. If a value leaves the range of single precision, returns an error; `decoded` is then
    /// partly changed.
    pub fn undo(&self, decoded: &mut [f32]) -> Result<(), UplinkError> {
        let factor = self.largest_norm / self.clip;
        let offset: f64 = self.means.iter().sum();
        for (parameter, value) in decoded.iter_mut().enumerate() {
            *value = (f64::from(*value) * factor + offset) as f32;
            if !value.is_finite() {
                return Err(UplinkError::Overflow { parameter });
            }
        }
        Ok(())
    }
}

/// Applies the paper's normalisation: removes each update's mean and scales all by `C/C_max`.
///
/// ```
/// use floras_phy::precode;
///
/// let mut updates = vec![vec![1.0, 3.0], vec![5.0, 9.0]];
/// let normalisation = precode::normalise(&mut updates, 1.0)?;
/// let mut sum: Vec<f32> = (0..2).map(|i| updates[0][i] + updates[1][i]).collect();
/// normalisation.undo(&mut sum)?;
/// assert!((sum[0] - 6.0).abs() < 1e-5 && (sum[1] - 12.0).abs() < 1e-5);
/// # Ok::<(), floras_phy::UplinkError>(())
/// ```
pub fn normalise(updates: &mut [Vec<f32>], clip: f64) -> Result<Normalisation, UplinkError> {
    let Precoding { scales, normalisation, .. } = Precoding::paper(updates, clip)?;
    updates.par_iter_mut().zip(&scales).for_each(|(update, scale)| scale.apply(update));
    normalisation.ok_or(UplinkError::EmptyUpdate)
}

/// Truncates every decoded value to `±bound` (`B` in the paper). Values beyond the bound are set to the bound: this is
/// clamping, not conditioning on the interval.
pub fn truncate(decoded: &mut [f32], bound: f64) -> Result<(), UplinkError> {
    require(NORM_RANGE.contains(&bound), "the truncation bound B", "between 1e-30 and 1e30", bound)?;
    let bound = bound as f32;
    for value in decoded {
        *value = value.clamp(-bound, bound);
    }
    Ok(())
}

/// The server's step `w ← w − x̃/K`.
///
/// Clients send `x_k = w − w_k`, the common model *minus* their own, so the sum is subtracted. The paper prints a plus,
/// which would increase the loss.
///
/// ```
/// let mut parameters = vec![1.0, 1.0];
/// // Two clients went to 0.5 and to 0.7: they send 0.5 and 0.3.
/// floras_phy::precode::server_step(&mut parameters, &[0.8, 0.0], 2)?;
/// assert!((parameters[0] - 0.6).abs() < 1e-6);
/// # Ok::<(), floras_phy::UplinkError>(())
/// ```
pub fn server_step(parameters: &mut [f32], decoded_sum: &[f32], clients: usize) -> Result<(), UplinkError> {
    if clients == 0 {
        return Err(UplinkError::NoClients);
    }
    require_count("decoded values, one for each parameter", parameters.len(), decoded_sum.len())?;
    let clients = clients as f32;
    for (parameter, &sum) in parameters.iter_mut().zip(decoded_sum) {
        *parameter -= sum / clients;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_updates() -> impl Strategy<Value = Vec<Vec<f32>>> {
        (1_usize..5, 1_usize..40).prop_flat_map(|(clients, parameters)| {
            let value = prop_oneof![-1e6_f32..1e6, -1e-3_f32..1e-3, Just(0.0)];
            prop::collection::vec(prop::collection::vec(value, parameters), clients)
        })
    }

    proptest! {
        #[test]
        fn clipping_keeps_direction_and_bounds_the_norm(
            updates in any_updates(), bound in 1e-3_f64..1e4
        ) {
            let mut clipped = updates.clone();
            let norms = clip(&mut clipped, bound).unwrap();
            let precoding = Precoding::new(&updates, Some(bound), Clipping::Each).unwrap();
            prop_assert_eq!(&precoding.norms, &norms);
            let sent = precoding.sent(&updates);
            prop_assert!(sent.iter().zip(&clipped).all(|(sent, clipped)| sent.as_ref() == clipped));
            for ((before, after), norm_before) in updates.iter().zip(&clipped).zip(norms) {
                prop_assert!(norm(after) <= bound);
                if norm_before <= bound {
                    prop_assert_eq!(before, after);
                } else {
                    prop_assert!(norm(after) > bound * (1.0 - 1e-6));
                    for (b, a) in before.iter().zip(after) {
                        prop_assert!((f64::from(*b) * bound / norm_before - f64::from(*a)).abs() < 1e-6 * bound);
                    }
                }
            }
        }

        #[test]
        fn normalised_updates_are_bounded_and_can_be_restored(updates in any_updates()) {
            let mut sent = updates.clone();
            let normalisation = normalise(&mut sent, 2.0).unwrap();
            for update in &sent {
                prop_assert!(norm(update) <= 2.0);
            }
            let parameters = updates[0].len();
            let mut sum: Vec<f32> = (0..parameters).map(|i| sent.iter().map(|x| x[i]).sum()).collect();
            normalisation.undo(&mut sum).unwrap();
            let scale = 1e-6 * updates.iter().map(|x| norm(x)).sum::<f64>() + 1e-12;
            for (i, back) in sum.iter().enumerate() {
                let expected: f64 = updates.iter().map(|x| f64::from(x[i])).sum();
                prop_assert!((f64::from(*back) - expected).abs() <= scale);
            }
        }
    }

    #[test]
    fn updates_without_variation_survive_the_normalisation() {
        let mut updates = vec![vec![2.0; 5]; 3];
        let normalisation = normalise(&mut updates, 1.0).unwrap();
        let mut decoded = vec![0.0; 5];
        normalisation.undo(&mut decoded).unwrap();
        assert_eq!(decoded, [6.0; 5]);
    }

    #[test]
    fn truncation_piles_up_at_the_bound() {
        let mut decoded = vec![-9.0, -1.0, 0.5, 1e9];
        truncate(&mut decoded, 2.0).unwrap();
        assert_eq!(decoded, [-2.0, -1.0, 0.5, 2.0]);
    }

    #[test]
    fn wrong_input_is_refused() {
        for bound in [0.0, -1.0, 1e-31, 1e31, f64::NAN, f64::INFINITY] {
            assert!(clip(&mut [vec![1.0]], bound).is_err());
            assert!(normalise(&mut [vec![1.0]], bound).is_err());
            assert!(truncate(&mut [1.0], bound).is_err());
        }
        let loud = normalise(&mut [vec![f32::MAX, -f32::MAX]], 1.0).unwrap();
        assert_eq!(loud.undo(&mut [0.5, 2.0]), Err(UplinkError::Overflow { parameter: 1 }));
        assert!(matches!(clip(&mut [vec![f32::NAN]], 1.0), Err(UplinkError::NotFinite { .. })));
        assert!(matches!(
            normalise(&mut [vec![1.0], vec![1.0, 2.0]], 1.0),
            Err(UplinkError::LengthMismatch { index: 1, expected: 1, found: 2 })
        ));
        assert!(matches!(normalise(&mut [], 1.0), Err(UplinkError::EmptyUpdate)));
        assert_eq!(server_step(&mut [1.0], &[1.0], 0), Err(UplinkError::NoClients));
        assert!(matches!(server_step(&mut [1.0], &[], 1), Err(UplinkError::WrongCount { .. })));
    }

    /// Centred norms √2 and √8: the longer one fills `C`, the other keeps half of it.
    #[test]
    fn the_longest_update_sets_the_scale_of_all() {
        let mut updates = vec![vec![1.0, 3.0], vec![5.0, 9.0]];
        let normalisation = normalise(&mut updates, 10.0).unwrap();
        assert_eq!(normalisation.means(), [2.0, 7.0]);
        assert!((normalisation.largest_norm() - 8.0_f64.sqrt()).abs() < 1e-12);
        assert!((norm(&updates[0]) - 5.0).abs() < 1e-5 && (norm(&updates[1]) - 10.0).abs() < 1e-5);
    }

    #[test]
    fn the_server_takes_the_mean_over_the_clients() {
        let mut parameters = [1.0];
        server_step(&mut parameters, &[6.0], 3).unwrap();
        assert_eq!(parameters, [-1.0]);
    }

    /// One exact step of gradient descent on (w − 3)²: the loss must fall.
    #[test]
    fn the_servers_step_goes_downhill() {
        let (mut w, rate) = (vec![0.0_f32], 0.25);
        let local_model = w[0] - rate * 2.0 * (w[0] - 3.0);
        let sent = w[0] - local_model;
        server_step(&mut w, &[sent], 1).unwrap();
        assert_eq!(w[0], local_model);
    }
}
