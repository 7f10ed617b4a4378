"""Everything that is stored: entities, limits, audit events and usage."""

# Written by scripts/generate-sync.py; edit the module without sync_ in its name.

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from . import _core
from ._calls import run_blocking as run
from ._convert import bucket_state, dump_limits, limits_of
from ._names import DEFAULT_RESOURCE, validate_identifier, validate_resource, validate_stack_name
from .exceptions import EntityNotFoundError
from .models import (
    AuditEvent,
    BackendCapabilities,
    BucketState,
    CacheStats,
    ConfigSource,
    Entity,
    EntityCapacity,
    Limit,
    OnUnavailable,
    OnUnavailableAction,
    ResourceCapacity,
    StackOptions,
    UsageSnapshot,
    UsageSummary,
)
from .money import Prices


class SyncRepository:
    """The table of a stack. It connects when it is used first, and again in a forked child.

    Beyond ``name``, ``region`` and ``endpoint_url``: ``profile`` names AWS credentials, ``principal`` who changes
    things, and ``time_budget`` how long an acquire may take (in seconds).
    """

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
    def embedded(cls, path: str | os.PathLike[str] | None = None, *, name: str = "limiter", config_cache_ttl: float = 60) -> SyncRepository:
        """A table inside this process, or in a file that processes of one machine share: no AWS account, no server."""
        repository = cls.__new__(cls)
        settings = {
            "name": validate_stack_name(name),
            "config_cache_ttl": config_cache_ttl,
            "file": None if path is None else os.fspath(path),
        }
        repository._setup(settings, _core.MemoryStore() if path is None else None, None)
        return repository

    # Connecting.

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
            supports_usage_snapshots=True,
            supports_infrastructure_management=not self.is_embedded,
            supports_change_streams=not self.is_embedded,
            supports_batch_operations=True,
        )

    def _serve(self, settings: dict[str, Any]) -> None:
        """A limiter will use this repository. Its settings become the repository's, unless another limiter was first."""
        if not self._limiter_settings:
            self._limiter_settings = settings

    def _open(self, limiter_settings: dict[str, Any] | None = None) -> _core.Repository:
        """The connection of this process with these settings."""
        settings = self._settings | (self._limiter_settings if limiter_settings is None else limiter_settings)
        key = (os.getpid(), json.dumps(settings, sort_keys=True))
        connected = self._connected.get(key)
        if connected is None:
            connected = self._connected.setdefault(key, run(_core.connect(key[1], self._memory)))
        return connected

    def _changed(self, by: _core.Repository) -> None:
        """Configuration was changed through one connection: the caches of the others are stale."""
        for (process, _), connected in self._connected.items():
            if process == os.getpid() and connected is not by:
                connected.invalidate_config_cache()

    def close(self) -> None:
        """Forgets the connections. They open again when they are needed."""
        self._connected.clear()

    def __enter__(self) -> SyncRepository:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Infrastructure.

    def create_table(self) -> None:
        """Creates the table without a stack, for tests and local endpoints."""
        run((self._open()).create_table())

    def ensure_infrastructure(self) -> None:
        """Brings the stack to what ``stack_options`` declare. Without them it does nothing."""
        if self._stack_options is None:
            return
        limiter = run((self._open()).limiter())
        run(limiter.ensure_infrastructure())

    def ping(self) -> bool:
        """Whether the table responds."""
        limiter = run((self._open()).limiter())
        return bool(run(limiter.is_available(1.0)))

    def get_version_record(self) -> dict[str, Any] | None:
        """The version of the table."""
        version: dict[str, Any] | None = run((self._open()).version())
        return version

    # Entities.

    def create_entity(
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
        connected = self._open()
        call = connected.create_entity(
            entity_id, name, parent_id, cascade, json.dumps(metadata or {}), principal
        )
        entity = Entity(**run(call))
        self._changed(connected)
        return entity

    def get_entity(self, entity_id: str) -> Entity | None:
        """The entity; ``None`` if it does not exist."""
        entity = run((self._open()).get_entity(entity_id))
        return None if entity is None else Entity(**entity)

    def delete_entity(self, entity_id: str, principal: str | None = None) -> None:
        """Deletes an entity with its limits and buckets, if it exists."""
        connected = self._open()
        try:
            run(connected.delete_entity(entity_id, principal))
        except EntityNotFoundError:
            return
        self._changed(connected)

    def get_children(self, parent_id: str) -> list[Entity]:
        """The children of an entity, in order of their ids."""
        return [Entity(**child) for child in run((self._open()).children(parent_id))]

    # Buckets.

    def get_buckets(self, entity_id: str, resource: str | None = None) -> list[BucketState]:
        """The buckets of an entity as they are now, refilled."""
        buckets = run((self._open()).buckets(entity_id, resource))
        return [bucket_state(bucket) for bucket in buckets]

    def get_bucket(self, entity_id: str, resource: str, limit_name: str) -> BucketState | None:
        """One limit of a bucket; ``None`` before the first acquire."""
        buckets = self.get_buckets(entity_id, resource)
        return next((bucket for bucket in buckets if bucket.limit_name == limit_name), None)

    # Limits of an entity.

    def set_limits(
        self,
        entity_id: str,
        limits: list[Limit],
        resource: str = DEFAULT_RESOURCE,
        principal: str | None = None,
    ) -> None:
        """Stores limits of an entity on a resource, or on every resource."""
        self._set_config(entity_id, resource, limits, None, principal)

    def get_limits(self, entity_id: str, resource: str = DEFAULT_RESOURCE) -> list[Limit]:
        """The limits stored for an entity on a resource."""
        return limits_of(run((self._open()).get_config(entity_id, resource)))

    def delete_limits(
        self, entity_id: str, resource: str = DEFAULT_RESOURCE, principal: str | None = None
    ) -> None:
        """Deletes the limits stored for an entity on a resource."""
        self._delete_config(entity_id, resource, principal)

    def list_entities_with_custom_limits(
        self, resource: str, limit: int | None = None, cursor: str | None = None
    ) -> tuple[list[str], str | None]:
        """Entities with limits of their own on a resource, and the start of the next page."""
        on = None if resource == DEFAULT_RESOURCE else resource
        entities, following = run((self._open()).entities_with_custom_limits(on, limit, cursor))
        return entities, following

    def list_resources_with_entity_configs(self) -> list[str]:
        """Resources on which entities have limits of their own."""
        names: list[str] = run((self._open()).resources_with_entity_configs())
        return names

    # Defaults.

    def set_resource_defaults(
        self, resource: str, limits: list[Limit], principal: str | None = None
    ) -> None:
        """Stores the limits of everybody on a resource."""
        validate_resource(resource)
        self._set_config(None, resource, limits, None, principal)

    def get_resource_defaults(self, resource: str) -> list[Limit]:
        """The limits stored for a resource."""
        validate_resource(resource)
        return limits_of(run((self._open()).get_config(None, resource)))

    def delete_resource_defaults(self, resource: str, principal: str | None = None) -> None:
        """Deletes the limits stored for a resource."""
        validate_resource(resource)
        self._delete_config(None, resource, principal)

    def list_resources_with_defaults(self) -> list[str]:
        """Resources that have limits."""
        names: list[str] = run((self._open()).resources_with_defaults())
        return names

    def set_system_defaults(
        self,
        limits: list[Limit],
        on_unavailable: OnUnavailableAction | OnUnavailable | None = None,
        principal: str | None = None,
    ) -> None:
        """Stores the limits of everybody on everything, and the policy for outages."""
        policy = on_unavailable.value if isinstance(on_unavailable, OnUnavailable) else on_unavailable
        self._set_config(None, None, limits, policy, principal)

    def get_system_defaults(self) -> tuple[list[Limit], OnUnavailableAction | None]:
        """The limits and the policy stored for the system."""
        config = run((self._open()).get_config(None, None))
        return limits_of(config), config["on_unavailable"]

    def get_system_limits(self) -> list[Limit]:
        """The limits stored for the system."""
        limits, _ = self.get_system_defaults()
        return limits

    def delete_system_defaults(self, principal: str | None = None) -> None:
        """Deletes the limits and the policy stored for the system."""
        self._delete_config(None, None, principal)

    # Prices.

    def set_prices(self, resource: str | None, prices: Prices, principal: str | None = None) -> None:
        """Stores the prices of a resource, or with ``None`` those of resources without their own. Limits stay as they are."""
        if resource is not None:
            validate_resource(resource)
        connected = self._open()
        run(connected.set_prices(resource, prices._dump(), principal))
        self._changed(connected)

    def get_prices(self, resource: str | None) -> Prices | None:
        """The prices stored for a resource, or with ``None`` for the system; ``None`` if there are none."""
        stored = run((self._open()).get_prices(resource))
        return None if stored is None else Prices.from_dict(stored)

    def delete_prices(self, resource: str, principal: str | None = None) -> bool:
        """Deletes the prices of a resource. False if it had none."""
        connected = self._open()
        existed = bool(run(connected.delete_prices(resource, principal)))
        self._changed(connected)
        return existed

    def resolve_prices(self, resource: str) -> Prices | None:
        """The prices that apply to a resource: its own, else those of the system."""
        stored = run((self._open()).resolve_prices(resource))
        return None if stored is None else Prices.from_dict(stored)

    def _set_config(
        self,
        entity_id: str | None,
        resource: str | None,
        limits: Iterable[Limit],
        on_unavailable: str | None,
        principal: str | None,
    ) -> None:
        connected = self._open()
        call = connected.set_config(entity_id, resource, dump_limits(limits), on_unavailable, principal)
        run(call)
        self._changed(connected)

    def _delete_config(self, entity_id: str | None, resource: str | None, principal: str | None) -> None:
        connected = self._open()
        run(connected.delete_config(entity_id, resource, principal))
        self._changed(connected)

    # What applies.

    def resolve_limits(
        self, entity_id: str, resource: str
    ) -> tuple[list[Limit] | None, OnUnavailableAction | None, ConfigSource | None]:
        """The limits that apply to an entity on a resource, the policy, and the level that the limits come from."""
        resolved = run((self._open()).resolve_limits(entity_id, resource))
        stored = resolved["on_unavailable_from"] == "system"
        policy: OnUnavailableAction | None = resolved["on_unavailable"] if stored else None
        return limits_of(resolved) or None, policy, resolved["limits_from"]

    def resolve_on_unavailable(self) -> OnUnavailableAction | None:
        """The policy stored for the system."""
        _, policy = self.get_system_defaults()
        return policy

    def invalidate_config_cache(self) -> None:
        """Forgets cached configuration, so that changes of other processes apply at once."""
        (self._open()).invalidate_config_cache()

    def get_cache_stats(self) -> CacheStats:
        """Counters of the configuration cache in this process."""
        stats = CacheStats(ttl_seconds=int(self._settings["config_cache_ttl"]))
        for (process, _), connected in self._connected.items():
            if process == os.getpid():
                hits, misses, size = connected.cache_stats()
                stats = CacheStats(stats.hits + hits, stats.misses + misses, stats.size + size, stats.ttl_seconds)
        return stats

    # Audit events and usage.

    def get_audit_events(
        self, entity_id: str, limit: int = 100, start_event_id: str | None = None
    ) -> list[AuditEvent]:
        """Events of an entity, newest first, from the one before ``start_event_id`` on.

        The events of a resource's defaults are those of ``$RESOURCE:name``, the system's those of ``$SYSTEM``.
        """
        events = run((self._open()).audit_events(entity_id, limit, start_event_id))
        return [AuditEvent(**event) for event in events]

    def get_usage_snapshots(
        self,
        entity_id: str | None = None,
        resource: str | None = None,
        window_type: str | None = None,
        start_time: str | None = None,
        end_time: str | None = None,
        limit: int = 100,
        next_key: dict[str, Any] | None = None,
    ) -> tuple[list[UsageSnapshot], dict[str, Any] | None]:
        """A page of usage of an entity or a resource, and the start of the next page."""
        query = _usage_query(entity_id, resource, window_type, start_time, end_time)
        cursor = next_key["cursor"] if next_key else None
        snapshots, following = run((self._open()).usage_snapshots(query, limit, cursor))
        for snapshot in snapshots:
            del snapshot["refusals"]
        return [UsageSnapshot(**snapshot) for snapshot in snapshots], {"cursor": following} if following else None

    def get_usage_summary(
        self,
        entity_id: str | None = None,
        resource: str | None = None,
        window_type: str | None = None,
        start_time: str | None = None,
        end_time: str | None = None,
    ) -> UsageSummary:
        """Sums of usage over windows of one length, hours unless another is named."""
        query = _usage_query(entity_id, resource, None, start_time, end_time)
        summary = run((self._open()).usage_summary(query, window_type or "hourly"))
        count: int = summary["snapshot_count"]
        average = {name: total / count for name, total in summary["total"].items()} if count else {}
        return UsageSummary(average=average, **summary)

    def get_resource_capacity(
        self, resource: str, limit_name: str, parents_only: bool = False
    ) -> ResourceCapacity:
        """How much of a limit of a resource is in use, over all entities."""
        capacity = run((self._open()).resource_capacity(resource, limit_name, parents_only))
        entities = [EntityCapacity(**entity) for entity in capacity.pop("entities")]
        return ResourceCapacity(entities=entities, **capacity)


def _usage_query(
    entity_id: str | None,
    resource: str | None,
    window_type: str | None,
    start_time: str | None,
    end_time: str | None,
) -> str:
    if not entity_id and not resource:
        raise ValueError("Either entity_id or resource must be provided")
    return json.dumps(
        {
            "entity_id": entity_id,
            "resource": resource,
            "window_type": window_type,
            "start_time": start_time,
            "end_time": end_time,
        }
    )
