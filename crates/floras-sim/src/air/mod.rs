//! The air alone, for those who train elsewhere: a round's updates go in, the decoded sum comes out.
//!
//! ```text
//! x_k → clip to C (or the paper's normalisation) → uplink → Σ g_k x_k + ν·n → clamp to ±B → the normalisation undone
//! ```
//!
//! A [`Trial`](crate::Trial) and an [`AirInterface`] go the same way, so that the same updates under the same seed come to the
//! same bytes. A round of real data takes [`Noise::Release`] instead of the simulation's noise. What the rounds give away is in
//! an [`AirLedger`].
//!
//! ```
//! use floras_sim::{AirInterface, ExperimentBuilder, RoundSpec};
//!
//! let experiment = ExperimentBuilder::new().set("uplink.scheme", "ideal")?.set("privacy.clip", "5")?.build()?;
//! let air = AirInterface::from_experiment(&experiment)?;
//! let updates = [vec![1.0, 2.0], vec![30.0, 40.0]];
//! let aggregate = air.aggregate(&RoundSpec::of_all(1, 1, 2), &updates)?;
//! assert!((aggregate.sum[0] - 4.0).abs() < 1e-5 && (aggregate.sum[1] - 6.0).abs() < 1e-5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ledger;
mod noise;
mod round_spec;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use floras_core::View;
use floras_core::random::{Purpose, StreamName, TrialId};
use floras_phy::release::{self, ReleaseKey};
use floras_phy::{Aggregate, Aggregation, EffectiveChannel, Noise, Round, Uplink, UplinkError};
use floras_privacy::{Account, Sampling};
pub use ledger::AirLedger;
use rand::seq::index;
pub use round_spec::{Cohort, RoundSpec};
use serde::Serialize;
use toml::{Table, Value};

use crate::accounting::{self, Accounting, PrivacyReport};
use crate::error::SimError;
use crate::experiment::{
    ClientSettings, Experiment, ExperimentError, PrivacyFile, PrivacySettings, Settings, UplinkSettings,
    Weights, deserialize_section, nearest,
};
use crate::purpose;
use noise::Release;

/// Client numbers stay below this.
const MAX_CLIENTS: u32 = 1 << 24;
/// The keys of `[privacy]` that say how updates are sent, and what is said about it.
const PRIVACY_KEYS: [&str; 6] =
    ["clip", "normalise", "delta", "pilot_noise", "channel_growth", "foreign_pilots"];
/// Accounts that are remembered; rounds with other numbers of clients are accounted for anew.
const MAX_ACCOUNTS: usize = 4096;

/// Everything between the clients' updates and the decoded sum, without any training.
pub struct AirInterface {
    settings: Settings,
    /// The same as a table: the keys of `[uplink]` and `[privacy]` that have an effect.
    description: AirDescription,
    /// `M`; `None` if all clients take part in every round, however many they are.
    clients: Option<u32>,
    /// The scheme under the seed that was used last.
    uplink: Mutex<(u64, Arc<dyn Uplink>)>,
    accounts: Mutex<BTreeMap<Cohort, Arc<RoundAccount>>>,
    release: Release,
}

/// The account of one kind of round.
pub(crate) struct RoundAccount {
    /// Of the rigorous views, at a `δ` that leaves room for floating-point arithmetic.
    rigorous: Accounting,
    /// Of the published one, at the `δ` that was asked for; `None` if the scheme has none.
    published: Option<Account>,
}

impl RoundAccount {
    fn of(&self, view: View) -> &Account {
        match &self.published {
            Some(published) if view == View::Published => published,
            _ => self.rigorous.account(),
        }
    }
}

impl AirInterface {
    /// The air of an experiment's sections `[uplink]` and `[privacy]`, for `clients` clients in all, if the same ones do not take
    /// part in every round.
    pub fn new(
        uplink: UplinkSettings,
        privacy: PrivacySettings,
        clients: Option<u32>,
    ) -> Result<Self, SimError> {
        if let Some(clients) = clients {
            check_count("clients", clients)?;
        }
        let one_client = ClientSettings { total: 1, per_round: 1, weights: Weights::Equal };
        let settings = Settings { clients: one_client, uplink, privacy, trials: 1, ..Settings::default() };
        let mut settings = Experiment::new(settings)?.settings().clone();
        if let Some(path) = settings.uplink.radio().and_then(|radio| radio.trace()) {
            settings.rounds = floras_phy::Trace::from_path(path)?.rounds();
        }
        let built = Mutex::new((settings.seed, settings.uplink.build(settings.seed)?.into()));
        let description = describe(&settings, clients)?;
        let release = Release::new(settings.privacy.delta);
        Ok(Self { settings, description, clients, uplink: built, accounts: Mutex::default(), release })
    }

