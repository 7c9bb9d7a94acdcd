//! Networks compared with PyTorch's automatic differentiation, and with finite differences of the definitions in double precision.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_learn::model::score_all;
use floras_learn::{Batch, LayerChoice, Model, Network, Samples, Scratch, Shape};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use serde::Deserialize;

const CLASSES: usize = 3;
const SAMPLES: usize = 4;

/// The values of `pattern` in tests/data/layers.py.
fn pattern(count: usize, factor: usize, offset: usize, modulus: usize) -> Vec<f32> {
    (0..count).map(|at| ((at * factor + offset) % modulus) as f32 / modulus as f32 - 0.5).collect()
}

fn samples(shape: Shape) -> Samples {
    let features = pattern(SAMPLES * shape.features(), 37, 5, 101).iter().map(|value| 2.0 * value).collect();
    Samples::of_shape(shape, CLASSES, features, (0..SAMPLES as u16).map(|at| at % 3).collect()).unwrap()
}

fn layers(texts: &[impl AsRef<str>]) -> Vec<LayerChoice> {
    texts.iter().map(|text| text.as_ref().parse().unwrap()).collect()
}

fn gradient(network: &Network, parameters: &[f32], samples: &Samples) -> (f64, Vec<f32>) {
    let rows: Vec<u32> = (0..samples.count() as u32).collect();
    let mut gradient = vec![f32::NAN; parameters.len()];
    let (mut unused, mut scratch) = (ChaCha8Rng::seed_from_u64(1), Scratch::default());
    // The buffers hold other values at the second time.
    let mut loss = 0.0;
    for rows in [&rows[..1], &rows] {
        loss =
            network.gradient(parameters, Batch { samples, rows }, &mut unused, &mut scratch, &mut gradient);
    }
    (loss, gradient)
}

/// Fails if any value differs by more than this share of the largest one.
fn assert_close(found: &[f32], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    for (place, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(found) - expected).abs();
        assert!(error <= tolerance * largest, "{what}, parameter {place}: {found} instead of {expected}");
    }
}

#[derive(Deserialize)]
struct Recorded {
    shape: String,
    layers: Vec<String>,
    loss: f64,
    gradient: Vec<f64>,
}

#[test]
fn gradients_agree_with_pytorch() {
    let recorded: Vec<Recorded> = serde_json::from_str(include_str!("data/layers.json")).unwrap();
    assert_eq!(recorded.len(), 11);
    for Recorded { shape, layers: texts, loss, gradient: expected } in recorded {
        let shape: Shape = shape.parse().unwrap();
        let network = Network::new(shape, &layers(&texts), CLASSES, 0.0).unwrap();
        let parameters = pattern(network.parameters(), 53, 7, 127);
        let (found, slopes) = gradient(&network, &parameters, &samples(shape));
        assert!((found - loss).abs() < 2e-6, "{texts:?}: {found} instead of {loss}");
        assert_close(&slopes, &expected, 2e-6, &format!("{texts:?}"));
    }
}

/// The definitions of the layers in double precision, one sample at a time.
mod definition {
    use floras_learn::{LayerChoice, Shape};

    pub(super) type Image = (Shape, Vec<f64>);

    fn conv(
        (shape, x): &Image,
        parameters: &mut &[f64],
        (channels, kernel, stride, padding, has_bias): (usize, usize, usize, usize, bool),
    ) -> Image {
        let side = |length: usize| (length + 2 * padding - kernel) / stride + 1;
        let output = Shape::new(channels, side(shape.height), side(shape.width));
        let weights = take(parameters, channels * shape.channels * kernel * kernel);
        let biases = if has_bias { take(parameters, channels) } else { vec![0.0; channels] };
        let pixel = |c: usize, i: usize, j: usize| {
            let (i, j) = (i.checked_sub(padding), j.checked_sub(padding));
            match (i, j) {
                (Some(i), Some(j)) if i < shape.height && j < shape.width => {
                    x[(c * shape.height + i) * shape.width + j]
                }
                _ => 0.0,
            }
        };
        let mut y = Vec::new();
        for o in 0..channels {
            for (i, j) in (0..output.pixels()).map(|at| (at / output.width, at % output.width)) {
                let mut sum = biases[o];
                for c in 0..shape.channels {
                    for (u, v) in (0..kernel * kernel).map(|at| (at / kernel, at % kernel)) {
                        let weight = weights[((o * shape.channels + c) * kernel + u) * kernel + v];
                        sum += weight * pixel(c, i * stride + u, j * stride + v);
                    }
                }
                y.push(sum);
            }
        }
        (output, y)
    }

