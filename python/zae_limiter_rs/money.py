"""Prices of resources, and what calls cost: exact, in whole micro-dollars."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from . import _core
from .exceptions import ValidationError

__all__ = ["Estimate", "Prices", "Usage", "dollars", "micro_dollars"]

_MONEY_FIELDS = ("input", "output", "cached_input", "cache_write", "per_call")


def micro_dollars(text: str) -> int:
    """Money as a limit counts it: ``micro_dollars("$12.50")`` is 12,500,000."""
    return _core.micro_dollars("money", text)


def dollars(amount: int) -> str:
    """An amount in micro-dollars as text: ``dollars(12_500_000)`` is ``"$12.50"``. Debts are below zero."""
    return _core.dollars(amount)


def _check_counts(what: str, counts: dict[str, Any]) -> None:
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ValidationError(f"{what}.{name}", str(count), "must be a whole number of tokens or calls, not negative")


@dataclass(frozen=True)
class Usage:
    """What a call used. No token is in two of the numbers: cached input and what is written to the cache are not part of
    ``input``."""

    input: int = 0
    output: int = 0
    cached_input: int = 0
    cache_write: int = 0
    calls: int = 1

    def __post_init__(self) -> None:
        _check_counts("usage", asdict(self))

    @property
    def tokens(self) -> int:
        """All tokens, whatever they cost."""
        return self.input + self.output + self.cached_input + self.cache_write

    def _dump(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Estimate:
    """What is known of a call before it is made: its input, and the most output that it asks for, if it says so."""

    input: int
    max_output: int | None = None

    def __post_init__(self) -> None:
        _check_counts("estimate", {name: count for name, count in asdict(self).items() if count is not None})

    def _dump(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Prices per million tokens, as text such as ``"$2.50"``, and per call. Cached input and cache writes without a price of their
    own cost as much as other input.

    ``default_output`` is expected of a request that does not limit its output, ``max_output`` is the model's maximum.
    ``money_limit`` counts micro-dollars, ``token_limits`` count tokens.
    """

    input: str | None = None
    output: str | None = None
    cached_input: str | None = None
    cache_write: str | None = None
    per_call: str | None = None
    default_output: int | None = None
    max_output: int | None = None
    money_limit: str = "usd"
    token_limits: tuple[str, ...] = ("tpm",)

    def __post_init__(self) -> None:
        for name in _MONEY_FIELDS:
            price = getattr(self, name)
            if price is not None:
                # One text for one amount, so that equal prices are equal.
                object.__setattr__(self, name, _core.dollars(_core.micro_dollars(name, price)))
        _check_counts("prices", {name: getattr(self, name) for name in ("default_output", "max_output") if getattr(self, name) is not None})
        object.__setattr__(self, "token_limits", _names(self.token_limits))
        _core.check_prices(self._dump())

    def cost(self, usage: Usage) -> int:
        """What a usage costs, in micro-dollars, rounded up."""
        return _core.cost(self._dump(), usage._dump())

    def amounts(self, usage: Usage) -> dict[str, int]:
        """What a usage takes of the limits that count tokens and money."""
        return _core.amounts(self._dump(), usage._dump())

    def estimate(self, estimate: Estimate) -> Usage:
        """What a call is expected to use: its input, and the output that it asks for, else ``default_output``, else
        ``max_output``; never more than ``max_output``."""
        return Usage(input=estimate.input, output=_core.expected_output(self._dump(), estimate._dump()))

    def to_dict(self) -> dict[str, Any]:
        """The fields that are set, by name."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items() if value is not None}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Prices:
        """The reverse of :meth:`to_dict`."""
        return cls(**data)

    def _dump(self) -> str:
        return json.dumps(self.to_dict())


def _names(names: Iterable[str]) -> tuple[str, ...]:
    """The names in order, each once."""
    if isinstance(names, str):
        raise ValidationError("token_limits", names, "must be a collection of names")
    return tuple(sorted(set(names)))
