//! `floras theory`: the paper's convergence theorem for an experiment, and what holds instead.

use std::io::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use clap::Args;
use floras_paper::theory::{Answer, Constants, Evaluation, NoiseMoments, Reached, Theory};
use floras_sim::{ExperimentBuilder, Federation};

use crate::command::{changed, integer, thread_count, threads_or_all_cores};
use crate::failure::Failure;
use crate::run::print_status;
use crate::text;

/// Options of `floras theory`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras theory                                         the paper's IID task
  floras theory digits-noniid --set uplink.truncate=200 a clamp that does not cut the sum
  floras theory my.toml --json                          as JSON

The theorem requires a strongly convex loss: logistic regression with a penalty. Its constants are
computed from the experiment's own data, and each is printed with how it was found.")]
pub(crate) struct Options {
    /// An experiment file, or the name of a preset; digits-iid, the paper's task, if absent.
    #[arg(value_name = "FILE|PRESET")]
    experiment: Option<String>,

    /// Change a setting, as in uplink.truncate=200; may be given several times.
    #[arg(long = "set", value_name = "key=value")]
    settings: Vec<String>,

    /// The seed of all randomness.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = integer::<u64>)]
    seed: Option<u64>,

    /// Threads; all cores if absent. Results do not depend on it.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = thread_count)]
    threads: Option<usize>,

    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// The default preset, because the theorem is about the paper's task.
const DEFAULT: &str = "digits-iid";

/// Computes and prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let builder = ExperimentBuilder::open(Some(options.experiment.as_deref().unwrap_or(DEFAULT)))?;
    let builder = changed(builder, &options.settings, (None, None, options.seed))?;
    let federation = Federation::new(&builder.build()?)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads_or_all_cores(options.threads)).build()?;
    let theory = compute(&federation, &pool)?;
    let mut out = io::stdout().lock();
    if options.json {
        writeln!(out, "{}", serde_json::to_string(&theory)?)?;
        return Ok(());
    }
    print(&mut out, &theory)?;
    Ok(())
}

