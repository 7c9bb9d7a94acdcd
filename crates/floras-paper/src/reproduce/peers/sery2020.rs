//! GBMA: gradient descent over a fading channel with phase correction only.
//!
//! `N` nodes send their gradients at the energy `E_N`. The edge receives `Σ_n |h_n|·∇f_n(w)` in noise, and takes the step
//! `w ← w − (β/N)·Σ_n g_n·∇f_n(w) − (β/N)·ν·z` with `g_n = |h_n|/E|h|` and `ν = σ/(√E_N·E|h|)`. The fading contributes an error of order
//! `1/N`, the noise one of order `1/(E_N·N²)`.
//!
//! # Citations
//! Sery, Cohen, *On analog gradient descent learning over multiple access fading channels*, IEEE TSP 68 (2020), arXiv:1908.07463.

use floras_core::{Fading, Fidelity, NoiseReference, PhaseError, Snr, SnrConvention};
use floras_phy::{PhaseCorrected, PhaseCorrectedSettings, Round, transmit};
use floras_sim::SimError;
use floras_sim::figure::{Figure, Panel, Style};
use floras_sim::number::{decimal, signed};

use super::super::finding::{Finding, is_below_zero};
use super::super::workbench::{Stage, Workbench};
use super::regression::{Regression, Symmetric, norm};
use super::{axis, choices, exact, measured_logarithms, slope};

const PARAMETERS: usize = 10;
/// Samples of a node.
const SAMPLES: u32 = 20;
const LABEL_NOISE_STD: f64 = 1.0;
/// The step size `β`.
const STEP: f64 = 0.2;
const ITERATIONS: u32 = 40;
/// SNR at the energy 1.
const SNR_DB: f64 = 10.0;
/// Numbers of nodes; the small version leaves out the last.
const NODES: [u32; 7] = [10, 20, 50, 100, 200, 500, 1000];
/// Curves over the iterations are shown for these.
const SHOWN: [u32; 3] = [10, 100, 1000];
/// The squared error, relative to its start, that marks the end of the convergence.
const CONVERGED: f64 = 0.01;

/// How the energy `E_N` of a node depends on the number of nodes. All have the energy 1 at the smallest number.
const ENERGIES: [(&str, i32); 3] = [("E = 1", 0), ("E ∝ 1/N", -1), ("E ∝ 1/N²", -2)];

/// Nodes with their local quadratic losses `f_n(w) = ½·wᵀH_n·w − b_nᵀw`.
struct Network {
    hessians: Vec<Symmetric>,
    linear: Vec<Vec<f64>>,
    /// The minimum of the sum.
    optimum: Vec<f64>,
}

/// The squared errors `‖w_t − w*‖²/‖w*‖²` of one trial, by iteration from 0.
type Errors = Vec<f64>;

/// All runs with one number of nodes, one entry per trial.
struct Size {
    nodes: u32,
    descent: Vec<Errors>,
    /// By the index of the energy.
    over_air: Vec<Vec<Errors>>,
}

/// Computes the figure.
pub(in super::super) fn sery2020(bench: &Workbench<'_>, seed: u64) -> Result<Figure, SimError> {
    let (trials, sizes) = if bench.quick { (5, &NODES[..6]) } else { (30, &NODES[..]) };
    let mut results = Vec::new();
    for &nodes in sizes {
        (bench.watch)(Stage::Working(&format!("GBMA with {nodes} nodes (Sery, Cohen 2020)")));
        results.push(Size::run(seed, nodes, trials)?);
    }
    let slopes: Vec<Vec<f64>> = (0..ENERGIES.len()).map(|energy| slopes(&results, energy)).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let largest = &results[results.len() - 1];
    let text = format!(
        "A linear regression over Rayleigh channels: every node sends its gradient with its phase corrected and without power control. The \
         error falls at the rate of centralised gradient descent until it reaches a floor. With the same energy per node the floor falls \
         with the power {} of the number of nodes; with the same energy of all nodes together, {}. If the energy of a node falls with 1/N², \
         the noise remains, and the power is {}.",
        signed(mean(&slopes[0]), 2),
        signed(mean(&slopes[1]), 2),
        signed(mean(&slopes[2]), 2)
    );
    Ok(Figure {
        name: "sery2020".to_owned(),
        title: "Sery and Cohen 2020: gradient descent over fading channels in large networks".to_owned(),
        text: vec![text],
        conventions: conventions(),
        panels: vec![iterations_panel(&results), floor_panel(&results)],
        claims: vec![
            Finding {
                claim: "Abstract: GBMA approaches the convergence of centralised gradient descent in large networks (exponent of the \
                        excess error in N)",
                published: None,
                ours: slopes[0].clone(),
                unit: "",
                agrees: &is_below_zero,
                reason: "squared error after the last iteration, less that of gradient descent; 1/N is expected of the fading".to_owned(),
            }
            .judge(),
            Finding {
                claim: "Abstract: GBMA approaches the convergence rate of centralised gradient descent (iterations to 1% of the squared \
                        error, GBMA minus gradient descent, in the largest network)",
                published: Some(0.0),
                ours: largest.delays(),
                unit: "iterations",
                agrees: &is_within_one,
                reason: format!("{} nodes; no difference means less than one iteration", largest.nodes),
            }
            .judge(),
            Finding {
                claim: "Abstract: the energy of a node may fall with N while the convergence approaches the centralised one (the same for \
                        E ∝ 1/N: all nodes together have a constant energy)",
                published: None,
                ours: slopes[1].clone(),
                unit: "",
                agrees: &is_below_zero,
                reason: "the noise contributes 1/(E·N²) = 1/N as well".to_owned(),
            }
            .judge(),
        ],
        privacy: Vec::new(),
        notes: vec![
            super::ABSTRACT_ONLY.to_owned(),
            "Not compared: the bounds for convex losses without strong convexity, and the experiments with real data.".to_owned(),
        ],
    })
}

