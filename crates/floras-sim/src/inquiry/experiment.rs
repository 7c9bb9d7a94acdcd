//! The account of an experiment of any scheme, and the calibration of one of its keys.

use std::collections::BTreeMap;

use floras_core::random::TrialId;
use floras_core::{Level, Rounding, View};
use floras_privacy::{Account, LossFile, PrivacyUnit, Statement, Views};
use serde::Serialize;

use super::curves::{curves_of, group_of, losses_of};
use super::masks::{self, FoundMasks};
use super::{CurveKind, CurveReport, Find, GroupReport, PublishedRenyi, wrong};
use crate::accounting::{Accounting, Protected, notes, statements};
use crate::error::SimError;
use crate::experiment::{Experiment, ExperimentBuilder, ExperimentError, Settings};
use crate::federation::{Dropouts, protected, scope};
use crate::schemes::NoiseKey;

/// Maximum number of rounds of a search.
const MAX_ROUNDS: f64 = 1e6;
/// Relative tolerance of a searched number.
const TOLERANCE: f64 = 1e-4;

/// The noise of each client, which schemes without noise of their own can have.
const LOCAL_NOISE: &str = "masks.noise_std";
/// Maximum noise of a search; the minimum is its reciprocal.
const MAX_NOISE: f64 = 1e12;

/// The account of an experiment.
pub struct ExperimentAccount {
    experiment: Experiment,
    protected: Protected,
    pub(super) account: Account,
}

/// The privacy of an experiment: what `floras account FILE --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExperimentReport {
    /// Number of unused sequences, `γ = N − K`, for schemes with sequences.
    pub gamma: Option<u64>,
    /// Number of rounds `T`.
    pub rounds: u64,
    /// Privacy parameter `δ` of all statements.
    pub delta: f64,
    /// The unit that is protected.
    pub level: Level,
    /// The experiment's name.
    pub name: String,
    /// The scheme's name.
    pub scheme: &'static str,
    /// Clip norm `C`; `None` if updates are not clipped.
    pub clip: Option<f64>,
    /// Number of sequences `N`, for schemes with sequences.
    pub sequences: Option<u64>,
    /// Number of clients per round `K`.
    pub per_round: u64,
    /// Total number of clients `M`.
    pub clients: u64,
    /// Scheme and radio in one line.
    pub uplink: String,
    /// The privacy statement of each view.
    pub views: Views,
    /// What the adversary of a view sees, in a few words, where a scheme has its own: [`Scheme::adversary_sees`](crate::schemes::Scheme).
    #[serde(skip)]
    pub adversaries: BTreeMap<View, &'static str>,
    /// Notes on the statements.
    pub notes: Vec<String>,
    /// The published Rényi divergence, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_renyi: Option<PublishedRenyi>,
    /// `ε` of a group of clients, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupReport>,
    /// The curves that were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curves: Option<Vec<CurveReport>>,
    /// A paragraph for a paper, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
}

impl ExperimentAccount {
    /// Accounts for an experiment. Its data are read at the item level only, for the clients' numbers of samples.
    pub fn new(experiment: &Experiment) -> Result<Self, SimError> {
        Self::of(experiment, protected(experiment.settings())?)
    }

    pub(super) fn of(experiment: &Experiment, protected: Protected) -> Result<Self, SimError> {
        let settings = experiment.settings();
        let uplink = settings.build_uplink(settings.seed)?;
        let dropouts = Dropouts::open(settings)?;
        let select = |trial: TrialId, round: u32| dropouts.accounted(settings, trial, round);
        let account = Accounting::curves(settings, &protected, uplink.as_ref(), scope(settings)?, &select)?;
        Ok(Self { experiment: experiment.clone(), protected, account })
    }

    /// The statements about a number of rounds.
    pub fn views(&self, rounds: u32) -> Result<Views, SimError> {
        Ok(self.account.views(rounds.max(1).into())?)
    }

    /// `ε` in a view after all rounds; `None` if there is no finite one.
    pub fn epsilon(&self, view: View) -> Result<Option<f64>, SimError> {
        Ok(self.account.epsilon(view, self.rounds())?)
    }

    /// `ε` in a view after some rounds; `None` if there is no finite one.
    pub fn epsilon_after(&self, view: View, rounds: u32) -> Result<Option<f64>, SimError> {
        Ok(self.account.epsilon(view, rounds.max(1).into())?)
    }

    /// Rounds in a trial: those of the experiment, or as many as its budget allows.
    pub fn affordable_rounds(&self) -> Result<u32, SimError> {
        let settings = self.experiment.settings();
        let Some(epsilon) = settings.privacy.budget else { return Ok(settings.rounds) };
        Ok(self.account.most_rounds(settings.privacy.view, epsilon, settings.rounds.into())? as u32)
    }

