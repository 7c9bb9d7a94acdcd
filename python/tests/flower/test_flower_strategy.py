"""The strategy with clients in this process: what it sums, whom it leaves out, and what it says."""

import io
import logging
import random
import re
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from flower_fakes import FakeGrid, fail, reply_with, shifting, zeros
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict

import floras
from floras.flower import FlorasStrategy
from floras.flower.clip import DIFFERENCE, FORM_KEY, MARK

TWENTY = range(1000, 1020)


@cache
def noisy(**settings: Any) -> floras.Uplink:
    """An uplink with noise; the same one every time, because it remembers its accounting."""
    return floras.Uplink(sequences=24, length=32, receiver={"clipped": 1.0}, clip=1.0, **settings)


def start(
    strategy: FlorasStrategy, answer: Any, *, nodes: Any = TWENTY, model: Any = None, rounds: int = 1
) -> Any:
    """Trains on a grid in this process; returns the result and the grid."""
    grid = FakeGrid(answer, nodes)
    result = strategy.start(grid, zeros() if model is None else model, num_rounds=rounds)
    return result, grid


def test_an_ideal_uplink_steps_to_the_plain_mean() -> None:
    def answer(message: Message, context: Context) -> Message:
        return reply_with(
            message, [np.full(6, context.node_id, np.float32)], {"num-examples": 10**context.node_id}
        )

    strategy = FlorasStrategy(floras.Uplink("ideal"), fraction_evaluate=0.0)
    result, _ = start(strategy, answer, nodes=[1, 2, 6])
    assert result.arrays.to_numpy_ndarrays()[0].tolist() == [3.0] * 6


def test_the_step_is_that_of_the_uplink() -> None:
    shifts = {node: 0.01 * (node - 1000) for node in TWENTY}
    strategy = FlorasStrategy(noisy(), seed=3, fraction_evaluate=0.0)
    result, _ = start(strategy, shifting(lambda node: shifts[node]), rounds=2)
    uplink, model = noisy(), np.zeros(6, np.float32)
    for number in (1, 2):
        deltas = [model - (model + np.float32(shift)) for shift in shifts.values()]
        model = model - uplink.aggregate(deltas, seed=3, round=number).mean
    assert result.arrays.to_numpy_ndarrays()[0].tolist() == model.tolist()


def test_without_a_seed_two_trainings_differ() -> None:
    models = []
    for _ in range(2):
        result, _ = start(FlorasStrategy(noisy(), fraction_evaluate=0.0), shifting(lambda _: 0.0))
        models.append(result.arrays.to_numpy_ndarrays()[0])
    assert not np.array_equal(models[0], models[1])


def test_keys_shapes_types_and_integers_are_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    arrays = {
        "weight": np.ones((2, 3), np.float32),
        "batches": np.array(7),
        "bias": np.ones(2, np.float64),
        "scale": np.array(1.0, np.float16),
        "mask": np.array([True, False]),
    }
    model = ArrayRecord({key: Array(np.asarray(array)) for key, array in arrays.items()})

    def answer(message: Message, context: Context) -> Message:
        record = message.content.array_records["arrays"]
        moved = {
            key: record[key].numpy() + record[key].numpy().dtype.type(1) for key in arrays if key != "mask"
        }
        moved["mask"] = ~arrays["mask"]
        return reply_with(
            message, ArrayRecord({key: Array(np.asarray(array)) for key, array in moved.items()})
        )

    with caplog.at_level(logging.WARNING, "flwr"):
        result, _ = start(
            FlorasStrategy(floras.Uplink("ideal"), fraction_evaluate=0.0), answer, model=model, rounds=2
        )
    assert list(result.arrays) == list(arrays)
    for key, before in arrays.items():
        after = result.arrays[key].numpy()
        assert (after.shape, after.dtype) == (before.shape, before.dtype)
        expected = before + 2 if before.dtype.kind == "f" else before
        assert np.array_equal(after, expected), key
    assert caplog.text.count("keep their value: ['batches', 'mask']") == 1


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (
            ArrayRecord([np.ones(2, np.complex64), np.ones(2)]),
            "array '0' of the model must have real numbers, not complex64",
        ),
        (ArrayRecord([np.ones(2, np.int64)]), "must have at least one floating-point array"),
        (ArrayRecord(), "must have at least one floating-point array"),
    ],
)
def test_a_model_that_cannot_be_sent_is_rejected(model: ArrayRecord, text: str) -> None:
    strategy, grid = FlorasStrategy(floras.Uplink("ideal")), FakeGrid(shifting(lambda _: 0.0), TWENTY)
    with pytest.raises(ValueError, match=text):
        strategy.start(grid, model)
    assert not grid.sent


