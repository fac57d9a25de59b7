/** Reads what a provider answers as its bytes pass: usage, and a refusal at the beginning of a stream. The caller gets the
 *  same bytes at the same time, except for usage that only we asked for. */
import { Buffer } from "../../core/bytes.ts";
import type { Fields } from "../../core/text/index.ts";
import { type Refusal, readRefusal, refusalStatuses } from "./refusals.ts";

interface WatchOptions {
  /** Takes the usage of the answer, without fields if it has none. */
  observe(usage: unknown): void;
  /** Whether to hide the usage in the events of a chat. */
  readonly hidesUsage?: boolean | undefined;
}

/** Returns an answer that reports its usage when it has been read. */
export function watchResponse(response: Response, options: WatchOptions): Response {
  if (!response.ok || response.body === null) return response;
  return replaceBody(response, mapBody(openReader(response.body), [], createWatcher(response, options)));
}

/** Finds out whether the provider refused the request, by its status or by the first event of a stream. The body of the
 *  answer that comes back is complete. */
export async function findRefusal(response: Response): Promise<{ response: Response; refusal: Refusal | undefined }> {
  const { ok, status, body } = response;
  if (!ok) {
    const text = refusalStatuses.includes(status) ? await response.clone().text() : "";
    return { response, refusal: readRefusal(status, text) };
  }
  if (body === null || readKind(response) !== "events") return { response, refusal: undefined };
  const reader = openReader(body);
  const { chunks, event } = await readFirstEvent(reader);
  // LM Studio and Anthropic send `error`, chat servers a chunk with an error in it, the responses API `response.failed`.
  const errors = [event.error, Object(event.response).error].filter((error) => (error ?? null) !== null);
  const text = event.type === "error" || errors.length > 0 ? JSON.stringify(event) : undefined;
  const whole = replaceBody(response, mapBody(reader, chunks, { add: (chunk) => chunk, end: () => undefined }));
  return { response: whole, refusal: text === undefined ? undefined : readRefusal(undefined, text) };
}

type BodyReader = Pick<ReadableStreamDefaultReader<Uint8Array>, "read" | "cancel">;

/** A `fetch` that is not the runtime's may return Node's own streams. */
function openReader(body: ReadableStream<Uint8Array>): BodyReader {
  return typeof body.getReader === "function" ? body.getReader() : ReadableStream.from<Uint8Array>(body).getReader();
}

function replaceBody(response: Response, body: ReadableStream<Uint8Array>): Response {
  const { status, statusText, headers } = response;
  const copy = new Response(body, { status, statusText, headers: [...headers] });
  for (const name of ["url", "redirected", "type"] as const) {
    Object.defineProperty(copy, name, { value: response[name], configurable: true });
  }
  return copy;
}

/** Looks at the chunks of a body, and may change them. */
interface Watcher {
  add(chunk: Uint8Array): Uint8Array;
  /** The body has ended, or nobody reads it any more. Returns what was held back. */
  end(): Uint8Array | undefined;
}

/** Returns a stream of `first` and the rest of the body. It reads nothing before it is read itself. */
function mapBody(reader: BodyReader, first: readonly Uint8Array[], watcher: Watcher): ReadableStream<Uint8Array> {
  const waiting = [...first];
  const next = async (): Promise<Uint8Array | undefined> => waiting.shift() ?? (await reader.read()).value;
  const body = {
    async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
      try {
        for (let chunk = await next(); chunk !== undefined; chunk = await next()) {
          const passed = watcher.add(chunk);
          if (passed.length > 0) return controller.enqueue(passed);
        }
      } catch (error) {
        watcher.end();
        throw error;
      }
      const rest = watcher.end();
      if (rest !== undefined && rest.length > 0) controller.enqueue(rest);
      controller.close();
    },
    async cancel(reason: unknown): Promise<void> {
      watcher.end();
      await reader.cancel(reason);
    },
  };
  return new ReadableStream(body, { highWaterMark: 0 });
}

function readKind({ headers }: Response): "events" | "aws" | "json" {
  const type = headers.get("content-type") ?? "";
  if (type.includes("text/event-stream")) return "events";
  return type.includes("application/vnd.amazon.eventstream") ? "aws" : "json";
}

function createWatcher(response: Response, { observe, hidesUsage = false }: WatchOptions): Watcher {
  const reader = createUsageReader(observe);
  const kind = readKind(response);
  if (kind === "events") return hidesUsage ? createHidingWatcher(reader) : createEventWatcher(reader);
  return kind === "aws" ? createAwsWatcher(reader) : createJsonWatcher(reader);
}

/** A server-sent event of a model is one line of JSON. */
function createEventWatcher(reader: UsageReader): Watcher {
  const lines = createLineReader();
  return {
    add(chunk) {
      for (const line of lines.add(chunk)) if (line.startsWith("data:")) addJson(reader, line.slice("data:".length));
      return chunk;
    },
    end: () => void reader.end(),
  };
}

/** Leaves the events of a chat as they would be without `include_usage`: with it, OpenAI adds `"usage":null` to every
 *  chunk, and a last chunk without choices (platform.openai.com/docs/api-reference/chat, 2026-11). */
