//! An adversary with the raw samples of masked rounds: phones, chips, samples, despreading.
//!
//! Every symbol `u_k[i]` is spread to the chips of its client's sequence, all clients arrive at once over the channels of the
//! experiment's uplink, and every chip has noise. The adversary despreads every sequence. It knows the channels and the
//! assignment, which favours it, and combines the branches of each client's sequence:
//!
//! ```text
//! y_{k,b} = h_{k,b}·u_k + s·n_{k,b},     û_k = Σ_b h_{k,b}·y_{k,b}/‖h_k‖² = u_k + N(0, s²/‖h_k‖²)
//! ```
//!
//! Unused sequences hold independent noise. So `û` is `x + N(0, Σ + diag(s²/‖h_k‖²))`.

use floras_core::Fidelity;
use floras_phy::{Round, SequenceSet, Signal, Uplink, UplinkError};
use floras_sim::purpose;
use rand_distr::{Distribution, StandardNormal};

use super::covariance::{self, Covariance};
use super::federation::{GAMES, PARAMETERS, PerGame, SmallFederation, Symbols, direction};
use super::symbols::Sent;
use crate::bound::Scores;

/// The radio of an experiment.
pub(super) struct Radio<'a> {
    /// FLORAS with orthonormal sequences at the clients' transmit power, without masks.
    pub(super) uplink: &'a dyn Uplink,
    pub(super) sequences: &'a SequenceSet,
    /// `d` of the experiment, which determines the power of a symbol.
    pub(super) parameters: usize,
}

impl Radio<'_> {
    /// Scores of the adversary.
    pub(super) fn scores(
        &self,
        federation: &SmallFederation,
        games: u32,
        table: u8,
    ) -> Result<[Scores; 1], UplinkError> {
        let clients: Vec<u32> = (0..federation.clients() as u32).collect();
        let (pair_variance, noise_variance) = federation.variances();
        let covariance = Covariance::of_masks(clients.len(), clients.len(), pair_variance, noise_variance);
        federation.scores(
            table,
            games,
            |_| (),
            |(), round, sign| {
                let sent = Sent::new(round, clients.len(), sign)?;
                let mut scores = PerGame::default();
                for (game, score) in scores.iter_mut().enumerate() {
                    // Every game has its own channels.
                    let number = round.number * GAMES as u32 + game as u32 + 1;
                    let air = Round::new(federation.seed(), round.trial, number, &clients)?;
                    let received =
                        self.receive(&air.with_parameters(self.parameters), &sent.symbols, game)?;
                    let weights = covariance.clone().with_noise(&received.variances).weights();
                    *score = covariance::score(&weights, received.along, federation.clip());
                }
                Ok([scores])
            },
        )
    }

    /// Sends the symbols of a game over the air and returns the adversary's observation.
    fn receive(&self, round: &Round<'_>, symbols: &[Symbols], game: usize) -> Result<Received, UplinkError> {
        let clients = symbols.len();
        let signal = self.uplink.signal(round, Fidelity::Chip)?;
        let Signal { amplitudes, assigned, symbol_noise_std, .. } =
            signal.ok_or(UplinkError::NoChipLevel { scheme: self.uplink.name() })?;
        let branches = amplitudes.len() / clients;
        let amplitude = |client: usize, branch: usize| amplitudes[client * branches + branch];
        let square =
            |client: usize| (0..branches).map(|branch| amplitude(client, branch).powi(2)).sum::<f64>();
        let squares: Vec<f64> = (0..clients).map(square).collect();
        let mut noise = round.stream(purpose::DESPREAD_NOISE);
        let mut combined = vec![0.0; clients];
        for place in (game * PARAMETERS..).take(PARAMETERS) {
            for branch in 0..branches {
                let mut carried = vec![0.0; self.sequences.count()];
                for (client, &sequence) in assigned.iter().enumerate() {
                    carried[sequence] += amplitude(client, branch) * symbols[client][place];
                }
                let mut chips = self.sequences.spread(&carried)?;
                for chip in &mut chips {
                    let normal: f64 = StandardNormal.sample(&mut noise);
                    *chip += symbol_noise_std * normal;
                }
                let despread = self.sequences.despread(&chips)?;
                for (client, &sequence) in assigned.iter().enumerate() {
                    let estimate = amplitude(client, branch) * despread[sequence] / squares[client];
                    combined[client] += direction(place) * estimate;
                }
            }
        }
        let variances = squares.iter().map(|square| symbol_noise_std * symbol_noise_std / square);
        Ok(Received { along: combined, variances: variances.collect() })
    }
}

/// The adversary's observation of each client in a game.
struct Received {
    /// `û_k` along the canary's direction.
    along: Vec<f64>,
    /// Variance of the noise of each `û_k`, `s²/‖h_k‖²`.
    variances: Vec<f64>,
}
