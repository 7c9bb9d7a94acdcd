//! The chip level: the transmitted signal itself, `L` chips per parameter.
//!
//! A [`ChipLink`] is a round after the pilot: each client's sequence and received amplitude, and the base station's
//! projector. For each parameter `i` the air carries, and the base station decodes,
//!
//! ```text
//! y_i = Σ_k a_k h_k x_k[i] + n_i,      x̃_i = vᵀ y_i          (paper, section IV-A, steps 3 and 4)
//! ```
//!
//! With `B` real branches ([`Modulation::branches`](floras_core::Modulation::branches)) every branch receives chips of its own, with its
//! own amplitudes, noise and projector, and the decoded values are the sum over the branches. With two parameters in a complex symbol an
//! antenna receives `L` complex chips for both, `y = Σ_k a_k h_k·(x_k[2i] + j·x_k[2i+1]) + n`, and `vᴴy` has the two decoded values as
//! its real and imaginary part.
//!
//! Clients may add noise to their symbols: `x_k[i] + b_k·N(0, 1)`. The amplitudes `h_k` may differ between blocks of
//! parameters; the projector is the pilot's in all of them.
//!
//! The simulation works on 128 parameters at a time, so that its memory does not grow with `L·d`. The symbol
//! level ([`crate::EffectiveChannel`]) is checked against it.

use std::ops::Range;

use floras_core::random::{NormalField, Purpose, StreamName, TILE, Tile, tile_of_normals};
use floras_core::{Family, ParametersPerSymbol};

use crate::effective::{Block, EffectiveChannel};
use crate::error::{UplinkError, require, require_count};
use crate::kernel::{self, Kernel};
use crate::sequences::SequenceSet;
use crate::uplink::{cross_gain, gain};
use crate::{updates, walsh};

/// Longest sequence: a thread holds `L` chips of 128 parameters, 512 MiB at this length.
pub(crate) const MAX_LENGTH: usize = 1 << 20;

/// A round at the chip level, ready to carry updates.
#[derive(Clone, Debug, PartialEq)]
pub struct ChipLink {
    set: SequenceSet,
    /// The sequence that each client uses.
    assigned: Vec<usize>,
    /// `B`, real branches of the receiver.
    branches: usize,
    parameters_per_symbol: ParametersPerSymbol,
    /// `h_k`: real amplitude at which client `k`'s sequence arrives in branch `b`, at `k·B + b`.
    amplitudes: Vec<f64>,
    /// The projector `v`: `L` chips for each branch, one branch after the other.
    projector: Vec<f64>,
    /// Standard deviation `σ/√L` of the noise in a received chip.
    chip_noise_std: f64,
    /// `b_k`: standard deviation of the noise that client `k` adds to each of its symbols; empty without such noise.
    client_noise_stds: Vec<f64>,
    /// The amplitudes of each block of parameters; empty if they are the same in all.
    blocks: Vec<ChipBlock>,
}

/// Parameters that arrive with the same amplitudes.
#[derive(Clone, Debug, PartialEq)]
pub struct ChipBlock {
    /// Number of consecutive parameters, at least 1.
    pub parameters: usize,
    /// The finite amplitudes `h_k`, one for each client and branch. With `B` branches, that of client `k` in branch `b` is at `k·B + b`.
    pub amplitudes: Vec<f64>,
}

impl ChipLink {
    /// A link on which client `k` uses sequence `assigned[k]` of `set`, counted from 0, which arrives with amplitude `amplitudes[k]`. The
    /// signals of clients that share a sequence add up.
    pub fn new(
        set: SequenceSet,
        assigned: Vec<usize>,
        amplitudes: Vec<f64>,
        projector: Vec<f64>,
        chip_noise_std: f64,
    ) -> Result<Self, UplinkError> {
        let one = ParametersPerSymbol::One;
        Self::combining(1, one, set, assigned, amplitudes, projector, chip_noise_std)
    }

    /// The same for a receiver of `branches` real branches, at least 1.
    ///
    /// # Arguments
    /// * `parameters_per_symbol`: two need branches in pairs, the in-phase and the quadrature branch of each antenna.
    /// * `amplitudes`: client `k`'s in branch `b` is at `k·B + b`.
    /// * `projectors`: `L` chips for each branch, one branch after the other.
    pub fn combining(
        branches: usize,
        parameters_per_symbol: ParametersPerSymbol,
        set: SequenceSet,
        assigned: Vec<usize>,
        amplitudes: Vec<f64>,
        projectors: Vec<f64>,
        chip_noise_std: f64,
    ) -> Result<Self, UplinkError> {
        let holds = branches > 0 && branches.is_multiple_of(parameters_per_symbol.get());
        require(
            holds,
            "the number of branches",
            "at least 1, and even for complex symbols",
            branches as f64,
        )?;
        set.check_assigned(&assigned)?;
        let count = assigned.len().saturating_mul(branches);
        require_count("amplitudes, one for each client and branch", count, amplitudes.len())?;
        let projector = projectors;
        let chips = set.length().saturating_mul(branches);
        require_count("chips of the projector, in all branches", chips, projector.len())?;
        let holds = chip_noise_std.is_finite() && chip_noise_std >= 0.0;
        require(holds, "the noise of a chip", "finite and not negative", chip_noise_std)?;
        for &number in amplitudes.iter().chain(&projector) {
            require(number.is_finite(), "an amplitude or a chip of the projector", "finite", number)?;
        }
        Ok(Self {
            set,
            assigned,
            branches,
            parameters_per_symbol,
            amplitudes,
            projector,
            chip_noise_std,
            client_noise_stds: Vec::new(),
            blocks: Vec::new(),
        })
    }

