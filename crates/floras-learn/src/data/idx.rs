//! MNIST and other data sets in its format, IDX.
//!
//! An IDX file of unsigned bytes is a header of big-endian 32-bit numbers and then the bytes, item after item
//! (LeCun, Cortes and Burges, "The MNIST database of handwritten digits", section "File formats"):
//!
//! | file | header |
//! |---|---|
//! | images | `0x00000803`, count, rows, columns |
//! | labels | `0x00000801`, count |
//!
//! Fashion-MNIST (Xiao, Rasul and Vollgraf 2017) has the same four files with clothes instead of digits.

use std::path::Path;

use super::DataSet;
use super::file::{DataFile, unit_interval};
use super::part::{Part, TEST, TRAINING};
use super::samples::Samples;
use super::shape::Shape;
use crate::error::LearnError;

const IMAGES: u32 = 0x0000_0803;
const LABELS: u32 = 0x0000_0801;
/// Rows and columns of an image.
pub(super) const SIDE: usize = 28;
pub(super) const CLASSES: usize = 10;
/// Maximum number of items that a header may announce. The largest data set in this format has 814,255 images.
const MAX_ITEMS: usize = 1_000_000;

const GET_MNIST: &str = "MNIST has four files, from http://yann.lecun.com/exdb/mnist";
const GET_FASHION: &str =
    "Fashion-MNIST has four files, from https://github.com/zalandoresearch/fashion-mnist";

/// MNIST: 60,000 + 10,000 handwritten digits of 28×28 pixels, each from 0 (paper) to 1 (ink).
///
/// `directory` holds the four standard files, `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`,
/// `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`, plain or gzipped; names with a dot before `idx`, as in
/// `train-images.idx3-ubyte`, are accepted too. Returns the first `train` and `test` samples, or all.
///
/// ```no_run
/// use std::path::Path;
///
/// let mnist = floras_learn::data::mnist(Path::new("data/mnist"), None, Some(1000))?;
/// assert_eq!(mnist.train.count(), 60_000);
/// assert_eq!(mnist.train.labels()[..5], [5, 0, 4, 1, 9]);
/// # Ok::<(), floras_learn::LearnError>(())
/// ```
pub fn mnist(directory: &Path, train: Option<usize>, test: Option<usize>) -> Result<DataSet, LearnError> {
    four_files(directory, GET_MNIST, train, test)
}

/// Fashion-MNIST: 60,000 + 10,000 pictures of clothes, in files of the same names and format as [`mnist`]'s.
///
/// ```
/// use std::path::Path;
///
/// let error = floras_learn::data::fashion_mnist(Path::new("nowhere"), None, None).unwrap_err();
/// assert!(error.to_string().contains("zalandoresearch/fashion-mnist"));
/// ```
pub fn fashion_mnist(
    directory: &Path,
    train: Option<usize>,
    test: Option<usize>,
) -> Result<DataSet, LearnError> {
    four_files(directory, GET_FASHION, train, test)
}

fn four_files(
    directory: &Path,
    how: &'static str,
    train: Option<usize>,
    test: Option<usize>,
) -> Result<DataSet, LearnError> {
    let part = |images: [&str; 2], labels: [&str; 2]| {
        Digits::read(DataFile::find(directory, &images, how)?, DataFile::find(directory, &labels, how)?)
    };
    let train = part(
        ["train-images-idx3-ubyte", "train-images.idx3-ubyte"],
        ["train-labels-idx1-ubyte", "train-labels.idx1-ubyte"],
    )?
    .first(TRAINING, train)?;
    let test = part(
        ["t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte"],
        ["t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte"],
    )?
    .first(TEST, test)?;
    Ok(DataSet { train, test })
}

/// Images as they are in the files, and as many labels below [`CLASSES`].
#[derive(Debug)]
pub(super) struct Digits {
    pub(super) pixels: Vec<u8>,
    pub(super) labels: Vec<u8>,
}

impl Digits {
    pub(super) fn read(mut images: DataFile, mut labels: DataFile) -> Result<Self, LearnError> {
        let digits = Self {
            labels: items(&mut labels, LABELS, "labels", &[])?,
            pixels: items(&mut images, IMAGES, "images", &[SIDE, SIDE])?,
        };
        let (count, image_count) = (digits.labels.len(), digits.pixels.len() / (SIDE * SIDE));
        if count != image_count {
            let images = images.name();
            return Err(
                labels.malformed(format!("it has {count} labels, but {images} has {image_count} images"))
            );
        }
        if let Some(position) = digits.labels.iter().position(|&label| usize::from(label) >= CLASSES) {
            let label = digits.labels[position];
            return Err(labels.malformed(format!("label {position} is {label}, and not below {CLASSES}")));
        }
        Ok(digits)
    }

    fn first(self, part: Part, wanted: Option<usize>) -> Result<Samples, LearnError> {
        let count = part.size(wanted, self.labels.len())?;
        let features = unit_interval(&self.pixels[..count * SIDE * SIDE]).collect();
        let labels = self.labels[..count].iter().map(|&label| label.into()).collect();
        Samples::of_shape(Shape::new(1, SIDE, SIDE), CLASSES, features, labels)
    }
}

