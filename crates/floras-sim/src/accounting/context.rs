//! The input of a scheme's account, and the two kinds of sources: constants and estimates.

use floras_core::random::{Domain, TrialId};
use floras_core::{Clipping, Neighbours, TransmitPower, View};
use floras_phy::{Round, Uplink, UplinkError};
use floras_privacy::{Account, MuDistribution, PrivacyError, PrivacyUnit, Sampling, Source, Values};

use super::worst_client;
use crate::error::SimError;
use crate::experiment::{ClientSettings, PrivacySettings, Radio, Settings};

/// Number of channel draws of an estimate.
pub(super) const DRAWS: u32 = 20_000;
/// Maximum number of channel coefficients drawn for an estimate, if a client has several per round.
const MAX_COEFFICIENTS: u64 = 4_000_000;
/// Relative difference below which estimated values of `μ` are merged into the largest of them.
const CLOSE: f64 = 0.005;

/// What an account depends on besides the settings.
#[derive(Clone, Copy)]
pub(crate) enum Scope {
    /// A whole experiment, with the number of parameters if the blocks of its channel depend on it. Clients keep their positions
    /// during a trial.
    Experiment { parameters: Option<usize> },
    /// An uplink without training: the number of parameters and the positions of the clients are unknown.
    Uplink {
        /// Whether selected clients are silent.
        has_silent: bool,
    },
}

/// The input of [`Scheme::account`](crate::schemes::Scheme::account): the settings, and rounds that can be drawn. Updates are
/// clipped.
#[derive(Clone, Copy)]
pub struct AccountContext<'a> {
    pub(super) settings: &'a Settings,
    /// Total number of clients, including those whose selection does not count as secret.
    pub(super) population: u32,
    pub(super) unit: PrivacyUnit,
    pub(super) uplink: &'a dyn Uplink,
    pub(super) scope: Scope,
    /// Returns the clients that send in a round of a trial. Rounds are counted from 1.
    pub(super) select: &'a dyn Fn(TrialId, u32) -> Vec<u32>,
}

