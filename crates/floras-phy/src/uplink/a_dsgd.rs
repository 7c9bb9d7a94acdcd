//! A-DSGD: sparse updates, projected at random and added by the air, recovered by approximate message passing.
//!
//! A client adds its update to what it has not sent so far, `e_k ← e_k + x_k`, and takes out the `k` values of largest magnitude, `v_k`.
//! It sends their [projection](Projection) to `s − 1` numbers and, in one more symbol, the factor that brings them to the power 1:
//!
//! ```text
//! √a_k·(A·v_k, 1),     a_k = s/(‖A·v_k‖² + 1)
//! ```
//!
//! with [truncated inversion](super::BroadbandInversion) of its channel. A client below the threshold is silent and keeps all of `e_k`. The
//! base station divides by the sum of factors that it receives, recovers the weighted mean by [message passing](Amp), and multiplies by
//! the number of clients:
//!
//! ```text
//! y = √ρ₀·Σ_{k admitted} √a_k·(A·v_k, 1) + σ·n,     x̃ = K·AMP(y_1…y_{s−1}/y_s)
//! ```
//!
//! A round in which no client is admitted, or `y_s ≤ 0`, has the sum 0.
//!
//! What an admitted client sends has exactly the energy `s`, whatever its data and its memory are. Two transmissions differ by less than
//! `2√s` in norm. The factors `a_k` depend on the data; the bound does not use them.
//!
//! # Citations
//! Amiri, Gündüz, *Machine learning at the wireless edge: distributed stochastic gradient descent over-the-air*, IEEE TSP 68 (2020),
//! arXiv:1901.00844; Amiri, Gündüz, *Federated learning over wireless fading channels*, IEEE TWC 19 (2020), arXiv:1907.09769, for
//! truncated inversion. The papers have a matrix of independent Gaussian entries.

use floras_core::random::Purpose;
use floras_core::{Admission, NoiseReference, Snr};
use rayon::prelude::*;

use super::error_feedback::{channel_uses, require_uses};
use super::groups::add_in_groups;
use super::largest::{Largest, Order};
use super::nonlinear::{Nonlinear, Received};
use super::{BroadbandInversion, BroadbandInversionSettings, Sent, Uplink};
use crate::amp::Amp;
use crate::channels::Channels;
use crate::cost::Cost;
use crate::effective::EffectiveChannel;
use crate::error::{UplinkError, require};
use crate::memory::ClientMemory;
use crate::projection::Projection;
use crate::round::Round;

/// The relative change of the residual's energy at which recovery has converged.
const TOLERANCE: f64 = 1e-4;

/// Settings of A-DSGD.
#[derive(Clone, Debug, PartialEq)]
pub struct ADsgdSettings {
    /// `s/d`: channel uses per parameter, from 0.001 to 1. A round has at least two.
    pub uses_per_parameter: f64,
    /// `k/s`: values that a client sends, per channel use, from 0.001 to 1. It sends at least one.
    pub kept: f64,
    /// The maximum number of iterations of the recovery, from 1 to 100,000.
    pub iterations: u32,
    /// The threshold at which clients are admitted.
    pub admission: Admission,
    /// Sequence length `L` to which the SNR refers, from 1 to 2²⁴.
    pub length: usize,
    /// Source of the channel coefficients: a distribution, with the same mean power for all clients, which clients know without error.
    pub channels: Channels,
    /// Signal-to-noise ratio, with the noise power that it refers to.
    pub snr: Snr,
}

/// The uplink with compressed analog updates.
#[derive(Clone, Debug, PartialEq)]
pub struct ADsgd {
    channel: BroadbandInversion,
    uses_per_parameter: f64,
    kept: f64,
    amp: Amp,
}

