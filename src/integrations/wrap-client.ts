/** Wraps a client of a vendor's SDK. The wrapper prepares the body of what the client posts to some paths;
 *  everything else is the caller's client. Every method (create, parse, stream, tool runners) ends in `post`, which
 *  accepts a promise of its options. So the result is the SDK's own promise with all its helpers, and the SDK is not
 *  imported here. */
import type { Fields } from "../text/index.ts";

export interface PreparedBody {
  readonly body: Fields;
  /** Takes the usage of the answer. */
  observe(usage: unknown): void;
}

/** Prepares a request body. Undefined leaves it as it is. */
export type PrepareBody = (body: Fields) => Promise<PreparedBody> | undefined;

export interface Client {
  // biome-ignore lint/suspicious/noExplicitAny: each SDK has option and promise types of its own
  post(path: string, options?: any): any;
}

/** By path, without the query. */
type Routes = Readonly<Record<string, PrepareBody>>;

/** Changes the first argument of a resource's method, by the method's name. */
type Arguments = Readonly<Record<string, (argument: Fields) => Fields>>;

export function wrapClient<Wrapped extends Client>(client: Wrapped, routes: Routes, methods: Arguments = {}): Wrapped {
  const wrapResource = createResourceWrapper(client, { wrapped: () => wrapped, methods });
  const methodOf = createMethodBinder(client, (other) => wrapClient(other, routes, methods));
  const post = (path: string, options?: unknown): unknown => {
    const prepare = routes[path.split("?")[0] ?? path];
    return prepare === undefined ? client.post(path, options) : postPrepared({ client, path, options }, prepare);
  };
  const wrapped: Wrapped = new Proxy(client, {
    get(target, name) {
      if (name === "post") return post;
      const value: unknown = Reflect.get(target, name);
      return isMethod(target, name, value) ? methodOf(name, value) : wrapResource(value);
    },
    set: (target, name, value) => Reflect.set(target, name, value),
  });
  return wrapped;
}

type Method = (...args: unknown[]) => unknown;

/** Whether the value is a method of the class. A function that the caller passed in, such as `fetch`, has no `this`. */
function isMethod(target: object, name: PropertyKey, value: unknown): value is Method {
  return typeof value === "function" && name !== "constructor" && !Object.hasOwn(target, name);
}

/** Binds methods to the client, because clients have private fields and a proxy does not. */
function createMethodBinder(
  client: object,
  wrapOther: (other: Client) => Client,
): (name: PropertyKey, method: Method) => Method {
  const known = new Map<PropertyKey, Method>();
  return (name, method) => {
    const own: Method = method.bind(client);
    const wrap: Method = (...args) => wrapOther(own(...args) as Client);
    const bound = known.get(name) ?? (name === "withOptions" ? wrap : own);
    known.set(name, bound);
    return bound;
  };
}

/** Wraps the client's resources (`client.messages`, `client.chat.completions`), so that they use the wrapped client. */
function createResourceWrapper(
  client: object,
  { wrapped, methods }: { wrapped: () => object; methods: Arguments },
): (value: unknown) => unknown {
  const known = new WeakMap<object, object>();
  const wrap = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null || Reflect.get(value, "_client") !== client) return value;
    const resource = known.get(value) ?? createResource(value);
    known.set(value, resource);
    return resource;
  };
  const createResource = (resource: object): object =>
    new Proxy(resource, {
      get(target, name, receiver) {
        if (name === "_client") return wrapped();
        const value: unknown = Reflect.get(target, name, receiver);
        const change = typeof name === "string" && Object.hasOwn(methods, name) ? methods[name] : undefined;
        if (typeof value !== "function" || change === undefined) return wrap(value);
        return (argument: Fields, ...rest: unknown[]) => value.call(receiver, change(argument), ...rest);
      },
    });
  return wrap;
}

interface SdkPromise {
  _thenUnwrap?(transform: (answer: unknown) => unknown): unknown;
}

interface Post {
  readonly client: Client;
  readonly path: string;
  readonly options: unknown;
}

function postPrepared({ client, path, options }: Post, prepare: PrepareBody): unknown {
  let observe: PreparedBody["observe"] | undefined;
  const prepared = Promise.resolve(options).then(async (given) => {
    const { body } = Object(given) as { body?: Fields };
    const ready = typeof body === "object" && body !== null ? await prepare(body) : undefined;
    observe = ready?.observe;
    return ready === undefined || ready.body === body ? given : { ...Object(given), body: ready.body };
  });
  const promise = client.post(path, prepared) as SdkPromise;
  // All SDKs of this generator use it for their own helpers. Without it the answer is not observed.
  if (promise._thenUnwrap === undefined) return promise;
  return promise._thenUnwrap((answer) => observeAnswer(answer, (usage) => observe?.(usage)));
}

type Observe = (usage: unknown) => void;

/** Reads the usage of an answer, whole or streamed, as it passes. The caller gets the SDK's own object. */
export function observeAnswer<Answer>(answer: Answer, observe: Observe): Answer {
  if (isStream(answer)) observeStream(answer, observe);
  else report(usageIn(answer) ?? {}, observe);
  return answer;
}

type EventStream = AsyncIterable<unknown>;

function isStream(answer: unknown): answer is EventStream {
  return typeof answer === "object" && answer !== null && Symbol.asyncIterator in answer;
}

/** Changes the stream itself, so that it stays an instance of its class. A stream that is split with `tee` is not
 *  observed. */
function observeStream(stream: EventStream, observe: Observe): void {
  const iterate = stream[Symbol.asyncIterator];
  Object.defineProperty(stream, Symbol.asyncIterator, {
    value: () => observeEvents({ [Symbol.asyncIterator]: () => iterate.call(stream) }, observe),
    configurable: true,
    writable: true,
  });
}

async function* observeEvents(events: EventStream, observe: Observe): AsyncGenerator<unknown> {
  const reader = createUsageReader(observe);
  try {
    for await (const event of events) {
      reader.add(event);
      yield event;
    }
  } finally {
    reader.end();
  }
}

/** Collects the usage from the events of a stream. */
export interface UsageReader {
  add(event: unknown): void;
  /** Reports what was found. */
  end(): void;
}

export function createUsageReader(observe: Observe): UsageReader {
  let usage: Fields = {};
  return {
    add(event) {
      // The first value counts: at its end Anthropic also reports what its own tools read meanwhile.
      const found = usageIn(event);
      if (found !== undefined) usage = { ...found, ...usage };
    },
    end: () => report(usage, observe),
  };
}

/** Finds the usage. Anthropic has it on the answer, on the message of message_start and on message_delta; OpenAI on the
 *  answer or the last chunk, and on the response of an event; Gemini as `usageMetadata`. */
function usageIn(value: unknown): Fields | undefined {
  const { usage, message, response, usageMetadata } = Object(value) as Fields;
  const found: unknown = usage ?? Object(message).usage ?? Object(response).usage ?? usageMetadata;
  if (typeof found !== "object" || found === null) return undefined;
  return Object.fromEntries(Object.entries(found).filter(([, field]) => (field ?? null) !== null));
}

// Tools that the provider runs call the model again within one answer. The reported input then is not that of the
// request.
function report(usage: Fields, observe: Observe): void {
  const ran = Object.values(Object(usage.server_tool_use)).some((count) => Number(count) > 0);
  if (!ran && Object.keys(usage).length > 0) observe(usage);
}
