import { describe, expect, it } from "vitest";
import { findRefusal, watchResponse } from "./watch-response.ts";

function collect(): { readonly seen: unknown[]; readonly observe: (usage: unknown) => void } {
  const seen: unknown[] = [];
  return { seen, observe: (usage) => seen.push(usage) };
}

function streamOf(texts: readonly string[], type = "text/event-stream"): Response {
  const encoder = new TextEncoder();
  const body = ReadableStream.from(texts.map((text) => encoder.encode(text)));
  return new Response(body, { headers: { "content-type": type } });
}

const eventOf = (event: object): string => `data: ${JSON.stringify(event)}\n\n`;

/** Cuts a text into pieces of some characters. */
function cut(text: string, length: number): string[] {
  return text.match(new RegExp(`[^]{1,${length}}`, "gu")) ?? [];
}

describe("usage of a whole answer", () => {
  const read = async (answer: unknown): Promise<unknown[]> => {
    const { seen, observe } = collect();
    const response = watchResponse(Response.json(answer), { observe });
    expect(await response.json()).toEqual(answer);
    return seen;
  };

  it("is passed on, and the answer does not change", async () => {
    const usage = { input_tokens: 3, cache_read_input_tokens: null };
    expect(await read({ content: [], usage })).toEqual([{ input_tokens: 3 }]);
  });

  it("is empty if the answer has none, so that the end of a call is always seen", async () => {
    for (const answer of [null, "text", {}, { usage: null }]) expect(await read(answer)).toEqual([{}]);
  });
});

describe("usage of a stream", () => {
  it("is read as the events pass, from the first event that has it", async () => {
    const { seen, observe } = collect();
    const events = [
      eventOf({ type: "message_start", message: { usage: { input_tokens: 3, output_tokens: 1 } } }),
      eventOf({ type: "ping" }),
      eventOf({ type: "message_delta", usage: { input_tokens: 700, output_tokens: 9, cache_read_input_tokens: 2 } }),
    ];
    expect(await watchResponse(streamOf(events), { observe }).text()).toBe(events.join(""));
    // The output is a running total.
    expect(seen).toEqual([{ input_tokens: 3, output_tokens: 9, cache_read_input_tokens: 2 }]);
  });

  it("is found in a last chunk and in a response, too", async () => {
    const { seen, observe } = collect();
    const chat = [eventOf({ usage: null }), eventOf({ usage: { prompt_tokens: 4 } })];
    const response = [eventOf({ response: { usage: null } }), eventOf({ response: { usage: { input_tokens: 5 } } })];
    for (const events of [chat, response]) await watchResponse(streamOf(events), { observe }).text();
    expect(seen).toEqual([{ prompt_tokens: 4 }, { input_tokens: 5 }]);
  });

  it("is what was reported so far if the caller stops early", async () => {
    const { seen, observe } = collect();
    const events = [eventOf({ message: { usage: { input_tokens: 3 } } }), eventOf({}), eventOf({})];
    const reader = watchResponse(streamOf(events), { observe }).body?.getReader();
    await reader?.read();
    expect(seen).toEqual([]);
    await reader?.cancel();
    expect(seen).toEqual([{ input_tokens: 3 }]);
  });

  it("is found in Amazon's events", async () => {
    const { seen, observe } = collect();
    const event = JSON.stringify({ type: "message_start", message: { usage: { input_tokens: 7 } } });
    const text = `\u0000\u0001:event-type\u0007chunk{"bytes":"${btoa(event)}"}\u0003`;
    const response = streamOf(cut(text, 5), "application/vnd.amazon.eventstream");
    expect(await watchResponse(response, { observe }).text()).toBe(text);
    expect(seen).toEqual([{ input_tokens: 7 }]);
  });
});

describe("usage that the caller did not ask for", () => {
  const chunk = (content: string) => ({ id: "c", choices: [{ index: 0, delta: { content } }] });
  const contents = ["one", 'a "usage":null, b', '},"usage":null', "ü🙂"];
  const plain = contents.map((content) => eventOf(chunk(content)));
  const asked = contents.map((content) => eventOf({ ...chunk(content), usage: null }));
  const last = eventOf({ id: "c", choices: [], usage: { prompt_tokens: 4 } });
  const done = "data: [DONE]\n\n";

  it.each([1, 3, 7, 1_000])(
    "is not shown, and all other bytes are as without asking, in pieces of %i",
    async (size) => {
      const { seen, observe } = collect();
      const response = streamOf(cut([...asked, last, done].join(""), size));
      const shown = await watchResponse(response, { observe, hidesUsage: true }).text();
      expect(shown).toBe([...plain, done].join(""));
      expect(seen).toEqual([{ prompt_tokens: 4 }]);
    },
  );

  it("is shown where the host reports it with the last choice anyway", async () => {
    const { seen, observe } = collect();
    const events = [eventOf({ ...chunk("x"), usage: { prompt_tokens: 4 } }), done];
    expect(await watchResponse(streamOf(events), { observe, hidesUsage: true }).text()).toBe(events.join(""));
    expect(seen).toEqual([{ prompt_tokens: 4 }]);
  });
});

describe("a refusal", () => {
  const tooLong = { message: "prompt is too long: 9 tokens > 8 maximum" };

  it("is found in an answer with an error, whose body stays readable", async () => {
    const { response, refusal } = await findRefusal(Response.json({ error: tooLong }, { status: 400 }));
    expect(refusal).toMatchObject({ kind: "length", tokens: 9 });
    expect(await response.json()).toEqual({ error: tooLong });
  });

  it.each([
    ["Anthropic's and LM Studio's error event", [{ type: "error", error: tooLong }]],
    ["a chunk with an error", [{ error: tooLong }]],
    [
      "a failed response",
      [
        { type: "response.created", response: { error: null } },
        { type: "response.in_progress", response: { error: null } },
        { type: "response.failed", response: { error: tooLong } },
      ],
    ],
  ])("is found in %s, and the stream stays whole", async (_name, list) => {
    const text = list.map(eventOf).join("");
    const { response, refusal } = await findRefusal(streamOf(cut(text, 11)));
    expect(refusal).toMatchObject({ kind: "length", limit: 8 });
    expect(await response.text()).toBe(text);
  });

  it("is not what comes after the answer has begun, nor an answer that quotes one", async () => {
    const later = [eventOf({ type: "content_block_start" }), eventOf({ type: "error", error: tooLong })];
    expect((await findRefusal(streamOf(later))).refusal).toBeUndefined();
    const quoted = [eventOf({ choices: [{ delta: { content: tooLong.message } }] })];
    expect((await findRefusal(streamOf(quoted))).refusal).toBeUndefined();
    expect((await findRefusal(Response.json({ text: tooLong.message }))).refusal).toBeUndefined();
  });
});
