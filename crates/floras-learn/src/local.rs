//! Local training: mini-batch SGD of one client on its own samples, starting from the common model.
//!
//! ```text
//! w ← w − η·∇f_k(w; batch),     sent: x_k = w_t − w                                (paper, section III-A)
//! ```

use std::ops::Range;

use rand::Rng;
use rand::seq::SliceRandom;

use crate::data::{Augmentation, Samples};
use crate::error::{LearnError, require};
use crate::model::{Batch, Model, Scratch};

/// Amount of local training in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Passes over all samples of the client, shuffled again for each pass.
    Epochs(u32),
    /// Single steps, each on a mini-batch of full size; a sample repeats only after all others were used.
    Steps(u32),
}

/// Local mini-batch SGD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalSgd {
    batch: usize,
    work: Work,
    augmentation: Augmentation,
}

impl Default for LocalSgd {
    /// One epoch in mini-batches of 20.
    fn default() -> Self {
        Self { batch: 20, work: Work::Epochs(1), augmentation: Augmentation::default() }
    }
}

/// The random numbers of a client's training in a round: one generator for each use, so that the order of the samples is the same with
/// and without dropout and augmentation.
#[derive(Clone, Debug)]
pub struct Randomness<R> {
    /// The order of the samples.
    pub order: R,
    /// The values that dropout layers set to zero.
    pub dropout: R,
    /// Crops and flips.
    pub augmentation: R,
}

/// The samples of one client: some rows of a set.
#[derive(Clone, Copy, Debug)]
pub struct ClientData<'a> {
    /// The data set that contains the client's samples.
    pub samples: &'a Samples,
    /// The rows of the data set that the client holds.
    pub rows: &'a [u32],
}

/// Buffers of local training; one per thread serves all clients.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    /// Buffers of the model.
    pub scratch: Scratch,
    gradient: Vec<f32>,
    order: Vec<u32>,
    augmented: Augmented,
}

/// A mini-batch after augmentation.
#[derive(Clone, Debug, Default)]
struct Augmented {
    samples: Option<Samples>,
    rows: Vec<u32>,
}

impl LocalSgd {
    /// Mini-batches of at least one sample, between 1 and 1,000,000 epochs or steps.
    pub fn new(batch: usize, work: Work) -> Result<Self, LearnError> {
        require(batch > 0, "the mini-batch", "at least 1 sample", batch)?;
        let (name, amount) = match work {
            Work::Epochs(epochs) => ("the number of local epochs", epochs),
            Work::Steps(steps) => ("the number of local steps", steps),
        };
        require((1..=1_000_000).contains(&amount), name, "between 1 and 1000000", amount)?;
        Ok(Self { batch, work, augmentation: Augmentation::default() })
    }

    /// The same training, with random changes of every mini-batch. Samples must be images.
    pub fn with_augmentation(self, augmentation: Augmentation) -> Self {
        Self { augmentation, ..self }
    }

    /// Number of samples in a mini-batch; a client with fewer samples uses all of them.
    pub fn batch(self) -> usize {
        self.batch
    }

    /// Amount of local training in a round.
    pub fn work(self) -> Work {
        self.work
    }

    /// Number of steps in a round for a client with this many samples.
    pub fn steps(self, samples: usize) -> usize {
        match self.work {
            Work::Epochs(epochs) => epochs as usize * samples.div_ceil(self.batch),
            Work::Steps(steps) => steps as usize,
        }
    }

