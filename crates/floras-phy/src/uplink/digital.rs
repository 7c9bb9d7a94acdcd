//! A digital baseline: orthogonal access, quantised updates, and outage.
//!
//! Every client has its own share `1/K` of the channel uses and sends its update with error correction at `r` bits per complex channel
//! use. It knows no channel. With the mean power 1 over the whole round a client sends at power `K` in its share, and is received unless
//! its channel is in outage:
//!
//! ```text
//! log₂(1 + |h_k|²·K/(2σ²)) < r
//! ```
//!
//! The rate is a number, or the one that is in outage with a given probability.
//!
//! With `s` levels an update is quantised by QSGD, `Q(x)_i = ‖x‖·sign(x_i)·ξ_i` with `ξ_i ∈ {l/s, (l+1)/s}` drawn so that its mean is
//! `|x_i|/‖x‖`. It takes `d·⌈log₂(2s + 1)⌉ + 32` bits; without levels, 32 bits per parameter. The `K_r` updates that are received are scaled
//! to the number of clients:
//!
//! ```text
//! x̃ = K/K_r·(Σ_{k received} Q(x_k) + σ_c·n),     K·⌈bits/r⌉ channel uses
//! ```
//!
//! The base station needs the channel of every client to decode its update. So each client sends a pilot of unit power before, in one more
//! channel use. The estimate is taken as exact.
//!
//! The base station sees every update. A trusted one can add noise `σ_c` to their sum; it then shortens quantised updates to the norm that
//! they were sent with, so that a client moves the sum by at most `2C`. If no update is received, the sum is 0.
//!
//! # Citations
//! Alistarh, Grubic, Li, Tomioka, Vojnovic, *QSGD: communication-efficient SGD via gradient quantization and encoding*, NeurIPS 2017.
//! The code here has a fixed length, which is longer than that paper's Elias code for few levels.

use floras_core::Snr;
use floras_core::random::{Purpose, TILE, WordField, tile_of_words};
use rayon::prelude::*;

use super::groups::add_in_groups;
use super::nonlinear::{Nonlinear, Received};
use super::{Sent, Uplink};
use crate::channels::Channels;
use crate::cost::{Cost, Transmission};
use crate::effective::EffectiveChannel;
use crate::error::{UplinkError, require};
use crate::memory::ClientMemory;
use crate::precode::{self, Scale};
use crate::round::Round;
use crate::sequences::check_sizes;

/// Bits of a number that is not quantised.
const NUMBER_BITS: u64 = 32;
/// The smallest rate of a single client, in bits per complex channel use: the channel uses of a round are then far from the limits of
/// 64 bits.
const MIN_RATE: f64 = 1e-6;
const TWO_TO_MINUS_32: f64 = 1.0 / 4_294_967_296.0;

/// The rate of a client's code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CodeRate {
    /// Bits per complex channel use, from 0.001 to 100.
    Bits(f64),
    /// The rate that is in outage with this probability, from 1e-9 to 0.999: `r = log₂(1 + q·K/(2σ²))` with the quantile `q` of `|h|²`.
    Outage(f64),
}

/// Settings of the digital baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct DigitalSettings {
    /// `s`: quantisation levels above 0, from 1 to 65,535; `None` for numbers of 32 bits. A value is one of `2s + 1` symbols, so that
    /// `2ⁿ − 1` levels use `n + 1` bits in full: 63 levels take 7 bits, 64 take 8.
    pub levels: Option<u32>,
    /// `r`: bits per complex channel use.
    pub rate: CodeRate,
    /// `σ_c`: standard deviation of the noise that the base station adds to each parameter of the sum, from 0 to 1e30.
    pub central_noise_std: f64,
    /// Sequence length `L` to which the SNR refers, from 1 to 2²⁴.
    pub length: usize,
    /// Source of the channel coefficients.
    pub channels: Channels,
    /// Signal-to-noise ratio, with the noise power that it refers to.
    pub snr: Snr,
}

/// The uplink with orthogonal access.
#[derive(Clone, Debug, PartialEq)]
pub struct Digital {
    settings: DigitalSettings,
    noise_std: f64,
    /// `q`: the `|h|²` that a rate by outage is for; `None` for a rate in bits.
    weakest: Option<f64>,
}

