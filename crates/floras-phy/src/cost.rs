//! The cost of a round: transmit power, channel uses and energy.
//!
//! The unit of power is the power of a symbol of amplitude 1, to which the SNR refers. The unit of energy is one channel use at that
//! power. A client `k` multiplies its symbols by `b_k` because of its channel, and adds noise of variance `c` to each. It sends
//! every channel use of its payload at the mean power
//!
//! ```text
//! P_k = b_k²·(‖x_k‖²/d + c)·m,     x_k the update as it is sent, d parameters, m of them in a symbol
//! ```
//!
//! A client may also send at a power `q_k` that does not depend on the size of its update: noise of its own, or coded symbols. It then
//! has `P_k + q_k`.
//!
//! The receiver's noise has the same variance `σ²` in every channel use, of every scheme. A chip of FLORAS is a channel use. It has
//! the power of the symbol that it belongs to, so that a parameter takes `L` times the energy of one channel use. (The chip level
//! divides chips and noise by `√L`, which leaves their ratio as it is.)
//!
//! With `m = 2` parameters in a complex symbol a round takes half the channel uses, each at twice the power: the energy is the same.
//!
//! | channel uses | FLORAS | schemes whose clients know their channels |
//! |---|---|---|
//! | payload | `L·⌈d/m⌉` | `d`, or `L·d` over the same bandwidth |
//! | pilot | `L·r`, common to all clients | `K`, one after another, at unit power |
//! | control | – | `K` in the downlink: the base station returns each client's coefficient |
//!
//! A base station that decodes every client on its own, as that of the digital baseline, needs the `K` pilots without the control.
//! FLORAS with phase correction needs the pilots of both columns. The paper's normalisation adds `2K` control uses at unit power,
//! for the clients' means and norms, and one in the downlink for the largest norm. A scalar counts as one channel use. This is the
//! count without channel reciprocity, which is the most favourable to the paper's Remark 1. With reciprocity the clients learn their
//! channels from one downlink pilot, and the `K` pilots and `K` coefficients become one channel use.
//!
//! Open-loop power control under path loss multiplies `b_k`, and the amplitude of the client's pilots, by `10^(κ·PL_k/20)`. The
//! factor is 1 at the edge of the cell without shadowing.
//!
//! Energy is that of the clients: payload, pilots, and their control symbols. It excludes the energy of the base station and the
//! download of the model, which all schemes share.

use floras_core::ParametersPerSymbol;
use serde::{Deserialize, Serialize};

use crate::error::{UplinkError, require_count};

/// How the clients of a round send, apart from the values of their updates.
#[derive(Clone, Debug, PartialEq)]
pub struct Transmission {
    /// `b_k`: the factor by which each client multiplies its symbols because of its channel; 0 if it is silent.
    pub factors: Vec<f64>,
    /// `c`: variance of the noise that a client adds to each of its symbols before the multiplication.
    pub added_noise_power: f64,
    /// `q_k`: power of what each client sends besides, whatever the size of its update: noise, or coded symbols. In units of the power
    /// of a symbol of amplitude 1; empty if there is none.
    pub own_noise_powers: Vec<f64>,
    /// Number of channel uses per symbol.
    pub uses_per_symbol: usize,
    /// `m`: parameters per symbol, 1 or 2.
    pub parameters_per_symbol: ParametersPerSymbol,
    /// Number of channel uses of the pilots.
    pub pilot_uses: u64,
    /// Energy of all clients' pilots together, in channel uses at unit power.
    pub pilot_energy: f64,
    /// Number of channel uses of other side information before the payload, all in the downlink.
    pub control_uses: u64,
}

impl Transmission {
    /// A transmission with these factors, one parameter per symbol and no pilots.
    pub fn new(factors: Vec<f64>, uses_per_symbol: usize) -> Self {
        Self {
            factors,
            added_noise_power: 0.0,
            own_noise_powers: Vec::new(),
            uses_per_symbol,
            parameters_per_symbol: ParametersPerSymbol::One,
            pilot_uses: 0,
            pilot_energy: 0.0,
            control_uses: 0,
        }
    }

