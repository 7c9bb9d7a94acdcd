//! FLORAS: every client spreads its update with a sequence of its own, and the base station decodes only the sum.
//!
//! The base station does not know which `K` of the `N` sequences are in use. From one common pilot it estimates a
//! channel for all of them, `ĥ = Aᵀ(Σ_k a_k h_k + n_s)`, and projects every received symbol on `v = Σ_{k≤N} w(ĥ_k) a_k`:
//!
//! ```text
//! x̃ = Σ_{k≤K} h_k·vᵀa_k·x_k + vᵀn,     vᵀn ~ N(0, s²‖v‖²),     s = σ/√L          (paper, section IV-A)
//! ```
//!
//! For orthonormal sequences `vᵀa_k = w(ĥ_k)`, `‖v‖² = Σ w(ĥ_k)²`, and the `ĥ_k` have independent errors of standard
//! deviation `s_p`, so that the symbol level needs `N` normal numbers. `s_p = s` for the paper's pilot, and
//! `s/(a·√r)` for a [`Pilot`] of amplitude `a` that is sent `r` times and averaged. The weights are those for errors of `s_p`.
//! The `γ = N − K` unused sequences have `ĥ = error`: with the paper's weights `1/ĥ` they add multivariate Cauchy noise of scale
//! `γ·s/s_p`, whatever the SNR.
//!
//! The weights stay those of the pilot when the channel [ages](Channels::with_ageing): in block `b` of the payload client `k` has
//! the gain `h_{k,b}·vᵀa_k`, and the noise is the same in all blocks.
//!
//! # Several branches
//! With complex modulation, or with several antennas, a sequence is received on `B` real branches
//! ([`Modulation::branches`]). Every branch has pilot and payload noise of its own, of the same `s_p` and `s`. The estimates are
//! vectors `ĥ_j ∈ ℝᴮ`, the weights `w⃗_j = (ĥ_j/‖ĥ_j‖)·w(‖ĥ_j‖)`, and
//!
//! ```text
//! g_k = ⟨w⃗_k, h_k⟩,     ν² = s²·Σ_{j≤N} w(‖ĥ_j‖)²                            (maximum-ratio combining)
//! ```
//!
//! With [two parameters in a complex symbol](ParametersPerSymbol::Two) the gain is the complex number `w⃗ᴴh`, whose imaginary part is the
//! cross-talk of the two parameters ([`EffectiveChannel`]). The noise of the two is independent.
//!
//! With overlapping sequences the unused estimates carry the clients' pilots, too. Their noise is then not Cauchy and vanishes
//! with the SNR (the paper's Remark 3 is wrong there), and the decoded sum is `N/K` times too large: [`Projector`].

use floras_core::random::{Domain, Purpose};
use floras_core::{
    Assignment, Fading, Fidelity, Modulation, ParametersPerSymbol, Pilot, Projector, Receiver, Snr,
};
use rand::seq::index;
use rand_distr::{Distribution, StandardNormal};

use super::modulation::Arrivals;
use super::{Signal, Uplink};
use crate::assignment::SimulatedGroups;
use crate::channels::Channels;
use crate::chip::{ChipBlock, ChipLink};
use crate::cost::Transmission;
use crate::effective::{Block, EffectiveChannel};
use crate::error::{UplinkError, require_count};
use crate::round::Round;
use crate::sequences::SequenceSet;

/// Settings of a FLORAS uplink.
#[derive(Clone, Debug, PartialEq)]
pub struct FlorasSettings {
    /// The set of `N` sequences of length `L`.
    pub sequences: SequenceSet,
    /// How clients map symbols to the carrier: real, phase-corrected or complex.
    pub modulation: Modulation,
    /// Number of receive antennas `R`, from 1 to 64; 1 with phase correction. Every round checks it.
    pub antennas: usize,
    /// Parameters per symbol; two need complex modulation. Every round checks it.
    pub parameters_per_symbol: ParametersPerSymbol,
    /// The rule that turns channel estimates into weights.
    pub receiver: Receiver,
    /// Source of the channel coefficients.
    pub channels: Channels,
    /// Signal-to-noise ratio, with the noise power that it refers to.
    pub snr: Snr,
    /// Amplitude and repetitions of the pilot.
    pub pilot: Pilot,
    /// The scale of the projector; it has an effect only if the sequences overlap.
    pub projector: Projector,
    /// How the clients of a round learn their sequences.
    pub assignment: Assignment,
}

