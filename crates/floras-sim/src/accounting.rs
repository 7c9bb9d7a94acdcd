//! The account of a federation: what the privacy side has to know of the radio, put into its words.
//!
//! | scheme | actual view | any channel | raw signal |
//! |---|---|---|---|
//! | `floras`, orthonormal sequences | the law of `μ` of the whole decoder | the worst channel | `Δ·|h|/s` |
//! | `floras`, Gaussian sequences | estimated from drawn rounds | none | `Δ·|h|·‖a‖/s`, estimated as well |
//! | `channel-inversion`, `phase-corrected` | estimated from drawn rounds | none | as the actual one: nothing is spread |
//! | `channel-inversion` with artificial noise `a` | estimated from drawn rounds | `Δ/a`, as the idealised one | the same |
//! | `gaussian` | `Δ/ν`, always | the same | none: the server is trusted |
//! | `ideal` | none: there is no noise | none | none |

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use floras_core::random::{Domain, TrialId};
use floras_core::{ChannelSource, Clipping, Family, Modulation, Neighbours, Receiver, Snr, View};
use floras_phy::{Round, Uplink, UplinkError};
use floras_privacy::ledger::{self, Ledger, Worst};
use floras_privacy::mixed::Mixed;
use floras_privacy::{
    Account, Coefficients, Law, PrivacyError, PrivacyUnit, Sampling, Setting, Source, Values, Views,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::SimError;
use crate::experiment::{Air, FlorasScheme, Scheme, Settings};
use crate::plotted::{self, PlottedCurves};

/// Who looks at central Gaussian noise.
const TRUSTED_SERVER: &str = "whoever sees the noisy sum; the server that adds the noise is trusted";
/// Who looks at the noise that clients add.
const HONEST_CLIENTS: &str = "a base station that may know every channel and keep its raw samples, if all clients add their share of the noise";

/// So many draws of a client's channel make an estimate.
const DRAWS: u32 = 20_000;

/// A view that spends more than this in one round promises nothing, and takes long to compose: it is not followed from round
/// to round, and only its first and its last number are told.
const MOST_FOLLOWED: f64 = 1e5;

/// What a run says about privacy: the content of `privacy` in `summary.json`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PrivacyReport {
    /// `δ` of all statements.
    pub delta: f64,
    /// The rounds that they are about: the most that a trial did.
    pub rounds: u32,
    /// Clients, and not items.
    pub level: String,
    /// The statements.
    pub views: Views,
    /// The client that gave away most under the channels that were drawn, of all trials.
    pub worst_client: Option<Worst>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// How `ε` grew: after some numbers of rounds, from the first to the last. Empty in files of older versions.
    #[serde(default)]
    pub growth: Vec<Spent>,
    /// `δ(ε)` and trade-off functions after all rounds. Empty in files of older versions.
    #[serde(default)]
    pub curves: Vec<PlottedCurves>,
}

/// `ε` after some rounds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Spent {
    /// So many rounds.
    pub rounds: u32,
    /// `ε` in every view that has one, by name.
    pub epsilon: BTreeMap<String, f64>,
}

/// The account of one federation.
pub(crate) struct Accounting {
    account: Account,
    sensitivity: Option<f64>,
    one_round: BTreeMap<String, f64>,
    /// The last report, which another run of the same account may ask for.
    told: Mutex<Option<PrivacyReport>>,
}

impl fmt::Debug for Accounting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accounting").field("one_round", &self.one_round).finish_non_exhaustive()
    }
}

impl Accounting {
    /// `select` returns the clients of a trial's round, counted from 1.
    pub(crate) fn new(
        settings: &Settings,
        uplink: &dyn Uplink,
        select: &dyn Fn(TrialId, u32) -> Vec<u32>,
    ) -> Result<Self, SimError> {
        Self::sampled(settings, uplink, select, sampling(settings))
    }

