//! The labels that each client holds: one row per client, one column per label, darker for more samples.

use super::font::text_width;
use super::picture::{Anchor, Frame, Ink, Picture, Shape};

/// The maximum numbers of clients and of labels in the picture.
pub(crate) const MAX_ROWS: usize = 40;
pub(crate) const MAX_COLUMNS: usize = 40;

/// Opacities of the boxes for no samples, and for up to a quarter, half, three quarters and all of the largest number. Dark digits
/// can be read on all but the last, light digits on the last; on a dark page it is the other way round.
const NONE: f64 = 0.04;
const LEVELS: [f64; 4] = [0.15, 0.32, 0.5, 1.0];

const TEXT: u32 = 12;
const SIZE: f64 = TEXT as f64;

/// The numbers of samples of each label, per client.
#[derive(Clone, Debug, PartialEq)]
pub struct Holdings {
    /// Title above the picture, in one line.
    pub title: String,
    /// Number of all clients, including those without a row.
    pub clients: u32,
    /// Numbers of samples: one row per client, one column per label.
    pub counts: Vec<Vec<u32>>,
}

impl Holdings {
    /// Number of clients in the picture.
    pub fn shown_clients(&self) -> usize {
        self.counts.len().min(MAX_ROWS)
    }

    /// Number of labels.
    pub fn labels(&self) -> usize {
        self.counts.iter().map(Vec::len).max().unwrap_or(0)
    }
}

/// The step of the colour scale of a count.
fn level(count: u32, largest: u32) -> Option<usize> {
    let steps = LEVELS.len() as u64;
    (count > 0)
        .then(|| ((u64::from(count) * steps).div_ceil(largest.into()) as usize).clamp(1, LEVELS.len()) - 1)
}

/// The counts of a step, in words.
fn counts_of(step: usize, largest: u32) -> String {
    let end = |step: usize| u64::from(largest) * step as u64 / LEVELS.len() as u64;
    let (from, to) = (end(step) + 1, end(step + 1));
    if from >= to { to.to_string() } else { format!("{from}–{to}") }
}

/// Draws the rows from top to bottom, with digits in the boxes where there is room, totals, and the colour scale below.
pub(crate) fn draw(holdings: &Holdings, width: f64, alone: bool) -> Picture {
    let (rows, columns) = (holdings.shown_clients(), holdings.labels().min(MAX_COLUMNS));
    let total = |counts: &[u32]| counts.iter().map(|&count| u64::from(count)).sum::<u64>();
    let shown = || holdings.counts.iter().take(rows);
    let largest = shown().flatten().copied().max().unwrap_or(0).max(1);
    let widest = shown().map(|counts| text_width(&total(counts).to_string(), SIZE - 1.0)).fold(0.0, f64::max);
    let left = text_width("client 00", SIZE) + 10.0;
    let right = widest.max(text_width("total", SIZE)) + 12.0;
    let top = if alone { 4.4 * SIZE } else { 2.6 * SIZE };
    let cell = (width - left - right) / columns.max(1) as f64;
    let high = if rows > 20 { 15.0 } else { 18.0 };
    let digits_fit = text_width(&largest.to_string(), SIZE - 2.0) < cell - 3.0;
    let mut sheet = Sheet { shapes: Vec::new() };
    if alone {
        let (at, text) = ((4.0, 1.6 * SIZE), holdings.title.clone());
        sheet.shapes.push(Shape::Text {
            at,
            text,
            size: TEXT + 3,
            anchor: Anchor::Start,
            ink: Ink::Text,
            bold: true,
        });
    }
    sheet.text((4.0, top - 0.5 * SIZE), "label", TEXT, Anchor::Start, Ink::Muted);
    sheet.text((width - 4.0, top - 0.5 * SIZE), "total", TEXT, Anchor::End, Ink::Muted);
    let every = (24.0 / cell).ceil().max(1.0) as usize;
    for label in (0..columns).step_by(every) {
        let at = (left + (label as f64 + 0.5) * cell, top - 0.5 * SIZE);
        sheet.text(at, &label.to_string(), TEXT, Anchor::Middle, Ink::Muted);
    }
    for (client, counts) in shown().enumerate() {
        let y = top + client as f64 * high;
        let line = y + 0.5 * high + 0.35 * (SIZE - 1.0);
        sheet.text((left - 6.0, line), &format!("client {client}"), TEXT - 1, Anchor::End, Ink::Muted);
        sheet.text((width - 4.0, line), &total(counts).to_string(), TEXT - 1, Anchor::End, Ink::Muted);
        for (label, &count) in counts.iter().take(columns).enumerate() {
            let x = left + label as f64 * cell;
            let frame = Frame { x: x + 0.5, y: y + 0.5, width: cell - 1.0, height: high - 1.0 };
            let step = level(count, largest);
            sheet.field(frame, step);
            if let Some(step) = step.filter(|_| digits_fit) {
                let at = (x + 0.5 * cell, y + 0.5 * high + 0.35 * (SIZE - 2.0));
                let ink = if step + 1 == LEVELS.len() { Ink::OnDark } else { Ink::Text };
                sheet.text(at, &count.to_string(), TEXT - 2, Anchor::Middle, ink);
            }
        }
    }
    let below = top + rows as f64 * high;
    sheet.scale((left, below + 0.6 * SIZE), largest);
    Picture { width, height: below + 2.4 * SIZE, shapes: sheet.shapes }
}

struct Sheet {
    shapes: Vec<Shape>,
}

impl Sheet {
    fn text(&mut self, at: (f64, f64), text: &str, size: u32, anchor: Anchor, ink: Ink) {
        self.shapes.push(Shape::Text { at, text: text.to_owned(), size, anchor, ink, bold: false });
    }

    fn field(&mut self, frame: Frame, step: Option<usize>) {
        let opacity = step.map_or(NONE, |step| LEVELS[step]);
        self.shapes.push(Shape::Box { frame, ink: Ink::Series(0), opacity });
    }

    /// The colour scale: a box for each step with its counts.
    fn scale(&mut self, (mut x, y): (f64, f64), largest: u32) {
        self.text((4.0, y + 0.85 * SIZE), "samples", TEXT - 1, Anchor::Start, Ink::Muted);
        let steps = (0..LEVELS.len()).filter(|&step| {
            // Fewer counts than steps leave some steps empty.
            (1..=largest.min(64)).any(|count| level(count, largest) == Some(step)) || largest > 64
        });
        let named: Vec<(Option<usize>, String)> = [(None, "0".to_owned())]
            .into_iter()
            .chain(steps.map(|step| (Some(step), counts_of(step, largest))))
            .collect();
        for (step, words) in named {
            self.field(Frame { x, y, width: 16.0, height: 13.0 }, step);
            self.text((x + 20.0, y + 0.85 * SIZE), &words, TEXT - 1, Anchor::Start, Ink::Muted);
            x += 20.0 + text_width(&words, SIZE - 1.0) + 14.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_the_scale_match_their_words() {
        let steps: Vec<Option<usize>> = [0, 1, 25, 26, 75, 76, 100].map(|count| level(count, 100)).to_vec();
        assert_eq!(steps, [None, Some(0), Some(0), Some(1), Some(2), Some(3), Some(3)]);
        let words: Vec<String> = (0..4).map(|step| counts_of(step, 100)).collect();
        assert_eq!(words, ["1–25", "26–50", "51–75", "76–100"]);
    }
}
