/** The library: token counters, the history trimmer, checks of requests, and the in-memory store. */

export { createTrimmer, type Reduction, type Trimmer, type TrimmerOptions } from "../conversation/history/index.ts";
export { ContextError, type ErrorCode, errorCodes } from "../core/errors.ts";
export { countMessages, type Problem, validateRequest } from "../core/messages/index.ts";
export { createMemoryStore, type Store } from "../core/store/index.ts";
export { type Counter, type CounterName, counterNames, createCounter } from "../core/tokens/index.ts";
