#!/usr/bin/env python3
"""Reference values for the normal distribution and the Gaussian mechanism, by mpmath to 50 digits and more.

Written from the formulas and not from the Rust code. Arguments are exactly the doubles that stand in the file;
values are rounded to the nearest double. One run takes a second or two.

    python3 -m pip install mpmath==1.4.1
    python3 crates/floras-privacy/tests/reference/normal.py            write normal.json beside this file
    python3 crates/floras-privacy/tests/reference/normal.py --check    exit with 1 if normal.json differs
"""

from mpmath import mp, mpf

import record

ABOUT = (
    "normal: Phi(x), ln Phi(x) and the Mills ratio Phi(-x)/phi(x); null where a double would overflow or lose digits. "
    "delta: delta_G(epsilon; mu) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), where at least 1e-290. "
    "epsilon: the epsilon >= 0 with delta_G(epsilon; mu) = delta, where there is one."
)
SMALL = [1e-300, 1e-20, 1e-9, 1e-4, 0.01, 0.1, 0.25, 0.3, 0.5, 0.75, 1.0, 1.19, 1.2, 1.5, 1.76, 1.77, 2.0, 2.5]
LARGE = [3.0, 3.7, 4.0, 4.1, 5.0, 6.0, 7.0, 8.0, 8.4, 8.5, 10.0, 12.5, 15.3, 20.0, 24.999, 25.0, 25.001, 26.0]
HUGE = [30.0, 35.7, 37.5, 38.0, 39.0, 40.0, 50.0, 100.0, 141.5, 1000.0, 1e4]
MUS = [1e-6, 1e-3, 0.03, 0.2, 0.249, 0.251, 0.5, 1.0, 3.0, 10.0, 50.0, 150.0]
EPSILONS = [-3.0, -0.5, 0.0, 1e-6, 1e-3, 0.1, 1.0, 5.0, 30.0, 100.0, 1000.0, 2500.0, 1e4, 15000.0]
LEAST = mpf("1e-290")
INVERSE_MUS = [1e-3, 0.1, 1.0, 5.0, 100.0]
INVERSE_DELTAS = [1e-15, 1e-10, 1e-5, 1e-2, 0.3]

# A value survives as a double with all its digits if it is within these.
SMALLEST, LARGEST = mpf(2) ** -1022, mpf(2) ** 1023


def as_double(value):
    return float(value) if value == 0 or SMALLEST <= abs(value) <= LARGEST else None


def cdf(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def normal(x):
    x = mpf(x)
    log_cdf = mp.log1p(-cdf(-x)) if x > 0 else mp.log(cdf(x))
    return {
        "x": float(x),
        "cdf": as_double(cdf(x)),
        "log_cdf": as_double(log_cdf),
        "mills_ratio": as_double(cdf(-x) / mp.npdf(x)),
    }


def delta(epsilon, mu):
    epsilon, mu = mpf(epsilon), mpf(mu)
    return cdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * cdf(-mu / 2 - epsilon / mu)


def epsilon(target, mu):
    """By bisection: the curve falls from delta(0) to 0, and P(loss > epsilon) bounds it from above."""
    target, mu = mpf(target), mpf(mu)
    low, high = mpf(0), mu**2 / 2 + mu * mp.sqrt(2 * mp.log(1 / target))
    assert delta(high, mu) <= target
    while high - low > high * mpf(10) ** -25:
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle, mu) > target else (low, middle)
    return high


def make():
    xs = sorted({sign * x for x in [0.0] + SMALL + LARGE + HUGE for sign in (-1, 1)})
    with mp.workdps(50):
        table = [normal(x) for x in xs]
    # Differences of nearly equal tails: the digits that cancel are bought beforehand.
    with mp.workdps(400):
        curve = [(mu, eps, delta(eps, mu)) for mu in MUS for eps in EPSILONS]
    with mp.workdps(100):
        for mu, eps, value in curve:
            assert value < LEAST or mp.almosteq(delta(eps, mu), value, mpf(10) ** -40)
        pairs = [(mu, target) for mu in INVERSE_MUS for target in INVERSE_DELTAS if delta(0, mu) > target]
        inverse = [{"mu": mu, "delta": target, "epsilon": float(epsilon(target, mu))} for mu, target in pairs]
    return {
        "about": ABOUT,
        "versions": record.versions("mpmath"),
        "normal": table,
        "delta": [{"mu": mu, "epsilon": eps, "delta": float(v)} for mu, eps, v in curve if v >= LEAST],
        "epsilon": inverse,
    }


if __name__ == "__main__":
    record.main(__file__, make(), tolerance=lambda entry: 1e-15)
