//! The sum of a round in double precision, with noise, on the grid.
//!
//! Clients are processed in groups of up to 20. The weighted sum of a group is a chain of fused multiply-adds. The groups are added with
//! Knuth's two-sum: the errors of all additions are accumulated and added last. So the error of a sum is at most `(20 + 2)·u·Σ|g_k x_k|`
//! and a second-order term, for any number of clients: below `24u·Σ|g_k x_k|`, `u = 2⁻⁵³`.
//!
//! With cross-talk the groups have at most 4 clients, and gains and cross gains are chains of their own. The error of a pair of parameters
//! is then at most `(4 + 2)·u·Σ(|g_k| + |c_k|)·|x_k|` in norm. `|g| + |c| ≤ √2·|g + jc|`, so that it stays below
//! `24u·Σ|g_k + jc_k|·‖x_k‖`.

use rayon::prelude::*;

use super::grid::Grid;
use super::key::ReleaseKey;
use super::normal::{BLOCK, MAX_RELEASED, Normals};
use crate::effective::{Block, EffectiveChannel};
use crate::error::{UplinkError, require_count};
use crate::kernel::{self, Kernel, TASK};
use crate::precode::Scale;
use crate::updates;

/// Maximum number of clients that are added in one chain.
const GROUP: usize = 20;

/// Writes `Σ g_k·s_k(x_k) + ν·n` on the grid, with `s_k` the scale of client `k`; see [`EffectiveChannel::release_into`].
pub(crate) fn release_into<U: AsRef<[f32]> + Sync>(
    channel: &EffectiveChannel,
    updates: &[U],
    scales: &[Scale],
    key: &ReleaseKey,
    decoded: &mut [f32],
) -> Result<(), UplinkError> {
    let clients = channel.gains().len();
    require_count("scales, one for each client", clients, scales.len())?;
    let rounded_up = channel.blocks().len().saturating_mul(BLOCK);
    check_length(decoded.len().saturating_add(rounded_up - BLOCK))?;
    channel.check_parameters(decoded.len())?;
    updates::check_shape(updates, clients)?;
    let (mut from, mut first_normal) = (0_usize, 0);
    for block in channel.blocks() {
        let range = from..decoded.len().min(from.saturating_add(block.parameters));
        let rows: Vec<&[f32]> = updates.iter().map(|update| &update.as_ref()[range.clone()]).collect();
        let finish = Finish::new(block.noise_std, key)?;
        let Block { gains, cross_gains, .. } = block;
        let kernel = Release { gains, cross_gains, scales, first_normal, finish };
        kernel::run(&kernel, &rows, clients, &mut decoded[range.clone()])?;
        // No block shares normal numbers with another.
        first_normal += range.len().next_multiple_of(BLOCK);
        from = range.end;
    }
    Ok(())
}

/// Adds noise to a sum that was computed elsewhere in double precision, and rounds it to the grid of [`grid_step`](super::grid_step).
///
/// # Arguments
/// * `sum`: the exact sum, up to the rounding that [`summation_is_covered`](super::summation_is_covered) allows.
/// * `noise_std`: `ν`, 0 or in the range of [`grid_step`](super::grid_step).
/// * `key`: consumed.
/// * `out`: as long as `sum`.
pub fn add_noise_into(
    sum: &[f64],
    noise_std: f64,
    key: ReleaseKey,
    out: &mut [f32],
) -> Result<(), UplinkError> {
    require_count("places for the released values", sum.len(), out.len())?;
    check_length(sum.len())?;
    let finish = Finish::new(noise_std, &key)?;
    sum.par_chunks(TASK).zip(out.par_chunks_mut(TASK)).enumerate().for_each(|(task, (sum, out))| {
        pulp::Arch::new().dispatch(AddNoise { finish, first: task * TASK, sum, out });
    });
    match out.iter().position(|value| !value.is_finite()) {
        Some(parameter) => Err(UplinkError::Overflow { parameter }),
        None => Ok(()),
    }
}

fn check_length(values: usize) -> Result<(), UplinkError> {
    let holds = values as u64 <= MAX_RELEASED;
    crate::error::require(holds, "the number of values in one release", "at most 2^35", values as f64)
}

/// The steps after the sum: noise and rounding.
#[derive(Clone, Copy)]
struct Finish<'a> {
    key: &'a ReleaseKey,
    /// `None` without noise: the sum is only rounded to single precision.
    grid: Option<Grid>,
}

