//! Behaviour of an [`AirInterface`] and its [`AirLedger`].

use floras_core::View;
use floras_privacy::Statement;

use super::*;
use crate::{Federation, Trial};

const CLIPPED: &str = "[uplink]\nsequences = 25\ntruncate = 6.0\n[privacy]\nclip = 1.0";
const NORMALISED: &str = "[uplink]\ntruncate = 6.0\n[privacy]\nclip = 6.33\nnormalise = \"paper\"";
const CHIPS: &str = "[uplink]\nfidelity = \"chip\"\nfamily = \"orthonormal\"\n[privacy]\nclip = 1.0";
const FEW: &str =
    "[clients]\ntotal = 20\nper_round = 7\n[uplink]\nscheme = \"gaussian\"\n[privacy]\nclip = 1.0";

fn air(settings: &str, clients: Option<u32>) -> AirInterface {
    let Settings { uplink, privacy, .. } =
        Experiment::parse("a test", &format!("{settings}\n[clients]\ntotal = 1")).unwrap().settings().clone();
    AirInterface::new(uplink, privacy, None, clients).unwrap()
}

/// A trial's third round done once more over the air alone, with the updates that its clients computed.
#[test]
fn trial_and_air_have_the_same_bytes() {
    for text in [CLIPPED, NORMALISED, CHIPS, FEW] {
        let experiment = Experiment::parse("a test", text).unwrap();
        let federation = Federation::new(&experiment).unwrap();
        let mut trial = Trial::begin(&federation, 0).unwrap();
        trial.step().unwrap();
        trial.step().unwrap();
        let (mut model, updates) = (trial.parameters().to_vec(), trial.expected_updates(trial.id()).unwrap());
        let outcome = trial.step().unwrap();
        let clients = outcome.clients;
        let selected = clients.len() as u32;
        let spec = RoundSpec {
            seed: 1,
            trial: 0,
            round: 3,
            clients,
            selected,
            among: None,
            noise: Noise::Simulated,
        };
        let air = AirInterface::from_experiment(&experiment).unwrap();
        let aggregate = air.aggregate(&spec, &updates).unwrap();
        assert_eq!(aggregate.channel, outcome.aggregate.unwrap().channel, "{text}");
        floras_phy::precode::server_step(&mut model, &aggregate.sum, updates.len()).unwrap();
        assert_eq!(model, trial.parameters(), "{text}");
        assert_eq!(air.clients(), (selected < 20).then_some(20));
    }
}

#[test]
fn a_round_that_cannot_be_is_refused() {
    let refusal =
        |spec: &RoundSpec, clients: Option<u32>| air(CLIPPED, clients).realise(spec).unwrap_err().to_string();
    let round = RoundSpec::of_all(1, 1, 20);
    assert_eq!(refusal(&RoundSpec { round: 0, ..round.clone() }, None), "round must be at least 1, not 0");
    let asked = |selected| RoundSpec { selected, ..round.clone() };
    assert_eq!(refusal(&asked(19), None), "selected must be at least 20, as many as answered, not 19");
    assert_eq!(refusal(&asked(22), Some(21)), "selected must be at most 21, all clients there are, not 22");
    let few = RoundSpec { among: Some(19), ..round.clone() };
    assert_eq!(refusal(&few, Some(30)), "among must be between 20 and 30, not 19");
    assert_eq!(refusal(&round, Some(19)), "a client's number must be below 19, not 19");
    assert!(refusal(&asked(26), None).contains("25"), "{}", refusal(&asked(26), None));
}

/// Dropouts can reveal the sample: such a round counts as one with known participants. A missing client may have sent a pilot:
/// of 25 sequences 5 are unused, whether 20 clients answered or 19.
#[test]
fn nothing_is_gained_once_someone_is_missing() {
    let (air, known) = (air(CLIPPED, Some(100)), air(CLIPPED, None));
    let spend =
        |answered, selected, among| air.spend(Cohort { answered, selected, among }).unwrap()["idealised"];
    let alone = known.spend(Cohort::complete(20, 20)).unwrap()["idealised"];
    assert_eq!(spend(19, 20, 100), alone);
    assert!(spend(20, 20, 100) < spend(20, 20, 40) && spend(20, 20, 40) < alone);
}