    /// Trains `parameters` in place and returns the mean cross-entropy over the mini-batches, each before its step. The
    /// client must hold at least one sample.
    pub fn train(
        self,
        model: &dyn Model,
        data: ClientData<'_>,
        rate: f64,
        randomness: &mut Randomness<impl Rng>,
        parameters: &mut [f32],
        workspace: &mut Workspace,
    ) -> f64 {
        workspace.order.clear();
        workspace.order.extend_from_slice(data.rows);
        let batch = self.batch.min(data.rows.len().max(1));
        let Randomness { order: randomness, dropout, augmentation } = randomness;
        let mut step = |workspace: &mut Workspace, batch: Range<usize>| {
            let step =
                Step { model, samples: data.samples, rate: rate as f32, augmentation: self.augmentation };
            workspace.step(step, batch, dropout, augmentation, parameters)
        };
        let mut losses = Mean::default();
        match self.work {
            Work::Epochs(epochs) => {
                for _ in 0..epochs {
                    workspace.order.shuffle(randomness);
                    for from in (0..data.rows.len()).step_by(batch) {
                        losses.add(step(workspace, from..(from + batch).min(data.rows.len())));
                    }
                }
            }
            Work::Steps(steps) => {
                let in_a_pass = (data.rows.len() / batch).max(1);
                for number in 0..steps as usize {
                    let place = number % in_a_pass;
                    if place == 0 {
                        let needed = ((steps as usize - number).min(in_a_pass) * batch).min(data.rows.len());
                        let (chosen, _) = workspace.order.partial_shuffle(randomness, needed);
                        debug_assert_eq!(chosen.len(), needed);
                        // The chosen samples are at the end, and batches are taken from the beginning.
                        workspace.order.rotate_right(needed);
                    }
                    losses.add(step(workspace, place * batch..(place + 1) * batch));
                }
            }
        }
        losses.mean()
    }
}

impl Workspace {
    /// One step on a part of the shuffled order; returns the mean cross-entropy before the step.
    fn step(
        &mut self,
        step: Step<'_>,
        batch: Range<usize>,
        dropout: &mut dyn Rng,
        augmentation: &mut dyn Rng,
        parameters: &mut [f32],
    ) -> f64 {
        let Step { model, samples, rate, .. } = step;
        self.gradient.resize(parameters.len(), 0.0);
        let rows = &self.order[batch];
        let batch = if step.augmentation.is_none() {
            Batch { samples, rows }
        } else {
            self.augmented.fill(step.augmentation, Batch { samples, rows }, augmentation)
        };
        let loss = model.gradient(parameters, batch, dropout, &mut self.scratch, &mut self.gradient);
        pulp::Arch::new().dispatch(Descend { parameters, gradient: &self.gradient, rate });
        loss
    }
}

/// What all steps of a training have in common.
#[derive(Clone, Copy)]
struct Step<'a> {
    model: &'a dyn Model,
    samples: &'a Samples,
    rate: f32,
    augmentation: Augmentation,
}

impl Augmented {
    /// A copy of the batch with random changes.
    fn fill(&mut self, augmentation: Augmentation, batch: Batch<'_>, randomness: &mut dyn Rng) -> Batch<'_> {
        let samples = self.samples.get_or_insert_with(|| batch.samples.select(&[]));
        samples.augment(augmentation, batch.samples, batch.rows, randomness);
        self.rows.clear();
        self.rows.extend(0..batch.rows.len() as u32);
        Batch { samples, rows: &self.rows }
    }
}

/// `w ← w − η·∂w`.
struct Descend<'a> {
    parameters: &'a mut [f32],
    gradient: &'a [f32],
    rate: f32,
}

impl pulp::WithSimd for Descend<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        for (parameter, &slope) in self.parameters.iter_mut().zip(self.gradient) {
            *parameter = (-self.rate).mul_add(slope, *parameter);
        }
    }
}

#[derive(Default)]
struct Mean {
    sum: f64,
    count: usize,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    use super::*;
    use crate::model::{Logistic, penalty, score_all};

    /// A model whose gradient shows which samples it received: every sample changes its own parameter.
    #[derive(Debug)]
    struct SampleCounter(usize);

