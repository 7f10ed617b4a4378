"""Client of the zae-limiter server, with and without asyncio. Needs Python 3.11 and httpx.

    limiter = RateLimiter("http://127.0.0.1:8080")
    async with limiter.acquire("user-1", "gpt-4", {"rpm": 1, "tpm": 500}) as lease:
        response = await call_model()
        lease.adjust({"tpm": response.tokens - 500})

`SyncRateLimiter` is the same without `async` and `await`. Leaving the block commits the lease with its adjustments; an exception gives everything back. The lease is renewed while the
block runs. A lease that cannot be ended is logged: the block's result, or its exception, is never replaced. A call that is canceled while it
acquires gives back what it is granted, and one that is canceled while it ends goes on to end: `aclose` waits for both.

With prices, `estimate={"input": 2000, "max_output": 500}` takes tokens and money, and `lease.adjust_to_usage({"input": 2000, "output": 120})`
corrects both.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import uuid
from collections.abc import Coroutine, Generator
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

import httpx

LOG = logging.getLogger(__name__)
# How often a request is sent if the server cannot process it, and sending it again does no harm.
ATTEMPTS = 3
# The most seconds between two of them.
MAX_PAUSE = 2.0
# The replica that processed a request, and has to process the same one again.
REPLICA = "Zae-Limiter-Replica"
# A lease is renewed this many times before it would expire.
RENEWALS = 3


class LimiterError(Exception):
    """The base of the errors of this module."""


class Unavailable(LimiterError):
    """The server, or its table, could not be reached, or an earlier attempt is in progress. Nothing is known to be taken."""


class ServerError(LimiterError):
    """The server responded with problem details (RFC 9457)."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(f"{status}: {problem.get('detail') or problem.get('title')}")
        self.status = status
        self.problem = problem

    @property
    def is_lost_lease(self) -> bool:
        """The lease expired, or its server is gone. What it took stays taken, and can be corrected without it."""
        kind = self.problem.get("type", "").rsplit(":", 1)[-1]
        return kind == "lease-owner-gone" or (kind == "lease-ended" and self.problem.get("ended") == "expired")


class Disabled(ServerError):
    """The mode of the entity on the resource is disabled. Nothing was taken, and waiting does not help."""


class RateLimitExceeded(ServerError):
    """A limit is exceeded, and nothing was taken."""

    @property
    def retry_after(self) -> float | None:
        """Seconds until the call fits; None if it never does."""
        return self.problem.get("retry_after_seconds")

    @property
    def limits(self) -> list[dict[str, Any]]:
        """Every limit, the exceeded ones marked."""
        return self.problem.get("limits", [])


