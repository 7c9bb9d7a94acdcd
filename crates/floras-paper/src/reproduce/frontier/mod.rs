//! The frontier: test accuracy at equal client-level `ε` after all rounds, for every scheme and receiver.
//!
//! The frontier shows for which numbers of clients per round training is both private and useful. It also shows the distance of
//! each scheme to central Gaussian noise, the optimum for a trusted server. FLORAS uses the smallest number of unused sequences
//! that meets `ε` in a view, channel inversion the artificial noise of its admitted clients, and the server the least noise. All
//! schemes train with the settings of the preset `frontier`. [`trust`] compares schemes whose base station is not trusted with its
//! own samples.

mod choice;
mod contest;
mod trust;
mod words;

#[cfg(test)]
mod tests;

use floras_core::View;

use self::choice::MAX_LENGTH;
use self::contest::{Contender, Contest};
use self::trust::{Protection, Trust};
use super::workbench::Workbench;
use floras_sim::figure::{Axis, Curve, Figure, Panel, PrivacyRow, Style};
use floras_sim::number::compact;
use floras_sim::{Estimate, SimError};

/// The `ε` at which numbers of clients are compared.
const EPSILON: u32 = 8;

/// The points of the figure.
struct Grid {
    /// Values of `K` at [`EPSILON`], in ascending order.
    clients: &'static [u32],
    /// The values of `ε` for the clients in `sweeps`.
    epsilons: &'static [u32],
    /// Values of `K` for which `ε` varies.
    sweeps: &'static [u32],
    /// The `K` of examples; one of `clients`.
    example: u32,
    contenders: &'static [Contender],
    /// The protections that are compared in the raw-signal view.
    protections: &'static [Protection],
    trials: u32,
}

const FULL: Grid = Grid {
    clients: &[20, 50, 100, 200, 500, 1000, 2000],
    epsilons: &[1, 2, 4, 8, 16, 32],
    sweeps: &[200, 1000],
    example: 200,
    contenders: &Contender::ALL,
    protections: &Protection::ALL,
    trials: 5,
};
/// The same number of rounds, so that verdicts agree; fewer points, contenders and trials.
const QUICK: Grid = Grid {
    clients: &[50, 500],
    epsilons: &[],
    sweeps: &[],
    example: 500,
    contenders: &[Contender::Central, Contender::Inversion, Contender::Clipped, Contender::Paper],
    protections: &Protection::ALL,
    trials: 2,
};

/// The views in which `ε` is met, with the style of their curves.
const VIEWS: [(View, Style); 2] = [(View::Idealised, Style::Solid), (View::Actual, Style::Dashed)];

impl Grid {
    /// All pairs of `K` and `ε`, without repetition.
    fn points(&self) -> Vec<(u32, u32)> {
        let across = self.clients.iter().map(|&clients| (clients, EPSILON));
        let along = self.sweeps.iter().flat_map(|&clients| self.epsilons.iter().map(move |&e| (clients, e)));
        let mut points: Vec<(u32, u32)> = across.chain(along).collect();
        points.sort_unstable();
        points.dedup();
        points
    }
}

/// Runs the experiments of the frontier and draws its panels.
pub(crate) fn frontier(bench: &Workbench<'_>) -> Result<Figure, SimError> {
    let grid = if bench.quick { QUICK } else { FULL };
    let contest = Contest::run(bench, &grid)?;
    let trust = Trust::measure(bench, &grid, &contest)?;
    let mut panels = vec![clients_panel(&grid, &contest)];
    panels.extend(grid.sweeps.iter().map(|&clients| epsilon_panel(&grid, &contest, clients)));
    panels.extend(grid.sweeps.last().map(|&clients| noise_panel(&grid, &contest, clients)));
    panels.extend(trust.panels(&grid));
    let mut text = words::paragraphs(&grid, &contest);
    text.push(words::at_equal_trust(&grid, &trust));
    let mut conventions = conventions(&contest);
    conventions.extend(trust::conventions());
    let mut privacy = privacy(&grid, &contest);
    privacy.extend(trust.privacy(&grid));
    let mut notes = notes();
    notes.extend(trust::notes());
    Ok(Figure {
        name: "frontier".to_owned(),
        title: "The frontier: accuracy at equal privacy".to_owned(),
        text,
        conventions,
        panels,
        claims: Vec::new(),
        privacy,
        notes,
    })
}