impl Default for FlorasSettings {
    /// 25 Walsh sequences of 32 chips, the paper's modulation, receiver and pilot, one antenna, Rayleigh fading and no noise.
    fn default() -> Self {
        Self {
            sequences: SequenceSet::default(),
            modulation: Modulation::default(),
            antennas: 1,
            parameters_per_symbol: ParametersPerSymbol::default(),
            receiver: Receiver::default(),
            channels: Fading::default().into(),
            snr: Snr::NOISELESS,
            pilot: Pilot::default(),
            projector: Projector::default(),
            assignment: Assignment::default(),
        }
    }
}

/// The FLORAS uplink.
///
/// ```
/// use floras_phy::*;
///
/// let uplink = Floras::new(FlorasSettings {
///     sequences: SequenceSet::walsh(25, 32)?,
///     modulation: Modulation::Real,
///     receiver: Receiver::clipped(1.0)?,
///     channels: Fading::Rayleigh.into(),
///     snr: Snr::new(20.0, SnrConvention::Symbol)?,
///     ..FlorasSettings::default()
/// });
/// let clients: Vec<u32> = (0..20).collect();
/// let channel = uplink.realise(&Round::new(1, 0, 1, &clients)?)?;
/// assert_eq!(channel.gains().len(), 20);
/// // Five unused sequences, each with a weight of at most 1/s, leave noise of at most about √5.
/// assert!(channel.noise_std() < 3.0);
/// # Ok::<(), UplinkError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Floras {
    settings: FlorasSettings,
    /// Standard deviation `s = σ/√L` of the noise in a despread payload symbol.
    despread_noise_std: f64,
    /// Standard deviation `s_p` of the error of a channel estimate.
    pilot_noise_std: f64,
    /// The clients' keys, for [`Assignment::Keyed`].
    groups: SimulatedGroups,
}

/// The signal of a round, and the received payload if the channel ages.
type SignalAndPayload = (Signal, Option<Vec<ChipBlock>>);

impl Floras {
    /// An uplink with these settings.
    pub fn new(settings: FlorasSettings) -> Self {
        let despread_noise_std = settings.snr.despread_noise_std(settings.sequences.length());
        let pilot_noise_std = despread_noise_std * settings.pilot.noise_ratio();
        Self { settings, despread_noise_std, pilot_noise_std, groups: SimulatedGroups::default() }
    }

    /// The settings of the uplink.
    pub fn settings(&self) -> &FlorasSettings {
        &self.settings
    }

    /// `B`: real branches of the receiver.
    fn branches(&self) -> usize {
        self.settings.modulation.branches(self.settings.antennas)
    }

    /// `γ = N − K`. An error if there are fewer sequences than clients, if unused sequences have no noise, or if the receiver's settings do
    /// not match.
    fn unused(&self, round: &Round<'_>) -> Result<usize, UplinkError> {
        let FlorasSettings { modulation, antennas, parameters_per_symbol, .. } = self.settings;
        modulation.check_antennas(antennas)?;
        modulation.check_packing(parameters_per_symbol)?;
        let (sequences, clients) = (self.settings.sequences.count(), round.clients().len());
        let unused =
            sequences.checked_sub(clients).ok_or(UplinkError::TooFewSequences { sequences, clients })?;
        // With overlapping sequences every estimate contains a part of the used ones.
        if unused > 0 && self.despread_noise_std == 0.0 && self.settings.sequences.is_orthonormal() {
            return Err(UplinkError::UnusedSequencesWithoutNoise { unused });
        }
        Ok(unused)
    }

    /// The chip level of a round in which client `k` of the round's list uses sequence `assigned[k]`, counted from 0, as returned by
    /// [`GroupMember::sequence_for`](crate::assignment::GroupMember::sequence_for). The signals of clients that share a sequence add up.
    pub fn link_assigned(&self, round: &Round<'_>, assigned: Vec<usize>) -> Result<ChipLink, UplinkError> {
        self.unused(round)?;
        require_count("assigned sequences, one for each client", round.clients().len(), assigned.len())?;
        self.settings.sequences.check_assigned(&assigned)?;
        let (Signal { assigned, amplitudes, weights, .. }, payload) = self.chip_signal(round, assigned)?;
        let set = self.settings.sequences.clone();
        let branches = self.branches();
        let mut projectors = Vec::with_capacity(branches * set.length());
        for branch in 0..branches {
            let weights: Vec<f64> = weights.iter().skip(branch).step_by(branches).copied().collect();
            projectors.extend(set.spread(&weights)?);
        }
        let packing = self.settings.parameters_per_symbol;
        let noise_std = self.despread_noise_std;
        let link = ChipLink::combining(branches, packing, set, assigned, amplitudes, projectors, noise_std)?;
        match payload {
            None => Ok(link),
            Some(blocks) => link.with_blocks(blocks),
        }
    }

