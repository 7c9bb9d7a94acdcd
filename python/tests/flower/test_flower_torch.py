"""The example with PyTorch, its client and server in this process; skipped without PyTorch."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomllib
from flower_fakes import FakeGrid
from flwr.app import Context, Message, RecordDict

torch = pytest.importorskip("torch")

EXAMPLE = Path(__file__).parents[3] / "examples" / "flower-torch"


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setattr(sys, "path", [str(EXAMPLE), *sys.path])
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
    return project["tool"]["flwr"]["app"]["config"]


def test_the_example_learns(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    from flower_torch.client_app import app as client
    from flower_torch.server_app import app as server

    torch.set_num_threads(1)

    def context(node: int) -> Context:
        return Context(
            run_id=1,
            node_id=node,
            node_config={"partition-id": node},
            state=RecordDict(),
            run_config=config,
        )

    def answer(message: Message, _: Context) -> Message:
        return client(message, context(message.metadata.dst_node_id))

    server(FakeGrid(answer, range(config["clients"])), context(0))
    lines = capsys.readouterr().out.splitlines()
    accuracy = float(next(line for line in lines if line.startswith("test accuracy")).split()[2])
    # Guessing yields 10 %.
    assert accuracy > 70.0
    assert any(line.startswith("any-channel") for line in lines)


def test_a_state_survives_flattening() -> None:
    from floras.torch import flatten_state, state_delta, unflatten_state

    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).double()
    state = model.state_dict()
    vector = flatten_state(state)
    assert vector.dtype == np.float32
    assert vector.size == 12 + 4 + 4 * 4
    again = unflatten_state(vector, state)
    assert list(again) == list(state)
    for name, tensor in state.items():
        assert again[name].dtype == tensor.dtype
        torch.testing.assert_close(again[name], tensor, rtol=1e-6, atol=1e-7)
    moved = unflatten_state(vector - 1, state)
    np.testing.assert_allclose(state_delta(state, moved), 1.0, rtol=1e-6)
    with pytest.raises(ValueError, match=r"vector must have the shape \(32,\), not \(31,\)"):
        unflatten_state(vector[1:], state)


def test_a_difference_ignores_the_order_of_entries() -> None:
    from floras.torch import state_delta

    common = {"a": torch.ones(2), "b": torch.zeros(3)}
    assert state_delta(common, {"b": torch.zeros(3), "a": torch.ones(2)}).tolist() == [0.0] * 5


OTHER_STATES: list[tuple[dict[str, Any], str]] = [
    ({"a": torch.zeros(1)}, r"a must have the shape \(4,\) of common in trained, not \(1,\)"),
    ({"b": torch.zeros(4)}, "(a|b) must be in both states"),
    ({"a": torch.zeros(4), "b": torch.zeros(4)}, "b must be in both states, not only in trained"),
    ({}, "a must be in both states, not only in common"),
    ({"a": torch.zeros(4, dtype=torch.int64)}, "a must be floating-point in both states"),
]


@pytest.mark.parametrize(("trained", "words"), OTHER_STATES)
def test_a_difference_needs_equal_entries(trained: dict[str, Any], words: str) -> None:
    from floras.torch import state_delta

    with pytest.raises(ValueError, match=words):
        state_delta({"a": torch.ones(4)}, trained)
