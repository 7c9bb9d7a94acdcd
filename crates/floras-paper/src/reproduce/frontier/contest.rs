//! The runs of the frontier: every contender at every point, and in every view.

use std::collections::BTreeMap;

use floras_core::random::Domain;
use floras_core::{Admission, NoiseReference, PowerRule, Receiver, View};
use floras_phy::Round;
use floras_sim::schemes::{ChannelInversionScheme, FlorasScheme, GaussianScheme, IdealScheme, SchemeChoice};
use floras_sim::{Estimate, Experiment, Federation, Radio, Settings, SimError, UplinkSettings};

use super::choice::{CLIPPED, Choice, Choices, MAX_LENGTH, Task, Terms};
use super::{Grid, VIEWS};
use crate::reproduce::workbench::{RunRecord, Workbench};

/// Truncation bound of decoded values, in units of `K·C/√d`: the size of each value if all clients send the same update.
pub(super) const TRUNCATE: f64 = 3.0;
/// Alternative truncation bound for the paper's receiver; the better of the two is reported.
const TRUNCATE_HARDER: f64 = 1.0;
/// Number of rounds that are simulated to measure the noise.
const NOISE_ROUNDS: u32 = 1000;

/// The schemes and receivers that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Contender {
    Central,
    Inversion,
    Clipped,
    Mmse,
    Paper,
}

impl Contender {
    pub(super) const ALL: [Self; 5] =
        [Self::Central, Self::Inversion, Self::Clipped, Self::Mmse, Self::Paper];

    /// Name in a legend.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Central => "central Gaussian",
            Self::Inversion => "channel inversion",
            Self::Clipped => "FLORAS, clipped",
            Self::Mmse => "FLORAS, MMSE",
            Self::Paper => "FLORAS, paper",
        }
    }

    pub(super) fn colour(self) -> usize {
        1 + self as usize
    }

    /// Name in the names of runs.
    fn short(self) -> &'static str {
        match self {
            Self::Central => "gaussian",
            Self::Inversion => "channel-inversion",
            Self::Clipped => "clipped",
            Self::Mmse => "mmse",
            Self::Paper => "paper",
        }
    }

    /// The receiver, for FLORAS.
    pub(super) fn receiver(self) -> Option<Receiver> {
        match self {
            Self::Central | Self::Inversion => None,
            Self::Clipped => Some(CLIPPED),
            Self::Mmse => Some(Receiver::Mmse),
            Self::Paper => Some(Receiver::Paper),
        }
    }
}

/// One contender at one point.
pub(super) struct Measured<'a> {
    pub(super) record: &'a RunRecord,
    /// Number and length of the sequences, for FLORAS.
    pub(super) choice: Option<Choice>,
    experiment: &'a Experiment,
}

/// Noise in the decoded sum of `parameters = d` values, relative to `optimum`: the median, and the value that one round in 100
/// exceeds. The rounds are simulated separately from those of training and calibration.
pub(super) fn noise_ratios(
    settings: &Settings,
    parameters: usize,
    optimum: f64,
) -> Result<[f64; 2], SimError> {
    let uplink = settings.build_uplink(settings.seed)?;
    let everyone: Vec<u32> = (0..settings.clients.per_round).collect();
    let draw = |number: u32| -> Result<f64, SimError> {
        let round = Round::new(settings.seed, Domain::Comparison.trial(0), number + 1, &everyone)?;
        Ok(uplink.realise(&round.with_parameters(parameters))?.noise_std())
    };
    let mut noise = (0..NOISE_ROUNDS).map(draw).collect::<Result<Vec<f64>, SimError>>()?;
    noise.sort_by(f64::total_cmp);
    Ok([0.5, 0.99].map(|quantile: f64| noise[(quantile * noise.len() as f64) as usize] / optimum))
}

/// Loss of final accuracy in points, compared with the same training without noise, trial by trial.
pub(super) fn loss(ideal: &RunRecord, ours: &RunRecord) -> Option<Estimate> {
    let (ideal, ours) = (ideal.accuracies(), ours.accuracies());
    let lost: Vec<f64> = ideal.iter().zip(&ours).map(|(ideal, ours)| 100.0 * (ideal - ours)).collect();
    Estimate::of(&lost)
}

