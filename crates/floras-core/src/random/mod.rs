//! Reproducible randomness: one seed, and a separate stream for every named draw.
//!
//! A draw is named by *(seed, purpose, trial, round, client)*. The name is not hashed: the seed **is** the key, and the rest of
//! the name is the counter of Philox4x32-10, a map from a 64-bit key and a 128-bit counter to four 32-bit words.
//!
//! ```text
//! key      seed (64 bits)
//! counter  client (32) │ round (32) │ trial (16) │ purpose (8) │ domain (4) │ block (36)
//! ```
//!
//! Distinct names therefore never share a counter. No draw depends on the number of earlier draws, so a result is the same for
//! any number of threads and after a resume. The words, and the normal numbers of [`NormalField`], have the same bits on every
//! processor. The simulator's streams are not secret; a live federation draws its permutations from the group key instead.
//!
//! # Citations
//! Salmon, Moraes, Dror, Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC 2011.

mod normal;
mod philox;
mod trial;
mod words;

use std::convert::Infallible;

use rand::rand_core::{Rng, TryRng, utils};

pub use normal::{NormalField, TILE, Tile, tile_of_normals};
pub use trial::{Domain, TrialId};
pub use words::{WordField, tile_of_words};

/// The purpose of a stream of random numbers; streams of different purposes never overlap.
///
/// Codes below 64 belong to the air interface, codes below 128 to the other crates of floras. Other crates use codes from 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Purpose(pub u8);

impl Purpose {
    /// The channel coefficients of a round, one stream per client.
    pub const FADING: Self = Self(1);
    /// The receiver's noise while the pilot is sent.
    pub const PILOT_NOISE: Self = Self(2);
    /// The receiver's noise while the updates are sent.
    pub const PAYLOAD_NOISE: Self = Self(3);
    /// The assignment of sequences to clients in a simulation.
    pub const ASSIGNMENT: Self = Self(4);
    /// The error of a client's phase correction.
    pub const PHASE_ERROR: Self = Self(5);
    /// The entries of a Gaussian sequence set.
    pub const SEQUENCES: Self = Self(6);
    /// Synthetic updates for benchmarks.
    pub const BENCHMARK: Self = Self(7);
    /// The noise that clients add to their own updates, one stream for each place in the round.
    pub const CLIENT_NOISE: Self = Self(8);
    /// How the channel of a client changes from the pilot through the blocks of the payload, one stream for each client.
    pub const AGEING: Self = Self(16);
    /// The error of a client's estimate of its own channel.
    pub const CHANNEL_ESTIMATE: Self = Self(17);
    /// A client's position for a whole trial, and its shadowing.
    pub const PLACEMENT: Self = Self(18);
    /// The rounding of a client's quantised update, one stream for each client of a round.
    pub const QUANTISATION: Self = Self(19);
    /// The public random projection of a round, by which clients compress their updates.
    pub const PROJECTION: Self = Self(20);
    /// The private keys of simulated clients, one stream for each client of a trial.
    pub const IDENTITY: Self = Self(40);
    /// The group key of a simulated trial.
    pub const GROUP_KEY: Self = Self(41);
    /// The ephemeral keys with which a simulated dealer seals the group key, one stream for each client of a trial.
    pub const SEALING: Self = Self(42);
    /// The seeds of simulated masks, one stream for each pair of clients in a round.
    pub const MASKS: Self = Self(43);
    /// The keys of the noise that simulated clients add under their masks, one stream for each client of a round.
    pub const LOCAL_NOISE: Self = Self(44);
}

/// The name of one stream of random numbers.
///
/// ```
/// use floras_core::random::{Purpose, StreamName};
/// use rand::RngExt;
///
/// let name = StreamName::new(1, Purpose::FADING).trial(2).round(30).client(4);
/// let first: f64 = name.stream().random();
/// let again: f64 = name.stream().random();
/// assert_eq!(first, again);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamName {
    seed: u64,
    purpose: Purpose,
    trial: TrialId,
    round: u32,
    client: u32,
}

impl StreamName {
    /// The stream of `purpose` under `seed`, for trial, round and client zero.
    pub const fn new(seed: u64, purpose: Purpose) -> Self {
        Self { seed, purpose, trial: TrialId::new(Domain::Run, 0), round: 0, client: 0 }
    }

    /// The same stream in another trial.
    pub fn trial(mut self, trial: impl Into<TrialId>) -> Self {
        self.trial = trial.into();
        self
    }

