"""``floras.compare`` against the program and the runs themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import floras


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[floras.Run]:
    directory = tmp_path_factory.mktemp("runs")
    settings = ({"uplink.snr_db": 10.0}, {"uplink.snr_db": 20.0})
    return [
        floras.run("quick", trials=2, rounds=2, settings=changed, out=directory / f"run-{number}")
        for number, changed in enumerate(settings)
    ]


def test_results_are_those_of_the_runs(runs: list[floras.Run]) -> None:
    compared = floras.compare(*runs)
    assert [run.name for run in compared.runs] == ["run-0", "run-1"]
    for row, run in zip(compared.runs, runs, strict=True):
        assert row.final == run.final
        assert (row.epsilon, row.verdict, row.view) == (run.epsilon(), run.verdict, run.privacy.view)
        assert (row.directory, row.rounds, row.trials) == (run.out, 2, 2)
    assert dict(compared.settings) == {"uplink.snr_db": ("10.0", "20.0")}
    frame = compared.to_pandas()
    assert frame.loc["run-1", "uplink.snr_db"] == "20.0"
    assert "<td>run-1</td>" in compared._repr_html_()


def test_program_and_package_compare_alike(
    program: Callable[..., str], runs: list[floras.Run], tmp_path: Path
) -> None:
    directories = [str(run.out) for run in runs]
    expected = json.loads(program("compare", *directories, "--json"))
    assert expected.pop("plots") == []
    compared = floras.compare(*directories, out=tmp_path)
    assert compared.to_dict() == expected
    assert {plot.suffix for plot in compared.plots} == {".svg", ".png", ".pdf", ".csv"}
    assert all(plot.is_file() for plot in compared.plots)


def test_a_sweep_stands_for_its_points(tmp_path: Path) -> None:
    sweep = floras.sweep("quick", {"uplink.snr_db": [10.0, 20.0]}, out=tmp_path / "sweep", trials=1, rounds=1)
    assert len(floras.compare(sweep).runs) == 2


def test_runs_that_cannot_be_compared_are_named(runs: list[floras.Run], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 2 runs, not 1"):
        floras.compare(runs[0])
    with pytest.raises(ValueError, match="not kept: give out"):
        floras.compare(runs[0], floras.run("quick", trials=1, rounds=1))
    with pytest.raises(ValueError, match=str(tmp_path)):
        floras.compare(runs[0], tmp_path)
