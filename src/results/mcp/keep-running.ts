import { setTimeout as sleep } from "node:timers/promises";
import { ContextError } from "../../core/errors.ts";
import { messageOf } from "../../core/text/index.ts";
import { parseRpcMessages, readEnds, renderAnswer } from "./rpc-message.ts";
import type { ServerRecorder } from "./running-servers.ts";
import type { ServerConnection } from "./server-connection.ts";

/** Starts a server again if it crashes, at most three times in ten minutes. The new process gets the client's handshake.
 *  Calls that the server leaves open get an error with the reason. A server that ends before its first answer, or because
 *  the client is gone, is not started again. */
export async function keepRunning(
  connect: () => Promise<ServerConnection>,
  {
    name,
    log,
    recorder,
  }: {
    readonly name: string;
    log(text: string): void;
    readonly recorder?: Pick<ServerRecorder, "failed" | "restarted"> | undefined;
  },
): Promise<ServerConnection> {
  const requests = createOpenRequests();
  const handshake = createHandshake();
  let current = await connect();
  let [isEnding, hasAnswered] = [false, false];
  let restarting: Promise<void> = Promise.resolve();
  let finish: (code: number) => void = () => {};
  const restart = createRestarts(async () => {
    current = await connect();
    await handshake.repeat(current);
    recorder?.restarted();
    if (isEnding) current.end();
  });

  /** Yields the lines of a process, the last one with a line break. Returns why it was ended, if it was ended here. */
  async function* readOne(process: ServerConnection): AsyncGenerator<Buffer, string | undefined> {
    let isWhole = true;
    try {
      for await (const line of process.lines) {
        isWhole = line.at(-1) === 0x0a;
        if (handshake.isRepeated(line)) continue;
        hasAnswered = requests.answered(line) || hasAnswered;
        yield line;
      }
    } catch (error) {
      if (!(error instanceof ContextError)) throw error;
      return `was ended: ${error.message}`;
    } finally {
      if (!isWhole && requests.isOpen()) yield Buffer.from("\n");
    }
    return undefined;
  }
  /** Returns the answers to the open calls of a server that is gone. */
  const replace = async (problem: string | undefined, code: number): Promise<Buffer[]> => {
    const mayStart = problem === undefined;
    const lost = requests.take();
    if (isEnding) return [];
    const started = mayStart && hasAnswered ? restart() : undefined;
    restarting = started?.then(() => {}) ?? restarting;
    const reason = problem ?? `has ended with exit code ${code}`;
    const message = `The server "${name}" ${reason}.${(await started) ?? ""}`;
    if (lost.length > 0 || code !== 0) recorder?.failed(message);
    if (lost.length > 0 || started !== undefined || !mayStart) log(message);
    return lost.map((id) => Buffer.from(renderAnswer(id, { error: { code: -32_000, message } })));
  };
  async function* read(): AsyncGenerator<Buffer> {
    for (let process: ServerConnection | undefined; process !== current; ) {
      process = current;
      const problem = yield* readOne(process);
      const code = await process.ended;
      yield* await replace(problem, code);
      if (current === process) finish(code);
    }
  }
  return {
    lines: read(),
    ended: new Promise((resolve) => {
      finish = resolve;
    }),
    async send(line) {
      requests.asked(line);
      handshake.sent(line);
      await restarting;
      await current.send(line);
    },
    end() {
      isEnding = true;
      current.end();
    },
    kill(signal) {
      isEnding = true;
      current.kill(signal);
    },
  };
}

/** Returns a function that starts a server again, and says what came of it. */
function createRestarts(start: () => Promise<void>): () => Promise<string> {
  const times: number[] = [];
  return async () => {
    if (times.filter((time) => Date.now() - time < 600_000).length >= 3) return "";
    // A server that crashes at once gets a moment.
    await sleep(times.length * 500);
    times.push(Date.now());
    try {
      await start();
      return " It was started again, without what it had in memory. Make the call again if that is safe.";
    } catch (error) {
      return ` It could not be started again: ${messageOf(error)}.`;
    }
  };
}

/** What the client sent before its first call. */
function createHandshake() {
  const lines: (string | Buffer)[] = [];
  let id: string | undefined;
  let isAwaited = false;
  return {
    sent(line: string | Buffer): void {
      // Nothing in a handshake is that long.
      if (lines.length === 2 || line.length > 65_536) return;
      const [message] = parseRpcMessages(Buffer.from(line));
      if (message?.method === "initialize") id = message.id;
      if (message?.method === "initialize" || message?.method === "notifications/initialized") lines.push(line);
    },
    async repeat(server: ServerConnection): Promise<void> {
      isAwaited = id !== undefined;
      for (const line of lines) await server.send(line);
    },
    /** Whether the line answers the repeated handshake. The client had an answer from the first process. */
    isRepeated(line: Buffer): boolean {
      if (!isAwaited || line.length > 1_048_576) return false;
      const isAnswer = parseRpcMessages(line).some((each) => each.id === id && each.method === undefined);
      if (isAnswer) isAwaited = false;
      return isAnswer;
    },
  };
}

/** The client's requests that the server has not answered. */
function createOpenRequests() {
  const open = new Set<string>();
  return {
    asked(line: string | Buffer): void {
      for (const message of parseRpcMessages(typeof line === "string" ? Buffer.from(line) : line)) {
        if (message.id !== undefined && message.method !== undefined) open.add(message.id);
        if (message.cancels !== undefined) open.delete(message.cancels);
      }
    },
    /** Returns whether the line answers one of them. */
    answered(line: Buffer): boolean {
      if (open.size === 0) return false;
      // A longer line is a result with its id at an end. Parsing it only for the id would take its memory again.
      if (line.length > 1_048_576) {
        const { isRequest, id } = readEnds({
          head: line.toString("utf8", 0, 4_096),
          tail: String(line.subarray(-4_096)),
        });
        return !isRequest && id !== undefined && open.delete(id);
      }
      const answers = parseRpcMessages(line).filter(({ method }) => method === undefined);
      return answers.filter(({ id }) => id !== undefined && open.delete(id)).length > 0;
    },
    isOpen: () => open.size > 0,
    take(): readonly string[] {
      const ids = [...open];
      open.clear();
      return ids;
    },
  };
}
