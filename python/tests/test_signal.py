from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import floras

EXPERIMENT: dict[str, Any] = {
    "name": "signal",
    "rounds": 4,
    "trials": 2,
    "clients": {"total": 12, "per_round": 8},
    "uplink": {"sequences": 12, "length": 16, "receiver": "clipped=1", "truncate": 2.0},
    "privacy": {"clip": 1.0},
}


def recorded(out: Path, rounds: Any, **keywords: Any) -> floras.Run:
    with pytest.warns(UserWarning, match="not private"):
        return floras.run(EXPERIMENT, out=out, record_signal=rounds, **keywords)


def names(out: Path) -> list[str]:
    return sorted(path.relative_to(out / "signals").as_posix() for path in out.glob("signals/*/*"))


def load(out: Path, trial: int, number: int) -> dict[str, npt.NDArray[Any]]:
    with np.load(out / "signals" / f"trial-{trial:04}" / f"round-{number:06}.npz") as file:
        return dict(file)


@pytest.mark.parametrize("fidelity", ["symbol", "chip"])
def test_a_recorded_signal_leads_to_the_metrics(tmp_path: Path, fidelity: str) -> None:
    run = recorded(tmp_path / "run", True, settings={"uplink.fidelity": fidelity})
    assert len(names(tmp_path / "run")) == 8
    lines = zip(run.metrics["trial"], run.metrics["round"], strict=True)
    for place, (trial, number) in enumerate(lines):
        signal = load(tmp_path / "run", trial, number)
        gains = signal["amplitudes"] * signal["weights"][signal["assignment"]]
        np.testing.assert_allclose(gains, signal["gains"], rtol=1e-9, atol=1e-12)
        assert gains.mean() == pytest.approx(run.metrics["mean_gain"][place], rel=1e-9, abs=1e-12)
        noise_std = signal["symbol_noise_std"] * np.linalg.norm(signal["weights"])
        assert noise_std == pytest.approx(run.metrics["noise_std"][place], rel=1e-12)
        assert signal["noise_std"] == run.metrics["noise_std"][place]
        estimates = signal["estimates"]
        weights = np.sign(estimates) / np.maximum(np.abs(estimates), signal["pilot_noise_std"])
        np.testing.assert_allclose(signal["weights"], weights, rtol=1e-14)
        np.testing.assert_array_equal(signal["amplitudes"], signal["channels"].real)
        np.testing.assert_array_equal(np.clip(signal["decoded"], -2, 2), signal["sum"])
        assert len(set(signal["assignment"])) == 8
        assert (signal["trial"], signal["round"]) == (trial, number)


def test_arrays_have_the_documented_types_and_shapes(tmp_path: Path) -> None:
    recorded(tmp_path / "run", 2)
    assert names(tmp_path / "run") == ["trial-0000/round-000002.npz", "trial-0001/round-000002.npz"]
    found = {name: (str(array.dtype), array.shape) for name, array in load(tmp_path / "run", 0, 2).items()}
    whole: tuple[int, ...] = ()
    assert found == {
        **dict.fromkeys(("trial", "round", "K", "N", "L", "d"), ("int64", whole)),
        **dict.fromkeys(("noise_std", "symbol_noise_std", "pilot_noise_std"), ("float64", whole)),
        "clients": ("int64", (8,)),
        "selected": ("int64", (8,)),
        "assignment": ("int64", (8,)),
        "channels": ("complex128", (8,)),
        "amplitudes": ("float64", (8,)),
        "gains": ("float64", (8,)),
        "estimates": ("float64", (12,)),
        "weights": ("float64", (12,)),
        "sum": ("float32", (4010,)),
        "decoded": ("float32", (4010,)),
        "block_parameters": ("int64", (1,)),
        "block_gains": ("float64", (1, 8)),
        "block_noise_std": ("float64", (1,)),
    }


@pytest.mark.parametrize("rounds", [range(2, 4), [3, 2], "2-3", np.array([2, 3])])
def test_rounds_are_given_in_several_ways(tmp_path: Path, rounds: Any) -> None:
    recorded(tmp_path / "run", rounds, trials=1)
    assert names(tmp_path / "run") == ["trial-0000/round-000002.npz", "trial-0000/round-000003.npz"]


@pytest.mark.parametrize("rounds", [0, 5, "3-2", [], [1, -1], "quick"])
def test_rounds_that_are_not_there_are_refused(tmp_path: Path, rounds: Any) -> None:
    with pytest.raises(ValueError, match=r"record\.signal must be none, all or rounds"):
        floras.run(EXPERIMENT, out=tmp_path / "run", record_signal=rounds)
    assert not (tmp_path / "run").exists()


def test_signals_need_a_directory_to_be_kept_in() -> None:
    with pytest.raises(ValueError, match="record_signal needs out"):
        floras.run(EXPERIMENT, record_signal=True)
    assert floras.run(EXPERIMENT, trials=1, record_signal=False).out is None


@pytest.mark.parametrize("fidelity", ["symbol", "chip"])
def test_an_aggregate_has_the_signal_of_the_run(tmp_path: Path, fidelity: str) -> None:
    changes = {"uplink.fidelity": fidelity}
    recorded(tmp_path / "run", 3, seed=1, settings=changes)
    signal = load(tmp_path / "run", 1, 3)
    uplink = floras.Uplink.of_experiment(floras.experiment(EXPERIMENT, settings=changes))
    deltas = np.zeros((8, 4010), np.float32)
    result = uplink.aggregate(deltas, seed=1, trial=1, round=3, clients=signal["clients"])
    for name in ("channels", "amplitudes", "assignment", "estimates", "weights", "gains"):
        array = getattr(result, name)
        np.testing.assert_array_equal(array, signal[name])
        assert array.dtype == signal[name].dtype
    for name in ("symbol_noise_std", "pilot_noise_std", "noise_std"):
        assert getattr(result, name) == signal[name]


def test_a_round_without_seed_has_its_signal() -> None:
    uplink = floras.Uplink(sequences=12, length=16, receiver="clipped=1", clip=1.0)
    result = uplink.aggregate(np.zeros((8, 10), np.float32))
    assert result.is_for_release
    assert result.weights is not None
    assert result.amplitudes is not None
    np.testing.assert_allclose(result.gains, result.amplitudes * result.weights[result.assignment], rtol=1e-9)


def test_schemes_have_what_they_have() -> None:
    deltas = np.zeros((8, 10), np.float32)
    ideal = floras.Uplink("ideal").aggregate(deltas, seed=1)
    for name in ("channels", "amplitudes", "assignment", "estimates", "weights", "symbol_noise_std"):
        assert getattr(ideal, name) is None
    inversion = floras.Uplink("channel-inversion").aggregate(deltas, seed=1)
    assert inversion.amplitudes is not None
    assert inversion.weights is not None
    np.testing.assert_allclose(inversion.gains, inversion.amplitudes * inversion.weights[0])
    assert (inversion.assignment, inversion.estimates, inversion.pilot_noise_std) == (None, None, None)
    assert inversion.channels is not None
    assert inversion.channels.shape == (8,)


@pytest.mark.parametrize("fidelity", ["symbol", "chip"])
def test_a_realised_channel_is_that_of_the_aggregate(fidelity: str) -> None:
    uplink = floras.Uplink(sequences=12, length=16, fidelity=fidelity)
    realised = uplink.realise(8, seed=1, round=3)
    result = uplink.aggregate(np.zeros((8, 10), np.float32), seed=1, round=3)
    np.testing.assert_array_equal(realised.gains, result.gains)
    assert realised.noise_std == result.noise_std
