//! The experiment file: error messages, and no text that makes the reader panic.

#![expect(clippy::unwrap_used, reason = "tests")]
use floras_sim::{Experiment, ExperimentBuilder, PRESETS, Settings, Sweep};
use proptest::prelude::*;
use toml::{Table, Value};

fn message(text: &str) -> String {
    Experiment::parse("test.toml", text).unwrap_err().to_string()
}

#[test]
fn wrong_values_are_rejected_with_their_key() {
    for (text, expected) in [
        ("rounds = 0", "rounds must be between 1 and 4294967294, not 0"),
        ("trials = 70000", "trials must be between 1 and 65536, not 70000"),
        ("seed = -1", "seed must be a non-negative integer, not -1"),
        (
            "name = \"a/b\"",
            "name must be 1 to 100 letters, digits, '-', '_' and '.', not beginning with '.' or '-', not \"a/b\"",
        ),
        ("data = 3", "data must be a section, [data], not 3"),
        (
            "[data]\nset = \"imagenet\"",
            "data.set must be digits20, digits28, mnist, fashion-mnist, cifar10, synthetic or arrays, not \"imagenet\"",
        ),
        (
            "[data]\npartition = { shards = 0.5 }",
            "data.partition must be iid, one-label, shards=s, dirichlet=a or unequal=u (s an integer between 1 and 10000, a between 0.001 and 1e6, u between 0 and 5), not { shards = 0.5 }",
        ),
        (
            "[data]\npartition = { dirichlet = 0 }",
            "data.partition must be iid, one-label, shards=s, dirichlet=a or unequal=u (",
        ),
        (
            "[clients]\nper_round = 21",
            "clients.per_round: K = 21 clients per round cannot be chosen from M = 20 in all",
        ),
        (
            "[clients]\ndropout = 1.0",
            "clients.dropout must be p or trace=file (p at least 0 and below 1), not 1.0",
        ),
        (
            "[clients]\ndropout = \"often\"",
            "clients.dropout must be p or trace=file (p at least 0 and below 1), not \"often\"",
        ),
        (
            "[clients]\ndropout = { file = \"x.csv\" }",
            "clients.dropout must be p or trace=file (p at least 0 and below 1), not { file = \"x.csv\" }",
        ),
        ("[uplink]\nassignment = \"random\"", "uplink.assignment must be seed or keyed, not \"random\""),
        (
            "[uplink]\nsequences = 19",
            "uplink.sequences: 19 sequences (N) cannot serve 20 clients (K) per round: N must be at least K, and N − K is the number γ of unused sequences",
        ),
        ("[uplink]\nsnr_db = \"high\"", "uplink.snr_db must be a number, not \"high\""),
        (
            "[uplink]\nsnr_db = 101",
            "uplink.snr_db must be between -100 and 100, or inf for no noise, not 101",
        ),
        (
            "[uplink]\nfading = { rician = -1 }",
            "uplink.fading must be rayleigh, none, rician=k, nakagami=m or trace=file (k between 0 and 1e6, a ratio of powers, not dB;",
        ),
        (
            "[uplink]\nfading = \"rician\"",
            "uplink.fading must be rayleigh, none, rician=k, nakagami=m or trace=file (",
        ),
        (
            "[uplink]\nfamily = \"hadamard\"",
            "uplink.family must be walsh, orthonormal, gaussian, gold, zadoff-chu or file=path, not \"hadamard\"",
        ),
        (
            "[uplink]\nfamily = { file = \"\" }",
            "uplink.family must be walsh, orthonormal, gaussian, gold, zadoff-chu or file=path, not ",
        ),
        (
            "[uplink]\nreceiver = { clipped = 0 }",
            "uplink.receiver must be paper, mmse, mmse=k or clipped=c (k between 0.01 and 1e4, c between 1e-6 and 1e6), not ",
        ),
        ("[uplink]\nscheme = \"noma\"", "uplink.scheme must be floras, channel-inversion, phase-corrected, "),
        (
            "[uplink]\nscheme = \"flora\"",
            "uplink.scheme must be floras, channel-inversion, phase-corrected, broadband-inversion, power-control, artificial-noise, blind, cotaf, one-bit, fsk-vote, a-dsgd, d-dsgd, digital, ideal or gaussian, not \"flora\"; did you mean floras?",
        ),
        ("[local]\nepochs = 1\nsteps = 1", "local.steps: give either local.epochs or local.steps, not both"),
        (
            "[local]\nrate = { mu = 0.02 }",
            "local.rate must be a number above 0, { initial = 0.1, factor = 0.99, every = 10 } or { mu = 0.02, offset = 0 }, not { mu = 0.02 }",
        ),
        ("[local]\nrate = 0", "local.rate: the learning rate must be between 1e-12 and 1e6, not 0"),
        (
            "[privacy]\nclip = \"none\"\nnormalise = \"paper\"",
            "privacy.normalise: \"paper\" scales the longest update to norm C, and needs privacy.clip",
        ),
        ("[privacy]\nclip = 0.0", "privacy.clip must be between 1e-30 and 1e30, or \"none\", not 0"),
        ("[privacy]\nbudget = 0.0", "privacy.budget must be between 1e-9 and 100000, or \"none\", not 0"),
        (
            "[privacy]\nbudget = 8.0\nview = \"any\"",
            "privacy.view must be published, idealised, actual, any-channel or raw-signal, not \"any\"",
        ),
        (
            "[clients]\nweights = \"samples\"",
            "clients.weights: the privacy statement of scheme \"floras\" requires equal weights;",
        ),
        ("rounds = 5000000000", "rounds must be at most 4294967295, not 5000000000"),
        ("clients = [30, 10]", "clients must be a section, [clients], not [30, 10]"),
        ("[[uplink]]\nscheme = \"ideal\"", "uplink must be a section, [uplink], not "),
        (
            "[local]\nrate = [0.1, 0.99, 10]",
            "local.rate must be a single value (only model.hidden and model.layers take lists), not [",
        ),
        ("name = 1979-05-27", "name must be a number, a text in quotes or a table, not 1979-05-27"),
        (
            "[uplink]\nreceiver = { clipped = true }",
            "uplink.receiver must be paper, mmse, mmse=k or clipped=c",
        ),
        ("[uplink]\nreceiver = { clipped = [1] }", "uplink.receiver.clipped must be a single value"),
        ("seed = \"expected `x`, expected y\"", "seed must be a non-negative integer, not \"expected `x`"),
        ("[uplink]\n\"a`b\" = 1", "there is no key uplink.a`b; known in [uplink] are scheme"),
        (
            "[uplink]\nmodulation = \"phase-corrected=uniform=0.1\"\nphase_error = \"gaussian=0.3\"",
            "uplink.phase_error must be uniform=0.1, or left out, with modulation phase-corrected=uniform=0.1, not gaussian=0.3",
        ),
        ("[uplink]\nantennas = 0", "uplink.antennas must be between 1 and 64, not 0"),
        (
            "[uplink]\nmodulation = \"phase-corrected\"\nantennas = 2",
            "uplink.antennas must be 1 with phase-corrected modulation, which fits one antenna only, not 2",
        ),
        (
            "[uplink]\nscheme = \"channel-inversion\"\nantennas = 2",
            "uplink.antennas: this scheme receives with 1 antenna, not 2",
        ),
        (
            "[uplink]\nfading = \"trace=h.csv\"\nantennas = 2",
            "uplink.antennas: a trace has the channels of 1 antenna",
        ),
        ("[uplink]\nparameters_per_symbol = 3", "uplink.parameters_per_symbol"),
        (
            "[uplink]\nparameters_per_symbol = 2",
            "uplink.parameters_per_symbol must be 1 with modulation real; 2 needs complex modulation, not 2",
        ),
        (
            "[uplink]\nscheme = \"phase-corrected\"\nmodulation = \"complex\"\nparameters_per_symbol = 2",
            "uplink.parameters_per_symbol: scheme \"phase-corrected\" sends one parameter in a symbol",
        ),
        (
            "[uplink]\nmodulation = \"complex\"\nparameters_per_symbol = 2\nageing = \"correlation=0.9\"\ncoherence = 3",
            "uplink.coherence: it must be even",
        ),
        (
            "[data]\nset = \"mnist\"",
            "data.dir: the set \"mnist\" is read from files: give the directory that has them",
        ),
    ] {
        let found = message(text);
        assert!(found.starts_with(expected), "{text}\n gave {found}\n not {expected}");
    }
}

