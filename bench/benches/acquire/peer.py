"""Acquires with the Python package for a while and prints rate and latencies as JSON.

Usage: peer.py NAME ENDPOINT asyncio|threads TASKS SECONDS ENTITY own|one
"""

import asyncio
import json
import sys
import threading
import time

from zae_limiter import RateLimiter, RateLimitExceeded, Repository, SyncRateLimiter, SyncRepository

name, endpoint, how, tasks, seconds, entity, sharing = sys.argv[1:]
tasks, seconds = int(tasks), float(seconds)
CONSUME = {"rpm": 1, "tpm": 100}
times: list[float] = []


def whose(task: int) -> str:
    return f"{entity}-{task}" if sharing == "own" else entity


async def with_asyncio() -> tuple[float, float]:
    limiter = RateLimiter(repository=Repository(name, region="us-east-1", endpoint_url=endpoint))

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
    started, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(run(task, started + seconds) for task in range(tasks)))
    took = time.perf_counter() - started, time.process_time() - cpu
    await limiter.close()
    return took


def with_threads() -> tuple[float, float]:
    limiter = SyncRateLimiter(repository=SyncRepository(name, region="us-east-1", endpoint_url=endpoint))

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
    started, cpu = time.perf_counter(), time.process_time()
    threads = [threading.Thread(target=run, args=(task, started + seconds)) for task in range(tasks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started, time.process_time() - cpu


took, cpu = asyncio.run(with_asyncio()) if how == "asyncio" else with_threads()
times.sort()
at = lambda part: times[min(int(len(times) * part), len(times) - 1)] * 1e6
print(json.dumps({"rate": len(times) / took, "p50": at(0.5), "p99": at(0.99), "cpu": cpu * 1e6 / len(times)}))
