import type { components } from "./api.js";

/** How one limit stands next to what was requested of it. */
export type LimitState = components["schemas"]["LimitState"];

/** Problem details (RFC 9457). Some types have more members. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  [member: string]: unknown;
}

/** What a caller can do about an error. */
export type ErrorKind = "refused" | "disabled" | "unavailable" | "invalid" | "not_found" | "conflict" | "permission" | "internal";

/** The base class of every error of this package. */
export abstract class LimiterError extends Error {
  abstract readonly kind: ErrorKind;
  /** The problem details that the server sent; null if it sent none. */
  readonly problem: Problem | null;
  /** How often the request was sent. */
  attempts = 1;

  constructor(message: string, problem: Problem | null = null, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.problem = problem;
  }

  /** The status of the response; null if there was none. */
  get status(): number | null {
    return this.problem?.status ?? null;
  }

  /** The last part of the problem type, such as `lease-ended`. */
  get problemType(): string | null {
    return this.problem?.type.split(/[:#]/).pop() ?? null;
  }
}

/** A limit is exceeded, and nothing was taken. */
export class RefusedError extends LimiterError {
  readonly kind = "refused";

  /** Seconds until the call fits; null if it never does. */
  get retryAfterSeconds(): number | null {
    return (this.problem?.["retry_after_seconds"] as number | null | undefined) ?? null;
  }

  /** Every limit of the call. */
  get limits(): LimitState[] {
    return (this.problem?.["limits"] as LimitState[] | undefined) ?? [];
  }

  /** The names of the limits that are exceeded. A limit of a parent is named `LIMIT@PARENT`. */
  get exceeded(): string[] {
    return (this.problem?.["violated-policies"] as string[] | undefined) ?? [];
  }
}

/** The mode of the entity on the resource is `disabled`. Nothing was taken, and waiting does not help. */
export class DisabledError extends LimiterError {
  readonly kind = "disabled";
}

/** The server, or its table, could not be reached in time. `cause` is the error of `fetch`, if there was one. */
export class UnavailableError extends LimiterError {
  readonly kind = "unavailable";
  /** Seconds that the server asks to wait; null if it does not say. */
  retryAfterSeconds: number | null = null;
}

/** A value breaks a rule. */
export class InvalidError extends LimiterError {
  readonly kind = "invalid";

  /** The field that is wrong; null if the server does not name it. */
  get field(): string | null {
    return (this.problem?.["field"] as string | undefined) ?? null;
  }
}

/** There is no such entity, lease or path, or no limits are stored for the call. */
export class NotFoundError extends LimiterError {
  readonly kind = "not_found";
}

/** Something exists already, is in use, or has ended. */
export class ConflictError extends LimiterError {
  readonly kind = "conflict";
}

/** The bearer token is missing or wrong, or does not have the scope. */
export class PermissionError extends LimiterError {
  readonly kind = "permission";
}

/** Only the operator of the server can resolve this. */
export class InternalError extends LimiterError {
  readonly kind = "internal";
}

/** The error for a response that is not a success. */
export function errorFor(problem: Problem, retryAfter: string | null): LimiterError {
  const message = problem.detail || problem.title;
  switch (problem.status) {
    case 401:
      return new PermissionError(message, problem);
    case 403:
      return problem.type.endsWith(":disabled") ? new DisabledError(message, problem) : new PermissionError(message, problem);
    case 404:
      return new NotFoundError(message, problem);
    case 409:
    case 410:
      return new ConflictError(message, problem);
    case 429:
      return new RefusedError(message, problem);
    case 400:
    case 405:
    case 413:
    case 415:
      return new InvalidError(message, problem);
    case 422:
      return /:no-(limits|prices)$/.test(problem.type) ? new NotFoundError(message, problem) : new InvalidError(message, problem);
    case 408:
    case 502:
    case 503:
    case 504: {
      const error = new UnavailableError(message, problem);
      const seconds = Number(retryAfter ?? NaN);
      error.retryAfterSeconds = Number.isFinite(seconds) && seconds >= 0 ? seconds : null;
      return error;
    }
    default:
      return new InternalError(message, problem);
  }
}