fn conventions() -> Vec<(String, String)> {
    let data = format!(
        "{PARAMETERS} standard normal features, {SAMPLES} samples per node, label noise 1, generated"
    );
    let step = format!("β = {}, {ITERATIONS} iterations from 0", decimal(STEP));
    choices(&[
        ("task", "linear regression"),
        ("data", &data),
        ("step size", &step),
        ("fading", "Rayleigh, new in every iteration, exact phase correction"),
        ("SNR at E = 1", "10 dB; the energy is 1 at 10 nodes under every scaling"),
    ])
}

/// Whether an interval lies within ±1: `Some(true)`; outside: `Some(false)`.
fn is_within_one(mean: f64, half: f64) -> Option<bool> {
    match mean.abs() {
        mean if mean + half < 1.0 => Some(true),
        mean if mean - half >= 1.0 => Some(false),
        _ => None,
    }
}

impl Network {
    fn generate(seed: u64, trial: u16, nodes: u32) -> Self {
        let weights = [0.5, -0.5, 0.5, -0.5, 0.5, -0.5, 0.5, -0.5, 0.5, -0.5];
        let data = Regression::generate(seed, trial, nodes * SAMPLES, &weights, LABEL_NOISE_STD);
        let samples = SAMPLES as usize;
        let moments = (0..nodes as usize).map(|node| data.moments(node * samples..(node + 1) * samples));
        let (hessians, linear): (Vec<Symmetric>, Vec<Vec<f64>>) = moments.unzip();
        let (mut sum, mut right) = (Symmetric::zero(PARAMETERS), vec![0.0; PARAMETERS]);
        for (hessian, linear) in hessians.iter().zip(&linear) {
            sum.add(hessian, 1.0);
            right.iter_mut().zip(linear).for_each(|(sum, value)| *sum += value);
        }
        Self { hessians, linear, optimum: sum.solve(&right) }
    }

    /// `∇f_n(w)` of every node.
    fn gradients(&self, model: &[f64]) -> Vec<Vec<f32>> {
        let gradient = |(hessian, linear): (&Symmetric, &Vec<f64>)| {
            hessian.times(model).iter().zip(linear).map(|(left, right)| (left - right) as f32).collect()
        };
        self.hessians.iter().zip(&self.linear).map(gradient).collect()
    }

    /// Gradient descent from 0 with the sums that `sum` makes of an iteration's gradients.
    fn descend(
        &self,
        mut sum: impl FnMut(u32, &[Vec<f32>]) -> Result<Vec<f32>, SimError>,
    ) -> Result<Errors, SimError> {
        let mut model = vec![0.0; PARAMETERS];
        let error = |model: &[f64]| {
            let difference: Vec<f64> = model.iter().zip(&self.optimum).map(|(w, best)| w - best).collect();
            (norm(&difference) / norm(&self.optimum)).powi(2)
        };
        let mut errors = vec![error(&model)];
        for iteration in 1..=ITERATIONS {
            let step = STEP / self.hessians.len() as f64;
            let sum = sum(iteration, &self.gradients(&model))?;
            model.iter_mut().zip(&sum).for_each(|(w, sum)| *w -= step * f64::from(*sum));
            errors.push(error(&model));
        }
        Ok(errors)
    }

    fn centralised(&self) -> Result<Errors, SimError> {
        self.descend(|_, gradients| {
            let add = |mut sum: Vec<f64>, gradient: &Vec<f32>| {
                sum.iter_mut().zip(gradient).for_each(|(sum, x)| *sum += f64::from(*x));
                sum
            };
            let sum = gradients.iter().fold(vec![0.0; PARAMETERS], add);
            Ok(sum.into_iter().map(|sum| sum as f32).collect())
        })
    }

