//! Reconstruction: pictures from the gradients of softmax regression.
//!
//! Each of a round's `K` clients takes one step on one of its samples, from the initial model and at the experiment's rate. The
//! updates are clipped as in the experiment and sent over its uplink, at several signal-to-noise ratios. A base station that
//! stores its samples has, on client `k`'s sequence,
//!
//! ```text
//! z = h_k x_k + s·n,     s = σ/√L
//! ```
//!
//! and all others have the decoded sum. Both reconstruct the sample; see the module `picture`. They need no channel knowledge:
//! a factor does not change a picture, and the picture itself shows the sign. The original is used for the comparison only. A
//! sum yields one picture per class, which is compared with the sample of that class.

mod picture;
mod report;
mod words;

use std::collections::BTreeMap;

use floras_core::Fidelity;
use floras_core::random::{Stream, StreamName};
use floras_learn::{ClientData, LocalSgd, Samples, Work, Workspace};
use floras_phy::precode::Precoding;
use floras_phy::{EffectiveChannel, Round, SequenceSet, Signal, UplinkError, transmit};
use floras_sim::schemes::FlorasScheme;
use floras_sim::{Federation, Settings, SimError, purpose};
use picture::{Canvas, Update, correlation, grey, stretched};
use rand::seq::IndexedRandom;

use crate::branches;
use crate::game::despread;
pub use report::{ReconstructionAttack, ReconstructionRow};

/// The signal-to-noise ratios, in the order of the picture.
const SNRS_DB: [f64; 3] = [40.0, 20.0, 0.0];

/// Reconstructs `portraits` of the clients' samples; `None` if the model does not reveal any, or if they are not pictures.
pub(crate) fn attack(
    federation: &Federation,
    portraits: usize,
) -> Result<Option<ReconstructionAttack>, SimError> {
    let settings = federation.experiment().settings();
    let canvas = Canvas::of(&settings.data.set).filter(|_| federation.model().is_softmax_regression());
    let Some(canvas) = canvas else { return Ok(None) };
    let clients = federation.select(0, 1);
    let round = Round::new(settings.seed, 0, 1, &clients)?.with_parameters(federation.model().parameters());
    let subjects = pick_samples(federation, &round)?;
    let scene = Scene {
        federation,
        canvas,
        updates: updates(federation, &subjects)?,
        portraits: portraits_of(&subjects, portraits),
        round,
        subjects,
    };
    let mut rows = Vec::new();
    match settings.uplink.radio() {
        None => rows.push(scene.decoded(settings, None)?),
        Some(_) => {
            if let Some(scheme) = settings.uplink.scheme.floras().filter(|_| branches(settings) == 1) {
                for snr_db in SNRS_DB {
                    rows.push(scene.despread(scheme, snr_db)?);
                }
            }
            for snr_db in SNRS_DB {
                rows.push(scene.decoded(&at_snr(settings, snr_db), Some(snr_db))?);
            }
        }
    }
    Ok(Some(ReconstructionAttack {
        width: canvas.width,
        height: canvas.height,
        originals: scene.portraits.iter().map(|&place| grey(&scene.original(place))).collect(),
        rows,
        settings: words::settings(federation.experiment().settings()),
    }))
}

/// A round in which every client sent the gradient of one sample.
struct Scene<'a> {
    federation: &'a Federation,
    round: Round<'a>,
    canvas: Canvas,
    /// The picked sample of every client, in the order of the round's clients.
    subjects: Vec<Samples>,
    /// The sent updates, in the same order.
    updates: Vec<Vec<f32>>,
    /// The positions of the displayed clients in the round.
    portraits: Vec<usize>,
}

/// Every client of the round picks one of its samples, preferring labels that few other clients picked.
fn pick_samples(federation: &Federation, round: &Round<'_>) -> Result<Vec<Samples>, SimError> {
    let holdings = federation.holdings(0)?;
    let mut taken = vec![0_u32; federation.model().classes()];
    let mut pick_one = |&client: &u32| {
        let mut stream = round.stream_of(purpose::PORTRAITS, client);
        let picked = holdings.with_client(client, |data| pick(data, &mut taken, &mut stream));
        picked.map_err(SimError::learn("data"))
    };
    round.clients().iter().map(&mut pick_one).collect()
}

fn pick(data: ClientData<'_>, taken: &mut [u32], stream: &mut Stream) -> Samples {
    let label_of = |row: u32| usize::from(data.samples.labels()[row as usize]);
    let labels = data.rows.iter().map(|&row| label_of(row));
    let label = labels.min_by_key(|&label| (taken[label], label)).unwrap_or(0);
    taken[label] += 1;
    let of_label: Vec<u32> = data.rows.iter().copied().filter(|&row| label_of(row) == label).collect();
    let row: Vec<u32> = of_label.choose(stream).copied().into_iter().collect();
    data.samples.select(&row)
}

/// Positions of at most `most` clients: one per label first, then further ones, each time in the order of the labels.
fn portraits_of(subjects: &[Samples], most: usize) -> Vec<usize> {
    let mut seen = BTreeMap::new();
    let mut places: Vec<(u32, u16, usize)> = Vec::new();
    for (place, subject) in subjects.iter().enumerate() {
        let earlier = seen.entry(label(subject)).or_insert(0);
        places.push((*earlier, label(subject), place));
        *earlier += 1;
    }
    places.sort_unstable();
    places.into_iter().take(most).map(|(.., place)| place).collect()
}

