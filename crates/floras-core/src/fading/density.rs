//! Densities of the amplitude `|h|`, for accounting and audits, which average over channels instead of drawing them.
//!
//! | fading | density of `|h|` at `x` |
//! |---|---|
//! | Rayleigh | `2x·e^{−x²}` |
//! | Rician | `2(κ+1)x·e^{−κ−(κ+1)x²}·I₀(2x√(κ(κ+1)))` |
//! | Nakagami | `2m^m/Γ(m)·x^{2m−1}·e^{−mx²}` |

use std::f64::consts::PI;

use super::Fading;

/// Distance in standard deviations beyond which the probability is below the rounding of a double.
const TAIL_STDS: f64 = 13.0;

impl Fading {
    /// The density of `|h|`; `None` without fading.
    pub fn amplitude_density(self, amplitude: f64) -> Option<f64> {
        let x = amplitude;
        match self {
            Self::None => None,
            _ if x < 0.0 => Some(0.0),
            Self::Rayleigh => Some(2.0 * x * (-x * x).exp()),
            Self::Rician(factor) => {
                let factor = factor.get();
                let argument = 2.0 * x * (factor * (factor + 1.0)).sqrt();
                let distance = (factor + 1.0).sqrt() * x - factor.sqrt();
                Some(2.0 * (factor + 1.0) * x * (-distance * distance).exp() * scaled_bessel(argument))
            }
            Self::Nakagami(shape) => {
                let m = shape.get();
                // m·ln m − ln Γ(m) + (2m−1)·ln x − m·x², without the cancellation for large m.
                let log = m * (2.0 * x.ln() - x * x + 1.0) - stirling_rest(m) - x.ln();
                Some(2.0 * log.exp())
            }
        }
    }

    /// The amplitude that `|h|` is below with a probability between 0 and 1, exact under Rayleigh fading and to four digits otherwise;
    /// 1 without fading.
    pub fn amplitude_quantile(self, probability: f64) -> f64 {
        const INTERVALS: u32 = 1 << 16;
        let probability = probability.clamp(0.0, 1.0);
        let (low, high) = self.amplitude_range();
        match self {
            Self::None => 1.0,
            Self::Rayleigh => (-(-probability).ln_1p()).sqrt(),
            Self::Rician(_) | Self::Nakagami(_) => {
                let step = (high - low) / f64::from(INTERVALS);
                let middle = |interval: u32| low + step * (f64::from(interval) + 0.5);
                let mass = |interval: u32| self.amplitude_density(middle(interval)).unwrap_or(0.0);
                let all: f64 = (0..INTERVALS).map(mass).sum();
                let mut below = 0.0;
                let reached = (0..INTERVALS).find(|&interval| {
                    below += mass(interval) / all;
                    below >= probability
                });
                reached.map_or(high, middle)
            }
        }
    }

    /// The range of `|h|`, except for a probability below the rounding of a double.
    pub fn amplitude_range(self) -> (f64, f64) {
        match self {
            Self::None => (1.0, 1.0),
            Self::Rayleigh => (0.0, 9.0),
            Self::Rician(factor) => {
                let factor = factor.get();
                let (sight, spread) = ((factor / (factor + 1.0)).sqrt(), (0.5 / (factor + 1.0)).sqrt());
                ((sight - TAIL_STDS * spread).max(0.0), sight + TAIL_STDS * spread)
            }
            Self::Nakagami(shape) => {
                let spread = 0.5 / shape.get().sqrt();
                ((1.0 - TAIL_STDS * spread).max(0.0), 1.0 + TAIL_STDS * spread)
            }
        }
    }
}

/// `e^{−z}·I₀(z)`: by its power series for small `z`, and by its asymptotic series for large `z`, whose terms decrease
/// until they are below rounding.
fn scaled_bessel(z: f64) -> f64 {
    const FAR_OUT: f64 = 30.0;
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..200 {
        let k = f64::from(k);
        term *= if z < FAR_OUT { 0.25 * z * z / (k * k) } else { (2.0 * k - 1.0).powi(2) / (8.0 * k * z) };
        sum += term;
        if term < 1e-17 * sum {
            break;
        }
    }
    if z < FAR_OUT { (-z).exp() * sum } else { sum / (2.0 * PI * z).sqrt() }
}

/// `ln Γ(m) − m·ln m + m`.
fn stirling_rest(m: f64) -> f64 {
    if m < 1e4 { libm::lgamma(m) - m * m.ln() + m } else { 0.5 * (2.0 * PI / m).ln() + 1.0 / (12.0 * m) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn densities_have_unit_mass_power_and_stated_mean() {
        let texts =
            ["rayleigh", "rician=0", "rician=4", "rician=1e4", "nakagami=0.5", "nakagami=3", "nakagami=2e4"];
        for fading in texts.map(|text| text.parse::<Fading>().unwrap()) {
            let (from, to) = fading.amplitude_range();
            let points = 20_000;
            let step = (to - from) / f64::from(points);
            let moment = |power: i32| -> f64 {
                let x = |i: i32| from + (f64::from(i) + 0.5) * step;
                (0..points).map(|i| step * x(i).powi(power) * fading.amplitude_density(x(i)).unwrap()).sum()
            };
            assert!((moment(0) - 1.0).abs() < 1e-6, "{fading}: {}", moment(0));
            assert!((moment(1) - fading.mean_amplitude()).abs() < 1e-6, "{fading}: {}", moment(1));
            assert!((moment(2) - 1.0).abs() < 1e-6, "{fading}: {}", moment(2));
        }
        assert_eq!(Fading::None.amplitude_density(1.0), None);
    }

    /// I₀(1) = 1.266065877752008, I₀(10) = 2815.716628466254.
    #[test]
    fn the_bessel_function_is_as_in_tables() {
        assert!((scaled_bessel(1.0) * 1_f64.exp() - 1.266_065_877_752_008).abs() < 1e-14);
        assert!((scaled_bessel(10.0) * 10_f64.exp() / 2_815.716_628_466_254 - 1.0).abs() < 1e-13);
        // `(1/π)∫₀^π e^{z(cos φ − 1)} dφ`: the trapezoid rule converges geometrically.
        let integral = |z: f64| {
            let points = 64 + (8.0 * z.sqrt()) as usize;
            let term = |j: usize| (z * ((PI * (j as f64 + 0.5) / points as f64).cos() - 1.0)).exp();
            (0..points).map(term).sum::<f64>() / points as f64
        };
        for z in [0.0, 1e-3, 3.0, 29.9, 30.1, 75.0, 1e4] {
            assert!((scaled_bessel(z) / integral(z) - 1.0).abs() < 1e-12, "at {z}");
        }
    }
}