impl Digital {
    /// Builds the uplink. A number out of range is an error. So are a rate by outage over a trace, fixed channels or clients of unequal
    /// mean power, for which the probability is not defined, a rate by outage without noise, and one below 1e-6 bits for a single client.
    pub fn new(settings: DigitalSettings) -> Result<Self, UplinkError> {
        let DigitalSettings { levels, rate, central_noise_std, length, snr, ref channels } = settings;
        if let Some(levels) = levels {
            let holds = (1..=65_535).contains(&levels);
            require(holds, "the number of quantisation levels", "between 1 and 65535", levels.into())?;
        }
        let noise_std = snr.symbol_noise_std(length.max(1));
        let weakest = match rate {
            CodeRate::Bits(bits) => {
                require((1e-3..=100.0).contains(&bits), "the rate", "between 0.001 and 100 bits", bits)?;
                None
            }
            CodeRate::Outage(probability) => {
                let holds = (1e-9..=0.999).contains(&probability);
                require(holds, "the probability of outage", "between 1e-9 and 0.999", probability)?;
                require(noise_std > 0.0, "the noise", "above 0 for a rate by outage", noise_std)?;
                let Some(fading) = channels.fading().filter(|_| !channels.is_unequal()) else {
                    return Err(UplinkError::UnknownMeanPower { channels: channels.to_string() });
                };
                Some(fading.amplitude_quantile(probability).powi(2))
            }
        };
        let holds = (0.0..=1e30).contains(&central_noise_std);
        require(holds, "the central noise's standard deviation", "between 0 and 1e30", central_noise_std)?;
        check_sizes(1, length)?;
        let uplink = Self { settings, noise_std, weakest };
        let rate = uplink.rate(1);
        let (name, allowed) = ("the rate by outage of a single client", "at least 1e-6 bits per channel use");
        require(rate >= MIN_RATE, name, allowed, rate)?;
        Ok(uplink)
    }

    /// Bits of one update with `parameters` parameters.
    pub fn bits(&self, parameters: usize) -> u64 {
        match self.settings.levels {
            None => parameters as u64 * NUMBER_BITS,
            Some(levels) => {
                let symbols = 2 * u64::from(levels) + 1;
                parameters as u64 * u64::from(symbols.next_power_of_two().ilog2()) + NUMBER_BITS
            }
        }
    }

    /// `r`: bits per complex channel use in a round with `clients` clients.
    pub fn rate(&self, clients: usize) -> f64 {
        match (self.settings.rate, self.weakest) {
            (CodeRate::Bits(bits), _) => bits,
            (CodeRate::Outage(_), weakest) => {
                let snr = weakest.unwrap_or(0.0) * clients as f64 / (2.0 * self.noise_std * self.noise_std);
                snr.ln_1p() / std::f64::consts::LN_2
            }
        }
    }

    /// Complex channel uses of the payload of a round: those of all clients, one after another.
    pub fn payload_uses(&self, clients: usize, parameters: usize) -> u64 {
        clients as u64 * (self.bits(parameters) as f64 / self.rate(clients)).ceil() as u64
    }

    /// The smallest `|h|²` at which an update of a round with `clients` clients is received.
    pub fn outage_power(&self, clients: usize) -> f64 {
        // Without fading, all channels have the power of the quantile, up to rounding.
        self.weakest.map_or_else(
            || (self.rate(clients).exp2() - 1.0) * 2.0 * self.noise_std * self.noise_std / clients as f64,
            |weakest| weakest * (1.0 - 1e-9),
        )
    }

    /// `K/K_r` for clients that are received, 0 for the others.
    fn gains(&self, round: &Round<'_>) -> Result<Vec<f64>, UplinkError> {
        let weakest = self.outage_power(round.selected_count());
        let channels = self.settings.channels.draw(round)?;
        let received: Vec<bool> = channels.iter().map(|h| h.norm_sqr() >= weakest).collect();
        let count = received.iter().filter(|&&received| received).count().max(1);
        let share = received.len() as f64 / count as f64;
        Ok(received.into_iter().map(|received| share * f64::from(received)).collect())
    }

    /// The effective channel of updates that are received without error.
    fn channel(&self, gains: Vec<f64>) -> Result<EffectiveChannel, UplinkError> {
        let share = gains.iter().copied().fold(0.0, f64::max);
        EffectiveChannel::new(gains, share * self.settings.central_noise_std)
    }
}

