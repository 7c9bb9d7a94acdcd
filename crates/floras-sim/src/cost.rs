//! The cost of a trial on the air: the [`Cost`] of its rounds, combined.

use std::collections::BTreeMap;

use floras_phy::Cost;

use crate::federation::RoundMetrics;
use crate::figure::Curve;

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

    /// The cost of the whole trial; `None` if there are no rounds, or if a round has no cost.
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

/// The cumulative cost after each round, averaged over the trials. A trial counts until its first line without cost.
pub fn spent_by_round(lines: &[RoundMetrics], pick: impl Fn(&Cost) -> f64) -> BTreeMap<u32, f64> {
    let mut by_trial: BTreeMap<u32, Option<f64>> = BTreeMap::new();
    let mut by_round: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for line in lines {
        let spent = by_trial.entry(line.trial).or_insert(Some(0.0));
        *spent = spent.zip(line.cost()).map(|(spent, cost)| spent + pick(&cost));
        if let Some(spent) = *spent {
            by_round.entry(line.round).or_default().push(spent);
        }
    }
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    by_round.into_iter().map(|(round, values)| (round, mean(values))).collect()
}

/// Replaces the x coordinates of a curve, which are rounds, by the cumulative cost. Rounds without a cost are removed.
pub fn against(curve: &mut Curve, spent: &BTreeMap<u32, f64>) {
    let x: Vec<Option<f64>> = curve.x.iter().map(|&round| spent.get(&(round as u32)).copied()).collect();
    let is_known = |place: usize| x[place].is_some();
    let mut places = 0..;
    curve.y.retain(|_| places.next().is_some_and(is_known));
    if let Some(band) = &mut curve.band {
        let mut places = 0..;
        band.retain(|_| places.next().is_some_and(is_known));
    }
    curve.x = x.into_iter().flatten().collect();
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

    #[test]
    fn curves_are_drawn_against_what_was_spent() {
        let at = |trial, round, energy| RoundMetrics { trial, round, ..line(energy, 1.0, None) };
        let without = RoundMetrics { trial: 2, round: 1, ..RoundMetrics::default() };
        let lines = [at(0, 1, 1.0), at(0, 2, 2.0), at(1, 1, 3.0), at(1, 2, 4.0), without, at(2, 2, 9.0)];
        let spent = spent_by_round(&lines, |cost| cost.energy);
        assert_eq!(spent, BTreeMap::from([(1, 2.0), (2, 5.0)]));
        let mut curve = Curve {
            name: String::new(),
            colour: 0,
            style: crate::figure::Style::Solid,
            x: vec![2.0, 3.0],
            y: vec![Some(0.5), Some(0.6)],
            band: Some(vec![None, Some((0.5, 0.7))]),
        };
        against(&mut curve, &spent);
        assert_eq!((curve.x, curve.y, curve.band), (vec![5.0], vec![Some(0.5)], Some(vec![None])));
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
