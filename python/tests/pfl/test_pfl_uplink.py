# mypy: disable-error-code="import-untyped,import-not-found,misc"
"""`floras.pfl.FlorasUplink` on pfl's own simulated backend."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("torch")
pytest.importorskip("pfl.aggregate.simulate")

import pfl_federation as federation
from pfl.aggregate.weighting import WeightByUser
from pfl.common_types import Population
from pfl.metrics import Metrics, get_overall_value
from pfl.postprocessor.base import Postprocessor

import floras
from floras.pfl import CohortSampler, FlorasUplink

VIEWS: list[Any] = ["published", "idealised", "actual", "any_channel", "raw_signal"]


def updates_of(users: int, parameters: int, seed: int = 3) -> npt.NDArray[np.float32]:
    """Return updates with norms of about 0.5 to 2, so that a clip norm of 1 concerns some of them."""
    generator = np.random.default_rng(seed)
    rows = generator.standard_normal((users, parameters)) / np.sqrt(parameters)
    scaled: npt.NDArray[np.float32] = (rows * np.linspace(0.5, 2.0, users)[:, None]).astype(np.float32)
    return scaled


def named(rows: npt.NDArray[np.float32]) -> dict[str, Any]:
    """Give every update a user."""
    return {f"user-{number}": row for number, row in enumerate(rows)}


def metric(metrics: Any, name: str) -> float:
    """Return the value of one of the uplink's metrics."""
    # By text: pfl finds its own privacy metrics by their name object only.
    return float({str(key): get_overall_value(value) for key, value in metrics}[f"Central DP | {name}"])


@pytest.mark.parametrize("receiver", ["paper", "mmse", {"clipped": 1.0}])
def test_the_result_is_that_of_the_core(receiver: Any) -> None:
    uplink = floras.Uplink("floras", sequences=12, length=16, receiver=receiver, clip=1.0)
    rows = updates_of(8, 300)
    stats, _metrics = federation.gather(named(rows), [FlorasUplink(uplink, seed=5)])
    expected = uplink.aggregate(rows, seed=5, round=1)
    np.testing.assert_allclose(federation.values(stats), expected.sum, rtol=1e-4, atol=1e-4)
    assert stats.weight == 8


@pytest.mark.parametrize("scheme", ["channel-inversion", "phase-corrected", "gaussian", "ideal"])
def test_every_scheme_gives_the_result_of_the_core(scheme: Any) -> None:
    uplink = floras.Uplink(scheme, clip=1.0)
    rows = updates_of(40, 50)
    stats, _metrics = federation.gather(named(rows), [FlorasUplink(uplink, seed=2)])
    expected = uplink.aggregate(rows, seed=2, round=1)
    np.testing.assert_allclose(federation.values(stats), expected.sum, rtol=1e-4, atol=1e-4)


def test_a_channel_trace_covers_all_users(tmp_path: Path) -> None:
    rows = [f"0,{client},{0.5 + 0.1 * client},0.2" for client in range(8)]
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(["round,client,real,imaginary", *rows, ""]))
    uplink = floras.Uplink("floras", sequences=12, fading={"trace": str(path)})
    updates = updates_of(8, 50)
    stats, _metrics = federation.gather(named(updates), [FlorasUplink(uplink, seed=2)])
    expected = uplink.aggregate(updates, seed=2, round=1)
    np.testing.assert_allclose(federation.values(stats), expected.sum, rtol=1e-4, atol=1e-4)


def test_without_noise_the_sum_is_exact() -> None:
    uplink = floras.Uplink("floras", sequences=8, length=8, snr_db=float("inf"))
    updates = updates_of(8, 50)
    stats, _metrics = federation.gather(named(updates), [FlorasUplink(uplink, seed=2)])
    np.testing.assert_allclose(federation.values(stats), updates.sum(axis=0), rtol=1e-5, atol=1e-6)


