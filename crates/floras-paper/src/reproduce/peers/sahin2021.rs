//! A majority vote by frequency-shift keying: figures 2 and 6, and the probability of a wrong vote.
//!
//! # Citations
//! Şahin, Everette, Hoque, *Distributed learning over a wireless network with FSK-based majority vote*, CommNet 2021, arXiv:2111.01850.

mod cell;
mod peak;
mod published;
mod vote;

use floras_sim::SimError;
use floras_sim::figure::Figure;

use super::super::workbench::{Stage, Workbench};
use super::choices;
use cell::Sampled;
use peak::{Peaks, SAMPLES};
use published::{PEAKS, SYMBOLS};
use vote::Votes;

/// Computes the figure.
pub(in super::super) fn sahin2021(bench: &Workbench<'_>, seed: u64) -> Result<Figure, SimError> {
    (bench.watch)(Stage::Working("FSK-based majority vote (Şahin, Everette, Hoque 2021)"));
    let trials = if bench.quick { 10 } else { 40 };
    let sampled = Sampled::draw(seed, trials.min(20))?;
    let votes = Votes::draw(seed, trials.min(20))?;
    let peaks = Peaks::draw(seed, trials);
    let (snr_db, formula, ours) = votes.largest_difference_of_places();
    let published: Vec<String> = PEAKS[..5].iter().map(|(_, decibels)| format!("{decibels:.2}")).collect();
    let text = vec![
        "First panel: the mean received power λ of clients in a ring around the base station, against the exponent a = α − β that power \
         control leaves of the path loss. Second panel: the share of wrong votes if each of 50 clients sends the wrong sign with \
         probability 0.2."
            .to_owned(),
        format!(
            "Third panel: the peaks of a client's OFDM symbols, with {} and {} samples per symbol. A symbol exceeds {} dB (published), {} dB \
             ({} samples) and {} dB ({} samples) with the probabilities 0.9, 0.5, 0.1, 0.01 and 0.003.",
            SAMPLES[0],
            SAMPLES[1],
            published.join(", "),
            peaks.levels(0),
            SAMPLES[0],
            peaks.levels(1),
            SAMPLES[1]
        ),
    ];
    let mut claims = sampled.claims()?;
    claims.extend(votes.claims());
    claims.extend(peaks.claims());
    Ok(Figure {
        name: "sahin2021".to_owned(),
        title: "Şahin, Everette and Hoque 2021, figures 2 and 6: majority vote by frequency-shift keying".to_owned(),
        text,
        conventions: conventions(),
        panels: vec![sampled.panel(), votes.panel(), peaks.panel()],
        claims,
        privacy: Vec::new(),
        notes: vec![
            format!(
                "Figures 2 and 6 have no table: their values were read from the vector graphics of the paper. The settings in the table above are \
                 the paper's, except q, the SNRs other than 20 dB, and the samples per symbol. Those were inferred: {} samples are those of LTE with \
                 1200 subcarriers, and meet the published curve, which has about {SYMBOLS} symbols.",
                SAMPLES[0]
            ),
            format!(
                "Equations 24 and 25 have the mean power λ in the place of the clients' powers. Clients at unequal distances do not have exponential \
                 energies over all their places. Without noise the formula holds all the same, by symmetry. With noise it is an approximation: in the \
                 second panel, clients at drawn places are farthest from it at {snr_db} dB, with {ours:.1}% of wrong votes instead of \
                 {formula:.1}%. The scheme fsk-vote has clients of equal mean power."
            ),
            "Misprints: the sum above equation 25 has the denominator 1 + 2/ξ instead of K + 2/ξ, which a test shows; and the energy of the second \
             tone is printed with the symbol of the first."
                .to_owned(),
            "Not compared: the test accuracies of figure 4 (50 clients, a convolutional network with batch normalisation on MNIST, 500 rounds), whose \
             settings are complete but whose data and network are not part of this project; the effect of wrong synchronisation; and OBDA's curve in figure 6, \
             which needs the signs of that network's gradients."
                .to_owned(),
        ],
    })
}

fn conventions() -> Vec<(String, String)> {
    let samples = format!("{}, inferred", SAMPLES[0]);
    choices(&[
        ("cell", "clients uniform over a ring from 10 m to 30, 100 or 300 m; power 1 at 10 m"),
        ("path loss", "α = 4; a share β of the exponent is compensated for"),
        ("wrong votes", "K = 50, from 10 to 100 m, β = 4 and β = 2; the paper has 20 dB at 10 m"),
        ("fading", "Rayleigh, independent between clients, tones and parameters"),
        ("q, probability of a wrong sign", "0.2, chosen here"),
        ("OFDM symbol", "1200 subcarriers in 600 pairs, one of each pair with random QPSK"),
        ("samples per symbol in figure 6", &samples),
    ])
}
