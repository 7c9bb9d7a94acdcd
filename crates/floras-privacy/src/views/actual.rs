//! The actual channel: the leakage of the base station's own decoder, averaged over a distribution of fading.
//!
//! Client `k` has the coefficient `t = h_k/s`, the pilot adds `e`, and with the divisor `u = u(t + e)` ([`crate::views::pilot`])
//!
//! ```text
//! μ_k = Δ·|t|·g,     g = 1/√(1 + u²·(ν_γ² + ν_used²)),     ν_used² = Σ_{j ≠ k used} w(t_j + e_j)²
//! ```
//!
//! all in units of `s`. No client is dropped. If a client fades (`t + e → 0`), the paper's receiver amplifies it together with the noise of
//! its own sequence, and `μ_k → Δ·|t|` for any `γ`.
//!
//! A base station that stores its raw samples despreads every sequence separately, and the only noise is that of the channel. Its samples
//! are complex, so it has the whole amplitude for any modulation: `μ_k = Δ·|h|/s`.
//!
//! # How the distribution of `μ` is bounded
//! Coefficients are in cells of `ln t`, each with its mass and mean. For each cell the divisor `u` and the noise `ν` are in bins whose
//! logarithms add ([`crate::views::gains`]). Every step keeps a range and a mean that bound the true ones, so [`crate::Cells`] bounds the
//! curve. No integration rule has to resolve the transition of `δ_G`.
//!
//! # Several branches
//! Under Rayleigh fading with `B` real branches, the channel is a vector of `B` independent normal numbers, `t = ‖h‖/s`. A client's own
//! share is bounded by that of one branch, as in [`crate::views::any_channel`]. The estimate of another client has the length of `B` normal
//! numbers of variance `1 + E[h²]/s²`, so its noise is exact. There is no lower bound, and no bound at all under other fading. Raw samples
//! show `‖h‖` over both branches of all antennas.
//!
//! # The lower bound
//! Noise and divisors are rounded up. One distribution of the estimate represents all coefficients of a cell `t₀ ≤ t ≤ t₁` with the mean
//! `m`:
//!
//! 1. *For faint ones*, `φ(τ − t) + φ(τ + t) = 2φ(τ)·e^{−t²/2}·cosh(tτ) ≥ 2φ(τ)·e^{−t₁²/2}`.
//! 2. *Given the estimate* `τ`, by Jensen's inequality for `ln φ`, `E_t[φ(τ − t)] ≥ φ(τ − m)·e^{−V/2}` with `V = (m − t₀)(t₁ − m)`, which
//!    is at least the variance of `t`. The mean of `t` under these weights moves by their tilt `|τ − m|` times a variance of at most
//!    `(t₁ − t₀)²/4`.
//! 3. *Given the pilot's noise* `e`, for strong ones, `t·g(t + e)` is between `t/m` and `(1 + e/m)/(1 + e/t)` times `m·g(m + e)`: from 1
//!    on, `u(τ)` rises and `u(τ)/τ` falls.

use std::f64::consts::{FRAC_PI_2, PI};
use std::sync::{Arc, Mutex, PoisonError};

use floras_core::{ChoiceError, Fading, Modulation, PhaseError, Receiver};

use crate::account::Source;
use crate::engine::distribution::{COARSE_CELL, CellsBuilder, MuDistribution, Side};
use crate::error::{PrivacyError, require, require_positive};
use crate::numerics::normal;
use crate::numerics::parallel::in_parallel;
use crate::numerics::quadrature::{narrow_panels, short_panel};
use crate::numerics::table::Smooth;
use crate::setting::{Setting, require_branches};
use crate::views::DetailSource;
use crate::views::estimates;
use crate::views::gains::{self, LogBins, STEP};
use crate::views::noise::{Noise, Term};
use crate::views::pilot::{self, BEYOND_REACH, REACH};
use crate::views::receiver::{
    has_limit, is_monotone, noise_of_unused, term_of_branches, unused_term, with_bounded_weights,
    with_growing_divisor,
};

