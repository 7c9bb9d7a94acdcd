"""The accounting: how private a federation is, against whom, and what would make it more so.

Everything here is computed by the same code as ``floras account`` and ``floras calibrate``, and comes to the
same numbers. There are five views: what the paper *published*, the *idealised* decoder at high SNR, the
*actual* decoder, *any channel* that a client can have, and a base station that keeps its *raw signal*.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt

from floras import _core
from floras._types import Experiment, View
from floras.losses import Losses, compose

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "Curve",
    "Losses",
    "account",
    "account_experiment",
    "calibrate",
    "calibrate_experiment",
    "compose",
    "curve",
    "delta_curve",
    "epsilon_curve",
    "losses",
    "statement",
]


class Radio(TypedDict, total=False):
    """Keywords about who takes part and over which radio; what is left out has the program's default."""

    clients: int | None
    delta: float
    level: str
    batch: int | None
    samples: int | None
    local: str
    neighbours: str
    normalise: str
    receiver: str | dict[str, float]
    length: int | None
    snr_db: float | None
    snr_convention: str
    fading: str | dict[str, float]
    modulation: str
    phase_error: str | dict[str, float]
    antennas: int
    pilot_noise: float
    channel_growth: float
    foreign_pilots: int
    mask_std: float | None
    noise_std: float | None
    colluding: int | None


class Curve(NamedTuple):
    """A curve of a view."""

    x: npt.NDArray[np.float64]
    """Epsilons, type I errors, or orders."""
    y: npt.NDArray[np.float64]
    """Deltas, type II errors, or Rényi divergences, which may be infinite."""
    event: float | None
    """A Rényi curve holds outside an event of at most this probability."""


def account(
    *,
    clip: float,
    sequences: int,
    per_round: int,
    rounds: int = 1,
    dim: int | None = None,
    alpha: float | None = None,
    group: int | None = None,
    **radio: Unpack[Radio],
) -> dict[str, Any]:
    """Account for ``rounds`` rounds of a federation, in every view.

    ``clip`` is C, ``sequences`` N, ``per_round`` K, and ``clients`` M if not all take part in every round.
    The *actual* and the *raw signal* view need the radio: ``length`` and ``snr_db``. With ``dim``, the number
    of parameters, one round of the paper's receiver is stated exactly as well. With ``alpha``,
    ``published_renyi`` has the paper's Rényi divergence of that order, of one round and of all rounds; it is
    no guarantee. With ``group``, the result has the epsilon of up to that many clients together. It is what
    ``floras account --json`` prints.

    >>> report = floras.privacy.account(clip=1.0, sequences=30, per_round=20, clients=20, rounds=10)
    >>> report["gamma"], report["views"]["actual"]
    (10, None)
    >>> report["views"]["published"]["epsilon"] < report["views"]["idealised"]["epsilon"]
    True
    """
    setting = {"clip": clip, "sequences": sequences, "per_round": per_round, "rounds": rounds, **radio}
    report = _core.account(dim=dim, alpha=alpha, **setting)
    if group is not None:
        report["group"] = _core.group(group, **setting)
    return report


def calibrate(
    *,
    epsilon: float,
    clip: float,
    per_round: int,
    view: View = "idealised",
    find: str = "sequences",
    rounds: int | None = None,
    sequences: int | None = None,
    most_sequences: int | None = None,
    **radio: Unpack[Radio],
) -> dict[str, Any]:
    """Find the fewest sequences, the largest clip norm or the most rounds that meet an epsilon in a view.

    If nothing does, ``"sequences"`` is ``None`` and ``"reason"`` says why. ``receiver="clipped"`` finds the
    level of the clipped projector too. The result is what ``floras calibrate --json`` prints.

    >>> setting = {"clip": 1.0, "per_round": 20, "receiver": "clipped=1"}
    >>> found = floras.privacy.calibrate(epsilon=4.0, view="any-channel", **setting)
    >>> found["sequences"], found["epsilon"] <= 4.0
    (58, True)
    """
    return _core.calibrate(
        epsilon=epsilon,
        clip=clip,
        per_round=per_round,
        view=view,
        find=find,
        rounds=rounds,
        sequences=sequences,
        most_sequences=most_sequences,
        **radio,
    )


def account_experiment(experiment: Experiment | None = None) -> dict[str, Any]:
    """Account for an experiment of any scheme, in every view, as ``floras account FILE --json`` does.

    ``experiment`` is a dictionary with the structure of an experiment file, the name of a preset, or a path.
    Its data are not read.

    >>> scheme = {"scheme": "gaussian", "noise_std": 40.0}
    >>> setting = {"uplink": scheme, "privacy": {"clip": 1.0}, "rounds": 10}
    >>> report = floras.privacy.account_experiment(setting)
    >>> report["scheme"], report["gamma"], round(report["views"]["actual"]["epsilon"], 3)
    ('gaussian', None, 0.561)
    """
    return _core.account_experiment(experiment)


