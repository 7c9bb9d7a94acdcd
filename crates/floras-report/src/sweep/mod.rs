//! The report of a sweep: final accuracy and `ε` against the keys, a table of all points, and the learning curves.

mod keys;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use floras_core::View;
use floras_core::verdict::Verdict;
use floras_sim::figure::{Axis, Curve, Panel, Style};
use floras_sim::{
    Cost, Estimate, PointPrivacy, RecordedRun, RoundMetrics, RunDirectory, SweepRow, SweepTable,
};

use self::keys::Key;
use crate::error::ReportError;
use crate::files::Output;
use crate::html::number::{bound, count, estimate, grouped, percentage, short};
use crate::html::{Cell, Html, figure, marked_figure, page};
use crate::plot::Plot;
use crate::plot::panel::Marks;
use crate::plot::picture::SERIES;
use crate::privacy;
use crate::run::curves::Trials;
use crate::run::{self, curves, words};

/// The maximum number of learning curves in a plot.
const MAX_CURVES: usize = 12;
/// If there are more curves, none has a band.
const MAX_BANDS: usize = 4;

/// The name of the plot of `ε`.
const EPSILON: &str = "sweep-epsilon";

const STYLES: [Style; 4] = [Style::Solid, Style::Dashed, Style::Dotted, Style::DashDotted];

/// A plot against a key. Categories name the integers from 0 on a horizontal axis without numbers.
struct Against {
    panel: Panel,
    categories: Vec<String>,
    /// Points whose value is not proven.
    unproven: Vec<(f64, f64)>,
    caption: String,
}

impl Against {
    fn marks(&self) -> Marks<'_> {
        Marks { categories: &self.categories, hollow: &self.unproven }
    }
}

/// A value of a point with its interval.
type Value = (f64, Option<(f64, f64)>);

/// The values of all keys but one: their digits, and their words.
type Others = Vec<(Digit, String)>;

/// The number of a value among the values of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digit {
    number: usize,
    /// Number of values of the key.
    base: usize,
}

/// A point with its run and its place in the legend.
struct Learned {
    name: String,
    colour: usize,
    style: Style,
    run: RecordedRun,
}

/// Writes the report of a sweep, and of every point.
pub(crate) fn write(directory: &Path) -> Result<(PathBuf, Vec<PathBuf>), ReportError> {
    let mut table = SweepTable::read(directory)?;
    add_bounds(directory, &mut table)?;
    let keys = Key::all(&table.keys, &table.rows);
    let shown = &table.rows[..table.rows.len().min(MAX_CURVES)];
    let shown_keys = Key::all(&table.keys, shown);
    let (mut learned, mut written) = (Vec::new(), HashSet::new());
    for row in &table.rows {
        let of_point = directory.join(&row.run);
        if written.insert(&row.run) {
            run::write(&of_point)?;
        }
        if learned.len() < shown.len() {
            let pairs = shown_keys.iter().zip(&row.values);
            let digits: Vec<Digit> = pairs.map(|(key, value)| key.digit(value)).collect();
            let (colour, style) = encoded(&digits);
            learned.push(Learned {
                name: name(&keys, row),
                colour,
                style,
                run: RecordedRun::read(&of_point)?,
            });
        }
    }
    let against = [accuracy_against(&keys, &table), epsilon_against(&keys, &table)];
    let against: Vec<Against> = against.into_iter().flatten().collect();
    let panels = learning(&learned);
    let mut output = Output::new(directory);
    for found in &against {
        output.plot(&Plot::marked(&found.panel, found.marks()))?;
    }
    for panel in &panels {
        output.panel(panel)?;
    }
    let title =
        learned.first().map_or("sweep", |point| point.run.experiment.settings().name.as_str()).to_owned();
    let mut body = Html::default();
    body.element("p", "kicker", "Report of a floras sweep: one experiment with different settings");
    body.element("h1", "", &title);
    let varied: Vec<String> =
        keys.iter().zip(&table.keys).map(|(key, name)| format!("{} ({name})", key.axis())).collect();
    body.element(
        "p",
        "lead",
        &format!("{}. Varied: {}.", count(table.rows.len() as u64, "point"), varied.join(", ")),
    );
    if let Some(point) = learned.first() {
        let settings = point.run.experiment.settings();
        body.paragraph(&format!("The first point: {}", words::task(settings)));
        body.paragraph(&words::uplink(settings, settings.rounds));
    }
    body.section("Final accuracy and ε", |section| {
        section.around("div", "plots", |plots| {
            for found in &against {
                marked_figure(plots, &found.panel, found.marks(), &found.caption);
            }
        });
        if against.is_empty() {
            section.paragraph("No point finished a trial.");
        }
        if !against.iter().any(|found| found.panel.name == EPSILON)
            && let Some(text) = left_out(&table)
        {
            section.paragraph(&text);
        }
    });
    all_points(&mut body, &table, &keys);
    body.section("Learning curves", |section| {
        if table.rows.len() > learned.len() {
            section.paragraph(&format!(
                "The first {} of {} points are drawn; the table above has all.",
                learned.len(),
                table.rows.len()
            ));
        }
        let bands = if learned.len() > MAX_BANDS { "" } else { " Bands are 95 % intervals." };
        section.around("div", "plots", |plots| {
            for panel in &panels {
                figure(plots, panel, &format!("Means over the finished trials.{bands}"));
            }
        });
    });
    body.section("Files", |section| {
        section.around("p", "", |line| {
            line.text("All numbers of the table: ").link("sweep.csv", "sweep.csv");
            line.text(". Each point is a run directory with its own report, linked in the table.");
        });
    });
    output.page(&page(&format!("{title} (sweep) – floras"), &body))
}

