/// <reference lib="esnext.disposable" preserve="true" />
import type { components } from "./api.js";
import { ConflictError, LimiterError, type LimitState, UnavailableError } from "./errors.js";
import type { Transport } from "./transport.js";

/** Tokens by limit. */
export type Tokens = Record<string, number>;
/** What a call used. No token is in two of the numbers: cached input is not part of `input`. */
export type Usage = components["schemas"]["UsageBody"];
/** What is known of a call before it is made: its input, and the most output that it asks for. */
export type Estimate = components["schemas"]["EstimateBody"];
/** Whether the tokens were counted, or the call was admitted while the table or the server was unavailable. */
export type Admission = components["schemas"]["AdmissionKind"];

/** How a lease ended. */
export interface Settlement {
  /** What was consumed, adjustments included. */
  consumed: Tokens;
  /** Whether it is written. If there is no error, the server goes on trying. */
  written: boolean;
  /** Why the change could not be made; undefined if it was. */
  error?: LimiterError;
}

/** Is told about a lease whose commit or rollback failed. */
export type OnUnsettled = (error: LimiterError, lease: Lease) => void;

/** How a lease is granted; for the limiter only. */
export interface Grant {
  transport: Transport;
  entity: string;
  resource: string;
  consume: Tokens;
  response: components["schemas"]["AcquireResponse"];
  renewForMs: number;
  onUnsettled: OnUnsettled;
}

/** A lease is renewed this often before it would expire. */
const RENEWALS_PER_LEASE = 3;

/**
 * Tokens that were taken. It ends once, by `commit` or `rollback`, and is renewed until then. Neither of them throws: the
 * result of the call is worth more than its correction. What could not be written is in the settlement and is passed to
 * `onUnsettled`.
 */
export class Lease implements AsyncDisposable {
  /** Null if the server holds no lease: `leaseMs` was 0, or the server was unavailable and the call was allowed. */
  readonly id: string | null;
  readonly entity: string;
  readonly resource: string;
  readonly admission: Admission;
  /** Every limit after the tokens were taken, the entity's own first, then its parents'. */
  readonly limits: LimitState[];
  readonly #grant: Grant;
  readonly #taken: Tokens;
  readonly #adjustments: Tokens = {};
  #usage: Usage | undefined;
  #renewal: ReturnType<typeof setTimeout> | undefined;
  #settlement: Promise<Settlement> | undefined;

  constructor(grant: Grant) {
    this.#grant = grant;
    this.id = grant.response.lease_id ?? null;
    this.entity = grant.entity;
    this.resource = grant.resource;
    this.admission = grant.response.admission;
    this.limits = grant.response.limits;
    // The server knows what an estimate takes.
    const requested = this.limits.map(({ limit_name, requested }) => [limit_name, requested] as const);
    this.#taken = { ...grant.consume, ...Object.fromEntries(requested.filter(([, count]) => count > 0)) };
    const interval = grant.response.lease_ms / RENEWALS_PER_LEASE;
    if (this.id !== null && interval > 0) this.#renewAfter(interval, Math.ceil(grant.renewForMs / interval));
  }

  /** Corrects what was used: more above zero, less below. Adjustments add up and are written by `commit`. */
  adjust(tokens: Tokens): void {
    for (const [limit, count] of Object.entries(tokens)) {
      this.#adjustments[limit] = (this.#adjustments[limit] ?? 0) + count;
    }
  }

  /**
   * Corrects tokens and money to what the call used, by the prices that the resource had when the lease was taken. It replaces an
   * earlier usage, so that it may be called with each part of a stream. Adjustments are added to it.
   */
  adjustToUsage(usage: Usage): void {
    this.#usage = usage;
  }