    fn arrivals(&self, round: &Round<'_>) -> Result<Arrivals, UplinkError> {
        Arrivals::new(self.settings.modulation, self.settings.antennas, &self.settings.channels, round)
    }

    /// Steps 1 and 2 at the chip level.
    fn chip_signal(&self, round: &Round<'_>, assigned: Vec<usize>) -> Result<SignalAndPayload, UplinkError> {
        self.settings.sequences.check_transform()?;
        let (signal, payload) = self.signal_with(round, assigned, |assigned, amplitudes| {
            self.estimates(round, assigned, amplitudes)
        })?;
        let branches = signal.branches;
        let of = |&sequence: &usize| &signal.estimates[sequence * branches..(sequence + 1) * branches];
        let used = signal.assigned.iter().map(of).flat_map(|estimate| self.weights_of(estimate));
        check_weights(&used.collect::<Vec<f64>>(), branches, round)?;
        Ok((signal, payload))
    }

    /// The signal of a round. `estimates` computes the channel estimates from the sequences and amplitudes of the clients.
    fn signal_with(
        &self,
        round: &Round<'_>,
        assigned: Vec<usize>,
        estimates: impl FnOnce(&[usize], &[f64]) -> Result<Vec<f64>, UplinkError>,
    ) -> Result<SignalAndPayload, UplinkError> {
        let Arrivals { channels, pilot: amplitudes, payload } = self.arrivals(round)?;
        let estimates = estimates(&assigned, &amplitudes)?;
        let signal = Signal {
            branches: self.branches(),
            weights: self.weights(&estimates, assigned.len()),
            channels,
            amplitudes,
            assigned,
            estimates,
            length: self.settings.sequences.length(),
            symbol_noise_std: self.despread_noise_std,
            pilot_noise_std: Some(self.pilot_noise_std),
        };
        Ok((signal, payload))
    }

    /// Step 2: the projector includes all N sequences, because the base station does not know which are in use.
    fn weights(&self, estimates: &[f64], clients: usize) -> Vec<f64> {
        let mut weights: Vec<f64> =
            estimates.chunks(self.branches()).flat_map(|estimate| self.weights_of(estimate)).collect();
        if self.settings.projector == Projector::Normalised && !self.settings.sequences.is_orthonormal() {
            // vᵀy_s, the sum of the gains without noise.
            let total: f64 = weights.iter().zip(estimates).map(|(weight, estimate)| weight * estimate).sum();
            let scale = clients as f64 / total;
            weights.iter_mut().for_each(|weight| *weight *= scale);
        }
        weights
    }

    /// Step 1: all clients send the pilot at once, and the base station despreads all N sequences. The mean of `r` repetitions, divided by
    /// the amplitude, has noise `s_p` in each chip of each branch.
    fn estimates(
        &self,
        round: &Round<'_>,
        assigned: &[usize],
        amplitudes: &[f64],
    ) -> Result<Vec<f64>, UplinkError> {
        let (set, branches) = (&self.settings.sequences, self.branches());
        let mut pilot_noise = round.stream(Purpose::PILOT_NOISE);
        let mut estimates = vec![0.0; set.count() * branches];
        for branch in 0..branches {
            let mut carried = vec![0.0; set.count()];
            for (&sequence, amplitudes) in assigned.iter().zip(amplitudes.chunks(branches)) {
                carried[sequence] += amplitudes[branch];
            }
            let mut received = set.spread(&carried)?;
            for chip in &mut received {
                let normal: f64 = StandardNormal.sample(&mut pilot_noise);
                *chip += self.pilot_noise_std * normal;
            }
            let of_branch = estimates.iter_mut().skip(branch).step_by(branches);
            of_branch.zip(set.despread(&received)?).for_each(|(estimate, found)| *estimate = found);
        }
        Ok(estimates)
    }

    /// The signal of a round at a base station that keeps its samples and despreads every sequence separately.
    ///
    /// The channels and the pilot are those of [`realise`](Uplink::realise).
    pub fn despread(&self, round: &Round<'_>) -> Result<Signal, UplinkError> {
        self.unused(round)?;
        let estimate = |assigned: &[usize], amplitudes: &[f64]| match self.settings.sequences.is_orthonormal()
        {
            true => Ok(self.place_estimates(round, assigned, amplitudes)),
            false => self.estimates(round, assigned, amplitudes),
        };
        Ok(self.signal_with(round, self.assign(round)?, estimate)?.0)
    }