/// Computes on the pool, and prints stages that take more than a second.
fn compute(federation: &Federation, pool: &rayon::ThreadPool) -> Result<Theory, Failure> {
    let (sender, stages) = channel::<String>();
    thread::scope(|scope| {
        let worker = scope.spawn(move || {
            // The receiver is gone only if the program ends.
            let report = |stage: &str| sender.send(stage.to_owned()).unwrap_or_default();
            pool.install(|| Theory::of(federation, &report))
        });
        let mut current = None;
        loop {
            match stages.recv_timeout(Duration::from_secs(1)) {
                Ok(stage) => current = Some(stage),
                Err(RecvTimeoutError::Timeout) => {
                    current.take().into_iter().for_each(|stage| print_status(&format!("computing: {stage}")));
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        match worker.join() {
            Ok(theory) => Ok(theory?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn print(out: &mut impl Write, theory: &Theory) -> io::Result<()> {
    let sizes = theory.sizes;
    writeln!(out, "{}: Theorem 4 of the paper, and what holds\n", theory.name)?;
    row(out, "M, K", &format!("{}, {}", sizes.clients, sizes.per_round), "all clients, clients per round")?;
    row(out, "d", &sizes.parameters.to_string(), "parameters of the model")?;
    let optional = |value: Option<f64>| value.map_or("–".to_owned(), |value| value.to_string());
    let gamma = sizes.gamma.map_or("–".to_owned(), |gamma| gamma.to_string());
    row(out, "γ", &gamma, "unused sequences, the scale of the Cauchy noise")?;
    row(out, "C", &optional(sizes.clip), "maximum norm of an update")?;
    row(out, "B", &optional(sizes.bound), "decoded values are clamped to ±B")?;
    if let Some(constants) = &theory.constants {
        print_constants(out, constants)?;
    }
    if let Some(noise) = theory.noise {
        print_noise(out, noise)?;
    }
    writeln!(out, "\nconditions of the theorem")?;
    for condition in &theory.conditions {
        let holds = match condition.holds {
            Some(true) => "yes",
            Some(false) => "no",
            None => "–",
        };
        writeln!(out, "  {holds:<4}{}: {}", condition.name, condition.detail)?;
    }
    for (name, evaluation) in [("D as printed", &theory.printed), ("D corrected", &theory.corrected)] {
        match evaluation {
            Some(evaluation) => print_evaluation(out, name, evaluation, sizes.gamma)?,
            None => writeln!(out, "\nTheorem 4 with {name}: not computed, a quantity above is missing")?,
        }
    }
    let start = theory.constants.as_ref().map(|constants| constants.distance_squared);
    print_reached(out, theory.reached, start)?;
    for (number, note) in theory.notes.iter().enumerate() {
        let line = if number == 0 { "\n" } else { "" };
        writeln!(out, "{line}{}", text::note(note))?;
    }
    Ok(())
}

fn print_constants(out: &mut impl Write, constants: &Constants) -> io::Result<()> {
    let number = |value: f64| short(value);
    row(out, "E", &constants.local_steps.to_string(), "SGD steps per client and round")?;
    row(out, "μ", &number(constants.mu), "strong convexity, exact: 2λ")?;
    row(out, "L", &number(constants.smoothness), "smoothness, an upper bound from the data's spectrum")?;
    let from = number(constants.least_client_gradient);
    let measured =
        format!("longest mini-batch gradient, measured in a training and not proved; H_k from {from}");
    row(out, "H", &number(constants.gradient_bound), &measured)?;
    // Rounded up to a power of ten, so that it reads the same on every machine.
    let error = 10_f64.powf(constants.minimum_error.max(1e-10).log10().ceil());
    row(out, "f*", &number(constants.minimum), &format!("minimum of the loss, found to {error:.0e}"))?;
    row(out, "Γ", &number(constants.heterogeneity), "f* minus the mean of the clients' own minima")?;
    row(
        out,
        "‖w₀ − w*‖²",
        &number(constants.distance_squared),
        "squared distance from the start to the minimum",
    )
}

fn print_noise(out: &mut impl Write, noise: NoiseMoments) -> io::Result<()> {
    writeln!(out, "\nsecond moment of the noise of one parameter, in units of C²")?;
    let mut line = |value: f64, what: &str| writeln!(out, "  {:<12}{what}", short(value));
    line(noise.printed, "D(γ) as printed")?;
    line(noise.conditioned_at_zero, "truncated distribution, as in the proof, at a sum of 0")?;
    line(noise.clamped_at_zero, "clamping, at a sum of 0")?;
    line(noise.clamped_at_worst, "clamping, at the worst sum of one parameter, K·C")?;
    line(noise.corrected, "clamping, mean over all parameters for their worst sum: the corrected D")?;
    writeln!(out, "the bias of clamping is at most {} of K·C", short(noise.bias))
}

fn print_evaluation(
    out: &mut impl Write,
    name: &str,
    evaluation: &Evaluation,
    gamma: Option<usize>,
) -> io::Result<()> {
    writeln!(out, "\nTheorem 4 with {name}")?;
    match evaluation.bound {
        Some(bound) => {
            let (mu_prime, offset) = (short(bound.mu_prime), short(bound.offset));
            writeln!(
                out,
                "  μ' = {mu_prime}, r = {offset}, η_1 = {}, G = {}",
                short(bound.first_rate),
                short(bound.g)
            )?;
            let (step, loss) = (short(bound.step), short(bound.excess_loss));
            writeln!(out, "  after t = {step} steps it claims E f(w_t) − f* ≤ {loss}")?;
        }
        None => writeln!(out, "  no bound: its condition on μ fails")?,
    }
    let Some(gamma) = gamma else { return Ok(()) };
    let largest = match evaluation.largest_gamma {
        Answer::None => "none, not even γ = 0".to_owned(),
        Answer::Any => "any".to_owned(),
        Answer::Number(0) => "γ = 0 only".to_owned(),
        Answer::Number(number) => format!("γ ≤ {number}"),
    };
    writeln!(out, "  γ that meets the condition, with all other settings unchanged: {largest}")?;
    let least = |answer: Answer| match answer {
        Answer::None => "none".to_owned(),
        Answer::Any => "any".to_owned(),
        Answer::Number(number) => format!("K ≥ {number}"),
    };
    let (now, one) = (least(evaluation.least_clients), least(evaluation.least_clients_at_one));
    writeln!(out, "  K that meets it at γ = {gamma}: {now}; at γ = 1: {one}")
}

fn print_reached(out: &mut impl Write, reached: Option<Reached>, start: Option<f64>) -> io::Result<()> {
    writeln!(
        out,
        "\nwhat can be proved instead for the experiment's own rates, given H and fresh mini-batches"
    )?;
    let Some(reached) = reached else {
        return writeln!(
            out,
            "  no bound: it needs the theorem's noise, normalisation and clamp, and η ≤ 1/(4L)"
        );
    };
    let (distance, loss) = (short(reached.distance_squared), short(reached.excess_loss));
    writeln!(out, "  after all rounds E‖w − w*‖² ≤ {distance}, and the loss exceeds f* by at most {loss}")?;
    if start.is_some_and(|start| reached.distance_squared >= start) {
        writeln!(out, "  this is not below the value at the start: the bound is void")?;
    }
    let (floor, limit) = (short(reached.floor), short(reached.limit_floor));
    writeln!(out, "  floor of E‖w − w*‖² at the last rate: {floor}; for rates that fall to 0: {limit}")
}

fn row(out: &mut impl Write, name: &str, value: &str, meaning: &str) -> io::Result<()> {
    writeln!(out, "{name:<12}{value:<11} {meaning}")
}

/// A number with three significant digits, which are the same on every machine.
fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if (1e-3..1e3).contains(&size) {
        let digits = (2 - size.log10().floor() as i32).max(0) as usize;
        format!("{value:.digits$}")
    } else {
        format!("{value:.2e}")
    }
}