/// Adds from the runs which `ε` are above the largest one that is computed: the table has no column for it.
fn add_bounds(directory: &Path, table: &mut SweepTable) -> Result<(), ReportError> {
    for SweepRow { run, privacy, .. } in &mut table.rows {
        if let Some(privacy) = privacy.as_mut().filter(|privacy| privacy.epsilon.is_none())
            && let Some(summary) = RunDirectory::read_summary(&directory.join(run))?
        {
            privacy.epsilon_above = PointPrivacy::new(&summary, privacy.view).epsilon_above;
        }
    }
    Ok(())
}

/// A point in words, such as `20 sequences, iid partition`.
fn name(keys: &[Key], row: &SweepRow) -> String {
    let pairs = keys.iter().zip(&row.values);
    pairs.map(|(key, value)| key.words(value)).collect::<Vec<_>>().join(", ")
}

/// The colour and the style of a combination of values: one key has the colour, the others together have the style. The key with the
/// most values has the colour if there are styles for all others, else the first key.
///
/// Where one of them runs out, the rest of its number goes to what the other has left, so that combinations look different as long
/// as colours and styles allow.
fn encoded(digits: &[Digit]) -> (usize, Style) {
    let all: usize = digits.iter().map(|digit| digit.base).product();
    let largest = (0..digits.len()).rev().max_by_key(|&place| digits[place].base).unwrap_or(0);
    let coloured = match digits.get(largest) {
        Some(digit) if all <= digit.base * STYLES.len() => largest,
        _ => 0,
    };
    let first = digits.get(coloured).copied().unwrap_or(Digit { number: 0, base: 1 });
    let rest = || digits.iter().enumerate().filter(|(place, _)| *place != coloured).map(|(_, digit)| digit);
    let number = rest().fold(0, |number, digit| number * digit.base + digit.number);
    let base: usize = rest().map(|digit| digit.base).product();
    let style = number + base * (first.number / SERIES.len());
    let colour = first.number % SERIES.len() + first.base.min(SERIES.len()) * (style / STYLES.len());
    (colour, STYLES[style % STYLES.len()])
}

