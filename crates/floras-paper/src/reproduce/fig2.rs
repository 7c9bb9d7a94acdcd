//! Figure 2: compositions of the published bound of one round, and a valid bound.
//!
//! The paper compares three compositions of `T` rounds and states that the Rényi form is the tightest throughout. It
//! states `q` and `γ`; `C = 1`, `p = 1` and `δ = 10⁻⁵` are assumed here. The valid bound is the idealised view of one
//! sample, which is drawn with probability `q/(1 + q)`, and one mini-batch step per round.

use floras_core::Receiver;
use floras_privacy::published::{PublishedComposition, PublishedRound, Weight};
use floras_privacy::{Bounds, MuDistribution, PrivacyError, Sampling, idealised};
use floras_sim::SimError;
use floras_sim::figure::{Axis, Claim, Curve, Figure, Panel, Style, Verdict};
use floras_sim::number::{compact, count};

use super::Workbench;
use super::workbench::Stage;

const CLIP: f64 = 1.0;
const DELTA: f64 = 1e-5;
const MAX_ROUNDS: u64 = 1000;

/// One panel of the figure.
#[derive(Clone, Copy)]
struct Setting {
    letter: char,
    q: f64,
    gamma: u64,
}

const SETTINGS: [Setting; 3] = [
    Setting { letter: 'a', q: 0.05, gamma: 5 },
    Setting { letter: 'b', q: 0.01, gamma: 5 },
    Setting { letter: 'c', q: 0.01, gamma: 10 },
];

const COMPOSITIONS: [(PublishedComposition, &str, Style); 4] = [
    (PublishedComposition::Sequential, "sequential, published", Style::Dashed),
    (PublishedComposition::Advanced, "advanced, published", Style::Dotted),
    (PublishedComposition::Renyi, "Rényi, published", Style::Solid),
    (PublishedComposition::Optimal, "optimal composition of the published round", Style::Dotted),
];

/// Computes figure 2.
pub(crate) fn fig2(bench: &Workbench<'_>) -> Result<Figure, SimError> {
    (bench.watch)(Stage::Working("composing the curves of figure 2"));
    let mut figure = Figure {
        name: "fig2".to_owned(),
        title: "Figure 2: T rounds of the published bound, and what holds".to_owned(),
        text: Vec::new(),
        conventions: conventions(),
        panels: Vec::new(),
        claims: Vec::new(),
        privacy: Vec::new(),
        notes: vec![
            "The four published curves start from a bound of one round that holds for a single coordinate only; they are no \
             guarantee. The curve that holds counts one mini-batch step per round, as the theorem does. If a round is an epoch, \
             as Section VII states, it uses every sample, and the theorem's weight is too small."
                .to_owned(),
            format!(
                "{} p = 1 is K = M, the limit of the stated range and the setting of Section VII.",
                super::CONDITION
            ),
        ],
    };
    let (mut crossovers, mut exceeded) = (Vec::new(), Vec::new());
    for setting in SETTINGS {
        let (panel, claims, crossover) = setting.draw(bench.quick)?;
        crossovers.push(crossover);
        exceeded.push(format!("({}) {}", setting.letter, exceeded_words(&panel)));
        figure.panels.push(panel);
        figure.claims.extend(claims);
    }
    let from = match crossovers.iter().all(|crossover| *crossover == crossovers[0]) {
        true => format!("{} rounds on, in every panel", crossovers[0]),
        false => {
            let each: Vec<String> = crossovers.iter().map(u64::to_string).collect();
            format!("{} rounds on (panels a, b and c)", each.join(", "))
        }
    };
    figure.text.push(format!(
        "The paper states that the Rényi form is the tightest of the three throughout. It is so from {from}; before that, the sum of \
         the rounds' ε is tighter. The optimal composition of the same round is below all three everywhere."
    ));
    figure.text.push(format!(
        "Which form is tightest matters little, because the round that is composed has no such bound. The curve that holds \
         lies above the published one: {}.",
        exceeded.join("; ")
    ));
    Ok(figure)
}

