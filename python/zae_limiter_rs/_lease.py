"""What leases with and without asyncio have in common."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import _core
from ._errors import status
from .exceptions import RateLimiterUnavailable, ValidationError
from .models import LimitStatus
from .money import Estimate

if TYPE_CHECKING:
    from ._limiter import LimiterBase

LOG = logging.getLogger("zae_limiter_rs.lease")

Limiter = TypeVar("Limiter", bound="LimiterBase[Any]")


class LeaseBase:
    """Tokens in use."""

    def __init__(self, core: _core.Lease) -> None:
        self._core = core

    @property
    def consumed(self) -> dict[str, int]:
        """The tokens that the entity itself has used, adjustments included."""
        return self._core.consumed()

    @property
    def is_counted(self) -> bool:
        """False if the table could not be reached and the policy let the call pass."""
        return self._core.is_counted()

    @property
    def is_lost(self) -> bool:
        """True if permits of a limit on calls in flight have expired, because they could not be renewed. Other calls may run in their
        place."""
        return self._core.is_lost()

    @property
    def statuses(self) -> list[LimitStatus]:
        """Every limit after the tokens were taken: the entity's own, then its parents'."""
        return [status(entry) for entry in self._core.statuses()]

    def _adjust(self, amounts: dict[str, int]) -> None:
        for name, amount in amounts.items():
            if amount:
                self._core.adjust(name, amount)


class AcquireBase(Generic[Limiter]):
    """A call that is about to be limited, and the lease that it holds."""

    def __init__(
        self,
        limiter: Limiter,
        entity_id: str,
        resource: str,
        consume: dict[str, int],
        limits: str | None,
        on_unavailable: str | None,
        wait: float | None,
        estimate: Estimate | None,
    ) -> None:
        self._limiter = limiter
        self._entity_id = entity_id
        self._resource = resource
        self._consume = consume
        self._limits = limits
        self._on_unavailable = on_unavailable
        self._wait = wait
        self._estimate = None if estimate is None else estimate._dump()
        self._held: tuple[int, _core.Lease] | None = None

    def _start(self, limiter: _core.RateLimiter) -> _core.Call:
        return limiter.acquire(
            self._entity_id,
            self._resource,
            checked_amounts(self._consume),
            self._limits,
            self._on_unavailable,
            self._wait,
            self._estimate,
        )

    def _unavailable(self, error: RateLimiterUnavailable) -> RateLimiterUnavailable:
        """The error with the call that it concerns."""
        return RateLimiterUnavailable(
            str(error),
            cause=error,
            stack_name=self._limiter.stack_name,
            entity_id=self._entity_id,
            resource=self._resource,
        )

    def _hold(self, lease: _core.Lease) -> _core.Lease:
        self._held = (os.getpid(), lease)
        return lease

    def _release(self) -> _core.Lease | None:
        """The lease, if it is to be ended: the body has not committed it, and has not left it to a forked child. The tokens are those
        of the process that took them."""
        held, self._held = self._held, None
        if held is None or held[0] != os.getpid() or not held[1].is_active():
            return None
        return held[1]

    def _keep(self) -> None:
        """Keeps the tokens, where nobody can wait for what is to be written."""
        lease = self._release()
        if lease is not None:
            lease.commit()


def checked_amounts(amounts: dict[str, int]) -> dict[str, int]:
    """The amounts, none of them below zero."""
    for name, amount in amounts.items():
        if amount < 0:
            raise ValidationError(name, str(amount), "must not be negative; use adjust or release to give tokens back")
    return amounts
