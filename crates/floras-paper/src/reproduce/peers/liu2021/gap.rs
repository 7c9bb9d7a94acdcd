//! The bound on the optimality gap, and the noise that powers under a privacy budget leave.

use super::super::regression::{Regression, Symmetric, dot, norm};

/// Weights of the generated labels, and their noise, as in the data of the authors' code.
const WEIGHTS: [f64; 10] = [0.0, 1.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0];
const LABEL_NOISE_STD: f64 = 0.2;
/// Weight `λ` of the penalty `λ·‖w‖²`.
const PENALTY: f64 = 5e-5;
/// Steps of the bisection for a level; its logarithm is found to a relative error of 2⁻⁶⁰.
const BISECTIONS: u32 = 60;

/// How devices share the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// All devices send together: over-the-air aggregation.
    Together,
    /// One device after another.
    InTurn,
}

/// How the powers of the rounds are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// The smallest gap under the budget.
    Adaptive,
    /// The same share of the budget in every round.
    Static,
    /// Full power, without privacy.
    Free,
}

/// The setting of a point in the paper's figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// `T`: number of channel blocks, a multiple of the number of devices.
    pub(super) rounds: u32,
    /// The privacy parameter `ε`.
    pub(super) epsilon: f64,
    /// The privacy parameter `δ`.
    pub(super) delta: f64,
    /// `P/(d·σ²)` in dB.
    pub(super) snr_db: f64,
}

impl Setting {
    /// The privacy budget `R(ε, δ)` of all rounds together, at least 0.
    fn budget(self) -> f64 {
        budget(self.epsilon, tail_constant(self.delta))
    }
}

/// The constants of a ridge regression on generated data.
pub(super) struct Problem {
    /// `d`, the number of parameters.
    parameters: f64,
    /// `n`, the number of samples of all devices.
    samples: f64,
    /// `L`, the largest eigenvalue of the Hessian.
    smoothness: f64,
    /// `q = 1 − μ/L`.
    contraction: f64,
    /// `F(0) − F*` over `F*`.
    start: f64,
    /// `F*`, the optimal loss.
    optimum: f64,
    /// `D_k·G_k`: bound on the norm of a device's sum of gradients.
    norms: Vec<f64>,
    /// `2γ²`, with the bound `γ` on the norm of one sample's gradient.
    cost: f64,
}

/// `C` with `√π·C·e^(C²) = 1/δ`, by bisection.
pub(super) fn tail_constant(delta: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 40.0_f64);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        let is_above = 0.5 * std::f64::consts::PI.ln() + middle.ln() + middle * middle > -delta.ln();
        if is_above { high = middle } else { low = middle }
    }
    high
}

/// `R(ε, δ) = (√(ε + C²) − C)²`.
pub(super) fn budget(epsilon: f64, constant: f64) -> f64 {
    ((epsilon + constant * constant).sqrt() - constant).powi(2)
}

/// The noise `x_t` of every round, at least `least`, whose costs `cost/x_t` have a sum of at most `budget`. The noise of round `t` has
/// the weight `q^(T−t)`, and the weighted sum is smallest.
pub(super) fn adaptive(least: f64, rounds: u32, q: f64, cost: f64, budget: f64) -> Vec<f64> {
    if f64::from(rounds) * cost / least <= budget {
        return vec![least; rounds as usize];
    }
    let shape: Vec<f64> = (1..=rounds).map(|t| q.powf(0.5 * (f64::from(t) - f64::from(rounds)))).collect();
    let spent = |level: f64| shape.iter().map(|shape| cost / (level * shape).max(least)).sum::<f64>();
    // Every round has at least the noise of the level: at the upper end, the costs are at most the budget.
    let (mut low, mut high) = (0.0_f64, (f64::from(rounds) * cost / budget).max(least));
    for _ in 0..BISECTIONS {
        let middle = 0.5 * (low + high);
        if spent(middle) <= budget { high = middle } else { low = middle }
    }
    shape.iter().map(|shape| (high * shape).max(least)).collect()
}

impl Problem {
    pub(super) fn generate(seed: u64, samples: u32, devices: u32) -> Self {
        let data = Regression::generate(seed, 0, samples, &WEIGHTS, LABEL_NOISE_STD);
        let count = samples as usize;
        let share = count / devices as usize;
        let penalised = |range| {
            let (mut hessian, cross) = data.moments(range);
            hessian.add_diagonal(2.0 * PENALTY);
            (hessian, cross)
        };
        let (hessian, cross): (Symmetric, Vec<f64>) = penalised(0..count);
        let (smallest, smoothness) = hessian.extremes();
        let best = hessian.solve(&cross);
        // F(w) = E y²/2 − wᵀE xy + wᵀ(E xxᵀ + 2λI)w/2, and the optimum solves the linear system.
        let at_zero = 0.5 * data.labels.iter().map(|y| y * y).sum::<f64>() / f64::from(samples);
        let optimum = at_zero - 0.5 * dot(&best, &cross);
        let radius = 2.0 * norm(&best);
        let local = |device: usize| penalised(device * share..(device + 1) * share).0.extremes().1;
        let norms = (0..devices as usize).map(|device| share as f64 * local(device) * radius).collect();
        let square = |row: &Vec<f32>| row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
        let longest = data.features.iter().map(square).fold(0.0, f64::max);
        Self {
            parameters: WEIGHTS.len() as f64,
            samples: f64::from(samples),
            smoothness,
            contraction: 1.0 - smallest / smoothness,
            start: (at_zero - optimum) / optimum,
            optimum,
            norms,
            cost: 2.0 * ((longest + 2.0 * PENALTY) * radius).powi(2),
        }
    }

