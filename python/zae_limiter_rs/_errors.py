"""Exceptions for the errors of the native part, and the values that come from it."""

from __future__ import annotations

import math
from typing import Any

from . import exceptions as errors
from .models import Limit, LimitStatus

_IDENTIFIERS = {"entity id": "entity_id", "parent": "parent_id", "principal": "principal"}
_NAMES = {"limit name": "limit_name", "resource": "resource"}


def make(kind: str, details: dict[str, Any]) -> Exception:
    """The exception for an error of this kind."""
    message: str = details.get("message", "")
    match kind:
        case "name":
            return _name(details["field"], details["value"], details["rule"])
        case "invalid":
            return errors.ValidationError(details["field"], details["value"], details["rule"])
        case "value":
            return ValueError(message)
        case "refused":
            return errors.RateLimitExceeded([status(entry) for entry in details["statuses"]])
        case "entity_exists":
            return errors.EntityExistsError(details["entity_id"])
        case "entity_not_found":
            return errors.EntityNotFoundError(details["entity_id"])
        case "entity":
            return errors.EntityError(message)
        case "no_limits":
            return _no_limits(details["entity_id"], details["resource"])
        case "disabled":
            return errors.DisabledError(details["entity_id"], details["resource"], details["mode_from"])
        case "no_prices":
            return errors.PricesNotFoundError(details["resource"])
        case "table_missing":
            return errors.InfrastructureNotFoundError(details["table"])
        case "incompatible_schema":
            return errors.IncompatibleSchemaError(details["client"], details["schema"], details["reason"])
        case "creation":
            return errors.StackCreationError(details["stack_name"], message)
        case "permission":
            return errors.PermissionDeniedError(details["operation"], details["table"], details["reason"])
        case "overloaded":
            return errors.OverloadedError(details["entity_id"], details["resource"], details["what"], details["limit"])
        case "unavailable":
            return errors.RateLimiterUnavailable(message)
        case _:
            return errors.InfrastructureError(message)


def status(data: dict[str, Any]) -> LimitStatus:
    """The status of a limit. A call that can never pass waits forever."""
    limit = Limit.from_dict(data["limit"])
    wait = data["retry_after_seconds"]
    return LimitStatus(
        entity_id=data["entity_id"],
        resource=data["resource"],
        limit_name=limit.name,
        limit=limit,
        available=data["available"],
        requested=data["requested"],
        exceeded=data["exceeded"],
        retry_after_seconds=math.inf if wait is None else wait,
        resets_at=data["resets_at"],
        observed=data["observed"],
        window_seconds=data["window_seconds"],
    )


def _name(field: str, value: str, rule: str) -> errors.ValidationError:
    if field in _IDENTIFIERS:
        return errors.InvalidIdentifierError(_IDENTIFIERS[field], value, rule)
    if field in _NAMES:
        return errors.InvalidNameError(_NAMES[field], value, rule)
    return errors.ValidationError("name" if field == "stack name" else field, value, rule)


def _no_limits(entity_id: str, resource: str) -> errors.ValidationError:
    return errors.ValidationError(
        "limits",
        f"entity={entity_id}, resource={resource}",
        f"No limits configured for entity '{entity_id}' and resource '{resource}'. "
        "Configure limits at entity (resource-specific or _default_), resource, "
        "or system level, or provide limits parameter.",
    )
