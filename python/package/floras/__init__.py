"""Private federated learning over the air.

Many clients send their updates at the same moment over the same radio channel, so that the air itself adds
them up. ``floras`` simulates that, trains with it, and says what it gives away, and to whom.

>>> import floras
>>> uplink = floras.Uplink("floras", sequences=25, length=32, snr_db=20.0, clip=1.0)
>>> run = floras.run("quick", trials=1, rounds=2)
>>> run.metrics["round"].tolist()
[1, 2]
"""

from __future__ import annotations

from floras import privacy
from floras._core import Aggregate, Channel, Ledger, Uplink, __version__, clip, presets
from floras.data import Digits, Federated, federate, load_digits20
from floras.results import Run, Sweep, experiment, run
from floras.sweeps import sweep

__all__ = [
    "Aggregate",
    "Channel",
    "Digits",
    "Federated",
    "Ledger",
    "Run",
    "Sweep",
    "Uplink",
    "__version__",
    "clip",
    "experiment",
    "federate",
    "load_digits20",
    "presets",
    "privacy",
    "run",
    "sweep",
]
