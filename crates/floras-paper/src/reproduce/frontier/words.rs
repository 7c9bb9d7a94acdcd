//! What the frontier says, in words made of what was measured.

use floras_core::View;

use super::contest::{Contender, Contest};
use super::{EPSILON, Grid};

/// Points of accuracy below the same training without noise that still count as useful.
const USEFUL: f64 = 2.0;

/// The answer, and what it costs.
pub(super) fn paragraphs(grid: &Grid, contest: &Contest) -> Vec<String> {
    vec![answer(grid, contest), price(grid, contest)]
}

/// The fewest clients from which on a contender is useful; `None` if it never is.
fn useful_from(grid: &Grid, contest: &Contest, contender: Contender) -> Option<u32> {
    let useful = |&&clients: &&u32| {
        contest.loss(contender, View::Actual, (clients, EPSILON)).is_some_and(|lost| lost.mean <= USEFUL)
    };
    grid.clients.iter().rev().take_while(useful).last().copied()
}

/// A name within a sentence.
fn name(contender: Contender) -> &'static str {
    match contender {
        Contender::Central => "central Gaussian noise (the optimum of a trusted server)",
        Contender::Inversion => "channel inversion with artificial noise",
        Contender::Clipped => "FLORAS with the clipped projector",
        Contender::Mmse => "FLORAS with the MMSE receiver",
        Contender::Paper => "FLORAS with the paper's receiver",
    }
}

/// Whether the air costs anything beside a trusted server, by the number of clients that the clipped projector needs.
fn opening(grid: &Grid, contest: &Contest) -> String {
    let [central, clipped, paper] = [Contender::Central, Contender::Clipped, Contender::Paper]
        .map(|contender| useful_from(grid, contest, contender));
    match (clipped, central) {
        (None, _) => {
            "Private training with utility is out of FLORAS's reach for all numbers of clients that were tried."
                .to_owned()
        }
        (Some(clients), central) => {
            let beside = match central {
                Some(central) if central < clients => "but from more clients on than with a trusted server",
                Some(central) if central == clients => "from as many clients on as with a trusted server",
                _ => "from no more clients on than with a trusted server",
            };
            let receiver = if paper == clipped {
                "with the paper's receiver, too"
            } else {
                "with a receiver that bounds its weights"
            };
            format!(
                "Privacy with utility exists over the air {receiver}, {beside}: K = {clients} or more a round here."
            )
        }
    }
}

/// Contenders that are useful from the same number of clients on, in the order of their list.
fn groups(grid: &Grid, contest: &Contest) -> Vec<(Option<u32>, Vec<Contender>)> {
    let mut groups: Vec<(Option<u32>, Vec<Contender>)> = Vec::new();
    for &contender in grid.contenders {
        let from = useful_from(grid, contest, contender);
        match groups.iter_mut().find(|(other, _)| *other == from) {
            Some((_, members)) => members.push(contender),
            None => groups.push((from, vec![contender])),
        }
    }
    groups
}

fn answer(grid: &Grid, contest: &Contest) -> String {
    let most = grid.clients.last().copied().unwrap_or_default();
    let fewest = grid.clients.first().copied().unwrap_or_default();
    let percent = |accuracy: floras_sim::Estimate| format!("{:.1}%", 100.0 * accuracy.mean);
    let at_example = |members: &[Contender]| {
        let accuracy = |&contender: &Contender| {
            contest.accuracy(contender, View::Actual, (grid.example, EPSILON)).map(percent)
        };
        let mut each: Vec<String> =
            members.iter().map(|contender| accuracy(contender).unwrap_or("no setting".to_owned())).collect();
        each.dedup();
        each.join(", ")
    };
    let line = |(from, members): &(Option<u32>, Vec<Contender>)| {
        let from = match from {
            Some(clients) => format!("from K = {clients} clients a round on"),
            None => format!("not up to K = {most}"),
        };
        let names: Vec<&str> = members.iter().map(|&contender| name(contender)).collect();
        format!("{from}, {} ({})", names.join(", "), at_example(members))
    };
    let lines: Vec<String> = groups(grid, contest).iter().map(line).collect();
    let best = grid
        .contenders
        .iter()
        .filter_map(|&contender| contest.accuracy(contender, View::Actual, (fewest, EPSILON)))
        .max_by(|a, b| a.mean.total_cmp(&b.mean));
    let none = "nothing".to_owned();
    format!(
        "{} At ε = {EPSILON} for every client after all {} rounds (δ = {:e}, actual view), these come within {USEFUL} points of \
         the same training without noise: {}. In brackets is the accuracy with {} clients, where training without noise has \
         {}. With {fewest} clients the best is {}, against {} without noise.",
        opening(grid, contest),
        contest.rounds(),
        contest.delta(),
        lines.join("; "),
        grid.example,
        contest.ideal(grid.example).map_or(none.clone(), percent),
        best.map_or(none.clone(), percent),
        contest.ideal(fewest).map_or(none, percent),
    )
}

fn price(grid: &Grid, contest: &Contest) -> String {
    let point = (grid.example, EPSILON);
    let ratio = |ratio: f64| if ratio < 10.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") };
    let noise = |contender| match contest.noise_ratios(contender, View::Actual, point) {
        None => "no setting".to_owned(),
        Some([median, worst]) => format!("{} and {} times", ratio(median), ratio(worst)),
    };
    let spent = |&contender: &Contender| {
        let choice = contest.get(contender, View::Actual, point)?.choice?;
        let unused = choice.sequences - u64::from(grid.example);
        Some(format!(
            "{unused} unused sequences and {} chips a value under {}",
            choice.length,
            name(contender)
        ))
    };
    let spent: Vec<String> = grid.contenders.iter().filter_map(spent).collect();
    let told = |contender, view| {
        let measured = contest.get(contender, View::Actual, point)?;
        let epsilon = measured.record.summary.privacy.views.get(view)?.epsilon?;
        Some(if epsilon < 1e4 { format!("{epsilon:.1}") } else { format!("{epsilon:.0e}") })
    };
    let worst_channel = |&contender: &Contender| {
        contender.receiver()?;
        Some(format!("{} under {}", told(contender, View::AnyChannel)?, name(contender)))
    };
    let worst_channel: Vec<String> = grid.contenders.iter().filter_map(worst_channel).collect();
    let raw = |contender| told(contender, View::RawSignal).unwrap_or_else(|| "no bound".to_owned());
    format!(
        "The noise says why. With {} clients, the clipped projector has in the median round and in the worst of 100 rounds {} \
         the noise of the central optimum, the paper's receiver {}, because it divides by pilot estimates that may be close \
         to zero. The price is bandwidth: {}. If the channels are the worst that there are, the same settings have an ε of \
         {}. The trust differs: a base station that keeps its raw samples has an ε of {} under FLORAS, and of {} under \
         channel inversion, whose clients must add their noise honestly.",
        grid.example,
        noise(Contender::Clipped),
        noise(Contender::Paper),
        spent.join(", "),
        worst_channel.join(", "),
        raw(Contender::Clipped),
        raw(Contender::Inversion),
    )
}
