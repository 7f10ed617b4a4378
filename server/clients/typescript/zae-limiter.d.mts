/** Tokens by limit. */
export type Tokens = Record<string, number>;

/** How one limit stands next to what was requested of it. */
export interface LimitState {
  entity_id: string;
  resource: string;
  limit_name: string;
  capacity: number;
  burst: number;
  available: number;
  requested: number;
  exceeded: boolean;
  retry_after_seconds: number | null;
}

/** Problem details (RFC 9457). Some types have further members. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  [member: string]: unknown;
}

/** The server responded with problem details. */
export declare class ServerError extends Error {
  readonly status: number;
  readonly problem: Problem;
  /** The lease expired, or its server is gone. What it took stays taken, and can be corrected without it. */
  get isLostLease(): boolean;
}

/** A limit is exceeded, and nothing was taken. */
export declare class RateLimitExceeded extends ServerError {
  /** Seconds until the call fits; null if it never does. */
  get retryAfter(): number | null;
}

/** Tokens that were taken. It ends once: by `commit` or by `rollback`. */
export declare class Lease {
  /** Null if the lease time was 0. */
  readonly id: string | null;
  /** For how long the lease is held, and by how much it is renewed. */
  readonly leaseMs: number;
  readonly admission: "counted" | "local" | "allowed_while_unavailable";
  readonly limits: LimitState[];
  /** Corrects what was used: more above zero, less below. It is written by `commit`. */
  adjust(tokens: Tokens): void;
  /** Keeps the tokens and writes the adjustments. Returns what was consumed. */
  commit(): Promise<Tokens>;
  /** Gives everything back: the call did not happen. */
  rollback(): Promise<void>;
  /** Holds the lease for another `leaseMs` from now on. */
  renew(): Promise<void>;
  /** Renews the lease until the returned function is called. */
  keepRenewing(): () => void;
}

export interface AcquireOptions {
  /** Wait up to this long for tokens instead of being refused at once. */
  waitMs?: number;
  /** How long the lease is held: a minute unless set. With 0 there is no lease. */
  leaseMs?: number;
  /** A request that is sent again with the same key takes nothing. */
  idempotencyKey?: string;
}

/** A server, by its URL. */
export declare class RateLimiter {
  constructor(url: string, options?: { token?: string; timeoutMs?: number });
  /** Takes the tokens of all limits, or throws RateLimitExceeded. */
  acquire(entity: string, resource: string, consume: Tokens, options?: AcquireOptions): Promise<Lease>;
  /** Runs a call with a lease: commits it, or gives everything back if the call throws. Renews the lease meanwhile. */
  limited<T>(
    entity: string,
    resource: string,
    consume: Tokens,
    call: (lease: Lease) => Promise<T>,
    options?: AcquireOptions,
  ): Promise<T>;
  /** Available tokens by limit. A negative number is debt. */
  available(entity: string, resource: string): Promise<Tokens>;
  /** Any other request of the API, such as `PUT /v1/limits`. */
  request(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<any>;
}
