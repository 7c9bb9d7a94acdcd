//! A guarantee for every channel: the worst case over a client's channel.
//!
//! Orthonormal sequences. Client `k` has the channel `t = h_k/s` and the estimate `τ = t + e`, both in units of the despread
//! noise `s`; the decoder divides by `u(τ)` ([`crate::views::pilot`]), and `ν_γ² = Σ_{j≤γ} w(G_j)²` comes from the unused sequences
//! ([`Receiver`]). For *any* fixed channels,
//!
//! ```text
//! μ_k = Δ·|t|·g(τ),     g = 1/√(1 + u²·(ν_γ² + other used sequences))  ≤  1/√(1 + u²ν_γ²)
//! δ*(ε) = sup_t δ_t(ε),     δ_t(ε) = E_{e,G}[δ_G(ε; Δ·|t|·g(t + e))]
//! ```
//!
//! for any distribution of fading, any SNR, and any knowledge of the channels. The supremum of such curves is such a curve too, and is
//! composed like the others. It is not amplified by sampling: an adversary who knows the channels sees from the pilot who takes part.
//!
//! # The supremum is certified
//! The channels `t ≥ 0` are cut into cells. Each cell is halved until its bound is close to a value that some channel attains:
//!
//! 1. *Between two channels* `t₀ < t₁`, `h = t₁ − t₀`. The density of `τ` satisfies
//!    `φ(τ − t) = φ(τ − t₀)^{1−λ}·φ(τ − t₁)^λ·e^{λ(1−λ)h²/2}`, and `ln δ_G(ε; Δtg)` as a function of `t` has a second derivative
//!    of at least `−B/t₀²`, `B = 3/2·(y² + yz + z²) + 12`, wherever `ε/μ − μ/2 ≤ z` in the cell, `y² = z² + 2ε` (below). Hölder's
//!    inequality over `τ` and `ν` gives `δ_t ≤ e^{(1 + B/t₀²)h²/8}·max(δ_{t₀}, δ_{t₁}) + Φ(−z₁)`, where `z₁` is `z` at the end `t₁`.
//! 2. *The same, for `g` that falls with `|τ|`* (MMSE weights are replaced by their largest one below `|τ| = 1`):
//!    `E_{τ~N(t,1)}[δ_G(ε; Δt₁g(τ))]` falls with `t` (both the density and the function of `τ` are symmetric and unimodal; Anderson's
//!    inequality). So `δ_t(ε) ≤ E_{τ~N(t₀,1)}[δ_G(ε; Δt₁g(τ))]`, which is `δ_{t₀}` with every `μ` larger by `t₁/t₀`. With `t₀ = 0` it
//!    covers the weakest channels.
//! 3. *Between two strong channels*: for the same pilot noise `e`, `1/μ²` is proportional to `1/t² + ν²·(u(t + e)/t)²`. Both terms are
//!    largest or smallest at the ends of the cell, up to a small share for MMSE weights, so all `μ` of the cell have one bound
//!    ([`pilot::divisors_between`]). Its excess over `δ_{t₀}` falls like `1/t₀` for cells of the same width in `ln t`. Many strong
//!    channels with nearly the same curve therefore need few cells.
//! 4. *From `t₀` on*: `t·g ≤ (t/|τ|)/ν_γ = 1/(|1 + e/t|·ν_γ)`. As a function of `x`, `δ_G(ε; m/(1 + x))` is convex while
//!    `μ = m/(1 + x) ≤ √8`, for every `ε`: its second derivative has the sign of `(ε/μ)² − μ²/4 + 2`. So the sum of its values at
//!    `±|e|/t` falls with `t`, and is largest at `t₀`. Where `μ` is larger, `1/(1 − |e|/t₀)` and 1 bound the two factors.
//!
//! *The curvature.* Let `f = ln δ_G(ε; e^s)`, `z = ε/μ − μ/2`, `y = ε/μ + μ/2`, so that `y − z = μ` and `y² − z² = 2ε`, and `M` the Mills
//! ratio. Then `f' = μ/(M(z) − M(y))`, `f'' = f'·(1 + yz − f')`, and the second derivative in `t` is `−f'·(f' − yz)/t²`. With
//! `S = −M' = 1 − xM`, `1/f'` is the mean of `S` on `[z, y]`. For `x ≥ 0`, `1/(x² + 3) ≤ S ≤ 1/(x² + 1)`. So for `z ≥ 0`,
//! `1 + yz ≤ f' ≤ wr`, with `w = 3 + yz`, `r = x/arctan x`, `x = √3·μ/w`. `F·(F − yz)` rises with `F ≥ yz`, and at `F = wr` it is
//! `w²r(r − 1) + 3wr`. With `y² + yz + z² = w²x²/3 + 3w − 9`, it remains to show `w²·(x²/2 − r(r − 1)) + 3w·(3/2 − r) − 3/2 ≥ 0` for
//! `w ≥ 3` and `x ≥ 0`: a parabola in `w` that rises from its least value at `w = 3`. For `z < 0`, `S ≥ 1` makes `f'` smaller. A test
//! evaluates all three inequalities, and the curvature itself for both signs of `z`, on grids.
//!
//! For the clipped projector, `u = max(|t + e|, c)`, there is a simple bound: `μ ≤ Δ·(1 + |e|/c)/ν_γ`. For if
//! `|t + e| ≥ c` then `|t|/u ≤ 1 + |e|/|t + e| ≤ 1 + |e|/c`, and if not, `|t| ≤ c + |e|` and `|t|/c ≤ 1 + |e|/c`.
//!
//! # Several branches
//! With `B` real branches and the noise `e ∈ ℝᴮ` of the pilot, turn the axes so that the channel lies along the first one. The estimate
//! is `τ = (t + e₁, e₂, …)`, the gain `t·cos θ·w(‖τ‖)` with the angle `θ` between channel and estimate, and
//!
//! ```text
//! μ = Δ·t·|cos θ|/√(1 + u(‖τ‖)²·ν²)  ≤  Δ·t/√(1 + u(|t + e₁|)²·ν²)
//! ```
//!
//! for a divisor `u` that grows with the size of the estimate, because `|cos θ| ≤ 1` and `‖τ‖ ≥ |t + e₁|`. The right side is `μ` of one
//! branch with the noise `ν_γ` that the unused sequences have over `B` branches, so the search above bounds it. With two parameters in a
//! symbol the gain is complex, and its size is also at most `t·w(‖τ‖)`. Regularised weights are replaced by the clipped ones with
//! `c = 2√κ`, which are nowhere smaller and have such a divisor. The bound is not tight if a client fades. Its lower bound is that of a
//! strong client.
//!
//! # Citations
//! Anderson, *The integral of a symmetric unimodal function over a symmetric convex set and some probability inequalities*,
//! Proc. Amer. Math. Soc. 6 (1955).

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use floras_core::{ClipLevel, Receiver};

