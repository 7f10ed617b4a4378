"""Packs a Lambda's `bootstrap` into a zip whose bytes depend on the binary alone.

Usage: python3 scripts/zip-function.py [--dev | --smallest] [--without PATH]... BOOTSTRAP ZIP

--without PATH  fail if the binary contains this path, such as one of the machine that built it
--smallest      compress with libdeflate, which takes 3 % less space than zlib (needs .venv/cargo-lambda)
--dev           a dev build: pack it quickly, whatever its size
"""

import argparse
import hashlib
import os
import struct
import sys
import zlib

# Lambda refuses nothing below its own limit; ours keeps cold starts short.
LARGEST_ZIP = 3_500_000


NAME = b"bootstrap"
VERSION = 20  # of the zip format: the first with deflate
UNIX = 3 << 8  # whatever builds it: the mode is read only then
DEFLATE = 8
DATE = 1 << 5 | 1  # 1980-01-01, the oldest that a zip can carry, so that building later changes nothing
MODE = 0o100755 << 16


def deflated(binary: bytes, dev: bool, smallest: bool) -> bytes:
    if smallest:
        import deflate

        return bytes(deflate.deflate_compress(binary, 12))
    compressor = zlib.compressobj(1 if dev else 9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return compressor.compress(binary) + compressor.flush()


def pack(binary: bytes, compressed: bytes, archive: str) -> None:
    if zlib.decompress(compressed, -zlib.MAX_WBITS) != binary:
        sys.exit("zip-function: what was compressed is not what was read")
    # Flags, method, time, date, CRC, sizes, and the lengths of name and extra field: the same in both headers.
    entry = struct.pack("<HHHHLLLHH", 0, DEFLATE, 0, DATE, zlib.crc32(binary), len(compressed), len(binary), len(NAME), 0)
    local = struct.pack("<4sH", b"PK\3\4", VERSION) + entry + NAME
    # Then the lengths of the comment, disk, internal attributes, mode, and where the local header is.
    central = struct.pack("<4sHH", b"PK\1\2", UNIX | VERSION, VERSION) + entry + struct.pack("<HHHLL", 0, 0, 0, MODE, 0) + NAME
    end = struct.pack("<4sHHHHLLH", b"PK\5\6", 0, 0, 1, 1, len(central), len(local) + len(compressed), 0)
    with open(f"{archive}.new", "wb") as out:
        out.write(local + compressed + central + end)
    os.replace(f"{archive}.new", archive)


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--dev", action="store_true")
    kind.add_argument("--smallest", action="store_true")
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("bootstrap")
    parser.add_argument("archive")
    options = parser.parse_args()
    with open(options.bootstrap, "rb") as file:
        binary = file.read()
    for path in options.without:
        if path.encode() in binary:
            sys.exit(f"zip-function: {options.bootstrap} contains the path {path} of the machine that built it")
    pack(binary, deflated(binary, options.dev, options.smallest), options.archive)
    size = os.path.getsize(options.archive)
    with open(options.archive, "rb") as packed:
        digest = hashlib.sha256(packed.read()).hexdigest()
    print(f"{options.archive}  {size:,} bytes  sha256 {digest}")
    if size > LARGEST_ZIP and not options.dev:
        sys.exit(f"zip-function: {options.archive} has {size:,} bytes; a function may have {LARGEST_ZIP:,}")


main()
