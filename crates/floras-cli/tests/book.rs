//! Transcripts, commands and tables of the README and the book agree with the program.
//!
//! A block `sh` and a block `text` after it form a transcript. Each page has its own working directory, in which its transcripts
//! run in order; `<!-- file: NAME -->` before a block writes the block to a file there. The text must equal standard output, or
//! standard error and standard output. `…` stands for omitted lines, and times and speeds are ignored. `<!-- output of: COMMAND -->` before
//! a block `text` shows another part of what an earlier command of the page printed. All other commands must at least parse.
//!
//! `UPDATE_BOOK=1` writes the program's output to the pages: those printed lines that begin with the same words as a line of the
//! page.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use floras_core::verdict::{Verdict, guess};
use regex::Regex;

/// Commands that take minutes: their transcripts are not executed.
const SLOW: &[&str] = &["floras reproduce"];

/// Text that looks like a command: a label in test vectors.
const NOT_COMMANDS: &[&str] = &["floras test room"];

/// Stands for any number of lines.
const OMITTED: &str = "…";

/// A fenced block of a page.
struct Block {
    language: String,
    /// Where the content's lines are.
    lines: std::ops::Range<usize>,
    /// The name in a comment `<!-- file: NAME -->` on the line before the block.
    file: Option<String>,
    /// The command in a comment `<!-- output of: COMMAND -->` on the line before the block: an earlier block of the page has
    /// run it.
    output_of: Option<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let mut directories = vec![root().join("docs")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

fn lines_of(page: &Path) -> Vec<String> {
    fs::read_to_string(page).unwrap().lines().map(str::to_owned).collect()
}

/// The fenced blocks of a page, in order.
fn blocks(lines: &[String]) -> Vec<Block> {
    let mut found = Vec::new();
    let mut number = 0;
    while let Some(start) = lines.iter().skip(number).position(|line| line.starts_with("```")) {
        let fence = number + start;
        let length = lines[fence + 1..].iter().position(|line| line == "```").expect("blocks end");
        let before = fence.checked_sub(1).map_or("", |line| lines[line].as_str());
        let named = |start| {
            let rest = before.strip_prefix("<!-- ")?.strip_prefix(start)?;
            rest.strip_suffix(" -->").map(str::to_owned)
        };
        found.push(Block {
            language: lines[fence].trim_start_matches('`').to_owned(),
            lines: fence + 1..fence + 1 + length,
            file: named("file: "),
            output_of: named("output of: "),
        });
        number = fence + length + 2;
    }
    found
}

/// Whether only empty lines are between two blocks.
fn are_adjacent(lines: &[String], first: &Block, second: &Block) -> bool {
    lines[first.lines.end + 1..second.lines.start - 1].iter().all(String::is_empty)
}

/// What commands print: standard output, and standard error before it.
fn answers(commands: &str, directory: &Path) -> [Vec<String>; 2] {
    let program = Path::new(env!("CARGO_BIN_EXE_floras")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let script = commands.replace("cargo run --release --", "floras");
    let mut shell = Command::new("sh");
    let output = shell.args(["-ec", &script]).current_dir(directory).env("PATH", path).output().unwrap();
    let lines = |bytes| String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect::<Vec<_>>();
    let (printed, messages) = (lines(output.stdout), lines(output.stderr));
    [printed.clone(), [messages, printed].concat()]
}

/// A line without times, speeds and spaces at its end.
fn masked(line: &str) -> String {
    static TIMES: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"[\d.]+ (ms|s|min|rounds/s|points/s)\b").unwrap());
    TIMES.replace_all(line.trim_end(), "? $1").into_owned()
}

/// Whether lines of a page show what was printed; `…` stands for omitted lines.
fn is_shown(shown: &[String], printed: &[String]) -> bool {
    let masked = |lines: &[String]| lines.iter().map(|line| masked(line)).collect::<Vec<_>>();
    let (shown, printed) = (masked(shown), masked(printed));
    let mut parts: Vec<&[String]> = shown.split(|line| line == OMITTED).collect();
    let (first, last) = (parts.remove(0), parts.pop());
    let Some(mut rest) = printed.strip_prefix(first) else { return false };
    let Some(last) = last else { return rest.is_empty() };
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        let Some(start) = rest.windows(part.len()).position(|window| window == part) else { return false };
        rest = &rest[start + part.len()..];
    }
    rest.ends_with(last)
}

