//! An axis in numbers: its ends, its ticks, and the place of a value between the ends.
//!
//! A linear axis maps `v` to `(v − a)/(b − a)`, a logarithmic one maps `log v` the same way. Ticks are 1, 2 or 5 times a
//! power of ten.

use floras_sim::figure::Axis;
pub(crate) use floras_sim::number::compact as number_text;
use floras_sim::number::{decimal, with_power};

/// Share of an axis that the label of an end takes.
const END_ROOM: f64 = 0.06;

/// An axis whose ends are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) logarithmic: bool,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Scale {
    /// The ends of an axis: its range if it has one, otherwise the range of the values with a margin.
    pub(crate) fn of(axis: &Axis, values: impl Iterator<Item = f64>, room: f64) -> Self {
        let logarithmic = axis.logarithmic;
        let fits = |value: &f64| value.is_finite() && (!logarithmic || *value > 0.0);
        if let Some((low, high)) = axis.range
            && low < high
            && fits(&low)
            && fits(&high)
        {
            return Self { logarithmic, low, high };
        }
        let ends = values.filter(fits).fold(None, |ends: Option<(f64, f64)>, value| {
            Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        });
        let (low, high) = ends.unwrap_or(if logarithmic { (1.0, 10.0) } else { (0.0, 1.0) });
        Self { logarithmic, low, high }.widened(room)
    }

    fn widened(self, room: f64) -> Self {
        let (mut low, mut high) = (self.transform(self.low), self.transform(self.high));
        let floor = if self.logarithmic { 0.1 } else { 1e-9 + 1e-6 * low.abs().max(high.abs()) };
        if high - low < floor {
            let half = if self.logarithmic { 0.5 } else { (0.05 * high.abs()).max(0.5 * floor).max(1e-9) };
            (low, high) = (low - half, high + half);
        } else {
            let span = high - low;
            (low, high) = (low - room * span, high + room * span);
        }
        Self { logarithmic: self.logarithmic, low: self.undo(low), high: self.undo(high) }
    }

    fn transform(&self, value: f64) -> f64 {
        if self.logarithmic { value.log10() } else { value }
    }

    fn undo(&self, value: f64) -> f64 {
        if self.logarithmic { 10_f64.powf(value).clamp(f64::MIN_POSITIVE, f64::MAX) } else { value }
    }

    /// The position of a value: 0 at the lower end and 1 at the upper one; `None` if the axis cannot show it.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || (self.logarithmic && value <= 0.0) {
            return None;
        }
        let (low, high) = (self.transform(self.low), self.transform(self.high));
        Some((self.transform(value) - low) / (high - low))
    }

    /// Like [`Scale::place`], with values outside of the axis at the nearer end.
    pub(crate) fn place_within(&self, value: f64) -> Option<f64> {
        if self.logarithmic && value <= 0.0 {
            return Some(0.0);
        }
        self.place(value).map(|place| place.clamp(0.0, 1.0))
    }

    /// Round values at which the axis has a line, about `about` of them.
    pub(crate) fn ticks(&self, about: usize) -> Vec<f64> {
        if self.logarithmic { self.log_ticks(about) } else { self.linear_ticks(about) }
    }

    /// Round values and both ends of the axis, if those are short numbers, on a logarithmic axis with at most three digits. Ticks too close to an end are removed.
    pub(crate) fn ticks_with_ends(&self, about: usize) -> Vec<f64> {
        let is_short = |value: &f64| {
            let text = decimal(*value);
            let is_exact = text
                .replace('−', "-")
                .parse::<f64>()
                .is_ok_and(|read| (read - value).abs() <= 1e-9 * value.abs());
            // On a logarithmic axis, an end such as 49440 is no round number among powers of ten.
            let digits = text.trim_start_matches(['0', '.']).trim_end_matches('0');
            let is_round = !self.logarithmic || digits.chars().count() <= 3;
            is_exact && is_round && text.chars().count() <= 5
        };
        let mut ticks = self.ticks(about);
        for end in [self.low, self.high].into_iter().filter(is_short) {
            let is_near = |tick: f64| {
                self.place(tick).zip(self.place(end)).is_some_and(|(tick, end)| (tick - end).abs() < END_ROOM)
            };
            ticks.retain(|tick| !is_near(*tick));
            ticks.push(end);
        }
        ticks.sort_by(f64::total_cmp);
        ticks
    }

    fn linear_ticks(&self, about: usize) -> Vec<f64> {
        let rough = (self.high - self.low) / about.max(1) as f64;
        let unit = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0].into_iter().map(|times| times * unit).find(|step| *step >= rough);
        let step = step.unwrap_or(10.0 * unit);
        if !step.is_finite() || step <= 0.0 {
            return Vec::new();
        }
        let (first, last) = ((self.low / step - 1e-9).ceil(), (self.high / step + 1e-9).floor());
        let count = (last - first).clamp(0.0, 100.0) as usize;
        (0..=count).map(|index| first + index as f64).filter(|n| *n <= last).map(|n| n * step + 0.0).collect()
    }

    fn log_ticks(&self, about: usize) -> Vec<f64> {
        let (low, high) = (self.low.log10(), self.high.log10());
        let decades = high - low;
        let inside = |value: &f64| *value >= self.low * 0.999_999 && *value <= self.high * 1.000_001;
        let powers = (low.floor() as i32)..=(high.ceil() as i32);
        let within = |times: &[f64]| -> Vec<f64> {
            let all = powers.clone().flat_map(|power| times.iter().map(move |t| t * 10_f64.powi(power)));
            all.filter(inside).collect()
        };
        if decades < 0.4 {
            // The axis is too short for ticks at powers of ten.
            return Self { logarithmic: false, ..*self }
                .linear_ticks(about)
                .into_iter()
                .filter(|v| *v > 0.0)
                .collect();
        }
        for times in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0][..]] {
            let ticks = within(times);
            if ticks.len() <= about + 2 {
                return ticks;
            }
        }
        let every = (decades / (about + 1) as f64).ceil().max(1.0) as i32;
        within(&[1.0]).into_iter().filter(|tick| (tick.log10().round() as i32) % every == 0).collect()
    }
}

