//! Pictures within a page: SVG whose colours the page's style sheet sets, so that they follow light and dark.

use std::fmt::Write;

use super::picture::{Anchor, Frame, Picture, Pixels, Shape, dashes};
use super::pixels::address;
use crate::html::escape;

/// An SVG element whose texts are escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Svg(String);

impl Svg {
    pub(crate) fn markup(&self) -> &str {
        &self.0
    }
}

/// A picture as an SVG element with a description for screen readers.
pub(crate) fn svg(picture: &Picture, name: &str) -> Svg {
    let mut out = String::new();
    let (width, height) = (number(picture.width), number(picture.height));
    let name = escape(name);
    let _ = write!(out, "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{name}\">");
    for shape in &picture.shapes {
        add(&mut out, shape);
    }
    out.push_str("</svg>");
    Svg(out)
}

// Writing into a string cannot fail.
fn add(out: &mut String, shape: &Shape) {
    let _ = match shape {
        Shape::Line { points, ink, width, style } => {
            let pattern: Vec<String> = dashes(*style, *width).into_iter().map(number).collect();
            let dash = if pattern.is_empty() {
                String::new()
            } else {
                format!(" stroke-dasharray=\"{}\"", pattern.join(" "))
            };
            let points = joined(points);
            write!(
                out,
                "<polyline class=\"l {}\" stroke-width=\"{width}\"{dash} points=\"{points}\"/>",
                ink.class()
            )
        }
        Shape::Area { points, ink, opacity } => {
            let points = joined(points);
            write!(
                out,
                "<polygon class=\"f {}\" fill-opacity=\"{opacity}\" points=\"{points}\"/>",
                ink.class()
            )
        }
        Shape::Dot { at, radius, ink } => {
            let (x, y, radius) = (number(at.0), number(at.1), number(*radius));
            write!(out, "<circle class=\"f {}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>", ink.class())
        }
        Shape::Box { frame, ink, opacity } => write!(
            out,
            "<rect class=\"f {}\" fill-opacity=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            ink.class(),
            (opacity * 100.0).round() / 100.0,
            number(frame.x),
            number(frame.y),
            number(frame.width),
            number(frame.height)
        ),
        Shape::Grey { frame, pixels } => write!(out, "{}", image(*frame, pixels)),
        Shape::Text { at, text, size, anchor, ink, bold } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let weight = if *bold { " font-weight=\"bold\"" } else { "" };
            let (x, y, text) = (number(at.0), number(at.1), escape(text));
            write!(
                out,
                "<text class=\"f {}\" x=\"{x}\" y=\"{y}\" font-size=\"{size}\" text-anchor=\"{anchor}\"{weight}>{text}</text>",
                ink.class()
            )
        }
    };
}

/// Pixels as an element of an SVG.
pub(super) fn image(frame: Frame, pixels: &Pixels) -> String {
    format!(
        "<image style=\"image-rendering:pixelated\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" href=\"{}\"/>",
        number(frame.x),
        number(frame.y),
        number(frame.width),
        number(frame.height),
        address(pixels)
    )
}

fn joined(points: &[(f64, f64)]) -> String {
    let pairs: Vec<String> = points.iter().map(|&(x, y)| format!("{},{}", number(x), number(y))).collect();
    pairs.join(" ")
}

/// A coordinate as text, rounded to a tenth of a unit.
fn number(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    (rounded + 0.0).to_string()
}
