"""Numbers for Flower's nodes: the radio knows clients by 0, 1, 2 …, and Flower by random 64-bit identifiers.

A node keeps its number as long as its identifier is known. With a path the numbers survive a restart of the
server, so that the ledger adds up the losses of each client.
"""

import json
import logging
import os
from collections.abc import Collection
from pathlib import Path

LOG = logging.getLogger("flwr")


class NodeNumbers:
    """Assigns a number below the limit to every node, and stores it in a file.

    If all numbers are in use, a new node gets the number of a disconnected node. Their losses are then added.

    Parameters
    ----------
    path : Path, optional
        The file; without it the numbers are in memory only.
    limit : int, optional
        The largest possible number of nodes; no limit if absent.

    Raises
    ------
    ValueError
        If the file cannot be read or has a number that is not below the limit.

    Examples
    --------
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
        """Return the connected nodes for which there are numbers; nodes with a number come first.

        A node that returns has a new identifier, and its old one counts as connected for a while.

        Parameters
        ----------
        connected : collection of int
            Identifiers of the connected nodes.

        Returns
        -------
        list of int
            Identifiers of at most ``limit`` nodes.
        """
        known = sorted(connected, key=lambda node: (node not in self._numbers, node))
        return known if self._limit is None else known[: self._limit]

    def assign(self, nodes: Collection[int], connected: Collection[int]) -> dict[int, int]:
        """Return the numbers of these nodes. New numbers are on the disk before it returns.

        Parameters
        ----------
        nodes : collection of int
            Identifiers of the nodes that need numbers.
        connected : collection of int
            Identifiers of the connected nodes, which keep their numbers.

        Returns
        -------
        dict of int to int
            The number of each node, from 0.

        Raises
        ------
        ValueError
            If there are more nodes than the limit allows.
        OSError
            If the file cannot be written.
        """
        present = set(nodes) | set(connected)
        if self._limit is not None and len(present) > self._limit:
            raise ValueError(
                f"uplink.clients must be at least {len(present)}, the connected nodes, not {self._limit}"
            )
        new = [node for node in sorted(nodes) if node not in self._numbers]
        for node in new:
            self._numbers[node] = self._free(present)
        if new and self._path is not None:
            _write(self._path, self._numbers)
        return {node: self._numbers[node] for node in nodes}

    def _free(self, present: set[int]) -> int:
        """Return the smallest unused number, or that of a disconnected node, which loses it."""
        taken = set(self._numbers.values())
        least = next(number for number in range(len(taken) + 1) if number not in taken)
        if self._limit is None or least < self._limit:
            return least
        gone = next(node for node in self._numbers if node not in present)
        LOG.info("floras: node %d is disconnected; its number is assigned to another node", gone)
        return self._numbers.pop(gone)


def _read(path: Path) -> dict[int, int]:
    try:
        numbers = {int(node): number for node, number in json.loads(path.read_text("utf-8"))["nodes"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} must contain the numbers of nodes, and cannot be read: {error}") from error
    if not all(isinstance(number, int) and number >= 0 for number in numbers.values()):
        raise ValueError(f"{path} must have a number from 0 for each node")
    if len(set(numbers.values())) != len(numbers):
        raise ValueError(f"{path} must have a different number for each node")
    return numbers


def _write(path: Path, numbers: dict[int, int]) -> None:
    """Replace the file in one step: a crash leaves the old or the new one."""
    # Identifiers up to 2⁶⁴ are text, because some readers of JSON round large numbers.
    text = json.dumps({"nodes": {str(node): number for node, number in numbers.items()}})
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".new")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
