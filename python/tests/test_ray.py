from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import files_of

import floras
from floras.sweeps import _run_elsewhere

ray = pytest.importorskip("ray")

GRID: dict[str, Any] = {
    "name": "on-ray",
    "rounds": 300,
    "trials": 2,
    "uplink": {"scheme": "gaussian"},
    "privacy": {"clip": 1.0},
    "sweep": {"uplink": {"noise_std": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}},
}


@pytest.fixture(scope="module", autouse=True)
def _a_local_ray() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


def _ancestors(process: int) -> list[int]:
    found = []
    while process > 1:
        try:
            status = Path(f"/proc/{process}/stat").read_text()
        except OSError:
            break
        process = int(status.rpartition(")")[2].split()[1])
        found.append(process)
    return found


def _kill_a_worker(killed: list[int], stop: threading.Event) -> None:
    """Kill the first process that is seen at work on a point."""
    while not stop.is_set():
        for directory in Path("/proc").glob("[0-9]*"):
            try:
                title = (directory / "cmdline").read_bytes()
            except OSError:
                continue
            if title.startswith(b"ray::_run_elsewhere") and os.getpid() in _ancestors(int(directory.name)):
                time.sleep(0.05)
                os.kill(int(directory.name), signal.SIGKILL)
                killed.append(int(directory.name))
                return
        time.sleep(0.01)


def test_a_sweep_survives_a_killed_ray_worker(tmp_path: Path) -> None:
    killed: list[int] = []
    stop = threading.Event()
    killer = threading.Thread(target=_kill_a_worker, args=(killed, stop))
    killer.start()
    try:
        sweep = floras.sweep(GRID, engine="ray", out=tmp_path / "ray")
    finally:
        stop.set()
        killer.join()
    assert len(killed) == 1
    floras.sweep(GRID, out=tmp_path / "local")
    assert files_of(tmp_path / "ray") == files_of(tmp_path / "local")
    assert [row["uplink.noise_std"] for row in sweep.rows] == [1, 2, 3, 4, 5, 6]


def test_a_local_sweep_resumes_a_ray_sweep(tmp_path: Path) -> None:
    short = {**GRID, "rounds": 2}
    floras.sweep(short, engine="ray", out=tmp_path / "sweep")
    before = files_of(tmp_path / "sweep")
    (tmp_path / "sweep" / "point-003" / "summary.json").unlink()
    floras.sweep(short, out=tmp_path / "sweep")
    assert files_of(tmp_path / "sweep") == before


def test_a_failed_point_is_retried_and_others_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from floras import _core, sweeps

    def full_disk_at_first(experiment: dict[str, Any], threads: int) -> Any:
        # A stand-in for a run, defined here so that it is sent to the workers, which do not have this file.
        # Noise 2 finds the disk full at its first try, and noise 3 is never right.
        noise = experiment["uplink"]["noise_std"]
        marks = Path(experiment["data"]["dir"])
        with (marks / str(noise)).open("a") as file:
            file.write("tried\n")
        if noise == 2.0 and len((marks / "2.0").read_text().splitlines()) == 1:
            raise OSError("the disk is full")
        if noise == 3.0:
            raise ValueError("this is wrong")
        del experiment["data"]["dir"]
        return _run_elsewhere(experiment, threads)

    plain = _core.Grid

    class Marked:
        """A grid whose experiments carry the directory for marks."""

        def __init__(self, *arguments: Any) -> None:
            self._grid = plain(*arguments)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._grid, name)

        def to_do(self) -> Any:
            points = self._grid.to_do()
            for point in points:
                point["experiment"]["data"]["dir"] = str(tmp_path)
            return points

    monkeypatch.setattr(sweeps._core, "Grid", Marked)
    monkeypatch.setattr(sweeps, "_run_elsewhere", full_disk_at_first)
    short = {**GRID, "rounds": 2, "sweep": {"uplink": {"noise_std": [1.0, 2.0, 3.0, 4.0]}}}
    with pytest.raises(RuntimeError, match=r"point-003 \(3.0\)"):
        floras.sweep(short, engine="ray", out=tmp_path / "sweep")
    assert (tmp_path / "2.0").read_text().splitlines() == ["tried"] * 2
    assert (tmp_path / "3.0").read_text().splitlines() == ["tried"]
    done = [(tmp_path / "sweep" / f"point-00{number}" / "summary.json").exists() for number in (1, 2, 3, 4)]
    assert done == [True, True, False, True]


def test_input_errors_are_not_retried(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"privacy\.clip must be"):
        floras.sweep({**GRID, "privacy": {"clip": -1.0}}, engine="ray", out=tmp_path / "sweep")
    assert not (tmp_path / "sweep").exists()