/// The labels of an axis's ticks, all in one notation: decimals where every number is short that way, else powers of ten.
pub(crate) fn tick_texts(ticks: &[f64]) -> Vec<String> {
    let is_short = |tick: &f64| *tick == 0.0 || (1e-3..1e5).contains(&tick.abs());
    let write = if ticks.iter().all(is_short) { decimal } else { with_power };
    ticks.iter().map(|tick| write(*tick)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(logarithmic: bool, range: Option<(f64, f64)>) -> Axis {
        Axis { label: String::new(), logarithmic, range }
    }

    #[test]
    fn given_ends_are_used() {
        let scale = Scale::of(&axis(false, Some((0.0, 4.0))), [9.0].into_iter(), 0.1);
        assert_eq!((scale.place(1.0), scale.place(4.0)), (Some(0.25), Some(1.0)));
        let scale = Scale::of(&axis(true, Some((1.0, 10_000.0))), [].into_iter(), 0.1);
        assert_eq!(scale.place(100.0), Some(0.5));
        assert_eq!(scale.place(0.0), None);
    }

    #[test]
    fn finite_values_set_the_ends() {
        let values = [2.0, f64::NAN, 6.0, f64::INFINITY];
        let scale = Scale::of(&axis(false, None), values.into_iter(), 0.0);
        assert_eq!((scale.low, scale.high), (2.0, 6.0));
        let scale = Scale::of(&axis(true, None), [-3.0, 0.0, 1.0, 1000.0].into_iter(), 0.0);
        assert!((scale.low - 1.0).abs() < 1e-9 && (scale.high - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn a_single_value_makes_an_axis() {
        for value in [0.0, 5.0, -2.0, 1e30] {
            let scale = Scale::of(&axis(false, None), [value].into_iter(), 0.05);
            let place = scale.place(value).unwrap();
            assert!((place - 0.5).abs() < 1e-6, "{value}: {place}");
        }
        let scale = Scale::of(&axis(true, None), [7.0].into_iter(), 0.05);
        assert!((scale.place(7.0).unwrap() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn ticks_are_round_numbers_within_the_axis() {
        let scale = Scale { logarithmic: false, low: 0.03, high: 0.97 };
        assert_eq!(tick_texts(&scale.ticks(5)), ["0.2", "0.4", "0.6", "0.8"]);
        let scale = Scale { logarithmic: true, low: 1.0, high: 1e6 };
        assert_eq!(scale.ticks(6), [1.0, 10.0, 100.0, 1000.0, 1e4, 1e5, 1e6]);
        let scale = Scale { logarithmic: true, low: 1.0, high: 300.0 };
        assert_eq!(scale.ticks(7), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0]);
        let long = Scale { logarithmic: true, low: 1e-200, high: 1e200 };
        assert!((2..10).contains(&long.ticks(6).len()));
    }

    #[test]
    fn first_and_last_round_are_ticks() {
        let scale = Scale { logarithmic: false, low: 1.0, high: 300.0 };
        assert_eq!(scale.ticks_with_ends(5), [1.0, 100.0, 200.0, 300.0]);
        let scale = Scale { logarithmic: true, low: 1.0, high: 40.0 };
        assert_eq!(scale.ticks_with_ends(5), [1.0, 2.0, 5.0, 10.0, 20.0, 40.0]);
        let scale = Scale { logarithmic: false, low: 0.0, high: 123_456.7 };
        assert_eq!(scale.ticks_with_ends(2), [0.0, 100_000.0]);
    }

    #[test]
    fn ticks_of_an_axis_share_one_notation() {
        assert_eq!(tick_texts(&[0.25, 100.0, -0.5, 12_345.0]), ["0.25", "100", "−0.5", "12345"]);
        assert_eq!(tick_texts(&[1.0, 1e3, 1e6]), ["10⁰", "10³", "10⁶"]);
        assert_eq!(tick_texts(&[0.0, 2e7, 4e7]), ["0", "2·10⁷", "4·10⁷"]);
    }
}
