//! Random changes of images during training: crops and mirror images.
//!
//! ```text
//! crop by p:  y[c, i, j] = x[c, i + u, j + v],   u, v uniform in −p … p, zero outside of the image
//! flip:       y[c, i, j] = x[c, i, W − 1 − j] with probability 1/2
//! ```
//!
//! A crop by `p` equals padding by `p` zeros on every side and cutting out the original size at a random place. Zero is the
//! value after normalisation. Every use of a sample has its own draws.

use rand::{Rng, RngExt};

use super::shape::Shape;
use crate::error::{LearnError, require};

/// Which random changes a mini-batch goes through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Augmentation {
    crop: usize,
    flip: bool,
}

impl Augmentation {
    /// Largest number of pixels by which a crop moves an image.
    pub const MAX_CROP: usize = 64;

    /// Moves images by up to `crop` pixels in each direction (0 to 64), and mirrors every second one if `flip`.
    pub fn new(crop: usize, flip: bool) -> Result<Self, LearnError> {
        let allowed = || format!("between 0 and {}", Self::MAX_CROP);
        require(crop <= Self::MAX_CROP, "the pixels of a crop", allowed(), crop)?;
        Ok(Self { crop, flip })
    }

    /// Largest number of pixels by which an image is moved.
    pub fn crop(self) -> usize {
        self.crop
    }

    /// Whether half of the images are mirrored.
    pub fn flip(self) -> bool {
        self.flip
    }

    /// Whether samples stay as they are.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// Appends a changed image of this shape.
    pub(crate) fn append(self, image: &[f32], shape: Shape, randomness: &mut dyn Rng, out: &mut Vec<f32>) {
        let Shape { height, width, .. } = shape;
        let crop = self.crop as i32;
        let mut offset = || if crop == 0 { 0 } else { randomness.random_range(-crop..=crop) as isize };
        let (down, right) = (offset(), offset());
        let mirrored = self.flip && randomness.random::<bool>();
        for plane in image.chunks_exact(height * width) {
            for row in 0..height as isize {
                let start = out.len();
                out.resize(start + width, 0.0);
                let Some(from) = usize::try_from(row + down).ok().filter(|&from| from < height) else {
                    continue;
                };
                let (from, to) = (&plane[from * width..][..width], &mut out[start..]);
                let moved = right.unsigned_abs().min(width);
                if right >= 0 {
                    to[..width - moved].copy_from_slice(&from[moved..]);
                } else {
                    to[moved..].copy_from_slice(&from[..width - moved]);
                }
                if mirrored {
                    to.reverse();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    use super::*;

    const SHAPE: Shape = Shape::new(2, 3, 4);

    fn image() -> Vec<f32> {
        (1..=24).map(|value| value as f32).collect()
    }

    /// The definition, pixel by pixel.
    fn changed(down: isize, right: isize, mirrored: bool) -> Vec<f32> {
        let image = image();
        let mut changed = Vec::new();
        for (channel, row, column) in
            (0..2).flat_map(|c| (0..3_isize).flat_map(move |i| (0..4_isize).map(move |j| (c, i, j))))
        {
            let column = if mirrored { 3 - column } else { column };
            let (row, column) = (row + down, column + right);
            let inside = (0..3).contains(&row) && (0..4).contains(&column);
            changed.push(if inside { image[(channel * 12 + row * 4 + column) as usize] } else { 0.0 });
        }
        changed
    }

    #[test]
    fn every_change_is_a_crop_and_flip() {
        for (crop, flip) in [(0, true), (1, false), (2, true), (6, true)] {
            let mut generator = ChaCha8Rng::seed_from_u64(3);
            let (side, sides) = (crop as isize, if flip { 2 } else { 1 });
            let mut possible = Vec::new();
            for (down, right) in
                (-side..=side).flat_map(|down| (-side..=side).map(move |right| (down, right)))
            {
                (0..sides).for_each(|mirrored| possible.push(changed(down, right, mirrored == 1)));
            }
            // Each of n changes is missed with probability (1 − 1/n)^(20n) < 3e-9.
            let mut seen = vec![false; possible.len()];
            for _ in 0..20 * possible.len() {
                let mut out = Vec::new();
                Augmentation::new(crop, flip).unwrap().append(&image(), SHAPE, &mut generator, &mut out);
                let found = possible.iter().enumerate().filter(|(_, image)| **image == out);
                assert!(found.map(|(place, _)| seen[place] = true).count() > 0, "{out:?}");
            }
            assert!(seen.iter().all(|&seen| seen), "crop {crop}, flip {flip}");
        }
    }

    #[test]
    fn half_of_the_images_are_mirrored() {
        let (augmentation, mut generator) =
            (Augmentation::new(0, true).unwrap(), ChaCha8Rng::seed_from_u64(1));
        let mirrored = (0..1000).filter(|_| {
            let mut out = Vec::new();
            augmentation.append(&image(), SHAPE, &mut generator, &mut out);
            out != image()
        });
        // Standard deviation 15.8; five of them.
        assert!((mirrored.count() as f64 - 500.0).abs() < 80.0);
    }

    #[test]
    fn huge_crops_are_refused() {
        assert!(Augmentation::new(65, false).is_err());
    }
}
