//! `floras audit`: attack an experiment, and say what leaks.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use clap::Args;
use floras_audit::{
    AssumptionAttack, AuditReport, AuditVerdict, CollusionAttack, DespreadingAttack, Effort, MembershipGame,
    ReconstructionAttack, SequenceAttack, Stage, audit,
};
use floras_sim::{Experiment, ExperimentBuilder, Federation};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::command::{changed, number, thread_count, threads_or_all_cores, whole_number};
use crate::failure::Failure;
use crate::privacy::epsilon_text;
use crate::report;
use crate::run::talk;
use crate::table::{columns, count, description};

/// Attacked unless something else is asked for.
const DEFAULT: &str = "audit";

/// What to attack, and how hard.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras audit                                  one round of the paper's scheme, in about a minute
  floras audit quick --set uplink.snr_db=0      a preset with one setting changed
  floras audit runs/quick/experiment.toml --out runs/quick
                                                a run that is there; its report gets a section
  floras audit my.toml --games 10000000 --json  a closer look, for a program to read

Every lower bound is measured: the true epsilon is not smaller, with the stated confidence. A bound
that exceeds a claim refutes it; one that does not proves nothing. docs/audit.md explains every
attack, and what none of them shows.")]
pub(crate) struct Options {
    /// An experiment file, or the name of a preset; the preset `audit` if absent.
    #[arg(value_name = "FILE|PRESET")]
    experiment: Option<String>,

    /// Change a setting, as in uplink.sequences=30; may be given several times.
    #[arg(long = "set", value_name = "key=value")]
    settings: Vec<String>,

    /// Learning rounds that the adversaries look at.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = whole_number::<u32>)]
    rounds: Option<u32>,

    /// Where all randomness comes from.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = whole_number::<u64>)]
    seed: Option<u64>,

    /// Rounds that are played for each row of the table; more give closer lower bounds.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = whole_number::<u32>, default_value_t = Effort::default().games())]
    games: u32,

    /// Whole trainings for each canary that needs them, if there is more than one round; 0 for none.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = whole_number::<u32>, default_value_t = Effort::default().trainings())]
    trainings: u32,

    /// The probability with which all lower bounds of the table hold.
    #[arg(long, value_name = "p", allow_negative_numbers = true, value_parser = number, default_value_t = Effort::default().confidence())]
    confidence: f64,

    /// Threads; all cores if absent. Results do not depend on it.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = thread_count)]
    threads: Option<usize>,

    /// The directory: a new one, that of an earlier audit, or that of a run of the same experiment; runs/audit-NAME if absent.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    audit: AuditReport,
    out: String,
}

/// Attacks and reports.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let Options { games, trainings, confidence, .. } = *options;
    let effort = Effort::new(games, trainings, confidence)?;
    let experiment = options.experiment()?;
    let federation = Federation::new(&experiment)?;
    let directory = options.directory(&experiment);
    AuditReport::enter(&directory, &experiment)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads_or_all_cores(options.threads)).build()?;
    talk(&description(&federation));
    let watcher = Watcher::default();
    let found = pool.install(|| audit(&federation, effort, &|stage| watcher.see(stage)));
    watcher.clear();
    let found = found.inspect_err(|_| AuditReport::leave(&directory))?;
    found.write(&directory)?;
    let page = report::at_the_end(&directory, true);
    let mut out = io::stdout().lock();
    if options.json {
        let report = Report { audit: found.brief(), out: directory.display().to_string() };
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
        return Ok(());
    }
    print(&mut out, &found)?;
    if let Some(page) = page {
        writeln!(out, "report          {}", page.display())?;
    }
    writeln!(out, "directory       {}", directory.display())?;
    Ok(())
}

impl Options {
    fn experiment(&self) -> Result<Experiment, Failure> {
        let builder = ExperimentBuilder::open(Some(self.experiment.as_deref().unwrap_or(DEFAULT)))?;
        Ok(changed(builder, &self.settings, (None, self.rounds, self.seed))?.build()?)
    }

    fn directory(&self, experiment: &Experiment) -> PathBuf {
        let name = &experiment.settings().name;
        let default = if name == DEFAULT { DEFAULT.to_owned() } else { format!("audit-{name}") };
        self.out.clone().unwrap_or_else(|| Path::new("runs").join(default))
    }
}

