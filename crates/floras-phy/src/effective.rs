//! The effective channel of a round, and the kernel that applies it.
//!
//! Given the channels and the pilot, every linear uplink decodes
//!
//! ```text
//! x̃ = Σ_k g_k x_k + ν·n,     n ~ N(0, I_d)
//! ```
//!
//! so that the distribution of `(g, ν)` describes a scheme completely. `(g, ν)` does not depend on the data. The symbol-level simulation
//! draws it, and the privacy accounting reads it. Both may differ between blocks of parameters, as over the subcarriers of a wide band;
//! one block is the common case.
//!
//! With two parameters in a complex symbol the gain is complex, `g_k + j·c_k`, and `c_k` is the cross-talk between the two:
//!
//! ```text
//! x̃_{2i}   = Σ_k (g_k·x_k[2i] − c_k·x_k[2i+1]) + ν·n_{2i}
//! x̃_{2i+1} = Σ_k (g_k·x_k[2i+1] + c_k·x_k[2i]) + ν·n_{2i+1}
//! ```
//!
//! Each client's two parameters are rotated and scaled by `|g_k + j·c_k|`, which is the norm of that map. The last symbol of an odd
//! number of parameters has the imaginary part 0.

use std::ops::Range;

use floras_core::random::{NormalField, StreamName, TILE};

use crate::error::{UplinkError, require, require_count};
use crate::kernel::{self, Kernel};
use crate::precode::Scale;
use crate::release::{self, ReleaseKey};
use crate::updates;

/// Number of parameters decoded together: their sums stay in the first-level cache while the clients are added.
const BLOCK: usize = 8 * TILE;

/// Gains `g_k` and noise `ν` of one round.
///
/// ```
/// use floras_phy::EffectiveChannel;
/// use floras_core::random::{Purpose, StreamName};
///
/// let channel = EffectiveChannel::new(vec![1.0, 0.5], 0.0)?;
/// let noise = StreamName::new(1, Purpose::PAYLOAD_NOISE);
/// assert_eq!(channel.apply(&[[1.0, 2.0], [10.0, 20.0]], noise)?, [6.0, 12.0]);
/// # Ok::<(), floras_phy::UplinkError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct EffectiveChannel {
    /// At least one block. A single block fits any number of parameters.
    blocks: Vec<Block>,
    /// The mean gain of each client over all blocks.
    gains: Vec<f64>,
    noise_std: f64,
}

/// Parameters that share their gains and noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Number of consecutive parameters, at least 1.
    pub parameters: usize,
    /// The finite gains `g_k`, one for each client.
    pub gains: Vec<f64>,
    /// Standard deviation `ν` of the noise, finite and not negative.
    pub noise_std: f64,
    /// The finite cross-talk `c_k`, one for each client; empty without cross-talk. A block with cross-talk begins at an even parameter.
    pub cross_gains: Vec<f64>,
}

impl Block {
    fn check(&self) -> Result<(), UplinkError> {
        if self.gains.is_empty() {
            return Err(UplinkError::NoClients);
        }
        if !self.cross_gains.is_empty() {
            require_count("cross gains, one for each client", self.gains.len(), self.cross_gains.len())?;
        }
        for &gain in self.gains.iter().chain(&self.cross_gains) {
            require(gain.is_finite(), "a gain of the effective channel", "finite", gain)?;
        }
        let holds = self.noise_std.is_finite() && self.noise_std >= 0.0;
        require(holds, "the noise of the effective channel", "finite and not negative", self.noise_std)
    }

    /// `|g_k + j·c_k|` of a client.
    pub fn magnitude(&self, client: usize) -> f64 {
        match self.cross_gains.get(client) {
            None => self.gains[client].abs(),
            Some(cross) => self.gains[client].hypot(*cross),
        }
    }

    /// `Σ_k |g_k + j·c_k|²`.
    pub(crate) fn squared_magnitudes(&self) -> f64 {
        self.gains.iter().chain(&self.cross_gains).map(|gain| gain * gain).sum()
    }
}

