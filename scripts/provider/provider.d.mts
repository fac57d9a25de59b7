/** The types of the scripted provider, for tests in TypeScript. */

export type Fields = Readonly<Record<string, unknown>>;

/** Tokens of a request, by how they are billed. */
export interface BilledTokens {
  readonly uncached: number;
  readonly write5m: number;
  readonly write1h: number;
  readonly read: number;
  readonly output: number;
}

/** A request as a script sees it. */
export interface Asked {
  readonly body: Fields;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The request's number, from 1. */
  readonly number: number;
  /** The whole body as JSON. */
  readonly text: string;
  /** The names of the tools. */
  readonly tools: readonly string[];
  /** How many calls the model has made. */
  readonly step: number;
  readonly results: readonly string[];
}

export interface ScriptedCall {
  readonly name: string;
  readonly input: unknown;
  readonly id?: string;
  /** Responses API: the input is plain text. */
  readonly custom?: boolean;
  /** Responses API: the tool is in this namespace. */
  readonly namespace?: string;
}

/** What the model answers, or a reply that is sent as it is. */
export type Turn =
  | {
      readonly id?: string;
      readonly text?: string;
      readonly calls?: readonly ScriptedCall[];
      /** The text of the thinking, or of several blocks. An empty list: none. */
      readonly thinking?: string | readonly string[];
      /** Anthropic only: the whole content. The provider signs the thinking in it. */
      readonly content?: readonly object[];
      readonly outputTokens?: number;
      /** The usage to report instead of what was billed. */
      readonly usage?: object;
      /** What a stream waits for after each event. */
      readonly afterEvent?: (index: number) => Promise<unknown> | undefined;
    }
  | { readonly status?: number; readonly json: object }
  | { readonly events: Iterable<string> | AsyncIterable<string> };

/** Dollars for a million tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** @default 0.1 × input */
  readonly read?: number;
  /** @default 1.25 × input */
  readonly write5m?: number;
  /** @default 2 × input */
  readonly write1h?: number;
}

/** `drop` closes the connection before the answer, `cut` in the middle of a stream. */
export type Failure = number | "drop" | "cut";

export interface ProviderOptions {
  /** What the model answers: a function of the request, or a list of turns. @default `Done.` */
  readonly answer?: ((asked: Asked) => Turn | Promise<Turn>) | readonly Turn[];
  /** The answer to requests without tools: clients ask for titles and the like. */
  readonly title?: string;
  /** Whether invalid requests are refused. @default true */
  readonly checks?: boolean;
  /** Whether an open tool call must keep its thinking. The documentation only advises it. @default false */
  readonly strictOpenTurn?: boolean;
  /** `accept` does not look at thinking that this provider did not sign, as in recorded histories. @default "refuse" */
  readonly foreignThinking?: "refuse" | "accept";
  /** @default unlimited */
  readonly contextWindow?: number;
  /** Whether a refusal for length says the numbers. @default true */
  readonly overflowNumbers?: boolean;
  /** Counts a text. @default a rough counter of the provider's own */
  readonly count?: (text: string) => number;
  /** How many times as many tokens as `count` the provider bills. @default 1 */
  readonly countFactor?: number;
  /** The provider's clock, in milliseconds. @default Date.now */
  readonly now?: () => number;
  /** Failures by the number of the request, from 1. */
  readonly failures?: Readonly<Record<number, Failure>>;
  /** OpenAI's chat API: a host that does not know `stream_options` answers with a 400. @default false */
  readonly refusesStreamOptions?: boolean;
  /** Prices by model. Without one, `dollars` is undefined. */
  readonly prices?: Readonly<Record<string, Price>>;
  /** @default 50 */
  readonly outputTokens?: number;
  /** Providers with one secret and one organization read each other's thinking. */
  readonly secret?: string;
  readonly organization?: string;
  /** Accounts from before 2026-08-31 may send mismatches to some models. @default 2026-11-01 */
  readonly accountCreated?: number;
  /** Part of the ids. @default the time */
  readonly run?: string;
  /** Of the server. @default 0, a free one */
  readonly port?: number;
}

/** A request, and what became of it. */
export interface ProviderCall {
  /** Counts requests to a model from 1. 0: another request, such as one for the list of models. */
  readonly number: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Fields;
  /** When the request came and when its answer was ready, on the provider's clock. */
  readonly at: number;
  readonly answered: number;
  /** 0 if the connection was dropped. */
  readonly status: number;
  readonly tokens: BilledTokens;
  readonly dollars: number | undefined;
  /** Why the request was refused. */
  readonly refusal: string | undefined;
  /** Thinking that the model did not read. */
  readonly dropped: readonly { readonly path: string; readonly reason: string }[];
}

export interface ProviderRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: object;
}

export interface ProviderReply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of several APIs.
  readonly json?: any;
  readonly events?: Iterable<string> | AsyncIterable<string>;
}

export interface Provider {
  /** All requests so far. The caller may empty the list. */
  readonly calls: ProviderCall[];
  readonly handle: (request: ProviderRequest) => Promise<ProviderReply>;
  readonly fetch: typeof fetch;
  readonly refusals: () => readonly ProviderCall[];
}

export interface RunningProvider extends Provider {
  readonly url: string;
  close(): Promise<void>;
}

export function createProvider(options?: ProviderOptions): Provider;
export function startProvider(options?: ProviderOptions): Promise<RunningProvider>;

export interface Message {
  readonly role: "user" | "assistant";
  readonly content: readonly object[];
}

/** A recorded conversation as requests need it. */
export interface Transcript {
  readonly system?: readonly object[];
  readonly tools: readonly object[];
  readonly messages: readonly Message[];
}

export function readTranscript(transcript: string | readonly object[]): Transcript;
export function playTranscript(
  transcript: Transcript,
  send: (request: Transcript) => Promise<{ readonly content: readonly object[] }>,
): Promise<{ readonly calls: number; readonly messages: readonly Message[] }>;