/// A curve of percentages, with one value per place.
fn curve(name: String, colour: usize, style: Style, x: &[u32], y: impl Fn(u32) -> Option<Estimate>) -> Curve {
    let values: Vec<Option<Estimate>> = x.iter().map(|&x| y(x)).collect();
    let band = |value: &Option<Estimate>| {
        let Estimate { mean, ci95 } = (*value)?;
        let half = ci95?;
        Some((100.0 * (mean - half).max(0.0), 100.0 * (mean + half).min(1.0)))
    };
    Curve {
        name,
        colour,
        style,
        x: x.iter().map(|&x| x.into()).collect(),
        y: values.iter().map(|value| value.map(|value| 100.0 * value.mean)).collect(),
        band: Some(values.iter().map(band).collect()),
    }
}

/// The curves of all contenders over some places, each of which stands for a `K` and an `ε`.
fn accuracy_curves(
    grid: &Grid,
    contest: &Contest,
    x: &[u32],
    point: impl Fn(u32) -> (u32, u32),
) -> Vec<Curve> {
    let ideal = |x: u32| contest.ideal(point(x).0);
    let mut curves = vec![curve("no noise".to_owned(), 0, Style::Dotted, x, ideal)];
    for &contender in grid.contenders {
        for (view, style) in VIEWS {
            let name = match contender.receiver() {
                // The setting is the same in both views.
                None if view == View::Actual => continue,
                None => contender.words().to_owned(),
                Some(_) => format!("{}, {view}", contender.words()),
            };
            let y = |x: u32| contest.accuracy(contender, view, point(x));
            curves.push(curve(name, contender.colour(), style, x, y));
        }
    }
    curves
}

fn accuracy_axis() -> Axis {
    Axis { label: "test accuracy (%)".to_owned(), logarithmic: false, range: Some((0.0, 100.0)) }
}

fn clients_panel(grid: &Grid, contest: &Contest) -> Panel {
    Panel {
        name: "frontier-clients".to_owned(),
        title: format!(
            "Accuracy at equal privacy: ε = {EPSILON} after {} rounds, δ = {}",
            contest.rounds(),
            compact(contest.delta())
        ),
        x: Axis { label: "clients per round, K".to_owned(), logarithmic: true, range: None },
        y: accuracy_axis(),
        curves: accuracy_curves(grid, contest, grid.clients, |clients| (clients, EPSILON)),
    }
}

fn epsilon_panel(grid: &Grid, contest: &Contest, clients: u32) -> Panel {
    Panel {
        name: format!("frontier-epsilon-{clients}"),
        title: format!("Accuracy with {clients} clients per round"),
        x: epsilon_axis(contest),
        y: accuracy_axis(),
        curves: accuracy_curves(grid, contest, grid.epsilons, |epsilon| (clients, epsilon)),
    }
}

fn epsilon_axis(contest: &Contest) -> Axis {
    let label = format!("ε after {} rounds, δ = {}", contest.rounds(), compact(contest.delta()));
    Axis { label, logarithmic: true, range: None }
}

/// The noise of each contender, relative to that of the optimum.
fn noise_panel(grid: &Grid, contest: &Contest, clients: u32) -> Panel {
    let mut curves = Vec::new();
    for &contender in grid.contenders {
        let ratios = |&epsilon: &u32| contest.noise_ratios(contender, View::Actual, (clients, epsilon));
        let ratios: Vec<Option<[f64; 2]>> = grid.epsilons.iter().map(ratios).collect();
        curves.extend(noise_curves(contender.words(), contender.colour(), grid.epsilons, &ratios));
    }
    Panel {
        name: "frontier-noise".to_owned(),
        title: format!("Noise over that of the central optimum, {clients} clients per round"),
        x: epsilon_axis(contest),
        y: ratio_axis(),
        curves,
    }
}

