//! Release noise: noise for sums of real data, added before a sum is published.
//!
//! The simulation's generator ([`crate::random`]) is reproducible and fast, and its values are distinguishable from
//! normal values: its radius has 31 bits, so that far pairs lie on known rings, and it ends at 6.66 standard deviations.
//! An adversary who guesses a client's update can subtract it and search for the rings. The noise here has neither defect:
//!
//! | step | content | file |
//! |---|---|---|
//! | words | ChaCha20 under a key of 256 bits from the operating system, used for one release | [`ReleaseKey`] |
//! | uniforms | at least 53 significant bits at both ends of (0, 1); further words where a word is short of them | `uniform` |
//! | normals | Box–Muller in double precision, `\|n − n*\| ≤ 2⁻⁴⁹·(1 + r*)`, unbounded | `normal` |
//! | sum | double precision with compensation, error at most `24·2⁻⁵³·Σ\|g_k x_k\|` | `kernel` |
//! | grid | the noisy sum is rounded to multiples of a power of two near `ν/32`, which depends on `ν` alone | [`grid_step`] |
//! | loss | the increase of `ε` by all steps, proven and rounded outward | [`floating_point_loss`] |
//!
//! ```
//! use floras_phy::EffectiveChannel;
//! use floras_phy::precode::Scale;
//! use floras_phy::release::{ReleaseKey, grid_step};
//!
//! let channel = EffectiveChannel::new(vec![1.0, 0.5], 2.0)?;
//! let mut sum = [0.0; 3];
//! let (updates, scales) = ([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]], [Scale::UNCHANGED; 2]);
//! channel.release_into(&updates, &scales, ReleaseKey::generate()?, &mut sum)?;
//! let step = grid_step(2.0)?;
//! assert!(sum.iter().all(|&value| f64::from(value) % step == 0.0));
//! # Ok::<(), floras_phy::UplinkError>(())
//! ```
//!
//! # Citations
//! Mironov, *On significance of the least significant bits for differential privacy*, CCS 2012. Holohan, Braghin, *Secure
//! random sampling in differential privacy*, ESORICS 2021. Bernstein, *ChaCha, a variant of Salsa20*, SASC 2008; RFC 8439.

#[cfg(test)]
mod double_double;
mod grid;
mod kernel;
mod key;
mod loss;
mod math;
mod normal;
#[cfg(test)]
mod ring_attack;
mod uniform;

pub(crate) use grid::Grid;
pub use grid::grid_step;
pub use kernel::add_noise_into;
pub(crate) use kernel::release_into;
pub use key::ReleaseKey;
pub use loss::{
    FloatingPointLoss, MAX_EPSILON, MAX_ROUNDS, MAX_VALUES, floating_point_loss, summation_is_covered,
};
pub(crate) use loss::{LOG_FAILURE, noise_loss};
pub use normal::fill_normals;
pub(crate) use normal::{BLOCK, MAX_RELEASED, Normals, pair};
pub(crate) use uniform::{is_short, minus_ln_continued, minus_ln_uniform};
