from __future__ import annotations

import _thread
import csv
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import files_of

import floras
from floras import _progress

GRID: dict[str, Any] = {
    "name": "gammas",
    "rounds": 3,
    "trials": 2,
    "uplink": {"length": 32},
    "privacy": {"clip": 1.0},
    "sweep": {"uplink": {"sequences": [20, 25], "snr_db": [0.0, 20.0]}},
}

FILE = """
name = "gammas"
rounds = 3
trials = 2
[uplink]
length = 32
[privacy]
clip = 1.0
[sweep]
uplink.sequences = [20, 25]
uplink.snr_db = [0.0, 20.0]
"""


def test_a_sweep_is_the_programs_bit_for_bit(program: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(FILE)
    program("sweep", tmp_path / "grid.toml", "--out", tmp_path / "program")
    floras.sweep(GRID, out=tmp_path / "python")
    floras.sweep(tmp_path / "grid.toml", out=tmp_path / "file", threads=1)
    assert files_of(tmp_path / "python") == files_of(tmp_path / "program")
    assert files_of(tmp_path / "file") == files_of(tmp_path / "program")


def test_a_preset_is_swept_as_by_program(program: Callable[..., str], tmp_path: Path) -> None:
    over = ("--over", "uplink.snr_db=0.0,20.0", "--over", "uplink.receiver=clipped=2,mmse")
    numbers = ("--set", "uplink.sequences=230", "--rounds", "2", "--trials", "1", "--seed", "3")
    program("sweep", "quick", *over, *numbers, "--out", tmp_path / "program")
    grid = {"uplink.snr_db": [0.0, 20.0], "uplink.receiver": ["clipped=2", "mmse"]}
    changed = {"uplink.sequences": 230}
    floras.sweep(
        "quick", grid, settings=changed, rounds=2, trials=1, seed=3, out=tmp_path / "python", progress=False
    )
    assert files_of(tmp_path / "python") == files_of(tmp_path / "program")


def test_wrong_grids_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    with pytest.raises(TypeError, match="over must map keys to lists of values"):
        floras.sweep("quick", {"uplink.receiver": "mmse"}, out=out)
    with pytest.raises(TypeError, match="over must be a mapping from keys to values, not list"):
        floras.sweep("quick", ["uplink.snr_db"], out=out)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"rounds is set and also varied by the sweep"):
        floras.sweep("quick", {"rounds": [1, 2]}, rounds=3, out=out)
    with pytest.raises(ValueError, match=r"uplink\.snr_dB"):
        floras.sweep("quick", {"uplink.snr_dB": [1]}, out=out)
    assert not out.exists()


def test_a_sweep_becomes_a_frame(tmp_path: Path) -> None:
    sweep = floras.sweep(GRID, out=tmp_path / "sweep")
    frame = sweep.to_pandas()
    assert sweep.keys == ("uplink.sequences", "uplink.snr_db")
    assert frame["uplink.sequences"].tolist() == [20, 20, 25, 25]
    assert frame["uplink.snr_db"].tolist() == [0, 20, 0, 20]
    assert frame["test_accuracy_mean"].between(0, 1).all()
    assert sweep.to_polars().shape == frame.shape
    with (tmp_path / "sweep" / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["test_accuracy_mean"]) for row in rows] == frame["test_accuracy_mean"].tolist()


