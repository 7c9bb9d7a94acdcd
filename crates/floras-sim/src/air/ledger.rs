//! The ledger of an [`AirInterface`]: what its rounds have leaked so far, optionally kept in a file.
//!
//! | ledger | where | what it composes |
//! |---|---|---|
//! | [`floras_privacy::ledger::Ledger`] | in memory | the `μ` of each client, given the realised channels |
//! | `ledger.jsonl` of a run directory | one file per run, one entry per trial and round | as above; all rounds have the same cohort |
//! | [`AirLedger`] | in memory or in one file | as above, and the views of rounds whose cohorts differ |
//!
//! Both files have one [`LedgerEntry`] per line. The file of an `AirLedger` starts with a header line, which holds the settings
//! of the uplink; a run directory has `experiment.toml` instead. An entry is on the disk before the round's result is released.
//!
//! Rounds of the same cohort are counted, and the counts are composed. After one round whose noise is not fit for release, no
//! view is a guarantee.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Arc;

use floras_core::View;
use floras_phy::EffectiveChannel;
use floras_privacy::ledger::{Ledger, Worst};
use floras_privacy::mixed::Mixed;
use floras_privacy::{Account, MAX_EPSILON, Statement, largest_integer};
use serde::{Deserialize, Serialize};
use toml::Table;

use super::accounts::{Kind, accounts};
use super::{AirInterface, Cohort, RoundSpec, noise, wrong};
use crate::accounting::describe_adversary;
use crate::error::SimError;
use crate::experiment::VERSION;
use crate::record::{JsonLines, LedgerEntry, RawLine, sync_directory, take_lock};
use crate::schemes::is_selection_secret;

/// The privacy loss of the rounds of an [`AirInterface`].
#[derive(Debug)]
pub struct AirLedger {
    air: Arc<AirInterface>,
    ledger: Ledger,
    kinds: BTreeMap<Cohort, u64>,
    rounds: u32,
    /// Why statements about all rounds are not a guarantee, because of the noise of one of them.
    unfit: Option<&'static str>,
    file: Option<JsonLines>,
    /// The process that opened the file.
    process: u32,
}

/// The first line of a file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Header {
    version: String,
    /// As TOML, because JSON has no infinite SNR.
    settings: String,
}

impl AirLedger {
    /// An empty ledger in memory.
    pub fn new(air: Arc<AirInterface>) -> Result<Self, SimError> {
        let ledger = Ledger::new(air.release.inner_delta(air.delta()))?;
        let (kinds, process) = (BTreeMap::new(), std::process::id());
        Ok(Self { air, ledger, kinds, rounds: 0, unfit: None, file: None, process })
    }

