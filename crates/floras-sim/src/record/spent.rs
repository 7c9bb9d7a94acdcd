//! The privacy that a run has spent so far, from the ledgers of its trials.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;

use floras_privacy::ledger::Worst;

use super::directory::RunDirectory;
use super::ledger_entry::LedgerEntry;
use super::log;
use crate::accounting::PrivacyReport;
use crate::error::SimError;
use crate::federation::Federation;

impl RunDirectory {
    /// The privacy statements about the rounds in the ledger, without entering the directory; `None` before the first round. Trials
    /// are independent repetitions, so the statements cover the rounds of the longest trial. For a complete run, the statements are
    /// those of the summary. For an incomplete run, the data are loaded and the account is computed again.
    pub fn privacy_so_far(path: &Path) -> Result<Option<PrivacyReport>, SimError> {
        if let Some(summary) = Self::read_summary(path)? {
            return Ok(Some(summary.privacy));
        }
        let experiment = Self::read_experiment(path)?;
        match spent(path, experiment.settings().trials)? {
            None => Ok(None),
            Some(spent) => report(&Federation::new(&experiment)?, spent).map(Some),
        }
    }
}

/// The privacy report about the recorded rounds of a federation.
pub(crate) fn report(federation: &Federation, (rounds, worst): Spent) -> Result<PrivacyReport, SimError> {
    let settings = federation.experiment().settings();
    Ok(federation.accounting()?.report(settings, rounds, worst)?)
}

/// Rounds of the longest trial, and the client with the largest loss of all trials.
type Spent = (u32, Option<Worst>);

/// The rounds and the largest loss in the ledgers of all trials; `None` before the first round.
pub(crate) fn spent(path: &Path, trials: u32) -> Result<Option<Spent>, SimError> {
    let mut spent: Option<Spent> = None;
    for trial in 0..trials as usize {
        let file = log::trial_log::<LedgerEntry>(&path.join("checkpoint"), trial);
        let Some(LedgerEntry { round, worst, .. }) = last_entry(&file)? else { continue };
        let (rounds, before) = spent.unwrap_or_default();
        let worst = worst.into_iter().chain(before).max_by(|a, b| a.mu.total_cmp(&b.mu));
        spent = Some((rounds.max(round), worst));
    }
    Ok(spent)
}

/// The last complete entry of a ledger, which another process may be writing.
fn last_entry(path: &Path) -> Result<Option<LedgerEntry>, SimError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.map_err(SimError::file("read", path))?,
    };
    let mut last = None;
    for line in BufReader::new(file).split(b'\n') {
        let line = line.map_err(SimError::file("read", path))?;
        last = serde_json::from_slice(&line).ok().or(last);
    }
    Ok(last)
}