/// Quantises what a client sends, with `levels` levels. With `shorten` the result is never longer than that.
fn quantise(sent: &Sent<'_>, levels: u32, shorten: bool, words: WordField, quantised: &mut [f32]) {
    let norm = sent.norm();
    if norm == 0.0 {
        quantised.fill(0.0);
        return;
    }
    let (update, Scale { mean, factor }, levels) = (sent.update(), sent.scale(), f64::from(levels));
    let (scale, step) = (levels / norm * factor, norm / levels);
    pulp::Arch::new().dispatch(Quantise { update, mean, scale, levels, step, words, quantised });
    let length = if shorten { precode::norm(quantised) } else { 0.0 };
    if length > norm {
        let factor = (norm / length * (1.0 - 1e-6)) as f32;
        quantised.iter_mut().for_each(|x| *x *= factor);
    }
}

/// Writes `step·min(⌊scale·|x − mean| + u⌋, levels)` for the values `x` of an update, with the signs of `x − mean` and `u` uniform on
/// [0, 1).
struct Quantise<'a> {
    update: &'a [f32],
    mean: f64,
    scale: f64,
    levels: f64,
    step: f64,
    words: WordField,
    quantised: &'a mut [f32],
}

impl pulp::WithSimd for Quantise<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { update, mean, scale, levels, step, words, quantised } = self;
        for (tile, (values, quantised)) in update.chunks(TILE).zip(quantised.chunks_mut(TILE)).enumerate() {
            let words = tile_of_words(&words, tile as u64);
            for ((value, word), quantised) in values.iter().zip(&words).zip(quantised) {
                // As a signed number, because converting unsigned words takes several instructions where there is no AVX-512. The
                // probability of the upper level is exact to 2⁻³².
                let uniform = f64::from(*word as i32) * TWO_TO_MINUS_32 + 0.5;
                let value = f64::from(*value) - mean;
                // Rounding of the norm can raise the largest value above the highest level.
                let level = (value.abs() * scale + uniform).floor().min(levels);
                *quantised = (level * step).copysign(value) as f32;
            }
        }
    }
}

impl Uplink for Digital {
    fn name(&self) -> &'static str {
        "digital"
    }

    fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        match self.settings.levels {
            None => self.channel(self.gains(round)?),
            Some(_) => Err(UplinkError::NotLinear { scheme: self.name() }),
        }
    }

    fn nonlinear(&self) -> Option<&dyn Nonlinear> {
        self.settings.levels.is_some().then_some(self)
    }

    /// Symbols of unit power, whatever the update is.
    fn transmission(&self, round: &Round<'_>) -> Result<Option<Transmission>, UplinkError> {
        let clients = round.clients().len();
        let selected = round.selected_count();
        let uses = (NUMBER_BITS as f64 / self.rate(selected) * selected as f64).ceil();
        let mut transmission = Transmission::new(vec![0.0; clients], uses as usize);
        transmission.own_noise_powers = vec![1.0; clients];
        Ok(Some(transmission.with_own_pilots()))
    }
}

