//! Curves and loss distributions of a described federation, and groups of its clients.

use std::collections::BTreeMap;

use floras_core::{View, named_choice};
use floras_privacy::mixed::Mixed;
use floras_privacy::{
    Account, DeltaCurve, GroupEpsilon, JointLoss, LossFile, LossFileError, MAX_GROUP, ORDERS, RenyiCurve,
    Setting, TradeOff, group_epsilon, group_epsilon_of,
};
use serde::Serialize;

use super::{Inquiry, wrong};
use crate::error::SimError;
use crate::experiment::ExperimentError;

/// Points of a curve, unless they are given.
const POINTS: usize = 41;

fn needs_radio(setting: &Setting, view: View) -> bool {
    let has_bound = setting.channel.is_some() || setting.masks.is_some();
    matches!(view, View::Actual | View::RawSignal) && !has_bound
}

/// A curve that describes the privacy of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveKind {
    /// The privacy profile `δ(ε)`.
    Delta,
    /// The trade-off function: the smallest type II error by type I error.
    TradeOff,
    /// The Rényi divergence by order.
    Renyi,
}

named_choice!(
    CurveKind,
    "curve",
    [Delta => "delta", "δ(ε)"],
    [TradeOff => "tradeoff", "trade-off function"],
    [Renyi => "renyi", "Rényi divergence by order"],
);

impl CurveKind {
    /// The names of the two coordinates of a point.
    pub fn columns(self) -> [&'static str; 2] {
        match self {
            Self::Delta => ["epsilon", "delta"],
            Self::TradeOff => ["type_one_error", "type_two_error"],
            Self::Renyi => ["order", "epsilon"],
        }
    }
}

/// A curve of one view.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurveReport {
    /// `delta`, `tradeoff` or `renyi`.
    pub kind: &'static str,
    /// The view's name.
    pub view: &'static str,
    /// Whether it is a guarantee.
    pub guarantee: bool,
    /// The names of the two coordinates of a point.
    pub columns: [&'static str; 2],
    /// The points. An infinite number is `null` in JSON.
    pub points: Vec<[f64; 2]>,
    /// Maximum probability of the event outside of which a Rényi curve holds; `None` for other curves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<f64>,
}

/// `ε` of a group of clients.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupReport {
    /// Number of clients `k` in the group, from 1 to 10⁶.
    pub size: u64,
    /// `ε` by view; `None` if there is no finite one.
    pub views: BTreeMap<String, Option<GroupEpsilon>>,
}

/// Several trainings together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JointReport {
    /// An upper bound on the `ε` of all of them; `None` if there is no finite one.
    pub epsilon: Option<f64>,
    /// Privacy parameter `δ` of `epsilon`.
    pub delta: f64,
    /// Total number of rounds of all trainings.
    pub rounds: u64,
    /// Whether every training's number is a guarantee.
    pub guarantee: bool,
    /// `replace-one` or `add-remove`.
    pub neighbours: String,
    /// `client` or `item`.
    pub level: String,
    /// The views of the trainings.
    pub views: Vec<String>,
    /// The assumptions of the trainings, each listed once.
    pub assumptions: Vec<String>,
    /// Why there is no `ε`.
    pub reason: Option<String>,
}

impl Inquiry {
    /// A curve of a view, or of all views that have one, at some `ε`, type I errors or orders; at default points if absent.
    pub fn curves(
        &self,
        sequences: u64,
        kind: CurveKind,
        view: Option<View>,
        at: Option<&[f64]>,
    ) -> Result<Vec<CurveReport>, SimError> {
        let account = Account::of(&self.accountable(sequences)?)?;
        curves_of(&account, self.rounds.unwrap_or(1), kind, view, at)
    }

    /// The loss distribution of one round of a view.
    pub fn losses(&self, sequences: u64, view: View) -> Result<LossFile, SimError> {
        let account = Account::of(&self.accountable(sequences)?)?;
        losses_of(&account, self.rounds.unwrap_or(1), view, self.level.name(), self.neighbours.name())
    }

