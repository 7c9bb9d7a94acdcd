//! The points of a benchmark, and the experiment of a candidate at each of them.

use floras_sim::benchmark::Point;
use floras_sim::schemes::ChannelKnowledge;
use floras_sim::{Experiment, ExperimentBuilder, ExperimentError};

use super::candidate::Candidate;

/// Sequences of FLORAS per client.
const SEQUENCES_PER_CLIENT: f64 = 1.25;

/// Points of a learning curve at equal airtime.
const CURVE_POINTS: u32 = 40;

/// The `ε` of the ranking after all rounds.
pub(super) const EPSILON: f64 = 8.0;

/// The sizes of a benchmark.
pub(super) struct Grid {
    pub(super) partitions: &'static [&'static str],
    pub(super) snrs_db: &'static [f64],
    pub(super) clients: &'static [u32],
    /// The `ε` of private points at the reference point. Other points have that of the ranking alone.
    pub(super) epsilons: &'static [f64],
    /// Number of trials; that of the files if `None`.
    pub(super) trials: Option<u32>,
    /// Number of rounds; that of the files if `None`.
    pub(super) rounds: Option<u32>,
    /// Maximum number of rounds at equal airtime.
    pub(super) max_rounds: u32,
}

/// The full benchmark: 18 conditions, each without protection and at one `ε`, and five further `ε` at the reference point.
pub(super) const FULL: Grid = Grid {
    partitions: &["iid", "dirichlet=0.3"],
    snrs_db: &[0.0, 10.0, 20.0],
    clients: &[20, 100, 1000],
    epsilons: &[1.0, 2.0, 4.0, EPSILON, 16.0, 32.0],
    trials: None,
    rounds: None,
    max_rounds: 400,
};

/// One condition, with and without protection.
pub(super) const QUICK: Grid = Grid {
    partitions: &["iid"],
    snrs_db: &[10.0],
    clients: &[100],
    epsilons: &[2.0, EPSILON, 32.0],
    trials: Some(3),
    rounds: Some(20),
    max_rounds: 100,
};

impl Grid {
    /// The point of the learning curves and of the ranking.
    pub(super) fn reference(&self) -> Point {
        let middle = |count: usize| count / 2;
        Point {
            epsilon: None,
            partition: self.partitions[0].to_owned(),
            snr_db: self.snrs_db[middle(self.snrs_db.len())],
            clients: self.clients[middle(self.clients.len())],
        }
    }

    /// All points: every condition without protection and with the `ε` of the ranking, and the reference point with every `ε`.
    pub(super) fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for epsilon in [None, Some(EPSILON)] {
            for partition in self.partitions {
                for &clients in self.clients {
                    for &snr_db in self.snrs_db {
                        points.push(Point { epsilon, partition: (*partition).to_owned(), snr_db, clients });
                    }
                }
            }
        }
        let others = self.epsilons.iter().filter(|&&epsilon| epsilon != EPSILON);
        points.extend(others.map(|&epsilon| Point { epsilon: Some(epsilon), ..self.reference() }));
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

    /// The experiment of a candidate at the reference point for a number of rounds, the comparison at equal airtime.
    pub(super) fn at_airtime(
        &self,
        candidate: &Candidate,
        rounds: u32,
    ) -> Result<ExperimentBuilder, ExperimentError> {
        let builder = self.experiment(candidate, &self.reference())?.rounds(rounds);
        builder.set_to("record.test_every", rounds.div_ceil(CURVE_POINTS))
    }

    /// The experiment of a candidate at the reference point whose clients know their channels with an error; `None` if they need none, or
    /// if the scheme refuses the error because its clients know channels exactly by definition.
    pub(super) fn with_estimates(
        &self,
        candidate: &Candidate,
        channel_error: f64,
    ) -> Result<Option<Experiment>, ExperimentError> {
        const KEY: &str = "uplink.channel_error";
        if candidate.scheme().channel_knowledge() == ChannelKnowledge::Nothing {
            return Ok(None);
        }
        match self.experiment(candidate, &self.reference())?.set_to(KEY, channel_error)?.build() {
            Ok(experiment) => Ok(Some(experiment)),
            Err(ExperimentError::Refused { key, .. } | ExperimentError::Value { key, .. }) if key == KEY => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The name of the run of a candidate at a point. A scheme without a radio has one run for all SNRs.
    pub(super) fn run_name(candidate: &Candidate, point: &Point) -> String {
        let Point { epsilon, partition, snr_db, clients } = point;
        let protection = epsilon.map_or_else(|| "open".to_owned(), |epsilon| format!("epsilon{epsilon}"));
        let partition = partition.replace('=', "-");
        let name = format!("{}-{protection}-{partition}-k{clients}", candidate.name());
        if candidate.scheme().uses_radio() { format!("{name}-{snr_db}dB") } else { name }
    }
}
