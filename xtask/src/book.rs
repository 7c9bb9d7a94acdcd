//! The book's links: every relative link of `docs/` and of the pages around it leads to a file, and every chapter is listed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::shell;

/// Fails with a list of what is wrong.
pub(crate) fn check_links() -> Result<()> {
    let root = shell::root();
    let docs = root.join("docs");
    let chapters = markdown_files(&docs)?;
    let mut wrong = Vec::new();
    let others =
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "experiments/README.md"].map(|page| root.join(page));
    for page in chapters.iter().chain(&others) {
        let text = fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
        let here = page.parent().unwrap_or(&root);
        let broken = relative_links(&text).filter(|link| !here.join(link).exists());
        wrong.extend(broken.map(|link| format!("{}: {link} does not exist", page.display())));
    }
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).context("cannot read docs/SUMMARY.md")?;
    let listed: Vec<&str> = relative_links(&summary).collect();
    for chapter in &chapters {
        let name = chapter.strip_prefix(&docs).unwrap_or(chapter).to_string_lossy();
        if name != "SUMMARY.md" && !listed.contains(&name.as_ref()) {
            wrong.push(format!("docs/SUMMARY.md does not list {name}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn markdown_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(markdown_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The targets of `[text](target)` that are files of ours, without `#anchors`.
fn relative_links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.map(|target| target.split('#').next().unwrap_or(target));
    files.filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_files_are_looked_up() {
        let text = "[a](guide.md) [b](https://example.org/x.md) [c](#here) ![d](figures/e.svg#f) [g](h.md#i)";
        assert_eq!(relative_links(text).collect::<Vec<_>>(), ["guide.md", "figures/e.svg", "h.md"]);
    }
}
