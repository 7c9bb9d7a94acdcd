"""`floras.pfl.FlorasAccountant`: any two of epsilon, delta and sequences give the third."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("pfl.aggregate.simulate")

import pfl_federation as federation

import floras
from floras.pfl import FlorasAccountant, FlorasUplink

PLAN: dict[str, Any] = {
    "rounds": 3,
    "per_round": 20,
    "clip": 1.0,
    "length": 128,
    "receiver": {"clipped": 1.0},
}


def test_epsilon_and_delta_give_the_fewest_sequences() -> None:
    plan = FlorasAccountant(epsilon=8.0, delta=1e-5, view="idealised", **PLAN)
    assert plan.epsilon <= 8.0
    assert plan.gamma == plan.sequences - 20
    fewer = FlorasAccountant(sequences=plan.sequences - 1, delta=1e-5, view="idealised", **PLAN)
    assert fewer.epsilon > 8.0


def test_the_level_of_the_clipped_projector_is_found() -> None:
    plan = FlorasAccountant(
        rounds=1,
        per_round=20,
        clip=1.0,
        epsilon=4.0,
        delta=1e-5,
        view="idealised",
        length=128,
        receiver="clipped",
    )
    assert plan.sequences == 128
    assert float(plan.uplink.settings["receiver"].removeprefix("clipped=")) > 1.0
    assert 3.9 < plan.epsilon <= 4.0


def test_sequences_and_delta_determine_epsilon() -> None:
    plan = FlorasAccountant(sequences=60, delta=1e-5, view="actual", clients=200, **PLAN)
    account = floras.privacy.account(
        clip=1.0,
        sequences=60,
        per_round=20,
        clients=200,
        rounds=3,
        delta=1e-5,
        receiver={"clipped": 1.0},
        length=128,
        snr_db=20.0,
    )
    # An uplink's epsilon includes what floating-point arithmetic costs.
    assert 4e-5 < plan.epsilon - account.epsilon("actual") < 1e-3


def test_sequences_and_epsilon_give_delta() -> None:
    known = FlorasAccountant(sequences=60, delta=1e-5, view="idealised", **PLAN)
    plan = FlorasAccountant(sequences=60, epsilon=known.epsilon, view="idealised", **PLAN)
    assert plan.delta == pytest.approx(1e-5, rel=0.01)
    assert plan.epsilon == pytest.approx(known.epsilon, rel=1e-3)


def test_three_values_must_agree() -> None:
    known = FlorasAccountant(sequences=60, delta=1e-5, view="idealised", **PLAN)
    FlorasAccountant(sequences=60, delta=1e-5, epsilon=known.epsilon, view="idealised", **PLAN)
    with pytest.raises(ValueError, match="epsilon must be at least"):
        FlorasAccountant(sequences=60, delta=1e-5, epsilon=known.epsilon / 2, view="idealised", **PLAN)


def test_an_unreachable_target_is_rejected_with_its_reason() -> None:
    with pytest.raises(ValueError, match=r"no setting meets epsilon = 0\.01"):
        FlorasAccountant(epsilon=0.01, delta=1e-5, view="actual", **PLAN)


def test_pfls_names_are_there() -> None:
    plan = FlorasAccountant(sequences=60, delta=1e-5, clients=200, **PLAN)
    assert (plan.num_compositions, plan.sampling_probability, plan.mechanism) == (3, 0.1, "floras")


def test_a_planned_mechanism_spends_as_planned(tmp_path: Path) -> None:
    plan = FlorasAccountant(sequences=60, delta=1e-5, path=tmp_path / "ledger.jsonl", **PLAN)
    mechanism = FlorasUplink.from_privacy_accountant(plan, seed=1)
    assert mechanism.privacy_accountant is plan
    assert plan.spent == 0.0
    users = {str(number): np.full(10, 0.1, dtype=np.float32) for number in range(20)}
    for _ in range(plan.rounds):
        federation.gather(users, [mechanism])
    assert plan.spent == pytest.approx(plan.epsilon, rel=1e-9)
    # A line that says whose ledger it is, and one for every round.
    assert len((tmp_path / "ledger.jsonl").read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"epsilon": 1.0}, ValueError),
        ({"sequences": 60, "delta": 0.0}, ValueError),
        ({"sequences": 60, "delta": -1e-5}, ValueError),
        ({"sequences": 10, "delta": 1e-5}, ValueError),
        ({"epsilon": -1.0, "delta": 1e-5}, ValueError),
        ({"epsilon": -1.0, "sequences": 60}, ValueError),
        ({"epsilon": float("nan"), "sequences": 60}, ValueError),
        ({"sequences": 60, "delta": 1e-5, "view": "imagined"}, ValueError),
        ({"sequences": 60, "delta": 1e-5, "ageing": "correlation=0.9"}, ValueError),
        ({"sequences": 60, "delta": 1e-5, "path_loss": {"exponent": 3.7}}, ValueError),
        ({"sequences": 60, "delta": 1e-5, "colour": "red"}, TypeError),
        ({"sequences": "many", "delta": 1e-5}, ValueError),
    ],
)
def test_wrong_plans_are_refused(values: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        FlorasAccountant(**{**PLAN, **values})
