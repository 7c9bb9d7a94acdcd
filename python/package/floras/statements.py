"""Privacy statements: an upper bound on epsilon for every view, with its verdict.

A *view* is a model of the adversary. Names of views have hyphens, as in experiment files and on the command
line: ``"raw-signal"``, ``"any-channel"``, ``"actual"``, ``"idealised"`` and ``"published"``. Lookups accept
underscores too. The keys of JSON objects have underscores, in ``to_dict()`` as in ``--json``.
"""

from __future__ import annotations

import copy
import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from floras import _core
from floras._frozen import Frozen, Value, immutable
from floras._text import bound, counted
from floras._types import View

if TYPE_CHECKING:
    import pandas
    from typing_extensions import Self

__all__ = [
    "VIEWS",
    "Account",
    "ByView",
    "Calibration",
    "Composition",
    "Frozen",
    "Group",
    "GroupEpsilon",
    "OneRound",
    "Privacy",
    "PublishedRenyi",
    "Spent",
    "Statement",
    "Views",
    "WorstClient",
]

VIEWS: tuple[str, ...] = tuple(_core.VIEWS)
"""Names of all views, the strongest adversary first and the published formula last."""


class ByView(Frozen[Value]):
    """A value for each view, keyed by the view's name; the strongest adversary comes first.

    Examples
    --------
    >>> uplink = floras.Uplink(sequences=25, clip=1.0, receiver="clipped=1")
    >>> spend = uplink.realise(20, seed=1).spend
    >>> spend["any-channel"] == spend["any_channel"]
    True
    """

    __slots__ = ()

    def __init__(self, entries: Mapping[str, Value]) -> None:
        named = {_core.view_name(name): value for name, value in entries.items()}
        super().__init__({view: named[view] for view in VIEWS if view in named})

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Self:
        """Read the fields of a JSON object. A view without a value is left out.

        Parameters
        ----------
        raw : mapping of str to object
            Values by the name of the view; ``None`` for a view without a value.

        Returns
        -------
        ByView
            The values that are given.
        """
        return cls({field: value for field, value in raw.items() if value is not None})

    def __getitem__(self, view: str) -> Value:
        try:
            return super().__getitem__(view.replace("_", "-") if isinstance(view, str) else view)
        except KeyError:
            raise KeyError(f"{view}: the views here are {', '.join(self) or 'none'}") from None


