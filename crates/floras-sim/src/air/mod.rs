//! The uplink without training, for callers that train elsewhere: takes a round's updates and returns the decoded sum.
//!
//! ```text
//! x_k → clip to C (or the paper's normalisation) → uplink → Σ g_k x_k + ν·n → clamp to ±B → the normalisation undone
//! ```
//!
//! A [`Trial`](crate::Trial) and an [`AirInterface`] have the same steps: the same updates with the same seed yield the same
//! bytes. A round with real data uses [`Noise::Release`] instead of the simulation's noise. An [`AirLedger`] records what the
//! rounds leak.
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

mod accounts;
mod description;
mod ledger;
mod noise;
mod round_spec;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use floras_core::random::Purpose;
use floras_core::{Dropout, Fidelity, Level, Masks};
use floras_phy::release::{self, ReleaseKey};
use floras_phy::{Aggregate, Aggregation, EffectiveChannel, Noise, Round, Signal, Uplink, UplinkError};

use accounts::RoundAccount;
pub use description::AirDescription;
pub use ledger::AirLedger;
use noise::Release;
pub use round_spec::{Cohort, RoundSpec};

use crate::error::{SimError, wrong};
use crate::experiment::{
    ClientSettings, Experiment, ExperimentError, PrivacySettings, Settings, UplinkSettings, Weights,
};

/// Client numbers are below this.
const MAX_CLIENTS: u32 = 1 << 24;

/// All steps from the clients' updates to the decoded sum, without training.
pub struct AirInterface {
    settings: Settings,
    description: AirDescription,
    /// `M`; `None` if all clients take part in every round, whatever their number.
    clients: Option<u32>,
    /// The last seed and the scheme built with it.
    uplink: Mutex<(u64, Arc<dyn Uplink>)>,
    accounts: Mutex<BTreeMap<Cohort, Arc<RoundAccount>>>,
    release: Release,
}

impl AirInterface {
    /// The uplink of the sections `[uplink]`, `[privacy]` and `[masks]`. `clients` is the total number of clients; `None` if all
    /// clients take part in every round.
    pub fn new(
        uplink: UplinkSettings,
        privacy: PrivacySettings,
        masks: Option<Masks>,
        clients: Option<u32>,
    ) -> Result<Self, SimError> {
        if let Some(clients) = clients {
            check_count("clients", clients)?;
        }
        if privacy.level != Level::Client {
            let allowed = "client for an uplink on its own, which does not know how clients train";
            return Err(wrong("privacy.level", allowed, privacy.level));
        }
        if !uplink.scheme.is_linear() {
            let reason = format!(
                "\"{}\" is not linear: an uplink without training has a linear scheme",
                uplink.scheme.name()
            );
            return Err(ExperimentError::refused("uplink.scheme", reason).into());
        }
        // The smallest valid number of clients; the cohort of every round is checked.
        let fewest =
            masks.map_or(0, Masks::colluding).checked_add(2).filter(|&fewest| fewest > 2).unwrap_or(1);
        let (weights, dropout) = (Weights::Equal, Dropout::default());
        let fewest = ClientSettings { total: fewest, per_round: fewest, weights, dropout };
        let settings = Settings { clients: fewest, uplink, privacy, masks, trials: 1, ..Settings::default() };
        let mut settings = Experiment::new(settings)?.settings().clone();
        if let Some(path) = settings.uplink.radio().and_then(|radio| radio.trace()) {
            settings.rounds = floras_phy::Trace::from_path(path)?.rounds();
        }
        let built = Mutex::new((settings.seed, settings.build_uplink(settings.seed)?.into()));
        let description = AirDescription::new(&settings, clients)?;
        let release = Release::new(settings.privacy.delta);
        Ok(Self { settings, description, clients, uplink: built, accounts: Mutex::default(), release })
    }

    /// The uplink of an experiment, with its `M` if not all clients take part in every round.
    pub fn from_experiment(experiment: &Experiment) -> Result<Self, SimError> {
        let Settings { clients, uplink, privacy, masks, .. } = experiment.settings();
        let total = Some(clients.total).filter(|&total| clients.per_round < total);
        Self::new(uplink.clone(), *privacy, *masks, total)
    }

    /// `M`, if not all clients take part in every round.
    pub fn clients(&self) -> Option<u32> {
        self.clients
    }

    /// `C`, the clip norm of the updates; `None` if they are not clipped.
    pub fn clip(&self) -> Option<f64> {
        self.settings.privacy.clip
    }

    /// `δ` of the privacy statements.
    pub fn delta(&self) -> f64 {
        self.settings.privacy.delta
    }

    /// Every setting that has an effect: the keys of `[uplink]` and `[privacy]`, and `clients` if a round has fewer.
    pub fn description(&self) -> &AirDescription {
        &self.description
    }

    /// Transmits the updates of a round, one for each of its clients, and decodes their sum. An update with a value that is not
    /// finite is sent as zero.
    pub fn aggregate<U: AsRef<[f32]> + Sync>(
        &self,
        spec: &RoundSpec,
        updates: &[U],
    ) -> Result<Aggregate, SimError> {
        let round = self.checked(spec)?;
        let uplink = self.uplink(spec.seed)?;
        let steps = Aggregation { noise: spec.noise, measure_norms: false, ..self.settings.aggregation() };
        Ok(steps.run(uplink.as_ref(), round, updates)?)
    }

