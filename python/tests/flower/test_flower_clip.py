"""The client mod: a device clips by itself, whatever the server says."""

from typing import Any

import numpy as np
import pytest
from flower_fakes import FakeGrid, app_of, context_of, fail, reply_with, shifting, train_message, zeros
from flwr.app import Array, ArrayRecord, Context, Message
from flwr.serverapp.strategy import FedAvg

import floras
from floras.flower import FlorasStrategy, clip_mod
from floras.flower.clip import DIFFERENCE, FORM_KEY

ANNOUNCED = {FORM_KEY: DIFFERENCE}


def sent_by(train: Any, model: list[Any], norm: float = 1.0, config: dict[str, Any] | None = None) -> Message:
    message = train_message(model, ANNOUNCED if config is None else config)
    return app_of(train, [clip_mod(norm)])(message, context_of(7))


def norm_of(record: ArrayRecord) -> float:
    return float(np.sqrt(sum((array.astype(np.float64) ** 2).sum() for array in record.to_numpy_ndarrays())))


@pytest.mark.parametrize("size", [1, 3, 4010])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e8])
def test_a_huge_update_is_clipped_on_the_device(size: int, scale: float) -> None:
    """Also where the model is so large that a difference of two models is off by more than the norm."""
    random = np.random.default_rng(size)
    model = (scale * random.normal(size=size)).astype(np.float32)

    def train(message: Message, context: Context) -> Message:
        return reply_with(message, [model + np.float32(1e9) * random.normal(size=size).astype(np.float32)])

    for norm in (1e-3, 1.0, 7.3):
        length = norm_of(sent_by(train, [model], norm).content.array_records["arrays"])
        assert length <= norm
        assert length == pytest.approx(norm, rel=1e-5)


def test_a_short_update_is_sent_as_it_is() -> None:
    model = [np.ones((2, 3), np.float32), np.array(5), np.zeros(2)]

    def train(message: Message, context: Context) -> Message:
        return reply_with(
            message, [model[0] - np.float32(0.25), np.array(6), model[2] + 0.125], {"num-examples": 3}
        )

    content = sent_by(train, model).content
    assert list(content.array_records["arrays"]) == ["0", "2"], "integers are not sent"
    first, last = content.array_records["arrays"].to_numpy_ndarrays()
    assert (first.dtype, last.dtype) == (np.float32, np.float32)
    assert first.tolist() == [[0.25] * 3] * 2
    assert last.tolist() == [-0.125] * 2
    assert content.metric_records["metrics"]["num-examples"] == 3


def test_no_message_of_the_server_raises_the_norm() -> None:
    config = {**ANNOUNCED, "clip": 1e9, "norm": 1e9, "clipping_norm": 1e9, "floras-clip": 1e9}
    content = sent_by(shifting(lambda _: 1e6), [np.zeros(6, np.float32)], config=config).content
    assert norm_of(content.array_records["arrays"]) <= 1.0


def test_a_client_that_changes_the_message_is_clipped() -> None:
    def train(message: Message, context: Context) -> Message:
        message.content["arrays"] = ArrayRecord([np.full(6, 1e6, np.float32)])
        return reply_with(message, [np.full(6, 1e6, np.float32)])

    assert norm_of(
        sent_by(train, [np.zeros(6, np.float32)]).content.array_records["arrays"]
    ) == pytest.approx(1.0)


def test_the_strategy_reads_differences_and_models() -> None:
    huge = app_of(shifting(lambda _: 1e6), [clip_mod(1.0)])

    def answer(message: Message, context: Context) -> Message:
        return huge(message, context) if context.node_id == 1 else shifting(lambda _: 0.1)(message, context)

    strategy = FlorasStrategy(floras.Uplink("ideal"), fraction_evaluate=0.0)
    result = strategy.start(FakeGrid(answer, [1, 2]), zeros(4), num_rounds=1)
    assert result.arrays.to_numpy_ndarrays()[0].tolist() == pytest.approx([(0.5 + 0.1) / 2] * 4)


