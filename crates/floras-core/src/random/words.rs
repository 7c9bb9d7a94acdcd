//! Random words, 128 at a time, with random access: for draws that a loop over vector units takes, such as the rounding of updates.
//!
//! [`Stream`](super::Stream) computes one block of Philox after another. Here 32 blocks are computed together, which takes a fraction of
//! the time. Both have the blocks of the same name, in another order: a name is for one of them.

use super::StreamName;
use super::normal::{LANES, TILE, blocks_of_tile};

/// A stream of independent 32-bit words with random access by index.
///
/// ```
/// use floras_core::random::{Purpose, StreamName, TILE};
///
/// let field = StreamName::new(1, Purpose::QUANTISATION).words();
/// let mut all = vec![0; 1000];
/// field.fill(0, &mut all);
/// let mut from_the_third_tile = vec![0; 100];
/// field.fill(3, &mut from_the_third_tile);
/// assert_eq!(all[3 * TILE..3 * TILE + 100], from_the_third_tile);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordField {
    name: StreamName,
}

impl WordField {
    pub(super) const fn new(name: StreamName) -> Self {
        Self { name }
    }

    /// Fills `out` with the words from index `TILE * first_tile`, using the best instructions of this processor. The field repeats after
    /// 2³⁵ tiles.
    pub fn fill(&self, first_tile: u64, out: &mut [u32]) {
        pulp::Arch::new().dispatch(Fill { field: self, first_tile, out });
    }
}

/// A call of [`WordField::fill`]. A closure would do, but the compiler does not inline it into `pulp`'s dispatch.
struct Fill<'a> {
    field: &'a WordField,
    first_tile: u64,
    out: &'a mut [u32],
}

impl pulp::WithSimd for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        for (offset, part) in self.out.chunks_mut(TILE).enumerate() {
            let words = tile_of_words(self.field, self.first_tile.wrapping_add(offset as u64));
            part.copy_from_slice(&words[..part.len()]);
        }
    }
}

/// The words with indices `TILE·tile .. TILE·(tile + 1)`. To be inlined into a kernel that runs under `pulp`'s dispatch.
#[inline(always)]
pub fn tile_of_words(field: &WordField, tile: u64) -> [u32; TILE] {
    let mut out = [0; TILE];
    let words = blocks_of_tile(field.name, tile);
    for (part, words) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(&words) {
        *part = *words;
    }
    out
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::super::Purpose;
    use super::*;

    /// Word `j` of block `b` is at `LANES·j + b` of a tile, and at `4·b + j` of the stream.
    #[test]
    fn words_are_those_of_the_stream() {
        let name = StreamName::new(9, Purpose::QUANTISATION).round(4).client(7);
        let mut field = vec![0; 2 * TILE];
        name.words().fill(0, &mut field);
        let mut stream = name.stream();
        for tile in field.chunks(TILE) {
            for block in 0..LANES {
                for word in 0..4 {
                    assert_eq!(tile[LANES * word + block], stream.next_u32());
                }
            }
        }
    }
}
