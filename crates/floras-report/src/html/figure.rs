//! A panel within a page: the picture, its legend, and its numbers for the script that shows them beside the pointer.

use floras_sim::figure::{Curve, Panel};
use serde_json::{Value, json};

use super::Html;
use crate::plot::panel::Marks;
use crate::plot::picture::{Ink, Picture};
use crate::plot::scale::number_text;
use crate::plot::{Plot, inline_svg, panel};

/// The maximum number of points of a curve in a page.
pub(crate) const MAX_POINTS: usize = 400;

/// Adds a panel, with a caption unless it is empty, and links to its files.
pub(crate) fn figure(html: &mut Html, panel: &Panel, caption: &str) {
    marked_figure(html, panel, Marks::default(), caption);
}

/// Like [`figure`], with names of categories and hollow points.
pub(crate) fn marked_figure(html: &mut Html, panel: &Panel, marks: Marks<'_>, caption: &str) {
    let panel = thinned(panel);
    let drawn = panel::draw(&panel, marks, panel::INLINE);
    html.around("figure", "plot", |figure| {
        figure.element("h3", "", &panel.title);
        if needs_legend(&panel) {
            legend(figure, &drawn.curves);
        }
        figure.around("div", "canvas", |canvas| {
            canvas.drawn(&inline_svg(&drawn.picture, &in_words(&panel)));
        });
        figure.data(&numbers(&panel, marks.categories, &drawn).to_string());
        if !caption.is_empty() {
            figure.element("figcaption", "", caption);
        }
        downloads(figure, &panel.name);
    });
}

/// Adds links to the files of a plot.
pub(crate) fn downloads(html: &mut Html, name: &str) {
    html.around("p", "downloads", |line| {
        for ending in Plot::ENDINGS {
            line.link(&format!("plots/{name}.{ending}"), &ending.to_uppercase()).raw(" ");
        }
    });
}

fn legend(figure: &mut Html, curves: &[Curve]) {
    figure.around("ul", "legend", |list| {
        for curve in curves {
            list.around("li", "", |item| {
                let shapes = panel::sample(curve, (1.0, 6.0), 26.0, 2.0);
                let sample = Picture { width: 28.0, height: 12.0, shapes };
                item.drawn(&inline_svg(&sample, "")).text(&curve.name);
            });
        }
    });
}

/// Whether the names of the curves say more than the title and the label of the axis.
fn needs_legend(panel: &Panel) -> bool {
    let is_named = |curve: &Curve| panel.title.contains(&curve.name) || panel.y.label.contains(&curve.name);
    match &panel.curves[..] {
        [only] => only.band.is_some() || !is_named(only),
        curves => !curves.is_empty(),
    }
}

/// The plots whose values are bounds: their numbers round to the safe side.
fn rounding(panel: &Panel) -> Rounding {
    match panel.name.as_str() {
        "epsilon" | "delta" | "sweep-epsilon" => Rounding::Up,
        "trade-off" => Rounding::Down,
        _ if panel.y.label.starts_with('ε') => Rounding::Up,
        _ => Rounding::Nearest,
    }
}

/// How a number loses digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rounding {
    Nearest,
    Up,
    Down,
}

impl Rounding {
    /// Four significant digits, as the page shows.
    fn apply(self, value: f64) -> f64 {
        let four = |value: f64| format!("{value:.3e}").parse().unwrap_or(value);
        if value == 0.0 || !value.is_finite() {
            return value;
        }
        let nearest: f64 = four(value);
        let unit = 10_f64.powi(value.abs().log10().floor() as i32 - 3);
        match self {
            Self::Up if nearest < value => four(nearest + unit),
            Self::Down if nearest > value => four(nearest - unit),
            _ => nearest,
        }
    }
}

/// A description for screen readers.
fn in_words(panel: &Panel) -> String {
    let rounding = rounding(panel);
    let ends = |curve: &Curve| {
        let significant = |value: f64| number_text(rounding.apply(value));
        let mut values = curve.y.iter().flatten();
        let first = values.next()?;
        let last = values.next_back().unwrap_or(first);
        Some(format!("{} from {} to {}", curve.name, significant(*first), significant(*last)))
    };
    let curves: Vec<String> = panel.curves.iter().filter_map(ends).collect();
    let (y, x) = (panel::axis_label(&panel.y), panel::axis_label(&panel.x));
    format!("{}: {y} against {x}. {}", panel.title, curves.join("; "))
}

/// The numbers that the script shows beside the pointer: those of every curve, also of curves that are drawn as one.
fn numbers(panel: &Panel, categories: &[String], drawn: &panel::Drawn) -> Value {
    let colours = drawn.drawn_as.iter().map(|&group| drawn.curves[group].colour);
    let one = |(curve, colour)| one_curve(&panel.curves, curve, colour, rounding(panel));
    let curves: Vec<Value> = panel.curves.iter().zip(colours).map(one).collect();
    let frame = [drawn.frame.x, drawn.frame.y, drawn.frame.width, drawn.frame.height];
    let frame = frame.map(|value| significant_value(Some(value)));
    json!({
        "frame": frame,
        "size": [drawn.picture.width, drawn.picture.height],
        "x": axis(&panel.x.label, drawn.x),
        "y": axis(&panel.y.label, drawn.y),
        "categories": categories,
        "curves": curves,
    })
}

