"""Calls of models while they hold tokens."""

# Written by scripts/generate-sync.py; edit the module without sync_ in its name.

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any

from .._calls import resolve_blocking as resolve
from ..exceptions import RateLimitExceeded, ZAELimiterError
from ..sync_lease import SyncAcquire, SyncLease
from ..sync_limiter import SyncRateLimiter
from ..money import Usage
from ._held import LOG, HeldCallBase, LimitedManagerBase, LimitedStreamBase, checked
from .decisions import Method, Read, Request


class HeldCall(HeldCallBase[SyncAcquire, SyncLease]):
    """A call that was admitted on an estimate. It ends once, and its end never raises: the response is worth more."""

    def settle(self, usage: Usage | None) -> None:
        """Corrects the estimate by the usage. Without usage the estimate stays."""
        acquire = self._end()
        if acquire is None:
            return
        try:
            if usage is not None:
                self._lease.adjust(**self._request.correction(usage))
                if self._request.estimate is not None:
                    self._lease.adjust_to_usage(usage)
            acquire.__exit__(None, None, None)
        except ZAELimiterError as error:
            LOG.warning("the usage of a call was not written: %s", error)

    def give_back(self, error: BaseException) -> None:
        """Gives everything back: the call failed."""
        acquire = self._end()
        if acquire is not None:
            acquire.__exit__(type(error), error, error.__traceback__)


def admit(request: Request) -> HeldCall:
    """Takes the estimate of a call."""
    limits = request.limits
    acquire = checked(limits.limiter, SyncRateLimiter).acquire(
        request.entity,
        request.resource,
        request.consume,
        on_unavailable=limits.on_unavailable,
        wait=limits.wait,
        estimate=request.estimate,
        also=request.also,
    )
    return HeldCall(request, acquire, acquire.__enter__())


def run(request: Request, send: Callable[[], Any], read: Read) -> Any:
    """Sends a call while it holds its estimate, and corrects that by what is read of the response."""
    call = admit(request)
    try:
        response = send()
    except BaseException as error:
        call.give_back(error)
        raise
    call.settle(read(response))
    return response


def take(limiter: object, entity: str, resource: str, consume: dict[str, int], wait: float | None) -> bool:
    """Takes tokens to keep. With ``wait`` it raises if there are none in time."""
    try:
        with checked(limiter, SyncRateLimiter).acquire(entity, resource, consume, wait=wait):
            return True
    except RateLimitExceeded:
        if wait is not None:
            raise
        return False


class LimitedStream(LimitedStreamBase[HeldCall]):
    """The same stream. Its call is settled when it ends; one that breaks off after its first output costs the estimate."""

    def __iter__(self) -> LimitedStream:
        return self

    def __next__(self) -> Any:
        while True:
            try:
                event = self._stream.__next__()
            except StopIteration:
                self._usage.complete()
                self._call.settle(self._usage.used)
                raise
            except Exception as error:
                if self._usage.has_output:
                    self._call.settle(None)
                else:
                    self._call.give_back(error)
                raise
            if self._usage.shows(event):
                return event

    def __enter__(self) -> LimitedStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the stream. The model may have begun, so that the estimate stays taken."""
        try:
            self._stream.close()
        finally:
            self._call.settle(self._usage.used)


class LimitedManager(LimitedManagerBase[HeldCall]):
    """A context manager of a client that streams inside of it. The call is admitted where it is entered."""

    def __enter__(self) -> Any:
        call = admit(self._request())
        try:
            self._stream = self._manager.__enter__()
        except BaseException as error:
            call.give_back(error)
            raise
        self._call = call
        return self._stream

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._manager.__exit__(kind, error, trace)
        finally:
            if self._call is not None:
                self._call.settle(self._read(self._stream))


def limit_method(resource: Any, name: str, method: Method) -> None:
    """Replaces a method of a client."""
    original = getattr(resource, name)

    @functools.wraps(original)
    def limited(*positional: Any, **arguments: Any) -> Any:
        plan = method.plan(arguments)
        call = admit(plan.request)
        try:
            response = original(*positional, **arguments)
        except BaseException as error:
            call.give_back(error)
            raise
        if plan.stream is not None:
            return LimitedStream(response, call, plan.stream)
        call.settle(method.read(resolve(plan.parsed(response))))
        return response

    setattr(resource, name, limited)
