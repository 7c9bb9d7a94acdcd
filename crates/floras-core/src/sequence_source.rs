//! Where the spreading sequences of an experiment come from: a family, or a matrix in a file.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use crate::choice::{Choice, ChoiceError};
use crate::family::Family;

/// A family of sequences, or a file with one sequence per line.
#[derive(Clone, Debug, PartialEq)]
pub enum SequenceSource {
    /// Sequences are constructed.
    Family(Family),
    /// Sequences are read from this file.
    File(SequenceFile),
}

impl SequenceSource {
    /// The file with the sequences; `None` for a family.
    pub fn file(&self) -> Option<&SequenceFile> {
        match self {
            Self::Family(_) => None,
            Self::File(file) => Some(file),
        }
    }
}

impl Default for SequenceSource {
    fn default() -> Self {
        Self::Family(Family::default())
    }
}

impl From<Family> for SequenceSource {
    fn from(family: Family) -> Self {
        Self::Family(family)
    }
}

impl Choice for SequenceSource {
    const WHAT: &'static str = Family::WHAT;
    const FORMS: &'static [&'static str] =
        &["walsh", "orthonormal", "gaussian", "gold", "zadoff-chu", "file=path"];

    fn label(&self) -> String {
        match self {
            Self::Family(family) => family.label(),
            Self::File(file) => format!("file {}", file.path),
        }
    }
}

impl FromStr for SequenceSource {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        match text.split_once('=') {
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(SequenceFile::new(path))),
            _ => text.parse().map(Self::Family).map_err(|_: ChoiceError| Self::refuse(text)),
        }
    }
}

impl fmt::Display for SequenceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Family(family) => family.fmt(f),
            Self::File(file) => write!(f, "file={}", file.path),
        }
    }
}

crate::serde_as_text!(SequenceSource);

/// A file of sequences. Its text is read once, on first use, and shared by all clones: a privacy statement and the simulation
/// that it describes use the same sequences.
#[derive(Clone)]
pub struct SequenceFile {
    /// UTF-8, because experiment files store it as text.
    path: String,
    text: Arc<OnceLock<String>>,
}

impl SequenceFile {
    /// Maximum file size in bytes.
    pub const MAX_BYTES: u64 = 1 << 27;

    /// The file at this path; it is read on first use.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), text: Arc::default() }
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// The text of the file, read on first use.
    pub fn text(&self) -> io::Result<&str> {
        if let Some(text) = self.text.get() {
            return Ok(text);
        }
        let mut text = String::new();
        File::open(&self.path)?.take(Self::MAX_BYTES + 1).read_to_string(&mut text)?;
        if text.len() as u64 > Self::MAX_BYTES {
            return Err(io::Error::other(format!("it has more than {} bytes", Self::MAX_BYTES)));
        }
        Ok(self.text.get_or_init(|| text))
    }
}

impl PartialEq for SequenceFile {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl fmt::Debug for SequenceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SequenceFile").field(&self.path).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_the_families_and_a_file() {
        let (last, families) = SequenceSource::FORMS.split_last().unwrap();
        assert_eq!((families, *last), (Family::FORMS, "file=path"));
    }

    #[test]
    fn a_file_is_read_once_for_all_clones() {
        let directory = std::env::temp_dir().join(format!("floras-sequence-file-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("codes.csv");
        std::fs::write(&path, "1,1\n").unwrap();
        let file = SequenceFile::new(path.to_str().unwrap());
        let clone = file.clone();
        assert_eq!(file.text().unwrap(), "1,1\n");
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(clone.text().unwrap(), "1,1\n");
        assert!(SequenceFile::new(path.to_str().unwrap()).text().is_err());
    }
}
