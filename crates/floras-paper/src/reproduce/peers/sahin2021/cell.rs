//! Figure 2: the mean received power `λ` of a cell, against the effective path-loss exponent `a = α − β`.
//!
//! Clients are uniform over a ring around the base station. A client at the distance `r` arrives with the power `(r/R_ref)^(−a)`, so that
//! equation 16 is
//!
//! ```text
//! λ = 2·R_ref^a/(R_max² − R_min²)·(R_min^(2−a) − R_max^(2−a))/(a − 2),      2·R_ref^a/(R_max² − R_min²)·ln(R_max/R_min) at a = 2
//! ```
//!
//! Here the reference distance is the inner radius.

use floras_core::{Cell, Fading, PathLoss};
use floras_phy::{Channels, Round};
use floras_sim::SimError;
use floras_sim::figure::{Claim, Panel, Style, Verdict};

use super::super::super::finding::{Finding, is_near};
use super::super::{axis, exact, measured, stated};
use super::published::LAMBDA;

/// Outer radii of the three cells, in metres.
const OUTER: [f64; 3] = [30.0, 100.0, 300.0];
/// Inner radius and reference distance, in metres.
pub(super) const INNER: f64 = 10.0;
/// Path-loss exponent without power control.
const EXPONENT: f64 = 4.0;
/// Devices of one trial.
const DEVICES: u32 = 20_000;
/// Distance in [`LAMBDA`] between exponents with drawn positions.
const STRIDE: usize = 11;
/// The plotted point of the claim on sampled positions: the first above `a = 2`, in the cell of 100 m.
const POINT: (usize, usize) = (50, 1);
/// Largest error of a number that was read with five decimals, in 10⁻⁶.
const READING_ERROR: f64 = 10.0;
/// Margin of the claim on sampled positions, in 10⁻³.
const MARGIN: f64 = 0.5;

/// Sampled `λ`: `at[cell][exponent][trial]`, for every [`STRIDE`]-th exponent.
pub(super) struct Sampled {
    at: Vec<Vec<Vec<f64>>>,
    point: Vec<f64>,
}

fn plotted_exponent(index: usize) -> f64 {
    EXPONENT * index as f64 / (LAMBDA.len() - 1) as f64
}

/// Equation 16 as printed, with `R_ref = R_min`.
pub(super) fn equation_16(a: f64, outer: f64) -> f64 {
    let factor = 2.0 * INNER.powf(a) / (outer * outer - INNER * INNER);
    if a == 2.0 {
        return factor * (outer / INNER).ln();
    }
    factor * (INNER.powf(2.0 - a) - outer.powf(2.0 - a)) / (a - 2.0)
}

/// A cell of this project in which the share `1 − a/α` of the loss is compensated for.
pub(super) fn cell(a: f64, outer: f64) -> Result<Cell, SimError> {
    Ok(Cell::new(EXPONENT, 0.0, INNER / outer, 1.0 - a / EXPONENT)?)
}

/// `λ` by [`Cell`], whose clients arrive with the mean power 1.
fn by_cell(a: f64, outer: f64) -> Result<f64, SimError> {
    let cell = cell(a, outer)?;
    Ok(cell.received_amplitude(cell.loss_db(0.0, 0.0)).powi(-2))
}

/// `λ` of clients whose positions are drawn.
fn by_positions(seed: u64, trial: u16, a: f64, outer: f64) -> Result<f64, SimError> {
    let devices: Vec<u32> = (0..DEVICES).collect();
    let cell = cell(a, outer)?;
    let channels = Channels::from(Fading::Rayleigh).with_path_loss(PathLoss::Cell(cell))?;
    let gains = channels.long_term_gains(&Round::new(seed, trial, 1, &devices)?);
    let power = gains.iter().map(|gain| gain * gain).sum::<f64>() / f64::from(DEVICES);
    Ok(power / cell.received_amplitude(cell.loss_db(0.0, 0.0)).powi(2))
}

/// The largest difference from the plotted values, in 10⁻⁶.
fn largest_difference(of: impl Fn(f64, f64) -> Result<f64, SimError>) -> Result<f64, SimError> {
    let mut largest = 0.0_f64;
    for (index, row) in LAMBDA.iter().enumerate() {
        for (published, outer) in row.iter().zip(OUTER) {
            largest = largest.max((of(plotted_exponent(index), outer)? - published).abs());
        }
    }
    Ok(1e6 * largest)
}

