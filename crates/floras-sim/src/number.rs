//! Numbers as a reader wants them.

/// `12 345` with thin spaces, which no language takes for a decimal point.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) && digits.len() > 4 {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// `1 trial`, `2 trials`.
pub fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{} {what}s", grouped(number)) }
}

/// `95 %`, `99.9 %`, `0.4 %`: a share with no more digits than it needs, and never rounded to all or nothing.
pub fn share(share: f64) -> String {
    let percent = 100.0 * share;
    let digits = [1, 2, 3, 4].into_iter().find(|digits| {
        let rounded = format!("{percent:.digits$}");
        (rounded.parse() != Ok(100.0) || percent >= 100.0) && (rounded.parse() != Ok(0.0) || percent == 0.0)
    });
    let text = format!("{percent:.digits$}", digits = digits.unwrap_or(4));
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.')).replace('-', "−")
}

/// With a minus of its own width, and none before a zero.
pub fn signed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let is_zero = text.chars().all(|letter| "-0.".contains(letter));
    if is_zero { text.replace('-', "") } else { text.replace('-', "−") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_never_rounded_to_certainty() {
        assert_eq!([0.95, 0.999, 0.004, 1.0, 0.0].map(share), ["95 %", "99.9 %", "0.4 %", "100 %", "0 %"]);
        assert_eq!([0.99999, 0.00002, 0.12345].map(share), ["99.999 %", "0.002 %", "12.3 %"]);
    }

    #[test]
    fn four_digits_stay_together() {
        assert_eq!([4000, 43_210].map(grouped), ["4000", "43\u{202f}210"]);
    }
}