/// The bytes of all items of a file, which must be of this magic number and this shape.
fn items(file: &mut DataFile, magic: u32, what: &str, shape: &[usize]) -> Result<Vec<u8>, LearnError> {
    let count = announced(file, magic, what, shape)?;
    let size = count * shape.iter().product::<usize>();
    // The buffer grows with the bytes that are read: a wrong header does not reserve memory.
    let bytes = file.next(size)?;
    if bytes.len() < size {
        let found = bytes.len();
        let reason =
            format!("its header announces {count} {what} ({size} bytes), but only {found} bytes follow");
        return Err(file.malformed(reason));
    }
    if !file.has_ended()? {
        return Err(file.malformed(format!("it has more bytes than the {count} {what} of its header")));
    }
    Ok(bytes)
}

/// The number of items that the header announces.
fn announced(file: &mut DataFile, magic: u32, what: &str, shape: &[usize]) -> Result<usize, LearnError> {
    let size = 4 * (2 + shape.len());
    let header = file.next(size)?;
    if header.len() < size {
        let found = header.len();
        return Err(file.malformed(format!("it ends after {found} bytes, within its header of {size}")));
    }
    let fields: Vec<u32> = header.as_chunks().0.iter().map(|&field| u32::from_be_bytes(field)).collect();
    let (found, count, found_shape) = (fields[0], fields[1] as usize, &fields[2..]);
    if found != magic {
        let reason = format!("its magic number is {found:#010x}, and that of {what} is {magic:#010x}");
        return Err(file.malformed(reason));
    }
    if !found_shape.iter().map(|&length| length as usize).eq(shape.iter().copied()) {
        let (found, expected) = (product(found_shape), product(shape));
        return Err(file.malformed(format!("its {what} are {found}, and not {expected}")));
    }
    if !(1..=MAX_ITEMS).contains(&count) {
        let reason = format!("its header announces {count} {what}, and not between 1 and {MAX_ITEMS}");
        return Err(file.malformed(reason));
    }
    Ok(count)
}

