//! Multinomial logistic regression, the paper's task: `softmax(W·x + b)` with the penalty `λ‖w‖²` (section VII).
//!
//! The objective is strongly convex for `λ > 0`, with `μ = 2λ`. Its gradient over a batch of `n` samples is
//!
//! ```text
//! ∂W = Dᵀ·X + 2λW,   ∂b = Σ_i D_i + 2λb,   D = (softmax(X·Wᵀ + b) − onehot(y))/n
//! ```

use rand::Rng;

use super::{Activations, Batch, Layer, Model, Scratch, Tensor, narrow};
use crate::error::{LearnError, require};
use crate::softmax::{self, Score};

/// Multinomial logistic regression.
#[derive(Clone, Debug, PartialEq)]
pub struct Logistic {
    layer: Layer,
    l2: f32,
}

impl Logistic {
    /// A model for samples of `features` features in `classes` classes, with penalty `l2·‖w‖²`.
    pub fn new(features: usize, classes: usize, l2: f64) -> Result<Self, LearnError> {
        require(features > 0 && classes > 1, "the model", "for at least 1 feature and 2 classes", "smaller")?;
        require((0.0..=1e6).contains(&l2), "the penalty l2 (λ)", "between 0 and 1e6", l2)?;
        Ok(Self { layer: Layer { inputs: features, outputs: classes }, l2: l2 as f32 })
    }

    fn is_narrow(&self) -> bool {
        self.layer.outputs <= narrow::MAX_OUTPUTS
    }

    /// Fills the labels and the logits of the scratch memory, and the features if they are needed in contiguous
    /// memory.
    fn forward(&self, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch) {
        batch.copy_labels(&mut scratch.labels);
        if self.is_narrow() {
            scratch.logits.resize(self.layer.outputs * batch.count(), 0.0);
            narrow::forward(parameters, batch, &mut scratch.logits);
        } else {
            batch.copy_features(&mut scratch.features);
            let inputs = Activations::BySample(&scratch.features);
            self.layer.forward(parameters, inputs, batch.count(), &mut scratch.logits);
        }
    }
}

impl Model for Logistic {
    fn features(&self) -> usize {
        self.layer.inputs
    }

    fn classes(&self) -> usize {
        self.layer.outputs
    }

    fn l2(&self) -> f32 {
        self.l2
    }

    fn is_softmax_regression(&self) -> bool {
        true
    }

    fn tensors(&self) -> Vec<Tensor> {
        let Layer { inputs, outputs } = self.layer;
        vec![
            Tensor { name: "weight".to_owned(), shape: vec![outputs, inputs] },
            Tensor { name: "bias".to_owned(), shape: vec![outputs] },
        ]
    }

    /// Zero: the objective is convex, so that random initial values have no advantage.
    fn initialise(&self, _: &mut dyn Rng) -> Vec<f32> {
        vec![0.0; self.layer.parameters()]
    }

    fn gradient(
        &self,
        parameters: &[f32],
        batch: Batch<'_>,
        _: &mut dyn Rng,
        scratch: &mut Scratch,
        gradient: &mut [f32],
    ) -> f64 {
        self.forward(parameters, batch, scratch);
        let loss_sum = softmax::gradient(&mut scratch.logits, &scratch.labels, &mut scratch.softmax);
        if self.is_narrow() {
            narrow::backward(parameters, batch, &scratch.logits, self.l2, gradient);
        } else {
            let inputs = Activations::BySample(&scratch.features);
            self.layer.backward(parameters, inputs, &scratch.logits, self.l2, gradient);
        }
        loss_sum / batch.count() as f64
    }

    fn score(&self, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch) -> Score {
        self.forward(parameters, batch, scratch);
        softmax::score(&mut scratch.logits, &scratch.labels, &mut scratch.softmax)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    use super::super::checks::{gradient_meets_finite_differences, score_of_all, some_samples};
    use super::*;
    use crate::data::Samples;

    #[test]
    fn the_gradient_meets_finite_differences() {
        for l2 in [0.0, 0.05] {
            // Features and classes around the vectors and groups of the narrow kernel, and more classes than it takes.
            for (features, classes, count) in
                [(5, 3, 11), (5, 3, 1), (16, 5, 2), (35, 10, 7), (71, 11, 6), (4, 33, 9)]
            {
                let model = Logistic::new(features, classes, l2).unwrap();
                let samples = some_samples(features, classes, count);
                gradient_meets_finite_differences(&model, &[features, classes], &samples);
            }
        }
    }

    #[test]
    fn an_untrained_model_guesses() {
        let model = Logistic::new(4, 10, 0.01).unwrap();
        let samples = some_samples(4, 10, 30);
        let zero = vec![0.0; model.parameters()];
        let score = score_of_all(&model, &zero, &samples);
        assert!((score.mean_loss() - 10_f64.ln()).abs() < 1e-6);
        let zeros = samples.labels().iter().filter(|&&label| label == 0).count();
        assert_eq!(score.hits, zeros, "an untrained model predicts the first class");
    }

    #[test]
    fn listed_rows_equal_contiguous_rows() {
        let model = Logistic::new(37, 10, 0.01).unwrap();
        let samples = some_samples(37, 10, 40);
        let parameters: Vec<f32> = (0..model.parameters()).map(|i| (i as f32).cos()).collect();
        let rows = [7, 31, 2, 2, 39, 0, 11];
        let features = rows.iter().flat_map(|&row| samples.row(row as usize)).copied().collect();
        let labels = rows.iter().map(|&row| samples.labels()[row as usize]).collect();
        let copied = Samples::new(37, 10, features, labels).unwrap();
        let gradient = |batch: Batch<'_>| {
            let mut gradient = vec![0.0; parameters.len()];
            let mut unused = ChaCha8Rng::seed_from_u64(0);
            model.gradient(&parameters, batch, &mut unused, &mut Scratch::default(), &mut gradient);
            gradient
        };
        let all = [0, 1, 2, 3, 4, 5, 6];
        let listed = gradient(Batch { samples: &samples, rows: &rows });
        assert_eq!(listed, gradient(Batch { samples: &copied, rows: &all }));
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        assert!(Logistic::new(4, 3, -0.1).is_err());
        assert!(Logistic::new(4, 3, f64::NAN).is_err());
        assert!(Logistic::new(4, 1, 0.0).is_err());
        assert!(Logistic::new(0, 3, 0.0).is_err());
    }
}
