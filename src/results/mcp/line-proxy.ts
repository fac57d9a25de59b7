/** Passes lines between a client and its server unchanged, with three exceptions: lists of tools get our tools, large
 *  results become pages, and calls of our tools never reach the server. */

import { applyEdits, elementsOf, isPlainObject, memberOf, membersOf, messageOf } from "../../core/text/index.ts";
import type { Delivered, ToolDefinition } from "../session/index.ts";
import { countContext } from "./client-limits.ts";
import { errorField, type PagedCall, type Paging, pageResult, type ResultCall } from "./itemize-result.ts";
import { releaseLine } from "./line-stream.ts";
import { alwaysLoaded, nextPageTool, type PageTool, recallPageTool, settle, toCallResult } from "./page-tools.ts";
import {
  isModern,
  type ParsedLine,
  parseLine,
  type RpcMessage,
  type RpcObject,
  readClientName,
  renderAnswer,
  withoutMember,
} from "./rpc-message.ts";
import type { WrapIntake } from "./wrap-intake.ts";

export interface LineProxy {
  /** Returns lines for the server, and lines for the client. An answer is undefined for a cancelled call. */
  fromClient(line: Buffer): {
    readonly forward: string | Buffer | undefined;
    readonly answers: readonly Promise<string | undefined>[];
  };
  /** Returns what is sent to the client. A result that is larger than its fair share may wait for other calls. Then
   *  `hold` is called, and later lines may overtake it. */
  fromServer(line: Buffer, hold?: () => void): Promise<string | Buffer>;
  /** Returns the name of one of our tools as the model sees it. */
  ownName: Paging["ownName"];
  /** Resolves when the session has everything that has passed. */
  settled(): Promise<void>;
}

interface LineProxyOptions extends Omit<Paging, "background" | "gave" | "ownName"> {
  /** Returns the name of a tool as the model sees it. @default (tool) => tool */
  shownName?: ((tool: string) => string) | undefined;
  clientIs(name: string): void;
  log(text: string): void;
  /** Leaves out of results what the client already has. */
  readonly intake?: WrapIntake | undefined;
  /** Returns a result that the intake shortened, as the tool returned it. */
  readonly original?: ((id: string) => Promise<string | undefined>) | undefined;
  /** Returns the tool that a call is about, if another tool is called for it. */
  realCall?: ((tool: string, args: RpcObject) => Pick<ResultCall, "tool" | "args">) | undefined;
}

export function createLineProxy(options: LineProxyOptions): LineProxy {
  const background = createBackground((error) => options.log(`a result could not be stored: ${messageOf(error)}`));
  const ownTools = createOwnTools(options.shownName);
  const ownCalls = createOwnCalls({ ...options, tools: ownTools, background });
  const context = createContextCount({ ...options, background });
  const tasks = createTaskCalls(options);
  const asked = createAwaitedAnswers({ ...options, tasks });

  const remember = (message: RpcMessage): void => {
    const name = readClientName(message);
    if (name !== undefined) options.clientIs(name);
    if (asked.add(message) !== "list" || message.params?.cursor !== undefined) return;
    ownTools.beginList();
    context.beginList();
  };
  const edit = async (text: string, message: RpcMessage, paging: Paging): Promise<string> => {
    const request = asked.take(message);
    const { result } = message;
    if (request === undefined || result === undefined) {
      endCall(request, options);
      return text;
    }
    if (request === "greeting") {
      await context.greeted(result.instructions);
      return text;
    }
    if (request === "list") {
      const list = ownTools.addTo(text, result);
      await context.listed((JSON.parse(list) as { readonly result?: RpcObject }).result?.tools);
      return list;
    }
    if (!("task" in request)) {
      if (tasks.began(result, request)) return text;
      const admitted = await options.intake?.admit(text, result, request);
      if (admitted === undefined) return pageResult(text, result, { paging, call: request });
      options.recorder?.add({ saved: admitted.leftOut });
      const sent = await pageResult(admitted.message, admitted.result, { paging, call: request });
      await admitted.sent(sent);
      return sent;
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
      const paging = { ...options, background, ...ownTools, patience };
      try {
        const text = await editMessages(parsed, (each, message) => edit(each, message, paging));
        return text === parsed.text ? asItCame : text;
      } catch (error) {
        options.log(`a result was passed on unchanged: ${messageOf(error)}`);
        return asItCame;
      }
    },
    ownName: ownTools.ownName,
    settled: background.settled,
  };
}

/** Which answers of the server are inspected. `task` is the state of a call, with its result once it exists. */
type AwaitedAnswer = ResultCall | { readonly task: ResultCall } | "list" | "greeting";

interface AwaitOptions extends Pick<LineProxyOptions, "session" | "realCall" | "intake"> {
  readonly tasks: ReturnType<typeof createTaskCalls>;
}

