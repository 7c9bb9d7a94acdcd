//! Partitions: which client holds which samples.
//!
//! | partition | content of a client | sizes |
//! |---|---|---|
//! | [`Iid`](Partition::Iid) | a uniform draw without replacement | equal |
//! | [`OneLabel`](Partition::OneLabel) | one label only, the paper's non-IID case | equal |
//! | [`Shards`](Partition::Shards) | pieces of the data sorted by label (McMahan et al. 2017) | equal |
//! | [`Dirichlet`](Partition::Dirichlet) | label shares drawn from Dirichlet(α) (Hsu, Qi, Brown 2019) | equal |
//! | [`Unequal`](Partition::Unequal) | as IID | log-normal |
//! | [`Given`](Partition::Given) | rows that the caller lists ([`Shares::of_lists`]) | any |
//!
//! Sizes are equal because the paper's privacy statement needs it. Samples that do not fit stay unassigned, and
//! [`Shares::unassigned`] counts them.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use floras_core::{Choice, ChoiceError, bounded, serde_as_text, split};
use rand::seq::{SliceRandom, index};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Gamma, StandardNormal};

use crate::error::{LearnError, require};

/// The distribution of the samples over the clients.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Partition {
    /// All samples shuffled and divided equally.
    #[default]
    Iid,
    /// Every client holds one label.
    OneLabel,
    /// Every client holds this many pieces of the data sorted by label.
    Shards(ShardCount),
    /// Every client has its own label shares, drawn from a symmetric Dirichlet distribution with this `α`: near 0 one label
    /// per client, large as IID.
    Dirichlet(Concentration),
    /// Content as IID, sizes log-normal: the logarithm of a size has this standard deviation.
    Unequal(Spread),
    /// Every client holds the rows that were listed for it, for data in memory.
    Given,
}

bounded!(
    /// Pieces of a client: between 1 and 10000.
    ShardCount: u32, Partition, "shards", (1..=10_000)
);

bounded!(
    /// `α` of the Dirichlet distribution: between 0.001 and 1e6.
    Concentration: f64, Partition, "dirichlet", (1e-3..=1e6)
);

bounded!(
    /// Standard deviation of the logarithm of a client's size: between 0 and 5.
    Spread: f64, Partition, "unequal", (0.0..=5.0)
);

impl Choice for Partition {
    const WHAT: &'static str = "partition";
    const FORMS: &'static [&'static str] = &["iid", "one-label", "shards=s", "dirichlet=a", "unequal=u"];
    const RANGES: &'static str =
        "s an integer between 1 and 10000, a between 0.001 and 1e6, u between 0 and 5";

    fn label(&self) -> String {
        match self {
            Self::Iid => "IID".to_owned(),
            Self::OneLabel => "one label per client".to_owned(),
            Self::Shards(pieces) => format!("{pieces} shards per client"),
            Self::Dirichlet(alpha) => format!("Dirichlet, α = {alpha}"),
            Self::Unequal(spread) => format!("unequal sizes, spread {spread}"),
            Self::Given => "given per client".to_owned(),
        }
    }
}

impl FromStr for Partition {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let refuse = || Self::refuse(text);
        let number = |parameter: &str| parameter.parse().map_err(|_| refuse());
        match split(text) {
            ("iid", None) => Ok(Self::Iid),
            ("one-label", None) => Ok(Self::OneLabel),
            ("shards", Some(pieces)) => Self::shards(pieces.parse().map_err(|_| refuse())?),
            ("dirichlet", Some(alpha)) => Self::dirichlet(number(alpha)?),
            ("unequal", Some(spread)) => Self::unequal(number(spread)?),
            ("given", None) => Ok(Self::Given),
            _ => Err(refuse()),
        }
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iid => f.pad("iid"),
            Self::OneLabel => f.pad("one-label"),
            Self::Shards(pieces) => write!(f, "shards={pieces}"),
            Self::Dirichlet(alpha) => write!(f, "dirichlet={alpha}"),
            Self::Unequal(spread) => write!(f, "unequal={spread}"),
            Self::Given => f.pad("given"),
        }
    }
}

serde_as_text!(Partition);

impl Partition {
    /// Every client holds this many pieces, from 1 to 10000, of the data sorted by label.
    pub fn shards(pieces: u32) -> Result<Self, ChoiceError> {
        ShardCount::new(pieces).map(Self::Shards)
    }