/// The first word of a line, or the first words of a note.
fn beginning(line: &str) -> Vec<&str> {
    let words = if line.starts_with("note:") { 3 } else { 1 };
    line.split_whitespace().take(words).collect()
}

/// The printed lines that begin like one of the lines shown, with their indented continuations; `…` for the others.
fn updated(shown: &[String], printed: &[String]) -> Vec<String> {
    if !shown.iter().any(|line| line == OMITTED) {
        return printed.to_vec();
    }
    let mut lines: Vec<String> = Vec::new();
    let mut is_kept = false;
    for line in printed {
        if !line.starts_with("   ") {
            is_kept = shown.iter().any(|other| beginning(other) == beginning(line));
        }
        if is_kept {
            lines.push(line.clone());
        } else if lines.last().is_none_or(|last| last != OMITTED) {
            lines.push(OMITTED.to_owned());
        }
    }
    lines
}

#[test]
fn transcripts_are_the_programs() {
    let is_update = std::env::var_os("UPDATE_BOOK").is_some();
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for page in pages() {
        let mut lines = lines_of(&page);
        let directory = tempfile::tempdir().unwrap();
        let all = blocks(&lines);
        let mut replacements = Vec::new();
        let mut outputs: HashMap<String, [Vec<String>; 2]> = HashMap::new();
        let mut before: Option<&Block> = None;
        for block in &all {
            let content = lines[block.lines.clone()].join("\n") + "\n";
            if let Some(name) = &block.file {
                fs::write(directory.path().join(name), &content).unwrap();
            }
            let adjacent = before.filter(|before| are_adjacent(&lines, before, block));
            before = Some(block);
            if block.language != "text" {
                continue;
            }
            let command = match (&block.output_of, adjacent.filter(|before| before.language == "sh")) {
                (Some(command), _) => command.clone(),
                (None, Some(before)) => lines[before.lines.clone()].join("\n"),
                (None, None) => continue,
            };
            if SLOW.iter().any(|start| command.starts_with(start)) {
                continue;
            }
            checked += 1;
            let shown = &lines[block.lines.clone()];
            // Only the block after a command runs it.
            if block.output_of.is_none() {
                outputs.insert(command.clone(), answers(&command, directory.path()));
            }
            let printed =
                outputs.get(&command).unwrap_or_else(|| panic!("{}: {command} was not run", page.display()));
            if printed.iter().any(|printed| is_shown(shown, printed)) {
                continue;
            }
            // Messages are shown on purpose: lines that standard output does not have.
            let [output, everything] = printed;
            let is_message = |line: &String| {
                line != OMITTED && !output.iter().any(|other| beginning(other) == beginning(line))
            };
            let printed = if shown.iter().any(is_message) { everything } else { output };
            let found = updated(shown, printed);
            wrong.push(format!("{}:{}:\n{}", page.display(), block.lines.start, found.join("\n")));
            replacements.push((block.lines.clone(), found));
        }
        for (range, found) in replacements.into_iter().rev().filter(|_| is_update) {
            lines.splice(range, found);
        }
        if is_update {
            fs::write(&page, lines.join("\n") + "\n").unwrap();
        }
    }
    assert!(checked >= 12, "{checked} transcripts");
    assert!(is_update || wrong.is_empty(), "the program prints something else:\n{}", wrong.join("\n\n"));
}

#[test]
fn omitted_lines_are_matched() {
    let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let printed = lines("a b c d");
    for shown in ["a b c d", "… d", "a …", "a … d", "a … c …", "… b c …", "… b … d"] {
        assert!(is_shown(&lines(shown), &printed), "{shown}");
    }
    for shown in ["a b c", "b c d", "a … c", "… c b …", "a b c d e", "… a d …"] {
        assert!(!is_shown(&lines(shown), &printed), "{shown}");
    }
    assert_eq!(masked("speed  199 rounds/s, 1.2 s left"), "speed  ? rounds/s, ? s left");
    assert_eq!(updated(&lines("b … d"), &printed), ["…", "b", "…", "d"]);
}

