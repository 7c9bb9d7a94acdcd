//! What a scheme needs to account for a round, and the two kinds of sources: constants and estimates.

use floras_core::random::{Domain, TrialId};
use floras_core::{Clipping, Neighbours, View};
use floras_phy::{Round, Uplink, UplinkError};
use floras_privacy::{Account, MuDistribution, PrivacyError, PrivacyUnit, Sampling, Source, Values};

use crate::error::SimError;
use crate::experiment::{ClientSettings, PrivacySettings, Radio, Settings};

/// Draws of a client's channel that make an estimate.
const DRAWS: u32 = 20_000;
/// Estimated values of `μ` that differ by less, relatively, count as the largest of them.
const CLOSE: f64 = 0.005;

/// What a scheme's account may depend on: the settings, and rounds that can be drawn. Updates are clipped.
#[derive(Clone, Copy)]
pub struct AccountContext<'a> {
    pub(super) settings: &'a Settings,
    pub(super) unit: PrivacyUnit,
    pub(super) uplink: &'a dyn Uplink,
    /// The clients of a trial's round, counted from 1.
    pub(super) select: &'a dyn Fn(TrialId, u32) -> Vec<u32>,
}

impl AccountContext<'_> {
    /// `K` and `M`.
    pub fn clients(&self) -> ClientSettings {
        self.settings.clients
    }

    /// The section `[privacy]`.
    pub fn privacy(&self) -> PrivacySettings {
        self.settings.privacy
    }

    /// What the statements protect, with the numbers of the smallest client.
    pub fn unit(&self) -> PrivacyUnit {
        self.unit
    }

    /// The radio.
    pub fn radio(&self) -> &Radio {
        &self.settings.uplink.radio
    }

    /// The seed of the experiment.
    pub fn seed(&self) -> u64 {
        self.settings.seed
    }

    /// `Δ`, how far one client can move the sum of the updates: `2C`, or `(K+1)·C` under the paper's normalisation.
    pub fn sensitivity(&self) -> f64 {
        sensitivity(self.settings).unwrap_or(f64::INFINITY)
    }

    /// The probability that a client's, or an item's, data enter a round.
    pub(super) fn sampling(&self) -> Sampling {
        let ClientSettings { total, per_round, .. } = self.settings.clients;
        self.unit.sampling(per_round.into(), total.into(), Neighbours::ReplaceOne)
    }

    /// An account without any view.
    pub fn account(&self) -> Result<Account, PrivacyError> {
        Account::new(self.sampling(), self.settings.privacy.delta)
    }

    /// An account that says in every rigorous view why there is no guarantee.
    pub fn without_guarantee(&self, reason: &str) -> Result<Account, SimError> {
        let mut account = self.account()?;
        for view in View::RIGOROUS {
            account.set(view, Source::Nothing(reason.to_owned()));
        }
        Ok(account)
    }

    /// The same `μ` in every round: a bound that does not depend on the channels.
    pub fn constant(&self, mu: f64) -> Source {
        self.caveat(Source::of(MuDistribution::Constant(mu)))
    }

    /// `μ = Δ·|g|/ν` estimated from drawn rounds. This is no bound, and the statement says so.
    pub fn estimate(&self) -> Result<Source, SimError> {
        let sensitivity = self.sensitivity();
        self.estimate_by(&mut |round| Ok(self.uplink.realise(round)?.mu(sensitivity)))
    }

    /// The distribution of `μ` estimated from drawn rounds, of which `values` returns one value for each client.
    pub fn estimate_by(
        &self,
        values: &mut dyn FnMut(&Round<'_>) -> Result<Vec<f64>, UplinkError>,
    ) -> Result<Source, SimError> {
        let mut all = Vec::new();
        self.draw_rounds(|round| {
            all.extend(values(round)?);
            Ok(())
        })?;
        let draws = all.len();
        let Some(values) = grouped(all) else {
            return Ok(Source::Nothing("there are rounds without noise".to_owned()));
        };
        let words = format!(
            "it is an estimate from {draws} drawn channels, an average over clients and rounds, and not a bound"
        );
        Ok(self.caveat(Source::of(MuDistribution::Values(values))).with_caveat(&words))
    }

    fn caveat(&self, source: Source) -> Source {
        match self.settings.privacy.normalise {
            Clipping::Each => source,
            Clipping::Paper => source.with_caveat(floras_privacy::NORMALISED),
        }
    }

    /// Draws rounds: those of the experiment under a trace, which holds no others, and fresh ones otherwise.
    fn draw_rounds(
        &self,
        mut see: impl FnMut(&Round<'_>) -> Result<(), UplinkError>,
    ) -> Result<(), SimError> {
        let settings = self.settings;
        let rounds = (DRAWS / settings.clients.per_round).clamp(20, DRAWS);
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
            see(&Round::new(settings.seed, trial, number, &clients)?)?;
        }
        Ok(())
    }
}

/// Values that lie close together become the largest of them; `None` if some are infinite.
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

/// `Δ`, if anything bounds an update.
pub(super) fn sensitivity(settings: &Settings) -> Option<f64> {
    let clip = settings.privacy.clip?;
    Some(match settings.privacy.normalise {
        Clipping::Each => 2.0 * clip,
        Clipping::Paper => (f64::from(settings.clients.per_round) + 1.0) * clip,
    })
}
