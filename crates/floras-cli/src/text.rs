//! Text in lines of at most 80 characters.

use std::ffi::OsStr;
use std::io::{self, Write};

/// Maximum number of characters per line.
pub(crate) const WIDTH: usize = 80;

/// Relation signs, which stay on one line with both operands.
const RELATIONS: [&str; 6] = ["=", "≤", "≥", "<", ">", "±"];

/// Words of a text; a relation such as `δ = 1e-5` is one word.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_open = false;
    for word in text.split_whitespace() {
        let is_relation = RELATIONS.contains(&word);
        match words.last_mut() {
            Some(last) if is_relation || is_open => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
        is_open = is_relation;
    }
    words
}

/// Words of a text in lines of at most `width` characters. A longer word has a line of its own.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in &words(text) {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.clone()),
        }
    }
    lines
}

/// A path or an argument as one word of a POSIX shell: in quotes, if it has other characters than those of usual words.
pub(crate) fn quoted(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref().to_string_lossy();
    let is_usual = |letter: char| letter.is_alphanumeric() || "-_./,:=+@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_usual) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A text after a label; its other lines begin below the text.
pub(crate) fn labelled(label: &str, text: &str) -> String {
    let indent = label.chars().count();
    let separator = format!("\n{:indent$}", "");
    format!("{label}{}", wrap(text, WIDTH.saturating_sub(indent)).join(&separator))
}

/// A note of at least one line.
pub(crate) fn note(text: &str) -> String {
    labelled("note: ", text)
}

/// Prints a paragraph.
pub(crate) fn paragraph(out: &mut impl Write, text: &str) -> io::Result<()> {
    writeln!(out, "{}", labelled("", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_words_stay_whole() {
        assert_eq!(wrap("ε ≤ 8 at δ = 1e-5", 10), ["ε ≤ 8 at", "δ = 1e-5"]);
        assert_eq!(wrap("a extraordinary b", 5), ["a", "extraordinary", "b"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn unusual_words_are_quoted() {
        let words = ["runs/a-2", "my runs", "it's", "", "uplink.receiver=clipped=1", "a=[1, 2]"].map(quoted);
        assert_eq!(
            words,
            ["runs/a-2", "'my runs'", r"'it'\''s'", "''", "uplink.receiver=clipped=1", "'a=[1, 2]'"]
        );
    }

    #[test]
    fn notes_are_indented_below_their_text() {
        let note = note(&"word ".repeat(20));
        let lines: Vec<&str> = note.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{note}");
        assert!(lines[1].starts_with("      word"), "{note}");
    }
}
