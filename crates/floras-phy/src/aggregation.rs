//! One round, from the clients' updates to the decoded sum.
//!
//! ```text
//! x_k → clip to C (or the paper's normalisation) → uplink → Σ g_k x_k + ν·n → clamp to ±B → undo the normalisation
//! ```
//!
//! Updates can be added in waves, which saves memory: [`begin`](Aggregation::begin),
//! [`add`](RoundInProgress::add), [`finish`](RoundInProgress::finish). The decoded sum equals that of
//! [`run`](Aggregation::run) with all updates at once, bit for bit.

use std::borrow::Cow;

use floras_core::random::Purpose;
use floras_core::{Clipping, Fidelity, named_choice};

use crate::cost::Cost;
use crate::effective::EffectiveChannel;
use crate::error::{UplinkError, require_count};
use crate::memory::ClientMemory;
use crate::precode::{self, Normalisation, Precoding, Scale};
use crate::release::ReleaseKey;
use crate::round::Round;
use crate::updates;
use crate::uplink::{Received, Sent, Signal, Uplink, receive, transmit_into};

/// The source of a round's noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Noise {
    /// The simulation's generator under the round's seed: repeating the round repeats its noise. Statements about the round are
    /// not a guarantee.
    #[default]
    Simulated,
    /// A key from the operating system that is used once: suitable for sums of real data. The channels are still drawn from the
    /// round's seed. Not available at the chip level.
    Release,
}

named_choice!(
    Noise,
    "noise",
    [Simulated => "simulated", "the simulation's generator"],
    [Release => "release", "fit for release"],
);

/// Settings of a round besides its uplink scheme: clipping, fidelity, clamping and noise source.
///
/// ```
/// use floras_phy::{Aggregation, Ideal, Round};
///
/// let round = Round::new(1, 0, 1, &[0, 1])?;
/// let aggregation = Aggregation { clip: Some(5.0), ..Aggregation::default() };
/// let whole = aggregation.run(&Ideal, round, &[[1.0, 2.0], [30.0, 40.0]])?;
/// assert!((whole.sum[0] - 4.0).abs() < 1e-5 && (whole.sum[1] - 6.0).abs() < 1e-5);
///
/// let mut in_progress = aggregation.begin(&Ideal, round, vec![0.0; 2])?;
/// in_progress.add(&[[1.0, 2.0]])?;
/// in_progress.add(&[[30.0, 40.0]])?;
/// assert_eq!(in_progress.finish()?.sum, whole.sum);
/// # Ok::<(), floras_phy::UplinkError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Aggregation {
    /// Clip norm `C`, from 1e-30 to 1e30, in units of the update; `None` sends updates unchanged.
    pub clip: Option<f64>,
    /// How updates are scaled to norm `C`.
    pub clipping: Clipping,
    /// Whether symbols are simulated by the effective channel of a block, or every chip is.
    pub fidelity: Fidelity,
    /// `B`: decoded values are clamped to `±B`, from 1e-30 to 1e30.
    pub truncate: Option<f64>,
    /// Source of the receiver noise: a seeded stream, or noise that is fit for release.
    pub noise: Noise,
    /// Whether norms are measured even without clipping.
    pub measure_norms: bool,
    /// Whether the result also keeps the decoded sum before it is clamped and rescaled.
    pub keep_decoded: bool,
}

/// The result of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// The decoded sum, clamped.
    pub sum: Vec<f32>,
    /// `x̃`, the decoded sum before it is clamped and the normalisation is undone; `None` unless it is kept.
    pub decoded: Option<Vec<f32>>,
    /// The effective channel `(g, ν)` of the round; `None` if the scheme decodes no weighted sum.
    pub channel: Option<EffectiveChannel>,
    /// The cost that a nonlinear scheme returned with the round; `None` for a linear scheme.
    pub own_cost: Option<Cost>,
    /// How each update was changed before it was sent.
    pub scales: Vec<Scale>,
    /// The norm of each update before clipping; `None` if norms were not measured.
    pub norms: Option<Vec<f64>>,
    /// How the paper's normalisation was undone, if it was applied.
    pub normalisation: Option<Normalisation>,
    /// Indices of updates with a value that is not finite; they were sent as zero. Not private: it depends on the data.
    pub broken: Vec<usize>,
}

