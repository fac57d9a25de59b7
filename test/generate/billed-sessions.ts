/** Writes sessions of Claude Code and Codex whose provider billed them with a cache, and in which the cache was lost for
 *  known reasons. It keeps its own books, so that a test can compare them with what `bill` finds. */

export type PlantedCause =
  | "expired"
  | "model"
  | "compaction"
  | "resumed"
  | "rewound"
  | "history edited"
  | "tools or system changed"
  | "unexplained";

export interface BilledRecording {
  readonly agent: "claude-code" | "codex";
  readonly session: string;
  /** JSON Lines. */
  readonly text: string;
  /** The calls that lost the cache: the id of each answer, and why. */
  readonly planted: readonly { readonly id: string; readonly cause: PlantedCause }[];
  readonly totals: Tokens & { readonly calls: number };
}

export interface Tokens {
  readonly uncached: number;
  readonly write5m: number;
  readonly write1h: number;
  readonly read: number;
  readonly output: number;
}

export interface BilledOptions {
  readonly seed: number;
  readonly agent: BilledRecording["agent"];
  readonly calls: number;
  /** Characters of an average tool result. */
  readonly resultChars?: number;
  readonly causes?: readonly PlantedCause[];
}

export const causesOf: Readonly<Record<BilledRecording["agent"], readonly PlantedCause[]>> = {
  "claude-code": [
    ...(["expired", "model", "compaction", "resumed", "rewound"] as const),
    ...(["history edited", "tools or system changed", "unexplained"] as const),
  ],
  codex: ["expired", "model", "compaction", "rewound", "resumed", "unexplained"],
};

export function generateBilledSession(options: BilledOptions): BilledRecording {
  const { agent, seed, calls, resultChars = 6000, causes = causesOf[agent] } = options;
  const random = createRandom(seed);
  const book = createBook(random, agent);
  const session = `${Math.floor(createRandom(seed)() * 2 ** 32)
    .toString(16)
    .padStart(8, "0")}-${agent}-${seed}`;
  const writer = agent === "codex" ? codexWriter(session) : claudeCodeWriter(session, seed);
  const planted: { id: string; cause: PlantedCause }[] = [];
  let quiet = 0;
  writer.prompt(sentence(random, 200), book.now());
  for (let index = 0; index < calls; index++) {
    quiet++;
    const mayLose = quiet > 4 && index > 4 && random() < 0.12;
    const cause = mayLose ? causes[Math.floor(random() * causes.length)] : undefined;
    if (cause !== undefined) quiet = 0;
    const asked = book.next(cause, resultChars);
    if (index > 0) writer.before(cause, { book, asked, text: sentence(random, asked.chars) });
    const id = writer.answer(cause, { book, asked });
    if (cause !== undefined) planted.push({ id, cause });
  }
  return { agent, session, text: writer.text(), planted, totals: { ...book.totals, calls } };
}

/** A repeatable source of numbers from 0 to 1 (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Asked {
  readonly chars: number;
  readonly usage: Tokens;
  readonly model: string;
  /** How many calls a rewind goes back. */
  readonly back: number;
}

interface Book {
  now(): number;
  next(cause: PlantedCause | undefined, resultChars: number): Asked;
  readonly totals: Tokens;
  readonly isLong: boolean;
}

const minuteMs = 60_000;
const systemTokens = 12_000;
const models = ["claude-sonnet-5", "claude-opus-5"] as const;

/** What the provider's cache holds, and what each call is billed. Results grow the context by at least 1,500 tokens. */
function createBook(random: () => number, agent: BilledRecording["agent"]): Book {
  let now = Date.UTC(2026, 9, 1 + Math.floor(random() * 30), 8, Math.floor(random() * 60));
  // OpenAI reports no lifetimes.
  const isLong = random() < 0.3 && agent !== "codex";
  const lifetimeMs = isLong ? 60 * minuteMs : 5 * minuteMs;
  // OpenAI promises 5 minutes for some models and 30 for others.
  const [shortMs, longMs] = agent === "codex" ? [5 * minuteMs, 30 * minuteMs] : [lifetimeMs, lifetimeMs];
  let model = 0;
  /** The size of the context after each call, along the current branch. */
  let sizes: number[] = [];
  const totals = { uncached: 0, write5m: 0, write1h: 0, read: 0, output: 0 };
  const between = (low: number, high: number): number => low + Math.floor(random() * (high - low));
  return {
    isLong,
    totals,
    now: () => now,
    next(cause, resultChars) {
      // A pause below the lifetime loses nothing.
      const pause = random() < 0.05 ? shortMs - minuteMs : between(2000, 40_000);
      now += cause === "expired" ? longMs + between(1, 90) * minuteMs : pause;
      const chars = between(Math.max(6000, resultChars / 2), Math.max(6001, resultChars * 1.5));
      const added = Math.ceil(chars / 4);
      const back = Math.min(sizes.length - 1, between(1, 3));
      sizes = branchAfter(cause, sizes, back);
      const before = sizes.at(-1) ?? 0;
      const read = cause === undefined ? before : readAfter(cause, before);
      const size = (before || systemTokens) + added;
      if (cause === "model") model = 1 - model;
      const written = size - read;
      const [write5m, write1h] = isLong ? [0, written] : [written, 0];
      const usage = { uncached: 3, read, write5m, write1h, output: between(40, 900) };
      sizes.push(size);
      for (const kind of Object.keys(totals) as (keyof Tokens)[]) totals[kind] += usage[kind];
      return { chars, usage, model: models[model] as string, back };
    },
  };
}

