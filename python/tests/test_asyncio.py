"""Tasks: cancellation, concurrency, other event loops."""

from __future__ import annotations

import asyncio

import pytest

from conftest import run_script
from zae_limiter_rs import Limit, RateLimiter, RateLimitExceeded, Repository

SLOW = Limit.custom("rph", 10, 1, 360_000)


async def test_cancelling_the_body_gives_tokens_back(limiter: RateLimiter) -> None:
    await limiter.set_resource_defaults("gpt-4", [SLOW])
    inside = asyncio.Event()

    async def work() -> None:
        async with limiter.acquire("user-1", "gpt-4", {"rph": 4}):
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await limiter.settled()
    assert await limiter.available("user-1", "gpt-4") == {"rph": 10}


async def test_cancelling_an_acquire_takes_nothing(limiter: RateLimiter) -> None:
    await limiter.set_resource_defaults("gpt-4", [SLOW])

    # The body never ends by itself, so no call is committed, however fast the store is.
    async def work() -> None:
        async with limiter.acquire("user-1", "gpt-4", {"rph": 4}):
            await asyncio.Event().wait()

    # Cancelled before it starts, while it is sent, and at later points until it has its tokens.
    for turns in range(8):
        task = asyncio.create_task(work())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await limiter.settled()
    assert await limiter.available("user-1", "gpt-4") == {"rph": 10}


async def test_cancelling_a_call_that_waits(embedded: RateLimiter) -> None:
    async with embedded.acquire("user-1", "gpt-4", {"rph": 8}, limits=[SLOW]):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                async with embedded.acquire("user-1", "gpt-4", {"rph": 5}, limits=[SLOW], wait=10_000_000):
                    pytest.fail("it was admitted")
    assert await embedded.available("user-1", "gpt-4", limits=[SLOW]) == {"rph": 2}


async def test_tasks_together_get_exactly_the_limit(limiter: RateLimiter) -> None:
    await limiter.set_resource_defaults("gpt-4", [SLOW])

    async def call() -> bool:
        try:
            async with limiter.acquire("user-1", "gpt-4", {"rph": 1}):
                return True
        except RateLimitExceeded:
            return False

    assert sum(await asyncio.gather(*(call() for _ in range(40)))) == 10


async def test_a_call_is_awaited_once() -> None:
    connected = await Repository.embedded()._open()
    call = connected.get_entity("user-1")
    assert await call is None
    with pytest.raises(RuntimeError, match="awaited already"):
        await call


def test_uvloop() -> None:
    done = run_script(
        """
import uvloop
from zae_limiter_rs import Limit, RateLimiter, Repository

async def main():
    limiter = RateLimiter(repository=Repository.embedded())
    async with limiter.acquire("user-1", "gpt-4", {"rpm": 1}, limits=[Limit.per_minute("rpm", 1)]) as lease:
        print(lease.consumed)

uvloop.run(main())
"""
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "{'rpm': 1}\n", "")


def test_several_event_loops_share_a_limiter() -> None:
    limiter = RateLimiter(repository=Repository.embedded())

    async def call() -> None:
        async with limiter.acquire("user-1", "gpt-4", {"rph": 1}, limits=[SLOW]):
            pass

    for _ in range(3):
        asyncio.run(call())
    assert asyncio.run(limiter.available("user-1", "gpt-4", limits=[SLOW])) == {"rph": 7}
