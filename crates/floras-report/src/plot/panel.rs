//! A panel as a picture: grid, axes, bands, curves, and for files a title and a legend.
//!
//! The legend lies below the axes, where it covers nothing. The label of the vertical axis lies above it and is read
//! without turning one's head.

use floras_sim::figure::{Curve, Panel, Style};

use super::picture::{Anchor, Frame, Ink, Picture, Shape, text_width};
use super::scale::{Scale, tick_text};

/// How large a picture is, and what it has around the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// A file needs a title and a legend; a page has them already.
    pub(crate) alone: bool,
    pub(crate) text: u32,
    pub(crate) line: f64,
}

/// A file for a paper or a slide.
pub(crate) const FILE: Size = Size { width: 680.0, height: 420.0, alone: true, text: 13, line: 2.0 };
/// A picture in a page, still readable on a phone.
pub(crate) const INLINE: Size = Size { width: 420.0, height: 270.0, alone: false, text: 12, line: 1.8 };

/// A panel's picture, with what a page needs to find values in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Drawn {
    pub(crate) picture: Picture,
    pub(crate) frame: Frame,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
}

/// Curves with fewer points show each of them.
const FEW_POINTS: usize = 15;

/// Draws a panel.
pub(crate) fn draw(panel: &Panel, size: Size) -> Drawn {
    let x = Scale::of(&panel.x, panel.curves.iter().flat_map(|curve| curve.x.iter().copied()), 0.0);
    let y = Scale::of(&panel.y, panel.curves.iter().flat_map(shown_values), 0.05);
    let text = f64::from(size.text);
    let across = if size.alone { 7 } else { 5 };
    let (x_ticks, y_ticks) = (x.ticks(across), y.ticks(6));
    let widest = y_ticks.iter().map(|tick| text_width(&tick_text(*tick), text)).fold(20.0, f64::max);
    let top = if size.alone { 4.6 * text } else { 2.0 * text };
    let (left, right) = (widest + 14.0, 1.2 * text);
    let below = 3.4 * text;
    let frame =
        Frame { x: left, y: top, width: size.width - left - right, height: size.height - top - below };
    let mut drawing = Drawing { frame, x, y, size, shapes: Vec::new() };
    drawing.axes(panel, &x_ticks, &y_ticks);
    for curve in &panel.curves {
        drawing.band(curve);
    }
    for curve in &panel.curves {
        drawing.curve(curve);
    }
    let mut height = size.height;
    if size.alone {
        drawing.title(&panel.title);
        height += drawing.legend(&panel.curves, size.height);
    }
    let picture = Picture { width: size.width, height, shapes: drawing.shapes };
    Drawn { picture, frame, x, y }
}

fn shown_values(curve: &Curve) -> impl Iterator<Item = f64> + '_ {
    let band = curve.band.iter().flatten().flatten().flat_map(|&(low, high)| [low, high]);
    curve.y.iter().flatten().copied().chain(band)
}

struct Drawing {
    frame: Frame,
    x: Scale,
    y: Scale,
    size: Size,
    shapes: Vec<Shape>,
}

impl Drawing {
    fn left(&self, place: f64) -> f64 {
        self.frame.x + place * self.frame.width
    }

    fn top(&self, place: f64) -> f64 {
        self.frame.y + (1.0 - place) * self.frame.height
    }

    fn line(&mut self, points: [(f64, f64); 2], ink: Ink) {
        self.shapes.push(Shape::Line { points: points.to_vec(), ink, width: 1.0, style: Style::Solid });
    }

    fn text(&mut self, at: (f64, f64), text: &str, anchor: Anchor, ink: Ink) {
        let (text, size) = (text.to_owned(), self.size.text);
        self.shapes.push(Shape::Text { at, text, size, anchor, ink, bold: false });
    }

    fn axes(&mut self, panel: &Panel, x_ticks: &[f64], y_ticks: &[f64]) {
        let Frame { x, y, width, height } = self.frame;
        let (right, bottom, text) = (x + width, y + height, f64::from(self.size.text));
        for &tick in y_ticks {
            let Some(place) = self.y.place(tick) else { continue };
            let at = self.top(place);
            self.line([(x, at), (right, at)], Ink::Grid);
            self.text((x - 7.0, at + 0.35 * text), &tick_text(tick), Anchor::End, Ink::Muted);
        }
        let mut free_from = f64::NEG_INFINITY;
        for &tick in x_ticks {
            let Some(place) = self.x.place(tick) else { continue };
            let (at, words) = (self.left(place), tick_text(tick));
            self.line([(at, y), (at, bottom)], Ink::Grid);
            self.line([(at, bottom), (at, bottom + 4.0)], Ink::Axis);
            let half = 0.5 * text_width(&words, text);
            // Labels of a logarithmic axis crowd together.
            if at - half > free_from {
                self.text((at, bottom + 1.4 * text), &words, Anchor::Middle, Ink::Muted);
                free_from = at + half + 4.0;
            }
        }
        self.line([(x, bottom), (right, bottom)], Ink::Axis);
        self.text((x + 0.5 * width, bottom + 2.8 * text), &panel.x.label, Anchor::Middle, Ink::Text);
        self.text((4.0, y - 0.8 * text), &panel.y.label, Anchor::Start, Ink::Text);
    }

