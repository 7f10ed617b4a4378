"""The API without asyncio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENTLY
from zae_limiter_rs import Limit, OnUnavailable, RateLimitExceeded, SyncRateLimiter, SyncRepository

SLOW = Limit.custom("rph", 10, 1, 360_000)


@pytest.fixture(params=["embedded", "file", "moto"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> SyncRepository:
    match request.param:
        case "embedded":
            return SyncRepository.embedded()
        case "file":
            return SyncRepository.embedded(tmp_path / "limiter.db")
        case _:
            table: dict[str, Any] = request.getfixturevalue("table")
            repository = SyncRepository(**table, time_budget=PATIENTLY)
            repository.create_table()
            return repository


def test_the_same_calls_without_await(repository: SyncRepository) -> None:
    with SyncRateLimiter(repository=repository) as limiter:
        limiter.set_system_defaults([SLOW], on_unavailable=OnUnavailable.ALLOW)
        with limiter.acquire("user-1", "gpt-4", {"rph": 4}) as lease:
            lease.adjust(rph=1)
            lease.consume(rph=1)
        assert limiter.available("user-1", "gpt-4") == {"rph": 4}
        with pytest.raises(RateLimitExceeded), limiter.acquire("user-1", "gpt-4", {"rph": 5}):
            pytest.fail("it was admitted")
        assert limiter.time_until_available("user-1", "gpt-4", {"rph": 4}) == 0.0
        limiter.create_entity("user-1")
        entity = limiter.get_entity("user-1")
        assert entity is not None and entity.id == "user-1"


def test_a_file_outlives_the_limiter(tmp_path: Path) -> None:
    path = tmp_path / "limiter.db"
    with SyncRateLimiter(repository=SyncRepository.embedded(path)) as limiter:
        limiter.create_entity("user-1")
    with SyncRateLimiter(repository=SyncRepository.embedded(path)) as limiter:
        assert limiter.get_entity("user-1") is not None


def test_the_old_way_to_make_a_limiter_warns() -> None:
    with pytest.warns(DeprecationWarning, match="Use SyncRepository"):
        limiter = SyncRateLimiter(name="my-app", region="us-east-1")
    assert limiter.name == "my-app"
    with pytest.raises(ValueError, match="Cannot specify both 'repository'"):
        SyncRateLimiter(repository=limiter.repository, name="my-app")