fn accuracy_against(keys: &[Key], table: &SweepTable) -> Option<Against> {
    let value = |row: &SweepRow| {
        let Estimate { mean, ci95 } = row.finals?.test_accuracy;
        let band = ci95.map(|half| (100.0 * (mean - half).max(0.0), 100.0 * (mean + half).min(1.0)));
        Some((100.0 * mean, band))
    };
    let y = Axis { label: curves::ACCURACY.to_owned(), logarithmic: false, range: None };
    let mut found = against(keys, table, ("sweep-accuracy", "Final test accuracy"), y, &value)?;
    let curves = &mut found.panel.curves;
    let has_bands = curves.iter().any(|curve| curve.band.is_some());
    if has_bands && curves.len() > MAX_BANDS {
        curves.iter_mut().for_each(|curve| curve.band = None);
        found.caption = "The table and sweep.csv have the 95 % intervals.".to_owned();
    } else if has_bands {
        found.caption = "Bands are 95 % intervals of the mean.".to_owned();
    }
    Some(found)
}

fn epsilon_against(keys: &[Key], table: &SweepTable) -> Option<Against> {
    let value = |row: &SweepRow| Some((row.privacy?.epsilon?, None));
    let values = || table.rows.iter().filter_map(value).map(|(epsilon, _)| epsilon);
    let logarithmic = values().fold(0.0, f64::max) > 10.0 * values().fold(f64::INFINITY, f64::min);
    let label = match quoted_view(table) {
        Some(view) => format!("ε ({view} view)"),
        None => "ε (each point in its quoted view)".to_owned(),
    };
    let y = Axis { label, logarithmic, range: None };
    let mut found = against(keys, table, (EPSILON, "Final ε"), y, &value)?;
    let across = axis_of(keys);
    let is_unproven =
        |row: &&SweepRow| row.privacy.is_some_and(|privacy| privacy.verdict == Verdict::NotProven);
    let place = |row: &SweepRow| Some((x_of(keys, across, row)?, value(row)?.0));
    found.unproven = table.rows.iter().filter(is_unproven).filter_map(place).collect();
    let mut sentences = Vec::new();
    if !found.unproven.is_empty() {
        sentences.push("Hollow points are not proven.".to_owned());
    }
    sentences.extend(left_out(table));
    found.caption = sentences.join(" ");
    Some(found)
}

/// The view that all points quote; `None` if they differ.
fn quoted_view(table: &SweepTable) -> Option<View> {
    let mut views = table.rows.iter().filter_map(|row| row.privacy).map(|privacy| privacy.view);
    let first = views.next()?;
    views.all(|view| view == first).then_some(first)
}

/// A sentence that names the points without a finite `ε`.
fn left_out(table: &SweepTable) -> Option<String> {
    let without = |row: &&SweepRow| row.privacy.is_some_and(|privacy| privacy.epsilon.is_none());
    let points: Vec<String> = table.rows.iter().filter(without).map(|row| row.point.to_string()).collect();
    match &points[..] {
        [] => None,
        [one] => Some(format!("Point {one} has no finite ε and is not drawn.")),
        _ => Some(format!("The points {} have no finite ε and are not drawn.", points.join(", "))),
    }
}

/// The key of the horizontal axis: the first one with numbers, or the first one.
fn axis_of(keys: &[Key]) -> usize {
    keys.iter().position(|key| key.numbers().is_some()).unwrap_or(0)
}

/// The place of a point on the horizontal axis.
fn x_of(keys: &[Key], across: usize, row: &SweepRow) -> Option<f64> {
    let key = keys.get(across)?;
    let index = key.index(row.values.get(across)?);
    Some(key.numbers().map_or(index as f64, |numbers| numbers[index]))
}

