/** One configuration file: its values, the line of each, and all that is wrong with it. Loads yaml and zod. */
import { type ErrorCode, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import type { z } from "zod";
import { didYouMean } from "../../text/index.ts";
import type { ConfigPart } from "./config.ts";
import { configJsonSchema, configSchema, type JsonSchema } from "./config-schema.ts";

export interface ConfigFile {
  readonly values: ConfigPart;
  readonly problems: readonly ConfigProblem[];
  /** The line of a key, or of the nearest key around it. 1-based. */
  lineOf(path: readonly PropertyKey[]): number;
}

export interface ConfigProblem {
  readonly line: number;
  readonly message: string;
}

export function parseConfigFile(text: string): ConfigFile {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false, logLevel: "error" });
  const lineOf = (path: readonly PropertyKey[]) =>
    lineCounter.linePos(offsetOf(document.contents, path)).line || 1;
  const malformed = document.errors.map((error) => ({
    line: lineCounter.linePos(error.pos[0]).line,
    message: `malformed YAML: ${ownWords[error.code] ?? error.message}`,
  }));
  if (malformed.length > 0) return { values: {}, problems: malformed, lineOf };
  const { values, issues } = validate(document);
  const problems = issues.map(({ path, message }) => ({ line: lineOf(path), message }));
  return { values, problems: problems.sort((a, b) => a.line - b.line), lineOf };
}

/** Where the library speaks to programmers. */
const ownWords: Partial<Record<ErrorCode, string>> = {
  MULTIPLE_DOCS: 'a second document begins with "---": keep one document in a file',
};

interface Issue {
  path: readonly PropertyKey[];
  message: string;
}

function validate(document: { toJS(): unknown }): { values: ConfigPart; issues: Issue[] } {
  let input: unknown;
  try {
    input = document.toJS() ?? {};
  } catch (error) {
    // An alias that leads nowhere, or that grows without end.
    return { values: {}, issues: [{ path: [], message: `malformed YAML: ${(error as Error).message}` }] };
  }
  const lost = lostKeys(input);
  if (lost.length > 0) return { values: {}, issues: lost };
  const result = configSchema.safeParse(input, { reportInput: true });
  if (result.success) return { values: result.data, issues: [] };
  return { values: {}, issues: result.error.issues.flatMap(explain) };
}

/** The one name that zod leaves out of what it returns, without a word. */
function lostKeys(value: unknown, path: readonly PropertyKey[] = []): Issue[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) => {
    const here = [...path, key];
    const message = `"${here.join(".")}" cannot be used as a name`;
    return key === "__proto__" ? [{ path: here, message }] : lostKeys(child, here);
  });
}

function explain(issue: z.core.$ZodIssue): Issue[] {
  if (issue.code === "unrecognized_keys") return issue.keys.map((key) => unknownKey(issue.path, key));
  const { path } = issue;
  if (path.length === 0) return [{ path, message: `must be a mapping of keys, not ${shown(issue.input)}` }];
  const name = path.join(".");
  if (issue.input === undefined) return [{ path, message: `"${name}" is missing` }];
  return [
    {
      path,
      message: `"${name}" must be ${requirement(issue)}, not ${shown(issue.input)}${suggestion(issue)}`,
    },
  ];
}

function unknownKey(path: readonly PropertyKey[], key: string): Issue {
  const place = path.reduce<JsonSchema | undefined>(
    (at, part) => at?.properties?.[String(part)],
    configJsonSchema(),
  );
  const allowed = Object.keys(place?.properties ?? {});
  const meant = didYouMean(key, allowed) ?? `Allowed are ${allowed.join(", ")}.`;
  return { path: [...path, key], message: `unknown key "${[...path, key].join(".")}". ${meant}` };
}

function requirement(issue: z.core.$ZodIssue): string {
  if (issue.code === "invalid_value") return `one of ${issue.values.join(", ")}`;
  if (issue.code === "too_small" && issue.origin === "string") return "a text that is not empty";
  if (issue.code === "too_small") return `${issue.inclusive ? "at least" : "above"} ${issue.minimum}`;
  if (issue.code === "too_big") return `at most ${issue.maximum}`;
  if (issue.code === "invalid_type") return typeNames[issue.expected] ?? issue.expected;
  return issue.message;
}

const typeNames: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  array: "a list",
  object: "a mapping of keys",
  record: "a mapping of keys",
};

function shown(input: unknown): string {
  if (input === null) return "empty";
  if (Array.isArray(input)) return "a list";
  if (typeof input === "object") return "a mapping";
  return typeof input === "string" ? JSON.stringify(input) : String(input);
}

function suggestion(issue: z.core.$ZodIssue): string {
  if (issue.code !== "invalid_value" || typeof issue.input !== "string") return "";
  const meant = didYouMean(issue.input, issue.values.map(String));
  return meant === undefined ? "" : `. ${meant}`;
}

/** Where the key of the path starts; as far down as the file goes. */
function offsetOf(contents: unknown, path: readonly PropertyKey[]): number {
  let node = contents;
  let offset = (contents as Node | null)?.range?.[0] ?? 0;
  for (const part of path) {
    const [keyNode, valueNode] = childOf(node, part);
    if (keyNode === undefined) break;
    offset = (keyNode as Node).range?.[0] ?? offset;
    node = valueNode;
  }
  return offset;
}

function childOf(node: unknown, part: PropertyKey): [unknown, unknown] | [] {
  if (isSeq(node)) return [node.items[Number(part)], node.items[Number(part)]];
  if (!isMap(node)) return [];
  const pair = node.items.find(({ key }) => String(isScalar(key) ? key.value : key) === part);
  return pair === undefined ? [] : [pair.key, pair.value];
}
