//! Channel coefficients: one complex `h` for each client and round, constant over the round's `d` symbols.
//!
//! They are drawn from a distribution of fading, read from a trace file, or fixed. A drawn coefficient depends on the seed, the
//! trial, the round and the client alone, so that schemes can be compared on the same channels.
//!
//! Three settings change this. With [ageing](Channels::with_ageing) the channels of the payload differ from those of the pilot. With
//! [path loss](Channels::with_path_loss) every client has a long-term gain for a whole trial, by which its coefficients are
//! multiplied. With an [error of the estimate](Channels::with_estimation_error) clients know their own channels as `h + e`,
//! `e ~ CN(0, s²)`.

mod admission;
mod payload;
mod trace;

use std::f64::consts::TAU;
use std::fmt;
use std::sync::Arc;

use floras_core::random::{Purpose, Stream};
use floras_core::{Ageing, Cell, ChannelSource, Choice, Fading, PathLoss};
use num_complex::Complex64;
use rand::RngExt;
use rand_distr::{Distribution, Gamma, StandardNormal};

use crate::error::{UplinkError, require};
use crate::round::Round;

pub(crate) use admission::mean_above;
use payload::Evolution;
pub use payload::PayloadBlock;
pub use trace::Trace;

/// The source of a round's channel coefficients.
///
/// ```
/// use floras_phy::{Channels, Complex64, Fading, Round};
///
/// let round = Round::new(1, 0, 1, &[4, 7])?;
/// assert_eq!(Channels::from(Fading::None).draw(&round)?, [Complex64::ONE, Complex64::ONE]);
/// assert_eq!(Channels::from(Fading::Rayleigh).draw(&round)?.len(), 2);
/// # Ok::<(), floras_phy::UplinkError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Channels {
    source: Source,
    /// `None` for channels that are constant over a round.
    evolution: Option<Evolution>,
    /// `None` for clients of the same mean power, sent and received.
    cell: Option<Cell>,
    /// Standard deviation `s` of the complex error of a client's channel estimate; 0 if clients know their channels exactly.
    estimation_error_std: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Source {
    Fading(Fading),
    Trace(Arc<Trace>),
    /// Client `k` has coefficient `k` in every round. Clients beyond the list have its last coefficient.
    Fixed(Arc<[Complex64]>),
}

impl Channels {
    /// The channels of an experiment; a trace file is read.
    pub fn open(source: &ChannelSource) -> Result<Self, UplinkError> {
        match source {
            ChannelSource::Fading(fading) => Ok((*fading).into()),
            ChannelSource::Trace(path) => Ok(Trace::from_path(path)?.into()),
        }
    }

    /// Channels that are the same in every round. Client `k` has coefficient `k`, and clients beyond the list have its last one. The
    /// list has at least one coefficient, and no magnitude above 1e6.
    pub fn fixed(coefficients: &[Complex64]) -> Result<Self, UplinkError> {
        let count = coefficients.len() as f64;
        require(count > 0.0, "the number of fixed coefficients", "at least 1", count)?;
        let sound = |h: &Complex64| h.is_finite() && h.norm() <= trace::MAX_AMPLITUDE;
        if let Some(wrong) = coefficients.iter().find(|h| !sound(h)) {
            require(false, "the size of a fixed coefficient", "at most 1e6", wrong.norm())?;
        }
        Ok(Source::Fixed(coefficients.into()).into())
    }

    /// The same channels with [ageing](Ageing) between the pilot and the payload. The payload consists of blocks of `coherence`
    /// parameters, at least 1. The first block is one step after the pilot, and every other block one step after its predecessor.
    /// `None` is one block that holds all parameters. Only channels with a scattered part, Rayleigh and Rician, can age.
    pub fn with_ageing(mut self, ageing: Ageing, coherence: Option<usize>) -> Result<Self, UplinkError> {
        if ageing == Ageing::None {
            self.evolution = None;
            return Ok(self);
        }
        if !matches!(self.fading(), Some(Fading::Rayleigh | Fading::Rician(_))) {
            return Err(UplinkError::CannotAge { channels: self.to_string() });
        }
        require(coherence != Some(0), "the number of parameters in a coherent block", "at least 1", 0.0)?;
        let correlation = ageing.correlation();
        self.evolution = (correlation != 1.0).then_some(Evolution { correlation, coherence });
        Ok(self)
    }

