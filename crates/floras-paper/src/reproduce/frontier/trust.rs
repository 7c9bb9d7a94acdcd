//! The frontier at equal trust: the same `ε` in the raw-signal view, and the same limit of power.
//!
//! The adversary is the base station, which stores its raw samples. Clients send symbols of unit power, including the masks and the
//! noise that they add to their updates. `Δ = 2C`, and `ν*` is the noise of a trusted server for the same `ε`.
//!
//! | protection | noise and masks of each of `K` clients | requirements |
//! |---|---|---|
//! | central optimum | nothing; the server adds `ν*` | a server that is trusted with every update |
//! | masks, `R` antennas | masks that cancel in the sum, and noise of its own | keys between clients |
//! | channel inversion | `ν*/√m` with `m` clients admitted | clients that know their channels and arrive in phase |
//! | local noise | `ν*` | – |
//!
//! Masks and local noise hold against an adversary who sees every transmitted symbol. Their standard deviations are those with the
//! least median noise in the decoded sum, by [`calibrate_experiment`].

use std::collections::BTreeMap;

use floras_core::{Masks, Modulation, Receiver, TransmitPower, View};
use floras_sim::figure::{Axis, Curve, Panel, PrivacyRow, Style};
use floras_sim::inquiry::{Find, calibrate_experiment};
use floras_sim::number::compact;
use floras_sim::schemes::{FlorasScheme, SchemeChoice};
use floras_sim::{Estimate, Experiment, ExperimentBuilder, Settings, SimError, VERSION};
use rayon::prelude::*;

use super::contest::{CommonSettings, Contender, Contest, TRUNCATE, inversion, loss, noise_ratios};
use super::{EPSILON, Grid, accuracy_axis, curve, epsilon_axis, noise_curves, ratio_axis};
use crate::reproduce::workbench::{RunRecord, Stage, Workbench};

/// `κ` of the receiver's weights `ĥ*/(‖ĥ‖² + κ·s²)`.
const KAPPA: f64 = 3.0;

/// File name of the stored masks.
const FILE: &str = "frontier-masks.json";

/// The protection of clients against the base station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protection {
    Central,
    Inversion,
    Masks { antennas: usize },
    LocalNoise,
}

impl Protection {
    pub(super) const ALL: [Self; 6] = [
        Self::Central,
        Self::Inversion,
        Self::Masks { antennas: 1 },
        Self::Masks { antennas: 2 },
        Self::Masks { antennas: 4 },
        Self::LocalNoise,
    ];

    /// Name in a legend.
    pub(super) fn words(self) -> String {
        match self {
            Self::Central => Contender::Central.words().to_owned(),
            Self::Inversion => Contender::Inversion.words().to_owned(),
            Self::Masks { antennas } => format!("masks, R = {antennas}"),
            Self::LocalNoise => "local noise".to_owned(),
        }
    }

    fn colour(self) -> usize {
        match self {
            Self::Central => Contender::Central.colour(),
            Self::Inversion => Contender::Inversion.colour(),
            Self::Masks { antennas } => 3 + antennas.ilog2() as usize,
            Self::LocalNoise => 6,
        }
    }

    /// Name in the names of runs.
    fn run_name(self, (clients, epsilon): (u32, u32)) -> String {
        let short = match self {
            Self::Central => "gaussian".to_owned(),
            Self::Inversion => "channel-inversion".to_owned(),
            Self::Masks { antennas } => format!("masks-r{antennas}"),
            Self::LocalNoise => "local-noise".to_owned(),
        };
        format!("frontier-trust-k{clients}-{short}-e{epsilon}")
    }
}

/// FLORAS with complex reception, `N = K`, and symbols of unit power.
pub(super) fn complex_reception(
    common: &CommonSettings,
    clients: u32,
    antennas: usize,
) -> Result<Settings, SimError> {
    let scheme = FlorasScheme {
        sequences: clients as usize,
        modulation: Modulation::Complex,
        receiver: Receiver::regularised(KAPPA)?,
        ..common.base.uplink.scheme.floras().cloned().unwrap_or_default()
    };
    let mut settings = at_unit_power(common, clients, scheme.into());
    settings.uplink.radio.antennas = antennas;
    Ok(settings)
}

