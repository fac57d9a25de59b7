/** A client of one of the vendors' SDKs that is the caller's own in all but one thing: the body of what it posts to some paths is prepared
 *  first. Every way to ask (create, parse, stream, tool runners) ends in `post`, which takes a promise of its options; so what it gives
 *  back is the SDK's own promise, with all its helpers. The SDK itself is not needed here. */
import { observeAnswer } from "./observe-answer.ts";

export type Fields = Readonly<Record<string, unknown>>;

export interface PreparedBody {
  readonly body: Fields;
  /** Takes the usage of the answer. */
  observe(usage: unknown): void;
}

/** Undefined leaves the body as it is. */
export type PrepareBody = (body: Fields) => Promise<PreparedBody> | undefined;

export interface Client {
  // biome-ignore lint/suspicious/noExplicitAny: each SDK has option and promise types of its own
  post(path: string, options?: any): any;
}

/** By path, without its query. */
type Routes = Readonly<Record<string, PrepareBody>>;

/** What to pass to a method of a resource instead of its first argument, by the method's name. */
type Arguments = Readonly<Record<string, (argument: Fields) => Fields>>;

export function wrapClient<Wrapped extends Client>(
  client: Wrapped,
  routes: Routes,
  methods: Arguments = {},
): Wrapped {
  const wrapResource = createResourceWrapper(client, { wrapped: () => wrapped, methods });
  const methodOf = createMethodBinder(client, (other) => wrapClient(other, routes, methods));
  const post = (path: string, options?: unknown): unknown => {
    const prepare = routes[path.split("?")[0] ?? path];
    return prepare === undefined
      ? client.post(path, options)
      : postPrepared({ client, path, options }, prepare);
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

/** A function of the class. One that the caller passed in, such as `fetch`, has no `this`. */
function isMethod(target: object, name: PropertyKey, value: unknown): value is Method {
  return typeof value === "function" && name !== "constructor" && !Object.hasOwn(target, name);
}

/** Clients have private fields, which a proxy has not, so that their methods are bound to them. */
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

/** Wraps what belongs to the client (`client.messages`, `client.chat.completions`), so that it goes through the wrapped one. */
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
  // Every SDK of this make uses it for its own helpers; without it the answer is simply not observed.
  if (promise._thenUnwrap === undefined) return promise;
  return promise._thenUnwrap((answer) => observeAnswer(answer, (usage) => observe?.(usage)));
}
