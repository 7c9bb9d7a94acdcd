//! Learning curves: one experiment per curve, and the panels and claims that use them.

use std::collections::BTreeMap;

use floras_sim::figure::{Axis, Claim, Curve, Panel, PrivacyRow, Style};
use floras_sim::{
    Cost, Estimate, Experiment, ExperimentBuilder, RoundMetrics, SimError, against, spent_by_round,
};

use super::Workbench;
use super::claims::{CurveClaim, Measure};
use super::workbench::RunRecord;

/// Beginning of the note on a condition that is not met, see [`floras_privacy::published::unmet_conditions`].
const UNMET: &str = "published: the theorems require K < min{N, M}";
/// Number of trials of the small version.
const QUICK_TRIALS: u32 = 3;

/// The paper's two partitions of the data, with the learning rate and the rounds of each.
pub(super) const PARTITIONS: [Partition; 2] = [
    Partition { key: "iid", words: "IID", rate: 0.005, rounds: None },
    Partition { key: "one-label", words: "non-IID", rate: 0.001, rounds: Some(360) },
];

/// A partition of the data among clients.
#[derive(Clone, Copy)]
pub(super) struct Partition {
    /// Name in an experiment file.
    pub(super) key: &'static str,
    /// Name in the paper.
    pub(super) words: &'static str,
    /// Learning rate `η`.
    rate: f64,
    /// Number of rounds `T`, if it differs from that of the figure's experiment file.
    pub(super) rounds: Option<u32>,
}

/// A curve to be drawn, and its experiment.
#[derive(Clone)]
pub(super) struct Case {
    /// Name in the legend.
    pub(super) curve: &'static str,
    /// Text of the experiment file that the curve is based on.
    pub(super) file: &'static str,
    /// Changes to that file, as key and value.
    pub(super) settings: Vec<(&'static str, String)>,
    /// Index of the colour, which related curves share.
    pub(super) colour: usize,
    /// Line style, which distinguishes curves of one colour.
    pub(super) style: Style,
}

/// All runs of a figure, by partition and curve.
pub(super) struct Runs {
    cases: Vec<Case>,
    records: BTreeMap<(&'static str, &'static str), RunRecord>,
}

impl Runs {
    /// Runs every case for both partitions.
    pub(super) fn make(bench: &Workbench<'_>, figure: &str, cases: Vec<Case>) -> Result<Self, SimError> {
        let mut records = BTreeMap::new();
        for case in &cases {
            let mut before = None;
            for partition in PARTITIONS {
                let name = directory_name(figure, partition, case.curve);
                let experiment = experiment(figure, partition, case, bench.quick)?;
                let record = bench.run_after(&mut before, &name, &experiment)?;
                records.insert((partition.key, case.curve), record);
            }
        }
        Ok(Self { cases, records })
    }

    /// The run of a curve.
    pub(super) fn record(&self, partition: &str, curve: &str) -> Option<&RunRecord> {
        self.records
            .iter()
            .find(|((of, name), _)| *of == partition && *name == curve)
            .map(|(_, record)| record)
    }

    /// Differences between the final values of two curves, trial by trial. Both share channels and batches.
    pub(super) fn differences(&self, measure: Measure, partition: &str, of: &str, than: &str) -> Vec<f64> {
        let finals = |curve| {
            self.record(partition, curve).map(|record| match measure {
                Measure::Accuracy => record.final_accuracies(),
                Measure::Loss => record.final_losses(),
            })
        };
        let (Some(of), Some(than)) = (finals(of), finals(than)) else { return Vec::new() };
        let pairs = of.into_iter().zip(than);
        pairs.filter_map(|(of, than)| Some(measure.difference(of?, than?))).collect()
    }

    /// The mean difference of the final accuracies, in words.
    pub(super) fn difference_words(&self, partition: &str, of: &str, than: &str) -> String {
        match Estimate::of(&self.differences(Measure::Accuracy, partition, of, than)) {
            None => "no trial finished".to_owned(),
            Some(Estimate { mean, ci95: None }) => format!("{mean:+.1} points"),
            Some(Estimate { mean, ci95: Some(half) }) => format!("{mean:+.1} ± {half:.1} points"),
        }
    }

    /// Mean final training loss of a curve, in words.
    pub(super) fn loss_words(&self, partition: &str, curve: &str) -> String {
        let losses = self.record(partition, curve).map(RunRecord::final_losses).unwrap_or_default();
        let finished: Vec<f64> = losses.into_iter().flatten().collect();
        Estimate::of(&finished).map_or("–".to_owned(), |loss| format!("{:.2}", loss.mean))
    }

    /// The verdicts on some claims.
    pub(super) fn judge(&self, claims: &[CurveClaim]) -> Vec<Claim> {
        let judge = |claim: &CurveClaim| {
            claim.judge(&self.differences(claim.measure, claim.partition, claim.of, claim.than))
        };
        claims.iter().map(judge).collect()
    }

    /// Loss and accuracy for both partitions, of some curves.
    pub(super) fn panels(&self, figure: &str, shown: &[&str]) -> Vec<Panel> {
        let mut panels = Vec::new();
        for partition in PARTITIONS {
            panels.push(self.panel(figure, partition, Measure::Loss, shown));
            panels.push(self.panel(figure, partition, Measure::Accuracy, shown));
        }
        panels
    }