impl Aggregate {
    /// The transmit power, channel uses and energy of the round; `None` for a scheme without a radio, or if norms were not
    /// measured.
    ///
    /// `uplink` and `round` are those that led to this result. The channels are drawn again, from the same streams.
    pub fn cost(&self, uplink: &dyn Uplink, round: &Round<'_>) -> Result<Option<Cost>, UplinkError> {
        if uplink.nonlinear().is_some() {
            return Ok(self.own_cost);
        }
        let parameters = self.sum.len();
        let (Some(norms), Some(transmission)) =
            (&self.norms, uplink.transmission(&round.with_parameters(parameters))?)
        else {
            return Ok(None);
        };
        // ‖(x − μ)·factor‖²/d = factor²·(‖x‖²/d − μ²)
        let mean_square = |(norm, scale): (&f64, &Scale)| {
            let centred = norm * norm / parameters as f64 - scale.mean * scale.mean;
            scale.factor * scale.factor * centred.max(0.0)
        };
        let mean_squares: Vec<f64> = norms.iter().zip(&self.scales).map(mean_square).collect();
        let cost = Cost::new(&transmission, &mean_squares, parameters)?;
        Ok(Some(match self.normalisation {
            Some(_) => cost.with_normalisation(norms.len()),
            None => cost,
        }))
    }
}

impl Aggregation {
    /// Sends the updates of a round over the air, one per client.
    ///
    /// An update with a value that is not finite is sent as zero. Refusing the round would reveal that one client's training
    /// diverged, which depends on its data.
    pub fn run<U: AsRef<[f32]> + Sync>(
        &self,
        uplink: &dyn Uplink,
        round: Round<'_>,
        updates: &[U],
    ) -> Result<Aggregate, UplinkError> {
        self.run_in(uplink, round, updates, None, vec![0.0; updates::parameters(updates)])
    }

    /// [`run`](Self::run) with the memory of the clients, which some schemes need, and with a buffer for the sum: one value per
    /// parameter, for example the sum of the previous round.
    pub fn run_in<U: AsRef<[f32]> + Sync>(
        &self,
        uplink: &dyn Uplink,
        round: Round<'_>,
        updates: &[U],
        memory: Option<&mut ClientMemory>,
        sum: Vec<f32>,
    ) -> Result<Aggregate, UplinkError> {
        let parameters = updates::check_shape(updates, round.clients().len())?;
        let round = round.with_parameters(parameters);
        require_count("places for the decoded parameters", parameters, sum.len())?;
        if self.streams(uplink) {
            let mut in_progress = self.begin(uplink, round, sum)?;
            in_progress.add(updates)?;
            return in_progress.finish();
        }
        self.run_whole(uplink, round, updates, memory, sum)
    }

