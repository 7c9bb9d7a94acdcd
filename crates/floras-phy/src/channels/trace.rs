//! Channel coefficients read from a file.
//!
//! A trace is a CSV file with the header `round,client,real,imaginary`, rows in any order, rounds and clients counted
//! from 0. It holds a coefficient for every client that takes part in a round; the same trace serves every trial.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use num_complex::Complex64;

use crate::error::UplinkError;
use crate::lines::line_at;

const HEADER: [&str; 4] = ["round", "client", "real", "imaginary"];
/// Largest magnitude of a real or imaginary part. The SNR is stated for a mean power of 1.
pub(super) const MAX_AMPLITUDE: f64 = 1e6;

/// The channel coefficients of some rounds and clients.
///
/// ```
/// use floras_phy::Trace;
///
/// let trace = Trace::from_reader("round,client,real,imaginary\n0,0,0.6,0.8\n0,1,-1,0\n".as_bytes())?;
/// assert_eq!(trace.rounds(), 1);
/// assert_eq!(trace.coefficient(0, 0)?.norm(), 1.0);
/// assert!(trace.coefficient(1, 0).is_err());
/// # Ok::<(), floras_phy::UplinkError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    coefficients: HashMap<(u32, u32), Complex64>,
    rounds: u32,
}

impl Trace {
    /// Reads a trace file.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, UplinkError> {
        let name = path.as_ref().display().to_string();
        let unreadable =
            |error: io::Error| UplinkError::TraceUnreadable { name: name.clone(), reason: error.to_string() };
        let file = File::open(path).map_err(unreadable)?;
        Self::parse(&name, &io::read_to_string(file).map_err(unreadable)?)
    }

    /// Reads a trace from its text.
    pub fn from_reader(mut reader: impl Read) -> Result<Self, UplinkError> {
        let (name, mut text) = ("(unnamed)", String::new());
        let read = reader.read_to_string(&mut text);
        read.map_err(|error| UplinkError::TraceUnreadable {
            name: name.to_owned(),
            reason: error.to_string(),
        })?;
        Self::parse(name, &text)
    }

    fn parse(name: &str, text: &str) -> Result<Self, UplinkError> {
        let malformed =
            |line: usize, reason: String| UplinkError::TraceMalformed { name: name.to_owned(), line, reason };
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| malformed(1, explain(&error)))?;
        if header != HEADER.as_slice() {
            let found = header.iter().collect::<Vec<_>>().join(",");
            return Err(malformed(1, format!("the header is '{found}'")));
        }
        let mut coefficients = HashMap::new();
        let mut rounds = 0;
        for record in reader.records() {
            let record =
                record.map_err(|error| malformed(line_at(text, error.position()), explain(&error)))?;
            let line = || line_at(text, record.position());
            let (round, client, coefficient) =
                parse_row(&record).map_err(|reason| malformed(line(), reason))?;
            rounds = rounds.max(round + 1);
            if coefficients.insert((round, client), coefficient).is_some() {
                return Err(malformed(line(), format!("round {round} and client {client} appear twice")));
            }
        }
        if coefficients.is_empty() {
            return Err(malformed(2, "there is no coefficient".to_owned()));
        }
        Ok(Self { coefficients, rounds })
    }

    /// Number of rounds, up to the last one in the trace.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The coefficient of a client in a round, both counted from 0.
    pub fn coefficient(&self, round: u32, client: u32) -> Result<Complex64, UplinkError> {
        if round >= self.rounds {
            return Err(UplinkError::TraceTooShort { round, rounds: self.rounds });
        }
        let found = self.coefficients.get(&(round, client)).copied();
        found.ok_or(UplinkError::TraceLacksClient { round, client })
    }

    /// The largest `|h|` of the trace.
    pub(super) fn max_amplitude(&self) -> f64 {
        self.coefficients.values().map(|h| h.norm()).fold(0.0, f64::max)
    }

    /// Mean of `|h|` over the whole trace.
    pub fn mean_amplitude(&self) -> f64 {
        let mut amplitudes: Vec<f64> = self.coefficients.values().map(|h| h.norm()).collect();
        // A hash map has no fixed order, and a sum of floats depends on the order.
        amplitudes.sort_by(f64::total_cmp);
        amplitudes.iter().sum::<f64>() / amplitudes.len() as f64
    }
}

fn parse_row(record: &csv::StringRecord) -> Result<(u32, u32, Complex64), String> {
    let whole = |column: usize| -> Result<u32, String> {
        let text = &record[column];
        let number = text.parse().ok().filter(|&number| number < u32::MAX);
        number.ok_or_else(|| format!("the {} '{text}' is not an integer below 2³²−1", HEADER[column]))
    };
    let finite = |column: usize| -> Result<f64, String> {
        let text = &record[column];
        let number = text.parse().ok().filter(|number: &f64| number.abs() <= MAX_AMPLITUDE);
        number.ok_or_else(|| format!("the {} part '{text}' is not a number within ±1e6", HEADER[column]))
    };
    Ok((whole(0)?, whole(1)?, Complex64::new(finite(2)?, finite(3)?)))
}

fn explain(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} columns instead of {expected_len}")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(rows: &str) -> Result<Trace, UplinkError> {
        Trace::from_reader(format!("round,client,real,imaginary\n{rows}").as_bytes())
    }

    #[test]
    fn rows_may_be_unordered_and_have_spaces() {
        let trace = parse("1, 4, 0.5, -2e-1\n0,4,1,0\n").unwrap();
        assert_eq!(trace.coefficient(1, 4).unwrap(), Complex64::new(0.5, -0.2));
        assert_eq!(trace.rounds(), 2);
        assert!((trace.mean_amplitude() - (1.0 + 0.29_f64.sqrt()) / 2.0).abs() < 1e-15);
    }

    #[test]
    fn an_error_names_the_length_of_the_trace() {
        let error = parse("0,0,1,0\n").unwrap().coefficient(5, 0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the channel trace is too short: round 5 was asked for, and its last one is 0 (counted from 0)"
        );
    }

    #[test]
    fn each_wrong_row_is_named_by_its_line() {
        for (rows, line) in [
            ("0,0,1,0\n0,1,x,0\n", 3),
            ("0,0,NaN,0\n", 2),
            ("0,-1,1,0\n", 2),
            ("0,0,1,0\n0,0,1,0\n", 3),
            ("0,0,1\n", 2),
            ("4294967295,0,1,0\n", 2),
            ("\n\n0,0,1,x\n", 4),
            ("0,0,1,0\r\n\r\n0,1\r\n", 4),
            ("0,0,1e7,0", 2),
            ("", 2),
        ] {
            let found = parse(rows).unwrap_err();
            assert!(
                matches!(found, UplinkError::TraceMalformed { line: at, .. } if at == line),
                "{rows:?} gave {found}"
            );
        }
        assert!(Trace::from_reader("a,b\n1,2\n".as_bytes()).is_err());
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Trace::from_path("no-such-trace.csv").unwrap_err();
        assert!(error.to_string().starts_with("cannot read the channel trace no-such-trace.csv: "));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[0-9a-z,.\\-\n\"]{0,60}") {
            let _ = parse(&text);
            let _ = Trace::from_reader(text.as_bytes());
        }
    }
}
