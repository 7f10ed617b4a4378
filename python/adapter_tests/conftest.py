"""A limited entity, and a model."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from model_server import model_server
from zae_limiter_rs import Limit, RateLimiter, Repository, SyncRateLimiter, SyncRepository
from zae_limiter_rs.adapters import ModelLimits

# Nothing comes back while a test runs.
LIMITS = [Limit.custom(name, capacity, 1, 360_000) for name, capacity in (("rpm", 10), ("tpm", 10_000))]
PATIENTLY = 600.0


@pytest.fixture(scope="session", autouse=True)
def credentials() -> None:
    """Credentials of nobody."""
    os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


@pytest.fixture(scope="session")
def served() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    with model_server() as server:
        yield server


@pytest.fixture
def model_url(served: tuple[str, list[dict[str, Any]]]) -> str:
    return served[0]


@pytest.fixture
def requests(served: tuple[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    served[1].clear()
    return served[1]


@pytest.fixture
async def limits() -> AsyncIterator[ModelLimits]:
    limiter = RateLimiter(repository=Repository.embedded(), default_limits=LIMITS, time_budget=PATIENTLY)
    async with limiter:
        yield ModelLimits(limiter=limiter, entity="user-1")


@pytest.fixture
def sync_limits() -> Iterator[ModelLimits]:
    limiter = SyncRateLimiter(repository=SyncRepository.embedded(), default_limits=LIMITS, time_budget=PATIENTLY)
    with limiter:
        yield ModelLimits(limiter=limiter, entity="user-1")


async def left(limits: ModelLimits, resource: str = "small") -> tuple[int, int]:
    """Requests and tokens that are left."""
    assert isinstance(limits.limiter, RateLimiter)
    await limits.limiter.settled()
    available = await limits.limiter.available("user-1", resource)
    return available["rpm"], available["tpm"]


def left_now(limits: ModelLimits, resource: str = "small") -> tuple[int, int]:
    """The same, without asyncio."""
    assert isinstance(limits.limiter, SyncRateLimiter)
    limits.limiter.settled()
    available = limits.limiter.available("user-1", resource)
    return available["rpm"], available["tpm"]
