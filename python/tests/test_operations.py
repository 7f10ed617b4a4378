"""What operators do to running limits: top-ups and resets."""

from __future__ import annotations

import pytest

from zae_limiter_rs import (
    Limit,
    RateLimiter,
    RateLimitExceeded,
    SyncRateLimiter,
    SyncRepository,
    ValidationError,
)

# No token comes back while a test runs.
RPH = Limit.custom("rph", 10, 1, 360_000)
SPEND = Limit.quota("spend", 10, "30d from first use")


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


def test_the_same_without_asyncio() -> None:
    with SyncRateLimiter(repository=SyncRepository.embedded(), default_limits=[RPH]) as limiter:
        with limiter.acquire("user-1", "export", {"rph": 10}):
            pass
        with pytest.raises(RateLimitExceeded), limiter.acquire("user-1", "export", {"rph": 1}):
            pytest.fail("it was admitted")
        assert limiter.top_up("user-1", "export", "rph", 3).left == 3
        assert limiter.reset("user-1", "export").limits == ["rph"]
