//! The signal of a round as a file of NumPy arrays: decoded sum, gains, channels, estimates, assignment.
//!
//! The file is an `.npz` archive without compression, with a fixed date in place of the time, so that the same round has the same
//! bytes. `docs/reference/running.md` lists the arrays.

use std::fs;
use std::io::Cursor;
use std::path::PathBuf;

use floras_phy::{Aggregate, EffectiveChannel, Signal};
use ndarray::{Array2, ArrayView1, ArrayView2, aview0};
use ndarray_npy::{NpzWriter, WritableElement, WriteNpzError};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime};

use super::atomic;
use super::directory::RunDirectory;
use crate::error::SimError;
use crate::federation::RoundOutcome;

/// The signal file of a round, before it is written.
pub(crate) struct SignalFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl SignalFile {
    /// The file of a round that was decoded; `None` if training diverged before, or if all selected clients were silent.
    pub(crate) fn new(directory: &RunDirectory, outcome: &RoundOutcome) -> Result<Option<Self>, SimError> {
        let Some(aggregate) = &outcome.aggregate else { return Ok(None) };
        let path = RunDirectory::signal_file(directory.path(), outcome.metrics.trial, outcome.metrics.round);
        let bytes = encode(outcome, aggregate).map_err(|error| SimError::encoding(&path, error))?;
        Ok(Some(Self { path, bytes }))
    }

    /// Size in bytes, in memory and on the disk.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Writes the file atomically.
    pub(crate) fn write(&self) -> Result<(), SimError> {
        if let Some(parent) = self.path.parent() {
            fs::create_dir_all(parent).map_err(SimError::file("create", parent))?;
        }
        atomic::write(&self.path, &self.bytes)
    }
}

fn encode(outcome: &RoundOutcome, aggregate: &Aggregate) -> Result<Vec<u8>, WriteNpzError> {
    let mut file = Arrays::new();
    let (parameters, clients) = (aggregate.sum.len(), outcome.clients.len());
    file.count("trial", outcome.metrics.trial as usize)?;
    file.count("round", outcome.metrics.round as usize)?;
    file.count("K", clients)?;
    file.count("d", parameters)?;
    let numbers = |clients: &[u32]| clients.iter().map(|&client| client.into()).collect::<Vec<i64>>();
    file.list("clients", &numbers(&outcome.clients))?;
    file.list("selected", &numbers(&outcome.selected))?;
    file.list("sum", &aggregate.sum)?;
    file.list("decoded", aggregate.decoded.as_ref().unwrap_or(&aggregate.sum))?;
    if let Some(channel) = &aggregate.channel {
        file.channel(channel, parameters)?;
    }
    if let Some(signal) = &outcome.signal {
        file.signal(signal)?;
    }
    Ok(file.npz.finish()?.into_inner())
}

/// An archive in memory.
struct Arrays {
    npz: NpzWriter<Cursor<Vec<u8>>>,
}

impl Arrays {
    fn new() -> Self {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(DateTime::default());
        Self { npz: NpzWriter::new_with_options(Cursor::new(Vec::new()), options) }
    }

    fn channel(&mut self, channel: &EffectiveChannel, parameters: usize) -> Result<(), WriteNpzError> {
        self.list("gains", channel.gains())?;
        self.number("noise_std", channel.noise_std())?;
        let (blocks, clients) = (channel.blocks(), channel.gains().len());
        // A single block fits any number of parameters.
        let lengths = blocks.iter().map(|block| block.parameters.min(parameters) as i64);
        self.list("block_parameters", &lengths.collect::<Vec<i64>>())?;
        let gains =
            Array2::from_shape_fn((blocks.len(), clients), |(block, client)| blocks[block].gains[client]);
        self.npz.add_array("block_gains", &gains)?;
        if blocks.iter().any(|block| !block.cross_gains.is_empty()) {
            let cross = Array2::from_shape_fn((blocks.len(), clients), |(block, client)| {
                blocks[block].cross_gains.get(client).copied().unwrap_or(0.0)
            });
            self.npz.add_array("block_cross_gains", &cross)?;
        }
        self.list("block_noise_std", &blocks.iter().map(|block| block.noise_std).collect::<Vec<f64>>())
    }

