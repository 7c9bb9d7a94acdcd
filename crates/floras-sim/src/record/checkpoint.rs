//! Parameters on the disk, as safetensors: the final ones of a trial, and those to resume from.
//!
//! A file holds the model's tensors by name, what the clients keep between rounds if a trial is to be resumed, and in its metadata, under `floras` and as JSON, the trial, the rounds done and the
//! status. (One key, because the library writes several in no fixed order.) A file is replaced atomically, so there is always a
//! complete one.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use floras_learn::Model;
use floras_phy::ClientMemory;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use super::atomic;
use super::directory::RunDirectory;
use crate::error::SimError;
use crate::experiment::{VERSION, is_default};
use crate::federation::{Federation, Status, Trial};

/// The saved state of a trial.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Checkpoint {
    pub(crate) mark: Mark,
    pub(crate) parameters: Vec<f32>,
    pub(crate) memory: ClientMemory,
}

/// The metadata of a checkpoint.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Mark {
    pub(crate) version: String,
    /// The digest of the experiment and its data.
    pub(crate) identity: String,
    pub(crate) trial: u16,
    pub(crate) round: u32,
    pub(crate) status: Status,
    /// CRC-32C of the trial's lines in the metrics log.
    pub(crate) log_crc: u32,
    /// CRC-32C of the parameters, as bytes.
    parameters_crc: u32,
    /// CRC-32C of the clients' memory, as bytes; 0 without one.
    #[serde(default, skip_serializing_if = "is_default")]
    memory_crc: u32,
}

const KEY: &str = "floras";
/// The tensor of the clients that have a memory, as 32-bit numbers.
const MEMORY_CLIENTS: &str = "client_memory.clients";
/// The tensor of their vectors, one row for each.
const MEMORY_VALUES: &str = "client_memory.values";

/// Saves the current state of a trial; `log_crc` is the checksum of its lines in the log.
pub(crate) fn save(
    path: &Path,
    federation: &Federation,
    trial: &Trial<'_>,
    log_crc: u32,
) -> Result<(), SimError> {
    let mark = Mark {
        version: VERSION.to_owned(),
        identity: federation.identity(),
        trial: trial.number(),
        round: trial.round(),
        status: trial.status(),
        log_crc,
        parameters_crc: 0,
        memory_crc: 0,
    };
    // An ended trial has no use for the memory.
    let none = ClientMemory::default();
    let memory = if trial.status() == Status::Running { trial.memory() } else { &none };
    let bytes = encode(federation.model(), mark, trial.parameters(), memory);
    let bytes = bytes.map_err(|reason| SimError::encoding(path, reason))?;
    atomic::write(path, &bytes)
}

fn encode(
    model: &dyn Model,
    mut mark: Mark,
    parameters: &[f32],
    memory: &ClientMemory,
) -> Result<Vec<u8>, String> {
    let bytes: Vec<u8> = parameters.iter().flat_map(|value| value.to_le_bytes()).collect();
    let clients: Vec<u8> = memory.iter().flat_map(|(client, _)| client.to_le_bytes()).collect();
    let kept: Vec<u8> =
        memory.iter().flat_map(|(_, values)| values).flat_map(|value| value.to_le_bytes()).collect();
    mark.parameters_crc = crc32c::crc32c(&bytes);
    mark.memory_crc = memory_crc(&clients, &kept);
    let mut start = 0;
    let mut views = Vec::new();
    for tensor in model.tensors() {
        let end = start + tensor.length() * size_of::<f32>();
        let view = TensorView::new(Dtype::F32, tensor.shape, &bytes[start..end]);
        views.push((tensor.name, view.map_err(|error| error.to_string())?));
        start = end;
    }
    if !memory.is_empty() {
        let (count, width) = (clients.len() / size_of::<u32>(), kept.len() / clients.len());
        let tensors = [
            (MEMORY_CLIENTS, Dtype::U32, vec![count], &clients),
            (MEMORY_VALUES, Dtype::F32, vec![count, width], &kept),
        ];
        for (name, dtype, shape, bytes) in tensors {
            let view = TensorView::new(dtype, shape, bytes).map_err(|error| error.to_string())?;
            views.push((name.to_owned(), view));
        }
    }
    let mark = serde_json::to_string(&mark).map_err(|error| error.to_string())?;
    let metadata = HashMap::from([(KEY.to_owned(), mark)]);
    safetensors::serialize(views, Some(metadata)).map_err(|error| error.to_string())
}

