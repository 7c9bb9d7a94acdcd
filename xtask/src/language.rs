//! `cargo xtask check-language`: the words of the project. Text and identifiers avoid the phrases of one list, tests have short
//! names, and doc comments contain more than a name does.
//!
//! The check reads every tracked source, page, script and template. Lines are joined before the search, so that a phrase is
//! found across a line break. Identifiers are split at underscores and capitals, so that `came_to` is found like "came to".

use std::fmt::Write as _;
use std::fs;
use std::sync::LazyLock;

use anyhow::{Context, Result, ensure};
use clap::Args;
use regex::Regex;

use crate::shell;

/// A test's name has at most this many words; articles count.
const MAX_TEST_NAME_WORDS: usize = 8;
/// A doc comment has at least this many words: meaning, unit and range need them.
const MIN_DOC_WORDS: usize = 3;

/// Doc comments of three or more words without a meaning.
const EMPTY_DOCS: &[&str] =
    &["Checks the settings.", "Checks the range.", "The text form.", "The same for plots."];

/// A phrase that the project does not use.
struct Phrase {
    /// A regular expression, case-insensitive, for text with single spaces.
    pattern: &'static str,
    /// What to write instead.
    instead: &'static str,
}

const fn phrase(pattern: &'static str, instead: &'static str) -> Phrase {
    Phrase { pattern, instead }
}

/// The list. Patterns match words, not parts of words.
const PHRASES: &[Phrase] = &[
    phrase(r"laws?", "distribution"),
    phrase(r"chances?", "probability"),
    phrase(r"folders?", "directory"),
    phrase(r"whole numbers?", "integer"),
    phrase(r"(give|gives|gave|given|giving) (\S+ ){0,4}away", "leak, reveal"),
    phrase(r"(come|comes|came|coming) to", "reach, be, yield"),
    phrase(r"(come|comes|came|coming) out", "be, result, appear"),
    phrase(r"(hold|holds|held|holding) (\S+ ){1,5}against|held against", "compare … with, check … against"),
    phrase(r"(go|goes|gone|went|going) on", "resume, continue"),
    phrase(r"(go|goes|gone|went) otherwise", "differ"),
    phrase(r"so many", "n, this many, at most n"),
    phrase(r"complain|complains|complained|complaints?", "error"),
    phrase(r"mend|mends|mended|mending", "fix"),
    phrase(
        r"((one|two|three|ten|many|few|several|\d+(,\d+)*) [a-z]+|clients|rounds|bytes|bits|chips|numbers|values|rows|lines|files|columns|entries|points|seconds|parameters|vectors|sequences|symbols|trials|operations|deviation)( \([A-Za-z]\))? an? (round|client|trial|parameter|row|line|file|column|sample|symbol|number|bit|chip|sequence|point|group|class|label|view|pair|run|second|minute|hour|block|member|coordinate|game|scheme|entry|step|key|device|set)",
        "per",
    ),
    phrase(r"(pilots|control), a round", "per"),
    phrase(r"whoever", "the adversary, any client that"),
    phrase(r"who (looks|listens|overhears)", "the adversary"),
    phrase(r"whose eyes", "the adversary"),
    phrase(r"by lots?|the lot", "at random, sampled"),
    phrase(r"nobody", "state what is missing: no client, no adversary"),
    phrase(r"nothing to (see|say|hide)", "not applicable, no data"),
    phrase(r"nothing is (said|promised)", "no guarantee"),
    phrase(r"(is|are|be) said", "be stated"),
    phrase(r"tell|tells|told|telling", "return, report, print, show, distinguish"),
    phrase(r"despread_game|overhears|overheard|overhearing", "eavesdrop, receive"),
    phrase(r"in the end", "final, finally"),
    phrase(r"at the (most|least)", "at most, at least"),
    phrase(r"(lie|lies|lay|lying) on (one another|each other)", "overlap"),
    phrase(r"middle one of", "median"),
    phrase(r"steps of powers of ten", "logarithmic"),
    phrase(r"somehow", "say how"),
    phrase(r"crew|crews", "worker, driver"),
    phrase(r"occasions?", "round"),
    phrase(r"the house|rooms", "architecture, modules"),
    phrase(r"bring back|brings back|brought back", "restore"),
    phrase(r"anew", "again"),
    phrase(
        r"(paper|paper's text|theorem|remark \d|row|label|caveat|confirmation|directory|environment|tables?|axes|axis|jsonl) says?",
        "state, contain, have",
    ),
    phrase(r"dealt out|deal out", "distributed"),
    phrase(r"for good", "permanently"),
    phrase(r"(come|comes|came) (less|more) far", "make less progress"),
    phrase(r"(get|gets|got) the better of", "the better of … is reported"),
];

