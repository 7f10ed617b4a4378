// Compiled in strict mode and not run: the types of the package.
import { wrapLanguageModel, type LanguageModel } from "ai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { type Estimate, type Lease, RateLimiter, RefusedError, type Settlement, type Usage } from "zae-limiter-client";
import { rateLimit } from "zae-limiter-client/ai-sdk";

const limiter = new RateLimiter("http://127.0.0.1:8080", { token: undefined, onUnavailable: "allow" });

export async function leases(): Promise<number> {
  await using lease: Lease = await limiter.acquire("user-1", "gpt-4", { rpm: 1 }, { waitMs: 100 });
  lease.adjust({ tpm: 5 });
  const settlement: Settlement = await lease.commit();
  return settlement.consumed["tpm"] ?? 0;
}

export async function money(): Promise<Settlement> {
  const estimate: Estimate = { input: 2_000, max_output: 500 };
  await using lease = await limiter.acquire("user-1", "gpt-4", {}, { estimate });
  const usage: Usage = { input: 2_000, output: 120 };
  lease.adjustToUsage(usage);
  // @ts-expect-error: an estimate has an input
  await limiter.acquire("user-1", "gpt-4", {}, { estimate: { max_output: 500 } });
  return await lease.commitUsage(usage);
}

export async function results(): Promise<string> {
  return await limiter.run("user-1", "gpt-4", { rpm: 1 }, async () => "text");
}

export async function requests(): Promise<void> {
  const limits = [{ name: "rpm", capacity: 5 }];
  const stored = await limiter.request("PUT", "/v1/limits", { query: { resource: "gpt-4" }, body: { limits } });
  const first: number | null | undefined = stored.limits[0]?.capacity;
  const entity = await limiter.request("GET", "/v1/entities/{entity}", { path: { entity: "user-1" } });
  const name: string = entity.entity_id;
  const alive: string = (await limiter.request("GET", "/healthz")).status;
  const nothing: undefined = await limiter.request("DELETE", "/v1/limits", { query: { entity: "user-1" } });
  console.log(first, name, alive, nothing);
  // @ts-expect-error: there is no such path
  await limiter.request("GET", "/v1/nothing");
  // @ts-expect-error: there is no such method
  await limiter.request("PATCH", "/v1/limits");
  // @ts-expect-error: the path has a parameter
  await limiter.request("GET", "/v1/entities/{entity}");
  await limiter.request("PUT", "/v1/limits", { body: { limits: [{ name: "spend", quota: 500, per: "month" }] } });
  // @ts-expect-error: a capacity is a number
  await limiter.request("PUT", "/v1/limits", { body: { limits: [{ name: "rpm", capacity: "5" }] } });
  // @ts-expect-error: a limit has a name
  await limiter.request("PUT", "/v1/limits", { body: { limits: [{ capacity: 5 }] } });
  // @ts-expect-error: tokens are numbers
  await limiter.acquire("user-1", "gpt-4", { rpm: "1" });
}

export function wait(error: unknown): number | null {
  return error instanceof RefusedError ? error.retryAfterSeconds : null;
}

export function model(): LanguageModel {
  const provider = createOpenAICompatible({ name: "local", baseURL: "http://127.0.0.1:1" });
  return wrapLanguageModel({ model: provider("small"), middleware: rateLimit(limiter, { entity: "user-1" }) });
}
