//! A federation: an experiment with its data loaded, ready to run trials.
//!
//! ```text
//! each round:  select K of M → those that are not silent: local SGD → x_k → clip to C → uplink → x̃ → clamp to ±B → w ← w − x̃/K
//! ```
//!
//! Every draw has a name of its own, *(seed, purpose, trial, round, client)*, so that a trial's course depends neither on
//! the number of threads nor on where it was interrupted.

mod clients;
mod dropout;
mod metrics;
mod own_data;
mod selection;
mod trial;

use std::fs;
use std::sync::{Arc, OnceLock};

pub(crate) use dropout::Dropouts;
use floras_core::random::{Purpose, StreamName, TrialId};
use floras_core::{Fidelity, Level};
use floras_learn::{Model, Samples, Shape};
use floras_phy::{Round, Uplink, UplinkError};
use floras_privacy::Views;
pub use metrics::RoundMetrics;
pub use own_data::OwnData;
pub use selection::select;
use sha2::{Digest, Sha256};
pub use trial::{LocalTraining, RoundOutcome, Status, Trial, TrialOptions, with_all};

use crate::accounting::{Accounting, Protected, Scope};
use crate::error::SimError;
use crate::experiment::{Experiment, ExperimentError, Settings};
use crate::purpose;
pub use clients::Holdings;
use clients::Population;

/// An experiment with its data, model and uplink.
#[derive(Debug)]
pub struct Federation {
    experiment: Experiment,
    population: Population,
    test: Samples,
    model: Box<dyn Model>,
    uplink: BoxedUplink,
    dropouts: Dropouts,
    data_digest: Vec<u8>,
    /// Rounds in a trial: those of the experiment, or what the budget allows.
    rounds: u32,
    protected: Protected,
    accounting: OnceLock<Arc<Accounting>>,
}

struct BoxedUplink(Box<dyn Uplink>);

impl std::fmt::Debug for BoxedUplink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

/// The number of samples of each label per client, in one trial.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
pub struct PartitionRecord {
    /// The trial, counted from 0.
    pub trial: u32,
    /// Total number of clients `M`. If there are very many, only the first ones are listed.
    pub clients: u32,
    /// Number of training samples that no client holds, because all clients hold the same number.
    pub unassigned: usize,
    /// Numbers of samples: one row per client, one column per label.
    pub label_counts: Vec<Vec<u32>>,
}

impl Federation {
    /// Loads the data and the model, and checks what depends on the data.
    pub fn new(experiment: &Experiment) -> Result<Self, SimError> {
        let (population, test) = clients::load(experiment.settings())?;
        Self::assemble(experiment, population, test)
    }

    /// Like [`new`](Self::new), for arrays in memory whose fingerprint is `data.sha256` of the experiment.
    pub fn with_data(experiment: &Experiment, data: OwnData) -> Result<Self, SimError> {
        let (population, test) = data.population(experiment.settings())?;
        Self::assemble(experiment, population, test)
    }

    fn assemble(experiment: &Experiment, population: Population, test: Samples) -> Result<Self, SimError> {
        let settings = experiment.settings();
        let model = settings.model.build(population.shape(), population.classes());
        let model = model.map_err(SimError::learn("model"))?;
        check_augmentation(settings, population.shape())?;
        let uplink = BoxedUplink(settings.build_uplink(settings.seed)?);
        let dropouts = Dropouts::open(settings)?;
        let mut data_digest = data_digest(experiment, &population, &test)?;
        data_digest.extend(dropouts.digest());
        let protected = population.protected(settings)?;
        let (experiment, rounds) = (experiment.clone(), settings.rounds);
        let accounting = OnceLock::new();
        let mut federation = Self {
            experiment,
            population,
            test,
            model,
            uplink,
            dropouts,
            data_digest,
            rounds,
            protected,
            accounting,
        };
        federation.check_memory(1)?;
        federation.check_draws()?;
        federation.apply_budget()?;
        Ok(federation)
    }

