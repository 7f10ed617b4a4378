"""The table of a stack."""

from __future__ import annotations

from typing import Any

from . import _core
from ._calls import run
from ._convert import bucket_state, limits_of
from ._repository import RepositoryBase
from .models import BucketState, ConfigSource, Limit, OnUnavailableAction
from .stored import Stored


class Repository(RepositoryBase, Stored):
    """The table of a stack. It connects when it is used first, and again in a forked child.

    Beyond ``name``, ``region`` and ``endpoint_url``: ``profile`` names AWS credentials, ``principal`` who changes
    things, and ``time_budget`` how long an acquire may take (in seconds).
    """

    async def _connect(self, limiter_settings: dict[str, Any] | None = None) -> _core.Repository:
        """The connection of this process with these settings."""
        key = self._connection_key(limiter_settings)
        connected = self._connected.get(key)
        if connected is None:
            connected = self._connected.setdefault(key, await run(_core.connect(key[1], self._memory)))
        return connected

    async def close(self) -> None:
        """Forgets the connections. They open again when they are needed."""
        self._connected.clear()

    async def __aenter__(self) -> Repository:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Infrastructure.

    async def create_table(self) -> None:
        """Creates the table without a stack, for tests and local endpoints."""
        await run((await self._connect()).create_table())

    async def ensure_infrastructure(self) -> None:
        """Brings the stack to what ``stack_options`` declare. Without them it does nothing."""
        if self._stack_options is None:
            return
        limiter = await run((await self._connect()).limiter())
        await run(limiter.ensure_infrastructure())

    async def ping(self) -> bool:
        """Whether the table responds."""
        limiter = await run((await self._connect()).limiter())
        return bool(await run(limiter.is_available(1.0)))

    async def get_version_record(self) -> dict[str, Any] | None:
        """The version of the table."""
        version: dict[str, Any] | None = await run((await self._connect()).version())
        return version

    # Buckets.

    async def get_buckets(self, entity_id: str, resource: str | None = None) -> list[BucketState]:
        """The buckets of an entity as they are now, refilled."""
        buckets = await run((await self._connect()).buckets(entity_id, resource))
        return [bucket_state(bucket) for bucket in buckets]

    async def get_bucket(self, entity_id: str, resource: str, limit_name: str) -> BucketState | None:
        """One limit of a bucket; ``None`` before the first acquire."""
        buckets = await self.get_buckets(entity_id, resource)
        return next((bucket for bucket in buckets if bucket.limit_name == limit_name), None)

    # What applies.

    async def get_system_defaults(self) -> tuple[list[Limit], OnUnavailableAction | None]:
        """The limits and the policy stored for the system."""
        return await self._system_defaults()

    async def get_system_limits(self) -> list[Limit]:
        """The limits stored for the system."""
        limits, _ = await self._system_defaults()
        return limits

    async def resolve_limits(
        self, entity_id: str, resource: str
    ) -> tuple[list[Limit] | None, OnUnavailableAction | None, ConfigSource | None]:
        """The limits that apply to an entity on a resource, the policy, and the level that the limits come from."""
        resolved = await run((await self._connect()).resolve_limits(entity_id, resource))
        stored = resolved["on_unavailable_from"] == "system"
        policy: OnUnavailableAction | None = resolved["on_unavailable"] if stored else None
        return limits_of(resolved) or None, policy, resolved["limits_from"]

    async def resolve_on_unavailable(self) -> OnUnavailableAction | None:
        """The policy stored for the system."""
        _, policy = await self._system_defaults()
        return policy

    async def invalidate_config_cache(self) -> None:
        """Forgets cached configuration, so that changes of other processes apply at once."""
        (await self._connect()).invalidate_config_cache()
