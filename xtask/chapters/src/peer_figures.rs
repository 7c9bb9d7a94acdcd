//! `cargo xtask peer-figures`: the book's chapter on figures of the papers of other schemes, from recorded results.
//!
//! Runs `floras reproduce peers`, keeps its numbers and pictures under `docs/reproduction/`, and writes
//! `docs/reference/peer-figures.md` from them. Every number of that page is computed.

use std::fmt::Write;
use std::fs;

use anyhow::Result;
use floras_sim::figure::{Reproduction, Verdict};

use crate::page::{wrap, write_figure};
use crate::record::{self, Options, Record};
use crate::shell;

const CHAPTER: &str = "docs/reference/peer-figures.md";
const RECORD: Record = Record { figures: "peers", file: "peers.json" };

/// Makes numbers, pictures and chapter.
pub(crate) fn run(options: &Options) -> Result<()> {
    RECORD.update(options)?;
    let made = RECORD.read()?;
    record::draw(&made)?;
    fs::write(shell::root().join(CHAPTER), chapter(&made))?;
    println!("wrote {CHAPTER} and its pictures");
    Ok(())
}

/// The chapter's text.
fn chapter(made: &Reproduction) -> String {
    let claims = || made.figures.iter().flat_map(|figure| &figure.claims);
    let number = |verdict: Verdict| claims().filter(|claim| claim.verdict == verdict).count();
    let mut out = String::new();
    let _ = write!(
        out,
        "# Figures of other papers\n\n\
         Figures from the papers of other schemes, computed with this project's implementation of them and compared with what these papers \
         claim. `{}` computes all of them; version {}, seed {}. `cargo xtask peer-figures` writes this page from \
         [the numbers](../reproduction/peers.json) of that command, and takes every number from them. A test checks that no verdict of a \
         `--quick` run contradicts these.\n\n\
         GBMA is gradient-based multiple access: clients send gradients as they are, on one channel at the same time. NOMA, non-orthogonal \
         multiple access, is the general name for devices that send at the same time. With OMA, orthogonal multiple access, they send one \
         after another.\n\n\
         A claim is a sentence of a paper's abstract, or follows from the authors' published code. Numbers that only a figure of a paper \
         shows are not quoted. Each section lists the choices that had to be made, and what of the paper is not compared.\n\n\
         A claim with an interval has one number per trial. It is **reproduced** if the 95% interval of their mean lies on the side of 0 \
         that the claim names, **not reproduced** if it lies on the other side, and **inconclusive** otherwise. A claim that something is \
         0 allows no other value in any trial; one about iterations allows less than one. A claim that two accuracies are alike has \
         the rule of [Reproduction](reproduction.md). Claims without an interval are closed forms. A \
         guarantee is **false** if exact accounting exceeds it. Of {} claims, {} are reproduced, {} inconclusive, {} not reproduced and \
         {} false.\n\n",
        made.command,
        made.version,
        made.seed,
        claims().count(),
        number(Verdict::Reproduced),
        number(Verdict::Inconclusive),
        number(Verdict::NotReproduced),
        number(Verdict::False)
    );
    for figure in &made.figures {
        write_figure(
            &mut out,
            figure,
            "Settings, chosen by this project unless the notes name another source",
        );
    }
    wrap(out.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chapter_follows_from_the_recorded_numbers() {
        let written = fs::read_to_string(shell::root().join(CHAPTER)).unwrap();
        let made = chapter(&RECORD.read().unwrap());
        assert!(
            written == made,
            "docs/reference/peer-figures.md was changed by hand: run `cargo xtask peer-figures`"
        );
    }

    #[test]
    fn every_picture_of_the_recorded_figures_is_there() {
        for panel in RECORD.read().unwrap().figures.iter().flat_map(|figure| &figure.panels) {
            assert!(record::picture(panel).exists(), "{}", panel.name);
        }
    }
}
