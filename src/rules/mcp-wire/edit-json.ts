/** Adds an entry to a JSON file and removes it again. It only inserts and cuts text, so removing restores the old
 *  bytes. The entry may need new objects around it. Their layout shows which are ours, so nothing else has to be
 *  recorded: the outermost value that we wrote is spread over lines, and everything inside it is on one line.
 *  jsonc-parser cannot do this, because its edits reformat neighbours, move comments and change the first of two
 *  members with the same name. */
import { isDeepStrictEqual } from "node:util";
import { ContextError } from "../../core/errors.ts";
import { type JsonDocument, type JsonObject, type JsonValue, scanJson } from "./scan-json.ts";
import { type ConfigFormat, foreignEntry, type LocatedEntry, type WiredServer } from "./wired-server.ts";

export const jsonFormat: ConfigFormat = {
  add,
  remove,
  locate,
  renderPair: (key, value) => `${JSON.stringify(key)}: ${renderLine(value)}`,
  separator: ", ",
};

function add(current: string | undefined, server: WiredServer): string {
  const path = [...server.keys, server.name];
  const whole = nested(path, server);
  if (current === undefined) return `${renderSpread(whole, "", readStyle(""))}\n`;
  const document = scanJson(current, path);
  const { root, start, endsInLineComment } = document;
  if (root === undefined) {
    const text = renderSpread(whole, "", readStyle(current));
    // After a comment without a line break, the entry would be part of the comment.
    return endsInLineComment ? `${current.slice(0, start)}${text}${current.slice(start)}` : `${current}${text}`;
  }
  const steps = findSteps(root, path, document);
  const { object, member } = steps.at(-1)!;
  if (member === undefined) {
    const [key, ...below] = path.slice(steps.length - 1);
    return insertMember(current, object, { key: key!, value: nested(below, server) });
  }
  if (!isDeepStrictEqual(document.read(member.value).data, server.entry))
    throw foreignEntry(server, document.lineAt(member.start));
  return current;
}

function remove(current: string, server: WiredServer): string | undefined {
  const path = [...server.keys, server.name];
  const document = scanJson(current, path);
  if (document.root === undefined) return current;
  const steps = findSteps(document.root, path, document);
  const { member } = steps.at(-1)!;
  if (member === undefined) return current;
  const { data, hasComments } = document.read(member.value);
  if (hasComments || !isDeepStrictEqual(data, server.entry)) throw foreignEntry(server, document.lineAt(member.start));
  for (const { object, member: each } of steps.toReversed()) {
    const isAlone = object.members.length === 1 && !document.read(object).hasComments;
    const isOutermost = hasLineBreak(current, each!.value) || !isAlone;
    if (isOutermost) return cutMember(current, object, each!);
  }
  return withoutRoot(current, document, steps[0]!);
}

function locate(current: string, { keys, name }: Pick<WiredServer, "keys" | "name">): LocatedEntry | undefined {
  const path = [...keys, name, "command"];
  const document = scanJson(current, path);
  const steps = document.root === undefined ? [] : findSteps(document.root, path, document);
  const entry = steps.length === path.length ? steps.at(-1)?.object : undefined;
  if (entry === undefined) return undefined;
  const { data } = document.read(entry);
  return {
    start: entry.start,
    end: entry.end,
    data: data as Record<string, unknown>,
    pair(key) {
      const member = entry.members.findLast((each) => each.key === key);
      return member && { start: member.start, end: member.value.end };
    },
  };
}

/** Wraps the entry in one object for each key. */
function nested(keys: readonly string[], { entry }: WiredServer): object {
  return keys.reduceRight<object>((value, key) => ({ [key]: value }), entry);
}

type JsonMember = JsonObject["members"][number];

interface Step {
  readonly object: JsonObject;
  /** Undefined if the object has no member of that name. If it has several, the last one, as in JSON.parse. */
  readonly member: JsonMember | undefined;
}

function findSteps(root: JsonValue, path: readonly string[], { lineAt }: Pick<JsonDocument, "lineAt">): Step[] {
  const steps: Step[] = [];
  let value: JsonValue = root;
  for (const [index, key] of path.entries()) {
    const { object } = value;
    if (object === undefined) {
      const what = index === 0 ? "does not hold an object" : `${path.slice(0, index).join(".")} is not an object`;
      throw new ContextError("unreadable_input", what, {
        line: lineAt(value.start),
        hint: "Repair the file and run the command again.",
      });
    }
    const member = object.members.findLast((each) => each.key === key);
    steps.push({ object, member });
    if (member === undefined) break;
    value = member.value;
  }
  return steps;
}

