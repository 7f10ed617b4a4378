// Runs the client against the server at ZAE_LIMITER_URL, with the token in ZAE_LIMITER_TOKEN.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import * as client from "./zae-limiter.mjs";

const { RateLimiter, RateLimitExceeded, ServerError } = client;
const url = process.env.ZAE_LIMITER_URL;
const limiter = new RateLimiter(url, { token: process.env.ZAE_LIMITER_TOKEN });
// One token a day comes back: what is left says exactly what was written.
const limits = [
  { name: "rpm", capacity: 5, refill_amount: 1, refill_period_seconds: 86400 },
  { name: "tpm", capacity: 10000, refill_amount: 1, refill_period_seconds: 86400 },
];
await limiter.request("PUT", "/v1/limits", { limits });

test("a lease is adjusted and committed", async () => {
  const result = await limiter.limited("ts-commit", "org/gpt-4", { rpm: 1, tpm: 500 }, async (lease) => {
    assert.equal(lease.admission, "counted");
    lease.adjust({ tpm: 100 });
    lease.adjust({ tpm: 20 });
    return "result";
  });
  assert.equal(result, "result");
  assert.deepEqual(await limiter.available("ts-commit", "org/gpt-4"), { rpm: 4, tpm: 9380 });
});

test("a call that throws gives everything back", async () => {
  const call = async () => {
    throw new TypeError("no response");
  };
  await assert.rejects(limiter.limited("ts-rollback", "gpt-4", { rpm: 1, tpm: 500 }, call), TypeError);
  assert.deepEqual(await limiter.available("ts-rollback", "gpt-4"), { rpm: 5, tpm: 10000 });
});

test("a refusal says when to come back", async () => {
  await limiter.acquire("ts-refused", "gpt-4", { rpm: 5 }, { leaseMs: 0 });
  await assert.rejects(limiter.acquire("ts-refused", "gpt-4", { rpm: 1 }), (error) => {
    assert(error instanceof RateLimitExceeded);
    assert(error.retryAfter > 80000, String(error.retryAfter));
    return true;
  });
  await assert.rejects(limiter.acquire("ts-refused", "gpt-4", { rpm: 6 }), { retryAfter: null });
});

test("a repeated key takes nothing and a lease ends once", async () => {
  const options = { idempotencyKey: "ts-k1" };
  const first = await limiter.acquire("ts-key", "gpt-4", { rpm: 1 }, options);
  const again = await limiter.acquire("ts-key", "gpt-4", { rpm: 1 }, options);
  assert.equal(first.id, again.id);
  assert.deepEqual(await first.commit(), { rpm: 1 });
  await assert.rejects(again.commit(), (error) => error instanceof ServerError && error.status === 410);
});

test("tokens without a lease are consumed at once", async () => {
  const lease = await limiter.acquire("ts-at-once", "gpt-4", { rpm: 1 }, { leaseMs: 0 });
  assert.equal(lease.id, null);
  assert.deepEqual(await lease.commit(), { rpm: 1 });
  await lease.rollback();
  const call = async () => {
    throw new TypeError("no response");
  };
  await assert.rejects(limiter.limited("ts-at-once", "gpt-4", { rpm: 1 }, call, { leaseMs: 0 }), TypeError);
  assert.equal((await limiter.available("ts-at-once", "gpt-4")).rpm, 3);
});

test("a lease is renewed while its call runs", async () => {
  const call = async (lease) => {
    await new Promise((resolve) => setTimeout(resolve, 1500));
    lease.adjust({ tpm: -100 });
  };
  await limiter.limited("ts-renew", "gpt-4", { rpm: 1, tpm: 500 }, call, { leaseMs: 600 });
  assert.deepEqual(await limiter.available("ts-renew", "gpt-4"), { rpm: 4, tpm: 9600 });
});

test("a lease that has expired is settled without it", async () => {
  const kept = await limiter.acquire("ts-expired", "gpt-4", { rpm: 1, tpm: 500 }, { leaseMs: 1 });
  const returned = await limiter.acquire("ts-expired", "gpt-4", { rpm: 1, tpm: 500 }, { leaseMs: 1 });
  await new Promise((resolve) => setTimeout(resolve, 50));
  kept.adjust({ tpm: -100 });
  assert.deepEqual(await kept.commit(), { rpm: 1, tpm: 400 });
  await returned.rollback();
  assert.deepEqual(await limiter.available("ts-expired", "gpt-4"), { rpm: 4, tpm: 9600 });
});

test("a lease that cannot be ended replaces neither result nor exception", async () => {
  const end = (lease) => limiter.request("DELETE", `/v1/leases/${lease.id}`);
  const result = await limiter.limited("ts-ended", "gpt-4", { rpm: 1 }, async (lease) => {
    await end(lease);
    return "kept";
  });
  assert.equal(result, "kept");
  const failing = async (lease) => {
    await end(lease);
    throw new TypeError("no response");
  };
  await assert.rejects(limiter.limited("ts-ended", "gpt-4", { rpm: 1 }, failing), TypeError);
});

test("a wrong token is an error", async () => {
  const other = new RateLimiter(url, { token: "not-a-token-of-it" });
  await assert.rejects(other.available("ts", "gpt-4"), { status: 401 });
});

test("the declarations name what the module exports", async () => {
  const text = await readFile(new URL("zae-limiter.d.mts", import.meta.url), "utf8");
  const declared = [...text.matchAll(/export declare class (\w+)/g)].map((match) => match[1]);
  assert.deepEqual(declared.sort(), Object.keys(client).sort());
  for (const name of declared) {
    const body = text.split(`class ${name} `)[1].split("\n}")[0];
    const methods = [...body.matchAll(/^  (\w+)[<(]/gm)].map((match) => match[1]);
    for (const method of methods) assert(method in client[name].prototype, `${name}.${method}`);
  }
});
