import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

from floras._types import Experiment, Samples, View

__version__: str

Deltas = npt.NDArray[np.float32] | Sequence[npt.NDArray[np.float32]]
Setting = str | dict[str, float]

@final
class Uplink:
    """How the updates of a round's clients become one noisy sum."""

    def __new__(
        cls,
        scheme: Literal["floras", "channel-inversion", "phase-corrected", "ideal", "gaussian"] = "floras",
        *,
        clients: int | None = None,
        sequences: int = 25,
        length: int = 32,
        family: Literal["walsh", "orthonormal", "gaussian"] = "walsh",
        modulation: Literal["real", "phase-corrected"] = "real",
        phase_error: Setting | None = None,
        receiver: Setting = "paper",
        fading: str | Mapping[str, float | str] | None = "rayleigh",
        snr_db: float = 20.0,
        snr_convention: Literal["symbol", "complex-symbol", "despread"] = "symbol",
        fidelity: Literal["symbol", "chip"] = "symbol",
        truncate: float | Literal["none"] | None = None,
        admission: dict[str, float] = ...,
        power_rule: Literal["worst-admitted", "fixed-at-threshold"] = "fixed-at-threshold",
        noise: Literal["per-symbol", "same-bandwidth"] = "per-symbol",
        artificial_noise_std: float = 0.0,
        noise_std: float = 1.0,
        clip: float | Literal["none"] | None = None,
        normalise: Literal["clip", "paper"] = "clip",
        delta: float = 1e-5,
    ) -> Uplink: ...
    @staticmethod
    def of_experiment(experiment: Experiment | None = None) -> Uplink: ...
    @property
    def settings(self) -> dict[str, Any]: ...
    @property
    def clip(self) -> float | None: ...
    @property
    def clients(self) -> int | None: ...
    def aggregate(
        self,
        deltas: Deltas,
        *,
        seed: int | None = None,
        round: int = 1,
        clients: Iterable[int] | None = None,
        selected: int | None = None,
        among: int | None = None,
        trial: int = 0,
    ) -> Aggregate: ...
    def realise(
        self,
        per_round: int,
        *,
        seed: int | None = None,
        round: int = 1,
        clients: Iterable[int] | None = None,
        selected: int | None = None,
        among: int | None = None,
        trial: int = 0,
    ) -> Channel: ...
    def account(self, per_round: int, rounds: int = 1) -> dict[str, Any]: ...

class Channel:
    """The effective channel of a round."""

    @property
    def gains(self) -> npt.NDArray[np.float64]: ...
    @property
    def noise_std(self) -> float: ...
    @property
    def clients(self) -> list[int]: ...
    @property
    def selected(self) -> int: ...
    @property
    def round(self) -> int: ...
    @property
    def spend(self) -> dict[str, float]: ...
    @property
    def is_for_release(self) -> bool: ...
    def with_clients(self, per_round: int, selected: int | None = None) -> Channel: ...
    def add_noise(self, sum: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]: ...
    def noise(self, parameters: int) -> npt.NDArray[np.float32]: ...

@final
class Aggregate(Channel):
    """What a round has come to."""

    @property
    def sum(self) -> npt.NDArray[np.float32]: ...
    @property
    def mean(self) -> npt.NDArray[np.float32]: ...
    @property
    def norms(self) -> npt.NDArray[np.float64] | None: ...

@final
class Ledger:
    """What an uplink's rounds have given away so far, in every view."""

    def __new__(cls, uplink: Uplink, path: str | os.PathLike[str] | None = None) -> Ledger: ...
    @property
    def uplink(self) -> Uplink: ...
    @property
    def path(self) -> Path | None: ...
    @property
    def rounds(self) -> int: ...
    @property
    def delta(self) -> float: ...
    @property
    def noise_caveat(self) -> str | None: ...
    @property
    def worst(self) -> dict[str, Any] | None: ...
    def record(self, round: Channel) -> None: ...
    def epsilon(self, view: View = "actual") -> float | None: ...
    def after(
        self,
        per_round: int,
        rounds: int = 1,
        view: View = "actual",
        selected: int | None = None,
        among: int | None = None,
    ) -> float | None: ...
    def affordable(
        self,
        per_round: int,
        budget: float,
        view: View = "actual",
        most: int = 1_000_000,
        among: int | None = None,
    ) -> int: ...
    def views(self) -> dict[str, dict[str, Any]]: ...

@final
class Grid:
    """The points of a sweep, and the directory that they are recorded in."""

    def __new__(cls, source: Experiment) -> Grid: ...
    @property
    def name(self) -> str: ...
    @property
    def keys(self) -> list[str]: ...
    def points(self) -> list[dict[str, Any]]: ...
    def check(self, threads: int | None = None) -> None: ...
    def done(self, folder: str | os.PathLike[str]) -> list[bool]: ...
    def enter(self, folder: str | os.PathLike[str]) -> None: ...
    def leave(self) -> None: ...
    def write_table(self, folder: str | os.PathLike[str]) -> None: ...

def clip(update: npt.NDArray[np.float32], norm: float) -> npt.NDArray[np.float32]: ...
def presets() -> dict[str, str]: ...
def report(folder: str | os.PathLike[str]) -> Path: ...
def estimate(values: Sequence[float]) -> tuple[float, float | None]: ...
def experiment(
    source: Experiment | None = None,
    *,
    trials: int | None = None,
    rounds: int | None = None,
    seed: int | None = None,
    set: dict[str, Any] | None = None,
) -> dict[str, Any]: ...
def run(
    experiment: dict[str, Any],
    out: str | os.PathLike[str],
    *,
    entry: str = "new",
    threads: int | None = None,
    watch: Callable[[dict[str, Any]], object] | None = None,
    with_report: bool = True,
) -> dict[str, Any]: ...
def digits20(train: int = 4000, test: int = 1000) -> tuple[Samples, Samples]: ...
def federate(experiment: Experiment | None = None, trial: int = 0) -> dict[str, Any]: ...
def account(**keywords: Any) -> dict[str, Any]: ...
def calibrate(**keywords: Any) -> dict[str, Any]: ...
def epsilon_curve(rounds: Iterable[int], view: str, **keywords: Any) -> npt.NDArray[np.float64]: ...
def delta_curve(epsilons: Sequence[float], view: str, **keywords: Any) -> npt.NDArray[np.float64]: ...