    /// The sequence of each client in a simulated round, counted from 0.
    fn assign(&self, round: &Round<'_>) -> Result<Vec<usize>, UplinkError> {
        let (sequences, clients) = (self.settings.sequences.count(), round.clients().len());
        match self.settings.assignment {
            Assignment::Seed => {
                Ok(index::sample(&mut round.stream(Purpose::ASSIGNMENT), sequences, clients).into_vec())
            }
            Assignment::Keyed => {
                let sequences = u32::try_from(sequences).unwrap_or(u32::MAX);
                Ok(self.groups.assign(round, sequences)?)
            }
        }
    }

    /// The estimates of [`realise_orthonormal`](Self::realise_orthonormal), each in the place of its sequence.
    fn place_estimates(&self, round: &Round<'_>, assigned: &[usize], amplitudes: &[f64]) -> Vec<f64> {
        let mut pilot_noise = round.stream(Purpose::PILOT_NOISE);
        let mut estimate_of = |amplitude: f64| -> f64 {
            let normal: f64 = StandardNormal.sample(&mut pilot_noise);
            amplitude + self.pilot_noise_std * normal
        };
        let branches = self.branches();
        let mut estimates = vec![None; self.settings.sequences.count() * branches];
        for (&sequence, amplitudes) in assigned.iter().zip(amplitudes.chunks(branches)) {
            for (branch, &amplitude) in amplitudes.iter().enumerate() {
                estimates[sequence * branches + branch] = Some(estimate_of(amplitude));
            }
        }
        estimates.into_iter().map(|estimate| estimate.unwrap_or_else(|| estimate_of(0.0))).collect()
    }

    fn weight(&self, estimate: f64) -> f64 {
        self.settings.receiver.weight(estimate, self.pilot_noise_std)
    }

    /// `w⃗ = (ĥ/‖ĥ‖)·w(‖ĥ‖)` of one sequence, from its estimates in all branches.
    fn weights_of(&self, estimates: &[f64]) -> impl Iterator<Item = f64> {
        let (factor, single) = match *estimates {
            [estimate] => (0.0, Some(self.weight(estimate))),
            _ => {
                let size = estimates.iter().map(|estimate| estimate * estimate).sum::<f64>().sqrt();
                // An estimate of 0 has no direction: the weight is that of the first branch.
                let none = (size == 0.0).then(|| self.weight(0.0));
                (if size == 0.0 { 0.0 } else { self.weight(size) / size }, none)
            }
        };
        estimates.iter().enumerate().map(move |(branch, estimate)| match (branch, single) {
            (0, Some(weight)) => weight,
            _ => factor * estimate,
        })
    }

    /// The symbol level for orthonormal sequences: which of them are in use does not matter.
    fn realise_orthonormal(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        let unused = self.unused(round)?;
        if self.settings.assignment == Assignment::Keyed && round.trial().domain() == Domain::Run {
            // The result does not depend on the assignment, but a trial runs the protocol.
            self.assign(round)?;
        }
        let Arrivals { pilot: amplitudes, payload, .. } = self.arrivals(round)?;
        let mut pilot_noise = round.stream(Purpose::PILOT_NOISE);
        let mut estimate_of = |amplitude: f64| -> f64 {
            let normal: f64 = StandardNormal.sample(&mut pilot_noise);
            amplitude + self.pilot_noise_std * normal
        };
        let branches = self.branches();
        let mut estimate = vec![0.0; branches];
        let mut weights: Vec<f64> = Vec::with_capacity(amplitudes.len());
        for amplitudes in amplitudes.chunks(branches) {
            estimate.iter_mut().zip(amplitudes).for_each(|(estimate, &h)| *estimate = estimate_of(h));
            weights.extend(self.weights_of(&estimate));
        }
        check_weights(&weights, branches, round)?;
        let mut square_of_unused = || -> f64 {
            estimate.iter_mut().for_each(|estimate| *estimate = estimate_of(0.0));
            self.weights_of(&estimate).map(|weight| weight.powi(2)).sum()
        };
        let unused_square: f64 = (0..unused).map(|_| square_of_unused()).sum();
        let used_square: f64 = weights.iter().map(|w| w * w).sum();
        let noise_std = self.despread_noise_std * (used_square + unused_square).sqrt();
        // The weights follow from the pilot, also if the channel ages afterwards.
        let block = |parameters: usize, amplitudes: &[f64]| {
            let clients = || amplitudes.chunks(branches).zip(weights.chunks(branches));
            let cross_gains = match self.settings.parameters_per_symbol {
                ParametersPerSymbol::One => Vec::new(),
                ParametersPerSymbol::Two => clients().map(|(h, w)| cross_gain(h, w)).collect(),
            };
            let gains = clients().map(|(h, w)| gain(h, w)).collect();
            Block { parameters, gains, noise_std, cross_gains }
        };
        EffectiveChannel::from_blocks(match payload {
            None => vec![block(usize::MAX, &amplitudes)],
            Some(blocks) => blocks.iter().map(|of| block(of.parameters, &of.amplitudes)).collect(),
        })
    }
}

