#!/usr/bin/env python3
"""Shows that the tests notice broken rules of the client: breaks each rule in a copy of the source and runs the tests.

    scripts/broken-rules.py --check   every rule can still be broken: its text occurs exactly once
    scripts/broken-rules.py [NAME]    breaks the rules, or the named one, and fails if the tests pass
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUCKET = "limiter/src/bucket/"
CORE = BUCKET + "core/"
# Name, file, text, replacement, tests that must fail.
RULES = [
    ("NoMargin", CORE + "contention.rs", "let alone = !others && !refused;", "let alone = true;", "shared_bucket_costs"),
    ("MarginWithoutOthers", CORE + "contention.rs", "let alone = !others && !refused;", "let alone = false;", "a_bucket_of_one_process_is_exact"),
    ("NoGuess", CORE + "contention.rs", "age > STALE_AFTER", "age > Duration::MAX", "shared_bucket_costs"),
    ("NoShareWhenSaturated", CORE + "contention.rs", "short && self.clients(now.calendar) >= MANY_CLIENTS", "short && self.clients(now.calendar) == u32::MAX", "a_saturated_bucket_refuses"),
    ("RefillsFromOldImages", CORE + "combine.rs", "guessed_wrong && !self.guess.just_read", "guessed_wrong && !self.guess.just_read && false", "shared_bucket_costs"),
    ("RewriteIgnoresEtag", CORE + "combine.rs", "read.etag == image.etag", "(read.etag == image.etag || true)", "limits_of_calls"),
    ("RepeatedDeliveryCountsTwice", CORE + "slots.rs", "current.is_some_and(|write| write.slot.number == number)", "lost.is_some_and(|write| write.slot.number == number)", "delivered_twice"),
    ("UntraceableChangesAgain", CORE + "unconfirmed.rs", "!request.is_acquire() && carried.contains(&request.id)", "!request.is_acquire() && carried.contains(&request.id) && false", "more_processes_than_slots"),
    ("SearchesForever", CORE + "mod.rs", "(nothing_to_search || self.search_stopped)", "nothing_to_search", "a_write_in_doubt_is_looked_for_once"),
    ("ReadsCloseTheBreaker", BUCKET + "breaker.rs", "if operation == Operation::Read {", "if operation == Operation::Read && false {", "while_only_writes_fail"),
    ("UnreadableIsForgotten", BUCKET + "actor.rs", "self.bucket.with_core(Core::lost);\n                self.failed", "self.failed", "responses_that_cannot"),
    ("ChunkReturnedTwice", CORE + "chunks/mod.rs", "(limit, -amount))", "(limit, -amount * 2))", "chunks::"),
]


def source(file):
    return (ROOT / file).read_text()


def check():
    wrong = [name for name, file, text, _, _ in RULES if source(file).count(text) != 1]
    for name in wrong:
        print(f"broken-rules: the text of {name} does not occur exactly once", file=sys.stderr)
    return not wrong


def notices(name, file, text, replacement, tests):
    copy = ROOT / "target" / "broken-rules" / "source"
    shutil.rmtree(copy, ignore_errors=True)
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    for tracked in filter(None, names):
        if (ROOT / tracked).is_file():
            (copy / tracked).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / tracked, copy / tracked)
    (copy / file).write_text(source(file).replace(text, replacement))
    environment = dict(os.environ, CARGO_TARGET_DIR=str(ROOT / "target" / "broken-rules" / "target"), RUSTFLAGS="-Awarnings")
    cargo = ["cargo", "test", "--locked", "-p", "zae-limiter", "--lib", "--test", "acquire"]
    subprocess.run([*cargo, "--no-run"], cwd=copy, env=environment, check=True)
    failed = subprocess.run([*cargo, "--no-fail-fast", "--", tests], cwd=copy, env=environment).returncode != 0
    print(f"{name}: {'noticed' if failed else 'NOT NOTICED'}")
    return failed


def main():
    if not check():
        return 1
    if sys.argv[1:] == ["--check"]:
        return 0
    wanted = [rule for rule in RULES if not sys.argv[1:] or rule[0] in sys.argv[1:]]
    return 0 if wanted and all([notices(*rule) for rule in wanted]) else 1


sys.exit(main())
