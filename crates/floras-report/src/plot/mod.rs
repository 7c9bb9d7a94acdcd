//! Plots: a [`Plot`] becomes an SVG, PNG, PDF or CSV file, or a part of a page.
//!
//! ```
//! use floras_report::plot::Plot;
//! use floras_sim::figure::{Axis, Curve, Panel, Style};
//!
//! let axis = |label: &str| Axis { label: label.to_owned(), logarithmic: false, range: None };
//! let curve = Curve {
//!     name: "FLORAS".to_owned(),
//!     colour: 0,
//!     style: Style::Solid,
//!     x: vec![1.0, 2.0, 3.0],
//!     y: vec![Some(20.0), None, Some(60.0)],
//!     band: None,
//! };
//! let panel = Panel {
//!     name: "accuracy".to_owned(),
//!     title: "Test accuracy".to_owned(),
//!     x: axis("round"),
//!     y: axis("test accuracy (%)"),
//!     curves: vec![curve],
//! };
//! let plot = Plot::of_panel(&panel);
//! assert!(plot.svg().contains("Test accuracy"));
//! assert_eq!(plot.csv(), "series,round,test accuracy (%),low,high\nFLORAS,1,20,,\nFLORAS,2,,,\nFLORAS,3,60,,\n");
//! ```

mod font;
pub(crate) mod grid;
pub(crate) mod inline;
mod kuva;
pub(crate) mod panel;
mod pdf;
pub(crate) mod picture;
mod pixels;
pub(crate) mod portraits;
pub(crate) mod scale;

use floras_audit::{ReconstructionAttack, ReconstructionRow};
use floras_sim::figure::{Curve, Panel};
use thiserror::Error;

use self::panel::Marks;
use self::picture::Picture;

pub use grid::Holdings;
pub(crate) use inline::{Svg, svg as inline_svg};

/// A picture that could not be written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("cannot draw {name}: {reason}")]
pub struct PlotError {
    /// Name of the plot.
    pub name: String,
    /// Reason in words.
    pub reason: String,
}

/// Pixels of a PNG file per unit of the picture: about 200 dots per inch at the width of a page.
const PIXELS: f32 = 2.0;
/// Width of the picture of the clients' labels.
const GRID_WIDTH: f64 = 680.0;

/// A picture with a title on white, and the numbers in it. The same input gives the same bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    name: String,
    title: String,
    picture: Picture,
    /// What `x` and `y` are, with their units.
    columns: [String; 2],
    rows: Vec<Row>,
}

/// A line of the CSV file.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    series: String,
    x: f64,
    y: Option<f64>,
    interval: Option<(f64, f64)>,
}

impl Plot {
    /// The endings of the files that [`Plot::files`] returns.
    pub const ENDINGS: [&'static str; 4] = ["svg", "png", "pdf", "csv"];

    /// Curves on axes.
    pub fn of_panel(panel: &Panel) -> Self {
        Self::marked(panel, Marks::default())
    }

    /// Curves on axes with names of categories and hollow points.
    pub(crate) fn marked(panel: &Panel, marks: Marks<'_>) -> Self {
        let row = |curve: &Curve, index: usize| Row {
            series: curve.name.clone(),
            x: curve.x[index],
            y: curve.y.get(index).copied().flatten(),
            interval: curve.band.as_ref().and_then(|band| band.get(index).copied().flatten()),
        };
        let rows =
            panel.curves.iter().flat_map(|curve| (0..curve.x.len()).map(move |index| row(curve, index)));
        Self {
            name: panel.name.clone(),
            title: panel.title.clone(),
            picture: panel::draw(panel, marks, panel::FILE).picture,
            columns: [&panel.x, &panel.y].map(|axis| axis.label.clone()),
            rows: rows.collect(),
        }
    }

    /// The clients' labels. In the CSV file, `series` is the client.
    pub fn of_holdings(holdings: &Holdings) -> Self {
        let row = |client: usize, (label, &count): (usize, &u32)| Row {
            series: format!("client {client}"),
            x: label as f64,
            y: Some(count.into()),
            interval: None,
        };
        let clients = holdings.counts.iter().take(holdings.shown_clients()).enumerate();
        let rows = clients
            .flat_map(|(client, counts)| counts.iter().enumerate().map(move |counted| row(client, counted)));
        Self {
            name: "labels".to_owned(),
            title: holdings.title.clone(),
            picture: grid::draw(holdings, GRID_WIDTH, true),
            columns: ["label", "samples"].map(str::to_owned),
            rows: rows.collect(),
        }
    }

    /// Pictures reconstructed from updates. In the CSV file, `series` is how they were reconstructed.
    pub fn of_reconstruction(attack: &ReconstructionAttack) -> Self {
        let row = |row: &ReconstructionRow, (picture, &correlation): (usize, &f64)| Row {
            series: row.name(),
            x: (picture + 1) as f64,
            y: Some(correlation),
            interval: None,
        };
        let rows = attack.rows.iter().flat_map(|found| {
            found.correlations.iter().enumerate().map(move |correlation| row(found, correlation))
        });
        Self {
            name: "reconstruction".to_owned(),
            title: portraits::TITLE.to_owned(),
            picture: portraits::draw(attack, true),
            columns: ["picture", "correlation with its original"].map(str::to_owned),
            rows: rows.collect(),
        }
    }

    /// The name of its files, without an ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text of an SVG file.
    pub fn svg(&self) -> String {
        kuva::svg(&self.picture)
    }

    /// The bytes of a PNG file.
    pub fn png(&self) -> Result<Vec<u8>, PlotError> {
        kuva::png(&self.picture, PIXELS).map_err(|reason| self.error(reason))
    }

    /// The bytes of a PDF file whose page has the size of the picture.
    pub fn pdf(&self) -> Result<Vec<u8>, PlotError> {
        pdf::pdf(&self.picture, &self.title).map_err(|reason| self.error(reason))
    }

    /// The numbers: the columns `series`, the quantities of both axes with their units, and `low` and `high` of the interval around the
    /// second one. A missing number is empty.
    pub fn csv(&self) -> String {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let [x, y] = self.columns.each_ref().map(|column| quoted(column));
        let mut out = format!("series,{x},{y},low,high\n");
        for Row { series, x, y, interval } in &self.rows {
            let (low, high) = (interval.map(|(low, _)| low), interval.map(|(_, high)| high));
            let cells = [quoted(series), number(Some(*x)), number(*y), number(low), number(high)];
            out.push_str(&cells.join(","));
            out.push('\n');
        }
        out
    }

    /// All files, in the order of [`Plot::ENDINGS`].
    pub fn files(&self) -> Result<[Vec<u8>; 4], PlotError> {
        Ok([self.svg().into_bytes(), self.png()?, self.pdf()?, self.csv().into_bytes()])
    }

    fn error(&self, reason: String) -> PlotError {
        PlotError { name: self.name.clone(), reason }
    }
}

/// A cell of a CSV file (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
