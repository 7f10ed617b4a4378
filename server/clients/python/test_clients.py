"""Runs the clients against the server at ZAE_LIMITER_URL, with the token in ZAE_LIMITER_TOKEN."""

import asyncio
import os
import sys
import unittest

import httpx
from zae_limiter_http import Disabled, RateLimiter, RateLimitExceeded, ServerError, SyncRateLimiter, Unavailable

# No result of a test depends on how fast the machine is.
SERVER = (os.environ["ZAE_LIMITER_URL"], os.environ["ZAE_LIMITER_TOKEN"], 600.0)
LIMITER = RateLimiter(*SERVER)
# One token a day comes back: what is left says exactly what was written.
LIMITS = [
    {"name": "rpm", "capacity": 5, "refill_amount": 1, "refill_period_seconds": 86400},
    {"name": "tpm", "capacity": 10000, "refill_amount": 1, "refill_period_seconds": 86400},
]


async def expired(lease):
    """Waits until the server has ended a lease by itself."""
    while True:
        try:
            await LIMITER.request("POST", f"/v1/leases/{lease.id}/adjust", {})
        except ServerError as error:
            assert error.problem["ended"] == "expired", error
            return


class ClientTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        # Each test has an event loop of its own.
        self.addAsyncCleanup(LIMITER.aclose)
        await LIMITER.request("PUT", "/v1/limits", {"limits": LIMITS})

    async def test_a_lease_is_adjusted_and_committed(self):
        async with LIMITER.acquire("py-commit", "org/gpt-4", {"rpm": 1, "tpm": 500}) as lease:
            self.assertEqual(lease.admission, "counted")
            lease.adjust({"tpm": 100})
            lease.adjust({"tpm": 20})
        self.assertEqual(await LIMITER.available("py-commit", "org/gpt-4"), {"rpm": 4, "tpm": 9380})

    async def test_an_exception_gives_everything_back(self):
        with self.assertRaises(ValueError):
            async with LIMITER.acquire("py-rollback", "gpt-4", {"rpm": 1, "tpm": 500}):
                raise ValueError
        self.assertEqual(await LIMITER.available("py-rollback", "gpt-4"), {"rpm": 5, "tpm": 10000})

    async def test_a_refusal_says_when_to_come_back(self):
        with self.assertRaises(RateLimitExceeded) as never:
            await LIMITER.acquire("py-refused", "gpt-4", {"rpm": 6})
        self.assertIsNone(never.exception.retry_after)
        await LIMITER.acquire("py-refused", "gpt-4", {"rpm": 5}, lease_ms=0)
        with self.assertRaises(RateLimitExceeded) as refused:
            await LIMITER.acquire("py-refused", "gpt-4", {"rpm": 1})
        self.assertGreater(refused.exception.retry_after, 80000)
        exceeded = [limit["limit_name"] for limit in refused.exception.limits if limit["exceeded"]]
        self.assertEqual(exceeded, ["rpm"])

    async def test_a_disabled_resource_is_an_error_of_its_own(self):
        await LIMITER.request("PUT", "/v1/mode?resource=py-disabled", {"mode": "disabled"})
        with self.assertRaises(Disabled) as disabled:
            await LIMITER.acquire("py-disabled", "py-disabled", {"rpm": 1})
        self.assertEqual(disabled.exception.status, 403)

    async def test_a_repeated_key_takes_nothing(self):
        first = await LIMITER.acquire("py-key", "gpt-4", {"rpm": 1}, idempotency_key="k1")
        again = await LIMITER.acquire("py-key", "gpt-4", {"rpm": 1}, idempotency_key="k1")
        self.assertEqual(first.id, again.id)
        await first.commit()
        with self.assertRaises(ServerError) as ended:
            await again.commit()
        self.assertEqual((ended.exception.status, ended.exception.problem["ended"]), (410, "committed"))
        self.assertEqual((await LIMITER.available("py-key", "gpt-4"))["rpm"], 4)

    async def test_a_repeated_request_names_the_replica_that_knows_its_key(self):
        sent = []
        gone = {"type": "urn:zae-limiter:problem:replica-gone", "title": "gone"}
        in_progress = {"type": "urn:zae-limiter:problem:request-in-progress", "title": "in progress"}
        granted = {"lease_id": None, "lease_ms": 0, "admission": "counted", "limits": []}
        responses = iter(
            [
                httpx.Response(200, json=granted, headers={"zae-limiter-replica": "one"}),
                httpx.Response(503, json={"title": "no response"}),
                httpx.Response(409, json=in_progress),
                httpx.Response(410, json=gone),
                httpx.Response(200, json=granted, headers={"zae-limiter-replica": "two"}),
                httpx.Response(200, json=granted),
            ]
        )

        def respond(request):
            sent.append((request.headers["idempotency-key"], request.headers.get("zae-limiter-replica")))
            return next(responses)

        limiter = RateLimiter("http://limiter.test", same_replica=True)
        limiter._http = lambda client=httpx.AsyncClient(transport=httpx.MockTransport(respond)): client
        for key in ("a", "b", "c"):
            await limiter.acquire("py-replica", "gpt-4", {"rpm": 1}, idempotency_key=key)
        self.assertEqual(sent, [("a", None), ("b", "one"), ("b", "one"), ("b", "one"), ("b", None), ("c", "two")])

    async def test_tokens_without_a_lease_are_consumed_at_once(self):
        async with LIMITER.acquire("py-at-once", "gpt-4", {"rpm": 1}, lease_ms=0) as lease:
            self.assertIsNone(lease.id)
        self.assertEqual(await lease.commit(), {"rpm": 1})
        with self.assertRaises(ValueError):
            async with LIMITER.acquire("py-at-once", "gpt-4", {"rpm": 1}, lease_ms=0):
                raise ValueError
        self.assertEqual((await LIMITER.available("py-at-once", "gpt-4"))["rpm"], 3)

    async def test_a_lease_is_renewed_while_its_block_runs(self):
        lease = await LIMITER.acquire("py-renew", "gpt-4", {"rpm": 1, "tpm": 500}, lease_ms=3_600_000)
        lease.renewal_seconds = 0.001
        renewed, renew = asyncio.Event(), lease.renew

        async def observed():
            await renew()
            renewed.set()

        lease.renew = observed
        async with lease:
            await renewed.wait()
            lease.adjust({"tpm": -100})
        self.assertIsNone(lease.error)
        self.assertEqual(await LIMITER.available("py-renew", "gpt-4"), {"rpm": 4, "tpm": 9600})

    async def test_a_lease_can_be_held_without_a_block(self):
        async with await LIMITER.acquire("py-await", "gpt-4", {"rpm": 1}) as lease:
            self.assertEqual(lease.admission, "counted")
        lease = await LIMITER.acquire("py-await", "gpt-4", {"rpm": 1})
        await lease.rollback()
        self.assertEqual((await LIMITER.available("py-await", "gpt-4"))["rpm"], 4)

    async def test_a_server_that_is_down_blocks_or_allows(self):
        # Nothing listens on this port.
        with self.assertRaises(Unavailable):
            await RateLimiter("http://127.0.0.1:1").acquire("py-down", "gpt-4", {"rpm": 1})
        allowing = RateLimiter("http://127.0.0.1:1", on_unavailable="allow")
        async with allowing.acquire("py-down", "gpt-4", {"rpm": 1}) as lease:
            self.assertEqual(lease.admission, "allowed_while_unavailable")
        self.assertIsNone(lease.error)

    async def test_a_lease_that_has_expired_is_settled_without_it(self):
        kept = await LIMITER.acquire("py-expired", "gpt-4", {"rpm": 1, "tpm": 500}, lease_ms=1)
        returned = await LIMITER.acquire("py-expired", "gpt-4", {"rpm": 1, "tpm": 500}, lease_ms=1)
        await expired(kept)
        await expired(returned)
        kept.adjust({"tpm": -100})
        self.assertEqual(await kept.commit(), {"rpm": 1, "tpm": 400})
        await returned.rollback()
        self.assertEqual(await LIMITER.available("py-expired", "gpt-4"), {"rpm": 4, "tpm": 9600})

    async def test_a_lease_that_cannot_be_ended_replaces_neither_result_nor_exception(self):
        with self.assertLogs("zae_limiter_http", "WARNING"):
            async with LIMITER.acquire("py-ended", "gpt-4", {"rpm": 1}) as lease:
                await LIMITER.request("DELETE", f"/v1/leases/{lease.id}")
                result = "kept"
        self.assertEqual((result, lease.error.status), ("kept", 410))
        with self.assertRaises(ValueError), self.assertLogs("zae_limiter_http", "WARNING"):
            async with LIMITER.acquire("py-ended", "gpt-4", {"rpm": 1}) as lease:
                await LIMITER.request("DELETE", f"/v1/leases/{lease.id}")
                raise ValueError

    async def test_a_call_that_is_canceled_while_it_acquires_gives_back_what_it_is_granted(self):
        limiter = RateLimiter(*SERVER)
        self.addAsyncCleanup(limiter.aclose)
        granted, respond, request = asyncio.Event(), asyncio.Event(), limiter.request

        async def delayed(method, path, *arguments):
            response = await request(method, path, *arguments)
            if path == "/v1/acquire":
                granted.set()
                await respond.wait()
            return response

        limiter.request = delayed

        async def call():
            async with limiter.acquire("py-cancel", "gpt-4", {"rpm": 1, "tpm": 500}):
                self.fail("the block of a canceled call ran")

        calling = asyncio.create_task(call())
        await granted.wait()
        self.assertEqual(await LIMITER.available("py-cancel", "gpt-4"), {"rpm": 4, "tpm": 9500})
        calling.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await calling
        respond.set()
        await limiter.settled()
        self.assertEqual(await LIMITER.available("py-cancel", "gpt-4"), {"rpm": 5, "tpm": 10000})

    async def test_a_call_that_is_canceled_while_it_ends_is_ended(self):
        limiter = RateLimiter(*SERVER)
        self.addAsyncCleanup(limiter.aclose)
        ending, go_on, request = asyncio.Event(), asyncio.Event(), limiter.request

        async def delayed(method, path, *arguments):
            if path.endswith("/commit"):
                ending.set()
                await go_on.wait()
            return await request(method, path, *arguments)

        limiter.request = delayed

        async def call():
            async with limiter.acquire("py-cancel-end", "gpt-4", {"rpm": 1, "tpm": 500}) as lease:
                lease.adjust({"tpm": -100})

        calling = asyncio.create_task(call())
        await ending.wait()
        calling.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await calling
        go_on.set()
        await limiter.settled()
        self.assertEqual(await LIMITER.available("py-cancel-end", "gpt-4"), {"rpm": 4, "tpm": 9600})

    async def test_a_program_that_ends_while_it_acquires_ends_without_noise(self):
        program = """
import asyncio
from zae_limiter_http import RateLimiter

async def main():
    limiter, sent = RateLimiter("http://127.0.0.1:1"), asyncio.Event()

    async def request(*_):
        sent.set()
        await asyncio.Event().wait()

    limiter.request = request
    asyncio.get_running_loop().acquiring = asyncio.ensure_future(limiter.acquire("py-end", "gpt-4", {"rpm": 1})._take())
    await sent.wait()

asyncio.run(main())
"""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        output, _ = await process.communicate()
        self.assertEqual((process.returncode, output), (0, b""))

    async def test_an_estimate_is_corrected_to_the_usage(self):
        limits = [*LIMITS, {"name": "usd", "quota": 1_000_000, "per": "year"}]
        await LIMITER.request("PUT", "/v1/limits?resource=py-priced", {"limits": limits})
        await LIMITER.request("PUT", "/v1/prices?resource=py-priced", {"input": "$2", "output": "$8", "max_output": 4_096})
        estimate = {"input": 1_000, "max_output": 500}
        async with LIMITER.acquire("py-priced", "py-priced", {"rpm": 1}, estimate=estimate) as lease:
            self.assertEqual(lease.taken, {"rpm": 1, "tpm": 1_500, "usd": 6_000})
            lease.adjust_to_usage({"input": 1_000, "output": 10})
            lease.adjust_to_usage({"input": 200, "cached_input": 800, "output": 100})
        self.assertIsNone(lease.error)
        self.assertEqual(await LIMITER.available("py-priced", "py-priced"), {"rpm": 4, "tpm": 8_900, "usd": 997_200})
        # An estimate is given back with the rest.
        with self.assertRaises(ValueError):
            async with LIMITER.acquire("py-priced", "py-priced", {"rpm": 1}, estimate=estimate):
                raise ValueError
        self.assertEqual(await LIMITER.available("py-priced", "py-priced"), {"rpm": 4, "tpm": 8_900, "usd": 997_200})

    async def test_names_are_quoted_in_addresses(self):
        await LIMITER.acquire("py:quote@example.com", "org/gpt-4", {"rpm": 1}, lease_ms=0)
        self.assertEqual((await LIMITER.available("py:quote@example.com", "org/gpt-4"))["rpm"], 4)
        with self.assertRaises(ServerError) as invalid:
            await LIMITER.available("py/other?x=#y", "gpt-4")
        self.assertEqual(invalid.exception.status, 400)
        self.assertIn("py/other?x=#y", str(invalid.exception))

    async def test_a_wrong_token_is_an_error(self):
        other = RateLimiter(LIMITER.url, "not-a-token-of-it")
        self.addAsyncCleanup(other.aclose)
        with self.assertRaises(ServerError) as wrong:
            await other.available("py", "gpt-4")
        self.assertEqual(wrong.exception.status, 401)