/// Coefficients below this value count as equal to it.
const WEAKEST: f64 = 1e-5;
/// Used sequences of the paper's receiver count as if their weights had this bound. Their noise is then smaller than the true one.
fn bounded() -> Receiver {
    Receiver::clipped(0.05).expect("0.05 is in range")
}
/// Ratio of successive panel ends of the estimate, and width of the coefficient's cells, for the noise of used sequences.
const USED_RATIO: f64 = 1.002;
const USED_STEP: f64 = 0.02;

/// The assumption of an average over the channels.
pub(super) const ONE_DISTRIBUTION: &str =
    "the channels of all clients have one distribution, drawn independently for every client and round";

/// The view of a federation.
pub(super) fn view(setting: &Setting) -> Result<(Source, DetailSource), PrivacyError> {
    if setting.channel.as_ref().is_some_and(|channel| !channel.bounds_actual()) {
        let reason = "with several branches there is a bound for Rayleigh fading only".to_owned();
        return Ok((Source::Nothing(reason), DetailSource::Absent));
    }
    let source = setting.decoded(|decoder| {
        setting.averaged(|channel| {
            let channel = channel.scaled(decoder.channel_scale);
            channel.actual(decoder.receiver, setting.per_round, decoder.unused, decoder.sensitivity)
        })
    })?;
    Ok((source.assuming([ONE_DISTRIBUTION]), DetailSource::Absent))
}

/// The distribution of a client's channel at the base station, in units of the despread noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Coefficients {
    /// `|h|/s` on the decoded branch, where `h` is real after modulation.
    seen: Arc<[Coefficient]>,
    /// The same distribution in narrower cells, for lower bounds.
    narrow: Arc<[Coefficient]>,
    /// Standard deviation of `h/s`, if `h` is normal with mean 0: Rayleigh fading and real modulation.
    normal_std: Option<f64>,
    /// Number of real branches, `B`. With several branches `h` is a vector of that length, and `|h|` its norm.
    branches: u32,
    /// The full amplitude `|h|/s`, for raw samples.
    amplitude: Arc<[Coefficient]>,
    used: UsedValues,
}

/// Contributions of used sequences to `ν²`, for the receivers of recent calls; the steps of a calibration repeat them.
#[derive(Clone, Debug, Default)]
struct UsedValues(Arc<Mutex<Vec<UsedValue>>>);

type UsedValue = ((Receiver, Side), Arc<[(f64, f64)]>);

impl PartialEq for UsedValues {
    /// Always equal, because the values follow from the coefficients.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl UsedValues {
    /// Returns a stored value, or computes it; the last few values are stored.
    fn get_or_compute(
        &self,
        key: (Receiver, Side),
        compute: impl FnOnce() -> Vec<(f64, f64)>,
    ) -> Arc<[(f64, f64)]> {
        const KEPT: usize = 4;
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, values)) = known().iter().find(|(asked, _)| *asked == key) {
            return values.clone();
        }
        let values: Arc<[(f64, f64)]> = compute().into();
        let mut known = known();
        known.truncate(KEPT - 1);
        known.insert(0, (key, values.clone()));
        values
    }
}

