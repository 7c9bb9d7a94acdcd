//! Where to look: the tilt that moves the middle of the sum to the `ε` in question, and how far the sum strays from there.
//!
//! With `K_i(θ) = ln E[e^{θl}]` of a round of kind `i`, all rounds together have `K(θ) = Σ T_i·K_i(θ)`, and exceed an `ε`
//! with a chance of at most `e^{K(θ) − θε}` (Chernoff's bound). The `θ` for which this is least is the tilt for `ε`.

use crate::loss::Sketch;
use crate::solve::least_at;
use crate::window::{BEYOND, Window};

/// Steps of golden section with which a tilt is chosen.
const GOLDEN_STEPS: usize = 40;

/// Sketches of all kinds' losses, from which tilts are chosen.
pub(crate) struct Tilts {
    /// Rounds and a sketch of each kind.
    kinds: Vec<(f64, Sketch)>,
    /// The largest loss of any round.
    highest: f64,
}

impl Tilts {
    pub(crate) fn new(kinds: Vec<(f64, Sketch)>, highest: f64) -> Self {
        Self { kinds, highest }
    }

    /// A sum over all rounds, from what one round of each kind adds to it.
    fn sum(&self, of_round: impl Fn(&Sketch) -> f64) -> f64 {
        self.kinds.iter().map(|(rounds, sketch)| rounds * of_round(sketch)).sum()
    }

    /// `K(θ)`.
    pub(crate) fn log_moment(&self, theta: f64) -> f64 {
        self.sum(|sketch| sketch.log_moment(theta))
    }

    /// The `θ > 0` where a function that first falls and then rises is least.
    fn best_theta(&self, f: impl Fn(f64) -> f64) -> f64 {
        let scale = 1.0 / self.highest;
        least_at(|log_theta| f(scale * log_theta.exp()), -16.0, 16.0, GOLDEN_STEPS).exp() * scale
    }

    /// Where `K(θ) − θ·ε` is least: the tilt that brings the mean of the sum to `ε`.
    pub(crate) fn theta_at(&self, epsilon: f64) -> f64 {
        self.best_theta(|theta| self.log_moment(theta) - theta * epsilon)
    }

    /// `min_θ [K(θ) + ln(1/tail)]/θ`: what the sum exceeds with a chance of at most `tail`, and the `θ` that shows it.
    pub(crate) fn quantile(&self, log_tail: f64) -> (f64, f64) {
        let quantile = |theta: f64| (self.log_moment(theta) - log_tail) / theta;
        let theta = self.best_theta(quantile);
        (quantile(theta), theta)
    }

    /// How far from its mean the tilted sum strays to one side, but with a chance of `e^{−BEYOND}`, and the further tilt that
    /// shows it.
    pub(crate) fn reach(&self, theta: f64, sign: f64) -> (f64, f64) {
        let at_theta = |(_, sketch): &(f64, Sketch)| (sketch.log_moment(theta), sketch.tilted_mean(theta));
        let at_theta: Vec<(f64, f64)> = self.kinds.iter().map(at_theta).collect();
        let reach = |log_shift: f64| {
            let shift = log_shift.exp() / self.highest;
            let rise = |((rounds, sketch), (log_moment, mean)): (&(f64, Sketch), &(f64, f64))| {
                rounds * (sketch.log_moment(theta + sign * shift) - log_moment - sign * shift * mean)
            };
            (BEYOND + self.kinds.iter().zip(&at_theta).map(rise).sum::<f64>()) / shift
        };
        let log_shift = least_at(reach, -16.0, 16.0, GOLDEN_STEPS);
        (reach(log_shift), log_shift.exp() / self.highest)
    }

    /// The window around the tilted mean that holds everything that matters for a `δ` of `e^{log_delta}`.
    pub(crate) fn window(&self, theta: f64, log_delta: f64) -> Window {
        let (beyond, top_theta) = self.quantile(log_delta - BEYOND);
        let middle = self.sum(|sketch| sketch.tilted_mean(theta));
        let (below, shift) = self.reach(theta, -1.0);
        let below = below.max(0.0);
        let above = self.reach(theta, 1.0).0.max(beyond - middle).max(0.0);
        // The grid spreads the loss a little more than the sketch does.
        let margin = 0.02 * (below + above);
        let bottom_theta = (self.kinds.len() > 1).then_some(theta - shift);
        Window { theta, top_theta, bottom_theta, below: below + margin, above: above + margin }
    }
}
