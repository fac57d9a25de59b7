/** Hides the tools of a server behind four fixed ones, so that their definitions cost next to nothing: one finds tools,
 *  one describes a tool, two call it. The list never changes, so the provider's prompt cache keeps matching. */
import { didYouMean, isPlainObject, memberOf, messageOf, shorten } from "../../core/text/index.ts";
import { createLineChannel } from "./line-stream.ts";
import { isModern, parseRpcMessages, type RpcMessage, type RpcObject, renderAnswer, replaceAt } from "./rpc-message.ts";
import type { ServerConnection } from "./server-connection.ts";

/** Returns a connection whose list has only the fixed tools. `about` says whose tools they are, for the model. */
export function hideTools(inner: ServerConnection, about: string): ServerConnection {
  const toClient = createLineChannel();
  const catalog = createCatalog(inner.send);
  const pump = async (): Promise<void> => {
    for await (const line of inner.lines) if (!catalog.takes(line)) await toClient.push(line);
    toClient.end();
  };
  const underWay = new Set<string>();
  const answer = async (request: LazyRequest): Promise<void> => {
    underWay.add(request.id);
    const answered = catalog.tools().then((tools) => answerCall(request, tools));
    const result = await answered.catch((error: unknown) => sayError(messageOf(error)));
    const isCancelled = !underWay.delete(request.id);
    if (isCancelled) return;
    if (result === undefined) return inner.send(asRealCall(request));
    const complete = isModern(request) ? { ...result, resultType: "complete" } : result;
    await toClient.push(renderAnswer(request.id, { result: complete }));
  };
  const take = async (message: RpcMessage): Promise<void> => {
    const { id, method, params } = message;
    if (id === undefined) return underWay.delete(message.cancels ?? "") ? undefined : inner.send(message.text());
    if (method === "tools/list") {
      const complete = isModern(message) ? { resultType: "complete" } : {};
      return toClient.push(renderAnswer(id, { result: { tools: fixedTools(about), ...complete } }));
    }
    if (method !== "tools/call") return inner.send(message.text());
    const args = isPlainObject(params?.arguments) ? params.arguments : {};
    // Finding a tool may wait for a server, and later messages do not wait for that.
    void answer({ ...message, id, tool: String(params?.name), args });
  };
  void pump();
  return {
    ...inner,
    lines: toClient.lines,
    async send(line) {
      for (const received of parseRpcMessages(Buffer.from(line))) await take(received);
    },
  };
}

/** Returns the tool that a call is really about, and its arguments. */
export function realCall(tool: string, args: RpcObject): { readonly tool: string; readonly args: RpcObject } {
  if (!isCaller(tool) || typeof args.name !== "string") return { tool, args };
  return { tool: args.name, args: isPlainObject(args.arguments) ? args.arguments : {} };
}

function isCaller(tool: string): boolean {
  return tool === "call_tool" || tool === "call_read_tool";
}

function fixedTools(about: string): object[] {
  const text = (description?: string): object => ({ type: "string", ...(description && { description }) });
  const schemaOf = (properties: object, required: readonly string[]): object => ({
    type: "object",
    properties,
    required,
  });
  const call = schemaOf({ name: text(), arguments: { type: "object" } }, ["name"]);
  const [readOnly, destructive] = [{ readOnlyHint: true }, { readOnlyHint: false, destructiveHint: true }];
  return [
    {
      name: "find_tool",
      description: `Find tools of ${about} by words. Returns up to ${maxFound}, best first, each with a summary.`,
      inputSchema: schemaOf({ query: text("What the tool should do; empty for all names.") }, ["query"]),
      annotations: readOnly,
    },
    {
      name: "describe_tool",
      description: "Show a tool's description, parameters, and whether it only reads. Do this before you call it.",
      inputSchema: schemaOf({ name: text("As given by find_tool.") }, ["name"]),
      annotations: readOnly,
    },
    {
      name: "call_read_tool",
      description: "Call a tool that only reads.",
      inputSchema: call,
      annotations: readOnly,
    },
    {
      name: "call_tool",
      description: "Call any tool. It may change or delete things.",
      inputSchema: call,
      annotations: destructive,
    },
  ];
}

interface LazyRequest extends RpcMessage {
  readonly id: string;
  readonly tool: string;
  readonly args: RpcObject;
}

interface CallResult {
  readonly content: readonly { readonly type: "text"; readonly text: string }[];
  readonly isError?: true;
}

function say(text: string): CallResult {
  return { content: [{ type: "text", text }] };
}

function sayError(text: string): CallResult {
  return { ...say(text), isError: true };
}

