//! Spreading sequences: the set `A = {a_1, …, a_N}` of length `L` that everyone knows.
//!
//! | family | `a_k[l]` | needs | `aᵢᵀaⱼ` |
//! |---|---|---|---|
//! | [`Family::Walsh`] | `(−1)^{popcount(k & l)}/√L` | `L` a power of two, `N ≤ L` | `δᵢⱼ` |
//! | [`Family::Orthonormal`] | `√(2/L)·cos(πk(2l+1)/(2L))`, and `1/√L` for `k = 0` | `N ≤ L` | `δᵢⱼ` |
//! | [`Family::Gaussian`] | `N(0, 1/L)` | nothing | `δᵢⱼ` in expectation |
//!
//! The orthonormal family is the basis of the cosine transform (DCT-II), which exists for every length. The Gaussian
//! family serves more clients than chips (the paper's Remark 3, NOMA), at the price of interference.
//! Walsh sets spread and despread by the fast Walsh–Hadamard transform.

use std::f64::consts::PI;
use std::fmt;
use std::sync::Arc;

use floras_core::random::{Purpose, StreamName, TILE};
use floras_core::{Choice, Family};

use crate::error::{UplinkError, require_count};
use crate::walsh;

/// Largest number of sequences, and of chips in a sequence.
const MOST: usize = 1 << 24;
/// Largest number of chips in a set that is kept in memory (1 GiB, and as much again while it is drawn).
const MAX_DRAWN: usize = 1 << 27;
/// Largest number of chips in a set that is despread without a fast transform: some seconds of work.
const MAX_TRANSFORMED: usize = 1 << 32;

/// A set of `N` spreading sequences of length `L`.
///
/// ```
/// use floras_phy::SequenceSet;
///
/// let set = SequenceSet::walsh(5, 8)?;
/// let chips = set.spread(&[0.0, 0.0, 3.0, 0.0, -1.0])?;
/// let symbols = set.despread(&chips)?;
/// assert!((symbols[2] - 3.0).abs() < 1e-12 && symbols[3].abs() < 1e-12);
/// # Ok::<(), floras_phy::UplinkError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceSet {
    count: usize,
    length: usize,
    chips: Chips,
}

#[derive(Clone, Debug, PartialEq)]
enum Chips {
    Walsh,
    /// `√(2/L)·cos(πj/(2L))` for `j = 0 … 4L − 1`.
    Cosines(Arc<[f64]>),
    /// Sequence after sequence.
    Drawn(Arc<[f64]>),
}

impl SequenceSet {
    /// `count` Walsh sequences of a `length` that is a power of two.
    pub fn walsh(count: usize, length: usize) -> Result<Self, UplinkError> {
        check_sizes(count, length)?;
        if !length.is_power_of_two() {
            let next = length.next_power_of_two();
            return Err(UplinkError::LengthNotPowerOfTwo { length, next });
        }
        check_orthogonal(count, length)?;
        Ok(Self { count, length, chips: Chips::Walsh })
    }

    /// `count` orthonormal sequences of any `length ≥ count`.
    pub fn orthonormal(count: usize, length: usize) -> Result<Self, UplinkError> {
        check_sizes(count, length)?;
        check_orthogonal(count, length)?;
        let scale = (2.0 / length as f64).sqrt();
        let angle = PI / (2 * length) as f64;
        let cosines = (0..4 * length).map(|j| scale * (angle * j as f64).cos()).collect();
        Ok(Self { count, length, chips: Chips::Cosines(cosines) })
    }

    /// `count` Gaussian sequences of any `length`, drawn once from `seed`.
    pub fn gaussian(count: usize, length: usize, seed: u64) -> Result<Self, UplinkError> {
        check_sizes(count, length)?;
        let chips = count * length;
        if chips > MAX_DRAWN {
            return Err(too_large(count, length));
        }
        let field = StreamName::new(seed, Purpose::SEQUENCES).normals();
        let scale = 1.0 / (length as f64).sqrt();
        let mut drawn = vec![0.0; chips];
        let mut normals = [0.0; TILE];
        for (tile, drawn) in drawn.chunks_mut(TILE).enumerate() {
            field.fill(tile as u64, &mut normals);
            for (chip, &normal) in drawn.iter_mut().zip(&normals) {
                *chip = f64::from(normal) * scale;
            }
        }
        Ok(Self { count, length, chips: Chips::Drawn(drawn.into()) })
    }

    /// A set of the given family; `seed` matters for Gaussian sets only.
    pub fn new(family: Family, count: usize, length: usize, seed: u64) -> Result<Self, UplinkError> {
        match family {
            Family::Walsh => Self::walsh(count, length),
            Family::Orthonormal => Self::orthonormal(count, length),
            Family::Gaussian => Self::gaussian(count, length, seed),
        }
    }

    /// `N`, the number of sequences.
    pub fn count(&self) -> usize {
        self.count
    }

