//! The report of one run.

pub(crate) mod curves;
pub(crate) mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use curves::Trials;
use floras_sim::figure::Panel;
use floras_sim::{Experiment, PartitionRecord, RoundMetrics, RunDirectory, Settings, Summary, TrialSummary};

use crate::audit;
use crate::error::ReportError;
use crate::files::{self, Output};
use crate::html::number::{count, grouped, percent, plain};
use crate::html::{Cell, Html, figure, page};
use crate::plot::{Holdings, grid, inline_svg};
use crate::privacy;

/// Everything that a run directory says.
pub(crate) struct Run {
    pub(crate) settings: Settings,
    pub(crate) version: String,
    toml: String,
    pub(crate) lines: Vec<RoundMetrics>,
    partitions: Vec<PartitionRecord>,
    pub(crate) summary: Option<Summary>,
}

/// The files of a directory must be of one run, and whole.
fn refuse_strangers(
    folder: &Path,
    settings: &Settings,
    summary: &Summary,
    lines: &[RoundMetrics],
) -> Result<(), ReportError> {
    let of_experiment = (settings.name.as_str(), settings.seed, settings.trials as usize);
    if of_experiment != (summary.name.as_str(), summary.seed, summary.trials.len()) {
        let reason = "it is not of the run that summary.json is about";
        return Err(ReportError::damaged(&RunDirectory::experiment_file(folder), reason));
    }
    let there: BTreeSet<(u32, u32)> = lines.iter().map(|line| (line.trial, line.round)).collect();
    for trial in &summary.trials {
        let (trial, last) = match *trial {
            TrialSummary::Finished { trial, .. } => (trial, summary.rounds),
            TrialSummary::Diverged { trial, round } => (trial, round),
        };
        if !there.contains(&(trial, last)) {
            let reason = format!("it lacks round {last} of trial {trial}, which summary.json tells of");
            return Err(ReportError::damaged(&folder.join("metrics.jsonl"), reason));
        }
    }
    Ok(())
}

impl Run {
    /// Reads a run directory. Without `summary.json`, the run is not complete, and nearly everything may be missing.
    pub(crate) fn read(folder: &Path) -> Result<Self, ReportError> {
        let path = RunDirectory::experiment_file(folder);
        let toml = files::text(&path)?;
        let experiment =
            Experiment::parse("it", &toml).map_err(|error| ReportError::damaged(&path, error))?;
        let summary: Option<Summary> = files::json_if_there(&folder.join("summary.json"))?;
        let is_complete = summary.is_some();
        let or_empty = |missing: ReportError| match missing {
            ReportError::Missing { .. } if !is_complete => Ok(()),
            other => Err(other),
        };
        let lines = match files::metrics(&folder.join("metrics.jsonl"), !is_complete) {
            Ok(lines) => lines,
            Err(error) => or_empty(error).map(|()| Vec::new())?,
        };
        let partitions = match files::json(&folder.join("partition.json")) {
            Ok(partitions) => partitions,
            Err(error) => or_empty(error).map(|()| Vec::new())?,
        };
        if let Some(summary) = &summary {
            refuse_strangers(folder, experiment.settings(), summary, &lines)?;
        }
        let version = version(&toml).unwrap_or("an unknown version").to_owned();
        Ok(Self { settings: experiment.settings().clone(), version, toml, lines, partitions, summary })
    }

    fn rounds(&self) -> u32 {
        self.summary.as_ref().map_or(self.settings.rounds, |summary| summary.rounds)
    }

    /// Which trials the curves are over: those that the summary averages, or else what there is.
    pub(crate) fn trials(&self) -> Trials {
        let seen: BTreeSet<u32> = self.lines.iter().map(|line| line.trial).collect();
        let diverged: BTreeSet<u32> =
            self.lines.iter().filter(|line| line.diverged).map(|line| line.trial).collect();
        let finished: BTreeSet<u32> = seen.difference(&diverged).copied().collect();
        if finished.is_empty() {
            let words = format!("mean of {} before they diverged", count(seen.len() as u64, "trial"));
            return Trials { included: seen, words };
        }
        let words = match (finished.len(), &self.summary) {
            (1, _) => "one trial".to_owned(),
            (number, Some(_)) => format!("mean of {number} trials, with its 95% interval"),
            (number, None) => {
                format!("mean of the {number} trials that are there so far, with its 95% interval")
            }
        };
        Trials { included: finished, words }
    }

