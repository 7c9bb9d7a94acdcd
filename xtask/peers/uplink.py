"""The uplink in NumPy, single precision, as a careful user would write it. Prints one JSON object.

symbol   g @ X + nu * randn(d)
chip     Y = (A_used * h) @ X + s * randn(L, d), then v @ Y, with the pilot before it
"""

import argparse
import json
import time

import numpy as np


def symbol_round(rng, updates, gains, noise_std):
    parameters = updates.shape[1]
    noise = rng.standard_normal(parameters, dtype=np.float32)
    return gains @ updates + noise_std * noise


def chip_round(rng, updates, walsh, chip_noise_std):
    clients, parameters = updates.shape
    length, sequences = walsh.shape
    used = walsh[:, rng.permutation(sequences)[:clients]]
    channels = rng.standard_normal(clients, dtype=np.float32) * np.float32(0.5**0.5)
    pilot = used @ channels + chip_noise_std * rng.standard_normal(length, dtype=np.float32)
    projector = walsh @ (1 / (walsh.T @ pilot))
    received = (used * channels) @ updates
    received += chip_noise_std * rng.standard_normal((length, parameters), dtype=np.float32)
    return projector @ received


def hadamard(length):
    matrix = np.ones((1, 1), dtype=np.float32)
    while matrix.shape[0] < length:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix / np.float32(length**0.5)


def median_seconds(repeat, work):
    work()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def peak_bytes():
    """Largest memory of this process, on Linux; 0 elsewhere."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
    except OSError:
        return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("fidelity", choices=["symbol", "chip"])
    parser.add_argument("--per-round", type=int, default=20)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--dim", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()

    rng = np.random.default_rng(1)
    updates = rng.standard_normal((options.per_round, options.dim), dtype=np.float32)
    gains = rng.standard_normal(options.per_round, dtype=np.float32)
    walsh = hadamard(options.length)
    chip_noise_std = np.float32(0.1 / options.length**0.5)
    if options.fidelity == "symbol":
        seconds = median_seconds(options.repeat, lambda: symbol_round(rng, updates, gains, np.float32(0.3)))
    else:
        seconds = median_seconds(options.repeat, lambda: chip_round(rng, updates, walsh, chip_noise_std))
    print(json.dumps({"seconds_per_round": seconds, "peak_bytes": peak_bytes(), "version": np.__version__}))


if __name__ == "__main__":
    main()
