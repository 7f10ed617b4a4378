"""What can go wrong."""

from __future__ import annotations

import math
from typing import Any

from .models import LimitStatus


class ZAELimiterError(Exception):
    """The base of every exception of this package."""

    def __reduce__(self) -> tuple[Any, ...]:
        # As it is: processes of a pool pass exceptions on, and the arguments are not those of the constructor.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[ZAELimiterError], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> ZAELimiterError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(attributes)
    return error


class RateLimitError(ZAELimiterError):
    """The base of what concerns a limit."""


class InfrastructureError(ZAELimiterError):
    """The table, the stack or the functions cannot be used as they are."""


class EntityError(ZAELimiterError):
    """An entity cannot be created, found, changed or deleted."""


class VersionError(ZAELimiterError):
    """The table was written for another version."""


class RateLimitExceeded(RateLimitError):
    """A call needs more than there is. Nothing was taken.

    ``statuses`` has every limit of the call, ``violations`` those that were exceeded, ``passed`` the others.
    ``retry_after_seconds`` is ``math.inf`` if the call can never pass, because it needs more than a limit's burst.
    """

    def __init__(self, statuses: list[LimitStatus]) -> None:
        self.statuses = statuses
        self.violations = [status for status in statuses if status.exceeded]
        self.passed = [status for status in statuses if not status.exceeded]
        if not self.violations:
            raise ValueError("RateLimitExceeded requires at least one violation")
        self.primary_violation = max(self.violations, key=lambda status: status.retry_after_seconds)
        self.retry_after_seconds = self.primary_violation.retry_after_seconds
        primary = self.primary_violation
        # A call is charged to parents and other resources too, whose limits may have the same names.
        fields = [name for name in ("entity_id", "resource") if len({getattr(status, name) for status in self.violations}) > 1]
        fields.append("limit_name")
        names = ", ".join(" ".join(getattr(status, name) for name in fields) for status in self.violations)
        super().__init__(
            f"Rate limit exceeded for {primary.entity_id}/{primary.resource}: [{names}]. {self._advice()}"
        )

    @property
    def can_pass(self) -> bool:
        """False if the call needs more than a limit's burst: waiting does not help."""
        return math.isfinite(self.retry_after_seconds)

    def _advice(self) -> str:
        if self.can_pass:
            return f"Retry after {self.retry_after_seconds:.1f}s"
        return "It can never pass: more is requested than the burst"

    def as_dict(self) -> dict[str, Any]:
        """The body of a 429 response. Times are ``None`` where the call can never pass."""
        return {
            "error": "rate_limit_exceeded",
            "message": str(self),
            "retry_after_seconds": _finite(self.retry_after_seconds),
            "retry_after_ms": int(self.retry_after_seconds * 1000) if self.can_pass else None,
            "limits": [
                {
                    "entity_id": status.entity_id,
                    "resource": status.resource,
                    "limit_name": status.limit_name,
                    "capacity": status.limit.capacity,
                    "burst": status.limit.burst,
                    "available": status.available,
                    "requested": status.requested,
                    "exceeded": status.exceeded,
                    "retry_after_seconds": _finite(status.retry_after_seconds),
                }
                | ({"observed": True} if status.observed else {})
                | ({} if status.resets_at is None else {"resets_at": status.resets_at})
                for status in self.statuses
            ],
        }

    @property
    def retry_after_header(self) -> str:
        """The value of an HTTP ``Retry-After`` header: whole seconds. A day for a call that can never pass."""
        return str(int(self.retry_after_seconds) + 1) if self.can_pass else "86400"


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None


class RateLimiterUnavailable(InfrastructureError):
    """The table cannot be reached, and the policy is to block."""

    def __init__(
        self,
        message: str,
        cause: Exception | None = None,
        *,
        stack_name: str | None = None,
        entity_id: str | None = None,
        resource: str | None = None,
    ) -> None:
        self.cause = cause
        self.stack_name = stack_name
        self.table_name = stack_name
        self.entity_id = entity_id
        self.resource = resource
        known = {"stack": stack_name, "entity": entity_id, "resource": resource}
        context = ", ".join(f"{name}={value}" for name, value in known.items() if value)
        super().__init__(f"{message} [{context}]" if context else message)


