//! Spreading sequences: the public set `A = {a_1, …, a_N}` of length `L`.
//!
//! | family | `a_k[l]` | needs | `aᵢᵀaⱼ` |
//! |---|---|---|---|
//! | [`Family::Walsh`] | `(−1)^{popcount(k & l)}/√L` | `L` a power of two, `N ≤ L` | `δᵢⱼ` |
//! | [`Family::Orthonormal`] | `√(2/L)·cos(πk(2l+1)/(2L))`, and `1/√L` for `k = 0` | `N ≤ L` | `δᵢⱼ` |
//! | [`Family::ZadoffChu`] | real and imaginary parts of `e^{−iπm(m+1)/P}/√P`, `m = l + k`, `P = L/2` | `P` odd, `N ≤ P` | `δᵢⱼ` |
//! | [`Family::Gaussian`] | `N(0, 1/L)` | – | `δᵢⱼ` in expectation |
//! | [`Family::Gold`] | `±1/√L` | `L` of 31, 63, 127, 511, 1023; `N ≤ L + 2` | `−1/L`, or one of two larger values |
//! | a file | its row `k`, scaled to unit energy | `N` rows of `L` numbers, `N·L ≤ 2²²` | those of the file |
//!
//! The orthonormal family is the basis of the cosine transform (DCT-II), which exists for every length. The Gaussian family
//! serves more clients than chips (the paper's Remark 3, NOMA), at the price of interference. Walsh sets spread and despread
//! by the fast Walsh–Hadamard transform. A set from a file is orthonormal if no inner product of two of its sequences
//! exceeds 1e-9 in magnitude; otherwise its sequences overlap.

mod gold;
mod matrix;
mod zadoff_chu;

use std::f64::consts::PI;
use std::fmt;
use std::sync::Arc;

use floras_core::random::{Purpose, StreamName, TILE};
use floras_core::{Choice, Family, SequenceFile, SequenceSource};

use crate::error::{UplinkError, require_count};
use crate::walsh;

/// Maximum number of sequences, and of chips in a sequence.
const MAX_SIZE: usize = 1 << 24;
/// Maximum number of chips in a set that is kept in memory (1 GiB, and as much again while it is drawn).
const MAX_DRAWN: usize = 1 << 27;
/// Maximum number of chips in a set that is despread without a fast transform: some seconds of work.
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
    /// `None` for a set from a file.
    family: Option<Family>,
    is_orthonormal: bool,
    chips: Chips,
}

