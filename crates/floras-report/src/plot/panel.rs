//! A panel as a picture: grid, axes, bands, curves, and for files a title and the names of the curves.
//!
//! Curves that overlap are drawn once, with all of their names: no point is further than 1% of the axes from the other
//! curve. Their numbers stay apart in CSV files and beside the pointer. In a file, names stand at the ends of the curves where they
//! fit, and else in a legend below the axes.

use floras_sim::figure::{Axis, Curve, Panel, Style};

use super::font::{text_width, wrapped};
use super::picture::{Anchor, Frame, Ink, Picture, Shape};
use super::scale::{Scale, tick_texts};

/// The size of a picture, and whether it stands alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// A file needs a title and the names of its curves; a page has them around the picture.
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
    /// The curves as they were drawn: those that overlap are one.
    pub(crate) curves: Vec<Curve>,
    /// For each curve of the panel, the number of the drawn one.
    pub(crate) drawn_as: Vec<usize>,
}

/// Curves with fewer points show each of them.
const FEW_POINTS: usize = 15;
/// Maximum distance, as a share of the axes, between curves that are drawn as one.
const APART: f64 = 0.01;
/// If all curves overlap and their names are longer together, they are counted instead of named.
const MAX_JOINED: usize = 120;
/// Maximum number of names at the ends of curves; more names are in a legend.
const MAX_LABELS: usize = 8;
/// The widest line of a name at the end of a curve.
const LABEL_WIDTH: f64 = 165.0;
/// Ends of curves that are this near to one another look like one point.
const SHARED_END: f64 = 3.0;
/// The distance between the end of a curve and its name.
const LABEL_GAP: f64 = 8.0;

/// What a panel's numbers do not say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks<'m> {
    /// Names for the integers from 0 on the horizontal axis; without them, the axis has numbers.
    pub(crate) categories: &'m [String],
    /// The points that have a hollow marker.
    pub(crate) hollow: &'m [(f64, f64)],
}

/// Draws a panel.
pub(crate) fn draw(panel: &Panel, Marks { categories, hollow }: Marks<'_>, size: Size) -> Drawn {
    let mut x = Scale::of(&panel.x, panel.curves.iter().flat_map(|curve| curve.x.iter().copied()), 0.0);
    if !categories.is_empty() {
        x = Scale { logarithmic: false, low: -0.4, high: categories.len() as f64 - 0.6 };
    }
    let y = Scale::of(&panel.y, panel.curves.iter().flat_map(shown_values), 0.05);
    let (curves, drawn_as) = merged(&panel.curves, (x, y));
    let text = f64::from(size.text);
    let y_ticks = y.ticks(6);
    let widest = tick_texts(&y_ticks).iter().map(|tick| text_width(tick, text)).fold(20.0, f64::max);
    let titles = if size.alone { wrapped(&panel.title, text + 3.0, 0.88 * size.width) } else { Vec::new() };
    let title_height =
        if size.alone { 3.4 * text + 1.3 * (text + 3.0) * (titles.len() - 1) as f64 } else { 0.0 };
    let y_label = wrapped(&axis_label(&panel.y), text, size.width - 8.0);
    let label_height = 1.25 * text * (y_label.len() - 1) as f64;
    let top = title_height + label_height + if size.alone { 1.6 * text } else { 2.0 * text };
    let (left, right) = (widest + 14.0, 1.6 * text);
    let below = 3.4 * text;
    let outer =
        Frame { x: left, y: top, width: size.width - left - right, height: size.height - top - below };
    let labels = if size.alone { Labels::of(&curves, outer, (x, y), text) } else { None };
    let mut frame = outer;
    if let Some(labels) = &labels {
        frame.width -= labels.width;
        frame.x += if labels.at_start { labels.width } else { 0.0 };
    }
    let mut drawing = Drawing { frame, outer, x, y, size, shapes: Vec::new() };
    let x_ticks = if categories.is_empty() {
        let ticks = x.ticks_with_ends(if size.alone { 7 } else { 5 });
        ticks.iter().copied().zip(tick_texts(&ticks)).collect()
    } else {
        categories.iter().enumerate().map(|(place, name)| (place as f64, name.clone())).collect()
    };
    drawing.axes(&axis_label(&panel.x), &y_label, x_ticks, &y_ticks);
    for curve in &curves {
        drawing.band(curve);
    }
    for curve in &curves {
        drawing.curve(curve, hollow);
    }
    let mut height = size.height;
    if size.alone {
        drawing.title(&titles);
        match &labels {
            Some(labels) => drawing.labels(labels, &curves),
            None => height += drawing.legend(&curves, size.height),
        }
    }
    let picture = Picture { width: size.width, height, shapes: drawing.shapes };
    Drawn { picture, frame, x, y, curves, drawn_as }
}

