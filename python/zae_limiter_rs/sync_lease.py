"""Tokens that a call has taken."""

# Written by scripts/generate-sync.py; edit the module without sync_ in its name.

from __future__ import annotations

import logging
import os
from types import TracebackType
from typing import TYPE_CHECKING

from . import _core
from ._calls import run_blocking as run
from ._errors import status
from .exceptions import InfrastructureError, RateLimiterUnavailable, ValidationError
from .models import LimitStatus
from .money import Estimate, Usage

if TYPE_CHECKING:
    from .sync_limiter import SyncRateLimiter

_LOG = logging.getLogger(__name__)


class SyncLease:
    """Tokens in use. Adjust them when the real cost is known; leaving the ``with`` block writes the adjustments."""

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
    def statuses(self) -> list[LimitStatus]:
        """Every limit after the tokens were taken: the entity's own, then its parents'."""
        return [status(entry) for entry in self._core.statuses()]

    def consume(self, **amounts: int) -> None:
        """Takes more tokens of all these limits, or raises ``RateLimitExceeded`` and takes none."""
        wanted = checked_amounts(amounts)
        if any(wanted.values()):
            run(self._core.consume({name: amount for name, amount in wanted.items() if amount}))

    def adjust(self, **amounts: int) -> None:
        """Corrects what was used: more, or less if negative. It may go into debt and is never refused."""
        for name, amount in amounts.items():
            if amount:
                self._core.adjust(name, amount)

    def adjust_to_usage(self, usage: Usage) -> None:
        """Corrects tokens and money to what was used, by the prices that the resource had when the lease was taken. It may be called
        with each part of a stream and the usage up to then."""
        self._core.adjust_to_usage(usage._dump())

    def commit_usage(self, usage: Usage) -> None:
        """Corrects tokens and money to what was used, and ends the lease. Leaving the block then does nothing.

        Without prices it keeps what was taken and raises ``PricesNotFoundError``.
        """
        commit(self._core.commit_usage(usage._dump()))

    def release(self, **amounts: int) -> None:
        """Gives tokens back."""
        self.adjust(**{name: -amount for name, amount in amounts.items()})


class SyncAcquire:
    """A call that is about to be limited. Entering it takes the tokens; leaving it keeps them, or gives all of them back
    if the body raised."""

    def __init__(
        self,
        limiter: SyncRateLimiter,
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
        self._lease: tuple[int, _core.Lease] | None = None

    def __enter__(self) -> SyncLease:
        consume = checked_amounts(self._consume)
        limiter = self._limiter._open()
        try:
            lease: _core.Lease = run(
                limiter.acquire(
                    self._entity_id,
                    self._resource,
                    consume,
                    self._limits,
                    self._on_unavailable,
                    self._wait,
                    self._estimate,
                )
            )
        except RateLimiterUnavailable as error:
            raise RateLimiterUnavailable(
                str(error),
                cause=error,
                stack_name=self._limiter.stack_name,
                entity_id=self._entity_id,
                resource=self._resource,
            ) from error
        self._lease = (os.getpid(), lease)
        return SyncLease(lease)

    def _keep(self) -> None:
        """Keeps the tokens, where nobody can wait for what is to be written."""
        held, self._lease = self._lease, None
        if held is not None and held[0] == os.getpid() and held[1].is_active():
            held[1].commit()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        held, self._lease = self._lease, None
        if held is None or held[0] != os.getpid():
            # The tokens are those of the process that took them: a child that was forked inside leaves them alone.
            return
        lease = held[1]
        if not lease.is_active():
            # The body has committed it.
            return
        if kind is None:
            commit(lease.commit())
            return
        try:
            rollback = lease.rollback()
            # Cancelled or interrupted, the tokens go back in the background.
            if issubclass(kind, Exception):
                run(rollback)
        except Exception as failure:
            # The exception of the body is the one that matters.
            _LOG.warning("tokens were not given back: %s", failure)


def commit(call: _core.Call) -> None:
    """Ends a lease whose call is done and paid for. What is not written yet goes on in the background."""
    try:
        run(call)
    except InfrastructureError as failure:
        _LOG.warning("an adjustment was not written: %s", failure)


def checked_amounts(amounts: dict[str, int]) -> dict[str, int]:
    """The amounts, none of them below zero."""
    for name, amount in amounts.items():
        if amount < 0:
            raise ValidationError(name, str(amount), "must not be negative; use adjust or release to give tokens back")
    return amounts