fn product<T: ToString>(shape: &[T]) -> String {
    shape.iter().map(T::to_string).collect::<Vec<_>>().join("×")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::file::testing::{Directory, damaged, gzip};
    use super::*;

    fn idx(header: &[u32], body: &[u8]) -> Vec<u8> {
        let header = header.iter().flat_map(|field| field.to_be_bytes());
        header.chain(body.iter().copied()).collect()
    }

    /// Image `i` has all pixels `i`.
    fn images(count: u8) -> Vec<u8> {
        let pixels: Vec<u8> = (0..count).flat_map(|image| [image; SIDE * SIDE]).collect();
        idx(&[IMAGES, count.into(), 28, 28], &pixels)
    }

    fn labels(labels: &[u8]) -> Vec<u8> {
        idx(&[LABELS, labels.len() as u32], labels)
    }

    fn read(images: &[u8], labels: &[u8]) -> Result<Digits, LearnError> {
        let file = |name: &str, bytes| DataFile::new(Path::new(name), bytes);
        Digits::read(file("images", images)?, file("labels", labels)?)
    }

    fn message(images: &[u8], labels: &[u8]) -> String {
        let words = read(images, labels).unwrap_err().to_string();
        words.replace(" is not a valid data file", "")
    }

    fn four_files(directory: &Directory, names: [&str; 4]) {
        for (name, content) in
            names.iter().zip([images(3), labels(&[5, 0, 4]), images(2), gzip(&labels(&[7, 2]))])
        {
            directory.write(name, &content);
        }
    }

    const STANDARD: [&str; 4] = [
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte.gz",
    ];

    #[test]
    fn the_four_files_make_a_data_set() {
        let directory = Directory::new("four");
        four_files(&directory, STANDARD);
        let set = mnist(directory.path(), None, None).unwrap();
        assert_eq!((set.train.count(), set.test.count()), (3, 2));
        assert_eq!((set.train.width(), set.train.classes()), (784, 10));
        assert_eq!((set.train.labels(), set.test.labels()), (&[5, 0, 4][..], &[7, 2][..]));
        assert_eq!(set.train.row(2), [2.0 / 255.0; 784]);
    }

    #[test]
    fn the_names_with_a_dot_are_known_too() {
        let directory = Directory::new("dotted");
        let dotted = STANDARD.map(|name| name.replace("-idx", ".idx"));
        four_files(&directory, dotted.each_ref().map(String::as_str));
        assert_eq!(fashion_mnist(directory.path(), None, None).unwrap().train.count(), 3);
    }

    #[test]
    fn the_first_samples_are_taken() {
        let directory = Directory::new("fewer");
        four_files(&directory, STANDARD);
        let set = mnist(directory.path(), Some(2), Some(1)).unwrap();
        assert_eq!((set.train.labels(), set.test.labels()), (&[5, 0][..], &[7][..]));
        assert_eq!(set.train.features().len(), 2 * 784);
    }

    #[test]
    fn empty_and_oversized_parts_are_refused() {
        let directory = Directory::new("more");
        four_files(&directory, STANDARD);
        let words = |train, test| mnist(directory.path(), train, test).unwrap_err().to_string();
        assert_eq!(words(Some(4), None), "4 samples were asked for (training), but the data set has 3");
        assert_eq!(words(None, Some(3)), "3 samples were asked for (test), but the data set has 2");
        assert_eq!(words(None, Some(0)), "the number of test samples must be at least 1, not 0");
    }

    #[test]
    fn a_missing_file_is_named_with_its_source() {
        let words = mnist(Path::new("nowhere"), None, None).unwrap_err().to_string();
        assert_eq!(
            words,
            "the file train-images-idx3-ubyte (or train-images-idx3-ubyte.gz) is missing in the directory nowhere; \
             MNIST has four files, from http://yann.lecun.com/exdb/mnist"
        );
        let directory = Directory::new("without-test-labels");
        four_files(
            &directory,
            ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "x"],
        );
        let words = mnist(directory.path(), None, None).unwrap_err().to_string();
        assert!(words.starts_with("the file t10k-labels-idx1-ubyte (or "), "{words}");
    }

    #[test]
    fn gzipped_and_plain_files_are_equal() {
        let (images, labels) = (images(2), labels(&[1, 2]));
        let (plain, packed) =
            (read(&images, &labels).unwrap(), read(&gzip(&images), &gzip(&labels)).unwrap());
        assert_eq!((plain.pixels, plain.labels), (packed.pixels, packed.labels));
    }

    #[test]
    fn a_wrong_magic_number_is_shown() {
        assert_eq!(
            message(&labels(&[0; 20]), &labels(&[0])),
            "images: its magic number is 0x00000801, and that of images is 0x00000803"
        );
        assert_eq!(
            message(&images(1), &images(1)),
            "labels: its magic number is 0x00000803, and that of labels is 0x00000801"
        );
    }

    #[test]
    fn a_truncated_file_is_refused_with_its_size() {
        let whole = images(2);
        assert_eq!(
            message(&whole[..5], &labels(&[0, 0])),
            "images: it ends after 5 bytes, within its header of 16"
        );
        assert_eq!(
            message(&whole[..16 + 784], &labels(&[0, 0])),
            "images: its header announces 2 images (1568 bytes), but only 784 bytes follow"
        );
        assert_eq!(message(&whole, b""), "labels: it ends after 0 bytes, within its header of 8");
    }

    #[test]
    fn bytes_after_the_last_item_are_refused() {
        let trailing = [labels(&[1, 2]), vec![0]].concat();
        let expected = "labels: it has more bytes than the 2 labels of its header";
        assert_eq!(message(&images(2), &trailing), expected);
        assert_eq!(message(&images(2), &gzip(&trailing)), expected);
    }

    #[test]
    fn headers_with_impossible_sizes_are_refused() {
        let one = labels(&[0]);
        assert_eq!(
            message(&idx(&[IMAGES, u32::MAX, 28, 28], &[0; 784]), &one),
            "images: its header announces 4294967295 images, and not between 1 and 1000000"
        );
        assert_eq!(
            message(&idx(&[IMAGES, 0, 28, 28], &[]), &one),
            "images: its header announces 0 images, and not between 1 and 1000000"
        );
        assert_eq!(
            message(&idx(&[IMAGES, 1, u32::MAX, 32], &[0; 784]), &one),
            "images: its images are 4294967295×32, and not 28×28"
        );
    }

    #[test]
    fn images_and_labels_must_be_as_many() {
        assert_eq!(message(&images(3), &labels(&[1, 2])), "labels: it has 2 labels, but images has 3 images");
    }

    #[test]
    fn an_invalid_label_is_shown_with_its_place() {
        assert_eq!(message(&images(3), &labels(&[9, 10, 11])), "labels: label 1 is 10, and not below 10");
    }

    fn is_sound(result: Result<Digits, LearnError>) -> bool {
        match result {
            Ok(digits) => digits.pixels.len() == digits.labels.len() * SIDE * SIDE,
            Err(LearnError::Malformed { reason, .. }) => !reason.is_empty(),
            Err(_) => false,
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(
            start in prop_oneof![Just(vec![]), Just(vec![0, 0, 8, 1]), Just(vec![0x1f, 0x8b, 8, 0])],
            rest in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let bytes = [start, rest].concat();
            prop_assert!(is_sound(read(&images(2), &bytes)));
            prop_assert!(is_sound(read(&bytes, &labels(&[0, 1]))));
        }

        #[test]
        fn a_damaged_file_is_read_or_refused(images in damaged(images(2)), labels in damaged(labels(&[3, 9]))) {
            prop_assert!(is_sound(read(&images, &self::labels(&[3, 9]))));
            prop_assert!(is_sound(read(&self::images(2), &labels)));
            prop_assert!(is_sound(read(&images, &labels)));
        }
    }
}
