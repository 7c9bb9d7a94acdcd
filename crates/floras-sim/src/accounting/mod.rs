//! The account of a federation: the privacy loss of its scheme in each view, over all rounds.

mod context;
pub(crate) mod notes;
mod protected;
mod report;
mod worst_client;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use floras_core::random::TrialId;
use floras_core::{Level, View};
use floras_phy::{EffectiveChannel, Uplink};
use floras_privacy::ledger::{self, Worst};
use floras_privacy::mixed::Mixed;
use floras_privacy::{Account, MaskBound, PrivacyError, Sampling, Statement, Views};

pub use context::AccountContext;
pub(crate) use context::Scope;
pub use notes::{SELECTION, SIMULATED};
pub(crate) use notes::{any_channel_assumes, masks_assume};
pub(crate) use protected::Protected;
pub use report::{PrivacyReport, Spent};

use crate::error::SimError;
use crate::experiment::Settings;
use crate::plotted;
use crate::schemes::{adversary_under, is_selection_secret};

/// Why an uplink on its own has no statement about symbols of unit power.
const UNKNOWN_POWER: &str =
    "an uplink on its own does not know the number of parameters, on which symbols of unit power depend";
/// Larger values of `μ` are recorded as this one, which is finite and gives no privacy.
const MAX_MU: f64 = 1e100;

/// The account of one federation.
pub(crate) struct Accounting {
    account: Account,
    protected: Protected,
    sensitivity: Option<f64>,
    /// `μ` of the masks, if some clients may reveal theirs. The channel's noise would then include noise that the adversary knows.
    with_colluders: Option<f64>,
    one_round: BTreeMap<String, f64>,
    /// The last report, cached for other runs with the same account.
    latest: Mutex<Option<PrivacyReport>>,
}

impl fmt::Debug for Accounting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accounting").field("one_round", &self.one_round).finish_non_exhaustive()
    }
}

impl Accounting {
    /// `select` returns the clients of a round of a trial. Rounds are counted from 1.
    pub(crate) fn new(
        settings: &Settings,
        protected: &Protected,
        uplink: &dyn Uplink,
        scope: Scope,
        select: &dyn Fn(TrialId, u32) -> Vec<u32>,
    ) -> Result<Self, SimError> {
        Self::with_curves(settings, protected, Self::curves(settings, protected, uplink, scope, select)?)
    }

    /// The account under a given sampling of the clients, instead of the uniform sampling of `K` of `M` clients. If the scheme or its radio
    /// shows who takes part, it does so here too.
    pub(crate) fn sampled(
        settings: &Settings,
        uplink: &dyn Uplink,
        scope: Scope,
        select: &dyn Fn(TrialId, u32) -> Vec<u32>,
        sampling: Sampling,
    ) -> Result<Self, SimError> {
        let protected = &Protected::CLIENT;
        let curves = Self::curves(settings, protected, uplink, scope, select)?;
        let is_seen = matches!(curves.sampling(), Sampling::Known(_)) && sampling != Sampling::Everyone;
        let sampling = if is_seen { Sampling::Known(sampling.probability()) } else { sampling };
        let account = curves.with_sampling(sampling)?;
        Self::with_curves(settings, protected, account)
    }

    fn with_curves(settings: &Settings, protected: &Protected, account: Account) -> Result<Self, SimError> {
        let one_round = ledger::of_one_round(&account)?;
        let (protected, sensitivity) = (protected.clone(), context::sensitivity(settings));
        let colluding = settings.masks.is_some_and(|masks| masks.colluding() > 0);
        let with_colluders = account.masks().filter(|_| colluding).map(MaskBound::mu);
        Ok(Self { account, protected, sensitivity, with_colluders, one_round, latest: Mutex::default() })
    }

    /// The privacy account of all views, without ledger and report.
    pub(crate) fn curves(
        settings: &Settings,
        protected: &Protected,
        uplink: &dyn Uplink,
        scope: Scope,
        select: &dyn Fn(TrialId, u32) -> Vec<u32>,
    ) -> Result<Account, SimError> {
        let population = settings.clients.total;
        let settings = &with_known_participants(settings);
        let context = AccountContext { settings, population, unit: protected.unit(), uplink, scope, select };
        let account = match settings.privacy.clip {
            None => context.without_guarantee("updates have no bounded norm: privacy.clip is \"none\"")?,
            Some(_) if context.sent_scale().is_none() => context.without_guarantee(UNKNOWN_POWER)?,
            Some(_) => settings.uplink.scheme.account(&context)?,
        };
        let mut account = account.with_sampling(context.sampling())?;
        if let Some(masks) = settings.masks {
            account.set_masks(MaskBound::new(
                masks,
                settings.clients.per_round.into(),
                context.sensitivity(),
            )?);
        }
        Ok(account)
    }

