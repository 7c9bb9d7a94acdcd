#!/usr/bin/env python3
"""Reference distributions of the FLORAS uplink, simulated chip by chip in NumPy and double precision.

Written from Sections III-B and IV of the paper (arXiv:2306.08280) and not from the Rust code, so that the two check each
other. Complex reception, several antennas, repeated pilots and the normalised projector are not in the paper; their formulas
are below. One run takes about two minutes of one core.

    python3 -m pip install numpy==2.4.6
    python3 crates/floras-phy/tests/reference/chip_level.py            write chip_level.json beside this file
    python3 crates/floras-phy/tests/reference/chip_level.py --check    exit with 1 if chip_level.json differs

One round, with K clients, N sequences a_1..a_N of L chips, and noise of standard deviation s = sigma/sqrt(L) in each chip
and real dimension, sigma^2 = 10^(-SNR/10):

    channels    h_k ~ CN(0, 1); the amplitude is Re h_k ("real") or |h_k| ("phase_corrected"), and h_k itself for "complex"
    pilot       y_s = sum_k a_k h_k + n_s                        step 1; hat h_j = a_j^T y_s for all N sequences
                amplitude a, sent r times: y_s is the mean of r receptions of a*sum_k a_k h_k + n, divided by a
    projector   v = sum_j a_j / hat h_j over all N               step 2
                "normalised": v*K/(v^T y_s)                      for sequences that overlap
    payload     y_i = sum_k a_k h_k x_k^i + n_i, x_k^i ~ N(0,1)  step 3, i = 1..d with d = 4
    decoding    x~_i = v^T y_i                                   step 4

Complex reception with M antennas (M = 1 is plain complex reception) combines by maximum ratio, and takes the real part:

    v_m = sum_j a_j conj(hat h_jm) / sum_m |hat h_jm|^2,    x~_i = Re sum_m v_m^T y_im

The sequences of a round: K of N, drawn at random; the N are rows of a Hadamard matrix ("walsh"), columns of a random
orthogonal matrix, new in each round ("orthonormal"), or independent N(0, 1/L) chips, new in each round ("gaussian").
"""

import json
import pathlib
import sys

import numpy as np

FILE = pathlib.Path(__file__).with_suffix(".json")
SEED = 2306_08280
ROUNDS = 100_000  # of each setting
BATCH = 2_000
LEVELS = 500  # quantiles at 1/500 .. 499/500
SYMBOLS = 4  # d
TOLERANCE = 1e-4  # of --check: other processors round otherwise

ABOUT = (
    "Quantiles of simulated rounds. Quantile i, from 1 to levels - 1, is the smallest value that a share of i/levels of the "
    "rounds does not exceed. nu: s times the norm of the projector. mean_gain: the mean over the K clients of "
    "g_k = h_k v^T a_k. decoded: one decoded symbol, with independent N(0, 1) symbols of all clients. rms_error: root mean "
    "square of decoded minus exact sum over the 4 symbols of a round. channel_power: sum over the antennas of |h|^2 for one "
    "client. snr_db: 1/sigma^2, with noise of variance sigma^2/L in each chip and real dimension."
)
NOTE_PAPER = "As the paper has it."
NOTE_PILOT = "Beyond the paper: the pilot's amplitude and repetitions."
NOTE_NOMA = "Remark 3, with clients that transmit; a new set of sequences in each round."
NOTE_COMPLEX = "Beyond the paper: complex reception, with one or several antennas."


def setting(clients, sequences, length, family, modulation, snr_db, pilot=(1.0, 1), projector="printed", antennas=1):
    if modulation == "complex":
        note = NOTE_COMPLEX
    elif family == "gaussian":
        note = NOTE_NOMA
    else:
        note = NOTE_PAPER if pilot == (1.0, 1) else NOTE_PILOT
    return {
        "clients": clients, "sequences": sequences, "length": length, "family": family, "modulation": modulation,
        "snr_db": snr_db, "pilot_amplitude": pilot[0], "pilot_repetitions": pilot[1], "projector": projector,
        "antennas": antennas, "note": note,
    }


