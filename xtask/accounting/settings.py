"""Random settings over the whole allowed range, and the settings in which false guarantees were found."""

import math
import random

from evaluator import Setting

# The range of each quantity; all but the SNR are drawn uniformly on a logarithmic scale.
CLIP = (1e-3, 1e3)
UNUSED = (1, 1_000_000)
PER_ROUND = (1, 10_000)
CLIENTS_PER_ROUND = (1.0, 1e5)  # M/K
LEVEL = (0.02, 1000.0)
DELTA = (1e-15, 1e-2)
SMALLEST_DELTA = 1e-30
ROUNDS = (1, 100_000)
SNR_DB = (-30.0, 80.0)
LONGEST = 1 << 20
RICIAN = (0.01, 300.0)
NAKAGAMI = (0.5, 50.0)


def log_uniform(generator: random.Random, low: float, high: float) -> float:
    return math.exp(generator.uniform(math.log(low), math.log(high)))


def rounded(value: float, digits: int = 4) -> float:
    return float(f"{value:.{digits - 1}e}")


def within(value: float, limits: tuple[float, float]) -> float:
    return min(max(value, limits[0]), limits[1])


def typical_noise(receiver: str, unused: int) -> float:
    """About the noise of the unused sequences, in units of an update."""
    kind, _, level = receiver.partition("=")
    if kind == "paper":
        return float(unused)
    if kind == "mmse":
        return math.sqrt(0.12 * unused)
    c = float(level)
    tail = math.exp(-c * c / 2) / math.sqrt(2 * math.pi) / c - math.erfc(c / math.sqrt(2)) / 2
    return math.sqrt(unused * (math.erf(c / math.sqrt(2)) / c**2 + 2 * tail))


def draw_receiver(generator: random.Random) -> str:
    kind = generator.choices(["paper", "mmse", "clipped"], [25, 20, 55])[0]
    return f"clipped={rounded(log_uniform(generator, *LEVEL), 3)}" if kind == "clipped" else kind


def draw_fading(generator: random.Random) -> str:
    kind = generator.choices(["rayleigh", "none", "rician", "nakagami"], [35, 10, 20, 35])[0]
    if kind == "rician":
        return f"rician={rounded(log_uniform(generator, *RICIAN), 3)}"
    if kind == "nakagami":
        shape = NAKAGAMI[0] if generator.random() < 0.3 else log_uniform(generator, *NAKAGAMI)
        return f"nakagami={within(rounded(shape, 3), NAKAGAMI)}"
    return kind


def draw(generator: random.Random) -> Setting:
    """One setting. In three of five the clip norm is chosen so that epsilon is neither huge nor negligible."""
    receiver = draw_receiver(generator)
    per_round = round(log_uniform(generator, *PER_ROUND))
    unused = round(log_uniform(generator, *UNUSED))
    clients = per_round
    if generator.random() < 0.5:
        clients = math.ceil(per_round * log_uniform(generator, *CLIENTS_PER_ROUND))
    rounds = generator.choices([1, 10, 100, round(log_uniform(generator, *ROUNDS))], [40, 20, 20, 20])[0]
    delta = SMALLEST_DELTA if generator.random() < 0.05 else rounded(log_uniform(generator, *DELTA), 2)
    clip = log_uniform(generator, *CLIP)
    if generator.random() < 0.6:
        mu = log_uniform(generator, 0.03, 10.0)
        clip = within(mu * typical_noise(receiver, unused) / 2 / math.sqrt(rounds), CLIP)
    clip = rounded(clip)
    sequences = per_round + unused
    if generator.random() < 0.25:
        return Setting(clip, sequences, per_round, clients, rounds, delta, receiver)
    shortest = math.ceil(math.log2(sequences))
    length = min(1 << generator.randint(shortest, max(shortest, 20)), LONGEST)
    snr_db = generator.uniform(*SNR_DB)
    if generator.random() < 0.3:
        # Raw samples that hide something: mu of a round of about 0.03 to 10 over the square root of the rounds.
        mu = log_uniform(generator, 0.03, 10.0) / math.sqrt(rounds)
        snr_db = within(20 * math.log10(mu / (2 * clip)) - 10 * math.log10(length), SNR_DB)
    fading, modulation = draw_fading(generator), generator.choice(["real", "phase-corrected"])
    return Setting(
        clip, sequences, per_round, clients, rounds, delta, receiver, length, round(snr_db, 1), fading, modulation
    )


