//! The chip level: what is really on the air, `L` chips for every parameter.
//!
//! A [`ChipLink`] is a round after the pilot: everybody's sequence and received amplitude, and the base station's
//! projector. For each parameter `i` the air carries, and the base station decodes,
//!
//! ```text
//! y_i = Σ_k a_k h_k x_k[i] + n_i,      x̃_i = vᵀ y_i          (paper, section IV-A, steps 3 and 4)
//! ```
//!
//! Clients may add noise of their own to what they send: `x_k[i] + b_k·N(0, 1)`. The amplitudes `h_k` may differ between blocks of
//! parameters; the projector is the pilot's in all of them.
//!
//! The simulation works on 128 parameters at a time, so that its memory does not grow with `L·d`. It is the ground
//! truth that the symbol level ([`crate::EffectiveChannel`]) is checked against.

use std::ops::Range;

use floras_core::Family;
use floras_core::random::{NormalField, Purpose, StreamName, TILE, Tile, tile_of_normals};

use crate::effective::{Block, EffectiveChannel};
use crate::error::{UplinkError, require, require_count};
use crate::kernel::{self, Kernel};
use crate::sequences::SequenceSet;
use crate::{updates, walsh};

/// Longest sequence: a thread holds `L` chips of 128 parameters, 512 MiB at this length.
pub(crate) const MAX_LENGTH: usize = 1 << 20;

/// A round at the chip level, ready to carry updates.
#[derive(Clone, Debug, PartialEq)]
pub struct ChipLink {
    set: SequenceSet,
    /// The sequence that each client uses.
    assigned: Vec<usize>,
    /// `h_k`: real amplitude at which client `k`'s sequence arrives.
    amplitudes: Vec<f64>,
    /// `v`.
    projector: Vec<f64>,
    /// `σ/√L`.
    chip_noise_std: f64,
    /// `b_k`: standard deviation of the noise that client `k` adds to each of its symbols; empty if nobody does.
    client_noise_stds: Vec<f64>,
    /// The amplitudes of each block of parameters; empty if they are the same in all.
    blocks: Vec<ChipBlock>,
}

/// Parameters that arrive with the same amplitudes.
#[derive(Clone, Debug, PartialEq)]
pub struct ChipBlock {
    /// How many parameters, one after the other: at least 1.
    pub parameters: usize,
    /// `h_k`, one for each client, finite.
    pub amplitudes: Vec<f64>,
}