/** The sizes of the calls that the next one continues. */
function branchAfter(cause: PlantedCause | undefined, sizes: readonly number[], back: number): number[] {
  if (cause === "compaction") return [];
  return cause === "rewound" ? sizes.slice(0, -back) : [...sizes];
}

/** What is left of the cache. */
function readAfter(cause: PlantedCause, before: number): number {
  if (cause === "rewound") return before;
  if (cause === "compaction" || cause === "resumed") return systemTokens;
  return cause === "history edited" ? Math.floor(before / 2) : 0;
}

interface Place {
  readonly book: Book;
  readonly asked: Asked;
}

interface Writer {
  prompt(text: string, time: number): void;
  /** Writes the tool result before a call, and what shows the cause. */
  before(cause: PlantedCause | undefined, place: Place & { readonly text: string }): void;
  /** Returns the id of the answer. */
  answer(cause: PlantedCause | undefined, place: Place): string;
  text(): string;
}

function claudeCodeWriter(session: string, seed: number): Writer {
  const lines: string[] = [];
  let next = 0;
  let leaf: string | null = null;
  let version = 100;
  let shape = 0;
  let request: { readonly id: string; readonly length: number } | undefined;
  /** The last line of each answer on the branch. */
  let answers: string[] = [];
  let call = "";
  const write = (time: number, fields: object): string => {
    const uuid = `${session}-${++next}`;
    const common = {
      isSidechain: false,
      sessionId: session,
      cwd: `/repo/project-${seed % 7}`,
      version: `2.1.${version}`,
    };
    lines.push(
      JSON.stringify({ parentUuid: leaf, ...common, ...fields, uuid, timestamp: new Date(time).toISOString() }),
    );
    leaf = uuid;
    return uuid;
  };
  const result = (time: number, text: string): void => {
    const content = [{ type: "tool_result", tool_use_id: call, content: text }];
    write(time, { type: "user", message: { role: "user", content }, toolUseResult: { stdout: text } });
  };
  const recordRequest = (
    ref: string,
    { time, isFresh, isEdited }: { time: number; isFresh: boolean; isEdited: boolean },
  ) => {
    const known = request?.length ?? 0;
    const keep = isFresh ? 0 : isEdited ? 1 : known;
    const tail = Array.from({ length: known + 2 - keep }, (_, at) => `hash-${next}-${at}`);
    const shared = { sessionId: session, timestamp: new Date(time).toISOString(), shapeHash: `shape-${shape}` };
    const base = isFresh ? {} : { base: request?.id };
    const params = { max_tokens: 32000 };
    lines.push(JSON.stringify({ type: "api-request", ...shared, id: ref, params, ...base, keep, tail }));
    request = { id: ref, length: known + 2 };
  };
  return {
    prompt: (text, time) => void write(time, { type: "user", message: { role: "user", content: text } }),
    before(cause, { book, asked, text }) {
      const time = book.now();
      if (cause === "rewound") {
        answers = answers.slice(0, -asked.back);
        leaf = answers.at(-1) ?? null;
        write(time, { type: "user", message: { role: "user", content: text } });
      } else if (cause === "compaction") {
        leaf = null;
        write(time, { type: "system", subtype: "compact_boundary", compactMetadata: { trigger: "auto" } });
        write(time, { type: "user", isCompactSummary: true, message: { role: "user", content: text } });
        request = undefined;
        answers = [];
      } else {
        if (cause === "resumed") version++;
        result(time, text);
      }
    },
    answer(cause, { book, asked }) {
      const time = book.now();
      const ref = `request-${session}-${++next}`;
      if (cause === "tools or system changed") shape++;
      const isFresh = request === undefined || cause === "resumed" || cause === "rewound";
      recordRequest(ref, { time, isFresh, isEdited: cause === "history edited" });
      const number = next;
      const id = `msg_${session}_${number}`;
      call = `toolu_${session}_${next}`;
      const { uncached, read, write5m, write1h, output } = asked.usage;
      const usage = {
        input_tokens: uncached,
        cache_read_input_tokens: read,
        cache_creation_input_tokens: write5m + write1h,
        cache_creation: { ephemeral_5m_input_tokens: write5m, ephemeral_1h_input_tokens: write1h },
      };
      const file = `src/file-${next % 40}.ts`;
      const blocks = [
        { type: "text", text: `Reading ${file}.` },
        { type: "tool_use", id: call, name: "Read", input: { file_path: file } },
      ];
      for (const [index, block] of blocks.entries()) {
        // While it is streamed, an answer has not all of its output yet.
        const output_tokens = index === 0 ? 1 : output;
        const message = {
          id,
          role: "assistant",
          model: asked.model,
          content: [block],
          usage: { ...usage, output_tokens },
        };
        const fields = { type: "assistant", requestId: `req_${session}_${number}`, requestRef: ref, message };
        write(time + 1500 + index, fields);
      }
      answers.push(leaf as string);
      return id;
    },
    text: () => `${lines.join("\n")}\n`,
  };
}

