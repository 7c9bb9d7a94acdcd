from __future__ import annotations

import json
import math
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import floras

PRIVATE: dict[str, Any] = {"sequences": 30, "length": 32, "clip": 1.0, "receiver": {"clipped": 1.0}}


def updates(count: int) -> npt.NDArray[np.float32]:
    return np.zeros((count, 10), np.float32)


def filled(ledger: floras.Ledger, rounds: int, count: int = 20, seed: int | None = 5) -> floras.Ledger:
    for number in range(ledger.rounds + 1, ledger.rounds + rounds + 1):
        ledger.record(ledger.uplink.aggregate(updates(count), seed=seed, round=number))
    return ledger


def test_equal_rounds_match_the_account() -> None:
    uplink = floras.Uplink(**PRIVATE)
    ledger = filled(floras.Ledger(uplink), 10, seed=None)
    account = uplink.account(per_round=20, rounds=10)
    for view, statement in ledger.views().items():
        assert statement.epsilon == account.epsilon(view), view
        assert ledger.epsilon(view) == pytest.approx(statement.epsilon), view
        assert statement == account.views[view]


@pytest.mark.parametrize(
    "settings",
    [
        {"scheme": "gaussian", "noise_std": 5.0},
        {"scheme": "channel-inversion", "artificial_noise_std": 5.0},
        {"clients": 100, "sequences": 30, "length": 32, "receiver": {"clipped": 1.0}},
    ],
)
def test_ledger_and_account_name_the_same_adversaries(settings: dict[str, Any]) -> None:
    uplink = floras.Uplink(clip=1.0, **settings)
    ledger = filled(floras.Ledger(uplink), 2, seed=None)
    account = uplink.account(per_round=20, rounds=2).views
    assert ledger.views() == account
    mixed = floras.Ledger(uplink)
    for number, count in ((1, 20), (2, 19)):
        mixed.record(uplink.aggregate(updates(count), seed=5, round=number))
    for view, statement in mixed.views().items():
        assert statement.adversary == account[view].adversary
        assert ("in_every_round" in statement.details) == ("in_every_round" in account[view].details)


def test_a_missing_client_removes_amplification() -> None:
    """Only client 7 of 100 ever answers: every round on record is one with it, whatever the selection was."""
    uplink = floras.Uplink("gaussian", noise_std=1.0, clip=0.5, clients=100)
    ledger = floras.Ledger(uplink)
    for number in range(1, 11):
        result = uplink.aggregate(updates(1), seed=1, round=number, clients=[7], selected=10)
        ledger.record(result)
    assert ledger.worst is not None
    assert ledger.epsilon("actual") == pytest.approx(ledger.worst.epsilon, rel=1e-6)


def test_amplification_depends_on_the_number_drawn_from() -> None:
    uplink = floras.Uplink(clients=200, **PRIVATE)
    spend = [
        uplink.aggregate(updates(20), seed=1, among=among).spend["idealised"] for among in (20, 40, 100, None)
    ]
    assert spend == sorted(spend, reverse=True)
    assert spend[0] == floras.Uplink(**PRIVATE).aggregate(updates(20), seed=1).spend["idealised"]
    with pytest.raises(ValueError, match="among must be between 20 and 200, not 10"):
        uplink.aggregate(updates(20), seed=1, among=10)


def test_silent_clients_count_as_used_sequences() -> None:
    """A client that died may have sent its pilot, and then its sequence adds no noise."""
    uplink = floras.Uplink(**PRIVATE)
    mixed = floras.Ledger(uplink)
    for number in range(1, 11):
        count = 20 if number % 2 else 15
        mixed.record(uplink.aggregate(updates(count), seed=5, round=number, selected=20))
    for view in ("published", "idealised", "actual", "any-channel"):
        all_answered = uplink.account(20, 10).epsilon(view)
        few_answered = uplink.account(15, 10).epsilon(view)
        epsilon = mixed.epsilon(view)
        assert epsilon is not None
        assert epsilon == pytest.approx(all_answered, rel=1e-3), view
        assert few_answered is not None
        assert few_answered < epsilon, view