    fn over_air(&self, uplink: &PhaseCorrected, seed: u64, trial: u16) -> Result<Errors, SimError> {
        let nodes: Vec<u32> = (0..self.hessians.len() as u32).collect();
        self.descend(|iteration, gradients| {
            let round = Round::new(seed, trial, iteration, &nodes)?;
            Ok(transmit(uplink, &round, gradients, Fidelity::Symbol)?.sum)
        })
    }
}

/// The uplink at a node's energy.
fn uplink(energy: f64) -> Result<PhaseCorrected, SimError> {
    Ok(PhaseCorrected::new(PhaseCorrectedSettings {
        phase_error: PhaseError::None,
        noise: NoiseReference::PerSymbol,
        length: 1,
        channels: Fading::Rayleigh.into(),
        snr: Snr::new(SNR_DB + 10.0 * energy.log10(), SnrConvention::Symbol)?,
    })?)
}

impl Size {
    fn run(seed: u64, nodes: u32, trials: u16) -> Result<Self, SimError> {
        let mut size = Self { nodes, descent: Vec::new(), over_air: vec![Vec::new(); ENERGIES.len()] };
        for trial in 0..trials {
            let network = Network::generate(seed, trial, nodes);
            size.descent.push(network.centralised()?);
            for ((_, power), runs) in ENERGIES.iter().zip(&mut size.over_air) {
                let energy = f64::from(nodes / NODES[0]).powi(*power);
                runs.push(network.over_air(&uplink(energy)?, seed, trial)?);
            }
        }
        Ok(size)
    }

    /// The last error of every trial, less that of gradient descent.
    fn excess(&self, energy: usize) -> Vec<f64> {
        let pairs = self.over_air[energy].iter().zip(&self.descent);
        pairs.map(|(air, descent)| air[air.len() - 1] - descent[descent.len() - 1]).collect()
    }

    /// Iterations to [`CONVERGED`], GBMA with the energy 1 minus gradient descent. A run that does not converge has all iterations.
    fn delays(&self) -> Vec<f64> {
        let iterations = |errors: &Errors| {
            let first = errors.iter().position(|&error| error <= CONVERGED * errors[0]);
            first.unwrap_or(errors.len()) as f64
        };
        let pairs = self.over_air[0].iter().zip(&self.descent);
        pairs.map(|(air, descent)| iterations(air) - iterations(descent)).collect()
    }
}

/// The exponent of the excess error in the number of nodes, for each trial.
fn slopes(sizes: &[Size], energy: usize) -> Vec<f64> {
    let excess: Vec<(f64, Vec<f64>)> =
        sizes.iter().map(|size| (f64::from(size.nodes), size.excess(energy))).collect();
    let trials = excess.first().map_or(0, |(_, excess)| excess.len());
    let of = |trial: usize| {
        let points = excess.iter().map(|(nodes, excess)| (nodes.log10(), excess[trial].log10()));
        slope(&points.collect::<Vec<_>>())
    };
    (0..trials).map(of).collect()
}

fn iterations_panel(sizes: &[Size]) -> Panel {
    let x: Vec<f64> = (0..=ITERATIONS).map(f64::from).collect();
    let at = |runs: &[Errors]| -> Vec<Vec<f64>> {
        (0..x.len()).map(|place| runs.iter().map(|errors| errors[place]).collect()).collect()
    };
    let mut curves: Vec<_> = sizes
        .iter()
        .filter(|size| SHOWN.contains(&size.nodes))
        .enumerate()
        .map(|(colour, size)| {
            let name = format!("GBMA, N = {}", size.nodes);
            measured_logarithms(&name, colour, Style::Solid, &x, &at(&size.over_air[0]))
        })
        .collect();
    if let Some(largest) = sizes.last() {
        let means = at(&largest.descent);
        let mean = means.iter().map(|values| values.iter().sum::<f64>() / values.len() as f64);
        let points = x.iter().copied().zip(mean);
        curves.push(exact("centralised gradient descent", curves.len(), Style::Dashed, points));
    }
    Panel {
        name: "sery2020-iterations".to_owned(),
        title: "Error by iteration, E = 1 (geometric mean)".to_owned(),
        x: axis("iteration", false),
        y: axis("squared error, relative to its start", true),
        curves,
    }
}

fn floor_panel(sizes: &[Size]) -> Panel {
    let x: Vec<f64> = sizes.iter().map(|size| f64::from(size.nodes)).collect();
    let curve = |(energy, (name, _)): (usize, &(&str, i32))| {
        let at: Vec<Vec<f64>> = sizes.iter().map(|size| size.excess(energy)).collect();
        measured_logarithms(name, energy, Style::Solid, &x, &at)
    };
    Panel {
        name: "sery2020-floor".to_owned(),
        title: "Floor of the error by nodes (geometric mean)".to_owned(),
        x: axis("number of nodes N", true),
        y: axis("excess of the squared error over gradient descent", true),
        curves: ENERGIES.iter().enumerate().map(curve).collect(),
    }
}

#[cfg(test)]
mod tests;
