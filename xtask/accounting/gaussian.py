"""The Gaussian mechanism, mixtures of it, and the inversion of a curve.

Given the channels and the pilot noise, a round is a Gaussian mechanism that shifts a standard normal vector by a
distance mu. Its curve is

    delta_G(epsilon; mu) = Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu),

and a view is a distribution of mu, here a list of values with weights.
"""

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

Array = NDArray[np.float64]

LARGEST_EPSILON = 2e6  # the search for an epsilon ends here


@dataclasses.dataclass(frozen=True)
class Distribution:
    """Values and their probabilities. Weights may sum to less than one: missing mass lowers every delta."""

    values: Array
    weights: Array

    def mean(self) -> float:
        return float(self.values @ self.weights / self.weights.sum())


def mills_ratio(x: Array) -> Array:
    return math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2))


def gaussian_delta(epsilon: float, mu: Array) -> Array:
    """delta_G at one epsilon >= 0 for many mu, without large exponentials. mu = 0 has delta 0."""
    mu = np.maximum(mu, 1e-300)
    mu = np.maximum(mu, epsilon * 1e-100)
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    density = np.exp(-np.minimum(near * near, 1500.0) / 2) / math.sqrt(2 * math.pi)
    below = special.ndtr(-near) - density * mills_ratio(far)
    above = density * (mills_ratio(np.maximum(near, 0.0)) - mills_ratio(far))
    return np.where(near * near > 1500.0, (near < 0).astype(float), np.where(near < 0, below, above))


def mixture_delta(epsilon: float, mus: Distribution) -> float:
    """E[delta_G(epsilon; mu)]."""
    return float(mus.weights @ gaussian_delta(epsilon, mus.values))


def unsampled_epsilon(epsilon: float, p: float) -> float:
    """ln(1 + (e^epsilon - 1)/p): where the unsampled curve is read for an epsilon >= 0 under sampling."""
    if p >= 1.0:
        return epsilon
    if epsilon < 1e-3:
        return math.log1p(math.expm1(epsilon) / p)
    return epsilon + math.log1p(-(1 - p) * math.exp(-epsilon)) - math.log(p)


def solve(curve: Callable[[float], float], delta: float, near: float = 1e-3) -> float:
    """The epsilon >= 0 at which a decreasing curve reaches delta, or LARGEST_EPSILON if it is larger.

    The search begins at `near`, a positive guess.
    """
    if curve(0.0) <= delta:
        return 0.0
    low, high = 0.0, near
    while curve(high) > delta:
        if high >= LARGEST_EPSILON:
            return LARGEST_EPSILON
        low, high = high, min(4 * high, LARGEST_EPSILON)
    floor = delta * 1e-30

    def excess(epsilon: float) -> float:
        return math.log(max(curve(epsilon), floor) / delta)

    return float(optimize.brentq(excess, low, high, xtol=1e-12, rtol=1e-7))


def compress(distribution: Distribution, width: float, scale: float = 0.0) -> Distribution:
    """Merges values into cells of relative `width`, each replaced by its mean.

    Below `scale` in magnitude the cells have the absolute width `width * scale`; 0 keeps them relative, for values
    that are not negative.
    """
    values, weights = distribution.values, distribution.weights
    keep = weights > 0
    values, weights = values[keep], weights[keep]
    if len(values) == 0:
        return Distribution(values, weights)
    if scale > 0:
        place = np.arcsinh(values / scale) / width
    else:
        place = np.log(np.maximum(values, 1e-300)) / width
    index = np.floor(place - place.min()).astype(np.int64)
    size = int(index.max()) + 1
    if size > 20_000_000:  # values that span hundreds of decades: sort instead of counting
        _, index = np.unique(index, return_inverse=True)
        size = int(index.max()) + 1
    mass = np.bincount(index, weights, size)
    total = np.bincount(index, weights * values, size)
    filled = mass > 0
    return Distribution(total[filled] / mass[filled], mass[filled])


@functools.cache
def gauss_legendre(nodes: int) -> tuple[Array, Array]:
    return np.polynomial.legendre.leggauss(nodes)


def panels(edges: Array, nodes: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on each interval between sorted edges."""
    unit, weight = gauss_legendre(nodes)
    half = np.diff(edges)[:, None] / 2
    middle = (edges[:-1] + edges[1:])[:, None] / 2
    return (middle + half * unit).ravel(), (half * weight).ravel()
