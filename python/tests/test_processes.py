"""Threads, forks, signals, and the end of the program."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENTLY, run_script
from endpoint import moto_server
from zae_limiter_rs import Limit, RateLimitExceeded, SyncRateLimiter, SyncRepository

SLOW = Limit.custom("rph", 10, 1, 360_000)


def test_threads_together_get_exactly_the_limit() -> None:
    with SyncRateLimiter(repository=SyncRepository.embedded(), default_limits=[SLOW]) as limiter:

        def call(_: int) -> bool:
            try:
                with limiter.acquire("user-1", "gpt-4", {"rph": 1}):
                    return True
            except RateLimitExceeded:
                return False

        with ThreadPoolExecutor(8) as threads:
            assert sum(threads.map(call, range(40))) == 10
        assert limiter.available("user-1", "gpt-4") == {"rph": 0}


def test_threads_that_call_first_share_one_limiter() -> None:
    limiter, together = SyncRateLimiter(repository=SyncRepository.embedded()), threading.Barrier(8)

    def first(_: int) -> Any:
        together.wait()
        return limiter._open()

    with ThreadPoolExecutor(8) as threads:
        opened = list(threads.map(first, range(8)))
    assert all(one is opened[0] for one in opened)


def test_other_threads_run_while_one_waits() -> None:
    # The endpoint is this thread: a call that kept the interpreter to itself would wait for it forever.
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        repository = SyncRepository("limiter", "us-east-1", endpoint)
        seen: list[bool] = []

        def ask() -> None:
            seen.append(SyncRateLimiter(repository).is_available(timeout=0.5))
            socket.create_connection(server.getsockname()).close()

        thread = threading.Thread(target=ask)
        thread.start()
        # Every attempt is cut off, until the thread itself connects.
        while not seen:
            server.accept()[0].close()
        thread.join()
    assert seen == [False]


def test_a_forked_child_connects_again(table: dict[str, Any]) -> None:
    done = run_script(
        """
import os, sys
from zae_limiter_rs import Limit, SyncRateLimiter, SyncRepository

