"""Entities, limits, audit events, usage and capacity."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import PATIENTLY
from zae_limiter_rs import (
    AuditAction,
    EntityError,
    EntityExistsError,
    EntityNotFoundError,
    InfrastructureNotFoundError,
    Limit,
    OnUnavailable,
    RateLimiter,
    Repository,
    StackOptions,
)

RPM = Limit.per_minute("rpm", 10)
TPM = Limit.per_minute("tpm", 100, burst=200)


async def test_entities(limiter: RateLimiter) -> None:
    project = await limiter.create_entity("project", name="The project", metadata={"tier": "gold"})
    assert project.is_parent
    assert project.metadata == {"tier": "gold"}
    child = await limiter.create_entity("key", parent_id="project", cascade=True)
    assert child.is_child
    assert await limiter.get_entity("key") == child
    assert await limiter.get_children("project") == [child]
    with pytest.raises(EntityExistsError, match="Entity already exists: key"):
        await limiter.create_entity("key")
    with pytest.raises(EntityNotFoundError, match="Entity not found: nobody"):
        await limiter.create_entity("orphan", parent_id="nobody")
    with pytest.raises(EntityError, match="has children"):
        await limiter.delete_entity("project")
    await limiter.delete_entity("key")
    await limiter.delete_entity("key")
    assert await limiter.get_entity("key") is None


async def test_limits_at_every_level(limiter: RateLimiter) -> None:
    repository = limiter.repository
    await limiter.set_system_defaults([RPM], on_unavailable=OnUnavailable.ALLOW)
    assert await limiter.get_system_defaults() == ([RPM], OnUnavailable.ALLOW)
    assert await repository.resolve_limits("user-1", "gpt-4") == ([RPM], "allow", "system")
    await limiter.set_resource_defaults("gpt-4", [TPM])
    assert await limiter.list_resources_with_defaults() == ["gpt-4"]
    assert (await repository.resolve_limits("user-1", "gpt-4"))[2] == "resource"
    await limiter.set_limits("user-1", [RPM])
    assert (await repository.resolve_limits("user-1", "gpt-4"))[2] == "entity_default"
    await limiter.set_limits("user-1", [RPM, TPM], "gpt-4")
    assert await repository.resolve_limits("user-1", "gpt-4") == ([RPM, TPM], "allow", "entity")
    assert await limiter.get_limits("user-1", "gpt-4") == [RPM, TPM]
    assert await limiter.list_entities_with_custom_limits("gpt-4") == (["user-1"], None)
    assert await limiter.list_resources_with_entity_configs() == ["_default_", "gpt-4"]
    await limiter.delete_limits("user-1", "gpt-4")
    await limiter.delete_limits("user-1")
    await limiter.delete_resource_defaults("gpt-4")
    await limiter.delete_system_defaults()
    assert await repository.resolve_limits("user-1", "gpt-4") == (None, None, None)
    assert await limiter.get_system_defaults() == ([], None)


async def test_pages_of_entities_with_custom_limits(limiter: RateLimiter) -> None:
    for number in range(5):
        await limiter.set_limits(f"user-{number}", [RPM], "gpt-4")
    first, cursor = await limiter.list_entities_with_custom_limits("gpt-4", limit=3)
    assert cursor is not None
    rest, end = await limiter.list_entities_with_custom_limits("gpt-4", limit=3, cursor=cursor)
    assert (first + rest, end) == ([f"user-{number}" for number in range(5)], None)


async def test_audit_events_name_who_and_what(limiter: RateLimiter) -> None:
    await limiter.create_entity("user-1", principal="ops@example.com")
    await limiter.set_limits("user-1", [RPM], "gpt-4", principal="ops@example.com")
    newest, oldest = await limiter.get_audit_events("user-1")
    assert (newest.action, newest.resource) == (AuditAction.LIMITS_SET, "gpt-4")
    assert newest.details["limits"] == [RPM.to_dict()]
    assert (oldest.action, oldest.principal) == (AuditAction.ENTITY_CREATED, "ops@example.com")
    assert await limiter.get_audit_events("user-1", limit=1) == [newest]
    assert await limiter.get_audit_events("user-1", start_event_id=newest.event_id) == [oldest]


async def test_buckets_and_capacity(limiter: RateLimiter) -> None:
    slow = Limit.custom("rph", 10, 1, 360_000)
    async with limiter.acquire("user-1", "gpt-4", {"rph": 4}, limits=[slow]):
        pass
    bucket = await limiter.repository.get_bucket("user-1", "gpt-4", "rph")
    assert bucket is not None
    assert (bucket.tokens, bucket.capacity, bucket.total_consumed_milli) == (6, 10, 4000)
    assert Limit.from_bucket_state(bucket) == slow
    capacity = await limiter.get_resource_capacity("gpt-4", "rph")
    assert (capacity.total_capacity, capacity.total_available, capacity.utilization_pct) == (10, 6, 40.0)
    assert [entity.entity_id for entity in capacity.entities] == ["user-1"]


async def test_usage_of_an_embedded_table_is_counted_if_it_is_asked_for() -> None:
    repository = Repository.embedded(count_usage=True)
    assert repository.capabilities.supports_usage_snapshots
    slow = Limit.custom("rph", 10, 1, 360_000)
    async with RateLimiter(repository=repository, default_limits=[slow]) as limiter:
        async with limiter.acquire("user-1", "gpt-4", {"rph": 4}) as lease:
            await lease.adjust(rph=1)
        assert (await limiter.get_usage_summary(entity_id="user-1")).total == {"rph": 5}
        snapshots, _ = await repository.get_usage_snapshots(resource="gpt-4", window_type="monthly")
        assert sum(snapshot.counters["rph"] for snapshot in snapshots) == 5
    uncounted = Repository.embedded()
    assert not uncounted.capabilities.supports_usage_snapshots
    with pytest.warns(UserWarning, match="count_usage=True"):
        assert (await uncounted.get_usage_summary(entity_id="user-1")).total == {}


@pytest.mark.filterwarnings("ignore:This process does not count")
async def test_usage_of_nobody_is_empty(limiter: RateLimiter) -> None:
    assert await limiter.get_usage_snapshots(entity_id="user-1") == ([], None)
    summary = await limiter.get_usage_summary(resource="gpt-4", window_type="daily")
    assert (summary.snapshot_count, summary.total, summary.average) == (0, {}, {})
    with pytest.raises(ValueError, match="Either entity_id or resource must be provided"):
        await limiter.get_usage_snapshots()


async def test_a_missing_table_says_how_to_deploy_it(table: dict[str, Any]) -> None:
    with pytest.raises(InfrastructureNotFoundError, match="use stack_options=StackOptions"):
        await Repository(**table).get_entity("user-1")


async def test_status(limiter: RateLimiter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zae_limiter_rs.limiter.STATUS_TIMEOUT", PATIENTLY)
    status = await limiter.get_status()
    assert status.available
    assert status.name == limiter.name
    assert status.stack_status is None


async def test_stack_options_are_checked() -> None:
    with pytest.raises(ValueError, match="lambda_memory must be between 128 and 3008"):
        StackOptions(lambda_memory=64)
    assert StackOptions(role_name_format="x-{}").get_role_name("app", "aggr") == "x-app-aggr"


async def test_without_stack_options_ensure_infrastructure_does_nothing(embedded: RateLimiter) -> None:
    await embedded.ensure_infrastructure()
    await embedded.repository.ensure_infrastructure()