    /// Begins a round whose updates are added in waves, with a buffer for the sum: one value per parameter.
    pub fn begin<'a>(
        &self,
        uplink: &'a dyn Uplink,
        round: Round<'a>,
        sum: Vec<f32>,
    ) -> Result<RoundInProgress<'a>, UplinkError> {
        let round = round.with_parameters(sum.len());
        let state = match self.streams(uplink) {
            true => State::Streamed { channel: uplink.realise(&round)?.for_clients(round.clients().len())? },
            false => State::Kept(Vec::new()),
        };
        Ok(RoundInProgress {
            aggregation: *self,
            uplink,
            round,
            sum,
            state,
            scales: Vec::new(),
            norms: Vec::new(),
            broken: Vec::new(),
        })
    }

    /// The signal of a round at this fidelity, for updates of `parameters` parameters; `None` for a scheme without a radio.
    ///
    /// It is drawn again from the round's streams and belongs to the gains that [`run`](Self::run) returns.
    ///
    /// ```
    /// use floras_phy::{Aggregation, Floras, FlorasSettings, Round, Snr, SnrConvention};
    ///
    /// let snr = Snr::new(20.0, SnrConvention::Symbol)?;
    /// let uplink = Floras::new(FlorasSettings { snr, ..FlorasSettings::default() });
    /// let (aggregation, round) = (Aggregation::default(), Round::new(1, 0, 1, &[0, 1])?);
    /// let aggregate = aggregation.run(&uplink, round, &[[1.0], [2.0]])?;
    /// let signal = aggregation.signal(&uplink, round, 1)?.expect("FLORAS has a radio");
    /// let weight = signal.weights[signal.assigned[0]];
    /// let channel = aggregate.channel.expect("FLORAS is linear");
    /// assert!((channel.gains()[0] - signal.amplitudes[0] * weight).abs() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn signal(
        &self,
        uplink: &dyn Uplink,
        round: Round<'_>,
        parameters: usize,
    ) -> Result<Option<Signal>, UplinkError> {
        let signal = uplink.signal(&round.with_parameters(parameters), self.fidelity)?;
        signal.map(|signal| signal.for_clients(round.clients().len())).transpose()
    }

    /// Whether waves are added to the sum as they arrive. Otherwise they are stored until the end: the paper's normalisation,
    /// the chip level, release noise and nonlinear schemes need all updates at once.
    pub fn streams(&self, uplink: &dyn Uplink) -> bool {
        let depends_on_all =
            uplink.nonlinear().is_some() || (self.clip.is_some() && self.clipping == Clipping::Paper);
        self.fidelity == Fidelity::Symbol && self.noise == Noise::Simulated && !depends_on_all
    }

    fn run_whole<U: AsRef<[f32]> + Sync>(
        &self,
        uplink: &dyn Uplink,
        round: Round<'_>,
        updates: &[U],
        memory: Option<&mut ClientMemory>,
        mut sum: Vec<f32>,
    ) -> Result<Aggregate, UplinkError> {
        let precoding = match Precoding::new(updates, self.clip, self.clipping) {
            Err(UplinkError::NotFinite { .. }) => {
                let (finite, broken) = with_zeros(updates);
                return Ok(Aggregate { broken, ..self.run_whole(uplink, round, &finite, memory, sum)? });
            }
            precoding => precoding?,
        };
        let (clients, scheme) = (round.clients().len(), uplink.name());
        let linear = |channel: EffectiveChannel| Received { channel: Some(channel), cost: None };
        let Received { channel, cost: own_cost } = match (uplink.nonlinear(), self.fidelity, self.noise) {
            (Some(_), Fidelity::Chip, _) => return Err(UplinkError::NoChipLevel { scheme }),
            (Some(_), _, Noise::Release) => return Err(UplinkError::SimulatedOnly { scheme }),
            (Some(nonlinear), Fidelity::Symbol, Noise::Simulated) => {
                let scaled = updates.iter().zip(&precoding.scales);
                let sent: Vec<Sent<'_>> =
                    scaled.map(|(update, scale)| Sent::new(update.as_ref(), *scale)).collect();
                receive(uplink, nonlinear, &round, &sent, memory, &mut sum)?
            }
            (None, Fidelity::Chip, _) => {
                linear(transmit_into(uplink, &round, &precoding.sent(updates), Fidelity::Chip, &mut sum)?)
            }
            (None, Fidelity::Symbol, Noise::Release) => {
                let channel = uplink.realise(&round)?.for_clients(clients)?;
                channel.release_into(updates, &precoding.scales, ReleaseKey::generate()?, &mut sum)?;
                linear(channel)
            }
            (None, Fidelity::Symbol, Noise::Simulated) => {
                let channel = uplink.realise(&round)?.for_clients(clients)?;
                let noise = Some(round.stream_name(Purpose::PAYLOAD_NOISE));
                channel.add_into(0, updates, &precoding.scales, noise, &mut sum)?;
                linear(channel)
            }
        };
        let Precoding { scales, norms, normalisation } = precoding;
        self.restore(Aggregate {
            sum,
            decoded: None,
            channel,
            own_cost,
            scales,
            norms: Some(norms).filter(|_| self.clip.is_some() || self.measure_norms),
            normalisation,
            broken: Vec::new(),
        })
    }

    /// Clamps a decoded sum and undoes the scaling of the updates.
    fn restore(&self, mut aggregate: Aggregate) -> Result<Aggregate, UplinkError> {
        aggregate.decoded = self.keep_decoded.then(|| aggregate.sum.clone());
        if let Some(bound) = self.truncate {
            precode::truncate(&mut aggregate.sum, bound)?;
        }
        if let Some(normalisation) = &aggregate.normalisation {
            normalisation.undo(&mut aggregate.sum)?;
        }
        Ok(aggregate)
    }
}

