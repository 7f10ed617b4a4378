import { errorFor, InternalError, InvalidError, LimiterError, type Problem, UnavailableError } from "./errors.js";

/** The first pause between two attempts. Each further one is twice as long. */
const FIRST_PAUSE_MS = 100;
/** The longest pause, also if the server asks for a longer one. */
const MAX_PAUSE_MS = 5_000;

export interface TransportOptions {
  /** The bearer token. A server without tokens needs none. */
  token?: string | undefined;
  /** How long one attempt may take, besides the time that it waits for tokens: 10 seconds unless set. */
  timeoutMs?: number | undefined;
  /** How often a request that is safe to repeat is sent again: 3 times unless set. */
  maxRetries?: number | undefined;
  /** Replaces the global `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
}

export interface Exchange {
  method: string;
  /** The path with its query. */
  path: string;
  body?: unknown;
  idempotencyKey?: string | undefined;
  /** Whether sending it again is safe. */
  repeatable: boolean;
  /** How long the server may take in addition. */
  waitMs?: number | undefined;
}

/** Sends requests to one server: timeouts, retries, errors. */
export class Transport {
  readonly #url: string;
  readonly #token: string | undefined;
  readonly #timeoutMs: number;
  readonly #maxRetries: number;
  readonly #fetch: typeof globalThis.fetch;

  constructor(url: string, options: TransportOptions) {
    if (!/^https?:$/.test(protocolOf(url))) throw new InvalidError(`url "${url}" is invalid: it must begin with http:// or https://`);
    this.#url = url.replace(/\/+$/, "");
    this.#token = options.token;
    this.#timeoutMs = options.timeoutMs ?? 10_000;
    this.#maxRetries = options.maxRetries ?? 3;
    // Looked up for each request, and called without a receiver, which edge runtimes insist on.
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  }

  /** The content of the response: JSON, text, or undefined if there is none. */
  async send(exchange: Exchange): Promise<unknown> {
    const retries = exchange.repeatable ? this.#maxRetries : 0;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#sendOnce(exchange);
      } catch (error) {
        if (!(error instanceof LimiterError)) throw error;
        error.attempts = attempt;
        if (attempt > retries || !isTemporary(error)) throw error;
        await new Promise((resolve) => setTimeout(resolve, pauseMs(attempt, error)));
      }
    }
  }

  async #sendOnce({ method, path, body, idempotencyKey, waitMs = 0 }: Exchange): Promise<unknown> {
    const headers: Record<string, string> = {};
    if (this.#token !== undefined) headers["authorization"] = `Bearer ${this.#token}`;
    if (idempotencyKey !== undefined) headers["idempotency-key"] = idempotencyKey;
    const init: RequestInit = { method, headers, signal: AbortSignal.timeout(this.#timeoutMs + waitMs) };
    if (body !== undefined) {
      headers["content-type"] = "application/json";
      init.body = JSON.stringify(body);
    }
    let response: Response;
    let text: string;
    try {
      response = await this.#fetch(this.#url + path, init);
      text = await response.text();
    } catch (cause) {
      throw new UnavailableError(`${method} ${this.#url}${path} got no response: ${reason(cause)}`, null, { cause });
    }
    const isJson = /\bjson\b/.test(response.headers.get("content-type") ?? "");
    const content = isJson ? parseJson(text) : text || undefined;
    if (response.ok) {
      if (isJson && content === undefined) throw new InternalError(`${method} ${this.#url}${path}: the response is not JSON`);
      return content;
    }
    throw errorFor(problemOf(response, content), response.headers.get("retry-after"));
  }
}

function protocolOf(url: string): string {
  return URL.canParse(url) ? new URL(url).protocol : "";
}

/** Unavailable, or an earlier attempt with the same key is still in progress. */
function isTemporary(error: LimiterError): boolean {
  return error instanceof UnavailableError || error.problemType === "request-in-progress";
}

function pauseMs(attempt: number, error: LimiterError): number {
  const backoff = FIRST_PAUSE_MS * 2 ** (attempt - 1) * (0.5 + Math.random() / 2);
  const asked = error instanceof UnavailableError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
  return Math.min(Math.max(backoff, asked), MAX_PAUSE_MS);
}

/** The message of an error of `fetch`. Node hides the reason in its cause. */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.cause.message ? error.cause.message : error.message;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The problem details of a response. A proxy may send something else. */
function problemOf(response: Response, content: unknown): Problem {
  const title = response.statusText || `status ${response.status}`;
  const known = typeof content === "object" && content !== null ? content : { detail: content };
  const problem = { type: "about:blank", title, ...known } as Problem;
  const detail = typeof problem.detail === "string" ? problem.detail.slice(0, 1000) : title;
  return { ...problem, type: String(problem.type), status: response.status, detail };
}
