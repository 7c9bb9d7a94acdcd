"""Names for types that several modules use."""

from __future__ import annotations

import os
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Features: TypeAlias = npt.NDArray[np.float32]
Labels: TypeAlias = npt.NDArray[np.int64]
Parameters: TypeAlias = npt.NDArray[np.float32]
Samples: TypeAlias = tuple[Features, Labels]
Path: TypeAlias = str | os.PathLike[str]
Experiment: TypeAlias = dict[str, Any] | Path
View: TypeAlias = Literal["raw-signal", "any-channel", "actual", "idealised", "published"] | str
"""Name of a view, with hyphens. Underscores are accepted too."""