/// A round to which updates are added in waves, in the order of its clients.
pub struct RoundInProgress<'a> {
    aggregation: Aggregation,
    uplink: &'a dyn Uplink,
    round: Round<'a>,
    /// The partial sum, if waves are added as they arrive.
    sum: Vec<f32>,
    state: State,
    scales: Vec<Scale>,
    norms: Vec<f64>,
    broken: Vec<usize>,
}

enum State {
    /// Waves are added as they arrive.
    Streamed { channel: EffectiveChannel },
    /// All updates so far.
    Kept(Vec<Vec<f32>>),
}

impl RoundInProgress<'_> {
    /// Adds the updates of the next clients.
    pub fn add<U: AsRef<[f32]> + Sync>(&mut self, updates: &[U]) -> Result<(), UplinkError> {
        let clients = self.round.clients().len();
        if updates.is_empty() {
            return Ok(());
        }
        if let Some((index, update)) =
            updates.iter().enumerate().find(|(_, update)| update.as_ref().len() != self.sum.len())
        {
            let (expected, found) = (self.sum.len(), update.as_ref().len());
            return Err(UplinkError::LengthMismatch { index: self.added() + index, expected, found });
        }
        if self.added() + updates.len() > clients {
            return Err(UplinkError::UpdateCount { updates: self.added() + updates.len(), clients });
        }
        if let State::Kept(kept) = &mut self.state {
            kept.extend(updates.iter().map(|update| update.as_ref().to_vec()));
            return Ok(());
        }
        match self.add_finite(updates) {
            Err(UplinkError::NotFinite { .. }) => {
                let first = self.added();
                let (finite, broken) = with_zeros(updates);
                self.broken.extend(broken.into_iter().map(|place| first + place));
                self.add_finite(&finite)
            }
            added => added,
        }
    }

    /// Number of updates added so far.
    fn added(&self) -> usize {
        match &self.state {
            State::Streamed { .. } => self.scales.len(),
            State::Kept(kept) => kept.len(),
        }
    }

    /// Adds finite updates. If a value is not finite, returns an error; the wave can then be added again with zeros in its
    /// place.
    fn add_finite<U: AsRef<[f32]> + Sync>(&mut self, updates: &[U]) -> Result<(), UplinkError> {
        let (first, Aggregation { clip, clipping, measure_norms, .. }) = (self.added(), self.aggregation);
        let State::Streamed { channel } = &self.state else { return Ok(()) };
        let noise = (first == 0).then(|| self.round.stream_name(Purpose::PAYLOAD_NOISE));
        // The first wave overwrites the sum, so it can be repeated; later waves are checked before they are added.
        if clip.is_none() && !measure_norms && first == 0 {
            let scales = vec![Scale::UNCHANGED; updates.len()];
            channel.add_into(first, updates, &scales, noise, &mut self.sum)?;
            self.scales.extend(scales);
            return Ok(());
        }
        let precoding = Precoding::new(updates, clip, clipping)?;
        channel.add_into(first, updates, &precoding.scales, noise, &mut self.sum)?;
        self.scales.extend(precoding.scales);
        self.norms.extend(precoding.norms);
        Ok(())
    }

    /// Decodes the sum; an error if an update is missing, or if the scheme's clients keep a memory.
    pub fn finish(self) -> Result<Aggregate, UplinkError> {
        let (updates, clients) = (self.added(), self.round.clients().len());
        if updates != clients {
            return Err(UplinkError::UpdateCount { updates, clients });
        }
        match self.state {
            State::Kept(kept) => self.aggregation.run_whole(self.uplink, self.round, &kept, None, self.sum),
            State::Streamed { channel } => {
                let norms = Some(self.norms).filter(|norms| norms.len() == clients);
                let (sum, scales, broken) = (self.sum, self.scales, self.broken);
                self.aggregation.restore(Aggregate {
                    sum,
                    decoded: None,
                    channel: Some(channel),
                    own_cost: None,
                    scales,
                    norms,
                    normalisation: None,
                    broken,
                })
            }
        }
    }
}