@dataclass
class Lease:
    """Tokens that were taken. It ends once: by `commit` or by `rollback`.

    With `lease_ms=0` there is no lease and `id` is None: the tokens are consumed, and `commit` and `rollback` do nothing.
    """

    limiter: RateLimiter
    entity: str
    resource: str
    id: str | None
    lease_ms: int
    admission: str
    limits: list[dict[str, Any]]
    # An estimate included.
    taken: dict[str, int] = field(default_factory=dict)
    # Seconds between renewals; a third of the lease unless set.
    renewal_seconds: float | None = None
    # Why the lease could not be ended when its block was left.
    error: Exception | None = None
    _adjust: dict[str, int] = field(default_factory=dict)
    _usage: dict[str, int] | None = None
    _renewing: asyncio.Task[None] | None = None

    def adjust(self, tokens: dict[str, int]) -> None:
        """Corrects what was used: more above zero, less below. It is written by `commit`."""
        for limit, count in tokens.items():
            self._adjust[limit] = self._adjust.get(limit, 0) + count

    def adjust_to_usage(self, usage: dict[str, int]) -> None:
        """Corrects tokens and money to what the call used, by the prices that the resource had when the lease was taken. It replaces
        an earlier usage; adjustments are added to it. It is written by `commit`. Without a lease there are no prices: the estimate stays
        taken."""
        self._usage = dict(usage)

    async def commit(self) -> dict[str, int]:
        """Keeps the tokens and writes the adjustments. Returns what was consumed."""
        if self.id is None:
            return dict(self.taken)
        body: dict[str, Any] = {"adjust": self._adjust}
        if self._usage is not None:
            body["usage"] = self._usage
        response = await self._end("POST", f"/v1/leases/{self.id}/commit", body, self._adjust)
        consumed = {limit: count + self._adjust.get(limit, 0) for limit, count in self.taken.items()}
        return response.get("consumed", consumed)

    async def rollback(self) -> None:
        """Gives everything back: the call did not happen."""
        if self.id is None:
            return
        back = {limit: -count for limit, count in self.taken.items()}
        await self._end("DELETE", f"/v1/leases/{self.id}", None, back)

    async def renew(self) -> None:
        """Holds the lease for another `lease_ms` from now on."""
        if self.id is not None:
            await self.limiter.request("POST", f"/v1/leases/{self.id}/renew", {"lease_ms": self.lease_ms})

    async def _end(
        self, method: str, path: str, body: dict[str, Any] | None, adjust: dict[str, int]
    ) -> dict[str, Any]:
        """Ends the lease, also if the caller is canceled meanwhile. If it is lost, corrects what it took without it."""
        return await asyncio.shield(self.limiter._start(self._send_end(method, path, body, adjust)))

    async def _send_end(
        self, method: str, path: str, body: dict[str, Any] | None, adjust: dict[str, int]
    ) -> dict[str, Any]:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self.limiter.request(method, path, body)
            except ServerError as error:
                if error.is_lost_lease and "usage" not in (body or {}):
                    return await self._adjust_without_lease(adjust)
                if attempt > 1 and error.problem.get("ended") in ("committed", "rolled_back"):
                    # An earlier attempt was processed, and its response was lost.
                    return {}
                raise
            except Unavailable:
                if attempt == ATTEMPTS:
                    raise
            await _pause(attempt)
        raise AssertionError("unreachable")

    async def _adjust_without_lease(self, adjust: dict[str, int]) -> dict[str, Any]:
        adjust = {limit: count for limit, count in adjust.items() if count}
        if adjust:
            body = {"entity": self.entity, "resource": self.resource, "adjust": adjust}
            await self.limiter.request("POST", "/v1/adjust", body, {"Idempotency-Key": f"lease-{self.id}"[:255]})
        return {}

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(self.renewal_seconds or self.lease_ms / 1000 / RENEWALS)
            try:
                await self.renew()
            except LimiterError as error:
                if isinstance(error, ServerError) and error.status in (404, 410):
                    return  # Ending the lease says what became of it.
                LOG.debug("lease of %s on %s was not renewed: %s", self.entity, self.resource, error)

    async def __aenter__(self) -> Lease:
        if self.id is not None:
            self._renewing = asyncio.create_task(self._keep_renewing())
        return self

    async def __aexit__(self, exception: type[BaseException] | None, *_: object) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            self._renewing = None
        try:
            await (self.commit() if exception is None else self.rollback())
        except LimiterError as error:
            # The call was made. Its result, or its exception, matters more than this.
            self.error = error
            LOG.warning("lease of %s on %s was not ended: %s", self.entity, self.resource, error)


async def _pause(attempt: int) -> None:
    await asyncio.sleep(min(0.25 * 2**attempt, MAX_PAUSE))