def test_gaussian_rounds_compose_as_the_closed_form_says() -> None:
    """Noise of standard deviation nu hides a client that changes the sum by 2C: mu = 2C sqrt(T) / nu, and

    delta = Phi(mu/2 - eps/mu) - exp(eps) Phi(-mu/2 - eps/mu)                    (Balle and Wang 2018)
    """
    uplink = floras.Uplink("gaussian", noise_std=10.0, clip=1.0, delta=1e-5)
    ledger = filled(floras.Ledger(uplink), 7)
    epsilon, mu = ledger.epsilon("actual"), 0.2 * math.sqrt(7)
    assert epsilon is not None

    def normal(x: float) -> float:
        return 0.5 * math.erfc(-x / math.sqrt(2))

    delta = normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal(-mu / 2 - epsilon / mu)
    # Epsilon is a little larger, for floating-point arithmetic.
    assert 0.999e-5 < delta < 1e-5
    assert ledger.worst is not None
    assert ledger.worst.mu == pytest.approx(mu)
    assert ledger.worst.epsilon == pytest.approx(epsilon, rel=1e-6)


def test_affordable_rounds_stay_below_the_budget() -> None:
    ledger = filled(floras.Ledger(floras.Uplink(**PRIVATE)), 3)
    budget = 25.0
    more = ledger.affordable(20, budget, "any-channel")
    within = ledger.after(20, more, "any-channel")
    beyond = ledger.after(20, more + 1, "any-channel")
    assert within is not None
    assert beyond is not None
    assert within <= budget < beyond
    assert ledger.affordable(20, budget, "any-channel", max_rounds=1) == 1
    with pytest.warns(DeprecationWarning, match="most is now max_rounds"):
        assert ledger.affordable(20, budget, "any-channel", most=1) == 1
    assert ledger.affordable(20, 0.1, "any-channel") == 0


def test_before_the_first_round_epsilon_is_zero() -> None:
    ledger = floras.Ledger(floras.Uplink(**PRIVATE))
    assert ledger.rounds == 0
    assert ledger.epsilon("actual") == 0.0
    assert ledger.views() == {}
    assert ledger.worst is None


def test_without_a_clip_norm_there_is_no_epsilon() -> None:
    uplink = floras.Uplink(sequences=30, length=32)
    ledger = filled(floras.Ledger(uplink), 1)
    assert ledger.epsilon("any-channel") is None
    statement = ledger.views()["any-channel"]
    assert not statement.guarantee
    assert "clip" in (statement.reason or "")


def test_a_ledger_resumes_its_file(tmp_path: Path) -> None:
    uplink, path = floras.Uplink(**PRIVATE), tmp_path / "ledger.jsonl"
    ledger = filled(floras.Ledger(uplink, path), 2)
    assert ledger.path == path
    before, worst = ledger.epsilon("actual"), ledger.worst
    del ledger
    again = floras.Ledger(floras.Uplink(**PRIVATE), path)
    assert (again.rounds, again.epsilon("actual"), again.worst) == (2, before, worst)
    filled(again, 1)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line.get("round") for line in lines] == [None, 1, 2, 3]
    assert path.stat().st_mode & 0o077 == 0, "only the owner learns who took part"
    assert lines[1]["clients"] == list(range(20))
    together = filled(floras.Ledger(uplink), 3)
    assert again.worst == together.worst


def test_a_truncated_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    filled(floras.Ledger(floras.Uplink(**PRIVATE), path), 2)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    again = floras.Ledger(floras.Uplink(**PRIVATE), path)
    assert again.rounds == 1
    filled(again, 1)
    assert path.read_bytes() == whole


def test_a_last_line_without_newline_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    filled(floras.Ledger(floras.Uplink(**PRIVATE), path), 3)
    whole = path.read_bytes()
    path.write_bytes(whole.removesuffix(b"\n"))
    assert floras.Ledger(floras.Uplink(**PRIVATE), path).rounds == 3
    assert path.read_bytes() == whole