    /// The same channels with path loss: a long-term gain by the position of each client in a cell. Only channels drawn from a
    /// distribution can have path loss.
    pub fn with_path_loss(mut self, path_loss: PathLoss) -> Result<Self, UplinkError> {
        if self.fading().is_none() && path_loss != PathLoss::None {
            return Err(UplinkError::CannotLose { channels: self.to_string() });
        }
        self.cell = path_loss.cell();
        Ok(self)
    }

    /// The same channels with an estimation error: each client knows its own channel with an error of `CN(0, std²)`. `std` is
    /// between 0 and 100, relative to the mean power 1 of the channels.
    pub fn with_estimation_error(mut self, std: f64) -> Result<Self, UplinkError> {
        let holds = (0.0..=100.0).contains(&std);
        require(holds, "the standard deviation of a client's channel estimate", "between 0 and 100", std)?;
        self.estimation_error_std = std;
        Ok(self)
    }

    /// Whether the channels of the payload differ from those of the pilot.
    pub fn ages(&self) -> bool {
        self.evolution.is_some()
    }

    /// Whether clients arrive with unequal mean powers.
    pub fn is_unequal(&self) -> bool {
        self.cell.is_some_and(|cell| !cell.is_equalised())
    }

    /// Standard deviation `s` of the error with which clients know their own channels, 0 to 100.
    pub fn estimation_error_std(&self) -> f64 {
        self.estimation_error_std
    }

    /// The distribution of the coefficients; `None` for a trace and for fixed coefficients.
    pub fn fading(&self) -> Option<Fading> {
        match self.source {
            Source::Fading(fading) => Some(fading),
            Source::Trace(_) | Source::Fixed(_) => None,
        }
    }

    /// The trace that the coefficients are read from; `None` for other channels.
    pub fn trace(&self) -> Option<&Trace> {
        match &self.source {
            Source::Trace(trace) => Some(trace),
            Source::Fading(_) | Source::Fixed(_) => None,
        }
    }

    /// The coefficient of every client of a round at the time of the pilot, in the order of its list. Without ageing the payload has
    /// the same.
    pub fn draw(&self, round: &Round<'_>) -> Result<Vec<Complex64>, UplinkError> {
        round.clients().iter().map(|&client| self.draw_for(round, client)).collect()
    }

    /// The coefficients during the payload, block by block. If blocks have a limited number of parameters, the round must [know its
    /// number of parameters](Round::with_parameters).
    pub fn draw_payload(&self, round: &Round<'_>) -> Result<Vec<PayloadBlock>, UplinkError> {
        self.draw_payload_at(round, 1)
    }

    /// [`draw_payload`](Self::draw_payload) at each of several antennas, which are independent of one another. The first antenna has
    /// the coefficients of `draw_payload`.
    pub fn draw_payload_at(
        &self,
        round: &Round<'_>,
        antennas: usize,
    ) -> Result<Vec<PayloadBlock>, UplinkError> {
        let (Some(evolution), Source::Fading(fading)) = (self.evolution, &self.source) else {
            return Ok(vec![PayloadBlock {
                parameters: usize::MAX,
                channels: self.draw_at(round, antennas)?,
            }]);
        };
        let clients = round.clients();
        let count = clients.len() * antennas;
        let empty = |parameters| PayloadBlock { parameters, channels: Vec::with_capacity(count) };
        let mut blocks: Vec<PayloadBlock> =
            evolution.blocks(round, antennas)?.into_iter().map(empty).collect();
        for &client in clients {
            let mut fading_stream = round.stream_of(Purpose::FADING, client);
            let gain = self.long_term_gain(round, client);
            let mut stream = round.stream_of(Purpose::AGEING, client);
            for _ in 0..antennas {
                let (line_of_sight, scattered, power) = parts(*fading, &mut fading_stream);
                let steps = evolution.steps(scattered, power, &mut stream, blocks.len());
                for (block, scattered) in blocks.iter_mut().zip(steps) {
                    block.channels.push((line_of_sight + scattered) * gain);
                }
            }
        }
        Ok(blocks)
    }

    /// Every client's estimate of its own coefficient at the time of the pilot; exact without estimation error.
    pub fn draw_estimates(&self, round: &Round<'_>) -> Result<Vec<Complex64>, UplinkError> {
        self.draw_estimates_at(round, 1)
    }

