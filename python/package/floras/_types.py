"""Names for types that several modules use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Features: TypeAlias = npt.NDArray[np.float32]
Labels: TypeAlias = npt.NDArray[np.int64]
Parameters: TypeAlias = npt.NDArray[np.float32]
Samples: TypeAlias = tuple[Features, Labels]
Path: TypeAlias = str | os.PathLike[str]
Experiment: TypeAlias = Mapping[str, Any] | Path
View: TypeAlias = Literal["raw-signal", "any-channel", "actual", "idealised", "published"] | str
"""Name of a view, with hyphens. Underscores are accepted too."""


def mapping(name: str, given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a mapping from keys to values as a dictionary.

    Parameters
    ----------
    name : str
        Name of the argument in the error message.
    given : mapping or None
        The argument.

    Returns
    -------
    dict or None
        A copy; ``None`` without an argument.

    Raises
    ------
    TypeError
        If it is not a mapping.
    """
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"{name} must be a mapping from keys to values, not {type(given).__name__}")
    return None if given is None else dict(given)