#[test]
fn broken_updates_are_sent_as_zero() {
    let of_one = |broken: [f32; 2]| [vec![0.5, 0.25], broken.to_vec(), vec![-0.25, 0.125]];
    for settings in [CLIPPED, "[privacy]\nclip = \"none\"", NORMALISED] {
        let air = air(settings, None);
        let round = RoundSpec::of_all(3, 1, 3);
        let zero = air.aggregate(&round, &of_one([0.0, 0.0])).unwrap();
        assert!(zero.broken.is_empty());
        for broken in [[f32::NAN, 0.0], [1.0, f32::INFINITY]] {
            let aggregate = air.aggregate(&round, &of_one(broken)).unwrap();
            assert_eq!(aggregate, Aggregate { broken: vec![1], ..zero.clone() }, "{settings}");
        }
    }
}

/// The schemes whose noise is added at the symbol level.
const RELEASED: [&str; 4] = [
    CLIPPED,
    NORMALISED,
    "[uplink]\nscheme = \"gaussian\"\nnoise_std = 3.0\n[privacy]\nclip = 1.0",
    "[uplink]\nscheme = \"channel-inversion\"\nartificial_noise_std = 3.0\n[privacy]\nclip = 1.0",
];

#[test]
fn noise_for_release_is_new_in_every_call() {
    for text in RELEASED {
        let (air, spec) = (air(text, None), RoundSpec::of_all(1, 1, 20));
        let update: Vec<f32> = (0_u16..1000).map(|index| f32::from(index % 7) * 0.01).collect();
        let updates = vec![update; 20];
        let release = || air.aggregate(&spec.clone().for_release(), &updates).unwrap();
        let (first, second) = (release(), release());
        assert_ne!(first.sum, second.sum, "{text}");
        // The channel is the seed's.
        assert_eq!(first.channel, air.aggregate(&spec, &updates).unwrap().channel, "{text}");
    }
}

#[test]
fn released_sums_lie_on_the_grid() {
    let air = air("[uplink]\nscheme = \"gaussian\"\nnoise_std = 3.0\n[privacy]\nclip = 1.0", None);
    let spec = RoundSpec::of_all(1, 1, 20).for_release();
    let aggregated = air.aggregate(&spec, &vec![vec![0.01; 1000]; 20]).unwrap().sum;
    let added = air.add_noise(&spec, 3.0, &[0.123; 1000]).unwrap();
    let step = release::grid_step(3.0).unwrap() as f32;
    assert!(aggregated.iter().chain(&added).all(|value| value % step == 0.0));
    let apart = air.noise(&spec, 3.0, 10).unwrap_err().to_string();
    assert!(apart.contains("add_noise"), "{apart}");
}

#[test]
fn separate_noise_matches_that_of_aggregate() {
    let air = air("[uplink]\nscheme = \"gaussian\"\nnoise_std = 3.0\n[privacy]\nclip = 1.0", None);
    let spec = RoundSpec::of_all(1, 1, 1);
    let update = vec![0.01_f32; 1000];
    let sum: Vec<f64> = update.iter().map(|&value| value.into()).collect();
    let (added, aggregated) =
        (air.add_noise(&spec, 3.0, &sum).unwrap(), air.aggregate(&spec, &[update]).unwrap().sum);
    assert!(added.iter().zip(&aggregated).all(|(left, right)| (left - right).abs() < 1e-5));
}

/// The views of a ledger with one round.
fn recorded(air: AirInterface, spec: &RoundSpec) -> Statement {
    let air = Arc::new(air);
    let mut ledger = AirLedger::new(Arc::clone(&air)).unwrap();
    ledger.record(spec, &air.realise(spec).unwrap()).unwrap();
    ledger.statement(View::Idealised).unwrap().unwrap()
}

