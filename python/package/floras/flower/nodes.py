"""Numbers for Flower's nodes: the radio knows clients by 0, 1, 2 …, and Flower by random 64-bit identifiers.

A node keeps its number for as long as its identifier is known. With a path the numbers outlive the server, so
that the ledger adds up what one and the same client has given away.
"""

import json
import logging
import os
from collections.abc import Collection
from pathlib import Path

LOG = logging.getLogger("flwr")


class NodeNumbers:
    """Gives every node a number below the limit, and remembers it in a file.

    If all numbers are taken, a new node gets that of one that is no longer connected. Its losses are then
    counted together with those of the node that had the number before.

    >>> numbers = NodeNumbers(limit=2)
    >>> numbers.assign([70, 80], connected={70, 80})
    {70: 0, 80: 1}
    >>> numbers.assign([80, 90], connected={80, 90})
    {80: 1, 90: 0}
    """

    def __init__(self, path: Path | None = None, limit: int | None = None) -> None:
        self._path = path
        self._limit = limit
        self._numbers = {} if path is None or not path.exists() else _read(path)
        if limit is not None and any(number >= limit for number in self._numbers.values()):
            raise ValueError(f"the numbers in {path} must be below uplink.clients, {limit}")

    def __len__(self) -> int:
        return len(self._numbers)

    def admit(self, connected: Collection[int]) -> list[int]:
        """The connected nodes that there are numbers for: those that have one first.

        A node that comes back has a new identifier, and its old one is held for connected for a while.
        """
        known = sorted(connected, key=lambda node: (node not in self._numbers, node))
        return known if self._limit is None else known[: self._limit]

    def assign(self, nodes: Collection[int], connected: Collection[int]) -> dict[int, int]:
        """The numbers of these nodes; new ones are on the disk when it returns."""
        present = set(nodes) | set(connected)
        if self._limit is not None and len(present) > self._limit:
            raise ValueError(
                f"uplink.clients must be at least the {len(present)} nodes that are there, not {self._limit}"
            )
        new = [node for node in sorted(nodes) if node not in self._numbers]
        for node in new:
            self._numbers[node] = self._free(present)
        if new and self._path is not None:
            _write(self._path, self._numbers)
        return {node: self._numbers[node] for node in nodes}

    def _free(self, present: set[int]) -> int:
        """The least number that nobody has, or else one of a node that is gone, which loses it."""
        taken = set(self._numbers.values())
        least = next(number for number in range(len(taken) + 1) if number not in taken)
        if self._limit is None or least < self._limit:
            return least
        gone = next(node for node in self._numbers if node not in present)
        LOG.info("floras: node %d is gone, and its number goes to another one", gone)
        return self._numbers.pop(gone)


def _read(path: Path) -> dict[int, int]:
    try:
        numbers = {int(node): number for node, number in json.loads(path.read_text("utf-8"))["nodes"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} must be a file with the numbers of nodes, and cannot be read: {error}"
        ) from error
    if not all(isinstance(number, int) and number >= 0 for number in numbers.values()):
        raise ValueError(f"{path} must have a number from 0 for every node")
    if len(set(numbers.values())) != len(numbers):
        raise ValueError(f"{path} must have a number of its own for every node")
    return numbers


def _write(path: Path, numbers: dict[int, int]) -> None:
    """Replaces the file in one step, so that a crash leaves the old one or the new one."""
    # Identifiers go up to 2⁶⁴. As text they survive every reader of JSON.
    text = json.dumps({"nodes": {str(node): number for node, number in numbers.items()}})
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".new")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
