"""Data sets and their partition over clients, as NumPy arrays."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from floras import _core
from floras._frozen import same
from floras._types import Experiment, Features, Labels, Parameters, Samples


class Digits(NamedTuple):
    """Handwritten digits, one row of 20 by 20 pixels each: 0 is paper and 1 is ink."""

    train_images: Features
    train_labels: Labels
    test_images: Features
    test_labels: Labels


@dataclass(frozen=True, eq=False)
class Federated:
    """The clients' samples in one trial of an experiment, with the partition of ``floras run``."""

    clients: list[Samples]
    """Features and labels of each client."""
    test: Samples
    """Features and labels of the test set."""
    initial_model: Parameters
    """The initial model: all parameters in one vector."""
    shapes: list[tuple[str, list[int]]]
    """Name and shape of each part of that vector, in order."""
    experiment: dict[str, Any] = field(repr=False)
    """Every setting of the experiment."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Federated):
            return NotImplemented
        return all(same(getattr(self, part.name), getattr(other, part.name)) for part in fields(self))

    __hash__ = None  # type: ignore[assignment]


def load_digits20(train: int = 4000, test: int = 1000) -> Digits:
    """Load the embedded digits.

    Parameters
    ----------
    train, test : int
        Numbers of samples, at least 1; 5,000 are embedded in all.

    Returns
    -------
    Digits
        Images as float32 rows of 400 pixels, and labels from 0 to 9.

    Raises
    ------
    ValueError
        If there are not that many samples.

    Examples
    --------
    >>> digits = floras.load_digits20()
    >>> digits.train_images.shape, digits.test_labels.shape
    ((4000, 400), (1000,))
    """
    (train_images, train_labels), (test_images, test_labels) = _core.digits20(train, test)
    return Digits(train_images, train_labels, test_images, test_labels)


def federate(experiment: Experiment | None = None, trial: int = 0) -> Federated:
    """Return the clients' samples of an experiment, with the partition of ``floras run``.

    Parameters
    ----------
    experiment : dict, path or str, optional
        As in `run`.
    trial : int
        Number of the trial, from 0.

    Returns
    -------
    Federated
        Samples of each client, the test set and the initial model.

    Raises
    ------
    ValueError
        If a setting is wrong, or if the experiment has no such trial.

    Examples
    --------
    >>> federated = floras.federate("digits-noniid")
    >>> len(federated.clients), len(set(federated.clients[0][1].tolist()))
    (20, 1)
    """
    return Federated(**_core.federate(experiment, trial))
