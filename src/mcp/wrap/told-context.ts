import type { Session } from "../../session/index.ts";
import type { Counter } from "../../tokens/index.ts";
import { countContext } from "../context-cost.ts";
import type { Background } from "./background.ts";

/** Keeps the account of what the wrapped server, with our tools, puts into the client's context before any call. */
export interface ToldContext {
  /** The server's answer to the handshake, or to whoever asks what it is. */
  greeted(instructions: unknown): Promise<void>;
  /** A listing begins: what one before told counts no more. */
  beginList(): void;
  /** A page of the list, ours included. */
  listed(tools: unknown): Promise<void>;
}

export interface ToldContextOptions {
  readonly session: Session;
  readonly counter: Counter;
  readonly background: Background;
}

export function createToldContext({ session, counter, background }: ToldContextOptions): ToldContext {
  let instructions = 0;
  let tools = 0;
  const record = (): Promise<void> => background.add(() => session.record("system", instructions + tools));
  return {
    greeted(text) {
      instructions = typeof text === "string" ? counter.count(text) : 0;
      return record();
    },
    beginList() {
      tools = 0;
    },
    listed(page) {
      tools += countContext(counter, { tools: Array.isArray(page) ? page : [] });
      return record();
    },
  };
}