    fn holdings(&self) -> Option<Holdings> {
        let record = self.partitions.first()?;
        let counts = record.label_counts.clone();
        let holdings = Holdings {
            title: "Samples of each label, by client".to_owned(),
            clients: record.clients,
            counts,
        };
        (holdings.shown_clients() > 0 && holdings.labels() > 0).then_some(holdings)
    }
}

/// The version that wrote an experiment file.
fn version(toml: &str) -> Option<&str> {
    let line = toml.lines().find_map(|line| line.strip_prefix("version = "))?;
    Some(line.trim_matches('"'))
}

/// Writes the report of a run.
pub(crate) fn write(folder: &Path) -> Result<(PathBuf, Vec<PathBuf>), ReportError> {
    let run = Run::read(folder)?;
    let trials = run.trials();
    let learning: Vec<Panel> = [curves::accuracy(&run.lines, &trials), curves::losses(&run.lines, &trials)]
        .into_iter()
        .flatten()
        .collect();
    let radio: Vec<Panel> = [curves::gain(&run.lines, &trials), curves::noise(&run.lines, &trials)]
        .into_iter()
        .flatten()
        .collect();
    let spent = run.summary.as_ref().and_then(|summary| privacy::growth(&summary.privacy));
    let guarantees =
        run.summary.as_ref().map_or_else(Vec::new, |summary| privacy::guarantees(&summary.privacy));
    let holdings = run.holdings();
    let audit = audit::read(folder)?;
    let mut output = Output::new(folder);
    for panel in learning.iter().chain(&radio).chain(&spent).chain(&guarantees) {
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
    if let Some(holdings) = &holdings {
        labels(&mut body, &run, holdings);
    }
    repeat(&mut body, &run);
    output.page(&page(&format!("{} – floras", run.settings.name), &body))
}

fn head(body: &mut Html, run: &Run) {
    let settings = &run.settings;
    body.element("p", "kicker", "Report of a run of floras: private federated learning over the air");
    body.element("h1", "", &settings.name);
    warnings(body, run);
    body.element("p", "lead", &words::task(settings));
    body.paragraph(&words::uplink(settings, run.rounds()));
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
                &format!("trials finished, {} each", count(run.rounds().into(), "round")),
            );
        } else {
            card(&grouped(run.lines.len() as u64), "rounds recorded so far, of all trials together");
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

fn warnings(body: &mut Html, run: &Run) {
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
    if let Some(budget) = run.settings.privacy.budget
        && summary.rounds < run.settings.rounds
    {
        body.element(
            "p",
            "warning",
            &format!(
                "The privacy budget of ε = {} in the {} view ended the training after {} of {} rounds.",
                budget.epsilon, budget.view, summary.rounds, run.settings.rounds
            ),
        );
    }
}

fn results(body: &mut Html, run: &Run, panels: &[Panel], trials: &Trials) {
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

fn private(body: &mut Html, run: &Run, spent: Option<&Panel>, guarantees: &[Panel]) {
    let Some(summary) = &run.summary else { return };
    let report = &summary.privacy;
    body.section("How private it was, and against whom", |section| {
        privacy::in_words(section, report);
        privacy::table(section, &report.views, &report.notes);
        section.paragraph(&format!(
            "All statements are about all data of one {}, at δ = {:e}, after {} of one trial.",
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

fn labels(body: &mut Html, run: &Run, holdings: &Holdings) {
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
        if holdings.labels() > grid::MOST_COLUMNS {
            text.push_str(&format!(
                " The first {} of {} labels are shown.",
                grid::MOST_COLUMNS,
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

fn repeat(body: &mut Html, run: &Run) {
    body.section("Repeat it", |section| {
        let (command, where_to) = words::repeat(&run.settings, &run.version);
        section.paragraph(&where_to);
        section.command(&command);
        section.paragraph(&format!(
            "All randomness comes from seed {}; the same version gives the same numbers on any number of threads. The pictures \
             are in plots/ as SVG and PNG, the numbers in metrics.jsonl, ledger.jsonl and summary.json.",
            run.settings.seed
        ));
        section.around("details", "", |details| {
            details.element("summary", "", "The experiment, with every setting spelled out");
            details.command(&run.toml);
        });
    });
}
