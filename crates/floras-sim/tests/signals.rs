//! Recorded signals: the same bytes for any number of threads or interruptions, and numbers that agree with the round's metrics.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use floras_phy::Complex64;
use floras_sim::{
    Entry, Event, Experiment, ExperimentBuilder, PreparedRun, RoundMetrics, RunDirectory, SimError,
};
use ndarray::{Array0, Array1, Array2};
use ndarray_npy::{NpzReader, ReadableElement};

mod support;

use support::{experiment, lasting_files, run};

/// Three trials of six rounds with 20 of 60 clients.
fn small(more: &[&str]) -> Experiment {
    let settings = [
        "data.set=synthetic",
        "data.features=8",
        "data.classes=4",
        "data.train=600",
        "data.test=100",
        "clients.total=60",
        "clients.per_round=20",
        "trials=3",
        "rounds=6",
        "privacy.clip=1",
        "uplink.truncate=2",
        "uplink.receiver=clipped=1",
    ];
    experiment(&[&settings, more].concat())
}

/// Every file of a directory, by its path.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            let name = entry.file_name().unwrap().to_owned();
            found.extend(files(&entry).into_iter().map(|(path, bytes)| (Path::new(&name).join(path), bytes)));
        } else {
            found.insert(entry.file_name().unwrap().into(), fs::read(&entry).unwrap());
        }
    }
    found
}

fn signals(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    files(&directory.join("signals"))
}

struct Npz(NpzReader<File>);

impl Npz {
    fn of(directory: &Path, trial: u32, round: u32) -> Self {
        let path = RunDirectory::signal_file(directory, trial, round);
        Self(NpzReader::new(File::open(path).unwrap()).unwrap())
    }

    fn names(&mut self) -> Vec<String> {
        self.0.names().unwrap()
    }

    fn list<T: ReadableElement>(&mut self, name: &str) -> Vec<T> {
        let array: Array1<T> = self.0.by_name(name).unwrap();
        array.into_raw_vec_and_offset().0
    }

