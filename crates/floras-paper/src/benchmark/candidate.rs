//! What a benchmark compares: experiment files that agree in everything but the uplink.

use floras_core::View;
use floras_sim::benchmark::Entry;
use floras_sim::schemes::SchemeChoice;
use floras_sim::{Experiment, ExperimentBuilder, ExperimentError, Settings};

/// The keys of `[uplink]` in which candidates agree, besides all other sections.
const CONDITIONS: [&str; 7] = [
    "uplink.ageing",
    "uplink.channel_error",
    "uplink.coherence",
    "uplink.fading",
    "uplink.path_loss",
    "uplink.snr_convention",
    "uplink.snr_db",
];

/// A scheme with its settings, as an experiment file.
#[derive(Clone, Debug)]
pub struct Candidate {
    name: String,
    builder: ExperimentBuilder,
    experiment: Experiment,
}

macro_rules! built_in {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../benchmark/", $name, ".toml")))),+]
    };
}

/// The files of the benchmark, those whose clients know nothing about channels first.
const BUILT_IN: &[(&str, &str)] = built_in![
    "floras",
    "floras-antennas",
    "floras-sequences",
    "blind",
    "fsk-vote",
    "digital",
    "digital-masked",
    "digital-central",
    "floras-phase",
    "phase-corrected",
    "channel-inversion",
    "broadband-inversion",
    "power-control",
    "artificial-noise",
    "cotaf",
    "one-bit",
    "a-dsgd",
    "d-dsgd",
    "gaussian",
    "ideal",
];

impl Candidate {
    /// All files of the benchmark.
    pub fn built_in() -> Result<Vec<Self>, ExperimentError> {
        BUILT_IN.iter().map(|(name, text)| Self::new(ExperimentBuilder::parse(name, text)?)).collect()
    }

    /// The names of the files of the benchmark.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The file of the benchmark with a name.
    pub fn named(name: &str) -> Option<Result<Self, ExperimentError>> {
        let (name, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        Some(ExperimentBuilder::parse(name, text).and_then(Self::new))
    }

    /// A candidate from an experiment. An error if it differs from the files of the benchmark in anything but its name, its scheme, the
    /// scheme's keys and its view.
    pub fn new(builder: ExperimentBuilder) -> Result<Self, ExperimentError> {
        let experiment = builder.build()?;
        let candidate = Self { name: experiment.settings().name.clone(), builder, experiment };
        let (_, conditions) = BUILT_IN[0];
        if candidate.view() == View::Published {
            let allowed = "a view with guarantees, such as raw-signal".to_owned();
            let (key, value) = ("privacy.view".to_owned(), candidate.view().to_string());
            return Err(ExperimentError::Value { key, allowed, value });
        }
        candidate.check(&Experiment::parse(BUILT_IN[0].0, conditions)?)?;
        Ok(candidate)
    }

    fn check(&self, conditions: &Experiment) -> Result<(), ExperimentError> {
        let theirs = conditions.entries();
        for (key, value) in self.experiment.entries() {
            let is_free = key == "name"
                || key == "privacy.view"
                || (key.starts_with("uplink.") && !CONDITIONS.contains(&key.as_str()));
            let expected = theirs.iter().find(|(other, _)| *other == key).map(|(_, expected)| expected);
            if is_free || expected == Some(&value) {
                continue;
            }
            let allowed = match expected {
                Some(expected) => format!("{expected}, as in all files of the benchmark"),
                None => "left out, as in all files of the benchmark".to_owned(),
            };
            return Err(ExperimentError::Value { key, allowed, value });
        }
        Ok(())
    }

    /// The name of the candidate.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn builder(&self) -> &ExperimentBuilder {
        &self.builder
    }

    pub(super) fn settings(&self) -> &Settings {
        self.experiment.settings()
    }

    pub(super) fn scheme(&self) -> &SchemeChoice {
        &self.settings().uplink.scheme
    }

    /// The view in which private points meet the `ε` of the benchmark.
    pub(super) fn view(&self) -> View {
        self.settings().privacy.view
    }

    /// The candidate for the tables.
    pub(super) fn entry(&self, clients: u32) -> Entry {
        Entry {
            name: self.name.clone(),
            scheme: self.scheme().name().to_owned(),
            summary: self.scheme().summary(clients),
            antennas: self.settings().uplink.radio.antennas,
            channel_knowledge: self.scheme().channel_knowledge(),
            view: self.view(),
            remarks: self.scheme().remarks().into_iter().map(str::to_owned).collect(),
        }
    }
}
