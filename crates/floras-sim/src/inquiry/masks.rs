//! The masks of an experiment that meet an `ε` with the least noise in the decoded sum.
//!
//! `ε`, `δ`, the rounds and the sampling determine `μ` of a round. Masks with that `μ` are a family of one parameter: with larger
//! masks, clients add less noise, but more of the masks remains in the sum where gains differ. Rounds are drawn from a fixed
//! stream, and the median of their noise is minimised, which is finite for every receiver.
//!
//! Masks of a client whose update is lost stay in the sum. If that is rare, the median ignores it, although one such round can destroy
//! the model. Where clients can be silent or in outage, the rounds with and without a loss have a median each, and the root of the
//! weighted mean of their squares is minimised. The weight of a loss is its share of the drawn rounds, but at least that of one round.
//!
//! The receiver's noise can protect more than the masks do, as at a low SNR at unit power. The account knows both, and `ε` is then smaller
//! than the target. Smaller masks, for a larger `μ`, are searched until the account meets the target closely.

use floras_core::random::{Domain, TrialId};
use floras_core::{Masks, View};
use floras_phy::{EffectiveChannel, Round, Uplink};
use floras_privacy::calibrate::{gaussian_mu, quietest_masks};
use serde::Serialize;

use super::experiment::{ExperimentAccount, ExperimentCalibration, ExperimentViews, others, with_budget};
use super::{Find, wrong};
use crate::accounting::{Protected, Scope};
use crate::error::SimError;
use crate::experiment::{ExperimentBuilder, ExperimentError, Settings};
use crate::federation::{Dropouts, protected, scope, select};

/// Number of rounds that are drawn.
const ROUNDS: u32 = 200;
/// Number of rounds with a lost update, if none of those that are drawn has one.
const LOSSES: usize = 20;

/// The smallest share of the target that `ε` has, where smaller masks can reach it.
const TIGHT: f64 = 0.99;
/// Relative tolerance of the searched `μ`.
const TOLERANCE: f64 = 1e-4;
/// Maximum factor by which `μ` of the masks may exceed that of the target.
const MAX_LOOSENING: f64 = 1e3;

/// Masks that meet an `ε`, and the noise with them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FoundMasks {
    /// Standard deviation `σ_m` of the masks.
    pub mask_std: f64,
    /// Standard deviation `σ_z` of the noise that each client adds.
    pub noise_std: f64,
    /// Number of clients per round that may reveal their keys and noise.
    pub colluding: u32,
    /// The standard deviation of the noise in a parameter of the decoded sum: its median over drawn rounds, or over those with and without a
    /// lost update, in the mean square.
    pub decoded_noise_std: f64,
    /// Standard deviation of a trusted server's noise for the same `ε`: a lower bound for any scheme.
    pub central_noise_std: f64,
}