use crate::account::Source;
use crate::engine::chords::Chords;
use crate::engine::compose::MAX_EPSILON;
use crate::engine::distribution::{CellsBelow, CellsBuilder, FINE_CELL, MuDistribution, Side};
use crate::engine::sampling::Curve;
use crate::engine::tabulated::{self, SMALLEST};
use crate::error::PrivacyError;
use crate::numerics::normal;
use crate::numerics::solve::{first_at_most, first_at_most_from};
use crate::setting::{Decoder, Setting};
use crate::views::divisors::CommonPanels;
use crate::views::gains::{self, Boundaries, LogBins};
use crate::views::idealised::{MAX_MU, idealised, idealised_of_branches, without_channel};
use crate::views::nodes::{self, NodeDistribution, Nodes};
use crate::views::noise::Noise;
use crate::views::pilot::{self, BEYOND_REACH, REACH};
use crate::views::receiver::{is_monotone, noise_of_branches, noise_of_unused, with_growing_divisor};
use crate::views::{DetailSource, boxed};

/// Step between channels in `ln t`; no cell is shorter.
const FINE: f64 = 0.0025;
/// Number of such steps per cell in the first, coarse search.
const COARSE: usize = 96;
/// The weakest and the strongest channel at the end of a cell, in units of the larger of `s` and `c·s`.
const CHANNELS: (f64, f64) = (1e-4, 1e5);
/// Range of channels where the search begins, in the same units. It extends to weaker and stronger channels as needed.
const START: (f64, f64) = (1.0, 20.0);
/// The first rung above 0, an `ε`, and the ratio of successive rungs. Regions are chosen separately for each rung.
const LADDER: (f64, f64) = (1e-3, 1.25);
/// Number of rungs: from 0 to beyond the largest `ε` of any search.
const RUNGS: usize = 84;
/// Relative tolerance of the curve: it is a supremum over many channels, and has kinks.
const TOLERANCE: f64 = 1e-3;
/// Up to this `μ`, `δ_G(ε; m/(1 + x))` is convex in `x` for every `ε`.
const CONVEX: f64 = 2.8;
/// The `δ` at which the worst channel is determined for the lower bound of a composition.
const SMALL: f64 = 1e-5;

/// `δ*(ε)`, a curve for every channel. A single evaluation searches for the worst channel. A composition uses chords between some of these
/// values.
pub struct AnyChannel {
    worst: Arc<Worst>,
    /// The chords down to each of [`SMALLEST`].
    composable: [Composable; SMALLEST.len()],
}

/// Chords that are computed when a composition first needs them.
struct Composable {
    worst: Arc<Worst>,
    /// Smaller values of `δ` count as infinite loss.
    smallest: f64,
    upper: OnceLock<Chords>,
}

impl AnyChannel {
    /// For a receiver, `γ` unused sequences and the sensitivity `Δ`.
    pub fn new(receiver: Receiver, unused: u64, sensitivity: f64) -> Result<Self, PrivacyError> {
        Ok(Self::of(Worst::new(receiver, unused, sensitivity)?))
    }

    /// The same for sequences that are received on `branches ≥ 1` real branches. The lower bound is that of a strong client.
    pub fn of_branches(
        receiver: Receiver,
        branches: u32,
        unused: u64,
        sensitivity: f64,
    ) -> Result<Self, PrivacyError> {
        let is_exact = branches == 1 && matches!(receiver.regularisation(), None | Some(1.0));
        if is_exact {
            return Self::new(receiver, unused, sensitivity);
        }
        Ok(Self::of(Worst::of_branches(receiver, branches, unused, sensitivity)?))
    }

    fn of(worst: Worst) -> Self {
        let worst = Arc::new(worst);
        let composable =
            SMALLEST.map(|smallest| Composable { worst: worst.clone(), smallest, upper: OnceLock::new() });
        Self { worst, composable }
    }