def draw_many(seed: int, count: int) -> list[Setting]:
    """The first `count` settings of a seed; setting number i does not depend on `count`."""
    return [draw(random.Random(f"floras accounting {seed} {number}")) for number in range(count)]


def nakagami(shape: float, snr_db: float, delta: float) -> Setting:
    return Setting(1.0, 21, 1, 1, 1, delta, "paper", 1024, snr_db, f"nakagami={shape}")


# Settings in which version 0.1 stated a guarantee that does not hold, by the fault that each showed.
FOUND = {
    "a table of the any-channel curve missed its fall near 0": [
        Setting(8.0, 39_321, 20, 20, 1, 1e-5, "clipped=30"),
        Setting(8.0, 39_321, 20, 200, 1000, 1e-5, "clipped=30"),
        Setting(1.0, 1_000_020, 20, 20, 1, 1e-5, "clipped=50"),
        Setting(1.0, 200_020, 20, 20, 1, 1e-5, "clipped=300"),
        Setting(63.3, 139_066, 20, 20, 1, 1e-5, "clipped=4"),
        Setting(12.0, 45_557, 20, 20, 1, 1e-5, "clipped=20"),
    ],
    "any-channel claimed amplification by sampling": [
        Setting(1.0, 40, 20, 200, 1, 1e-5, "clipped=1"),
        Setting(1.0, 40, 20, 200, 10, 1e-5, "clipped=1"),
        Setting(1.0, 40, 20, 200, 100, 1e-5, "clipped=1"),
        Setting(1.0, 1248, 1000, 100_000, 100, 1e-5, "clipped=2"),
        Setting(1.0, 40, 20, 2000, 1, 1e-5, "clipped=2"),
        Setting(1.0, 128, 20, 200, 100, 1e-5, "clipped=2"),
        Setting(0.5, 6, 5, 50, 1, 1e-3, "clipped=1"),
    ],
    "raw-signal was a Gauss rule, of one branch": [
        Setting(1.0, 30, 20, 20, 1, 1e-5, "paper", 32, 20.0),
        Setting(1.0, 40, 20, 20, 1, 1e-6, "paper", 64, 20.0),
        Setting(1.0, 40, 20, 20, 1, 1e-5, "clipped=1", 64, 20.0, "rayleigh", "phase-corrected"),
        Setting(0.1, 40, 20, 20, 1, 1e-5, "clipped=1", 64, -20.0),
        Setting(0.1, 40, 20, 20, 100, 1e-5, "clipped=1", 64, -20.0),
        Setting(0.1, 40, 20, 20, 1000, 1e-5, "clipped=1", 64, -20.0),
    ],
    "actual saturated at deep fades of Nakagami fading with m < 1": [
        nakagami(0.5, 50.0, 1e-6),
        nakagami(0.5, 30.0, 1e-5),
        nakagami(0.5, 70.0, 1e-6),
        nakagami(0.55, 30.0, 1e-5),
        nakagami(0.7, 30.0, 1e-5),
        Setting(1.0, 40, 20, 20, 1, 1e-5, "paper", 64, 60.0, "nakagami=0.5"),
        Setting(1.0, 40, 20, 20, 1, 1e-5, "clipped=1", 64, 60.0, "nakagami=0.5"),
    ],
    "integrals were cut too early for a tiny delta": [
        Setting(1.0, 25, 20, 20, 1, 1e-30, "paper"),
        Setting(1.0, 25, 20, 20, 1, 1e-30, "paper", 32, 0.0),
    ],
}


def found() -> list[Setting]:
    return [setting for settings in FOUND.values() for setting in settings]