class Acquire:
    """A call that is about to be limited: `async with` it, or await it for a lease to end by yourself."""

    def __init__(self, limiter: RateLimiter, body: dict[str, Any], key: str | None, on_unavailable: str) -> None:
        self._limiter = limiter
        self._body = body
        self._key = key or str(uuid.uuid4())
        self._on_unavailable = on_unavailable
        self._lease: Lease | None = None

    def __await__(self) -> Generator[Any, None, Lease]:
        return self._take().__await__()

    async def __aenter__(self) -> Lease:
        self._lease = await self._take()
        return await self._lease.__aenter__()

    async def __aexit__(self, *exception: Any) -> None:
        if self._lease is not None:
            await self._lease.__aexit__(*exception)

    async def _take(self) -> Lease:
        sending = self._limiter._start(self._send())
        try:
            granted = await asyncio.shield(sending)
        except Unavailable:
            if self._on_unavailable != "allow":
                raise
            granted = {"lease_id": None, "lease_ms": 0, "admission": "allowed_while_unavailable", "limits": []}
        except asyncio.CancelledError:
            # Unless the event loop itself ends, and cancels everything.
            if not sending.cancelling():
                self._limiter._start(self._give_back(sending))
            raise
        return self._lease_of(granted)

    async def _give_back(self, sending: asyncio.Task[dict[str, Any]]) -> None:
        """Rolls back what the request is granted: its caller was canceled."""
        try:
            await self._lease_of(await sending).rollback()
        except LimiterError as error:
            LOG.debug("a canceled call of %s on %s: %s", self._body["entity"], self._body["resource"], error)

    def _lease_of(self, granted: dict[str, Any]) -> Lease:
        # The server knows what an estimate takes.
        requested = {limit["limit_name"]: limit["requested"] for limit in granted["limits"] if limit["requested"]}
        return Lease(
            self._limiter,
            self._body["entity"],
            self._body["resource"],
            granted["lease_id"],
            granted["lease_ms"],
            granted["admission"],
            granted["limits"],
            self._body["consume"] | requested,
        )

    async def _send(self) -> dict[str, Any]:
        # With its key, the same request takes tokens once. The server responds after the wait at the latest.
        headers, wait = {"Idempotency-Key": self._key}, self._body.get("wait_ms", 0) / 1000
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._limiter.request("POST", "/v1/acquire", self._body, headers, wait)
            except Unavailable:
                if attempt == ATTEMPTS:
                    raise
            await _pause(attempt)
        raise AssertionError("unreachable")


