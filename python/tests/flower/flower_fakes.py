"""A grid of Flower that calls a client app in this very process, and small things that the tests share."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity
from numpy.typing import NDArray

Handler = Callable[[Message, Context], Message]

TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1


class FakeGrid(Grid):
    """Delivers every message at once. A node without an answer (`None`) is one that never replies."""

    def __init__(self, answer: Callable[[Message, Context], Message | None], nodes: Iterable[int]) -> None:
        self.answer = answer
        self.nodes = list(nodes)
        self.sent: list[Message] = []

    def get_node_ids(self) -> list[int]:
        return list(self.nodes)

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        replies = []
        for message in messages:
            self.sent.append(message)
            reply = self.answer(message, context_of(message.metadata.dst_node_id))
            if reply is not None:
                replies.append(reply)
        return replies

    def set_run(self, run: Any) -> None:
        raise NotImplementedError

    @property
    def run(self) -> Any:
        raise NotImplementedError

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        raise NotImplementedError

    def get_nodes(self) -> Any:
        raise NotImplementedError

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        raise NotImplementedError

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        raise NotImplementedError


def context_of(node: int) -> Context:
    return Context(run_id=1, node_id=node, node_config={}, state=RecordDict(), run_config={})


def reply_with(
    message: Message, arrays: list[NDArray[Any]] | ArrayRecord | None, metrics: dict[str, Any] | None = None
) -> Message:
    """A reply with a model and metrics, as a client app writes it."""
    content = RecordDict()
    if arrays is not None:
        content["arrays"] = arrays if isinstance(arrays, ArrayRecord) else ArrayRecord(arrays)
    if metrics is not None:
        content["metrics"] = MetricRecord(metrics)
    return Message(content, reply_to=message)


def fail(message: Message, reason: str = "broken") -> Message:
    return Message(Error(code=0, reason=reason), reply_to=message)


def shifting(shift: Callable[[int], float]) -> Handler:
    """A client that adds a number, which depends on its node, to every floating-point value."""

    def answer(message: Message, context: Context) -> Message:
        arrays = message.content.array_records["arrays"].to_numpy_ndarrays()
        moved = [a + a.dtype.type(shift(context.node_id)) if a.dtype.kind == "f" else a for a in arrays]
        return reply_with(message, moved, {"num-examples": 1, "loss": float(context.node_id)})

    return answer


def app_of(train: Handler, mods: list[Any]) -> ClientApp:
    app = ClientApp(mods=mods)
    app.train()(train)
    return app


def train_message(
    arrays: list[NDArray[Any]], config: dict[str, Any] | None = None, kind: str = "train"
) -> Message:
    content = RecordDict({"arrays": ArrayRecord(arrays), "config": ConfigRecord(config or {})})
    return Message(content, dst_node_id=7, message_type=kind)


def zeros(size: int = 6) -> ArrayRecord:
    return ArrayRecord([np.zeros(size, np.float32)])