    /// The same link with amplitudes that differ between blocks of parameters. There is at least one block; a single one fits any
    /// number of parameters.
    pub fn with_blocks(mut self, blocks: Vec<ChipBlock>) -> Result<Self, UplinkError> {
        let count = blocks.len() as f64;
        require(count > 0.0, "the number of blocks of parameters", "at least 1", count)?;
        for (number, block) in blocks.iter().enumerate() {
            require(block.parameters > 0, "the number of parameters in a block", "at least 1", 0.0)?;
            let holds = number + 1 == blocks.len()
                || block.parameters.is_multiple_of(self.parameters_per_symbol.get());
            let parameters = block.parameters as f64;
            require(holds, "the number of parameters in a block of complex symbols", "even", parameters)?;
            require_count(
                "amplitudes, one for each client and branch",
                self.amplitudes.len(),
                block.amplitudes.len(),
            )?;
            for &amplitude in &block.amplitudes {
                require(amplitude.is_finite(), "an amplitude", "finite", amplitude)?;
            }
        }
        match <[ChipBlock; 1]>::try_from(blocks) {
            Ok([only]) => self.amplitudes = only.amplitudes,
            Err(several) => self.blocks = several,
        }
        Ok(self)
    }

    /// The same link with clients that add noise of these standard deviations to each of their symbols.
    pub fn with_client_noise(mut self, stds: Vec<f64>) -> Result<Self, UplinkError> {
        require_count("standard deviations, one for each client", self.assigned.len(), stds.len())?;
        for &std in &stds {
            let holds = std.is_finite() && std >= 0.0;
            require(holds, "the noise that a client adds", "finite and not negative", std)?;
        }
        self.client_noise_stds = if stds.iter().any(|&std| std > 0.0) { stds } else { Vec::new() };
        Ok(self)
    }

    /// The same link with `factor` times the receiver's noise. The clients' own noise does not change.
    pub(crate) fn with_scaled_noise(self, factor: f64) -> Self {
        Self { chip_noise_std: self.chip_noise_std * factor, ..self }
    }

    /// The same link with `factor` times the clients' own noise.
    pub(crate) fn with_scaled_client_noise(mut self, factor: f64) -> Self {
        self.client_noise_stds.iter_mut().for_each(|std| *std *= factor);
        self
    }

    /// `L`, the number of chips of a symbol in one branch.
    pub fn length(&self) -> usize {
        self.set.length()
    }

    /// The effective channel of this link: `g_k = Σ_b v_bᵀa_k·h_{k,b}`, `ν² = (σ²/L)·Σ_b ‖v_b‖² + Σ_k |g_k|²·b_k²`.
    pub fn effective(&self) -> Result<EffectiveChannel, UplinkError> {
        let of_branch = |projector: &[f64]| self.set.despread(projector);
        let seen: Vec<Vec<f64>> =
            self.projector.chunks(self.set.length()).map(of_branch).collect::<Result<_, _>>()?;
        // The weights of each client, with those of its branches next to each other.
        let weights: Vec<f64> = self
            .assigned
            .iter()
            .flat_map(|&sequence| seen.iter().map(move |branch| branch[sequence]))
            .collect();
        let norm = self.projector.iter().map(|v| v * v).sum::<f64>().sqrt();
        let block = |parameters: usize, amplitudes: &[f64]| {
            let clients = || amplitudes.chunks(self.branches).zip(weights.chunks(self.branches));
            let cross_gains = match self.parameters_per_symbol {
                ParametersPerSymbol::One => Vec::new(),
                ParametersPerSymbol::Two => clients().map(|(h, w)| cross_gain(h, w)).collect(),
            };
            let gains = clients().map(|(h, w)| gain(h, w)).collect();
            let mut block = Block { parameters, gains, noise_std: 0.0, cross_gains };
            let stds = self.client_noise_stds.iter().enumerate();
            let of_clients = stds.map(|(client, std)| (block.magnitude(client) * std).powi(2));
            let of_clients = of_clients.sum::<f64>().sqrt();
            block.noise_std = (self.chip_noise_std * norm).hypot(of_clients);
            block
        };
        let blocks = if self.blocks.is_empty() {
            vec![block(usize::MAX, &self.amplitudes)]
        } else {
            self.blocks.iter().map(|of| block(of.parameters, &of.amplitudes)).collect()
        };
        EffectiveChannel::from_blocks(blocks)
    }