    /// The report on all views, after all rounds of the experiment.
    pub fn report(&self) -> Result<ExperimentReport, SimError> {
        let settings = self.experiment.settings();
        let (clients, sequences) = (&settings.clients, settings.uplink.scheme.sequences());
        let views = statements(&self.account, settings, self.rounds())?;
        Ok(ExperimentReport {
            gamma: sequences.map(|count| (count - clients.per_round as usize) as u64),
            rounds: self.rounds(),
            delta: settings.privacy.delta,
            level: self.level(),
            name: settings.name.clone(),
            scheme: settings.uplink.scheme.name(),
            clip: settings.privacy.clip,
            sequences: sequences.map(|count| count as u64),
            per_round: clients.per_round.into(),
            clients: clients.total.into(),
            uplink: settings.uplink_summary(),
            notes: notes::of(settings, &self.protected, &views, self.account.sampling(), self.rounds()),
            views,
            adversaries: settings.uplink.scheme.adversaries(),
            published_renyi: None,
            group: None,
            curves: None,
            statement: None,
        })
    }

    /// A curve of a view, or of all views that have one; at default points if none are given.
    pub fn curves(
        &self,
        kind: CurveKind,
        view: Option<View>,
        at: Option<&[f64]>,
    ) -> Result<Vec<CurveReport>, SimError> {
        curves_of(&self.account, self.rounds(), kind, view, at)
    }

    /// `ε` of up to `size` clients together, in a view or in all that apply to the scheme: the bound of one client after another.
    pub fn group(&self, size: u64, view: Option<View>) -> Result<GroupReport, SimError> {
        group_of(&self.account, self.rounds(), size, view)
    }

    /// The loss distribution of one round of a view.
    pub fn losses(&self, view: View) -> Result<LossFile, SimError> {
        let mut losses = losses_of(&self.account, self.rounds(), view, self.level().name(), "replace-one")?;
        let assumption = notes::dropout_assumption(self.experiment.settings());
        losses.assumptions.extend(assumption.map(str::to_owned));
        Ok(losses)
    }

    pub(super) fn settings(&self) -> &Settings {
        self.experiment.settings()
    }

    pub(super) fn unit(&self) -> PrivacyUnit {
        self.protected.unit()
    }

    pub(super) fn level(&self) -> Level {
        self.experiment.settings().privacy.level
    }

    pub(super) fn rounds(&self) -> u64 {
        self.experiment.settings().rounds.into()
    }
}

/// The calibration of an experiment: what `floras calibrate FILE --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExperimentCalibration {
    /// The key that was searched, as in `uplink.noise_std`.
    pub key: String,
    /// The found value; `None` for masks, and if no value meets the target.
    pub value: Option<f64>,
    /// The masks, if they were searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub masks: Option<FoundMasks>,
    /// Number of sequences `N`, for schemes with sequences.
    pub sequences: Option<u64>,
    /// Number of unused sequences, `γ = N − K`, for schemes with sequences.
    pub gamma: Option<u64>,
    /// The view's name.
    pub view: &'static str,
    /// `ε` of the found experiment.
    pub epsilon: Option<f64>,
    /// The target: an upper bound on `ε`.
    pub epsilon_asked: f64,
    /// The account of the found experiment.
    #[serde(flatten)]
    pub report: Option<ExperimentViews>,
    /// Why no value meets the target; `None` if one was found.
    pub reason: Option<String>,
    /// The change as a fragment of an experiment file.
    pub fragment: Option<String>,
    /// The whole experiment file with the change.
    pub file: Option<String>,
}

/// The part of a report that a calibration repeats.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExperimentViews {
    /// Scheme and radio in one line.
    pub uplink: String,
    /// Number of rounds `T`.
    pub rounds: u64,
    /// Privacy parameter `δ` of all statements.
    pub delta: f64,
    /// The privacy statement of each view.
    pub views: Views,
    /// What the adversary of a view sees, in a few words, where a scheme has its own.
    #[serde(skip)]
    pub adversaries: BTreeMap<View, &'static str>,
    /// Notes on the statements.
    pub notes: Vec<String>,
}

