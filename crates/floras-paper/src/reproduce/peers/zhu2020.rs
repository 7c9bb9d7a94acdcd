//! Broadband analog aggregation: its two tradeoffs, and its latency compared with orthogonal access.
//!
//! A client stays silent on subcarriers with `|h|² < g_th`, a share `1 − e^(−g_th)` of them under Rayleigh fading, and arrives with
//! the power `1/E₁(g_th)` on the others. Devices far from the base station reduce the power at which all can arrive, in proportion to
//! the distance to the power of the path-loss exponent.
//!
//! # Citations
//! Zhu, Wang, Huang, *Broadband analog aggregation for low-latency federated edge learning*, IEEE TWC 19 (2020), arXiv:1812.11494.

use floras_core::{Admission, Cell, Fading, NoiseReference, PathLoss, Snr, SnrConvention};
use floras_phy::{
    BroadbandInversion, BroadbandInversionSettings, Channels, CodeRate, Digital, DigitalSettings, Round,
    Uplink,
};
use floras_sim::SimError;
use floras_sim::figure::{Claim, Curve, Figure, Panel, Style, Verdict};
use floras_sim::number::decimal;

use super::super::cost::exponential_integral;
use super::super::finding::{Finding, is_above_zero, is_below_zero};
use super::super::workbench::{Stage, Workbench};
use super::{axis, choices, exact, measured, slope, stated};