impl Uplink for Floras {
    fn name(&self) -> &'static str {
        "floras"
    }

    fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        if self.settings.sequences.is_orthonormal() {
            self.realise_orthonormal(round)
        } else {
            // Overlapping sequences have no shortcut: every estimate depends on the signals of all clients.
            self.link(round)?.effective()
        }
    }

    fn link(&self, round: &Round<'_>) -> Result<ChipLink, UplinkError> {
        self.unused(round)?;
        self.link_assigned(round, self.assign(round)?)
    }

    /// Sequences have unit energy, Gaussian ones on average.
    fn transmission(&self, round: &Round<'_>) -> Result<Option<Transmission>, UplinkError> {
        let (clients, length) = (round.clients().len(), self.settings.sequences.length());
        let transmission = Transmission::new(vec![1.0; clients], length);
        let mut transmission = match self.settings.modulation {
            Modulation::Real | Modulation::Complex => transmission,
            Modulation::PhaseCorrected(_) => transmission.with_channel_knowledge(),
        };
        transmission.parameters_per_symbol = self.settings.parameters_per_symbol;
        let pilot = self.settings.pilot;
        let uses = length as u64 * u64::from(pilot.repetitions());
        transmission.pilot_uses += uses;
        transmission.pilot_energy += clients as f64 * pilot.amplitude().powi(2) * uses as f64;
        Ok(Some(transmission.with_power_control(&self.settings.channels.sent_amplitudes(round))))
    }

    fn signal(&self, round: &Round<'_>, fidelity: Fidelity) -> Result<Option<Signal>, UplinkError> {
        Ok(Some(match fidelity {
            Fidelity::Symbol => self.despread(round)?,
            Fidelity::Chip => {
                self.unused(round)?;
                self.chip_signal(round, self.assign(round)?)?.0
            }
        }))
    }
}

fn check_weights(weights: &[f64], branches: usize, round: &Round<'_>) -> Result<(), UplinkError> {
    match weights.iter().position(|weight| !weight.is_finite()) {
        None => Ok(()),
        Some(index) => Err(UplinkError::ChannelIsZero { client: round.clients()[index / branches] }),
    }
}

/// `⟨w⃗, h⟩`: the gain of a client's own parameter, over adjacent branches.
pub(crate) fn gain(amplitudes: &[f64], weights: &[f64]) -> f64 {
    let products = amplitudes.iter().zip(weights).map(|(h, w)| h * w);
    products.reduce(|sum, product| sum + product).unwrap_or(0.0)
}

/// `Im w⃗ᴴh`: the gain of the symbol's other parameter.
pub(crate) fn cross_gain(amplitudes: &[f64], weights: &[f64]) -> f64 {
    let (amplitudes, weights) = (amplitudes.as_chunks::<2>().0, weights.as_chunks::<2>().0);
    amplitudes.iter().zip(weights).map(|([h_re, h_im], [w_re, w_im])| w_re * h_im - w_im * h_re).sum()
}

#[cfg(test)]
mod tests {
    use floras_core::SnrConvention;

    use super::*;

    fn settings(sequences: usize, length: usize) -> FlorasSettings {
        FlorasSettings {
            sequences: SequenceSet::walsh(sequences, length).unwrap(),
            modulation: Modulation::Real,
            receiver: Receiver::Paper,
            channels: Fading::Rayleigh.into(),
            snr: Snr::new(20.0, SnrConvention::Symbol).unwrap(),
            ..FlorasSettings::default()
        }
    }

    #[test]
    fn more_clients_than_sequences_are_refused() {
        let uplink = Floras::new(settings(2, 4));
        let round = Round::new(1, 0, 1, &[1, 2, 3]).unwrap();
        let expected = UplinkError::TooFewSequences { sequences: 2, clients: 3 };
        assert_eq!(uplink.realise(&round), Err(expected.clone()));
        assert_eq!(uplink.link(&round), Err(expected));
    }

    #[test]
    fn unused_sequences_without_noise_are_refused() {
        let uplink = Floras::new(FlorasSettings { snr: Snr::NOISELESS, ..settings(4, 4) });
        let round = Round::new(1, 0, 1, &[1, 2, 3]).unwrap();
        let expected = UplinkError::UnusedSequencesWithoutNoise { unused: 1 };
        assert_eq!(uplink.realise(&round), Err(expected.clone()));
        assert_eq!(uplink.link(&round), Err(expected));
    }