    /// `L`, the number of chips in a sequence.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The family that the set belongs to.
    pub fn family(&self) -> Family {
        match self.chips {
            Chips::Walsh => Family::Walsh,
            Chips::Cosines(_) => Family::Orthonormal,
            Chips::Drawn(_) => Family::Gaussian,
        }
    }

    /// Whether different sequences are exactly orthogonal.
    pub fn is_orthonormal(&self) -> bool {
        self.family() != Family::Gaussian
    }

    /// `Ok` if a pilot can be despread chip by chip in reasonable time.
    pub(crate) fn check_transform(&self) -> Result<(), UplinkError> {
        let (sequences, length) = (self.count, self.length);
        if self.family() != Family::Walsh && sequences * length > MAX_TRANSFORMED {
            return Err(UplinkError::TransformTooLong { sequences, length, most: MAX_TRANSFORMED });
        }
        Ok(())
    }

    /// `Ok` if at least one client has a sequence, and every client one of this set.
    pub(crate) fn check_assigned(&self, assigned: &[usize]) -> Result<(), UplinkError> {
        if assigned.is_empty() {
            return Err(UplinkError::NoClients);
        }
        match assigned.iter().find(|&&sequence| sequence >= self.count) {
            Some(&sequence) => Err(UplinkError::NoSuchSequence { sequence, sequences: self.count }),
            None => Ok(()),
        }
    }

    /// `a_k[l]`, with `sequence = k` and `chip = l` counted from 0 and within the set.
    pub(crate) fn chip(&self, sequence: usize, chip: usize) -> f64 {
        match &self.chips {
            Chips::Walsh => walsh::sign(sequence, chip) / (self.length as f64).sqrt(),
            Chips::Cosines(_) if sequence == 0 => 1.0 / (self.length as f64).sqrt(),
            Chips::Cosines(cosines) => cosines[(2 * chip + 1) * sequence % cosines.len()],
            Chips::Drawn(chips) => chips[sequence * self.length + chip],
        }
    }

    /// The chips of one sequence, counted from 0; `None` if the set has no such sequence.
    pub fn sequence(&self, sequence: usize) -> Option<Vec<f64>> {
        (sequence < self.count).then(|| (0..self.length).map(|chip| self.chip(sequence, chip)).collect())
    }

    /// `Σ_k symbols[k]·a_k`: the `L` chips on the air when sequence `k` carries `symbols[k]`, for `N` symbols.
    pub fn spread(&self, symbols: &[f64]) -> Result<Vec<f64>, UplinkError> {
        require_count("symbols, one for each sequence", self.count, symbols.len())?;
        if let Chips::Walsh = self.chips {
            let mut chips = symbols.to_vec();
            chips.resize(self.length, 0.0);
            return Ok(self.walsh_transform(chips));
        }
        let mut chips = vec![0.0; self.length];
        for (sequence, &symbol) in symbols.iter().enumerate().filter(|(_, symbol)| **symbol != 0.0) {
            for (chip, on_air) in chips.iter_mut().enumerate() {
                *on_air += symbol * self.chip(sequence, chip);
            }
        }
        Ok(chips)
    }

    /// `a_kᵀ·chips` for every sequence `k`, from `L` chips.
    pub fn despread(&self, chips: &[f64]) -> Result<Vec<f64>, UplinkError> {
        require_count("chips, as long as a sequence", self.length, chips.len())?;
        if let Chips::Walsh = self.chips {
            let mut symbols = self.walsh_transform(chips.to_vec());
            symbols.truncate(self.count);
            return Ok(symbols);
        }
        let correlate = |sequence| {
            let terms = chips.iter().enumerate();
            terms.map(|(chip, &received)| received * self.chip(sequence, chip)).sum()
        };
        Ok((0..self.count).map(correlate).collect())
    }

    fn walsh_transform(&self, mut values: Vec<f64>) -> Vec<f64> {
        walsh::transform_rows(&mut values, 1);
        let scale = 1.0 / (self.length as f64).sqrt();
        values.iter_mut().for_each(|value| *value *= scale);
        values
    }
}

impl Default for SequenceSet {
    /// 25 Walsh sequences of 32 chips.
    fn default() -> Self {
        Self { count: 25, length: 32, chips: Chips::Walsh }
    }
}

impl fmt::Display for SequenceSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} sequences of {} chips", self.count, self.family().label(), self.length)
    }
}

/// `Ok` if a set of this size can be simulated.
pub(crate) fn check_sizes(sequences: usize, length: usize) -> Result<(), UplinkError> {
    if sequences == 0 || length == 0 {
        return Err(UplinkError::EmptySequenceSet { sequences, length });
    }
    if sequences.max(length) > MOST { Err(too_large(sequences, length)) } else { Ok(()) }
}