/// Coefficients of about the same size.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Coefficient {
    mass: f64,
    least: f64,
    largest: f64,
    mean: f64,
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

    /// The distribution of `μ` of the whole decoder for one of `per_round` clients, with `unused` unused sequences.
    pub fn actual(
        &self,
        receiver: Receiver,
        per_round: u64,
        unused: u64,
        sensitivity: f64,
    ) -> Result<MuDistribution, PrivacyError> {
        require_positive("the sensitivity", sensitivity)?;
        if self.branches > 1 || matches!(receiver, Receiver::Regularised(_)) {
            return self.actual_bound(receiver, per_round, unused, sensitivity);
        }
        let others = self.other_noise(receiver, per_round.saturating_sub(1), unused, Side::Upper);
        let (cells, small) = self.cells_above(receiver, &others, sensitivity);
        let channel = self.clone();
        Ok(cells.build_above(move || {
            let others = channel.other_noise(receiver, per_round.saturating_sub(1), unused, Side::Lower);
            channel.cells_below(receiver, &others, small, sensitivity)
        }))
    }

    /// An upper bound only: a client's own weight is replaced by that of one branch with a growing divisor.
    fn actual_bound(
        &self,
        receiver: Receiver,
        per_round: u64,
        unused: u64,
        sensitivity: f64,
    ) -> Result<MuDistribution, PrivacyError> {
        let count = per_round.saturating_sub(1);
        let others = match self.normal_std {
            Some(std) => {
                let scale = (1.0 + std * std).sqrt();
                Noise::of_sum(
                    &[
                        term_of_branches(receiver, self.branches, 1.0, unused),
                        term_of_branches(receiver, self.branches, scale, count),
                    ],
                    Side::Upper,
                )
            }
            None if self.branches == 1 => self.other_noise(receiver, count, unused, Side::Upper),
            None => {
                let least = "1, or Rayleigh fading, for a bound of the actual view";
                require(false, "the number of branches", least, self.branches.into())?;
                Noise::unlimited()
            }
        };
        let growing = with_growing_divisor(receiver);
        Ok(self.cells_above(growing, &others, sensitivity).0.build())
    }

    /// The cells of the upper bound, with the noise of the others rounded down, and the size below which estimates count as equal.
    fn cells_above(&self, receiver: Receiver, others: &Noise, sensitivity: f64) -> (CellsBuilder, f64) {
        let largest = self.seen.iter().map(|cell| sensitivity * cell.largest).fold(0.0, f64::max);
        let mut cells = CellsBuilder::new(largest, COARSE_CELL, Side::Upper);
        cells.add_infinite(BEYOND_REACH + others.none);
        let step = gains::step(receiver);
        let small = pilot::small_estimate(receiver, others);
        let noise = LogBins::of_noise(others, step, Side::Upper);
        let gains =
            |t: f64| pilot::divisors(receiver, t, small, step, Side::Upper).gains(&noise, Side::Upper);
        // The density of an estimate's size for coefficient t is that for 0 times e^{−t²/2}·cosh(tτ). For all coefficients below a small
        // one, it is at most e^{t²/2} times that of the small one.
        let faint = gains(FAINT);
        let groups: Vec<Coefficient> =
            grouped(&self.seen, |t| if t < FAINT { FAINT_STEP } else { step }).collect();
        let parts = in_parallel(PARTS, |part| {
            let mut cells = CellsBuilder::new(largest, COARSE_CELL, Side::Upper);
            for group in groups.iter().skip(part).step_by(PARTS.len()) {
                let own = (group.largest > FAINT).then(|| gains(group.mean));
                let factor = if own.is_some() { 1.0 } else { (FAINT * FAINT / 2.0).exp() };
                for &(mass, mean, (low, high)) in own.as_ref().unwrap_or(&faint) {
                    let [mean, low, high] = [group.mean * mean, group.least * low, group.largest * high]
                        .map(|mu| sensitivity * mu);
                    cells.add_range(mean, (low, high), factor * group.mass * mass);
                }
            }
            cells
        });
        parts.iter().for_each(|part| cells.add_all(part));
        (cells, small)
    }

    /// The cells of the lower bound, with the noise of the others rounded up.
    fn cells_below(&self, receiver: Receiver, others: &Noise, small: f64, sensitivity: f64) -> CellsBuilder {
        let largest = self.narrow.iter().map(|cell| sensitivity * cell.largest).fold(0.0, f64::max);
        let mut cells = CellsBuilder::new(largest, COARSE_CELL, Side::Lower);
        cells.add_exception(others.none);
        if others.cells().is_empty() {
            return cells;
        }
        let step = gains::step(Receiver::Paper);
        let noise = LogBins::of_noise(others, step, Side::Lower);
        let gains =
            |t: f64| pilot::divisors(receiver, t, small, step, Side::Lower).gains(&noise, Side::Lower);
        let faint = gains(0.0);
        // A coefficient that may be 0 counts as 0.
        let groups: Vec<Coefficient> =
            narrow_groups(&self.narrow).filter(|group| group.least > 0.0).collect();
        let parts = in_parallel(PARTS, |part| {
            let mut cells = CellsBuilder::new(largest, COARSE_CELL, Side::Lower);
            for group in groups.iter().skip(part).step_by(PARTS.len()) {
                let shared = Shared::of(group);
                let own = (shared.channel > 0.0).then(|| gains(shared.channel));
                for &(mass, mean, (low, high)) in own.as_ref().unwrap_or(&faint) {
                    let [mean, low, high] = [shared.mean * mean, shared.least * low, shared.largest * high]
                        .map(|mu| sensitivity * mu);
                    cells.add_range(mean, (low, high), shared.mass * mass);
                }
            }
            cells
        });
        parts.iter().for_each(|part| cells.add_all(part));
        cells
    }

    /// `E[w(t + e)²]`: the mean contribution of a used sequence to `ν²`, for bounded weights.
    pub fn mean_square_weight(&self, receiver: Receiver) -> f64 {
        if let (Some(std), true) = (self.normal_std, self.branches > 1) {
            return term_of_branches(receiver, self.branches, (1.0 + std * std).sqrt(), 1).mean();
        }
        self.used_values(receiver, Side::Upper).iter().map(|&(value, mass)| value * mass).sum()
    }

    /// The distribution of `μ = Δ·|h|/s` for a base station that stores its raw samples.
    pub fn raw_signal(&self, sensitivity: f64) -> Result<MuDistribution, PrivacyError> {
        require_positive("the sensitivity", sensitivity)?;
        let largest = self.amplitude.iter().map(|cell| sensitivity * cell.largest).fold(0.0, f64::max);
        let amplitude = self.amplitude.clone();
        let cells_of = move |side: Side| {
            let mut cells = CellsBuilder::new(largest, RAW_STEP, side);
            // A coefficient that may be 0 counts as 0 in a lower bound.
            for cell in amplitude.iter().filter(|cell| side == Side::Upper || cell.least > 0.0) {
                let [mean, least, largest] = [cell.mean, cell.least, cell.largest].map(|t| sensitivity * t);
                cells.add_range(mean, (least, largest), cell.mass);
            }
            cells
        };
        let mut above = cells_of(Side::Upper);
        above.add_infinite(BEYOND_REACH);
        Ok(above.build_above(move || cells_of(Side::Lower)))
    }

    /// The distribution of `ν²` without a client's own share: unused sequences, and `others` used ones. Rounded down for an upper bound, up
    /// for a lower one.
    fn other_noise(&self, receiver: Receiver, others: u64, unused: u64, side: Side) -> Noise {
        match (has_limit(receiver), self.normal_std) {
            (false, Some(std)) => {
                // Estimates of used sequences are normal too, and the sum of all 1/ĥ² is one Lévy number.
                let scale = unused as f64 + others as f64 / (1.0 + std * std).sqrt();
                if scale == 0.0 { Noise::of_sum(&[], side) } else { Noise::cauchy(scale, side) }
            }
            // The amount by which the true noise of used sequences is larger is unknown.
            (false, None) if others > 0 && side == Side::Lower => Noise::unlimited(),
            (false, None) => {
                let used = Noise::of_sum(&[self.used_term(bounded(), others, side)], side);
                if unused == 0 { used } else { noise_of_unused(receiver, unused, side).plus(&used) }
            }
            (true, _) if side == Side::Lower && with_bounded_weights(receiver) != receiver => {
                Noise::unlimited()
            }
            (true, _) => {
                Noise::of_sum(&[unused_term(receiver, unused), self.used_term(receiver, others, side)], side)
            }
        }
    }

    /// Values of `w(t + e)²` of another client with their probabilities, rounded down or, for a lower bound, up.
    fn used_values(&self, receiver: Receiver, side: Side) -> Arc<[(f64, f64)]> {
        self.used.get_or_compute((receiver, side), || self.compute_used_values(receiver, side))
    }

    fn compute_used_values(&self, receiver: Receiver, side: Side) -> Vec<(f64, f64)> {
        let most = self.seen.iter().map(|cell| cell.largest).fold(0.0, f64::max);
        let receiver = with_bounded_weights(receiver);
        let mut ends = vec![0.0, receiver.level().unwrap_or(1e-3)];
        while let Some(&last) = ends.last()
            && last < most + REACH
        {
            ends.push(last * USED_RATIO);
        }
        let channels: Vec<(f64, f64)> = match side {
            Side::Upper => groups(&self.seen, USED_STEP).map(|group| (group.mean, group.mass)).collect(),
            Side::Lower => {
                let channels = narrow_groups(&self.narrow).map(|group| {
                    // A stronger channel has a larger estimate, and so a smaller weight.
                    let shared = Shared::of(&group);
                    (if group.least >= STRONG { group.least } else { shared.channel }, shared.mass)
                });
                channels.collect()
            }
        };
        let masses = estimates::of_panels(&ends, channels);
        let value = |panel: usize| {
            let (from, to) = (ends[panel], ends[panel + 1]);
            let [one, other] = [from, to].map(|size| receiver.weight(size.max(1e-100), 1.0));
            let weight = match side {
                Side::Upper => one.min(other),
                // MMSE weights are largest at 1.
                Side::Lower if !is_monotone(receiver) && from < 1.0 && to > 1.0 => receiver.weight(1.0, 1.0),
                Side::Lower => one.max(other),
            };
            weight.powi(2)
        };
        masses
            .iter()
            .enumerate()
            .map(|(panel, &mass)| (value(panel), mass))
            .filter(|&(_, mass)| mass > 0.0)
            .collect()
    }

    fn used_term(&self, receiver: Receiver, count: u64, side: Side) -> Term {
        let mut values = self.used_values(receiver, side).to_vec();
        // Missing probability counts as no noise, or, for a lower bound, as the maximum noise.
        let missing = match side {
            Side::Upper => 0.0,
            Side::Lower => receiver.weight(receiver.level().unwrap_or(1.0), 1.0).powi(2),
        };
        let total: f64 = values.iter().map(|&(_, mass)| mass).sum();
        values.push((missing, (1.0 - total).max(0.0)));
        Term::discrete(count, values)
    }
}

