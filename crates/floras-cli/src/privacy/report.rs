//! The privacy table of the commands, the description of a federation and the notes.

use std::collections::BTreeMap;
use std::io::{self, Write};

use floras_core::verdict::Verdict;
use floras_core::{Level, Neighbours, View};
use floras_privacy::{Setting, Statement, Views};
use floras_sim::inquiry::{
    PublishedRenyi, adversary_text, bound_text, epsilon_text, is_model, is_sampled, sampled_texts,
    verdict_text,
};

use crate::table::{self, count};
use crate::text;

/// The table of all views, from the strongest adversary to the published formula. Below it are the views without a number,
/// each with the reason; `lacks` is the reason of views without a statement. `adversaries` are the scheme's own words for what is seen.
pub(crate) fn views(
    out: &mut impl Write,
    views: &Views,
    adversaries: &BTreeMap<View, &'static str>,
    lacks: &str,
) -> io::Result<()> {
    // With sampling there are two more numbers: with participation known, and in every round.
    let is_sampled = is_sampled(views);
    let mut heading = vec!["view", "epsilon"];
    if is_sampled {
        heading.extend(["known", "every round"]);
    }
    heading.extend(["verdict", "adversary sees"]);
    let mut rows = vec![heading.into_iter().map(str::to_owned).collect::<Vec<String>>()];
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut has_model = false;
    for view in View::BY_ADVERSARY {
        let statement = views.get(view);
        if let Some(statement) = statement {
            let mut row = vec![view.name().to_owned(), bound_text(statement, epsilon_text)];
            if is_sampled {
                row.extend(sampled_texts(statement, epsilon_text));
            }
            let sees = adversary_text(view, statement, adversaries.get(&view).copied());
            row.extend([verdict_text(view, statement), sees.to_owned()]);
            rows.push(row);
            has_model |= is_model(view, statement);
        }
        let reason = match statement {
            None => Some(lacks),
            // The masks decide, and what the paper's formula lacks is in the notes.
            Some(_) if view == View::Published && has_masks(views) => None,
            // A number such as "> 1e5" explains itself.
            Some(Statement { epsilon: None, epsilon_above: None, reason, .. }) => reason.as_deref(),
            Some(_) => None,
        };
        if let Some(reason) = reason {
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, names)) => names.push(view.name()),
                None => reasons.push((reason, vec![view.name()])),
            }
        }
    }
    table::wrapped_columns(out, &rows)?;
    for (reason, names) in reasons {
        text::paragraph(out, &format!("{}: {reason}", names.join(", ")))?;
    }
    if has_masks(views) {
        writeln!(out, "The clients' noise has one bound in all views: the adversary sees all symbols.")?;
    }
    writeln!(out, "{}", Verdict::scale())?;
    if has_model {
        writeln!(out, "(model): the bound assumes that no client's channel fades.")?;
    }
    Ok(())
}

/// Whether all views with a bound have that of the masks.
fn has_masks(views: &Views) -> bool {
    let bounded =
        views.iter().filter(|(view, statement)| *view != View::Published && statement.epsilon.is_some());
    let from_masks: Vec<bool> = bounded.map(|(_, statement)| statement.from_masks).collect();
    !from_masks.is_empty() && from_masks.iter().all(|&is| is)
}

/// The reason of views that need the radio, if none is described.
pub(crate) const NEEDS_RADIO: &str = "not computed without the radio, --length and --snr-db";
/// The reason of views that only FLORAS has, under other schemes.
pub(crate) const NOT_APPLICABLE: &str = "not applicable to this scheme";

/// The data in which neighbours differ, at a level.
pub(crate) fn unit(level: Level) -> &'static str {
    match level {
        Level::Client => "a client's data",
        Level::Item => "one item",
    }
}

/// The published Rényi divergence.
pub(crate) fn published_renyi(out: &mut impl Write, published: Option<PublishedRenyi>) -> io::Result<()> {
    let Some(PublishedRenyi { alpha, theorem, one_round, all_rounds, .. }) = published else { return Ok(()) };
    let (one, all) = (epsilon_text(one_round), epsilon_text(all_rounds));
    writeln!(out)?;
    text::paragraph(
        out,
        &format!(
            "Rényi divergence at order {alpha}, Theorem {theorem} (published, not proven): {one} in one round, {all} in all \
             rounds"
        ),
    )
}

/// A federation in one sentence.
pub(crate) fn description(setting: &Setting, rounds: u64) -> String {
    let unit = unit(setting.unit.level());
    let how = match setting.neighbours {
        Neighbours::ReplaceOne => "replaced",
        Neighbours::AddRemove => "added or removed",
    };
    let masks = setting.masks.map_or(String::new(), |masks| {
        format!(", masks of standard deviation {} and local noise of {}", masks.mask_std(), masks.noise_std())
    });
    let branches = match setting.branches {
        1 => String::new(),
        several => format!(" of {several} branches"),
    };
    format!(
        "{} of {} clients per round, {} ({} unused), clip norm {}, {} receiver{branches}{masks}, {}; delta = {:e}, {unit} {how}",
        setting.per_round,
        setting.clients,
        count(setting.sequences as usize, "sequence"),
        setting.gamma(),
        setting.clip,
        setting.receiver,
        count(rounds as usize, "round"),
        setting.delta,
    )
}

/// The notes below a table.
pub(crate) fn notes(out: &mut impl Write, notes: &[String]) -> io::Result<()> {
    for (number, note) in notes.iter().enumerate() {
        let line = if number == 0 { "\n" } else { "" };
        writeln!(out, "{line}{}", text::note(note))?;
    }
    Ok(())
}
