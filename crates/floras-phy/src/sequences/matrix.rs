//! Sequences read from a file: one per line, `L` numbers separated by commas, no header.
//!
//! Every sequence is scaled to unit energy, so that a Hadamard matrix may be written with `1` and `−1`.

use floras_core::SequenceFile;
use rayon::prelude::*;

use crate::error::UplinkError;
use crate::lines::line_at;

/// Maximum number of chips in a set from a file: the test of orthonormality takes `N²·L/2` products.
pub(super) const MAX_CHIPS: usize = 1 << 22;
/// Sequences are orthonormal if no inner product of two of them exceeds this magnitude.
const TOLERANCE: f64 = 1e-9;

/// The chips of the first `count` sequences of a file, one sequence after the other.
pub(super) fn read(file: &SequenceFile, count: usize, length: usize) -> Result<Vec<f64>, UplinkError> {
    let (name, text) = text_of(file)?;
    let mut chips = Vec::with_capacity(count * length);
    let mut rows = 0;
    for record in reader(text).records().take(count) {
        let malformed = |position: Option<&csv::Position>, reason: String| {
            let (name, line) = (name.clone(), line_at(text, position));
            UplinkError::SequenceFileMalformed { name, line, reason, length }
        };
        let record = record.map_err(|error| malformed(error.position(), error.to_string()))?;
        chips.extend(row(&record, length).map_err(|reason| malformed(record.position(), reason))?);
        rows += 1;
    }
    match rows < count {
        true => Err(UplinkError::SequenceFileTooShort { name, rows, sequences: count }),
        false => Ok(chips),
    }
}

/// The number of sequences in a file; their values are not checked.
pub(super) fn rows(file: &SequenceFile) -> Result<usize, UplinkError> {
    Ok(reader(text_of(file)?.1).records().count())
}

fn text_of(file: &SequenceFile) -> Result<(String, &str), UplinkError> {
    let name = file.path().display().to_string();
    match file.text() {
        Ok(text) => Ok((name, text)),
        Err(error) => Err(UplinkError::SequenceFileUnreadable { name, reason: error.to_string() }),
    }
}

fn reader(text: &str) -> csv::Reader<&[u8]> {
    let mut builder = csv::ReaderBuilder::new();
    builder.has_headers(false).flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes())
}

/// One sequence, scaled to unit energy.
fn row(record: &csv::StringRecord, length: usize) -> Result<Vec<f64>, String> {
    if record.len() != length {
        return Err(format!("{} columns instead of {length}", record.len()));
    }
    let finite = |text: &str| -> Result<f64, String> {
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| format!("'{text}' is not a finite number"))
    };
    let numbers = record.iter().map(finite).collect::<Result<Vec<f64>, String>>()?;
    // The largest number goes first, so that no square overflows or vanishes.
    let largest = numbers.iter().fold(0.0_f64, |largest, number| largest.max(number.abs()));
    if largest == 0.0 {
        return Err("every chip is zero".to_owned());
    }
    let norm = numbers.iter().map(|number| (number / largest).powi(2)).sum::<f64>().sqrt();
    Ok(numbers.iter().map(|number| number / largest / norm).collect())
}

/// Whether no inner product of two sequences of unit energy exceeds 1e-9 in magnitude.
pub(super) fn is_orthonormal(chips: &[f64], length: usize) -> bool {
    let sequences: Vec<&[f64]> = chips.chunks(length).collect();
    let is_orthogonal =
        |(i, a): (usize, &&[f64])| sequences[..i].iter().all(|b| product(a, b).abs() <= TOLERANCE);
    sequences.len() <= length && sequences.par_iter().enumerate().all(is_orthogonal)
}

/// `aᵀb`, in eight partial sums that the processor computes in parallel.
fn product(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    for (a, b) in a.chunks(8).zip(b.chunks(8)) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum()
}
