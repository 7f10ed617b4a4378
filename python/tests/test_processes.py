"""Threads, forks, signals, and the end of the program."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from conftest import run_script
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


def test_other_threads_run_while_one_waits() -> None:
    # The endpoint is this thread: a call that kept the interpreter to itself would wait for it forever.
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        repository = SyncRepository("limiter", "us-east-1", endpoint, time_budget=30)
        seen: list[bool] = []
        thread = threading.Thread(target=lambda: seen.append(SyncRateLimiter(repository).is_available(timeout=1.0)))
        thread.start()
        connection, _ = server.accept()
        connection.close()
        thread.join()
    assert seen == [False]


def test_a_forked_child_connects_again(table: dict[str, Any]) -> None:
    done = run_script(
        """
import os, sys
from zae_limiter_rs import Limit, SyncRateLimiter, SyncRepository

name, region, endpoint = sys.argv[1:]
limiter = SyncRateLimiter(repository=SyncRepository(name, region, endpoint, time_budget=20))
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


WAITING = """
import sys
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
    rest, _ = program.communicate(timeout=60)
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
