//! A generated classification task of any size, for tests of scale.
//!
//! ```text
//! x = separation·m_y/√2 + n,     m_c and n standard normal in every feature
//! ```
//!
//! Two class centres lie `separation·√features` apart, on average. A client's samples are a function of the client's own
//! random stream, so that a hundred thousand clients need no memory until they take part.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

use super::Samples;
use super::shape::Shape;
use crate::error::{LearnError, require};
use crate::partition::{Partition, dirichlet_shares, log_normal, some_labels};

/// Maximum size of a client relative to the mean size.
const MAX_SPREAD: f64 = 100.0;

/// A generated task: the centres of its classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Synthetic {
    shape: Shape,
    centres: Vec<Vec<f32>>,
}

impl Synthetic {
    /// Draws the centres of `classes` classes in `features` dimensions.
    pub fn new(
        features: usize,
        classes: usize,
        separation: f64,
        randomness: &mut impl Rng,
    ) -> Result<Self, LearnError> {
        require(
            (1..=1 << 20).contains(&features),
            "the number of features",
            "between 1 and 1048576",
            features,
        )?;
        let allowed = || format!("between 2 and {}", Samples::MAX_CLASSES);
        require((2..=Samples::MAX_CLASSES).contains(&classes), "the number of classes", allowed(), classes)?;
        require(
            (0.0..=1e3).contains(&separation),
            "the separation of classes",
            "between 0 and 1000",
            separation,
        )?;
        let scale = (separation / 2_f64.sqrt()) as f32;
        let mut centre = || (0..features).map(|_| scale * normal(randomness)).collect();
        Ok(Self { shape: Shape::vector(features), centres: (0..classes).map(|_| centre()).collect() })
    }

    /// Number of features of a sample.
    pub fn features(&self) -> usize {
        self.shape.features()
    }

    /// The shape of a sample.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The same task with samples of another shape of as many features.
    pub fn with_shape(self, shape: Shape) -> Result<Self, LearnError> {
        let (features, found) = (self.features(), shape.features());
        require(features == found, "the number of features of the shape", features.to_string(), found)?;
        Ok(Self { shape, ..self })
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.centres.len()
    }

    /// `count` samples with labels drawn uniformly.
    pub fn draw(&self, count: usize, randomness: &mut impl Rng) -> Result<Samples, LearnError> {
        let labels = (0..count).map(|_| self.any_label(randomness)).collect();
        self.with_labels(labels, randomness)
    }

    /// About `count` samples of one client, with labels drawn as the partition states.
    ///
    /// Every client is drawn on its own from its own randomness, so that under "one label" each client draws its label independently.
    pub fn client(
        &self,
        partition: Partition,
        count: usize,
        randomness: &mut impl Rng,
    ) -> Result<Samples, LearnError> {
        let labels = self.client_labels(partition, count, randomness);
        self.with_labels(labels, randomness)
    }

    /// The labels that [`client`](Self::client) draws first.
    pub fn client_labels(&self, partition: Partition, count: usize, randomness: &mut impl Rng) -> Vec<u16> {
        let from = |some: Vec<u16>, randomness: &mut _| pick(&some, count, randomness);
        match partition {
            Partition::Iid | Partition::Given => (0..count).map(|_| self.any_label(randomness)).collect(),
            Partition::OneLabel => vec![self.any_label(randomness); count],
            Partition::Shards(pieces) => {
                from(some_labels(self.classes(), pieces.get() as usize, randomness), randomness)
            }
            Partition::Dirichlet(alpha) => {
                let shares = dirichlet_shares(self.classes(), alpha.get(), randomness);
                (0..count).map(|_| draw_from(&shares, randomness)).collect()
            }
            Partition::Unequal(_) => {
                let size = Self::client_size(partition, count, randomness);
                (0..size).map(|_| self.any_label(randomness)).collect()
            }
        }
    }

    /// Number of samples that [`client`](Self::client) draws: `count`, or a size with that mean if sizes are unequal.
    pub fn client_size(partition: Partition, count: usize, randomness: &mut impl Rng) -> usize {
        let Partition::Unequal(spread) = partition else { return count };
        let spread = spread.get();
        // The median of a log-normal variable is below its mean.
        let size = log_normal(spread, randomness) * (-0.5 * spread * spread).exp() * count as f64;
        size.round().clamp(1.0, MAX_SPREAD * count as f64) as usize
    }

    fn any_label(&self, randomness: &mut impl Rng) -> u16 {
        randomness.random_range(0..self.classes()) as u16
    }