    /// Label shares from a Dirichlet distribution with `α` from 0.001 to 1e6.
    pub fn dirichlet(alpha: f64) -> Result<Self, ChoiceError> {
        Concentration::new(alpha).map(Self::Dirichlet)
    }

    /// Log-normal sizes with a spread from 0 to 5.
    pub fn unequal(spread: f64) -> Result<Self, ChoiceError> {
        Spread::new(spread).map(Self::Unequal)
    }

    /// Distributes the samples with the given labels, all below `classes`, over `clients` clients.
    pub fn share(
        self,
        labels: &[u16],
        classes: usize,
        clients: usize,
        randomness: &mut impl Rng,
    ) -> Result<Shares, LearnError> {
        require(clients > 0, "the number of clients", "at least 1", clients)?;
        if clients > labels.len() {
            let reason = format!(
                "{} samples cannot be distributed over {clients} clients: every client needs at least one",
                labels.len()
            );
            return Err(LearnError::Partition { reason });
        }
        match self {
            Self::Iid => Ok(deal(shuffled(labels.len(), randomness), clients, labels.len() / clients)),
            Self::OneLabel => one_label(labels, classes, clients, randomness),
            Self::Shards(pieces) => shards(labels, clients, pieces.get() as usize, randomness),
            Self::Dirichlet(alpha) => Ok(dirichlet(labels, classes, clients, alpha.get(), randomness)),
            Self::Unequal(spread) => Ok(unequal(labels.len(), clients, spread.get(), randomness)),
            Self::Given => {
                Err(LearnError::Partition { reason: "the rows of each client must be listed".to_owned() })
            }
        }
    }
}

/// The samples of each client. No sample is held twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    rows: Vec<u32>,
    /// Client `k` holds `rows[ends[k−1]..ends[k]]`.
    ends: Vec<u32>,
    unassigned: usize,
}

impl Shares {
    /// The rows of each client, as listed: at least one per client, each below `samples`, and none twice.
    pub fn of_lists(lists: Vec<Vec<u32>>, samples: usize) -> Result<Self, LearnError> {
        let mut is_held = vec![false; samples];
        for (client, rows) in lists.iter().enumerate() {
            if rows.is_empty() {
                let reason = format!("client {client} has no rows: every client needs at least one");
                return Err(LearnError::Partition { reason });
            }
            for &row in rows {
                let reason = match is_held.get_mut(row as usize) {
                    Some(held) if !*held => {
                        *held = true;
                        continue;
                    }
                    Some(_) => format!("row {row} of client {client} is listed twice"),
                    None => format!("row {row} of client {client} must be below {samples}"),
                };
                return Err(LearnError::Partition { reason });
            }
        }
        Ok(Self::from_lists(lists.into_iter(), samples))
    }

    /// Number of clients.
    pub fn clients(&self) -> usize {
        self.ends.len()
    }

    /// The samples of a client; empty if there is no such client.
    pub fn of(&self, client: usize) -> &[u32] {
        self.range(client).map_or(&[], |range| &self.rows[range])
    }

    fn range(&self, client: usize) -> Option<Range<usize>> {
        let end = *self.ends.get(client)? as usize;
        let start = if client == 0 { 0 } else { self.ends[client - 1] as usize };
        Some(start..end)
    }

    /// Number of samples that no client holds, because sizes are equal.
    pub fn unassigned(&self) -> usize {
        self.unassigned
    }

    /// Number of samples that all clients hold together.
    pub fn assigned(&self) -> usize {
        self.rows.len()
    }

    /// All samples that are held, client after client.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The same shares after the samples were sorted in the order of [`rows`](Self::rows).
    pub fn in_order(&self) -> Self {
        let rows = (0..self.rows.len() as u32).collect();
        Self { rows, ends: self.ends.clone(), unassigned: self.unassigned }
    }

    fn from_lists(lists: impl Iterator<Item = Vec<u32>>, samples: usize) -> Self {
        let (mut rows, mut ends) = (Vec::with_capacity(samples), Vec::new());
        for list in lists {
            rows.extend(list);
            ends.push(rows.len() as u32);
        }
        let unassigned = samples - rows.len();
        Self { rows, ends, unassigned }
    }
}

fn shuffled(count: usize, randomness: &mut impl Rng) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..count as u32).collect();
    rows.shuffle(randomness);
    rows
}

