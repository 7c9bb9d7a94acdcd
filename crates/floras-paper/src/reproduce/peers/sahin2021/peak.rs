//! Figure 6: the distribution of the peak-to-mean envelope power ratio (PMEPR) of a client's OFDM symbols.
//!
//! A symbol has 600 votes, each on one of two adjacent subcarriers, with a random QPSK symbol there and nothing on the other. The paper
//! defines `PMEPR = max_t |x(t)|²/E|x(t)|²` in continuous time. It does not print how densely its figure samples `x`.

use floras_core::random::{Purpose, StreamName};
use floras_sim::Estimate;
use floras_sim::figure::{Claim, Panel, Style, Verdict};

use rand::Rng;
use realfft::RealFftPlanner;
use realfft::num_complex::Complex64;

use super::super::super::finding::Finding;
use super::super::{axis, exact, stated};
use super::published::{PEAKS, SYMBOLS};

/// Votes and phases of a symbol.
const TONES: Purpose = Purpose(84);
/// Votes in a symbol, on twice as many subcarriers.
const VOTES: usize = 600;
/// Samples of a symbol: every second one, and all.
pub(super) const SAMPLES: [usize; 2] = [2048, 4096];
/// Levels of the claims: the first places of [`PEAKS`].
const CLAIMED: usize = 3;
/// The published curve distinguishes the two numbers of samples if one draw of it is uncertain by less than this, in dB.
const RESOLUTION: f64 = 0.15;

/// The PMEPR in dB of [`SYMBOLS`] symbols, in increasing order: `trials[trial][samples]`. One trial has the size of the published curve.
pub(super) struct Peaks {
    trials: Vec<[Vec<f64>; 2]>,
}

/// Whether an estimate from `draws` curves agrees with the one published curve, which has the same number of symbols: inside the 95%
/// prediction interval of one more draw, or outside of twice that interval.
fn is_one_draw(published: f64, draws: usize) -> impl Fn(f64, f64) -> Option<bool> {
    move |mean, half| {
        let prediction = half * (draws as f64 + 1.0).sqrt();
        match (mean - published).abs() {
            away if away > 2.0 * prediction => Some(false),
            away if away <= prediction && prediction <= RESOLUTION => Some(true),
            _ => None,
        }
    }
}

/// The amplitudes on 1200 subcarriers, of which every pair has one that is not 0.
fn tones(seed: u64, trial: u16, symbol: u32) -> Vec<Complex64> {
    let mut stream = StreamName::new(seed, TONES).trial(trial).round(symbol).stream();
    let mut tones = vec![Complex64::default(); 2 * VOTES];
    for pair in tones.chunks_mut(2) {
        let word = stream.next_u32();
        let sign = |bit: u32| if word >> bit & 1 == 0 { 1.0 } else { -1.0 };
        pair[(word & 1) as usize] = Complex64::new(sign(1), sign(2));
    }
    tones
}

/// `|x|²` at all samples of a symbol, over the mean. Tone `k` is on the subcarrier `k + 1`: its shift does not change the envelope.
///
/// Real and imaginary part are two real transforms, of the spectra `X` and `−i·X`.
fn envelope(planner: &mut RealFftPlanner<f64>, tones: &[Complex64]) -> Vec<f64> {
    let plan = planner.plan_fft_inverse(SAMPLES[1]);
    let part = |factor: Complex64| {
        let mut spectrum = plan.make_input_vec();
        spectrum[1..=tones.len()].iter_mut().zip(tones).for_each(|(bin, tone)| *bin = factor * tone);
        let mut samples = plan.make_output_vec();
        plan.process(&mut spectrum, &mut samples).expect("the buffers have the planned lengths");
        samples
    };
    let (real, imaginary) = (part(Complex64::new(1.0, 0.0)), part(Complex64::new(0.0, -1.0)));
    // A real transform adds the conjugate of every tone, which doubles the part.
    let mean = 4.0 * tones.iter().map(|tone| tone.norm_sqr()).sum::<f64>();
    real.iter().zip(&imaginary).map(|(re, im)| (re * re + im * im) / mean).collect()
}

/// The value that is exceeded with a probability; `sorted` increases.
fn exceeded(sorted: &[f64], probability: f64) -> f64 {
    let larger = (probability * sorted.len() as f64) as usize;
    sorted[(sorted.len() - 1).saturating_sub(larger)]
}

impl Peaks {
    pub(super) fn draw(seed: u64, trials: u16) -> Self {
        let mut planner = RealFftPlanner::new();
        let mut trial = |trial| {
            let mut peaks = [Vec::new(), Vec::new()];
            for symbol in 0..SYMBOLS {
                let envelope = envelope(&mut planner, &tones(seed, trial, symbol));
                for (peaks, samples) in peaks.iter_mut().zip(SAMPLES) {
                    let sampled = envelope.iter().step_by(SAMPLES[1] / samples);
                    peaks.push(10.0 * sampled.copied().fold(0.0, f64::max).log10());
                }
            }
            peaks.iter_mut().for_each(|peaks| peaks.sort_by(f64::total_cmp));
            peaks
        };
        Self { trials: (0..trials).map(&mut trial).collect() }
    }

