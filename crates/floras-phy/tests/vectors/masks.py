#!/usr/bin/env python3
"""Test vectors for the masks of docs/reference/mask-format.md, from the standard library alone.

Written from the format document and not from the Rust code, so that the two check each other.

    python3 masks.py            write masks.json beside this file
    python3 masks.py --check    exit with 1 if masks.json differs
"""

import hashlib
import math
import pathlib
import struct
from fractions import Fraction

import assignment

FILE = pathlib.Path(__file__).with_name("masks.json")
LISTED = 16  # longer masks are given by their first values and a digest
PRIME = 2**255 - 19
SALT = b"floras/pair-key/v1"

LN_2_HIGH, LN_2_LOW = 6.931471803691238e-1, 1.9082149292705877e-10
LOGARITHM = (
    6.666666666666735e-1,
    3.999999999940942e-1,
    2.857142874366239e-1,
    2.2222198432149784e-1,
    1.818357216161805e-1,
    1.5313837699209373e-1,
    1.4798198605116586e-1,
)
SINE = (
    -1.6666666666666632e-1,
    8.33333333332249e-3,
    -1.984126982985795e-4,
    2.7557313707070068e-6,
    -2.5050760253406863e-8,
    1.58969099521155e-10,
)
COSINE = (
    4.16666666666666e-2,
    -1.388888888887411e-3,
    2.480158728947673e-5,
    -2.7557314351390663e-7,
    2.087572321298175e-9,
    -1.1359647557788195e-11,
)


def x25519(private: bytes, u: bytes) -> bytes:
    """RFC 7748, section 5."""
    k = bytearray(private)
    k[0] &= 248
    k[31] = k[31] & 127 | 64
    scalar = int.from_bytes(k, "little")
    x1 = int.from_bytes(u, "little") & (2**255 - 1)
    x2, z2, x3, z3, swap = 1, 0, x1, 1, 0
    for t in reversed(range(255)):
        bit = scalar >> t & 1
        if swap ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        da, cb, aa, bb = d * a, c * b, a * a, b * b
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % PRIME, x1 * (da - cb) ** 2 % PRIME
        x2, z2 = aa * bb % PRIME, e * (aa + 121665 * e) % PRIME
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, PRIME - 2, PRIME) % PRIME).to_bytes(32, "little")


def public_key(private: bytes) -> bytes:
    return x25519(private, (9).to_bytes(32, "little"))


