"""Values and exceptions as programs of zae-limiter know them."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import pytest

from zae_limiter_rs import (
    DisabledError,
    EntityNotFoundError,
    IncompatibleSchemaError,
    InfrastructureError,
    InvalidNameError,
    Limit,
    LimitStatus,
    OverloadedError,
    PermissionDeniedError,
    RateLimiterUnavailable,
    RateLimitExceeded,
    Repository,
    StackCreationError,
    ValidationError,
    ZAELimiterError,
)
from zae_limiter_rs._errors import make

LIMIT = Limit.per_minute("rpm", 100, burst=150)
STATUS = LimitStatus("user-1", "gpt-4", "rpm", LIMIT, -5, 10, True, 9.25)


def test_a_limit_shows_and_keeps_its_fields() -> None:
    shown = "Limit(name='rpm', capacity=100, burst=150, refill_amount=100, refill_period_seconds=60)"
    assert repr(LIMIT) == shown
    assert Limit.from_dict(LIMIT.to_dict()) == LIMIT
    assert Limit.per_day("rpd", 86_400).refill_rate == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rpm", 0), "capacity must be positive"),
        (("rpm", 10, 5), "burst must be >= capacity"),
    ],
)
def test_a_limit_is_checked(arguments: tuple[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Limit.per_minute(*arguments)


def test_a_refusal_is_a_body_and_a_header() -> None:
    refusal = RateLimitExceeded([STATUS])
    assert str(refusal) == "Rate limit exceeded for user-1/gpt-4: [rpm]. Retry after 9.2s"
    assert refusal.retry_after_header == "10"
    body = refusal.as_dict()
    assert (body["error"], body["retry_after_ms"]) == ("rate_limit_exceeded", 9250)
    assert body["limits"] == [
        {
            "entity_id": "user-1",
            "resource": "gpt-4",
            "limit_name": "rpm",
            "capacity": 100,
            "burst": 150,
            "available": -5,
            "requested": 10,
            "exceeded": True,
            "retry_after_seconds": 9.25,
        }
    ]
    assert STATUS.deficit == 15
    observed = RateLimitExceeded([STATUS, replace(STATUS, exceeded=False, observed=True)]).as_dict()["limits"]
    assert ["observed" in limit for limit in observed] == [False, True]


@pytest.mark.parametrize(
    "error",
    [
        RateLimitExceeded([STATUS]),
        RateLimiterUnavailable("no reply", ValueError("why"), stack_name="app", entity_id="user-1", resource="gpt-4"),
        DisabledError("user-1", "gpt-4", "resource"),
        EntityNotFoundError("user-1"),
        InvalidNameError("resource", "#", "cannot contain '#'"),
        StackCreationError("app", "no permission"),
        PermissionDeniedError("GetItem", "app", "no credentials"),
    ],
)
def test_an_exception_reaches_another_process_as_it_is(error: ZAELimiterError) -> None:
    for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(copied) is type(error)
        assert (str(copied), copied.args, repr(vars(copied))) == (str(error), error.args, repr(vars(error)))


def test_errors_of_the_core_keep_what_they_carry() -> None:
    denied = make("permission", {"operation": "GetItem", "table": "app", "reason": "no credentials"})
    assert isinstance(denied, PermissionDeniedError) and isinstance(denied, InfrastructureError)
    assert (denied.operation, denied.table_name, denied.reason) == ("GetItem", "app", "no credentials")
    overloaded = make("overloaded", {"entity_id": "user-1", "resource": "gpt-4", "what": "waiting calls", "limit": 10})
    assert isinstance(overloaded, OverloadedError)
    assert (overloaded.entity_id, overloaded.resource, overloaded.limit) == ("user-1", "gpt-4", 10)
    assert str(overloaded).startswith("Too many waiting calls (limit 10) for entity 'user-1' on 'gpt-4'")
    creation = make("creation", {"stack_name": "app", "message": "no permission"})
    assert isinstance(creation, StackCreationError)
    assert (creation.stack_name, str(creation)) == ("app", "Stack app creation failed: no permission")


def test_messages() -> None:
    outage = RateLimiterUnavailable("no reply", stack_name="app", entity_id="user-1", resource="gpt-4")
    assert str(outage) == "no reply [stack=app, entity=user-1, resource=gpt-4]"
    assert str(EntityNotFoundError("user-1")) == "Entity not found: user-1"
    assert str(IncompatibleSchemaError("1.0", "2.0", "Migrate.", "https://example.com")) == (
        "Incompatible schema: client 1.0 is not compatible with schema 2.0. Migrate. See: https://example.com"
    )
    long = InvalidNameError("resource", "x" * 60, "too long")
    assert (str(long), long.value) == ("Invalid resource: too long", "x" * 50 + "...")
    assert isinstance(long, ZAELimiterError)


def test_the_name_of_a_stack_is_checked() -> None:
    with pytest.raises(ValidationError, match="Use hyphens instead"):
        Repository("my_app")
