from __future__ import annotations

import gc
import multiprocessing
import pickle
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import floras

Deltas = npt.NDArray[np.float32]
PRIVATE: dict[str, Any] = {"sequences": 9, "length": 16, "clip": 1.0, "receiver": {"clipped": 1.0}}


def test_an_ideal_uplink_adds_exactly(deltas: Deltas) -> None:
    result = floras.Uplink("ideal").aggregate(deltas, seed=1)
    np.testing.assert_allclose(result.sum, deltas.sum(axis=0), atol=1e-5)
    assert result.sum.dtype == np.float32
    assert result.norms is None
    assert result.noise_std == 0.0
    np.testing.assert_array_equal(result.mean, result.sum / np.float32(6))


def test_the_sum_is_the_effective_channel_applied(deltas: Deltas) -> None:
    """In single precision the two ways of adding up differ by rounding alone."""
    uplink = floras.Uplink(**PRIVATE)
    result = uplink.aggregate(deltas, seed=3, round=5)
    norms = np.linalg.norm(deltas.astype(np.float64), axis=1)
    np.testing.assert_allclose(result.norms, norms, rtol=1e-12)
    clipped = deltas / np.maximum(norms, 1.0)[:, None]
    channel = uplink.realise(6, seed=3, round=5)
    np.testing.assert_array_equal(channel.gains, result.gains)
    assert channel.noise_std == result.noise_std
    expected = result.gains @ clipped + channel.noise(5000)
    np.testing.assert_allclose(result.sum, expected, atol=1e-5)


def test_the_noise_has_the_promised_spread() -> None:
    """The mean of 200,000 squares of normal numbers deviates by over 1.5% with probability below 2e-6."""
    uplink = floras.Uplink(**PRIVATE)
    result = uplink.aggregate(np.zeros((6, 200_000), np.float32), seed=11)
    assert result.sum.std() == pytest.approx(result.noise_std, rel=0.0075)


def test_a_seed_and_round_determine_the_bytes(deltas: Deltas) -> None:
    uplink = floras.Uplink(**PRIVATE)
    first = uplink.aggregate(deltas, seed=1, round=1).sum
    np.testing.assert_array_equal(first, uplink.aggregate(deltas, seed=1, round=1).sum)
    for other in ({"seed": 2}, {"seed": 1, "round": 2}, {"seed": 1, "trial": 1}):
        assert not np.array_equal(first, uplink.aggregate(deltas, **other).sum)


def test_without_a_seed_the_noise_is_new(deltas: Deltas) -> None:
    uplink = floras.Uplink(**PRIVATE)
    assert not np.array_equal(uplink.aggregate(deltas).sum, uplink.aggregate(deltas).sum)


def test_noise_without_a_seed_is_fit_for_release(deltas: Deltas) -> None:
    uplink = floras.Uplink("gaussian", noise_std=3.0, clip=1.0)
    result = uplink.aggregate(deltas)
    assert result.is_for_release
    assert not uplink.aggregate(deltas, seed=1).is_for_release
    assert not np.any(result.sum % 2.0**-4), "the largest power of two below 3/32"
    added = result.add_noise(np.full(100_000, 0.5))
    assert not np.any(added % 2.0**-4)
    # Five standard errors: a false alarm once in two million.
    assert abs(added.mean() - 0.5) < 5 * 3.0 / 100_000**0.5
    assert added.std() == pytest.approx(3.0, rel=5 / (2 * 100_000) ** 0.5)
    with pytest.raises(ValueError, match="add_noise"):
        result.noise(10)
    with pytest.raises(TypeError, match="float64"):
        result.add_noise(np.zeros(3, np.float32))  # type: ignore[arg-type]


