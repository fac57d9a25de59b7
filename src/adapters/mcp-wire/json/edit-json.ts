/**
 * Puts an entry into JSON and takes it out again, by inserting and cutting text alone. How much around an entry is ours can be read
 * off the file itself, on any machine and without a record: the outermost thing that we wrote is spread over lines, what is in it
 * stands on one line. Entry, object around it, whole file: each comes out differently, and goes as it came.
 */
import { isDeepStrictEqual } from "node:util";
import { ContextError } from "../../../errors.ts";
import { type ConfigFormat, foreignEntry, type WiredServer } from "../wired-server.ts";
import { cutMember, insertMember } from "./json-members.ts";
import { hasLineBreak, readValue, renderSpread, styleOf } from "./json-text.ts";
import { lineAt } from "./json-tokens.ts";
import {
  type JsonDocument,
  type JsonMember,
  type JsonObject,
  type JsonValue,
  scanJson,
} from "./scan-json.ts";

export const jsonFormat: ConfigFormat = { add, remove };

function add(current: string | undefined, server: WiredServer): string {
  const path = [...server.keys, server.name];
  const whole = nested(path, server);
  if (current === undefined) return `${renderSpread(whole, "", styleOf(""))}\n`;
  const { root, start, endsInLineComment } = scanJson(current, path);
  if (root === undefined) {
    const text = renderSpread(whole, "", styleOf(current));
    // Behind a comment without a line break it would be a part of the comment.
    return endsInLineComment
      ? `${current.slice(0, start)}${text}${current.slice(start)}`
      : `${current}${text}`;
  }
  const steps = stepsTo(root, { path, text: current });
  const { object, member } = steps.at(-1)!;
  if (member === undefined) {
    const [key, ...below] = path.slice(steps.length - 1);
    return insertMember(current, object, { key: key!, value: nested(below, server) });
  }
  if (!isDeepStrictEqual(readValue(current, member.value).data, server.entry))
    throw foreignEntry(server, lineAt(current, member.start));
  return current;
}

function remove(current: string, server: WiredServer): string | undefined {
  const path = [...server.keys, server.name];
  const document = scanJson(current, path);
  if (document.root === undefined) return current;
  const steps = stepsTo(document.root, { path, text: current });
  const { member } = steps.at(-1)!;
  if (member === undefined) return current;
  const { data, hasComments } = readValue(current, member.value);
  if (hasComments || !isDeepStrictEqual(data, server.entry))
    throw foreignEntry(server, lineAt(current, member.start));
  for (const { object, member: each } of steps.toReversed()) {
    const isOutermost = hasLineBreak(current, each!.value) || !isAlone(current, object);
    if (isOutermost) return cutMember(current, object, each!);
  }
  return withoutRoot(current, document, steps[0]!);
}

/** The entry with an object around it for each key. */
function nested(keys: readonly string[], { entry }: WiredServer): object {
  return keys.reduceRight<object>((value, key) => ({ [key]: value }), entry);
}

interface Step {
  readonly object: JsonObject;
  /** Absent where the way ends. Of several with one name the last counts, as in JSON.parse. */
  readonly member: JsonMember | undefined;
}

function stepsTo(root: JsonValue, { path, text }: { path: readonly string[]; text: string }): Step[] {
  const steps: Step[] = [];
  let value: JsonValue = root;
  for (const [index, key] of path.entries()) {
    const { object } = value;
    if (object === undefined) throw noObject(path.slice(0, index), lineAt(text, value.start));
    const member = object.members.findLast((each) => each.key === key);
    steps.push({ object, member });
    if (member === undefined) break;
    value = member.value;
  }
  return steps;
}

function noObject(path: readonly string[], line: number): ContextError {
  const what = path.length === 0 ? "holds no object" : `${path.join(".")} is no object`;
  return new ContextError("unreadable_input", what, {
    line,
    hint: "Mend the file, and run the command again.",
  });
}

/** Nothing else stands in the object. */
function isAlone(text: string, object: JsonObject): boolean {
  return object.members.length === 1 && !readValue(text, object).hasComments;
}

/** The root itself is ours. `undefined` where the file is, too: then it ends in a line break. */
function withoutRoot(text: string, { root, start }: JsonDocument, step: Step): string | undefined {
  const [before, after] = [text.slice(0, root!.start), text.slice(root!.end)];
  if (hasLineBreak(text, root!)) {
    if (after === "") return before;
    if (before === "" && after === "\n") return undefined;
    if (root!.start === start && scanJson(after, []).endsInLineComment) return `${before}${after}`;
  }
  return cutMember(text, step.object, step.member!);
}