fn too_large(sequences: usize, length: usize) -> UplinkError {
    UplinkError::SequenceSetTooLarge { sequences, length, most: MOST, most_drawn: MAX_DRAWN }
}

fn check_orthogonal(sequences: usize, length: usize) -> Result<(), UplinkError> {
    if length < sequences { Err(UplinkError::SequencesTooShort { sequences, length }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn inner(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(x, y)| x * y).sum()
    }

    fn any_orthonormal_set() -> impl Strategy<Value = SequenceSet> {
        let walsh = (0_u32..7).prop_flat_map(|log| (1..=1_usize << log, Just(1 << log)));
        let cosine = (1_usize..70).prop_flat_map(|length| (1..=length, Just(length)));
        prop_oneof![
            walsh.prop_map(|(count, length)| SequenceSet::walsh(count, length).unwrap()),
            cosine.prop_map(|(count, length)| SequenceSet::orthonormal(count, length).unwrap()),
        ]
    }

    proptest! {
        #[test]
        fn orthonormal_sets_are_orthonormal(set in any_orthonormal_set()) {
            for i in 0..set.count() {
                for j in 0..set.count() {
                    let expected = f64::from(i == j);
                    prop_assert!((inner(&set.sequence(i).unwrap(), &set.sequence(j).unwrap()) - expected).abs() < 1e-12);
                }
            }
        }

        #[test]
        fn fast_spreading_is_the_weighted_sum_of_sequences(set in any_orthonormal_set(), seed in 0_u64..99) {
            let symbols: Vec<f64> = (0..set.count()).map(|k| ((k as u64 * 7 + seed) % 11) as f64 - 5.0).collect();
            let chips = set.spread(&symbols).unwrap();
            for (l, &on_air) in chips.iter().enumerate() {
                let direct: f64 = symbols.iter().enumerate().map(|(k, x)| x * set.chip(k, l)).sum();
                prop_assert!((on_air - direct).abs() < 1e-10);
            }
            for (k, back) in set.despread(&chips).unwrap().into_iter().enumerate() {
                prop_assert!((back - symbols[k]).abs() < 1e-10);
            }
        }
    }

    #[test]
    fn gaussian_sequences_have_unit_energy_and_no_correlation_on_average() {
        let (count, length) = (20_000, 20);
        let set = SequenceSet::gaussian(count, length, 4).unwrap();
        let sequences: Vec<Vec<f64>> = (0..count).map(|k| set.sequence(k).unwrap()).collect();
        let energy = sequences.iter().map(|a| inner(a, a)).sum::<f64>() / count as f64;
        // Energy: mean 1, standard error √(2/(L·N)) = 0.0022; five of those see a wrong L.
        assert!((energy - 1.0).abs() < 0.011, "{energy}");
        let products: Vec<f64> = sequences.windows(2).map(|pair| inner(&pair[0], &pair[1])).collect();
        let mean_square =
            products.iter().map(|product| product * product).sum::<f64>() / products.len() as f64;
        // E(aᵢᵀaⱼ)² = 1/L, with a relative standard error of √(2.3/N) = 0.011.
        assert!((mean_square * length as f64 - 1.0).abs() < 0.055, "{mean_square}");
        assert_ne!(set.sequence(0), SequenceSet::gaussian(count, length, 5).unwrap().sequence(0));
    }

    #[test]
    fn sizes_that_cannot_be_are_refused_each_in_its_own_words() {
        assert_eq!(SequenceSet::walsh(9, 8), Err(UplinkError::SequencesTooShort { sequences: 9, length: 8 }));
        assert_eq!(
            SequenceSet::orthonormal(9, 8),
            Err(UplinkError::SequencesTooShort { sequences: 9, length: 8 })
        );
        assert_eq!(SequenceSet::walsh(3, 12), Err(UplinkError::LengthNotPowerOfTwo { length: 12, next: 16 }));
        assert_eq!(
            SequenceSet::gaussian(0, 8, 1),
            Err(UplinkError::EmptySequenceSet { sequences: 0, length: 8 })
        );
        for (count, length) in [(usize::MAX, 3), (3, usize::MAX), (1 << 15, 1 << 15)] {
            let set = SequenceSet::gaussian(count, length, 1);
            assert!(matches!(set, Err(UplinkError::SequenceSetTooLarge { .. })));
        }
        assert!(SequenceSet::gaussian(9, 2, 1).is_ok());
    }

    #[test]
    fn a_wrong_number_of_symbols_or_chips_is_refused() {
        let set = SequenceSet::walsh(3, 4).unwrap();
        assert!(matches!(set.spread(&[1.0; 4]), Err(UplinkError::WrongCount { expected: 3, found: 4, .. })));
        assert!(matches!(
            set.despread(&[1.0; 3]),
            Err(UplinkError::WrongCount { expected: 4, found: 3, .. })
        ));
        assert_eq!(set.sequence(3), None);
    }
}
