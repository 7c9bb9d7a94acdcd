//! Numbers as text for pages.

pub(crate) use floras_sim::number::{count, estimate, grouped, percentage, share, signed, with_uncertainty};

use crate::plot::scale::number_text;

/// An `ε` with three significant digits or three decimals.
pub(crate) fn epsilon(epsilon: f64) -> String {
    match epsilon {
        infinite if !infinite.is_finite() => "∞".to_owned(),
        large if large >= 1e6 => number_text(format!("{large:.1e}").parse().unwrap_or(large)),
        large if large >= 1000.0 => grouped(large.round() as u64),
        medium if medium >= 100.0 => format!("{medium:.0}"),
        medium if medium >= 10.0 => format!("{medium:.1}"),
        small if small > 0.0 && small < 0.001 => number_text(format!("{small:.1e}").parse().unwrap_or(small)),
        usual => format!("{usual:.3}"),
    }
}

/// An upper bound on `ε`: a number, `> 10⁵` if none up to that value is established, or `none`.
pub(crate) fn bound(upper: Option<f64>, above: Option<f64>) -> String {
    match (upper, above) {
        (Some(upper), _) => epsilon(upper),
        (None, Some(above)) => format!("> {}", number_text(above)),
        (None, None) => "none".to_owned(),
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
    fn numbers_are_short() {
        assert_eq!(epsilon(0.48462), "0.485");
        assert_eq!(epsilon(124_786.2), "124\u{202f}786");
        assert_eq!(epsilon(6.02), "6.020");
        assert_eq!(epsilon(3.443e8), "3.4·10⁸");
        let bounds = [(Some(0.48462), None), (None, Some(1e5)), (None, None)];
        assert_eq!(bounds.map(|(upper, above)| bound(upper, above)), ["0.485", "> 10⁵", "none"]);
        assert_eq!([0.5, 2.345e-5].map(short), ["0.5000", "2.345·10⁻⁵"]);
    }
}
