"""Tokens that a call has taken."""

# Written by scripts/generate-sync.py; edit the module without sync_ in its name.

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from . import _core
from ._calls import run_blocking as run
from ._lease import LOG, AcquireBase, LeaseBase, checked_amounts
from .exceptions import InfrastructureError, RateLimiterUnavailable
from .money import Usage

if TYPE_CHECKING:
    from .sync_limiter import SyncRateLimiter


class SyncLease(LeaseBase):
    """Tokens in use. Adjust them when the real cost is known; leaving the ``with`` block writes the adjustments.

    If the call has several resources, a limit is that of the resource of which the call took some of it, otherwise of the only resource
    that has it. ``on`` chooses one.
    """

    def on(self, resource: str) -> SyncLease:
        """The same lease, for limits of this resource."""
        return SyncLease(self._core, self._checked_resource(resource))

    def consume(self, **amounts: int) -> None:
        """Takes more tokens of all these limits, or raises ``RateLimitExceeded`` and takes none."""
        wanted = {name: amount for name, amount in checked_amounts(amounts).items() if amount}
        if wanted:
            run(self._core.consume(wanted, self._resource))

    def adjust(self, **amounts: int) -> None:
        """Corrects what was used: more, or less if negative. It may go into debt and is never refused."""
        self._adjust(amounts)

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
        self._adjust({name: -amount for name, amount in amounts.items()})


class SyncAcquire(AcquireBase["SyncRateLimiter"]):
    """A call that is about to be limited. Entering it takes the tokens; leaving it keeps them, or gives all of them back
    if the body raised."""

    def __enter__(self) -> SyncLease:
        try:
            lease: _core.Lease = run(self._start(self._limiter._open()))
        except RateLimiterUnavailable as error:
            raise self._unavailable(error) from error
        return SyncLease(self._hold(lease))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lease = self._release()
        if lease is None:
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
            LOG.warning("tokens were not given back: %s", failure)


def commit(call: _core.Call) -> None:
    """Ends a lease whose call is done and paid for. What is not written yet goes on in the background."""
    try:
        run(call)
    except InfrastructureError as failure:
        LOG.warning("an adjustment was not written: %s", failure)
