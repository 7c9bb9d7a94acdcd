//! One row of the tables: what a candidate reached at a point, and what it cost.

use floras_sim::benchmark::{AtAirtime, Conditions, Point, ProtectedBy, Row, RowCost, ViewBound};
use floras_sim::{Cost, RoundMetrics};

use crate::reproduce::RunRecord;

/// A candidate at a point with its runs.
pub(super) struct RunOfRow<'a> {
    pub(super) entry: &'a str,
    pub(super) point: Point,
    pub(super) by: Option<ProtectedBy>,
    /// `None` if nothing meets the `ε` of the point.
    pub(super) record: Option<&'a RunRecord>,
    /// The run for the airtime of the benchmark.
    pub(super) at_airtime: Option<&'a RunRecord>,
    /// The run with estimated channels.
    pub(super) with_estimates: Option<&'a RunRecord>,
}

impl RunOfRow<'_> {
    pub(super) fn row(self, conditions: &Conditions) -> Row {
        let cost = self.record.and_then(|record| cost(record, self.point.clients, conditions.parameters));
        let at_airtime = self.at_airtime.zip(cost).and_then(|(record, cost)| {
            let rounds = record.summary.rounds;
            let is_capped = fitting_rounds(&cost, conditions) > f64::from(rounds);
            Some(AtAirtime { rounds, is_capped, accuracy: record.accuracy()? })
        });
        Row {
            entry: self.entry.to_owned(),
            point: self.point,
            protected_by: self.by,
            accuracy: self.record.and_then(RunRecord::accuracy),
            diverged: self.record.map_or(0, |record| record.summary.diverged().len() as u32),
            cost,
            at_airtime,
            with_estimates: self.with_estimates.and_then(RunRecord::accuracy),
            privacy: self
                .record
                .map(|record| ViewBound::of(&record.summary.privacy.views))
                .unwrap_or_default(),
        }
    }
}

/// The rounds that fit into the airtime of the benchmark: an integer of at least 0, possibly above the maximum number.
fn fitting_rounds(cost: &RowCost, conditions: &Conditions) -> f64 {
    (conditions.airtime / cost.uses).floor()
}

/// The rounds of a run for the airtime of the benchmark; 0 if not one fits.
pub(super) fn rounds_at_airtime(cost: &RowCost, conditions: &Conditions) -> u32 {
    fitting_rounds(cost, conditions).min(f64::from(conditions.max_rounds)) as u32
}

/// Means over all rounds of all trials, and the largest peak power; `None` without a radio.
fn cost(record: &RunRecord, clients: u32, parameters: usize) -> Option<RowCost> {
    let costs: Vec<Cost> = record.metrics.iter().filter_map(RoundMetrics::cost).collect();
    if costs.is_empty() {
        return None;
    }
    let mean = |pick: &dyn Fn(&Cost) -> f64| costs.iter().map(pick).sum::<f64>() / costs.len() as f64;
    let (clients, parameters) = (f64::from(clients), parameters as f64);
    let transmit_uses = |cost: &Cost| (cost.payload_uses + cost.pilot_uses) as f64;
    Some(RowCost {
        uses: mean(&|cost| cost.channel_uses() as f64) / parameters,
        energy: mean(&|cost| cost.energy) / (clients * parameters),
        power_mean: mean(&|cost| cost.power_mean),
        power_with_pilots: mean(&|cost| cost.energy / (clients * transmit_uses(cost))),
        power_peak: costs.iter().map(|cost| cost.power_peak).fold(0.0, f64::max),
    })
}