/// Coefficients below this value have nearly the same estimates.
const FAINT: f64 = 0.05;
/// Parts of the coefficients that are computed at the same time: every fourth cell.
const PARTS: [usize; 4] = [0, 1, 2, 3];
/// Width of their cells in `ln t`.
const FAINT_STEP: f64 = 5.0 * STEP;
/// From this coefficient on, the pilot's noise is relatively small, and no estimate is below 1.
const STRONG: f64 = 20.0;
/// Width of a cell in `ln t` and in `ln μ` for raw samples. Their `ε` is large, and its transition relatively sharp.
const RAW_STEP: f64 = 0.003;

/// Coefficients `t₀ ≤ t ≤ t₁` that share one distribution of the estimate, for a lower bound.
struct Shared {
    /// The channel whose estimate is used.
    channel: f64,
    mass: f64,
    /// The value used for `t` as a factor of that channel's gains.
    least: f64,
    largest: f64,
    mean: f64,
}

impl Shared {
    fn of(group: &Coefficient) -> Self {
        let Coefficient { mass, least, largest, mean } = *group;
        if largest <= FAINT || least == 0.0 {
            return Self {
                channel: 0.0,
                mass: mass * (-0.5 * largest * largest).exp(),
                least,
                largest,
                mean,
            };
        }
        if least < STRONG {
            let half = 0.5 * (largest - least);
            let most = (largest - mean).max(mean - least);
            // The tilt, and a factor between e^{−most²/2} and 1.
            let moved = REACH * half * half + most * (0.5 * most * most).exp_m1();
            let lost = 0.5 * (mean - least) * (largest - mean);
            return Self {
                channel: mean,
                mass: mass * (-lost.max(0.0)).exp(),
                least,
                largest,
                mean: (mean - moved).max(least),
            };
        }
        let ratio = |t: f64, e: f64| (1.0 + e / mean) / (1.0 + e / t);
        let low = (least / mean).min(ratio(largest, -REACH)).min(ratio(least, REACH));
        let high = (largest / mean).max(ratio(least, -REACH)).max(ratio(largest, REACH));
        Self { channel: mean, mass, least: low * mean, largest: high * mean, mean: low * mean }
    }
}

