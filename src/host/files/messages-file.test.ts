import { describe, expect, test } from "vitest";
import { rewriteMessages } from "./messages-file.ts";

const edited = { role: "user", content: [{ type: "text", text: "[trimmed]" }] };

/** Rewrites a list or a request with some of its messages replaced, dropped or put in front. */
function rewrite(text: string, change: (messages: readonly object[]) => readonly object[]): string {
  const value = JSON.parse(text);
  const key = Array.isArray(value) ? undefined : "messages" in value ? "messages" : "input";
  const messages: readonly object[] = key === undefined ? value : value[key];
  const source = { file: "in", text, isLines: false };
  return rewriteMessages({ source, key, messages }, change(messages));
}

const odd = `[
  { "role":"user",   "n": 12345678901234567890 },
  {"role": "user", "n": 1.0 },

  { "role": "user",
    "n": 1e2 }
]
`;

describe("in a list", () => {
  test("messages that stay are copied as they were written", () => {
    expect(rewrite(odd, (messages) => messages)).toBe(odd);
    expect(rewrite(odd, ([first, second]) => [first!, second!])).toBe(`[
  { "role":"user",   "n": 12345678901234567890 },
  {"role": "user", "n": 1.0 }
]
`);
    expect(rewrite(odd, ([, , third]) => [third!])).toBe(`[
  { "role": "user",
    "n": 1e2 }
]
`);
  });

  test("new messages are written over several lines if another one is", () => {
    expect(rewrite(odd, ([first, , third]) => [first!, edited, third!])).toBe(`[
  { "role":"user",   "n": 12345678901234567890 },
  {
    "role": "user",
    "content": [
      {
        "type": "text",
        "text": "[trimmed]"
      }
    ]
  },

  { "role": "user",
    "n": 1e2 }
]
`);
  });

  test.each(["[{},{}]", "[{}, {}]", "[\n{},\n{}\n]", "\n[ {} ,{} ] \n"])(
    "others are compact where all are: %j",
    (text) => {
      const written = rewrite(text, ([first]) => [first!, edited]);
      expect(written).toBe(text.replace(/\{\}(\s*,\s*)\{\}/, `{}$1${JSON.stringify(edited)}`));
    },
  );

  test("one that comes in front, or follows the only one, is set apart like the others", () => {
    expect(rewrite("[\n  {}\n]", ([first]) => [edited, first!, edited])).toBe(
      `[\n  ${JSON.stringify(edited)},\n  {},\n  ${JSON.stringify(edited)}\n]`,
    );
  });

  test("nothing that is left is an empty list", () => {
    expect(JSON.parse(rewrite(odd, () => []))).toEqual([]);
  });
});

describe("in a request", () => {
  test("only the messages change", () => {
    const text = `{\n\t"n": 1.0,\n\t"messages": [\n\t\t{\n\t\t\t"n": 2.0\n\t\t},\n\t\t{\n\t\t\t"n": 3\n\t\t}\n\t],\n\t"z": [ ]\n}\n`;
    expect(rewrite(text, ([first]) => [first!, { a: 1 }])).toBe(
      `{\n\t"n": 1.0,\n\t"messages": [\n\t\t{\n\t\t\t"n": 2.0\n\t\t},\n\t\t{\n\t\t\t"a": 1\n\t\t}\n\t],\n\t"z": [ ]\n}\n`,
    );
  });

  test("a plain text instead of messages is replaced only if they changed", () => {
    const text = '{"input": "hi", "n": 1.0}';
    const source = { file: "in", text, isLines: false };
    const messages = [{ role: "user", content: "hi" }];
    expect(rewriteMessages({ source, key: "input", messages }, messages)).toBe(text);
    expect(rewriteMessages({ source, key: "input", messages }, [{ a: 1 }])).toBe('{"input": [{"a":1}], "n": 1.0}');
  });
});

describe("in JSON Lines", () => {
  const text = '{"meta": {"n": 1.0}}\n\n{"n": 2.0}\r\n{"n": 3.0}\n';
  const messages = [{ n: 2 }, { n: 3 }];
  const source = { file: "in", text, isLines: true };

  test("kept messages keep their line, and the line about the transcript stays first", () => {
    expect(rewriteMessages({ source, messages }, messages)).toBe(text);
    expect(rewriteMessages({ source, messages }, [{ a: 1 }, messages[1]!])).toBe(
      '{"meta": {"n": 1.0}}\n{"a":1}\n{"n": 3.0}',
    );
    expect(rewriteMessages({ source, messages }, [messages[0]!])).toBe('{"meta": {"n": 1.0}}\n{"n": 2.0}');
  });
});
