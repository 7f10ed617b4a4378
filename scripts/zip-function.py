"""Packs a Lambda's `bootstrap` into a zip whose bytes depend on the binary alone.

Usage: python3 scripts/zip-function.py [--dev | --without PATH]... BOOTSTRAP ZIP

--without PATH  fail if the binary contains this path, such as one of the machine that built it
--dev           a dev build: pack it quickly, whatever its size
"""

import argparse
import hashlib
import os
import sys
import zipfile

# Lambda refuses nothing below its own limit; ours keeps cold starts short.
LARGEST_ZIP = 5_000_000


def pack(binary: bytes, archive: str, level: int) -> None:
    # The oldest date a zip can carry, so that building later changes nothing.
    entry = zipfile.ZipInfo("bootstrap", date_time=(1980, 1, 1, 0, 0, 0))
    entry.create_system = 3  # Unix, whatever builds it: the mode below is read only then.
    entry.external_attr = 0o100755 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(f"{archive}.new", "w") as out:
        out.writestr(entry, binary, compresslevel=level)
    os.replace(f"{archive}.new", archive)


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--dev", action="store_true")
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("bootstrap")
    parser.add_argument("archive")
    asked = parser.parse_args()
    with open(asked.bootstrap, "rb") as file:
        binary = file.read()
    for path in asked.without:
        if path.encode() in binary:
            sys.exit(f"zip-function: {asked.bootstrap} contains the path {path} of the machine that built it")
    pack(binary, asked.archive, 1 if asked.dev else 9)
    size = os.path.getsize(asked.archive)
    with open(asked.archive, "rb") as packed:
        digest = hashlib.sha256(packed.read()).hexdigest()
    print(f"{asked.archive}  {size:,} bytes  sha256 {digest}")
    if size > LARGEST_ZIP and not asked.dev:
        sys.exit(f"zip-function: {asked.archive} has {size:,} bytes; a function may have {LARGEST_ZIP:,}")


main()
