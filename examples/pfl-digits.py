"""Federated averaging with pfl, over the air.

Two hundred users with twenty digits each train a logistic model with pfl's `FederatedAveraging`. Their
updates reach the server over a simulated FLORAS uplink: one line in the list of postprocessors. It takes
about half a minute.

    pip install "./python[pfl]"
    python examples/pfl-digits.py
"""

import time

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import MinimizeReuseUserSampler
from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel

import floras
from floras.pfl import FlorasAccountant, FlorasUplink

ROUNDS = 40
# Twenty digits per user are too little work for several threads; a second thread would mostly wait.
torch.set_num_threads(1)

# 1. The data.
#
# `floras.federate` distributes the digits exactly as `floras run quick` does: 200 users, 20 samples each, at
# random. pfl needs a dictionary from a user's name to the user's arrays, and a sampler of users. Here every
# user takes part in every round, so the order does not matter. To select K of M users, use
# `floras.pfl.CohortSampler`: the accounting assumes it.
federated = floras.federate("quick")
users = {str(number): data for number, data in enumerate(federated.clients)}
training_data = FederatedDataset.from_slices(users, MinimizeReuseUserSampler(list(users)))
test_images, test_labels = (torch.as_tensor(array) for array in federated.test)


# 2. The model: multinomial logistic regression, the one of the experiments, with its penalty on all
# parameters.
class Logistic(torch.nn.Module):
    """Multinomial logistic regression that starts from zero."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(400, 10)
        torch.nn.init.zeros_(self.linear.weight)
        torch.nn.init.zeros_(self.linear.bias)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return a score for every digit."""
        return self.linear(images)

    def loss(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the objective of a user. pfl passes all arrays as float32."""
        penalty = sum(parameter.square().sum() for parameter in self.parameters())
        return torch.nn.functional.cross_entropy(self(images), labels.long()) + 0.01 * penalty

    @torch.no_grad()
    def metrics(self, images: torch.Tensor, labels: torch.Tensor) -> dict[str, Weighted]:
        """Return the metrics that pfl reports for a user. Here there are none: the test digits are enough."""
        return {}

    @torch.no_grad()
    def accuracy(self) -> float:
        """Return the share of test digits that are recognised."""
        return (self(test_images).argmax(dim=1) == test_labels).float().mean().item()


# 3. The uplink.
#
# The accountant plans the privacy: 220 sequences for 200 users leave 20 unused, and these add the noise. With
# `epsilon` instead of `sequences`, the accountant finds the fewest sequences that meet it. `length` must be a
# power of two that is at least the number of sequences.
#
# The mechanism draws the channel of every round: a gain for each user, noise for the sum. Without a seed
# the noise is fit for real data, as it must be if the result is to be published. With `seed=1` the run can be
# repeated, and no view is a guarantee.
plan = FlorasAccountant(
    rounds=ROUNDS,
    per_round=len(users),
    clip=1.0,
    delta=1e-5,
    sequences=220,
    length=256,
    modulation="phase-corrected",
    receiver="clipped=2",
    snr_db=20.0,
)
mechanism = FlorasUplink.from_privacy_accountant(plan, seed=1, epsilon_every=10)


# 4. The training. Below, only `postprocessors` depends on the radio; the uplink must be its last entry.
class Progress(TrainingProcessCallback):
    """Prints a line every few rounds."""

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: PyTorchModel, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        """Print the accuracy so far, and the metrics of pfl for the round."""
        done = central_iteration + 1
        if done == 1 or done % 10 == 0:
            shown = aggregate_metrics.to_simple_dict()
            noise = shown.get("Central DP | DP noise std. dev. on summed stats")
            epsilon = shown.get("Central DP | epsilon (actual, no guarantee)")
            radio = (
                "" if noise is None else f", noise {noise:.2f}, epsilon so far {epsilon:.2f} (actual view)"
            )
            print(f"  round {done}: accuracy {model.pytorch_model.accuracy():.3f}{radio}", flush=True)
        return False, Metrics()


def train(postprocessors: list) -> float:
    """Train from zero and return the accuracy on the test digits."""
    module = Logistic()
    # The server's step is the mean of the updates as it is: w <- w + sum/K.
    model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), lr=1.0))
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=ROUNDS,
            evaluation_frequency=ROUNDS + 1,
            train_cohort_size=len(users),
            val_cohort_size=None,
        ),
        backend=SimulatedBackend(training_data, training_data, postprocessors),
        model=model,
        model_train_params=NNTrainHyperParams(
            local_num_epochs=1, local_learning_rate=1.0, local_batch_size=20
        ),
        model_eval_params=NNEvalHyperParams(local_batch_size=None),
        callbacks=[Progress()],
        send_metrics_to_platform=False,
    )
    return module.accuracy()


begin = time.perf_counter()
print("pfl alone, without noise and without privacy")
plain = train([])
print("over the air")
private = train([mechanism])

# 5. Accuracy and privacy.
#
# The server simulates the radio, so it sees the users' clipped updates itself. The numbers hold for
# adversaries who see the output of the simulated base station, and equal those of a real radio.
print()
print(f"accuracy after {ROUNDS} rounds: {private:.3f} over the air, {plain:.3f} without")
print(f"{mechanism.ledger.rounds} rounds on record, delta = {mechanism.ledger.delta:g}")
print(mechanism.ledger.views())
print(f"{time.perf_counter() - begin:.0f} s")