    /// [`draw_estimates`](Self::draw_estimates) of several coefficients for each client: at antennas, or on subcarriers. That of
    /// client `k` at antenna `r` of `R` is at `k·R + r`. The errors are independent, and the first antenna has those of
    /// `draw_estimates`.
    pub fn draw_estimates_at(
        &self,
        round: &Round<'_>,
        antennas: usize,
    ) -> Result<Vec<Complex64>, UplinkError> {
        let mut drawn = self.draw_at(round, antennas)?;
        if self.estimation_error_std > 0.0 {
            for (of_client, &client) in drawn.chunks_mut(antennas.max(1)).zip(round.clients()) {
                let mut errors = round.stream_of(Purpose::CHANNEL_ESTIMATE, client);
                for h in of_client {
                    *h += circular_gaussian(&mut errors) * self.estimation_error_std;
                }
            }
        }
        Ok(drawn)
    }

    /// Every client's transmit amplitude under power control: 1 without path loss, and at the edge of the cell without shadowing.
    pub fn sent_amplitudes(&self, round: &Round<'_>) -> Vec<f64> {
        let sent =
            |&client: &u32| self.cell.map_or(1.0, |cell| cell.sent_amplitude(loss_db(cell, round, client)));
        round.clients().iter().map(sent).collect()
    }

    /// The long-term amplitude of every client of a round: 1 without path loss.
    pub fn long_term_gains(&self, round: &Round<'_>) -> Vec<f64> {
        round.clients().iter().map(|&client| self.long_term_gain(round, client)).collect()
    }

    fn long_term_gain(&self, round: &Round<'_>, client: u32) -> f64 {
        match self.cell.filter(|cell| !cell.is_equalised()) {
            None => 1.0,
            Some(cell) => cell.received_amplitude(loss_db(cell, round, client)),
        }
    }

    /// The coefficients of every client at each of several antennas, independent of one another: one list per antenna. The first
    /// antenna has those of [`draw`](Self::draw). A trace has one antenna; fixed coefficients are the same at all antennas.
    pub fn draw_antennas(
        &self,
        round: &Round<'_>,
        antennas: usize,
    ) -> Result<Vec<Vec<Complex64>>, UplinkError> {
        let drawn = self.draw_at(round, antennas)?;
        let antenna = |first| drawn.iter().skip(first).step_by(antennas).copied().collect();
        Ok((0..antennas).map(antenna).collect())
    }

    /// The same in one list: client `k`'s coefficient at antenna `r` is at `k·R + r`.
    pub(crate) fn draw_at(&self, round: &Round<'_>, antennas: usize) -> Result<Vec<Complex64>, UplinkError> {
        if antennas == 1 {
            return self.draw(round);
        }
        let mut drawn = Vec::with_capacity(round.clients().len() * antennas);
        for &client in round.clients() {
            match &self.source {
                Source::Fading(fading) => {
                    let mut stream = round.stream_of(Purpose::FADING, client);
                    let gain = self.long_term_gain(round, client);
                    drawn.extend((0..antennas).map(|_| draw(*fading, &mut stream) * gain));
                }
                Source::Fixed(_) => {
                    let h = self.draw_for(round, client)?;
                    drawn.extend((0..antennas).map(|_| h));
                }
                Source::Trace(_) => {
                    let number = antennas as f64;
                    require(false, "the number of antennas", "1 with channels from a trace", number)?;
                }
            }
        }
        Ok(drawn)
    }

    fn draw_for(&self, round: &Round<'_>, client: u32) -> Result<Complex64, UplinkError> {
        Ok(match &self.source {
            Source::Fading(fading) => {
                let h = draw(*fading, &mut round.stream_of(Purpose::FADING, client));
                h * self.long_term_gain(round, client)
            }
            // A trace counts rounds from 0.
            Source::Trace(trace) => trace.coefficient(round.number() - 1, client)?,
            Source::Fixed(coefficients) => coefficients[(client as usize).min(coefficients.len() - 1)],
        })
    }

    /// `E|h|`, for a receiver that knows the distribution of the channels but not their values.
    pub fn mean_amplitude(&self) -> f64 {
        match &self.source {
            Source::Fading(fading) => fading.mean_amplitude() * self.cell.map_or(1.0, Cell::mean_amplitude),
            Source::Trace(trace) => trace.mean_amplitude(),
            Source::Fixed(coefficients) => {
                coefficients.iter().map(|h| h.norm()).sum::<f64>() / coefficients.len() as f64
            }
        }
    }
}

