//! The text forms of layers, as in `conv=32x3` and `max-pool=2`.

use std::fmt;
use std::str::FromStr;

use floras_core::{Choice, ChoiceError, serde_as_text};

/// One layer of a network.
///
/// ```
/// use floras_learn::LayerChoice;
///
/// let layer: LayerChoice = "conv=64x3,stride=2,padding=1".parse()?;
/// assert_eq!(layer.to_string(), "conv=64x3,stride=2,padding=1");
/// assert!("conv=64".parse::<LayerChoice>().is_err());
/// # Ok::<(), floras_core::ChoiceError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LayerChoice {
    /// A convolution with square kernels.
    Conv {
        /// Number of output channels, 1 to 65536.
        channels: usize,
        /// Side of the kernel in pixels, 1 to 64.
        kernel: usize,
        /// Pixels between two positions of the kernel, 1 to 64.
        stride: usize,
        /// Zeros around the image in pixels, 0 to 64.
        padding: usize,
        /// Whether each output channel has a bias.
        has_bias: bool,
    },
    /// The largest value of each square of pixels.
    MaxPool {
        /// Side of the squares in pixels, 2 to 64.
        side: usize,
    },
    /// The mean of each channel.
    AveragePool,
    /// Rectified linear units: `max(0, x)` of each value.
    Relu,
    /// Normalisation over groups of channels.
    GroupNorm {
        /// Number of groups, 1 to 65536, which divides the number of channels.
        groups: usize,
    },
    /// Features that are set to zero at random during training.
    Dropout {
        /// The probability of zero, from 0 to below 1.
        probability: f32,
    },
    /// A fully connected layer.
    Linear {
        /// Number of outputs, 1 to 65536.
        outputs: usize,
    },
    /// A basic block of a residual network.
    Residual {
        /// Number of output channels, 1 to 65536.
        channels: usize,
        /// Pixels between two positions of the first convolution's kernel, 1 to 64.
        stride: usize,
        /// Number of groups of its normalisations, 1 to 65536.
        groups: usize,
    },
}

/// Largest number of channels, outputs or groups.
const MAX_CHANNELS: usize = 1 << 16;
/// Largest kernel, stride or padding.
const MAX_SIDE: usize = 64;
/// Groups of a residual block if the text form states none.
pub(crate) const DEFAULT_GROUPS: usize = 32;

impl Choice for LayerChoice {
    const WHAT: &'static str = "layer";

    const FORMS: &'static [&'static str] = &[
        "conv=CxK[,stride=S][,padding=P][,no-bias]",
        "max-pool=K",
        "average-pool",
        "relu",
        "group-norm=G",
        "dropout=p",
        "linear=C",
        "residual=C[,stride=S][,groups=G]",
    ];

    const RANGES: &'static str = "C and G between 1 and 65536, K and S between 1 and 64, K at least 2 in max-pool, P between 0 and 64, p from 0 to below 1";

    fn label(&self) -> String {
        match *self {
            Self::Conv { channels, kernel, .. } => {
                format!("convolution, {channels} channels, {kernel}×{kernel}")
            }
            Self::MaxPool { side } => format!("largest of {side}×{side}"),
            Self::AveragePool => "mean of each channel".to_owned(),
            Self::Relu => "ReLU".to_owned(),
            Self::GroupNorm { groups } => format!("group normalisation, {groups} groups"),
            Self::Dropout { probability } => format!("dropout, {probability}"),
            Self::Linear { outputs } => format!("linear, {outputs} outputs"),
            Self::Residual { channels, .. } => format!("residual block, {channels} channels"),
        }
    }
}

impl FromStr for LayerChoice {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        parse(text).ok_or_else(|| Self::refuse(text))
    }
}

