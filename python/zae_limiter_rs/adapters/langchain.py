"""Limits for agents and models of LangChain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage
from langchain_core.rate_limiters import BaseRateLimiter

from ..limiter import RateLimiter
from ..money import Usage
from ..sync_limiter import SyncRateLimiter
from . import _calls, _sync_calls
from .decisions import Request
from .estimates import OUTPUT_CAPS, ModelLimits


class RateLimitMiddleware(AgentMiddleware[Any, Any]):
    """Middleware for ``create_agent``: each call of the model takes an estimate, and is corrected by its usage.

    ``invoke`` needs limits with a ``SyncRateLimiter``, ``ainvoke`` with a ``RateLimiter``.
    """

    def __init__(self, limits: ModelLimits) -> None:
        super().__init__()
        self._limits = limits

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Limits a call."""
        return _sync_calls.run(self._request(request), lambda: handler(request), _usage)

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Limits a call."""
        return await _calls.run(self._request(request), lambda: handler(request), _usage)

    def _request(self, request: Any) -> Request:
        model, arguments = _arguments(request)
        return Request.of(self._limits, model, arguments)


def _arguments(request: Any) -> tuple[str, dict[str, Any]]:
    """The name of the model and what an estimate needs."""
    model = request.model
    caps = {name: getattr(model, name, None) for name in OUTPUT_CAPS}
    messages = [request.system_message, *request.messages]
    read = {"messages": [message.content for message in messages if message is not None]}
    name = str(getattr(model, "model_name", None) or getattr(model, "model", ""))
    return name, {**caps, **request.model_settings, **read}


def _usage(response: Any) -> Usage | None:
    """The usage of all messages of a response."""
    messages = response.result if hasattr(response, "result") else [response]
    reported = [message.usage_metadata for message in messages if isinstance(message, AIMessage) and message.usage_metadata]
    if not reported:
        return None
    # Cached input and what is written to the cache are part of the input here.
    details = [usage.get("input_token_details", {}) for usage in reported]
    cached, cache_write = (sum(detail.get(name, 0) for detail in details) for name in ("cache_read", "cache_creation"))
    return Usage(
        input=max(sum(usage["input_tokens"] for usage in reported) - cached - cache_write, 0),
        output=sum(usage["output_tokens"] for usage in reported),
        cached_input=cached,
        cache_write=cache_write,
    )


class RequestRateLimiter(BaseRateLimiter):
    """The ``rate_limiter`` of a model: takes requests, since LangChain does not tell it how many tokens a call has.

    ``max_wait`` bounds how many seconds a call waits, which then raises ``RateLimitExceeded``.
    """

    def __init__(
        self,
        limiter: RateLimiter | SyncRateLimiter,
        entity: str,
        resource: str,
        *,
        limit: str = "rpm",
        max_wait: float = 600.0,
    ) -> None:
        self._limiter = limiter
        self._entity = entity
        self._resource = resource
        self._consume = {limit: 1}
        self._max_wait = max_wait

    def acquire(self, *, blocking: bool = True) -> bool:
        """Takes a request. Without ``blocking``, returns False if there is none."""
        return _sync_calls.take(*self._taken(blocking))

    async def aacquire(self, *, blocking: bool = True) -> bool:
        """Takes a request. Without ``blocking``, returns False if there is none."""
        return await _calls.take(*self._taken(blocking))

    def _taken(self, blocking: bool) -> tuple[object, str, str, dict[str, int], float | None]:
        wait = self._max_wait if blocking else None
        return self._limiter, self._entity, self._resource, self._consume, wait