    /// The experiment that this federation runs.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// Rounds in a trial: those of the experiment, or as many as its budget allows.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Shares the account of another federation if both accounts are equal: all settings that an account depends on agree.
    /// Data, model and training count at the item level, and if the channel depends on the number of parameters.
    pub fn share_accounting(&self, other: &Self) {
        let accounted = |federation: &Self| {
            let settings = federation.experiment.settings();
            let Settings { seed, trials, rounds, ref clients, ref uplink, privacy, masks, .. } = *settings;
            let parameters = federation.parameters_of_channel();
            let protected = federation.protected.clone();
            ((seed, trials, rounds), clients.clone(), uplink.clone(), privacy, masks, protected, parameters)
        };
        if let Some(accounting) = other.accounting.get()
            && accounted(self) == accounted(other)
        {
            // An account that exists already is equal.
            let _ = self.accounting.set(Arc::clone(accounting));
        }
    }

    /// The statements about a number of rounds. The account is made at the first call.
    pub fn views(&self, rounds: u32) -> Result<Views, SimError> {
        Ok(self.accounting()?.views(rounds)?)
    }

    /// The federation's account, made when it is first asked for.
    pub(crate) fn accounting(&self) -> Result<&Accounting, SimError> {
        if let Some(accounting) = self.accounting.get() {
            return Ok(accounting);
        }
        let (settings, uplink) = (self.experiment.settings(), self.uplink.0.as_ref());
        let select = |trial: TrialId, round: u32| self.dropouts.accounted(settings, trial, round);
        let scope = Scope::Experiment { parameters: self.parameters_of_channel() };
        let made = Accounting::new(settings, &self.protected, uplink, scope, &select)?;
        Ok(self.accounting.get_or_init(|| Arc::new(made)))
    }

    /// Number of parameters `d`, if the channel or the account depends on it.
    fn parameters_of_channel(&self) -> Option<usize> {
        let depends = self.experiment.settings().needs_parameters();
        depends.then(|| self.model.parameters())
    }

    /// Limits the rounds to those that the budget allows. A budget below the `ε` of one round is rejected.
    fn apply_budget(&mut self) -> Result<(), SimError> {
        let settings = self.experiment.settings();
        let (view, Some(epsilon)) = (settings.privacy.view, settings.privacy.budget) else { return Ok(()) };
        let accounting = self.accounting()?;
        let rounds = accounting.affordable(view, epsilon, settings.rounds)?;
        if rounds == 0 {
            let reason = match accounting.one_round(view) {
                Some(spent) => format!(
                    "one round alone spends an epsilon of {} in the {view} view; allow at least that, or send less \
                     (privacy.clip)",
                    crate::inquiry::epsilon_text(spent)
                ),
                None => format!("the {view} view has no finite epsilon, so no budget can be enforced in it"),
            };
            return Err(ExperimentError::refused("privacy.budget", reason).into());
        }
        self.rounds = rounds;
        Ok(())
    }

    /// The model that is trained.
    pub fn model(&self) -> &dyn Model {
        self.model.as_ref()
    }

    /// The uplink that carries the updates.
    pub fn uplink(&self) -> &dyn Uplink {
        self.uplink.0.as_ref()
    }

    /// Every client's samples in a trial, in the order in which the client has them.
    pub fn client_samples(&self, trial: impl Into<TrialId>) -> Result<Vec<Samples>, SimError> {
        let holdings = self.holdings(trial)?;
        let copy = |client: u32| holdings.with_client(client, |data| data.samples.select(data.rows));
        let clients = 0..self.experiment.settings().clients.total;
        clients.map(copy).collect::<Result<_, _>>().map_err(SimError::learn("data"))
    }

    /// The test samples, which no client holds.
    pub fn test(&self) -> &Samples {
        &self.test
    }

    /// A digest of the experiment, of all samples, of the traces of channels and dropouts, and of the file of sequences. A run is
    /// only resumed with the same digest.
    pub fn identity(&self) -> String {
        self.identity_of(&self.experiment.to_toml())
    }

