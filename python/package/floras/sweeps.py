"""Sweeps: a run for every point of a grid, here or on a Ray cluster."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Collection, Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

from floras import _core
from floras._progress import Progress, wanted
from floras._types import Experiment, mapping
from floras._types import Path as PathLike
from floras.results import Sweep, run_in

__all__ = ["sweep"]

Point = dict[str, Any]
Files = dict[str, bytes]


def sweep(
    grid: Experiment | None = None,
    over: Mapping[str, Iterable[Any]] | None = None,
    *,
    engine: Literal["local", "ray"] = "local",
    trials: int | None = None,
    rounds: int | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    out: PathLike | None = None,
    threads: int | None = None,
    retries: int = 3,
    progress: bool | None = None,
) -> Sweep:
    """Run every point of a grid, as ``floras sweep`` does. The files are the same, byte for byte.

    Parameters
    ----------
    grid : dict, path or str, optional
        An experiment as in `run`; the default preset if absent. It may have a section ``sweep`` that lists
        values for some keys.
    over : mapping, optional
        Values for keys that vary: ``{"uplink.snr_db": [0, 10, 20]}``. The last key varies fastest.
    engine : {"local", "ray"}
        Where to run. With ``"ray"`` each point is a task on the cluster that ``ray.init`` reaches. The
        cluster needs no shared file system: a task returns its run directory. Files that an experiment reads,
        such as a data set, must be on every machine.
    trials, rounds, seed : int, optional
        As in `run`, for all points.
    settings : mapping, optional
        Single settings to change in all points, by key.
    out : path, optional
        Directory of all runs; ``runs/NAME-sweep`` by default. An interrupted sweep in it is resumed.
    threads : int, optional
        Threads of one point, between 1 and 1024; by default one per core here, and one on Ray.
    retries : int
        How often a Ray task is restarted if its worker dies, has no memory or cannot write; at least 0.
    progress : bool, optional
        Whether to show a progress bar over the rounds of all points, as in `run`.

    Returns
    -------
    Sweep
        One row per point.

    Raises
    ------
    ValueError
        If the grid is wrong, or if ``out`` holds another sweep.
    RuntimeError
        If a point fails on Ray. The other points are run first.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     result = floras.sweep("quick", {"uplink.snr_db": [0.0, 20.0]}, rounds=2, trials=1, out=directory)
    >>> [row["uplink.snr_db"] for row in result.rows]
    [0.0, 20.0]
    """
    if engine not in ("local", "ray"):
        raise ValueError(f'engine must be "local" or "ray", not {engine!r}')
    if retries < 0:
        raise ValueError(f"retries must be at least 0, not {retries}")
    if engine == "ray" and threads is None:
        threads = 1
    varied, changes = mapping("over", over), mapping("settings", settings)
    work = _core.Grid(grid, varied, changes, (trials, rounds, seed), out, threads)
    try:
        to_do = {point["number"]: point for point in work.to_do()}
        for point in to_do.values():
            for note in point["notes"]:
                warnings.warn(f"{point['directory']}: {note}", stacklevel=2)
        with _Bar(work, to_do) if wanted(progress) else nullcontext() as bar:
            if engine == "ray":
                _on_ray(work, list(to_do.values()), threads or 1, retries, bar)
            else:
                work.run(None if bar is None else bar.event)
        _core.report(work.directory, is_new=bool(to_do))
    finally:
        work.leave()
    return Sweep.read(work.name, work.keys, work.directory)


class _Bar:
    """The progress of a sweep over the rounds of all its points."""

    def __init__(self, work: _core.Grid, to_do: Collection[int]) -> None:
        done, rounds = work.rounds()
        self._bar = Progress(rounds)
        self._bar.skip(done)
        self._to_do = to_do
        self._runs = work.runs
        self._done = work.runs - len(to_do)
        self._bar.points(self._done, self._runs)

    def __enter__(self) -> _Bar:
        self._bar.__enter__()
        return self

    def __exit__(self, *ended: Any) -> None:
        self._bar.__exit__(*ended)

    def event(self, event: dict[str, Any]) -> None:
        """Show an event of a local sweep."""
        if "metrics" in event:
            self._bar.advance(event["metrics"])
        elif "done" in event:
            self._bar.skip(event["done"])
        elif event["ended"] in self._to_do:
            self.point_ends()

    def point_ends(self, rounds: int = 0) -> None:
        """Show that a point is done, with rounds that were not shown before."""
        self._done += 1
        self._bar.skip(rounds)
        self._bar.points(self._done, self._runs)


def _on_ray(work: _core.Grid, points: list[Point], threads: int, retries: int, bar: _Bar | None) -> None:
    """Run all points as Ray tasks, and store their directories as they arrive."""
    import ray

    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    options: dict[str, Any] = {
        "max_retries": retries,
        "retry_exceptions": [OSError, MemoryError],
        "num_cpus": threads,
    }
    task = ray.remote(**options)(_run_elsewhere)
    waiting = {task.remote(point["experiment"], threads): point for point in points}
    failures: list[tuple[Point, Exception]] = []
    try:
        while waiting:
            (done, *_), _ = ray.wait(list(waiting), num_returns=1)
            point = waiting.pop(done)
            try:
                files = ray.get(done)
            except ray.exceptions.RayError as error:
                # The other points continue, and their results are kept.
                failures.append((point, error))
                continue
            work.put(point["number"], files)
            if bar is not None:
                bar.point_ends(point["experiment"]["trials"] * point["experiment"]["rounds"])
    finally:
        for task_left in waiting:
            ray.cancel(task_left, force=True)
    if failures:
        names = ", ".join(f"{point['directory']} ({', '.join(point['values'])})" for point, _ in failures)
        raise RuntimeError(
            f"these points failed: {names}; the error above is that of the last one"
        ) from failures[-1][1]
    work.write_table()


def _run_elsewhere(experiment: dict[str, Any], threads: int) -> Files:
    """Run an experiment in a temporary directory, and return its files."""
    with tempfile.TemporaryDirectory(prefix="floras-") as temporary:
        out = Path(temporary) / "run"
        run_in(experiment, out, "new", threads, False, with_report=False)
        files = [path for path in out.rglob("*") if path.is_file() and path.name != "lock"]
        return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}
