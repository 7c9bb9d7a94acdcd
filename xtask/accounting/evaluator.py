"""An independent evaluation of the privacy of FLORAS, written from the formulas and not from the Rust code.

For a setting it returns, per view, the epsilon of the documented mechanism at delta: the largest epsilon that is known
not to suffice (`lower`), and where the value is exact up to rounding, one that suffices (`upper`).

    idealised     mu = Delta/sqrt(x), x over the unused sequences
    actual        mu averaged over fading, pilot noise and all other sequences
    any_channel   the worst fixed channel t that a search finds, the same in all rounds; each t is a lower bound
    raw_signal    mu = Delta |h|/s with the whole amplitude, whatever the modulation: raw samples are complex

Given its channels, a run of T rounds is Gaussian with mu^2 = the sum of mu_t^2. So

    every    p = 1, a client in every round:      E[delta_G(epsilon; sqrt(sum of mu_t^2))], exactly
    known    participation known:                 the same with mu_t = 0 with probability 1 - p, exactly
    secret   K of M drawn in secret, T = 1:       p delta_1(ln(1 + (e^epsilon - 1)/p)), exactly
             T > 1:                               the pair (1 - p) Q + p P against Q, a lower bound

Numerical error comes from quadrature, from cells of mu and from lattices (see sums.py). A lower bound is read off at
DELTA_ERROR above delta and lowered by EPSILON_ERROR; an upper bound is read off as far below delta and raised. README.md
in this directory describes how the errors were measured.
"""

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from gaussian import LARGEST_EPSILON, Distribution, compress, mixture_delta, panels, solve, unsampled_epsilon
from mechanism import Fading, Receiver, at_channel, averaged, noise_squares, strong_client, thinned
from sums import repeated_sum

DELTA_ERROR = 0.01  # relative error of a curve
EPSILON_ERROR = 5e-4  # relative error of an epsilon, beside it
STEEP = 300.0  # above this epsilon nodes of the channel may be too far apart for the curve's bend
USED_ERROR = 3e-3  # by how much the actual view may be too small: rare loud sequences of other clients are left out
SEARCH_ERROR = 3e-3  # by how much the search for the worst channel of one round may fall short
STEEP_ERROR = 0.02  # relative error of an epsilon there, and of the worst of a few channels over many rounds


