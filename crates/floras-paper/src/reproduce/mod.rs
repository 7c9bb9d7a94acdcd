//! Reproduction of the paper: every figure with the paper's claims about it.
//!
//! [`reproduce`] runs the experiments of some figures, each in its own run directory. It returns curves, verdicts on the
//! paper's claims, and the guarantees of each setting. The paper does not specify `C`, `B`, `L`, the number of rounds, what
//! SNR refers to, and how channel inversion sets its power. The presets `fig4-floras`, `fig4-inversion` and `fig5` document
//! these choices and their reasons.
//!
//! [`Target::PEERS`] are figures of the papers of other schemes, with what those papers claim about them.

pub mod claims;
mod cost;
mod fig2;
mod fig4;
mod fig5;
mod finding;
mod frontier;
mod learning;
mod peers;
mod workbench;

use std::fmt;
use std::fs;
use std::path::Path;

use floras_sim::figure::{Figure, Reproduction};
use floras_sim::{
    Experiment, ExperimentBuilder, Preset, RunDirectory, SimError, SweepTable, VERSION, create_directory,
    lock_directory, write_atomically,
};

pub use workbench::{RunRecord, Stage, Workbench};

/// A figure that can be reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Figure 2: composition of the published bound over many rounds.
    Fig2,
    /// Figure 4: FLORAS compared with channel inversion.
    Fig4,
    /// Figure 5: the effect of unused sequences on training.
    Fig5,
    /// The frontier: accuracy at equal privacy, which is not in the paper.
    Frontier,
    /// Alistarh et al. 2017: quantised gradients (QSGD).
    Alistarh2017,
    /// Zhu, Wang and Huang 2020: broadband analog aggregation.
    Zhu2020,
    /// Sery and Cohen 2020: gradient descent over fading channels (GBMA).
    Sery2020,
    /// Liu and Simeone 2021: privacy for free.
    Liu2021,
    /// Sery, Shlezinger, Cohen and Eldar 2021: time-varying precoding (COTAF).
    Sery2021,
    /// Şahin, Everette and Hoque 2021: majority vote by frequency-shift keying.
    Sahin2021,
}