/// Coefficients in cells whose width suits [`Shared`]: narrower for stronger coefficients.
fn narrow_groups(coefficients: &[Coefficient]) -> impl Iterator<Item = Coefficient> {
    grouped(coefficients, |t| match t {
        _ if t < FAINT => FAINT_STEP,
        _ if t < 0.5 => 2.0 * STEP,
        _ if t < 2.0 => STEP,
        _ => NARROW,
    })
}

/// Width of a cell in `ln t` for lower bounds.
const NARROW: f64 = 0.5 * STEP;

/// The cells of a density of `|h|`, and narrower ones.
fn seen_cells(
    noise_std: f64,
    range: (f64, f64),
    density: impl Fn(f64) -> f64,
) -> Result<[Arc<[Coefficient]>; 2], PrivacyError> {
    Ok([cells_of(noise_std, range, &density, STEP)?, cells_of(noise_std, range, &density, NARROW)?])
}

/// The same for a density that is itself an integral. It is interpolated to a relative 1e-11, less than the slack of every bound.
fn integral_cells(
    noise_std: f64,
    range: (f64, f64),
    density: impl Fn(f64) -> f64,
) -> Result<[Arc<[Coefficient]>; 2], PrivacyError> {
    let from = (WEAKEST * noise_std).max(range.0).ln();
    let smooth = Smooth::new(|x| density(x.exp()), from, range.1.ln(), 0.5, 1e-11);
    let interpolated = |x: f64| smooth.value(x.ln()).unwrap_or_else(|| density(x));
    seen_cells(noise_std, range, interpolated)
}