impl<'a> Finish<'a> {
    fn new(noise_std: f64, key: &'a ReleaseKey) -> Result<Self, UplinkError> {
        let grid = if noise_std == 0.0 { None } else { Some(Grid::new(noise_std)?) };
        Ok(Self { key, grid })
    }

    fn normals(self, first: usize) -> Option<(Grid, Normals<'a>)> {
        self.grid.map(|grid| (grid, Normals::new(self.key, first as u64)))
    }
}

/// Adds noise to a block of sums.
#[inline(always)]
fn finish_block(noise: &mut Option<(Grid, Normals<'_>)>, sums: &[f64], out: &mut [f32]) {
    if let Some((grid, normals)) = noise {
        let grid = *grid;
        for ((out, &sum), &normal) in out.iter_mut().zip(sums).zip(normals.next_block()) {
            *out = grid.release(sum, normal) as f32;
        }
    } else {
        for (out, &sum) in out.iter_mut().zip(sums) {
            *out = sum as f32;
        }
    }
}

struct AddNoise<'a> {
    finish: Finish<'a>,
    first: usize,
    sum: &'a [f64],
    out: &'a mut [f32],
}

impl pulp::WithSimd for AddNoise<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        let mut noise = self.finish.normals(self.first);
        for (sums, out) in self.sum.chunks(BLOCK).zip(self.out.chunks_mut(BLOCK)) {
            finish_block(&mut noise, sums, out);
        }
    }
}

/// The release kernel of a round.
struct Release<'a> {
    gains: &'a [f64],
    /// Empty without cross-talk.
    cross_gains: &'a [f64],
    scales: &'a [Scale],
    /// Index of the first parameter's normal number.
    first_normal: usize,
    finish: Finish<'a>,
}

impl Kernel for Release<'_> {
    #[inline(always)]
    fn decode(&self, rows: &[&[f32]], first: usize, decoded: &mut [f32]) -> f32 {
        let mut noise = self.finish.normals(self.first_normal + first);
        for (number, block) in decoded.chunks_mut(BLOCK).enumerate() {
            let mut sums = Sums { high: [0.0; BLOCK], low: [0.0; BLOCK] };
            let length = block.len();
            self.add_rows(rows, number * BLOCK, &mut sums, length);
            for index in 0..length {
                sums.high[index] += sums.low[index];
            }
            finish_block(&mut noise, &sums.high[..length], block);
        }
        0.0
    }
}

/// Sums, and the errors of their additions.
struct Sums {
    high: [f64; BLOCK],
    low: [f64; BLOCK],
}

/// Knuth's two-sum: adds `group` to `high`, and the rounding error of this addition to `low`.
#[inline(always)]
fn add_exactly(group: f64, high: &mut f64, low: &mut f64) {
    let before = *high;
    let sum = before + group;
    let part = sum - before;
    *low += (before - (sum - part)) + (group - part);
    *high = sum;
}