fn axis(label: &str, scale: crate::plot::scale::Scale) -> Value {
    json!({ "label": label, "log": scale.logarithmic, "low": scale.low, "high": scale.high })
}

fn one_curve(curves: &[Curve], curve: &Curve, colour: usize, rounding: Rounding) -> Value {
    let rounded = |value: f64| if rounding == Rounding::Nearest { value } else { rounding.apply(value) };
    let y: Vec<Value> = curve.y.iter().map(|value| significant_value(value.map(rounded))).collect();
    let mut out = json!({ "name": curve.name, "colour": Ink::Series(colour).class(), "y": y });
    // Most curves of a panel share their x coordinates.
    let is_shared = curves.first().is_some_and(|first| !std::ptr::eq(first, curve) && first.x == curve.x);
    if !is_shared {
        out["x"] = curve.x.iter().map(|value| significant_value(Some(*value))).collect();
    }
    if let Some(band) = &curve.band {
        let end = |pick: fn((f64, f64)) -> f64| -> Value {
            band.iter().map(|ends| significant_value(ends.map(pick))).collect()
        };
        out["low"] = end(|ends| ends.0);
        out["high"] = end(|ends| ends.1);
    }
    out
}

/// Rounds to five significant digits, more than a picture shows.
fn significant_value(value: Option<f64>) -> Value {
    let rounded =
        value.and_then(|value| format!("{value:.4e}").parse::<f64>().ok()).filter(|v| v.is_finite());
    match rounded {
        Some(whole) if whole == whole.trunc() && whole.abs() < 1e9 => json!(whole as i64),
        Some(value) => json!(value),
        None => Value::Null,
    }
}

/// The same panel with fewer points, evenly spaced, including the first and the last.
fn thinned(panel: &Panel) -> Panel {
    let mut panel = panel.clone();
    for curve in &mut panel.curves {
        let kept = evenly(curve.x.len(), MAX_POINTS);
        let pick = |index: &usize| curve.x.get(*index).copied();
        let x: Vec<f64> = kept.iter().filter_map(pick).collect();
        curve.y = kept.iter().map(|&index| curve.y.get(index).copied().flatten()).collect();
        if let Some(band) = &mut curve.band {
            *band = kept.iter().map(|&index| band.get(index).copied().flatten()).collect();
        }
        curve.x = x;
    }
    panel
}

/// At most `max` indices below `count`, evenly spaced, including the first and the last.
pub(crate) fn evenly(count: usize, max: usize) -> Vec<usize> {
    if count <= max {
        return (0..count).collect();
    }
    (0..max).map(|index| index * (count - 1) / (max - 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(name: &str, curves: &[(&str, f64)]) -> Panel {
        let axis = |label: &str| floras_sim::figure::Axis {
            label: label.to_owned(),
            logarithmic: false,
            range: None,
        };
        let curve = |(colour, (name, end)): (usize, &(&str, f64))| Curve {
            name: (*name).to_owned(),
            colour,
            style: floras_sim::figure::Style::Solid,
            x: vec![1.0, 2.0],
            y: vec![Some(1.0), Some(*end)],
            band: None,
        };
        Panel {
            name: name.to_owned(),
            title: "ε".to_owned(),
            x: axis("rounds"),
            y: axis(if name == "loss" { "loss" } else { "ε of a client" }),
            curves: curves.iter().enumerate().map(curve).collect(),
        }
    }

    #[test]
    fn overlapping_curves_keep_their_values() {
        let panel = bounds("epsilon", &[("actual", 4.000), ("idealised", 4.012)]);
        let drawn = panel::draw(&panel, Marks::default(), panel::INLINE);
        assert_eq!(drawn.curves.len(), 1);
        let curves = &numbers(&panel, &[], &drawn)["curves"];
        assert_eq!((&curves[0]["y"][1], &curves[1]["y"][1]), (&json!(4), &json!(4.012)));
        assert_eq!((&curves[1]["name"], &curves[1]["colour"]), (&json!("idealised"), &curves[0]["colour"]));
    }

    #[test]
    fn bounds_round_to_the_safe_side() {
        let shown = |name: &str| {
            let panel = bounds(name, &[("actual", 2.345_61)]);
            let drawn = panel::draw(&panel, Marks::default(), panel::INLINE);
            numbers(&panel, &[], &drawn)["curves"][0]["y"][1].clone()
        };
        assert_eq!(
            ["epsilon", "trade-off", "benchmark", "loss"].map(shown),
            [2.346, 2.345, 2.346, 2.3456].map(|value| json!(value))
        );
        assert_eq!(Rounding::Up.apply(9.9991), 10.0);
        assert_eq!(Rounding::Up.apply(2e-7), 2e-7);
    }

    #[test]
    fn a_lone_curve_is_named_where_needed() {
        assert!(needs_legend(&bounds("epsilon", &[("actual", 2.0)])));
        assert!(!needs_legend(&bounds("epsilon", &[("ε", 2.0)])));
    }

    #[test]
    fn thinned_curves_keep_their_ends() {
        assert_eq!(evenly(3, 400), [0, 1, 2]);
        let kept = evenly(100_000, 400);
        assert_eq!((kept.len(), kept[0], kept[399]), (400, 0, 99_999));
        assert!(kept.is_sorted_by(|a, b| a < b));
    }
}