/// The cells of a density of `|h|`, in units of the despread noise, with this width in `ln t`.
fn cells_of(
    noise_std: f64,
    range: (f64, f64),
    density: impl Fn(f64) -> f64,
    width: f64,
) -> Result<Arc<[Coefficient]>, PrivacyError> {
    require_positive("the despread noise", noise_std)?;
    require_positive("the largest channel coefficient", range.1)?;
    let (from, to) = (range.0.max(0.0) / noise_std, range.1 / noise_std);
    let at = |t: f64| density(t * noise_std);
    let mut cells = Vec::new();
    if from < WEAKEST {
        // Panels that halve towards 0, where a density may be unbounded.
        let ends: Vec<f64> = (0..120).rev().map(|power| WEAKEST * 0.5_f64.powi(power)).collect();
        let mass: f64 = narrow_panels(&ends, f64::INFINITY).into_iter().map(|(t, w)| w * at(t)).sum();
        cells.push(Coefficient { mass, least: 0.0, largest: WEAKEST, mean: WEAKEST });
    }
    // Cells end at integer multiples of the step, and are at most a fixed share of the range.
    let parts = (width * to / (0.02 * (to - from))).ceil().max(1.0);
    let step = width / parts;
    let mut number = (from.max(WEAKEST).ln() / step).floor();
    loop {
        let (least, largest) = ((number * step).exp(), ((number + 1.0) * step).exp());
        if least >= to {
            break;
        }
        let nodes = short_panel(least.max(from), largest.min(to));
        let (mass, first) = nodes.fold((0.0, 0.0), |(mass, first), (t, weight)| {
            let part = weight * at(t);
            (mass + part, first + part * t)
        });
        if mass > 0.0 || mass.is_nan() {
            cells.push(Coefficient { mass, least, largest, mean: first / mass });
        }
        number += 1.0;
    }
    normalised(cells)
}

