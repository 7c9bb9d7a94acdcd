//! What an audit found, in the form that every reader shows: the program on a terminal, the report as a page.
//!
//! Each attack describes its result as a [`Section`], in its own file. Readers know the parts of a section, and no attack.

use floras_sim::figure::Panel;

use crate::reconstruction::ReconstructionAttack;
use crate::report::{AuditVerdict, Measured};

/// A lower bound above this share of its ceiling says more about the number of games than about what leaks.
const NEAR_THE_CEILING: f64 = 0.9;
/// Headings of the counts behind a lower bound.
const COUNTED: [&str; 4] =
    ["games in each world", "rightly “it is there”", "wrongly “it is there”", "ceiling"];

/// What one attack found.
#[derive(Clone, Debug, PartialEq)]
pub struct Section<'a> {
    /// The question that the attack asks.
    pub title: &'static str,
    /// In the order in which they are shown.
    pub parts: Vec<Part<'a>>,
}

/// A part of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Part<'a> {
    /// What the adversary does, at length. A terminal leaves it out.
    Explanation(String),
    /// What was found, in a sentence or two.
    Finding(String),
    /// What was found, in numbers.
    Table {
        /// One for each column.
        heading: Vec<&'static str>,
        /// As many cells as there are columns.
        rows: Vec<Vec<Cell>>,
    },
    /// Words and what they mean.
    List(Vec<(String, String)>),
    /// What few readers look for. A report folds it away.
    Folded {
        /// What it is about.
        summary: &'static str,
        /// Whether it is short enough for a terminal.
        is_short: bool,
        /// What is folded away.
        parts: Vec<Part<'a>>,
    },
    /// Curves. A terminal leaves them out.
    Plots(&'a [Panel]),
    /// Rows of pictures; there may be none. A terminal leaves them out.
    Pictures(&'a ReconstructionAttack),
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A count.
    Count(u64),
    /// A number, and its decimals.
    Number(f64, usize),
    /// A share from 0 to 1, and a remark, which may be empty.
    Share(f64, &'static str),
    /// A claimed or computed `ε`, what a lower bound says about it, and a remark, which may be empty.
    Epsilon(f64, Option<AuditVerdict>, &'static str),
    /// A number below which the true `ε` is not, and a remark, which may be empty.
    AtLeast(f64, &'static str),
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A claimed `ε` and the verdict on it, or a word if there is none.
    pub(crate) fn claim(claimed: Option<f64>, verdict: Option<AuditVerdict>, absent: &str) -> Self {
        claimed.map_or_else(|| Self::text(absent), |claimed| Self::Epsilon(claimed, verdict, ""))
    }

    /// The accounting's `ε` and the verdict on it; an estimate is marked as one.
    pub(crate) fn rigorous(claimed: Option<f64>, is_guarantee: bool, verdict: Option<AuditVerdict>) -> Self {
        match claimed {
            Some(claimed) if !is_guarantee => {
                let remark = if verdict.is_some() { "no guarantee" } else { "exceeded; no guarantee" };
                Self::Epsilon(claimed, verdict, remark)
            }
            _ => Self::claim(claimed, verdict, "none"),
        }
    }

    /// What was measured, with a remark where more games would show more.
    pub(crate) fn lower_bound(epsilon: f64, measured: &Measured) -> Self {
        let is_near = epsilon > NEAR_THE_CEILING * measured.ceiling;
        Self::AtLeast(epsilon, if is_near { "near the ceiling" } else { "" })
    }
}

impl<'a> Part<'a> {
    /// Words of a table, for someone who has not read the paper.
    pub(crate) fn glossary(words: &[(&str, &str)]) -> Self {
        let words = words.iter().map(|&(word, meaning)| (word.to_owned(), meaning.to_owned()));
        let parts = vec![Part::List(words.collect())];
        Part::Folded { summary: "Words used in this table", is_short: false, parts }
    }

    /// The counts behind lower bounds, beside what each row is about.
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
    /// All curves.
    pub fn plots(&self) -> impl Iterator<Item = &'a Panel> {
        self.parts.iter().flat_map(|part| if let Part::Plots(panels) = part { *panels } else { &[] })
    }

    /// All pictures.
    pub fn pictures(&self) -> impl Iterator<Item = &'a ReconstructionAttack> {
        self.parts
            .iter()
            .filter_map(|part| if let Part::Pictures(found) = part { Some(*found) } else { None })
    }
}