def calibrate_experiment(
    experiment: Experiment,
    *,
    epsilon: float,
    view: View = "actual",
    find: Literal["sequences", "clip", "rounds", "noise", "masks"] = "noise",
) -> dict[str, Any]:
    """Find the number in an experiment of any scheme with which it meets an epsilon in a view.

    ``find`` names it: the fewest ``"sequences"``, the largest ``"clip"`` norm, the most ``"rounds"``, or the
    least ``"noise"`` of a scheme that adds its own; or the ``"masks"`` that meet it in the ``raw_signal``
    view and leave the least noise in the decoded sum, in ``"masks"`` of the result. If nothing meets the
    epsilon, ``"value"`` is ``None`` and
    ``"reason"`` says why. ``"fragment"`` is the change as text of an experiment file.

    >>> setting = {"uplink": {"scheme": "gaussian"}, "privacy": {"clip": 1.0}, "rounds": 10}
    >>> found = floras.privacy.calibrate_experiment(setting, epsilon=1.0)
    >>> found["key"], round(found["value"], 1), found["epsilon"] <= 1.0
    ('uplink.noise_std', 23.6, True)
    """
    return _core.calibrate_experiment(experiment, epsilon, view, find)


def epsilon_curve(
    rounds: Iterable[int],
    *,
    clip: float,
    sequences: int,
    per_round: int,
    view: View = "idealised",
    **radio: Unpack[Radio],
) -> npt.NDArray[np.float64]:
    """Tell the epsilon in a view after each of some numbers of rounds; infinite where there is none.

    >>> floras.privacy.epsilon_curve([1, 10, 100], clip=1.0, sequences=40, per_round=20).round(2).tolist()
    [0.75, 1.53, 4.59]
    """
    return _core.epsilon_curve(rounds, view, clip=clip, sequences=sequences, per_round=per_round, **radio)


def delta_curve(
    epsilons: Iterable[float],
    *,
    clip: float,
    sequences: int,
    per_round: int,
    rounds: int = 1,
    view: View = "idealised",
    **radio: Unpack[Radio],
) -> npt.NDArray[np.float64]:
    """Tell the delta in a view after ``rounds`` rounds, at each of some epsilons.

    >>> curve = floras.privacy.delta_curve([0.0, 1.0, 2.0], clip=1.0, sequences=40, per_round=20)
    >>> bool(curve[0] > curve[1] > curve[2])
    True
    """
    return _core.delta_curve(
        list(epsilons), view, clip=clip, sequences=sequences, per_round=per_round, rounds=rounds, **radio
    )


def curve(
    kind: Literal["delta", "tradeoff", "renyi"],
    *,
    clip: float,
    sequences: int,
    per_round: int,
    rounds: int = 1,
    view: View = "idealised",
    at: Iterable[float] | None = None,
    **radio: Unpack[Radio],
) -> Curve:
    """Return delta(epsilon), the trade-off function or the Rényi curve of a view after ``rounds`` rounds.

    ``at`` are the epsilons, type I errors or orders to look at.

    >>> curve = floras.privacy.curve("tradeoff", clip=1.0, sequences=40, per_round=20, at=[0.0, 0.5, 1.0])
    >>> bool(curve.y[0] > curve.y[1] > curve.y[2])
    True
    """
    points = None if at is None else [float(x) for x in at]
    setting = {"clip": clip, "sequences": sequences, "per_round": per_round, "rounds": rounds, **radio}
    return Curve(*_core.curve(kind, view, points, **setting))


def losses(
    *,
    clip: float,
    sequences: int,
    per_round: int,
    rounds: int = 1,
    view: View = "idealised",
    **radio: Unpack[Radio],
) -> Losses:
    """Return the loss distribution of one round of a view, fine enough for ``rounds`` of them.

    >>> one = floras.privacy.losses(clip=1.0, sequences=40, per_round=20, rounds=10)
    >>> both = floras.privacy.compose([one, one])
    >>> both["rounds"]
    20
    """
    setting = {"clip": clip, "sequences": sequences, "per_round": per_round, "rounds": rounds, **radio}
    return Losses(_core.losses(view, **setting))


def statement(
    *,
    clip: float,
    sequences: int,
    per_round: int,
    rounds: int = 1,
    view: View = "any-channel",
    **radio: Unpack[Radio],
) -> str:
    """Return a paragraph for a paper about a view: setting, epsilon, assumptions and citations."""
    setting = {"clip": clip, "sequences": sequences, "per_round": per_round, "rounds": rounds, **radio}
    return _core.statement(view, **setting)
