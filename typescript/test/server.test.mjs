// The package against the server at ZAE_LIMITER_URL, with the token in ZAE_LIMITER_TOKEN.
import assert from "node:assert/strict";
import { test } from "node:test";
import { DisabledError, InvalidError, NotFoundError, PermissionError, RateLimiter, RefusedError } from "zae-limiter-client";
import { limits, onServer, signal, url } from "./support.mjs";

const { limiter, unsettled } = onServer();
const left = async (entity, resource = "gpt-4") => (await limiter.available(entity, resource)).tokens;
await limiter.request("PUT", "/v1/limits", { body: { limits } });

test.afterEach(() => assert.deepEqual(unsettled, []));

test("a lease is adjusted and committed", async () => {
  const result = await limiter.run("commit", "org/gpt-4", { rpm: 1, tpm: 500 }, async (lease) => {
    assert.equal(lease.admission, "counted");
    assert.deepEqual(lease.limits.map((limit) => limit.limit_name), ["rpm", "tpm"]);
    lease.adjust({ tpm: 100 });
    lease.adjust({ tpm: 20 });
    return "result";
  });
  assert.equal(result, "result");
  assert.deepEqual(await left("commit", "org/gpt-4"), { rpm: 4, tpm: 9380 });
});

test("a commit returns what was consumed, and a lease ends once", async () => {
  const lease = await limiter.acquire("once", "gpt-4", { rpm: 1, tpm: 500 });
  lease.adjust({ tpm: -100 });
  const settlement = await lease.commit();
  assert.deepEqual(settlement, { consumed: { rpm: 1, tpm: 400 }, written: true });
  assert.equal(await lease.rollback(), settlement);
  assert.deepEqual(await left("once"), { rpm: 4, tpm: 9600 });
});

test("a call that throws gives everything back and keeps its exception", async () => {
  const failure = new TypeError("no response");
  const call = async () => {
    throw failure;
  };
  await assert.rejects(limiter.run("throws", "gpt-4", { rpm: 1, tpm: 500 }, call), (error) => error === failure);
  assert.deepEqual(await left("throws"), { rpm: 5, tpm: 10000 });
});

test("an estimate is taken by the prices of the resource, and corrected to the usage", async () => {
  const query = { resource: "priced" };
  const money = { name: "usd", capacity: 1_000_000, refill_amount: 1, refill_period_seconds: 86400 };
  await limiter.request("PUT", "/v1/limits", { query, body: { limits: [...limits, money] } });
  await limiter.request("PUT", "/v1/prices", { query, body: { input: "$2", output: "$8", max_output: 4_096 } });
  const lease = await limiter.acquire("priced", "priced", { rpm: 1 }, { estimate: { input: 1_000, max_output: 500 } });
  assert.deepEqual(await left("priced", "priced"), { rpm: 4, tpm: 8_500, usd: 994_000 });
  const settlement = await lease.commitUsage({ input: 200, cached_input: 800, output: 100 });
  assert.deepEqual(settlement, { consumed: { rpm: 1, tpm: 1_100, usd: 2_800 }, written: true });
  assert.deepEqual(await left("priced", "priced"), { rpm: 4, tpm: 8_900, usd: 997_200 });
  const unpriced = limiter.acquire("priced", "gpt-4", {}, { estimate: { input: 1 } });
  await assert.rejects(unpriced, NotFoundError);
});

test("a call charges several resources, all or none", async () => {
  const budget = [{ name: "usd", capacity: 100, refill_amount: 1, refill_period_seconds: 86400 }];
  await limiter.request("PUT", "/v1/limits", { query: { resource: "budget" }, body: { limits: budget } });
  const acquire = (usd, options = {}) =>
    limiter.acquire("several", "gpt-4", { rpm: 1, tpm: 500 }, { also: [{ resource: "budget", consume: { usd } }], ...options });
  const lease = await acquire(12);
  lease.adjust({ tpm: 120 });
  lease.adjust({ usd: 1 });
  lease.adjust({ usd: 2 }, "budget");
  const also = [{ resource: "budget", consumed: { usd: 15 } }];
  assert.deepEqual(await lease.commit(), { consumed: { rpm: 1, tpm: 620 }, also, written: true });
  await assert.rejects(acquire(86), RefusedError);
  assert.deepEqual(await (await acquire(85)).rollback(), {
    consumed: { rpm: 0, tpm: 0 },
    also: [{ resource: "budget", consumed: { usd: 0 } }],
    written: true,
  });
  // Without a lease on the server.
  const kept = await acquire(10, { leaseMs: 0 });
  kept.adjust({ usd: -4 });
  assert.deepEqual((await kept.commit()).also, [{ resource: "budget", consumed: { usd: 6 } }]);
  assert.deepEqual((await (await acquire(10, { leaseMs: 0 })).rollback()).also, [{ resource: "budget", consumed: { usd: 0 } }]);
  assert.deepEqual(await left("several"), { rpm: 3, tpm: 8_880 });
  assert.deepEqual(await left("several", "budget"), { usd: 79 });
});

test("a limit that several resources have needs its resource", async () => {
  const also = [{ resource: "gpt-5", consume: { rpm: 2 } }];
  const lease = await limiter.acquire("ambiguous", "gpt-4", { rpm: 1 }, { also });
  lease.adjust({ rpm: 1 });
  const { error, written } = await lease.commit();
  assert.match(error.message, /gpt-4, gpt-5/);
  assert.equal(written, false);
  assert.equal(unsettled.pop(), error);
});

