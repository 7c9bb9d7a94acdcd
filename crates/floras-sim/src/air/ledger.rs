//! The ledger of an [`AirInterface`]: what the rounds so far have given away together, kept in a file if asked.
//!
//! Rounds may differ in how many were asked and how many answered, and have another curve then. Rounds of one kind are counted,
//! and the kinds composed. Once a round has noise that is not fit for release, no view is a guarantee any more.
//!
//! The file has one JSON object a line. The first says which uplink it belongs to; every other is a round, and is on the disk
//! before the round's result may be shown to anyone.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use floras_core::View;
use floras_phy::EffectiveChannel;
use floras_privacy::ledger::{Ledger, Spend, Worst};
use floras_privacy::mixed::Mixed;
use floras_privacy::{MAX_EPSILON, Statement, largest_integer};
use serde::{Deserialize, Serialize};
use toml::Table;

use super::{AirInterface, Cohort, Kind, MAX_CLIENTS, Noise, RoundSpec, accounts, wrong};
use crate::error::SimError;
use crate::experiment::{Difference, VERSION};

/// What an [`AirInterface`] has given away.
#[derive(Debug)]
pub struct AirLedger {
    air: Arc<AirInterface>,
    ledger: Ledger,
    kinds: BTreeMap<Cohort, u64>,
    rounds: u32,
    /// Why statements about all rounds are no guarantee, because of the noise of one of them.
    unfit: Option<&'static str>,
    file: Option<LedgerFile>,
    /// The one that the file belongs to.
    process: u32,
}

#[derive(Debug)]
struct LedgerFile {
    path: PathBuf,
    file: File,
    /// Where the last whole line ends.
    end: u64,
}

/// The first line of a file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Header {
    version: String,
    /// As TOML, which knows an infinite SNR.
    settings: String,
}

/// The line of a round.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Line {
    /// From 1.
    round: u32,
    /// How many clients were asked,
    selected: u32,
    /// chosen by lot from how many.
    among: u32,
    /// Those who answered,
    clients: Vec<u32>,
    /// with which gains,
    gains: Vec<f64>,
    /// under which noise,
    noise_std: f64,
    /// from which generator (older files do not say),
    #[serde(default)]
    noise: Noise,
    /// and so with which `μ`.
    mu: Vec<f64>,
    /// `ε` of this round alone, in every view that has one.
    spent: BTreeMap<String, f64>,
    /// The client that has given away most, all rounds so far together.
    worst: Option<Worst>,
}

impl AirLedger {
    /// An empty ledger.
    pub fn new(air: Arc<AirInterface>) -> Result<Self, SimError> {
        let clients = air.clients().unwrap_or(0);
        let delta = air.release.inner_delta(air.delta());
        let ledger = Ledger::new(clients, delta, BTreeMap::new())?;
        let (kinds, process) = (BTreeMap::new(), std::process::id());
        Ok(Self { air, ledger, kinds, rounds: 0, unfit: None, file: None, process })
    }

    /// A ledger in a file, which is made if it is not there, and read if it is. A file of another uplink is refused, and so is
    /// one that another process writes to.
    pub fn open(air: Arc<AirInterface>, path: &Path) -> Result<Self, SimError> {
        let mut ledger = Self::new(air)?;
        let mut file = open_for_us(path).map_err(SimError::file("open", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SimError::Locked { directory: path.to_path_buf() }),
            Err(TryLockError::Error(error)) => return Err(SimError::file("lock", path)(error)),
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(SimError::file("read", path))?;
        // A line that was cut short belongs to a round whose result nobody has seen.
        let mut end = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        let rest = text.split_off(end);
        if serde_json::from_slice::<Line>(&rest).is_ok() {
            // Someone has taken the end of the last line away, and not the round.
            text.extend(&rest);
            text.push(b'\n');
            end = text.len();
            file.write_all(b"\n").map_err(SimError::file("write", path))?;
        }
        let is_new = end == 0;
        if is_new && !ledger.encoded_header(path)?.starts_with(&rest) {
            return Err(damaged(path, 0, "this is no ledger of an uplink".to_owned()));
        }
        ledger.read(path, &text)?;
        ledger.file = Some(LedgerFile { path: path.to_path_buf(), file, end: end as u64 });
        if is_new {
            ledger.append(&ledger.header())?;
            crate::record::sync_directory(path)?;
        }
        Ok(ledger)
    }

    /// Rounds on record.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Why no view is a guarantee, because of the noise of some round; `None` if all of it is fit for release.
    pub fn noise_caveat(&self) -> Option<&'static str> {
        self.unfit
    }

    /// How many rounds there were of each kind.
    pub fn kinds(&self) -> &BTreeMap<Cohort, u64> {
        &self.kinds
    }