    /// The same transmission with a pilot of unit power from each client, one after another: the base station learns every channel.
    pub fn with_own_pilots(mut self) -> Self {
        let clients = self.factors.len() as u64;
        self.pilot_uses += clients;
        self.pilot_energy += clients as f64;
        self
    }

    /// The same transmission with clients that know their channels: each sends a pilot of its own and receives its coefficient.
    pub fn with_channel_knowledge(mut self) -> Self {
        self.control_uses += self.factors.len() as u64;
        self.with_own_pilots()
    }

    /// The same transmission with power control: client `k` multiplies its payload, its noise and its pilots by `amplitudes[k]`.
    pub fn with_power_control(mut self, amplitudes: &[f64]) -> Self {
        let mean_power = amplitudes.iter().map(|a| a * a).sum::<f64>() / amplitudes.len().max(1) as f64;
        self.factors.iter_mut().zip(amplitudes).for_each(|(factor, amplitude)| *factor *= amplitude);
        self.own_noise_powers.iter_mut().zip(amplitudes).for_each(|(power, a)| *power *= a * a);
        // All clients of a round send the same pilots.
        self.pilot_energy *= mean_power;
        self
    }
}

/// The cost of a round, or of several.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Mean of `P_k` over the clients of the round, silent ones included, in units of the power of a symbol of amplitude 1.
    pub power_mean: f64,
    /// Maximum of `P_k` over the clients of the round, in the same unit.
    pub power_peak: f64,
    /// Ratio of the largest to the smallest positive `b_k` in decibels: the part of the signals' dynamic range that the channels
    /// cause. `None` if all clients are silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamic_range_db: Option<f64>,
    /// Number of channel uses of the updates.
    pub payload_uses: u64,
    /// Number of channel uses of the pilots.
    pub pilot_uses: u64,
    /// Number of channel uses of side information.
    pub control_uses: u64,
    /// Energy of all clients together, in channel uses at unit power.
    pub energy: f64,
}

impl Cost {
    /// The cost of a round in which client `k` sends an update of `parameters` parameters with mean square `mean_squares[k]`.
    ///
    /// ```
    /// use floras_phy::{Cost, Transmission};
    ///
    /// let transmission = Transmission::new(vec![1.0, 0.5], 32);
    /// let cost = Cost::new(&transmission, &[2.0, 4.0], 10)?;
    /// assert_eq!((cost.power_mean, cost.power_peak), (1.5, 2.0));
    /// assert_eq!((cost.payload_uses, cost.energy), (320, 960.0));
    /// # Ok::<(), floras_phy::UplinkError>(())
    /// ```
    pub fn new(
        transmission: &Transmission,
        mean_squares: &[f64],
        parameters: usize,
    ) -> Result<Self, UplinkError> {
        let Transmission { factors, added_noise_power, pilot_uses, control_uses, .. } = transmission;
        require_count("mean squares, one for each client", factors.len(), mean_squares.len())?;
        let in_symbol = transmission.parameters_per_symbol.get();
        let symbols = parameters.div_ceil(in_symbol);
        // Exactly 1 for one parameter per symbol.
        let mean_in_symbol = parameters as f64 / symbols.max(1) as f64;
        let power = |(factor, square): (&f64, &f64)| match *factor {
            0.0 => 0.0,
            factor => factor * factor * (square + added_noise_power) * mean_in_symbol,
        };
        let mut powers: Vec<f64> = factors.iter().zip(mean_squares).map(power).collect();
        if !transmission.own_noise_powers.is_empty() {
            let own = &transmission.own_noise_powers;
            require_count("noise powers, one for each client", factors.len(), own.len())?;
            powers.iter_mut().zip(own).for_each(|(power, own)| *power += own);
        }
        let total: f64 = powers.iter().sum();
        let sending = || factors.iter().map(|factor| factor.abs()).filter(|&factor| factor > 0.0);
        let range = sending().max_by(f64::total_cmp).zip(sending().min_by(f64::total_cmp));
        let payload_uses = transmission.uses_per_symbol as u64 * symbols as u64;
        Ok(Self {
            power_mean: total / powers.len().max(1) as f64,
            power_peak: powers.into_iter().fold(0.0, f64::max),
            dynamic_range_db: range.map(|(largest, smallest)| 20.0 * (largest / smallest).log10()),
            payload_uses,
            pilot_uses: *pilot_uses,
            control_uses: *control_uses,
            energy: total * payload_uses as f64 + transmission.pilot_energy,
        })
    }