/// Searches the value of a key with which an experiment meets an `ε` in a view: the minimum number of sequences, the largest clip
/// norm, the maximum number of rounds or the least noise; or masks. `ε` must be monotone in the value.
pub fn calibrate_experiment(
    builder: &ExperimentBuilder,
    epsilon: f64,
    view: View,
    find: Find,
) -> Result<ExperimentCalibration, SimError> {
    if !(1e-9..=1e5).contains(&epsilon) {
        return Err(wrong("epsilon", "between 1e-9 and 1e5", epsilon));
    }
    if find == Find::Masks {
        return masks::calibrate(builder, epsilon, view);
    }
    let base = match (builder.clone().build(), find) {
        // The given number of sequences may be too small: it is replaced by the search.
        (Err(_), Find::Sequences) => {
            let length = builder.get("uplink.length").and_then(|text| text.parse().ok());
            builder.clone().set_to("uplink.sequences", length.unwrap_or(32_u64))?.build()?
        }
        (built, _) => built?,
    };
    let settings = base.settings();
    let scheme = &settings.uplink.scheme;
    let (per_round, radio) = (f64::from(settings.clients.per_round), &settings.uplink.radio);
    let search = match find {
        Find::Rounds => Search { key: "rounds".to_owned(), from: MAX_ROUNDS, to: 1.0, whole: true },
        Find::Clip => Search { key: "privacy.clip".to_owned(), from: 1e12, to: 1e-12, whole: false },
        Find::Sequences => {
            if scheme.sequences().is_none() {
                let allowed = others(builder, &base, view, find)?;
                let allowed = format!("{allowed} (scheme {} has no sequences)", scheme.name());
                return Err(wrong("find", &allowed, find));
            }
            let key = "uplink.sequences".to_owned();
            let from = per_round + settings.privacy.margins.foreign_pilots as f64;
            let most = scheme.floras().map(|floras| floras.max_sequences(radio.length)).transpose()?;
            let to = most.map_or(radio.length, |most| most.min(radio.length)) as f64;
            Search { key, from, to, whole: true }
        }
        Find::Noise | Find::Masks => {
            let has_masks = settings.masks.is_some_and(|masks| masks.mask_std() > 0.0);
            if scheme.noise_key().is_none() && has_masks {
                let allowed = others(builder, &base, view, find)?;
                let allowed = format!("{allowed} (masks are found together with their noise)");
                return Err(wrong("find", &allowed, find));
            }
            let (key, range) = match scheme.noise_key() {
                Some(NoiseKey { key, range, .. }) => (format!("uplink.{key}"), range),
                None => (LOCAL_NOISE.to_owned(), MAX_NOISE.recip()..=MAX_NOISE),
            };
            let (from, to) = (range.start().max(MAX_NOISE.recip()), range.end().min(MAX_NOISE));
            Search { key, from, to, whole: false }
        }
    };
    // The searched key changes neither the clients' data nor their training.
    let protected = protected(settings)?;
    let at = |value: f64| -> Result<ExperimentAccount, SimError> {
        ExperimentAccount::of(&search.set(builder, value)?.build()?, protected.clone())
    };
    let base = || ExperimentAccount::of(&base, protected.clone());
    let meets = |value: f64| -> Result<bool, SimError> {
        let spent = at(value)?.epsilon(view)?;
        Ok(spent.is_some_and(|spent| spent <= epsilon))
    };
    let found = match find {
        Find::Rounds => {
            let account = base()?.account;
            let rounds = account.most_rounds(view, epsilon, MAX_ROUNDS as u64)?;
            (rounds > 0).then_some(rounds as f64)
        }
        Find::Sequences if search.from > search.to => None,
        Find::Sequences | Find::Clip | Find::Noise | Find::Masks => search.run(meets)?,
    };
    let mut calibration = ExperimentCalibration {
        key: search.key.clone(),
        value: found,
        masks: None,
        sequences: None,
        gamma: None,
        view: view.name(),
        epsilon: None,
        epsilon_asked: epsilon,
        report: None,
        reason: None,
        fragment: None,
        file: None,
    };
    let Some(value) = found else {
        let (least, most) = (search.from.min(search.to), search.from.max(search.to));
        let (least, most) = (search.number(least), search.number(most));
        let mut reason =
            format!("no {} between {least} and {most} has ε ≤ {epsilon} in the {view} view", search.key);
        match base()?.report()?.views.get(view) {
            None => reason.push_str(": the view is not applicable to this scheme"),
            Some(Statement { epsilon: None, reason: Some(why), .. }) => reason.push_str(&format!(": {why}")),
            Some(_)
                if find == Find::Clip
                    && at(search.from)?.epsilon(view)? == at(search.to)?.epsilon(view)? =>
            {
                reason.push_str(": ε does not depend on it");
            }
            Some(_) => {}
        }
        return Ok(ExperimentCalibration { reason: Some(reason), ..calibration });
    };
    let account = at(value)?;
    let (file, fragment) =
        with_budget(search.set(builder, value)?, search.fragment(value), &account, epsilon)?;
    calibration.epsilon = account.epsilon(view)?;
    calibration.fragment = Some(fragment);
    calibration.file = Some(file.without_unused()?.to_toml());
    let report = account.report()?;
    (calibration.sequences, calibration.gamma) = (report.sequences, report.gamma);
    let (uplink, rounds, delta) = (report.uplink, report.rounds, report.delta);
    calibration.report = Some(ExperimentViews {
        uplink,
        rounds,
        delta,
        views: report.views,
        adversaries: report.adversaries,
        notes: report.notes,
    });
    Ok(calibration)
}

