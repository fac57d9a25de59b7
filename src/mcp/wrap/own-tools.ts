import type { Delivered, ToolSchema } from "../../session/index.ts";
import {
  applyEdits,
  elementsOf,
  type JsonEdit,
  type JsonMember,
  memberOf,
  membersOf,
} from "../../text/index.ts";
import { isObject, type RpcObject } from "../lines/rpc-message.ts";
import { nextPageTool, recallTool } from "../page-tools.ts";

/** The tools that a wrapped server gets in addition, under names that it does not have itself. */
export interface OwnTools {
  /** Which of ours a call means, if any. */
  find(name: string, args: RpcObject): ToolSchema | undefined;
  nextPageName(): string;
  /** A page went out: its tokens are ours. */
  gave(page: Delivered): void;
  /** A listing begins: the names of one before count no more. */
  beginList(): void;
  /** The list with ours at its end, if this is its last page. */
  addTo(message: string, result: RpcObject): string;
}

const tools = [nextPageTool, recallTool] as const;
const prefix = "plimsoll_";
/** Tokens that are remembered, the newest. */
const mostGiven = 1_000;

export function createOwnTools(): OwnTools {
  let theirs = new Set<string>();
  const given = new Set<string>();
  const nameOf = ({ name }: ToolSchema): string => (theirs.has(name) ? `${prefix}${name}` : name);
  return {
    find(name, args) {
      // A model that was given a token may call the tool by its usual name, also where that is the server's.
      if (name === nextPageTool.name && given.has(String(args.token))) return nextPageTool;
      return tools.find((tool) => nameOf(tool) === name);
    },
    nextPageName: () => nameOf(nextPageTool),
    gave({ envelope }) {
      if (envelope.status === "error") return;
      const { continuation_token, left_out } = envelope.data;
      for (const token of [continuation_token, left_out?.token]) if (token !== undefined) given.add(token);
      for (const token of given) if (given.size > mostGiven) given.delete(token);
    },
    beginList() {
      theirs = new Set();
    },
    addTo(message, result) {
      if (!Array.isArray(result.tools)) return message;
      for (const tool of result.tools) if (isObject(tool)) theirs.add(String(tool.name));
      const isLast = result.nextCursor === undefined || result.nextCursor === null;
      return editList(message, isLast ? tools.map((tool) => render(tool, nameOf(tool))) : []);
    },
  };
}

function render({ description, inputSchema }: ToolSchema, name: string): string {
  return JSON.stringify({ name, description, inputSchema, annotations: { readOnlyHint: true } });
}

function editList(message: string, added: readonly string[]): string {
  const result = memberOf(message, 0, "result");
  const list = result && memberOf(message, result.value.start, "tools");
  if (list === undefined) return message;
  const elements = elementsOf(message, list.value.start);
  const schemas = elements.flatMap(({ start }) => withoutOutputSchema(membersOf(message, start)));
  const end = elements.at(-1)?.end ?? list.value.start + 1;
  const text = added.map((tool, index) => (index + elements.length > 0 ? `,${tool}` : tool)).join("");
  return applyEdits(message, [...schemas, { start: end, end, text }]);
}

/** A page does not have the form that a tool promises for its structured results, and clients refuse what breaks the promise. */
function withoutOutputSchema(members: readonly JsonMember[]): JsonEdit[] {
  const at = members.findIndex(({ name }) => name === "outputSchema");
  const found = members[at];
  if (found === undefined) return [];
  const next = members[at + 1];
  if (next !== undefined) return [{ start: found.start, end: next.start, text: "" }];
  return [{ start: members[at - 1]?.end ?? found.start, end: found.end, text: "" }];
}