    /// The same for clients who are chosen otherwise than all who send are chosen from all there are.
    pub(crate) fn sampled(
        settings: &Settings,
        uplink: &dyn Uplink,
        select: &dyn Fn(TrialId, u32) -> Vec<u32>,
        sampling: Sampling,
    ) -> Result<Self, SimError> {
        let account = Self::curves(settings, uplink, select, sampling)?;
        let one_round = ledger::of_one_round(&account)?;
        Ok(Self { account, sensitivity: sensitivity(settings), one_round, told: Mutex::default() })
    }

    /// The curves alone.
    pub(crate) fn curves(
        settings: &Settings,
        uplink: &dyn Uplink,
        select: &dyn Fn(TrialId, u32) -> Vec<u32>,
        sampling: Sampling,
    ) -> Result<Account, SimError> {
        let account = account(settings, sensitivity(settings), &Draws { settings, uplink, select })?;
        Ok(account.with_sampling(sampling)?)
    }

    /// The rounds, up to `most`, that a budget allows.
    pub(crate) fn affordable(&self, view: View, epsilon: f64, most: u32) -> Result<u32, PrivacyError> {
        Ok(self.account.most_rounds(view, epsilon, most.into())? as u32)
    }

    /// `ε` of one round in a view.
    pub(crate) fn one_round(&self, view: View) -> Option<f64> {
        self.one_round.get(&key(view)).copied()
    }

    /// `ε` of one round in every view that has one, by name.
    pub(crate) fn one_rounds(&self) -> &BTreeMap<String, f64> {
        &self.one_round
    }

    /// `Δ`, if anything bounds an update.
    pub(crate) fn sensitivity(&self) -> Option<f64> {
        self.sensitivity
    }

    /// The curves of all views.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// All statements about so many rounds.
    pub(crate) fn views(&self, rounds: u32) -> Result<Views, PrivacyError> {
        self.account.views(rounds.max(1).into())
    }

    /// An empty ledger.
    pub(crate) fn ledger(&self, settings: &Settings) -> Result<Ledger, PrivacyError> {
        let clients = settings.clients.total;
        Ledger::new(clients, settings.privacy.delta, self.sensitivity, self.one_round.clone())
    }

    /// What is said about so many rounds.
    pub(crate) fn report(
        &self,
        settings: &Settings,
        rounds: u32,
        worst_client: Option<Worst>,
    ) -> Result<PrivacyReport, PrivacyError> {
        let told = || self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let before = told().clone().filter(|report| report.rounds == rounds);
        let report = before.map_or_else(|| self.tell(settings, rounds), Ok)?;
        *told() = Some(report.clone());
        Ok(PrivacyReport { worst_client, ..report })
    }

    fn tell(&self, settings: &Settings, rounds: u32) -> Result<PrivacyReport, PrivacyError> {
        let mut views = self.account.views(rounds.max(1).into())?;
        for view in View::ALL {
            if let (Some(statement), Some(adversary)) =
                (views.get_mut(view), adversary(&settings.uplink.scheme, view))
            {
                statement.adversary = adversary.to_owned();
            }
        }
        let notes = notes(settings, &views, self.account.sampling(), rounds.into());
        let level = "client".to_owned();
        let growth = self.growth(rounds.max(1), &views)?;
        let curves = plotted::curves(&Mixed::new(&[(&self.account, rounds.max(1).into())])?, &views)?;
        Ok(PrivacyReport {
            delta: settings.privacy.delta,
            rounds,
            level,
            views,
            worst_client: None,
            notes,
            growth,
            curves,
        })
    }

