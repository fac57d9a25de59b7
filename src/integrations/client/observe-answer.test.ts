import { describe, expect, it } from "vitest";
import { observeAnswer } from "./observe-answer.ts";

function collect(): { readonly seen: unknown[]; readonly observe: (usage: unknown) => void } {
  const seen: unknown[] = [];
  return { seen, observe: (usage) => seen.push(usage) };
}

class Events {
  readonly #events: readonly object[];
  closed = false;
  constructor(...events: object[]) {
    this.#events = events;
  }
  async *[Symbol.asyncIterator]() {
    try {
      yield* this.#events;
    } finally {
      this.closed = true;
    }
  }
}

describe("usage of a whole answer", () => {
  it("is handed on, and the answer stays what it is", () => {
    const { seen, observe } = collect();
    const answer = { content: [], usage: { input_tokens: 3, cache_read_input_tokens: null } };
    expect(observeAnswer(answer, observe)).toBe(answer);
    expect(seen).toEqual([{ input_tokens: 3 }]);
  });

  it("is none where there is none, or where the provider's own tools read more", () => {
    const { seen, observe } = collect();
    for (const answer of [undefined, null, "text", {}, { usage: null }]) observeAnswer(answer, observe);
    observeAnswer({ usage: { input_tokens: 9_000, server_tool_use: { web_search_requests: 1 } } }, observe);
    expect(seen).toEqual([]);
    observeAnswer({ usage: { input_tokens: 9, server_tool_use: { web_search_requests: 0 } } }, observe);
    expect(seen).toHaveLength(1);
  });
});

describe("usage of a stream", () => {
  it("is read as the events pass, from the first event that has it", async () => {
    const { seen, observe } = collect();
    const events = [
      { type: "message_start", message: { usage: { input_tokens: 3, output_tokens: 1 } } },
      { type: "ping" },
      { type: "message_delta", usage: { input_tokens: 700, output_tokens: 9, cache_read_input_tokens: 2 } },
    ];
    const stream = observeAnswer(new Events(...events), observe);
    expect(stream).toBeInstanceOf(Events);
    const passed: unknown[] = [];
    for await (const event of stream) {
      passed.push(event);
      expect(seen).toEqual([]);
    }
    expect(passed).toEqual(events);
    expect(seen).toEqual([{ input_tokens: 3, output_tokens: 1, cache_read_input_tokens: 2 }]);
  });

  it("is found in a last chunk and in a response, too", async () => {
    const { seen, observe } = collect();
    const chat = observeAnswer(new Events({ usage: null }, { usage: { prompt_tokens: 4 } }), observe);
    const created = { response: { usage: null } };
    const completed = { response: { usage: { input_tokens: 5 } } };
    const response = observeAnswer(new Events(created, completed), observe);
    for await (const _ of chat);
    for await (const _ of response);
    expect(seen).toEqual([{ prompt_tokens: 4 }, { input_tokens: 5 }]);
  });

  it("is what was told so far when the caller stops early, which ends the stream itself", async () => {
    const { seen, observe } = collect();
    const stream = observeAnswer(new Events({ message: { usage: { input_tokens: 3 } } }, {}, {}), observe);
    for await (const _ of stream) break;
    expect(seen).toEqual([{ input_tokens: 3 }]);
    expect(stream.closed).toBe(true);
  });
});
