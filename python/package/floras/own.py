"""Arrays and models of the caller for `floras.run`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from floras import _core

__all__ = ["Clients", "Model", "Pair"]

Pair: TypeAlias = tuple[npt.ArrayLike, npt.ArrayLike]
"""Features with one row per sample, and integer labels from 0."""
Clients: TypeAlias = str | Sequence[npt.ArrayLike]
"""A partition such as ``"iid"`` or ``"dirichlet=0.5"``, or the training rows of each client."""


class Model(Protocol):
    """A model of the caller. All its parameters are one float32 vector.

    Examples
    --------
    >>> import numpy as np
    >>> class Mean:
    ...     '''Learns the mean of one feature; it is right where the error is below 1.'''
    ...
    ...     parameters = np.zeros(1, np.float32)
    ...
    ...     def local_update(self, parameters, x, y, rng):
    ...         return parameters - x.mean(keepdims=True)
    ...
    ...     def evaluate(self, parameters, x, y):
    ...         error = np.abs(x - parameters)
    ...         return float(error.mean()), float((error < 1).mean())
    >>> x, y = np.full(40, 3.0), np.zeros(40, int)
    >>> setting = {"clients": {"total": 4, "per_round": 4}, "rounds": 4, "uplink": {"scheme": "ideal"}}
    >>> run = floras.run(setting, data=(x, y), test=(x, y), model=Mean())
    >>> run.parameters[0]["parameters"].round(3).tolist()
    [3.0]
    """

    @property
    def parameters(self) -> npt.NDArray[np.float32]:
        """The initial parameters, of shape ``(d,)``."""

    def local_update(
        self,
        parameters: npt.NDArray[np.float32],
        x: npt.NDArray[Any],
        y: npt.NDArray[np.int64],
        rng: np.random.Generator,
    ) -> npt.NDArray[np.floating]:
        """Train on a client's samples and return its update.

        Parameters
        ----------
        parameters : ndarray of float32
            A copy of the common model, of shape ``(d,)``. It is read-only.
        x : ndarray
            The client's features, one row per sample, in the shape and type of ``data``.
        y : ndarray of int64
            The client's labels.
        rng : numpy.random.Generator
            Random numbers, seeded by trial, round and client.

        Returns
        -------
        ndarray
            ``parameters`` *minus* the trained parameters: floating-point numbers of shape ``(d,)``.
        """

    def evaluate(
        self, parameters: npt.NDArray[np.float32], x: npt.NDArray[Any], y: npt.NDArray[np.int64]
    ) -> tuple[float, float]:
        """Return loss and accuracy of a model.

        Parameters
        ----------
        parameters : ndarray of float32
            A copy of the model, of shape ``(d,)``. It is read-only.
        x : ndarray
            Features, one row per sample.
        y : ndarray of int64
            Labels.

        Returns
        -------
        loss : float
            Mean loss over the samples.
        accuracy : float
            Share of correctly classified samples, between 0 and 1.
        """


def _labels(name: str, y: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
    labels = np.asarray(y)
    if labels.shape != (count,):
        raise ValueError(f"labels of {name} must have the shape ({count},), not {labels.shape}")
    if not np.issubdtype(labels.dtype, np.integer):
        raise TypeError(f"labels of {name} must be integers from 0, not {labels.dtype}")
    if count and labels.min() < 0:
        raise ValueError(f"labels of {name} must be integers from 0, not {labels.min()}")
    return np.ascontiguousarray(labels, np.int64)


def samples(name: str, pair: Pair) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Check features and labels. Features keep their shape and type.

    Parameters
    ----------
    name : str
        Name of the argument in error messages.
    pair : pair of arrays
        Features and labels.

    Returns
    -------
    x : ndarray
        Features, one row per sample.
    y : ndarray of int64
        Labels.

    Raises
    ------
    TypeError
        If it is not a pair, or if the labels are not integers.
    ValueError
        If there are no samples, or if the labels do not match them.
    """
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"{name} must be a pair (x, y) of features and labels, not {type(pair).__name__}")
    x = np.asarray(pair[0])
    if x.ndim == 0 or len(x) == 0:
        raise ValueError(f"{name} must have at least one sample, not the shape {x.shape}")
    return x, _labels(name, pair[1], len(x))


