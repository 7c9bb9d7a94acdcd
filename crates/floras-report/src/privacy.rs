//! The privacy of a run: the headline, the table of all views, and the plots of `ε`.
//!
//! Thresholds and words of verdicts are those of [`floras_core::verdict`].

use floras_core::verdict::{Verdict, guess};
use floras_core::{Level, View};
use floras_privacy::{MAX_EPSILON, Statement, Views};
use floras_sim::figure::{Axis, Curve, Panel, Style};
use floras_sim::inquiry::{is_model, is_sampled, sampled_texts, verdict_text};
use floras_sim::{PlottedCurves, PrivacyReport, Settings};

use crate::html::number::{bound, count, epsilon, grouped};
use crate::html::{Cell, Html};
use crate::plot::scale::number_text;

/// A smaller `δ` is not plotted.
const SMALLEST_SHOWN: f64 = 1e-12;

/// The verdict on a statement.
fn verdict(statement: &Statement) -> Verdict {
    Verdict::of(statement.epsilon, statement.guarantee)
}

/// Whether a reader should see a verdict as good, as bad or as neither.
pub(crate) fn is_good(verdict: Verdict) -> Option<bool> {
    match verdict {
        Verdict::Strong | Verdict::Moderate => Some(true),
        Verdict::Weak => None,
        Verdict::None | Verdict::NotProven => Some(false),
    }
}

/// The number for the top of a report, in the view that the experiment quotes, and the line below it.
pub(crate) fn card(report: &PrivacyReport, view: View) -> (String, String) {
    match report.views.get(view) {
        Some(statement) if statement.epsilon.is_some() => {
            let value = statement.epsilon.map(epsilon).unwrap_or_default();
            (format!("ε = {value}"), below_number(verdict(statement), view))
        }
        Some(Statement { epsilon_above: above @ Some(_), .. }) => {
            (format!("ε {}", bound(None, *above)), below_number(Verdict::None, view))
        }
        _ => ("no finite ε".to_owned(), below_number(Verdict::None, view)),
    }
}

/// The line below the number at the top of a report.
fn below_number(verdict: Verdict, view: View) -> String {
    match verdict {
        Verdict::NotProven => format!("ε in the {view} view is not proven"),
        _ => format!("{} in the {view} view", noun(verdict)),
    }
}

/// A verdict as a noun, for sentences.
fn noun(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Strong => "strong privacy",
        Verdict::Moderate => "moderate privacy",
        Verdict::Weak => "weak privacy",
        Verdict::None => "no privacy",
        Verdict::NotProven => "not proven",
    }
}

/// Whether the statements protect one sample instead of all data of a client.
pub(crate) fn is_item_level(report: &PrivacyReport) -> bool {
    report.level == Level::Item.name()
}

/// What the statements protect, in two words.
fn unit(report: &PrivacyReport) -> &'static str {
    if is_item_level(report) { "one sample" } else { "a client" }
}