/// Searches the masks of an experiment.
pub(super) fn calibrate(
    builder: &ExperimentBuilder,
    epsilon: f64,
    view: View,
) -> Result<ExperimentCalibration, SimError> {
    if view != View::RawSignal {
        let allowed = "raw-signal if masks are to be found, because their bound holds in all views";
        return Err(wrong("view", allowed, view));
    }
    let (base, colluding) = without_masks(builder)?;
    let settings = base.build()?.settings().clone();
    let Some(clip) = settings.privacy.clip else {
        let allowed = "a number with masks, which hide updates of bounded norm".to_owned();
        let (key, value) = ("privacy.clip".to_owned(), "\"none\"".to_owned());
        return Err(ExperimentError::Value { key, allowed, value }.into());
    };
    let with = |masks: Masks| -> Result<ExperimentBuilder, ExperimentError> {
        let changed = base.clone().set_to("masks.mask_std", masks.mask_std())?;
        changed.set_to("masks.noise_std", masks.noise_std())?.set_to("masks.colluding", masks.colluding())
    };
    // The validation of the section rejects settings that masks do not support.
    if let Err(error) = with(Masks::new(1.0, 1.0, colluding)?)?.build() {
        return Err(match error {
            ExperimentError::Value { key, .. } if key == "masks.mask_std" => {
                let scheme = settings.uplink.scheme.name();
                let found = others(&base, &base.build()?, settings.privacy.view, Find::Masks)?;
                let allowed = format!("{found} (scheme {scheme} refuses masks that cancel)");
                wrong("find", &allowed, Find::Masks)
            }
            other => other.into(),
        });
    }
    let (protected, scope) = (protected(&settings)?, scope(&settings)?);
    let mu = gaussian_mu(
        epsilon,
        settings.privacy.delta,
        settings.rounds.into(),
        sampling(&settings, &protected),
    )?;
    let (sensitivity, per_round) = (2.0 * clip, settings.clients.per_round);
    let drawn = Drawn::new(&settings, scope)?;
    let noise = |masks: Masks| drawn.typical_noise(masks).unwrap_or(f64::INFINITY);
    let at = |mu: f64| -> Result<Accounted, SimError> {
        let masks = quietest_masks(mu, sensitivity, per_round.into(), colluding, noise)?;
        let found = with(masks)?;
        let account = ExperimentAccount::of(&found.build()?, protected.clone())?;
        Ok(Accounted { epsilon: account.epsilon(view)?, masks, found, account })
    };
    let Accounted { masks, found, account, .. } = loosest(at, mu, epsilon)?;
    let decoded_noise_std = drawn.typical_noise(masks)?;
    let fragment = format!(
        "[masks]\nmask_std = {:?}\nnoise_std = {:?}\ncolluding = {colluding}\n",
        masks.mask_std(),
        masks.noise_std()
    );
    let (found, fragment) = with_budget(found, fragment, &account, epsilon)?;
    let report = account.report()?;
    let (uplink, rounds, delta) = (report.uplink, report.rounds, report.delta);
    Ok(ExperimentCalibration {
        key: "masks".to_owned(),
        value: None,
        masks: Some(FoundMasks {
            mask_std: masks.mask_std(),
            noise_std: masks.noise_std(),
            colluding,
            decoded_noise_std,
            central_noise_std: sensitivity / mu,
        }),
        sequences: report.sequences,
        gamma: report.gamma,
        view: view.name(),
        epsilon: account.epsilon(view)?,
        epsilon_asked: epsilon,
        report: Some(ExperimentViews {
            uplink,
            rounds,
            delta,
            views: report.views,
            adversaries: report.adversaries,
            notes: report.notes,
        }),
        reason: None,
        fragment: Some(fragment),
        file: Some(found.without_unused()?.to_toml()),
    })
}

/// Masks with the account of their experiment.
struct Accounted {
    masks: Masks,
    found: ExperimentBuilder,
    account: ExperimentAccount,
    epsilon: Option<f64>,
}

/// The masks for `μ`, or for the largest one with which `epsilon` is met if the receiver's noise protects more than they do. `ε` is then above
/// `TIGHT·epsilon`, unless the receiver's noise alone gives less.
fn loosest(
    at: impl Fn(f64) -> Result<Accounted, SimError>,
    mu: f64,
    epsilon: f64,
) -> Result<Accounted, SimError> {
    let is_met = |one: &Accounted| one.epsilon.is_some_and(|spent| spent <= epsilon);
    let is_tight = |one: &Accounted| one.epsilon.is_none_or(|spent| spent >= TIGHT * epsilon);
    let (mut best, mut met, mut is_not) = (at(mu)?, mu, None);
    while !is_tight(&best) && is_not.is_none_or(|above| above > (1.0 + TOLERANCE) * met) {
        let tried = is_not.map_or(2.0 * met, |above: f64| (met * above).sqrt());
        if tried > MAX_LOOSENING * mu {
            break;
        }
        let one = at(tried)?;
        if is_met(&one) {
            (best, met) = (one, tried);
        } else {
            is_not = Some(tried);
        }
    }
    Ok(best)
}

/// The experiment without masks, and the number of colluders that it names.
fn without_masks(builder: &ExperimentBuilder) -> Result<(ExperimentBuilder, u32), ExperimentError> {
    let mut base = builder.clone();
    let colluding = match base.get("masks.colluding") {
        None => 0,
        Some(text) => text.parse().map_err(|_| ExperimentError::Value {
            key: "masks.colluding".to_owned(),
            allowed: "a non-negative integer".to_owned(),
            value: text,
        })?,
    };
    base.remove("masks");
    Ok((base, colluding))
}

