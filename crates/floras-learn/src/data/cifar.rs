//! CIFAR-10 in its binary version.
//!
//! 60,000 colour pictures of 32×32 pixels in 10 classes. Six files, `data_batch_1.bin` … `data_batch_5.bin` and
//! `test_batch.bin`, hold 10,000 records of 3,073 bytes each: the label, then 1,024 bytes of red, green and blue, each
//! plane row after row.
//!
//! # Citations
//!
//! A. Krizhevsky, "Learning multiple layers of features from tiny images", technical report, University of Toronto,
//! 2009.

use std::path::Path;

use super::DataSet;
use super::file::{DataFile, unit_interval};
use super::part::{TEST, TRAINING};
use super::samples::Samples;
use super::shape::Shape;
use crate::error::LearnError;

const SHAPE: Shape = Shape::new(3, 32, 32);
const WIDTH: usize = SHAPE.features();
const RECORD: usize = 1 + WIDTH;
const CLASSES: usize = 10;
const BATCHES: usize = 5;
const BATCH: usize = 10_000;

const HOW: &str =
    "the binary version of CIFAR-10 has six files, from https://www.cs.toronto.edu/~kriz/cifar.html";

/// CIFAR-10: 50,000 training and 10,000 test pictures. Returns the first `train` and `test` of them, or all.
///
/// The 3,072 features of a picture are its red, then its green, then its blue plane, each from 0 to 1. `directory` holds
/// the six files of the binary version, plain or gzipped, or a directory `cifar-10-batches-bin` that does. Only the
/// training files that are needed are read.
///
/// ```no_run
/// use std::path::Path;
///
/// let cifar = floras_learn::data::cifar10(Path::new("data/cifar10"), Some(10_000), None)?;
/// assert_eq!(cifar.train.width(), 3072);
/// assert_eq!(cifar.train.labels()[..5], [6, 9, 9, 4, 1]);
/// # Ok::<(), floras_learn::LearnError>(())
/// ```
pub fn cifar10(directory: &Path, train: Option<usize>, test: Option<usize>) -> Result<DataSet, LearnError> {
    batches(directory, train, test, BATCH)
}

/// Like [`cifar10`], for files with `records` records each.
fn batches(
    directory: &Path,
    train: Option<usize>,
    test: Option<usize>,
    records: usize,
) -> Result<DataSet, LearnError> {
    let (train, test) = (TRAINING.size(train, BATCHES * records)?, TEST.size(test, records)?);
    let names: Vec<_> =
        (1..=train.div_ceil(records)).map(|batch| format!("data_batch_{batch}.bin")).collect();
    Ok(DataSet {
        train: first(directory, &names, train, records)?,
        test: first(directory, &["test_batch.bin".to_owned()], test, records)?,
    })
}

/// The first `count` samples of these files.
fn first(directory: &Path, names: &[String], count: usize, records: usize) -> Result<Samples, LearnError> {
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for name in names {
        let mut file = DataFile::find(directory, &[name, &format!("cifar-10-batches-bin/{name}")], HOW)?;
        let bytes = batch(&mut file, records)?;
        let missing = count - labels.len();
        features.reserve_exact(WIDTH * missing.min(records));
        for record in bytes.chunks_exact(RECORD).take(missing) {
            labels.push(record[0].into());
            features.extend(unit_interval(&record[1..]));
        }
    }
    Samples::of_shape(SHAPE, CLASSES, features, labels)
}

