// @ts-check
// Client of the zae-limiter server: fetch and nothing else. Its types are in zae-limiter.d.mts.
//
//   const limiter = new RateLimiter("http://127.0.0.1:8080");
//   const response = await limiter.limited("user-1", "gpt-4", { rpm: 1, tpm: 500 }, async (lease) => {
//     const response = await callModel();
//     lease.adjust({ tpm: response.tokens - 500 });
//     return response;
//   });
//
// The lease is renewed while the call runs. A lease that cannot be ended is reported as a warning: the result of the call, or
// its exception, is never replaced.

// How often a request that ends a lease is sent if the server cannot process it.
const ATTEMPTS = 3;
// The most milliseconds between two of them.
const MAX_PAUSE_MS = 2_000;
// A lease is renewed this many times before it would expire.
const RENEWALS = 3;

/** The server responded with problem details (RFC 9457). */
export class ServerError extends Error {
  constructor(status, problem) {
    super(`${status}: ${problem.detail ?? problem.title}`);
    this.name = new.target.name;
    this.status = status;
    this.problem = problem;
  }

  /** The lease expired, or its server is gone. What it took stays taken, and can be corrected without it. */
  get isLostLease() {
    const kind = String(this.problem.type ?? "").split(":").pop();
    return kind === "lease-owner-gone" || (kind === "lease-ended" && this.problem.ended === "expired");
  }
}

/** A limit is exceeded, and nothing was taken. */
export class RateLimitExceeded extends ServerError {
  /** Seconds until the call fits; null if it never does. */
  get retryAfter() {
    return this.problem.retry_after_seconds ?? null;
  }
}

/**
 * Tokens that were taken. It ends once: by `commit` or by `rollback`. With `leaseMs: 0` there is no lease and `id` is
 * null: the tokens are consumed, and `commit` and `rollback` do nothing.
 */
export class Lease {
  #limiter;
  #entity;
  #resource;
  #taken;
  #adjust = {};

  constructor(limiter, entity, resource, granted, taken = {}) {
    this.#limiter = limiter;
    this.#entity = entity;
    this.#resource = resource;
    this.#taken = { ...taken };
    this.id = granted.lease_id;
    this.leaseMs = granted.lease_ms;
    this.admission = granted.admission;
    this.limits = granted.limits;
  }

  /** Corrects what was used: more above zero, less below. It is written by `commit`. */
  adjust(tokens) {
    for (const [limit, count] of Object.entries(tokens)) {
      this.#adjust[limit] = (this.#adjust[limit] ?? 0) + count;
    }
  }

  /** Keeps the tokens and writes the adjustments. Returns what was consumed. */
  async commit() {
    if (this.id === null) return this.#taken;
    const body = { adjust: this.#adjust };
    const { consumed } = await this.#end("POST", `/v1/leases/${this.id}/commit`, body, this.#adjust);
    const sum = ([limit, count]) => [limit, count + (this.#adjust[limit] ?? 0)];
    return consumed ?? Object.fromEntries(Object.entries(this.#taken).map(sum));
  }

  /** Gives everything back: the call did not happen. */
  async rollback() {
    if (this.id === null) return;
    const back = Object.fromEntries(Object.entries(this.#taken).map(([limit, count]) => [limit, -count]));
    await this.#end("DELETE", `/v1/leases/${this.id}`, undefined, back);
  }

  /** Holds the lease for another `leaseMs` from now on. */
  async renew() {
    if (this.id === null) return;
    await this.#limiter.request("POST", `/v1/leases/${this.id}/renew`, { lease_ms: this.leaseMs });
  }

  /** Renews the lease until the returned function is called. */
  keepRenewing() {
    if (this.id === null) return () => {};
    const timer = setInterval(() => {
      this.renew().catch((error) => {
        // Ending the lease says what became of it.
        if (error.status === 404 || error.status === 410) clearInterval(timer);
      });
    }, this.leaseMs / RENEWALS);
    return () => clearInterval(timer);
  }

  /** Ends the lease. If it is lost, corrects what it took without it. */
  async #end(method, path, body, adjust) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#limiter.request(method, path, body);
      } catch (error) {
        if (error instanceof ServerError) {
          if (error.isLostLease) return await this.#adjustWithoutLease(adjust);
          // An earlier attempt was processed, and its response was lost.
          if (attempt > 1 && ["committed", "rolled_back"].includes(error.problem.ended)) return {};
          if (error.status !== 503) throw error;
        }
        if (attempt === ATTEMPTS) throw error;
      }
      const pause = Math.min(250 * 2 ** attempt, MAX_PAUSE_MS);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  async #adjustWithoutLease(adjust) {
    const used = Object.fromEntries(Object.entries(adjust).filter(([, count]) => count !== 0));
    if (Object.keys(used).length > 0) {
      const body = { entity: this.#entity, resource: this.#resource, adjust: used };
      const headers = { "idempotency-key": `lease-${this.id}`.slice(0, 255) };
      await this.#limiter.request("POST", "/v1/adjust", body, headers);
    }
    return {};
  }
}

/** A server, by its URL. */
export class RateLimiter {
  #url;
  #token;
  #timeoutMs;

  constructor(url, { token, timeoutMs = 10_000 } = {}) {
    this.#url = url.replace(/\/$/, "");
    this.#token = token;
    this.#timeoutMs = timeoutMs;
  }

  /** Takes the tokens of all limits, or throws RateLimitExceeded. */
  async acquire(entity, resource, consume, { waitMs, leaseMs, idempotencyKey } = {}) {
    const body = { entity, resource, consume, wait_ms: waitMs, lease_ms: leaseMs };
    const headers = idempotencyKey ? { "idempotency-key": idempotencyKey } : {};
    const granted = await this.request("POST", "/v1/acquire", body, headers, waitMs);
    return new Lease(this, entity, resource, granted, consume);
  }

  /** Runs a call with a lease: commits it, or gives everything back if the call throws. Renews the lease meanwhile. */
  async limited(entity, resource, consume, call, options) {
    const lease = await this.acquire(entity, resource, consume, options);
    const stop = lease.keepRenewing();
    let end = () => lease.rollback();
    try {
      const result = await call(lease);
      end = () => lease.commit();
      return result;
    } finally {
      stop();
      // The call was made. Its result, or its exception, matters more than this.
      await end().catch((error) => console.warn(`a lease of ${entity} on ${resource} was not ended: ${error}`));
    }
  }

  /** Available tokens by limit. A negative number is debt. */
  async available(entity, resource) {
    const path = `/v1/entities/${encodeURIComponent(entity)}/resources/${encodeURIComponent(resource)}/available`;
    return (await this.request("GET", path)).tokens;
  }

  /** Any other request of the API, such as `PUT /v1/limits`. */
  async request(method, path, body, headers = {}, moreMs = 0) {
    const response = await fetch(this.#url + path, {
      method,
      headers: {
        ...headers,
        ...(this.#token ? { authorization: `Bearer ${this.#token}` } : {}),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      // The server responds after the wait at the latest.
      signal: AbortSignal.timeout(this.#timeoutMs + moreMs),
    });
    const text = await response.text();
    const content = text ? JSON.parse(text) : {};
    if (response.ok) return content;
    if (response.status === 429) throw new RateLimitExceeded(response.status, content);
    throw new ServerError(response.status, content);
  }
}