impl ADsgd {
    /// Builds the uplink. Settings out of range are errors; so are channels that age, or that clients know with an error.
    pub fn new(settings: ADsgdSettings) -> Result<Self, UplinkError> {
        let ADsgdSettings { uses_per_parameter, kept, iterations, admission, length, channels, snr } =
            settings;
        require_uses(uses_per_parameter)?;
        let holds = (1e-3..=1.0).contains(&kept);
        require(holds, "the number of values that are sent, per channel use", "between 0.001 and 1", kept)?;
        let error = channels.estimation_error_std();
        require(error == 0.0, "the error of a client's channel estimate", "0 for A-DSGD", error)?;
        require(!channels.ages(), "the ageing of channels", "none for A-DSGD", 1.0)?;
        let noise = NoiseReference::PerSymbol;
        let settings = BroadbandInversionSettings { admission, subcarriers: 1, noise, length, channels, snr };
        let channel = BroadbandInversion::new(settings)?;
        Ok(Self { channel, uses_per_parameter, kept, amp: Amp::new(iterations, TOLERANCE)? })
    }

    /// `s`: channel uses of the payload of a round.
    pub fn channel_uses(&self, parameters: usize) -> usize {
        channel_uses(self.uses_per_parameter, parameters)
    }

    /// `k`: number of values that a client sends.
    pub fn kept(&self, parameters: usize) -> usize {
        let kept = (self.kept * self.channel_uses(parameters) as f64) as usize;
        kept.clamp(1, parameters.max(1))
    }

    /// `μ` of a round with `parameters` parameters for a base station that keeps its samples: `2·√(ρ₀·s)/σ`, a bound whatever the client
    /// sends.
    pub fn mu(&self, parameters: usize) -> f64 {
        2.0 * (self.channel_uses(parameters) as f64).sqrt() / self.channel.noise_over_amplitude()
    }

    /// Takes values out of the sum `unsent` of a client's update and its memory, and writes their measurements to the image of the
    /// workspace, at the rows of the projection. Returns `√a`, by which the client multiplies them.
    fn encode(&self, projection: &Projection, unsent: &mut [f32], workspace: &mut Workspace) -> f64 {
        let kept = self.kept(unsent.len());
        factor(projection, pulp::Arch::new().dispatch(Encode { projection, kept, unsent, workspace }))
    }
}

/// Memory that clients use one after another.
struct Workspace {
    image: Vec<f32>,
    /// Where the search for the largest values begins.
    hint: i32,
}

impl Workspace {
    fn new(projection: &Projection) -> Self {
        Self { image: vec![0.0; projection.size()], hint: 0 }
    }
}

/// The measurements of the largest values, which are taken out. Returns the sum of the measurements' squares.
struct Encode<'a> {
    projection: &'a Projection,
    kept: usize,
    unsent: &'a mut [f32],
    workspace: &'a mut Workspace,
}

impl pulp::WithSimd for Encode<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> f64 {
        let Self { projection, kept, unsent, workspace: Workspace { image, hint } } = self;
        let (values, padding) = image.split_at_mut(unsent.len());
        Largest::find(unsent, Order::Magnitude, kept, hint).take(unsent, values);
        for (value, sign) in values.iter_mut().zip(projection.signs()) {
            *value *= sign;
        }
        padding.fill(0.0);
        f64::from(projection.measure(image))
    }
}

/// Adds multiples of numbers to sums.
struct AddMultiple<'a> {
    factor: f32,
    values: &'a [f32],
    sums: &'a mut [f32],
}

impl pulp::WithSimd for AddMultiple<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        for (sum, value) in self.sums.iter_mut().zip(self.values) {
            *sum = self.factor.mul_add(*value, *sum);
        }
    }
}

/// `√a` of a client whose measurements have the sum of squares `square`. A client whose measurements are too large for a number sends
/// zeros.
fn factor(projection: &Projection, square: f64) -> f64 {
    if !square.is_finite() {
        return 0.0;
    }
    ((projection.measurements() as f64 + 1.0) / (square + 1.0)).sqrt()
}

impl Uplink for ADsgd {
    fn name(&self) -> &'static str {
        "a-dsgd"
    }

    fn realise(&self, _: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        Err(UplinkError::NotLinear { scheme: self.name() })
    }

    fn nonlinear(&self) -> Option<&dyn Nonlinear> {
        Some(self)
    }
}