/// Names that begin so. Only here the underscore matters.
const PREFIXES: &[(&str, &str)] = &[("MOST_", "MAX_"), ("LEAST_", "MIN_"), ("FEWEST_", "MIN_")];

/// Where a phrase may stand.
struct Exception {
    /// Beginning of the paths; empty for all.
    path: &'static str,
    /// The text around the phrase, as in the file; empty for all of the file.
    text: &'static str,
}

const fn exception(path: &'static str, text: &'static str, _reason: &str) -> Exception {
    Exception { path, text }
}

/// All exceptions, each with its reason.
const EXCEPTIONS: &[Exception] = &[
    exception("xtask/src/language.rs", "", "the list itself"),
    exception("crates/floras-audit/src/despreading/report.rs", "\"by_chance\"", "a field of audit.json"),
    exception("", "law of large numbers", "a theorem's name"),
    exception("", "power law", "a function's name"),
    exception("", "so many that", "a consequence follows"),
];

/// Endings of files with text for people.
const ENDINGS: &[&str] = &[
    ".rs", ".md", ".py", ".pyi", ".toml", ".html", ".js", ".mjs", ".css", ".ipynb", ".svg", ".trycmd",
    ".json", ".jsonl", ".csv", ".yml", ".cff", ".txt",
];

/// What to check.
#[derive(Debug, Default, Args)]
pub(crate) struct Options {
    /// Check only paths that begin with one of these; all paths without any.
    paths: Vec<String>,
}

/// Fails with all findings: file, line, phrase, and what to write instead.
pub(crate) fn check(Options { paths }: &Options) -> Result<()> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let listed = shell::output(shell::program("git").args(list))?;
    let mut findings = String::new();
    for path in listed.lines().filter(|path| ENDINGS.iter().any(|ending| path.ends_with(ending))) {
        if !paths.is_empty() && !paths.iter().any(|start| path.starts_with(start)) {
            continue;
        }
        // A file that was deleted but not yet committed is still listed.
        let file = shell::root().join(path);
        if file.exists() {
            let text = fs::read_to_string(&file).with_context(|| format!("cannot read {path}"))?;
            for (line, problem) in problems(path, &text) {
                writeln!(findings, "{path}:{line}: {problem}")?;
            }
        }
    }
    ensure!(findings.is_empty(), "language:\n{findings}");
    Ok(())
}

/// The findings in one file, by line.
fn problems(path: &str, text: &str) -> Vec<(usize, String)> {
    let mut found = phrases(path, text);
    found.extend(prefixes(path, text));
    found.extend(long_test_names(path, text));
    found.extend(short_doc_comments(path, text));
    found.sort();
    found
}

/// Every phrase of the list with its replacement.
fn phrases(path: &str, text: &str) -> Vec<(usize, String)> {
    static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let compile = |Phrase { pattern, instead }: &Phrase| {
            let words =
                Regex::new(&format!(r"(?i)\b(?:{pattern})\b")).expect("the list's patterns are valid");
            (words, *instead)
        };
        PHRASES.iter().map(compile).collect()
    });
    let mut text = text.to_owned();
    for Exception { path: start, text: allowed } in EXCEPTIONS {
        if !path.starts_with(start) {
            continue;
        }
        if allowed.is_empty() {
            return Vec::new();
        }
        text = text.replace(allowed, "");
    }
    let joined = Joined::new(&text);
    let search = |(pattern, instead): &(Regex, &str)| {
        let describe = |found: regex::Match<'_>| {
            (joined.line(found.start()), format!("{:?}; write: {instead}", found.as_str()))
        };
        pattern.find_iter(&joined.text).map(describe).collect::<Vec<_>>()
    };
    PATTERNS.iter().flat_map(search).collect()
}

