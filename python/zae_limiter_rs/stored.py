"""Entities, limits, prices, audit events and usage."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from . import _core
from ._calls import run
from ._convert import (
    capacity,
    config_source,
    dump_limits,
    limits_of,
    temporary_limits,
    timestamp,
    usage_page,
    usage_query,
    usage_summary,
    warn_uncounted_usage,
)
from ._names import DEFAULT_RESOURCE, validate_identifier, validate_resource
from .exceptions import EntityNotFoundError
from .models import (
    AuditEvent,
    ConfigSource,
    Entity,
    Limit,
    Mode,
    OnUnavailable,
    OnUnavailableAction,
    Reset,
    ResourceCapacity,
    TemporaryLimits,
    TopUp,
    UsageSnapshot,
    UsageSummary,
)
from .money import Prices


class Stored(ABC):
    """Everything that is stored, as repositories and limiters offer it."""

    @abstractmethod
    async def _connect(self) -> _core.Repository:
        """The connection of this process."""

    @abstractmethod
    def _changed(self, by: _core.Repository) -> None:
        """Configuration was changed through one connection: the caches of the others are stale."""

    @abstractmethod
    def _counts_usage(self) -> bool:
        """Whether calls of this process are counted."""

    # Entities.

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
        validate_identifier(entity_id, "entity_id")
        if parent_id is not None:
            validate_identifier(parent_id, "parent_id")
        connected = await self._connect()
        call = connected.create_entity(
            entity_id, name, parent_id, cascade, json.dumps(metadata or {}), principal
        )
        entity = Entity(**await run(call))
        self._changed(connected)
        return entity

    async def get_entity(self, entity_id: str) -> Entity | None:
        """The entity; ``None`` if it does not exist."""
        entity = await run((await self._connect()).get_entity(entity_id))
        return None if entity is None else Entity(**entity)

    async def delete_entity(self, entity_id: str, principal: str | None = None) -> None:
        """Deletes an entity with its limits and buckets, if it exists."""
        connected = await self._connect()
        try:
            await run(connected.delete_entity(entity_id, principal))
        except EntityNotFoundError:
            return
        self._changed(connected)

    async def get_children(self, parent_id: str) -> list[Entity]:
        """The children of an entity, in order of their ids."""
        return [Entity(**child) for child in await run((await self._connect()).children(parent_id))]

    async def set_parent(
        self, entity_id: str, parent_id: str | None, *, reason: str | None = None, principal: str | None = None
    ) -> Entity:
        """Gives an entity another parent, or none. Leases that are held adjust and refund where they took."""
        connected = await self._connect()
        entity = Entity(**await run(connected.set_parent(entity_id, parent_id, reason, principal)))
        self._changed(connected)
        return entity

    # Limits of an entity.

    async def set_limits(
        self,
        entity_id: str,
        limits: list[Limit],
        resource: str = DEFAULT_RESOURCE,
        principal: str | None = None,
        *,
        until: datetime | str | None = None,
        reason: str | None = None,
    ) -> None:
        """Stores limits of an entity on a resource, or on every resource.

        With ``until``, they end at that time; then those apply again that were stored before. ``reason`` is for the audit event.
        """
        await self._set_config(entity_id, resource, limits, None, principal, until, reason)

    async def get_limits(self, entity_id: str, resource: str = DEFAULT_RESOURCE) -> list[Limit]:
        """The limits stored for an entity on a resource."""
        return limits_of(await run((await self._connect()).get_config(entity_id, resource)))

    async def delete_limits(
        self, entity_id: str, resource: str = DEFAULT_RESOURCE, principal: str | None = None
    ) -> None:
        """Deletes the limits stored for an entity on a resource."""
        await self._delete_config(entity_id, resource, principal)

    async def list_entities_with_custom_limits(
        self, resource: str, limit: int | None = None, cursor: str | None = None
    ) -> tuple[list[str], str | None]:
        """Entities with limits of their own on a resource, and the start of the next page."""
        on = None if resource == DEFAULT_RESOURCE else resource
        entities, following = await run((await self._connect()).entities_with_custom_limits(on, limit, cursor))
        return entities, following

    async def list_resources_with_entity_configs(self) -> list[str]:
        """Resources on which entities have limits of their own."""
        names: list[str] = await run((await self._connect()).resources_with_entity_configs())
        return names

    # Defaults.

    async def set_resource_defaults(
        self,
        resource: str,
        limits: list[Limit],
        principal: str | None = None,
        *,
        until: datetime | str | None = None,
        reason: str | None = None,
    ) -> None:
        """Stores the limits of everybody on a resource; with ``until`` as in ``set_limits``."""
        validate_resource(resource)
        await self._set_config(None, resource, limits, None, principal, until, reason)

    async def get_resource_defaults(self, resource: str) -> list[Limit]:
        """The limits stored for a resource."""
        validate_resource(resource)
        return limits_of(await run((await self._connect()).get_config(None, resource)))

    async def delete_resource_defaults(self, resource: str, principal: str | None = None) -> None:
        """Deletes the limits stored for a resource."""
        validate_resource(resource)
        await self._delete_config(None, resource, principal)

    async def list_resources_with_defaults(self) -> list[str]:
        """Resources that have limits."""
        names: list[str] = await run((await self._connect()).resources_with_defaults())
        return names

    async def set_system_defaults(
        self,
        limits: list[Limit],
        on_unavailable: OnUnavailableAction | OnUnavailable | None = None,
        principal: str | None = None,
        *,
        until: datetime | str | None = None,
        reason: str | None = None,
    ) -> None:
        """Stores the limits of everybody on everything, and the policy for outages; with ``until`` as in ``set_limits``, which leaves the
        policy as it is unless one is given."""
        policy = on_unavailable.value if isinstance(on_unavailable, OnUnavailable) else on_unavailable
        await self._set_config(None, None, limits, policy, principal, until, reason)

    async def delete_system_defaults(self, principal: str | None = None) -> None:
        """Deletes the limits and the policy stored for the system."""
        await self._delete_config(None, None, principal)

    async def _system_defaults(self) -> tuple[list[Limit], OnUnavailableAction | None]:
        """The limits and the policy stored for the system."""
        config = await run((await self._connect()).get_config(None, None))
        return limits_of(config), config["on_unavailable"]

    # Modes.

    async def set_mode(
        self, mode: Mode, *, entity_id: str | None = None, resource: str | None = None, principal: str | None = None
    ) -> None:
        """Says whether limits are enforced: of an entity on a resource, of an entity, of a resource, or without either of the system.
        The most specific level that has a mode decides. Other processes follow within ``config_cache_ttl``."""
        connected = await self._connect()
        await run(connected.set_mode(entity_id, resource, mode.value, principal))
        self._changed(connected)

    async def get_mode(self, *, entity_id: str | None = None, resource: str | None = None) -> Mode | None:
        """The mode stored at a level; ``None`` if there is none."""
        mode = await run((await self._connect()).get_mode(entity_id, resource))
        return None if mode is None else Mode(mode)

    async def delete_mode(
        self, *, entity_id: str | None = None, resource: str | None = None, principal: str | None = None
    ) -> bool:
        """Deletes the mode of a level: the next level decides. False if it had none."""
        connected = await self._connect()
        existed = bool(await run(connected.delete_mode(entity_id, resource, principal)))
        self._changed(connected)
        return existed

    async def resolve_mode(self, entity_id: str, resource: str) -> tuple[Mode, ConfigSource | None]:
        """The mode that applies to an entity on a resource, and the level that it comes from; ``None`` if no level has one."""
        resolved = await run((await self._connect()).resolve_limits(entity_id, resource))
        return Mode(resolved["mode"]), config_source(resolved["mode_from"])

    async def refresh_buckets(self, *, entity_id: str | None = None, resource: str | None = None) -> int:
        """Makes a change of a level hold with the next write to each of its buckets, and returns their number. Each costs a write, and
        those of the system a scan of the table."""
        connected = await self._connect()
        total, cursor = 0, None
        while True:
            page: tuple[int, str | None] = await run(connected.refresh_buckets(entity_id, resource, cursor))
            total, cursor = total + page[0], page[1]
            if cursor is None:
                return total

    # Limits that end.

    async def get_temporary_limits(
        self, *, entity_id: str | None = None, resource: str | None = None
    ) -> TemporaryLimits | None:
        """The limits of a level that end at a time, also if it has passed; ``None`` if there are none."""
        config = await run((await self._connect()).get_config(entity_id, resource))
        return temporary_limits(config)

    async def delete_temporary_limits(
        self, *, entity_id: str | None = None, resource: str | None = None, reason: str | None = None, principal: str | None = None
    ) -> None:
        """Ends them now."""
        connected = await self._connect()
        await run(connected.delete_temporary_limits(entity_id, resource, principal, reason))
        self._changed(connected)

    # What is left.

    async def top_up(
        self,
        entity_id: str,
        resource: str,
        limit_name: str,
        amount: int,
        *,
        reason: str | None = None,
        idempotency_key: str | None = None,
        principal: str | None = None,
    ) -> TopUp:
        """Adds to what is left of one limit now: of a quota for its period, of a rate up to its burst.

        With the same ``idempotency_key`` it is done once, however often it is called. ``reason`` is for the audit event.
        """
        connected = await self._connect()
        return TopUp(**await run(connected.top_up(entity_id, resource, limit_name, amount, reason, idempotency_key, principal)))

    async def reset(
        self,
        entity_id: str,
        resource: str,
        limit_names: Iterable[str] = (),
        *,
        reason: str | None = None,
        idempotency_key: str | None = None,
        principal: str | None = None,
    ) -> Reset:
        """Makes limits as if nothing were used: these, or all. Leases that hold permits of a limit on calls in flight are lost.

        With the same ``idempotency_key`` it is done once, however often it is called. ``reason`` is for the audit event.
        """
        connected = await self._connect()
        return Reset(**await run(connected.reset(entity_id, resource, list(limit_names), reason, idempotency_key, principal)))

    # Prices.

    async def set_prices(self, resource: str | None, prices: Prices, principal: str | None = None) -> None:
        """Stores the prices of a resource, or with ``None`` those of resources without their own. Limits stay as they are."""
        if resource is not None:
            validate_resource(resource)
        connected = await self._connect()
        await run(connected.set_prices(resource, prices._dump(), principal))
        self._changed(connected)

    async def get_prices(self, resource: str | None) -> Prices | None:
        """The prices stored for a resource, or with ``None`` for the system; ``None`` if there are none."""
        stored = await run((await self._connect()).get_prices(resource))
        return None if stored is None else Prices.from_dict(stored)

    async def delete_prices(self, resource: str, principal: str | None = None) -> bool:
        """Deletes the prices of a resource. False if it had none."""
        connected = await self._connect()
        existed = bool(await run(connected.delete_prices(resource, principal)))
        self._changed(connected)
        return existed

    async def resolve_prices(self, resource: str) -> Prices | None:
        """The prices that apply to a resource: its own, else those of the system."""
        stored = await run((await self._connect()).resolve_prices(resource))
        return None if stored is None else Prices.from_dict(stored)

    # Audit events and usage.

    async def get_audit_events(
        self, entity_id: str, limit: int = 100, start_event_id: str | None = None
    ) -> list[AuditEvent]:
        """Events of an entity, newest first, from the one before ``start_event_id`` on.

        The events of a resource's defaults are those of ``$RESOURCE:name``, the system's those of ``$SYSTEM``.
        """
        events = await run((await self._connect()).audit_events(entity_id, limit, start_event_id))
        return [AuditEvent(**event) for event in events]

    async def get_usage_snapshots(
        self,
        entity_id: str | None = None,
        resource: str | None = None,
        window_type: str | None = None,
        start_time: datetime | str | None = None,
        end_time: datetime | str | None = None,
        limit: int = 100,
        next_key: dict[str, Any] | None = None,
    ) -> tuple[list[UsageSnapshot], dict[str, Any] | None]:
        """A page of usage of an entity or a resource, and the start of the next page."""
        query = usage_query(entity_id, resource, window_type, start_time, end_time)
        warn_uncounted_usage(self._counts_usage())
        cursor = next_key["cursor"] if next_key else None
        return usage_page(*await run((await self._connect()).usage_snapshots(query, limit, cursor)))

    async def get_usage_summary(
        self,
        entity_id: str | None = None,
        resource: str | None = None,
        window_type: str | None = None,
        start_time: datetime | str | None = None,
        end_time: datetime | str | None = None,
    ) -> UsageSummary:
        """Sums of usage over windows of one length, hours unless another is named."""
        query = usage_query(entity_id, resource, None, start_time, end_time)
        warn_uncounted_usage(self._counts_usage())
        return usage_summary(await run((await self._connect()).usage_summary(query, window_type or "hourly")))

    async def get_resource_capacity(
        self, resource: str, limit_name: str, parents_only: bool = False
    ) -> ResourceCapacity:
        """How much of a limit of a resource is in use, over all entities."""
        return capacity(await run((await self._connect()).resource_capacity(resource, limit_name, parents_only)))

    async def _set_config(
        self,
        entity_id: str | None,
        resource: str | None,
        limits: Iterable[Limit],
        on_unavailable: str | None,
        principal: str | None,
        until: datetime | str | None,
        reason: str | None,
    ) -> None:
        connected = await self._connect()
        end = timestamp(until)
        call = connected.set_config(entity_id, resource, dump_limits(limits), on_unavailable, principal, end, reason)
        await run(call)
        self._changed(connected)

    async def _delete_config(self, entity_id: str | None, resource: str | None, principal: str | None) -> None:
        connected = await self._connect()
        await run(connected.delete_config(entity_id, resource, principal))
        self._changed(connected)
