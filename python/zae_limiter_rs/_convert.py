"""Values between the API and the native part."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, get_args

from .models import BucketState, ConfigSource, EntityCapacity, Limit, ResourceCapacity, TemporaryLimits, UsageSnapshot, UsageSummary


def dump_limits(limits: Iterable[Limit]) -> str:
    """Limits as the native part reads them."""
    return json.dumps([limit.to_dict() for limit in limits])


def limits_of(config: dict[str, Any]) -> list[Limit]:
    """The limits of a configuration."""
    return [Limit.from_dict(limit) for limit in config["limits"]]


def temporary_limits(config: dict[str, Any]) -> TemporaryLimits | None:
    """The limits of a configuration that end at a time."""
    temporary = config["temporary"]
    return None if temporary is None else TemporaryLimits(limits_of(temporary), temporary["until"])


def config_source(origin: str) -> ConfigSource | None:
    """The level that something comes from; ``None`` if it is not stored."""
    return next((level for level in get_args(ConfigSource) if level == origin), None)


def bucket_state(data: dict[str, Any]) -> BucketState:
    """One limit of a bucket."""
    return BucketState(
        entity_id=data["entity_id"],
        resource=data["resource"],
        limit_name=data["limit_name"],
        tokens_milli=data["tokens"] * 1000,
        last_refill_ms=data["last_refill_ms"],
        capacity_milli=data["capacity"] * 1000,
        burst_milli=data["burst"] * 1000,
        refill_amount_milli=data["refill_amount"] * 1000,
        refill_period_ms=data["refill_period_ms"],
        total_consumed_milli=data["consumed"] * 1000,
    )


def timestamp(time: datetime | str | None) -> str | None:
    """A time as the table has it: UTC, to the second. A time without a zone is UTC."""
    if not isinstance(time, datetime):
        return time
    utc = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return utc.strftime("%Y-%m-%dT%H:%M:%SZ")


def usage_query(
    entity_id: str | None,
    resource: str | None,
    window_type: str | None,
    start_time: datetime | str | None,
    end_time: datetime | str | None,
) -> str:
    """Whose usage, of what, and when, as the native part reads it."""
    if not entity_id and not resource:
        raise ValueError("Either entity_id or resource must be provided")
    return json.dumps(
        {
            "entity_id": entity_id,
            "resource": resource,
            "window_type": window_type,
            "start_time": timestamp(start_time),
            "end_time": timestamp(end_time),
        }
    )


def warn_uncounted_usage(is_counted: bool) -> None:
    """Warns of usage that is empty because nobody counts it."""
    if not is_counted:
        warnings.warn(
            "This process does not count the usage of its embedded table. Open it with Repository.embedded(..., count_usage=True).",
            stacklevel=3,
        )


def usage_page(snapshots: list[dict[str, Any]], following: str | None) -> tuple[list[UsageSnapshot], dict[str, Any] | None]:
    """A page of usage, and the start of the next one."""
    for snapshot in snapshots:
        del snapshot["refusals"]
    return [UsageSnapshot(**snapshot) for snapshot in snapshots], {"cursor": following} if following else None


def usage_summary(data: dict[str, Any]) -> UsageSummary:
    """Sums and averages of usage."""
    count: int = data["snapshot_count"]
    average = {name: total / count for name, total in data["total"].items()} if count else {}
    return UsageSummary(average=average, **data)


def capacity(data: dict[str, Any]) -> ResourceCapacity:
    """A limit of a resource over all entities."""
    entities = [EntityCapacity(**entity) for entity in data.pop("entities")]
    return ResourceCapacity(entities=entities, **data)