/// Commands of blocks `sh` that call the program, without comments, pipes and redirections.
fn commands(lines: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for block in blocks(lines).iter().filter(|block| ["sh", "console"].contains(&block.language.as_str())) {
        let text = lines[block.lines.clone()].join("\n").replace("\\\n", " ");
        for line in text.lines() {
            let line = line.trim_start_matches("$ ").replace("cargo run --release --", "floras");
            let marks = [" #", " |", " >", " 2>", " &&", ";"];
            let end = marks.iter().filter_map(|mark| line.find(mark)).min().unwrap_or(line.len());
            if line.starts_with("floras ") {
                found.push(line[..end].to_owned());
            }
        }
    }
    found
}

/// Commands in the text: `` `floras …` ``. Values may be placeholders.
fn inline_commands(text: &str) -> Vec<String> {
    static SPAN: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"`(floras\s[^`]+)`").unwrap());
    let join = |command: &str| command.split_whitespace().collect::<Vec<_>>().join(" ");
    let commands = SPAN.captures_iter(text).map(|found| join(&found[1]));
    commands.filter(|command| !NOT_COMMANDS.contains(&command.as_str())).collect()
}

/// The output of the program for a command that it parses and does not run.
fn parse(command: &str) -> Result<(), String> {
    let program = env!("CARGO_BIN_EXE_floras");
    let script = format!("'{program}' {} --help", command.trim_start_matches("floras "));
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(message) }
}

#[test]
fn documented_commands_parse() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for page in pages() {
        let lines = lines_of(&page);
        for command in commands(&lines) {
            checked += 1;
            if let Err(message) = parse(&command) {
                wrong.push(format!("{}: {command}\n{message}", page.display()));
            }
        }
        for command in inline_commands(&lines.join("\n")) {
            checked += 1;
            // `…`, `[--option]` and `A|B` describe a command.
            let command =
                command.replace(['…', '[', ']', '(', ')'], "").replace(['|', '<', '>', '&', ';'], " ");
            let message = parse(&command).err().unwrap_or_default();
            if message.contains("unexpected argument '-") || message.contains("unrecognized subcommand") {
                wrong.push(format!("{}: {command}\n{message}", page.display()));
            }
        }
    }
    assert!(checked >= 40, "{checked} commands");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every scheme is in the overview, and every page of a scheme is in the table of contents and linked by its scheme's name.
#[test]
fn every_scheme_is_in_the_book() {
    let page = |path: &str| fs::read_to_string(root().join("docs").join(path)).unwrap();
    let (overview, summary) = (page("schemes/overview.md"), page("SUMMARY.md"));
    let mut pages = 0;
    for scheme in floras_sim::schemes::all() {
        let name = scheme.name();
        assert!(overview.contains(&format!("`{name}`")), "{name} is not in the overview");
        if root().join(format!("docs/schemes/{name}.md")).exists() {
            pages += 1;
            assert!(overview.contains(&format!("[`{name}`]({name}.md)")), "the overview links no {name}.md");
            assert!(summary.contains(&format!("(schemes/{name}.md)")), "the summary has no {name}.md");
        }
    }
    // FLORAS, its baseline and the two references of an exact sum are explained elsewhere.
    assert_eq!(pages + 4, floras_sim::schemes::all().len());
}

