//! Arrays of the caller as the data set of an experiment.

use floras_learn::data::DataSet;
use floras_learn::{LearnError, Partition, Samples, Shares};
use sha2::{Digest, Sha256};

use super::clients::Population;
use crate::error::SimError;
use crate::experiment::{DataChoice, ExperimentError, Settings};

/// Samples in memory, and optionally the rows of each client.
///
/// The experiment names them by their fingerprint: `data.set = "arrays"` and `data.sha256`. A resumed run is therefore refused
/// with other arrays.
#[derive(Clone, Debug)]
pub struct OwnData {
    set: DataSet,
    shares: Option<Shares>,
}

impl OwnData {
    /// Training and test samples, which must agree in the numbers of features and classes. `rows` lists the training rows of each
    /// client; without it `data.partition` shares them out.
    pub fn new(set: DataSet, rows: Option<Vec<Vec<u32>>>) -> Result<Self, SimError> {
        let shape = |samples: &Samples| (samples.width(), samples.classes());
        if shape(&set.train) != shape(&set.test) {
            let (train, test) = (set.train.width(), set.test.width());
            let reason = format!("training samples have {train} features and test samples {test}");
            return Err(SimError::learn("data")(LearnError::MisshapenSamples { reason }));
        }
        let samples = set.train.count();
        let shares = rows.map(|rows| Shares::of_lists(rows, samples)).transpose();
        Ok(Self { set, shares: shares.map_err(SimError::learn("clients"))? })
    }

    /// SHA-256 of all samples, in their order, and of the rows of each client.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        for samples in [&self.set.train, &self.set.test] {
            for size in [samples.count(), samples.width(), samples.classes()] {
                hash.update((size as u64).to_le_bytes());
            }
            samples.features().iter().for_each(|value| hash.update(value.to_le_bytes()));
            samples.labels().iter().for_each(|label| hash.update(label.to_le_bytes()));
        }
        for client in 0..self.shares.as_ref().map_or(0, Shares::clients) {
            let rows = self.shares.as_ref().map_or(&[][..], |shares| shares.of(client));
            hash.update((rows.len() as u64).to_le_bytes());
            rows.iter().for_each(|row| hash.update(row.to_le_bytes()));
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The population of an experiment that names these arrays.
    pub(super) fn population(self, settings: &Settings) -> Result<(Population, Samples), SimError> {
        let fingerprint = self.fingerprint();
        if !matches!(&settings.data.set, DataChoice::Arrays { sha256 } if *sha256 == fingerprint) {
            let reason = format!("the arrays have the fingerprint {fingerprint}");
            return Err(ExperimentError::refused("data.sha256", reason).into());
        }
        let is_given = settings.data.partition == Partition::Given;
        if is_given != self.shares.is_some() {
            let reason = "\"given\" requires the rows of each client, and the rows require \"given\"";
            return Err(ExperimentError::refused("data.partition", reason).into());
        }
        let (listed, total) = (self.shares.as_ref().map(Shares::clients), settings.clients.total);
        if let Some(listed) = listed.filter(|&listed| listed != total as usize) {
            let reason = format!("rows are listed for {listed} clients, not {total}");
            return Err(ExperimentError::refused("clients.total", reason).into());
        }
        let shaped = |samples: Samples| match settings.data.shape {
            Some(shape) => samples.with_shape(shape).map_err(SimError::learn("data.shape")),
            None => Ok(samples),
        };
        Ok((Population::Stored(shaped(self.set.train)?, self.shares), shaped(self.set.test)?))
    }
}