/// The label of an axis, with a remark if the axis is logarithmic.
pub(crate) fn axis_label(axis: &Axis) -> String {
    match (axis.logarithmic, axis.label.strip_suffix(')')) {
        (false, _) => axis.label.clone(),
        (true, Some(start)) => format!("{start}, log scale)"),
        (true, None) => format!("{} (log scale)", axis.label),
    }
}

fn shown_values(curve: &Curve) -> impl Iterator<Item = f64> + '_ {
    let band = curve.band.iter().flatten().flatten().flat_map(|&(low, high)| [low, high]);
    curve.y.iter().flatten().copied().chain(band)
}

/// One curve for each group that overlaps, named after all of its members, and the group of each curve. The first member is drawn.
fn merged(curves: &[Curve], axes: (Scale, Scale)) -> (Vec<Curve>, Vec<usize>) {
    let mut groups: Vec<(Curve, Vec<&str>)> = Vec::new();
    let mut group_of = Vec::new();
    for curve in curves {
        let group = groups.iter().position(|(first, _)| overlaps(first, curve, axes));
        group_of.push(group.unwrap_or(groups.len()));
        match group {
            Some(group) => groups[group].1.push(&curve.name),
            None => groups.push((curve.clone(), vec![&curve.name])),
        }
    }
    let name = |names: Vec<&str>| {
        let all = (names.len() == curves.len()).then_some(names.len());
        joined_names(&names, all)
    };
    let drawn = groups.into_iter().map(|(curve, names)| Curve { name: name(names), ..curve });
    (drawn.collect(), group_of)
}

/// Whether the second curve lies on the first one wherever it has values.
fn overlaps(first: &Curve, second: &Curve, axes: (Scale, Scale)) -> bool {
    let (below, above) = (placed(first, axes), placed(second, axes));
    let (Some(from), Some(to)) = (
        above.iter().map(|point| point.0).min_by(f64::total_cmp),
        above.iter().map(|point| point.0).max_by(f64::total_cmp),
    ) else {
        return false;
    };
    let (below_lines, above_lines) = (pieces(first, axes), pieces(second, axes));
    above.iter().all(|point| is_on(*point, &below_lines))
        && below.iter().filter(|(x, _)| (from..=to).contains(x)).all(|point| is_on(*point, &above_lines))
}

/// The places of a curve's values on both axes.
fn places<'c>(curve: &'c Curve, (x, y): (Scale, Scale)) -> impl Iterator<Item = Option<(f64, f64)>> + 'c {
    curve.x.iter().zip(&curve.y).map(move |(&at, &value)| Some((x.place(at)?, y.place_within(value?)?)))
}

fn placed(curve: &Curve, axes: (Scale, Scale)) -> Vec<(f64, f64)> {
    places(curve, axes).flatten().collect()
}

/// A straight piece of a curve.
type Piece = ((f64, f64), (f64, f64));

/// The pieces between neighbouring values; a value between gaps is a piece without length.
fn pieces(curve: &Curve, axes: (Scale, Scale)) -> Vec<Piece> {
    let runs = unbroken(places(curve, axes));
    let of_run = |run: Vec<(f64, f64)>| -> Vec<Piece> {
        match run[..] {
            [only] => vec![(only, only)],
            _ => run.windows(2).map(|pair| (pair[0], pair[1])).collect(),
        }
    };
    runs.into_iter().flat_map(of_run).collect()
}

