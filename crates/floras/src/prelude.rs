//! The names that a first program needs: a round on the air, an account, an experiment.
//!
//! ```
//! use floras::prelude::*;
//!
//! let experiment = ExperimentBuilder::preset("quick")?.rounds(2).build()?;
//! let federation = Federation::new(&experiment)?;
//! let mut trial = Trial::begin(&federation, 0)?;
//! let outcome = trial.step()?;
//! assert!(outcome.metrics.test_accuracy.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use floras_core::{
    Choice, Clipping, Fading, Fidelity, Modulation, Neighbours, Receiver, Snr, SnrConvention, View,
};
pub use floras_phy::{
    Aggregation, Floras, FlorasSettings, Round, SequenceSet, Uplink, UplinkError, precode, transmit,
};
pub use floras_privacy::{Account, Coefficients, Margins, PrivacyError, PrivacyUnit, Setting};
pub use floras_sim::{
    Experiment, ExperimentBuilder, ExperimentError, Federation, RunDirectory, SimError, SourceError, Trial,
};
