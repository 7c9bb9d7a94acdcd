//! Numbers in texts for a terminal, in the notation of a page: `1e-5` is 10⁻⁵, `95%` is 95 %, `-3` is −3, and thousands have a narrow space.

use crate::plot::scale::number_text;

/// A narrow space that does not break.
const NARROW: char = '\u{202f}';

/// The same text with the numbers of a page.
pub(super) fn numbers(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < letters.len() {
        let is_start = at == 0 || !is_word(letters[at - 1]);
        let length = if is_start { number_at(&letters[at..]) } else { 0 };
        if length == 0 {
            out.push(letters[at]);
            at += 1;
            continue;
        }
        let number: String = letters[at..at + length].iter().collect();
        out.push_str(&typeset(&number));
        at += length;
        if letters.get(at) == Some(&'%') {
            out.push(' ');
        }
    }
    out
}

/// Whether a number cannot begin after this character: it would be a part of a name, a version or a range.
fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || "._-−/".contains(letter)
}

/// The length of the number at the beginning, or 0.
fn number_at(letters: &[char]) -> usize {
    let digits = |from: usize| letters[from..].iter().take_while(|letter| letter.is_ascii_digit()).count();
    let get = |place: usize| letters.get(place).copied();
    let mut end = usize::from(get(0) == Some('-'));
    let whole = digits(end);
    if whole == 0 {
        return 0;
    }
    end += whole;
    if whole <= 3 {
        while get(end) == Some(',') && digits(end + 1) == 3 {
            end += 4;
        }
    }
    if get(end) == Some('.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if get(end) == Some('e') {
        let sign = usize::from(get(end + 1) == Some('-'));
        let power = digits((end + 1 + sign).min(letters.len()));
        end += if power > 0 { 1 + sign + power } else { 0 };
    }
    // A letter or a dot with a digit after it: a version or a name.
    let is_name = get(end).is_some_and(char::is_alphanumeric)
        || (get(end) == Some('.') && get(end + 1).is_some_and(|letter| letter.is_ascii_digit()));
    if is_name { 0 } else { end }
}

fn typeset(number: &str) -> String {
    match number.parse::<f64>() {
        Ok(value) if number.contains('e') && value.is_finite() => number_text(value),
        _ => number.replace('-', "−").replace(',', &NARROW.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_notation() {
        let shown =
            ["δ = 1e-5 (not stated)", "at 95% or -3.5 dB", "of 10,000 games", "2.5e7 uses"].map(numbers);
        assert_eq!(
            shown,
            ["δ = 10⁻⁵ (not stated)", "at 95 % or −3.5 dB", "of 10\u{202f}000 games", "2.5·10⁷ uses"]
        );
    }

    #[test]
    fn names_and_ranges_stay() {
        for text in [
            "floras 0.1.0",
            "SHA-256 and X25519",
            "rounds 10-20",
            "1, 2 and 3",
            "0.3.1",
            "point-001",
            "--games 5",
            "a 3e",
        ] {
            assert_eq!(numbers(text), text);
        }
    }
}
