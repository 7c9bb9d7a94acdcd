#!/usr/bin/env python3
"""Reference values for composition and subsampling, by the privacy loss distributions of Google's dp-accounting.

The curves are written from the formulas and not from the Rust code; discretisation (connect-the-dots) and
composition are the library's. Where a closed form is known, the library has to meet it here. One run takes
some minutes.

    python3 -m pip install dp-accounting==0.6.0 numpy==2.4.6 scipy==1.17.1
    python3 crates/floras-privacy/tests/reference/accounting.py            write accounting.json beside this file
    python3 crates/floras-privacy/tests/reference/accounting.py --check    exit with 1 if accounting.json differs
"""

import math

import numpy as np
from dp_accounting.pld import pld_pmf, privacy_loss_distribution
from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss
from scipy import optimize, special

import record

ABOUT = (
    "epsilon: the result of dp-accounting, an upper bound up to rounding; epsilon_coarse: the same with twice the "
    "grid; exact: the closed form, where there is one. "
    "gaussian: the Gaussian mechanism, mu = sensitivity / noise. "
    "subsampled_gaussian_add_remove: under Poisson sampling with probability p, when one is added or removed; "
    "epsilon is the larger of the two. "
    "subsampled_gaussian_replace_one: under sampling of a share p without replacement, when one is replaced, which "
    "moves the mean by mu; the curve is h(e) = p delta(ln(1 + (exp(e) - 1) / p)) for e >= 0 and "
    "1 - exp(e) + exp(e) h(-e) below. "
    "scale_mixture: the same for delta(e) = E[delta_G(e; a R)], R half-normal and independent in each round. "
    "mixed_replace_one and mixed_add_remove: rounds of several kinds, each with its mu or its a."
)

# Spacings of the grids of losses, fine enough that epsilon is good to 1e-5 or so: the error is a third of what
# epsilon_coarse differs by. Much finer grids are worse again, since the masses are second differences of the curve.
GAUSSIAN = {0.05: 1e-4, 0.5: 5e-4, 2.0: 2e-3}
REMOVE = {
    (0.5, 0.001): 1e-6, (0.5, 0.1): 1e-4, (0.5, 0.5): 5e-4,
    (2.0, 0.001): 2e-5, (2.0, 0.1): 5e-4, (2.0, 0.5): 2e-3,
}
ADD = {
    (0.5, 0.001): 1e-6, (0.5, 0.1): 1e-4, (0.5, 0.5): 5e-4,
    (2.0, 0.001): 1e-5, (2.0, 0.1): 5e-5, (2.0, 0.5): 2e-4,
}
# One round of adding ends just below the largest loss there is, and needs a closer look.
ADD_ONCE = {
    (0.5, 0.001): 1e-7, (0.5, 0.1): 1e-5, (0.5, 0.5): 5e-5,
    (2.0, 0.001): 5e-7, (2.0, 0.1): 5e-6, (2.0, 0.5): 2e-5,
}
REPLACE = REMOVE
MIXTURE = {
    (0.04, 1.0): 1e-4, (0.04, 0.5): 5e-5, (0.04, 0.1): 1e-5, (0.04, 0.01): 1e-6,
    (0.4, 1.0): 1e-3, (0.4, 0.5): 5e-4, (0.4, 0.1): 1e-4, (0.4, 0.01): 1e-4,
    (2.0, 1.0): 5e-3, (2.0, 0.5): 2e-3, (2.0, 0.1): 1e-3, (2.0, 0.01): 5e-4,
}
# Kinds of rounds, each with its mu or a, its p and its number of rounds, and a grid that is fine enough for all.
MIXED_REPLACE = [
    ([("mu", 0.5, 1.0, 10), ("mu", 0.05, 1.0, 1000)], 1e-4),
    ([("mu", 0.5, 0.1, 100), ("mu", 2.0, 0.1, 5)], 1e-4),
    ([("a", 0.4, 0.1, 70), ("a", 0.25, 0.05, 30)], 1e-4),
    ([("a", 0.4, 1.0, 2), ("a", 0.04, 0.5, 500)], 1e-4),
    ([("a", 0.4, 0.01, 1), ("mu", 0.5, 0.1, 50), ("a", 2.0, 0.01, 3)], 1e-4),
]
MIXED_ADD_REMOVE = [
    ([("mu", 0.5, 0.1, 100), ("mu", 2.0, 0.1, 5)], 1e-4),
    ([("mu", 0.5, 0.5, 8), ("mu", 0.5, 0.1, 40), ("mu", 2.0, 0.001, 20)], 1e-4),
]
NEGLIGIBLE = 1e-18  # mass beyond the grid


# One-round curves for epsilon >= 0