fn mean(record: &RunRecord) -> f64 {
    record.accuracy().map_or(0.0, |estimate| estimate.mean)
}

/// All results of the comparison.
pub(super) struct Contest {
    settings: Settings,
    terms: Terms,
    choices: Choices,
    common: CommonSettings,
    runs: BTreeMap<String, (Experiment, RunRecord)>,
}

impl Contest {
    /// Runs all points of a grid.
    pub(super) fn run(bench: &Workbench<'_>, grid: &Grid) -> Result<Self, SimError> {
        let experiment =
            Experiment::parse("the frontier's experiment", crate::reproduce::preset("frontier"))?;
        let settings = experiment.settings().clone();
        let terms = Terms::of(&settings);
        let points = grid.points();
        let tasks: Vec<Task> = points.iter().flat_map(|&point| tasks_of(grid, point)).collect();
        let choices = Choices::make(bench, &terms, &tasks)?;
        let parameters = Federation::new(&experiment)?.model().parameters();
        let common = CommonSettings { base: settings.clone(), trials: grid.trials, parameters };
        let mut planned = BTreeMap::new();
        for &(clients, epsilon) in &points {
            let (name, experiment) = common.ideal(clients)?;
            planned.insert(name, experiment);
            for &contender in grid.contenders {
                for (view, _) in VIEWS {
                    planned.extend(common.entries(contender, view, (clients, epsilon), &choices, &terms)?);
                }
            }
        }
        let runs = bench.run_all(planned)?;
        Ok(Self { settings, terms, choices, common, runs })
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(super) fn common(&self) -> &CommonSettings {
        &self.common
    }

    pub(super) fn terms(&self) -> &Terms {
        &self.terms
    }

    pub(super) fn rounds(&self) -> u32 {
        self.settings.rounds
    }

    pub(super) fn delta(&self) -> f64 {
        self.settings.privacy.delta
    }

    /// The results of a contender at a point; `None` if no setting meets the `ε`. Of several truncations, the best one is returned.
    pub(super) fn get(&self, contender: Contender, view: View, point: (u32, u32)) -> Option<Measured<'_>> {
        let entries = self.common.entries(contender, view, point, &self.choices, &self.terms).ok()?;
        let runs = entries.iter().filter_map(|(name, _)| self.runs.get(name));
        let (experiment, record) = runs.max_by(|(_, a), (_, b)| mean(a).total_cmp(&mean(b)))?;
        let choice =
            contender.receiver().and_then(|receiver| self.choices.get(&(receiver, point.0, point.1, view)));
        Some(Measured { record, choice, experiment })
    }

    pub(super) fn accuracy(&self, contender: Contender, view: View, point: (u32, u32)) -> Option<Estimate> {
        self.get(contender, view, point)?.record.accuracy()
    }

    /// The run without noise.
    pub(super) fn ideal_run(&self, clients: u32) -> Option<&RunRecord> {
        let (name, _) = self.common.ideal(clients).ok()?;
        self.runs.get(&name).map(|(_, record)| record)
    }

    /// The accuracy without noise.
    pub(super) fn ideal(&self, clients: u32) -> Option<Estimate> {
        self.ideal_run(clients)?.accuracy()
    }

    /// Loss of final accuracy of a contender in points, compared with the same training without noise, trial by trial.
    pub(super) fn loss(&self, contender: Contender, view: View, point: (u32, u32)) -> Option<Estimate> {
        loss(self.ideal_run(point.0)?, self.get(contender, view, point)?.record)
    }

    /// Noise relative to that of the central optimum: the median, and the value that one round in 100 exceeds.
    pub(super) fn noise_ratios(
        &self,
        contender: Contender,
        view: View,
        point: (u32, u32),
    ) -> Option<[f64; 2]> {
        let settings = self.get(contender, view, point)?.experiment.settings();
        noise_ratios(settings, self.common.parameters, self.terms.central_noise_std(point.1).ok()?).ok()
    }
}

/// Channel inversion whose clients add noise of standard deviation `artificial_noise_std` to the sum.
pub(super) fn inversion(artificial_noise_std: f64) -> ChannelInversionScheme {
    ChannelInversionScheme {
        admission: Admission::default(),
        power_rule: PowerRule::WorstAdmitted,
        noise: NoiseReference::SameBandwidth,
        artificial_noise_std,
    }
}

