//! `cargo xtask confirmations`: settings of the search on seeds that it did not use, with 20 trials, judged as the figures are.
//!
//! The setting of figures 4 and 5 is not among them: `floras reproduce` confirms it, and its verdicts are those of the chapter. The
//! others are here so that the chapter lists every confirmation that was run.

use anyhow::{Context, Result};
use floras_paper::reproduce::claims::{self, CurveClaim, Measure};
use floras_sim::figure::{Reproduction, Verdict};
use floras_sim::{Experiment, Federation, Status, Trial};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::conventions::{self, Convention, Task};
use crate::shell;

/// Where they are kept.
const TABLE: &str = "docs/reproduction/confirmations.csv";
const TRIALS: u16 = 20;

/// A setting with its rounds for the IID and the non-IID partition, and the seed that confirms it.
struct Setting {
    seed: u64,
    convention: Convention,
    rounds: [u32; 2],
}

/// What was confirmed, in the order in which it was run. The nearest with channel inversion not truncated and the nearest with one `T`
/// were the settings of the figures before; the third is the review's candidate, the fourth the nearest of all. The last is the setting
/// of the figures, from before losses were compared by how far they fell; the figures have another seed since.
fn settings() -> Vec<Setting> {
    let step = |rho, bound, snr, truncated| conventions::convention("step", rho, bound, snr, truncated);
    vec![
        Setting { seed: 101, convention: step(0.5, 96.0, "unit", false), rounds: [90, 530] },
        Setting { seed: 102, convention: step(1.0, 24.0, "unit", true), rounds: [270, 270] },
        Setting { seed: 104, convention: step(0.7, 30.0, "actual", true), rounds: [240, 240] },
        Setting { seed: 104, convention: step(0.5, 50.0, "actual", true), rounds: [30, 590] },
        Setting { seed: 104, convention: step(1.0, 24.0, "unit", true), rounds: [100, 270] },
        Setting { seed: 103, convention: step(0.7, 30.0, "actual", true), rounds: [100, 360] },
    ]
}

/// The result of a confirmation for one claim.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Confirmation {
    pub(crate) seed: u64,
    pub(crate) trials: u16,
    /// As in a [`Convention`].
    pub(crate) rho: f64,
    /// As in a [`Convention`].
    pub(crate) bound: f64,
    /// As in a [`Convention`].
    pub(crate) snr: String,
    /// As in a [`Convention`].
    pub(crate) inversion_truncated: bool,
    /// `T` of the IID and of the non-IID partition.
    pub(crate) rounds_iid: u32,
    pub(crate) rounds_noniid: u32,
    /// The paper's sentence.
    pub(crate) claim: String,
    /// In points, or percent of the decrease of a loss.
    pub(crate) ours: f64,
    /// Half the width of the 95% interval of `ours`.
    pub(crate) ci95: f64,
    pub(crate) verdict: Verdict,
}

