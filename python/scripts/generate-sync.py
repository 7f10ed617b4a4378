#!/usr/bin/env python3
"""Writes the modules without asyncio from those with it: scripts/generate-sync.py [--check]."""

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "zae_limiter_rs"
MODULES = ("lease", "stored", "repository", "limiter", "adapters/_calls")
REPLACED = (
    (r"\basync def\b", "def"),
    (r"\basync with\b", "with"),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\bimport (run|resolve)\b", r"import \1_blocking as \1"),
    (r"(?<!_core\.)\b(RateLimiter|Repository|Lease|Acquire|Stored)\b", r"Sync\1"),
    (r"from (\.+)(lease|limiter|repository|stored) import", r"from \1sync_\2 import"),
)


def without_asyncio(source: str) -> str:
    for pattern, replacement in REPLACED:
        source = re.sub(pattern, replacement, source)
    title, rest = source.split("\n", 1)
    return f"{title}\n\n# Written by scripts/generate-sync.py; edit the module without sync_ in its name.\n{rest}"


def main() -> None:
    stale = []
    for module in MODULES:
        folder, _, name = module.rpartition("/")
        name = f"_sync{name}" if name.startswith("_") else f"sync_{name}"
        target = PACKAGE / folder / f"{name}.py"
        wanted = without_asyncio((PACKAGE / f"{module}.py").read_text())
        if "--check" not in sys.argv:
            target.write_text(wanted)
        elif not target.exists() or target.read_text() != wanted:
            stale.append(target.name)
    if stale:
        sys.exit(f"run scripts/generate-sync.py: {', '.join(stale)} differ from what it writes")


main()
