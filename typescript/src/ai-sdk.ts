// Middleware for the AI SDK. Its types are described by what is used of them, so that one package serves versions 5 to 7.
import type { Lease, Tokens } from "./lease.js";
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

export interface RateLimitOptions extends Omit<AcquireOptions, "idempotencyKey" | "signal"> {
  /** Who calls: one name, or one for each call. */
  entity: string | ((call: ModelCall) => string);
  /** What is called: the id of the model unless set. */
  resource?: string | undefined;
  /** The limit that counts requests: `rpm` unless set, none with null. */
  requestLimit?: string | null | undefined;
  /** The limit that counts tokens: `tpm` unless set, none with null. */
  tokenLimit?: string | null | undefined;
  /** Expected output tokens of a call without `maxOutputTokens`: 1,000 unless set. */
  defaultOutputTokens?: number | undefined;
  /** Expected input tokens of an image or another file: 1,000 unless set. */
  fileTokens?: number | undefined;
  /** Replaces the estimate of all tokens of a call. */
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
  const { requestLimit = "rpm", tokenLimit = "tpm" } = options;

  function acquisition(params: ModelCall, model: Model) {
    const estimate = options.estimate?.(params) ?? estimateTokens(params, options);
    const consume: Tokens = {};
    if (requestLimit !== null) consume[requestLimit] = 1;
    if (tokenLimit !== null) consume[tokenLimit] = estimate;
    const entity = typeof options.entity === "string" ? options.entity : options.entity(params);
    const { waitMs, leaseMs, renewForMs, onUnavailable } = options;
    const acquire = { waitMs, leaseMs, renewForMs, onUnavailable, signal: params.abortSignal };
    /** Corrects the estimate. A response without usage costs the estimate. */
    const correct = (lease: Lease, usage: unknown): void => {
      const used = usedTokens(usage);
      if (tokenLimit !== null && used !== undefined) lease.adjust({ [tokenLimit]: used - estimate });
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

/** Input and output tokens; undefined if the model does not report them. */
function usedTokens(usage: unknown): number | undefined {
  const { inputTokens, outputTokens } = (usage ?? {}) as { inputTokens?: unknown; outputTokens?: unknown };
  const input = total(inputTokens);
  const output = total(outputTokens);
  return input === undefined && output === undefined ? undefined : (input ?? 0) + (output ?? 0);
}

/** A number in version 5 of the AI SDK, and an object with a total since version 6. */
function total(tokens: unknown): number | undefined {
  const count = typeof tokens === "object" && tokens !== null ? (tokens as { total?: unknown }).total : tokens;
  return typeof count === "number" ? count : undefined;
}

/** Estimates the tokens of a call: its text by length, files by number, and the longest output that it allows. */
export function estimateTokens(
  call: ModelCall,
  { defaultOutputTokens = DEFAULT_OUTPUT_TOKENS, fileTokens = DEFAULT_FILE_TOKENS }: {
    defaultOutputTokens?: number | undefined;
    fileTokens?: number | undefined;
  } = {},
): number {
  const { characters, files } = measure([call.prompt, call.tools]);
  const input = Math.ceil(characters / CHARACTERS_PER_TOKEN) + files * fileTokens;
  return input + (call.maxOutputTokens ?? defaultOutputTokens);
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
