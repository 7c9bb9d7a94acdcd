//! The shape of a sample: channels, height and width.

use std::fmt;
use std::str::FromStr;

use crate::error::LearnError;

/// Channels × height × width of a sample; features are stored channel after channel, each row after row.
///
/// ```
/// use floras_learn::Shape;
///
/// let shape: Shape = "3x32x32".parse()?;
/// assert_eq!((shape.channels, shape.features()), (3, 3072));
/// assert_eq!(shape.to_string(), "3x32x32");
/// # Ok::<(), floras_learn::LearnError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of channels: 1 for grey images, 3 for colours, or the features of a vector.
    pub channels: usize,
    /// Number of rows of pixels; 1 for a vector.
    pub height: usize,
    /// Number of columns of pixels; 1 for a vector.
    pub width: usize,
}

impl Shape {
    /// Largest number of features.
    pub const MAX_FEATURES: usize = 1 << 24;

    /// A shape; each number must be at least 1.
    pub const fn new(channels: usize, height: usize, width: usize) -> Self {
        Self { channels, height, width }
    }

    /// The shape of a sample without rows and columns.
    pub const fn vector(features: usize) -> Self {
        Self::new(features, 1, 1)
    }

    /// Number of features of a sample.
    pub const fn features(self) -> usize {
        self.channels * self.height * self.width
    }

    /// Number of pixels in a channel.
    pub const fn pixels(self) -> usize {
        self.height * self.width
    }

    /// Whether samples have rows or columns of pixels.
    pub const fn is_image(self) -> bool {
        self.pixels() > 1
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.channels, self.height, self.width)
    }
}

impl FromStr for Shape {
    type Err = LearnError;

    fn from_str(text: &str) -> Result<Self, LearnError> {
        let sizes: Option<Vec<usize>> = text.split('x').map(|size| size.trim().parse().ok()).collect();
        let refused = || LearnError::OutOfRange {
            name: "the shape of a sample",
            allowed: format!(
                "channels x height x width, as in 3x32x32, each at least 1 and their product at most {}",
                Self::MAX_FEATURES
            ),
            value: format!("\"{text}\""),
        };
        let Some(&[channels, height, width]) = sizes.as_deref() else { return Err(refused()) };
        let features = channels.checked_mul(height).and_then(|plane| plane.checked_mul(width));
        match features {
            Some(1..=Self::MAX_FEATURES) => Ok(Self { channels, height, width }),
            _ => Err(refused()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_shapes_are_refused_with_an_example() {
        for text in ["", "3", "3x32", "3x32x32x1", "0x4x4", "3x-1x2", "4096x4096x2", "axbxc"] {
            let error = text.parse::<Shape>().unwrap_err().to_string();
            assert!(error.contains("as in 3x32x32") && error.contains(text), "{error}");
        }
    }
}
