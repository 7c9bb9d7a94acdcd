//! The tables of a benchmark, which its page and the book show.

use std::iter;

use floras_core::{Choice, View};

use super::{Benchmark, Entry, Point, Protection, Row, RowCost, ViewBound};
use crate::inquiry::epsilon_text;
use crate::number::{compact, count, percentage};

/// A table of texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What it shows, in one line.
    pub title: String,
    /// One heading per column.
    pub heading: Vec<String>,
    /// Rows with as many cells as there are columns.
    pub rows: Vec<Vec<String>>,
    /// An explanation of the columns; possibly empty.
    pub note: String,
}

const NONE: &str = "–";

impl Benchmark {
    /// The ranking at the reference point: private training, and training without protection.
    pub fn ranking(&self) -> Vec<Table> {
        vec![self.private(), self.unprotected()]
    }

    /// `ε` in every view at the reference point.
    pub fn views(&self) -> Vec<Table> {
        Protection::ALL.into_iter().rev().map(|protection| self.views_of(protection)).collect()
    }

    /// Accuracies at all points, by protection and partition; none if there is one point only.
    pub fn accuracies(&self) -> Vec<Table> {
        let points = self.points();
        if points.len() <= Protection::ALL.len() {
            return Vec::new();
        }
        let mut groups: Vec<(Protection, &str)> = Vec::new();
        for point in &points {
            if !groups.contains(&(point.protection, &point.partition)) {
                groups.push((point.protection, &point.partition));
            }
        }
        groups.into_iter().map(|group| self.accuracies_of(group, &points)).collect()
    }

    /// The settings of the schemes.
    pub fn schemes(&self) -> Table {
        let row =
            |entry: &Entry| vec![entry.name.clone(), format!("`{}`", entry.scheme), entry.summary.clone()];
        Table {
            title: "Schemes".to_owned(),
            heading: texts(["name", "scheme", "settings"]),
            rows: self.entries.iter().map(row).collect(),
            note: String::new(),
        }
    }

    /// Entries with their rows at a point, the most accurate first.
    fn ranked(&self, point: &Point) -> Vec<(&Entry, &Row)> {
        let mean = |row: &Row| row.accuracy.map_or(f64::NEG_INFINITY, |accuracy| accuracy.mean);
        let mut rows: Vec<_> =
            self.entries.iter().filter_map(|entry| Some((entry, self.row(&entry.name, point)?))).collect();
        rows.sort_by(|(_, a), (_, b)| mean(b).total_cmp(&mean(a)));
        rows
    }

    fn private(&self) -> Table {
        let conditions = &self.conditions;
        let point = Point { protection: Protection::Private, ..conditions.reference.clone() };
        let row = |(entry, row): (&Entry, &Row)| {
            let by = row.protected_by.as_ref();
            vec![
                entry.name.clone(),
                accuracy(row),
                at_airtime(row),
                entry.view.to_string(),
                by.map_or_else(|| NONE.to_owned(), |by| by.trust.label()),
                entry.channel_knowledge.label(),
                by.map_or_else(|| "no noise gives this ε".to_owned(), |by| by.noise.clone()),
            ]
        };
        let airtime = format!("at {} uses", conditions.airtime);
        Table {
            title: format!("Private training: ε = {} ({})", conditions.epsilon, point.words()),
            heading: texts([
                "scheme",
                "accuracy",
                &airtime,
                "view",
                "clients trust",
                "clients know",
                "protected by",
            ]),
            rows: self.ranked(&point).into_iter().map(row).collect(),
            note: format!(
                "The guarantee of a row holds against the adversary of its view: compare rows of one view. δ = {}, {}. \"At {} uses\" \
                 is the accuracy in the rounds that fit into that number of channel uses per parameter.",
                compact(conditions.delta),
                count(conditions.rounds.into(), "round"),
                conditions.airtime,
            ),
        }
    }

