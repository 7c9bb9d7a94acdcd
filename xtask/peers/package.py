"""A round from NumPy through the package `floras`. Prints one JSON object."""

import argparse
import json
import time

import numpy as np

import floras


def main():
    parser = argparse.ArgumentParser()
    for name in ("--per-round", "--sequences", "--length", "--dim"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--clip", type=float)
    parser.add_argument("--repeat", type=int, default=15)
    options = parser.parse_args()
    uplink = floras.Uplink(sequences=options.sequences, length=options.length, clip=options.clip)
    shape = (options.per_round, options.dim)
    deltas = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
    uplink.aggregate(deltas, seed=1)
    times = []
    for number in range(options.repeat):
        start = time.perf_counter()
        uplink.aggregate(deltas, seed=1, round=number + 2)
        times.append(time.perf_counter() - start)
    median = sorted(times)[len(times) // 2]
    print(json.dumps({"seconds_per_round": median, "version": floras.__version__}))


if __name__ == "__main__":
    main()