/// The statement in the quoted view, in words.
pub(crate) fn in_words(html: &mut Html, report: &PrivacyReport, view: View) {
    let question = if is_item_level(report) {
        "whether a client trained on a given sample or on a different one in its place"
    } else {
        "whether a client trained on its own data or on different data"
    };
    html.around("p", "", |line| {
        line.text(&format!(
            "ε limits what training leaks about {}. An adversary guesses {question}; both are equally likely at first. From what \
             it sees, it guesses right with probability at most ",
            unit(report)
        ));
        line.raw("e<sup>ε</sup>/(1 + e<sup>ε</sup>)");
        line.text(&format!(
            ", apart from a term of order δ: 50 % at ε = 0, {} at ε = 1, {} at ε = 4, {} at ε = 10. {}",
            guess(1.0),
            guess(4.0),
            guess(10.0),
            Verdict::scale()
        ));
    });
    let rounds = count(report.rounds.into(), "round");
    let delta = number_text(report.delta);
    match report.views.get(view).map(|statement| (statement, statement.epsilon, statement.epsilon_above)) {
        Some((statement, Some(value), _)) => {
            let verdict = verdict(statement);
            let about = format!(
                "Against {}, ε = {} at δ = {delta} after {rounds}",
                statement.adversary,
                epsilon(value)
            );
            let why = match (&statement.reason, verdict) {
                (Some(reason), Verdict::NotProven) => format!(" The number is not a guarantee: {reason}."),
                _ => String::new(),
            };
            let text = format!("{about} ({}). {}{why}", noun(verdict), verdict.meaning(Some(value)));
            html.element("p", if verdict.is_guarantee() { "lead" } else { "warning" }, &text);
        }
        Some((statement, None, Some(above))) => {
            let text = format!(
                "Against {}, ε {} at δ = {delta} after {rounds}: no ε up to {} is established, which is no protection in \
                 practice.",
                statement.adversary,
                bound(None, Some(above)),
                number_text(above)
            );
            html.element("p", "warning", &text);
        }
        found => {
            let reason = found.and_then(|(statement, ..)| statement.reason.clone());
            let reason = reason.unwrap_or_else(|| "the view does not apply to this scheme".to_owned());
            let text = format!("After {rounds} no finite ε holds in the {view} view: {reason}.");
            html.element("p", "warning", &text);
        }
    }
    let raw_signal = report.views.get(View::RawSignal);
    let others: Vec<&str> = report
        .views
        .iter()
        .filter(|(other, statement)| !statement.has_raw_samples(*other))
        .map(|(other, _)| other.name())
        .collect();
    if view != View::RawSignal && raw_signal.is_some_and(|statement| statement.epsilon.is_some()) {
        let covering = "The raw-signal view covers a base station that stores its raw radio samples";
        html.paragraph(&match (others.as_slice(), report.views.iter().count()) {
            ([], _) => format!("{covering}, and so do the other views."),
            (without, all) if without.len() + 1 == all => {
                format!("{covering}; the other views assume that it keeps only the decoded sums.")
            }
            ([one], _) => format!("{covering}; the {one} view assumes that it keeps only the decoded sums."),
            (several, _) => format!(
                "{covering}; the views {} assume that it keeps only the decoded sums.",
                several.join(" and ")
            ),
        });
    }
}

/// The table of all views, the strongest adversary first.
pub(crate) fn table(html: &mut Html, views: &Views, notes: &[String], quoted: View) {
    let is_sampled = is_sampled(views);
    let mut heading = vec!["view", "verdict", "ε"];
    if is_sampled {
        heading.extend(["ε, participation known", "ε in every round"]);
    }
    heading.extend(["meaning", "adversary"]);
    let mut rows = Vec::new();
    for view in View::BY_ADVERSARY {
        let Some(statement) = views.get(view) else { continue };
        let verdict = verdict(statement);
        let name = if view == quoted { format!("{view} (quoted)") } else { view.to_string() };
        let mut row = vec![Cell::text(name), Cell::Mark(verdict_text(view, statement), is_good(verdict))];
        row.push(Cell::number(bound(statement.epsilon, statement.epsilon_above)));
        if is_sampled {
            row.extend(sampled_texts(statement, epsilon).map(typeset).map(Cell::number));
        }
        row.push(Cell::text(meaning(statement, verdict, notes)));
        row.push(Cell::text(&*statement.adversary));
        rows.push(row);
    }
    if rows.is_empty() {
        html.paragraph("No view applies to this experiment.");
    } else {
        html.table(&heading, &rows);
    }
    if views.iter().any(|(view, statement)| is_model(view, statement)) {
        html.paragraph("(model): the bound assumes that no client's channel fades.");
    }
}

/// A number for a terminal, such as `> 1e5`, in the notation of a page: `> 10⁵`.
fn typeset(text: String) -> String {
    let above = text.strip_prefix("> ").and_then(|above| above.parse().ok());
    if above.is_some() { bound(None, above) } else { text }
}

fn meaning(statement: &Statement, verdict: Verdict, notes: &[String]) -> String {
    if let (None, Some(above)) = (statement.epsilon, statement.epsilon_above) {
        return format!("No ε up to {} is established: no protection in practice.", number_text(above));
    }
    match (statement.epsilon, &statement.reason) {
        (None, Some(reason)) => format!("No finite ε: {reason}."),
        (Some(_), Some(reason)) if verdict == Verdict::NotProven && notes.contains(reason) => {
            "No proof exists for this number: see the note below.".to_owned()
        }
        (Some(_), Some(reason)) if verdict == Verdict::NotProven => {
            format!("No proof exists for this number: {reason}.")
        }
        (Some(value), _) if verdict.is_guarantee() => {
            format!("A guess is right with probability at most {}.", guess(value))
        }
        (value, _) => verdict.meaning(value),
    }
}

