/** Keeps state: the interface that every store has, and a store in memory. */
export {
  createMemoryStore,
  type ListOptions,
  type ReadOptions,
  type Store,
  type StoreRecord,
  type StreamEntry,
} from "../core/store/index.ts";
