"""What the native part makes of arguments that somebody got wrong, or wrong on purpose: a result, or an exception for the argument."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from typing import Any

from zae_limiter_rs import _core
from zae_limiter_rs.exceptions import InfrastructureError, RateLimiterUnavailable, ZAELimiterError

# ZAE_HOSTILE_CALLS=1000000 for a long run.
CALLS = int(os.environ.get("ZAE_HOSTILE_CALLS", "2500"))

LIMITS = [
    {"name": "rpm", "capacity": 10, "burst": 20, "refill_amount": 10, "refill_period_seconds": 60},
    {"name": "spend", "quota": 500, "per": "month in Europe/Berlin", "alert_at": [80, 95]},
    {"name": "session", "quota": 9, "per": "5h from first use"},
    {"name": "parallel", "concurrency": 8, "expires_after_seconds": 60},
]
PRICES = {"input": "$2.50", "output": "$10", "max_output": 4096, "token_limits": ["tpm"], "money_limit": "usd"}
TEXTS = [
    "user-1", "team-1", "gpt-4", "rpm", "spend", "parallel", "_default_", "$SYSTEM", "", "#", "a#b", "ü", "𝟙", "\x00", "\ud800", "\u202e",
    "x" * 300, "x" * 100_000, "observe", "disabled", "hourly", "2026-05-15T12:00:00Z", "9999-12-31T23:59:59Z", "7d", "-1d",
    "$12.50", "1e999 usd", "nan", "-0", "{}", "[]", "null", "[" * 5_000,
]  # fmt: skip
NUMBERS = [0, 1, -1, 7, 500, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64 - 1, 2**64, 10**40, 0.5, -0.5, 1e308, True, None, "1"]


class Hostile:
    """Arguments of each kind: now and then a right one, so that calls get further."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self) -> Any:
        if self.random.random() < 0.7:
            return self.random.choice(TEXTS[:6])
        return self.random.choice([*TEXTS, *NUMBERS])

    def optional(self) -> Any:
        return None if self.random.random() < 0.5 else self.text()

    def number(self) -> Any:
        return self.random.choice(NUMBERS)

    def seconds(self) -> Any:
        return self.random.choice([0.0, -0.0, 0.001, -1.0, float("nan"), 5e-324, None, "1", 0])

    def flag(self) -> Any:
        return self.random.choice([True, False, None, 1])

    def amounts(self) -> Any:
        names = self.random.sample(TEXTS[3:], self.random.randrange(3))
        return {name: self.number() for name in names} | {"rpm": self.random.choice([0, 1, self.number()])}

    def names(self) -> Any:
        return [self.text() for _ in range(self.random.randrange(3))]

    def limits(self) -> Any:
        return self._mutated(LIMITS)

    def prices(self) -> Any:
        return self._mutated(PRICES)

    def usage(self) -> Any:
        return self._mutated({"input": 100, "output": 20, "cached_input": 5, "cache_write": 1})

    def estimate(self) -> Any:
        return self._mutated({"input": 100, "max_output": 50})

    def metadata(self) -> Any:
        return self._mutated({"tier": "gold", "seats": [1, 2.5, None, {"a": True}]})

    def query(self) -> Any:
        return self._mutated({"entity_id": "user-1", "resource": "gpt-4", "window_type": "hourly", "start_time": None, "end_time": None})

    def options(self) -> Any:
        also = {"resource": "budget", "consume": {"spend": 5}, "limits": LIMITS[1:2], "cascade": False}
        options = {"limits": LIMITS, "cascade": True, "on_unavailable": "allow", "also": [also], "estimate": {"input": 1}}
        if self.random.random() < 0.8:
            # Most resources have no prices. There is never a `wait`: some would only take long.
            del options["estimate"]
        return self._mutated(options)

    def settings(self) -> Any:
        return self._mutated({
            "name": "app", "default_limits": LIMITS, "on_unavailable": "allow", "bucket_ttl_refill_multiplier": 7, "time_budget": 0.5,
            "config_cache_ttl": 60, "outage_fraction": 4, "token_chunks": ["gpt-4"], "strict_version": True, "principal": "tester",
        })  # fmt: skip

    def _mutated(self, value: Any) -> str:
        """JSON of the example with some parts replaced, dropped or repeated, and now and then damaged text."""
        if self.random.random() < 0.4:
            return json.dumps(value)
        text = json.dumps(self._changed(value))
        for _ in range(self.random.choice([0, 0, 0, 1, 2])):
            at = self.random.randrange(len(text) + 1)
            text = text[:at] + self.random.choice(["", "0", "-", '"', "}", "1e400", "\\u0000", "ü", ","]) + text[at + self.random.randrange(3) :]
        return text

    def _changed(self, value: Any) -> Any:
        if self.random.random() < 0.06:
            return self.random.choice([text for text in TEXTS if "\ud800" not in text] + NUMBERS)
        if isinstance(value, dict):
            kept = {name: self._changed(part) for name, part in value.items() if self.random.random() > 0.06}
            return kept | ({"unknown": 1} if self.random.random() < 0.03 else {})
        if isinstance(value, list):
            return [self._changed(part) for part in value for _ in range(self.random.choice([0, 1, 1, 1, 1, 1, 1, 2]))]
        return value


