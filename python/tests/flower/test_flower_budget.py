"""A budget ends a training, and a ledger is resumed."""

import json
import logging
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flower_fakes import FakeGrid, reply_with, shifting, zeros
from flwr.app import ArrayRecord, Context, Message, MetricRecord

import floras
from floras.flower import FlorasStrategy
from floras.flower.nodes import NodeNumbers

NODES = [2**63 + 5, 17, 2**64 - 1, 40]


@cache
def uplink() -> floras.Uplink:
    """The same one every time, because it remembers its accounting."""
    return floras.Uplink(sequences=24, length=32, receiver={"clipped": 1.0}, clip=1.0)


def still(message: Message, context: Context) -> Message:
    """A client that sends the model back as it is: what the server sees is the noise."""
    return reply_with(message, message.content.array_records["arrays"])


def test_training_stops_before_the_budget_is_exceeded(caplog: pytest.LogCaptureFixture) -> None:
    plain = floras.Ledger(uplink())
    budget = (plain.after(4, rounds=3, view="actual") + plain.after(4, rounds=4, view="actual")) / 2
    grid, evaluated = FakeGrid(shifting(lambda _: 0.1), NODES), []

    def evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        evaluated.append(server_round)
        return MetricRecord({"value": float(arrays.to_numpy_ndarrays()[0][0])})

    strategy = FlorasStrategy(uplink(), view="actual", budget=budget, fraction_evaluate=1.0)
    with caplog.at_level(logging.WARNING, "flwr"):
        result = strategy.start(grid, zeros(), num_rounds=6, evaluate_fn=evaluate)
    assert strategy.stopped
    assert strategy.rounds == 3
    assert strategy.ledger.epsilon("actual") <= budget
    assert len([m for m in grid.sent if m.metadata.message_type == "train"]) == 12
    assert len([m for m in grid.sent if m.metadata.message_type == "evaluate"]) == 12
    assert evaluated == [0, 1, 2, 3]
    assert "the training stops after 3 rounds: one more would bring epsilon to" in caplog.text
    assert list(result.train_metrics_clientapp) == [1, 2, 3, 4]
    assert result.train_metrics_clientapp[4]["floras-stopped"] == 1
    assert result.train_metrics_clientapp[4]["floras-epsilon-actual"] == strategy.ledger.epsilon("actual")


@pytest.mark.parametrize("view", ["idealised", "any-channel"])
def test_the_budget_is_kept_in_the_named_view(view: str) -> None:
    limit = floras.Ledger(uplink()).after(4, rounds=2, view=view)
    strategy = FlorasStrategy(uplink(), budget=limit * 1.001, view=view, fraction_evaluate=0.0)
    strategy.start(FakeGrid(still, NODES), zeros(), num_rounds=4)
    assert strategy.rounds == 2


def test_a_budget_below_one_round_is_rejected() -> None:
    grid = FakeGrid(still, NODES)
    with pytest.raises(
        ValueError, match="budget must be at least what one round of 4 clients spends in the actual view"
    ):
        FlorasStrategy(uplink(), view="actual", budget=1e-3).start(grid, zeros())
    assert not grid.sent


def test_a_budget_without_a_clip_norm_is_rejected() -> None:
    grid = FakeGrid(still, NODES)
    with pytest.raises(ValueError, match="budget cannot be kept in the actual view: "):
        FlorasStrategy(floras.Uplink(sequences=24), view="actual", budget=10.0).start(grid, zeros())
    assert not grid.sent


def test_too_few_answers_do_not_exceed_the_budget(caplog: pytest.LogCaptureFixture) -> None:
    """Under channel inversion at the power of the weakest client, a round of few clients costs more."""
    inversion = floras.Uplink("channel-inversion", power_rule="worst-admitted", clip=0.02, snr_db=0.0)
    plain = floras.Ledger(inversion)
    all_answer, two_answer = plain.after(20, view="actual"), plain.after(2, view="actual")
    assert all_answer < two_answer
    strategy = FlorasStrategy(
        inversion, view="actual", budget=(all_answer + two_answer) / 2, fraction_evaluate=0.0
    )
    grid = FakeGrid(
        lambda message, context: still(message, context) if context.node_id < 2 else None, range(20)
    )
    with caplog.at_level(logging.WARNING, "flwr"):
        result = strategy.start(grid, zeros(), num_rounds=1)
    assert "the 2 clients that answered are too few for the budget" in caplog.text
    assert strategy.rounds == 0
    assert not np.any(result.arrays.to_numpy_ndarrays()[0])
    assert result.train_metrics_clientapp[1]["floras-answered"] == 2


def test_too_few_answers_are_charged_without_sampling() -> None:
    """2 of 20 answer, picked from 40: then sampling gives no amplification, not that of 2 of 40."""
    inversion = floras.Uplink(
        "channel-inversion", clients=40, power_rule="worst-admitted", clip=0.02, snr_db=0.0
    )
    plain = floras.Ledger(inversion)
    planned, spent = plain.after(20, view="actual"), plain.after(2, view="actual", selected=20)
    assert plain.after(2, view="actual") < planned < spent
    strategy = FlorasStrategy(
        inversion, view="actual", budget=(planned + spent) / 2, fraction_train=0.5, fraction_evaluate=0.0
    )
    asked: list[int] = []

    def answer(message: Message, context: Context) -> Message | None:
        asked.append(context.node_id)
        return still(message, context) if len(asked) <= 2 else None

    result = strategy.start(FakeGrid(answer, range(40)), zeros(), num_rounds=1)
    assert strategy.rounds == 0
    assert not np.any(result.arrays.to_numpy_ndarrays()[0])


