//! One round of a federation at the air interface: its clients and its random streams.

use floras_core::random::{Purpose, Stream, StreamName, TrialId};

use crate::error::{UplinkError, require};

/// The clients of one round, and the names of its random streams.
///
/// ```
/// use floras_phy::Round;
///
/// let round = Round::new(1, 0, 13, &[3, 14, 15])?;
/// assert_eq!(round.clients().len(), 3);
/// assert!(Round::new(1, 0, 13, &[3, 3]).is_err());
/// # Ok::<(), floras_phy::UplinkError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round<'a> {
    seed: u64,
    trial: TrialId,
    number: u32,
    clients: &'a [u32],
    selected: &'a [u32],
    /// The number of selected clients, if only their number is known.
    selected_count: Option<usize>,
    parameters: Option<usize>,
    /// The trial that determines the clients' positions in the cell.
    placement: TrialId,
}

impl<'a> Round<'a> {
    /// Round `number`, counted from 1, of trial `trial` under `seed`, with the given distinct clients.
    pub fn new(
        seed: u64,
        trial: impl Into<TrialId>,
        number: u32,
        clients: &'a [u32],
    ) -> Result<Self, UplinkError> {
        if number == 0 {
            return Err(UplinkError::RoundZero);
        }
        if clients.is_empty() {
            return Err(UplinkError::NoClients);
        }
        sorted(clients)?;
        let trial = trial.into();
        Ok(Self {
            seed,
            trial,
            number,
            clients,
            selected: clients,
            selected_count: None,
            parameters: None,
            placement: trial,
        })
    }

    /// The same round in which the distinct clients of `selected` were selected. Those that do not take part are silent: they
    /// send neither pilot nor payload.
    pub fn with_selected(self, selected: &'a [u32]) -> Result<Self, UplinkError> {
        let called = sorted(selected)?;
        match self.clients.iter().find(|client| called.binary_search(client).is_err()) {
            Some(&client) => Err(UplinkError::NotSelected { client }),
            None => Ok(Self { selected, selected_count: None, ..self }),
        }
    }

    /// The same round in which `count` clients were selected, at least as many as are listed. The others are silent.
    pub fn with_selected_count(self, count: usize) -> Result<Self, UplinkError> {
        let known = self.selected.len();
        require(
            count >= known,
            "the number of selected clients",
            "at least that of the clients",
            count as f64,
        )?;
        Ok(Self { selected_count: Some(count), ..self })
    }

    /// The trial that the round belongs to.
    pub fn trial(&self) -> TrialId {
        self.trial
    }

    /// The round's number, counted from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The same round for updates of `parameters` parameters.
    pub fn with_parameters(self, parameters: usize) -> Self {
        Self { parameters: Some(parameters), ..self }
    }

    /// The same round with the client positions of another trial. An estimate draws rounds of its own, but with the positions of
    /// a run's clients.
    pub fn placed_as_in(self, trial: impl Into<TrialId>) -> Self {
        Self { placement: trial.into(), ..self }
    }

    /// The number of parameters `d`; `None` if unknown. It is known while updates are sent, but not always when a channel is
    /// drawn for an estimate.
    pub fn parameters(&self) -> Option<usize> {
        self.parameters
    }

    /// The clients that take part.
    pub fn clients(&self) -> &'a [u32] {
        self.clients
    }

    /// The selected clients: those that take part and those that are silent.
    pub fn selected(&self) -> &'a [u32] {
        self.selected
    }

    /// Number of selected clients.
    pub fn selected_count(&self) -> usize {
        self.selected_count.unwrap_or(self.selected.len())
    }

    /// The name of the round's own stream for `purpose`.
    pub fn stream_name(&self, purpose: Purpose) -> StreamName {
        StreamName::new(self.seed, purpose).trial(self.trial).round(self.number - 1)
    }

    /// The round's own stream for `purpose`.
    pub fn stream(&self, purpose: Purpose) -> Stream {
        self.stream_name(purpose).stream()
    }

    /// One client's stream for `purpose`.
    pub fn stream_of(&self, purpose: Purpose, client: u32) -> Stream {
        self.stream_name(purpose).client(client).stream()
    }

    /// One client's stream for `purpose`, which is the same in all rounds of a trial.
    pub(crate) fn stream_of_trial(&self, purpose: Purpose, client: u32) -> Stream {
        StreamName::new(self.seed, purpose).trial(self.placement).client(client).stream()
    }
}

/// The clients in ascending order, each once.
fn sorted(clients: &[u32]) -> Result<Vec<u32>, UplinkError> {
    let mut sorted = clients.to_vec();
    sorted.sort_unstable();
    match sorted.array_windows().find(|[left, right]| left == right) {
        Some(pair) => Err(UplinkError::RepeatedClient { client: pair[0] }),
        None => Ok(sorted),
    }
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    #[test]
    fn seed_trial_round_and_client_select_the_stream() {
        let clients = [3, 5];
        let word = |seed, trial: u16, number, client| {
            let round = Round::new(seed, trial, number, &clients).unwrap();
            round.stream_of(Purpose::FADING, client).next_u64()
        };
        let words =
            [word(1, 0, 1, 3), word(2, 0, 1, 3), word(1, 1, 1, 3), word(1, 0, 2, 3), word(1, 0, 1, 5)];
        for (index, left) in words.iter().enumerate() {
            assert!(!words[index + 1..].contains(left));
        }
    }

    #[test]
    fn only_selected_clients_take_part() {
        let round = Round::new(1, 0, 1, &[9, 4]).unwrap();
        assert_eq!(round.selected(), [9, 4]);
        assert_eq!(round.with_selected(&[4, 7, 9]).unwrap().selected(), [4, 7, 9]);
        assert_eq!(round.with_selected(&[4, 7]), Err(UplinkError::NotSelected { client: 9 }));
        assert_eq!(round.with_selected(&[4, 9, 4]), Err(UplinkError::RepeatedClient { client: 4 }));
        assert_eq!(round.selected_count(), 2);
        assert_eq!(round.with_selected(&[4, 7, 9]).unwrap().selected_count(), 3);
        assert_eq!(round.with_selected_count(5).unwrap().selected_count(), 5);
        assert!(round.with_selected_count(1).is_err());
    }

    #[test]
    fn empty_rounds_and_repeated_clients_are_refused() {
        assert_eq!(Round::new(1, 0, 0, &[4]), Err(UplinkError::RoundZero));
        assert_eq!(Round::new(1, 0, 1, &[]), Err(UplinkError::NoClients));
        assert_eq!(Round::new(1, 0, 1, &[4, 9, 4]), Err(UplinkError::RepeatedClient { client: 4 }));
    }
}
