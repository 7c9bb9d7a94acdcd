from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import floras
from floras import privacy

SETTING: dict[str, Any] = {"clip": 1.0, "sequences": 30, "per_round": 20}


def options(settings: dict[str, Any]) -> list[str]:
    """Keywords as the command line has them."""

    def text(value: Any) -> str:
        return "=".join(map(str, next(iter(value.items())))) if isinstance(value, dict) else str(value)

    return [part for key, value in settings.items() for part in (f"--{key.replace('_', '-')}", text(value))]


@pytest.mark.parametrize(
    "settings",
    [
        SETTING,
        {**SETTING, "clients": 200, "rounds": 12, "delta": 1e-6},
        {**SETTING, "length": 32, "snr_db": 10.0, "fading": {"rician": 3.0}, "receiver": {"clipped": 1.0}},
        {**SETTING, "level": "item", "batch": 10, "samples": 200, "local": "epochs", "normalise": "paper"},
        {**SETTING, "level": "item", "batch": 10, "samples": 200, "local": "steps=3", "alpha": 8.0},
        {**SETTING, "dim": 4010, "neighbours": "add-remove", "rounds": 3},
        {**SETTING, "rounds": 3, "mask_std": 20.0, "noise_std": 2.0, "colluding": 1},
    ],
)
def test_an_account_is_the_programs(settings: dict[str, Any], program: Callable[..., str]) -> None:
    printed = json.loads(program("account", *options(settings), "--json"))
    assert privacy.account(**settings).to_dict() == printed


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 4.0, "clip": 1.0, "per_round": 20, "clients": 200, "rounds": 100, "view": "idealised"},
        {"epsilon": 4.0, "clip": 1.0, "per_round": 20, "receiver": "clipped", "view": "any-channel"},
        {
            "epsilon": 8.0,
            "find": "rounds",
            "clip": 1.0,
            "per_round": 20,
            "sequences": 40,
            "view": "idealised",
        },
        {"epsilon": 8.0, "find": "clip", "clip": 1.0, "per_round": 20, "sequences": 40, "view": "idealised"},
    ],
)
def test_a_calibration_is_the_programs(settings: dict[str, Any], program: Callable[..., str]) -> None:
    printed = json.loads(program("calibrate", *options(settings), "--json"))
    assert privacy.calibrate(**settings).to_dict() == printed


def test_an_unreachable_epsilon_is_an_answer() -> None:
    found = privacy.calibrate(epsilon=0.01, clip=1.0, per_round=20, length=32, view="idealised")
    assert not found
    assert found.sequences is None
    assert "N = 32" in (found.reason or "")


def test_epsilon_curves_pass_through_the_accounts() -> None:
    rounds = [1, 3, 10]
    curve = privacy.epsilon_curve(rounds, view="idealised", **SETTING)
    accounts = [privacy.account(rounds=number, **SETTING).epsilon("idealised") for number in rounds]
    np.testing.assert_allclose(curve, accounts, rtol=1e-9)
    assert np.isinf(privacy.epsilon_curve([1], view="actual", **SETTING)).all()


def test_delta_curves_pass_through_the_accounts() -> None:
    epsilon = privacy.account(rounds=5, **SETTING).epsilon("idealised")
    assert epsilon is not None
    curve = privacy.delta_curve([0.0, epsilon, 2 * epsilon], rounds=5, view="idealised", **SETTING)
    assert curve[1] == pytest.approx(1e-5, rel=0.02)
    assert (np.diff(curve) < 0).all()
    with pytest.raises(ValueError, match="published view has no delta"):
        privacy.delta_curve([1.0], view="published", **SETTING)


BAD: list[tuple[Callable[..., Any], dict[str, Any], type[Exception], str]] = [
    (privacy.account, {**SETTING, "clip": -1.0}, ValueError, "clip"),
    (privacy.account, {**SETTING, "clip": "long"}, ValueError, "clip must be a number"),
    (privacy.account, {**SETTING, "delta": 0.0}, ValueError, "δ|delta"),
    (privacy.account, {**SETTING, "rounds": 0}, ValueError, "rounds"),
    (privacy.account, {**SETTING, "rounds": -3}, ValueError, "rounds must be a non-negative integer"),
    (privacy.account, {**SETTING, "sequences": 10}, ValueError, "sequences|N"),
    (privacy.account, {**SETTING, "snr_db": 3.0}, ValueError, "snr_db must be given together with a length"),
    (privacy.account, {**SETTING, "length": 16, "snr_db": 3.0}, ValueError, "sequences must be at most"),
    (privacy.account, {**SETTING, "level": "household"}, ValueError, "level must be"),
    (privacy.account, {**SETTING, "level": "item"}, ValueError, "batch and samples"),
    (privacy.account, {**SETTING, "receiver": "clipped"}, ValueError, "receiver must be"),
    (privacy.account, {**SETTING, "fading": {"trace": "x"}}, ValueError, "trace"),
    (privacy.account, {**SETTING, "fadding": "none"}, TypeError, "did you mean fading"),
    (privacy.account, {**SETTING, "find": "clip"}, TypeError, "no keyword find in this function"),
    (privacy.account, {**SETTING, "foo": 3}, TypeError, "there is no keyword foo; known are (?!.*view)"),
    (privacy.account, {**SETTING, "epsilo": 3}, TypeError, "there is no keyword epsilo$"),
    (
        privacy.calibrate,
        {"epsilon": -1.0, "clip": 1.0, "per_round": 20},
        ValueError,
        "epsilon must be above 0",
    ),
    (
        privacy.calibrate,
        {"epsilon": 1.0, "clip": 1.0, "per_round": 20, "view": "all"},
        ValueError,
        "view must",
    ),
    (privacy.calibrate, {"epsilon": 1.0, "clip": 1.0, "per_round": 20, "find": "x"}, ValueError, "find must"),
    (privacy.calibrate, {"epsilon": float("nan"), "clip": 1.0, "per_round": 20}, ValueError, "epsilon"),
]


