//! Zero-sum masks: privacy against the base station itself.
//!
//! In a masked round client `k` of `K` sends
//!
//! ```text
//! u_k = x_k + z_k + m_k,     z_k ~ N(0, σ_z²),     m_k = Σ_{j≠k} ±p_kj,     p_kj = p_jk ~ N(0, σ_m²/K)
//! ```
//!
//! `z_k` is its own noise. Both clients of a pair expand `p_kj` from a seed that they alone share; one adds it, the other subtracts it, so
//! that `Σ_k m_k = 0`. A base station that sees every `u_k` learns as much as one that sees the sum with Gaussian noise, up to a share
//! that decreases with `σ_m`:
//!
//! ```text
//! μ² = Δ²·[ (1 − 1/K)/(σ_m² + σ_z²) + 1/(K·σ_z²) ]
//! ```
//!
//! | step | content | item |
//! |---|---|---|
//! | pair key | X25519 between two enrolled clients, HKDF-SHA256 | [`PairKeys`] |
//! | seed | one for each pair, slot and cohort; a slot is used once | [`GroupMember::masked_slot`](crate::assignment::GroupMember::masked_slot) |
//! | mask | ChaCha20 under the seed, normal values, integers of 64 bits on a public grid | [`add_mask`], [`MaskGrid`] |
//! | own noise | a generator fit for release; the sum is rounded to a coarser public grid | [`LocalNoise`], [`add_local_noise`] |
//! | all steps | from an update to the values that are sent | [`mask_update`] |
//! | loss | the increase of `ε` by grids and arithmetic | [`MaskGrid::loss`] |
//!
//! Sums on the fine grid are exact, so that **masks cancel exactly**, whatever the number of clients. Rounding to the coarse grid comes
//! after the client's own noise. This step makes noise in floating-point arithmetic private, and adds at most `σ_z²/12288` to its variance.
//!
//! The exact bytes, with test vectors, are in `docs/reference/mask-format.md`.
//!
//! # Citations
//! Bonawitz et al., *Practical secure aggregation for privacy-preserving machine learning*, CCS 2017: masks of pairs. Liao, Chen, Larsson,
//! *Over-the-air federated learning with privacy protection via correlated additive perturbations*, arXiv:2210.02235: perturbations that
//! cancel in the air. RFC 7748 (X25519), RFC 5869 (HKDF), RFC 8439 (ChaCha20).

mod expansion;
mod grid;
mod keystream;
mod loss;
mod pair;
mod update;
#[cfg(test)]
mod vectors;

pub use grid::{MAX_MASKED_CLIENTS, MaskGrid};
pub use pair::{MaskSign, PairKeys, PairSeed, SlotMasks};
pub use update::{LocalNoise, add_local_noise, add_mask, mask_update};
