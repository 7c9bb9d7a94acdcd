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
         A claim is a sentence or an equation of a paper's text, of its abstract where only that could be retrieved, or follows from the \
         authors' published code. Numbers that only a figure of a paper shows were read from its vector graphics. Each section lists the \
         choices that had to be made, and what of the paper is not compared. [The end of the page](#texts-that-could-not-be-retrieved) \
         lists what could not be retrieved.\n\n\
         A claim with an interval has one number per trial. It is **reproduced** if the 95% interval of their mean lies on the side of 0 \
         that the claim names, **not reproduced** if it lies on the other side, and **inconclusive** otherwise. A claim that something is \
         0 allows no other value in any trial; one about iterations allows less than one. A claim that two accuracies are alike has \
         the rule of [Reproduction](reproduction.md). A claim on a bound is reproduced if the interval is below it. One on a published \
         number has a margin, which its row states: it is reproduced if the number is within the interval and the margin around it, and \
         half the interval is at most the margin; it is not reproduced if the number is outside of twice the interval and the margin. A \
         published curve that was drawn from random symbols is compared with the 95% prediction interval of one more such curve instead. \
         Claims without an interval are closed forms, or inconclusive because the paper does not state what decides them. A guarantee is \
         **false** if exact accounting exceeds it. Of {} claims, {} are reproduced, {} inconclusive, {} not reproduced and {} false.\n\n",
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
    out.push_str(NOT_RETRIEVED);
    wrap(out.trim_end())
}

/// What of the papers of the schemes is unknown to this project.
const NOT_RETRIEVED: &str = "## Texts that could not be retrieved\n\n\
    A figure can be compared if the paper's text or code gives its settings. For these papers they were not available:\n\n\
    | paper | scheme | what was available |\n\
    |---|---|---|\n\
    | Zhu, Wang and Huang 2020, arXiv:1812.11494 | broadband-inversion | the abstract; the equations in a tutorial of one of its authors |\n\
    | Sery and Cohen 2020, arXiv:1908.07463 | phase-corrected | the abstract |\n\
    | Amiri and Gündüz 2020, arXiv:1901.00844 and arXiv:1907.09769 | a-dsgd, d-dsgd | the abstracts |\n\
    | Koda et al. 2020, arXiv:2004.06337 | power-control | the abstract |\n\
    | Seif, Tandon and Li 2020, arXiv:2002.05151 | artificial-noise | the abstract |\n\
    | Zhu, Du, Gündüz and Huang 2021, arXiv:2001.05713 | one-bit | the abstract; a description in Şahin et al. 2021 |\n\
    | Sery, Shlezinger, Cohen and Eldar 2021, arXiv:2009.12787 | cotaf | the abstract; its precoding in a lecture and in code of others |\n\
    | Amiri et al. 2021, arXiv:2010.10030 | blind | the abstract; the combining rule in a tutorial |\n\
    | Liu and Simeone 2021, arXiv:2006.05459 | power-control | the abstract and the authors' code, from which figures 3 and 4 are computed |\n\
    | Şahin 2023, arXiv:2209.04692 | fsk-vote | the abstract |\n\n\
    The text of Şahin's demonstration of 2022 (arXiv:2209.09954) was available. Its figure 9 is measured with radios, and trains a \
    convolutional network on MNIST with clients that may abstain. This project has none of these.\n";

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
