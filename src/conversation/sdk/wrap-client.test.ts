import { describe, expect, it } from "vitest";
import type { Fields } from "../../core/text/index.ts";
import { type PrepareBody, wrapClient } from "./wrap-client.ts";

/** A promise that is made from a response and has its own helpers, like those of the SDKs. */
class SdkPromise extends Promise<unknown> {
  responsePromise: Promise<{ readonly response: Response }> = Promise.reject(new Error("not sent"));
  static of(responsePromise: Promise<{ readonly response: Response }>): SdkPromise {
    const promise = new SdkPromise((resolve) => resolve(undefined));
    promise.responsePromise.catch(() => undefined);
    promise.responsePromise = responsePromise;
    return promise;
  }
  // biome-ignore lint/suspicious/noThenProperty: the SDKs override it, too.
  override then<Done = unknown, Failed = never>(
    done?: ((answer: unknown) => Done | PromiseLike<Done>) | null,
    failed?: ((reason: unknown) => Failed | PromiseLike<Failed>) | null,
  ): Promise<Done | Failed> {
    return this.responsePromise.then(({ response }) => response.json()).then(done, failed);
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
    const answer = async () => {
      const given = await options;
      sent.push(given?.body);
      const facts = { path, secret: this.#secret, ...given, usage: { input_tokens: 5 } };
      return { response: Response.json(facts) };
    };
    return SdkPromise.of(answer());
  }
  withOptions(): SdkClient {
    return new SdkClient(`${this.#secret}+`);
  }
}

const sent: unknown[] = [];
const observed: unknown[] = [];
const shout: PrepareBody = async (body) => ({
  body: { text: String(body.text).toUpperCase() },
  observe: (usage) => observed.push(usage),
  refused: async () => undefined,
});
const wrap = (prepare: PrepareBody = shout) =>
  wrapClient(new SdkClient("s"), { routes: { "/ask": prepare }, added: {} });

describe("a wrapped client", () => {
  it("prepares what goes to a route, by every method, and returns the SDK's own promise", async () => {
    const client = wrap();
    const whole = { path: "/ask?beta=true", secret: "s", body: { text: "HI" }, timeout: 7 };
    for (const resource of [client.messages, client.beta, client.beta.inner as Resource]) {
      expect(await resource.create({ text: "hi" })).toMatchObject(whole);
      expect(await resource.throughClient({ text: "hi" })).toMatchObject(whole);
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
    await wrap(async () => undefined).messages.create(body);
    expect(sent.at(-1)).toBe(body);
    expect(await wrap().post("/ask", {})).toMatchObject({ path: "/ask" });
  });

  it("otherwise behaves like the client that it wraps", async () => {
    const inner = new SdkClient("s");
    const client = wrapClient(inner, { routes: {}, added: {} });
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