    /// [`new`](Self::new) with the keys of both sections side by side, as in `{ sequences = 25, clip = 1.0 }`.
    pub fn from_keys(keys: impl Serialize, clients: Option<u32>) -> Result<Self, SimError> {
        let keys = Table::try_from(keys).map_err(|error| ExperimentError::refused("the settings", error))?;
        let (privacy, uplink): (Table, Table) =
            keys.into_iter().partition(|(key, _)| PRIVACY_KEYS.contains(&key.as_str()));
        let uplink = UplinkSettings::from_table(&uplink).map_err(without_section)?;
        let privacy: PrivacyFile = deserialize_section("privacy", &privacy)?;
        privacy.check()?;
        Self::new(uplink, privacy.into(), clients)
    }

    /// The air of a whole experiment, with its `M` if not all clients take part in every round.
    pub fn from_experiment(experiment: &Experiment) -> Result<Self, SimError> {
        let Settings { clients, uplink, privacy, .. } = experiment.settings();
        let total = Some(clients.total).filter(|&total| clients.per_round < total);
        Self::new(uplink.clone(), *privacy, total)
    }

    /// `M`, if not all clients take part in every round.
    pub fn clients(&self) -> Option<u32> {
        self.clients
    }

    /// `C`, if anything clips the updates.
    pub fn clip(&self) -> Option<f64> {
        self.settings.privacy.clip
    }

    /// `δ` of the privacy statements.
    pub fn delta(&self) -> f64 {
        self.settings.privacy.delta
    }

    /// Every setting that has an effect: the keys of `[uplink]` and `[privacy]`, and `clients` if there are more than take part.
    pub fn description(&self) -> &AirDescription {
        &self.description
    }

    /// Carries the updates of a round, one for each of its clients, over the air. An update with a value that is not finite is
    /// sent as zero.
    pub fn aggregate<U: AsRef<[f32]> + Sync>(
        &self,
        spec: &RoundSpec,
        updates: &[U],
    ) -> Result<Aggregate, SimError> {
        let round = self.checked(spec)?;
        let uplink = self.uplink(spec.seed)?;
        Ok(self.aggregation(spec.noise).run(uplink.as_ref(), round, updates)?)
    }

    /// What happens to the updates of a round beside the uplink itself.
    fn aggregation(&self, noise: Noise) -> Aggregation {
        Aggregation { noise, measure_norms: false, ..self.settings.aggregation() }
    }

    /// Draws the effective channel that [`aggregate`](Self::aggregate) would have, before any update is there.
    pub fn realise(&self, spec: &RoundSpec) -> Result<EffectiveChannel, SimError> {
        let round = self.checked(spec)?;
        Ok(self.uplink(spec.seed)?.realise(&round)?)
    }

    /// `ν·n` of a round with `parameters` parameters: the simulation's noise that [`aggregate`](Self::aggregate) would add at the
    /// symbol level. Noise that is fit for release cannot be had apart from its sum: see [`add_noise`](Self::add_noise).
    pub fn noise(&self, spec: &RoundSpec, noise_std: f64, parameters: usize) -> Result<Vec<f32>, SimError> {
        let round = self.checked(spec)?;
        if spec.noise == Noise::Release {
            return Err(SimError::NoiseApart);
        }
        let stream = round.stream_name(Purpose::PAYLOAD_NOISE);
        Ok(EffectiveChannel::new(vec![0.0], noise_std)?.apply(&[vec![0.0; parameters]], stream)?)
    }