    /// Sends the updates chip by chip and decodes their sum. The receiver's noise is read from the stream `noise`, and each client's own
    /// noise from the stream of the same name with the purpose [`Purpose::CLIENT_NOISE`] and the client's place in the list.
    pub fn transmit<U: AsRef<[f32]> + Sync>(
        &self,
        updates: &[U],
        noise: StreamName,
    ) -> Result<Vec<f32>, UplinkError> {
        let mut decoded = vec![0.0; updates::parameters(updates)];
        self.transmit_into(updates, noise, &mut decoded)?;
        Ok(decoded)
    }

    /// [`transmit`](Self::transmit) into memory that the caller provides, on the threads of the current `rayon` pool.
    ///
    /// After an error the contents of `decoded` are unspecified.
    pub fn transmit_into<U: AsRef<[f32]> + Sync>(
        &self,
        updates: &[U],
        noise: StreamName,
        decoded: &mut [f32],
    ) -> Result<(), UplinkError> {
        self.check_size(decoded.len())?;
        self.check_parameters(decoded.len())?;
        let kernel = ChipLevel::new(self, noise);
        let largest = kernel::run(&kernel, updates, self.assigned.len(), decoded)?;
        self.check_precision(largest)
    }

    /// Refuses noise below the rounding errors of single precision: the rounding of a chip must stay well below the noise, because
    /// the projector magnifies both alike.
    fn check_precision(&self, largest_chip: f32) -> Result<(), UplinkError> {
        let rounding = f64::from(largest_chip) * f64::from(f32::EPSILON) / 2.0;
        if self.chip_noise_std > 0.0 && rounding > self.chip_noise_std / 8.0 {
            let chip_noise_std = self.chip_noise_std;
            return Err(UplinkError::NoiseBelowPrecision { largest_chip, chip_noise_std });
        }
        Ok(())
    }

    /// Energy of the chips in which each client's unit symbol arrives, over the noise in a chip.
    #[cfg(test)]
    pub(crate) fn chip_energies_over_noise(&self) -> Vec<f64> {
        let clients = self.assigned.len();
        let energies: Vec<f64> = match Spreading::new(self) {
            Spreading::Walsh(scales) => {
                let chips = self.set.length() as f64;
                scales.iter().map(|&(_, scale)| chips * f64::from(scale).powi(2)).collect()
            }
            Spreading::Dense(matrix) => (0..clients)
                .map(|k| matrix.iter().skip(k).step_by(clients).map(|&chip| f64::from(chip).powi(2)).sum())
                .collect(),
        };
        energies.iter().map(|energy| energy / self.chip_noise_std.powi(2)).collect()
    }

    /// Refuses a number of parameters that the blocks do not cover.
    fn check_parameters(&self, parameters: usize) -> Result<(), UplinkError> {
        if self.blocks.is_empty() {
            return Ok(());
        }
        let covered = self.blocks.iter().fold(0_usize, |sum, block| sum.saturating_add(block.parameters));
        require_count("parameters, as many as the blocks of the link have", covered, parameters)
    }

    /// Tiles of chips that are received for a tile of parameters: one for each branch, or for each antenna if a symbol has two
    /// parameters.
    fn receptions(&self) -> usize {
        self.branches / self.parameters_per_symbol.get()
    }

    fn check_size(&self, parameters: usize) -> Result<(), UplinkError> {
        let length = self.set.length();
        let received = (length as u64).checked_mul(self.receptions() as u64);
        let tiles = received.and_then(|chips| (parameters.div_ceil(TILE) as u64).checked_mul(chips));
        if length <= MAX_LENGTH && tiles.is_some_and(|tiles| tiles <= NormalField::TILES) {
            return Ok(());
        }
        let max = NormalField::TILES * TILE as u64;
        Err(UplinkError::TooManyChips { parameters, length, max_length: MAX_LENGTH, max })
    }
}

/// A link in single precision, laid out for one pass over the parameters.
struct ChipLevel {
    spreading: Spreading,
    /// Length `L` of a sequence in chips.
    length: usize,
    branches: usize,
    receptions: usize,
    /// The projector `v`: `L` chips for each branch, one branch after the other.
    projector: Vec<f32>,
    chip_noise_std: f32,
    noise: NormalField,
    /// The noise that each client adds to its symbols: standard deviation and stream. Empty without such noise.
    client_noise: Vec<(f32, NormalField)>,
    /// The amplitudes by which symbols are multiplied before they are spread. Empty for one branch and one block, where the spreading
    /// includes the amplitudes.
    segments: Vec<Segment>,
}

/// A block of parameters with the same amplitudes.
struct Segment {
    /// Index of the first parameter after the block.
    end: usize,
    /// `h_k`: client `k`'s in branch `b` is at `k·B + b`.
    amplitudes: Vec<f32>,
}

