//! The report of a sweep: a table of all points, and their curves compared.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use floras_sim::RoundMetrics;
use floras_sim::figure::{Axis, Curve, Panel, Style};

use crate::error::ReportError;
use crate::files::Output;
use crate::html::number::count;
use crate::html::{Cell, Html, figure, page};
use crate::plot::picture::SERIES;
use crate::privacy;
use crate::run::curves::Trials;
use crate::run::{self, Run, curves, words};

/// More curves than this cannot be told apart.
const MOST_CURVES: usize = 12;

/// A row of `sweep.csv`.
struct Point {
    number: usize,
    /// The directory of its run, which points of the same experiment share.
    run: String,
    values: Vec<String>,
    trials: String,
    diverged: String,
    /// Mean and interval of train loss, test loss and test accuracy.
    finals: [(String, String); 3],
}

struct Table {
    keys: Vec<String>,
    points: Vec<Point>,
}

impl Table {
    fn read(path: &Path) -> Result<Self, ReportError> {
        let damaged = |reason: &str| ReportError::damaged(path, reason);
        let text = crate::files::text(path)?;
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| ReportError::damaged(path, error))?.clone();
        let names: Vec<&str> = header.iter().collect();
        let after = names.iter().rposition(|name| *name == "trials").unwrap_or(0);
        if names.first() != Some(&"point")
            || after < 3
            || names[after - 1] != "run"
            || names.len() != after + 8
        {
            return Err(damaged("its first line is not that of a sweep"));
        }
        let mut points = Vec::new();
        for row in reader.records() {
            let row = row.map_err(|error| ReportError::damaged(path, error))?;
            let cell = |index: usize| row.get(index).unwrap_or_default().to_owned();
            let number = cell(0).parse::<usize>().ok().filter(|number| (1..=1_000_000).contains(number));
            let number = number.ok_or_else(|| damaged("a point has no number"))?;
            let run = cell(after - 1);
            let is_ours = run.strip_prefix("point-").is_some_and(|number| number.parse::<u32>().is_ok());
            if !is_ours {
                return Err(damaged("a point has no run"));
            }
            points.push(Point {
                number,
                run,
                values: (1..after - 1).map(cell).collect(),
                trials: cell(after),
                diverged: cell(after + 1),
                finals: [2, 4, 6].map(|index| (cell(after + index), cell(after + index + 1))),
            });
        }
        let keys = names[1..after - 1].iter().map(|&name| name.to_owned()).collect();
        Ok(Self { keys, points })
    }

    /// A point in words, such as `sequences 20, partition iid`.
    fn name(&self, point: &Point) -> String {
        let short = |key: &str| key.rsplit('.').next().unwrap_or(key).to_owned();
        let pairs: Vec<String> = self
            .keys
            .iter()
            .zip(&point.values)
            .map(|(key, value)| format!("{} {value}", short(key)))
            .collect();
        pairs.join(", ")
    }
}

/// Writes the report of a sweep, and of every point.
pub(crate) fn write(folder: &Path) -> Result<(PathBuf, Vec<PathBuf>), ReportError> {
    let table = Table::read(&folder.join("sweep.csv"))?;
    let (mut runs, mut written) = (Vec::new(), HashSet::new());
    for point in &table.points {
        let of_point = folder.join(&point.run);
        if written.insert(&point.run) {
            run::write(&of_point)?;
        }
        if runs.len() < MOST_CURVES {
            runs.push((table.name(point), Run::read(&of_point)?));
        }
    }
    let panels = panels(&runs);
    let mut output = Output::new(folder);
    for panel in &panels {
        output.panel(panel)?;
    }
    let name = runs.first().map_or("sweep", |(_, run)| run.settings.name.as_str()).to_owned();
    let mut body = Html::default();
    body.element("p", "kicker", "Report of a sweep of floras: the same training under different settings");
    body.element("h1", "", &name);
    let keys: Vec<&str> = table.keys.iter().map(String::as_str).collect();
    body.element(
        "p",
        "lead",
        &format!("{}. What varies: {}.", count(table.points.len() as u64, "setting"), keys.join(", ")),
    );
    if let Some((_, run)) = runs.first() {
        body.paragraph(&format!("The first of them: {}", words::task(&run.settings)));
        body.paragraph(&words::uplink(&run.settings, run.settings.rounds));
    }
    body.section("The curves compared", |section| {
        if table.points.len() > runs.len() {
            section.paragraph(&format!(
                "The first {} of {} settings are drawn; the table below has all.",
                runs.len(),
                table.points.len()
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

fn panels(runs: &[(String, Run)]) -> Vec<Panel> {
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
                let curve = draw(name, &run.lines, &run.trials())?;
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

fn all_points(body: &mut Html, table: &Table) {
    body.section("All settings", |section| {
        let mut heading = vec!["run"];
        heading.extend(table.keys.iter().map(String::as_str));
        heading.extend(["test accuracy", "test loss", "train loss", "trials", "diverged"]);
        let rows: Vec<Vec<Cell>> = table
            .points
            .iter()
            .map(|point| {
                let file = format!("{}/report.html", point.run);
                let mut row = vec![Cell::Link { text: format!("point {}", point.number), file }];
                row.extend(point.values.iter().map(|value| Cell::text(value.as_str())));
                row.extend([2, 1, 0].map(|index| Cell::number(estimate(&point.finals[index]))));
                row.push(Cell::number(point.trials.as_str()));
                row.push(Cell::number(point.diverged.as_str()));
                row
            })
            .collect();
        section.table(&heading, &rows);
        section.paragraph("Means over the trials that finished ± half the 95% interval.");
    });
}

fn estimate((mean, interval): &(String, String)) -> String {
    let short = |text: &str| text.parse().map_or_else(|_| text.to_owned(), crate::html::number::short);
    match (mean.as_str(), interval.as_str()) {
        ("", _) => "–".to_owned(),
        (mean, "") => short(mean),
        (mean, interval) => format!("{} ± {}", short(mean), short(interval)),
    }
}

fn compared_privacy(body: &mut Html, runs: &[(String, Run)]) {
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
        section.table(&["setting", "ε of a client", "in which view, and how much that promises"], &rows);
        section.paragraph("Each run's own report says against whom, and what ε means.");
    });
}
