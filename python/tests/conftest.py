"""Stores that the tests run on: inside the process, and moto."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from itertools import count
from typing import Any

import pytest
from endpoint import moto_server
from zae_limiter_rs import RateLimiter, Repository

_NAMES = count(1)
# Seconds. No result of a test depends on how fast the machine is.
PATIENTLY = 600.0


@pytest.fixture(scope="session", autouse=True)
def credentials() -> None:
    """Credentials of nobody."""
    os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """moto."""
    with moto_server() as url:
        yield url


@pytest.fixture
def table(endpoint: str) -> dict[str, Any]:
    """Arguments for a repository on a table of its own."""
    return {"name": f"limiter-{next(_NAMES)}", "region": "us-east-1", "endpoint_url": endpoint}


@pytest.fixture(params=["embedded", "moto"])
async def limiter(request: pytest.FixtureRequest) -> AsyncIterator[RateLimiter]:
    """A limiter on each store."""
    if request.param == "embedded":
        repository = Repository.embedded()
    else:
        repository = Repository(**request.getfixturevalue("table"))
        await repository.create_table()
    async with RateLimiter(repository=repository, time_budget=PATIENTLY) as limiter:
        yield limiter


@pytest.fixture
async def embedded() -> AsyncIterator[RateLimiter]:
    """A limiter inside the process."""
    async with RateLimiter(repository=Repository.embedded(), time_budget=PATIENTLY) as limiter:
        yield limiter


def run_script(source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end."""
    command = [sys.executable, "-P", "-c", source, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENTLY, check=False)
