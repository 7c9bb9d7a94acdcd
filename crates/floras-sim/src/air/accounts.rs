//! The privacy accounts of an [`AirInterface`], one per cohort, and the statements from them.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use floras_core::random::TrialId;
use floras_core::{Rounding, View};
use floras_phy::EffectiveChannel;
use floras_privacy::{Account, Sampling};

use super::{AirInterface, Cohort, noise};
use crate::accounting::{self, Accounting, PrivacyReport, Protected, Scope};
use crate::error::SimError;
use crate::experiment::Settings;
use crate::federation::select;

/// Maximum number of accounts in the cache.
const MAX_ACCOUNTS: usize = 4096;

/// The account of rounds with one cohort.
pub(crate) struct RoundAccount {
    /// The account of the rigorous views, at a `δ` that is reduced for floating-point arithmetic.
    rigorous: Accounting,
    /// The account of the published view, at the `δ` of the settings; `None` if the scheme has no published formula.
    published: Option<Account>,
}

impl RoundAccount {
    /// `μ_k` of every client in a round with this channel.
    pub(super) fn mu(&self, channel: &EffectiveChannel) -> Vec<f64> {
        self.rigorous.mu(channel)
    }

    fn of(&self, view: View) -> &Account {
        match &self.published {
            Some(published) if view == View::Published => published,
            _ => self.rigorous.account(),
        }
    }
}

/// An account and the number of its rounds.
pub(super) type Kind = (Arc<RoundAccount>, u64);

/// The account of each kind in a view, with its number of rounds.
pub(super) fn accounts(kinds: &[Kind], view: View) -> Vec<(&Account, u64)> {
    kinds.iter().map(|(account, rounds)| (account.of(view), *rounds)).collect()
}

impl AirInterface {
    /// `ε` of one round with such a cohort, in every view that has one.
    pub fn spend(&self, cohort: Cohort) -> Result<BTreeMap<String, f64>, SimError> {
        let account = self.accounting(cohort)?;
        let mut spend = account.rigorous.one_rounds().clone();
        self.add_loss(&account, 1, &mut spend)?;
        Ok(spend)
    }

    /// The privacy report of `rounds` rounds with `per_round` clients each, whose noise is fit for release.
    pub fn report(&self, per_round: u32, rounds: u32) -> Result<PrivacyReport, SimError> {
        let cohort = Cohort::complete(per_round, self.clients.unwrap_or(per_round));
        let account = self.accounting(cohort)?;
        let settings = self.settings_for(cohort);
        let mut report = account.rigorous.report(&settings, rounds, None)?;
        report.delta = self.delta();
        let published = account.of(View::Published).statement(View::Published, rounds.max(1).into())?;
        report.views.set(View::Published, published);
        for view in View::ALL {
            if let Some(statement) = report.views.get_mut(view) {
                self.release.complete(view, statement, noise::always_unfit(&self.settings));
            }
        }
        for spent in &mut report.growth {
            self.add_loss(&account, spent.rounds, &mut spent.epsilon)?;
        }
        if let Some(note) = report.notes.iter_mut().find(|note| *note == accounting::SIMULATED) {
            *note = self.noise_note();
        }
        Ok(report)
    }

    fn noise_note(&self) -> String {
        if let Some(reason) = noise::always_unfit(&self.settings) {
            return reason.to_owned();
        }
        format!(
            "this holds for rounds without a seed, whose noise is fit for release; {} of every ε is for floating-point \
             arithmetic, for up to 2^40 released values",
            Rounding::Up.scientific(self.release.epsilon(), 1)
        )
    }

    /// Adds the loss of floating-point arithmetic to `ε` of ideal mechanisms, by view. The published `ε` is the formula's.
    fn add_loss(
        &self,
        account: &RoundAccount,
        rounds: u32,
        epsilons: &mut BTreeMap<String, f64>,
    ) -> Result<(), SimError> {
        for view in View::ALL {
            if let Some(epsilon) = epsilons.get_mut(&view.field()) {
                *epsilon = self.release.stated(view, *epsilon);
                if view == View::Published {
                    let published = account.of(view).epsilon(view, rounds.max(1).into())?;
                    *epsilon = published.unwrap_or(*epsilon);
                }
            }
        }
        Ok(())
    }

    /// The account of rounds with such a cohort. It assumes that whether a client answers does not depend on its data.
    pub(super) fn accounting(&self, cohort: Cohort) -> Result<Arc<RoundAccount>, SimError> {
        self.check_cohort(cohort)?;
        let accounts = || self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = accounts().get(&cohort) {
            return Ok(Arc::clone(known));
        }
        let settings = self.settings_for(cohort);
        let uplink = if cohort.answered == cohort.selected {
            self.uplink(settings.seed)?
        } else {
            settings.build_uplink(settings.seed)?.into()
        };
        let select = |trial: TrialId, round: u32| select(&settings, trial, round);
        let sampling = cohort.sampling();
        let scope = Scope::Uplink { has_silent: cohort.answered < cohort.selected };
        let rigorous = Accounting::sampled(&settings, uplink.as_ref(), scope, &select, sampling)?;
        let has_published = settings.uplink.scheme.sequences().is_some();
        let published = has_published.then(|| {
            let mut settings = settings.clone();
            settings.privacy.delta = self.delta();
            let protected = &Protected::CLIENT;
            let curves = Accounting::curves(&settings, protected, uplink.as_ref(), scope, &select)?;
            Ok::<_, SimError>(curves.with_sampling(sampling)?)
        });
        let made = Arc::new(RoundAccount { rigorous, published: published.transpose()? });
        let mut accounts = accounts();
        if accounts.len() >= MAX_ACCOUNTS {
            accounts.clear();
        }
        accounts.insert(cohort, Arc::clone(&made));
        Ok(made)
    }

    /// The settings for the account of a cohort.
    fn settings_for(&self, cohort: Cohort) -> Settings {
        let mut settings = self.settings.clone();
        let counted = match settings.uplink.scheme.sequences() {
            // A client that does not answer may have sent its pilot; its sequence counts as used: γ = N − selected.
            Some(_) => cohort.selected,
            // Masks are shared by all that were selected.
            None if settings.masks.is_some() => cohort.selected,
            None => cohort.answered,
        };
        settings.clients.per_round = counted;
        settings.clients.total = match cohort.sampling() {
            Sampling::Everyone => counted,
            _ => cohort.among,
        };
        settings.privacy.delta = self.release.inner_delta(self.delta());
        settings
    }
}
