/** The histories behind the hazards, in Anthropic's shape. */
import { generateSession } from "./generate/generate-session.ts";
import type { Quirk } from "./generate/quirks.ts";
import type { SessionBlock, SessionMessage } from "./generate/session-message.ts";

export type NamedHistory = readonly [name: string, messages: readonly SessionMessage[]];

const isDeep = process.env.PLIMSOLL_DEEP === "1";

export function validHistories(): NamedHistory[] {
  const words = "The berth is narrow, the tide is late. ";
  const odd = "caf\u00e9 e\u0301 \u{1f6a2} \u202eabc \u0000\u0007\ufeff a\r\nb\u2028c <|endoftext|> </system>";
  return [
    ["one message", [said("user", "hello")]],
    ["one giant message", [said("user", words.repeat(isDeep ? 40_000 : 8_000))]],
    [
      "a giant message behind a session",
      [...session(20).slice(0, -1), said("assistant", words.repeat(isDeep ? 10_000 : 5_000)), said("user", "go on")],
    ],
    ["a result of megabytes", exchange([call("a")], [result("a", words.repeat(isDeep ? 270_000 : 27_000))])],
    [
      "a very large call",
      exchange([call("a", { content: words.repeat(isDeep ? 27_000 : 4_500) })], [result("a", "Wrote it.")]),
    ],
    [
      "nothing but the person's text",
      [...Array(8)].flatMap(() => [said("user", words.repeat(isDeep ? 2_000 : 500)), said("assistant", "ok")]),
    ],
    [
      "20 parallel calls",
      exchange(
        ids(20).map((id) => call(id)),
        ids(20).map((id) => result(id, words.repeat(50))),
      ),
    ],
    [
      "results out of order",
      exchange(
        ids(5).map((id) => call(id)),
        ids(5)
          .toReversed()
          .map((id) => result(id, words)),
      ),
    ],
    ["images", withImages()],
    ["signed and sealed thinking", withThinking()],
    ["lone surrogates", exchange([call("a", { path: "\udfff" })], [result("a", "x\ud800y")], "\ud83d")],
    ["odd characters", exchange([call("a", { path: odd })], [result("a", odd)], odd)],
    ["names of built-in properties", builtInNames()],
    ["a deeply nested call", exchange([call("a", nested(200))], [result("a", "ok")])],
    [
      "results that look trimmed",
      exchange([call("a", { trimmed: "[trimmed]" })], [result("a", "[trimmed]")], "[trimmed]"),
    ],
    ["an empty result", exchange([call("a")], [result("a", "")])],
    ["a failed call", exchange([call("a")], [{ ...result("a", "Error: no such file"), is_error: true }])],
    ["a long session", session(isDeep ? 150 : 50)],
    ["a session of many short turns", session(isDeep ? 600 : 100, "chat").filter(({ role }) => role !== "system")],
  ];
}

export function brokenHistories(): NamedHistory[] {
  const quirk = (name: Quirk): NamedHistory => [name, session(60, "coding", [name])];
  const all: Quirk[] = ["unanswered-calls", "reused-ids", "consecutive-users", "late-results", "repeated-results"];
  return [
    ["no messages", []],
    ...[...all, "starts-with-assistant" as const].map(quirk),
    ["all quirks at once", session(isDeep ? 100 : 40, "coding", all)],
    ["a last call without a result", [said("user", "look"), { role: "assistant", content: [call("a")] }]],
    [
      "a result without a call",
      [said("user", "look"), said("assistant", "yes"), { role: "user", content: [result("a", "lost")] }],
    ],
    ["nothing but the assistant", [said("assistant", "hello"), said("assistant", "again")]],
    ["empty texts", [said("user", "look"), said("assistant", ""), said("user", ""), said("assistant", "  \n")]],
  ];
}

function withImages(): SessionMessage[] {
  const shown = { role: "user", content: [image(), { type: "text", text: "What is this?" }] } as const;
  const listed = {
    type: "tool_result",
    tool_use_id: "a",
    content: [{ type: "text", text: "A chart:" }, image()],
  } as const;
  return [shown, said("assistant", "A ship."), ...exchange([call("a")], [listed])];
}

function withThinking(): SessionMessage[] {
  const thinking = (text: string, seal: string) =>
    ({ type: "thinking", thinking: text, signature: seal.repeat(200) }) as const;
  const sealed = (seal: string) => ({ type: "redacted_thinking", data: `sealed${seal}`.repeat(50) }) as const;
  return [
    said("user", "look"),
    ...["a", "b", "c"].flatMap((id): SessionMessage[] => [
      {
        role: "assistant",
        content: [thinking(`Where is ${id}? `.repeat(30), `sign${id}`), sealed(id), call(id)],
      },
      { role: "user", content: [result(id, `text of ${id}`.repeat(200))] },
    ]),
    { role: "assistant", content: [thinking("", "signd"), { type: "text", text: "There." }] },
    said("user", "go on"),
  ];
}

function builtInNames(): SessionMessage[] {
  const names = ["__proto__", "constructor", "toString", "hasOwnProperty"];
  const input = JSON.parse('{"__proto__": {"polluted": true}, "constructor": "x"}') as Record<string, unknown>;
  const calls = names.map((name): SessionBlock => ({ type: "tool_use", id: name, name, input }));
  return exchange(
    calls,
    names.map((name) => result(name, `text of ${name}`.repeat(100))),
  );
}

const sessions = new Map<string, readonly SessionMessage[]>();

/** Generated once for all formats: nobody changes what was generated. */
export function session(
  turns: number,
  profile: "coding" | "chat" = "coding",
  quirks: readonly Quirk[] = [],
): readonly SessionMessage[] {
  const key = [turns, profile, ...quirks].join(" ");
  const messages = sessions.get(key) ?? generateSession({ seed: 11, turns, profile, quirks }).messages;
  sessions.set(key, messages);
  return messages;
}

function exchange(calls: readonly SessionBlock[], results: readonly SessionBlock[], text = "look"): SessionMessage[] {
  return [
    said("user", text),
    { role: "assistant", content: [{ type: "text", text: `I will: ${text}` }, ...calls] },
    { role: "user", content: results },
    said("assistant", "Done."),
    said("user", "go on"),
  ];
}

export function said(role: "user" | "assistant", text: string): SessionMessage {
  return { role, content: [{ type: "text", text }] };
}

function call(id: string, input: Readonly<Record<string, unknown>> = { file_path: `src/${id}.ts` }) {
  return { type: "tool_use", id, name: "read_file", input } as const;
}

function result(id: string, content: string) {
  return { type: "tool_result", tool_use_id: id, content } as const;
}

function ids(count: number): string[] {
  return Array.from({ length: count }, (_each, index) => `call_${index}`);
}

function nested(depth: number): Record<string, unknown> {
  let value: Record<string, unknown> = { end: true };
  for (let level = 0; level < depth; level++) value = { inner: value };
  return value;
}

/** A picture of one pixel. */
function image() {
  const data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  return { type: "image", source: { type: "base64", media_type: "image/png", data } } as const;
}
