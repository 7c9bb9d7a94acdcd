"""Results that cannot be changed: mappings without assignment, and arrays that are read-only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import FrozenInstanceError
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np

Value = TypeVar("Value")
Class = TypeVar("Class")


def immutable(kind: type[Class]) -> type[Class]:
    """Refuse changes to a frozen dataclass with slots, also to attributes that it does not have.

    Up to Python 3.13, ``dataclass(frozen=True, slots=True)`` raises a meaningless `TypeError` for those.

    Parameters
    ----------
    kind : type
        The dataclass.

    Returns
    -------
    type
        The same class.
    """

    def refuse(self: object, name: str, *_: object) -> NoReturn:
        raise FrozenInstanceError(f"{name} cannot be changed: a {type(self).__name__} is frozen")

    kind.__setattr__ = refuse  # type: ignore[method-assign]
    kind.__delattr__ = refuse  # type: ignore[method-assign]
    return kind


class Frozen(Mapping[str, Value], Generic[Value]):
    """A mapping that cannot be changed. Its arrays are read-only.

    Examples
    --------
    >>> experiment = floras.run("quick", trials=1, rounds=1).experiment
    >>> experiment["uplink"]["snr_db"], experiment.to_dict()["rounds"]
    (20.0, 1)
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[str, Value]) -> None:
        self._entries: dict[str, Value] = {key: freeze(value) for key, value in entries.items()}

    def __getitem__(self, key: str) -> Value:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        return same(self, other) if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._entries!r})"

    # An array that is unpickled or copied can be written to again, unless it passes through __init__.
    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._entries,)

    def to_dict(self) -> dict[str, Any]:
        """Return a copy that can be changed.

        Returns
        -------
        dict
            Inner mappings are dictionaries, too, and tuples are lists.
        """
        return {key: _thawed(value) for key, value in self._entries.items()}


def freeze(value: Any) -> Any:
    """Return a value that cannot be changed.

    Parameters
    ----------
    value : object
        A value of a result. Arrays that can be written to become read-only themselves.

    Returns
    -------
    object
        Mappings as `Frozen`, lists as tuples, anything else as it is.
    """
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
        return value
    if isinstance(value, Frozen):
        return value
    if isinstance(value, Mapping):
        return Frozen(value)
    return tuple(freeze(item) for item in value) if isinstance(value, list) else value


def _thawed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, Mapping):
        return {key: _thawed(inner) for key, inner in value.items()}
    # A named tuple or a dataclass is a value of its own.
    return [_thawed(item) for item in value] if type(value) is tuple else value


def same(ours: object, theirs: object) -> bool:
    """Return whether two values are equal, also if they have arrays.

    Parameters
    ----------
    ours, theirs : object
        Values, mappings, tuples, lists and arrays. NaN in an array equals NaN.

    Returns
    -------
    bool
        Whether they are equal in all parts, with the same types and shapes of arrays.
    """
    if isinstance(ours, np.ndarray) or isinstance(theirs, np.ndarray):
        if not (isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray)):
            return False
        has_nan = np.issubdtype(ours.dtype, np.inexact)
        return ours.dtype == theirs.dtype and np.array_equal(ours, theirs, equal_nan=has_nan)
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, tuple | list) and isinstance(theirs, tuple | list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return bool(ours == theirs)
