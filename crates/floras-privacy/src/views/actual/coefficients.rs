//! The distribution of a client's channel, in units of the despread noise, in cells of coefficients of about the same size.

use std::sync::Arc;

use floras_core::{ChoiceError, Fading, Modulation, PhaseError};

use crate::error::{PrivacyError, require, require_positive};
use crate::numerics::normal;
use crate::setting::require_branches;
use crate::views::actual::densities::{
    RAW_STEP, cells_of, integral_cells, normalised, real_part_density, seen_cells,
};
use crate::views::actual::used::UsedValues;

/// The distribution of a client's channel at the base station, in units of the despread noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Coefficients {
    /// `|h|/s` on the decoded branch, where `h` is real after modulation.
    pub(super) seen: Arc<[Coefficient]>,
    /// The same distribution in narrower cells, for lower bounds.
    pub(super) narrow: Arc<[Coefficient]>,
    /// Standard deviation of `h/s`, if `h` is normal with mean 0: Rayleigh fading and real modulation.
    pub(super) normal_std: Option<f64>,
    /// Number of real branches, `B`. With several branches `h` is a vector of that length, and `|h|` its norm.
    pub(super) branches: u32,
    /// The full amplitude `|h|/s`, for raw samples.
    pub(super) amplitude: Arc<[Coefficient]>,
    pub(super) used: UsedValues,
}

/// Coefficients of about the same size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Coefficient {
    pub(super) mass: f64,
    pub(super) least: f64,
    pub(super) largest: f64,
    pub(super) mean: f64,
}

/// The distribution of `|h|`, the amplitude of a complex channel coefficient.
pub(crate) enum Amplitude<'a> {
    /// The same amplitude always, as over a cable.
    Constant(f64),
    /// A density, which need not be normalised.
    Density {
        /// The range of the amplitude.
        range: (f64, f64),
        /// The density within that range.
        density: &'a dyn Fn(f64) -> f64,
    },
}

/// The distribution of the angle `θ` between a channel and the real axis of the base station's decoder, which receives `|h|·cos θ`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Angle {
    /// Always 0: phases are corrected.
    Zero,
    /// Uniform over the circle: phases are not corrected.
    Uniform,
    /// Uniform between plus and minus this angle, in radians.
    Within(f64),
    /// Normal with mean 0 and this standard deviation, in radians.
    Normal(f64),
}

impl Coefficients {
    /// The distribution under fading and a modulation; `noise_std > 0` is the standard deviation of the despread noise.
    pub fn of(fading: Fading, modulation: Modulation, noise_std: f64) -> Result<Self, PrivacyError> {
        if (fading, modulation) == (Fading::Rayleigh, Modulation::Real) {
            return Self::normal(noise_std, 0.5_f64.sqrt());
        }
        let angle = match modulation {
            // One antenna has two branches here, which `of_antennas` handles.
            Modulation::Complex => {
                let one = "real or phase-corrected; complex modulation has two branches";
                return Err(PrivacyError::Choice(ChoiceError {
                    what: "modulation of one branch",
                    allowed: one.to_owned(),
                    value: modulation.to_string(),
                }));
            }
            // A cable does not change the phase.
            Modulation::Real if fading == Fading::None => Angle::Zero,
            Modulation::Real => Angle::Uniform,
            Modulation::PhaseCorrected(PhaseError::None) => Angle::Zero,
            Modulation::PhaseCorrected(PhaseError::Uniform(half_width)) => Angle::Within(half_width.get()),
            Modulation::PhaseCorrected(PhaseError::Gaussian(std)) => Angle::Normal(std.get()),
        };
        let range = fading.amplitude_range();
        let density = |x: f64| fading.amplitude_density(x).unwrap_or(0.0);
        let amplitude = match fading {
            Fading::None => Amplitude::Constant(1.0),
            Fading::Rayleigh | Fading::Rician(_) | Fading::Nakagami(_) => {
                Amplitude::Density { range, density: &density }
            }
        };
        Self::new(noise_std, &amplitude, angle)
    }

