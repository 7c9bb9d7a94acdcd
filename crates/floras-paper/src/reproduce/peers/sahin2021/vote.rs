//! Equations 24 and 25: the probability of a wrong vote.
//!
//! With the power `λ` of a client's signal, `ξ = E_s·λ/σ_n²` and `E_s = 2`, a vote of which `K₊` of `K` clients are right is wrong with
//! the probability
//!
//! ```text
//! ((K − K₊) + 1/ξ)/(K + 2/ξ)                                (24)
//! (1/(ξK) + q)/(1 + 2/(ξK))   if each client errs with probability q,  K₊ ~ Bin(K, 1 − q)      (25)
//! ```
//!
//! The uplink of this project has equal mean powers: it has `λ` as part of its SNR.

use floras_core::random::{Purpose, StreamName};
use floras_core::{Snr, SnrConvention};
use floras_phy::{Aggregation, FskVote, FskVoteSettings, Round};
use floras_sim::SimError;
use floras_sim::figure::{Axis, Claim, Panel, Style};
use rand::RngExt;

use super::super::super::finding::{Finding, is_near};
use super::super::{axis, exact, measured};
use super::cell::{cell, equation_16};

/// Clients that send the wrong sign.
const ERRORS: Purpose = Purpose(82);
/// Positions of clients with unequal powers.
const PLACES: Purpose = Purpose(83);

const CLIENTS: u32 = 50;
/// Outer radius of the cell, in metres.
const OUTER: f64 = 100.0;
/// Effective path-loss exponents: the paper's power control with β = 4 and β = 2, at α = 4.
const EXPONENTS: [(f64, &str); 2] = [(0.0, "β = 4"), (2.0, "β = 2")];
/// SNR of a client at the reference distance, in dB. The paper has 20 dB.
const SNRS_DB: [f64; 7] = [-20.0, -10.0, 0.0, 10.0, 20.0, 30.0, 40.0];
/// Places in [`SNRS_DB`]: where noise matters, and that of the paper.
const CLAIMED: [usize; 2] = [2, 4];
/// Probability `q` that a client sends the wrong sign.
const WRONG: f64 = 0.2;
/// Clients that are right in the claims on equation 24.
const RIGHT: u32 = 45;
/// Parameters in one round.
const PARAMETERS: usize = 20_000;
/// Margin of the claims, in percent of all votes.
const MARGIN: f64 = 0.4;

fn equation_24(right: f64, clients: f64, xi: f64) -> f64 {
    (clients - right + 1.0 / xi) / (clients + 2.0 / xi)
}

fn equation_25(wrong: f64, clients: f64, xi: f64) -> f64 {
    (1.0 / (xi * clients) + wrong) / (1.0 + 2.0 / (xi * clients))
}

fn xi(a: f64, snr_db: f64) -> f64 {
    FskVote::ENERGY * equation_16(a, OUTER) * 10_f64.powf(snr_db / 10.0)
}

/// The uplink whose clients arrive with the mean power of the cell.
fn uplink(a: f64, snr_db: f64) -> Result<FskVote, SimError> {
    let snr = Snr::new(snr_db + 10.0 * equation_16(a, OUTER).log10(), SnrConvention::ComplexSymbol)?;
    Ok(FskVote::new(FskVoteSettings { step: 1.0, length: 1, snr })?)
}

/// The sign that parameter `place` should have. Both signs are equally frequent.
fn right_sign(place: usize) -> f32 {
    if place.is_multiple_of(2) { 1.0 } else { -1.0 }
}

/// Updates with the sign that a client sends; `is_right` decides for each of its parameters.
fn updates(mut is_right: impl FnMut(u32) -> bool) -> Vec<Vec<f32>> {
    let update = |client| {
        let sign = |place| if is_right(client) { right_sign(place) } else { -right_sign(place) };
        (0..PARAMETERS).map(sign).collect()
    };
    (0..CLIENTS).map(update).collect()
}

/// Percentage of wrong votes in one round.
fn wrong_votes(uplink: &FskVote, seed: u64, trial: u16, updates: &[Vec<f32>]) -> Result<f64, SimError> {
    let clients: Vec<u32> = (0..CLIENTS).collect();
    let sum = Aggregation::default().run(uplink, Round::new(seed, trial, 1, &clients)?, updates)?.sum;
    let wrong = sum.iter().enumerate().filter(|(place, vote)| **vote * right_sign(*place) < 0.0);
    Ok(100.0 * wrong.count() as f64 / PARAMETERS as f64)
}