#[test]
fn only_noise_for_release_is_a_guarantee() {
    let spec = RoundSpec::of_all(1, 1, 20);
    let simulated = recorded(air(CLIPPED, None), &spec);
    assert!(!simulated.guarantee && simulated.reason.unwrap().contains("simulation's generator"));
    let released = recorded(air(CLIPPED, None), &spec.clone().for_release());
    assert!(released.guarantee, "{:?}", released.reason);
    assert_eq!(released.epsilon, simulated.epsilon);
    let chips = recorded(
        air(CHIPS.replace("[privacy]", "sequences = 25\n[privacy]").as_str(), None),
        &spec.clone().for_release(),
    );
    assert!(!chips.guarantee && chips.reason.unwrap().contains("chip"));
    let tiny = CLIPPED.to_owned() + "\ndelta = 1e-30";
    let tiny = recorded(air(&tiny, None), &spec.for_release());
    assert!(!tiny.guarantee && tiny.reason.unwrap().contains("delta"));
}

#[test]
fn a_plan_says_which_noise_it_is_about() {
    let plan = air(CLIPPED, None).report(20, 10).unwrap();
    assert!(plan.views.get(View::Idealised).unwrap().guarantee);
    assert!(plan.notes.iter().any(|note| note.contains("fit for release")), "{:?}", plan.notes);
    let chips = air(CHIPS.replace("[privacy]", "sequences = 25\n[privacy]").as_str(), None);
    assert!(!chips.report(20, 10).unwrap().views.get(View::Idealised).unwrap().guarantee);
}

#[test]
fn the_file_holds_the_noise_of_rounds() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.jsonl");
    let air = Arc::new(air(CLIPPED, None));
    let record = |spec: &RoundSpec| {
        let mut ledger = AirLedger::open(Arc::clone(&air), &path).unwrap();
        ledger.record(spec, &air.realise(spec).unwrap()).unwrap();
    };
    let is_guarantee = || {
        let ledger = AirLedger::open(Arc::clone(&air), &path).unwrap();
        ledger.statement(View::Idealised).unwrap().unwrap().guarantee
    };
    record(&RoundSpec::of_all(1, 1, 20).for_release());
    assert!(is_guarantee());
    record(&RoundSpec::of_all(1, 2, 20));
    assert!(!is_guarantee());
    // Files of earlier versions have no such field.
    let text = std::fs::read_to_string(&path).unwrap();
    let first_round = text.lines().take(2).collect::<Vec<_>>().join("\n") + "\n";
    std::fs::write(&path, first_round.replace("\"noise\":\"release\",", "")).unwrap();
    assert!(!is_guarantee());
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_one() {
    for (misspelt, known) in [("clipp", "clip"), ("snrdb", "snr_db")] {
        let keys = BTreeMap::from([(misspelt, 1.0)]);
        let error = AirInterface::from_keys(keys, None).unwrap_err().to_string();
        assert_eq!(error, format!("there is no key {misspelt}; did you mean {known}?"));
    }
}

#[test]
fn air_and_federation_have_the_same_account() {
    let experiment = Experiment::parse("a test", FEW).unwrap();
    let federation = Federation::new(&experiment).unwrap();
    let ours = AirInterface::from_experiment(&experiment).unwrap().report(7, 10).unwrap();
    let theirs = federation.accounting().unwrap().report(experiment.settings(), 10, None).unwrap();
    for view in View::ALL {
        let epsilon = |views: &floras_privacy::Views| views.get(view).and_then(|statement| statement.epsilon);
        match (epsilon(&ours.views), epsilon(&theirs.views)) {
            // What floating-point arithmetic costs.
            (Some(ours), Some(theirs)) => {
                assert!((3e-5..1e-3).contains(&(ours - theirs)), "{ours} {theirs}")
            }
            (ours, theirs) => assert_eq!(ours, theirs),
        }
    }
    assert_eq!((ours.delta, ours.rounds), (theirs.delta, theirs.rounds));
}

