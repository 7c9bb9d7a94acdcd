//! A guarantee for every channel: the worst over what a client's channel can be.
//!
//! Orthonormal sequences. Client `k` has the channel `t = h_k/s` and the pilot's noise `e` on its own sequence, both in units
//! of the despread noise `s`; `ν_γ² = Σ_{j≤γ} w(G_j)²` comes from the unused sequences ([`crate::Receiver`]). For *any* fixed
//! channels, with `w = |w(t + e)|`,
//!
//! ```text
//! μ_k = Δ·|t|·w/√(w² + ν_γ² + other used sequences)  ≤  Δ·|t|·w/√(w² + ν_γ²)
//! δ*(ε) = sup_t E_{e,G}[δ_G(ε; Δ·|t|·w/√(w² + ν_γ²))]
//! ```
//!
//! whatever the law of fading is, the SNR, and what the adversary knows of the channels. As a supremum of such curves it is one
//! itself, and is sampled and composed like the others.
//!
//! The supremum is taken over channels that lie 4% apart, with a parabola through the worst one and its neighbours; beyond
//! the strongest of them, the limit `t → ∞` stands for all. That is exact to far less than the rounding of the noise, which
//! is on the safe side, but it is not a proof for every `t` in between.
//!
//! For the clipped projector, `w = 1/max(|t + e|, c)`, there is a simple bound: `μ ≤ Δ·(1 + |e|/c)/ν_γ`. For if
//! `|t + e| ≥ c` then `|t|·w ≤ 1 + |e|/|t + e| ≤ 1 + |e|/c`, and if not, `|t| ≤ c + |e|` and `|t|·w = |t|/c ≤ 1 + |e|/c`.

use std::sync::OnceLock;

use crate::error::{PrivacyError, require_positive};
use crate::law::{COARSE_CELL, CellsBuilder, FINE_CELL, Law};
use crate::noise::Noise;
use crate::pilot;
use crate::receiver::Receiver;
use crate::sampling::Curve;
use crate::tabulated::Tabulated;

/// From one channel to the next, `ln t` grows by this much.
const FINE: f64 = 0.04;
/// Every so many of them are looked at first.
const COARSE: usize = 4;
/// The weakest and the strongest channel, in units of the larger of `s` and `c·s`; beyond, the limit of a strong one.
const CHANNELS: (f64, f64) = (0.05, 100.0);
/// Where the worst channel is looked for from scratch: `ε` from 1e-6 to 1e9, four in a decade.
const LADDER: (f64, usize) = (1e-6, 61);

/// A larger `μ` hides nothing that any `ε` could tell of.
const MOST_MU: f64 = 1e8;
/// How far the curve may be off, relatively: it is a supremum over many channels, and has kinks.
const TOLERANCE: f64 = 2e-5;

/// `δ*(ε)`, a curve for every channel.
pub struct AnyChannel {
    curve: Tabulated<Worst>,
}

impl AnyChannel {
    /// For a receiver, `γ` unused sequences and the sensitivity `Δ`.
    pub fn new(receiver: Receiver, unused: u64, sensitivity: f64) -> Result<Self, PrivacyError> {
        Ok(Self { curve: Tabulated::new(Worst::new(receiver, unused, sensitivity)?) })
    }

    /// The law of `μ` for a client with the channel `t = h/s`.
    pub fn law_at(&self, t: f64) -> Law {
        self.curve.curve().law_at(t)
    }

    /// The law of `μ` in the limit of a strong client, `t → ∞`.
    pub fn strong_client(&self) -> &Law {
        &self.curve.curve().strong
    }
}

impl Curve for AnyChannel {
    fn upper(&self, epsilon: f64) -> f64 {
        self.curve.upper(epsilon)
    }

    fn lower(&self, epsilon: f64) -> f64 {
        self.curve.lower(epsilon)
    }

    fn infinite(&self) -> f64 {
        self.curve.infinite()
    }

    fn is_rounded(&self) -> bool {
        true
    }

    fn tolerance(&self) -> f64 {
        TOLERANCE
    }

    fn for_composition(&self) -> Option<&dyn Curve> {
        self.curve.for_composition()
    }
}

impl Curve for Worst {
    fn upper(&self, epsilon: f64) -> f64 {
        self.supremum(epsilon, |law| law.upper(epsilon))
    }

    fn lower(&self, epsilon: f64) -> f64 {
        self.supremum(epsilon, |law| law.lower(epsilon))
    }

    fn infinite(&self) -> f64 {
        pilot::BEYOND_REACH + self.strong.infinite()
    }

    fn is_rounded(&self) -> bool {
        true
    }

    fn tolerance(&self) -> f64 {
        TOLERANCE
    }
}

/// The search for the worst channel.
struct Worst {
    receiver: Receiver,
    sensitivity: f64,
    noise: Noise,
    strong: Law,
    channels: Vec<f64>,
    laws: Vec<OnceLock<Law>>,
    /// For each `ε` of the ladder, the worst of the channels that were looked at.
    at_rung: Vec<usize>,
}

impl Worst {
    fn new(receiver: Receiver, unused: u64, sensitivity: f64) -> Result<Self, PrivacyError> {
        let strong = idealised(receiver, unused, sensitivity)?;
        let scale = if let Receiver::Clipped(c) = receiver { c.max(1.0) } else { 1.0 };
        let count = ((CHANNELS.1 / CHANNELS.0).ln() / FINE) as usize;
        let channels: Vec<f64> = (0..=count).map(|i| scale * CHANNELS.0 * (i as f64 * FINE).exp()).collect();
        let laws = channels.iter().map(|_| OnceLock::new()).collect();
        let noise = receiver.noise_of_unused(unused).coarse();
        let mut worst = Self { receiver, sensitivity, noise, strong, channels, laws, at_rung: Vec::new() };
        worst.at_rung = (0..LADDER.1).map(|rung| worst.worst_of_coarse(ladder(rung))).collect();
        Ok(worst)
    }

