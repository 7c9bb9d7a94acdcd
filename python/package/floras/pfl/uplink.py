# mypy: disable-error-code="import-untyped,import-not-found,misc"
"""The uplink as a privacy mechanism of pfl.

The base station of a linear uplink decodes in a round (effective channel, `floras.Channel`)

    x̃ = Σ_k g_k·clip(x_k, C) + ν·n,     n ~ N(0, I_d)

The gain `g_k` belongs to one user, the noise `ν` to the sum. So the two halves of the formula are the two
steps that pfl has for a mechanism: `postprocess_one_user` and `postprocess_server`.

**Which sum.** pfl adds the users' statistics in single precision. Noise that is fit for release needs a sum
whose rounding is negligible, so `_Round` keeps the same sum in double precision with compensation. This sum
is the argument of `Channel.add_noise`, and pfl's sum is only compared with it.

**When the channel is drawn.** pfl reports the size of the cohort only at the end of a round, and a user may
return no statistics. Such a user sends nothing, and `K` is the number of users that answered. Users therefore
get their place (0, 1, 2, …) in the order in which they answer. The gain at a place does not depend on the
number of places that follow; only the noise does. `_Round` draws gains ahead. At the end it draws the channel
of exactly those users that answered, and checks that its gains are those that were applied.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from pfl.aggregate.base import get_num_devices_weight_name
from pfl.common_types import Population
from pfl.context import CentralContext, UserContext
from pfl.internal.ops.selector import get_default_framework_module as get_ops
from pfl.metrics import Metrics, Weighted, get_overall_value
from pfl.privacy.privacy_mechanism import CentralPrivacyMechanism, PrivacyMetricName
from pfl.privacy.privacy_snr import SNRMetric
from pfl.stats import ElementWeightedMappedVectorStatistics, TrainingStatistics, WeightedStatistics

import floras

if TYPE_CHECKING:
    from floras.pfl.accountant import FlorasAccountant

Vector = npt.NDArray[np.float32]


class FlorasUplink(CentralPrivacyMechanism):
    """Carries the users' statistics over a simulated uplink.

    Put it last into the `postprocessors` of a `SimulatedBackend`, so that no other postprocessor changes a
    user's statistics after they were clipped. Per user it clips to the uplink's `clip` and multiplies by the
    user's gain of this round. On the server it adds the noise of this round and clamps to the uplink's
    `truncate`.

    - All users have the same weight: statistics with a weight other than 1 are rejected (pfl's weight of a
      model update is 1 unless a weighting postprocessor changes it).
    - A user that answers twice in one round is rejected, because it could move the sum by twice the clip
      norm. Users without an id cannot be distinguished, and are not checked. See `CohortSampler`.
    - Evaluation on other populations has no statistics and is not changed.
    - One process only: several workers are an error, because each would draw its own gains and noise.

    The number of a round is the ledger's, so a training that is resumed from a checkpoint never draws the
    same noise twice.

    Parameters
    ----------
    uplink : floras.Uplink
        The radio.
    seed : int, optional
        Makes the rounds reproducible, for experiments: anyone who knows it can subtract the noise, and no
        view is a guarantee. By default the noise comes from a cryptographic generator with a key from the
        operating system.
    ledger : floras.Ledger or path, optional
        The ledger, or the path of its file; one in memory by default.
    epsilon_every : int
        Number of rounds between two epsilons in the metrics, at least 1. An epsilon takes some tenths of a
        second to compute.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If an argument is out of its range, if the uplink needs all updates at once, or if the ledger belongs
        to a different uplink.

    Examples
    --------
    >>> import floras
    >>> mechanism = FlorasUplink(floras.Uplink("floras", sequences=30, clip=1.0), seed=1)
    >>> mechanism.ledger.rounds
    0
    """

    def __init__(
        self,
        uplink: floras.Uplink,
        *,
        seed: int | None = None,
        ledger: floras.Ledger | str | os.PathLike[str] | None = None,
        epsilon_every: int = 1,
    ) -> None:
        super().__init__()
        _check_uplink(uplink)
        _check_seed(seed)
        self._uplink = uplink
        self._seed = seed
        self._ledger = _ledger_of(uplink, ledger)
        self._epsilon_every = _positive("epsilon_every", epsilon_every)
        self._guarantees: dict[str, bool] | None = None
        self._accountant: FlorasAccountant | None = None
        self._channel: floras.Channel | None = None
        self._round: _Round | None = None

    @classmethod
    def from_privacy_accountant(
        cls, accountant: FlorasAccountant, *, seed: int | None = None, epsilon_every: int = 1
    ) -> FlorasUplink:
        """Build the mechanism that an accountant has planned, with the accountant's ledger.

        Parameters
        ----------
        accountant : FlorasAccountant
            The plan.
        seed : int, optional
            As in `FlorasUplink`.
        epsilon_every : int
            As in `FlorasUplink`.

        Returns
        -------
        FlorasUplink
            The mechanism.
        """
        mechanism = cls(accountant.uplink, seed=seed, ledger=accountant.ledger, epsilon_every=epsilon_every)
        mechanism._accountant = accountant
        return mechanism

    @property
    def uplink(self) -> floras.Uplink:
        """The uplink and its settings."""
        return self._uplink

    @property
    def ledger(self) -> floras.Ledger:
        """The privacy loss of all rounds so far."""
        return self._ledger

    @property
    def privacy_accountant(self) -> FlorasAccountant | None:
        """The accountant from which this was built; None if there is none."""
        return self._accountant

    @property
    def channel(self) -> floras.Channel | None:
        """The effective channel of the last round, None before the first."""
        return self._channel

    def postprocess_one_user_metrics(self, *, user_context: UserContext) -> Metrics:
        """Count a user that was asked, whether or not it answers.

        Parameters
        ----------
        user_context : UserContext
            The user.

        Returns
        -------
        Metrics
            No metrics.
        """
        self._this_round().asked += 1
        return Metrics()

    def postprocess_one_user(
        self, *, stats: TrainingStatistics, user_context: UserContext
    ) -> tuple[TrainingStatistics, Metrics]:
        """Clip a user's statistics and multiply them by the user's gain.

        The metrics of clipping are part of the server's step: pfl adds the metrics of all users, and cannot
        do so if only some of them have answered.

        Parameters
        ----------
        stats : TrainingStatistics
            The user's statistics, of weight 1.
        user_context : UserContext
            The user.

        Returns
        -------
        stats : TrainingStatistics
            The statistics as they arrive at the base station, without noise.
        metrics : Metrics
            No metrics.

        Raises
        ------
        TypeError
            If the statistics have one weight per element.
        ValueError
            If the weight is not 1, a value is not finite, or the user answers twice.
        """
        _check_weight(stats, user_context)
        this_round = self._this_round()
        update = _vector_of(stats, user_context)
        clipped = update if self._uplink.clip is None else floras.clip(update, self._uplink.clip)
        sent = this_round.answer(user_context, float(np.linalg.norm(update)), clipped)
        return _with_vector(stats, sent), Metrics()

    def postprocess_server_metrics(
        self, *, central_context: CentralContext, aggregate_metrics: Metrics
    ) -> Metrics:
        """End a round that has no statistics: an evaluation, or one without answers.

        Parameters
        ----------
        central_context : CentralContext
            The settings of the round.
        aggregate_metrics : Metrics
            Metrics of the users.

        Returns
        -------
        Metrics
            No metrics.

        Raises
        ------
        ValueError
            If the statistics are those of another population than the training population.
        """
        this_round = self._this_round()
        if central_context.population != Population.TRAIN:
            self._round = None
            if this_round.answered:
                raise ValueError(
                    f"statistics must come from the population {Population.TRAIN.value}, "
                    f"not {central_context.population.value}: the uplink is for training"
                )
        elif not this_round.answered:
            self._round = None
        return Metrics()

    def postprocess_server(
        self, *, stats: TrainingStatistics, central_context: CentralContext, aggregate_metrics: Metrics
    ) -> tuple[TrainingStatistics, Metrics]:
        """Add the noise of the round to the sum, clamp it, and record the round.

        Parameters
        ----------
        stats : TrainingStatistics
            The sum of the users' statistics.
        central_context : CentralContext
            The settings of the round.
        aggregate_metrics : Metrics
            Metrics of the users.

        Returns
        -------
        stats : TrainingStatistics
            The decoded sum.
        metrics : Metrics
            Norms, gains, noise and epsilon in every view.

        Raises
        ------
        RuntimeError
            If the sum is not that of the users' updates.
        ValueError
            If the weights are not those of the users that answered.
        OSError
            If the ledger cannot be written.
        """
        this_round, self._round = self._this_round(), None
        this_round.check_complete(stats, aggregate_metrics)
        channel = this_round.channel()
        total = _vector_of(stats, None)
        decoded = channel.add_noise(this_round.sum_like(total))
        bound = self._uplink.settings.get("truncate")
        if isinstance(bound, (int, float)):
            decoded = np.clip(decoded, -bound, bound)
        # On record before anyone sees the sum.
        self._ledger.record(channel)
        self._channel = channel
        metrics = self._metrics(this_round, channel, float(np.linalg.norm(total)), len(total))
        return _with_vector(stats, decoded), metrics

    def postprocess_server_live(
        self, *, stats: TrainingStatistics, central_context: CentralContext, aggregate_metrics: Metrics
    ) -> tuple[TrainingStatistics, Metrics]:
        """Reject live training: the radio is simulated.

        Parameters
        ----------
        stats : TrainingStatistics
            Not used.
        central_context : CentralContext
            Not used.
        aggregate_metrics : Metrics
            Not used.

        Returns
        -------
        tuple of TrainingStatistics and Metrics
            It never returns.

        Raises
        ------
        RuntimeError
            Always.
        """
        raise RuntimeError("FlorasUplink simulates the radio, so it cannot be used in live training")

    def _this_round(self) -> _Round:
        if self._round is None:
            _check_one_process()
            self._round = _Round(self._uplink, self._ledger.rounds + 1, self._seed)
        return self._round

    def _metrics(
        self, this_round: _Round, channel: floras.Channel, signal_norm: float, parameters: int
    ) -> Metrics:
        of_users, of_sum = self._central_dp_clip_format_fn, self._central_dp_noise_format_fn
        metrics: list[tuple[PrivacyMetricName, Any]] = [
            (of_users("norm before clipping"), Weighted.from_unweighted(np.mean(this_round.norms))),
            (of_users("mean gain"), Weighted.from_unweighted(np.mean(channel.gains))),
            (of_users("users in the sum"), this_round.answered),
            (of_users("users without an answer"), this_round.asked - this_round.answered),
            (of_sum("DP noise std. dev."), Weighted.from_unweighted(channel.noise_std)),
            (of_sum("signal-to-DP-noise ratio"), SNRMetric(signal_norm, parameters * channel.noise_std**2)),
        ]
        bound = self._uplink.clip
        if bound is not None:
            clipped = np.mean([norm > bound for norm in this_round.norms])
            metrics += [
                (of_users("l2 norm bound"), Weighted.from_unweighted(bound)),
                (of_users("fraction of clipped norms"), Weighted.from_unweighted(clipped)),
            ]
        return Metrics(metrics + self._epsilons())

    def _epsilons(self) -> list[tuple[PrivacyMetricName, float]]:
        """Return the epsilon of all rounds so far in every view that has one, if it is due."""
        if self._ledger.rounds != 1 and self._ledger.rounds % self._epsilon_every != 0:
            return []
        if self._guarantees is None:
            # Computed once: it has much more than epsilon, and takes longer.
            views = self._ledger.views()
            self._guarantees = {view: said.guarantee for view, said in views.items()}
        named = []
        for view, is_guarantee in self._guarantees.items():
            epsilon = self._ledger.epsilon(view)
            if epsilon is not None:
                is_covered = self._ledger.noise_caveat is None and epsilon <= 150
                label = view if is_guarantee and is_covered else f"{view}, no guarantee"
                name = PrivacyMetricName(f"epsilon ({label})", is_local_privacy=False)
                named.append((name, epsilon))
        return named


class _Round:
    """The users of the current round: which were asked, which have answered, and with which gain."""

    def __init__(self, uplink: floras.Uplink, number: int, seed: int | None) -> None:
        self._uplink = uplink
        self._number = number
        self._seed = seed
        self._drawn: floras.Channel | None = None
        # The sum of what was sent, and the errors of its additions.
        self._sum: npt.NDArray[np.float64] = np.zeros(0)
        self._error: npt.NDArray[np.float64] = np.zeros(0)
        self._users: set[Any] = set()
        self._gains: npt.NDArray[np.float64] = np.empty(0)
        self.asked = 0
        self.norms: list[float] = []

    @property
    def answered(self) -> int:
        """K, the users whose statistics are in the sum."""
        return len(self.norms)

    def answer(self, user: UserContext, norm: float, update: Vector) -> Vector:
        """Assign the next place to a user and return its update times the gain of this place."""
        if user.user_id is not None and user.user_id in self._users:
            raise ValueError(
                f"the users of a round must be different: user {user.user_id!r} answers a second time "
                f"in round {self._number}; draw the users with floras.pfl.CohortSampler"
            )
        self._users.add(user.user_id)
        place = self.answered
        if place >= len(self._gains):
            self._gains = self._realise(self._ahead(place + 1)).gains
        sent = float(self._gains[place]) * update.astype(np.float64)
        if not self.norms:
            self._sum, self._error = np.zeros_like(sent), np.zeros_like(sent)
        if sent.shape != self._sum.shape:
            raise ValueError(
                f"the statistics of all users must have {len(self._sum)} values, and those of user "
                f"{user.user_id!r} have {len(sent)}"
            )
        # Knuth's two-sum: what the addition loses is kept.
        total = self._sum + sent
        part = total - self._sum
        self._error += (self._sum - (total - part)) + (sent - part)
        self._sum = total
        self.norms.append(norm)
        return sent.astype(np.float32)

    def sum_like(self, total: Vector) -> npt.NDArray[np.float64]:
        """Return the sum in double precision, which must equal pfl's sum up to rounding."""
        if total.shape != self._sum.shape or not np.allclose(
            total, self._sum, rtol=1e-3, atol=self._tolerance()
        ):
            raise RuntimeError(
                "the sum is not that of the users' updates: "
                "FlorasUplink must be the last of the postprocessors"
            )
        return self._sum + self._error

    def _tolerance(self) -> float:
        """Return the allowed error of pfl's sum: its rounding is relative to the updates that were added."""
        return 1e-5 * float(np.abs(self._gains[: self.answered]) @ np.asarray(self.norms))

    def channel(self) -> floras.Channel:
        """Draw the channel of those who answered."""
        channel = self._realise(self.answered, selected=max(self.asked, self.answered))
        if not np.array_equal(channel.gains, self._gains[: self.answered]):
            raise RuntimeError(
                "the gains of this uplink depend on who else takes part, and cannot be used here"
            )
        return channel

    def check_complete(self, stats: TrainingStatistics, aggregate_metrics: Metrics) -> None:
        """Raise unless the sum holds exactly the users that were counted, each with weight 1."""
        name = get_num_devices_weight_name(Population.TRAIN)
        devices = get_overall_value(aggregate_metrics[name]) if name in aggregate_metrics else self.asked
        if devices != self.asked:
            raise RuntimeError(
                f"{self.asked} users were counted and {devices:g} took part: an earlier round broke off; "
                "build a new FlorasUplink (with the same ledger)"
            )
        if isinstance(stats, WeightedStatistics) and abs(stats.weight - self.answered) > 1e-6 * self.answered:
            raise ValueError(
                f"the weights of {self.answered} users must add up to as many, not to {stats.weight:g}; "
                "FlorasUplink must be the last of the postprocessors"
            )

    def _realise(self, users: int, selected: int | None = None) -> floras.Channel:
        if self._drawn is None:
            self._drawn = self._uplink.realise(users, seed=self._seed, round=self._number)
        return self._drawn.with_clients(users, selected)

    def _ahead(self, users: int) -> int:
        """Return the number of users for which to draw gains if those of `users` are needed."""
        settings = self._uplink.settings
        if "trace" in settings.get("fading", ""):
            # A trace need not have channels for more.
            return users
        limits = [settings.get("clients"), settings["sequences"] if settings["scheme"] == "floras" else None]
        most = min((limit for limit in limits if limit is not None), default=2 * max(users, 8))
        # If there are too many users, the core reports the error.
        return max(users, most)


