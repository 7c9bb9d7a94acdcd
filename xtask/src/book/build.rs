//! `cargo xtask book` and `cargo xtask check-book`: the book as HTML, and a browser that opens every page of it.
//!
//! mdBook makes the pages. Before that, `xtask/book/stage.mjs` renders blocks of language `math`, and code that is a formula, with
//! KaTeX, and replaces links that lead out of `docs/` by paths. The book needs no network to be read. Both tools are installed under `target/book-tools`,
//! which needs the network once, Cargo, and Node with npm.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::{report, shell};

const MDBOOK: &str = "0.5.4";
const KATEX: &str = "0.19.1";

/// Builds the book and prints its first page.
pub(crate) fn build() -> Result<()> {
    let tools = tools()?;
    let stage = stage();
    if stage.exists() {
        fs::remove_dir_all(&stage).with_context(|| format!("cannot empty {}", stage.display()))?;
    }
    fs::create_dir_all(&stage).with_context(|| format!("cannot create {}", stage.display()))?;
    for file in ["book.toml", "book.css"] {
        let from = shell::root().join("xtask/book").join(file);
        fs::copy(&from, stage.join(file)).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    shell::run(shell::program("node").args(["xtask/book/stage.mjs", "docs"]).arg(&stage).arg(&tools))
        .context("the pages are not ready for the book, or Node is missing")?;
    shell::run(shell::program(tools.join("bin/mdbook")).arg("build").arg(&stage))?;
    println!("{}", book().join("index.html").display());
    Ok(())
}

/// Builds the book and opens every page in Chromium.
pub(crate) fn check() -> Result<()> {
    let browser = report::browser()?;
    shell::run(shell::program("node").args(["--test", "xtask/book/inline.test.mjs"]))
        .context("formulas in running text are not read as they should be")?;
    build()?;
    let screenshots = shell::target().join("book-screenshots");
    let files = [book(), stage().join("formulas.json"), screenshots];
    shell::run(shell::program("node").arg("xtask/book/open.mjs").arg(browser).args(files))
        .context("pages of the book have errors")
}

fn book() -> PathBuf {
    shell::target().join("book")
}

/// The pages as mdBook reads them.
fn stage() -> PathBuf {
    shell::target().join("book-source")
}

/// Installs mdBook and KaTeX in these versions, if they are not there, and returns their directory.
fn tools() -> Result<PathBuf> {
    let tools = shell::target().join("book-tools");
    let mdbook = tools.join("bin").join("mdbook");
    let has_mdbook =
        mdbook.exists() && shell::output(shell::program(&mdbook).arg("--version"))?.trim().ends_with(MDBOOK);
    if !has_mdbook {
        let install = ["install", "mdbook", "--locked", "--quiet", "--force", "--no-default-features"];
        let features = ["--features", "search", "--version", MDBOOK, "--root"];
        shell::run(shell::cargo().args(install).args(features).arg(&tools))?;
    }
    let description = tools.join("node_modules/katex/package.json");
    let has_katex = fs::read_to_string(description)
        .is_ok_and(|description| description.contains(&format!("\"version\": \"{KATEX}\"")));
    if !has_katex {
        let install = ["install", "--silent", "--no-save", "--no-package-lock", "--prefix"];
        shell::run(shell::program("npm").args(install).arg(&tools).arg(format!("katex@{KATEX}")))
            .context("KaTeX renders the formulas; npm installs it")?;
    }
    Ok(tools)
}
