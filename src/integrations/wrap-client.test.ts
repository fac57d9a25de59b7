import { describe, expect, it } from "vitest";
import type { Fields } from "../text/index.ts";
import { observeAnswer, type PrepareBody, wrapClient } from "./wrap-client.ts";

/** A promise with its own helpers, like those of the SDKs. */
class SdkPromise extends Promise<unknown> {
  _thenUnwrap(transform: (answer: unknown) => unknown): SdkPromise {
    return new SdkPromise((resolve, reject) => this.then((answer) => resolve(transform(answer)), reject));
  }
  async withPath(): Promise<string> {
    return (Object(await this) as Fields).path as string;
  }
}

class Resource {
  readonly inner?: Resource;
  readonly _client: SdkClient;
  constructor(client: SdkClient, inner?: Resource) {
    this._client = client;
    if (inner !== undefined) this.inner = inner;
  }
  create(body: Fields): SdkPromise {
    return this._client.post("/ask?beta=true", { body, timeout: 7 });
  }
  count(body: Fields): SdkPromise {
    return this._client.post("/count", { body });
  }
  throughClient(body: Fields): SdkPromise {
    return this._client.messages.create(body);
  }
}

class SdkClient {
  readonly #secret: string;
  baseURL = "here";
  readonly fetch: () => unknown = function (this: unknown) {
    return this;
  };
  readonly messages: Resource = new Resource(this);
  readonly beta: Resource = new Resource(this, new Resource(this));
  constructor(secret: string) {
    this.#secret = secret;
  }
  post(path: string, options: Promise<Fields> | Fields): SdkPromise {
    const answer = async () => ({
      path,
      secret: this.#secret,
      ...(await options),
      usage: { input_tokens: 5 },
    });
    return new SdkPromise((resolve, reject) => answer().then(resolve, reject));
  }
  withOptions(): SdkClient {
    return new SdkClient(`${this.#secret}+`);
  }
}

const observed: unknown[] = [];
const shout: PrepareBody = async (body) => ({
  body: { text: String(body.text).toUpperCase() },
  observe: (usage) => observed.push(usage),
});
const wrap = (prepare: PrepareBody = shout) => wrapClient(new SdkClient("s"), { "/ask": prepare });

describe("a wrapped client", () => {
  it("prepares what goes to a route, by every method, and returns the SDK's own promise", async () => {
    const client = wrap();
    const sent = { path: "/ask?beta=true", secret: "s", body: { text: "HI" }, timeout: 7 };
    for (const resource of [client.messages, client.beta, client.beta.inner as Resource]) {
      expect(await resource.create({ text: "hi" })).toMatchObject(sent);
      expect(await resource.throughClient({ text: "hi" })).toMatchObject(sent);
    }
    expect(await client.post("/ask", { body: { text: "hi" } })).toMatchObject({ body: { text: "HI" } });
    const promise = client.messages.create({ text: "hi" });
    expect(promise).toBeInstanceOf(SdkPromise);
    expect(await promise.withPath()).toBe("/ask?beta=true");
  });

  it("observes answers to what it prepared", async () => {
    observed.length = 0;
    const client = wrap();
    await client.messages.count({ text: "hi" });
    expect(observed).toEqual([]);
    await client.messages.create({ text: "hi" });
    expect(observed).toEqual([{ input_tokens: 5 }]);
  });

  it("leaves other paths, and bodies that need no preparation, unchanged", async () => {
    const body = Object.freeze({ text: "hi" });
    expect(await wrap().messages.count(body)).toMatchObject({ body });
    const answer = (await wrap(() => undefined).messages.create(body)) as Fields;
    expect(answer.body).toBe(body);
    expect(await wrap().post("/ask", {})).toMatchObject({ path: "/ask" });
  });

  it("otherwise behaves like the client that it wraps", async () => {
    const inner = new SdkClient("s");
    const client = wrapClient(inner, {});
    expect(client).toBeInstanceOf(SdkClient);
    expect(client.messages).toBeInstanceOf(Resource);
    expect(client.messages).toBe(client.messages);
    expect(client.withOptions).toBe(client.withOptions);
    expect(client.constructor).toBe(SdkClient);
    expect(client.fetch()).toBe(client);
    client.baseURL = "there";
    expect(inner.baseURL).toBe("there");
  });

  it("stays wrapped with other options", async () => {
    const answer = await wrap().withOptions().messages.create({ text: "hi" });
    expect(answer).toMatchObject({ secret: "s+", body: { text: "HI" } });
  });

  it("rejects as the SDK would when a body cannot be prepared", async () => {
    const client = wrap(async () => {
      throw new RangeError("too large");
    });
    await expect(client.messages.create({})).rejects.toThrow(RangeError);
  });
});

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
  it("is passed on, and the answer does not change", () => {
    const { seen, observe } = collect();
    const answer = { content: [], usage: { input_tokens: 3, cache_read_input_tokens: null } };
    expect(observeAnswer(answer, observe)).toBe(answer);
    expect(seen).toEqual([{ input_tokens: 3 }]);
  });

  it("is ignored if it is missing, or if the provider's own tools read more", () => {
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

  it("is what was reported so far if the caller stops early, which ends the stream", async () => {
    const { seen, observe } = collect();
    const stream = observeAnswer(new Events({ message: { usage: { input_tokens: 3 } } }, {}, {}), observe);
    for await (const _ of stream) break;
    expect(seen).toEqual([{ input_tokens: 3 }]);
    expect(stream.closed).toBe(true);
  });
});
