"""Stores that the tests run on: inside the process, and moto's server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from itertools import count
from typing import Any

import pytest
from moto.server import ThreadedMotoServer

from zae_limiter_rs import RateLimiter, Repository

_NAMES = count(1)


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """moto's server, with credentials for it."""
    os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


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
        repository = Repository(**request.getfixturevalue("table"), time_budget=10)
        await repository.create_table()
    async with RateLimiter(repository=repository) as limiter:
        yield limiter


@pytest.fixture
async def embedded() -> AsyncIterator[RateLimiter]:
    """A limiter inside the process."""
    async with RateLimiter(repository=Repository.embedded()) as limiter:
        yield limiter


def run_script(source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end."""
    command = [sys.executable, "-P", "-c", source, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
