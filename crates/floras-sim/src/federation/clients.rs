//! The clients' samples: a partition of a data set, or generated when a client takes part.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use floras_core::Level;
use floras_core::random::{StreamName, TrialId};
use floras_learn::data::Synthetic;
use floras_learn::{ClientData, LearnError, Partition, Samples, Shape, Shares};

use crate::accounting::Protected;
use crate::error::SimError;
use crate::experiment::{DataChoice, Settings};
use crate::purpose;

/// Approximate number of generated samples, those of the first clients, over which the training loss is computed.
const GENERATED_TRAIN_SAMPLES: usize = 4000;

/// Maximum size in bytes of samples that are copied for each trial, in the order of the clients.
const MAX_COPIED_BYTES: usize = 64 << 20;

/// The source of the clients' samples.
#[derive(Debug)]
pub(super) enum Population {
    /// Samples in memory, and the rows of each client if they are given.
    Stored(Samples, Option<Shares>),
    /// A distribution, and the number of samples that each client draws from it.
    Generated {
        task: Synthetic,
        per_client: usize,
        /// Number of requested samples that remain after an equal division among the clients.
        unassigned: usize,
    },
}

/// The clients' samples in one trial.
#[derive(Debug)]
pub enum Holdings<'p> {
    /// Rows of the samples in memory.
    Shared {
        /// All training samples.
        train: &'p Samples,
        /// The samples that `shares` refers to.
        held: Cow<'p, Samples>,
        /// The rows of each client.
        shares: Shares,
    },
    /// A distribution, and how a client's samples are drawn from it whenever it takes part.
    Generated {
        /// The generated classification task.
        task: &'p Synthetic,
        /// Number of samples per client.
        per_client: usize,
        /// Number of samples that no client holds.
        unassigned: usize,
        /// How labels are distributed among the clients.
        partition: Partition,
        /// The random stream of the samples, from which each client's stream is derived.
        stream: StreamName,
        /// The samples over which the training loss is computed.
        train: Samples,
    },
}

/// Loads or generates a data set: the clients' samples and the test samples.
pub(super) fn load(settings: &Settings) -> Result<(Population, Samples), SimError> {
    let loaded = match (settings.data.load(), &settings.data.set) {
        (Some(stored), _) => stored.map(|set| (Population::Stored(set.train, None), set.test)),
        (None, &DataChoice::Synthetic { features, classes, separation }) => {
            generate(settings, features, classes, separation)
        }
        (None, _) => {
            let reason =
                "the set \"arrays\" was held in memory and cannot be read: give the same arrays again";
            Err(LearnError::Partition { reason: reason.to_owned() })
        }
    };
    loaded.map_err(SimError::learn("data"))
}

fn generate(
    settings: &Settings,
    features: usize,
    classes: usize,
    separation: f64,
) -> Result<(Population, Samples), LearnError> {
    let (clients, train) = (settings.clients.total as usize, settings.data.train.unwrap_or(0));
    if train < clients {
        let reason = format!(
            "{train} training samples cannot be divided among {clients} clients: every client needs at least one"
        );
        return Err(LearnError::Partition { reason });
    }
    let test = settings.data.test.unwrap_or(1000);
    check_size("test samples", test, features)?;
    check_size("samples of a client", train / clients, features)?;
    check_size("classes", classes, features)?;
    let stream = |purpose| StreamName::new(settings.seed, purpose).stream();
    let task = Synthetic::new(features, classes, separation, &mut stream(purpose::TASK))?;
    let task = match settings.data.shape {
        Some(shape) => task.with_shape(shape)?,
        None => task,
    };
    let test = task.draw(test, &mut stream(purpose::TEST_SAMPLES))?;
    Ok((Population::Generated { task, per_client: train / clients, unassigned: train % clients }, test))
}

/// Rejects samples that would not fit into memory.
fn check_size(what: &str, count: usize, features: usize) -> Result<(), LearnError> {
    const MAX_NUMBERS: usize = 1 << 28;
    if count.saturating_mul(features) <= MAX_NUMBERS {
        return Ok(());
    }
    let reason =
        format!("{count} {what} with {features} features are too many: at most {MAX_NUMBERS} numbers in all");
    Err(LearnError::Partition { reason })
}

impl Population {
    pub(super) fn shape(&self) -> Shape {
        match self {
            Self::Stored(samples, _) => samples.shape(),
            Self::Generated { task, .. } => task.shape(),
        }
    }

    pub(super) fn classes(&self) -> usize {
        match self {
            Self::Stored(samples, _) => samples.classes(),
            Self::Generated { task, .. } => task.classes(),
        }
    }

    /// The unit that the statements about the experiment protect.
    pub(super) fn protected(&self, settings: &Settings) -> Result<Protected, SimError> {
        match settings.privacy.level {
            Level::Client => Ok(Protected::CLIENT),
            Level::Item => Ok(Protected::item(settings.local.sgd, self.sizes(settings)?)?),
        }
    }

