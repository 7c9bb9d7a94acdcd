//! The section `[clients]`: numbers of clients, their weights and dropouts.

use floras_core::{Dropout, named_choice};
use serde::{Deserialize, Serialize};

use super::error::{COUNTS, ExperimentError, within};

/// Number, selection and dropout of clients: the section `[clients]` of an experiment file.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientSettings {
    /// Total number of clients `M`, at least 1.
    pub total: u32,
    /// Number of clients per round `K`, from 1 to `M`.
    pub per_round: u32,
    /// Weight of each client in the average.
    pub weights: Weights,
    /// Which of the selected clients are silent in a round.
    pub dropout: Dropout,
}

/// Weight of a client in the average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// Equal weights of all clients.
    #[default]
    Equal,
    /// Weights in proportion to the numbers of samples.
    Samples,
}

named_choice!(
    Weights,
    "weights",
    [Equal => "equal", "all clients equally"],
    [Samples => "samples", "in proportion to samples"],
);

/// The section as written in a file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, expecting = "a section, [clients]")]
pub(super) struct ClientsFile {
    total: Option<u32>,
    per_round: Option<u32>,
    weights: Weights,
    #[serde(skip_serializing_if = "Dropout::is_none")]
    dropout: Dropout,
}

impl ClientsFile {
    pub(super) fn check(&self) -> Result<(), ExperimentError> {
        within("clients.total", self.total, COUNTS)?;
        within("clients.per_round", self.per_round, COUNTS)
    }
}

impl From<ClientsFile> for ClientSettings {
    fn from(file: ClientsFile) -> Self {
        let total = file.total.unwrap_or(20);
        let per_round = file.per_round.unwrap_or(total.min(20));
        Self { total, per_round, weights: file.weights, dropout: file.dropout }
    }
}

impl From<ClientSettings> for ClientsFile {
    fn from(settings: ClientSettings) -> Self {
        let ClientSettings { total, per_round, weights, dropout } = settings;
        Self { total: Some(total), per_round: Some(per_round), weights, dropout }
    }
}

impl Default for ClientSettings {
    fn default() -> Self {
        ClientsFile::default().into()
    }
}
