//! Speed of the accounting: `cargo bench -p floras-privacy`.

use criterion::{Criterion, criterion_group, criterion_main};
use floras_privacy::{AnyChannel, Coefficients, Composition, Grid, Receiver, Sampling, idealised};

/// Twice the clip norm 1.
const SENSITIVITY: f64 = 2.0;

fn composition(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("epsilon of 1000 rounds, γ = 5");
    group.sample_size(20);
    let law = idealised(Receiver::Paper, 5, SENSITIVITY).expect("five unused sequences");
    for (name, sampling, grid) in [
        ("p = 0.1, steps of 1e-4", Sampling::ReplaceOne(0.1), Grid::Step(1e-4)),
        ("p = 0.1", Sampling::ReplaceOne(0.1), Grid::Auto),
        ("everyone, closed form", Sampling::Everyone, Grid::Auto),
    ] {
        let composition = Composition::new(&law, sampling, 1000).and_then(|rounds| rounds.on_grid(grid));
        let composition = composition.expect("valid settings");
        group.bench_function(name, |bencher| bencher.iter(|| composition.epsilon(1e-5)));
    }
    group.finish();
}

fn laws(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one curve");
    group.sample_size(10);
    for receiver in [Receiver::Paper, Receiver::Clipped(1.0)] {
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

criterion_group!(benches, composition, laws);
criterion_main!(benches);