    /// The distribution of `μ` for a client with the channel `t = h/s`.
    pub fn distribution_at(&self, t: f64) -> MuDistribution {
        if self.worst.is_bound {
            return self.worst.distribution(t);
        }
        let worst = self.worst.clone();
        let above = self.worst.cells_above(t, t, self.worst.small_estimate());
        above.build_above(move || worst.cells_below(t))
    }

    /// The distribution of `μ` in the limit of a strong client, `t → ∞`.
    pub fn strong_client(&self) -> &MuDistribution {
        &self.worst.strong
    }
}

impl Composable {
    fn upper_chords(&self) -> &Chords {
        let smallest = self.smallest.max(1e-6 * self.worst.infinite());
        self.upper.get_or_init(|| Chords::new(|epsilon| self.worst.stored_supremum(epsilon), smallest))
    }
}

impl Curve for AnyChannel {
    fn upper(&self, epsilon: f64) -> f64 {
        self.worst.supremum(epsilon)
    }

    fn lower(&self, epsilon: f64) -> f64 {
        self.worst.attained(epsilon)
    }

    fn infinite(&self) -> f64 {
        self.worst.infinite()
    }

    fn simpler(&self) -> Option<&MuDistribution> {
        Some(self.strong_client())
    }

    fn for_composition(&self, least: f64) -> Option<&dyn Curve> {
        Some(&self.composable[tabulated::level(least)])
    }

    fn tolerance(&self) -> f64 {
        TOLERANCE
    }
}

impl Curve for Composable {
    fn upper(&self, epsilon: f64) -> f64 {
        self.upper_chords().upper(epsilon)
    }

    fn lower(&self, epsilon: f64) -> f64 {
        if self.worst.is_bound {
            return self.worst.strong.lower(epsilon);
        }
        self.worst.one_channel().delta(epsilon)
    }

    fn infinite(&self) -> f64 {
        self.worst.infinite() + self.upper_chords().beyond
    }

    fn tolerance(&self) -> f64 {
        TOLERANCE
    }
}

/// The search for the worst channel.
pub(crate) struct Worst {
    receiver: Receiver,
    sensitivity: f64,
    noise: Arc<Noise>,
    noise_bins: LogBins,
    /// The noise for lower bounds, rounded up, with its bins.
    upper_noise: OnceLock<(Arc<Noise>, LogBins)>,
    unused: u64,
    /// Whether the curves of single channels are upper bounds that no channel need attain.
    is_bound: bool,
    strong: MuDistribution,
    /// Unit of [`CHANNELS`].
    scale: f64,
    /// For each channel at the end of a cell: its own curve, bounds for all weaker and for all stronger channels, and a bound on its own
    /// curve with gains that fall with the estimate.
    channels: Vec<[OnceLock<NodeDistribution>; 4]>,
    /// For two channels at the ends of a cell, a bound for all channels between them.
    between: Mutex<HashMap<(usize, usize), Arc<NodeDistribution>>>,
    /// The cells of single channels for lower bounds, computed when needed.
    below: Vec<OnceLock<CellsBelow>>,
    /// The channel for the lower bound of a composition.
    one_channel: OnceLock<usize>,
    /// Suprema computed for chords, by the bits of `ε`: chords of different length have their first points in common.
    suprema: Mutex<HashMap<u64, f64>>,
    rungs: Vec<OnceLock<Vec<(f64, Region)>>>,
    /// For each rung, the curves of single channels there; the searches below and above a rung share them.
    at_rungs: Vec<OwnValues>,
}

/// `δ_t(ε)` of channels at one `ε`, by index.
type OwnValues = Arc<Mutex<HashMap<usize, f64>>>;

/// The curves of single channels at one `ε`, each computed once.
struct AtEpsilon<'a> {
    worst: &'a Worst,
    nodes: Arc<Nodes>,
    strong: f64,
    own: OwnValues,
}

impl<'a> AtEpsilon<'a> {
    fn new(worst: &'a Worst, epsilon: f64) -> Self {
        Self::with(worst, Arc::new(Nodes::new(epsilon)), OwnValues::default())
    }

    /// At the `ε` of a rung, which all searches share.
    fn at_rung(worst: &'a Worst, rung: usize) -> Self {
        static NODES: [OnceLock<Arc<Nodes>>; RUNGS + 1] = [const { OnceLock::new() }; RUNGS + 1];
        let epsilon = if rung == 0 { 0.0 } else { LADDER.0 * LADDER.1.powi(rung as i32 - 1) };
        let nodes = NODES[rung].get_or_init(|| Arc::new(Nodes::new(epsilon))).clone();
        Self::with(worst, nodes, worst.at_rungs[rung].clone())
    }

    fn with(worst: &'a Worst, nodes: Arc<Nodes>, own: OwnValues) -> Self {
        let strong = worst.strong.upper(nodes.epsilon);
        Self { worst, nodes, strong, own }
    }

    /// `δ_t(ε)` of the channel at the end of a cell.
    fn own(&self, index: usize) -> f64 {
        let mut known = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(index).or_insert_with(|| self.worst.own(index).upper(&self.nodes, 0))
    }
}

/// A range of channels with a common bound.
#[derive(Clone, Copy)]
enum Region {
    /// All channels up to this one.
    Weaker(usize),
    /// All channels between these two.
    Between(usize, usize),
    /// All channels from this one on.
    Stronger(usize),
}

/// A region with its bound, ordered by the bound.
struct Bounded(f64, Region);