    /// Adds a round's noise to a sum `Σ g_k x_k` that was made elsewhere. Noise that is fit for release is a new one in every call,
    /// and the sum's error must be at most `24·2⁻⁵³·Σ|g_k x_k|`.
    pub fn add_noise(&self, spec: &RoundSpec, noise_std: f64, sum: &[f64]) -> Result<Vec<f32>, SimError> {
        match spec.noise {
            Noise::Simulated => {
                let mut noisy = self.noise(spec, noise_std, sum.len())?;
                for (noisy, &value) in noisy.iter_mut().zip(sum) {
                    *noisy += value as f32;
                }
                Ok(noisy)
            }
            Noise::Release => {
                self.checked(spec)?;
                let mut noisy = vec![0.0; sum.len()];
                release::add_noise_into(sum, noise_std, ReleaseKey::generate()?, &mut noisy)?;
                Ok(noisy)
            }
        }
    }

    /// Why statements about a round with this channel are no guarantee because of its noise, if they are not.
    fn unfit(&self, noise: Noise, channel: &EffectiveChannel) -> Option<&'static str> {
        noise::unfit(&self.settings, noise, channel)
    }

    /// How many were asked in a round, from how many, and how many answered.
    pub fn cohort(&self, spec: &RoundSpec) -> Cohort {
        let RoundSpec { ref clients, selected, among, .. } = *spec;
        let among = among.or(self.clients).unwrap_or(selected);
        Cohort { answered: clients.len() as u32, selected, among }
    }

    /// A round of so many clients, all of whom answer.
    pub fn complete(&self, per_round: u32) -> Cohort {
        Cohort::complete(per_round, self.clients.unwrap_or(per_round))
    }

    /// Who looks in a view, where the scheme has its noise from elsewhere than a receiver.
    fn adversary(&self, view: View) -> Option<&'static str> {
        self.settings.uplink.scheme.adversary(view)
    }

    /// `ε` of one round with such a cohort, in every view that has one.
    pub fn spend(&self, cohort: Cohort) -> Result<BTreeMap<String, f64>, SimError> {
        let account = self.accounting(cohort)?;
        let mut spend = account.rigorous.one_rounds().clone();
        self.add_loss(&account, 1, &mut spend)?;
        Ok(spend)
    }

    /// All that is said about `rounds` rounds in which `per_round` clients take part, with noise that is fit for release.
    pub fn report(&self, per_round: u32, rounds: u32) -> Result<PrivacyReport, SimError> {
        let cohort = self.complete(per_round);
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
            "this holds for rounds without a seed, whose noise is fit for release; {:.1e} of every ε is for floating-point \
             arithmetic, for up to 2^40 released values",
            self.release.epsilon()
        )
    }

    /// Brings `ε` of ideal mechanisms, by view, to what is stated.
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

    /// The account of rounds with such a cohort. Whether a client answers must not depend on its data.
    fn accounting(&self, cohort: Cohort) -> Result<Arc<RoundAccount>, SimError> {
        self.check_cohort(cohort)?;
        let accounts = || self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = accounts().get(&cohort) {
            return Ok(Arc::clone(known));
        }
        let settings = self.settings_for(cohort);
        let uplink = if cohort.answered == cohort.selected {
            self.uplink(settings.seed)?
        } else {
            settings.uplink.build(settings.seed)?.into()
        };
        let select = |trial: TrialId, round: u32| select(&settings, trial, round);
        let sampling = cohort.sampling();
        let rigorous = Accounting::sampled(&settings, uplink.as_ref(), &select, Some(sampling))?;
        let has_published = settings.uplink.scheme.sequences().is_some();
        let published = has_published.then(|| {
            let mut settings = settings.clone();
            settings.privacy.delta = self.delta();
            Accounting::curves(&settings, uplink.as_ref(), &select, Some(sampling))
        });
        let made = Arc::new(RoundAccount { rigorous, published: published.transpose()? });
        let mut accounts = accounts();
        if accounts.len() >= MAX_ACCOUNTS {
            accounts.clear();
        }
        accounts.insert(cohort, Arc::clone(&made));
        Ok(made)
    }

    /// The settings that the account of a cohort reads.
    fn settings_for(&self, cohort: Cohort) -> Settings {
        let mut settings = self.settings.clone();
        let counted = match settings.uplink.scheme.sequences() {
            // Those who did not answer may have sent their pilot, so that their sequences count as used: γ = N − selected.
            Some(_) => cohort.selected,
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

    /// The scheme; sequences of some families are drawn from the seed.
    fn uplink(&self, seed: u64) -> Result<Arc<dyn Uplink>, SimError> {
        let mut latest = self.uplink.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.0 != seed {
            *latest = (seed, self.settings.uplink.build(seed)?.into());
        }
        Ok(Arc::clone(&latest.1))
    }

    fn checked<'o>(&self, spec: &'o RoundSpec) -> Result<Round<'o>, SimError> {
        let round = spec.round()?;
        let most = self.clients.unwrap_or(MAX_CLIENTS);
        if let Some(client) = spec.clients.iter().find(|&&client| client >= most) {
            return Err(wrong("a client's number", &format!("below {most}"), *client));
        }
        self.check_cohort(self.cohort(spec))?;
        Ok(round)
    }

    fn check_cohort(&self, cohort: Cohort) -> Result<(), SimError> {
        check_count("the number of clients in a round", cohort.answered)?;
        if cohort.selected < cohort.answered {
            let allowed = format!("at least {}, as many as answered", cohort.answered);
            return Err(wrong("selected", &allowed, cohort.selected));
        }
        if let Some(clients) = self.clients.filter(|&clients| cohort.selected > clients) {
            return Err(wrong(
                "selected",
                &format!("at most {clients}, all clients there are"),
                cohort.selected,
            ));
        }
        let most = self.clients.unwrap_or(MAX_CLIENTS);
        if !(cohort.selected..=most).contains(&cohort.among) {
            return Err(wrong("among", &format!("between {} and {most}", cohort.selected), cohort.among));
        }
        let clients = cohort.selected as usize;
        if let Some(sequences) = self.settings.uplink.scheme.sequences().filter(|&count| count < clients) {
            return Err(UplinkError::TooFewSequences { sequences, clients }.into());
        }
        Ok(())
    }
}