# Families whose sequences never overlap.
_ORTHONORMAL = ("walsh", "orthonormal", "zadoff-chu")


def _check_uplink(uplink: floras.Uplink) -> None:
    if not isinstance(uplink, floras.Uplink):
        raise TypeError(f"uplink must be a floras.Uplink, not {type(uplink).__name__}")
    settings = uplink.settings
    if settings.get("fidelity") == "chip":
        raise ValueError(
            'fidelity must be "symbol" inside pfl, not "chip": gains and noise are applied apart'
        )
    if settings.get("normalise") == "paper":
        raise ValueError('normalise must be "clip" inside pfl, not "paper": that needs all updates at once')
    if "coherence" in settings:
        raise ValueError(
            f"coherence must be left out inside pfl, not {settings['coherence']}: "
            "a user's update has one gain"
        )
    family = settings.get("family", "walsh")
    if settings["scheme"] == "floras" and family not in _ORTHONORMAL:
        raise ValueError(
            f'family must be "walsh", "orthonormal" or "zadoff-chu" inside pfl, not "{family}": with '
            "sequences that overlap a user's gain depends on who else takes part"
        )


def _ledger_of(uplink: floras.Uplink, ledger: floras.Ledger | str | os.PathLike[str] | None) -> floras.Ledger:
    if not isinstance(ledger, floras.Ledger):
        return floras.Ledger(uplink, ledger)
    if ledger.uplink.settings != uplink.settings:
        raise ValueError("ledger must be one of this uplink, not of another")
    return ledger


