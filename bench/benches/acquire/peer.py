"""Acquires with a Python package for a few rounds and prints rate and latencies of each as JSON: zae_limiter, or the one that
ZAE_BENCH_PACKAGE names, whose API is the same.

Usage: peer.py NAME ENDPOINT asyncio|threads TASKS ROUNDS SECONDS ENTITY own|one
"""

import asyncio
import importlib
import json
import os
import sys
import threading
import time

package = importlib.import_module(os.environ.get("ZAE_BENCH_PACKAGE", "zae_limiter"))
RateLimitExceeded = package.RateLimitExceeded

name, endpoint, how, tasks, rounds, seconds, entity, sharing = sys.argv[1:]
tasks, rounds, seconds = int(tasks), int(rounds), float(seconds)
CONSUME = {"rpm": 1, "tpm": 100}
times: list[float] = []
measured: list[dict[str, float]] = []


def whose(task: int) -> str:
    return f"{entity}-{task}" if sharing == "own" else entity


def finish_round(started: float, cpu: float) -> None:
    took, cpu = time.perf_counter() - started, time.process_time() - cpu
    times.sort()
    at = lambda part: times[min(int(len(times) * part), len(times) - 1)] * 1e6
    measured.append({"rate": len(times) / took, "p50": at(0.5), "p99": at(0.99), "cpu": cpu * 1e6 / len(times)})
    times.clear()


async def with_asyncio() -> None:
    limiter = package.RateLimiter(repository=package.Repository(name, region="us-east-1", endpoint_url=endpoint))

    async def once(task: int) -> None:
        try:
            async with limiter.acquire(whose(task), "gpt-4", consume=CONSUME):
                pass
        except RateLimitExceeded:
            pass

    async def run(task: int, end: float) -> None:
        while (started := time.perf_counter()) < end:
            await once(task)
            times.append(time.perf_counter() - started)

    for task in range(tasks):
        await once(task)
        await once(task)
    for _ in range(rounds):
        started, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(run(task, started + seconds) for task in range(tasks)))
        finish_round(started, cpu)
    await limiter.close()


def with_threads() -> None:
    limiter = package.SyncRateLimiter(repository=package.SyncRepository(name, region="us-east-1", endpoint_url=endpoint))

    def once(task: int) -> None:
        try:
            with limiter.acquire(whose(task), "gpt-4", consume=CONSUME):
                pass
        except RateLimitExceeded:
            pass

    def run(task: int, end: float) -> None:
        while (started := time.perf_counter()) < end:
            once(task)
            times.append(time.perf_counter() - started)

    for task in range(tasks):
        once(task)
        once(task)
    for _ in range(rounds):
        started, cpu = time.perf_counter(), time.process_time()
        threads = [threading.Thread(target=run, args=(task, started + seconds)) for task in range(tasks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        finish_round(started, cpu)


if how == "asyncio":
    asyncio.run(with_asyncio())
else:
    with_threads()
print(json.dumps(measured))
