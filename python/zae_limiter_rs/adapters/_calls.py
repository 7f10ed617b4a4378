"""Calls of models while they hold tokens."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ..exceptions import RateLimitExceeded, ZAELimiterError
from ..lease import Acquire, Lease
from ..limiter import RateLimiter
from ..money import Usage
from .decisions import Method, Read, Request, StreamUsage

_LOG = logging.getLogger(__name__)


class HeldCall:
    """A call that was admitted on an estimate. It ends once, and its end never raises: the response is worth more."""

    def __init__(self, request: Request, acquire: Acquire, lease: Lease) -> None:
        self._request = request
        self._acquire: Acquire | None = acquire
        self._lease = lease

    async def settle(self, usage: Usage | None) -> None:
        """Corrects the estimate by the usage. Without usage the estimate stays."""
        acquire, self._acquire = self._acquire, None
        if acquire is None:
            return
        try:
            if usage is not None:
                await self._correct(usage)
            await acquire.__aexit__(None, None, None)
        except ZAELimiterError as error:
            _LOG.warning("the usage of a call was not written: %s", error)

    async def _correct(self, usage: Usage) -> None:
        await self._lease.adjust(**self._request.correction(usage))
        if self._request.estimate is not None:
            await self._lease.adjust_to_usage(usage)

    async def give_back(self, error: BaseException) -> None:
        """Gives everything back: the call failed."""
        acquire, self._acquire = self._acquire, None
        if acquire is not None:
            await acquire.__aexit__(type(error), error, error.__traceback__)

    def keep(self) -> None:
        """Keeps the estimate, where nobody can wait."""
        acquire, self._acquire = self._acquire, None
        if acquire is not None:
            acquire._keep()


def checked(limiter: object) -> RateLimiter:
    """The limiter, if it is of the kind that the client needs."""
    if not isinstance(limiter, RateLimiter):
        raise TypeError(f"a client of this kind needs a RateLimiter, not a {type(limiter).__name__}")
    return limiter


async def admit(request: Request) -> HeldCall:
    """Takes the estimate of a call."""
    limits = request.limits
    acquire = checked(limits.limiter).acquire(
        request.entity,
        request.resource,
        request.consume,
        on_unavailable=limits.on_unavailable,
        wait=limits.wait,
        estimate=request.estimate,
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
        async with checked(limiter).acquire(entity, resource, consume, wait=wait):
            return True
    except RateLimitExceeded:
        if wait is not None:
            raise
        return False


class LimitedStream:
    """The same stream. Its call is settled when it ends; one that breaks off after its first output costs the estimate."""

    def __init__(self, stream: Any, call: HeldCall, usage: StreamUsage) -> None:
        self._stream = stream
        self._call = call
        self._usage = usage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

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

    def __del__(self) -> None:
        call = self.__dict__.get("_call")
        if call is not None:
            call.keep()


class LimitedManager:
    """A context manager of a client that streams inside of it. The call is admitted where it is entered."""

    def __init__(self, manager: Any, request: Callable[[], Request], read: Read) -> None:
        self._manager = manager
        self._request = request
        self._read = read
        self._stream: Any = None
        self._call: HeldCall | None = None

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
        parsed = plan.parsed(response)
        if inspect.isawaitable(parsed):
            parsed = await parsed
        await call.settle(method.read(parsed))
        return response

    setattr(resource, name, limited)
