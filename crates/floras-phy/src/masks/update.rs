//! The client's side of a masked round: `u_k = x_k + z_k + m_k`.

use floras_core::random::StreamName;
use rand::Rng;
use rayon::prelude::*;
use zeroize::Zeroizing;

use super::expansion;
use super::grid::MaskGrid;
use super::pair::{MaskSign, PairSeed, SlotMasks};
use crate::error::{UplinkError, require, require_count};
use crate::kernel::TASK;
use crate::release::{BLOCK, MAX_RELEASED, Normals, ReleaseKey};

/// The source of the noise `z_k` of one client in one round. One update consumes it.
#[derive(Debug)]
pub struct LocalNoise(ReleaseKey);

impl LocalNoise {
    /// Noise under a fresh key from the operating system.
    pub fn generate() -> Result<Self, UplinkError> {
        ReleaseKey::generate().map(Self)
    }

    /// Noise of a simulation, whose seed is not secret.
    pub fn simulated(name: StreamName) -> Self {
        Self(ReleaseKey::filled(|secret| name.stream().fill_bytes(secret)))
    }
}

/// Adds the mask of a pair to `values`, in units of [`MaskGrid::fine_step`], on the threads of the current `rayon` pool.
///
/// The same seed always makes the same integers. Sums wrap beyond 64 bits.
///
/// # Arguments
/// * `values`: at most 2³⁵.
pub fn add_mask(
    seed: &PairSeed,
    sign: MaskSign,
    grid: &MaskGrid,
    values: &mut [i64],
) -> Result<(), UplinkError> {
    check_length(values.len())?;
    if values.len() <= TASK {
        expansion::add(seed, sign, grid, 0, values);
    } else {
        values
            .par_chunks_mut(TASK)
            .enumerate()
            .for_each(|(task, values)| expansion::add(seed, sign, grid, task * TASK, values));
    }
    Ok(())
}

/// Adds a client's own noise to `values`, which are in units of [`MaskGrid::fine_step`], and rounds them to the sent values, in
/// units of [`MaskGrid::sent_step`].
///
/// This is the last step, after the update and all masks. [`MaskGrid::loss`] bounds its effect on `ε`.
pub fn add_local_noise(noise: LocalNoise, grid: &MaskGrid, values: &mut [i64]) -> Result<(), UplinkError> {
    check_length(values.len())?;
    values.par_chunks_mut(TASK).enumerate().for_each(|(task, values)| {
        send(&noise.0, grid, task * TASK, values);
    });
    Ok(())
}

/// The values that a client sends: its update with its masks and its own noise, in units of [`MaskGrid::sent_step`].
///
/// ```
/// use floras_phy::assignment::{Beacon, ClientIdentity, Epoch, GroupId, GroupKey, GroupMember};
/// use floras_phy::masks::{LocalNoise, MaskGrid, PairKeys, mask_update};
///
/// let (group, epoch) = (GroupId([7; 16]), Epoch(1));
/// let identities = [ClientIdentity::generate()?, ClientIdentity::generate()?, ClientIdentity::generate()?];
/// let cohort = identities.each_ref().map(|identity| identity.public_key());
/// let pairs = PairKeys::agree(&identities[1], group, &cohort)?;
/// let mut member = GroupMember::new(GroupKey::generate(group, epoch)?);
///
/// let beacon = Beacon { group, epoch, slot: 1, sequences: 4, per_round: 3 };
/// let slot = member.masked_slot(&beacon, 2, &pairs, &cohort)?;
/// let grid = MaskGrid::new(3, 4.0, 1.0)?;
/// let sent = mask_update(&[0.1, -0.2], slot.masks, &grid, LocalNoise::generate()?)?;
/// assert_eq!(sent.len(), 2);
/// # Ok::<(), floras_phy::UplinkError>(())
/// ```
///
/// # Arguments
/// * `update`: `x_k`, clipped; at most 2³⁵ values, each below `2⁶¹` fine steps in magnitude.
/// * `masks`: for the same number of clients as `grid`; consumed.
/// * `noise`: consumed.
pub fn mask_update(
    update: &[f32],
    masks: SlotMasks,
    grid: &MaskGrid,
    noise: LocalNoise,
) -> Result<Vec<i64>, UplinkError> {
    require_count("clients in the cohort, as the grid is for", grid.clients() as usize, masks.clients())?;
    check_length(update.len())?;
    if update.is_empty() {
        return Err(UplinkError::EmptyUpdate);
    }
    let mut values = Zeroizing::new(vec![0; update.len()]);
    grid.add_update(update, &mut values)?;
    values.par_chunks_mut(TASK).enumerate().for_each(|(task, values)| {
        for (seed, sign) in masks.seeds() {
            expansion::add(seed, *sign, grid, task * TASK, values);
        }
        send(&noise.0, grid, task * TASK, values);
    });
    Ok(std::mem::take(&mut *values))
}

/// Replaces the values from index `first` on, a multiple of [`BLOCK`], by the values to send.
fn send(key: &ReleaseKey, grid: &MaskGrid, first: usize, values: &mut [i64]) {
    pulp::Arch::new().dispatch(Send { key, grid, first, values });
}

struct Send<'a> {
    key: &'a ReleaseKey,
    grid: &'a MaskGrid,
    first: usize,
    values: &'a mut [i64],
}

impl pulp::WithSimd for Send<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let shift = self.grid.shift();
        let mut normals = Normals::new(self.key, self.first as u64);
        for values in self.values.chunks_mut(BLOCK) {
            for (value, &normal) in values.iter_mut().zip(normals.next_block()) {
                *value = self.grid.send(*value, normal, shift);
            }
        }
    }
}

fn check_length(values: usize) -> Result<(), UplinkError> {
    let holds = values as u64 <= MAX_RELEASED;
    require(holds, "the number of values in a masked update", "at most 2^35", values as f64)
}
