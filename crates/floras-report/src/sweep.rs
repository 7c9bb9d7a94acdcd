//! The report of a sweep: a table of all points, and their curves compared.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use floras_sim::figure::{Axis, Curve, Panel, Style};
use floras_sim::{Cost, Estimate, Finals, RecordedRun, RoundMetrics, SweepRow, SweepTable};

use crate::error::ReportError;
use crate::files::Output;
use crate::html::number::{count, grouped, short};
use crate::html::{Cell, Html, figure, page};
use crate::plot::picture::SERIES;
use crate::privacy;
use crate::run::curves::Trials;
use crate::run::{self, curves, words};

/// More curves than this cannot be told apart.
const MAX_CURVES: usize = 12;

/// A point in words, such as `sequences 20, partition iid`.
fn name(table: &SweepTable, row: &SweepRow) -> String {
    let short = |key: &str| key.rsplit('.').next().unwrap_or(key).to_owned();
    let pairs = table.keys.iter().zip(&row.values);
    pairs.map(|(key, value)| format!("{} {value}", short(key))).collect::<Vec<_>>().join(", ")
}

/// Writes the report of a sweep, and of every point.
pub(crate) fn write(directory: &Path) -> Result<(PathBuf, Vec<PathBuf>), ReportError> {
    let table = SweepTable::read(directory)?;
    let (mut runs, mut written) = (Vec::new(), HashSet::new());
    for row in &table.rows {
        let of_point = directory.join(&row.run);
        if written.insert(&row.run) {
            run::write(&of_point)?;
        }
        if runs.len() < MAX_CURVES {
            runs.push((name(&table, row), RecordedRun::read(&of_point)?));
        }
    }
    let panels = panels(&runs);
    let mut output = Output::new(directory);
    for panel in &panels {
        output.panel(panel)?;
    }
    let name = runs.first().map_or("sweep", |(_, run)| run.experiment.settings().name.as_str()).to_owned();
    let mut body = Html::default();
    body.element("p", "kicker", "Report of a sweep of floras: the same training under different settings");
    body.element("h1", "", &name);
    let keys: Vec<&str> = table.keys.iter().map(String::as_str).collect();
    body.element(
        "p",
        "lead",
        &format!("{}. What varies: {}.", count(table.rows.len() as u64, "setting"), keys.join(", ")),
    );
    if let Some((_, run)) = runs.first() {
        let settings = run.experiment.settings();
        body.paragraph(&format!("The first of them: {}", words::task(settings)));
        body.paragraph(&words::uplink(settings, settings.rounds));
    }
    body.section("The curves compared", |section| {
        if table.rows.len() > runs.len() {
            section.paragraph(&format!(
                "The first {} of {} settings are drawn; the table below has all.",
                runs.len(),
                table.rows.len()
            ));
        }
        section.around("div", "plots", |plots| {
            for panel in &panels {
                figure(
                    plots,
                    panel,
                    "Means over the trials that finished, with 95% intervals; point at it for values.",
                );
            }
        });
    });
    all_points(&mut body, &table);
    compared_privacy(&mut body, &runs);
    body.section("Files", |section| {
        section.paragraph(
            "The table is in sweep.csv, the pictures in plots/ as SVG and PNG. Each point-… is a run directory with its own \
             report, which says how to repeat it.",
        );
    });
    output.page(&page(&format!("{name} (sweep) – floras"), &body))
}

