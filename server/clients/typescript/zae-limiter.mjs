// @ts-check
// Client of the zae-limiter server: fetch and nothing else. Its types are in zae-limiter.d.mts.
//
//   const limiter = new RateLimiter("http://127.0.0.1:8080");
//   const answer = await limiter.limited("user-1", "gpt-4", { rpm: 1, tpm: 500 }, async (lease) => {
//     const answer = await callModel();
//     lease.adjust({ tpm: answer.tokens - 500 });
//     return answer;
//   });

/** The server responded with problem details (RFC 9457). */
export class ServerError extends Error {
  constructor(status, problem) {
    super(`${status}: ${problem.detail ?? problem.title}`);
    this.name = new.target.name;
    this.status = status;
    this.problem = problem;
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
  #taken;
  #adjust = {};

  constructor(limiter, granted, taken = {}) {
    this.#limiter = limiter;
    this.#taken = { ...taken };
    this.id = granted.lease_id;
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
    const { consumed } = await this.#limiter.request("POST", `/v1/leases/${this.id}/commit`, { adjust: this.#adjust });
    return consumed;
  }

  /** Gives everything back: the call did not happen. */
  async rollback() {
    if (this.id === null) return;
    await this.#limiter.request("DELETE", `/v1/leases/${this.id}`);
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
    return new Lease(this, await this.request("POST", "/v1/acquire", body, headers, waitMs), consume);
  }

  /** Runs a call with a lease: commits it, or gives everything back if the call throws. */
  async limited(entity, resource, consume, call, options) {
    const lease = await this.acquire(entity, resource, consume, options);
    let result;
    try {
      result = await call(lease);
    } catch (error) {
      await lease.rollback();
      throw error;
    }
    await lease.commit();
    return result;
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
