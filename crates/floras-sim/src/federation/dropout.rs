//! Clients that are silent although they were selected.
//!
//! A silent client sends neither pilot nor payload in the round's slot, and does not train. Each selected client is silent with
//! probability `p`, independently of all others, or a trace lists the silent ones. The draws have a stream of their own for every
//! trial, round and client. No other draw depends on them.
//!
//! A trace is a CSV file with the header `round,client` and rows in any order. Rounds are counted from 1, clients from 0. The same
//! trace serves every trial.
//!
//! Accounting: see [`Cohort`](crate::Cohort). The sequence of a silent client does not count as unused, and the selection does not
//! count as secret.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use floras_core::random::{StreamName, TrialId};
use rand::RngExt;

use super::select;
use crate::experiment::{ExperimentError, Settings};
use crate::purpose;
use crate::schemes::FlorasScheme;

const HEADER: [&str; 2] = ["round", "client"];

/// Which of the selected clients are silent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Dropouts {
    /// Each with this probability: at least 0 and below 1.
    Probability(f64),
    /// Those of this list: rounds from 1 and clients from 0.
    Trace(BTreeSet<(u32, u32)>),
}

impl Dropouts {
    /// The dropouts of an experiment. Reads the trace, if there is one.
    pub(crate) fn open(settings: &Settings) -> Result<Self, ExperimentError> {
        let dropout = &settings.clients.dropout;
        let Some(path) = dropout.as_trace() else {
            return Ok(Self::Probability(dropout.as_probability().unwrap_or_default()));
        };
        let refused = |reason: String| ExperimentError::refused("clients.dropout", reason);
        let text = fs::read_to_string(path)
            .map_err(|error| refused(format!("cannot read the trace {}: {error}", path.display())))?;
        let silent = parse(&text, settings.clients.total)
            .map_err(|(line, reason)| refused(malformed(path, line, &reason)))?;
        Ok(Self::Trace(silent))
    }

    /// The selected clients that send in a round, in the same order.
    pub(crate) fn senders(&self, seed: u64, trial: TrialId, round: u32, selected: &[u32]) -> Vec<u32> {
        let is_silent = |client: u32| match self {
            Self::Probability(0.0) => false,
            Self::Probability(p) => {
                let name = StreamName::new(seed, purpose::DROPOUT).trial(trial).round(round - 1);
                name.client(client).stream().random::<f64>() < *p
            }
            Self::Trace(silent) => silent.contains(&(round, client)),
        };
        selected.iter().copied().filter(|&client| !is_silent(client)).collect()
    }

    /// The clients whose signals an account takes as present. With sequences these are all that were selected, as in
    /// [`Cohort`](crate::Cohort), unless a silent client can leave less noise than one that sends. Rounds beyond those of the
    /// experiment repeat its trace.
    pub(crate) fn accounted(&self, settings: &Settings, trial: TrialId, round: u32) -> Vec<u32> {
        let selected = select(settings, trial, round);
        let floras = settings.uplink.scheme.floras();
        match (floras.is_some_and(FlorasScheme::noise_grows_with_silence), self) {
            (true, _) => selected,
            (false, Self::Probability(_)) => self.senders(settings.seed, trial, round, &selected),
            (false, Self::Trace(_)) => {
                self.senders(settings.seed, trial, (round - 1) % settings.rounds + 1, &selected)
            }
        }
    }

    /// Bytes that identify a trace; empty without a trace.
    pub(super) fn digest(&self) -> Vec<u8> {
        match self {
            Self::Probability(_) => Vec::new(),
            Self::Trace(silent) => silent
                .iter()
                .flat_map(|(round, client)| [round.to_le_bytes(), client.to_le_bytes()].concat())
                .collect(),
        }
    }
}

fn malformed(path: &Path, line: u64, reason: &str) -> String {
    format!("line {line} of the trace {}: {reason}; expected round,client, as in 1,3", path.display())
}