function codexWriter(session: string): Writer {
  const lines: string[] = [];
  let next = 0;
  let call = "";
  const sum: Record<string, number> = {};
  const write = (time: number, type: string, payload: object): void => {
    lines.push(JSON.stringify({ timestamp: new Date(time).toISOString(), type, payload }));
  };
  const meta = (time: number): void =>
    write(time, "session_meta", { id: session, cwd: "/repo/codex", base_instructions: { text: "You edit code." } });
  const say = (time: number, text: string): void =>
    write(time, "response_item", { type: "message", role: "user", content: [{ type: "input_text", text }] });
  return {
    prompt(text, time) {
      meta(time);
      say(time, text);
    },
    before(cause, { book, asked, text }) {
      const time = book.now();
      if (cause === "compaction") {
        write(time, "compacted", { message: "", replacement_history: [] });
        say(time, text);
      } else if (cause === "rewound") {
        write(time, "event_msg", { type: "thread_rolled_back", num_turns: asked.back });
        say(time, text);
      } else {
        if (cause === "resumed") meta(time);
        write(time, "response_item", { type: "function_call_output", call_id: call, output: text });
        // A person asks again, so that there is a turn to go back to.
        say(time, "Go on.");
      }
    },
    answer(_, { book, asked }) {
      const time = book.now() + 1500;
      const { uncached, read, write5m, write1h, output } = asked.usage;
      const id = `resp_${session}_${++next}`;
      call = `call_${session}_${next}`;
      write(time, "turn_context", {
        model: asked.model.replace("claude-sonnet-5", "gpt-5.6-sol").replace("claude-opus-5", "gpt-5"),
      });
      const input = JSON.stringify({ cmd: "cat notes.txt" });
      write(time, "response_item", { type: "function_call", name: "exec_command", call_id: call, arguments: input });
      const usage = {
        ...{ input_tokens: uncached + read + write5m + write1h, cached_input_tokens: read, output_tokens: output },
        cache_write_input_tokens: write5m + write1h,
      };
      write(time, "token_usage_record", { response_id: id, usage });
      for (const [name, value] of Object.entries(usage)) sum[name] = (sum[name] ?? 0) + value;
      const totals = (own: typeof sum) => ({
        ...own,
        total_tokens: (own.input_tokens ?? 0) + (own.output_tokens ?? 0),
      });
      const info = { total_token_usage: totals(sum), last_token_usage: totals(usage) };
      write(time, "event_msg", { type: "token_count", info });
      return id;
    },
    text: () => `${lines.join("\n")}\n`,
  };
}

const words = "the file reads a line and writes what it found to a table of names for each test that failed".split(" ");

/** A part of a long text that repeats nothing near. */
function sentence(random: () => number, chars: number): string {
  pool ??= createPool();
  const start = Math.floor(random() * (pool.length / 2));
  return pool.slice(start, start + Math.min(chars, pool.length / 2));
}

let pool: string | undefined;

function createPool(): string {
  const random = createRandom(1);
  const word = (): string =>
    `${words[Math.floor(random() * words.length)]}${random() < 0.2 ? Math.floor(random() * 1000) : ""}`;
  return Array.from({ length: 40_000 }, word).join(" ");
}