/// Percentages of wrong votes: `[exponent][SNR][trial]` for clients that err at random, `[SNR][trial]` for a fixed number of right clients.
pub(super) struct Votes {
    random: Vec<Vec<Vec<f64>>>,
    fixed: Vec<Vec<f64>>,
    /// With clients at drawn places and β = 2.
    placed: Vec<Vec<f64>>,
}

impl Votes {
    pub(super) fn draw(seed: u64, trials: u16) -> Result<Self, SimError> {
        let mut votes = Self {
            random: vec![vec![Vec::new(); SNRS_DB.len()]; EXPONENTS.len()],
            fixed: vec![Vec::new(); SNRS_DB.len()],
            placed: vec![Vec::new(); SNRS_DB.len()],
        };
        let with_right = updates(|client| client < RIGHT);
        for trial in 0..trials {
            let mut errors = StreamName::new(seed, ERRORS).trial(trial).stream();
            let with_errors = updates(|_| errors.random::<f64>() >= WRONG);
            let placed = placed(seed, trial)?;
            for (place, snr_db) in SNRS_DB.into_iter().enumerate() {
                for ((a, _), random) in EXPONENTS.iter().zip(&mut votes.random) {
                    random[place].push(wrong_votes(&uplink(*a, snr_db)?, seed, trial, &with_errors)?);
                }
                let uplink = uplink(EXPONENTS[1].0, snr_db)?;
                votes.fixed[place].push(wrong_votes(&uplink, seed, trial, &with_right)?);
                votes.placed[place].push(placed[place]);
            }
        }
        Ok(votes)
    }

    pub(super) fn claims(&self) -> Vec<Claim> {
        let clients = f64::from(CLIENTS);
        let claim = |claim: &str, formula: f64, ours: &[f64]| {
            Finding {
                claim,
                published: Some(formula),
                ours: ours.to_vec(),
                unit: "%",
                agrees: &is_near(formula, MARGIN),
                reason: format!("decoded votes of this project's uplink against the formula; the margin is {MARGIN} points"),
            }
            .judge()
        };
        let mut claims = Vec::new();
        for place in CLAIMED {
            let (snr_db, (a, control)) = (SNRS_DB[place], EXPONENTS[1]);
            let (setting, xi) = (format!("K = {CLIENTS}, {control}, {snr_db} dB at 10 m"), xi(a, snr_db));
            claims.push(claim(
                &format!(
                    "Equation 24: probability of a wrong vote if {RIGHT} clients are right (%, {setting})"
                ),
                100.0 * equation_24(f64::from(RIGHT), clients, xi),
                &self.fixed[place],
            ));
            claims.push(claim(
                &format!("Equation 25: probability of a wrong vote if each client errs with q = {WRONG} (%, {setting})"),
                100.0 * equation_25(WRONG, clients, xi),
                &self.random[1][place],
            ));
        }
        claims
    }

    /// The largest difference between equation 25 and clients at drawn places, in percent of the votes: the SNR in dB, the formula, and the
    /// mean of ours.
    pub(super) fn largest_difference_of_places(&self) -> (f64, f64, f64) {
        let at = |(place, trials): (usize, &Vec<f64>)| {
            let formula = 100.0 * equation_25(WRONG, f64::from(CLIENTS), xi(EXPONENTS[1].0, SNRS_DB[place]));
            (SNRS_DB[place], formula, trials.iter().sum::<f64>() / trials.len() as f64)
        };
        let apart = |point: &(f64, f64, f64)| (point.1 - point.2).abs();
        let larger = |one, other| if apart(&other) > apart(&one) { other } else { one };
        self.placed.iter().enumerate().map(at).fold((f64::NAN, 0.0, 0.0), larger)
    }

