"""Writes layers.json: losses and gradients of small networks, by PyTorch's automatic differentiation.

Recorded with PyTorch 2.15.0 on a CPU, in single precision. Features, labels and parameters follow formulas, which
tests/layers.rs repeats, so that only the results are recorded.

    python layers.py > layers.json
"""

import json

import numpy as np
import torch
from torch import nn

CLASSES, SAMPLES = 3, 4
torch.set_num_threads(1)


def pattern(count, factor, offset, modulus):
    numbers = (np.arange(count, dtype=np.int64) * factor + offset) % modulus
    return (numbers.astype(np.float32) / np.float32(modulus) - np.float32(0.5)).astype(np.float32)


class Residual(nn.Module):
    def __init__(self, inputs, channels, stride, groups):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.norm1 = nn.GroupNorm(groups, channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = nn.GroupNorm(groups, channels)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, channels, 1, stride, bias=False), nn.GroupNorm(groups, channels)
            )

    def forward(self, x):
        inner = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(inner)) + self.shortcut(x))


def conv(inputs, channels, kernel, stride=1, padding=0, bias=True):
    return nn.Conv2d(inputs, channels, kernel, stride, padding, bias=bias)


CASES = [
    ((2, 5, 6), ["conv=3x3"], [conv(2, 3, 3)]),
    ((2, 5, 6), ["conv=3x2,stride=2,padding=1", "relu"], [conv(2, 3, 2, 2, 1), nn.ReLU()]),
    ((1, 7, 7), ["conv=2x3,stride=3,padding=2,no-bias"], [conv(1, 2, 3, 3, 2, False)]),
    ((2, 5, 7), ["max-pool=2"], [nn.MaxPool2d(2)]),
    ((4, 3, 3), ["average-pool"], [nn.AdaptiveAvgPool2d(1)]),
    ((4, 3, 2), ["group-norm=2", "relu"], [nn.GroupNorm(2, 4), nn.ReLU()]),
    ((6, 1, 1), ["linear=5", "relu", "group-norm=1"], [nn.Flatten(), nn.Linear(6, 5), nn.ReLU(), nn.GroupNorm(1, 5)]),
    ((2, 4, 4), ["residual=2,groups=1"], [Residual(2, 2, 1, 1)]),
    ((2, 5, 5), ["residual=4,stride=2,groups=2"], [Residual(2, 4, 2, 2)]),
    (
        (3, 10, 10),
        ["conv=4x3", "relu", "conv=6x3", "relu", "max-pool=2", "dropout=0", "linear=8", "relu"],
        [conv(3, 4, 3), nn.ReLU(), conv(4, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(54, 8), nn.ReLU()],
    ),
    (
        (3, 8, 8),
        [
            "conv=4x3,padding=1,no-bias",
            "group-norm=2",
            "relu",
            "residual=4,groups=2",
            "residual=8,stride=2,groups=2",
            "average-pool",
        ],
        [
            conv(3, 4, 3, 1, 1, False),
            nn.GroupNorm(2, 4),
            nn.ReLU(),
            Residual(4, 4, 1, 2),
            Residual(4, 8, 2, 2),
            nn.AdaptiveAvgPool2d(1),
        ],
    ),
]


def record(shape, layers, modules):
    features = torch.from_numpy(2 * pattern(SAMPLES * int(np.prod(shape)), 37, 5, 101)).reshape(SAMPLES, *shape)
    labels = torch.arange(SAMPLES) % CLASSES
    body = nn.Sequential(*modules, nn.Flatten())
    model = nn.Sequential(body, nn.Linear(body(features).shape[1], CLASSES))
    parameters = list(model.parameters())
    values = torch.from_numpy(pattern(sum(parameter.numel() for parameter in parameters), 53, 7, 127))
    with torch.no_grad():
        for parameter, part in zip(parameters, values.split([parameter.numel() for parameter in parameters])):
            parameter.copy_(part.reshape(parameter.shape))
    loss = nn.functional.cross_entropy(model(features), labels)
    loss.backward()
    gradient = torch.cat([parameter.grad.flatten() for parameter in parameters])
    rounded = [float(f"{value:.8g}") for value in gradient.tolist()]
    return {"shape": "x".join(map(str, shape)), "layers": layers, "loss": loss.item(), "gradient": rounded}


print("[\n" + ",\n".join(json.dumps(record(*case), separators=(",", ":")) for case in CASES) + "\n]")