    fn norm((shape, x): &Image, parameters: &mut &[f64], groups: usize) -> Image {
        let (scales, offsets) = (take(parameters, shape.channels), take(parameters, shape.channels));
        let mut y = Vec::new();
        for (group, x) in x.chunks(shape.features() / groups).enumerate() {
            let size = x.len() as f64;
            let mean = x.iter().sum::<f64>() / size;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / size;
            for (at, x) in x.iter().enumerate() {
                let channel = group * (shape.channels / groups) + at / shape.pixels();
                y.push(scales[channel] * (x - mean) / (variance + 1e-5).sqrt() + offsets[channel]);
            }
        }
        (*shape, y)
    }

    fn relu((shape, x): Image) -> Image {
        (shape, x.into_iter().map(|x| x.max(0.0)).collect())
    }

    fn take(parameters: &mut &[f64], count: usize) -> Vec<f64> {
        let (taken, rest) = parameters.split_at(count);
        *parameters = rest;
        taken.to_vec()
    }

    pub(super) fn apply(layer: LayerChoice, input: Image, parameters: &mut &[f64]) -> Image {
        let shape = input.0;
        match layer {
            LayerChoice::Conv { channels, kernel, stride, padding, has_bias } => {
                conv(&input, parameters, (channels, kernel, stride, padding, has_bias))
            }
            LayerChoice::MaxPool { side } => {
                let output = Shape::new(shape.channels, shape.height / side, shape.width / side);
                let mut y = Vec::new();
                for plane in input.1.chunks(shape.pixels()) {
                    for (i, j) in (0..output.pixels()).map(|at| (at / output.width, at % output.width)) {
                        let square = (0..side * side).map(|at| (i * side + at / side, j * side + at % side));
                        let values = square.map(|(i, j)| plane[i * shape.width + j]);
                        y.push(values.fold(f64::NEG_INFINITY, f64::max));
                    }
                }
                (output, y)
            }
            LayerChoice::AveragePool => {
                let means = input.1.chunks(shape.pixels()).map(|x| x.iter().sum::<f64>() / x.len() as f64);
                (Shape::vector(shape.channels), means.collect())
            }
            LayerChoice::Relu => relu(input),
            LayerChoice::GroupNorm { groups } => norm(&input, parameters, groups),
            LayerChoice::Dropout { .. } => input,
            LayerChoice::Linear { outputs } => {
                let weights = take(parameters, outputs * shape.features());
                let biases = take(parameters, outputs);
                let dot = |row: &[f64]| row.iter().zip(&input.1).map(|(w, x)| w * x).sum::<f64>();
                let y = weights.chunks(shape.features()).zip(biases).map(|(row, bias)| dot(row) + bias);
                (Shape::vector(outputs), y.collect())
            }
            LayerChoice::Residual { channels, stride, groups } => {
                let inner = conv(&input, parameters, (channels, 3, stride, 1, false));
                let inner = relu(norm(&inner, parameters, groups));
                let inner = conv(&inner, parameters, (channels, 3, 1, 1, false));
                let inner = norm(&inner, parameters, groups);
                let shortcut = if inner.0 == shape {
                    input
                } else {
                    let shortcut = conv(&input, parameters, (channels, 1, stride, 0, false));
                    norm(&shortcut, parameters, groups)
                };
                relu((inner.0, inner.1.iter().zip(shortcut.1).map(|(a, b)| a + b).collect()))
            }
        }
    }
}