class SyncTest(unittest.TestCase):
    def test_the_same_without_asyncio(self):
        limiter = SyncRateLimiter(*SERVER)
        self.addCleanup(limiter.close)
        limiter.request("PUT", "/v1/limits", {"limits": LIMITS})
        with limiter.acquire("py-sync", "gpt-4", {"rpm": 1, "tpm": 500}) as lease:
            lease.adjust({"tpm": 120})
        self.assertEqual(limiter.available("py-sync", "gpt-4"), {"rpm": 4, "tpm": 9380})
        with self.assertRaises(ValueError), limiter.acquire("py-sync", "gpt-4", {"rpm": 1}):
            raise ValueError
        with self.assertRaises(RateLimitExceeded), limiter.acquire("py-sync", "gpt-4", {"rpm": 6}):
            self.fail("it was admitted")
        self.assertEqual(limiter.available("py-sync", "gpt-4"), {"rpm": 4, "tpm": 9380})

    def test_a_forked_child_starts_a_thread_of_its_own_and_leaves_leases_alone(self):
        limiter = SyncRateLimiter(*SERVER)
        self.addCleanup(limiter.close)
        limiter.request("PUT", "/v1/limits", {"limits": LIMITS})
        held = limiter.acquire("py-fork", "gpt-4", {"rpm": 1})
        held.__enter__()
        child = os.fork()
        if child == 0:
            try:
                with limiter.acquire("py-fork", "gpt-4", {"rpm": 2}):
                    pass
                held.__exit__(ValueError, ValueError(), None)
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        held.__exit__(None, None, None)
        self.assertEqual(limiter.available("py-fork", "gpt-4")["rpm"], 2)


if __name__ == "__main__":
    unittest.main()