def test_seeded_noise_is_that_of_aggregate(deltas: Deltas) -> None:
    channel = floras.Uplink(**PRIVATE).realise(6, seed=3, round=5)
    expected = channel.noise(5000) + np.float32(0.5)
    np.testing.assert_allclose(channel.add_noise(np.full(5000, 0.5)), expected, rtol=1e-6)
    fewer = channel.with_clients(4, selected=6)
    np.testing.assert_array_equal(fewer.gains, channel.gains[:4])
    assert (fewer.clients, fewer.selected, fewer.round) == ([0, 1, 2, 3], 6, 5)


@pytest.mark.parametrize("fidelity", ["symbol", "chip"])
def test_only_rounds_without_a_seed_are_guarantees(deltas: Deltas, fidelity: str) -> None:
    uplink = floras.Uplink(**PRIVATE, fidelity=fidelity)
    for seed, expected in ((None, fidelity == "symbol"), (1, False)):
        ledger = floras.Ledger(uplink)
        ledger.record(uplink.aggregate(deltas, seed=seed))
        said = ledger.views()["any-channel"]
        assert said.guarantee is expected
        assert expected or "simulation's generator" in (said.reason or "")
        assert (ledger.noise_caveat is None) is expected
    assert uplink.account(6).views["any-channel"].guarantee is (fidelity == "symbol")


def test_rows_and_lists_of_arrays_are_equivalent(deltas: Deltas) -> None:
    uplink = floras.Uplink(**PRIVATE)
    expected = uplink.aggregate(deltas, seed=1).sum
    np.testing.assert_array_equal(uplink.aggregate(list(deltas), seed=1).sum, expected)
    np.testing.assert_array_equal(uplink.aggregate(tuple(deltas), seed=1).sum, expected)


@pytest.mark.parametrize("kind", ["f8", "f2", ">f4", "F"])
def test_other_floating_point_arrays_are_converted(deltas: Deltas, kind: str) -> None:
    """float64, float16, another byte order and another memory order, as astype(np.float32) converts them."""
    uplink = floras.Uplink(**PRIVATE)
    given = np.asfortranarray(deltas) if kind == "F" else deltas.astype(kind)
    expected = uplink.aggregate(np.ascontiguousarray(given, np.float32), seed=1).sum
    np.testing.assert_array_equal(uplink.aggregate(given, seed=1).sum, expected)
    np.testing.assert_array_equal(uplink.aggregate(list(given), seed=1).sum, expected)
    np.testing.assert_array_equal(floras.clip(given[0], 1.0), floras.clip(given[0].astype(np.float32), 1.0))


def test_the_updates_are_never_changed(deltas: Deltas) -> None:
    before = deltas.copy()
    deltas.setflags(write=False)
    for normalise in ("clip", "paper"):
        floras.Uplink(**PRIVATE, normalise=normalise).aggregate(deltas, seed=1)
    np.testing.assert_array_equal(deltas, before)


@pytest.mark.parametrize(
    "settings",
    [
        {"scheme": "channel-inversion", "artificial_noise_std": 1.0, "clip": 1.0},
        {"scheme": "channel-inversion", "admission": {"power": 0.1}, "power_rule": "worst-admitted"},
        {"scheme": "phase-corrected", "phase_error": {"uniform": 0.3}, "noise": "same-bandwidth"},
        {"scheme": "ideal"},
        {"scheme": "gaussian", "noise_std": 2.0, "clip": 1.0},
        {"scheme": "floras", "family": "orthonormal", "fidelity": "chip"},
        {"scheme": "floras", "family": "gaussian", "fading": {"rician": 3.0}, "receiver": "mmse"},
        {"scheme": "floras", "family": "gold", "length": 31, "receiver": "mmse"},
        {"scheme": "floras", "family": "zadoff-chu", "length": 62},
        {"scheme": "floras", "modulation": "phase-corrected", "phase_error": {"gaussian": 0.1}},
        {"scheme": "floras", "fading": {"nakagami": 2.0}, "snr_convention": "despread", "truncate": 3.0},
        {"scheme": "floras", "ageing": "doppler=0.05"},
        {
            "scheme": "floras",
            "modulation": "complex",
            "antennas": 2,
            "parameters_per_symbol": 2,
            "receiver": "mmse=3",
        },
        {"scheme": "channel-inversion", "channel_error": 0.1, "ageing": {"correlation": 0.9}},
        {"scheme": "floras", "normalise": "paper", "clip": 2.0, "fading": "none", "delta": 1e-6},
    ],
)
def test_every_scheme_is_there(settings: dict[str, Any], deltas: Deltas) -> None:
    uplink = floras.Uplink(**settings)
    result = uplink.aggregate(deltas, seed=1)
    assert np.isfinite(result.sum).all()
    for key, value in settings.items():
        # A choice with a parameter is given as a dictionary or as its text, and comes back as text.
        parts = [(name, f"{number:g}") for name, number in value.items()] if isinstance(value, dict) else []
        assert uplink.settings[key] == (value if not parts else "=".join(parts[0]))
    assert repr(eval(repr(uplink), {"Uplink": floras.Uplink})) == repr(uplink)
    same = pickle.loads(pickle.dumps(uplink)).aggregate(deltas, seed=1)
    np.testing.assert_array_equal(same.sum, result.sum)