REAL, CORRECTED, COMPLEX = "real", "phase_corrected", "complex"
SETTINGS = [
    setting(20, 20, 32, "walsh", REAL, 0.0),
    setting(20, 20, 32, "walsh", REAL, 10.0),
    setting(20, 20, 32, "walsh", REAL, 20.0),
    setting(20, 20, 32, "walsh", CORRECTED, 0.0),
    setting(5, 5, 8, "walsh", CORRECTED, 0.0),
    setting(20, 30, 32, "walsh", REAL, 20.0),
    setting(20, 30, 32, "walsh", CORRECTED, 10.0),
    setting(50, 60, 64, "walsh", REAL, 10.0),
    setting(20, 25, 25, "orthonormal", REAL, 0.0),
    setting(20, 25, 25, "orthonormal", CORRECTED, 20.0),
    setting(10, 12, 17, "orthonormal", REAL, 10.0),
    setting(20, 25, 32, "walsh", REAL, 10.0, pilot=(2.0, 3)),
    setting(10, 13, 20, "orthonormal", CORRECTED, 0.0, pilot=(0.5, 2)),
    setting(20, 30, 16, "gaussian", REAL, 20.0),
    setting(20, 30, 32, "gaussian", CORRECTED, 0.0),
    setting(10, 30, 24, "gaussian", REAL, 40.0),
    setting(20, 30, 32, "gaussian", REAL, 20.0, projector="normalised"),
    setting(20, 30, 32, "gaussian", CORRECTED, 10.0, projector="normalised"),
    setting(20, 20, 16, "gaussian", REAL, 0.0, pilot=(3.0, 2), projector="normalised"),
    setting(20, 20, 32, "walsh", COMPLEX, 0.0),
    setting(20, 30, 32, "walsh", COMPLEX, 20.0),
    setting(20, 30, 32, "gaussian", COMPLEX, 20.0, projector="normalised"),
    setting(20, 30, 32, "walsh", COMPLEX, 10.0, antennas=2),
    setting(20, 30, 32, "gaussian", COMPLEX, 20.0, projector="normalised", antennas=2),
    setting(20, 25, 32, "walsh", COMPLEX, 0.0, antennas=4),
    setting(20, 25, 25, "orthonormal", COMPLEX, 10.0, pilot=(2.0, 3), antennas=4),
]


def hadamard(order):
    """Sylvester's matrix, by Kronecker products."""
    matrix = np.ones((1, 1))
    while len(matrix) < order:
        matrix = np.kron(matrix, np.array([[1.0, 1.0], [1.0, -1.0]]))
    assert len(matrix) == order, "a power of two"
    return matrix


def draw_sequences(rng, rounds, family, count, length):
    """The sets of the rounds, one sequence in each column: rounds x L x N."""
    if family == "walsh":
        columns = hadamard(length)[:, :count] / np.sqrt(length)
        return np.broadcast_to(columns, (rounds, length, count))
    normals = rng.standard_normal((rounds, length, count))
    if family == "gaussian":
        return normals / np.sqrt(length)
    q, r = np.linalg.qr(normals)
    return q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]


def draw_channels(rng, modulation, shape):
    """h ~ CN(0, 1), and what the receiver sees of it."""
    h = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / np.sqrt(2)
    return {REAL: np.real, CORRECTED: np.abs, COMPLEX: np.asarray}[modulation](h)


def draw_noise(rng, std, shape, is_complex):
    """White noise, with `std` in each real dimension."""
    noise = std * rng.standard_normal(shape)
    return noise + 1j * std * rng.standard_normal(shape) if is_complex else noise


