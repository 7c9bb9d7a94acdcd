//! The report of one run.

pub(crate) mod curves;
pub(crate) mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use curves::Trials;
use floras_audit::AuditReport;
use floras_sim::RecordedRun;
use floras_sim::figure::Panel;

use crate::audit;
use crate::error::ReportError;
use crate::files::Output;
use crate::html::number::{count, grouped, percent, plain, short};
use crate::html::{Cell, Html, figure, page};
use crate::plot::{Holdings, grid, inline_svg};
use crate::privacy;

/// Rounds in a trial: those of the experiment, or as many as its budget allowed.
fn rounds(run: &RecordedRun) -> u32 {
    run.summary.as_ref().map_or(run.experiment.settings().rounds, |summary| summary.rounds)
}

/// Which trials the curves are over: those that the summary averages, or else what there is.
pub(crate) fn trials(run: &RecordedRun) -> Trials {
    let seen: BTreeSet<u32> = run.metrics.iter().map(|line| line.trial).collect();
    let diverged: BTreeSet<u32> =
        run.metrics.iter().filter(|line| line.diverged).map(|line| line.trial).collect();
    let finished: BTreeSet<u32> = seen.difference(&diverged).copied().collect();
    if finished.is_empty() {
        let words = format!("mean of {} before they diverged", count(seen.len() as u64, "trial"));
        return Trials { included: seen, words };
    }
    let words = match (finished.len(), &run.summary) {
        (1, _) => "one trial".to_owned(),
        (number, Some(_)) => format!("mean of {number} trials, with its 95% interval"),
        (number, None) => {
            format!("mean of the {number} trials that are there so far, with its 95% interval")
        }
    };
    Trials { included: finished, words }
}

fn holdings(run: &RecordedRun) -> Option<Holdings> {
    let record = run.partitions.first()?;
    let counts = record.label_counts.clone();
    let holdings =
        Holdings { title: "Samples of each label, by client".to_owned(), clients: record.clients, counts };
    (holdings.shown_clients() > 0 && holdings.labels() > 0).then_some(holdings)
}

/// Writes the report of a run.
pub(crate) fn write(directory: &Path) -> Result<(PathBuf, Vec<PathBuf>), ReportError> {
    let run = RecordedRun::read(directory)?;
    let trials = trials(&run);
    let learning: Vec<Panel> =
        [curves::accuracy(&run.metrics, &trials), curves::losses(&run.metrics, &trials)]
            .into_iter()
            .flatten()
            .collect();
    let radio: Vec<Panel> = [curves::gain(&run.metrics, &trials), curves::noise(&run.metrics, &trials)]
        .into_iter()
        .flatten()
        .collect();
    let spending = curves::accuracy_against_cost(&run.metrics, &trials);
    let spent = run.summary.as_ref().and_then(|summary| privacy::growth(&summary.privacy));
    let guarantees =
        run.summary.as_ref().map_or_else(Vec::new, |summary| privacy::guarantees(&summary.privacy));
    let holdings = holdings(&run);
    let is_audited = directory.join(AuditReport::FILE).exists();
    let audit = is_audited.then(|| audit::read(directory)).transpose()?;
    let mut output = Output::new(directory);
    for panel in learning.iter().chain(&radio).chain(&spending).chain(&spent).chain(&guarantees) {
        output.panel(panel)?;
    }
    if let Some(holdings) = &holdings {
        output.holdings(holdings)?;
    }
    if let Some(audit) = &audit {
        audit::pictures(audit, &mut output)?;
    }
    let mut body = Html::default();
    head(&mut body, &run);
    results(&mut body, &run, &learning, &trials);
    private(&mut body, &run, spent.as_ref(), &guarantees);
    if let Some(audit) = &audit {
        body.section("Audit", |section| audit::content(section, audit, audit::Place::Section));
    }
    on_the_air(&mut body, &radio, &trials);
    cost(&mut body, &run, &spending, &trials);
    if let Some(holdings) = &holdings {
        labels(&mut body, &run, holdings);
    }
    repeat(&mut body, &run);
    output.page(&page(&format!("{} – floras", run.experiment.settings().name), &body))
}