def mills_ratio(x):
    return math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2))


def gaussian_delta(epsilon, mu):
    """Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu), without large exponentials."""
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    density = np.exp(-(near**2) / 2) / math.sqrt(2 * math.pi)
    tails = density * (mills_ratio(np.maximum(near, 0)) - mills_ratio(far))
    return np.where(near < 0, special.ndtr(-near) - density * mills_ratio(far), tails)


def mixture_delta(epsilon, a, rounds=1):
    """E[delta_G(epsilon; a R)] with R ~ chi of `rounds` degrees of freedom: exact for all rounds together."""
    middle = math.sqrt(rounds - 1)
    ends = np.linspace(max(0, middle - 14), middle + 14, 401)
    nodes, weights = np.polynomial.legendre.leggauss(16)
    r = (ends[:-1, None] + np.diff(ends)[:, None] * (nodes + 1) / 2).ravel()
    log_scale = (rounds / 2 - 1) * math.log(2) + special.gammaln(rounds / 2)
    density = np.exp((rounds - 1) * np.log(r) - r**2 / 2 - log_scale)
    weights = density * (np.diff(ends)[:, None] * weights / 2).ravel()
    return float(weights @ gaussian_delta(epsilon, a * r))


def mixture_curve(points, a):
    """mixture_delta of one round at many increasing points, of which the first is 0.

    The loss is N(m^2/2, m^2) with m = a R, and R can be integrated out: its density is exp(l/2) K0(k |l|) / (pi a)
    with k^2 = 1/a^2 + 1/4. From it the curve is summed up from the far end, without any cancellation.
    """
    k = math.sqrt(1 / a**2 + 0.25)
    density = lambda l: np.exp((0.5 - k) * l) * special.k0e(k * l) / (math.pi * a)
    count = len(points)
    points = np.append(points, points[-1] + np.linspace(0, 60, 201)[1:] / (k - 0.5))
    gaps = np.diff(points)
    nodes, weights = np.polynomial.legendre.leggauss(10)
    nodes, weights = (nodes + 1) / 2, weights / 2
    # Over each gap, the integrals of exp(-l) f(l) and of (1 - exp(start - l)) f(l).
    beyond, within = np.zeros(len(gaps)), np.zeros(len(gaps))
    for node, weight in zip(nodes, weights):
        mass = weight * gaps * density(points[:-1] + node * gaps)
        beyond += np.exp(-points[:-1] - node * gaps) * mass
        within -= np.expm1(-node * gaps) * mass
    # The density has a logarithm at 0: a fourth power draws the nodes there.
    nodes, weights = np.polynomial.legendre.leggauss(40)
    nodes, weights = (nodes + 1) / 2, weights / 2
    mass = 4 * nodes**3 * weights * gaps[0] * density(gaps[0] * nodes**4)
    beyond[0] = np.exp(-gaps[0] * nodes**4) @ mass
    within[0] = -np.expm1(-gaps[0] * nodes**4) @ mass
    beyond = np.cumsum(beyond[::-1])[::-1]
    beyond = np.append(beyond[1:], 0) * np.exp(points[1:])
    return np.cumsum((within - np.expm1(-gaps) * beyond)[::-1])[::-1][:count]


# Subsampling


def before_sampling(epsilon, p):
    return np.log1p(np.expm1(epsilon) / p) if p < 1 else epsilon


def after_sampling(epsilon, p):
    return math.log1p(p * math.expm1(epsilon))


def add_delta(epsilon, mu, p):
    """The hockey-stick divergence of N(0, 1) from its mixture (1 - p) N(0, 1) + p N(mu, 1)."""
    rest = 1 - math.exp(epsilon) * (1 - p)
    return rest * float(gaussian_delta(epsilon + math.log(p / rest), mu)) if rest > 0 else 0.0


# Distributions of the loss


def connect_dots(lower, upper, deltas, grid):
    """The library's distribution that meets the curve at the multiples lower..upper of the grid."""
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(grid, lower, upper, deltas)


def symmetric_pmf(curve, p, grid):
    """Of the subsampled curve, the same in both directions."""
    upper = 1
    while p * curve(np.array([0, before_sampling(upper * grid, p)]))[1] > NEGLIGIBLE:
        upper = math.ceil(1.1 * upper)
    epsilons = grid * np.arange(upper + 1)
    above = p * curve(before_sampling(epsilons, p))
    lower = int(np.count_nonzero(np.exp(-epsilons) * above > NEGLIGIBLE))
    epsilons, below = epsilons[1:lower], above[1:lower]
    below = -np.expm1(-epsilons) + np.exp(-epsilons) * below
    return connect_dots(1 - lower, upper, np.append(below[::-1], above), grid)


