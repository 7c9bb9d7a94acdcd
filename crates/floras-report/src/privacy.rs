//! The privacy statement in words, for someone who has never heard of `ε`.
//!
//! Someone who holds two possibilities for equally likely, and sees what an `(ε, δ)`-private mechanism gives out, is
//! afterwards at most `e^ε/(1 + e^ε)` sure of one of them, except with a probability of about `δ`.

use floras_core::{Level, View};
use floras_privacy::{Statement, Views};
use floras_sim::figure::{Axis, Curve, Panel, Style};
use floras_sim::inquiry::{bound_text, guarantee_text, is_sampled, sampled_texts};
use floras_sim::{PlottedCurves, PrivacyReport};

use crate::html::number::{certainty, count, epsilon, grouped};
use crate::html::{Cell, Html};

/// A smaller `δ` is not plotted.
const SMALLEST_SHOWN: f64 = 1e-12;

/// How much an `ε` promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strength {
    Strong,
    Moderate,
    Weak,
    None,
}

impl Strength {
    /// The usual coarse steps: up to 1, up to 5, up to 10, and more.
    pub(crate) fn of(epsilon: f64) -> Self {
        match epsilon {
            strong if strong <= 1.0 => Self::Strong,
            moderate if moderate <= 5.0 => Self::Moderate,
            weak if weak <= 10.0 => Self::Weak,
            _ => Self::None,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Strong => "strong",
            Self::Moderate => "moderate",
            Self::Weak => "weak",
            Self::None => "none in practice",
        }
    }
}

/// The statement that counts most: of the real decoder, or else of the strongest adversary that something is proven against.
fn headline(views: &Views) -> Option<(View, &Statement, f64)> {
    let order = [View::Actual, View::AnyChannel, View::Idealised];
    let found = |view: View, needs_guarantee: bool| {
        let statement = views.get(view)?;
        let epsilon = statement.epsilon?;
        (statement.guarantee || !needs_guarantee).then_some((view, statement, epsilon))
    };
    let guarantees = order.into_iter().find_map(|view| found(view, true));
    guarantees.or_else(|| order.into_iter().find_map(|view| found(view, false)))
}

/// The one number for the top of a report, and what is said below it.
pub(crate) fn card(report: &PrivacyReport) -> (String, String) {
    match headline(&report.views) {
        None => ("no privacy".to_owned(), "nothing is hidden from the base station".to_owned()),
        Some((view, statement, value)) => {
            let strength = if statement.guarantee { Strength::of(value).word() } else { "no guarantee" };
            (format!("ε = {}", epsilon(value)), format!("privacy in the {} view: {strength}", view.name()))
        }
    }
}

/// Whether the statements protect one sample, and not all data of a client.
pub(crate) fn is_item_level(report: &PrivacyReport) -> bool {
    report.level == Level::Item.name()
}

/// What the statements protect, in two words.
fn unit(report: &PrivacyReport) -> &'static str {
    if is_item_level(report) { "one sample" } else { "a client" }
}

