"""What repositories with and without asyncio have in common: their settings, and the connections that they have."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Any, Self

from . import _core
from ._names import validate_stack_name
from .models import BackendCapabilities, CacheStats, StackOptions


class RepositoryBase:
    """A place, settings, and connections by process and settings."""

    def __init__(
        self,
        name: str,
        region: str | None = None,
        endpoint_url: str | None = None,
        stack_options: StackOptions | None = None,
        config_cache_ttl: float = 60,
        *,
        profile: str | None = None,
        principal: str | None = None,
        time_budget: float | None = None,
        admin_time_budget: float | None = None,
    ) -> None:
        settings: dict[str, Any] = {
            "name": validate_stack_name(name),
            "region": region,
            "endpoint_url": endpoint_url,
            "profile": profile,
            "principal": principal,
            "config_cache_ttl": config_cache_ttl,
            "time_budget": time_budget,
            "admin_time_budget": admin_time_budget,
            "stack_options": None if stack_options is None else asdict(stack_options),
        }
        self._setup(settings, None, stack_options)

    def _setup(
        self, settings: dict[str, Any], memory: _core.MemoryStore | None, stack_options: StackOptions | None
    ) -> None:
        self._settings = {name: value for name, value in settings.items() if value is not None}
        self._memory = memory
        self._stack_options = stack_options
        self._limiter_settings: dict[str, Any] = {}
        self._connected: dict[tuple[int, str], _core.Repository] = {}

    @classmethod
    def embedded(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        name: str = "limiter",
        config_cache_ttl: float = 60,
        count_usage: bool = False,
    ) -> Self:
        """A table inside this process, or in a file that processes of one machine share: no AWS account, no server.

        With ``count_usage`` this process counts usage, as the aggregator of a stack does. The table then records its changes until they are
        counted.
        """
        repository = cls.__new__(cls)
        settings = {
            "name": validate_stack_name(name),
            "config_cache_ttl": config_cache_ttl,
            "count_usage": count_usage or None,
            "file": None if path is None else os.fspath(path),
        }
        repository._setup(settings, _core.MemoryStore() if path is None else None, None)
        return repository

    @property
    def stack_name(self) -> str:
        """The name of the stack."""
        name: str = self._settings["name"]
        return name

    @property
    def table_name(self) -> str:
        """The name of the table, which is the name of its stack."""
        return self.stack_name

    @property
    def region(self) -> str | None:
        """The region; ``None`` for the default one."""
        return self._settings.get("region")

    @property
    def endpoint_url(self) -> str | None:
        """The endpoint; ``None`` for AWS."""
        return self._settings.get("endpoint_url")

    @property
    def is_embedded(self) -> bool:
        """Whether the table is in this process or a file."""
        return self._memory is not None or "file" in self._settings

    @property
    def capabilities(self) -> BackendCapabilities:
        """What this store can do."""
        return BackendCapabilities(
            supports_audit_logging=True,
            supports_usage_snapshots=self._counts_usage(),
            supports_infrastructure_management=not self.is_embedded,
            supports_change_streams=not self.is_embedded,
            supports_batch_operations=True,
        )

    def get_cache_stats(self) -> CacheStats:
        """Counters of the configuration cache in this process."""
        stats = CacheStats(ttl_seconds=int(self._settings["config_cache_ttl"]))
        for (process, _), connected in list(self._connected.items()):
            if process == os.getpid():
                hits, misses, size = connected.cache_stats()
                stats = CacheStats(stats.hits + hits, stats.misses + misses, stats.size + size, stats.ttl_seconds)
        return stats

    def _serve(self, settings: dict[str, Any]) -> None:
        """A limiter will use this repository. Its settings become the repository's, unless another limiter was first."""
        if not self._limiter_settings:
            self._limiter_settings = settings

    def _connection_key(self, limiter_settings: dict[str, Any] | None) -> tuple[int, str]:
        """The connection of this process with these settings: a forked child connects again."""
        settings = self._settings | (self._limiter_settings if limiter_settings is None else limiter_settings)
        return os.getpid(), json.dumps(settings, sort_keys=True)

    def _changed(self, by: _core.Repository) -> None:
        """Configuration was changed through one connection: the caches of the others are stale."""
        for (process, _), connected in list(self._connected.items()):
            if process == os.getpid() and connected is not by:
                connected.invalidate_config_cache()

    def _counts_usage(self) -> bool:
        """Whether calls of this process are counted."""
        return not self.is_embedded or "count_usage" in self._settings

    def _place(self) -> str:
        """Where the stack is."""
        return json.dumps({name: self._settings.get(name) for name in ("name", "region", "endpoint_url", "profile")})
