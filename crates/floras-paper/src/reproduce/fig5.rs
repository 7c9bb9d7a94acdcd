//! Figure 5: the cost of `γ = 0, 1, 5, 10` unused sequences at 20 dB.

use super::Workbench;
use super::claims::{FIG5, START_LOSS};
use super::learning::{Case, Runs};
use floras_sim::SimError;
use floras_sim::figure::{Figure, Style};

const CURVES: [(&str, &str, Style); 4] = [
    ("γ = 0", "20", Style::Solid),
    ("γ = 1", "21", Style::Dashed),
    ("γ = 5", "25", Style::Dotted),
    ("γ = 10", "30", Style::Solid),
];

/// Runs the experiments of figure 5 and draws it.
pub(crate) fn fig5(bench: &Workbench<'_>) -> Result<Figure, SimError> {
    let case = |(number, (curve, sequences, style)): (usize, (&'static str, &'static str, Style))| Case {
        curve,
        file: super::preset("fig5"),
        settings: vec![("uplink.sequences", sequences.to_owned())],
        colour: number,
        style,
    };
    let runs = Runs::make(bench, "fig5", CURVES.into_iter().enumerate().map(case).collect())?;
    let cost = |curve: &str| {
        let of = |partition| runs.difference_words(partition, curve, CURVES[0].0);
        format!("{curve}: {} (IID), {} (non-IID)", of("iid"), of("one-label"))
    };
    let text = format!(
        "The effect of unused sequences on the final accuracy, compared with none. {}. {}. {}. The table of views shows their privacy: \
         under the paper's normalisation and at this scale, no view that holds is small enough to mean anything. Training is far \
         from its end: without unused sequences the loss falls from {:.2} to {} (IID) and {} (non-IID). Losses are therefore compared \
         in percent of that decrease.",
        cost(CURVES[1].0),
        cost(CURVES[2].0),
        cost(CURVES[3].0),
        START_LOSS,
        runs.loss_words("iid", CURVES[0].0),
        runs.loss_words("one-label", CURVES[0].0)
    );
    Ok(Figure {
        name: "fig5".to_owned(),
        title: "Figure 5: what unused sequences cost at 20 dB".to_owned(),
        text: vec![text],
        conventions: super::conventions(&[super::preset("fig5")], 20.0)?,
        panels: runs.panels("fig5", &CURVES.map(|(curve, ..)| curve)),
        claims: runs.judge(&FIG5),
        privacy: runs.privacy(),
        notes: [vec![super::INTERVALS.to_owned(), super::CHOICE.to_owned()], runs.unmet()].concat(),
    })
}