/// The statement in words.
pub(crate) fn in_words(html: &mut Html, report: &PrivacyReport) {
    let question = if is_item_level(report) {
        "How much does training give away about one sample of a client? Imagine someone who must tell whether a client trained \
         on this sample or on quite a different one in its place"
    } else {
        "How much does training give away about one client? Imagine someone who must tell whether a client trained on its \
         own data or on quite different data"
    };
    html.paragraph(&format!(
        "{question}, and who at first holds both for equally likely, 50 to 50. The number ε limits \
         how sure they can become from what they see: at most e^ε/(1 + e^ε), except with a probability of about δ. ε = 0 \
         would be perfect, ε = 1 means at most 74 % sure, ε = 5 at most 99.4 %, and from about 10 on nothing is promised \
         that anyone would notice.",
    ));
    let rounds = count(report.rounds.into(), "round");
    match headline(&report.views) {
        None => {
            html.element(
                "p",
                "warning",
                &format!(
                    "After {rounds} no ε can be stated against a base station: {}.",
                    why_nothing(&report.views)
                ),
            );
        }
        Some((_, statement, value)) => {
            let strength = Strength::of(value);
            let delta = delta_text(report.delta);
            let meaning = match strength {
                Strength::None => {
                    "At such an ε the guarantee is none in practice: it does not exclude that the base station finds out \
                     whatever it wants to know about a client."
                        .to_owned()
                }
                other => format!(
                    "That is a {} guarantee: whoever was undecided before is at most {} afterwards.",
                    other.word(),
                    certainty(value)
                ),
            };
            let about = format!(
                "Against {}, ε = {} at δ = {delta} after {rounds}.",
                statement.adversary,
                epsilon(value)
            );
            if statement.guarantee {
                html.element("p", "lead", &format!("{about} {meaning}"));
            } else {
                let why = statement.reason.as_deref().unwrap_or("of what was assumed");
                html.element(
                    "p",
                    "lead",
                    &format!("{about} But this number is not a guarantee, because {why}."),
                );
                if strength == Strength::None {
                    html.paragraph("Even if it were one, it would promise nothing that anyone would notice.");
                }
            }
        }
    }
    // Noise that the clients add themselves is in the raw samples, too.
    let epsilon_of = |view: View| report.views.get(view).and_then(|statement| statement.epsilon);
    if report.views.get(View::RawSignal).is_some_and(|statement| statement.from_masks) {
        html.paragraph(
            "What clients add to their updates hides them even from a base station that keeps its raw radio samples: the \
             raw-signal row below is such a guarantee. The notes say what it assumes of the other clients.",
        );
    } else if epsilon_of(View::RawSignal).is_some()
        && epsilon_of(View::RawSignal) != epsilon_of(View::AnyChannel)
    {
        html.paragraph(
            "All views but the last trust the base station to keep nothing but the decoded sums. One that keeps its raw radio \
             samples sees the raw-signal row below.",
        );
    }
}

fn why_nothing(views: &Views) -> String {
    let order = [View::Actual, View::AnyChannel, View::Idealised, View::RawSignal];
    let reason = order.into_iter().find_map(|view| views.get(view)?.reason.clone());
    reason.unwrap_or_else(|| "this scheme adds no noise that would hide anything".to_owned())
}

/// `10⁻⁵` reads as `1e-5` in plain text.
fn delta_text(delta: f64) -> String {
    format!("{delta:e}")
}

/// A table of all views.
pub(crate) fn table(html: &mut Html, views: &Views, notes: &[String]) {
    let is_sampled = is_sampled(views);
    let mut heading = vec!["view", "ε"];
    if is_sampled {
        heading.extend(["ε, participation known", "ε in every round"]);
    }
    heading.extend(["guarantee", "against", "what it means"]);
    let mut rows = Vec::new();
    for view in View::ALL {
        let Some(statement) = views.get(view) else { continue };
        let mut row = vec![Cell::text(view.name())];
        row.push(Cell::number(bound_text(statement, epsilon)));
        if is_sampled {
            row.extend(sampled_texts(statement, epsilon).map(Cell::number));
        }
        let guarantee = guarantee_text(view, statement);
        let is_good = if guarantee == "model" { None } else { Some(statement.guarantee) };
        row.push(Cell::Mark(guarantee.to_owned(), is_good));
        row.push(Cell::text(&*statement.adversary));
        row.push(Cell::text(meaning(statement, notes)));
        rows.push(row);
    }
    if rows.is_empty() {
        html.paragraph("There is no view with anything to say.");
    } else {
        html.table(&heading, &rows);
    }
}

fn meaning(statement: &Statement, notes: &[String]) -> String {
    match (statement.epsilon, statement.guarantee, &statement.reason) {
        (None, _, Some(reason)) => format!("no ε: {reason}"),
        (None, _, None) => "no ε".to_owned(),
        (Some(_), false, Some(reason)) if notes.contains(reason) => {
            "not a guarantee: see the note below".to_owned()
        }
        (Some(_), false, Some(reason)) => format!("not a guarantee: {reason}"),
        (Some(_), false, None) => "not a guarantee".to_owned(),
        (Some(value), true, _) => match Strength::of(value) {
            Strength::None => "none in practice".to_owned(),
            strength => format!("{}: at most {}", strength.word(), certainty(value)),
        },
    }
}

