export { createMemoryStore } from "./memory.ts";
export type { ListOptions, ReadOptions, RevisionOptions, Store, StoreRecord, StreamEntry } from "./store.ts";