def test_metrics_report_clients_channel_and_spend() -> None:
    strategy = FlorasStrategy(noisy(), seed=1, fraction_evaluate=0.0)
    result, _ = start(strategy, shifting(lambda _: 0.1), rounds=2)
    first, second = result.train_metrics_clientapp[1], result.train_metrics_clientapp[2]
    assert (first["floras-round"], second["floras-round"]) == (1, 2)
    assert (first["floras-selected"], first["floras-answered"], first["floras-failed"]) == (20, 20, 0)
    assert first["floras-unused-sequences"] == 4
    assert first["floras-clients"] == list(range(20))
    assert first["floras-mean-gain"] == pytest.approx(np.mean(first["floras-gains"]))
    assert first["floras-noise-std"] > 0
    assert first["floras-delta"] == 1e-5
    for view in ("idealised", "actual", "any-channel"):
        assert first[f"floras-epsilon-{view}"] == pytest.approx(
            first[f"floras-round-epsilon-{view}"], rel=1e-6
        )
        assert second[f"floras-epsilon-{view}"] > second[f"floras-round-epsilon-{view}"]
    assert first["loss"] == pytest.approx(1009.5)
    assert second["floras-worst-epsilon"] == pytest.approx(strategy.ledger.worst.epsilon)


def test_failed_and_silent_clients_are_left_out() -> None:
    def answer(message: Message, context: Context) -> Message | None:
        if context.node_id == 1003:
            return fail(message)
        if context.node_id == 1007:
            return None
        return shifting(lambda node: 0.001 * (node - 1000))(message, context)

    strategy = FlorasStrategy(noisy(), seed=5, fraction_evaluate=0.0)
    result, _ = start(strategy, answer)
    metrics = result.train_metrics_clientapp[1]
    answered = [k for k in range(20) if k not in (3, 7)]
    assert (metrics["floras-selected"], metrics["floras-answered"], metrics["floras-failed"]) == (20, 18, 2)
    assert metrics["floras-clients"] == answered
    assert metrics["floras-unused-sequences"] == 4
    deltas = [np.full(6, -np.float32(0.001 * k), np.float32) for k in answered]
    alone = noisy().aggregate(deltas, seed=5, clients=answered, selected=20)
    assert np.array_equal(result.arrays.to_numpy_ndarrays()[0], -alone.mean)
    ledger = floras.Ledger(noisy())
    ledger.record(alone)
    assert metrics["floras-epsilon-actual"] == ledger.epsilon("actual")
    # Sequences of those who are missing do not count as unused: their pilots may have been heard.
    assert metrics["floras-epsilon-actual"] >= floras.Ledger(noisy()).after(20, view="actual")


def test_rounds_of_different_sizes_are_composed() -> None:
    def answer(message: Message, context: Context) -> Message | None:
        if message.content.config_records["config"]["server-round"] == 2 and context.node_id in (1003, 1007):
            return None
        return shifting(lambda _: 0.1)(message, context)

    strategy = FlorasStrategy(noisy(), fraction_evaluate=0.0)
    start(strategy, answer, rounds=2)
    planned = floras.Ledger(noisy())
    # Clients that do not answer count as used sequences, so that nothing is gained from them.
    all_answer = planned.after(20, rounds=2, view="actual")
    assert strategy.ledger.epsilon("actual") == pytest.approx(all_answer, rel=1e-4)


