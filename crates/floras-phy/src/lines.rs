//! Line numbers in CSV files.

/// The line number of a record, counted from 1. Blank lines before the record, which the reader's position
/// includes, are skipped.
pub(crate) fn line_at(text: &str, position: Option<&csv::Position>) -> usize {
    let start = position.map_or(0, |position| position.byte() as usize).min(text.len());
    let bytes = text.as_bytes();
    let blank = bytes[start..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    1 + bytes[..start + blank].iter().filter(|&&byte| byte == b'\n').count()
}
