//! Detector statistics over simulated rounds: areas, detection at a false-alarm rate, and exact recovery.

use rayon::prelude::*;

use super::detector::{Payload, Seen, averaged, generalised};
use super::distribution::ChannelDistribution;
use super::draw::{DrawnRound, Scene};

/// The input of a detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detector {
    Pilot,
    Energy,
    Both,
}

impl Detector {
    pub(super) const ALL: [Self; 3] = [Self::Pilot, Self::Energy, Self::Both];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pilot => "pilot",
            Self::Energy => "energy",
            Self::Both => "both",
        }
    }

    /// Whether knowledge of the distribution changes the ranking of sequences.
    pub(super) fn gains_by(self, distribution: &ChannelDistribution) -> bool {
        match self {
            Self::Pilot => !distribution.is_symmetric(),
            Self::Energy => false,
            Self::Both => true,
        }
    }

    /// The scores of all sequences of all rounds; `distribution` only if the adversary knows it.
    pub(super) fn score(
        self,
        scene: &Scene,
        rounds: &[DrawnRound],
        distribution: Option<&ChannelDistribution>,
    ) -> Scores {
        let (payload, noise_std) = (scene.payload, scene.noise_std());
        let distribution = distribution.filter(|distribution| self.gains_by(distribution));
        let one = |seen: &Seen| match (self, distribution) {
            (Self::Pilot, None) => seen.pilot.abs(),
            (Self::Pilot, Some(distribution)) => {
                averaged(*seen, Payload { norm: 0.0, ..payload }, distribution, noise_std)
            }
            (Self::Energy, _) => seen.energy,
            (Self::Both, None) => generalised(*seen, payload),
            (Self::Both, Some(distribution)) => averaged(*seen, payload, distribution, noise_std),
        };
        let all: Vec<Vec<f64>> =
            rounds.par_iter().map(|round| round.seen.iter().map(one).collect()).collect();
        Scores::new(&all, rounds.first().map_or(0, |round| round.in_use))
    }
}

/// The scores of used and unused sequences, each in ascending order.
pub(super) struct Scores {
    used: Vec<f64>,
    unused: Vec<f64>,
    /// Share of rounds in which the highest scores are exactly the sequences in use.
    pub(super) exact_set: f64,
}

impl Scores {
    /// One row per round, with the scores of the `in_use` sequences first.
    fn new(rounds: &[Vec<f64>], in_use: usize) -> Self {
        let is_exact = |round: &&Vec<f64>| {
            let (used, unused) = round.split_at(in_use);
            let lowest = used.iter().copied().fold(f64::INFINITY, f64::min);
            lowest > unused.iter().copied().fold(f64::NEG_INFINITY, f64::max)
        };
        let exact_set = rounds.iter().filter(is_exact).count() as f64 / rounds.len().max(1) as f64;
        let sorted = |side: fn(&[f64], usize) -> &[f64]| {
            let mut some: Vec<f64> =
                rounds.iter().flat_map(|round| side(round, in_use).iter().copied()).collect();
            some.sort_unstable_by(f64::total_cmp);
            some
        };
        let used = sorted(|round, in_use| &round[..in_use]);
        let unused = sorted(|round, in_use| &round[in_use..]);
        Self { used, unused, exact_set }
    }

    /// The area under the receiver operating characteristic: the probability that a used sequence scores higher than an unused
    /// one.
    pub(super) fn area(&self) -> f64 {
        let below = |&score: &f64| {
            let less = self.unused.partition_point(|&other| other < score);
            let not_more = self.unused.partition_point(|&other| other <= score);
            0.5 * (less + not_more) as f64
        };
        self.used.iter().map(below).sum::<f64>() / (self.used.len() * self.unused.len()).max(1) as f64
    }

    /// Detection rate at a false-alarm rate; `None` if it is too small to be measured.
    pub(super) fn detections(&self, false_alarms: f64) -> Option<f64> {
        const FEWEST: f64 = 2.0;
        let alarms = false_alarms * self.unused.len() as f64;
        if alarms < FEWEST {
            return None;
        }
        let place = self.unused.len().saturating_sub(alarms.round() as usize + 1);
        let threshold = *self.unused.get(place)?;
        let missed = self.used.partition_point(|&score| score <= threshold);
        Some(1.0 - missed as f64 / self.used.len().max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_a_small_example_are_right() {
        let rounds = [vec![5.0, 3.0, 1.0, 2.0], vec![4.0, 0.0, 1.5, 2.5]];
        let scores = Scores::new(&rounds, 2);
        // The first round is exact. 4 > {1, 2, 1.5, 2.5}, and so are 5 and 3; 0 exceeds none.
        assert_eq!(scores.exact_set, 0.5);
        assert_eq!(scores.area(), 0.75);
        // Two alarms of four: the threshold is 1.5.
        assert_eq!(scores.detections(0.5), Some(0.75));
        assert_eq!(scores.detections(0.25), None);
    }

    #[test]
    fn a_tie_counts_half() {
        assert_eq!(Scores::new(&[vec![1.0, 1.0]], 1).area(), 0.5);
    }
}