impl Ord for Bounded {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Bounded {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Bounded {}

impl Worst {
    fn new(receiver: Receiver, unused: u64, sensitivity: f64) -> Result<Self, PrivacyError> {
        let strong = idealised(receiver, unused, sensitivity)?;
        let noise = noise_of_unused(receiver, unused, Side::Upper);
        Ok(Self::with_noise(receiver, unused, sensitivity, strong, noise))
    }

    /// One branch with the noise of unused sequences over several branches.
    fn of_branches(
        receiver: Receiver,
        branches: u32,
        unused: u64,
        sensitivity: f64,
    ) -> Result<Self, PrivacyError> {
        let strong = idealised_of_branches(receiver, branches, unused, sensitivity)?;
        let noise = noise_of_branches(receiver, branches, unused, Side::Upper);
        let growing = with_growing_divisor(receiver);
        let of_one = Self::with_noise(growing, unused, sensitivity, strong, noise);
        Ok(Self { is_bound: true, ..of_one })
    }

    fn with_noise(
        receiver: Receiver,
        unused: u64,
        sensitivity: f64,
        strong: MuDistribution,
        noise: Arc<Noise>,
    ) -> Self {
        let scale = receiver.level().unwrap_or(1.0).max(1.0);
        let count = ((CHANNELS.1 / CHANNELS.0).ln() / FINE) as usize;
        let channels = (0..=count).map(|_| Default::default()).collect();
        let below = (0..=count).map(|_| OnceLock::new()).collect();
        let noise_bins = LogBins::of_noise(&noise, gains::step(receiver), Side::Upper);
        let rungs = (0..RUNGS).map(|_| OnceLock::new()).collect();
        let upper_noise = OnceLock::new();
        Self {
            receiver,
            sensitivity,
            noise,
            noise_bins,
            upper_noise,
            unused,
            is_bound: false,
            strong,
            scale,
            channels,
            between: Mutex::default(),
            below,
            one_channel: OnceLock::new(),
            suprema: Mutex::default(),
            rungs,
            at_rungs: (0..=RUNGS).map(|_| OwnValues::default()).collect(),
        }
    }

    fn channel(&self, index: usize) -> f64 {
        self.scale * CHANNELS.0 * (index as f64 * FINE).exp()
    }

    /// The cells of `Δ·t·g(τ)` for an estimate `τ` around `t`, for a lower bound.
    fn cells_below(&self, t: f64) -> CellsBuilder {
        let (noise, bins) = self.upper_noise.get_or_init(|| {
            let noise = noise_of_unused(self.receiver, self.unused, Side::Lower);
            let bins = LogBins::of_noise(&noise, gains::step(self.receiver), Side::Lower);
            (noise, bins)
        });
        let mut below = self.cells(t, t, self.small_estimate(), bins, Side::Lower);
        below.add_exception(noise.none);
        below
    }

    /// An upper bound on the distribution of `Δ·t·g(τ)` for an estimate `τ` around `t`.
    fn distribution(&self, t: f64) -> MuDistribution {
        self.distribution_with(t, t, self.small_estimate())
    }

    /// The same for `Δ·a·g(τ)` with `a = amplitude`. Estimates below `small` count as having their largest weight.
    fn distribution_with(&self, t: f64, amplitude: f64, small: f64) -> MuDistribution {
        self.cells_above(t, amplitude, small).build()
    }

    /// The cells of that distribution. Outcomes without noise count as infinite losses.
    fn cells_above(&self, t: f64, amplitude: f64, small: f64) -> CellsBuilder {
        let mut cells = self.cells(t, amplitude, small, &self.noise_bins, Side::Upper);
        cells.add_infinite(self.noise.none + BEYOND_REACH);
        cells
    }

    fn cells(&self, t: f64, amplitude: f64, small: f64, noise: &LogBins, side: Side) -> CellsBuilder {
        let step = gains::step(self.receiver);
        let divisors = CommonPanels::new(self.receiver, (t, t), small, step, side).divisors(t);
        self.cells_of(amplitude, &divisors, noise, side)
    }

    /// The cells of `Δ·a/√(1 + u²ν²)` with `a = amplitude`.
    fn cells_of(&self, amplitude: f64, divisors: &LogBins, noise: &LogBins, side: Side) -> CellsBuilder {
        let largest = self.sensitivity * amplitude;
        let mut cells = CellsBuilder::new(largest, FINE_CELL, side);
        let log_largest = largest.ln();
        for gain in divisors.gains(noise, &Boundaries::new(divisors.range(), noise), side) {
            let range = (largest * gain.range.0, largest * gain.range.1);
            cells.add_near(log_largest + gain.log, largest * gain.mean, range, gain.mass);
        }
        cells
    }

    /// A bound on the distribution of `μ` for all channels between two strong ones, by step 3 of the module documentation.
    fn distribution_between(&self, from: f64, to: f64) -> MuDistribution {
        let divisors = pilot::divisors_between(self.receiver, from, to, gains::step(self.receiver));
        let mut cells = self.cells_of(to, &divisors, &self.noise_bins, Side::Upper);
        cells.add_infinite(self.noise.none + BEYOND_REACH);
        cells.build()
    }

    fn small_estimate(&self) -> f64 {
        pilot::small_estimate(self.receiver, &self.noise)
    }

