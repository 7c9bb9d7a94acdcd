//! Plots: a [`Panel`] becomes an SVG or a PNG file, or a part of a page.
//!
//! ```
//! use floras_sim::figure::{Axis, Curve, Panel, Style};
//!
//! let axis = |label: &str| Axis { label: label.to_owned(), logarithmic: false, range: None };
//! let curve = Curve {
//!     name: "FLORAS".to_owned(),
//!     colour: 0,
//!     style: Style::Solid,
//!     x: vec![1.0, 2.0, 3.0],
//!     y: vec![Some(0.2), None, Some(0.6)],
//!     band: None,
//! };
//! let panel = Panel {
//!     name: "accuracy".to_owned(),
//!     title: "Test accuracy".to_owned(),
//!     x: axis("round"),
//!     y: axis("share of test samples"),
//!     curves: vec![curve],
//! };
//! assert!(floras_report::plot::svg(&panel).contains("Test accuracy"));
//! ```

pub(crate) mod grid;
pub(crate) mod inline;
mod kuva;
pub(crate) mod panel;
pub(crate) mod picture;
mod pixels;
pub(crate) mod portraits;
pub(crate) mod scale;

use floras_audit::ReconstructionAttack;
use floras_sim::figure::Panel;
use thiserror::Error;

pub use grid::Holdings;
pub(crate) use inline::{Svg, svg as inline_svg};

/// A picture that could not be drawn.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("cannot draw {name}: {reason}")]
pub struct PlotError {
    /// Which.
    pub name: String,
    /// Why not.
    pub reason: String,
}

/// Pixels of a PNG for a unit of the picture: about 200 dots an inch at the width of a page.
const PIXELS: f32 = 2.0;
/// Width of the picture of who holds what.
const GRID_WIDTH: f64 = 680.0;

/// A panel as the text of an SVG file, with its title and its legend on white.
pub fn svg(panel: &Panel) -> String {
    kuva::svg(&panel::draw(panel, panel::FILE).picture)
}

/// A panel as the bytes of a PNG file.
pub fn png(panel: &Panel) -> Result<Vec<u8>, PlotError> {
    let picture = panel::draw(panel, panel::FILE).picture;
    kuva::png(&picture, PIXELS).map_err(|reason| PlotError { name: panel.name.clone(), reason })
}

/// Who holds what, as the text of an SVG file.
pub fn holdings_svg(holdings: &Holdings) -> String {
    kuva::svg(&grid::draw(holdings, GRID_WIDTH, true))
}

/// Who holds what, as the bytes of a PNG file.
pub fn holdings_png(holdings: &Holdings) -> Result<Vec<u8>, PlotError> {
    let picture = grid::draw(holdings, GRID_WIDTH, true);
    kuva::png(&picture, PIXELS).map_err(|reason| PlotError { name: "labels".to_owned(), reason })
}

/// What an audit's updates show, as the text of an SVG file.
pub fn reconstruction_svg(attack: &ReconstructionAttack) -> String {
    kuva::svg(&portraits::draw(attack, true))
}

/// What an audit's updates show, as the bytes of a PNG file.
pub fn reconstruction_png(attack: &ReconstructionAttack) -> Result<Vec<u8>, PlotError> {
    let picture = portraits::draw(attack, true);
    kuva::png(&picture, PIXELS).map_err(|reason| PlotError { name: "reconstruction".to_owned(), reason })
}