    /// `ε` in every view at rounds that lie evenly on a logarithmic axis. Both ends are known already.
    fn growth(&self, rounds: u32, last: &Views) -> Result<Vec<Spent>, PrivacyError> {
        // Whoever takes part by chance makes the composition slow, and its curve is no less smooth.
        let points = if self.account.sampling() == Sampling::Everyone { 8 } else { 5 };
        let mut growth = vec![Spent { rounds: 1, epsilon: self.one_round.clone() }];
        let between =
            log_spaced(rounds, points).into_iter().filter(|&between| between > 1 && between < rounds);
        let is_followed = |view: &View| self.one_round(*view).is_some_and(|first| first <= MOST_FOLLOWED);
        let followed: Vec<View> = last.iter().map(|(view, _)| view).filter(is_followed).collect();
        let wanted: Vec<(u32, View)> =
            between.flat_map(|rounds| followed.iter().map(move |&view| (rounds, view))).collect();
        let spent = |&(rounds, view): &(u32, View)| self.account.epsilon(view, rounds.into());
        let epsilons: Vec<Option<f64>> = wanted.par_iter().map(spent).collect::<Result<_, _>>()?;
        for (&(rounds, view), epsilon) in wanted.iter().zip(epsilons) {
            if growth.last().is_none_or(|last| last.rounds != rounds) {
                growth.push(Spent { rounds, epsilon: BTreeMap::new() });
            }
            if let (Some(spent), Some(epsilon)) = (growth.last_mut(), epsilon) {
                spent.epsilon.insert(key(view), epsilon);
            }
        }
        if rounds > 1 {
            let epsilon = last.iter().filter_map(|(view, statement)| Some((key(view), statement.epsilon?)));
            growth.push(Spent { rounds, epsilon: epsilon.collect() });
        }
        lower_by_later(&mut growth);
        Ok(growth)
    }
}

/// Who looks, where a scheme has its noise from elsewhere than a receiver.
pub(crate) fn adversary(scheme: &Scheme, view: View) -> Option<&'static str> {
    match (scheme, view) {
        (Scheme::Gaussian { .. }, View::Actual | View::AnyChannel) => Some(TRUSTED_SERVER),
        (scheme, View::Idealised | View::AnyChannel | View::RawSignal)
            if scheme.artificial_noise_std().is_some() =>
        {
            Some(HONEST_CLIENTS)
        }
        _ => None,
    }
}

/// A view's name in JSON.
pub(crate) fn key(view: View) -> String {
    view.field()
}

/// Fewer rounds give away no more than many, so that a bound for many holds for fewer, too. Far out, where an `ε` promises
/// nothing any more, single numbers of rounds can come out looser than that.
fn lower_by_later(growth: &mut [Spent]) {
    let mut least: BTreeMap<String, f64> = BTreeMap::new();
    for spent in growth.iter_mut().rev() {
        for (view, epsilon) in &mut spent.epsilon {
            let least = least.entry(view.clone()).or_insert(*epsilon);
            *least = least.min(*epsilon);
            *epsilon = *least;
        }
    }
}

/// Whole numbers from 1 to `last` whose logarithms lie evenly, each once.
fn log_spaced(last: u32, points: u32) -> Vec<u32> {
    let at = |point: u32| f64::from(last).powf(f64::from(point) / f64::from(points - 1)).round() as u32;
    let mut rounds: Vec<u32> = (0..points).map(at).collect();
    rounds.dedup();
    rounds
}

/// `Δ`, if anything bounds an update.
fn sensitivity(settings: &Settings) -> Option<f64> {
    let clip = settings.privacy.clip?;
    Some(match settings.privacy.normalise {
        Clipping::Each => 2.0 * clip,
        Clipping::Paper => (f64::from(settings.clients.per_round) + 1.0) * clip,
    })
}

