"""The example on Flower's simulation engine: 20 clients on Ray, on this machine, through `flwr run`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flower_engines import EXAMPLE, Engine, engine, variant

import floras

TWENTY = ["--stream", "--federation-config", "num-supernodes=20 client-resources-num-cpus=1"]
UPLINK = {"sequences": 24, "length": 32, "modulation": "phase-corrected", "receiver": {"clipped": 2.0}}


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with engine(tmp_path_factory.mktemp("simulation")) as running:
        running.start_link("--simulation")
        yield running


def result_in(state: Path) -> Any:
    return json.loads((state / "result.json").read_text())


def test_the_example_learns_like_floras_run(simulation: Engine, tmp_path: Path) -> None:
    """One training in Flower is compared with 16 trials of `floras.run` by the test loss after 10 rounds.

    The app has the partition of trial 0. If both do the same thing, all 17 losses are draws from one
    distribution, over partitions, the order of samples, channels and noise. Then the one in Flower is within
    t·s·√(1 + 1/16) of the mean of the trials, with their standard deviation s, about 0.04, and t = 4.07, the
    99.9% point of Student's distribution with 15 degrees of freedom: about ±0.16. A sound program fails
    once in a thousand runs. An unsound one is caught: the loss would be 0.6 lower without noise, and 1.1
    higher with 30 sequences instead of 24.
    """
    simulation.run(EXAMPLE, *TWENTY, "--run-config", f"state='{tmp_path}' rounds=10")
    flower = result_in(tmp_path)
    assert [record["floras-answered"] for record in flower["train"].values()] == [20] * 10

    experiment = {
        "seed": 1,
        "clients": {"total": 20, "per_round": 20},
        "local": {"rate": 1.0},
        "uplink": UPLINK,
        "privacy": {"clip": 1.0},
    }
    program = floras.run(experiment, trials=16, rounds=10)
    last = program.metrics["round"] == 10
    losses = program.metrics["test_loss"][last]
    assert len(losses) == 16
    margin = 4.07 * losses.std(ddof=1) * np.sqrt(1 + 1 / 16)
    assert margin < 0.3, "the comparison would have no power"
    assert abs(flower["test"]["10"]["test-loss"] - losses.mean()) <= margin
    # The privacy of the same ten rounds is deterministic.
    for view in ("idealised", "actual", "any-channel"):
        stated = program.epsilon(view)
        assert flower["train"]["10"][f"floras-epsilon-{view}"] == pytest.approx(stated, rel=0.01), view


FRAIL_CLIENT = """
from flwr.clientapp import ClientApp
from floras.flower import clip_mod
from flower_digits import client_app, task

app = ClientApp(mods=[clip_mod(task.CLIP_NORM)])

@app.train()
def train(message, context):
    if context.node_config["partition-id"] == 3 and message.content["config"]["server-round"] == 2:
        raise RuntimeError("the battery is empty")
    return client_app.train(message, context)
"""


def test_a_failing_client_and_a_budget_on_ray(simulation: Engine, tmp_path: Path) -> None:
    ledger = floras.Ledger(floras.Uplink(clients=20, clip=1.0, **UPLINK))
    budget = (ledger.after(20, rounds=2) + ledger.after(20, rounds=3)) / 2
    app = variant(tmp_path, client=FRAIL_CLIENT)
    said = simulation.run(app, *TWENTY, "--run-config", f"state='{tmp_path}' rounds=5 budget={budget}")
    train = result_in(tmp_path)["train"]
    assert [train[number]["floras-answered"] for number in ("1", "2")] == [20, 19]
    assert [train[number]["floras-failed"] for number in ("1", "2")] == [0, 1]
    assert [train[number]["floras-unused-sequences"] for number in ("1", "2")] == [4, 4]
    assert "the battery is empty" in said
    # The sequence of the one that died does not count as unused: its pilot may have been heard.
    key = "floras-round-epsilon-any-channel"
    assert train["2"][key] >= train["1"][key]
    assert train["2"]["floras-epsilon-any-channel"] <= budget
    assert list(train) == ["1", "2", "3"]
    assert train["3"]["floras-stopped"] == 1