fn label(subject: &Samples) -> u16 {
    subject.labels().first().copied().unwrap_or(0)
}

/// The updates: one step on one sample, clipped as in any round.
fn updates(federation: &Federation, subjects: &[Samples]) -> Result<Vec<Vec<f32>>, SimError> {
    let settings = federation.experiment().settings();
    let initial = federation.initial_model(0);
    let sgd = LocalSgd::new(1, Work::Steps(1)).map_err(SimError::learn("local"))?;
    let rate = settings.local.rate.at(1);
    let mut workspace = Workspace::default();
    let mut step = |subject: &Samples| {
        let mut update = initial.clone();
        let data = ClientData { samples: subject, rows: &[0] };
        // One step on one sample has no randomness.
        let mut unused = purpose::training(|_| StreamName::new(settings.seed, purpose::PORTRAITS).stream());
        sgd.train(federation.model(), data, rate, &mut unused, &mut update, &mut workspace);
        update.iter_mut().zip(&initial).for_each(|(update, common)| *update = common - *update);
        update
    };
    let mut updates: Vec<Vec<f32>> = subjects.iter().map(&mut step).collect();
    Precoding::new(&updates, settings.privacy.clip, settings.privacy.normalise)?.apply(&mut updates);
    Ok(updates)
}

impl Scene<'_> {
    /// The pictures of a base station that stores its samples.
    fn despread(&self, scheme: &FlorasScheme, snr_db: f64) -> Result<ReconstructionRow, SimError> {
        let settings = at_snr(self.federation.experiment().settings(), snr_db);
        let floras = scheme.over_radio(&settings.uplink.radio, settings.seed)?;
        let sequences = floras.settings().sequences.clone();
        let uplink = settings.at_power(Box::new(floras))?;
        let added = settings.masks.map_or(0.0, |masks| masks.symbol_power(self.updates.len()));
        let despread = despread(uplink.as_ref(), &self.round)?;
        let seen = self.portraits.iter().map(|&place| {
            let values = self.on_sequence_of(place, &sequences, &despread, added)?;
            Ok(self.update(&values).sample())
        });
        let seen: Result<Vec<Vec<f64>>, UplinkError> = seen.collect();
        Ok(self.row("despread update", Some(snr_db), &seen?))
    }

    /// The payload on one client's sequence, including cross-talk of overlapping sequences. Masks and noise add variance
    /// `added` to a symbol.
    fn on_sequence_of(
        &self,
        place: usize,
        sequences: &SequenceSet,
        despread: &Signal,
        added: f64,
    ) -> Result<Vec<f32>, UplinkError> {
        let noise = self.round.stream_name(purpose::DESPREAD_NOISE).client(self.round.clients()[place]);
        if sequences.is_orthonormal() {
            let amplitude = despread.amplitudes[place];
            let noise_std = despread.symbol_noise_std.hypot(amplitude * added.sqrt());
            let channel = EffectiveChannel::new(vec![amplitude], noise_std)?;
            return channel.apply(&self.updates[place..=place], noise);
        }
        let own = despread.assigned[place];
        let mut alone = vec![0.0; sequences.count()];
        alone[own] = 1.0;
        let overlaps = sequences.despread(&sequences.spread(&alone)?)?;
        let clients = despread.assigned.iter().zip(&despread.amplitudes);
        let gains: Vec<f64> = clients.map(|(&used, h)| overlaps[used] * h).collect();
        let added = (added * gains.iter().map(|gain| gain * gain).sum::<f64>()).sqrt();
        let noise_std = (despread.symbol_noise_std * overlaps[own].sqrt()).hypot(added);
        EffectiveChannel::new(gains, noise_std)?.apply(&self.updates, noise)
    }

    /// The pictures from the decoded sum.
    fn decoded(&self, settings: &Settings, snr_db: Option<f64>) -> Result<ReconstructionRow, SimError> {
        let uplink = settings.build_uplink(settings.seed)?;
        let decoded = transmit(uplink.as_ref(), &self.round, &self.updates, Fidelity::Symbol)?;
        let sum = self.update(&decoded.sum);
        let of_label = |&place: &usize| sum.samples_of(label(&self.subjects[place]).into());
        let seen: Vec<Vec<f64>> = self.portraits.iter().map(of_label).collect();
        Ok(self.row("decoded sum", snr_db, &seen))
    }

    fn update<'u>(&self, values: &'u [f32]) -> Update<'u> {
        Update { values, classes: self.federation.model().classes() }
    }

    fn original(&self, place: usize) -> Vec<f64> {
        let features: Vec<f64> = self.subjects[place].features().iter().map(|&value| value.into()).collect();
        self.canvas.brightness(&features)
    }

    fn row(&self, source: &str, snr_db: Option<f64>, seen: &[Vec<f64>]) -> ReconstructionRow {
        let seen: Vec<Vec<f64>> = seen.iter().map(|features| self.canvas.brightness(features)).collect();
        let pairs = self.portraits.iter().zip(&seen);
        ReconstructionRow {
            source: source.to_owned(),
            snr_db,
            images: seen.iter().map(|values| stretched(values)).collect(),
            correlations: pairs.map(|(&place, seen)| correlation(&self.original(place), seen)).collect(),
        }
    }
}

/// The same settings at another signal-to-noise ratio.
fn at_snr(settings: &Settings, snr_db: f64) -> Settings {
    let mut settings = settings.clone();
    settings.uplink.radio.snr_db = snr_db;
    settings
}

#[cfg(test)]
mod tests;