fn account(settings: &Settings, sensitivity: Option<f64>, draws: &Draws<'_>) -> Result<Account, SimError> {
    let Some(sensitivity) = sensitivity else {
        return nothing(settings, "nothing bounds what a client sends: privacy.clip is \"none\"");
    };
    match &settings.uplink.scheme {
        Scheme::Floras(floras) => of_floras(settings, floras, sensitivity, draws),
        Scheme::Ideal => nothing(settings, "an ideal uplink has no noise, and hides nothing"),
        Scheme::Gaussian { noise_std } => {
            let law = || caveat(settings, Source::of(Law::Constant(sensitivity / noise_std)));
            let mut account = empty(settings)?;
            account.set(View::Actual, law());
            account.set(View::AnyChannel, law());
            Ok(account)
        }
        Scheme::ChannelInversion { .. } | Scheme::PhaseCorrected { .. } => {
            let mut account = empty(settings)?;
            let law = draws.law(sensitivity)?;
            account.set(View::Actual, estimated(settings, law.clone()));
            if let Some(noise_std) = settings.uplink.scheme.artificial_noise_std() {
                // The channel's noise comes on top, and those who are not admitted give nothing away. Nothing is spread, so
                // that raw samples show no more than the sum.
                for view in [View::Idealised, View::AnyChannel, View::RawSignal] {
                    account.set(view, caveat(settings, Source::of(Law::Constant(sensitivity / noise_std))));
                }
            } else {
                account.set(View::RawSignal, estimated(settings, law));
                let reason = "this scheme has no bound for every channel".to_owned();
                account.set(View::AnyChannel, Source::Nothing(reason));
            }
            Ok(account)
        }
    }
}

fn sampling(settings: &Settings) -> Sampling {
    let clients = settings.clients;
    if clients.per_round == clients.total {
        return Sampling::Everyone;
    }
    Sampling::ReplaceOne(f64::from(clients.per_round) / f64::from(clients.total))
}

fn empty(settings: &Settings) -> Result<Account, PrivacyError> {
    Account::new(sampling(settings), settings.privacy.delta)
}

fn nothing(settings: &Settings, reason: &str) -> Result<Account, SimError> {
    let mut account = empty(settings)?;
    for view in [View::Idealised, View::Actual, View::AnyChannel, View::RawSignal] {
        account.set(view, Source::Nothing(reason.to_owned()));
    }
    Ok(account)
}

fn of_floras(
    settings: &Settings,
    floras: &FlorasScheme,
    sensitivity: f64,
    draws: &Draws<'_>,
) -> Result<Account, SimError> {
    let snr = Snr::new(floras.air.snr_db, floras.air.snr_convention)?;
    let noise_std = snr.despread_noise_std(floras.air.length);
    let orthonormal = floras.family != Family::Gaussian;
    let channel = match floras.air.fading {
        ChannelSource::Fading(fading) if noise_std > 0.0 && orthonormal => {
            Some(Coefficients::of(fading, floras.modulation, noise_std)?)
        }
        ChannelSource::Fading(_) | ChannelSource::Trace(_) => None,
    };
    let setting = Setting {
        clip: settings.privacy.clip.unwrap_or_default(),
        sequences: floras.sequences as u64,
        per_round: settings.clients.per_round.into(),
        clients: settings.clients.total.into(),
        delta: settings.privacy.delta,
        unit: PrivacyUnit::Client,
        neighbours: Neighbours::ReplaceOne,
        clipping: settings.privacy.normalise,
        receiver: floras.receiver,
        channel,
        margins: settings.privacy.margins,
    };
    let mut account = Account::of(&setting)?;
    if noise_std == 0.0 {
        for view in [View::Actual, View::RawSignal] {
            account.set(view, Source::Nothing("the channel has no noise, and hides nothing".to_owned()));
        }
        return Ok(account);
    }
    if !orthonormal {
        let source = setting.source(View::Idealised)?;
        account.set(
            View::Idealised,
            source.with_caveat("sequences that overlap let clients disturb one another"),
        );
        let reason = "sequences that overlap have no bound for every channel".to_owned();
        account.set(View::AnyChannel, Source::Nothing(reason));
    }
    if setting.channel.is_none() {
        account.set(View::Actual, estimated(settings, draws.law(sensitivity)?));
        let raw = draws.raw_law(floras, noise_std, sensitivity)?;
        account.set(View::RawSignal, estimated(settings, raw));
    }
    Ok(account)
}

fn caveat(settings: &Settings, source: Source) -> Source {
    match settings.privacy.normalise {
        Clipping::Each => source,
        Clipping::Paper => source.with_caveat(floras_privacy::NORMALISED),
    }
}

