//! The plots: detections over false alarms, and exact recovery over SNR, `d`, `C` and `γ`.

use super::detector::Payload;
use super::distribution::ChannelDistribution;
use super::draw::Scene;
use super::scores::{Detector, Scores};
use super::theory_of;
use floras_core::SequenceSource;
use floras_sim::figure::{Axis, Curve, Panel, Style};
use floras_sim::schemes::FlorasScheme;
use floras_sim::{Radio, SimError};

/// The varied setting, around the experiment's own settings.
pub(super) struct Sweep<'a> {
    pub(super) scheme: &'a FlorasScheme,
    pub(super) radio: &'a Radio,
    pub(super) distribution: Option<&'a ChannelDistribution>,
    /// The experiment itself.
    pub(super) scene: &'a Scene,
    pub(super) rounds: u32,
}

/// One detector, with or without knowledge of the distribution, where that matters.
#[derive(Clone, Copy)]
struct Line<'a> {
    detector: Detector,
    distribution: Option<&'a ChannelDistribution>,
}

/// The distinct curves.
fn lines(distribution: Option<&ChannelDistribution>) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for detector in Detector::ALL {
        lines.push(Line { detector, distribution: None });
        if distribution.is_some_and(|distribution| detector.gains_by(distribution)) {
            lines.push(Line { detector, distribution });
        }
    }
    lines
}

impl Line<'_> {
    fn name(self) -> String {
        let known = if self.distribution.is_some() { ", fading known" } else { "" };
        format!("{}{known}", self.detector.name())
    }

    fn colour(self) -> usize {
        2 * self.detector as usize + usize::from(self.distribution.is_some())
    }

    /// Both inputs together are often no better than the better one alone, whose curve must remain visible
    /// below.
    fn style(self) -> Style {
        if self.detector == Detector::Both { Style::Dotted } else { Style::Solid }
    }
}

/// Detections over false alarms: measured, and dashed in theory.
pub(super) fn characteristic(
    scene: &Scene,
    distribution: Option<&ChannelDistribution>,
    all: &[(Detector, bool, Scores)],
) -> Panel {
    let x: Vec<f64> = (-32..=0).map(|step| 10.0_f64.powf(f64::from(step) / 8.0)).collect();
    let mut curves = Vec::new();
    for line in lines(distribution) {
        let same = |(detector, knows, _): &&(Detector, bool, Scores)| {
            *detector == line.detector && *knows == line.distribution.is_some()
        };
        let Some((_, _, scores)) = all.iter().find(same) else { continue };
        let y = x.iter().map(|&alarms| scores.detections(alarms)).collect();
        curves.push(curve(line.name(), line.colour(), line.style(), &x, y));
        let in_theory: Vec<Option<f64>> = x
            .iter()
            .map(|&alarms| theory_of(line.detector, line.distribution.is_some(), scene, distribution, alarms))
            .collect();
        if in_theory.iter().any(Option::is_some) {
            let name = format!("{}, theory", line.name());
            curves.push(curve(name, line.colour(), Style::Dashed, &x, in_theory));
        }
    }
    Panel {
        name: "sequences-roc".to_owned(),
        title: "Which sequences are in use?".to_owned(),
        x: Axis { label: "false alarms".to_owned(), logarithmic: true, range: Some((1e-4, 1.0)) },
        y: Axis { label: "detections".to_owned(), logarithmic: false, range: Some((0.0, 1.0)) },
        curves,
    }
}

/// The text of a label without unit and symbol.
fn what_varies(label: &str) -> &str {
    let words = label.split_once(", ").map_or(label, |(_, words)| words);
    words.split(" [").next().unwrap_or(words)
}

fn curve(name: String, colour: usize, style: Style, x: &[f64], y: Vec<Option<f64>>) -> Curve {
    Curve { name, colour, style, x: x.to_vec(), y, band: None }
}

/// Numbers from `first` to `last` decades, two per decade.
fn half_decades(first: i32, last: i32) -> Vec<f64> {
    (2 * first..=2 * last).map(|half| 10.0_f64.powf(f64::from(half) / 2.0)).collect()
}

impl Sweep<'_> {
    /// Exact recovery over every parameter that it depends on.
    pub(super) fn panels(&self) -> Result<Vec<Panel>, SimError> {
        let snrs: Vec<f64> = (-2..=8).map(|step| 5.0 * f64::from(step)).collect();
        let payload = self.scene.payload;
        let with = |payload: Payload| Ok(Scene { payload, ..self.scene.clone() });
        Ok(vec![
            self.panel("snr", "SNR [dB]", false, &snrs, |snr_db| self.at_snr(snr_db))?,
            self.panel("d", "d, parameters of the model", true, &half_decades(1, 6), |d| {
                with(Payload { dimensions: d.round(), ..payload })
            })?,
            self.panel("clip", "C, norm of the updates", true, &half_decades(-2, 2), |clip| {
                with(Payload::over(&self.scene.floras, payload.dimensions, clip))
            })?,
            self.panel("gamma", "γ, unused sequences", false, &self.gammas()?, |gamma| {
                self.at_gamma(gamma)
            })?,
        ])
    }

    fn panel(
        &self,
        name: &str,
        label: &str,
        logarithmic: bool,
        x: &[f64],
        at: impl Fn(f64) -> Result<Scene, SimError>,
    ) -> Result<Panel, SimError> {
        let lines = lines(self.distribution);
        let mut rates = vec![Vec::with_capacity(x.len()); lines.len()];
        for &value in x {
            let scene = at(value)?;
            let drawn = scene.draw(self.rounds)?;
            for (rates, line) in rates.iter_mut().zip(&lines) {
                rates.push(Some(line.detector.score(&scene, &drawn, line.distribution).exact_set));
            }
        }
        let curves = lines.iter().zip(rates);
        Ok(Panel {
            name: format!("sequences-{name}"),
            title: format!("Exact recovery of the sequences in use, by {}", what_varies(label)),
            x: Axis { label: label.to_owned(), logarithmic, range: None },
            y: Axis { label: "share of rounds".to_owned(), logarithmic: false, range: Some((0.0, 1.0)) },
            curves: curves.map(|(line, y)| curve(line.name(), line.colour(), line.style(), x, y)).collect(),
        })
    }

    fn at_snr(&self, snr_db: f64) -> Result<Scene, SimError> {
        let radio = Radio { snr_db, ..self.radio.clone() };
        let floras = self.scheme.over_radio(&radio, self.scene.seed)?;
        Ok(Scene { floras, ..self.scene.clone() })
    }

    /// At most the available sequences. Lines of a file after the first `N` may overlap, and are not used.
    fn gammas(&self) -> Result<Vec<f64>, SimError> {
        let sequences = match self.scheme.family {
            SequenceSource::Family(_) => self.scheme.max_sequences(self.radio.length)?,
            SequenceSource::File(_) => self.scheme.sequences,
        };
        let most = sequences.saturating_sub(self.scene.in_use());
        let steps = [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100, 200, 500, 1000];
        let mut gammas: Vec<f64> =
            steps.iter().filter(|&&gamma| gamma < most).map(|&gamma| gamma as f64).collect();
        gammas.push(most as f64);
        Ok(gammas)
    }

    fn at_gamma(&self, gamma: f64) -> Result<Scene, SimError> {
        let sequences = self.scene.in_use() + gamma as usize;
        let scheme = FlorasScheme { sequences, ..self.scheme.clone() };
        let floras = scheme.over_radio(self.radio, self.scene.seed)?;
        Ok(Scene { floras, ..self.scene.clone() })
    }
}
