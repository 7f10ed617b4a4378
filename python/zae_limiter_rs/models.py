"""What is passed and returned: plain values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Literal

from ._names import (
    MAX_IDENTIFIER_LENGTH,
    MAX_NAME_LENGTH,
    validate_identifier,
    validate_name,
    validate_resource,
)

__all__ = [
    "MAX_IDENTIFIER_LENGTH",
    "MAX_NAME_LENGTH",
    "Admission",
    "AuditAction",
    "AuditEvent",
    "BackendCapabilities",
    "BucketState",
    "CacheStats",
    "ConfigSource",
    "Entity",
    "EntityCapacity",
    "Limit",
    "LimitName",
    "LimitStatus",
    "LimiterInfo",
    "LimiterStats",
    "Mode",
    "OnUnavailable",
    "OnUnavailableAction",
    "Reset",
    "ResourceCapacity",
    "StackOptions",
    "Status",
    "TemporaryLimits",
    "TopUp",
    "UsageSnapshot",
    "UsageSummary",
    "validate_identifier",
    "validate_name",
    "validate_resource",
]

OnUnavailableAction = Literal["allow", "block"]
ConfigSource = Literal["entity", "entity_default", "resource", "system"]


class Mode(Enum):
    """Whether the limits of a level are enforced."""

    ENFORCE = "enforce"
    OBSERVE = "observe"
    """A call that they do not allow passes, takes nothing and is counted as observed."""
    BYPASS = "bypass"
    """Every call passes, and nothing is taken."""
    DISABLED = "disabled"
    """Every call is refused."""


class Admission(Enum):
    """Whether the tokens of a call were taken from the table, and if not, why it was admitted."""

    COUNTED = "counted"
    PARTLY_COUNTED = "partly_counted"
    """Those of the call were, and some that the lease consumed later were not: the table was unavailable by then."""
    LOCAL = "local"
    """The table was unavailable, and the process had enough left of its part of the limits."""
    ALLOWED_WHILE_UNAVAILABLE = "allowed_while_unavailable"
    OBSERVED = "observed"
    """The limits would have refused it, and are only observed."""
    BYPASSED = "bypassed"
    """The limits are bypassed."""


class OnUnavailable(Enum):
    """What happens to a call while the table cannot be reached."""

    ALLOW = "allow"
    BLOCK = "block"


@dataclass(frozen=True)
class BackendCapabilities:
    """What the store behind a repository can do."""

    supports_audit_logging: bool = False
    supports_usage_snapshots: bool = False
    supports_infrastructure_management: bool = False
    supports_change_streams: bool = False
    supports_batch_operations: bool = False


@dataclass(frozen=True)
class Limit:
    """A token bucket: ``refill_amount`` tokens every ``refill_period_seconds``, at most ``burst`` at once."""

    name: str
    capacity: int
    burst: int
    refill_amount: int
    refill_period_seconds: int

    def __post_init__(self) -> None:
        validate_name(self.name, "name")
        if self.capacity <= 0:
            raise ValueError("capacity must be positive")
        if self.burst < self.capacity:
            raise ValueError("burst must be >= capacity")
        if self.refill_amount <= 0:
            raise ValueError("refill_amount must be positive")
        if self.refill_period_seconds <= 0:
            raise ValueError("refill_period_seconds must be positive")

    @classmethod
    def per_second(cls, name: str, capacity: int, burst: int | None = None) -> Limit:
        """``capacity`` tokens per second."""
        return cls.custom(name, capacity, capacity, 1, burst)

    @classmethod
    def per_minute(cls, name: str, capacity: int, burst: int | None = None) -> Limit:
        """``capacity`` tokens per minute."""
        return cls.custom(name, capacity, capacity, 60, burst)

    @classmethod
    def per_hour(cls, name: str, capacity: int, burst: int | None = None) -> Limit:
        """``capacity`` tokens per hour."""
        return cls.custom(name, capacity, capacity, 3600, burst)

    @classmethod
    def per_day(cls, name: str, capacity: int, burst: int | None = None) -> Limit:
        """``capacity`` tokens per day."""
        return cls.custom(name, capacity, capacity, 86400, burst)

    @classmethod
    def custom(
        cls,
        name: str,
        capacity: int,
        refill_amount: int,
        refill_period_seconds: int,
        burst: int | None = None,
    ) -> Limit:
        """Any rate. The default burst is the capacity."""
        return cls(name, capacity, capacity if burst is None else burst, refill_amount, refill_period_seconds)

    @staticmethod
    def quota(name: str, amount: int, per: str, *, alert_at: Iterable[int] = ()) -> Quota:
        """``amount`` per period, such as ``"month in Europe/Berlin"`` or ``"5h from first use"``. An event tells when one of the
        percentages in ``alert_at`` is used."""
        return Quota(name, amount, amount, amount, 1, per, tuple(sorted(set(alert_at))))

    @staticmethod
    def concurrency(name: str, permits: int, expires_after_seconds: int = 600) -> Concurrency:
        """``permits`` calls in flight. One comes back when its lease ends, or this long after its process died."""
        return Concurrency(name, permits, permits, permits, 1, expires_after_seconds)

    @property
    def refill_rate(self) -> float:
        """Tokens per second."""
        return self.refill_amount / self.refill_period_seconds

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Limit:
        """The reverse of :meth:`to_dict`."""
        if "quota" in data:
            return Limit.quota(data["name"], data["quota"], data["per"], alert_at=data.get("alert_at", ()))
        if "concurrency" in data:
            return Limit.concurrency(data["name"], data["concurrency"], data["expires_after_seconds"])
        return cls(**{entry.name: data[entry.name] for entry in fields(cls)})

    @classmethod
    def from_bucket_state(cls, state: BucketState) -> Limit:
        """The limit that a bucket was written with."""
        return cls(
            name=state.limit_name,
            capacity=state.capacity_milli // 1000,
            burst=state.burst_milli // 1000,
            refill_amount=state.refill_amount_milli // 1000,
            refill_period_seconds=state.refill_period_ms // 1000,
        )


@dataclass(frozen=True)
class Quota(Limit):
    """An amount per period, made by :meth:`Limit.quota`. All of it comes back when the period ends."""

    per: str = "month"
    alert_at: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        alerts = {"alert_at": list(self.alert_at)} if self.alert_at else {}
        return {"name": self.name, "quota": self.capacity, "per": self.per, **alerts}


@dataclass(frozen=True)
class Concurrency(Limit):
    """Calls in flight, made by :meth:`Limit.concurrency`. Each holds a permit until its lease ends."""

    expires_after_seconds: int = 600

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {
            "name": self.name,
            "concurrency": self.capacity,
            "expires_after_seconds": self.expires_after_seconds,
        }


@dataclass
class Entity:
    """Who is limited. A child names its parent."""

    id: str
    name: str | None = None
    parent_id: str | None = None
    cascade: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    created_at: str | None = None

    @property
    def is_parent(self) -> bool:
        """True for an entity without a parent."""
        return self.parent_id is None

    @property
    def is_child(self) -> bool:
        """True for an entity with a parent."""
        return self.parent_id is not None


@dataclass
class LimitStatus:
    """One limit, compared with what a call requests. ``available`` below zero is debt.

    ``resets_at`` is when the period of a quota ends, ``window_seconds`` the time in which all of a limit comes back: a quota's period, a rate
    from empty. ``observed`` limits would have refused the call if they were enforced.
    """

    entity_id: str
    resource: str
    limit_name: str
    limit: Limit
    available: int
    requested: int
    exceeded: bool
    retry_after_seconds: float
    resets_at: str | None = field(default=None, repr=False)
    observed: bool = field(default=False, repr=False)
    window_seconds: int | None = field(default=None, repr=False)

    @property
    def deficit(self) -> int:
        """How many tokens are missing."""
        return max(0, self.requested - self.available)


@dataclass
class BucketState:
    """One limit of a bucket. Amounts are thousandths of tokens."""

    entity_id: str
    resource: str
    limit_name: str
    tokens_milli: int
    last_refill_ms: int
    capacity_milli: int
    burst_milli: int
    refill_amount_milli: int
    refill_period_ms: int
    total_consumed_milli: int | None = None

    @property
    def tokens(self) -> int:
        """Whole tokens available."""
        return self.tokens_milli // 1000

    @property
    def capacity(self) -> int:
        """Capacity in whole tokens."""
        return self.capacity_milli // 1000

    @property
    def burst(self) -> int:
        """Burst in whole tokens."""
        return self.burst_milli // 1000

    @classmethod
    def from_limit(cls, entity_id: str, resource: str, limit: Limit, now_ms: int) -> BucketState:
        """A full bucket."""
        return cls(
            entity_id=entity_id,
            resource=resource,
            limit_name=limit.name,
            tokens_milli=limit.burst * 1000,
            last_refill_ms=now_ms,
            capacity_milli=limit.capacity * 1000,
            burst_milli=limit.burst * 1000,
            refill_amount_milli=limit.refill_amount * 1000,
            refill_period_ms=limit.refill_period_seconds * 1000,
            total_consumed_milli=0,
        )


@dataclass
class UsageSnapshot:
    """What one entity used of one resource in one window of time."""

    entity_id: str
    resource: str
    window_start: str
    window_end: str
    window_type: str
    counters: dict[str, int]
    total_events: int


@dataclass
class UsageSummary:
    """Sums and averages over snapshots."""

    snapshot_count: int
    total: dict[str, int]
    average: dict[str, float]
    min_window_start: str | None
    max_window_start: str | None


@dataclass(frozen=True)
class LimiterInfo:
    """A stack that was found in a region."""

    stack_name: str
    user_name: str
    region: str
    stack_status: str
    creation_time: str
    last_updated_time: str | None = None
    version: str | None = None
    lambda_version: str | None = None
    schema_version: str | None = None
    stack_type: str | None = None

    @property
    def is_healthy(self) -> bool:
        """The last operation on the stack succeeded."""
        return self.stack_status in ("CREATE_COMPLETE", "UPDATE_COMPLETE")

    @property
    def is_in_progress(self) -> bool:
        """An operation on the stack is running."""
        return "IN_PROGRESS" in self.stack_status

    @property
    def is_failed(self) -> bool:
        """The last operation on the stack failed or was rolled back."""
        return "FAILED" in self.stack_status or "ROLLBACK" in self.stack_status


@dataclass
class ResourceCapacity:
    """One limit of a resource, over all entities that have a bucket for it."""

    resource: str
    limit_name: str
    total_capacity: int
    total_available: int
    utilization_pct: float
    entities: list[EntityCapacity]


@dataclass
class EntityCapacity:
    """One entity's part of a resource."""

    entity_id: str
    capacity: int
    available: int
    utilization_pct: float