/// `ε` after so many rounds, in every view.
pub(crate) fn growth(report: &PrivacyReport) -> Option<Panel> {
    let x: Vec<f64> = report.growth.iter().map(|spent| f64::from(spent.rounds)).collect();
    let curves: Vec<Curve> = View::ALL
        .into_iter()
        .enumerate()
        .filter_map(|(colour, view)| {
            let key = view.field();
            let y: Vec<Option<f64>> =
                report.growth.iter().map(|spent| spent.epsilon.get(&key).copied()).collect();
            y.iter().any(Option::is_some).then_some(())?;
            let holds = report.views.get(view).is_some_and(|statement| statement.guarantee);
            let name = if holds { view.name().to_owned() } else { format!("{} (no guarantee)", view.name()) };
            let style = if holds { Style::Solid } else { Style::Dashed };
            Some(Curve { name, colour, style, x: x.clone(), y, band: None })
        })
        .collect();
    if curves.is_empty() {
        return None;
    }
    Some(Panel {
        name: "epsilon".to_owned(),
        title: "Privacy spent, round by round".to_owned(),
        x: Axis { label: "rounds".to_owned(), logarithmic: true, range: None },
        y: Axis {
            label: format!("ε of {} at δ = {} (no unit)", unit(report), delta_text(report.delta)),
            logarithmic: true,
            range: None,
        },
        curves,
    })
}

/// `δ(ε)` and the trade-off function after all rounds, in every view that has them.
pub(crate) fn guarantees(report: &PrivacyReport) -> Vec<Panel> {
    type Points = (Vec<f64>, Vec<Option<f64>>);
    let curves = |of: &dyn Fn(&PlottedCurves) -> Points| -> Vec<Curve> {
        let curve = |plotted: &PlottedCurves| {
            let (colour, view) =
                View::ALL.into_iter().enumerate().find(|(_, view)| view.name() == plotted.view)?;
            let holds = report.views.get(view).is_some_and(|statement| statement.guarantee);
            let name = if holds { view.name().to_owned() } else { format!("{} (no guarantee)", view.name()) };
            let style = if holds { Style::Solid } else { Style::Dashed };
            let (x, y) = of(plotted);
            Some(Curve { name, colour, style, x, y, band: None })
        };
        report.curves.iter().filter_map(curve).collect()
    };
    if report.curves.is_empty() {
        return Vec::new();
    }
    let rounds = count(report.rounds.into(), "round");
    // A logarithmic axis has no place for 0, and nobody looks at less than this.
    let shown = |&delta: &f64| (delta >= SMALLEST_SHOWN).then_some(delta);
    let axis = |label: &str, logarithmic: bool, range| Axis { label: label.to_owned(), logarithmic, range };
    let delta = Panel {
        name: "delta".to_owned(),
        title: format!("δ for every ε, after {rounds}"),
        x: axis(&format!("ε of {} (no unit)", unit(report)), false, None),
        y: axis("δ (probability)", true, None),
        curves: curves(&|plotted| (plotted.epsilon.clone(), plotted.delta.iter().map(shown).collect())),
    };
    let errors = |plotted: &PlottedCurves| {
        (plotted.type_one_error.clone(), plotted.type_two_error.iter().copied().map(Some).collect())
    };
    let trade_off = Panel {
        name: "trade-off".to_owned(),
        title: format!("Trade-off function after {rounds}"),
        x: axis("type I error α (probability)", false, Some((0.0, 1.0))),
        y: axis("least type II error β (probability)", false, Some((0.0, 1.0))),
        curves: curves(&errors),
    };
    vec![delta, trade_off]
}

/// A sentence about the client that gave away most.
pub(crate) fn worst_client(report: &PrivacyReport) -> Option<String> {
    let worst = report.worst_client?;
    Some(format!(
        "Looking back at the channels that were really drawn, client {} gave away most: given all gains and the noise of \
         its trial, its ε is {}.",
        grouped(worst.client.into()),
        epsilon(worst.epsilon)
    ))
}
