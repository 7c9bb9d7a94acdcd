//! Runs with complex reception and several antennas: bytes, records, airtime, and privacy statements.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs::File;
use std::path::Path;

use floras_core::View;
use floras_phy::Complex64;
use floras_sim::inquiry::ExperimentAccount;
use floras_sim::{Entry, Experiment, RunDirectory};
use ndarray::{Array1, Array2};
use ndarray_npy::NpzReader;

mod support;

use support::{experiment, lasting_files, run};

/// Two trials of four rounds with 10 of 30 clients, 16 sequences, and 4·(8 + 1) = 36 parameters.
fn small(more: &[&str]) -> Experiment {
    let settings = [
        "data.set=synthetic",
        "data.features=8",
        "data.classes=4",
        "data.train=600",
        "data.test=100",
        "clients.total=30",
        "clients.per_round=10",
        "trials=2",
        "rounds=4",
        "privacy.clip=1",
        "uplink.sequences=16",
        "uplink.receiver=clipped=1",
        "uplink.modulation=complex",
        "uplink.antennas=2",
    ];
    experiment(&[&settings, more].concat())
}

#[test]
fn runs_with_branches_do_not_depend_on_threads() {
    let directory = tempfile::tempdir().unwrap();
    for fidelity in ["symbol", "chip"] {
        let fidelity_key = format!("uplink.fidelity={fidelity}");
        let experiment = small(&["uplink.parameters_per_symbol=2", &fidelity_key]);
        let [one, three] = [1, 3].map(|threads| {
            let directory = directory.path().join(format!("{fidelity}-{threads}"));
            run(&experiment, &directory, Entry::New, threads).unwrap();
            lasting_files(&directory)
        });
        assert!(one == three, "{fidelity}");
    }
}

#[test]
fn settings_of_branches_survive_the_file() {
    let experiment = small(&["uplink.parameters_per_symbol=2", "uplink.receiver=mmse=3"]);
    let text = experiment.to_toml();
    for line in
        ["modulation = \"complex\"", "antennas = 2", "parameters_per_symbol = 2", "receiver = \"mmse=3\""]
    {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    // One antenna and one parameter per symbol are not written, so that files of earlier versions stay as they are.
    let plain = support::experiment(&[]).to_toml();
    assert!(!plain.contains("antennas") && !plain.contains("parameters_per_symbol"));
}

fn payload_uses(directory: &Path) -> u64 {
    RunDirectory::read_metrics(directory).unwrap()[0].payload_uses.unwrap()
}

#[test]
fn two_parameters_per_symbol_halve_the_payload() {
    let directory = tempfile::tempdir().unwrap();
    let [one, two] = ["1", "2"].map(|number| {
        let path = directory.path().join(number);
        let key = format!("uplink.parameters_per_symbol={number}");
        run(&small(&[&key]), &path, Entry::New, 2).unwrap();
        payload_uses(&path)
    });
    assert_eq!((one, two), (36 * 32, 18 * 32));
}

/// `g_k = Σ_b h_{k,b}·w_{j,b}` and `c_k = Σ_r (w_{2r}·h_{2r+1} − w_{2r+1}·h_{2r})`, from tables with a row for each client or sequence.
#[test]
fn recorded_signals_have_branches_in_rows() {
    let directory = tempfile::tempdir().unwrap();
    let experiment = small(&["uplink.parameters_per_symbol=2", "record.signal=2"]);
    run(&experiment, directory.path(), Entry::New, 2).unwrap();
    let file = File::open(RunDirectory::signal_file(directory.path(), 1, 2)).unwrap();
    let mut file = NpzReader::new(file).unwrap();
    let mut table = |name: &str| -> Array2<f64> { file.by_name(name).unwrap() };
    let (amplitudes, weights) = (table("amplitudes"), table("weights"));
    assert_eq!((amplitudes.dim(), weights.dim(), table("estimates").dim()), ((10, 4), (16, 4), (16, 4)));
    let (gains, cross) = (table("block_gains"), table("block_cross_gains"));
    let channels: Array2<Complex64> = file.by_name("channels").unwrap();
    let assignment: Array1<i64> = file.by_name("assignment").unwrap();
    assert_eq!(channels.dim(), (10, 2));
    for client in 0..10 {
        let sequence = assignment[client] as usize;
        let gain: Complex64 = (0..2)
            .map(|antenna| {
                let weight =
                    Complex64::new(weights[[sequence, 2 * antenna]], weights[[sequence, 2 * antenna + 1]]);
                weight.conj() * channels[[client, antenna]]
            })
            .sum();
        assert!((gain - Complex64::new(gains[[0, client]], cross[[0, client]])).norm() < 1e-9);
    }
}

/// Rayleigh fading has bounds in all views. Under other fading the actual view is an estimate. Under Rician fading the raw-signal
/// view is one, too.
#[test]
fn only_estimates_are_called_estimates() {
    let cases = [
        ("rayleigh", [true, true, true, true]),
        ("nakagami=2", [true, false, true, true]),
        ("rician=3", [true, false, true, false]),
    ];
    for (fading, guarantees) in cases {
        let views =
            ExperimentAccount::new(&small(&[&format!("uplink.fading={fading}")])).unwrap().views(1).unwrap();
        let order = [View::Idealised, View::Actual, View::AnyChannel, View::RawSignal];
        for (view, guarantee) in order.into_iter().zip(guarantees) {
            let statement = views.get(view).unwrap();
            assert_eq!(statement.guarantee, guarantee, "{fading}, {view}: {:?}", statement.reason);
            assert!(statement.epsilon.is_some() || statement.epsilon_above.is_some(), "{fading}, {view}");
            let is_estimate =
                statement.reason.as_ref().is_some_and(|reason| reason.contains("it is an estimate"));
            assert_eq!(is_estimate, !guarantee, "{fading}, {view}: {:?}", statement.reason);
        }
        let published = views.get(View::Published).and_then(|statement| statement.epsilon);
        assert_eq!(published, None, "the paper's theorems are for one branch");
    }
}

/// The bound of the actual view is above the estimate from drawn rounds, and below the bound of the worst channel.
#[test]
fn estimates_lie_below_the_bounds_for_rayleigh_fading() {
    let epsilon = |fading: &str, view: View| {
        let setting = format!("uplink.fading={fading}");
        let views =
            ExperimentAccount::new(&small(&[&setting, "clients.total=10"])).unwrap().views(1).unwrap();
        views.get(view).unwrap().epsilon.unwrap()
    };
    // Rician fading of factor 0 is Rayleigh fading, and is estimated.
    let (bound, estimate) = (epsilon("rayleigh", View::Actual), epsilon("rician=0", View::Actual));
    assert!(estimate < bound && bound < 1.5 * estimate, "{estimate} and {bound}");
    let any = epsilon("rayleigh", View::AnyChannel);
    assert!(any > bound, "{any} and {bound}");
}
