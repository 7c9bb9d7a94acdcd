"""Sums of many independent values, exact far into one tail.

The distribution is tilted by exp(theta s), put on a lattice, transformed, raised to the number of terms and
transformed back. A tilt moves the middle of the sum to a tail, where the transform is accurate to many digits. Several
tilts are joined: each covers the range where it is the most accurate one.

A value between two lattice points is split between them so that its mean stays. This adds variance; the lattice is
refined until the effect on ln(delta) is below VARIANCE_EFFECT. If that would take too many points, values are moved to
the lattice point on the side that lowers delta. A smooth sum of many terms is transformed without a lattice for its terms.
"""

import dataclasses
import math

import numpy as np

from gaussian import Array, Distribution, compress

VARIANCE_EFFECT = 1e-3
MIN_POINTS = 1 << 14
MAX_POINTS = 1 << 18
DIRECT_POINTS = 1 << 13
DIRECT_FREQUENCIES = 96
CUT = 34.0  # a window leaves out at most exp(-CUT) of a tilted distribution on each side
NARROW = 1e-5  # a sum that varies by less than this share is taken as constant
CELL = 5e-3  # width of a cell of the sum of all but one term, in standard deviations
FLOOR = 1e-13  # weights below this share of the largest are rounding noise


@dataclasses.dataclass(frozen=True)
class Part:
    """A number of independent terms of one distribution."""

    terms: Distribution
    count: int


@dataclasses.dataclass(frozen=True)
class Cumulant:
    """ln E[exp(theta s)] of the sum, and its derivative: the tilted mean."""

    theta: float
    value: float
    mean: float

    def divergence(self) -> float:
        """How unlikely the tilted sum is: -ln of its probability, up to a factor."""
        return self.theta * self.mean - self.value


@dataclasses.dataclass(frozen=True)
class Lattice:
    """Equally spaced places, in the order of a transform, and the weights of a tilted sum there."""

    step: float
    places: Array
    weights: Array


def tilted_weights(part: Part, theta: float) -> tuple[Array, float]:
    """Weights of one tilted term, and ln of their sum before they are normalised."""
    exponent = theta * part.terms.values
    top = float(exponent.max())
    weights = part.terms.weights * np.exp(exponent - top)
    total = float(weights.sum())
    return weights / total, top + math.log(total)


def cumulant(parts: list[Part], theta: float) -> Cumulant:
    value = mean = 0.0
    for part in parts:
        weights, log_total = tilted_weights(part, theta)
        value += part.count * log_total
        mean += part.count * float(weights @ part.terms.values)
    return Cumulant(theta, value, mean)


def find_tilt(parts: list[Part], start: Cumulant, direction: int, target: float, unit: float) -> Cumulant | None:
    """A tilt beyond `start` whose divergence from it is about `target`; None if no tilt reaches it."""

    def distance(other: Cumulant) -> float:
        return (other.theta - start.theta) * other.mean - other.value + start.value

    step = unit
    low, high = 0.0, None
    found = start
    for _ in range(200):
        found = cumulant(parts, start.theta + direction * step)
        if distance(found) < target:
            low, step = step, 2 * step
        else:
            high = step
            break
        if step > unit * 1e20:
            return None
    if high is None:
        return None
    for _ in range(40):
        middle = (low + high) / 2
        found = cumulant(parts, start.theta + direction * middle)
        reached = distance(found)
        if abs(reached - target) < 0.05 * target:
            break
        low, high = (middle, high) if reached < target else (low, middle)
    return found


def window(parts: list[Part], tilt: Cumulant, unit: float) -> tuple[float, float]:
    """Where all of a tilted sum is but for exp(-CUT) on each side."""
    ends = []
    for direction in (-1, 1):
        end = find_tilt(parts, tilt, direction, CUT, unit)
        if end is not None:
            ends.append(end.mean)
        else:
            extreme = np.min if direction < 0 else np.max
            ends.append(sum(part.count * float(extreme(part.terms.values)) for part in parts))
    return ends[0], ends[1]