/// `None` for anything that is not a layer.
fn parse(text: &str) -> Option<LayerChoice> {
    let mut parts = text.split(',').map(str::trim);
    let (name, value) = match parts.next()?.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (text.trim(), None),
    };
    let mut options = Options(parts.collect());
    let layer = match (name, value) {
        ("conv", Some(value)) => {
            let (channels, kernel) = value.split_once('x')?;
            LayerChoice::Conv {
                channels: number(channels, 1, MAX_CHANNELS)?,
                kernel: number(kernel, 1, MAX_SIDE)?,
                stride: options.take("stride", 1, MAX_SIDE, 1)?,
                padding: options.take("padding", 0, MAX_SIDE, 0)?,
                has_bias: !options.take_word("no-bias"),
            }
        }
        ("max-pool", Some(value)) => LayerChoice::MaxPool { side: number(value, 2, MAX_SIDE)? },
        ("average-pool", None) => LayerChoice::AveragePool,
        ("relu", None) => LayerChoice::Relu,
        ("group-norm", Some(value)) => LayerChoice::GroupNorm { groups: number(value, 1, MAX_CHANNELS)? },
        ("dropout", Some(value)) => {
            let probability = value.parse().ok().filter(|probability| (0.0..1.0).contains(probability))?;
            LayerChoice::Dropout { probability }
        }
        ("linear", Some(value)) => LayerChoice::Linear { outputs: number(value, 1, MAX_CHANNELS)? },
        ("residual", Some(value)) => LayerChoice::Residual {
            channels: number(value, 1, MAX_CHANNELS)?,
            stride: options.take("stride", 1, MAX_SIDE, 1)?,
            groups: options.take("groups", 1, MAX_CHANNELS, DEFAULT_GROUPS)?,
        },
        _ => return None,
    };
    options.0.is_empty().then_some(layer)
}

fn number(text: &str, least: usize, most: usize) -> Option<usize> {
    text.trim().parse().ok().filter(|number| (least..=most).contains(number))
}

/// The parts of a text form after the first comma.
struct Options<'a>(Vec<&'a str>);

impl Options<'_> {
    /// Removes `name=number`; `default` if there is none, and nothing if the number is not allowed.
    fn take(&mut self, name: &str, least: usize, most: usize, default: usize) -> Option<usize> {
        let value = |part: &&str| part.split_once('=').filter(|(key, _)| key.trim() == name).is_some();
        match self.0.iter().position(value) {
            None => Some(default),
            Some(place) => number(self.0.remove(place).split_once('=')?.1, least, most),
        }
    }

    fn take_word(&mut self, word: &str) -> bool {
        let place = self.0.iter().position(|&part| part == word);
        place.map(|place| self.0.remove(place)).is_some()
    }
}

impl fmt::Display for LayerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Conv { channels, kernel, stride, padding, has_bias } => {
                write!(f, "conv={channels}x{kernel}")?;
                if stride > 1 {
                    write!(f, ",stride={stride}")?;
                }
                if padding > 0 {
                    write!(f, ",padding={padding}")?;
                }
                f.write_str(if has_bias { "" } else { ",no-bias" })
            }
            Self::MaxPool { side } => write!(f, "max-pool={side}"),
            Self::AveragePool => f.write_str("average-pool"),
            Self::Relu => f.write_str("relu"),
            Self::GroupNorm { groups } => write!(f, "group-norm={groups}"),
            Self::Dropout { probability } => write!(f, "dropout={probability}"),
            Self::Linear { outputs } => write!(f, "linear={outputs}"),
            Self::Residual { channels, stride, groups } => {
                write!(f, "residual={channels}")?;
                if stride > 1 {
                    write!(f, ",stride={stride}")?;
                }
                if groups != DEFAULT_GROUPS { write!(f, ",groups={groups}") } else { Ok(()) }
            }
        }
    }
}

serde_as_text!(LayerChoice);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms_are_read_back() {
        for text in [
            "conv=32x3",
            "conv=64x1,stride=2",
            "conv=8x5,padding=2,no-bias",
            "conv=8x5,stride=3,padding=2,no-bias",
            "max-pool=2",
            "average-pool",
            "relu",
            "group-norm=8",
            "dropout=0.25",
            "linear=128",
            "residual=64",
            "residual=128,stride=2,groups=2",
        ] {
            assert_eq!(text.parse::<LayerChoice>().unwrap().to_string(), text);
        }
        assert_eq!(
            "conv = 8x3 , padding = 1".parse::<LayerChoice>().unwrap().to_string(),
            "conv=8x3,padding=1"
        );
    }

    #[test]
    fn wrong_text_forms_are_refused() {
        for text in [
            "",
            "conv",
            "conv=32",
            "conv=0x3",
            "conv=8x65",
            "conv=8x3,stride=0",
            "conv=8x3,bias",
            "conv=8x3,padding",
            "max-pool=1",
            "max-pool",
            "relu=1",
            "relu,stride=2",
            "dropout=1",
            "dropout=-0.1",
            "dropout=nan",
            "linear=x",
            "residual=64,padding=1",
            "attention=8",
        ] {
            let error = text.parse::<LayerChoice>().unwrap_err().to_string();
            assert!(error.contains("conv=CxK") && error.ends_with(&format!("not {text}")), "{error}");
        }
    }
}
