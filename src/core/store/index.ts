export {
  createEventWriter,
  type EventWriter,
  eventLifeMs,
  pruneEvents,
  readEvents,
} from "./events.ts";
export { createMemoryStore } from "./memory.ts";

export type {
  ListOptions,
  MaintainedStore,
  ReadOptions,
  RevisionOptions,
  Store,
  StoreRecord,
  StreamEntry,
} from "./store.ts";
export { shownAddress } from "./store.ts";
