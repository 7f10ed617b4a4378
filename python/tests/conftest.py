"""Stores that the tests run on: inside the process, and moto."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from itertools import count
from typing import Any

import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from zae_limiter_rs import RateLimiter, Repository

_NAMES = count(1)


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """moto's application, with credentials for it.

    moto checks a condition and applies the update in two steps without a lock, so that requests of two threads can both pass
    a condition that only one of them may. DynamoDB does not: one request at a time.
    """
    os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    application, lock = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def one_at_a_time(*request: Any) -> Any:
        with lock:
            return application(*request)

    server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()


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
