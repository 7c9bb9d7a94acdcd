//! Numbers as text for tables and pages.

use crate::summary::Estimate;

/// Groups digits with narrow spaces, as in `12 345`: a comma or a point could be read as a decimal separator.
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

/// A number with its noun: `1 trial`, `2 trials`.
pub fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{} {what}s", grouped(number)) }
}

/// A share as a percentage with few digits, as in `95 %` or `99.9 %`. It is never rounded to 0 % or 100 %.
pub fn share(share: f64) -> String {
    let percent = 100.0 * share;
    let digits = [1, 2, 3, 4].into_iter().find(|digits| {
        let rounded = format!("{percent:.digits$}");
        (rounded.parse() != Ok(100.0) || percent >= 100.0) && (rounded.parse() != Ok(0.0) || percent == 0.0)
    });
    let text = format!("{percent:.digits$}", digits = digits.unwrap_or(4));
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.')).replace('-', "−")
}

/// A mean with its 95% interval, both to the second significant digit of the interval: `0.91230 ± 0.00089`. Without an
/// interval, the mean has five significant digits and at most four decimals.
///
/// ```
/// use floras_sim::{Estimate, number};
///
/// assert_eq!(number::estimate(Estimate { mean: 0.912_304, ci95: Some(8.877e-4) }), "0.91230 ± 0.00089");
/// assert_eq!(number::percentage(Estimate { mean: 0.850_4, ci95: Some(0.006_9) }), "85.04 ± 0.69 %");
/// ```
pub fn estimate(Estimate { mean, ci95 }: Estimate) -> String {
    with_uncertainty(mean, ci95)
}

/// [`estimate`] for a value and the half width of any interval.
pub fn with_uncertainty(value: f64, half_width: Option<f64>) -> String {
    with_interval(value, half_width, (4 - magnitude(value)).clamp(0, 4))
}

/// A share as a percentage with its 95% interval, as by [`estimate`]: `85.04 ± 0.69 %`. Without an interval, it has two decimals.
pub fn percentage(Estimate { mean, ci95 }: Estimate) -> String {
    format!("{} %", with_interval(100.0 * mean, ci95.map(|half| 100.0 * half), 2))
}

/// Maximum number of printed decimals.
const MAX_DECIMALS: i32 = 8;

fn with_interval(mean: f64, half: Option<f64>, decimals: i32) -> String {
    match half {
        None => rounded(mean, decimals),
        // Equal trials differ by rounding errors only.
        Some(half) if half.abs() < 1e-9 * mean.abs().max(1.0) => {
            format!("{} ± {}", rounded(mean, decimals), rounded(0.0, decimals))
        }
        Some(half) if !(half.is_finite() && half > 0.0) => format!("{} ± {half}", rounded(mean, decimals)),
        Some(half) => {
            // Rounding to two digits may carry into a third: 0.0996 is 0.10.
            let digits = 1 - magnitude(half);
            let two_digits = (half * 10_f64.powi(digits)).round() / 10_f64.powi(digits);
            let decimals = (1 - magnitude(two_digits)).min(MAX_DECIMALS);
            format!("{} ± {}", rounded(mean, decimals), rounded(half, decimals))
        }
    }
}

/// A number with these decimals. A negative number of decimals rounds before the decimal point.
fn rounded(value: f64, decimals: i32) -> String {
    let unit = 10_f64.powi(-decimals.min(0));
    format!(
        "{:.*}",
        decimals.max(0) as usize,
        if decimals < 0 { (value / unit).round() * unit } else { value }
    )
}

/// The power of ten of the first digit: 0 for 1 to 9.99, and for zero.
fn magnitude(value: f64) -> i32 {
    let power = value.abs().log10().floor();
    if power.is_finite() { power as i32 } else { 0 }
}

/// A number without needless digits: a decimal if it is short that way, else with a power of ten.
///
/// ```
/// assert_eq!([1e-5, 0.3, 2e7].map(floras_sim::number::compact), ["10⁻⁵", "0.3", "2·10⁷"]);
/// ```
pub fn compact(value: f64) -> String {
    if value == 0.0 || (1e-4..1e5).contains(&value.abs()) { decimal(value) } else { with_power(value) }
}

/// A decimal with five significant digits and no needless zeros.
pub fn decimal(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = (4 - magnitude(value)).clamp(0, 8) as usize;
    let text = format!("{value:.digits$}");
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    short.replace('-', "−")
}

/// A number with a power of ten: `2·10⁷`, or `10⁷` if the factor is 1.
pub fn with_power(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return decimal(value);
    }
    let power = (value.abs().log10() + 1e-12).floor() as i32;
    let factor = format!("{:.3}", value / 10_f64.powi(power));
    let factor = factor.trim_end_matches('0').trim_end_matches('.').replace('-', "−");
    let power = superscript(power);
    if factor == "1" { format!("10{power}") } else { format!("{factor}·10{power}") }
}

fn superscript(number: i32) -> String {
    let digit = |letter: char| match letter {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    };
    number.to_string().chars().map(digit).collect()
}

/// A number with a typographic minus sign, which is omitted before zero.
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

    fn text(mean: f64, half: f64) -> String {
        estimate(Estimate { mean, ci95: Some(half) })
    }

    #[test]
    fn intervals_have_two_significant_digits() {
        assert_eq!(text(0.912_304, 8.877e-4), "0.91230 ± 0.00089");
        assert_eq!(text(2.5, 0.0996), "2.50 ± 0.10");
        assert_eq!(text(12.345, 1.0), "12.3 ± 1.0");
        assert_eq!(text(1_585_924.3, 12_345.0), "1586000 ± 12000");
        assert_eq!(text(0.3, 0.0), "0.3000 ± 0.0000");
        assert_eq!(text(0.3, 1e-12), "0.3000 ± 0.0000");
        assert_eq!(percentage(Estimate { mean: 0.873, ci95: Some(0.0) }), "87.30 ± 0.00 %");
    }

    #[test]
    fn means_without_interval_stay_short() {
        let alone = |mean| estimate(Estimate { mean, ci95: None });
        assert_eq!([0.3, 12.345_678, 1_585_924.3].map(alone), ["0.3000", "12.346", "1585924"]);
        assert_eq!(percentage(Estimate { mean: 0.85, ci95: None }), "85.00 %");
        assert_eq!(percentage(Estimate { mean: 0.5, ci95: Some(0.12) }), "50 ± 12 %");
    }

    #[test]
    fn four_digits_stay_together() {
        assert_eq!([4000, 43_210].map(grouped), ["4000", "43\u{202f}210"]);
    }
}
