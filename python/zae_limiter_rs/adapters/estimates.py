"""What a call of a model costs: estimated before, and by its usage after."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..limiter import RateLimiter
from ..models import OnUnavailable
from ..sync_limiter import SyncRateLimiter

BYTES_PER_TOKEN = 4
# Names of the argument that limits the output, in the APIs of OpenAI and Anthropic.
OUTPUT_CAPS = ("max_completion_tokens", "max_output_tokens", "max_tokens")
# Arguments that the model reads.
READ_ARGUMENTS = ("messages", "input", "prompt", "system", "instructions", "tools", "functions", "response_format", "text")
# Members of a message that are not read as text.
_NOT_TEXT = ("type", "role", "id", "cache_control")
_FILES = ("image_url", "input_image", "image", "input_file", "file", "document", "input_audio", "video_url")


@dataclass(frozen=True)
class Usage:
    """Tokens of a call. Cached input and what is written to the cache are not part of ``input``."""

    input: int = 0
    output: int = 0
    cached_input: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.input + self.output + self.cached_input + self.cache_write


def requests_and_tokens(usage: Usage) -> dict[str, int]:
    """One request of ``rpm``, and all tokens of ``tpm``."""
    return {"rpm": 1, "tpm": usage.total}


def resource_name(model: str) -> str:
    """The name of a model as the name of a resource: other characters become hyphens."""
    name = re.sub(r"[^a-zA-Z0-9_.\-/]", "-", model)[:64]
    return name if name[:1].isalpha() else f"m{name}"[:64]


@dataclass(frozen=True, kw_only=True)
class ModelLimits:
    """Who is limited, and how.

    ``cost`` turns usage into tokens of limits, for the estimate and for the response: with prices, it can return micro-dollars. The
    estimate is the input by its length, ``file_tokens`` for each image or file, and the output that the call allows: its own
    maximum, otherwise ``default_output_tokens``, and never more than ``max_output_tokens``.
    """

    limiter: RateLimiter | SyncRateLimiter
    entity: str | Callable[[Mapping[str, Any]], str]
    resource: str | Callable[[str], str] = resource_name
    cost: Callable[[Usage], Mapping[str, int]] = requests_and_tokens
    default_output_tokens: int = 1_000
    max_output_tokens: int | None = None
    file_tokens: int = 1_000
    wait: float | None = None
    on_unavailable: OnUnavailable | None = None

    def entity_of(self, arguments: Mapping[str, Any]) -> str:
        """Who pays for the call."""
        return self.entity if isinstance(self.entity, str) else self.entity(arguments)

    def resource_of(self, model: str) -> str:
        """What the call uses."""
        return self.resource if isinstance(self.resource, str) else self.resource(model)

    def estimate(self, arguments: Mapping[str, Any], *, has_output: bool = True) -> Usage:
        """What a call with these arguments uses at most, if its input has the usual length."""
        size, files = _measure([arguments[name] for name in READ_ARGUMENTS if arguments.get(name)])
        read = math.ceil(size / BYTES_PER_TOKEN) + files * self.file_tokens
        return Usage(input=read, output=self._output(arguments) if has_output else 0)

    def _output(self, arguments: Mapping[str, Any]) -> int:
        caps = [arguments[name] for name in OUTPUT_CAPS if isinstance(arguments.get(name), int)]
        output = min(caps, default=self.default_output_tokens)
        if self.max_output_tokens is not None:
            output = min(output, self.max_output_tokens)
        choices = arguments.get("n")
        return output * (choices if isinstance(choices, int) and choices > 1 else 1)


def _measure(value: Any) -> tuple[int, int]:
    """The bytes of all texts in a value, and the number of files. The content of a file is not text."""
    if isinstance(value, str):
        return (0, 1) if value.startswith("data:") else (len(value.encode(errors="replace")), 0)
    if isinstance(value, Mapping):
        if value.get("type") in _FILES:
            return 0, 1
        return _sum(_measure(part) for name, part in value.items() if name not in _NOT_TEXT)
    if isinstance(value, type):
        return _measure(value.model_json_schema()) if hasattr(value, "model_json_schema") else (0, 0)
    if hasattr(value, "model_dump"):
        return _measure(value.model_dump())
    # Nothing that can be read only once.
    if isinstance(value, (list, tuple)):
        return _sum(_measure(part) for part in value)
    return 0, 0


def _sum(sizes: Iterable[tuple[int, int]]) -> tuple[int, int]:
    size = files = 0
    for more, further in sizes:
        size, files = size + more, files + further
    return size, files


def usage_of(usage: Any) -> Usage | None:
    """The usage that a response reports, as an object or a dictionary, in the words of OpenAI or Anthropic."""
    if usage is None:
        return None
    read = _count(usage, "prompt_tokens", "input_tokens")
    written = _count(usage, "completion_tokens", "output_tokens")
    if read is None and written is None:
        total = _count(usage, "total_tokens")
        return None if total is None else Usage(input=total)
    cache_write = _count(usage, "cache_creation_input_tokens") or 0
    apart = _count(usage, "cache_read_input_tokens")
    if apart is not None and _get(usage, "prompt_tokens") is None:
        # Anthropic counts what it read from the cache beside the input, OpenAI within it.
        return Usage(read or 0, written or 0, apart, cache_write)
    details = _get(usage, "prompt_tokens_details") or _get(usage, "input_tokens_details")
    cached = min(_count(details, "cached_tokens") or 0, read or 0)
    return Usage((read or 0) - cached, written or 0, cached)


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _count(value: Any, *names: str) -> int | None:
    found = (_get(value, name) for name in names)
    return next((count for count in found if isinstance(count, int)), None)
