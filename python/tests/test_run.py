from __future__ import annotations

import _thread
import json
import re
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import files_of

import floras

SMALL = {
    "uplink": {"sequences": 25, "length": 32, "receiver": "paper"},
    "local": {"rate": 0.005},
    "privacy": {"clip": 1.0},
    "rounds": 4,
    "trials": 2,
}


def test_a_run_is_the_programs_bit_for_bit(program: Callable[..., str], tmp_path: Path) -> None:
    printed = json.loads(
        program(
            "run", "quick", "--trials", 2, "--rounds", 5, "--seed", 9, "--out", tmp_path / "program", "--json"
        )
    )
    run = floras.run("quick", trials=2, rounds=5, seed=9, threads=1, out=tmp_path / "python")
    assert files_of(tmp_path / "python") == files_of(tmp_path / "program")
    assert run.to_dict()["final"] == printed["final"]
    assert run.privacy.to_dict() == printed["privacy"]
    assert run.out == tmp_path / "python"


def test_dictionary_file_and_preset_are_equivalent(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "crates" / "floras-sim" / "presets" / "quick.toml").read_text()
    (tmp_path / "mine.toml").write_text(text)
    spelled_out = floras.experiment("quick")
    first = floras.run("quick", rounds=2)
    for source in (tmp_path / "mine.toml", str(tmp_path / "mine.toml"), spelled_out):
        again = floras.run(source, rounds=2)
        assert again.to_dict() == first.to_dict()
        np.testing.assert_array_equal(again.parameters[0]["weight"], first.parameters[0]["weight"])


def test_what_aggregate_does_is_what_a_run_does() -> None:
    """One round of training by hand on the same samples, over the same air, yields the same model.

    With one step over all samples a client's update does not depend on their order, but for rounding.
    """
    experiment = {**SMALL, "trials": 1, "rounds": 1, "local": {"batch": 200, "epochs": 1, "rate": 0.5}}
    run, data = floras.run(experiment), floras.federate(experiment)
    onehot = np.eye(10)
    deltas = []
    for images, labels in data.clients:
        gradient = (np.full((len(labels), 10), 0.1) - onehot[labels]) / len(labels)
        weight, bias = gradient.T @ images, gradient.sum(axis=0)
        deltas.append(0.5 * np.concatenate([weight.ravel(), bias]))
    uplink = floras.Uplink.of_experiment(experiment)
    result = uplink.aggregate(np.array(deltas, np.float32), seed=1, round=1)
    model = data.initial_model - result.mean
    np.testing.assert_allclose(model[:4000].reshape(10, 400), run.parameters[0]["weight"], atol=1e-6)
    np.testing.assert_allclose(model[4000:], run.parameters[0]["bias"], atol=1e-6)
    assert run.metrics["noise_std"][0] == result.noise_std


def test_metrics_become_frames_in_one_call() -> None:
    run = floras.run(SMALL)
    assert [list(model) for model in run.parameters] == [["weight", "bias"]] * 2
    pandas, polars = run.to_pandas(), run.to_polars()
    assert pandas.shape == polars.shape == (8, 20)
    assert list(pandas.columns) == polars.columns
    assert pandas["round"].tolist() == polars["round"].to_list()
    last = pandas[pandas["round"] == 4]["test_accuracy"].mean()
    assert run.final is not None
    assert last == pytest.approx(run.final.test_accuracy.mean)


def test_a_figure_is_drawn(tmp_path: Path) -> None:
    run = floras.run(SMALL)
    run.plot().savefig(tmp_path / "accuracy.png")
    assert (tmp_path / "accuracy.png").stat().st_size > 5000
    with pytest.raises(ValueError, match="metric must be one of"):
        run.plot("beauty")


def test_without_out_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    run = floras.run(SMALL)
    assert run.out is None
    assert list(tmp_path.iterdir()) == []


def test_a_directory_with_a_run_is_unchanged(tmp_path: Path) -> None:
    floras.run(SMALL, out=tmp_path / "run")
    before = files_of(tmp_path / "run")
    with pytest.raises(ValueError, match="already holds a run: give another out, or resume=True"):
        floras.run(SMALL, out=tmp_path / "run")
    with pytest.raises(ValueError, match="holds another experiment: rounds is 4 there and 5 here"):
        floras.run(SMALL, rounds=5, out=tmp_path / "run", resume=True)
    assert files_of(tmp_path / "run") == before
    again = floras.run(SMALL, out=tmp_path / "run", resume=True)
    assert again.rounds_per_second is None
    assert again.metrics["round"].size == 8


