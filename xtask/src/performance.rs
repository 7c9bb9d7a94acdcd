//! `cargo xtask performance`: the tables of `docs/reference/performance.md`, from the measurements in `docs/reference/performance.json`.
//!
//! A table stands in the page between `<!-- table: NAME -->` and `<!-- end of table -->`. Times and sizes stand in tables only, so that no
//! number of the page can differ from the record.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail, ensure};
use regex::Regex;
use serde::Deserialize;
use serde_json::Number;

use crate::shell;

const PAGE: &str = "docs/reference/performance.md";
const RECORD: &str = "docs/reference/performance.json";
const END: &str = "<!-- end of table -->";

/// The content of `performance.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    tables: Vec<Table>,
}

/// Measurements of one kind, from one machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    name: String,
    /// Date of the measurements.
    measured: String,
    /// The kind of machine.
    machine: String,
    command: String,
    /// Which time or size, and of how many runs.
    statistic: String,
    /// Values that quotients of all rows refer to.
    #[serde(default)]
    constants: BTreeMap<String, Constant>,
    columns: Vec<Column>,
    rows: Vec<BTreeMap<String, Cell>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Constant {
    meaning: String,
    value: Number,
    unit: String,
}

#[derive(Debug, Deserialize)]
struct Column {
    title: String,
    #[serde(flatten)]
    content: Content,
    /// Unit of the column's values, unless a value names its own.
    unit: Option<String>,
    /// Digits after the point; as recorded if absent.
    decimals: Option<usize>,
}

/// What a column shows. Keys name entries of the rows.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", untagged)]
enum Content {
    Value {
        value: String,
    },
    Quotient {
        quotient: [String; 2],
    },
    /// An aim, and whether the first of these entries that the row has meets it.
    Aim {
        aim: String,
        of: Vec<String>,
    },
}

/// An entry of a row.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Cell {
    Text(String),
    Number(Number),
    Aim(Aim),
    Measured(Measured),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Aim {
    AtMost(Number),
    AtLeast(Number),
}

/// A value, a range of values, or both.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Measured {
    value: Option<Number>,
    lowest: Option<Number>,
    highest: Option<Number>,
    unit: Option<String>,
}

/// Writes the tables into the page.
pub(crate) fn run() -> Result<()> {
    let path = shell::root().join(PAGE);
    let page = fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
    let numbers = numbers_in_prose(&page)?;
    ensure!(numbers.is_empty(), "{PAGE} has measured numbers outside of its tables:\n{}", numbers.join("\n"));
    fs::write(&path, with_tables(&page, &record()?)?).with_context(|| format!("cannot write {PAGE}"))
}

fn record() -> Result<Record> {
    let text =
        fs::read_to_string(shell::root().join(RECORD)).with_context(|| format!("cannot read {RECORD}"))?;
    serde_json::from_str(&text).with_context(|| format!("{RECORD} is not a record of measurements"))
}

/// The page with its tables replaced by those of the record.
fn with_tables(page: &str, record: &Record) -> Result<String> {
    let mut written = BTreeSet::new();
    let mut parts = page.split("<!-- table: ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(" -->").context("a mark of a table has no end")?;
        let (_, rest) = rest.split_once(END).with_context(|| format!("the table {name} has no end"))?;
        let table = record.tables.iter().find(|table| table.name == name);
        let table = table.with_context(|| format!("{RECORD} has no table {name}"))?.markdown()?;
        text += &format!("<!-- table: {name} -->\n\n{table}\n{END}{rest}");
        written.insert(name);
    }
    for Table { name, .. } in &record.tables {
        ensure!(written.contains(name.as_str()), "{PAGE} does not show the table {name}");
    }
    Ok(text)
}

