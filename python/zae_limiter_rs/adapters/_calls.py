"""Calls of models while they hold tokens."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from ..exceptions import ZAELimiterError
from ..lease import Acquire, Lease
from ..limiter import RateLimiter
from .estimates import ModelLimits, Usage

_LOG = logging.getLogger(__name__)
_RAW_RESPONSE = "X-Stainless-Raw-Response"


class HeldCall:
    """A call that was admitted on an estimate. It ends once, and its end never raises: the response is worth more."""

    def __init__(self, limits: ModelLimits, estimate: Usage, acquire: Acquire, lease: Lease) -> None:
        self._limits = limits
        self._estimate = estimate
        self._acquire: Acquire | None = acquire
        self._lease = lease

    async def settle(self, usage: Usage | None) -> None:
        """Corrects the estimate by the usage. Without usage the estimate stays."""
        acquire, self._acquire = self._acquire, None
        if acquire is None:
            return
        try:
            if usage is not None:
                estimated, used = self._limits.cost(self._estimate), self._limits.cost(usage)
                await self._lease.adjust(**{name: count - estimated.get(name, 0) for name, count in used.items()})
            await acquire.__aexit__(None, None, None)
        except ZAELimiterError as error:
            _LOG.warning("the usage of a call was not written: %s", error)

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


async def admit(limits: ModelLimits, model: str, arguments: Mapping[str, Any], estimate: Usage) -> HeldCall:
    """Takes the estimate of a call."""
    limiter = limits.limiter
    if not isinstance(limiter, RateLimiter):
        raise TypeError(f"a client of this kind needs a RateLimiter, not a {type(limiter).__name__}")
    acquire = limiter.acquire(
        limits.entity_of(arguments),
        limits.resource_of(model),
        {name: count for name, count in limits.cost(estimate).items()},
        on_unavailable=limits.on_unavailable,
        wait=limits.wait,
    )
    return HeldCall(limits, estimate, acquire, await acquire.__aenter__())


class LimitedStream:
    """The same stream. Its call is settled when it ends; one that breaks off after its first output costs the estimate."""

    def __init__(
        self,
        stream: Any,
        call: HeldCall,
        add: Callable[[Usage | None, Any], Usage | None],
        is_hidden: Callable[[Any], bool],
    ) -> None:
        self._stream = stream
        self._call = call
        self._add = add
        self._is_hidden = is_hidden
        self._usage: Usage | None = None
        self._has_output = False
        self._is_complete = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> LimitedStream:
        return self

    async def __anext__(self) -> Any:
        while True:
            try:
                event = await self._stream.__anext__()
            except StopAsyncIteration:
                self._is_complete = True
                await self._end()
                raise
            except Exception as error:
                if self._has_output:
                    await self._end()
                else:
                    await self._call.give_back(error)
                raise
            self._has_output = True
            self._usage = self._add(self._usage, event)
            if not self._is_hidden(event):
                return event

    async def _end(self) -> None:
        # Before the end, a stream reports what it has used of its input only.
        await self._call.settle(self._usage if self._is_complete else None)

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
            await self._end()

    def __del__(self) -> None:
        call = self.__dict__.get("_call")
        if call is not None:
            call.keep()


class LimitedManager:
    """A context manager of a client that streams inside of it. The call is admitted where it is entered."""

    def __init__(
        self,
        manager: Any,
        limits: ModelLimits,
        arguments: Mapping[str, Any],
        read: Callable[[Any], Usage | None],
    ) -> None:
        self._manager = manager
        self._limits = limits
        self._arguments = arguments
        self._read = read
        self._stream: Any = None
        self._call: HeldCall | None = None

    async def __aenter__(self) -> Any:
        arguments = self._arguments
        call = await admit(self._limits, str(arguments.get("model", "")), arguments, self._limits.estimate(arguments))
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
                await self._call.settle(self._usage())

    def _usage(self) -> Usage | None:
        try:
            return self._read(self._stream)
        except AssertionError:
            # There was no event.
            return None


def limit_method(
    resource: Any,
    name: str,
    limits: ModelLimits,
    *,
    has_output: bool = True,
    read: Callable[[Any], Usage | None],
    add: Callable[[Usage | None, Any], Usage | None] | None = None,
    prepare: Callable[[dict[str, Any]], Callable[[Any], bool]] | None = None,
) -> None:
    """Replaces a method of a client. `prepare` may change the arguments of a stream, and says which events the caller does not expect."""
    original = getattr(resource, name)

    @functools.wraps(original)
    async def limited(*positional: Any, **arguments: Any) -> Any:
        call = await admit(
            limits, str(arguments.get("model", "")), arguments, limits.estimate(arguments, has_output=has_output)
        )
        raw = (arguments.get("extra_headers") or {}).get(_RAW_RESPONSE)
        streams = bool(arguments.get("stream")) and add is not None and raw is None
        is_hidden = prepare(arguments) if streams and prepare is not None else _hides_nothing
        try:
            response = await original(*positional, **arguments)
        except BaseException as error:
            await call.give_back(error)
            raise
        if streams and add is not None:
            return LimitedStream(response, call, add, is_hidden)
        parsed = response
        if raw is not None:
            # The body of a streamed response is the caller's to read.
            is_read = raw != "stream" and not arguments.get("stream")
            parsed = response.parse() if is_read else None
            if inspect.isawaitable(parsed):
                parsed = await parsed
        await call.settle(read(parsed))
        return response

    setattr(resource, name, limited)


def _hides_nothing(_: Any) -> bool:
    return False