#[test]
fn a_wrong_value_is_wrong_under_any_scheme() {
    assert!(message("[uplink]\nscheme = \"ideal\"\nfading = 3").starts_with("uplink.fading must be"));
    assert!(message("[uplink]\nadmission = { amplitude = 0 }").starts_with("uplink.admission must be"));
    assert!(message("[sweep]\nrounds = [1]").starts_with("sweep: a file with this section is a grid"));
}

#[test]
fn unknown_keys_are_rejected_with_a_suggestion() {
    assert_eq!(message("round = 3"), "there is no key round; did you mean rounds?");
    assert_eq!(message("[uplink]\nsnr = 3"), "there is no key uplink.snr; did you mean uplink.snr_db?");
    assert_eq!(message("[uplink]\nsnrdb = 3"), "there is no key uplink.snrdb; did you mean uplink.snr_db?");
    assert_eq!(
        message("[clients]\nper_rounds = 3"),
        "there is no key clients.per_rounds; did you mean clients.per_round?"
    );
    assert!(
        message("[wireless]\nx = 1").starts_with("there is no key wireless; known are name, version, seed")
    );
}

#[test]
fn invalid_toml_is_rejected_with_its_line() {
    let found = message("rounds = 3\nrounds = ");
    assert!(found.starts_with("test.toml is not valid TOML: ") && found.contains("line 2"), "{found}");
}

