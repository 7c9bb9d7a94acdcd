#!/usr/bin/env python3
"""Reference values for federated averaging without any radio, in NumPy and double precision.

Written from the description of the tasks and not from the Rust code, so that the two check each
other. The digits are read from crates/floras-learn/data. One run takes a minute or two.

    python3 -m pip install numpy==2.4.6
    python3 crates/floras-sim/tests/reference/ideal.py            write ideal.json beside this file
    python3 crates/floras-sim/tests/reference/ideal.py --check    exit with 1 if ideal.json differs
"""

import gzip
import json
import math
import pathlib
import sys

import numpy as np

FILE = pathlib.Path(__file__).with_name("ideal.json")
DATA = pathlib.Path(__file__).parents[3] / "floras-learn" / "data"
SIDE = 20  # pixels on each side of a reduced image
TRAIN = 4000  # samples for training; the rest are for testing
CLASSES, PIXELS, HIDDEN = 10, SIDE * SIDE, 32
PENALTY = 0.01
TRIALS = 10

TASKS = {
    "full_batch": {"clients": 20, "per_round": 20, "partition": "iid", "rate": 0.5, "rounds": 50},
    "iid": {
        "clients": 20, "per_round": 20, "partition": "iid", "batch": 20, "rate": 0.005, "rounds": 300,
    },
    "one_label": {
        "clients": 20, "per_round": 20, "partition": "one_label", "batch": 20, "rate": 0.001, "rounds": 300,
    },
    "sampled": {
        "clients": 20, "per_round": 5, "partition": "iid", "batch": 20, "rate": 0.05, "rounds": 100,
    },
    "mlp": {"hidden": HIDDEN, "rate": 0.5, "rounds": 20},
}


# The digits


def read_idx(name):
    """One gzipped IDX file of bytes."""
    content = gzip.decompress((DATA / name).read_bytes())
    dimensions = content[3]
    shape = np.frombuffer(content, ">u4", count=dimensions, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def keys_cubic(x):
    """The cubic kernel of Keys with a = -1/2."""
    x = np.abs(x)
    near = 1.5 * x**3 - 2.5 * x**2 + 1
    far = -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
    return np.where(x <= 1, near, np.where(x <= 2, far, 0.0))


def resize_matrix(before, after):
    """The matrix that reduces `before` pixels to `after`, its kernel widened against aliasing."""
    widening = before / after
    matrix = np.zeros((after, before))
    for row in range(after):
        centre = (row + 0.5) * widening - 0.5
        reach = math.ceil(2 * widening)
        taps = np.arange(math.floor(centre) - reach, math.floor(centre) + reach + 2)
        weights = keys_cubic((taps - centre) / widening)
        np.add.at(matrix[row], np.clip(taps, 0, before - 1), weights / weights.sum())
    return matrix


def load_digits():
    """Features with a last column of ones, and labels, one image of each digit after another."""
    images = read_idx("digits-images-idx3-ubyte.gz") / 255
    labels = read_idx("digits-labels-idx1-ubyte.gz").astype(int)
    matrix = resize_matrix(images.shape[1], SIDE)
    pixels = (matrix @ images @ matrix.T).reshape(len(labels), PIXELS)
    order = np.arange(len(labels)).reshape(CLASSES, -1).T.ravel()
    features = np.hstack([pixels[order], np.ones((len(labels), 1))])
    return features, labels[order]


# Multinomial logistic regression: weights (10, 401), the last column is the bias


def log_softmax(scores):
    scores = scores - scores.max(axis=1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def cross_entropy(scores, labels):
    return -log_softmax(scores)[np.arange(len(labels)), labels].mean()


def score_gradient(scores, labels):
    """Gradient of the mean cross-entropy with respect to the scores."""
    gradient = np.exp(log_softmax(scores))
    gradient[np.arange(len(labels)), labels] -= 1
    return gradient / len(labels)


def loss(weights, features, labels):
    return cross_entropy(features @ weights.T, labels) + PENALTY * (weights**2).sum()


def gradient(weights, features, labels):
    return score_gradient(features @ weights.T, labels).T @ features + 2 * PENALTY * weights


def measure(weights, train, test):
    return {
        "train_loss": loss(weights, *train),
        "test_loss": loss(weights, *test),
        "test_accuracy": np.mean((test[0] @ weights.T).argmax(axis=1) == test[1]),
    }


# Federated averaging


def partition_iid(rng, labels, clients):
    return rng.permutation(len(labels)).reshape(clients, -1)


def partition_one_label(rng, labels, clients):
    """Clients 0 and 1 hold the digit 0, clients 2 and 3 the digit 1, and so on."""
    of_digit = [rng.permutation(np.flatnonzero(labels == digit)) for digit in range(CLASSES)]
    return np.concatenate(of_digit).reshape(clients, -1)


PARTITIONS = {"iid": partition_iid, "one_label": partition_one_label}


def train_client(rng, weights, features, labels, samples, task):
    """One epoch over the samples of one client, in one batch if the task gives no batch size."""
    weights = weights.copy()
    for batch in rng.permutation(samples).reshape(-1, task.get("batch", len(samples))):
        weights -= task["rate"] * gradient(weights, features[batch], labels[batch])
    return weights


def run_rounds(seed, train, task):
    """Yields the weights after each round."""
    rng = np.random.default_rng(seed)
    features, labels = train
    samples_of = PARTITIONS[task["partition"]](rng, labels, task["clients"])
    weights = np.zeros((CLASSES, PIXELS + 1))
    for _ in range(task["rounds"]):
        chosen = rng.choice(task["clients"], task["per_round"], replace=False)
        results = [train_client(rng, weights, features, labels, samples_of[i], task) for i in chosen]
        weights = np.mean(results, axis=0)
        yield weights


def record_full_batch(train, test, task):
    history = list(run_rounds(1, train, task))
    assert np.allclose(history[-1], list(run_rounds(2, train, task))[-1], rtol=0, atol=1e-12)
    check_gradient(history[-1], lambda w: loss(w, *train), gradient(history[-1], *train))
    last = history[-1]
    places = [(0, 210), (1, 210), (3, 130), (5, 250), (7, 289), (9, 170)]
    return {
        "after_round": {str(r): measure(history[r - 1], train, test) for r in (1, 10, task["rounds"])},
        "final_norm": np.linalg.norm(last),
        "final_weights": [{"class": c, "pixel": p, "value": last[c, p]} for c, p in places],
        "final_bias": last[:, PIXELS],
    }


def record_trials(train, test, task):
    trials = []
    for seed in range(1, TRIALS + 1):
        *_, weights = run_rounds(seed, train, task)
        trials.append({"seed": seed} | measure(weights, train, test))
    names = ["train_loss", "test_loss", "test_accuracy"]
    columns = {name: [trial[name] for trial in trials] for name in names}
    return {
        "mean": {name: np.mean(column) for name, column in columns.items()},
        "standard_deviation": {name: np.std(column, ddof=1) for name, column in columns.items()},
        "trials": trials,
    }


# The two-layer perceptron: flat parameters W1 (32, 400), b1 (32), W2 (10, 32), b2 (10)


def split_flat(flat):
    shapes = [(HIDDEN, PIXELS), (HIDDEN,), (CLASSES, HIDDEN), (CLASSES,)]
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes)]