    /// One measure for one partition and some curves.
    pub(super) fn panel(
        &self,
        figure: &str,
        partition: Partition,
        measure: Measure,
        shown: &[&str],
    ) -> Panel {
        let cases = self.cases.iter().filter(|case| shown.contains(&case.curve));
        let curves = cases.filter_map(|case| {
            let record = self.record(partition.key, case.curve)?;
            Some(measure.curve(case, record))
        });
        let (short, title, label) = match measure {
            Measure::Loss => ("loss", "training loss", "training loss (nats, with penalty)"),
            Measure::Accuracy => ("accuracy", "test accuracy", "test accuracy (%)"),
        };
        Panel {
            name: format!("{figure}-{}-{short}", partition.key),
            title: format!("{}: {title}", partition.words),
            x: Axis { label: "learning round".to_owned(), logarithmic: false, range: None },
            y: Axis { label: label.to_owned(), logarithmic: false, range: None },
            curves: curves.collect(),
        }
    }

    /// Test accuracy against its cost, in channel uses and in energy.
    pub(super) fn spending_panels(
        &self,
        figure: &str,
        partition: Partition,
        shown: &[&'static str],
    ) -> Vec<Panel> {
        type Spending = (&'static str, &'static str, &'static str, fn(&Cost) -> f64);
        let spendings: [Spending; 2] = [
            ("uses", "test accuracy against channel uses", "channel uses", |cost| cost.channel_uses() as f64),
            (
                "energy",
                "test accuracy against energy",
                "energy of all clients (channel uses at unit power)",
                |cost| cost.energy,
            ),
        ];
        let panel = |(short, title, label, pick): Spending| {
            let mut panel = self.panel(figure, partition, Measure::Accuracy, shown);
            for curve in &mut panel.curves {
                let record = self.record(partition.key, &curve.name);
                let spent = record.map(|record| spent_by_round(&record.metrics, pick)).unwrap_or_default();
                against(curve, &spent);
            }
            panel.curves.retain(|curve| !curve.x.is_empty());
            panel.name = format!("{figure}-{}-accuracy-{short}", partition.key);
            panel.title = format!("{}, 0 dB: {title}", partition.words);
            panel.x = Axis { label: label.to_owned(), logarithmic: true, range: None };
            panel
        };
        spendings.map(panel).into_iter().filter(|panel| !panel.curves.is_empty()).collect()
    }

    /// A sentence about curves that do not meet the conditions of the published theorems; empty without such
    /// curves.
    pub(super) fn unmet(&self) -> Vec<String> {
        let is_unmet = |curve: &str| {
            let mut records = PARTITIONS.iter().filter_map(|partition| self.record(partition.key, curve));
            records.any(|record| record.summary.privacy.notes.iter().any(|note| note.starts_with(UNMET)))
        };
        let curves: Vec<&str> =
            self.cases.iter().map(|case| case.curve).filter(|curve| is_unmet(curve)).collect();
        if curves.is_empty() {
            return Vec::new();
        }
        let condition = super::CONDITION;
        vec![format!("{condition} These curves do not meet it, as K = M: {}.", curves.join(", "))]
    }

    /// The privacy statements of each curve's setting.
    pub(super) fn privacy(&self) -> Vec<PrivacyRow> {
        let mut rows = Vec::new();
        for partition in PARTITIONS {
            for case in &self.cases {
                let Some(record) = self.record(partition.key, case.curve) else { continue };
                let privacy = &record.summary.privacy;
                rows.push(PrivacyRow {
                    curve: format!("{}, {}", partition.words, case.curve),
                    rounds: privacy.rounds,
                    delta: privacy.delta,
                    views: privacy.views.clone(),
                });
            }
        }
        rows
    }
}

impl Measure {
    fn curve(self, case: &Case, record: &RunRecord) -> Curve {
        let pick = |line: &RoundMetrics| match self {
            Self::Loss => line.train_loss,
            Self::Accuracy => line.test_accuracy.map(|accuracy| 100.0 * accuracy),
        };
        let points = record.curve(pick);
        // Intervals are limited to possible values: accuracies from 0 to 100%, and losses of at least 0.
        let largest = if self == Self::Accuracy { 100.0 } else { f64::INFINITY };
        let interval = |estimate: &Estimate| {
            let half = estimate.ci95?;
            Some(((estimate.mean - half).max(0.0), (estimate.mean + half).min(largest)))
        };
        Curve {
            name: case.curve.to_owned(),
            colour: case.colour,
            style: case.style,
            x: points.iter().map(|(round, _)| f64::from(*round)).collect(),
            y: points.iter().map(|(_, estimate)| Some(estimate.mean)).collect(),
            band: Some(points.iter().map(|(_, estimate)| interval(estimate)).collect()),
        }
    }
}

fn experiment(figure: &str, partition: Partition, case: &Case, quick: bool) -> Result<Experiment, SimError> {
    let mut builder = ExperimentBuilder::parse(figure, case.file)?
        .set("data.partition", partition.key)?
        .set_to("local.rate", partition.rate)?;
    if let Some(rounds) = partition.rounds {
        builder = builder.rounds(rounds);
    }
    for (key, value) in &case.settings {
        builder = builder.set(key, value)?;
    }
    if quick {
        builder = builder.trials(QUICK_TRIALS);
    }
    Ok(builder.build()?)
}

/// The name of a run directory, e.g. `fig4-iid-floras-0-dB`.
fn directory_name(figure: &str, partition: Partition, curve: &str) -> String {
    let curve = curve.replace("γ = ", "gamma-").replace([' ', ','], "-").replace("--", "-");
    format!("{figure}-{}-{curve}", partition.key)
}