impl From<Source> for Channels {
    fn from(source: Source) -> Self {
        Self { source, evolution: None, cell: None, estimation_error_std: 0.0 }
    }
}

impl From<Fading> for Channels {
    fn from(fading: Fading) -> Self {
        Source::Fading(fading).into()
    }
}

impl From<Trace> for Channels {
    fn from(trace: Trace) -> Self {
        Source::Trace(trace.into()).into()
    }
}

impl fmt::Display for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Fading(fading) => f.write_str(&fading.label()),
            Source::Trace(trace) if trace.rounds() == 1 => f.write_str("trace of 1 round"),
            Source::Trace(trace) => write!(f, "trace of {} rounds", trace.rounds()),
            Source::Fixed(coefficients) if coefficients.len() == 1 => f.write_str("fixed, 1 coefficient"),
            Source::Fixed(coefficients) => write!(f, "fixed, {} coefficients", coefficients.len()),
        }
    }
}

fn draw(fading: Fading, stream: &mut Stream) -> Complex64 {
    let (line_of_sight, scattered, _) = parts(fading, stream);
    line_of_sight + scattered
}

/// The constant part of a coefficient, its scattered part, and the mean power of the scattered part.
fn parts(fading: Fading, stream: &mut Stream) -> (Complex64, Complex64, f64) {
    match fading {
        Fading::None => (Complex64::ONE, Complex64::ZERO, 0.0),
        Fading::Rayleigh => (Complex64::ZERO, circular_gaussian(stream), 1.0),
        Fading::Rician(factor) => {
            let factor = factor.get();
            let line_of_sight =
                Complex64::from_polar((factor / (factor + 1.0)).sqrt(), uniform_phase(stream));
            let power = 1.0 / (factor + 1.0);
            (line_of_sight, circular_gaussian(stream) * power.sqrt(), power)
        }
        Fading::Nakagami(shape) => {
            let m = shape.get();
            let power = Gamma::new(m, 1.0 / m).expect("m is at least ½").sample(stream);
            (Complex64::from_polar(power.sqrt(), uniform_phase(stream)), Complex64::ZERO, 0.0)
        }
    }
}

/// The long-term loss of a client in dB, which is constant over a trial.
fn loss_db(cell: Cell, round: &Round<'_>, client: u32) -> f64 {
    let mut stream = round.stream_of_trial(Purpose::PLACEMENT, client);
    let place = stream.random();
    cell.loss_db(place, StandardNormal.sample(&mut stream))
}

/// `CN(0, 1)`: real and imaginary part with variance ½ each.
fn circular_gaussian(stream: &mut Stream) -> Complex64 {
    let mut part = || -> f64 { StandardNormal.sample(stream) };
    let (re, im): (f64, f64) = (part(), part());
    Complex64::new(re, im) * 0.5_f64.sqrt()
}

