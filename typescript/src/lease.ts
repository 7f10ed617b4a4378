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
/** What a call takes of another resource of the same entity, such as a budget that several models share. */
export type Also = components["schemas"]["AlsoConsume"];
/** Whether the tokens were counted, or the call was admitted while the table or the server was unavailable. */
export type Admission = components["schemas"]["AdmissionKind"];

/** How a lease ended. */
export interface Settlement {
  /** What was consumed, adjustments included; of the first resource if the lease has several. */
  consumed: Tokens;
  /** The same of the other resources; undefined if there are none. */
  also?: components["schemas"]["AlsoConsumed"][];
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
  cascade: boolean | undefined;
  also: Also[];
  response: components["schemas"]["AcquireResponse"];
  renewForMs: number;
  onUnsettled: OnUnsettled;
}

/** Tokens by resource and limit. */
type ByResource = Map<string, Tokens>;

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
  /** Every limit after the tokens were taken, resource by resource: the entity's own first, then its parents'. */
  readonly limits: LimitState[];
  readonly #grant: Grant;
  /** By resource, in the order of the call. */
  readonly #taken: ByResource;
  /** By resource; those of limits by name alone are under undefined. */
  readonly #adjustments = new Map<string | undefined, Tokens>();
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
    const parts = [{ resource: grant.resource, consume: grant.consume }, ...grant.also];
    this.#taken = new Map(parts.map(({ resource, consume }) => [resource, { ...consume, ...this.#requested(resource) }]));
    const interval = grant.response.lease_ms / RENEWALS_PER_LEASE;
    if (this.id !== null && interval > 0) this.#renewAfter(interval, Math.ceil(grant.renewForMs / interval));
  }

  /**
   * Corrects what was used: more above zero, less below. Adjustments add up and are written by `commit`. If the lease has several
   * resources, it is the limit of the one that took some of it, else of the only one that has it; name the resource of a limit that
   * several of them have.
   */
  adjust(tokens: Tokens, resource?: string): void {
    this.#adjustments.set(resource, sum(this.#adjustments.get(resource) ?? {}, tokens));
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
    try {
      const adjustments = end === "commit" ? this.#adjustmentsByResource() : new Map<string, Tokens>();
      const change = end === "commit" ? this.#capped(adjustments) : mapped(this.#taken, negated);
      const consumed = mapped(this.#taken, (taken, resource) => sum(taken, change.get(resource) ?? {}));
      return (await this.#end(end, adjustments, consumed)) ?? (await this.#adjustWithoutLease(end, change, consumed));
    } catch (caught) {
      const error = caught instanceof LimiterError ? caught : new UnavailableError(String(caught), null, { cause: caught });
      try {
        this.#grant.onUnsettled(error, this);
      } catch {
        // The result of the call is not lost to a failing report either.
      }
      return { ...settlement(this.#taken, false), error };
    }
  }

  /** What the server says was taken of a resource: it knows what an estimate takes. */
  #requested(resource: string): Tokens {
    const own = this.limits.filter((limit) => limit.resource === resource && limit.requested > 0);
    return Object.fromEntries(own.map(({ limit_name, requested }) => [limit_name, requested]));
  }

  /** The adjustments, each with the resource that its limit belongs to. */
  #adjustmentsByResource(): ByResource {
    const found: ByResource = new Map();
    for (const [resource, tokens] of this.#adjustments) {
      for (const [limit, count] of Object.entries(tokens)) {
        const own = resource ?? this.#resourceOf(limit);
        found.set(own, sum(found.get(own) ?? {}, { [limit]: count }));
      }
    }
    return found;
  }

  #resourceOf(limit: string): string {
    const resources = [...this.#taken.keys()];
    const took = resources.filter((resource) => (this.#taken.get(resource)?.[limit] ?? 0) > 0);
    const has = (resource: string) => this.limits.some((one) => one.resource === resource && one.limit_name === limit);
    const candidates = took.length > 0 ? took : resources.filter(has);
    if (candidates.length > 1) {
      throw new ConflictError(`several resources of the lease have the limit ${limit} (${candidates.join(", ")}): name one of them`);
    }
    // The server says what is wrong with a limit that no resource has.
    return candidates[0] ?? this.resource;
  }

  /** Ends the lease on the server. Undefined if the server does not have it any more: what it took stays taken. */
  async #end(end: "commit" | "rollback", adjustments: ByResource, consumed: ByResource): Promise<Settlement | undefined> {
    if (this.id === null) return undefined;
    const path = `/v1/leases/${encodeURIComponent(this.id)}`;
    const exchange =
      end === "commit"
        ? { method: "POST", path: `${path}/commit`, body: { ...this.#body(adjustments), usage: this.#usage }, repeatable: true }
        : { method: "DELETE", path, repeatable: true };
    try {
      const state = (await this.#grant.transport.send(exchange)) as components["schemas"]["LeaseState"];
      return { consumed: state.consumed, ...(state.also === undefined ? {} : { also: state.also }), written: state.written };
    } catch (error) {
      if (!(error instanceof LimiterError)) throw error;
      const ended = error.problem?.["ended"];
      const before = end === "commit" ? "committed" : "rolled_back";
      // An earlier attempt was processed, and its response was lost.
      if (error.attempts > 1 && ended === before) return settlement(consumed, true);
      const isLost = ended === "expired" || ["lease-owner-gone", "lease-not-found"].includes(error.problemType ?? "");
      if (isLost) return undefined;
      throw error;
    }
  }

  /** Adjustments in a request: by the names of limits if there is one resource. */
  #body(adjustments: ByResource): { adjust: Tokens; also?: components["schemas"]["AlsoAdjust"][] } {
    const adjust = adjustments.get(this.resource) ?? {};
    if (this.#taken.size === 1 && [...adjustments.keys()].every((resource) => resource === this.resource)) return { adjust };
    return { adjust: {}, also: [...adjustments].map(([resource, tokens]) => ({ resource, adjust: tokens })) };
  }

  /** Corrects what was taken where the server has no lease to end. */
  async #adjustWithoutLease(end: "commit" | "rollback", change: ByResource, consumed: ByResource): Promise<Settlement> {
    if (this.admission !== "counted") return settlement(consumed, true);
    // Only a lease has prices.
    if (end === "commit" && this.#usage !== undefined) throw new ConflictError("the usage needs a lease, and the server has none: the estimate stays taken");
    const changes = mapped(change, (tokens) => Object.fromEntries(Object.entries(tokens).filter(([, count]) => count !== 0)));
    if ([...changes.values()].every((tokens) => Object.keys(tokens).length === 0)) return settlement(consumed, true);
    const { entity, resource, cascade } = this.#grant;
    const others = this.#grant.also.map((also) => ({ resource: also.resource, cascade: also.cascade, adjust: changes.get(also.resource) ?? {} }));
    const body = { entity, resource, adjust: changes.get(resource) ?? {}, cascade, ...(others.length > 0 ? { also: others } : {}) };
    const idempotencyKey = this.id === null ? crypto.randomUUID() : `lease-${this.id}`.slice(0, 255);
    const exchange = { method: "POST", path: "/v1/adjust", body, idempotencyKey, repeatable: true };
    const { written } = (await this.#grant.transport.send(exchange)) as components["schemas"]["AdjustBucketResponse"];
    return settlement(consumed, written);
  }

  /** The adjustments. As with a lease on the server, none gives back more than was taken. */
  #capped(adjustments: ByResource): ByResource {
    return mapped(adjustments, (tokens, resource) => {
      const taken = this.#taken.get(resource) ?? {};
      return Object.fromEntries(Object.entries(tokens).map(([limit, count]) => [limit, Math.max(count, -(taken[limit] ?? 0))]));
    });
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

function mapped(all: ByResource, change: (tokens: Tokens, resource: string) => Tokens): ByResource {
  return new Map([...all].map(([resource, tokens]) => [resource, change(tokens, resource)]));
}

function settlement(all: ByResource, written: boolean): Settlement {
  const [first, ...others] = [...all];
  const also = others.map(([resource, consumed]) => ({ resource, consumed }));
  return { consumed: { ...first?.[1] }, ...(also.length > 0 ? { also } : {}), written };
}