fn print(out: &mut impl Write, found: &AuditReport) -> io::Result<()> {
    let rounds = count(found.rounds as usize, "round");
    writeln!(out, "{}: what leaks in {rounds}, delta = {:e}\n", found.name, found.delta)?;
    print_views(out, found)?;
    let attacks = &found.attacks;
    if let Some(sequences) = &attacks.sequences {
        print_sequences(out, sequences)?;
    }
    if let Some(despreading) = &attacks.despreading {
        print_despreading(out, despreading)?;
    }
    if let Some(reconstruction) = &attacks.reconstruction {
        print_reconstruction(out, reconstruction)?;
    }
    print_membership(out, &attacks.membership)?;
    if let Some(collusion) = &attacks.collusion {
        print_collusion(out, collusion)?;
    }
    print_assumptions(out, &attacks.assumptions)?;
    for note in &found.notes {
        writeln!(out, "note: {note}")?;
    }
    writeln!(out)
}

fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|&cell| cell.to_owned()).collect()
}

fn epsilon(value: Option<f64>) -> String {
    value.map_or("none".to_owned(), epsilon_text)
}

fn verdict(verdict: Option<AuditVerdict>) -> String {
    match verdict {
        None => "not claimed".to_owned(),
        Some(AuditVerdict::Consistent) => "consistent".to_owned(),
        Some(AuditVerdict::Violated) => "VIOLATED".to_owned(),
    }
}

/// A rigorous number, and whether it is one.
fn rigorous(value: Option<f64>, is_guarantee: bool) -> String {
    let mark = if value.is_some() && !is_guarantee { " (no guarantee)" } else { "" };
    format!("{}{mark}", epsilon(value))
}

fn print_views(out: &mut impl Write, found: &AuditReport) -> io::Result<()> {
    let mut rows =
        vec![row(&["who looks", "published", "rigorous", "measured", "published is", "rigorous is"])];
    for (name, view) in found.views.iter() {
        rows.push(vec![
            name.to_owned(),
            epsilon(view.published),
            rigorous(view.rigorous, view.is_guarantee),
            format!("≥ {:.3}", view.lower_bound),
            match view.published_claims_it {
                false if view.published.is_some() => "not claimed".to_owned(),
                _ => verdict(view.verdict.published),
            },
            verdict(view.verdict.rigorous),
        ]);
    }
    columns(out, &rows)?;
    let percent = 100.0 * found.confidence;
    writeln!(out, "epsilon of a client; all measured bounds hold together with a probability of {percent}%")?;
    for (name, view) in found.views.iter() {
        let measured = view.measured;
        writeln!(
            out,
            "  {name}: {}; right {} and wrong {} times in {} games each, which cannot show more than {:.1}",
            view.adversary, measured.right, measured.wrong, measured.games, measured.ceiling
        )?;
    }
    writeln!(out)
}

fn print_sequences(out: &mut impl Write, attack: &SequenceAttack) -> io::Result<()> {
    let (used, all) = (attack.in_use, attack.sequences);
    writeln!(out, "which {used} of {all} sequences are in use? ({} rounds)", attack.rounds)?;
    let header = [
        "detector",
        "fading distribution",
        "area under curve",
        "found at 1% false",
        "in theory",
        "all right",
    ];
    let mut rows = vec![row(&header)];
    for detector in &attack.detectors {
        rows.push(vec![
            detector.detector.clone(),
            if detector.knows_fading { "known" } else { "unknown" }.to_owned(),
            format!("{:.4}", detector.area),
            format!("{:.4}", detector.detections),
            detector.detections_in_theory.map_or("–".to_owned(), |rate| format!("{rate:.4}")),
            format!("{:.4}", detector.exact_set),
        ]);
    }
    columns(out, &rows)?;
    writeln!(out)
}

fn print_despreading(out: &mut impl Write, attack: &DespreadingAttack) -> io::Result<()> {
    let correlations: Vec<f64> = attack.clients.iter().map(|client| client.correlation).collect();
    let mean = correlations.iter().sum::<f64>() / correlations.len().max(1) as f64;
    let best = correlations.iter().copied().fold(0.0, f64::max);
    writeln!(out, "each client's own update, despread from the raw samples")?;
    writeln!(out, "  correlation with what was sent: {mean:.3} on average, {best:.3} at best")?;
    writeln!(
        out,
        "  whole payload linked to one client {}, halves linked by strength {}, rounds linked {}, named {} (guessing {})",
        percent(attack.linked_in_round),
        percent(attack.linked_by_strength),
        percent(attack.linked_across_rounds),
        percent(attack.named),
        percent(attack.by_chance)
    )?;
    writeln!(out)
}

fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

fn print_reconstruction(out: &mut impl Write, attack: &ReconstructionAttack) -> io::Result<()> {
    writeln!(out, "pictures from updates of one sample: correlation with the original, on average")?;
    for picture in &attack.rows {
        let snr = picture.snr_db.map_or("no channel".to_owned(), |snr_db| format!("{snr_db} dB"));
        writeln!(out, "  {:<16}{snr:<12}{:.3}", picture.source, picture.mean_correlation())?;
    }
    writeln!(out)
}