    /// A bound on the distribution of `μ` for all channels from `t` on, by step 4 of the module documentation. `t` is above [`REACH`].
    fn distribution_from(&self, t: f64) -> MuDistribution {
        let panels = sizes_relative_to(t);
        let most = panels.iter().map(|panel| panel.above.1).fold(1.0, f64::max);
        let strong = |noise: f64| self.sensitivity / noise.sqrt();
        let highest = self.noise.cells().iter().map(|cell| most * strong(cell.least));
        let largest = highest.filter(|&mu| mu < MAX_MU).fold(0.0, f64::max);
        let mut cells = CellsBuilder::new(largest, FINE_CELL, Side::Upper);
        for cell in self.noise.cells() {
            let (high, low) = (strong(cell.least), strong(cell.largest));
            let mean = cell.chord(high, low);
            if most * high >= MAX_MU {
                cells.add_infinite(cell.mass);
                continue;
            }
            for panel in &panels {
                let is_convex = high * panel.above.1 <= CONVEX;
                let below = if is_convex { panel.below } else { (1.0, 1.0, 1.0) };
                for (least, largest, factor) in [panel.above, below] {
                    let range = (low * least, high * largest);
                    cells.add_range((mean * factor).min(range.1), range, cell.mass * panel.share);
                }
            }
        }
        cells.add_infinite(self.noise.none + BEYOND_REACH);
        cells.build()
    }

    fn own(&self, index: usize) -> &NodeDistribution {
        self.channels[index][0].get_or_init(|| {
            let t = self.channel(index);
            NodeDistribution::new(self.distribution(t))
        })
    }

    fn own_below(&self, index: usize) -> &CellsBelow {
        self.below[index].get_or_init(|| self.cells_below(self.channel(index)).build_below())
    }

    /// A bound on a channel's curve with gains that fall with the estimate's size; MMSE weights do so only from 1 on.
    fn falling(&self, index: usize) -> &NodeDistribution {
        if is_monotone(self.receiver) {
            return self.own(index);
        }
        self.channels[index][3].get_or_init(|| {
            let t = self.channel(index);
            NodeDistribution::new(self.distribution_with(t, t, 1.0))
        })
    }

    /// Anderson's inequality with `t₀ = 0`.
    fn weaker(&self, index: usize) -> &NodeDistribution {
        self.channels[index][1].get_or_init(|| {
            let t = self.channel(index);
            let small = if is_monotone(self.receiver) { self.small_estimate() } else { 1.0 };
            NodeDistribution::new(self.distribution_with(0.0, t, small))
        })
    }

    fn between(&self, from: usize, to: usize) -> Arc<NodeDistribution> {
        let known = || self.between.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(&(from, to)).cloned();
        found.unwrap_or_else(|| {
            let distribution = self.distribution_between(self.channel(from), self.channel(to));
            let new = Arc::new(NodeDistribution::new(distribution));
            known().insert((from, to), new.clone());
            new
        })
    }

    fn stronger(&self, index: usize) -> &NodeDistribution {
        self.channels[index][2]
            .get_or_init(|| NodeDistribution::new(self.distribution_from(self.channel(index))))
    }

    /// A bound on `δ_t(ε)` for all channels of a region, where the largest known value is `reached`.
    fn bound(&self, region: Region, at: &AtEpsilon<'_>, reached: f64) -> f64 {
        let nodes = &at.nodes;
        match region {
            Region::Weaker(index) => self.weaker(index).upper(nodes, 0),
            Region::Stronger(index) => self.stronger(index).upper(nodes, 0),
            Region::Between(from, to) => {
                let (start, end) = (self.channel(from), self.channel(to));
                let [left, right] = [from, to].map(|index| at.own(index));
                let least = 1e-6 * reached.max(1e-35);
                let ratio = (end / start).ln();
                let width = end - start;
                let spread = curvature(nodes.epsilon, least, ratio);
                let exponent = (1.0 + spread / (start * start)) * width * width / 8.0;
                let curved = exponent.exp() * left.max(right) + least;
                let shift = (ratio / nodes::STEP - 1e-9).ceil() as i64;
                let bound = curved.min(self.falling(from).upper(nodes, shift));
                if bound <= reached * (1.0 + close(reached))
                    || start < pilot::weakest_to_couple(self.receiver)
                {
                    return bound;
                }
                bound.min(self.between(from, to).upper(nodes, 0))
            }
        }
    }

    /// The largest attained value of some regions' channels and of a strong client.
    fn largest(&self, regions: &[Region], at: &AtEpsilon<'_>) -> f64 {
        let of_region = |&region: &Region| match region {
            Region::Weaker(index) => at.own(index),
            Region::Between(from, to) => at.own(from).max(at.own(to)),
            Region::Stronger(_) => 0.0,
        };
        regions.iter().map(of_region).fold(at.strong, f64::max)
    }

    /// The two parts of a region; `None` if it cannot be cut.
    fn cut(&self, region: Region) -> Option<[Region; 2]> {
        let last = self.channels.len() - 1;
        Some(match region {
            Region::Weaker(0) => return None,
            Region::Weaker(index) => {
                let next = index.saturating_sub(COARSE);
                [Region::Weaker(next), Region::Between(next, index)]
            }
            Region::Between(from, to) if to - from < 2 => return None,
            Region::Between(from, to) => {
                let middle = from + (to - from) / 2;
                [Region::Between(from, middle), Region::Between(middle, to)]
            }
            Region::Stronger(index) if index == last => return None,
            Region::Stronger(index) => {
                let next = (index + COARSE).min(last);
                [Region::Between(index, next), Region::Stronger(next)]
            }
        })
    }

