//! What an incomplete run has done and spent, from the logs of all trials.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use floras_sim::inquiry::ExperimentAccount;
use floras_sim::{PrivacyReport, RecordedRun, RunDirectory};

use crate::html::Html;
use crate::html::number::{count, grouped};
use crate::privacy;

/// The progress of an incomplete run.
pub(super) struct SoFar {
    /// Rounds in a trial: those of the experiment, or as many as its budget allows.
    pub(super) rounds: u32,
    /// Rounds done, over all trials.
    pub(super) done: u64,
    /// Rounds of the complete run, over all trials.
    pub(super) all: u64,
    /// Rounds in the ledger of the longest trial. The ledger can be ahead of the metrics, because it is synced first.
    pub(super) spent: u32,
    /// The privacy after `spent` rounds; `None` before the first round, and if it is unknown.
    pub(super) report: Option<PrivacyReport>,
    /// Why the privacy is unknown.
    problem: Option<String>,
}

impl SoFar {
    pub(super) fn read(directory: &Path, run: &RecordedRun) -> Self {
        let settings = run.experiment.settings();
        let account = ExperimentAccount::new(&run.experiment);
        let affordable = account.as_ref().ok().and_then(|account| account.affordable_rounds().ok());
        let rounds = affordable.unwrap_or(settings.rounds);
        let mut last: BTreeMap<u32, (u32, bool)> = BTreeMap::new();
        for line in &run.metrics {
            let (round, diverged) = last.entry(line.trial).or_default();
            (*round, *diverged) = ((*round).max(line.round), *diverged || line.diverged);
        }
        let done = last.values().map(|(round, _)| u64::from(*round)).sum();
        let skipped =
            |(round, diverged): &(u32, bool)| if *diverged { rounds.saturating_sub(*round) } else { 0 };
        let skipped: u64 = last.values().map(skipped).map(u64::from).sum();
        let spent =
            last.values().map(|(round, _)| *round).chain(in_ledgers(directory, settings.trials)).max();
        let spent = spent.unwrap_or(0);
        let all = u64::from(rounds) * u64::from(settings.trials) - skipped;
        let mut so_far = Self { rounds, done, all, spent, report: None, problem: None };
        if spent > 0 {
            match so_far.account(directory, run, account) {
                Ok(report) => so_far.report = Some(report),
                Err(error) => so_far.problem = Some(error.to_string()),
            }
        }
        so_far
    }

    /// The report that the program prints when it stops. Without the logs of the trials, the account of the experiment.
    fn account(
        &self,
        directory: &Path,
        run: &RecordedRun,
        account: Result<ExperimentAccount, floras_sim::SimError>,
    ) -> Result<PrivacyReport, floras_sim::SimError> {
        if let Ok(Some(report)) = RunDirectory::privacy_so_far(directory)
            && report.rounds == self.spent
        {
            return Ok(report);
        }
        let settings = run.experiment.settings();
        Ok(PrivacyReport {
            delta: settings.privacy.delta,
            rounds: self.spent,
            level: settings.privacy.level.name().to_owned(),
            views: account?.views(self.spent)?,
            worst_client: None,
            notes: Vec::new(),
            growth: Vec::new(),
            curves: Vec::new(),
        })
    }

    /// Says that the run is incomplete, and how to resume it.
    pub(super) fn notice(&self, body: &mut Html, directory: &Path) {
        body.element(
            "p",
            "warning",
            &format!(
                "This run is not complete: it has done {} of {} over all trials. The report shows what is recorded so far. To resume \
                 the run:",
                grouped(self.done),
                count(self.all, "round")
            ),
        );
        body.command(&format!("floras run --resume --out {}", shell_word(&directory.display().to_string())));
    }

    /// The privacy that the run has spent.
    pub(super) fn privacy(&self, body: &mut Html, run: &RecordedRun) {
        let settings = run.experiment.settings();
        if self.spent == 0 {
            return;
        }
        body.section("Privacy spent so far", |section| {
            let view = settings.privacy.view;
            if let Some(report) = &self.report {
                privacy::in_words(section, report, view);
                privacy::table(section, &report.views, &report.notes, view);
            }
            let rounds = count(self.spent.into(), "round");
            if let Some(problem) = &self.problem {
                section.paragraph(&format!("ε after {rounds} is unknown: {problem}."));
            }
            let after = match settings.privacy.budget {
                Some(budget) => format!(
                    "The budget of ε = {budget} in the {view} view allows {} in a trial.",
                    count(self.rounds.into(), "round")
                ),
                None => format!("A complete trial has {}.", count(self.rounds.into(), "round")),
            };
            section.paragraph(&format!(
                "The ledger of the longest trial has {rounds}. {after} Resuming the run spends more."
            ));
        });
    }
}

/// The last rounds in the common ledger and in those of the trials; a line that a crash cut off is ignored.
fn in_ledgers(directory: &Path, trials: u32) -> impl Iterator<Item = u32> {
    let own = (0..trials).map(|trial| RunDirectory::trial_logs(directory, trial));
    let last = |[_, ledger]: [std::path::PathBuf; 2]| {
        let text = fs::read_to_string(ledger).ok()?;
        let round = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok()?.get("round")?.as_u64();
        text.lines().filter_map(round).max().and_then(|round| u32::try_from(round).ok())
    };
    own.chain([RunDirectory::logs(directory)]).filter_map(last)
}

/// A path as a word of a command line.
fn shell_word(path: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_@%+=:,./-".contains(letter);
    if !path.is_empty() && path.chars().all(is_plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_paths_are_quoted() {
        assert_eq!(shell_word("runs/a-1"), "runs/a-1");
        assert_eq!(shell_word("it's here"), "'it'\\''s here'");
    }
}
