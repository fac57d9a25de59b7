import type { ToolArguments, ToolFailure } from "../../session/index.ts";
import type { Store } from "../../store/index.ts";

/** Which call a token of our own tools goes on with. `offset:100` is meant for the tool itself, but next_page takes it as well: many
 *  models pass every token there. Kept in the store, so that it still does after a restart. */
export interface Continuations {
  remember(token: string, call: ContinuedCall): Promise<void>;
  /** A failure where no call, or more than one, goes on with it. */
  find(token: string): Promise<ContinuedCall | ToolFailure>;
}

export interface ContinuedCall {
  readonly tool: string;
  /** Without offset. */
  readonly args: ToolArguments;
}

interface Entry extends ContinuedCall {
  readonly token: string;
  /** Its page was asked for: a later call with the same token is meant first. */
  readonly used: boolean;
}

const collection = "mcp-continuations";
const mostEntries = 50;

export function createContinuations(store: Store, sessionId: string): Continuations {
  const change = async (edit: (entries: readonly Entry[]) => readonly Entry[]): Promise<void> => {
    await store.update(collection, sessionId, (text) => JSON.stringify(edit(readEntries(text))));
  };
  return {
    async remember(token, { tool, args }) {
      const entry = { token, tool, args, used: false };
      await change((entries) =>
        [...entries.filter((each) => !isSame(each, entry)), entry].slice(-mostEntries),
      );
    },
    async find(token) {
      const entries = readEntries((await store.get(collection, sessionId))?.value);
      const found = choose(
        entries.filter((each) => each.token === token),
        token,
      );
      if ("code" in found) return found;
      await change((all) => all.map((each) => (isSame(each, found) ? { ...each, used: true } : each)));
      return { tool: found.tool, args: found.args };
    },
  };
}

function choose(entries: readonly Entry[], token: string): Entry | ToolFailure {
  const open = entries.filter(({ used }) => !used);
  const [first] = open.length === 0 ? entries.slice(-1) : open;
  const offset = token.replace("offset:", "offset=");
  if (first === undefined) {
    const message = `no result of this session goes on with ${token}`;
    return { code: "invalid_token", message, hint: `Call the tool itself again with ${offset}.` };
  }
  if (open.length <= 1) return first;
  const calls = open.map(({ tool, args }) => `${tool} ${JSON.stringify(args)}`.slice(0, 100));
  const message = `${open.length} results go on with ${token}: ${calls.join("; ")}`;
  return { code: "ambiguous_token", message, hint: `Call the tool you mean again with ${offset}.` };
}

function readEntries(text: string | undefined): readonly Entry[] {
  return text === undefined ? [] : (JSON.parse(text) as Entry[]);
}

function isSame(left: Entry, right: Entry): boolean {
  return left.token === right.token && keyOf(left) === keyOf(right);
}

function keyOf({ tool, args }: Entry): string {
  const names = Object.keys(args).sort();
  return JSON.stringify([tool, ...names.map((name) => [name, args[name]])]);
}
