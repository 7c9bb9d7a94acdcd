//! Answers of `floras account` and `floras calibrate` in README and book are those of the program.
//!
//! A block `sh` with one such command and a block `text` after it belong together. Each line of the answer must be one of the
//! program's, in order; the program may print more, and `…` stands for what is left out. `UPDATE_BOOK=1` replaces lines by those of the program that begin with
//! the same word.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command of a page with its answer.
struct Example {
    command: String,
    /// Where the answer's lines are.
    lines: std::ops::Range<usize>,
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let chapters = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        chapters.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    pages.push(root.join("README.md"));
    pages.sort();
    pages
}

/// The examples of a page, in order.
fn examples(lines: &[String]) -> Vec<Example> {
    let end_of = |from: usize| lines[from..].iter().position(|line| line == "```").map(|end| from + end);
    let mut found = Vec::new();
    for (number, _) in lines.iter().enumerate().filter(|(_, line)| *line == "```sh") {
        let Some(end) = end_of(number + 1) else { continue };
        let command = lines[number + 1..end].join("\n").replace("\\\n", " ");
        let is_question =
            ["floras account ", "floras calibrate "].iter().any(|start| command.starts_with(start));
        let answer =
            lines.iter().skip(end + 1).position(|line| !line.is_empty()).map(|skipped| end + 1 + skipped);
        let Some(answer) = answer.filter(|&answer| lines[answer] == "```text") else { continue };
        if is_question && !command.contains('\n') {
            found.push(Example { command, lines: answer + 1..end_of(answer + 1).unwrap() });
        }
    }
    found
}

fn answer(command: &str) -> Vec<String> {
    let words = command.split_whitespace().skip(1);
    let output = Command::new(env!("CARGO_BIN_EXE_floras")).args(words).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn first_word(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or_default()
}

#[test]
fn answers_in_the_book_are_the_programs() {
    let is_update = std::env::var_os("UPDATE_BOOK").is_some();
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for page in pages() {
        let mut lines: Vec<String> = fs::read_to_string(&page).unwrap().lines().map(str::to_owned).collect();
        let (examples, lines_before) = (examples(&lines), lines.clone());
        for example in &examples {
            checked += 1;
            let printed = answer(&example.command);
            let mut rest = printed.iter();
            let shown = |number: &usize| !["", "…"].contains(&lines_before[*number].as_str());
            for number in example.lines.clone().filter(shown) {
                if is_update {
                    let mut same = rest.clone();
                    let Some(new) = same.find(|line| first_word(line) == first_word(&lines[number])) else {
                        continue;
                    };
                    lines[number] = new.clone();
                    rest = same;
                } else if !rest.any(|line| *line == lines[number]) {
                    wrong.push(format!("{}:{}: {}", page.display(), number + 1, lines[number]));
                    break;
                }
            }
        }
        if is_update && !examples.is_empty() {
            fs::write(&page, lines.join("\n") + "\n").unwrap();
        }
    }
    assert!(checked >= 8, "{checked} examples");
    assert!(wrong.is_empty(), "not what the program prints:\n{}", wrong.join("\n"));
}

/// What the program answers in JSON.
fn json(command: &str) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_floras")).args(command.split(' ')).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Replaces or checks cells of the rows of a table. The first line has the heading; `cells` gives, for a row's cells, new ones
/// by column.
fn table(page: &str, heading: &str, mut cells: impl FnMut(&[&str]) -> Vec<(usize, String)>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
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
    table("docs/accounting.md", "| receiver | `γ` | any channel |", |row| {
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
    table("docs/clipped-projector.md", "| `c` | `ε = 8`: `γ`, `ν` |", |row| {
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
    table("docs/accounting.md", "| margin | none |", |_| {
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