    #[test]
    fn a_link_has_its_estimates_gains_and_noise() {
        let uplink = Floras::new(settings(30, 32));
        let clients: Vec<u32> = (0..20).collect();
        let round = Round::new(5, 0, 1, &clients).unwrap();
        let channel = uplink.link(&round).unwrap().effective().unwrap();
        let amplitudes = uplink.arrivals(&round).unwrap().pilot;
        // With 1/ĥ and orthonormal sequences, ĥ_k = h_k/g_k lies within a few s of h_k.
        for (h, g) in amplitudes.iter().zip(channel.gains()) {
            assert!((h / g - h).abs() < 5.0 * uplink.despread_noise_std);
        }
    }

    /// The pilot of two antennas with complex matrices: `ĥ_r = Aᵀ(A_used h_r + n_r)`, `v_r = Σ_j a_j·w⃗_{j,r}`,
    /// `g_k = Σ_r v_rᴴa_k·h_{k,r}`.
    #[test]
    fn antennas_are_combined_by_maximum_ratio() {
        use num_complex::Complex64;
        let clients = [3, 1, 4];
        let round = Round::new(2, 7, 10, &clients).unwrap();
        for sequences in [SequenceSet::walsh(5, 8).unwrap(), SequenceSet::gaussian(5, 4, 1).unwrap()] {
            for receiver in
                [Receiver::Paper, Receiver::regularised(3.0).unwrap(), Receiver::clipped(1.0).unwrap()]
            {
                let uplink = Floras::new(FlorasSettings {
                    sequences: sequences.clone(),
                    receiver,
                    modulation: Modulation::Complex,
                    antennas: 2,
                    parameters_per_symbol: ParametersPerSymbol::Two,
                    projector: Projector::Printed,
                    ..settings(5, 8)
                });
                let (set, length) = (&sequences, sequences.length());
                let s = uplink.settings.snr.despread_noise_std(length);
                let used = index::sample(&mut round.stream(Purpose::ASSIGNMENT), 5, 3).into_vec();
                let h = Channels::from(Fading::Rayleigh).draw_antennas(&round, 2).unwrap();
                let mut pilot_noise = round.stream(Purpose::PILOT_NOISE);
                let mut noise = || -> Vec<f64> {
                    (0..length).map(|_| -> f64 { StandardNormal.sample(&mut pilot_noise) }).collect()
                };
                let noise = [0, 1].map(|_| (noise(), noise()));
                let estimate = |j: usize, antenna: usize| -> Complex64 {
                    (0..length)
                        .map(|l| {
                            let sent: Complex64 = (0..3).map(|k| h[antenna][k] * set.chip(used[k], l)).sum();
                            let (re, im) = &noise[antenna];
                            (sent + Complex64::new(re[l], im[l]) * s) * set.chip(j, l)
                        })
                        .sum()
                };
                let weights: Vec<[Complex64; 2]> = (0..5)
                    .map(|j| {
                        let estimates = [0, 1].map(|antenna| estimate(j, antenna));
                        let size = (estimates[0].norm_sqr() + estimates[1].norm_sqr()).sqrt();
                        estimates.map(|estimate| estimate / size * receiver.weight(size, s))
                    })
                    .collect();
                let v = |antenna: usize, l: usize| -> Complex64 {
                    (0..5).map(|j| weights[j][antenna] * set.chip(j, l)).sum()
                };
                let channel = uplink.link(&round).unwrap().effective().unwrap();
                let block = &channel.blocks()[0];
                for k in 0..3 {
                    let seen = |antenna| -> Complex64 {
                        (0..length).map(|l| v(antenna, l).conj() * set.chip(used[k], l)).sum()
                    };
                    let expected = seen(0) * h[0][k] + seen(1) * h[1][k];
                    let found = Complex64::new(block.gains[k], block.cross_gains[k]);
                    assert!((found - expected).norm() < 1e-9 * (1.0 + expected.norm()), "{set}, {receiver}");
                }
                let square: f64 =
                    [0, 1].map(|r| (0..length).map(|l| v(r, l).norm_sqr()).sum::<f64>()).iter().sum();
                assert!((channel.noise_std() / (s * square.sqrt()) - 1.0).abs() < 1e-9, "{set}, {receiver}");
            }
        }
    }