def bad_replies() -> list[tuple[str, Any, str]]:
    good = np.zeros(6, np.float32)
    garbage = Array(dtype="float32", shape=(6,), stype="numpy.ndarray", data=b"\x93NUMPY nonsense")
    foreign = Array(dtype="float32", shape=(6,), stype="other", data=b"")
    several = io.BytesIO()
    np.savez(several, np.zeros(6, np.float32))
    headless = b"\x93NUMPY\x01\x00\x10\x00{'descr': ('<f4',"
    evil = {"several": several.getvalue(), "no archive": b"PK\x03\x04" + bytes(40), "open": headless}

    def of(data: bytes) -> ArrayRecord:
        return ArrayRecord({"0": Array(dtype="float32", shape=(6,), stype="numpy.ndarray", data=data)})

    extra = ArrayRecord({"0": Array(good), "1": Array(good)})
    return [
        ("shape", [np.zeros((2, 3), np.float32)], r"must have the shape \(6,\), not \(2, 3\)"),
        ("type", [np.zeros(6, np.int64)], "must have floating-point values, not int64"),
        ("key", ArrayRecord({"other": Array(good)}), "lacks the arrays"),
        ("more keys", extra, "arrays that the model does not have"),
        ("no arrays", None, "exactly one record of arrays, not 0"),
        ("garbage", ArrayRecord({"0": garbage}), "cannot be read"),
        ("foreign", ArrayRecord({"0": foreign}), "cannot be read"),
        *((name, of(data), "cannot be read") for name, data in evil.items()),
    ]


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
@pytest.mark.parametrize("form", ["model", "difference"])
def test_a_diverged_training_counts_as_zero(value: float, form: str) -> None:
    """Whether it broke down depends on the client's data: it must not be seen from the number of answers."""

    def answer(message: Message, context: Context) -> Message:
        if context.node_id != 2:
            return shifting(lambda _: 1.0)(message, context)
        reply = reply_with(message, [np.full(6, value)])
        if form == "difference":
            reply.content[MARK] = ConfigRecord({FORM_KEY: DIFFERENCE})
        return reply

    strategy = FlorasStrategy(floras.Uplink("ideal"), fraction_evaluate=0.0)
    result, _ = start(strategy, answer, nodes=[1, 2])
    assert result.train_metrics_clientapp[1]["floras-answered"] == 2
    assert result.arrays.to_numpy_ndarrays()[0].tolist() == [0.5] * 6


