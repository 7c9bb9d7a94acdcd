//! What a trial cost on the air: the [`Cost`] of its rounds, put together.

use floras_phy::Cost;

use crate::federation::RoundMetrics;

/// The cost of a trial, from the lines of its rounds: sums of channel uses and energy, the largest peak power, and means of the
/// rounds' mean power and dynamic range. `None` if a round has no cost.
#[derive(Debug, Default)]
pub(crate) struct TrialCost {
    rounds: Vec<Cost>,
    is_partial: bool,
}

impl TrialCost {
    /// Adds a round.
    pub(crate) fn add(&mut self, line: &RoundMetrics) {
        match line.cost() {
            Some(cost) => self.rounds.push(cost),
            None => self.is_partial = true,
        }
    }

    /// The sum.
    pub(crate) fn total(self) -> Option<Cost> {
        let mean = average(&self.rounds).filter(|_| !self.is_partial)?;
        let sum = |pick: fn(&Cost) -> u64| self.rounds.iter().map(pick).sum();
        Some(Cost {
            payload_uses: sum(|cost| cost.payload_uses),
            pilot_uses: sum(|cost| cost.pilot_uses),
            control_uses: sum(|cost| cost.control_uses),
            energy: self.rounds.iter().map(|cost| cost.energy).sum(),
            ..mean
        })
    }
}

/// Means over several costs; `power_peak` is the largest. Counts of channel uses are rounded down.
pub(crate) fn average(costs: &[Cost]) -> Option<Cost> {
    if costs.is_empty() {
        return None;
    }
    let mean = |pick: fn(&Cost) -> f64| costs.iter().map(pick).sum::<f64>() / costs.len() as f64;
    let uses = |pick: fn(&Cost) -> u64| costs.iter().map(pick).sum::<u64>() / costs.len() as u64;
    let ranges: Vec<f64> = costs.iter().filter_map(|cost| cost.dynamic_range_db).collect();
    Some(Cost {
        power_mean: mean(|cost| cost.power_mean),
        power_peak: costs.iter().map(|cost| cost.power_peak).fold(0.0, f64::max),
        dynamic_range_db: (!ranges.is_empty()).then(|| ranges.iter().sum::<f64>() / ranges.len() as f64),
        payload_uses: uses(|cost| cost.payload_uses),
        pilot_uses: uses(|cost| cost.pilot_uses),
        control_uses: uses(|cost| cost.control_uses),
        energy: mean(|cost| cost.energy),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(energy: f64, power_peak: f64, dynamic_range_db: Option<f64>) -> RoundMetrics {
        let mut line = RoundMetrics::default();
        line.set_cost(Cost {
            power_mean: energy / 100.0,
            power_peak,
            dynamic_range_db,
            payload_uses: 100,
            pilot_uses: 20,
            control_uses: 3,
            energy,
        });
        line
    }

    #[test]
    fn a_trial_adds_up_uses_and_energy() {
        let mut trial = TrialCost::default();
        for line in [line(10.0, 4.0, Some(6.0)), line(30.0, 2.0, None), line(20.0, 3.0, Some(8.0))] {
            trial.add(&line);
        }
        let total = trial.total().unwrap();
        assert_eq!((total.payload_uses, total.pilot_uses, total.control_uses), (300, 60, 9));
        assert_eq!((total.energy, total.power_peak, total.dynamic_range_db), (60.0, 4.0, Some(7.0)));
        assert!((total.power_mean - 0.2).abs() < 1e-12);
        assert_eq!(average(&[total, total]), Some(total));
    }

    /// The first rounds of a run that an earlier version began have no cost.
    #[test]
    fn a_round_without_cost_leaves_no_total() {
        let mut trial = TrialCost::default();
        trial.add(&RoundMetrics::default());
        trial.add(&line(10.0, 4.0, None));
        assert_eq!(trial.total(), None);
        assert_eq!(TrialCost::default().total(), None);
    }
}