/// What can be found for an experiment instead of what was asked for, in words.
pub(super) fn others(
    builder: &ExperimentBuilder,
    experiment: &Experiment,
    view: View,
    asked: Find,
) -> Result<String, SimError> {
    let settings = experiment.settings();
    let with_masks = |mask_std: f64| -> Result<bool, SimError> {
        let masked = builder.clone().set_to("masks.mask_std", mask_std)?.set_to(LOCAL_NOISE, 1.0)?;
        Ok(masked.build().is_ok())
    };
    let at_clip = |clip: f64| -> Result<Option<f64>, SimError> {
        ExperimentAccount::new(&builder.clone().set_to("privacy.clip", clip)?.build()?)?.epsilon(view)
    };
    let mut finds = Vec::new();
    if let Some(clip) = settings.privacy.clip
        && at_clip(clip)? != at_clip(clip / 2.0)?
    {
        finds.push(Find::Clip);
    }
    finds.push(Find::Rounds);
    if settings.uplink.scheme.sequences().is_some() {
        finds.push(Find::Sequences);
    }
    if settings.uplink.scheme.noise_key().is_some() || with_masks(0.0)? {
        finds.push(Find::Noise);
    }
    if with_masks(1.0)? {
        finds.push(Find::Masks);
    }
    let names: Vec<&str> = finds.into_iter().filter(|find| *find != asked).map(|find| find.name()).collect();
    Ok(match names.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => names.concat(),
    })
}

/// The found experiment with a budget that lets it do all of its rounds, and its fragment: a lower `privacy.budget` becomes the `ε`
/// that was asked for. A budget that this `ε` would not suffice for, in another view, stays.
pub(super) fn with_budget(
    builder: ExperimentBuilder,
    mut fragment: String,
    account: &ExperimentAccount,
    epsilon: f64,
) -> Result<(ExperimentBuilder, String), SimError> {
    let privacy = &account.experiment.settings().privacy;
    let Some(budget) = privacy.budget else { return Ok((builder, fragment)) };
    let spent = account.epsilon(privacy.view)?.unwrap_or(f64::INFINITY);
    if spent <= budget || spent > epsilon {
        return Ok((builder, fragment));
    }
    if !fragment.starts_with("[privacy]") {
        fragment.push_str("\n[privacy]\n");
    }
    fragment.push_str(&format!("budget = {epsilon:?}\n"));
    Ok((builder.set_to("privacy.budget", epsilon)?, fragment))
}

/// A key and its range, from the value with the largest `ε` (and the best accuracy) to the one with the smallest.
struct Search {
    key: String,
    from: f64,
    to: f64,
    whole: bool,
}

impl Search {
    fn set(&self, builder: &ExperimentBuilder, value: f64) -> Result<ExperimentBuilder, ExperimentError> {
        if self.whole {
            return builder.clone().set_to(&self.key, value as u64);
        }
        builder.clone().set_to(&self.key, value)
    }

    /// The value nearest to `from` that meets the target, up to a tolerance that is on the private side.
    fn run(&self, meets: impl Fn(f64) -> Result<bool, SimError>) -> Result<Option<f64>, SimError> {
        if meets(self.from)? {
            return Ok(Some(self.from));
        }
        if !meets(self.to)? {
            return Ok(None);
        }
        let (mut fails, mut holds) = (self.from, self.to);
        loop {
            let middle = if self.whole { ((fails + holds) / 2.0).floor() } else { (fails * holds).sqrt() };
            let is_close = match self.whole {
                true => (fails - holds).abs() <= 1.0,
                false => (fails / holds).ln().abs() <= TOLERANCE,
            };
            if is_close {
                let rounded = self.rounded(holds);
                return Ok(Some(if meets(rounded)? { rounded } else { holds }));
            }
            if meets(middle)? {
                holds = middle;
            } else {
                fails = middle;
            }
        }
    }

