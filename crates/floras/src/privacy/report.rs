//! What is printed of an account: a table for people, and the notes.

use std::io::{self, Write};

use floras_privacy::{Level, Local, Neighbours, Receiver, Sampling, Setting, Statement, View, Views};

use crate::table::count;

/// The table of all views. A view without a statement says what it lacks.
pub(crate) fn views(out: &mut impl Write, views: &Views, lacks: &str) -> io::Result<()> {
    // With sampling there is one more number: for those who are known to be in every round.
    let known = |statement: &Statement| statement.details.get("in_every_round").copied();
    let is_sampled = views.iter().any(|(_, statement)| known(statement).is_some());
    let column = |text: &str| if is_sampled { format!("{text:<12}") } else { String::new() };
    writeln!(out, "{:<13}{:<12}{}{:<11}against", "view", "epsilon", column("if known"), "guarantee")?;
    for view in View::ALL {
        match views.get(view) {
            None => writeln!(out, "{:<13}{:<12}{}{:<11}({lacks})", view.name(), "–", column("–"), "–")?,
            Some(statement) => {
                let epsilon = statement.epsilon.map_or("none".to_owned(), epsilon_text);
                let guarantee = if statement.guarantee { "yes" } else { "no" };
                let known = column(&known(statement).map_or("–".to_owned(), epsilon_text));
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

/// An `ε` with as many digits as anyone needs.
pub(crate) fn epsilon_text(epsilon: f64) -> String {
    match epsilon {
        large if large >= 1e6 => format!("{large:.2e}"),
        medium if medium >= 1000.0 => format!("{medium:.0}"),
        small if small > 0.0 && small < 0.001 => format!("{small:.3e}"),
        usual => format!("{usual:.4}"),
    }
}

/// A federation in a few words.
pub(crate) fn description(setting: &Setting, rounds: u64) -> String {
    let whose = match setting.level {
        Level::Client => "a client's data",
        Level::Item { .. } => "one item",
    };
    let how = match setting.neighbours {
        Neighbours::ReplaceOne => "replaced",
        Neighbours::AddOrRemove => "added or removed",
    };
    format!(
        "{} of {} clients a round, {} ({} unused), clip norm {}, {} receiver, {}; delta = {:e}, {whose} {how}",
        setting.per_round,
        setting.clients,
        count(setting.sequences as usize, "sequence"),
        setting.gamma(),
        setting.clip,
        receiver(setting.receiver),
        count(rounds as usize, "round"),
        setting.delta,
    )
}

/// The receiver as it is given on the command line.
pub(crate) fn receiver(receiver: Receiver) -> String {
    match receiver {
        Receiver::Paper => "paper".to_owned(),
        Receiver::Mmse => "mmse".to_owned(),
        Receiver::Clipped(c) => format!("clipped={c}"),
    }
}

/// What a reader should know.
pub(crate) fn notes(setting: &Setting, views: &Views) -> Vec<String> {
    let mut notes: Vec<String> = views.why_published_is_smaller(setting.receiver).into_iter().collect();
    let epsilon = |view: View| views.get(view).and_then(|statement| statement.epsilon);
    if let (Some(idealised), Some(actual)) = (epsilon(View::Idealised), epsilon(View::Actual))
        && actual > 1.05 * idealised
    {
        notes.push(format!(
            "the actual decoder gives away more than the idealised one ({} instead of {}): a client whose channel fades is \
             amplified together with the noise of its own sequence only",
            epsilon_text(actual),
            epsilon_text(idealised)
        ));
    }
    let sampled = setting.sampling() != Sampling::Everyone && setting.per_round < setting.clients;
    if sampled {
        notes.push(floras_sim::SELECTION.to_owned());
    }
    if let Level::Item { local, .. } = setting.level {
        if let Local::Epochs = local {
            notes.push(format!("published: {}", floras_privacy::published::WHY_ITEM_LEVEL_NEEDS_ONE_STEP));
        }
        notes.push("item level: all clients hold the same number of samples".to_owned());
    }
    if setting.scaling == floras_privacy::Scaling::PaperNormalisation {
        notes.push(floras_privacy::NORMALISED.to_owned());
    }
    notes
}