class LimitName:
    """Common names of limits: requests and tokens per minute, hour and day."""

    RPM = "rpm"
    RPH = "rph"
    RPD = "rpd"
    TPM = "tpm"
    TPH = "tph"
    TPD = "tpd"


@dataclass(frozen=True)
class TemporaryLimits:
    """Limits that apply until a time, in place of those of the same level."""

    limits: list[Limit]
    until: str


@dataclass(frozen=True)
class TopUp:
    """What was added to what is left of a limit. ``repeated`` is true if it had been done before, under the same idempotency key."""

    entity_id: str
    resource: str
    limit_name: str
    amount: int
    added: int
    left: int
    event_id: str
    repeated: bool
    period_end: str | None = None


@dataclass(frozen=True)
class Reset:
    """Limits that were made as if nothing were used. ``repeated`` is true if it had been done before, under the same idempotency key."""

    entity_id: str
    resource: str
    limits: list[str]
    permits_revoked: bool
    event_id: str
    repeated: bool


@dataclass(frozen=True)
class LimiterStats:
    """Counters of a limiter in this process."""

    granted: int
    refused: int
    observed: int
    """Calls that limits would have refused if they were enforced."""
    disabled: int
    """Calls that were refused because the mode is disabled."""
    unavailable: int
    """Calls for which the table could not be reached in time."""
    unwritten: int
    """Adjustments and refunds that could not be written and were given up."""
    rolled_back: int
    """Leases that were dropped and neither committed nor rolled back."""
    refill_went_back: int
    """How often the clock of another process was behind."""
    refills_set_back: int
    """How often the clock of another process was ahead, by more than five seconds."""
    clock_offset_ms: int
    """By how much the clock of this machine is corrected."""
    buckets: int
    """Buckets in memory."""
    chunk_grants: int
    """Calls that were served from a chunk of tokens."""
    chunk_tokens: int
    """Tokens of chunks that are not spent yet."""
    chunk_tokens_peak: int
    breaker: Literal["closed", "open"]
    """Open while the table is unavailable."""
    breaker_opened: int


