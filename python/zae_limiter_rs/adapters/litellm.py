"""A hook that limits the calls of a LiteLLM proxy.

In a module beside the proxy's configuration, which names it in ``litellm_settings: callbacks: limits.hook``::

    from zae_limiter_rs import RateLimiter, Repository
    from zae_limiter_rs.adapters import ModelLimits
    from zae_limiter_rs.adapters.litellm import LiteLLMHook, entity_of_key

    limiter = RateLimiter(repository=Repository("my-app", region="eu-west-1"))
    hook = LiteLLMHook(ModelLimits(limiter=limiter, entity=entity_of_key))
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from typing import Any, Literal

from fastapi import HTTPException
from litellm.integrations.custom_logger import CustomLogger

from ..exceptions import DisabledError, PricesNotFoundError, RateLimitExceeded, ValidationError, ZAELimiterError
from ..money import Usage
from ._calls import HeldCall, admit
from .decisions import Request
from .estimates import ModelLimits, usage_of

# Calls of which the proxy reports neither success nor failure keep their estimate after that.
FORGET_AFTER_SECONDS = 3_600
MAX_CALLS = 10_000
RETRY_AFTER_OUTAGE_SECONDS = 5
_HOOKS = ("async_pre_call_hook", "async_log_success_event", "async_post_call_failure_hook", "async_post_call_streaming_iterator_hook")


def entity_of_key(arguments: Mapping[str, Any]) -> str:
    """Who pays for a call: the alias of its key, else its user, else its team, else the hash of the key."""
    key = arguments["user_api_key_dict"]
    found = (getattr(key, name, None) for name in ("key_alias", "user_id", "team_id", "token"))
    name = next((value for value in found if value), "anonymous")
    entity = re.sub(r"[^a-zA-Z0-9_.\-:@]", "-", str(name))[:256]
    return entity if entity[0].isalnum() else f"k{entity}"[:256]


class LiteLLMHook(CustomLogger):
    """Takes an estimate before a call, and corrects it when the proxy has logged the response or the failure.

    A call that does not fit is refused with 429 and Retry-After; one that needs more than a limit's burst with 400. Without
    limits for a model, or prices if they count, calls get 403 unless ``without_limits`` is ``"allow"``. While the table is
    unavailable they get 503 unless the policy for outages lets them pass.
    """

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        # The proxy calls only hooks that the class of the callback defines itself.
        for name in _HOOKS:
            setattr(cls, name, getattr(cls, name))

    def __init__(self, limits: ModelLimits, *, without_limits: Literal["allow", "block"] = "block") -> None:
        super().__init__()
        self._limits = limits
        self._without_limits = without_limits
        self._held: OrderedDict[int, tuple[str, float, HeldCall]] = OrderedDict()
        self._calls: dict[str, list[int]] = {}
        self._next = 0

    async def async_pre_call_hook(self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: Any) -> None:
        """Takes the estimate of a call."""
        model = data.get("model")
        if not model:
            return
        arguments = {**data, "user_api_key_dict": user_api_key_dict}
        has_output = "embedding" not in str(call_type)
        try:
            call = await admit(Request.of(self._limits, str(model), arguments, has_output=has_output))
        except RateLimitExceeded as refusal:
            raise _refused(refusal) from refusal
        except DisabledError as error:
            raise HTTPException(403, {"error": str(error)}) from error
        except (PricesNotFoundError, ValidationError) as error:
            if isinstance(error, ValidationError) and error.field != "limits":
                raise HTTPException(400, {"error": str(error)}) from error
            if self._without_limits == "block":
                missing = "prices" if isinstance(error, PricesNotFoundError) else "limits"
                raise HTTPException(403, {"error": f"no {missing} are configured: {error}"}) from error
            return
        except ZAELimiterError as error:
            headers = {"Retry-After": str(RETRY_AFTER_OUTAGE_SECONDS)}
            raise HTTPException(503, {"error": f"the rate limiter is unavailable: {error}"}, headers) from error
        self._hold(str(data.get("litellm_call_id")), call)

    async def async_log_success_event(self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Corrects the estimate of a call by its usage. A response from the proxy's cache used no tokens."""
        call = self._take(str(kwargs.get("litellm_call_id")))
        if call is not None:
            logged = usage_of(kwargs.get("standard_logging_object"))
            reported = usage_of(_usage(kwargs.get("async_complete_streaming_response")) or _usage(response_obj))
            await call.settle(Usage(calls=0) if kwargs.get("cache_hit") else reported or logged)

    async def async_post_call_failure_hook(
        self, request_data: dict[str, Any], original_exception: Exception, user_api_key_dict: Any, traceback_str: str | None = None
    ) -> None:
        """Gives everything back. The proxy calls it when it has given up on a call, after its own retries."""
        call = self._take(str(request_data.get("litellm_call_id")))
        if call is not None:
            await call.give_back(original_exception)

    async def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: Any, response: AsyncIterable[Any], request_data: dict[str, Any]
    ) -> AsyncGenerator[Any, None]:
        """Passes a stream on. It keeps the estimate of one that breaks off, and of one that its caller leaves before the first event, of
        which the proxy logs nothing."""
        has_output = False
        try:
            async for event in response:
                has_output = True
                yield event
        except BaseException as error:
            # A failure without output costs nothing, and of a stream that the caller leaves later the proxy reports the usage.
            is_left = isinstance(error, (asyncio.CancelledError, GeneratorExit))
            call = self._take(str(request_data.get("litellm_call_id"))) if is_left != has_output else None
            if call is not None:
                call.keep()
            raise

    def _hold(self, call_id: str, call: HeldCall) -> None:
        self._next += 1
        self._held[self._next] = (call_id, time.monotonic(), call)
        # Callers may choose the id, so that it may not be unique.
        self._calls.setdefault(call_id, []).append(self._next)
        while self._held:
            oldest, since, forgotten = next(iter(self._held.values()))
            if len(self._held) <= MAX_CALLS and time.monotonic() - since < FORGET_AFTER_SECONDS:
                return
            self._take(oldest)
            forgotten.keep()

    def _take(self, call_id: str) -> HeldCall | None:
        numbers = self._calls.get(call_id)
        if not numbers:
            return None
        _, _, call = self._held.pop(numbers.pop(0))
        if not numbers:
            del self._calls[call_id]
        return call


def _refused(refusal: RateLimitExceeded) -> HTTPException:
    if not refusal.can_pass:
        return HTTPException(400, {"error": str(refusal)})
    headers = {"Retry-After": str(max(1, math.ceil(refusal.retry_after_seconds)))}
    return HTTPException(429, {"error": str(refusal)}, headers)


def _usage(response: Any) -> Any:
    return response.get("usage") if isinstance(response, Mapping) else getattr(response, "usage", None)
