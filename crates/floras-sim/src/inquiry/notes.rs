//! Notes on an account, and its numbers and verdicts as text.

use floras_core::{Clipping, Rounding, View};
use floras_privacy::published::{unmet_conditions, unmet_local_work};
use floras_privacy::{MAX_EPSILON, PrivacyUnit, Sampling, Setting, Statement, Views};

use crate::accounting::{SELECTION, any_channel_assumes, masks_assume};

/// The notes on the statements about a setting.
pub(super) fn of(setting: &Setting, views: &Views, rounds: u64) -> Vec<String> {
    let mut notes: Vec<String> = views.why_published_is_smaller(setting.receiver).into_iter().collect();
    if views.get(View::Published).is_some() {
        let item = match setting.unit {
            PrivacyUnit::Client => None,
            PrivacyUnit::Item { batch, samples, .. } => Some((batch, samples)),
        };
        notes.extend(unmet_conditions(setting.per_round, setting.sequences, setting.clients, item));
    }
    notes.extend(faded_clients(views));
    notes.extend(any_channel_assumes(views));
    notes.extend(masks_assume(views));
    if setting.sampling() != Sampling::Everyone {
        notes.push(SELECTION.to_owned());
    }
    notes.extend(views.why_bounds_differ(setting.sampling(), rounds));
    if let PrivacyUnit::Item { local, .. } = setting.unit {
        notes.extend(unmet_local_work(local));
        notes.push("item level: all clients hold the same number of samples".to_owned());
    }
    if setting.clipping == Clipping::Paper {
        notes.push(floras_privacy::NORMALISED.to_owned());
    }
    notes
}

fn faded_clients(views: &Views) -> Option<String> {
    let own = |view: View| views.get(view).filter(|statement| !statement.from_masks);
    let epsilon = |view: View| own(view).and_then(|statement| statement.epsilon);
    let (idealised, actual) = (epsilon(View::Idealised)?, epsilon(View::Actual)?);
    (actual > 1.05 * idealised).then(|| {
        format!(
            "the actual decoder leaks more than the idealised one ({} instead of {}): a client whose channel fades is \
             amplified, and only the noise of its own sequence with it",
            epsilon_text(actual),
            epsilon_text(idealised)
        )
    })
}

/// Whether a guarantee holds in a model only: the idealised view assumes that no client's channel fades.
pub fn is_model(view: View, statement: &Statement) -> bool {
    let is_own = statement.guarantee && !statement.from_masks;
    let has_number = statement.verdict().is_guarantee();
    view == View::Idealised && is_own && has_number && !statement.assumptions.is_empty()
}

/// The verdict on a statement for a table, `weak` or `weak (model)`: [`is_model`].
pub fn verdict_text(view: View, statement: &Statement) -> String {
    let verdict = statement.verdict();
    if is_model(view, statement) { format!("{verdict} (model)") } else { verdict.to_string() }
}

/// What the adversary of a statement sees, for a table: that of the masks, the words of a scheme, or [`View::adversary_sees`].
pub fn adversary_text(view: View, statement: &Statement, of_scheme: Option<&'static str>) -> &'static str {
    if statement.from_masks { "all sent symbols" } else { of_scheme.unwrap_or(view.adversary_sees()) }
}

/// Further numbers of a view under sampling: with participation known to the adversary, and for clients that take part in every
/// round.
const SAMPLED: [&str; 2] = ["participation_known", "in_every_round"];

/// Whether clients take part at random.
pub fn is_sampled(views: &Views) -> bool {
    let has_known = |statement: &Statement| SAMPLED.iter().any(|name| statement.details.contains_key(*name));
    views.iter().any(|(_, statement)| has_known(statement))
}

/// The numbers of a view under sampling, with participation known and in every round.
pub fn sampled_texts(statement: &Statement, text: impl Fn(f64) -> String) -> [String; 2] {
    let details = SAMPLED.map(|name| statement.details.get(name).copied());
    details.map(|number| match number {
        Some(number) => text(number),
        // The published formula has one number, and a view without a bound has none.
        None if details == [None, None] && statement.epsilon_above.is_none() => "–".to_owned(),
        None => format!("> {MAX_EPSILON:e}"),
    })
}

/// `ε` of a view: a number, `no finite ε`, or `> 1e5`.
pub fn bound_text(statement: &Statement, text: impl Fn(f64) -> String) -> String {
    statement.epsilon.map_or_else(|| out_of_reach(statement), text)
}

/// Stands for an `ε` where there is no finite one.
pub const NO_FINITE: &str = "no finite ε";

fn out_of_reach(statement: &Statement) -> String {
    statement.epsilon_above.map_or_else(|| NO_FINITE.to_owned(), |above| format!("> {above:e}"))
}

/// An `ε` for a table, an upper bound: four decimals, fewer for large values, rounded up.
///
/// ```
/// use floras_sim::inquiry::epsilon_text;
///
/// assert_eq!([10.033_41, 4000.2, 0.5].map(epsilon_text), ["10.0335", "4001", "0.5000"]);
/// ```
pub fn epsilon_text(epsilon: f64) -> String {
    match epsilon {
        large if large >= 1e6 => Rounding::Up.scientific(large, 2),
        medium if medium >= 1000.0 => Rounding::Up.fixed(medium, 0),
        small if small > 0.0 && small < 0.001 => Rounding::Up.scientific(small, 3),
        usual => Rounding::Up.fixed(usual, 4),
    }
}