    /// Number of rounds that a budget of `epsilon` allows, at most `most`.
    pub(crate) fn affordable(&self, view: View, epsilon: f64, most: u32) -> Result<u32, PrivacyError> {
        Ok(self.account.most_rounds(view, epsilon, most.into())? as u32)
    }

    /// `ε` of one round in a view.
    pub(crate) fn one_round(&self, view: View) -> Option<f64> {
        self.one_round.get(&view.field()).copied()
    }

    /// `ε` of one round in every view that has one, by name.
    pub(crate) fn one_rounds(&self) -> &BTreeMap<String, f64> {
        &self.one_round
    }

    /// `μ_k = Δ·|g_k|/ν` of every client in a round with this channel; empty without a clip norm or without noise.
    pub(crate) fn mu(&self, channel: &EffectiveChannel) -> Vec<f64> {
        let (Some(sensitivity), true) = (self.sensitivity, channel.noise_std() > 0.0) else {
            return Vec::new();
        };
        if let Some(bound) = self.with_colluders {
            return channel.gains().iter().map(|&gain| if gain == 0.0 { 0.0 } else { bound }).collect();
        }
        // A block without noise has an infinite `μ`, which JSON cannot represent.
        channel.mu(sensitivity).into_iter().map(|mu| mu.min(MAX_MU)).collect()
    }

    /// The curves of all views.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// All statements about a number of rounds.
    pub(crate) fn views(&self, rounds: u32) -> Result<Views, PrivacyError> {
        self.account.views(rounds.max(1).into())
    }

    /// The report on a number of rounds.
    pub(crate) fn report(
        &self,
        settings: &Settings,
        rounds: u32,
        worst_client: Option<Worst>,
    ) -> Result<PrivacyReport, PrivacyError> {
        let latest = || self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let before = latest().clone().filter(|report| report.rounds == rounds);
        let report = before.map_or_else(|| self.make_report(settings, rounds), Ok)?;
        *latest() = Some(report.clone());
        Ok(PrivacyReport { worst_client, ..report })
    }

    fn make_report(&self, settings: &Settings, rounds: u32) -> Result<PrivacyReport, PrivacyError> {
        let views = statements(&self.account, settings, rounds.into())?;
        let sampling = self.account.sampling();
        let mut notes = notes::of(settings, &self.protected, &views, sampling, rounds.into());
        let level = self.protected.unit().level();
        if level == Level::Item && settings.privacy.clip.is_some() {
            notes.push(notes::LEDGER.to_owned());
        }
        if settings.privacy.clip.is_some() {
            notes.push(SIMULATED.to_owned());
        }
        let growth = self.growth(rounds.max(1), &views)?;
        let curves = plotted::curves(&Mixed::new(&[(&self.account, rounds.max(1).into())])?, &views)?;
        Ok(PrivacyReport {
            delta: settings.privacy.delta,
            rounds,
            level: level.to_string(),
            views,
            worst_client: None,
            notes,
            growth,
            curves,
        })
    }
}

/// The settings that an account takes. Dropouts can reveal which clients were selected, so rounds with dropouts are accounted for
/// as if all clients took part in every round: [`Cohort`](crate::Cohort).
fn with_known_participants(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    if !settings.clients.dropout.is_none() {
        settings.clients.total = settings.clients.per_round;
    }
    settings
}

/// Sets the scheme's own adversary of a view, who may or may not know who takes part. The adversary of masks is the same under
/// every scheme.
pub(crate) fn describe_adversary(
    statement: &mut Statement,
    settings: &Settings,
    view: View,
    is_selection_secret: bool,
) {
    let scheme = &settings.uplink.scheme;
    if statement.from_masks {
        return;
    }
    if let Some(adversary) = scheme.adversary(view) {
        statement.adversary = adversary_under(view, adversary, is_selection_secret);
    }
    statement.covers_raw_samples = view != View::RawSignal && scheme.has_raw_samples(view);
}

/// The statements about a number of rounds, each with the scheme's description of the adversary and the assumptions about dropouts
/// and weights.
pub(crate) fn statements(account: &Account, settings: &Settings, rounds: u64) -> Result<Views, PrivacyError> {
    let mut views = account.views(rounds.max(1))?;
    let clients = with_known_participants(settings).clients;
    let is_secret = is_selection_secret(clients.per_round, clients.total, account.sampling());
    for view in View::ALL {
        if let Some(statement) = views.get_mut(view) {
            describe_adversary(statement, settings, view, is_secret);
            let assumptions = [notes::dropout_assumption(settings), notes::weights_assumption(settings)];
            statement.assumptions.extend(assumptions.into_iter().flatten().map(str::to_owned));
        }
    }
    Ok(views)
}