def _flat(name: str, x: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """One float32 row per sample."""
    if not (np.issubdtype(x.dtype, np.number) or x.dtype == np.bool_) or np.iscomplexobj(x):
        raise TypeError(f"features of {name} must be real numbers, not {x.dtype}")
    return np.ascontiguousarray(x.reshape(len(x), -1), np.float32)


def _rows(clients: Clients | None) -> list[npt.NDArray[np.int64]] | None:
    """The listed training rows of each client."""
    if clients is None or isinstance(clients, str):
        return None
    if not isinstance(clients, Iterable):
        given = type(clients).__name__
        raise TypeError(
            f"clients must be a partition such as 'iid', or a list of row numbers per client, not {given}"
        )
    rows = []
    for client, listed in enumerate(clients):
        row = np.asarray(listed, np.int64) if isinstance(listed, list) and not listed else np.asarray(listed)
        if row.ndim != 1 or not np.issubdtype(row.dtype, np.integer) or (row.size and row.min() < 0):
            raise ValueError(f"clients[{client}] must be a list of row numbers from 0")
        rows.append(row.astype(np.int64))
    return rows


def _with_clients(settings: dict[str, Any], clients: Clients | None) -> dict[str, Any]:
    """The experiment with the number of clients that are listed."""
    rows = _rows(clients)
    if rows is None:
        return settings
    section = dict(settings["clients"])
    everyone = section["per_round"] == section["total"]
    section["total"] = len(rows)
    if everyone:
        section["per_round"] = len(rows)
    return {**settings, "clients": section}


def arrays_of(
    settings: dict[str, Any], data: Pair, test: Pair | None, clients: Clients | None
) -> tuple[dict[str, Any], _core.OwnArrays]:
    """Return the experiment that names the arrays, and the arrays for the core.

    Parameters
    ----------
    settings : dict
        Every setting of the experiment.
    data, test : pair of arrays
        Features and labels; ``data`` is also the test set if ``test`` is ``None``.
    clients : str, sequence of arrays or None
        A partition, or the training rows of each client.

    Returns
    -------
    settings : dict
        The experiment with the data set ``"arrays"``.
    arrays : OwnArrays
        The arrays.
    """
    x, y = samples("data", data)
    test_x, test_y = (x, y) if test is None else samples("test", test)
    classes = max(2, int(max(y.max(), test_y.max())) + 1)
    rows = _rows(clients)
    own = _core.OwnArrays(
        (_flat("data", x), y),
        (_flat("test", test_x), test_y),
        classes,
        None if rows is None else [row.tolist() for row in rows],
    )
    partition = clients if isinstance(clients, str) else settings["data"]["partition"]
    section = {"set": "arrays", "sha256": own.sha256, "partition": partition if rows is None else "given"}
    return _core.experiment({**_with_clients(settings, clients), "data": section}), own


COLUMNS = (
    "trial",
    "round",
    "diverged",
    "broken",
    "rate",
    "silent",
    "local_loss",
    "train_loss",
    "test_loss",
    "test_accuracy",
    "update_norm",
    "mean_gain",
    "noise_std",
    "power_mean",
    "power_peak",
    "dynamic_range_db",
    "payload_uses",
    "pilot_uses",
    "control_uses",
    "energy",
)
"""The metrics of a round."""


def _read_only(parameters: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """A copy for the caller's code: the common model changes by the decoded sum only."""
    copied = parameters.copy()
    copied.flags.writeable = False
    return copied


def _initial(model: Model) -> npt.NDArray[np.float32]:
    given = np.asarray(model.parameters)
    if not np.issubdtype(given.dtype, np.number) or np.iscomplexobj(given):
        raise TypeError(f"model.parameters must be real numbers, not {given.dtype}")
    if given.size == 0:
        raise ValueError("model.parameters must have at least one value")
    return np.array(given, np.float32).ravel()


def _updated(
    model: Model,
    common: npt.NDArray[np.float32],
    x: npt.NDArray[Any],
    y: npt.NDArray[np.int64],
    seed: list[int],
) -> npt.NDArray[np.float32]:
    """A client's update, in an array of its own."""
    update = model.local_update(_read_only(common), x, y, np.random.default_rng(seed))
    if update is None:
        raise TypeError("local_update must return parameters minus the trained parameters, not None")
    array = np.asarray(update)
    if array.shape != common.shape:
        raise ValueError(f"local_update must return the shape {common.shape}, not {array.shape}")
    if not np.issubdtype(array.dtype, np.floating):
        raise TypeError(f"local_update must return floating-point numbers, not {array.dtype}")
    with np.errstate(over="ignore"):
        return np.array(array, np.float32)


def _evaluated(
    model: Model, parameters: npt.NDArray[np.float32], x: npt.NDArray[Any], y: npt.NDArray[np.int64]
) -> tuple[float, float]:
    """Loss and accuracy, checked."""
    result: Any = model.evaluate(_read_only(parameters), x, y)
    try:
        loss, accuracy = map(float, result)
    except (TypeError, ValueError):
        given = type(result).__name__
        raise TypeError(f"evaluate must return a pair of numbers, loss and accuracy, not {given}") from None
    # A diverged model may have neither.
    if not 0 <= accuracy <= 1 and not (np.isnan(accuracy) and not np.isfinite(loss)):
        raise ValueError(f"evaluate must return an accuracy between 0 and 1, not {accuracy}")
    return loss, accuracy


def _measured(value: float | np.floating | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def train(
    settings: dict[str, Any],
    model: Model,
    data: Pair,
    test: Pair | None,
    clients: Clients | None,
    watch: Callable[[dict[str, Any]], object] | None,
) -> dict[str, Any]:
    """Train a custom model in Python, over the experiment's uplink and with its selection of clients.

    Parameters
    ----------
    settings : dict
        Every setting of the experiment.
    model : Model
        The model.
    data, test : pair of arrays
        Features and labels; ``data`` is also the test set if ``test`` is ``None``.
    clients : str, sequence of arrays or None
        A partition, or the training rows of each client.
    watch : callable or None
        Called with the metrics of each round.

    Returns
    -------
    dict
        The arguments of `Run.from_parts` without ``out``.

    Raises
    ------
    TypeError
        If the model returns anything but numbers.
    ValueError
        If the experiment has dropouts, or if an update or a list of rows does not fit.
    """
    x, y = samples("data", data)
    test_x, test_y = (x, y) if test is None else samples("test", test)
    rows = _rows(clients)
    settings = _with_clients(settings, clients)
    if isinstance(clients, str):
        settings = {**settings, "data": {**settings["data"], "partition": clients}}
    settings = _core.experiment(settings)
    if settings["clients"].get("dropout", "none") not in (None, "none"):
        raise ValueError(
            f'clients.dropout must be "none" with a custom model, not {settings["clients"]["dropout"]!r}'
        )
    if rows is not None:
        _core.check_rows([row.tolist() for row in rows], len(x))
    uplink = _core.Uplink.of_experiment(settings)
    rounds = _affordable(settings, uplink)
    lines: list[dict[str, Any]] = []
    models, worst, trials = [], None, []
    for trial in range(settings["trials"]):
        held = _core.partition(settings, y, trial) if rows is None else rows
        mean_size = sum(map(len, held)) / len(held)
        ledger = _core.Ledger(uplink)
        parameters = _initial(model)
        ended: dict[str, Any] | None = None
        for number in range(1, rounds + 1):
            chosen = _core.select(settings, trial, number)
            updates = []
            for client in chosen:
                mine, seed = held[client], [settings["seed"], trial, number, client]
                update = _updated(model, parameters, x[mine], y[mine], seed)
                if settings["clients"]["weights"] == "samples":
                    update *= np.float32(len(mine) / mean_size)
                updates.append(update)
            result = uplink.aggregate(
                updates, seed=settings["seed"], round=number, trial=trial, clients=chosen
            )
            ledger.record(result)
            parameters = parameters - result.mean
            is_last = number == rounds
            due = is_last or number % settings["record"]["test_every"] == 0
            loss, accuracy = _evaluated(model, parameters, test_x, test_y) if due else (None, None)
            diverged = not np.isfinite(parameters).all() or (
                loss is not None and is_last and not np.isfinite(loss)
            )
            line = dict.fromkeys(COLUMNS) | {
                "trial": trial,
                "round": number,
                "diverged": bool(diverged),
                "broken": len(result.broken),
                "test_loss": _measured(loss),
                "test_accuracy": _measured(accuracy),
                "update_norm": None if result.norms is None else _measured(np.mean(result.norms)),
                "mean_gain": float(np.mean(result.gains)),
                "noise_std": result.noise_std,
            }
            lines.append(line)
            if watch is not None:
                watch(dict(line))
            if diverged:
                ended = {"trial": trial, "status": "diverged", "round": number}
                break
        if ended is None:
            train_loss, _ = _evaluated(model, parameters, x, y)
            ended = {
                "trial": trial,
                "status": "finished",
                "train_loss": train_loss,
                "test_loss": loss,
                "test_accuracy": accuracy,
            }
        trials.append(ended)
        models.append({"parameters": parameters})
        lost = ledger.worst
        if lost is not None and (worst is None or lost.epsilon > worst.epsilon):
            worst = lost
    privacy = uplink.account(settings["clients"]["per_round"], rounds).to_dict()
    if worst is not None:
        privacy["worst_client"] = {"client": worst.client, "mu": worst.mu, "epsilon": worst.epsilon}
    summary = {
        "name": settings["name"],
        "version": _core.__version__,
        "seed": settings["seed"],
        "rounds": rounds,
        "trials": trials,
        "final": _final(trials),
        "privacy": privacy,
    }
    return {
        "summary": summary,
        "metrics": {key: _column(key, [line[key] for line in lines]) for key in COLUMNS},
        "parameters": models,
        "experiment": settings,
        "rounds_per_second": None,
    }


def _column(name: str, values: list[Any]) -> npt.NDArray[Any]:
    if name in ("trial", "round", "broken"):
        return np.array(values, np.int64)
    return np.array(values, bool if name == "diverged" else np.float64)


def _affordable(settings: Mapping[str, Any], uplink: _core.Uplink) -> int:
    """The rounds of a trial: those of the experiment, or fewer if the budget allows fewer."""
    rounds, budget = int(settings["rounds"]), settings["privacy"].get("budget")
    if budget in (None, "none"):
        return rounds
    view = settings["privacy"]["view"]
    affordable = _core.Ledger(uplink).affordable(
        settings["clients"]["per_round"], budget, view, max_rounds=rounds
    )
    if affordable == 0:
        raise ValueError(f"privacy.budget must allow at least one round in the {view} view, not {budget}")
    return affordable


def _final(trials: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    finished = [trial for trial in trials if trial["status"] == "finished"]
    if not finished:
        return None
    final = {}
    for key in ("train_loss", "test_loss", "test_accuracy"):
        mean, ci95 = _core.estimate([trial[key] for trial in finished])
        final[key] = {"mean": mean, "ci95": ci95}
    return final