function createHidingWatcher(reader: UsageReader): Watcher {
  const lines = createLineReader();
  const encoder = new TextEncoder();
  let isHidden = false;
  const show = (line: string): string => {
    // The blank line after an event that is not shown.
    if (isHidden && line.trim() === "") {
      isHidden = false;
      return "";
    }
    const left = line.startsWith("data:") && line.includes('"usage"') ? dropUsage(line, reader) : line;
    isHidden = left === undefined;
    return left === undefined ? "" : `${left}\n`;
  };
  return {
    add: (chunk) => encoder.encode(lines.add(chunk).map(show).join("")),
    end() {
      reader.end();
      return encoder.encode(lines.rest());
    },
  };
}

/** Returns the line without the field, or undefined for an event that has nothing but usage. */
function dropUsage(line: string, reader: UsageReader): string | undefined {
  const chunk = parse(line.slice("data:".length)) as Fields | undefined;
  if (chunk === undefined || !("usage" in chunk)) return line;
  reader.add(chunk);
  const { usage, ...rest } = chunk;
  if (usage !== null) return Array.isArray(chunk.choices) && chunk.choices.length === 0 ? undefined : line;
  // In a JSON string a quote follows a backslash. So this finds fields only.
  const fields = line.match(/,"usage":null|"usage":null,/g);
  return fields?.length === 1 ? line.replace(fields[0] as string, "") : `data: ${JSON.stringify(rest)}`;
}

/** Amazon's binary events carry an event of the model as base64 (docs.aws.amazon.com/bedrock, ResponseStream, 2026-11). */
function createAwsWatcher(reader: UsageReader): Watcher {
  const decoder = new TextDecoder("latin1");
  let rest = "";
  return {
    add(chunk) {
      const text = rest + decoder.decode(chunk, { stream: true });
      let end = 0;
      for (const { 0: field, 1: bytes = "", index } of text.matchAll(/"bytes":"([\w+/=]+)"/g)) {
        addJson(reader, Buffer.from(bytes, "base64").toString("utf8"));
        end = index + field.length;
      }
      rest = text.slice(end);
      return chunk;
    },
    end: () => void reader.end(),
  };
}

function createJsonWatcher(reader: UsageReader): Watcher {
  const decoder = new TextDecoder();
  let text = "";
  return {
    add(chunk) {
      text += decoder.decode(chunk, { stream: true });
      return chunk;
    },
    end() {
      addJson(reader, text);
      reader.end();
      return undefined;
    },
  };
}

/** `add` returns the lines that are complete now. */
function createLineReader(): { add(chunk: Uint8Array): string[]; rest(): string } {
  const decoder = new TextDecoder();
  let rest = "";
  return {
    add(chunk) {
      const lines = `${rest}${decoder.decode(chunk, { stream: true })}`.split("\n");
      rest = lines.pop() ?? "";
      return lines;
    },
    rest: () => rest,
  };
}

function addJson(reader: UsageReader, text: string): void {
  // An answer that is not JSON has no usage.
  if (text.includes("sage")) reader.add(parse(text));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Reads up to the first event that says something. A refusal may follow events that only announce the answer.
 *  Returns all chunks that were read. */
async function readFirstEvent(reader: BodyReader): Promise<{ chunks: Uint8Array[]; event: Fields }> {
  const chunks: Uint8Array[] = [];
  const lines = createLineReader();
  for (;;) {
    const { value } = await reader.read();
    if (value === undefined) return { chunks, event: Object(parse(readData(lines.rest()) ?? "")) };
    chunks.push(value);
    for (const line of lines.add(value)) {
      const data = readData(line);
      const event = data === undefined ? undefined : (Object(parse(data)) as Fields);
      if (event !== undefined && !announcements.includes(event.type as string)) return { chunks, event };
    }
  }
}

function readData(line: string): string | undefined {
  return line.startsWith("data:") ? line.slice("data:".length) : undefined;
}

// codex#4675, 2025-10: `response.failed` comes as the third event or later.
const announcements = ["ping", "response.created", "response.queued", "response.in_progress"];

/** Collects the usage from the events of a stream. */
interface UsageReader {
  add(event: unknown): void;
  /** Reports what was found, once. */
  end(): void;
}

function createUsageReader(observe: WatchOptions["observe"]): UsageReader {
  let usage: Fields = {};
  let hasEnded = false;
  return {
    add(event) {
      const found = findUsage(event);
      if (found === undefined) return;
      const { output_tokens = usage.output_tokens } = found;
      // The first input counts: at its end Anthropic also reports what its own tools read meanwhile. The output grows.
      usage = { ...found, ...usage, ...(output_tokens !== undefined && { output_tokens }) };
    },
    end() {
      if (!hasEnded) observe(usage);
      hasEnded = true;
    },
  };
}

/** Finds the usage. Anthropic has it on the answer, on the message of message_start and on message_delta; OpenAI on the
 *  answer or the last chunk, and on the response of an event; Gemini as `usageMetadata`. */
function findUsage(value: unknown): Fields | undefined {
  const { usage, message, response, usageMetadata } = Object(value) as Fields;
  const found: unknown = usage ?? Object(message).usage ?? Object(response).usage ?? usageMetadata;
  if (typeof found !== "object" || found === null) return undefined;
  return Object.fromEntries(Object.entries(found).filter(([, field]) => (field ?? null) !== null));
}
