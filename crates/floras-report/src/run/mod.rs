//! The report of one run.

pub(crate) mod curves;
mod so_far;
pub(crate) mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use curves::Trials;
use floras_audit::AuditReport;
use floras_sim::figure::Panel;
use floras_sim::{PrivacyReport, RecordedRun, SweepTable};

use self::so_far::SoFar;
use crate::audit;
use crate::error::ReportError;
use crate::files::Output;
use crate::html::number::{count, estimate, grouped, percentage, short};
use crate::html::{Cell, Html, downloads, figure, page};
use crate::plot::scale::number_text;
use crate::plot::{Holdings, Plot, grid, inline_svg};
use crate::privacy;

/// Rounds of a trial: those of the experiment, or fewer if its budget ended it.
fn rounds(run: &RecordedRun) -> u32 {
    run.summary.as_ref().map_or(run.experiment.settings().rounds, |summary| summary.rounds)
}

/// The trials that the curves average: those of the summary, or of an incomplete run those that have not diverged.
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
        (number, Some(_)) => format!("mean of {number} trials, with its 95 % interval"),
        (number, None) => {
            format!("mean of the {number} trials recorded so far, with its 95 % interval")
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
    let view = run.experiment.settings().privacy.view;
    let so_far = run.summary.is_none().then(|| SoFar::read(directory, &run));
    let spent = run.summary.as_ref().and_then(|summary| privacy::growth(&summary.privacy, view));
    let guarantees =
        run.summary.as_ref().map_or_else(Vec::new, |summary| privacy::guarantees(&summary.privacy, view));
    let holdings = holdings(&run);
    let is_audited = directory.join(AuditReport::FILE).exists();
    let audit = is_audited.then(|| audit::read(directory)).transpose()?;
    let mut output = Output::new(directory);
    for panel in learning.iter().chain(&radio).chain(&spending).chain(&spent).chain(&guarantees) {
        output.panel(panel)?;
    }
    if let Some(holdings) = &holdings {
        output.plot(&Plot::of_holdings(holdings))?;
    }
    if let Some(audit) = &audit {
        audit::pictures(audit, &mut output)?;
    }
    let mut body = Html::default();
    head(&mut body, directory, &run, so_far.as_ref());
    results(&mut body, &run, &learning, &trials);
    match (&run.summary, &so_far) {
        (Some(summary), _) => {
            privacy_section(&mut body, &run, &summary.privacy, spent.as_ref(), &guarantees);
        }
        (None, so_far) => so_far.iter().for_each(|so_far| so_far.privacy(&mut body, &run)),
    }
    if let Some(audit) = &audit {
        body.section("Audit", |section| audit::content(section, audit, audit::Place::Section));
    }
    on_the_air(&mut body, &radio, &trials);
    cost(&mut body, &run, &spending, &trials);
    if let Some(holdings) = &holdings {
        labels(&mut body, &run, holdings);
    }
    repeat(&mut body, directory, &run);
    output.page(&page(&format!("{} – floras", run.experiment.settings().name), &body))
}

/// The report of the sweep that has the run as a point.
fn sweep_of(directory: &Path) -> Option<&'static str> {
    let above = directory.parent()?;
    let name = directory.file_name()?.to_str()?;
    let table = SweepTable::read(above).ok()?;
    table.rows.iter().any(|row| row.run == name).then_some("../report.html")
}

