"""What the tests share."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from support import ROOT


@pytest.fixture(scope="session", autouse=True)
def sigint() -> Iterator[None]:
    """Interrupts reach the tests, also if the parent ignores SIGINT, as a shell does for background jobs.

    A subprocess does not inherit Python's handler: it starts with the default action.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def program() -> Callable[..., str]:
    """The program `floras`, which `FLORAS_PROGRAM` names: what it prints on standard output."""
    path = os.environ.get("FLORAS_PROGRAM") or shutil.which("floras", path=ROOT / "target" / "release")
    if path is None:
        pytest.skip("the program is not built; FLORAS_PROGRAM names it")

    def run(*arguments: str | Path) -> str:
        command = [path, *map(str, arguments)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    return run


@pytest.fixture
def deltas() -> npt.NDArray[np.float32]:
    """Updates of six clients."""
    return np.random.default_rng(1).normal(size=(6, 5000)).astype(np.float32)
