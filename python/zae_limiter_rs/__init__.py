"""A distributed rate limiter on DynamoDB, for calls whose cost is known only when they are over.

The API is that of ``zae-limiter`` 0.9.1 on a core in Rust::

    from zae_limiter_rs import Limit, RateLimiter, Repository

    limiter = RateLimiter(repository=Repository("my-app", region="eu-west-1"))
    await limiter.set_resource_defaults("gpt-4", [Limit.per_minute("rpm", 100), Limit.per_minute("tpm", 10_000)])

    async with limiter.acquire("user-1", "gpt-4", consume={"rpm": 1, "tpm": 500}) as lease:
        response = await call_the_model()
        await lease.adjust(tpm=response.usage.total_tokens - 500)
"""

from ._lease import Also
from ._version import __version__
from .exceptions import (
    DisabledError,
    EntityError,
    EntityExistsError,
    EntityNotFoundError,
    IncompatibleSchemaError,
    InfrastructureError,
    InfrastructureNotFoundError,
    InvalidIdentifierError,
    InvalidNameError,
    OverloadedError,
    PermissionDeniedError,
    PricesNotFoundError,
    RateLimitError,
    RateLimiterUnavailable,
    RateLimitExceeded,
    StackAlreadyExistsError,
    StackCreationError,
    ValidationError,
    VersionError,
    VersionMismatchError,
    ZAELimiterError,
)
from .lease import Lease
from .limiter import RateLimiter
from .models import (
    Admission,
    AuditAction,
    AuditEvent,
    BackendCapabilities,
    BucketState,
    CacheStats,
    Concurrency,
    ConfigSource,
    Entity,
    EntityCapacity,
    Limit,
    LimiterInfo,
    LimiterStats,
    LimitName,
    LimitStatus,
    Mode,
    OnUnavailable,
    Quota,
    Reset,
    ResourceCapacity,
    StackOptions,
    Status,
    TemporaryLimits,
    TopUp,
    UsageSnapshot,
    UsageSummary,
)
from .money import Estimate, Prices, Usage, dollars, micro_dollars
from .repository import Repository
from .sync_lease import SyncLease
from .sync_limiter import SyncRateLimiter
from .sync_repository import SyncRepository

__all__ = [
    "Admission",
    "Also",
    "AuditAction",
    "AuditEvent",
    "BackendCapabilities",
    "BucketState",
    "CacheStats",
    "Concurrency",
    "ConfigSource",
    "DisabledError",
    "Entity",
    "EntityCapacity",
    "EntityError",
    "EntityExistsError",
    "EntityNotFoundError",
    "Estimate",
    "IncompatibleSchemaError",
    "InfrastructureError",
    "InfrastructureNotFoundError",
    "InvalidIdentifierError",
    "InvalidNameError",
    "Lease",
    "Limit",
    "LimitName",
    "LimitStatus",
    "LimiterInfo",
    "LimiterStats",
    "Mode",
    "OnUnavailable",
    "OverloadedError",
    "PermissionDeniedError",
    "Prices",
    "PricesNotFoundError",
    "Quota",
    "RateLimitError",
    "RateLimitExceeded",
    "RateLimiter",
    "RateLimiterUnavailable",
    "Repository",
    "Reset",
    "ResourceCapacity",
    "StackAlreadyExistsError",
    "StackCreationError",
    "StackOptions",
    "Status",
    "SyncLease",
    "SyncRateLimiter",
    "SyncRepository",
    "TemporaryLimits",
    "TopUp",
    "Usage",
    "UsageSnapshot",
    "UsageSummary",
    "ValidationError",
    "VersionError",
    "VersionMismatchError",
    "ZAELimiterError",
    "__version__",
    "dollars",
    "micro_dollars",
]
