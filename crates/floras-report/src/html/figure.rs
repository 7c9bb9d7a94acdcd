//! A panel within a page: the picture, its legend, and its numbers for the script that shows them beside the pointer.

use floras_sim::figure::{Curve, Panel};
use serde_json::{Value, json};

use super::Html;
use crate::plot::picture::{Ink, Picture};
use crate::plot::{Plot, inline_svg, panel};

/// The maximum number of points of a curve in a page.
pub(crate) const MAX_POINTS: usize = 400;

/// Adds a panel, with a caption unless it is empty, and links to its files.
pub(crate) fn figure(html: &mut Html, panel: &Panel, caption: &str) {
    figure_with_categories(html, panel, &[], caption);
}

/// Like [`figure`], with names for the integers on the horizontal axis, if there are any.
pub(crate) fn figure_with_categories(html: &mut Html, panel: &Panel, categories: &[String], caption: &str) {
    let panel = thinned(panel);
    let drawn = panel::draw(&panel, categories, panel::INLINE);
    html.around("figure", "plot", |figure| {
        figure.element("h3", "", &panel.title);
        if drawn.curves.len() > 1
            || drawn.curves.iter().any(|curve| curve.band.is_some() || curve.name.contains(" = "))
        {
            legend(figure, &drawn.curves);
        }
        figure.around("div", "canvas", |canvas| {
            canvas.drawn(&inline_svg(&drawn.picture, &in_words(&panel, &drawn.curves)));
        });
        figure.data(&numbers(&panel, categories, &drawn).to_string());
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

/// A description for screen readers.
fn in_words(panel: &Panel, curves: &[Curve]) -> String {
    let ends = |curve: &Curve| {
        let mut values = curve.y.iter().flatten();
        let first = values.next()?;
        let last = values.next_back().unwrap_or(first);
        Some(format!("{} from {} to {}", curve.name, significant(*first), significant(*last)))
    };
    let curves: Vec<String> = curves.iter().filter_map(ends).collect();
    let (y, x) = (panel::axis_label(&panel.y), panel::axis_label(&panel.x));
    format!("{}: {y} against {x}. {}", panel.title, curves.join("; "))
}

/// The numbers that the script shows beside the pointer.
fn numbers(panel: &Panel, categories: &[String], drawn: &panel::Drawn) -> Value {
    let curves: Vec<Value> = drawn.curves.iter().map(|curve| one_curve(&drawn.curves, curve)).collect();
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

fn one_curve(curves: &[Curve], curve: &Curve) -> Value {
    let y: Vec<Value> = curve.y.iter().map(|value| significant_value(*value)).collect();
    let mut out = json!({ "name": curve.name, "colour": Ink::Series(curve.colour).class(), "y": y });
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

fn significant(value: f64) -> String {
    crate::plot::scale::number_text(format!("{value:.3e}").parse().unwrap_or(value))
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

    #[test]
    fn thinned_curves_keep_their_ends() {
        assert_eq!(evenly(3, 400), [0, 1, 2]);
        let kept = evenly(100_000, 400);
        assert_eq!((kept.len(), kept[0], kept[399]), (400, 0, 99_999));
        assert!(kept.is_sorted_by(|a, b| a < b));
    }
}