fn is_on((x, y): (f64, f64), pieces: &[Piece]) -> bool {
    let is_near = |&&((from, _), (to, _)): &&Piece| from.min(to) - APART <= x && x <= from.max(to) + APART;
    pieces.iter().filter(is_near).any(|&(from, to)| {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx * dx + dy * dy;
        let part = if length > 0.0 { ((x - from.0) * dx + (y - from.1) * dy) / length } else { 0.0 };
        let part = part.clamp(0.0, 1.0);
        (from.0 + part * dx - x).hypot(from.1 + part * dy - y) <= APART
    })
}

/// The names of overlapping curves, with the number of curves if they are all. Whole names: a shortened one could be taken for another
/// curve.
fn joined_names(names: &[&str], all: Option<usize>) -> String {
    if let [only] = names {
        return (*only).to_owned();
    }
    let sign = if names.iter().any(|name| name.contains([',', '='])) { "; " } else { ", " };
    let list = names.join(sign);
    match all {
        Some(all) if list.chars().count() > MAX_JOINED => format!("all {all} curves (overlap)"),
        Some(all) if all > 2 => format!("all {all}: {list} (overlap)"),
        _ => format!("{list} (overlap)"),
    }
}

/// The names of the curves beside their first or last points.
struct Labels {
    at_start: bool,
    /// The width that they take from the axes.
    width: f64,
    /// For each curve, the lines of its name, the height of its end and that of the middle of its name, from above.
    names: Vec<(Vec<String>, f64, f64)>,
}

impl Labels {
    /// Labels at the end at which the curves are further apart; `None` if they would not fit.
    fn of(curves: &[Curve], frame: Frame, (x, y): (Scale, Scale), text: f64) -> Option<Self> {
        if !(2..=MAX_LABELS).contains(&curves.len()) {
            return None;
        }
        let sides = [false, true]
            .into_iter()
            .filter_map(|at_start| Self::beside(curves, frame, (x, y), (text, at_start)));
        // The end of the curves is the usual place.
        sides.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, labels)| labels)
    }

    /// Labels at one end, and how far they are moved altogether.
    fn beside(
        curves: &[Curve],
        frame: Frame,
        (x, y): (Scale, Scale),
        (text, at_start): (f64, bool),
    ) -> Option<(f64, Self)> {
        let line = 1.25 * text;
        let end = |curve: &Curve| {
            let points = curve.x.iter().zip(&curve.y);
            let mut shown = points.filter_map(|(&at, &value)| Some((x.place(at)?, y.place(value?)?)));
            let (across, up) = if at_start { shown.next()? } else { shown.next_back()? };
            let is_there = if at_start { across < 0.02 } else { across > 0.98 };
            (is_there && (0.0..=1.0).contains(&up)).then_some(frame.y + (1.0 - up) * frame.height)
        };
        let ends: Vec<f64> = curves.iter().map(end).collect::<Option<_>>()?;
        // Names beside a point that three curves share would not show which is which.
        let mut sorted = ends.clone();
        sorted.sort_by(f64::total_cmp);
        if sorted.windows(3).any(|three| three[2] - three[0] < SHARED_END) {
            return None;
        }
        let names: Vec<Vec<String>> =
            curves.iter().map(|curve| wrapped(&curve.name, text, LABEL_WIDTH)).collect();
        let heights: Vec<f64> = names.iter().map(|lines| line * lines.len() as f64).collect();
        let middles = spread(&ends, &heights, (frame.y - line, frame.y + frame.height - 3.0));
        let moved = ends.iter().zip(&middles).map(|(end, middle)| (end - middle).abs());
        if moved.clone().zip(&heights).any(|(moved, height)| moved > 2.0 * line + 0.5 * height) {
            return None;
        }
        let total = moved.sum();
        let widest = names.iter().flatten().map(|line| text_width(line, text)).fold(0.0, f64::max);
        let width = widest + 2.0 * LABEL_GAP;
        let names =
            names.into_iter().zip(ends).zip(middles).map(|((lines, end), at)| (lines, end, at)).collect();
        (width < 0.5 * frame.width).then_some((total, Self { at_start, width, names }))
    }
}