/// The objective in double precision.
fn objective(layers: &[LayerChoice], l2: f64, parameters: &[f64], samples: &Samples) -> f64 {
    let mut loss = 0.0;
    for (sample, &label) in samples.labels().iter().enumerate() {
        let features = samples.row(sample).iter().map(|&x| f64::from(x)).collect();
        let (mut rest, mut image) = (parameters, (samples.shape(), features));
        for &layer in layers.iter().chain(&[LayerChoice::Linear { outputs: CLASSES }]) {
            image = definition::apply(layer, image, &mut rest);
        }
        assert!(rest.is_empty());
        let logits = image.1;
        loss += logits.iter().map(|logit| logit.exp()).sum::<f64>().ln() - logits[usize::from(label)];
    }
    loss / samples.count() as f64 + l2 * parameters.iter().map(|w| w * w).sum::<f64>()
}

#[test]
fn gradients_agree_with_finite_differences() {
    let networks: [(&str, f64, &[&str]); 8] = [
        ("5x1x1", 0.05, &[]),
        ("2x3x3", 0.0, &["relu", "dropout=0", "linear=4", "relu", "linear=5"]),
        ("2x6x5", 0.01, &["conv=3x3,padding=1", "relu", "max-pool=2", "conv=4x2", "relu"]),
        ("3x9x8", 0.0, &["conv=2x3,stride=2,padding=3", "group-norm=2", "conv=4x1,no-bias", "max-pool=3"]),
        ("2x5x5", 0.0, &["group-norm=1", "average-pool", "linear=6", "group-norm=3"]),
        ("3x7x7", 0.0, &["residual=3,groups=3", "residual=4,stride=2,groups=2", "average-pool"]),
        ("1x8x8", 0.0, &["max-pool=2", "residual=2,groups=1", "dropout=0", "relu"]),
        // Several tiles of positions.
        (
            "40x8x6",
            0.0,
            &["group-norm=4", "conv=60x3,padding=1", "relu", "conv=2x5,padding=1", "average-pool"],
        ),
    ];
    for (shape, l2, texts) in networks {
        let (shape, layers) = (shape.parse().unwrap(), layers(texts));
        let network = Network::new(shape, &layers, CLASSES, l2).unwrap();
        let (samples, parameters) = (samples(shape), pattern(network.parameters(), 53, 7, 127));
        let exact: Vec<f64> = parameters.iter().map(|&value| f64::from(value)).collect();
        let (loss, found) = gradient(&network, &parameters, &samples);
        let penalty = floras_learn::model::penalty(&network, &parameters);
        let expected = objective(&layers, l2, &exact, &samples);
        assert!((loss + penalty - expected).abs() < 1e-5 * expected, "{texts:?}: {loss} for {expected}");
        let scored = score_all(&network, &parameters, &samples, &mut Scratch::default()).mean_loss();
        assert!((scored - loss).abs() < 1e-6 * expected.max(1.0), "{texts:?}: {scored} for {loss}");
        let slope = |place: usize| {
            let moved = |by: f64| {
                let mut moved = exact.clone();
                moved[place] += by;
                objective(&layers, l2, &moved, &samples)
            };
            (moved(1e-6) - moved(-1e-6)) / 2e-6
        };
        // All parameters of a small network, and some of a large one.
        let step = found.len().div_ceil(200);
        let places = (0..found.len()).step_by(step);
        let slopes: Vec<f64> = places.clone().map(slope).collect();
        let found: Vec<f32> = places.map(|place| found[place]).collect();
        assert_close(&found, &slopes, 1e-5, &format!("{texts:?}"));
    }
}

