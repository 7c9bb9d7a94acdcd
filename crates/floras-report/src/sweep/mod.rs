//! The report of a sweep: final accuracy and `ε` against the keys, a table of all points, and the learning curves.

mod keys;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use floras_core::verdict::Verdict;
use floras_sim::figure::{Axis, Curve, Panel, Style};
use floras_sim::{
    Cost, Estimate, PointPrivacy, RecordedRun, RoundMetrics, RunDirectory, SweepRow, SweepTable,
};

use self::keys::{Key, plain};
use crate::error::ReportError;
use crate::files::Output;
use crate::html::number::{bound, count, estimate, grouped, percentage, short};
use crate::html::{Cell, Html, figure, figure_with_categories, page};
use crate::plot::Plot;
use crate::plot::picture::SERIES;
use crate::privacy;
use crate::run::curves::Trials;
use crate::run::{self, curves, words};

/// The maximum number of learning curves in a plot.
const MAX_CURVES: usize = 12;
/// Learning curves beyond this number have no bands.
const MAX_BANDS: usize = 4;

const STYLES: [Style; 4] = [Style::Solid, Style::Dashed, Style::Dotted, Style::DashDotted];

/// A plot against a key. Categories name the integers from 0 on a horizontal axis without numbers.
struct Against {
    panel: Panel,
    categories: Vec<String>,
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
    let keys = Key::all(&table);
    let (mut learned, mut written) = (Vec::new(), HashSet::new());
    for row in &table.rows {
        let of_point = directory.join(&row.run);
        if written.insert(&row.run) {
            run::write(&of_point)?;
        }
        if learned.len() < MAX_CURVES {
            let digits: Vec<Digit> =
                keys.iter().zip(&row.values).map(|(key, value)| key.digit(value)).collect();
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
    for Against { panel, categories } in &against {
        output.plot(&Plot::of_categories(panel, categories))?;
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
            for Against { panel, categories } in &against {
                let has_bands = panel.curves.iter().any(|curve| curve.band.is_some());
                let caption = if has_bands { "Bands are 95 % intervals of the mean." } else { "" };
                figure_with_categories(plots, panel, categories, caption);
            }
        });
        if against.is_empty() {
            section.paragraph("No point finished a trial.");
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

/// The colour and the style of a combination of values: the first key has the colour, the others together have the style.
///
/// Where one of them runs out, the rest of its number goes to what the other has left, so that combinations look different as long
/// as colours and styles allow.
fn encoded(digits: &[Digit]) -> (usize, Style) {
    let (first, rest) =
        digits.split_first().map_or((Digit { number: 0, base: 1 }, digits), |(&first, rest)| (first, rest));
    let number = rest.iter().fold(0, |number, digit| number * digit.base + digit.number);
    let base: usize = rest.iter().map(|digit| digit.base).product();
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
    against(keys, table, ("sweep-accuracy", "Final test accuracy"), y, &value)
}

fn epsilon_against(keys: &[Key], table: &SweepTable) -> Option<Against> {
    let value = |row: &SweepRow| Some((row.privacy?.epsilon?, None));
    let values = || table.rows.iter().filter_map(value).map(|(epsilon, _)| epsilon);
    let logarithmic = values().fold(0.0, f64::max) > 10.0 * values().fold(f64::INFINITY, f64::min);
    let mut views: Vec<String> =
        table.rows.iter().filter_map(|row| row.privacy).map(|privacy| privacy.view.to_string()).collect();
    views.dedup();
    let label = match &views[..] {
        [view] => format!("ε ({view} view)"),
        _ => "ε (each point in its quoted view)".to_owned(),
    };
    against(keys, table, ("sweep-epsilon", "Final ε"), Axis { label, logarithmic, range: None }, &value)
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
    let across = keys.iter().position(|key| key.numbers().is_some()).unwrap_or(0);
    let key = keys.get(across)?;
    let numbers = key.numbers();
    let others = |row: &SweepRow| -> Others {
        let pairs = keys.iter().zip(&row.values).enumerate().filter(|(place, _)| *place != across);
        pairs.map(|(_, (key, value))| (key.digit(value), key.words(value))).collect()
    };
    let mut groups: Vec<(Others, Vec<(f64, &SweepRow)>)> = Vec::new();
    for row in table.rows.iter().filter(|row| value(row).is_some()) {
        let index = key.index(row.values.get(across)?);
        let x = numbers.as_ref().map_or(index as f64, |numbers| numbers[index]);
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
    let categories = if numbers.is_some() { Vec::new() } else { key.categories() };
    let name = name.to_owned();
    (!curves.is_empty()).then_some(Against { panel: Panel { name, title, x, y, curves }, categories })
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
            curves::mean_curve(name, lines, trials, |line| line.test_loss)
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
        let names: Vec<String> = keys.iter().map(Key::axis).collect();
        let mut heading = vec!["run"];
        heading.extend(names.iter().map(String::as_str));
        let has_privacy = table.rows.iter().any(|row| row.privacy.is_some());
        heading.push("test accuracy");
        if has_privacy {
            heading.extend(["ε", "verdict", "rounds done"]);
        }
        heading.extend(["test loss", "train loss", "trials", "diverged"]);
        let has_cost = table.rows.iter().any(|row| row.cost.is_some());
        if has_cost {
            heading.extend(["channel uses", "energy", "mean power", "peak power", "dynamic range (dB)"]);
        }
        let cells = |row: &SweepRow| {
            let file = format!("{}/report.html", row.run);
            let mut cells = vec![Cell::Link { text: format!("point {}", row.point), file }];
            cells.extend(row.values.iter().map(|value| Cell::text(plain(value))));
            let finals = |text: Option<String>| Cell::number(text.unwrap_or_else(|| "–".to_owned()));
            cells.push(finals(row.finals.map(|finals| percentage(finals.test_accuracy))));
            if has_privacy {
                cells.extend(point_privacy(row));
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

fn point_privacy(row: &SweepRow) -> [Cell; 3] {
    match row.privacy {
        None => [(); 3].map(|()| Cell::number("–")),
        Some(found) => [
            Cell::number(bound(found.epsilon, found.epsilon_above)),
            Cell::Mark(found.verdict.to_string(), privacy::is_good(found.verdict)),
            Cell::number(grouped(found.rounds_done.into())),
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

    #[test]
    fn the_first_key_has_the_colour() {
        let all = digits([2, 2, 2]);
        assert!(all.iter().all(|digits| encoded(digits).0 == digits[0].number));
        assert_eq!(encoded(&[]), (0, Style::Solid));
    }
}
