//! The experiment file: what is trained, on whose data, over which air, and how it is recorded.
//!
//! [`Settings`] are plain values, with the paper's IID task as their default. An [`Experiment`] is settings that were
//! checked, so that `K > M` or a clip norm of zero cannot reach a federation. Every key of the file has a default, is
//! checked on its own and against the others, and is written out in full into the run directory.

mod error;
mod section;
mod uplink;
mod write;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use floras_learn::{LocalSgd, Partition, Rate, Work};
use toml::{Table, Value};

pub use error::ExperimentError;
pub use uplink::{Air, FadingChoice, FlorasScheme, Scheme, UplinkSettings};

use section::Section;
use write::{Entry, Write, named};

/// The version that is written into run directories.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Everything that an experiment consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// A short name, which also names the run directory.
    pub name: String,
    /// All randomness comes from here.
    pub seed: u64,
    /// Independent repetitions.
    pub trials: u32,
    /// `T`, learning rounds in a trial.
    pub rounds: u32,
    /// What is learned from.
    pub data: DataSettings,
    /// Who takes part.
    pub clients: ClientSettings,
    /// What is learned.
    pub model: ModelSettings,
    /// What a client does in a round.
    pub local: LocalSettings,
    /// How updates reach the base station.
    pub uplink: UplinkSettings,
    /// What limits a client's influence.
    pub privacy: PrivacySettings,
    /// What is measured, and when.
    pub record: RecordSettings,
}

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

/// The section `[clients]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// `M`.
    pub total: u32,
    /// `K`.
    pub per_round: u32,
    /// How much each client counts.
    pub weights: Weights,
}

/// How much a client counts in the average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// All the same.
    #[default]
    Equal,
    /// In proportion to its samples.
    Samples,
}

/// The section `[model]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelSettings {
    /// Which model.
    pub kind: ModelKind,
    /// `λ` of the penalty `λ‖w‖²`.
    pub l2: f64,
}

/// A model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// Multinomial logistic regression.
    Logistic,
    /// A perceptron with one hidden layer.
    Mlp {
        /// Hidden units.
        hidden: usize,
    },
}

/// The section `[local]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalSettings {
    /// Mini-batches, and how many.
    pub sgd: LocalSgd,
    /// The learning rate.
    pub rate: Rate,
}

/// The section `[privacy]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivacySettings {
    /// `C`; absent means that updates go out as they are.
    pub clip: Option<f64>,
    /// How updates are brought to norm `C`.
    pub normalise: Normalise,
    /// `δ` of the privacy statement. Recorded; the accounting that reads it is not part of this version.
    pub delta: f64,
}

/// How updates are brought to norm `C`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Normalise {
    /// Each on its own: longer ones are scaled down.
    #[default]
    Clip,
    /// All together: centred, and scaled so that the longest has norm `C`.
    Paper,
}

/// The section `[record]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordSettings {
    /// Rounds between two evaluations on the test samples.
    pub test_every: u32,
    /// Rounds between two evaluations on all training samples.
    pub train_every: u32,
}

impl Default for Settings {
    /// The paper's IID task.
    fn default() -> Self {
        match Self::read(&Table::new()) {
            Ok(settings) => settings,
            Err(error) => unreachable!("the defaults are valid: {error}"),
        }
    }
}

/// Settings that were checked.
///
/// ```
/// use floras_sim::{Experiment, Settings};
///
/// let mut settings = Settings::default();
/// settings.clients.per_round = 30;
/// let error = Experiment::new(settings).unwrap_err();
/// assert_eq!(error.to_string(), "clients.per_round: K = 30 clients a round cannot be chosen from M = 20 in all");
///
/// let experiment = Experiment::parse("a string", "rounds = 7\n[clients]\ntotal = 40")?;
/// assert_eq!(experiment.settings().clients.total, 40);
/// # Ok::<(), floras_sim::ExperimentError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    settings: Settings,
}

const TOP_KEYS: [&str; 12] = [
    "name", "seed", "trials", "rounds", "version", "data", "clients", "model", "local", "uplink", "privacy",
    "record",
];
const WHOLE: RangeInclusive<u64> = 1..=(u32::MAX as u64 - 1);
const PARTITIONS: &str =
    r#""iid", "one-label", { dirichlet = alpha }, { shards = s } or { unequal = spread }"#;
