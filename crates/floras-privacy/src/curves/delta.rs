//! `δ(ε)` of a view after all rounds, for fast evaluation at many `ε`.
//!
//! A window of composed losses ([`crate::engine::window`]) bounds `δ` from above at every `ε`, and is tight around the `ε` for which
//! it was tilted. So a few windows are composed, tilted for different `ε`, and the smallest bound counts. That takes a few
//! compositions instead of one for each `ε`.

use floras_core::View;

use crate::engine::compose::{Composition, Part, one_round_delta};
use crate::engine::distribution::{MuDistribution, Side};
use crate::engine::prepared::Resolution;
use crate::engine::sampling::{Curve, Direction};
use crate::engine::window::Composed;
use crate::error::PrivacyError;
use crate::mixed::{Bounding, Mixed};

/// Values of `ε` for which windows are tilted, relative to the largest `ε` of interest.
const TILTED_FOR: [f64; 6] = [0.0, 0.12, 0.25, 0.45, 0.7, 1.0];
/// [`TILTED_FOR`] for curves that are only plotted: fewer windows, less time.
const TILTED_FOR_PLOTS: [f64; 3] = [0.0, 0.4, 1.0];
/// A curve ends where it reaches the first of these `δ` at which a finite `ε` exists.
const SMALLEST_DELTAS: [f64; 4] = [1e-12, 1e-10, 1e-8, 1e-6];

/// An upper bound on `δ(ε)` of a view after all rounds.
///
/// ```
/// use floras_privacy::mixed::Mixed;
/// use floras_privacy::{Account, DeltaCurve, MuDistribution, Sampling, Source, View, gaussian};
///
/// let mut account = Account::new(Sampling::Everyone, 1e-5)?;
/// account.set(View::Actual, Source::of(MuDistribution::Constant(0.1)));
/// let rounds = Mixed::new(&[(&account, 100)])?;
/// let curve = DeltaCurve::new(&rounds, View::Actual)?.expect("the view has a curve");
/// assert!((curve.delta(1.0) / gaussian::delta(1.0, 1.0) - 1.0).abs() < 1e-9);
/// # Ok::<(), floras_privacy::PrivacyError>(())
/// ```
pub struct DeltaCurve<'a> {
    /// Each entry is an upper bound: the larger of a profile and of its companion, if it has one.
    bounds: Vec<(Profile<'a>, Option<Profile<'a>>)>,
    /// Beyond this `ε`, the curve is below every `δ` of interest.
    end: f64,
}

/// Accuracy of the curve.
#[derive(Clone, Copy)]
enum Precision {
    /// The accuracy of a statement.
    Full,
    /// The accuracy of a plot, for `ε` up to this value.
    Plot(f64),
}

/// The curves of all directions of a composition; the largest of them counts.
struct Profile<'a>(Vec<OfDirection<'a>>);

/// The curve of a composition in one direction.
enum OfDirection<'a> {
    /// All rounds together are one Gaussian mechanism with a random `μ`.
    MuDistribution(MuDistribution),
    /// A single round.
    OneRound { curve: &'a dyn Curve, direction: Direction, probability: f64 },
    /// Composed losses, tilted for different `ε`.
    Windows(Vec<Composed>),
}

impl<'a> DeltaCurve<'a> {
    /// The curve of a view; `None` if the view has no finite `ε` at any `δ` of interest.
    pub fn new(rounds: &Mixed<'a>, view: View) -> Result<Option<Self>, PrivacyError> {
        Self::build(rounds, view, Precision::Full)
    }

    /// A coarser bound in a fraction of the time, up to an `ε`.
    pub fn for_plot(rounds: &Mixed<'a>, view: View, end: f64) -> Result<Option<Self>, PrivacyError> {
        Self::build(rounds, view, Precision::Plot(end))
    }

    fn build(rounds: &Mixed<'a>, view: View, precision: Precision) -> Result<Option<Self>, PrivacyError> {
        let (mut bounds, mut end) = (Vec::new(), f64::INFINITY);
        for Bounding { parts, at_least } in rounds.bounding(view) {
            let of = |parts: Vec<Part<'a>>| Profile::new(&parts, rounds.delta(), precision);
            let Some((profile, profile_end)) = of(parts)? else { continue };
            let companion = match at_least.map(of).transpose()? {
                // The companion has no finite ε, and so the bound has none.
                Some(None) => continue,
                Some(Some((companion, companion_end))) => {
                    end = end.min(profile_end.max(companion_end));
                    Some(companion)
                }
                None => {
                    end = end.min(profile_end);
                    None
                }
            };
            bounds.push((profile, companion));
        }
        Ok((!bounds.is_empty()).then_some(Self { bounds, end }))
    }

    /// `δ(ε)` for `ε ≥ 0`, never too small.
    pub fn delta(&self, epsilon: f64) -> f64 {
        let of_bound = |(profile, companion): &(Profile<'_>, Option<Profile<'_>>)| {
            companion.as_ref().map_or(0.0, |companion| companion.delta(epsilon)).max(profile.delta(epsilon))
        };
        self.bounds.iter().map(of_bound).fold(1.0, f64::min)
    }

    /// The largest `ε` of interest; beyond it, `δ` is too small.
    pub fn end(&self) -> f64 {
        self.end
    }

    /// `count` equally spaced values of `ε`, from 0 to the end.
    pub fn epsilons(&self, count: usize) -> Vec<f64> {
        let last = count.max(2) - 1;
        (0..=last).map(|i| self.end * i as f64 / last as f64).collect()
    }
}

