//! The complete privacy guarantee of a view, for plots: `δ(ε)` and the trade-off function after all rounds of a run.

use floras_core::View;
use floras_privacy::mixed::Mixed;
use floras_privacy::{DeltaCurve, PrivacyError, TradeOff, Views};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Points of `δ(ε)` and of the trade-off function.
const POINTS: [usize; 2] = [41, 101];
/// Curves reach beyond the stated `ε` by this factor.
const BEYOND: f64 = 1.5;
/// Maximum `ε` of a view with curves. With a larger one, they are not informative.
const MAX_EPSILON: f64 = 100.0;

/// The curves of a view. Both are bounds: `δ` is never too small, the type II error never too large.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PlottedCurves {
    /// Name of the view.
    pub view: String,
    /// `ε`, ascending from 0.
    pub epsilon: Vec<f64>,
    /// `δ(ε)` for each of them.
    pub delta: Vec<f64>,
    /// Type I errors `α` of a test that decides between two neighbouring populations, ascending from 0 to 1.
    pub type_one_error: Vec<f64>,
    /// The smallest type II error `f(α)` for each of them.
    pub type_two_error: Vec<f64>,
}

/// The curves of all views with an `ε` that is not too large.
pub(crate) fn curves(rounds: &Mixed<'_>, views: &Views) -> Result<Vec<PlottedCurves>, PrivacyError> {
    let stated =
        |view: View| Some((view, views.get(view)?.epsilon.filter(|&epsilon| epsilon <= MAX_EPSILON)?));
    let wanted: Vec<(View, f64)> = View::ALL.into_iter().filter_map(stated).collect();
    let of_view = |&(view, epsilon): &(View, f64)| {
        let curve = DeltaCurve::for_plot(rounds, view, BEYOND * epsilon.max(0.1))?;
        Ok(curve.map(|curve| plotted(view, &curve)))
    };
    let curves: Vec<Option<PlottedCurves>> =
        wanted.par_iter().map(of_view).collect::<Result<_, PrivacyError>>()?;
    Ok(curves.into_iter().flatten().collect())
}

fn plotted(view: View, curve: &DeltaCurve<'_>) -> PlottedCurves {
    let (epsilon, trade_off) = (curve.epsilons(POINTS[0]), TradeOff::new(curve));
    let type_one_error = TradeOff::type_one_errors(POINTS[1]);
    PlottedCurves {
        view: view.name().to_owned(),
        delta: epsilon.iter().map(|&epsilon| curve.delta(epsilon)).collect(),
        epsilon,
        type_two_error: type_one_error.iter().map(|&error| trade_off.type_two_error(error)).collect(),
        type_one_error,
    }
}
