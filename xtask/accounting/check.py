#!/usr/bin/env python3
"""Compares what `floras account` states with the independent evaluator, in random settings.

    python3 xtask/accounting/check.py PROGRAM --random 500 [--seed 1] [--found]

For each setting and view with `"guarantee": true` it checks that

    epsilon, participation_known and in_every_round are not below the evaluator's lower bound,
    epsilon_lower is not above the evaluator's upper bound,
    an epsilon that is not stated for being too large is at least LARGE_ENOUGH,
    idealised <= any_channel <= simple_bound.

Exit code 1 if any of these fails. `--found` checks the settings in which false guarantees were found before, first.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small vectors: threads only wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from evaluator import LARGEST_EPSILON, Bounds, Setting, evaluate  # noqa: E402
from settings import draw_many, found  # noqa: E402

FIELDS = ("epsilon", "participation_known", "in_every_round")
LARGE_ENOUGH = 1e4  # an epsilon may be left out as too large if it is at least this
LOOSE = 1.5  # an epsilon that exceeds the true one by this factor is printed, but is no failure
NEGLIGIBLE = 1e-3  # smaller epsilons do not enter the table of ratios
ORDER_ERROR = 1e-6
TIME_LIMIT = 300.0  # seconds for one call of the program


def command(program: str, setting: Setting) -> list[str]:
    return [program, "account", *setting.flags(), "--json"]


def account(program: str, setting: Setting) -> dict | str:
    """The JSON that the program prints, or why there is none."""
    try:
        done = subprocess.run(command(program, setting), capture_output=True, text=True, timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        return f"no answer in {TIME_LIMIT:.0f} s"
    if done.returncode != 0:
        return f"exit code {done.returncode}: {done.stderr.strip()}"
    return json.loads(done.stdout)


def check_view(name: str, view: dict, truth: dict[str, Bounds]) -> list[str]:
    """What is wrong with one view."""
    wrong = []
    for field in FIELDS:
        if field not in truth or field not in view:
            continue
        stated, bounds = view[field], truth[field]
        if stated is None:
            if view.get("epsilon_above") is not None and bounds.upper is not None and bounds.upper < LARGE_ENOUGH:
                wrong.append(f"{name}.{field} is not stated, as too large; true <= {bounds.upper:.6g}")
        elif stated < bounds.lower:
            wrong.append(f"{name}.{field} = {stated:.6g}; true >= {bounds.lower:.6g}")
    lower, upper = view.get("epsilon_lower"), truth["epsilon"].upper
    if lower is not None and upper is not None and lower > upper:
        wrong.append(f"{name}.epsilon_lower = {lower:.6g}; true <= {upper:.6g}")
    return wrong


def loose(name: str, view: dict, truth: dict[str, Bounds]) -> list[str]:
    """What one view states that holds, but is far from the truth."""
    return [
        f"{name}.{field} = {view[field]:.6g}; true <= {bounds.upper:.6g}"
        for field, bounds in truth.items()
        if view.get(field) is not None
        and bounds.upper is not None
        and view[field] > LOOSE * bounds.upper + NEGLIGIBLE
    ]


def check_order(views: dict) -> list[str]:
    """What contradicts idealised <= any_channel <= simple_bound."""
    idealised, any_channel = views.get("idealised") or {}, views.get("any_channel") or {}
    chain = [
        ("idealised.epsilon", idealised.get("epsilon")),
        ("any_channel.epsilon", any_channel.get("epsilon")),
        ("any_channel.simple_bound", any_channel.get("simple_bound")),
    ]
    stated = [(name, value) for name, value in chain if value is not None]
    return [
        f"{name} = {value:.6g} > {other} = {larger:.6g}"
        for (name, value), (other, larger) in zip(stated, stated[1:])
        if value > larger * (1 + ORDER_ERROR) + ORDER_ERROR
    ]


class Ratios:
    """Stated epsilon over the evaluator's lower bound, by view and kind of setting."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], list[float]] = {}

    def add(self, setting: Setting, view: str, stated: dict, truth: dict[str, Bounds]) -> None:
        for field in FIELDS:
            number = stated.get(field)
            if field not in truth or number is None or not NEGLIGIBLE < truth[field].lower < LARGEST_EPSILON / 2:
                continue
            bounds = truth[field]
            value = bounds.lower if bounds.upper is None else (bounds.lower + bounds.upper) / 2
            rounds = "T = 1" if setting.rounds == 1 else "T > 1"
            kind = field if setting.per_round < setting.clients else "everyone"
            self.values.setdefault((view, f"{kind}, {rounds}"), []).append(number / value)

    def print(self) -> None:
        print(f"\n{'view':<12} {'field':<28} {'cases':>5} {'min':>8} {'median':>8} {'max':>8}   stated/evaluated")
        for (view, kind), ratios in sorted(self.values.items()):
            row = f"{min(ratios):>8.4f} {statistics.median(ratios):>8.4f} {max(ratios):>8.4g}"
            print(f"{view:<12} {kind:<28} {len(ratios):>5} {row}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare floras account with an independent evaluator.")
    parser.add_argument("program", help="the program floras")
    parser.add_argument("--random", type=int, default=0, help="number of random settings")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--found", action="store_true", help="check the settings of known faults, too")
    options = parser.parse_args()

    settings = (found() if options.found else []) + draw_many(options.seed, options.random)
    ratios, failures, refused, slow = Ratios(), 0, 0, (0.0, "")
    taken = {"program": 0.0, "evaluator": 0.0}
    for number, setting in enumerate(settings):
        shown = shlex.join(command("floras", setting))
        begin = time.monotonic()
        report = account(options.program, setting)
        middle = time.monotonic()
        taken["program"] += middle - begin
        slow = max(slow, (middle - begin, shown))
        if isinstance(report, str):
            refused += 1
            print(f"no account: {report}\n  {shown}", flush=True)
            continue
        truth = evaluate(setting)
        taken["evaluator"] += time.monotonic() - middle
        wrong, far = check_order(report["views"]), []
        for name, bounds in truth.items():
            view = report["views"].get(name)
            if view is not None and view["guarantee"]:
                wrong += check_view(name, view, bounds)
                far += loose(name, view, bounds)
                ratios.add(setting, name, view, bounds)
        failures += bool(wrong)
        if wrong:
            print("\n  ".join([f"FALSE: {shown}", *wrong]), flush=True)
        if far:
            print("\n  ".join([f"loose: {shown}", *far]), flush=True)
        if (number + 1) % 20 == 0:
            print(f"{number + 1} of {len(settings)} settings, {failures} with a false statement", flush=True)
    ratios.print()
    print(f"\n{len(settings)} settings: {failures} with a false statement, {refused} without an account")
    print(f"{taken['program']:.0f} s for the program, {taken['evaluator']:.0f} s for the evaluator")
    print(f"slowest account: {slow[0]:.1f} s\n  {slow[1]}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