def test_the_uplink_clips_those_who_do_not() -> None:
    strategy = FlorasStrategy(floras.Uplink("ideal", clip=1.0), fraction_evaluate=0.0)
    result = strategy.start(FakeGrid(shifting(lambda _: 1e6), [1, 2]), zeros(4), num_rounds=1)
    assert result.arrays.to_numpy_ndarrays()[0].tolist() == pytest.approx([0.5] * 4)


def test_another_strategy_gets_an_error() -> None:
    app = app_of(shifting(lambda _: 1.0), [clip_mod(1.0)])
    grid = FakeGrid(app, [1, 2])
    replies = grid.send_and_receive(
        FedAvg().configure_train(1, zeros(), train_message([]).content["config"], grid)
    )
    for reply in replies:
        assert "must be a floras.flower.FlorasStrategy" in reply.error.reason


def test_other_messages_pass_through() -> None:
    app = app_of(shifting(lambda _: 1.0), [clip_mod(1.0)])
    app.evaluate(mods=[])(lambda message, context: reply_with(message, None, {"loss": 1.0}))
    reply = app(train_message([np.zeros(2)], kind="evaluate"), context_of(7))
    assert reply.content.metric_records["metrics"]["loss"] == 1.0


def test_a_named_training_is_clipped_too() -> None:
    app = app_of(shifting(lambda _: 1.0), [clip_mod(1.0)])
    app.train("twice")(shifting(lambda _: 1e6))
    reply = app(train_message([np.zeros(6, np.float32)], ANNOUNCED, "train.twice"), context_of(7))
    assert norm_of(reply.content.array_records["arrays"]) <= 1.0


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ([np.zeros(5, np.float32)], "must have the shape"),
        (None, "exactly one record of arrays, not 0"),
        (ArrayRecord({"other": Array(np.zeros(6, np.float32))}), "lacks the arrays"),
    ],
)
def test_what_cannot_be_clipped_is_not_sent(arrays: Any, text: str) -> None:
    reply = sent_by(lambda message, context: reply_with(message, arrays), [np.zeros(6, np.float32)])
    assert reply.has_error()
    assert text in reply.error.reason


def test_an_error_of_the_client_is_handed_on() -> None:
    reply = sent_by(lambda message, context: fail(message, "no data"), [np.zeros(6, np.float32)])
    assert reply.error.reason == "no data"


@pytest.mark.parametrize("norm", [0, -1.0, float("nan"), float("inf")])
def test_a_norm_that_is_none_is_refused(norm: float) -> None:
    with pytest.raises(ValueError, match="norm must be a number between 1e-30 and 1e30, not"):
        clip_mod(norm)


@pytest.mark.parametrize("norm", ["1", None, True])
def test_a_norm_that_is_no_number_is_refused(norm: Any) -> None:
    with pytest.raises(TypeError, match="norm must be a number between 1e-30 and 1e30, not"):
        clip_mod(norm)


def test_a_pytorch_client_works() -> None:
    torch = pytest.importorskip("torch")
    network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2))

    def train(message: Message, context: Context) -> Message:
        state = message.content.array_records["arrays"].to_torch_state_dict()
        changed = {key: value + 1 for key, value in state.items()}
        return reply_with(message, ArrayRecord(changed), {"num-examples": 1})

    app = app_of(train, [clip_mod(1.0)])
    strategy = FlorasStrategy(floras.Uplink("ideal"), fraction_evaluate=0.0)
    result = strategy.start(FakeGrid(app, [1, 2]), ArrayRecord(network.state_dict()), num_rounds=1)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    after = result.arrays.to_torch_state_dict()
    network.load_state_dict(after)
    assert after["1.num_batches_tracked"] == before["1.num_batches_tracked"]
    moved = torch.cat([(after[k] - before[k]).flatten() for k in before if before[k].is_floating_point()])
    assert float(moved.double().norm()) == pytest.approx(1.0, rel=1e-4)
    assert {key: value.dtype for key, value in after.items()} == {
        key: value.dtype for key, value in before.items()
    }
