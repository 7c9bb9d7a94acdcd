//! Audit results in the form that the terminal and the report share.
//!
//! Each attack describes its result as a [`Section`], in its own file. Readers depend on the parts of a section, not on
//! attacks.

use floras_sim::figure::Panel;

use crate::reconstruction::ReconstructionAttack;
use crate::report::{AuditVerdict, Measured};

/// A lower bound above this share of its ceiling is limited by the number of games rather than by the leakage.
const NEAR_THE_CEILING: f64 = 0.9;
/// Headings of the counts behind a lower bound.
const COUNTED: [&str; 4] = ["games in each world", "true positives", "false positives", "ceiling"];

/// The result of one attack.
#[derive(Clone, Debug, PartialEq)]
pub struct Section<'a> {
    /// The question that the attack asks.
    pub title: &'static str,
    /// The parts in display order.
    pub parts: Vec<Part<'a>>,
}

/// A part of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Part<'a> {
    /// The adversary's method. A terminal omits it.
    Explanation(String),
    /// The finding in a sentence or two.
    Finding(String),
    /// The finding in numbers.
    Table {
        /// One heading per column.
        heading: Vec<&'static str>,
        /// Rows with as many cells as there are columns.
        rows: Vec<Vec<Cell>>,
    },
    /// Terms with their definitions.
    List(Vec<(String, String)>),
    /// Details. A report shows them collapsed.
    Folded {
        /// The title, shown above the collapsed parts.
        summary: &'static str,
        /// Whether it is short enough for a terminal.
        is_short: bool,
        /// The collapsed parts.
        parts: Vec<Part<'a>>,
    },
    /// Curves. A terminal omits them.
    Plots(&'a [Panel]),
    /// Rows of pictures, possibly none. A terminal omits them.
    Pictures(&'a ReconstructionAttack),
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Any text, shown unchanged.
    Text(String),
    /// A count, shown as an integer.
    Count(u64),
    /// A number with its decimals.
    Number(f64, usize),
    /// A share from 0 to 1 with a remark, possibly empty.
    Share(f64, &'static str),
    /// A claimed or computed `ε` with the verdict on it and a remark, possibly empty.
    Epsilon(f64, Option<AuditVerdict>, &'static str),
    /// A lower bound on the true `ε` with a remark, possibly empty.
    AtLeast(f64, &'static str),
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A claimed `ε` with the verdict on it, or a word if there is none.
    pub(crate) fn claim(claimed: Option<f64>, verdict: Option<AuditVerdict>, absent: &str) -> Self {
        claimed.map_or_else(|| Self::text(absent), |claimed| Self::Epsilon(claimed, verdict, ""))
    }

    /// The accountant's `ε` with the verdict on it; an estimate is marked.
    pub(crate) fn rigorous(claimed: Option<f64>, is_guarantee: bool, verdict: Option<AuditVerdict>) -> Self {
        match claimed {
            Some(claimed) if !is_guarantee => {
                let remark = if verdict.is_some() { "no guarantee" } else { "exceeded; no guarantee" };
                Self::Epsilon(claimed, verdict, remark)
            }
            _ => Self::claim(claimed, verdict, "none"),
        }
    }

    /// A measured bound, marked if more games would raise it.
    pub(crate) fn lower_bound(epsilon: f64, measured: &Measured) -> Self {
        let is_near = epsilon > NEAR_THE_CEILING * measured.ceiling;
        Self::AtLeast(epsilon, if is_near { "near the ceiling" } else { "" })
    }
}

impl<'a> Part<'a> {
    /// Terms of a table, for readers who have not read the paper.
    pub(crate) fn glossary(words: &[(&str, &str)]) -> Self {
        let words = words.iter().map(|&(word, meaning)| (word.to_owned(), meaning.to_owned()));
        let parts = vec![Part::List(words.collect())];
        Part::Folded { summary: "Terms used in this table", is_short: false, parts }
    }

    /// The counts behind lower bounds, with the descriptions of the rows.
    pub(crate) fn counts<'m>(
        heading: &[&'static str],
        rows: impl Iterator<Item = (Vec<Cell>, &'m Measured)>,
    ) -> Self {
        let row = |(mut cells, measured): (Vec<Cell>, &Measured)| {
            cells.extend([measured.games, measured.right, measured.wrong].map(Cell::Count));
            cells.push(Cell::Epsilon(measured.ceiling, None, ""));
            cells
        };
        Part::Table { heading: [heading, &COUNTED].concat(), rows: rows.map(row).collect() }
    }
}

impl<'a> Section<'a> {
    /// The panels of all plots in this section.
    pub fn plots(&self) -> impl Iterator<Item = &'a Panel> {
        self.parts.iter().flat_map(|part| if let Part::Plots(panels) = part { *panels } else { &[] })
    }

    /// All reconstructions whose pictures this section shows.
    pub fn pictures(&self) -> impl Iterator<Item = &'a ReconstructionAttack> {
        self.parts
            .iter()
            .filter_map(|part| if let Part::Pictures(found) = part { Some(*found) } else { None })
    }
}
