// What the package does when requests fail. The server is a function that replaces `fetch`.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { RateLimiter, UnavailableError } from "zae-limiter-client";
import { signal } from "./support.mjs";

const json = (status, content, headers = {}) =>
  new Response(JSON.stringify(content), { status, headers: { "content-type": "application/json", ...headers } });
const problem = (status, type, members = {}) =>
  json(status, { type: `urn:zae-limiter:problem:${type}`, title: type, status, detail: type, ...members });
const granted = (lease_ms = 60_000) => json(200, { lease_id: "l1", lease_ms, admission: "counted", limits: [] });
const committed = () => json(200, { lease_id: "l1", consumed: { rpm: 1, tpm: 400 }, written: true });
const broken = () => {
  throw new TypeError("fetch failed", { cause: new Error("connection refused") });
};

/** A limiter whose server responds by path: a list of responses for each, or a function of the request. */
function faulty(routes, options = {}) {
  const requests = [];
  const unsettled = [];
  const fetch = async (address, init) => {
    const path = new URL(address).pathname;
    const body = init.body === undefined ? undefined : JSON.parse(init.body);
    requests.push({ method: init.method, path, key: init.headers["idempotency-key"], body });
    const route = routes[`${init.method} ${path}`] ?? (() => problem(404, "not-found"));
    const next = typeof route === "function" ? route : route.length > 1 ? route.shift() : route[0];
    return next(body);
  };
  const onUnsettled = (error) => unsettled.push(error);
  const limiter = new RateLimiter("http://limiter.example/", { fetch, onUnsettled, ...options });
  return { limiter, requests, unsettled, sent: (path) => requests.filter((request) => request.path === path) };
}

const COMMIT = "POST /v1/leases/l1/commit";
const DELETE = "DELETE /v1/leases/l1";
const ACQUIRE = "POST /v1/acquire";

test("an acquire is sent again with the same key", async () => {
  const busy = () => problem(503, "overloaded");
  const inProgress = () => problem(409, "request-in-progress");
  const { limiter, sent } = faulty({ [ACQUIRE]: [broken, busy, inProgress, granted] });
  const lease = await limiter.acquire("e", "r", { rpm: 1 });
  assert.equal(lease.id, "l1");
  const keys = sent("/v1/acquire").map((request) => request.key);
  assert.equal(keys.length, 4);
  assert.equal(new Set(keys).size, 1);
  assert.match(keys[0], /^[0-9a-f-]{36}$/);
});

test("a server needs a URL", () => {
  for (const url of ["", "localhost:8080", "ftp://limiter.example"]) {
    assert.throws(() => new RateLimiter(url), { kind: "invalid", message: /must begin with http/ }, url);
  }
});

test("two acquires have different keys", async () => {
  const { limiter, sent } = faulty({ [ACQUIRE]: [() => granted()] });
  await limiter.acquire("e", "r", { rpm: 1 });
  await limiter.acquire("e", "r", { rpm: 1 });
  assert.equal(new Set(sent("/v1/acquire").map((request) => request.key)).size, 2);
});

test("a server that is down is an UnavailableError with the cause", async () => {
  const { limiter, requests } = faulty({ [ACQUIRE]: [broken] }, { maxRetries: 1 });
  await assert.rejects(limiter.acquire("e", "r", { rpm: 1 }), (error) => {
    assert(error instanceof UnavailableError);
    assert.match(error.message, /POST http:\/\/limiter\.example\/v1\/acquire got no response: connection refused/);
    assert(error.cause instanceof TypeError);
    return true;
  });
  assert.equal(requests.length, 2);
});

test("refusals and mistakes are not sent again", async () => {
  for (const status of [429, 400, 403, 404, 500]) {
    const { limiter, requests } = faulty({ [ACQUIRE]: [() => problem(status, "other")] });
    await assert.rejects(limiter.acquire("e", "r", { rpm: 1 }), { status });
    assert.equal(requests.length, 1, String(status));
  }
});

test("a request that is not safe to repeat is sent once", async () => {
  const { limiter, requests } = faulty({ "POST /v1/entities": [broken] });
  await assert.rejects(limiter.request("POST", "/v1/entities", { body: { entity_id: "e" } }), UnavailableError);
  assert.equal(requests.length, 1);
});

test("a page of a proxy is an error with its text", async () => {
  const page = () => new Response("upstream is gone", { status: 502, headers: { "content-type": "text/html" } });
  const { limiter } = faulty({ [ACQUIRE]: [page] }, { maxRetries: 0 });
  await assert.rejects(limiter.acquire("e", "r", { rpm: 1 }), { kind: "unavailable", message: "upstream is gone" });
});

test("calls pass while the server is unavailable if that is the policy", async () => {
  const { limiter, requests } = faulty({ [ACQUIRE]: [broken] }, { maxRetries: 0, onUnavailable: "allow" });
  const result = await limiter.run("e", "r", { rpm: 1 }, (lease) => {
    assert.equal(lease.admission, "allowed_while_unavailable");
    lease.adjust({ tpm: 5 });
    return "result";
  });
  assert.equal(result, "result");
  assert.equal(requests.length, 1);
  await assert.rejects(limiter.acquire("e", "r", { rpm: 1 }, { onUnavailable: "block" }), UnavailableError);
  const refusing = faulty({ [ACQUIRE]: [() => problem(429, "quota")] }, { onUnavailable: "allow" });
  await assert.rejects(refusing.limiter.acquire("e", "r", { rpm: 1 }), { kind: "refused" });
});

