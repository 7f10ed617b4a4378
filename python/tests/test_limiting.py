"""Taking tokens, correcting them, giving them back."""

from __future__ import annotations

import math

import pytest

from zae_limiter_rs import (
    InvalidIdentifierError,
    InvalidNameError,
    Limit,
    OnUnavailable,
    RateLimiter,
    RateLimiterUnavailable,
    RateLimitExceeded,
    Repository,
    ValidationError,
)

# By the hour, so that no token comes back while a test runs.
RPH = Limit.custom("rph", capacity=10, refill_amount=10, refill_period_seconds=360_000)
TPH = Limit.custom("tph", capacity=1000, refill_amount=1, refill_period_seconds=360_000)


async def test_acquire_takes_tokens_and_adjust_corrects_them(limiter: RateLimiter) -> None:
    await limiter.set_resource_defaults("gpt-4", [RPH, TPH])
    async with limiter.acquire("user-1", "gpt-4", consume={"rph": 1, "tph": 500}) as lease:
        assert lease.consumed == {"rph": 1, "tph": 500}
        assert lease.is_counted
        await lease.adjust(tph=120)
        await lease.release(tph=20)
        assert lease.consumed == {"rph": 1, "tph": 600}
    assert await limiter.available("user-1", "gpt-4") == {"rph": 9, "tph": 400}


async def test_all_kinds_of_limits_are_stored_and_taken_together(limiter: RateLimiter) -> None:
    spend = Limit.quota("spend", 10, "30d from first use", alert_at=[100, 80])
    parallel = Limit.concurrency("parallel", 1)
    await limiter.set_resource_defaults("gpt-4", [RPH, spend, parallel])
    assert await limiter.get_resource_defaults("gpt-4") == [parallel, RPH, spend]
    call = {"rph": 1, "spend": 8, "parallel": 1}
    async with limiter.acquire("user-1", "gpt-4", call) as lease:
        with pytest.raises(RateLimitExceeded) as refused:
            async with limiter.acquire("user-1", "gpt-4", {"parallel": 1}):
                pass
        assert [status.limit for status in refused.value.violations] == [parallel]
        assert not lease.is_lost
    with pytest.raises(RateLimitExceeded) as refused:
        async with limiter.acquire("user-1", "gpt-4", {"spend": 3, "parallel": 1}):
            pass
    assert [status.limit for status in refused.value.violations] == [spend]
    (status,) = refused.value.violations
    body = next(entry for entry in refused.value.as_dict()["limits"] if entry["limit_name"] == "spend")
    assert status.resets_at is not None and body["resets_at"] == status.resets_at
    assert status.window_seconds == 30 * 86_400
    assert await limiter.available("user-1", "gpt-4") == {"parallel": 1, "rph": 9, "spend": 2}


async def test_an_adjustment_may_go_into_debt(limiter: RateLimiter) -> None:
    async with limiter.acquire("user-1", "gpt-4", {"tph": 1000}, limits=[TPH]) as lease:
        await lease.adjust(tph=50)
    assert await limiter.available("user-1", "gpt-4", limits=[TPH]) == {"tph": -50}


async def test_an_exception_in_the_body_gives_everything_back(limiter: RateLimiter) -> None:
    await limiter.set_resource_defaults("gpt-4", [RPH])
    with pytest.raises(ZeroDivisionError):
        async with limiter.acquire("user-1", "gpt-4", {"rph": 3}) as lease:
            await lease.consume(rph=2)
            1 / 0  # noqa: B018
    assert await limiter.available("user-1", "gpt-4") == {"rph": 10}


async def test_the_exception_of_the_body_is_never_replaced(limiter: RateLimiter) -> None:
    await limiter.set_resource_defaults("gpt-4", [RPH])
    with pytest.raises(ZeroDivisionError):
        async with limiter.acquire("user-1", "gpt-4", {"rph": 3}) as lease:
            # It cannot be rolled back again.
            await lease._core.commit()
            1 / 0  # noqa: B018
    assert await limiter.available("user-1", "gpt-4") == {"rph": 7}


async def test_a_refusal_has_every_limit(limiter: RateLimiter) -> None:
    await limiter.set_resource_defaults("gpt-4", [RPH, TPH])
    async with limiter.acquire("user-1", "gpt-4", {"rph": 10}):
        pass
    with pytest.raises(RateLimitExceeded) as raised:
        async with limiter.acquire("user-1", "gpt-4", {"rph": 1, "tph": 1}):
            pytest.fail("it was admitted")
    refusal = raised.value
    assert [status.limit_name for status in refusal.violations] == ["rph"]
    assert [status.limit_name for status in refusal.passed] == ["tph"]
    assert refusal.primary_violation.limit == RPH
    assert 0 < refusal.retry_after_seconds <= 36_000
    assert str(refusal) == (
        f"Rate limit exceeded for user-1/gpt-4: [rph]. Retry after {refusal.retry_after_seconds:.1f}s"
    )
    assert await limiter.available("user-1", "gpt-4") == {"rph": 0, "tph": 1000}


