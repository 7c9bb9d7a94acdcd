//! COTAF: time-varying precoding against fixed precoding and error-free aggregation.
//!
//! Fixed precoding scales all updates of a run by the same constant, which the longest update allows. COTAF scales those of each round by
//! the longest of the round, so that the noise shrinks with the updates.
//!
//! # Citations
//! Sery, Shlezinger, Cohen, Eldar, *Over-the-air federated learning from heterogeneous data*, IEEE TSP 69 (2021), arXiv:2009.12787.

use std::collections::BTreeMap;

use floras_sim::figure::{Claim, Figure, Panel, Style};
use floras_sim::number::{decimal, signed};
use floras_sim::{Estimate, Experiment, ExperimentBuilder, RoundMetrics, SimError};

use super::super::claims::{CurveClaim, Measure};
use super::super::finding::{Finding, is_above_zero, is_below_zero};
use super::super::workbench::{RunRecord, Stage, Workbench};
use super::{axis, choices, measured};

const FILE: &str = include_str!("../../../peers/sery2021.toml");
const SNRS: [f64; 6] = [-20.0, -15.0, -10.0, -5.0, 0.0, 5.0];
/// The SNR of the claims.
const SNR_DB: f64 = -15.0;
const QUICK_TRIALS: u32 = 5;
/// Partitions, as in an experiment file and in words.
const PARTITIONS: [(&str, &str); 2] = [("iid", "homogeneous"), ("one-label", "heterogeneous")];
/// Name, settings as key and value, and line style.
type Compared = (&'static str, &'static [(&'static str, &'static str)], Style);

const SCHEMES: [Compared; 3] = [
    ("error-free", &[("uplink.scheme", "ideal")], Style::Dotted),
    ("COTAF", &[("uplink.scheme", "cotaf")], Style::Solid),
    (
        "fixed precoding",
        &[
            ("uplink.scheme", "channel-inversion"),
            ("uplink.power", "unit"),
            ("uplink.power_rule", "fixed-at-threshold"),
        ],
        Style::Dashed,
    ),
];
const IDEAL: usize = 0;
const COTAF: usize = 1;
const FIXED: usize = 2;

/// All runs, by partition, scheme and the index of the SNR.
struct Runs(BTreeMap<String, (Experiment, RunRecord)>);

/// Computes the figure.
pub(in super::super) fn sery2021(bench: &Workbench<'_>) -> Result<Figure, SimError> {
    (bench.watch)(Stage::Working("COTAF (Sery, Shlezinger, Cohen, Eldar 2021)"));
    let mut planned = BTreeMap::new();
    for (partition, _) in PARTITIONS {
        for scheme in 0..SCHEMES.len() {
            for snr in 0..SNRS.len() {
                planned
                    .insert(name(partition, scheme, snr), experiment(partition, scheme, snr, bench.quick)?);
            }
        }
    }
    let runs = Runs(bench.run_all(planned)?);
    let snr = SNRS.iter().position(|&snr| snr == SNR_DB).unwrap_or(0);
    let gap = |(partition, words): (&str, &str), than| {
        let estimate = Estimate::of(&runs.differences(partition, COTAF, than, snr));
        let text = estimate.map_or("–".to_owned(), |estimate| signed(estimate.mean, 1));
        format!("{text} ({words})")
    };
    let text = format!(
        "Local SGD over a channel without fading. At {} dB, the final test accuracy of COTAF differs from that of error-free aggregation by {} \
         and {} points, and from that of fixed precoding by {} and {} points.",
        decimal(SNR_DB),
        gap(PARTITIONS[0], IDEAL),
        gap(PARTITIONS[1], IDEAL),
        gap(PARTITIONS[0], FIXED),
        gap(PARTITIONS[1], FIXED)
    );
    let mut claims = vec![runs.noise_claim(snr)];
    for partition in PARTITIONS {
        claims.extend(runs.accuracy_claims(partition, snr));
    }
    Ok(Figure {
        name: "sery2021".to_owned(),
        title: "Sery, Shlezinger, Cohen and Eldar 2021: time-varying precoding".to_owned(),
        text: vec![text],
        conventions: choices(&[
            ("task", "logistic regression on digits20, 20 clients with 200 samples each"),
            ("heterogeneous", "every client has one label"),
            ("local work", "5 steps of SGD with batches of 20, η = 2/(0.4·(t + 10)), 100 rounds"),
            ("channel", "no fading; the SNR is that of one client at unit power"),
            ("fixed precoding", "the constant that allows updates of norm 3; the longest of a run has 2.8"),
            ("SNR of the claims", "−15 dB, chosen where noise matters to fixed precoding"),
        ]),
        panels: PARTITIONS.map(|partition| runs.panel(partition)).to_vec(),
        claims,
        privacy: Vec::new(),
        notes: vec![
            super::ABSTRACT_ONLY.to_owned(),
            "Not compared: the paper's data sets, the neural network, fading, and the bound on the convergence rate.".to_owned(),
        ],
    })
}

fn name(partition: &str, scheme: usize, snr: usize) -> String {
    format!("sery2021-{partition}-{}-{}", SCHEMES[scheme].0.replace(' ', "-"), SNRS[snr])
        .replace("--", "-minus-")
}

fn experiment(partition: &str, scheme: usize, snr: usize, quick: bool) -> Result<Experiment, SimError> {
    let mut builder = ExperimentBuilder::parse("sery2021", FILE)?
        .set("data.partition", partition)?
        .set_to("uplink.snr_db", SNRS[snr])?;
    for (key, value) in SCHEMES[scheme].1 {
        builder = builder.set(key, value)?;
    }
    if quick {
        builder = builder.trials(QUICK_TRIALS);
    }
    Ok(builder.build()?)
}

