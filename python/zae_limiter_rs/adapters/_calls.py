"""Calls of models while they hold tokens."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any

from .._calls import resolve
from ..exceptions import RateLimitExceeded, ZAELimiterError
from ..lease import Acquire, Lease
from ..limiter import RateLimiter
from ..money import Usage
from ._held import LOG, HeldCallBase, LimitedManagerBase, LimitedStreamBase, checked
from .decisions import Method, Read, Request


class HeldCall(HeldCallBase[Acquire, Lease]):
    """A call that was admitted on an estimate. It ends once, and its end never raises: the response is worth more."""

    async def settle(self, usage: Usage | None) -> None:
        """Corrects the estimate by the usage. Without usage the estimate stays."""
        acquire = self._end()
        if acquire is None:
            return
        try:
            if usage is not None:
                await self._lease.adjust(**self._request.correction(usage))
                if self._request.estimate is not None:
                    await self._lease.adjust_to_usage(usage)
            await acquire.__aexit__(None, None, None)
        except ZAELimiterError as error:
            LOG.warning("the usage of a call was not written: %s", error)

    async def give_back(self, error: BaseException) -> None:
        """Gives everything back: the call failed."""
        acquire = self._end()
        if acquire is not None:
            await acquire.__aexit__(type(error), error, error.__traceback__)


async def admit(request: Request) -> HeldCall:
    """Takes the estimate of a call."""
    limits = request.limits
    acquire = checked(limits.limiter, RateLimiter).acquire(
        request.entity,
        request.resource,
        request.consume,
        on_unavailable=limits.on_unavailable,
        wait=limits.wait,
        estimate=request.estimate,
        also=request.also,
    )
    return HeldCall(request, acquire, await acquire.__aenter__())


async def run(request: Request, send: Callable[[], Any], read: Read) -> Any:
    """Sends a call while it holds its estimate, and corrects that by what is read of the response."""
    call = await admit(request)
    try:
        response = await send()
    except BaseException as error:
        await call.give_back(error)
        raise
    await call.settle(read(response))
    return response


async def take(limiter: object, entity: str, resource: str, consume: dict[str, int], wait: float | None) -> bool:
    """Takes tokens to keep. With ``wait`` it raises if there are none in time."""
    try:
        async with checked(limiter, RateLimiter).acquire(entity, resource, consume, wait=wait):
            return True
    except RateLimitExceeded:
        if wait is not None:
            raise
        return False


class LimitedStream(LimitedStreamBase[HeldCall]):
    """The same stream. Its call is settled when it ends; one that breaks off after its first output costs the estimate."""

    def __aiter__(self) -> LimitedStream:
        return self

    async def __anext__(self) -> Any:
        while True:
            try:
                event = await self._stream.__anext__()
            except StopAsyncIteration:
                self._usage.complete()
                await self._call.settle(self._usage.used)
                raise
            except Exception as error:
                if self._usage.has_output:
                    await self._call.settle(None)
                else:
                    await self._call.give_back(error)
                raise
            if self._usage.shows(event):
                return event

    async def __aenter__(self) -> LimitedStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the stream. The model may have begun, so that the estimate stays taken."""
        try:
            await self._stream.close()
        finally:
            await self._call.settle(self._usage.used)


class LimitedManager(LimitedManagerBase[HeldCall]):
    """A context manager of a client that streams inside of it. The call is admitted where it is entered."""

    async def __aenter__(self) -> Any:
        call = await admit(self._request())
        try:
            self._stream = await self._manager.__aenter__()
        except BaseException as error:
            await call.give_back(error)
            raise
        self._call = call
        return self._stream

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._manager.__aexit__(kind, error, trace)
        finally:
            if self._call is not None:
                await self._call.settle(self._read(self._stream))


def limit_method(resource: Any, name: str, method: Method) -> None:
    """Replaces a method of a client."""
    original = getattr(resource, name)

    @functools.wraps(original)
    async def limited(*positional: Any, **arguments: Any) -> Any:
        plan = method.plan(arguments)
        call = await admit(plan.request)
        try:
            response = await original(*positional, **arguments)
        except BaseException as error:
            await call.give_back(error)
            raise
        if plan.stream is not None:
            return LimitedStream(response, call, plan.stream)
        await call.settle(method.read(await resolve(plan.parsed(response))))
        return response

    setattr(resource, name, limited)