    fn unprotected(&self) -> Table {
        let point = &self.conditions.reference;
        let row = |(entry, row): (&Entry, &Row)| {
            let cost = |pick: fn(&RowCost) -> f64| {
                row.cost.as_ref().map_or_else(|| NONE.to_owned(), |cost| three_digits(pick(cost)))
            };
            vec![
                entry.name.clone(),
                accuracy(row),
                at_airtime(row),
                cost(|cost| cost.uses),
                cost(|cost| cost.energy),
                cost(|cost| cost.power_mean),
                entry.channel_knowledge.label(),
            ]
        };
        let airtime = format!("at {} uses", self.conditions.airtime);
        Table {
            title: format!("Without protection ({})", point.words()),
            heading: texts([
                "scheme",
                "accuracy",
                &airtime,
                "uses",
                "energy",
                "mean power",
                "clients know",
            ]),
            rows: self.ranked(point).into_iter().map(row).collect(),
            note: "Uses: channel uses per parameter and round, with pilots and control. Energy: that of a client in a round, in channel \
                   uses at unit power per parameter. Mean power: that of a client while it sends. Schemes without a radio have none."
                .to_owned(),
        }
    }

    fn views_of(&self, protection: Protection) -> Table {
        let point = Point { protection, ..self.conditions.reference.clone() };
        let row = |entry: &Entry| {
            let row = self.row(&entry.name, &point)?;
            let of = |view| row.privacy.iter().find(|found| found.view == view);
            let cell = |view| of(view).map_or_else(|| NONE.to_owned(), ViewBound::text);
            Some(iter::once(entry.name.clone()).chain(View::BY_ADVERSARY.map(cell)).collect())
        };
        Table {
            title: format!("ε in every view, {} ({})", protection.label(), point.words()),
            heading: iter::once("scheme")
                .chain(View::BY_ADVERSARY.map(View::name))
                .map(str::to_owned)
                .collect(),
            rows: self.entries.iter().filter_map(row).collect(),
            note: "Upper bounds after all rounds. Numbers in parentheses are not proven; \"none\" means that no finite ε is \
                   established; a dash, that the view does not apply."
                .to_owned(),
        }
    }

    fn accuracies_of(&self, (protection, partition): (Protection, &str), points: &[&Point]) -> Table {
        let is_of_group =
            |point: &&&Point| (point.protection, point.partition.as_str()) == (protection, partition);
        let columns: Vec<&&Point> = points.iter().filter(is_of_group).collect();
        let heading = columns.iter().map(|point| format!("K = {}, {} dB", point.clients, point.snr_db));
        let row = |entry: &Entry| {
            let cell =
                |point: &&&Point| self.row(&entry.name, point).map_or_else(|| NONE.to_owned(), accuracy);
            iter::once(entry.name.clone()).chain(columns.iter().map(cell)).collect()
        };
        Table {
            title: format!("Accuracy at every point, {}, {partition}", protection.label()),
            heading: iter::once("scheme".to_owned()).chain(heading).collect(),
            rows: self.entries.iter().map(row).collect(),
            note: String::new(),
        }
    }
}

impl Point {
    /// The conditions in words, without the protection.
    fn words(&self) -> String {
        format!("K = {}, {} dB, {}", self.clients, self.snr_db, self.partition)
    }
}

impl ViewBound {
    /// The bound, rounded up; in parentheses if it is not proven.
    fn text(&self) -> String {
        match (self.epsilon, self.epsilon_above) {
            (Some(epsilon), _) if self.guarantee => epsilon_text(epsilon),
            (Some(epsilon), _) => format!("({})", epsilon_text(epsilon)),
            (None, Some(above)) => format!("> {}", compact(above)),
            (None, None) => "none".to_owned(),
        }
    }
}

fn texts<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

fn accuracy(row: &Row) -> String {
    row.accuracy.map_or_else(|| NONE.to_owned(), percentage)
}

/// Accuracy in the number of rounds that fit into the benchmark's airtime.
fn at_airtime(row: &Row) -> String {
    match row.at_airtime {
        Some((rounds, accuracy)) => {
            format!("{} ({})", percentage(accuracy), count(rounds.into(), "round"))
        }
        None if row.cost.is_some() => "not one round".to_owned(),
        None => NONE.to_owned(),
    }
}

fn three_digits(value: f64) -> String {
    compact(format!("{value:.2e}").parse().unwrap_or(value))
}
