//! The section `[data]`: the data set, and its partition among the clients.

use std::path::{Path, PathBuf};

use floras_core::named_choice;
use floras_learn::data::{self, DataSet, Normalisation};
use floras_learn::{Augmentation, LearnError, Partition, Shape};
use serde::{Deserialize, Serialize};

use super::error::{COUNTS, ExperimentError, within};
use super::is_default;

/// Data set and its partition over the clients: the section `[data]` of an experiment file.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSettings {
    /// The data set of the task.
    pub set: DataChoice,
    /// Number of training samples; all samples of the set if absent.
    pub train: Option<usize>,
    /// Number of test samples; all samples of the set if absent.
    pub test: Option<usize>,
    /// The partition of the training samples among the clients.
    pub partition: Partition,
    /// Whether every channel is normalised by published constants; for stored sets of images.
    pub normalise: bool,
    /// Random changes of the images in a mini-batch.
    pub augmentation: Augmentation,
    /// Channels, height and width of a sample of a generated set or of arrays; vectors if absent.
    pub shape: Option<Shape>,
}

impl DataSettings {
    /// Loads a stored set; `None` for a set that is generated or in memory.
    pub(crate) fn load(&self) -> Option<Result<DataSet, LearnError>> {
        let loaded = self.set.load(self.train, self.test)?;
        Some(loaded.map(|set| match self.set.normalisation().filter(|_| self.normalise) {
            Some(normalisation) => normalisation.apply(set),
            None => set,
        }))
    }

    /// Shape of a sample and number of classes; `None` for arrays, whose size the settings do not contain.
    pub fn shape_and_classes(&self) -> Option<(Shape, usize)> {
        let (shape, classes) = self.set.shape_and_classes()?;
        Some((self.shape.unwrap_or(shape), classes))
    }
}

/// A data set.
#[derive(Clone, Debug, PartialEq)]
pub enum DataChoice {
    /// The embedded digits, 20×20 pixels.
    Digits20,
    /// The embedded digits, 28×28 pixels.
    Digits28,
    /// MNIST from a directory.
    Mnist(PathBuf),
    /// Fashion-MNIST from a directory.
    FashionMnist(PathBuf),
    /// CIFAR-10 from a directory.
    Cifar10(PathBuf),
    /// A generated task.
    Synthetic {
        /// Features of a sample: from 1 to 2^20.
        features: usize,
        /// Number of classes: from 2 to 4096.
        classes: usize,
        /// How far the classes lie apart in every feature: from 0 to 1000.
        separation: f64,
    },
    /// Arrays that the caller holds in memory; see [`OwnData`](crate::OwnData).
    Arrays {
        /// SHA-256 of the arrays and of each client's rows, as 64 hexadecimal digits.
        sha256: String,
    },
}

impl DataChoice {
    /// Loads a stored set, with a maximum number of samples; `None` for a set that is generated or in memory.
    fn load(&self, train: Option<usize>, test: Option<usize>) -> Option<Result<DataSet, LearnError>> {
        let (embedded, spare) = (train.unwrap_or(4000), test.unwrap_or(1000));
        Some(match self {
            Self::Digits20 => data::digits20(embedded, spare),
            Self::Digits28 => data::digits28(embedded, spare),
            Self::Mnist(directory) => data::mnist(directory, train, test),
            Self::FashionMnist(directory) => data::fashion_mnist(directory, train, test),
            Self::Cifar10(directory) => data::cifar10(directory, train, test),
            Self::Synthetic { .. } | Self::Arrays { .. } => return None,
        })
    }

