//! The channel during the payload: a Gauss–Markov process over blocks of parameters.
//!
//! ```text
//! h_b = line_of_sight + scattered_b,     scattered_{b+1} = ρ·scattered_b + √(1 − ρ²)·w_b
//! ```
//!
//! `scattered_0` belongs to the pilot, and `w_b` has the distribution of `scattered_0`, so that every block has the distribution of the
//! fading. The line of sight of Rician fading is constant. Block `b`, counted from 1, has the correlation `ρᵇ` with the pilot's channel.

use num_complex::Complex64;

use super::circular_gaussian;
use crate::error::UplinkError;
use crate::round::Round;

/// Largest number of coefficients in a round: clients times antennas times blocks.
const MAX_COEFFICIENTS: usize = 1 << 24;

/// The channels of a block of the payload.
#[derive(Clone, Debug, PartialEq)]
pub struct PayloadBlock {
    /// Number of parameters in the block; `usize::MAX` in a single block, which fits any number.
    pub parameters: usize,
    /// The coefficients of every client, in the order of the round's list. With `R` antennas, that of client `k` at antenna `r`
    /// is at `k·R + r`.
    pub channels: Vec<Complex64>,
}

/// How channels change over a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Evolution {
    /// `ρ`, not 1.
    pub(super) correlation: f64,
    /// Number of parameters in a block; `None` for one block that holds all.
    pub(super) coherence: Option<usize>,
}

impl Evolution {
    /// The number of parameters in each block of a round.
    pub(super) fn blocks(self, round: &Round<'_>, antennas: usize) -> Result<Vec<usize>, UplinkError> {
        let Some(coherence) = self.coherence else { return Ok(vec![usize::MAX]) };
        let parameters = round.parameters().ok_or(UplinkError::ParametersUnknown { coherence })?;
        let (blocks, clients) = (parameters.div_ceil(coherence).max(1), round.clients().len());
        let max = MAX_COEFFICIENTS / antennas;
        if blocks > max / clients {
            return Err(UplinkError::TooManyBlocks { coherence, blocks, clients, max });
        }
        let mut lengths = vec![coherence; blocks];
        lengths[blocks - 1] = parameters - coherence * (blocks - 1);
        Ok(lengths)
    }

    /// The scattered part in each of `count` blocks. `scattered` is that of the pilot.
    pub(super) fn steps(
        self,
        mut scattered: Complex64,
        power: f64,
        stream: &mut floras_core::random::Stream,
        count: usize,
    ) -> impl Iterator<Item = Complex64> {
        let innovation = ((1.0 - self.correlation * self.correlation) * power).sqrt();
        (0..count).map(move |_| {
            scattered = scattered * self.correlation + circular_gaussian(stream) * innovation;
            scattered
        })
    }
}