/// Consecutive parts of `each` rows, one for each client.
fn deal(mut rows: Vec<u32>, clients: usize, each: usize) -> Shares {
    let unassigned = rows.len() - clients * each;
    rows.truncate(clients * each);
    let ends = (1..=clients).map(|client| (client * each) as u32).collect();
    Shares { rows, ends, unassigned }
}

/// The samples of each label, shuffled.
fn by_label(labels: &[u16], classes: usize, randomness: &mut impl Rng) -> Vec<Vec<u32>> {
    let mut lists = vec![Vec::new(); classes];
    for row in shuffled(labels.len(), randomness) {
        lists[usize::from(labels[row as usize])].push(row);
    }
    lists
}

fn one_label(
    labels: &[u16],
    classes: usize,
    clients: usize,
    randomness: &mut impl Rng,
) -> Result<Shares, LearnError> {
    let mut lists = by_label(labels, classes, randomness);
    let present: Vec<usize> = (0..classes).filter(|&label| !lists[label].is_empty()).collect();
    if clients < present.len() {
        let reason = format!(
            "one label per client needs at least as many clients as labels: there are {clients} clients and {} labels",
            present.len()
        );
        return Err(LearnError::Partition { reason });
    }
    let label_of = |client: usize| present[client % present.len()];
    let holders = |place: usize| (clients - place).div_ceil(present.len());
    let each = present.iter().enumerate().map(|(place, &label)| lists[label].len() / holders(place)).min();
    let each = each.unwrap_or(0);
    if each == 0 {
        let reason = format!(
            "{clients} clients are too many for one label per client: some label has too few samples"
        );
        return Err(LearnError::Partition { reason });
    }
    // The assignment of labels to clients is random; every label has the same number of clients, up to one.
    let order = shuffled(clients, randomness);
    let mut held = vec![Vec::new(); clients];
    for (place, &client) in order.iter().enumerate() {
        let list = &mut lists[label_of(place)];
        held[client as usize] = list.split_off(list.len() - each);
    }
    Ok(Shares::from_lists(held.into_iter(), labels.len()))
}

fn shards(
    labels: &[u16],
    clients: usize,
    pieces: usize,
    randomness: &mut impl Rng,
) -> Result<Shares, LearnError> {
    let length = labels.len() / (clients * pieces);
    if length == 0 {
        let reason = format!(
            "{} samples are too few for {clients} clients with {pieces} shards each: a shard needs a sample",
            labels.len()
        );
        return Err(LearnError::Partition { reason });
    }
    let mut sorted = shuffled(labels.len(), randomness);
    sorted.sort_by_key(|&row| labels[row as usize]);
    let order = shuffled(clients * pieces, randomness);
    let held = order.chunks(pieces).map(|mine| {
        let shard = |&piece: &u32| &sorted[piece as usize * length..][..length];
        mine.iter().flat_map(shard).copied().collect()
    });
    Ok(Shares::from_lists(held, labels.len()))
}

/// Each client draws label shares, and then its samples one by one; a label without remaining samples is skipped.
fn dirichlet(
    labels: &[u16],
    classes: usize,
    clients: usize,
    alpha: f64,
    randomness: &mut impl Rng,
) -> Shares {
    let mut lists = by_label(labels, classes, randomness);
    let each = labels.len() / clients;
    let held = (0..clients).map(|_| {
        let shares = dirichlet_shares(classes, alpha, randomness);
        (0..each).map(|_| draw_label(&shares, &mut lists, randomness)).collect()
    });
    Shares::from_lists(held, labels.len())
}

/// Shares of the labels, drawn from a symmetric Dirichlet distribution.
///
/// For small `α` a gamma variable can be too small for a floating-point number. Then all the weight is on one label, which is
/// the limit of the distribution for `α → 0`.
pub(crate) fn dirichlet_shares(classes: usize, alpha: f64, randomness: &mut impl Rng) -> Vec<f64> {
    let Ok(gamma) = Gamma::new(alpha, 1.0) else { return vec![1.0 / classes as f64; classes] };
    let mut shares: Vec<f64> = (0..classes).map(|_| gamma.sample(randomness)).collect();
    let sum: f64 = shares.iter().sum();
    if sum > 0.0 {
        shares.iter_mut().for_each(|share| *share /= sum);
    } else {
        shares[randomness.random_range(0..classes)] = 1.0;
    }
    shares
}

