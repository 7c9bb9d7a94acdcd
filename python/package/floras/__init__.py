"""Private federated learning over the air.

Many clients send their updates at the same time over the same radio channel, and the channel adds them up.
``floras`` simulates this, trains with it, and reports what it leaks to which adversary.

>>> import floras
>>> uplink = floras.Uplink("floras", sequences=25, length=32, snr_db=20.0, clip=1.0)
>>> run = floras.run("quick", trials=1, rounds=2)
>>> run.metrics["round"].tolist()
[1, 2]
"""

from __future__ import annotations

from floras import privacy
from floras._core import Aggregate, Channel, Ledger, Uplink, __version__, clip, presets
from floras.comparisons import ComparedRun, Comparison, compare
from floras.data import Digits, Federated, federate, load_digits20
from floras.own import Model
from floras.reports import Audit, AuditedView, audit, report
from floras.results import Estimate, Final, Run, Sweep, TrialResult, experiment, run
from floras.statements import (
    VIEWS,
    Account,
    ByView,
    Calibration,
    Composition,
    Privacy,
    Statement,
    Views,
    WorstClient,
)
from floras.sweeps import sweep

__all__ = [
    "VIEWS",
    "Account",
    "Aggregate",
    "Audit",
    "AuditedView",
    "ByView",
    "Calibration",
    "Channel",
    "ComparedRun",
    "Comparison",
    "Composition",
    "Digits",
    "Estimate",
    "Federated",
    "Final",
    "Ledger",
    "Model",
    "Privacy",
    "Run",
    "Statement",
    "Sweep",
    "TrialResult",
    "Uplink",
    "Views",
    "WorstClient",
    "__version__",
    "audit",
    "clip",
    "compare",
    "experiment",
    "federate",
    "load_digits20",
    "presets",
    "privacy",
    "report",
    "run",
    "sweep",
]