impl Nonlinear for ADsgd {
    fn receive(
        &self,
        round: &Round<'_>,
        updates: &[Sent<'_>],
        memory: &mut ClientMemory,
        decoded: &mut [f32],
    ) -> Result<Received, UplinkError> {
        let (parameters, clients) = (decoded.len(), round.clients());
        let uses = self.channel_uses(parameters);
        let projection = Projection::draw(&mut round.stream(Purpose::PROJECTION), parameters, uses - 1)?;
        let size = projection.size();
        let channel = self.channel.realise(round)?;
        let unsent = memory.of_each(clients, parameters).into_par_iter();
        // The measurements of the sum are the sum of the measurements. They are at the rows of the transform, with 0 at the others.
        let add = |((unsent, update), gain): ((&mut [f32], &Sent<'_>), &f64),
                   workspace: &mut Workspace,
                   sum: &mut [f32]| {
            update.add_to(unsent);
            (*gain > 0.0).then(|| {
                let factor = self.encode(&projection, unsent, workspace);
                let values = &workspace.image;
                pulp::Arch::new().dispatch(AddMultiple { factor: factor as f32, values, sums: sum });
                factor
            })
        };
        let sent = unsent.zip(updates).zip(channel.gains());
        let (mut received, factors) = add_in_groups(sent, size, || Workspace::new(&projection), add);
        let is_sent = factors.iter().any(Option::is_some);
        let mut noise = vec![0.0; uses];
        round.stream_name(Purpose::PAYLOAD_NOISE).normals().fill(0, &mut noise);
        let noise_std = self.channel.noise_over_amplitude();
        let received_factors =
            factors.into_iter().flatten().sum::<f64>() + noise_std * f64::from(noise[uses - 1]);
        decoded.fill(0.0);
        // Whether someone is admitted depends on channels alone, and `y_s` has the receiver's noise: no test of the data without noise.
        if is_sent && received_factors > 0.0 {
            for (&row, noise) in projection.rows().iter().zip(&noise) {
                let sample = &mut received[row as usize];
                *sample = ((f64::from(*sample) + noise_std * f64::from(*noise)) / received_factors) as f32;
            }
            let mean = self.amp.recover_rows(&projection, &received).vector;
            let count = updates.len() as f32;
            decoded.iter_mut().zip(mean).for_each(|(sum, mean)| *sum = count * mean);
        }
        // Every symbol of an admitted client has the mean power 1 before the inversion.
        let transmission = self.channel.transmission(round)?;
        let cost = transmission.map(|sent| Cost::new(&sent, &vec![1.0; clients.len()], uses)).transpose()?;
        Ok(Received { channel: None, cost })
    }

    fn keeps_memory(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use floras_core::{Fading, SnrConvention};

    use super::*;
    use crate::aggregation::Aggregation;
    use crate::updates::random_updates;

    const PARAMETERS: usize = 600;

    fn settings(fading: Fading, snr_db: f64) -> ADsgdSettings {
        ADsgdSettings {
            uses_per_parameter: 0.5,
            kept: 0.1,
            iterations: 200,
            admission: Admission::at_amplitude(0.5).unwrap(),
            length: 32,
            channels: fading.into(),
            snr: Snr::new(snr_db, SnrConvention::Symbol).unwrap(),
        }
    }

    fn a_dsgd(fading: Fading, snr_db: f64) -> ADsgd {
        ADsgd::new(settings(fading, snr_db)).unwrap()
    }

    /// Updates with 30 values at the same places.
    fn sparse_updates(clients: u32) -> Vec<Vec<f32>> {
        let mut updates = random_updates(clients, PARAMETERS);
        for update in &mut updates {
            update.iter_mut().enumerate().filter(|(i, _)| i % 20 != 3).for_each(|(_, x)| *x = 0.0);
        }
        updates
    }

    /// Clients with the same norm of `A·v` have the same weight. Here all have the same update, up to a sign.
    #[test]
    fn sparse_means_are_recovered() {
        let clients = [0, 1, 2];
        let first = sparse_updates(1).remove(0);
        let negative = first.iter().map(|x| -x).collect();
        let updates = [first.clone(), negative, first.clone()];
        let round = Round::new(1, 0, 1, &clients).unwrap();
        let uplink =
            ADsgd::new(ADsgdSettings { snr: Snr::NOISELESS, ..settings(Fading::None, 0.0) }).unwrap();
        let (mut memory, sum) = (ClientMemory::default(), vec![0.0; PARAMETERS]);
        let aggregation = Aggregation::default();
        let aggregate = aggregation.run_in(&uplink, round, &updates, Some(&mut memory), sum).unwrap();
        let error = aggregate.sum.iter().zip(&first).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(error < 1e-3, "{error}");
        assert!(memory.iter().all(|(_, unsent)| unsent.iter().all(|&x| x == 0.0)));
    }

    /// The same round computed from the public parts: noise, weights, and a scale that arrives with noise of its own.
    #[test]
    fn rounds_follow_the_formula() {
        let clients = [4, 9];
        let updates = sparse_updates(2);
        let (uplink, sum) = (a_dsgd(Fading::None, 10.0), vec![0.0; PARAMETERS]);
        let round = Round::new(1, 0, 1, &clients).unwrap();
        let mut memory = ClientMemory::default();
        let aggregation = Aggregation::default();
        let decoded = aggregation.run_in(&uplink, round, &updates, Some(&mut memory), sum).unwrap().sum;
        let projection = Projection::draw(&mut round.stream(Purpose::PROJECTION), PARAMETERS, 299).unwrap();
        let mut samples = vec![0.0; 300];
        round.stream_name(Purpose::PAYLOAD_NOISE).normals().fill(0, &mut samples);
        samples.iter_mut().for_each(|sample| *sample *= 0.1_f32.sqrt());
        for update in &updates {
            let measured = projection.project(update).unwrap();
            let square: f32 = measured.iter().map(|x| x * x).sum();
            let factor = (300.0 / (square + 1.0)).sqrt();
            samples.iter_mut().zip(measured.iter().chain(&[1.0])).for_each(|(y, x)| *y += factor * x);
        }
        let scaled: Vec<f32> = samples[..299].iter().map(|y| y / samples[299]).collect();
        let expected = Amp::new(200, TOLERANCE).unwrap().recover(&projection, &scaled).unwrap().vector;
        let error = decoded.iter().zip(expected).map(|(a, b)| (a - 2.0 * b).abs()).fold(0.0, f32::max);
        assert!(error < 1e-3, "{error}");
    }

    /// A client that is alone and sends without noise: what is decoded and what it keeps are the sum of its updates.
    #[test]
    fn nothing_is_lost_or_sent_twice() {
        let snr = Snr::NOISELESS;
        let uplink = ADsgd::new(ADsgdSettings { snr, ..settings(Fading::Rayleigh, 0.0) }).unwrap();
        let update = random_updates(1, PARAMETERS);
        let (mut memory, mut total) = (ClientMemory::default(), vec![0.0_f32; PARAMETERS]);
        let mut silent = 0;
        for number in 1..=30_u8 {
            let round = Round::new(1, 0, number.into(), &[7]).unwrap();
            let sum = vec![0.0; PARAMETERS];
            let before = memory.of(7, PARAMETERS).to_vec();
            let aggregation = Aggregation::default();
            let sum = aggregation.run_in(&uplink, round, &update, Some(&mut memory), sum).unwrap().sum;
            total.iter_mut().zip(&sum).for_each(|(total, x)| *total += x);
            if sum.iter().all(|&x| x == 0.0) {
                silent += 1;
                let kept = before.iter().zip(&update[0]).map(|(unsent, x)| unsent + x);
                assert!(kept.zip(memory.of(7, PARAMETERS)).all(|(a, b)| a == *b));
            }
            for ((total, unsent), x) in total.iter().zip(memory.of(7, PARAMETERS)).zip(&update[0]) {
                let expected = f32::from(number) * x;
                assert!((total + *unsent - expected).abs() < 0.02, "{number}: {total}, {unsent}, {expected}");
            }
        }
        // P(|h| < ½) = 1 − e^−¼ = 0.22: more than 20 of 30 are silent with probability below 1e-8.
        assert!((1..=20).contains(&silent), "{silent}");
    }

    /// What clients send has the energy `s`. Over pairs of updates and memories of any size, two transmissions never differ by `2√s`, and
    /// a large update and its negative nearly do.
    #[test]
    fn transmissions_differ_within_the_bound() {
        let uplink = a_dsgd(Fading::None, 0.0);
        let mut stream = Round::new(1, 0, 1, &[0]).unwrap().stream(Purpose::PROJECTION);
        let projection = Projection::draw(&mut stream, PARAMETERS, 299).unwrap();
        let sent = |update: &[f32], scale: f32| {
            let mut unsent: Vec<f32> = update.iter().map(|x| scale * x).collect();
            let mut workspace = Workspace::new(&projection);
            let factor = uplink.encode(&projection, &mut unsent, &mut workspace);
            let measured = projection.rows().iter().map(|&row| workspace.image[row as usize]);
            let symbols = measured.chain([1.0]).map(|x| factor * f64::from(x));
            symbols.collect::<Vec<f64>>()
        };
        // σ = 1 and ρ₀ = 1.
        let bound = uplink.mu(PARAMETERS);
        assert!((bound - 2.0 * 300_f64.sqrt()).abs() < 1e-9);
        let updates = random_updates(20, PARAMETERS);
        let mut largest = 0.0_f64;
        for scale in [1e-6, 1.0, 1e6] {
            for (left, right) in updates.iter().zip(&updates[1..]) {
                for other in [1.0, -1.0, -1e-3] {
                    let [a, b] = [sent(left, scale), sent(right, scale * other)];
                    let same = sent(left, -scale);
                    let energy: f64 = a.iter().map(|x| x * x).sum();
                    assert!((energy / 300.0 - 1.0).abs() < 1e-4, "{energy}");
                    for b in [b, same] {
                        let distance = a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                        assert!(distance <= bound * (1.0 + 1e-5), "{distance}, {bound}");
                        largest = largest.max(distance);
                    }
                }
            }
        }
        assert!(largest > 0.9999 * bound, "{largest}, {bound}");
    }

    /// The mean of `ρ₀/|h|²` over admitted clients is 1, and 0 counts for the others. The mean of 4000 has a standard error of 0.019
    /// (`E[1/|h|⁴; |h|² ≥ ¼]/E₁(¼)² − 1 = 1.40`); the test allows five.
    #[test]
    fn clients_send_at_unit_power() {
        let (uplink, clients) = (a_dsgd(Fading::Rayleigh, 10.0), (0..4000).collect::<Vec<u32>>());
        let (mut memory, updates) = (ClientMemory::default(), vec![vec![1.0; 20]; 4000]);
        let round = Round::new(1, 0, 1, &clients).unwrap();
        let aggregation = Aggregation::default();
        let aggregate =
            aggregation.run_in(&uplink, round, &updates, Some(&mut memory), vec![0.0; 20]).unwrap();
        let cost = aggregate.cost(&uplink, &round).unwrap().unwrap();
        assert_eq!((cost.payload_uses, cost.pilot_uses, cost.control_uses), (10, 4000, 4000));
        assert!((cost.power_mean - 1.0).abs() < 0.1, "{}", cost.power_mean);
        assert!(Aggregation::default().run(&uplink, round, &updates).is_err());
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let sound = || settings(Fading::Rayleigh, 10.0);
        let erring = Channels::from(Fading::Rayleigh).with_estimation_error(0.1).unwrap();
        for wrong in [
            ADsgdSettings { uses_per_parameter: 0.0, ..sound() },
            ADsgdSettings { kept: 1.5, ..sound() },
            ADsgdSettings { iterations: 0, ..sound() },
            ADsgdSettings { length: 0, ..sound() },
            ADsgdSettings { channels: erring, ..sound() },
        ] {
            assert!(ADsgd::new(wrong).is_err());
        }
        assert_eq!([1, 2, 10].map(|parameters| a_dsgd(Fading::None, 0.0).kept(parameters)), [1, 1, 1]);
    }
}
