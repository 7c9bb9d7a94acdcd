//! Atomic writes: a file is written completely or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::error::SimError;

/// Writes a file completely or not at all, even if the power fails.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), SimError> {
    write_with(path, |file| file.write_all(bytes))
}

/// Writes a file under a temporary name in the same directory, syncs it, and renames it.
pub(crate) fn write_with(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), SimError> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".partial");
    let partial = path.with_file_name(name);
    let written = File::create(&partial).and_then(|mut file| {
        fill(&mut file)?;
        file.sync_all()?;
        fs::rename(&partial, path)
    });
    if let Err(error) = written {
        // An incomplete file would only use space on a disk that may be full.
        let _ = fs::remove_file(&partial);
        return Err(SimError::file("write", path)(error));
    }
    sync_directory(path)
}

/// Syncs the directory of a file. A new name is durable only after that.
pub(crate) fn sync_directory(path: &Path) -> Result<(), SimError> {
    let Some(directory) = path.parent() else { return Ok(()) };
    // A name without a directory is in the current one.
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    if cfg!(unix) {
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(SimError::file("write", path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file cannot take the place of a directory, and what was written for it does not stay.
    #[test]
    fn failed_writes_leave_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let taken = directory.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(write(&taken, b"losses").is_err());
        let names: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["taken"]);
    }
}
