//! The frontier's text, with the measured numbers.

use floras_core::{Rounding, View};
use floras_sim::Estimate;

use super::contest::{Contender, Contest};
use super::trust::{Protection, Trust};
use super::{EPSILON, Grid};

/// Points of accuracy below the same training without noise that still count as useful.
const USEFUL: f64 = 2.0;

/// The paragraphs on the result and on its cost.
pub(super) fn paragraphs(grid: &Grid, contest: &Contest) -> Vec<String> {
    vec![answer(grid, contest), price(grid, contest)]
}

/// The smallest number of clients from which on a contender is useful; `None` if it never is.
fn useful_from(grid: &Grid, contest: &Contest, contender: Contender) -> Option<u32> {
    from_which_on(grid, |point| contest.loss(contender, View::Actual, point))
}

/// The smallest number of clients from which on the loss of accuracy is small enough; `None` if it never is.
fn from_which_on(grid: &Grid, loss: impl Fn((u32, u32)) -> Option<Estimate>) -> Option<u32> {
    let useful = |&&clients: &&u32| loss((clients, EPSILON)).is_some_and(|lost| lost.mean <= USEFUL);
    grid.clients.iter().rev().take_while(useful).last().copied()
}

/// A name within a sentence.
fn name(contender: Contender) -> &'static str {
    match contender {
        Contender::Central => "central Gaussian noise of a trusted server",
        Contender::Inversion => "channel inversion with artificial noise",
        Contender::Clipped => "FLORAS with the clipped projector",
        Contender::Mmse => "FLORAS with the MMSE receiver",
        Contender::Paper => "FLORAS with the paper's receiver",
    }
}

/// Whether transmission over the air costs anything compared with a trusted server, by the number of clients that the
/// clipped projector needs.
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
                "Privacy with utility exists over the air {receiver}, {beside}: K = {clients} or more per round here."
            )
        }
    }
}

/// Contenders that are useful from the same number of clients on, in the order of their list.
fn groups<C: Copy>(contenders: &[C], useful_from: impl Fn(C) -> Option<u32>) -> Vec<(Option<u32>, Vec<C>)> {
    let mut groups: Vec<(Option<u32>, Vec<C>)> = Vec::new();
    for &contender in contenders {
        let from = useful_from(contender);
        match groups.iter_mut().find(|(other, _)| *other == from) {
            Some((_, members)) => members.push(contender),
            None => groups.push((from, vec![contender])),
        }
    }
    groups
}

fn answer(grid: &Grid, contest: &Contest) -> String {
    let fewest = grid.clients.first().copied().unwrap_or_default();
    let groups = groups(grid.contenders, |contender| useful_from(grid, contest, contender));
    let accuracy = |contender| contest.accuracy(contender, View::Actual, (grid.example, EPSILON));
    let lines = lines(grid, &groups, |contender| name(contender).to_owned(), accuracy);
    let best = grid
        .contenders
        .iter()
        .filter_map(|&contender| contest.accuracy(contender, View::Actual, (fewest, EPSILON)))
        .max_by(|a, b| a.mean.total_cmp(&b.mean));
    let none = "nothing".to_owned();
    format!(
        "{} At ε = {EPSILON} for every client after all {} rounds (δ = {:e}, actual view), these are within {USEFUL} points of \
         the same training without noise: {}. In brackets is the accuracy with {} clients, where training without noise has \
         {}. With {fewest} clients the best is {}, against {} without noise.",
        opening(grid, contest),
        contest.rounds(),
        contest.delta(),
        lines,
        grid.example,
        contest.ideal(grid.example).map_or(none.clone(), percent),
        best.map_or(none.clone(), percent),
        contest.ideal(fewest).map_or(none, percent),
    )
}

fn percent(accuracy: Estimate) -> String {
    format!("{:.1}%", 100.0 * accuracy.mean)
}

/// The numbers of clients from which on contenders are useful, and their accuracy with the example's clients.
fn lines<C: Copy>(
    grid: &Grid,
    groups: &[(Option<u32>, Vec<C>)],
    name: impl Fn(C) -> String,
    accuracy: impl Fn(C) -> Option<Estimate>,
) -> String {
    let most = grid.clients.last().copied().unwrap_or_default();
    let line = |(from, members): &(Option<u32>, Vec<C>)| {
        let from = match from {
            Some(clients) => format!("from K = {clients} clients per round on"),
            None => format!("not up to K = {most}"),
        };
        let at_example = |contender: C| accuracy(contender).map_or("no setting".to_owned(), percent);
        let each: Vec<String> =
            members.iter().map(|&member| format!("{} ({})", name(member), at_example(member))).collect();
        format!("{from}, {}", each.join(", "))
    };
    groups.iter().map(line).collect::<Vec<String>>().join("; ")
}

