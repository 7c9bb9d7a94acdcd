//! `cargo xtask leaderboard`: the book's page on the benchmark, written from the program's recorded results.
//!
//! Runs `floras benchmark`, keeps its numbers and pictures under `docs/benchmark/`, and writes from them `docs/schemes/leaderboard.md`
//! and the page of all tables, `docs/reference/benchmark.md`. Every number of both is computed.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use floras_report::plot::Plot;
use floras_sim::benchmark::{Benchmark, CaptionedPanel, Table};

use crate::page::wrap;
use crate::record::Options;
use crate::shell;

const DIRECTORY: &str = "docs/benchmark";
const PAGE: &str = "docs/schemes/leaderboard.md";
const TABLES: &str = "docs/reference/benchmark.md";
/// The end of the leaderboard, which has no numbers.
const SUBMIT: &str = include_str!("submit.md");

/// Makes numbers, pictures and page.
pub(crate) fn run(options: &Options) -> Result<()> {
    let root = shell::root();
    if !options.recorded {
        let made = match &options.from {
            Some(directory) => directory.clone(),
            None => {
                let directory = root.join("target").join("benchmark");
                let program = shell::release_program()?;
                shell::run(shell::program(program).args(["benchmark", "--out"]).arg(&directory))?;
                directory
            }
        };
        fs::create_dir_all(root.join(DIRECTORY))?;
        fs::copy(made.join(Benchmark::FILE), root.join(DIRECTORY).join(Benchmark::FILE))
            .with_context(|| format!("{} holds no benchmark", made.display()))?;
    }
    let mut made = read()?;
    // Sentences follow from the numbers. Without a new benchmark they are those of the present code.
    floras_paper::benchmark::describe(&mut made);
    let path = root.join(DIRECTORY).join(Benchmark::FILE);
    fs::write(&path, serde_json::to_string(&made)? + "\n")
        .with_context(|| format!("cannot write {}", path.display()))?;
    for old in pictures()? {
        fs::remove_file(&old).with_context(|| format!("cannot remove {}", old.display()))?;
    }
    for CaptionedPanel { panel, .. } in &made.panels {
        let path = root.join(DIRECTORY).join(format!("{}.svg", panel.name));
        fs::write(&path, Plot::of_panel(panel).svg())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    fs::write(root.join(PAGE), leaderboard(&made))?;
    fs::write(root.join(TABLES), all_tables(&made))?;
    println!("wrote {PAGE}, its pictures, and {TABLES}");
    Ok(())
}

/// The recorded pictures.
fn pictures() -> Result<Vec<PathBuf>> {
    let directory = shell::root().join(DIRECTORY);
    let files = fs::read_dir(&directory).with_context(|| format!("{}", directory.display()))?;
    let mut paths: Vec<PathBuf> = files.map(|file| Ok(file?.path())).collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "svg"));
    paths.sort();
    Ok(paths)
}

fn read() -> Result<Benchmark> {
    let path = shell::root().join(DIRECTORY).join(Benchmark::FILE);
    let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{}", path.display()))
}

/// The page of the leaderboard.
fn leaderboard(made: &Benchmark) -> String {
    let mut out = String::new();
    let _ = write!(
        out,
        "# Leaderboard\n\n\
         Schemes for learning over the air under equal conditions. `{}` computes all results; version {}, seed {}. \
         `cargo xtask leaderboard` writes this page from [the numbers](../benchmark/{}) of that command. \
         [Its tables](../reference/benchmark.md) have all points, ε in every view, the assumptions, and the settings of the schemes. \
         [Submit a scheme](#submit-a-scheme) explains how to add one.\n\n",
        made.command,
        made.version,
        made.seed,
        Benchmark::FILE,
    );
    let _ = write!(out, "{}\n\n", made.reading);
    tables(&mut out, &made.ranking());
    out.push_str("## Conditions\n\n");
    for note in &made.notes {
        let _ = writeln!(out, "- {note}");
    }
    out.push('\n');
    plots(&mut out, "Plots", made.panels.iter().filter(is_main));
    out.push_str("The page of tables has [all other plots](../reference/benchmark.md#further-plots).\n\n");
    wrap(&out) + SUBMIT
}