impl fmt::Debug for AirInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AirInterface").field("settings", &self.settings.uplink).finish_non_exhaustive()
    }
}

/// The clients of a round, in ascending order; rounds are counted from 1.
pub(crate) fn select(settings: &Settings, trial: TrialId, round: u32) -> Vec<u32> {
    let ClientSettings { total, per_round, .. } = settings.clients;
    if per_round == total {
        return (0..total).collect();
    }
    let name = StreamName::new(settings.seed, purpose::SELECTION).trial(trial).round(round - 1);
    let chosen = index::sample(&mut name.stream(), total as usize, per_round as usize);
    let mut chosen: Vec<u32> = chosen.into_iter().map(|client| client as u32).collect();
    chosen.sort_unstable();
    chosen
}

/// The keys stand side by side, so that an unknown one has no section.
fn without_section(error: ExperimentError) -> ExperimentError {
    match error {
        ExperimentError::UnknownKey { key, hint } => {
            let key = key.rsplit('.').next().unwrap_or(&key).to_owned();
            ExperimentError::UnknownKey { hint: nearest(&key, &PRIVACY_KEYS).unwrap_or(hint), key }
        }
        other => other,
    }
}

/// Every setting of an [`AirInterface`] that has an effect: keys with their values, in the order of the file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct AirDescription(Table);

impl AirDescription {
    /// Each key with its value as TOML.
    pub fn entries(&self) -> impl Iterator<Item = (&str, String)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.to_string()))
    }
}

impl fmt::Display for AirDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn describe(settings: &Settings, clients: Option<u32>) -> Result<AirDescription, SimError> {
    let wrong = |error: toml::ser::Error| ExperimentError::refused("the settings", error);
    let mut flat = Table::new();
    if let Some(clients) = clients {
        flat.insert("clients".to_owned(), Value::Integer(clients.into()));
    }
    flat.extend(settings.uplink.to_table());
    // A budget belongs to those who run several rounds.
    let privacy = PrivacySettings { budget: None, ..settings.privacy };
    flat.extend(Table::try_from(PrivacyFile::from(privacy)).map_err(wrong)?);
    flat.remove("budget");
    Ok(AirDescription(flat))
}

/// An account and how many rounds of its kind there were.
type Kind = (Arc<RoundAccount>, u64);

/// The accounts of some kinds of rounds in a view, as the privacy side takes them.
fn accounts(kinds: &[Kind], view: View) -> Vec<(&Account, u64)> {
    kinds.iter().map(|(account, rounds)| (account.of(view), *rounds)).collect()
}

