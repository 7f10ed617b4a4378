"""What leases with and without asyncio have in common."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import _core
from ._errors import status
from ._names import validate_resource
from .exceptions import RateLimiterUnavailable, ValidationError
from .models import Admission, Limit, LimitStatus, OnUnavailable
from .money import Estimate

if TYPE_CHECKING:
    from ._limiter import LimiterBase

LOG = logging.getLogger("zae_limiter_rs.lease")

Limiter = TypeVar("Limiter", bound="LimiterBase[Any]")


@dataclass(frozen=True)
class Also:
    """What a call takes of another resource of the same entity, such as a budget that several models share.

    ``estimate`` and ``limits`` are those of ``acquire``. ``cascade`` says whether the entity's parent is charged too, on this resource;
    the entity's record says so unless it is set.
    """

    resource: str
    consume: dict[str, int]
    estimate: Estimate | None = None
    limits: list[Limit] | None = None
    cascade: bool | None = None

    def __post_init__(self) -> None:
        validate_resource(self.resource)
        checked_amounts(self.consume)

    def _options(self) -> dict[str, Any]:
        part = _part(self.limits, self.estimate, self.cascade)
        return {"resource": self.resource, "consume": self.consume, **part}


class LeaseBase:
    """Tokens in use, of all resources of a call, or of one."""

    def __init__(self, core: _core.Lease, resource: str | None = None) -> None:
        self._core = core
        self._resource = resource

    @property
    def consumed(self) -> dict[str, int]:
        """The tokens that the entity itself has used, adjustments included; of the first resource if the call has several."""
        return self._core.consumed(self._resource)

    @property
    def admission(self) -> Admission:
        """Whether the tokens were taken from the table, and if not, why the call was admitted."""
        return Admission(self._core.admission())

    @property
    def is_counted(self) -> bool:
        """False if the tokens were not taken from the table: see ``admission``."""
        return self.admission is Admission.COUNTED

    @property
    def observed_limits(self) -> list[LimitStatus]:
        """Limits that would have refused the call if they were enforced."""
        return [status(entry) for entry in self._core.observed_limits()]

    @property
    def is_lost(self) -> bool:
        """True if permits of a limit on calls in flight have expired, because they could not be renewed. Other calls may run in their
        place."""
        return self._core.is_lost()

    @property
    def resources(self) -> list[str]:
        """The resources of the call, in its order."""
        return self._core.resources()

    @property
    def statuses(self) -> list[LimitStatus]:
        """Every limit after the tokens were taken, by resource: the entity's own, then its parents'."""
        return [status(entry) for entry in self._core.statuses()]

    def _adjust(self, amounts: dict[str, int]) -> None:
        for name, amount in amounts.items():
            if amount:
                self._core.adjust(name, amount, self._resource)

    def _checked_resource(self, resource: str) -> str:
        own = self.resources
        if resource not in own:
            raise ValidationError("resource", resource, f"the lease is on {', '.join(own)}")
        return resource


class AcquireBase(Generic[Limiter]):
    """A call that is about to be limited, and the lease that it holds."""

    def __init__(
        self,
        limiter: Limiter,
        entity_id: str,
        resource: str,
        consume: dict[str, int],
        limits: list[Limit] | None,
        on_unavailable: OnUnavailable | None,
        wait: float | None,
        estimate: Estimate | None,
        also: Iterable[Also],
        cascade: bool | None,
    ) -> None:
        options = {
            **_part(limits, estimate, cascade),
            "also": [other._options() for other in also] or None,
            "on_unavailable": None if on_unavailable is None else on_unavailable.value,
            "wait": wait,
        }
        given = {name: value for name, value in options.items() if value is not None}
        self._limiter = limiter
        self._entity_id = entity_id
        self._resource = resource
        self._consume = consume
        self._options = json.dumps(given) if given else None
        self._held: tuple[int, _core.Lease] | None = None

    def _start(self, limiter: _core.RateLimiter) -> _core.Call:
        return limiter.acquire(self._entity_id, self._resource, checked_amounts(self._consume), self._options)

    def _unavailable(self, error: RateLimiterUnavailable) -> RateLimiterUnavailable:
        """The error with the call that it concerns."""
        return RateLimiterUnavailable(
            str(error),
            cause=error,
            stack_name=self._limiter.stack_name,
            entity_id=self._entity_id,
            resource=self._resource,
        )

    def _hold(self, lease: _core.Lease) -> _core.Lease:
        self._held = (os.getpid(), lease)
        return lease

    def _release(self) -> _core.Lease | None:
        """The lease, if it is to be ended: the body has not committed it, and has not left it to a forked child. The tokens are those
        of the process that took them."""
        held, self._held = self._held, None
        if held is None or held[0] != os.getpid() or not held[1].is_active():
            return None
        return held[1]

    def _keep(self) -> None:
        """Keeps the tokens, where nobody can wait for what is to be written."""
        lease = self._release()
        if lease is not None:
            lease.commit()


def _part(limits: list[Limit] | None, estimate: Estimate | None, cascade: bool | None) -> dict[str, Any]:
    """What a call states about one resource besides amounts."""
    return {
        "limits": None if limits is None else [limit.to_dict() for limit in limits],
        "estimate": None if estimate is None else asdict(estimate),
        "cascade": cascade,
    }


def checked_amounts(amounts: dict[str, int]) -> dict[str, int]:
    """The amounts, none of them below zero."""
    for name, amount in amounts.items():
        if amount < 0:
            raise ValidationError(name, str(amount), "must not be negative; use adjust or release to give tokens back")
    return amounts