impl Release<'_> {
    #[inline(always)]
    fn add_rows(&self, rows: &[&[f32]], at: usize, sums: &mut Sums, length: usize) {
        let mut client = 0;
        while rows.len() - client >= GROUP && self.cross_gains.is_empty() {
            self.add_group::<GROUP>(rows, client, at, sums, length);
            client += GROUP;
        }
        while rows.len() - client >= 4 {
            self.add_group::<4>(rows, client, at, sums, length);
            self.add_crossed::<4>(rows, client, at, sums, length);
            client += 4;
        }
        while client < rows.len() {
            self.add_group::<1>(rows, client, at, sums, length);
            self.add_crossed::<1>(rows, client, at, sums, length);
            client += 1;
        }
    }

    /// Adds the cross-talk of `COUNT` clients: each parameter receives that of its partner. `at` is even.
    #[inline(always)]
    fn add_crossed<const COUNT: usize>(
        &self,
        rows: &[&[f32]],
        client: usize,
        at: usize,
        sums: &mut Sums,
        length: usize,
    ) {
        if self.cross_gains.is_empty() {
            return;
        }
        // A last parameter without a partner has no cross-talk.
        for index in 0..length - length % 2 {
            let (partner, sign) = if index.is_multiple_of(2) { (index + 1, -1.0) } else { (index - 1, 1.0) };
            let mut group = 0.0;
            for row in 0..COUNT {
                let Scale { mean, factor } = self.scales[client + row];
                let sent = ((f64::from(rows[client + row][at + partner]) - mean) * factor) as f32;
                group = (sign * self.cross_gains[client + row]).mul_add(f64::from(sent), group);
            }
            add_exactly(group, &mut sums.high[index], &mut sums.low[index]);
        }
    }

    /// Adds `COUNT` clients. Scaled updates are rounded to single precision, as after clipping in memory: the bound on their norms holds
    /// for the rounded values.
    #[inline(always)]
    fn add_group<const COUNT: usize>(
        &self,
        rows: &[&[f32]],
        client: usize,
        at: usize,
        sums: &mut Sums,
        length: usize,
    ) {
        let rows: [&[f32]; COUNT] = std::array::from_fn(|row| &rows[client + row][at..at + length]);
        let gains: [f64; COUNT] = std::array::from_fn(|row| self.gains[client + row]);
        let scales: [Scale; COUNT] = std::array::from_fn(|row| self.scales[client + row]);
        let (high, low) = (&mut sums.high[..length], &mut sums.low[..length]);
        for index in 0..length {
            let mut group = 0.0;
            for row in 0..COUNT {
                let Scale { mean, factor } = scales[row];
                let sent = ((f64::from(rows[row][index]) - mean) * factor) as f32;
                group = gains[row].mul_add(f64::from(sent), group);
            }
            add_exactly(group, &mut high[index], &mut low[index]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid_step;
    use super::*;

    fn key() -> ReleaseKey {
        ReleaseKey::known([9; 32])
    }

    fn normals(count: usize) -> Vec<f64> {
        let mut values = vec![0.0; count];
        super::super::fill_normals(key(), &mut values);
        values
    }

    #[test]
    fn each_block_has_its_own_grid_and_noise() {
        let (lengths, stds) = ([700, 5, 2000], [1.0, 3.0, 0.5]);
        let blocks = lengths.into_iter().zip(stds).map(|(parameters, noise_std)| Block {
            parameters,
            gains: vec![0.0],
            noise_std,
            cross_gains: Vec::new(),
        });
        let channel = EffectiveChannel::from_blocks(blocks.collect()).unwrap();
        let mut decoded = vec![0.0; 2705];
        release_into(&channel, &[vec![0.0; 2705]], &[Scale::UNCHANGED], &key(), &mut decoded).unwrap();
        let normals = normals(2 * BLOCK + 2000);
        for (from, (length, (std, first))) in [0, 700, 705]
            .into_iter()
            .zip(lengths.into_iter().zip(stds.into_iter().zip([0, BLOCK, 2 * BLOCK])))
        {
            for index in 0..length {
                let (value, exact) = (f64::from(decoded[from + index]), std * normals[first + index]);
                assert!((value - exact).abs() <= grid_step(std).unwrap() / 2.0 + exact.abs() * 1e-7);
            }
        }
    }

    /// 47 clients are read in groups of 20, 4 and 1; several tasks, and a last block that is not full.
    #[test]
    fn a_release_is_the_formula_on_the_grid() {
        let (clients, parameters) = (47_u32, 2 * TASK + 777);
        let updates = updates::random_updates(clients, parameters);
        let gains: Vec<f64> = (0..clients).map(|k| 1.0 - 0.3 * f64::from(k % 7)).collect();
        let scale = |k: u32| Scale { mean: 0.0, factor: 1.0 / f64::from(k % 3 + 1) };
        let scales: Vec<Scale> = (0..clients).map(scale).collect();
        let channel = EffectiveChannel::new(gains.clone(), 2.5).unwrap();
        let mut decoded = vec![0.0; parameters];
        channel.release_into(&updates, &scales, key(), &mut decoded).unwrap();
        let (normals, step) = (normals(parameters), grid_step(2.5).unwrap());
        let mut sums = vec![0.0; parameters];
        for i in 0..parameters {
            for (client, update) in updates.iter().enumerate() {
                sums[i] += gains[client] * f64::from((f64::from(update[i]) * scales[client].factor) as f32);
            }
            assert_eq!(f64::from(decoded[i]) % step, 0.0);
            let expected = sums[i] + 2.5 * normals[i];
            assert!((f64::from(decoded[i]) - expected).abs() <= step / 2.0 + 1e-9, "parameter {i}");
        }
        // The same noise on a sum that was computed elsewhere. Sums that lie between two grid points may be rounded either way.
        let mut elsewhere = vec![0.0; parameters];
        add_noise_into(&sums, 2.5, key(), &mut elsewhere).unwrap();
        let different = decoded.iter().zip(&elsewhere).filter(|(left, right)| left != right).count();
        assert!(different < 3, "{different}");
    }

    #[test]
    fn cross_talk_is_released_too() {
        let (clients, parameters) = (27_u32, TASK + 777);
        let updates = updates::random_updates(clients, parameters);
        let block = Block {
            parameters: usize::MAX,
            gains: (0..clients).map(|k| 1.0 - 0.3 * f64::from(k % 7)).collect(),
            noise_std: 2.5,
            cross_gains: (0..clients).map(|k| 0.2 * f64::from(k % 5) - 0.3).collect(),
        };
        let scale = |k: u32| Scale { mean: 0.0, factor: 1.0 / f64::from(k % 3 + 1) };
        let scales: Vec<Scale> = (0..clients).map(scale).collect();
        let channel = EffectiveChannel::from_blocks(vec![block.clone()]).unwrap();
        let mut decoded = vec![0.0; parameters];
        channel.release_into(&updates, &scales, key(), &mut decoded).unwrap();
        let (normals, step) = (normals(parameters), grid_step(2.5).unwrap());
        for i in 0..parameters {
            let sent = |client: usize, i: usize| match updates[client].get(i) {
                None => 0.0,
                Some(&value) => f64::from((f64::from(value) * scales[client].factor) as f32),
            };
            let crossed = |client| if i % 2 == 0 { -sent(client, i + 1) } else { sent(client, i - 1) };
            let sum: f64 = (0..clients as usize)
                .map(|k| block.gains[k] * sent(k, i) + block.cross_gains[k] * crossed(k))
                .sum();
            let expected = sum + 2.5 * normals[i];
            assert!((f64::from(decoded[i]) - expected).abs() <= step / 2.0 + 1e-9, "parameter {i}");
        }
    }

    #[test]
    fn rounding_error_does_not_grow_with_clients() {
        // 1 + 2⁻⁵³ + 2⁻⁵³ + …: a plain sum stays at 1.
        let clients = 4001;
        let tiny = 2.0_f64.powi(-53);
        let gains: Vec<f64> = (0..clients).map(|k| if k == 0 { 1.0 } else { tiny }).collect();
        let rows = vec![[1.0_f32]; clients];
        let rows: Vec<&[f32]> = rows.iter().map(|row| row.as_slice()).collect();
        let (key, scales) = (key(), vec![Scale::UNCHANGED; clients]);
        let release = Release {
            gains: &gains,
            cross_gains: &[],
            scales: &scales,
            first_normal: 0,
            finish: Finish::new(0.0, &key).unwrap(),
        };
        let mut sums = Sums { high: [0.0; BLOCK], low: [0.0; BLOCK] };
        release.add_rows(&rows, 0, &mut sums, 1);
        let exact = 1.0 + 4000.0 * tiny;
        let off = (sums.high[0] + sums.low[0] - exact).abs();
        assert!(off <= 24.0 * tiny, "{}", off / tiny);
        assert!(gains.iter().fold(0.0, |sum, gain| sum + gain) == 1.0);
    }

    #[test]
    fn without_noise_the_sum_is_as_it_is() {
        let channel = EffectiveChannel::new(vec![1.0, 0.5], 0.0).unwrap();
        let mut decoded = [0.0; 2];
        channel
            .release_into(&[[1.0, 2.0], [10.0, 20.0]], &[Scale::UNCHANGED; 2], key(), &mut decoded)
            .unwrap();
        assert_eq!(decoded, [6.0, 12.0]);
    }

    #[test]
    fn values_that_are_not_finite_are_errors() {
        let channel = EffectiveChannel::new(vec![1.0, 0.0], 1.0).unwrap();
        let mut decoded = [0.0; 2];
        let mut release = |updates: &[[f32; 2]; 2]| {
            channel.release_into(updates, &[Scale::UNCHANGED; 2], key(), &mut decoded)
        };
        let value = f32::INFINITY;
        assert_eq!(
            release(&[[1.0, 2.0], [0.0, value]]),
            Err(UplinkError::NotFinite { index: 1, parameter: 1, value })
        );
        assert_eq!(
            add_noise_into(&[1.0, f64::NAN], 1.0, key(), &mut decoded),
            Err(UplinkError::Overflow { parameter: 1 })
        );
        assert!(add_noise_into(&[1.0], 1.0, key(), &mut decoded).is_err());
        assert!(channel.release_into(&[[1.0]; 2], &[Scale::UNCHANGED], key(), &mut [0.0]).is_err());
        assert!(add_noise_into(&[1.0], 1e-300, key(), &mut [0.0]).is_err());
    }
}