@immutable
@dataclass(frozen=True, slots=True)
class Statement:
    """What is established about one view."""

    view: str
    """Name of the view, with hyphens."""
    epsilon: float | None
    """Upper bound on epsilon, at least 0, at the delta of the account; ``None`` if no finite one is
    established."""
    guarantee: bool
    """Whether `epsilon` is proven. It is not for the published formula, for estimates, and for rounds with
    a seed."""
    adversary: str
    """Who the adversary is."""
    reason: str | None
    """Why there is no epsilon, or why it is not proven."""
    epsilon_lower: float | None = field(repr=False)
    """Lower bound on the true epsilon; ``None`` if there is none."""
    epsilon_above: float | None = field(repr=False)
    """No epsilon up to this one is established; ``None`` if `epsilon` is finite."""
    from_masks: bool = field(repr=False)
    """Whether the bound is that of masks."""
    covers_raw_samples: bool = field(repr=False)
    """Whether epsilon of a view other than raw-signal also covers a base station with raw samples."""
    assumptions: tuple[str, ...] = field(repr=False)
    """Assumptions about the radio and the adversary."""
    details: Frozen[float] = field(repr=False)
    """Further numbers of this view, such as ``in_every_round``."""
    _raw: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_dict(cls, view: str, raw: Mapping[str, Any]) -> Statement:
        """Read the JSON object of a view.

        Parameters
        ----------
        view : str
            Name of the view, with hyphens or underscores.
        raw : mapping
            The object.

        Returns
        -------
        Statement
            Its content.
        """
        known = {"epsilon", "guarantee", "adversary", "reason", "epsilon_lower", "epsilon_above"}
        other = known | {"from_masks", "covers_raw_samples", "assumptions", "verdict"}
        return cls(
            view=_core.view_name(view),
            from_masks=raw.get("from_masks", False),
            covers_raw_samples=raw.get("covers_raw_samples", False),
            assumptions=tuple(raw.get("assumptions", ())),
            details=Frozen({key: value for key, value in raw.items() if key not in other}),
            _raw=raw,
            **dict[str, Any]({key: raw.get(key) for key in known}),
        )

    @property
    def verdict(self) -> str:
        """``"strong"``, ``"moderate"``, ``"weak"``, ``"none"`` or ``"not proven"``."""
        return _core.verdict(self.epsilon, self.guarantee)[0]

    @property
    def meaning(self) -> str:
        """One sentence on what `epsilon` means."""
        return _core.verdict(self.epsilon, self.guarantee)[1]

    @property
    def is_model(self) -> bool:
        """Whether `epsilon` is proven for a model only: the idealised view assumes that no channel fades.

        Tables mark its verdict with "(model)", as the program does.
        """
        is_own = self.guarantee and not self.from_masks
        return self.view == "idealised" and is_own and _protects(self.verdict) and bool(self.assumptions)

    def _marked_verdict(self) -> str:
        return f"{self.verdict} (model)" if self.is_model else self.verdict

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as ``--json`` prints it.

        Returns
        -------
        dict
            A copy.
        """
        return copy.deepcopy(dict(self._raw))


class Views(ByView[Statement]):
    """The statement of each view. A notebook shows it as a table.

    Examples
    --------
    >>> account = floras.privacy.account(clip=1.0, sequences=30, per_round=20, receiver="clipped=1")
    >>> list(account.views)
    ['any-channel', 'idealised', 'published']
    >>> account.views["published"].verdict
    'not proven'
    """

    __slots__ = ()

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Self:
        """Read ``views`` of a JSON object.

        Parameters
        ----------
        raw : mapping of str to object
            The object of each view; ``None`` for a view that does not apply.

        Returns
        -------
        Views
            The views that apply.
        """
        given = {name: value for name, value in raw.items() if value is not None}
        return cls({name: Statement.from_dict(name, value) for name, value in given.items()})

    def default(self) -> str:
        """Return the name of the view to quote.

        Returns
        -------
        str
            ``"raw-signal"`` if masks protect it, ``"any-channel"`` otherwise.
        """
        raw_signal = self.get("raw-signal")
        return _core.default_view(raw_signal is not None and raw_signal.from_masks)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the views as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row per view: epsilon, verdict, whether it is proven, and the adversary.
        """
        import pandas

        columns = {
            "epsilon": [statement.epsilon for statement in self.values()],
            "verdict": [statement.verdict for statement in self.values()],
            "guarantee": [statement.guarantee for statement in self.values()],
            "adversary": [statement.adversary for statement in self.values()],
        }
        return pandas.DataFrame(columns, index=pandas.Index(list(self), name="view"))

    def __str__(self) -> str:
        lines = [("view", "epsilon", "verdict")]
        lines += [
            (view, bound(said.epsilon, said.epsilon_above), said._marked_verdict())
            for view, said in self.items()
        ]
        return "\n".join(f"{view:<12} {epsilon:>10}  {verdict}" for view, epsilon, verdict in lines)

    def _repr_html_(self) -> str:
        return _table(self, "")


def _table(views: Views, caption: str) -> str:
    """A table of views in HTML, in the colours of the notebook."""
    head = "".join(
        f"<th style='text-align:left'>{name}</th>" for name in ("view", "ε", "verdict", "adversary")
    )
    rows = "".join(
        f"<tr title='{html.escape(said.reason or said.meaning, quote=True)}'>"
        f"<td style='text-align:left;white-space:nowrap'>{view}</td>"
        f"<td style='text-align:right'>{html.escape(bound(said.epsilon, said.epsilon_above))}</td>"
        f"<td style='text-align:left'>{_marked(said)}</td>"
        f"<td style='text-align:left'>{html.escape(said.adversary)}</td></tr>"
        for view, said in views.items()
    )
    above = f"<caption style='text-align:left'>{html.escape(caption)}</caption>" if caption else ""
    scale = html.escape(_core.verdict_scale())
    if any(said.is_model for said in views.values()):
        scale += "<br>(model): the bound assumes that no client's channel fades."
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><small>{scale}</small>"


def _marked(said: Statement) -> str:
    """A guarantee is bold; one for a model only, or none, is not."""
    word = html.escape(said._marked_verdict())
    if said.is_model:
        return word
    return f"<b>{word}</b>" if _protects(said.verdict) else f"<i>{word}</i>"


def _protects(verdict: str) -> bool:
    return verdict in ("strong", "moderate", "weak")


