//! The tables of a benchmark, which its page and the book show.

use std::iter;

use floras_core::{Choice, View};

use super::{AtAirtime, Benchmark, Entry, Point, Row, RowCost, ViewBound};
use crate::inquiry::epsilon_text;
use crate::number::{compact, count, percentage};
use crate::schemes::ChannelKnowledge;

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
        let conditions = &self.conditions;
        [&conditions.private(), &conditions.reference].map(|point| self.views_of(point)).to_vec()
    }

    /// Accuracies at all numbers of clients and SNRs, by `ε` and partition; none if there is one of them only.
    pub fn accuracies(&self) -> Vec<Table> {
        let points = self.points();
        let mut groups: Vec<(Option<f64>, &str)> = Vec::new();
        for point in &points {
            if !groups.contains(&(point.epsilon, &point.partition)) {
                groups.push((point.epsilon, &point.partition));
            }
        }
        let columns = |&(epsilon, partition): &(Option<f64>, &str)| -> Vec<&Point> {
            let is_of_group =
                |point: &&&Point| (point.epsilon, point.partition.as_str()) == (epsilon, partition);
            points.iter().filter(is_of_group).copied().collect()
        };
        let groups = groups.iter().map(columns).filter(|columns| columns.len() > 1);
        groups.map(|columns| self.accuracies_of(&columns)).collect()
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
        let point = conditions.private();
        let row = |(entry, row): (&Entry, &Row)| {
            let by = row.protected_by.as_ref();
            vec![
                entry.name.clone(),
                accuracy(row),
                entry.view.to_string(),
                row.bound(entry.view).map_or_else(|| NONE.to_owned(), ViewBound::text),
                cost(row, |cost| cost.uses),
                cost(row, |cost| cost.energy),
                by.map_or_else(|| NONE.to_owned(), |by| by.trust.label()),
                entry.channel_knowledge.label(),
                entry.antennas.to_string(),
                by.map_or_else(|| "no noise gives this ε".to_owned(), |by| by.noise.clone()),
            ]
        };
        let heading = [
            "scheme",
            "accuracy",
            "view",
            "ε",
            "uses",
            "energy",
            "clients trust",
            "clients know",
            "antennas",
            "protected by",
        ];
        Table {
            title: format!("Private training: ε ≤ {} ({})", conditions.epsilon, point.words()),
            heading: texts(heading),
            rows: self.ranked(&point).into_iter().map(row).collect(),
            note: format!(
                "The guarantee of a row holds against the adversary of its view: compare rows of one view whose clients trust the same \
                 parties. ε is that of the row in its view after {}, at δ = {}. Uses and energy are those of a round, as below.",
                count(conditions.rounds.into(), "round"),
                compact(conditions.delta),
            ),
        }
    }

    fn unprotected(&self) -> Table {
        let conditions = &self.conditions;
        let point = &conditions.reference;
        let row = |(entry, row): (&Entry, &Row)| {
            vec![
                entry.name.clone(),
                accuracy(row),
                at_airtime(row),
                with_estimates(entry, row),
                cost(row, |cost| cost.uses),
                cost(row, |cost| cost.energy),
                cost(row, RowCost::power),
                cost(row, |cost| cost.power_peak),
                entry.channel_knowledge.label(),
                entry.antennas.to_string(),
            ]
        };
        let airtime = format!("at {} uses", conditions.airtime);
        let heading = [
            "scheme",
            "accuracy",
            &airtime,
            "estimated channels",
            "uses",
            "energy",
            "mean power",
            "peak power",
            "clients know",
            "antennas",
        ];
        Table {
            title: format!("Without protection ({})", point.words()),
            heading: texts(heading),
            rows: self.ranked(point).into_iter().map(row).collect(),
            note: format!(
                "Accuracy: after {}. {}{}: accuracy if a scheme trains for as many rounds as fit into this airtime; a star marks the \
                 maximum of {}. Estimated channels: accuracy if clients know their channels with the error of one pilot of unit power, \
                 of standard deviation {}. Uses: channel uses per parameter and round, with pilots and control. Energy: that of a client in \
                 a round, in channel uses at unit power per parameter. Mean power: the larger one of the mean over the payload and over \
                 payload and pilots. Peak power: the largest mean of a client over the payload of a round. A dash: without a radio.",
                count(conditions.rounds.into(), "round"),
                airtime[..1].to_uppercase(),
                &airtime[1..],
                count(conditions.max_rounds.into(), "round"),
                compact(conditions.channel_error),
            ),
        }
    }

    /// Accuracies at the reference point for every `ε`.
    pub fn by_epsilon(&self) -> Table {
        let epsilons = self.epsilons();
        let row = |entry: &Entry| {
            let cell = |&epsilon: &f64| {
                let point = Point { epsilon: Some(epsilon), ..self.conditions.reference.clone() };
                self.row(&entry.name, &point).map_or_else(|| NONE.to_owned(), accuracy)
            };
            iter::once(entry.name.clone()).chain(epsilons.iter().map(cell)).collect()
        };
        let heading = epsilons.iter().map(|epsilon| format!("ε = {epsilon}"));
        Table {
            title: format!("Accuracy by ε ({})", self.conditions.reference.words()),
            heading: iter::once("scheme".to_owned()).chain(heading).collect(),
            rows: self.ranked(&self.conditions.private()).into_iter().map(|(entry, _)| row(entry)).collect(),
            note: "Every row has its ε in the view that the ranking names.".to_owned(),
        }
    }

    fn views_of(&self, point: &Point) -> Table {
        let row = |entry: &Entry| {
            let row = self.row(&entry.name, point)?;
            let cell = |view| row.bound(view).map_or_else(|| NONE.to_owned(), ViewBound::text);
            Some(iter::once(entry.name.clone()).chain(View::BY_ADVERSARY.map(cell)).collect())
        };
        Table {
            title: format!("ε in every view, {} ({})", point.protection(), point.words()),
            heading: iter::once("scheme")
                .chain(View::BY_ADVERSARY.map(View::name))
                .map(str::to_owned)
                .collect(),
            rows: self.entries.iter().filter_map(row).collect(),
            note: "Upper bounds after all rounds. Numbers in parentheses are not proven; a dash means that the view does \
                   not apply."
                .to_owned(),
        }
    }

    /// What the bounds of the private ranking assume.
    pub fn assumptions(&self) -> Table {
        let point = self.conditions.private();
        let row = |entry: &Entry| {
            let bound = self.row(&entry.name, &point)?.bound(entry.view)?;
            (!bound.assumptions.is_empty())
                .then(|| vec![entry.name.clone(), entry.view.to_string(), bound.assumptions.join("; ")])
        };
        Table {
            title: format!("Assumptions of the private rows, {} ({})", point.protection(), point.words()),
            heading: texts(["scheme", "view", "the bound assumes"]),
            rows: self.entries.iter().filter_map(row).collect(),
            note: String::new(),
        }
    }

    /// Accuracies at points that differ in the number of clients and the SNR.
    fn accuracies_of(&self, columns: &[&Point]) -> Table {
        let heading = columns.iter().map(|point| format!("K = {}, {} dB", point.clients, point.snr_db));
        let row = |entry: &Entry| {
            let cell =
                |point: &&Point| self.row(&entry.name, point).map_or_else(|| NONE.to_owned(), accuracy);
            iter::once(entry.name.clone()).chain(columns.iter().map(cell)).collect()
        };
        Table {
            title: format!("Accuracy at every point, {}, {}", columns[0].protection(), columns[0].partition),
            heading: iter::once("scheme".to_owned()).chain(heading).collect(),
            rows: self.entries.iter().map(row).collect(),
            note: String::new(),
        }
    }
}