/// All records of a file.
fn batch(file: &mut DataFile, records: usize) -> Result<Vec<u8>, LearnError> {
    let size = records * RECORD;
    let bytes = file.next(size)?;
    if bytes.len() < size {
        let found = bytes.len();
        let reason = format!("it has {found} bytes, not {records} records of {RECORD} ({size})");
        return Err(file.malformed(reason));
    }
    if !file.has_ended()? {
        return Err(file.malformed(format!("it has more than {records} records of {RECORD} bytes")));
    }
    let mut labels = bytes.iter().step_by(RECORD).enumerate();
    if let Some((record, label)) = labels.find(|&(_, &label)| usize::from(label) >= CLASSES) {
        let reason = format!("the label of record {record} is {label}; it must be below {CLASSES}");
        return Err(file.malformed(reason));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::file::testing::{Directory, damaged, gzip};
    use super::*;

    /// Records with these labels, whose planes are `label`, `label + 1` and `label + 2`.
    fn records(labels: &[u8]) -> Vec<u8> {
        let planes = |label: u8| (0..3).flat_map(move |plane| [label + plane; 1024]);
        labels.iter().flat_map(|&label| [label].into_iter().chain(planes(label))).collect()
    }

    fn read(bytes: &[u8], records: usize) -> Result<Vec<u8>, LearnError> {
        batch(&mut DataFile::new(Path::new("batch"), bytes)?, records)
    }

    fn message(bytes: &[u8], records: usize) -> String {
        read(bytes, records).unwrap_err().to_string().replace(" is not a valid data file", "")
    }

    #[test]
    fn the_planes_keep_the_order_of_the_file() {
        let directory = Directory::new("cifar-planes");
        directory.write("data_batch_1.bin", &records(&[6, 9]));
        directory.write("test_batch.bin.gz", &gzip(&records(&[3, 8])));
        let set = batches(directory.path(), Some(2), None, 2).unwrap();
        assert_eq!((set.train.labels(), set.test.labels()), (&[6, 9][..], &[3, 8][..]));
        assert_eq!((set.train.width(), set.train.classes()), (3072, 10));
        let row = set.train.row(1);
        assert_eq!(
            [row[0], row[1023], row[1024], row[3071]],
            [9.0, 9.0, 10.0, 11.0].map(|byte| byte / 255.0)
        );
    }

    #[test]
    fn only_the_batches_that_are_needed_are_read() {
        let directory = Directory::new("cifar-needed");
        for (name, labels) in
            [("data_batch_1.bin", [0, 1]), ("data_batch_2.bin", [2, 3]), ("test_batch.bin", [4, 5])]
        {
            directory.write(&format!("cifar-10-batches-bin/{name}"), &records(&labels));
        }
        let labels =
            |train| batches(directory.path(), Some(train), Some(1), 2).map(|set| set.train.labels().to_vec());
        assert_eq!(labels(2).unwrap(), [0, 1]);
        assert_eq!(labels(3).unwrap(), [0, 1, 2]);
        assert_eq!(labels(4).unwrap(), [0, 1, 2, 3]);
        let words = labels(5).unwrap_err().to_string();
        assert!(
            words.starts_with("the file data_batch_3.bin (or data_batch_3.bin.gz) is missing in "),
            "{words}"
        );
        assert!(words.ends_with(
            "; the binary version of CIFAR-10 has six files, from https://www.cs.toronto.edu/~kriz/cifar.html"
        ));
    }

    #[test]
    fn sizes_are_checked_before_files() {
        let words = |train, test| cifar10(Path::new("nowhere"), train, test).unwrap_err().to_string();
        assert_eq!(words(Some(0), None), "the number of training samples must be at least 1, not 0");
        assert_eq!(
            words(Some(50_001), None),
            "50001 samples were asked for (training), but the data set has 50000"
        );
        assert_eq!(
            words(None, Some(10_001)),
            "10001 samples were asked for (test), but the data set has 10000"
        );
        assert!(words(None, None).starts_with("the file data_batch_1.bin "));
    }

    #[test]
    fn a_batch_of_another_size_is_refused() {
        let whole = records(&[1, 2]);
        assert_eq!(message(&whole[..6145], 2), "batch: it has 6145 bytes, not 2 records of 3073 (6146)");
        assert_eq!(message(b"", 2), "batch: it has 0 bytes, not 2 records of 3073 (6146)");
        assert_eq!(message(&whole, 1), "batch: it has more than 1 records of 3073 bytes");
        assert_eq!(message(&gzip(&whole), 1), "batch: it has more than 1 records of 3073 bytes");
    }

    #[test]
    fn an_invalid_label_is_shown_with_its_record() {
        let expected = "batch: the label of record 1 is 10; it must be below 10";
        assert_eq!(message(&records(&[9, 10]), 2), expected);
    }

    fn is_sound(result: Result<Vec<u8>, LearnError>, records: usize) -> bool {
        match result {
            Ok(bytes) => bytes.len() == records * RECORD,
            Err(LearnError::Malformed { reason, .. }) => !reason.is_empty(),
            Err(_) => false,
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(
            start in prop_oneof![Just(vec![]), Just(vec![0x1f, 0x8b, 8, 0])],
            rest in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            prop_assert!(is_sound(read(&[start, rest].concat(), 1), 1));
        }

        #[test]
        fn a_damaged_file_is_read_or_refused(bytes in damaged(records(&[3, 9]))) {
            prop_assert!(is_sound(read(&bytes, 2), 2));
        }
    }
}