@immutable
@dataclass(frozen=True, slots=True)
class WorstClient:
    """The client whose channels have leaked the most."""

    client: int
    """Its number, from 0."""
    mu: float
    """Parameter of the Gaussian mechanism that its rounds compose to, at least 0."""
    epsilon: float
    """Epsilon of that mechanism at the ledger's delta."""

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> WorstClient:
        """Read a JSON object.

        Parameters
        ----------
        raw : mapping
            An object with ``client``, ``mu`` and ``epsilon``.

        Returns
        -------
        WorstClient
            Its content.
        """
        return cls(client=raw["client"], mu=raw["mu"], epsilon=raw["epsilon"])


@immutable
@dataclass(frozen=True, slots=True)
class Spent:
    """Epsilon after some rounds."""

    rounds: int
    """Number of rounds, from 1."""
    epsilon: ByView[float]
    """Epsilon of each view that has one."""


@immutable
@dataclass(frozen=True, slots=True)
class OneRound:
    """One round of the paper's receiver at high SNR, exactly in ``dim`` dimensions."""

    dim: int
    """Number of parameters."""
    epsilon: float
    """At the account's delta."""
    pure_epsilon: float
    """At delta = 0."""


@immutable
@dataclass(frozen=True, slots=True)
class PublishedRenyi:
    """The Rényi divergence as published. It is never a guarantee."""

    alpha: float
    """Order, above 1."""
    theorem: int
    """Number of the theorem in the paper: 1 at the item level, 3 at the client level."""
    one_round: float
    """Divergence of one round."""
    all_rounds: float
    """Divergence of all rounds."""
    guarantee: bool
    """Always false."""


@immutable
@dataclass(frozen=True, slots=True)
class GroupEpsilon:
    """Epsilon of a group of clients in one view."""

    epsilon: float
    """Upper bound."""
    bound: str
    """How it was derived."""


@immutable
@dataclass(frozen=True, slots=True)
class Group:
    """What is established for a group of clients."""

    size: int
    """Number of clients in the group."""
    views: ByView[GroupEpsilon]
    """Views with a finite epsilon."""


@immutable
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Privacy:
    """Privacy of some rounds, in every view. A notebook shows it as a table.

    Examples
    --------
    >>> uplink = floras.Uplink(sequences=30, clip=1.0, receiver="clipped=1")
    >>> privacy = uplink.account(per_round=20, rounds=10)
    >>> privacy.view, privacy.verdict
    ('any-channel', 'none')
    >>> privacy.epsilon() == privacy.epsilon("any-channel") == privacy.views["any-channel"].epsilon
    True
    """

    delta: float
    """Delta of all statements, at least 1e-30 and below 1."""
    rounds: int
    """Number of rounds that the statements cover."""
    level: str
    """What is protected: ``"client"`` or ``"item"``."""
    view: str
    """The view to quote, which `epsilon` and `verdict` take by default."""
    views: Views
    """The statement of each view."""
    notes: tuple[str, ...]
    """What a reader should know."""
    worst_client: WorstClient | None = None
    """The client with the largest loss under the channels drawn in a run; ``None`` without a run."""
    growth: tuple[Spent, ...] = ()
    """Epsilon after increasing numbers of rounds; empty for an `Account`."""
    _raw: Mapping[str, Any] = field(compare=False)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], view: View | None = None) -> Self:
        """Read ``privacy`` of ``summary.json``.

        Parameters
        ----------
        raw : mapping
            The object.
        view : str, optional
            The view to quote; `Views.default` if absent.

        Returns
        -------
        Privacy
            Its content.
        """
        worst = raw.get("worst_client")
        growth = [
            Spent(spent["rounds"], ByView.from_dict(spent["epsilon"])) for spent in raw.get("growth", ())
        ]
        return cls(
            **_common(raw, view),
            worst_client=None if worst is None else WorstClient.from_dict(worst),
            growth=tuple(growth),
        )

    def epsilon(self, view: View | None = None) -> float | None:
        """Return the upper bound on epsilon in a view.

        Parameters
        ----------
        view : str, optional
            Name of the view; `view` of this object by default.

        Returns
        -------
        float or None
            ``None`` if no finite epsilon is established, or if the view does not apply.

        Raises
        ------
        ValueError
            If there is no view with this name.
        """
        statement = self.views.get(self.view if view is None else _core.view_name(view))
        return None if statement is None else statement.epsilon

    @property
    def verdict(self) -> str:
        """The verdict on the default view, as in `Statement.verdict`."""
        statement = self.views.get(self.view)
        return _core.verdict(None, False)[0] if statement is None else statement.verdict

    def to_dict(self) -> dict[str, Any]:
        """Return everything as ``--json`` prints it.

        Returns
        -------
        dict
            A copy.
        """
        return copy.deepcopy(dict(self._raw))

    def to_pandas(self) -> pandas.DataFrame:
        """Return the views as a pandas frame, as `Views.to_pandas` does.

        Returns
        -------
        pandas.DataFrame
            One row per view.
        """
        return self.views.to_pandas()

    def _caption(self) -> str:
        rounds = counted(self.rounds, "round")
        return f"Upper bounds on ε at δ = {self.delta:g} after {rounds}, per {self.level}"

    def __repr__(self) -> str:
        name = type(self).__name__
        said = self.views.get(self.view)
        epsilon = "none" if said is None else bound(said.epsilon, said.epsilon_above)
        return f"<{name}: epsilon {epsilon} ({self.verdict}) in the {self.view} view>"

    def __str__(self) -> str:
        return f"{self._caption()}\n{self.views}"

    def _repr_html_(self) -> str:
        return _table(self.views, self._caption())


