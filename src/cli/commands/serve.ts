import { type PolicyName, policyNames } from "../../conversation/history/index.ts";
import { type ApiName, apiNames } from "../../conversation/sdk/serve-requests.ts";
import { messageOf, wholeNumber } from "../../core/text/index.ts";
import { chooseCounter, loadConfig, noteIgnoredStore, openStore, storeFile, takeEndSignals } from "../../host/index.ts";
import { type Call, type Command, defineCommand, type OptionValues } from "../command.ts";
import { findToken, httpOptions, readPort } from "../http-options.ts";
import { counterOptions, historyOptions, storeOptions } from "../shared-options.ts";

const serveOptions = {
  ...httpOptions,
  api: { value: "NAME", choices: apiNames, summary: "the API of requests that name none (default: what they show)" },
  window: { value: "N", summary: "the model's limit in tokens (default: by the request's model)" },
  reserve: historyOptions.reserve,
  policy: { value: "NAME", choices: policyNames, summary: "how to trim (default: from the configuration, economic)" },
  keep: historyOptions.keep,
  intake: { summary: "shorten new tool results, as plimsoll plugin does" },
  breakpoints: {
    value: "MODE",
    choices: ["auto", "follow", "none"],
    summary: "when to add cache markers for Claude models (default: auto)",
  },
  ttl: {
    value: "TIME",
    choices: ["auto", "5m", "1h"],
    summary: "how long the cache keeps what the markers write (default: auto)",
  },
  counter: counterOptions.counter,
  model: { value: "ID", summary: "the model of all requests (default: what each request names)" },
  ...storeOptions,
  "no-store": { summary: "keep state in memory only, until the server ends" },
} as const;

type ServeCall = Call<OptionValues<typeof serveOptions>>;

export const serveCommand: Command = defineCommand({
  options: serveOptions,
  details: `For agents in Python, Go and other languages. Before each call of the model, such an agent sends its request here
and gets it back so that it fits, with cache markers for Claude models. Afterwards it gives back the usage of the
answer, or the provider's refusal.
Each message is one line of JSON, and so is each answer:
  { "id": 1, "session": "build-7", "request": { "model": …, "messages": … } }
  { "id": 1, "call": "c1", "request": { … }, "tokens": { "before": N, "after": N }, "trimmed": false }
  { "id": 2, "call": "c1", "usage": { … } }      as the provider returned it
  { "id": 2, "call": "c1", "event": { … } }      tokens, dollars, and why a cache was lost
  { "id": 3, "call": "c1", "refusal": { "status": 400, "body": … } }
  { "id": 3, "call": "c1", "request": { … } }    what to send instead, or null
session is optional: requests with the same first user message are one conversation. What is wrong with a message comes
back as { "id": 1, "error": { "code", "message", "hint" } }.
With --http, POST the same messages to /v1/calls. POST /v1/compress takes { messages, model } from the guardrail
"headroom" of LiteLLM or Portkey.`,
  examples: [
    { line: "plimsoll serve", meaning: "answer requests on standard input" },
    { line: "plimsoll serve --http 7420", meaning: "answer them on http://127.0.0.1:7420/v1/calls" },
    { line: "plimsoll serve --window 128000 --api openai", meaning: "for a model that Plimsoll does not know" },
  ],
  async run(call) {
    const { options, output, stdin } = call;
    const port = readPort(options);
    const { createRequestServer } = await import("../../conversation/sdk/serve-requests.ts");
    const { serveLines, serveRequests } = await import("../../host/processes/request-server.ts");
    const token = port === undefined ? undefined : await findToken(call, { file: "serve-token" });
    const store = await openServeStore(call);
    const server = createRequestServer({
      ...(await readSettings(call)),
      store,
      onError: (error) => output.note(messageOf(error)),
    });
    const end = new AbortController();
    takeEndSignals(() => end.abort());
    try {
      if (port !== undefined) {
        await serveRequests(server, { port, token, signal: end.signal, log: output.note });
      } else {
        if (process.stdin.isTTY) output.note("waiting for requests on standard input; Ctrl-C ends the server");
        const stop = (): void => void process.stdin.destroy();
        // If the reader is gone, the server ends in order instead of exiting at once.
        process.stdout.removeAllListeners("error");
        await serveLines(server, { input: stdin, output: process.stdout, signal: end.signal, stop });
        stop();
      }
    } finally {
      await store?.close();
    }
    return undefined;
  },
});

/** A store that cannot be opened does not stop an agent: the decisions of a conversation follow from its messages. */
async function openServeStore({ options, cwd, env, output }: ServeCall) {
  if (options["no-store"] === true) return undefined;
  const config = await loadConfig({ cwd, env });
  noteIgnoredStore(config, { cwd, env, output });
  const place = storeFile(options.store, { cwd, env, config });
  return openStore({ place, waitMs: 5_000 }).catch((error: unknown) => {
    output.problem(`${messageOf(error)}. State stays in memory until the server ends.`);
    return undefined;
  });
}

async function readSettings(call: ServeCall) {
  const { options, cwd, env } = call;
  const { values } = await loadConfig({ cwd, env });
  const policy = options.policy ?? (values.history.policy === "none" ? undefined : values.history.policy);
  const { counter, model } = options;
  return {
    api: options.api as ApiName | undefined,
    contextWindow: wholeNumber(options.window, "window", 1),
    reserve: wholeNumber(options.reserve, "reserve", 0),
    keep: wholeNumber(options.keep, "keep", 0) ?? values.history.keep,
    policy: policy as PolicyName | undefined,
    intake: options.intake,
    breakpoints: options.breakpoints as "auto" | "follow" | "none" | undefined,
    ttl: options.ttl as "auto" | "5m" | "1h" | undefined,
    model,
    counter: counter === undefined ? undefined : await chooseCounter(call, "auto", { quiet: true }),
  };
}