/// Replaces updates that are not finite by zeros and returns their indices.
fn with_zeros<U: AsRef<[f32]> + Sync>(updates: &[U]) -> (Vec<Cow<'_, [f32]>>, Vec<usize>) {
    let is_broken = |update: &U| update.as_ref().iter().any(|value| !value.is_finite());
    let broken: Vec<usize> = (0..updates.len()).filter(|&place| is_broken(&updates[place])).collect();
    let finite = updates.iter().enumerate().map(|(place, update)| {
        let update = update.as_ref();
        if broken.contains(&place) { Cow::Owned(vec![0.0; update.len()]) } else { Cow::Borrowed(update) }
    });
    (finite.collect(), broken)
}

#[cfg(test)]
mod tests {
    use floras_core::{Fading, Modulation, Receiver, Snr, SnrConvention};

    use super::*;
    use crate::effective::Block;
    use crate::sequences::SequenceSet;
    use crate::uplink::{Floras, FlorasSettings, Nonlinear};

    const CLIENTS: u32 = 23;
    const PARAMETERS: usize = 3000;

    fn uplink() -> Floras {
        Floras::new(FlorasSettings {
            sequences: SequenceSet::walsh(30, 32).unwrap(),
            modulation: Modulation::Real,
            receiver: Receiver::Mmse,
            channels: Fading::Rayleigh.into(),
            snr: Snr::new(10.0, SnrConvention::Symbol).unwrap(),
            ..FlorasSettings::default()
        })
    }

    fn all_kinds() -> Vec<Aggregation> {
        let mut kinds = Vec::new();
        for fidelity in [Fidelity::Symbol, Fidelity::Chip] {
            for (clip, clipping) in
                [(None, Clipping::Each), (Some(20.0), Clipping::Each), (Some(20.0), Clipping::Paper)]
            {
                for measure_norms in [false, true] {
                    let truncate = Some(6.0);
                    kinds.push(Aggregation {
                        clip,
                        clipping,
                        fidelity,
                        truncate,
                        measure_norms,
                        ..Aggregation::default()
                    });
                }
            }
        }
        kinds
    }

    #[test]
    fn waves_equal_one_call_bit_for_bit() {
        let clients: Vec<u32> = (0..CLIENTS).collect();
        let round = Round::new(3, 1, 2, &clients).unwrap();
        let mut updates = updates::random_updates(CLIENTS, PARAMETERS);
        updates[9][77] = f32::NAN;
        let uplink = uplink();
        for aggregation in all_kinds() {
            let whole = aggregation.run(&uplink, round, &updates).unwrap();
            assert_eq!(whole.broken, [9], "{aggregation:?}");
            for waves in [vec![0..11, 11..23], vec![0..9, 9..10, 10..23], vec![0..1, 1..22, 22..23]] {
                let mut in_progress = aggregation.begin(&uplink, round, vec![0.0; PARAMETERS]).unwrap();
                for wave in waves {
                    in_progress.add(&updates[wave]).unwrap();
                }
                let in_waves = in_progress.finish().unwrap();
                assert_eq!(in_waves.sum, whole.sum, "{aggregation:?}");
                assert_eq!((&in_waves.broken, &in_waves.scales), (&whole.broken, &whole.scales));
                let measured = aggregation.clip.is_some() || aggregation.measure_norms;
                assert_eq!(whole.norms.is_some(), measured);
            }
        }
    }