/// A value of every point against the first key with numbers, or against the first key. Lines differ in the other keys: the next
/// key has the colour, the others have the style.
fn against(
    keys: &[Key],
    table: &SweepTable,
    (name, title): (&str, &str),
    y: Axis,
    value: &dyn Fn(&SweepRow) -> Option<Value>,
) -> Option<Against> {
    let across = axis_of(keys);
    let key = keys.get(across)?;
    let others = |row: &SweepRow| -> Others {
        let pairs = keys.iter().zip(&row.values).enumerate().filter(|(place, _)| *place != across);
        pairs.map(|(_, (key, value))| (key.digit(value), key.words(value))).collect()
    };
    let mut groups: Vec<(Others, Vec<(f64, &SweepRow)>)> = Vec::new();
    for row in table.rows.iter().filter(|row| value(row).is_some()) {
        let x = x_of(keys, across, row)?;
        let others = others(row);
        match groups.iter_mut().find(|(same, _)| *same == others) {
            Some((_, points)) => points.push((x, row)),
            None => groups.push((others, vec![(x, row)])),
        }
    }
    let curve = |(others, mut points): (Others, Vec<(f64, &SweepRow)>)| {
        points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let values: Vec<Value> = points.iter().filter_map(|(_, row)| value(row)).collect();
        let names: Vec<&str> = others.iter().map(|(_, words)| words.as_str()).collect();
        let (colour, style) = encoded(&others.iter().map(|(digit, _)| *digit).collect::<Vec<_>>());
        let band: Vec<Option<(f64, f64)>> = values.iter().map(|(_, band)| *band).collect();
        Curve {
            name: if names.is_empty() { title.to_owned() } else { names.join(", ") },
            colour,
            style,
            x: points.iter().map(|(x, _)| *x).collect(),
            y: values.iter().map(|(value, _)| Some(*value)).collect(),
            band: band.iter().any(Option::is_some).then_some(band),
        }
    };
    let curves: Vec<Curve> = groups.into_iter().map(curve).collect();
    let x = Axis { label: key.axis(), logarithmic: key.is_logarithmic(), range: None };
    let title = format!("{title} against {}", without_unit(&x.label));
    let categories = if key.numbers().is_some() { Vec::new() } else { key.categories() };
    let panel = Panel { name: name.to_owned(), title, x, y, curves };
    let (unproven, caption) = (Vec::new(), String::new());
    (!panel.curves.is_empty()).then_some(Against { panel, categories, unproven, caption })
}

/// The label of an axis without its unit.
fn without_unit(label: &str) -> &str {
    label.split_once(" (").map_or(label, |(quantity, _)| quantity)
}

