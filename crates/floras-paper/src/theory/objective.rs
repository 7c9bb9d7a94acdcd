//! The regularised logistic loss in double precision, its smoothness, and its minimum with a certificate.
//!
//! ```text
//! f(w) = Σ_k p_k f_k(w),    f_k(w) = mean cross-entropy over client k + λ‖w‖²
//! ```
//!
//! The penalty includes weights and biases, so `μ = 2λ`. The Hessian of the cross-entropy in the logits,
//! `diag(p) − ppᵀ`, is at most `½(I − 11ᵀ/c)` (Böhning 1992). So `L_k ≤ 2λ + ½·λ_max(X̃ᵀX̃/D_k)`, with a feature of
//! ones appended for the bias. A point with gradient `∇f` misses the minimum by `f − f* ≤ ‖∇f‖²/(2μ)` and
//! `‖w − w*‖ ≤ ‖∇f‖/μ`.
//!
//! **The largest eigenvalue, from above.** Take a start `b` of norm 1, `k` steps of the power method on
//! `S = X̃ᵀX̃/D`, and the last Rayleigh quotient `ξ = bᵀS^{2k+1}b / bᵀS^{2k}b`. Power means grow with their exponent:
//! `ξ ≥ (bᵀS^{2k}b)^{1/2k} ≥ λ_max·|b₁|^{1/k}`, where `b₁` is the part of `b` along the first eigenvector. For `b`
//! uniform on the sphere of `m` dimensions `P(|b₁| < τ) ≤ τ√m`. So `λ_max ≤ ξ·τ^{−1/k}`, except with probability
//! `τ√m`.
//!
//! # Citations
//! Böhning, *Multinomial logistic regression algorithm*, Ann. Inst. Statist. Math. 44 (1992). Nocedal, Wright,
//! *Numerical Optimization*, 2nd edition, algorithm 7.4 (L-BFGS). Hager, Zhang, SIAM J. Optim. 16 (2005), the line
//! search's second test.

use floras_core::random::StreamName;
use floras_learn::Samples;
use rayon::prelude::*;

/// Number of steps of the power method, and `ln(1/τ)`. The result is at most 1.11 times too large. It is too small
/// with probability at most `√m·1e-10`.
const POWER_STEPS: u32 = 250;
const START_LOG: f64 = 10.0 * std::f64::consts::LN_10;
/// Number of pairs that L-BFGS stores.
const MEMORY: usize = 12;
const MAX_STEPS: usize = 2000;

/// Clients with their weights `p_k`, and the penalty. Parameters are ordered by feature, one row of classes per
/// feature; the biases are last.
#[derive(Debug)]
pub(super) struct Objective<'a> {
    pub(super) parts: Vec<(f64, &'a Samples)>,
    /// Factor `λ` of the penalty `λ‖w‖²`.
    pub(super) l2: f64,
}

/// An approximate minimum, with bounds on its error.
#[derive(Clone, Debug)]
pub(super) struct Minimum {
    pub(super) point: Vec<f64>,
    pub(super) value: f64,
    /// Upper bound on `f − f*`.
    pub(super) value_error: f64,
    /// Upper bound on `‖w − w*‖`.
    pub(super) point_error: f64,
}

impl Objective<'_> {
    /// Number of model parameters, `d`.
    pub(super) fn parameters(&self) -> usize {
        self.parts.first().map_or(0, |(_, samples)| (samples.width() + 1) * samples.classes())
    }

    /// The value at `w`. The gradient is written to `gradient`.
    pub(super) fn evaluate(&self, w: &[f64], gradient: &mut [f64]) -> f64 {
        let each: Vec<(f64, Vec<f64>)> =
            self.parts.par_iter().map(|(weight, samples)| cross_entropy(samples, *weight, w)).collect();
        for (slope, &value) in gradient.iter_mut().zip(w) {
            *slope = 2.0 * self.l2 * value;
        }
        let mut value = self.l2 * dot(w, w);
        for (part, slopes) in &each {
            value += part;
            gradient.iter_mut().zip(slopes).for_each(|(slope, part)| *slope += part);
        }
        value
    }

    /// Minimises from `w = 0` on, until `‖∇f‖²/(2μ)` is below `tolerance` or no step improves the value.
    pub(super) fn minimise(&self, tolerance: f64) -> Minimum {
        let mut w = vec![0.0; self.parameters()];
        let mut gradient = w.clone();
        let mut value = self.evaluate(&w, &mut gradient);
        let mut memory: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
        let mu = 2.0 * self.l2;
        for _ in 0..MAX_STEPS {
            if dot(&gradient, &gradient) <= 2.0 * mu * tolerance {
                break;
            }
            let direction = descent(&memory, &gradient);
            let Some(step) = self.line_search(&w, value, &gradient, &direction) else { break };
            let moved: Vec<f64> = step.w.iter().zip(&w).map(|(new, old)| new - old).collect();
            let changed: Vec<f64> = step.gradient.iter().zip(&gradient).map(|(new, old)| new - old).collect();
            if memory.len() == MEMORY {
                memory.remove(0);
            }
            memory.push((moved, changed));
            Step { w, value, gradient } = step;
        }
        let square = dot(&gradient, &gradient);
        Minimum { point: w, value, value_error: square / (2.0 * mu), point_error: square.sqrt() / mu }
    }

    /// Halves a step of length 1 until the loss falls enough or, where rounding hides that, until the slope does.
    fn line_search(&self, w: &[f64], value: f64, gradient: &[f64], direction: &[f64]) -> Option<Step> {
        let slope = dot(gradient, direction);
        let mut length = 1.0;
        for _ in 0..40 {
            let moved: Vec<f64> = w.iter().zip(direction).map(|(w, way)| w + length * way).collect();
            let mut new_gradient = vec![0.0; w.len()];
            let new_value = self.evaluate(&moved, &mut new_gradient);
            let enough = new_value <= value + 1e-4 * length * slope;
            let flat = new_value <= value + 1e-13 * value.abs()
                && dot(&new_gradient, direction).abs() <= 0.9 * slope.abs();
            if enough || flat {
                return Some(Step { w: moved, value: new_value, gradient: new_gradient });
            }
            length *= 0.5;
        }
        None
    }
}