/// The name of a view in a legend, and how its curve is drawn.
fn curve_of(report: &PrivacyReport, view: View) -> (String, usize, Style) {
    let colour = View::ALL.into_iter().position(|other| other == view).unwrap_or_default();
    if report.views.get(view).is_some_and(Statement::is_proven) {
        (view.to_string(), colour, Style::Solid)
    } else {
        (format!("{view} (not proven)"), colour, Style::Dashed)
    }
}

/// The quoted view first, so that curves that lie on it have its colour, and then the strongest adversary first.
fn in_order(quoted: View) -> impl Iterator<Item = View> {
    let others = View::BY_ADVERSARY.into_iter().filter(move |view| *view != quoted);
    std::iter::once(quoted).chain(others)
}

/// `ε` over the rounds, in every view.
pub(crate) fn growth(report: &PrivacyReport, quoted: View) -> Option<Panel> {
    let x: Vec<f64> = report.growth.iter().map(|spent| f64::from(spent.rounds)).collect();
    let curve = |view: View| {
        let y = spent_in(report, view);
        let (name, colour, style) = curve_of(report, view);
        y.iter().any(Option::is_some).then(|| Curve { name, colour, style, x: x.clone(), y, band: None })
    };
    let curves: Vec<Curve> = in_order(quoted).filter_map(curve).collect();
    (!curves.is_empty()).then(|| Panel {
        name: "epsilon".to_owned(),
        title: "ε spent over the rounds".to_owned(),
        x: Axis { label: "rounds".to_owned(), logarithmic: true, range: None },
        y: Axis {
            label: format!("ε of {} at δ = {}", unit(report), number_text(report.delta)),
            logarithmic: true,
            range: None,
        },
        curves,
    })
}

/// The plotted `ε` of a view.
fn spent_in(report: &PrivacyReport, view: View) -> Vec<Option<f64>> {
    let key = view.field();
    report.growth.iter().map(|spent| spent.epsilon.get(&key).copied()).collect()
}

/// What the plot of `ε` over the rounds does not show, for its caption.
pub(crate) fn growth_caption(report: &PrivacyReport) -> String {
    let mut sentences = Vec::new();
    let plotted = |view: View| report.views.get(view).map(|statement| (statement, spent_in(report, view)));
    let (mut missing, mut sparse) = (Vec::new(), Vec::new());
    for (view, statement, y) in View::BY_ADVERSARY
        .into_iter()
        .filter_map(|view| plotted(view).map(|(statement, y)| (view, statement, y)))
    {
        let why = match statement.epsilon_above {
            Some(above) => format!("no ε up to {} is established", number_text(above)),
            None => "there is no finite ε".to_owned(),
        };
        let last = y.iter().rposition(Option::is_some);
        match last {
            None => missing.push(format!("{view} ({why})")),
            Some(last) if last + 1 < y.len() && statement.epsilon.is_none() => {
                let rounds = count(report.growth[last].rounds.into(), "round");
                sentences.push(format!("The curve {view} ends after {rounds}: above, {why}."));
            }
            Some(_) if y.len() > 2 && y.iter().flatten().count() == 2 => sparse.push(view.to_string()),
            Some(_) => {}
        }
    }
    if !missing.is_empty() {
        sentences.insert(0, format!("Without a curve: {}.", missing.join(", ")));
    }
    if !sparse.is_empty() {
        sentences.push(format!("Of {}, the first and the last round are computed only.", sparse.join(", ")));
    }
    if has_dashes(report, |view| spent_in(report, view).iter().any(Option::is_some)) {
        sentences.push("Dashed curves are not proven.".to_owned());
    }
    sentences.join(" ")
}

/// Whether one of the views with a curve is not proven.
fn has_dashes(report: &PrivacyReport, has_curve: impl Fn(View) -> bool) -> bool {
    report.views.iter().any(|(view, statement)| has_curve(view) && !statement.is_proven())
}

/// The views without `δ(ε)`, for its caption.
pub(crate) fn delta_caption(report: &PrivacyReport) -> String {
    let has_curve = |view: View| report.curves.iter().any(|curve| curve.view == view.name());
    let missing: Vec<&str> = View::BY_ADVERSARY
        .into_iter()
        .filter(|view| report.views.get(*view).is_some() && *view != View::Published && !has_curve(*view))
        .map(View::name)
        .collect();
    let mut text = "Every pair (ε, δ) on a curve is a guarantee.".to_owned();
    if !missing.is_empty() {
        text.push_str(&format!(
            " Without a curve, because ε is above 100 or not finite: {}.",
            missing.join(", ")
        ));
    }
    if has_dashes(report, has_curve) {
        text.push_str(" Dashed curves are not proven.");
    }
    text
}