fn ratio_axis() -> Axis {
    Axis { label: "ratio of standard deviations".to_owned(), logarithmic: true, range: None }
}

/// Median and worst round of the noise, at some places.
fn noise_curves(name: &str, colour: usize, x: &[u32], ratios: &[Option<[f64; 2]>]) -> [Curve; 2] {
    [(0, "median round", Style::Solid), (1, "worst round of 100", Style::Dashed)].map(
        |(place, words, style)| Curve {
            name: format!("{name}, {words}"),
            colour,
            style,
            x: x.iter().map(|&x| x.into()).collect(),
            y: ratios.iter().map(|ratios| ratios.map(|ratios| ratios[place])).collect(),
            band: None,
        },
    )
}

/// Every view of the settings that meet [`EPSILON`] in the actual view, for the example's clients.
fn privacy(grid: &Grid, contest: &Contest) -> Vec<PrivacyRow> {
    let clients = grid.example;
    let row = |&contender: &Contender| {
        let measured = contest.get(contender, View::Actual, (clients, EPSILON))?;
        let report = &measured.record.summary.privacy;
        let sequences = measured.choice.map_or(String::new(), |choice| {
            format!(", {} sequences of {} chips", choice.sequences, choice.length)
        });
        Some(PrivacyRow {
            curve: format!("{}, K = {clients}{sequences}", contender.words()),
            rounds: report.rounds,
            delta: report.delta,
            views: report.views.clone(),
        })
    };
    grid.contenders.iter().filter_map(row).collect()
}

fn conventions(contest: &Contest) -> Vec<(String, String)> {
    let settings = contest.settings();
    let clip = settings.privacy.clip.unwrap_or_default();
    [
        ("task", "logistic regression on the embedded digits, 4,000 of them distributed at random (IID); every client takes part in every round".to_owned()),
        ("C, clip norm", format!("{clip}, each update on its own")),
        ("T, learning rounds", contest.rounds().to_string()),
        ("learning rate", "1, with which nearly every update reaches the clip norm".to_owned()),
        ("δ", compact(contest.delta())),
        ("channel", "Rayleigh fading, phases corrected, 20 dB over the L chips of a symbol".to_owned()),
        ("L, chips in a sequence", format!("the next power of two from N on and not below that of the clipped projector, up to {MAX_LENGTH}")),
        ("clipped projector", "c = 1".to_owned()),
        ("channel inversion", "power limited by the worst admitted client, bandwidth of the clipped projector".to_owned()),
        ("B, bound of decoded values", "3·K·C/√d; for the paper's receiver also K·C/√d, and the better of the two".to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .to_vec()
}

fn notes() -> Vec<String> {
    vec![
        "Rate, rounds and clip norm were chosen once, by what central Gaussian noise can do with them, and not for each scheme. \
         The truncation is the exception: the paper's receiver is run with two bounds, and the one with the higher test \
         accuracy is reported, which favours it."
            .to_owned(),
        "Channel inversion has a guarantee in the idealised view, which holds for every channel; its actual view is an estimate. \
         Its clients must be honest, FLORAS's base station must be, and central noise needs a server that is trusted with \
         every update. The power that its clients spend on artificial noise is not charged to them: with few clients or a \
         small ε it is above that of the signal, which favours channel inversion. At equal trust it is charged."
            .to_owned(),
        format!("A gap in a curve means that no N up to {MAX_LENGTH} meets the ε in that view."),
        "The same 4,000 samples are distributed over more and more clients, and every client's step is clipped to the same norm. \
         With more clients, training therefore makes less progress in 40 rounds, with and without noise. Curves under one seed share the draws of \
         their noise and differ in its strength: where strengths agree, so do accuracies."
            .to_owned(),
        format!("{} All clients take part in every round here, so that K = M and p = 1.", super::CONDITION),
        super::INTERVALS.to_owned(),
    ]
}
