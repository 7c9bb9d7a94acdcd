//! What clients keep from one round to the next.

use std::collections::BTreeMap;

/// One vector for each client that has taken part, such as the part of its updates that compression has left out so far.
///
/// ```
/// use floras_phy::ClientMemory;
///
/// let mut memory = ClientMemory::default();
/// memory.of(7, 2)[1] = 0.5;
/// assert_eq!(memory.of(7, 2), [0.0, 0.5]);
/// assert_eq!(memory.iter().count(), 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientMemory {
    of: BTreeMap<u32, Vec<f32>>,
}

impl ClientMemory {
    /// The vector of a client, with `parameters` values; zero at first. A vector of another length starts again from zero.
    pub fn of(&mut self, client: u32, parameters: usize) -> &mut [f32] {
        let vector = self.of.entry(client).or_default();
        if vector.len() != parameters {
            *vector = vec![0.0; parameters];
        }
        vector
    }

    /// Whether no client has a vector.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The clients in ascending order, each with its vector.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[f32])> {
        self.of.iter().map(|(&client, vector)| (client, vector.as_slice()))
    }
}

impl FromIterator<(u32, Vec<f32>)> for ClientMemory {
    fn from_iter<I: IntoIterator<Item = (u32, Vec<f32>)>>(vectors: I) -> Self {
        Self { of: vectors.into_iter().collect() }
    }
}