#[test]
fn settings_in_code_are_checked() {
    let mut settings = Settings::default();
    assert!(Experiment::new(settings.clone()).is_ok());
    settings.rounds = 0;
    assert!(Experiment::new(settings.clone()).unwrap_err().to_string().starts_with("rounds must be"));
    settings = Settings::default();
    settings.data.train = None;
    assert!(
        Experiment::new(settings)
            .unwrap_err()
            .to_string()
            .contains("cannot be represented in an experiment file")
    );
    settings = Settings::default();
    settings.privacy.clip = Some(f64::NAN);
    assert!(Experiment::new(settings).unwrap_err().to_string().starts_with("privacy.clip must be"));
}

#[test]
fn overrides_take_toml_or_plain_words() {
    let assignments = [
        "data.partition = one-label",
        "uplink.receiver={ clipped = 2 }",
        "uplink.fading=rician=3",
        "rounds=7",
        "name=\"x\"",
        "local.steps=3",
    ];
    let new = ExperimentBuilder::new();
    let builder = assignments.iter().fold(new, |builder, assignment| builder.assign(assignment).unwrap());
    let text = builder.build().unwrap().to_toml();
    let lines = [
        "partition = \"one-label\"",
        "receiver = \"clipped=2\"",
        "fading = \"rician=3\"",
        "rounds = 7",
        "name = \"x\"",
        "steps = 3",
    ];
    for line in lines {
        assert!(text.contains(line), "{line} in {text}");
    }
    let epochs = builder.clone().set("local.epochs", "2").unwrap().build().unwrap();
    assert!(epochs.to_toml().contains("epochs = 2"), "epochs replace steps");
    for wrong in ["rounds", "=3", "rounds=", ""] {
        let found = builder.clone().assign(wrong).unwrap_err().to_string();
        assert_eq!(found, format!("a setting is key=value, as in uplink.snr_db=10, not '{wrong}'"));
    }
    assert!(builder.assign("rounds.x=3").unwrap_err().to_string().contains("not a section"));
}

#[test]
fn builders_reject_numbers_out_of_range() {
    let builder = ExperimentBuilder::preset("quick").unwrap().trials(2).rounds(3).seed(4);
    let settings = builder.build().unwrap().settings().clone();
    assert_eq!((settings.trials, settings.rounds, settings.seed), (2, 3, 4));
    let error = builder.clone().seed(u64::MAX).build().unwrap_err().to_string();
    assert!(
        error.starts_with("seed must be at most 9223372036854775807")
            && error.contains("18446744073709551615"),
        "{error}"
    );
    let error = builder.set_to("uplink.snr_db", 1e3).unwrap().build().unwrap_err().to_string();
    assert_eq!(error, "uplink.snr_db must be between -100 and 100, or inf for no noise, not 1000");
    assert!(ExperimentBuilder::preset("quik").is_err());
}

#[test]
fn none_switches_clipping_and_truncation_off() {
    let builder = ExperimentBuilder::preset("digits-iid").unwrap();
    let builder = builder.set("privacy.clip", "none").unwrap().set("uplink.truncate", "none").unwrap();
    let experiment = builder.build().unwrap();
    let settings = experiment.settings();
    assert_eq!((settings.privacy.clip, settings.uplink.truncate), (None, None));
    assert_eq!(builder.unused_keys(&experiment), Vec::<String>::new());
    let text = experiment.to_toml();
    assert!(text.contains("clip = \"none\"") && text.contains("truncate = \"none\""), "{text}");
}

