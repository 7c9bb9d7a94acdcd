//! Reading whole files.

use std::fs;
use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::error::SimError;

/// The text of a file; fails if the file does not exist.
pub(crate) fn read_text(path: &Path) -> Result<String, SimError> {
    let bytes = fs::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            SimError::Missing { path: path.to_path_buf() }
        }
        _ => SimError::file("read", path)(error),
    })?;
    String::from_utf8(bytes).map_err(|_| SimError::damaged(path, "it is not text"))
}

/// The content of a JSON file; fails if the file does not exist.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, SimError> {
    serde_json::from_str(&read_text(path)?).map_err(|error| SimError::damaged(path, error))
}

/// Replaces the error of a missing file by `None`.
pub(crate) fn if_exists<T>(read: Result<T, SimError>) -> Result<Option<T>, SimError> {
    match read {
        Err(SimError::Missing { .. }) => Ok(None),
        read => read.map(Some),
    }
}
