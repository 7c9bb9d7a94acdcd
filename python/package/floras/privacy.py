"""Privacy accounting: how private a federation is, against whom, and how to reach a target.

All numbers come from the same code as ``floras account`` and ``floras calibrate``. There are five views of
the adversary, from the strongest: a base station that keeps its *raw signal*, one that knows or chooses *any
channel*, the *actual* decoder, the *idealised* decoder at high SNR, and the formula as *published*, which is
not a guarantee.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt

from floras import _core
from floras._types import Experiment, View
from floras.losses import Losses, compose
from floras.statements import Account, Calibration

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
    """Keywords for the clients and the radio. A keyword that is absent has the program's default.

    Parameters
    ----------
    clients : int
        M, the number of clients in all, at least ``per_round``; ``per_round`` by default. Give it only if the
        clients of every round are drawn uniformly and secretly.
    delta : float
        At least 1e-30 and below 1; 1e-5 by default.
    level : {"client", "item"}
        What is protected. ``"item"`` needs ``batch`` and ``samples``.
    batch, samples : int
        Size of a mini-batch, and number of samples of a client.
    local : str
        Local work at the item level: ``"epochs"`` or ``"steps=n"``.
    neighbours : {"replace-one", "add-remove"}
        The neighbour relation.
    normalise : {"clip", "paper"}
        How updates are brought to norm C.
    receiver : str or dict
        ``"paper"``, ``"clipped=c"`` or ``"mmse=k"``.
    length : int
        L, chips of a sequence. The actual and the raw-signal view need it, together with ``snr_db``.
    snr_db : float
        SNR in dB.
    snr_convention : {"symbol", "complex-symbol", "despread"}
        What the SNR refers to.
    fading, modulation, phase_error, antennas
        As in the section ``[uplink]`` of an experiment file.
    pilot_noise, channel_growth, foreign_pilots
        Margins of the any-channel view, as in the section ``[privacy]``.
    mask_std, noise_std : float
        Standard deviations of pairwise masks and of a client's own noise.
    colluding : int
        Largest number of clients that collude with the base station.
    """

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


def _view_of(view: View | None, radio: Radio) -> str:
    """The name of a view; of the default one for these keywords if absent."""
    if view is not None:
        return _core.view_name(view)
    masks = radio.get("mask_std") is not None or radio.get("noise_std") is not None
    return _core.default_view(masks)


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
) -> Account:
    """Account for rounds of a described federation, in every view.

    Parameters
    ----------
    clip : float
        C, the norm to which every update is clipped, above 0.
    sequences : int
        N, the number of sequences, at least ``per_round``.
    per_round : int
        K, the number of clients in a round, at least 1.
    rounds : int
        Number of rounds, at least 1.
    dim : int, optional
        Number of parameters. With it, one round of the paper's receiver is stated exactly.
    alpha : float, optional
        Order above 1 at which to evaluate the published Rényi divergence.
    group : int, optional
        Number of clients to protect together.
    **radio
        Keywords of `Radio`. The actual and the raw-signal view need ``length`` and ``snr_db``.

    Returns
    -------
    Account
        The content of ``floras account --json``.

    Raises
    ------
    ValueError
        If a value is out of its range. The message names the keyword and what is allowed.
    TypeError
        If there is no such keyword.

    Examples
    --------
    >>> account = floras.privacy.account(
    ...     clip=1.0, sequences=40, per_round=20, rounds=10, receiver="clipped=1"
    ... )
    >>> account.gamma, account.view, round(account.epsilon(), 2), account.verdict
    (20, 'any-channel', 12.9, 'none')
    >>> account.epsilon("published") < account.epsilon("idealised") < account.epsilon("any-channel")
    True
    """
    setting = {"clip": clip, "sequences": sequences, "per_round": per_round, "rounds": rounds, **radio}
    report = _core.account(dim=dim, alpha=alpha, **setting)
    if group is not None:
        report["group"] = _core.group(group, **setting)
    return Account.from_dict(report, _view_of(None, radio))


def calibrate(
    *,
    epsilon: float,
    clip: float,
    per_round: int,
    view: View | None = None,
    find: Literal["sequences", "clip", "rounds"] = "sequences",
    rounds: int | None = None,
    sequences: int | None = None,
    max_sequences: int | None = None,
    most_sequences: int | None = None,
    **radio: Unpack[Radio],
) -> Calibration:
    """Find the number of sequences, the clip norm or the number of rounds that meets a target.

    Parameters
    ----------
    epsilon : float
        Target, between 1e-9 and 1e5.
    clip : float
        C, the norm to which every update is clipped, above 0.
    per_round : int
        K, the number of clients in a round, at least 1.
    view : str, optional
        The view in which to meet the target; ``"any-channel"`` by default, ``"raw-signal"`` with masks.
    find : {"sequences", "clip", "rounds"}
        What to find.
    rounds : int, optional
        Number of rounds; 1 by default.
    sequences : int, optional
        N, if something else is to be found.
    max_sequences : int, optional
        Maximum N to consider; ``length`` by default.
    most_sequences : int, optional
        Deprecated name of ``max_sequences``.
    **radio
        Keywords of `Radio`. ``receiver="clipped"`` finds the level of the clipped projector too.

    Returns
    -------
    Calibration
        The content of ``floras calibrate --json``. It is false in a condition if no setting meets the target;
        ``reason`` then states why.

    Raises
    ------
    ValueError
        If a value is out of its range.

    Examples
    --------
    >>> found = floras.privacy.calibrate(epsilon=4.0, clip=1.0, per_round=20, receiver="clipped=1")
    >>> found.sequences, found.view, found.epsilon <= 4.0
    (58, 'any-channel', True)
    """
    if most_sequences is not None:
        warnings.warn("the keyword most_sequences is now max_sequences", DeprecationWarning, stacklevel=2)
        max_sequences = most_sequences if max_sequences is None else max_sequences
    report = _core.calibrate(
        epsilon=epsilon,
        clip=clip,
        per_round=per_round,
        view=_view_of(view, radio),
        find=find,
        rounds=rounds,
        sequences=sequences,
        max_sequences=max_sequences,
        **radio,
    )
    return Calibration.from_dict(report)


def account_experiment(experiment: Experiment | None = None) -> Account:
    """Account for an experiment of any scheme, in every view.

    Parameters
    ----------
    experiment : dict, path or str, optional
        A dictionary with the structure of an experiment file, the path of a file, or the name of a preset;
        the default preset if absent. Its data are not read at the client level.

    Returns
    -------
    Account
        The content of ``floras account FILE --json``.

    Raises
    ------
    ValueError
        If a setting is wrong.
    OSError
        If a file cannot be read.

    Examples
    --------
    >>> scheme = {"scheme": "gaussian", "noise_std": 40.0}
    >>> setting = {"uplink": scheme, "privacy": {"clip": 1.0}, "rounds": 10}
    >>> account = floras.privacy.account_experiment(setting)
    >>> account.scheme, round(account.epsilon(), 3), account.verdict
    ('gaussian', 0.561, 'strong')
    """
    view = _core.experiment(experiment)["privacy"].get("view")
    return Account.from_dict(_core.account_experiment(experiment), view)


def calibrate_experiment(
    experiment: Experiment,
    *,
    epsilon: float,
    view: View | None = None,
    find: Literal["sequences", "clip", "rounds", "noise", "masks"] = "noise",
) -> Calibration:
    """Find the value in an experiment with which it meets a target.

    Parameters
    ----------
    experiment : dict, path or str
        As in `account_experiment`.
    epsilon : float
        Target, between 1e-9 and 1e5.
    view : str, optional
        The view in which to meet the target: by default ``privacy.view`` of the experiment, then
        ``"raw-signal"`` with masks and ``"any-channel"`` without.
    find : {"sequences", "clip", "rounds", "noise", "masks"}
        The minimum number of sequences, the largest clip norm, the maximum number of rounds, the least noise
        of a scheme that adds its own, or the masks that leave the least noise in the decoded sum.

    Returns
    -------
    Calibration
        ``key`` and ``value`` name what was found, ``fragment`` is the change as text of an experiment file.
        Masks are in ``masks``. If no setting meets the target, the result is false in a condition.

    Raises
    ------
    ValueError
        If a setting is wrong.
    OSError
        If a file cannot be read.

    Examples
    --------
    >>> setting = {"uplink": {"scheme": "gaussian"}, "privacy": {"clip": 1.0}, "rounds": 10}
    >>> found = floras.privacy.calibrate_experiment(setting, epsilon=1.0)
    >>> found.key, round(found.value, 1), found.epsilon <= 1.0
    ('uplink.noise_std', 23.6, True)
    """
    return Calibration.from_dict(_core.calibrate_experiment(experiment, epsilon, view, find))


def epsilon_curve(
    rounds: Iterable[int],
    *,
    clip: float,
    sequences: int,
    per_round: int,
    view: View | None = None,
    **radio: Unpack[Radio],
) -> npt.NDArray[np.float64]:
    """Return the epsilon in a view after each of some numbers of rounds.

    Parameters
    ----------
    rounds : iterable of int
        Numbers of rounds, each between 1 and 1,000,000.
    clip, sequences, per_round, **radio
        As in `account`.
    view : str, optional
        ``"any-channel"`` by default, ``"raw-signal"`` with masks.

    Returns
    -------
    ndarray of float64
        One epsilon for each number of rounds; infinite where no finite epsilon is established.

    Raises
    ------
    ValueError
        If a value is out of its range, or if the view does not apply.

    Examples
    --------
    >>> setting = {"clip": 1.0, "sequences": 40, "per_round": 20}
    >>> floras.privacy.epsilon_curve([1, 10, 100], view="idealised", **setting).round(2).tolist()
    [0.75, 1.53, 4.59]
    """
    setting = {"clip": clip, "sequences": sequences, "per_round": per_round, **radio}
    return _core.epsilon_curve(rounds, _view_of(view, radio), **setting)


def delta_curve(
    epsilons: Iterable[float],
    *,
    clip: float,
    sequences: int,
    per_round: int,
    rounds: int = 1,
    view: View | None = None,
    **radio: Unpack[Radio],
) -> npt.NDArray[np.float64]:
    """Return the delta in a view after some rounds, at each of some epsilons.

    Parameters
    ----------
    epsilons : iterable of float
        Values of epsilon, each at least 0.
    clip, sequences, per_round, rounds, **radio
        As in `account`.
    view : str, optional
        ``"any-channel"`` by default, ``"raw-signal"`` with masks.

    Returns
    -------
    ndarray of float64
        One delta between 0 and 1 for each epsilon.

    Raises
    ------
    ValueError
        If the view has no delta at some epsilon.

    Examples
    --------
    >>> setting = {"clip": 1.0, "sequences": 40, "per_round": 20, "receiver": "clipped=1"}
    >>> curve = floras.privacy.delta_curve([0.0, 1.0, 2.0], **setting)
    >>> bool(curve[0] > curve[1] > curve[2])
    True
    """
    setting = {"clip": clip, "sequences": sequences, "per_round": per_round, "rounds": rounds, **radio}
    return _core.delta_curve(list(epsilons), _view_of(view, radio), **setting)


def curve(
    kind: Literal["delta", "tradeoff", "renyi"],
    *,
    clip: float,
    sequences: int,
    per_round: int,
    rounds: int = 1,
    view: View | None = None,
    at: Iterable[float] | None = None,
    **radio: Unpack[Radio],
) -> Curve:
    """Return delta(epsilon), the trade-off function or the Rényi curve of a view after some rounds.

    Parameters
    ----------
    kind : {"delta", "tradeoff", "renyi"}
        Which curve.
    clip, sequences, per_round, rounds, **radio
        As in `account`.
    view : str, optional
        ``"any-channel"`` by default, ``"raw-signal"`` with masks.
    at : iterable of float, optional
        Epsilons (at least 0), type I errors (0 to 1) or orders (above 1); usual ones by default.

    Returns
    -------
    Curve
        Arrays ``x`` and ``y``, and ``event`` for a Rényi curve.

    Raises
    ------
    ValueError
        If a value is out of its range, or if the view does not apply.

    Examples
    --------
    >>> setting = {"clip": 1.0, "sequences": 40, "per_round": 20}
    >>> curve = floras.privacy.curve("tradeoff", view="idealised", at=[0.0, 0.5, 1.0], **setting)
    >>> bool(curve.y[0] > curve.y[1] > curve.y[2])
    True
    """
    points = None if at is None else [float(x) for x in at]
    setting = {"clip": clip, "sequences": sequences, "per_round": per_round, "rounds": rounds, **radio}
    return Curve(*_core.curve(kind, _view_of(view, radio), points, **setting))


def losses(
    *,
    clip: float,
    sequences: int,
    per_round: int,
    rounds: int = 1,
    view: View | None = None,
    **radio: Unpack[Radio],
) -> Losses:
    """Return the loss distribution of one round of a view, on a grid fine enough for ``rounds`` rounds.

    Parameters
    ----------
    clip, sequences, per_round, rounds, **radio
        As in `account`.
    view : str, optional
        ``"any-channel"`` by default, ``"raw-signal"`` with masks.

    Returns
    -------
    Losses
        For `compose`, for a file, or for dp-accounting.

    Raises
    ------
    ValueError
        If a value is out of its range, or if the view does not apply.

    Examples
    --------
    >>> one = floras.privacy.losses(clip=1.0, sequences=40, per_round=20, rounds=10, view="idealised")
    >>> floras.privacy.compose([one, one]).rounds
    20
    """
    setting = {"clip": clip, "sequences": sequences, "per_round": per_round, "rounds": rounds, **radio}
    return Losses(_core.losses(_view_of(view, radio), **setting))


def statement(
    *,
    clip: float,
    sequences: int,
    per_round: int,
    rounds: int = 1,
    view: View | None = None,
    **radio: Unpack[Radio],
) -> str:
    """Return a paragraph for a paper about a view: setting, epsilon, assumptions and citations.

    Parameters
    ----------
    clip, sequences, per_round, rounds, **radio
        As in `account`.
    view : str, optional
        ``"any-channel"`` by default, ``"raw-signal"`` with masks.

    Returns
    -------
    str
        English text with Unicode symbols.

    Raises
    ------
    ValueError
        If a value is out of its range, or if the view does not apply.
    """
    setting: dict[str, Any] = {"clip": clip, "sequences": sequences, "per_round": per_round, **radio}
    return _core.statement(_view_of(view, radio), rounds=rounds, **setting)