impl EffectiveChannel {
    /// A channel of finite gains, one for each client, and noise of a finite standard deviation in every parameter.
    pub fn new(gains: Vec<f64>, noise_std: f64) -> Result<Self, UplinkError> {
        let block =
            Block { parameters: usize::MAX, gains: gains.clone(), noise_std, cross_gains: Vec::new() };
        block.check()?;
        Ok(Self { blocks: vec![block], gains, noise_std })
    }

    /// A channel whose gains and noise differ between blocks of parameters.
    ///
    /// ```
    /// use floras_core::random::{Purpose, StreamName};
    /// use floras_phy::{Block, EffectiveChannel};
    ///
    /// let block =
    ///     |parameters, gain| Block { parameters, gains: vec![gain], noise_std: 0.0, cross_gains: Vec::new() };
    /// let channel = EffectiveChannel::from_blocks(vec![block(1, 1.0), block(2, 0.5)])?;
    /// let noise = StreamName::new(1, Purpose::PAYLOAD_NOISE);
    /// assert_eq!(channel.apply(&[[1.0, 2.0, 4.0]], noise)?, [1.0, 1.0, 2.0]);
    /// # Ok::<(), floras_phy::UplinkError>(())
    /// ```
    pub fn from_blocks(blocks: Vec<Block>) -> Result<Self, UplinkError> {
        let Some(first) = blocks.first() else { return Err(UplinkError::NoClients) };
        if let [only] = blocks.as_slice()
            && only.parameters == usize::MAX
        {
            only.check()?;
            return Ok(Self { gains: only.gains.clone(), noise_std: only.noise_std, blocks });
        }
        let clients = first.gains.len();
        let (mut gains, mut square, mut total) = (vec![0.0; clients], 0.0, 0.0);
        let mut begins_even = true;
        for block in &blocks {
            block.check()?;
            let holds = begins_even || block.cross_gains.is_empty();
            let length = block.parameters as f64;
            require(holds, "the number of parameters before a block with cross-talk", "even", length)?;
            begins_even ^= block.parameters % 2 == 1;
            require_count("gains in every block, one for each client", clients, block.gains.len())?;
            require(block.parameters > 0, "the number of parameters in a block", "at least 1", 0.0)?;
            let weight = block.parameters as f64;
            for (mean, gain) in gains.iter_mut().zip(&block.gains) {
                *mean += weight * gain;
            }
            square += weight * block.noise_std * block.noise_std;
            total += weight;
        }
        gains.iter_mut().for_each(|gain| *gain /= total);
        Ok(Self { blocks, gains, noise_std: (square / total).sqrt() })
    }

    /// The blocks. A channel of one block fits any number of parameters.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// `g_k`: the factor of client `k`'s update in the decoded sum, as a mean over all parameters and without cross-talk.
    pub fn gains(&self) -> &[f64] {
        &self.gains
    }

    /// `ν`: standard deviation of the decoded sum's noise, as a root mean square over all parameters.
    pub fn noise_std(&self) -> f64 {
        self.noise_std
    }

    /// `μ_k = Δ·|g_k + j·c_k|/ν` of the block where it is largest: a change of client `k`'s update by `Δ` in norm changes the decoded
    /// sum by at most `μ_k` standard deviations of its noise. A client with zero gain has 0; without noise the value is infinite.
    pub fn mu(&self, sensitivity: f64) -> Vec<f64> {
        let mu = |block: &Block, client: usize| match block.magnitude(client) {
            0.0 => 0.0,
            gain => sensitivity * gain / block.noise_std,
        };
        let largest = |client| self.blocks.iter().map(|block| mu(block, client)).fold(0.0, f64::max);
        (0..self.gains.len()).map(largest).collect()
    }

    /// The same channel with changed blocks.
    pub(crate) fn map_blocks(self, change: impl FnMut(Block) -> Block) -> Result<Self, UplinkError> {
        Self::from_blocks(self.blocks.into_iter().map(change).collect())
    }

    /// Refuses a channel that a scheme has drawn for another number of clients.
    pub(crate) fn for_clients(self, clients: usize) -> Result<Self, UplinkError> {
        require_count("gains, one for each client", clients, self.gains.len())?;
        Ok(self)
    }