    fn at(&self, samples: usize, probability: f64) -> Vec<f64> {
        self.trials.iter().map(|peaks| exceeded(&peaks[samples], probability)).collect()
    }

    /// The means of all levels as text, separated by commas.
    pub(super) fn levels(&self, samples: usize) -> String {
        let mean =
            |probability| Estimate::of(&self.at(samples, probability)).map_or(f64::NAN, |found| found.mean);
        let levels: Vec<String> =
            PEAKS[..5].iter().map(|(probability, _)| format!("{:.2}", mean(*probability))).collect();
        levels.join(", ")
    }

    pub(super) fn claims(&self) -> Vec<Claim> {
        let draws = self.trials.len();
        let mut claims: Vec<Claim> = PEAKS[..CLAIMED].iter().map(|&(probability, published)| {
            let ours = self.at(0, probability);
            let half = Estimate::half_width(&ours, 0.975).unwrap_or(f64::NAN) * (draws as f64 + 1.0).sqrt();
            Finding {
                claim: &format!(
                    "Figure 6: PMEPR that a symbol exceeds with probability {probability} (dB, {} samples per symbol)",
                    SAMPLES[0]
                ),
                published: Some(published),
                reason: format!(
                    "{published:.2} dB published; a curve of {SYMBOLS} symbols, as that of the figure, is within ±{half:.2} dB of ours"
                ),
                ours,
                unit: "dB",
                agrees: &is_one_draw(published, draws),
            }
            .judge()
        }).collect();
        let (probability, published) = PEAKS[1];
        let dense = self.at(1, probability);
        let ours = Estimate::of(&dense).map_or(f64::NAN, |found| found.mean);
        claims.push(stated(
            &format!(
                "Figure 6: the same with probability {probability} in continuous time, as the PMEPR is defined (dB, {} samples per symbol)",
                SAMPLES[1]
            ),
            Some(published),
            ours,
            "dB",
            Verdict::Inconclusive,
            &format!(
                "{published:.2} dB published, {ours:.2} dB here: samples in between find higher peaks; the paper does not print how many its \
                 figure has"
            ),
        ));
        claims
    }

    pub(super) fn panel(&self) -> Panel {
        let probabilities = (0..=60).map(|step| 0.98 * 10_f64.powf(-f64::from(step) / 20.0));
        let curve = |samples: usize| {
            let mut pooled: Vec<f64> =
                self.trials.iter().flat_map(|peaks| peaks[samples].iter().copied()).collect();
            pooled.sort_by(f64::total_cmp);
            let points =
                probabilities.clone().map(move |probability| (exceeded(&pooled, probability), probability));
            exact(&format!("{} samples per symbol", SAMPLES[samples]), samples, Style::Solid, points)
        };
        let published = PEAKS.map(|(probability, decibels)| (decibels, probability));
        Panel {
            name: "sahin2021-peaks".to_owned(),
            title: "Figure 6: peaks of a client's symbols".to_owned(),
            x: axis("PMEPR (dB)", false),
            y: axis("probability of a higher PMEPR", true),
            curves: vec![exact("published", 2, Style::Dashed, published), curve(0), curve(1)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_are_those_of_the_tones() {
        let tones = tones(1, 2, 3);
        assert_eq!(tones.iter().filter(|tone| tone.norm_sqr() > 0.0).count(), VOTES);
        let envelope = envelope(&mut RealFftPlanner::new(), &tones);
        assert!((envelope.iter().sum::<f64>() / SAMPLES[1] as f64 - 1.0).abs() < 1e-9);
        for sample in [0, 1, 777, 4095] {
            let turn = std::f64::consts::TAU * sample as f64 / SAMPLES[1] as f64;
            let terms = tones.iter().enumerate().map(|(k, tone)| tone * Complex64::cis(turn * k as f64));
            let power = terms.sum::<Complex64>().norm_sqr() / (2.0 * VOTES as f64);
            assert!((envelope[sample] - power).abs() < 1e-9, "{sample}");
        }
    }

    #[test]
    fn levels_are_exceeded_by_their_share() {
        let sorted: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(
            (exceeded(&sorted, 0.9), exceeded(&sorted, 0.01), exceeded(&sorted, 0.0)),
            (9.0, 98.0, 99.0)
        );
    }

    #[test]
    fn one_draw_has_a_prediction_interval() {
        let agrees = is_one_draw(9.0, 8);
        // Half of the prediction interval is three times that of the mean.
        assert_eq!(agrees(9.1, 0.04), Some(true));
        assert_eq!(agrees(9.2, 0.04), None);
        assert_eq!(agrees(9.3, 0.04), Some(false));
        assert_eq!(agrees(9.0, 0.06), None);
    }
}