    /// The same with the side information of the paper's normalisation for `clients` clients.
    pub(crate) fn with_normalisation(mut self, clients: usize) -> Self {
        let scalars = 2 * clients as u64;
        self.control_uses += scalars + 1;
        self.energy += scalars as f64;
        self
    }

    /// All channel uses.
    pub fn channel_uses(&self) -> u64 {
        self.payload_uses + self.pilot_uses + self.control_uses
    }
}

#[cfg(test)]
mod tests {
    use floras_core::{
        Admission, Clipping, Fading, Modulation, NoiseReference, PhaseError, Pilot, PowerRule, Snr,
        SnrConvention,
    };

    use num_complex::Complex64;

    use super::*;
    use crate::aggregation::Aggregation;
    use crate::channels::{Channels, Trace};
    use crate::round::Round;
    use crate::sequences::SequenceSet;
    use crate::updates;
    use crate::uplink::{
        ChannelInversion, ChannelInversionSettings, Floras, FlorasSettings, Ideal, PhaseCorrected,
        PhaseCorrectedSettings, Uplink,
    };

    const LENGTH: usize = 32;
    const SNR_DB: f64 = 20.0;
    const NOISE_POWER: f64 = 0.01;

    fn snr() -> Snr {
        Snr::new(SNR_DB, SnrConvention::Symbol).unwrap()
    }

    fn floras(modulation: Modulation, pilot: Pilot) -> Floras {
        Floras::new(FlorasSettings {
            sequences: SequenceSet::walsh(25, LENGTH).unwrap(),
            modulation,
            snr: snr(),
            pilot,
            ..FlorasSettings::default()
        })
    }

    fn inversion(
        power: PowerRule,
        noise: NoiseReference,
        channels: Channels,
        threshold: f64,
    ) -> ChannelInversion {
        ChannelInversion::new(ChannelInversionSettings {
            admission: Admission::at_amplitude(threshold).unwrap(),
            power,
            noise,
            length: LENGTH,
            channels,
            snr: snr(),
            artificial_noise_std: 0.0,
        })
        .unwrap()
    }

    fn cost_of(uplink: &dyn Uplink, aggregation: Aggregation, updates: &[Vec<f32>], number: u32) -> Cost {
        let clients: Vec<u32> = (0..updates.len() as u32).collect();
        let round = Round::new(1, 0, number, &clients).unwrap();
        let aggregation = Aggregation { measure_norms: true, ..aggregation };
        let aggregate = aggregation.run(uplink, round, updates).unwrap();
        aggregate.cost(uplink, &round).unwrap().unwrap()
    }

    /// |h| = 0.5, 2 and 0.05.
    fn three_channels() -> Channels {
        let rows = "round,client,real,imaginary\n0,0,0.3,0.4\n0,1,0,-2\n0,2,0.05,0\n";
        Trace::from_reader(rows.as_bytes()).unwrap().into()
    }