/// The rows of a trace, or the line of the first wrong row and what is wrong with it.
fn parse(text: &str, clients: u32) -> Result<BTreeSet<(u32, u32)>, (u64, String)> {
    let mut silent = BTreeSet::new();
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let Some((first, header)) = lines.next() else { return Err((1, "the header is missing".to_owned())) };
    if !header.split(',').map(str::trim).eq(HEADER) {
        return Err((first, format!("the header is '{header}'")));
    }
    for (number, line) in lines {
        let row = row(line, clients).map_err(|reason| (number, reason))?;
        if !silent.insert(row) {
            return Err((number, format!("round {} and client {} appear twice", row.0, row.1)));
        }
    }
    Ok(silent)
}

fn row(line: &str, clients: u32) -> Result<(u32, u32), String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [round, client] = fields[..] else {
        return Err(format!("{} columns instead of {}", fields.len(), HEADER.len()));
    };
    let round = match round.parse() {
        Ok(number @ 1..) => number,
        _ => return Err(format!("the round '{round}' is not an integer of at least 1")),
    };
    let client = match client.parse() {
        Ok(number) if number < clients => number,
        _ => {
            return Err(format!(
                "the client '{client}' is not an integer below {clients}, the number of clients"
            ));
        }
    };
    Ok((round, client))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_may_come_in_any_order() {
        let silent = parse("\nround, client\r\n2,0\n\n1,4\n2,3\n", 5).unwrap();
        assert_eq!(silent, BTreeSet::from([(1, 4), (2, 0), (2, 3)]));
        let dropouts = Dropouts::Trace(silent);
        assert_eq!(dropouts.senders(1, 0.into(), 2, &[0, 1, 3, 4]), [1, 4]);
        assert_eq!(dropouts.senders(1, 0.into(), 3, &[0, 1, 3, 4]), [0, 1, 3, 4]);
        assert_eq!(parse("round,client", 5), Ok(BTreeSet::new()));
    }

    #[test]
    fn each_wrong_row_is_named_by_its_line() {
        for (text, line) in [
            ("", 1),
            ("round;client\n", 1),
            ("client,round\n1,1\n", 1),
            ("round,client\n0,1\n", 2),
            ("round,client\n1,1\n\n1,5\n", 4),
            ("round,client\n1,1\n1,-1\n", 3),
            ("round,client\n1,1,1\n", 2),
            ("round,client\n1\n", 2),
            ("round,client\n1,2\nx,2\n", 3),
            ("round,client\n1,2\n2,2\n1,2\n", 4),
            ("round,client\n4294967296,2\n", 2),
        ] {
            assert_eq!(parse(text, 5).unwrap_err().0, line, "{text:?}");
        }
    }

    /// 40,000 draws with p = 0.3: a deviation of five standard errors, 0.0115, is a false alarm once in 1.7 million. A rate that is
    /// off by 0.02 passes with a probability below 10⁻⁴.
    #[test]
    fn clients_are_silent_independently_with_their_probability() {
        let (dropouts, clients) = (Dropouts::Probability(0.3), Vec::from_iter(0..200));
        let (mut sending, mut both) = (0, 0);
        for round in 1..=200 {
            let senders = dropouts.senders(1, 0.into(), round, &clients);
            sending += senders.len();
            both +=
                senders.iter().filter(|&client| client % 2 == 0 && senders.contains(&(client + 1))).count();
        }
        assert!((sending as f64 / 40_000.0 - 0.7).abs() < 0.0115, "{sending}");
        assert!((both as f64 / 20_000.0 - 0.49).abs() < 0.0177, "{both}");
    }

    #[test]
    fn draws_do_not_depend_on_other_clients() {
        let dropouts = Dropouts::Probability(0.5);
        let all = dropouts.senders(1, 0.into(), 7, &Vec::from_iter(0..50));
        let half = dropouts.senders(1, 0.into(), 7, &Vec::from_iter(25..50));
        assert!(all.iter().copied().filter(|&client| client >= 25).eq(half));
        assert_ne!(all, dropouts.senders(1, 1.into(), 7, &Vec::from_iter(0..50)));
    }
}