/** Removes the root object. Returns undefined if the whole file is ours; such a file ends in a line break. */
function withoutRoot(text: string, { root, start }: JsonDocument, step: Step): string | undefined {
  const [before, after] = [text.slice(0, root!.start), text.slice(root!.end)];
  if (hasLineBreak(text, root!)) {
    if (after === "") return before;
    if (before === "" && after === "\n") return undefined;
    if (root!.start === start && scanJson(after, []).endsInLineComment) return `${before}${after}`;
  }
  return cutMember(text, step.object, step.member!);
}

/** Adds a member at the end of the object. `cutMember` undoes it byte for byte. */
function insertMember(
  text: string,
  object: JsonObject,
  { key, value }: { readonly key: string; readonly value: object },
): string {
  const { lastEnd, members } = object;
  const last = members.at(-1);
  const { separator, indent, isSpread } = chooseLayout(text, object);
  const rendered = isSpread ? renderSpread(value, indent, readStyle(text)) : renderLine(value);
  const member = `${separator}${JSON.stringify(key)}: ${rendered}`;
  if (last === undefined) {
    // Opens an empty object. What was between its braces stays before the closing brace.
    const closing = lastEnd === object.start + 1 ? `${readStyle(text).newline}${indentAt(text, object.start)}` : "";
    return `${text.slice(0, lastEnd)}${member}${closing}${text.slice(lastEnd)}`;
  }
  // Keeps a trailing comma, which also shows on removal that there was one.
  if (last.commaEnd !== undefined) return `${text.slice(0, lastEnd)}${member},${text.slice(lastEnd)}`;
  const { end } = last.value;
  return `${text.slice(0, end)},${text.slice(end, lastEnd)}${member}${text.slice(lastEnd)}`;
}

/** Removes a member. */
function cutMember(text: string, { start, members }: JsonObject, member: JsonMember): string {
  const { gap, value, commaEnd } = member;
  const index = members.indexOf(member);
  const before = members[index - 1];
  if (commaEnd === undefined && before?.commaEnd !== undefined) {
    const rest = text.slice(0, gap) + text.slice(value.end);
    return rest.slice(0, before.commaEnd - 1) + rest.slice(before.commaEnd);
  }
  const isOpened = members.length === 1 && commaEnd === undefined && gap === start + 1;
  // The line break that was added to open an empty object.
  const newline = text.startsWith("\r\n", value.end) ? "\r\n" : "\n";
  const opening = `${newline}${indentAt(text, start)}`;
  const opened = isOpened && text.startsWith(opening, value.end) ? opening.length : 0;
  return text.slice(0, gap) + text.slice((commaEnd ?? value.end) + opened);
}

/** Follows the members before it: one on each line, or all on one line. */
function chooseLayout(text: string, { start, members, endsInLineComment }: JsonObject) {
  const last = members.at(-1);
  const isOnOwnLine =
    last !== undefined && hasLineBreak(text, { start: members.at(-2)?.commaEnd ?? start, end: last.start });
  const indent = isOnOwnLine ? indentAt(text, last.start) : indentAt(text, start) + readStyle(text).unit;
  const isSpread = isOnOwnLine || last === undefined;
  const separator = isSpread || endsInLineComment ? `${readStyle(text).newline}${indent}` : " ";
  return { separator, indent, isSpread };
}

interface JsonStyle {
  readonly newline: string;
  /** One step of indentation. */
  readonly unit: string;
}

/** Reads the style from the file itself. */
function readStyle(text: string): JsonStyle {
  return {
    newline: text.includes("\r\n") ? "\r\n" : "\n",
    unit: /[\r\n]([ \t]+)["/]/.exec(text)?.[1] ?? "  ",
  };
}

/** Writes a value on one line: `{ "a": ["b"] }`. */
function renderLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(renderLine).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{ ${renderMembers(value).join(", ")} }`;
}

/** Writes an object over several lines, with one member on each line. */
function renderSpread(value: object, indent: string, { newline, unit }: JsonStyle): string {
  const members = renderMembers(value).join(`,${newline}${indent}${unit}`);
  return `{${newline}${indent}${unit}${members}${newline}${indent}}`;
}

function renderMembers(value: object): string[] {
  return Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${renderLine(each)}`);
}

/** Returns the indentation of the line that holds `at`. */
function indentAt(text: string, at: number): string {
  const lineStart = Math.max(text.lastIndexOf("\n", at - 1), text.lastIndexOf("\r", at - 1)) + 1;
  return /^[ \t]*/.exec(text.slice(lineStart, at))![0];
}

function hasLineBreak(text: string, { start, end }: Pick<JsonValue, "start" | "end">): boolean {
  return /[\r\n]/.test(text.slice(start, end));
}
