//! What a reader of an account should know.

use floras_privacy::{Level, Local, Sampling, Scaling, Setting, View, Views};

use crate::accounting::SELECTION;

/// The notes on the statements about a setting.
pub(super) fn of(setting: &Setting, views: &Views) -> Vec<String> {
    let mut notes: Vec<String> = views.why_published_is_smaller(setting.receiver).into_iter().collect();
    notes.extend(faded_clients(views));
    if setting.sampling() != Sampling::Everyone && setting.per_round < setting.clients {
        notes.push(SELECTION.to_owned());
    }
    if let Level::Item { local, .. } = setting.level {
        if let Local::Epochs = local {
            notes.push(format!("published: {}", floras_privacy::published::WHY_ITEM_LEVEL_NEEDS_ONE_STEP));
        }
        notes.push("item level: all clients hold the same number of samples".to_owned());
    }
    if setting.scaling == Scaling::PaperNormalisation {
        notes.push(floras_privacy::NORMALISED.to_owned());
    }
    notes
}

fn faded_clients(views: &Views) -> Option<String> {
    let epsilon = |view: View| views.get(view).and_then(|statement| statement.epsilon);
    let (idealised, actual) = (epsilon(View::Idealised)?, epsilon(View::Actual)?);
    (actual > 1.05 * idealised).then(|| {
        format!(
            "the actual decoder gives away more than the idealised one ({} instead of {}): a client whose channel fades is \
             amplified together with the noise of its own sequence only",
            epsilon_text(actual),
            epsilon_text(idealised)
        )
    })
}

/// An `ε` with as many digits as anyone needs.
pub fn epsilon_text(epsilon: f64) -> String {
    match epsilon {
        large if large >= 1e6 => format!("{large:.2e}"),
        medium if medium >= 1000.0 => format!("{medium:.0}"),
        small if small > 0.0 && small < 0.001 => format!("{small:.3e}"),
        usual => format!("{usual:.4}"),
    }
}
