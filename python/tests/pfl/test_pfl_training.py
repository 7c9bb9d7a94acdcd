"""Whole trainings with pfl's federated averaging and `floras.pfl.FlorasUplink`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("torch")
pytest.importorskip("pfl.aggregate.simulate")

import pfl_federation as federation

import floras
from floras.pfl import FlorasUplink


def clients() -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Return the digits of twenty users with forty samples each."""
    digits = floras.load_digits20(train=800, test=200)
    return [(digits.train_images[first::20], digits.train_labels[first::20]) for first in range(20)]


def right_share(parameters: npt.NDArray[Any]) -> float:
    """Return the accuracy of a model on the test digits."""
    digits = floras.load_digits20(train=800, test=200)
    weight, bias = parameters[:4000].reshape(10, 400), parameters[4000:]
    return float((np.argmax(digits.test_images @ weight.T + bias, axis=1) == digits.test_labels).mean())


def test_an_ideal_uplink_trains_like_plain_pfl() -> None:
    plain, _metrics = federation.train(clients(), [], rounds=4)
    ideal, _metrics = federation.train(clients(), [FlorasUplink(floras.Uplink("ideal"))], rounds=4)
    assert np.abs(plain).max() > 0.05
    np.testing.assert_allclose(ideal, plain, rtol=1e-5, atol=1e-6)


def test_a_training_over_the_air_learns() -> None:
    """Guessing is right for one digit in ten. Five rounds reach 0.785 without noise and 0.5 here."""
    uplink = floras.Uplink(
        "floras", sequences=25, length=32, modulation="phase-corrected", receiver={"clipped": 1.0}, clip=5.0
    )
    mechanism = FlorasUplink(uplink, seed=1)
    parameters, rounds = federation.train(clients(), [mechanism], rounds=5, validate=True)
    assert right_share(parameters) > 0.3
    assert mechanism.ledger.rounds == 5
    account = floras.privacy.account(
        clip=5.0,
        sequences=25,
        per_round=20,
        rounds=5,
        length=32,
        snr_db=20.0,
        modulation="phase-corrected",
        receiver={"clipped": 1.0},
    )
    shown = rounds[-1].to_simple_dict()
    assert account.epsilon("raw-signal") is mechanism.ledger.epsilon("raw-signal") is None
    for view in ("idealised", "actual", "any-channel"):
        expected = account.epsilon(view)
        # What floating-point arithmetic costs is added.
        assert mechanism.ledger.epsilon(view) == pytest.approx(expected, rel=1e-3)
        epsilon = shown[f"Central DP | epsilon ({view}, no guarantee)"]
        assert epsilon == pytest.approx(mechanism.ledger.epsilon(view), rel=1e-9)
    assert shown["Central DP | users in the sum"] == 20
    assert shown["Central DP | users without an answer"] == 0


def test_a_training_with_a_seed_can_be_repeated() -> None:
    uplink = floras.Uplink("floras", sequences=25, receiver={"clipped": 1.0}, clip=1.0)
    first, second = (
        federation.train(clients(), [FlorasUplink(uplink, seed=7)], rounds=2)[0] for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
