//! Networks in whole runs: the same bytes for any number of threads and interruptions, and messages that name what does not fit.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicBool, Ordering};

use floras_sim::{
    Entry, Event, Experiment, ExperimentBuilder, Federation, PreparedRun, SimError, Status, Trial,
    TrialOptions,
};

mod support;

use support::{experiment, lasting_files, run};

const LAYERS: &str = r#"model.layers=["conv=4x5,stride=2", "group-norm=2", "relu", "max-pool=2", "dropout=0.2",
    "linear=12", "relu"]"#;

fn small(more: &[&str]) -> Experiment {
    let all = [
        "data.train=120",
        "data.test=700",
        "clients.total=12",
        "clients.per_round=8",
        "trials=2",
        "rounds=5",
        "local.batch=4",
        "local.rate=0.1",
        "privacy.clip=1",
    ];
    experiment(&[&all, more].concat())
}

#[test]
fn threads_and_resume_do_not_change_a_byte() {
    let directory = tempfile::tempdir().unwrap();
    let networks: [(&str, &[&str]); 3] = [
        ("layers", &["model.kind=layers", LAYERS, "data.crop=2", "data.flip=true", "data.normalise=true"]),
        (
            "residual",
            &["model.kind=layers", r#"model.layers=["residual=4,stride=4,groups=2", "average-pool"]"#],
        ),
        ("mlp", &["model.kind=mlp", "model.hidden=[9, 7]"]),
    ];
    for (name, more) in networks {
        let experiment = small(more);
        let files = [1, 2, 5].map(|threads| {
            let path = directory.path().join(format!("{name}-{threads}"));
            run(&experiment, &path, Entry::New, threads).unwrap();
            lasting_files(&path)
        });
        assert!(files[0] == files[1] && files[0] == files[2], "{name}");
        let path = directory.path().join(format!("{name}-resumed"));
        let stop = AtomicBool::new(false);
        let watch = |event: Event| {
            stop.fetch_or(matches!(event, Event::TrialEnds { trial: 0, .. }), Ordering::Relaxed);
        };
        let stopped = PreparedRun::new(&experiment, &path, Entry::New, 1).unwrap().run(&watch, &stop);
        assert!(matches!(stopped, Err(SimError::Stopped { .. })), "{name}");
        run(&experiment, &path, Entry::Resume, 2).unwrap();
        assert!(lasting_files(&path) == files[0], "{name}");
        resumes_halfway(&experiment);
    }
}

/// A trial that resumes from its parameters after two rounds ends with the same parameters.
fn resumes_halfway(experiment: &Experiment) {
    let federation = Federation::new(experiment).unwrap();
    let mut whole = Trial::begin(&federation, 1).unwrap();
    (0..2).for_each(|_| drop(whole.step().unwrap()));
    let (at, halfway) = ((2, Status::Running), whole.parameters().to_vec());
    let mut resumed = Trial::at(&federation, 1, TrialOptions::default(), at, halfway).unwrap();
    for trial in [&mut whole, &mut resumed] {
        (2..5).for_each(|_| drop(trial.step().unwrap()));
    }
    assert_eq!(resumed.parameters(), whole.parameters());
}

#[test]
fn a_small_convolutional_network_learns() {
    let settings = [
        "model.kind=layers",
        LAYERS,
        "uplink.scheme=ideal",
        "data.train=2000",
        "clients.total=10",
        "rounds=15",
        "local.rate=0.2",
        "data.normalise=true",
    ];
    let experiment = small(&settings);
    let federation = Federation::new(&experiment).unwrap();
    let mut trial = Trial::begin(&federation, 0).unwrap();
    let accuracy = (0..15).filter_map(|_| trial.step().unwrap().metrics.test_accuracy).last().unwrap();
    assert!(accuracy > 0.7, "{accuracy}");
}

/// Every draw changes the updates of the clients, and nothing else does.
#[test]
fn dropout_and_augmentation_have_their_own_streams() {
    let updates = |more: &[&str]| {
        let federation = Federation::new(&small(more)).unwrap();
        let trial = Trial::begin(&federation, 0).unwrap();
        trial.expected_updates(0.into()).unwrap()
    };
    let mlp = ["model.kind=layers", r#"model.layers=["linear=6", "relu"]"#];
    let dropout = ["model.kind=layers", r#"model.layers=["linear=6", "relu", "dropout=0"]"#];
    assert_eq!(updates(&mlp), updates(&dropout), "the order of the samples is the same");
    let dropout = ["model.kind=layers", r#"model.layers=["linear=6", "relu", "dropout=0.5"]"#];
    assert_eq!(updates(&dropout), updates(&dropout));
    assert_ne!(updates(&mlp), updates(&dropout));
    let cropped = [&mlp[..], &["data.crop=3"]].concat();
    assert_eq!(updates(&cropped), updates(&cropped));
    assert_ne!(updates(&mlp), updates(&cropped));
}

#[test]
fn shapes_turn_vectors_into_images() {
    let settings =
        ["data.set=synthetic", "data.shape=3x6x5", "model.kind=layers", r#"model.layers=["conv=2x3"]"#];
    let federation = Federation::new(&small(&settings)).unwrap();
    // 2·27 + 2, and 24 inputs of 10 classes.
    assert_eq!(federation.model().parameters(), 56 + 250);
    assert_eq!(federation.test().shape().to_string(), "3x6x5");
}

#[test]
fn wrong_networks_are_refused_in_words() {
    let refused = |settings: &[&str]| {
        let builder = ExperimentBuilder::new();
        let builder = settings.iter().fold(builder, |builder, setting| builder.assign(setting).unwrap());
        match builder.build() {
            Err(error) => error.to_string(),
            Ok(experiment) => Federation::new(&experiment).unwrap_err().to_string(),
        }
    };
    let layers = |layers: &str| refused(&["model.kind=layers", &format!("model.layers={layers}")]);
    let unknown = layers(r#"["relu", "convolution=3x3"]"#);
    assert!(unknown.starts_with("model.layers[2]: the layer must be conv=CxK"), "{unknown}");
    assert_eq!(
        layers(r#"["conv=8x3", "max-pool=19"]"#),
        "model: layer 2 (max-pool=19): a square of 19x19 pixels does not fit into an input of 8x18x18"
    );
    assert_eq!(
        refused(&["model.kind=layers"]),
        "model.layers must be given with the kind \"layers\", as in layers = [\"linear=64\", \"relu\"]"
    );
    assert_eq!(
        refused(&["model.kind=resnet", "model.groups=48"]),
        "model: layer 2 (group-norm=48): 48 groups do not divide the 64 channels of an input of 64x20x20"
    );
    assert_eq!(
        refused(&["model.kind=cnn", "data.set=synthetic"]),
        "model: layer 1 (conv=32x3): a kernel of 3x3 pixels does not fit into an input of 20x1x1 with padding 0"
    );
    assert_eq!(
        refused(&["model.hidden=\"many\""]),
        "model.hidden must be an integer or a list of integers, as in [128, 64], not \"many\""
    );
    assert_eq!(refused(&["model.hidden=[]"]), "model.hidden must be 1 to 100 layers, not 0 layers");
    assert_eq!(refused(&["model.hidden=[4, 0]"]), "model.hidden must be between 1 and 65536, not 0");
    assert_eq!(
        refused(&["data.flip=true", "data.set=synthetic"]),
        "data.flip: samples of the shape 20x1x1 are not images (channels x height x width)"
    );
    assert_eq!(refused(&["data.crop=20"]), "data.crop: 20 pixels are too many for images of 1x20x20");
    assert_eq!(
        refused(&["data.normalise=true", "data.set=synthetic"]),
        "data.normalise: there are no published constants for the set \"synthetic\": leave it out"
    );
    assert_eq!(
        refused(&["data.set=synthetic", "data.features=5", "data.shape=3x2x2"]),
        "data.shape: 3x2x2 has 12 features, but data.features is 5"
    );
    assert!(
        refused(&["data.shape=3x2"])
            .starts_with("data.shape: the shape of a sample must be channels x height")
    );
}