    /// The regions at the start of the search.
    fn start(&self) -> Vec<Region> {
        let index = |channel: f64| ((channel / CHANNELS.0).ln() / FINE) as usize / COARSE * COARSE;
        let (from, to) = (index(START.0), index(START.1));
        let between = (from..to).step_by(COARSE).map(|index| Region::Between(index, index + COARSE));
        between.chain([Region::Weaker(from), Region::Stronger(to)]).collect()
    }

    /// Cuts regions until every bound is close to the largest value attained at `ε`.
    fn refine(&self, regions: &mut Vec<Region>, at: &AtEpsilon<'_>) {
        let mut reached = self.largest(regions, at);
        let bounded = |region: Region, reached: f64| Bounded(self.bound(region, at, reached), region);
        let mut open: BinaryHeap<Bounded> =
            regions.drain(..).map(|region| bounded(region, reached)).collect();
        while let Some(&Bounded(bound, region)) = open.peek()
            && bound > reached * (1.0 + close(reached))
        {
            open.pop();
            match self.cut(region) {
                None => regions.push(region),
                Some(parts) => {
                    reached = reached.max(self.largest(&parts, at));
                    open.extend(parts.map(|part| bounded(part, reached)));
                }
            }
        }
        regions.extend(open.into_iter().map(|Bounded(_, region)| region));
    }

    /// The index of the rung for an `ε`: the last rung that is not above it.
    fn rung(epsilon: f64) -> usize {
        let rung = (epsilon / LADDER.0).max(1e-9).ln() / LADDER.1.ln();
        (rung.floor() + 1.0).clamp(0.0, RUNGS as f64 - 1.0) as usize
    }

    /// Regions that cover all channels and suit the `ε` from a rung to the next, with their bounds at the rung, in descending order.
    fn regions(&self, rung: usize) -> &[(f64, Region)] {
        self.rungs[rung].get_or_init(|| {
            let [from, to] = [rung, rung + 1].map(|rung| AtEpsilon::at_rung(self, rung));
            let mut regions = self.start();
            self.refine(&mut regions, &from);
            self.refine(&mut regions, &to);
            let reached = self.largest(&regions, &from);
            let mut bounds: Vec<(f64, Region)> =
                regions.into_iter().map(|region| (self.bound(region, &from, reached), region)).collect();
            bounds.sort_by(|a, b| b.0.total_cmp(&a.0));
            bounds
        })
    }

    /// A bound on `δ*(ε)`: the largest bound of all regions. Each bound falls with `ε`, so most of them need not be computed.
    fn supremum(&self, epsilon: f64) -> f64 {
        let regions = self.regions(Self::rung(epsilon));
        let at = AtEpsilon::new(self, epsilon);
        let reached = regions.first().map_or(0.0, |&(_, region)| self.largest(&[region], &at));
        let mut bound = at.strong;
        for &(at_rung, region) in regions {
            if at_rung <= bound {
                break;
            }
            bound = bound.max(self.bound(region, &at, reached));
        }
        bound.min(1.0)
    }

    /// The same bound, stored for repeated calls.
    fn stored_supremum(&self, epsilon: f64) -> f64 {
        let known = || self.suprema.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(&epsilon.to_bits()).copied();
        found.unwrap_or_else(|| {
            let supremum = self.supremum(epsilon);
            known().insert(epsilon.to_bits(), supremum);
            supremum
        })
    }

    /// A channel that is nearly the worst one at a small `δ`; a client may have it in every round.
    fn one_channel(&self) -> &CellsBelow {
        let index = self.one_channel.get_or_init(|| {
            let start = first_at_most(|e| self.strong.lower(e), SMALL, 1e-3, MAX_EPSILON, 1e-3);
            let start = 0.99 * start.unwrap_or(MAX_EPSILON);
            let supremum = |epsilon: f64| self.supremum(epsilon);
            let epsilon =
                first_at_most_from(supremum, SMALL, start, MAX_EPSILON, 1e-3).unwrap_or(MAX_EPSILON);
            self.worst_at(epsilon)
        });
        self.own_below(*index)
    }

    fn infinite(&self) -> f64 {
        2.0 * BEYOND_REACH + self.strong.infinite()
    }

    /// The channel with the largest value among the ends of all regions.
    fn worst_at(&self, epsilon: f64) -> usize {
        let at = AtEpsilon::new(self, epsilon);
        let regions = self.regions(Self::rung(epsilon)).iter();
        let ends = regions.flat_map(|&(_, region)| match region {
            Region::Weaker(index) | Region::Stronger(index) => [index; 2],
            Region::Between(from, to) => [from, to],
        });
        let values = ends.map(|index| (index, at.own(index)));
        values.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(index, _)| index)
    }

