"""Reports and audits."""

from __future__ import annotations

import copy
import html
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from floras import _core
from floras._frozen import Frozen, immutable
from floras._text import bound, lower, upper
from floras._types import Experiment, mapping
from floras._types import Path as PathLike
from floras.results import Run, Sweep

if TYPE_CHECKING:
    import pandas

__all__ = ["Audit", "AuditedView", "AuditedViews", "audit", "report"]


def report(directory: PathLike | Run | Sweep | Audit) -> Path:
    """Write the HTML report of a run, a sweep or an audit.

    Parameters
    ----------
    directory : path, Run, Sweep or Audit
        The directory, or a result that was kept with ``out``.

    Returns
    -------
    Path
        The page, ``report.html`` in the directory.

    Raises
    ------
    ValueError
        If the directory holds nothing to report, or if the result was not kept.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     run = floras.run("quick", trials=1, rounds=2, out=f"{directory}/run")
    ...     floras.report(run).name
    'report.html'
    """
    if isinstance(directory, Run | Sweep | Audit):
        if directory.out is None:
            what = type(directory).__name__.lower()
            raise ValueError(f"the {what} was not kept: give out to floras.{what}")
        directory = directory.out
    if not isinstance(directory, str | os.PathLike):
        given = type(directory).__name__
        raise TypeError(f"report needs a path, a Run, a Sweep or an Audit, not {given}")
    return _core.report(directory)


@immutable
@dataclass(frozen=True, slots=True)
class AuditedView:
    """What attacks have shown about one view."""

    view: str
    """Name of the view, with hyphens."""
    published: float | None
    """Epsilon of the published formula; ``None`` without one."""
    rigorous: float | None
    """The proven upper bound on epsilon; ``None`` without a finite one."""
    lower_bound: float | None
    """The largest epsilon that an attack has demonstrated, at the audit's confidence."""
    verdict: Frozen[Literal["consistent", "violated"]]
    """For ``"published"`` and ``"rigorous"``, whether the lower bound contradicts it. A claim that is not
    made has no verdict."""
    published_claims_it: bool
    """Whether the paper claims its epsilon for this adversary."""


class AuditedViews(Frozen[AuditedView]):
    """The attacked views, the strongest adversary first. Lookups accept underscores."""

    __slots__ = ()

    def __init__(self, entries: Mapping[str, AuditedView]) -> None:
        order = (*_core.VIEWS, RELEASED)
        super().__init__(dict(sorted(entries.items(), key=lambda entry: order.index(entry[0]))))

    def __getitem__(self, view: str) -> AuditedView:
        try:
            return super().__getitem__(view.replace("_", "-") if isinstance(view, str) else view)
        except KeyError:
            raise KeyError(f"{view}: the views here are {', '.join(self) or 'none'}") from None


RELEASED = "released-model"
"""Name of the adversary who sees only the final model."""


