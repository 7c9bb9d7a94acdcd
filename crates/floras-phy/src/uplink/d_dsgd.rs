//! D-DSGD: the digital twin of A-DSGD, with as many positions as the capacity allows.
//!
//! Each of `K` clients has the share `1/K` of the `s` channel uses, real symbols with noise `σ`, and sends at power `K` in its share. A code
//! that reaches the capacity carries
//!
//! ```text
//! R_k = s/(2K)·log₂(1 + K·|h_k|²/σ²) bits
//! ```
//!
//! A client adds its update to what it has not sent so far, `e_k ← e_k + x_k`. It finds the `q` largest positive and the `q` largest
//! negative values of `e_k`, and their means `m₊` and `m₋`. Where `m₊ > |m₋|` it sends `m₊` and the places of the positive values, else
//! `m₋` and those of the negative ones. That takes `log₂ C(d, q) + 33` bits: 32 for the magnitude of the mean, and one for its sign. `q` is
//! the largest number that the capacity allows, at most `d/2`. A client that cannot send even one place keeps all of `e_k`. The base station
//! adds what it decodes, without an error.
//!
//! The paper has no fading, `h_k = 1`. Here the rate of a client follows its channel, which it must know, so that there is no outage.
//!
//! # Citations
//! Amiri, Gündüz, *Machine learning at the wireless edge: distributed stochastic gradient descent over-the-air*, IEEE TSP 68 (2020),
//! arXiv:1901.00844. The quantiser is that of Sattler, Wiedemann, Müller, Samek, *Sparse binary compression*, IJCNN 2019.

use std::f64::consts::LN_2;

use floras_core::Snr;
use rayon::prelude::*;

use super::error_feedback::{channel_uses, require_uses};
use super::groups::add_in_groups;
use super::largest::{Largest, Order};
use super::nonlinear::{Nonlinear, Received};
use super::{Sent, Uplink};
use crate::channels::Channels;
use crate::cost::{Cost, Transmission};
use crate::effective::EffectiveChannel;
use crate::error::{UplinkError, require};
use crate::memory::ClientMemory;
use crate::round::Round;
use crate::sequences::check_sizes;

/// Bits of a mean with its sign.
const MEAN_BITS: f64 = 33.0;

/// Settings of D-DSGD.
#[derive(Clone, Debug, PartialEq)]
pub struct DDsgdSettings {
    /// `s/d`: channel uses per parameter, from 0.001 to 1. A round has at least two.
    pub uses_per_parameter: f64,
    /// Sequence length `L` to which the SNR refers, from 1 to 2²⁴.
    pub length: usize,
    /// Source of the channel coefficients, which clients know without error.
    pub channels: Channels,
    /// Signal-to-noise ratio, with the noise power that it refers to.
    pub snr: Snr,
}

/// The uplink with quantised sparse updates at the rate of the capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct DDsgd {
    settings: DDsgdSettings,
    noise_std: f64,
}

impl DDsgd {
    /// Builds the uplink. Settings out of range are errors; so are channels that age, or that clients know with an error.
    pub fn new(settings: DDsgdSettings) -> Result<Self, UplinkError> {
        require_uses(settings.uses_per_parameter)?;
        check_sizes(1, settings.length)?;
        let error = settings.channels.estimation_error_std();
        require(error == 0.0, "the error of a client's channel estimate", "0 for D-DSGD", error)?;
        require(!settings.channels.ages(), "the ageing of channels", "none for D-DSGD", 1.0)?;
        let noise_std = settings.snr.symbol_noise_std(settings.length);
        Ok(Self { settings, noise_std })
    }

    /// `s`: channel uses of the payload of a round.
    pub fn channel_uses(&self, parameters: usize) -> usize {
        channel_uses(self.settings.uses_per_parameter, parameters)
    }

    /// `R_k`: bits that a client with the channel power `|h_k|²` sends in a round with `clients` selected clients.
    pub fn capacity(&self, clients: usize, parameters: usize, channel_power: f64) -> f64 {
        let clients = clients as f64;
        let snr = clients * channel_power / (self.noise_std * self.noise_std);
        self.channel_uses(parameters) as f64 / (2.0 * clients) * snr.ln_1p() / LN_2
    }