@pytest.mark.parametrize(
    ("name", "arrays", "text"), bad_replies(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_an_unusable_reply_counts_as_failed(
    name: str, arrays: Any, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(message: Message, context: Context) -> Message:
        if context.node_id == 2:
            return reply_with(message, arrays)
        return shifting(lambda _: 1.0)(message, context)

    with caplog.at_level(logging.WARNING, "flwr"):
        result, _ = start(
            FlorasStrategy(floras.Uplink("ideal"), fraction_evaluate=0.0), answer, nodes=[1, 2, 3]
        )
    assert result.train_metrics_clientapp[1]["floras-failed"] == 1
    assert result.arrays.to_numpy_ndarrays()[0].tolist() == [1.0] * 6
    lines = [record.getMessage() for record in caplog.records if "node 2 is left out" in record.getMessage()]
    assert len(lines) == 1
    assert re.search(text, lines[0])


def test_repeated_and_unexpected_replies_are_ignored() -> None:
    strategy = FlorasStrategy(floras.Uplink("ideal"))
    grid = FakeGrid(shifting(lambda _: 1.0), [1, 2])
    messages = list(strategy.configure_train(1, zeros(), ConfigRecord(), grid))
    replies = grid.send_and_receive(messages)
    stranger = Message(RecordDict({"arrays": zeros()}), dst_node_id=99, message_type="train")
    replies += [replies[0], grid.answer(stranger, strategy_context())]
    arrays, metrics = strategy.aggregate_train(1, replies)
    assert arrays is not None
    assert metrics is not None
    assert metrics["floras-answered"] == 2
    assert arrays.to_numpy_ndarrays()[0].tolist() == [1.0] * 6


def strategy_context() -> Context:
    return Context(run_id=1, node_id=99, node_config={}, state=RecordDict(), run_config={})


def test_without_answers_the_model_is_unchanged() -> None:
    strategy = FlorasStrategy(noisy(), fraction_evaluate=0.0)
    result, _ = start(strategy, lambda message, _: fail(message), rounds=2)
    assert not np.any(result.arrays.to_numpy_ndarrays()[0]), "the model is the one to begin with"
    assert strategy.rounds == 0
    assert result.train_metrics_clientapp[2]["floras-answered"] == 0
    assert result.train_metrics_clientapp[2]["floras-failed"] == 20
    assert "floras-epsilon-actual" not in result.train_metrics_clientapp[2]


def test_more_clients_than_sequences_are_rejected() -> None:
    grid = FakeGrid(shifting(lambda _: 0.0), range(25))
    with pytest.raises(ValueError, match=r"25 clients per round need as many uplink.sequences, not 24"):
        FlorasStrategy(noisy()).start(grid, zeros())
    assert not grid.sent


def test_more_nodes_than_clients_are_rejected() -> None:
    grid = FakeGrid(shifting(lambda _: 0.0), range(21))
    with pytest.raises(ValueError, match=r"uplink.clients must be at least 21, the connected nodes, not 20"):
        FlorasStrategy(noisy(clients=20), fraction_train=0.5).start(grid, zeros())
    assert not grid.sent


def test_connected_nodes_are_selected_uniformly() -> None:
    """6 of 12 connected nodes are picked: each of them is asked in half of the rounds.

    In 400 rounds that is 200 times with a standard deviation of 10. That one of 12 nodes is off by 5 of them
    has a probability below 1e-5.
    """
    strategy = FlorasStrategy(floras.Uplink("ideal", clients=16), seed=1, fraction_train=0.5)
    grid = FakeGrid(shifting(lambda _: 0.0), range(12))
    asked: Counter[int] = Counter()
    for number in range(400):
        strategy.seed = number
        messages = list(strategy.configure_train(number, zeros(), ConfigRecord(), grid))
        asked.update(message.metadata.dst_node_id for message in messages)
    assert len(asked) == 12
    assert all(150 < count < 250 for count in asked.values())


def test_random_selection_amplifies_privacy() -> None:
    epsilons = []
    for uplink in (noisy(clients=20), noisy()):
        strategy = FlorasStrategy(uplink, fraction_train=0.5, fraction_evaluate=0.0)
        start(strategy, shifting(lambda _: 0.1))
        epsilons.append(strategy.ledger.epsilon("actual"))
        assert epsilons[-1] == floras.Ledger(uplink).after(10, view="actual")
    assert epsilons[0] < epsilons[1], "without the number of all clients, everyone counts as picked"


def test_the_sampling_rate_is_among_connected_nodes() -> None:
    """200 clients, 10 of them there, 5 asked: one of those was in the round with a probability of 1/2."""
    strategy = FlorasStrategy(noisy(clients=200), fraction_train=0.5, fraction_evaluate=0.0)
    start(strategy, shifting(lambda _: 0.1), nodes=range(10))
    assert strategy.ledger.epsilon("actual") == noisy(clients=10).account(5).epsilon("actual")


def test_a_failed_client_removes_amplification() -> None:
    """A missing client may reveal who was selected: then epsilon is that of a round with known clients."""

    def answer(message: Message, context: Context) -> Message:
        return (
            fail(message)
            if failed.setdefault(0, context.node_id) == context.node_id
            else one(message, context)
        )

    failed: dict[int, int] = {}
    one = shifting(lambda _: 0.1)
    strategy = FlorasStrategy(noisy(clients=20), fraction_train=0.5, fraction_evaluate=0.0)
    start(strategy, answer)
    assert strategy.ledger.epsilon("actual") == floras.Ledger(noisy()).after(9, selected=10, view="actual")


def test_secret_selections_name_no_client() -> None:
    """Sampling hides a client only from those who do not learn who took part."""
    names = {"floras-clients", "floras-gains", "floras-worst-client", "floras-worst-epsilon"}
    for uplink, are_named in ((noisy(clients=20), False), (noisy(), True)):
        strategy = FlorasStrategy(uplink, fraction_train=0.5, fraction_evaluate=0.0)
        result, _ = start(strategy, shifting(lambda _: 0.1))
        printed = names & set(result.train_metrics_clientapp[1])
        assert printed == (names if are_named else set())


def test_a_seed_repeats_the_selection() -> None:
    def asked(seed: int | None) -> list[int]:
        strategy = FlorasStrategy(floras.Uplink("ideal", clients=40), seed=seed, fraction_train=0.5)
        grid = FakeGrid(shifting(lambda _: 0.0), range(40))
        messages = strategy.configure_train(1, zeros(), ConfigRecord(), grid)
        return sorted(message.metadata.dst_node_id for message in messages)

    random.seed(1)
    first, secret = asked(3), asked(None)
    random.seed(1)
    assert asked(3) == first != asked(4)
    # Two draws of 20 of 40 are the same with a probability of 1e-11.
    assert asked(None) != secret


def test_a_node_with_a_new_identifier_can_return() -> None:
    grid = FakeGrid(shifting(lambda _: 0.0), range(20))
    strategy = FlorasStrategy(noisy(clients=20), fraction_evaluate=0.0)
    strategy.aggregate_train(
        1, grid.send_and_receive(strategy.configure_train(1, zeros(), ConfigRecord(), grid))
    )
    grid.nodes = list(range(21))
    messages = list(strategy.configure_train(2, zeros(), ConfigRecord(), grid))
    assert sorted(message.metadata.dst_node_id for message in messages) == list(range(20))
    without = FlorasStrategy(noisy(), fraction_evaluate=0.0)
    without.aggregate_train(
        1, grid.send_and_receive(without.configure_train(1, zeros(), ConfigRecord(), grid))
    )
    grid.nodes = list(range(30))
    assert len(list(without.configure_train(2, zeros(), ConfigRecord(), grid))) == 24


def test_no_client_speaks_in_the_strategys_name() -> None:
    def answer(message: Message, context: Context) -> Message:
        reply = shifting(lambda _: 0.0)(message, context)
        reply.content["metrics"] = MetricRecord({"num-examples": 1, "floras-epsilon-any-channel": 0.1})
        return reply

    strategy = FlorasStrategy(floras.Uplink("ideal"), fraction_evaluate=0.0)
    result, _ = start(strategy, answer)
    assert "floras-epsilon-any-channel" not in result.train_metrics_clientapp[1]


def test_the_published_formula_is_not_a_guarantee() -> None:
    strategy = FlorasStrategy(noisy(), fraction_evaluate=0.0)
    result, _ = start(strategy, shifting(lambda _: 0.1))
    metrics = result.train_metrics_clientapp[1]
    assert "floras-epsilon-published" not in metrics
    assert metrics["floras-epsilon-published-no-guarantee"] < metrics["floras-epsilon-actual"]


def test_inconsistent_client_metrics_are_left_out() -> None:
    def answer(message: Message, context: Context) -> Message:
        metrics = {"num-examples": 1} if context.node_id == 1 else {"loss": 1.0}
        return reply_with(message, [np.ones(6, np.float32)], metrics)

    result, _ = start(FlorasStrategy(floras.Uplink("ideal"), fraction_evaluate=0.0), answer, nodes=[1, 2])
    assert result.train_metrics_clientapp[1]["floras-answered"] == 2
    assert "loss" not in result.train_metrics_clientapp[1]


def test_the_arguments_of_fedavg_reach_it() -> None:
    def count(records: list[RecordDict], key: str) -> MetricRecord:
        return MetricRecord({"count": len(records)})

    strategy = FlorasStrategy(
        floras.Uplink("ideal"),
        fraction_train=0.5,
        min_train_nodes=3,
        fraction_evaluate=0.0,
        train_metrics_aggr_fn=count,
    )
    result, grid = start(strategy, shifting(lambda _: 0.0), nodes=range(4))
    assert len(grid.sent) == 3
    assert result.train_metrics_clientapp[1]["count"] == 3
    with pytest.raises(TypeError, match="fraction_trian"):
        FlorasStrategy(floras.Uplink("ideal"), fraction_trian=0.5)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="budget must be an epsilon above 0 or None, not 0"):
        FlorasStrategy(noisy(), budget=0)
    with pytest.raises(ValueError, match="seed must be from 0"):
        FlorasStrategy(noisy(), seed=-1)
    with pytest.raises(TypeError, match=r"seed must be an integer or None, not 1\.5"):
        FlorasStrategy(noisy(), seed=1.5)
    with pytest.raises(ValueError, match="budget must be"):
        FlorasStrategy(noisy(), budget=float("nan"))
    with pytest.raises(ValueError, match=r'view must be one of .*any-channel.*, not "best"'):
        FlorasStrategy(noisy(), view="best")