    /// Draws the effective channel of [`aggregate`](Self::aggregate) without any updates. Fails with two parameters per symbol,
    /// because a client then has no single gain.
    pub fn realise(&self, spec: &RoundSpec) -> Result<EffectiveChannel, SimError> {
        let round = self.checked(spec)?;
        let uplink = self.uplink(spec.seed)?;
        let channel = match self.settings.uplink.fidelity {
            Fidelity::Symbol => uplink.realise(&round)?,
            Fidelity::Chip => uplink.with_added_noise(&round, uplink.link(&round)?.effective()?)?,
        };
        if channel.blocks().iter().any(|block| !block.cross_gains.is_empty()) {
            let reason = "with two parameters in a symbol a client has no single gain: aggregate the updates, or set it to 1";
            return Err(ExperimentError::refused("uplink.parameters_per_symbol", reason).into());
        }
        Ok(channel)
    }

    /// The signal behind the effective channel of [`aggregate`](Self::aggregate) for updates of `parameters` parameters; `None` for
    /// a scheme without a radio.
    ///
    /// Channels and assignment are known to no base station. Keep them as secret as the seed for sums of real data.
    pub fn signal(&self, spec: &RoundSpec, parameters: usize) -> Result<Option<Signal>, SimError> {
        let round = self.checked(spec)?;
        let uplink = self.uplink(spec.seed)?;
        Ok(self.settings.aggregation().signal(uplink.as_ref(), round, parameters)?)
    }

    /// `ν·n` of a round with `parameters` parameters: the simulation's noise that [`aggregate`](Self::aggregate) adds at the
    /// symbol level. Noise that is fit for release is only drawn together with its sum: see [`add_noise`](Self::add_noise).
    pub fn noise(&self, spec: &RoundSpec, noise_std: f64, parameters: usize) -> Result<Vec<f32>, SimError> {
        let round = self.checked(spec)?;
        if spec.noise == Noise::Release {
            return Err(SimError::NoiseApart);
        }
        let stream = round.stream_name(Purpose::PAYLOAD_NOISE);
        Ok(EffectiveChannel::new(vec![0.0], noise_std)?.apply(&[vec![0.0; parameters]], stream)?)
    }

    /// Adds a round's noise to a sum `Σ g_k x_k` that was computed elsewhere. Noise that is fit for release is drawn again in every
    /// call, and the sum's error must be at most `24·2⁻⁵³·Σ|g_k x_k|`.
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

    /// The cohort of a round.
    pub fn cohort(&self, spec: &RoundSpec) -> Cohort {
        let RoundSpec { ref clients, selected, among, .. } = *spec;
        let among = among.or(self.clients).unwrap_or(selected);
        Cohort { answered: clients.len() as u32, selected, among }
    }

    /// Builds the scheme, or returns it from the cache. Sequences of some families are drawn from the seed.
    fn uplink(&self, seed: u64) -> Result<Arc<dyn Uplink>, SimError> {
        let mut latest = self.uplink.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.0 != seed {
            *latest = (seed, self.settings.build_uplink(seed)?.into());
        }
        Ok(Arc::clone(&latest.1))
    }

    fn checked<'o>(&self, spec: &'o RoundSpec) -> Result<Round<'o>, SimError> {
        let round = spec.round()?;
        let max = self.clients.unwrap_or(MAX_CLIENTS);
        if let Some(client) = spec.clients.iter().find(|&&client| client >= max) {
            return Err(wrong("a client's number", &format!("below {max}"), *client));
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
            let allowed = format!("at most {clients}, all clients there are");
            return Err(wrong("selected", &allowed, cohort.selected));
        }
        let max = self.clients.unwrap_or(MAX_CLIENTS);
        if !(cohort.selected..=max).contains(&cohort.among) {
            return Err(wrong("among", &format!("between {} and {max}", cohort.selected), cohort.among));
        }
        let clients = cohort.selected as usize;
        if let Some(sequences) = self.settings.uplink.scheme.sequences().filter(|&count| count < clients) {
            return Err(UplinkError::TooFewSequences { sequences, clients }.into());
        }
        let colluding = self.settings.masks.map_or(0, Masks::colluding);
        if colluding > 0 && cohort.selected < colluding.saturating_add(2) {
            let allowed =
                format!("at least {}, so that two are honest beside {colluding} that collude", colluding + 2);
            return Err(wrong("selected", &allowed, cohort.selected));
        }
        Ok(())
    }
}

impl fmt::Debug for AirInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AirInterface").field("settings", &self.settings.uplink).finish_non_exhaustive()
    }
}

fn check_count(name: &str, count: u32) -> Result<(), SimError> {
    if (1..=MAX_CLIENTS).contains(&count) {
        return Ok(());
    }
    Err(wrong(name, &format!("between 1 and {MAX_CLIENTS}"), count))
}
