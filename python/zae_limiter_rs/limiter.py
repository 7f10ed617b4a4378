"""The limiter."""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from . import _core
from ._calls import run
from ._convert import dump_limits, timestamp
from ._names import DEFAULT_RESOURCE, validate_identifier, validate_resource
from ._version import __version__
from .exceptions import ZAELimiterError
from .lease import Acquire
from .models import (
    AuditEvent,
    Entity,
    Limit,
    LimiterInfo,
    OnUnavailable,
    ResourceCapacity,
    StackOptions,
    Status,
    UsageSnapshot,
    UsageSummary,
)
from .money import Estimate, Prices
from .repository import Repository

# How many seconds a status waits for the table.
STATUS_TIMEOUT = 5.0


class RateLimiter:
    """A distributed rate limiter.

    ``on_unavailable`` decides about calls while the table cannot be reached, unless the system's configuration or the
    call says something else. ``speculative_writes`` is accepted and has no effect: every acquire is one write.

    Settings beyond those of zae-limiter: ``default_limits`` apply where none are stored, ``time_budget`` bounds an acquire (in
    seconds), ``outage_fraction=n`` lets each of n processes use its part of the limits during an outage, and
    ``token_chunks`` takes tokens in chunks, on these resources or everywhere.
    """

    def __init__(
        self,
        repository: Repository | None = None,
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
        if repository is None:
            if any(value is not None for value in (name, region, endpoint_url, stack_options)):
                warnings.warn(
                    "Passing name/region/endpoint_url/stack_options directly to RateLimiter is deprecated. "
                    "Use Repository(...) instead. This will be removed in v2.0.0.",
                    DeprecationWarning,
                    stacklevel=2,
                )
            repository = Repository(name or "limiter", region, endpoint_url, stack_options)
        elif any(value is not None for value in (name, region, endpoint_url, stack_options)):
            raise ValueError(
                "Cannot specify both 'repository' and 'name'/'region'/'endpoint_url'/'stack_options'. "
                "Use Repository(...) to configure data access."
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
        self._core: tuple[int, _core.Repository, _core.RateLimiter] | None = None
        repository._serve(self._settings)

    async def _open(self) -> _core.RateLimiter:
        """The limiter of this process."""
        if self._core is None or self._core[0] != os.getpid():
            repository = await self._repository._open(self._settings)
            limiter: _core.RateLimiter = await run(repository.limiter())
            if self._repository._stack_options is not None:
                await run(limiter.ensure_infrastructure())
            # Another task may have been faster: one limiter has all calls.
            if self._core is None or self._core[0] != os.getpid():
                self._core = (os.getpid(), repository, limiter)
        return self._core[2]

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
    def repository(self) -> Repository:
        """Everything that is stored."""
        return self._repository

    async def close(self) -> None:
        """Waits for adjustments and refunds, then shuts the limiter down. It opens again when it is used."""
        core, self._core = self._core, None
        if core is not None and core[0] == os.getpid():
            await run(core[2].shutdown())
        await self._repository.close()

    async def __aenter__(self) -> RateLimiter:
        await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Limiting.

    def acquire(
        self,
        entity_id: str,
        resource: str,
        consume: dict[str, int],
        limits: list[Limit] | None = None,
        use_stored_limits: bool = False,
        on_unavailable: OnUnavailable | None = None,
        *,
        wait: float | None = None,
        estimate: Estimate | None = None,
    ) -> Acquire:
        """Takes tokens for the body of the ``with`` block, or raises ``RateLimitExceeded``.

        ``wait`` waits up to this time, in seconds, instead of raising at once. ``estimate`` takes what the call is expected to use, in
        tokens and money, by the prices of the resource.
        """
        _warn_stored_limits(use_stored_limits)
        validate_identifier(entity_id, "entity_id")
        validate_resource(resource)
        policy = None if on_unavailable is None else on_unavailable.value
        given = None if limits is None else dump_limits(limits)
        return Acquire(self, entity_id, resource, consume, given, policy, wait, estimate)

    async def available(
        self,
        entity_id: str,
        resource: str,
        limits: list[Limit] | None = None,
        use_stored_limits: bool = False,
    ) -> dict[str, int]:
        """What is left of every limit of the entity, without taking anything."""
        _warn_stored_limits(use_stored_limits)
        given = None if limits is None else dump_limits(limits)
        peeked = await run((await self._open()).peek(entity_id, resource, {}, given))
        available: dict[str, int] = peeked["available"]
        return available

    async def time_until_available(
        self,
        entity_id: str,
        resource: str,
        needed: dict[str, int],
        limits: list[Limit] | None = None,
        use_stored_limits: bool = False,
    ) -> float:
        """Seconds until ``needed`` fits, parents included: ``math.inf`` if it never does."""
        _warn_stored_limits(use_stored_limits)
        given = None if limits is None else dump_limits(limits)
        peeked = await run((await self._open()).peek(entity_id, resource, needed, given))
        seconds: float | None = peeked["retry_after_seconds"]
        return math.inf if seconds is None else seconds

    async def is_available(self, timeout: float = 1.0) -> bool:
        """Whether the table responds in time. Never raises."""
        try:
            return bool(await run((await self._open()).is_available(timeout)))
        except ZAELimiterError:
            return False

    async def settled(self) -> None:
        """Waits until every adjustment and refund in flight is written."""
        await run((await self._open()).settled())

    async def stats(self) -> dict[str, int]:
        """Counters of this limiter: calls granted, refused, unavailable, changes that were not written, buckets."""
        return (await self._open()).stats()

    # Everything that is stored: as in the repository.

    async def create_entity(
        self,
        entity_id: str,
        name: str | None = None,
        parent_id: str | None = None,
        cascade: bool = False,
        metadata: dict[str, Any] | None = None,
        principal: str | None = None,
    ) -> Entity:
        """Creates an entity. Its parent must exist."""
        return await self._repository.create_entity(entity_id, name, parent_id, cascade, metadata, principal)

    async def get_entity(self, entity_id: str) -> Entity | None:
        """The entity; ``None`` if it does not exist."""
        return await self._repository.get_entity(entity_id)

    async def delete_entity(self, entity_id: str, principal: str | None = None) -> None:
        """Deletes an entity with its limits and buckets, if it exists."""
        await self._repository.delete_entity(entity_id, principal)

    async def get_children(self, parent_id: str) -> list[Entity]:
        """The children of an entity, in order of their ids."""
        return await self._repository.get_children(parent_id)

    async def get_audit_events(
        self, entity_id: str, limit: int = 100, start_event_id: str | None = None
    ) -> list[AuditEvent]:
        """Events of an entity, newest first, from the one before ``start_event_id`` on."""
        return await self._repository.get_audit_events(entity_id, limit, start_event_id)

    async def get_usage_snapshots(
        self,
        entity_id: str | None = None,
        resource: str | None = None,
        window_type: str | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        limit: int = 100,
        next_key: dict[str, Any] | None = None,
    ) -> tuple[list[UsageSnapshot], dict[str, Any] | None]:
        """A page of usage of an entity or a resource, and the start of the next page."""
        return await self._repository.get_usage_snapshots(
            entity_id, resource, window_type, timestamp(start_time), timestamp(end_time), limit, next_key
        )

    async def get_usage_summary(
        self,
        entity_id: str | None = None,
        resource: str | None = None,
        window_type: str | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
    ) -> UsageSummary:
        """Sums of usage over windows of one length, hours unless another is named."""
        return await self._repository.get_usage_summary(
            entity_id, resource, window_type, timestamp(start_time), timestamp(end_time)
        )

    async def set_limits(
        self,
        entity_id: str,
        limits: list[Limit],
        resource: str = DEFAULT_RESOURCE,
        principal: str | None = None,
    ) -> None:
        """Stores limits of an entity on a resource, or on every resource."""
        await self._repository.set_limits(entity_id, limits, resource, principal)

    async def get_limits(self, entity_id: str, resource: str = DEFAULT_RESOURCE) -> list[Limit]:
        """The limits stored for an entity on a resource."""
        return await self._repository.get_limits(entity_id, resource)

    async def delete_limits(
        self, entity_id: str, resource: str = DEFAULT_RESOURCE, principal: str | None = None
    ) -> None:
        """Deletes the limits stored for an entity on a resource."""
        await self._repository.delete_limits(entity_id, resource, principal)

    async def list_entities_with_custom_limits(
        self, resource: str, limit: int | None = None, cursor: str | None = None
    ) -> tuple[list[str], str | None]:
        """Entities with limits of their own on a resource, and the start of the next page."""
        return await self._repository.list_entities_with_custom_limits(resource, limit, cursor)

    async def list_resources_with_entity_configs(self) -> list[str]:
        """Resources on which entities have limits of their own."""
        return await self._repository.list_resources_with_entity_configs()

    async def set_resource_defaults(
        self, resource: str, limits: list[Limit], principal: str | None = None
    ) -> None:
        """Stores the limits of everybody on a resource."""
        await self._repository.set_resource_defaults(resource, limits, principal)

    async def get_resource_defaults(self, resource: str) -> list[Limit]:
        """The limits stored for a resource."""
        return await self._repository.get_resource_defaults(resource)

    async def delete_resource_defaults(self, resource: str, principal: str | None = None) -> None:
        """Deletes the limits stored for a resource."""
        await self._repository.delete_resource_defaults(resource, principal)

    async def list_resources_with_defaults(self) -> list[str]:
        """Resources that have limits."""
        return await self._repository.list_resources_with_defaults()

    async def set_system_defaults(
        self,
        limits: list[Limit],
        on_unavailable: OnUnavailable | None = None,
        principal: str | None = None,
    ) -> None:
        """Stores the limits of everybody on everything, and the policy for outages."""
        await self._repository.set_system_defaults(limits, on_unavailable, principal)

    async def get_system_defaults(self) -> tuple[list[Limit], OnUnavailable | None]:
        """The limits and the policy stored for the system."""
        limits, policy = await self._repository.get_system_defaults()
        return limits, None if policy is None else OnUnavailable(policy)

    async def delete_system_defaults(self, principal: str | None = None) -> None:
        """Deletes the limits and the policy stored for the system."""
        await self._repository.delete_system_defaults(principal)

    async def set_prices(self, resource: str | None, prices: Prices, principal: str | None = None) -> None:
        """Stores the prices of a resource, or with ``None`` those of resources without their own. Limits stay as they are."""
        await self._repository.set_prices(resource, prices, principal)

    async def get_prices(self, resource: str | None) -> Prices | None:
        """The prices stored for a resource, or with ``None`` for the system; ``None`` if there are none."""
        return await self._repository.get_prices(resource)

    async def delete_prices(self, resource: str, principal: str | None = None) -> bool:
        """Deletes the prices of a resource. False if it had none."""
        return await self._repository.delete_prices(resource, principal)

    async def resolve_prices(self, resource: str) -> Prices | None:
        """The prices that apply to a resource: its own, else those of the system."""
        return await self._repository.resolve_prices(resource)

    async def get_resource_capacity(
        self, resource: str, limit_name: str, parents_only: bool = False
    ) -> ResourceCapacity:
        """How much of a limit of a resource is in use, over all entities."""
        return await self._repository.get_resource_capacity(resource, limit_name, parents_only)

    # The stack.

    def _place(self) -> str:
        return json.dumps({name: self._repository._settings.get(name) for name in ("name", "region", "endpoint_url", "profile")})

    async def ensure_infrastructure(self) -> None:
        """Brings the stack to what the repository's ``stack_options`` declare. Without them it does nothing."""
        await self._repository.ensure_infrastructure()

    async def create_stack(self, stack_options: StackOptions | None = None) -> dict[str, Any]:
        """Creates the stack, or updates it, and waits until that is done."""
        options = stack_options or self._repository._stack_options or StackOptions()
        outcome: dict[str, Any] = await run(_core.ensure_stack(self._place(), json.dumps(asdict(options))))
        return outcome

    async def delete_stack(self) -> None:
        """Deletes the stack. The table and the archive stay, with their data."""
        await run(_core.delete_stack(self._place()))

    @classmethod
    async def list_deployed(cls, region: str | None = None, endpoint_url: str | None = None) -> list[LimiterInfo]:
        """The stacks in a region."""
        place = json.dumps({"name": "", "region": region, "endpoint_url": endpoint_url})
        return [LimiterInfo(**stack) for stack in await run(_core.list_stacks(place))]

    async def get_status(self) -> Status:
        """The table and the stack. Never raises: what cannot be found out is ``None``."""
        started = time.monotonic()
        available = await self.is_available(STATUS_TIMEOUT)
        latency = (time.monotonic() - started) * 1000 if available else None
        version: dict[str, Any] = {}
        stack: dict[str, Any] = {}
        try:
            version = await self._repository.get_version_record() or {}
        except ZAELimiterError:
            pass
        if not self._repository.is_embedded:
            try:
                stack = await run(_core.stack_status(self._place())) or {}
            except ZAELimiterError:
                pass
        outputs: dict[str, str] = stack.get("outputs", {})
        return Status(
            available=available,
            latency_ms=latency,
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


def _warn_stored_limits(use_stored_limits: bool) -> None:
    if use_stored_limits:
        warnings.warn(
            "use_stored_limits is deprecated and will be removed in v1.0. "
            "Limits are now always resolved from stored config (Entity > Resource > System). "
            "Pass limits parameter as override if needed.",
            DeprecationWarning,
            stacklevel=3,
        )