fn check_count(name: &str, count: u32) -> Result<(), SimError> {
    if (1..=MAX_CLIENTS).contains(&count) {
        return Ok(());
    }
    Err(wrong(name, &format!("between 1 and {MAX_CLIENTS}"), count))
}

fn wrong(name: &str, allowed: &str, value: impl ToString) -> SimError {
    let (key, allowed) = (name.to_owned(), allowed.to_owned());
    ExperimentError::Value { key, allowed, value: value.to_string() }.into()
}

#[cfg(test)]
mod tests {
    use floras_privacy::Statement;

    use super::*;
    use crate::{Federation, Trial};

    const CLIPPED: &str = "[uplink]\nsequences = 25\ntruncate = 6.0\n[privacy]\nclip = 1.0";
    const NORMALISED: &str = "[uplink]\ntruncate = 6.0\n[privacy]\nclip = 6.33\nnormalise = \"paper\"";
    const CHIPS: &str = "[uplink]\nfidelity = \"chip\"\nfamily = \"orthonormal\"\n[privacy]\nclip = 1.0";
    const FEW: &str =
        "[clients]\ntotal = 20\nper_round = 7\n[uplink]\nscheme = \"gaussian\"\n[privacy]\nclip = 1.0";

    fn air(settings: &str, clients: Option<u32>) -> AirInterface {
        let Settings { uplink, privacy, .. } =
            Experiment::parse("a test", &format!("{settings}\n[clients]\ntotal = 1"))
                .unwrap()
                .settings()
                .clone();
        AirInterface::new(uplink, privacy, clients).unwrap()
    }

    /// A trial's third round done once more over the air alone, with the updates that its clients computed.
    #[test]
    fn a_trial_and_the_air_alone_come_to_the_same_bytes() {
        for text in [CLIPPED, NORMALISED, CHIPS, FEW] {
            let experiment = Experiment::parse("a test", text).unwrap();
            let federation = Federation::new(&experiment).unwrap();
            let mut trial = Trial::begin(&federation, 0).unwrap();
            trial.step().unwrap();
            trial.step().unwrap();
            let (mut model, updates) =
                (trial.parameters().to_vec(), trial.expected_updates(trial.id()).unwrap());
            let outcome = trial.step().unwrap();
            let clients = outcome.clients;
            let selected = clients.len() as u32;
            let spec = RoundSpec {
                seed: 1,
                trial: 0,
                round: 3,
                clients,
                selected,
                among: None,
                noise: Noise::Simulated,
            };
            let air = AirInterface::from_experiment(&experiment).unwrap();
            let aggregate = air.aggregate(&spec, &updates).unwrap();
            assert_eq!(aggregate.channel, outcome.aggregate.unwrap().channel, "{text}");
            floras_phy::precode::server_step(&mut model, &aggregate.sum, updates.len()).unwrap();
            assert_eq!(model, trial.parameters(), "{text}");
            assert_eq!(air.clients(), (selected < 20).then_some(20));
        }
    }

    #[test]
    fn a_round_that_cannot_be_is_refused() {
        let refusal = |spec: &RoundSpec, clients: Option<u32>| {
            air(CLIPPED, clients).realise(spec).unwrap_err().to_string()
        };
        let round = RoundSpec::of_all(1, 1, 20);
        assert_eq!(
            refusal(&RoundSpec { round: 0, ..round.clone() }, None),
            "round must be at least 1, not 0"
        );
        let asked = |selected| RoundSpec { selected, ..round.clone() };
        assert_eq!(refusal(&asked(19), None), "selected must be at least 20, as many as answered, not 19");
        assert_eq!(
            refusal(&asked(22), Some(21)),
            "selected must be at most 21, all clients there are, not 22"
        );
        let few = RoundSpec { among: Some(19), ..round.clone() };
        assert_eq!(refusal(&few, Some(30)), "among must be between 20 and 30, not 19");
        assert_eq!(refusal(&round, Some(19)), "a client's number must be below 19, not 19");
        assert!(refusal(&asked(26), None).contains("25"), "{}", refusal(&asked(26), None));
    }