fn normalised(mut cells: Vec<Coefficient>) -> Result<Arc<[Coefficient]>, PrivacyError> {
    let total: f64 = cells.iter().map(|cell| cell.mass).sum();
    let holds = total.is_finite() && total > 0.0;
    require(holds, "the density of the channel", "finite and not zero everywhere", total)?;
    cells.iter_mut().for_each(|cell| cell.mass /= total);
    cells.retain(|cell| cell.mass > 0.0);
    Ok(cells.into())
}

/// Coefficients in cells of this width in `ln t`.
fn groups(coefficients: &[Coefficient], width: f64) -> impl Iterator<Item = Coefficient> {
    grouped(coefficients, move |_| width)
}

/// Coefficients in cells of a width in `ln t` that depends on them.
fn grouped(coefficients: &[Coefficient], width: impl Fn(f64) -> f64) -> impl Iterator<Item = Coefficient> {
    let number = move |cell: &Coefficient| {
        let width = width(cell.mean);
        (width, (cell.mean.ln() / width).floor())
    };
    let same = move |a: &Coefficient, b: &Coefficient| number(a) == number(b);
    coefficients.chunk_by(same).map(|cells| {
        let mass: f64 = cells.iter().map(|cell| cell.mass).sum();
        let first: f64 = cells.iter().map(|cell| cell.mass * cell.mean).sum();
        let least = cells.iter().map(|cell| cell.least).fold(f64::INFINITY, f64::min);
        let largest = cells.iter().map(|cell| cell.largest).fold(0.0, f64::max);
        Coefficient { mass, least, largest, mean: first / mass }
    })
}

impl Angle {
    /// Values of `|cos θ|` with their weights, finer near 0.
    fn cosines(self) -> Vec<(f64, f64)> {
        let density: Box<dyn Fn(f64) -> f64> = match self {
            Self::Zero | Self::Within(0.0) | Self::Normal(0.0) => return vec![(1.0, 1.0)],
            Self::Uniform | Self::Within(_) => Box::new(|_| 1.0),
            Self::Normal(std) => Box::new(move |angle| normal::density(angle / std)),
        };
        let most = match self {
            Self::Within(half_width) => half_width,
            // Wider distributions are uniform to the accuracy of the account.
            Self::Normal(std) if std < 1.5 => 8.0 * std,
            _ => FRAC_PI_2,
        };
        let wide = !matches!(self, Self::Within(_)) && most == FRAC_PI_2;
        let mut points = vec![0.0, most];
        for quarter in 0..(most / PI).ceil() as usize + 1 {
            let zero = FRAC_PI_2 + quarter as f64 * PI;
            let near = (0..12).flat_map(|power| [zero - 0.5_f64.powi(power), zero + 0.5_f64.powi(power)]);
            points.extend(near.chain([zero]));
        }
        points.retain(|&point| (0.0..=most).contains(&point));
        points.sort_by(f64::total_cmp);
        points.dedup();
        let nodes = narrow_panels(&points, 0.5);
        let weights = nodes.iter().map(|&(angle, weight)| weight * if wide { 1.0 } else { density(angle) });
        let total: f64 = weights.clone().sum();
        nodes.iter().zip(weights).map(|(&(angle, _), weight)| (angle.cos().abs(), weight / total)).collect()
    }
}

