# mypy: disable-error-code="import-untyped,import-not-found,misc"
"""Small federations for the tests of `floras.pfl`, on the real backend of pfl."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.common_types import Population
from pfl.context import CentralContext
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import MinimizeReuseUserSampler
from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from pfl.stats import MappedVectorStatistics

# The models are small, and a second thread would mostly wait for the first.
torch.set_num_threads(1)

Updates = Mapping[str, "npt.NDArray[np.float32] | None"]


class KnownUpdates:
    """An algorithm whose users return what they hold; a user that holds nothing returns nothing."""

    def __init__(self, weight: float = 1.0) -> None:
        self._weight = weight

    def simulate_one_user(self, model: Any, user: Dataset, context: CentralContext) -> tuple[Any, Metrics]:
        (update,) = user.raw_data
        if update is None:
            return None, Metrics()
        # Two tensors, as a model with weights and bias would have.
        halves = {
            "weight": torch.tensor(update[: len(update) // 2]),
            "bias": torch.tensor(update[len(update) // 2 :]),
        }
        return MappedVectorStatistics(halves, weight=self._weight), Metrics()


class _Known(Dataset):
    def __len__(self) -> int:
        return 1


def context(
    cohort_size: int, population: Population = Population.TRAIN, iteration: int = 0
) -> CentralContext:
    """Return what pfl's algorithms hand to a backend for one round."""
    return CentralContext(
        current_central_iteration=iteration,
        do_evaluation=False,
        cohort_size=cohort_size,
        population=population,
        algorithm_params=None,
        model_train_params=None,
        seed=1,
    )


def backend(updates: Updates, postprocessors: Sequence[Any], sampler: Callable[[], str] | None = None) -> Any:
    """Return a backend whose users hold the given updates, and are asked in this order."""
    users = FederatedDataset(
        lambda user: _Known((updates[user],), user_id=user),
        sampler or MinimizeReuseUserSampler(list(updates)),
    )
    return SimulatedBackend(users, users, list(postprocessors))


def gather(
    updates: Updates,
    postprocessors: Sequence[Any],
    *,
    population: Population = Population.TRAIN,
    weight: float = 1.0,
    sampler: Callable[[], str] | None = None,
) -> tuple[Any, Metrics]:
    """Run one round over users with known updates."""
    stats, metrics = backend(updates, postprocessors, sampler).gather_results(
        None, KnownUpdates(weight), central_context=context(len(updates), population)
    )
    return stats, metrics


def values(stats: MappedVectorStatistics) -> npt.NDArray[np.float32]:
    """Return the statistics as one vector."""
    return np.concatenate([np.asarray(tensor).ravel() for tensor in stats.values()])


class Logistic(torch.nn.Module):
    """Multinomial logistic regression from zero, with what pfl asks of a model."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(features, classes)
        torch.nn.init.zeros_(self.linear.weight)
        torch.nn.init.zeros_(self.linear.bias)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.linear(images)
        return scores

    def loss(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(self(images), labels.long())

    @torch.no_grad()
    def metrics(self, images: torch.Tensor, labels: torch.Tensor) -> dict[str, Weighted]:
        right = (self(images).argmax(dim=1) == labels.long()).sum().item()
        return {"accuracy": Weighted(right, len(labels))}


class Keep(TrainingProcessCallback):
    """Keeps the metrics of every round."""

    def __init__(self) -> None:
        self.rounds: list[Metrics] = []

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: Any, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        self.rounds.append(aggregate_metrics)
        return False, Metrics()


def train(
    clients: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]],
    postprocessors: Sequence[Any],
    *,
    rounds: int,
    rate: float = 1.0,
    validate: bool = False,
) -> tuple[npt.NDArray[np.float32], list[Metrics]]:
    """Train a logistic model with pfl's averaging; return its parameters and the metrics of all rounds."""
    data = {str(number): client for number, client in enumerate(clients)}
    users = FederatedDataset.from_slices(data, MinimizeReuseUserSampler(list(data)))
    module = Logistic(clients[0][0].shape[1], 10)
    model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), lr=1.0))
    kept = Keep()
    # pfl's `gather_results` leaves the thread without an event loop, and its `run` asks for one.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=rounds,
            evaluation_frequency=1 if validate else rounds + 1,
            train_cohort_size=len(clients),
            val_cohort_size=len(clients) if validate else None,
        ),
        backend=SimulatedBackend(users, users, list(postprocessors)),
        model=model,
        model_train_params=NNTrainHyperParams(
            local_num_epochs=1, local_learning_rate=rate, local_batch_size=20
        ),
        model_eval_params=NNEvalHyperParams(local_batch_size=None),
        callbacks=[kept],
        send_metrics_to_platform=False,
    )
    loop.close()
    return values(model.get_parameters()), kept.rounds
