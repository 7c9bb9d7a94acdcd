"""Distributions of mu in one round: receivers, fading and the noise of the decoder.

Everything is in units of s = sigma/sqrt(L), the standard deviation of the noise after despreading: t = h/s is a
client's channel, z = t + e its estimate with pilot noise e ~ N(0, 1), and w(z) the receiver's weight,

    paper     1/z
    mmse      z/(z^2 + 1)
    clipped   sign(z)/max(|z|, c).

With x = the sum of w^2 over all other sequences (unused ones, whose estimates are N(0, 1), and those of other
clients), mu = Delta t |w| / sqrt(w^2 + x) = Delta t / sqrt(1 + x/w^2).
"""

import dataclasses
import math

import numpy as np
from scipy import special

from gaussian import Array, Distribution, compress, panels
from sums import Part, sum_distribution

REACH = 12.5  # standard deviations of a normal variable that are integrated over: 1e-35 is left out


@dataclasses.dataclass(frozen=True)
class Receiver:
    """kind is paper, mmse or clipped; level is c of the clipped projector."""

    kind: str
    level: float = 0.0

    @staticmethod
    def parse(text: str) -> "Receiver":
        kind, _, level = text.partition("=")
        return Receiver(kind, float(level) if level else 0.0)

    def inverse_weight(self, z: Array) -> Array:
        """1/|w(z)|."""
        z = np.abs(z)
        if self.kind == "clipped":
            return np.maximum(z, self.level)
        if self.kind == "mmse":
            return z + 1 / np.maximum(z, 1e-150)
        return np.maximum(z, 1e-150)


@dataclasses.dataclass(frozen=True)
class Fading:
    """kind is rayleigh, none, rician or nakagami; shape is the Rician factor or Nakagami's m. Mean power 1.

    The phase is uniform but without fading, where it is 0.
    """

    kind: str
    shape: float = 0.0

    @staticmethod
    def parse(text: str) -> "Fading":
        kind, _, shape = text.partition("=")
        return Fading(kind, float(shape) if shape else 0.0)

    def amplitude_density(self, r: Array) -> Array:
        """Density of |h|."""
        if self.kind == "rayleigh":
            return 2 * r * np.exp(-r * r)
        if self.kind == "rician":
            k = self.shape
            argument = 2 * r * math.sqrt(k * (k + 1))
            exponent = -((math.sqrt(k) - r * math.sqrt(k + 1)) ** 2)
            return 2 * (k + 1) * r * np.exp(exponent) * special.i0e(argument)
        m = self.shape
        log_density = math.log(2) + m * math.log(m) - special.gammaln(m) - m * r * r
        return np.exp(log_density) * np.maximum(r, 1e-300) ** (2 * m - 1)

    def real_part_density(self, x: Array) -> Array:
        """Density of |Re h| = |h| |cos(phase)|."""
        if self.kind == "rayleigh":
            return 2 / math.sqrt(math.pi) * np.exp(-x * x)
        if self.kind == "rician":
            k = self.shape
            phase = (np.arange(4096) + 0.5) * (2 * math.pi / 4096)
            centre = math.sqrt(k / (k + 1)) * np.cos(phase)
            squares = (k + 1) * (x[:, None] - centre[None, :]) ** 2
            return 2 * math.sqrt((k + 1) / math.pi) * np.exp(-squares).mean(axis=1)
        # 2/pi times the integral of f(r)/r over y, with r^2 = x^2 + y^2. It is smooth on the scale of x.
        result = np.empty_like(x)
        top = self.largest_amplitude()
        for number, place in enumerate(x):
            fine = np.arange(0.05, top, 0.05)
            geometric = place * 2.0 ** np.arange(-1, max(1, math.ceil(math.log2(0.1 / place)) + 1))
            edges = np.unique(np.concatenate([[0.0], geometric[geometric < 0.05], fine, [top]]))
            y, weight = panels(edges, 6)
            r = np.hypot(place, y)
            result[number] = 2 / math.pi * float(weight @ (self.amplitude_density(r) / r))
        return result

    def largest_amplitude(self) -> float:
        """Beyond it lies less than 1e-33."""
        if self.kind == "rician":
            return math.sqrt(self.shape / (self.shape + 1)) + 9.0 / math.sqrt(self.shape + 1)
        return 9.0 / math.sqrt(min(self.shape, 1.0) if self.kind == "nakagami" else 1.0)

    def channels(self, s: float, real: bool) -> Distribution:
        """Distribution of t = h/s, h = Re h (without sign) or |h|, as quadrature nodes."""
        if self.kind == "none":
            return Distribution(np.array([1 / s]), np.array([1.0]))
        top = self.largest_amplitude() / s
        # Panels that are narrow both on the scale of the noise (t = 1) and on that of the fading (t = 1/s).
        widest = 0.1 / math.sqrt(self.shape + 1 if self.kind == "rician" else max(self.shape, 1.0)) / s
        edges = [0.0, min(1e-3, top / 1e3)]
        while edges[-1] < top:
            growth = 0.25 if edges[-1] < 100.0 else 0.4
            edges.append(edges[-1] + min(max(growth * edges[-1], edges[1]), widest))
        edges[-1] = top
        t, weight = panels(np.array(edges), 4)
        density = self.real_part_density(t * s) if real else self.amplitude_density(t * s)
        return Distribution(t, weight * s * density)


    def amplitudes(self) -> Distribution:
        """Distribution of |h| in cells of a thousandth."""
        if self.kind == "none":
            return Distribution(np.ones(1), np.ones(1))
        edges = np.concatenate([[0.0], np.geomspace(1e-6, self.largest_amplitude(), 16001)])
        r, weight = panels(edges, 2)
        return Distribution(r, weight * self.amplitude_density(r))


