"""The notebooks and scripts of the examples run, and notebooks are committed with their outputs."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
# An interpreter with PYTHONSAFEPATH cannot start a kernel: Jupyter adds the directory of the notebook.
UNSAFE = {key: value for key, value in os.environ.items() if key != "PYTHONSAFEPATH"}


def test_there_are_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first-private-model", "sweep-and-frontier"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}})
    client.execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("Verdicts: strong" in str(output.get("data", {}).get("text/html", "")) for output in shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_with_its_outputs(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count == number for number, cell in enumerate(cells, start=1))
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs)
    assert not any(output.output_type == "error" for cell in cells for output in cell.outputs)
    assert path.stat().st_size < 200_000
    assert str(Path.home()) not in path.read_text(encoding="utf-8")


def test_the_tracker_without_a_service_prints_lines() -> None:
    environment = {key: value for key, value in UNSAFE.items() if not key.startswith(("WANDB", "MLFLOW"))}
    script = ROOT / "examples" / "trackers.py"
    ended = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True
    )
    lines = ended.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        *(f"round {number}" for number in range(1, 11)),
        "final",
    ]
    assert "epsilon any-channel" in lines[-1]


def test_the_tracker_skips_metrics_without_measurement(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WANDB_API_KEY", "WANDB_MODE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    runpy.run_path(str(ROOT / "examples" / "trackers.py"))["main"]("private", rounds=2)
    first, second, final = capsys.readouterr().out.splitlines()
    assert first.startswith("round 1: noise_std")
    assert second.startswith("round 2: test_accuracy")
    assert "epsilon raw-signal" in final