/// The density of `r·|cos θ|` with a uniform angle: `(2/π)∫ f(r)/√(r² − x²) dr`, with `r = x·cosh v` equal to `(2/π)∫ f(x·cosh v) dv`,
/// whose integrand has no singularity.
fn real_part_density(density: &dyn Fn(f64) -> f64, low: f64, high: f64, x: f64) -> f64 {
    let angle = |radius: f64| (radius / x).max(1.0).acosh();
    let (from, to) = (angle(low), angle(high));
    if x <= 0.0 || to <= from {
        return 0.0;
    }
    // f(x·cosh v) falls like a double exponential at its end, and like a power of e^v before.
    narrow_panels(&[from, to], 0.35).into_iter().map(|(v, weight)| weight * density(x * v.cosh())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::distribution::Values;
    use crate::engine::sampling::Curve;
    use crate::numerics::gaussian;

    /// Without its own noise share, a client of the paper's decoder has Cauchy noise of scale `γ + (K − 1)·s/√(½ + s²)`. With its own share
    /// the scale is `γ_eff = γ + K·s/√(½ + s²)`. A quantile of `(scale/G)²` determines the scale.
    #[test]
    fn the_noise_of_the_whole_decoder_is_cauchy() {
        let s = 0.3_f64;
        let channel = Coefficients::normal(s, 0.5_f64.sqrt()).unwrap();
        let scale = 7.0 + 19.0 * s / (0.5 + s * s).sqrt();
        let noise = channel.other_noise(Receiver::Paper, 19, 7, Side::Upper);
        // P(ν² ≤ v) = P(|G| ≥ scale/√v).
        for share in [0.9, 0.5, 0.1] {
            let value = noise.quantile(share);
            let exact = libm::erfc(scale / value.sqrt() * std::f64::consts::FRAC_1_SQRT_2);
            assert!((exact / share - 1.0).abs() < 0.15, "{share}: {value}, {exact}");
        }
    }

    /// Used sequences whose distribution is not normal count with less than their true noise.
    #[test]
    fn other_clients_never_make_a_curve_larger() {
        for receiver in [Receiver::Paper, Receiver::Mmse, Receiver::clipped(1.0).unwrap()] {
            let channel = Coefficients::from_values(0.05, &[(0.3, 1.0), (0.8, 1.0), (1.1, 1.0)]).unwrap();
            let at = |clients: u64| channel.actual(receiver, clients, 10, 2.0).unwrap().upper(1.0);
            let (alone, many) = (at(1), at(200));
            assert!(many < alone, "{receiver:?}: {many} and {alone}");
        }
    }

    #[test]
    fn a_raw_signal_has_only_channel_noise() {
        let channel = Coefficients::from_values(0.5, &[(1.0, 1.0), (-2.0, 1.0)]).unwrap();
        let distribution = channel.raw_signal(2.0).unwrap();
        for epsilon in [0.1, 1.0, 10.0] {
            let exact = 0.5 * (gaussian::delta(epsilon, 4.0) + gaussian::delta(epsilon, 8.0));
            assert!((distribution.upper(epsilon) / exact - 1.0).abs() < 1e-12);
            // No receiver can show more than its samples do.
            let actual = channel.actual(Receiver::clipped(1.0).unwrap(), 3, 5, 2.0).unwrap();
            assert!(actual.lower(epsilon) <= distribution.upper(epsilon));
        }
        // Without other sequences there is no other noise.
        let alone = channel.actual(Receiver::Paper, 1, 0, 2.0).unwrap();
        assert!((alone.upper(1.0) / distribution.upper(1.0) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn a_normal_channel_agrees_with_its_density() {
        let std = 0.5_f64.sqrt();
        let named = Coefficients::normal(0.1, std).unwrap();
        let density = Coefficients::from_density(0.1, (0.0, 12.0 * std), |h| (-h * h).exp()).unwrap();
        let at = |channel: &Coefficients| {
            let values = channel.seen.iter().map(|cell| (0.1 * cell.mean, cell.mass));
            MuDistribution::Values(Values::new(values)).upper(0.3)
        };
        assert!((at(&named) / at(&density) - 1.0).abs() < 1e-9);
        // Half-normal: Δ|h|/s has the distribution of a·|G|.
        let half_normal = MuDistribution::HalfNormal { scale: 0.1 * std / 0.1 };
        assert!((at(&named) / half_normal.upper(0.3) - 1.0).abs() < 1e-4);
        // Raw samples show both branches: a Rayleigh amplitude, whose square is exponential.
        let raw = named.raw_signal(0.1).unwrap();
        let nodes = crate::numerics::quadrature::equal_panels(0.0, 9.0, 400);
        let exact: f64 =
            nodes.iter().map(|&(r, w)| w * 2.0 * r * (-r * r).exp() * gaussian::delta(0.3, r)).sum();
        assert!(raw.lower(0.3) <= exact && exact <= raw.upper(0.3), "{exact}");
        assert!(raw.upper(0.3) < 1.001 * raw.lower(0.3));
    }

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