async def test_more_than_the_burst_can_never_pass(limiter: RateLimiter) -> None:
    with pytest.raises(RateLimitExceeded) as raised:
        async with limiter.acquire("user-1", "gpt-4", {"rph": 11}, limits=[RPH]):
            pytest.fail("it was admitted")
    assert raised.value.retry_after_seconds == math.inf
    assert not raised.value.can_pass
    assert raised.value.as_dict()["retry_after_ms"] is None
    assert await limiter.time_until_available("user-1", "gpt-4", {"rph": 11}, limits=[RPH]) == math.inf


async def test_consume_takes_all_or_nothing(limiter: RateLimiter) -> None:
    await limiter.set_resource_defaults("gpt-4", [RPH, TPH])
    async with limiter.acquire("user-1", "gpt-4", {"rph": 1}) as lease:
        with pytest.raises(RateLimitExceeded):
            await lease.consume(rph=1, tph=1001)
        await lease.consume(tph=10)
        assert lease.consumed == {"rph": 1, "tph": 10}
    assert await limiter.available("user-1", "gpt-4") == {"rph": 9, "tph": 990}


async def test_a_child_is_charged_with_its_parent(limiter: RateLimiter) -> None:
    await limiter.create_entity("project")
    await limiter.create_entity("key", parent_id="project", cascade=True)
    await limiter.set_resource_defaults("gpt-4", [RPH])
    async with limiter.acquire("key", "gpt-4", {"rph": 4}) as lease:
        assert lease.consumed == {"rph": 4}
        assert [status.entity_id for status in lease.statuses] == ["key", "project"]
    assert await limiter.available("project", "gpt-4") == {"rph": 6}
    with pytest.raises(RateLimitExceeded, match=r"\[key rph, project rph\]"):
        async with limiter.acquire("key", "gpt-4", {"rph": 7}):
            pytest.fail("it was admitted")


async def test_waiting_is_served_when_tokens_come(embedded: RateLimiter) -> None:
    fast = [Limit.per_second("rps", 50)]
    async with embedded.acquire("user-1", "gpt-4", {"rps": 50}, limits=fast):
        pass
    async with embedded.acquire("user-1", "gpt-4", {"rps": 1}, limits=fast, wait=10_000) as lease:
        assert lease.consumed == {"rps": 1}


async def test_mistakes_are_found_before_anything_is_sent(embedded: RateLimiter) -> None:
    with pytest.raises(InvalidIdentifierError) as identifier:
        embedded.acquire("user#1", "gpt-4", {"rph": 1})
    assert (identifier.value.field, identifier.value.value) == ("entity_id", "user#1")
    with pytest.raises(InvalidNameError):
        embedded.acquire("user-1", "4-gpt", {"rph": 1})
    with pytest.raises(ValidationError, match="must not be negative"):
        async with embedded.acquire("user-1", "gpt-4", {"rph": -1}, limits=[RPH]):
            pytest.fail("it was admitted")
    with pytest.raises(ValidationError, match="No limits configured for entity 'user-1' and resource 'gpt-4'"):
        async with embedded.acquire("user-1", "gpt-4", {"rph": 1}):
            pytest.fail("it was admitted")
    with pytest.raises(ValidationError, match="has the limits rph"):
        async with embedded.acquire("user-1", "gpt-4", {"rpm": 1}, limits=[RPH]):
            pytest.fail("it was admitted")


async def test_an_outage_blocks_or_allows() -> None:
    # Nothing listens on this port.
    nowhere = Repository("limiter", region="us-east-1", endpoint_url="http://127.0.0.1:1", time_budget=0.2)
    limiter = RateLimiter(repository=nowhere)
    with pytest.raises(RateLimiterUnavailable) as raised:
        async with limiter.acquire("user-1", "gpt-4", {"rph": 1}, limits=[RPH]):
            pytest.fail("it was admitted")
    assert (raised.value.stack_name, raised.value.entity_id, raised.value.resource) == ("limiter", "user-1", "gpt-4")
    allowed = limiter.acquire("user-1", "gpt-4", {"rph": 1}, limits=[RPH], on_unavailable=OnUnavailable.ALLOW)
    async with allowed as lease:
        await lease.adjust(rph=1)
        assert not lease.is_counted
    assert not await limiter.is_available()


async def test_a_limiter_counts_what_becomes_of_calls(embedded: RateLimiter) -> None:
    await embedded.set_system_defaults([RPH])
    for _ in range(2):
        async with embedded.acquire("user-1", "gpt-4", {"rph": 5}):
            pass
    with pytest.raises(RateLimitExceeded):
        async with embedded.acquire("user-1", "gpt-4", {"rph": 5}):
            pytest.fail("it was admitted")
    stats = await embedded.stats()
    assert (stats.granted, stats.refused, stats.unavailable, stats.breaker, stats.buckets) == (2, 1, 0, "closed", 1)


async def test_two_limiters_of_one_repository_see_changes_at_once() -> None:
    repository = Repository.embedded()
    one = RateLimiter(repository=repository)
    other = RateLimiter(repository=repository, on_unavailable=OnUnavailable.ALLOW)
    await one.set_system_defaults([RPH])
    assert await other.available("user-1", "gpt-4") == {"rph": 10}
    await one.set_system_defaults([TPH])
    assert await other.available("user-1", "gpt-4") == {"tph": 1000}
