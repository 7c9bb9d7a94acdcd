"""Arrays and models of the caller in a run."""

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


def test_custom_and_built_in_models_have_equal_rounds() -> None:
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


def test_a_custom_model_keeps_the_budget() -> None:
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
    ({"data": TRAIN, "model": Logistic(), "out": "x"}, ValueError, "not available with a custom model"),
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


class Bypassing(Logistic):
    """Changes the common model itself, and returns an update of zero."""

    def local_update(self, parameters: Any, x: Any, y: Any, rng: np.random.Generator) -> Any:
        parameters.flags.writeable = True
        parameters += 1
        return np.zeros_like(parameters)


class Writing(Logistic):
    """Writes to the model that it evaluates."""

    def evaluate(self, parameters: Any, x: Any, y: Any) -> tuple[float, float]:
        parameters += 1
        return 0.0, 0.0


def test_a_model_cannot_bypass_the_uplink() -> None:
    setting = {**SETTING, "uplink": {"scheme": "ideal"}, "rounds": 1}
    run = floras.run(setting, trials=1, data=TRAIN, test=TEST, model=Bypassing())
    assert not run.parameters[0]["parameters"].any()
    with pytest.raises(ValueError, match="read-only"):
        floras.run(setting, trials=1, data=TRAIN, test=TEST, model=Writing())


def test_a_reused_update_array_is_copied() -> None:
    class Reusing(Logistic):
        update = np.zeros(4010, np.float32)

        def local_update(self, parameters: Any, x: Any, y: Any, rng: np.random.Generator) -> Any:
            self.update[:] = super().local_update(parameters, x, y, rng)
            return self.update

    runs = [floras.run(SETTING, data=TRAIN, test=TEST, model=model) for model in (Reusing(), Logistic())]
    np.testing.assert_allclose(runs[0].metrics["test_loss"], runs[1].metrics["test_loss"], rtol=1e-6)


def test_weights_of_samples_apply_to_custom_models() -> None:
    rows = np.split(np.arange(4000), np.cumsum(np.arange(1, 20) * 20))
    setting: dict[str, Any] = {
        **SETTING,
        "uplink": {"scheme": "ideal"},
        "local": {"batch": 4000, "epochs": 1, "rate": 0.5},
        "model": {"l2": 0.0},
    }
    by_samples = {"clients.weights": "samples"}
    given: dict[str, Any] = {"data": TRAIN, "test": TEST, "clients": rows}
    built_in = floras.run(setting, settings=by_samples, **given)
    custom = floras.run(setting, settings=by_samples, model=Logistic(), **given)
    np.testing.assert_allclose(custom.metrics["test_loss"], built_in.metrics["test_loss"], rtol=1e-4)
    equal = floras.run(setting, model=Logistic(), **given)
    assert not np.allclose(equal.metrics["test_loss"], built_in.metrics["test_loss"], rtol=1e-2)


@pytest.mark.parametrize("arguments", [{}, {"data": TRAIN, "test": TEST, "model": Logistic()}])
def test_every_metric_has_its_key(arguments: dict[str, Any]) -> None:
    setting = {**SETTING, "trials": 1, "record": {"test_every": 2}}
    seen: list[dict[str, Any]] = []
    run = floras.run(setting, progress=seen.append, **arguments)
    assert [sorted(metrics) for metrics in seen] == [sorted(run.metrics)] * 3
    assert [metrics["test_accuracy"] is None for metrics in seen] == [True, False, False]
    assert np.isnan(run.metrics["test_accuracy"]).tolist() == [True, False, False]
    assert seen[0]["diverged"] is False
    assert seen[0]["silent"] is None


def test_a_bar_shows_no_unmeasured_accuracy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("floras._progress._tqdm", lambda: None)
    monkeypatch.setattr("floras._progress._EVERY_SECONDS", 0.0)
    setting = {**SETTING, "trials": 1, "record": {"test_every": 2}}
    floras.run(setting, data=TRAIN, test=TEST, model=Logistic(), progress=True)
    first, *_, last = capsys.readouterr().err.split("\r")[1:-1]
    assert "1/3 rounds\033" in first
    assert "3/3 rounds  accuracy" in last


def replaced(name: str, result: Any) -> Logistic:
    """The model with another result of one of its members."""
    model = Logistic()
    setattr(model, name, result if name == "parameters" else lambda *_: result)
    return model


CUSTOM: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    (replaced("parameters", "abc"), {}, TypeError, r"model\.parameters must be real numbers, not <U3"),
    (replaced("parameters", []), {}, ValueError, "must have at least one value"),
    (replaced("local_update", None), {}, TypeError, "must return parameters minus .*, not None"),
    (replaced("local_update", np.zeros(3)), {}, ValueError, r"must return the shape \(4010,\), not \(3,\)"),
    (replaced("local_update", np.zeros(4010, int)), {}, TypeError, "floating-point numbers, not int64"),
    (replaced("evaluate", 0.5), {}, TypeError, "evaluate must return a pair of numbers, .*, not float"),
    (replaced("evaluate", ("a", "b")), {}, TypeError, "evaluate must return a pair of numbers"),
    (replaced("evaluate", (0.5, 85.0)), {}, ValueError, "an accuracy between 0 and 1, not 85.0"),
    (replaced("evaluate", (0.5, float("nan"))), {}, ValueError, "an accuracy between 0 and 1, not nan"),
    (Logistic(), {"clients": [[0, 1], [1]]}, ValueError, "row 1 of client 1 is listed twice"),
    (Logistic(), {"clients": [[0], [4000]]}, ValueError, "row 4000 of client 1 must be below 4000"),
    (Logistic(), {"clients": [[0], []]}, ValueError, "client 1 has no rows"),
    (Logistic(), {"clients": 5}, TypeError, "clients must be a partition such as 'iid', .*, not int"),
    (Logistic(), {"threads": -5}, ValueError, "threads must be between 1 and 1024, not -5"),
    (Logistic(), {"threads": "a"}, TypeError, "threads must be an integer, not str"),
]


@pytest.mark.parametrize(("model", "arguments", "error", "words"), CUSTOM)
def test_bad_custom_models_are_refused(
    model: Any, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    setting = {**SETTING, "clients": {"total": 2, "per_round": 2}}
    with pytest.raises(error, match=words):
        floras.run(setting, data=TRAIN, test=TEST, model=model, **arguments)