impl Point {
    /// The protection in words.
    pub fn protection(&self) -> String {
        self.epsilon.map_or_else(|| "without protection".to_owned(), |epsilon| format!("ε = {epsilon}"))
    }

    /// The conditions in words, without the protection.
    fn words(&self) -> String {
        format!("K = {}, {} dB, {}", self.clients, self.snr_db, self.partition)
    }
}

impl ViewBound {
    /// The bound, rounded up; in parentheses if it is not proven.
    pub fn text(&self) -> String {
        match (self.epsilon, self.epsilon_above) {
            (Some(epsilon), _) if self.guarantee => epsilon_text(epsilon),
            (Some(epsilon), _) => format!("({})", epsilon_text(epsilon)),
            (None, Some(above)) => format!("> {}", compact(above)),
            (None, None) => "no finite ε".to_owned(),
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
        Some(AtAirtime { rounds, is_capped, accuracy }) => {
            let star = if is_capped { "*" } else { "" };
            format!("{} ({}{star})", percentage(accuracy), count(rounds.into(), "round"))
        }
        None if row.cost.is_some() => "not one round".to_owned(),
        None => NONE.to_owned(),
    }
}

/// Accuracy if clients estimate their channels.
fn with_estimates(entry: &Entry, row: &Row) -> String {
    match row.with_estimates {
        Some(accuracy) => percentage(accuracy),
        None if row.cost.is_none() => NONE.to_owned(),
        None if entry.channel_knowledge == ChannelKnowledge::Nothing => "none needed".to_owned(),
        None => "no model".to_owned(),
    }
}

/// A part of the cost; a dash without a radio.
fn cost(row: &Row, pick: impl Fn(&RowCost) -> f64) -> String {
    row.cost.as_ref().map_or_else(|| NONE.to_owned(), |cost| three_digits(pick(cost)))
}

fn three_digits(value: f64) -> String {
    compact(format!("{value:.2e}").parse().unwrap_or(value))
}