name, region, endpoint = sys.argv[1:]
limiter = SyncRateLimiter(repository=SyncRepository(name, region, endpoint, time_budget=600))
limiter.repository.create_table()
slow = [Limit.custom("rph", 10, 1, 360_000)]
with limiter.acquire("user-1", "gpt-4", {"rph": 1}, limits=slow):
    child = os.fork()
    if child == 0:
        with limiter.acquire("user-1", "gpt-4", {"rph": 2}, limits=slow) as lease:
            print("child", lease.consumed, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print("left", limiter.available("user-1", "gpt-4", limits=slow))
""",
        *table.values(),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "child {'rph': 2}\nleft {'rph': 7}\n"


FORKING = """
import os, sys, threading
from zae_limiter_rs import Limit, SyncRateLimiter, SyncRepository

repository = SyncRepository(*sys.argv[1:], time_budget=600)
limiter = SyncRateLimiter(repository=repository, default_limits=[Limit.custom("rph", 10, 1, 360_000)], time_budget=600)

def call(entity):
    with limiter.acquire(entity, "gpt-4", {"rph": 1}):
        pass

threads = [threading.Thread(target=call, args=(f"thread-{number}",)) for number in range(2)]
for thread in threads:
    thread.start()
sys.stdin.readline()
for _ in range(2):
    child = os.fork()
    if child == 0:
        call("child")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("forked", flush=True)
for thread in threads:
    thread.join()
print([limiter.available(entity, "gpt-4")["rph"] for entity in ("child", "thread-0", "thread-1")])
"""


def test_children_that_are_forked_while_calls_are_in_flight_connect_again() -> None:
    created, arrived, pass_on, writes = threading.Event(), threading.Semaphore(0), threading.Event(), count()

    def hold(operation: str) -> None:
        # The calls of both threads: no child is forked before they have arrived.
        if operation == "UpdateItem" and created.is_set() and next(writes) < 2:
            arrived.release()
            pass_on.wait()

    with moto_server(hold) as endpoint:
        SyncRepository("forking", "us-east-1", endpoint, admin_time_budget=PATIENTLY).create_table()
        created.set()
        command = [sys.executable, "-P", "-c", FORKING, "forking", "us-east-1", endpoint]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdin is not None and program.stdout is not None
            try:
                assert arrived.acquire(timeout=PATIENTLY) and arrived.acquire(timeout=PATIENTLY)
                program.stdin.write("\n")
                program.stdin.flush()
                assert program.stdout.readline() == "forked\n"
            finally:
                pass_on.set()
            rest, _ = program.communicate(timeout=PATIENTLY)
    assert (program.returncode, rest) == (0, "[8, 9, 9]\n")


def test_a_forked_child_is_told_that_memory_and_leases_stay_behind() -> None:
    done = run_script(
        """
import os
from zae_limiter_rs import Limit, SyncRateLimiter, SyncRepository

limiter = SyncRateLimiter(repository=SyncRepository.embedded(), default_limits=[Limit.per_minute("rpm", 10)])
with limiter.acquire("user-1", "gpt-4", {"rpm": 1}) as lease:
    child = os.fork()
    if child == 0:
        for attempt in (lambda: limiter.available("user-1", "gpt-4"), lambda: lease.adjust(rpm=1)):
            try:
                attempt()
            except RuntimeError as error:
                print("make a new one after a fork" in str(error), flush=True)
        # Ends as any program does: what the parent owns must not be touched.
        raise SystemExit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
""",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("True") == 2


WORKERS = """
import json, multiprocessing, sys
from zae_limiter_rs import Limit, RateLimitExceeded, SyncRateLimiter, SyncRepository

method, settings = sys.argv[1], json.loads(sys.argv[2])
repository = SyncRepository.embedded(**settings) if "path" in settings else SyncRepository(**settings, time_budget=600)
limiter = SyncRateLimiter(repository=repository, default_limits=[Limit.custom("rph", 10, 1, 360_000)])

def call(_):
    try:
        with limiter.acquire("user-1", "gpt-4", {"rph": 1}):
            return 1
    except RateLimitExceeded:
        return 0

if __name__ == "__main__":
    if "path" not in settings:
        repository.create_table()
    with multiprocessing.get_context(method).Pool(3) as pool:
        print(sum(pool.map(call, range(24), chunksize=1)))
"""


def workers(folder: Path, method: str, settings: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Runs the program as a file: spawned processes import it."""
    program = folder / "program.py"
    program.write_text(WORKERS)
    command = [sys.executable, "-P", str(program), method, json.dumps(settings)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENTLY, check=False)


def test_forked_workers_together_get_exactly_the_limit(table: dict[str, Any], tmp_path: Path) -> None:
    done = workers(tmp_path, "fork", table)
    assert (done.returncode, done.stdout) == (0, "10\n"), done.stderr


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_share_a_file_that_they_open_themselves(method: str, tmp_path: Path) -> None:
    done = workers(tmp_path, method, {"path": str(tmp_path / "limiter.db")})
    assert (done.returncode, done.stdout) == (0, "10\n"), done.stderr


def test_a_file_that_was_opened_before_a_fork_is_an_error_in_the_child(tmp_path: Path) -> None:
    done = run_script(
        """
import os, sys
from zae_limiter_rs import Limit, SyncRateLimiter, SyncRepository

def open_limiter(path):
    return SyncRateLimiter(repository=SyncRepository.embedded(path), default_limits=[Limit.custom("rph", 10, 1, 360_000)])

limiter = open_limiter(sys.argv[1])
with limiter.acquire("user-1", "gpt-4", {"rph": 1}):
    pass
child = os.fork()
if child == 0:
    attempts = (
        lambda: limiter.available("user-1", "gpt-4"),
        lambda: limiter.acquire("user-1", "gpt-4", {"rph": 1}).__enter__(),
        lambda: open_limiter(sys.argv[1]).available("user-1", "gpt-4"),
        lambda: open_limiter(sys.argv[1] + ".other").available("user-1", "gpt-4"),
        lambda: open_limiter(None),
    )
    for attempt in attempts:
        try:
            attempt()
            print("no error", flush=True)
        except RuntimeError as error:
            print(f"process {os.getppid()} opened an embedded store before" in str(error), flush=True)
    raise SystemExit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
# The parent goes on.
with limiter.acquire("user-1", "gpt-4", {"rph": 1}):
    pass
print(limiter.available("user-1", "gpt-4"))
""",
        str(tmp_path / "limiter.db"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n" * 5 + "{'rph': 8}\n"


WAITING = """
import signal, sys

# A parent in the background may ignore the signal, which is inherited.
signal.signal(signal.SIGINT, signal.default_int_handler)
from zae_limiter_rs import Limit, SyncRateLimiter, SyncRepository

limiter = SyncRateLimiter(repository=SyncRepository.embedded(), default_limits=[Limit.custom("rph", 1, 1, 360_000)])
with limiter.acquire("user-1", "gpt-4", {"rph": 1}):
    pass
try:
    print("waiting", flush=True)
    with limiter.acquire("user-1", "gpt-4", {"rph": 1}, wait=10_000_000):
        print("admitted")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_interrupts_a_call_that_waits() -> None:
    program = subprocess.Popen([sys.executable, "-P", "-c", WAITING], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    assert program.stdout.readline() == "waiting\n"
    program.send_signal(signal.SIGINT)
    rest, _ = program.communicate(timeout=PATIENTLY)
    assert (program.returncode, rest) == (0, "interrupted\n")


def test_a_program_ends_while_calls_are_in_flight() -> None:
    done = run_script(
        """
import asyncio, threading
from zae_limiter_rs import Limit, RateLimiter, Repository

async def main():
    limiter = RateLimiter(repository=Repository.embedded(), default_limits=[Limit.custom("rph", 1, 1, 360_000)])
    async with limiter.acquire("user-1", "gpt-4", {"rph": 1}):
        pass
    async def wait():
        async with limiter.acquire("user-1", "gpt-4", {"rph": 1}, wait=10_000_000):
            pass
    asyncio.create_task(wait())
    await asyncio.sleep(0.05)
    print("done")

asyncio.run(main())
"""
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