/// Moves intervals of some heights as little as needed until none overlaps another, and returns their middles.
fn spread(wanted: &[f64], heights: &[f64], (top, bottom): (f64, f64)) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&one, &other| wanted[one].total_cmp(&wanted[other]));
    let mut at = wanted.to_vec();
    for _ in 0..500 {
        for pair in order.windows(2) {
            let (upper, lower) = (pair[0], pair[1]);
            let overlap = 0.5 * (heights[upper] + heights[lower]) - (at[lower] - at[upper]);
            if overlap > 0.0 {
                at[upper] -= 0.5 * overlap;
                at[lower] += 0.5 * overlap;
            }
        }
        for (middle, height) in at.iter_mut().zip(heights) {
            *middle = middle.max(top + 0.5 * height).min(bottom - 0.5 * height);
        }
    }
    at
}

struct Drawing {
    /// Where the curves lie.
    frame: Frame,
    /// The same with the room for names.
    outer: Frame,
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

    fn axes(&mut self, x_label: &str, y_label: &[String], mut ticks: Vec<(f64, String)>, y_ticks: &[f64]) {
        let Frame { x, y, width, height } = self.outer;
        let (right, bottom, text) = (x + width, y + height, f64::from(self.size.text));
        for (&tick, words) in y_ticks.iter().zip(tick_texts(y_ticks)) {
            let Some(place) = self.y.place(tick) else { continue };
            let at = self.top(place);
            self.line([(x, at), (right, at)], Ink::Grid);
            self.text((x - 7.0, at + 0.35 * text), &words, Anchor::End, Ink::Muted);
        }
        // Both ends first: they keep their labels where there is no room for all.
        if let Some(inner) = ticks.get_mut(1..) {
            inner.rotate_right(usize::from(!inner.is_empty()));
        }
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for (tick, words) in ticks {
            let Some(place) = self.x.place(tick) else { continue };
            let at = self.left(place);
            self.line([(at, y), (at, bottom)], Ink::Grid);
            self.line([(at, bottom), (at, bottom + 4.0)], Ink::Axis);
            let half = 0.5 * text_width(&words, text) + 3.0;
            if taken.iter().all(|&(from, to)| at + half < from || at - half > to) {
                self.text((at, bottom + 1.4 * text), &words, Anchor::Middle, Ink::Muted);
                taken.push((at - half, at + half));
            }
        }
        self.line([(x, bottom), (right, bottom)], Ink::Axis);
        let middle = self.frame.x + 0.5 * self.frame.width;
        self.text((middle, bottom + 2.8 * text), x_label, Anchor::Middle, Ink::Text);
        for (number, line) in y_label.iter().rev().enumerate() {
            self.text((4.0, y - (0.8 + 1.25 * number as f64) * text), line, Anchor::Start, Ink::Text);
        }
    }