class PermissionDeniedError(InfrastructureError):
    """The credentials are missing, wrong, or not allowed to do this. It does not count as an outage."""

    def __init__(self, operation: str, table_name: str, reason: str) -> None:
        self.operation = operation
        self.table_name = table_name
        self.reason = reason
        super().__init__(f"{operation} on table {table_name} was denied: {reason}; check the credentials and their policy")


class OverloadedError(InfrastructureError):
    """This process has too many calls in progress. Nothing was sent, and no policy lets the call pass."""

    def __init__(self, entity_id: str, resource: str, what: str, limit: int) -> None:
        self.entity_id = entity_id
        self.resource = resource
        self.limit = limit
        super().__init__(f"Too many {what} (limit {limit}) for entity '{entity_id}' on '{resource}'. Make fewer calls at a time.")


class DisabledError(RateLimitError):
    """The mode of the entity on the resource is disabled. Nothing was taken, and waiting does not help.

    ``mode_from`` is the level that says so.
    """

    def __init__(self, entity_id: str, resource: str, mode_from: str) -> None:
        self.entity_id = entity_id
        self.resource = resource
        self.mode_from = mode_from
        super().__init__(f"Entity '{entity_id}' may not use '{resource}': the mode of the level '{mode_from}' is disabled.")


class PricesNotFoundError(RateLimitError):
    """Neither the resource nor the system has prices."""

    def __init__(self, resource: str) -> None:
        self.resource = resource
        super().__init__(f"No prices for resource '{resource}', and none for the system. Set some, or count without money.")


class EntityNotFoundError(EntityError):
    """There is no such entity."""

    def __init__(self, entity_id: str) -> None:
        self.entity_id = entity_id
        super().__init__(f"Entity not found: {entity_id}")


class EntityExistsError(EntityError):
    """The entity that was to be created is already there."""

    def __init__(self, entity_id: str) -> None:
        self.entity_id = entity_id
        super().__init__(f"Entity already exists: {entity_id}")


class StackCreationError(InfrastructureError):
    """The stack could not be created or changed."""

    def __init__(self, stack_name: str, reason: str, events: list[dict[str, Any]] | None = None) -> None:
        self.stack_name = stack_name
        self.reason = reason
        self.events = events or []
        super().__init__(f"Stack {stack_name} creation failed: {reason}")


class StackAlreadyExistsError(StackCreationError):
    """The stack is already there."""


class InfrastructureNotFoundError(InfrastructureError):
    """The table does not exist."""

    def __init__(self, stack_name: str) -> None:
        self.stack_name = stack_name
        self.table_name = stack_name
        super().__init__(
            f"Infrastructure not found for stack '{stack_name}'. "
            "Run 'zae-limiter deploy' or use stack_options=StackOptions()."
        )


class VersionMismatchError(VersionError):
    """Client and infrastructure have versions that do not fit."""

    def __init__(
        self,
        client_version: str,
        schema_version: str,
        lambda_version: str | None,
        message: str,
        can_auto_update: bool = False,
    ) -> None:
        self.client_version = client_version
        self.schema_version = schema_version
        self.lambda_version = lambda_version
        self.can_auto_update = can_auto_update
        super().__init__(
            f"Version mismatch: client={client_version}, schema={schema_version}, "
            f"lambda={lambda_version or 'unknown'}. {message}"
        )


class IncompatibleSchemaError(VersionError):
    """The table's format needs a migration, or a newer client."""

    def __init__(
        self,
        client_version: str,
        schema_version: str,
        message: str,
        migration_guide_url: str | None = None,
    ) -> None:
        self.client_version = client_version
        self.schema_version = schema_version
        self.migration_guide_url = migration_guide_url
        text = (
            f"Incompatible schema: client {client_version} is not compatible with schema {schema_version}. {message}"
        )
        super().__init__(f"{text} See: {migration_guide_url}" if migration_guide_url else text)


class ValidationError(ZAELimiterError):
    """An argument breaks a rule. Nothing was sent."""

    def __init__(self, field: str, value: str, reason: str) -> None:
        self.field = field
        self.value = value[:50] + "..." if len(value) > 50 else value
        self.reason = reason
        super().__init__(f"Invalid {field}: {reason}")


class InvalidIdentifierError(ValidationError):
    """An entity id, a parent's id or a principal breaks a rule."""


class InvalidNameError(ValidationError):
    """The name of a limit or a resource breaks a rule."""
