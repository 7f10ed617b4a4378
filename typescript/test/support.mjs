import { RateLimiter } from "zae-limiter-client";

export const url = process.env.ZAE_LIMITER_URL;
export const token = process.env.ZAE_LIMITER_TOKEN;

/** A limiter of the server, with what could not be settled. */
export function onServer(options = {}) {
  const unsettled = [];
  const onUnsettled = (error) => unsettled.push(error);
  // No result of a test depends on how fast the machine is.
  return { limiter: new RateLimiter(url, { token, onUnsettled, timeoutMs: 600_000, ...options }), unsettled };
}

// One token a day comes back: what is left says exactly what was written.
export const limits = [
  { name: "rpm", capacity: 5, refill_amount: 1, refill_period_seconds: 86400 },
  { name: "tpm", capacity: 10000, refill_amount: 1, refill_period_seconds: 86400 },
];

/** A promise and the function that resolves it. */
export function signal() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}
