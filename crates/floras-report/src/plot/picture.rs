//! A picture as a list of shapes, from which SVG in a page and SVG, PNG and PDF files are written.

use floras_sim::figure::Style;

/// A picture: its size, and its shapes from back to front.
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

/// An element of a picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Line { points: Vec<(f64, f64)>, ink: Ink, width: f64, style: Style },
    Area { points: Vec<(f64, f64)>, ink: Ink, opacity: f64 },
    Dot { at: (f64, f64), radius: f64, ink: Ink },
    Box { frame: Frame, ink: Ink, opacity: f64 },
    Grey { frame: Frame, pixels: Pixels },
    Text { at: (f64, f64), text: String, size: u32, anchor: Anchor, ink: Ink, bold: bool },
}

/// Grey pixels, row after row, from black (0) to white (255). They are the same on a light and on a dark page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pixels {
    pub(crate) across: usize,
    pub(crate) grey: Vec<u8>,
}

impl Pixels {
    /// Number of rows.
    pub(crate) fn down(&self) -> usize {
        self.grey.len() / self.across.max(1)
    }
}

/// Which end of a text lies at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// The colour of a shape. A page has a light and a dark colour for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Text,
    Muted,
    Axis,
    Grid,
    Series(usize),
    /// Text on a box that is filled with the first colour.
    OnDark,
    /// White in a file, and the colour below a plot in a page.
    Paper,
}

/// Colours of the curves on white. They follow Okabe and Ito (2008), so that the colour-blind can distinguish them, and are
/// darkened to a contrast of at least 4.5 with white, so that text can have them, too.
pub(crate) const SERIES: [(u8, u8, u8); 7] = [
    (0x00, 0x72, 0xb2),
    (0xc0, 0x4a, 0x00),
    (0x00, 0x78, 0x5a),
    (0xb0, 0x47, 0x8a),
    (0x80, 0x60, 0x00),
    (0x6a, 0x51, 0xc7),
    (0x33, 0x33, 0x33),
];

/// The same colours on a dark page.
pub(crate) const SERIES_DARK: [(u8, u8, u8); 7] = [
    (0x4d, 0xa3, 0xe0),
    (0xf2, 0x8e, 0x4b),
    (0x2c, 0xc2, 0x95),
    (0xe0, 0x9c, 0xc5),
    (0xd9, 0xb2, 0x3a),
    (0xb3, 0xa1, 0xff),
    (0xe6, 0xe6, 0xe6),
];

impl Ink {
    /// The colour on white.
    pub(crate) fn on_white(self) -> (u8, u8, u8) {
        match self {
            Self::Text => (0x1a, 0x1a, 0x1a),
            Self::Muted => (0x55, 0x55, 0x55),
            Self::Axis => (0x66, 0x66, 0x66),
            Self::Grid => (0xe3, 0xe3, 0xe3),
            Self::Series(number) => SERIES[number % SERIES.len()],
            Self::OnDark | Self::Paper => (0xff, 0xff, 0xff),
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
            Self::Paper => "i-paper".to_owned(),
        }
    }
}

/// Lengths of strokes and gaps in turn, for a line of some width; empty for a solid line.
pub(crate) fn dashes(style: Style, width: f64) -> Vec<f64> {
    let widths: &[f64] = match style {
        Style::Solid => &[],
        Style::Dashed => &[4.0, 2.5],
        Style::Dotted => &[1.0, 2.0],
        Style::DashDotted => &[5.0, 2.0, 1.0, 2.0],
    };
    widths.iter().map(|part| part * width).collect()
}

/// A line cut into its strokes, for output that has no dashes along many short pieces. `pattern` has strokes and gaps in turn.
pub(crate) fn strokes(points: &[(f64, f64)], pattern: &[f64]) -> Vec<Vec<(f64, f64)>> {
    let (mut pieces, mut piece) = (Vec::new(), Vec::new());
    let mut lengths = pattern.iter().copied().cycle();
    let (mut draws, mut left) = (true, lengths.next().unwrap_or(f64::INFINITY));
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
            left = lengths.next().unwrap_or(f64::INFINITY);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Along a straight line of 10 in pieces of 1: strokes 0–4, 6–10, whatever the pieces are.
    #[test]
    fn dashes_do_not_depend_on_the_points() {
        let fine: Vec<(f64, f64)> = (0..=100).map(|x| (f64::from(x) / 10.0, 0.0)).collect();
        for points in [&fine[..], &[(0.0, 0.0), (10.0, 0.0)][..]] {
            let ends = |piece: &Vec<(f64, f64)>| (piece[0].0, piece[piece.len() - 1].0);
            let strokes: Vec<(f64, f64)> = strokes(points, &[4.0, 2.0]).iter().map(ends).collect();
            assert_eq!(strokes.len(), 2, "{strokes:?}");
            for ((a, b), (from, to)) in strokes.into_iter().zip([(0.0, 4.0), (6.0, 10.0)]) {
                assert!((a - from).abs() < 1e-9 && (b - to).abs() < 1e-9, "{a} to {b}");
            }
        }
    }

    /// Contrast of two colours by WCAG 2.2.
    fn contrast(one: (u8, u8, u8), other: (u8, u8, u8)) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let luminance = |(red, green, blue): (u8, u8, u8)| {
            0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
        };
        let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
        one.max(other) / one.min(other)
    }

    #[test]
    fn colours_can_be_read_as_text() {
        let inks = [Ink::Text, Ink::Muted, Ink::Axis].map(Ink::on_white);
        for colour in SERIES.into_iter().chain(inks) {
            let contrast = contrast(colour, (0xff, 0xff, 0xff));
            assert!(contrast >= 4.5, "{colour:?}: {contrast}");
        }
        for colour in SERIES_DARK {
            let contrast = contrast(colour, (0x1d, 0x20, 0x26));
            assert!(contrast >= 4.5, "{colour:?}: {contrast}");
        }
    }
}