impl Runs {
    fn record(&self, partition: &str, scheme: usize, snr: usize) -> Option<&RunRecord> {
        self.0.get(&name(partition, scheme, snr)).map(|(_, record)| record)
    }

    /// Final accuracies in percent, one for each trial.
    fn accuracies(&self, partition: &str, scheme: usize, snr: usize) -> Vec<f64> {
        let accuracies = self.record(partition, scheme, snr).map(RunRecord::accuracies).unwrap_or_default();
        accuracies.into_iter().map(|accuracy| 100.0 * accuracy).collect()
    }

    /// Differences of the final accuracy in points, trial by trial.
    fn differences(&self, partition: &str, of: usize, than: usize, snr: usize) -> Vec<f64> {
        let [of, than] = [of, than].map(|scheme| self.accuracies(partition, scheme, snr));
        of.iter().zip(&than).map(|(of, than)| of - than).collect()
    }

    fn accuracy_claims(&self, (partition, words): (&'static str, &str), snr: usize) -> [Claim; 2] {
        let (similar, improved) = match partition {
            "iid" => (
                "Abstract: COTAF converges at a rate similar to that over error-free channels (points of final accuracy, homogeneous data)",
                "Abstract: COTAF improves on over-the-air local SGD without its precoding (points of final accuracy, homogeneous data)",
            ),
            _ => (
                "Abstract: COTAF converges at a rate similar to that over error-free channels (points of final accuracy, heterogeneous data)",
                "Abstract: COTAF improves on over-the-air local SGD without its precoding (points of final accuracy, heterogeneous data)",
            ),
        };
        let no_effect = CurveClaim {
            claim: similar,
            measure: Measure::Accuracy,
            published: 0.0,
            partition,
            of: SCHEMES[COTAF].0,
            than: SCHEMES[IDEAL].0,
        };
        let effect = Finding {
            claim: improved,
            published: None,
            ours: self.differences(partition, COTAF, FIXED, snr),
            unit: "points",
            agrees: &is_above_zero,
            reason: format!("{words} data at {} dB", decimal(SNR_DB)),
        };
        [no_effect.judge(&self.differences(partition, COTAF, IDEAL, snr)), effect.judge()]
    }

    /// The noise in the last round over that in the first, in dB, for each trial.
    fn noise_claim(&self, snr: usize) -> Claim {
        let change = |record: &RunRecord| -> Vec<f64> {
            let noise = |lines: &[&RoundMetrics]| {
                let noise = |line: &&RoundMetrics| line.noise_std;
                Some(20.0 * (lines.last().and_then(noise)? / lines.first().and_then(noise)?).log10())
            };
            let trials = 0..record.summary.trials.len() as u32;
            let lines = |trial| record.metrics.iter().filter(|line| line.trial == trial).collect::<Vec<_>>();
            trials.filter_map(|trial| noise(&lines(trial))).collect()
        };
        Finding {
            claim: "Abstract: precoding and scaling gradually mitigate the effect of the noise (noise in the last round over that in the \
                    first in dB, heterogeneous data)",
            published: None,
            ours: self.record(PARTITIONS[1].0, COTAF, snr).map(change).unwrap_or_default(),
            unit: "dB",
            agrees: &is_below_zero,
            reason: "the scale follows the longest update of the round".to_owned(),
        }
        .judge()
    }

    fn panel(&self, (partition, words): (&str, &str)) -> Panel {
        let curve = |(scheme, (name, _, style)): (usize, &Compared)| {
            let at: Vec<Vec<f64>> =
                (0..SNRS.len()).map(|snr| self.accuracies(partition, scheme, snr)).collect();
            measured(name, scheme, *style, &SNRS, &at)
        };
        Panel {
            name: format!("sery2021-{partition}"),
            title: format!("Final accuracy, {words} data"),
            x: axis("SNR (dB)", false),
            y: axis("test accuracy (%)", false),
            curves: SCHEMES.iter().enumerate().map(curve).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use floras_core::{Admission, Fading, Snr, SnrConvention};
    use floras_phy::{Aggregation, Cotaf, CotafSettings, Round};

    use super::*;

    #[test]
    fn experiments_differ_in_their_uplink_alone() {
        for (partition, _) in PARTITIONS {
            let settings =
                [IDEAL, COTAF, FIXED].map(|scheme| experiment(partition, scheme, 2, true).unwrap());
            let rest = settings.each_ref().map(|experiment| {
                let settings = experiment.settings();
                (settings.seed, settings.rounds, settings.trials, settings.privacy.clip)
            });
            assert!(rest[0] == rest[1] && rest[1] == rest[2]);
        }
    }

    /// The noise of a round is `σ·max_k ‖x_k‖/(√d·θ)`.
    #[test]
    fn precoding_scales_noise_by_the_longest_update() {
        let uplink = Cotaf::new(CotafSettings {
            admission: Admission::at_amplitude(1.0).unwrap(),
            length: 1,
            channels: Fading::None.into(),
            snr: Snr::new(-10.0, SnrConvention::Symbol).unwrap(),
        })
        .unwrap();
        let round = Round::new(1, 0, 1, &[0, 1]).unwrap();
        let parameters = 40_000_usize;
        for length in [0.5_f64, 2.0] {
            let each = (length / (parameters as f64).sqrt()) as f32;
            let updates = [vec![each; parameters], vec![0.0; parameters]];
            let sum = Aggregation::default().run(&uplink, round, &updates).unwrap().sum;
            let noise = sum.iter().map(|x| f64::from(x - each).powi(2)).sum::<f64>() / parameters as f64;
            let expected = 10.0 * length * length / parameters as f64;
            // The relative standard error is √(2/40,000) = 0.7%.
            assert!((noise / expected - 1.0).abs() < 0.03, "{noise}, not {expected}");
        }
    }
}