impl Target {
    /// All targets about FLORAS, those of the paper first.
    pub const ALL: [Self; 4] = [Self::Fig2, Self::Fig4, Self::Fig5, Self::Frontier];
    /// All targets from the papers of other schemes, the oldest first.
    pub const PEERS: [Self; 6] =
        [Self::Alistarh2017, Self::Zhu2020, Self::Sery2020, Self::Liu2021, Self::Sery2021, Self::Sahin2021];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fig2 => "fig2",
            Self::Fig4 => "fig4",
            Self::Fig5 => "fig5",
            Self::Frontier => "frontier",
            Self::Alistarh2017 => "alistarh2017",
            Self::Zhu2020 => "zhu2020",
            Self::Sery2020 => "sery2020",
            Self::Liu2021 => "liu2021",
            Self::Sery2021 => "sery2021",
            Self::Sahin2021 => "sahin2021",
        }
    }

    fn make(self, bench: &Workbench<'_>, seed: u64) -> Result<Figure, SimError> {
        match self {
            Self::Fig2 => fig2::fig2(bench),
            Self::Fig4 => fig4::fig4(bench),
            Self::Fig5 => fig5::fig5(bench),
            Self::Frontier => frontier::frontier(bench),
            Self::Alistarh2017 => peers::alistarh2017(bench, seed),
            Self::Zhu2020 => peers::zhu2020(bench, seed),
            Self::Sery2020 => peers::sery2020(bench, seed),
            Self::Liu2021 => peers::liu2021(bench, seed),
            Self::Sery2021 => peers::sery2021(bench),
            Self::Sahin2021 => peers::sahin2021(bench, seed),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Computes some figures and writes `reproduction.json`. An interrupted reproduction resumes when called again.
pub fn reproduce(targets: &[Target], bench: &Workbench<'_>) -> Result<Reproduction, SimError> {
    let what = match targets {
        [one] => one.name(),
        _ if targets == Target::PEERS => "peers",
        _ => "all",
    };
    let command = format!("floras reproduce {what}{}", if bench.quick { " --quick" } else { "" });
    let _lock = enter(bench, &command)?;
    let seed = Experiment::parse("fig4", fig4::floras_file())?.settings().seed;
    let figures = targets.iter().map(|target| target.make(bench, seed)).collect::<Result<_, _>>()?;
    let reproduction =
        Reproduction { version: VERSION.to_owned(), command, quick: bench.quick, seed, figures };
    let path = bench.directory.join(Reproduction::FILE);
    let mut text = serde_json::to_string(&reproduction).map_err(|error| SimError::encoding(&path, error))?;
    text.push('\n');
    write_atomically(&path, text.as_bytes())?;
    Ok(reproduction)
}

/// An error if a directory holds a run, a sweep or the results of another command. `Ok(true)` if it holds results of this one.
pub(crate) fn check_directory(directory: &Path, command: &str) -> Result<bool, SimError> {
    let occupied = |what: String| SimError::Occupied { directory: directory.to_path_buf(), what };
    if RunDirectory::experiment_file(directory).exists() {
        return Err(occupied("a run".to_owned()));
    }
    if SweepTable::file(directory).exists() {
        return Err(occupied("a sweep".to_owned()));
    }
    match fs::read_to_string(directory.join(COMMAND)) {
        Ok(other) if other.trim_end() != command => {
            Err(occupied(format!("the results of `{}`", other.trim_end())))
        }
        found => Ok(found.is_ok()),
    }
}

/// Locks the directory for a command until the returned file is dropped; creates the directory if necessary.
pub(crate) fn enter(bench: &Workbench<'_>, command: &str) -> Result<fs::File, SimError> {
    let directory = bench.directory;
    check_directory(directory, command)?;
    create_directory(directory)?;
    let lock = lock_directory(directory)?;
    if !check_directory(directory, command)? {
        write_atomically(&directory.join(COMMAND), format!("{command}\n").as_bytes())?;
    }
    Ok(lock)
}

/// File name of the command that made a directory.
const COMMAND: &str = "command";

/// Explanation of the 95% intervals.
const INTERVALS: &str = "Bands and intervals are 95% over the trials (Student's distribution). All curves share their channels, their batches \
     and their partition, so that differences are taken trial by trial.";
/// The condition of the paper's theorems on privacy.
const CONDITION: &str = "Theorems 1 to 3, which are the published view, require K < min{N, M}.";
/// The reason for the choice of conventions.
const CHOICE: &str = "The paper does not specify C, B, L and T, what SNR refers to, whether E = 1 is one step or one epoch, and how channel \
     inversion sets its power. The choice here is the nearest of a search on another seed with at least 100 rounds for both partitions. It \
     shows settings that yield the paper's numbers, not what the authors did. The chapter on reproduction has the ranking.";

/// Settings of some experiment files that the paper does not specify, as key and value. `paper_snr_db` is the SNR of their
/// curve in the paper.
fn conventions(files: &[&str], paper_snr_db: f64) -> Result<Vec<(String, String)>, SimError> {
    const OPEN: [(&str, &str); 10] = [
        ("local.steps", "E, local SGD steps in a round"),
        ("privacy.clip", "C, norm of the longest update"),
        ("uplink.truncate", "B, bound of decoded values"),
        ("rounds", "T, learning rounds, IID"),
        ("uplink.length", "L, chips in a sequence"),
        ("uplink.modulation", "modulation"),
        ("uplink.snr_convention", "which noise SNR refers to"),
        ("uplink.power_rule", "power of channel inversion"),
        ("uplink.admission", "admission threshold of channel inversion"),
        ("uplink.noise", "noise of channel inversion"),
    ];
    let builders = files
        .iter()
        .map(|file| ExperimentBuilder::parse("the figure's experiment", file))
        .collect::<Result<Vec<_>, _>>()?;
    let stated = |(key, words): &(&str, &str)| {
        let value = builders.iter().find_map(|builder| builder.get(key))?;
        Some(((*words).to_owned(), value))
    };
    let mut all: Vec<_> = OPEN.iter().filter_map(stated).collect();
    let snr_db = builders.iter().find_map(|builder| builder.get("uplink.snr_db")?.parse::<f64>().ok());
    if let Some(above) = snr_db.map(|snr_db| snr_db - paper_snr_db) {
        let power = match above {
            0.0 => "unit power".to_owned(),
            above => format!(
                "C²/d, that of the longest update: the files have {above:.1} dB more, over unit power"
            ),
        };
        all.push(("which power SNR refers to".to_owned(), power));
    }
    for partition in learning::PARTITIONS {
        if let Some(rounds) = partition.rounds {
            all.push((format!("T, learning rounds, {}", partition.words), rounds.to_string()));
        }
    }
    Ok(all)
}

/// The text of a preset.
fn preset(name: &str) -> &'static str {
    Preset::find(name).map_or("", |preset| preset.text)
}
