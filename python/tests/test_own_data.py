"""Own arrays and own models in a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import floras

SETTING: dict[str, Any] = {
    "rounds": 3,
    "trials": 2,
    "clients": {"total": 20, "per_round": 10},
    "uplink": {"sequences": 16, "length": 16, "receiver": "clipped=1"},
    "privacy": {"clip": 1.0},
}
DIGITS = floras.load_digits20()
TRAIN = (DIGITS.train_images, DIGITS.train_labels)
TEST = (DIGITS.test_images, DIGITS.test_labels)


class Logistic:
    """The built-in logistic model with one full gradient step, in NumPy."""

    def __init__(self, rate: float = 0.5, classes: int = 10) -> None:
        self.rate = rate
        self.classes = classes
        self.parameters = np.zeros(401 * classes, np.float32)

    def _parts(self, parameters: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        return parameters[: 400 * self.classes].reshape(self.classes, 400), parameters[400 * self.classes :]

    def _softmax(self, parameters: npt.NDArray[Any], x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        weight, bias = self._parts(parameters)
        scores = x @ weight.T + bias
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return scores / scores.sum(axis=1, keepdims=True)

    def local_update(self, parameters: Any, x: Any, y: Any, rng: np.random.Generator) -> Any:
        error = (self._softmax(parameters, x) - np.eye(self.classes)[y]) / len(y)
        return self.rate * np.concatenate([(error.T @ x).ravel(), error.sum(axis=0)])

    def evaluate(self, parameters: Any, x: Any, y: Any) -> tuple[float, float]:
        shares = self._softmax(parameters, x)
        return float(-np.log(shares[np.arange(len(y)), y]).mean()), float((shares.argmax(1) == y).mean())


def test_own_arrays_train_like_the_built_in_set() -> None:
    built_in = floras.run(SETTING)
    own = floras.run(SETTING, data=TRAIN, test=TEST)
    for column, values in built_in.metrics.items():
        np.testing.assert_array_equal(own.metrics[column], values, err_msg=column)
    np.testing.assert_array_equal(own.parameters[1]["weight"], built_in.parameters[1]["weight"])
    assert own.privacy.views == built_in.privacy.views


def test_listed_rows_belong_to_their_clients() -> None:
    federated = floras.federate(SETTING)
    place = {row.tobytes(): number for number, row in enumerate(DIGITS.train_images)}
    rows = [[place[image.tobytes()] for image in images] for images, _ in federated.clients]
    listed = floras.run(SETTING, trials=1, data=TRAIN, test=TEST, clients=rows)
    dealt = floras.run(SETTING, trials=1)
    np.testing.assert_array_equal(listed.metrics["test_loss"], dealt.metrics["test_loss"])
    assert listed.experiment["data"]["partition"] == "given"


def test_images_and_other_types_are_flattened() -> None:
    x = (255 * DIGITS.train_images[:400].reshape(400, 20, 20)).astype(np.int16)
    run = floras.run(
        SETTING, trials=1, data=(x, DIGITS.train_labels[:400].astype(np.uint8)), test=(x, TRAIN[1][:400])
    )
    assert run.parameters[0]["weight"].shape == (10, 400)


def test_other_arrays_cannot_resume_a_run(tmp_path: Path) -> None:
    first = floras.run(SETTING, data=TRAIN, test=TEST, out=tmp_path / "run")
    assert (tmp_path / "run" / "report.html").exists()
    again = floras.run(SETTING, data=TRAIN, test=TEST, out=tmp_path / "run", resume=True)
    assert again.final == first.final
    changed = TRAIN[0].copy()
    changed[7, 3] += 1
    with pytest.raises(ValueError, match=r"holds another experiment: data\.sha256 is"):
        floras.run(SETTING, data=(changed, TRAIN[1]), test=TEST, out=tmp_path / "run", resume=True)
    with pytest.raises(ValueError, match="give the same arrays again"):
        floras.run(first.experiment)


def test_own_and_built_in_models_have_equal_rounds() -> None:
    """One full gradient step per client: partition, selection, channel and noise are those of the core."""
    setting = {**SETTING, "local": {"batch": 200, "epochs": 1, "rate": 0.5}, "model": {"l2": 0.0}}
    built_in = floras.run(setting)
    own = floras.run(setting, data=TRAIN, test=TEST, model=Logistic())
    for column in ("trial", "round", "noise_std", "mean_gain"):
        np.testing.assert_array_equal(own.metrics[column], built_in.metrics[column], err_msg=column)
    for column in ("test_loss", "test_accuracy", "update_norm"):
        np.testing.assert_allclose(own.metrics[column], built_in.metrics[column], rtol=1e-3, err_msg=column)
    assert own.epsilon() == pytest.approx(built_in.epsilon(), rel=1e-3)
    assert own.final is not None
    assert own.final.test_accuracy.ci95 is not None


def test_an_own_model_keeps_the_budget() -> None:
    one = floras.Ledger(floras.Uplink.of_experiment(SETTING)).after(10)
    assert one is not None
    budget = {"privacy.budget": one * 1.01}
    run = floras.run(SETTING, data=TRAIN, test=TEST, model=Logistic(), settings=budget, trials=1)
    assert run.metrics["round"].tolist() == [1]
    with pytest.raises(ValueError, match=r"privacy\.budget must allow at least one round"):
        floras.run(SETTING, data=TRAIN, test=TEST, model=Logistic(), settings={"privacy.budget": one / 2})


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"test": TEST}, ValueError, "need data"),
    ({"data": TRAIN[0]}, TypeError, r"data must be a pair \(x, y\)"),
    ({"data": (TRAIN[0], TRAIN[1][:5])}, ValueError, r"labels of data must have the shape \(4000,\)"),
    ({"data": (TRAIN[0], TRAIN[1] * 0.5)}, TypeError, "labels of data must be integers"),
    ({"data": (TRAIN[0], TRAIN[1] - 1)}, ValueError, "labels of data must be integers from 0, not -1"),
    ({"data": (TRAIN[0] * np.nan, TRAIN[1])}, ValueError, "not finite"),
    ({"data": (TRAIN[0].astype(str), TRAIN[1])}, TypeError, "features of data must be real numbers"),
    ({"data": TRAIN, "test": (TEST[0][:, :300], TEST[1])}, ValueError, "400 features and test samples 300"),
    ({"data": TRAIN, "clients": [[0], [0]]}, ValueError, "row 0 of client 1 is listed twice"),
    ({"data": TRAIN, "clients": [[0], [4000]]}, ValueError, "row 4000 of client 1 must be below 4000"),
    ({"data": TRAIN, "clients": [[0], []]}, ValueError, "client"),
    ({"data": TRAIN, "clients": "fair"}, ValueError, "partition"),
    ({"data": TRAIN, "model": Logistic(), "out": "x"}, ValueError, "not available with an own model"),
    ({"data": TRAIN, "model": object()}, TypeError, "model must have parameters, local_update, evaluate"),
    ({"data": TRAIN, "model": Logistic(classes=9)}, IndexError, "out of bounds"),
]


@pytest.mark.parametrize(("arguments", "error", "words"), BAD)
@pytest.mark.filterwarnings("ignore:without test")
def test_bad_arrays_are_refused(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        floras.run({**SETTING, "clients": {"total": 2, "per_round": 2}}, **arguments)


def test_accuracy_on_training_samples_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="measured on the training samples") as caught:
        floras.run(SETTING, trials=1, rounds=1, data=TRAIN)
    assert caught[0].filename == __file__
