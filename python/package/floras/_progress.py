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
        Whether it is asked for; ``None`` for a bar on a terminal, and in a notebook with tqdm.

    Returns
    -------
    bool
        Whether to show it.
    """
    if progress is not None:
        return bool(progress)
    # The plain bar would fill the output of a notebook.
    return sys.stderr.isatty() or (_is_notebook() and _tqdm() is not None)


def _is_notebook() -> bool:
    """Whether this is a kernel of IPython, as in Jupyter."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


def _tqdm() -> Any:
    """The bar of tqdm; ``None`` if tqdm is not installed."""
    try:
        with warnings.catch_warnings():
            # Without ipywidgets tqdm falls back to text, which is fine here.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm  # type: ignore[import-untyped]
    except ImportError:
        return None
    return tqdm


class Progress:
    """A bar that advances with every round."""

    def __init__(self, rounds: int) -> None:
        tqdm = _tqdm()
        self._bar: Any = _Plain(rounds) if tqdm is None else tqdm(total=rounds, unit="round", leave=False)
        self._points = ""
        self._accuracy = ""

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
            self._accuracy = f"accuracy {100 * accuracy:.1f} %"
            self._note(refresh=False)
        self._bar.update(1)

    def skip(self, rounds: int) -> None:
        """Count rounds that were done elsewhere.

        Parameters
        ----------
        rounds : int
            Their number.
        """
        self._bar.update(rounds)

    def points(self, done: int, points: int) -> None:
        """Show how many points of a sweep are done.

        Parameters
        ----------
        done, points : int
            Number of points that are done, and of all points.
        """
        self._points = f"{done} of {points} points"
        self._note(refresh=True)

    def _note(self, refresh: bool) -> None:
        note = ", ".join(part for part in (self._points, self._accuracy) if part)
        self._bar.set_postfix_str(note, refresh=refresh)


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
        if refresh:
            self._show()

    def update(self, rounds: int) -> None:
        self._done = min(self._done + rounds, self._rounds)
        if time.monotonic() - self._shown >= _EVERY_SECONDS or self._done == self._rounds:
            self._show()

    def _show(self) -> None:
        self._shown = time.monotonic()
        filled = _WIDTH * self._done // max(self._rounds, 1)
        bar = "█" * filled + "░" * (_WIDTH - filled)
        sys.stderr.write(f"\r{bar} {self._done}/{self._rounds} rounds{self._note}\033[K")
        sys.stderr.flush()
