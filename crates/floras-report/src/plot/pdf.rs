//! Pictures as PDF files, with text as text and the outlines of its characters embedded.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdf_writer::types::{CidFontType, FontFlags, LineJoinStyle, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str, TextStr};

use super::font;
use super::picture::{Anchor, Frame, Ink, Picture, Pixels, Shape, dashes};

/// A picture's unit is a CSS pixel, of which 96 make an inch; a PDF's unit is 1/72 inch.
const POINTS: f64 = 0.75;
/// Distance of the control points that make four Bézier curves a circle, in radii.
const CIRCLE: f64 = 0.552_284_8;
const SYSTEM: SystemInfo<'static> =
    SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

/// A picture as the bytes of a PDF file with one page of its size.
pub(super) fn pdf(picture: &Picture, title: &str) -> Result<Vec<u8>, String> {
    let mut writer = Writer::new();
    let drawn = writer.draw(picture)?;
    writer.finish(picture, title, &drawn)
}

struct Writer {
    pdf: Pdf,
    last: i32,
    /// Glyphs in use, with the characters they stand for, of the regular and of the bold face.
    glyphs: [BTreeMap<u16, char>; 2],
    /// Opacities in use, in hundredths.
    opacities: BTreeSet<u32>,
    images: Vec<Ref>,
}

impl Writer {
    fn new() -> Self {
        let (glyphs, opacities, images) = Default::default();
        Self { pdf: Pdf::new(), last: 0, glyphs, opacities, images }
    }

    fn next(&mut self) -> Ref {
        self.last += 1;
        Ref::new(self.last)
    }

    fn draw(&mut self, picture: &Picture) -> Result<Vec<u8>, String> {
        let mut content = Content::new();
        let scale = POINTS as f32;
        content.transform([scale, 0.0, 0.0, -scale, 0.0, (POINTS * picture.height) as f32]);
        content.set_line_join(LineJoinStyle::RoundJoin);
        for shape in &picture.shapes {
            self.add(&mut content, shape)?;
        }
        Ok(content.finish().to_vec())
    }

    fn add(&mut self, content: &mut Content, shape: &Shape) -> Result<(), String> {
        match shape {
            Shape::Line { points, ink, width, style } => {
                let [red, green, blue] = parts(*ink);
                content.set_stroke_rgb(red, green, blue).set_line_width(*width as f32);
                let gaps = dashes(*style, *width).into_iter().map(|length| length as f32);
                content.set_dash_pattern(gaps, 0.0);
                path(content, points);
                content.stroke();
            }
            Shape::Area { points, ink, opacity } => {
                self.filled(content, *ink, *opacity);
                path(content, points);
                content.close_path().fill_nonzero();
            }
            Shape::Dot { at, radius, ink } => {
                self.filled(content, *ink, 1.0);
                circle(content, *at, *radius);
            }
            Shape::Box { frame, ink, opacity } => {
                self.filled(content, *ink, *opacity);
                let [x, y, width, height] = corners(*frame);
                content.rect(x, y, width, height).fill_nonzero();
            }
            Shape::Grey { frame, pixels } => self.image(content, *frame, pixels)?,
            Shape::Text { at, text, size, anchor, ink, bold } => {
                self.filled(content, *ink, 1.0);
                let width = font::width(text, f64::from(*size), *bold);
                let x = match anchor {
                    Anchor::Start => at.0,
                    Anchor::Middle => at.0 - 0.5 * width,
                    Anchor::End => at.0 - width,
                };
                let face = font::face(*bold).ok_or("the embedded font cannot be read")?;
                let used = &mut self.glyphs[usize::from(*bold)];
                let mut bytes = Vec::new();
                for letter in text.chars() {
                    let glyph = font::glyph(face, letter).0;
                    used.insert(glyph, letter);
                    bytes.extend(glyph.to_be_bytes());
                }
                content.begin_text().set_font(font_name(*bold), *size as f32);
                content.set_text_matrix([1.0, 0.0, 0.0, -1.0, x as f32, at.1 as f32]);
                content.show(Str(&bytes)).end_text();
            }
        }
        Ok(())
    }

    fn filled(&mut self, content: &mut Content, ink: Ink, opacity: f64) {
        let hundredths = (100.0 * opacity).round() as u32;
        self.opacities.insert(hundredths);
        let [red, green, blue] = parts(ink);
        content.set_parameters(Name(format!("O{hundredths}").as_bytes())).set_fill_rgb(red, green, blue);
    }

    fn image(&mut self, content: &mut Content, frame: Frame, pixels: &Pixels) -> Result<(), String> {
        let id = self.next();
        let bytes = compressed(&pixels.grey)?;
        let mut image = self.pdf.image_xobject(id, &bytes);
        image.filter(Filter::FlateDecode);
        image.width(pixels.across as i32).height(pixels.down() as i32);
        image.color_space().device_gray();
        image.bits_per_component(8);
        image.finish();
        let [x, y, width, height] = corners(frame);
        content.save_state().transform([width, 0.0, 0.0, -height, x, y + height]);
        content.x_object(Name(format!("I{}", self.images.len()).as_bytes())).restore_state();
        self.images.push(id);
        Ok(())
    }