def gaussian_pmf(mu, p, direction, grid, above_zero=False):
    """By the library's own curve. Without composition, what lies below zero plays no part."""
    loss = GaussianPrivacyLoss(
        1 / mu, sampling_prob=p, adjacency_type=direction, log_mass_truncation_bound=math.log(NEGLIGIBLE)
    )
    bounds = loss.connect_dots_bounds()
    lower = 0 if above_zero else math.floor(bounds.epsilon_lower / grid)
    upper = math.ceil(bounds.epsilon_upper / grid)
    return connect_dots(lower, upper, loss.get_delta_for_epsilon(grid * np.arange(lower, upper + 1)), grid)


def solve(curve, delta):
    """The epsilon at which the falling curve comes down to delta; 0 if it starts below."""
    if curve(0.0) <= delta:
        return 0.0
    high = 1e-3
    while curve(high) > delta:
        high *= 2
    return optimize.brentq(lambda epsilon: curve(epsilon) - delta, 0, high, xtol=1e-14, rtol=1e-12)


def composed(pmf, rounds):
    """The curve after this many rounds.

    The library's own inverse of it is not used: above 700 or so its exp(-loss) underflows, and what it returns is a
    quantile of the loss, which is larger.
    """
    return privacy_loss_distribution.PrivacyLossDistribution(pmf).self_compose(rounds).get_delta_for_epsilon


def composed_kinds(pmfs):
    """The curve after some rounds of each kind."""
    total = None
    for pmf, rounds in pmfs:
        kind = privacy_loss_distribution.PrivacyLossDistribution(pmf).self_compose(rounds)
        total = kind if total is None else total.compose(kind)
    return total.get_delta_for_epsilon


def account(make_pmf, grid, rounds, deltas, exact):
    """Entries for all rounds and deltas, by the grid and by one twice as coarse; `exact` gives None if not known."""
    fine, coarse = make_pmf(grid), make_pmf(2 * grid)
    for count in rounds:
        curve, coarse_curve = composed(fine, count), composed(coarse, count)
        for delta in deltas:
            epsilon, epsilon_coarse = solve(curve, delta), solve(coarse_curve, delta)
            known = exact(count, delta)
            assert math.isclose(epsilon, epsilon_coarse, rel_tol=1e-4), (grid, count, delta, epsilon, epsilon_coarse)
            assert known is None or math.isclose(epsilon, known, rel_tol=1e-4), (grid, count, delta, epsilon, known)
            yield {
                "rounds": count, "delta": delta, "grid": grid,
                "epsilon": epsilon, "epsilon_coarse": epsilon_coarse, "exact": known,
            }


# The lists


def gaussian(mu):
    make_pmf = lambda grid: gaussian_pmf(mu, 1.0, AdjacencyType.REMOVE, grid)
    exact = lambda rounds, delta: solve(lambda e: float(gaussian_delta(e, mu * math.sqrt(rounds))), delta)
    entries = account(make_pmf, GAUSSIAN[mu], [1, 10, 1000], [1e-5, 1e-9], exact)
    return [{"mu": mu} | entry for entry in entries]


def once(curve, p):
    """The closed form for one round of a subsampled curve."""
    return lambda rounds, delta: after_sampling(solve(curve, delta / p), p) if rounds == 1 else None


def add_remove(mu, p):
    make_pmf = lambda grid: gaussian_pmf(mu, p, AdjacencyType.REMOVE, grid)
    exact = once(lambda e: float(gaussian_delta(e, mu)), p)
    removals = list(account(make_pmf, REMOVE[mu, p], [1, 10, 1000], [1e-5], exact))
    make_pmf = lambda grid: gaussian_pmf(mu, p, AdjacencyType.ADD, grid, above_zero=True)
    exact = lambda rounds, delta: solve(lambda e: add_delta(e, mu, p), delta)
    additions = list(account(make_pmf, ADD_ONCE[mu, p], [1], [1e-5], exact))
    make_pmf = lambda grid: gaussian_pmf(mu, p, AdjacencyType.ADD, grid)
    additions += account(make_pmf, ADD[mu, p], [10, 1000], [1e-5], lambda rounds, delta: None)
    for remove, add in zip(removals, additions):
        settings = {"mu": mu, "p": p, "rounds": remove["rounds"], "delta": remove["delta"]}
        larger = max(remove["epsilon"], add["epsilon"])
        remove, add = ({key: entry[key] for key in entry if key not in settings} for entry in (remove, add))
        yield settings | {"epsilon": larger, "remove": remove, "add": add}