def test_branches_stand_in_columns(deltas: Deltas) -> None:
    uplink = floras.Uplink(sequences=25, length=32, snr_db=20.0, modulation="complex", antennas=2)
    result = uplink.aggregate(deltas, seed=1)
    assert result.channels is not None
    assert result.amplitudes is not None
    assert result.weights is not None
    clients = len(result.gains)
    assert result.channels.shape == (clients, 2)
    assert result.amplitudes.shape == (clients, 4)
    assert result.weights.shape == (25, 4)
    np.testing.assert_allclose(
        result.gains, (result.amplitudes * result.weights[result.assignment]).sum(axis=1)
    )
    packed = floras.Uplink(sequences=25, length=32, modulation="complex", parameters_per_symbol=2)
    assert np.isfinite(packed.aggregate(deltas, seed=1).sum).all()
    with pytest.raises(ValueError, match="parameters_per_symbol"):
        packed.realise(clients, seed=1)


def test_clients_may_stand_in_a_cell(deltas: Deltas) -> None:
    cell = {"exponent": 3.7, "shadowing_db": 8.0, "min_distance": 0.1, "power_control": 0.8}
    uplink = floras.Uplink(path_loss=cell, clip=1.0)
    assert uplink.settings["path_loss"] == "exponent=3.7,shadowing_db=8,min_distance=0.1,power_control=0.8"
    same = floras.Uplink(path_loss=uplink.settings["path_loss"], clip=1.0)
    expected = uplink.aggregate(deltas, seed=1)
    np.testing.assert_array_equal(same.aggregate(deltas, seed=1).sum, expected.sum)
    assert "actual" not in expected.spend
    with pytest.raises(ValueError, match="power-control factor must be between 0 and 1, not 2"):
        floras.Uplink(path_loss={"power_control": 2.0})


def test_sequences_may_come_from_a_file(tmp_path: Path, deltas: Deltas) -> None:
    hadamard = np.array([[1.0]])
    for _ in range(5):
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    codes = tmp_path / "codes.csv"
    np.savetxt(codes, hadamard, delimiter=",")
    uplink = floras.Uplink(family={"file": str(codes)}, clip=1.0)
    assert uplink.settings["family"] == f"file={codes}"
    expected = floras.Uplink(clip=1.0).aggregate(deltas, seed=1)
    np.testing.assert_array_equal(uplink.aggregate(deltas, seed=1).sum, expected.sum)
    with pytest.raises(ValueError, match="32 columns instead of 64"):
        floras.Uplink(family={"file": str(codes)}, length=64)


def test_decoded_values_are_clamped(deltas: Deltas) -> None:
    result = floras.Uplink("ideal", truncate=0.5).aggregate(deltas, seed=1)
    assert np.abs(result.sum).max() == 0.5


def test_a_silent_client_hides_no_client(deltas: Deltas) -> None:
    uplink = floras.Uplink(**PRIVATE)
    everyone = uplink.aggregate(deltas, seed=1)
    fewer = uplink.aggregate(deltas[:5], seed=1, clients=[0, 1, 2, 4, 5], selected=6)
    assert (fewer.clients, fewer.selected) == ([0, 1, 2, 4, 5], 6)
    assert fewer.spend["idealised"] == pytest.approx(everyone.spend["idealised"])


def test_random_selection_leaks_less(deltas: Deltas) -> None:
    always = floras.Uplink(**PRIVATE).aggregate(deltas, seed=1).spend
    sometimes = floras.Uplink(clients=60, **PRIVATE).aggregate(deltas, seed=1).spend
    assert sometimes["any-channel"] < always["any-channel"]


BAD_DELTAS: list[tuple[Any, type[Exception], str]] = [
    (np.zeros((2, 3), np.int32), TypeError, r"deltas must be floating-point, not int32; array.astype\("),
    (np.zeros((2, 3), np.complex64), TypeError, "deltas must be floating-point, not complex64"),
    (np.zeros(3, np.float32), ValueError, "two dimensions"),
    (np.zeros((2, 3, 4), np.float32), ValueError, r"not the shape \(2, 3, 4\)"),
    (np.zeros((0, 3), np.float32), ValueError, "client"),
    (np.zeros((2, 0), np.float32), ValueError, "update"),
    (np.empty((2**40, 0), np.float32), ValueError, "rows"),
    (np.ma.masked_array(np.zeros((2, 3), np.float32)), TypeError, "not a masked one"),
    (np.frombuffer(bytes(25), np.uint8)[1:].view(np.float32).reshape(2, 3), ValueError, "aligned"),
    ([], ValueError, "client"),
    ([np.zeros(2, np.float32), np.zeros(3, np.float32)], ValueError, "3"),
    (
        [np.zeros(2, np.float32), np.zeros(2, int)],
        TypeError,
        r"deltas\[1\] must be floating-point, not int64",
    ),
    ([[1.0, 2.0]], TypeError, r"deltas\[0\] must be a floating-point array, not list"),
    ([np.zeros((1, 2), np.float32)], ValueError, r"deltas\[0\] must have one dimension"),
    ("deltas", TypeError, "not str"),
    (None, TypeError, "not NoneType"),
    (3.0, TypeError, "not float"),
]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_non_finite_update_is_sent_as_zero(value: float) -> None:
    uplink = floras.Uplink(**PRIVATE)
    deltas = np.array([[0.5, 0.25], [0.0, 0.0], [-0.25, 0.5]], np.float32)
    zero = uplink.aggregate(deltas, seed=1)
    deltas[1, 0] = value
    broken = uplink.aggregate(deltas, seed=1)
    assert np.array_equal(broken.sum, zero.sum)
    assert (zero.broken, broken.broken) == ([], [1])


@pytest.mark.parametrize(("given", "error", "words"), BAD_DELTAS)
@pytest.mark.parametrize("clip", [None, 1.0])
def test_bad_updates_are_refused_in_words(
    given: Any, error: type[Exception], words: str, clip: float | None
) -> None:
    with pytest.raises(error, match=words):
        floras.Uplink(sequences=9, length=16, clip=clip).aggregate(given, seed=1)