  /** Corrects tokens and money to what the call used, and commits. */
  commitUsage(usage: Usage): Promise<Settlement> {
    if (this.#settlement === undefined) this.adjustToUsage(usage);
    return this.commit();
  }

  /** Keeps the tokens and writes the adjustments. A lease that has ended stays as it is. */
  commit(): Promise<Settlement> {
    return (this.#settlement ??= this.#settle("commit"));
  }

  /** Gives everything back: the call did not happen. A lease that has ended stays as it is. */
  rollback(): Promise<Settlement> {
    return (this.#settlement ??= this.#settle("rollback"));
  }

  /** Rolls the lease back unless it has ended, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.rollback();
  }

  async #settle(end: "commit" | "rollback"): Promise<Settlement> {
    clearTimeout(this.#renewal);
    const change = end === "commit" ? this.#capped() : negated(this.#taken);
    const consumed = sum(this.#taken, change);
    try {
      return (await this.#end(end, consumed)) ?? (await this.#adjustWithoutLease(end, change, consumed));
    } catch (caught) {
      const error = caught instanceof LimiterError ? caught : new UnavailableError(String(caught), null, { cause: caught });
      try {
        this.#grant.onUnsettled(error, this);
      } catch {
        // The result of the call is not lost to a failing report either.
      }
      return { consumed: { ...this.#taken }, written: false, error };
    }
  }

  /** Ends the lease on the server. Undefined if the server does not have it any more: what it took stays taken. */
  async #end(end: "commit" | "rollback", consumed: Tokens): Promise<Settlement | undefined> {
    if (this.id === null) return undefined;
    const path = `/v1/leases/${encodeURIComponent(this.id)}`;
    const exchange =
      end === "commit"
        ? { method: "POST", path: `${path}/commit`, body: { adjust: this.#adjustments, usage: this.#usage }, repeatable: true }
        : { method: "DELETE", path, repeatable: true };
    try {
      const state = (await this.#grant.transport.send(exchange)) as components["schemas"]["LeaseState"];
      return { consumed: state.consumed, written: state.written };
    } catch (error) {
      if (!(error instanceof LimiterError)) throw error;
      const ended = error.problem?.["ended"];
      const before = end === "commit" ? "committed" : "rolled_back";
      // An earlier attempt was processed, and its response was lost.
      if (error.attempts > 1 && ended === before) return { consumed, written: true };
      const isLost = ended === "expired" || ["lease-owner-gone", "lease-not-found"].includes(error.problemType ?? "");
      if (isLost) return undefined;
      throw error;
    }
  }

  /** Corrects what was taken where the server has no lease to end. */
  async #adjustWithoutLease(end: "commit" | "rollback", change: Tokens, consumed: Tokens): Promise<Settlement> {
    if (this.admission !== "counted") return { consumed, written: true };
    // Only a lease has prices.
    if (end === "commit" && this.#usage !== undefined) throw new ConflictError("the usage needs a lease, and the server has none: the estimate stays taken");
    const adjust = Object.fromEntries(Object.entries(change).filter(([, count]) => count !== 0));
    if (Object.keys(adjust).length === 0) return { consumed, written: true };
    const body = { entity: this.entity, resource: this.resource, adjust };
    const idempotencyKey = this.id === null ? crypto.randomUUID() : `lease-${this.id}`.slice(0, 255);
    const exchange = { method: "POST", path: "/v1/adjust", body, idempotencyKey, repeatable: true };
    const { written } = (await this.#grant.transport.send(exchange)) as components["schemas"]["AdjustBucketResponse"];
    return { consumed, written };
  }

  /** The adjustments. As with a lease on the server, none gives back more than was taken. */
  #capped(): Tokens {
    const capped = Object.entries(this.#adjustments).map(([limit, count]) => [limit, Math.max(count, -(this.#taken[limit] ?? 0))]);
    return Object.fromEntries(capped);
  }

  /** Renews the lease at this interval, at most `remaining` times: a lease that is forgotten expires. */
  #renewAfter(interval: number, remaining: number): void {
    if (remaining <= 0) return;
    this.#renewal = setTimeout(async () => {
      const goOn = await this.#renew();
      if (goOn && this.#settlement === undefined) this.#renewAfter(interval, remaining - 1);
    }, interval);
    // In Node, a lease does not keep the process alive.
    (this.#renewal as { unref?: () => void }).unref?.();
  }

  /** Whether the lease can be renewed again. The end of the lease deals with one that is lost. */
  async #renew(): Promise<boolean> {
    const path = `/v1/leases/${encodeURIComponent(this.id ?? "")}/renew`;
    const body = { lease_ms: this.#grant.response.lease_ms };
    try {
      await this.#grant.transport.send({ method: "POST", path, body, repeatable: false });
      return true;
    } catch (error) {
      return error instanceof UnavailableError;
    }
  }
}

function negated(tokens: Tokens): Tokens {
  return Object.fromEntries(Object.entries(tokens).map(([limit, count]) => [limit, -count]));
}

function sum(left: Tokens, right: Tokens): Tokens {
  const total = { ...left };
  for (const [limit, count] of Object.entries(right)) total[limit] = (total[limit] ?? 0) + count;
  return total;
}
