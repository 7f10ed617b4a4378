"""What calls and streams of clients with and without asyncio have in common while they hold tokens."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from .._lease import AcquireBase, LeaseBase
from .decisions import Read, Request, StreamUsage

LOG = logging.getLogger("zae_limiter_rs.adapters")

Limiter = TypeVar("Limiter")
Taken = TypeVar("Taken", bound=AcquireBase[Any])
Tokens = TypeVar("Tokens", bound=LeaseBase)


def checked(limiter: object, kind: type[Limiter]) -> Limiter:
    """The limiter, if it is of the kind that the client needs."""
    if not isinstance(limiter, kind):
        raise TypeError(f"a client of this kind needs a {kind.__name__}, not a {type(limiter).__name__}")
    return limiter


class HeldCallBase(Generic[Taken, Tokens]):
    """A call that was admitted on an estimate. It ends once, and its end never raises: the response is worth more."""

    def __init__(self, request: Request, acquire: Taken, lease: Tokens) -> None:
        self._request = request
        self._acquire: Taken | None = acquire
        self._lease = lease

    def _end(self) -> Taken | None:
        """What is to be ended; nothing if it has ended."""
        acquire, self._acquire = self._acquire, None
        return acquire

    def keep(self) -> None:
        """Keeps the estimate, where nobody can wait."""
        acquire = self._end()
        if acquire is not None:
            acquire._keep()


Call = TypeVar("Call", bound=HeldCallBase[Any, Any])


class LimitedStreamBase(Generic[Call]):
    """A stream with everything that it has besides its events."""

    def __init__(self, stream: Any, call: Call, usage: StreamUsage) -> None:
        self._stream = stream
        self._call = call
        self._usage = usage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __del__(self) -> None:
        call = self.__dict__.get("_call")
        if call is not None:
            call.keep()


class LimitedManagerBase(Generic[Call]):
    """A context manager of a client that streams inside of it. The call is admitted where it is entered."""

    def __init__(self, manager: Any, request: Callable[[], Request], read: Read) -> None:
        self._manager = manager
        self._request = request
        self._read = read
        self._stream: Any = None
        self._call: Call | None = None