    #[test]
    fn receivers_must_fit_the_modulation() {
        let round = Round::new(1, 0, 1, &[1, 2, 3]).unwrap();
        let corrected = Modulation::PhaseCorrected(floras_core::PhaseError::None);
        let (one, two) = (ParametersPerSymbol::One, ParametersPerSymbol::Two);
        for (modulation, antennas, parameters_per_symbol) in [
            (corrected, 2, one),
            (Modulation::Real, 1, two),
            (Modulation::Complex, 0, one),
            (Modulation::Complex, 65, one),
        ] {
            let uplink =
                Floras::new(FlorasSettings { modulation, antennas, parameters_per_symbol, ..settings(4, 4) });
            assert!(matches!(uplink.realise(&round), Err(UplinkError::Choice(_))), "{modulation}");
            assert!(matches!(uplink.link(&round), Err(UplinkError::Choice(_))), "{modulation}");
        }
    }

    /// Steps 1 and 2 written out with whole matrices: `ĥ = Aᵀ(A_used h + n_s)`, `v = A w`, `g_k = vᵀa_k h_k`.
    #[test]
    fn every_family_has_the_papers_projector() {
        let clients = [3, 1, 4];
        let round = Round::new(2, 7, 10, &clients).unwrap();
        let inner = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(x, y)| x * y).sum() };
        for sequences in [
            SequenceSet::walsh(5, 8).unwrap(),
            SequenceSet::orthonormal(5, 6).unwrap(),
            SequenceSet::gaussian(5, 4, 1).unwrap(),
            SequenceSet::gold(5, 31).unwrap(),
            SequenceSet::zadoff_chu(5, 14).unwrap(),
        ] {
            for receiver in [Receiver::Paper, Receiver::Mmse, Receiver::clipped(1.0).unwrap()] {
                let (sequences, projector) = (sequences.clone(), Projector::Printed);
                let pilot = Pilot::new(2.0, 3).unwrap();
                let uplink = Floras::new(FlorasSettings {
                    sequences: sequences.clone(),
                    receiver,
                    projector,
                    pilot,
                    ..settings(5, 8)
                });
                let (set, length) = (&sequences, sequences.length());
                let column = |k: usize| set.sequence(k).unwrap();
                let h: Vec<f64> =
                    Channels::from(Fading::Rayleigh).draw(&round).unwrap().iter().map(|h| h.re).collect();
                let used = index::sample(&mut round.stream(Purpose::ASSIGNMENT), 5, 3).into_vec();
                let s = uplink.settings.snr.despread_noise_std(length);
                let pilot_noise_std = s / (2.0 * 3_f64.sqrt());
                let mut pilot_noise = round.stream(Purpose::PILOT_NOISE);
                let received: Vec<f64> = (0..length)
                    .map(|l| {
                        let normal: f64 = StandardNormal.sample(&mut pilot_noise);
                        used.iter().zip(&h).map(|(&k, h)| column(k)[l] * h).sum::<f64>()
                            + pilot_noise_std * normal
                    })
                    .collect();
                let weights: Vec<f64> =
                    (0..5).map(|k| receiver.weight(inner(&column(k), &received), pilot_noise_std)).collect();
                let v: Vec<f64> =
                    (0..length).map(|l| (0..5).map(|k| weights[k] * column(k)[l]).sum()).collect();
                let channel = uplink.link(&round).unwrap().effective().unwrap();
                for ((&k, h), gain) in used.iter().zip(&h).zip(channel.gains()) {
                    assert!((inner(&v, &column(k)) * h - gain).abs() < 1e-9 * (1.0 + gain.abs()), "{set}");
                }
                let noise_std = s * inner(&v, &v).sqrt();
                assert!((noise_std / channel.noise_std() - 1.0).abs() < 1e-9, "{set}");
            }
        }
    }

    /// `vᵀy_s = N` for the paper's weights, so that the gains of a round without noise add up to `N`, or to `K` if normalised.
    #[test]
    fn overlapping_sequences_have_the_stated_sum_of_gains() {
        let clients: Vec<u32> = (0..20).collect();
        for receiver in [Receiver::Paper, Receiver::Mmse, Receiver::clipped(0.5).unwrap()] {
            for (projector, total) in [(Projector::Printed, 30.0), (Projector::Normalised, 20.0)] {
                let uplink = Floras::new(FlorasSettings {
                    sequences: SequenceSet::gaussian(30, 16, 1).unwrap(),
                    receiver,
                    projector,
                    snr: Snr::new(90.0, SnrConvention::Symbol).unwrap(),
                    ..settings(30, 32)
                });
                for number in 1..=20 {
                    let channel = uplink.realise(&Round::new(3, 0, number, &clients).unwrap()).unwrap();
                    let sum: f64 = channel.gains().iter().sum();
                    assert!((sum / total - 1.0).abs() < 0.01, "{receiver} {projector}: {sum}");
                }
            }
        }
    }

    /// A pilot of amplitude 2 that is sent 4 times has a quarter of the noise: everything but the payload noise is that of a
    /// round at 12 dB more.
    #[test]
    fn pilot_power_changes_the_estimates_snr_only() {
        let clients: Vec<u32> = (0..20).collect();
        let round = Round::new(5, 0, 1, &clients).unwrap();
        let snr = |snr_db| Snr::new(snr_db, SnrConvention::Symbol).unwrap();
        for receiver in [Receiver::Paper, Receiver::Mmse, Receiver::clipped(1.0).unwrap()] {
            let pilot = Pilot::new(2.0, 4).unwrap();
            let strong = Floras::new(FlorasSettings { receiver, pilot, ..settings(25, 32) });
            let louder = 20.0 + 20.0 * 4_f64.log10();
            let clear = Floras::new(FlorasSettings { receiver, snr: snr(louder), ..settings(25, 32) });
            let (strong, clear) = (strong.realise(&round).unwrap(), clear.realise(&round).unwrap());
            for (ours, expected) in strong.gains().iter().zip(clear.gains()) {
                assert!((ours / expected - 1.0).abs() < 1e-12);
            }
            assert!((strong.noise_std() / clear.noise_std() / 4.0 - 1.0).abs() < 1e-12);
        }
    }

    /// The weights of the estimates that a base station has give the effective channel of the same round.
    #[test]
    fn despreading_and_decoding_see_the_same_pilot() {
        let clients: Vec<u32> = (0..20).collect();
        let round = Round::new(5, 1, 3, &clients).unwrap();
        let uplink = Floras::new(settings(30, 32));
        let (seen, channel) = (uplink.despread(&round).unwrap(), uplink.realise(&round).unwrap());
        for (place, gain) in channel.gains().iter().enumerate() {
            let expected = seen.amplitudes[place] / seen.estimates[seen.assigned[place]];
            assert!((gain - expected).abs() < 1e-12 * (1.0 + gain.abs()));
        }
        let square: f64 = seen.estimates.iter().map(|estimate| estimate.powi(-2)).sum();
        assert!((seen.symbol_noise_std * square.sqrt() / channel.noise_std() - 1.0).abs() < 1e-12);
        let unused = (0..30).filter(|sequence| !seen.assigned.contains(sequence)).count();
        assert_eq!((unused, seen.estimates.len()), (10, 30));
    }

    #[test]
    fn estimates_of_overlapping_sequences_mix_all_clients() {
        let sequences = SequenceSet::gaussian(5, 4, 1).unwrap();
        let uplink = Floras::new(FlorasSettings { sequences, ..settings(5, 8) });
        let round = Round::new(2, 7, 10, &[3, 1, 4]).unwrap();
        let seen = uplink.despread(&round).unwrap();
        assert_eq!(seen.estimates, uplink.estimates(&round, &seen.assigned, &seen.amplitudes).unwrap());
    }

    /// Both clients use sequence 1, which then carries h = 2: each of them has the gain ½.
    #[test]
    fn clients_that_share_a_sequence_add_up() {
        let snr = Snr::new(60.0, SnrConvention::Symbol).unwrap();
        let uplink = Floras::new(FlorasSettings { channels: Fading::None.into(), snr, ..settings(2, 4) });
        let round = Round::new(1, 0, 1, &[8, 9]).unwrap();
        let channel = uplink.link_assigned(&round, vec![1, 1]).unwrap().effective().unwrap();
        assert!(channel.gains().iter().all(|gain| (gain - 0.5).abs() < 0.01), "{:?}", channel.gains());
    }

    #[test]
    fn large_sets_are_refused_at_chip_level_only() {
        let sequences = SequenceSet::orthonormal(1 << 17, 1 << 17).unwrap();
        let uplink = Floras::new(FlorasSettings { sequences, ..settings(4, 4) });
        let round = Round::new(1, 0, 1, &[0, 1]).unwrap();
        assert!(uplink.realise(&round).is_ok());
        assert!(matches!(uplink.link(&round), Err(UplinkError::TransformTooLong { .. })));
    }

    #[test]
    fn an_assignment_outside_the_set_is_refused() {
        let uplink = Floras::new(settings(2, 4));
        let round = Round::new(1, 0, 1, &[8, 9]).unwrap();
        let wrong = uplink.link_assigned(&round, vec![0, 2]);
        assert_eq!(wrong, Err(UplinkError::NoSuchSequence { sequence: 2, sequences: 2 }));
        assert!(matches!(uplink.link_assigned(&round, vec![0]), Err(UplinkError::WrongCount { .. })));
    }
}