def replace_one(mu, p):
    make_pmf = lambda grid: symmetric_pmf(lambda points: gaussian_delta(points, mu), p, grid)
    exact = once(lambda e: float(gaussian_delta(e, mu)), p)
    entries = account(make_pmf, REPLACE[mu, p], [1, 10, 1000], [1e-5], exact)
    return [{"mu": mu, "p": p} | entry for entry in entries]


def scale_mixture(a, p):
    make_pmf = lambda grid: symmetric_pmf(lambda points: mixture_curve(points, a), p, grid)
    exact = once(lambda e: mixture_delta(e, a), p)
    if p == 1:
        exact = lambda rounds, delta: solve(lambda e: mixture_delta(e, a, rounds), delta)
    deltas = [1e-5, 1e-9] if a == 0.4 else [1e-5]
    entries = account(make_pmf, MIXTURE[a, p], [1, 10, 100, 1000], deltas, exact)
    return [{"a": a, "p": p} | entry for entry in entries]


def one_round(name):
    return {"mu": gaussian_delta, "a": mixture_curve}[name]


def mixed(kinds, grid, make_pmf, exact=lambda delta: None):
    """An entry for each delta, by the grid and by one twice as coarse."""
    curves = [composed_kinds([(make_pmf(kind, h), kind[3]) for kind in kinds]) for h in (grid, 2 * grid)]
    settings = [{name: value, "p": p, "rounds": rounds} for name, value, p, rounds in kinds]
    for delta in (1e-5, 1e-9):
        epsilon, epsilon_coarse = (solve(curve, delta) for curve in curves)
        known = exact(delta)
        assert math.isclose(epsilon, epsilon_coarse, rel_tol=1e-4), (kinds, delta, epsilon, epsilon_coarse)
        assert known is None or math.isclose(epsilon, known, rel_tol=1e-4), (kinds, delta, epsilon, known)
        yield {
            "kinds": settings, "delta": delta, "grid": grid,
            "epsilon": epsilon, "epsilon_coarse": epsilon_coarse, "exact": known,
        }


def mixed_replace_one(kinds, grid):
    def make_pmf(kind, grid):
        name, value, p, _ = kind
        return symmetric_pmf(lambda points: one_round(name)(points, value), p, grid)

    if any(name == "a" or p < 1 for name, _, p, _ in kinds):
        return mixed(kinds, grid, make_pmf)
    mu = math.sqrt(sum(rounds * mu**2 for _, mu, _, rounds in kinds))
    return mixed(kinds, grid, make_pmf, lambda delta: solve(lambda e: float(gaussian_delta(e, mu)), delta))


def mixed_add_remove(kinds, grid):
    def of(direction):
        return mixed(kinds, grid, lambda kind, grid: gaussian_pmf(kind[1], kind[2], direction, grid))

    for remove, add in zip(of(AdjacencyType.REMOVE), of(AdjacencyType.ADD)):
        yield max(remove, add, key=lambda entry: entry["epsilon"])


def check_curves():
    """The two forms of the mixture agree, and so do the library's two ways to the subsampled Gaussian."""
    for a in (0.04, 0.4, 2.0):
        points = a * np.arange(100.0)
        deltas = [mixture_delta(point, a) for point in points[:20]]
        assert np.allclose(mixture_curve(points, a)[:20], deltas, rtol=1e-12, atol=0)
    mechanism = privacy_loss_distribution.from_gaussian_mechanism(2.0, sampling_prob=0.1).self_compose(10)
    pmf = gaussian_pmf(0.5, 0.1, AdjacencyType.REMOVE, 1e-4)
    assert math.isclose(mechanism.get_epsilon_for_delta(1e-5), solve(composed(pmf, 10), 1e-5), rel_tol=1e-8)


def make():
    check_curves()
    return {
        "about": ABOUT,
        "versions": record.versions("dp-accounting", "numpy", "scipy"),
        "gaussian": [entry for mu in GAUSSIAN for entry in gaussian(mu)],
        "subsampled_gaussian_add_remove": [entry for key in REMOVE for entry in add_remove(*key)],
        "subsampled_gaussian_replace_one": [entry for key in REPLACE for entry in replace_one(*key)],
        "scale_mixture": [entry for key in MIXTURE for entry in scale_mixture(*key)],
        "mixed_replace_one": [entry for kinds in MIXED_REPLACE for entry in mixed_replace_one(*kinds)],
        "mixed_add_remove": [entry for kinds in MIXED_ADD_REMOVE for entry in mixed_add_remove(*kinds)],
    }


if __name__ == "__main__":
    # At 1e-9 the rounding of a thousandfold Fourier transform shows in the fifth digit.
    record.main(__file__, make(), tolerance=lambda entry: 1e-6 if entry["delta"] >= 1e-5 else 1e-4)
