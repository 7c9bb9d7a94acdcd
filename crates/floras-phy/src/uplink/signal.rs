//! The signal of a round: channels, estimates, assignment and noise behind the gains `g` and the noise `ν`.
//!
//! ```text
//! pilot    ĥ_j = a_jᵀ(Σ_k a_k h_k + n_p)
//! payload  a_jᵀy_i = h_k x_k[i] + N(0, s²)  on client k's sequence,  N(0, s²) on an unused one
//! decoder  v = Σ_j w_j a_j,  g_k = h_k·vᵀa_k,  ν = s·‖v‖
//! ```
//!
//! With orthonormal sequences `g_k = h_k·w_j` for the client's sequence `j`, and `ν = s·√(Σ_j w_j²)`. A scheme without sequences
//! has one weight `w`: `g_k = h_k·w`.
//!
//! With `B` real branches (see [`Modulation::branches`](floras_core::Modulation::branches)) amplitudes, estimates and weights are vectors
//! of length `B`, stored next to each other in one list: entry `b` of client or sequence `i` is at `i·B + b`. A product is then an inner
//! product, as in `g_k = Σ_b h_{k,b}·w_{j,b}`. With two parameters in a symbol the cross-talk is
//! `c_k = Σ_r (w_{j,2r}·h_{k,2r+1} − w_{j,2r+1}·h_{k,2r})`.
//!
//! Channels and amplitudes are those at the time of the pilot. Where the channel ages, blocks of the payload have other gains.
//!
//! The base station knows the estimates, the weights and the noise. It knows neither the channels nor the assignment. The paper's
//! receiver keeps the decoded sum alone; a base station may keep all of it (Remark 5 of the paper).

use num_complex::Complex64;

use crate::error::{UplinkError, require_count};

/// The signal of a simulated round, given its pilot.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// Number of real branches `B` of the receiver, at least 1.
    pub branches: usize,
    /// The complex channel of each client at the time of the pilot, in the order of the round's list: one for each antenna.
    pub channels: Vec<Complex64>,
    /// `h_k`: the real amplitudes at which a unit symbol of each client arrives, one for each branch.
    pub amplitudes: Vec<f64>,
    /// The sequence of each client, counted from 0: secret from the base station. Empty for a scheme without sequences.
    pub assigned: Vec<usize>,
    /// `ĥ_j` of each of the `N` sequences, one for each branch; empty for a scheme in which the base station estimates no channel.
    pub estimates: Vec<f64>,
    /// `w_j`: the projector's weights of each sequence, one for each branch, or the one factor of a scheme without sequences.
    pub weights: Vec<f64>,
    /// Channel uses `L` of one parameter, at least 1.
    pub length: usize,
    /// `s`: standard deviation of the receiver's noise in a despread payload symbol.
    pub symbol_noise_std: f64,
    /// `s_p`: standard deviation of the error of an estimate; `None` without estimates.
    pub pilot_noise_std: Option<f64>,
}

impl Signal {
    /// Refuses a signal that a scheme has drawn for another number of clients.
    pub(crate) fn for_clients(self, clients: usize) -> Result<Self, UplinkError> {
        let antennas = (self.channels.len() / clients.max(1)).max(1);
        require_count("channels, one for each client and antenna", clients * antennas, self.channels.len())?;
        let amplitudes = clients * self.branches;
        require_count("amplitudes, one for each client and branch", amplitudes, self.amplitudes.len())?;
        if !self.assigned.is_empty() {
            require_count("assigned sequences, one for each client", clients, self.assigned.len())?;
        }
        Ok(self)
    }
}