    /// Enters the next round. It is on the disk when this returns.
    pub fn record(&mut self, spec: &RoundSpec, channel: &EffectiveChannel) -> Result<(), SimError> {
        let next = self.rounds + 1;
        if spec.round != next {
            return Err(wrong("round", &format!("{next}, the next one in the ledger"), spec.round));
        }
        if self.process != std::process::id()
            && let Some(LedgerFile { path, .. }) = &self.file
        {
            // A fork has its parent's file, and would write over it.
            return Err(SimError::Locked { directory: path.clone() });
        }
        let cohort = self.air.cohort(spec);
        let account = self.air.accounting(cohort)?;
        let noise_std = channel.noise_std();
        // With several blocks, what the worst of them would have under the mean noise: it decides what is covered.
        let gains = match channel.blocks() {
            [_] => channel.gains().to_vec(),
            _ => channel.mu(noise_std).into_iter().map(|gain| gain.min(f64::MAX)).collect(),
        };
        let mut line = Line {
            round: next,
            selected: cohort.selected,
            among: cohort.among,
            clients: spec.clients.clone(),
            mu: account.rigorous.mu(channel),
            gains,
            noise_std,
            noise: spec.noise,
            spent: self.air.spend(cohort)?,
            worst: None,
        };
        let mut ledger = self.ledger.clone();
        enter(&mut ledger, &line);
        line.worst = self.with_loss(ledger.worst()?);
        self.append(&line)?;
        self.ledger = ledger;
        self.count(&line, channel);
        Ok(())
    }

    /// The client whose channels have given away most; `None` if nothing is known to be hidden.
    pub fn worst(&self) -> Result<Option<Worst>, SimError> {
        Ok(self.with_loss(self.ledger.worst()?))
    }

    fn with_loss(&self, worst: Option<Worst>) -> Option<Worst> {
        worst.map(|worst| Worst { epsilon: worst.epsilon + self.air.release.epsilon(), ..worst })
    }

    /// `ε` of all rounds so far, and of so many more with such a cohort, in a view; `None` if there is no finite one, and 0 of no
    /// rounds at all.
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

    /// What is said in a view about all rounds so far; `None` before the first, and if the view has nothing to look at.
    pub fn statement(&self, view: View) -> Result<Option<Statement>, SimError> {
        let kinds = self.kinds_after(Cohort::complete(1, 1), 0)?;
        if kinds.is_empty() {
            return Ok(None);
        }
        let mut statement = Mixed::new(&accounts(&kinds, view))?.statement(view)?;
        if let Some(statement) = &mut statement {
            self.air.release.complete(view, statement, self.unfit);
        }
        if let (Some(statement), Some(adversary)) = (&mut statement, self.air.adversary(view)) {
            statement.adversary = adversary.to_owned();
        }
        Ok(statement)
    }

    /// How many more rounds with such a cohort a budget allows, up to `most`.
    pub fn affordable(&self, view: View, budget: f64, cohort: Cohort, most: u64) -> Result<u64, SimError> {
        if !(1e-9..=MAX_EPSILON).contains(&budget) {
            return Err(wrong("budget", "between 1e-9 and 1e5", budget));
        }
        let holds = |more: u64| -> Result<bool, SimError> {
            Ok(self.epsilon_after(view, cohort, more)?.is_some_and(|epsilon| epsilon <= budget))
        };
        largest_integer(most, holds)
    }

    fn kinds_after(&self, cohort: Cohort, more: u64) -> Result<Vec<Kind>, SimError> {
        let mut kinds = self.kinds.clone();
        if more > 0 {
            *kinds.entry(cohort).or_default() += more;
        }
        kinds.into_iter().map(|(cohort, rounds)| Ok((self.air.accounting(cohort)?, rounds))).collect()
    }

    fn count(&mut self, line: &Line, channel: &EffectiveChannel) {
        self.unfit = self.unfit.or_else(|| self.air.unfit(line.noise, channel));
        let cohort =
            Cohort { answered: line.clients.len() as u32, selected: line.selected, among: line.among };
        *self.kinds.entry(cohort).or_default() += 1;
        self.rounds = line.round;
    }

    fn header(&self) -> Header {
        Header { version: VERSION.to_owned(), settings: self.air.description().to_string() }
    }

    fn encoded_header(&self, path: &Path) -> Result<Vec<u8>, SimError> {
        serde_json::to_vec(&self.header()).map_err(|error| SimError::encoding(path, error))
    }

