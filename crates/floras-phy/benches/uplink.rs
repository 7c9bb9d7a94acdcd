//! Speed of the air interface: `cargo bench -p floras-phy`. Everything on one thread; compare within one run.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use floras_core::random::{Purpose, StreamName};
use floras_phy::masks::{LocalNoise, MaskGrid, MaskSign, PairSeed, SlotMasks, add_mask, mask_update};
use floras_phy::release::{self, ReleaseKey};
use floras_phy::*;
use rand_distr::{Distribution, StandardNormal};

const CLIENTS: u32 = 20;
const PARAMETERS: usize = 1_000_000;
/// Parameters of a logistic regression on 20×20 pictures.
const SMALL: usize = 4010;

fn normal_numbers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("normal numbers");
    let mut out = vec![0.0_f32; 1 << 16];
    group.throughput(Throughput::Elements(out.len() as u64));
    let name = StreamName::new(1, Purpose::BENCHMARK);
    group.bench_function("ours, vectorised", |bencher| bencher.iter(|| name.normals().fill(0, &mut out)));
    group.bench_function("rand_distr over the same words", |bencher| {
        bencher.iter(|| {
            let mut stream = name.stream();
            out.iter_mut().for_each(|value| *value = StandardNormal.sample(&mut stream));
        });
    });
    let mut release = vec![0.0_f64; 1 << 16];
    group.bench_function("release_noise", |bencher| {
        bencher.iter(|| release::fill_normals(ReleaseKey::generate().expect("random bytes"), &mut release));
    });
    group.finish();
}

/// One pair's mask for 10⁶ parameters, compared with as many values of the release noise generator.
fn masks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("masks, d = 1e6");
    group.throughput(Throughput::Elements(PARAMETERS as u64));
    group.sample_size(30);
    let grid = MaskGrid::new(1000, 70.0, 1.0).expect("a grid");
    let seed = PairSeed::from_bytes([1; 32]);
    let mut values = vec![0_i64; PARAMETERS];
    group.bench_function("mask of a pair, added", |bencher| {
        bencher.iter(|| add_mask(&seed, MaskSign::Plus, &grid, &mut values));
    });
    let mut normals = vec![0.0_f64; PARAMETERS];
    group.bench_function("release noise", |bencher| {
        bencher.iter(|| release::fill_normals(ReleaseKey::generate().expect("random bytes"), &mut normals));
    });
    group.bench_function("update of a client, K = 20", |bencher| {
        let grid = MaskGrid::new(20, 10.0, 1.0).expect("a grid");
        let update = vec![1e-3_f32; PARAMETERS];
        bencher.iter(|| {
            let seeds = (1..20).map(|byte| (PairSeed::from_bytes([byte; 32]), MaskSign::Plus));
            let noise = LocalNoise::generate().expect("random bytes");
            mask_update(&update, SlotMasks::simulated(seeds.collect()), &grid, noise)
        });
    });
    group.finish();
}

fn updates(clients: u32, parameters: usize) -> Vec<Vec<f32>> {
    let random_update = |client| {
        let mut update = vec![0.0; parameters];
        StreamName::new(1, Purpose::BENCHMARK).client(client).normals().fill(0, &mut update);
        update
    };
    (0..clients).map(random_update).collect()
}

fn floras(sequences: SequenceSet) -> Floras {
    Floras::new(FlorasSettings {
        sequences,
        modulation: Modulation::Real,
        receiver: Receiver::Paper,
        channels: Fading::Rayleigh.into(),
        snr: Snr::new(20.0, SnrConvention::Symbol).expect("20 dB"),
        ..FlorasSettings::default()
    })
}

fn one_round(criterion: &mut Criterion) {
    let updates = updates(CLIENTS, PARAMETERS);
    let clients: Vec<u32> = (0..CLIENTS).collect();
    let round = Round::new(1, 0, 1, &clients).expect("distinct clients");
    let noise = round.stream_name(Purpose::PAYLOAD_NOISE);
    let mut decoded = vec![0.0; PARAMETERS];
    let mut group = criterion.benchmark_group("one round, K = 20, d = 1e6");
    group.sample_size(20);
    let walsh = floras(SequenceSet::walsh(32, 32).expect("32 of 32"));
    let cosine = floras(SequenceSet::orthonormal(32, 32).expect("32 of 32"));
    group.bench_function("symbol level", |bencher| {
        let channel = walsh.realise(&round).expect("a round");
        bencher.iter(|| channel.apply_into(&updates, noise, &mut decoded));
    });
    group.bench_function("symbol level, noise fit for release", |bencher| {
        let channel = walsh.realise(&round).expect("a round");
        let scales = vec![precode::Scale::UNCHANGED; CLIENTS as usize];
        bencher.iter(|| {
            let key = ReleaseKey::generate().expect("random bytes");
            channel.release_into(&updates, &scales, key, &mut decoded)
        });
    });
    for (name, uplink) in [("walsh", &walsh), ("orthonormal", &cosine)] {
        group.bench_function(BenchmarkId::new("chip level, L = 32", name), |bencher| {
            let link = uplink.link(&round).expect("a round");
            bencher.iter(|| link.transmit_into(&updates, noise, &mut decoded));
        });
    }
    group.finish();
}

fn effective_channel(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("drawing (g, nu)");
    for count in [32_usize, 1024] {
        let clients: Vec<u32> = (0..count as u32 / 2).collect();
        let round = Round::new(1, 0, 1, &clients).expect("distinct clients");
        let uplink = floras(SequenceSet::walsh(count, count).expect("N of N"));
        group.bench_function(BenchmarkId::new("symbol level, N", count), |bencher| {
            bencher.iter(|| uplink.realise(&round));
        });
    }
    group.finish();
}

/// Recovery of 1000 of 4010 values from 2004 measurements with noise, in a fixed number of iterations.
fn message_passing(criterion: &mut Criterion) {
    let round = Round::new(1, 0, 1, &[0]).expect("a round");
    let projection =
        Projection::draw(&mut round.stream(Purpose::PROJECTION), SMALL, 2004).expect("a projection");
    let mut vector = updates(1, SMALL).remove(0);
    vector[1000..].fill(0.0);
    let mut noise = vec![0.0_f32; 2004];
    round.stream_name(Purpose::PAYLOAD_NOISE).normals().fill(0, &mut noise);
    let mut measured = projection.project(&vector).expect("a vector");
    measured.iter_mut().zip(noise).for_each(|(value, noise)| *value += 0.3 * noise);
    let mut group = criterion.benchmark_group("message passing, d = 4010, s = 2005");
    group.sample_size(20);
    for iterations in [1, 30, 1000] {
        let amp = Amp::new(iterations, 0.0).expect("iterations");
        group.bench_function(BenchmarkId::new("iterations", iterations), |bencher| {
            bencher.iter(|| amp.recover(&projection, &measured));
        });
    }
    group.finish();
}

criterion_group!(benches, normal_numbers, masks, one_round, effective_channel, message_passing);

fn main() {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("the pool is not in use yet");
    benches();
    Criterion::default().configure_from_args().final_summary();
}
