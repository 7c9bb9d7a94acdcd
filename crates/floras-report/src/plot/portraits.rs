//! Pictures reconstructed from updates: the originals, and one row for each observation below them.

use floras_audit::{ReconstructionAttack, ReconstructionRow};
use floras_sim::number::signed;

use super::font::{text_width, wrapped};
use super::picture::{Anchor, Frame, Ink, Picture, Pixels, Shape};

const TEXT: u32 = 12;
const SIZE: f64 = TEXT as f64;
/// Distance between two portraits.
const GAP: f64 = 6.0;
pub(super) const TITLE: &str = "Pictures reconstructed from updates";

/// The settings in a line.
pub(crate) fn settings_line(attack: &ReconstructionAttack) -> String {
    let pairs: Vec<String> = attack.settings.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    pairs.join("; ")
}

/// Draws all rows, with a title and the settings if the picture is a file of its own.
pub(crate) fn draw(attack: &ReconstructionAttack, alone: bool) -> Picture {
    // An integer number of units per pixel, so that all pixels are equally large in a PNG file.
    let unit = (60 / attack.width.max(1)).max(1) as f64;
    let (wide, high) = (unit * attack.width as f64, unit * attack.height as f64);
    let names = attack.rows.iter().map(ReconstructionRow::name).chain(["original".to_owned()]);
    let left = names.map(|name| text_width(&name, SIZE)).fold(0.0, f64::max).ceil() + 12.0;
    let right = left + attack.originals.len() as f64 * (wide + GAP);
    let width = right + text_width("correlation", SIZE).ceil() + 8.0;
    let mut sheet = Sheet { shapes: Vec::new(), left, right, wide, high, across: attack.width };
    let mut top = if alone { sheet.title() } else { 4.0 };
    top = sheet.row(top, "original", &attack.originals, None);
    for row in &attack.rows {
        top = sheet.row(top, &row.name(), &row.images, Some(row));
    }
    if alone {
        top = sheet.settings(top, width, &settings_line(attack));
    }
    Picture { width, height: (top + 4.0).ceil(), shapes: sheet.shapes }
}

struct Sheet {
    shapes: Vec<Shape>,
    left: f64,
    right: f64,
    wide: f64,
    high: f64,
    across: usize,
}

impl Sheet {
    fn text(&mut self, at: (f64, f64), text: &str, size: u32, anchor: Anchor, ink: Ink, bold: bool) {
        self.shapes.push(Shape::Text { at, text: text.to_owned(), size, anchor, ink, bold });
    }

    fn title(&mut self) -> f64 {
        self.text((4.0, 1.8 * SIZE), TITLE, TEXT + 3, Anchor::Start, Ink::Text, true);
        (3.2 * SIZE).ceil()
    }

    /// Draws a row and returns where the next one begins.
    fn row(&mut self, top: f64, name: &str, images: &[Vec<u8>], numbers: Option<&ReconstructionRow>) -> f64 {
        let middle = top + 0.5 * self.high + 0.35 * SIZE;
        self.text((self.left - 10.0, middle), name, TEXT, Anchor::End, Ink::Text, false);
        for (place, image) in images.iter().enumerate() {
            let x = self.left + place as f64 * (self.wide + GAP);
            let pixels = Pixels { across: self.across, grey: image.clone() };
            let frame = Frame { x, y: top, width: self.wide, height: self.high };
            self.shapes.push(Shape::Grey { frame, pixels });
            if let Some(correlation) = numbers.and_then(|row| row.correlations.get(place)) {
                let at = (x + 0.5 * self.wide, top + self.high + SIZE);
                self.text(at, &signed(*correlation, 2), TEXT - 2, Anchor::Middle, Ink::Muted, false);
            }
        }
        // The column on the right: its heading beside the originals, then a number for each row.
        let beside = self.right + 4.0;
        let Some(row) = numbers else {
            self.text((beside, middle - 0.7 * SIZE), "mean", TEXT, Anchor::Start, Ink::Muted, false);
            self.text((beside, middle + 0.7 * SIZE), "correlation", TEXT, Anchor::Start, Ink::Muted, false);
            return top + self.high + 10.0;
        };
        let mean = signed(row.mean_correlation(), 3);
        self.text((beside, middle), &mean, TEXT + 1, Anchor::Start, Ink::Text, true);
        (top + self.high + 1.9 * SIZE).ceil()
    }

    /// Writes the settings below and returns where they end.
    fn settings(&mut self, top: f64, width: f64, words: &str) -> f64 {
        let lines = wrapped(words, SIZE - 1.0, width - 8.0);
        let mut y = top + 4.0;
        for line in &lines {
            y += 1.35 * SIZE;
            self.text((4.0, y), line, TEXT - 1, Anchor::Start, Ink::Muted, false);
        }
        y + 0.5 * SIZE
    }
}
