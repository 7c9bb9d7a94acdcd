"""The task: logistic regression on pictures of digits, in NumPy."""

from functools import lru_cache
from typing import Any

import numpy as np
from flwr.app import ArrayRecord
from numpy.typing import NDArray

import floras

CLIP_NORM = 1.0
"""The norm to which every client clips. It is in the code of the clients, so that no server can change it."""

CLASSES, PIXELS = 10, 400
Config = dict[str, Any]
Floats = NDArray[np.float32]
Labels = NDArray[np.int64]


@lru_cache(maxsize=1)
def federation(seed: int, trial: int, clients: int, partition: str) -> floras.Federated:
    """The data of all clients, with the partition of `floras run`."""
    experiment = {
        "seed": seed,
        "data": {"partition": partition},
        "clients": {"total": clients, "per_round": clients},
    }
    return floras.federate(experiment, trial)


def data_of(config: Config) -> floras.Federated:
    """The federation that the run's configuration describes."""
    return federation(config["partition-seed"], config["trial"], config["clients"], config["partition"])


def to_record(weights: Floats, bias: Floats) -> ArrayRecord:
    """The model as Flower sends it."""
    return ArrayRecord([weights, bias])


def from_record(record: ArrayRecord) -> tuple[Floats, Floats]:
    """The model as NumPy computes with it."""
    weights, bias = record.to_numpy_ndarrays()
    return weights.astype(np.float32), bias.astype(np.float32)


def initial_model() -> ArrayRecord:
    """Zeros, as in `floras run`."""
    return to_record(np.zeros((CLASSES, PIXELS), np.float32), np.zeros(CLASSES, np.float32))


def train(record: ArrayRecord, images: Floats, labels: Labels, config: Config) -> tuple[ArrayRecord, float]:
    """Mini-batch gradient descent from the common model; returns the new model and the mean loss."""
    weights, bias = from_record(record)
    rate, l2 = np.float32(config["rate"]), np.float32(config["l2"])
    random, losses = np.random.default_rng(), []
    for _ in range(config["epochs"]):
        order = random.permutation(len(labels))
        for start in range(0, len(order), config["batch"]):
            rows = order[start : start + config["batch"]]
            error, loss = _errors(weights, bias, images[rows], labels[rows])
            weights -= rate * (error.T @ images[rows] / len(rows) + 2 * l2 * weights)
            bias -= rate * (error.mean(axis=0) + 2 * l2 * bias)
            losses.append(loss)
    return to_record(weights, bias), float(np.mean(losses))


def evaluate(record: ArrayRecord, images: Floats, labels: Labels, l2: float) -> tuple[float, float]:
    """The objective, mean cross-entropy with the penalty, and the accuracy: as `floras run` has them."""
    weights, bias = from_record(record)
    _, loss = _errors(weights, bias, images, labels)
    loss += l2 * float((weights**2).sum() + (bias**2).sum())
    predicted = (images @ weights.T + bias).argmax(axis=1)
    return loss, float((predicted == labels).mean())


def _errors(weights: Floats, bias: Floats, images: Floats, labels: Labels) -> tuple[Floats, float]:
    """The predicted probabilities minus the true ones, and the mean cross-entropy."""
    scores = images @ weights.T + bias
    scores -= scores.max(axis=1, keepdims=True)
    logarithms = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    rows = np.arange(len(labels))
    error = np.exp(logarithms)
    error[rows, labels] -= 1
    return error, float(-logarithms[rows, labels].mean())