impl AccountContext<'_> {
    /// The numbers of clients `K` and `M`. With dropouts `M = K`, because the selection does not count as secret.
    pub fn clients(&self) -> &ClientSettings {
        &self.settings.clients
    }

    /// Clipping, `δ`, quoted view and budget of the experiment.
    pub fn privacy(&self) -> PrivacySettings {
        self.settings.privacy
    }

    /// Whether selected clients can be silent.
    pub fn has_silent(&self) -> bool {
        match self.scope {
            Scope::Experiment { .. } => !self.settings.clients.dropout.is_none(),
            Scope::Uplink { has_silent } => has_silent,
        }
    }

    /// Number of clients that may reveal their masks and noise: `masks.colluding`, or 0 without masks.
    pub fn colluding(&self) -> u32 {
        self.settings.masks.map_or(0, |masks| masks.colluding())
    }

    /// Whether clients add noise to their updates before they send them.
    pub fn adds_local_noise(&self) -> bool {
        self.settings.masks.is_some_and(|masks| masks.noise_std() > 0.0)
    }

    /// The unit that the statements protect. At the item level it has the batch and sample counts of the smallest client.
    pub fn unit(&self) -> PrivacyUnit {
        self.unit
    }

    /// The settings of the radio that all schemes share.
    pub fn radio(&self) -> &Radio {
        &self.settings.uplink.radio
    }

    /// The seed of the experiment.
    pub fn seed(&self) -> u64 {
        self.settings.seed
    }

    /// `Δ`, the largest change of the sum of the updates by one client: `2C`, or `(K+1)·C` under the paper's normalisation. It is
    /// infinite without a clip norm.
    pub fn sensitivity(&self) -> f64 {
        sensitivity(self.settings).unwrap_or(f64::INFINITY)
    }

    /// `β·Δ`, the sensitivity in units of a symbol of unit amplitude. `None` if it depends on an unknown number of parameters.
    pub fn sent_sensitivity(&self) -> Option<f64> {
        Some(self.sensitivity() * self.sent_scale()?)
    }

    /// `β`, the factor by which clients multiply their updates before sending. `None` if it depends on an unknown number of
    /// parameters.
    pub(crate) fn sent_scale(&self) -> Option<f64> {
        if self.settings.uplink.power() == TransmitPower::Unscaled {
            return Some(1.0);
        }
        let Scope::Experiment { parameters: Some(parameters) } = self.scope else { return None };
        self.settings.sent_scale(parameters)
    }

    /// The probability that a client's, or an item's, data enter a round. What a client sends from its memory depends on all of its
    /// items, whichever are in the batches of the round.
    pub(super) fn sampling(&self) -> Sampling {
        let ClientSettings { total, per_round, .. } = self.settings.clients;
        let has_memory = self.settings.uplink.scheme.reveals_participation();
        let unit = if has_memory { PrivacyUnit::Client } else { self.unit };
        let sampling = unit.sampling(per_round.into(), total.into(), Neighbours::ReplaceOne);
        // Sampling amplifies only if all clients' channels have one distribution: others show who takes part.
        let are_distinct = |radio: &Radio| radio.is_unequal() || radio.trace().is_some();
        match has_memory || self.settings.uplink.radio().is_some_and(are_distinct) {
            true if sampling != Sampling::Everyone => Sampling::Known(sampling.probability()),
            _ => sampling,
        }
    }

    /// An account without any view.
    pub fn account(&self) -> Result<Account, PrivacyError> {
        Account::new(self.sampling(), self.settings.privacy.delta)
    }

    /// An account without a guarantee in any rigorous view; each view states the reason.
    pub fn without_guarantee(&self, reason: &str) -> Result<Account, SimError> {
        let mut account = self.account()?;
        for view in View::RIGOROUS {
            account.set(view, Source::Nothing(reason.to_owned()));
        }
        Ok(account)
    }

    /// A source with the same `μ` in every round: a bound that does not depend on the channels.
    pub fn constant(&self, mu: f64) -> Source {
        self.caveat(Source::of(MuDistribution::Constant(mu)))
    }

    /// Estimates `μ = Δ·|g|/ν` from drawn rounds. The estimate is not a bound, and has a caveat that states it.
    pub fn estimate(&self) -> Result<Source, SimError> {
        let sensitivity = self.sensitivity();
        self.estimate_by(&mut |round| Ok(self.uplink.realise(round)?.mu(sensitivity)))
    }

    /// Estimates the distribution of `μ` from drawn rounds. `values` returns one value per client of a round.
    ///
    /// Clients of unequal mean power keep their gains during a trial. The estimate is then that of the client that leaks most.
    pub fn estimate_by(
        &self,
        values: &mut dyn FnMut(&Round<'_>) -> Result<Vec<f64>, UplinkError>,
    ) -> Result<Source, SimError> {
        if self.settings.masks.is_some() {
            // The bound of the masks is used instead.
            return Ok(Source::Nothing("no bound but that of the masks is known".to_owned()));
        }
        let radio = self.settings.uplink.radio();
        let is_unequal = radio.is_some_and(Radio::is_unequal);
        if let Scope::Uplink { .. } = self.scope
            && (is_unequal || self.settings.needs_parameters())
        {
            let reason = "an uplink on its own knows neither how many blocks of its channel a payload takes nor where its \
                          clients are";
            return Ok(Source::Nothing(reason.to_owned()));
        }
        if is_unequal {
            return worst_client::estimate(self, values);
        }
        let mut all = Vec::new();
        self.draw_rounds(|round| {
            all.extend(values(round)?);
            Ok(())
        })?;
        if all.is_empty() {
            return Ok(Source::Nothing("no client sends in any round that was drawn".to_owned()));
        }
        let words = format!(
            "it is an estimate from {} drawn channels, an average over clients and rounds, and not a bound",
            all.len()
        );
        Ok(self.estimated(all, &words))
    }

    /// An estimate from values of `μ`, with `words` as its caveat.
    pub(super) fn estimated(&self, values: Vec<f64>, words: &str) -> Source {
        let Some(values) = grouped(values) else {
            return Source::Nothing("there are rounds without noise".to_owned());
        };
        self.caveat(Source::of(MuDistribution::Values(values))).with_caveat(words)
    }

    /// Number of rounds to draw: `rounds`, or fewer but at least 20, so that about [`MAX_COEFFICIENTS`] coefficients are drawn.
    pub(super) fn affordable(&self, rounds: u32) -> u32 {
        let radio = self.radio();
        let (Some(coherence), Some(parameters)) = (radio.coherence, self.parameters()) else { return rounds };
        let in_round = parameters.div_ceil(coherence) as u64 * u64::from(self.settings.clients.per_round);
        rounds.min((MAX_COEFFICIENTS / in_round.max(1)) as u32).max(20)
    }

    /// A round of an estimate, with the number of parameters if its channel depends on it.
    pub(super) fn round<'c>(
        &self,
        trial: TrialId,
        number: u32,
        clients: &'c [u32],
    ) -> Result<Round<'c>, UplinkError> {
        let round = Round::new(self.settings.seed, trial, number, clients)?;
        Ok(self.parameters().map_or(round, |parameters| round.with_parameters(parameters)))
    }

    /// Number of parameters `d`, if the channel or the account depends on it and it is known. An uplink without training does not know
    /// it.
    pub fn parameters(&self) -> Option<usize> {
        match self.scope {
            Scope::Experiment { parameters } => parameters.filter(|_| self.settings.needs_parameters()),
            Scope::Uplink { .. } => None,
        }
    }

    /// Adds the caveat of the paper's normalisation to a source, if that normalisation is applied.
    pub(crate) fn caveat(&self, source: Source) -> Source {
        match self.settings.privacy.normalise {
            Clipping::Each => source,
            Clipping::Paper => source.with_caveat(floras_privacy::NORMALISED),
        }
    }

    /// Draws rounds. With a channel trace these are the rounds of the experiment, because the trace holds no others.
    fn draw_rounds(
        &self,
        mut visit: impl FnMut(&Round<'_>) -> Result<(), UplinkError>,
    ) -> Result<(), SimError> {
        let settings = self.settings;
        let rounds = self.affordable((DRAWS / settings.clients.per_round).clamp(20, DRAWS));
        let of_trace = settings.uplink.radio().is_some_and(|radio| radio.trace().is_some());
        let in_trial = if of_trace { settings.rounds } else { rounds };
        for number in 0..rounds {
            let trial = match of_trace {
                true if number / in_trial >= settings.trials => break,
                true => TrialId::from((number / in_trial) as u16),
                false => Domain::Estimate.trial(0),
            };
            let number = number % in_trial + 1;
            let clients = (self.select)(trial, number);
            if !clients.is_empty() {
                visit(&self.round(trial, number, &clients)?)?;
            }
        }
        Ok(())
    }
}

/// Merges values that are close to each other into the largest of them; `None` if some are infinite.
fn grouped(mut values: Vec<f64>) -> Option<Values> {
    values.sort_by(|a, b| b.total_cmp(a));
    let mut groups: Vec<(f64, f64)> = Vec::new();
    for value in values {
        match groups.last_mut() {
            Some((largest, count)) if value >= *largest * (1.0 - CLOSE) => *count += 1.0,
            _ => groups.push((value, 1.0)),
        }
    }
    groups.iter().all(|(mu, _)| mu.is_finite()).then(|| Values::new(groups))
}

/// Sensitivity `Δ` of the sum to one client: `2·C` with every update clipped to `C`, `(K+1)·C` with the paper's
/// normalisation; `None` if updates are not clipped.
pub(super) fn sensitivity(settings: &Settings) -> Option<f64> {
    let clip = settings.privacy.clip?;
    Some(match settings.privacy.normalise {
        Clipping::Each => 2.0 * clip,
        Clipping::Paper => (f64::from(settings.clients.per_round) + 1.0) * clip,
    })
}