impl Nonlinear for Digital {
    fn receive(
        &self,
        round: &Round<'_>,
        updates: &[Sent<'_>],
        _: &mut ClientMemory,
        decoded: &mut [f32],
    ) -> Result<Received, UplinkError> {
        let DigitalSettings { levels, central_noise_std, .. } = self.settings;
        let gains = self.gains(round)?;
        let (clients, parameters) = (round.clients(), decoded.len());
        let all = updates.iter().zip(clients).zip(&gains);
        let received: Vec<(&Sent<'_>, u32)> =
            all.filter(|(_, gain)| **gain > 0.0).map(|((update, client), _)| (update, *client)).collect();
        let names = round.stream_name(Purpose::QUANTISATION);
        let add = |&(update, client): &(&Sent<'_>, u32), values: &mut Vec<f32>, sum: &mut [f32]| {
            let Some(levels) = levels else { return update.add_to(sum) };
            quantise(update, levels, central_noise_std > 0.0, names.client(client).words(), values);
            Sent::from(values.as_slice()).add_to(sum);
        };
        decoded.fill(0.0);
        if !received.is_empty() {
            let workspace = || vec![0.0; parameters];
            let (sum, _) = add_in_groups(received.par_iter(), parameters, workspace, add);
            let share = gains.iter().copied().fold(0.0, f64::max);
            let noise = round.stream_name(Purpose::PAYLOAD_NOISE);
            self.channel(vec![share])?.apply_into(&[sum], noise, decoded)?;
        }
        let uses = self.payload_uses(round.selected_count(), decoded.len());
        let sent = Transmission::new(vec![1.0; clients.len()], uses as usize).with_own_pilots();
        let cost = Cost::new(&sent, &vec![1.0; clients.len()], 1)?;
        Ok(Received { channel: Some(self.channel(gains)?), cost: Some(cost) })
    }
}

#[cfg(test)]
mod tests {
    use floras_core::{Fading, SnrConvention};
    use num_complex::Complex64;

    use super::*;
    use crate::aggregation::Aggregation;
    use crate::updates;

    fn settings(levels: Option<u32>) -> DigitalSettings {
        DigitalSettings {
            levels,
            rate: CodeRate::Bits(2.0),
            central_noise_std: 0.0,
            length: 32,
            channels: Fading::None.into(),
            snr: Snr::new(10.0, SnrConvention::Symbol).unwrap(),
        }
    }

    fn digital(levels: Option<u32>) -> Digital {
        Digital::new(settings(levels)).unwrap()
    }

    fn quantised(update: &[f32], levels: u32, shorten: bool, round: u32) -> Vec<f32> {
        let mut quantised = vec![f32::NAN; update.len()];
        let round = Round::new(1, 0, round, &[3]).unwrap();
        let words = round.stream_name(Purpose::QUANTISATION).client(3).words();
        quantise(&update.into(), levels, shorten, words, &mut quantised);
        quantised
    }

    /// The mean of 4000 quantised values has a standard error of at most ‖x‖/(2s·√4000), and the test allows five. The variance
    /// of `Q(x)` is `Σ ‖x‖²/s²·f(1 − f)` with the fractions `f`; 4000 draws of five values have a relative standard error below 2%.
    #[test]
    fn quantised_values_are_unbiased() {
        let update = [0.3_f32, -0.05, 0.0, 0.7, -0.6];
        let norm = precode::norm(&update);
        for levels in [1_u32, 4] {
            let (mut means, mut square) = ([0.0_f64; 5], 0.0);
            for round in 1..=4000 {
                let quantised = quantised(&update, levels, false, round);
                for ((mean, q), x) in means.iter_mut().zip(&quantised).zip(update) {
                    *mean += f64::from(*q) / 4000.0;
                    square += f64::from(q - x).powi(2) / 4000.0;
                    let level = f64::from(q.abs()) * f64::from(levels) / norm;
                    assert!((level - level.round()).abs() < 1e-5);
                }
            }
            let allowed = 5.0 * norm / (2.0 * f64::from(levels) * 4000_f64.sqrt());
            assert!(means.iter().zip(update).all(|(mean, x)| (mean - f64::from(x)).abs() < allowed));
            let step = norm / f64::from(levels);
            let variance = |x: &f32| (f64::from(x.abs()) / step).fract();
            let expected: f64 = update.iter().map(|x| step * step * variance(x) * (1.0 - variance(x))).sum();
            assert!((square / expected - 1.0).abs() < 0.1, "{levels}: {square}, {expected}");
        }
        assert!((1..=100).all(|round| precode::norm(&quantised(&update, 1, true, round)) <= norm));
        assert_eq!(quantised(&[0.0; 3], 1, true, 1), [0.0; 3]);
    }

    /// The threshold of outage is `(2² − 1)·2·0.1/3 = 0.2`, and the share of Rayleigh channels above it is e^−0.2 = 0.8187. Over 30,000
    /// channels it has a standard error of 0.0022; the test allows five.
    #[test]
    fn weak_channels_are_in_outage() {
        let amplitudes = [0.46, 0.44, 2.0].map(|amplitude| Complex64::new(0.0, amplitude));
        let channels = Channels::fixed(&amplitudes).unwrap();
        let round = Round::new(1, 0, 1, &[0, 1, 2]).unwrap();
        let updates = updates::random_updates(3, 200);
        for levels in [None, Some(60_000)] {
            let uplink =
                Digital::new(DigitalSettings { channels: channels.clone(), ..settings(levels) }).unwrap();
            assert!((uplink.outage_power(3) - 0.2).abs() < 1e-9);
            let aggregate = Aggregation::default().run(&uplink, round, &updates).unwrap();
            assert_eq!(aggregate.channel.unwrap().gains(), [1.5, 0.0, 1.5]);
            let expected = |i: usize| 1.5 * (updates[0][i] + updates[2][i]);
            assert!(aggregate.sum.iter().enumerate().all(|(i, x)| (x - expected(i)).abs() < 2e-3));
        }
        let uplink =
            Digital::new(DigitalSettings { channels: Fading::Rayleigh.into(), ..settings(None) }).unwrap();
        let received: usize = (1..=10_000)
            .map(|number| {
                let round = Round::new(1, 0, number, &[0, 1, 2]).unwrap();
                uplink.gains(&round).unwrap().iter().filter(|&&gain| gain > 0.0).count()
            })
            .sum();
        assert!((received as f64 / 30_000.0 - 0.8187).abs() < 0.011, "{received}");
    }

    /// Over 6,000 channels the share in outage has a standard error of at most 0.0060; the test allows four. Under Rayleigh fading the rate
    /// is `log₂(1 + K·(−ln(1 − p))/(2σ²))`. A constant channel reaches its capacity.
    #[test]
    fn the_rate_meets_its_outage() {
        for (fading, outage) in [("rayleigh", 0.3), ("rician=3", 0.3), ("nakagami=0.7", 0.1), ("none", 0.5)] {
            let fading: Fading = fading.parse().unwrap();
            let rate = CodeRate::Outage(outage);
            let uplink =
                Digital::new(DigitalSettings { rate, channels: fading.into(), ..settings(None) }).unwrap();
            let lost: usize = (1..=2_000)
                .map(|number| {
                    let round = Round::new(1, 0, number, &[0, 1, 2]).unwrap();
                    uplink.gains(&round).unwrap().iter().filter(|&&gain| gain == 0.0).count()
                })
                .sum();
            let expected = if fading == Fading::None { 0.0 } else { outage };
            assert!((lost as f64 / 6_000.0 - expected).abs() < 0.024, "{fading}: {lost}");
        }
        let rate = |fading: Fading, outage| {
            let rate = CodeRate::Outage(outage);
            Digital::new(DigitalSettings { rate, channels: fading.into(), ..settings(None) }).unwrap().rate(3)
        };
        assert!((rate(Fading::Rayleigh, 0.3) - (1.0 - 3.0 * 0.7_f64.ln() / 0.2).log2()).abs() < 1e-12);
        assert!((rate(Fading::None, 0.3) - (1.0 + 3.0 / 0.2_f64).log2()).abs() < 1e-12);
    }

    /// 3 symbols take 2 bits, 9 take 4.
    #[test]
    fn bits_and_energy_are_charged() {
        assert_eq!(
            (digital(None).bits(100), digital(Some(1)).bits(100), digital(Some(4)).bits(100)),
            (3200, 232, 432)
        );
        let round = Round::new(1, 0, 1, &[0, 1, 2]).unwrap();
        for (levels, uses) in [(None, 3 * 1600), (Some(1), 3 * 116)] {
            let aggregation = Aggregation { measure_norms: true, ..Aggregation::default() };
            let aggregate = aggregation.run(&digital(levels), round, &[[0.1; 100]; 3]).unwrap();
            let cost = aggregate.cost(&digital(levels), &round).unwrap().unwrap();
            assert_eq!((cost.payload_uses, cost.pilot_uses, cost.control_uses), (uses, 3, 0));
            assert_eq!(cost.power_mean, 1.0);
            // Each client sends one pilot of unit power.
            assert_eq!(cost.energy, 3.0 * uses as f64 + 3.0);
        }
    }

    /// The variance of 5000 values has a relative standard error of 2%; the test allows five.
    #[test]
    fn central_noise_is_scaled_with_the_sum() {
        for levels in [None, Some(2)] {
            let uplink =
                Digital::new(DigitalSettings { central_noise_std: 0.5, ..settings(levels) }).unwrap();
            let round = Round::new(1, 0, 1, &[0, 1]).unwrap();
            let aggregate = Aggregation::default().run(&uplink, round, &[[0.0; 5000]; 2]).unwrap();
            let variance = aggregate.sum.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / 5000.0;
            assert!((variance / 0.25 - 1.0).abs() < 0.1, "{levels:?}: {variance}");
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        for wrong in [
            DigitalSettings { levels: Some(0), ..settings(None) },
            DigitalSettings { rate: CodeRate::Bits(0.0), ..settings(None) },
            DigitalSettings { rate: CodeRate::Outage(0.0), ..settings(None) },
            DigitalSettings { rate: CodeRate::Outage(1.0), ..settings(None) },
            DigitalSettings {
                rate: CodeRate::Outage(0.1),
                channels: Channels::fixed(&[Complex64::new(1.0, 0.0)]).unwrap(),
                ..settings(None)
            },
            DigitalSettings { central_noise_std: -1.0, ..settings(None) },
            DigitalSettings { length: 0, ..settings(None) },
        ] {
            assert!(Digital::new(wrong).is_err());
        }
    }
}
