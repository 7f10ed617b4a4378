import type { components, paths } from "./api.js";
import { UnavailableError } from "./errors.js";
import { type Also, type Estimate, Lease, type OnUnsettled, type Tokens } from "./lease.js";
import type { Call, Content, MethodOf } from "./operations.js";
import { Transport, type TransportOptions } from "./transport.js";

/** How long leases are renewed unless set. */
const RENEW_FOR_MS = 3_600_000;

export interface LimiterOptions extends TransportOptions {
  /** Is told about a lease whose commit or rollback failed. Logs a warning unless set. */
  onUnsettled?: OnUnsettled | undefined;
  /** What `acquire` does if the server cannot be reached: `block` throws `UnavailableError` and is the default. */
  onUnavailable?: "block" | "allow" | undefined;
}

export interface AcquireOptions {
  /** What the call is expected to use, taken besides `consume` in tokens and money, by the prices of the resource. */
  estimate?: Estimate | undefined;
  /** What the call takes of other resources of the same entity: everything is taken, or nothing. */
  also?: Also[] | undefined;
  /** Whether the parent of the entity is charged too, on this resource. The entity says so for all resources unless set. */
  cascade?: boolean | undefined;
  /** Wait up to this long for tokens instead of being refused at once. */
  waitMs?: number | undefined;
  /** How long the server holds the lease without a renewal: a minute unless set. With 0 there is no lease. */
  leaseMs?: number | undefined;
  /** For how long the lease is renewed: an hour unless set. */
  renewForMs?: number | undefined;
  /** A key of your own. A request that is sent again with it takes nothing. A random one is used unless set. */
  idempotencyKey?: string | undefined;
  /** Replaces the option of the limiter. */
  onUnavailable?: "block" | "allow" | undefined;
  /** Stops waiting. What is granted afterward is given back. */
  signal?: AbortSignal | undefined;
}

/** A server, by its URL. */
export class RateLimiter {
  readonly #transport: Transport;
  readonly #onUnsettled: OnUnsettled;
  readonly #onUnavailable: "block" | "allow";

  constructor(url: string, options: LimiterOptions = {}) {
    this.#transport = new Transport(url, options);
    this.#onUnsettled = options.onUnsettled ?? warn;
    this.#onUnavailable = options.onUnavailable ?? "block";
  }

  /** Takes the tokens of all limits, or throws: `RefusedError` if a limit is exceeded. */
  async acquire(entity: string, resource: string, consume: Tokens, options: AcquireOptions = {}): Promise<Lease> {
    const { signal } = options;
    signal?.throwIfAborted();
    const acquired = this.#acquire(entity, resource, consume, options);
    if (signal === undefined) return await acquired;
    let stop = () => {};
    const aborted = new Promise<never>((_, reject) => {
      stop = () => reject(signal.reason);
      signal.addEventListener("abort", stop, { once: true });
    });
    try {
      return await Promise.race([acquired, aborted]);
    } catch (error) {
      if (signal.aborted) acquired.then((lease) => lease.rollback()).catch(() => {});
      throw error;
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  /**
   * Runs a call with a lease: commits it when the call returns, gives everything back when it throws. The result or the
   * exception of the call is never replaced.
   */
  async run<T>(
    entity: string,
    resource: string,
    consume: Tokens,
    call: (lease: Lease) => T | PromiseLike<T>,
    options: AcquireOptions = {},
  ): Promise<T> {
    const lease = await this.acquire(entity, resource, consume, options);
    let result: T;
    try {
      result = await call(lease);
    } catch (error) {
      await lease.rollback();
      throw error;
    }
    await lease.commit();
    return result;
  }

  /** Available tokens by limit, and when a planned call would be admitted. Takes nothing. */
  async available(entity: string, resource: string, consume?: Tokens): Promise<components["schemas"]["Available"]> {
    const planned = Object.entries(consume ?? {}).map(([limit, count]) => `${limit}:${count}`);
    const query = planned.length === 0 ? {} : { consume: planned.join(",") };
    return await this.request("GET", "/v1/entities/{entity}/resources/{resource}/available", {
      path: { entity, resource },
      query,
    });
  }

  /** Any request of the API: `request("PUT", "/v1/limits", { query: { resource: "gpt-4" }, body: { limits } })`. */
  async request<P extends keyof paths, M extends MethodOf<P>>(
    method: M,
    path: P,
    ...[call]: Record<never, never> extends Call<P, M> ? [call?: Call<P, M>] : [call: Call<P, M>]
  ): Promise<Content<P, M>> {
    const given = (call ?? {}) as { path?: Record<string, string>; query?: Record<string, unknown>; body?: unknown };
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(given.path?.[name] ?? ""));
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(given.query ?? {})) {
      if (value !== undefined && value !== null) query.set(name, String(value));
    }
    const content = await this.#transport.send({
      method,
      path: query.size === 0 ? filled : `${filled}?${query}`,
      body: given.body,
      // Others are not the same when they are sent twice.
      repeatable: method === "GET" || method === "PUT",
    });
    return content as Content<P, M>;
  }

  async #acquire(entity: string, resource: string, consume: Tokens, options: AcquireOptions): Promise<Lease> {
    const { waitMs, leaseMs, renewForMs = RENEW_FOR_MS, onUnavailable = this.#onUnavailable, estimate, cascade, also } = options;
    const grant = {
      transport: this.#transport,
      entity,
      resource,
      consume: { ...consume },
      cascade,
      also: also ?? [],
      renewForMs,
      onUnsettled: this.#onUnsettled,
    };
    try {
      const response = await this.#transport.send({
        method: "POST",
        path: "/v1/acquire",
        body: { entity, resource, consume, estimate, cascade, also, wait_ms: waitMs, lease_ms: leaseMs },
        idempotencyKey: options.idempotencyKey ?? crypto.randomUUID(),
        repeatable: true,
        waitMs,
      });
      return new Lease({ ...grant, response: response as components["schemas"]["AcquireResponse"] });
    } catch (error) {
      if (onUnavailable !== "allow" || !(error instanceof UnavailableError)) throw error;
      const response = { lease_id: null, lease_ms: 0, admission: "allowed_while_unavailable" as const, limits: [] };
      return new Lease({ ...grant, response });
    }
  }
}

const warn: OnUnsettled = (error, lease) => {
  console.warn(`zae-limiter: the lease of ${lease.entity} on ${lease.resource} could not be settled: ${error.message}`);
};