BAD_SETTINGS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"sequencez": 3}, TypeError, "did you mean sequences"),
    ({"clipp": 3}, TypeError, "did you mean clip"),
    ({"scheme": "flora"}, ValueError, "uplink.scheme must be"),
    ({"sequences": -1}, ValueError, "uplink.sequences must be a non-negative integer"),
    ({"sequences": 2.5}, ValueError, "uplink.sequences must be a non-negative integer"),
    ({"sequences": 40, "length": 32}, ValueError, "sequences"),
    ({"clip": -1.0}, ValueError, "privacy.clip must be"),
    ({"clip": float("nan")}, ValueError, "privacy.clip must be"),
    ({"delta": 2.0}, ValueError, "privacy.delta must be"),
    ({"fading": {"rician": -1.0}}, ValueError, "fading"),
    ({"fading": {"trace": "no-such-file.csv"}}, ValueError, "no-such-file.csv"),
    ({"receiver": {"clipped": "much"}}, ValueError, "receiver"),
    ({"snr_db": "loud"}, ValueError, "snr_db"),
    ({"snr_db": object()}, TypeError, "snr_db must be a number, text, a list or a dictionary, not object"),
    ({"clients": 0}, ValueError, "clients must be between 1"),
    ({"clients": 2.0}, TypeError, "clients must be an integer, not float"),
    ({"sequences": 10**30}, ValueError, "must be an integer of 64 bits"),
    ({"snr_db": np.complex64(1j)}, TypeError, "snr_db must be a number"),
]


@pytest.mark.parametrize(("settings", "error", "words"), BAD_SETTINGS)
def test_bad_settings_are_refused_in_words(
    settings: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        floras.Uplink(**settings)


BAD_ROUNDS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"seed": -1}, ValueError, "seed must be between 0"),
    ({"seed": 1.5}, TypeError, "seed must be an integer, not float"),
    ({"round": 0}, ValueError, "round must be between 1"),
    ({"trial": 70000}, ValueError, "trial must be between 0"),
    ({"clients": [0, 1]}, ValueError, "2"),
    ({"clients": [0, 0, 1, 2, 3, 4]}, ValueError, "client 0"),
    ({"clients": 5}, TypeError, "clients must be a sequence"),
    ({"clients": [0, 1, 2, 3, 4, -5]}, ValueError, r"clients\[5\] must be"),
    ({"selected": 5}, ValueError, "selected must be at least 6"),
    ({"selected": 10}, ValueError, "sequences"),
]


@pytest.mark.parametrize(("arguments", "error", "words"), BAD_ROUNDS)
def test_bad_rounds_are_refused_in_words(
    arguments: dict[str, Any], error: type[Exception], words: str, deltas: Deltas
) -> None:
    with pytest.raises(error, match=words):
        floras.Uplink(**PRIVATE).aggregate(deltas, **{"seed": 1, **arguments})


def test_more_clients_than_sequences_are_refused(deltas: Deltas) -> None:
    with pytest.raises(ValueError, match="sequences"):
        floras.Uplink(sequences=5, length=16).aggregate(deltas, seed=1)


def test_too_much_noise_is_a_memory_error() -> None:
    channel = floras.Uplink(**PRIVATE).realise(6, seed=1)
    with pytest.raises(MemoryError, match="not enough memory for"):
        channel.noise(1 << 40)


def test_numbers_of_numpy_are_numbers(deltas: Deltas) -> None:
    plain = floras.Uplink(sequences=9, length=16, snr_db=10.0, clip=1.0)
    numpy = floras.Uplink(
        sequences=np.int64(9), length=np.uint8(16), snr_db=np.float32(10.0), clip=np.float64(1)
    )
    expected = plain.aggregate(deltas, seed=1, clients=[0, 1, 2, 3, 4, 5]).sum
    actual = numpy.aggregate(deltas, seed=np.int32(1), clients=np.arange(6)).sum
    np.testing.assert_array_equal(actual, expected)
    assert floras.Uplink(snr_db=np.array(10.5)).settings["snr_db"] == 10.5
    with pytest.raises(ValueError, match="seed must be"):
        plain.aggregate(deltas, seed=np.uint64(2**63 + 1))


def test_clipping_keeps_short_updates_and_the_norm(deltas: Deltas) -> None:
    for update in deltas:
        clipped = floras.clip(update, 3.0)
        assert np.linalg.norm(clipped.astype(np.float64)) <= 3.0
        np.testing.assert_allclose(clipped, update * (3.0 / np.linalg.norm(update)), rtol=1e-5)
    short = np.array([0.1, 0.2], np.float32)
    np.testing.assert_array_equal(floras.clip(short, 1.0), short)


