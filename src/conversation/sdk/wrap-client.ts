/** Wraps a client of a vendor's SDK. The wrapper prepares the body of what the client posts to some paths;
 *  everything else is the caller's client. Every method (create, parse, stream, tool runners) ends in `post`, which
 *  accepts a promise of its options. So the result is the SDK's own promise with all its helpers, and the SDK is not
 *  imported here. */
import type { Fields } from "../../core/text/index.ts";
import { readRefusal } from "./refusals.ts";
import { type Outcome, type PreparedRequest, sendPrepared, withCause } from "./second-try.ts";
import { findRefusal, watchResponse } from "./watch-response.ts";

export type PreparedBody = PreparedRequest<Fields>;

/** Where a request goes. */
export interface Destination {
  readonly host: string;
}

/** Prepares a request body. Undefined leaves it as it is. */
export type PrepareBody = (body: Fields, destination: Destination) => Promise<PreparedBody | undefined>;

export interface Client {
  // biome-ignore lint/suspicious/noExplicitAny: each SDK has option and promise types of its own
  post(path: string, options?: any): any;
}

/** Changes the first argument of a resource's method, by the method's name. */
type Arguments = Readonly<Record<string, (argument: Fields) => Fields>>;

export function wrapClient<Wrapped extends Client, Added extends object>(
  client: Wrapped,
  wrapping: {
    /** By path, without the query. */
    readonly routes: Readonly<Record<string, PrepareBody>>;
    readonly methods?: Arguments | undefined;
    /** Properties that the wrapped client has in addition. */
    readonly added: Added;
  },
): Wrapped & Added {
  const { routes, methods = {}, added } = wrapping;
  const wrapResource = createResourceWrapper(client, { wrapped: () => wrapped, methods });
  const bindMethod = createMethodBinder(client, (other) => wrapClient(other, wrapping));
  const post = (path: string, options?: unknown): unknown => {
    const prepare = routes[path.split("?")[0] ?? path];
    return prepare === undefined ? client.post(path, options) : postPrepared({ client, path, options }, prepare);
  };
  const wrapped: Wrapped = new Proxy(client, {
    get(target, name) {
      if (name === "post") return post;
      if (Object.hasOwn(added, name)) return Reflect.get(added, name);
      const value: unknown = Reflect.get(target, name);
      // A function that the caller passed in, such as `fetch`, is no method of the class and has no `this`.
      const isMethod = typeof value === "function" && name !== "constructor" && !Object.hasOwn(target, name);
      return isMethod ? bindMethod(name, value as Method) : wrapResource(value);
    },
    set: (target, name, value) => Reflect.set(target, name, value),
  });
  return wrapped as Wrapped & Added;
}

type Method = (...args: unknown[]) => unknown;

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

/** What the SDK's promise of an answer is made from. All SDKs of this generator have it. */
interface SdkPromise {
  responsePromise?: Promise<{ readonly response: Response }>;
}

type SdkAnswer = Awaited<NonNullable<SdkPromise["responsePromise"]>>;

/** Posts the prepared body, and after a refusal another one. Both are below the SDK's promise, so all its helpers see one
 *  call. The SDK itself repeats what it always repeats. */
function postPrepared(
  { client, path, options }: { readonly client: Client; readonly path: string; readonly options: unknown },
  prepare: PrepareBody,
): unknown {
  const { baseURL } = client as { baseURL?: unknown };
  const host = typeof baseURL === "string" && URL.canParse(baseURL) ? new URL(baseURL).host : "";
  const given = Promise.resolve(options).then((each) => Object(each) as { body?: Fields });
  const prepared = given.then(async ({ body }) => {
    return typeof body === "object" && body !== null ? await prepare(body, { host }) : undefined;
  });
  const promise = client.post(path, replaceOptions(given, prepared)) as SdkPromise;
  const { responsePromise: first } = promise;
  // Without it the answer is not observed.
  if (!(first instanceof Promise)) return promise;
  const again = (body: PreparedBody): Promise<SdkAnswer> =>
    (client.post(path, replaceOptions(given, Promise.resolve(body))) as Required<SdkPromise>).responsePromise;
  // If the request cannot be prepared, the SDK's own promise rejects with that error.
  const answered = prepared
    .catch(() => undefined)
    .then((ready) => {
      if (ready === undefined) return first;
      return sendPrepared(ready, (each) => readOutcome(each === ready ? first : again(each), each));
    });
  // The promises of openai 7.55 keep the first answer in closures, and its client creates them from any answer.
  const create: unknown = Reflect.get(client, "responsePromise");
  if (typeof create === "function") return create.call(client, answered);
  promise.responsePromise = answered;
  return promise;
}

async function replaceOptions(given: Promise<{ body?: Fields }>, prepared: Promise<PreparedBody | undefined>) {
  const [own, ready] = await Promise.all([given, prepared]);
  return ready === undefined || ready.body === own.body ? own : { ...own, body: ready.body };
}

async function readOutcome(sent: Promise<SdkAnswer>, prepared: PreparedBody): Promise<Outcome<SdkAnswer>> {
  try {
    const answer = await sent;
    const { response, refusal } = await findRefusal(answer.response);
    return { refusal, settle: () => ({ ...answer, response: watchResponse(response, prepared) }) };
  } catch (error) {
    // An SDK's error has the status and the body of the answer.
    const { status, error: body, message } = Object(error) as Fields;
    const text = body === undefined ? String(message) : JSON.stringify(body);
    return {
      refusal: typeof status === "number" ? readRefusal(status, text) : undefined,
      settle(note) {
        throw withCause(error, note);
      },
    };
  }
}
