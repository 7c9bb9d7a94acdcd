//! Parameters on the disk, as safetensors: the final ones of a trial, and those to resume from.
//!
//! A file holds the model's tensors by name, and in its metadata, under `floras` and as JSON, the trial, the rounds done and
//! the status. (One key, because the library writes several in no fixed order.) A file is replaced as a whole, so that
//! there is always one that is sound.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use floras_learn::Model;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use super::atomic;
use crate::error::SimError;
use crate::experiment::VERSION;
use crate::federation::{Status, Trial};

/// Where a trial stood when it was saved.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Saved {
    pub(crate) round: u32,
    pub(crate) status: Status,
    pub(crate) parameters: Vec<f32>,
}

/// What the metadata say.
#[derive(Debug, Deserialize, Serialize)]
struct Mark {
    version: String,
    trial: u16,
    round: u32,
    status: Status,
}

const KEY: &str = "floras";

/// Saves a trial as it stands.
pub(crate) fn save(path: &Path, model: &dyn Model, trial: &Trial<'_>) -> Result<(), SimError> {
    let bytes = encode(model, trial.number(), trial.round(), trial.status(), trial.parameters());
    let bytes = bytes.map_err(|reason| SimError::Damaged { path: path.to_path_buf(), reason })?;
    atomic::write(path, &bytes)
}

fn encode(
    model: &dyn Model,
    trial: u16,
    round: u32,
    status: Status,
    parameters: &[f32],
) -> Result<Vec<u8>, String> {
    let bytes: Vec<u8> = parameters.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut start = 0;
    let mut views = Vec::new();
    for tensor in model.tensors() {
        let end = start + tensor.length() * size_of::<f32>();
        let view = TensorView::new(Dtype::F32, tensor.shape, &bytes[start..end]);
        views.push((tensor.name, view.map_err(|error| error.to_string())?));
        start = end;
    }
    let mark = Mark { version: VERSION.to_owned(), trial, round, status };
    let mark = serde_json::to_string(&mark).map_err(|error| error.to_string())?;
    let metadata = HashMap::from([(KEY.to_owned(), mark)]);
    safetensors::serialize(views, Some(metadata)).map_err(|error| error.to_string())
}

/// Reads what was saved; `None` if there is no such file.
pub(crate) fn load(path: &Path, model: &dyn Model) -> Result<Option<Saved>, SimError> {
    if !path.exists() {
        return Ok(None);
    }
    let bytes = fs::read(path).map_err(SimError::file("read", path))?;
    let damaged = |reason| SimError::Damaged { path: path.to_path_buf(), reason };
    decode(model, &bytes).map(Some).map_err(damaged)
}

fn decode(model: &dyn Model, bytes: &[u8]) -> Result<Saved, String> {
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
    let mark = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
    let mark = mark.ok_or_else(|| format!("its metadata have no {KEY}"))?;
    let mark: Mark = serde_json::from_str(mark).map_err(|error| format!("its metadata: {error}"))?;
    let mut parameters = Vec::with_capacity(model.parameters());
    for expected in model.tensors() {
        let found = tensors.tensor(expected.name).map_err(|error| error.to_string())?;
        if found.dtype() != Dtype::F32 || found.shape() != expected.shape {
            return Err(format!("the tensor {} has another shape or type than the model's", expected.name));
        }
        let values = found.data().as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
        parameters.extend(values);
    }
    if parameters.iter().any(|value| !value.is_finite()) {
        return Err("it holds parameters that are not finite".to_owned());
    }
    Ok(Saved { round: mark.round, status: mark.status, parameters })
}

#[cfg(test)]
mod tests {
    use floras_learn::Perceptron;
    use proptest::prelude::*;

    use super::*;

    fn model() -> Perceptron {
        Perceptron::new(3, 2, 4, 0.0).unwrap()
    }

    fn encoded() -> (Vec<u8>, Vec<f32>) {
        let parameters: Vec<f32> = (0..model().parameters()).map(|i| i as f32 - 7.5).collect();
        (encode(&model(), 3, 70, Status::Diverged, &parameters).unwrap(), parameters)
    }

    #[test]
    fn what_was_saved_is_read_back() {
        let (bytes, parameters) = encoded();
        let saved = decode(&model(), &bytes).unwrap();
        assert_eq!(saved, Saved { round: 70, status: Status::Diverged, parameters });
        assert_eq!(bytes, encoded().0, "same bytes each time");
    }

    #[test]
    fn another_models_file_is_refused() {
        let other = Perceptron::new(2, 2, 4, 0.0).unwrap();
        assert!(decode(&other, &encoded().0).unwrap_err().contains("hidden.weight"));
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
        fn a_flipped_bit_never_makes_the_reader_panic(at in 0_usize..400, bit in 0_u32..8) {
            let (mut bytes, _) = encoded();
            let at = at % bytes.len();
            bytes[at] ^= 1_u8 << bit;
            let _ = decode(&model(), &bytes);
        }
    }
}
