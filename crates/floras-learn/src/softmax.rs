//! Softmax and cross-entropy over a batch, one vector lane per sample.
//!
//! ```text
//! p_c = e^{z_c − m}/Σ_j e^{z_j − m},   m = max_j z_j,   loss = ln Σ_j e^{z_j − m} − (z_y − m),   ∂loss/∂z_c = p_c − [c = y]
//! ```
//!
//! Logits are stored class after class, `classes × samples`, so that the same operation runs over neighbouring samples. As
//! in every kernel under `pulp`'s dispatch, everything below it must be inlined.

/// Loss and accuracy of logits, compared with their labels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// Sum of the cross-entropies of all samples, in nats.
    pub loss_sum: f64,
    /// Number of samples whose largest logit is at their label; of equal logits the first counts.
    pub hits: usize,
    /// Number of samples.
    pub samples: usize,
}

impl Score {
    /// The score over the samples of both.
    pub fn and(self, other: Self) -> Self {
        Self {
            loss_sum: self.loss_sum + other.loss_sum,
            hits: self.hits + other.hits,
            samples: self.samples + other.samples,
        }
    }

    /// Mean cross-entropy over the samples, in nats; NaN without samples.
    pub fn mean_loss(self) -> f64 {
        self.loss_sum / self.samples as f64
    }

    /// Share of the samples that are classified correctly.
    pub fn accuracy(self) -> f64 {
        self.hits as f64 / self.samples as f64
    }
}

/// Turns logits into the gradient of the mean cross-entropy, in place; returns the sum of the cross-entropies.
pub(crate) fn gradient(logits: &mut [f32], labels: &[u16], scratch: &mut Vec<f32>) -> f64 {
    let samples = labels.len();
    let (largest, sums, at_label) = columns(scratch, samples);
    pulp::Arch::new().dispatch(Exponentiate { logits, labels, largest, sums, at_label });
    let loss_sum = loss_sum(sums, at_label);
    pulp::Arch::new().dispatch(Normalise { exponentials: logits, sums });
    let share = 1.0 / samples as f32;
    for (sample, &label) in labels.iter().enumerate() {
        logits[usize::from(label) * samples + sample] -= share;
    }
    loss_sum
}

/// The score of some logits, which are overwritten.
pub(crate) fn score(logits: &mut [f32], labels: &[u16], scratch: &mut Vec<f32>) -> Score {
    let hits = hits(logits, labels);
    let (largest, sums, at_label) = columns(scratch, labels.len());
    pulp::Arch::new().dispatch(Exponentiate { logits, labels, largest, sums, at_label });
    Score { loss_sum: loss_sum(sums, at_label), hits, samples: labels.len() }
}

/// Samples whose label has the largest logit; of equal ones the first counts, as in every `argmax`.
fn hits(logits: &[f32], labels: &[u16]) -> usize {
    let mut largest = vec![f32::NEG_INFINITY; labels.len()];
    let mut found = vec![0_u32; labels.len()];
    for (class, row) in logits.chunks_exact(labels.len()).enumerate() {
        for ((largest, found), &logit) in largest.iter_mut().zip(&mut found).zip(row) {
            let larger = logit > *largest;
            *largest = if larger { logit } else { *largest };
            *found = if larger { class as u32 } else { *found };
        }
    }
    found.iter().zip(labels).filter(|&(&found, &label)| found == u32::from(label)).count()
}

fn columns(scratch: &mut Vec<f32>, samples: usize) -> (&mut [f32], &mut [f32], &mut [f32]) {
    scratch.resize(3 * samples, 0.0);
    let (largest, rest) = scratch.split_at_mut(samples);
    let (sums, at_label) = rest.split_at_mut(samples);
    (largest, sums, at_label)
}

/// `Σ ln s_i − Σ (z_y − m)_i`. A logarithm of a product is a sum of logarithms: 64 factors up to 4096 stay in range.
fn loss_sum(sums: &[f32], at_label: &[f32]) -> f64 {
    let logarithm = |some: &[f32]| some.iter().map(|&sum| f64::from(sum)).product::<f64>().ln();
    let logarithms: f64 = sums.chunks(64).map(logarithm).sum();
    let margins: f64 = at_label.iter().map(|&margin| f64::from(margin)).sum();
    logarithms - margins
}

/// `z → e^{z−m}`, with the maxima `m`, the sums of the exponentials, and `z − m` at the label.
struct Exponentiate<'a> {
    logits: &'a mut [f32],
    labels: &'a [u16],
    largest: &'a mut [f32],
    sums: &'a mut [f32],
    at_label: &'a mut [f32],
}

impl pulp::WithSimd for Exponentiate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { logits, labels, largest, sums, at_label } = self;
        let samples = labels.len();
        largest.fill(f32::NEG_INFINITY);
        for row in logits.chunks_exact(samples) {
            for (largest, &logit) in largest.iter_mut().zip(row) {
                *largest = if logit > *largest { logit } else { *largest };
            }
        }
        for (sample, &label) in labels.iter().enumerate() {
            at_label[sample] = logits[usize::from(label) * samples + sample] - largest[sample];
        }
        sums.fill(0.0);
        for row in logits.chunks_exact_mut(samples) {
            for ((logit, &largest), sum) in row.iter_mut().zip(&*largest).zip(&mut *sums) {
                *logit = exponential(*logit - largest);
                *sum += *logit;
            }
        }
    }
}

