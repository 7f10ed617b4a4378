"""What operators do to running limits: modes, top-ups, resets, limits that end."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from zae_limiter_rs import (
    Admission,
    DisabledError,
    Limit,
    Mode,
    OnUnavailable,
    RateLimiter,
    RateLimitExceeded,
    SyncRateLimiter,
    SyncRepository,
    TemporaryLimits,
    ValidationError,
)

# No token comes back while a test runs.
RPH = Limit.custom("rph", 10, 1, 360_000)
SPEND = Limit.quota("spend", 10, "30d from first use")


async def test_a_resource_is_disabled_except_for_one_entity(limiter: RateLimiter) -> None:
    await limiter.set_system_defaults([RPH])
    await limiter.set_mode(Mode.DISABLED, resource="gpt-4")
    await limiter.set_mode(Mode.ENFORCE, entity_id="tester", resource="gpt-4")
    with pytest.raises(DisabledError) as disabled:
        async with limiter.acquire("user-1", "gpt-4", {"rph": 1}):
            pytest.fail("it was admitted")
    error = disabled.value
    assert (error.entity_id, error.resource, error.mode_from) == ("user-1", "gpt-4", "resource")
    async with limiter.acquire("tester", "gpt-4", {"rph": 1}) as lease:
        assert lease.admission is Admission.COUNTED
    assert await limiter.get_mode(resource="gpt-4") is Mode.DISABLED
    assert await limiter.resolve_mode("tester", "gpt-4") == (Mode.ENFORCE, "entity")
    assert await limiter.resolve_mode("user-1", "other") == (Mode.ENFORCE, None)
    assert await limiter.delete_mode(resource="gpt-4")
    assert not await limiter.delete_mode(resource="gpt-4")
    async with limiter.acquire("user-1", "gpt-4", {"rph": 1}):
        pass
    stats = await limiter.stats()
    assert (stats.granted, stats.disabled) == (2, 1)


async def test_observed_limits_let_calls_pass_and_say_which_would_have_refused(limiter: RateLimiter) -> None:
    await limiter.set_system_defaults([RPH])
    await limiter.set_mode(Mode.OBSERVE)
    async with limiter.acquire("user-1", "gpt-4", {"rph": 8}) as lease:
        assert lease.admission is Admission.COUNTED
    async with limiter.acquire("user-1", "gpt-4", {"rph": 8}) as lease:
        assert lease.admission is Admission.OBSERVED
        assert not lease.is_counted
        assert [(status.limit_name, status.available, status.observed) for status in lease.observed_limits] == [("rph", 2, True)]
    await limiter.set_mode(Mode.BYPASS, entity_id="user-1")
    async with limiter.acquire("user-1", "gpt-4", {"rph": 8}) as lease:
        assert lease.admission is Admission.BYPASSED
    await limiter.delete_mode(entity_id="user-1")
    assert await limiter.refresh_buckets() == 1
    assert await limiter.available("user-1", "gpt-4") == {"rph": 2}


async def test_a_top_up_and_a_reset_are_made_once(limiter: RateLimiter) -> None:
    await limiter.set_limits("team-1", [RPH, SPEND], "gpt-4")
    async with limiter.acquire("team-1", "gpt-4", {"rph": 10, "spend": 10}):
        pass
    for repeated in (False, True):
        made = await limiter.top_up("team-1", "gpt-4", "spend", 5, reason="approved", idempotency_key="ticket-1")
        assert (made.limit_name, made.amount, made.added, made.left, made.repeated) == ("spend", 5, 5, 5, repeated)
        assert made.period_end is not None
    assert await limiter.available("team-1", "gpt-4") == {"rph": 0, "spend": 5}
    with pytest.raises(ValidationError, match="used for another change"):
        await limiter.top_up("team-1", "gpt-4", "spend", 6, idempotency_key="ticket-1")
    for repeated in (False, True):
        reset = await limiter.reset("team-1", "gpt-4", ["rph"], idempotency_key="ticket-2")
        assert (reset.limits, reset.permits_revoked, reset.repeated) == (["rph"], False, repeated)
    assert await limiter.available("team-1", "gpt-4") == {"rph": 10, "spend": 5}
    assert set((await limiter.reset("team-1", "gpt-4", principal="ops")).limits) == {"rph", "spend"}
    events = await limiter.get_audit_events("team-1")
    assert [event.action for event in events[:3]] == ["limits_reset", "limits_reset", "topped_up"]
    assert events[0].principal == "ops"
    with pytest.raises(ValidationError, match="limit"):
        await limiter.top_up("team-1", "gpt-4", "other", 1)


async def test_limits_that_end_apply_in_place_of_those_that_last(limiter: RateLimiter) -> None:
    raised = Limit.custom("rph", 50, 1, 360_000)
    await limiter.set_system_defaults([RPH], OnUnavailable.ALLOW)
    await limiter.set_limits("user-1", [RPH], "gpt-4")
    end = datetime(2999, 1, 1, tzinfo=UTC)
    await limiter.set_limits("user-1", [raised], "gpt-4", until=end, reason="a launch")
    assert await limiter.available("user-1", "gpt-4") == {"rph": 50}
    assert await limiter.get_limits("user-1", "gpt-4") == [RPH]
    temporary = TemporaryLimits([raised], "2999-01-01T00:00:00Z")
    assert await limiter.get_temporary_limits(entity_id="user-1", resource="gpt-4") == temporary
    assert (await limiter.get_audit_events("user-1"))[0].details["reason"] == "a launch"
    await limiter.delete_temporary_limits(entity_id="user-1", resource="gpt-4")
    assert await limiter.get_temporary_limits(entity_id="user-1", resource="gpt-4") is None
    assert (await limiter.available("user-1", "gpt-4"))["rph"] <= 10
    await limiter.set_system_defaults([raised], until=end)
    assert await limiter.get_system_defaults() == ([RPH], OnUnavailable.ALLOW)
    assert await limiter.available("user-2", "gpt-4") == {"rph": 50}
    with pytest.raises(ValidationError, match="until"):
        await limiter.set_resource_defaults("gpt-4", [RPH], until="tomorrow")


async def test_an_entity_gets_another_parent(limiter: RateLimiter) -> None:
    await limiter.set_system_defaults([RPH])
    for parent in ("team-1", "team-2"):
        await limiter.create_entity(parent)
    await limiter.create_entity("user-1", parent_id="team-1", cascade=True)
    async with limiter.acquire("user-1", "gpt-4", {"rph": 4}) as lease:
        assert (await limiter.set_parent("user-1", "team-2", reason="moved")).parent_id == "team-2"
        await lease.adjust(rph=1)
    async with limiter.acquire("user-1", "gpt-4", {"rph": 1}):
        pass
    assert await limiter.available("team-1", "gpt-4") == {"rph": 5}
    assert await limiter.available("team-2", "gpt-4") == {"rph": 9}
    assert (await limiter.set_parent("user-1", None)).parent_id is None


def test_the_same_without_asyncio() -> None:
    with SyncRateLimiter(repository=SyncRepository.embedded(), default_limits=[RPH]) as limiter:
        limiter.set_mode(Mode.OBSERVE, resource="gpt-4")
        assert limiter.resolve_mode("user-1", "gpt-4") == (Mode.OBSERVE, "resource")
        with limiter.acquire("user-1", "export", {"rph": 10}):
            pass
        with pytest.raises(RateLimitExceeded), limiter.acquire("user-1", "export", {"rph": 1}):
            pytest.fail("it was admitted")
        assert limiter.top_up("user-1", "export", "rph", 3).left == 3
        assert limiter.reset("user-1", "export").limits == ["rph"]
        assert limiter.refresh_buckets(resource="export") == 1
