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


hook = LiteLLMHook(ModelLimits(limiter=limiter, entity=caller))
