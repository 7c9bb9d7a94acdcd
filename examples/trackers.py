"""Sends the metrics of every round to Weights & Biases, to MLflow, or to standard output.

``progress`` of `floras.run` is a function that is called with the metrics of each round. That is all an
experiment tracker needs. Neither tracker is required: the first one that is installed and set up is used.

    python examples/trackers.py [PRESET]

Metrics that were not measured in a round are ``None``, such as the accuracy between two tests.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Protocol

import floras


class Tracker(Protocol):
    """A destination for metrics."""

    def log(self, step: int, values: dict[str, float]) -> None:
        """Send the values of a step."""

    def finish(self, values: dict[str, float]) -> None:
        """Send the final values."""


class WeightsAndBiases:
    """A run of Weights & Biases. ``WANDB_MODE=offline`` keeps it on this machine."""

    def __init__(self, settings: dict[str, Any]) -> None:
        import wandb

        self._run = wandb.init(project="floras", config=settings)

    def log(self, step: int, values: dict[str, float]) -> None:
        """Send the values of a step."""
        self._run.log(values, step=step)

    def finish(self, values: dict[str, float]) -> None:
        """Send the final values."""
        self._run.summary.update(values)
        self._run.finish()


class MlFlow:
    """A run of MLflow, at ``MLFLOW_TRACKING_URI``."""

    def __init__(self, settings: dict[str, Any]) -> None:
        import mlflow

        self._mlflow = mlflow
        mlflow.start_run(run_name=settings["name"])
        mlflow.log_dict(settings, "experiment.json")

    def log(self, step: int, values: dict[str, float]) -> None:
        """Send the values of a step."""
        self._mlflow.log_metrics(values, step=step)

    def finish(self, values: dict[str, float]) -> None:
        """Send the final values."""
        self._mlflow.log_metrics(values)
        self._mlflow.end_run()


class Lines:
    """Lines on standard output."""

    def log(self, step: int, values: dict[str, float]) -> None:
        """Print the values of a step."""
        print(f"round {step}: " + ", ".join(f"{key} {value:.4g}" for key, value in values.items()))

    def finish(self, values: dict[str, float]) -> None:
        """Print the final values."""
        print("final: " + ", ".join(f"{key} {value:.4g}" for key, value in values.items()))


def tracker(settings: dict[str, Any]) -> Tracker:
    """Return the tracker that the environment asks for."""
    if "WANDB_API_KEY" in os.environ or "WANDB_MODE" in os.environ:
        return WeightsAndBiases(settings)
    if "MLFLOW_TRACKING_URI" in os.environ:
        return MlFlow(settings)
    return Lines()


def main(preset: str = "quick", rounds: int = 10) -> None:
    """Train a preset for some rounds, and track it."""
    experiment = floras.experiment(preset, trials=1, rounds=rounds)
    tracked = tracker(experiment)

    def each_round(metrics: dict[str, Any]) -> None:
        names = ("test_accuracy", "test_loss", "noise_std")
        values = {name: metrics[name] for name in names if metrics[name] is not None}
        tracked.log(metrics["round"], values)

    run = floras.run(experiment, progress=each_round)
    final = {"test_accuracy": run.final.test_accuracy.mean} if run.final else {}
    epsilons = {
        f"epsilon {view}": statement.epsilon
        for view, statement in run.views.items()
        if statement.epsilon is not None
    }
    tracked.finish({**final, **epsilons})


if __name__ == "__main__":
    main(*sys.argv[1:2])
