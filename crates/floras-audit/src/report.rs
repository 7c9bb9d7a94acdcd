//! Audit results: named numbers, written as `audit.json`. They suffice to draw the report.

use floras_core::View;
use floras_privacy::{Statement, Views};
use serde::{Deserialize, Serialize};

use super::Attacks;
use super::presentation::Section;
use super::views::{self, AuditedViews};

/// The results of `floras audit`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct AuditReport {
    /// Version of the program that ran the audit.
    pub version: String,
    /// The experiment's name.
    pub name: String,
    /// The command that ran the audit; `None` if no program recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Seed of all randomness.
    pub seed: u64,
    /// Number `d` of model parameters.
    pub parameters: usize,
    /// Rounds that the statements cover.
    pub rounds: u32,
    /// Privacy parameter `δ` at which all `ε` of the audit hold, between 0 and 1.
    pub delta: f64,
    /// Joint confidence of all lower bounds of `views`.
    pub confidence: f64,
    /// The relevant settings, in words.
    pub settings: Vec<(String, String)>,
    /// Claims and measurements per adversary.
    pub views: AuditedViews,
    /// Results of all attacks.
    pub attacks: Attacks,
    /// Restrictions of the audit and differences between measured and stated `ε`, one sentence each.
    pub notes: Vec<String>,
}

/// Both verdicts of a row; `None` without a claim, and where a number without guarantee is exceeded.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Verdicts {
    /// The verdict on the `ε` of the paper's formula.
    pub published: Option<AuditVerdict>,
    /// The verdict on the `ε` of the accounting.
    pub rigorous: Option<AuditVerdict>,
}

/// The verdict of a lower bound on a claim.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditVerdict {
    /// The lower bound does not exceed the claim. That does not prove the claim.
    Consistent,
    /// The lower bound exceeds the claim.
    Violated,
}

/// The claims that a row is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Claims {
    pub(super) published: Option<f64>,
    pub(super) rigorous: Option<f64>,
    pub(super) is_guarantee: bool,
}

impl Claims {
    /// The claims of a view: the paper's number and the view's statement.
    pub(super) fn of(
        views: &Views,
        view: View,
        published: Option<f64>,
        rigorous: impl Fn(&Statement) -> Option<f64>,
    ) -> Self {
        let statement = views.get(view);
        let is_guarantee = statement.is_some_and(|statement| statement.guarantee);
        Self { published, rigorous: statement.and_then(rigorous), is_guarantee }
    }

    /// Both verdicts for a lower bound.
    pub(super) fn judge(self, lower_bound: f64) -> Verdicts {
        let on = |claim: Option<f64>| claim.map(|claim| AuditVerdict::on(claim, lower_bound));
        // Exceeding an estimate refutes nothing.
        let refutes = |verdict: &AuditVerdict| self.is_guarantee || *verdict == AuditVerdict::Consistent;
        Verdicts { published: on(self.published), rigorous: on(self.rigorous).filter(refutes) }
    }
}

impl AuditVerdict {
    /// The verdict on a claim, given a lower bound.
    pub fn on(claim: f64, lower_bound: f64) -> Self {
        if lower_bound > claim { Self::Violated } else { Self::Consistent }
    }

    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Consistent => "consistent",
            Self::Violated => "violated",
        }
    }
}

/// The counts behind a lower bound: how often the adversary answered "canary", in each world.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Measured {
    /// Games counted in each world; a third as many chose the threshold before.
    pub games: u64,
    /// True positives: "canary" in the world with the canary.
    pub right: u64,
    /// False positives: "canary" in the world without it.
    pub wrong: u64,
    /// The largest lower bound that this number of games can yield.
    pub ceiling: f64,
}

impl AuditReport {
    /// All results in display order: the table of adversaries, and each attack.
    pub fn sections(&self) -> Vec<Section<'_>> {
        std::iter::once(views::section(self)).chain(self.attacks.sections()).collect()
    }

    /// The same without curves and pictures.
    pub fn brief(&self) -> Self {
        Self { attacks: self.attacks.brief(), ..self.clone() }
    }
}
