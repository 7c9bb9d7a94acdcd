//! The numbers of an audit, from 0 to millions.

use crate::html::number::grouped;

/// An `ε`: three decimals, or three significant digits of large numbers.
pub(super) fn epsilon(epsilon: f64) -> String {
    let in_millions = |value: f64| -> String {
        let millions = value / 1e6;
        let digits = if millions < 10.0 { 2 } else { 1 };
        format!("{millions:.digits$} million")
    };
    match epsilon {
        none if !none.is_finite() => "∞".to_owned(),
        huge if huge >= 1e9 => format!("{huge:.1e}"),
        large if large >= 999_500.0 => in_millions(large),
        large if large >= 1000.0 => {
            let unit = 10_f64.powf(large.log10().floor() - 2.0);
            grouped(((large / unit).round() * unit) as u64)
        }
        medium if medium >= 100.0 => format!("{medium:.1}"),
        usual => format!("{usual:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_have_three_digits() {
        let shown = [0.0, 1.985_79, 61_945.096, 3_732_131.855, 2171.9, 999_700.0, 165.913].map(epsilon);
        let expected = ["0.000", "1.986", "61\u{202f}900", "3.73 million", "2170", "1.00 million", "165.9"];
        assert_eq!(shown, expected);
        assert_eq!([f64::INFINITY, 25e6, 3e12].map(epsilon), ["∞", "25.0 million", "3.0e12"]);
    }
}