def _positive(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")
    return value


def _check_seed(seed: int | None) -> None:
    if seed is None:
        return
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed must be an integer or None, not {seed!r}")
    if not 0 <= seed < 2**63:
        raise ValueError(f"seed must be from 0 to 2^63 - 1, not {seed}")


def _check_one_process() -> None:
    workers = get_ops().distributed.world_size
    if workers > 1:
        raise RuntimeError(
            f"FlorasUplink works in one process, not in {workers}: every worker would count its own users "
            "and draw its own noise"
        )


def _check_weight(stats: TrainingStatistics, user: UserContext) -> None:
    if isinstance(stats, ElementWeightedMappedVectorStatistics):
        raise TypeError("statistics must have one weight, which is 1, not one for every element")
    if isinstance(stats, WeightedStatistics) and stats.weight != 1:
        raise ValueError(
            f"the weight of every user must be 1, not {stats.weight:g} (user {user.user_id!r}): "
            "all updates have the same weight in the sum over the air; leave out WeightByDatapoints, "
            "or put WeightByUser before"
        )


def _vector_of(stats: TrainingStatistics, user: UserContext | None) -> Vector:
    """Return all statistics one after the other."""
    _metadata, tensors = stats.get_weights()
    vector = np.ascontiguousarray(get_ops().to_numpy(get_ops().flatten(tensors)[0]), dtype=np.float32)
    if not np.isfinite(vector).all():
        whose = "the sum" if user is None else f"user {user.user_id!r}"
        raise ValueError(f"the statistics of {whose} must be finite, and are not")
    return vector


def _with_vector(stats: TrainingStatistics, vector: Vector) -> TrainingStatistics:
    """Return statistics of the same kind and weight with other values."""
    metadata, tensors = stats.get_weights()
    shapes = [get_ops().get_shape(tensor) for tensor in tensors]
    return stats.from_weights(metadata, get_ops().reshape(get_ops().to_tensor(vector), shapes))
