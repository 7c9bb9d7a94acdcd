//! Arithmetic with about 106 bits, as a reference in tests: a value is a sum of two doubles.

/// `high + low`, with `|low|` at most half a unit in the last place of `high`.
#[derive(Clone, Copy, Debug)]
pub(super) struct DoubleDouble(pub(super) f64, pub(super) f64);

pub(super) const LN_2: DoubleDouble = DoubleDouble(std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);
pub(super) const FRAC_PI_2: DoubleDouble =
    DoubleDouble(std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17);

impl DoubleDouble {
    pub(super) fn of(value: f64) -> Self {
        Self(value, 0.0)
    }

    pub(super) fn add(self, other: Self) -> Self {
        let sum = self.0 + other.0;
        let part = sum - self.0;
        let error = (self.0 - (sum - part)) + (other.0 - part) + self.1 + other.1;
        Self::of_parts(sum, error)
    }

    pub(super) fn times(self, other: Self) -> Self {
        let product = self.0 * other.0;
        let error = self.0.mul_add(other.0, -product) + self.0 * other.1 + self.1 * other.0;
        Self::of_parts(product, error)
    }

    pub(super) fn over(self, other: Self) -> Self {
        let first = Self::of(self.0 / other.0);
        let rest = self.add(first.times(other).negated());
        first.add(Self::of(rest.0 / other.0))
    }

    pub(super) fn negated(self) -> Self {
        Self(-self.0, -self.1)
    }

    pub(super) fn sqrt(self) -> Self {
        let first = Self::of(self.0.sqrt());
        let rest = self.add(first.times(first).negated());
        first.add(Self::of(rest.0 / (2.0 * first.0)))
    }

    /// `self − value`, to double precision.
    pub(super) fn minus(self, value: f64) -> f64 {
        let difference = self.add(Self::of(-value));
        difference.0 + difference.1
    }

    fn of_parts(high: f64, low: f64) -> Self {
        let sum = high + low;
        Self(sum, low - (sum - high))
    }
}

/// `ln(1 + f)` for `|f| < 0.5`, by the series of `2·atanh(f/(2 + f))`.
pub(super) fn ln_1p(f: DoubleDouble) -> DoubleDouble {
    let s = f.over(f.add(DoubleDouble::of(2.0)));
    let z = s.times(s);
    let mut power = s.add(s);
    let mut sum = power;
    for term in 1..60 {
        power = power.times(z);
        sum = sum.add(power.over(DoubleDouble::of(f64::from(2 * term + 1))));
    }
    sum
}

/// Sine and cosine for `|r| ≤ 1`, by their series.
pub(super) fn sine_cosine(r: DoubleDouble) -> (DoubleDouble, DoubleDouble) {
    let z = r.times(r).negated();
    let (mut sine_term, mut cosine_term) = (r, DoubleDouble::of(1.0));
    let (mut sine, mut cosine) = (sine_term, cosine_term);
    for term in 1..16 {
        let n = f64::from(2 * term);
        cosine_term = cosine_term.times(z).over(DoubleDouble::of(n * (n - 1.0)));
        sine_term = sine_term.times(z).over(DoubleDouble::of(n * (n + 1.0)));
        cosine = cosine.add(cosine_term);
        sine = sine.add(sine_term);
    }
    (sine, cosine)
}
