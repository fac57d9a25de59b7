import { createMemoryStore } from "./memory.ts";
import { describeStore } from "./store.contract.ts";

describeStore("memory", async () => createMemoryStore());
