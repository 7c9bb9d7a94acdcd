//! Remark 1 and section VII-A: the radio cost of FLORAS and of channel inversion, at 0 dB and IID.
//!
//! The paper states no numbers. Each claim names a direction, and its verdict compares our runs with it, under the count of
//! [`floras_sim::Cost`].

use floras_sim::Cost;
use floras_sim::figure::Claim;

use super::finding::{Finding, is_above_zero};
use super::workbench::RunRecord;

/// Tolerance of "full use of transmit power", in points.
const MARGIN: f64 = 5.0;

/// The two runs that the claims compare.
pub(super) struct Compared<'a> {
    pub(super) floras: &'a RunRecord,
    pub(super) inversion: &'a RunRecord,
    /// `C²/d`: the power of a client that sends an update of norm `C`.
    pub(super) limit: f64,
    /// Number of clients per round, `K`.
    pub(super) clients: u32,
    /// `θ`, the admission threshold of channel inversion on `|h|`.
    pub(super) threshold: f64,
}

impl Compared<'_> {
    pub(super) fn claims(&self) -> Vec<Claim> {
        let rounds = |record: &RunRecord| f64::from(record.summary.rounds.max(1));
        let mean_of = |record: &RunRecord, pick: fn(&Cost) -> u64| {
            record.summary.cost.map_or(0.0, |cost| pick(&cost) as f64 / rounds(record))
        };
        let words = |record: &RunRecord| {
            format!(
                "{} for the payload, {} for pilots, {} for control",
                mean_of(record, |cost| cost.payload_uses),
                mean_of(record, |cost| cost.pilot_uses),
                mean_of(record, |cost| cost.control_uses)
            )
        };
        let overhead = |cost: Cost| (cost.pilot_uses + cost.control_uses) as f64 / rounds(self.floras);
        let findings = [
            Finding {
                claim: "Remark 1: the transmit power of FLORAS does not depend on the fading channels; they add no dynamic range",
                published: Some(0.0),
                ours: of(self.floras, |cost| cost.dynamic_range_db),
                unit: "dB",
                agrees: &|mean, half| Some(mean == 0.0 && half == 0.0),
                reason: "every client sends its update as it is; largest over smallest amplitude factor in a round".to_owned(),
            },
            Finding {
                claim: "Section VII-A: channel inversion increases the dynamic range of the transmit signal",
                published: None,
                ours: of(self.inversion, |cost| cost.dynamic_range_db),
                unit: "dB",
                agrees: &is_above_zero,
                reason: format!(
                    "mean of a round; {:.1} dB is expected of {} clients under Rayleigh fading (closed form, without threshold)",
                    expected_range_db(self.clients),
                    self.clients
                ),
            },
            Finding {
                claim: "Remark 1: FLORAS needs less overhead for channel knowledge (pilots and control per round, FLORAS minus \
                        channel inversion)",
                published: None,
                ours: pairs(self, |floras, inversion| overhead(floras) - overhead(inversion)),
                unit: "channel uses",
                agrees: &|mean, half| is_above_zero(-mean, half),
                reason: format!(
                    "the common pilot takes L ≥ K chips, {} in all; channel inversion takes K = {} pilots and as many \
                     coefficients in the downlink, or one downlink pilot if the channel is reciprocal",
                    mean_of(self.floras, |cost| cost.pilot_uses),
                    self.clients
                ),
            },
            Finding {
                claim: "Section VII-A: channel inversion consumes larger communication overhead (all channel uses of a round, \
                        FLORAS over channel inversion)",
                published: None,
                ours: pairs(self, |floras, inversion| {
                    floras.channel_uses() as f64 / inversion.channel_uses() as f64
                }),
                unit: "times",
                agrees: &|mean, half| is_above_zero(1.0 - mean, half),
                reason: format!(
                    "FLORAS: {}; channel inversion: {}. FLORAS spends L chips on each parameter",
                    words(self.floras),
                    words(self.inversion)
                ),
            },
            Finding {
                claim: "Section VII-A: with FLORAS all clients make full use of transmit power (mean power over the limit C²/d)",
                published: Some(100.0),
                ours: of(self.floras, |cost| Some(100.0 * cost.power_mean / self.limit)),
                unit: "% of the limit",
                agrees: &|mean, half| Some(mean + half + MARGIN >= 100.0),
                reason: "under the paper's normalisation only the client with the longest update sends at the limit".to_owned(),
            },
            Finding {
                claim: "Section VII-A: FLORAS sends at more power than channel inversion (mean power, FLORAS over channel inversion)",
                published: None,
                ours: pairs(self, |floras, inversion| 10.0 * (floras.power_mean / inversion.power_mean).log10()),
                unit: "dB",
                agrees: &is_above_zero,
                reason: format!(
                    "power fixed at the threshold |h| = {}; {:.1} dB is expected under Rayleigh fading, −10·log₁₀(θ²·E₁(θ²))",
                    self.threshold,
                    -10.0 * fixed_power_share(self.threshold).log10()
                ),
            },
        ];
        findings.into_iter().map(Finding::judge).collect()
    }
}