    /// `ε` of up to `size` clients together, in a view or in all of them.
    pub fn group(&self, sequences: u64, size: u64, view: Option<View>) -> Result<GroupReport, SimError> {
        let setting = self.accountable(sequences)?;
        let rounds = self.rounds.unwrap_or(1);
        check_group(size)?;
        let views = match view {
            Some(view) => {
                self.require_view(sequences, view)?;
                vec![view]
            }
            None => View::RIGOROUS.into_iter().filter(|&view| !needs_radio(&setting, view)).collect(),
        };
        let of_view = |view: View| {
            let epsilon = group_epsilon(&setting, view, rounds, size)?;
            Ok((view.field(), epsilon))
        };
        Ok(GroupReport { size, views: views.into_iter().map(of_view).collect::<Result<_, SimError>>()? })
    }

    /// Fails for a view that needs the radio, if none is described.
    pub fn require_view(&self, sequences: u64, view: View) -> Result<(), SimError> {
        if needs_radio(&self.accountable(sequences)?, view) {
            let allowed = "published, idealised or any-channel, unless length and snr_db are given";
            return Err(wrong("view", allowed, view));
        }
        Ok(())
    }
}

fn check_group(size: u64) -> Result<(), SimError> {
    if (1..=MAX_GROUP).contains(&size) { Ok(()) } else { Err(wrong("group", "between 1 and 1e6", size)) }
}

/// The generic bound of up to `size` clients together, in a view or in all views with a statement.
pub(super) fn group_of(
    account: &Account,
    rounds: u64,
    size: u64,
    view: Option<View>,
) -> Result<GroupReport, SimError> {
    check_group(size)?;
    let mut views = BTreeMap::new();
    for candidate in view.map_or(View::RIGOROUS.to_vec(), |view| vec![view]) {
        if account.statement(candidate, rounds)?.is_some() {
            views.insert(candidate.field(), group_epsilon_of(account, candidate, rounds, size)?);
        } else if view.is_some() {
            return Err(wrong("view", "one that applies to the scheme", candidate));
        }
    }
    Ok(GroupReport { size, views })
}

/// A curve of a view of `rounds` rounds, or of all views that have one.
pub(super) fn curves_of(
    account: &Account,
    rounds: u64,
    kind: CurveKind,
    view: Option<View>,
    at: Option<&[f64]>,
) -> Result<Vec<CurveReport>, SimError> {
    check_points(kind, at.unwrap_or_default())?;
    let mixed = Mixed::new(&[(account, rounds)])?;
    let views = view.map_or(View::RIGOROUS.to_vec(), |view| vec![view]);
    let mut reports = Vec::new();
    for candidate in views {
        match curve_of(&mixed, kind, candidate, at)? {
            Some(report) => reports.push(report),
            None if view.is_some() => return Err(no_curve(account, rounds, candidate)?),
            None => {}
        }
    }
    Ok(reports)
}

/// The loss distribution of one of `rounds` rounds in a view.
pub(super) fn losses_of(
    account: &Account,
    rounds: u64,
    view: View,
    level: &str,
    neighbours: &str,
) -> Result<LossFile, SimError> {
    match LossFile::of_view(&Mixed::new(&[(account, rounds)])?, view, level, neighbours)? {
        Some(losses) => Ok(losses),
        None => Err(no_curve(account, rounds, view)?),
    }
}

/// Why a view has no curve.
fn no_curve(account: &Account, rounds: u64, view: View) -> Result<SimError, SimError> {
    if view == View::Published {
        let value = "published, because the published formula has no curve";
        return Ok(wrong("view", "idealised, actual, any-channel or raw-signal", value));
    }
    let reason = match account.statement(view, rounds)? {
        None => "it needs the radio: length and snr_db".to_owned(),
        Some(statement) => statement.reason.unwrap_or_default(),
    };
    Ok(wrong("view", "one with a finite epsilon", format!("{view} ({reason})")))
}

