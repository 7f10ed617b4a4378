"""What a call of a model costs: estimated before, and by its usage after."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..limiter import RateLimiter
from ..models import OnUnavailable
from ..money import Estimate, Usage
from ..sync_limiter import SyncRateLimiter

BYTES_PER_TOKEN = 4
# Names of the argument that limits the output, in the APIs of OpenAI and Anthropic.
OUTPUT_CAPS = ("max_completion_tokens", "max_output_tokens", "max_tokens")
# Arguments that the model reads.
READ_ARGUMENTS = ("messages", "input", "prompt", "system", "instructions", "tools", "functions", "response_format", "text")
# Members of a message that are not read as text.
_NOT_TEXT = ("type", "role", "id", "cache_control")
_FILES = ("image_url", "input_image", "image", "input_file", "file", "document", "input_audio", "video_url")


def requests_and_tokens(usage: Usage) -> dict[str, int]:
    """One request of ``rpm``, and all tokens of ``tpm``."""
    return {"rpm": 1, "tpm": usage.tokens}


def requests(_: Usage) -> dict[str, int]:
    """One request of ``rpm``. Stored prices count the tokens."""
    return {"rpm": 1}


def resource_name(model: str) -> str:
    """The name of a model as the name of a resource: other characters become hyphens."""
    name = re.sub(r"[^a-zA-Z0-9_.\-/]", "-", model)[:64]
    return name if name[:1].isalpha() else f"m{name}"[:64]


@dataclass(frozen=True, kw_only=True)
class ModelLimits:
    """Who is limited, and how.

    ``cost`` turns usage into tokens of limits, for the estimate and for the response: ``rpm`` and ``tpm`` unless set. With
    ``stored_prices``, the prices of the resource count tokens and money, and ``cost`` the rest: ``rpm`` unless set; ``budget`` names another
    resource that they charge too. The estimate is the input by its length, ``file_tokens`` for each image or file, and the output that
    the call allows: its own maximum, otherwise ``default_output_tokens``, and never more than ``max_output_tokens``.
    """

    limiter: RateLimiter | SyncRateLimiter
    entity: str | Callable[[Mapping[str, Any]], str]
    resource: str | Callable[[str], str] = resource_name
    cost: Callable[[Usage], Mapping[str, int]] | None = None
    stored_prices: bool = False
    budget: str | None = None
    default_output_tokens: int = 1_000
    max_output_tokens: int | None = None
    file_tokens: int = 1_000
    wait: float | None = None
    on_unavailable: OnUnavailable | None = None

    def __post_init__(self) -> None:
        if self.budget is not None and not self.stored_prices:
            raise ValueError("budget needs stored_prices: they say what it is charged")

    def entity_of(self, arguments: Mapping[str, Any]) -> str:
        """Who pays for the call."""
        return self.entity if isinstance(self.entity, str) else self.entity(arguments)

    def resource_of(self, model: str) -> str:
        """What the call uses."""
        return self.resource if isinstance(self.resource, str) else self.resource(model)

    def counted(self, usage: Usage) -> Mapping[str, int]:
        """What a usage takes of the limits that stored prices do not count."""
        default = requests if self.stored_prices else requests_and_tokens
        return (self.cost or default)(usage)

    def estimate(self, arguments: Mapping[str, Any], *, has_output: bool = True) -> Usage:
        """What a call with these arguments uses at most, if its input has the usual length."""
        output = 0
        if has_output:
            cap = _output_cap(arguments)
            output = self.default_output_tokens if cap is None else cap
            if self.max_output_tokens is not None:
                output = min(output, self.max_output_tokens)
            output *= _choices(arguments)
        return Usage(input=self._input(arguments), output=output)

    def expected(self, arguments: Mapping[str, Any], *, has_output: bool = True) -> Estimate:
        """What stored prices need to know of a call. They have the output of one that does not limit it."""
        cap = _output_cap(arguments) if has_output else 0
        return Estimate(self._input(arguments), None if cap is None else cap * _choices(arguments))

    def _input(self, arguments: Mapping[str, Any]) -> int:
        size, files = _measure([arguments[name] for name in READ_ARGUMENTS if arguments.get(name)])
        return math.ceil(size / BYTES_PER_TOKEN) + files * self.file_tokens


def _output_cap(arguments: Mapping[str, Any]) -> int | None:
    """The most output tokens of a choice that the call asks for."""
    caps = [arguments[name] for name in OUTPUT_CAPS if isinstance(arguments.get(name), int)]
    return min(caps, default=None)


def _choices(arguments: Mapping[str, Any]) -> int:
    choices = arguments.get("n")
    return choices if isinstance(choices, int) and choices > 1 else 1


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
    # LiteLLM counts what Anthropic writes to the cache within the input.
    cache_write = min(cache_write, (read or 0) - cached)
    return Usage((read or 0) - cached - cache_write, written or 0, cached, cache_write)


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _count(value: Any, *names: str) -> int | None:
    found = (_get(value, name) for name in names)
    return next((count for count in found if isinstance(count, int)), None)
