//! Who holds which labels: a row a client, a column a label, the darker the more samples.

use super::picture::{Anchor, Frame, Ink, Picture, Shape, text_width};

/// More clients than this are not drawn, and more labels neither.
pub(crate) const MAX_ROWS: usize = 40;
pub(crate) const MAX_COLUMNS: usize = 40;

/// How many samples of each label some clients hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Holdings {
    /// A line above the picture.
    pub title: String,
    /// All clients, also those that are not listed.
    pub clients: u32,
    /// One row a client, one column a label.
    pub counts: Vec<Vec<u32>>,
}

impl Holdings {
    /// How many clients a picture shows.
    pub fn shown_clients(&self) -> usize {
        self.counts.len().min(MAX_ROWS)
    }

    /// How many labels there are.
    pub fn labels(&self) -> usize {
        self.counts.iter().map(Vec::len).max().unwrap_or(0)
    }
}

/// Draws the rows from top to bottom, with their numbers in the boxes where there is room.
pub(crate) fn draw(holdings: &Holdings, width: f64, alone: bool) -> Picture {
    let (rows, columns) = (holdings.shown_clients(), holdings.labels().min(MAX_COLUMNS));
    let text = 12_u32;
    let size = f64::from(text);
    let left = text_width("client 00", size) + 10.0;
    let top = if alone { 4.4 * size } else { 2.6 * size };
    let cell = (width - left - 6.0) / columns.max(1) as f64;
    let high = if rows > 20 { 14.0 } else { 18.0 };
    let most = holdings.counts.iter().take(rows).flatten().copied().max().unwrap_or(0).max(1);
    let numbers_fit = text_width(&most.to_string(), size - 2.0) < cell - 3.0 && high >= 14.0;
    let mut shapes = Vec::new();
    let mut write = |at: (f64, f64), words: String, anchor: Anchor, ink: Ink, size: u32, bold: bool| {
        shapes.push(Shape::Text { at, text: words, size, anchor, ink, bold });
    };
    if alone {
        write((4.0, 1.6 * size), holdings.title.clone(), Anchor::Start, Ink::Text, text + 3, true);
    }
    write((4.0, top - 0.5 * size), "label".to_owned(), Anchor::Start, Ink::Muted, text, false);
    let every = (24.0 / cell).ceil().max(1.0) as usize;
    for label in (0..columns).step_by(every) {
        let at = (left + (label as f64 + 0.5) * cell, top - 0.5 * size);
        write(at, label.to_string(), Anchor::Middle, Ink::Muted, text, false);
    }
    for (client, counts) in holdings.counts.iter().take(rows).enumerate() {
        let y = top + client as f64 * high;
        let words = format!("client {client}");
        shapes.push(Shape::Text {
            at: (left - 6.0, y + 0.5 * high + 0.35 * (size - 1.0)),
            text: words,
            size: text - 1,
            anchor: Anchor::End,
            ink: Ink::Muted,
            bold: false,
        });
        for (label, &count) in counts.iter().take(columns).enumerate() {
            let x = left + label as f64 * cell;
            let share = f64::from(count) / f64::from(most);
            let frame = Frame { x: x + 0.5, y: y + 0.5, width: cell - 1.0, height: high - 1.0 };
            // Even one sample must not look like none.
            let opacity = if count == 0 { 0.04 } else { 0.12 + 0.88 * share };
            shapes.push(Shape::Box { frame, ink: Ink::Series(0), opacity });
            if numbers_fit && count > 0 {
                shapes.push(Shape::Text {
                    at: (x + 0.5 * cell, y + 0.5 * high + 0.35 * (size - 2.0)),
                    text: count.to_string(),
                    size: text - 2,
                    anchor: Anchor::Middle,
                    ink: if opacity > 0.55 { Ink::OnDark } else { Ink::Text },
                    bold: false,
                });
            }
        }
    }
    Picture { width, height: top + rows as f64 * high + 8.0, shapes }
}