#[test]
fn known_networks_have_the_published_sizes() {
    let cifar = Shape::new(3, 32, 32);
    let cnn = Network::new(cifar, &Network::cnn(), 10, 0.0).unwrap();
    assert_eq!(cnn.parameters(), 1_626_442);
    // PyTorch's residual network of 18 layers for CIFAR-10 has 11,173,962 parameters, with as many for either normalisation.
    let resnet = Network::new(cifar, &Network::resnet(Network::RESNET_GROUPS), 10, 0.0).unwrap();
    assert_eq!(resnet.parameters(), 11_173_962);
    let names: Vec<String> = resnet.tensors().into_iter().map(|tensor| tensor.name).collect();
    assert_eq!(names[..3], ["layer1.weight", "layer2.weight", "layer2.bias"]);
    assert!(names.contains(&"layer6.shortcut.conv.weight".to_owned()));
    assert_eq!(names[names.len() - 2..], ["output.weight", "output.bias"]);
    let mut distinct = names.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), names.len());
}

#[test]
fn initial_parameters_follow_pytorch() {
    let network = Network::new(Shape::new(3, 32, 32), &Network::cnn(), 10, 0.0).unwrap();
    let parameters = network.initialise(&mut ChaCha8Rng::seed_from_u64(3));
    assert_eq!(parameters.len(), network.parameters());
    // The first convolution has 27 inputs; the linear layer 12,544.
    for (range, inputs) in [(0..896_usize, 27.0_f32), (19_392..19_392 + 1_605_760, 12_544.0)] {
        let bound = 1.0 / inputs.sqrt();
        let values = &parameters[range];
        assert!(values.iter().all(|value| value.abs() <= bound));
        let variance = values.iter().map(|value| value * value).sum::<f32>() / values.len() as f32;
        // A uniform variable's square has the relative standard deviation √(4/5): five of them.
        let tolerance = 5.0 * (0.8 / values.len() as f32).sqrt();
        assert!((3.0 * variance / (bound * bound) - 1.0).abs() < tolerance.max(1e-3));
    }
}

#[test]
fn dropout_acts_in_training_only() {
    let shape = Shape::vector(50);
    let network = Network::new(shape, &layers(&["dropout=0.5"]), CLASSES, 0.0).unwrap();
    let (samples, parameters) = (samples(shape), pattern(network.parameters(), 53, 7, 127));
    let mut scratch = Scratch::default();
    let mut train = |seed| {
        let mut gradient = vec![0.0; parameters.len()];
        let (rows, mut dropout) = ([0, 1, 2, 3], ChaCha8Rng::seed_from_u64(seed));
        let batch = Batch { samples: &samples, rows: &rows };
        (network.gradient(&parameters, batch, &mut dropout, &mut scratch, &mut gradient), gradient)
    };
    assert_eq!(train(1), train(1));
    assert_ne!(train(1), train(2));
    let score = || score_all(&network, &parameters, &samples, &mut Scratch::default());
    assert_eq!(score(), score());
    let plain = Network::new(shape, &[], CLASSES, 0.0).unwrap();
    assert_eq!(score(), score_all(&plain, &parameters, &samples, &mut Scratch::default()));
}

#[test]
fn misfits_name_the_layer_and_shapes() {
    let refused = |shape: &str, texts: &[&str]| {
        Network::new(shape.parse().unwrap(), &layers(texts), 10, 0.0).unwrap_err().to_string()
    };
    assert_eq!(
        refused("3x32x32", &["conv=8x3", "max-pool=16", "relu", "conv=8x3"]),
        "layer 4 (conv=8x3): a kernel of 3x3 pixels does not fit into an input of 8x1x1 with padding 0"
    );
    assert_eq!(
        refused("3x32x32", &["linear=10", "max-pool=2"]),
        "layer 2 (max-pool=2): a square of 2x2 pixels does not fit into an input of 10x1x1"
    );
    assert_eq!(
        refused("3x32x32", &["group-norm=2"]),
        "layer 1 (group-norm=2): 2 groups do not divide the 3 channels of an input of 3x32x32"
    );
    assert_eq!(
        refused("1x8x8", &["residual=24"]),
        "layer 1 (residual=24): 32 groups do not divide its 24 channels; its input is 1x8x8"
    );
    assert!(refused("3x512x512", &["linear=65536"]).contains("more than 268435456 parameters"));
    assert!(refused("3x512x512", &["conv=65536x3"]).contains("more than 16777216 features"));
}