    fn number<T: ReadableElement + Copy>(&mut self, name: &str) -> T {
        let array: Array0<T> = self.0.by_name(name).unwrap();
        *array.first().unwrap()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn line(directory: &Path, trial: u32, round: u32) -> RoundMetrics {
    let lines = RunDirectory::read_metrics(directory).unwrap();
    lines.into_iter().find(|line| (line.trial, line.round) == (trial, round)).unwrap()
}

#[test]
fn signals_do_not_depend_on_threads() {
    let directory = tempfile::tempdir().unwrap();
    for fidelity in ["symbol", "chip"] {
        let experiment = small(&["record.signal=2,4-6", &format!("uplink.fidelity={fidelity}")]);
        let [one, five] = [1, 5].map(|threads| {
            let directory = directory.path().join(format!("{fidelity}-{threads}"));
            run(&experiment, &directory, Entry::New, threads).unwrap();
            (signals(&directory), lasting_files(&directory))
        });
        assert!(one == five);
        let names: Vec<&str> = one.0.keys().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(names.len(), 12);
        assert_eq!(names[..2], ["trial-0000/round-000002.npz", "trial-0000/round-000004.npz"]);
    }
}

#[test]
fn recording_changes_no_metrics() {
    let directory = tempfile::tempdir().unwrap();
    let [with, without] = ["all", "none"].map(|rounds| {
        let directory = directory.path().join(rounds);
        run(&small(&[&format!("record.signal={rounds}")]), &directory, Entry::New, 2).unwrap();
        assert_eq!(directory.join("signals").exists(), rounds == "all");
        fs::read(directory.join("metrics.jsonl")).unwrap()
    });
    assert!(with == without);
}

/// At both fidelities, with the weights of the receiver and orthonormal sequences.
#[test]
fn a_signal_leads_to_the_rounds_metrics() {
    let directory = tempfile::tempdir().unwrap();
    for fidelity in ["symbol", "chip"] {
        let directory = directory.path().join(fidelity);
        let experiment = small(&["record.signal=3", &format!("uplink.fidelity={fidelity}")]);
        run(&experiment, &directory, Entry::New, 2).unwrap();
        let (mut file, line) = (Npz::of(&directory, 1, 3), line(&directory, 1, 3));
        let (weights, amplitudes) = (file.list::<f64>("weights"), file.list::<f64>("amplitudes"));
        let assignment: Vec<i64> = file.list("assignment");
        let gains: Vec<f64> =
            assignment.iter().zip(&amplitudes).map(|(&j, h)| h * weights[j as usize]).collect();
        for (gain, recorded) in gains.iter().zip(file.list::<f64>("gains")) {
            assert!((gain - recorded).abs() < 1e-9, "{gain} {recorded}");
        }
        assert!((mean(&gains) - line.mean_gain.unwrap()).abs() < 1e-9);
        let norm = weights.iter().map(|weight| weight * weight).sum::<f64>().sqrt();
        let noise_std = file.number::<f64>("symbol_noise_std") * norm;
        assert!((noise_std / line.noise_std.unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(file.number::<f64>("noise_std"), line.noise_std.unwrap());
        let channels: Vec<Complex64> = file.list("channels");
        assert_eq!(channels.iter().map(|h| h.re).collect::<Vec<_>>(), amplitudes);
        for (weight, &estimate) in weights.iter().zip(&file.list::<f64>("estimates")) {
            let receiver = floras_phy::Receiver::clipped(1.0).unwrap();
            assert_eq!(*weight, receiver.weight(estimate, file.number("pilot_noise_std")));
        }
        let numbers = ["trial", "round", "K", "N", "L", "d"].map(|name| file.number::<i64>(name));
        assert_eq!(numbers, [1, 3, 20, 25, 32, 36]);
        assert_eq!(file.list::<i64>("clients").len(), 20);
        assert_eq!(file.list::<i64>("clients"), file.list::<i64>("selected"));
        let clamped: Vec<f32> =
            file.list::<f32>("decoded").iter().map(|value| value.clamp(-2.0, 2.0)).collect();
        assert_eq!(clamped, file.list::<f32>("sum"));
        assert_eq!(file.list::<i64>("block_parameters"), [36]);
        let blocks: Array2<f64> = file.0.by_name("block_gains").unwrap();
        assert_eq!(blocks.shape(), [1, 20]);
    }
}

/// All arrays contain those of the 20 selected clients that send, each with its own sequence.
#[test]
fn a_signal_names_senders_and_selected_clients() {
    let directory = tempfile::tempdir().unwrap();
    for fidelity in ["symbol", "chip"] {
        let directory = directory.path().join(fidelity);
        let fidelity = format!("uplink.fidelity={fidelity}");
        let changes = ["record.signal=3", "clients.dropout=0.5", "uplink.assignment=keyed", &fidelity];
        run(&small(&changes), &directory, Entry::New, 2).unwrap();
        let (mut file, line) = (Npz::of(&directory, 1, 3), line(&directory, 1, 3));
        let (clients, selected) = (file.list::<i64>("clients"), file.list::<i64>("selected"));
        assert_eq!(selected.len(), 20);
        assert!(clients.iter().all(|client| selected.contains(client)));
        let silent = line.silent.unwrap() as usize;
        assert!(silent > 0 && clients.len() + silent == 20);
        for name in ["gains", "amplitudes"] {
            assert_eq!(file.list::<f64>(name).len(), clients.len());
        }
        let assignment = file.list::<i64>("assignment");
        let (weights, amplitudes) = (file.list::<f64>("weights"), file.list::<f64>("amplitudes"));
        assert_eq!(assignment.iter().collect::<BTreeSet<_>>().len(), clients.len());
        let gains = assignment.iter().zip(&amplitudes).map(|(&j, h)| h * weights[j as usize]);
        assert!(gains.zip(file.list::<f64>("gains")).all(|(gain, recorded)| (gain - recorded).abs() < 1e-9));
    }
}

#[test]
fn other_schemes_record_what_they_have() {
    let directory = tempfile::tempdir().unwrap();
    let without_radio =
        ["K", "block_gains", "block_noise_std", "block_parameters", "clients", "d", "decoded", "selected"];
    let without_radio = [&without_radio[..], &["gains", "noise_std", "round", "sum", "trial"]].concat();
    let with_radio = ["L", "amplitudes", "channels", "symbol_noise_std", "weights"];
    let with_estimate = [&with_radio[..], &["N", "estimates", "pilot_noise_std"]].concat();
    for (scheme, more) in [
        ("ideal", &[][..]),
        ("gaussian", &[]),
        ("channel-inversion", &with_radio),
        ("phase-corrected", &with_radio),
        ("broadband-inversion", &[]),
        ("power-control", &with_radio),
        ("artificial-noise", &with_radio),
        ("blind", &with_estimate),
    ] {
        let directory = directory.path().join(scheme);
        let only = ["data.set=synthetic", "rounds=1", "trials=1", "record.signal=all"];
        let experiment = experiment(&[&only[..], &[&format!("uplink.scheme={scheme}")]].concat());
        run(&experiment, &directory, Entry::New, 1).unwrap();
        let mut file = Npz::of(&directory, 0, 1);
        let mut names = file.names();
        names.sort_unstable();
        let mut expected = [&without_radio[..], more].concat();
        expected.sort_unstable();
        assert_eq!(names, expected, "{scheme}");
        assert_eq!(Some(mean(&file.list("gains"))), line(&directory, 0, 1).mean_gain);
    }
}

/// Stops the run when its third trial begins.
fn stopped(experiment: &Experiment, directory: &Path) {
    let (stop, prepared) =
        (AtomicBool::new(false), PreparedRun::new(experiment, directory, Entry::New, 1).unwrap());
    let watch = |event| {
        if let Event::TrialBegins { trial: 2, .. } = event {
            stop.store(true, Ordering::Relaxed);
        }
    };
    assert!(matches!(prepared.run(&watch, &stop), Err(SimError::Stopped { .. })));
}

#[test]
fn a_resumed_run_has_the_same_signals() {
    let directory = tempfile::tempdir().unwrap();
    let [whole, resumed] = ["whole", "resumed"].map(|name| directory.path().join(name));
    let experiment = small(&["record.signal=all"]);
    run(&experiment, &whole, Entry::New, 2).unwrap();
    stopped(&experiment, &resumed);
    assert_eq!(signals(&resumed).len(), 12);
    // A signal of an ended trial is lost.
    fs::remove_file(RunDirectory::signal_file(&resumed, 1, 4)).unwrap();
    // The experiment in the directory states which rounds are recorded.
    let remembered = RunDirectory::read_experiment(&resumed).unwrap();
    assert_eq!(run(&remembered, &resumed, Entry::Resume, 2).unwrap().rounds_done, 12);
    assert!(signals(&whole) == signals(&resumed));
    assert_eq!(lasting_files(&whole), lasting_files(&resumed));
}

#[test]
fn other_rounds_are_another_experiment() {
    let directory = tempfile::tempdir().unwrap();
    stopped(&small(&["record.signal=all"]), directory.path());
    let error = run(&small(&["record.signal=2"]), directory.path(), Entry::Resume, 1).unwrap_err();
    assert!(error.is_input(), "{error}");
    assert!(error.to_string().contains("record.signal is \"all\" there and \"2\" here"), "{error}");
}

#[test]
fn unwritable_signals_end_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let prepared = PreparedRun::new(&small(&["record.signal=5"]), directory.path(), Entry::New, 1).unwrap();
    fs::write(directory.path().join("signals"), "in the way").unwrap();
    let error = prepared.run(&|_| {}, &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, SimError::File { .. }) && !error.is_input(), "{error}");
}

/// The date of an archive's entry in the format of DOS, 1980-01-01 00:00.
#[test]
fn archives_carry_no_time() {
    let directory = tempfile::tempdir().unwrap();
    run(&small(&["record.signal=1", "trials=1", "rounds=1"]), directory.path(), Entry::New, 1).unwrap();
    let bytes = fs::read(RunDirectory::signal_file(directory.path(), 0, 1)).unwrap();
    assert_eq!((&bytes[..4], &bytes[10..14]), (&b"PK\x03\x04"[..], &[0, 0, 0x21, 0][..]));
}

#[test]
fn rounds_that_are_not_there_are_refused() {
    let build = |value: &str| ExperimentBuilder::new().rounds(6).set("record.signal", value).unwrap().build();
    for (value, expected) in [
        ("7", "record.signal must be none, all or rounds from 1 to 6, not 7"),
        ("1,5-9", "record.signal must be none, all or rounds from 1 to 6, not 1,5-9"),
        ("5-2", "record.signal must be none, all or rounds (counted from 1, such as 1,5,10-20), not \"5-2\""),
        ("0", "record.signal must be none, all or rounds (counted from 1, such as 1,5,10-20), not 0"),
    ] {
        assert_eq!(build(value).unwrap_err().to_string(), expected);
    }
    assert!(build("6").is_ok() && build("1,2,6").is_ok());
}