/// A scheme with `L` the next power of two from `K` on.
fn at_unit_power(common: &CommonSettings, clients: u32, scheme: SchemeChoice) -> Settings {
    let length = u64::from(clients).next_power_of_two();
    let mut settings = common.settings(clients, (scheme, length), TRUNCATE);
    settings.uplink.radio.power = TransmitPower::Unit;
    settings
}

/// The same settings with the masks that meet `ε` in the raw-signal view with the least noise in the decoded sum.
pub(super) fn with_masks(settings: Settings, epsilon: u32) -> Result<Settings, SimError> {
    let text = Experiment::new(settings.clone())?.to_toml();
    let builder = ExperimentBuilder::parse("the frontier's experiment", &text)?;
    let found = calibrate_experiment(&builder, epsilon.into(), View::RawSignal, Find::Masks)?;
    let masks = found.masks.map(|found| Masks::new(found.mask_std, found.noise_std, found.colluding));
    Ok(Settings { masks: masks.transpose()?, ..settings })
}

/// The masks of every protection at every point, calibrated or read from the file of an earlier call.
fn calibrated(
    bench: &Workbench<'_>,
    common: &CommonSettings,
    planned: &[(Protection, (u32, u32))],
) -> Result<BTreeMap<String, Masks>, SimError> {
    let masked = |&(protection, point): &(Protection, (u32, u32))| match protection {
        Protection::Masks { antennas } => Some((protection.run_name(point), antennas, point)),
        Protection::Central | Protection::Inversion | Protection::LocalNoise => None,
    };
    let tasks: Vec<(String, usize, (u32, u32))> = planned.iter().filter_map(masked).collect();
    let keys: Vec<String> = tasks.iter().map(|(key, ..)| key.clone()).collect();
    let base = Experiment::new(common.base.clone())?.to_toml();
    bench.recall(FILE, format!("floras {VERSION}, κ = {KAPPA}\n{base}"), &keys, || {
        (bench.watch)(Stage::Working("calibrating the masks of every point"));
        let find = |(key, antennas, (clients, epsilon)): &(String, usize, (u32, u32))| {
            let settings = with_masks(complex_reception(common, *clients, *antennas)?, *epsilon)?;
            Ok(settings.masks.map(|masks| (key.clone(), masks)))
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(bench.threads).build()?;
        let found: Result<Vec<_>, SimError> =
            pool.install(|| tasks.par_iter().with_max_len(1).map(find).collect());
        Ok(found?.into_iter().flatten().collect())
    })
}

/// The experiment of a protection at a point; `None` for central noise, which has no radio.
fn experiment(
    contest: &Contest,
    masks: &BTreeMap<String, Masks>,
    (protection, (clients, epsilon)): (Protection, (u32, u32)),
) -> Result<Option<Experiment>, SimError> {
    let (common, noise_std) = (contest.common(), contest.terms().central_noise_std(epsilon)?);
    let (antennas, masks) = match protection {
        Protection::Central => return Ok(None),
        Protection::Inversion => {
            let settings = at_unit_power(common, clients, inversion(noise_std).into());
            return Ok(Some(Experiment::new(settings)?));
        }
        Protection::Masks { antennas } => {
            (antennas, masks.get(&protection.run_name((clients, epsilon))).copied())
        }
        Protection::LocalNoise => (1, Some(Masks::new(0.0, noise_std, 0)?)),
    };
    let settings = Settings { masks, ..complex_reception(common, clients, antennas)? };
    Ok(Some(Experiment::new(settings)?))
}

/// All results in the raw-signal view.
pub(super) struct Trust<'a> {
    contest: &'a Contest,
    runs: BTreeMap<String, (Experiment, RunRecord)>,
}

impl<'a> Trust<'a> {
    /// Calibrates and runs all points of a grid. The runs without noise and with central noise are taken from the contest.
    pub(super) fn measure(
        bench: &Workbench<'_>,
        grid: &Grid,
        contest: &'a Contest,
    ) -> Result<Self, SimError> {
        let points = grid.points();
        let pairs: Vec<(Protection, (u32, u32))> = grid
            .protections
            .iter()
            .flat_map(|&protection| points.iter().map(move |&point| (protection, point)))
            .collect();
        let masks = calibrated(bench, contest.common(), &pairs)?;
        let mut planned = BTreeMap::new();
        for (protection, point) in pairs {
            let experiment = experiment(contest, &masks, (protection, point))?;
            planned.extend(experiment.map(|experiment| (protection.run_name(point), experiment)));
        }
        Ok(Self { contest, runs: bench.run_all(planned)? })
    }