test("a lease that is disposed gives everything back unless it is committed", async () => {
  const dropped = await limiter.acquire("disposed", "gpt-4", { rpm: 1 });
  await dropped[Symbol.asyncDispose]();
  const kept = await limiter.acquire("disposed", "gpt-4", { rpm: 1 });
  await kept.commit();
  await kept[Symbol.asyncDispose]();
  assert.equal((await left("disposed")).rpm, 4);
});

test("a refusal names the limit and says when to come back", async () => {
  await limiter.acquire("refused", "gpt-4", { rpm: 5 }, { leaseMs: 0 });
  await assert.rejects(limiter.acquire("refused", "gpt-4", { rpm: 1 }), (error) => {
    assert(error instanceof RefusedError);
    assert.equal(error.kind, "refused");
    assert.equal(error.status, 429);
    assert.deepEqual(error.exceeded, ["rpm"]);
    assert.equal(error.limits[0].available, 0);
    assert(error.retryAfterSeconds > 80000, String(error.retryAfterSeconds));
    return true;
  });
  await assert.rejects(limiter.acquire("refused", "gpt-4", { rpm: 6 }), { kind: "refused", retryAfterSeconds: null });
});

test("a disabled resource is an error of its own", async () => {
  await limiter.request("PUT", "/v1/mode", { query: { resource: "disabled" }, body: { mode: "disabled" } });
  await assert.rejects(limiter.acquire("anyone", "disabled", { rpm: 1 }), (error) => {
    assert(error instanceof DisabledError);
    assert.deepEqual([error.kind, error.status], ["disabled", 403]);
    return true;
  });
});

test("a repeated key takes nothing", async () => {
  const options = { idempotencyKey: "package-k1" };
  const first = await limiter.acquire("key", "gpt-4", { rpm: 1 }, options);
  const again = await limiter.acquire("key", "gpt-4", { rpm: 1 }, options);
  assert.equal(first.id, again.id);
  await first.commit();
  assert.equal((await left("key")).rpm, 4);
});

test("a lease is renewed while its call runs", async ({ mock }) => {
  const renewed = signal();
  const observed = async (address, init) => {
    const response = await fetch(address, init);
    if (address.endsWith("/renew")) renewed.resolve(response.status);
    return response;
  };
  const { limiter: observing, unsettled } = onServer({ fetch: observed });
  mock.timers.enable({ apis: ["setTimeout"] });
  const call = () => {
    // The next renewal is due now.
    mock.timers.tick(1_200_000);
    return renewed.promise;
  };
  const status = await observing.run("renewed", "gpt-4", { rpm: 1 }, call, { leaseMs: 3_600_000 });
  mock.timers.reset();
  assert.equal(status, 200);
  assert.deepEqual(unsettled, []);
  assert.equal((await left("renewed")).rpm, 4);
});

/** A lease that has expired. */
async function expired(entity) {
  const lease = await limiter.acquire(entity, "gpt-4", { rpm: 1, tpm: 500 }, { leaseMs: 1, renewForMs: 0 });
  for (;;) {
    try {
      await limiter.request("POST", "/v1/leases/{id}/adjust", { path: { id: lease.id }, body: {} });
    } catch (error) {
      assert.equal(error.problem?.ended, "expired");
      return lease;
    }
  }
}

test("a lease that has expired is corrected without it", async () => {
  const lease = await expired("expired");
  lease.adjust({ tpm: 120 });
  assert.deepEqual(await lease.commit(), { consumed: { rpm: 1, tpm: 620 }, written: true });
  assert.deepEqual(await left("expired"), { rpm: 4, tpm: 9380 });
});

test("tokens without a lease are corrected too", async () => {
  const lease = await limiter.acquire("no-lease", "gpt-4", { rpm: 1, tpm: 500 }, { leaseMs: 0 });
  assert.equal(lease.id, null);
  lease.adjust({ tpm: 20 });
  assert.deepEqual(await lease.commit(), { consumed: { rpm: 1, tpm: 520 }, written: true });
  assert.deepEqual(await left("no-lease"), { rpm: 4, tpm: 9480 });
});

test("a planned call is checked and takes nothing", async () => {
  const { tokens } = await limiter.available("planned", "gpt-4", { rpm: 6 });
  assert.deepEqual(tokens, { rpm: 5, tpm: 10000 });
});

test("errors have classes by what the caller can do", async () => {
  const stranger = new RateLimiter(url, { token: "not-a-token-of-it" });
  await assert.rejects(stranger.available("e", "gpt-4"), PermissionError);
  await assert.rejects(limiter.acquire("e", "gpt-4", {}), InvalidError);
  await assert.rejects(limiter.request("GET", "/v1/entities/{entity}", { path: { entity: "nobody" } }), NotFoundError);
  const entity = { entity_id: "twice" };
  await limiter.request("POST", "/v1/entities", { body: entity });
  await assert.rejects(limiter.request("POST", "/v1/entities", { body: entity }), {
    kind: "conflict",
    problemType: "entity-exists",
  });
});

test("an aborted acquire takes nothing", async () => {
  const reason = new Error("the user left");
  const signal = AbortSignal.abort(reason);
  await assert.rejects(limiter.acquire("aborted", "gpt-4", { rpm: 1 }, { signal }), (error) => error === reason);
  assert.equal((await left("aborted")).rpm, 5);
});
