//! The typeface of the plots: DejaVu Sans, cut down to Latin, Greek and mathematical characters.
//!
//! One typeface for SVG, PNG and PDF makes text equally wide in all of them. SVG files name Verdana as well, which has the
//! same widths and is present where DejaVu Sans is not. A PDF file embeds the outlines of the characters that it uses.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use ttf_parser::{Face, GlyphId};

/// The families that SVG files name.
pub(super) const FAMILIES: &str = "DejaVu Sans, Verdana, sans-serif";

const REGULAR: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");
const BOLD: &[u8] = include_bytes!("../../fonts/DejaVuSans-Bold.ttf");

/// Bits of a component's flags in a composite glyph (OpenType, table `glyf`).
const WIDE_ARGUMENTS: u16 = 0x1;
const ONE_SCALE: u16 = 0x8;
const MORE_COMPONENTS: u16 = 0x20;
const TWO_SCALES: u16 = 0x40;
const MATRIX: u16 = 0x80;

/// The regular or the bold face.
pub(super) fn face(bold: bool) -> Option<&'static Face<'static>> {
    static FACES: OnceLock<[Option<Face<'static>>; 2]> = OnceLock::new();
    let faces = FACES.get_or_init(|| [REGULAR, BOLD].map(|file| Face::parse(file, 0).ok()));
    faces[usize::from(bold)].as_ref()
}

/// The glyph of a character; that of the replacement character if the face lacks it.
pub(super) fn glyph(face: &Face<'_>, letter: char) -> GlyphId {
    face.glyph_index(letter).or_else(|| face.glyph_index('\u{fffd}')).unwrap_or_default()
}

/// The width of a glyph in thousandths of the font size.
pub(super) fn advance(face: &Face<'_>, glyph: GlyphId) -> f64 {
    1000.0 * f64::from(face.glyph_hor_advance(glyph).unwrap_or(0)) / f64::from(face.units_per_em())
}

/// The width of a text in the regular face, in the unit of `size`.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    width(text, size, false)
}

/// The width of a text in either face, in the unit of `size`.
pub(super) fn width(text: &str, size: f64, bold: bool) -> f64 {
    let Some(face) = face(bold) else { return 0.6 * size * text.chars().count() as f64 };
    let thousandths: f64 = text.chars().map(|letter| advance(face, glyph(face, letter))).sum();
    size * thousandths / 1000.0
}

/// A text in lines that are at most `width` wide, broken at spaces.
pub(crate) fn wrapped(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or("", String::as_str);
        if !line.is_empty() && text_width(&format!("{line} {word}"), size) > width {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines
}

/// A font file with the outlines of some glyphs only. Glyph numbers stay.
pub(super) fn subset(bold: bool, glyphs: &BTreeSet<u16>) -> Option<Vec<u8>> {
    let face = face(bold)?;
    let raw = face.raw_face();
    let table = |name: &[u8; 4]| raw.table(ttf_parser::Tag::from_bytes(name));
    let (glyf, mut head) = (table(b"glyf")?, table(b"head")?.to_vec());
    let places = places(table(b"loca")?, head.get(51).copied()? == 1);
    let outline = |glyph: u16| {
        let (from, to) = (*places.get(usize::from(glyph))?, *places.get(usize::from(glyph) + 1)?);
        glyf.get(from..to)
    };
    let mut kept: BTreeSet<u16> = glyphs.iter().copied().chain([0]).collect();
    let mut waiting: Vec<u16> = kept.iter().copied().collect();
    while let Some(glyph) = waiting.pop() {
        let parts = outline(glyph).map(components).unwrap_or_default();
        waiting.extend(parts.into_iter().filter(|part| kept.insert(*part)));
    }
    let (mut outlines, mut loca) = (Vec::new(), Vec::new());
    for glyph in 0..face.number_of_glyphs() {
        loca.extend((outlines.len() as u32).to_be_bytes());
        if kept.contains(&glyph) {
            outlines.extend(outline(glyph)?);
            outlines.resize(outlines.len().next_multiple_of(4), 0);
        }
    }
    loca.extend((outlines.len() as u32).to_be_bytes());
    // The offsets of the new table `loca` have four bytes.
    *head.get_mut(51)? = 1;
    let tables: [(&[u8; 4], &[u8]); 6] = [
        (b"glyf", &outlines),
        (b"head", &head),
        (b"hhea", table(b"hhea")?),
        (b"hmtx", table(b"hmtx")?),
        (b"loca", &loca),
        (b"maxp", table(b"maxp")?),
    ];
    Some(font_file(&tables))
}

/// The offsets of all glyphs, and the end of the last one.
fn places(loca: &[u8], is_long: bool) -> Vec<usize> {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, &byte| number << 8 | usize::from(byte));
    if is_long {
        loca.chunks(4).map(number).collect()
    } else {
        loca.chunks(2).map(|b| 2 * number(b)).collect()
    }
}

