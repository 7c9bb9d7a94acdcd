"""The types of results: frozen, with one spelling of view names, and shown by notebooks."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

import floras
from floras import _core

SETTING: dict[str, Any] = {"clip": 1.0, "sequences": 40, "per_round": 20, "receiver": "clipped=1"}
NAMES = ("raw-signal", "any-channel", "actual", "idealised", "published")


@pytest.fixture(scope="module")
def run() -> floras.Run:
    return floras.run("quick", trials=2, rounds=2)


def test_views_have_hyphens_in_and_out(run: floras.Run) -> None:
    assert tuple(run.views) == NAMES == floras.VIEWS
    assert all(statement.view == name for name, statement in run.views.items())
    assert [tuple(spent.epsilon) for spent in run.privacy.growth] == [NAMES[1:]] * 2
    uplink = floras.Uplink(sequences=30, clip=1.0, receiver="clipped=1")
    round_ = uplink.realise(20, seed=1)
    ledger = floras.Ledger(uplink)
    ledger.record(round_)
    assert set(round_.spend) <= set(NAMES)
    assert set(ledger.views()) <= set(NAMES)
    assert floras.privacy.account(**SETTING, group=2).group is not None


def test_underscores_are_accepted_for_views(run: floras.Run) -> None:
    assert run.epsilon("any_channel") == run.epsilon("any-channel") == run.views["any_channel"].epsilon
    with pytest.raises(ValueError, match=r'view must be one of "published", .*, not "everything"'):
        run.epsilon("everything")
    with pytest.raises(KeyError, match="the views here are any-channel, idealised, published"):
        floras.privacy.account(**SETTING).views["actual"]


def test_the_default_view_is_any_channel(run: floras.Run) -> None:
    uplink = floras.Uplink(sequences=25, clip=1.0)
    assert run.privacy.view == uplink.view == "any-channel"
    assert run.epsilon() == run.epsilon("any-channel")
    ledger = floras.Ledger(floras.Uplink(sequences=25, clip=1.0, receiver="clipped=1"))
    assert ledger.after(20) == ledger.after(20, view="any-channel")


def test_with_masks_the_default_view_is_raw_signal() -> None:
    masks = {"mask_std": 20.0, "noise_std": 2.0, "colluding": 1}
    assert floras.privacy.account(**SETTING, **masks).view == "raw-signal"
    assert floras.Uplink(sequences=25, clip=1.0, masks=masks).view == "raw-signal"
    account = floras.privacy.account_experiment("private")
    assert account.view == "raw-signal"
    assert account.verdict == "weak"


def test_the_experiments_view_is_the_default() -> None:
    settings = {"privacy.budget": 100.0, "privacy.view": "idealised"}
    run = floras.run("quick", trials=1, rounds=1, settings=settings)
    assert run.epsilon() == run.epsilon("idealised")


def test_verdicts_are_those_of_the_core() -> None:
    words = [_core.verdict(epsilon, True)[0] for epsilon in (1.0, 4.0, 10.0, 10.1, None)]
    assert words == ["strong", "moderate", "weak", "none", "none"]
    assert _core.verdict(0.1, False)[0] == "not proven"
    account = floras.privacy.account(**SETTING)
    assert account.verdict == account.views["any-channel"].verdict
    assert account.views["published"].verdict == "not proven"
    assert "guesses right" in account.views["idealised"].meaning


def test_results_cannot_be_changed(run: floras.Run) -> None:
    account = floras.privacy.account(**SETTING)
    found = floras.privacy.calibrate(epsilon=4.0, clip=1.0, per_round=20, receiver="clipped=1")
    for result in (run, run.final, run.trials[0], run.privacy, account, found, account.views["idealised"]):
        assert dataclasses.is_dataclass(result)
        assert not hasattr(result, "__dict__")
        name = dataclasses.fields(result)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(result, name, 0)
    with pytest.raises(TypeError):
        run.views["actual"] = None  # type: ignore[index]
    raw = account.to_dict()
    raw["views"].clear()
    assert account.to_dict()["views"]


def test_results_survive_pickling(run: floras.Run) -> None:
    again = pickle.loads(pickle.dumps(run))
    assert again.privacy == run.privacy
    assert again.final == run.final
    np.testing.assert_array_equal(again.metrics["test_loss"], run.metrics["test_loss"])


def test_notebooks_show_the_privacy_table(run: floras.Run) -> None:
    shown = run._repr_html_()
    assert shown.count("<tr") == 6
    assert shown.index("raw-signal") < shown.index("any-channel") < shown.index("published")
    assert "not proven" in shown
    assert "strong for ε ≤ 1" in shown
    assert f"{run.epsilon():.4g}" in shown
    nothing = floras.privacy.calibrate(epsilon=1e-3, clip=1.0, per_round=20, length=32)
    assert "is not met" in nothing._repr_html_()


def test_raw_dictionaries_and_frames_stay_available(run: floras.Run) -> None:
    assert run.to_dict()["privacy"]["views"]["any_channel"]["epsilon"] == run.epsilon()
    frame = run.privacy.to_pandas()
    assert frame.loc["any-channel", "epsilon"] == run.epsilon()
    assert frame.loc["published", "verdict"] == "not proven"


def test_the_old_keyword_set_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="is now settings") as caught:
        settings = floras.experiment("quick", set={"uplink.snr_db": 10.0})
    assert settings["uplink"]["snr_db"] == 10.0
    assert caught[0].filename == __file__