    /// Refuses a number of parameters that the blocks do not cover.
    pub(crate) fn check_parameters(&self, parameters: usize) -> Result<(), UplinkError> {
        if self.blocks.len() == 1 {
            return Ok(());
        }
        let covered = self.blocks.iter().fold(0_usize, |sum, block| sum.saturating_add(block.parameters));
        require_count("parameters, as many as the blocks of the channel have", covered, parameters)
    }

    /// The decoded sum `Σ g_k x_k + ν·n`, with `n` read from the stream `noise`.
    pub fn apply<U: AsRef<[f32]> + Sync>(
        &self,
        updates: &[U],
        noise: StreamName,
    ) -> Result<Vec<f32>, UplinkError> {
        let mut decoded = vec![0.0; updates::parameters(updates)];
        self.apply_into(updates, noise, &mut decoded)?;
        Ok(decoded)
    }

    /// [`apply`](Self::apply) into memory that the caller provides, on the threads of the current `rayon` pool.
    ///
    /// After an error the contents of `decoded` are unspecified.
    pub fn apply_into<U: AsRef<[f32]> + Sync>(
        &self,
        updates: &[U],
        noise: StreamName,
        decoded: &mut [f32],
    ) -> Result<(), UplinkError> {
        self.check_parameters(decoded.len())?;
        let channel = self.symbol_level(0..self.gains.len(), Some(noise));
        kernel::run(&channel, updates, self.gains.len(), decoded).map(|_| ())
    }

    /// Adds the updates of the clients from index `first` on to the partial sum in `decoded`; each is scaled while it is added. The first
    /// part adds the round's noise, so that a sum in parts equals the sum in one call, bit for bit.
    pub(crate) fn add_into<U: AsRef<[f32]> + Sync>(
        &self,
        first: usize,
        updates: &[U],
        scales: &[Scale],
        noise: Option<StreamName>,
        decoded: &mut [f32],
    ) -> Result<(), UplinkError> {
        require_count("scales, one for each update", updates.len(), scales.len())?;
        self.check_parameters(decoded.len())?;
        let channel = self.symbol_level(first..first + updates.len(), noise);
        if scales.iter().all(|scale| *scale == Scale::UNCHANGED) {
            return kernel::run(&channel, updates, updates.len(), decoded).map(|_| ());
        }
        kernel::run(&ScaledSymbolLevel { channel, scales }, updates, updates.len(), decoded).map(|_| ())
    }

    /// The decoded sum with release noise: the sum in double precision, noise from a cryptographic generator,
    /// and the result on the public grid of [`grid_step`](crate::release::grid_step). Every update is scaled
    /// first.
    ///
    /// The key is consumed. [`floating_point_loss`](crate::release::floating_point_loss) bounds the addition to `ε`.
    pub fn release_into<U: AsRef<[f32]> + Sync>(
        &self,
        updates: &[U],
        scales: &[Scale],
        key: ReleaseKey,
        decoded: &mut [f32],
    ) -> Result<(), UplinkError> {
        release::release_into(self, updates, scales, &key, decoded)
    }

    /// The channel of these clients. Without a noise stream their updates are added to the existing sums.
    fn symbol_level(&self, clients: Range<usize>, noise: Option<StreamName>) -> SymbolLevel {
        let mut end = 0_usize;
        let segments = self.blocks.iter().map(|block| {
            end = end.saturating_add(block.parameters);
            Segment {
                end,
                gains: block.gains[clients.clone()].iter().map(|&gain| gain as f32).collect(),
                cross_gains: match block.cross_gains.is_empty() {
                    true => Vec::new(),
                    false => block.cross_gains[clients.clone()].iter().map(|&gain| gain as f32).collect(),
                },
                noise_std: block.noise_std as f32,
            }
        });
        let mut segments: Vec<Segment> = segments.collect();
        if let [only] = segments.as_mut_slice() {
            only.end = usize::MAX;
        }
        SymbolLevel { segments, noise: noise.map(StreamName::normals) }
    }
}