fn conventions() -> Vec<(String, String)> {
    let pairs = [
        ("C", "1 (not stated in the paper)"),
        ("p", "1 (not stated in the paper)"),
        ("δ", "1e-5 (not stated in the paper)"),
        ("one round", "one mini-batch step, a sample drawn with probability q/(1 + q)"),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec()
}

impl Setting {
    fn words(self) -> String {
        format!("q = {}, γ = {}", self.q, self.gamma)
    }

    fn published(self) -> Result<PublishedRound, PrivacyError> {
        PublishedRound::new(Weight::item(self.q, 1.0)?, CLIP, self.gamma as f64)
    }

    /// Lower and upper bound of `ε` after `rounds` rounds.
    fn holds(self, distribution: &MuDistribution, rounds: u64) -> Result<Bounds, PrivacyError> {
        let sampling = Sampling::ReplaceOne(self.q / (1.0 + self.q));
        floras_privacy::Composition::new(distribution, sampling, rounds)?.epsilon(DELTA)
    }

    /// The panel, the claims, and the number of rounds from which on the Rényi form is below the sequential one.
    fn draw(self, quick: bool) -> Result<(Panel, Vec<Claim>, u64), PrivacyError> {
        let round = self.published()?;
        let distribution = idealised(Receiver::Paper, self.gamma, 2.0 * CLIP)?;
        let places = places(if quick { 4 } else { 10 });
        let mut curves = Vec::new();
        for (number, (composition, name, style)) in COMPOSITIONS.into_iter().enumerate() {
            let at = |&rounds: &u64| Ok(Some(round.epsilon(composition, rounds, DELTA)?.as_printed()));
            let y = places.iter().map(at).collect::<Result<_, PrivacyError>>()?;
            curves.push(curve(name, number, style, &places, y));
        }
        let at = |&rounds: &u64| Ok(Some(self.holds(&distribution, rounds)?.upper));
        let y = places.iter().map(at).collect::<Result<_, PrivacyError>>()?;
        curves.push(curve("holds (idealised view)", COMPOSITIONS.len(), Style::Solid, &places, y));
        let panel = Panel {
            name: format!("fig2{}", self.letter),
            title: format!("({}) {}", self.letter, self.words()),
            x: Axis { label: "learning rounds T".to_owned(), logarithmic: true, range: None },
            y: Axis { label: format!("ε at δ = {}", compact(DELTA)), logarithmic: true, range: None },
            curves,
        };
        let crossover = crossover(round)?;
        let mut claims = vec![self.claim_of_crossover(crossover)];
        for rounds in [1, 100, MAX_ROUNDS] {
            claims.push(self.claim_of_guarantee(round, &distribution, rounds)?);
        }
        Ok((panel, claims, crossover))
    }

    fn claim_of_crossover(self, crossover: u64) -> Claim {
        Claim {
            claim: format!("{}: the Rényi form is the tightest, from one round on", self.words()),
            published: Some(1.0),
            ours: Some(crossover as f64),
            ci95: None,
            unit: "rounds".to_owned(),
            verdict: if crossover > 1 { Verdict::False } else { Verdict::Reproduced },
            reason: format!("before round {crossover} the sum T·u is smaller; both are closed forms"),
        }
    }

    fn claim_of_guarantee(
        self,
        round: PublishedRound,
        distribution: &MuDistribution,
        rounds: u64,
    ) -> Result<Claim, PrivacyError> {
        let published = round.epsilon(PublishedComposition::Renyi, rounds, DELTA)?.as_printed();
        let holds = self.holds(distribution, rounds)?;
        let (verdict, reason) = if holds.lower > published {
            (Verdict::False, "a base station that knows the noise level learns more, by exact accounting")
        } else if holds.upper <= published {
            (Verdict::Reproduced, "the published bound is above what holds")
        } else {
            (Verdict::NotReproduced, "it lies between what one pair of neighbours reaches and what is proved")
        };
        Ok(Claim {
            claim: format!("{}: the formula's ε after T = {rounds} is a guarantee", self.words()),
            published: Some(published),
            ours: Some(holds.upper),
            ci95: None,
            unit: "ε".to_owned(),
            verdict,
            reason: reason.to_owned(),
        })
    }
}

/// The numbers of rounds at which a panel's last curve, the valid bound, is above the published Rényi form.
fn exceeded_words(panel: &Panel) -> String {
    let [.., renyi, _, holds] = &panel.curves[..] else { return String::new() };
    let above = |&place: &usize| holds.y[place] > renyi.y[place];
    let places: Vec<usize> = (0..holds.x.len()).filter(above).collect();
    match places.last() {
        None => "nowhere".to_owned(),
        Some(&last) if places.len() == holds.x.len() => {
            format!("everywhere up to {}", count(holds.x[last] as u64, "round"))
        }
        Some(&last) => format!("up to {}", count(holds.x[last] as u64, "round")),
    }
}

/// The first number of rounds for which the Rényi form is below the sum.
fn crossover(round: PublishedRound) -> Result<u64, PrivacyError> {
    for rounds in 1..=MAX_ROUNDS {
        let of = |composition| Ok::<_, PrivacyError>(round.epsilon(composition, rounds, DELTA)?.as_printed());
        if of(PublishedComposition::Renyi)? <= of(PublishedComposition::Sequential)? {
            return Ok(rounds);
        }
    }
    Ok(MAX_ROUNDS)
}

/// Numbers of rounds, about `in_a_decade` per factor of ten.
fn places(in_a_decade: u32) -> Vec<u64> {
    let steps = in_a_decade * MAX_ROUNDS.ilog10();
    let place = |step: u32| 10_f64.powf(f64::from(step) / f64::from(in_a_decade)).round() as u64;
    let mut places: Vec<u64> = (0..=steps).map(place).collect();
    places.dedup();
    places
}

fn curve(name: &str, colour: usize, style: Style, places: &[u64], y: Vec<Option<f64>>) -> Curve {
    let x = places.iter().map(|&rounds| rounds as f64).collect();
    Curve { name: name.to_owned(), colour, style, x, y, band: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_sums_are_tighter_up_to_23_rounds() {
        let found: Vec<u64> =
            SETTINGS.iter().map(|setting| crossover(setting.published().unwrap()).unwrap()).collect();
        assert_eq!(found[0], 24);
        // 2·ln(1/δ) = 23.03: for small u the forms meet where √(2·ln(1/δ)/T) = 1.
        assert_eq!(found[1..], [24, 24]);
    }

    #[test]
    fn places_go_from_one_round_to_the_last() {
        let places = places(4);
        assert_eq!((places[0], places[places.len() - 1]), (1, MAX_ROUNDS));
        assert!(places.is_sorted_by(|a, b| a < b));
    }
}