    /// The noise at full power for each device, `(D_k·G_k/h_k)²·σ²/P` with `σ = 1` and the SNR `P/(d·σ²)`.
    fn full_power(&self, channels: &[f64], snr_db: f64) -> Vec<f64> {
        let power = self.parameters * 10_f64.powf(snr_db / 10.0);
        channels.iter().zip(&self.norms).map(|(h, norm)| (norm / h).powi(2) / power).collect()
    }

    /// The smallest `ε` at which full power meets the budget of NOMA: `R(ε) = η` at `ε = η + 2C·√η`.
    pub(super) fn free_epsilon(&self, channels: &[f64], setting: Setting) -> f64 {
        let least = self.full_power(channels, setting.snr_db).into_iter().fold(0.0, f64::max);
        let spent = f64::from(setting.rounds) * self.cost / least;
        spent + 2.0 * tail_constant(setting.delta) * spent.sqrt()
    }

    /// The bound on the gap over the optimal loss.
    pub(super) fn gap(&self, access: Access, policy: Policy, channels: &[f64], setting: Setting) -> f64 {
        let full = self.full_power(channels, setting.snr_db);
        let budget = setting.budget();
        match access {
            Access::Together => {
                let least = full.into_iter().fold(0.0, f64::max);
                self.bound(&self.noise(policy, least, setting.rounds, budget))
            }
            Access::InTurn => {
                let steps = setting.rounds / channels.len() as u32;
                self.bound_of_sum(
                    full.into_iter().map(|least| self.noise(policy, least, steps, budget)),
                    steps,
                )
            }
        }
    }

    /// OMA with static power as in the authors' code: device `k` has the share `k/T` of the budget in each of its `T/K` rounds.
    pub(super) fn static_in_turn_as_coded(&self, channels: &[f64], setting: Setting) -> f64 {
        let steps = setting.rounds / channels.len() as u32;
        let noise = |(number, least): (u32, f64)| {
            let divided = f64::from(setting.rounds) / f64::from(number);
            vec![least.max(self.cost * divided / setting.budget()); steps as usize]
        };
        self.bound_of_sum((1..).zip(self.full_power(channels, setting.snr_db)).map(noise), steps)
    }

    fn noise(&self, policy: Policy, least: f64, rounds: u32, budget: f64) -> Vec<f64> {
        match policy {
            Policy::Adaptive => adaptive(least, rounds, self.contraction, self.cost, budget),
            Policy::Static => vec![least.max(self.cost * f64::from(rounds) / budget); rounds as usize],
            Policy::Free => vec![least; rounds as usize],
        }
    }

    fn bound_of_sum(&self, devices: impl Iterator<Item = Vec<f64>>, steps: u32) -> f64 {
        let mut sum = vec![0.0; steps as usize];
        for noise in devices {
            sum.iter_mut().zip(noise).for_each(|(sum, noise)| *sum += noise);
        }
        self.bound(&sum)
    }

    fn bound(&self, noise: &[f64]) -> f64 {
        let q = self.contraction;
        let weighted = noise.iter().fold(0.0, |sum, noise| q * sum + noise);
        let scale = self.parameters / (2.0 * self.smoothness * self.samples * self.samples * self.optimum);
        self.start * q.powi(noise.len() as i32) + scale * weighted
    }
}

#[cfg(test)]
mod tests {
    use floras_core::{Admission, NoiseReference, Snr, SnrConvention};
    use floras_phy::{Channels, Complex64, LevelPolicy, PowerControl, PowerControlSettings, Round, Uplink};

    use super::*;

    #[test]
    fn tail_constants_solve_their_equation() {
        // The authors' code has 1.849 for δ = 0.01.
        assert!((tail_constant(0.01) - 1.849).abs() < 1e-3);
        for delta in [0.3, 1e-2, 1e-5] {
            let c = tail_constant(delta);
            assert!((std::f64::consts::PI.sqrt() * c * (c * c).exp() * delta - 1.0).abs() < 1e-9);
        }
        let (epsilon, c) = (20.0, tail_constant(0.01));
        let spent = budget(epsilon, c);
        assert!((spent + 2.0 * c * spent.sqrt() - epsilon).abs() < 1e-9);
    }