    fn with_labels(&self, labels: Vec<u16>, randomness: &mut impl Rng) -> Result<Samples, LearnError> {
        let mut features = Vec::with_capacity(labels.len() * self.features());
        for &label in &labels {
            features
                .extend(self.centres[usize::from(label)].iter().map(|centre| centre + normal(randomness)));
        }
        Samples::of_shape(self.shape, self.classes(), features, labels)
    }
}

fn normal(randomness: &mut impl Rng) -> f32 {
    StandardNormal.sample(randomness)
}

fn pick(labels: &[u16], count: usize, randomness: &mut impl Rng) -> Vec<u16> {
    (0..count).map(|_| labels[randomness.random_range(0..labels.len())]).collect()
}

fn draw_from(shares: &[f64], randomness: &mut impl Rng) -> u16 {
    let mut left: f64 = randomness.random();
    for (label, share) in shares.iter().enumerate() {
        left -= share;
        if left < 0.0 {
            return label as u16;
        }
    }
    // Rounding can leave a small remainder after the last label with a share.
    shares.iter().rposition(|&share| share > 0.0).unwrap_or(0) as u16
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    use super::*;

    fn task(separation: f64) -> Synthetic {
        Synthetic::new(20, 4, separation, &mut ChaCha8Rng::seed_from_u64(3)).unwrap()
    }

    fn labels(partition: Partition) -> Vec<u16> {
        task(1.0).client_labels(partition, 400, &mut ChaCha8Rng::seed_from_u64(8))
    }

    /// The best rule that knows the centres errs between two classes at distance D with probability Φ(−D/2).
    #[test]
    fn samples_lie_around_the_centre_of_their_class() {
        let task = task(2.0);
        let samples = task.draw(2000, &mut ChaCha8Rng::seed_from_u64(4)).unwrap();
        let distance = |row: &[f32], centre: &[f32]| -> f32 {
            row.iter().zip(centre).map(|(x, c)| (x - c) * (x - c)).sum()
        };
        let mut squares = 0.0;
        for (sample, &label) in samples.labels().iter().enumerate() {
            squares += f64::from(distance(samples.row(sample), &task.centres[usize::from(label)]));
        }
        // Mean 20, standard error √(40/2000) = 0.14.
        assert!((squares / 2000.0 - 20.0).abs() < 0.7, "{}", squares / 2000.0);
        let apart = distance(&task.centres[0], &task.centres[1]);
        // 4·χ²₂₀: mean 80, standard deviation 25.
        assert!((20.0..200.0).contains(&apart), "{apart}");
    }

    #[test]
    fn labels_follow_the_partition() {
        let different = |labels: &[u16]| labels.iter().collect::<HashSet<_>>().len();
        assert_eq!(different(&labels(Partition::Iid)), 4);
        assert_eq!(different(&labels(Partition::OneLabel)), 1);
        assert_eq!(different(&labels(Partition::shards(2).unwrap())), 2);
        assert_eq!(different(&labels(Partition::dirichlet(0.001).unwrap())), 1);
        assert_eq!(different(&labels(Partition::dirichlet(1000.0).unwrap())), 4);
        assert_ne!(labels(Partition::unequal(1.0).unwrap()).len(), 400);
        assert_eq!(labels(Partition::unequal(0.0).unwrap()).len(), 400);
    }

    /// A log-normal size of spread 1 has a standard deviation of 1.3 times its mean. Over 4000 clients the mean has a relative
    /// standard error of 2%; the limit is 10%. Without the correction it would be 65% too large.
    #[test]
    fn unequal_clients_have_the_requested_mean_size() {
        let size = |seed| {
            task(1.0)
                .client_labels(Partition::unequal(1.0).unwrap(), 50, &mut ChaCha8Rng::seed_from_u64(seed))
                .len()
        };
        let mean = (0..4000).map(size).sum::<usize>() as f64 / 4000.0;
        assert!((mean / 50.0 - 1.0).abs() < 0.1, "{mean}");
    }

    #[test]
    fn centres_lie_as_far_apart_as_asked() {
        let [near, far] = [1.0, 3.0].map(task);
        assert!((far.centres[2][7] / near.centres[2][7] - 3.0).abs() < 1e-5);
        assert!(task(0.0).centres.iter().flatten().all(|&value| value == 0.0));
    }

    #[test]
    fn the_same_stream_gives_the_same_client() {
        let draw = |seed| task(1.0).client(Partition::Iid, 5, &mut ChaCha8Rng::seed_from_u64(seed)).unwrap();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn sizes_out_of_range_are_refused() {
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        assert!(Synthetic::new(0, 4, 1.0, &mut generator).is_err());
        assert!(Synthetic::new(5, 1, 1.0, &mut generator).is_err());
        assert!(Synthetic::new(5, 5000, 1.0, &mut generator).is_err());
        assert!(Synthetic::new(5, 4, f64::NAN, &mut generator).is_err());
    }
}
