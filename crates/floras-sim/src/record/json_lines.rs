//! A file of JSON lines that only grows by whole lines.
//!
//! A line is complete once its JSON value is. A process that is killed while it writes leaves part of a line at the end; the
//! next reader removes it. If only the newline is missing, the line counts and the newline is added.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::SimError;

/// An open file of JSON lines.
#[derive(Debug)]
pub(crate) struct JsonLines {
    path: PathBuf,
    file: File,
    /// Position after the last line, in bytes.
    end: u64,
}

/// A line of the file, before it is parsed.
pub(crate) struct RawLine<'a> {
    pub(crate) path: &'a Path,
    /// Line number, counted from 1.
    pub(crate) number: usize,
    /// With the newline, unless it is missing at the end of the file.
    pub(crate) bytes: &'a [u8],
}

impl RawLine<'_> {
    /// The value of the line; `None` if it is the incomplete end of the file.
    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<Option<T>, SimError> {
        match serde_json::from_slice(self.bytes) {
            Ok(value) => Ok(Some(value)),
            Err(_) if !self.bytes.ends_with(b"\n") => Ok(None),
            Err(error) => Err(self.damaged(error)),
        }
    }

    /// The error of a damaged line.
    pub(crate) fn damaged(&self, reason: impl Display) -> SimError {
        SimError::damaged(self.path, format!("line {}: {reason}", self.number))
    }
}

impl JsonLines {
    /// Opens a file to append to it, and creates it if it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Self, SimError> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path);
        Self::new(path, file.map_err(SimError::file("create", path))?)
    }

    /// Takes a file that is open for reading and appending.
    pub(crate) fn new(path: &Path, file: File) -> Result<Self, SimError> {
        let end = file.metadata().map_err(SimError::file("read", path))?.len();
        Ok(Self { path: path.to_path_buf(), file, end })
    }

    /// The path that it was opened with.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file has no lines.
    pub(crate) fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// A second handle, to sync the file without a reference to this one.
    pub(crate) fn handle(&self) -> Result<File, SimError> {
        self.file.try_clone().map_err(SimError::file("write", &self.path))
    }

    /// Passes each line to `accept` and returns the CRC-32C of the accepted ones. To be called once, before the first line is
    /// appended.
    ///
    /// Reading stops at the first line for which `accept` returns `false`; the file is truncated there. After an error the file
    /// is left as it is.
    pub(crate) fn read(
        &mut self,
        mut accept: impl FnMut(RawLine<'_>) -> Result<bool, SimError>,
    ) -> Result<u32, SimError> {
        let mut reader = BufReader::new(&self.file);
        let (mut end, mut crc, mut number) = (0, 0, 0);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).map_err(SimError::file("read", &self.path))? > 0 {
            number += 1;
            if !accept(RawLine { path: &self.path, number, bytes: &bytes })? {
                break;
            }
            let has_newline = bytes.ends_with(b"\n");
            if !has_newline {
                (&self.file).write_all(b"\n").map_err(SimError::file("write", &self.path))?;
                bytes.push(b'\n');
            }
            end += bytes.len() as u64;
            crc = crc32c::crc32c_append(crc, &bytes);
            bytes.clear();
            if !has_newline {
                break;
            }
        }
        self.truncate(end)?;
        Ok(crc)
    }

    /// Removes everything after the first `end` bytes.
    pub(crate) fn truncate(&mut self, end: u64) -> Result<(), SimError> {
        self.end = end;
        self.file.set_len(end).map_err(SimError::file("write", &self.path))
    }

    /// Appends a value as one line and returns the line.
    pub(crate) fn append(&mut self, value: &impl Serialize) -> Result<Vec<u8>, SimError> {
        self.write(value, |_| Ok(()))
    }

    /// Appends a value as one line. The line is on the disk when this returns.
    pub(crate) fn append_synced(&mut self, value: &impl Serialize) -> Result<(), SimError> {
        self.write(value, File::sync_all).map(drop)
    }

    fn write(
        &mut self,
        value: &impl Serialize,
        finish: impl FnOnce(&File) -> std::io::Result<()>,
    ) -> Result<Vec<u8>, SimError> {
        let mut line = serde_json::to_vec(value).map_err(|error| SimError::encoding(&self.path, error))?;
        line.push(b'\n');
        if let Err(error) = self.file.write_all(&line).and_then(|()| finish(&self.file)) {
            // The next line must not follow part of this one.
            let _ = self.file.set_len(self.end);
            return Err(SimError::file("write", &self.path)(error));
        }
        self.end += line.len() as u64;
        Ok(line)
    }
}
