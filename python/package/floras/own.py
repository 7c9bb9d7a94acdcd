"""Own arrays and own models for `floras.run`."""

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
            The common model, of shape ``(d,)``. It must not be changed.
        x : ndarray
            The client's features, one row per sample, in the shape and type of ``data``.
        y : ndarray of int64
            The client's labels.
        rng : numpy.random.Generator
            Random numbers, seeded by trial, round and client.

        Returns
        -------
        ndarray
            ``parameters`` *minus* the trained parameters, of shape ``(d,)``.
        """

    def evaluate(
        self, parameters: npt.NDArray[np.float32], x: npt.NDArray[Any], y: npt.NDArray[np.int64]
    ) -> tuple[float, float]:
        """Return loss and accuracy of a model.

        Parameters
        ----------
        parameters : ndarray of float32
            The model, of shape ``(d,)``.
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
    rows = []
    for client, given in enumerate(clients):
        row = np.asarray(given)
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


def train(
    settings: dict[str, Any],
    model: Model,
    data: Pair,
    test: Pair | None,
    clients: Clients | None,
    watch: Callable[[dict[str, Any]], object] | None,
) -> dict[str, Any]:
    """Train an own model in Python, over the experiment's uplink and with its selection of clients.

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
            f'clients.dropout must be "none" with an own model, not {settings["clients"]["dropout"]!r}'
        )
    if rows is not None:
        for client, row in enumerate(rows):
            if row.size == 0 or row.max() >= len(x):
                raise ValueError(f"clients[{client}] must list at least one row, each below {len(x)}")
    uplink = _core.Uplink.of_experiment(settings)
    rounds = _affordable(settings, uplink)
    lines: list[dict[str, Any]] = []
    models, worst, trials = [], None, []
    for trial in range(settings["trials"]):
        held = _core.partition(settings, y, trial) if rows is None else rows
        ledger = _core.Ledger(uplink)
        parameters = np.array(model.parameters, np.float32).ravel()
        ended: dict[str, Any] | None = None
        for number in range(1, rounds + 1):
            chosen = _core.select(settings, trial, number)
            updates = []
            for client in chosen:
                rng = np.random.default_rng([settings["seed"], trial, number, client])
                mine = held[client]
                update = np.asarray(model.local_update(parameters, x[mine], y[mine], rng))
                if update.shape != parameters.shape:
                    raise ValueError(
                        f"local_update must return the shape {parameters.shape}, not {update.shape}"
                    )
                updates.append(update)
            result = uplink.aggregate(
                updates, seed=settings["seed"], round=number, trial=trial, clients=chosen
            )
            ledger.record(result)
            parameters = parameters - result.mean
            is_last = number == rounds
            due = is_last or number % settings["record"]["test_every"] == 0
            loss, accuracy = model.evaluate(parameters, test_x, test_y) if due else (np.nan, np.nan)
            diverged = not np.isfinite(parameters).all() or (is_last and not np.isfinite(loss))
            line = {
                "trial": trial,
                "round": number,
                "diverged": diverged,
                "broken": len(result.broken),
                "test_loss": float(loss),
                "test_accuracy": float(accuracy),
                "update_norm": np.nan if result.norms is None else float(np.mean(result.norms)),
                "mean_gain": float(np.mean(result.gains)),
                "noise_std": result.noise_std,
            }
            lines.append(line)
            if watch is not None:
                watch(line)
            if diverged:
                ended = {"trial": trial, "status": "diverged", "round": number}
                break
        if ended is None:
            train_loss, _ = model.evaluate(parameters, x, y)
            ended = {
                "trial": trial,
                "status": "finished",
                "train_loss": float(train_loss),
                "test_loss": float(loss),
                "test_accuracy": float(accuracy),
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
        "metrics": {key: np.array([line[key] for line in lines]) for key in lines[0]},
        "parameters": models,
        "experiment": settings,
        "rounds_per_second": None,
    }


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