    fn title(&mut self, lines: &[String]) {
        let size = self.size.text + 3;
        for (number, line) in lines.iter().enumerate() {
            let at = (4.0, (1.6 + 1.3 * number as f64) * f64::from(size));
            let (text, anchor, ink) = (line.clone(), Anchor::Start, Ink::Text);
            self.shapes.push(Shape::Text { at, text, size, anchor, ink, bold: true });
        }
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

    fn curve(&mut self, curve: &Curve, hollow: &[(f64, f64)]) {
        let ink = Ink::Series(curve.colour);
        let place = |x: f64, y: f64| Some((self.left(self.x.place(x)?), self.top(self.y.place(y)?)));
        let at = |index: usize| place(*curve.x.get(index)?, curve.y.get(index).copied().flatten()?);
        let holes: Vec<(f64, f64)> = hollow.iter().filter_map(|&(x, y)| place(x, y)).collect();
        let runs = unbroken((0..curve.x.len()).map(at));
        let shows_points = curve.x.len() <= FEW_POINTS;
        for run in runs {
            let inside = |&(x, y): &(f64, f64)| self.frame.holds(x, y);
            for points in self.frame.clip(&run) {
                self.shapes.push(Shape::Line { points, ink, width: self.size.line, style: curve.style });
            }
            if shows_points || run.len() == 1 {
                let radius = 1.6 * self.size.line;
                for at in run.iter().copied().filter(inside) {
                    self.shapes.push(marker(at, radius, ink, curve.style));
                    if holes.contains(&at) {
                        self.shapes.push(marker(at, 0.55 * radius, Ink::Paper, curve.style));
                    }
                }
            }
        }
    }

    /// Writes the names at the ends of the curves.
    fn labels(&mut self, labels: &Labels, curves: &[Curve]) {
        let (text, size) = (f64::from(self.size.text), self.size.text);
        let (edge, anchor, way) = if labels.at_start {
            (self.frame.x, Anchor::End, -1.0)
        } else {
            (self.frame.x + self.frame.width, Anchor::Start, 1.0)
        };
        for ((lines, end, middle), curve) in labels.names.iter().zip(curves) {
            let ink = Ink::Series(curve.colour);
            if (end - middle).abs() > 2.0 {
                let points = vec![(edge + 3.0 * way, *end), (edge + way * (2.0 * LABEL_GAP - 3.0), *middle)];
                self.shapes.push(Shape::Line { points, ink, width: 0.8, style: Style::Solid });
            }
            for (number, line) in lines.iter().enumerate() {
                let below = 1.25 * text * (number as f64 - 0.5 * (lines.len() - 1) as f64);
                let at = (edge + 2.0 * way * LABEL_GAP, middle + below + 0.35 * text);
                self.shapes.push(Shape::Text { at, text: line.clone(), size, anchor, ink, bold: false });
            }
        }
    }

    /// Draws the legend below, and returns how much room it takes.
    fn legend(&mut self, curves: &[Curve], from: f64) -> f64 {
        let text = f64::from(self.size.text);
        let (sample, row) = (28.0, 1.7 * text);
        let (mut x, mut y) = (self.frame.x, from + text);
        for curve in curves {
            let lines = wrapped(&curve.name, text, self.size.width - self.frame.x - sample - 12.0);
            let widest = lines.iter().map(|line| text_width(line, text)).fold(0.0, f64::max);
            let width = sample + 8.0 + widest + 18.0;
            if x > self.frame.x && x + width > self.size.width {
                (x, y) = (self.frame.x, y + row);
            }
            self.sample(curve, (x, y), sample);
            for (number, line) in lines.iter().enumerate() {
                y += if number > 0 { 1.25 * text } else { 0.0 };
                self.text((x + sample + 8.0, y + 0.35 * text), line, Anchor::Start, Ink::Text);
            }
            x += width;
        }
        if curves.is_empty() { 0.0 } else { y - from + row }
    }

    fn sample(&mut self, curve: &Curve, (x, y): (f64, f64), length: f64) {
        self.shapes.extend(sample(curve, (x, y), length, self.size.line));
    }
}

/// A piece of a curve for a legend, with its marker if the curve shows its points.
pub(crate) fn sample(curve: &Curve, (x, y): (f64, f64), length: f64, width: f64) -> Vec<Shape> {
    let ink = Ink::Series(curve.colour);
    let mut shapes = Vec::new();
    if curve.x.len() <= FEW_POINTS {
        shapes.push(marker((x + 0.5 * length, y), 1.6 * width, ink, curve.style));
    }
    let points = vec![(x, y), (x + length, y)];
    shapes.push(Shape::Line { points, ink, width, style: curve.style });
    shapes
}

/// A point of a curve. Its form follows the style, so that a curve is recognised where its dashes are not.
fn marker((x, y): (f64, f64), radius: f64, ink: Ink, style: Style) -> Shape {
    let corners: &[(f64, f64)] = match style {
        Style::Solid => return Shape::Dot { at: (x, y), radius, ink },
        Style::Dashed => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        Style::Dotted => &[(0.0, -1.3), (1.2, 0.9), (-1.2, 0.9)],
        Style::DashDotted => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
    };
    let points = corners.iter().map(|&(right, down)| (x + radius * right, y + radius * down)).collect();
    Shape::Area { points, ink, opacity: 1.0 }
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

    /// The part of a segment inside the frame, by the algorithm of Liang and Barsky (1984); `None` if the segment misses the frame.
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

/// Runs of values without gaps.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, y: &[f64]) -> Curve {
        let x = (1..=y.len()).map(|x| x as f64).collect();
        let y = y.iter().copied().map(Some).collect();
        Curve { name: name.to_owned(), colour: 0, style: Style::Solid, x, y, band: None }
    }