    /// The distribution for a base station with `antennas ≥ 1` independent receive antennas. `None` without a closed form: with several
    /// branches, Rician fading, and real modulation under Nakagami fading.
    pub fn of_antennas(
        fading: Fading,
        modulation: Modulation,
        antennas: usize,
        noise_std: f64,
    ) -> Result<Option<Self>, PrivacyError> {
        let branches = modulation.branches(antennas);
        let branches = u32::try_from(branches).ok().filter(|&branches| require_branches(branches).is_ok());
        let Some(branches) = branches.filter(|_| modulation.check_antennas(antennas).is_ok()) else {
            require(false, "the number of antennas", "one that the modulation allows", antennas as f64)?;
            return Ok(None);
        };
        if branches == 1 {
            return Self::of(fading, modulation, noise_std).map(Some);
        }
        let antennas = antennas as f64;
        // Without fading every antenna receives amplitude 1. The gamma distribution of shape m has m = 1 for Rayleigh fading.
        let shape = match (fading, modulation) {
            (Fading::None, _) => {
                let all = Self::from_values(noise_std, &[(antennas.sqrt(), 1.0)])?;
                return Ok(Some(Self { branches, ..all }));
            }
            (Fading::Rayleigh, _) => 1.0,
            (Fading::Nakagami(shape), Modulation::Complex) => shape.get(),
            (Fading::Nakagami(_) | Fading::Rician(_), _) => return Ok(None),
        };
        // The sum of squares of 2mR real dimensions with variance 1/(2m) each.
        let chi = |dimensions: f64| {
            let mode = ((dimensions - 1.0) / (2.0 * shape)).max(0.0).sqrt();
            let log = move |r: f64| (dimensions - 1.0) * r.ln() - shape * r * r;
            let range = ((mode - 9.0 / shape.sqrt()).max(0.0), mode + 9.0 / shape.sqrt());
            let largest = if mode > 0.0 { log(mode) } else { 0.0 };
            (range, move |r: f64| if r > 0.0 { (log(r) - largest).exp() } else { 0.0 })
        };
        let (raw_range, raw) = chi(2.0 * shape * antennas);
        let amplitude = cells_of(noise_std, raw_range, raw, RAW_STEP)?;
        let (range, density) = match modulation {
            Modulation::Complex => chi(2.0 * shape * antennas),
            Modulation::Real | Modulation::PhaseCorrected(_) => chi(f64::from(branches)),
        };
        let [seen, narrow] = seen_cells(noise_std, range, density)?;
        let normal_std = (fading == Fading::Rayleigh).then(|| 0.5_f64.sqrt() / noise_std);
        let used = UsedValues::default();
        Ok(Some(Self { seen, narrow, normal_std, branches, amplitude, used }))
    }

    /// Number of real branches of the described receiver, `B`.
    pub fn branches(&self) -> u32 {
        self.branches
    }

    /// Whether the actual view has a bound: with one branch, and with several under Rayleigh fading.
    pub fn bounds_actual(&self) -> bool {
        self.branches == 1 || self.normal_std.is_some()
    }

    /// The distribution of `|h|·|cos θ|` in units of the despread noise.
    pub(crate) fn new(noise_std: f64, amplitude: &Amplitude<'_>, angle: Angle) -> Result<Self, PrivacyError> {
        match amplitude {
            Amplitude::Constant(size) => {
                let values: Vec<(f64, f64)> =
                    angle.cosines().into_iter().map(|(cosine, weight)| (size * cosine, weight)).collect();
                let seen = Self::from_values(noise_std, &values)?;
                let whole = Self::from_values(noise_std, &[(*size, 1.0)])?;
                Ok(Self { amplitude: whole.amplitude, ..seen })
            }
            Amplitude::Density { range, density } => {
                let (low, high) = *range;
                let [seen, narrow] = match angle {
                    Angle::Zero => return Self::from_density(noise_std, *range, density),
                    Angle::Uniform => {
                        integral_cells(noise_std, (0.0, high), |x| real_part_density(density, low, high, x))?
                    }
                    Angle::Within(_) | Angle::Normal(_) => {
                        let cosines = angle.cosines();
                        let product = |x: f64| -> f64 {
                            cosines
                                .iter()
                                .map(|&(cosine, weight)| weight * density(x / cosine) / cosine)
                                .sum()
                        };
                        integral_cells(noise_std, (0.0, high), product)?
                    }
                };
                Ok(Self {
                    seen,
                    narrow,
                    normal_std: None,
                    branches: 1,
                    amplitude: cells_of(noise_std, *range, density, RAW_STEP)?,
                    used: UsedValues::default(),
                })
            }
        }
    }

    /// From the density of `|h|` on a range, which need not be normalised. Raw samples show the same distribution.
    pub fn from_density(
        noise_std: f64,
        range: (f64, f64),
        density: impl Fn(f64) -> f64,
    ) -> Result<Self, PrivacyError> {
        let [seen, narrow] = seen_cells(noise_std, range, &density)?;
        Ok(Self {
            seen,
            narrow,
            normal_std: None,
            branches: 1,
            amplitude: cells_of(noise_std, range, &density, RAW_STEP)?,
            used: UsedValues::default(),
        })
    }

    /// `h` normal with mean 0 and this standard deviation on either branch. Rayleigh fading under real modulation has `std = √½`.
    pub fn normal(noise_std: f64, std: f64) -> Result<Self, PrivacyError> {
        require_positive("the standard deviation of the channel", std)?;
        let range = (0.0, 12.5 * std);
        let [seen, narrow] = seen_cells(noise_std, range, |h| normal::density(h / std))?;
        Ok(Self {
            seen,
            narrow,
            normal_std: Some(std / noise_std),
            branches: 1,
            amplitude: cells_of(noise_std, range, |r| r * normal::density(r / std), RAW_STEP)?,
            used: UsedValues::default(),
        })
    }

