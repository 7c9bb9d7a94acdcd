//! The section `[data]`: what is learned from, and who holds what.

use std::path::{Path, PathBuf};

use floras_learn::Partition;
use toml::Table;

use super::WHOLE;
use super::error::ExperimentError;
use super::section::Section;
use super::write::{Write, named};

/// The section `[data]`.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSettings {
    /// Which data set.
    pub set: DataChoice,
    /// Training samples in all; absent means as many as the set has.
    pub train: Option<usize>,
    /// Test samples; absent means as many as the set has.
    pub test: Option<usize>,
    /// Who holds what.
    pub partition: Partition,
}

/// A data set.
#[derive(Clone, Debug, PartialEq)]
pub enum DataChoice {
    /// The embedded digits, 20×20 pixels.
    Digits20,
    /// The embedded digits, 28×28 pixels.
    Digits28,
    /// MNIST from a folder.
    Mnist(PathBuf),
    /// Fashion-MNIST from a folder.
    FashionMnist(PathBuf),
    /// CIFAR-10 from a folder.
    Cifar10(PathBuf),
    /// A generated task.
    Synthetic {
        /// Features of a sample.
        features: usize,
        /// Number of classes.
        classes: usize,
        /// How far the classes lie apart, a feature.
        separation: f64,
    },
}

const SETS: &str = r#""digits20", "digits28", "mnist", "fashion-mnist", "cifar10" or "synthetic""#;
const PARTITIONS: &str =
    r#""iid", "one-label", { dirichlet = alpha }, { shards = s } or { unequal = spread }"#;

impl DataSettings {
    const KEYS: [&str; 8] = ["set", "dir", "train", "test", "partition", "features", "classes", "separation"];

    pub(super) fn read(table: &Table) -> Result<Self, ExperimentError> {
        let section = Section::open(table, "data", &Self::KEYS)?;
        let set = read_data_choice(&section)?;
        // Embedded and generated sets have sizes of their own; a set of files is taken whole.
        let (train, test) = match set {
            DataChoice::Digits20 | DataChoice::Digits28 => (Some(4000), Some(1000)),
            DataChoice::Synthetic { .. } => (Some(20_000), Some(1000)),
            DataChoice::Mnist(_) | DataChoice::FashionMnist(_) | DataChoice::Cifar10(_) => (None, None),
        };
        let count = |key| section.whole(key, WHOLE).map(|given| given.map(|count| count as usize));
        Ok(Self {
            train: count("train")?.or(train),
            test: count("test")?.or(test),
            partition: read_partition(&section)?,
            set,
        })
    }

    pub(super) fn write(&self, out: &mut Write) {
        match &self.set {
            DataChoice::Digits20 => out.key("set", "digits20"),
            DataChoice::Digits28 => out.key("set", "digits28"),
            DataChoice::Mnist(folder) => write_set(out, "mnist", folder),
            DataChoice::FashionMnist(folder) => write_set(out, "fashion-mnist", folder),
            DataChoice::Cifar10(folder) => write_set(out, "cifar10", folder),
            DataChoice::Synthetic { features, classes, separation } => {
                out.key("set", "synthetic");
                out.key("features", *features);
                out.key("classes", *classes);
                out.key("separation", *separation);
            }
        }
        if let Some(train) = self.train {
            out.key("train", train);
        }
        if let Some(test) = self.test {
            out.key("test", test);
        }
        let partition = match self.partition {
            Partition::Iid => "iid".into(),
            Partition::OneLabel => "one-label".into(),
            Partition::Dirichlet(alpha) => named("dirichlet", alpha),
            Partition::Shards(pieces) => named("shards", pieces as i64),
            Partition::Unequal(spread) => named("unequal", spread),
        };
        out.key("partition", partition);
    }
}

fn write_set(out: &mut Write, name: &str, folder: &Path) {
    out.key("set", name);
    out.key("dir", folder.to_string_lossy().as_ref());
}

fn read_data_choice(section: &Section<'_>) -> Result<DataChoice, ExperimentError> {
    // Checked whatever the set is, like every key.
    let synthetic = DataChoice::Synthetic {
        features: section.whole("features", 1..=1 << 20)?.unwrap_or(20) as usize,
        classes: section.whole("classes", 2..=4096)?.unwrap_or(10) as usize,
        separation: section.number("separation", 0.0..=1e3, "a number between 0 and 1000")?.unwrap_or(1.0),
    };
    match section.text("set")?.unwrap_or("digits20") {
        "digits20" => Ok(DataChoice::Digits20),
        "digits28" => Ok(DataChoice::Digits28),
        "mnist" => folder(section, "mnist").map(DataChoice::Mnist),
        "fashion-mnist" => folder(section, "fashion-mnist").map(DataChoice::FashionMnist),
        "cifar10" => folder(section, "cifar10").map(DataChoice::Cifar10),
        "synthetic" => Ok(synthetic),
        _ => Err(section.no_such_choice("set", SETS)),
    }
}

/// The folder of a set that is kept in files.
fn folder(section: &Section<'_>, set: &str) -> Result<PathBuf, ExperimentError> {
    let reason = || {
        format!(
            "the set \"{set}\" is read from files; say where they are with data.dir, and see docs/data.md for how to get them"
        )
    };
    let folder = section.text("dir")?.ok_or_else(|| ExperimentError::refused("data.dir", reason()))?;
    Ok(folder.into())
}

fn read_partition(section: &Section<'_>) -> Result<Partition, ExperimentError> {
    let Some(choice) = section.named("partition", PARTITIONS)? else { return Ok(Partition::Iid) };
    let partition = match (choice.name, choice.argument.is_some(), choice.number()) {
        ("iid", false, _) => Partition::Iid,
        ("one-label", false, _) => Partition::OneLabel,
        ("dirichlet", true, Some(alpha)) => Partition::Dirichlet(alpha),
        ("unequal", true, Some(spread)) => Partition::Unequal(spread),
        ("shards", true, _) => {
            let pieces = choice.whole().ok_or_else(|| section.no_such_choice("partition", PARTITIONS))?;
            Partition::Shards(usize::try_from(pieces).unwrap_or(usize::MAX))
        }
        _ => return Err(section.no_such_choice("partition", PARTITIONS)),
    };
    partition.check().map_err(|error| ExperimentError::refused("data.partition", error))?;
    Ok(partition)
}
