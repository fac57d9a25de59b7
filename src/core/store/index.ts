export {
  createEventWriter,
  type EventWriter,
  eventLifeMs,
  forgetEvents,
  pruneEvents,
  readEvents,
} from "./events.ts";
export { createMaintainedMemory, createMemoryStore } from "./memory.ts";
export type {
  ListOptions,
  MaintainedStore,
  ReadOptions,
  RevisionOptions,
  Store,
  StoreDriver,
  StoreRecord,
  StreamEntry,
} from "./store.ts";
export {
  checkNames,
  checkRevision,
  checkWhole,
  createStore,
  decode,
  encode,
  encodeRange,
  shownAddress,
} from "./store.ts";
