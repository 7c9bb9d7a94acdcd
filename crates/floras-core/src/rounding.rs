//! Bounds as text: the printed number is never on the wrong side of the bound.
//!
//! A number with few digits is usually the nearest one. An upper bound such as `ε ≤ 10.0334` would then be printed as 10.0,
//! which is not an upper bound. Here the last digit is rounded away from the bounded quantity.

/// The direction in which the last printed digit of a bound is rounded.
///
/// ```
/// use floras_core::Rounding;
///
/// assert_eq!(Rounding::Up.fixed(10.0334, 1), "10.1");
/// assert_eq!(Rounding::Down.fixed(10.0934, 1), "10.0");
/// assert_eq!(Rounding::Up.scientific(3.443e8, 1), "3.5e8");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Towards larger numbers, for upper bounds.
    Up,
    /// Towards smaller numbers, for lower bounds.
    Down,
}

impl Rounding {
    /// A number with this many decimals, as by `{value:.decimals$}`.
    pub fn fixed(self, value: f64, decimals: usize) -> String {
        let nearest = format!("{value:.decimals$}");
        self.corrected(value, nearest, |shown| {
            format!("{:.decimals$}", self.next(shown, -i32::try_from(decimals).unwrap_or(i32::MAX)))
        })
    }

    /// A number with a power of ten and this many decimals of its factor, as by `{value:.decimals$e}`.
    pub fn scientific(self, value: f64, decimals: usize) -> String {
        let nearest = format!("{value:.decimals$e}");
        // The power of the value: that of the nearest number is one higher where the digits carry.
        let exact = format!("{value:e}");
        let power = exact.rsplit_once('e').and_then(|(_, power)| power.parse::<i32>().ok()).unwrap_or(0);
        self.corrected(value, nearest, |shown| {
            format!("{:.decimals$e}", self.next(shown, power - i32::try_from(decimals).unwrap_or(i32::MAX)))
        })
    }

    /// A positive number with this many significant digits, as an integer beyond them: 61,946 to three digits is 62,000 rounded up.
    pub fn significant(self, value: f64, digits: usize) -> f64 {
        self.scientific(value, digits.saturating_sub(1)).parse().unwrap_or(value)
    }

    /// The nearest number if it is on the right side of the value, else the neighbour in this direction.
    fn corrected(self, value: f64, nearest: String, neighbour: impl Fn(f64) -> String) -> String {
        match nearest.parse::<f64>() {
            Ok(shown) if value.is_finite() && self.is_wrong(shown, value) => neighbour(shown),
            _ => nearest,
        }
    }

    fn is_wrong(self, shown: f64, value: f64) -> bool {
        match self {
            Self::Up => shown < value,
            Self::Down => shown > value,
        }
    }

    /// The number that differs by one in the digit of this power of ten.
    fn next(self, shown: f64, power: i32) -> f64 {
        let unit = 10_f64.powi(power);
        match self {
            Self::Up => shown + unit,
            Self::Down => shown - unit,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn upper_bounds_are_rounded_up() {
        let shown = [10.0334, 0.5, 0.99999, 0.0, 1e-9].map(|value| Rounding::Up.fixed(value, 3));
        assert_eq!(shown, ["10.034", "0.500", "1.000", "0.000", "0.001"]);
        let shown = [9.96e5, 9.91e5, 1e-4, 1.01e-4].map(|value| Rounding::Up.scientific(value, 1));
        assert_eq!(shown, ["1.0e6", "1.0e6", "1.0e-4", "1.1e-4"]);
        assert_eq!(Rounding::Up.significant(61_945.1, 3), 62_000.0);
    }

    #[test]
    fn lower_bounds_are_rounded_down() {
        let shown = [10.0336, 0.5, 0.9999].map(|value| Rounding::Down.fixed(value, 3));
        assert_eq!(shown, ["10.033", "0.500", "0.999"]);
        assert_eq!(Rounding::Down.scientific(9.97e5, 1), "9.9e5");
        assert_eq!(Rounding::Down.significant(61_951.0, 3), 61_900.0);
    }

    #[test]
    fn what_is_not_finite_stays() {
        assert_eq!(Rounding::Up.fixed(f64::INFINITY, 2), "inf");
        assert_eq!(Rounding::Down.scientific(f64::NAN, 2), "NaN");
    }

    proptest! {
        /// On the right side, and less than one unit of the last digit away.
        #[test]
        fn bounds_stay_on_their_side(value in 1e-12..1e9_f64, decimals in 0..6_usize) {
            let unit = 10_f64.powi(-(decimals as i32)) * (1.0 + 1e-9) + 1e-15 * value;
            let [up, down] = [Rounding::Up, Rounding::Down].map(|side| side.fixed(value, decimals).parse::<f64>().unwrap());
            prop_assert!(down <= value && value <= up && up - value < unit && value - down < unit, "{down} {value} {up}");
            let [up, down] =
                [Rounding::Up, Rounding::Down].map(|side| side.scientific(value, decimals).parse::<f64>().unwrap());
            prop_assert!(down <= value && value <= up && up - down <= unit * value, "{down} {value} {up}");
        }
    }
}