    fn append(&mut self, line: &impl Serialize) -> Result<(), SimError> {
        let Some(LedgerFile { path, file, end }) = &mut self.file else { return Ok(()) };
        let mut bytes = serde_json::to_vec(line).map_err(|error| SimError::encoding(path, error))?;
        bytes.push(b'\n');
        let written = file
            .seek(SeekFrom::Start(*end))
            .and_then(|_| file.write_all(&bytes))
            // What is left of a line that was cut short.
            .and_then(|()| file.set_len(*end + bytes.len() as u64))
            .and_then(|()| file.sync_all());
        written.map_err(SimError::file("write", path))?;
        *end += bytes.len() as u64;
        Ok(())
    }

    fn read(&mut self, path: &Path, text: &[u8]) -> Result<(), SimError> {
        let damaged = |number: usize, reason: String| damaged(path, number, reason);
        if text.is_empty() {
            return Ok(());
        }
        let mut lines = text.split(|&byte| byte == b'\n').enumerate();
        let (_, first) = lines.next().unwrap_or_default();
        let header: Header = serde_json::from_slice(first)
            .map_err(|_| damaged(0, "this is no ledger of an uplink".to_owned()))?;
        self.refuse_others(path, &header)?;
        for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
            let line: Line =
                serde_json::from_slice(line).map_err(|error| damaged(number, error.to_string()))?;
            if line.round != self.rounds + 1 {
                return Err(damaged(number, format!("round {} follows round {}", line.round, self.rounds)));
            }
            let spec = RoundSpec {
                seed: 0,
                trial: 0,
                round: line.round,
                clients: line.clients.clone(),
                selected: line.selected,
                among: Some(line.among),
                noise: line.noise,
            };
            line.check().map_err(|reason| damaged(number, reason))?;
            self.air.checked(&spec).map_err(|error| damaged(number, error.to_string()))?;
            enter(&mut self.ledger, &line);
            let channel = EffectiveChannel::new(line.gains.clone(), line.noise_std)
                .map_err(|error| damaged(number, error.to_string()))?;
            self.count(&line, &channel);
        }
        Ok(())
    }

    /// Rounds of another uplink cannot be composed with ours.
    fn refuse_others(&self, path: &Path, header: &Header) -> Result<(), SimError> {
        let refused = |difference: Difference| SimError::OtherLedger { path: path.to_path_buf(), difference };
        let unreadable = |error: String| damaged(path, 0, error);
        let mut keys = header.settings.parse::<Table>().map_err(|error| unreadable(error.to_string()))?;
        let clients = keys.remove("clients").and_then(|value| u32::try_from(value.as_integer()?).ok());
        // Read and described anew, so that it does not matter how an earlier version wrote it.
        let theirs = AirInterface::from_keys(keys, clients).map_err(|error| unreadable(error.to_string()))?;
        let [ours, theirs] = [&*self.air, &theirs].map(|air| {
            air.description().entries().map(|(key, value)| (key.to_owned(), value)).collect::<Vec<_>>()
        });
        let text = |entries: &[(String, String)], key: &str| {
            let found = entries.iter().find(|(known, _)| known == key);
            found.map_or_else(|| "absent".to_owned(), |(_, value)| value.clone())
        };
        let keys = ours.iter().chain(&theirs).map(|(key, _)| key);
        let differing = keys.into_iter().find(|key| text(&ours, key) != text(&theirs, key));
        match differing {
            None => Ok(()),
            Some(key) => Err(refused(Difference {
                key: key.clone(),
                ours: text(&ours, key),
                theirs: text(&theirs, key),
            })),
        }
    }
}

/// Opens a file, or makes one that nobody else may read: it says who took part in which round.
fn open_for_us(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}

impl Line {
    /// What no ledger writes would count for less than it was.
    fn check(&self) -> Result<(), String> {
        let clients = self.clients.len();
        let sound = |values: &[f64]| values.iter().all(|value| value.is_finite());
        if self.gains.len() != clients || !sound(&self.gains) {
            return Err(format!("there must be {clients} finite gains"));
        }
        if ![0, clients].contains(&self.mu.len()) || !sound(&self.mu) || self.mu.iter().any(|&mu| mu < 0.0) {
            return Err(format!("there must be {clients} values of mu, or none, and none below 0"));
        }
        if !(self.noise_std.is_finite() && self.noise_std >= 0.0) {
            return Err("noise_std must be finite and not negative".to_owned());
        }
        Ok(())
    }
}

fn damaged(path: &Path, line: usize, reason: String) -> SimError {
    SimError::Damaged { path: path.to_path_buf(), reason: format!("line {}: {reason}", line + 1) }
}

fn enter(ledger: &mut Ledger, line: &Line) {
    let most = line.clients.iter().copied().max().unwrap_or(0);
    ledger.make_room(most.min(MAX_CLIENTS) + 1);
    ledger.add(&Spend {
        trial: 0,
        round: line.round,
        spent: BTreeMap::new(),
        clients: line.clients.clone(),
        mu: line.mu.clone(),
        worst: None,
    });
}
