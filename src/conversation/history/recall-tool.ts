/** A tool with which a model reads what was trimmed: by id, by a search, or as a list. */
import { ContextError } from "../../core/errors.ts";
import type { Store } from "../../core/store/index.ts";
import { countNoun, type Fields, joinLines, splitLines } from "../../core/text/index.ts";
import { createHistoryStore, type Recalled } from "./history-store.ts";
import type { Trimmer } from "./trimmer.ts";

/** What a recall tool reads: a trimmer, or the store and session of a wrapped client. */
export type RecallSource =
  | Pick<Trimmer, "recall" | "listTrimmed">
  | { readonly store: Store; readonly sessionId: string };

/** A tool for the model. Put `definition` into the tools of your requests, call `handle` with the input of a call, and
 *  add `instructions` to the system text. */
export interface RecallTool<Definition = RecallDefinition> {
  readonly definition: Definition;
  /** Returns the result of a call as text. Takes the input as an object or as JSON. Wrong input gets an answer that says
   *  what is wrong. */
  handle(input: unknown): Promise<string>;
  /** One line for the system text. */
  readonly instructions: string;
}

/** The tool in no SDK's form. */
export interface RecallDefinition {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: { readonly type: "object"; readonly properties: Fields; readonly additionalProperties: false };
}

/** Creates the tool, in a form that each integration turns into its own. `findOther` looks for ids that no trim gave. */
export function createRecallTool(
  source: RecallSource,
  findOther: (id: string) => Promise<string | undefined> = async () => undefined,
): RecallTool {
  const { recall, listTrimmed } = openSource(source);
  return {
    definition,
    instructions:
      "Older parts of this conversation are replaced by placeholders such as [trimmed]. Call recall with the id in a " +
      "placeholder to read the original, with grep to search all originals, or without input to list them.",
    async handle(input) {
      const { id, grep, line } = readInput(input);
      if (id !== undefined) return showText(id, (await recall(id))?.text ?? (await findOther(id)), line);
      const trimmed = (await listTrimmed()).filter(({ kind }) => kind !== "thinking");
      return grep === undefined ? listAll(trimmed) : search(trimmed, grep);
    },
  };
}

const definition: RecallDefinition = {
  name: "recall",
  description:
    "Returns content of this conversation that was trimmed. With id: one trimmed part. With grep: the lines of all " +
    "trimmed parts that contain this text. Without input: a list of the trimmed parts.",
  inputSchema: {
    type: "object",
    properties: {
      id: { type: "string", description: "The id of a trimmed part, such as k3vbq5zoha." },
      grep: { type: "string", description: "A text to search for, in upper or lower case. It is not a pattern." },
      line: { type: "integer", minimum: 1, description: "With id: the line to start at." },
    },
    additionalProperties: false,
  },
};

/** Whether tools of a request, in any format, include one with which the model can recall by id. */
export function hasRecallTool(tools: readonly object[] | null | undefined): boolean {
  // Clients put the name of an MCP server before the names of its tools.
  const recallName = /^(?:.*__|plimsoll[_.-])?recall$/;
  if (!Array.isArray(tools)) return false;
  return tools.some((tool) => {
    // Gemini lists functions in one tool, and OpenAI's chat has the name one level further down.
    const { name, function: inner, functionDeclarations: functions } = Object(tool) as Fields;
    const nested = Array.isArray(functions) ? functions : [];
    const names = [name, Object(inner).name, ...nested.map((each) => Object(each).name)];
    return names.some((each) => typeof each === "string" && recallName.test(each));
  });
}

function openSource(source: RecallSource): Pick<Trimmer, "recall" | "listTrimmed"> {
  if (typeof Reflect.get(Object(source), "recall") === "function")
    return source as Pick<Trimmer, "recall" | "listTrimmed">;
  const { store, sessionId } = Object(source) as { store?: Store; sessionId?: string };
  if (store === undefined || typeof sessionId !== "string") {
    throw new ContextError("invalid_argument", "recallTool needs a trimmer, or a store and a sessionId", {
      hint: "Pass the store and the sessionId that the wrapped client has.",
    });
  }
  const saved = createHistoryStore(store, sessionId);
  return { recall: (id) => saved.recall(id, undefined, []), listTrimmed: () => saved.list([], []) };
}

/** Models send empty texts and nulls for what they leave out. */
function readInput(input: unknown): { id: string | undefined; grep: string | undefined; line: number } {
  const { id, grep, line } = Object(typeof input === "string" ? parse(input) : input) as Fields;
  const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);
  const from = Number(line ?? 1);
  return { id: text(id), grep: text(grep), line: Number.isInteger(from) && from > 0 ? from : 1 };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

const maxLines = 100;

function showText(id: string, found: string | undefined, from: number): string {
  if (found === undefined) return `Nothing is stored under ${id}. Call recall without input for a list.`;
  const lines = splitLines(found);
  if (from > lines.length) return `${id} has only ${countNoun(lines.length, "line")}.`;
  // About 5,000 tokens: a recalled part must not fill the window again.
  let left = 16_000;
  const after = lines.slice(from - 1);
  const end = after.findIndex(({ text }) => {
    left -= text.length + 1;
    return left < 0;
  });
  const text = joinLines(end < 0 ? after : after.slice(0, end));
  return end < 0 ? text : `${text}\n[${id} continues: recall with line ${from + end} of ${lines.length}]`;
}

/** Lists the newest parts first. */
function listAll(trimmed: readonly Recalled[]): string {
  if (trimmed.length === 0) return "Nothing was trimmed.";
  const listed = trimmed.toReversed().slice(0, maxLines);
  const lines = listed.map(({ id, kind, toolName, text }) => {
    const read = splitLines(text);
    const what = [kind.replace("_", " "), toolName].filter((each) => each !== undefined).join(" ");
    const first = read.find((line) => line.text.trim() !== "")?.text ?? "";
    return `${id} ${what}, ${countNoun(read.length, "line")}: ${excerpt(first)}`;
  });
  return [...lines, ...countOmitted(trimmed.length - listed.length, "older part")].join("\n");
}

function search(trimmed: readonly Recalled[], grep: string): string {
  const wanted = grep.toLowerCase();
  const hits = trimmed.toReversed().flatMap(({ id, text }) =>
    splitLines(text).flatMap(({ text: line }, index) => {
      const at = line.toLowerCase().indexOf(wanted);
      return at < 0 ? [] : [`${id}:${index + 1}: ${excerpt(line.slice(Math.max(0, at - 80)))}`];
    }),
  );
  if (hits.length === 0) return `No trimmed part contains ${JSON.stringify(grep)}.`;
  return [...hits.slice(0, maxLines), ...countOmitted(hits.length - maxLines, "further line")].join("\n");
}

function countOmitted(count: number, noun: string): string[] {
  return count > 0 ? [`[${countNoun(count, noun)} not shown]`] : [];
}

function excerpt(line: string): string {
  const text = line.trim();
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