@immutable
@dataclass(frozen=True, slots=True, repr=False)
class Audit:
    """The result of an audit. A notebook shows it as a table."""

    views: AuditedViews
    """The attacked views, the strongest adversary first; ``"released-model"`` is an adversary who sees only
    the final model."""
    attacks: Frozen[Any]
    """The results of all attacks, as in ``audit.json``."""
    out: Path | None
    """The directory with the report; ``None`` if it was not kept."""
    _raw: Mapping[str, Any] = field(compare=False)

    @property
    def is_consistent(self) -> bool:
        """Whether no attack contradicts a proven bound."""
        return all(view.verdict.get("rigorous") != "violated" for view in self.views.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``floras audit --json`` prints, without ``out``.

        Returns
        -------
        dict
            A copy.
        """
        return copy.deepcopy(dict(self._raw))

    def to_pandas(self) -> pandas.DataFrame:
        """Return the views as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row per view: the measured lower bound, the proven and the published epsilon, and the
            verdicts.
        """
        import pandas

        rows = [
            {
                "lower_bound": view.lower_bound,
                "rigorous": view.rigorous,
                "published": view.published,
                **{f"{name}_verdict": view.verdict.get(name) for name in ("rigorous", "published")},
            }
            for view in self.views.values()
        ]
        return pandas.DataFrame(rows, index=pandas.Index(list(self.views), name="view"))

    def __repr__(self) -> str:
        state = "consistent with" if self.is_consistent else "in contradiction to"
        return f"<Audit of {', '.join(self.views)}: {state} the proven bounds>"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("view", "measured ε ≥", "proven ε ≤", "published ε"))
        cells = (
            (
                name,
                "none" if view.lower_bound is None else lower(view.lower_bound),
                bound(view.rigorous),
                "not claimed" if view.published is None else _published(view.published, view),
            )
            for name, view in self.views.items()
        )
        rows = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in cells
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        return f"<p>{html.escape(repr(self))}</p>{table}"


def _published(epsilon: float, view: AuditedView) -> str:
    return upper(epsilon) if view.published_claims_it else f"{upper(epsilon)} (not claimed)"


def audit(
    experiment: Experiment | None = None,
    *,
    out: PathLike | None = None,
    rounds: int | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    games: int = 2_000_000,
    trainings: int = 200,
    confidence: float = 0.95,
    threads: int | None = None,
) -> Audit:
    """Attack an experiment, and compare what leaks with the bounds, as ``floras audit`` does.

    Parameters
    ----------
    experiment : dict, path or str, optional
        As in `run`; the preset ``"audit"`` by default.
    out : path, optional
        Directory of the audit and its report: a new one, that of an earlier audit, or that of a run of the
        same experiment. Nothing is kept by default.
    rounds, seed : int, optional
        As in `run`.
    settings : mapping, optional
        Single settings to change, by key.
    games : int
        Rounds per attack, between 1000 and 10**8. Fewer games are faster and demonstrate less.
    trainings : int
        Complete trainings per canary that needs them, at most 2000.
    confidence : float
        Joint confidence of all lower bounds, between 0.5 and 0.999999.
    threads : int, optional
        Between 1 and 1024; one per core by default.

    Returns
    -------
    Audit
        Measured lower bounds beside the published and the proven epsilon.

    Raises
    ------
    ValueError
        If a setting is wrong, or if the experiment cannot be audited.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> audit = floras.audit(games=2000, trainings=0, settings={"uplink.truncate": 5.0})
    >>> audit.is_consistent
    True
    """
    source = "audit" if experiment is None else experiment
    changes = mapping("settings", settings)
    checked = _core.experiment(source, rounds=rounds, seed=seed, settings=changes, warn=True)
    if out is not None:
        raw = _core.audit(checked, out, games, trainings, confidence, threads)
        return _audit(raw, Path(out))
    with tempfile.TemporaryDirectory(prefix="floras-") as directory:
        raw = _core.audit(checked, Path(directory) / "audit", games, trainings, confidence, threads)
    return _audit(raw, None)


def _audit(raw: Mapping[str, Any], out: Path | None) -> Audit:
    given = {name: view for name, view in raw["views"].items() if view is not None}
    views = {
        name.replace("_", "-"): AuditedView(
            view=name.replace("_", "-"),
            published=view.get("published"),
            rigorous=view.get("rigorous"),
            lower_bound=view.get("lower_bound"),
            verdict=Frozen(_verdicts(view)),
            published_claims_it=view["published_claims_it"],
        )
        for name, view in given.items()
    }
    return Audit(views=AuditedViews(views), attacks=Frozen(raw["attacks"]), out=out, _raw=raw)


def _verdicts(view: Mapping[str, Any]) -> dict[str, Any]:
    claimed = {"rigorous": True, "published": view["published_claims_it"]}
    return {name: word for name, word in view["verdict"].items() if word is not None and claimed[name]}
