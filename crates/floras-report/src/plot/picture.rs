//! A picture as a list of shapes, before anyone decides whether it becomes SVG in a page, an SVG file or a PNG file.

use floras_sim::figure::Style;

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Picture {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) shapes: Vec<Shape>,
}

/// A rectangle on a picture, `y` downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// What a picture is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Line { points: Vec<(f64, f64)>, ink: Ink, width: f64, style: Style },
    Area { points: Vec<(f64, f64)>, ink: Ink, opacity: f64 },
    Dot { at: (f64, f64), radius: f64, ink: Ink },
    Box { frame: Frame, ink: Ink, opacity: f64 },
    Grey { frame: Frame, pixels: Pixels },
    Text { at: (f64, f64), text: String, size: u32, anchor: Anchor, ink: Ink, bold: bool },
}

/// Grey pixels, row after row, from black (0) to white (255). They are the same on light and on dark paper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pixels {
    pub(crate) across: usize,
    pub(crate) grey: Vec<u8>,
}

impl Pixels {
    /// How many rows there are.
    pub(crate) fn down(&self) -> usize {
        self.grey.len() / self.across.max(1)
    }
}

/// Where a text lies at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// What a shape is drawn in. Its colour depends on whether the paper is light or dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Text,
    Muted,
    Axis,
    Grid,
    Series(usize),
    /// Text on a box that is filled with the first colour.
    OnDark,
}

/// The colours of Okabe and Ito (2008), without the yellow that nobody sees on white: told apart by the colour-blind, too.
pub(crate) const SERIES: [(u8, u8, u8); 7] = [
    (0x00, 0x72, 0xb2),
    (0xd5, 0x5e, 0x00),
    (0x00, 0x9e, 0x73),
    (0xcc, 0x79, 0xa7),
    (0xe6, 0x9f, 0x00),
    (0x56, 0xb4, 0xe9),
    (0x33, 0x33, 0x33),
];

impl Ink {
    /// On white paper.
    pub(crate) fn on_white(self) -> (u8, u8, u8) {
        match self {
            Self::Text => (0x1a, 0x1a, 0x1a),
            Self::Muted => (0x55, 0x55, 0x55),
            Self::Axis => (0x66, 0x66, 0x66),
            Self::Grid => (0xe3, 0xe3, 0xe3),
            Self::Series(number) => SERIES[number % SERIES.len()],
            Self::OnDark => (0xff, 0xff, 0xff),
        }
    }

    /// The class whose colour a page's style sheet sets.
    pub(crate) fn class(self) -> String {
        match self {
            Self::Text => "i-text".to_owned(),
            Self::Muted => "i-muted".to_owned(),
            Self::Axis => "i-axis".to_owned(),
            Self::Grid => "i-grid".to_owned(),
            Self::Series(number) => format!("i-s{}", number % SERIES.len()),
            Self::OnDark => "i-dark".to_owned(),
        }
    }
}

/// Strokes and gaps of a style, in units of the line's width.
pub(crate) fn dashes(style: Style, width: f64) -> Option<(f64, f64)> {
    match style {
        Style::Solid => None,
        Style::Dashed => Some((4.0 * width, 2.5 * width)),
        Style::Dotted => Some((1.0 * width, 2.0 * width)),
    }
}

/// A line cut into its strokes, for whoever cannot draw gaps along many short pieces.
pub(crate) fn strokes(points: &[(f64, f64)], stroke: f64, gap: f64) -> Vec<Vec<(f64, f64)>> {
    let (mut pieces, mut piece) = (Vec::new(), Vec::new());
    let (mut draws, mut left) = (true, stroke);
    for pair in points.windows(2) {
        let ((mut x, mut y), (to_x, to_y)) = (pair[0], pair[1]);
        if draws && piece.is_empty() {
            piece.push((x, y));
        }
        loop {
            let length = (to_x - x).hypot(to_y - y);
            if length < left || length == 0.0 || !length.is_finite() {
                left -= length;
                break;
            }
            let part = left / length;
            (x, y) = (x + part * (to_x - x), y + part * (to_y - y));
            if draws {
                piece.push((x, y));
                pieces.push(std::mem::take(&mut piece));
            } else {
                piece.push((x, y));
            }
            draws = !draws;
            left = if draws { stroke } else { gap };
        }
        if draws {
            piece.push((to_x, to_y));
        }
    }
    if piece.len() > 1 {
        pieces.push(piece);
    }
    pieces
}

/// About how wide a text is in a common sans-serif face.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let letter = |letter: char| match letter {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' => 0.32,
        'f' | 't' | 'r' | ' ' | '(' | ')' | '[' | ']' | '-' | '/' => 0.41,
        'm' | 'w' | 'M' | 'W' | '−' | '=' | '+' | '±' | '≤' | '≥' => 0.9,
        letter if letter.is_uppercase() => 0.7,
        _ => 0.63,
    };
    size * text.chars().map(letter).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Along a straight line of 10 in pieces of 1: strokes 0–4, 6–10, whatever the pieces are.
    #[test]
    fn dashes_do_not_depend_on_how_many_points_a_line_has() {
        let fine: Vec<(f64, f64)> = (0..=100).map(|x| (f64::from(x) / 10.0, 0.0)).collect();
        for points in [&fine[..], &[(0.0, 0.0), (10.0, 0.0)][..]] {
            let ends = |piece: &Vec<(f64, f64)>| (piece[0].0, piece[piece.len() - 1].0);
            let strokes: Vec<(f64, f64)> = strokes(points, 4.0, 2.0).iter().map(ends).collect();
            assert_eq!(strokes.len(), 2, "{strokes:?}");
            for ((a, b), (from, to)) in strokes.into_iter().zip([(0.0, 4.0), (6.0, 10.0)]) {
                assert!((a - from).abs() < 1e-9 && (b - to).abs() < 1e-9, "{a} to {b}");
            }
        }
    }
}
