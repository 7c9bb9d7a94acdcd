"""Runs and sweeps, and what they have come to."""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from floras import _core
from floras._progress import Progress, wanted
from floras._types import Experiment
from floras._types import Path as PathLike

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas
    import polars

__all__ = ["Run", "Sweep", "experiment", "run"]

Watch = Callable[[dict[str, Any]], object]


def experiment(
    source: Experiment | None = None,
    *,
    trials: int | None = None,
    rounds: int | None = None,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,  # as the program calls it
) -> dict[str, Any]:
    """Spell out every setting of an experiment, and check it.

    ``source`` is a dictionary with the structure of an experiment file, a file's path, or the name of a
    preset; the default preset if absent. ``set`` changes single settings.

    >>> floras.experiment("quick", set={"uplink.snr_db": 10.0})["uplink"]["snr_db"]
    10.0
    """
    changes = None if set is None else dict(set)
    return _core.experiment(source, trials=trials, rounds=rounds, seed=seed, set=changes)


@dataclass(frozen=True)
class Run:
    """What a run has come to."""

    summary: dict[str, Any] = field(repr=False)
    """How each trial ended, means with 95% intervals, and what can be said about privacy:
    ``summary.json``."""
    metrics: dict[str, npt.NDArray[Any]] = field(repr=False)
    """One entry a trial and round in every column: ``metrics.jsonl``. What was not measured is not a
    number."""
    parameters: list[dict[str, npt.NDArray[np.float32]]] = field(repr=False)
    """The final model of every trial, its arrays by name."""
    experiment: dict[str, Any] = field(repr=False)
    """Every setting."""
    rounds_per_second: float | None = field(repr=False)
    """Rounds of all trials together in a second; ``None`` if there was nothing left to do."""
    out: Path | None
    """The run directory; ``None`` if it was not to be kept."""

    @property
    def final(self) -> dict[str, Any] | None:
        """Means over the trials that finished, with half the width of their 95% intervals.

        It is ``None`` if all diverged.
        """
        final: dict[str, Any] | None = self.summary["final"]
        return final

    @property
    def privacy(self) -> dict[str, Any]:
        """What can be said about privacy, in every view."""
        privacy: dict[str, Any] = self.summary["privacy"]
        return privacy

    def to_pandas(self) -> pandas.DataFrame:
        """The metrics as a frame of pandas."""
        import pandas

        return pandas.DataFrame(self.metrics)

    def to_polars(self) -> polars.DataFrame:
        """The metrics as a frame of polars."""
        import polars

        return polars.DataFrame(self.metrics)

    def plot(self, metric: str = "test_accuracy") -> matplotlib.figure.Figure:
        """Draw a metric over the rounds, the mean over the trials with its 95% interval, with matplotlib."""
        from floras import figures

        return figures.curves({str(self.summary["name"]): self}, metric)


def run(
    experiment: Experiment | None = None,
    *,
    out: PathLike | None = None,
    resume: bool = False,
    trials: int | None = None,
    rounds: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    set: Mapping[str, Any] | None = None,  # as the program calls it
    record_signal: bool | int | str | Iterable[int] | None = None,
    progress: bool | Watch | None = None,
) -> Run:
    """Train a model over the simulated air, as ``floras run`` does, and to the same bytes.

    ``experiment`` is a dictionary with the structure of an experiment file, a file's path, or the name of a
    preset; the default preset if absent. With ``out`` the run directory is kept there, with its report, and
    an interrupted run goes on with ``resume=True``. ``progress`` is called with the metrics of every round,
    or says whether there is a bar; there is one on a terminal. What the program prints as notes, such as
    settings without effect, are warnings here.

    ``record_signal`` writes decoded sum, gains, channels, estimates and assignment of some rounds to
    ``signals/`` in the run directory, as ``.npz``: ``True`` for every round, or rounds as a number, as
    numbers, or as a text such as ``"1,5,10-20"``. It is the setting ``record.signal``, and has to be given
    again with ``resume=True``. The files are not private.

    >>> result = floras.run("quick", trials=2, rounds=3, seed=5)
    >>> result.final["test_accuracy"].keys()
    dict_keys(['ci95', 'mean'])
    >>> result.to_pandas().shape
    (6, 20)
    """
    changes = None if set is None else dict(set)
    if record_signal is not None and record_signal is not False:
        changes = {**(changes or {}), "record.signal": _rounds(record_signal)}
    settings = _core.experiment(experiment, trials=trials, rounds=rounds, seed=seed, set=changes, warn=True)
    if resume and out is None:
        raise ValueError("resume needs out, the directory of the run to go on with")
    if settings["record"]["signal"] not in (None, "none") and out is None:
        raise ValueError("record_signal needs out, the directory in which the signals are kept")
    if out is not None:
        return run_in(settings, Path(out), "resume" if resume else "new", threads, progress, with_report=True)
    directory = Path(tempfile.mkdtemp(prefix="floras-"))
    try:
        return run_in(settings, directory / "run", "new", threads, progress, with_report=False, is_kept=False)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _rounds(rounds: bool | int | str | Iterable[int]) -> str:
    """The text of a set of rounds."""
    if rounds is True:
        return "all"
    if isinstance(rounds, str):
        return rounds
    if isinstance(rounds, Iterable):
        return ",".join(str(index(number)) for number in rounds)
    return str(index(rounds))


def run_in(
    settings: dict[str, Any],
    directory: Path,
    entry: str,
    threads: int | None,
    progress: bool | Watch | None,
    *,
    with_report: bool,
    is_kept: bool = True,
) -> Run:
    """Run a checked experiment in a directory."""

    def told_to(watch: Watch | None) -> dict[str, Any]:
        return _core.run(
            settings, directory, entry=entry, threads=threads, watch=watch, with_report=with_report
        )

    if callable(progress):
        told = told_to(progress)
    elif wanted(progress):
        with Progress(settings["trials"] * settings["rounds"]) as bar:
            told = told_to(bar.advance)
    else:
        told = told_to(None)
    return Run(out=directory if is_kept else None, **told)


@dataclass(frozen=True)
class Sweep:
    """What a sweep has come to: a row for every point of its grid."""

    name: str
    keys: list[str]
    """What varies."""
    rows: list[dict[str, Any]] = field(repr=False)
    """``sweep.csv``: the values of the keys, and means with half the widths of their 95% intervals."""
    out: Path
    """The directory, with one run directory for every point that is run."""

    @classmethod
    def read(cls, name: str, keys: list[str], out: Path) -> Sweep:
        """Read what a sweep has left in its directory."""
        with (out / "sweep.csv").open(newline="", encoding="utf-8") as file:
            rows = [{key: _number(text) for key, text in row.items()} for row in csv.DictReader(file)]
        return cls(name=name, keys=keys, rows=rows, out=out)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a frame of pandas."""
        import pandas

        return pandas.DataFrame(self.rows)

    def to_polars(self) -> polars.DataFrame:
        """The rows as a frame of polars."""
        import polars

        return polars.DataFrame(self.rows)


def _number(text: str) -> Any:
    """The number that a text is, or the text."""
    if text == "":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