@pytest.mark.parametrize(("function", "settings", "error", "words"), BAD)
def test_bad_input_is_refused_in_words(
    function: Callable[..., Any], settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        function(**settings)


def test_bad_points_of_a_curve_are_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1e6, not -1"):
        privacy.delta_curve([-1.0], **SETTING)
    with pytest.raises(ValueError, match=r"rounds\[1\] must be between 1"):
        privacy.epsilon_curve([1, 0], **SETTING)
    with pytest.raises(TypeError, match=r"rounds\[0\] must be an integer, not float"):
        privacy.epsilon_curve([1.5], **SETTING)  # type: ignore[list-item]


def test_uplink_and_setting_have_the_same_account() -> None:
    uplink = floras.Uplink(sequences=30, length=32, snr_db=20.0, clip=1.0, clients=200)
    views = uplink.account(per_round=20, rounds=5)
    asked = privacy.account(**SETTING, clients=200, rounds=5, length=32, snr_db=20.0)
    for view in ("published", "idealised", "actual"):
        # The uplink's includes what floating-point arithmetic costs.
        loss = (views.epsilon(view) or 0.0) - (asked.epsilon(view) or 0.0)
        assert loss == 0 if view == "published" else 4e-5 < loss < 1e-3, view


FED: dict[str, Any] = {"clip": 1.0, "sequences": 60, "per_round": 20, "rounds": 100}
SEEN: dict[str, Any] = {**FED, "view": "idealised"}


@pytest.mark.parametrize("more", [{}, {"clients": 200}, {"clients": 200, "neighbours": "add-remove"}])
def test_dp_accounting_agrees_on_an_export(more: dict[str, Any]) -> None:
    pytest.importorskip("dp_accounting")
    stated = privacy.account(**FED, **more).epsilon("idealised")
    one_round = privacy.losses(**SEEN, **more).to_dp_accounting()
    composed = one_round.self_compose(100).get_epsilon_for_delta(1e-5)
    assert composed == pytest.approx(stated, rel=1e-4)


def test_a_dp_accounting_distribution_composes_with_a_training() -> None:
    module = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    gaussian = module.from_gaussian_mechanism(2.0, value_discretization_interval=1e-3)
    alone = gaussian.self_compose(10).get_epsilon_for_delta(1e-5)
    taken = privacy.Losses.from_dp_accounting(gaussian, rounds=10, neighbours="replace-one")
    assert privacy.compose([taken]).epsilon == pytest.approx(alone, rel=1e-3)
    joint = privacy.compose([taken, privacy.losses(**SEEN)]).epsilon
    assert joint is not None
    assert joint > alone


def test_an_export_is_read_back(tmp_path: Any) -> None:
    losses = privacy.losses(**SEEN)
    losses.export(tmp_path / "a.json")
    assert privacy.Losses.load(tmp_path / "a.json") == losses
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    with pytest.raises(ValueError, match="masses"):
        privacy.Losses({**losses.content, "losses": [{**losses.content["losses"][0], "infinity": -1.0}]})


def test_curves_are_monotone_arrays() -> None:
    for kind in ("delta", "tradeoff"):
        x, y, event = privacy.curve(kind, **SEEN)  # type: ignore[arg-type]
        assert event is None
        assert np.all(np.diff(x) > 0)
        assert np.all(np.diff(y) <= 0)
    x, y, event = privacy.curve("renyi", **SEEN, at=[2.0, 3.0, 4.0])
    assert event is not None
    assert np.all(np.diff(y) >= 0)


def test_a_group_and_a_statement() -> None:
    report = privacy.account(**FED, group=2)
    one = report.epsilon("idealised")
    assert one is not None
    assert report.group is not None
    assert report.group.views["idealised"].epsilon > one
    assert "differential privacy" in privacy.statement(**SEEN)
