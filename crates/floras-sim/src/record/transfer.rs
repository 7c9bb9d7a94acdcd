//! Import of runs that were done elsewhere, for example on another machine.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::directory::INNER;
use crate::error::SimError;

/// Writes the files of a run into its directory, completely or not at all. An existing directory is replaced.
pub(crate) fn put(
    directory: &Path,
    files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>,
) -> Result<(), SimError> {
    remove_partial(directory);
    let partial = partial(directory);
    let create = |path: &Path| fs::create_dir_all(path).map_err(SimError::file("create", path));
    for inner in INNER {
        create(&partial.join(inner))?;
    }
    for (name, bytes) in files {
        if !name.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(SimError::damaged(&name, "a file of a run must lie in its directory"));
        }
        let path = partial.join(name);
        path.parent().map_or(Ok(()), create)?;
        fs::write(&path, bytes).map_err(SimError::file("write", &path))?;
    }
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(SimError::file("remove", directory))?;
    }
    fs::rename(&partial, directory).map_err(SimError::file("write", directory))
}

/// Removes the temporary directory of a [`put`] that was killed.
pub(crate) fn remove_partial(directory: &Path) {
    // Errors are ignored, because the directory usually does not exist.
    let _ = fs::remove_dir_all(partial(directory));
}

fn partial(directory: &Path) -> PathBuf {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    directory.with_file_name(format!(".{name}.partial"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_outside_the_directory_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("run");
        for name in ["../escaped", "/escaped", "tb/../../escaped"] {
            let error = put(&directory, [(name.into(), Vec::new())]).unwrap_err();
            assert!(error.to_string().contains("must lie in its directory"), "{error}");
        }
        assert!(!directory.exists() && !temporary.path().join("escaped").exists());
        remove_partial(&directory);
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_run_replaces_what_was_there() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("run");
        put(&directory, [("old".into(), b"old".to_vec())]).unwrap();
        put(&directory, [("tb/new".into(), b"new".to_vec())]).unwrap();
        assert_eq!(fs::read(directory.join("tb/new")).unwrap(), b"new");
        assert!(!directory.join("old").exists() && directory.join("checkpoint").is_dir());
    }
}