/// `δ(ε)` and the trade-off function after all rounds, in every view that has them.
pub(crate) fn guarantees(report: &PrivacyReport, quoted: View) -> Vec<Panel> {
    type Points = (Vec<f64>, Vec<Option<f64>>);
    let curves = |of: &dyn Fn(&PlottedCurves) -> Points| -> Vec<Curve> {
        let curve = |view: View| {
            let plotted = report.curves.iter().find(|plotted| plotted.view == view.name())?;
            let (name, colour, style) = curve_of(report, view);
            let (x, y) = of(plotted);
            Some(Curve { name, colour, style, x, y, band: None })
        };
        in_order(quoted).filter_map(curve).collect()
    };
    if report.curves.is_empty() {
        return Vec::new();
    }
    let rounds = count(report.rounds.into(), "round");
    // A logarithmic axis has no place for 0.
    let shown = |&delta: &f64| (delta >= SMALLEST_SHOWN).then_some(delta);
    let axis = |label: &str, logarithmic: bool, range| Axis { label: label.to_owned(), logarithmic, range };
    let delta = Panel {
        name: "delta".to_owned(),
        title: format!("δ for every ε after {rounds}"),
        x: axis(&format!("ε of {}", unit(report)), false, None),
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
        y: axis("smallest type II error β (probability)", false, Some((0.0, 1.0))),
        curves: curves(&errors),
    };
    vec![delta, trade_off]
}