impl<'a> Profile<'a> {
    /// The profile and its end; `None` if there is no finite `ε`.
    fn new(
        parts: &[Part<'a>],
        delta: f64,
        precision: Precision,
    ) -> Result<Option<(Self, f64)>, PrivacyError> {
        let composition = Composition::of_parts(parts)?;
        let (mut profiles, mut end) = (Vec::new(), 0.0_f64);
        for &direction in composition.directions {
            let built = SMALLEST_DELTAS
                .iter()
                .copied()
                .filter(|&smallest| smallest < delta)
                .chain([delta])
                .map(|smallest| OfDirection::new(&composition, direction, smallest, precision))
                .find(|built| !matches!(built, Err(error) if error.is_no_guarantee()));
            let Some(built) = built else { return Ok(None) };
            let (profile, profile_end) = built?;
            profiles.push(profile);
            end = end.max(profile_end);
        }
        Ok(Some((Self(profiles), end)))
    }

    fn delta(&self, epsilon: f64) -> f64 {
        self.0.iter().map(|profile| profile.delta(epsilon)).fold(0.0, f64::max)
    }
}

impl<'a> OfDirection<'a> {
    fn new(
        composition: &Composition<'a>,
        direction: Direction,
        smallest: f64,
        precision: Precision,
    ) -> Result<(Self, f64), PrivacyError> {
        let single = match (composition.as_one_distribution(), &composition.parts[..]) {
            (Some(distribution), _) => Some(Self::MuDistribution(distribution)),
            (None, &[Part { curve, sampling, rounds: 1 }]) => {
                Some(Self::OneRound { curve, direction, probability: sampling.probability() })
            }
            _ => None,
        };
        if let Some(single) = single {
            let end = match precision {
                Precision::Full => composition.epsilon_upper(smallest)?,
                Precision::Plot(end) => end,
            };
            return Ok((single, end));
        }
        let prepared = composition.prepared(direction, Side::Upper, smallest)?;
        let around = |end: f64, shares: &[f64], resolution: Resolution| -> Vec<Composed> {
            shares.iter().map(|share| prepared.around_epsilon(share * end, resolution)).collect()
        };
        Ok(match precision {
            Precision::Plot(end) => (Self::Windows(around(end, &TILTED_FOR_PLOTS, Resolution::Plot)), end),
            Precision::Full => {
                let last = prepared.around_delta(smallest)?;
                let end = last.epsilon_upper(smallest)?;
                let mut windows = around(end, &TILTED_FOR, Resolution::Fine);
                windows.push(last);
                (Self::Windows(windows), end)
            }
        })
    }

    fn delta(&self, epsilon: f64) -> f64 {
        match self {
            Self::MuDistribution(distribution) => distribution.delta_upper(epsilon).min(1.0),
            Self::OneRound { curve, direction, probability } => {
                one_round_delta(*curve, *direction, *probability, Side::Upper, epsilon).min(1.0)
            }
            Self::Windows(windows) => {
                windows.iter().map(|window| window.delta_upper(epsilon)).fold(1.0, f64::min)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Account, Source};
    use crate::engine::sampling::Sampling;
    use crate::numerics::gaussian;

    fn account(distribution: MuDistribution, sampling: Sampling) -> Account {
        let mut account = Account::new(sampling, 1e-5).unwrap();
        account.set(View::Actual, Source::of(distribution));
        account
    }

    /// `Values` prevent the engine from using the closed form.
    fn certain(mu: f64) -> MuDistribution {
        MuDistribution::Values(crate::engine::distribution::Values::new([(mu, 1.0)]))
    }

    #[test]
    fn windows_agree_with_the_gaussian_curve() {
        let account = account(certain(0.1), Sampling::Everyone);
        let rounds = Mixed::new(&[(&account, 400)]).unwrap();
        let curve = DeltaCurve::new(&rounds, View::Actual).unwrap().unwrap();
        let plot = DeltaCurve::for_plot(&rounds, View::Actual, 9.0).unwrap().unwrap();
        assert!(curve.delta(curve.end()) <= 1e-12);
        for epsilon in curve.epsilons(50) {
            let exact = gaussian::delta(epsilon, 2.0);
            let ratio = curve.delta(epsilon) / exact;
            assert!((1.0 - 1e-9..1.0 + 1e-4).contains(&ratio), "at {epsilon}: {ratio}");
            if exact > 1e-6 {
                let ratio = plot.delta(epsilon) / exact;
                assert!((1.0 - 1e-9..1.02).contains(&ratio), "plot at {epsilon}: {ratio}");
            }
        }
    }

    #[test]
    fn the_curve_agrees_with_single_evaluations() {
        for sampling in [Sampling::ReplaceOne(0.1), Sampling::AddRemove(0.1), Sampling::Known(0.1)] {
            let account = account(MuDistribution::HalfNormal { scale: 0.3 }, sampling);
            let rounds = Mixed::new(&[(&account, 30)]).unwrap();
            let curve = DeltaCurve::new(&rounds, View::Actual).unwrap().unwrap();
            for epsilon in [0.0, 0.05, 0.3, 1.0, 2.0] {
                let single = rounds.delta_at(View::Actual, epsilon).unwrap().unwrap();
                let ratio = curve.delta(epsilon) / single;
                assert!((ratio - 1.0).abs() < 2e-3, "{sampling:?} at {epsilon}: {ratio}");
            }
        }
    }
}