def test_each_user_is_clipped_and_scaled() -> None:
    """User k has its whole update in parameter k, so that the sum shows one gain in each parameter."""
    mechanism = FlorasUplink(floras.Uplink("floras", sequences=10, clip=1.0), seed=4)
    norms = np.array([0.25, 0.5, 1.0, 2.0, 4.0, 8.0], dtype=np.float32)
    stats, metrics = federation.gather(named(np.diag(norms)), [mechanism])
    channel = mechanism.channel
    assert channel is not None
    without_noise = federation.values(stats) - channel.noise(6)
    expected = channel.gains * np.minimum(norms, 1.0)
    np.testing.assert_allclose(without_noise, expected, rtol=1e-4, atol=1e-4)
    assert metric(metrics, "fraction of clipped norms") == pytest.approx(0.5)
    assert metric(metrics, "norm before clipping") == pytest.approx(norms.mean())
    assert metric(metrics, "mean gain") == pytest.approx(channel.gains.mean())


def test_the_noise_is_normal_with_the_channels_deviation() -> None:
    """Users that send zeros leave nothing but the noise of the round.

    False alarm 1e-4 (Kolmogorov-Smirnov, fixed seed). With 200,000 numbers the threshold is a distance of
    0.0050; a standard deviation that is wrong by 4 % has 0.0095. The second check notices 1.2 %.
    """
    stats_module = pytest.importorskip("scipy.stats")
    mechanism = FlorasUplink(floras.Uplink("floras", sequences=12, clip=1.0), seed=6)
    stats, metrics = federation.gather(named(np.zeros((8, 200_000), dtype=np.float32)), [mechanism])
    channel = mechanism.channel
    assert channel is not None
    noise = federation.values(stats).astype(np.float64) / channel.noise_std
    assert stats_module.kstest(noise, "norm").pvalue > 1e-4
    # Standard error of a standard deviation over n numbers: 1/sqrt(2n) = 0.0016.
    assert noise.std() == pytest.approx(1.0, abs=0.007)
    assert metric(metrics, "DP noise std. dev. on summed stats") == pytest.approx(channel.noise_std)


def test_noise_of_the_papers_receiver_is_cauchy() -> None:
    """The closed form for Rayleigh fading and real modulation, s = sigma/sqrt(L).

    It is Cauchy of scale gamma + K*s/sqrt(1/2 + s^2), here 1.2. False alarm 1e-4 at a fixed seed. With 1,500
    rounds the threshold is a distance of 0.058; one unused sequence more or less has a scale of 2.2 or 0.2,
    and a distance of 0.094 or more.
    """
    stats_module = pytest.importorskip("scipy.stats")
    users, sequences, length, snr_db = 8, 9, 32, 20.0
    uplink = floras.Uplink("floras", sequences=sequences, length=length, snr_db=snr_db)
    mechanism = FlorasUplink(uplink, seed=8)
    zeros = named(np.zeros((users, 2), dtype=np.float32))
    first = [float(federation.values(federation.gather(zeros, [mechanism])[0])[0]) for _ in range(1500)]
    s = 10 ** (-snr_db / 20) / np.sqrt(length)
    scale = (sequences - users) + users * s / np.sqrt(0.5 + s**2)
    assert stats_module.kstest(first, "cauchy", args=(0, scale)).pvalue > 1e-4