def test_an_interrupted_sweep_is_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = {**GRID, "rounds": 300}

    def interrupt_in_the_third_point() -> None:
        while not (tmp_path / "sweep" / "point-003" / "metrics.jsonl").exists():
            time.sleep(0.01)
        _thread.interrupt_main()

    threading.Thread(target=interrupt_in_the_third_point, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        floras.sweep(long, out=tmp_path / "sweep", progress=True)
    assert not (tmp_path / "sweep" / "point-003" / "summary.json").exists()
    with (tmp_path / "sweep" / "sweep.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 2
    floras.sweep(long, out=tmp_path / "sweep", progress=True)
    assert "4 of 4 points" in capsys.readouterr().err
    floras.sweep(long, out=tmp_path / "at-once", threads=1)
    assert files_of(tmp_path / "sweep") == files_of(tmp_path / "at-once")


def test_settings_without_effect_are_warned_of(tmp_path: Path) -> None:
    grid = {**GRID, "sweep": {"uplink": {"scheme": ["ideal", "floras"], "snr_db": [0.0, 20.0]}}}
    with pytest.warns(UserWarning, match="point-001: without effect .*: .*uplink.snr_db") as caught:
        floras.sweep(grid, out=tmp_path / "sweep")
    assert [warning.filename for warning in caught] == [__file__]


def test_a_changed_grid_rejects_old_runs(tmp_path: Path) -> None:
    floras.sweep(GRID, out=tmp_path / "sweep")
    before = files_of(tmp_path / "sweep")
    changed = {**GRID, "sweep": {"uplink": {"sequences": [30, 32], "snr_db": [0.0, 20.0]}}}
    with pytest.raises(
        ValueError, match=r"holds another experiment: uplink.sequences is 20 there and 30 here"
    ):
        floras.sweep(changed, out=tmp_path / "sweep")
    assert files_of(tmp_path / "sweep") == before


BAD: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    ({"rounds": 1}, {}, ValueError, r"there is no section \[sweep\]"),
    (
        {"sweep": {"uplink": {"sequences": 3}}},
        {},
        ValueError,
        "sweep.uplink.sequences must be a list of values",
    ),
    ({"sweep": {"uplink": {"sequences": []}}}, {}, ValueError, "sweep.uplink.sequences must be a list"),
    ({"sweep": {"uplink": {"sequences": [5]}}}, {}, ValueError, "sequences"),
    (GRID, {"engine": "spark"}, ValueError, 'engine must be "local" or "ray", not \'spark\''),
    (GRID, {"retries": -1}, ValueError, "retries must be at least 0"),
    (GRID, {"threads": 0}, ValueError, "threads must be between 1 and 1024, not 0"),
    (GRID, {"threads": -1}, ValueError, "threads must be between 1 and 1024, not -1"),
]


@pytest.mark.parametrize(("grid", "arguments", "error", "words"), BAD)
def test_bad_input_is_refused_in_words(
    grid: Any, arguments: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=words):
        floras.sweep(grid, out=tmp_path / "sweep", **arguments)
    assert not (tmp_path / "sweep").exists()


def test_a_directory_in_use_is_left_alone(tmp_path: Path) -> None:
    from floras import _core

    grid = _core.Grid(GRID, None, None, (None, None, None), tmp_path)
    with pytest.raises(ValueError, match="in use"):
        floras.sweep(GRID, out=tmp_path)
    grid.leave()
    with pytest.raises(RuntimeError, match="released"):
        grid.to_do()


def test_a_notebook_shows_what_matters(tmp_path: Path) -> None:
    sweep = floras.sweep("quick", {"uplink.snr_db": [0.0, 20.0]}, trials=2, rounds=1, out=tmp_path / "sweep")
    shown = sweep._repr_html_()
    assert re.findall("<th>(.*?)</th>", shown) == [
        "uplink.snr_db",
        "rounds",
        "test accuracy",
        "ε",
        "view",
        "verdict",
    ]
    assert shown.count(" %</td>") == 2
    assert repr(sweep) == "<Sweep quick: 2 points over uplink.snr_db>"


def test_a_bar_covers_all_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[tuple[int, int]] = []

    class Counting(_progress.Progress):
        def __init__(self, rounds: int) -> None:
            super().__init__(rounds)
            self.left = rounds

        def advance(self, metrics: dict[str, Any]) -> None:
            super().advance(metrics)
            self.left -= 1

        def points(self, done: int, points: int) -> None:
            super().points(done, points)
            counted.append((done, self.left))

    monkeypatch.setattr("floras.sweeps.Progress", Counting)
    floras.sweep(GRID, out=tmp_path / "sweep", progress=True)
    assert counted == [(0, 24), (1, 18), (2, 12), (3, 6), (4, 0)]


def test_a_bound_out_of_reach_is_no_none(tmp_path: Path) -> None:
    settings = {"privacy.view": "raw-signal"}
    sweep = floras.sweep(
        "quick", {"uplink.snr_db": [20.0]}, settings=settings, trials=1, rounds=5, out=tmp_path / "sweep"
    )
    assert sweep.rows[0]["epsilon"] is None
    assert "<td>&gt; 1e5</td><td>raw-signal</td><td>none</td>" in sweep._repr_html_()
