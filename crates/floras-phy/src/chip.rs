//! The chip level: what is really on the air, `L` chips for every parameter.
//!
//! A [`ChipLink`] is a round after the pilot: everybody's sequence and received amplitude, and the base station's
//! projector. For each parameter `i` the air carries, and the base station decodes,
//!
//! ```text
//! y_i = Σ_k a_k h_k x_k[i] + n_i,      x̃_i = vᵀ y_i          (paper, section IV-A, steps 3 and 4)
//! ```
//!
//! The simulation works on 128 parameters at a time, so that its memory does not grow with `L·d`. It is the ground
//! truth that the symbol level ([`crate::EffectiveChannel`]) is checked against.

use std::ops::Range;

use crate::effective::EffectiveChannel;
use crate::error::{UplinkError, require, require_count};
use crate::random::{NormalField, StreamName, TILE, Tile, tile_of_normals};
use crate::sequences::{Family, SequenceSet};
use crate::{updates, walsh};

/// Longest sequence: a thread holds `L` chips of 128 parameters, 512 MiB at this length.
const MOST_LENGTH: usize = 1 << 20;

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
        self.check_size(parameters)?;
        let kernel = Kernel::new(self, noise.normals());
        updates::decode_in_tasks(updates, decoded, |rows, first, decoded| {
            pulp::Arch::new().dispatch(Task { kernel: &kernel, rows, first, decoded })
        })
    }

    fn check_size(&self, parameters: usize) -> Result<(), UplinkError> {
        let length = self.length;
        let tiles = (parameters.div_ceil(TILE) as u64).checked_mul(length as u64);
        match length <= MOST_LENGTH && tiles.is_some_and(|tiles| tiles <= NormalField::TILES) {
            true => Ok(()),
            false => {
                let most = NormalField::TILES * TILE as u64;
                Err(UplinkError::TooManyChips { parameters, length, most_length: MOST_LENGTH, most })
            }
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
        self.kernel.carry(self.rows, self.first, self.decoded);
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

    /// Carries the parameters from `first` on, a tile of them at a time.
    #[inline(always)]
    fn carry(&self, rows: &[&[f32]], first: usize, decoded: &mut [f32]) {
        let first_tile = first / TILE;
        let mut air = vec![[0.0; TILE]; self.link.length];
        let mut packed = match self.link.signatures {
            Signatures::Walsh(_) => Vec::new(),
            Signatures::Dense(_) => vec![[0.0; TILE]; rows.len()],
        };
        for (offset, decoded) in decoded.chunks_mut(TILE).enumerate() {
            let columns = offset * TILE..offset * TILE + decoded.len();
            match &self.link.signatures {
                Signatures::Walsh(sequences) => self.spread_walsh(sequences, rows, columns, &mut air),
                Signatures::Dense(_) => self.spread_dense(rows, columns, &mut packed, &mut air),
            }
            let sum = self.receive(&air, (first_tile + offset) as u64);
            decoded.copy_from_slice(&sum[..decoded.len()]);
        }
    }

    /// Step 3, without the noise: row `l` of `air` becomes `Σ_k a_k[l] h_k x_k`.
    #[inline(always)]
    fn spread_walsh(&self, sequences: &[usize], rows: &[&[f32]], columns: Range<usize>, air: &mut [Tile]) {
        air.fill([0.0; TILE]);
        for ((&sequence, &h), row) in sequences.iter().zip(&self.amplitudes).zip(rows) {
            for (sent, &x) in air[sequence].iter_mut().zip(&row[columns.clone()]) {
                *sent = h * x;
            }
        }
        walsh::transform_rows(air.as_flattened_mut(), TILE);
    }

    #[inline(always)]
    fn spread_dense(&self, rows: &[&[f32]], columns: Range<usize>, packed: &mut [Tile], air: &mut [Tile]) {
        for (packed, row) in packed.iter_mut().zip(rows) {
            packed[..columns.len()].copy_from_slice(&row[columns.clone()]);
        }
        let packed: Vec<&[f32]> = packed.iter().map(|symbols| &symbols[..]).collect();
        for (on_air, mixing) in air.iter_mut().zip(self.mixing.chunks_exact(rows.len())) {
            on_air.fill(0.0);
            updates::add_weighted(mixing, &packed, 0, on_air);
        }
    }

    /// Step 4: adds the receiver's noise to every chip and projects on `v`.
    #[inline(always)]
    fn receive(&self, air: &[Tile], tile: u64) -> Tile {
        let first_row = tile * air.len() as u64;
        let mut sum = [0.0; TILE];
        for (chip, (row, &v)) in air.iter().zip(&self.projector).enumerate() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    const NOISE: StreamName = StreamName::new(6, Purpose::PAYLOAD_NOISE);

    fn updates(clients: u32, parameters: usize) -> Vec<Vec<f32>> {
        let made_up = StreamName::new(2, Purpose::BENCHMARK);
        (0..clients)
            .map(|client| {
                let mut update = vec![0.0; parameters];
                made_up.client(client).normals().fill(0, &mut update);
                update
            })
            .collect()
    }

    fn link(set: &SequenceSet) -> ChipLink {
        let projector = (0..set.length()).map(|chip| 0.3 * chip as f64 - 1.0).collect();
        ChipLink::new(set, &[4, 0, 2], vec![0.5, -1.5, 2.0], projector, 0.7).unwrap()
    }

    fn every_family() -> [SequenceSet; 3] {
        [
            SequenceSet::walsh(5, 8).unwrap(),
            SequenceSet::orthonormal(5, 7).unwrap(),
            SequenceSet::gaussian(5, 3, 1).unwrap(),
        ]
    }

    /// Steps 3 and 4 as printed, in double precision and without any blocking.
    #[test]
    fn the_kernel_is_the_formula_chip_by_chip() {
        let parameters = 150;
        let updates = updates(3, parameters);
        for set in every_family() {
            let (link, length) = (link(&set), set.length());
            let decoded = link.transmit(&updates, NOISE).unwrap();
            let mut noise = vec![0.0; parameters.div_ceil(TILE) * TILE * length];
            NOISE.normals().fill(0, &mut noise);
            for i in 0..parameters {
                let chip_of = |l: usize| -> f64 {
                    let sent: f64 = [4, 0, 2]
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

    #[test]
    fn tasks_read_the_noise_where_they_stand() {
        let parameters = 2 * updates::TASK + 99;
        let set = SequenceSet::walsh(1, 2).unwrap();
        let link = ChipLink::new(&set, &[0], vec![1.0], vec![1.0, 0.0], 1.0).unwrap();
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
        let updates = updates(3, parameters);
        let silence = vec![vec![0.0; parameters]; 3];
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

    #[test]
    fn links_that_cannot_be_are_refused() {
        let set = SequenceSet::walsh(2, 4).unwrap();
        let new = |assigned: &[usize], amplitude: f64, chips: usize, noise_std: f64| {
            ChipLink::new(&set, assigned, vec![amplitude], vec![1.0; chips], noise_std)
        };
        assert_eq!(ChipLink::new(&set, &[], vec![], vec![1.0; 4], 0.0), Err(UplinkError::NoClients));
        assert!(matches!(
            new(&[0, 1], 1.0, 4, 0.0),
            Err(UplinkError::WrongCount { expected: 2, found: 1, .. })
        ));
        assert!(matches!(new(&[0], 1.0, 3, 0.0), Err(UplinkError::WrongCount { expected: 4, found: 3, .. })));
        assert!(matches!(new(&[2], 1.0, 4, 0.0), Err(UplinkError::OutOfRange { .. })));
        assert!(matches!(new(&[0], f64::NAN, 4, 0.0), Err(UplinkError::OutOfRange { .. })));
        assert!(matches!(new(&[0], 1.0, 4, -1.0), Err(UplinkError::OutOfRange { .. })));
        let link = new(&[0], 1.0, 4, 0.0).unwrap();
        assert!(matches!(
            link.transmit(&[[1.0, f32::NAN]], NOISE),
            Err(UplinkError::NotFinite { index: 0, parameter: 1, .. })
        ));
        assert!(matches!(link.check_size(1 << 41), Err(UplinkError::TooManyChips { .. })));
    }
}