fn print_membership(out: &mut impl Write, games: &[MembershipGame]) -> io::Result<()> {
    if games.is_empty() {
        return Ok(());
    }
    let confidence = games.first().map_or(0.0, |game| 100.0 * game.confidence);
    writeln!(out, "did it take part? (all these bounds hold together with a probability of {confidence}%)")?;
    let header = [
        "what",
        "canary",
        "rounds",
        "who looks",
        "accuracy",
        "published",
        "rigorous",
        "measured",
        "published is",
        "rigorous is",
    ];
    let mut rows = vec![row(&header)];
    for game in games {
        rows.push(vec![
            game.level.clone(),
            game.canary.clone(),
            game.rounds.to_string(),
            game.view.clone(),
            percent(game.accuracy),
            game.published.map_or("–".to_owned(), epsilon_text),
            rigorous(game.rigorous, game.is_guarantee),
            format!("≥ {:.3}", game.lower_bound),
            verdict(game.verdict.published),
            verdict(game.verdict.rigorous),
        ]);
    }
    columns(out, &rows)?;
    writeln!(out)
}

fn print_collusion(out: &mut impl Write, attack: &CollusionAttack) -> io::Result<()> {
    writeln!(out, "one client hands over its group key")?;
    let rows = [
        row(&["decoded sum", "noise", "rigorous", "measured"]),
        vec![
            "without the key".to_owned(),
            format!("{:.3}", attack.noise_std_without),
            epsilon(attack.rigorous_without),
            format!("≥ {:.3}", attack.lower_bound_without),
        ],
        vec![
            "with the key".to_owned(),
            format!("{:.3}", attack.noise_std_with),
            epsilon(attack.rigorous_with),
            format!("≥ {:.3}", attack.lower_bound_with),
        ],
    ];
    columns(out, &rows)?;
    writeln!(out, "  despread updates that bear their sender's name: {}\n", percent(attack.named))
}

fn print_assumptions(out: &mut impl Write, attacks: &[AssumptionAttack]) -> io::Result<()> {
    let Some(AssumptionAttack { delta, confidence, .. }) = attacks.first() else { return Ok(()) };
    writeln!(
        out,
        "what the any-channel view assumes, broken (20 clients, 40 sequences, C = 1, clipped=1, one round, delta = {delta:e})"
    )?;
    let mut rows = vec![row(&["stated", "measured", "stated is", "allowed for by", "then", "then it is"])];
    for attack in attacks {
        let margin = attack.margin.clone().unwrap_or_else(|| "–".to_owned());
        rows.push(vec![
            epsilon(attack.stated),
            format!("≥ {:.3}", attack.lower_bound),
            verdict(attack.stated_is),
            margin,
            if attack.margin.is_some() { epsilon(attack.with_margin) } else { "–".to_owned() },
            attack.with_margin_is.map_or("–".to_owned(), |found| verdict(Some(found))),
        ]);
    }
    for (number, row) in rows.iter_mut().enumerate() {
        row.insert(0, if number == 0 { String::new() } else { number.to_string() });
    }
    columns(out, &rows)?;
    for (number, attack) in (1..).zip(attacks) {
        writeln!(out, "  {number}: {}; but {}", attack.assumption, attack.attack)?;
    }
    let percent = 100.0 * confidence;
    writeln!(out, "  all these bounds hold together with a probability of {percent}%\n")
}

/// Shows how far the attack at hand has come: a bar on a terminal, a line for each attack in a pipe.
#[derive(Default)]
struct Watcher(Mutex<Option<ProgressBar>>);

impl Watcher {
    fn see(&self, stage: Stage<'_>) {
        let mut bar = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match stage {
            Stage::Begins { what, units } => {
                if let Some(bar) = bar.take() {
                    bar.finish_and_clear();
                }
                let next = ProgressBar::with_draw_target(Some(units), ProgressDrawTarget::stderr_with_hz(10));
                let template = if units > 0 { "{msg} {wide_bar} {percent}%, {eta} left" } else { "{msg}" };
                next.set_style(ProgressStyle::with_template(template).expect("the template is well-formed"));
                next.set_message(what.to_owned());
                if next.is_hidden() {
                    talk(&format!("attacking: {what}"));
                }
                *bar = Some(next);
            }
            Stage::Done(units) => {
                if let Some(bar) = &*bar {
                    bar.inc(units);
                }
            }
        }
    }

    fn clear(&self) {
        if let Some(bar) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish_and_clear();
        }
    }
}
