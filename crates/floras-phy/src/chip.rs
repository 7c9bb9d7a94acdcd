//! The chip level: what is really on the air, `L` chips for every parameter.
//!
//! A [`ChipLink`] is a round after the pilot: everybody's sequence and received amplitude, and the base station's
//! projector. For each parameter `i` the air carries, and the base station decodes,
//!
//! ```text
//! y_i = Σ_k a_k h_k x_k[i] + n_i,      x̃_i = vᵀ y_i          (paper, section IV-A, steps 3 and 4)
//! ```
//!
//! The simulation works on 64 parameters at a time, so that its memory does not grow with `L·d`. It is the ground
//! truth that the symbol level ([`crate::EffectiveChannel`]) is checked against.

use crate::effective::EffectiveChannel;
use crate::error::{UplinkError, require, require_count};
use crate::random::{NormalField, StreamName, TILE, Tile, tile_of_normals};
use crate::sequences::{Family, SequenceSet};
use crate::{updates, walsh};

/// A round at the chip level, ready to carry updates.
#[derive(Clone, Debug, PartialEq)]
pub struct ChipLink {
    length: usize,
    signatures: Signatures,
    /// `h_k`: real amplitude at which client `k`'s sequence arrives.
    amplitudes: Vec<f64>,
    /// `v`.
    projector: Vec<f64>,
    /// `σ/√L`.
    chip_noise_std: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Signatures {
    /// The row of the Hadamard matrix that each client uses.
    Walsh(Vec<usize>),
    /// The clients' sequences, one after the other.
    Dense(Vec<Vec<f64>>),
}

impl ChipLink {
    /// A link over the sequences of `set` that the clients use: client `k` has sequence `assigned[k]`, which arrives
    /// with amplitude `amplitudes[k]`.
    pub fn new(
        set: &SequenceSet,
        assigned: &[usize],
        amplitudes: Vec<f64>,
        projector: Vec<f64>,
        chip_noise_std: f64,
    ) -> Result<Self, UplinkError> {
        if assigned.is_empty() {
            return Err(UplinkError::NoClients);
        }
        require_count("amplitudes, one for each client", assigned.len(), amplitudes.len())?;
        require_count("chips of the projector", set.length(), projector.len())?;
        let within = |&&sequence: &&usize| sequence >= set.count();
        if let Some(&sequence) = assigned.iter().find(within) {
            require(false, "a sequence's number", "below the size N of its set", sequence as f64)?;
        }
        let holds = chip_noise_std.is_finite() && chip_noise_std >= 0.0;
        require(holds, "the noise of a chip", "finite and not negative", chip_noise_std)?;
        for &number in amplitudes.iter().chain(&projector) {
            require(number.is_finite(), "an amplitude or a chip of the projector", "finite", number)?;
        }
        let signatures = match set.family() {
            Family::Walsh => Signatures::Walsh(assigned.to_vec()),
            Family::Orthonormal | Family::Gaussian => {
                Signatures::Dense(assigned.iter().filter_map(|&sequence| set.sequence(sequence)).collect())
            }
        };
        Ok(Self { length: set.length(), signatures, amplitudes, projector, chip_noise_std })
    }

    /// `L`, the number of chips a parameter.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The effective channel that this link amounts to: `g_k = vᵀa_k·h_k`, `ν = (σ/√L)·‖v‖`.
    pub fn effective(&self) -> Result<EffectiveChannel, UplinkError> {
        let gain = |client: usize| self.amplitudes[client] * self.seen_through_projector(client);
        let gains = (0..self.amplitudes.len()).map(gain).collect();
        let norm = self.projector.iter().map(|v| v * v).sum::<f64>().sqrt();
        EffectiveChannel::new(gains, self.chip_noise_std * norm)
    }

    fn seen_through_projector(&self, client: usize) -> f64 {
        let chips = self.projector.iter().enumerate();
        match &self.signatures {
            Signatures::Walsh(rows) => {
                let sum: f64 = chips.map(|(chip, v)| v * walsh::sign(rows[client], chip)).sum();
                sum / (self.length as f64).sqrt()
            }
            Signatures::Dense(sequences) => chips.map(|(chip, v)| v * sequences[client][chip]).sum(),
        }
    }

    /// Sends the updates chip by chip and decodes their sum; the receiver's noise is read from the stream `noise`.
    pub fn transmit<U: AsRef<[f32]> + Sync>(
        &self,
        updates: &[U],
        noise: StreamName,
    ) -> Result<Vec<f32>, UplinkError> {
        let parameters = updates::check_shape(updates, self.amplitudes.len())?;
        let mut decoded = vec![0.0; parameters];
        self.transmit_into(updates, noise, &mut decoded)?;
        Ok(decoded)
    }

    /// [`transmit`](Self::transmit) into memory of the caller's, on the threads of the current `rayon` pool.
    ///
    /// After an error the contents of `decoded` are unspecified.
    pub fn transmit_into<U: AsRef<[f32]> + Sync>(
        &self,
        updates: &[U],
        noise: StreamName,
        decoded: &mut [f32],
    ) -> Result<(), UplinkError> {
        let parameters = updates::check_shape(updates, self.amplitudes.len())?;
        require_count("places for the decoded parameters", parameters, decoded.len())?;
        self.check_noise_suffices(parameters)?;
        let kernel = Kernel::new(self, noise.normals());
        updates::decode_in_tasks(updates, decoded, |rows, first, decoded| {
            pulp::Arch::new().dispatch(Task { kernel: &kernel, rows, first, decoded })
        })
    }

