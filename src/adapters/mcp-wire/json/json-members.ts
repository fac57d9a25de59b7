/** Members of an object that come and go without a trace. The one function undoes what the other does, byte for byte. */
import { hasLineBreak, indentAt, renderLine, renderSpread, styleOf } from "./json-text.ts";
import type { JsonMember, JsonObject } from "./scan-json.ts";

export interface NewMember {
  readonly key: string;
  readonly value: object;
}

/** The text with a member at the end of the object. */
export function insertMember(text: string, object: JsonObject, { key, value }: NewMember): string {
  const { lastEnd, members } = object;
  const last = members.at(-1);
  const { separator, indent, isSpread } = layoutOf(text, object);
  const rendered = isSpread ? renderSpread(value, indent, styleOf(text)) : renderLine(value);
  const member = `${separator}${JSON.stringify(key)}: ${rendered}`;
  if (last === undefined) {
    // An object without anything in it is opened; what was between its braces stays before the closing one.
    const closing = lastEnd === object.start + 1 ? `${newlineOf(text)}${indentAt(text, object.start)}` : "";
    return splice(text, { at: lastEnd, inserted: `${member}${closing}` });
  }
  // A comma at the end is a habit that is kept, and tells on the way back that there was one.
  if (last.commaEnd !== undefined) return splice(text, { at: lastEnd, inserted: `${member},` });
  const added = splice(text, { at: lastEnd, inserted: member });
  return splice(added, { at: last.value.end, inserted: "," });
}

/** The text without a member. */
export function cutMember(text: string, { start, members }: JsonObject, member: JsonMember): string {
  const { gap, value, commaEnd } = member;
  const index = members.indexOf(member);
  const before = members[index - 1];
  if (commaEnd === undefined && before?.commaEnd !== undefined) {
    const rest = text.slice(0, gap) + text.slice(value.end);
    return rest.slice(0, before.commaEnd - 1) + rest.slice(before.commaEnd);
  }
  const isOpened = members.length === 1 && commaEnd === undefined && gap === start + 1;
  const end = isOpened ? value.end + openingLength(text, { at: value.end, start }) : (commaEnd ?? value.end);
  return text.slice(0, gap) + text.slice(end);
}

interface Layout {
  readonly separator: string;
  readonly indent: string;
  readonly isSpread: boolean;
}

/** As the members before it stand: on lines of their own, or one after the other. */
function layoutOf(text: string, { start, members, endsInLineComment }: JsonObject): Layout {
  const last = members.at(-1);
  const isOnOwnLine =
    last !== undefined && hasLineBreak(text, { start: members.at(-2)?.commaEnd ?? start, end: last.start });
  const indent = isOnOwnLine ? indentAt(text, last.start) : indentAt(text, start) + styleOf(text).unit;
  const isSpread = isOnOwnLine || last === undefined;
  const separator = isSpread || endsInLineComment ? `${newlineOf(text)}${indent}` : " ";
  return { separator, indent, isSpread };
}

function newlineOf(text: string): string {
  return styleOf(text).newline;
}

/** How much of what follows an only member was put there to open the object. */
function openingLength(text: string, { at, start }: { readonly at: number; readonly start: number }): number {
  const newline = text.startsWith("\r\n", at) ? "\r\n" : "\n";
  const opening = `${newline}${indentAt(text, start)}`;
  return text.startsWith(opening, at) ? opening.length : 0;
}

function splice(text: string, { at, inserted }: { at: number; inserted: string }): string {
  return text.slice(0, at) + inserted + text.slice(at);
}