    pub(super) fn contest(&self) -> &Contest {
        self.contest
    }

    /// The run of a protection at a point.
    fn record(&self, protection: Protection, point: (u32, u32)) -> Option<&RunRecord> {
        match protection {
            Protection::Central => Some(self.contest.get(Contender::Central, View::Actual, point)?.record),
            _ => self.runs.get(&protection.run_name(point)).map(|(_, record)| record),
        }
    }

    fn settings(&self, protection: Protection, point: (u32, u32)) -> Option<&Settings> {
        self.runs.get(&protection.run_name(point)).map(|(experiment, _)| experiment.settings())
    }

    /// Masks and noise of the clients of a protection; `None` without masks and local noise.
    pub(super) fn masks(&self, protection: Protection, point: (u32, u32)) -> Option<Masks> {
        self.settings(protection, point)?.masks
    }

    /// Final test accuracy, from 0 to 1.
    pub(super) fn accuracy(&self, protection: Protection, point: (u32, u32)) -> Option<Estimate> {
        self.record(protection, point)?.accuracy()
    }

    /// Loss of final accuracy of a protection in points, compared with the same training without noise, trial by trial.
    pub(super) fn loss(&self, protection: Protection, point: (u32, u32)) -> Option<Estimate> {
        loss(self.contest.ideal_run(point.0)?, self.record(protection, point)?)
    }

    /// Noise relative to that of the central optimum: the median, and the value that one round in 100 exceeds. `None` for the optimum
    /// itself.
    pub(super) fn noise_ratios(&self, protection: Protection, point: (u32, u32)) -> Option<[f64; 2]> {
        let optimum = self.contest.terms().central_noise_std(point.1).ok()?;
        noise_ratios(self.settings(protection, point)?, self.contest.common().parameters, optimum).ok()
    }

    /// `ε` of a setting in the raw-signal view; for central noise, that of the sums that the server publishes.
    #[cfg(test)]
    pub(super) fn epsilon(&self, protection: Protection, point: (u32, u32)) -> Option<f64> {
        let view = if protection == Protection::Central { View::Actual } else { View::RawSignal };
        self.record(protection, point)?.summary.privacy.views.get(view)?.epsilon
    }

    /// The largest mean power of a symbol in any round.
    #[cfg(test)]
    pub(super) fn largest_power(&self, protection: Protection, point: (u32, u32)) -> Option<f64> {
        let rounds = self.record(protection, point)?.metrics.iter().filter_map(|round| round.power_mean);
        rounds.max_by(f64::total_cmp)
    }

    /// The plots: accuracy over `K` and over `ε`, and the noise relative to that of the central optimum.
    pub(super) fn panels(&self, grid: &Grid) -> Vec<Panel> {
        let mut panels = vec![self.clients_panel(grid)];
        panels.extend(grid.sweeps.iter().map(|&clients| self.epsilon_panel(grid, clients)));
        panels.push(self.noise_panel(grid));
        panels
    }

    fn accuracy_curves(&self, grid: &Grid, x: &[u32], point: impl Fn(u32) -> (u32, u32)) -> Vec<Curve> {
        let ideal = |x: u32| self.contest.ideal(point(x).0);
        let mut curves = vec![curve("no noise".to_owned(), 0, Style::Dotted, x, ideal)];
        curves.extend(grid.protections.iter().map(|&protection| {
            let y = |x: u32| self.accuracy(protection, point(x));
            // Channel inversion may coincide with central noise; a dashed curve keeps both visible.
            let style = if protection == Protection::Inversion { Style::Dashed } else { Style::Solid };
            curve(protection.words(), protection.colour(), style, x, y)
        }));
        curves
    }

