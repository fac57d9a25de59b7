export { generateRequest } from "./generate/generate-request.ts";
export { generateSession, type SessionOptions } from "./generate/generate-session.ts";
export { type SentKind, sentKinds } from "./message-blocks.ts";
export { type Reducer, type ReplayPolicy, replayPolicies, type Sent } from "./policy-reducer.ts";
export { type PreparedSession, prepareSession } from "./prepare-session.ts";
export { replayReducer, replaySession, type SessionReplay } from "./replay-session.ts";
export { addTotals, type CallReplay, type ReplayTotals } from "./replay-totals.ts";
export { kindOfLines, readSession } from "./sessions/read-session.ts";
export type { RecordedSession } from "./sessions/recorded-session.ts";