/// The method by which symbols are spread to chips.
enum Spreading {
    /// The fast transform: each client's sequence, and `h_k/√L`.
    Walsh(Vec<(usize, f32)>),
    /// A matrix: `a_k[l]·h_k` is at `[l·K + k]`.
    Dense(Vec<f32>),
}

impl ChipLevel {
    fn new(link: &ChipLink, noise: StreamName) -> Self {
        let of_client = |(place, &std): (usize, &f64)| {
            (std as f32, noise.purpose(Purpose::CLIENT_NOISE).client(place as u32).normals())
        };
        let mut end = 0_usize;
        let segments = link.blocks.iter().map(|block| {
            end = end.saturating_add(block.parameters);
            Segment { end, amplitudes: block.amplitudes.iter().map(|&h| h as f32).collect() }
        });
        let mut segments: Vec<Segment> = segments.collect();
        if segments.is_empty() && link.branches > 1 {
            let amplitudes = link.amplitudes.iter().map(|&h| h as f32).collect();
            segments.push(Segment { end: usize::MAX, amplitudes });
        }
        Self {
            segments,
            length: link.set.length(),
            branches: link.branches,
            receptions: link.receptions(),
            spreading: Spreading::new(link),
            projector: link.projector.iter().map(|&v| v as f32).collect(),
            chip_noise_std: link.chip_noise_std as f32,
            noise: noise.normals(),
            client_noise: link.client_noise_stds.iter().enumerate().map(of_client).collect(),
        }
    }
}

impl Spreading {
    fn new(link: &ChipLink) -> Self {
        let unit = vec![1.0; link.assigned.len()];
        let has_amplitudes = link.blocks.is_empty() && link.branches == 1;
        let amplitudes = if has_amplitudes { &link.amplitudes } else { &unit };
        let clients = || link.assigned.iter().copied().zip(amplitudes);
        let length = link.set.length();
        match link.set.family() {
            Some(Family::Walsh) => {
                let scale = 1.0 / (length as f64).sqrt();
                Self::Walsh(clients().map(|(sequence, h)| (sequence, (h * scale) as f32)).collect())
            }
            _ => {
                let row = |l| clients().map(move |(sequence, h)| (link.set.chip(sequence, l) * h) as f32);
                Self::Dense((0..length).flat_map(row).collect())
            }
        }
    }
}

impl Kernel for ChipLevel {
    #[inline(always)]
    fn decode(&self, rows: &[&[f32]], first: usize, decoded: &mut [f32]) -> f32 {
        let first_tile = first / TILE;
        let mut largest = [0.0; TILE];
        let mut air = vec![[0.0; TILE]; self.length];
        let mut packed = match self.spreading {
            Spreading::Walsh(_) if self.client_noise.is_empty() && self.segments.is_empty() => Vec::new(),
            _ => vec![[0.0; TILE]; rows.len()],
        };
        for (offset, decoded) in decoded.chunks_mut(TILE).enumerate() {
            let columns = offset * TILE..offset * TILE + decoded.len();
            let tile = (first_tile + offset) as u64;
            for reception in 0..self.receptions {
                self.pack(rows, columns.clone(), tile, &mut packed);
                self.fade(first + columns.start, columns.len(), reception, &mut packed);
                match &self.spreading {
                    Spreading::Walsh(clients) if packed.is_empty() => {
                        spread_walsh(clients, rows, columns.clone(), &mut air);
                    }
                    Spreading::Walsh(clients) => {
                        spread_walsh(clients, &slices(&packed), 0..self.width(decoded.len()), &mut air);
                    }
                    Spreading::Dense(mixing) => spread_dense(mixing, &slices(&packed), &mut air),
                }
                let sum = self.receive(&air, tile, reception, &mut largest);
                if reception == 0 {
                    decoded.copy_from_slice(&sum[..decoded.len()]);
                } else {
                    decoded.iter_mut().zip(&sum).for_each(|(decoded, sum)| *decoded += sum);
                }
            }
        }
        largest.into_iter().fold(0.0, f32::max)
    }
}

/// Step 3, without the noise: row `l` of `air` becomes `Σ_k a_k[l] h_k x_k`.
#[inline(always)]
fn spread_walsh(clients: &[(usize, f32)], rows: &[&[f32]], columns: Range<usize>, air: &mut [Tile]) {
    air.fill([0.0; TILE]);
    for (&(sequence, h), row) in clients.iter().zip(rows) {
        for (sent, &x) in air[sequence].iter_mut().zip(&row[columns.clone()]) {
            *sent = h.mul_add(x, *sent);
        }
    }
    walsh::transform_rows(air.as_flattened_mut(), TILE);
}