    fn law_at(&self, t: f64) -> Law {
        let largest = self.sensitivity * t.abs();
        let mut cells = CellsBuilder::new(largest, COARSE_CELL, self.noise.slack);
        for (estimate, weight) in pilot::estimates(self.receiver, t) {
            let w = self.receiver.weight(estimate);
            for &(noise, mass) in self.noise.values() {
                cells.add(largest * w / (w * w + noise).sqrt(), weight * mass);
            }
        }
        cells.add(largest, self.noise.none);
        cells.add_infinite(pilot::BEYOND_REACH);
        cells.build()
    }

    fn law(&self, channel: usize) -> &Law {
        self.laws[channel].get_or_init(|| self.law_at(self.channels[channel]))
    }

    fn worst_of_coarse(&self, epsilon: f64) -> usize {
        let coarse = (0..self.channels.len()).step_by(COARSE);
        let values = coarse.map(|channel| (channel, self.law(channel).upper(epsilon)));
        values.fold((0, f64::NEG_INFINITY), |best, this| if this.1 > best.1 { this } else { best }).0
    }

    /// Channels to climb from: the worst ones at the rungs around `ε`.
    fn starts(&self, epsilon: f64) -> [usize; 2] {
        let rung = ((epsilon / LADDER.0).max(1.0).log10() * 4.0) as usize;
        let last = self.at_rung.len() - 1;
        [self.at_rung[rung.min(last)], self.at_rung[(rung + 1).min(last)]]
    }

    /// Climbs from a channel to the worst one nearby; three neighbours give the top of a parabola through `ln δ`.
    fn climb(&self, from: usize, value: impl Fn(usize) -> f64) -> f64 {
        let last = self.channels.len() - 1;
        let (mut here, mut at) = (from, value(from));
        loop {
            let below = if here > 0 { value(here - 1) } else { 0.0 };
            let above = if here < last { value(here + 1) } else { 0.0 };
            if below > at {
                (here, at) = (here - 1, below);
            } else if above > at {
                (here, at) = (here + 1, above);
            } else {
                return top_of_parabola(below, at, above);
            }
        }
    }

    fn supremum(&self, epsilon: f64, value: impl Fn(&Law) -> f64) -> f64 {
        let [first, second] = self.starts(epsilon);
        let climb = |from: usize| self.climb(from, |channel| value(self.law(channel)));
        let worst = climb(first).max(value(&self.strong));
        if second == first { worst } else { worst.max(climb(second)) }
    }
}

fn ladder(rung: usize) -> f64 {
    LADDER.0 * 10_f64.powf(rung as f64 / 4.0)
}

/// The largest value of the parabola through the logarithms of three neighbours, of which the middle one is largest.
fn top_of_parabola(below: f64, at: f64, above: f64) -> f64 {
    if below <= 0.0 || above <= 0.0 || at <= 0.0 {
        return at;
    }
    let (left, right) = ((below / at).ln(), (above / at).ln());
    let bend = left + right;
    if bend >= -1e-12 { at } else { at * (-(right - left).powi(2) / (8.0 * bend)).exp() }
}

/// The law of `μ` at high SNR, where only the noise of the unused sequences counts: `Δ/ν_γ`.
pub fn idealised(receiver: Receiver, unused: u64, sensitivity: f64) -> Result<Law, PrivacyError> {
    receiver.check()?;
    require_positive("the sensitivity", sensitivity)?;
    if unused == 0 {
        return Err(PrivacyError::NoUnusedSequences);
    }
    if receiver == Receiver::Paper {
        return Ok(Law::HalfNormal { scale: sensitivity / unused as f64 });
    }
    let noise = receiver.noise_of_unused(unused);
    Ok(without_channel(&noise, |noise| [(sensitivity / noise.sqrt(), 1.0)]))
}

/// The law of `Δ·(1 + |e|/c)/ν_γ`, above that of `μ` for every channel under the clipped projector.
pub fn simple_bound(c: f64, unused: u64, sensitivity: f64) -> Result<Law, PrivacyError> {
    let receiver = Receiver::Clipped(c);
    idealised(receiver, unused, sensitivity)?;
    let sizes = pilot::sizes();
    let noise = receiver.noise_of_unused(unused);
    let law = without_channel(&noise, |noise| {
        let strong = sensitivity / noise.sqrt();
        sizes.iter().map(move |&(e, weight)| (strong * (1.0 + e / c), weight)).collect::<Vec<_>>()
    });
    Ok(law)
}

/// A law whose `μ` has no limit but the noise: what is without noise is infinite.
fn without_channel<I>(noise: &Noise, values_of: impl Fn(f64) -> I) -> Law
where
    I: IntoIterator<Item = (f64, f64)>,
{
    let of = |&(square, mass): &(f64, f64)| {
        values_of(square).into_iter().map(move |(mu, weight)| (mu, weight * mass))
    };
    let values = || noise.values().iter().flat_map(of);
    let largest = values().map(|(mu, _)| mu).filter(|&mu| mu < MOST_MU).fold(0.0, f64::max);
    let mut cells = CellsBuilder::new(largest, FINE_CELL, noise.slack);
    for (mu, mass) in values() {
        if mu < MOST_MU { cells.add(mu, mass) } else { cells.add_infinite(mass) }
    }
    cells.add_infinite(noise.none + pilot::BEYOND_REACH);
    cells.build()
}