def test_the_sum_is_clamped_to_the_truncation_bound() -> None:
    uplink = floras.Uplink("floras", sequences=12, clip=1.0, truncate=0.5)
    rows = updates_of(8, 300)
    stats, _metrics = federation.gather(named(rows), [FlorasUplink(uplink, seed=5)])
    decoded = federation.values(stats)
    assert np.abs(decoded).max() == 0.5
    np.testing.assert_allclose(decoded, uplink.aggregate(rows, seed=5, round=1).sum, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("clients", [None, 40])
def test_a_user_that_returns_nothing_sends_nothing(
    clients: int | None,
) -> None:
    uplink = floras.Uplink("floras", clients=clients, sequences=12, length=16, clip=1.0)
    mechanism = FlorasUplink(uplink, seed=5)
    rows = updates_of(8, 300)
    users = named(rows)
    users["user-2"] = None
    stats, metrics = federation.gather(users, [mechanism])
    answered = np.delete(rows, 2, axis=0)
    expected = uplink.aggregate(answered, seed=5, round=1, selected=8)
    np.testing.assert_allclose(federation.values(stats), expected.sum, rtol=1e-4, atol=1e-4)
    assert stats.weight == 7
    assert metric(metrics, "users in the sum") == 7
    assert metric(metrics, "users without an answer") == 1
    other = floras.Ledger(uplink)
    other.record(expected)
    assert mechanism.ledger.views() == other.views()


def test_a_round_without_answers_is_not_recorded() -> None:
    mechanism = FlorasUplink(floras.Uplink("floras", sequences=12, clip=1.0), seed=5)
    users = dict.fromkeys(["ann", "bob"])
    assert federation.gather(users, [mechanism])[0] is None
    assert mechanism.ledger.rounds == 0
    # The next round counts its own users only.
    federation.gather(named(updates_of(4, 10)), [mechanism])
    assert mechanism.ledger.rounds == 1


def test_evaluation_is_left_alone() -> None:
    mechanism = FlorasUplink(floras.Uplink("floras", sequences=12, clip=1.0), seed=5)
    silent = dict.fromkeys(["ann", "bob"])
    stats, metrics = federation.gather(silent, [mechanism], population=Population.VAL)
    assert stats is None
    assert not [name for name, _value in metrics if "Central DP" in str(name)]
    assert mechanism.ledger.rounds == 0


def test_statistics_of_an_evaluation_are_refused() -> None:
    mechanism = FlorasUplink(floras.Uplink("floras", sequences=12, clip=1.0), seed=5)
    with pytest.raises(ValueError, match="population train, not val"):
        federation.gather(named(updates_of(4, 10)), [mechanism], population=Population.VAL)


def test_rounds_differ_and_the_ledger_counts_them() -> None:
    mechanism = FlorasUplink(floras.Uplink("floras", sequences=12, clip=1.0), seed=5)
    users = named(updates_of(8, 300))
    results = [federation.values(federation.gather(users, [mechanism])[0]) for _ in range(3)]
    assert mechanism.ledger.rounds == 3
    assert not np.allclose(results[0], results[1])
    assert not np.allclose(results[1], results[2])


def test_epsilon_is_reported_every_few_rounds() -> None:
    mechanism = FlorasUplink(floras.Uplink("floras", sequences=12, clip=1.0), seed=5, epsilon_every=3)
    users = named(updates_of(8, 10))
    shown = [federation.gather(users, [mechanism])[1].to_simple_dict() for _ in range(4)]
    name = "Central DP | epsilon (actual, no guarantee)"
    assert [name in metrics for metrics in shown] == [True, False, True, False]
    views = floras.Ledger(mechanism.uplink)
    for number in (1, 2, 3):
        views.record(mechanism.uplink.realise(8, seed=5, round=number))
    for view, said in views.views().items():
        label = view if said.guarantee else f"{view}, no guarantee"
        name = f"Central DP | epsilon ({label})"
        # A view without a finite epsilon is not reported.
        assert shown[2].get(name) == (None if said.epsilon is None else pytest.approx(said.epsilon, rel=1e-9))
    assert mechanism.ledger.epsilon("actual") is not None


def test_rounds_of_different_sizes_match_the_core() -> None:
    uplink = floras.Uplink("floras", sequences=12, clip=1.0)
    mechanism, other = FlorasUplink(uplink, seed=5), floras.Ledger(uplink)
    rows = updates_of(8, 10)
    for number, missing in enumerate([[], [0, 7], [3]], start=1):
        users = {**named(rows), **{f"user-{place}": None for place in missing}}
        federation.gather(users, [mechanism])
        other.record(uplink.aggregate(np.delete(rows, missing, axis=0), seed=5, round=number, selected=8))
    assert [mechanism.ledger.epsilon(view) for view in VIEWS] == [other.epsilon(view) for view in VIEWS]


def test_sampled_users_are_accounted_as_a_sample() -> None:
    users = named(updates_of(40, 10))
    sampler = CohortSampler(list(users), 8, seed=1)
    mechanism = FlorasUplink(floras.Uplink("floras", clients=40, sequences=12, clip=1.0), seed=5)
    simulated = federation.backend(users, [mechanism], sampler)
    for _ in range(3):
        stats, _metrics = simulated.gather_results(
            None, federation.KnownUpdates(), central_context=federation.context(8)
        )
        assert stats.weight == 8
    account = floras.privacy.account(
        clip=1.0, sequences=12, per_round=8, clients=40, rounds=3, length=32, snr_db=20.0
    )
    for view in VIEWS:
        # What floating-point arithmetic costs is added.
        assert mechanism.ledger.epsilon(view) == pytest.approx(account.epsilon(view), rel=1e-3)


def test_rounds_without_a_seed_cannot_be_repeated() -> None:
    users = named(updates_of(8, 300))
    uplink = floras.Uplink("floras", sequences=12, clip=1.0)
    first, second = (federation.gather(users, [FlorasUplink(uplink)])[0] for _ in range(2))
    assert not np.allclose(federation.values(first), federation.values(second))


def test_a_resumed_training_reads_its_ledger(tmp_path: Path) -> None:
    uplink = floras.Uplink("floras", sequences=12, clip=1.0)
    users = named(updates_of(8, 300))
    path = tmp_path / "ledger.jsonl"
    whole = FlorasUplink(uplink, seed=5)
    expected = [federation.values(federation.gather(users, [whole])[0]) for _ in range(2)]
    federation.gather(users, [FlorasUplink(uplink, seed=5, ledger=path)])
    # A ledger's file has one owner; the first one must be gone.
    gc.collect()
    again = FlorasUplink(uplink, seed=5, ledger=path)
    assert again.ledger.rounds == 1
    second = federation.values(federation.gather(users, [again])[0])
    np.testing.assert_array_equal(second, expected[1])
    assert again.ledger.epsilon() == whole.ledger.epsilon()


def test_a_ledger_of_another_uplink_is_refused() -> None:
    ledger = floras.Ledger(floras.Uplink("floras", sequences=13, clip=1.0))
    with pytest.raises(ValueError, match="not of another"):
        FlorasUplink(floras.Uplink("floras", sequences=12, clip=1.0), ledger=ledger)


def test_other_postprocessors_may_come_before() -> None:
    uplink = floras.Uplink("floras", sequences=12, clip=1.0)
    users = named(updates_of(8, 300))
    alone, _metrics = federation.gather(users, [FlorasUplink(uplink, seed=5)])
    weighted, _metrics = federation.gather(users, [WeightByUser(), FlorasUplink(uplink, seed=5)], weight=1.0)
    np.testing.assert_array_equal(federation.values(alone), federation.values(weighted))


def test_weights_other_than_one_are_refused() -> None:
    users = named(updates_of(4, 10))
    uplink = floras.Uplink("floras", sequences=12, clip=1.0)
    with pytest.raises(ValueError, match="weight of every user must be 1, not 20"):
        federation.gather(users, [FlorasUplink(uplink, seed=5)], weight=20.0)
    reweighted, _metrics = federation.gather(
        users, [WeightByUser(), FlorasUplink(uplink, seed=5)], weight=20.0
    )
    assert reweighted.weight == 4


def test_weighting_after_the_uplink_is_detected() -> None:
    class Heavier(Postprocessor):
        def postprocess_one_user(self, *, stats: Any, user_context: Any) -> tuple[Any, Metrics]:
            stats.reweight(3.0)
            return stats, Metrics()

    mechanism = FlorasUplink(floras.Uplink("floras", sequences=12, clip=1.0), seed=5)
    with pytest.raises(ValueError, match="last of the postprocessors"):
        federation.gather(named(updates_of(4, 10)), [mechanism, Heavier()])


def test_a_user_that_is_drawn_twice_is_refused() -> None:
    mechanism = FlorasUplink(floras.Uplink("floras", sequences=12, clip=1.0), seed=5)
    users = named(updates_of(4, 10))
    with pytest.raises(ValueError, match="user 'user-1' answers a second time in round 1"):
        federation.gather(users, [mechanism], sampler=lambda: "user-1")


def test_more_users_than_sequences_are_refused() -> None:
    mechanism = FlorasUplink(floras.Uplink("floras", sequences=12, clip=1.0), seed=5)
    with pytest.raises(ValueError, match="12"):
        federation.gather(named(updates_of(13, 10)), [mechanism])


def test_non_finite_updates_name_their_user() -> None:
    rows = updates_of(4, 10)
    rows[2, 3] = np.nan
    mechanism = FlorasUplink(floras.Uplink("floras", sequences=12, clip=1.0), seed=5)
    with pytest.raises(ValueError, match="user 'user-2' must be finite"):
        federation.gather(named(rows), [mechanism])


def test_an_aborted_round_is_detected_in_the_next() -> None:
    rows = updates_of(4, 10)
    rows[2, 3] = np.nan
    mechanism = FlorasUplink(floras.Uplink("floras", sequences=12, clip=1.0), seed=5)
    with pytest.raises(ValueError, match="must be finite"):
        federation.gather(named(rows), [mechanism])
    other = {f"other-{number}": row for number, row in enumerate(updates_of(4, 10))}
    with pytest.raises(RuntimeError, match="an earlier round broke off"):
        federation.gather(other, [mechanism])


TWO_WORKERS = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import pfl_federation as federation
import floras
from floras.pfl import FlorasUplink
users = {str(number): np.ones(4, dtype=np.float32) for number in range(4)}
assert federation.gather(users, [])[0].weight == 4
try:
    federation.gather(users, [FlorasUplink(floras.Uplink("floras", clip=1.0), seed=1)])
except RuntimeError as error:
    print(f"refused: {error}", flush=True)
"""


def test_several_workers_are_refused(tmp_path: Path) -> None:
    """Two real processes, between which pfl shares the users of a round out."""
    script = tmp_path / "two_workers.py"
    script.write_text(TWO_WORKERS)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = subprocess.run(
        [*launch, str(script), str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("refused: FlorasUplink works in one process, not in 2") == 2


def test_live_training_is_refused() -> None:
    mechanism = FlorasUplink(floras.Uplink("floras", sequences=12, clip=1.0), seed=5)
    with pytest.raises(RuntimeError, match="simulates the radio"):
        mechanism.postprocess_server_live(stats=None, central_context=None, aggregate_metrics=None)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"fidelity": "chip"}, "fidelity"),
        ({"normalise": "paper", "clip": 1.0}, "normalise"),
        ({"family": "gaussian"}, "family"),
        ({"family": "gold", "length": 31}, "family"),
    ],
)
def test_uplinks_that_need_all_updates_are_rejected(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        FlorasUplink(floras.Uplink("floras", **settings))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"uplink": "floras"}, TypeError),
        ({"seed": -1}, ValueError),
        ({"seed": 2**63}, ValueError),
        ({"seed": 1.5}, TypeError),
        ({"seed": True}, TypeError),
        ({"epsilon_every": 0}, ValueError),
        ({"epsilon_every": 1.5}, TypeError),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        FlorasUplink(**{"uplink": floras.Uplink("floras", clip=1.0), **arguments})


def test_a_cohort_sampler_draws_uniformly_without_replacement() -> None:
    """False alarm about 1e-6 (a count has a standard deviation of 28; five of them are allowed)."""
    sampler = CohortSampler(range(10), 2, seed=1)
    pairs = [(sampler(), sampler()) for _ in range(5000)]
    assert all(first != second for first, second in pairs)
    counts = np.bincount(np.array(pairs).ravel(), minlength=10)
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(1000 * 0.8)


@pytest.mark.parametrize(
    ("users", "cohort_size", "error"),
    [([1, 2], 3, ValueError), ([1, 2], 0, ValueError), ([1, 1], 1, ValueError), ([1, 2], 1.0, TypeError)],
)
def test_wrong_cohorts_are_refused(users: list[int], cohort_size: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        CohortSampler(users, cohort_size)


def test_a_sum_without_seed_is_fit_for_release() -> None:
    uplink = floras.Uplink("gaussian", noise_std=3.0, clip=1.0)
    mechanism = FlorasUplink(uplink)
    rows = updates_of(8, 20_000)
    stats, metrics = federation.gather(named(rows), [mechanism])
    decoded = federation.values(stats)
    assert not np.any(decoded % 2.0**-4), "the largest power of two below 3/32"
    # Five standard errors: a false alarm once in two million.
    clipped = sum(floras.clip(row, 1.0) for row in rows)
    assert (decoded - clipped).std() == pytest.approx(3.0, rel=5 / (2 * 20_000) ** 0.5)
    assert mechanism.ledger.noise_caveat is None
    assert "Central DP | epsilon (actual)" in metrics.to_simple_dict()
