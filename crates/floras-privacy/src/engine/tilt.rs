//! The choice of the tilt, which moves the bulk of the sum to the `ε` of interest, and the spread of the sum around it.
//!
//! With `K_i(θ) = ln E[e^{θl}]` of a round of kind `i`, all rounds together have `K(θ) = Σ T_i·K_i(θ)`, and exceed an `ε`
//! with a probability of at most `e^{K(θ) − θε}` (Chernoff's bound). The `θ` for which this is least is the tilt for `ε`.

use crate::engine::loss::{Moments, Sketch};
use crate::engine::window::{BEYOND, Window};

/// Maximum number of steps in the search for a tilt.
const MAX_STEPS: usize = 60;
/// Range of the search for tilts: `ln θ` differs from `ln(1/highest)` by at most this.
const RANGE: f64 = 16.0;

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

    /// `K`, `K'` and `K''` of all rounds together.
    pub(crate) fn moments(&self, theta: f64) -> Moments {
        self.kinds.iter().fold(Moments::default(), |sum, (rounds, sketch)| {
            let round = sketch.moments(theta);
            Moments {
                log_moment: sum.log_moment + rounds * round.log_moment,
                mean: sum.mean + rounds * round.mean,
                variance: sum.variance + rounds * round.variance,
            }
        })
    }

    /// The `θ > 0` at which an increasing function is 0, by Newton's method in `ln θ`, with bisection where it fails. The function
    /// returns its value and its derivative with respect to `ln θ`. The search ends at values of at most `tolerance`.
    fn root(&self, f: impl Fn(f64) -> (f64, f64), tolerance: f64) -> f64 {
        let (mut from, mut to) = (-RANGE - self.highest.ln(), RANGE - self.highest.ln());
        let mut log_theta = 0.5 * (from + to);
        for _ in 0..MAX_STEPS {
            let (value, slope) = f(log_theta.exp());
            if value.abs() <= tolerance || to - from < 1e-6 {
                break;
            }
            if value > 0.0 {
                to = log_theta
            } else {
                from = log_theta
            }
            let next = log_theta - value / slope;
            log_theta = if next > from && next < to { next } else { 0.5 * (from + to) };
        }
        log_theta.exp()
    }

    /// The `θ` that minimises `K(θ) − θ·ε`: the tilt that moves the mean of the sum to `ε`.
    pub(crate) fn theta_at(&self, epsilon: f64) -> f64 {
        // In nats, the unit of the tolerance.
        let slope = |theta: f64| {
            let Moments { mean, variance, .. } = self.moments(theta);
            (theta * (mean - epsilon), theta * (mean - epsilon).abs() + theta * theta * variance)
        };
        self.root(slope, 1e-3)
    }

    /// `min_θ [K(θ) + ln(1/tail)]/θ`, which the sum exceeds with probability at most `tail`, and the minimising `θ`.
    pub(crate) fn quantile(&self, log_tail: f64) -> (f64, f64) {
        let theta = self.root(
            |theta| {
                let Moments { log_moment, mean, variance } = self.moments(theta);
                (theta * mean - log_moment + log_tail, theta * theta * variance)
            },
            1e-3,
        );
        ((self.moments(theta).log_moment - log_tail) / theta, theta)
    }

    /// The tilt that moves the mean of the sum to about the `ε` that belongs to a `δ`, by the approximation
    /// `δ ≈ e^{K(θ) − θε}/(1 + θ(1 + θ)·√(2πK''))`.
    pub(crate) fn theta_for(&self, log_delta: f64) -> f64 {
        self.root(
            |theta| {
                let moments = self.moments(theta);
                (-log_delta_at(theta, moments) + log_delta, 1.0 + theta * theta * moments.variance)
            },
            1e-2,
        )
    }

    /// The same approximation of `ln δ` for an `ε`.
    pub(crate) fn log_delta(&self, epsilon: f64) -> f64 {
        let theta = self.theta_at(epsilon);
        let moments = self.moments(theta);
        log_delta_at(theta, Moments { mean: epsilon, ..moments })
    }

    /// Whether the sum is above `epsilon` with probability at least ½, by Chernoff's bound for the lower tail.
    pub(crate) fn is_mostly_above(&self, epsilon: f64) -> bool {
        if self.moments(0.0).mean <= epsilon {
            return false;
        }
        // The bound holds for every θ, and is convex, so a coarse search is enough.
        let log_probability = |theta: f64| self.moments(-theta).log_moment + theta * epsilon;
        let steps = (-40..=0).map(|power| 2_f64.powi(power));
        steps.map(log_probability).fold(f64::INFINITY, f64::min) < -std::f64::consts::LN_2
    }

    /// Distance from its mean that the tilted sum exceeds on one side with probability at most `e^{−BEYOND}`, and the additional
    /// tilt that proves it.
    pub(crate) fn reach(&self, theta: f64, sign: f64) -> (f64, f64) {
        let here = self.moments(theta);
        let rise = |shift: f64, there: Moments| there.log_moment - here.log_moment - sign * shift * here.mean;
        let shift = self.root(
            |shift| {
                let there = self.moments(theta + sign * shift);
                let value = shift * sign * (there.mean - here.mean) - rise(shift, there) - BEYOND;
                (value, shift * shift * there.variance)
            },
            1e-2,
        );
        ((BEYOND + rise(shift, self.moments(theta + sign * shift))) / shift, shift)
    }

    /// The window around the tilted mean that contains all losses that matter for a `δ` of `e^{log_delta}`.
    pub(crate) fn window(&self, theta: f64, log_delta: f64) -> Window {
        let (beyond, top_theta) = self.quantile(log_delta - BEYOND);
        let middle = self.moments(theta).mean;
        let (below, shift) = self.reach(theta, -1.0);
        let below = below.max(0.0);
        let above = self.reach(theta, 1.0).0.max(beyond - middle).max(0.0);
        // The grid spreads the loss slightly more than the sketch.
        let margin = 0.02 * (below + above);
        let bottom_theta = theta - shift;
        Window { theta, top_theta, bottom_theta, below: below + margin, above: above + margin }
    }
}

/// `ln δ` at the mean of the tilted sum, approximately.
fn log_delta_at(theta: f64, moments: Moments) -> f64 {
    let Moments { log_moment, mean, variance } = moments;
    let spread = (std::f64::consts::TAU * variance).sqrt();
    log_moment - theta * mean - (theta * (1.0 + theta) * spread).ln_1p()
}