/// The program's JSON output.
fn json(command: &str) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_floras")).args(command.split(' ')).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Replaces or checks cells of the rows of a table. The first line has the heading; `cells` gives, for a row's cells, new ones
/// by column.
fn table(page: &str, heading: &str, mut cells: impl FnMut(&[&str]) -> Vec<(usize, String)>) {
    let path = root().join(page);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let start = lines.iter().position(|line| line.starts_with(heading)).unwrap();
    let rows = lines[start + 2..].iter().take_while(|line| line.starts_with('|')).count();
    let mut wrong = Vec::new();
    for line in &mut lines[start + 2..start + 2 + rows] {
        let mut row: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let new = cells(&row);
        let is_same = new.iter().all(|(column, cell)| row[*column] == cell);
        if !is_same {
            wrong.push(format!("{line} should have {new:?}"));
            new.iter().for_each(|(column, cell)| row[*column] = cell);
            *line = format!("| {} |", row.join(" | ")).replace("|  |", "| |");
        }
    }
    if std::env::var_os("UPDATE_BOOK").is_some() {
        fs::write(&path, lines.join("\n") + "\n").unwrap();
    } else {
        assert!(wrong.is_empty(), "not what the program computes:\n{}", wrong.join("\n"));
    }
}

#[test]
fn any_channel_of_receivers_is_the_programs() {
    let mut receiver = String::new();
    table("docs/reference/accounting.md", "| receiver | `γ` | any channel |", |row| {
        receiver = match row[0] {
            "" => receiver.clone(),
            "MMSE" => "mmse".to_owned(),
            "paper" => "paper".to_owned(),
            clipped => format!("clipped={}", clipped.trim_end_matches('`').rsplit(' ').next().unwrap()),
        };
        let sequences = row[1].parse::<u32>().unwrap() + 1;
        let views = json(&format!(
            "account --json --clip 1 --per-round 1 --sequences {sequences} --receiver {receiver}"
        ));
        let any = &views["views"]["any_channel"];
        let strong = &views["views"]["idealised"]["epsilon"];
        let numbers = [&any["epsilon"], &any["epsilon_lower"], strong, &any["simple_bound"]];
        let text = |number: &serde_json::Value| {
            number.as_f64().map_or("–".to_owned(), |number| format!("{number:.3}"))
        };
        numbers.iter().enumerate().map(|(i, number)| (2 + i, text(number))).collect()
    });
}

#[test]
fn calibrated_levels_are_the_programs() {
    table("docs/concepts/clipped-projector.md", "| `c` | `ε = 8`: `γ`, `ν` |", |row| {
        let Ok(c) = row[0].parse::<f64>() else { return Vec::new() };
        let of_target = |(column, target): (usize, u32)| {
            let found = json(&format!(
                "calibrate --json --epsilon {target} --clip 1 --per-round 1 --receiver clipped={c} --view any-channel"
            ));
            let (gamma, noise) = (&found["gamma"], found["noise_std"].as_f64().unwrap());
            (row[column] != "–").then(|| (column, format!("{gamma}, {noise:.2}")))
        };
        [(1, 8), (2, 4), (3, 2)].into_iter().filter_map(of_target).collect()
    });
}

#[test]
fn epsilons_with_margins_are_the_programs() {
    table("docs/reference/accounting.md", "| margin | none |", |_| {
        let margins =
            ["", " --pilot-noise 2", " --channel-growth 1.5", " --foreign-pilots 5", " --foreign-pilots 10"];
        let of_margin = |(i, margin): (usize, &&str)| {
            let setting = "account --json --clip 1 --sequences 21 --per-round 1 --receiver clipped=1";
            let views = json(&format!("{setting}{margin}"));
            (1 + i, format!("{:.2}", views["views"]["any_channel"]["epsilon"].as_f64().unwrap()))
        };
        margins.iter().enumerate().map(of_margin).collect()
    });
}

#[test]
fn verdicts_in_the_book_are_the_programs() {
    table("docs/concepts/privacy-views.md", "| ε | guesses right", |row| {
        let epsilon: f64 = row[0].parse().unwrap();
        vec![(1, guess(epsilon)), (2, Verdict::of(Some(epsilon), true).to_string())]
    });
    let page = fs::read_to_string(root().join("docs/guide/which-view.md")).unwrap();
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&Verdict::scale()), "docs/guide/which-view.md: {}", Verdict::scale());
    let missing: Vec<_> =
        Verdict::ALL.iter().filter(|verdict| !page.contains(&format!("| {verdict} |"))).collect();
    assert!(missing.is_empty(), "docs/guide/which-view.md lacks {missing:?}");
}
