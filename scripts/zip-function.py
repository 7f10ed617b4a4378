"""Packs a Lambda's `bootstrap` into a zip whose bytes depend on the binary alone.

Usage: python3 scripts/zip-function.py BOOTSTRAP ZIP
"""

import hashlib
import os
import sys
import zipfile

# Lambda refuses nothing below its own limit; ours keeps cold starts short.
LARGEST_ZIP = 5_000_000


def pack(bootstrap: str, archive: str) -> None:
    # The oldest date a zip can carry, so that building later changes nothing.
    entry = zipfile.ZipInfo("bootstrap", date_time=(1980, 1, 1, 0, 0, 0))
    entry.create_system = 3  # Unix, whatever builds it: the mode below is read only then.
    entry.external_attr = 0o100755 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    with open(bootstrap, "rb") as binary, zipfile.ZipFile(f"{archive}.new", "w") as out:
        out.writestr(entry, binary.read(), compresslevel=9)
    os.replace(f"{archive}.new", archive)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    bootstrap, archive = sys.argv[1:]
    pack(bootstrap, archive)
    size = os.path.getsize(archive)
    with open(archive, "rb") as packed:
        digest = hashlib.sha256(packed.read()).hexdigest()
    print(f"{archive}  {size:,} bytes  sha256 {digest}")
    if size > LARGEST_ZIP:
        sys.exit(f"zip-function: {archive} has {size:,} bytes; a function may have {LARGEST_ZIP:,}")


main()