#[derive(Clone, Debug, PartialEq)]
enum Chips {
    Walsh,
    /// `√(2/L)·cos(πj/(2L))` for `j = 0 … 4L − 1`.
    Cosines(Arc<[f64]>),
    /// The real and imaginary parts of one sequence; the others are its cyclic shifts.
    Shifts(Arc<[f64]>),
    /// The chips of all sequences, one sequence after the other.
    Stored(Arc<[f64]>),
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
        Ok(Self::of(Family::Walsh, count, length, Chips::Walsh))
    }

    /// `count` orthonormal sequences of any `length ≥ count`.
    pub fn orthonormal(count: usize, length: usize) -> Result<Self, UplinkError> {
        check_sizes(count, length)?;
        check_orthogonal(count, length)?;
        let scale = (2.0 / length as f64).sqrt();
        let angle = PI / (2 * length) as f64;
        let cosines = (0..4 * length).map(|j| scale * (angle * j as f64).cos()).collect();
        Ok(Self::of(Family::Orthonormal, count, length, Chips::Cosines(cosines)))
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
        Ok(Self::of(Family::Gaussian, count, length, Chips::Stored(drawn.into())))
    }

    /// `count` Gold sequences of a `length` of 31, 63, 127, 511 or 1023, of which there are `length + 2`.
    pub fn gold(count: usize, length: usize) -> Result<Self, UplinkError> {
        check_sizes(count, length)?;
        let max = length + 2;
        let chips = gold::chips(count.min(max), length).ok_or_else(|| UplinkError::SequenceLength {
            family: Family::Gold.label(),
            allowed: gold::LENGTHS,
            length,
        })?;
        check_count(Family::Gold, count, length, max)?;
        Ok(Self::of(Family::Gold, count, length, Chips::Stored(chips.into())))
    }

    /// `count` Zadoff–Chu sequences of `length` real chips: `P = length/2` in-phase chips and as many quadrature chips, with
    /// `P` odd and `count ≤ P`.
    pub fn zadoff_chu(count: usize, length: usize) -> Result<Self, UplinkError> {
        check_sizes(count, length)?;
        let period = zadoff_chu::period(length).ok_or_else(|| UplinkError::SequenceLength {
            family: Family::ZadoffChu.label(),
            allowed: zadoff_chu::LENGTHS,
            length,
        })?;
        check_count(Family::ZadoffChu, count, length, period)?;
        let parts = zadoff_chu::parts(period).into();
        Ok(Self::of(Family::ZadoffChu, count, length, Chips::Shifts(parts)))
    }

    /// The first `count` sequences of a file with `length` numbers in every line. Each is scaled to unit energy.
    pub fn from_file(file: &SequenceFile, count: usize, length: usize) -> Result<Self, UplinkError> {
        check_sizes(count, length)?;
        if count * length > matrix::MAX_CHIPS {
            let (sequences, max) = (count, matrix::MAX_CHIPS);
            return Err(UplinkError::SequenceFileTooLarge { sequences, length, max });
        }
        let chips = matrix::read(file, count, length)?;
        let is_orthonormal = matrix::is_orthonormal(&chips, length);
        Ok(Self { count, length, family: None, is_orthonormal, chips: Chips::Stored(chips.into()) })
    }

    /// A set of the given family; `seed` matters for Gaussian sets only.
    pub fn new(family: Family, count: usize, length: usize, seed: u64) -> Result<Self, UplinkError> {
        match family {
            Family::Walsh => Self::walsh(count, length),
            Family::Orthonormal => Self::orthonormal(count, length),
            Family::Gaussian => Self::gaussian(count, length, seed),
            Family::Gold => Self::gold(count, length),
            Family::ZadoffChu => Self::zadoff_chu(count, length),
        }
    }

    /// A set of the given family, or of the sequences in a file.
    pub fn open(
        source: &SequenceSource,
        count: usize,
        length: usize,
        seed: u64,
    ) -> Result<Self, UplinkError> {
        match source {
            SequenceSource::Family(family) => Self::new(*family, count, length, seed),
            SequenceSource::File(file) => Self::from_file(file, count, length),
        }
    }

    /// Maximum `N` for sequences of `length` chips; for a file, its number of lines.
    pub fn max_count(source: &SequenceSource, length: usize) -> Result<usize, UplinkError> {
        Ok(match source {
            SequenceSource::Family(Family::Walsh | Family::Orthonormal) => length,
            SequenceSource::Family(Family::Gaussian) => MAX_SIZE,
            SequenceSource::Family(Family::Gold) => length + 2,
            SequenceSource::Family(Family::ZadoffChu) => length / 2,
            SequenceSource::File(file) => matrix::rows(file)?,
        })
    }

    fn of(family: Family, count: usize, length: usize, chips: Chips) -> Self {
        Self { count, length, family: Some(family), is_orthonormal: family.is_orthonormal(), chips }
    }

    /// `N`, the number of sequences.
    pub fn count(&self) -> usize {
        self.count
    }

    /// `L`, the number of chips in a sequence.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The family that the set belongs to; `None` for a set from a file.
    pub fn family(&self) -> Option<Family> {
        self.family
    }

    /// Whether the sequences are orthonormal; those of a file within 1e-9.
    pub fn is_orthonormal(&self) -> bool {
        self.is_orthonormal
    }

    /// `Ok` if a pilot can be despread chip by chip in reasonable time.
    pub(crate) fn check_transform(&self) -> Result<(), UplinkError> {
        let (sequences, length) = (self.count, self.length);
        if !matches!(self.chips, Chips::Walsh) && sequences * length > MAX_TRANSFORMED {
            return Err(UplinkError::TransformTooLong { sequences, length, max: MAX_TRANSFORMED });
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
            Chips::Shifts(parts) => zadoff_chu::chip(parts, sequence, chip),
            Chips::Stored(chips) => chips[sequence * self.length + chip],
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
        Self::of(Family::Walsh, 25, 32, Chips::Walsh)
    }
}