fn draw_label(shares: &[f64], lists: &mut [Vec<u32>], randomness: &mut impl Rng) -> u32 {
    let mut left: f64 =
        shares.iter().zip(&*lists).filter(|(_, list)| !list.is_empty()).map(|(&p, _)| p).sum();
    if left <= 0.0 {
        // All labels with a share are used up: the client draws from the remaining samples.
        let remaining: usize = lists.iter().map(Vec::len).sum();
        let mut place = randomness.random_range(0..remaining);
        for list in lists.iter_mut() {
            if place < list.len() {
                return list.swap_remove(place);
            }
            place -= list.len();
        }
    }
    left *= randomness.random::<f64>();
    let mut last = None;
    for (label, share) in shares.iter().enumerate() {
        if lists[label].is_empty() || *share == 0.0 {
            continue;
        }
        last = Some(label);
        left -= share;
        if left < 0.0 {
            break;
        }
    }
    last.and_then(|label| lists[label].pop()).expect("there is a sample for every place")
}

/// Sizes in proportion to log-normal weights; every client has at least one sample, and all samples are held.
fn unequal(samples: usize, clients: usize, spread: f64, randomness: &mut impl Rng) -> Shares {
    let weights: Vec<f64> = (0..clients).map(|_| log_normal(spread, randomness)).collect();
    let total: f64 = weights.iter().sum();
    let spare = (samples - clients) as f64;
    let mut ends = Vec::with_capacity(clients);
    let mut reached = 0.0;
    for (client, weight) in weights.iter().enumerate() {
        reached += weight / total;
        ends.push((client + 1) as u32 + (reached * spare).round() as u32);
    }
    if let Some(last) = ends.last_mut() {
        *last = samples as u32;
    }
    Shares { rows: shuffled(samples, randomness), ends, unassigned: 0 }
}

/// `e^{spread·n}` with a standard normal `n`.
pub(crate) fn log_normal(spread: f64, randomness: &mut impl Rng) -> f64 {
    let normal: f64 = StandardNormal.sample(randomness);
    (spread * normal).exp()
}

