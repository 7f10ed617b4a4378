"""Values between the API and the native part."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from .models import BucketState, Limit


def dump_limits(limits: Iterable[Limit]) -> str:
    """Limits as the native part reads them."""
    return json.dumps([limit.to_dict() for limit in limits])


def limits_of(config: dict[str, Any]) -> list[Limit]:
    """The limits of a configuration."""
    return [Limit.from_dict(limit) for limit in config["limits"]]


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
