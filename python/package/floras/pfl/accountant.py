"""Planning: any two of epsilon, delta and the number of sequences give the third.

This is pfl's `PrivacyAccountant` for an uplink over the air. What pfl calls the noise parameter is here the
number `N` of spreading sequences: the `γ = N − K` unused ones make the noise.
"""

from __future__ import annotations

import math
import os
from typing import Any

import floras
from floras import _core
from floras._types import View

# Keywords of `floras.privacy` about the radio; the other settings of an uplink do not change its noise.
_RADIO = ("receiver", "length", "snr_db", "snr_convention", "fading", "modulation", "phase_error", "antennas")
# Settings that change the channel and are not keywords of `floras.privacy`.
_UNPLANNED = ("ageing", "coherence", "channel_error", "path_loss", "power")


# Floating-point arithmetic adds less than this to epsilon, and uses less than this share of delta.
_LOSS = 5e-5


class FlorasAccountant:
    """Plans a training, and keeps its ledger.

    Two of `epsilon`, `delta` and `sequences` must be given, and the third is computed: the minimum number of
    sequences that meets an epsilon, the epsilon of a number of sequences, or the delta. The number of
    sequences is an integer, so the `epsilon` of the plan may be a little below the target. If all three are
    given, they are checked.

    Parameters
    ----------
    rounds : int
        Number of rounds.
    per_round : int
        K, the number of users in a round.
    clip : float
        C, the norm to which every update is clipped, above 0.
    clients : int, optional
        M, the number of all users. Give it only if `CohortSampler` draws the users of every round. Without
        it, the same users may be in every round.
    epsilon : float, optional
        Target, above 0.
    delta : float, optional
        Above 0 and at most 0.5.
    sequences : int, optional
        N, the number of sequences, at least ``per_round``.
    view : str, optional
        The view in which epsilon holds; ``"any-channel"`` by default, ``"raw-signal"`` with masks.
    path : path, optional
        File of the ledger; one in memory by default.
    **uplink
        Other keywords of `floras.Uplink`. With ``receiver="clipped"`` and no sequences, the level of the
        clipped projector is found, too.

    Raises
    ------
    ValueError
        If not two of the three are given, if a setting cannot be planned, or if no setting meets the target.

    Examples
    --------
    >>> plan = FlorasAccountant(rounds=1, per_round=20, clip=1.0, sequences=25, delta=1e-5, view="idealised")
    >>> round(plan.epsilon, 4)
    4.1026
    """

    def __init__(
        self,
        *,
        rounds: int,
        per_round: int,
        clip: float,
        clients: int | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        sequences: int | None = None,
        view: View | None = None,
        path: str | os.PathLike[str] | None = None,
        **uplink: Any,
    ) -> None:
        self.rounds = rounds
        self.per_round = per_round
        self.clients = clients
        self.view: str = _core.default_view("masks" in uplink) if view is None else _core.view_name(view)
        self._settings: dict[str, Any] = {"clients": clients, "clip": clip, **uplink}
        for key in _UNPLANNED:
            if key in uplink:
                value = uplink[key]
                raise ValueError(
                    f"{key} must be left out of a plan, not {value}: the plan does not know its epsilon"
                )
        if sequences is None and epsilon is not None and delta is not None:
            sequences = self._fewest(epsilon, delta)
        if delta is None and epsilon is not None and sequences is not None:
            delta = self._delta(epsilon, sequences)
        if sequences is None or delta is None:
            raise ValueError(
                "two of epsilon, delta and sequences must be given, not "
                f"epsilon = {epsilon}, delta = {delta}, sequences = {sequences}"
            )
        self.sequences, self.delta = sequences, delta
        self.uplink = floras.Uplink("floras", sequences=sequences, delta=delta, **self._settings)
        self.epsilon: float = self._checked(epsilon)
        self.ledger = floras.Ledger(self.uplink, path)

    @property
    def num_compositions(self) -> int:
        """The planned rounds, under pfl's name."""
        return self.rounds

    @property
    def sampling_probability(self) -> float:
        """K/M, under pfl's name; 1 if the same users may be in every round."""
        return 1.0 if self.clients is None else self.per_round / self.clients

    @property
    def mechanism(self) -> str:
        """The name of the mechanism, as in pfl's accountants."""
        return "floras"

    @property
    def gamma(self) -> int:
        """γ = N − K, the unused sequences of a round in which all users answer."""
        return self.sequences - self.per_round

    @property
    def spent(self) -> float | None:
        """Epsilon of the rounds that were done, in the plan's view; None if there is no finite one."""
        return self.ledger.epsilon(self.view)

    def _question(self) -> dict[str, Any]:
        """Return the plan as keywords of `floras.privacy`."""
        radio = {"length": 32, "snr_db": 20.0}
        radio.update({key: value for key, value in self._settings.items() if key in _RADIO})
        # mask_std, noise_std and colluding are keywords of their own there.
        radio.update(self._settings.get("masks") or {})
        return {
            "clip": self._settings["clip"],
            "per_round": self.per_round,
            "clients": self.clients,
            "rounds": self.rounds,
            **radio,
        }

    def _fewest(self, epsilon: float, delta: float) -> int:
        asked = max(epsilon - _LOSS, epsilon / 2)
        found = floras.privacy.calibrate(
            epsilon=asked,
            delta=delta * (1 - _LOSS),
            view=self.view,
            **self._question(),
        )
        if found.sequences is None:
            raise ValueError((found.reason or "").replace(f"epsilon = {asked:g}", f"epsilon = {epsilon:g}"))
        if self._settings.get("receiver") == "clipped":
            # The level was asked for as well: the answer reads clipped=c.
            self._settings["receiver"] = found.receiver
        return found.sequences

    def _delta(self, epsilon: float, sequences: int) -> float:
        question = {**self._question(), "sequences": sequences}
        ideal = floras.privacy.delta_curve([max(epsilon - _LOSS, 0.0)], view=self.view, **question)[0]
        # A little above, so that rounding does not bring it below again.
        delta = float(ideal) * (1 + 2 * _LOSS)
        if not 0 < delta <= 0.5:
            raise ValueError(
                f"epsilon = {epsilon} must go with a delta above 0 and at most 0.5, not {delta:g}"
            )
        return delta

    def _checked(self, asked: float | None) -> float:
        """Return the epsilon of the plan, which must not be above the one that was asked for."""
        planned = floras.Ledger(self.uplink).after(self.per_round, self.rounds, self.view)
        if planned is None:
            raise ValueError(f"the plan has no finite epsilon in the {self.view} view")
        if asked is not None and planned > asked and not math.isclose(planned, asked, rel_tol=1e-6):
            raise ValueError(
                f"epsilon must be at least {planned:.4f}, what {self.sequences} sequences give "
                f"in the {self.view} view at delta = {self.delta:g}, not {asked}"
            )
        return planned
