"""The limiter."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Any

from . import _core
from ._calls import run
from ._convert import dump_limits
from ._lease import Also
from ._limiter import LimiterBase, warn_stored_limits
from ._names import validate_identifier, validate_resource
from .exceptions import ZAELimiterError
from .lease import Acquire
from .models import Limit, LimiterInfo, LimiterStats, OnUnavailable, StackOptions, Status
from .money import Estimate
from .repository import Repository
from .stored import Stored

# How many seconds a status waits for the table.
STATUS_TIMEOUT = 5.0


class RateLimiter(LimiterBase[Repository], Stored):
    """A distributed rate limiter.

    ``on_unavailable`` decides about calls while the table cannot be reached, unless the system's configuration or the
    call says something else. ``speculative_writes`` is accepted and has no effect: every acquire is one write.

    Settings beyond those of zae-limiter: ``default_limits`` apply where none are stored, ``time_budget`` bounds an acquire (in
    seconds), ``outage_fraction=n`` lets each of n processes use its part of the limits during an outage, and
    ``token_chunks`` takes tokens in chunks, on these resources or everywhere.
    """

    _repository_class = Repository

    async def _open(self) -> _core.RateLimiter:
        """The limiter of this process."""
        limiter = self._opened()
        if limiter is None:
            repository = await self._repository._connect(self._settings)
            connected: _core.RateLimiter = await run(repository.limiter())
            if self._repository._stack_options is not None:
                await run(connected.ensure_infrastructure())
            limiter = self._keep_open(connected)
        return limiter

    async def _connect(self) -> _core.Repository:
        """The connection of the repository."""
        return await self._repository._connect()

    async def close(self) -> None:
        """Waits for adjustments and refunds, then shuts the limiter down. It opens again when it is used."""
        limiter = self._take_opened()
        if limiter is not None:
            await run(limiter.shutdown())
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
        also: Iterable[Also] = (),
        cascade: bool | None = None,
    ) -> Acquire:
        """Takes tokens for the body of the ``with`` block, or raises ``RateLimitExceeded``.

        ``wait`` waits up to this time, in seconds, instead of raising at once. ``estimate`` takes what the call is expected to use, in
        tokens and money, by the prices of the resource. ``also`` charges other resources of the entity: all are taken, or none.
        ``cascade`` says whether the parent is charged too, on this resource; the entity's record says so unless it is set.
        """
        warn_stored_limits(use_stored_limits)
        validate_identifier(entity_id, "entity_id")
        validate_resource(resource)
        return Acquire(self, entity_id, resource, consume, limits, on_unavailable, wait, estimate, also, cascade)

    async def available(
        self,
        entity_id: str,
        resource: str,
        limits: list[Limit] | None = None,
        use_stored_limits: bool = False,
    ) -> dict[str, int]:
        """What is left of every limit of the entity, without taking anything."""
        warn_stored_limits(use_stored_limits)
        peeked = await self._peek(entity_id, resource, {}, limits)
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
        warn_stored_limits(use_stored_limits)
        peeked = await self._peek(entity_id, resource, needed, limits)
        seconds: float | None = peeked["retry_after_seconds"]
        return math.inf if seconds is None else seconds

    async def _peek(
        self, entity_id: str, resource: str, needed: dict[str, int], limits: list[Limit] | None
    ) -> dict[str, Any]:
        given = None if limits is None else dump_limits(limits)
        peeked: dict[str, Any] = await run((await self._open()).peek(entity_id, resource, needed, given))
        return peeked

    async def is_available(self, timeout: float = 1.0) -> bool:
        """Whether the table responds in time. Never raises."""
        try:
            return bool(await run((await self._open()).is_available(timeout)))
        except ZAELimiterError:
            return False

    async def settled(self) -> None:
        """Waits until every adjustment and refund in flight is written."""
        await run((await self._open()).settled())

    async def stats(self) -> LimiterStats:
        """Counters of this limiter in this process."""
        stats = (await self._open()).stats()
        return LimiterStats(**{entry.name: stats[entry.name] for entry in fields(LimiterStats)})

    async def get_system_defaults(self) -> tuple[list[Limit], OnUnavailable | None]:
        """The limits and the policy stored for the system."""
        limits, policy = await self._system_defaults()
        return limits, None if policy is None else OnUnavailable(policy)

    # The stack.

    async def ensure_infrastructure(self) -> None:
        """Brings the stack to what the repository's ``stack_options`` declare. Without them it does nothing."""
        await self._repository.ensure_infrastructure()

    async def create_stack(self, stack_options: StackOptions | None = None) -> dict[str, Any]:
        """Creates the stack, or updates it, and waits until that is done."""
        options = stack_options or self._repository._stack_options or StackOptions()
        place = self._repository._place()
        outcome: dict[str, Any] = await run(_core.ensure_stack(place, json.dumps(asdict(options))))
        return outcome

    async def delete_stack(self) -> None:
        """Deletes the stack. The table and the archive stay, with their data."""
        await run(_core.delete_stack(self._repository._place()))

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
                stack = await run(_core.stack_status(self._repository._place())) or {}
            except ZAELimiterError:
                pass
        return self._status(latency, version, stack)