    fn finish(mut self, picture: &Picture, title: &str, content: &[u8]) -> Result<Vec<u8>, String> {
        let [catalog, pages, page, stream, info] = [(); 5].map(|()| self.next());
        let used = [false, true].map(|bold| (bold, std::mem::take(&mut self.glyphs[usize::from(bold)])));
        let mut fonts = Vec::new();
        for (bold, glyphs) in used.into_iter().filter(|(_, glyphs)| !glyphs.is_empty()) {
            fonts.push((bold, self.font(bold, &glyphs)?));
        }
        let bytes = compressed(content)?;
        self.pdf.stream(stream, &bytes).filter(Filter::FlateDecode);
        self.pdf.catalog(catalog).pages(pages);
        self.pdf.pages(pages).kids([page]).count(1);
        self.pdf.document_info(info).title(TextStr(title)).creator(TextStr("floras"));
        let mut sheet = self.pdf.page(page);
        let (width, height) = (POINTS * picture.width, POINTS * picture.height);
        sheet.media_box(Rect::new(0.0, 0.0, width as f32, height as f32)).parent(pages).contents(stream);
        let mut resources = sheet.resources();
        resources.fonts().pairs(fonts.iter().map(|(bold, font)| (font_name(*bold), *font)));
        let mut states = resources.ext_g_states();
        for hundredths in &self.opacities {
            let mut state = states.insert(Name(format!("O{hundredths}").as_bytes())).dict();
            state.pair(Name(b"ca"), *hundredths as f32 / 100.0);
        }
        states.finish();
        let mut images = resources.x_objects();
        for (number, image) in self.images.iter().enumerate() {
            images.pair(Name(format!("I{number}").as_bytes()), *image);
        }
        images.finish();
        resources.finish();
        sheet.finish();
        Ok(self.pdf.finish())
    }

    /// Embeds the glyphs of a face and returns the font.
    fn font(&mut self, bold: bool, glyphs: &BTreeMap<u16, char>) -> Result<Ref, String> {
        let broken = "the embedded font cannot be read";
        let face = font::face(bold).ok_or(broken)?;
        let file = font::subset(bold, &glyphs.keys().copied().collect()).ok_or(broken)?;
        // Six letters mark a subset.
        let name = if bold { "FLORAS+DejaVuSans-Bold" } else { "FLORAS+DejaVuSans" };
        let name = Name(name.as_bytes());
        let [font, descendant, descriptor, data, characters] = [(); 5].map(|()| self.next());
        let bytes = compressed(&file)?;
        self.pdf.stream(data, &bytes).filter(Filter::FlateDecode).pair(Name(b"Length1"), file.len() as i32);
        let mut map = UnicodeCmap::new(Name(b"Custom"), SYSTEM);
        glyphs.iter().for_each(|(&glyph, &letter)| map.pair(glyph, letter));
        self.pdf.cmap(characters, &map.finish());
        let mut whole = self.pdf.type0_font(font);
        whole.base_font(name).encoding_predefined(Name(b"Identity-H"));
        whole.descendant_font(descendant).to_unicode(characters);
        whole.finish();
        let mut inner = self.pdf.cid_font(descendant);
        inner.subtype(CidFontType::Type2).base_font(name).system_info(SYSTEM).font_descriptor(descriptor);
        inner.cid_to_gid_map_predefined(Name(b"Identity"));
        let mut widths = inner.widths();
        for &glyph in glyphs.keys() {
            widths.consecutive(glyph, [font::advance(face, ttf_parser::GlyphId(glyph)) as f32]);
        }
        widths.finish();
        inner.finish();
        let unit = 1000.0 / f32::from(face.units_per_em());
        let bounds = face.global_bounding_box();
        let corners =
            [bounds.x_min, bounds.y_min, bounds.x_max, bounds.y_max].map(|side| unit * f32::from(side));
        let mut description = self.pdf.font_descriptor(descriptor);
        description.name(name).flags(FontFlags::SYMBOLIC).italic_angle(0.0);
        description.bbox(Rect::new(corners[0], corners[1], corners[2], corners[3]));
        description.ascent(unit * f32::from(face.ascender())).descent(unit * f32::from(face.descender()));
        let height = face.capital_height().unwrap_or_else(|| face.ascender());
        description
            .cap_height(unit * f32::from(height))
            .stem_v(if bold { 140.0 } else { 80.0 })
            .font_file2(data);
        description.finish();
        Ok(font)
    }
}

fn font_name(bold: bool) -> Name<'static> {
    Name(if bold { b"F1" } else { b"F0" })
}

fn parts(ink: Ink) -> [f32; 3] {
    let (red, green, blue) = ink.on_white();
    [red, green, blue].map(|part| f32::from(part) / 255.0)
}

fn corners(frame: Frame) -> [f32; 4] {
    [frame.x, frame.y, frame.width, frame.height].map(|value| value as f32)
}

fn path(content: &mut Content, points: &[(f64, f64)]) {
    for (number, &(x, y)) in points.iter().enumerate() {
        let (x, y) = (x as f32, y as f32);
        if number == 0 {
            content.move_to(x, y)
        } else {
            content.line_to(x, y)
        };
    }
}

fn circle(content: &mut Content, (x, y): (f64, f64), radius: f64) {
    let at = |across: f64, down: f64| ((x + radius * across) as f32, (y + radius * down) as f32);
    let start = at(1.0, 0.0);
    content.move_to(start.0, start.1);
    for (sine, cosine) in [(0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0)] {
        // A quarter from the direction (cosine, sine) to the one after it.
        let first = at(cosine - CIRCLE * sine, sine + CIRCLE * cosine);
        let second = at(-sine + CIRCLE * cosine, cosine + CIRCLE * sine);
        let end = at(-sine, cosine);
        content.cubic_to(first.0, first.1, second.0, second.1, end.0, end.1);
    }
    content.fill_nonzero();
}

fn compressed(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|error| error.to_string())
}