/// The sampling of clients or items, as in the account of the experiment.
fn sampling(settings: &Settings, protected: &Protected) -> floras_privacy::Sampling {
    let per_round = settings.clients.per_round.into();
    let total = match settings.clients.dropout.is_none() {
        true => settings.clients.total.into(),
        false => per_round,
    };
    protected.unit().sampling(per_round, total, floras_core::Neighbours::ReplaceOne)
}

/// Rounds of an experiment.
struct Drawn {
    settings: Settings,
    parameters: Option<usize>,
    rounds: Vec<DrawnRound>,
}

/// A round with the clients that send and those that were selected.
struct DrawnRound {
    trial: TrialId,
    number: u32,
    sending: Vec<u32>,
    selected: Vec<u32>,
}

impl Drawn {
    fn new(settings: &Settings, scope: Scope) -> Result<Self, SimError> {
        let dropouts = Dropouts::open(settings)?;
        let of_trace = settings.uplink.radio().is_some_and(|radio| radio.trace().is_some());
        let mut rounds = Vec::new();
        for number in 0..ROUNDS {
            let (trial, number) = match of_trace {
                true if number / settings.rounds >= settings.trials => break,
                true => (TrialId::from((number / settings.rounds) as u16), number % settings.rounds + 1),
                false => (Domain::Estimate.trial(0), number + 1),
            };
            let selected = select(settings, trial, number);
            let in_run = (number - 1) % settings.rounds + 1;
            let sending = dropouts.senders(settings.seed, trial, in_run, &selected);
            if !sending.is_empty() {
                rounds.push(DrawnRound { trial, number, sending, selected });
            }
        }
        let Scope::Experiment { parameters } = scope else {
            return Err(wrong("scope", "an experiment", "none"));
        };
        Ok(Self { settings: settings.clone(), parameters, rounds })
    }

    /// The noise `ν'` of the drawn rounds, as the module's text defines it.
    fn typical_noise(&self, masks: Masks) -> Result<f64, SimError> {
        let masked = Settings { masks: Some(masks), ..self.settings.clone() };
        let uplink = masked.build_uplink(masked.seed)?;
        let can_lose = masked.uplink.scheme.has_outage() || !masked.clients.dropout.is_none();
        let (mut complete, mut with_loss) = (Vec::new(), Vec::new());
        for drawn in &self.rounds {
            let channel = self.realise(uplink.as_ref(), drawn, &drawn.sending)?;
            let is_complete = drawn.sending.len() == drawn.selected.len() && !channel.gains().contains(&0.0);
            let noise = if is_complete || !can_lose { &mut complete } else { &mut with_loss };
            noise.push(channel.noise_std());
        }
        if self.rounds.is_empty() {
            return Err(wrong("clients.dropout", "such that some client sends in some round", "all silent"));
        }
        if !can_lose || complete.is_empty() {
            complete.append(&mut with_loss);
            return Ok(median(complete));
        }
        let losses = with_loss.len().max(1) as f64 / self.rounds.len() as f64;
        if with_loss.is_empty() {
            // A lost update is one that was not sent.
            for drawn in self.rounds.iter().filter(|drawn| drawn.sending.len() > 1).take(LOSSES) {
                with_loss.push(self.realise(uplink.as_ref(), drawn, &drawn.sending[1..])?.noise_std());
            }
        }
        let power = |noise: Vec<f64>| if noise.is_empty() { 0.0 } else { median(noise).powi(2) };
        Ok(((1.0 - losses) * power(complete) + losses * power(with_loss)).sqrt())
    }

    fn realise(
        &self,
        uplink: &dyn Uplink,
        drawn: &DrawnRound,
        sending: &[u32],
    ) -> Result<EffectiveChannel, SimError> {
        let round = Round::new(self.settings.seed, drawn.trial, drawn.number, sending)?;
        let round = round.with_selected(&drawn.selected)?;
        let round = self.parameters.map_or(round, |parameters| round.with_parameters(parameters));
        Ok(uplink.realise(&round)?)
    }
}