fn learning(points: &[Learned]) -> Vec<Panel> {
    type Draw = fn(&str, &[RoundMetrics], &Trials) -> Option<Curve>;
    let wanted: [(&str, &str, &str, Draw); 2] = [
        ("accuracy", "Test accuracy", curves::ACCURACY, curves::accuracy_curve),
        ("loss", "Test loss", "mean cross-entropy (nats)", |name, lines, trials| {
            curves::loss_curve(name, lines, trials, |line| line.test_loss)
        }),
    ];
    let panel = |(name, title, label, draw): (&str, &str, &str, Draw)| {
        let curve = |point: &Learned| {
            let curve = draw(&point.name, &point.run.metrics, &run::trials(&point.run))?;
            let band = curve.band.filter(|_| points.len() <= MAX_BANDS);
            Some(Curve { colour: point.colour, style: point.style, band, ..curve })
        };
        let curves: Vec<Curve> = points.iter().filter_map(curve).collect();
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

fn all_points(body: &mut Html, table: &SweepTable, keys: &[Key]) {
    body.section("All points", |section| {
        let epsilon = quoted_view(table).map_or_else(|| "ε (quoted view)".to_owned(), |view| format!("ε ({view})"));
        let mut heading = vec!["point"];
        let has_privacy = table.rows.iter().any(|row| row.privacy.is_some());
        if has_privacy {
            heading.extend(["verdict", epsilon.as_str()]);
        }
        heading.push("test accuracy");
        if has_privacy {
            heading.push("rounds done");
        }
        heading.extend(["test loss", "train loss", "trials", "diverged"]);
        let has_cost = table.rows.iter().any(|row| row.cost.is_some());
        if has_cost {
            heading.extend(["channel uses", "energy", "mean power", "peak power", "dynamic range (dB)"]);
        }
        let cells = |row: &SweepRow| {
            let file = format!("{}/report.html", row.run);
            let remark = name(keys, row);
            let mut cells = vec![Cell::Link { text: format!("point {}", row.point), file, remark }];
            if has_privacy {
                cells.extend(point_privacy(row));
            }
            let finals = |text: Option<String>| Cell::number(text.unwrap_or_else(|| "–".to_owned()));
            cells.push(finals(row.finals.map(|finals| percentage(finals.test_accuracy))));
            if has_privacy {
                cells.push(finals(row.privacy.map(|found| grouped(found.rounds_done.into()))));
            }
            cells.push(finals(row.finals.map(|finals| estimate(finals.test_loss))));
            cells.push(finals(row.finals.map(|finals| estimate(finals.train_loss))));
            cells.extend([row.trials, row.diverged].map(|number| Cell::number(number.to_string())));
            if has_cost {
                cells.extend(cost(row.cost).map(Cell::number));
            }
            cells
        };
        let rows: Vec<Vec<Cell>> = table.rows.iter().map(cells).collect();
        section.table(&heading, &rows);
        section.paragraph("Results are means over the finished trials ± half the 95 % interval.");
        if has_privacy {
            section.paragraph(&format!(
                "ε is in the view that each point quotes (privacy.view), after the rounds done. {} The report of a run has all \
                 views.",
                Verdict::scale()
            ));
        }
        if has_cost {
            section.paragraph(
                "Channel uses and energy are per trial; energy is in channel uses at the power of a unit symbol.",
            );
        }
    });
}

fn point_privacy(row: &SweepRow) -> [Cell; 2] {
    match row.privacy {
        None => [(); 2].map(|()| Cell::number("–")),
        Some(found) => [
            Cell::Mark(found.verdict.to_string(), privacy::is_good(found.verdict)),
            Cell::number(bound(found.epsilon, found.epsilon_above)),
        ],
    }
}

fn cost(cost: Option<Cost>) -> [String; 5] {
    let Some(cost) = cost else { return [(); 5].map(|()| "–".to_owned()) };
    let range = cost.dynamic_range_db.map_or_else(|| "–".to_owned(), |range| format!("{range:.1}"));
    let uses = grouped(cost.channel_uses());
    [uses, short(cost.energy), short(cost.power_mean), short(cost.power_peak), range]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits<const N: usize>(bases: [usize; N]) -> Vec<Vec<Digit>> {
        bases.into_iter().fold(vec![Vec::new()], |all, base| {
            let longer = |start: Vec<Digit>| {
                (0..base).map(move |number| [&start[..], &[Digit { number, base }]].concat())
            };
            all.into_iter().flat_map(longer).collect()
        })
    }

    fn looks(all: &[Vec<Digit>]) -> HashSet<(String, String)> {
        let look = |digits: &Vec<Digit>| {
            let (colour, style) = encoded(digits);
            (crate::plot::picture::Ink::Series(colour).class(), format!("{style:?}"))
        };
        all.iter().map(look).collect()
    }

    #[test]
    fn every_combination_looks_different() {
        for all in [
            digits([2, 2, 2]),
            digits([3, 4]),
            digits([2, 3, 4]),
            digits([2, 8]),
            digits([28]),
            digits([12, 2]),
        ] {
            assert_eq!(looks(&all).len(), all.len(), "{all:?}");
        }
    }

    /// Four values of the second key and two of each other one: four colours and four styles.
    #[test]
    fn the_longest_key_has_the_colour() {
        let all = digits([2, 4, 2]);
        assert!(all.iter().all(|digits| encoded(digits).0 == digits[1].number));
        assert_eq!(looks(&all).len(), 16);
    }

    #[test]
    fn the_first_key_has_the_colour() {
        let all = digits([2, 2, 2]);
        assert!(all.iter().all(|digits| encoded(digits).0 == digits[0].number));
        assert_eq!(encoded(&[]), (0, Style::Solid));
    }
}