    /// `q`: the largest number of places that `bits` bits can name, at most half of the parameters.
    pub fn places(bits: f64, parameters: usize) -> usize {
        if bits < MEAN_BITS {
            return 0;
        }
        let (mut fits, mut fails) = (0, parameters / 2 + 1);
        while fails - fits > 1 {
            let middle = fits.midpoint(fails);
            match log2_choices(parameters, middle) + MEAN_BITS <= bits {
                true => fits = middle,
                false => fails = middle,
            }
        }
        fits
    }
}

/// `log₂ C(n, k)`.
fn log2_choices(n: usize, k: usize) -> f64 {
    let log_factorial = |count: usize| libm::lgamma(count as f64 + 1.0);
    (log_factorial(n) - log_factorial(k) - log_factorial(n - k)) / LN_2
}

/// Takes the quantised update out of `unsent`, with `count` places, and adds it to `sum`.
struct Quantise<'a> {
    unsent: &'a mut [f32],
    count: usize,
    /// Where the searches for the largest values begin.
    hints: &'a mut [i32; 2],
    sum: &'a mut [f32],
}

impl pulp::WithSimd for Quantise<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let Self { unsent, count, hints: [above, below], sum } = self;
        let plus = Largest::find(unsent, Order::Positive, count, above);
        let minus = Largest::find(unsent, Order::Negative, count, below);
        let (of_plus, of_minus) = (plus.mean(unsent), minus.mean(unsent));
        if of_plus > -of_minus {
            plus.transfer(of_plus, unsent, sum);
        } else {
            minus.transfer(of_minus, unsent, sum);
        }
    }
}

impl Uplink for DDsgd {
    fn name(&self) -> &'static str {
        "d-dsgd"
    }

    fn realise(&self, _: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        Err(UplinkError::NotLinear { scheme: self.name() })
    }

    fn nonlinear(&self) -> Option<&dyn Nonlinear> {
        Some(self)
    }
}

