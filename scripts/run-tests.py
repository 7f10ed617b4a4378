#!/usr/bin/env python3
"""Runs every test program of the workspace and the doctests, some at a time, and prints a line for each.

`cargo test` runs one program after the other, and many of them wait: for timeouts, for the local cloud, for processes that they
kill. Here one more program runs than there are processors. What a program prints goes to target/test-output, and to the terminal
if the program fails. All programs run, whatever fails.

Usage: scripts/run-tests.py [OPTION OF cargo test ...]

Run it after `cargo test --workspace --no-run` with the same options and environment, or it compiles first.
"""

import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "target" / "test-output"
WORKSPACE = ["cargo", "test", "--workspace", "--locked", *sys.argv[1:]]
# What takes longest begins first, so that nothing runs alone in the end.
FIRST = [
    "zae-limiter-tests soak",
    "zae-limiter lib",
    "zae-limiter-cli cli",
    "zae-limiter-archiver stream",
    "zae-limiter-aggregator binary",
    "zae-limiter-aggregator lib",
    "zae-limiter-server ui",
    "doctests",
]
# How often a run without news says what it waits for.
SILENCE = 60
RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.MULTILINE)


@dataclass(frozen=True)
class Program:
    """A test program, or the doctests."""

    name: str
    command: list
    directory: Path

    def run(self):
        """Its exit status, its output and its seconds."""
        log = OUTPUT / f"{self.name.replace(' ', '-')}.txt"
        environment = os.environ | {"CARGO_MANIFEST_DIR": str(self.directory)}
        begin = time.monotonic()
        with log.open("wb") as output:
            status = subprocess.run(
                self.command,
                cwd=self.directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode
        return status, log.read_text(errors="replace"), time.monotonic() - begin


def programs():
    """Every test program that cargo builds, and the doctests."""
    build = subprocess.run(
        [*WORKSPACE, "--no-run", "--message-format=json-render-diagnostics"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if build.returncode:
        sys.exit(build.returncode)
    found = [Program("doctests", [*WORKSPACE, "--doc"], ROOT)]
    for line in build.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] != "compiler-artifact" or not message["profile"]["test"] or not message["executable"]:
            continue
        directory = Path(message["manifest_path"]).parent
        package = re.search(r"([\w-]+)@[^@]*$", message["package_id"])
        package = package[1] if package else directory.name
        target = message["target"]
        kind = target["name"] if target["kind"] == ["test"] else target["kind"][0]
        found.append(Program(f"{package} {kind}", [message["executable"]], directory))
    order = {name: place for place, name in enumerate(FIRST)}
    return sorted(found, key=lambda program: order.get(program.name, len(order)))


def main():
    begin = time.monotonic()
    found = programs()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    failed, totals = [], [0, 0, 0]
    with ThreadPoolExecutor(max_workers=(os.cpu_count() or 1) + 1) as pool:
        running = {pool.submit(program.run): program for program in found}
        while running:
            done, _ = wait(running, timeout=SILENCE, return_when=FIRST_COMPLETED)
            if not done:
                waiting = [program.name for run, program in running.items() if run.running()]
                print(f"     still running: {', '.join(waiting)}", flush=True)
            for run in done:
                program = running.pop(run)
                status, output, seconds = run.result()
                counts = [sum(column) for column in zip(*(map(int, row) for row in RESULT.findall(output)))] or [0, 0, 0]
                totals = [total + count for total, count in zip(totals, counts)]
                if status:
                    failed.append(program.name)
                    print(output)
                tests = f"{counts[0]:4} tests" if any(counts) else "          "
                print(f"{'FAIL' if status else 'ok  '} {program.name:36} {tests} {seconds:7.1f} s", flush=True)
    passed, failures, ignored = totals
    seconds = int(time.monotonic() - begin)
    print(f"{len(found)} programs in {seconds // 60} min {seconds % 60} s: {passed} tests passed, {failures} failed, {ignored} ignored")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
