"""The types of results: frozen, with one spelling of view names, and shown by notebooks."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import floras
from floras import _core, _progress, _text

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
    with pytest.raises(
        ValueError, match=r'view must be one of "raw-signal", "any-channel", .*, not "everything"'
    ):
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
        with pytest.raises(dataclasses.FrozenInstanceError, match="unknown cannot be changed"):
            result.unknown = 0  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        run.views["actual"] = None  # type: ignore[index]
    raw = account.to_dict()
    raw["views"].clear()
    assert account.to_dict()["views"]


def copies(run: floras.Run) -> list[floras.Run]:
    return [run, pickle.loads(pickle.dumps(run)), copy.copy(run), copy.deepcopy(run)]


def test_results_survive_pickling_and_copying(run: floras.Run) -> None:
    for again in copies(run):
        assert again == run
        assert again.privacy == run.privacy
        assert again.final == run.final


def test_parts_of_results_cannot_be_changed(run: floras.Run) -> None:
    for again in copies(run):
        for array in (*again.metrics.values(), *again.parameters[0].values()):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 99
        with pytest.raises(TypeError):
            again.experiment["rounds"] = 7  # type: ignore[index]
        with pytest.raises(TypeError):
            again.experiment["uplink"]["snr_db"] = 7.0
    aggregate = floras.Uplink(sequences=25).aggregate(np.zeros((20, 4), np.float32), seed=1)
    with pytest.raises(ValueError, match="read-only"):
        aggregate.sum[0] = 5


def test_equal_runs_are_equal(run: floras.Run) -> None:
    again = floras.run("quick", trials=2, rounds=2)
    assert run == again
    assert run != floras.run("quick", trials=2, rounds=2, seed=7)
    assert run.metrics != {**run.metrics, "round": run.metrics["round"] + 1}
    assert floras.federate("quick") == floras.federate("quick")
    assert floras.federate("quick") != floras.federate("quick", trial=1)


def test_a_runs_experiment_can_be_run(run: floras.Run) -> None:
    assert floras.run(run.experiment) == run
    changed = run.experiment.to_dict()
    changed["uplink"]["snr_db"] = 10.0
    assert floras.experiment(changed)["uplink"]["snr_db"] == 10.0
    assert run.experiment["uplink"]["snr_db"] == 20.0


def test_notebooks_show_the_privacy_table(run: floras.Run) -> None:
    shown = run._repr_html_()
    assert shown.count("<tr") == 6
    assert shown.index("raw-signal") < shown.index("any-channel") < shown.index("published")
    assert "not proven" in shown
    assert "strong for ε ≤ 1" in shown
    epsilon = re.search(r"any-channel</td><td[^>]*>([^<]+)<", shown)
    assert epsilon is not None
    assert float(epsilon[1]) == pytest.approx(run.epsilon(), rel=1e-3)
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


def test_displayed_bounds_are_rounded_up() -> None:
    values = (12.90216, 12.9, 0.500001, 1e-7 / 3, 123456.0, 0.0)
    assert [_text.bound(value) for value in values] == [
        "12.91",
        "12.9",
        "0.5001",
        "3.334e-08",
        "1.235e+05",
        "0",
    ]
    assert [_text.lower(value) for value in values[:3]] == ["12.9", "12.9", "0.5"]
    account = floras.privacy.account(**SETTING, rounds=10)
    epsilon = account.epsilon()
    assert epsilon is not None
    shown = re.search(r"epsilon (\S+) ", repr(account))
    assert shown is not None
    assert epsilon <= float(shown[1]) < epsilon + 0.01


def test_tables_have_the_words_of_the_program(program: Callable[..., str]) -> None:
    sizes = ("--clip", "1", "--sequences", "30", "--per-round", "20", "--rounds", "4")
    radio = ("--receiver", "clipped=1", "--length", "32", "--snr-db", "20")
    printed = program("account", *sizes, *radio).splitlines()
    account = floras.privacy.account(
        clip=1.0, sequences=30, per_round=20, receiver="clipped=1", length=32, snr_db=20.0, rounds=4
    )
    rows = [re.split("  +", line) for line in printed if line.startswith(NAMES)]
    words = {row[0]: row[2] for row in rows}
    shown = {line.split()[0]: line for line in str(account.views).splitlines()[1:]}
    assert list(shown) == list(account.views) == list(words)
    assert all(shown[view].endswith(f"  {word}") for view, word in words.items())
    assert "> 1e5" in shown["raw-signal"]
    assert words["idealised"].endswith("(model)")


def test_verdicts_for_a_model_are_not_bold() -> None:
    account = floras.privacy.account(**SETTING, length=64, snr_db=20.0)
    assert account.views["idealised"].is_model
    assert not account.views["any-channel"].is_model
    shown = account._repr_html_()
    assert f">{account.views['idealised'].verdict} (model)</td>" in shown
    assert "&gt; 1e5" in shown


def test_a_view_that_is_no_text_is_refused(run: floras.Run) -> None:
    with pytest.raises(TypeError, match='view must be the name of a view, such as "any-channel", not int'):
        run.epsilon(3)  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="3: the views here are"):
        run.views[3]  # type: ignore[index]
    assert 3 not in run.views


def test_accuracy_has_the_digits_of_the_program(run: floras.Run) -> None:
    assert floras.Estimate(0.7904, 0.0064).percent() == "79.04 ± 0.64 %"
    assert str(floras.Estimate(0.912304, 8.877e-4)) == "0.91230 ± 0.00089"
    assert run.final is not None
    assert run.final.test_accuracy.percent() in repr(run)


def test_one_round_is_singular() -> None:
    one = floras.run("quick", trials=1, rounds=1)
    assert "1 round, 1 trial," in repr(one)
    ledger = floras.Ledger(floras.Uplink(sequences=25, clip=1.0))
    ledger.record(ledger.uplink.realise(20, seed=1))
    assert repr(ledger) == "<Ledger of 1 round>"


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> floras.Audit:
    out = tmp_path_factory.mktemp("audit") / "audit"
    return floras.audit(games=2000, trainings=0, rounds=2, out=out)


def test_audited_views_begin_with_the_strongest(audit: floras.Audit) -> None:
    views = [view for view in floras.VIEWS if view in audit.views]
    assert [view for view in audit.views if view != "released-model"] == views
    assert "raw-signal" in views
    assert audit.views["raw_signal"] is audit.views["raw-signal"]


def test_claims_that_are_not_made_have_no_verdict(audit: floras.Audit) -> None:
    raw = audit.views["raw-signal"]
    assert not raw.published_claims_it
    assert "published" not in raw.verdict
    assert audit.to_pandas()["published_verdict"].isna()["raw-signal"]
    assert "not claimed" in audit._repr_html_()


def test_a_report_is_written_of_results(audit: floras.Audit, tmp_path: Path) -> None:
    sweep = floras.sweep("quick", {"uplink.snr_db": [0.0]}, trials=1, rounds=1, out=tmp_path / "sweep")
    kept = floras.run("quick", trials=1, rounds=1, out=tmp_path / "run")
    for result in (sweep, kept, audit):
        assert result.out is not None
        page = floras.report(result)
        assert page.parent == result.out
    with pytest.raises(ValueError, match="the run was not kept: give out to"):
        floras.report(floras.run("quick", trials=1, rounds=1))
    with pytest.raises(TypeError, match="report needs a path, a Run, a Sweep or an Audit, not int"):
        floras.report(3)  # type: ignore[arg-type]


def test_notebooks_have_a_bar_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _progress.wanted(None)
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    assert _progress.wanted(None)
    assert not _progress.wanted(False)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert not _progress.wanted(None)