    fn signal(&mut self, signal: &Signal) -> Result<(), WriteNpzError> {
        self.count("L", signal.length)?;
        let branches = signal.branches;
        // Client by client, with its antennas and branches side by side.
        let antennas = signal.channels.len() * branches / signal.amplitudes.len().max(1);
        self.rows("channels", &signal.channels, antennas)?;
        self.rows("amplitudes", &signal.amplitudes, branches)?;
        self.rows("weights", &signal.weights, branches)?;
        self.number("symbol_noise_std", signal.symbol_noise_std)?;
        if let Some(pilot_noise_std) = signal.pilot_noise_std {
            self.count("N", signal.estimates.len() / branches)?;
            self.rows("estimates", &signal.estimates, branches)?;
            self.number("pilot_noise_std", pilot_noise_std)?;
        }
        if !signal.assigned.is_empty() {
            let assigned: Vec<i64> = signal.assigned.iter().map(|&sequence| sequence as i64).collect();
            self.list("assignment", &assigned)?;
        }
        Ok(())
    }

    fn list<T: WritableElement>(&mut self, name: &str, values: &[T]) -> Result<(), WriteNpzError> {
        self.npz.add_array(name, &ArrayView1::from(values))
    }

    /// A table with rows of this width; a list if they have one entry.
    fn rows<T: WritableElement>(
        &mut self,
        name: &str,
        values: &[T],
        width: usize,
    ) -> Result<(), WriteNpzError> {
        match ArrayView2::from_shape((values.len() / width.max(1), width), values) {
            Ok(table) if width > 1 => self.npz.add_array(name, &table),
            _ => self.list(name, values),
        }
    }

    fn number(&mut self, name: &str, value: f64) -> Result<(), WriteNpzError> {
        self.npz.add_array(name, &aview0(&value))
    }

    fn count(&mut self, name: &str, value: usize) -> Result<(), WriteNpzError> {
        self.npz.add_array(name, &aview0(&(value as i64)))
    }
}

#[cfg(test)]
mod tests {
    use floras_phy::{Block, EffectiveChannel};
    use ndarray::{Array1, arr1, arr2};
    use ndarray_npy::NpzReader;

    use super::*;
    use crate::federation::RoundMetrics;

    #[test]
    fn gains_of_blocks_are_written_by_block() {
        let block = |parameters, gains: [f64; 2], noise_std| Block {
            parameters,
            gains: gains.into(),
            noise_std,
            cross_gains: Vec::new(),
        };
        let blocks = vec![block(3, [1.0, 0.5], 0.0), block(1, [2.0, 0.25], 2.0)];
        let aggregate = Aggregate {
            sum: vec![1.0; 4],
            decoded: None,
            channel: Some(EffectiveChannel::from_blocks(blocks).unwrap()),
            own_cost: None,
            scales: Vec::new(),
            norms: None,
            normalisation: None,
            broken: Vec::new(),
        };
        let outcome = RoundOutcome {
            metrics: RoundMetrics { round: 1, ..RoundMetrics::default() },
            clients: vec![7, 9],
            selected: vec![7, 9],
            aggregate: None,
            sent: Vec::new(),
            signal: None,
        };
        let mut file = NpzReader::new(Cursor::new(encode(&outcome, &aggregate).unwrap())).unwrap();
        assert_eq!(
            file.by_name::<_, ndarray::Ix2>("block_gains").ok(),
            Some(arr2(&[[1.0, 0.5], [2.0, 0.25]]))
        );
        let lengths: Array1<i64> = file.by_name("block_parameters").unwrap();
        let noise_stds: Array1<f64> = file.by_name("block_noise_std").unwrap();
        assert_eq!((lengths, noise_stds), (arr1(&[3, 1]), arr1(&[0.0, 2.0])));
        let gains: Array1<f64> = file.by_name("gains").unwrap();
        assert_eq!(gains, arr1(&[1.25, 0.4375]));
    }
}
