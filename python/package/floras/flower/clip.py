"""A Flower mod that clips an update on the device: `x ← x·min(1, C/‖x‖)` with `x = w - w_k`.

The norm `C` is fixed in the device's own code, and no message of the server can raise it. The bound on one
client's influence, on which every privacy statement rests, therefore does not depend on the server.

The device sends the clipped **difference** and not its model. A difference that a server computes from two
models in single precision has an error of about `6e-8·‖w‖`, and could exceed `C`.
"""

from collections.abc import Callable

from flwr.app import ArrayRecord, ConfigRecord, Context, Error, Message, RecordDict
from flwr.clientapp.typing import ClientAppCallable, Mod
from flwr.common.constant import ErrorCode

import floras
from floras.flower.arrays import GlobalModel

FORM_KEY = "floras-form"
"""Key under which the server announces that it accepts differences, and the device that it sends one."""
DIFFERENCE = "difference"
MARK = "floras"
"""The name of the record in a reply that carries the device's mark."""


def clip_mod(norm: float) -> Mod:
    """Return a mod for `ClientApp(mods=[...])` that clips a client's update.

    It acts on messages of the type `train`, expects one record of arrays in the message and in the reply, and
    needs a `FlorasStrategy` on the server. It replies to any other strategy with an error, because that would
    use the difference as a model. Put it first in the list of mods, so that it changes the reply last.

    Parameters
    ----------
    norm : float
        Largest Euclidean norm of an update, between 1e-30 and 1e30.

    Returns
    -------
    Mod
        The mod.

    Raises
    ------
    TypeError
        If ``norm`` is not a number.
    ValueError
        If ``norm`` is out of its range.

    Examples
    --------
    >>> mod = clip_mod(1.0)
    >>> clip_mod(0.0)
    Traceback (most recent call last):
    ...
    ValueError: norm must be a number between 1e-30 and 1e30, not 0.0
    """
    if isinstance(norm, bool) or not isinstance(norm, (int, float)):
        raise TypeError(f"norm must be a number between 1e-30 and 1e30, not {norm!r}")
    if not 1e-30 <= norm <= 1e30:
        raise ValueError(f"norm must be a number between 1e-30 and 1e30, not {norm!r}")
    bound = float(norm)

    def clip(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        if message.metadata.message_type.split(".")[0] != "train":
            return call_next(message, context)
        return _train_and_clip(message, lambda: call_next(message, context), bound)

    return clip


def _train_and_clip(message: Message, train: Callable[[], Message], norm: float) -> Message:
    try:
        _check_server(message.content)
        # Read before the training, which may change the message.
        model = GlobalModel(_only_arrays(message.content)[1])
    except ValueError as error:
        return _failure(message, f"the message is not what clip_mod expects: {error}")
    reply = train()
    if reply.has_error():
        return reply
    try:
        reply.content = _clipped(reply.content, model, norm)
    except ValueError as error:
        return _failure(message, f"the reply cannot be clipped: {error}")
    return reply


def _clipped(content: RecordDict, model: GlobalModel, norm: float) -> RecordDict:
    key, arrays = _only_arrays(content)
    difference = floras.clip(model.difference(arrays), norm)
    clipped = RecordDict({**content, key: model.write(difference)})
    clipped[MARK] = ConfigRecord({FORM_KEY: DIFFERENCE})
    return clipped


def _check_server(content: RecordDict) -> None:
    if not any(record.get(FORM_KEY) == DIFFERENCE for record in content.config_records.values()):
        raise ValueError(
            "the server's strategy must be a floras.flower.FlorasStrategy, which takes clipped differences"
        )


def _only_arrays(content: RecordDict) -> tuple[str, ArrayRecord]:
    """The one record of arrays, with its name."""
    if len(content.array_records) != 1:
        raise ValueError(f"it must have exactly one record of arrays, not {len(content.array_records)}")
    return next(iter(content.array_records.items()))


def _failure(message: Message, reason: str) -> Message:
    return Message(Error(code=ErrorCode.MOD_FAILED_PRECONDITION, reason=reason), reply_to=message)