    #[test]
    fn floras_sends_at_the_power_of_its_updates() {
        let updates = updates::random_updates(20, 100);
        let squares: Vec<f64> = updates
            .iter()
            .map(|update| update.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>() / 100.0)
            .collect();
        let uplink = floras(Modulation::Real, Pilot::new(2.0, 3).unwrap());
        let costs = [1, 2].map(|round| cost_of(&uplink, Aggregation::default(), &updates, round));
        let [cost, other_channels] = costs;
        assert_eq!(cost, other_channels);
        let (total, peak) = (squares.iter().sum::<f64>(), squares.iter().copied().fold(0.0, f64::max));
        assert!((cost.power_mean / (total / 20.0) - 1.0).abs() < 1e-12);
        assert!((cost.power_peak / peak - 1.0).abs() < 1e-12);
        assert_eq!(cost.dynamic_range_db, Some(0.0));
        assert_eq!((cost.payload_uses, cost.pilot_uses, cost.control_uses), (3200, 96, 0));
        // 3 pilots of 32 chips and power 4 from each of 20 clients.
        assert!((cost.energy / (3200.0 * total + 7680.0) - 1.0).abs() < 1e-12);
    }

    /// 101 parameters take 51 symbols. Complex modulation needs no channel knowledge.
    #[test]
    fn two_parameters_per_symbol_halve_the_airtime() {
        let updates = updates::random_updates(20, 101);
        let [one, two] = [ParametersPerSymbol::One, ParametersPerSymbol::Two].map(|packing| {
            let settings = floras(Modulation::Complex, Pilot::default()).settings().clone();
            let uplink =
                Floras::new(FlorasSettings { antennas: 2, parameters_per_symbol: packing, ..settings });
            cost_of(&uplink, Aggregation::default(), &updates, 1)
        });
        assert_eq!((one.payload_uses, two.payload_uses), (101 * 32, 51 * 32));
        assert_eq!((one.pilot_uses, one.control_uses), (32, 0));
        assert!((two.power_mean / one.power_mean - 101.0 / 51.0).abs() < 1e-12);
        assert!((two.energy / one.energy - 1.0).abs() < 1e-12);
    }

    #[test]
    fn energy_is_counted_for_the_sent_update() {
        let updates = updates::random_updates(20, 100);
        let uplink = floras(Modulation::Real, Pilot::default());
        for clipping in [Clipping::Each, Clipping::Paper] {
            let aggregation = Aggregation { clip: Some(5.0), clipping, ..Aggregation::default() };
            let cost = cost_of(&uplink, aggregation, &updates, 1);
            // The longest update has norm C = 5: power 25/100, up to the rounding allowance of clipping.
            assert!((cost.power_peak / 0.25 - 1.0).abs() < 1e-6, "{clipping}: {}", cost.power_peak);
            let sent = crate::precode::Precoding::new(&updates, Some(5.0), clipping).unwrap().sent(&updates);
            let squares = sent.iter().flat_map(|update| update.iter()).map(|&value| f64::from(value).powi(2));
            assert!((cost.power_mean / (squares.sum::<f64>() / 2000.0) - 1.0).abs() < 1e-6, "{clipping}");
            let side_information = if clipping == Clipping::Paper { 41 } else { 0 };
            assert_eq!(cost.control_uses, side_information);
        }
    }

    #[test]
    fn channel_inversion_pays_for_its_channel() {
        let updates = vec![vec![1.0_f32; 50]; 3];
        let cost = |power, noise| {
            cost_of(&inversion(power, noise, three_channels(), 0.1), Aggregation::default(), &updates, 1)
        };
        // The weakest admitted, |h| = 0.5, sends at power 1; |h| = 2 at 1/16; 0.05 not at all.
        let worst = cost(PowerRule::WorstAdmitted, NoiseReference::PerSymbol);
        assert!((worst.power_peak - 1.0).abs() < 1e-12);
        assert!((worst.power_mean - 1.0625 / 3.0).abs() < 1e-12);
        assert!((worst.dynamic_range_db.unwrap() - 20.0 * 4_f64.log10()).abs() < 1e-9);
        assert_eq!((worst.payload_uses, worst.pilot_uses, worst.control_uses), (50, 3, 3));
        assert!((worst.energy - (50.0 * 1.0625 + 3.0)).abs() < 1e-9);
        let fixed = cost(PowerRule::FixedAtThreshold, NoiseReference::SameBandwidth);
        assert!((fixed.power_peak - 0.04).abs() < 1e-12);
        assert_eq!(fixed.payload_uses, 50 * LENGTH as u64);
        // Fixed channels may all be below the threshold.
        let weak = Channels::fixed(&[Complex64::ONE]).unwrap();
        let unreachable = inversion(PowerRule::default(), NoiseReference::PerSymbol, weak, 9.0);
        let silent = cost_of(&unreachable, Aggregation::default(), &updates, 1);
        assert_eq!((silent.power_peak, silent.dynamic_range_db, silent.energy), (0.0, None, 3.0));
    }