const RATES: &str =
    "a number above 0, { initial = 0.1, factor = 0.99, every = 10 } or { mu = 0.02, offset = 0 }";

impl Experiment {
    /// Checks settings.
    pub fn new(settings: Settings) -> Result<Self, ExperimentError> {
        // What a text cannot say, settings cannot hold either: one set of checks serves both.
        let written = Self { settings: settings.clone() }.to_toml();
        let table = parse_toml("the settings", &written)?;
        let settings_read = Settings::read(&table)?;
        settings_read.check()?;
        Ok(Self { settings })
    }

    /// Reads and checks an experiment from its text; `source_name` is for messages.
    pub fn parse(source_name: &str, text: &str) -> Result<Self, ExperimentError> {
        Self::from_table(&parse_toml(source_name, text)?)
    }

    /// Reads and checks an experiment from its table.
    pub fn from_table(table: &Table) -> Result<Self, ExperimentError> {
        let settings = Settings::read(table)?;
        settings.check()?;
        Ok(Self { settings })
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The whole experiment as a file, every setting spelled out.
    pub fn to_toml(&self) -> String {
        write::to_text(&self.entries())
    }

    /// Keys of a table that have no effect under the other settings, such as `uplink.snr_db` under `ideal`.
    pub fn without_effect(&self, table: &Table) -> Vec<String> {
        let used: Vec<String> = self.entries().iter().map(Entry::full_key).collect();
        let mut given = Vec::new();
        for (key, value) in table {
            match value {
                Value::Table(section) => given.extend(section.keys().map(|inner| format!("{key}.{inner}"))),
                _ => given.push(key.clone()),
            }
        }
        given.retain(|key| !used.contains(key));
        given
    }

    /// The first key in which two experiments differ, with both values.
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        let (ours, theirs) = (self.entries(), other.entries());
        let value_in = |entries: &[Entry], key: &str| {
            let found = entries.iter().find(|entry| entry.full_key() == key);
            found.map_or("absent".to_owned(), |entry| entry.value.to_string())
        };
        let keys = ours.iter().chain(&theirs).map(Entry::full_key);
        keys.map(|key| Difference { ours: value_in(&ours, &key), theirs: value_in(&theirs, &key), key })
            .find(|difference| difference.ours != difference.theirs)
    }

    /// The version that wrote an experiment's text, if it is not ours: its runs may come to other numbers.
    pub(crate) fn version_difference(&self, text: &str) -> Option<Difference> {
        let table: Table = text.parse().ok()?;
        let theirs = table.get("version")?.as_str()?;
        let differ = theirs != VERSION;
        differ.then(|| Difference { key: "version".to_owned(), ours: VERSION.into(), theirs: theirs.into() })
    }

    fn entries(&self) -> Vec<Entry> {
        let mut out = Write::new();
        self.settings.write(&mut out);
        out.finish()
    }
}

/// A key in which two experiments differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The key, with its section.
    pub key: String,
    /// The value here, as TOML.
    pub ours: String,
    /// The value there.
    pub theirs: String,
}

/// Reads TOML; `source_name` is for messages.
pub fn parse_toml(source_name: &str, text: &str) -> Result<Table, ExperimentError> {
    text.parse::<Table>().map_err(|error| ExperimentError::Syntax {
        source_name: source_name.to_owned(),
        reason: error.to_string().trim_end().to_owned(),
    })
}

/// Applies `key=value`, as in `uplink.snr_db=10`. A value that is not TOML is taken as text, so that quotes may be left
/// out: `data.partition=iid`.
pub fn set(table: &mut Table, assignment: &str) -> Result<(), ExperimentError> {
    let wrong = || ExperimentError::Override { given: assignment.to_owned() };
    let (key, value) = assignment.split_once('=').ok_or_else(wrong)?;
    let (key, value) = (key.trim(), value.trim());
    if key.is_empty() || value.is_empty() {
        return Err(wrong());
    }
    let parsed = format!("value = {value}").parse::<Table>().ok().and_then(|mut table| {
        let value = table.remove("value");
        // More than one key means that the text went on after the value.
        if table.is_empty() { value } else { None }
    });
    set_value(table, key, parsed.unwrap_or_else(|| Value::String(value.to_owned())))
}

