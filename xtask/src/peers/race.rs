//! Two commands that take turns, and the comparison of their times.

use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::shell;

/// What is measured, and the aim.
pub(super) struct Race {
    pub(super) peer: &'static str,
    pub(super) ours: Command,
    pub(super) theirs: Command,
    pub(super) clock: Clock,
    pub(super) bar: Bar,
}

/// The time that is compared.
#[derive(Clone, Copy, Debug)]
pub(super) enum Clock {
    Wall,
    Processor,
}

/// How our time and the peer's are compared.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bar {
    /// Our share of the peer's time.
    AtMost(f64),
    /// How many times faster we are.
    AtLeast(f64),
}

/// What either side prints.
#[derive(Debug, Deserialize)]
struct Measurement {
    seconds_per_round: f64,
    /// Absent where the system does not report it.
    cpu_seconds_per_round: Option<f64>,
    rounds_per_second: Option<f64>,
    /// Absent or 0 where the system does not report it.
    peak_bytes: Option<u64>,
    version: Option<String>,
}

/// The turns of one side.
#[derive(Debug, Default)]
struct Side {
    seconds: Vec<f64>,
    measurements: Vec<Measurement>,
}

/// Minimum, median and maximum of some values.
#[derive(Debug, PartialEq)]
struct Spread {
    lowest: f64,
    median: f64,
    highest: f64,
}

impl Race {
    /// Runs both sides in turns and prints the result. `false` if the peer is not installed.
    pub(super) fn run(mut self, turns: usize) -> Result<bool> {
        let (mut ours, mut theirs) = (Side::default(), Side::default());
        for _ in 0..turns {
            let Some(measurement) = measure(&mut self.theirs)? else { return Ok(false) };
            theirs.add(measurement, self.clock)?;
            let measurement = measure(&mut self.ours)?.context("floras is missing")?;
            ours.add(measurement, self.clock)?;
        }
        let width = self.peer.len().max("floras".len());
        println!("  {:width$} {}", "floras", ours.describe());
        println!("  {:width$} {}", self.peer, theirs.describe());
        println!("  {:width$} {}", self.bar.name(), self.bar.judge(&ours.seconds, &theirs.seconds));
        Ok(true)
    }
}

impl Clock {
    fn read(self, measurement: &Measurement) -> Option<f64> {
        match self {
            Self::Wall => Some(measurement.seconds_per_round),
            Self::Processor => measurement.cpu_seconds_per_round,
        }
    }
}

impl Bar {
    fn name(self) -> &'static str {
        match self {
            Self::AtMost(_) => "ratio",
            Self::AtLeast(_) => "faster",
        }
    }

    /// Compares turn by turn.
    fn judge(self, ours: &[f64], theirs: &[f64]) -> String {
        let turns = ours.iter().zip(theirs);
        let verdict = |reached| if reached { "reached" } else { "missed" };
        match self {
            Self::AtMost(bar) => {
                let Spread { lowest, median, highest } =
                    Spread::of(turns.map(|(ours, theirs)| ours / theirs));
                let verdict = verdict(median <= bar);
                format!("{median:8.3} ({lowest:.3} to {highest:.3}); at most {bar:.3} {verdict}")
            }
            Self::AtLeast(bar) => {
                let Spread { lowest, median, highest } =
                    Spread::of(turns.map(|(ours, theirs)| theirs / ours));
                let verdict = verdict(median >= bar);
                format!("{median:7.1}× ({lowest:.1} to {highest:.1}); at least {bar:.0}× {verdict}")
            }
        }
    }
}

impl Side {
    fn add(&mut self, measurement: Measurement, clock: Clock) -> Result<()> {
        self.seconds
            .push(clock.read(&measurement).context("this system does not report the processor time")?);
        self.measurements.push(measurement);
        Ok(())
    }

    fn describe(&self) -> String {
        let mut text = format!("{:8.2} ms", Spread::of(self.seconds.iter().copied()).median * 1e3);
        let first = &self.measurements[0];
        if let Some(bytes) = first.peak_bytes.filter(|&bytes| bytes > 0) {
            text += &format!("  {:4} MiB", bytes >> 20);
        }
        let speeds: Vec<f64> = self.measurements.iter().filter_map(|turn| turn.rounds_per_second).collect();
        if !speeds.is_empty() {
            text += &format!("  {:.0} rounds/s", Spread::of(speeds).median);
        }
        if let Some(version) = &first.version {
            text += &format!("  (version {version})");
        }
        text
    }
}

impl Spread {
    /// Of at least one value.
    fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self { lowest: values[0], median: values[values.len() / 2], highest: values[values.len() - 1] }
    }
}

/// Runs a command that prints a measurement. `None` if it reports a missing package.
fn measure(command: &mut Command) -> Result<Option<Measurement>> {
    let text = shell::output(command)?;
    read(&text).with_context(|| format!("{command:?} printed no measurement"))
}

fn read(text: &str) -> Result<Option<Measurement>> {
    let answer: serde_json::Value = serde_json::from_str(text.lines().last().unwrap_or_default())?;
    if answer["missing"] == true {
        return Ok(None);
    }
    Ok(Some(serde_json::from_value(answer)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_measured_peers_are_distinguished() {
        assert!(read(r#"{"peer": "jax", "missing": true}"#).unwrap().is_none());
        let measured =
            read("some talk\n{\"seconds_per_round\": 0.5, \"version\": \"2.4\"}\n").unwrap().unwrap();
        assert_eq!((measured.seconds_per_round, measured.version.as_deref()), (0.5, Some("2.4")));
    }

    #[test]
    fn what_is_neither_is_an_error() {
        for text in ["", "talk", "{}", r#"{"missing": false}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn turns_are_compared_one_by_one() {
        let (ours, theirs) = ([1.0, 4.0, 2.0], [2.0, 16.0, 10.0]);
        let reached = "   0.250 (0.200 to 0.500); at most 0.250 reached";
        assert_eq!(Bar::AtMost(0.25).judge(&ours, &theirs), reached);
        let missed = "    4.0× (2.0 to 5.0); at least 5× missed";
        assert_eq!(Bar::AtLeast(5.0).judge(&ours, &theirs), missed);
    }

    #[test]
    fn shares_and_speeds_are_judged_by_their_aims() {
        let reached = |bar: Bar, theirs: f64| bar.judge(&[1.0], &[theirs]).ends_with("reached");
        assert!(reached(Bar::AtMost(0.5), 3.0) && !reached(Bar::AtMost(0.5), 1.5));
        assert!(reached(Bar::AtLeast(2.0), 3.0) && !reached(Bar::AtLeast(2.0), 1.5));
    }

    #[test]
    fn a_side_is_described_by_its_measurements() {
        let mut side = Side::default();
        let measurement = read(r#"{"seconds_per_round": 0.002, "rounds_per_second": 480, "peak_bytes": 0}"#);
        side.add(measurement.unwrap().unwrap(), Clock::Wall).unwrap();
        assert_eq!(side.describe(), "    2.00 ms  480 rounds/s");
        let silent = read(r#"{"seconds_per_round": 0.002}"#).unwrap().unwrap();
        assert!(side.add(silent, Clock::Processor).is_err());
    }
}
