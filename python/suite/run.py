#!/usr/bin/env python3
"""Runs the test suite of zae-limiter 0.9.1 on zae_limiter_rs and prints how many pass.

Usage: suite/run.py PYTHON PACKAGE FOLDER [PYTEST ARGUMENTS]

PYTHON has the packages of scripts/requirements/python-suite.txt, PACKAGE is the folder that zae_limiter_rs is installed in, FOLDER
holds the source distribution. It is fetched once; nothing of it is part of this project. reasons.toml has a reason for each
test that fails or is left out, and the run fails if it differs from the results.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

RELEASE = "zae-limiter==0.9.1"
ARCHIVE = "zae_limiter-0.9.1.tar.gz"
SHA256 = "229b588f94bc90faedbf0c968ad6f017a3e34b5a694bfd36d222e11e53652f3b"
HERE = Path(__file__).resolve().parent
# The venvs have no pip of their own: scripts/venv fills all of them with this one.
PIP = HERE.parents[1] / ".venv/pip/bin/pip"
# So many tests may fail once without a reason, and run again alone.
MOST_AGAIN = 5


def source(folder: Path) -> Path:
    """The source distribution, unpacked."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / ARCHIVE
    if not archive.exists():
        command = ["download", "--quiet", "--no-deps", "--no-binary", "zae-limiter", "--dest", str(folder), RELEASE]
        subprocess.run([PIP, *command], check=True)
    if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
        sys.exit(f"{archive} is not the release: its SHA-256 differs")
    with tarfile.open(archive) as members:
        members.extractall(folder, filter="data")
    return folder / ARCHIVE.removesuffix(".tar.gz")


def test_files(suite: Path) -> list[str]:
    """The files whose tests are about the library."""
    files = sorted((suite / "tests/unit").glob("test_*.py"))
    return [str(file) for file in files if not left_out_file(file.name)]


def run(python: str, package: str, suite: Path, arguments: list[str]) -> dict[str, tuple[str, str]]:
    """The outcome of each test that the arguments name, and why."""
    folder = suite.parent
    results = folder / "results.json"
    settings = folder / "pytest.ini"
    settings.write_text("[pytest]\nasyncio_mode = auto\npythonpath = .\n")
    results.unlink(missing_ok=True)
    options = ["--rootdir", str(suite), "-c", str(settings), "-p", "plugin", "-p", "no:cacheprovider", "-q", "--tb=short"]
    options += ["--import-mode=importlib", "--continue-on-collection-errors", "-W", "ignore", "-o", "pythonpath=" + str(suite)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([package, str(HERE), str(HERE.parent / "tests")]),
        "ZAE_SUITE_RESULTS": str(results),
    }
    log = folder / "pytest.log"
    with log.open("w") as output:
        command = [python, "-P", "-m", "pytest", *options, *arguments]
        subprocess.run(command, cwd=suite, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False)
    if not results.exists():
        sys.exit(log.read_text()[-5000:])
    return {name.removeprefix("tests/unit/"): tuple(found) for name, found in json.loads(results.read_text()).items()}


REASONS = tomllib.loads((HERE / "reasons.toml").read_text())


def left_out_file(name: str) -> bool:
    return name in REASONS["files"]


def reason(test: str, entries: list[dict[str, object]]) -> str | None:
    """The reason that is stated for a test."""
    bare = test.partition("[")[0]
    for entry in entries:
        if any(fnmatchcase(bare, pattern) for pattern in entry["tests"]):  # type: ignore[attr-defined]
            return str(entry["reason"])
    return None


def missing_method(why: str) -> str | None:
    """The reason why the method is missing that a test needs."""
    missing = re.search(r"has no attribute '(\w+)'", why)
    reasons = REASONS["methods"].items()
    return next((stated for stated, names in reasons if missing and missing[1] in names), None)


def unexplained(outcomes: dict[str, tuple[str, str]]) -> list[str]:
    """Tests that fail without a stated reason."""
    entries = REASONS["difference"] + REASONS["left_out"]
    failed = {test: why for test, (outcome, why) in outcomes.items() if outcome == "failed"}
    return [test for test, why in sorted(failed.items()) if not reason(test, entries) and not missing_method(why)]


def judge(outcomes: dict[str, tuple[str, str]]) -> tuple[Counter[tuple[str, str]], list[str]]:
    """How many tests have which outcome for which reason, and what contradicts reasons.toml."""
    counts: Counter[tuple[str, str]] = Counter()
    wrong = []
    for test, (outcome, why) in sorted(outcomes.items()):
        differs = reason(test, REASONS["difference"])
        stated = reason(test, REASONS["left_out"])
        if outcome == "passed":
            if differs or stated:
                wrong.append(f"{test} passes, so it needs no reason")
            counts["passed", ""] += 1
        elif outcome == "left out":
            kind = "private" if why.startswith("private name") else "internal" if why.startswith("not public") else why
            counts["left out", REASONS["kinds"].get(kind, kind)] += 1
            if kind not in REASONS["kinds"]:
                wrong.append(f"{test} is left out: {why}")
        elif stated or (stated := missing_method(why)):
            counts["left out", stated] += 1
        else:
            counts["failed", differs or "no reason is stated"] += 1
            if not differs:
                wrong.append(f"{test} fails: {why.strip().splitlines()[0] if why.strip() else ''}")
    return counts, wrong


def main() -> None:
    python, package, folder, *arguments = sys.argv[1:]
    suite = source(Path(folder).resolve())
    outcomes = run(python, package, suite, [*arguments, *test_files(suite)])
    # Tests expect that no token comes back while they run. On a busy machine one does.
    again = unexplained(outcomes)
    if 0 < len(again) <= MOST_AGAIN:
        outcomes |= run(python, package, suite, [f"tests/unit/{test}" for test in again])
    counts, wrong = judge(outcomes)
    passed, failed = counts["passed", ""], sum(n for (kind, _), n in counts.items() if kind == "failed")
    print(f"{'tests':>6}  outcome   reason")
    for (outcome, why), count in sorted(counts.items(), key=lambda entry: (entry[0][0] != "passed", entry[0])):
        print(f"{count:>6}  {outcome:<8}  {why}")
    for name, why in REASONS["files"].items():
        print(f"{'':>6}  {'left out':<8}  {name}: {why}")
    print(f"{passed} of {passed + failed} tests that can run on another implementation pass ({passed / (passed + failed):.1%})")
    if 0 < len(again) <= MOST_AGAIN:
        print("run twice, the second time alone:", *again, sep="\n  ")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
