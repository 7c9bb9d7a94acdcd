//! The accountant: `ε` after the recorded rounds.
//!
//! A ledger entry holds the `ε` of its round alone. The account of the experiment, the one that `floras account` and the run
//! itself use, composes `ε` of all rounds so far. Composition takes time that the training needs. It is done in a separate
//! thread, for the latest round only, and for a small share of the time.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use floras_core::verdict::Verdict;
use floras_core::{Rounding, View};
use floras_privacy::ledger::Worst;
use floras_privacy::{MAX_EPSILON, Statement, Views};
use floras_sim::inquiry::ExperimentAccount;
use floras_sim::{Experiment, Settings, SimError, Summary};

use crate::board::{Board, Privacy};

/// Minimum time between the starts of two computations.
const MIN_INTERVAL: Duration = Duration::from_millis(500);
/// Minimum time between the starts of two computations, in units of the duration of the first one.
const MIN_INTERVAL_FACTOR: u32 = 9;
/// Maximum `ε` of one round up to which rounds are composed. Above it there is no guarantee, and composition takes long.
const MAX_ROUND_EPSILON: f64 = 1e5;

/// The content of the ledger, shared by the watcher and the accountant.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// Number of rounds in the ledger, the maximum over the trials.
    rounds: AtomicU32,
    worst: Mutex<Option<Worst>>,
    /// Number of rounds that the budget allows; 0 while unknown.
    affordable: AtomicU32,
    has_ended: AtomicBool,
}

impl Recorded {
    /// Records a ledger entry.
    pub(crate) fn add(&self, round: u32, worst: Option<Worst>) {
        self.rounds.fetch_max(round, Ordering::Relaxed);
        let mut largest = self.worst.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(worst) = worst
            && largest.is_none_or(|largest| worst.mu >= largest.mu)
        {
            *largest = Some(worst);
        }
    }

    /// Number of rounds in a trial; `None` while unknown.
    pub(crate) fn affordable(&self) -> Option<u32> {
        Some(self.affordable.load(Ordering::Relaxed)).filter(|&rounds| rounds > 0)
    }

    /// Ends the accountant: the run has ended, or another one has begun.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    fn worst(&self) -> Option<(u32, f64)> {
        let worst = self.worst.lock().unwrap_or_else(PoisonError::into_inner);
        worst.map(|worst| (worst.client, worst.epsilon))
    }
}

/// Computes `ε` after the rounds of the ledger, until the run has ended.
pub(crate) fn follow(experiment: &Experiment, recorded: &Recorded, board: &Board) {
    if let Err(error) = try_follow(experiment, recorded, board) {
        let privacy = Privacy {
            view: view_of(experiment.settings(), None).name().to_owned(),
            delta: experiment.settings().privacy.delta,
            verdict: Verdict::of(None, false).label().to_owned(),
            reason: Some(error.to_string()),
            ..Privacy::default()
        };
        show(board, recorded, privacy);
    }
}

