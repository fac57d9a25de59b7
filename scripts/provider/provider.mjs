/** A provider on this machine: it judges requests, bills them on its own clock and answers as a script says. */
import { createAnthropicApi } from "./anthropic.mjs";
import { createBlockCounter } from "./count-tokens.mjs";
import { createGeminiApi } from "./gemini.mjs";
import { createOpenAiApi } from "./openai.mjs";
import { cutAfter, serve } from "./serve.mjs";
import { noTokens } from "./wire.mjs";

export { playTranscript, readTranscript } from "./play-transcript.mjs";

/** Creates a provider without a socket. The types are in provider.d.mts.
 *  @param {import("./provider.mjs").ProviderOptions} options @returns {import("./provider.mjs").Provider} */
export function createProvider(options = {}) {
  const settings = { ...defaults, run: Date.now().toString(36), ...options };
  const countBlock = createBlockCounter(settings);
  const routes = apis.flatMap((createApi) => createApi({ settings, countBlock }));
  const calls = [];
  const script = { turn: 0, requests: 0 };

  async function handle({ method = "POST", path, headers: sent = {}, body }) {
    const place = path.split("?")[0];
    const call = { number: 0, path: place, body: body ?? {}, headers: sent, at: settings.now(), ...untold };
    calls.push(call);
    const route = routes.find(({ matches }) => matches.test(place));
    if (method !== "POST") return { status: 200, json: { object: "list", data: [] } };
    if (route === undefined || body === undefined) return { status: 404, json: { error: { message: place } } };
    script.requests++;
    call.number = script.requests;
    const failure = settings.failures[call.number];
    if (failure === "drop") return { status: 0, isDropped: true };
    const reply = typeof failure === "number" ? failWith(failure, route) : await answerTo(call, route);
    call.status = reply.status ?? 200;
    const id = `req_${settings.run}_${call.number}`;
    const isCut = failure === "cut";
    call.answered = settings.now();
    const headers = { "request-id": id, "x-request-id": id, ...reply.headers };
    return { ...reply, status: call.status, isCut, headers };
  }

  async function answerTo(call, route) {
    const received = route.receive(call.body, call.headers);
    if (received.refusal !== undefined) {
      call.refusal = received.message;
      return received.refusal;
    }
    if (received.count !== undefined) return { json: received.count };
    const turn = await nextTurn(call, route);
    if (turn.json !== undefined || turn.events !== undefined) return turn;
    const { body, path } = call;
    const id = `${settings.run}_${call.number}`;
    const facts = { id, body, turn: { outputTokens: settings.outputTokens, ...turn }, received };
    call.dropped = received.dropped ?? [];
    call.tokens = { ...received.tokens, output: facts.turn.outputTokens };
    call.dollars = dollarsFor(settings.prices[body.model], call.tokens);
    const isStream = body.stream === true || path.includes(":stream");
    const answer = isStream ? { events: paced(route.stream(facts), turn) } : { json: route.whole(facts) };
    return { headers: received.headers, ...answer };
  }

  async function nextTurn({ body, path, headers, number }, route) {
    const tools = route.tools(body);
    if (settings.title !== undefined && tools.length === 0) return { text: settings.title };
    if (Array.isArray(settings.answer)) return settings.answer[script.turn++] ?? { text: "Done." };
    const seen = { step: route.steps(body), results: route.results(body), text: JSON.stringify(body) };
    return settings.answer({ ...seen, tools, body, path, headers, number });
  }

  return { calls, handle, fetch: fetchFrom(handle), refusals: () => calls.filter((call) => call.refusal) };
}

/** Starts a provider on a free port of 127.0.0.1. @param {import("./provider.mjs").ProviderOptions} options */
export async function startProvider(options = {}) {
  const provider = createProvider(options);
  return { ...provider, ...(await serve(provider.handle, options.port ?? 0)) };
}

const apis = [createAnthropicApi, createOpenAiApi, createGeminiApi];

/** Waits after each event if the script says so. */
async function* pacedEvents(events, afterEvent) {
  for (const [index, event] of events.entries()) {
    yield event;
    await afterEvent(index);
  }
}

function paced(events, { afterEvent }) {
  return afterEvent === undefined ? events : pacedEvents(events, afterEvent);
}

function failWith(status, route) {
  return { status, json: route.fail(status), ...(status === 429 && { headers: { "retry-after": "0" } }) };
}

const untold = {
  status: 0,
  answered: 0,
  tokens: { ...noTokens, output: 0 },
  dollars: undefined,
  refusal: undefined,
  dropped: [],
};

const defaults = {
  answer: () => ({ text: "Done." }),
  checks: true,
  strictOpenTurn: false,
  foreignThinking: "refuse",
  contextWindow: Number.POSITIVE_INFINITY,
  overflowNumbers: true,
  refusesStreamOptions: false,
  now: Date.now,
  failures: {},
  prices: {},
  outputTokens: 50,
  secret: "scripted provider",
  organization: "one",
  // A new account, for which every binding model refuses what does not fit.
  accountCreated: Date.UTC(2026, 10, 1),
};

/** Prices are in dollars for a million tokens. */
function dollarsFor(price, { uncached, write5m, write1h, read, output }) {
  if (price === undefined) return undefined;
  const { input, write5m: short = input * 1.25, write1h: long = input * 2, read: hit = input * 0.1 } = price;
  return (uncached * input + write5m * short + write1h * long + read * hit + output * price.output) / 1e6;
}

/** The provider in the form of `fetch`, for clients that take one. */
function fetchFrom(handle) {
  return async (url, init = {}) => {
    const asked = new Request(url, init);
    const path = new URL(asked.url).pathname + new URL(asked.url).search;
    const text = await asked.text();
    const headers = Object.fromEntries(asked.headers);
    const reply = await handle({
      method: asked.method,
      path,
      headers,
      body: text === "" ? undefined : JSON.parse(text),
    });
    if (reply.isDropped) throw new TypeError("fetch failed", { cause: new Error("socket hang up") });
    if (reply.events === undefined) return Response.json(reply.json, { status: reply.status, headers: reply.headers });
    const type = { "content-type": "text/event-stream" };
    return new Response(streamOf(reply), { status: reply.status, headers: { ...type, ...reply.headers } });
  };
}

function streamOf({ events, isCut }) {
  const encoder = new TextEncoder();
  async function* pieces() {
    let sent = 0;
    for await (const event of events) {
      if (isCut && sent++ === cutAfter) throw new TypeError("terminated");
      yield encoder.encode(event);
    }
  }
  return ReadableStream.from(pieces());
}