    /// The [`identity`](Self::identity) for this text of the experiment: earlier versions wrote the same settings in another order
    /// and spelling.
    pub(crate) fn identity_of(&self, experiment: &str) -> String {
        let digest = Sha256::new().chain_update(experiment).chain_update(&self.data_digest).finalize();
        digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Rejects a run whose updates would exceed the memory limit, with one trial per thread at once.
    pub fn check_memory(&self, threads: usize) -> Result<(), SimError> {
        const MAX_GIB: usize = 16;
        let settings = self.experiment.settings();
        let trials = threads.clamp(1, settings.trials as usize);
        let parameters = self.model.parameters();
        // Updates that are clipped in memory are stored twice.
        let copies = match settings.uplink.fidelity {
            // What clients keep between rounds may be as much again.
            Fidelity::Symbol if self.uplink.0.nonlinear().is_some() => 3,
            // With masks they are stored three times.
            Fidelity::Chip if settings.masks.is_some() => 3,
            Fidelity::Chip if settings.privacy.clip.is_some() => 2,
            Fidelity::Chip | Fidelity::Symbol => 1,
        };
        let clients = trial::wave_size(self, parameters);
        let bytes = clients.saturating_mul(parameters).saturating_mul(copies * trials * size_of::<f32>());
        if bytes > MAX_GIB << 30 {
            let needed = bytes >> 30;
            return Err(SimError::TooMuchMemory { clients, parameters, trials, needed, most: MAX_GIB });
        }
        Ok(())
    }

    /// The number of samples of each label per client, in a trial.
    pub fn partition_record(&self, trial: u16) -> Result<PartitionRecord, SimError> {
        /// A record lists a thousand clients with ten labels, or fewer with more.
        const MAX_CLIENTS: usize = 1000;
        const MAX_NUMBERS: usize = 10_000;
        let settings = self.experiment.settings();
        let clients = settings.clients.total;
        let holdings = self.population.hold(settings, trial.into())?;
        let listed = (MAX_NUMBERS / self.population.classes()).clamp(1, MAX_CLIENTS) as u32;
        Ok(PartitionRecord {
            trial: trial.into(),
            clients,
            unassigned: holdings.unassigned(),
            label_counts: (0..clients.min(listed)).map(|client| holdings.label_counts(client)).collect(),
        })
    }

    /// The clients' samples in a trial.
    pub fn holdings(&self, trial: impl Into<TrialId>) -> Result<Holdings<'_>, SimError> {
        self.population.hold(self.experiment.settings(), trial.into())
    }

    /// The initial parameters of a trial's model.
    pub fn initial_model(&self, trial: impl Into<TrialId>) -> Vec<f32> {
        self.model.initialise(&mut self.stream_name(purpose::INITIAL_MODEL, trial).stream())
    }

    /// The selected clients of a round, in ascending order. Rounds are counted from 1.
    pub fn select(&self, trial: impl Into<TrialId>, round: u32) -> Vec<u32> {
        select(self.experiment.settings(), trial.into(), round)
    }

    /// The selected clients that are not silent in a round. Rounds are counted from 1.
    pub fn senders(&self, trial: impl Into<TrialId>, round: u32, selected: &[u32]) -> Vec<u32> {
        self.dropouts.senders(self.experiment.settings().seed, trial.into(), round, selected)
    }

    fn stream_name(&self, purpose: Purpose, trial: impl Into<TrialId>) -> StreamName {
        StreamName::new(self.experiment.settings().seed, purpose).trial(trial)
    }

    /// Draws the first round's partition and channel, so that errors appear before anything is recorded; a channel trace is checked
    /// for every coefficient that the run needs.
    fn check_draws(&self) -> Result<(), SimError> {
        let settings = self.experiment.settings();
        self.population.hold(settings, 0.into())?;
        let (mut trials, mut rounds) = (1, 1);
        if settings.uplink.radio().is_some_and(|radio| radio.trace().is_some()) {
            (trials, rounds) = (settings.trials, settings.rounds);
        }
        let parameters = self.model.parameters();
        let clients = self.select(0, 1);
        let round = Round::new(settings.seed, 0, 1, &clients)?.with_parameters(parameters);
        if settings.uplink.fidelity == Fidelity::Chip {
            self.uplink.0.link(&round)?;
        }
        if !settings.clients.dropout.is_none() {
            // A round in which all but one are silent.
            let alone = Round::new(settings.seed, 0, 1, &clients[..1])?.with_selected(&clients)?;
            self.check_draw(&alone.with_parameters(parameters))
                .map_err(|error| ExperimentError::refused("clients.dropout", error))?;
        }
        for trial in 0..trials {
            for round in 1..=rounds {
                let clients = self.select(trial as u16, round);
                let round = Round::new(settings.seed, trial as u16, round, &clients)?;
                self.check_draw(&round.with_parameters(parameters))?;
            }
        }
        Ok(())
    }

