"""Tasks: cancellation, concurrency, other event loops."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from conftest import PATIENTLY, run_script
from endpoint import moto_server
from zae_limiter_rs import Limit, RateLimiter, RateLimitExceeded, Repository

SLOW = Limit.custom("rph", 10, 1, 360_000)


async def test_cancelling_the_body_gives_tokens_and_permits_back(limiter: RateLimiter) -> None:
    await limiter.set_resource_defaults("gpt-4", [SLOW, Limit.concurrency("parallel", 2)])
    inside = asyncio.Event()

    async def work() -> None:
        async with limiter.acquire("user-1", "gpt-4", {"rph": 4, "parallel": 1}):
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await limiter.settled()
    assert await limiter.available("user-1", "gpt-4") == {"parallel": 2, "rph": 10}


async def test_cancelling_an_acquire_takes_nothing(limiter: RateLimiter) -> None:
    await limiter.set_resource_defaults("gpt-4", [SLOW, Limit.concurrency("parallel", 2)])

    # The body never ends by itself, so no call is committed, however fast the store is.
    async def work() -> None:
        async with limiter.acquire("user-1", "gpt-4", {"rph": 4, "parallel": 1}):
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
    assert await limiter.available("user-1", "gpt-4") == {"parallel": 2, "rph": 10}


async def test_cancelling_an_acquire_that_is_on_its_way_takes_nothing(endpoint: str) -> None:
    arrived, pass_on = threading.Event(), threading.Event()

    def hold(operation: str) -> None:
        if operation == "UpdateItem" and not arrived.is_set():
            arrived.set()
            pass_on.wait()

    with moto_server(hold) as held:
        repository = Repository("held", region="us-east-1", endpoint_url=held, time_budget=PATIENTLY)
        await repository.create_table()
        async with RateLimiter(repository=repository, time_budget=PATIENTLY) as limiter:
            task = asyncio.create_task(limiter.acquire("user-1", "gpt-4", {"rph": 4}, limits=[SLOW]).__aenter__())
            await asyncio.to_thread(arrived.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # The table takes the tokens only now.
            pass_on.set()
            await limiter.settled()
            assert await limiter.available("user-1", "gpt-4", limits=[SLOW]) == {"rph": 10}


async def test_a_lease_that_nobody_takes_is_given_back(limiter: RateLimiter) -> None:
    # The task is cancelled when its call is done, in the same turn of the loop: it never sees its lease.
    core = await limiter._open()
    call: Any = core.acquire("user-1", "gpt-4", {"rph": 4}, json.dumps({"limits": [SLOW.to_dict()]}))
    lease = await call
    call.abandon()
    await limiter.settled()
    assert await limiter.available("user-1", "gpt-4", limits=[SLOW]) == {"rph": 10}
    with pytest.raises(RuntimeError, match="the lease is no longer active"):
        lease.commit()


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
    connected = await Repository.embedded()._connect()
    call = connected.get_entity("user-1")
    assert await call is None
    with pytest.raises(RuntimeError, match="awaited already"):
        await call


async def test_what_needs_no_request_needs_no_turn_of_the_loop(embedded: RateLimiter) -> None:
    acquire = embedded.acquire("user-1", "gpt-4", {"rph": 1}, limits=[SLOW])
    lease = await acquire.__aenter__()
    # Nothing was adjusted, so that there is nothing to write.
    with pytest.raises(StopIteration):
        next(lease._core.commit().__await__())
    assert await embedded.available("user-1", "gpt-4", limits=[SLOW]) == {"rph": 9}
    # Replies are passed on as they are, tuples and None too.
    connected = await embedded.repository._connect()
    assert await connected.entities_with_custom_limits("gpt-4") == [[], None]


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
