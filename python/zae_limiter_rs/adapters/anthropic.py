"""Limits the calls of a client of Anthropic."""

from __future__ import annotations

from typing import Any, TypeVar

from ..money import Usage
from . import _calls, _sync_calls
from .decisions import Method, Request
from .estimates import ModelLimits, usage_of

Client = TypeVar("Client")


def limit_anthropic(client: Client, limits: ModelLimits) -> Client:
    """The same client, limited: ``messages.create``, streams and ``messages.stream`` included, those of ``beta``, and copies.

    A call that does not fit raises ``RateLimitExceeded``. Requests that the client repeats by itself are one call.
    """
    target: Any = client
    module: Any = _calls if hasattr(client, "__aenter__") else _sync_calls
    for messages in (target.messages, target.beta.messages):
        _limit_messages(messages, limits, module)
    original = target.copy

    def copy(*arguments: Any, **options: Any) -> Any:
        return limit_anthropic(original(*arguments, **options), limits)

    target.copy = target.with_options = copy
    return client


def _limit_messages(messages: Any, limits: ModelLimits, module: Any) -> None:
    module.limit_method(messages, "create", Method(limits, _read, _add_event))
    if hasattr(messages, "parse"):
        module.limit_method(messages, "parse", Method(limits, _read))
    stream = messages.stream

    def limited_stream(**arguments: Any) -> Any:
        def request() -> Request:
            return Request.of(limits, str(arguments.get("model", "")), arguments)

        return module.LimitedManager(stream(**arguments), request, _read_stream)

    messages.stream = limited_stream


def _read(response: Any) -> Usage | None:
    return usage_of(getattr(response, "usage", None))


def _read_stream(stream: Any) -> Usage | None:
    """The usage that a stream has reported by its end."""
    try:
        message = stream.current_message_snapshot
    except AssertionError:
        # There was no event.
        return None
    return _read(message) if message.stop_reason is not None else None


def _add_event(usage: Usage | None, event: Any) -> Usage | None:
    if event.type == "message_start":
        return _read(event.message)
    if event.type != "message_delta":
        return usage
    # Numbers of a delta are totals; what it does not mention stays.
    latest, before = usage_of(event.usage) or Usage(), usage or Usage()
    return Usage(
        latest.input or before.input,
        latest.output or before.output,
        latest.cached_input or before.cached_input,
        latest.cache_write or before.cache_write,
    )
