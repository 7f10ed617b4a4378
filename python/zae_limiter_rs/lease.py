"""Tokens that a call has taken."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from . import _core
from ._calls import run
from ._lease import LOG, AcquireBase, LeaseBase, checked_amounts
from .exceptions import InfrastructureError, RateLimiterUnavailable
from .money import Usage

if TYPE_CHECKING:
    from .limiter import RateLimiter


class Lease(LeaseBase):
    """Tokens in use. Adjust them when the real cost is known; leaving the ``with`` block writes the adjustments.

    If the call has several resources, a limit is that of the resource of which the call took some of it, otherwise of the only resource
    that has it. ``on`` chooses one.
    """

    def on(self, resource: str) -> Lease:
        """The same lease, for limits of this resource."""
        return Lease(self._core, self._checked_resource(resource))

    async def consume(self, **amounts: int) -> None:
        """Takes more tokens of all these limits, or raises ``RateLimitExceeded`` and takes none."""
        wanted = {name: amount for name, amount in checked_amounts(amounts).items() if amount}
        if wanted:
            await run(self._core.consume(wanted, self._resource))

    async def adjust(self, **amounts: int) -> None:
        """Corrects what was used: more, or less if negative. It may go into debt and is never refused."""
        self._adjust(amounts)

    async def adjust_to_usage(self, usage: Usage) -> None:
        """Corrects tokens and money to what was used, by the prices that the resource had when the lease was taken. It may be called
        with each part of a stream and the usage up to then."""
        self._core.adjust_to_usage(usage._dump())

    async def commit_usage(self, usage: Usage) -> None:
        """Corrects tokens and money to what was used, and ends the lease. Leaving the block then does nothing.

        Without prices it keeps what was taken and raises ``PricesNotFoundError``.
        """
        await commit(self._core.commit_usage(usage._dump()))

    async def release(self, **amounts: int) -> None:
        """Gives tokens back."""
        self._adjust({name: -amount for name, amount in amounts.items()})


class Acquire(AcquireBase["RateLimiter"]):
    """A call that is about to be limited. Entering it takes the tokens; leaving it keeps them, or gives all of them back
    if the body raised."""

    async def __aenter__(self) -> Lease:
        try:
            lease: _core.Lease = await run(self._start(await self._limiter._open()))
        except RateLimiterUnavailable as error:
            raise self._unavailable(error) from error
        return Lease(self._hold(lease))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lease = self._release()
        if lease is None:
            return
        if kind is None:
            await commit(lease.commit())
            return
        try:
            rollback = lease.rollback()
            # Cancelled or interrupted, the tokens go back in the background.
            if issubclass(kind, Exception):
                await run(rollback)
        except Exception as failure:
            # The exception of the body is the one that matters.
            LOG.warning("tokens were not given back: %s", failure)


async def commit(call: _core.Call) -> None:
    """Ends a lease whose call is done and paid for. What is not written yet goes on in the background."""
    try:
        await run(call)
    except InfrastructureError as failure:
        LOG.warning("an adjustment was not written: %s", failure)