    /// Draws the channel of a round.
    fn check_draw(&self, round: &Round<'_>) -> Result<(), UplinkError> {
        match (self.uplink.0.nonlinear(), self.experiment.settings().uplink.radio()) {
            (None, _) => self.uplink.0.realise(round).map(|_| ()),
            (Some(_), Some(radio)) => radio.channels()?.draw(round).map(|_| ()),
            (Some(_), None) => Ok(()),
        }
    }
}

/// Rejects crops and flips of samples that are not images, and crops of more than the image.
fn check_augmentation(settings: &Settings, shape: Shape) -> Result<(), ExperimentError> {
    let augmentation = settings.data.augmentation;
    let key = if augmentation.flip() { "data.flip" } else { "data.crop" };
    if !augmentation.is_none() && !shape.is_image() {
        let reason = format!("samples of the shape {shape} are not images (channels x height x width)");
        return Err(ExperimentError::refused(key, reason));
    }
    if augmentation.crop() >= shape.height.min(shape.width) && augmentation.crop() > 0 {
        let reason = format!("{} pixels are too many for images of {shape}", augmentation.crop());
        return Err(ExperimentError::refused("data.crop", reason));
    }
    Ok(())
}

/// The unit that the statements about an experiment protect. At the item level its data are read, for the clients' numbers of
/// samples.
pub(crate) fn protected(settings: &Settings) -> Result<Protected, SimError> {
    match settings.privacy.level {
        Level::Client => Ok(Protected::CLIENT),
        Level::Item => clients::load(settings)?.0.protected(settings),
    }
}

/// What an account of an experiment depends on besides its settings: the number of parameters, if the channel or the account
/// needs it.
pub(crate) fn scope(settings: &Settings) -> Result<Scope, SimError> {
    if !settings.needs_parameters() {
        return Ok(Scope::Experiment { parameters: None });
    }
    let (shape, classes) = match settings.data.shape_and_classes() {
        Some(sizes) => sizes,
        None => {
            let population = clients::load(settings)?.0;
            (population.shape(), population.classes())
        }
    };
    let model = settings.model.build(shape, classes);
    let parameters = Some(model.map_err(SimError::learn("model"))?.parameters());
    Ok(Scope::Experiment { parameters })
}

/// Bytes that identify the data: checksums of the samples, the channel trace, and the file of sequences.
fn data_digest(
    experiment: &Experiment,
    population: &Population,
    test: &Samples,
) -> Result<Vec<u8>, SimError> {
    let mut digest = Vec::new();
    if let Population::Stored(train, _) = population {
        add_samples(&mut digest, train);
        add_samples(&mut digest, test);
    }
    if let Some(path) = experiment.settings().uplink.radio().and_then(|radio| radio.trace()) {
        digest.extend(fs::read(path).map_err(SimError::file("read", path))?);
    }
    let floras = experiment.settings().uplink.scheme.floras();
    if let Some(file) = floras.and_then(|floras| floras.family.file()) {
        digest.extend(file.text().map_err(SimError::file("read", file.path()))?.bytes());
    }
    Ok(digest)
}

/// Adds checksums of the samples, which are fast to compute and detect that the data files were replaced.
fn add_samples(digest: &mut Vec<u8>, samples: &Samples) {
    let features = samples.features().chunks(1 << 16);
    let checksum = features.fold(0, |checksum, some| {
        let bytes: Vec<u8> = some.iter().flat_map(|value| value.to_le_bytes()).collect();
        crc32c::crc32c_append(checksum, &bytes)
    });
    let labels: Vec<u8> = samples.labels().iter().flat_map(|label| label.to_le_bytes()).collect();
    digest.extend(crc32c::crc32c_append(checksum, &labels).to_le_bytes());
    digest.extend(samples.count().to_le_bytes());
}