/// Runs all of them, and writes the table.
pub(crate) fn run() -> Result<()> {
    let mut out = csv::Writer::from_path(shell::root().join(TABLE))?;
    for setting in settings() {
        println!("seed {}: {:?}, T = {:?}", setting.seed, setting.convention, setting.rounds);
        for confirmation in setting.confirm()? {
            println!(
                "  {}: {:.1} ± {:.1}, {}",
                confirmation.claim,
                confirmation.ours,
                confirmation.ci95,
                confirmation.verdict.words()
            );
            out.serialize(confirmation)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// What was recorded, one list of claims for each setting.
pub(crate) fn read() -> Result<Vec<Vec<Confirmation>>> {
    let mut table = csv::Reader::from_path(shell::root().join(TABLE)).context(TABLE)?;
    let all: Vec<Confirmation> = table.deserialize().collect::<Result<_, _>>().context(TABLE)?;
    Ok(all.chunks(claims::FIG4.len() + claims::FIG5.len()).map(<[_]>::to_vec).collect())
}

/// The same of the setting of the figures, from what `floras reproduce` wrote.
pub(crate) fn of_figures(made: &Reproduction, chosen: &conventions::Choice) -> Result<Vec<Confirmation>> {
    let all = || made.figures.iter().flat_map(|figure| &figure.claims);
    let confirmation = |claim: &CurveClaim| {
        let found = all().find(|found| found.claim == claim.claim).context(claim.claim)?;
        Ok(Confirmation {
            seed: made.seed,
            trials: TRIALS,
            rho: chosen.rho,
            bound: chosen.bound,
            snr: chosen.snr.clone(),
            inversion_truncated: chosen.inversion_truncated,
            rounds_iid: chosen.rounds_iid,
            rounds_noniid: chosen.rounds_noniid,
            claim: found.claim.clone(),
            ours: found.ours.context("a claim without a number")?,
            ci95: found.ci95.context("a claim without an interval")?,
            verdict: found.verdict,
        })
    };
    claims::FIG4.iter().chain(&claims::FIG5).map(confirmation).collect()
}

impl Setting {
    fn confirm(&self) -> Result<Vec<Confirmation>> {
        claims::FIG4.iter().chain(&claims::FIG5).map(|claim| self.judge(claim)).collect()
    }

    fn judge(&self, claim: &CurveClaim) -> Result<Confirmation> {
        let rounds = self.rounds[usize::from(claim.partition != "iid")];
        let finals = |curve: &str| {
            let task = task(curve).with_context(|| format!("no curve {curve}"))?;
            let experiment = self.convention.experiment_of(claim.partition, task, self.seed, rounds)?;
            finals(&experiment, claim.measure)
        };
        let (of, than) = (finals(claim.of)?, finals(claim.than)?);
        let differences: Vec<f64> =
            of.into_iter().zip(than).map(|(of, than)| claim.measure.difference(of, than)).collect();
        let judged = claim.judge(&differences);
        let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
        Ok(Confirmation {
            seed: self.seed,
            trials: TRIALS,
            rho: self.convention.rho,
            bound: self.convention.bound,
            snr: self.convention.snr.clone(),
            inversion_truncated: self.convention.inversion_truncated,
            rounds_iid: self.rounds[0],
            rounds_noniid: self.rounds[1],
            claim: judged.claim,
            ours: rounded(judged.ours.context("no trial finished")?),
            ci95: rounded(judged.ci95.context("one trial has no interval")?),
            verdict: judged.verdict,
        })
    }
}

/// The curve of figure 4 or 5 with a name.
fn task(curve: &str) -> Option<Task> {
    Some(match curve {
        "FLORAS 0 dB" => ("floras", 0.0, 20, 50),
        "FLORAS 15 dB" => ("floras", 15.0, 20, 50),
        "channel inversion 0 dB" => ("channel-inversion", 0.0, 20, 50),
        "channel inversion 15 dB" => ("channel-inversion", 15.0, 20, 50),
        "γ = 0" => ("floras", 20.0, 20, 20),
        "γ = 1" => ("floras", 20.0, 21, 20),
        "γ = 5" => ("floras", 20.0, 25, 20),
        "γ = 10" => ("floras", 20.0, 30, 20),
        _ => return None,
    })
}

/// The last value of every trial.
fn finals(experiment: &Experiment, measure: Measure) -> Result<Vec<f64>> {
    let federation = Federation::new(experiment)?;
    let last = |number: u16| -> Result<f64> {
        let mut trial = Trial::begin(&federation, number)?;
        let mut last = None;
        while trial.status() == Status::Running {
            let metrics = trial.step()?.metrics;
            last = match measure {
                Measure::Accuracy => metrics.test_accuracy,
                Measure::Loss => metrics.train_loss,
            };
        }
        last.context("the last round was not measured")
    };
    (0..TRIALS).into_par_iter().map(last).collect()
}
