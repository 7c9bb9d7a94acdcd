//! Canaries: replacements for all samples of a client, or for one, natural or worst-case.

use floras_learn::{LearnError, Samples};
use floras_sim::{Federation, SimError};

/// The client that is watched.
pub(super) const WATCHED: u32 = 0;
/// Factor between an outlier and the sample that it is made from: its gradient outweighs all others.
const OUTLIER: f32 = 100.0;

/// The difference between the two worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Canary {
    /// The watched client holds its own samples, or as many unused ones.
    Client,
    /// The watched client holds one of its samples, or an unused one in its place.
    Item,
    /// One of its samples is scaled a hundredfold, or is the negative of that.
    Outlier,
}

impl Canary {
    pub(super) const ALL: [Self; 3] = [Self::Client, Self::Item, Self::Outlier];

    /// The privacy level: client or item.
    pub(super) fn level(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Item | Self::Outlier => "item",
        }
    }

    /// Worst-case or natural.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Client | Self::Item => "natural",
            Self::Outlier => "worst-case",
        }
    }

    /// The watched client's samples with the canary, and without.
    pub(super) fn worlds(self, federation: &Federation) -> Result<[Samples; 2], SimError> {
        let own = federation.holdings(0)?.with_client(WATCHED, |data| data.samples.select(data.rows));
        let own = own.map_err(SimError::learn("data"))?;
        let strangers = federation.test();
        let worlds = match self {
            Self::Client => {
                let rows: Vec<u32> = (0..own.count()).map(|row| (row % strangers.count()) as u32).collect();
                let others = strangers.select(&rows);
                Ok([own, others])
            }
            Self::Item => {
                let (row, label) = (strangers.row(0).to_vec(), strangers.labels()[0]);
                with_first(&own, &row, label).map(|without| [own, without])
            }
            Self::Outlier => {
                let label = own.labels()[0];
                let scaled = |by: f32| -> Vec<f32> { own.row(0).iter().map(|value| value * by).collect() };
                with_first(&own, &scaled(OUTLIER), label)
                    .and_then(|with| Ok([with, with_first(&own, &scaled(-OUTLIER), label)?]))
            }
        };
        worlds.map_err(SimError::learn("data"))
    }
}

/// The same samples with a different first sample.
fn with_first(samples: &Samples, row: &[f32], label: u16) -> Result<Samples, LearnError> {
    let mut features = samples.features().to_vec();
    features[..samples.width()].copy_from_slice(row);
    let mut labels = samples.labels().to_vec();
    labels[0] = label;
    Samples::of_shape(samples.shape(), samples.classes(), features, labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floras_sim::Experiment;

    #[test]
    fn worlds_are_neighbours_of_their_level() {
        let experiment = Experiment::parse("a test", "rounds = 1\n[privacy]\nclip = 1.0").unwrap();
        let federation = Federation::new(&experiment).unwrap();
        for canary in Canary::ALL {
            let [with, without] = canary.worlds(&federation).unwrap();
            assert_eq!((with.count(), without.count()), (200, 200));
            let differ = (0..200).filter(|&row| with.row(row) != without.row(row)).count();
            match canary.level() {
                "item" => assert_eq!(differ, 1),
                _ => assert!(differ > 190),
            }
        }
    }
}