def test_an_exception_of_the_callback_stops_the_run(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    floras.run(SMALL, progress=seen.append)
    assert len(seen) == 8
    assert {"trial", "round", "test_accuracy", "noise_std"} <= seen[0].keys()

    def stop_at_50(metrics: dict[str, Any]) -> None:
        if metrics["round"] == 50:
            raise LookupError("enough")

    long = {**SMALL, "rounds": 3000}
    with pytest.raises(LookupError, match="enough"):
        floras.run(long, out=tmp_path / "run", progress=stop_at_50)
    assert not (tmp_path / "run" / "summary.json").exists()


def test_an_interrupted_run_resumes_to_the_same_bytes(
    tmp_path: Path,
) -> None:
    long = {**SMALL, "rounds": 1500}
    seen = threading.Event()

    def watch(metrics: dict[str, Any]) -> None:
        if metrics["round"] >= 40 and not seen.is_set():
            seen.set()
            _thread.interrupt_main()
            time.sleep(0.5)  # on a busy machine the run could end before the main thread looks

    with pytest.raises(KeyboardInterrupt):
        floras.run(long, out=tmp_path / "run", progress=watch)
    assert not (tmp_path / "run" / "summary.json").exists()
    resumed = floras.run(long, out=tmp_path / "run", resume=True)
    at_once = floras.run(long, out=tmp_path / "other")
    assert resumed.to_dict() == at_once.to_dict()
    names = ("metrics.jsonl", "ledger.jsonl", "summary.json")
    assert [(tmp_path / "run" / name).read_bytes() for name in names] == [
        (tmp_path / "other" / name).read_bytes() for name in names
    ]


NOTED: list[tuple[str, dict[str, Any], list[str]]] = [
    ("digits-iid", {"uplink.truncate": "none"}, ["Cauchy noise"]),
    ("digits-iid", {"uplink.scheme": "ideal", "uplink.snr_db": 3.0}, ["without effect .*uplink.snr_db"]),
    (
        "quick",
        {"rounds": 200, "privacy.budget": 1.0, "privacy.view": "published"},
        ["not a guarantee here", "the budget of 1 .* of 200 rounds; the run stops there"],
    ),
    ("quick", {"rounds": 1}, []),
]


@pytest.mark.parametrize(("preset", "settings", "notes"), NOTED)
def test_what_the_program_notes_is_warned_of(preset: str, settings: dict[str, Any], notes: list[str]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        floras.run(preset, trials=1, settings={"rounds": 1, **settings})
    assert len(caught) == len(notes)
    for warning, note in zip(caught, notes, strict=True):
        assert re.search(note, str(warning.message))
        assert warning.filename == __file__


BAD: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    ("no-such-preset", {}, ValueError, "there is no preset and no file no-such-preset; presets are private"),
    (Path("no-such-file.toml"), {}, FileNotFoundError, "no-such-file.toml"),
    (3, {}, TypeError, "experiment must be a dictionary, a path, or the name of a preset, not int"),
    ({"uplink": {"snr_bd": 3}}, {}, ValueError, "there is no key uplink.snr_bd; did you mean uplink.snr_db"),
    ({"uplink": 3}, {}, ValueError, "uplink must be a section"),
    ({1: 2}, {}, TypeError, "the keys of .* must be text, not int"),
    ({"rounds": -1}, {}, ValueError, "rounds must be a non-negative integer"),
    ({"sweep": {}}, {}, ValueError, "sweep"),
    ({}, {"rounds": 0}, ValueError, "rounds must be between 1"),
    ({}, {"seed": 1.5}, ValueError, "seed must be a non-negative integer"),
    ({}, {"settings": {"uplink.snr_dB": 3}}, ValueError, "did you mean uplink.snr_db"),
    ({}, {"settings": {3: 3}}, TypeError, "the keys of settings must be text"),
    ({}, {"threads": 0}, ValueError, "threads must be between 1 and 1024"),
    ({}, {"resume": True}, ValueError, "resume needs out"),
    ({"privacy": {"clip": 1.0, "budget": 1e-6}}, {}, ValueError, "privacy.budget"),
    ({"data": {"set": "mnist", "dir": "nowhere"}}, {}, ValueError, "nowhere"),
]


@pytest.mark.parametrize(("source", "arguments", "error", "words"), BAD)
def test_bad_input_is_refused_in_words(
    source: Any, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        floras.run(source, **arguments)


def test_nesting_without_end_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["uplink"] = loop
    with pytest.raises(ValueError, match="nested too deeply"):
        floras.run(loop)


def test_the_digits_are_those_of_the_program() -> None:
    digits = floras.load_digits20()
    assert digits.train_images.shape == (4000, 400)
    assert digits.train_images.dtype == np.float32
    # Reducing the pictures from 28 to 20 pixels overshoots at edges.
    assert -0.2 < digits.train_images.min() < 0.0 < 1.0 < digits.train_images.max() < 1.2
    # Every digit is there about as often as any other; 250 is eight standard deviations below the mean.
    assert np.bincount(digits.train_labels, minlength=10).min() > 250
    assert floras.load_digits20(train=10, test=5).test_labels.shape == (5,)
    with pytest.raises(ValueError, match="train must be between 1"):
        floras.load_digits20(train=0)
    with pytest.raises(ValueError, match=r"5000|4000"):
        floras.load_digits20(train=100_000)


def test_samples_are_shared_out_as_in_a_run(tmp_path: Path) -> None:
    experiment = floras.experiment("digits-noniid", trials=2, rounds=1)
    run = floras.run(experiment, out=tmp_path / "run")
    recorded = json.loads((tmp_path / "run" / "partition.json").read_text())
    for trial in range(2):
        data = floras.federate(experiment, trial=trial)
        counts = [np.bincount(labels, minlength=10).tolist() for _, labels in data.clients]
        assert counts == recorded[trial]["label_counts"]
    assert sum(len(labels) for _, labels in data.clients) == 4000
    assert data.initial_model.shape == (4010,)
    assert data.shapes == [("weight", [10, 400]), ("bias", [10])]
    assert data.experiment == run.experiment
    with pytest.raises(ValueError, match="trial must be between 0 and 1, not 2"):
        floras.federate(experiment, trial=2)
