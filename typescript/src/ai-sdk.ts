// Middleware for the AI SDK. Its types are described by what is used of them, so that one package serves versions 5 to 7.
import type { Estimate, Lease, Tokens, Usage } from "./lease.js";
import type { AcquireOptions, RateLimiter } from "./limiter.js";

/** Characters of text that count as one token in an estimate. */
const CHARACTERS_PER_TOKEN = 4;
const DEFAULT_OUTPUT_TOKENS = 1_000;
const DEFAULT_FILE_TOKENS = 1_000;

/** What is used of the options of a call to a model. */
export interface ModelCall {
  prompt: unknown;
  tools?: unknown;
  maxOutputTokens?: number | undefined;
  abortSignal?: AbortSignal | undefined;
}

export interface RateLimitOptions extends Omit<AcquireOptions, "estimate" | "idempotencyKey" | "signal"> {
  /** Who calls: one name, or one for each call. */
  entity: string | ((call: ModelCall) => string);
  /** What is called: the id of the model unless set. */
  resource?: string | undefined;
  /** The limit that counts requests: `rpm` unless set, none with null. */
  requestLimit?: string | null | undefined;
  /** The limit that counts tokens: `tpm` unless set, none with null. */
  tokenLimit?: string | null | undefined;
  /** Counts tokens and money by the prices that are stored for the resource, instead of `tokenLimit`. */
  storedPrices?: boolean | undefined;
  /** Expected output tokens of a call without `maxOutputTokens`: 1,000 unless set. */
  defaultOutputTokens?: number | undefined;
  /** Expected input tokens of an image or another file: 1,000 unless set. */
  fileTokens?: number | undefined;
  /** Replaces the estimate of all tokens of a call. Not with `storedPrices`. */
  estimate?: ((call: ModelCall) => number) | undefined;
}

interface Model {
  modelId: string;
}

/** Middleware for `wrapLanguageModel`. */
export interface RateLimitMiddleware {
  readonly specificationVersion: "v3";
  wrapGenerate<R>(options: { doGenerate: () => PromiseLike<R>; params: ModelCall; model: Model }): Promise<R>;
  wrapStream<R extends { stream: ReadableStream }>(options: {
    doStream: () => PromiseLike<R>;
    params: ModelCall;
    model: Model;
  }): Promise<R>;
}

/**
 * Limits the calls of a model. Takes one request and an estimate of the tokens before a call, and corrects the tokens by the
 * usage that the response reports. A call that fails costs nothing. A stream that breaks off or is canceled after its first
 * output costs the estimate.
 */
export function rateLimit(limiter: RateLimiter, options: RateLimitOptions): RateLimitMiddleware {
  const { requestLimit = "rpm", storedPrices = false } = options;
  const tokenLimit = storedPrices ? null : (options.tokenLimit === undefined ? "tpm" : options.tokenLimit);

  function acquisition(params: ModelCall, model: Model) {
    const estimate = options.estimate?.(params) ?? estimateTokens(params, options);
    const consume: Tokens = {};
    if (requestLimit !== null) consume[requestLimit] = 1;
    if (tokenLimit !== null) consume[tokenLimit] = estimate;
    const entity = typeof options.entity === "string" ? options.entity : options.entity(params);
    const { waitMs, leaseMs, renewForMs, onUnavailable } = options;
    const priced = storedPrices ? requestOf(params, options) : undefined;
    const acquire = { waitMs, leaseMs, renewForMs, onUnavailable, estimate: priced, signal: params.abortSignal };
    /** Corrects the estimate. A response without usage costs the estimate. */
    const correct = (lease: Lease, reported: unknown): void => {
      const usage = usageOf(reported);
      if (usage === undefined) return;
      if (storedPrices) lease.adjustToUsage(usage);
      else if (tokenLimit !== null) lease.adjust({ [tokenLimit]: tokensOf(usage) - estimate });
    };
    return { entity, resource: options.resource ?? model.modelId, consume, acquire, correct };
  }

  return {
    specificationVersion: "v3",

    async wrapGenerate({ doGenerate, params, model }) {
      const { entity, resource, consume, acquire, correct } = acquisition(params, model);
      const call = async (lease: Lease) => {
        const result = await doGenerate();
        correct(lease, (result as { usage?: unknown }).usage);
        return result;
      };
      return await limiter.run(entity, resource, consume, call, acquire);
    },

    async wrapStream({ doStream, params, model }) {
      const { entity, resource, consume, acquire, correct } = acquisition(params, model);
      const lease = await limiter.acquire(entity, resource, consume, acquire);
      try {
        const result = await doStream();
        return { ...result, stream: settledBy(result.stream, lease, correct) };
      } catch (error) {
        await lease.rollback();
        throw error;
      }
    },
  };
}

