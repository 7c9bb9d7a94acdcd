//! The ledger of an [`AirInterface`]: what the rounds so far have given away together, kept in a file if asked.
//!
//! Rounds may differ: a client that dies leaves its sequence unused, and the round has another curve. Rounds of one kind are
//! counted, and the kinds composed.
//!
//! The file has one JSON object a line. The first says which uplink it belongs to; every other is a round, and is on the disk
//! before the round's result may be shown to anyone.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use floras_phy::EffectiveChannel;
use floras_privacy::ledger::{Ledger, Spend, Worst, given_channels};
use floras_privacy::mixed::Mixed;
use floras_privacy::{Statement, View};
use serde::{Deserialize, Serialize};
use toml::Table;

use super::{AirInterface, Cohort, Kind, MOST_CLIENTS, Occasion, accounts, wrong};
use crate::error::SimError;
use crate::experiment::{Difference, VERSION};

/// What an [`AirInterface`] has given away.
#[derive(Debug)]
pub struct AirLedger {
    air: Arc<AirInterface>,
    ledger: Ledger,
    kinds: BTreeMap<Cohort, u64>,
    rounds: u32,
    file: Option<LedgerFile>,
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
    settings: Table,
}

/// The line of a round.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Line {
    /// From 1.
    round: u32,
    /// How many clients were asked.
    selected: u32,
    /// Those who answered,
    clients: Vec<u32>,
    /// with which gains,
    gains: Vec<f64>,
    /// under which noise,
    noise_std: f64,
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
        let ledger = Ledger::new(clients, air.delta(), None, BTreeMap::new())?;
        Ok(Self { air, ledger, kinds: BTreeMap::new(), rounds: 0, file: None })
    }

    /// A ledger in a file, which is made if it is not there, and read if it is. A file of another uplink is refused, and so is
    /// one that another process writes to.
    pub fn open(air: Arc<AirInterface>, path: &Path) -> Result<Self, SimError> {
        let mut ledger = Self::new(air)?;
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = file.map_err(SimError::file("open", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SimError::Locked { folder: path.to_path_buf() }),
            Err(TryLockError::Error(error)) => return Err(SimError::file("lock", path)(error)),
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(SimError::file("read", path))?;
        // A line that was cut short belongs to a round whose result nobody has seen.
        let end = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        ledger.read(path, &text[..end])?;
        let is_new = end == 0;
        ledger.file = Some(LedgerFile { path: path.to_path_buf(), file, end: end as u64 });
        if is_new {
            let settings = ledger.air.description().clone();
            ledger.append(&Header { version: VERSION.to_owned(), settings })?;
            crate::record::sync_folder(path)?;
        }
        Ok(ledger)
    }

    /// Rounds on record.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// How many rounds there were of each kind.
    pub fn kinds(&self) -> &BTreeMap<Cohort, u64> {
        &self.kinds
    }

    /// Enters the next round. It is on the disk when this returns.
    pub fn record(&mut self, occasion: &Occasion, channel: &EffectiveChannel) -> Result<(), SimError> {
        let next = self.rounds + 1;
        if occasion.round != next {
            return Err(wrong("round", &format!("{next}, the next one in the ledger"), occasion.round));
        }
        let accounting = self.air.accounting(occasion.cohort())?;
        let (gains, noise_std) = (channel.gains().to_vec(), channel.noise_std());
        let mut line = Line {
            round: next,
            selected: occasion.selected,
            clients: occasion.clients.clone(),
            mu: given_channels(accounting.sensitivity(), &gains, noise_std),
            gains,
            noise_std,
            spent: accounting.one_rounds().clone(),
            worst: None,
        };
        let mut ledger = self.ledger.clone();
        enter(&mut ledger, &line);
        line.worst = ledger.worst()?;
        self.append(&line)?;
        self.ledger = ledger;
        self.count(&line);
        Ok(())
    }

    /// The client whose channels have given away most; `None` if nothing is known to be hidden.
    pub fn worst(&self) -> Result<Option<Worst>, SimError> {
        Ok(self.ledger.worst()?)
    }

    /// `ε` of all rounds so far, and of so many more with such a cohort, in a view; `None` if there is no finite one, and 0 of no
    /// rounds at all.
    pub fn epsilon_after(&self, view: View, cohort: Cohort, more: u64) -> Result<Option<f64>, SimError> {
        let kinds = self.kinds_after(cohort, more)?;
        if kinds.is_empty() {
            return Ok(Some(0.0));
        }
        Ok(Mixed::new(&accounts(&kinds))?.epsilon(view)?)
    }

    /// `ε` of all rounds so far in a view.
    pub fn epsilon(&self, view: View) -> Result<Option<f64>, SimError> {
        self.epsilon_after(view, Cohort { answered: 1, selected: 1 }, 0)
    }

    /// What is said in a view about all rounds so far; `None` before the first, and if the view has nothing to look at.
    pub fn statement(&self, view: View) -> Result<Option<Statement>, SimError> {
        let kinds = self.kinds_after(Cohort { answered: 1, selected: 1 }, 0)?;
        if kinds.is_empty() {
            return Ok(None);
        }
        Ok(Mixed::new(&accounts(&kinds))?.statement(view)?)
    }

    /// How many more rounds with such a cohort a budget allows, up to `most`.
    pub fn affordable(&self, view: View, budget: f64, cohort: Cohort, most: u64) -> Result<u64, SimError> {
        if !(budget > 0.0 && budget <= 1e6) {
            let key = "budget".to_owned();
            let allowed = "above 0 and at most 1e6".to_owned();
            return Err(crate::experiment::ExperimentError::Value {
                key,
                allowed,
                value: budget.to_string(),
            }
            .into());
        }
        let holds = |more: u64| -> Result<bool, SimError> {
            Ok(self.epsilon_after(view, cohort, more)?.is_some_and(|epsilon| epsilon <= budget))
        };
        if most == 0 || !holds(1)? {
            return Ok(0);
        }
        // Upwards in steps that double, because few rounds are cheaper to compose than many.
        let (mut lower, mut upper) = (1, 2);
        while upper <= most && holds(upper)? {
            (lower, upper) = (upper, upper * 2);
        }
        upper = upper.min(most + 1);
        while upper - lower > 1 {
            let middle = lower + (upper - lower) / 2;
            if holds(middle)? { lower = middle } else { upper = middle }
        }
        Ok(lower)
    }

    fn kinds_after(&self, cohort: Cohort, more: u64) -> Result<Vec<Kind>, SimError> {
        let mut kinds = self.kinds.clone();
        if more > 0 {
            *kinds.entry(cohort).or_default() += more;
        }
        kinds.into_iter().map(|(cohort, rounds)| Ok((self.air.accounting(cohort)?, rounds))).collect()
    }

    fn count(&mut self, line: &Line) {
        let cohort = Cohort { answered: line.clients.len() as u32, selected: line.selected };
        *self.kinds.entry(cohort).or_default() += 1;
        self.rounds = line.round;
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
        let damaged = |number: usize, reason: String| SimError::Damaged {
            path: path.to_path_buf(),
            reason: format!("line {}: {reason}", number + 1),
        };
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
            let occasion = Occasion {
                seed: 0,
                trial: 0,
                round: line.round,
                clients: line.clients.clone(),
                selected: line.selected,
            };
            self.air.checked(&occasion).map_err(|error| damaged(number, error.to_string()))?;
            enter(&mut self.ledger, &line);
            self.count(&line);
        }
        Ok(())
    }

    /// Rounds of another uplink cannot be composed with ours.
    fn refuse_others(&self, path: &Path, header: &Header) -> Result<(), SimError> {
        let refused = |difference: Difference| SimError::OtherLedger { path: path.to_path_buf(), difference };
        let (ours, theirs) = (self.air.description(), &header.settings);
        let keys = ours.keys().chain(theirs.keys());
        let text = |table: &Table, key: &str| {
            table.get(key).map_or_else(|| "absent".to_owned(), |value| value.to_string())
        };
        let differing = keys.into_iter().find(|key| ours.get(*key) != theirs.get(*key));
        match differing {
            None => Ok(()),
            Some(key) => Err(refused(Difference {
                key: key.clone(),
                ours: text(ours, key),
                theirs: text(theirs, key),
            })),
        }
    }
}

fn enter(ledger: &mut Ledger, line: &Line) {
    let most = line.clients.iter().copied().max().unwrap_or(0);
    ledger.make_room(most.min(MOST_CLIENTS) + 1);
    ledger.add(&Spend {
        trial: 0,
        round: line.round,
        spent: BTreeMap::new(),
        clients: line.clients.clone(),
        mu: line.mu.clone(),
        worst: None,
    });
}