fn try_follow(experiment: &Experiment, recorded: &Recorded, board: &Board) -> Result<(), SimError> {
    let settings = experiment.settings();
    let account = ExperimentAccount::new(experiment)?;
    let first = account.views(1)?;
    let view = view_of(settings, Some(&first));
    let statement = first.get(view);
    let mut privacy = described(settings, view, statement);
    let one_round = statement.and_then(|statement| statement.epsilon);
    recorded.affordable.store(account.affordable_rounds()?.max(1), Ordering::Relaxed);
    let Some(one_round) = one_round else {
        show(board, recorded, privacy);
        return Ok(());
    };
    if one_round > MAX_ROUND_EPSILON {
        privacy.verdict = Verdict::None.label().to_owned();
        privacy.reason = Some(format!("one round alone has ε = {}", Rounding::Up.scientific(one_round, 1)));
        privacy.epsilon_above = Some(MAX_ROUND_EPSILON);
        show(board, recorded, privacy);
        return Ok(());
    }
    show(board, recorded, privacy.clone());
    if privacy.limit.is_none() {
        privacy.limit = account.epsilon_after(view, settings.rounds)?;
    }
    while !recorded.has_ended.load(Ordering::Relaxed) {
        let (start, rounds) = (Instant::now(), recorded.rounds.load(Ordering::Relaxed));
        if rounds > privacy.rounds {
            let epsilon = if rounds == 1 { Some(one_round) } else { account.epsilon_after(view, rounds)? };
            privacy.rounds = rounds;
            match epsilon {
                Some(epsilon) => privacy.push(rounds, epsilon),
                // One round has a finite ε, and that of more rounds is above the maximum.
                None => (privacy.epsilon, privacy.epsilon_above) = (None, Some(MAX_EPSILON)),
            }
            privacy.verdict = verdict(epsilon, statement);
        }
        privacy.worst = recorded.worst();
        show(board, recorded, privacy.clone());
        let pause = MIN_INTERVAL.max(MIN_INTERVAL_FACTOR * start.elapsed());
        let step = Duration::from_millis(50);
        while start.elapsed() < pause && !recorded.has_ended.load(Ordering::Relaxed) {
            thread::sleep(step);
        }
    }
    Ok(())
}

fn show(board: &Board, recorded: &Recorded, privacy: Privacy) {
    if !recorded.has_ended.load(Ordering::Relaxed) {
        board.set_privacy(privacy);
    }
}

/// The privacy of a finished run, as its summary states it.
pub(crate) fn of_summary(settings: &Settings, summary: &Summary) -> Privacy {
    let report = &summary.privacy;
    let view = view_of(settings, Some(&report.views));
    let statement = report.views.get(view);
    let mut privacy = described(settings, view, statement);
    let epsilon = statement.and_then(|statement| statement.epsilon);
    let field = view.field();
    privacy.points =
        report.growth.iter().filter_map(|spent| Some((spent.rounds, *spent.epsilon.get(&field)?))).collect();
    (privacy.rounds, privacy.epsilon) = (report.rounds, epsilon);
    privacy.verdict = verdict(epsilon, statement);
    privacy.limit = privacy.limit.or(epsilon);
    privacy.worst = report.worst_client.map(|worst| (worst.client, worst.epsilon));
    privacy
}

/// The view whose `ε` is shown: that of the experiment, or the one with the strongest adversary if that view has no statement.
fn view_of(settings: &Settings, views: Option<&Views>) -> View {
    let quoted = settings.privacy.view;
    let Some(views) = views.filter(|views| views.get(quoted).is_none()) else { return quoted };
    View::BY_ADVERSARY.into_iter().find(|&view| views.get(view).is_some()).unwrap_or(quoted)
}

fn described(settings: &Settings, view: View, statement: Option<&Statement>) -> Privacy {
    let budget = settings.privacy.budget;
    let without = statement.filter(|statement| statement.epsilon.is_none());
    let reason = without
        .map(|statement| statement.reason.clone().unwrap_or_else(|| "no finite ε in this view".to_owned()));
    Privacy {
        view: view.name().to_owned(),
        epsilon_above: without.and_then(|statement| statement.epsilon_above),
        adversary: statement.map_or_else(|| view.adversary().to_owned(), |found| found.adversary.clone()),
        delta: settings.privacy.delta,
        verdict: if reason.is_some() { verdict(None, statement) } else { String::new() },
        reason: if statement.is_none() {
            Some("the scheme has no privacy statement".to_owned())
        } else {
            reason
        },
        limit: budget,
        is_budget: budget.is_some(),
        ..Privacy::default()
    }
}

fn verdict(epsilon: Option<f64>, statement: Option<&Statement>) -> String {
    let is_proven = statement.is_some_and(|statement| statement.guarantee);
    Verdict::of(epsilon, is_proven).label().to_owned()
}
