// The middleware in the AI SDK, with a model server that speaks chat completions, against the server at ZAE_LIMITER_URL.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText, wrapLanguageModel } from "ai";
import { RefusedError } from "zae-limiter-client";
import { estimateTokens, rateLimit, usageOf } from "zae-limiter-client/ai-sdk";
import { limits, onServer, signal } from "./support.mjs";

const { limiter, unsettled } = onServer();
await limiter.request("PUT", "/v1/limits", { body: { limits } });

const usage = { prompt_tokens: 30, completion_tokens: 12, total_tokens: 42 };
const chunk = (delta, more = {}) => ({
  id: "c1",
  object: "chat.completion.chunk",
  created: 1,
  model: "small",
  choices: [{ index: 0, delta, finish_reason: null }],
  ...more,
});
const endless = signal();

/** Writes the events of a stream. */
function stream(response, chunks) {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const each of chunks) response.write(`data: ${JSON.stringify(each)}\n\n`);
}

/** What the model does, by its name. */
const models = {
  whole(response) {
    const message = { role: "assistant", content: "Hello" };
    const body = { id: "c1", created: 1, model: "small", choices: [{ index: 0, message, finish_reason: "stop" }], usage };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  },
  failing(response) {
    const error = { error: { message: "no such model", type: "invalid_request_error" } };
    response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify(error));
  },
  streaming(response) {
    const finish = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
    stream(response, [chunk({ role: "assistant", content: "Hel" }), chunk({ content: "lo" }), chunk({}, finish), chunk({}, { choices: [], usage })]);
    response.end("data: [DONE]\n\n");
  },
  breaking(response) {
    stream(response, [chunk({ role: "assistant", content: "Hel" })]);
    response.write(": the connection ends after this\n\n", () => response.destroy());
  },
  endless(response) {
    stream(response, [chunk({ role: "assistant", content: "Hel" })]);
    response.on("close", endless.resolve);
  },
};
const server = createServer((request, response) => {
  let text = "";
  request.on("data", (data) => (text += data));
  request.on("end", () => models[JSON.parse(text).model](response));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
after(() => {
  server.closeAllConnections();
  server.close();
});

const provider = createOpenAICompatible({
  name: "local",
  baseURL: `http://127.0.0.1:${server.address().port}/v1`,
  includeUsage: true,
});
const limited = (name, entity, options = {}) =>
  wrapLanguageModel({ model: provider(name), middleware: rateLimit(limiter, { entity, ...options }) });
const left = async (entity, model) => (await limiter.available(entity, model)).tokens;
const call = { prompt: "Say hello", maxOutputTokens: 100, maxRetries: 0 };
// Nine characters are three tokens.
const ESTIMATE = 103;

test("a call costs the usage that its response reports", async () => {
  const { text } = await generateText({ model: limited("whole", "generate"), ...call });
  assert.equal(text, "Hello");
  assert.deepEqual(await left("generate", "whole"), { rpm: 4, tpm: 10000 - 42 });
});

test("a call that fails costs nothing and keeps its error", async () => {
  const model = limited("failing", "fails");
  await assert.rejects(generateText({ model, ...call }), { name: "AI_APICallError", message: "no such model" });
  assert.deepEqual(await left("fails", "failing"), { rpm: 5, tpm: 10000 });
});

test("a call over the limit does not reach the model", async () => {
  const model = limited("whole", "over", { defaultOutputTokens: 20_000 });
  const { prompt } = call;
  await assert.rejects(generateText({ model, prompt, maxRetries: 0 }), RefusedError);
  assert.deepEqual(await left("over", "whole"), { rpm: 5, tpm: 10000 });
});

test("a stream costs the usage that its end reports", async () => {
  const { textStream } = streamText({ model: limited("streaming", "stream"), ...call });
  const texts = [];
  for await (const text of textStream) texts.push(text);
  assert.deepEqual(texts, ["Hel", "lo"]);
  assert.deepEqual(await left("stream", "streaming"), { rpm: 4, tpm: 10000 - 42 });
});

test("a stream that cannot begin costs nothing", async () => {
  const errors = [];
  const onError = ({ error }) => errors.push(error);
  const result = streamText({ model: limited("failing", "stream-fails"), ...call, onError });
  await result.consumeStream();
  assert.equal(errors[0].message, "no such model");
  assert.deepEqual(await left("stream-fails", "failing"), { rpm: 5, tpm: 10000 });
});

test("a stream that breaks off costs the estimate", async () => {
  const errors = [];
  const result = streamText({ model: limited("breaking", "breaks"), ...call });
  await result.consumeStream({ onError: (error) => errors.push(error) });
  assert.equal(errors.length, 1);
  assert.deepEqual(await left("breaks", "breaking"), { rpm: 4, tpm: 10000 - ESTIMATE });
});

test("a stream that is canceled costs the estimate and ends at the model", async () => {
  const { stream } = await limited("endless", "cancels").doStream({
    prompt: [{ role: "user", content: [{ type: "text", text: call.prompt }] }],
    maxOutputTokens: 100,
  });
  const reader = stream.getReader();
  for (;;) {
    const { value } = await reader.read();
    if (value.type === "text-delta") break;
  }
  await reader.cancel();
  await endless.promise;
  assert.deepEqual(await left("cancels", "endless"), { rpm: 4, tpm: 10000 - ESTIMATE });
});

test("entity, resource and limits can be chosen", async () => {
  const entity = ({ prompt }) => prompt[0].content[0].text.slice(4);
  const options = { resource: "models", requestLimit: null, estimate: () => 7 };
  await generateText({ model: limited("whole", entity, options), ...call });
  assert.deepEqual(await left("hello", "models"), { rpm: 5, tpm: 10000 - 42 });
});

test("tokens and money are counted by the stored prices", async () => {
  const query = { resource: "priced-model" };
  const money = { name: "usd", capacity: 1_000_000, refill_amount: 1, refill_period_seconds: 86400 };
  await limiter.request("PUT", "/v1/limits", { query, body: { limits: [...limits, money] } });
  await limiter.request("PUT", "/v1/prices", { query, body: { input: "$2", output: "$8" } });
  const options = { resource: "priced-model", storedPrices: true };
  await generateText({ model: limited("whole", "priced", options), ...call });
  const whole = { rpm: 4, tpm: 10000 - 42, usd: 1_000_000 - 30 * 2 - 12 * 8 };
  assert.deepEqual(await left("priced", "priced-model"), whole);
  const result = streamText({ model: limited("breaking", "priced-estimate", options), ...call });
  await result.consumeStream({ onError: () => {} });
  const estimated = { rpm: 4, tpm: 10000 - ESTIMATE, usd: 1_000_000 - 3 * 2 - 100 * 8 };
  assert.deepEqual(await left("priced-estimate", "priced-model"), estimated);
});

test("a usage is read from every version of the AI SDK, and no token is in two of its numbers", () => {
  const usage = { input: 20, output: 12, cached_input: 10, cache_write: 0 };
  assert.deepEqual(usageOf({ inputTokens: 30, outputTokens: 12, cachedInputTokens: 10 }), usage);
  const inputTokens = { total: 35, noCache: 20, cacheRead: 10, cacheWrite: 5 };
  assert.deepEqual(usageOf({ inputTokens, outputTokens: { total: 12, text: 12 } }), { ...usage, cache_write: 5 });
  assert.equal(usageOf({ inputTokens: undefined, outputTokens: {} }), undefined);
  assert.equal(usageOf(undefined), undefined);
});

test("files are not counted as text", () => {
  const picture = { type: "file", mediaType: "image/png", data: "A".repeat(4_000_000) };
  const prompt = [{ role: "user", content: [{ type: "text", text: "What is it?" }, picture] }];
  assert.equal(estimateTokens({ prompt, maxOutputTokens: 10 }), 3 + 1_000 + 10);
  assert.equal(estimateTokens({ prompt: ["data:image/png;base64,AAAA"] }, { fileTokens: 5, defaultOutputTokens: 6 }), 11);
  assert.equal(estimateTokens({ prompt: [new Uint8Array(9000)], maxOutputTokens: 1 }), 1);
});

test("a tool's arguments and description are counted", () => {
  const tools = [{ type: "function", name: "look", description: "Finds it", inputSchema: { type: "object" } }];
  assert.equal(estimateTokens({ prompt: [], tools, maxOutputTokens: 0 }), 3);
});

test("every lease was settled", () => assert.deepEqual(unsettled, []));