/// One number per trial whose cost is recorded.
fn of(record: &RunRecord, pick: impl Fn(Cost) -> Option<f64>) -> Vec<f64> {
    record.summary.trials.iter().filter_map(|trial| pick(trial.cost()?)).collect()
}

/// One number per pair of trials, which share their channels.
fn pairs(compared: &Compared<'_>, pick: impl Fn(Cost, Cost) -> f64) -> Vec<f64> {
    let both = compared.floras.summary.trials.iter().zip(&compared.inversion.summary.trials);
    both.filter_map(|(floras, inversion)| Some(pick(floras.cost()?, inversion.cost()?))).collect()
}

/// `E[10·log₁₀(max |h|²/min |h|²)]` of `K` clients under Rayleigh fading, where `|h|²` is exponential.
///
/// `E ln min = −γ_E − ln K`. `E ln max = ∫ ln x dF(x)` with `F(x) = (1 − e^{−x})^K`, by the midpoint rule in `F`.
fn expected_range_db(clients: u32) -> f64 {
    const STEPS: u32 = 100_000;
    let clients = f64::from(clients);
    let largest = |step: u32| {
        let share = (f64::from(step) + 0.5) / f64::from(STEPS);
        // x with F(x) = share.
        (-(-share.powf(1.0 / clients)).ln_1p()).ln()
    };
    let largest = (0..STEPS).map(largest).sum::<f64>() / f64::from(STEPS);
    let smallest = -EULER - clients.ln();
    10.0 * std::f64::consts::LOG10_E * (largest - smallest)
}

/// `θ²·E₁(θ²)`: mean power of a client that inverts its channel at the power of the threshold `θ < 1`, over that of its update.
fn fixed_power_share(threshold: f64) -> f64 {
    let x = threshold * threshold;
    x * exponential_integral(x)
}

/// `E₁(x) = ∫_x^∞ e^(−t)/t dt = −γ_E − ln x − Σ_{j≥1} (−x)^j/(j·j!)` for `x` between 0 and 3.
pub(super) fn exponential_integral(x: f64) -> f64 {
    let (mut power, mut sum) = (1.0, 0.0);
    for j in 1..=40 {
        let j = f64::from(j);
        power *= -x / j;
        sum += power / j;
    }
    -EULER - x.ln() - sum
}

/// Euler's constant `γ_E`.
const EULER: f64 = 0.577_215_664_901_532_9;

#[cfg(test)]
mod tests {
    use super::*;

    /// For K = 4: `Σ_j (−1)^{j+1} C(4, j)(−γ_E − ln j) + γ_E + ln 4 = 2.53702`, 11.0181 dB; for K = 20 20.8295 dB.
    #[test]
    fn ranges_have_their_closed_form() {
        assert!((expected_range_db(4) - 11.0181).abs() < 1e-3, "{}", expected_range_db(4));
        assert!((expected_range_db(20) - 20.8295).abs() < 1e-3, "{}", expected_range_db(20));
        assert!(expected_range_db(1).abs() < 1e-3, "{}", expected_range_db(1));
    }

    /// `E₁(0.09) = 1.9187448`, `E₁(10⁻⁴) = 8.6332247`.
    #[test]
    fn power_shares_have_their_closed_form() {
        assert!((fixed_power_share(0.3) - 0.09 * 1.918_744_8).abs() < 1e-8);
        assert!((fixed_power_share(0.01) - 8.633_224_7e-4).abs() < 1e-10);
    }
}
