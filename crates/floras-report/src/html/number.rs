//! Numbers as text for pages.

use floras_core::Rounding;
use floras_sim::inquiry::NO_FINITE;
pub(crate) use floras_sim::number::{count, estimate, grouped, percentage, share, signed, with_uncertainty};

use crate::plot::scale::number_text;

/// An upper bound on `ε` with three significant digits or three decimals, rounded up.
pub(crate) fn epsilon(epsilon: f64) -> String {
    bounded(epsilon, Rounding::Up)
}

/// A lower bound on `ε` as by [`epsilon`], but rounded down.
pub(crate) fn epsilon_lower(epsilon: f64) -> String {
    bounded(epsilon, Rounding::Down)
}

fn bounded(epsilon: f64, rounding: Rounding) -> String {
    match epsilon {
        infinite if !infinite.is_finite() => "∞".to_owned(),
        large if large >= 1e6 => number_text(rounding.significant(large, 2)),
        large if large >= 1000.0 => {
            grouped(if rounding == Rounding::Up { large.ceil() } else { large } as u64)
        }
        medium if medium >= 100.0 => rounding.fixed(medium, 0),
        medium if medium >= 10.0 => rounding.fixed(medium, 1),
        small if small > 0.0 && small < 0.001 => number_text(rounding.significant(small, 2)),
        usual => rounding.fixed(usual, 3),
    }
}

/// An upper bound on `ε`: a number, `> 10⁵` if none up to that value is established, or `no finite ε`.
pub(crate) fn bound(upper: Option<f64>, above: Option<f64>) -> String {
    match (upper, above) {
        (Some(upper), _) => epsilon(upper),
        (None, Some(above)) => format!("> {}", number_text(above)),
        (None, None) => NO_FINITE.to_owned(),
    }
}

/// Four decimals, or a power of ten where those would be too short or too long.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (1e-3..1e5).contains(&size) {
        format!("{value:.4}")
    } else {
        number_text(format!("{value:.3e}").parse().unwrap_or(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_bounds_are_rounded_up() {
        let shown = [0.48462, 6.02, 9.9996, 10.0334, 165.1, 4000.1, 124_786.2, 3.443e8, 2.01e-5].map(epsilon);
        let expected =
            ["0.485", "6.020", "10.000", "10.1", "166", "4001", "124\u{202f}787", "3.5·10⁸", "2.1·10⁻⁵"];
        assert_eq!(shown, expected);
        assert_eq!([0.0, f64::INFINITY].map(epsilon), ["0.000", "∞"]);
    }

    #[test]
    fn lower_bounds_are_rounded_down() {
        let shown = [0.48462, 10.0934, 165.9, 4000.9, 3.473e8].map(epsilon_lower);
        assert_eq!(shown, ["0.484", "10.0", "165", "4000", "3.4·10⁸"]);
    }

    #[test]
    fn numbers_are_short() {
        let bounds = [(Some(0.48462), None), (None, Some(1e5)), (None, None)];
        assert_eq!(bounds.map(|(upper, above)| bound(upper, above)), ["0.485", "> 10⁵", "no finite ε"]);
        assert_eq!([0.5, 2.345e-5].map(short), ["0.5000", "2.345·10⁻⁵"]);
    }
}