/// `e → e/(n·Σe)`.
struct Normalise<'a> {
    exponentials: &'a mut [f32],
    sums: &'a mut [f32],
}

impl pulp::WithSimd for Normalise<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let samples = self.sums.len();
        for sum in &mut *self.sums {
            *sum = 1.0 / (*sum * samples as f32);
        }
        for row in self.exponentials.chunks_exact_mut(samples) {
            for (value, &scale) in row.iter_mut().zip(&*self.sums) {
                *value *= scale;
            }
        }
    }
}

/// `e^x` for `x ≤ 0`, with a relative error of 1·10⁻⁷. Values below 10⁻²⁷ are raised to it, and NaN stays NaN.
///
/// That floor is far below the rounding of the sums. With a lower floor the products with features would become subnormal
/// numbers, on which a processor is a hundred times slower.
///
/// `x = n·ln 2 + r` with `|r| ≤ ln(2)/2`, and `e^r = 1 + r + r²·fit(r)`.
#[inline(always)]
fn exponential(x: f32) -> f32 {
    /// Adding this rounds a small number to an integer: the last bit of the sum has the value 1.
    const ROUNDER: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const FIT: [f32; 6] =
        [0.5, 0.166_666_66, 0.041_666_295, 0.008_333_498, 0.001_394_470_5, 0.000_197_903_03];
    // Not `max`, which would discard NaN.
    let x = if x < -62.0 { -62.0 } else { x };
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    let mut fit = FIT[5];
    for coefficient in [FIT[4], FIT[3], FIT[2], FIT[1], FIT[0]] {
        fit = fit.mul_add(r, coefficient);
    }
    let power = shifted.to_bits().wrapping_sub(ROUNDER.to_bits()).wrapping_add(127) << 23;
    (r * r).mul_add(fit, r + 1.0) * f32::from_bits(power)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_exponential_is_good_to_single_precision() {
        for step in 0..=620_000 {
            let x = -(step as f32) * 1e-4;
            let (ours, exact) = (f64::from(exponential(x)), f64::from(x).exp());
            assert!((ours / exact - 1.0).abs() < 1.5e-7, "e^{x}: {ours} instead of {exact}");
        }
        assert_eq!(exponential(0.0), 1.0);
        assert!((1e-27..2e-27).contains(&exponential(f32::NEG_INFINITY)));
        assert!(exponential(f32::NAN).is_nan());
    }

    #[test]
    fn an_infinite_logit_shows_in_the_loss() {
        for wrong in [f32::NAN, f32::INFINITY] {
            let mut logits = vec![0.5, wrong, 0.1, 0.2];
            assert!(!score(&mut logits, &[0, 1], &mut Vec::new()).loss_sum.is_finite(), "{wrong}");
        }
    }

    #[test]
    fn of_equal_logits_the_first_counts() {
        // Three classes, four samples: all equal; the second and third equal and largest, twice; the third largest.
        let logits = vec![0.0, 1.0, 1.0, 0.0, 0.0, 2.0, 2.0, 0.5, 0.0, 2.0, 2.0, 0.7];
        let hits = |labels: &[u16]| score(&mut logits.clone(), labels, &mut Vec::new()).hits;
        assert_eq!(hits(&[0, 1, 1, 2]), 4);
        assert_eq!(hits(&[1, 2, 2, 1]), 0);
        assert_eq!(hits(&[2, 2, 1, 2]), 2);
    }

    #[test]
    fn products_of_sums_do_not_overflow() {
        let (classes, samples) = (4096, 200);
        let mut logits = vec![0.0; classes * samples];
        let score = score(&mut logits, &vec![7; samples], &mut Vec::new());
        assert!((score.mean_loss() - 4096_f64.ln()).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn gradient_and_loss_follow_the_formula(
            rows in prop::collection::vec((prop::collection::vec(-30_f32..30.0, 3), 0_u16..3), 1..40)
        ) {
            let samples = rows.len();
            let labels: Vec<u16> = rows.iter().map(|(_, label)| *label).collect();
            let logits: Vec<f32> = (0..3).flat_map(|class| rows.iter().map(move |(row, _)| row[class])).collect();
            let mut ours = logits.clone();
            let loss_sum = gradient(&mut ours, &labels, &mut Vec::new());
            let mut expected_loss = 0.0;
            for (sample, (row, label)) in rows.iter().enumerate() {
                let sum: f64 = row.iter().map(|&z| f64::from(z).exp()).sum();
                expected_loss += sum.ln() - f64::from(row[usize::from(*label)]);
                for (class, &logit) in row.iter().enumerate() {
                    let hit = f64::from(class == usize::from(*label));
                    let expected = (f64::from(logit).exp() / sum - hit) / samples as f64;
                    prop_assert!((f64::from(ours[class * samples + sample]) - expected).abs() < 1e-6);
                }
            }
            prop_assert!((loss_sum - expected_loss).abs() < 1e-4 * samples as f64);
            let score = score(&mut logits.clone(), &labels, &mut Vec::new());
            prop_assert!((score.loss_sum - loss_sum).abs() < 1e-9);
        }
    }
}