/// Puts a value behind a key with its section.
pub fn set_value(table: &mut Table, key: &str, value: Value) -> Result<(), ExperimentError> {
    let (place, last) = match key.split_once('.') {
        None => (table, key),
        Some((section, last)) => {
            let section_table = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
            let Value::Table(inner) = section_table else {
                let reason = format!("{section} is not a section, so there is no key {key}");
                return Err(ExperimentError::Refused { key: key.to_owned(), reason });
            };
            (inner, last)
        }
    };
    // The choice between epochs and steps is one choice: giving one takes the other's place.
    if key == "local.steps" {
        place.remove("epochs");
    } else if key == "local.epochs" {
        place.remove("steps");
    }
    place.insert(last.to_owned(), value);
    Ok(())
}

impl Settings {
    fn read(table: &Table) -> Result<Self, ExperimentError> {
        if table.contains_key("sweep") {
            let reason = "a file with this section is a grid of experiments; run it with `floras sweep`";
            return Err(ExperimentError::refused("sweep", reason));
        }
        let top = Section::top(table, &TOP_KEYS)?;
        let name = top.text("name")?.unwrap_or("digits-iid");
        check_name(name)?;
        // The version of the file's writer is told, and not asked for.
        top.text("version")?;
        Ok(Self {
            name: name.to_owned(),
            seed: top.whole("seed", 0..=i64::MAX as u64)?.unwrap_or(1),
            trials: top.whole("trials", 1..=1 << 16)?.unwrap_or(5) as u32,
            rounds: top.whole("rounds", WHOLE)?.unwrap_or(300) as u32,
            data: DataSettings::read(table)?,
            clients: ClientSettings::read(table)?,
            model: ModelSettings::read(table)?,
            local: LocalSettings::read(table)?,
            uplink: UplinkSettings::read(table)?,
            privacy: PrivacySettings::read(table)?,
            record: RecordSettings::read(table)?,
        })
    }

    fn write(&self, out: &mut Write) {
        out.key("name", self.name.as_str());
        out.key("version", VERSION);
        out.key("seed", self.seed);
        out.key("trials", self.trials);
        out.key("rounds", self.rounds);
        out.section("data");
        self.data.write(out);
        out.section("clients");
        self.clients.write(out);
        out.section("model");
        self.model.write(out);
        out.section("local");
        self.local.write(out);
        out.section("uplink");
        self.uplink.write(out);
        out.section("privacy");
        self.privacy.write(out);
        out.section("record");
        self.record.write(out);
    }

    /// What no key can be blamed for alone.
    fn check(&self) -> Result<(), ExperimentError> {
        let ClientSettings { total, per_round, weights } = self.clients;
        if per_round > total {
            let reason = format!("K = {per_round} clients a round cannot be chosen from M = {total} in all");
            return Err(ExperimentError::refused("clients.per_round", reason));
        }
        if let Scheme::Floras(FlorasScheme { sequences, .. }) = self.uplink.scheme
            && sequences < per_round as usize
        {
            let error = floras_phy::UplinkError::TooFewSequences { sequences, clients: per_round as usize };
            return Err(ExperimentError::refused("uplink.sequences", error));
        }
        if weights == Weights::Samples
            && matches!(self.uplink.scheme, Scheme::Floras(_) | Scheme::Gaussian { .. })
        {
            let reason = format!(
                "the privacy statement of scheme \"{}\" needs clients that count the same; weights = \"samples\" goes \
                 with \"ideal\", \"channel-inversion\" and \"phase-corrected\"",
                self.uplink.scheme.name()
            );
            return Err(ExperimentError::refused("clients.weights", reason));
        }
        if self.privacy.normalise == Normalise::Paper && self.privacy.clip.is_none() {
            let reason = "\"paper\" scales the longest update to norm C, and needs privacy.clip";
            return Err(ExperimentError::refused("privacy.normalise", reason));
        }
        Ok(())
    }
}

/// A name becomes a folder.
fn check_name(name: &str) -> Result<(), ExperimentError> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let holds = (1..=100).contains(&name.len()) && name.chars().all(fits) && !name.starts_with(['.', '-']);
    if holds {
        return Ok(());
    }
    Err(ExperimentError::Value {
        key: "name".to_owned(),
        allowed: "1 to 100 letters, digits, '-', '_' and '.', not beginning with '.' or '-'".to_owned(),
        value: format!("\"{name}\""),
    })
}

