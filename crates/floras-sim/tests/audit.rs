#![expect(clippy::unwrap_used, reason = "tests")]
use floras_phy::*;
use floras_sim::audit::*;
#[test]
fn speed() {
    let uplink = Floras::new(FlorasSettings {
        sequences: SequenceSet::walsh(25, 32).unwrap(),
        modulation: Modulation::Real,
        receiver: Receiver::Paper,
        fading: Fading::None,
        snr: Snr::new(100.0, SnrConvention::Symbol).unwrap(),
    })
    .unwrap();
    let game = WorstCaseGame {
        per_round: 20,
        chance: 1.0,
        rounds: 1,
        clip: 1.0,
        parameters: 4010,
        truncate: None,
        rounds_of_trace: None,
        seed: 1,
    };
    let start = std::time::Instant::now();
    let scores = game.decoded(&uplink, 500_000, 0).unwrap();
    println!("{:?}", start.elapsed());
    println!("{:?}", scores.decoder.lower_bound(1e-5, 0.01));
    println!("{:?}", scores.released_model.lower_bound(1e-5, 0.01));
    let start = std::time::Instant::now();
    let raw = game.raw(&uplink, 100_000, 1, false).unwrap();
    println!("{:?} {:?}", start.elapsed(), raw.lower_bound(1e-5, 0.01));
}
