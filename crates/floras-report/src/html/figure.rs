//! A panel within a page: the picture, its legend, and its numbers for the script that shows them under the pointer.

use floras_sim::figure::{Curve, Panel};
use serde_json::{Value, json};

use super::Html;
use crate::plot::picture::{Ink, Picture, Shape};
use crate::plot::{inline_svg, panel};

/// Curves have at most about this many points in a page.
pub(crate) const MAX_POINTS: usize = 400;

/// Adds a panel, with a line below it if there is something to say.
pub(crate) fn figure(html: &mut Html, panel: &Panel, caption: &str) {
    let panel = thinned(panel);
    let drawn = panel::draw(&panel, panel::INLINE);
    html.around("figure", "plot", |figure| {
        figure.element("h3", "", &panel.title);
        if panel.curves.len() > 1 || panel.curves.iter().any(|curve| curve.band.is_some()) {
            legend(figure, &panel.curves);
        }
        figure.around("div", "canvas", |canvas| {
            canvas.drawn(&inline_svg(&drawn.picture, &in_words(&panel)));
        });
        figure.data(&numbers(&panel, &drawn).to_string());
        if !caption.is_empty() {
            figure.element("figcaption", "", caption);
        }
    });
}

fn legend(figure: &mut Html, curves: &[Curve]) {
    figure.around("ul", "legend", |list| {
        for curve in curves {
            list.around("li", "", |item| {
                let line = Shape::Line {
                    points: vec![(1.0, 6.0), (27.0, 6.0)],
                    ink: Ink::Series(curve.colour),
                    width: 2.2,
                    style: curve.style,
                };
                let sample = Picture { width: 28.0, height: 12.0, shapes: vec![line] };
                item.drawn(&inline_svg(&sample, "")).text(&curve.name);
            });
        }
    });
}

/// For those who cannot see it.
fn in_words(panel: &Panel) -> String {
    let ends = |curve: &Curve| {
        let mut values = curve.y.iter().flatten();
        let first = values.next()?;
        let last = values.next_back().unwrap_or(first);
        Some(format!("{} from {} to {}", curve.name, significant(*first), significant(*last)))
    };
    let curves: Vec<String> = panel.curves.iter().filter_map(ends).collect();
    format!("{}: {} against {}. {}", panel.title, panel.y.label, panel.x.label, curves.join("; "))
}

/// What the script needs to find the values under the pointer.
fn numbers(panel: &Panel, drawn: &panel::Drawn) -> Value {
    let curves: Vec<Value> = panel.curves.iter().map(|curve| one_curve(panel, curve)).collect();
    let frame = [drawn.frame.x, drawn.frame.y, drawn.frame.width, drawn.frame.height];
    let frame = frame.map(|value| significant_value(Some(value)));
    json!({
        "frame": frame,
        "size": [drawn.picture.width, drawn.picture.height],
        "x": axis(&panel.x.label, drawn.x),
        "y": axis(&panel.y.label, drawn.y),
        "curves": curves,
    })
}

fn axis(label: &str, scale: crate::plot::scale::Scale) -> Value {
    json!({ "label": label, "log": scale.logarithmic, "low": scale.low, "high": scale.high })
}

fn one_curve(panel: &Panel, curve: &Curve) -> Value {
    let y: Vec<Value> = curve.y.iter().map(|value| significant_value(*value)).collect();
    let mut out = json!({ "name": curve.name, "colour": Ink::Series(curve.colour).class(), "y": y });
    // Most curves of a panel share their places.
    let is_shared =
        panel.curves.first().is_some_and(|first| !std::ptr::eq(first, curve) && first.x == curve.x);
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

/// Five digits are more than a picture shows.
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
    crate::plot::scale::tick_text(format!("{value:.3e}").parse().unwrap_or(value))
}

/// The same with fewer points, evenly chosen, the first and the last among them.
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

/// At most `most` places of `count`, the first and the last among them.
pub(crate) fn evenly(count: usize, most: usize) -> Vec<usize> {
    if count <= most {
        return (0..count).collect();
    }
    (0..most).map(|index| index * (count - 1) / (most - 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_curves_are_thinned_out_and_keep_their_ends() {
        assert_eq!(evenly(3, 400), [0, 1, 2]);
        let kept = evenly(100_000, 400);
        assert_eq!((kept.len(), kept[0], kept[399]), (400, 0, 99_999));
        assert!(kept.is_sorted_by(|a, b| a < b));
    }
}
