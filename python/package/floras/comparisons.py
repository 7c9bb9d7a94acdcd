"""Runs side by side."""

from __future__ import annotations

import copy
import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floras import _core
from floras._frozen import Frozen, immutable
from floras._text import bound
from floras._types import Path as PathLike
from floras.results import Estimate, Final, Run, Sweep

if TYPE_CHECKING:
    import pandas

__all__ = ["ComparedRun", "Comparison", "compare"]


@immutable
@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run of a comparison."""

    name: str
    """Name of the directory, or its path if two directories have the same name."""
    directory: Path
    """The run directory."""
    rounds: int
    """Rounds done so far in a trial."""
    trials: int
    """Trials of the experiment."""
    seed: int
    """Seed of all random numbers."""
    is_complete: bool
    """Whether all trials have ended."""
    final: Final | None
    """Means over the trials that finished; ``None`` if the run is not complete or all trials diverged."""
    delta: float
    """The delta of `epsilon`."""
    view: str
    """The view that the experiment quotes, ``privacy.view``."""
    epsilon: float | None
    """Upper bound in this view; ``None`` if the run is not complete or there is no finite one."""
    verdict: str | None
    """The verdict on `epsilon`; ``None`` if the run is not complete."""
    epsilon_above: float | None = None
    """No epsilon up to this one is established; ``None`` if `epsilon` is finite."""


@immutable
@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Results, privacy and differing settings of several runs. A notebook shows it as a table."""

    runs: tuple[ComparedRun, ...]
    """The runs in the given order; the points of a sweep stand for it."""
    settings: Frozen[tuple[str | None, ...]]
    """Settings in which at least two runs differ, by key: the value of each run as TOML, ``None`` where the
    key has no effect."""
    plots: tuple[Path, ...]
    """Files of the plot of test accuracy by round; empty without ``out``."""
    _raw: Mapping[str, Any] = field(compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``floras compare --json`` prints, without ``plots``.

        Returns
        -------
        dict
            A copy.
        """
        return copy.deepcopy(dict(self._raw))

    def to_pandas(self) -> pandas.DataFrame:
        """Return the runs as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row per run, with the differing settings as columns.
        """
        import pandas

        return pandas.DataFrame(self._rows(), index=pandas.Index([run.name for run in self.runs], name="run"))

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "test_accuracy": None if run.final is None else run.final.test_accuracy.mean,
                "test_accuracy_ci95": None if run.final is None else run.final.test_accuracy.ci95,
                "test_loss": None if run.final is None else run.final.test_loss.mean,
                "epsilon": run.epsilon,
                "view": run.view,
                "verdict": run.verdict,
                "rounds": run.rounds,
                **{key: values[number] for key, values in self.settings.items()},
            }
            for number, run in enumerate(self.runs)
        ]

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(run.name for run in self.runs)}>"

    def _repr_html_(self) -> str:
        names = ["run", "test accuracy", "ε", "view", "verdict", "rounds", *self.settings]
        rows = [
            [
                run.name,
                "–" if run.final is None else run.final.test_accuracy.percent(),
                bound(run.epsilon, run.epsilon_above),
                run.view,
                run.verdict or "not complete",
                str(run.rounds),
                *(values[number] or "–" for values in self.settings.values()),
            ]
            for number, run in enumerate(self.runs)
        ]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def compare(*runs: PathLike | Run | Sweep, out: PathLike | None = None) -> Comparison:
    """Compare runs, as ``floras compare`` does: results, privacy and the settings that differ.

    Parameters
    ----------
    *runs : path, Run or Sweep
        Run directories, directories of sweeps, or results that were kept with ``out``. A sweep stands for all
        its points.
    out : path, optional
        Where to write a plot of the test accuracy by round, in ``plots/``.

    Returns
    -------
    Comparison
        At least two runs side by side.

    Raises
    ------
    ValueError
        If there are fewer than two runs, if a run was not kept, or if a directory is not a run.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     first = floras.run("quick", trials=1, rounds=1, out=f"{directory}/one")
    ...     second = floras.run("quick", trials=1, rounds=2, out=f"{directory}/two")
    ...     floras.compare(first, second).settings["rounds"]
    ('1', '2')
    """
    if any(isinstance(run, Run) and run.out is None for run in runs):
        raise ValueError("a run was not kept: give out to floras.run")
    directories = [run.out if isinstance(run, Run | Sweep) else run for run in runs]
    raw = _core.compare([path for path in directories if path is not None], out)
    plots = raw.pop("plots")
    return Comparison(
        runs=tuple(map(_run, raw["runs"])),
        settings=Frozen({setting["key"]: tuple(setting["values"]) for setting in raw["settings"]}),
        plots=tuple(Path(plot) for plot in plots),
        _raw=raw,
    )


def _run(raw: Mapping[str, Any]) -> ComparedRun:
    finals = raw["final"]
    measured = ("train_loss", "test_loss", "test_accuracy")
    final = None if finals is None else Final(*(Estimate(**finals[key]) for key in measured))
    fields = {key: value for key, value in raw.items() if key not in ("directory", "final")}
    return ComparedRun(directory=Path(raw["directory"]), final=final, **fields)
