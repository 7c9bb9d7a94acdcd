"""The training of a round of a convolutional network in PyTorch, client by client. Prints one JSON object.

50 clients, 50 samples of 3×32×32 each, one epoch in 5 steps of 10 samples, plain SGD. The network is the one that
federated learning libraries compare themselves with on CIFAR-10: 1,626,442 parameters. The features are random numbers.
The round ends with the mean of the clients' models; nothing is tested.

    python -m pip install -r requirements.txt -r requirements-round.txt
    python cnn.py [--rounds n] [--threads n]

One model is used for all clients, one after another, on as many threads as asked for. CPU time is the mean over the
rounds, the other time is the median.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import time

import numpy as np

CLIENTS, SAMPLES, BATCH = 50, 50, 10
CLASSES, RATE = 10, 0.1
WARM_UP = 1  # rounds that are not counted


def make_round(threads):
    import torch
    from torch import nn

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    features = torch.from_numpy(rng.random((CLIENTS, SAMPLES, 3, 32, 32), dtype=np.float32))
    labels = torch.from_numpy(rng.integers(0, CLASSES, (CLIENTS, SAMPLES)))
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(12_544, 128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, CLASSES),
    )
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=RATE)
    state = [parameter.detach().clone() for parameter in parameters]

    def work():
        sums = [torch.zeros_like(parameter) for parameter in state]
        for client in range(CLIENTS):
            with torch.no_grad():
                for parameter, start in zip(parameters, state):
                    parameter.copy_(start)
            for chosen in torch.randperm(SAMPLES).split(BATCH):
                optimizer.zero_grad()
                scores = model(features[client, chosen])
                nn.functional.cross_entropy(scores, labels[client, chosen]).backward()
                optimizer.step()
            with torch.no_grad():
                for total, parameter in zip(sums, parameters):
                    total.add_(parameter)
        state[:] = [total.div_(CLIENTS) for total in sums]

    return work


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print(json.dumps({"peer": "torch", "missing": True}))
        return
    work, seconds = make_round(options.threads), []
    for _ in range(WARM_UP):
        work()
    cpu = time.process_time()
    for _ in range(options.rounds):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    cpu = (time.process_time() - cpu) / options.rounds
    measured = {"cpu_seconds_per_round": cpu, "seconds_per_round": float(np.median(seconds))}
    print(json.dumps({"peer": "torch", "version": importlib.metadata.version("torch")} | measured))


if __name__ == "__main__":
    main()
