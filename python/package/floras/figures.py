"""Figures with matplotlib."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from floras import _core

if TYPE_CHECKING:
    import matplotlib.figure

    from floras.results import Run

_LABELS = {
    "test_accuracy": "test accuracy (%)",
    "test_loss": "test loss",
    "train_loss": "training loss",
    "local_loss": "mean loss of the clients' mini-batches",
    "update_norm": "mean norm of an update before clipping",
    "mean_gain": "mean gain of the effective channel",
    "noise_std": "noise in a parameter of the sum (standard deviation)",
    "power_mean": "mean transmit power (of a unit symbol)",
    "power_peak": "peak transmit power (of a unit symbol)",
    "dynamic_range_db": "dynamic range added by the channels (dB)",
    "payload_uses": "channel uses of the updates",
    "pilot_uses": "channel uses of the pilots",
    "control_uses": "channel uses of side information",
    "energy": "energy (channel uses at unit power)",
    "rate": "learning rate",
    "silent": "silent clients of a round",
}


def curves(runs: Mapping[str, Run], metric: str = "test_accuracy") -> matplotlib.figure.Figure:
    """Plot a metric of several runs over the rounds.

    Lines are means over the trials. Bands are their 95% intervals, where there are several trials.

    Parameters
    ----------
    runs : mapping of str to Run
        The runs, by their labels.
    metric : str
        A column of `Run.metrics`.

    Returns
    -------
    matplotlib.figure.Figure
        A figure that a notebook shows, and that ``savefig`` writes.

    Raises
    ------
    ValueError
        If ``metric`` is not such a column, or if a run has not measured it.
    """
    if metric not in _LABELS:
        raise ValueError(f"metric must be one of {', '.join(_LABELS)}, not {metric!r}")
    figure = _figure()
    axes = figure.add_subplot()
    for name, run in runs.items():
        if metric not in run.metrics:
            raise ValueError(f"{name} has no {metric}; it has {', '.join(run.metrics)}")
        rounds, mean, width = _mean_over_trials(run, metric)
        if metric == "test_accuracy":
            mean, width = 100 * mean, 100 * width
        # A single point has no line.
        (line,) = axes.plot(rounds, mean, label=name, marker="." if len(rounds) <= 20 else None)
        axes.fill_between(rounds, mean - width, mean + width, alpha=0.2, color=line.get_color(), linewidth=0)
    axes.set_xlabel("round")
    axes.set_ylabel(_LABELS[metric])
    axes.grid(alpha=0.3)
    axes.legend(title="mean and 95% interval" if _has_several_trials(runs) else None)
    return figure


def _figure() -> matplotlib.figure.Figure:
    """An empty figure that notebooks show, also without pyplot."""
    import matplotlib.figure

    class Shown(matplotlib.figure.Figure):
        def _repr_png_(self) -> bytes:
            file = io.BytesIO()
            self.savefig(file, format="png", dpi=100)
            return file.getvalue()

    return Shown(figsize=(6.4, 4.0), layout="constrained")


def _has_several_trials(runs: Mapping[str, Run]) -> bool:
    return any(len(run.trials) > 1 for run in runs.values())


def _mean_over_trials(
    run: Run, metric: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The measured rounds, the mean over the trials in each, and half the width of its interval."""
    measured = ~np.isnan(run.metrics[metric])
    rounds, place = np.unique(run.metrics["round"][measured], return_inverse=True)
    values = run.metrics[metric][measured]
    estimates = [_core.estimate(values[place == number].tolist()) for number in range(len(rounds))]
    mean = np.array([mean for mean, _ in estimates])
    return rounds, mean, np.array([width or 0.0 for _, width in estimates])
