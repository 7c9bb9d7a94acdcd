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

    /// The vectors of several distinct clients, in their order: see [`of`](Self::of).
    pub fn of_each(&mut self, clients: &[u32], parameters: usize) -> Vec<&mut [f32]> {
        let mut order: Vec<(u32, usize)> = clients.iter().copied().zip(0..).collect();
        order.sort_unstable();
        for &client in clients {
            self.of(client, parameters);
        }
        let mut found: Vec<(usize, &mut [f32])> = Vec::with_capacity(clients.len());
        for (client, vector) in &mut self.of {
            if let Ok(at) = order.binary_search_by_key(client, |(client, _)| *client) {
                found.push((order[at].1, vector));
            }
        }
        found.sort_unstable_by_key(|(place, _)| *place);
        found.into_iter().map(|(_, vector)| vector).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_those_of_the_clients() {
        let mut memory: ClientMemory = [(3, vec![3.0]), (5, vec![5.0]), (8, vec![8.0])].into_iter().collect();
        assert_eq!(memory.of_each(&[8, 1, 3], 1), [[8.0], [0.0], [3.0]]);
        memory.of_each(&[8, 3], 1)[0][0] = 9.0;
        assert_eq!(memory.of(8, 1), [9.0]);
        assert_eq!(memory.of(5, 1), [5.0]);
    }
}