/// Names of constants that begin with a superlative.
fn prefixes(path: &str, text: &str) -> Vec<(usize, String)> {
    if path == "xtask/src/language.rs" {
        return Vec::new();
    }
    let names = |line: &str| {
        let words = line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let wrong = |word: &str| {
            let prefix = PREFIXES.iter().find(|(prefix, _)| word.starts_with(prefix));
            prefix.map(|(_, instead)| format!("{word:?}; write: {instead}…"))
        };
        words.filter_map(wrong).collect::<Vec<_>>()
    };
    (1..)
        .zip(text.lines())
        .flat_map(|(line, text)| names(text).into_iter().map(move |name| (line, name)))
        .collect()
}

/// Names of tests with too many words.
fn long_test_names(path: &str, text: &str) -> Vec<(usize, String)> {
    let is_rust = path.ends_with(".rs");
    let start = if is_rust { "fn " } else { "def test_" };
    if !is_rust && !path.ends_with(".py") {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut marked = !is_rust;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let line = line.strip_prefix("async ").unwrap_or(line);
        marked |= line.starts_with("#[test]");
        let Some(rest) = line.strip_prefix(start).filter(|_| marked) else { continue };
        marked = !is_rust;
        let name =
            rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or(rest);
        let words = name.split('_').count();
        if words > MAX_TEST_NAME_WORDS {
            let problem = format!("test {name} has {words} words; write: at most {MAX_TEST_NAME_WORDS}");
            found.push((number, problem));
        }
    }
    found
}

/// The text of a line that begins a doc comment: `///`, `/** … */` on one line, or `#[doc = "…"]`.
fn doc_comment(line: &str) -> Option<&str> {
    let block = || line.strip_prefix("/**")?.strip_suffix("*/");
    let attribute = || {
        let value = line.strip_prefix("#[doc")?.trim_start().strip_prefix('=')?.trim_start();
        value.starts_with('"').then(|| value.trim_end_matches(']'))
    };
    let text = line.strip_prefix("///").or_else(block).or_else(attribute)?;
    Some(text.trim().trim_matches('"'))
}

/// Doc comments that only repeat a name or a symbol.
fn short_doc_comments(path: &str, text: &str) -> Vec<(usize, String)> {
    if !path.ends_with(".rs") {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut lines = (1..).zip(text.lines().map(str::trim_start)).peekable();
    while let Some((number, line)) = lines.next() {
        let Some(start) = doc_comment(line) else { continue };
        let mut words = start.split_whitespace().count();
        while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with("///")) {
            words += line.split_whitespace().count();
        }
        if words < MIN_DOC_WORDS || EMPTY_DOCS.contains(&start) {
            found.push((number, format!("{start:?}; write: meaning, unit and range")));
        }
    }
    found
}

/// The text of a file on one line, without marks of comments, with spaces between the words of identifiers.
struct Joined {
    text: String,
    /// Where each line starts in `text`.
    starts: Vec<usize>,
}

impl Joined {
    fn new(file: &str) -> Self {
        let mut text = String::with_capacity(file.len());
        let mut starts = Vec::new();
        for line in file.lines() {
            starts.push(text.len());
            let line = line.trim_start().trim_start_matches(['/', '!', '#', '*', '>', '|']);
            // A phrase does not reach from a heading into the paragraph below.
            let line = if line.trim().is_empty() { "¶" } else { line };
            let mut before = ' ';
            for letter in line.chars() {
                let letter = if letter == '_' || letter.is_whitespace() { ' ' } else { letter };
                if before.is_lowercase() && letter.is_uppercase() {
                    text.push(' ');
                }
                if letter != ' ' || !text.ends_with(' ') {
                    text.push(letter);
                }
                before = letter;
            }
            if !text.ends_with(' ') {
                text.push(' ');
            }
        }
        Self { text, starts }
    }