    const UNIT: Scale = Scale { logarithmic: false, low: 0.0, high: 1.0 };

    const ACROSS: Scale = Scale { logarithmic: false, low: 1.0, high: 2.0 };

    #[test]
    fn overlapping_curves_become_one() {
        let curves =
            [curve("pilot", &[0.5, 0.9]), curve("energy", &[0.5, 0.6]), curve("both", &[0.509, 0.9])];
        let names =
            |y: Scale| merged(&curves, (ACROSS, y)).0.into_iter().map(|curve| curve.name).collect::<Vec<_>>();
        assert_eq!(names(UNIT), ["pilot, both (overlap)", "energy"]);
        assert_eq!(names(Scale { high: 0.85, ..UNIT }), ["pilot", "energy", "both"]);
        assert_eq!(merged(&curves, (ACROSS, UNIT)).1, [0, 1, 0]);
    }

    #[test]
    fn gaps_of_the_first_curve_are_not_covered() {
        let (whole, mut part) = (curve("whole", &[0.5, 0.9]), curve("part", &[0.5, 0.9]));
        part.y[0] = None;
        assert_eq!(merged(&[whole.clone(), part.clone()], (ACROSS, UNIT)).0.len(), 1);
        assert_eq!(merged(&[part, whole], (ACROSS, UNIT)).0.len(), 2);
    }

    #[test]
    fn curves_on_different_grids_overlap() {
        let line = |name: &str, x: Vec<f64>, bend: f64| {
            let y = x.iter().map(|x| Some(0.5 * x + bend * (x - 1.0) * (2.0 - x) - 0.5)).collect();
            Curve { x, y, ..curve(name, &[]) }
        };
        let coarse = line("coarse", vec![1.0, 2.0], 0.0);
        let fine = |bend| line("fine", vec![1.0, 1.3, 1.7, 2.0], bend);
        assert_eq!(merged(&[coarse.clone(), fine(0.0)], (ACROSS, UNIT)).0.len(), 1);
        // The points of the coarse curve lie on the fine one, but not those of the fine curve on the coarse one.
        assert_eq!(merged(&[fine(0.2), coarse], (ACROSS, UNIT)).0.len(), 2);
    }

    #[test]
    fn joined_names_stay_whole() {
        let names = ["both, fading unknown", "pilot, fading known", "both, fading known"];
        assert_eq!(joined_names(&names[1..], None), "pilot, fading known; both, fading known (overlap)");
        assert_eq!(joined_names(&["actual", "idealised"], Some(2)), "actual, idealised (overlap)");
        let views = ["raw-signal", "any-channel", "actual", "idealised"];
        assert_eq!(
            joined_names(&views, Some(4)),
            "all 4: raw-signal, any-channel, actual, idealised (overlap)"
        );
        assert_eq!(
            joined_names(&["a long name of a curve, with its settings"; 4], Some(4)),
            "all 4 curves (overlap)"
        );
        assert_eq!(joined_names(&["alone"], Some(1)), "alone");
    }

    #[test]
    fn logarithmic_axes_are_labelled() {
        let axis = |label: &str| Axis { label: label.to_owned(), logarithmic: true, range: None };
        assert_eq!(axis_label(&axis("ε")), "ε (log scale)");
        assert_eq!(axis_label(&axis("loss (nats)")), "loss (nats, log scale)");
    }

    #[test]
    fn spread_labels_do_not_overlap() {
        let at = spread(&[50.0, 51.0, 52.0, 200.0], &[16.0, 16.0, 32.0, 16.0], (0.0, 205.0));
        assert!(at[1] - at[0] > 15.9 && at[2] - at[1] > 23.9 && at[3] <= 197.0, "{at:?}");
    }
}