/// `count` different labels out of `classes`.
pub(crate) fn some_labels(classes: usize, count: usize, randomness: &mut impl Rng) -> Vec<u16> {
    index::sample(randomness, classes, count.clamp(1, classes))
        .into_iter()
        .map(|label| label as u16)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    use super::*;
    use crate::data::Samples;

    fn generator() -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(11)
    }

    /// 4000 labels in turn, as the embedded digits have them.
    fn labels() -> Vec<u16> {
        (0..4000).map(|row| row % 10).collect()
    }

    fn share(partition: Partition, clients: usize) -> Shares {
        partition.share(&labels(), 10, clients, &mut generator()).unwrap()
    }

    fn labels_of(shares: &Shares, client: usize) -> HashSet<u16> {
        shares.of(client).iter().map(|&row| labels()[row as usize]).collect()
    }

    #[test]
    fn every_label_has_its_share_of_clients() {
        let shares = share(Partition::OneLabel, 20);
        let mut holders = [0; 10];
        for client in 0..20 {
            let labels = labels_of(&shares, client);
            assert_eq!((labels.len(), shares.of(client).len()), (1, 200));
            holders[usize::from(*labels.iter().next().unwrap())] += 1;
        }
        assert_eq!((holders, shares.unassigned()), ([2; 10], 0));
        let in_turn = (0..20).all(|client| labels_of(&shares, client).contains(&(client as u16 % 10)));
        assert!(!in_turn, "which client holds which label is random");
    }

    #[test]
    fn two_shards_hold_at_most_two_labels() {
        let shares = share(Partition::shards(2).unwrap(), 20);
        let counts: Vec<usize> = (0..20).map(|client| labels_of(&shares, client).len()).collect();
        assert!(counts.iter().all(|&count| count <= 2) && counts.contains(&2));
    }

    /// The mean of Σ p² over clients is (α+1)/(10α+1) for the distribution itself; drawing 40 samples without replacement and
    /// labels that run out move it a little, and 100 clients leave a standard error of about 0.02.
    #[test]
    fn dirichlet_shares_are_as_uneven_as_alpha() {
        for (alpha, expected) in [(0.1, 0.55), (1.0, 0.182), (100.0, 0.101)] {
            let shares = share(Partition::dirichlet(alpha).unwrap(), 100);
            let unevenness = |client: usize| {
                let mut counts = [0_u32; 10];
                shares.of(client).iter().for_each(|&row| counts[usize::from(labels()[row as usize])] += 1);
                // Without the term that randomness alone adds to a square of counts: n(n−1) pairs.
                counts.iter().map(|&n| f64::from(n * n.saturating_sub(1))).sum::<f64>() / (40.0 * 39.0)
            };
            let mean = (0..100).map(unevenness).sum::<f64>() / 100.0;
            assert!((mean - expected).abs() < 0.08, "α = {alpha}: {mean} instead of about {expected}");
        }
    }

    #[test]
    fn unequal_sizes_have_the_requested_spread() {
        let shares = share(Partition::unequal(1.0).unwrap(), 50);
        let sizes: Vec<f64> = (0..50).map(|client| shares.of(client).len() as f64).collect();
        assert_eq!(sizes.iter().sum::<f64>(), 4000.0);
        let logs: Vec<f64> = sizes.iter().map(|size| size.ln()).collect();
        let mean = logs.iter().sum::<f64>() / 50.0;
        let deviation = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / 49.0).sqrt();
        // The standard error of a standard deviation over 50 values is about 0.1.
        assert!((deviation - 1.0).abs() < 0.4, "{deviation}");
        let same: HashSet<usize> =
            (0..50).map(|client| share(Partition::unequal(0.0).unwrap(), 50).of(client).len()).collect();
        assert!(same.iter().all(|size| (79..=81).contains(size)));
    }

    #[test]
    fn impossible_partitions_are_refused() {
        let refused = |partition: Partition, clients: usize| {
            partition.share(&labels(), 10, clients, &mut generator()).unwrap_err().to_string()
        };
        assert!(refused(Partition::Iid, 4001).contains("4001 clients"));
        assert!(refused(Partition::Iid, 0).contains("at least 1"));
        assert!(refused(Partition::OneLabel, 9).contains("9 clients and 10 labels"));
        assert!(refused(Partition::shards(3).unwrap(), 2000).contains("shards"));
        for wrong in ["shards=0", "shards=0.5", "dirichlet=0", "dirichlet=NaN", "unequal=-1"] {
            assert!(wrong.parse::<Partition>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn sorted_samples_keep_their_clients() {
        let features = (0..60).map(|value| value as f32).collect();
        let samples = Samples::new(2, 3, features, (0..30).map(|row| row % 3).collect()).unwrap();
        let shares = Partition::Iid.share(samples.labels(), 3, 4, &mut generator()).unwrap();
        let (ordered, in_order) = (samples.select(shares.rows()), shares.in_order());
        for client in 0..4 {
            let pairs = shares.of(client).iter().zip(in_order.of(client));
            assert!(pairs.clone().count() == 7);
            for (&before, &after) in pairs {
                assert_eq!(samples.row(before as usize), ordered.row(after as usize));
                assert_eq!(samples.labels()[before as usize], ordered.labels()[after as usize]);
            }
        }
    }

    #[test]
    fn one_label_ignores_labels_without_samples() {
        let labels: Vec<u16> = (0..30).map(|row| 3 + row % 2).collect();
        let shares = Partition::OneLabel.share(&labels, 10, 4, &mut generator()).unwrap();
        assert!((0..4).all(|client| shares.of(client).len() == 7));
        assert_eq!(shares.unassigned(), 2);
    }

    proptest! {
        #[test]
        fn no_sample_is_held_twice(
            seed in any::<u64>(),
            labels in prop::collection::vec(0_u16..5, 1..300),
            clients in 1_usize..40,
            choice in 0_usize..5,
        ) {
            let partition = [
                Partition::Iid, Partition::OneLabel, Partition::shards(2).unwrap(), Partition::dirichlet(0.05).unwrap(),
                Partition::unequal(2.0).unwrap(),
            ][choice];
            let shares = partition.share(&labels, 5, clients, &mut ChaCha8Rng::seed_from_u64(seed));
            prop_assume!(shares.is_ok());
            let shares = shares.unwrap();
            let mut seen = HashSet::new();
            for client in 0..clients {
                prop_assert!(!shares.of(client).is_empty());
                prop_assert!(shares.of(client).iter().all(|&row| seen.insert(row)));
                prop_assert!(matches!(partition, Partition::Unequal(_)) || shares.of(client).len() == shares.of(0).len());
            }
            prop_assert_eq!(seen.len() + shares.unassigned(), labels.len());
            prop_assert!(seen.iter().all(|&row| (row as usize) < labels.len()));
            prop_assert!(shares.of(clients).is_empty());
        }
    }
}
