//! 5,000 handwritten digits that come with the library: the first 500 of each digit in MNIST's training file.
//!
//! The samples are dealt in turn: sample `n` is image `⌊n/10⌋` of digit `n mod 10`. Every split therefore has the same number of each
//! digit, up to one. The training part is the beginning of this order and the test part is its end.
//!
//! The images are by Yann LeCun, Corinna Cortes and Christopher J. C. Burges, under CC BY-SA 3.0; see
//! `data/NOTICE`.

use std::ops::Range;
use std::path::Path;

use super::DataSet;
use super::file::{DataFile, unit_interval};
use super::idx::{CLASSES, Digits, SIDE};
use super::part::{TEST, TRAINING};
use super::resize::Reduction;
use super::samples::Samples;
use super::shape::Shape;
use crate::error::{LearnError, require};

const IMAGES: &[u8] = include_bytes!("../../data/digits-images-idx3-ubyte.gz");
const LABELS: &[u8] = include_bytes!("../../data/digits-labels-idx1-ubyte.gz");
const COUNT: usize = 5000;
const REDUCED_SIDE: usize = 20;

/// The digits with 28×28 pixels, each from 0 (paper) to 1 (ink).
///
/// ```
/// let digits = floras_learn::data::digits28(4000, 1000)?;
/// assert_eq!(digits.train.width(), 784);
/// assert_eq!(digits.train.labels()[..12], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]);
/// assert_eq!(digits.test.label_counts(0..1000), [100; 10]);
/// # Ok::<(), floras_learn::LearnError>(())
/// ```
pub fn digits28(train: usize, test: usize) -> Result<DataSet, LearnError> {
    split(train, test, SIDE, |image, features| features.extend(unit_interval(image)))
}

/// The digits of [`digits28`], reduced to 20×20 pixels by bicubic interpolation. Values can be slightly outside [0, 1].
///
/// ```
/// let digits = floras_learn::data::digits20(4000, 1000)?;
/// assert_eq!((digits.train.count(), digits.test.count()), (4000, 1000));
/// assert_eq!(digits.train.width(), 400);
/// # Ok::<(), floras_learn::LearnError>(())
/// ```
pub fn digits20(train: usize, test: usize) -> Result<DataSet, LearnError> {
    let reduction = Reduction::new(SIDE, REDUCED_SIDE);
    let mut pixels = Vec::with_capacity(SIDE * SIDE);
    split(train, test, REDUCED_SIDE, |image, features| {
        pixels.clear();
        pixels.extend(image.iter().map(|&byte| f64::from(byte) / 255.0));
        reduction.apply(&pixels, features);
    })
}

/// Both parts; `append` computes the features of an image of `side` × `side` pixels.
fn split(
    train: usize,
    test: usize,
    side: usize,
    mut append: impl FnMut(&[u8], &mut Vec<f32>),
) -> Result<DataSet, LearnError> {
    require(train > 0, TRAINING.count, "at least 1", train)?;
    require(test > 0, TEST.count, "at least 1", test)?;
    let wanted = train.saturating_add(test);
    if wanted > COUNT {
        let what = "training and test together";
        return Err(LearnError::TooFewSamples { what, wanted, available: COUNT });
    }
    let digits = embedded()?;
    let mut part = |samples: Range<usize>| {
        let (mut features, mut labels) =
            (Vec::with_capacity(side * side * samples.len()), Vec::with_capacity(samples.len()));
        for place in samples.map(place_in_file) {
            append(&digits.pixels[place * SIDE * SIDE..][..SIDE * SIDE], &mut features);
            labels.push(digits.labels[place].into());
        }
        Samples::of_shape(Shape::new(1, side, side), CLASSES, features, labels)
    };
    Ok(DataSet { train: part(0..train)?, test: part(COUNT - test..COUNT)? })
}

/// The file holds one digit after the other.
fn place_in_file(sample: usize) -> usize {
    sample % CLASSES * (COUNT / CLASSES) + sample / CLASSES
}

fn embedded() -> Result<Digits, LearnError> {
    let file = |name: &str, bytes| DataFile::new(Path::new(name), bytes);
    Digits::read(file("digits-images-idx3-ubyte.gz", IMAGES)?, file("digits-labels-idx1-ubyte.gz", LABELS)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_file_holds_500_of_each_digit() {
        let digits = embedded().unwrap();
        let expected: Vec<u8> = (0..10).flat_map(|digit| [digit; 500]).collect();
        assert_eq!(digits.labels, expected);
        assert_eq!(digits.pixels.len(), COUNT * 784);
    }

    #[test]
    fn the_images_are_in_turn_of_each_digit() {
        let digits = embedded().unwrap();
        let set = digits28(4999, 1).unwrap();
        for (sample, digit, image) in [(0, 0, 0), (9, 9, 0), (10, 0, 1), (4321, 1, 432)] {
            let place = digit * 500 + image;
            let expected: Vec<f32> =
                digits.pixels[place * 784..][..784].iter().map(|&byte| f32::from(byte) / 255.0).collect();
            assert_eq!(set.train.row(sample), expected);
            assert_eq!(usize::from(set.train.labels()[sample]), digit);
        }
        let last: Vec<f32> = unit_interval(&digits.pixels[4999 * 784..]).collect();
        assert_eq!(set.test.row(0), last);
    }

    #[test]
    fn pixels_go_from_0_to_1() {
        let set = digits28(4999, 1).unwrap();
        let features = set.train.features();
        assert_eq!(features.iter().copied().fold(f32::INFINITY, f32::min), 0.0);
        assert_eq!(features.iter().copied().fold(f32::NEG_INFINITY, f32::max), 1.0);
    }

    #[test]
    fn the_reduced_images_reach_the_known_extremes() {
        let set = digits20(4999, 1).unwrap();
        let all = || set.train.features().iter().chain(set.test.features()).copied();
        let (least, most) = (all().fold(f32::INFINITY, f32::min), all().fold(f32::NEG_INFINITY, f32::max));
        assert!((least - -0.13196).abs() < 5e-6, "{least}");
        assert!((most - 1.12769).abs() < 5e-6, "{most}");
    }

    #[test]
    fn test_samples_do_not_depend_on_training_size() {
        let (few, many) = (digits20(1, 20).unwrap(), digits20(4000, 1000).unwrap());
        assert_eq!(few.test.features(), &many.test.features()[980 * 400..]);
        assert_eq!(few.train.row(0), many.train.row(0));
    }

    #[test]
    fn empty_and_oversized_parts_are_refused() {
        let words = |train, test| digits20(train, test).unwrap_err().to_string();
        assert_eq!(words(0, 10), "the number of training samples must be at least 1, not 0");
        assert_eq!(words(10, 0), "the number of test samples must be at least 1, not 0");
        let expected = "5001 samples were asked for (training and test together), but the data set has 5000";
        assert_eq!(words(4000, 1001), expected);
        assert!(digits28(usize::MAX, usize::MAX).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn any_split_is_balanced(train in 1_usize..2500, test in 1_usize..2500) {
            let set = digits28(train, test).unwrap();
            for (part, size) in [(set.train, train), (set.test, test)] {
                prop_assert_eq!(part.count(), size);
                let counts = part.label_counts(0..size);
                let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
                prop_assert!(most - least <= 1);
            }
        }
    }
}