/// Whether the leaderboard itself shows a plot.
fn is_main(panel: &&CaptionedPanel) -> bool {
    panel.panel.name.starts_with("benchmark-airtime")
}

fn plots<'a>(out: &mut String, title: &str, panels: impl Iterator<Item = &'a CaptionedPanel>) {
    let _ = write!(out, "## {title}\n\n");
    for CaptionedPanel { panel, caption } in panels {
        let _ = write!(out, "![{}](../benchmark/{}.svg)\n\n", panel.title, panel.name);
        if !caption.is_empty() {
            let _ = write!(out, "{caption}\n\n");
        }
    }
}

/// The page of the tables and plots that the leaderboard leaves out.
fn all_tables(made: &Benchmark) -> String {
    let mut out = "# Tables of the benchmark\n\n\
                   Results behind the [leaderboard](../schemes/leaderboard.md), which states the conditions. \
                   `cargo xtask leaderboard` writes this page.\n\n"
        .to_owned();
    tables(&mut out, &[made.schemes(), made.by_epsilon()]);
    tables(&mut out, &made.views());
    tables(&mut out, &[made.assumptions()]);
    tables(&mut out, &made.accuracies());
    plots(&mut out, "Further plots", made.panels.iter().filter(|panel| !is_main(panel)));
    wrap(&out)
}

fn tables(out: &mut String, tables: &[Table]) {
    for Table { title, heading, rows, note } in tables {
        let _ = writeln!(out, "## {title}\n\n| {} |", heading.join(" | "));
        let _ = writeln!(out, "|{}", "---|".repeat(heading.len()));
        for row in rows {
            let _ = writeln!(out, "| {} |", row.join(" | "));
        }
        out.push('\n');
        if !note.is_empty() {
            let _ = write!(out, "{note}\n\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use floras_paper::benchmark::{Candidate, MAX_POWER};
    use floras_sim::benchmark::Row;

    use super::*;

    #[test]
    fn the_pages_follow_from_the_recorded_numbers() {
        let made = read().unwrap();
        for (path, page) in [(PAGE, leaderboard(&made)), (TABLES, all_tables(&made))] {
            let written = fs::read_to_string(shell::root().join(path)).unwrap();
            assert!(written == page, "{path} was changed by hand: run `cargo xtask leaderboard`");
        }
    }

    #[test]
    fn every_scheme_is_recorded_at_every_point() {
        let made = read().unwrap();
        let names: Vec<&str> = made.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, Candidate::names().collect::<Vec<_>>(), "run `cargo xtask leaderboard`");
        assert!(!made.quick && made.conditions.trials >= 5);
        assert_eq!(made.points().len(), 2 * 2 * 3 * 3 + 5);
        assert_eq!(made.rows.len(), names.len() * made.points().len());
        let open = |row: &&Row| row.point.epsilon.is_none();
        assert!(made.rows.iter().filter(open).all(|row| row.accuracy.is_some()));
    }

    /// Power is equal: no candidate exceeds the mean power that all keep. Private points meet the benchmark's ε.
    #[test]
    fn recorded_conditions_are_equal() {
        let made = read().unwrap();
        for row in &made.rows {
            assert!(row.cost.is_none_or(|cost| cost.power() <= MAX_POWER), "{row:?}");
            if let Some(epsilon) = row.point.epsilon.filter(|_| row.protected_by.is_some()) {
                let entry = made.entries.iter().find(|entry| entry.name == row.entry).unwrap();
                let bound = row.bound(entry.view).unwrap();
                assert!(bound.guarantee && bound.epsilon.unwrap() <= epsilon, "{row:?}");
            }
        }
    }

    #[test]
    fn recorded_pictures_are_those_of_the_panels() {
        let panels = read().unwrap().panels;
        assert!(panels.iter().all(|one| one.panel.curves.len() <= 8));
        let directory = shell::root().join(DIRECTORY);
        let mut expected: Vec<PathBuf> =
            panels.iter().map(|one| directory.join(format!("{}.svg", one.panel.name))).collect();
        expected.sort();
        assert_eq!(pictures().unwrap(), expected);
    }
}