/** Parts of a stream that are not output of the model. */
const NOT_OUTPUT = ["stream-start", "response-metadata", "raw", "error", "finish"];

/** The same stream. The lease ends with it. */
function settledBy(
  stream: ReadableStream,
  lease: Lease,
  correct: (lease: Lease, usage: unknown) => void,
): ReadableStream {
  const reader = stream.getReader();
  let hasOutput = false;
  let hasFailed = false;
  const settle = () => (hasFailed && !hasOutput ? lease.rollback() : lease.commit());
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          await settle();
          controller.close();
          return;
        }
        const part = value as { type?: string; usage?: unknown };
        if (part.type === "error") hasFailed = true;
        if (part.type === "finish") correct(lease, part.usage);
        if (!NOT_OUTPUT.includes(part.type ?? "")) hasOutput = true;
        controller.enqueue(value);
      } catch (error) {
        hasFailed = true;
        await settle();
        controller.error(error);
      }
    },
    async cancel(reason) {
      // The model may have begun: the estimate stays taken.
      await Promise.all([reader.cancel(reason), lease.commit()]);
    },
  });
}

/** What a response used; undefined if the model does not report it. Tokens are numbers in version 5 of the AI SDK, and objects since version 6. */
export function usageOf(reported: unknown): Usage | undefined {
  const { inputTokens, outputTokens, cachedInputTokens } = membersOf(reported);
  const input = countOf(inputTokens) ?? countOf(membersOf(inputTokens)["total"]);
  const output = countOf(outputTokens) ?? countOf(membersOf(outputTokens)["total"]);
  if (input === undefined && output === undefined) return undefined;
  const cached = countOf(cachedInputTokens) ?? countOf(membersOf(inputTokens)["cacheRead"]) ?? 0;
  const written = countOf(membersOf(inputTokens)["cacheWrite"]) ?? 0;
  // The total has all of them.
  const rest = Math.max((input ?? 0) - cached - written, 0);
  return { input: rest, output: output ?? 0, cached_input: cached, cache_write: written };
}

function tokensOf({ input = 0, output = 0, cached_input = 0, cache_write = 0 }: Usage): number {
  return input + output + cached_input + cache_write;
}

function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function countOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** Estimates the tokens of a call: its text by length, files by number, and the longest output that it allows. */
export function estimateTokens(
  call: ModelCall,
  { defaultOutputTokens = DEFAULT_OUTPUT_TOKENS, fileTokens = DEFAULT_FILE_TOKENS }: {
    defaultOutputTokens?: number | undefined;
    fileTokens?: number | undefined;
  } = {},
): number {
  return inputTokens(call, fileTokens) + (call.maxOutputTokens ?? defaultOutputTokens);
}

function inputTokens(call: ModelCall, fileTokens: number): number {
  const { characters, files } = measure([call.prompt, call.tools]);
  return Math.ceil(characters / CHARACTERS_PER_TOKEN) + files * fileTokens;
}

/** What is known of a call, for prices. Without `maxOutputTokens` and `defaultOutputTokens`, the prices say what to expect. */
function requestOf(call: ModelCall, { defaultOutputTokens, fileTokens = DEFAULT_FILE_TOKENS }: RateLimitOptions): Estimate {
  const max_output = call.maxOutputTokens ?? defaultOutputTokens ?? null;
  return { input: inputTokens(call, fileTokens), max_output };
}

/** Members of a prompt that the model does not read as text. */
const NOT_TEXT = ["type", "role", "providerOptions"];

/** The characters of all texts in a value, and the number of files. The content of a file is not text. */
function measure(value: unknown): { characters: number; files: number } {
  if (typeof value === "string") {
    return value.startsWith("data:") ? { characters: 0, files: 1 } : { characters: value.length, files: 0 };
  }
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return { characters: 0, files: 0 };
  if ("mediaType" in value) return { characters: 0, files: 1 };
  const parts = Object.entries(value).filter(([name]) => !NOT_TEXT.includes(name));
  const sizes = parts.map(([, part]) => measure(part));
  return {
    characters: sizes.reduce((sum, size) => sum + size.characters, 0),
    files: sizes.reduce((sum, size) => sum + size.files, 0),
  };
}