/// The median of at least one number.
fn median(mut numbers: Vec<f64>) -> f64 {
    let middle = numbers.len() / 2;
    *numbers.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inquiry::{Find, calibrate_experiment};

    fn builder(assignments: &[&str]) -> ExperimentBuilder {
        let new = ExperimentBuilder::new().set("uplink.receiver", "paper").unwrap().rounds(40);
        assignments.iter().fold(new, |builder, assignment| builder.assign(assignment).unwrap())
    }

    fn found(assignments: &[&str]) -> ExperimentCalibration {
        calibrate_experiment(&builder(assignments), 8.0, View::RawSignal, Find::Masks).unwrap()
    }

    #[test]
    fn what_is_found_meets_the_epsilon_closely() {
        for assignments in [
            &["uplink.sequences=20", "uplink.receiver=mmse"][..],
            &["uplink.sequences=20", "uplink.receiver=mmse", "uplink.power=unit", "masks.colluding=3"],
            &["clients.total=200", "uplink.sequences=20", "uplink.receiver=mmse", "rounds=5"],
            &["uplink.scheme=channel-inversion", "clients.dropout=0.1"],
            &["uplink.scheme=ideal"],
            // The receiver's noise protects more than masks for this ε would.
            &[
                "uplink.scheme=broadband-inversion",
                "uplink.admission=amplitude=0.3",
                "uplink.power=unit",
                "uplink.snr_db=0",
            ],
        ] {
            let calibration = found(assignments);
            let epsilon = calibration.epsilon.unwrap();
            assert!(epsilon <= 8.0 && epsilon > 0.99 * 8.0, "{assignments:?}: {epsilon}");
            let fragment = calibration.fragment.unwrap();
            let lines = fragment.lines().skip(1).map(|line| format!("masks.{}", line.replace(' ', "")));
            let again = lines.fold(builder(assignments), |builder, line| builder.assign(&line).unwrap());
            let account = ExperimentAccount::new(&again.build().unwrap()).unwrap();
            assert_eq!(account.epsilon(View::RawSignal).unwrap(), Some(epsilon), "{assignments:?}");
        }
    }

    /// Exact sums cancel masks: the noise is that of a trusted server, up to what large masks leave.
    #[test]
    fn an_exact_sum_has_central_noise() {
        let masks = found(&["uplink.scheme=ideal"]).masks.unwrap();
        let ratio = masks.decoded_noise_std / masks.central_noise_std;
        assert!((1.0 - 1e-9..1.001).contains(&ratio), "{ratio}");
    }

    /// Updates are lost in fewer than half of these rounds, or in none of those that are drawn. The masks that are best without a loss
    /// have a standard deviation above 1,000.
    #[test]
    fn rare_losses_limit_the_masks() {
        let digital = ["uplink.scheme=digital", "uplink.levels=0", "uplink.rate=0.5"];
        for assignments in [
            [&digital[..], &["uplink.snr_db=10"]].concat(),
            [&digital[..], &["uplink.snr_db=50"]].concat(),
            vec!["uplink.scheme=ideal", "clients.dropout=0.005"],
            vec!["uplink.scheme=ideal", "clients.dropout=0.00001"],
        ] {
            let masks = found(&assignments).masks.unwrap();
            let ratio = masks.decoded_noise_std / masks.central_noise_std;
            let is_limited = masks.mask_std > 0.0 && masks.mask_std < 100.0;
            assert!(is_limited && (1.0..4.0).contains(&ratio), "{assignments:?}: {masks:?}");
        }
    }

    #[test]
    fn masks_that_cannot_be_found_say_why() {
        let refusal = |assignments: &[&str], view| {
            calibrate_experiment(&builder(assignments), 8.0, view, Find::Masks).unwrap_err().to_string()
        };
        assert!(refusal(&[], View::Actual).contains("view must be raw-signal"));
        assert!(
            refusal(&["privacy.clip=none"], View::RawSignal).starts_with("privacy.clip must be a number")
        );
        assert!(refusal(&["privacy.normalise=paper"], View::RawSignal).contains("privacy.normalise must be"));
        assert!(
            refusal(&["masks.colluding=19"], View::RawSignal).contains("masks.colluding must be at most 18")
        );
    }
}