def mlp_scores(flat, pixels):
    w1, b1, w2, b2 = split_flat(flat)
    hidden = np.maximum(pixels @ w1.T + b1, 0)
    return hidden, hidden @ w2.T + b2


def mlp_gradient(flat, pixels, labels):
    hidden, scores = mlp_scores(flat, pixels)
    of_scores = score_gradient(scores, labels)
    of_hidden = (of_scores @ split_flat(flat)[2]) * (hidden > 0)
    parts = [of_hidden.T @ pixels, of_hidden.sum(axis=0), of_scores.T @ hidden, of_scores.sum(axis=0)]
    return np.concatenate([part.ravel() for part in parts])


def mlp_loss(flat, pixels, labels):
    return cross_entropy(mlp_scores(flat, pixels)[1], labels)


def measure_mlp(flat, train, test):
    return {
        "train_loss": mlp_loss(flat, *train),
        "test_loss": mlp_loss(flat, *test),
        "test_accuracy": np.mean(mlp_scores(flat, test[0])[1].argmax(axis=1) == test[1]),
    }


def record_mlp(train, test, task):
    train, test = [(features[:, :PIXELS], labels) for features, labels in (train, test)]
    count = HIDDEN * PIXELS + HIDDEN + CLASSES * HIDDEN + CLASSES
    flat = 0.1 * np.sin(np.arange(count) + 1.0)
    check_gradient(flat, lambda w: mlp_loss(w, *train), mlp_gradient(flat, *train))
    after_round = {}
    for number in range(1, task["rounds"] + 1):
        flat = flat - task["rate"] * mlp_gradient(flat, *train)
        if number in (1, 10, task["rounds"]):
            after_round[str(number)] = measure_mlp(flat, train, test)
    return {"after_round": after_round, "final_norm": np.linalg.norm(flat)}


# Checks and the file


def check_gradient(point, loss_at, claimed):
    """Compares the slope along random directions with that of central differences."""
    rng, step = np.random.default_rng(0), 1e-6
    for _ in range(5):
        direction = rng.standard_normal(point.shape)
        direction /= np.linalg.norm(direction)
        slope = (loss_at(point + step * direction) - loss_at(point - step * direction)) / (2 * step)
        assert abs(slope - (claimed * direction).sum()) < 1e-7


def describe_data(features, labels):
    pixels = features[:, :PIXELS]
    assert abs(pixels.min() + 0.13196) < 5e-6 and abs(pixels.max() - 1.12769) < 5e-6
    assert (np.bincount(labels[:TRAIN]) == TRAIN // CLASSES).all()
    return {
        "train": TRAIN, "test": len(labels) - TRAIN, "pixels": PIXELS, "classes": CLASSES,
        "smallest": pixels.min(), "largest": pixels.max(), "mean": pixels.mean(),
    }


def record():
    features, labels = load_digits()
    train, test = (features[:TRAIN], labels[:TRAIN]), (features[TRAIN:], labels[TRAIN:])
    result = {"numpy": np.__version__, "data": describe_data(features, labels)}
    for name, task in TASKS.items():
        recorder = {"full_batch": record_full_batch, "mlp": record_mlp}.get(name, record_trials)
        penalty = 0.0 if name == "mlp" else PENALTY
        result[name] = {"settings": task | {"penalty": penalty}} | recorder(train, test, task)
    return json.loads(json.dumps(result, default=lambda value: value.tolist()))


def same(left, right):
    """Equal, but numbers may differ by rounding and the version of NumPy by anything."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            key == "numpy" or same(left[key], right[key]) for key in left
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, str) or isinstance(right, str):
        return left == right
    return math.isclose(left, right, rel_tol=1e-7, abs_tol=1e-9)


def main():
    result = record()
    if "--check" in sys.argv[1:]:
        sys.exit(0 if same(result, json.loads(FILE.read_text())) else 1)
    FILE.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
