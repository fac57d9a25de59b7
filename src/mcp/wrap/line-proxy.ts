/** The lines of a client and of its server, on their way through. All pass as they came, but for lists of tools, which get ours,
 *  results that are too large, which become pages, and calls of our tools, which never reach the server. */

import type { Session } from "../../session/index.ts";
import { applyEdits, elementsOf, messageOf } from "../../text/index.ts";
import { releaseLine } from "../lines/line-buffer.ts";
import { clientNameOf, type ParsedLine, parseLine, type RpcMessage } from "../lines/rpc-message.ts";
import { createBackground } from "./background.ts";
import { argsOf, createOwnCalls } from "./own-calls.ts";
import { createOwnTools } from "./own-tools.ts";
import { type Paging, pageResult, type ResultCall } from "./page-result.ts";
import { createTaskCalls, pageTask, type TaskCalls } from "./task-calls.ts";
import { createToldContext } from "./told-context.ts";

export interface LineProxy {
  fromClient(line: Buffer): ClientLine;
  /** What goes on to the client. A result that is larger than its fair share may have to wait for those of other calls: `hold` is called
   *  then, and lines that come later may pass it. */
  fromServer(line: Buffer, hold?: () => void): Promise<string | Buffer>;
  /** What our tool for tokens is called beside the server's own. */
  nextPageName(): string;
  /** When all that passed is with the session. */
  settled(): Promise<void>;
}

export interface ClientLine {
  /** What goes on to the server. */
  readonly forward: string | Buffer | undefined;
  /** Lines for the client; undefined for a call that was cancelled. */
  readonly answers: readonly Promise<string | undefined>[];
}

export interface LineProxyOptions extends Omit<Paging, "background" | "gave"> {
  clientIs(name: string): void;
  log(text: string): void;
}

export function createLineProxy(options: LineProxyOptions): LineProxy {
  const background = createBackground((error) => options.log(`a result is not kept: ${messageOf(error)}`));
  const ownTools = createOwnTools();
  const ownCalls = createOwnCalls({ session: options.session, tools: ownTools, background });
  const told = createToldContext({ ...options, background });
  const tasks = createTaskCalls();
  const asked = createAwaitedAnswers(options.session, tasks);

  const remember = (message: RpcMessage): void => {
    const name = clientNameOf(message);
    if (name !== undefined) options.clientIs(name);
    if (asked.add(message) !== "list" || message.params?.cursor !== undefined) return;
    ownTools.beginList();
    told.beginList();
  };
  const edit = async (text: string, message: RpcMessage, paging: Paging): Promise<string> => {
    const request = asked.take(message);
    const { result } = message;
    if (request === undefined || result === undefined) {
      endShare(request);
      return text;
    }
    if (request === "greeting") {
      await told.greeted(result.instructions);
      return text;
    }
    if (request === "list") {
      const list = ownTools.addTo(text, result);
      await told.listed((JSON.parse(list) as RpcMessage).result?.tools);
      return list;
    }
    if (!("task" in request)) {
      return tasks.began(result, request) ? text : pageResult(text, result, { paging, call: request });
    }
    return pageTask(text, result, { paging, call: request.task });
  };

  return {
    fromClient(line) {
      const parsed = parseLine(line);
      if (parsed === undefined) return { forward: line, answers: [] };
      const taken = parsed.messages.map(ownCalls.take);
      for (const [index, message] of parsed.messages.entries()) {
        if (taken[index] === undefined) remember(message);
      }
      const answers = taken.filter((answer) => answer !== undefined);
      return { forward: answers.length === 0 ? line : remaining(parsed, taken), answers };
    },
    async fromServer(line, hold = () => {}) {
      const parsed = asked.isEmpty() ? undefined : parseLine(line);
      if (parsed === undefined) return line;
      const asItCame = releaseLine(line) ? parsed.text : line;
      const patience = async (): Promise<void> => {
        hold();
        await options.patience?.();
      };
      const paging = { ...options, background, gave: ownTools.gave, patience };
      try {
        const text = await editMessages(parsed, (each, message) => edit(each, message, paging));
        return text === parsed.text ? asItCame : text;
      } catch (error) {
        options.log(`a result is passed on as it came: ${messageOf(error)}`);
        return asItCame;
      }
    },
    nextPageName: ownTools.nextPageName,
    settled: background.settled,
  };
}

/** What of the server's answers is looked at. `task`: how the call stands, with its result once there is one. */
type AwaitedAnswer = ResultCall | { readonly task: ResultCall } | "list" | "greeting";

interface AwaitedAnswers {
  isEmpty(): boolean;
  /** Gives what of the answer will be looked at. */
  add(request: RpcMessage): AwaitedAnswer | undefined;
  /** What the message answers, which then is awaited no more. */
  take(answer: RpcMessage): AwaitedAnswer | undefined;
}

/** What the server has not answered yet. */
function createAwaitedAnswers(session: Session, tasks: TaskCalls): AwaitedAnswers {
  const asked = new Map<string, AwaitedAnswer>();
  const forget = (id: string): void => {
    endShare(asked.get(id));
    asked.delete(id);
  };
  return {
    isEmpty: () => asked.size === 0,
    add(message) {
      const { id, cancels } = message;
      if (cancels !== undefined) forget(cancels);
      if (id === undefined) return undefined;
      const awaited = awaitedBy(message, { tasks, session });
      if (awaited === undefined) return undefined;
      forget(id);
      asked.set(id, awaited);
      return awaited;
    },
    take({ id, method }) {
      if (id === undefined || method !== undefined) return undefined;
      const awaited = asked.get(id);
      asked.delete(id);
      return awaited;
    },
  };
}

function awaitedBy(
  message: RpcMessage,
  { tasks, session }: { readonly tasks: TaskCalls; readonly session: Session },
): AwaitedAnswer | undefined {
  const tool = String(message.params?.name);
  switch (message.method) {
    // The second is that of revision 2026-07-28, which has no handshake.
    case "initialize":
    case "server/discover":
      return "greeting";
    case "tools/list":
      return "list";
    case "tools/call":
      return { tool, args: argsOf(message), share: session.beginCall(tool) };
    case "tasks/result":
      return tasks.find(message);
    case "tasks/get":
      return { task: tasks.find(message) };
    default:
      return undefined;
  }
}

/** No result will come. */
function endShare(awaited: AwaitedAnswer | undefined): void {
  if (typeof awaited === "object" && "share" in awaited) awaited.share?.end();
}

/** Of a line with several messages, those that are not for us. */
function remaining({ text, isBatch }: ParsedLine, taken: readonly unknown[]): string | undefined {
  if (!isBatch || !taken.includes(undefined)) return undefined;
  const theirs = elementsOf(text, 0).filter((_, index) => taken[index] === undefined);
  return `[${theirs.map(({ start, end }) => text.slice(start, end)).join(",")}]\n`;
}

async function editMessages(
  { text, messages, isBatch }: ParsedLine,
  edit: (text: string, message: RpcMessage) => Promise<string>,
): Promise<string> {
  if (!isBatch) return edit(text, messages[0]!);
  const ranges = elementsOf(text, 0);
  const edited: string[] = [];
  for (const [index, { start, end }] of ranges.entries()) {
    edited.push(await edit(text.slice(start, end), messages[index]!));
  }
  return applyEdits(
    text,
    ranges.map((range, index) => ({ ...range, text: edited[index]! })),
  );
}