fn head(body: &mut Html, directory: &Path, run: &RecordedRun, so_far: Option<&SoFar>) {
    let settings = run.experiment.settings();
    body.element("p", "kicker", "Report of a floras run: private federated learning over the air");
    body.element("h1", "", &settings.name);
    if let Some(sweep) = sweep_of(directory) {
        body.around("p", "", |line| {
            line.text("This run is a point of a sweep: ").link(sweep, "compare all points").text(".");
        });
    }
    match so_far {
        Some(so_far) => so_far.notice(body, directory),
        None => warnings(body, run),
    }
    let rounds = so_far.map_or_else(|| rounds(run), |so_far| so_far.rounds);
    body.element("p", "lead", &words::task(settings));
    body.paragraph(&words::uplink(settings, rounds));
    body.around("ul", "cards", |cards| {
        let mut card = |value: &str, label: &str| {
            cards.around("li", "", |card| {
                card.element("span", "value", value).element("span", "label", label);
            });
        };
        if let Some(summary) = &run.summary {
            let finished = summary.trials.len() - summary.diverged().len();
            if let Some(finals) = summary.finals {
                card(&percentage(finals.test_accuracy), "final test accuracy");
                card(&estimate(finals.test_loss), "final test loss");
            }
            let (value, label) = privacy::card(&summary.privacy, settings.privacy.view);
            card(&value, &label);
            card(
                &format!("{finished} of {}", summary.trials.len()),
                &format!("trials finished, {} each", count(rounds.into(), "round")),
            );
        }
        if let Some(so_far) = so_far {
            card(
                &format!("{} of {}", grouped(so_far.done), grouped(so_far.all)),
                "rounds done so far, over all trials",
            );
            card(
                &format!("{} of {}", grouped(so_far.spent.into()), grouped(so_far.rounds.into())),
                "rounds of the longest trial",
            );
            if let Some(report) = &so_far.report {
                let (value, label) = privacy::card(report, settings.privacy.view);
                card(&value, &format!("spent so far: {label}"));
            }
            if let Some(budget) = settings.privacy.budget {
                card(&format!("ε ≤ {budget}"), "privacy budget");
            }
        }
    });
    body.around("details", "", |details| {
        details.element("summary", "", "Glossary");
        details.around("dl", "", |list| {
            for (word, meaning) in words::GLOSSARY {
                list.element("dt", "", word).element("dd", "", meaning);
            }
        });
    });
}

fn warnings(body: &mut Html, run: &RecordedRun) {
    let Some(summary) = &run.summary else { return };
    let diverged = summary.diverged();
    if !diverged.is_empty() {
        let shown: Vec<String> = diverged
            .iter()
            .take(10)
            .map(|(trial, round)| format!("trial {} in round {round}", trial + 1))
            .collect();
        let more = if diverged.len() > 10 { " and more" } else { "" };
        let rest = if summary.finals.is_some() {
            "Means are over the other trials."
        } else {
            "No trial finished, so there are no final results."
        };
        body.element(
            "p",
            "warning",
            &format!(
                "{} of {} diverged (a parameter of the model is no longer finite): {}{more}. {rest}",
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
                budget,
                run.experiment.settings().privacy.view,
                summary.rounds,
                run.experiment.settings().rounds
            ),
        );
    }
}

