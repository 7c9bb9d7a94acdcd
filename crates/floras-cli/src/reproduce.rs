//! `floras reproduce`: the paper's figures, and figures of the papers of other schemes, compared with their claims.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use floras_paper::reproduce::{Target, Workbench, reproduce};
use floras_sim::figure::{Claim, Figure, Reproduction};
use serde::Serialize;

use crate::command::{thread_count, threads_or_all_cores};
use crate::failure::Failure;
use crate::report;
use crate::run::print_status;
use crate::table::columns;
use crate::watcher::Watcher;

/// Which figures, and where to write them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras reproduce fig4             FLORAS against channel inversion, five trials
  floras reproduce all --quick      every figure about FLORAS in its small version
  floras reproduce peers --quick    figures of the papers of other schemes

The directory has report.html with every figure, plots/ for publications, reproduction.json with
all numbers, and a run directory for every curve under runs/. The same command resumes an interrupted reproduction.")]
pub(crate) struct Options {
    /// The figure to reproduce.
    #[arg(value_enum, default_value_t = What::All)]
    what: What,

    /// A smaller version, with fewer trials and rounds, in about a minute.
    #[arg(long)]
    quick: bool,

    /// The directory; runs/reproduce-FIGURE, with -quick behind it for the small version, if absent.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Threads; all cores if absent. Results do not depend on it.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = thread_count)]
    threads: Option<usize>,

    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Privacy over rounds.
    Fig2,
    /// FLORAS against channel inversion at 0 and 15 dB.
    Fig4,
    /// The cost of unused sequences.
    Fig5,
    /// Accuracy at equal privacy, for every scheme and receiver.
    Frontier,
    /// All of these figures.
    All,
    /// QSGD: bounds on quantised gradients and their code (Alistarh et al. 2017).
    Alistarh2017,
    /// Broadband analog aggregation: two tradeoffs and the latency (Zhu, Wang, Huang 2020).
    Zhu2020,
    /// GBMA: gradient descent over fading channels (Sery, Cohen 2020).
    Sery2020,
    /// Privacy for free: power control under a privacy budget (Liu, Simeone 2021).
    Liu2021,
    /// COTAF: time-varying precoding (Sery, Shlezinger, Cohen, Eldar 2021).
    Sery2021,
    /// Majority vote by frequency-shift keying: cell, errors and peaks (Şahin, Everette, Hoque 2021).
    Sahin2021,
    /// All figures of the papers of other schemes.
    Peers,
}

impl What {
    fn targets(self) -> &'static [Target] {
        match self {
            Self::Fig2 => &[Target::Fig2],
            Self::Fig4 => &[Target::Fig4],
            Self::Fig5 => &[Target::Fig5],
            Self::Frontier => &[Target::Frontier],
            Self::All => &Target::ALL,
            Self::Alistarh2017 => &[Target::Alistarh2017],
            Self::Zhu2020 => &[Target::Zhu2020],
            Self::Sery2020 => &[Target::Sery2020],
            Self::Liu2021 => &[Target::Liu2021],
            Self::Sery2021 => &[Target::Sery2021],
            Self::Sahin2021 => &[Target::Sahin2021],
            Self::Peers => &Target::PEERS,
        }
    }

    fn name(self) -> &'static str {
        match self.targets() {
            [one] => one.name(),
            _ if self == Self::Peers => "peers",
            _ => "all",
        }
    }
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    version: &'a str,
    quick: bool,
    claims: Vec<&'a Claim>,
    out: String,
}

/// Reproduces the figures and reports.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let directory = options.directory();
    print_status(&format!(
        "recording in {}; if interrupted, the same command resumes it",
        directory.display()
    ));
    let watcher = Watcher::default();
    let bench = Workbench {
        quick: options.quick,
        directory: &directory,
        threads: threads_or_all_cores(options.threads),
        watch: &|stage| watcher.update(stage),
    };
    let made = reproduce(options.what.targets(), &bench);
    watcher.clear();
    let made = made?;
    let page = report::at_the_end(&directory, "the report", true);
    options.report(&directory, &made, page.as_deref())
}

impl Options {
    fn directory(&self) -> PathBuf {
        let quick = if self.quick { "-quick" } else { "" };
        let default = || Path::new("runs").join(format!("reproduce-{}{quick}", self.what.name()));
        self.out.clone().unwrap_or_else(default)
    }

    fn report(&self, directory: &Path, made: &Reproduction, page: Option<&Path>) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        if self.json {
            let report = Report {
                version: &made.version,
                quick: made.quick,
                claims: made.figures.iter().flat_map(|figure| &figure.claims).collect(),
                out: directory.display().to_string(),
            };
            writeln!(out, "{}", serde_json::to_string(&report)?)?;
            return Ok(());
        }
        for figure in &made.figures {
            print_figure(&mut out, figure)?;
        }
        if let Some(page) = page {
            writeln!(out, "report          {}", page.display())?;
        }
        writeln!(out, "directory       {}", directory.display())?;
        Ok(())
    }
}

fn print_figure(out: &mut impl Write, figure: &Figure) -> io::Result<()> {
    writeln!(out, "{}\n", figure.title)?;
    for paragraph in &figure.text {
        writeln!(out, "{paragraph}\n")?;
    }
    if !figure.claims.is_empty() {
        let header = ["the paper's claim", "published", "ours", "verdict"].map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> = std::iter::once(header).chain(figure.claims.iter().map(row)).collect();
        columns(out, &rows)?;
        writeln!(out)?;
    }
    Ok(())
}

fn row(claim: &Claim) -> Vec<String> {
    let digits = match claim.unit.as_str() {
        "ε" => 3,
        "" => 2,
        _ => 1,
    };
    let interval = claim.ci95.map_or(String::new(), |half| format!(" ± {half:.digits$}"));
    let ours = claim.ours.map_or("–".to_owned(), |ours| format!("{ours:.digits$}{interval}"));
    let published = claim.published.map_or("–".to_owned(), |published| format!("{published:.digits$}"));
    vec![claim.claim.clone(), published, ours, claim.verdict.words().to_owned()]
}