def test_a_restarted_server_resumes_its_ledger(tmp_path: Path) -> None:
    path = tmp_path / "state" / "ledger.jsonl"
    path.parent.mkdir()
    models, epsilons = [], []
    for _ in range(2):
        strategy = FlorasStrategy(uplink(), seed=1, ledger=path, fraction_evaluate=0.0)
        result = strategy.start(FakeGrid(still, NODES), zeros(), num_rounds=1)
        models.append(result.arrays.to_numpy_ndarrays()[0])
        epsilons.append(result.train_metrics_clientapp[1]["floras-epsilon-actual"])
        assert result.train_metrics_clientapp[1]["floras-round"] == len(models) == strategy.rounds
        del strategy  # A server that has the ledger open keeps others away from it.
    assert not np.array_equal(models[0], models[1]), "the noise of the first round must not come again"
    fresh = floras.Ledger(uplink())
    assert epsilons == pytest.approx([fresh.after(4, rounds=rounds, view="actual") for rounds in (1, 2)])


def test_a_spent_budget_stays_spent_after_a_restart(tmp_path: Path) -> None:
    budget = floras.Ledger(uplink()).after(4, rounds=1, view="actual") * 1.001
    for expected in (4, 0):
        grid = FakeGrid(still, NODES)
        strategy = FlorasStrategy(
            uplink(), view="actual", budget=budget, ledger=tmp_path / "ledger", fraction_evaluate=0.0
        )
        strategy.start(grid, zeros(), num_rounds=2)
        assert len(grid.sent) == expected
        assert strategy.stopped
        del strategy


def test_a_ledger_of_other_settings_is_refused(tmp_path: Path) -> None:
    FlorasStrategy(uplink(), ledger=tmp_path / "l", fraction_evaluate=0.0).start(
        FakeGrid(still, NODES), zeros(), 1
    )
    with pytest.raises(ValueError, match="sequences"):
        FlorasStrategy(floras.Uplink(sequences=25, clip=1.0), ledger=tmp_path / "l")


def test_two_servers_cannot_write_to_one_ledger(tmp_path: Path) -> None:
    first = FlorasStrategy(uplink(), ledger=tmp_path / "ledger.jsonl")
    with pytest.raises((ValueError, OSError), match=r"ledger.jsonl"):
        FlorasStrategy(uplink(), ledger=tmp_path / "ledger.jsonl")
    assert first.rounds == 0


KILLED = """
import os, signal, sys
import floras
from floras.flower import FlorasStrategy
from floras.flower.arrays import GlobalModel
from flower_fakes import FakeGrid, zeros
from test_flower_budget import NODES, still, uplink

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

rounds, step = [], GlobalModel.step
def step_or_die(model, mean):
    rounds.append(1)
    return die() if len(rounds) == 2 else step(model, mean)
GlobalModel.step = step_or_die  # The last thing before the new model leaves the strategy.
strategy = FlorasStrategy(uplink(), ledger=sys.argv[1], fraction_evaluate=0.0)
strategy.start(FakeGrid(still, NODES), zeros(), num_rounds=5)
"""


def test_a_round_is_recorded_before_its_model_exists(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], env=environment, timeout=60, capture_output=True
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    strategy = FlorasStrategy(uplink(), ledger=path, fraction_evaluate=0.0)
    assert strategy.rounds == 2
    result = strategy.start(FakeGrid(still, NODES), zeros(), num_rounds=1)
    assert result.train_metrics_clientapp[1]["floras-round"] == 3
    assert result.train_metrics_clientapp[1]["floras-clients"] == [0, 1, 2, 3]


def test_nodes_keep_their_numbers_over_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "nodes.json"
    first = NodeNumbers(path).assign(NODES, NODES)
    assert sorted(first.values()) == [0, 1, 2, 3]
    again = NodeNumbers(path).assign([*reversed(NODES), 99], [*NODES, 99])
    assert again == {**first, 99: 4}
    assert json.loads(path.read_text())["nodes"][str(2**64 - 1)] == first[2**64 - 1]


def test_a_new_node_takes_a_disconnected_nodes_number() -> None:
    numbers = NodeNumbers(limit=3)
    numbers.assign([1, 2, 3], [1, 2, 3])
    assert numbers.assign([1, 3, 4], [1, 3, 4]) == {1: 0, 3: 2, 4: 1}


@pytest.mark.parametrize(
    "text", ["", "[]", '{"nodes": {"x": 1}}', '{"nodes": {"1": -1}}', '{"nodes": {"1": 0, "2": 0}}']
)
def test_a_damaged_file_of_numbers_is_rejected(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ledger.nodes.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"ledger.nodes.json must"):
        NodeNumbers(path)


def test_numbers_above_the_limit_are_rejected(tmp_path: Path) -> None:
    NodeNumbers(tmp_path / "n").assign(NODES, NODES)
    with pytest.raises(ValueError, match=r"must be below uplink.clients, 2"):
        NodeNumbers(tmp_path / "n", limit=2)


def test_a_failing_function_for_metrics_costs_nothing() -> None:
    def broken(records: Any, key: str) -> MetricRecord:
        raise KeyError("loss")

    strategy = FlorasStrategy(uplink(), fraction_evaluate=0.0, train_metrics_aggr_fn=broken)
    with pytest.raises(KeyError):
        strategy.start(FakeGrid(shifting(lambda _: 0.0), NODES), zeros(), num_rounds=1)
    assert strategy.rounds == 0
