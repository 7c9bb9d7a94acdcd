//! What is printed of an account: a table for people, and the notes.

use std::io::{self, Write};

use floras_core::{Level, Neighbours, View};
use floras_privacy::{Setting, Views};
use floras_sim::inquiry::{
    PublishedRenyi, bound_text, epsilon_text, guarantee_text, is_sampled, sampled_texts,
};

use crate::table::count;

/// The table of all views. A view without a statement says what it lacks.
pub(crate) fn views(out: &mut impl Write, views: &Views, lacks: &str) -> io::Result<()> {
    // With sampling there are two more numbers: with participation known, and in every round.
    let is_sampled = is_sampled(views);
    let columns = |[known, always]: [&str; 2]| {
        if is_sampled { format!("{known:<12}{always:<13}") } else { String::new() }
    };
    writeln!(
        out,
        "{:<13}{:<12}{}{:<11}against",
        "view",
        "epsilon",
        columns(["known", "every round"]),
        "guarantee"
    )?;
    for view in View::ALL {
        match views.get(view) {
            None => {
                writeln!(out, "{:<13}{:<12}{}{:<11}({lacks})", view.name(), "–", columns(["–", "–"]), "–")?
            }
            Some(statement) => {
                let epsilon = bound_text(statement, epsilon_text);
                let guarantee = guarantee_text(view, statement);
                let [known, always] = sampled_texts(statement, epsilon_text);
                let known = columns([known.as_str(), always.as_str()]);
                writeln!(
                    out,
                    "{:<13}{epsilon:<12}{known}{guarantee:<11}{}",
                    view.name(),
                    statement.adversary
                )?;
                if statement.epsilon.is_none()
                    && let Some(reason) = &statement.reason
                {
                    writeln!(out, "{:<13}{reason}", "")?;
                }
            }
        }
    }
    Ok(())
}

/// What the views of the radio lack without one.
pub(crate) const NEEDS_RADIO: &str = "needs the radio: --length and --snr-db";

/// What is replaced, added or removed at a level.
pub(crate) fn whose(level: Level) -> &'static str {
    match level {
        Level::Client => "a client's data",
        Level::Item => "one item",
    }
}

/// The published Rényi divergence.
pub(crate) fn published_renyi(out: &mut impl Write, published: Option<PublishedRenyi>) -> io::Result<()> {
    let Some(PublishedRenyi { alpha, theorem, one_round, all_rounds, .. }) = published else { return Ok(()) };
    writeln!(
        out,
        "\nRényi divergence at order {alpha}, Theorem {theorem} (published, no guarantee): {} in one round, {} in all",
        epsilon_text(one_round),
        epsilon_text(all_rounds)
    )
}

/// A federation in a few words.
pub(crate) fn description(setting: &Setting, rounds: u64) -> String {
    let whose = whose(setting.unit.level());
    let how = match setting.neighbours {
        Neighbours::ReplaceOne => "replaced",
        Neighbours::AddRemove => "added or removed",
    };
    let masks = setting.masks.map_or(String::new(), |masks| {
        format!(", masks of {} and local noise of {}", masks.mask_std(), masks.noise_std())
    });
    let branches = match setting.branches {
        1 => String::new(),
        several => format!(" of {several} branches"),
    };
    format!(
        "{} of {} clients a round, {} ({} unused), clip norm {}, {} receiver{branches}{masks}, {}; delta = {:e}, {whose} {how}",
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
        writeln!(out, "{line}note: {note}")?;
    }
    Ok(())
}