const CLIENTS: u32 = 20;
const SUBCARRIERS: usize = 64;
/// Transmit power of a client over the noise of a channel use.
const SNR_DB: f64 = 10.0;
const THRESHOLDS: [f64; 9] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.4, 2.0];
/// Devices in the cell.
const DEVICES: u32 = 200;
const EXPONENT: f64 = 3.0;
/// Radii of the scheduled interior, relative to the cell.
const RADII: [f64; 8] = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
/// Numbers of devices in the comparison of latency.
const POPULATIONS: [u32; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
/// The decade over which the growth of the latency is measured.
const DECADE: [u32; 2] = [100, 1000];
const PARAMETERS: usize = 100_000;
/// Quantisation levels of orthogonal access: 8 bits per parameter.
const LEVELS: u32 = 127;
/// Probability with which a device of orthogonal access is not received.
const OUTAGE: f64 = 0.1;

/// What one trial measured: a point for each threshold or radius.
type Points = Vec<(f64, f64)>;

/// Computes the figure.
pub(in super::super) fn zhu2020(bench: &Workbench<'_>, seed: u64) -> Result<Figure, SimError> {
    (bench.watch)(Stage::Working("broadband analog aggregation (Zhu, Wang, Huang 2020)"));
    let (trials, rounds) = if bench.quick { (5, 10) } else { (20, 50) };
    let trials = 0..trials;
    let truncation: Vec<Points> =
        trials.clone().map(|trial| truncation(seed, trial, rounds)).collect::<Result<_, _>>()?;
    let interior: Vec<Points> = trials.map(|trial| interior(seed, trial)).collect::<Result<_, _>>()?;
    let latency = Latency::compute()?;
    let at = |trials: &[Points], index: usize| trials.iter().map(|points| points[index]).unzip();
    let (truncated, received): (Vec<f64>, Vec<f64>) = at(&truncation, 4);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let text = format!(
        "First panel: a client that stays silent on weak subcarriers arrives with more power on the others. At the threshold g_th = {}, {:.1}% of \
         the symbols are truncated and the receive SNR is {:.1} dB, as in closed form. Second panel: scheduling only the interior of the cell \
         raises the power at which all scheduled devices can arrive, but leaves data unused. Third panel: channel uses of orthogonal access over \
         those of analog aggregation. With {} devices they are {:.0} times as many; from {} to {} devices the ratio grows with the power {:.2} \
         of the number of devices. That counts the updates alone. With one pilot and one coefficient for each device and subcarrier, the \
         ratio is {:.0} at {} devices and grows with the power {:.2}.",
        decimal(THRESHOLDS[4]),
        100.0 * mean(&truncated),
        mean(&received),
        DECADE[0],
        latency.ratio(DECADE[0], false),
        DECADE[0],
        DECADE[1],
        latency.exponent(false),
        latency.ratio(DECADE[0], true),
        DECADE[0],
        latency.exponent(true)
    );
    Ok(Figure {
        name: "zhu2020".to_owned(),
        title: "Zhu, Wang and Huang 2020: broadband analog aggregation, two tradeoffs and the latency".to_owned(),
        text: vec![text],
        conventions: conventions(),
        panels: vec![truncation_panel(&truncation), interior_panel(&interior), latency.panel()],
        claims: vec![
            slope_claim(
                "Abstract: truncated channel inversion results in a tradeoff between receive SNR and update-truncation ratio (slope of \
                 the SNR in dB against the ratio)",
                &truncation,
                &is_above_zero,
                "measured sent powers and silent symbols; the closed form is 1/E₁(g_th) against 1 − e^(−g_th)",
            ),
            slope_claim(
                "Abstract: scheduling cell-interior devices trades the receive SNR against the fraction of data exploited (slope of the \
                 SNR in dB against the fraction)",
                &interior,
                &is_below_zero,
                "the farthest scheduled device sets the power at which all arrive",
            ),
            latency.claim(),
        ],
        privacy: Vec::new(),
        notes: vec![
            super::ABSTRACT_ONLY.to_owned(),
            "Not compared: the accuracy of a neural network on a real data set, and the scheduling of mobile devices, both in the \
             abstract. The latency of orthogonal access depends on its rates: here devices know no channel and send at the rate that fails \
             with the stated probability, K times as strong in their share 1/K of the band."
                .to_owned(),
        ],
    })
}

fn conventions() -> Vec<(String, String)> {
    let list = format!("{CLIENTS} clients, {SUBCARRIERS} subcarriers, {} dB transmit SNR", decimal(SNR_DB));
    let cell = format!("{DEVICES} devices, uniform over a disc, path-loss exponent {}", decimal(EXPONENT));
    let model = format!("{PARAMETERS} parameters, 8 bits each, outage {}%", decimal(100.0 * OUTAGE));
    choices(&[
        ("truncation", &list),
        ("fading", "Rayleigh, independent between subcarriers and clients"),
        ("cell interior", &cell),
        ("latency", &model),
    ])
}

fn settings(threshold: f64) -> Result<BroadbandInversionSettings, SimError> {
    Ok(BroadbandInversionSettings {
        admission: Admission::at_power(threshold)?,
        subcarriers: SUBCARRIERS,
        noise: NoiseReference::PerSymbol,
        length: 1,
        channels: Fading::Rayleigh.into(),
        snr: Snr::new(SNR_DB, SnrConvention::Symbol)?,
    })
}

/// Truncation ratio and receive SNR in dB at every threshold, measured in some rounds. The SNR is that at the stated mean sent power,
/// which is measured too.
fn truncation(seed: u64, trial: u16, rounds: u32) -> Result<Points, SimError> {
    let clients: Vec<u32> = (0..CLIENTS).collect();
    let measure = |&threshold: &f64| {
        let uplink = BroadbandInversion::new(settings(threshold)?)?;
        let (mut silent, mut sent_power) = (0.0, 0.0);
        for number in 1..=rounds {
            let round = Round::new(seed, trial, number, &clients)?.with_parameters(SUBCARRIERS);
            let channel = uplink.realise(&round)?;
            let gains = channel.blocks().iter().flat_map(|block| &block.gains);
            silent += gains.filter(|&&gain| gain == 0.0).count() as f64;
            let factors = uplink.transmission(&round)?.map_or_else(Vec::new, |sent| sent.factors);
            sent_power += factors.iter().map(|factor| factor * factor).sum::<f64>();
        }
        let symbols = f64::from(rounds * CLIENTS);
        let arrives = uplink.noise_over_amplitude().powi(-2) / (sent_power / symbols);
        Ok((silent / (symbols * SUBCARRIERS as f64), 10.0 * arrives.log10()))
    };
    THRESHOLDS.iter().map(measure).collect()
}

/// Fraction of the data and receive SNR in dB, relative to the whole cell, for every radius of the interior.
fn interior(seed: u64, trial: u16) -> Result<Points, SimError> {
    let devices: Vec<u32> = (0..DEVICES).collect();
    let cell = PathLoss::Cell(Cell::new(EXPONENT, 0.0, 0.001, 0.0)?);
    let channels = Channels::from(Fading::Rayleigh).with_path_loss(cell)?;
    let mut gains = channels.long_term_gains(&Round::new(seed, trial, 1, &devices)?);
    gains.sort_by(|a, b| b.total_cmp(a));
    let farthest = gains[gains.len() - 1];
    let at_edge = Cell::new(EXPONENT, 0.0, 0.001, 0.0)?.received_amplitude(0.0);
    let point = |&radius: &f64| {
        let weakest = at_edge * radius.powf(-0.5 * EXPONENT);
        let scheduled = gains.iter().take_while(|&&gain| gain >= weakest).count().max(1);
        (scheduled as f64 / f64::from(DEVICES), 20.0 * (gains[scheduled - 1] / farthest).log10())
    };
    Ok(RADII.iter().map(point).collect())
}

fn slope_claim(
    claim: &str,
    trials: &[Points],
    agrees: &dyn Fn(f64, f64) -> Option<bool>,
    reason: &str,
) -> Claim {
    let ours = trials.iter().map(|points| slope(points)).collect();
    Finding { claim, published: None, ours, unit: "dB", agrees, reason: reason.to_owned() }.judge()
}

/// The curve of measured points, at their mean x.
fn measured_points(name: &str, style: Style, trials: &[Points], scale: f64) -> Curve {
    let at = |index: usize| trials.iter().map(move |points| points[index]);
    let count = trials.first().map_or(0, Vec::len);
    let mean = |index| scale * at(index).map(|point| point.0).sum::<f64>() / trials.len() as f64;
    let x: Vec<f64> = (0..count).map(mean).collect();
    let values: Vec<Vec<f64>> = (0..count).map(|index| at(index).map(|point| point.1).collect()).collect();
    measured(name, 0, style, &x, &values)
}

fn truncation_panel(trials: &[Points]) -> Panel {
    let places = (0..=60).map(|step| 0.01 * 200_f64.powf(f64::from(step) / 60.0));
    let closed = places.map(|threshold| {
        let snr_db = SNR_DB - 10.0 * exponential_integral(threshold).log10();
        (-100.0 * (-threshold).exp_m1(), snr_db)
    });
    Panel {
        name: "zhu2020-truncation".to_owned(),
        title: "Receive SNR against truncation".to_owned(),
        x: axis("update-truncation ratio (%)", false),
        y: axis("receive SNR (dB)", false),
        curves: vec![
            measured_points("measured", Style::Solid, trials, 100.0),
            exact("closed form", 1, Style::Dashed, closed),
        ],
    }
}

fn interior_panel(trials: &[Points]) -> Panel {
    let closed = RADII.map(|radius| (100.0 * radius * radius, 10.0 * EXPONENT * radius.recip().log10()));
    Panel {
        name: "zhu2020-interior".to_owned(),
        title: "Receive SNR against data used".to_owned(),
        x: axis("fraction of the data (%)", false),
        y: axis("receive SNR relative to the whole cell (dB)", false),
        curves: vec![
            measured_points("measured", Style::Solid, trials, 100.0),
            exact("infinitely many devices", 1, Style::Dashed, closed),
        ],
    }
}

/// Channel uses of orthogonal access over those of analog aggregation, by the number of devices.
struct Latency {
    /// Number of devices, ratio for the updates alone, ratio with pilots and coefficients.
    ratios: Vec<(u32, f64, f64)>,
}

impl Latency {
    fn compute() -> Result<Self, SimError> {
        let ratio = |&population: &u32| {
            let clients: Vec<u32> = (0..population).collect();
            let round = Round::new(0, 0, 1, &clients)?.with_parameters(PARAMETERS);
            let uplink = BroadbandInversion::new(settings(THRESHOLDS[4])?)?;
            let sent = uplink.transmission(&round)?;
            let analog = sent.as_ref().map_or(0, |sent| PARAMETERS * sent.uses_per_symbol) as f64;
            let knowledge = sent.map_or(0, |sent| sent.pilot_uses + sent.control_uses) as f64;
            let orthogonal = orthogonal_uses(population)?;
            Ok((population, orthogonal / analog, orthogonal / (analog + knowledge)))
        };
        Ok(Self { ratios: POPULATIONS.iter().map(ratio).collect::<Result<_, SimError>>()? })
    }

    fn ratio(&self, population: u32, with_knowledge: bool) -> f64 {
        let found = self.ratios.iter().find(|(number, ..)| *number == population);
        found.map_or(f64::NAN, |(_, updates, all)| if with_knowledge { *all } else { *updates })
    }

    /// The exponent of the growth over [`DECADE`].
    fn exponent(&self, with_knowledge: bool) -> f64 {
        (self.ratio(DECADE[1], with_knowledge) / self.ratio(DECADE[0], with_knowledge)).log10()
    }

    /// The claim stays open: the paper's exponent is for its own rates of orthogonal access, which are unknown here.
    fn claim(&self) -> Claim {
        stated(
            "Abstract: the latency-reduction ratio with respect to orthogonal access scales almost linearly with the device population (exponent \
             of the growth)",
            Some(1.0),
            self.exponent(false),
            "",
            Verdict::Inconclusive,
            &format!(
                "closed form, from {} to {} devices: K/log K, because here a device sends K times as strong in its share of the band. At a rate \
                 that does not grow with K the exponent would be 1. The paper's rates could not be retrieved",
                DECADE[0], DECADE[1]
            ),
        )
    }

    fn panel(&self) -> Panel {
        let curve = |name: &str, colour, style, pick: fn(&(u32, f64, f64)) -> f64| {
            let points = self.ratios.iter().map(|row| (f64::from(row.0), pick(row)));
            exact(name, colour, style, points)
        };
        Panel {
            name: "zhu2020-latency".to_owned(),
            title: "Orthogonal access over analog aggregation".to_owned(),
            x: axis("number of devices K", true),
            y: axis("ratio of channel uses", true),
            curves: vec![
                curve("updates alone", 0, Style::Solid, |row| row.1),
                curve("with pilots and coefficients", 0, Style::Dashed, |row| row.2),
                curve("K", 1, Style::Dotted, |row| f64::from(row.0)),
            ],
        }
    }
}

/// Channel uses of the updates by orthogonal access at the rate that is in outage with the probability [`OUTAGE`]. A device knows no
/// channel. Its pilot, one channel use among thousands, is left out.
fn orthogonal_uses(population: u32) -> Result<f64, SimError> {
    let snr = Snr::new(SNR_DB, SnrConvention::Symbol)?;
    let uplink = Digital::new(DigitalSettings {
        levels: Some(LEVELS),
        rate: CodeRate::Outage(OUTAGE),
        central_noise_std: 0.0,
        length: 1,
        channels: Fading::Rayleigh.into(),
        snr,
    })?;
    Ok(uplink.payload_uses(population as usize, PARAMETERS) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `E₁(0.2) = 1.222651`, `E₁(1) = 0.219384`. Truncation has a standard error of 0.2%, the SNR one of about 0.05 dB.
    #[test]
    fn measured_truncation_meets_its_closed_form() {
        let points = truncation(3, 0, 30).unwrap();
        for (index, threshold, integral) in [(4, 0.2_f64, 1.222_651_f64), (6, 1.0, 0.219_384)] {
            let (ratio, snr_db) = points[index];
            assert!((ratio - (1.0 - (-threshold).exp())).abs() < 0.01, "{ratio}");
            assert!((snr_db - (SNR_DB - 10.0 * integral.log10())).abs() < 0.25, "{snr_db}");
        }
    }

    /// With `n` scheduled devices, `U = (r_max/r)²` is the largest of `n` uniform numbers, and `E ln U = −1/n`. The means of 200 trials
    /// have a standard error of about 0.01 dB.
    #[test]
    fn interiors_gain_power_by_their_radius() {
        let trials: Vec<Points> = (0..200).map(|trial| interior(3, trial).unwrap()).collect();
        for (index, radius) in RADII.iter().enumerate() {
            let gain = trials.iter().map(|points| points[index].1).sum::<f64>() / 200.0;
            let per_neper = 5.0 * EXPONENT * std::f64::consts::LOG10_E;
            let scheduled = f64::from(DEVICES) * radius * radius;
            // E[1/n] of a binomial number is larger than 1/E[n]; the difference is below 0.4/E[n]² here.
            let expected = per_neper * (-(radius * radius).ln() + 1.0 / scheduled - 1.0 / f64::from(DEVICES));
            assert!((gain - expected).abs() < 0.06, "{radius}: {gain}, not {expected}");
        }
    }

    /// 8 bits and a norm at `log₂(1 + K·S/2·0.10536)` bits per use, with the transmit SNR S = 10.
    #[test]
    fn orthogonal_access_takes_the_stated_uses() {
        let uses = orthogonal_uses(100).unwrap();
        let rate = (1.0 + 100.0 * 5.0 * 0.105_360_5_f64).log2();
        assert!((uses - 100.0 * (800_032.0 / rate).ceil()).abs() < 201.0, "{uses}");
    }

    #[test]
    fn latency_grows_almost_linearly_without_pilots() {
        let latency = Latency::compute().unwrap();
        assert_eq!(latency.claim().verdict, Verdict::Inconclusive);
        assert!(latency.exponent(true) < latency.exponent(false));
        // d(ln(K/ln(1 + aK)))/d ln K at a = 0.527, from K = 100 to 1000: 1 − log₁₀(ln(528)/ln(53.7)).
        let expected = 1.0 - ((1.0_f64 + 526.8).ln() / (1.0_f64 + 52.68).ln()).log10();
        assert!((latency.exponent(false) - expected).abs() < 1e-3);
    }
}
