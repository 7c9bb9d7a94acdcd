"""Data sets and how they are shared out, as NumPy arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from floras import _core
from floras._types import Experiment, Features, Labels, Parameters, Samples


class Digits(NamedTuple):
    """Handwritten digits, one row of 20 by 20 pixels each: 0 is paper, and 1 is ink."""

    train_images: Features
    train_labels: Labels
    test_images: Features
    test_labels: Labels


@dataclass(frozen=True)
class Federated:
    """The clients' samples in one trial of an experiment, as ``floras run`` shares them out."""

    clients: list[Samples]
    """Features and labels of every client."""
    test: Samples
    """Features and labels that nobody trains on."""
    initial_model: Parameters
    """Where training begins: all parameters in one row."""
    shapes: list[tuple[str, list[int]]]
    """The parts of the model within that row, in their order: name and shape."""
    experiment: dict[str, Any] = field(repr=False)
    """Every setting of the experiment."""


def load_digits20(train: int = 4000, test: int = 1000) -> Digits:
    """Load the embedded digits: 4,000 for training and 1,000 for the test, or fewer.

    >>> digits = floras.load_digits20()
    >>> digits.train_images.shape, digits.test_labels.shape
    ((4000, 400), (1000,))
    """
    (train_images, train_labels), (test_images, test_labels) = _core.digits20(train, test)
    return Digits(train_images, train_labels, test_images, test_labels)


def federate(experiment: Experiment | None = None, trial: int = 0) -> Federated:
    """Share an experiment's samples out over its clients, as ``floras run`` does in that trial.

    >>> federated = floras.federate("digits-noniid")
    >>> len(federated.clients), len(set(federated.clients[0][1].tolist()))
    (20, 1)
    """
    return Federated(**_core.federate(experiment, trial))
