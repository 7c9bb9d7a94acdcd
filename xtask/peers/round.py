"""The reference round without radio, as a careful user of each library would write it. Prints one JSON object.

20 clients, 200 samples each, freshly shuffled every round, 4 steps of 50 samples, multinomial
logistic regression from 400 features to 10 classes with an L2 penalty, single precision, the mean
of the 20 results, then test loss and accuracy on 1000 samples. The features are random numbers.

    python -m pip install -r requirements.txt -r requirements-round.txt
    python round.py numpy|numpy-plain|jax|torch|torch-per-client|pfl|flower [--rounds n]

numpy, jax, torch    all clients in one batched product
numpy-plain          the same as most people would write it, without tuning
torch-per-client     a loop over the clients with automatic differentiation
pfl, flower          the simulators of these two libraries

Every library gets one thread unless the environment sets another number; Flower may also use its own
worker processes. CPU time is the mean over the rounds and counts such processes; the other time
is the median.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")

import numpy as np

CLIENTS, SAMPLES, BATCH, TESTED = 20, 200, 50, 1000
FEATURES, CLASSES = 400, 10
RATE, PENALTY = 0.005, 0.01
WARM_UP = 5  # rounds that are not counted


def make_samples(rng, count):
    return rng.random((count, FEATURES), dtype=np.float32), rng.integers(0, CLASSES, count)


def make_data():
    rng = np.random.default_rng(1)
    return make_samples(rng, CLIENTS * SAMPLES), make_samples(rng, TESTED)


# NumPy: weights (client, class, feature) and scores (client, class, sample), which is fastest


def numpy_gradient(scores, labels):
    """Turns scores into the gradient of the cross-entropy, in place; the classes are on axis -2."""
    scores -= scores.max(axis=-2, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-2, keepdims=True)
    scores -= labels[..., None, :] == np.arange(CLASSES)[:, None]
    scores *= np.float32(RATE / BATCH)


def numpy_test(weights, bias, features, labels):
    scores = np.ascontiguousarray((features @ weights.T + bias).T)
    scores -= scores.max(axis=0)
    chosen = scores[labels, np.arange(len(labels))]
    losses = np.log(np.exp(scores).sum(axis=0)) - chosen
    penalty = PENALTY * (np.vdot(weights, weights) + np.vdot(bias, bias))
    return losses.mean() + penalty, np.mean(scores.argmax(axis=0) == labels)


def numpy_round():
    (features, labels), test = make_data()
    rng = np.random.default_rng(2)
    order = np.arange(CLIENTS * SAMPLES).reshape(CLIENTS, SAMPLES)
    gathered = np.empty((CLIENTS * BATCH, FEATURES), dtype=np.float32)
    batch = gathered.reshape(CLIENTS, BATCH, FEATURES)
    update = np.empty((CLIENTS, CLASSES, FEATURES), dtype=np.float32)
    shrink = np.float32(1 - 2 * RATE * PENALTY)
    state = [np.zeros((CLASSES, FEATURES), np.float32), np.zeros(CLASSES, np.float32)]

    def work():
        weights = np.repeat(state[0][None], CLIENTS, axis=0)
        bias = np.repeat(state[1][None], CLIENTS, axis=0)
        rng.permuted(order, axis=1, out=order)
        for start in range(0, SAMPLES, BATCH):
            chosen = order[:, start : start + BATCH]
            np.take(features, chosen.ravel(), axis=0, out=gathered, mode="clip")
            scores = weights @ batch.transpose(0, 2, 1)
            scores += bias[:, :, None]
            numpy_gradient(scores, labels[chosen])
            weights *= shrink
            weights -= np.matmul(scores, batch, out=update)
            bias *= shrink
            bias -= scores.sum(axis=2)
        state[:] = weights.mean(axis=0), bias.mean(axis=0)
        return numpy_test(*state, *test)

    return work


def numpy_plain_round():
    (features, labels), test = make_data()
    features = features.reshape(CLIENTS, SAMPLES, FEATURES)
    one_hot = np.eye(CLASSES, dtype=np.float32)[labels].reshape(CLIENTS, SAMPLES, CLASSES)
    rng = np.random.default_rng(2)
    rows = np.arange(CLIENTS)[:, None]
    order = np.tile(np.arange(SAMPLES), (CLIENTS, 1))
    state = [np.zeros((FEATURES, CLASSES), np.float32), np.zeros(CLASSES, np.float32)]

    def work():
        weights = np.tile(state[0], (CLIENTS, 1, 1))
        bias = np.tile(state[1], (CLIENTS, 1, 1))
        shuffled = rng.permuted(order, axis=1)
        for start in range(0, SAMPLES, BATCH):
            chosen = shuffled[:, start : start + BATCH]
            batch = features[rows, chosen]
            scores = batch @ weights + bias
            slopes = np.exp(scores - scores.max(axis=2, keepdims=True))
            slopes /= slopes.sum(axis=2, keepdims=True)
            slopes -= one_hot[rows, chosen]
            slopes /= BATCH
            weights -= RATE * (batch.transpose(0, 2, 1) @ slopes + 2 * PENALTY * weights)
            bias -= RATE * (slopes.sum(axis=1, keepdims=True) + 2 * PENALTY * bias)
        state[:] = weights.mean(axis=0), bias.mean(axis=0)[0]
        return numpy_test(state[0].T, state[1], *test)

    return work


# JAX: the whole round in one compiled function


def jax_round():
    import jax
    import jax.numpy as jnp

    (features, labels), test = make_data()
    features = jnp.asarray(features.reshape(CLIENTS, SAMPLES, FEATURES))
    labels = jnp.asarray(labels.reshape(CLIENTS, SAMPLES))
    test = jax.tree.map(jnp.asarray, test)

    def loss(parameters, features, labels):
        weights, bias = parameters
        logs = jax.nn.log_softmax(features @ weights.T + bias)
        penalty = PENALTY * (jnp.vdot(weights, weights) + jnp.vdot(bias, bias))
        return penalty - jnp.take_along_axis(logs, labels[:, None], axis=1).mean()

    def train_client(parameters, features, labels, order):
        for batch in order.reshape(-1, BATCH):
            slopes = jax.grad(loss)(parameters, features[batch], labels[batch])
            parameters = jax.tree.map(lambda p, s: p - RATE * s, parameters, slopes)
        return parameters

    @jax.jit
    def one_round(parameters, features, labels, test, order):
        results = jax.vmap(train_client, in_axes=(None, 0, 0, 0))(parameters, features, labels, order)
        parameters = jax.tree.map(lambda result: result.mean(axis=0), results)
        weights, bias = parameters
        right = (test[0] @ weights.T + bias).argmax(axis=1) == test[1]
        return parameters, loss(parameters, *test), right.mean()

    rng = np.random.default_rng(2)
    order = np.tile(np.arange(SAMPLES), (CLIENTS, 1))
    state = [(jnp.zeros((CLASSES, FEATURES)), jnp.zeros(CLASSES))]

    def work():
        parameters, test_loss, accuracy = one_round(state[0], features, labels, test, rng.permuted(order, axis=1))
        state[0] = parameters
        return float(test_loss), float(accuracy)

    return work


# PyTorch


def torch_data():
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(1)
    return [tuple(map(torch.from_numpy, samples)) for samples in make_data()]


def torch_penalty(parameters):
    return PENALTY * sum(parameter.square().sum() for parameter in parameters)


def torch_test(weights, bias, features, labels):
    import torch

    scores = torch.addmm(bias, features, weights.T)
    loss = torch.nn.functional.cross_entropy(scores, labels) + torch_penalty((weights, bias))
    return loss.item(), (scores.argmax(dim=1) == labels).float().mean().item()


def torch_round():
    """By hand, without automatic differentiation, laid out as in NumPy."""
    import torch

    (features, labels), test = torch_data()
    one_hot = torch.nn.functional.one_hot(labels, CLASSES).float()
    first = torch.arange(0, CLIENTS * SAMPLES, SAMPLES)[:, None]
    gathered = torch.empty(CLIENTS * BATCH, FEATURES)
    batch = gathered.view(CLIENTS, BATCH, FEATURES)
    shrink = 1 - 2 * RATE * PENALTY
    state = [torch.zeros(CLASSES, FEATURES), torch.zeros(CLASSES)]

    @torch.inference_mode()
    def work():
        weights = state[0].repeat(CLIENTS, 1, 1)
        bias = state[1].repeat(CLIENTS, 1)
        order = torch.rand(CLIENTS, SAMPLES).argsort(dim=1) + first
        for chosen in order.split(BATCH, dim=1):
            chosen = chosen.flatten()
            torch.index_select(features, 0, chosen, out=gathered)
            scores = torch.baddbmm(bias[:, :, None], weights, batch.mT)
            slopes = scores.softmax(dim=1).sub_(one_hot[chosen].view(CLIENTS, BATCH, CLASSES).mT)
            weights.baddbmm_(slopes, batch, beta=shrink, alpha=-RATE / BATCH)
            bias.mul_(shrink).sub_(slopes.sum(dim=2), alpha=RATE / BATCH)
        state[:] = weights.mean(dim=0), bias.mean(dim=0)
        return torch_test(*state, *test)

    return work


def torch_per_client_round():
    """One model and one optimizer, the clients one after another."""
    import torch

    (features, labels), test = torch_data()
    features, labels = features.split(SAMPLES), labels.split(SAMPLES)
    model = torch.nn.Linear(FEATURES, CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, weight_decay=2 * PENALTY)
    state = [torch.zeros_like(parameter) for parameter in model.parameters()]

    def train_client(features, labels):
        with torch.no_grad():
            for parameter, start in zip(model.parameters(), state):
                parameter.copy_(start)
        for chosen in torch.randperm(SAMPLES).split(BATCH):
            optimizer.zero_grad()
            scores = model(features[chosen])
            torch.nn.functional.cross_entropy(scores, labels[chosen]).backward()
            optimizer.step()
        return [parameter.detach().clone() for parameter in model.parameters()]

    def work():
        results = [train_client(*client) for client in zip(features, labels)]
        state[:] = [torch.stack(parts).mean(dim=0) for parts in zip(*results)]
        return torch_test(*state, *test)

    return work


# Simulators


def pfl_run(rounds):
    import logging

    import torch
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.callback.central_evaluation import CentralEvaluationCallback
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
    from pfl.metrics import Metrics, Weighted
    from pfl.model.pytorch import PyTorchModel

    logging.disable(logging.INFO)
    (features, labels), test = torch_data()
    features, labels = features.split(SAMPLES), labels.split(SAMPLES)
    clock = Clock(rounds)

    class Model(torch.nn.Linear):
        def loss(self, features, labels):
            return torch.nn.functional.cross_entropy(self(features), labels)

        @torch.no_grad()
        def metrics(self, features, labels):
            count = len(labels)
            loss, accuracy = torch_test(self.weight, self.bias, features, labels)
            return {"loss": Weighted(loss * count, count), "accuracy": Weighted(accuracy * count, count)}

    class EndOfRound(TrainingProcessCallback):
        def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
            clock.tick()
            return False, Metrics()

    def local_optimizer(parameters, lr):
        return torch.optim.SGD(parameters, lr=lr, weight_decay=2 * PENALTY)

    def shuffled(user):
        chosen = torch.randperm(SAMPLES)
        return Dataset((features[user][chosen], labels[user][chosen]))

    module = Model(FEATURES, CLASSES)
    torch.nn.init.zeros_(module.weight)
    torch.nn.init.zeros_(module.bias)
    model = PyTorchModel(module, local_optimizer, torch.optim.SGD(module.parameters(), lr=1.0))
    users = FederatedDataset(shuffled, get_user_sampler("minimize_reuse", list(range(CLIENTS))))
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=WARM_UP + rounds,
            evaluation_frequency=WARM_UP + rounds,
            train_cohort_size=CLIENTS,
            val_cohort_size=0,
        ),
        backend=SimulatedBackend(training_data=users, val_data=users),
        model=model,
        model_train_params=NNTrainHyperParams(
            local_num_epochs=1, local_learning_rate=RATE, local_batch_size=BATCH
        ),
        model_eval_params=NNEvalHyperParams(local_batch_size=None),
        callbacks=[CentralEvaluationCallback(Dataset(test)), EndOfRound()],
        send_metrics_to_platform=False,
    )
    return clock


def flower_run(rounds):
    """The clients compute in NumPy and generate their samples again, which takes little time compared with the rest."""
    import logging

    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    logging.disable(logging.WARNING)
    clock, test = Clock(rounds, cpu_with_children), make_data()[1]
    client_app, server_app = ClientApp(), ServerApp()

    @client_app.train()
    def train(message, context):
        weights, bias = message.content["arrays"].to_numpy_ndarrays()
        features, labels = make_samples(np.random.default_rng(context.node_config["partition-id"]), SAMPLES)
        shrink = np.float32(1 - 2 * RATE * PENALTY)
        for chosen in np.random.default_rng().permutation(SAMPLES).reshape(-1, BATCH):
            batch = features[chosen]
            scores = weights @ batch.T + bias[:, None]
            numpy_gradient(scores, labels[chosen])
            weights = shrink * weights - scores @ batch
            bias = shrink * bias - scores.sum(axis=1)
        metrics = MetricRecord({"num-examples": SAMPLES})
        content = RecordDict({"arrays": ArrayRecord([weights, bias]), "metrics": metrics})
        return Message(content=content, reply_to=message)

    def evaluate(number, arrays):
        loss, accuracy = numpy_test(*arrays.to_numpy_ndarrays(), *test)
        if number > 0:
            clock.tick()
        return MetricRecord({"loss": float(loss), "accuracy": float(accuracy)})

    @server_app.main()
    def serve(grid, context):
        strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=CLIENTS, min_available_nodes=CLIENTS)
        start = [np.zeros((CLASSES, FEATURES), np.float32), np.zeros(CLASSES, np.float32)]
        strategy.start(grid, ArrayRecord(start), num_rounds=WARM_UP + rounds, evaluate_fn=evaluate)

    run_simulation(server_app, client_app, num_supernodes=CLIENTS)
    return clock


# Timing


def cpu_with_children():
    """CPU time of this process and of all its living children, at any depth."""
    import psutil

    total = time.process_time()
    for child in psutil.Process().children(recursive=True):
        try:
            used = child.cpu_times()
        except psutil.Error:
            continue
        total += used.user + used.system
    return total


class Clock:
    """Notes the time at the end of each round. The first rounds warm up and are not counted."""

    def __init__(self, rounds, cpu=time.process_time):
        self.rounds, self.cpu = rounds, cpu
        self.ends, self.cpu_seconds = [], []

    def tick(self):
        self.ends.append(time.perf_counter())
        if len(self.ends) in (WARM_UP, WARM_UP + self.rounds):
            self.cpu_seconds.append(self.cpu())

    def report(self):
        first, last = self.cpu_seconds
        return {
            "cpu_seconds_per_round": (last - first) / self.rounds,
            "seconds_per_round": float(np.median(np.diff(self.ends[WARM_UP - 1 :]))),
            "rounds": self.rounds,
        }


def run_alone(make_round):
    """Times a peer that gives its round as a function."""

    def run(rounds):
        work, clock = make_round(), Clock(rounds)
        for _ in range(WARM_UP + rounds):
            work()
            clock.tick()
        return clock

    return run


# The packages that a peer needs, the first of which gives its version, and how it runs
PEERS = {
    "numpy": (["numpy"], run_alone(numpy_round)),
    "numpy-plain": (["numpy"], run_alone(numpy_plain_round)),
    "jax": (["jax"], run_alone(jax_round)),
    "torch": (["torch"], run_alone(torch_round)),
    "torch-per-client": (["torch"], run_alone(torch_per_client_round)),
    "pfl": (["pfl", "torch"], pfl_run),
    "flower": (["flwr", "ray", "psutil"], flower_run),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()

    packages, run = PEERS[options.peer]
    if any(importlib.util.find_spec(package) is None for package in packages):
        print(json.dumps({"peer": options.peer, "missing": True}))
        return
    version = importlib.metadata.version(packages[0])
    print(json.dumps({"peer": options.peer, "version": version} | run(options.rounds).report()))


if __name__ == "__main__":
    main()
