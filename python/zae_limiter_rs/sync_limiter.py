"""The limiter."""

# Written by scripts/generate-sync.py; edit the module without sync_ in its name.

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Any

from . import _core
from ._calls import run_blocking as run
from ._convert import dump_limits
from ._lease import Also
from ._limiter import LimiterBase, warn_stored_limits
from ._names import validate_identifier, validate_resource
from .exceptions import ZAELimiterError
from .sync_lease import SyncAcquire
from .models import Limit, LimiterInfo, LimiterStats, OnUnavailable, StackOptions, Status
from .money import Estimate
from .sync_repository import SyncRepository
from .sync_stored import SyncStored

# How many seconds a status waits for the table.
STATUS_TIMEOUT = 5.0


class SyncRateLimiter(LimiterBase[SyncRepository], SyncStored):
    """A distributed rate limiter.

    ``on_unavailable`` decides about calls while the table cannot be reached, unless the system's configuration or the
    call says something else. ``speculative_writes`` is accepted and has no effect: every acquire is one write.

    Settings beyond those of zae-limiter: ``default_limits`` apply where none are stored, ``time_budget`` bounds an acquire (in
    seconds), ``outage_fraction=n`` lets each of n processes use its part of the limits during an outage, and
    ``token_chunks`` takes tokens in chunks, on these resources or everywhere.
    """

    _repository_class = SyncRepository

    def _open(self) -> _core.RateLimiter:
        """The limiter of this process."""
        limiter = self._opened()
        if limiter is None:
            repository = self._repository._connect(self._settings)
            connected: _core.RateLimiter = run(repository.limiter())
            if self._repository._stack_options is not None:
                run(connected.ensure_infrastructure())
            limiter = self._keep_open(connected)
        return limiter

    def _connect(self) -> _core.Repository:
        """The connection of the repository."""
        return self._repository._connect()

    def close(self) -> None:
        """Waits for adjustments and refunds, then shuts the limiter down. It opens again when it is used."""
        limiter = self._take_opened()
        if limiter is not None:
            run(limiter.shutdown())
        self._repository.close()

    def __enter__(self) -> SyncRateLimiter:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
    ) -> SyncAcquire:
        """Takes tokens for the body of the ``with`` block, or raises ``RateLimitExceeded``.

        ``wait`` waits up to this time, in seconds, instead of raising at once. ``estimate`` takes what the call is expected to use, in
        tokens and money, by the prices of the resource. ``also`` charges other resources of the entity: all are taken, or none.
        ``cascade`` says whether the parent is charged too, on this resource; the entity's record says so unless it is set.
        """
        warn_stored_limits(use_stored_limits)
        validate_identifier(entity_id, "entity_id")
        validate_resource(resource)
        return SyncAcquire(self, entity_id, resource, consume, limits, on_unavailable, wait, estimate, also, cascade)

    def available(
        self,
        entity_id: str,
        resource: str,
        limits: list[Limit] | None = None,
        use_stored_limits: bool = False,
    ) -> dict[str, int]:
        """What is left of every limit of the entity, without taking anything."""
        warn_stored_limits(use_stored_limits)
        peeked = self._peek(entity_id, resource, {}, limits)
        available: dict[str, int] = peeked["available"]
        return available

    def time_until_available(
        self,
        entity_id: str,
        resource: str,
        needed: dict[str, int],
        limits: list[Limit] | None = None,
        use_stored_limits: bool = False,
    ) -> float:
        """Seconds until ``needed`` fits, parents included: ``math.inf`` if it never does."""
        warn_stored_limits(use_stored_limits)
        peeked = self._peek(entity_id, resource, needed, limits)
        seconds: float | None = peeked["retry_after_seconds"]
        return math.inf if seconds is None else seconds

    def _peek(
        self, entity_id: str, resource: str, needed: dict[str, int], limits: list[Limit] | None
    ) -> dict[str, Any]:
        given = None if limits is None else dump_limits(limits)
        peeked: dict[str, Any] = run((self._open()).peek(entity_id, resource, needed, given))
        return peeked

    def is_available(self, timeout: float = 1.0) -> bool:
        """Whether the table responds in time. Never raises."""
        try:
            return bool(run((self._open()).is_available(timeout)))
        except ZAELimiterError:
            return False

    def settled(self) -> None:
        """Waits until every adjustment and refund in flight is written."""
        run((self._open()).settled())

    def stats(self) -> LimiterStats:
        """Counters of this limiter in this process."""
        stats = (self._open()).stats()
        return LimiterStats(**{entry.name: stats[entry.name] for entry in fields(LimiterStats)})

    def get_system_defaults(self) -> tuple[list[Limit], OnUnavailable | None]:
        """The limits and the policy stored for the system."""
        limits, policy = self._system_defaults()
        return limits, None if policy is None else OnUnavailable(policy)

    # The stack.

    def ensure_infrastructure(self) -> None:
        """Brings the stack to what the repository's ``stack_options`` declare. Without them it does nothing."""
        self._repository.ensure_infrastructure()

    def create_stack(self, stack_options: StackOptions | None = None) -> dict[str, Any]:
        """Creates the stack, or updates it, and waits until that is done."""
        options = stack_options or self._repository._stack_options or StackOptions()
        place = self._repository._place()
        outcome: dict[str, Any] = run(_core.ensure_stack(place, json.dumps(asdict(options))))
        return outcome

    def delete_stack(self) -> None:
        """Deletes the stack. The table and the archive stay, with their data."""
        run(_core.delete_stack(self._repository._place()))

    @classmethod
    def list_deployed(cls, region: str | None = None, endpoint_url: str | None = None) -> list[LimiterInfo]:
        """The stacks in a region."""
        place = json.dumps({"name": "", "region": region, "endpoint_url": endpoint_url})
        return [LimiterInfo(**stack) for stack in run(_core.list_stacks(place))]

    def get_status(self) -> Status:
        """The table and the stack. Never raises: what cannot be found out is ``None``."""
        started = time.monotonic()
        available = self.is_available(STATUS_TIMEOUT)
        latency = (time.monotonic() - started) * 1000 if available else None
        version: dict[str, Any] = {}
        stack: dict[str, Any] = {}
        try:
            version = self._repository.get_version_record() or {}
        except ZAELimiterError:
            pass
        if not self._repository.is_embedded:
            try:
                stack = run(_core.stack_status(self._repository._place())) or {}
            except ZAELimiterError:
                pass
        return self._status(latency, version, stack)