fn panels(runs: &[(String, RecordedRun)]) -> Vec<Panel> {
    type Draw = fn(&str, &[RoundMetrics], &Trials) -> Option<Curve>;
    let wanted: [(&str, &str, &str, Draw); 2] = [
        ("accuracy", "Test accuracy", "share of test samples classified correctly", curves::accuracy_curve),
        ("loss", "Test loss", "mean cross-entropy (nats)", |name, lines, trials| {
            curves::mean_curve(name, lines, trials, |line| line.test_loss)
        }),
    ];
    let panel = |(name, title, label, draw): (&str, &str, &str, Draw)| {
        let curves: Vec<Curve> = runs
            .iter()
            .enumerate()
            .filter_map(|(number, (name, run))| {
                let curve = draw(name, &run.metrics, &run::trials(run))?;
                Some(Curve { colour: number, style: style(number), ..curve })
            })
            .collect();
        let logarithmic = name == "loss" && curves::spans_decades(&curves);
        (!curves.is_empty()).then(|| Panel {
            name: name.to_owned(),
            title: title.to_owned(),
            x: Axis { label: "round".to_owned(), logarithmic: false, range: None },
            y: Axis { label: label.to_owned(), logarithmic, range: None },
            curves,
        })
    };
    wanted.into_iter().filter_map(panel).collect()
}

/// Neighbours in the legend differ in colour and in style.
fn style(number: usize) -> Style {
    [Style::Solid, Style::Dashed, Style::Dotted][(number + number / SERIES.len()) % 3]
}

fn all_points(body: &mut Html, table: &SweepTable) {
    body.section("All settings", |section| {
        let mut heading = vec!["run"];
        heading.extend(table.keys.iter().map(String::as_str));
        heading.extend(["test accuracy", "test loss", "train loss", "trials", "diverged"]);
        let has_cost = table.rows.iter().any(|row| row.cost.is_some());
        if has_cost {
            heading.extend(["channel uses", "energy", "mean power", "peak power", "dynamic range (dB)"]);
        }
        let cells = |row: &SweepRow| {
            let file = format!("{}/report.html", row.run);
            let mut cells = vec![Cell::Link { text: format!("point {}", row.point), file }];
            cells.extend(row.values.iter().map(|value| Cell::text(value.as_str())));
            let picks: [fn(&Finals) -> Estimate; 3] =
                [|finals| finals.test_accuracy, |finals| finals.test_loss, |finals| finals.train_loss];
            cells.extend(picks.map(|pick| Cell::number(estimate(row.finals.as_ref().map(pick)))));
            cells.extend([row.trials, row.diverged].map(|number| Cell::number(number.to_string())));
            if has_cost {
                cells.extend(cost(row.cost).map(Cell::number));
            }
            cells
        };
        let rows: Vec<Vec<Cell>> = table.rows.iter().map(cells).collect();
        section.table(&heading, &rows);
        section.paragraph("Means over the trials that finished ± half the 95% interval.");
        if has_cost {
            section.paragraph(
                "Channel uses and energy are of one trial, energy in channel uses at the power of a unit symbol.",
            );
        }
    });
}

fn cost(cost: Option<Cost>) -> [String; 5] {
    let Some(cost) = cost else { return [(); 5].map(|()| "–".to_owned()) };
    let range = cost.dynamic_range_db.map_or_else(|| "–".to_owned(), |range| format!("{range:.1}"));
    let uses = grouped(cost.channel_uses());
    [uses, short(cost.energy), short(cost.power_mean), short(cost.power_peak), range]
}

fn estimate(estimate: Option<Estimate>) -> String {
    match estimate {
        None => "–".to_owned(),
        Some(Estimate { mean, ci95: None }) => short(mean),
        Some(Estimate { mean, ci95: Some(ci95) }) => format!("{} ± {}", short(mean), short(ci95)),
    }
}

fn compared_privacy(body: &mut Html, runs: &[(String, RecordedRun)]) {
    let rows: Vec<Vec<Cell>> = runs
        .iter()
        .filter_map(|(name, run)| {
            let (value, label) = privacy::card(&run.summary.as_ref()?.privacy);
            Some(vec![Cell::text(name.as_str()), Cell::number(value), Cell::text(label)])
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    body.section("How private", |section| {
        section.table(&["setting", "ε", "in which view, and how much that promises"], &rows);
        section.paragraph("Each run's own report says whom it protects and against whom, and what ε means.");
    });
}
