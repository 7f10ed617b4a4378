"""Limits the calls of a client of OpenAI, or of any API that it is used for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..money import Usage
from . import _calls, _sync_calls
from .decisions import Method
from .estimates import ModelLimits, usage_of

Client = TypeVar("Client")


def limit_openai(client: Client, limits: ModelLimits) -> Client:
    """The same client, limited: chat completions, completions, responses and embeddings, with streams, ``parse`` and copies.

    A call that does not fit raises ``RateLimitExceeded``. Requests that the client repeats by itself are one call. For streams of
    chat completions it asks for the usage with ``stream_options``, and keeps the event with it from the caller, unless the
    caller has set that option.
    """
    target: Any = client
    limit = _calls.limit_method if hasattr(client, "__aenter__") else _sync_calls.limit_method
    completion = Method(limits, _read, _add_chunk, _ask_for_usage)
    limit(target.chat.completions, "create", completion)
    limit(target.chat.completions, "parse", Method(limits, _read))
    limit(target.completions, "create", completion)
    limit(target.responses, "create", Method(limits, _read, _add_event))
    limit(target.responses, "parse", Method(limits, _read))
    limit(target.embeddings, "create", Method(limits, _read, has_output=False))
    original = target.copy

    def copy(*arguments: Any, **options: Any) -> Any:
        return limit_openai(original(*arguments, **options), limits)

    target.copy = target.with_options = copy
    return client


def _read(response: Any) -> Usage | None:
    return usage_of(getattr(response, "usage", None))


def _add_chunk(usage: Usage | None, chunk: Any) -> Usage | None:
    return _read(chunk) or usage


def _add_event(usage: Usage | None, event: Any) -> Usage | None:
    return _read(getattr(event, "response", None)) or usage


def _ask_for_usage(arguments: dict[str, Any]) -> Callable[[Any], bool]:
    options = arguments.get("stream_options")
    if isinstance(options, dict) and "include_usage" in options:
        return lambda _: False
    arguments["stream_options"] = {**(options if isinstance(options, dict) else {}), "include_usage": True}
    return lambda chunk: not chunk.choices and chunk.usage is not None