/// The channel for updates that are scaled while they are added, as clipping does.
struct ScaledSymbolLevel<'a> {
    channel: SymbolLevel,
    scales: &'a [Scale],
}

impl Kernel for ScaledSymbolLevel<'_> {
    /// A block of an update is scaled while it is in cache, and rounded as if it had been scaled in memory.
    #[inline(always)]
    fn decode(&self, rows: &[&[f32]], first: usize, decoded: &mut [f32]) -> f32 {
        let mut scaled = [0.0_f32; BLOCK];
        for (number, block) in decoded.chunks_mut(BLOCK).enumerate() {
            let at = number * BLOCK;
            self.channel.write_noise(first + at, block);
            let length = block.len();
            for (client, (row, &Scale { mean, factor })) in rows.iter().zip(self.scales).enumerate() {
                for (scaled, &value) in scaled.iter_mut().zip(&row[at..at + length]) {
                    *scaled = ((f64::from(value) - mean) * factor) as f32;
                }
                let mut done = 0;
                for segment in self.channel.segments_from(first + at) {
                    let end = length.min(segment.end - (first + at));
                    segment.add(client..client + 1, &[&scaled[..length]], done, &mut block[done..end]);
                    done = end;
                    if done == length {
                        break;
                    }
                }
            }
        }
        0.0
    }
}

/// The channel in single precision.
struct SymbolLevel {
    segments: Vec<Segment>,
    noise: Option<NormalField>,
}

/// A block of parameters with the same gains and noise.
struct Segment {
    /// Index of the first parameter after the block.
    end: usize,
    gains: Vec<f32>,
    /// Empty without cross-talk.
    cross_gains: Vec<f32>,
    noise_std: f32,
}

impl Segment {
    /// Adds some clients' parameters from `first` of their rows on.
    #[inline(always)]
    fn add(&self, clients: Range<usize>, rows: &[&[f32]], first: usize, sums: &mut [f32]) {
        if self.cross_gains.is_empty() {
            kernel::add_weighted(&self.gains[clients], rows, first, sums);
        } else {
            kernel::add_rotated(&self.gains[clients.clone()], &self.cross_gains[clients], rows, first, sums);
        }
    }
}

impl Kernel for SymbolLevel {
    /// One pass over the updates: a block of noise is made, and the clients are added to it while it stays in cache.
    #[inline(always)]
    fn decode(&self, rows: &[&[f32]], first: usize, decoded: &mut [f32]) -> f32 {
        for (number, block) in decoded.chunks_mut(BLOCK).enumerate() {
            let at = number * BLOCK;
            self.write_noise(first + at, block);
            let (mut done, length) = (0, block.len());
            for segment in self.segments_from(first + at) {
                let end = length.min(segment.end - (first + at));
                segment.add(0..rows.len(), rows, at + done, &mut block[done..end]);
                done = end;
                if done == length {
                    break;
                }
            }
        }
        0.0
    }
}

impl SymbolLevel {
    /// The segments from the one that contains `parameter`.
    #[inline(always)]
    fn segments_from(&self, parameter: usize) -> &[Segment] {
        let first = self.segments.partition_point(|segment| segment.end <= parameter);
        &self.segments[first.min(self.segments.len() - 1)..]
    }