@dataclass
class CacheStats:
    """Counters of the configuration cache."""

    hits: int = 0
    misses: int = 0
    size: int = 0
    ttl_seconds: int = 0

    def as_dict(self) -> dict[str, int]:
        """The counters by name."""
        return {"hits": self.hits, "misses": self.misses, "size": self.size, "ttl": self.ttl_seconds}


_LOG_RETENTION_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
    *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
)
_ROLE_ARN = re.compile(r"arn:(aws|aws-cn|aws-us-gov):iam::\d{12}:role/.+")
_MOST_TAGS = 45


@dataclass(frozen=True)
class StackOptions:
    """The stack that an application declares: see the guide of the options file for each of them."""

    snapshot_windows: str = "hourly,daily"
    usage_retention_days: int = 90
    audit_retention_days: int = 90
    enable_aggregator: bool = True
    pitr_recovery_days: int | None = None
    log_retention_days: int = 30
    lambda_timeout: int = 60
    lambda_memory: int = 256
    enable_alarms: bool = True
    alarm_sns_topic: str | None = None
    lambda_duration_threshold_pct: int = 80
    permission_boundary: str | None = None
    role_name_format: str | None = None
    policy_name_format: str | None = None
    enable_audit_archival: bool = True
    audit_archive_glacier_days: int = 90
    enable_tracing: bool = False
    create_iam_roles: bool = False
    create_iam: bool = True
    aggregator_role_arn: str | None = None
    enable_deletion_protection: bool = False
    tags: dict[str, str] | None = None

    def __post_init__(self) -> None:
        ranges = {
            "lambda_timeout": (1, 900),
            "lambda_memory": (128, 3008),
            "lambda_duration_threshold_pct": (1, 100),
            "pitr_recovery_days": (1, 35),
            "audit_archive_glacier_days": (1, 3650),
        }
        for name, (least, most) in ranges.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise ValueError(f"{name} must be between {least} and {most}")
        for name in ("usage_retention_days", "audit_retention_days"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive")
        if self.log_retention_days not in _LOG_RETENTION_DAYS:
            raise ValueError(f"log_retention_days must be one of {sorted(_LOG_RETENTION_DAYS)}")
        _check_format("role_name_format", self.role_name_format, "role", 55, 64)
        _check_format("policy_name_format", self.policy_name_format, "policy", 122, 128)
        if self.create_iam_roles and not self.create_iam:
            raise ValueError(
                "create_iam_roles=True cannot be used with create_iam=False. Roles require IAM permissions to create."
            )
        if self.aggregator_role_arn is not None and not _ROLE_ARN.fullmatch(self.aggregator_role_arn):
            raise ValueError(f"aggregator_role_arn must be a valid IAM role ARN, got: {self.aggregator_role_arn}")
        _check_tags(self.tags or {})

    def get_role_name(self, stack_name: str, component: str) -> str | None:
        """The name of a role of a stack; ``None`` without a format."""
        return _formatted("role_name", self.role_name_format, stack_name, component, 64)

    def get_policy_name(self, stack_name: str, component: str) -> str | None:
        """The name of a policy of a stack; ``None`` without a format."""
        return _formatted("policy_name", self.policy_name_format, stack_name, component, 128)


def _check_format(name: str, template: str | None, kind: str, longest: int, longest_name: int) -> None:
    if template is None:
        return
    places = template.count("{}")
    if places != 1:
        raise ValueError(f"{name} must contain exactly one '{{}}' placeholder, found {places}")
    if len(template) > longest:
        raise ValueError(
            f"{name} template is too long, resulting {kind} name may exceed IAM {longest_name} character limit"
        )


def _formatted(field_name: str, template: str | None, stack: str, component: str, longest: int) -> str | None:
    if template is None:
        return None
    from .exceptions import ValidationError

    name = template.replace("{}", f"{stack}-{component}")
    if len(name) > longest:
        room = longest - (len(template) - len("{}")) - len(f"-{component}")
        raise ValidationError(
            field_name,
            name,
            f"exceeds IAM {longest}-character limit by {len(name) - longest} characters. "
            f"Shorten stack name to max {room} characters with this format.",
        )
    return name


def _check_tags(tags: dict[str, str]) -> None:
    if len(tags) > _MOST_TAGS:
        raise ValueError(
            f"tags exceeds maximum of {_MOST_TAGS} user-defined tags (50 total including 5 managed tags)"
        )
    for key, value in tags.items():
        if key.startswith("aws:"):
            raise ValueError(f"tag key '{key}' uses reserved 'aws:' prefix")
        if not 1 <= len(key) <= 128:
            raise ValueError(f"tag key '{key}' must be 1-128 characters")
        if len(value) > 256:
            raise ValueError(f"tag value for '{key}' exceeds 256 characters")


@dataclass
class Status:
    """The table and the stack behind a limiter."""

    available: bool
    latency_ms: float | None
    stack_status: str | None
    table_status: str | None
    aggregator_enabled: bool
    name: str
    region: str | None
    schema_version: str | None
    lambda_version: str | None
    client_version: str
    table_item_count: int | None
    table_size_bytes: int | None
    app_role_arn: str | None = None
    admin_role_arn: str | None = None
    readonly_role_arn: str | None = None


class AuditAction:
    """Actions that audit events name."""

    ENTITY_CREATED = "entity_created"
    ENTITY_UPDATED = "entity_updated"
    ENTITY_DELETED = "entity_deleted"
    LIMITS_SET = "limits_set"
    LIMITS_DELETED = "limits_deleted"
    TOPPED_UP = "topped_up"
    LIMITS_RESET = "limits_reset"


@dataclass
class AuditEvent:
    """Who changed what, and when."""

    event_id: str
    timestamp: str
    action: str
    entity_id: str
    principal: str | None = None
    resource: str | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, without those that are empty."""
        required = ("event_id", "timestamp", "action", "entity_id")
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: value for name, value in values.items() if name in required or value not in (None, {})}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> AuditEvent:
        """The reverse of :meth:`to_dict`."""
        return cls(
            event_id=data["event_id"],
            timestamp=data["timestamp"],
            action=data["action"],
            entity_id=data["entity_id"],
            principal=data.get("principal"),
            resource=data.get("resource"),
            details=data.get("details", {}),
        )
