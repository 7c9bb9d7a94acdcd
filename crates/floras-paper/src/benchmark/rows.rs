//! One row of the tables: what a candidate reached at a point, and what it cost.

use floras_sim::benchmark::{Conditions, Point, ProtectedBy, Row, RowCost, ViewBound};
use floras_sim::{Cost, RoundMetrics};

use crate::reproduce::RunRecord;

/// A candidate at a point with its run; `None` if nothing meets the `ε` of the point.
pub(super) struct RunOfRow<'a> {
    pub(super) entry: &'a str,
    pub(super) point: Point,
    pub(super) by: Option<ProtectedBy>,
    pub(super) record: Option<&'a RunRecord>,
}

impl RunOfRow<'_> {
    pub(super) fn row(self, conditions: &Conditions) -> Row {
        let cost = self.record.and_then(|record| cost(record, self.point.clients, conditions.parameters));
        let at_airtime = self.record.zip(cost).and_then(|(record, cost)| {
            let rounds = (conditions.airtime / cost.uses).floor().min(f64::from(conditions.rounds)) as u32;
            Some((rounds, record.accuracy_after(rounds)?))
        });
        Row {
            entry: self.entry.to_owned(),
            point: self.point,
            protected_by: self.by,
            accuracy: self.record.and_then(RunRecord::accuracy),
            diverged: self.record.map_or(0, |record| record.summary.diverged().len() as u32),
            cost,
            at_airtime,
            privacy: self
                .record
                .map(|record| ViewBound::of(&record.summary.privacy.views))
                .unwrap_or_default(),
        }
    }
}

/// Means over all rounds of all trials, and the largest peak power; `None` without a radio.
fn cost(record: &RunRecord, clients: u32, parameters: usize) -> Option<RowCost> {
    let costs: Vec<Cost> = record.metrics.iter().filter_map(RoundMetrics::cost).collect();
    if costs.is_empty() {
        return None;
    }
    let mean = |pick: fn(&Cost) -> f64| costs.iter().map(pick).sum::<f64>() / costs.len() as f64;
    let parameters = parameters as f64;
    Some(RowCost {
        uses: mean(|cost| cost.channel_uses() as f64) / parameters,
        energy: mean(|cost| cost.energy) / (f64::from(clients) * parameters),
        power_mean: mean(|cost| cost.power_mean),
        power_peak: costs.iter().map(|cost| cost.power_peak).fold(0.0, f64::max),
    })
}
