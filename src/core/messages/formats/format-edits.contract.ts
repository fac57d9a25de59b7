/** What every message format keeps when its messages are edited, merged and made. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { caseCount } from "../../../../test/case-count.ts";
import type { Fields } from "../../text/index.ts";
import type { MessageFormat, Part, PartEdit } from "../message-format.ts";

const runs = caseCount({ few: 80, deep: 2_000, long: 10_000 });
const replaceable: ReadonlySet<string> = new Set(["text", "tool_call", "tool_result"]);

export function testFormatEdits(format: MessageFormat, message: fc.Arbitrary<object>): void {
  const read = (value: object): readonly Part[] => format.read(value as Fields, "message").parts;
  const edit = (value: object, edits: readonly (readonly [number, PartEdit])[]) =>
    format.edit(value as Fields, new Map(edits));
  const checkEach = (check: (value: object, index: number, text: string) => void) =>
    fc.assert(
      fc.property(message, fc.nat(), fc.string({ unit: "binary" }), (value, pick, text) => {
        const decorated = decorate(value, format);
        const count = read(decorated).length;
        if (count > 0) check(decorated, pick % count, text);
      }),
      { numRuns: runs },
    );

  it("replaces one part and nothing else, unknown fields and ids included", () => {
    checkEach((value, index, text) => {
      const before = read(value);
      if (!replaceable.has((before[index] as Part).kind)) return;
      const edited = edit(value, [[index, { action: "replace", text }]]) as Fields;
      const after = read(edited);
      expect(without(after, index).map(shown)).toEqual(without(before, index).map(shown));
      expect(namesOf(after[index] as Part)).toEqual(namesOf(before[index] as Part));
      expect(contentOf(after[index] as Part)).toEqual(replacedContent(before[index] as Part, text));
      expect(after.map(markOf)).toEqual(before.map(markOf));
      expect(edited.x_message).toBe((value as Fields).x_message);
      expect(edit(edited, [[index, { action: "replace", text }]])).toBe(edited);
    });
  });

  it("drops one part and nothing else", () => {
    checkEach((value, index) => {
      const edited = edit(value, [[index, { action: "drop" }]]);
      const rest = without(read(value), index);
      if (rest.length === 0) return expect(edited).toBe(undefined);
      expect(read(edited as object).map(shown)).toEqual(rest.map(shown));
      expect((edited as Fields).x_message).toBe((value as Fields).x_message);
    });
  });

  it("returns the same object without edits, and undefined if every part is dropped", () => {
    checkEach((value) => {
      expect(edit(value, [])).toBe(value);
      expect(
        edit(
          value,
          [...read(value).keys()].map((index) => [index, { action: "drop" }]),
        ),
      ).toBe(undefined);
    });
  });

  it("detaches texts from other content, and changes nothing else", () => {
    checkEach((value) => {
      const detached = format.detach(value as Fields);
      const isTied = ({ kind, isBound }: Part) => kind === "text" && isBound === true;
      expect(read(detached).map(shown)).toEqual(read(value).map(shown));
      expect(read(detached).filter(isTied)).toEqual([]);
      expect(format.detach(detached)).toBe(detached);
      expect(detached.x_message).toBe((value as Fields).x_message);
    });
  });

  it("refuses to replace a part that cannot have a text", () => {
    checkEach((value, index, text) => {
      if (replaceable.has((read(value)[index] as Part).kind)) return;
      expect(() => edit(value, [[index, { action: "replace", text }]])).toThrow(
        expect.objectContaining({ code: "invalid_argument" }),
      );
    });
  });

  it("merges neighbours of the same role, or none, and keeps their parts in order", () => {
    const check = (left: object, right: object) => {
      const [first, second] = [decorate(left, format), decorate(right, format)] as [Fields, Fields];
      const merged = format.merge(first, second);
      if (merged === undefined) return;
      const { role } = format.read(merged, "message");
      expect([first, second].map((each) => format.read(each, "message").role)).toEqual([role, role]);
      for (const kind of ["text", "thinking", "tool_call", "tool_result", "media", "other"]) {
        const ofKind = (value: object) =>
          read(value)
            .filter((part) => part.kind === kind)
            .map(shown);
        expect(ofKind(merged)).toEqual([...ofKind(first), ...ofKind(second)]);
      }
      expect(merged.x_message).toBe(first.x_message);
    };
    fc.assert(fc.property(message, message, check), { numRuns: runs });
  });

  it("makes assistant texts and results that can be read again", () => {
    const check = (text: string, callId: string) => {
      const said = format.read(format.assistantText(text), "message");
      expect(said).toMatchObject({ role: "assistant", parts: [{ kind: "text" }] });
      expect(contentOf(said.parts[0] as Part)).toBe(text);
      const result = format.read(format.toolResult({ callId, toolName: "ls" }, text), "message");
      expect(result.parts).toMatchObject([{ kind: "tool_result", callId }]);
      expect(["tool", "user"]).toContain(result.role);
      expect(contentOf(result.parts[0] as Part)).toBe(text);
    };
    fc.assert(fc.property(fc.string({ unit: "binary" }), fc.string(), check), { numRuns: runs });
  });
}

/** A frozen copy with an unknown field on the message and on each of its parts. */
function decorate(message: object, format: MessageFormat): object {
  const copy = copyOf(message) as Record<string, unknown>;
  for (const [index, { value }] of format.read(copy, "message").parts.entries()) {
    if (typeof value === "object" && value !== null) Object.assign(value, { x_part: { index } });
  }
  copy.x_message = { kept: true };
  return deepFreeze(copy);
}

function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyOf);
  if (!isPlain(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, copyOf(field)]));
}

function deepFreeze<T>(value: T): T {
  if (!Array.isArray(value) && !isPlain(value)) return value;
  for (const field of Object.values(value)) deepFreeze(field);
  return Object.freeze(value);
}

/** Excludes bytes and URLs, which cannot be copied or frozen like that. */
function isPlain(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function without(parts: readonly Part[], index: number): readonly Part[] {
  return parts.filter((_, at) => at !== index);
}

/** Without the id of an edited text, because the provider knows another text by it. */
function namesOf({ kind, callId, toolName, isBound }: Part): object {
  return { kind, callId, toolName, isBound: kind === "text" ? undefined : isBound };
}

function markOf({ value }: Part): unknown {
  return (Object(value) as Fields).x_part;
}

/** All facts about a part except its path, which changes when another part is dropped. */
function shown(part: Part): object {
  return { ...namesOf(part), pieces: part.pieces.map((piece) => ({ ...piece, path: undefined })) };
}

function contentOf({ pieces }: Part): unknown {
  for (const piece of pieces) {
    if (piece.kind !== "tool_call") continue;
    return typeof piece.args === "string" ? JSON.parse(piece.args) : piece.args;
  }
  return pieces.map((piece) => ("text" in piece ? piece.text : piece.kind)).join("");
}

function replacedContent({ kind }: Part, text: string): unknown {
  return kind === "tool_call" ? { trimmed: text } : text;
}
