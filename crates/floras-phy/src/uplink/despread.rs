//! What a base station has that keeps its samples and despreads every sequence, instead of decoding the sum alone.
//!
//! ```text
//! pilot    ĥ_j = a_jᵀ(Σ_k a_k h_k + n_s)
//! payload  a_jᵀy_i = h_k x_k[i] + N(0, s²)  on client k's sequence,  N(0, s²) on one that nobody uses
//! ```
//!
//! The paper's receiver throws this away (its Remark 5 says that others may not).

/// A round after the pilot, sequence by sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Despread {
    /// `ĥ_j` of every sequence.
    pub estimates: Vec<f64>,
    /// The sequence that each client uses: what the base station is not told.
    pub assigned: Vec<usize>,
    /// `h_k`: the real amplitude at which each client arrives.
    pub amplitudes: Vec<f64>,
    /// `s`: standard deviation of the noise in an estimate, and in every symbol of the payload.
    pub noise_std: f64,
}
