//! The points of a benchmark, and the experiment of a candidate at each of them.

use floras_sim::benchmark::{Point, Protection};
use floras_sim::{ExperimentBuilder, ExperimentError};

use super::candidate::Candidate;

/// Sequences of FLORAS per client.
const SEQUENCES_PER_CLIENT: f64 = 1.25;

/// The sizes of a benchmark.
pub(super) struct Grid {
    pub(super) partitions: &'static [&'static str],
    pub(super) snrs_db: &'static [f64],
    pub(super) clients: &'static [u32],
    /// Number of trials; that of the files if `None`.
    pub(super) trials: Option<u32>,
    /// Number of rounds; that of the files if `None`.
    pub(super) rounds: Option<u32>,
}

/// All conditions.
pub(super) const FULL: Grid = Grid {
    partitions: &["iid", "dirichlet=0.3"],
    snrs_db: &[0.0, 10.0, 20.0],
    clients: &[20, 100, 1000],
    trials: None,
    rounds: None,
};

/// One condition, with and without protection.
pub(super) const QUICK: Grid =
    Grid { partitions: &["iid"], snrs_db: &[10.0], clients: &[100], trials: Some(3), rounds: Some(20) };

impl Grid {
    /// The point of the learning curves and of the ranking.
    pub(super) fn reference(&self) -> Point {
        let middle = |count: usize| count / 2;
        Point {
            protection: Protection::None,
            partition: self.partitions[0].to_owned(),
            snr_db: self.snrs_db[middle(self.snrs_db.len())],
            clients: self.clients[middle(self.clients.len())],
        }
    }

    pub(super) fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for protection in Protection::ALL {
            for partition in self.partitions {
                for &clients in self.clients {
                    for &snr_db in self.snrs_db {
                        points.push(Point {
                            protection,
                            partition: (*partition).to_owned(),
                            snr_db,
                            clients,
                        });
                    }
                }
            }
        }
        points
    }

    /// The experiment of a candidate at a point, without protection.
    pub(super) fn experiment(
        &self,
        candidate: &Candidate,
        point: &Point,
    ) -> Result<ExperimentBuilder, ExperimentError> {
        let mut builder = candidate
            .builder()
            .clone()
            .set_to("clients.total", point.clients)?
            .set_to("clients.per_round", point.clients)?
            .set("data.partition", &point.partition)?;
        if candidate.scheme().uses_radio() {
            builder = builder.set_to("uplink.snr_db", point.snr_db)?;
        }
        if candidate.scheme().sequences().is_some() {
            let sequences = (SEQUENCES_PER_CLIENT * f64::from(point.clients)).ceil() as u64;
            builder = builder
                .set_to("uplink.sequences", sequences)?
                .set_to("uplink.length", sequences.next_power_of_two())?;
        }
        if let Some(trials) = self.trials {
            builder = builder.trials(trials);
        }
        if let Some(rounds) = self.rounds {
            builder = builder.rounds(rounds);
        }
        Ok(builder)
    }

    /// The name of the run of a candidate at a point. A scheme without a radio has one run for all SNRs.
    pub(super) fn run_name(candidate: &Candidate, point: &Point) -> String {
        let Point { protection, partition, snr_db, clients } = point;
        let partition = partition.replace('=', "-");
        let name = format!("{}-{protection}-{partition}-k{clients}", candidate.name());
        if candidate.scheme().uses_radio() { format!("{name}-{snr_db}dB") } else { name }
    }
}