/// The glyphs that a composite glyph consists of.
fn components(outline: &[u8]) -> Vec<u16> {
    let word = |at: usize| Some(u16::from_be_bytes([*outline.get(at)?, *outline.get(at + 1)?]));
    let mut found = Vec::new();
    // A negative number of contours marks a composite glyph.
    if outline.first().is_none_or(|byte| byte & 0x80 == 0) {
        return found;
    }
    let mut at = 10;
    while let (Some(flags), Some(glyph)) = (word(at), word(at + 2)) {
        found.push(glyph);
        at += if flags & WIDE_ARGUMENTS == 0 { 6 } else { 8 };
        at += match flags & (ONE_SCALE | TWO_SCALES | MATRIX) {
            ONE_SCALE => 2,
            TWO_SCALES => 4,
            MATRIX => 8,
            _ => 0,
        };
        if flags & MORE_COMPONENTS == 0 {
            break;
        }
    }
    found
}

/// Tables in alphabetical order as a font file.
fn font_file(tables: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let count = tables.len() as u16;
    let power = count.ilog2() as u16;
    let mut out = 0x0001_0000_u32.to_be_bytes().to_vec();
    for number in [count, 16 << power, power, 16 * count - (16 << power)] {
        out.extend(number.to_be_bytes());
    }
    let mut offset = 12 + 16 * tables.len();
    for (name, bytes) in tables {
        out.extend(*name);
        let words = bytes.chunks(4).map(|chunk| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            u32::from_be_bytes(word)
        });
        let sum = words.fold(0, u32::wrapping_add);
        for number in [sum, offset as u32, bytes.len() as u32] {
            out.extend(number.to_be_bytes());
        }
        offset += bytes.len().next_multiple_of(4);
    }
    for (_, bytes) in tables {
        out.extend(*bytes);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subset_keeps_outlines_and_widths() {
        struct Count(usize);
        impl ttf_parser::OutlineBuilder for Count {
            fn move_to(&mut self, _: f32, _: f32) {
                self.0 += 1;
            }
            fn line_to(&mut self, _: f32, _: f32) {
                self.0 += 1;
            }
            fn quad_to(&mut self, _: f32, _: f32, _: f32, _: f32) {
                self.0 += 1;
            }
            fn curve_to(&mut self, _: f32, _: f32, _: f32, _: f32, _: f32, _: f32) {
                self.0 += 1;
            }
            fn close(&mut self) {}
        }
        let steps = |face: &Face<'_>, glyph: GlyphId| {
            let mut count = Count(0);
            face.outline_glyph(glyph, &mut count);
            count.0
        };
        let full = face(false).unwrap();
        // The umlaut is a composite glyph.
        let [a, umlaut, other] = ['a', 'ä', 'W'].map(|letter| glyph(full, letter));
        let file = subset(false, &BTreeSet::from([umlaut.0])).unwrap();
        let small = Face::parse(&file, 0).unwrap();
        assert_eq!(steps(&small, umlaut), steps(full, umlaut));
        assert_eq!(steps(&small, a), steps(full, a));
        assert_eq!(steps(&small, other), 0);
        assert_eq!(small.glyph_hor_advance(other), full.glyph_hor_advance(other));
        assert!(file.len() < REGULAR.len() / 4, "{} bytes", file.len());
    }

    #[test]
    fn every_character_of_our_labels_has_a_glyph() {
        let face = face(false).unwrap();
        for letter in "εδγνμαβκσ−±≤≥·×→∞‖√ĥ⁰¹²³⁴⁵⁶⁷⁸⁹⁻…–“” ".chars()
        {
            assert!(face.glyph_index(letter).is_some(), "{letter}");
        }
    }

    #[test]
    fn lines_are_no_wider_than_allowed() {
        let lines = wrapped("central Gaussian = channel inversion = masks", 13.0, 160.0);
        assert!(lines.len() > 1 && lines.iter().all(|line| text_width(line, 13.0) <= 160.0), "{lines:?}");
        assert_eq!(lines.join(" "), "central Gaussian = channel inversion = masks");
    }
}
