//! Block fading: one complex coefficient `h` for each client and round, constant over the round's `d` symbols.
//!
//! | law | `h` | source |
//! |---|---|---|
//! | [`Fading::None`] | `1` | a cable |
//! | [`Fading::Rayleigh`] | `CN(0, 1)` | rich scattering; the paper's experiments |
//! | [`Fading::Rician`] | `√(κ/(κ+1))·e^{jθ} + √(1/(κ+1))·CN(0, 1)` | a line of sight with `κ` times the scattered power |
//! | [`Fading::Nakagami`] | `√Gamma(m, 1/m)·e^{jθ}` | empirical; `m = 1` is Rayleigh |
//! | [`Fading::Trace`] | read from a file | measurement |
//! | [`Fading::Fixed`] | the same in every round, one for each client | whoever asks what the worst channel is |
//!
//! with `θ` uniform over the circle and `E|h|² = 1` in every law but the last two. A client's coefficient depends on the
//! seed, the trial, the round and the client alone, so that schemes can be compared on the same channels.

mod density;
mod trace;

use std::f64::consts::{PI, TAU};
use std::fmt;
use std::sync::Arc;

use num_complex::Complex64;
use rand::RngExt;
use rand_distr::{Distribution, Gamma, StandardNormal};

use crate::error::{UplinkError, require};
use crate::random::{Purpose, Stream};
use crate::round::Round;

pub use trace::Trace;

/// The law of the channel coefficients.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Fading {
    /// No fading: every coefficient is 1.
    None,
    /// Rayleigh: circular complex Gaussian of unit power.
    #[default]
    Rayleigh,
    /// Rician with the given factor `κ ≥ 0`, the line of sight's power over the scattered power (a ratio, not dB).
    Rician(f64),
    /// Nakagami with the given shape `m ≥ ½`.
    Nakagami(f64),
    /// Coefficients from a file.
    Trace(Arc<Trace>),
    /// Client `k` has coefficient `k` in every round, and clients beyond the list have its last one.
    Fixed(Arc<[Complex64]>),
}

impl Fading {
    /// `Ok` if the law's parameter is in range.
    pub fn check(&self) -> Result<(), UplinkError> {
        match *self {
            Self::None | Self::Rayleigh | Self::Trace(_) => Ok(()),
            Self::Fixed(ref coefficients) => check_fixed(coefficients),
            Self::Rician(factor) => require(
                (0.0..=1e6).contains(&factor),
                "the Rician factor",
                "between 0 and 1e6 (a ratio of powers, not dB)",
                factor,
            ),
            Self::Nakagami(shape) => {
                require((0.5..=1e6).contains(&shape), "the Nakagami shape m", "between 0.5 and 1e6", shape)
            }
        }
    }

    /// The coefficient of every client of a round, in the order of its list.
    pub fn draw(&self, round: &Round<'_>) -> Result<Vec<Complex64>, UplinkError> {
        self.check()?;
        round.clients().iter().map(|&client| self.draw_for(round, client)).collect()
    }

    fn draw_for(&self, round: &Round<'_>, client: u32) -> Result<Complex64, UplinkError> {
        let mut stream = round.stream_of(Purpose::FADING, client);
        Ok(match *self {
            Self::None => Complex64::ONE,
            Self::Rayleigh => circular_gaussian(&mut stream),
            Self::Rician(factor) => {
                let sight =
                    Complex64::from_polar((factor / (factor + 1.0)).sqrt(), uniform_phase(&mut stream));
                sight + circular_gaussian(&mut stream) * (1.0 / (factor + 1.0)).sqrt()
            }
            Self::Nakagami(shape) => {
                let power = Gamma::new(shape, 1.0 / shape).expect("checked: m ≥ ½").sample(&mut stream);
                Complex64::from_polar(power.sqrt(), uniform_phase(&mut stream))
            }
            Self::Trace(ref trace) => trace.coefficient(round.number(), client)?,
            Self::Fixed(ref coefficients) => coefficients[(client as usize).min(coefficients.len() - 1)],
        })
    }

    /// `E|h|`, which a receiver needs that knows the law and not the draw.
    pub fn mean_amplitude(&self) -> f64 {
        match *self {
            Self::None => 1.0,
            Self::Rayleigh => PI.sqrt() / 2.0,
            Self::Rician(factor) => rician_mean_amplitude(factor),
            Self::Nakagami(m) => (libm::lgamma(m + 0.5) - libm::lgamma(m)).exp() / m.sqrt(),
            Self::Trace(ref trace) => trace.mean_amplitude(),
            Self::Fixed(ref coefficients) => {
                coefficients.iter().map(|h| h.norm()).sum::<f64>() / coefficients.len() as f64
            }
        }
    }
}

impl fmt::Display for Fading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "no fading"),
            Self::Rayleigh => write!(f, "Rayleigh"),
            Self::Rician(factor) => write!(f, "Rician, factor {factor}"),
            Self::Nakagami(shape) => write!(f, "Nakagami, m = {shape}"),
            Self::Trace(trace) => write!(f, "trace of {} rounds", trace.rounds()),
            Self::Fixed(coefficients) => write!(f, "fixed, {} coefficients", coefficients.len()),
        }
    }
}