    #[inline(always)]
    fn write_noise(&self, first: usize, block: &mut [f32]) {
        let Some(noise) = &self.noise else { return };
        let segments = self.segments_from(first);
        if let [only] = segments
            && only.noise_std == 0.0
        {
            block.fill(0.0);
            return;
        }
        noise.fill_portably((first / TILE) as u64, block);
        let (mut done, length) = (0, block.len());
        for segment in segments {
            let end = length.min(segment.end - first);
            for normal in &mut block[done..end] {
                *normal *= segment.noise_std;
            }
            done = end;
            if done == length {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::TASK;
    use crate::precode::Precoding;
    use floras_core::Clipping;
    use floras_core::random::Purpose;

    const NOISE: StreamName = StreamName::new(8, Purpose::PAYLOAD_NOISE);

    fn check_against_the_formula(clients: u32, parameters: usize) {
        let updates = updates::random_updates(clients, parameters);
        let gains: Vec<f64> = (0..clients).map(|k| 1.0 - 0.3 * f64::from(k % 7)).collect();
        let channel = EffectiveChannel::new(gains.clone(), 2.5).unwrap();
        let decoded = channel.apply(&updates, NOISE).unwrap();
        let mut normals = vec![0.0; parameters];
        NOISE.normals().fill(0, &mut normals);
        for i in 0..parameters {
            let clean: f64 = gains.iter().zip(&updates).map(|(g, x)| g * f64::from(x[i])).sum();
            let expected = clean + 2.5 * f64::from(normals[i]);
            assert!((f64::from(decoded[i]) - expected).abs() < 5e-5, "parameter {i} of {parameters}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_kernel_is_the_formula(clients in 1_u32..50, parameters in 1_usize..3000) {
            check_against_the_formula(clients, parameters);
        }
    }

    /// 47 clients are read in groups of 20, 5 and 1.
    #[test]
    fn the_kernel_is_the_formula_over_several_tasks() {
        check_against_the_formula(47, 2 * TASK + 77);
    }

    /// Clipped and normalised, in two and in three parts.
    #[test]
    fn scaling_while_summing_equals_scaling_in_memory() {
        let (clients, parameters) = (27, TASK + 777);
        let updates = updates::random_updates(clients, parameters);
        let gains = (0..clients).map(|k| 1.0 - 0.3 * f64::from(k % 7)).collect();
        let channel = EffectiveChannel::new(gains, 2.5).unwrap();
        let clip = 1.001 * crate::precode::norm(&updates[3]);
        for clipping in [Clipping::Each, Clipping::Paper] {
            let precoding = Precoding::new(&updates, Some(clip), clipping).unwrap();
            let mut in_memory = updates.clone();
            precoding.apply(&mut in_memory);
            let expected = channel.apply(&in_memory, NOISE).unwrap();
            for parts in [vec![0..26, 26..27], vec![0..1, 1..20, 20..27]] {
                let mut decoded = vec![0.0; parameters];
                for part in parts {
                    let noise = (part.start == 0).then_some(NOISE);
                    let (some, scales) = (&updates[part.clone()], &precoding.scales[part.clone()]);
                    channel.add_into(part.start, some, scales, noise, &mut decoded).unwrap();
                }
                assert_eq!(decoded, expected);
            }
        }
        let mut decoded = vec![0.0; parameters];
        assert!(channel.add_into(0, &updates, &[Scale::UNCHANGED], Some(NOISE), &mut decoded).is_err());
    }

    /// Blocks that begin and end within tiles and tasks: every one is decoded as a channel of its own.
    #[test]
    fn blocks_have_gains_and_noise_of_their_own() {
        let (clients, parameters) = (27_u32, 2 * TASK + 777);
        let updates = updates::random_updates(clients, parameters);
        let lengths = [3, TASK - 1, 1, 600, 3000];
        let last = parameters - lengths.iter().sum::<usize>();
        let blocks: Vec<Block> = lengths
            .into_iter()
            .chain([last])
            .zip(1_u32..)
            .map(|(parameters, number)| Block {
                parameters,
                gains: (0..clients).map(|k| f64::from(k % 5) - 0.4 * f64::from(number)).collect(),
                noise_std: f64::from(number % 3),
                cross_gains: Vec::new(),
            })
            .collect();
        let channel = EffectiveChannel::from_blocks(blocks.clone()).unwrap();
        let scale = |k: u32| Scale { mean: 0.0, factor: 1.0 / f64::from(1 + k % 3) };
        let scales: Vec<Scale> = (0..clients).map(scale).collect();
        let decoded = channel.apply(&updates, NOISE).unwrap();
        let mut scaled = vec![0.0; parameters];
        channel.add_into(0, &updates, &scales, Some(NOISE), &mut scaled).unwrap();
        let mut from = 0;
        for block in blocks {
            let range = from..from + block.parameters;
            let alone = EffectiveChannel::new(block.gains, block.noise_std).unwrap();
            assert_eq!(decoded[range.clone()], alone.apply(&updates, NOISE).unwrap()[range.clone()]);
            let mut expected = vec![0.0; parameters];
            alone.add_into(0, &updates, &scales, Some(NOISE), &mut expected).unwrap();
            assert_eq!(scaled[range.clone()], expected[range.clone()]);
            from = range.end;
        }
        let short: Vec<&[f32]> = updates.iter().map(|update| &update[1..]).collect();
        assert!(matches!(channel.apply(&short, NOISE), Err(UplinkError::WrongCount { .. })));
    }

    #[test]
    fn mu_is_that_of_the_worst_block() {
        let block = |gains: [f64; 2], noise_std| Block {
            parameters: 2,
            gains: gains.to_vec(),
            noise_std,
            cross_gains: Vec::new(),
        };
        let channel =
            EffectiveChannel::from_blocks(vec![block([1.0, 0.0], 2.0), block([-3.0, 0.0], 1.0)]).unwrap();
        assert_eq!((channel.mu(2.0), channel.gains()), (vec![6.0, 0.0], &[-1.0, 0.0][..]));
        assert_eq!(channel.noise_std(), 2.5_f64.sqrt());
        assert_eq!(EffectiveChannel::new(vec![2.0, 0.0], 0.0).unwrap().mu(1.0), [f64::INFINITY, 0.0]);
        assert!(EffectiveChannel::from_blocks(Vec::new()).is_err());
        assert!(
            EffectiveChannel::from_blocks(vec![Block { parameters: 0, ..block([1.0, 1.0], 1.0) }]).is_err()
        );
    }

    /// Blocks with and without cross-talk, of which the last has an odd number of parameters.
    fn with_cross_talk(clients: u32, lengths: &[usize]) -> EffectiveChannel {
        let block = |(&parameters, number): (&usize, u32)| Block {
            parameters,
            gains: (0..clients).map(|k| f64::from(k % 5) - 0.4 * f64::from(number)).collect(),
            noise_std: f64::from(number % 3),
            cross_gains: match number % 4 {
                0 => Vec::new(),
                _ => (0..clients).map(|k| 0.3 * f64::from(k % 3) - 0.2).collect(),
            },
        };
        EffectiveChannel::from_blocks(lengths.iter().zip(1..).map(block).collect()).unwrap()
    }

    /// Complex arithmetic in double precision, with the last imaginary part 0.
    #[test]
    fn cross_talk_is_a_product_of_complex_numbers() {
        use num_complex::Complex64;
        let lengths = [TASK + 2, 600, 4, 3000, 77];
        let (clients, parameters) = (27, lengths.iter().sum());
        let updates = updates::random_updates(clients, parameters);
        let channel = with_cross_talk(clients, &lengths);
        let decoded = channel.apply(&updates, NOISE).unwrap();
        let mut normals = vec![0.0; parameters];
        NOISE.normals().fill(0, &mut normals);
        let mut first = 0;
        for block in channel.blocks() {
            for i in (first..first + block.parameters).step_by(2) {
                let mut sum = Complex64::ZERO;
                for (client, update) in updates.iter().enumerate() {
                    let cross = block.cross_gains.get(client).copied().unwrap_or(0.0);
                    let im = update.get(i + 1).copied().unwrap_or(0.0);
                    sum += Complex64::new(block.gains[client], cross)
                        * Complex64::new(update[i].into(), im.into());
                }
                for (at, part) in
                    [(i, sum.re), (i + 1, sum.im)].into_iter().filter(|&(at, _)| at < parameters)
                {
                    let expected = part + block.noise_std * f64::from(normals[at]);
                    assert!((f64::from(decoded[at]) - expected).abs() < 1e-4, "parameter {at}");
                }
            }
            first += block.parameters;
        }
    }

    #[test]
    fn waves_with_cross_talk_equal_one_call() {
        let lengths = [TASK + 2, 600, 175];
        let (clients, parameters) = (27, lengths.iter().sum());
        let updates = updates::random_updates(clients, parameters);
        let channel = with_cross_talk(clients, &lengths);
        let clip = 1.001 * crate::precode::norm(&updates[3]);
        let precoding = Precoding::new(&updates, Some(clip), Clipping::Each).unwrap();
        let mut in_memory = updates.clone();
        precoding.apply(&mut in_memory);
        let expected = channel.apply(&in_memory, NOISE).unwrap();
        let mut decoded = vec![0.0; parameters];
        for part in [0..1, 1..20, 20..27] {
            let noise = (part.start == 0).then_some(NOISE);
            let (some, scales) = (&updates[part.clone()], &precoding.scales[part.clone()]);
            channel.add_into(part.start, some, scales, noise, &mut decoded).unwrap();
        }
        assert_eq!(decoded, expected);
    }

    /// `3 + 4j` has the magnitude 5, whatever the direction of the change.
    #[test]
    fn mu_counts_cross_talk() {
        let block = Block {
            parameters: usize::MAX,
            gains: vec![3.0, 0.0],
            noise_std: 2.0,
            cross_gains: vec![4.0, 0.0],
        };
        let channel = EffectiveChannel::from_blocks(vec![block.clone()]).unwrap();
        assert_eq!(channel.mu(2.0), [5.0, 0.0]);
        let change = channel.apply(&[[0.6, -0.8], [0.0, 0.0]], NOISE).unwrap();
        let noise = channel.apply(&[[0.0; 2]; 2], NOISE).unwrap();
        let moved: f32 = change.iter().zip(&noise).map(|(x, n)| (x - n).powi(2)).sum();
        assert!((moved.sqrt() - 5.0).abs() < 1e-5);
        let short = Block { cross_gains: vec![1.0], ..block.clone() };
        assert!(EffectiveChannel::from_blocks(vec![short]).is_err());
        let odd = Block { parameters: 3, ..block };
        assert!(EffectiveChannel::from_blocks(vec![odd.clone(), odd]).is_err());
    }

    #[test]
    fn each_task_reads_its_own_noise() {
        let parameters = 2 * TASK + 77;
        let zero = [vec![0.0; parameters]];
        let decoded = EffectiveChannel::new(vec![1.0], 1.0).unwrap().apply(&zero, NOISE).unwrap();
        let mut normals = vec![0.0; parameters];
        NOISE.normals().fill(0, &mut normals);
        assert_eq!(decoded, normals);
    }

    #[test]
    fn each_invalid_update_has_its_own_message() {
        let channel = EffectiveChannel::new(vec![1.0, 0.0], 1.0).unwrap();
        let apply = |updates: &[&[f32]]| channel.apply(updates, NOISE).unwrap_err();
        assert_eq!(apply(&[&[1.0]]), UplinkError::UpdateCount { updates: 1, clients: 2 });
        assert_eq!(apply(&[&[], &[]]), UplinkError::EmptyUpdate);
        assert_eq!(
            apply(&[&[1.0], &[1.0, 2.0]]),
            UplinkError::LengthMismatch { index: 1, expected: 1, found: 2 }
        );
        for value in [f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(
                apply(&[&[1.0, 2.0], &[0.0, value]]),
                UplinkError::NotFinite { index: 1, parameter: 1, value }
            );
        }
        assert!(matches!(
            apply(&[&[f32::NAN], &[0.0]]),
            UplinkError::NotFinite { index: 0, parameter: 0, .. }
        ));
        let loud = EffectiveChannel::new(vec![10.0], 0.0).unwrap();
        assert_eq!(loud.apply(&[[0.0, f32::MAX]], NOISE), Err(UplinkError::Overflow { parameter: 1 }));
    }

    #[test]
    fn a_channel_that_is_not_finite_is_refused() {
        assert!(EffectiveChannel::new(vec![f64::NAN], 1.0).is_err());
        assert!(EffectiveChannel::new(vec![1.0], -1.0).is_err());
        assert!(EffectiveChannel::new(vec![1.0], f64::INFINITY).is_err());
        assert_eq!(EffectiveChannel::new(vec![], 1.0), Err(UplinkError::NoClients));
    }
}
