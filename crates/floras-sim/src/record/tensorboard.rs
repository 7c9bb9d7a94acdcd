//! TensorBoard's event files.
//!
//! A file is a sequence of records, each an `Event` message of protocol buffers in a frame:
//!
//! ```text
//! length (8 bytes, little-endian) │ masked CRC-32C of the length (4) │ message │ masked CRC-32C of the message (4)
//! masked = (crc rotated right by 15 bits) + 0xa282ead8
//! ```
//!
//! The first event names the format; then there is one for each round. A file can therefore be truncated to a round without reading
//! messages, and an incomplete end is detected by its checksum.
//!
//! # Citations
//! TensorFlow, `tensorflow/core/util/event.proto`, `tensorflow/core/framework/summary.proto` and
//! `tensorflow/core/lib/io/record_writer.h`.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use prost::Message;

use crate::error::SimError;
use crate::federation::RoundMetrics;

/// The part of `event.proto` that is used.
#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(string, optional, tag = "3")]
    file_version: Option<String>,
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
}

/// The part of `summary.proto` that is used.
#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    values: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(float, tag = "2")]
    simple_value: f32,
}

/// An event file that grows by one event per round.
#[derive(Debug)]
pub(crate) struct EventFile {
    path: PathBuf,
    file: File,
}

impl EventFile {
    /// Opens a file for a trial that has done `rounds` rounds: later events are removed, and a file with fewer rounds is started
    /// again.
    pub(crate) fn open(path: &Path, rounds: u32) -> Result<Self, SimError> {
        let wrong = |action| SimError::file(action, path);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(wrong("create"))?;
        let kept = end_of_record(BufReader::new(&file), rounds).map_err(wrong("read"))?.unwrap_or(0);
        file.set_len(kept).map_err(wrong("write"))?;
        file.seek(SeekFrom::End(0)).map_err(wrong("write"))?;
        let mut events = Self { path: path.to_path_buf(), file };
        if kept == 0 {
            events.append(&Event { file_version: Some("brain.Event:2".to_owned()), ..Event::now(0) })?;
        }
        Ok(events)
    }

    /// Appends the measurements of a round.
    pub(crate) fn append_round(&mut self, metrics: &RoundMetrics) -> Result<(), SimError> {
        let value = |(name, value): (&str, f64)| Value { tag: tag(name), simple_value: value as f32 };
        let summary = Summary { values: metrics.values().map(value).collect() };
        self.append(&Event { summary: Some(summary), ..Event::now(metrics.round.into()) })
    }

    fn append(&mut self, event: &Event) -> Result<(), SimError> {
        let written = self.file.write_all(&frame(&event.encode_to_vec()));
        written.map_err(SimError::file("write", &self.path))
    }
}

impl Event {
    fn now(step: i64) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self { wall_time: since.map_or(0.0, |time| time.as_secs_f64()), step, ..Self::default() }
    }
}

/// The tag of a chart. TensorBoard groups charts by the part before the slash.
fn tag(name: &str) -> String {
    let group = match name {
        "local_loss" | "train_loss" | "test_loss" => "loss",
        "test_accuracy" => "accuracy",
        "rate" | "update_norm" => "training",
        _ => "uplink",
    };
    format!("{group}/{name}")
}

fn frame(message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u64).to_le_bytes();
    let mut framed = Vec::with_capacity(message.len() + 16);
    framed.extend_from_slice(&length);
    framed.extend_from_slice(&masked_crc(&length));
    framed.extend_from_slice(message);
    framed.extend_from_slice(&masked_crc(message));
    framed
}

fn masked_crc(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// The position after record `number`, counted from 0; `None` if there are fewer valid records.
fn end_of_record(mut bytes: impl Read, number: u32) -> io::Result<Option<u64>> {
    let mut end = 0;
    for _ in 0..=number {
        match record_length(&mut bytes)? {
            Some(length) => end += length,
            None => return Ok(None),
        }
    }
    Ok(Some(end))
}

/// The length of the next record; `None` if it is incomplete, damaged or absent.
fn record_length(bytes: &mut impl Read) -> io::Result<Option<u64>> {
    /// Maximum length of a message; that of a round has a few hundred bytes.
    const MAX_LENGTH: u64 = 1 << 20;
    let mut header = Vec::new();
    bytes.take(12).read_to_end(&mut header)?;
    let Some((&length, length_crc)) = header.split_first_chunk::<8>() else { return Ok(None) };
    let message_length = u64::from_le_bytes(length);
    if length_crc != masked_crc(&length) || message_length > MAX_LENGTH {
        return Ok(None);
    }
    let mut message = Vec::new();
    bytes.take(message_length + 4).read_to_end(&mut message)?;
    let Some((message, message_crc)) = message.split_last_chunk::<4>() else { return Ok(None) };
    let is_valid = message.len() as u64 == message_length && *message_crc == masked_crc(message);
    Ok(is_valid.then_some(message_length + 16))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round(number: u32) -> RoundMetrics {
        RoundMetrics { round: number, rate: 0.5, test_accuracy: Some(0.25), ..RoundMetrics::default() }
    }

    fn file_of(directory: &Path, rounds: u32) -> PathBuf {
        let path = directory.join("events");
        let mut events = EventFile::open(&path, 0).unwrap();
        (1..=rounds).for_each(|number| events.append_round(&round(number)).unwrap());
        path
    }

    fn steps(path: &Path) -> Vec<i64> {
        let bytes = std::fs::read(path).unwrap();
        let end = |number| end_of_record(&bytes[..], number).unwrap().map(|end| end as usize);
        let ends: Vec<usize> = (0..).map_while(end).collect();
        assert_eq!(ends.last(), Some(&bytes.len()), "nothing follows the last sound record");
        let starts = [0].into_iter().chain(ends.iter().copied());
        let message =
            |(start, &end): (usize, &usize)| Event::decode(&bytes[start + 12..end - 4]).unwrap().step;
        starts.zip(&ends).map(message).collect()
    }

    /// The CRC-32C of 32 zero bytes is 0x8a9136aa (RFC 3720, appendix B.4).
    #[test]
    fn checksums_are_those_of_the_format() {
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(masked_crc(&[0; 32]), 0x0fd7_fffa_u32.to_le_bytes());
    }

    #[test]
    fn event_files_resume_after_a_round() {
        let directory = tempfile::tempdir().unwrap();
        let path = file_of(directory.path(), 5);
        assert_eq!(steps(&path), [0, 1, 2, 3, 4, 5]);
        let mut events = EventFile::open(&path, 3).unwrap();
        events.append_round(&round(4)).unwrap();
        assert_eq!(steps(&path), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn damaged_event_files_are_repaired_or_restarted() {
        let directory = tempfile::tempdir().unwrap();
        let path = file_of(directory.path(), 3);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
        EventFile::open(&path, 2).unwrap();
        assert_eq!(steps(&path), [0, 1, 2]);
        EventFile::open(&path, 3).unwrap();
        assert_eq!(steps(&path), [0]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), number in 0_u32..4) {
            prop_assert_eq!(end_of_record(&bytes[..], number).unwrap(), None);
        }

        #[test]
        fn a_flipped_bit_is_noticed(at in 0_usize..52, bit in 0_u32..8) {
            let mut framed = frame(b"a message of some thirty-six bytes..");
            framed[at] ^= 1_u8 << bit;
            prop_assert_eq!(end_of_record(&framed[..], 0).unwrap(), None);
        }
    }
}