fn estimated(settings: &Settings, estimate: Option<Estimated>) -> Source {
    match estimate {
        None => Source::Nothing("there are rounds without noise".to_owned()),
        Some(Estimated { law, draws }) => {
            let words = format!(
                "it is an estimate from {draws} drawn channels, an average over clients and rounds, and not a bound"
            );
            caveat(settings, Source::of(law)).with_caveat(&words)
        }
    }
}

/// A law that was estimated.
#[derive(Clone)]
struct Estimated {
    law: Law,
    draws: usize,
}

impl Estimated {
    /// Values that lie close together become the largest of them; `None` if some are infinite.
    fn of(mut values: Vec<f64>) -> Option<Self> {
        const CLOSE: f64 = 0.005;
        let draws = values.len();
        values.sort_by(|a, b| b.total_cmp(a));
        let mut groups: Vec<(f64, f64)> = Vec::new();
        for value in values {
            match groups.last_mut() {
                Some((largest, count)) if value >= *largest * (1.0 - CLOSE) => *count += 1.0,
                _ => groups.push((value, 1.0)),
            }
        }
        let all_finite = groups.iter().all(|(mu, _)| mu.is_finite());
        all_finite.then(|| Self { law: Law::Values(Values::new(groups)), draws })
    }
}

/// Rounds that are drawn for an estimate.
struct Draws<'a> {
    settings: &'a Settings,
    uplink: &'a dyn Uplink,
    select: &'a dyn Fn(TrialId, u32) -> Vec<u32>,
}

impl Draws<'_> {
    /// Hands over rounds: those of the experiment under a trace, which holds no others, and fresh ones otherwise.
    fn each(&self, mut see: impl FnMut(&Round<'_>) -> Result<(), UplinkError>) -> Result<(), SimError> {
        let rounds = (DRAWS / self.settings.clients.per_round).clamp(20, DRAWS);
        let is_trace = |air: &Air| matches!(air.fading, ChannelSource::Trace(_));
        let of_trace = self.settings.uplink.scheme.air().is_some_and(is_trace);
        let in_trial = if of_trace { self.settings.rounds } else { rounds };
        for number in 0..rounds {
            let trial = match of_trace {
                true if number / in_trial >= self.settings.trials => break,
                true => TrialId::from((number / in_trial) as u16),
                false => Domain::Estimate.trial(0),
            };
            let number = number % in_trial + 1;
            let clients = (self.select)(trial, number);
            see(&Round::new(self.settings.seed, trial, number, &clients)?)?;
        }
        Ok(())
    }

    /// The law of `μ = Δ·|g|/ν`; `None` if some rounds have no noise.
    fn law(&self, sensitivity: f64) -> Result<Option<Estimated>, SimError> {
        let mut values = Vec::new();
        self.each(|round| {
            let channel = self.uplink.realise(round)?;
            // Who is not heard gives nothing away, also in a round without any noise because nobody is heard.
            let mu = |&gain: &f64| {
                if gain == 0.0 { 0.0 } else { sensitivity * gain.abs() / channel.noise_std() }
            };
            values.extend(channel.gains().iter().map(mu));
            Ok(())
        })?;
        Ok(Estimated::of(values))
    }

    /// The law of `Δ·|h|·‖a‖/s`, with `a` the client's sequence: of unit norm, unless sequences overlap.
    fn raw_law(
        &self,
        floras: &FlorasScheme,
        noise_std: f64,
        sensitivity: f64,
    ) -> Result<Option<Estimated>, SimError> {
        let (fading, snr) = floras.air.channel()?;
        let uplink = floras.over(fading.clone(), snr, self.settings.seed)?;
        let norm = |sequence: usize| {
            let chips = uplink.settings().sequences.sequence(sequence).unwrap_or_default();
            chips.iter().map(|chip| chip * chip).sum::<f64>().sqrt()
        };
        let seen = |h: &floras_phy::Complex64| match floras.modulation {
            Modulation::Real => h.re.abs(),
            // Without the error of the correction: what a base station could see at most.
            Modulation::PhaseCorrected(_) => h.norm(),
        };
        let mut values = Vec::new();
        self.each(|round| {
            let norms: Vec<f64> = match floras.family {
                Family::Walsh | Family::Orthonormal => vec![1.0; round.clients().len()],
                Family::Gaussian => uplink.despread(round)?.assigned.into_iter().map(norm).collect(),
            };
            let channels = fading.draw(round)?.into_iter().zip(norms);
            values.extend(channels.map(|(h, norm)| sensitivity * seen(&h) * norm / noise_std));
            Ok(())
        })?;
        Ok(Estimated::of(values))
    }
}

