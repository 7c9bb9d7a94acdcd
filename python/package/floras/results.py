"""Runs and sweeps, and their results."""

from __future__ import annotations

import copy
import csv
import html
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from floras import _core
from floras._frozen import Frozen, immutable
from floras._progress import Progress, wanted
from floras._text import bound, counted
from floras._types import Experiment, View, mapping
from floras._types import Path as PathLike
from floras.own import Clients, Model, Pair, arrays_of, train
from floras.statements import Privacy, Views

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas
    import polars

__all__ = ["Estimate", "Final", "Run", "Sweep", "TrialResult", "experiment", "run"]

Watch = Callable[[dict[str, Any]], object]


def experiment(
    source: Experiment | None = None,
    *,
    trials: int | None = None,
    rounds: int | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    set: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return every setting of an experiment, checked and with its defaults.

    Parameters
    ----------
    source : dict, path or str, optional
        A dictionary with the structure of an experiment file, the path of a file, or the name of a preset;
        the default preset if absent.
    trials, rounds : int, optional
        Numbers of trials and of rounds, at least 1.
    seed : int, optional
        Between 0 and 2**63 - 1.
    settings : mapping, optional
        Single settings to change, by key: ``{"uplink.snr_db": 10.0}``.
    set : mapping, optional
        Deprecated name of ``settings``.

    Returns
    -------
    dict
        The sections and keys of the experiment file.

    Raises
    ------
    ValueError
        If a setting is unknown or out of its range. The message names it and what is allowed.

    Examples
    --------
    >>> floras.experiment("quick", settings={"uplink.snr_db": 10.0})["uplink"]["snr_db"]
    10.0
    """
    changes = _changes(settings, set)
    return _core.experiment(source, trials=trials, rounds=rounds, seed=seed, settings=changes)


def _changes(settings: Mapping[str, Any] | None, old: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The changed settings, also under the old name of the keyword."""
    if old is not None:
        warnings.warn("the keyword set is now settings", DeprecationWarning, stacklevel=3)
        if settings is not None:
            raise TypeError("set is the old name of settings: give one of them")
        settings = old
    return mapping("settings", settings)


@immutable
@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over trials."""

    mean: float
    """The mean."""
    ci95: float | None
    """Half the width of its 95% interval; ``None`` for a single trial."""

    def __str__(self) -> str:
        return _core.estimate_text(self.mean, self.ci95)

    def percent(self) -> str:
        """Return the mean as a percentage with its interval, as tables of the program print it.

        Returns
        -------
        str
            Two significant digits of the interval, such as ``"85.04 ± 0.69 %"``.
        """
        return _core.percentage(self.mean, self.ci95)


@immutable
@dataclass(frozen=True, slots=True)
class Final:
    """Final values, over the trials that finished."""

    train_loss: Estimate
    """Loss over all training samples, with the penalty."""
    test_loss: Estimate
    """Loss over the test samples, with the penalty."""
    test_accuracy: Estimate
    """Share of the test samples that are classified correctly, between 0 and 1."""


@immutable
@dataclass(frozen=True, slots=True)
class TrialResult:
    """How a trial ended."""

    trial: int
    """Number of the trial, from 0."""
    status: Literal["finished", "diverged"]
    """``"diverged"`` if a parameter or the last loss is not finite."""
    train_loss: float | None
    """``None`` if the trial diverged."""
    test_loss: float | None
    """``None`` if the trial diverged."""
    test_accuracy: float | None
    """Between 0 and 1; ``None`` if the trial diverged."""
    diverged_in: int | None
    """The round in which the trial diverged, from 1; ``None`` if it finished."""


@immutable
@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """The result of a run. A notebook shows its accuracy and its privacy table.

    Examples
    --------
    >>> run = floras.run("quick", trials=1, rounds=2)
    >>> run.epsilon() == run.epsilon("any-channel") == run.privacy.views["any-channel"].epsilon
    True
    >>> run.verdict
    'weak'
    """

    name: str
    """Name of the experiment."""
    final: Final | None
    """Means over the trials that finished; ``None`` if all diverged."""
    trials: tuple[TrialResult, ...]
    """How each trial ended."""
    privacy: Privacy
    """Privacy of all rounds, in every view."""
    cost: Frozen[float] | None
    """Cost of a trial on the air: channel uses, energy and powers; ``None`` without a radio."""
    metrics: Frozen[npt.NDArray[Any]]
    """One entry per trial and round in every column, as in ``metrics.jsonl``; NaN where nothing was
    measured. The arrays are read-only."""
    parameters: tuple[Frozen[npt.NDArray[np.float32]], ...]
    """The final model of each trial, as read-only arrays by name."""
    experiment: Frozen[Any]
    """Every setting. `run` accepts it; ``experiment.to_dict()`` is a copy that can be changed."""
    rounds_per_second: float | None = field(compare=False)
    """Rounds of all trials together per second; ``None`` if the run was already complete."""
    out: Path | None = field(compare=False)
    """The run directory; ``None`` if it was not kept."""
    _summary: dict[str, Any] = field(compare=False)

    @classmethod
    def from_parts(
        cls,
        *,
        summary: dict[str, Any],
        metrics: Mapping[str, npt.NDArray[Any]],
        parameters: Iterable[Mapping[str, npt.NDArray[np.float32]]],
        experiment: dict[str, Any],
        rounds_per_second: float | None,
        out: Path | None,
    ) -> Run:
        """Make a run from ``summary.json``, the metrics and the models.

        Parameters
        ----------
        summary : dict
            The content of ``summary.json``.
        metrics : mapping of str to ndarray
            The columns of ``metrics.jsonl``.
        parameters : iterable of mapping
            The final model of each trial, as arrays by name.
        experiment : dict
            Every setting.
        rounds_per_second : float or None
            Rounds of all trials together per second.
        out : Path or None
            The run directory, if it was kept.

        Returns
        -------
        Run
            The run, with frozen metrics and models.
        """
        final = summary["final"]
        finals = ("train_loss", "test_loss", "test_accuracy")
        return cls(
            name=summary["name"],
            final=None if final is None else Final(*(Estimate(**final[key]) for key in finals)),
            trials=tuple(_trial(trial) for trial in summary["trials"]),
            privacy=Privacy.from_dict(summary["privacy"], experiment["privacy"].get("view")),
            cost=None if summary.get("cost") is None else Frozen(summary["cost"]),
            metrics=Frozen(metrics),
            parameters=tuple(Frozen(model) for model in parameters),
            experiment=Frozen(experiment),
            rounds_per_second=rounds_per_second,
            out=out,
            _summary=summary,
        )

    @property
    def views(self) -> Views:
        """The privacy statement of each view."""
        return self.privacy.views

    @property
    def verdict(self) -> str:
        """The verdict on the default view, as in `Statement.verdict`."""
        return self.privacy.verdict

    def epsilon(self, view: View | None = None) -> float | None:
        """Return the upper bound on epsilon after all rounds.

        Parameters
        ----------
        view : str, optional
            Name of the view, such as ``"any-channel"``; ``privacy.view`` by default.

        Returns
        -------
        float or None
            ``None`` if no finite epsilon is established.
        """
        return self.privacy.epsilon(view)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of ``summary.json``.

        Returns
        -------
        dict
            A copy.
        """
        return copy.deepcopy(self._summary)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the metrics as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row per trial and round, one column per metric.
        """
        import pandas

        return pandas.DataFrame(dict(self.metrics))

    def to_polars(self) -> polars.DataFrame:
        """Return the metrics as a polars frame.

        Returns
        -------
        polars.DataFrame
            One row per trial and round, one column per metric.
        """
        import polars

        return polars.DataFrame(dict(self.metrics))

    def plot(self, metric: str = "test_accuracy") -> matplotlib.figure.Figure:
        """Plot a metric over the rounds with matplotlib: the mean over the trials with its 95% interval.

        Parameters
        ----------
        metric : str
            A column of `metrics`.

        Returns
        -------
        matplotlib.figure.Figure
            A figure that a notebook shows, and that ``savefig`` writes.
        """
        from floras import figures

        return figures.curves({self.name: self}, metric)

    def _result(self) -> str:
        rounds = f"{counted(self.privacy.rounds, 'round')}, {counted(len(self.trials), 'trial')}"
        if self.final is None:
            return f"{self.name}: {rounds}, all diverged"
        return f"{self.name}: {rounds}, test accuracy {self.final.test_accuracy.percent()}"

    def __repr__(self) -> str:
        return f"<Run {self._result()}>"

    def __str__(self) -> str:
        return f"{self._result()}\n{self.privacy}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._result())}</p>{self.privacy._repr_html_()}"


def _trial(raw: Mapping[str, Any]) -> TrialResult:
    measured = {key: raw.get(key) for key in ("train_loss", "test_loss", "test_accuracy")}
    return TrialResult(trial=raw["trial"], status=raw["status"], diverged_in=raw.get("round"), **measured)


def run(
    experiment: Experiment | None = None,
    *,
    out: PathLike | None = None,
    resume: bool = False,
    trials: int | None = None,
    rounds: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    settings: Mapping[str, Any] | None = None,
    data: Pair | None = None,
    test: Pair | None = None,
    clients: Clients | None = None,
    model: Model | None = None,
    record_signal: bool | int | str | Iterable[int] | None = None,
    progress: bool | Watch | None = None,
    set: Mapping[str, Any] | None = None,
) -> Run:
    """Train a model over the simulated air, as ``floras run`` does. The files are the same, byte for byte.

    Parameters
    ----------
    experiment : dict, path or str, optional
        A dictionary with the structure of an experiment file, the path of a file, or the name of a preset;
        the default preset if absent.
    out : path, optional
        Where to keep the run directory with its report. Nothing is kept by default.
    resume : bool
        Whether to resume the interrupted run in ``out``.
    trials, rounds : int, optional
        Numbers of trials and of rounds, at least 1.
    seed : int, optional
        Between 0 and 2**63 - 1.
    threads : int, optional
        Between 1 and 1024; one per core by default. Results do not depend on it.
    settings : mapping, optional
        Single settings to change, by key: ``{"uplink.snr_db": 10.0}``.
    data : pair of arrays, optional
        Your training samples ``(x, y)``: features with one row per sample, and integer labels from 0. They
        replace the data set of the experiment. The run directory records their SHA-256, and a resumed run
        is refused with other arrays.
    test : pair of arrays, optional
        Your test samples ``(x, y)``. Without them, accuracy is measured on ``data``, with a warning.
    clients : str or sequence of arrays, optional
        Which client holds which rows of ``data``: a partition such as ``"iid"`` or ``"dirichlet=0.5"``, or
        the row numbers of each client.
    model : Model, optional
        A custom model, trained in Python on ``data``: an object with ``parameters``, ``local_update`` and
        ``evaluate``, see `floras.own.Model`. The uplink, the partition and the selection of clients are
        those of the built-in models; the sections ``model`` and ``local`` of the experiment have no effect.
        Nothing is recorded on disk.
    record_signal : bool, int, str or iterable of int, optional
        Rounds whose signal is recorded in ``signals/`` of the run directory, as ``.npz``: ``True`` for every
        round, one round, several, or text such as ``"1,5,10-20"``. The files are not private. Give it again
        with ``resume=True``.
    progress : bool or callable, optional
        A function that is called with the metrics of each round, or whether to show a progress bar. Metrics
        that were not measured in a round are ``None``. The bar is tqdm's if tqdm is installed. By default
        there is a bar on a terminal, and in a notebook with tqdm.
    set : mapping, optional
        Deprecated name of ``settings``.

    Returns
    -------
    Run
        Accuracy, privacy, metrics and models.

    Raises
    ------
    ValueError
        If a setting is wrong, or if ``out`` holds another experiment.
    OSError
        If a file cannot be read or written.

    Warns
    -----
    UserWarning
        For each note of ``floras run``, such as settings without effect.

    Examples
    --------
    >>> result = floras.run("quick", trials=2, rounds=3, seed=5)
    >>> result.final.test_accuracy.mean > 0.5
    True
    >>> result.to_pandas().shape
    (6, 20)
    """
    changes = _changes(settings, set)
    if record_signal is not None and record_signal is not False:
        changes = {**(changes or {}), "record.signal": _rounds(record_signal)}
    checked = _core.experiment(
        experiment, trials=trials, rounds=rounds, seed=seed, settings=changes, warn=True
    )
    if data is None and not (test is None and clients is None and model is None):
        raise ValueError("test, clients and model need data, your training samples")
    if data is not None and test is None:
        warnings.warn("without test=(x, y), accuracy is measured on the training samples", stacklevel=2)
    if model is not None:
        missing = [name for name in ("parameters", "local_update", "evaluate") if not hasattr(model, name)]
        if missing:
            raise TypeError(f"model must have {', '.join(missing)}, as in floras.Model")
    if model is not None and (out is not None or resume or record_signal):
        raise ValueError("out, resume and record_signal are not available with a custom model")
    _core.check_threads(threads)
    if model is not None and data is not None:
        return _run_model(checked, model, data, test, clients, progress)
    own = None
    if data is not None:
        checked, own = arrays_of(checked, data, test, clients)
    if resume and out is None:
        raise ValueError("resume needs out, the directory of the interrupted run")
    if checked["record"]["signal"] not in (None, "none") and out is None:
        raise ValueError("record_signal needs out, the directory for the recorded signals")
    if out is not None:
        entry = "resume" if resume else "new"
        return run_in(checked, Path(out), entry, threads, progress, with_report=True, data=own)
    directory = Path(tempfile.mkdtemp(prefix="floras-"))
    try:
        path = directory / "run"
        return run_in(checked, path, "new", threads, progress, with_report=False, is_kept=False, data=own)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _run_model(
    settings: dict[str, Any],
    model: Model,
    data: Pair,
    test: Pair | None,
    clients: Clients | None,
    progress: bool | Watch | None,
) -> Run:
    """Train a custom model in Python."""
    if callable(progress):
        parts = train(settings, model, data, test, clients, progress)
    elif wanted(progress):
        with Progress(settings["trials"] * settings["rounds"]) as bar:
            parts = train(settings, model, data, test, clients, bar.advance)
    else:
        parts = train(settings, model, data, test, clients, None)
    return Run.from_parts(out=None, **parts)


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
    data: _core.OwnArrays | None = None,
) -> Run:
    """Run a checked experiment in a directory.

    Parameters
    ----------
    settings : dict
        Every setting, as `experiment` returns them.
    directory : Path
        The run directory.
    entry : {"new", "resume"}
        Whether to begin a run or to resume one.
    threads : int or None
        As in `run`.
    progress : bool, callable or None
        As in `run`.
    with_report : bool
        Whether to write the report.
    is_kept : bool
        Whether the run directory remains afterwards.
    data : OwnArrays, optional
        Arrays that replace the data set.

    Returns
    -------
    Run
        Accuracy, privacy, metrics and models.
    """

    def work(watch: Watch | None) -> dict[str, Any]:
        return _core.run(
            settings,
            directory,
            entry=entry,
            threads=threads,
            watch=watch,
            with_report=with_report,
            data=data,
        )

    if callable(progress):
        parts = work(progress)
    elif wanted(progress):
        with Progress(settings["trials"] * settings["rounds"]) as bar:
            parts = work(bar.advance)
    else:
        parts = work(None)
    return Run.from_parts(out=directory if is_kept else None, **parts)


@immutable
@dataclass(frozen=True, slots=True, repr=False)
class Sweep:
    """The result of a sweep: one row per point of its grid. A notebook shows it as a table."""

    name: str
    """Name of the experiment that is varied."""
    keys: tuple[str, ...]
    """The settings that vary."""
    rows: tuple[Frozen[Any], ...] = field(repr=False)
    """The rows of ``sweep.csv``: values of the keys, means, and half the widths of their 95% intervals."""
    out: Path
    """The directory, with one run directory for each point."""
    _above: tuple[float | None, ...] = field(repr=False, compare=False)

    @classmethod
    def read(cls, name: str, keys: Iterable[str], out: Path) -> Sweep:
        """Read the directory of a sweep.

        Parameters
        ----------
        name : str
            Name of the experiment that is varied.
        keys : iterable of str
            The settings that vary.
        out : Path
            The directory with ``sweep.csv``.

        Returns
        -------
        Sweep
            One row per finished point.

        Raises
        ------
        OSError
            If ``sweep.csv`` cannot be read.
        """
        with (out / "sweep.csv").open(newline="", encoding="utf-8") as file:
            rows = [{key: _number(text) for key, text in row.items()} for row in csv.DictReader(file)]
        above = tuple(_out_of_reach(row, out) for row in rows)
        return cls(name=name, keys=tuple(keys), rows=tuple(map(Frozen, rows)), out=out, _above=above)

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries.

        Returns
        -------
        list of dict
            One dictionary per point, with the columns of ``sweep.csv``.
        """
        return [dict(row) for row in self.rows]

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row per point, with the columns of ``sweep.csv``.
        """
        import pandas

        return pandas.DataFrame(self.to_dict())

    def to_polars(self) -> polars.DataFrame:
        """Return the rows as a polars frame.

        Returns
        -------
        polars.DataFrame
            One row per point, with the columns of ``sweep.csv``.
        """
        import polars

        return polars.DataFrame(self.to_dict())

    def _repr_html_(self) -> str:
        names = (*self.keys, "rounds", "test accuracy", "ε", "view", "verdict")
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        cells = map(self._cells, self.rows, self._above)
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in cells
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _cells(self, row: Frozen[Any], above: float | None) -> Iterable[str]:
        yield from (_shown(row[key]) for key in self.keys)
        yield _shown(row["rounds_done"])
        accuracy = row["test_accuracy_mean"]
        yield "all diverged" if accuracy is None else Estimate(accuracy, row["test_accuracy_ci95"]).percent()
        yield bound(row["epsilon"], above)
        yield _shown(row["view"])
        yield _shown(row["verdict"])

    def __repr__(self) -> str:
        return f"<Sweep {self.name}: {counted(len(self.rows), 'point')} over {', '.join(self.keys)}>"


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _out_of_reach(row: Mapping[str, Any], out: Path) -> float | None:
    """No epsilon up to this one is established for a point. The table lacks it, and its run has it."""
    if row["epsilon"] is not None or row["view"] is None:
        return None
    summary = json.loads((out / row["run"] / "summary.json").read_text(encoding="utf-8"))
    statement = Views.from_dict(summary["privacy"]["views"]).get(row["view"])
    return None if statement is None else statement.epsilon_above


def _number(text: str) -> Any:
    """The number in a text, or the text."""
    if text == "":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