@dataclasses.dataclass(frozen=True)
class Setting:
    """A federation, in the words of the flags of `floras account`."""

    clip: float
    sequences: int
    per_round: int
    clients: int
    rounds: int
    delta: float
    receiver: str
    length: int | None = None
    snr_db: float | None = None
    fading: str = "rayleigh"
    modulation: str = "real"

    def flags(self) -> list[str]:
        """The flags of `floras account`."""
        flags = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is None or (self.length is None and field.name in ("fading", "modulation")):
                continue
            flags.append(f"--{field.name.replace('_', '-')}={value!r}".replace("'", ""))
        return flags

    @property
    def unused(self) -> int:
        return self.sequences - self.per_round

    @property
    def probability(self) -> float:
        return self.per_round / self.clients

    @property
    def sensitivity(self) -> float:
        return 2 * self.clip

    @property
    def noise_std(self) -> float:
        """s: the noise after despreading, with the SNR of a symbol of unit power."""
        assert self.length is not None and self.snr_db is not None
        return math.sqrt(10 ** (-self.snr_db / 10) / self.length)


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Bounds on the true epsilon; `upper` is None where only a lower bound is computed."""

    lower: float
    upper: float | None


Curve = Callable[[float], float]


def bounds(curve: Curve, delta: float, exact: bool, error: float = EPSILON_ERROR) -> Bounds:
    """Bounds on the epsilon of a curve that is known to DELTA_ERROR, or with `exact` unset from below only."""
    epsilon = solve(curve, delta)
    near = max(epsilon, 1e-9)
    lower = solve(curve, delta * (1 + DELTA_ERROR), near) * (1 - error)
    if not exact or epsilon >= LARGEST_EPSILON:
        return Bounds(lower, None)
    return Bounds(lower, solve(curve, delta * (1 - DELTA_ERROR), near * (1 + error)) * (1 + error))


def relevant(mus: Distribution, delta: float, rounds: int) -> Distribution:
    """Without the largest values, which are too rare to count. Missing mass and negligible values become 0."""
    order = np.argsort(mus.values)[::-1]
    values, weights = mus.values[order], mus.weights[order]
    keep = np.cumsum(weights) > 1e-5 * delta / rounds
    values, weights = values[keep], weights[keep]
    if len(values) == 0:
        return Distribution(np.zeros(1), np.ones(1))
    values = np.where(values < 1e-7 * values[0], 0.0, values)
    missing = max(0.0, 1.0 - float(weights.sum()))
    return Distribution(np.append(values, 0.0), np.append(weights, missing))


def composed(mus: Distribution, rounds: int, delta: float, p: float = 1.0) -> Distribution:
    """Distribution of sqrt(sum of mu_t^2), each mu_t being 0 with probability 1 - p."""
    mus = relevant(mus, delta, rounds)
    squares = compress(Distribution(mus.values**2, mus.weights), 2e-3)
    if p < 1:
        squares = Distribution(np.append(squares.values, 0.0), np.append(p * squares.weights, 1 - p))
    total = repeated_sum(squares, rounds, delta * 1e-2)
    return compress(Distribution(np.sqrt(np.maximum(total.values, 0.0)), total.weights), 2e-4, 1e-12)


def known(mus: Distribution, rounds: int, delta: float, p: float) -> Curve:
    """The curve if participation is known; with p = 1, the curve of a client in every round."""
    if rounds == 1:
        return lambda epsilon: p * mixture_delta(epsilon, mus)
    total = composed(mus, rounds, delta, p)
    return lambda epsilon: mixture_delta(epsilon, total)


def sampled_losses(mus: Distribution, p: float, delta: float, rounds: int) -> Distribution:
    """Losses of one round of (1 - p) Q + p P against Q, distributed as under the former."""
    mus = thinned(compress(relevant(mus, delta, rounds), 2e-3, 1e-12), 1500)
    reach = math.sqrt(2 * math.log(rounds / delta)) + 2
    values, weights = [], []
    for mu, weight in zip(mus.values, mus.weights):
        around = np.linspace(-reach, reach, math.ceil(reach / 0.25) + 1)
        y, share = panels(np.unique(np.concatenate([around, mu + around])), 3)
        density = (1 - p) * np.exp(-y * y / 2) + p * np.exp(-((y - mu) ** 2) / 2)
        loss = mu * y - mu * mu / 2
        with np.errstate(over="ignore"):
            small = np.log1p(p * np.expm1(np.minimum(loss, 30.0)))
            large = loss + np.log(p + (1 - p) * np.exp(-np.maximum(loss, -30.0)))
        values.append(np.where(loss < 30.0, small, large))
        weights.append(weight * share * density / math.sqrt(2 * math.pi))
    joined = Distribution(np.concatenate(values), np.concatenate(weights))
    spread = math.sqrt(float(joined.weights @ joined.values**2))
    return compress(joined, 2e-3, max(spread, 1e-12) * 0.2)


def secret(mus: Distribution, rounds: int, delta: float, p: float) -> Curve:
    """The curve if participation is secret: exact for one round, otherwise from below."""
    if rounds == 1:
        return lambda epsilon: p * mixture_delta(unsampled_epsilon(epsilon, p), mus)
    total = repeated_sum(sampled_losses(mus, p, delta, rounds), rounds, delta * 1e-2)

    def curve(epsilon: float) -> float:
        keep = total.values > epsilon
        return float(total.weights[keep] @ -np.expm1(epsilon - total.values[keep]))

    return curve


def statements(mus: Distribution, setting: Setting, steep: bool = False) -> dict[str, Bounds]:
    """What a view should state: `epsilon`, and with sampling `participation_known` and `in_every_round`."""
    rounds, delta, p = setting.rounds, setting.delta, setting.probability

    def of(curve: Curve, exact: bool) -> Bounds:
        found = bounds(curve, delta, exact)
        steep_here = found.lower > STEEP and (steep or not exact)
        return bounds(curve, delta, exact, STEEP_ERROR) if steep_here else found

    every = of(known(mus, rounds, delta, 1.0), True)
    if p == 1:
        return {"epsilon": every}
    return {
        "epsilon": of(secret(mus, rounds, delta, p), rounds == 1),
        "participation_known": of(known(mus, rounds, delta, p), True),
        "in_every_round": every,
    }


def any_channel(setting: Setting, receiver: Receiver, noise: Distribution) -> dict[str, Bounds]:
    """The worst fixed channel that a search finds, with participation known."""
    rounds, delta, p = setting.rounds, setting.delta, setting.probability
    few, many = thinned(noise, 60), thinned(noise, 250)
    strong = strong_client(setting.sensitivity, noise)
    level = max(receiver.level, 1.0)
    grid = np.concatenate([
        level * 0.05 * 1.35 ** np.arange(0, 22),
        level * np.array([60.0, 200.0]),
        np.arange(1.0, 16.0, 0.75),
        receiver.level + np.arange(-6.0, 12.0, 0.75),
    ])
    grid = np.unique(grid[grid > 0])
    rough = [compress(at_channel(float(t), receiver, setting.sensitivity, few), 2e-3) for t in grid]

    def worst_of_one_round(target: float) -> float:
        """The worst channel of one round at some delta; infinity for the strong client."""
        best, best_t = solve(lambda epsilon: mixture_delta(epsilon, strong), target), math.inf
        for t, mus in zip(grid, rough):
            if mixture_delta(best * 1.0001 + 1e-9, mus) > target:
                best, best_t = solve(lambda epsilon: mixture_delta(epsilon, mus), target, max(best, 1e-3)), float(t)
        return best_t

    # With many rounds the worst channel is that of one round at a larger delta.
    targets = {min(delta / p, 0.3), delta} | (set() if rounds == 1 else {0.3, min(0.3, delta**0.3)})
    starts = sorted({t for t in map(worst_of_one_round, targets) if math.isfinite(t)})

    def worst(share: float) -> Bounds:
        def curve_at(t: float) -> Curve:
            mus = compress(at_channel(t, receiver, setting.sensitivity, many), 5e-4)
            return known(mus, rounds, delta, share)

        best_t, best_curve = math.inf, known(strong, rounds, delta, share)
        best = solve(best_curve, delta)

        def improved(t: float) -> bool:
            nonlocal best_t, best_curve, best
            curve = curve_at(t)
            if curve(best) <= delta or best >= LARGEST_EPSILON:
                return False
            best_t, best_curve, best = t, curve, solve(curve, delta, max(best, 1e-3))
            return True

        for t in starts:
            improved(t)
        width = 1.15
        for _ in range(10 if rounds == 1 else 4):
            if math.isinf(best_t):
                break
            if not any(improved(t) for t in (best_t / width, best_t * width)):
                width = math.sqrt(width)
        found = bounds(best_curve, delta, rounds == 1, EPSILON_ERROR if best < STEEP and rounds == 1 else STEEP_ERROR)
        if found.upper is None:
            return found
        return Bounds(found.lower, found.upper * (1 + SEARCH_ERROR))

    if p == 1:
        return {"epsilon": worst(1.0)}
    sampled = worst(p)
    return {"epsilon": sampled, "participation_known": sampled, "in_every_round": worst(1.0)}


def evaluate(setting: Setting) -> dict[str, dict[str, Bounds]]:
    """Bounds on the true epsilon in every view, by the names of the JSON that `floras account` prints."""
    receiver = Receiver.parse(setting.receiver)
    result: dict[str, dict[str, Bounds]] = {}
    noise = None
    if setting.unused > 0:
        noise = noise_squares(receiver, setting.unused, setting.delta)
        result["idealised"] = statements(strong_client(setting.sensitivity, noise), setting)
        result["any_channel"] = any_channel(setting, receiver, noise)
    if setting.length is None:
        return result
    fading = Fading.parse(setting.fading)
    real = setting.modulation == "real" and fading.kind != "none"
    channels = fading.channels(setting.noise_std, real)
    others = noise_squares(receiver, setting.unused, setting.delta, setting.per_round - 1, channels)
    mus = averaged(channels, receiver, setting.sensitivity, thinned(others, 150))
    result["actual"] = {
        field: Bounds(found.lower, None if found.upper is None else found.upper * (1 + USED_ERROR))
        for field, found in statements(mus, setting, steep=True).items()
    }
    amplitudes = fading.amplitudes()
    raw = Distribution(setting.sensitivity / setting.noise_std * amplitudes.values, amplitudes.weights)
    result["raw_signal"] = statements(raw, setting)
    return result