fn head(body: &mut Html, run: &RecordedRun) {
    let settings = run.experiment.settings();
    body.element("p", "kicker", "Report of a run of floras: private federated learning over the air");
    body.element("h1", "", &settings.name);
    warnings(body, run);
    body.element("p", "lead", &words::task(settings));
    body.paragraph(&words::uplink(settings, rounds(run)));
    body.around("ul", "cards", |cards| {
        let mut card = |value: &str, label: &str| {
            cards.around("li", "", |card| {
                card.element("span", "value", value).element("span", "label", label);
            });
        };
        if let Some(summary) = &run.summary {
            let finished = summary.trials.len() - summary.diverged().len();
            if let Some(finals) = summary.finals {
                card(&percent(finals.test_accuracy), "of the test samples classified correctly in the end");
                card(&plain(finals.test_loss), "test loss in the end");
            }
            let (value, label) = privacy::card(&summary.privacy);
            card(&value, &label);
            card(
                &format!("{finished} of {}", summary.trials.len()),
                &format!("trials finished, {} each", count(rounds(run).into(), "round")),
            );
        } else {
            card(&grouped(run.metrics.len() as u64), "rounds recorded so far, of all trials together");
        }
    });
    body.around("details", "", |details| {
        details.element("summary", "", "Words used here");
        details.around("dl", "", |list| {
            for (word, meaning) in words::GLOSSARY {
                list.element("dt", "", word).element("dd", "", meaning);
            }
        });
    });
}

fn warnings(body: &mut Html, run: &RecordedRun) {
    let Some(summary) = &run.summary else {
        body.element(
            "p",
            "warning",
            "This run is not complete: summary.json is missing. The report shows what is there so far, and nothing is said \
             about privacy before the end.",
        );
        return;
    };
    let diverged = summary.diverged();
    if !diverged.is_empty() {
        let shown: Vec<String> = diverged
            .iter()
            .take(10)
            .map(|(trial, round)| format!("trial {trial} in round {round}"))
            .collect();
        let more = if diverged.len() > 10 { " and more" } else { "" };
        let rest = if summary.finals.is_some() {
            "Means are over the others."
        } else {
            "No trial finished, so that there are no final results."
        };
        body.element(
            "p",
            "warning",
            &format!(
                "{} of {} diverged, that is, a parameter of the common model left the range of numbers: {}{more}. {rest}",
                diverged.len(),
                count(summary.trials.len() as u64, "trial"),
                shown.join(", ")
            ),
        );
    }
    if let Some(budget) = run.experiment.settings().privacy.budget
        && summary.rounds < run.experiment.settings().rounds
    {
        body.element(
            "p",
            "warning",
            &format!(
                "The privacy budget of ε = {} in the {} view ended the training after {} of {} rounds.",
                budget.epsilon,
                budget.view,
                summary.rounds,
                run.experiment.settings().rounds
            ),
        );
    }
}

fn results(body: &mut Html, run: &RecordedRun, panels: &[Panel], trials: &Trials) {
    body.section("How well it learned", |section| {
        if let Some(finals) = run.summary.as_ref().and_then(|summary| summary.finals) {
            let row = |name: &str, value: String, meaning: &str| {
                vec![Cell::text(name), Cell::number(value), Cell::text(meaning)]
            };
            section.table(
                &["in the end", "mean ± 95% interval", "what it is"],
                &[
                    row(
                        "test accuracy",
                        percent(finals.test_accuracy),
                        "share of samples never trained on whose class was found",
                    ),
                    row(
                        "test loss",
                        plain(finals.test_loss),
                        "mean cross-entropy on the same samples, with the penalty on large weights",
                    ),
                    row("train loss", plain(finals.train_loss), "the same on the training samples"),
                ],
            );
            if finals.test_accuracy.ci95.is_none() {
                section.paragraph("There is one finished trial only, so that no interval can be given.");
            }
        }
        figures(section, panels, &format!("{}; point at it for values.", capital(&trials.words)));
        if panels.is_empty() {
            section.paragraph("Nothing was recorded yet.");
        }
    });
}

