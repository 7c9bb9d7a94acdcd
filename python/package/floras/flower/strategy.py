"""A Flower strategy whose sums go over a simulated radio.

Clients train as with `FedAvg`. The server computes the differences `x_k = w - w_k`, aggregates them with a
`floras.Uplink`, and steps `w ← w - x̃/K`, with `x̃` the decoded sum of the `K` clients that answered. All
clients have the same weight, regardless of their number of examples: the bound on one client's influence
needs that.
"""

import logging
import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.exception import InconsistentMessageReplies
from flwr.serverapp.strategy import FedAvg, Result
from flwr.serverapp.strategy.strategy_utils import sample_nodes, validate_message_reply_consistency

import floras
from floras import _core
from floras._types import View
from floras.flower import metrics
from floras.flower.arrays import GlobalModel, Vector
from floras.flower.clip import DIFFERENCE, FORM_KEY, MARK
from floras.flower.nodes import NodeNumbers

LOG = logging.getLogger("flwr")


@dataclass
class _Round:
    """A round that was sent and waits for replies."""

    model: GlobalModel
    numbers: dict[int, int]
    """The client number of each selected node."""
    among: int | None
    """Number of nodes that could be selected; `None` if selection gives no privacy."""

    @property
    def selected(self) -> int:
        """Number of selected clients."""
        return len(self.numbers)


@dataclass
class _Answer:
    """A usable answer of a client."""

    client: int
    difference: Vector
    content: RecordDict