/// Step 3 by matrix, with one whole tile of symbols for each client.
#[inline(always)]
fn spread_dense(mixing: &[f32], symbols: &[&[f32]], air: &mut [Tile]) {
    for (on_air, mixing) in air.iter_mut().zip(mixing.chunks_exact(symbols.len())) {
        on_air.fill(0.0);
        kernel::add_weighted(mixing, symbols, 0, on_air);
    }
}

fn slices(tiles: &[Tile]) -> Vec<&[f32]> {
    tiles.iter().map(|tile| &tile[..]).collect()
}

impl ChipLevel {
    /// Copies the symbols next to each other and adds the clients' noise. Updates often have equal offsets within their pages; without the
    /// copy they would evict one another from the cache.
    #[inline(always)]
    fn pack(&self, rows: &[&[f32]], columns: Range<usize>, tile: u64, packed: &mut [Tile]) {
        for (packed, row) in packed.iter_mut().zip(rows) {
            packed[..columns.len()].copy_from_slice(&row[columns.clone()]);
        }
        for (packed, (std, field)) in packed.iter_mut().zip(&self.client_noise) {
            if *std == 0.0 {
                continue;
            }
            let noise = tile_of_normals(field, tile);
            for (symbol, &normal) in packed.iter_mut().zip(&noise) {
                *symbol = std.mul_add(normal, *symbol);
            }
        }
    }

    /// Whether symbols are complex, with two parameters each.
    #[inline(always)]
    fn is_complex(&self) -> bool {
        self.receptions < self.branches
    }

    /// Number of columns of a tile in use: complex symbols have their imaginary parts in its second half.
    #[inline(always)]
    fn width(&self, parameters: usize) -> usize {
        if self.is_complex() { TILE } else { parameters }
    }

    /// Multiplies the symbols of the parameters from `first` on by the amplitudes of their blocks. Complex symbols move from pairs of
    /// parameters to the halves of the tile.
    #[inline(always)]
    fn fade(&self, first: usize, length: usize, reception: usize, packed: &mut [Tile]) {
        if self.segments.is_empty() {
            return;
        }
        let mut faded = [0.0; TILE];
        let start = self.segments.partition_point(|segment| segment.end <= first);
        for (client, packed) in packed.iter_mut().enumerate() {
            let at = client * self.branches;
            let mut done = 0;
            for segment in &self.segments[start..] {
                let end = length.min(segment.end - first);
                if self.is_complex() {
                    let (re, im) =
                        (segment.amplitudes[at + 2 * reception], segment.amplitudes[at + 2 * reception + 1]);
                    rotate(re, im, packed, done, end, &mut faded);
                } else {
                    let amplitude = segment.amplitudes[at + reception];
                    for symbol in &mut packed[done..end] {
                        *symbol *= amplitude;
                    }
                }
                done = end;
                if done == length {
                    break;
                }
            }
            if self.is_complex() {
                *packed = faded;
            }
        }
    }

    /// Step 4: adds the receiver's noise to every chip and projects on `v`. `largest` keeps the largest magnitude in each column.
    #[inline(always)]
    fn receive(&self, air: &[Tile], tile: u64, reception: usize, largest: &mut Tile) -> Tile {
        let first_row = (tile * self.receptions as u64 + reception as u64) * air.len() as u64;
        let projector_of = |branch: usize| &self.projector[branch * self.length..(branch + 1) * self.length];
        let (in_phase, quadrature) = match self.is_complex() {
            false => (projector_of(reception), &[][..]),
            true => (projector_of(2 * reception), projector_of(2 * reception + 1)),
        };
        let (mut sum, mut crossed) = ([0.0; TILE], [0.0; TILE]);
        for (chip, (row, &v)) in air.iter().zip(in_phase).enumerate() {
            let noise = if self.chip_noise_std == 0.0 {
                [0.0; TILE]
            } else {
                tile_of_normals(&self.noise, first_row + chip as u64)
            };
            for (largest, &sent) in largest.iter_mut().zip(row) {
                *largest = largest.max(sent.abs());
            }
            for ((sum, &sent), &normal) in sum.iter_mut().zip(row).zip(&noise) {
                let received = self.chip_noise_std.mul_add(normal, sent);
                *sum = v.mul_add(received, *sum);
            }
            if let Some(&v) = quadrature.get(chip) {
                for ((sum, &sent), &normal) in crossed.iter_mut().zip(row).zip(&noise) {
                    let received = self.chip_noise_std.mul_add(normal, sent);
                    *sum = v.mul_add(received, *sum);
                }
            }
        }
        if self.is_complex() { joined(&sum, &crossed) } else { sum }
    }
}

/// `(re + j·im)·(x[i] + j·x[i+1])` for the pairs from `from` to `to`, `from` even: real parts in the first half, imaginary parts in the
/// second. A last value without a partner is a real number.
#[inline(always)]
fn rotate(re: f32, im: f32, pairs: &Tile, from: usize, to: usize, halves: &mut Tile) {
    for symbol in from / 2..to.div_ceil(2) {
        let x = pairs[2 * symbol];
        let y = if 2 * symbol + 1 < to { pairs[2 * symbol + 1] } else { 0.0 };
        halves[symbol] = im.mul_add(-y, re * x);
        halves[TILE / 2 + symbol] = im.mul_add(x, re * y);
    }
}

