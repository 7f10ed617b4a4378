"""The hook of the proxy that test_litellm.py starts, as the configuration of a user has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conftest import LIMITS, PATIENTLY
from zae_limiter_rs import RateLimiter, Repository
from zae_limiter_rs.adapters import ModelLimits
from zae_limiter_rs.adapters.litellm import LiteLLMHook, entity_of_key

limiter = RateLimiter(repository=Repository.embedded(), time_budget=PATIENTLY)
callers = ["nobody"]


def caller(arguments: Mapping[str, Any]) -> str:
    """Each test is a caller of its own."""
    assert entity_of_key(arguments)
    return callers[-1]


async def configure() -> None:
    """Limits for all models but one."""
    for model in ("small", "claude", "embed", "gone"):
        await limiter.set_resource_defaults(model, LIMITS)


class Watched(LiteLLMHook):
    """The hook, with the number of calls that are ending."""

    ending = 0

    async def async_log_success_event(self, *arguments: Any, **named: Any) -> None:
        self.ending += 1
        await super().async_log_success_event(*arguments, **named)
        self.ending -= 1

    async def async_post_call_failure_hook(self, *arguments: Any, **named: Any) -> None:
        self.ending += 1
        await super().async_post_call_failure_hook(*arguments, **named)
        self.ending -= 1


hook = Watched(ModelLimits(limiter=limiter, entity=caller))
