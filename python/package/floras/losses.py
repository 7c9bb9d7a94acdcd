"""Privacy loss distributions: exported from a view, imported, and exchanged with dp-accounting.

A `Losses` object holds the privacy loss of *one* round on a grid and the number of rounds.
``floras account --export`` writes this format, and ``floras compose`` reads it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floras import _core
from floras.statements import Composition

__all__ = ["Losses", "compose"]

FORMAT = "floras-loss-distribution"


def _dp_accounting() -> Any:
    """Import dp-accounting only where it is needed: it is optional."""
    try:
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError("dp-accounting is not installed: pip install './python[dp-accounting]'") from error
    return pld_pmf, privacy_loss_distribution


@dataclass(frozen=True)
class Losses:
    """The loss distribution of one round of a view."""

    content: dict[str, Any]
    """The JSON object of the file."""

    def __post_init__(self) -> None:
        _core.check_losses(json.dumps(self.content))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Losses:
        """Read a file that `export` or ``floras account --export`` wrote.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Losses
            Its content.

        Raises
        ------
        ValueError
            If the file is not a loss distribution.
        OSError
            If the file cannot be read.
        """
        return cls(json.loads(Path(path).read_text(encoding="utf-8")))

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write a file in one step: a crash leaves no partial file.

        Parameters
        ----------
        path : path
            The file, which is replaced if it exists.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        path = Path(path)
        partial = path.with_name(path.name + ".partial")
        partial.write_text(json.dumps(self.content), encoding="utf-8")
        partial.replace(path)

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return int(self.content["rounds"])

    @property
    def parts(self) -> int:
        """Number of independent parts of a round, each with this loss."""
        return int(self.content.get("parts", 1))

    @property
    def step(self) -> float:
        """Distance between two losses on the grid."""
        return float(self.content["step"])

    def to_dp_accounting(self) -> Any:
        """Return *one* round as dp-accounting's ``PrivacyLossDistribution``.

        Compose it with ``self_compose(losses.rounds)``.

        Returns
        -------
        dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
            A pessimistic distribution.

        Raises
        ------
        ImportError
            If dp-accounting is not installed.
        """
        pld_pmf, module = _dp_accounting()
        import numpy as np

        parts = [
            pld_pmf.DensePLDPmf(self.step, loss["first"], np.asarray(loss["masses"]), loss["infinity"], True)
            for loss in self.content["losses"]
        ]
        part = module.PrivacyLossDistribution(*parts)
        return part if self.parts == 1 else part.self_compose(self.parts)

    @classmethod
    def from_dp_accounting(
        cls,
        distribution: Any,
        *,
        rounds: int = 1,
        neighbours: str = "add-remove",
        level: str = "client",
        name: str = "dp-accounting",
    ) -> Losses:
        """Convert a pessimistic ``PrivacyLossDistribution`` of dp-accounting.

        Parameters
        ----------
        distribution : PrivacyLossDistribution
            The loss of *one* round.
        rounds : int
            Number of rounds, at least 1.
        neighbours : {"add-remove", "replace-one"}
            Its neighbour relation.
        level : {"client", "item"}
            What it protects.
        name : str
            Name of the training in results.

        Returns
        -------
        Losses
            For `compose` and `export`.

        Raises
        ------
        ValueError
            If the result is not a valid loss distribution.
        """
        directions = ["both"] if distribution._symmetric else ["remove", "add"]
        parts = [distribution._pmf_remove, distribution._pmf_add][: len(directions)]
        dense = [part.to_dense_pmf() for part in parts]
        losses = [
            {
                "direction": direction,
                "first": int(part._lower_loss),
                "masses": [max(float(mass), 0.0) for mass in part._probs],
                "infinity": float(part._infinity_mass),
            }
            for direction, part in zip(directions, dense, strict=True)
        ]
        return cls(
            {
                "format": FORMAT,
                "version": 1,
                "view": name,
                "guarantee": True,
                "neighbours": neighbours,
                "level": level,
                "rounds": rounds,
                "step": float(dense[0]._discretization),
                "pessimistic": bool(dense[0]._pessimistic_estimate),
                "losses": losses,
                "assumptions": [],
            }
        )


def compose(trainings: Iterable[Losses], delta: float = 1e-5) -> Composition:
    """Compose several trainings.

    Parameters
    ----------
    trainings : iterable of Losses
        The loss distribution of one round of each training, with its number of rounds.
    delta : float
        Above 0 and at most 0.5.

    Returns
    -------
    Composition
        The content of ``floras compose --json``.

    Raises
    ------
    ValueError
        If there are no trainings, or if they differ in neighbours or level.
    """
    return Composition.from_dict(
        _core.compose([json.dumps(training.content) for training in trainings], delta)
    )
