"""What is decided about a call of a model, without asyncio or requests: what it takes, what is read of it, what it has used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .._lease import Also
from ..money import Estimate, Usage
from .estimates import ModelLimits

_RAW_RESPONSE = "X-Stainless-Raw-Response"

Read = Callable[[Any], Usage | None]
Add = Callable[[Usage | None, Any], Usage | None]
IsHidden = Callable[[Any], bool]


@dataclass(frozen=True)
class Request:
    """What a call takes before it is sent."""

    limits: ModelLimits
    entity: str
    resource: str
    estimated: Usage
    estimate: Estimate | None
    """What stored prices count."""

    @classmethod
    def of(cls, limits: ModelLimits, model: str, arguments: Mapping[str, Any], *, has_output: bool = True) -> Request:
        """The request of a call with these arguments."""
        estimated = limits.estimate(arguments, has_output=has_output)
        priced = limits.expected(arguments, has_output=has_output) if limits.stored_prices else None
        return cls(limits, limits.entity_of(arguments), limits.resource_of(model), estimated, priced)

    @property
    def consume(self) -> dict[str, int]:
        """Tokens of limits that the adapter counts."""
        return dict(self.limits.counted(self.estimated))

    @property
    def also(self) -> list[Also]:
        """What it takes of the budget."""
        budget = self.limits.budget
        return [] if budget is None else [Also(budget, {}, estimate=self.estimate)]

    def correction(self, usage: Usage) -> dict[str, int]:
        """What the call used more, or less if negative, than it took of the limits that the adapter counts."""
        took = self.consume
        return {name: count - took.get(name, 0) for name, count in self.limits.counted(usage).items()}


class StreamUsage:
    """What a stream has reported so far."""

    def __init__(self, add: Add, is_hidden: IsHidden) -> None:
        self._add = add
        self._is_hidden = is_hidden
        self._usage: Usage | None = None
        self._is_complete = False
        self.has_output = False

    def shows(self, event: Any) -> bool:
        """Reads an event. Whether the caller gets it."""
        self.has_output = True
        self._usage = self._add(self._usage, event)
        return not self._is_hidden(event)

    def complete(self) -> None:
        """There are no more events."""
        self._is_complete = True

    @property
    def used(self) -> Usage | None:
        """The usage. Before its end, a stream reports what it has used of its input only."""
        return self._usage if self._is_complete else None


@dataclass(frozen=True)
class Method:
    """How a method of a client is limited. ``prepare`` may change the arguments of a stream, and says which events the caller does not
    expect."""

    limits: ModelLimits
    read: Read
    add: Add | None = None
    prepare: Callable[[dict[str, Any]], IsHidden] | None = None
    has_output: bool = True

    def plan(self, arguments: dict[str, Any]) -> MethodCall:
        """What to do with a call. Its arguments may change."""
        request = Request.of(self.limits, str(arguments.get("model", "")), arguments, has_output=self.has_output)
        raw = (arguments.get("extra_headers") or {}).get(_RAW_RESPONSE)
        streams = bool(arguments.get("stream"))
        if self.add is None or not streams or raw is not None:
            return MethodCall(request, None, raw is not None, raw == "stream" or streams)
        is_hidden = _hides_nothing if self.prepare is None else self.prepare(arguments)
        return MethodCall(request, StreamUsage(self.add, is_hidden), is_raw=False, is_unread=False)


@dataclass(frozen=True)
class MethodCall:
    """One call of a method."""

    request: Request
    stream: StreamUsage | None
    is_raw: bool
    is_unread: bool

    def parsed(self, response: Any) -> Any:
        """The response as an object, or something to await. The body of a raw stream is the caller's to read."""
        if not self.is_raw:
            return response
        return None if self.is_unread else response.parse()


def _hides_nothing(_: Any) -> bool:
    return False