impl Table {
    fn markdown(&self) -> Result<String> {
        let titles = self.columns.iter().map(|column| column.title.as_str());
        let mut text = line(titles);
        text += &line(self.columns.iter().map(|column| if self.is_text(column) { "---" } else { "---:" }));
        for row in &self.rows {
            let cells = self.columns.iter().map(|column| self.cell(column, row));
            let cells: Vec<String> =
                cells.collect::<Result<_>>().with_context(|| format!("table {}", self.name))?;
            text += &line(cells.iter().map(String::as_str));
        }
        self.check_that_all_is_shown()?;
        let Self { measured, machine, command, statistic, .. } = self;
        text += &format!("\n`{command}`, {measured}. Machine: {machine}. Measured: {statistic}.");
        for Constant { meaning, value, unit } in self.constants.values() {
            text += &format!(" Unit of comparison: {meaning}, {value} {unit}.");
        }
        text.push('\n');
        Ok(text)
    }

    fn is_text(&self, column: &Column) -> bool {
        let Content::Value { value } = &column.content else { return false };
        self.rows.iter().all(|row| matches!(row.get(value), Some(Cell::Text(_))))
    }

    fn cell(&self, column: &Column, row: &BTreeMap<String, Cell>) -> Result<String> {
        match &column.content {
            Content::Value { value } => Ok(row.get(value).map(|cell| column.show(cell)).unwrap_or_default()),
            Content::Quotient { quotient } => {
                let [above, below] = quotient.each_ref().map(|key| self.number(row, key));
                Ok(format!("{:.*}", column.decimals.unwrap_or(2), above? / below?))
            }
            Content::Aim { aim, of } => {
                let Some(cell) = row.get(aim) else { return Ok(String::new()) };
                let Cell::Aim(aim) = cell else { bail!("{aim} is not an aim") };
                let measured = of.iter().find(|&key| row.contains_key(key)).context("an aim of no value")?;
                Ok(aim.judge(self.number(row, measured)?))
            }
        }
    }

    /// A number of a row, or one that all rows share.
    fn number(&self, row: &BTreeMap<String, Cell>, key: &str) -> Result<f64> {
        let number = match row.get(key) {
            Some(Cell::Number(number)) => Some(number),
            Some(Cell::Measured(measured)) => measured.value.as_ref().or(measured.highest.as_ref()),
            Some(_) => None,
            None => self.constants.get(key).map(|constant| &constant.value),
        };
        number.and_then(Number::as_f64).with_context(|| format!("{key} is not a number"))
    }

    /// An entry without a column would be recorded and not published.
    fn check_that_all_is_shown(&self) -> Result<()> {
        let shown: BTreeSet<&str> = self.columns.iter().flat_map(|column| column.content.keys()).collect();
        let hidden = self.rows.iter().flat_map(BTreeMap::keys).find(|key| !shown.contains(key.as_str()));
        ensure!(hidden.is_none(), "no column of the table {} shows {:?}", self.name, hidden);
        Ok(())
    }
}

impl Column {
    fn show(&self, cell: &Cell) -> String {
        let (text, unit) = match cell {
            Cell::Text(text) => return text.clone(),
            Cell::Aim(aim) => return aim.describe(),
            Cell::Number(number) => (self.digits(number), None),
            Cell::Measured(Measured { value, lowest, highest, unit }) => {
                let range = lowest.as_ref().zip(highest.as_ref());
                let range = range.map(|(low, high)| format!("{} to {}", self.digits(low), self.digits(high)));
                let text = match (value, range) {
                    (Some(value), Some(range)) => format!("{} ({range})", self.digits(value)),
                    (Some(value), None) => self.digits(value),
                    (None, range) => range.unwrap_or_default(),
                };
                (text, unit.as_deref())
            }
        };
        match unit.or(self.unit.as_deref()) {
            Some(unit) => format!("{text} {unit}"),
            None => text,
        }
    }

    fn digits(&self, number: &Number) -> String {
        match (self.decimals, number.as_f64()) {
            (Some(decimals), Some(value)) => format!("{value:.decimals$}"),
            _ => number.to_string(),
        }
    }
}

impl Content {
    fn keys(&self) -> Vec<&str> {
        match self {
            Self::Value { value } => vec![value],
            Self::Quotient { quotient } => quotient.iter().map(String::as_str).collect(),
            Self::Aim { aim, of } => of.iter().chain([aim]).map(String::as_str).collect(),
        }
    }
}

impl Aim {
    fn describe(&self) -> String {
        match self {
            Self::AtMost(bound) => format!("≤ {bound}"),
            Self::AtLeast(bound) => format!("≥ {bound}"),
        }
    }

