//! Clients that are silent although they were selected: in every scheme, in the records and in the account.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use floras_core::View;
use floras_phy::{Round, precode};
use floras_privacy::gaussian;
use floras_sim::inquiry::ExperimentAccount;
use floras_sim::{
    AirInterface, Cohort, Entry, Event, Experiment, Federation, LedgerEntry, PreparedRun, RoundMetrics,
    RunDirectory, Trial, schemes,
};

mod support;

use support::{experiment, lasting_files, run};

const SMALL: [&str; 10] = [
    "data.set=synthetic",
    "data.features=4",
    "data.classes=3",
    "data.train=300",
    "data.test=50",
    "clients.total=30",
    "clients.per_round=10",
    "uplink.sequences=14",
    "trials=2",
    "rounds=6",
];

/// Three clients on three sequences with MMSE weights; Re(h)/s has unit variance.
const FEW: [&str; 8] = [
    "uplink.receiver=mmse",
    "uplink.sequences=3",
    "uplink.length=4",
    "uplink.snr_db=-3",
    "clients.total=3",
    "clients.per_round=3",
    "privacy.delta=0.001",
    "rounds=1",
];

fn small(more: &[&str]) -> Experiment {
    experiment(&[&SMALL[..], &["privacy.clip=1"], more].concat())
}

