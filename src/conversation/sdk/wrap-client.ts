/** Wraps a client of a vendor's SDK. The wrapper prepares the body of what the client posts to some paths;
 *  everything else is the caller's client. Every method (create, parse, stream, tool runners) ends in `post`, which
 *  accepts a promise of its options. So the result is the SDK's own promise with all its helpers, and the SDK is not
 *  imported here. */
import type { Fields } from "../../core/text/index.ts";
import { type Refusal, readRefusal } from "./refusals.ts";
import { type Outcome, type PreparedRequest, sendPrepared, withCause } from "./second-try.ts";
import { findRefusal, watchResponse } from "./watch-response.ts";

export type PreparedBody = PreparedRequest<Fields>;

/** Where a request goes. */
export interface Destination {
  readonly host: string;
}

/** Prepares a request body. Undefined leaves it as it is. */
export type PrepareBody = (body: Fields, destination: Destination) => Promise<PreparedBody> | undefined;

export interface Client {
  // biome-ignore lint/suspicious/noExplicitAny: each SDK has option and promise types of its own
  post(path: string, options?: any): any;
}

/** By path, without the query. */
type Routes = Readonly<Record<string, PrepareBody>>;

/** Changes the first argument of a resource's method, by the method's name. */
type Arguments = Readonly<Record<string, (argument: Fields) => Fields>>;

interface Wrapping<Added extends object> {
  readonly routes: Routes;
  readonly methods?: Arguments | undefined;
  /** Properties that the wrapped client has in addition. */
  readonly added: Added;
}

export function wrapClient<Wrapped extends Client, Added extends object>(
  client: Wrapped,
  wrapping: Wrapping<Added>,
): Wrapped & Added {
  const { routes, methods = {}, added } = wrapping;
  const wrapResource = createResourceWrapper(client, { wrapped: () => wrapped, methods });
  const methodOf = createMethodBinder(client, (other) => wrapClient(other, wrapping));
  const post = (path: string, options?: unknown): unknown => {
    const prepare = routes[path.split("?")[0] ?? path];
    return prepare === undefined ? client.post(path, options) : postPrepared({ client, path, options }, prepare);
  };
  const wrapped: Wrapped = new Proxy(client, {
    get(target, name) {
      if (name === "post") return post;
      if (Object.hasOwn(added, name)) return Reflect.get(added, name);
      const value: unknown = Reflect.get(target, name);
      return isMethod(target, name, value) ? methodOf(name, value) : wrapResource(value);
    },
    set: (target, name, value) => Reflect.set(target, name, value),
  });
  return wrapped as Wrapped & Added;
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

/** What the SDK's promise of an answer is made from. All SDKs of this generator have it. */
interface SdkPromise {
  responsePromise?: Promise<SdkResponse>;
}

interface SdkResponse {
  readonly response: Response;
}

interface Post {
  readonly client: Client;
  readonly path: string;
  readonly options: unknown;
}

/** Posts the prepared body, and after a refusal another one. Both are below the SDK's promise, so all its helpers see one
 *  call. The SDK itself repeats what it always repeats. */
function postPrepared({ client, path, options }: Post, prepare: PrepareBody): unknown {
  const given = Promise.resolve(options).then((each) => Object(each) as { body?: Fields });
  const prepared = given.then(async ({ body }) => {
    return typeof body === "object" && body !== null ? await prepare(body, { host: hostOf(client) }) : undefined;
  });
  const promise = client.post(path, optionsWith(given, prepared)) as SdkPromise;
  const { responsePromise: first } = promise;
  // Without it the answer is not observed.
  if (!(first instanceof Promise)) return promise;
  const again = (body: PreparedBody): Promise<SdkResponse> =>
    (client.post(path, optionsWith(given, Promise.resolve(body))) as Required<SdkPromise>).responsePromise;
  const answered = answerWith({ first, again, prepared });
  // The promises of openai 7.55 keep the first answer in closures, and its client creates them from any answer.
  const create: unknown = Reflect.get(client, "responsePromise");
  if (typeof create === "function") return create.call(client, answered);
  promise.responsePromise = answered;
  return promise;
}

async function optionsWith(given: Promise<{ body?: Fields }>, prepared: Promise<PreparedBody | undefined>) {
  const [own, ready] = await Promise.all([given, prepared]);
  return ready === undefined || ready.body === own.body ? own : { ...own, body: ready.body };
}

function hostOf(client: Client): string {
  const { baseURL } = client as { baseURL?: unknown };
  return typeof baseURL === "string" && URL.canParse(baseURL) ? new URL(baseURL).host : "";
}

interface Answering {
  readonly first: Promise<SdkResponse>;
  again(body: PreparedBody): Promise<SdkResponse>;
  readonly prepared: Promise<PreparedBody | undefined>;
}

async function answerWith({ first, again, prepared }: Answering): Promise<SdkResponse> {
  // If the request cannot be prepared, the SDK's own promise rejects with that error.
  const ready = await prepared.catch(() => undefined);
  if (ready === undefined) return first;
  return sendPrepared(ready, (each) => outcomeOf(each === ready ? first : again(each), each));
}

async function outcomeOf(sent: Promise<SdkResponse>, prepared: PreparedBody): Promise<Outcome<SdkResponse>> {
  try {
    const answer = await sent;
    const { response, refusal } = await findRefusal(answer.response);
    return { refusal, settle: () => ({ ...answer, response: watchResponse(response, prepared) }) };
  } catch (error) {
    return {
      refusal: refusalOf(error),
      settle(note) {
        throw withCause(error, note);
      },
    };
  }
}

/** Reads the refusal from an SDK's error, which has the status and the body of the answer. */
function refusalOf(error: unknown): Refusal | undefined {
  const { status, error: body, message } = Object(error) as Fields;
  if (typeof status !== "number") return undefined;
  return readRefusal(status, body === undefined ? String(message) : JSON.stringify(body));
}