    /// The same stream in another round, counted from 0.
    pub const fn round(mut self, round: u32) -> Self {
        self.round = round;
        self
    }

    /// The same stream for another client.
    pub const fn client(mut self, client: u32) -> Self {
        self.client = client;
        self
    }

    /// The stream of another purpose under the same name.
    pub const fn purpose(mut self, purpose: Purpose) -> Self {
        self.purpose = purpose;
        self
    }

    /// A generator of words that starts at the beginning of the stream.
    pub const fn stream(self) -> Stream {
        Stream { name: self, next_block: 0, words: [0; 4], used: 4 }
    }

    /// The stream as standard normal numbers, with random access.
    pub const fn normals(self) -> NormalField {
        NormalField::new(self)
    }

    /// The stream as words with random access, in another order than those of [`stream`](Self::stream).
    pub const fn words(self) -> WordField {
        WordField::new(self)
    }

    pub(crate) const fn key(self) -> [u32; 2] {
        [self.seed as u32, (self.seed >> 32) as u32]
    }

    /// The three counter words that are constant over 2³² consecutive blocks, given the upper 4 bits of the block number.
    pub(crate) const fn counter_tail(self, block_high: u8) -> [u32; 3] {
        let named = (self.trial.number() as u32) << 16
            | (self.purpose.0 as u32) << 8
            | (self.trial.domain() as u32) << 4
            | (block_high & 0xf) as u32;
        [named, self.round, self.client]
    }
}

/// A generator of random words over one [`StreamName`]; implements the traits of `rand`.
#[derive(Clone, Debug)]
pub struct Stream {
    name: StreamName,
    next_block: u64,
    words: [u32; 4],
    used: usize,
}

impl Stream {
    fn next_word(&mut self) -> u32 {
        if self.used == self.words.len() {
            let [named, round, client] = self.name.counter_tail((self.next_block >> 32) as u8);
            let counter = [[self.next_block as u32], [named], [round], [client]];
            self.words = philox::blocks(self.name.key(), counter).map(|[word]| word);
            self.next_block += 1;
            self.used = 0;
        }
        self.used += 1;
        self.words[self.used - 1]
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.next_word())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        utils::next_u64_via_u32(self)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        utils::fill_bytes_via_next_word(bytes, || Ok(self.next_u32()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn streams_agree_with_another_philox_library() {
        let name = StreamName::new(0x0123_4567_89ab_cdef, Purpose(9)).trial(3).round(70_000).client(u32::MAX);
        let mut stream = name.stream();
        for block in 0..5_u32 {
            let counter = [block, 3 << 16 | 9 << 8, 70_000, u32::MAX];
            let expected = rand_philox::philox4x32_10(counter, [0x89ab_cdef, 0x0123_4567]);
            let ours: Vec<u32> = (0..4).map(|_| stream.next_u32()).collect();
            assert_eq!(ours, expected);
        }
    }

    #[test]
    fn a_stream_continues_beyond_2_32_blocks() {
        let mut stream = StreamName::new(1, Purpose(9)).stream();
        stream.next_block = (7 << 32) + 5;
        let expected = rand_philox::philox4x32_10([5, 9 << 8 | 7, 0, 0], [1, 0]);
        assert_eq!([0; 4].map(|_: u32| stream.next_u32()), expected);
    }

    #[test]
    fn bytes_and_words_come_from_the_same_stream() {
        let name = StreamName::new(5, Purpose::FADING);
        let mut bytes = [0; 11];
        name.stream().fill_bytes(&mut bytes);
        let mut words = name.stream();
        let expected: Vec<u8> = (0..3).flat_map(|_| words.next_u32().to_le_bytes()).take(11).collect();
        assert_eq!(bytes.as_slice(), expected);
    }

    proptest! {
        #[test]
        fn different_names_are_different_counters(
            names in prop::collection::hash_set(
                (any::<u8>(), 0..Domain::ALL.len(), any::<u16>(), any::<u32>(), any::<u32>()), 2..40
            )
        ) {
            let counters: HashSet<[u32; 3]> = names
                .iter()
                .map(|&(purpose, domain, number, round, client)| {
                    let trial = TrialId::new(Domain::ALL[domain], number);
                    StreamName::new(1, Purpose(purpose)).trial(trial).round(round).client(client).counter_tail(0)
                })
                .collect();
            prop_assert_eq!(counters.len(), names.len());
        }
    }
}