    fn check_noise_suffices(&self, parameters: usize) -> Result<(), UplinkError> {
        let tiles = (parameters.div_ceil(TILE) as u64).checked_mul(self.length as u64);
        match tiles.is_some_and(|tiles| tiles <= NormalField::TILES) {
            true => Ok(()),
            false => Err(UplinkError::TooManyChips {
                parameters,
                length: self.length,
                most: NormalField::TILES * TILE as u64,
            }),
        }
    }
}

/// The link in single precision, laid out for one pass over the parameters.
struct Kernel<'a> {
    link: &'a ChipLink,
    /// `h_k`, for Walsh sequences times `1/√L`.
    amplitudes: Vec<f32>,
    /// `a_k[l]·h_k` at `[l·K + k]`, for sequences that are not Walsh.
    mixing: Vec<f32>,
    projector: Vec<f32>,
    chip_noise_std: f32,
    noise: NormalField,
}

/// The part of a kernel's work that one thread does in one go, compiled for every kind of vector unit.
struct Task<'a> {
    kernel: &'a Kernel<'a>,
    rows: &'a [&'a [f32]],
    first: usize,
    decoded: &'a mut [f32],
}

impl pulp::WithSimd for Task<'_> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> bool {
        let mut air = vec![0.0; self.kernel.link.length * TILE];
        self.kernel.carry(self.rows, self.first, &mut air, self.decoded);
        updates::all_finite(self.decoded)
    }
}

impl<'a> Kernel<'a> {
    fn new(link: &'a ChipLink, noise: NormalField) -> Self {
        let scale = 1.0 / (link.length as f64).sqrt();
        let mixing = match &link.signatures {
            Signatures::Walsh(_) => Vec::new(),
            Signatures::Dense(sequences) => (0..link.length)
                .flat_map(|chip| {
                    let clients = sequences.iter().zip(&link.amplitudes);
                    clients.map(move |(sequence, h)| (sequence[chip] * h) as f32)
                })
                .collect(),
        };
        Self {
            link,
            amplitudes: link.amplitudes.iter().map(|h| (h * scale) as f32).collect(),
            mixing,
            projector: link.projector.iter().map(|&v| v as f32).collect(),
            chip_noise_std: link.chip_noise_std as f32,
            noise,
        }
    }

    /// Carries the parameters from `first` on, a tile of them at a time; `air` has room for `L` chips of each.
    #[inline(always)]
    fn carry(&self, rows: &[&[f32]], first: usize, air: &mut [f32], decoded: &mut [f32]) {
        let first_tile = first / TILE;
        for (offset, decoded) in decoded.chunks_mut(TILE).enumerate() {
            let at = offset * TILE;
            let symbols = |client: usize| &rows[client][at..at + decoded.len()];
            match &self.link.signatures {
                Signatures::Walsh(sequences) => self.spread_walsh(sequences, symbols, air),
                Signatures::Dense(_) => self.spread_dense(rows.len(), symbols, air),
            }
            let sum = self.receive(air, (first_tile + offset) as u64);
            decoded.copy_from_slice(&sum[..decoded.len()]);
        }
    }

    /// Step 3, without the noise: row `l` of `air` becomes `Σ_k a_k[l] h_k x_k`.
    #[inline(always)]
    fn spread_walsh<'x>(&self, sequences: &[usize], symbols: impl Fn(usize) -> &'x [f32], air: &mut [f32]) {
        air.fill(0.0);
        for (client, (&sequence, &h)) in sequences.iter().zip(&self.amplitudes).enumerate() {
            let row = &mut air[sequence * TILE..(sequence + 1) * TILE];
            for (sent, &x) in row.iter_mut().zip(symbols(client)) {
                *sent = h * x;
            }
        }
        walsh::transform_rows(air, TILE);
    }

    #[inline(always)]
    fn spread_dense<'x>(&self, clients: usize, symbols: impl Fn(usize) -> &'x [f32], air: &mut [f32]) {
        let (rows, _) = air.as_chunks_mut::<TILE>();
        for (row, mixing) in rows.iter_mut().zip(self.mixing.chunks_exact(clients)) {
            let mut sum = [0.0; TILE];
            for (client, &a_h) in mixing.iter().enumerate() {
                for (sum, &x) in sum.iter_mut().zip(symbols(client)) {
                    *sum = a_h.mul_add(x, *sum);
                }
            }
            *row = sum;
        }
    }

    /// Step 4: adds the receiver's noise to every chip and projects on `v`.
    #[inline(always)]
    fn receive(&self, air: &[f32], tile: u64) -> Tile {
        let (rows, _) = air.as_chunks::<TILE>();
        let first_row = tile * rows.len() as u64;
        let mut sum = [0.0; TILE];
        for (chip, (row, &v)) in rows.iter().zip(&self.projector).enumerate() {
            let noise = match self.chip_noise_std == 0.0 {
                true => [0.0; TILE],
                false => tile_of_normals(&self.noise, first_row + chip as u64),
            };
            for ((sum, &sent), &normal) in sum.iter_mut().zip(row).zip(&noise) {
                let received = self.chip_noise_std.mul_add(normal, sent);
                *sum = v.mul_add(received, *sum);
            }
        }
        sum
    }
}
