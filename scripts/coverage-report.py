#!/usr/bin/env python3
"""Reads what `scripts/coverage` measured.

coverage-report.py programs BUILD_JSON   the test programs and binaries of a build, as arguments of llvm-cov
coverage-report.py report LCOV [CRATE]   the lines of the crates that no test ran, and a table of all crates

Test code does not count: files and items behind `#[cfg(test)]`.
"""

import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What tests are made of, and what measures.
NOT_MEASURED = {"zae-limiter-testing", "zae-limiter-tests", "zae-limiter-bench", "zae-limiter-demo"}


def programs(build_json):
    """Every executable that the build made, once."""
    found = []
    for line in Path(build_json).read_text().splitlines():
        executable = json.loads(line).get("executable")
        if executable and executable not in found:
            found.append(executable)
    return [found[0], *(f"--object={path}" for path in found[1:])]


def crates():
    """The name of each measured crate and its directory, in the order of the workspace."""
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    named = {}
    for member in workspace["members"]:
        name = tomllib.loads((ROOT / member / "Cargo.toml").read_text())["package"]["name"]
        if name not in NOT_MEASURED:
            named[name] = ROOT / member
    return named


ATTRIBUTE = re.compile(r"^\s*#!?\[")
TEST = re.compile(r"^\s*#\[cfg\((all\()?test\b")
MODULE = re.compile(r"^\s*(?:pub(?:\([a-z ]+\))? )?mod (\w+);")


def test_code(source):
    """The line numbers of a file behind `#[cfg(test)]`, and the modules that are."""
    lines, modules = source.read_text().splitlines(), []
    hidden = set()
    path = None
    for number, line in enumerate(lines):
        if not TEST.match(line):
            continue
        first = number + 1
        while ATTRIBUTE.match(lines[first]):
            found = re.match(r'\s*#\[path = "(.*)"\]', lines[first])
            path = found[1] if found else path
            first += 1
        module = MODULE.match(lines[first])
        if module:
            modules.append(path or module[1])
        last = first
        # rustfmt closes an item at the indentation where it starts.
        indentation = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
        if not lines[first].rstrip().endswith((";", ",")) and not re.search(r"\{.*\}", lines[first]):
            while last + 1 < len(lines) and not re.match(re.escape(indentation) + r"[})\]]+[;,]?$", lines[last]):
                last += 1
        hidden.update(range(number + 1, last + 2))
        path = None
    return hidden, modules


def test_files(directory):
    """All files of modules behind `#[cfg(test)]`."""
    found = set()
    for source in directory.rglob("*.rs"):
        _, modules = test_code(source)
        inside = source.parent if source.name in ("lib.rs", "main.rs", "mod.rs") else source.with_suffix("")
        for module in modules:
            if module.endswith(".rs"):
                found.add(source.parent / module)
                continue
            found.add(inside / f"{module}.rs")
            found.update((inside / module).rglob("*.rs"))
    return found


def measured(lcov):
    """How often each line of each file ran."""
    counts, file = {}, None
    for line in Path(lcov).read_text().splitlines():
        if line.startswith("SF:"):
            file = counts.setdefault(Path(line[3:]), {})
        elif line.startswith("DA:"):
            number, count = line[3:].split(",")[:2]
            file[int(number)] = max(file.get(int(number), 0), int(count))
    return counts


def ranges(numbers, between):
    """12-15, 20: lines that follow each other, also with lines between that are no code."""
    runs = []
    for number in numbers:
        if runs and not any(line in between for line in range(runs[-1][1] + 1, number)):
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}-{b}" if a != b else str(a) for a, b in runs)


def report(lcov, chosen):
    counts = measured(lcov)
    named = crates()
    unknown = set(chosen) - set(named)
    if unknown:
        sys.exit(f"coverage: no measured crate is named {', '.join(sorted(unknown))}; there are {', '.join(named)}")
    table, total = [], [0, 0]
    for name, directory in named.items():
        sources = directory / "src"
        hidden_files = test_files(sources)
        lines, listed = [0, 0], []
        for file in sorted(path for path in counts if path.is_relative_to(sources) and path not in hidden_files):
            hidden, _ = test_code(file)
            code = {number: count for number, count in counts[file].items() if number not in hidden}
            idle = sorted(number for number, count in code.items() if count == 0)
            lines[0] += len(code)
            lines[1] += len(idle)
            if idle:
                ran = {number for number, count in code.items() if count}
                listed.append(f"  {file.relative_to(ROOT)}: {ranges(idle, ran)}")
        if (not chosen or name in chosen) and listed:
            print(f"{name}: lines that no test runs", *listed, sep="\n")
        table.append((name, *lines))
        total = [total[0] + lines[0], total[1] + lines[1]]
    print(f"\n{'crate':<26} {'lines':>7} {'not run':>8} {'run':>7}")
    for name, code, idle in [*table, ("all", *total)]:
        share = f"{100 * (code - idle) / code:.1f}%" if code else "-"
        print(f"{name:<26} {code:>7,} {idle:>8,} {share:>7}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["programs", build_json]:
            print(*programs(build_json), sep="\n")
        case ["report", lcov, *chosen]:
            report(lcov, chosen)
        case _:
            sys.exit(__doc__)