@pytest.mark.parametrize(
    ("update", "norm", "error"),
    [
        (np.zeros(3, int), 1.0, TypeError),
        (np.zeros((1, 3), np.float32), 1.0, ValueError),
        (np.zeros(0, np.float32), 1.0, ValueError),
        (np.array([np.nan], np.float32), 1.0, ValueError),
        (np.zeros(3, np.float32), -1.0, ValueError),
        (np.zeros(3, np.float32), "long", TypeError),
        ([1.0], 1.0, TypeError),
    ],
)
def test_what_cannot_be_clipped_is_refused(update: Any, norm: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        floras.clip(update, norm)


def test_other_threads_continue_during_aggregation() -> None:
    """The uplink works for long; a thread that counts in Python gets on in the meantime."""
    uplink = floras.Uplink(sequences=64, length=64, fidelity="chip")
    large = np.zeros((20, 400_000), np.float32)
    ticks, done = [], threading.Event()

    def count() -> None:
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    start = time.perf_counter()
    uplink.aggregate(large, seed=1)
    end = time.perf_counter()
    done.set()
    counter.join()
    within = [tick for tick in ticks if start < tick < end]
    # With the interpreter held there would be none.
    assert len(within) >= 3


def _in_a_child(queue: Any) -> None:
    sum_ = floras.Uplink(**PRIVATE).aggregate(np.ones((6, 5000), np.float32), seed=1).sum
    queue.put(float(sum_[0]))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_a_forked_process_has_its_own_threads() -> None:
    expected = floras.Uplink(**PRIVATE).aggregate(np.ones((6, 5000), np.float32), seed=1).sum[0]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_a_child, args=(queue,))
    child.start()
    try:
        assert queue.get(timeout=60) == pytest.approx(float(expected))
    finally:
        child.kill()
        child.join()


def test_results_outlive_the_uplink_and_the_updates(deltas: Deltas) -> None:
    result = floras.Uplink(**PRIVATE).aggregate(deltas.copy(), seed=1)
    sum_ = result.sum
    before = sum_.copy()
    del result
    gc.collect()
    np.testing.assert_array_equal(sum_, before)


def test_masks_bound_every_view() -> None:
    masks = {"mask_std": 20.0, "noise_std": 2.0}
    plain, masked = floras.Uplink(**PRIVATE), floras.Uplink(**PRIVATE, masks=masks)
    assert masked.settings["masks"] == {**masks, "colluding": 0}
    statement = masked.account(6, 3).views["raw-signal"]
    assert statement.guarantee
    assert statement.from_masks
    assert statement.verdict in ("strong", "moderate", "weak")
    # A silent client leaves its masks in the sum.
    complete, silent = masked.realise(5, seed=1), masked.realise(5, seed=1, selected=6)
    assert silent.noise_std > complete.noise_std > plain.realise(5, seed=1).noise_std


def test_masks_need_noise_of_the_clients() -> None:
    with pytest.raises(ValueError, match=r"masks\.noise_std: it must be given"):
        floras.Uplink(**PRIVATE, masks={"mask_std": 1.0})


def test_uplinks_with_equal_settings_are_equal() -> None:
    uplink = floras.Uplink(sequences=25, clip=1.0)
    again = pickle.loads(pickle.dumps(uplink))
    assert again == uplink == floras.Uplink(sequences=25, clip=1.0)
    assert hash(again) == hash(uplink)
    assert uplink != floras.Uplink(sequences=26, clip=1.0)
    assert uplink != 3


def test_settings_without_effect_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="without effect under the other settings.*: sequences") as caught:
        floras.Uplink("gaussian", sequences=3, noise_std=1.0)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(pickle.dumps(floras.Uplink("gaussian", noise_std=1.0, clients=30)))


def test_a_ledger_needs_an_uplink() -> None:
    with pytest.raises(TypeError, match="uplink must be an Uplink, not int"):
        floras.Ledger(3)  # type: ignore[arg-type]
