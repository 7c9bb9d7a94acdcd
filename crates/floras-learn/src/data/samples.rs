//! Labelled samples in memory.

use rand::Rng;

use super::augmentation::Augmentation;
use super::shape::Shape;
use crate::error::{LearnError, require};

/// Rows of features, and the class of each.
///
/// ```
/// use floras_learn::Samples;
///
/// let samples = Samples::new(2, 3, vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6], vec![0, 2, 1])?;
/// assert_eq!(samples.row(1), [0.3, 0.4]);
/// assert_eq!(samples.label_counts(0..3), [1, 1, 1]);
/// # Ok::<(), floras_learn::LearnError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    shape: Shape,
    classes: usize,
    features: Aligned,
    labels: Vec<u16>,
}

impl Samples {
    /// Largest number of classes.
    pub const MAX_CLASSES: usize = 1 << 12;

    /// Vectors of `width` features each, row after row, with labels below `classes`.
    pub fn new(
        width: usize,
        classes: usize,
        features: Vec<f32>,
        labels: Vec<u16>,
    ) -> Result<Self, LearnError> {
        Self::of_shape(Shape::vector(width), classes, features, labels)
    }

    /// Samples of this shape, one after another, with labels below `classes`.
    pub fn of_shape(
        shape: Shape,
        classes: usize,
        features: Vec<f32>,
        labels: Vec<u16>,
    ) -> Result<Self, LearnError> {
        let width = shape.features();
        require(width > 0, "the number of features", "at least 1", width)?;
        let allowed = || format!("between 2 and {}", Self::MAX_CLASSES);
        require((2..=Self::MAX_CLASSES).contains(&classes), "the number of classes", allowed(), classes)?;
        if features.len() != width * labels.len() {
            let reason = format!(
                "{} labels need {width} features each, but there are {}",
                labels.len(),
                features.len()
            );
            return Err(LearnError::MisshapenSamples { reason });
        }
        if let Some(position) = features.iter().position(|value| !value.is_finite()) {
            let reason = format!("feature {} of sample {} is not finite", position % width, position / width);
            return Err(LearnError::MisshapenSamples { reason });
        }
        if let Some(position) = labels.iter().position(|&label| usize::from(label) >= classes) {
            let label = labels[position];
            let reason = format!("the label of sample {position} must be below {classes}, not {label}");
            return Err(LearnError::MisshapenSamples { reason });
        }
        Ok(Self { shape, classes, features: Aligned::new(&features), labels })
    }

    /// Number of samples.
    pub fn count(&self) -> usize {
        self.labels.len()
    }

    /// Number of features of a sample.
    pub fn width(&self) -> usize {
        self.shape.features()
    }

    /// The shape of a sample.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The same samples with another shape of as many features.
    pub fn with_shape(self, shape: Shape) -> Result<Self, LearnError> {
        if shape.features() != self.width() {
            let (width, features) = (self.width(), shape.features());
            let reason =
                format!("samples with {width} features cannot have the shape {shape}, which has {features}");
            return Err(LearnError::MisshapenSamples { reason });
        }
        Ok(Self { shape, ..self })
    }

    /// The same samples with `(x − mean)/deviation` in place of every feature `x`, for each channel.
    pub(crate) fn normalised(mut self, means: &[f32], deviations: &[f32]) -> Self {
        let pixels = self.shape.pixels();
        let channels = means.iter().zip(deviations).cycle();
        for (plane, (&mean, &deviation)) in self.features.values_mut().chunks_exact_mut(pixels).zip(channels)
        {
            plane.iter_mut().for_each(|value| *value = (*value - mean) / deviation);
        }
        self
    }

    /// Number of classes; every label is below it.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The features of all samples, row after row.
    #[inline(always)]
    pub fn features(&self) -> &[f32] {
        self.features.values()
    }

    /// The label of each sample, below [`classes`](Self::classes).
    pub fn labels(&self) -> &[u16] {
        &self.labels
    }

    /// The features of one sample.
    #[inline(always)]
    pub fn row(&self, sample: usize) -> &[f32] {
        &self.features.values()[sample * self.width()..][..self.width()]
    }

    /// A copy of some samples, in the given order. Rows outside the set are skipped.
    pub fn select(&self, rows: &[u32]) -> Self {
        let rows = || rows.iter().map(|&row| row as usize).filter(|&row| row < self.count());
        let mut features = Vec::with_capacity(rows().count() * self.width());
        rows().for_each(|row| features.extend_from_slice(self.row(row)));
        let labels = rows().map(|row| self.labels[row]).collect();
        Self { shape: self.shape, classes: self.classes, features: Aligned::new(&features), labels }
    }

    /// Replaces these samples by rows of another set with random changes; the memory is kept.
    pub(crate) fn augment(
        &mut self,
        augmentation: Augmentation,
        source: &Self,
        rows: &[u32],
        randomness: &mut dyn Rng,
    ) {
        (self.shape, self.classes) = (source.shape, source.classes);
        self.features.padded.truncate(self.features.start);
        self.labels.clear();
        for &row in rows {
            let image = source.row(row as usize);
            augmentation.append(image, self.shape, randomness, &mut self.features.padded);
            self.labels.push(source.labels[row as usize]);
        }
    }

    /// Number of the given samples with each label.
    pub fn label_counts(&self, samples: impl IntoIterator<Item = usize>) -> Vec<u32> {
        let mut counts = vec![0; self.classes];
        for sample in samples {
            counts[usize::from(self.labels[sample])] += 1;
        }
        counts
    }
}

/// Numbers that begin at a cache line: vectors that straddle two lines take twice as long to load.
#[derive(Debug)]
struct Aligned {
    padded: Vec<f32>,
    start: usize,
}

impl Aligned {
    const CACHE_LINE: usize = 64;

    fn new(values: &[f32]) -> Self {
        let most = Self::CACHE_LINE / size_of::<f32>();
        let mut padded: Vec<f32> = Vec::with_capacity(values.len() + most);
        let start = padded.as_ptr().align_offset(Self::CACHE_LINE).min(most);
        padded.resize(start, 0.0);
        padded.extend_from_slice(values);
        Self { padded, start }
    }

    #[inline(always)]
    fn values(&self) -> &[f32] {
        &self.padded[self.start..]
    }

    fn values_mut(&mut self) -> &mut [f32] {
        &mut self.padded[self.start..]
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Self {
        Self::new(self.values())
    }
}

impl PartialEq for Aligned {
    fn eq(&self, other: &Self) -> bool {
        self.values() == other.values()
    }
}