    /// A value that some channel attains.
    fn attained(&self, epsilon: f64) -> f64 {
        if self.is_bound {
            return self.strong.lower(epsilon);
        }
        let worst = self.own_below(self.worst_at(epsilon)).delta(epsilon);
        worst.max(self.strong.lower(epsilon))
    }
}

/// Pilot noise in a narrow range of sizes, relative to a channel.
struct Sizes {
    /// The probability of each sign.
    share: f64,
    /// Minimum and maximum of `1/(1 − |e|/t)`, and a bound on its mean.
    above: (f64, f64, f64),
    /// The same for `1/(1 + |e|/t)`.
    below: (f64, f64, f64),
}

/// Panels of `|e|/t` up to [`REACH`]. Both factors are convex in it, so their means are at most the chords at its mean.
fn sizes_relative_to(t: f64) -> Vec<Sizes> {
    /// Width of a panel, and the minimum number of panels.
    const WIDTH: f64 = 0.008;
    const FEWEST: f64 = 8.0;
    let count = (REACH / (WIDTH * t)).ceil().max(FEWEST);
    let panel = |i: usize| {
        let (from, to) = (REACH * i as f64 / count, REACH * (i + 1) as f64 / count);
        let share = normal::between(from, to);
        let mean = ((normal::density(from) - normal::density(to)) / share).clamp(from, to);
        let position = (mean - from) / (to - from);
        let chord = |start: f64, end: f64| start + position * (end - start);
        let [far, near] = [to, from].map(|size| 1.0 / (1.0 - size / t));
        let [high, low] = [from, to].map(|size| 1.0 / (1.0 + size / t));
        Sizes { share, above: (near, far, chord(near, far)), below: (low, high, chord(high, low)) }
    };
    (0..count as usize).map(panel).collect()
}

/// Relative tolerance of a region's bound above the attained value. For small `δ`, it changes `ε` by at most a tenth of that.
fn close(reached: f64) -> f64 {
    if reached > 1e-4 { 0.003 } else { 0.01 }
}

/// `B` for all `μ` that add more than `least` to a curve, in a cell with this width in `ln t`.
fn curvature(epsilon: f64, least: f64, width: f64) -> f64 {
    if epsilon == 0.0 {
        return largest_curvature(0.0, 0.0);
    }
    // δ_G ≤ Φ(−z) ≤ e^{−z²/2} at the cell's strong end, where μ is largest.
    let z = (-2.0 * least.ln()).sqrt();
    let mu = 2.0 * epsilon / (z + (z * z + 2.0 * epsilon).sqrt()) * (-width).exp();
    largest_curvature(epsilon, (epsilon / mu - 0.5 * mu).max(0.0))
}

/// A bound on `f'·(f' − yz)` wherever `ε/μ − μ/2 ≤ z`, for `z ≥ 0`.
fn largest_curvature(epsilon: f64, z: f64) -> f64 {
    let y = (z * z + 2.0 * epsilon).sqrt();
    1.5 * (y * y + y * z + z * z) + 12.0
}

/// The distribution of `Δ·(1 + |e|/c)/ν_γ`, which bounds `μ` for every channel under the clipped projector.
pub fn simple_bound(level: ClipLevel, unused: u64, sensitivity: f64) -> Result<MuDistribution, PrivacyError> {
    simple_bound_of_branches(level, 1, unused, sensitivity)
}

/// The same for sequences that are received on several branches.
fn simple_bound_of_branches(
    level: ClipLevel,
    branches: u32,
    unused: u64,
    sensitivity: f64,
) -> Result<MuDistribution, PrivacyError> {
    let (receiver, c) = (Receiver::Clipped(level), level.get());
    idealised_of_branches(receiver, branches, unused, sensitivity)?;
    let noise = noise_of_branches(receiver, branches, unused, Side::Upper);
    // |e| up to the end of each panel, whose width is 0.4% of 1 + |e|/c.
    let mut ends = vec![0.0];
    while let Some(&end) = ends.last()
        && end < REACH
    {
        ends.push(end + 0.004 * (c + end));
    }
    let sizes: Vec<(f64, f64)> =
        ends.windows(2).map(|pair| (pair[1], 2.0 * normal::between(pair[0], pair[1]))).collect();
    let distribution = without_channel(&noise, |noise| {
        let strong = sensitivity / noise.sqrt();
        sizes.iter().map(move |&(e, weight)| (strong * (1.0 + e / c), weight)).collect::<Vec<_>>()
    });
    Ok(distribution.build())
}

/// The view of a federation. For the clipped projector with unused sequences, it has the additional number `simple_bound`.
pub(super) fn view(setting: &Setting) -> Result<(Source, DetailSource), PrivacyError> {
    let source = setting.decoded(|decoder| {
        let Decoder { receiver, branches, unused, sensitivity, .. } = decoder;
        let curve = AnyChannel::of_branches(receiver, branches, unused, sensitivity);
        Source::or_reason(curve.map(|curve| Box::new(curve) as Box<dyn Curve>))
    })?;
    let details = match setting.decoder()? {
        Some(Decoder { receiver: Receiver::Clipped(c), branches, unused, sensitivity, .. }) if unused > 0 => {
            let bound = simple_bound_of_branches(c, branches, unused, sensitivity)?;
            DetailSource::Bound("simple_bound", boxed(bound))
        }
        _ => DetailSource::Absent,
    };
    Ok((source, details))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `f'·(f' − yz)` from the Mills ratio, on a grid of `ε` from 1e-6 to 1e5 and `z` from −8 to 40, and by differences of `ln δ_G`.
    #[test]
    fn curvature_is_below_its_bound() {
        for i in 0..=220 {
            let epsilon = 10_f64.powf(-6.0 + 0.05 * f64::from(i));
            for j in 0..=480 {
                let z = -8.0 + 0.1 * f64::from(j);
                let y = (z * z + 2.0 * epsilon).sqrt();
                // If z < 0, y − z keeps all digits; otherwise (y² − z²)/(y + z) does.
                let mu = if z < 0.0 { y - z } else { 2.0 * epsilon / (y + z) };
                // The mean of −M' by the midpoint rule; a difference of M loses digits if μ is small.
                let slope = if mu < 1e-3 {
                    normal::mills_slope(z + 0.5 * mu)
                } else {
                    (normal::mills_ratio(z) - normal::mills_ratio(y)) / mu
                };
                let first = 1.0 / slope;
                let curvature = first * (first - y * z);
                let bound = largest_curvature(epsilon, z.max(0.0));
                assert!(curvature <= bound, "ε = {epsilon}, z = {z}: {curvature} above {bound}");
                if (-4.0..4.0).contains(&z) && (0.01..1e3).contains(&epsilon) {
                    let log = |s: f64| crate::numerics::gaussian::delta(epsilon, mu * s.exp()).ln();
                    let h = 1e-3 / (1.0 + y);
                    let (before, here, after) = (log(-h), log(0.0), log(h));
                    let differences = (after - before) / (2.0 * h) - (after - 2.0 * here + before) / (h * h);
                    assert!(
                        (differences - curvature).abs() < 1e-3 * (1.0 + y * y),
                        "ε = {epsilon}, z = {z}: {curvature}, by differences {differences}"
                    );
                }
            }
        }
    }

    /// From 16 noise levels on, for channels up to 30 times as strong, and for a strong client. From 1000 on, the bound is within 3% of
    /// that of a strong client.
    #[test]
    fn bounds_cover_all_stronger_channels() {
        for (receiver, unused) in [
            (Receiver::clipped(1.0).unwrap(), 20),
            (Receiver::clipped(1.0).unwrap(), 3),
            (Receiver::Mmse, 20),
            (Receiver::Mmse, 3),
        ] {
            let worst = Worst::new(receiver, unused, 2.0).unwrap();
            for start in [16.0, 60.0, 1000.0] {
                let bound = worst.distribution_from(start);
                for epsilon in [0.0, 0.3, 2.0, 10.0, 60.0] {
                    let most = bound.upper(epsilon) + bound.infinite();
                    for factor in [1.0, 1.05, 1.5, 4.0, 30.0] {
                        let t = start * factor;
                        let reached = worst.cells_below(t).build_below().delta(epsilon);
                        assert!(reached <= most, "{receiver:?}, {t} at ε = {epsilon}: {reached:e}, {most:e}");
                    }
                    let strong = worst.strong.upper(epsilon);
                    assert!(worst.strong.lower(epsilon) <= most, "{receiver:?} at ε = {epsilon}");
                    assert!(
                        start < 1000.0 || strong < 1e-12 || most <= 1.03 * strong,
                        "{receiver:?} at ε = {epsilon}: {most:e} and {strong:e}"
                    );
                }
            }
        }
    }

    /// Cells of strong channels, from narrow ones to a factor of 1.3. The bound is never below a channel in the cell. From 100 on, a narrow
    /// cell's bound is within 2% of its largest channel.
    #[test]
    fn bounds_cover_all_channels_between() {
        for (receiver, unused) in [
            (Receiver::clipped(1.0).unwrap(), 20),
            (Receiver::clipped(6.0).unwrap(), 3),
            (Receiver::Mmse, 20),
            (Receiver::Mmse, 3),
            (Receiver::Paper, 2),
        ] {
            let worst = Worst::new(receiver, unused, 2.0).unwrap();
            let weakest = pilot::weakest_to_couple(receiver);
            for (start, ratio) in
                [(weakest, 1.01), (weakest, 1.3), (40.0, 1.05), (100.0, 1.01), (1000.0, 1.3)]
            {
                let bound = worst.distribution_between(start, start * ratio);
                for epsilon in [0.0, 0.3, 2.0, 10.0, 60.0] {
                    let most = bound.upper(epsilon) + bound.infinite();
                    let mut largest = 0.0_f64;
                    for part in [0.0, 0.2, 0.5, 0.8, 1.0] {
                        let t = start * ratio.powf(part);
                        let reached = worst.cells_below(t).build_below().delta(epsilon);
                        assert!(reached <= most, "{receiver:?}, {t} at ε = {epsilon}: {reached:e}, {most:e}");
                        largest = largest.max(worst.distribution(t).upper(epsilon));
                    }
                    let is_tight = start < 100.0 || largest < 1e-12 || most <= 1.02 * largest + 2e-32;
                    assert!(is_tight, "{receiver:?}, {start} at ε = {epsilon}: {most:e} and {largest:e}");
                }
            }
        }
    }

    /// The inequalities of the proof: two bounds on `−M'`, and a parabola that rises from a positive value.
    #[test]
    fn inequalities_of_the_proof_hold() {
        for i in 0..=4000 {
            let x = 0.01 * f64::from(i);
            let slope = normal::mills_slope(x);
            assert!(slope * (x * x + 3.0) >= 1.0 - 1e-9 && slope * (x * x + 1.0) <= 1.0 + 1e-9, "at {x}");
        }
        for i in 1..=4000 {
            let x = 10_f64.powf(-2.0 + 0.002 * f64::from(i));
            let r = x / x.atan();
            let (a, b) = (0.5 * x * x - r * (r - 1.0), 3.0 * (1.5 - r));
            // At w = 3, and the derivative there.
            assert!(9.0 * a + 3.0 * b - 1.5 >= 0.0 && a >= 0.0 && 6.0 * a + b >= 0.0, "at {x}");
        }
    }
}
