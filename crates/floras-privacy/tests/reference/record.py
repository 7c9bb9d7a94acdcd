"""Writes and checks the recorded values beside this file; for normal.py, accounting.py and xtask/accounting/recorded.py."""

import importlib.metadata
import json
import math
import pathlib
import sys

SETTINGS = ["command", "kinds", "x", "mu", "a", "p", "rounds", "epsilon", "delta"]  # what an entry is known by
SHOWN = 20  # differences that are printed


def versions(*packages):
    return {package: importlib.metadata.version(package) for package in packages}


def describe(entry):
    return ", ".join(f"{name} = {entry[name]}" for name in SETTINGS if name in entry)


def differences(made, recorded, tolerance, where):
    """Numbers that differ by more than a relative `tolerance`, and anything else that differs at all."""
    if isinstance(made, dict) and isinstance(recorded, dict) and made.keys() == recorded.keys():
        for key in made:
            yield from differences(made[key], recorded[key], tolerance, f"{where}, {key}")
    elif isinstance(made, float) and isinstance(recorded, float):
        if not math.isclose(made, recorded, rel_tol=tolerance):
            yield f"{where}: recorded {recorded!r}, made {made!r}"
    elif made != recorded:
        yield f"{where}: recorded {json.dumps(recorded)}, made {json.dumps(made)}"


def all_differences(made, recorded, tolerance):
    """Of all lists and their entries, each with its own tolerance; versions may differ."""
    for name in made | recorded:
        one, other = made.get(name), recorded.get(name)
        if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            for entry, beside in zip(one, other):
                yield from differences(entry, beside, tolerance(beside), f"{name}, {describe(beside)}")
        elif name != "versions" and one != other:
            yield f"{name} is not the same"


def as_text(result):
    """JSON with one entry of a list on a line."""
    parts = []
    for key, value in result.items():
        if isinstance(value, list):
            entries = ",\n".join("  " + json.dumps(entry, allow_nan=False) for entry in value)
            parts.append(f" {json.dumps(key)}: [\n{entries}\n ]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(script, result, tolerance):
    """Writes the result beside the script, or with --check compares it with what is there, entry by entry."""
    file = pathlib.Path(script).with_suffix(".json")
    made = as_text(result)
    if "--check" not in sys.argv[1:]:
        file.write_text(made)
        return
    wrong = list(all_differences(json.loads(made), json.loads(file.read_text()), tolerance))
    print(f"{file.name}: {len(wrong) or 'no'} differences")
    for difference in wrong[:SHOWN] + ["…"] * (len(wrong) > SHOWN):
        print(f"  {difference}")
    sys.exit(1 if wrong else 0)