/// `vᴴy` as pairs of parameters, from the sums of `Re v` and of `Im v` over chips whose real and imaginary parts are the halves of a tile.
#[inline(always)]
fn joined(of_real: &Tile, of_imaginary: &Tile) -> Tile {
    let mut pairs = [0.0; TILE];
    for symbol in 0..TILE / 2 {
        let other = TILE / 2 + symbol;
        pairs[2 * symbol] = of_real[symbol] + of_imaginary[other];
        pairs[2 * symbol + 1] = of_real[other] - of_imaginary[symbol];
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use floras_core::random::Purpose;

    const NOISE: StreamName = StreamName::new(6, Purpose::PAYLOAD_NOISE);

    /// The first and the last client share a sequence.
    const ASSIGNED: [usize; 4] = [4, 0, 2, 4];

    fn link(set: &SequenceSet) -> ChipLink {
        let projector = (0..set.length()).map(|chip| 0.3 * chip as f64 - 1.0).collect();
        ChipLink::new(set.clone(), ASSIGNED.to_vec(), vec![0.5, -1.5, 2.0, 0.8], projector, 0.7).unwrap()
    }

    fn every_family() -> [SequenceSet; 5] {
        [
            SequenceSet::walsh(5, 8).unwrap(),
            SequenceSet::orthonormal(5, 7).unwrap(),
            SequenceSet::gaussian(5, 3, 1).unwrap(),
            SequenceSet::gold(5, 31).unwrap(),
            SequenceSet::zadoff_chu(5, 10).unwrap(),
        ]
    }

    /// Steps 3 and 4 as printed, in double precision and without any blocking.
    #[test]
    fn the_kernel_is_the_formula_chip_by_chip() {
        let parameters = 150;
        let updates = updates::random_updates(4, parameters);
        for set in every_family() {
            let (link, length) = (link(&set), set.length());
            let decoded = link.transmit(&updates, NOISE).unwrap();
            let mut noise = vec![0.0; parameters.div_ceil(TILE) * TILE * length];
            NOISE.normals().fill(0, &mut noise);
            for i in 0..parameters {
                let chip_of = |l: usize| -> f64 {
                    let sent: f64 = ASSIGNED
                        .iter()
                        .zip(&link.amplitudes)
                        .zip(&updates)
                        .map(|((&k, h), x)| set.chip(k, l) * h * f64::from(x[i]))
                        .sum();
                    sent + 0.7 * f64::from(noise[(i / TILE * length + l) * TILE + i % TILE])
                };
                let expected: f64 = (0..length).map(|l| link.projector[l] * chip_of(l)).sum();
                assert!((f64::from(decoded[i]) - expected).abs() < 2e-5, "{set}, parameter {i}");
            }
        }
    }

    /// Two antennas with both branches, in blocks of parameters.
    fn combining(set: &SequenceSet, packing: ParametersPerSymbol) -> ChipLink {
        let number = |index: usize| 0.7 - 0.31 * (index % 11) as f64;
        let amplitudes = |block: usize| (0..16).map(|index| number(7 * index + block)).collect();
        let projectors = (0..4 * set.length()).map(|chip| 0.1 * number(3 * chip)).collect();
        let assigned = ASSIGNED.to_vec();
        let link = ChipLink::combining(4, packing, set.clone(), assigned, amplitudes(0), projectors, 0.7);
        let block = |block: usize, parameters: usize| ChipBlock { parameters, amplitudes: amplitudes(block) };
        link.unwrap().with_blocks(vec![block(0, 40), block(1, 90), block(2, 21)]).unwrap()
    }

    /// Antenna `r` receives complex chips, the chips of both branches. They are written out in double precision.
    #[test]
    fn branches_are_combined_chip_by_chip() {
        use num_complex::Complex64;
        let parameters = 151;
        let updates = updates::random_updates(4, parameters);
        for set in every_family() {
            let length = set.length();
            for packing in [ParametersPerSymbol::One, ParametersPerSymbol::Two] {
                let link = combining(&set, packing);
                let decoded = link.transmit(&updates, NOISE).unwrap();
                let units = 4 / packing.get();
                let mut noise = vec![0.0; parameters.div_ceil(TILE) * TILE * length * units];
                NOISE.normals().fill(0, &mut noise);
                let normal = |i: usize, unit: usize, chip: usize, column: usize| {
                    0.7 * f64::from(noise[((i / TILE * units + unit) * length + chip) * TILE + column])
                };
                let block_of = |i: usize| &link.blocks[usize::from(i >= 40) + usize::from(i >= 130)];
                for i in (0..parameters).step_by(packing.get()) {
                    let mut expected = Complex64::ZERO;
                    for (antenna, chip) in
                        (0..2).flat_map(|antenna| (0..length).map(move |chip| (antenna, chip)))
                    {
                        let of = |values: &[f64], at: usize| Complex64::new(values[at], values[at + 1]);
                        let mut received: Complex64 = (0..4)
                            .map(|k| {
                                let im = match packing {
                                    ParametersPerSymbol::One => 0.0,
                                    ParametersPerSymbol::Two => updates[k].get(i + 1).copied().unwrap_or(0.0),
                                };
                                let symbol = Complex64::new(updates[k][i].into(), im.into());
                                let h = of(&block_of(i).amplitudes, 4 * k + 2 * antenna);
                                set.chip(ASSIGNED[k], chip) * h * symbol
                            })
                            .sum();
                        let column = i % TILE;
                        received += match packing {
                            ParametersPerSymbol::One => Complex64::new(
                                normal(i, 2 * antenna, chip, column),
                                normal(i, 2 * antenna + 1, chip, column),
                            ),
                            ParametersPerSymbol::Two => Complex64::new(
                                normal(i, antenna, chip, column / 2),
                                normal(i, antenna, chip, TILE / 2 + column / 2),
                            ),
                        };
                        let v = Complex64::new(
                            link.projector[2 * antenna * length + chip],
                            link.projector[(2 * antenna + 1) * length + chip],
                        );
                        expected += v.conj() * received;
                    }
                    assert!((f64::from(decoded[i]) - expected.re).abs() < 5e-5, "{set}, parameter {i}");
                    if packing == ParametersPerSymbol::Two && i + 1 < parameters {
                        let found = f64::from(decoded[i + 1]);
                        assert!((found - expected.im).abs() < 5e-5, "{set}, parameter {}", i + 1);
                    }
                }
            }
        }
    }

    /// Without receiver noise the decoded sum is that of the effective channel. With client noise its variance agrees.
    #[test]
    fn combined_branches_equal_their_effective_channel() {
        let parameters = 151;
        let updates = updates::random_updates(4, parameters);
        for packing in [ParametersPerSymbol::One, ParametersPerSymbol::Two] {
            for set in every_family() {
                let loud = combining(&set, packing);
                let quiet = ChipLink { chip_noise_std: 0.0, ..loud.clone() };
                let channel = quiet.effective().unwrap();
                let expected = channel.apply(&updates, NOISE).unwrap();
                for (left, right) in quiet.transmit(&updates, NOISE).unwrap().iter().zip(&expected) {
                    assert!((left - right).abs() < 5e-5, "{set}: {left} and {right}");
                }
                let square: f64 = loud.projector.iter().map(|v| v * v).sum();
                let noisy = loud.with_client_noise(vec![0.5, 0.0, 3.0, 1.0]).unwrap();
                for (block, noisy) in channel.blocks().iter().zip(noisy.effective().unwrap().blocks()) {
                    let clients = (0..4).zip([0.25, 0.0, 9.0, 1.0]);
                    let of_clients: f64 = clients.map(|(k, power)| block.magnitude(k).powi(2) * power).sum();
                    assert!((noisy.noise_std.powi(2) / (0.49 * square + of_clients) - 1.0).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn complex_symbols_need_pairs_of_branches_and_parameters() {
        let set = SequenceSet::walsh(5, 8).unwrap();
        let of = |branches: usize| {
            let (amplitudes, projectors) = (vec![1.0; 4 * branches], vec![0.0; 8 * branches]);
            let packing = ParametersPerSymbol::Two;
            ChipLink::combining(
                branches,
                packing,
                set.clone(),
                ASSIGNED.to_vec(),
                amplitudes,
                projectors,
                0.7,
            )
        };
        assert!(of(3).is_err() && of(0).is_err() && of(2).is_ok());
        let block = |parameters| ChipBlock { parameters, amplitudes: vec![1.0; 8] };
        assert!(of(2).unwrap().with_blocks(vec![block(3), block(2)]).is_err());
        assert!(of(2).unwrap().with_blocks(vec![block(2), block(3)]).is_ok());
    }

    /// Every decoded parameter is the sum without client noise, plus each client's noise times its gain.
    #[test]
    fn client_noise_arrives_with_the_clients_gain() {
        let parameters = 2 * kernel::TASK + 99;
        let updates = updates::random_updates(4, parameters);
        let stds = [0.5, 0.0, 3.0, 1.0];
        for set in every_family() {
            let silent = link(&set);
            let noisy = silent.clone().with_client_noise(stds.to_vec()).unwrap();
            let [without, with] = [&silent, &noisy].map(|link| link.transmit(&updates, NOISE).unwrap());
            let channel = noisy.effective().unwrap();
            let normals_of = |place: u32| {
                let mut normals = vec![0.0; parameters];
                NOISE.purpose(Purpose::CLIENT_NOISE).client(place).normals().fill(0, &mut normals);
                normals
            };
            let normals: Vec<Vec<f32>> = (0..4).map(normals_of).collect();
            for i in 0..parameters {
                let added: f64 =
                    (0..4).map(|k| channel.gains()[k] * stds[k] * f64::from(normals[k][i])).sum();
                assert!((f64::from(with[i] - without[i]) - added).abs() < 1e-4, "{set}, parameter {i}");
            }
            let squares: f64 = channel.gains().iter().zip(stds).map(|(g, std)| (g * std).powi(2)).sum();
            let alone = silent.effective().unwrap().noise_std();
            assert!((channel.noise_std().powi(2) / (alone * alone + squares) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn each_task_reads_its_own_noise() {
        let parameters = 2 * kernel::TASK + 99;
        let set = SequenceSet::walsh(1, 2).unwrap();
        let link = ChipLink::new(set, vec![0], vec![1.0], vec![1.0, 0.0], 1.0).unwrap();
        let decoded = link.transmit(&[vec![0.0; parameters]], NOISE).unwrap();
        let mut noise = vec![0.0; 2 * (parameters + TILE)];
        NOISE.normals().fill(0, &mut noise);
        for (i, &value) in decoded.iter().enumerate() {
            assert_eq!(value, noise[i / TILE * 2 * TILE + i % TILE], "parameter {i}");
        }
    }

    #[test]
    fn the_effective_channel_agrees_with_the_kernel() {
        let parameters = 200_000;
        let updates = updates::random_updates(4, parameters);
        let silence = vec![vec![0.0; parameters]; 4];
        for set in every_family() {
            let link = link(&set);
            let channel = link.effective().unwrap();
            let [decoded, noise] = [&updates, &silence].map(|sent| link.transmit(sent, NOISE).unwrap());
            for i in 0..parameters {
                let expected: f64 =
                    channel.gains().iter().zip(&updates).map(|(g, x)| g * f64::from(x[i])).sum();
                assert!((f64::from(decoded[i] - noise[i]) - expected).abs() < 5e-5);
            }
            let power = noise.iter().map(|n| f64::from(*n).powi(2)).sum::<f64>() / parameters as f64;
            // The mean square of d normals has a relative standard error of √(2/d) = 0.32%; the limit is five of those.
            assert!((power / channel.noise_std().powi(2) - 1.0).abs() < 0.016, "{set}");
        }
    }

    /// Chips of 10⁶ are rounded to 0.03. Noise of 0.7 is above the limit, and noise of 0.1 is below it.
    #[test]
    fn noise_below_single_precision_is_refused() {
        for set in every_family() {
            let projector = vec![1.0; set.length()];
            let loud = |chip_noise_std: f64| {
                let link = ChipLink::new(set.clone(), vec![1], vec![1.0], projector.clone(), chip_noise_std);
                link.unwrap().transmit(&[[1e6_f32 * (set.length() as f32).sqrt(), 0.0]], NOISE)
            };
            assert!(loud(7.0).is_ok() && loud(0.0).is_ok());
            assert!(matches!(loud(0.01), Err(UplinkError::NoiseBelowPrecision { .. })), "{set}");
        }
    }

    #[test]
    fn invalid_links_are_refused() {
        let set = SequenceSet::walsh(2, 4).unwrap();
        let new = |assigned: &[usize], amplitude: f64, chips: usize, noise_std: f64| {
            ChipLink::new(set.clone(), assigned.to_vec(), vec![amplitude], vec![1.0; chips], noise_std)
        };
        let no_clients = ChipLink::new(set.clone(), vec![], vec![], vec![1.0; 4], 0.0);
        assert_eq!(no_clients, Err(UplinkError::NoClients));
        assert!(matches!(
            new(&[0, 1], 1.0, 4, 0.0),
            Err(UplinkError::WrongCount { expected: 2, found: 1, .. })
        ));
        assert!(matches!(new(&[0], 1.0, 3, 0.0), Err(UplinkError::WrongCount { expected: 4, found: 3, .. })));
        assert_eq!(new(&[2], 1.0, 4, 0.0), Err(UplinkError::NoSuchSequence { sequence: 2, sequences: 2 }));
        assert!(matches!(new(&[0], f64::NAN, 4, 0.0), Err(UplinkError::OutOfRange { .. })));
        assert!(matches!(new(&[0], 1.0, 4, -1.0), Err(UplinkError::OutOfRange { .. })));
        let link = new(&[0], 1.0, 4, 0.0).unwrap();
        for stds in [vec![], vec![1.0, 1.0], vec![-1.0], vec![f64::NAN]] {
            assert!(link.clone().with_client_noise(stds).is_err());
        }
        assert!(matches!(
            link.transmit(&[[1.0, f32::NAN]], NOISE),
            Err(UplinkError::NotFinite { index: 0, parameter: 1, .. })
        ));
        assert!(matches!(link.check_size(1 << 41), Err(UplinkError::TooManyChips { .. })));
    }
}
