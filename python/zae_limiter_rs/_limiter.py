"""What limiters with and without asyncio have in common: their settings, and what they make of data."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from . import _core
from ._repository import RepositoryBase
from ._version import __version__
from .models import Limit, OnUnavailable, StackOptions, Status

Store = TypeVar("Store", bound=RepositoryBase)


class LimiterBase(Generic[Store]):
    """A repository, settings, and the limiter of this process."""

    _repository_class: type[Store]

    def __init__(
        self,
        repository: Store | None = None,
        name: str | None = None,
        region: str | None = None,
        endpoint_url: str | None = None,
        stack_options: StackOptions | None = None,
        on_unavailable: OnUnavailable = OnUnavailable.BLOCK,
        auto_update: bool = True,
        strict_version: bool = True,
        skip_version_check: bool = False,
        bucket_ttl_refill_multiplier: int = 7,
        speculative_writes: bool = True,
        *,
        default_limits: Iterable[Limit] | None = None,
        time_budget: float | None = None,
        outage_fraction: int | None = None,
        token_chunks: bool | list[str] | None = None,
    ) -> None:
        given = any(value is not None for value in (name, region, endpoint_url, stack_options))
        if repository is None:
            if given:
                warnings.warn(
                    f"Passing name/region/endpoint_url/stack_options directly to {type(self).__name__} is deprecated. "
                    f"Use {self._repository_class.__name__}(...) instead. This will be removed in v2.0.0.",
                    DeprecationWarning,
                    stacklevel=2,
                )
            repository = self._repository_class(name or "limiter", region, endpoint_url, stack_options)
        elif given:
            raise ValueError(
                "Cannot specify both 'repository' and 'name'/'region'/'endpoint_url'/'stack_options'. "
                f"Use {self._repository_class.__name__}(...) to configure data access."
            )
        settings: dict[str, Any] = {
            "on_unavailable": on_unavailable.value,
            "auto_update": auto_update,
            "strict_version": strict_version and not skip_version_check,
            "bucket_ttl_refill_multiplier": bucket_ttl_refill_multiplier,
            "default_limits": None if default_limits is None else [limit.to_dict() for limit in default_limits],
            "time_budget": time_budget,
            "outage_fraction": outage_fraction,
            "token_chunks": token_chunks,
        }
        self.on_unavailable = on_unavailable
        self._repository = repository
        self._settings = {name: value for name, value in settings.items() if value is not None}
        # By process: a forked child opens its own.
        self._cores: dict[int, _core.RateLimiter] = {}
        repository._serve(self._settings)

    @property
    def name(self) -> str:
        """The name of the stack."""
        return self._repository.stack_name

    @property
    def stack_name(self) -> str:
        """The name of the stack."""
        return self._repository.stack_name

    @property
    def table_name(self) -> str:
        """The name of the table, which is the name of its stack."""
        return self._repository.stack_name

    @property
    def repository(self) -> Store:
        """Everything that is stored."""
        return self._repository

    def _opened(self) -> _core.RateLimiter | None:
        """The limiter of this process, if it is open."""
        return self._cores.get(os.getpid())

    def _keep_open(self, limiter: _core.RateLimiter) -> _core.RateLimiter:
        """Another task or thread may have been faster: one limiter has all calls."""
        return self._cores.setdefault(os.getpid(), limiter)

    def _take_opened(self) -> _core.RateLimiter | None:
        return self._cores.pop(os.getpid(), None)

    def _changed(self, by: _core.Repository) -> None:
        self._repository._changed(by)

    def _counts_usage(self) -> bool:
        return self._repository._counts_usage()

    def _status(
        self, latency_ms: float | None, version: dict[str, Any], stack: dict[str, Any]
    ) -> Status:
        """The table and the stack, as far as it is known. The table is available if it has a latency."""
        outputs: dict[str, str] = stack.get("outputs", {})
        available = latency_ms is not None
        return Status(
            available=available,
            latency_ms=latency_ms,
            stack_status=stack.get("status"),
            table_status="ACTIVE" if available else None,
            aggregator_enabled="AggregatorFunctionName" in outputs,
            name=self.name,
            region=self._repository.region,
            schema_version=version.get("schema_version"),
            lambda_version=version.get("lambda_version"),
            client_version=__version__,
            table_item_count=None,
            table_size_bytes=None,
            app_role_arn=outputs.get("AppRoleArn"),
            admin_role_arn=outputs.get("AdminRoleArn"),
            readonly_role_arn=outputs.get("ReadOnlyRoleArn"),
        )


def warn_stored_limits(use_stored_limits: bool) -> None:
    """Warns of an argument that has no effect, if it is used."""
    if use_stored_limits:
        warnings.warn(
            "use_stored_limits is deprecated and will be removed in v1.0. "
            "Limits are now always resolved from stored config (Entity > Resource > System). "
            "Pass limits parameter as override if needed.",
            DeprecationWarning,
            stacklevel=3,
        )