    /// Number of samples of the smallest and of the largest client, over all trials.
    fn sizes(&self, settings: &Settings) -> Result<RangeInclusive<u64>, SimError> {
        let partition = settings.data.partition;
        // All other partitions have one size, the same in all trials.
        let (trials, clients) = match partition {
            Partition::Unequal(_) => (settings.trials, settings.clients.total),
            Partition::Given => (1, settings.clients.total),
            _ => (1, 1),
        };
        let (mut smallest, mut largest) = (u64::MAX, 0);
        let mut add = |size: usize| {
            smallest = smallest.min(size as u64);
            largest = largest.max(size as u64);
        };
        for trial in 0..trials {
            let trial = TrialId::from(trial as u16);
            match self {
                Self::Stored(samples, given) => {
                    let shares = shares(samples, given.as_ref(), settings, trial)?;
                    (0..shares.clients()).for_each(|client| add(shares.of(client).len()));
                }
                Self::Generated { per_client, .. } => {
                    let stream = StreamName::new(settings.seed, purpose::CLIENT_SAMPLES).trial(trial);
                    let size = |client| {
                        Synthetic::client_size(partition, *per_client, &mut stream.client(client).stream())
                    };
                    (0..clients).map(size).for_each(&mut add);
                }
            }
        }
        Ok(smallest..=largest)
    }

    /// Distributes the samples among the clients for one trial.
    pub(super) fn hold(&self, settings: &Settings, trial: TrialId) -> Result<Holdings<'_>, SimError> {
        let (partition, clients) = (settings.data.partition, settings.clients.total);
        match self {
            Self::Stored(samples, given) => {
                Ok(Holdings::share(samples, shares(samples, given.as_ref(), settings, trial)?))
            }
            Self::Generated { task, per_client, unassigned } => {
                let (per_client, unassigned) = (*per_client, *unassigned);
                let stream = StreamName::new(settings.seed, purpose::CLIENT_SAMPLES).trial(trial);
                let train = first_clients(task, partition, per_client, stream, clients);
                let train = train.map_err(SimError::learn("data"))?;
                Ok(Holdings::Generated { task, per_client, unassigned, partition, stream, train })
            }
        }
    }
}

/// The rows of each client in a trial.
fn shares(
    samples: &Samples,
    given: Option<&Shares>,
    settings: &Settings,
    trial: TrialId,
) -> Result<Shares, SimError> {
    if let Some(shares) = given {
        return Ok(shares.clone());
    }
    let mut stream = StreamName::new(settings.seed, purpose::PARTITION).trial(trial).stream();
    let clients = settings.clients.total as usize;
    let shares = settings.data.partition.share(samples.labels(), samples.classes(), clients, &mut stream);
    shares.map_err(SimError::learn("data.partition"))
}

fn first_clients(
    task: &Synthetic,
    partition: Partition,
    per_client: usize,
    stream: StreamName,
    clients: u32,
) -> Result<Samples, LearnError> {
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for client in 0..clients {
        let samples = task.client(partition, per_client, &mut stream.client(client).stream())?;
        features.extend_from_slice(samples.features());
        labels.extend_from_slice(samples.labels());
        if labels.len() >= GENERATED_TRAIN_SAMPLES {
            break;
        }
    }
    Samples::of_shape(task.shape(), task.classes(), features, labels)
}

impl<'p> Holdings<'p> {
    /// Copies small sets in the order of the clients, because adjacent rows are read fastest.
    fn share(train: &'p Samples, shares: Shares) -> Self {
        if size_of_val(train.features()) > MAX_COPIED_BYTES {
            return Self::Shared { train, held: Cow::Borrowed(train), shares };
        }
        let held = Cow::Owned(train.select(shares.rows()));
        Self::Shared { train, held, shares: shares.in_order() }
    }

    /// The samples over which the training loss is computed: all, or those of the first clients if samples are generated.
    pub(super) fn train(&self) -> &Samples {
        match self {
            Self::Shared { train, .. } => train,
            Self::Generated { train, .. } => train,
        }
    }

    /// Number of samples that no client holds.
    pub(super) fn unassigned(&self) -> usize {
        match self {
            Self::Shared { shares, .. } => shares.unassigned(),
            Self::Generated { unassigned, .. } => *unassigned,
        }
    }

    /// Mean number of samples per client.
    pub fn mean_size(&self) -> f64 {
        match self {
            Self::Shared { shares, .. } => shares.assigned() as f64 / shares.clients() as f64,
            Self::Generated { per_client, .. } => *per_client as f64,
        }
    }

    /// Calls `work` with a client's samples.
    pub fn with_client<T>(
        &self,
        client: u32,
        work: impl FnOnce(ClientData<'_>) -> T,
    ) -> Result<T, LearnError> {
        match self {
            Self::Shared { held, shares, .. } => {
                Ok(work(ClientData { samples: held, rows: shares.of(client as usize) }))
            }
            Self::Generated { task, per_client, partition, stream, .. } => {
                let samples = task.client(*partition, *per_client, &mut stream.client(client).stream())?;
                let rows: Vec<u32> = (0..samples.count() as u32).collect();
                Ok(work(ClientData { samples: &samples, rows: &rows }))
            }
        }
    }

    /// Number of samples of each label that a client holds.
    pub(super) fn label_counts(&self, client: u32) -> Vec<u32> {
        match self {
            Self::Shared { held, shares, .. } => {
                held.label_counts(shares.of(client as usize).iter().map(|&row| row as usize))
            }
            Self::Generated { task, per_client, partition, stream, .. } => {
                let mut counts = vec![0; task.classes()];
                let mut stream = stream.client(client).stream();
                for label in task.client_labels(*partition, *per_client, &mut stream) {
                    counts[usize::from(label)] += 1;
                }
                counts
            }
        }
    }
}