/// The calibrations that a point needs.
fn tasks_of(grid: &Grid, (clients, epsilon): (u32, u32)) -> Vec<Task> {
    let receivers = grid.contenders.iter().filter_map(|contender| contender.receiver());
    receivers.flat_map(|receiver| VIEWS.map(|(view, _)| (receiver, clients, epsilon, view))).collect()
}

/// The settings that all experiments share.
pub(super) struct CommonSettings {
    pub(super) base: Settings,
    pub(super) trials: u32,
    /// Number of model parameters, `d`.
    pub(super) parameters: usize,
}

impl CommonSettings {
    /// The frontier's experiment with `clients` clients and another scheme and sequence length; decoded values are truncated at
    /// a multiple of `K·C/√d`.
    pub(super) fn settings(
        &self,
        clients: u32,
        (scheme, length): (SchemeChoice, u64),
        multiple: f64,
    ) -> Settings {
        let clip = self.base.privacy.clip.unwrap_or(1.0);
        let bound = multiple * f64::from(clients) * clip / (self.parameters as f64).sqrt();
        let mut settings = Settings { trials: self.trials, ..self.base.clone() };
        (settings.clients.total, settings.clients.per_round) = (clients, clients);
        if scheme.uses_radio() {
            settings.uplink.radio.length = length as usize;
        } else {
            settings.uplink.radio = Radio::default();
        }
        settings.uplink = UplinkSettings { scheme, truncate: Some(bound), ..settings.uplink };
        settings
    }

    fn experiment(
        &self,
        clients: u32,
        scheme: (SchemeChoice, u64),
        multiple: f64,
    ) -> Result<Experiment, SimError> {
        Ok(Experiment::new(self.settings(clients, scheme, multiple))?)
    }

    fn ideal(&self, clients: u32) -> Result<(String, Experiment), SimError> {
        let experiment = self.experiment(clients, (IdealScheme {}.into(), 0), TRUNCATE)?;
        Ok((format!("frontier-k{clients}-ideal"), experiment))
    }

    /// The runs of a contender at a point: none if no setting meets the `ε`, and two if two truncations are tried. Views with the
    /// same setting share its run.
    fn entries(
        &self,
        contender: Contender,
        view: View,
        (clients, epsilon): (u32, u32),
        choices: &Choices,
        terms: &Terms,
    ) -> Result<Vec<(String, Experiment)>, SimError> {
        let noise_std = terms.central_noise_std(epsilon)?;
        let Some(floras) = self.base.uplink.scheme.floras() else { return Ok(Vec::new()) };
        let choice = |receiver| choices.get(&(receiver, clients, epsilon, view));
        let (scheme, name) = match contender.receiver() {
            None if contender == Contender::Central => {
                ((GaussianScheme { noise_std }.into(), 0), format!("{}-e{epsilon}", contender.short()))
            }
            None => {
                let of_clipped = choices.get(&(CLIPPED, clients, epsilon, View::Idealised));
                let length = of_clipped.map_or(MAX_LENGTH, |choice| choice.length);
                ((inversion(noise_std).into(), length), format!("{}-e{epsilon}", contender.short()))
            }
            Some(receiver) => {
                let Some(Choice { sequences, length, .. }) = choice(receiver) else { return Ok(Vec::new()) };
                let scheme = FlorasScheme { sequences: sequences as usize, receiver, ..floras.clone() };
                ((scheme.into(), length), format!("{}-n{sequences}-l{length}", contender.short()))
            }
        };
        let tried: &[(&str, f64)] = match contender {
            Contender::Paper => &[("-b", TRUNCATE), ("-h", TRUNCATE_HARDER)],
            Contender::Clipped | Contender::Mmse => &[("-b", TRUNCATE)],
            Contender::Central | Contender::Inversion => &[("", TRUNCATE)],
        };
        let entry = |&(letter, multiple): &(&str, f64)| {
            let experiment = self.experiment(clients, scheme.clone(), multiple)?;
            Ok((format!("frontier-k{clients}-{name}{letter}"), experiment))
        };
        tried.iter().map(entry).collect()
    }
}