def estimates(t: float, receiver: Receiver, narrow: float) -> tuple[Array, Array]:
    """Nodes of the estimate z = t + e and their weights. `narrow` is a scale around z = 0 that must be resolved."""
    low, high = t - REACH, t + REACH
    edges = [np.arange(low, high, 0.5), [high]]
    if low < 0.5:
        narrow = max(narrow, receiver.level / 4)
        scales = 0.5 * 0.5 ** np.arange(0, max(1.0, math.log2(1.0 / narrow)) + 1)
        edges += [scales, -scales, [0.0]]
    if receiver.kind == "clipped":
        edges += [[receiver.level, -receiver.level]]
    joined = np.concatenate([np.asarray(edge, dtype=float) for edge in edges])
    z, weight = panels(np.unique(joined[(joined >= low) & (joined <= high)]), 4)
    return z, weight * np.exp(-((z - t) ** 2) / 2) / math.sqrt(2 * math.pi)


def unused_weight_squares(receiver: Receiver) -> Distribution:
    """Distribution of w(G)^2 for a standard normal G; not for the paper's receiver."""
    edges = np.arange(0.0, REACH, 0.125)
    if receiver.kind == "clipped":
        c = receiver.level
        inside = math.erf(c / math.sqrt(2)) if c < 30 else 1.0
        if inside == 1.0:
            return Distribution(np.array([1 / c**2]), np.array([1.0]))
        # For a large c what lies beyond it falls like exp(-c (g - c)).
        near = c + np.concatenate([np.arange(0, 40, 0.25), [40.0]]) / max(c, 1.0)
        grown = c * 1.15 ** np.arange(0, max(1, math.ceil(math.log(1 / c) / math.log(1.15)))) if c < 1 else [c]
        edges = np.concatenate([grown, near, edges])
        edges = np.unique(edges[(edges >= c) & (edges <= max(REACH, near[-1]))])
        g, weight = panels(edges, 4)
        tail = weight * np.sqrt(2 / math.pi) * np.exp(-g * g / 2)
        return Distribution(np.append(1 / g**2, 1 / c**2), np.append(tail, inside))
    # The weight vanishes at g = 0, and a small sum of squares is what an adversary waits for.
    edges = np.concatenate([[0.0], 0.125 * 0.7 ** np.arange(0, 100), edges])
    g, weight = panels(np.unique(edges), 5)
    weight = weight * np.sqrt(2 / math.pi) * np.exp(-g * g / 2)
    return Distribution((g / (g * g + 1)) ** 2, weight)


def half_normal() -> Distribution:
    edges = np.concatenate([[0.0], 1e-3 * 1.3 ** np.arange(0, 22), np.arange(0.4, REACH, 0.1)])
    g, weight = panels(np.unique(edges), 4)
    return Distribution(g, weight * math.sqrt(2 / math.pi) * np.exp(-g * g / 2))


