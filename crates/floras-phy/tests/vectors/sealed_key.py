#!/usr/bin/env python3
"""Test vectors for the sealed key of docs/reference/assignment-format.md, from another HPKE implementation.

Needs the package `pyhpke` (0.6.5 was used). All secrets are fixed, so the file is always the same.

    python3 sealed_key.py            write sealed_key.json beside this file
    python3 sealed_key.py --check    exit with 1 if sealed_key.json differs
"""

import pathlib
import struct

from pyhpke import AEADId, CipherSuite, KDFId, KEMId

import assignment

FILE = pathlib.Path(__file__).with_name("sealed_key.json")
SUITE = CipherSuite.new(
    KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.CHACHA20_POLY1305
)


def key_pair(seed: bytes):
    """A key pair, with its private and public bytes."""
    pair = SUITE.kem.derive_key_pair(seed)
    return pair, pair.private_key.raw.private_bytes_raw(), pair.public_key.to_public_bytes()


def vector(group: bytes, epoch: int, group_key: bytes, seeds: tuple[bytes, bytes, bytes]) -> dict:
    dealer, dealer_private, dealer_public = key_pair(seeds[0])
    client, client_private, client_public = key_pair(seeds[1])
    # The ephemeral key is derived from the first 32 bytes of the seed's ChaCha20 keystream.
    ephemeral = struct.pack("<8I", *assignment.chacha20_block(seeds[2], 0)[:8])

    info = b"floras/sealed-key/v1" + group + struct.pack(">I", epoch)
    enc, context = SUITE.create_sender_context(
        client.public_key,
        info=info,
        sks=dealer.private_key,
        eks=SUITE.kem.derive_key_pair(ephemeral),
    )
    header = b"\x01" + group + struct.pack(">I", epoch)
    sealed = header + enc + context.seal(group_key, client_public)

    slot, sequences = 3, 16
    stream_key = assignment.stream_key(group_key, group, epoch, slot, sequences)
    return {
        "dealer_private": dealer_private.hex(),
        "dealer_public": dealer_public.hex(),
        "client_private": client_private.hex(),
        "client_public": client_public.hex(),
        "ephemeral_seed": seeds[2].hex(),
        "group": group.hex(),
        "epoch": epoch,
        "group_key": group_key.hex(),
        "info": info.hex(),
        "aad": client_public.hex(),
        "sealed_key": sealed.hex(),
        "slot": slot,
        "sequences": sequences,
        "permutation": assignment.permutation(stream_key, sequences)[0],
    }


def text() -> str:
    group = b"floras test room"
    vectors = [
        vector(group, 1, bytes(range(32)), (b"\x11" * 32, b"\x22" * 32, b"\x33" * 32)),
        vector(bytes(16), 2**32 - 1, b"\xa5" * 32, (b"\x44" * 32, b"\x55" * 32, b"\x66" * 32)),
    ]
    return assignment.document(vectors, "sealed_key.py")


if __name__ == "__main__":
    assignment.main(__doc__, FILE, text())
