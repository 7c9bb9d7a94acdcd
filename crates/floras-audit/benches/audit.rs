//! Speed of the audit's games: `cargo bench -p floras-audit`. One iteration is a thousand one-round games.
//! The model has d = 4010 parameters.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use floras_audit::WorstCaseGame;
use floras_core::{Fading, Modulation, Receiver, Snr, SnrConvention};
use floras_phy::{Floras, FlorasSettings, SequenceSet, UplinkError};

/// Number of games in each world.
const GAMES: u32 = 500;

fn floras() -> Result<Floras, UplinkError> {
    Ok(Floras::new(FlorasSettings {
        sequences: SequenceSet::walsh(25, 32)?,
        modulation: Modulation::Real,
        receiver: Receiver::Paper,
        channels: Fading::Rayleigh.into(),
        snr: Snr::new(20.0, SnrConvention::Symbol)?,
        ..FlorasSettings::default()
    }))
}

fn games(criterion: &mut Criterion) {
    let uplink = floras().expect("valid settings");
    let game = WorstCaseGame {
        per_round: 20,
        probability: 1.0,
        participation_known: false,
        rounds: 1,
        clip: 1.0,
        parameters: 4010,
        truncate: None,
        is_traced: false,
        seed: 1,
    };
    let mut group = criterion.benchmark_group("one-round games, K = 20, N = 25, d = 4010");
    group.throughput(Throughput::Elements(2 * u64::from(GAMES)));
    group.bench_function("decoded sum", |bencher| bencher.iter(|| game.decoded(&uplink, GAMES, 0)));
    group.bench_function("raw samples", |bencher| bencher.iter(|| game.raw(&uplink, GAMES, 0, false)));
    group.finish();
}

criterion_group!(benches, games);
criterion_main!(benches);