/// A sentence about the client with the largest loss. `None` where the drawn channels make no difference: without a radio, and where
/// masks make the bound.
pub(crate) fn worst_client(report: &PrivacyReport, settings: &Settings) -> Option<String> {
    let worst = report.worst_client?;
    settings.uplink.radio()?;
    if report.views.get(settings.privacy.view).is_some_and(|statement| statement.from_masks) {
        return None;
    }
    let loss = match worst.epsilon {
        large if large > MAX_EPSILON => bound(None, Some(MAX_EPSILON)),
        usual => format!("= {}", epsilon(usual)),
    };
    Some(format!(
        "Given the channels that were drawn, client {} has the largest loss: ε {loss} for all gains and the noise of its trial.",
        grouped(worst.client.into()),
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use floras_sim::Spent;

    use super::*;
    use crate::html::page;

    fn statement(epsilon: Option<f64>, epsilon_above: Option<f64>, reason: Option<&str>) -> Statement {
        Statement {
            epsilon,
            epsilon_lower: None,
            epsilon_above,
            guarantee: epsilon.is_some() && reason.is_none(),
            from_masks: false,
            covers_raw_samples: false,
            adversary: "a base station".to_owned(),
            reason: reason.map(str::to_owned),
            assumptions: Vec::new(),
            details: BTreeMap::new(),
        }
    }

    /// The report of three rounds with `ε` in the actual view.
    fn actual(statement: Statement) -> PrivacyReport {
        let epsilon = |value: f64| [(View::Actual.field(), value)].into_iter().collect();
        let growth = vec![
            Spent { rounds: 1, epsilon: epsilon(900.0) },
            Spent { rounds: 2, epsilon: epsilon(9000.0) },
            Spent { rounds: 3, epsilon: BTreeMap::new() },
        ];
        PrivacyReport {
            delta: 1e-5,
            rounds: 3,
            level: "client".to_owned(),
            views: [(View::Actual, statement)].into_iter().collect(),
            worst_client: None,
            notes: Vec::new(),
            growth,
            curves: Vec::new(),
        }
    }

    const OUT_OF_REACH: &str = "no epsilon up to 1e5 is established for this delta";

    #[test]
    fn an_epsilon_out_of_reach_is_shown() {
        let report = actual(statement(None, Some(1e5), Some(OUT_OF_REACH)));
        assert_eq!(card(&report, View::Actual).0, "ε > 10⁵");
        let (mut text, mut views) = (Html::default(), Html::default());
        in_words(&mut text, &report, View::Actual);
        table(&mut views, &report.views, &[], View::Actual);
        for page in [text, views].map(|html| page("a test", &html)) {
            assert!(
                page.contains("&gt; 10⁵")
                    && page.contains("no ε up to 10⁵") != page.contains("No ε up to 10⁵")
            );
            assert!(!page.contains("finite"), "{page}");
        }
    }

    #[test]
    fn every_verdict_makes_a_sentence() {
        let shown = |epsilon, reason| {
            let report = actual(statement(Some(epsilon), None, reason));
            let mut text = Html::default();
            in_words(&mut text, &report, View::Actual);
            let (number, below) = card(&report, View::Actual);
            (number, below, page("a test", &text))
        };
        let cases = [
            (0.5, None, "ε = 0.500", "strong privacy in the actual view", "rounds (strong privacy). Between"),
            (
                4.0,
                None,
                "ε = 4.000",
                "moderate privacy in the actual view",
                "rounds (moderate privacy). Between",
            ),
            (8.0, None, "ε = 8.000", "weak privacy in the actual view", "rounds (weak privacy). Between"),
            (
                10.0334,
                None,
                "ε = 10.1",
                "no privacy in the actual view",
                "rounds (no privacy). The adversary",
            ),
            (
                0.5,
                Some("an estimate"),
                "ε = 0.500",
                "ε in the actual view is not proven",
                "rounds (not proven). No proof",
            ),
        ];
        for (epsilon, reason, number, below, words) in cases {
            let (shown_number, shown_below, page) = shown(epsilon, reason);
            assert_eq!((&*shown_number, &*shown_below), (number, below));
            assert!(page.contains(words), "{words}: {page}");
        }
        let report = actual(statement(None, None, Some("there is no noise")));
        assert_eq!(card(&report, View::Actual).1, "no privacy in the actual view");
    }

    #[test]
    fn no_number_at_all_is_named() {
        let report = actual(statement(None, None, Some("there is no noise")));
        assert_eq!(card(&report, View::Actual).0, "no finite ε");
        let mut views = Html::default();
        table(&mut views, &report.views, &[], View::Actual);
        assert!(page("a test", &views).contains("No finite ε: there is no noise."));
    }

    #[test]
    fn only_caveats_are_not_proven() {
        let name =
            |statement: Statement| growth(&actual(statement), View::Actual).unwrap().curves[0].name.clone();
        assert_eq!(name(statement(Some(9.0), None, None)), "actual");
        assert_eq!(name(statement(None, Some(1e5), Some(OUT_OF_REACH))), "actual");
        assert_eq!(name(statement(Some(9.0), None, Some("an estimate"))), "actual (not proven)");
        let estimate = format!("{OUT_OF_REACH}; an estimate");
        assert_eq!(name(statement(None, Some(1e5), Some(&estimate))), "actual (not proven)");
    }

    #[test]
    fn bounds_in_a_model_say_so() {
        let shown = |assumptions: Vec<String>| {
            let statement = Statement { assumptions, ..statement(Some(3.0), None, None) };
            let views: Views = [(View::Idealised, statement)].into_iter().collect();
            let mut html = Html::default();
            table(&mut html, &views, &[], View::AnyChannel);
            page("a test", &html)
        };
        let page = shown(vec!["no channel fades".to_owned()]);
        assert!(page.contains(">moderate (model)<") && page.contains("(model): the bound assumes"), "{page}");
        assert!(!shown(Vec::new()).contains("(model)"));
    }

    #[test]
    fn captions_name_missing_curves() {
        let mut report = actual(statement(None, Some(1e5), Some(OUT_OF_REACH)));
        report.views.set(View::RawSignal, Some(statement(None, None, Some("it sees everything"))));
        assert_eq!(
            growth_caption(&report),
            "Without a curve: raw-signal (there is no finite ε). The curve actual ends after 2 rounds: above, no ε up to 10⁵ is \
             established."
        );
        assert!(delta_caption(&report).contains("not finite: raw-signal, actual."));
        let report = actual(statement(Some(9.0), None, Some("an estimate")));
        assert!(growth_caption(&report).ends_with("Dashed curves are not proven."));
    }

    #[test]
    fn the_quoted_view_is_drawn_first() {
        let mut report = actual(statement(Some(9.0), None, None));
        report.views.set(View::RawSignal, Some(statement(Some(9.0), None, None)));
        for spent in &mut report.growth {
            spent.epsilon.insert(View::RawSignal.field(), 9000.0);
        }
        let first = |view| growth(&report, view).unwrap().curves[0].name.clone();
        assert_eq!([View::Actual, View::RawSignal].map(first), ["actual", "raw-signal"]);
    }

    #[test]
    fn meanings_are_sentences() {
        let weak = statement(Some(8.0), None, None);
        assert_eq!(meaning(&weak, weak.verdict(), &[]), "A guess is right with probability at most 99.97 %.");
    }
}