    fn title(&mut self, title: &str) {
        let size = self.size.text + 3;
        let at = (4.0, 1.6 * f64::from(size));
        let (text, anchor, ink) = (title.to_owned(), Anchor::Start, Ink::Text);
        self.shapes.push(Shape::Text { at, text, size, anchor, ink, bold: true });
    }

    fn band(&mut self, curve: &Curve) {
        let Some(band) = &curve.band else { return };
        let at = |index: usize| {
            let (low, high) = band.get(index).copied().flatten()?;
            let x = self.x.place(*curve.x.get(index)?).filter(|place| (0.0..=1.0).contains(place))?;
            Some((self.left(x), self.top(self.y.place_within(low)?), self.top(self.y.place_within(high)?)))
        };
        let runs = unbroken((0..curve.x.len()).map(at));
        for run in runs.into_iter().filter(|run| run.len() > 1) {
            let upper = run.iter().map(|&(x, _, high)| (x, high));
            let lower = run.iter().rev().map(|&(x, low, _)| (x, low));
            let points = upper.chain(lower).collect();
            self.shapes.push(Shape::Area { points, ink: Ink::Series(curve.colour), opacity: 0.2 });
        }
    }

    fn curve(&mut self, curve: &Curve) {
        let ink = Ink::Series(curve.colour);
        let at = |index: usize| {
            let y = self.y.place(curve.y.get(index).copied().flatten()?)?;
            Some((self.left(self.x.place(*curve.x.get(index)?)?), self.top(y)))
        };
        let runs = unbroken((0..curve.x.len()).map(at));
        let shows_points = curve.x.len() <= FEW_POINTS;
        for run in runs {
            let inside = |&(x, y): &(f64, f64)| self.frame.holds(x, y);
            if shows_points || run.len() == 1 {
                let dots = run.iter().copied().filter(inside);
                let dots: Vec<Shape> =
                    dots.map(|at| Shape::Dot { at, radius: 1.5 * self.size.line, ink }).collect();
                self.shapes.extend(dots);
            }
            for points in self.frame.clip(&run) {
                self.shapes.push(Shape::Line { points, ink, width: self.size.line, style: curve.style });
            }
        }
    }

    /// Draws the legend below, and returns how much room it takes.
    fn legend(&mut self, curves: &[Curve], from: f64) -> f64 {
        let text = f64::from(self.size.text);
        let (sample, row) = (28.0, 1.7 * text);
        let (mut x, mut y) = (self.frame.x, from + text);
        for curve in curves {
            let width = sample + 8.0 + text_width(&curve.name, text) + 18.0;
            if x > self.frame.x && x + width > self.size.width {
                (x, y) = (self.frame.x, y + row);
            }
            let points = vec![(x, y), (x + sample, y)];
            let ink = Ink::Series(curve.colour);
            self.shapes.push(Shape::Line { points, ink, width: self.size.line, style: curve.style });
            self.text((x + sample + 8.0, y + 0.35 * text), &curve.name, Anchor::Start, Ink::Text);
            x += width;
        }
        if curves.is_empty() { 0.0 } else { y - from + row }
    }
}

impl Frame {
    fn holds(&self, x: f64, y: f64) -> bool {
        let slack = 1e-6;
        (self.x - slack..=self.x + self.width + slack).contains(&x)
            && (self.y - slack..=self.y + self.height + slack).contains(&y)
    }

    /// The parts of a line that lie inside.
    fn clip(&self, points: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
        let (mut parts, mut part) = (Vec::new(), Vec::<(f64, f64)>::new());
        for pair in points.windows(2) {
            match self.clip_piece(pair[0], pair[1]) {
                None => parts.push(std::mem::take(&mut part)),
                Some((from, to)) => {
                    if part.last() != Some(&from) {
                        parts.push(std::mem::take(&mut part));
                        part.push(from);
                    }
                    part.push(to);
                }
            }
        }
        parts.push(part);
        parts.retain(|part| part.len() > 1);
        parts
    }

    /// Liang and Barsky (1984).
    fn clip_piece(&self, from: (f64, f64), to: (f64, f64)) -> Option<((f64, f64), (f64, f64))> {
        if self.holds(from.0, from.1) && self.holds(to.0, to.1) {
            return Some((from, to));
        }
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let (mut begin, mut end) = (0.0_f64, 1.0_f64);
        let sides = [
            (-dx, from.0 - self.x),
            (dx, self.x + self.width - from.0),
            (-dy, from.1 - self.y),
            (dy, self.y + self.height - from.1),
        ];
        for (towards, room) in sides {
            if towards == 0.0 {
                if room < 0.0 {
                    return None;
                }
            } else if towards < 0.0 {
                begin = begin.max(room / towards);
            } else {
                end = end.min(room / towards);
            }
        }
        let at = |part: f64| (from.0 + part * dx, from.1 + part * dy);
        (begin < end).then(|| (at(begin), at(end)))
    }
}

/// Splits at the gaps.
fn unbroken<T>(values: impl Iterator<Item = Option<T>>) -> Vec<Vec<T>> {
    let mut runs = vec![Vec::new()];
    for value in values {
        match (value, runs.last_mut()) {
            (Some(value), Some(run)) => run.push(value),
            (None, Some(run)) if !run.is_empty() => runs.push(Vec::new()),
            _ => {}
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}
