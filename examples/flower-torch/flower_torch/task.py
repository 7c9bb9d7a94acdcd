"""Data, model and training with PyTorch."""

from functools import cache
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import floras

Config = dict[str, Any]
CLIP_NORM = 1.0
"""Norm to which clients clip. It is in the code of the clients, so that no message changes it."""


class Network(nn.Module):
    """A small convolutional network for digits of 20 by 20 pixels, with 5,338 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the scores of the ten classes."""
        return self.layers(images)


@cache
def federation(seed: int, clients: int) -> floras.Federated:
    """The digits, with the partition of ``floras run``."""
    return floras.federate({"seed": seed, "clients": {"total": clients, "per_round": clients}})


def tensors(samples: tuple[Any, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Images of shape ``(n, 1, 20, 20)``, and labels."""
    images, labels = samples
    return torch.from_numpy(images).reshape(-1, 1, 20, 20), torch.from_numpy(labels)


def initial_model(seed: int) -> Network:
    """The common model before the first round."""
    torch.manual_seed(seed)
    return Network()


def train(model: Network, images: torch.Tensor, labels: torch.Tensor, config: Config) -> float:
    """Train in place by mini-batch gradient descent, and return the mean loss."""
    optimiser = torch.optim.SGD(model.parameters(), lr=config["rate"])
    losses = []
    for _ in range(config["epochs"]):
        for rows in torch.randperm(len(labels)).split(config["batch"]):
            optimiser.zero_grad()
            loss = cross_entropy(model(images[rows]), labels[rows])
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    return sum(losses) / len(losses)


@torch.no_grad()
def evaluate(model: Network, images: torch.Tensor, labels: torch.Tensor) -> tuple[float, float]:
    """Return the mean cross-entropy and the accuracy."""
    scores = model(images)
    return cross_entropy(scores, labels).item(), (scores.argmax(1) == labels).float().mean().item()