    /// Powers 4·1 + 3 and 1·2 + 0, and three times that for three channel uses; amplitude 2 makes 4 times as much.
    #[test]
    fn own_noise_has_its_own_power() {
        let own_noise_powers = vec![3.0, 0.0];
        let sent = Transmission { own_noise_powers, ..Transmission::new(vec![2.0, 1.0], 1) };
        let cost = Cost::new(&sent, &[1.0, 2.0], 3).unwrap();
        assert_eq!((cost.power_mean, cost.power_peak, cost.energy), (4.5, 7.0, 27.0));
        let twice = Cost::new(&sent.clone().with_power_control(&[2.0, 2.0]), &[1.0, 2.0], 3).unwrap();
        assert_eq!(twice.energy, 4.0 * cost.energy);
        let short = Transmission { own_noise_powers: vec![1.0], ..sent };
        assert!(Cost::new(&short, &[1.0, 2.0], 3).is_err());
    }

    #[test]
    fn artificial_noise_is_charged() {
        let settings = inversion(PowerRule::WorstAdmitted, NoiseReference::PerSymbol, three_channels(), 0.1);
        let settings = ChannelInversionSettings { artificial_noise_std: 2.0, ..settings.settings().clone() };
        let uplink = ChannelInversion::new(settings).unwrap();
        let cost = cost_of(&uplink, Aggregation::default(), &vec![vec![1.0_f32; 50]; 3], 1);
        // Each of two admitted clients adds a variance of 2 before it multiplies by 1 or 1/4.
        assert!((cost.power_peak - 3.0).abs() < 1e-12 && (cost.power_mean - 1.0625).abs() < 1e-12);
        // One more downlink symbol: the number of admitted clients.
        assert_eq!(cost.control_uses, 4);
    }

    /// `E[θ²/|h|²; |h| ≥ θ] = θ²·E₁(θ²)` under Rayleigh fading.
    ///
    /// At θ = 0.3, `E₁(0.09) = 1.9187448` (Abramowitz and Stegun, 5.1.11). A client's power lies between 0 and 1, with a standard
    /// deviation of 0.19: five standard errors over 100,000 clients are 0.003.
    #[test]
    fn power_of_fixed_inversion_matches_closed_form() {
        let uplink =
            inversion(PowerRule::FixedAtThreshold, NoiseReference::PerSymbol, Fading::Rayleigh.into(), 0.3);
        let updates = vec![vec![1.0_f32; 2]; 100_000];
        let cost = cost_of(&uplink, Aggregation::default(), &updates, 1);
        assert!((cost.power_mean - 0.09 * 1.918_744_8).abs() < 0.003, "{}", cost.power_mean);
    }