/** Returns our answer, or undefined if the call is for the server. */
async function answerCall({ tool, args }: LazyRequest, tools: readonly HiddenTool[]): Promise<CallResult | undefined> {
  if (tool === "find_tool") return say(listFound(tools, String(args.query ?? "")));
  if (tool !== "describe_tool" && !isCaller(tool)) {
    return sayError(`There is no tool ${tool} here. Find tools with find_tool and call them with call_tool.`);
  }
  const found = tools.find(({ name }) => name === args.name);
  if (found === undefined) return sayError(explainUnknown(tools, String(args.name)));
  if (tool === "describe_tool") return say(describeTool(found));
  if (tool === "call_read_tool" && !isReadOnly(found)) {
    return sayError(`${found.name} is not marked as read-only. Call it with call_tool.`);
  }
  let given = args.arguments ?? {};
  if (typeof given === "string") {
    try {
      // Some models write the arguments as a text.
      given = JSON.parse(given);
    } catch {}
  }
  const problem = await checkArguments(found, given);
  return problem === undefined ? undefined : sayError(problem);
}

/** Returns the line of the same request for the tool itself. The arguments keep their bytes. */
function asRealCall({ args, ...request }: LazyRequest): string {
  const text = request.text();
  const params = memberOf(text, 0, "params")!.value;
  const outer = memberOf(text, params.start, "arguments")!.value;
  const inner = memberOf(text, outer.start, "arguments")?.value;
  const own = inner === undefined ? "{}" : text.slice(inner.start, inner.end);
  const named = replaceAt(text, ["params", "name"], JSON.stringify(args.name));
  return replaceAt(named, ["params", "arguments"], typeof args.arguments === "string" ? args.arguments : own);
}

/** A tool as its server defines it. */
interface HiddenTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: RpcObject;
  readonly annotations: RpcObject;
  readonly words: ReadonlyMap<string, number>;
  /** The number of words. */
  readonly length: number;
}

const listChanged = "notifications/tools/list_changed";

/** Reads the server's list when it is first needed, and again after it has changed. */
function createCatalog(send: ServerConnection["send"]) {
  const asked = new Map<string, (answer: RpcMessage) => void>();
  let lastId = 0;
  let known: Promise<readonly HiddenTool[]> | undefined;
  const ask = async (cursor: unknown): Promise<RpcMessage> => {
    lastId += 1;
    const id = `plimsoll-tools:${lastId}`;
    const answer = new Promise<RpcMessage>((resolve) => asked.set(JSON.stringify(id), resolve));
    const params = cursor === undefined ? {} : { cursor };
    await send(`${JSON.stringify({ jsonrpc: "2.0", id, method: "tools/list", params })}\n`);
    return answer;
  };
  const read = async (): Promise<readonly HiddenTool[]> => {
    const tools: HiddenTool[] = [];
    let cursor: unknown;
    let pages = 0;
    // A server's list may never end.
    do {
      const { result } = await ask(cursor);
      const found: unknown[] = Array.isArray(result?.tools) ? result.tools : [];
      for (const tool of found.filter(isPlainObject)) tools.push(readTool(tool));
      cursor = result?.nextCursor ?? undefined;
      pages += 1;
    } while (cursor !== undefined && pages < 1_000);
    if (tools.length === 0) known = undefined;
    return tools;
  };
  return {
    tools(): Promise<readonly HiddenTool[]> {
      known ??= read();
      return known;
    },
    /** Whether a line of the server is only for the catalog. */
    takes(line: Buffer): boolean {
      // Changes of the list are small messages.
      const isChange =
        line.length < 1_000 &&
        line.includes(listChanged) &&
        parseRpcMessages(line).every(({ method }) => method === listChanged);
      if (isChange) known = undefined;
      if (isChange || asked.size === 0) return isChange;
      const own = parseRpcMessages(line).find(({ id, method }) => method === undefined && asked.has(id ?? ""));
      if (own === undefined) return false;
      const { id = "" } = own;
      asked.get(id)?.(own);
      return asked.delete(id);
    },
  };
}

function readTool(tool: RpcObject): HiddenTool {
  const { name, description = "", inputSchema, annotations } = tool;
  const words = new Map<string, number>();
  const add = (text: string, weight: number): void => {
    for (const word of splitWords(text)) words.set(word, (words.get(word) ?? 0) + weight);
  };
  // A word of the name counts as much as several of the description.
  add(String(name), 4);
  add(String(description), 1);
  return {
    name: String(name),
    description: String(description),
    inputSchema: isPlainObject(inputSchema) ? inputSchema : { type: "object" },
    annotations: isPlainObject(annotations) ? annotations : {},
    words,
    length: [...words.values()].reduce((sum, count) => sum + count, 0),
  };
}