    /// A value with six digits, rounded to the private side and within the range.
    fn rounded(&self, value: f64) -> f64 {
        match (self.whole, self.to > self.from) {
            (true, _) => value,
            (false, true) => Rounding::Up.significant(value, 6).min(self.to),
            (false, false) => Rounding::Down.significant(value, 6).max(self.to),
        }
    }

    /// A bound of the range as text.
    fn number(&self, value: f64) -> String {
        if self.whole { format!("{value}") } else { format!("{value:e}") }
    }

    fn fragment(&self, value: f64) -> String {
        let number = if self.whole { format!("{value}") } else { format!("{value:?}") };
        match self.key.split_once('.') {
            None => format!("{} = {number}\n", self.key),
            Some((section, key)) => format!("[{section}]\n{key} = {number}\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder(assignments: &[&str]) -> ExperimentBuilder {
        let new = ExperimentBuilder::new().set("uplink.receiver", "paper").unwrap().rounds(1);
        assignments.iter().fold(new, |builder, assignment| builder.assign(assignment).unwrap())
    }

    #[test]
    fn channels_without_noise_hide_nothing() {
        for family in ["walsh", "gaussian"] {
            for receiver in ["paper", "clipped=1"] {
                let family = format!("uplink.family={family}");
                let receiver = format!("uplink.receiver={receiver}");
                let experiment = builder(&["uplink.snr_db=inf", "uplink.sequences=24", &family, &receiver])
                    .build()
                    .unwrap();
                let report = ExperimentAccount::new(&experiment).unwrap().report().unwrap();
                for view in View::RIGOROUS {
                    let statement = report.views.get(view).unwrap();
                    assert_eq!(
                        (statement.epsilon, statement.guarantee),
                        (None, false),
                        "{view} {family} {receiver}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_search_begins_where_an_experiment_can() {
        let find = |assignments: &[&str], find| {
            calibrate_experiment(&builder(assignments), 20.0, View::Idealised, find).unwrap()
        };
        let plain = find(&["uplink.length=64", "uplink.receiver=clipped=1"], Find::Sequences);
        let found = plain.sequences.unwrap();
        let few = find(
            &["uplink.length=64", "uplink.receiver=clipped=1", "clients.total=30", "clients.per_round=30"],
            Find::Sequences,
        );
        assert_eq!(few.gamma, plain.gamma, "the default of 25 sequences is too few for 30 clients");
        let foreign = find(
            &["uplink.length=64", "uplink.receiver=clipped=1", "privacy.foreign_pilots=2"],
            Find::Sequences,
        );
        assert_eq!(foreign.sequences, Some(found + 2));
        let rounds = find(&["uplink.receiver=clipped=1"], Find::Rounds);
        assert!(rounds.epsilon.unwrap() <= 20.0 && rounds.value.unwrap() >= 1.0);
    }

    #[test]
    fn lower_budgets_become_the_epsilon_asked_for() {
        let receiver = "uplink.receiver=clipped=1";
        let find = |assignments: &[&str], view| {
            let builder = builder(assignments).assign(receiver).unwrap();
            calibrate_experiment(&builder, 20.0, view, Find::Clip).unwrap()
        };
        let view = View::Idealised;
        let found = find(&["privacy.budget=8", "privacy.view=idealised"], view);
        assert!(found.fragment.unwrap().ends_with("\nbudget = 20.0\n"));
        assert!(found.file.unwrap().contains("\nbudget = 20.0\n"));
        for enough in [&["privacy.budget=30", "privacy.view=idealised"][..], &[]] {
            assert!(!find(enough, view).fragment.unwrap().contains("budget"), "{enough:?}");
        }
        // 20 in the idealised view is more in the quoted one: its budget stays.
        let other = find(&["privacy.budget=8"], view);
        assert!(other.file.unwrap().contains("\nbudget = 8\n"));
    }

    #[test]
    fn ranges_of_integers_are_integers() {
        let found = calibrate_experiment(&builder(&[]), 1e-9, View::Idealised, Find::Rounds).unwrap();
        assert!(found.reason.unwrap().starts_with("no rounds between 1 and 1000000 has ε ≤ "));
    }

    #[test]
    fn what_cannot_be_met_says_why() {
        let why = |assignments: &[&str], view| {
            let found = calibrate_experiment(&builder(assignments), 8.0, view, Find::Noise).unwrap();
            assert_eq!((found.value, found.epsilon), (None, None));
            found.reason.unwrap()
        };
        let gaussian = "uplink.scheme=gaussian";
        assert!(why(&[gaussian], View::Idealised).ends_with(": the view is not applicable to this scheme"));
        assert!(why(&[gaussian, "privacy.clip=none"], View::Actual).contains("privacy.clip is \"none\""));
    }
}