    /// `|h|²` is exponential. Of `K` clients `E ln min = −γ_E − ln K` and `E ln max = Σ_j (−1)^{j+1} C(K, j)(−γ_E − ln j)`.
    ///
    /// For K = 4 their difference is 2.5370, or 11.02 dB. The range has a standard deviation of about 6.5 dB: five standard
    /// errors over 4000 rounds are 0.5 dB.
    #[test]
    fn range_of_inversion_has_its_closed_form() {
        let closed_form = {
            let log = |j: f64| -0.577_215_664_901_532_9 - j.ln();
            let largest = 4.0 * log(1.0) - 6.0 * log(2.0) + 4.0 * log(3.0) - log(4.0);
            10.0 / 10_f64.ln() * (largest - log(4.0))
        };
        let uplink =
            inversion(PowerRule::WorstAdmitted, NoiseReference::PerSymbol, Fading::Rayleigh.into(), 1e-6);
        let updates = vec![vec![1.0_f32; 1]; 4];
        let range =
            |round| cost_of(&uplink, Aggregation::default(), &updates, round).dynamic_range_db.unwrap();
        let mean = (1..=4000).map(range).sum::<f64>() / 4000.0;
        assert!((mean - closed_form).abs() < 0.5, "{mean} instead of {closed_form}");
    }

    #[test]
    fn phase_knowledge_is_charged_with_and_without_spreading() {
        let updates = vec![vec![1.0_f32; 50]; 20];
        let corrected = Modulation::PhaseCorrected(PhaseError::None);
        let spread = cost_of(&floras(corrected, Pilot::default()), Aggregation::default(), &updates, 1);
        assert_eq!((spread.payload_uses, spread.pilot_uses, spread.control_uses), (1600, 52, 20));
        let unspread = PhaseCorrected::new(PhaseCorrectedSettings {
            phase_error: PhaseError::None,
            noise: NoiseReference::PerSymbol,
            length: LENGTH,
            channels: Fading::Rayleigh.into(),
            snr: snr(),
        })
        .unwrap();
        let unspread = cost_of(&unspread, Aggregation::default(), &updates, 1);
        assert_eq!((unspread.payload_uses, unspread.pilot_uses, unspread.control_uses), (50, 20, 20));
        assert!((unspread.power_mean - 1.0).abs() < 1e-12 && (unspread.power_peak - 1.0).abs() < 1e-12);
        assert_eq!(unspread.dynamic_range_db, Some(0.0));
        assert!((unspread.energy - 1020.0).abs() < 1e-9);
    }

    #[test]
    fn schemes_without_a_radio_have_no_cost() {
        let round = Round::new(1, 0, 1, &[0]).unwrap();
        let aggregation = Aggregation { measure_norms: true, ..Aggregation::default() };
        let aggregate = aggregation.run(&Ideal, round, &[[1.0, 2.0]]).unwrap();
        assert_eq!(aggregate.cost(&Ideal, &round), Ok(None));
    }

    /// The energy of a unit symbol's chips at the chip level, over the noise in a chip, is the stated energy of a parameter at the
    /// stated noise per channel use. Dividing by the trace's amplitudes converts received chips to sent ones.
    #[test]
    fn chip_level_sends_the_stated_energy() {
        let round = Round::new(1, 0, 1, &[0, 1, 2]).unwrap();
        let spread = Floras::new(FlorasSettings {
            channels: three_channels(),
            modulation: Modulation::PhaseCorrected(PhaseError::None),
            ..floras(Modulation::Real, Pilot::default()).settings().clone()
        });
        let inversion = |noise| inversion(PowerRule::WorstAdmitted, noise, three_channels(), 0.1);
        let (symbol, bandwidth) =
            (inversion(NoiseReference::PerSymbol), inversion(NoiseReference::SameBandwidth));
        let uplinks: [&dyn Uplink; 3] = [&spread, &symbol, &bandwidth];
        for uplink in uplinks {
            let stated = uplink.transmission(&round).unwrap().unwrap();
            let received = uplink.link(&round).unwrap().chip_energies_over_noise();
            for ((received, channel), factor) in received.iter().zip([0.5, 2.0, 0.05]).zip(&stated.factors) {
                let sent = received / (channel * channel);
                let expected = factor * factor * stated.uses_per_symbol as f64 / NOISE_POWER;
                assert!(
                    (sent - expected).abs() <= 1e-5 * expected,
                    "{}: {sent}, not {expected}",
                    uplink.name()
                );
            }
        }
    }
}
