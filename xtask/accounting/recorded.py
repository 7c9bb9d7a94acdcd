#!/usr/bin/env python3
"""Reference bounds for diverse settings, by the independent evaluator in this directory. One run takes some minutes.

    python3 xtask/accounting/recorded.py            write crates/floras-sim/tests/reference/random.json
    python3 xtask/accounting/recorded.py --check    exit with 1 if random.json differs
"""

import dataclasses
import os
import pathlib
import shlex
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

CRATES = pathlib.Path(__file__).resolve().parents[2] / "crates"
sys.path.append(str(CRATES / "floras-privacy/tests/reference"))

import record  # noqa: E402
from evaluator import Bounds, Setting, evaluate  # noqa: E402
from settings import FOUND, draw_many  # noqa: E402

ABOUT = (
    "setting: the flags of floras account, by the names of an experiment file. views: bounds on the true epsilon of each "
    "view, by the names of floras account --json; upper is null where only a lower bound is known. With sampling, "
    "epsilon is for a secret selection, but in any_channel for one that is known. The first cases are settings in which "
    "false guarantees were found, the others were drawn at random over the allowed range."
)
CASES = 40
PER_FAULT = 3  # cases of each known fault
SEED = 1
DRAWN = 400
INTERESTING = (1e-2, 1e4)  # a drawn case has an epsilon in this range


def features(setting: Setting) -> set[str]:
    """What a case adds to the collection."""
    receiver = setting.receiver.partition("=")
    kind = receiver[0]
    if receiver[2]:
        level = float(receiver[2])
        kind += " low" if level < 0.3 else " high" if level > 10 else ""
    rounds = min(len(str(setting.rounds)), 4)
    sampling = "sampled" if setting.per_round < setting.clients else "everyone"
    unused = "many unused" if setting.unused > 10_000 else "few unused" if setting.unused < 10 else "unused"
    delta = "tiny delta" if setting.delta < 1e-12 else "large delta" if setting.delta > 1e-4 else "delta"
    radio = "no radio"
    if setting.length is not None:
        radio = f"{setting.fading.partition('=')[0]} {setting.modulation}"
    return {f"{kind} {sampling}", f"{kind} {unused}", f"{sampling} {rounds}", radio, f"{kind} {delta}", f"{kind} {rounds}"}


def interesting(views: dict[str, dict[str, Bounds]]) -> bool:
    low, high = INTERESTING
    return any(low < bounds.lower < high for view in views.values() for bounds in view.values())


def entry(setting: Setting, views: dict[str, dict[str, Bounds]]) -> dict:
    plain = {name: value for name, value in dataclasses.asdict(setting).items() if value is not None}
    if setting.length is None:
        plain = {name: value for name, value in plain.items() if name not in ("fading", "modulation")}
    return {
        "command": shlex.join(["floras", "account", *setting.flags()]),
        "setting": plain,
        "views": {
            name: {field: dataclasses.asdict(bounds) for field, bounds in view.items()}
            for name, view in views.items()
        },
    }


def make() -> dict:
    """The cases of known faults, and then drawn ones, each of which has a feature that none had before."""
    entries = []
    seen: set[str] = set()
    for settings in FOUND.values():
        for setting in settings[:PER_FAULT]:
            entries.append(entry(setting, evaluate(setting)))
            seen |= features(setting)
    drawn = draw_many(SEED, DRAWN)
    while len(entries) < CASES and drawn:
        setting = max(drawn, key=lambda one: len(features(one) - seen))
        drawn.remove(setting)
        views = evaluate(setting)
        if interesting(views):
            entries.append(entry(setting, views))
            seen |= features(setting)
    return {"about": ABOUT, "versions": record.versions("numpy", "scipy"), "cases": entries}


if __name__ == "__main__":
    record.main(CRATES / "floras-sim/tests/reference/random.py", make(), tolerance=lambda _: 1e-3)