def _common(raw: Mapping[str, Any], view: View | None) -> dict[str, Any]:
    """The fields that every account has."""
    views = Views.from_dict(raw["views"])
    return {
        "delta": raw["delta"],
        "rounds": raw["rounds"],
        "level": raw["level"],
        "view": views.default() if view is None else _core.view_name(view),
        "views": views,
        "notes": tuple(raw["notes"]),
        "_raw": raw,
    }


@immutable
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Account(Privacy):
    """The account of a described federation or of an experiment, in every view."""

    scheme: str
    """Name of the uplink scheme."""
    clip: float | None
    """C, the norm to which updates are clipped; ``None`` without clipping."""
    sequences: int | None
    """N, the number of sequences; ``None`` for a scheme without sequences."""
    gamma: int | None
    """N - K, the number of unused sequences; ``None`` for a scheme without sequences."""
    per_round: int
    """K, the number of clients in a round."""
    clients: int
    """M, the number of clients in all."""
    receiver: str | None = None
    """The receiver; ``None`` for the account of an experiment."""
    uplink: str | None = None
    """Scheme and radio in a few words, for the account of an experiment."""
    branches: int = 1
    """Number of real branches that the receiver combines."""
    masks: Frozen[float] | None = None
    """Settings of the masks; ``None`` without masks."""
    one_round_in_d: OneRound | None = None
    """One round exactly, if ``dim`` was given."""
    published_renyi: PublishedRenyi | None = None
    """The published Rényi divergence, if ``alpha`` was given."""
    group: Group | None = None
    """Epsilon of a group, if ``group`` was given."""

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], view: View | None = None) -> Self:
        """Read the object that ``floras account --json`` prints.

        Parameters
        ----------
        raw : mapping
            The object.
        view : str, optional
            The view to quote; `Views.default` if absent.

        Returns
        -------
        Account
            Its content.
        """
        keys = ("clip", "sequences", "gamma", "per_round", "clients")
        optional = {key: raw[key] for key in ("receiver", "uplink", "branches") if raw.get(key) is not None}
        one_round, renyi, group = raw.get("one_round_in_d"), raw.get("published_renyi"), raw.get("group")
        return cls(
            **_common(raw, view),
            **{key: raw[key] for key in keys},
            **optional,
            scheme=raw.get("scheme", "floras"),
            masks=None if raw.get("masks") is None else Frozen(raw["masks"]),
            one_round_in_d=None if one_round is None else OneRound(**one_round),
            published_renyi=None if renyi is None else PublishedRenyi(**renyi),
            group=None if group is None else _group(group),
        )


def _group(raw: Mapping[str, Any]) -> Group:
    given = {view: value for view, value in raw["views"].items() if value is not None}
    return Group(
        raw["size"],
        ByView({view: GroupEpsilon(value["epsilon"], value["bound"]) for view, value in given.items()}),
    )