impl ChipLink {
    /// A link on which client `k` uses sequence `assigned[k]` of `set`, counted from 0, which arrives with amplitude
    /// `amplitudes[k]`. Clients that share a sequence add up.
    pub fn new(
        set: SequenceSet,
        assigned: Vec<usize>,
        amplitudes: Vec<f64>,
        projector: Vec<f64>,
        chip_noise_std: f64,
    ) -> Result<Self, UplinkError> {
        set.check_assigned(&assigned)?;
        require_count("amplitudes, one for each client", assigned.len(), amplitudes.len())?;
        require_count("chips of the projector", set.length(), projector.len())?;
        let holds = chip_noise_std.is_finite() && chip_noise_std >= 0.0;
        require(holds, "the noise of a chip", "finite and not negative", chip_noise_std)?;
        for &number in amplitudes.iter().chain(&projector) {
            require(number.is_finite(), "an amplitude or a chip of the projector", "finite", number)?;
        }
        Ok(Self {
            set,
            assigned,
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
        for block in &blocks {
            require(block.parameters > 0, "the number of parameters in a block", "at least 1", 0.0)?;
            require_count("amplitudes, one for each client", self.assigned.len(), block.amplitudes.len())?;
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

    /// The same link with `factor` times the receiver's noise. What clients add stays as it is.
    pub(crate) fn with_scaled_noise(self, factor: f64) -> Self {
        Self { chip_noise_std: self.chip_noise_std * factor, ..self }
    }

    /// `L`, the number of chips a parameter.
    pub fn length(&self) -> usize {
        self.set.length()
    }

    /// The effective channel that this link amounts to: `g_k = vᵀa_k·h_k`, `ν² = (σ²/L)·‖v‖² + Σ_k g_k²·b_k²`.
    pub fn effective(&self) -> Result<EffectiveChannel, UplinkError> {
        let seen = self.set.despread(&self.projector)?;
        let norm = self.projector.iter().map(|v| v * v).sum::<f64>().sqrt();
        let block = |parameters: usize, amplitudes: &[f64]| {
            let clients = self.assigned.iter().zip(amplitudes);
            let gains: Vec<f64> = clients.map(|(&sequence, h)| seen[sequence] * h).collect();
            let of_clients =
                gains.iter().zip(&self.client_noise_stds).map(|(gain, std)| (gain * std).powi(2));
            let of_clients = of_clients.sum::<f64>().sqrt();
            Block { parameters, gains, noise_std: (self.chip_noise_std * norm).hypot(of_clients) }
        };
        let blocks = if self.blocks.is_empty() {
            vec![block(usize::MAX, &self.amplitudes)]
        } else {
            self.blocks.iter().map(|of| block(of.parameters, &of.amplitudes)).collect()
        };
        EffectiveChannel::from_blocks(blocks)
    }

    /// Sends the updates chip by chip and decodes their sum; the receiver's noise is read from the stream `noise`, and the
    /// clients' own from the streams of [`Purpose::CLIENT_NOISE`] beside it.
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
        let loudest = kernel::run(&kernel, updates, self.assigned.len(), decoded)?;
        self.check_precision(loudest)
    }

    /// Refuses noise that single precision would drown: the rounding of a chip must stay well below the noise, because
    /// the projector magnifies both alike.
    fn check_precision(&self, loudest_chip: f32) -> Result<(), UplinkError> {
        let rounding = f64::from(loudest_chip) * f64::from(f32::EPSILON) / 2.0;
        if self.chip_noise_std > 0.0 && rounding > self.chip_noise_std / 8.0 {
            let chip_noise_std = self.chip_noise_std;
            return Err(UplinkError::NoiseBelowPrecision { loudest_chip, chip_noise_std });
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

    fn check_size(&self, parameters: usize) -> Result<(), UplinkError> {
        let length = self.set.length();
        let tiles = (parameters.div_ceil(TILE) as u64).checked_mul(length as u64);
        if length <= MAX_LENGTH && tiles.is_some_and(|tiles| tiles <= NormalField::TILES) {
            return Ok(());
        }
        let most = NormalField::TILES * TILE as u64;
        Err(UplinkError::TooManyChips { parameters, length, most_length: MAX_LENGTH, most })
    }
}

/// A link in single precision, laid out for one pass over the parameters.
struct ChipLevel {
    spreading: Spreading,
    projector: Vec<f32>,
    chip_noise_std: f32,
    noise: NormalField,
    /// What each client adds to its symbols; empty if nobody adds anything.
    client_noise: Vec<(f32, NormalField)>,
    /// What symbols are multiplied by before they are spread; empty if the spreading has the amplitudes.
    segments: Vec<Segment>,
}

/// A block of parameters.
struct Segment {
    /// The first parameter that is not in it.
    end: usize,
    /// `h_k`.
    amplitudes: Vec<f32>,
}

/// How symbols become chips.
enum Spreading {
    /// By the fast transform: each client's sequence, and `h_k/√L`.
    Walsh(Vec<(usize, f32)>),
    /// By the matrix `a_k[l]·h_k`, which stands at `[l·K + k]`.
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
        Self {
            segments: segments.collect(),
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
        let amplitudes = if link.blocks.is_empty() { &link.amplitudes } else { &unit };
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
        let mut loudest = [0.0; TILE];
        let mut air = vec![[0.0; TILE]; self.projector.len()];
        let mut packed = match self.spreading {
            Spreading::Walsh(_) if self.client_noise.is_empty() && self.segments.is_empty() => Vec::new(),
            _ => vec![[0.0; TILE]; rows.len()],
        };
        for (offset, decoded) in decoded.chunks_mut(TILE).enumerate() {
            let columns = offset * TILE..offset * TILE + decoded.len();
            let tile = (first_tile + offset) as u64;
            self.pack(rows, columns.clone(), tile, &mut packed);
            self.fade(first + columns.start, columns.len(), &mut packed);
            match &self.spreading {
                Spreading::Walsh(clients) if packed.is_empty() => {
                    spread_walsh(clients, rows, columns, &mut air);
                }
                Spreading::Walsh(clients) => {
                    spread_walsh(clients, &slices(&packed), 0..decoded.len(), &mut air);
                }
                Spreading::Dense(mixing) => spread_dense(mixing, &slices(&packed), &mut air),
            }
            let sum = self.receive(&air, tile, &mut loudest);
            decoded.copy_from_slice(&sum[..decoded.len()]);
        }
        loudest.into_iter().fold(0.0, f32::max)
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
    /// Puts the symbols side by side, with what the clients add to them: updates often lie at equal offsets within their
    /// pages, and would evict one another from the cache.
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

    /// Multiplies the symbols of the parameters from `first` on by the amplitudes of their blocks.
    #[inline(always)]
    fn fade(&self, first: usize, length: usize, packed: &mut [Tile]) {
        if self.segments.is_empty() {
            return;
        }
        let mut done = 0;
        for segment in &self.segments[self.segments.partition_point(|segment| segment.end <= first)..] {
            let end = length.min(segment.end - first);
            for (packed, &amplitude) in packed.iter_mut().zip(&segment.amplitudes) {
                for symbol in &mut packed[done..end] {
                    *symbol *= amplitude;
                }
            }
            done = end;
            if done == length {
                break;
            }
        }
    }

    /// Step 4: adds the receiver's noise to every chip and projects on `v`. `loudest` keeps each column's largest chip.
    #[inline(always)]
    fn receive(&self, air: &[Tile], tile: u64, loudest: &mut Tile) -> Tile {
        let first_row = tile * air.len() as u64;
        let mut sum = [0.0; TILE];
        for (chip, (row, &v)) in air.iter().zip(&self.projector).enumerate() {
            let noise = if self.chip_noise_std == 0.0 {
                [0.0; TILE]
            } else {
                tile_of_normals(&self.noise, first_row + chip as u64)
            };
            for (loudest, &sent) in loudest.iter_mut().zip(row) {
                *loudest = loudest.max(sent.abs());
            }
            for ((sum, &sent), &normal) in sum.iter_mut().zip(row).zip(&noise) {
                let received = self.chip_noise_std.mul_add(normal, sent);
                *sum = v.mul_add(received, *sum);
            }
        }
        sum
    }
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
        let updates = updates::made_up(4, parameters);
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

    /// Every parameter has the sum of what was there without, and of each client's own noise under its gain.
    #[test]
    fn clients_that_add_noise_are_heard_with_it() {
        let parameters = 2 * kernel::TASK + 99;
        let updates = updates::made_up(4, parameters);
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
    fn tasks_read_the_noise_where_they_stand() {
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
    fn the_effective_channel_holds_what_the_kernel_does() {
        let parameters = 200_000;
        let updates = updates::made_up(4, parameters);
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
            // The mean square of d normals is good to √(2/d) = 0.32%; five of those.
            assert!((power / channel.noise_std().powi(2) - 1.0).abs() < 0.016, "{set}");
        }
    }

    /// Chips of 10⁶ are rounded to 0.03; noise of 0.7 survives that, noise of 0.1 would not.
    #[test]
    fn noise_that_single_precision_would_drown_is_refused() {
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
    fn links_that_cannot_be_are_refused() {
        let set = SequenceSet::walsh(2, 4).unwrap();
        let new = |assigned: &[usize], amplitude: f64, chips: usize, noise_std: f64| {
            ChipLink::new(set.clone(), assigned.to_vec(), vec![amplitude], vec![1.0; chips], noise_std)
        };
        let nobody = ChipLink::new(set.clone(), vec![], vec![], vec![1.0; 4], 0.0);
        assert_eq!(nobody, Err(UplinkError::NoClients));
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