/** The requests that the server has not answered yet. */
function createAwaitedAnswers(options: AwaitOptions) {
  const asked = new Map<string, AwaitedAnswer>();
  const forget = (id: string): void => {
    endCall(asked.get(id), options);
    asked.delete(id);
  };
  return {
    isEmpty: () => asked.size === 0,
    /** Returns what will be inspected in the answer. */
    add(message: RpcMessage): AwaitedAnswer | undefined {
      const { id, cancels } = message;
      if (cancels !== undefined) forget(cancels);
      if (id === undefined) return undefined;
      const awaited = awaitedBy(message, options);
      if (awaited === undefined) return undefined;
      forget(id);
      asked.set(id, awaited);
      return awaited;
    },
    /** Returns the request that the message answers, and removes it. */
    take({ id, method }: RpcMessage): AwaitedAnswer | undefined {
      if (id === undefined || method !== undefined) return undefined;
      const awaited = asked.get(id);
      asked.delete(id);
      return awaited;
    },
  };
}

function awaitedBy(message: RpcMessage, { tasks, session, realCall, intake }: AwaitOptions): AwaitedAnswer | undefined {
  switch (message.method) {
    // The second is for revision 2026-07-28, which has no handshake.
    case "initialize":
    case "server/discover":
      return "greeting";
    case "tools/list":
      return "list";
    case "tools/call": {
      const named = { tool: String(message.params?.name), args: readArgs(message) };
      const call = realCall?.(named.tool, named.args) ?? named;
      const made = { ...call, share: session.beginCall(call.tool) };
      intake?.begin(made);
      return made;
    }
    case "tasks/result": {
      const call = tasks.find(message);
      intake?.begin(call);
      return call;
    }
    case "tasks/get":
      return { task: tasks.find(message) };
    default:
      return undefined;
  }
}

/** No result will come as the answer. */
function endCall(awaited: AwaitedAnswer | undefined, { intake }: Pick<LineProxyOptions, "intake">): void {
  if (typeof awaited !== "object" || "task" in awaited) return;
  awaited.share?.end();
  intake?.drop(awaited);
}

/** The messages of a line that are not for us. */
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

/** Calls that run as tasks. The tool's result comes later, in the answer to another request: tasks/result in revision
 *  2025-11-25, tasks/get in the extension of revision 2026-07-28, whose answer has the result as a member. */
function createTaskCalls(options: Pick<LineProxyOptions, "intake">) {
  const calls = new Map<unknown, ResultCall>();
  return {
    /** Remembers the call if the answer says that it has become a task. */
    began(result: RpcObject, call: ResultCall): boolean {
      const task = result.resultType === "task" ? result : result.task;
      const taskId = isPlainObject(task) && !("content" in result) ? task.taskId : undefined;
      if (taskId === undefined) return false;
      endCall(call, options);
      calls.set(taskId, { tool: call.tool, args: call.args });
      // Only the newest calls are remembered.
      for (const oldest of calls.keys()) if (calls.size > 1_000) calls.delete(oldest);
      return true;
    },
    /** Returns the call whose result is asked for. An unknown task, as after a restart, was a call too. */
    find({ params }: RpcMessage): ResultCall {
      const taskId = params?.taskId;
      return calls.get(taskId) ?? { tool: "task", args: { taskId } };
    },
  };
}

/** Returns the message about a task's state, with its result paged once it exists. */
async function pageTask(message: string, task: RpcObject, options: PagedCall): Promise<string> {
  if (!isPlainObject(task.result)) return message;
  const range = memberOf(message, 0, "result")!.value;
  const text = await pageResult(message.slice(range.start, range.end), task.result, options);
  return applyEdits(message, [{ ...range, text }]);
}

/** Counts what the wrapped server and our tools put into the client's context before any call. */
function createContextCount(options: Pick<Paging, "session" | "counter" | "background">) {
  const { session, counter, background } = options;
  let instructions = 0;
  let tools = 0;
  const record = (): Promise<void> => background.add(() => session.record("system", instructions + tools));
  return {
    /** The server's answer to the handshake, or to a question about what it is. */
    greeted(text: unknown): Promise<void> {
      instructions = typeof text === "string" ? counter.count(text) : 0;
      return record();
    },
    /** A listing begins. An earlier listing no longer counts. */
    beginList(): void {
      tools = 0;
    },
    /** A page of the list, including our tools. */
    listed(page: unknown): Promise<void> {
      tools += countContext(counter, { tools: Array.isArray(page) ? page : [] });
      return record();
    },
  };
}

/** Work that nobody waits for, done one after the other. */
export interface Background {
  /** Resolves at once, unless too much is waiting. */
  add(work: () => Promise<unknown>): Promise<void>;
  /** Resolves when everything that was added is done. */
  settled(): Promise<void>;
}