/** Lower-case words without a plural s: `takeScreenshots` has `take` and `screenshot`. */
function splitWords(text: string): string[] {
  const parts =
    text
      .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  return parts.map((word) => (word.length > 3 ? word.replace(/(?<!s)s$/, "") : word));
}

const maxFound = 8;

/** Ranks tools by the query's words in their names and descriptions (BM25). Equal ones are ordered by name. */
function rank(tools: readonly HiddenTool[], query: string): HiddenTool[] {
  // The usual parameters of BM25.
  const [saturation, lengthWeight] = [1.2, 0.75];
  const average = tools.reduce((sum, { length }) => sum + length, 0) / tools.length;
  const words = splitWords(query).filter((word) => word.length > 1);
  const terms = [...new Set(words)].map((word) => {
    const having = tools.filter(({ words }) => words.has(word)).length;
    return { word, rarity: Math.log(1 + (tools.length - having + 0.5) / (having + 0.5)) };
  });
  const scoreOf = ({ words, length }: HiddenTool): number =>
    terms.reduce((sum, { word, rarity }) => {
      const count = words.get(word) ?? 0;
      const norm = saturation * (1 - lengthWeight + (lengthWeight * length) / average);
      return sum + (rarity * count * (saturation + 1)) / (count + norm);
    }, 0);
  return tools
    .map((tool) => ({ tool, score: scoreOf(tool) }))
    .filter(({ score }) => score > 0)
    .sort((left, right) => right.score - left.score || (left.tool.name < right.tool.name ? -1 : 1))
    .map(({ tool }) => tool);
}

function listFound(tools: readonly HiddenTool[], query: string): string {
  if (tools.length === 0) return "No server offers a tool yet. Try again later.";
  const names = tools.map(({ name }) => name).join(", ");
  if (splitWords(query).length === 0) return `${tools.length} tools: ${names}`;
  const found = rank(tools, query).slice(0, maxFound);
  if (found.length === 0) return `No tool has a word of "${shorten(query, 100)}". All ${tools.length} tools: ${names}`;
  const lines = found.map((tool) => {
    const [summary = ""] = tool.description.trim().split(/(?<=[.!?])\s|\n/);
    return `${tool.name} [${describeKind(tool)}]: ${shorten(summary, 120)}`;
  });
  return lines.join("\n");
}

function explainUnknown(tools: readonly HiddenTool[], name: string): string {
  const hint = didYouMean(
    name,
    tools.map((tool) => tool.name),
  );
  const similar = rank(tools, name).slice(0, 3);
  const others = similar.length === 0 ? "" : ` Similar: ${similar.map((tool) => tool.name).join(", ")}.`;
  return `There is no tool "${shorten(name, 100)}". ${hint ?? `Search with find_tool.${others}`}`;
}

function isReadOnly({ annotations }: HiddenTool): boolean {
  return annotations.readOnlyHint === true;
}

/** Without annotations, a tool may do anything. */
function describeKind(tool: HiddenTool): string {
  if (isReadOnly(tool)) return "read-only";
  return tool.annotations.destructiveHint === false ? "makes changes" : "may be destructive";
}

function describeTool(tool: HiddenTool): string {
  const { name, description, inputSchema, annotations } = tool;
  const caller = isReadOnly(tool) ? "call_read_tool" : "call_tool";
  const { title, ...hints } = annotations;
  return [
    `${name} [${describeKind(tool)}], to be called with ${caller}`,
    ...(Object.keys(hints).length === 0 ? [] : [`Annotations: ${JSON.stringify(hints)}`]),
    ...(description === "" ? [] : [description.trim()]),
    `Arguments: ${renderSchema(inputSchema)}`,
  ].join("\n");
}

/** Returns what is wrong with the arguments, and what the tool takes. */
async function checkArguments({ name, inputSchema }: HiddenTool, args: unknown): Promise<string | undefined> {
  const { CfWorkerJsonSchemaValidator } = await import("@modelcontextprotocol/server/validators/cf-worker");
  let problem: string | undefined;
  try {
    const checked = new CfWorkerJsonSchemaValidator().getValidator(inputSchema)(args);
    problem = checked.valid ? undefined : checked.errorMessage;
  } catch {
    // The server's schema is not valid. The server itself checks the arguments.
  }
  if (problem === undefined) return undefined;
  const reason = shorten(problem.replace(/\.$/, ""), 600);
  return `The arguments of ${name} are not valid: ${reason}. It takes: ${shorten(renderSchema(inputSchema), 2_000)}`;
}

/** The dialect is of no use to a model. */
function renderSchema({ $schema, ...schema }: RpcObject): string {
  return JSON.stringify(schema);
}