fn uniform_phase(stream: &mut Stream) -> f64 {
    stream.random::<f64>() * TAU
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(channels: &Channels) -> Vec<Complex64> {
        let clients: Vec<u32> = (0..200_000).collect();
        channels.draw(&Round::new(3, 0, 1, &clients).unwrap()).unwrap()
    }

    #[test]
    fn fading_has_unit_power_and_stated_mean() {
        let texts = ["rayleigh", "rician=0", "rician=3", "rician=80", "nakagami=0.5", "nakagami=4"];
        for channels in texts.map(|text| Channels::from(text.parse::<Fading>().unwrap())) {
            let draws = draws(&channels);
            let mean =
                |f: &dyn Fn(Complex64) -> f64| draws.iter().map(|&h| f(h)).sum::<f64>() / draws.len() as f64;
            // The largest standard error here is √2/√200000 = 0.0032, for Nakagami ½; five of them make 0.016.
            assert!((mean(&|h| h.norm_sqr()) - 1.0).abs() < 0.016, "{channels}");
            assert!((mean(&|h| h.norm()) - channels.mean_amplitude()).abs() < 0.008, "{channels}");
            assert!(mean(&|h| h.re).abs() < 0.009 && mean(&|h| h.im).abs() < 0.009, "{channels}");
            assert!(mean(&|h| h.re * h.im).abs() < 0.009, "{channels}");
            assert!((mean(&|h| h.re * h.re) - 0.5).abs() < 0.012, "{channels}");
        }
    }

    /// The errors are what is left without the channels. 20,000 pairs of independent errors of power 0.25 have a correlation below
    /// 5/√20000, except with a probability of 1e-10; equal errors would have 1.
    #[test]
    fn each_antenna_has_an_estimation_error() {
        let clients: Vec<u32> = (0..20_000).collect();
        let round = Round::new(1, 2, 3, &clients).unwrap();
        let channels = Channels::from(Fading::Rayleigh).with_estimation_error(0.5).unwrap();
        let (exact, known) =
            (channels.draw_at(&round, 2).unwrap(), channels.draw_estimates_at(&round, 2).unwrap());
        let errors: Vec<Complex64> = known.iter().zip(&exact).map(|(known, h)| known - h).collect();
        let first = channels.draw_estimates(&round).unwrap();
        assert!(first.iter().zip(known.iter().step_by(2)).all(|(one, both)| one == both));
        let correlation: Complex64 = errors.chunks(2).map(|pair| pair[0] * pair[1].conj()).sum();
        assert!(correlation.norm() / (0.25 * 20_000.0) < 5.0 / 20_000_f64.sqrt());
        // The mean power has a relative standard error of 1/√40000.
        let power = errors.iter().map(|error| error.norm_sqr()).sum::<f64>() / 40_000.0;
        assert!((power / 0.25 - 1.0).abs() < 0.025, "{power}");
    }

    #[test]
    fn channels_do_not_depend_on_other_clients() {
        let alone = Channels::from(Fading::Rayleigh).draw(&Round::new(1, 2, 4, &[7]).unwrap()).unwrap();
        let among = Channels::from(Fading::Rayleigh).draw(&Round::new(1, 2, 4, &[5, 6, 7]).unwrap()).unwrap();
        assert_eq!(alone[0], among[2]);
    }

    #[test]
    fn the_last_fixed_coefficient_serves_further_clients() {
        let channels = Channels::fixed(&[Complex64::new(0.5, 1.0), Complex64::new(-2.0, 0.0)]).unwrap();
        for number in 0..3 {
            let drawn = channels.draw(&Round::new(1, 0, number + 1, &[4, 0, 1]).unwrap()).unwrap();
            assert_eq!(drawn, [(-2.0, 0.0), (0.5, 1.0), (-2.0, 0.0)].map(|(re, im)| Complex64::new(re, im)));
        }
        assert_eq!(channels.mean_amplitude(), (1.25_f64.sqrt() + 2.0) / 2.0);
    }

    #[test]
    fn fixed_coefficients_out_of_range_are_refused() {
        let wrong: [&[Complex64]; 3] = [&[], &[Complex64::new(f64::NAN, 0.0)], &[Complex64::new(1e7, 0.0)]];
        for coefficients in wrong {
            assert!(matches!(Channels::fixed(coefficients), Err(UplinkError::OutOfRange { .. })));
        }
    }

    /// The first antenna has the coefficients of a single antenna, and no two antennas share a coefficient. 20,000 draws of two
    /// independent complex numbers of unit power have a correlation below 5/√20000, except with a probability of 1e-10.
    #[test]
    fn further_antennas_are_independent_of_the_first() {
        let clients: Vec<u32> = (0..20_000).collect();
        let round = Round::new(1, 2, 3, &clients).unwrap();
        let channels = Channels::from(Fading::Rayleigh);
        let drawn = channels.draw_antennas(&round, 3).unwrap();
        assert_eq!((drawn.len(), &drawn[0]), (3, &channels.draw(&round).unwrap()));
        for (left, right) in [(0, 1), (0, 2), (1, 2)] {
            let product: Complex64 =
                drawn[left].iter().zip(&drawn[right]).map(|(left, right)| left * right.conj()).sum();
            assert!(product.norm() / 20_000.0 < 5.0 / 20_000_f64.sqrt());
        }
        let trace = Trace::from_reader("round,client,real,imaginary\n0,0,1,0\n".as_bytes()).unwrap();
        let first = Round::new(1, 0, 1, &[0]).unwrap();
        assert!(Channels::from(trace.clone()).draw_antennas(&first, 2).is_err());
        assert_eq!(Channels::from(trace).draw_antennas(&first, 1).unwrap(), [[Complex64::ONE]]);
    }
}