    pub(super) fn panel(&self) -> Panel {
        let mut curves = Vec::new();
        for (colour, ((a, control), random)) in EXPONENTS.iter().zip(&self.random).enumerate() {
            let formula =
                SNRS_DB.map(|snr_db| 100.0 * equation_25(WRONG, f64::from(CLIENTS), xi(*a, snr_db)));
            let points = SNRS_DB.into_iter().zip(formula);
            curves.push(exact(&format!("equation 25, {control}"), colour, Style::Dashed, points));
            curves.push(measured(
                &format!("decoded votes, {control}"),
                colour,
                Style::Solid,
                &SNRS_DB,
                random,
            ));
        }
        curves.push(measured("clients at drawn places, β = 2", 2, Style::Dotted, &SNRS_DB, &self.placed));
        Panel {
            name: "sahin2021-votes".to_owned(),
            title: "Equation 25: wrong votes".to_owned(),
            x: axis("SNR at 10 m (dB)", false),
            y: Axis { range: Some((0.0, 60.0)), ..axis("wrong votes (%)", false) },
            curves,
        }
    }
}

/// Percentages of wrong votes at every SNR with clients at drawn places, β = 2. Given the places and the votes, both energies are exponential,
/// so that the probability of a wrong vote is known; it is averaged over 2,000 parameters with places of their own.
fn placed(seed: u64, trial: u16) -> Result<Vec<f64>, SimError> {
    const DRAWS: u32 = 2_000;
    let cell = cell(EXPONENTS[1].0, OUTER)?;
    let at_reference = cell.received_amplitude(cell.loss_db(0.0, 0.0)).powi(2);
    let mut stream = StreamName::new(seed, PLACES).trial(trial).stream();
    let mut sums = vec![0.0; SNRS_DB.len()];
    for _ in 0..DRAWS {
        let (mut all, mut wrong) = (0.0, 0.0);
        for _ in 0..CLIENTS {
            let amplitude = cell.received_amplitude(cell.loss_db(stream.random(), 0.0));
            let energy = FskVote::ENERGY * amplitude * amplitude / at_reference;
            all += energy;
            wrong += if stream.random::<f64>() < WRONG { energy } else { 0.0 };
        }
        for (sum, snr_db) in sums.iter_mut().zip(SNRS_DB) {
            let noise = 10_f64.powf(-snr_db / 10.0);
            *sum += 100.0 * (wrong + noise) / (all + 2.0 * noise) / f64::from(DRAWS);
        }
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper prints the denominator `1 + 2/ξ` in the sum above equation 25; only `K + 2/ξ` yields the equation.
    #[test]
    fn equation_25_averages_equation_24() {
        for (clients, wrong, xi) in [(50_u32, 0.2_f64, 0.093_f64), (5, 0.01, 9.3), (1, 0.5, 1.0)] {
            let (mut mean, mut printed, mut weight) = (0.0, 0.0, wrong.powf(f64::from(clients)));
            for right in 0..=clients {
                let count = f64::from(clients);
                let probability = equation_24(f64::from(right), count, xi);
                mean += weight * probability;
                printed += weight * probability * (count + 2.0 / xi) / (1.0 + 2.0 / xi);
                weight *= f64::from(clients - right) / f64::from(right + 1) * (1.0 - wrong) / wrong;
            }
            let formula = equation_25(wrong, f64::from(clients), xi);
            assert!((mean - formula).abs() < 1e-12, "{clients}: {mean}, {formula}");
            assert!(clients == 1 || (printed - formula).abs() > 0.01);
        }
    }

    /// The probability of the uplink for the wrong sign, in closed form.
    #[test]
    fn the_uplink_has_the_probability_of_equation_24() {
        for (a, snr_db) in [(0.0, 20.0), (2.0, 0.0), (2.0, -20.0)] {
            let ours = uplink(a, snr_db).unwrap().probability(10.0, 50.0);
            assert!((ours - equation_24(40.0, 50.0, xi(a, snr_db))).abs() < 1e-12);
        }
    }

    /// Without noise the expected share of the wrong clients in the energy is `q`, whatever the places are. Each of 2,000 draws has a standard
    /// deviation below 0.13 for a share 0.2; the mean has a standard error below 0.3 points, and the test allows five.
    #[test]
    fn places_do_not_matter_without_noise() {
        let shares = placed(3, 0).unwrap();
        assert!((shares[6] - 100.0 * WRONG).abs() < 1.5, "{shares:?}");
    }
}