class RateLimiter:
    """A server, by its URL. Connections are kept open and belong to the event loop that they were opened in.

    While the server cannot be reached, `acquire` raises Unavailable, or lets calls pass with `on_unavailable="allow"`.

    Of several replicas behind a load balancer, one knows an idempotency key. With `same_replica=True` all acquires of this object are
    processed by one of them, so that a request that is sent again takes tokens once.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        timeout: float = 10.0,
        on_unavailable: Literal["block", "allow"] = "block",
        same_replica: bool = False,
    ) -> None:
        self.url = url.rstrip("/")
        self.token = token
        self.timeout = timeout
        self.on_unavailable = on_unavailable
        self.same_replica = same_replica
        self._replica: str | None = None
        self._client: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # Requests that end even if their callers are canceled. Each has its timeouts and attempts.
        self._tasks: set[asyncio.Task[Any]] = set()

    async def settled(self) -> None:
        """Waits until leases of canceled calls are ended."""
        loop = asyncio.get_running_loop()
        while tasks := {task for task in self._tasks if task.get_loop() is loop}:
            await asyncio.wait(tasks)

    async def aclose(self) -> None:
        """Waits until leases of canceled calls are ended, and closes the connections."""
        await self.settled()
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def acquire(
        self,
        entity: str,
        resource: str,
        consume: dict[str, int],
        *,
        wait_ms: int | None = None,
        lease_ms: int | None = None,
        idempotency_key: str | None = None,
        estimate: dict[str, int] | None = None,
    ) -> Acquire:
        """Takes the tokens of all limits, or raises RateLimitExceeded. `estimate` is what the call is expected to use, in tokens and money,
        by the prices of the resource."""
        body: dict[str, Any] = {"entity": entity, "resource": resource, "consume": consume}
        if estimate is not None:
            body["estimate"] = estimate
        if wait_ms is not None:
            body["wait_ms"] = wait_ms
        if lease_ms is not None:
            body["lease_ms"] = lease_ms
        return Acquire(self, body, idempotency_key, self.on_unavailable)

    async def available(self, entity: str, resource: str) -> dict[str, int]:
        """Available tokens by limit. A negative number is debt."""
        entity, resource = (quote(name, safe="") for name in (entity, resource))
        response = await self.request("GET", f"/v1/entities/{entity}/resources/{resource}/available")
        return response["tokens"]

    async def request(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        more_time: float = 0.0,
    ) -> dict[str, Any]:
        """Any other request of the API, such as `PUT /v1/limits`."""
        headers = dict(headers or {})
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        replica = self._replica if self.same_replica and "Idempotency-Key" in headers else None
        if replica is not None:
            headers[REPLICA] = replica
        timeout = self.timeout + more_time
        try:
            response = await self._http().request(method, self.url + path, json=body, headers=headers, timeout=timeout)
        except httpx.TransportError as error:
            raise Unavailable(f"{method} {self.url}{path} got no response: {error!r}") from error
        self._replica = response.headers.get(REPLICA, self._replica)
        content = _content(response)
        if response.is_success:
            return content
        if replica is not None and content.get("type", "").endswith(":replica-gone"):
            # Whatever it knew of the key is lost.
            self._replica = None
            del headers[REPLICA]
            return await self.request(method, path, body, headers, more_time)
        if response.status_code == 429:
            raise RateLimitExceeded(response.status_code, content)
        if content.get("type", "").endswith(":disabled"):
            raise Disabled(response.status_code, content)
        in_progress = content.get("type", "").endswith(":request-in-progress")
        if in_progress or response.status_code in (408, 502, 503, 504):
            raise Unavailable(f"{response.status_code}: {content.get('detail') or content.get('title')}")
        raise ServerError(response.status_code, content)

    def _start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Starts work that a canceled caller leaves behind."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _http(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            # Without a limit, commits do not queue behind acquires that wait for tokens.
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
            self._client, self._loop = httpx.AsyncClient(limits=limits), loop
        return self._client


def _content(response: httpx.Response) -> dict[str, Any]:
    """The JSON of a response. A proxy may send something else."""
    try:
        content = response.json() if response.content else {}
    except ValueError:
        content = None
    return content if isinstance(content, dict) else {"detail": response.text[:1000]}


class SyncLease:
    """A lease without asyncio. It is renewed by the thread of its limiter, and stays with the process that took it."""

    def __init__(self, limiter: SyncRateLimiter, acquire: Acquire) -> None:
        self._limiter = limiter
        self._acquire = acquire
        self._process = 0

    def __enter__(self) -> Lease:
        self._process = os.getpid()
        return self._limiter._run(self._acquire.__aenter__())

    def __exit__(self, *exception: Any) -> None:
        if self._process == os.getpid():
            self._limiter._run(self._acquire.__aexit__(*exception))


class SyncRateLimiter:
    """The same without asyncio: `with limiter.acquire("user-1", "gpt-4", {"rpm": 1}) as lease`.

    A thread of its own sends the requests, so that leases are renewed while their blocks run. A forked child starts its own.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        timeout: float = 10.0,
        on_unavailable: Literal["block", "allow"] = "block",
        same_replica: bool = False,
    ) -> None:
        self._new_limiter = lambda: RateLimiter(url, token, timeout, on_unavailable, same_replica)
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._limiter = self._new_limiter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="zae-limiter-http", daemon=True)
        self._thread.start()

    def _of_this_process(self) -> RateLimiter:
        """A child does not inherit the thread of its parent, and the connections stay with the parent."""
        if self._process != os.getpid():
            self._start()
        return self._limiter

    def close(self) -> None:
        """Closes the connections and ends the thread."""
        self._run(self._of_this_process().aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def acquire(self, entity: str, resource: str, consume: dict[str, int], **options: Any) -> SyncLease:
        """As that of `RateLimiter`, for `with`."""
        return SyncLease(self, self._of_this_process().acquire(entity, resource, consume, **options))

    def available(self, entity: str, resource: str) -> dict[str, int]:
        """Available tokens by limit. A negative number is debt."""
        return self._run(self._of_this_process().available(entity, resource))

    def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Any other request of the API."""
        return self._run(self._of_this_process().request(method, path, body))

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise
