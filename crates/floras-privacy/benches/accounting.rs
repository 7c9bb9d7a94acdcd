//! Speed of the accounting: `cargo bench -p floras-privacy`.
//!
//! The first group ends with a pair of real transforms of 2²⁰ points, in multiples of which the time of a composition can be
//! stated.

use criterion::{Criterion, criterion_group, criterion_main};
use floras_privacy::{
    AnyChannel, ClipLevel, Coefficients, Composition, Curve, Grid, Receiver, Sampling, idealised,
};
use realfft::RealFftPlanner;

/// Twice the clip norm, which is 1.
const SENSITIVITY: f64 = 2.0;

fn composition(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("epsilon of 1000 rounds");
    group.sample_size(20);
    let paper = idealised(Receiver::Paper, 5, SENSITIVITY).expect("five unused sequences");
    let clipped =
        AnyChannel::new(Receiver::Clipped(ClipLevel::ONE), 20, SENSITIVITY).expect("20 unused sequences");
    let replace = Sampling::ReplaceOne(0.1);
    let cases: [(&str, &dyn Curve, Sampling, Grid); 6] = [
        ("p = 0.1, steps of 1e-4", &paper, replace, Grid::Step(1e-4)),
        ("p = 0.1", &paper, replace, Grid::Auto),
        ("p = 0.1, add or remove", &paper, Sampling::AddRemove(0.1), Grid::Auto),
        ("p = 0.1, any channel", &clipped, replace, Grid::Auto),
        ("everyone, any channel", &clipped, Sampling::Everyone, Grid::Auto),
        ("everyone, closed form", &paper, Sampling::Everyone, Grid::Auto),
    ];
    for (name, curve, sampling, grid) in cases {
        let composition = Composition::new(curve, sampling, 1000).and_then(|rounds| rounds.on_grid(grid));
        let composition = composition.expect("valid settings");
        group.bench_function(name, |bencher| bencher.iter(|| composition.epsilon(1e-5)));
    }
    group.bench_function("for comparison: a pair of real FFTs of 2^20", |bencher| {
        let mut planner = RealFftPlanner::<f64>::new();
        let (forward, inverse) = (planner.plan_fft_forward(1 << 20), planner.plan_fft_inverse(1 << 20));
        let (mut masses, mut spectrum) = (forward.make_input_vec(), forward.make_output_vec());
        bencher.iter(|| {
            masses.fill(1.0 / f64::from(1 << 20));
            forward.process(&mut masses, &mut spectrum).expect("the planned lengths");
            inverse.process(&mut spectrum, &mut masses).expect("the planned lengths");
        });
    });
    group.finish();
}

fn distributions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one curve");
    group.sample_size(10);
    for receiver in [Receiver::Paper, Receiver::Clipped(ClipLevel::ONE)] {
        group.bench_function(format!("any channel, γ = 20, {receiver:?}"), |bencher| {
            bencher.iter(|| AnyChannel::new(receiver, 20, SENSITIVITY));
        });
        let noise_std = 0.1 / 40_f64.sqrt();
        let channel = Coefficients::normal(noise_std, 0.5_f64.sqrt()).expect("Rayleigh fading");
        group.bench_function(format!("actual, K = 20, γ = 20, 20 dB, {receiver:?}"), |bencher| {
            bencher.iter(|| channel.actual(receiver, 20, 20, SENSITIVITY));
        });
    }
    group.finish();
}

criterion_group!(benches, composition, distributions);
criterion_main!(benches);
