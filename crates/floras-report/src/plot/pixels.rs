//! Grey pixels as a data URL: a PNG file in base 64, so that an SVG or a page loads nothing.

use super::picture::Pixels;

/// The data URL `data:image/png;base64,…`; empty if the pixels do not fill their rows.
pub(super) fn address(pixels: &Pixels) -> String {
    match encode(pixels) {
        Ok(bytes) => format!("data:image/png;base64,{}", base64(&bytes)),
        Err(_) => String::new(),
    }
}

fn encode(pixels: &Pixels) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let (across, down) = (pixels.across as u32, pixels.down() as u32);
    let mut encoder = png::Encoder::new(&mut bytes, across, down);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels.grey)?;
    writer.finish()?;
    Ok(bytes)
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word =
            group.iter().fold(0_u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place)) as usize & 63];
            out.push(if place > group.len() { '=' } else { letter.into() });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 4648, section 10.
    #[test]
    fn base_64_is_that_of_the_standard() {
        let examples = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (text, expected) in examples {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }

    #[test]
    fn pixels_come_back_from_the_file() {
        let pixels = Pixels { across: 3, grey: vec![0, 1, 2, 253, 254, 255] };
        let bytes = encode(&pixels).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut read = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut read).unwrap();
        assert_eq!((frame.width, frame.height, &read[..6]), (3, 2, &pixels.grey[..]));
        assert_eq!(address(&Pixels { across: 3, grey: vec![0] }), "");
    }
}
