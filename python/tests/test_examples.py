"""The examples in the docstrings, of Python's modules and of those in Rust."""

from __future__ import annotations

import doctest
import inspect
import pkgutil
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

import floras
from floras import _core

# They are tested where their packages are installed.
OPTIONAL = ("floras.flower", "floras.pfl", "floras.torch")


def documented(thing: Any, name: str) -> list[tuple[str, str]]:
    """A thing's docstring, and those of what it holds."""
    found = [(name, inspect.getdoc(thing) or "")]
    if inspect.isclass(thing):
        for key, value in vars(thing).items():
            if not key.startswith("__"):
                found.append((f"{name}.{key}", inspect.getdoc(value) or ""))
    return found


def all_documented() -> list[tuple[str, str]]:
    names = [module.name for module in pkgutil.walk_packages(floras.__path__, "floras.")]
    modules = [import_module(name) for name in names if not name.startswith(OPTIONAL)]
    found = documented(floras, "floras")
    for module in [*modules, _core]:
        for key, value in vars(module).items():
            if not key.startswith("_") and getattr(value, "__module__", "").startswith(
                ("floras", "builtins")
            ):
                found += documented(value, f"{module.__name__}.{key}")
    return [
        (name, text) for name, text in {text: (name, text) for name, text in found}.values() if ">>>" in text
    ]


@pytest.mark.parametrize(("name", "text"), all_documented(), ids=lambda value: value.split("\n")[0][:40])
def test_the_example_runs(name: str, text: str) -> None:
    example = doctest.DocTestParser().get_doctest(text, {"floras": floras}, name, None, None)
    printed: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=printed.append)
    assert result.failed == 0, "".join(printed)
    assert result.attempted > 0


def test_there_are_examples_on_both_sides() -> None:
    names = [name for name, _ in all_documented()]
    assert {"floras.Uplink", "floras.Ledger"} <= {name.replace("floras._core.", "floras.") for name in names}
    assert {"floras.privacy.account", "floras.data.federate", "floras.results.run"} <= set(names)
    assert len(names) >= 12


def test_everything_public_is_documented() -> None:
    for name in floras.__all__:
        thing = getattr(floras, name)
        assert name == "__version__" or inspect.getdoc(thing), name
    for thing in (floras.Uplink, floras.Ledger, floras.Aggregate, floras.Channel, floras.Run, floras.Sweep):
        for key, value in vars(thing).items():
            if not key.startswith("_") and not inspect.isdatadescriptor(value):
                assert inspect.getdoc(value) or not callable(value), f"{thing.__name__}.{key}"


def book_examples() -> list[str]:
    """The blocks of the book's chapter that need nothing but this package and what draws."""
    text = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    own = text[: text.index("\n## Flower")]
    return [*blocks_of(own), *blocks_of((ROOT / "README.md").read_text(encoding="utf-8"))]


def blocks_of(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def test_the_books_examples_run_one_after_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    known: dict[str, Any] = {}
    blocks = book_examples()
    assert len(blocks) >= 5
    for block in blocks:
        exec(compile(block, "docs/reference/python.md", "exec"), known)
    assert (tmp_path / "accuracy.png").exists()
