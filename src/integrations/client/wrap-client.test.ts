import { describe, expect, it } from "vitest";
import { type Fields, type PrepareBody, wrapClient } from "./wrap-client.ts";

/** A promise with helpers of its own, as the SDKs' are. */
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
  it("prepares what goes to a route, by every way there, and gives the SDK's own promise", async () => {
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

  it("leaves other paths, and what is not to be prepared, as they are", async () => {
    const body = Object.freeze({ text: "hi" });
    expect(await wrap().messages.count(body)).toMatchObject({ body });
    const answer = (await wrap(() => undefined).messages.create(body)) as Fields;
    expect(answer.body).toBe(body);
    expect(await wrap().post("/ask", {})).toMatchObject({ path: "/ask" });
  });

  it("is else the client that it wraps", async () => {
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