def targets(repository: _core.Repository, limiter: _core.RateLimiter) -> list[tuple[Callable[..., Any], str]]:
    """Functions of the native part, and the kinds of their arguments."""
    return [
        (repository.create_entity, "text optional optional flag metadata optional"),
        (repository.set_parent, "text optional optional optional"),
        (repository.get_entity, "text"),
        (repository.delete_entity, "text optional"),
        (repository.children, "text"),
        (repository.get_config, "optional optional"),
        (repository.set_config, "optional optional limits optional optional optional optional"),
        (repository.delete_temporary_limits, "optional optional optional optional"),
        (repository.delete_config, "optional optional optional"),
        (repository.get_prices, "optional"),
        (repository.set_prices, "optional prices optional"),
        (repository.delete_prices, "text optional"),
        (repository.resolve_prices, "text"),
        (repository.set_mode, "optional optional text optional"),
        (repository.get_mode, "optional optional"),
        (repository.delete_mode, "optional optional optional"),
        (repository.refresh_buckets, "optional optional optional"),
        (repository.top_up, "text text text number optional optional optional"),
        (repository.reset, "text text names optional optional optional"),
        (repository.resolve_limits, "text text"),
        (repository.entities_with_custom_limits, "optional number optional"),
        (repository.audit_events, "text number optional"),
        (repository.usage_snapshots, "query number optional"),
        (repository.usage_summary, "query text"),
        (repository.resource_capacity, "text text flag"),
        (repository.buckets, "text optional"),
        (limiter.peek, "text text amounts limits"),
        (limiter.is_available, "seconds"),
        (_core.micro_dollars, "text text"),
        (_core.dollars, "number"),
        (_core.check_prices, "prices"),
        (_core.cost, "prices usage"),
        (_core.amounts, "prices usage"),
        (_core.expected_output, "prices estimate"),
    ]


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    """The result. A panic, and an error that does not tell the caller what is wrong with the call, goes on."""
    try:
        result = call(*arguments)
        return result.wait() if isinstance(result, _core.Call) else result
    except (InfrastructureError, RateLimiterUnavailable):
        raise
    except (ZAELimiterError, ValueError, TypeError, OverflowError) as error:
        assert isinstance(error, TypeError | OverflowError | UnicodeError) or str(error), repr(error)
        return None


def test_whatever_the_arguments_are_the_native_part_returns_or_says_what_is_wrong() -> None:
    hostile = Hostile(2026)
    store = _core.MemoryStore()
    repository = _core.connect(json.dumps({"name": "hostile"}), store).wait()
    limiter = repository.limiter().wait()
    repository.set_config(None, None, json.dumps(LIMITS)).wait()
    functions = targets(repository, limiter)
    leases = 0
    for number in range(CALLS):
        function, kinds = hostile.random.choice(functions)
        arguments = [getattr(hostile, kind)() for kind in kinds.split()]
        outcome(function, *arguments)
        if number % 4 == 0:
            acquire = (hostile.text(), hostile.text(), hostile.amounts(), hostile.options())
            lease = outcome(limiter.acquire, *acquire)
            if lease is not None:
                leases += 1
                outcome(lease.adjust, hostile.text(), hostile.number(), hostile.optional())
                outcome(lease.adjust_to_usage, hostile.usage())
                outcome(lease.consume, hostile.amounts(), hostile.optional())
                outcome(lease.consumed, hostile.optional())
                outcome(hostile.random.choice([lease.commit, lease.rollback]))
        if number % 100 == 0:
            outcome(_core.connect, hostile.settings(), store)
        # Without limits, or on a disabled level, hardly any call would get further.
        if number % 20 == 0:
            repository.set_config(None, None, json.dumps(LIMITS)).wait()
            for level in [(None, None), (None, "gpt-4"), ("user-1", "gpt-4"), ("user-1", None)]:
                repository.delete_mode(*level).wait()
    assert leases > CALLS / 100, leases