def fma(a: float, b: float, c: float) -> float:
    """a·b + c with one rounding; a quotient of integers is correctly rounded in Python."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    return exact.numerator / exact.denominator


def horner(coefficients: tuple[float, ...], x: float) -> float:
    value = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        value = fma(value, x, coefficient)
    return value


def block(key: bytes, counter: int, nonce: tuple[int, int, int]) -> list[int]:
    """RFC 8439, section 2.3: a block as eight words of 64 bits."""
    words = chacha20_words(key, counter, nonce)
    return [words[2 * i] | words[2 * i + 1] << 32 for i in range(8)]


def chacha20_words(key: bytes, counter: int, nonce: tuple[int, int, int]) -> list[int]:
    if nonce == (0, 0, 0):
        return assignment.chacha20_block(key, counter)
    start = [*struct.unpack("<4I", b"expand 32-byte k"), *struct.unpack("<8I", key), counter, *nonce]
    x = list(start)

    def quarter(a: int, b: int, c: int, d: int) -> None:
        for p, q, r, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[p] = (x[p] + x[q]) % 2**32
            mixed = x[r] ^ x[p]
            x[r] = (mixed << turn | mixed >> (32 - turn)) % 2**32

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return [(a + b) % 2**32 for a, b in zip(x, start)]


def further_words(seed: bytes, number: int):
    """The words that follow the radius word of a pair."""
    counter = 0
    while True:
        yield from block(seed, counter, (1, number % 2**32, number >> 32))
        counter += 1


def reduced(u: float) -> tuple[float, float]:
    """u = 2^k·(1 + f) with √½ ≤ 1 + f < √2."""
    mantissa, exponent = math.frexp(u)  # ½ ≤ mantissa < 1
    if mantissa < math.sqrt(0.5):
        mantissa, exponent = 2 * mantissa, exponent - 1
    return float(exponent), mantissa - 1.0


def minus_ln(k: float, f: float) -> float:
    s = f / (2.0 + f)
    z = s * s
    rest = z * horner(LOGARITHM, z)
    half_square = 0.5 * f * f
    curve = half_square - fma(s, half_square + rest, k * LN_2_LOW)
    return fma(k, -LN_2_HIGH, curve - f)


def is_short(word: int) -> bool:
    return word < 2**53 or word >= 2**64 - 2**53


def minus_ln_uniform(word: int, further) -> float:
    """−ln U for a radius word."""
    top = 2**64 - 1
    if not is_short(word):
        if word >= 13043817825332782213:
            return minus_ln(0.0, -(float(top - word) * 2.0**-64))
        return minus_ln(*reduced(float(word) * 2.0**-64))
    low = word < 2**53
    words = (w if low else top - w for w in further)
    zeros, high = 0, word if low else top - word
    while high == 0:
        zeros, high = zeros + 1, next(words)
    fraction = float(high << 64 | next(words)) * 2.0**-128
    if low:
        k, f = reduced(fraction)
        return minus_ln(k - 64.0 * zeros, f)
    return minus_ln(0.0, -fraction * 2.0 ** (-64 * zeros))


def pair_of_normals(minus_logarithm: float, angle: int) -> tuple[float, float]:
    rho = math.sqrt(minus_logarithm)
    turn = float(angle >> 12) * 2.0**-52 - 0.5
    r = fma(turn, math.pi / 2, 2.0**-53 * (math.pi / 2))
    z = r * r
    sine = fma(z * r, horner(SINE, z), r)
    half = 0.5 * z
    near = 1.0 - half
    cosine = near + fma(z * z, horner(COSINE, z), (1.0 - near) - half)
    left, right = (cosine - sine) * rho, (cosine + sine) * rho
    return (-left if angle & 1 else left), (-right if angle & 2 else right)


def power_of_two_below(value: float) -> float:
    return math.ldexp(1.0, math.frexp(value)[1] - 1)


def grid(clients: int, mask_std: float, noise_std: float) -> tuple[float, float, float]:
    """σ_p, q and Q."""
    pair_std = mask_std / math.sqrt(clients)
    fine = power_of_two_below(max(pair_std, noise_std)) / 2.0**47
    return pair_std, fine, power_of_two_below(noise_std) / 32.0


def mask(seed: bytes, scale: float, count: int) -> tuple[list[int], int]:
    """The first values of a mask, in units of q, and how many of their pairs took further words."""
    values, continued = [], 0
    for tile in range(-(-count // 128)):
        blocks = [block(seed, 16 * tile + b, (0, 0, 0)) for b in range(16)]
        left, right = [], []
        for p in range(64):
            j, b = divmod(p, 16)
            radius, angle = blocks[b][j], blocks[b][4 + j]
            continued += is_short(radius)
            minus_logarithm = minus_ln_uniform(radius, further_words(seed, 64 * tile + p))
            for side, value in zip((left, right), pair_of_normals(minus_logarithm, angle)):
                side.append(round(value * scale))  # ties to even
        values += left + right
    return values[:count], continued


def vector(
    privates: tuple[bytes, bytes], group: bytes, epoch: int, slot: int, round_of: tuple, count: int
) -> dict:
    """Of the pair with these private keys, who are the first two of a cohort."""
    clients, mask_std, noise_std = round_of
    publics = [public_key(private) for private in privates]
    cohort = publics + [public_key(bytes([number]) * 32) for number in range(2, clients)]
    shared = x25519(privates[0], publics[1])
    assert shared == x25519(privates[1], publics[0])
    lower, higher = sorted(publics)
    pair_key = assignment.hkdf_sha256(SALT, shared, b"floras/pair/v1" + group + lower + higher)
    cohort_digest = hashlib.sha256(b"".join(cohort)).digest()
    info = b"floras/mask/v1" + group + struct.pack(">IQ", epoch, slot) + cohort_digest
    seed = assignment.hkdf_sha256(SALT, pair_key, info)
    pair_std, fine, sent = grid(clients, mask_std, noise_std)
    values, continued = mask(seed, pair_std / fine, count)
    return {
        "first_private": privates[0].hex(),
        "first_public": publics[0].hex(),
        "second_private": privates[1].hex(),
        "second_public": publics[1].hex(),
        "group": group.hex(),
        "epoch": epoch,
        "slot": slot,
        "cohort": [member.hex() for member in cohort],
        "cohort_sha256": cohort_digest.hex(),
        "shared": shared.hex(),
        "pair_key": pair_key.hex(),
        "seed": seed.hex(),
        "first_adds": publics[0] < publics[1],
        "mask_std": mask_std,
        "noise_std": noise_std,
        "pair_std": pair_std,
        "fine_step": fine,
        "sent_step": sent,
        "count": count,
        "continued_pairs": continued,
        "mask_start": values[:LISTED],
        "mask_sha256": hashlib.sha256(struct.pack(f">{count}q", *values)).hexdigest(),
    }


def text() -> str:
    group = b"floras test room"
    first, second, third = bytes(range(32)), bytes(range(255, 223, -1)), b"\x5a" * 32
    cases = [
        ((first, second), group, 1, 1, (4, 8.0, 1.0), 16),
        ((second, first), group, 1, 2, (4, 8.0, 1.0), 16),  # the other end, the next slot
        ((first, second), group, 2, 1, (4, 8.0, 1.0), 16),  # the next epoch
        ((first, second), bytes(16), 1, 1, (4, 8.0, 1.0), 16),  # another group
        ((first, second), group, 1, 1, (3, 8.0, 1.0), 16),  # another cohort
        ((first, third), group, 1, 1, (20, 9.839, 0.2515), 130),  # a tile and two values
        ((third, second), bytes([255] * 16), 2**32 - 1, 2**64 - 1, (2, 0.03, 5.0), 128),
        ((third, first), group, 1, 3, (7, 1234.5, 0.001953125), 16384),  # some take further words
    ]
    document = assignment.document([vector(*case) for case in cases], "masks.py")
    return document.replace("docs/reference/assignment-format.md", "docs/reference/mask-format.md")


if __name__ == "__main__":
    assignment.main(__doc__, FILE, text())