/// What a reader should know about some statements.
fn notes(settings: &Settings, views: &Views, sampling: Sampling, rounds: u64) -> Vec<String> {
    let mut notes: Vec<String> =
        views.why_published_is_smaller(shown_receiver(settings)).into_iter().collect();
    notes.extend(any_channel_assumes(views));
    if sampling != Sampling::Everyone {
        notes.push(SELECTION.to_owned());
    }
    notes.extend(views.why_bounds_differ(sampling, rounds));
    if settings.privacy.clip.is_some() && settings.privacy.normalise == Clipping::Paper {
        notes.push(floras_privacy::NORMALISED.to_owned());
    }
    if settings.privacy.clip.is_some() {
        notes.push(SIMULATED.to_owned());
    }
    notes
}

/// What holds for the noise of every simulation.
pub const SIMULATED: &str = "the noise comes from the simulation's generator: ε describes the mechanism with ideal noise, and \
     this run's outputs are not fit for release";

fn shown_receiver(settings: &Settings) -> Receiver {
    match &settings.uplink.scheme {
        Scheme::Floras(floras) => floras.receiver,
        _ => Receiver::Paper,
    }
}

/// What the any-channel number assumes of the radio, where there is such a number.
pub(crate) fn any_channel_assumes(views: &Views) -> Option<String> {
    let statement = views.get(View::AnyChannel)?;
    let has_number = statement.epsilon.is_some() && !statement.assumptions.is_empty();
    has_number.then(|| format!("any-channel assumes: {}", statement.assumptions.join("; ")))
}

/// What sampling needs.
pub const SELECTION: &str = "K of M helps only against an adversary who does not know who takes part. `known` (in JSON \
     `participation_known`) is for one who does: a base station that selects the clients, or anyone who tells them apart by \
     their channels, so that the any-channel number is always this one. `every round` (`in_every_round`) is the same for a \
     client that takes part in every round";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_for_many_rounds_holds_for_fewer() {
        let spent = |rounds, values: &[(&str, f64)]| Spent {
            rounds,
            epsilon: values.iter().map(|&(view, epsilon)| (view.to_owned(), epsilon)).collect(),
        };
        let mut growth = [
            spent(1, &[("a", 1.0), ("b", 5.0)]),
            spent(2, &[("a", 9.0)]),
            spent(4, &[("a", 3.0)]),
            spent(8, &[]),
        ];
        lower_by_later(&mut growth);
        let a: Vec<Option<&f64>> = growth.iter().map(|spent| spent.epsilon.get("a")).collect();
        assert_eq!(a, [Some(&1.0), Some(&3.0), Some(&3.0), None]);
        assert_eq!(growth[0].epsilon.get("b"), Some(&5.0));
    }

    #[test]
    fn the_growth_begins_with_one_round_and_ends_with_all() {
        assert_eq!(log_spaced(1, 10), [1]);
        assert_eq!(log_spaced(3, 5), [1, 2, 3]);
        assert_eq!(log_spaced(10_000, 5), [1, 10, 100, 1000, 10_000]);
        let many = log_spaced(300, 10);
        assert_eq!((many[0], many[many.len() - 1]), (1, 300));
        assert!(many.is_sorted_by(|a, b| a < b), "{many:?}");
    }
}