impl fmt::Display for SequenceSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.family {
            Some(family) => {
                write!(f, "{} {} sequences of {} chips", self.count, family.label(), self.length)
            }
            None => write!(f, "{} sequences of {} chips from a file", self.count, self.length),
        }
    }
}

/// `Ok` if a set of this size can be simulated.
pub(crate) fn check_sizes(sequences: usize, length: usize) -> Result<(), UplinkError> {
    if sequences == 0 || length == 0 {
        return Err(UplinkError::EmptySequenceSet { sequences, length });
    }
    if sequences.max(length) > MAX_SIZE { Err(too_large(sequences, length)) } else { Ok(()) }
}

fn too_large(sequences: usize, length: usize) -> UplinkError {
    UplinkError::SequenceSetTooLarge { sequences, length, max: MAX_SIZE, max_drawn: MAX_DRAWN }
}

fn check_orthogonal(sequences: usize, length: usize) -> Result<(), UplinkError> {
    if length < sequences { Err(UplinkError::SequencesTooShort { sequences, length }) } else { Ok(()) }
}

fn check_count(family: Family, sequences: usize, length: usize, max: usize) -> Result<(), UplinkError> {
    if sequences <= max {
        return Ok(());
    }
    Err(UplinkError::SequencesTooMany { family: family.label(), sequences, length, max })
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
        let shifts = (0_usize..20).prop_flat_map(|half| (1..=2 * half + 1, Just(4 * half + 2)));
        prop_oneof![
            shifts.prop_map(|(count, length)| SequenceSet::zadoff_chu(count, length).unwrap()),
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
    fn gaussian_sequences_have_unit_energy_without_mean_correlation() {
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
    fn each_invalid_size_has_its_own_message() {
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

    fn message(result: Result<SequenceSet, UplinkError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn lengths_and_counts_of_a_family_are_named() {
        assert_eq!(
            message(SequenceSet::gold(20, 32)),
            "Gold sequences have 31, 63, 127, 511 or 1023 chips (L), not 32"
        );
        assert_eq!(
            message(SequenceSet::gold(34, 31)),
            "there are 33 Gold sequences of 31 chips (L), too few for N = 34"
        );
        assert_eq!(
            message(SequenceSet::zadoff_chu(3, 12)),
            "Zadoff–Chu sequences have twice an odd number of chips (L), not 12"
        );
        assert_eq!(
            message(SequenceSet::zadoff_chu(8, 14)),
            "there are 7 Zadoff–Chu sequences of 14 chips (L), too few for N = 8"
        );
        for (family, length) in [(Family::Walsh, 32), (Family::Gold, 31), (Family::ZadoffChu, 62)] {
            let max = SequenceSet::max_count(&family.into(), length).unwrap();
            assert!(SequenceSet::new(family, max, length, 1).is_ok());
            assert!(SequenceSet::new(family, max + 1, length, 1).is_err());
        }
    }

    #[test]
    fn gold_sequences_have_unit_energy_and_overlap() {
        let set = SequenceSet::gold(33, 31).unwrap();
        assert!(!set.is_orthonormal());
        for k in 0..33 {
            let sequence = set.sequence(k).unwrap();
            assert!((inner(&sequence, &sequence) - 1.0).abs() < 1e-12);
        }
        assert!((inner(&set.sequence(2).unwrap(), &set.sequence(3).unwrap()) + 1.0 / 31.0).abs() < 1e-12);
    }

    /// A set from a file with this text.
    fn from_text(text: &str, count: usize, length: usize) -> Result<SequenceSet, UplinkError> {
        let file = SequenceFile::new(write_temporary(text));
        let set = SequenceSet::from_file(&file, count, length);
        std::fs::remove_file(file.path()).unwrap();
        set
    }

    fn write_temporary(text: &str) -> String {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("floras-sequences-{}-{number}.csv", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn text_of(set: &SequenceSet, scale: f64) -> String {
        let line = |k: usize| {
            let chips = set.sequence(k).unwrap();
            chips.iter().map(|chip| (chip * scale).to_string()).collect::<Vec<_>>().join(",") + "\n"
        };
        (0..set.count()).map(line).collect()
    }

    #[test]
    fn a_hadamard_file_equals_the_walsh_set() {
        let walsh = SequenceSet::walsh(12, 16).unwrap();
        for scale in [1.0, 4.0, 1e-200, 1e200] {
            let set = from_text(&text_of(&walsh, scale), 10, 16).unwrap();
            assert!(set.is_orthonormal() && set.family().is_none());
            for k in 0..10 {
                assert_eq!(set.sequence(k), walsh.sequence(k), "scale {scale}");
            }
        }
    }

    #[test]
    fn the_matrix_decides_whether_a_file_is_orthonormal() {
        for (set, expected) in [
            (SequenceSet::orthonormal(9, 9).unwrap(), true),
            (SequenceSet::zadoff_chu(9, 18).unwrap(), true),
            (SequenceSet::gold(9, 31).unwrap(), false),
            (SequenceSet::gaussian(9, 40, 1).unwrap(), false),
        ] {
            assert_eq!(from_text(&text_of(&set, 3.0), 9, set.length()).unwrap().is_orthonormal(), expected);
        }
        // Just below and just above the tolerance of 1e-9.
        for (overlap, expected) in [(0.9e-9, true), (1.1e-9, false)] {
            let text = format!("1,0,0\n0,1,0\n{overlap:e},0,1\n");
            assert_eq!(from_text(&text, 3, 3).unwrap().is_orthonormal(), expected);
            assert!(from_text(&text, 2, 3).unwrap().is_orthonormal());
        }
        assert!(!from_text("1,0\n0,1\n1,1\n", 3, 2).unwrap().is_orthonormal());
    }

    #[test]
    fn wrong_files_are_refused_with_line_and_reason() {
        for (text, line, reason) in [
            ("1,0,0\n0,1\n", 2, "2 columns instead of 3"),
            ("1,0,0,0\n0,1,0\n", 1, "4 columns instead of 3"),
            ("a,b,c\n1,0,0\n", 1, "'a' is not a finite number"),
            ("1,0,0\n\n0,inf,1\n", 3, "'inf' is not a finite number"),
            ("1,0,0\n0,NaN,1\n", 2, "'NaN' is not a finite number"),
            ("1,0,0\n0,-0,0\n", 2, "every chip is zero"),
        ] {
            let error = message(from_text(text, 2, 3));
            assert!(error.starts_with(&format!("line {line} of the sequence file ")), "{error}");
            let end =
                format!(": {reason}; expected one sequence per line, 3 numbers (L) separated by commas");
            assert!(error.ends_with(&end), "{error}");
        }
        for (text, rows) in [("", 0), ("1,0,0\n", 1)] {
            let error = message(from_text(text, 2, 3));
            assert!(error.ends_with(&format!(" has {rows} lines, too few for 2 sequences (N)")), "{error}");
        }
        let missing = SequenceFile::new("no-such-codes.csv");
        let error = message(SequenceSet::from_file(&missing, 2, 3));
        assert!(error.starts_with("cannot read the sequence file no-such-codes.csv: "), "{error}");
        // The size is checked before the file is read.
        let error = message(SequenceSet::from_file(&missing, 1 << 12, 1 << 11));
        assert!(error.ends_with("the limit of a sequence file: N·L may be at most 4194304"), "{error}");
    }

    #[test]
    fn wrong_symbol_or_chip_counts_are_refused() {
        let set = SequenceSet::walsh(3, 4).unwrap();
        assert!(matches!(set.spread(&[1.0; 4]), Err(UplinkError::WrongCount { expected: 3, found: 4, .. })));
        assert!(matches!(
            set.despread(&[1.0; 3]),
            Err(UplinkError::WrongCount { expected: 4, found: 3, .. })
        ));
        assert_eq!(set.sequence(3), None);
    }
}