impl Sampled {
    pub(super) fn draw(seed: u64, trials: u16) -> Result<Self, SimError> {
        let trials_at = |index: usize, outer| -> Result<Vec<f64>, SimError> {
            (0..trials).map(|trial| by_positions(seed, trial, plotted_exponent(index), outer)).collect()
        };
        let of_cell =
            |outer| (0..LAMBDA.len()).step_by(STRIDE).map(|index| trials_at(index, outer)).collect();
        let at = OUTER.into_iter().map(of_cell).collect::<Result<_, SimError>>()?;
        Ok(Self { at, point: trials_at(POINT.0, OUTER[POINT.1])? })
    }

    pub(super) fn claims(&self) -> Result<Vec<Claim>, SimError> {
        let exactly = |claim: &str, ours: f64, reason: &str| {
            let verdict = if ours <= READING_ERROR { Verdict::Reproduced } else { Verdict::NotReproduced };
            stated(claim, Some(0.0), ours, "10⁻⁶", verdict, reason)
        };
        let published = 1e3 * LAMBDA[POINT.0][POINT.1];
        Ok(vec![
            exactly(
                "Figure 2: equation 16 is the plotted mean received power λ (largest difference at 300 plotted points, in 10⁻⁶)",
                largest_difference(|a, outer| Ok(equation_16(a, outer)))?,
                "the plotted values were read with five decimals; a difference of up to 10⁻⁵ is an error of reading",
            ),
            exactly(
                "Figure 2: the same for the path loss of this project, with the power control 1 − a/4",
                largest_difference(by_cell)?,
                "the mean power in a cell, which is computed by another formula and refers to the edge of the cell",
            ),
            Finding {
                claim: "Figure 2: the same for drawn positions (λ in 10⁻³ at a = 2.02, from 10 to 100 m)",
                published: Some(published),
                ours: self.point.iter().map(|lambda| 1e3 * lambda).collect(),
                unit: "10⁻³",
                agrees: &is_near(published, MARGIN),
                reason: format!(
                    "{DEVICES} devices in each of {} trials; the margin is {MARGIN}",
                    self.point.len()
                ),
            }
            .judge(),
        ])
    }

    pub(super) fn panel(&self) -> Panel {
        let mut curves = Vec::new();
        for (colour, (outer, trials)) in OUTER.iter().zip(&self.at).enumerate() {
            let plotted =
                LAMBDA.iter().enumerate().map(|(index, row)| (plotted_exponent(index), row[colour]));
            curves.push(exact(&format!("10 to {outer} m, published"), colour, Style::Solid, plotted));
            let x: Vec<f64> = (0..LAMBDA.len()).step_by(STRIDE).map(plotted_exponent).collect();
            curves.push(measured(
                &format!("10 to {outer} m, drawn positions"),
                colour,
                Style::Dashed,
                &x,
                trials,
            ));
        }
        Panel {
            name: "sahin2021-cell".to_owned(),
            title: "Figure 2: mean received power".to_owned(),
            x: axis("effective path-loss exponent a", false),
            y: axis("λ, relative to the power at 10 m", true),
            curves,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transcription error of one digit in any of the 300 values is larger than the reading error.
    #[test]
    fn both_formulas_meet_every_plotted_value() {
        assert!(largest_difference(|a, outer| Ok(equation_16(a, outer))).unwrap() <= READING_ERROR);
        assert!(largest_difference(by_cell).unwrap() <= READING_ERROR);
        assert!(largest_difference(|a, outer| by_cell((a - 1e-3).max(0.0), outer)).unwrap() > READING_ERROR);
    }

    /// The numbers of the paper's section IV, 1 and 0.0465169; the second is the logarithmic case.
    #[test]
    fn lambda_has_its_logarithmic_case() {
        assert!((equation_16(2.0, 100.0) - 0.046_516_9).abs() < 1e-7);
        assert!((by_cell(2.0, 100.0).unwrap() - 0.046_516_9).abs() < 1e-7);
        assert_eq!(by_cell(0.0, 100.0).unwrap(), 1.0);
    }

    /// `λ(2a)/λ(a)² − 1 = 3.6` is the relative variance of one position at `a = 2`; 20,000 have a standard error of 1.4%, and the test
    /// allows four.
    #[test]
    fn drawn_positions_have_the_mean_power() {
        let sampled = by_positions(3, 0, 2.0, 100.0).unwrap();
        assert!((sampled / 0.046_516_9 - 1.0).abs() < 0.054, "{sampled}");
    }
}
