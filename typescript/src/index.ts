export type { components, paths } from "./api.js";
export {
  ConflictError,
  DisabledError,
  type ErrorKind,
  InternalError,
  InvalidError,
  LimiterError,
  type LimitState,
  NotFoundError,
  PermissionError,
  type Problem,
  RefusedError,
  UnavailableError,
} from "./errors.js";
export { type Admission, type Also, type Estimate, type Lease, type OnUnsettled, type Settlement, type Tokens, type Usage } from "./lease.js";
export { type AcquireOptions, type LimiterOptions, RateLimiter } from "./limiter.js";
