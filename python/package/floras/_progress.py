"""A bar for long work, on a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

_WIDTH = 30
_EVERY_SECONDS = 0.1


def wanted(progress: object) -> bool:
    """Whether to show a bar: if asked for, or on a terminal unless asked not to."""
    return bool(progress) if progress is not None else sys.stderr.isatty()


class Progress:
    """A bar on standard error that grows with every round."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self._done = 0
        self._shown = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()

    def advance(self, metrics: dict[str, Any]) -> None:
        """Count a round."""
        self._done += 1
        now = time.monotonic()
        if now - self._shown < _EVERY_SECONDS and self._done < self._rounds:
            return
        self._shown = now
        filled = _WIDTH * self._done // max(self._rounds, 1)
        bar = "█" * filled + "░" * (_WIDTH - filled)
        accuracy = metrics.get("test_accuracy")
        told = "" if accuracy is None else f"  accuracy {accuracy:.3f}"
        sys.stderr.write(f"\r{bar} {self._done}/{self._rounds} rounds{told}\033[K")
        sys.stderr.flush()