#[test]
fn keys_without_effect_are_reported() {
    let text = "[uplink]\nscheme = \"ideal\"\nsnr_db = 3\n[model]\nhidden = 5";
    let builder = ExperimentBuilder::parse("a test", text).unwrap();
    assert_eq!(builder.unused_keys(&builder.build().unwrap()), ["uplink.snr_db", "model.hidden"]);
    let keyed = builder.set("uplink.assignment", "keyed").unwrap();
    let unused = keyed.unused_keys(&keyed.build().unwrap());
    assert_eq!(unused, ["uplink.snr_db", "uplink.assignment", "model.hidden"]);
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Value::Integer),
        (0_i64..50).prop_map(Value::Integer),
        any::<f64>().prop_map(Value::Float),
        any::<bool>().prop_map(Value::Boolean),
        "[a-z0-9-]{0,12}".prop_map(Value::String),
        prop::sample::select(vec![
            "iid",
            "one-label",
            "mlp",
            "ideal",
            "gaussian",
            "channel-inversion",
            "phase-corrected",
            "paper",
            "mmse",
            "chip",
            "synthetic",
            "samples",
            "none",
            "orthonormal",
            "despread",
        ])
        .prop_map(|name| Value::String(name.to_owned())),
    ];
    let names = prop::sample::select(vec![
        "dirichlet",
        "shards",
        "unequal",
        "rician",
        "nakagami",
        "clipped",
        "uniform",
        "gaussian",
        "power",
        "mu",
        "offset",
        "initial",
        "factor",
        "every",
    ]);
    leaf.prop_recursive(2, 6, 3, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec((names.clone(), inner), 0..3).prop_map(|pairs| {
                Value::Table(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

/// Every key in a preset or in its resolved form.
fn known_keys() -> Vec<String> {
    let mut keys = Vec::new();
    for preset in PRESETS {
        let resolved = Experiment::parse(preset.name, preset.text).unwrap().to_toml();
        for (section, value) in resolved.parse::<Table>().unwrap() {
            match value {
                Value::Table(inner) => keys.extend(inner.keys().map(|key| format!("{section}.{key}"))),
                _ => keys.push(section),
            }
        }
    }
    let more = [
        "uplink.admission",
        "uplink.noise_std",
        "uplink.artificial_noise_std",
        "uplink.phase_error",
        "local.steps",
        "model.hidden",
        "model.groups",
        "model.layers",
        "data.crop",
        "data.flip",
        "data.normalise",
        "data.shape",
        "data.dir",
        "privacy.view",
    ];
    keys.extend(more.map(str::to_owned));
    keys.sort();
    keys.dedup();
    keys
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn accepted_values_survive_the_file(
        changes in prop::collection::vec((prop::sample::select(known_keys()), any_value()), 1..5)
    ) {
        let mut builder = ExperimentBuilder::open(None).unwrap();
        for (key, value) in changes {
            builder = builder.clone().set_to(&key, value).unwrap_or(builder);
        }
        if let Ok(experiment) = builder.build() {
            let again = Experiment::parse("again", &experiment.to_toml()).unwrap();
            prop_assert_eq!(&again, &experiment);
            prop_assert_eq!(again.difference(&experiment), None);
            prop_assert!(Experiment::new(experiment.settings().clone()).is_ok());
        }
    }

    #[test]
    fn changed_presets_never_cause_a_panic(
        preset in 0_usize..4,
        edits in prop::collection::vec((any::<prop::sample::Index>(), "[ -~\n]{0,3}"), 1..6),
    ) {
        let mut text: Vec<char> = PRESETS[preset].text.chars().collect();
        for (at, new) in edits {
            let at = at.index(text.len());
            text.splice(at..(at + 2).min(text.len()), new.chars());
        }
        let text: String = text.into_iter().collect();
        let _ = Experiment::parse("edited", &text);
        let _ = Sweep::parse("edited", &format!("{text}\n[sweep]\nrounds = [1]"));
    }

    #[test]
    fn any_text_is_read_without_panic(text in "\\PC{0,80}", assignment in "\\PC{0,20}") {
        let _ = Experiment::parse("any", &text);
        let _ = Sweep::parse("any", &text);
        let _ = ExperimentBuilder::new().assign(&assignment);
    }
}