def used_weight_squares(receiver: Receiver, channels: Distribution) -> Distribution:
    """Distribution of w(z)^2 of another client."""
    values, weights = [], []
    for t, weight in zip(channels.values, channels.weights):
        if weight < 1e-30:
            continue
        if t > 1e4:
            values.append(np.array([t**-2.0]))
            weights.append(np.array([weight]))
            continue
        z, share = estimates(float(t), receiver, 1e-3)
        values.append(receiver.inverse_weight(z) ** -2.0)
        weights.append(weight * share)
    return compress(Distribution(np.concatenate(values), np.concatenate(weights)), 4e-3)


def noise_squares(
    receiver: Receiver, unused: int, delta: float, used: int = 0, channels: Distribution | None = None
) -> Distribution:
    """Distribution of x, the sum of w^2 over the unused sequences and those of `used` other clients.

    Far out in its upper tail, where mu is negligible, mass is left out.
    """
    others = Distribution(np.zeros(1), np.ones(1))
    if used > 0 and channels is not None:
        others = used_weight_squares(receiver, channels)
    if receiver.kind == "paper":
        g = half_normal()
        own = Distribution((unused / g.values) ** 2, g.weights)
        if unused == 0:
            own = Distribution(np.zeros(1), np.ones(1))
        part = Part(own, 1)
        cap = 1e3 * max(unused, 1e-9) ** 2
        if used > 0:
            # A share of used estimates near 0 acts like this many unused sequences.
            near = float(others.weights[others.values > 1.0].sum())
            typical = used * float(others.weights[others.values <= 1.0] @ others.values[others.values <= 1.0])
            cap = 1e3 * ((unused + used * near) ** 2 + typical)
    else:
        part = Part(unused_weight_squares(receiver), unused)
        cap = math.inf
    parts = [part]
    if used > 0:
        parts.append(Part(others, used))
    if used > 0:
        parts = [Part(below(part.terms, min(cap, rare(part))), part.count) for part in parts]
    result = sum_distribution(parts, delta * 1e-2, -1, heavy=receiver.kind == "paper")
    return compress(result, 2e-3)


def rare(part: Part) -> float:
    """A value that a term exceeds with a probability of at most 1e-4 over the number of terms."""
    order = np.argsort(part.terms.values)[::-1]
    beyond = np.cumsum(part.terms.weights[order]) <= 1e-4 / part.count
    return float(part.terms.values[order][np.count_nonzero(beyond)])


def below(distribution: Distribution, cap: float) -> Distribution:
    keep = distribution.values <= cap
    return Distribution(distribution.values[keep], distribution.weights[keep])


def thinned(noise: Distribution, count: int) -> Distribution:
    """At most about `count` values of x, merged where they are dense."""
    width = 2e-3
    while len(noise.values) > count:
        width *= 1.5
        noise = compress(noise, width)
    return noise


def at_channel(t: float, receiver: Receiver, sensitivity: float, noise: Distribution) -> Distribution:
    """Distribution of mu for a client with the fixed channel t."""
    narrow = 1e-2 / math.sqrt(max(float(noise.values.max()), 1.0))
    z, share = estimates(t, receiver, narrow)
    keep = share > 1e-36
    z, share = z[keep], share[keep]
    square = receiver.inverse_weight(z) ** 2
    mu = sensitivity * t / np.sqrt(1 + np.outer(square, noise.values))
    return Distribution(mu.ravel(), np.outer(share, noise.weights).ravel())


def strong_client(sensitivity: float, noise: Distribution) -> Distribution:
    """Distribution of mu as t grows without bound: the idealised view."""
    keep = noise.values > 0
    return Distribution(sensitivity / np.sqrt(noise.values[keep]), noise.weights[keep])


def averaged(
    channels: Distribution, receiver: Receiver, sensitivity: float, noise: Distribution
) -> Distribution:
    """Distribution of mu averaged over the channel: the actual view."""
    values, weights = [], []
    for t, weight in zip(channels.values, channels.weights):
        if weight < 1e-36:
            continue
        one = compress(at_channel(float(t), receiver, sensitivity, noise), 1e-3)
        values.append(one.values)
        weights.append(weight * one.weights)
    return compress(Distribution(np.concatenate(values), np.concatenate(weights)), 5e-4)