    /// Who is missing may tell who was asked: such a round is one in which the others are known. And whoever is missing may have
    /// sent a pilot: of 25 sequences 5 are unused, whether 20 answered or 19.
    #[test]
    fn nothing_is_gained_once_someone_is_missing() {
        let (air, known) = (air(CLIPPED, Some(100)), air(CLIPPED, None));
        let spend =
            |answered, selected, among| air.spend(Cohort { answered, selected, among }).unwrap()["idealised"];
        let alone = known.spend(Cohort::complete(20, 20)).unwrap()["idealised"];
        // Who is missing may have sent its pilot: its sequence is not an unused one.
        assert_eq!(spend(19, 20, 100), alone);
        assert!(spend(20, 20, 100) < spend(20, 20, 40) && spend(20, 20, 40) < alone);
    }

    #[test]
    fn an_update_that_is_not_finite_is_sent_as_zero() {
        let of_one = |broken: [f32; 2]| [vec![0.5, 0.25], broken.to_vec(), vec![-0.25, 0.125]];
        for settings in [CLIPPED, "[privacy]\nclip = \"none\"", NORMALISED] {
            let air = air(settings, None);
            let round = RoundSpec::of_all(3, 1, 3);
            let zero = air.aggregate(&round, &of_one([0.0, 0.0])).unwrap();
            assert!(zero.broken.is_empty());
            for broken in [[f32::NAN, 0.0], [1.0, f32::INFINITY]] {
                let aggregate = air.aggregate(&round, &of_one(broken)).unwrap();
                assert_eq!(aggregate, Aggregate { broken: vec![1], ..zero.clone() }, "{settings}");
            }
        }
    }

    /// The schemes whose noise is added at the symbol level.
    const RELEASED: [&str; 4] = [
        CLIPPED,
        NORMALISED,
        "[uplink]\nscheme = \"gaussian\"\nnoise_std = 3.0\n[privacy]\nclip = 1.0",
        "[uplink]\nscheme = \"channel-inversion\"\nartificial_noise_std = 3.0\n[privacy]\nclip = 1.0",
    ];

    #[test]
    fn noise_for_release_is_new_in_every_call() {
        for text in RELEASED {
            let (air, spec) = (air(text, None), RoundSpec::of_all(1, 1, 20));
            let update: Vec<f32> = (0_u16..1000).map(|index| f32::from(index % 7) * 0.01).collect();
            let updates = vec![update; 20];
            let release = || air.aggregate(&spec.clone().for_release(), &updates).unwrap();
            let (first, second) = (release(), release());
            assert_ne!(first.sum, second.sum, "{text}");
            // The channel is the seed's.
            assert_eq!(first.channel, air.aggregate(&spec, &updates).unwrap().channel, "{text}");
        }
    }

    #[test]
    fn released_sums_lie_on_the_grid() {
        let air = air("[uplink]\nscheme = \"gaussian\"\nnoise_std = 3.0\n[privacy]\nclip = 1.0", None);
        let spec = RoundSpec::of_all(1, 1, 20).for_release();
        let aggregated = air.aggregate(&spec, &vec![vec![0.01; 1000]; 20]).unwrap().sum;
        let added = air.add_noise(&spec, 3.0, &[0.123; 1000]).unwrap();
        let step = release::grid_step(3.0).unwrap() as f32;
        assert!(aggregated.iter().chain(&added).all(|value| value % step == 0.0));
        let apart = air.noise(&spec, 3.0, 10).unwrap_err().to_string();
        assert!(apart.contains("add_noise"), "{apart}");
    }

    #[test]
    fn noise_is_added_to_a_sum_as_in_aggregate() {
        let air = air("[uplink]\nscheme = \"gaussian\"\nnoise_std = 3.0\n[privacy]\nclip = 1.0", None);
        let spec = RoundSpec::of_all(1, 1, 1);
        let update = vec![0.01_f32; 1000];
        let sum: Vec<f64> = update.iter().map(|&value| value.into()).collect();
        let (added, aggregated) =
            (air.add_noise(&spec, 3.0, &sum).unwrap(), air.aggregate(&spec, &[update]).unwrap().sum);
        assert!(added.iter().zip(&aggregated).all(|(left, right)| (left - right).abs() < 1e-5));
    }

    /// The views of a ledger with one round.
    fn recorded(air: AirInterface, spec: &RoundSpec) -> Statement {
        let air = Arc::new(air);
        let mut ledger = AirLedger::new(Arc::clone(&air)).unwrap();
        ledger.record(spec, &air.realise(spec).unwrap()).unwrap();
        ledger.statement(View::Idealised).unwrap().unwrap()
    }