/// Reads a loss distribution from JSON. Errors contain `name`, its source.
pub fn read_losses(name: &str, text: &str) -> Result<LossFile, SimError> {
    let refused = |why: String| SimError::from(ExperimentError::refused(name, &why));
    let losses: LossFile = serde_json::from_str(text).map_err(|error| refused(error.to_string()))?;
    losses.check().map_err(|error| refused(error.to_string()))?;
    Ok(losses)
}

/// The `ε` of several trainings together.
pub fn compose(files: &[LossFile], delta: f64) -> Result<JointReport, SimError> {
    let joint = JointLoss::new(files).map_err(|error| match error {
        LossFileError::Privacy(error) => SimError::Privacy(error),
        other => ExperimentError::refused("loss distribution", other.to_string()).into(),
    })?;
    let (epsilon, reason) = match joint.epsilon_upper(delta) {
        Ok(epsilon) => (Some(epsilon), None),
        Err(error) if error.is_no_guarantee() => (None, Some(error.to_string())),
        Err(error) => return Err(error.into()),
    };
    Ok(JointReport {
        guarantee: joint.guarantee() && epsilon.is_some(),
        epsilon,
        delta,
        rounds: joint.rounds(),
        neighbours: files[0].neighbours.clone(),
        level: files[0].level.clone(),
        views: files.iter().map(|file| file.view.clone()).collect(),
        assumptions: assumptions(files),
        reason,
    })
}

/// The assumptions of the trainings, each once.
fn assumptions(files: &[LossFile]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for assumption in files.iter().flat_map(|file| &file.assumptions) {
        if !all.contains(assumption) {
            all.push(assumption.clone());
        }
    }
    all
}

fn check_points(kind: CurveKind, at: &[f64]) -> Result<(), SimError> {
    let (name, allowed, range) = match kind {
        CurveKind::Delta => ("epsilon", "between 0 and 1e6", 0.0..=1e6),
        CurveKind::TradeOff => ("type_one_error", "between 0 and 1", 0.0..=1.0),
        // The order 1 itself is excluded.
        CurveKind::Renyi => ("order", "above 1 and at most 1e6", 1.0 + f64::EPSILON..=1e6),
    };
    at.iter().find(|x| !range.contains(*x)).map_or(Ok(()), |x| Err(wrong(name, allowed, x)))
}

fn curve_of(
    rounds: &Mixed<'_>,
    kind: CurveKind,
    view: View,
    at: Option<&[f64]>,
) -> Result<Option<CurveReport>, SimError> {
    let (points, event) = if kind == CurveKind::Renyi {
        let Some(curve) = RenyiCurve::new(rounds, view, at.unwrap_or(&ORDERS))? else { return Ok(None) };
        (curve.orders.into_iter().zip(curve.epsilons).collect(), Some(curve.event))
    } else {
        let Some(curve) = DeltaCurve::new(rounds, view)? else { return Ok(None) };
        let points: Vec<(f64, f64)> = if kind == CurveKind::Delta {
            let epsilons = at.map_or_else(|| curve.epsilons(POINTS), <[f64]>::to_vec);
            epsilons.into_iter().map(|epsilon| (epsilon, curve.delta(epsilon))).collect()
        } else {
            let trade_off = TradeOff::new(&curve);
            let errors = at.map_or_else(|| TradeOff::type_one_errors(POINTS), <[f64]>::to_vec);
            errors.into_iter().map(|error| (error, trade_off.type_two_error(error))).collect()
        };
        (points, None)
    };
    let guarantee = rounds.is_guarantee(view);
    Ok(Some(CurveReport {
        kind: kind.name(),
        view: view.name(),
        guarantee,
        columns: kind.columns(),
        points: points.into_iter().map(|(x, y): (f64, f64)| [x, y]).collect(),
        event,
    }))
}