export function createBackground(onFailure: (error: unknown) => void): Background {
  let last: Promise<void> = Promise.resolve();
  let waiting = 0;
  return {
    async add(work) {
      waiting += 1;
      last = last
        .then(work)
        .then(() => {}, onFailure)
        .finally(() => {
          waiting -= 1;
        });
      if (waiting > 100) await last;
    },
    settled: () => last,
  };
}

/** The tools that a wrapped server gets in addition, under names that it does not have. */
function createOwnTools(shownName = (tool: string): string => tool) {
  const tools = [nextPageTool, recallPageTool] as const;
  let theirs = new Set<string>();
  const given = new Set<string>();
  const rename = ({ name }: Pick<ToolDefinition, "name">): string => (theirs.has(name) ? `plimsoll_${name}` : name);
  return {
    /** Returns which of our tools a call means, if any. */
    find(name: string, args: RpcObject): PageTool<Delivered> | undefined {
      // A model that has a token may use the tool's usual name, even if that is a name of the server.
      if (name === nextPageTool.name && given.has(String(args.token))) return nextPageTool;
      return tools.find((tool) => rename(tool) === name);
    },
    ownName: (name: string): string => shownName(rename({ name })),
    /** A page was sent, so its tokens are ours. */
    gave({ envelope }: Delivered): void {
      if (envelope.status === "error") return;
      const { continuation_token, left_out } = envelope.data;
      for (const token of [continuation_token, left_out?.token]) if (token !== undefined) given.add(token);
      // Only the newest tokens are remembered.
      for (const token of given) if (given.size > 1_000) given.delete(token);
    },
    /** A listing begins. The names of an earlier one no longer count. */
    beginList(): void {
      theirs = new Set();
    },
    /** Returns the list with our tools at the end, if this is its last page. */
    addTo(message: string, result: RpcObject): string {
      if (!Array.isArray(result.tools)) return message;
      for (const tool of result.tools) if (isPlainObject(tool)) theirs.add(String(tool.name));
      const isLast = result.nextCursor === undefined || result.nextCursor === null;
      const added = tools.map((tool) => {
        const { description, inputSchema } = tool;
        const annotations = { readOnlyHint: true };
        return JSON.stringify({ name: rename(tool), description, inputSchema, annotations, _meta: alwaysLoaded });
      });
      return editList(message, isLast ? added : []);
    },
  };
}

function editList(message: string, added: readonly string[]): string {
  const result = memberOf(message, 0, "result");
  const list = result && memberOf(message, result.value.start, "tools");
  if (list === undefined) return message;
  const elements = elementsOf(message, list.value.start);
  // A page does not match the output schema that a tool promises, and clients refuse results that break the promise.
  const schemas = elements.flatMap(({ start }) => withoutMember(membersOf(message, start), "outputSchema"));
  const end = elements.at(-1)?.end ?? list.value.start + 1;
  const text = added.map((tool, index) => (index + elements.length > 0 ? `,${tool}` : tool)).join("");
  return applyEdits(message, [...schemas, { start: end, end, text }]);
}

/** Calls of our tools, which never reach the wrapped server. */
function createOwnCalls(
  options: Pick<LineProxyOptions, "session" | "format" | "original" | "recorder"> & {
    readonly tools: ReturnType<typeof createOwnTools>;
    readonly background: Background;
  },
) {
  const { session, format, tools, background, original, recorder } = options;
  const underWay = new Set<string>();
  const answer = async (
    tool: PageTool<Delivered>,
    message: RpcMessage & { readonly id: string },
  ): Promise<string | undefined> => {
    const { id } = message;
    underWay.add(id);
    const args = readArgs(message);
    // Everything before the call must be stored, so that the call can recall it.
    await background.settled();
    const found = await settle(async () => {
      const delivered = await tool.run(session, args, { original });
      tools.gave(delivered);
      recorder?.add({ shown: delivered.tokens, saved: -delivered.tokens });
      return delivered;
    }, format);
    const { data } = found.envelope as { readonly data?: unknown };
    // It may be a page of a result that was an error.
    const isError = isPlainObject(data) && data[errorField] === true;
    const result = { ...toCallResult(found, format), ...(isError ? { isError: true } : {}) };
    const complete = isModern(message) ? { ...result, resultType: "complete" } : result;
    return underWay.delete(id) ? renderAnswer(id, { result: complete }) : undefined;
  };
  return {
    /** Returns the line that answers the message, or nothing if the client cancelled the call. Undefined if it is not
     *  for us. */
    take(message: RpcMessage): Promise<string | undefined> | undefined {
      const { id, cancels, method, params } = message;
      if (cancels !== undefined) return underWay.delete(cancels) ? Promise.resolve(undefined) : undefined;
      if (id === undefined || method !== "tools/call") return undefined;
      const tool = tools.find(String(params?.name), readArgs(message));
      return tool === undefined ? undefined : answer(tool, { ...message, id });
    },
  };
}

function readArgs({ params }: RpcMessage): RpcObject {
  return isPlainObject(params?.arguments) ? params.arguments : {};
}
