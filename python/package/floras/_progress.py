"""A progress bar for long work: tqdm's if it is installed, or a plain one on standard error."""

from __future__ import annotations

import sys
import time
import warnings
from types import TracebackType
from typing import Any

_WIDTH = 30
_EVERY_SECONDS = 0.1


def wanted(progress: object) -> bool:
    """Return whether to show a bar.

    Parameters
    ----------
    progress : object
        Whether it is asked for; ``None`` for a bar on a terminal only.

    Returns
    -------
    bool
        Whether to show it.
    """
    return bool(progress) if progress is not None else sys.stderr.isatty()


class Progress:
    """A bar that advances with every round."""

    def __init__(self, rounds: int) -> None:
        try:
            with warnings.catch_warnings():
                # Without ipywidgets tqdm falls back to text, which is fine here.
                warnings.simplefilter("ignore")
                from tqdm.auto import tqdm  # type: ignore[import-untyped]
        except ImportError:
            self._bar: Any = _Plain(rounds)
        else:
            self._bar = tqdm(total=rounds, unit="round", leave=False)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()

    def advance(self, metrics: dict[str, Any]) -> None:
        """Count a round, and show its accuracy if it was measured.

        Parameters
        ----------
        metrics : dict
            The metrics of the round.
        """
        accuracy = metrics.get("test_accuracy")
        if accuracy is not None:
            self._bar.set_postfix_str(f"accuracy {accuracy:.3f}", refresh=False)
        self._bar.update(1)


class _Plain:
    """The bar without tqdm, with the methods of tqdm's that are used here."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self._done = 0
        self._shown = 0.0
        self._note = ""

    def close(self) -> None:
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()

    def set_postfix_str(self, note: str, refresh: bool) -> None:
        self._note = f"  {note}"

    def update(self, rounds: int) -> None:
        self._done += rounds
        now = time.monotonic()
        if now - self._shown < _EVERY_SECONDS and self._done < self._rounds:
            return
        self._shown = now
        filled = _WIDTH * self._done // max(self._rounds, 1)
        bar = "█" * filled + "░" * (_WIDTH - filled)
        sys.stderr.write(f"\r{bar} {self._done}/{self._rounds} rounds{self._note}\033[K")
        sys.stderr.flush()
