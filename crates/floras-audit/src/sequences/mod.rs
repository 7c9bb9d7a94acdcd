//! Detection of the `K` sequences in use among `N`, the first step of a base station that attacks single clients.
//!
//! The scheme's noise comes from unused sequences that the base station decodes like used ones. An adversary who can
//! distinguish them omits them, and their noise. A sequence shows its pilot and the energy of its payload; [`detector`] weighs
//! both, [`theory`] computes the success rate.
//!
//! The adversary assumes that every update has norm `C`, and in the draws every update has it: the worst case for the client.
//! It uses the one real branch that the receiver decodes; with real modulation the other branch has as much information again.
//! It knows `K`, and selects the `K` sequences with the highest scores.

mod bessel;
mod chi_square;
pub(crate) mod detector;
mod distribution;
mod draw;
mod report;
mod scores;
mod sweep;
mod theory;

use floras_phy::{Trace, precode};
use floras_sim::schemes::FlorasScheme;
use floras_sim::{Federation, Radio, SimError, Trial, TrialOptions};

use self::detector::Payload;
use self::distribution::ChannelDistribution;
use self::draw::Scene;
pub use self::report::{DetectorResult, SequenceAttack};
use self::scores::{Detector, Scores};
use self::sweep::{Sweep, characteristic};
use crate::sent_clip;

/// Detections are reported at this false-alarm rate.
const FALSE_ALARMS: f64 = 0.01;
/// Maximum number of examined sequences, over all rounds.
const MAX_SEQUENCES: usize = 100_000;
/// The same for one point of a plot.
const MAX_AT_A_POINT: usize = 10_000;

/// The attack on an experiment's own settings, and its dependence on them. `None` if the sequences are not hidden: another
/// scheme, overlapping sequences, no unused ones, no noise, or masks, whose energy shows every sequence in use.
pub(crate) fn attack(federation: &Federation, rounds: u32) -> Result<Option<SequenceAttack>, SimError> {
    let settings = federation.experiment().settings();
    let scheme = settings.uplink.scheme.floras().filter(|_| settings.masks.is_none());
    let Some(scheme) = scheme else { return Ok(None) };
    let radio = &settings.uplink.radio;
    let (sequences, in_use) = (scheme.sequences, settings.clients.per_round);
    let is_hidden = sequences > in_use as usize && scheme.is_orthonormal(radio.length)?;
    if !is_hidden || radio.snr_db == f64::INFINITY {
        return Ok(None);
    }
    let floras = scheme.over_radio(radio, settings.seed)?;
    let payload = Payload::over(&floras, federation.model().parameters() as f64, norm(federation)?);
    let channels = floras.settings().channels.clone();
    let clients = clients(federation, channels.trace());
    let rounds = affordable(rounds, sequences, channels.trace().map(|_| clients.len()));
    let scene = Scene { floras, clients, payload, seed: settings.seed };
    let distribution = channels.fading().map(|fading| ChannelDistribution::new(fading, scheme.modulation));
    let all = score_all(&scene, distribution.as_ref(), rounds)?;
    let detectors = all.iter().map(|of| result(of, &scene, distribution.as_ref())).collect();
    let mut panels = vec![characteristic(&scene, distribution.as_ref(), &all)];
    panels.extend(exact_set_panels((scheme, radio), distribution.as_ref(), &scene, rounds)?);
    Ok(Some(SequenceAttack { rounds, sequences, in_use: in_use as usize, detectors, panels }))
}

fn exact_set_panels(
    (scheme, radio): (&FlorasScheme, &Radio),
    distribution: Option<&ChannelDistribution>,
    scene: &Scene,
    rounds: u32,
) -> Result<Vec<floras_sim::figure::Panel>, SimError> {
    // A plot needs no rates more accurate than a few percent.
    let affordable = (MAX_AT_A_POINT / scheme.sequences.max(1)).max(10) as u32;
    let rounds = (rounds / 5).max(100).min(rounds).min(affordable);
    Sweep { scheme, radio, distribution, scene, rounds }.panels()
}

/// Under fading all clients are alike. A trace has the participating clients in the recorded rounds.
fn clients(federation: &Federation, trace: Option<&Trace>) -> Vec<Vec<u32>> {
    let settings = federation.experiment().settings();
    match trace {
        Some(trace) => {
            (1..=trace.rounds().min(settings.rounds)).map(|round| federation.select(0, round)).collect()
        }
        None => vec![(0..settings.clients.per_round).collect()],
    }
}

/// The number of rounds within the limit on examined sequences, and within the rounds of a trace.
fn affordable(rounds: u32, sequences: usize, recorded: Option<usize>) -> u32 {
    let most = (MAX_SEQUENCES / sequences.max(1)).max(20);
    rounds.min(most.min(recorded.unwrap_or(most)) as u32).max(1)
}

/// `C` as sent; if nothing bounds the updates, the mean norm of the first round's updates.
pub(crate) fn norm(federation: &Federation) -> Result<f64, SimError> {
    if let Some(clip) = sent_clip(federation.experiment().settings(), federation.model().parameters()) {
        return Ok(clip);
    }
    let options = TrialOptions { keep_sent: true, ..TrialOptions::default() };
    let outcome = Trial::begin_with(federation, 0, options)?.step()?;
    let norms: Vec<f64> = outcome.sent.iter().map(|update| precode::norm(update)).collect();
    let mean = norms.iter().sum::<f64>() / norms.len().max(1) as f64;
    Ok(if mean.is_finite() { mean } else { 1.0 })
}

/// Every detector with and without knowledge of the distribution; some do not use it.
fn score_all(
    scene: &Scene,
    distribution: Option<&ChannelDistribution>,
    rounds: u32,
) -> Result<Vec<(Detector, bool, Scores)>, SimError> {
    let drawn = scene.draw(rounds)?;
    let mut all = Vec::new();
    for detector in Detector::ALL {
        all.push((detector, false, detector.score(scene, &drawn, None)));
        if distribution.is_some() {
            all.push((detector, true, detector.score(scene, &drawn, distribution)));
        }
    }
    Ok(all)
}

fn result(
    of: &(Detector, bool, Scores),
    scene: &Scene,
    distribution: Option<&ChannelDistribution>,
) -> DetectorResult {
    let &(detector, knows_fading, ref scores) = of;
    DetectorResult {
        detector: detector.name().to_owned(),
        knows_fading,
        area: scores.area(),
        detections: scores.detections(FALSE_ALARMS).unwrap_or(0.0),
        detections_in_theory: theory_of(detector, knows_fading, scene, distribution, FALSE_ALARMS),
        exact_set: scores.exact_set,
    }
}

/// The detection rate in theory, where available.
fn theory_of(
    detector: Detector,
    knows_fading: bool,
    scene: &Scene,
    distribution: Option<&ChannelDistribution>,
    false_alarms: f64,
) -> Option<f64> {
    let (distribution, noise_std) = (distribution?, scene.noise_std());
    match detector {
        _ if false_alarms >= 1.0 => None,
        Detector::Pilot if !knows_fading || distribution.is_symmetric() => {
            Some(theory::pilot(distribution, noise_std, false_alarms))
        }
        Detector::Pilot if distribution.is_positive() => {
            Some(theory::signed_pilot(distribution, noise_std, false_alarms))
        }
        Detector::Pilot | Detector::Both => None,
        Detector::Energy => Some(theory::energy(distribution, noise_std, scene.payload, false_alarms)),
    }
}

#[cfg(test)]
mod tests;