    /// The line of a position, from 1.
    fn line(&self, position: usize) -> usize {
        self.starts.partition_point(|&start| start <= position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        problems(path, text).into_iter().map(|(line, problem)| format!("{line}: {problem}")).collect()
    }

    /// Here and not only in `cargo xtask test`, so that a phrase fails wherever tests run.
    #[test]
    fn the_repository_uses_plain_words() {
        check(&Options::default()).unwrap();
    }

    #[test]
    fn a_phrase_is_named_with_its_replacement() {
        assert_eq!(found("a.md", "x\nthe chance of it\n"), ["2: \"chance\"; write: probability"]);
    }

    #[test]
    fn phrases_are_found_across_lines() {
        let text = "/// The mean came\n/// to 3. It holds\n/// the sum against it.\n";
        let expected = [
            "1: \"came to\"; write: reach, be, yield",
            "2: \"holds the sum against\"; write: compare … with, check … against",
        ];
        assert_eq!(found("a.rs", text), expected);
    }

    #[test]
    fn phrases_end_with_the_paragraph() {
        assert_eq!(found("a.md", "## One engine\n\nA round has\n\nit came\n///\nto"), [""; 0]);
    }

    #[test]
    fn phrases_are_found_in_identifiers() {
        let expected = ["1: \"came to\"; write: reach, be, yield", "2: \"Whole Number\"; write: integer"];
        assert_eq!(found("a.py", "it_came_to_this = 1\nWholeNumber()\n"), expected);
    }

    #[test]
    fn numbers_per_thing_are_written_with_per() {
        for wrong in [
            "one row a client",
            "10 bytes a symbol",
            "clients a round",
            "40 clients (K) a round",
            "pilots and control, a round, in all",
            "3 numbers\na parameter",
        ] {
            assert_eq!(found("a.md", wrong).len(), 1, "{wrong}");
        }
        for right in [
            "one row per client",
            "this is a round",
            "the row of a client",
            "a bound holds against it",
            "for one coordinate (`d = 1`) a client's loss holds",
            "clip norm, noise, a round",
        ] {
            assert_eq!(found("a.md", right), [""; 0], "{right}");
        }
    }

    #[test]
    fn superlatives_in_names_are_refused() {
        let expected = ["1: \"LEAST_GAP\"; write: MIN_…", "1: \"MOST_ROUNDS\"; write: MAX_…"];
        assert_eq!(found("a.rs", "const MOST_ROUNDS: u32 = LEAST_GAP + ALMOST_DONE;"), expected);
    }

    #[test]
    fn technical_uses_are_allowed() {
        assert_eq!(found("a.md", "by the law of large numbers, and the power law"), [""; 0]);
    }

    #[test]
    fn doc_comments_say_more_than_a_name() {
        let text = "/// `N`.\nsequences: u64,\n/// Number of sequences.\n///\n/// # Errors\nfn f() {}\n    /// Where.\n";
        let expected =
            ["1: \"`N`.\"; write: meaning, unit and range", "7: \"Where.\"; write: meaning, unit and range"];
        assert_eq!(found("a.rs", text), expected);
        assert_eq!(found("a.md", text), [""; 0]);
        for wrong in ["/** Where. */", "#[doc = \"Where.\"]", "/// Checks the settings."] {
            assert_eq!(found("a.rs", wrong).len(), 1, "{wrong}");
        }
        for right in ["/** Number of sequences. */", "#[doc = include_str!(\"a.md\")]", "#[doc(hidden)]"] {
            assert_eq!(found("a.rs", right), [""; 0], "{right}");
        }
    }

    #[test]
    fn long_names_of_tests_are_refused() {
        let rust =
            "#[test]\nfn one_two_three_four_five_six_seven_eight_nine() {}\nfn a_b_c_d_e_f_g_h_i() {}\n";
        let name = "one_two_three_four_five_six_seven_eight_nine";
        assert_eq!(found("a.rs", rust), [format!("2: test {name} has 9 words; write: at most 8")]);
        let python = "def test_a_b_c_d_e_f_g_h():\n    pass\ndef test_a_b_c_d_e_f_g_h_i():\n    pass\n";
        assert_eq!(found("a.py", python), ["3: test a_b_c_d_e_f_g_h_i has 9 words; write: at most 8"]);
        assert_eq!(found("a.py", "async def test_a_b_c_d_e_f_g_h_i():\n").len(), 1);
    }
}
