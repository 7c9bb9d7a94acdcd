//! The account of a described federation in every view.

use floras_core::{Masks, Receiver, View};
use floras_privacy::cauchy::{CauchyRound, MAX_DIMENSION};
use floras_privacy::{Account, Setting, Views};
use serde::Serialize;

use super::{CurveReport, GroupReport, Inquiry, PublishedRenyi, ReceiverChoice, notes, wrong};
use crate::error::{SimError, incomplete};

/// How private a federation is: what `floras account --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccountReport {
    /// Number of unused sequences, `γ = N − K`.
    pub gamma: u64,
    /// Number of rounds `T`.
    pub rounds: u64,
    /// Privacy parameter `δ` of all statements.
    pub delta: f64,
    /// `client` or `item`.
    pub level: &'static str,
    /// Clip norm `C` of an update.
    pub clip: f64,
    /// Number of sequences `N`.
    pub sequences: u64,
    /// Number of clients per round `K`.
    pub per_round: u64,
    /// Total number of clients `M`.
    pub clients: u64,
    /// The receiver's name.
    pub receiver: String,
    /// Masks and local noise, if clients add them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub masks: Option<Masks>,
    /// Number of real branches `B` of the receiver; left out if it is 1.
    #[serde(skip_serializing_if = "is_one")]
    pub branches: u32,
    /// The privacy statement of each view.
    pub views: Views,
    /// The exact `ε` of one round in `d` dimensions, if requested.
    pub one_round_in_d: Option<OneRound>,
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
    /// The setting that was accounted for.
    #[serde(skip)]
    pub setting: Setting,
}

/// One round of the paper's receiver at high SNR, exactly in `d` dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OneRound {
    /// Number of parameters `d`, from 1 to 10¹².
    pub dim: u64,
    /// `ε` at the account's `δ`.
    pub epsilon: f64,
    /// `ε` at `δ = 0`.
    pub pure_epsilon: f64,
}

fn is_one(branches: &u32) -> bool {
    *branches == 1
}

impl Inquiry {
    /// Accounts for the federation with `sequences` sequences; with `dim` parameters, also for one round exactly.
    pub fn account(&self, sequences: u64, dim: Option<u64>) -> Result<AccountReport, SimError> {
        let setting = self.accountable(sequences)?;
        let rounds = self.rounds.unwrap_or(1);
        let views = Account::of(&setting)?.views(rounds)?;
        Ok(AccountReport {
            gamma: setting.gamma(),
            rounds,
            delta: setting.delta,
            level: self.level.name(),
            clip: setting.clip,
            sequences: setting.sequences,
            per_round: setting.per_round,
            clients: setting.clients,
            receiver: setting.receiver.to_string(),
            masks: setting.masks,
            branches: setting.branches,
            notes: notes::of(&setting, &views, rounds),
            views,
            one_round_in_d: dim.map(|dim| one_round(&setting, dim)).transpose()?,
            published_renyi: None,
            group: None,
            curves: None,
            statement: None,
            setting,
        })
    }

    /// `ε` in a view after some numbers of rounds; `None` where there is no finite one.
    pub fn epsilon_curve(
        &self,
        sequences: u64,
        view: View,
        rounds: &[u64],
    ) -> Result<Vec<Option<f64>>, SimError> {
        let account = Account::of(&self.accountable(sequences)?)?;
        rounds.iter().map(|&rounds| Ok(account.epsilon(view, rounds)?)).collect()
    }

    /// `δ` in a view after all rounds, at some `ε`; `None` where there is no finite one.
    pub fn delta_curve(
        &self,
        sequences: u64,
        view: View,
        epsilons: &[f64],
    ) -> Result<Vec<Option<f64>>, SimError> {
        let account = Account::of(&self.accountable(sequences)?)?;
        let rounds = self.rounds.unwrap_or(1);
        epsilons.iter().map(|&epsilon| Ok(account.delta_at(view, rounds, epsilon)?)).collect()
    }

    /// The federation, if it can be accounted for. A length without an SNR only limits the sequences.
    pub(super) fn accountable(&self, sequences: u64) -> Result<Setting, SimError> {
        let ReceiverChoice::Given(receiver) = self.receiver else {
            return Err(wrong("receiver", "paper, mmse or clipped with a number", "clipped without one"));
        };
        self.setting(sequences, receiver)
    }
}

fn one_round(setting: &Setting, dim: u64) -> Result<OneRound, SimError> {
    if !(1..=MAX_DIMENSION).contains(&dim) {
        return Err(wrong("dim", "between 1 and 1e12", dim));
    }
    if setting.branches > 1 {
        let branches = setting.branches;
        return Err(incomplete(
            "dim",
            format!("can be given with one real branch only, and there are {branches}"),
        ));
    }
    if setting.receiver != Receiver::Paper || setting.gamma() == 0 {
        let requirement = "can be given only with the paper's receiver and at least one unused sequence";
        return Err(incomplete("dim", requirement));
    }
    let round = CauchyRound::new(setting.decoded_sensitivity() / 2.0, setting.gamma() as f64, dim)?;
    Ok(OneRound { dim, epsilon: round.epsilon(setting.delta)?, pure_epsilon: round.pure_epsilon() })
}
