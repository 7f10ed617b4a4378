"""Calls on several resources."""

from __future__ import annotations

import pytest

from zae_limiter_rs import Also, Estimate, Limit, Prices, RateLimiter, RateLimitExceeded, SyncRateLimiter, SyncRepository, Usage, ValidationError

# No token comes back while a test runs.
RPH = Limit.custom("rph", 100, 1, 360_000)
TPH = Limit.custom("tph", 10_000, 1, 360_000)
USD = Limit.custom("usd", 20, 1, 360_000)


async def test_a_call_takes_tokens_of_all_its_resources_or_of_none(limiter: RateLimiter) -> None:
    await limiter.set_resource_defaults("gpt-4", [RPH, TPH])
    await limiter.set_resource_defaults("budget", [RPH, USD])
    budget = Also("budget", {"usd": 12})
    async with limiter.acquire("user-1", "gpt-4", {"rph": 1, "tph": 500}, also=[budget]) as lease:
        assert lease.resources == ["gpt-4", "budget"]
        assert [(status.resource, status.limit_name) for status in lease.statuses] == [
            ("gpt-4", "rph"), ("gpt-4", "tph"), ("budget", "rph"), ("budget", "usd"),
        ]
        await lease.adjust(tph=120)
        await lease.adjust(usd=1)
        await lease.on("budget").adjust(rph=3, usd=3)
        await lease.on("budget").release(rph=1)
        await lease.on("gpt-4").consume(rph=1)
        assert (lease.consumed, lease.on("budget").consumed) == ({"rph": 2, "tph": 620}, {"rph": 2, "usd": 16})
        with pytest.raises(ValidationError, match="the lease is on gpt-4, budget"):
            lease.on("other")
    assert await limiter.available("user-1", "gpt-4") == {"rph": 98, "tph": 9_380}
    assert await limiter.available("user-1", "budget") == {"rph": 98, "usd": 4}
    with pytest.raises(RateLimitExceeded) as refused:
        async with limiter.acquire("user-1", "gpt-4", {"rph": 99}, also=[budget]):
            pytest.fail("it was admitted")
    assert "[gpt-4 rph, budget usd]" in str(refused.value)
    assert await limiter.available("user-1", "gpt-4") == {"rph": 98, "tph": 9_380}


async def test_each_resource_says_whether_the_parent_is_charged(limiter: RateLimiter) -> None:
    await limiter.create_entity("org-1")
    await limiter.create_entity("user-1", parent_id="org-1", cascade=True)
    await limiter.set_system_defaults([RPH])
    budget = Also("budget", {"rph": 12}, cascade=False)
    async with limiter.acquire("user-1", "gpt-4", {"rph": 1}, also=[budget]):
        pass
    async with limiter.acquire("user-1", "gpt-4", {"rph": 1}, cascade=False):
        pass
    assert [await limiter.available("org-1", resource) for resource in ("gpt-4", "budget")] == [{"rph": 99}, {"rph": 100}]


async def test_money_of_a_call_may_be_on_a_budget_that_models_share(limiter: RateLimiter) -> None:
    await limiter.set_resource_defaults("gpt-4o", [Limit.custom("tpm", 10_000, 1, 360_000)])
    await limiter.set_prices("gpt-4o", Prices(input="$1", output="$1"))
    budget = Limit.custom("usd", 1_000_000, 1, 360_000)
    estimate = Estimate(1_000, max_output=500)
    also = [Also("budget", {}, estimate=estimate, limits=[budget])]
    async with limiter.acquire("user-1", "gpt-4o", {}, estimate=estimate, also=also) as lease:
        assert (lease.consumed, lease.on("budget").consumed) == ({"tpm": 1_500}, {"usd": 1_500})
        await lease.commit_usage(Usage(1_000, 200))
    assert await limiter.available("user-1", "gpt-4o") == {"tpm": 10_000 - 1_200}
    assert await limiter.available("user-1", "budget", limits=[budget]) == {"usd": 1_000_000 - 1_200}


def test_the_same_without_asyncio() -> None:
    with SyncRateLimiter(repository=SyncRepository.embedded(), default_limits=[RPH]) as limiter:
        with limiter.acquire("user-1", "gpt-4", {"rph": 1}, also=[Also("budget", {"rph": 2})]) as lease:
            lease.on("budget").adjust(rph=3)
        assert limiter.available("user-1", "budget") == {"rph": 95}


def test_mistakes_are_found_before_anything_is_sent() -> None:
    with pytest.raises(ValidationError, match="must not be negative"):
        Also("budget", {"usd": -1})
    with pytest.raises(ValidationError):
        Also("4-budget", {"usd": 1})