/// A file with a header and two rounds, and the interface that it belongs to.
fn file_of_two_rounds(path: &std::path::Path) -> (Arc<AirInterface>, Vec<u8>) {
    let air = Arc::new(air(CLIPPED, None));
    let mut ledger = AirLedger::open(Arc::clone(&air), path).unwrap();
    for round in 1..=2 {
        let spec = RoundSpec::of_all(1, round, 20);
        ledger.record(&spec, &air.realise(&spec).unwrap()).unwrap();
    }
    (air, std::fs::read(path).unwrap())
}

#[test]
fn an_incomplete_end_of_the_file_is_repaired() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.jsonl");
    let (air, whole) = file_of_two_rounds(&path);
    let header = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    for (length, rounds) in
        [(whole.len() - 1, 2), (whole.len() - 20, 1), (header, 0), (header - 1, 0), (30, 0), (0, 0)]
    {
        std::fs::write(&path, &whole[..length]).unwrap();
        let mut ledger = AirLedger::open(Arc::clone(&air), &path).unwrap();
        assert_eq!(ledger.rounds(), rounds, "{length} bytes");
        for round in rounds + 1..=2 {
            let spec = RoundSpec::of_all(1, round, 20);
            ledger.record(&spec, &air.realise(&spec).unwrap()).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), whole, "{length} bytes");
    }
}

#[test]
fn a_rejected_file_is_not_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.jsonl");
    let (ours, whole) = file_of_two_rounds(&path);
    let other = Arc::new(air(&CLIPPED.replace("clip = 1.0", "clip = 2.0"), None));
    let text = String::from_utf8(whole).unwrap();
    for (text, air, reason) in [
        (text.clone(), &other, "clip is 1.0 there and 2.0 here"),
        (text.lines().next().unwrap().to_owned(), &other, "clip is 1.0 there and 2.0 here"),
        ("{\"important\": 1}".to_owned(), &ours, "line 1: this is not a ledger of an uplink"),
        ("\n".to_owned(), &ours, "line 1: this is not a ledger of an uplink"),
        (text.replace("\"round\":2", "\"round\":3"), &ours, "line 3: round 3 follows round 1"),
        (text.replace("\"among\":20,", ""), &ours, "line 2: selected, among, gains or noise_std is missing"),
        (text.replace("\"mu\":[", "\"mu\":[1.0,"), &ours, "line 2: there must be 20 values of mu"),
        (text.replace("\"gains\":[", "\"gains\":[1.0,"), &ours, "line 2: there must be 20 finite gains"),
    ] {
        std::fs::write(&path, &text).unwrap();
        let error = AirLedger::open(Arc::clone(air), &path).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_file_of_the_earlier_format_is_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.jsonl");
    let (air, whole) = file_of_two_rounds(&path);
    let text = String::from_utf8(whole).unwrap().replace("\"trial\":0,", "");
    std::fs::write(&path, text.replace("\"noise\":\"simulated\",", "")).unwrap();
    let ledger = AirLedger::open(air, &path).unwrap();
    assert_eq!(ledger.rounds(), 2);
    assert!(ledger.noise_caveat().unwrap().contains("simulation's generator"));
}

#[test]
fn realised_channel_and_signal_are_the_aggregates() {
    for settings in [CLIPPED, CHIPS] {
        let (air, spec) = (air(settings, None), RoundSpec::of_all(3, 2, 20));
        let channel = air.aggregate(&spec, &vec![vec![0.0; 5]; 20]).unwrap().channel.unwrap();
        assert_eq!(air.realise(&spec).unwrap(), channel, "{settings}");
        let signal = air.signal(&spec, 5).unwrap().unwrap();
        for (place, gain) in channel.gains().iter().enumerate() {
            let expected = signal.amplitudes[place] * signal.weights[signal.assigned[place]];
            assert!((gain - expected).abs() < 1e-9 * (1.0 + gain.abs()), "{settings}");
        }
    }
}