/// Reads the checkpoint of a trial of this federation; `None` if there is no such file.
pub(crate) fn load(path: &Path, federation: &Federation, trial: u16) -> Result<Option<Checkpoint>, SimError> {
    if !path.exists() {
        return Ok(None);
    }
    let bytes = fs::read(path).map_err(SimError::file("read", path))?;
    let found = decode(federation.model(), &bytes).and_then(|found| {
        let as_written = path.parent().and_then(Path::parent).map(RunDirectory::experiment_file);
        let as_written = as_written.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        let identities = [federation.identity(), federation.identity_of(&as_written)];
        if !identities.contains(&found.mark.identity) {
            return Err("it belongs to another experiment or to other data".to_owned());
        }
        if found.mark.trial != trial {
            return Err(format!("it belongs to trial {}", found.mark.trial));
        }
        Ok(found)
    });
    let damaged = |reason| {
        let reason = format!("{reason}; without the file, its trial starts again from round 1");
        SimError::Damaged { path: path.to_path_buf(), reason }
    };
    found.map(Some).map_err(damaged)
}

fn decode(model: &dyn Model, bytes: &[u8]) -> Result<Checkpoint, String> {
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
    let mark = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
    let mark = mark.ok_or_else(|| format!("its metadata have no {KEY}"))?;
    let mark: Mark = serde_json::from_str(mark).map_err(|error| format!("its metadata: {error}"))?;
    let (mut parameters, mut checksum) = (Vec::with_capacity(model.parameters()), 0);
    for expected in model.tensors() {
        let found = tensors.tensor(&expected.name).map_err(|error| error.to_string())?;
        if found.dtype() != Dtype::F32 || found.shape() != expected.shape {
            return Err(format!("the tensor {} has another shape or type than the model's", expected.name));
        }
        checksum = crc32c::crc32c_append(checksum, found.data());
        let values = found.data().as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
        parameters.extend(values);
    }
    if checksum != mark.parameters_crc {
        return Err("its parameters are not those that were saved".to_owned());
    }
    let memory = decode_memory(&tensors, &mark, parameters.len())?;
    Ok(Checkpoint { mark, parameters, memory })
}

/// The clients' memory with vectors of `parameters` values; empty if the file has none.
fn decode_memory(tensors: &SafeTensors<'_>, mark: &Mark, parameters: usize) -> Result<ClientMemory, String> {
    let (Ok(clients), Ok(values)) = (tensors.tensor(MEMORY_CLIENTS), tensors.tensor(MEMORY_VALUES)) else {
        let is_absent =
            mark.memory_crc == 0 && tensors.names().iter().all(|name| !name.starts_with("client_memory"));
        return if is_absent {
            Ok(ClientMemory::default())
        } else {
            Err("its client memory is missing".to_owned())
        };
    };
    let is_sound = clients.dtype() == Dtype::U32
        && values.dtype() == Dtype::F32
        && values.shape() == [clients.data().len() / size_of::<u32>(), parameters]
        && memory_crc(clients.data(), values.data()) == mark.memory_crc;
    if !is_sound {
        return Err("its client memory is not the one that was saved".to_owned());
    }
    let values: Vec<f32> =
        values.data().as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    let clients = clients.data().as_chunks::<4>().0.iter().map(|&bytes| u32::from_le_bytes(bytes));
    Ok(clients.zip(values.chunks(parameters.max(1)).map(<[f32]>::to_vec)).collect())
}

/// CRC-32C of the clients' memory; 0 without one.
fn memory_crc(clients: &[u8], values: &[u8]) -> u32 {
    if clients.is_empty() { 0 } else { crc32c::crc32c_append(crc32c::crc32c(clients), values) }
}

#[cfg(test)]
mod tests {
    use floras_learn::Perceptron;
    use proptest::prelude::*;

