"""Limits the calls of a LiteLLM proxy: an estimate before the call, the usage of the response after it.

In the proxy's configuration:

    litellm_settings:
      callbacks: litellm_hook.hook

The entity is the API key's alias (or its user), the resource is the model, and the limits are `rpm` and `tpm`.
"""

from __future__ import annotations

import os
from typing import Any

from zae_limiter_http import Lease, RateLimiter, RateLimitExceeded

try:
    from litellm.integrations.custom_logger import CustomLogger
except ImportError:  # The hook has the same methods without LiteLLM.
    CustomLogger = object

# About four characters of English are a token.
CHARACTERS_PER_TOKEN = 4
# What a model may respond if the call does not say.
DEFAULT_MAX_TOKENS = 256
# Where the lease of a call is kept between the hooks.
LEASE = "zae_limiter_lease"


def estimate(data: dict[str, Any]) -> int:
    """Tokens of the prompt and of the longest response."""
    characters = sum(len(str(message.get("content") or "")) for message in data.get("messages", []))
    return characters // CHARACTERS_PER_TOKEN + int(data.get("max_tokens") or DEFAULT_MAX_TOKENS)


def entity_of(key: Any) -> str:
    """Who pays for the call."""
    return getattr(key, "key_alias", None) or getattr(key, "user_id", None) or "anonymous"


class RateLimitHook(CustomLogger):
    """Takes tokens before a call and corrects them after it."""

    def __init__(self, limiter: RateLimiter) -> None:
        super().__init__()
        self.limiter = limiter

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
    ) -> dict[str, Any]:
        """Raises RateLimitExceeded if the call does not fit. LiteLLM responds 429 to an error with this status."""
        tokens = estimate(data)
        lease = await self.limiter.acquire(entity_of(user_api_key_dict), data["model"], {"rpm": 1, "tpm": tokens})
        data.setdefault("metadata", {})[LEASE] = (lease, tokens)
        return data

    async def async_post_call_success_hook(self, data: dict[str, Any], user_api_key_dict: Any, response: Any) -> Any:
        """Corrects the estimate by the usage of the response."""
        held = self._held(data)
        if held:
            lease, tokens = held
            lease.adjust({"tpm": used_tokens(response, tokens) - tokens})
            await lease.commit()
        return response

    async def async_post_call_failure_hook(
        self, request_data: dict[str, Any], original_exception: Exception, user_api_key_dict: Any, **_: Any
    ) -> None:
        """Gives everything back: a call that failed used no tokens."""
        held = self._held(request_data)
        if held:
            await held[0].rollback()

    @staticmethod
    def _held(data: dict[str, Any]) -> tuple[Lease, int] | None:
        """The lease of a call, once."""
        return data.get("metadata", {}).pop(LEASE, None)


def used_tokens(response: Any, otherwise: int) -> int:
    """The total of the usage of a response, as an object or as JSON."""
    usage = response.get("usage") if isinstance(response, dict) else getattr(response, "usage", None)
    if usage is None:
        return otherwise
    total = usage.get("total_tokens") if isinstance(usage, dict) else getattr(usage, "total_tokens", None)
    return otherwise if total is None else int(total)


RateLimitExceeded.status_code = 429
hook = RateLimitHook(
    RateLimiter(os.environ.get("ZAE_LIMITER_URL", "http://127.0.0.1:8080"), os.environ.get("ZAE_LIMITER_TOKEN"))
)