fn check_fixed(coefficients: &[Complex64]) -> Result<(), UplinkError> {
    let count = coefficients.len() as f64;
    require(count > 0.0, "the number of fixed coefficients", "at least 1", count)?;
    let sound = |h: &Complex64| h.is_finite() && h.norm() <= trace::MOST_AMPLITUDE;
    let wrong = coefficients.iter().find(|h| !sound(h)).map(|h| h.norm());
    wrong.map_or(Ok(()), |size| require(false, "the size of a fixed coefficient", "at most 1e6", size))
}

/// `CN(0, 1)`: real and imaginary part with variance ½ each.
fn circular_gaussian(stream: &mut Stream) -> Complex64 {
    let mut part = || -> f64 { StandardNormal.sample(stream) };
    let (re, im): (f64, f64) = (part(), part());
    Complex64::new(re, im) * 0.5_f64.sqrt()
}

fn uniform_phase(stream: &mut Stream) -> f64 {
    stream.random::<f64>() * TAU
}

/// `E|h| = ½√(π/(κ+1))·₁F₁(−½; 1; −κ)`, with `₁F₁(−½; 1; −κ) = e^{−κ} Σ_n (3/2)_n κⁿ/(n!)²`, all terms positive.
fn rician_mean_amplitude(factor: f64) -> f64 {
    if factor > 500.0 {
        // The next term of this expansion is below 1e-10.
        let inverse = 1.0 / factor;
        return (factor / (factor + 1.0)).sqrt() * (1.0 + inverse / 4.0 + inverse * inverse / 32.0);
    }
    let mut term = (-factor).exp();
    let mut sum = term;
    let mut n = 0.0;
    while term > sum * 1e-17 || n < factor {
        n += 1.0;
        term *= (n + 0.5) * factor / (n * n);
        sum += term;
    }
    0.5 * (PI / (factor + 1.0)).sqrt() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(law: &Fading) -> Vec<Complex64> {
        let clients: Vec<u32> = (0..200_000).collect();
        law.draw(&Round::new(3, 0, 0, &clients).unwrap()).unwrap()
    }

    #[test]
    fn every_law_has_unit_power_uniform_phase_and_the_stated_mean_amplitude() {
        let laws = [
            Fading::Rayleigh,
            Fading::Rician(0.0),
            Fading::Rician(3.0),
            Fading::Rician(80.0),
            Fading::Nakagami(0.5),
            Fading::Nakagami(4.0),
        ];
        for law in laws {
            let draws = draws(&law);
            let mean =
                |f: &dyn Fn(Complex64) -> f64| draws.iter().map(|&h| f(h)).sum::<f64>() / draws.len() as f64;
            // The largest standard error here is √2/√200000 = 0.0032, for Nakagami ½; five of them make 0.016.
            assert!((mean(&|h| h.norm_sqr()) - 1.0).abs() < 0.016, "{law}");
            assert!((mean(&|h| h.norm()) - law.mean_amplitude()).abs() < 0.008, "{law}");
            assert!(mean(&|h| h.re).abs() < 0.009 && mean(&|h| h.im).abs() < 0.009, "{law}");
            assert!(mean(&|h| h.re * h.im).abs() < 0.009, "{law}");
            assert!((mean(&|h| h.re * h.re) - 0.5).abs() < 0.012, "{law}");
        }
    }

    #[test]
    fn mean_amplitudes_meet_their_closed_forms() {
        let rayleigh = Fading::Rayleigh.mean_amplitude();
        assert!((Fading::Rician(0.0).mean_amplitude() - rayleigh).abs() < 1e-14);
        assert!((Fading::Nakagami(1.0).mean_amplitude() - rayleigh).abs() < 1e-13);
        // Half a normal: √(2/π).
        assert!((Fading::Nakagami(0.5).mean_amplitude() - (2.0 / PI).sqrt()).abs() < 1e-13);
        let [below, above] = [499.999, 500.001].map(|k| Fading::Rician(k).mean_amplitude());
        assert!((below - above).abs() < 1e-8, "series {below}, expansion {above}");
    }

    #[test]
    fn a_clients_channel_does_not_depend_on_who_else_takes_part() {
        let alone = Fading::Rayleigh.draw(&Round::new(1, 2, 3, &[7]).unwrap()).unwrap();
        let among = Fading::Rayleigh.draw(&Round::new(1, 2, 3, &[5, 6, 7]).unwrap()).unwrap();
        assert_eq!(alone[0], among[2]);
    }

    #[test]
    fn fixed_coefficients_stay_and_the_last_one_serves_the_rest() {
        let law = Fading::Fixed([Complex64::new(0.5, 1.0), Complex64::new(-2.0, 0.0)].into());
        for number in 0..3 {
            let drawn = law.draw(&Round::new(1, 0, number, &[4, 0, 1]).unwrap()).unwrap();
            assert_eq!(drawn, [(-2.0, 0.0), (0.5, 1.0), (-2.0, 0.0)].map(|(re, im)| Complex64::new(re, im)));
        }
        assert_eq!(law.mean_amplitude(), (1.25_f64.sqrt() + 2.0) / 2.0);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let wrong = [
            Fading::Fixed([].into()),
            Fading::Fixed([Complex64::new(f64::NAN, 0.0)].into()),
            Fading::Fixed([Complex64::new(1e7, 0.0)].into()),
            Fading::Rician(-0.1),
            Fading::Rician(f64::NAN),
            Fading::Nakagami(0.49),
            Fading::Nakagami(f64::INFINITY),
        ];
        for law in wrong {
            assert!(matches!(law.check(), Err(UplinkError::OutOfRange { .. })), "{law}");
        }
    }
}