    #[test]
    fn only_noise_for_release_is_a_guarantee() {
        let spec = RoundSpec::of_all(1, 1, 20);
        let simulated = recorded(air(CLIPPED, None), &spec);
        assert!(!simulated.guarantee && simulated.reason.unwrap().contains("simulation's generator"));
        let released = recorded(air(CLIPPED, None), &spec.clone().for_release());
        assert!(released.guarantee, "{:?}", released.reason);
        assert_eq!(released.epsilon, simulated.epsilon);
        let chips = recorded(
            air(CHIPS.replace("[privacy]", "sequences = 25\n[privacy]").as_str(), None),
            &spec.clone().for_release(),
        );
        assert!(!chips.guarantee && chips.reason.unwrap().contains("chip"));
        let tiny = CLIPPED.to_owned() + "\ndelta = 1e-30";
        let tiny = recorded(air(&tiny, None), &spec.for_release());
        assert!(!tiny.guarantee && tiny.reason.unwrap().contains("delta"));
    }

    #[test]
    fn a_plan_says_which_noise_it_is_about() {
        let plan = air(CLIPPED, None).report(20, 10).unwrap();
        assert!(plan.views.get(View::Idealised).unwrap().guarantee);
        assert!(plan.notes.iter().any(|note| note.contains("fit for release")), "{:?}", plan.notes);
        let chips = air(CHIPS.replace("[privacy]", "sequences = 25\n[privacy]").as_str(), None);
        assert!(!chips.report(20, 10).unwrap().views.get(View::Idealised).unwrap().guarantee);
    }

    #[test]
    fn the_noise_of_a_round_is_remembered_in_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger.jsonl");
        let air = Arc::new(air(CLIPPED, None));
        let record = |spec: &RoundSpec| {
            let mut ledger = AirLedger::open(Arc::clone(&air), &path).unwrap();
            ledger.record(spec, &air.realise(spec).unwrap()).unwrap();
        };
        let is_guarantee = || {
            let ledger = AirLedger::open(Arc::clone(&air), &path).unwrap();
            ledger.statement(View::Idealised).unwrap().unwrap().guarantee
        };
        record(&RoundSpec::of_all(1, 1, 20).for_release());
        assert!(is_guarantee());
        record(&RoundSpec::of_all(1, 2, 20));
        assert!(!is_guarantee());
        // A file of an older version does not say.
        let text = std::fs::read_to_string(&path).unwrap();
        let first_round = text.lines().take(2).collect::<Vec<_>>().join("\n") + "\n";
        std::fs::write(&path, first_round.replace("\"noise\":\"release\",", "")).unwrap();
        assert!(!is_guarantee());
    }

    #[test]
    fn unknown_keys_are_refused_with_the_nearest_one() {
        for (misspelt, known) in [("clipp", "clip"), ("snrdb", "snr_db")] {
            let keys = BTreeMap::from([(misspelt, 1.0)]);
            let error = AirInterface::from_keys(keys, None).unwrap_err().to_string();
            assert_eq!(error, format!("there is no key {misspelt}; did you mean {known}?"));
        }
    }

    #[test]
    fn the_account_of_the_air_is_that_of_the_federation() {
        let experiment = Experiment::parse("a test", FEW).unwrap();
        let federation = Federation::new(&experiment).unwrap();
        let ours = AirInterface::from_experiment(&experiment).unwrap().report(7, 10).unwrap();
        let theirs = federation.accounting().unwrap().report(experiment.settings(), 10, None).unwrap();
        for view in View::ALL {
            let epsilon =
                |views: &floras_privacy::Views| views.get(view).and_then(|statement| statement.epsilon);
            match (epsilon(&ours.views), epsilon(&theirs.views)) {
                // What floating-point arithmetic costs.
                (Some(ours), Some(theirs)) => {
                    assert!((3e-5..1e-3).contains(&(ours - theirs)), "{ours} {theirs}")
                }
                (ours, theirs) => assert_eq!(ours, theirs),
            }
        }
        assert_eq!((ours.delta, ours.rounds), (theirs.delta, theirs.rounds));
    }
}
