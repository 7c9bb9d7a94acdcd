#!/usr/bin/env python3
"""Test vectors for the permutation of docs/reference/assignment-format.md, from the standard library alone.

Written from the format document and not from the Rust code, so that the two check each other.

    python3 assignment.py            write assignment.json beside this file
    python3 assignment.py --check    exit with 1 if assignment.json differs
"""

import hashlib
import hmac
import json
import pathlib
import struct
import sys

FILE = pathlib.Path(__file__).with_name("assignment.json")
LISTED = 64  # longer permutations are given by their first entries and a digest


def hkdf_sha256(salt: bytes, ikm: bytes, info: bytes) -> bytes:
    """RFC 5869 for exactly one block of output, 32 bytes."""
    prk = hmac.new(salt, ikm, hashlib.sha256).digest()
    return hmac.new(prk, info + b"\x01", hashlib.sha256).digest()


def chacha20_block(key: bytes, counter: int) -> list[int]:
    """RFC 8439, section 2.3, with a nonce of zeros: one block as sixteen words."""
    mask = 0xFFFFFFFF
    constant, words = struct.unpack("<4I", b"expand 32-byte k"), struct.unpack("<8I", key)
    start = [*constant, *words, counter, 0, 0, 0]
    x = list(start)

    def quarter(a: int, b: int, c: int, d: int) -> None:
        for p, q, r, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[p] = (x[p] + x[q]) & mask
            mixed = x[r] ^ x[p]
            x[r] = (mixed << turn | mixed >> (32 - turn)) & mask

    for _ in range(10):
        for column in range(4):
            quarter(column, column + 4, column + 8, column + 12)
        for column in range(4):
            quarter(column, (column + 1) % 4 + 4, (column + 2) % 4 + 8, (column + 3) % 4 + 12)
    return [(a + b) & mask for a, b in zip(x, start)]


def keystream(key: bytes):
    """The words of the blocks 0, 1, 2, …"""
    counter = 0
    while True:
        yield from chacha20_block(key, counter)
        counter += 1


def stream_key(group_key: bytes, group: bytes, epoch: int, slot: int, sequences: int) -> bytes:
    info = b"floras/permutation/v1" + group + struct.pack(">IQI", epoch, slot, sequences)
    return hkdf_sha256(b"floras/group-key/v1", group_key, info)


def permutation(key: bytes, sequences: int) -> tuple[list[int], int]:
    """The order of the columns under a stream key, and how many words were skipped."""
    words, order, skipped = keystream(key), list(range(sequences)), 0
    for i in range(sequences - 1):
        bound = sequences - i
        word = next(words)
        while word >= 2**32 - 2**32 % bound:
            word, skipped = next(words), skipped + 1
        j = i + word % bound
        order[i], order[j] = order[j], order[i]
    return order, skipped


def vector(group_key: bytes, group: bytes, epoch: int, slot: int, sequences: int) -> dict:
    key = stream_key(group_key, group, epoch, slot, sequences)
    order, skipped = permutation(key, sequences)
    digest = hashlib.sha256(struct.pack(f">{sequences}I", *order)).hexdigest()
    return {
        "group_key": group_key.hex(),
        "group": group.hex(),
        "epoch": epoch,
        "slot": slot,
        "sequences": sequences,
        "stream_key": key.hex(),
        "skipped_words": skipped,
        "permutation_start": order[:LISTED],
        "permutation_sha256": digest,
    }


def document(vectors: list[dict], script: str) -> str:
    """A JSON document with one vector per line."""
    about = f"Vectors for docs/reference/assignment-format.md, made by {script}. Bytes are in hexadecimal."
    lines = ",\n".join("  " + json.dumps(vector) for vector in vectors)
    return f'{{\n "about": {json.dumps(about)},\n "vectors": [\n{lines}\n ]\n}}\n'


def text() -> str:
    key, other = bytes(range(32)), bytes(range(255, 223, -1))
    group = b"floras test room"
    cases = [
        (key, group, 1, 1, 7),
        (key, group, 1, 2, 7),  # the next slot
        (key, group, 2, 1, 7),  # the next epoch
        (key, bytes(16), 1, 1, 7),  # another group
        (other, group, 1, 1, 7),  # another key
        (key, group, 1, 1, 8),  # another number of sequences
        (key, group, 1, 0, 1),
        (key, group, 1, 0, 2),
        (key, group, 0, 0, 25),
        (other, bytes([255] * 16), 2**32 - 1, 2**64 - 1, 64),
        (key, group, 1, 1, 1000),
        (key, group, 1, 2, 65537),  # a word is skipped on the way
    ]
    return document([vector(*case) for case in cases], "assignment.py")


def main(usage: str, file: pathlib.Path, text: str) -> None:
    """Writes the vectors, or with --check compares them with the file."""
    if sys.argv[1:] == ["--check"]:
        if file.read_text(encoding="utf-8") != text:
            sys.exit(f"{file.name} is not what {pathlib.Path(sys.argv[0]).name} makes")
    elif sys.argv[1:]:
        sys.exit(usage)
    else:
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(__doc__, FILE, text())