fn figures(section: &mut Html, panels: &[Panel], caption: &str) {
    section.around("div", "plots", |plots| {
        for panel in panels {
            figure(plots, panel, caption);
        }
    });
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn private(body: &mut Html, run: &RecordedRun, spent: Option<&Panel>, guarantees: &[Panel]) {
    let Some(summary) = &run.summary else { return };
    let report = &summary.privacy;
    body.section("How private it was, and against whom", |section| {
        privacy::in_words(section, report);
        privacy::table(section, &report.views, &report.notes);
        section.paragraph(&format!(
            "All statements are about {} (level: {}), at δ = {:e}, after {} of one trial.",
            if privacy::is_item_level(report) { "one sample of one client" } else { "all data of one client" },
            report.level,
            report.delta,
            count(report.rounds.into(), "round")
        ));
        if let Some(worst) = privacy::worst_client(report) {
            section.paragraph(&worst);
        }
        if let Some(panel) = spent {
            figures(
                section,
                std::slice::from_ref(panel),
                "Both axes have steps of powers of ten. Dashed curves are no guarantees. Of views beyond 100,000 in the first \
                 round, only both ends are computed.",
            );
        }
        if !guarantees.is_empty() {
            figures(
                section,
                guarantees,
                "Left: the guarantee holds for every pair (ε, δ) on a curve, and not only for the stated δ. Right: someone who \
                 decides between two data sets of a client, and is wrong about the first with probability α, is wrong about \
                 the second with probability β or more. On the straight line from 1 to 1 they learn nothing. Dashed curves \
                 are no guarantees. Views with ε above 100 are left out.",
            );
        }
        section.notes(&report.notes);
    });
}

fn on_the_air(body: &mut Html, panels: &[Panel], trials: &Trials) {
    if panels.is_empty() {
        return;
    }
    body.section("What the channel did", |section| {
        section.paragraph(
            "What reaches the model is the sum of the clients' updates, each times a gain, plus noise. A gain of 1 for everyone \
             and no noise would be perfect.",
        );
        let caption = match trials.included.len() {
            1 => "One trial.".to_owned(),
            number => format!("The middle one of {number} trials; the band reaches from the smallest to the largest."),
        };
        figures(section, panels, &caption);
    });
}

fn cost(body: &mut Html, run: &RecordedRun, panels: &[Panel], trials: &Trials) {
    let cost = run.summary.as_ref().and_then(|summary| summary.cost);
    if cost.is_none() && panels.is_empty() {
        return;
    }
    body.section("What it cost on the air", |section| {
        section.paragraph(
            "A channel use is one symbol or chip on the air. Power is relative to a symbol of amplitude 1, and energy is counted \
             in channel uses at that power, of all clients together.",
        );
        if let Some(cost) = cost {
            let row = |name: &str, value: String, meaning: &str| {
                vec![Cell::text(name), Cell::number(value), Cell::text(meaning)]
            };
            let range = cost.dynamic_range_db.map_or_else(|| "–".to_owned(), |range| format!("{range:.1} dB"));
            section.table(
                &["of a trial", "mean over the trials", "what it is"],
                &[
                    row("channel uses, payload", grouped(cost.payload_uses), "the updates"),
                    row("channel uses, pilots", grouped(cost.pilot_uses), "what channels are estimated from"),
                    row(
                        "channel uses, control",
                        grouped(cost.control_uses),
                        "channel coefficients for the clients, and the side information of normalised updates",
                    ),
                    row("energy", short(cost.energy), "payload, pilots and control symbols of the clients"),
                    row("mean power", short(cost.power_mean), "of a client, over all rounds"),
                    row("peak power", short(cost.power_peak), "of the client and round with the highest"),
                    row("dynamic range", range, "added by the channels: strongest over weakest client in a round"),
                ],
            );
        }
        figures(section, panels, &format!("{}; point at it for values.", capital(&trials.words)));
    });
}

fn labels(body: &mut Html, run: &RecordedRun, holdings: &Holdings) {
    body.section("Who holds which labels", |section| {
        let shown = holdings.shown_clients();
        let mut text =
            "How many training samples of each label (class) every client holds; the darker, the more."
                .to_owned();
        if (shown as u64) < u64::from(holdings.clients) {
            text.push_str(&format!(
                " The first {shown} of {} are shown.",
                count(holdings.clients.into(), "client")
            ));
        }
        if holdings.labels() > grid::MAX_COLUMNS {
            text.push_str(&format!(
                " The first {} of {} labels are shown.",
                grid::MAX_COLUMNS,
                holdings.labels()
            ));
        }
        if run.partitions.len() > 1 {
            text.push_str(" This is the first trial; the others are dealt anew, and in partition.json.");
        }
        section.paragraph(&text);
        section.around("figure", "holdings", |figure| {
            let picture = grid::draw(holdings, 560.0, false);
            figure.drawn(&inline_svg(&picture, "Samples of each label, by client"));
        });
    });
}

fn repeat(body: &mut Html, run: &RecordedRun) {
    body.section("Repeat it", |section| {
        let version = run.version.as_deref().unwrap_or("an unknown version");
        let (command, where_to) = words::repeat(run.experiment.settings(), version);
        section.paragraph(&where_to);
        section.command(&command);
        section.paragraph(&format!(
            "All randomness comes from seed {}; the same version gives the same numbers on any number of threads. The pictures \
             are in plots/ as SVG and PNG, the numbers in metrics.jsonl, ledger.jsonl and summary.json.",
            run.experiment.settings().seed
        ));
        section.around("details", "", |details| {
            details.element("summary", "", "The experiment, with every setting spelled out");
            details.command(&run.text);
        });
    });
}