    impl Model for SampleCounter {
        fn features(&self) -> usize {
            1
        }
        fn classes(&self) -> usize {
            2
        }
        fn l2(&self) -> f32 {
            0.0
        }
        fn tensors(&self) -> Vec<crate::Tensor> {
            vec![crate::Tensor { name: "seen".to_owned(), shape: vec![self.0] }]
        }
        fn initialise(&self, _: &mut dyn Rng) -> Vec<f32> {
            vec![0.0; self.0]
        }
        fn gradient(
            &self,
            _: &[f32],
            batch: Batch<'_>,
            _: &mut dyn Rng,
            _: &mut Scratch,
            gradient: &mut [f32],
        ) -> f64 {
            gradient.fill(0.0);
            for &row in batch.rows {
                gradient[row as usize] = -1.0;
            }
            batch.count() as f64
        }
        fn score(&self, _: &[f32], _: Batch<'_>, _: &mut Scratch) -> crate::Score {
            crate::Score::default()
        }
    }

    fn randomness(seed: u64) -> Randomness<ChaCha8Rng> {
        let [order, dropout, augmentation] = [0, 1, 2].map(|stream| {
            let mut generator = ChaCha8Rng::seed_from_u64(seed);
            generator.set_stream(stream);
            generator
        });
        Randomness { order, dropout, augmentation }
    }

    fn numbered(count: usize) -> Samples {
        Samples::new(1, 2, (0..count).map(|row| row as f32).collect(), vec![0; count]).unwrap()
    }

    /// The number of uses of each of the client's samples, and the mean size of the batches.
    fn uses_of_samples(sgd: LocalSgd, samples: usize, seed: u64) -> (Vec<f32>, f64) {
        let rows: Vec<u32> = (0..samples as u32).collect();
        let (set, model) = (numbered(samples), SampleCounter(samples));
        let data = ClientData { samples: &set, rows: &rows };
        let mut parameters = vec![0.0; samples];
        let mut generator = randomness(seed);
        let loss = sgd.train(&model, data, 1.0, &mut generator, &mut parameters, &mut Workspace::default());
        (parameters, loss)
    }

    #[test]
    fn an_epoch_sees_every_sample_once() {
        let sgd = LocalSgd { batch: 4, work: Work::Epochs(2), ..LocalSgd::default() };
        let (counts, mean_batch) = uses_of_samples(sgd, 10, 1);
        assert_eq!(counts, [2.0; 10]);
        assert!((mean_batch - 10.0 / 3.0).abs() < 1e-12);
        assert_eq!(sgd.steps(10), 6);
    }

    #[test]
    fn steps_take_full_batches_without_repetition() {
        let sgd = |steps| LocalSgd { batch: 4, work: Work::Steps(steps), ..LocalSgd::default() };
        let (counts, mean_batch) = uses_of_samples(sgd(2), 10, 1);
        assert_eq!((counts.iter().sum::<f32>(), mean_batch), (8.0, 4.0));
        assert!(counts.iter().all(|&count| count <= 1.0));
        let (counts, _) = uses_of_samples(sgd(5), 10, 1);
        assert_eq!(counts.iter().sum::<f32>(), 20.0);
        assert!(counts.iter().all(|&count| count <= 3.0));
    }

    /// 2000 single steps of 3 out of 10: each sample 600 times, standard deviation 20; five of those see a bias.
    #[test]
    fn a_single_step_draws_a_uniform_batch() {
        let mut totals = [0.0; 10];
        let mut batches = HashSet::new();
        for seed in 0..2000 {
            let (counts, _) =
                uses_of_samples(LocalSgd { batch: 3, work: Work::Steps(1), ..LocalSgd::default() }, 10, seed);
            batches.insert(counts.iter().map(|&count| count as u8).collect::<Vec<_>>());
            totals.iter_mut().zip(&counts).for_each(|(total, count)| *total += count);
        }
        assert!(totals.iter().all(|total| (total - 600.0).abs() < 103.0), "{totals:?}");
        // There are 120 subsets of 3 out of 10; each is missed with probability (119/120)^2000 < 1e-7.
        assert_eq!(batches.len(), 120);
    }

    /// A model that records the order in which it receives samples.
    #[derive(Debug, Default)]
    struct SampleRecorder(std::sync::Mutex<Vec<u32>>);