fn results(body: &mut Html, run: &RecordedRun, panels: &[Panel], trials: &Trials) {
    body.section("Accuracy and loss", |section| {
        if let Some(finals) = run.summary.as_ref().and_then(|summary| summary.finals) {
            let row = |name: &str, value: String, meaning: &str| {
                vec![Cell::text(name), Cell::number(value), Cell::text(meaning)]
            };
            section.table(
                &["final", "mean ± 95 % interval", "meaning"],
                &[
                    row(
                        "test accuracy",
                        percentage(finals.test_accuracy),
                        "share of the test samples that are classified correctly",
                    ),
                    row(
                        "test loss",
                        estimate(finals.test_loss),
                        "mean cross-entropy on the test samples, with the penalty on large weights",
                    ),
                    row("train loss", estimate(finals.train_loss), "the same on the training samples"),
                ],
            );
            if finals.test_accuracy.ci95.is_none() {
                section.paragraph("Only one trial finished, so there is no interval.");
            }
        }
        figures(section, panels, &format!("{}.", capital(&trials.words)));
        if panels.is_empty() {
            section.paragraph("No round is recorded yet.");
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

fn privacy_section(
    body: &mut Html,
    run: &RecordedRun,
    report: &PrivacyReport,
    spent: Option<&Panel>,
    guarantees: &[Panel],
) {
    let settings = run.experiment.settings();
    let view = settings.privacy.view;
    body.section("Privacy", |section| {
        privacy::in_words(section, report, view);
        privacy::table(section, &report.views, &report.notes, view);
        section.paragraph(&format!(
            "All statements protect {} (level: {}), at δ = {}, after {} of one trial. The run's \
             metrics.jsonl is not private: its values are computed from the clients' data.",
            if privacy::is_item_level(report) { "one sample of one client" } else { "all data of one client" },
            report.level,
            number_text(report.delta),
            count(report.rounds.into(), "round")
        ));
        if let Some(worst) = privacy::worst_client(report, settings) {
            section.paragraph(&worst);
        }
        section.around("div", "plots", |plots| {
            if let Some(panel) = spent {
                figure(plots, panel, &privacy::growth_caption(report));
            }
            if let [delta, trade_off] = guarantees {
                figure(plots, delta, &privacy::delta_caption(report));
                let right = "An adversary tests which of two data sets a client has. With type I error α, its type II error is at \
                             least β. On the straight line from (0, 1) to (1, 0) it learns nothing.";
                figure(plots, trade_off, right);
            }
        });
        section.notes(&report.notes);
    });
}

fn on_the_air(body: &mut Html, panels: &[Panel], trials: &Trials) {
    if panels.is_empty() {
        return;
    }
    body.section("Channel", |section| {
        section.paragraph(
            "The model receives the sum of the clients' updates, each multiplied by a gain, plus noise. The ideal is a gain of 1 \
             for every client and no noise.",
        );
        let caption = match trials.included.len() {
            1 => "One trial.".to_owned(),
            number => format!("Median of {number} trials; the band is their range."),
        };
        figures(section, panels, &caption);
    });
}

fn cost(body: &mut Html, run: &RecordedRun, panels: &[Panel], trials: &Trials) {
    let cost = run.summary.as_ref().and_then(|summary| summary.cost);
    if cost.is_none() && panels.is_empty() {
        return;
    }
    body.section("Cost on the air", |section| {
        section.paragraph(
            "A channel use is one symbol or chip on the air. Power is relative to a symbol of amplitude 1; energy is in channel \
             uses at that power, summed over all clients.",
        );
        if let Some(cost) = cost {
            let row = |name: &str, value: String, meaning: &str| {
                vec![Cell::text(name), Cell::number(value), Cell::text(meaning)]
            };
            let range = cost.dynamic_range_db.map_or_else(|| "–".to_owned(), |range| format!("{range:.1} dB"));
            section.table(
                &["per trial", "mean over the trials", "meaning"],
                &[
                    row("channel uses, payload", grouped(cost.payload_uses), "the updates"),
                    row("channel uses, pilots", grouped(cost.pilot_uses), "symbols for channel estimation"),
                    row(
                        "channel uses, control",
                        grouped(cost.control_uses),
                        "channel coefficients for the clients, and the side information of normalised updates",
                    ),
                    row("energy", short(cost.energy), "payload, pilots and control symbols of the clients"),
                    row("mean power", short(cost.power_mean), "per client, over all rounds"),
                    row("peak power", short(cost.power_peak), "the largest of any client and round"),
                    row("dynamic range", range, "added by the channels: strongest over weakest client of a round"),
                ],
            );
        }
        figures(section, panels, &format!("{}.", capital(&trials.words)));
    });
}

fn labels(body: &mut Html, run: &RecordedRun, holdings: &Holdings) {
    body.section("Labels of each client", |section| {
        let shown = holdings.shown_clients();
        let mut text = "Number of training samples of each label (class) per client.".to_owned();
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
            text.push_str(" This is the first trial; partition.json has the others.");
        }
        section.paragraph(&text);
        section.around("figure", "holdings", |figure| {
            let picture = grid::draw(holdings, 560.0, false);
            figure.drawn(&inline_svg(&picture, "Samples of each label, by client"));
            downloads(figure, "labels");
        });
    });
}

/// Files of a run, with descriptions of their content.
const FILES: [(&str, &str); 6] = [
    ("experiment.toml", "every setting"),
    ("metrics.jsonl", "measurements of every round (not private)"),
    ("ledger.jsonl", "ε spent per round"),
    ("summary.json", "final results and privacy"),
    ("partition.json", "labels of each client"),
    ("audit.json", "results of the audit"),
];

fn repeat(body: &mut Html, directory: &Path, run: &RecordedRun) {
    body.section("Files and how to repeat the run", |section| {
        section.around("ul", "files", |list| {
            for (file, content) in FILES.into_iter().filter(|(file, _)| directory.join(file).exists()) {
                list.around("li", "", |item| {
                    item.link(file, file).text(&format!(": {content}"));
                });
            }
        });
        let version = run.version.as_deref().unwrap_or("an unknown version");
        let (command, where_to) = words::repeat(run.experiment.settings(), version);
        section.paragraph(&where_to);
        section.command(&command);
        section.paragraph(&format!(
            "All random numbers derive from seed {}: the same version gives the same numbers on any number of threads.",
            run.experiment.settings().seed
        ));
        section.around("details", "", |details| {
            details.element("summary", "", "The experiment with all settings");
            details.command(&run.text);
        });
    });
}
