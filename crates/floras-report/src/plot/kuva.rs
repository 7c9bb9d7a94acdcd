//! Pictures as SVG and PNG files, written by the crate `kuva`. Only this module uses it.
//!
//! It draws our shapes and not its own axes. Its axes lose the dashes of curves with many points in a PNG file, leave out bands on
//! logarithmic axes, and cannot be shared with the page.

use kuva::RasterBackend;
use kuva::backend::svg::SvgBackend;
use kuva::render::color::Color;
use kuva::render::render::{PathData, Primitive, Scene, TextAnchor, build_path};

use super::font;
use super::inline::image;
use super::picture::{Anchor, Frame, Ink, Picture, Pixels, Shape, dashes, strokes};

/// A picture as the text of an SVG file.
pub(super) fn svg(picture: &Picture) -> String {
    let text = SvgBackend::new().render_scene(&scene(picture, false));
    // Without a view box, a browser cuts a picture off instead of scaling it.
    let open = format!("<svg viewBox=\"0 0 {} {}\" ", picture.width, picture.height);
    let text = text.replacen("<svg ", &open, 1);
    // `kuva` has no shape for pixels.
    let images: String =
        picture.shapes.iter().filter_map(grey).map(|(frame, pixels)| image(frame, pixels)).collect();
    match text.rsplit_once("</svg>") {
        Some((before, after)) if !images.is_empty() => format!("{before}{images}</svg>{after}"),
        _ => text,
    }
}

/// A picture as the bytes of a PNG file; `pixels` is the number of pixels per unit.
pub(super) fn png(picture: &Picture, pixels: f32) -> Result<Vec<u8>, String> {
    RasterBackend::new().with_scale(pixels).render_scene(&scene(picture, true))
}

fn grey(shape: &Shape) -> Option<(Frame, &Pixels)> {
    match shape {
        Shape::Grey { frame, pixels } => Some((*frame, pixels)),
        _ => None,
    }
}

fn scene(picture: &Picture, is_raster: bool) -> Scene {
    let mut scene = Scene::new(picture.width, picture.height).with_background(Some("white"));
    scene.font_family = Some(font::FAMILIES.to_owned());
    for shape in &picture.shapes {
        add(&mut scene, shape, is_raster);
    }
    scene
}

fn colour(ink: Ink) -> Color {
    let (red, green, blue) = ink.on_white();
    Color::Rgb(red, green, blue)
}

fn add(scene: &mut Scene, shape: &Shape, is_raster: bool) {
    match shape {
        Shape::Line { points, ink, width, style } => {
            let (stroke, stroke_width) = (colour(*ink), *width);
            let line = |points: Vec<(f64, f64)>, stroke_dasharray| Primitive::PolyLine {
                points,
                stroke: stroke.clone(),
                stroke_width,
                stroke_dasharray,
            };
            let pattern = dashes(*style, *width);
            if pattern.is_empty() || !is_raster {
                let words: Vec<String> = pattern.iter().map(f64::to_string).collect();
                scene.add(line(rounded(points), (!words.is_empty()).then(|| words.join(" "))));
            } else {
                strokes(points, &pattern).into_iter().for_each(|piece| scene.add(line(piece, None)));
            }
        }
        Shape::Area { points, ink, opacity } => scene.add(Primitive::Path(Box::new(PathData {
            d: format!("{} Z", build_path(&rounded(points))),
            fill: Some(colour(*ink)),
            stroke: Color::None,
            stroke_width: 0.0,
            opacity: Some(*opacity),
            stroke_dasharray: None,
        }))),
        Shape::Dot { at, radius, ink } => scene.add(Primitive::Circle {
            cx: at.0,
            cy: at.1,
            r: *radius,
            fill: colour(*ink),
            fill_opacity: None,
            stroke: None,
            stroke_width: None,
        }),
        Shape::Box { frame, ink, opacity } => scene.add(Primitive::Rect {
            x: frame.x,
            y: frame.y,
            width: frame.width,
            height: frame.height,
            fill: colour(*ink),
            stroke: None,
            stroke_width: None,
            opacity: Some(*opacity),
        }),
        Shape::Grey { frame, pixels } if is_raster => add_pixels(scene, *frame, pixels),
        Shape::Grey { .. } => {}
        Shape::Text { at, text, size, anchor, ink, bold } => scene.add(Primitive::Text {
            x: at.0,
            y: at.1,
            content: without_formulas(text),
            size: *size,
            anchor: match anchor {
                Anchor::Start => TextAnchor::Start,
                Anchor::Middle => TextAnchor::Middle,
                Anchor::End => TextAnchor::End,
            },
            rotate: None,
            bold: *bold,
            color: Some(colour(*ink)),
        }),
    }
}

fn add_pixels(scene: &mut Scene, frame: Frame, pixels: &Pixels) {
    let (wide, high) =
        (frame.width / pixels.across.max(1) as f64, frame.height / pixels.down().max(1) as f64);
    for (place, &grey) in pixels.grey.iter().enumerate() {
        scene.add(Primitive::Rect {
            x: frame.x + (place % pixels.across) as f64 * wide,
            y: frame.y + (place / pixels.across) as f64 * high,
            width: wide,
            height: high,
            fill: Color::Rgb(grey, grey, grey),
            stroke: None,
            stroke_width: None,
            opacity: None,
        });
    }
}

/// `kuva` typesets text between dollar signs as a formula.
fn without_formulas(text: &str) -> String {
    text.replace('$', "\\$")
}

fn rounded(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let hundredth = |value: f64| (value * 100.0).round() / 100.0;
    points.iter().map(|&(x, y)| (hundredth(x), hundredth(y))).collect()
}