    use super::*;
    use crate::experiment::Experiment;

    fn model() -> Perceptron {
        Perceptron::new(3, &[2], 4, 0.0).unwrap()
    }

    fn mark() -> Mark {
        let (version, identity) = (VERSION.to_owned(), "an experiment".to_owned());
        Mark {
            version,
            identity,
            trial: 3,
            round: 70,
            status: Status::Diverged,
            log_crc: 5,
            parameters_crc: 0,
            memory_crc: 0,
        }
    }

    fn encoded() -> (Vec<u8>, Vec<f32>) {
        let parameters: Vec<f32> = (0..model().parameters()).map(|i| i as f32 - 7.5).collect();
        (encode(&model(), mark(), &parameters, &ClientMemory::default()).unwrap(), parameters)
    }

    fn encoded_with_memory() -> (Vec<u8>, ClientMemory) {
        let parameters = encoded().1;
        let vector = |client: u32| (client, parameters.iter().map(|value| value * client as f32).collect());
        let memory: ClientMemory = [3, 70_000].map(vector).into_iter().collect();
        (encode(&model(), mark(), &parameters, &memory).unwrap(), memory)
    }

    #[test]
    fn client_memory_is_saved_and_checked() {
        let (mut bytes, memory) = encoded_with_memory();
        assert_eq!(decode(&model(), &bytes).unwrap().memory, memory);
        assert!(decode(&model(), &encoded().0).unwrap().memory.is_empty());
        for flipped in 0..memory.iter().map(|(_, values)| 4 * values.len() + 4).sum() {
            let place = bytes.len() - 1 - flipped;
            bytes[place] ^= 4;
            assert!(decode(&model(), &bytes).is_err(), "{flipped}");
            bytes[place] ^= 4;
        }
    }

    #[test]
    fn what_was_saved_is_read_back() {
        let (bytes, parameters) = encoded();
        let found = decode(&model(), &bytes).unwrap();
        assert_eq!(found.parameters, parameters);
        assert_eq!(Mark { parameters_crc: 0, ..found.mark }, mark());
        assert_eq!(bytes, encoded().0, "same bytes each time");
    }

    #[test]
    fn another_models_file_is_refused() {
        let other = Perceptron::new(2, &[2], 4, 0.0).unwrap();
        assert!(decode(&other, &encoded().0).unwrap_err().contains("hidden.weight"));
    }

    /// Earlier versions wrote the same settings in another order and spelling, and marked checkpoints with that text.
    #[test]
    fn a_checkpoint_of_another_spelling_is_read() {
        let text = "[data]\ntrain = 40\n[uplink]\nreceiver = { clipped = 2.0 }";
        let federation = Federation::new(&Experiment::parse("a test", text).unwrap()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("checkpoint").join("trial-0000.safetensors");
        fs::create_dir(directory.path().join("checkpoint")).unwrap();
        let mark = Mark { identity: federation.identity_of(text), trial: 0, ..mark() };
        let parameters = vec![0.0; federation.model().parameters()];
        fs::write(&path, encode(federation.model(), mark, &parameters, &ClientMemory::default()).unwrap())
            .unwrap();
        assert!(load(&path, &federation, 0).is_err(), "the directory has no such experiment");
        fs::write(RunDirectory::experiment_file(directory.path()), text).unwrap();
        assert!(load(&path, &federation, 0).unwrap().is_some());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(decode(&model(), &bytes).is_err());
        }

        #[test]
        fn a_file_cut_short_is_refused(share in 0.0..1.0) {
            let (bytes, _) = encoded();
            let cut = (bytes.len() as f64 * share) as usize;
            prop_assert!(decode(&model(), &bytes[..cut]).is_err());
        }

        #[test]
        fn flipped_bits_are_noticed_without_a_panic(
            at in any::<prop::sample::Index>(),
            bit in 0_u32..8,
        ) {
            let (mut bytes, parameters) = encoded();
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            let found = decode(&model(), &bytes);
            prop_assert!(found.is_err() || at < bytes.len() - 4 * parameters.len());
        }
    }
}