def test_a_truncated_header_is_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    floras.Ledger(floras.Uplink(**PRIVATE), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:30])
    assert floras.Ledger(floras.Uplink(**PRIVATE), path).rounds == 0
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("key", "value"), [("mu", [1.0]), ("mu", [-1.0] * 20), ("gains", []), ("noise_std", -1.0), ("among", 3)]
)
def test_a_line_that_lowers_the_loss_is_rejected(key: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    filled(floras.Ledger(floras.Uplink(**PRIVATE), path), 1)
    header, line = path.read_text().splitlines()
    path.write_text(header + "\n" + json.dumps({**json.loads(line), key: value}) + "\n")
    with pytest.raises(ValueError, match="line 2"):
        floras.Ledger(floras.Uplink(**PRIVATE), path)


def test_a_channel_without_noise_has_a_ledger_too(tmp_path: Path) -> None:
    uplink = floras.Uplink(sequences=20, length=32, snr_db=math.inf, clip=1.0)
    filled(floras.Ledger(uplink, tmp_path / "ledger.jsonl"), 1)
    again = floras.Ledger(uplink, tmp_path / "ledger.jsonl")
    assert (again.rounds, again.epsilon("actual")) == (1, None)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_cannot_write_its_parents_ledger(tmp_path: Path) -> None:
    ledger = filled(floras.Ledger(floras.Uplink(**PRIVATE), tmp_path / "ledger.jsonl"), 1)
    result = ledger.uplink.aggregate(updates(20), seed=5, round=2)
    child = os.fork()
    if child == 0:
        try:
            ledger.record(result)
        except ValueError as error:
            os._exit(0 if "in use" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    ledger.record(result)
    assert len((tmp_path / "ledger.jsonl").read_text().splitlines()) == 3


def test_a_busy_ledger_does_not_block_threads() -> None:
    ledger = filled(floras.Ledger(floras.Uplink(clients=200, **PRIVATE)), 2)
    asker = threading.Thread(target=lambda: ledger.affordable(20, 30.0, "any-channel"))
    asker.start()
    ticks = 0
    watcher = threading.Thread(target=lambda: repr(ledger))
    watcher.start()
    while asker.is_alive():
        ticks += 1
        time.sleep(0.001)
    watcher.join()
    # Were the interpreter held by the one who waits for the ledger, this thread would have stood still.
    assert ticks > 5


def test_another_uplinks_ledger_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    filled(floras.Ledger(floras.Uplink(**PRIVATE), path), 1)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"clip is 1.0 there and 2.0 here"):
        floras.Ledger(floras.Uplink(**{**PRIVATE, "clip": 2.0}), path)
    with pytest.raises(ValueError, match="clients is absent there and 40 here"):
        floras.Ledger(floras.Uplink(clients=40, **PRIVATE), path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "text",
    ["{}\n", "not JSON\n", "\n", '{"version":"0.1.0","settings":3}\n', "no newline", '{"important": 1}'],
)
def test_a_file_without_a_ledger_is_unchanged(text: str, tmp_path: Path) -> None:
    path = tmp_path / "other.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match="damaged"):
        floras.Ledger(floras.Uplink(**PRIVATE), path)
    assert path.read_text() == text


def test_a_ledger_with_a_gap_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    filled(floras.Ledger(floras.Uplink(**PRIVATE), path), 3)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2] + lines[3:]))
    with pytest.raises(ValueError, match="round 3 follows round 1"):
        floras.Ledger(floras.Uplink(**PRIVATE), path)


def test_two_writers_are_one_too_many(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    first = floras.Ledger(floras.Uplink(**PRIVATE), path)
    with pytest.raises(ValueError, match="in use"):
        floras.Ledger(floras.Uplink(**PRIVATE), path)
    del first


def test_rounds_are_in_order_of_one_uplink() -> None:
    uplink = floras.Uplink(**PRIVATE)
    ledger = floras.Ledger(uplink)
    with pytest.raises(ValueError, match="round must be 1, the next one in the ledger, not 2"):
        ledger.record(uplink.aggregate(updates(20), seed=1, round=2))
    other = floras.Uplink(sequences=31, length=32, clip=1.0)
    with pytest.raises(ValueError, match="own uplink"):
        ledger.record(other.aggregate(updates(20), seed=1))
    with pytest.raises(TypeError, match="not int"):
        ledger.record(3)  # type: ignore[arg-type]
    assert ledger.rounds == 0


def test_wrong_questions_are_refused(tmp_path: Path) -> None:
    ledger = floras.Ledger(floras.Uplink(**PRIVATE))
    with pytest.raises(ValueError, match="view must be one of"):
        ledger.epsilon("everything")
    with pytest.raises(ValueError, match="budget must be between 1e-9 and 1e5"):
        ledger.affordable(20, -1.0)
    with pytest.raises(ValueError, match="per_round must be between 1"):
        ledger.after(0)
    with pytest.raises(ValueError, match="sequences"):
        ledger.after(31)
    with pytest.raises(OSError, match="no-such-directory"):
        floras.Ledger(floras.Uplink(**PRIVATE), tmp_path / "no-such-directory" / "ledger.jsonl")