    /// Without the power limit, the Lagrange conditions give `x_t = w_t^(−1/2)·(cost/budget)·Σ_s w_s^(1/2)` with the weights `w_t`.
    #[test]
    fn levels_below_full_power_have_their_closed_form() {
        let (rounds, q, cost, budget) = (12, 0.3_f64, 5.0, 0.7);
        let roots: Vec<f64> = (1..=rounds).map(|t| q.powf(0.5 * f64::from(rounds - t))).collect();
        let sum: f64 = roots.iter().sum();
        let found = adaptive(1e-12, rounds, q, cost, budget);
        for (found, root) in found.iter().zip(&roots) {
            let expected = cost * sum / (budget * root);
            assert!((found / expected - 1.0).abs() < 1e-9, "{found}, not {expected}");
        }
    }

    /// Moving budget between any two rounds does not reduce the weighted noise.
    #[test]
    fn no_exchange_between_rounds_improves_adaptive_power() {
        let (rounds, q, cost, budget, least) = (6, 0.6_f64, 3.0, 1.5, 9.0);
        let noise = adaptive(least, rounds, q, cost, budget);
        assert!((noise.iter().map(|x| cost / x).sum::<f64>() - budget).abs() < 1e-9);
        assert!(noise.contains(&least) && noise.iter().any(|x| *x > least));
        let objective = |noise: &[f64]| noise.iter().fold(0.0, |sum, x| q * sum + x);
        let best = objective(&noise);
        for from in 0..rounds as usize {
            for to in 0..rounds as usize {
                let mut other = noise.clone();
                let moved = 1e-3 * cost / noise[from];
                other[from] = cost / (cost / noise[from] - moved);
                other[to] = cost / (cost / other[to] + moved);
                if other[to] >= least {
                    assert!(objective(&other) >= best * (1.0 - 1e-12), "{from} to {to}");
                }
            }
        }
    }

    /// The noise of static power over the air is that of the scheme `power-control` with the policy `water-filling`, with channels and
    /// noise in units of the longest sum of gradients.
    #[test]
    fn static_power_is_water_filling_of_the_scheme() {
        let problem = Problem::generate(5, 2000, 4);
        let channels = [0.7, 1.1, 0.9, 1.3];
        for (epsilon, snr_db) in [(2.0, 30.0), (2000.0, 10.0)] {
            let full = problem.full_power(&channels, snr_db);
            let least = full.iter().copied().fold(0.0, f64::max);
            let allowed = problem.cost * 30.0 / budget(epsilon, tail_constant(0.01));
            let effective: Vec<Complex64> =
                full.iter().map(|x| Complex64::new((least / x).sqrt(), 0.0)).collect();
            let uplink = PowerControl::new(PowerControlSettings {
                min_noise_std: (allowed / least).sqrt(),
                policy: LevelPolicy::WaterFilling,
                admission: Admission::at_amplitude(1e-3).unwrap(),
                noise: NoiseReference::PerSymbol,
                length: 1,
                channels: Channels::fixed(&effective).unwrap(),
                snr: Snr::new(0.0, SnrConvention::Symbol).unwrap(),
            })
            .unwrap();
            let round = Round::new(1, 0, 1, &[0, 1, 2, 3]).unwrap();
            let scheme = uplink.realise(&round).unwrap().noise_std().powi(2) * least;
            let here = problem.noise(Policy::Static, least, 30, budget(epsilon, tail_constant(0.01)))[0];
            assert!((scheme / here - 1.0).abs() < 1e-9, "{scheme}, not {here}");
        }
    }

    #[test]
    fn free_thresholds_are_where_full_power_suffices() {
        let problem = Problem::generate(5, 2000, 4);
        let channels = [0.7, 1.1, 0.9, 1.3];
        let setting = Setting { rounds: 30, epsilon: 1.0, delta: 0.01, snr_db: 20.0 };
        let free = problem.free_epsilon(&channels, setting);
        let least = problem.full_power(&channels, 20.0).into_iter().fold(0.0, f64::max);
        let noise =
            |policy, epsilon| problem.noise(policy, least, 30, Setting { epsilon, ..setting }.budget());
        assert_eq!(noise(Policy::Adaptive, free * 1.001), noise(Policy::Free, free));
        // Early rounds have more noise first: their weight is the smallest.
        let below = noise(Policy::Adaptive, free * 0.999);
        assert!(below[0] > least && below[29] == least);
    }

    /// Samples of N(0, I) have a Hessian near I, the optimal loss is near 0.02, and `F(0)` near 5.
    #[test]
    fn constants_are_those_of_the_distribution() {
        let problem = Problem::generate(5, 10_000, 10);
        assert!((problem.optimum - 0.02).abs() < 0.001, "{}", problem.optimum);
        assert!((problem.start * problem.optimum - 5.0).abs() < 0.3);
        assert!((problem.smoothness - 1.03).abs() < 0.05 && problem.contraction < 0.12);
    }
}
