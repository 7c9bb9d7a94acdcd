//! Federated learning over the simulated air: reads an experiment file and writes a run directory.
//!
//! This crate joins [`floras_learn`] and [`floras_phy`]:
//!
//! ```text
//! experiment.toml → Experiment (checked) → Federation (data loaded) → run: trials × rounds → run directory
//!   a round:  select K of M → local SGD → x_k → clip → uplink → x̃ → clamp to ±B → w ← w − x̃/K
//! ```
//!
//! A trial by hand:
//!
//! ```
//! use floras_sim::{Experiment, Federation, Trial};
//!
//! let experiment = Experiment::parse("an example", "[uplink]\nscheme = \"ideal\"\n[local]\nrate = 0.1")?;
//! let federation = Federation::new(&experiment)?;
//! let mut trial = Trial::begin(&federation, 0)?;
//! for _ in 0..5 {
//!     trial.step()?;
//! }
//! let accuracy = trial.step()?.metrics.test_accuracy;
//! assert!(accuracy.is_some_and(|accuracy| accuracy > 0.7));
//! # Ok::<(), floras_sim::SimError>(())
//! ```
//!
//! A [`PreparedRun`] does all trials side by side and records them in a [`RunDirectory`]; a [`Sweep`] is a grid of experiments.

mod accounting;
mod air;
pub mod benchmark;
mod cost;
mod error;
mod experiment;
mod federation;
pub mod figure;
pub mod inquiry;
pub mod number;
mod plotted;
mod presets;
pub mod purpose;
mod record;
mod run;
pub mod schemes;
mod source;
mod summary;
mod sweep;

pub use accounting::{AccountContext, PrivacyReport, SELECTION, SIMULATED, Spent};
pub use air::{AirDescription, AirInterface, AirLedger, Cohort, RoundSpec};
pub use cost::{against, spent_by_round};
pub use error::SimError;
pub use experiment::{
    ClientSettings, DataChoice, DataSettings, Difference, Experiment, ExperimentBuilder, ExperimentError,
    LocalSettings, ModelKind, ModelSettings, PrivacySettings, Radio, RecordSettings, Settings,
    UplinkSettings, VERSION, Weights,
};
pub use federation::{
    Federation, Holdings, LocalTraining, OwnData, PartitionRecord, RoundMetrics, RoundOutcome, Status, Trial,
    TrialOptions, select, with_all,
};
/// The result of a round, and where its noise comes from.
pub use floras_phy::{Aggregate, Cost, Noise};
pub use plotted::PlottedCurves;
pub use presets::{PRESETS, Preset};
pub use record::{
    Entry, LedgerEntry, RecordedRun, RunDirectory, create_directory, lock_directory, read_json,
    write_atomically,
};
pub use run::{Event, Outcome, PreparedRun};
pub use source::SourceError;
pub use summary::{Estimate, Finals, Summary, TrialSummary};
pub use sweep::{Point, PointPrivacy, PreparedSweep, Sweep, SweepEvent, SweepRow, SweepTable};

/// The example of the README, run as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