/// Ratios of the median and the worst noise.
fn both(ratios: [f64; 2]) -> String {
    ratios.map(|ratio| if ratio < 10.0 { format!("{ratio:.2}") } else { format!("{ratio:.0}") }).join(" and ")
}

fn price(grid: &Grid, contest: &Contest) -> String {
    let point = (grid.example, EPSILON);
    let noise = |contender| match contest.noise_ratios(contender, View::Actual, point) {
        None => "no setting".to_owned(),
        Some(ratios) => format!("{} times", both(ratios)),
    };
    let spent = |&contender: &Contender| {
        let choice = contest.get(contender, View::Actual, point)?.choice?;
        let unused = choice.sequences - u64::from(grid.example);
        Some(format!(
            "{unused} unused sequences and {} chips per value under {}",
            choice.length,
            name(contender)
        ))
    };
    let spent: Vec<String> = grid.contenders.iter().filter_map(spent).collect();
    let stated = |contender, view| {
        let measured = contest.get(contender, View::Actual, point)?;
        let epsilon = measured.record.summary.privacy.views.get(view)?.epsilon?;
        Some(match epsilon < 1e4 {
            true => Rounding::Up.fixed(epsilon, 1),
            false => Rounding::Up.scientific(epsilon, 0),
        })
    };
    let worst_channel = |&contender: &Contender| {
        contender.receiver()?;
        Some(format!("{} under {}", stated(contender, View::AnyChannel)?, name(contender)))
    };
    let worst_channel: Vec<String> = grid.contenders.iter().filter_map(worst_channel).collect();
    let raw = |contender| {
        stated(contender, View::RawSignal)
            .map_or_else(|| "no finite ε".to_owned(), |bound| format!("ε = {bound}"))
    };
    format!(
        "The noise explains this. With {} clients, the clipped projector has in the median round and in the worst of 100 rounds {} \
         the noise of the central optimum, the paper's receiver {}, because it divides by pilot estimates that may be close \
         to zero. The price is bandwidth: {}. For the worst channels, the same settings have an ε of \
         {}. The trust differs: against a base station that keeps its raw samples, FLORAS has {}, and channel inversion, whose \
         clients must add their noise honestly, has {}.",
        grid.example,
        noise(Contender::Clipped),
        noise(Contender::Paper),
        spent.join(", "),
        worst_channel.join(", "),
        raw(Contender::Clipped),
        raw(Contender::Inversion),
    )
}

/// A name within a sentence.
fn protection_name(protection: Protection) -> String {
    match protection {
        Protection::Central => name(Contender::Central).to_owned(),
        Protection::Inversion => name(Contender::Inversion).to_owned(),
        Protection::Masks { antennas: 1 } => "masks with 1 antenna".to_owned(),
        Protection::Masks { antennas } => format!("masks with {antennas} antennas"),
        Protection::LocalNoise => "local noise without masks".to_owned(),
    }
}

/// The cost of a base station that is not trusted.
pub(super) fn at_equal_trust(grid: &Grid, trust: &Trust<'_>) -> String {
    let point = (grid.example, EPSILON);
    let groups =
        groups(grid.protections, |protection| from_which_on(grid, |point| trust.loss(protection, point)));
    let useful = lines(grid, &groups, protection_name, |protection| trust.accuracy(protection, point));
    let noise = |&protection: &Protection| {
        let ratios = trust.noise_ratios(protection, point)?;
        Some(format!("{} for {}", both(ratios), protection_name(protection)))
    };
    let noise: Vec<String> = grid.protections.iter().filter_map(noise).collect();
    let added = |&protection: &Protection| {
        let masks = trust.masks(protection, point).filter(|masks| masks.mask_std() > 0.0)?;
        Some(format!(
            "{:.1} and {:.2} for {}",
            masks.mask_std(),
            masks.noise_std(),
            protection_name(protection)
        ))
    };
    let added: Vec<String> = grid.protections.iter().filter_map(added).collect();
    let without = trust.contest().ideal(grid.example).map_or("nothing".to_owned(), percent);
    format!(
        "At equal trust, the base station is the adversary: it keeps its raw samples, and every client sends symbols of unit power, \
         including its own noise and masks. At ε = {EPSILON} in the raw-signal view, these are within {USEFUL} points of the same \
         training without noise: {useful}. In brackets is the accuracy with {} clients, where training without noise has \
         {without}. With these clients, the ratio of the noise in the sum to that of the central optimum, in the median round and \
         in the worst of 100 rounds, is {}. The standard deviations σ_m of the masks and σ_z of a client's own noise are {}. Masks need no channel \
         knowledge at the clients; channel inversion does.",
        grid.example,
        noise.join(", "),
        added.join(", "),
    )
}