struct Step {
    w: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// The direction of L-BFGS: two loops over the stored pairs (Nocedal, Wright, algorithm 7.4).
fn descent(memory: &[(Vec<f64>, Vec<f64>)], gradient: &[f64]) -> Vec<f64> {
    let mut way: Vec<f64> = gradient.iter().map(|slope| -slope).collect();
    let mut shares = Vec::with_capacity(memory.len());
    for (moved, changed) in memory.iter().rev() {
        let share = dot(moved, &way) / dot(moved, changed);
        way.iter_mut().zip(changed).for_each(|(way, changed)| *way -= share * changed);
        shares.push(share);
    }
    let scale = match memory.last() {
        Some((moved, changed)) => dot(moved, changed) / dot(changed, changed),
        // The first step has length at most 1.
        None => 1.0 / dot(gradient, gradient).sqrt().max(1.0),
    };
    way.iter_mut().for_each(|way| *way *= scale);
    for ((moved, changed), share) in memory.iter().zip(shares.into_iter().rev()) {
        let back = dot(changed, &way) / dot(moved, changed);
        way.iter_mut().zip(moved).for_each(|(way, moved)| *way += (share - back) * moved);
    }
    way
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `weight` times the mean cross-entropy, and its gradient.
fn cross_entropy(samples: &Samples, weight: f64, w: &[f64]) -> (f64, Vec<f64>) {
    let (width, classes) = (samples.width(), samples.classes());
    let (mut gradient, mut loss) = (vec![0.0; w.len()], 0.0);
    let mut logits = vec![0.0; classes];
    let share = weight / samples.count() as f64;
    for (sample, &label) in samples.labels().iter().enumerate() {
        logits.copy_from_slice(&w[width * classes..]);
        let row = samples.row(sample);
        for (&feature, weights) in row.iter().zip(w.chunks_exact(classes)) {
            if feature != 0.0 {
                let feature = f64::from(feature);
                logits.iter_mut().zip(weights).for_each(|(logit, weight)| *logit += feature * weight);
            }
        }
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let of_label = logits[usize::from(label)];
        logits.iter_mut().for_each(|logit| *logit = (*logit - largest).exp());
        let sum: f64 = logits.iter().sum();
        loss += sum.ln() + largest - of_label;
        // From here on, `logits` holds the derivatives of the loss by the logits.
        logits.iter_mut().for_each(|logit| *logit *= share / sum);
        logits[usize::from(label)] -= share;
        for (&feature, slopes) in row.iter().zip(gradient.chunks_exact_mut(classes)) {
            if feature != 0.0 {
                let feature = f64::from(feature);
                slopes.iter_mut().zip(&logits).for_each(|(slope, part)| *slope += feature * part);
            }
        }
        gradient[width * classes..].iter_mut().zip(&logits).for_each(|(slope, part)| *slope += part);
    }
    (share * loss, gradient)
}

/// An upper bound on the smoothness of one client's loss.
pub(super) fn smoothness(samples: &Samples, l2: f64, start: StreamName) -> f64 {
    2.0 * l2 + 0.5 * largest_eigenvalue(samples, start)
}

/// An upper bound on `λ_max(X̃ᵀX̃/D)`.
fn largest_eigenvalue(samples: &Samples, start: StreamName) -> f64 {
    let mut normals = vec![0.0; samples.width() + 1];
    start.normals().fill(0, &mut normals);
    let mut vector: Vec<f64> = normals.iter().map(|&normal| f64::from(normal)).collect();
    let mut quotient = 0.0;
    for _ in 0..=POWER_STEPS {
        let norm = dot(&vector, &vector).sqrt();
        vector.iter_mut().for_each(|value| *value /= norm);
        let next = covariance_times(samples, &vector);
        quotient = dot(&vector, &next);
        vector = next;
    }
    let squares: f64 = samples.features().iter().map(|&value| f64::from(value) * f64::from(value)).sum();
    // The sum of all eigenvalues is the trace.
    let trace = squares / samples.count() as f64 + 1.0;
    (quotient * (START_LOG / f64::from(POWER_STEPS)).exp()).min(trace)
}

/// The product `X̃ᵀX̃·v/D` with `v = vector`.
fn covariance_times(samples: &Samples, vector: &[f64]) -> Vec<f64> {
    let width = samples.width();
    let mut product = vec![0.0; width + 1];
    for sample in 0..samples.count() {
        let row = samples.row(sample);
        let along: f64 = row.iter().zip(vector).map(|(&feature, part)| f64::from(feature) * part).sum();
        let along = (along + vector[width]) / samples.count() as f64;
        product.iter_mut().zip(row).for_each(|(value, &feature)| *value += along * f64::from(feature));
        product[width] += along;
    }
    product
}

#[cfg(test)]
mod tests {
    use floras_learn::{Batch, Logistic, Model, Scratch, model};

    use super::*;
    use floras_sim::purpose;

    fn some_samples(width: usize, classes: usize, count: usize) -> Samples {
        let features = (0..count * width).map(|i| ((i * i + 3 * i) % 17) as f32 / 17.0 - 0.3).collect();
        let labels = (0..count).map(|i| ((i * 7 + i / 3) % classes) as u16).collect();
        Samples::new(width, classes, features, labels).unwrap()
    }

    fn start() -> StreamName {
        StreamName::new(3, purpose::POWER_METHOD)
    }

    /// Eigenvalues of a symmetric matrix by Jacobi's rotations, in ascending order.
    fn eigenvalues(mut a: Vec<Vec<f64>>) -> Vec<f64> {
        let n = a.len();
        for _ in 0..60 {
            for p in 0..n {
                for q in p + 1..n {
                    if a[p][q].abs() < 1e-300 {
                        continue;
                    }
                    let angle = 0.5 * (2.0 * a[p][q]).atan2(a[q][q] - a[p][p]);
                    let (sin, cos) = angle.sin_cos();
                    for row in a.iter_mut() {
                        (row[p], row[q]) = (cos * row[p] - sin * row[q], sin * row[p] + cos * row[q]);
                    }
                    let (upper, lower) = a.split_at_mut(q);
                    for (x, y) in upper[p].iter_mut().zip(&mut lower[0]) {
                        (*x, *y) = (cos * *x - sin * *y, sin * *x + cos * *y);
                    }
                }
            }
        }
        let mut values: Vec<f64> = (0..n).map(|i| a[i][i]).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    fn hessian_eigenvalues(samples: &Samples, l2: f64, w: &[f64]) -> Vec<f64> {
        let objective = Objective { parts: vec![(1.0, samples)], l2 };
        let slopes = |index: usize, by: f64| {
            let (mut moved, mut gradient) = (w.to_vec(), vec![0.0; w.len()]);
            moved[index] += by;
            objective.evaluate(&moved, &mut gradient);
            gradient
        };
        let column = |index: usize| -> Vec<f64> {
            let (up, down) = (slopes(index, 1e-5), slopes(index, -1e-5));
            up.iter().zip(down).map(|(up, down)| (up - down) / 2e-5).collect()
        };
        let columns: Vec<Vec<f64>> = (0..w.len()).map(column).collect();
        let symmetric = |i: usize, j: usize| 0.5 * (columns[i][j] + columns[j][i]);
        eigenvalues((0..w.len()).map(|i| (0..w.len()).map(|j| symmetric(i, j)).collect()).collect())
    }

    #[test]
    fn value_and_gradient_are_those_of_the_model() {
        let (width, classes) = (4, 3);
        let samples = some_samples(width, classes, 30);
        let model = Logistic::new(width, classes, 0.05).unwrap();
        let w: Vec<f64> = (0..15).map(|i| 0.3 * f64::from(i + 1).sin()).collect();
        // Our order is by feature, the model's by class; both have the biases last.
        let place = |i: usize| if i < 12 { (i % classes) * width + i / classes } else { i };
        let (mut parameters, mut theirs) = (vec![0.0_f32; 15], vec![0.0_f32; 15]);
        (0..15).for_each(|i| parameters[place(i)] = w[i] as f32);
        let rows: Vec<u32> = (0..30).collect();
        let batch = Batch { samples: &samples, rows: &rows };
        let loss =
            model.gradient(&parameters, batch, &mut start().stream(), &mut Scratch::default(), &mut theirs);
        let objective = Objective { parts: vec![(1.0, &samples)], l2: 0.05 };
        let mut ours = vec![0.0; 15];
        let value = objective.evaluate(&w, &mut ours);
        assert!((value - loss - model::penalty(&model, &parameters)).abs() < 1e-6);
        (0..15).for_each(|i| assert!((ours[i] - f64::from(theirs[place(i)])).abs() < 1e-6));
    }

    #[test]
    fn convexity_and_smoothness_bound_the_eigenvalues() {
        for (classes, l2) in [(2, 0.05), (3, 0.01)] {
            let samples = some_samples(4, classes, 30);
            let bound = smoothness(&samples, l2, start());
            let mut largest = 0.0_f64;
            for size in [0.0, 0.5, 3.0] {
                let w: Vec<f64> = (0..5 * classes).map(|i| size * (i as f64 + 1.0).sin()).collect();
                let eigenvalues = hessian_eigenvalues(&samples, l2, &w);
                // Adding the same value to all classes changes only the penalty.
                assert!((eigenvalues[0] - 2.0 * l2).abs() < 1e-8, "{}", eigenvalues[0]);
                largest = largest.max(eigenvalues[5 * classes - 1]);
            }
            assert!(bound >= largest, "{bound} below {largest}");
            // At w = 0 with two classes the bound on the softmax is reached; only the power method's allowance is
            // left.
            let allowed = if classes == 2 { 1.12 } else { 2.0 };
            assert!(bound < allowed * largest, "{bound} far above {largest}");
        }
    }

    #[test]
    fn the_largest_eigenvalue_is_bounded_closely() {
        let samples = some_samples(6, 3, 50);
        let entry = |i: usize, j: usize| {
            let feature = |row: &[f32], k: usize| if k == 6 { 1.0 } else { f64::from(row[k]) };
            (0..50).map(|n| feature(samples.row(n), i) * feature(samples.row(n), j)).sum::<f64>() / 50.0
        };
        let exact = eigenvalues((0..7).map(|i| (0..7).map(|j| entry(i, j)).collect()).collect())[6];
        let bound = largest_eigenvalue(&samples, start());
        assert!(bound >= exact && bound < 1.1 * exact, "{bound} for {exact}");
        // One sample has one eigenvalue, the trace.
        let one = some_samples(6, 3, 1);
        let trace: f64 = 1.0 + one.row(0).iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
        assert!((largest_eigenvalue(&one, start()) - trace).abs() < 1e-12);
    }

    /// From SciPy 1.x, `minimize` by L-BFGS-B and then `trust-exact`, gradient below 1e-11.
    #[test]
    fn the_minimum_agrees_with_scipy() {
        let samples = some_samples(4, 3, 30);
        let minimum = Objective { parts: vec![(1.0, &samples)], l2: 0.05 }.minimise(1e-14);
        let (value, square) = (1.085_953_288_617_867_8, 0.211_120_320_566_015_87);
        assert!((minimum.value - value).abs() < 1e-12, "{}", minimum.value);
        assert!((dot(&minimum.point, &minimum.point) - square).abs() < 1e-6);
        assert!(minimum.value_error <= 1e-14 && minimum.point_error < 1e-6);
        let rough = Objective { parts: vec![(1.0, &samples)], l2: 0.05 }.minimise(1e-3);
        let missed = rough.value - value;
        assert!(missed > 0.0 && missed <= rough.value_error && rough.value_error <= 1e-3);
        let distance: f64 = rough.point.iter().zip(&minimum.point).map(|(a, b)| (a - b).powi(2)).sum();
        assert!(distance.sqrt() <= rough.point_error + minimum.point_error);
    }

    /// From SciPy as above: three clients of ten samples each.
    #[test]
    fn the_heterogeneity_is_that_of_scipy() {
        let samples = some_samples(4, 3, 30);
        let client = |k: u32| samples.select(&(10 * k..10 * k + 10).collect::<Vec<u32>>());
        let clients: Vec<Samples> = (0..3).map(client).collect();
        let parts = clients.iter().map(|samples| (1.0 / 3.0, samples)).collect();
        let common = Objective { parts, l2: 0.05 }.minimise(1e-13).value;
        let own = |samples| Objective { parts: vec![(1.0, samples)], l2: 0.05 }.minimise(1e-13).value;
        let gamma = common - clients.iter().map(own).sum::<f64>() / 3.0;
        assert!((gamma - 0.118_126_786_945_517_93).abs() < 1e-10, "{gamma}");
    }
}
