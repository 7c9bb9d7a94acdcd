//! Numbers as a reader wants them.

use floras_sim::Estimate;
pub(crate) use floras_sim::number::{count, grouped, share, signed};

/// An `ε` with as many digits as anyone needs.
pub(crate) fn epsilon(epsilon: f64) -> String {
    match epsilon {
        none if !none.is_finite() => "∞".to_owned(),
        large if large >= 1e6 => format!("{large:.1e}"),
        large if large >= 1000.0 => grouped(large.round() as u64),
        medium if medium >= 100.0 => format!("{medium:.0}"),
        medium if medium >= 10.0 => format!("{medium:.1}"),
        small if small > 0.0 && small < 0.001 => format!("{small:.1e}"),
        usual => format!("{usual:.3}"),
    }
}

/// `82.8 ± 0.5 %`.
pub(crate) fn percent(estimate: Estimate) -> String {
    match estimate.ci95 {
        Some(half) => format!("{:.1} ± {:.1} %", 100.0 * estimate.mean, 100.0 * half),
        None => format!("{:.1} %", 100.0 * estimate.mean),
    }
}

/// `1.0379 ± 0.0120`.
pub(crate) fn plain(estimate: Estimate) -> String {
    match estimate.ci95 {
        Some(half) => format!("{} ± {}", short(estimate.mean), short(half)),
        None => short(estimate.mean),
    }
}

/// Four decimals, or powers of ten where those say nothing.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (1e-3..1e5).contains(&size) { format!("{value:.4}") } else { format!("{value:.3e}") }
}

/// How sure someone can be who held both for equally likely: `e^ε/(1 + e^ε)`, in percent, never rounded to certainty.
pub(crate) fn certainty(epsilon: f64) -> String {
    let doubt = 100.0 / (1.0 + epsilon.exp());
    if doubt < 1e-6 {
        return "as good as certain".to_owned();
    }
    let digits = (1.0 - doubt.log10().floor()).clamp(0.0, 8.0) as usize;
    // Upwards: it is a bound.
    let unit = 10_f64.powi(digits as i32);
    let sure = ((100.0 - doubt) * unit).ceil() / unit;
    format!("{sure:.digits$} % sure")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// e/(1 + e) = 0.731059, and at ε = ln 3 it is ¾.
    #[test]
    fn certainty_is_rounded_up_and_never_to_certainty() {
        assert_eq!(certainty(0.0), "50 % sure");
        assert_eq!(certainty(1.0), "74 % sure");
        assert_eq!(certainty(3.0_f64.ln() - 1e-12), "75 % sure");
        assert_eq!(certainty(10.0), "99.9955 % sure");
        assert_eq!(certainty(700.0), "as good as certain");
        assert_eq!(certainty(f64::INFINITY), "as good as certain");
    }

    #[test]
    fn numbers_are_as_short_as_they_may_be() {
        assert_eq!(epsilon(0.48462), "0.485");
        assert_eq!(epsilon(124_786.2), "124\u{202f}786");
        assert_eq!(epsilon(6.02), "6.020");
        assert_eq!(grouped(4000), "4000");
        assert_eq!(percent(Estimate { mean: 0.8276, ci95: Some(0.0051) }), "82.8 ± 0.5 %");
        assert_eq!(plain(Estimate { mean: 1.0379, ci95: None }), "1.0379");
    }
}