    /// Clip, transmit, clamp and undo, one after the other in memory.
    #[test]
    fn a_round_is_its_steps() {
        let clients: Vec<u32> = (0..CLIENTS).collect();
        let round = Round::new(3, 1, 2, &clients).unwrap();
        let updates = updates::random_updates(CLIENTS, PARAMETERS);
        let uplink = uplink();
        for aggregation in all_kinds() {
            let mut sent = updates.clone();
            let normalisation = match (aggregation.clip, aggregation.clipping) {
                (None, _) => None,
                (Some(clip), Clipping::Each) => precode::clip(&mut sent, clip).map(|_| None).unwrap(),
                (Some(clip), Clipping::Paper) => Some(precode::normalise(&mut sent, clip).unwrap()),
            };
            let mut sum = vec![0.0; PARAMETERS];
            let channel = transmit_into(&uplink, &round, &sent, aggregation.fidelity, &mut sum).unwrap();
            let decoded = sum.clone();
            precode::truncate(&mut sum, 6.0).unwrap();
            if let Some(normalisation) = &normalisation {
                normalisation.undo(&mut sum).unwrap();
            }
            let aggregate = aggregation.run(&uplink, round, &updates).unwrap();
            assert_eq!((&aggregate.sum, aggregate.channel), (&sum, Some(channel)), "{aggregation:?}");
            assert_eq!(aggregate.normalisation, normalisation);
            assert_eq!(aggregate.decoded, None);
            let keeping = Aggregation { keep_decoded: true, ..aggregation };
            let aggregate = keeping.run(&uplink, round, &updates).unwrap();
            assert_eq!((aggregate.sum, aggregate.decoded), (sum, Some(decoded)), "{aggregation:?}");
        }
    }

    #[test]
    fn updates_of_wrong_count_or_length_are_refused() {
        let (uplink, clients) = (uplink(), [0, 1]);
        let round = Round::new(3, 1, 2, &clients).unwrap();
        let begin = || Aggregation::default().begin(&uplink, round, vec![0.0; 2]).unwrap();
        assert_eq!(begin().finish().unwrap_err(), UplinkError::UpdateCount { updates: 0, clients: 2 });
        assert_eq!(
            begin().add(&[[1.0, 2.0]; 3]).unwrap_err(),
            UplinkError::UpdateCount { updates: 3, clients: 2 }
        );
        assert!(matches!(begin().add(&[[1.0]]), Err(UplinkError::LengthMismatch { .. })));
    }

    /// Gains that differ from one coherence block of 700 parameters to the next.
    #[derive(Debug)]
    struct Blocks;

    impl Uplink for Blocks {
        fn name(&self) -> &'static str {
            "blocks"
        }

        fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
            let block = |number: usize, parameters: usize| Block {
                parameters,
                gains: vec![1.0 + number as f64; round.clients().len()],
                noise_std: 0.0,
                cross_gains: Vec::new(),
            };
            let Some(parameters) = round.parameters() else {
                return EffectiveChannel::from_blocks(vec![block(0, 1)]);
            };
            let lengths = (0..parameters).step_by(700).map(|from| 700.min(parameters - from));
            EffectiveChannel::from_blocks(
                lengths.enumerate().map(|(number, length)| block(number, length)).collect(),
            )
        }
    }

    #[test]
    fn a_scheme_knows_how_many_parameters_are_sent() {
        let round = Round::new(3, 1, 2, &[5]).unwrap();
        for noise in [Noise::Simulated, Noise::Release] {
            let aggregation = Aggregation { noise, ..Aggregation::default() };
            let sum = aggregation.run(&Blocks, round, &[vec![1.0; 1500]]).unwrap().sum;
            assert_eq!((sum[0], sum[699], sum[700], sum[1399], sum[1400]), (1.0, 1.0, 2.0, 2.0, 3.0));
        }
        let chips = Aggregation { fidelity: Fidelity::Chip, ..Aggregation::default() };
        let error = chips.run(&Blocks, round, &[[1.0]]).unwrap_err();
        assert_eq!(error.to_string(), "scheme blocks has no chip level");
    }

    /// Decodes the sum of all updates so far.
    #[derive(Debug)]
    struct Accumulated;

    impl Uplink for Accumulated {
        fn name(&self) -> &'static str {
            "accumulated"
        }

        fn realise(&self, _: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
            Err(UplinkError::NotLinear { scheme: self.name() })
        }

        fn nonlinear(&self) -> Option<&dyn Nonlinear> {
            Some(self)
        }
    }

    impl Nonlinear for Accumulated {
        fn receive(
            &self,
            round: &Round<'_>,
            updates: &[Sent<'_>],
            memory: &mut ClientMemory,
            decoded: &mut [f32],
        ) -> Result<Received, UplinkError> {
            decoded.fill(0.0);
            for (update, &client) in updates.iter().zip(round.clients()) {
                let update = update.values();
                let kept = memory.of(client, update.len());
                for ((kept, decoded), x) in kept.iter_mut().zip(&mut *decoded).zip(update.as_ref()) {
                    *kept += x;
                    *decoded += *kept;
                }
            }
            Ok(Received::default())
        }

        fn keeps_memory(&self) -> bool {
            true
        }
    }

    #[test]
    fn nonlinear_rounds_clip_and_keep_memory() {
        let round = Round::new(3, 1, 2, &[5, 6]).unwrap();
        let aggregation = Aggregation { clip: Some(5.0), ..Aggregation::default() };
        let updates = [[30.0, 40.0], [1.0, f32::NAN]];
        let mut memory = ClientMemory::default();
        for sum in [[3.0, 4.0], [6.0, 8.0]] {
            let aggregate =
                aggregation.run_in(&Accumulated, round, &updates, Some(&mut memory), vec![0.0; 2]).unwrap();
            assert!(aggregate.sum.iter().zip(sum).all(|(found, expected)| (found - expected).abs() < 1e-5));
            assert_eq!((aggregate.channel.is_none(), aggregate.broken.as_slice()), (true, &[1][..]));
        }
        let refused = |aggregation: Aggregation| {
            aggregation.run_in(&Accumulated, round, &updates, None, vec![0.0; 2]).unwrap_err().to_string()
        };
        assert!(refused(aggregation).contains("keep what they have not sent"));
        assert!(
            refused(Aggregation { noise: Noise::Release, ..aggregation }).contains("needs a linear scheme")
        );
        assert!(refused(Aggregation { fidelity: Fidelity::Chip, ..aggregation }).contains("no chip level"));
    }

    #[test]
    fn a_wrong_number_of_gains_is_refused() {
        #[derive(Debug)]
        struct One;
        impl Uplink for One {
            fn name(&self) -> &'static str {
                "one"
            }

            fn realise(&self, _: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
                EffectiveChannel::new(vec![1.0], 0.0)
            }
        }
        let round = Round::new(3, 1, 2, &[5, 6]).unwrap();
        for noise in [Noise::Simulated, Noise::Release] {
            let aggregation = Aggregation { noise, ..Aggregation::default() };
            let refused = aggregation.run(&One, round, &[[1.0], [2.0]]);
            assert!(matches!(refused, Err(UplinkError::WrongCount { .. })), "{refused:?}");
        }
        let uplink = uplink();
        let mut in_progress = Aggregation::default().begin(&uplink, round, vec![0.0; 2]).unwrap();
        in_progress.add::<[f32; 2]>(&[]).unwrap();
        in_progress.add(&[[1.0, 2.0], [3.0, 4.0]]).unwrap();
        assert!(in_progress.finish().is_ok());
    }

    #[test]
    fn a_signal_of_other_clients_is_refused() {
        #[derive(Debug)]
        struct Shortened;
        impl Uplink for Shortened {
            fn name(&self) -> &'static str {
                "shortened"
            }

            fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
                uplink().realise(round)
            }

            fn signal(&self, round: &Round<'_>, _: Fidelity) -> Result<Option<Signal>, UplinkError> {
                uplink().despread(round).map(|signal| Some(Signal { amplitudes: vec![1.0], ..signal }))
            }
        }
        let round = Round::new(3, 1, 2, &[5, 6]).unwrap();
        let refused = Aggregation::default().signal(&Shortened, round, 1);
        assert!(matches!(refused, Err(UplinkError::WrongCount { .. })), "{refused:?}");
    }
}
