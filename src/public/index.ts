/** The library: token counters, the history trimmer, checks of requests, and the in-memory store. */
export { ContextError, type ErrorCode, errorCodes } from "../errors.ts";
export { createTrimmer, type Reduction, type Trimmer, type TrimmerOptions } from "../history/index.ts";
export { countMessages, type Problem, validateRequest } from "../messages/index.ts";
export { createMemoryStore, type Store } from "../store/index.ts";
export { type Counter, type CounterName, counterNames, createCounter } from "../tokens/index.ts";
