//! What an audit finds: plain numbers with their names, written as `audit.json`. Whoever draws it needs nothing else.

use floras_core::View;
use floras_privacy::{Statement, Views};
use serde::{Deserialize, Serialize};

use super::Attacks;
use super::presentation::Section;
use super::views::{self, AuditedViews};

/// What `floras audit` leaves behind.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct AuditReport {
    /// Version of the program.
    pub version: String,
    /// The experiment's name.
    pub name: String,
    /// Where all randomness comes from.
    pub seed: u64,
    /// `d`, parameters of the model.
    pub parameters: usize,
    /// The rounds that the statements are about.
    pub rounds: u32,
    /// `δ` of all statements.
    pub delta: f64,
    /// All lower bounds of `views` together hold with this probability.
    pub confidence: f64,
    /// The settings that decide, in words.
    pub settings: Vec<(String, String)>,
    /// What is claimed, and what was measured, for each adversary.
    pub views: AuditedViews,
    /// What each attack came to.
    pub attacks: Attacks,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// Both verdicts of a row; `None` where nothing is claimed, and where a number that is no guarantee is exceeded.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Verdicts {
    /// On the paper's `ε`.
    pub published: Option<AuditVerdict>,
    /// On the accounting's `ε`.
    pub rigorous: Option<AuditVerdict>,
}

/// What a lower bound says about a claim.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditVerdict {
    /// The lower bound does not exceed the claim. That is no proof of the claim.
    Consistent,
    /// The lower bound exceeds the claim.
    Violated,
}

/// What a row is held against.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Claims {
    pub(super) published: Option<f64>,
    pub(super) rigorous: Option<f64>,
    pub(super) is_guarantee: bool,
}

impl Claims {
    /// On a view, with this number of the paper and this one of the view's statement.
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

    /// Both verdicts on a lower bound.
    pub(super) fn judge(self, lower_bound: f64) -> Verdicts {
        let on = |claim: Option<f64>| claim.map(|claim| AuditVerdict::on(claim, lower_bound));
        // Exceeding an estimate refutes nothing.
        let refutes = |verdict: &AuditVerdict| self.is_guarantee || *verdict == AuditVerdict::Consistent;
        Verdicts { published: on(self.published), rigorous: on(self.rigorous).filter(refutes) }
    }
}

impl AuditVerdict {
    /// On a claim, given a lower bound.
    pub fn on(claim: f64, lower_bound: f64) -> Self {
        if lower_bound > claim { Self::Violated } else { Self::Consistent }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Consistent => "consistent",
            Self::Violated => "violated",
        }
    }
}

/// The counts behind a lower bound: how often the adversary said "the canary", in each world.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Measured {
    /// Games that were counted in each of the two worlds; a third as many came before them and chose the threshold.
    pub games: u64,
    /// How often the adversary was right in the one world,
    pub right: u64,
    /// and how often it said the same in the other, where it is wrong.
    pub wrong: u64,
    /// The largest lower bound that so many games can give.
    pub ceiling: f64,
}

impl AuditReport {
    /// Everything that was found, in the order in which it is shown: the table of adversaries, and each attack.
    pub fn sections(&self) -> Vec<Section<'_>> {
        std::iter::once(views::section(self)).chain(self.attacks.sections()).collect()
    }

    /// The same without curves and pictures.
    pub fn brief(&self) -> Self {
        Self { attacks: self.attacks.brief(), ..self.clone() }
    }
}
