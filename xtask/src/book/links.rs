//! The book's links: every relative link of `docs/` and of the pages around it leads to a file, every chapter is listed, every test
//! that is named exists in the file that is linked, and every erratum names one.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::shell;

/// Pages outside `docs/reference` have at most this many words.
const MAX_WORDS: usize = 2500;

/// Fails with a list of what is wrong.
pub(crate) fn check() -> Result<()> {
    let root = shell::root();
    let docs = root.join("docs");
    let chapters = shell::files(&docs, "md")?;
    let mut wrong = Vec::new();
    let mut others = shell::files(&root.join("crates"), "md")?;
    let pages = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "experiments/README.md"];
    others.extend(pages.map(|page| root.join(page)));
    for page in chapters.iter().chain(&others) {
        let text = fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
        let here = page.parent().unwrap_or(&root);
        let broken = relative_links(&text).filter(|link| !here.join(link).exists());
        wrong.extend(broken.map(|link| format!("{}: {link} does not exist", page.display())));
        for (test, file) in linked_tests(&text) {
            let code = fs::read_to_string(here.join(file)).unwrap_or_default();
            if !code.contains(&format!("fn {test}(")) {
                wrong.push(format!("{}: there is no test {test} in {file}", page.display()));
            }
        }
    }
    let errata = fs::read_to_string(docs.join("reference/errata.md"))
        .context("cannot read docs/reference/errata.md")?;
    wrong.extend(
        errata_without_tests(&errata)
            .map(|title| format!("docs/reference/errata.md: {title:?} names no test")),
    );
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).context("cannot read docs/SUMMARY.md")?;
    let listed: Vec<&str> = relative_links(&summary).collect();
    for chapter in &chapters {
        let name = chapter.strip_prefix(&docs).unwrap_or(chapter).to_string_lossy();
        let words = words(&fs::read_to_string(chapter)?);
        if words > MAX_WORDS && !name.starts_with("reference/") {
            wrong.push(format!(
                "docs/{name} has {words} words: at most {MAX_WORDS}, or move parts to reference/"
            ));
        }
        if name != "SUMMARY.md" && !listed.contains(&name.as_ref()) {
            wrong.push(format!("docs/SUMMARY.md does not list {name}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Words outside of code blocks.
fn words(text: &str) -> usize {
    text.split("\n```").step_by(2).map(|prose| prose.split_whitespace().count()).sum()
}

/// The targets of `[text](target)` that are files of ours, without `#anchors`.
fn relative_links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.map(|target| target.split('#').next().unwrap_or(target));
    files.filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
}

/// The tests that a page names, as in ``[`it_holds`](../crates/some/tests/file.rs)``, with the file that is linked.
fn linked_tests(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("[`").skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once("`](")?;
        let (file, _) = rest.split_once(')')?;
        let is_name = name
            .chars()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
        (is_name && file.ends_with(".rs")).then_some((name, file))
    })
}

/// Titles of entries that no test shows. Misprints have no consequences, and nothing to test.
fn errata_without_tests(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n### ").skip(1).filter_map(|entry| {
        let entry = entry.split("\n## ").next().unwrap_or(entry);
        let title = entry.lines().next().unwrap_or(entry);
        (title != "Misprints" && linked_tests(entry).next().is_none()).then_some(title)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Here and not only in `cargo xtask test`, so that renaming a test fails wherever tests run.
    #[test]
    fn linked_files_and_tests_exist() {
        check().unwrap();
    }

    #[test]
    fn words_of_code_do_not_count() {
        assert_eq!(words("one two\n\n```sh\nthree four\n```\n\nfive"), 3);
    }

    #[test]
    fn tests_are_named_by_links_to_code() {
        let text = "[`it_holds`](../a/b.rs) [`Type`](c.rs) [`key`](d.md) [plain](e.rs)";
        assert_eq!(linked_tests(text).collect::<Vec<_>>(), [("it_holds", "../a/b.rs")]);
    }

    #[test]
    fn an_erratum_without_a_test_is_found() {
        let text = "# Errata\n## A\n### One\n[`it_holds`](a.rs)\n### Two\nwords\n## B\n[`other`](b.rs)\n### Misprints\n";
        assert_eq!(errata_without_tests(text).collect::<Vec<_>>(), ["Two"]);
    }

    #[test]
    fn only_links_to_files_are_looked_up() {
        let text = "[a](guide.md) [b](https://example.org/x.md) [c](#here) ![d](figures/e.svg#f) [g](h.md#i)";
        assert_eq!(relative_links(text).collect::<Vec<_>>(), ["guide.md", "figures/e.svg", "h.md"]);
    }
}