fn lines<T: serde::de::DeserializeOwned>(directory: &Path, name: &str) -> Vec<T> {
    let text = fs::read_to_string(directory.join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn linear_schemes_run_with_dropouts_at_both_fidelities() {
    let directory = tempfile::tempdir().unwrap();
    for entry in schemes::all() {
        let is_linear =
            small(&[&format!("uplink.scheme={}", entry.name())]).settings().uplink.scheme.is_linear();
        if !is_linear {
            // Their runs with dropouts are in `nonlinear.rs`.
            continue;
        }
        for fidelity in ["symbol", "chip"] {
            let (scheme, level) =
                (format!("uplink.scheme={}", entry.name()), format!("uplink.fidelity={fidelity}"));
            let experiment = small(&["clients.dropout=0.6", "privacy.clip=none", &scheme, &level]);
            let [one, two] = [1, 2].map(|threads| {
                let path = directory.path().join(format!("{}-{fidelity}-{threads}", entry.name()));
                match run(&experiment, &path, Entry::New, threads) {
                    Ok(_) => Some(path),
                    Err(error) => {
                        assert!(error.to_string().contains("has no chip level"), "{error}");
                        None
                    }
                }
            });
            let (Some(one), Some(two)) = (one, two) else { continue };
            assert_eq!(lasting_files(&one), lasting_files(&two), "{scheme}");
            let metrics: Vec<RoundMetrics> = lines(&one, "metrics.jsonl");
            let ledger: Vec<LedgerEntry> = lines(&one, "ledger.jsonl");
            for (round, entry) in metrics.iter().zip(&ledger) {
                assert_eq!(round.silent, Some(10 - entry.clients.len() as u32));
                assert_eq!((entry.selected, entry.among), (Some(10), Some(30)));
            }
            assert!(metrics.iter().any(|round| round.silent > Some(3)));
        }
    }
}

#[test]
fn the_step_is_the_mean_of_the_senders() {
    let federation = Federation::new(&small(&["clients.dropout=0.5", "uplink.scheme=ideal"])).unwrap();
    let mut trial = Trial::begin(&federation, 0).unwrap();
    for round in 1..=6 {
        let (mut model, updates) = (trial.parameters().to_vec(), trial.expected_updates(trial.id()).unwrap());
        let outcome = trial.step().unwrap();
        assert_eq!(outcome.selected, federation.select(0, round));
        assert_eq!(outcome.clients, federation.senders(0, round, &outcome.selected));
        assert_eq!(updates.len(), outcome.clients.len());
        let mut sum = vec![0.0; model.len()];
        let mut sent = updates.clone();
        precode::clip(&mut sent, 1.0).unwrap();
        for (place, total) in sum.iter_mut().enumerate() {
            *total = sent.iter().map(|update| update[place]).sum();
        }
        precode::server_step(&mut model, &sum, updates.len()).unwrap();
        for (ours, expected) in trial.parameters().iter().zip(&model) {
            assert!((ours - expected).abs() < 1e-5 * (1.0 + expected.abs()), "{ours} {expected}");
        }
    }
}

#[test]
fn a_round_of_silent_clients_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("silent.csv");
    let rows: String = (0..30).map(|client| format!("2,{client}\n")).collect();
    fs::write(&trace, format!("round,client\n{rows}3,0\n")).unwrap();
    let dropout = format!("clients.dropout=trace={}", trace.display());
    for scheme in ["floras", "channel-inversion", "gaussian"] {
        let experiment = small(&[&dropout, &format!("uplink.scheme={scheme}")]);
        let federation = Federation::new(&experiment).unwrap();
        let mut trial = Trial::begin(&federation, 0).unwrap();
        assert_eq!(trial.step().unwrap().metrics.silent, Some(0));
        let before = trial.parameters().to_vec();
        let outcome = trial.step().unwrap();
        assert_eq!((outcome.metrics.silent, outcome.clients.len()), (Some(10), 0));
        assert!(outcome.aggregate.is_none() && outcome.metrics.test_loss.is_some());
        assert_eq!(outcome.metrics.energy, (scheme != "gaussian").then_some(0.0));
        assert_eq!(trial.parameters(), before);
        trial.step().unwrap();
        assert_ne!(trial.parameters(), before);
        let path = directory.path().join(scheme);
        let outcome = run(&experiment, &path, Entry::New, 2).unwrap();
        assert_eq!(outcome.summary.cost.is_some(), scheme != "gaussian");
        let entry = &lines::<LedgerEntry>(&path, "ledger.jsonl")[1];
        assert!(entry.clients.is_empty() && entry.mu.is_empty() && !entry.spent.is_empty());
        fs::write(&trace, format!("round,client\n{rows}")).unwrap();
        let changed = run(&experiment, &path, Entry::Resume, 2);
        fs::write(&trace, format!("round,client\n{rows}3,0\n")).unwrap();
        assert!(changed.is_ok(), "a complete run is not run again");
    }
}

/// The sequences of silent clients do not count as unused, and the selection does not count as secret: the account is that of
/// 10 clients out of 10 on 14 sequences.
#[test]
fn dropouts_take_no_amplification_by_sampling() {
    for scheme in ["uplink.receiver=clipped=1", "uplink.scheme=gaussian"] {
        let account = |more: &[&str]| {
            let experiment = small(&[&[scheme][..], more].concat());
            ExperimentAccount::new(&experiment).unwrap().report().unwrap()
        };
        let (with, sampled) = (account(&["clients.dropout=0.1"]), account(&[]));
        let known = account(&["clients.total=10"]);
        for view in View::ALL {
            let epsilon =
                |views: &floras_privacy::Views| views.get(view).and_then(|statement| statement.epsilon);
            assert_eq!(epsilon(&with.views), epsilon(&known.views), "{view}");
            if view == View::Idealised && epsilon(&with.views).is_some() {
                assert!(epsilon(&with.views) > epsilon(&sampled.views));
            }
            if let Some(statement) = with.views.get(view) {
                let assumption = "whether a client is silent does not depend on its data";
                assert!(statement.assumptions.iter().any(|assumed| assumed == assumption), "{view}");
            }
        }
        let note = with.notes.iter().find(|note| note.starts_with("clients drop out")).unwrap();
        assert!(note.contains("K = 10 of M = 30 clients does not count as secret"), "{note}");
        assert_eq!(note.contains("γ = N − K = 4"), scheme.contains("clipped"));
        assert!(!sampled.notes.iter().any(|note| note.contains("drop out")));
    }
}

#[test]
fn run_ledger_and_budget_account_as_a_cohort() {
    let directory = tempfile::tempdir().unwrap();
    let changes = ["uplink.receiver=clipped=1", "clients.dropout=0.3"];
    let experiment = small(&changes);
    let summary = run(&experiment, directory.path(), Entry::New, 2).unwrap().summary;
    let report = ExperimentAccount::new(&experiment).unwrap().report().unwrap();
    assert_eq!(summary.privacy.views, report.views);
    assert!(summary.privacy.notes.iter().any(|note| note.starts_with("clients drop out")));
    let air = AirInterface::from_experiment(&experiment).unwrap();
    let cohort = air.spend(Cohort { answered: 9, selected: 10, among: 30 }).unwrap();
    let spent = &lines::<LedgerEntry>(directory.path(), "ledger.jsonl")[0].spent;
    for view in View::RIGOROUS {
        let (ours, theirs) = (spent[&view.field()], cohort[&view.field()]);
        // The loss of floating-point arithmetic in a release.
        assert!((0.0..1e-3 + 1e-5 * ours).contains(&(theirs - ours)), "{view}: {ours} {theirs}");
    }
    let allowed = |more: &str| {
        let budget = format!("privacy.budget={}", 3.0 * spent["actual"]);
        let experiment = small(&[&changes[..1], &[more, &budget, "rounds=200"]].concat());
        Federation::new(&experiment).unwrap().rounds()
    };
    assert_eq!(allowed("clients.dropout=0.3"), allowed("clients.total=10"));
    assert!(allowed("clients.dropout=0.3") < allowed("clients.dropout=0"));
}

/// Fewer admitted clients have a larger common amplitude, and therefore less noise: the estimate is drawn with dropouts.
#[test]
fn schemes_without_sequences_are_estimated_with_dropouts() {
    let epsilon = |dropout: &str| {
        let changes = [
            "uplink.scheme=channel-inversion",
            "uplink.power_rule=worst-admitted",
            "clients.total=10",
            dropout,
        ];
        ExperimentAccount::new(&small(&changes)).unwrap().epsilon(View::Actual).unwrap().unwrap()
    };
    assert!(epsilon("clients.dropout=0.8") > 1.1 * epsilon("clients.dropout=0"));
}

/// With MMSE weights, a silent client reduces the noise at this SNR: an estimate is drawn with dropouts.
#[test]
fn mmse_weights_are_estimated_with_dropouts() {
    let epsilon = |dropout: &str| {
        let estimated = ["uplink.modulation=phase-corrected", "uplink.channel_error=0.01"];
        let experiment = small(&[&FEW[..], &estimated, &[dropout]].concat());
        ExperimentAccount::new(&experiment).unwrap().epsilon(View::Actual).unwrap().unwrap()
    };
    let (with, without) = (epsilon("clients.dropout=0.9"), epsilon("clients.dropout=0"));
    assert!(with > 1.02 * without, "{with} {without}");
}

/// `δ(ε)` of a client beside two silent ones, over 50,000 rounds with Re(h)/s of unit variance: more than 20% above the `δ` that
/// was accounted for without dropouts, and below it with them. The mean has a standard error of about 3%.
#[test]
fn silence_leaves_less_noise_with_mmse_weights() {
    let with = |dropout: &str| small(&[&FEW[..], &[dropout]].concat());
    let uplink = with("clients.dropout=0.9").settings().uplink.build(1).unwrap();
    let mus: Vec<f64> = (1..=50_000)
        .map(|number| {
            let round = Round::new(1, 0, number, &[0]).unwrap().with_selected(&[0, 1, 2]).unwrap();
            uplink.realise(&round).unwrap().mu(2.0)[0]
        })
        .collect();
    let delta = |dropout: &str| {
        let report = ExperimentAccount::new(&with(dropout)).unwrap().report().unwrap();
        let actual = report.views.get(View::Actual).unwrap();
        assert!(actual.guarantee);
        let epsilon = actual.epsilon.unwrap();
        mus.iter().map(|&mu| gaussian::delta(epsilon, mu)).sum::<f64>() / mus.len() as f64
    };
    assert!(delta("clients.dropout=0") > 1.2e-3, "{}", delta("clients.dropout=0"));
    assert!(delta("clients.dropout=0.9") < 1e-3, "{}", delta("clients.dropout=0.9"));
    let normalised = small(&[&FEW[..], &["clients.dropout=0.9", "privacy.normalise=paper"]].concat());
    let report = ExperimentAccount::new(&normalised).unwrap().report().unwrap();
    assert!(!report.views.get(View::Actual).unwrap().guarantee);
    let air = AirInterface::from_experiment(&with("clients.dropout=0")).unwrap();
    let actual = |answered: u32| air.spend(Cohort { answered, selected: 3, among: 3 }).unwrap()["actual"];
    assert!(actual(2) > actual(3));
}

/// The worst place in a cell is searched among all clients, although the selection does not count as secret.
#[test]
fn dropouts_leave_all_clients_to_the_search() {
    let experiment = small(&["uplink.path_loss=exponent=3.7", "clients.dropout=0.1"]);
    let report = ExperimentAccount::new(&experiment).unwrap().report().unwrap();
    let reason = report.views.get(View::Actual).unwrap().reason.clone().unwrap();
    assert!(reason.contains("among 60 in their places"), "{reason}");
}

/// In half of these rounds at most one client sends.
#[test]
fn silent_rounds_are_not_missing_signals() {
    let directory = tempfile::tempdir().unwrap();
    let [whole, resumed] = ["whole", "resumed"].map(|name| directory.path().join(name));
    let few = ["clients.per_round=2", "clients.dropout=0.7", "rounds=20", "record.signal=all"];
    let experiment = small(&few);
    run(&experiment, &whole, Entry::New, 2).unwrap();
    let lines: Vec<RoundMetrics> = lines(&whole, "metrics.jsonl");
    assert!(lines[..20].iter().any(|round| round.silent == Some(2)));
    for round in &lines {
        let path = RunDirectory::signal_file(&whole, round.trial, round.round);
        assert_eq!(path.exists(), round.silent < Some(2));
    }
    let stop = AtomicBool::new(false);
    let watch = |event| {
        if let Event::TrialBegins { trial: 1, .. } = event {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let prepared = PreparedRun::new(&experiment, &resumed, Entry::New, 1).unwrap();
    assert!(prepared.run(&watch, &stop).is_err());
    drop(prepared);
    // The first trial is complete and is not run again.
    assert_eq!(run(&experiment, &resumed, Entry::Resume, 1).unwrap().rounds_done, 20);
    assert_eq!(lasting_files(&whole), lasting_files(&resumed));
}

#[test]
fn a_round_that_diverges_counts_silent_clients() {
    let changes = ["clients.dropout=0.5", "local.rate=1e6", "privacy.clip=none", "uplink.scheme=ideal"];
    let federation = Federation::new(&small(&[&changes[..], &["rounds=300"]].concat())).unwrap();
    let mut trial = Trial::begin(&federation, 0).unwrap();
    let last =
        std::iter::repeat_with(|| trial.step().unwrap()).find(|outcome| outcome.metrics.diverged).unwrap();
    assert_eq!(last.metrics.silent, Some((last.selected.len() - last.clients.len()) as u32));
}

#[test]
fn without_dropouts_no_byte_changes() {
    let directory = tempfile::tempdir().unwrap();
    let [plain, zero] = [&[][..], &["clients.dropout=0"]].map(|more| {
        let path = directory.path().join(more.len().to_string());
        run(&small(more), &path, Entry::New, 2).unwrap();
        lasting_files(&path)
    });
    assert_eq!(plain, zero);
    let text = String::from_utf8(plain[Path::new("metrics.jsonl")].clone()).unwrap();
    assert!(!text.contains("silent"));
}

#[test]
fn wrong_dropouts_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("silent.csv");
    let refusal = |more: &[&str]| Federation::new(&small(more)).unwrap_err().to_string();
    let dropout = format!("clients.dropout=trace={}", trace.display());
    let missing = refusal(&[&dropout]);
    assert!(missing.starts_with("clients.dropout: cannot read the trace "), "{missing}");
    fs::write(&trace, "round,client\n1,2\n1,30\n").unwrap();
    let name = trace.display();
    assert_eq!(
        refusal(&[&dropout]),
        format!(
            "clients.dropout: line 3 of the trace {name}: the client '30' is not an integer below 30, the number of clients; \
             expected round,client, as in 1,3"
        )
    );
    let account = ExperimentAccount::new(&small(&[&dropout, "uplink.scheme=gaussian"]));
    assert!(account.err().unwrap().to_string().contains("line 3"));
    let noiseless = refusal(&["clients.dropout=0.1", "uplink.snr_db=inf", "uplink.sequences=10"]);
    assert!(noiseless.starts_with("clients.dropout: "), "{noiseless}");
}