const RENEW = "/v1/leases/l1/renew";
const renewed = () => json(200, { lease_id: "l1", lease_ms: 3_000 });

/** Lets a second pass and everything that follows from it happen. */
async function second() {
  mock.timers.tick(1_000);
  await new Promise((resolve) => setImmediate(resolve));
}

test("a lease is renewed while the call runs and not afterward", async (context) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  context.after(() => mock.timers.reset());
  const routes = { [ACQUIRE]: [() => granted(3_000)], [`POST ${RENEW}`]: [broken, renewed], [COMMIT]: [committed] };
  const { limiter, requests, sent } = faulty(routes);
  await limiter.run("e", "r", { rpm: 1, tpm: 500 }, async () => {
    for (const renewals of [1, 2, 3, 4]) {
      await second();
      assert.equal(sent(RENEW).length, renewals);
    }
  });
  assert.deepEqual(sent(RENEW)[0].body, { lease_ms: 3_000 });
  assert.equal(requests.at(-1).path, "/v1/leases/l1/commit");
  await second();
  assert.equal(sent(RENEW).length, 4);
});

test("a forgotten lease is renewed for a limited time", async (context) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  context.after(() => mock.timers.reset());
  const { limiter, sent } = faulty({ [ACQUIRE]: [() => granted(3_000)], [`POST ${RENEW}`]: renewed });
  await limiter.acquire("e", "r", { rpm: 1 }, { renewForMs: 4_000 });
  for (let passed = 0; passed < 9; passed++) await second();
  assert.equal(sent(RENEW).length, 4);
});

test("a lease that the server does not know is not renewed again", async (context) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  context.after(() => mock.timers.reset());
  const { limiter, sent } = faulty({ [ACQUIRE]: [() => granted(3_000)] });
  await limiter.acquire("e", "r", { rpm: 1 });
  for (let passed = 0; passed < 9; passed++) await second();
  assert.equal(sent(RENEW).length, 1);
});

const lost = {
  "has expired": () => problem(410, "lease-ended", { ended: "expired" }),
  "lost its server": () => problem(410, "lease-owner-gone"),
  "is unknown": () => problem(404, "lease-not-found"),
};
for (const [state, response] of Object.entries(lost)) {
  test(`a lease that ${state} is corrected without it`, async () => {
    const adjust = [broken, () => json(200, { written: true })];
    const routes = { [ACQUIRE]: [() => granted()], [COMMIT]: [response], [DELETE]: [response], "POST /v1/adjust": adjust };
    const { limiter, sent, unsettled } = faulty(routes);
    const kept = await limiter.acquire("e", "r", { rpm: 1, tpm: 500 });
    kept.adjust({ tpm: -100, rpm: -7, other: 3 });
    assert.deepEqual(await kept.commit(), { consumed: { rpm: 0, tpm: 400, other: 3 }, written: true });
    const returned = await limiter.acquire("e", "r", { rpm: 1, tpm: 500 });
    await returned.rollback();
    const expected = { entity: "e", resource: "r", adjust: { rpm: -1, tpm: -100, other: 3 } };
    assert.deepEqual(sent("/v1/adjust").map(({ body, key }) => ({ body, key })), [
      { body: expected, key: "lease-l1" },
      { body: expected, key: "lease-l1" },
      { body: { ...expected, adjust: { rpm: -1, tpm: -500 } }, key: "lease-l1" },
    ]);
    assert.deepEqual(unsettled, []);
  });
}

test("tokens without a lease are corrected too", async () => {
  const grant = () => json(200, { lease_id: null, lease_ms: 0, admission: "counted", limits: [] });
  const { limiter, sent } = faulty({ [ACQUIRE]: [grant], "POST /v1/adjust": [() => json(202, { written: false })] });
  const lease = await limiter.acquire("e", "r", { rpm: 1 }, { leaseMs: 0 });
  lease.adjust({ tpm: 7 });
  assert.deepEqual(await lease.commit(), { consumed: { rpm: 1, tpm: 7 }, written: false });
  assert.deepEqual(sent("/v1/adjust")[0].body.adjust, { tpm: 7 });
});