impl Nonlinear for DDsgd {
    fn receive(
        &self,
        round: &Round<'_>,
        updates: &[Sent<'_>],
        memory: &mut ClientMemory,
        decoded: &mut [f32],
    ) -> Result<Received, UplinkError> {
        let (parameters, selected) = (decoded.len(), round.selected_count());
        let channels = self.settings.channels.draw(round)?;
        let counts: Vec<usize> = channels
            .iter()
            .map(|h| Self::places(self.capacity(selected, parameters, h.norm_sqr()), parameters))
            .collect();
        let unsent = memory.of_each(round.clients(), parameters);
        let send = |((unsent, update), &count): ((&mut [f32], &Sent<'_>), &usize),
                    hints: &mut [i32; 2],
                    sum: &mut [f32]| {
            update.add_to(unsent);
            if count > 0 {
                pulp::Arch::new().dispatch(Quantise { unsent, count, hints, sum });
            }
        };
        let clients = unsent.into_par_iter().zip(updates).zip(&counts);
        decoded.copy_from_slice(&add_in_groups(clients, parameters, || [0; 2], send).0);
        let factors = counts.iter().map(|&count| f64::from(u8::from(count > 0))).collect();
        let uses = self.channel_uses(parameters);
        let transmission = Transmission::new(factors, uses)
            .with_channel_knowledge()
            .with_power_control(&self.settings.channels.sent_amplitudes(round));
        let cost = Cost::new(&transmission, &vec![1.0; counts.len()], 1)?;
        Ok(Received { channel: None, cost: Some(cost) })
    }

    fn keeps_memory(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use floras_core::{Fading, SnrConvention};
    use num_complex::Complex64;

    use super::*;
    use crate::aggregation::Aggregation;
    use crate::updates::random_updates;

    fn settings(channels: impl Into<Channels>) -> DDsgdSettings {
        DDsgdSettings {
            uses_per_parameter: 0.5,
            length: 32,
            channels: channels.into(),
            snr: Snr::new(10.0, SnrConvention::Symbol).unwrap(),
        }
    }

    fn d_dsgd(channels: impl Into<Channels>) -> DDsgd {
        DDsgd::new(settings(channels)).unwrap()
    }

    #[test]
    fn one_sign_is_sent_with_its_mean() {
        let quantise = |unsent: &mut [f32], count| {
            let mut sum = vec![0.0; unsent.len()];
            pulp::Arch::new().dispatch(Quantise { unsent, count, hints: &mut [0; 2], sum: &mut sum });
            sum
        };
        let mut unsent = [4.0_f32, -3.0, 1.0, -6.0, 2.0, 0.0];
        assert_eq!(quantise(&mut unsent, 2), [0.0, -4.5, 0.0, -4.5, 0.0, 0.0]);
        assert_eq!(unsent, [4.0, 1.5, 1.0, -1.5, 2.0, 0.0]);
        assert_eq!(quantise(&mut unsent, 3), [2.5, 2.5, 0.0, 0.0, 2.5, 0.0]);
        assert_eq!(quantise(&mut [0.0, 0.0], 1), [0.0, 0.0]);
        assert_eq!(quantise(&mut [1.0, 2.0], 0), [0.0, 0.0]);
    }

    /// `C(10, 3) = 120`, and `C(10, 5) = 252` is the largest.
    #[test]
    fn capacity_sets_the_number_of_places() {
        for (bits, places) in [
            (0.0, 0),
            (33.0 + 3.32, 0),
            (33.0 + 3.33, 1),
            (33.0 + 120_f64.log2() - 1e-6, 2),
            (33.0 + 120_f64.log2() + 1e-6, 3),
            (f64::INFINITY, 5),
        ] {
            assert_eq!(DDsgd::places(bits, 10), places, "{bits}");
        }
        // s = 2005 symbols for 20 clients, at the power 20 and σ² = 0.1.
        let uplink = d_dsgd(Fading::None);
        let expected = 2005.0 / 40.0 * 201_f64.log2();
        assert!((uplink.capacity(20, 4010, 1.0) - expected).abs() < 1e-9);
        assert_eq!(uplink.capacity(20, 4010, 0.0), 0.0);
    }

    /// Delivery is exact: what is decoded and what clients keep are the sums of their updates, up to rounding.
    #[test]
    fn nothing_is_lost_or_sent_twice() {
        let clients = [0, 1];
        let channels = Channels::fixed(&[Complex64::ONE, Complex64::new(0.0, 1e-9)]).unwrap();
        let (uplink, updates) = (d_dsgd(channels), random_updates(2, 400));
        let (mut memory, mut total) = (ClientMemory::default(), vec![0.0_f32; 400]);
        for number in 1..=20_u8 {
            let round = Round::new(1, 0, number.into(), &clients).unwrap();
            let aggregation = Aggregation::default();
            let sum = vec![0.0; 400];
            let sum = aggregation.run_in(&uplink, round, &updates, Some(&mut memory), sum).unwrap().sum;
            total.iter_mut().zip(&sum).for_each(|(total, x)| *total += x);
            assert!(sum.iter().any(|&x| x != 0.0));
            let kept = clients.map(|client| memory.of(client, 400).to_vec());
            for place in 0..400 {
                let expected = f32::from(number) * (updates[0][place] + updates[1][place]);
                assert!((total[place] + kept[0][place] + kept[1][place] - expected).abs() < 1e-3);
            }
        }
        // The second client's channel carries no place.
        let all = updates[1].iter().map(|x| 20.0 * x);
        assert!(all.zip(memory.of(1, 400)).all(|(x, kept)| (x - *kept).abs() < 1e-3));
    }

    #[test]
    fn clients_share_uses_and_power() {
        let channels = Channels::fixed(&[Complex64::ONE, Complex64::new(0.0, 1e-9)]).unwrap();
        let (uplink, mut memory) = (d_dsgd(channels), ClientMemory::default());
        let round = Round::new(1, 0, 1, &[0, 1]).unwrap();
        let (aggregation, sum) = (Aggregation::default(), vec![0.0; 401]);
        let updates = [[0.1; 401]; 2];
        let aggregate = aggregation.run_in(&uplink, round, &updates, Some(&mut memory), sum).unwrap();
        let cost = aggregate.cost(&uplink, &round).unwrap().unwrap();
        assert_eq!((cost.payload_uses, cost.pilot_uses, cost.control_uses), (201, 2, 2));
        assert_eq!((cost.power_mean, cost.power_peak), (0.5, 1.0));
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let erring = Channels::from(Fading::Rayleigh).with_estimation_error(0.1).unwrap();
        for wrong in [
            DDsgdSettings { uses_per_parameter: 2.0, ..settings(Fading::Rayleigh) },
            DDsgdSettings { length: 0, ..settings(Fading::Rayleigh) },
            settings(erring),
        ] {
            assert!(DDsgd::new(wrong).is_err());
        }
    }
}