    /// The directory of its files, if it is read from files.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Mnist(directory) | Self::FashionMnist(directory) | Self::Cifar10(directory) => {
                Some(directory)
            }
            Self::Digits20 | Self::Digits28 | Self::Synthetic { .. } | Self::Arrays { .. } => None,
        }
    }

    /// Side length of the square images in pixels, and whether they have red, green and blue planes; `None` if samples are not
    /// images.
    pub fn picture(&self) -> Option<(usize, bool)> {
        match self {
            Self::Digits20 => Some((20, false)),
            Self::Digits28 | Self::Mnist(_) | Self::FashionMnist(_) => Some((28, false)),
            Self::Cifar10(_) => Some((32, true)),
            Self::Synthetic { .. } | Self::Arrays { .. } => None,
        }
    }

    /// The constants of its channels; `None` for sets without published ones.
    fn normalisation(&self) -> Option<Normalisation> {
        match self {
            // The embedded digits are a part of MNIST.
            Self::Digits20 | Self::Digits28 | Self::Mnist(_) => Some(Normalisation::MNIST),
            Self::FashionMnist(_) => Some(Normalisation::FASHION_MNIST),
            Self::Cifar10(_) => Some(Normalisation::CIFAR10),
            Self::Synthetic { .. } | Self::Arrays { .. } => None,
        }
    }

    /// Shape of a sample and number of classes; `None` for arrays, whose size the settings do not contain.
    fn shape_and_classes(&self) -> Option<(Shape, usize)> {
        match *self {
            Self::Synthetic { features, classes, .. } => Some((Shape::vector(features), classes)),
            // The built-in sets of images have ten classes.
            _ => self
                .picture()
                .map(|(side, is_coloured)| (Shape::new(if is_coloured { 3 } else { 1 }, side, side), 10)),
        }
    }

    /// A short label for tables and figures.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Digits20 => "digits, 20×20 pixels",
            Self::Digits28 => "digits, 28×28 pixels",
            Self::Mnist(_) => "MNIST",
            Self::FashionMnist(_) => "Fashion-MNIST",
            Self::Cifar10(_) => "CIFAR-10",
            Self::Synthetic { .. } => "generated",
            Self::Arrays { .. } => "custom arrays",
        }
    }

    /// A short description of the set.
    pub fn description(&self) -> String {
        match self {
            Self::Digits20 => "images of handwritten digits (20×20 pixels)".to_owned(),
            Self::Digits28 => "images of handwritten digits (28×28 pixels)".to_owned(),
            Self::Mnist(_) => "the handwritten digits of MNIST".to_owned(),
            Self::FashionMnist(_) => "the images of clothes of Fashion-MNIST".to_owned(),
            Self::Cifar10(_) => "the small photographs of CIFAR-10".to_owned(),
            Self::Synthetic { features, classes, .. } => {
                format!("generated data with {features} features and {classes} classes")
            }
            Self::Arrays { .. } => "arrays of the caller".to_owned(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
enum SetName {
    #[default]
    Digits20,
    Digits28,
    Mnist,
    FashionMnist,
    Cifar10,
    Synthetic,
    Arrays,
}

named_choice!(
    SetName,
    "data set",
    [Digits20 => "digits20", "digits, 20×20 pixels"],
    [Digits28 => "digits28", "digits, 28×28 pixels"],
    [Mnist => "mnist", "MNIST"],
    [FashionMnist => "fashion-mnist", "Fashion-MNIST"],
    [Cifar10 => "cifar10", "CIFAR-10"],
    [Synthetic => "synthetic", "generated"],
    [Arrays => "arrays", "custom arrays"],
);

/// The section as written in a file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, expecting = "a section, [data]")]
pub(super) struct DataFile {
    set: SetName,
    #[serde(skip_serializing_if = "Option::is_none")]
    dir: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    separation: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    train: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<usize>,
    partition: Partition,
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    normalise: bool,
    #[serde(skip_serializing_if = "is_default")]
    crop: usize,
    #[serde(skip_serializing_if = "is_default")]
    flip: bool,
}

impl DataFile {
    pub(super) fn check(&self) -> Result<(), ExperimentError> {
        let counts = *COUNTS.start() as usize..=*COUNTS.end() as usize;
        within("data.train", self.train, counts.clone())?;
        within("data.test", self.test, counts)?;
        within("data.features", self.features, 1..=1 << 20)?;
        within("data.classes", self.classes, 2..=4096)?;
        within("data.separation", self.separation, 0.0..=1e3)?;
        within("data.crop", Some(self.crop), 0..=Augmentation::MAX_CROP)?;
        self.shape()?;
        if self.dir.as_ref().is_some_and(|dir| dir.to_str().is_none()) {
            return Err(ExperimentError::refused("data.dir", "the name of the directory must be UTF-8"));
        }
        Ok(())
    }
}

impl DataFile {
    fn shape(&self) -> Result<Option<Shape>, ExperimentError> {
        let shape = self.shape.as_deref().map(str::parse).transpose();
        shape.map_err(|error| ExperimentError::refused("data.shape", error))
    }
}

impl TryFrom<DataFile> for DataSettings {
    type Error = ExperimentError;

    fn try_from(file: DataFile) -> Result<Self, ExperimentError> {
        let name = file.set;
        let dir = || {
            let reason = format!("the set \"{name}\" is read from files: give the directory that has them");
            file.dir.clone().ok_or_else(|| ExperimentError::refused("data.dir", reason))
        };
        let set = match file.set {
            SetName::Digits20 => DataChoice::Digits20,
            SetName::Digits28 => DataChoice::Digits28,
            SetName::Mnist => DataChoice::Mnist(dir()?),
            SetName::FashionMnist => DataChoice::FashionMnist(dir()?),
            SetName::Cifar10 => DataChoice::Cifar10(dir()?),
            SetName::Synthetic => DataChoice::Synthetic {
                features: match (file.features, file.shape()?) {
                    (features, None) => features.unwrap_or(20),
                    (None, Some(shape)) => shape.features(),
                    (Some(features), Some(shape)) if features == shape.features() => features,
                    (Some(features), Some(shape)) => {
                        let found = shape.features();
                        let reason = format!("{shape} has {found} features, but data.features is {features}");
                        return Err(ExperimentError::refused("data.shape", reason));
                    }
                },
                classes: file.classes.unwrap_or(10),
                separation: file.separation.unwrap_or(1.0),
            },
            SetName::Arrays => DataChoice::Arrays { sha256: fingerprint(&file)? },
        };
        if file.partition == Partition::Given && !matches!(set, DataChoice::Arrays { .. }) {
            let reason = "\"given\" is for arrays in memory, whose rows are listed for each client";
            return Err(ExperimentError::refused("data.partition", reason));
        }
        let is_own = matches!(set, DataChoice::Synthetic { .. } | DataChoice::Arrays { .. });
        if file.normalise && is_own {
            let reason = format!("there are no published constants for the set \"{name}\": leave it out");
            return Err(ExperimentError::refused("data.normalise", reason));
        }
        let augmentation = Augmentation::new(file.crop, file.flip);
        let augmentation = augmentation.map_err(|error| ExperimentError::refused("data.crop", error))?;
        // The shape of images is known.
        let shape = file.shape()?.filter(|_| is_own);
        // Embedded and generated sets have default sizes; a set of files is used completely.
        let (train, test) = match set {
            DataChoice::Digits20 | DataChoice::Digits28 => (Some(4000), Some(1000)),
            DataChoice::Synthetic { .. } => (Some(20_000), Some(1000)),
            DataChoice::Mnist(_)
            | DataChoice::FashionMnist(_)
            | DataChoice::Cifar10(_)
            | DataChoice::Arrays { .. } => (None, None),
        };
        Ok(Self {
            set,
            train: file.train.or(train),
            test: file.test.or(test),
            partition: file.partition,
            normalise: file.normalise,
            augmentation,
            shape,
        })
    }
}

/// The fingerprint of arrays, which are used completely.
fn fingerprint(file: &DataFile) -> Result<String, ExperimentError> {
    for (key, value) in [("data.train", file.train), ("data.test", file.test)] {
        if value.is_some() {
            return Err(ExperimentError::refused(key, "arrays in memory are used completely: leave it out"));
        }
    }
    let given = file.sha256.clone().unwrap_or_default();
    if given.len() != 64 || !given.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        let reason = "the set \"arrays\" needs the SHA-256 of the arrays, 64 hexadecimal digits";
        return Err(ExperimentError::refused("data.sha256", reason));
    }
    Ok(given)
}

impl From<&DataSettings> for DataFile {
    fn from(settings: &DataSettings) -> Self {
        let &DataSettings { ref set, train, test, partition, normalise, augmentation, shape } = settings;
        let (crop, flip) = (augmentation.crop(), augmentation.flip());
        let shape = shape.map(|shape| shape.to_string());
        let mut file = Self { train, test, partition, normalise, crop, flip, shape, ..Self::default() };
        let mut from = |name: SetName, dir: &PathBuf| (file.set, file.dir) = (name, Some(dir.clone()));
        match set {
            DataChoice::Digits20 => {}
            DataChoice::Digits28 => file.set = SetName::Digits28,
            DataChoice::Mnist(dir) => from(SetName::Mnist, dir),
            DataChoice::FashionMnist(dir) => from(SetName::FashionMnist, dir),
            DataChoice::Cifar10(dir) => from(SetName::Cifar10, dir),
            DataChoice::Synthetic { features, classes, separation } => {
                file.set = SetName::Synthetic;
                (file.features, file.classes) = (Some(*features), Some(*classes));
                file.separation = Some(*separation);
            }
            DataChoice::Arrays { sha256 } => {
                file.set = SetName::Arrays;
                file.sha256 = Some(sha256.clone());
            }
        }
        file
    }
}

impl Default for DataSettings {
    fn default() -> Self {
        Self {
            set: DataChoice::Digits20,
            train: Some(4000),
            test: Some(1000),
            partition: Partition::default(),
            normalise: false,
            augmentation: Augmentation::default(),
            shape: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_sets_have_the_stated_size() {
        for set in [DataChoice::Digits20, DataChoice::Digits28] {
            let loaded = set.load(Some(20), Some(10)).unwrap().unwrap().train;
            assert_eq!(set.shape_and_classes(), Some((loaded.shape(), loaded.classes())));
        }
        let cifar = DataChoice::Cifar10("cifar".into());
        assert_eq!(cifar.shape_and_classes(), Some((Shape::new(3, 32, 32), 10)));
    }
}