class FlorasStrategy(FedAvg):
    """`FedAvg` over the air, with privacy accounting.

    Parameters
    ----------
    uplink : floras.Uplink
        The radio. Set its ``clients`` to the largest possible number of clients only if the selection of
        clients stays secret; otherwise the accounting assumes that it is known who took part.
    seed : int, optional
        Makes the noise reproducible, for experiments: anyone who knows it can subtract the noise. By default
        the noise comes from the operating system.
    budget : float, optional
        An epsilon that is never exceeded in ``view``. A round that would exceed it is not sent, and neither
        are later rounds.
    view : str, optional
        The view of the budget; that of the uplink by default.
    ledger : path, optional
        File to which each round is written before its model is returned. A new strategy with the same file
        resumes the count of rounds and privacy, and does not repeat noise. The numbers of the nodes are in a
        second file with ``.nodes.json`` added to its name. The model is not stored.
    **fedavg
        Arguments of ``FedAvg``. ``fraction_train`` selects among the connected nodes. ``weighted_by_key``
        concerns metrics only.

    Raises
    ------
    ValueError
        If an argument is out of its range, or if the ledger belongs to a different uplink.
    """

    def __init__(
        self,
        uplink: floras.Uplink,
        *,
        seed: int | None = None,
        budget: float | None = None,
        view: View | None = None,
        ledger: str | Path | None = None,
        **fedavg: Any,
    ) -> None:
        super().__init__(**fedavg)
        if budget is not None and not (math.isfinite(budget) and budget > 0):
            raise ValueError(f"budget must be an epsilon above 0 or None, not {budget!r}")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
            raise TypeError(f"seed must be an integer or None, not {seed!r}")
        if seed is not None and not 0 <= seed < 2**63:
            raise ValueError(f"seed must be from 0 to 2**63 - 1, not {seed}")
        path = None if ledger is None else Path(ledger)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        self.uplink = uplink
        self.seed = seed
        self.budget = budget
        # An unknown view is refused here, and not in the middle of the training.
        self.view: str = uplink.view if view is None else _core.view_name(view)
        self.ledger = floras.Ledger(uplink, path)
        nodes = None if path is None else path.with_name(path.name + ".nodes.json")
        self._sequences: int | None = uplink.settings.get("sequences")
        self._numbers = NodeNumbers(nodes, uplink.clients)
        if self.ledger.rounds and nodes is not None and not len(self._numbers):
            raise ValueError(
                f"{nodes} must be next to its ledger, which does not record which node is which client"
            )
        self._round: _Round | None = None
        self._has_begun = False
        self._stopped_in: int | None = None
        self._named_kept = False

    @property
    def rounds(self) -> int:
        """Number of recorded rounds, including those before a restart."""
        return int(self.ledger.rounds)

    @property
    def _is_secret(self) -> bool:
        """Whether the accounting assumes that the selection of clients is secret."""
        return self.uplink.clients is not None and self.fraction_train < 1.0

    @property
    def stopped(self) -> bool:
        """Whether the budget has ended the training."""
        return self._stopped_in is not None

    def summary(self) -> None:
        """Log the settings of the strategy."""
        for line in metrics.summary(self.uplink, self.ledger, self.seed, self.budget, self.view):
            LOG.info("\t├──> %s", line)
        super().summary()

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Train for `num_rounds` more rounds, or until the budget is spent.

        The arguments are those of `FedAvg`.

        Parameters
        ----------
        grid : Grid
            The connected nodes.
        initial_arrays : ArrayRecord
            The initial model.
        num_rounds : int
            Number of rounds.
        timeout : float
            Seconds to wait for the replies of a round.
        train_config, evaluate_config : ConfigRecord, optional
            Settings for the clients.
        evaluate_fn : callable, optional
            Evaluates a model on the server; it is not called after the budget has ended the training.

        Returns
        -------
        Result
            Metrics of each round and the final model.

        Raises
        ------
        ValueError
            If the model has no floating-point array, if there are not enough sequences, or if the budget is
            below the epsilon of the first round.
        """
        # A model that cannot be sent is rejected here, before waiting for nodes.
        GlobalModel(initial_arrays)
        self._stopped_in, self._has_begun = None, False

        def evaluate_unless_stopped(server_round: int, arrays: ArrayRecord) -> MetricRecord | None:
            # The model does not change after the stop.
            return None if self.stopped or evaluate_fn is None else evaluate_fn(server_round, arrays)

        evaluate = None if evaluate_fn is None else evaluate_unless_stopped
        result = super().start(
            grid, initial_arrays, num_rounds, timeout, train_config, evaluate_config, evaluate
        )
        if not result.arrays:
            # No round changed the model: the initial one is the result.
            result.arrays = initial_arrays
        return result

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Select the clients of a round and return their messages, unless the budget forbids the round.

        Parameters
        ----------
        server_round : int
            Flower's number of the round, from 1.
        arrays : ArrayRecord
            The common model.
        config : ConfigRecord
            Settings for the clients.
        grid : Grid
            The connected nodes.

        Returns
        -------
        iterable of Message
            One message for each selected client; none if the budget is spent.
        """
        self._round = None
        if self.fraction_train == 0.0 or self.stopped:
            return []
        model = GlobalModel(arrays)
        self._say_what_is_kept(model)
        asked, connected = self._pick(grid)
        LOG.info("configure_train: Sampled %s nodes (out of %s)", len(asked), len(connected))
        self._has_begun = True
        numbers = self._numbers.assign(asked, connected)
        current = _Round(model, numbers, None if self.uplink.clients is None else len(connected))
        if not self._budget_allows(current):
            self._stopped_in = server_round
            return []
        self._round = current
        config["server-round"] = server_round
        config[FORM_KEY] = DIFFERENCE
        record = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: config})
        return self._construct_messages(record, asked, MessageType.TRAIN)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Aggregate the answers over the air, record the round, and return the next model.

        Parameters
        ----------
        server_round : int
            Flower's number of the round, from 1.
        replies : iterable of Message
            The clients' replies. Unusable replies are logged and left out.

        Returns
        -------
        arrays : ArrayRecord or None
            The next model; ``None`` if it is unchanged.
        metrics : MetricRecord or None
            Metrics of the clients and of the uplink.
        """
        current, self._round = self._round, None
        if current is None:
            return None, self._stop_metrics(server_round)
        answers = self._answers(current, replies)
        if not answers or self._too_few(len(answers), current):
            LOG.warning("floras: no update is sent in round %d; the model is unchanged", server_round)
            return None, metrics.nothing_sent(self.ledger, current.selected, len(answers), self._is_secret)
        # Before the sum is computed and recorded: a failing function of the user must not cost privacy.
        combined = self._client_metrics([answer.content for answer in answers])
        result = self.uplink.aggregate(
            [answer.difference for answer in answers],
            seed=self.seed,
            round=self.ledger.rounds + 1,
            clients=[answer.client for answer in answers],
            selected=current.selected,
            among=current.among,
        )
        self.ledger.record(result)
        combined.update(metrics.of_round(result, self.ledger, self._sequences, self._is_secret))
        return current.model.step(result.mean), combined

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Select the clients that evaluate, as `FedAvg` does.

        Parameters
        ----------
        server_round : int
            Flower's number of the round, from 1.
        arrays : ArrayRecord
            The common model.
        config : ConfigRecord
            Settings for the clients.
        grid : Grid
            The connected nodes.

        Returns
        -------
        iterable of Message
            One message for each selected client; none after the budget is spent.
        """
        return [] if self.stopped else super().configure_evaluate(server_round, arrays, config, grid)

    def _pick(self, grid: Grid) -> tuple[list[int], list[int]]:
        """Return the selected nodes and all connected nodes.

        If the accounting counts on random selection, the draw is made here. It is as secret as the noise, and
        cannot be repeated without a seed.
        """
        share = int(len(list(grid.get_node_ids())) * self.fraction_train)
        asked, connected = sample_nodes(grid, self.min_available_nodes, max(share, self.min_train_nodes))
        if not self._has_begun:
            self._check_sequences(len(asked))
        elif self._sequences is not None and len(asked) > self._sequences:
            LOG.warning(
                "floras: %d nodes are not selected: there are no sequences for them",
                len(asked) - self._sequences,
            )
            asked = asked[: self._sequences]
        if self.uplink.clients is None:
            return asked, connected
        if self._has_begun:
            admitted = self._numbers.admit(connected)
            if len(admitted) < len(connected):
                LOG.warning(
                    "floras: %d nodes more than uplink.clients are left out", len(connected) - len(admitted)
                )
            connected = admitted
        secret = random.SystemRandom() if self.seed is None else random.Random(f"{self.seed} {self.rounds}")
        return secret.sample(sorted(connected), min(len(asked), len(connected))), connected

    def _check_sequences(self, asked: int) -> None:
        if self._sequences is not None and asked > self._sequences:
            raise ValueError(
                f"{asked} clients per round need as many uplink.sequences, not {self._sequences}; "
                "use more sequences or a smaller fraction_train"
            )

    def _budget_allows(self, current: _Round) -> bool:
        """Return whether one more round is within the budget. A budget below the first round is an error."""
        if self.budget is None:
            return True
        after = self.ledger.after(current.selected, view=self.view, among=current.among)
        if after is not None and after <= self.budget:
            return True
        if self.ledger.rounds == 0:
            self._refuse_budget(current.selected, after)
        LOG.warning(
            "floras: the training stops after %d rounds: one more would bring epsilon to %s in the %s view, "
            "and the budget is %s",
            self.ledger.rounds,
            "infinity" if after is None else f"{after:.4f}",
            self.view,
            self.budget,
        )
        return False

    def _refuse_budget(self, selected: int, epsilon: float | None) -> NoReturn:
        if epsilon is None:
            statement = self.uplink.account(selected).views.get(self.view)
            reason = statement and statement.reason
            raise ValueError(
                f"budget cannot be kept in the {self.view} view: {reason or 'it has no epsilon'}"
            )
        raise ValueError(
            f"budget must be at least what one round of {selected} clients spends in the {self.view} view, "
            f"{epsilon:.4f}, not {self.budget}; or reduce uplink.clip"
        )

    def _too_few(self, answered: int, current: _Round) -> bool:
        """Return whether a round of the clients that answered would exceed the budget.

        With a missing client, random selection gives no privacy. With some schemes, such as channel
        inversion at the power of the weakest client, fewer clients cost more.
        """
        if self.budget is None or answered == current.selected:
            return False
        after = self.ledger.after(answered, view=self.view, selected=current.selected, among=current.among)
        if after is not None and after <= self.budget:
            return False
        LOG.warning("floras: the %d clients that answered are too few for the budget", answered)
        return True

    def _answers(self, current: _Round, replies: Iterable[Message]) -> list[_Answer]:
        """Return the usable answers, in the order of the clients' numbers."""
        answers: dict[int, _Answer] = {}
        silent = set(current.numbers)
        for reply in replies:
            node = reply.metadata.src_node_id
            if node not in silent:
                LOG.warning("floras: node %d is left out: it was not selected, or has answered before", node)
                continue
            silent.remove(node)
            try:
                difference = _difference(current.model, reply)
            except ValueError as error:
                LOG.warning("floras: node %d is left out: %s", node, error)
            else:
                client = current.numbers[node]
                answers[client] = _Answer(client, difference, reply.content)
        for node in sorted(silent):
            LOG.warning("floras: node %d is left out: it did not answer in time", node)
        LOG.info(
            "aggregate_train: %s of %s clients are aggregated over the air", len(answers), current.selected
        )
        return [answers[client] for client in sorted(answers)]

    def _client_metrics(self, contents: list[RecordDict]) -> MetricRecord:
        """Return the clients' metrics, combined as in `FedAvg`; no metrics if they cannot be combined."""
        if not any(content.metric_records for content in contents):
            return MetricRecord()
        try:
            validate_message_reply_consistency(contents, self.weighted_by_key, check_arrayrecord=False)
            combined = self.train_metrics_aggr_fn(contents, self.weighted_by_key)
        except (InconsistentMessageReplies, ValueError, TypeError, ArithmeticError) as error:
            LOG.warning("floras: the clients' metrics are left out: %s", error)
            return MetricRecord()
        # Clients must not set metrics with our prefix.
        return MetricRecord({key: value for key, value in combined.items() if not key.startswith("floras-")})

    def _stop_metrics(self, server_round: int) -> MetricRecord | None:
        """Return the metrics of the first round that was not sent; `None` in later rounds."""
        is_now = server_round == self._stopped_in
        return metrics.stopped(self.ledger, self._is_secret) if is_now else None

    def _say_what_is_kept(self, model: GlobalModel) -> None:
        if model.kept and not self._named_kept:
            LOG.warning(
                "floras: arrays that are not floating-point are not trained and keep their value: %s",
                model.kept,
            )
        self._named_kept = True


def _difference(model: GlobalModel, reply: Message) -> Vector:
    """Return the difference in a reply, in either of its two forms."""
    if reply.has_error():
        raise ValueError(f"it replied with an error: {reply.error.reason}")
    content = reply.content
    if len(content.array_records) != 1:
        raise ValueError(
            f"its reply must have exactly one record of arrays, not {len(content.array_records)}"
        )
    arrays = next(iter(content.array_records.values()))
    mark = content.config_records.get(MARK)
    is_difference = mark is not None and mark.get(FORM_KEY) == DIFFERENCE
    return model.read(arrays) if is_difference else model.difference(arrays)