    /// A ledger in a file. An existing file is resumed. A file of a different uplink, or one that another process has open, is
    /// rejected.
    pub fn open(air: Arc<AirInterface>, path: &Path) -> Result<Self, SimError> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        // The entries name the clients of each round: only the owner may read them.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(SimError::file("open", path))?;
        take_lock(&file, path)?;
        let mut ledger = Self::new(air)?;
        let mut lines = JsonLines::new(path, file)?;
        ledger.read(&mut lines)?;
        if lines.is_empty() {
            lines.append_synced(&ledger.header())?;
            sync_directory(path)?;
        }
        ledger.file = Some(lines);
        Ok(ledger)
    }

    /// Number of rounds in the ledger.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Why no view is a guarantee, because of the noise of some round; `None` if the noise of all rounds is fit for release.
    pub fn noise_caveat(&self) -> Option<&'static str> {
        self.unfit
    }

    /// Adds the next round. Its entry is on the disk when this returns.
    pub fn record(&mut self, spec: &RoundSpec, channel: &EffectiveChannel) -> Result<(), SimError> {
        let next = self.rounds + 1;
        if spec.round != next {
            return Err(wrong("round", &format!("{next}, the next one in the ledger"), spec.round));
        }
        if self.process != std::process::id()
            && let Some(file) = &self.file
        {
            // A forked process shares the lock of its parent, and both would append.
            return Err(SimError::Locked { directory: file.path().to_path_buf() });
        }
        let cohort = self.air.cohort(spec);
        let mu = self.air.accounting(cohort)?.mu(channel);
        let noise_std = channel.noise_std();
        // With several blocks, the worst one under the mean noise: it decides whether the rounding of the sum is covered.
        let gains = match channel.blocks() {
            [block] if block.cross_gains.is_empty() => channel.gains().to_vec(),
            _ => channel.mu(noise_std).into_iter().map(|gain| gain.min(f64::MAX)).collect(),
        };
        let mut ledger = self.ledger.clone();
        ledger.add(&spec.clients, &mu);
        let entry = LedgerEntry {
            trial: spec.trial.into(),
            round: next,
            selected: Some(cohort.selected),
            among: Some(cohort.among),
            spent: self.air.spend(cohort)?,
            clients: spec.clients.clone(),
            gains: Some(gains),
            noise_std: Some(noise_std),
            noise: Some(spec.noise),
            mu,
            worst: self.with_loss(ledger.worst()?),
        };
        if let Some(file) = &mut self.file {
            file.append_synced(&entry)?;
        }
        self.ledger = ledger;
        self.count(spec, channel);
        Ok(())
    }

    /// The client whose channels have leaked the most; `None` if no loss is finite.
    pub fn worst(&self) -> Result<Option<Worst>, SimError> {
        Ok(self.with_loss(self.ledger.worst()?))
    }

    fn with_loss(&self, worst: Option<Worst>) -> Option<Worst> {
        worst.map(|worst| Worst { epsilon: worst.epsilon + self.air.release.epsilon(), ..worst })
    }

    /// `ε` in a view of all rounds so far and `more` rounds with such a cohort; `None` if there is no finite one, 0 for no rounds.
    pub fn epsilon_after(&self, view: View, cohort: Cohort, more: u64) -> Result<Option<f64>, SimError> {
        let kinds = self.kinds_after(cohort, more)?;
        if kinds.is_empty() {
            return Ok(Some(0.0));
        }
        let epsilon = Mixed::new(&accounts(&kinds, view))?.epsilon(view)?;
        Ok(epsilon.map(|epsilon| self.air.release.stated(view, epsilon)))
    }

    /// `ε` of all rounds so far in a view.
    pub fn epsilon(&self, view: View) -> Result<Option<f64>, SimError> {
        self.epsilon_after(view, Cohort::complete(1, 1), 0)
    }

    /// The statement of a view about all rounds so far; `None` before the first round, and if the scheme has no such view.
    pub fn statement(&self, view: View) -> Result<Option<Statement>, SimError> {
        let kinds = self.kinds_after(Cohort::complete(1, 1), 0)?;
        if kinds.is_empty() {
            return Ok(None);
        }
        let mut statement = Mixed::new(&accounts(&kinds, view))?.statement(view)?;
        if let Some(statement) = &mut statement {
            self.air.release.complete(view, statement, self.unfit);
        }
        let cohorts = self.kinds.keys().zip(accounts(&kinds, view));
        let is_secret = |(cohort, (account, _)): (&Cohort, (&Account, u64))| {
            is_selection_secret(cohort.selected, cohort.among, account.sampling())
        };
        let is_secret = cohorts.into_iter().any(is_secret);
        if let Some(statement) = &mut statement {
            describe_adversary(statement, &self.air.settings, view, is_secret);
        }
        Ok(statement)
    }

    /// Number of further rounds with such a cohort that a budget allows, at most `max`.
    pub fn affordable(&self, view: View, budget: f64, cohort: Cohort, max: u64) -> Result<u64, SimError> {
        if !(1e-9..=MAX_EPSILON).contains(&budget) {
            return Err(wrong("budget", "between 1e-9 and 1e5", budget));
        }
        let holds = |more: u64| -> Result<bool, SimError> {
            Ok(self.epsilon_after(view, cohort, more)?.is_some_and(|epsilon| epsilon <= budget))
        };
        largest_integer(max, holds)
    }

    fn kinds_after(&self, cohort: Cohort, more: u64) -> Result<Vec<Kind>, SimError> {
        let mut kinds = self.kinds.clone();
        if more > 0 {
            *kinds.entry(cohort).or_default() += more;
        }
        kinds.into_iter().map(|(cohort, rounds)| Ok((self.air.accounting(cohort)?, rounds))).collect()
    }

    fn count(&mut self, spec: &RoundSpec, channel: &EffectiveChannel) {
        self.unfit = self.unfit.or_else(|| noise::unfit(&self.air.settings, spec.noise, channel));
        *self.kinds.entry(self.air.cohort(spec)).or_default() += 1;
        self.rounds = spec.round;
    }

    fn header(&self) -> Header {
        Header { version: VERSION.to_owned(), settings: self.air.description().to_string() }
    }

    fn read(&mut self, lines: &mut JsonLines) -> Result<(), SimError> {
        let ours =
            serde_json::to_vec(&self.header()).map_err(|error| SimError::encoding(lines.path(), error))?;
        lines.read(|line| {
            if line.number == 1 {
                return match serde_json::from_slice(line.bytes) {
                    Ok(header) => self.reject_others(&line, &header).map(|()| true),
                    Err(_) if ours.starts_with(line.bytes) => Ok(false),
                    Err(_) => Err(line.damaged("this is not a ledger of an uplink")),
                };
            }
            if line.bytes == b"\n" {
                return Ok(true);
            }
            let Some(entry) = line.parse()? else { return Ok(false) };
            self.add(&entry).map_err(|reason| line.damaged(reason))?;
            Ok(true)
        })?;
        Ok(())
    }

    /// Adds an entry of the file.
    fn add(&mut self, entry: &LedgerEntry) -> Result<(), String> {
        entry.check(self.rounds)?;
        let (Some(selected), Some(among), Some(gains), Some(noise_std)) =
            (entry.selected, entry.among, &entry.gains, entry.noise_std)
        else {
            return Err("selected, among, gains or noise_std is missing".to_owned());
        };
        let spec = RoundSpec {
            seed: 0,
            trial: 0,
            round: entry.round,
            clients: entry.clients.clone(),
            selected,
            among: Some(among),
            noise: entry.noise.unwrap_or_default(),
        };
        self.air.checked(&spec).map_err(|error| error.to_string())?;
        let channel = EffectiveChannel::new(gains.clone(), noise_std).map_err(|error| error.to_string())?;
        self.ledger.add(&entry.clients, &entry.mu);
        self.count(&spec, &channel);
        Ok(())
    }

    /// Rejects the header of a different uplink, whose rounds cannot be composed with ours.
    fn reject_others(&self, line: &RawLine<'_>, header: &Header) -> Result<(), SimError> {
        let mut keys = header.settings.parse::<Table>().map_err(|error| line.damaged(error))?;
        let clients = keys.remove("clients").and_then(|value| u32::try_from(value.as_integer()?).ok());
        // Read and described again, because earlier versions may have described it differently.
        let theirs = AirInterface::from_keys(keys, clients).map_err(|error| line.damaged(error))?;
        match self.air.description().difference(theirs.description()) {
            None => Ok(()),
            Some(difference) => Err(SimError::OtherLedger { path: line.path.to_path_buf(), difference }),
        }
    }
}
