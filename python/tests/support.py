"""Small things that several tests use."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The root of the repository."""


def files_of(directory: Path) -> dict[str, bytes]:
    """Every file of a directory, by its path there.

    Locks are left out, because they are empty, and TensorBoard's event files, because they contain times.
    """
    paths = [path for path in directory.rglob("*") if path.is_file() and path.name != "lock"]
    names = [path.relative_to(directory).as_posix() for path in paths]
    return {name: path.read_bytes() for name, path in zip(names, paths, strict=True) if "tb/" not in name}