    fn clients_panel(&self, grid: &Grid) -> Panel {
        Panel {
            name: "frontier-trust-clients".to_owned(),
            title: format!(
                "Accuracy at equal trust: ε = {EPSILON} in the raw-signal view after {} rounds, δ = {}",
                self.contest.rounds(),
                compact(self.contest.delta())
            ),
            x: clients_axis(),
            y: accuracy_axis(),
            curves: self.accuracy_curves(grid, grid.clients, |clients| (clients, EPSILON)),
        }
    }

    fn epsilon_panel(&self, grid: &Grid, clients: u32) -> Panel {
        Panel {
            name: format!("frontier-trust-epsilon-{clients}"),
            title: format!("Accuracy at equal trust, {clients} clients per round"),
            x: epsilon_axis(self.contest),
            y: accuracy_axis(),
            curves: self.accuracy_curves(grid, grid.epsilons, |epsilon| (clients, epsilon)),
        }
    }

    fn noise_panel(&self, grid: &Grid) -> Panel {
        let curves = |&protection: &Protection| {
            let ratios = |&clients: &u32| self.noise_ratios(protection, (clients, EPSILON));
            let ratios: Vec<Option<[f64; 2]>> = grid.clients.iter().map(ratios).collect();
            noise_curves(&protection.words(), protection.colour(), grid.clients, &ratios)
        };
        Panel {
            name: "frontier-trust-noise".to_owned(),
            title: format!(
                "Noise over that of the central optimum at equal trust: ε = {EPSILON} in the raw-signal view"
            ),
            x: clients_axis(),
            y: ratio_axis(),
            // The ratio of the central optimum is 1.
            curves: grid
                .protections
                .iter()
                .filter(|&&protection| protection != Protection::Central)
                .flat_map(curves)
                .collect(),
        }
    }

    /// Every view of the settings that meet [`EPSILON`] in the raw-signal view, for the example's clients.
    pub(super) fn privacy(&self, grid: &Grid) -> Vec<PrivacyRow> {
        let point = (grid.example, EPSILON);
        let row = |&protection: &Protection| {
            // Central noise has its row in the contest.
            self.settings(protection, point)?;
            let report = &self.record(protection, point)?.summary.privacy;
            let masks = self.masks(protection, point).map_or(String::new(), |masks| match masks.mask_std() {
                0.0 => format!(", σ_z = {:.3}", masks.noise_std()),
                mask_std => format!(", σ_m = {mask_std:.3}, σ_z = {:.3}", masks.noise_std()),
            });
            Some(PrivacyRow {
                curve: format!("{} at unit power, K = {}{masks}", protection.words(), grid.example),
                rounds: report.rounds,
                delta: report.delta,
                views: report.views.clone(),
            })
        };
        grid.protections.iter().filter_map(row).collect()
    }
}

fn clients_axis() -> Axis {
    Axis { label: "clients per round, K".to_owned(), logarithmic: true, range: None }
}

/// The settings of the comparison at equal trust.
pub(super) fn conventions() -> Vec<(String, String)> {
    [
        (
            "equal trust: power",
            "symbols of unit power, masks, local and artificial noise included; SNR refers to it".to_owned(),
        ),
        (
            "equal trust: masks and local noise",
            format!(
                "complex reception with R antennas, weights ĥ*/(‖ĥ‖² + {KAPPA}·s²), N = K; local noise with R = 1"
            ),
        ),
        (
            "equal trust: σ_m and σ_z",
            "those with the least median noise in the decoded sum of 200 drawn rounds, as `floras calibrate --find masks` \
             finds them"
                .to_owned(),
        ),
        (
            "equal trust: L",
            "the next power of two from K on, for channel inversion too, which has the same bandwidth".to_owned(),
        ),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .to_vec()
}

/// Notes on the comparison at equal trust.
pub(super) fn notes() -> Vec<String> {
    vec![
        "At equal trust, ε is that of the raw-signal view: the base station keeps its samples and knows all channels. The bound of \
         masks and of local noise also holds against an adversary who sees every transmitted symbol. That of channel inversion \
         does not: a client hides in the noise of the others, so that the base station must receive the sum alone, and \
         clients must know their channels to arrive in phase. Central noise needs a trusted server and has no raw-signal view."
            .to_owned(),
        "Masks are computational, and here no client reveals its keys or its noise to the base station. Clients draw their noise \
         themselves, and must do so honestly, with masks as with channel inversion."
            .to_owned(),
    ]
}