def simulate(rng, rounds, clients, sequences, length, family, modulation, snr_db, pilot_amplitude, pilot_repetitions,
             projector, antennas, note):
    """One batch of rounds. Axes: round, antenna, then chip or client or sequence, then symbol."""
    is_complex = modulation == COMPLEX
    s = 10 ** (-snr_db / 20) / np.sqrt(length)
    everyone = draw_sequences(rng, rounds, family, sequences, length)
    own = np.argsort(rng.random((rounds, sequences)), axis=1)[:, :clients]  # the sequence of each client
    used = np.take_along_axis(everyone, own[:, None, :], axis=2)[:, None]
    every = everyone[:, None]
    h = draw_channels(rng, modulation, (rounds, antennas, clients))

    on_air = used @ h[..., None]
    pilot = np.zeros_like(on_air)
    for _ in range(pilot_repetitions):
        pilot += pilot_amplitude * on_air + draw_noise(rng, s, on_air.shape, is_complex)
    pilot /= pilot_repetitions * pilot_amplitude
    estimates = np.swapaxes(every, 2, 3) @ pilot

    weights = estimates.conj() / np.sum(np.abs(estimates) ** 2, axis=1, keepdims=True)
    v = every @ weights
    if projector == "normalised":
        v = v * clients / np.sum(v * pilot, axis=(1, 2), keepdims=True)

    payload = rng.standard_normal((rounds, 1, clients, SYMBOLS))
    received = used @ (h[..., None] * payload)
    received = received + draw_noise(rng, s, received.shape, is_complex)
    decoded = np.real(np.sum(v * received, axis=(1, 2)))

    gains = np.real(np.sum(h * np.sum(v * used, axis=2), axis=1))
    error = decoded - np.sum(payload[:, 0], axis=1)
    result = {
        "nu": s * np.sqrt(np.sum(np.abs(v) ** 2, axis=(1, 2, 3))),
        "mean_gain": np.mean(gains, axis=1),
        "decoded": decoded[:, 0],
        "rms_error": np.sqrt(np.mean(error**2, axis=1)),
    }
    if is_complex:
        result["channel_power"] = np.sum(np.abs(h[:, :, 0]) ** 2, axis=1)
    return result


def quantiles(sample):
    """Of which the empirical distribution function is exactly i/LEVELS."""
    ordered = np.sort(sample)
    return [float(f"{ordered[i * len(sample) // LEVELS - 1]:.6g}") for i in range(1, LEVELS)]


def record():
    recorded = []
    for index, chosen in enumerate(SETTINGS):
        rng = np.random.default_rng([SEED, index])
        batches = [simulate(rng, BATCH, **chosen) for _ in range(ROUNDS // BATCH)]
        distributions = {
            name: quantiles(np.concatenate([batch[name] for batch in batches])) for name in batches[0]
        }
        recorded.append({**chosen, "quantiles": distributions})
        print(index + 1, "of", len(SETTINGS), file=sys.stderr)
    return {
        "about": ABOUT, "versions": {"numpy": np.__version__}, "rounds": ROUNDS, "levels": LEVELS, "symbols": SYMBOLS,
        "settings": recorded,
    }


def as_text(result):
    """JSON with one distribution on a line."""
    parts = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in result.items() if key != "settings"]
    entries = []
    for entry in result["settings"]:
        distributions = ",\n".join(
            f"    {json.dumps(name)}: {json.dumps(values, separators=(',', ':'))}"
            for name, values in entry["quantiles"].items()
        )
        fields = json.dumps({key: value for key, value in entry.items() if key != "quantiles"})
        entries.append(f'  {fields[:-1]}, "quantiles": {{\n{distributions}\n  }}}}')
    parts.append(' "settings": [\n' + ",\n".join(entries) + "\n ]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def same(made, recorded):
    """Whether two results agree, numbers up to TOLERANCE; versions may differ."""
    if isinstance(made, dict) and isinstance(recorded, dict):
        names = (made.keys() | recorded.keys()) - {"versions"}
        return all(name in made and name in recorded and same(made[name], recorded[name]) for name in names)
    if isinstance(made, list) and isinstance(recorded, list):
        return len(made) == len(recorded) and all(map(same, made, recorded))
    if isinstance(made, float) and isinstance(recorded, float):
        return abs(made - recorded) <= TOLERANCE * max(abs(made), abs(recorded), 1e-3)
    return made == recorded


def main():
    made = as_text(record())
    if "--check" not in sys.argv[1:]:
        FILE.write_text(made)
    elif not same(json.loads(made), json.loads(FILE.read_text())):
        sys.exit(f"{FILE} is not what this script makes")


if __name__ == "__main__":
    main()