    fn judge(&self, measured: f64) -> String {
        let is_met = match self {
            Self::AtMost(bound) => bound.as_f64().is_some_and(|bound| measured <= bound),
            Self::AtLeast(bound) => bound.as_f64().is_some_and(|bound| measured >= bound),
        };
        self.describe() + if is_met { "" } else { ", **missed**" }
    }
}

/// A row of a table in Markdown.
fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for cell in cells {
        text += &format!("| {cell} ");
    }
    text + "|\n"
}

/// Times and sizes outside of the tables.
fn numbers_in_prose(page: &str) -> Result<Vec<String>> {
    let tables = Regex::new(&format!("(?s)<!-- table: .*?{END}"))?;
    let quantity = Regex::new(r"\d ?(ns|µs|ms|s|seconds|minutes|kB|MB|MiB|GB|%)\b|\d times (as|faster)")?;
    let prose = tables.replace_all(page, "");
    Ok(prose.lines().filter(|line| quantity.is_match(line)).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> String {
        fs::read_to_string(shell::root().join(PAGE)).unwrap()
    }

    #[test]
    fn the_page_shows_the_recorded_measurements() {
        let page = page();
        assert_eq!(page, with_tables(&page, &record().unwrap()).unwrap(), "run cargo xtask performance");
    }

    #[test]
    fn measured_numbers_stand_in_tables_only() {
        assert_eq!(numbers_in_prose(&page()).unwrap(), [""; 0]);
        let page = "takes 3 ms\n<!-- table: a -->\n4 ms\n<!-- end of table -->\n1,000 rounds\n";
        assert_eq!(numbers_in_prose(page).unwrap(), ["takes 3 ms"]);
    }

    fn table(row: &str) -> Record {
        let text = format!(
            r#"{{"tables": [{{
                "name": "a", "measured": "2026", "machine": "m", "command": "c", "statistic": "s",
                "constants": {{"unit": {{"meaning": "u", "value": 2.0, "unit": "s"}}}},
                "columns": [
                    {{"title": "what", "value": "what"}},
                    {{"title": "time", "value": "time", "unit": "ms", "decimals": 2}},
                    {{"title": "ratio", "quotient": ["time", "unit"], "decimals": 1}},
                    {{"title": "aim", "aim": "aim", "of": ["time"]}}
                ],
                "rows": [{row}]
            }}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    const MARKS: &str = "before\n<!-- table: a -->\nold\n<!-- end of table -->\nafter\n";

    #[test]
    fn a_table_replaces_the_old_one() {
        let row =
            r#"{"what": "x", "time": {"value": 3, "lowest": 1.5, "highest": 4}, "aim": {"at_most": 2.5}}"#;
        let expected = "before\n<!-- table: a -->\n\n| what | time | ratio | aim |\n| --- | ---: | ---: | ---: |\n\
                        | x | 3.00 (1.50 to 4.00) ms | 1.5 | ≤ 2.5, **missed** |\n\n\
                        `c`, 2026. Machine: m. Measured: s. Unit of comparison: u, 2.0 s.\n\n\
                        <!-- end of table -->\nafter\n";
        assert_eq!(with_tables(MARKS, &table(row)).unwrap(), expected);
    }

    #[test]
    fn aims_that_are_met_stand_alone() {
        let aim = |text| serde_json::from_str::<Aim>(text).unwrap();
        assert_eq!(aim(r#"{"at_least": 3}"#).judge(3.0), "≥ 3");
        assert_eq!(aim(r#"{"at_least": 3}"#).judge(2.9), "≥ 3, **missed**");
        assert_eq!(aim(r#"{"at_most": 0.05}"#).judge(0.04), "≤ 0.05");
    }

    #[test]
    fn recorded_entries_must_be_shown() {
        let hidden = r#"{"what": "x", "time": 3, "memory": 5}"#;
        assert!(with_tables(MARKS, &table(hidden)).unwrap_err().to_string().contains("memory"));
        assert!(with_tables("no marks", &table("")).unwrap_err().to_string().contains("does not show"));
    }
}