    impl Model for SampleRecorder {
        fn features(&self) -> usize {
            1
        }
        fn classes(&self) -> usize {
            2
        }
        fn l2(&self) -> f32 {
            0.0
        }
        fn tensors(&self) -> Vec<crate::Tensor> {
            vec![crate::Tensor { name: "none".to_owned(), shape: vec![1] }]
        }
        fn initialise(&self, _: &mut dyn Rng) -> Vec<f32> {
            vec![0.0]
        }
        fn gradient(
            &self,
            _: &[f32],
            batch: Batch<'_>,
            _: &mut dyn Rng,
            _: &mut Scratch,
            _: &mut [f32],
        ) -> f64 {
            self.0.lock().unwrap().extend_from_slice(batch.rows);
            0.0
        }
        fn score(&self, _: &[f32], _: Batch<'_>, _: &mut Scratch) -> crate::Score {
            crate::Score::default()
        }
    }

    #[test]
    fn every_pass_is_shuffled() {
        for work in [Work::Epochs(2), Work::Steps(20)] {
            let recorder = SampleRecorder::default();
            let rows: Vec<u32> = (0..30).collect();
            let (set, mut generator) = (numbered(30), randomness(4));
            let data = ClientData { samples: &set, rows: &rows };
            let sgd = LocalSgd { batch: 3, work, ..LocalSgd::default() };
            sgd.train(&recorder, data, 0.1, &mut generator, &mut [0.0], &mut Workspace::default());
            let order = recorder.0.into_inner().unwrap();
            let (first, second) = order.split_at(30);
            assert!(first != rows && second != rows && first != second, "{work:?}");
            for pass in [first, second] {
                let mut sorted = pass.to_vec();
                sorted.sort_unstable();
                assert_eq!(sorted, rows);
            }
        }
    }

    #[test]
    fn a_large_batch_takes_all_samples() {
        for work in [Work::Epochs(1), Work::Steps(1)] {
            assert_eq!(
                uses_of_samples(LocalSgd { batch: 99, work, ..LocalSgd::default() }, 7, 2),
                (vec![1.0; 7], 7.0)
            );
        }
    }

    #[test]
    fn full_batch_steps_are_gradient_descent() {
        let samples = Samples::new(2, 2, vec![1.0, 0.0, 0.0, 1.0, 0.5, 0.5], vec![0, 1, 1]).unwrap();
        let model = Logistic::new(2, 2, 0.1).unwrap();
        let (start, rate) = (vec![0.1, -0.2, 0.3, 0.0, 0.05, -0.1], 0.5);
        let mut gradient = vec![0.0; 6];
        let loss = model.gradient(
            &start,
            Batch { samples: &samples, rows: &[0, 1, 2] },
            &mut ChaCha8Rng::seed_from_u64(0),
            &mut Scratch::default(),
            &mut gradient,
        );
        let mut trained = start.clone();
        let sgd = LocalSgd { batch: 3, work: Work::Steps(1), ..LocalSgd::default() };
        let data = ClientData { samples: &samples, rows: &[2, 0, 1] };
        let mut generator = randomness(1);
        let local = sgd.train(&model, data, rate, &mut generator, &mut trained, &mut Workspace::default());
        assert!((local - loss).abs() < 1e-6);
        for index in 0..6 {
            let expected = start[index] - rate as f32 * gradient[index];
            assert!((trained[index] - expected).abs() < 1e-6);
        }
        let before = loss + penalty(&model, &start);
        let after = score_all(&model, &trained, &samples, &mut Scratch::default()).mean_loss()
            + penalty(&model, &trained);
        assert!(after < before);
    }

    #[test]
    fn empty_batches_and_zero_work_are_refused() {
        assert!(LocalSgd::new(0, Work::Epochs(1)).is_err());
        assert!(LocalSgd::new(1, Work::Epochs(0)).is_err());
        assert!(LocalSgd::new(1, Work::Steps(0)).is_err());
    }
}