impl DataSettings {
    const KEYS: [&str; 8] = ["set", "dir", "train", "test", "partition", "features", "classes", "separation"];

    fn read(table: &Table) -> Result<Self, ExperimentError> {
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

    fn write(&self, out: &mut Write) {
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

fn write_set(out: &mut Write, name: &str, folder: &std::path::Path) {
    out.key("set", name);
    out.key("dir", folder.to_string_lossy().as_ref());
}

fn read_data_choice(section: &Section<'_>) -> Result<DataChoice, ExperimentError> {
    let folder = section.text("dir")?;
    let in_folder = |make: fn(PathBuf) -> DataChoice, name: &str| match folder {
        Some(folder) => Ok(make(folder.into())),
        None => {
            let reason = format!(
                "the set \"{name}\" is read from files; say where they are with data.dir, and see docs/data.md for how to \
                 get them"
            );
            Err(ExperimentError::refused("data.dir", reason))
        }
    };
    let synthetic = DataChoice::Synthetic {
        features: section.whole("features", 1..=1 << 20)?.unwrap_or(20) as usize,
        classes: section.whole("classes", 2..=4096)?.unwrap_or(10) as usize,
        separation: section.number("separation", 0.0..=1e3, "a number between 0 and 1000")?.unwrap_or(1.0),
    };
    let names = [
        ("digits20", 0),
        ("digits28", 1),
        ("mnist", 2),
        ("fashion-mnist", 3),
        ("cifar10", 4),
        ("synthetic", 5),
    ];
    match section.one_of("set", &names)?.unwrap_or(0) {
        0 => Ok(DataChoice::Digits20),
        1 => Ok(DataChoice::Digits28),
        2 => in_folder(DataChoice::Mnist, "mnist"),
        3 => in_folder(DataChoice::FashionMnist, "fashion-mnist"),
        4 => in_folder(DataChoice::Cifar10, "cifar10"),
        _ => Ok(synthetic),
    }
}

fn read_partition(section: &Section<'_>) -> Result<Partition, ExperimentError> {
    let Some(choice) = section.choice("partition", PARTITIONS)? else { return Ok(Partition::Iid) };
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

impl ClientSettings {
    fn read(table: &Table) -> Result<Self, ExperimentError> {
        let section = Section::open(table, "clients", &["total", "per_round", "weights"])?;
        let total = section.whole("total", WHOLE)?.unwrap_or(20) as u32;
        let weights =
            section.one_of("weights", &[("equal", Weights::Equal), ("samples", Weights::Samples)])?;
        Ok(Self {
            total,
            per_round: section.whole("per_round", WHOLE)?.map_or(total.min(20), |count| count as u32),
            weights: weights.unwrap_or_default(),
        })
    }

    fn write(&self, out: &mut Write) {
        out.key("total", self.total);
        out.key("per_round", self.per_round);
        let weights = match self.weights {
            Weights::Equal => "equal",
            Weights::Samples => "samples",
        };
        out.key("weights", weights);
    }
}

impl ModelSettings {
    fn read(table: &Table) -> Result<Self, ExperimentError> {
        let section = Section::open(table, "model", &["kind", "l2", "hidden"])?;
        let hidden = section.whole("hidden", 1..=1 << 16)?.unwrap_or(64) as usize;
        let kinds = [("logistic", ModelKind::Logistic), ("mlp", ModelKind::Mlp { hidden })];
        Ok(Self {
            kind: section.one_of("kind", &kinds)?.unwrap_or(ModelKind::Logistic),
            l2: section.number("l2", 0.0..=1e6, "a number between 0 and 1e6")?.unwrap_or(0.01),
        })
    }

    fn write(&self, out: &mut Write) {
        match self.kind {
            ModelKind::Logistic => out.key("kind", "logistic"),
            ModelKind::Mlp { hidden } => {
                out.key("kind", "mlp");
                out.key("hidden", hidden);
            }
        }
        out.key("l2", self.l2);
    }
}

impl LocalSettings {
    fn read(table: &Table) -> Result<Self, ExperimentError> {
        let section = Section::open(table, "local", &["batch", "epochs", "steps", "rate"])?;
        let amount = 1..=1_000_000;
        let epochs = section.whole("epochs", amount.clone())?;
        let steps = section.whole("steps", amount)?;
        let work = match (epochs, steps) {
            (Some(_), Some(_)) => {
                let reason = "give either local.epochs or local.steps, not both";
                return Err(ExperimentError::refused("local.steps", reason));
            }
            (None, Some(steps)) => Work::Steps(steps as u32),
            (epochs, None) => Work::Epochs(epochs.unwrap_or(1) as u32),
        };
        let batch = section.whole("batch", WHOLE)?.unwrap_or(20) as usize;
        Ok(Self { sgd: LocalSgd { batch, work }, rate: read_rate(&section)? })
    }

    fn write(&self, out: &mut Write) {
        out.key("batch", self.sgd.batch);
        match self.sgd.work {
            Work::Epochs(epochs) => out.key("epochs", epochs),
            Work::Steps(steps) => out.key("steps", steps),
        }
        let fields = |fields: &[(&str, Value)]| {
            Value::Table(fields.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
        };
        let rate = match self.rate {
            Rate::Constant(rate) => Value::Float(rate),
            Rate::Decay { initial, factor, every } => fields(&[
                ("initial", initial.into()),
                ("factor", factor.into()),
                ("every", i64::from(every).into()),
            ]),
            Rate::InverseTime { mu, offset } => fields(&[("mu", mu.into()), ("offset", offset.into())]),
        };
        out.key("rate", rate);
    }
}

fn read_rate(section: &Section<'_>) -> Result<Rate, ExperimentError> {
    let Some(value) = section.value("rate") else { return Ok(Rate::Constant(0.005)) };
    let number = |value: &Value| value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
    let rate = match value {
        Value::Table(fields) => {
            let has = |keys: &[&str]| {
                fields.len() == keys.len() && keys.iter().all(|key| fields.contains_key(*key))
            };
            let field = |key: &str| fields.get(key).and_then(number);
            if has(&["initial", "factor", "every"]) {
                let every = fields["every"].as_integer().and_then(|every| u32::try_from(every).ok());
                let (initial, factor) = (field("initial"), field("factor"));
                initial.zip(factor).zip(every).map(|((initial, factor), every)| Rate::Decay {
                    initial,
                    factor,
                    every,
                })
            } else if has(&["mu", "offset"]) {
                field("mu").zip(field("offset")).map(|(mu, offset)| Rate::InverseTime { mu, offset })
            } else {
                None
            }
        }
        plain => number(plain).map(Rate::Constant),
    };
    let rate = rate.ok_or_else(|| section.no_such_choice("rate", RATES))?;
    rate.check().map_err(|error| ExperimentError::refused("local.rate", error))?;
    Ok(rate)
}

impl PrivacySettings {
    fn read(table: &Table) -> Result<Self, ExperimentError> {
        let section = Section::open(table, "privacy", &["clip", "normalise", "delta", "budget"])?;
        if section.value("budget").is_some() {
            let reason =
                "this version has no privacy accounting yet, and cannot keep a budget; leave the key out";
            return Err(ExperimentError::refused("privacy.budget", reason));
        }
        let modes = [("clip", Normalise::Clip), ("paper", Normalise::Paper)];
        Ok(Self {
            clip: section.number_or_none(
                "clip",
                1e-30..=1e30,
                "a number between 1e-30 and 1e30, or \"none\"",
            )?,
            normalise: section.one_of("normalise", &modes)?.unwrap_or_default(),
            delta: section.number("delta", 1e-300..=0.5, "a number above 0 and at most 0.5")?.unwrap_or(1e-5),
        })
    }

    fn write(&self, out: &mut Write) {
        if let Some(clip) = self.clip {
            out.key("clip", clip);
            let mode = match self.normalise {
                Normalise::Clip => "clip",
                Normalise::Paper => "paper",
            };
            out.key("normalise", mode);
        }
        out.key("delta", self.delta);
    }
}

impl RecordSettings {
    fn read(table: &Table) -> Result<Self, ExperimentError> {
        let section = Section::open(table, "record", &["test_every", "train_every"])?;
        Ok(Self {
            test_every: section.whole("test_every", WHOLE)?.unwrap_or(1) as u32,
            train_every: section.whole("train_every", WHOLE)?.unwrap_or(10) as u32,
        })
    }

    fn write(&self, out: &mut Write) {
        out.key("test_every", self.test_every);
        out.key("train_every", self.train_every);
    }
}