test("a usage is sent with the commit, and nothing is made up for it without a lease", async () => {
  const usage = { input: 200, output: 50 };
  const { limiter, sent } = faulty({ [ACQUIRE]: [() => granted()], [COMMIT]: [committed] });
  const lease = await limiter.acquire("e", "r", { rpm: 1 }, { estimate: { input: 200 } });
  lease.adjustToUsage({ input: 200, output: 20 });
  lease.adjust({ rpm: 1 });
  assert.equal((await lease.commitUsage(usage)).written, true);
  assert.deepEqual(sent("/v1/acquire")[0].body, { entity: "e", resource: "r", consume: { rpm: 1 }, estimate: { input: 200 } });
  assert.deepEqual(sent("/v1/leases/l1/commit")[0].body, { adjust: { rpm: 1 }, usage });

  for (const commit of [() => problem(410, "lease-ended", { ended: "expired" }), () => problem(410, "lease-owner-gone")]) {
    const lost = faulty({ [ACQUIRE]: [() => granted()], [COMMIT]: [commit], "POST /v1/adjust": [() => json(200, { written: true })] });
    const settlement = await (await lost.limiter.acquire("e", "r", { tpm: 500 })).commitUsage(usage);
    assert.deepEqual([settlement.consumed, settlement.written, settlement.error.kind], [{ tpm: 500 }, false, "conflict"]);
    assert.deepEqual(lost.sent("/v1/adjust"), []);
    assert.equal(lost.unsettled.length, 1);
  }
});

test("an estimate is given back without a lease too", async () => {
  const limits = [["tpm", 700], ["usd", 2_800], ["rpm", 0]].map(([limit_name, requested]) => ({ resource: "r", limit_name, requested }));
  const acquired = () => json(200, { lease_id: "l1", lease_ms: 60_000, admission: "counted", limits });
  const gone = () => problem(410, "lease-owner-gone");
  const { limiter, sent } = faulty({ [ACQUIRE]: [acquired], [DELETE]: [gone], "POST /v1/adjust": [() => json(200, { written: true })] });
  const lease = await limiter.acquire("e", "r", {}, { estimate: { input: 200, max_output: 500 } });
  await lease.rollback();
  assert.deepEqual(sent("/v1/adjust")[0].body.adjust, { tpm: -700, usd: -2_800 });
});

test("several resources are corrected without a lease, with the parents that were charged", async () => {
  const gone = () => problem(410, "lease-owner-gone");
  const { limiter, sent } = faulty({ [ACQUIRE]: [() => granted()], [COMMIT]: [gone], "POST /v1/adjust": [() => json(200, { written: true })] });
  const also = [{ resource: "budget", consume: { usd: 12 }, cascade: false }];
  const lease = await limiter.acquire("e", "r", { tpm: 500 }, { also });
  lease.adjust({ usd: 3 });
  lease.adjust({ tpm: -20 }, "r");
  const settlement = await lease.commit();
  assert.deepEqual(settlement, { consumed: { tpm: 480 }, also: [{ resource: "budget", consumed: { usd: 15 } }], written: true });
  const { body } = sent("/v1/adjust")[0];
  assert.deepEqual(body.adjust, { tpm: -20 });
  assert.deepEqual(body.also, [{ resource: "budget", cascade: false, adjust: { usd: 3 } }]);
});

test("a commit whose response was lost is a success", async () => {
  const ended = () => problem(410, "lease-ended", { ended: "committed" });
  const { limiter, unsettled } = faulty({ [ACQUIRE]: [() => granted()], [COMMIT]: [broken, ended] });
  const lease = await limiter.acquire("e", "r", { rpm: 1 });
  assert.deepEqual(await lease.commit(), { consumed: { rpm: 1 }, written: true });
  assert.deepEqual(unsettled, []);
});

test("a lease that cannot be ended replaces neither result nor exception", async () => {
  const ended = () => problem(410, "lease-ended", { ended: "rolled_back" });
  const failure = new TypeError("no response");
  for (const response of [ended, broken, () => problem(500, "internal"), () => problem(400, "invalid-request")]) {
    const routes = { [ACQUIRE]: [() => granted()], [COMMIT]: [response], [DELETE]: [response] };
    const { limiter, unsettled } = faulty(routes, { maxRetries: 0 });
    assert.equal(await limiter.run("e", "r", { rpm: 1 }, () => "kept"), "kept");
    const failing = () => {
      throw failure;
    };
    await assert.rejects(limiter.run("e", "r", { rpm: 1 }, failing), (error) => error === failure);
    const lease = await limiter.acquire("e", "r", { rpm: 1 });
    const { error, written } = await lease.commit();
    assert.equal(written, false);
    assert.equal(unsettled.length, 3);
    assert.equal(unsettled[2], error);
  }
});

test("a report that throws loses nothing", async () => {
  const onUnsettled = () => {
    throw new Error("the log is full");
  };
  const routes = { [ACQUIRE]: [() => granted()], [COMMIT]: [() => problem(500, "internal")] };
  const { limiter } = faulty(routes, { onUnsettled });
  assert.equal(await limiter.run("e", "r", { rpm: 1 }, () => "kept"), "kept");
});

test("what is granted after an abort is given back", async () => {
  const response = signal();
  const deleted = signal();
  const back = () => {
    deleted.resolve();
    return committed();
  };
  const { limiter } = faulty({ [ACQUIRE]: () => response.promise, [DELETE]: back });
  const controller = new AbortController();
  const acquired = limiter.acquire("e", "r", { rpm: 1 }, { signal: controller.signal });
  controller.abort(new Error("the user left"));
  await assert.rejects(acquired, /the user left/);
  response.resolve(granted());
  await deleted.promise;
});