def directly(parts: list[Part], tilt: Cumulant, ends: tuple[float, float]) -> Lattice | None:
    """The tilted sum without any rounding of its terms, or None unless the sum is smooth enough.

    The transform of a smooth sum vanishes but for a few low frequencies, at which it is computed as it stands.
    """
    if sum(part.count for part in parts) < 30:
        return None
    low, high = ends
    step = (high - low) / (DIRECT_POINTS - 64)
    frequencies = np.arange(DIRECT_FREQUENCIES) * (2 * math.pi / (DIRECT_POINTS * step))
    logarithm = np.zeros(DIRECT_FREQUENCIES, dtype=complex)
    for part in parts:
        weights = tilted_weights(part, tilt.theta)[0]
        terms = np.exp(-1j * np.outer(frequencies, part.terms.values)) @ weights
        logarithm += part.count * np.log(np.where(terms == 0, 1e-300, terms))
    if logarithm[-DIRECT_FREQUENCIES // 4 :].real.max() > math.log(FLOOR) - 5:
        return None
    transform = np.zeros(DIRECT_POINTS // 2 + 1, dtype=complex)
    transform[:DIRECT_FREQUENCIES] = np.exp(logarithm)
    start = math.floor(low / step) - 32
    index = start + np.mod(np.arange(DIRECT_POINTS) - start, DIRECT_POINTS)
    return Lattice(step, index * step, np.fft.irfft(transform, DIRECT_POINTS))


def on_lattice(
    parts: list[Part], tilt: Cumulant, ends: tuple[float, float], curvature: float, finest: float, safe: int
) -> Lattice:
    """The tilted sum. The step is at most `finest` if points allow it."""
    direct = directly(parts, tilt, ends)
    if direct is not None:
        return direct
    low, high = ends
    points = MIN_POINTS
    tilted = [(part, tilted_weights(part, tilt.theta)[0]) for part in parts]
    # Splitting widens the sum by this many steps at most; what left the window would come back at its other end.
    split_terms = sum(part.count * float(weights[part.terms.values != 0].sum()) for part, weights in tilted)
    margin = math.ceil(6 * math.sqrt(split_terms)) + 8
    while 4 * margin > points:
        points *= 2
    while True:
        step = (high - low) / (points - 2 * margin)
        added = 0.0
        for part, weights in tilted:
            rest = np.mod(part.terms.values, step)
            added += part.count * float(weights @ (rest * (step - rest)))
        if (curvature**2 * added / 2 <= VARIANCE_EFFECT and step <= finest) or points >= MAX_POINTS:
            break
        points *= 2
    # Moving every term to one side would leave the window if there are many.
    split = curvature**2 * added / 2 <= 4 * VARIANCE_EFFECT or split_terms > margin
    log_size = np.zeros(points // 2 + 1)
    phase = np.zeros(points // 2 + 1)
    for part, weights in tilted:
        place = part.terms.values / step
        lower = np.floor(place)
        if not split:  # to the side that lowers delta
            place = lower if safe < 0 else np.ceil(place)
            lower = place
        share = place - lower
        index = np.mod(lower, points).astype(np.int64) % points
        mass = np.bincount(index, weights * (1 - share), points)
        mass += np.bincount((index + 1) % points, weights * share, points)
        transform = np.fft.rfft(mass)
        log_size += part.count * np.log(np.maximum(np.abs(transform), 1e-300))
        phase += part.count * np.angle(transform)
    transform = np.exp(log_size) * (np.cos(phase) + 1j * np.sin(phase))
    weights = np.fft.irfft(transform, points)
    start = math.floor(low / step) - margin
    index = start + np.mod(np.arange(points) - start, points)
    return Lattice(step, index * step, weights)


def without_mode(part: Part) -> tuple[Part, float]:
    """The part with its likeliest value moved to 0, where it is on every lattice, and what that takes off the sum."""
    mode = float(part.terms.values[np.argmax(part.terms.weights)])
    return Part(Distribution(part.terms.values - mode, part.terms.weights), part.count), mode * part.count


def sum_distribution(parts: list[Part], delta: float, tail: int, heavy: bool = False) -> Distribution:
    """The distribution of the sum, accurate into its upper (tail = 1) or lower (tail = -1) tail.

    The tail reaches to probabilities well below delta. Larger values must raise delta if tail = 1, and lower it if
    tail = -1. `heavy` states that the other tail is heavy, and joins more tilts near the middle.
    """
    parts = [part for part in parts if part.count > 0]
    smallest = sum(part.count * float(part.terms.values.min()) for part in parts)  # without rounding of the mode
    fixed = sum(p.count * float(p.terms.values[0]) for p in parts if np.ptp(p.terms.values) == 0)
    mass = math.prod(float(p.terms.weights.sum()) ** p.count for p in parts if np.ptp(p.terms.values) == 0)
    parts = [part for part in parts if np.ptp(part.terms.values) > 0]
    if not parts:
        return Distribution(np.array([fixed]), np.array([mass]))
    if len(parts) == 1 and parts[0].count == 1:
        return Distribution(parts[0].terms.values + fixed, parts[0].terms.weights * mass)
    moved = [without_mode(part) for part in parts]
    parts, fixed = [part for part, _ in moved], fixed + sum(offset for _, offset in moved)
    spread = max(float(np.ptp(part.terms.values)) for part in parts)
    unit = 1e-6 / spread
    depth = math.sqrt(2 * (math.log(1 / delta) + 4))
    steps = math.ceil(depth / 2.5)
    origin = cumulant(parts, 0.0)
    tilts = [origin]
    targets = [(depth * step / steps) ** 2 / 2 for step in range(1, steps + 1)]
    if heavy:
        targets = [0.004, 0.02, 0.08, 0.25, 0.7, 1.5] + [target for target in targets if target > 2]
    for target in targets:
        found = find_tilt(parts, origin, tail, target, unit)
        if found is None:
            break
        tilts.append(found)
    if abs(tilts[-1].mean - origin.mean) < NARROW * abs(fixed + origin.mean):
        return Distribution(np.array([fixed + origin.mean]), np.array([mass * math.exp(origin.value)]))
    # The tilted densities are proportional to exp(theta s - value): where two are equal, the better one changes.
    crossings = [(b.value - a.value) / (b.theta - a.theta) for a, b in zip(tilts, tilts[1:])]
    lattices = []
    for number, tilt in enumerate(tilts):
        nearby = tilts[min(number + 1, len(tilts) - 1)]
        ends = window(parts, tilt, unit)
        # The range that this tilt covers, in which the step must be small.
        first = crossings[number - 1] if number > 0 else ends[(1 - tail) // 2]
        last = crossings[number] if number < len(crossings) else ends[(1 + tail) // 2]
        finest = max(abs(last - first) / 400, (ends[1] - ends[0]) / MAX_POINTS)
        curvature = max(abs(nearby.theta), abs(tilt.theta))
        lattices.append(on_lattice(parts, tilt, ends, curvature, finest, -tail))
    # A lattice point stands for the cell around it. Around a crossing both lattices count, with shares that add up to 1.
    widths = [max(a.step, b.step) for a, b in zip(lattices, lattices[1:])]
    values, weights = [], []
    for number, (tilt, lattice) in enumerate(zip(tilts, lattices)):
        share = np.where(lattice.weights > FLOOR * lattice.weights.max(), 1.0, 0.0)
        for crossing in (number - 1, number):
            if 0 <= crossing < len(crossings):
                beyond = np.clip(tail * (lattice.places - crossings[crossing]) / widths[crossing] + 0.5, 0, 1)
                share *= beyond if crossing < number else 1 - beyond
        keep = share > 0
        places = lattice.places[keep]
        values.append(places)
        weights.append(share[keep] * lattice.weights[keep] * np.exp(tilt.value - tilt.theta * places))
    joined = np.concatenate(weights)
    # Coarse lattices that meet at a crossing can count mass twice.
    joined = joined * mass * min(1.0, math.exp(origin.value) / float(joined.sum()))
    # Splitting may have moved a little beyond the smallest and the largest sum.
    least = sum(part.count * float(part.terms.values.min()) for part in parts)
    most = sum(part.count * float(part.terms.values.max()) for part in parts)
    return Distribution(np.maximum(np.clip(np.concatenate(values), least, most) + fixed, smallest), joined)


def repeated_sum(terms: Distribution, count: int, delta: float) -> Distribution:
    """The sum of `count` terms, accurate into its upper tail even if that is due to one large term.

    No tilt resolves a tail that falls slowly and then ends. So sums with no rare large term and with exactly one are
    computed apart, the latter without a lattice for the large term. Two or more are left out: together they are less
    likely than 0.05 delta.
    """
    order = np.argsort(terms.values)[::-1]
    rare = np.cumsum(terms.weights[order]) <= 0.3 * math.sqrt(delta) / count
    large, small = order[rare], order[~rare]
    if count == 1 or len(large) == 0:
        return sum_distribution([Part(terms, count)], delta, 1)
    large = Distribution(terms.values[large], terms.weights[large])
    small = Distribution(terms.values[small], terms.weights[small])
    none = sum_distribution([Part(small, count)], delta, 1)
    share = delta / (count * float(large.weights.sum()))
    rest = sum_distribution([Part(small, count - 1)], min(share, 0.1), 1)
    middle = float(rest.weights @ rest.values) / float(rest.weights.sum())
    spread = math.sqrt(float(rest.weights @ (rest.values - middle) ** 2))
    centred = Distribution(rest.values - middle, rest.weights)
    rest = compress(centred, CELL, spread) if spread > 0 else centred
    values = np.add.outer(large.values, rest.values + middle).ravel()
    weights = count * np.multiply.outer(large.weights, rest.weights).ravel()
    return Distribution(np.concatenate([none.values, values]), np.concatenate([none.weights, weights]))