@immutable
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Calibration:
    """The result of a calibration. It is true in a condition if a setting meets the target.

    Examples
    --------
    >>> setting = {"clip": 1.0, "per_round": 20, "receiver": "clipped=1"}
    >>> found = floras.privacy.calibrate(epsilon=4.0, **setting)
    >>> bool(found), found.sequences
    (True, 58)
    """

    view: str
    """The view in which the target is met."""
    target: float
    """Epsilon that was asked for, above 0."""
    epsilon: float | None
    """Epsilon of the setting that was found, at most `target`; ``None`` if no setting meets it."""
    reason: str | None
    """Why no setting meets the target; ``None`` if one does."""
    sequences: int | None
    """N; ``None`` if no setting meets the target, or for a scheme without sequences."""
    gamma: int | None
    """N - K."""
    rounds: int | None
    """Number of rounds."""
    delta: float | None
    """Delta of all statements."""
    views: Views
    """The statement of each view about the setting that was found; empty if no setting meets the target."""
    notes: tuple[str, ...]
    """What a reader should know."""
    clip: float | None = None
    """C, for a described federation."""
    receiver: str | None = None
    """The receiver, for a described federation."""
    noise_std: float | None = None
    """Standard deviation of the noise in each parameter of the sum, where it concentrates."""
    key: str | None = None
    """The key of the experiment that was searched, such as ``"uplink.noise_std"``."""
    value: float | None = None
    """Its value."""
    masks: Frozen[Any] | None = None
    """The masks, if they were searched."""
    fragment: str | None = None
    """The change as text of an experiment file."""
    _raw: Mapping[str, Any] = field(compare=False)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Calibration:
        """Read the object that ``floras calibrate --json`` prints.

        Parameters
        ----------
        raw : mapping
            The object.

        Returns
        -------
        Calibration
            Its content.
        """
        keys = ("epsilon", "reason", "sequences", "gamma", "rounds", "delta")
        optional = ("clip", "receiver", "noise_std", "key", "value", "fragment")
        return cls(
            view=_core.view_name(raw["view"]),
            target=raw["epsilon_asked"],
            views=Views.from_dict(raw.get("views") or {}),
            notes=tuple(raw.get("notes") or ()),
            masks=None if raw.get("masks") is None else Frozen(raw["masks"]),
            _raw=raw,
            **{key: raw.get(key) for key in keys + optional},
        )

    def __bool__(self) -> bool:
        return self.epsilon is not None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as ``--json`` prints it.

        Returns
        -------
        dict
            A copy.
        """
        return copy.deepcopy(dict(self._raw))

    def to_pandas(self) -> pandas.DataFrame:
        """Return the views of the setting that was found, as `Views.to_pandas` does.

        Returns
        -------
        pandas.DataFrame
            One row per view; no rows if no setting meets the target.
        """
        return self.views.to_pandas()

    def _found(self) -> str:
        if not self:
            return f"epsilon {self.target:g} is not met in the {self.view} view: {self.reason}"
        what = self.key or "sequences"
        value = self.value if self.key else self.sequences
        change = dict(self.masks or {}) if value is None else f"{value:g}"
        return f"{what} = {change}: epsilon {bound(self.epsilon)} in the {self.view} view"

    def __repr__(self) -> str:
        return f"<Calibration: {self._found()}>"

    def __str__(self) -> str:
        return f"{self._found()}\n{self.views}" if self else self._found()

    def _repr_html_(self) -> str:
        return _table(self.views, self._found()) if self else f"<p>{html.escape(self._found())}</p>"


@immutable
@dataclass(frozen=True, slots=True)
class Composition:
    """Several trainings together."""

    epsilon: float | None
    """Upper bound on epsilon of all trainings; ``None`` if no finite one is established."""
    delta: float
    """Delta, between 0 and 1."""
    rounds: int
    """Number of rounds of all trainings."""
    guarantee: bool
    """Whether every training's bound is proven."""
    neighbours: str
    """``"replace-one"`` or ``"add-remove"``."""
    level: str
    """``"client"`` or ``"item"``."""
    views: tuple[str, ...] = field(repr=False)
    """The view of each training."""
    assumptions: tuple[str, ...] = field(repr=False)
    """Assumptions of all trainings."""
    reason: str | None
    """Why there is no finite epsilon."""

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Composition:
        """Read the object that ``floras compose --json`` prints.

        Parameters
        ----------
        raw : mapping
            The object.

        Returns
        -------
        Composition
            Its content.
        """
        lists = {key: tuple(raw[key]) for key in ("views", "assumptions")}
        return cls(**{**raw, **lists})

    @property
    def verdict(self) -> str:
        """The verdict on `epsilon`, as in `Statement.verdict`."""
        return _core.verdict(self.epsilon, self.guarantee)[0]