    /// Values of `h` with their weights. Raw samples show the same distribution.
    pub fn from_values(noise_std: f64, values: &[(f64, f64)]) -> Result<Self, PrivacyError> {
        require_positive("the despread noise", noise_std)?;
        for &(h, _) in values {
            require(h.is_finite(), "a channel coefficient", "finite", h)?;
        }
        let cell = |&(h, mass): &(f64, f64)| {
            let t = h.abs() / noise_std;
            Coefficient { mass, least: t, largest: t, mean: t }
        };
        let cells = normalised(values.iter().map(cell).collect())?;
        let (amplitude, narrow) = (cells.clone(), cells.clone());
        let used = UsedValues::default();
        Ok(Self { amplitude, narrow, seen: cells, normal_std: None, branches: 1, used })
    }

    /// The same distribution in a unit that is smaller by this factor.
    pub(crate) fn scaled(&self, factor: f64) -> Self {
        if factor == 1.0 {
            return self.clone();
        }
        let scale = |cells: &[Coefficient]| {
            let scaled = cells.iter().map(|cell| Coefficient {
                mass: cell.mass,
                least: factor * cell.least,
                largest: factor * cell.largest,
                mean: factor * cell.mean,
            });
            scaled.collect()
        };
        Self {
            seen: scale(&self.seen),
            narrow: scale(&self.narrow),
            normal_std: self.normal_std.map(|std| factor * std),
            branches: self.branches,
            amplitude: scale(&self.amplitude),
            used: UsedValues::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use floras_core::Receiver;

    use super::*;
    use crate::engine::distribution::{MuDistribution, Values};
    use crate::engine::sampling::Curve;
    use crate::numerics::gaussian;
    use std::f64::consts::FRAC_PI_2;

    #[test]
    fn coefficients_out_of_range_are_refused() {
        assert!(Coefficients::normal(0.0, 1.0).is_err() && Coefficients::normal(1.0, f64::NAN).is_err());
        assert!(Coefficients::from_values(1.0, &[]).is_err());
        assert!(Coefficients::from_values(1.0, &[(1.0, 1.0), (f64::INFINITY, 1.0)]).is_err());
        assert!(Coefficients::from_density(1.0, (0.0, 1.0), |_| 0.0).is_err());
        assert!(Coefficients::from_density(1.0, (0.0, 1.0), |_| f64::NAN).is_err());
        assert!(Coefficients::from_density(1.0, (0.0, 0.0), |_| 1.0).is_err());
        let channel = Coefficients::normal(1.0, 1.0).unwrap();
        assert!(channel.raw_signal(-1.0).is_err());
        assert!(channel.actual(Receiver::Paper, 2, 2, 0.0).is_err());
    }

    /// Rayleigh amplitudes seen along one axis are normal with variance ½.
    #[test]
    fn the_real_part_of_rayleigh_fading_is_normal() {
        let density = |x: f64| x * (-x * x).exp();
        let amplitude = Amplitude::Density { range: (0.0, 9.0), density: &density };
        let seen = Coefficients::new(0.1, &amplitude, Angle::Uniform).unwrap();
        let named = Coefficients::normal(0.1, 0.5_f64.sqrt()).unwrap();
        let wide = Coefficients::new(0.1, &amplitude, Angle::Normal(50.0)).unwrap();
        let half_circle = Coefficients::new(0.1, &amplitude, Angle::Within(FRAC_PI_2)).unwrap();
        for epsilon in [0.01, 0.3, 2.0] {
            let at = |channel: &Coefficients| {
                let values = channel.seen.iter().map(|cell| (0.1 * cell.mean, cell.mass));
                MuDistribution::Values(Values::new(values)).upper(epsilon)
            };
            assert!((at(&seen) / at(&named) - 1.0).abs() < 1e-6, "{epsilon}");
            assert!((at(&wide) / at(&named) - 1.0).abs() < 1e-3, "{epsilon}");
            assert!((at(&half_circle) / at(&named) - 1.0).abs() < 1e-3, "{epsilon}");
        }
    }

    /// A cable with phase errors of up to 0.5 radians: `E|cos θ| = sin(½)/½`.
    #[test]
    fn a_phase_error_weakens_a_client() {
        let cable = Coefficients::new(1.0, &Amplitude::Constant(1.0), Angle::Within(0.5)).unwrap();
        let mean: f64 = cable.seen.iter().map(|cell| cell.mean * cell.mass).sum();
        assert!((mean - 0.5_f64.sin() / 0.5).abs() < 1e-9);
        let normal = Coefficients::new(1.0, &Amplitude::Constant(1.0), Angle::Normal(0.2)).unwrap();
        let mean: f64 = normal.seen.iter().map(|cell| cell.mean * cell.mass).sum();
        assert!((mean - (-0.02_f64).exp()).abs() < 1e-9, "E cos θ = e^(−σ²/2), and cos θ is positive here");
        // An adversary with the raw samples corrects the phases.
        let raw = normal.raw_signal(2.0).unwrap();
        assert!((raw.upper(0.5) / gaussian::delta(0.5, 2.0) - 1.0).abs() < 1e-12);
    }
}
