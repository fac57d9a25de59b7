/** A module that runs inside Claude Code: the build copies this file into the plugin's folder. It has neither Node nor
 *  imports. The hook after each tool shortens most results. This module does what the hook cannot: it sees the texts of
 *  results before they enter the conversation. If something fails, the text stays as it is. */

/** The parts of the client's interface (2.1.325, early access) that are used here. */
interface Client {
  readonly mcp: {
    call(server: string, tool: string, input: object): Promise<{ content: { text?: string }[]; isError: boolean }>;
  };
  readonly session: {
    id(): Promise<string>;
    messages(options: object): Promise<readonly { content: readonly Block[] }[] | { deny: string }>;
  };
  readonly clock: { sleep(ms: number, options?: { signal: AbortSignal }): Promise<void> };
}

interface Block {
  readonly type: string;
  readonly id?: string;
  readonly input?: unknown;
  readonly tool_use_id?: string;
  readonly is_error?: boolean;
  readonly text?: string;
  readonly signature?: string;
  readonly data?: string;
  readonly content?: string | readonly Block[];
  readonly cache_control?: object;
}

interface Row {
  readonly message: { readonly content: readonly Block[] };
  readonly origin: { readonly tool?: string };
  readonly agentId?: string;
}

/** A request of the client, or of a module. */
interface Request {
  readonly url: string;
  readonly init: { readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> };
}

type Next<Event> = ((event: Event) => Promise<unknown>) & { readonly origin?: { readonly plugin?: string } };
type Hook<Event> = (client: Client, event: Event, next: Next<Event>) => Promise<unknown>;
type Text = readonly (string | RegExp | { readonly text: string | RegExp })[];

interface On {
  (event: "session.start", hook: Hook<object>): void;
  (
    event: "session.append",
    pattern: {
      readonly door: "tool-result";
      readonly origin?: { readonly tool: string };
      readonly message: { readonly content: { readonly is_error?: true; readonly content: Text } };
    },
    hook: Hook<Row>,
  ): void;
  (event: "http.fetch", hook: Hook<Request>): void;
}

interface Answer {
  readonly text?: string;
  readonly bases?: readonly string[];
  /** The messages of a request; a number is the index of one that stays. */
  readonly messages?: readonly (Message | number)[];
}

/** The client calls this once, when it loads the plugin. It matches rows against the patterns itself, so rows that match
 *  none cost nothing: calling this module takes longer than our process needs for a result. The client allows its
 *  interface (`$`) to be passed only to top-level functions, so the state is at the top level, too. */
export function register(on: On): void {
  on("session.start", async ($, event, next) => {
    void introduce($);
    return next(event);
  });
  const door = "tool-result";
  on("session.append", { door, message: { content: { is_error: true, content: longText } } }, shorten);
  for (const tool of otherTools)
    on("session.append", { door, origin: { tool }, message: { content: { content: longText } } }, shortenOther);
  // The note that the hook leaves in a result of Read, with the line number that the client adds. It is a constant
  // because the client compares texts at once, but takes 2 ms for a regular expression.
  const hookNote = "1\t[plimsoll shortens this result. To see it, make the same call again.]";
  on(
    "session.append",
    {
      door,
      origin: { tool: "Read" },
      message: { content: { content: textWith(hookNote) } },
    },
    complete,
  );
  // Install leaves this line out without --trim and --images.
  on("http.fetch", changeRequest);
}

/** Install writes its options into this line. With no number of images, all are sent. */
const chosen: Readonly<{ trims: boolean; images: number }> = { trims: true, images: 0 };

/** Shorter results are never edited. */
const longText = textWith(/^[\s\S]{600}/);
/** Tools with long answers that the hook after each tool cannot change (2.1.325). Each has a pattern of its own: one pattern
 *  with a regular expression for the name would cost every result of every tool 3 ms. */
const otherTools = [
  "WebSearch",
  "TaskOutput",
  "BashOutput",
  "ReadMcpResourceTool",
  "ListMcpResourcesTool",
  "LSP",
  "PowerShell",
  "Skill",
  "Monitor",
];

/** Matches a result that is a text, and one that has blocks. */
function textWith(text: string | RegExp): Text {
  return [text, { text }];
}

/** Tells our process that this module can complete results of Read. The process may still be starting, so it tries again. */
async function introduce($: Client): Promise<void> {
  for (let attempt = 0; attempt < 40; attempt++) {
    try {
      const session_id = await $.session.id();
      await $.mcp.call(server, "recall", { module_request: "module_ready", session_id });
      return;
    } catch {
      await $.clock.sleep(250);
    }
  }
}

/** Skips failures, which have a pattern of their own. */
async function shortenOther($: Client, row: Row, next: Next<Row>): Promise<unknown> {
  return row.message.content.some(({ is_error }) => is_error) ? next(row) : shorten($, row, next);
}

/** Shortens a result that the hook cannot change, because the tool failed or is unknown. */
async function shorten($: Client, row: Row, next: Next<Row>): Promise<unknown> {
  return next(await changeRow($, row, "append"));
}

/** The hook can show only lines of Read that follow each other. It left a note, and our process has the text. */
async function complete($: Client, row: Row, next: Next<Row>): Promise<unknown> {
  return next(await changeRow($, row, "complete"));
}

async function changeRow($: Client, row: Row, request: "append" | "complete"): Promise<Row> {
  try {
    const content: Block[] = [];
    for (const block of row.message.content) {
      if (readText(block) === undefined) content.push(block);
      else content.push(request === "append" ? await shortenBlock($, block, row) : await completeBlock($, block, row));
    }
    return { ...row, message: { ...row.message, content } };
  } catch {
    return row;
  }
}

async function completeBlock($: Client, block: Block, row: Row): Promise<Block> {
  const { tool_use_id = "" } = block;
  const about = { session_id: await $.session.id(), agent_id: row.agentId ?? "", tool_use_id };
  return replaceText(block, (await ask($, "complete", about)).text);
}

async function shortenBlock($: Client, block: Block, row: Row): Promise<Block> {
  const { tool_use_id = "" } = block;
  const about = { session_id: await $.session.id(), agent_id: row.agentId ?? "", tool_use_id };
  // After a rewind, or because the client cleared it, the context may lack results.
  const messages = await $.session.messages({
    as: "api",
    ...(row.agentId === undefined ? {} : { agentId: row.agentId }),
  });
  if ("deny" in messages) throw new Error(messages.deny);
  const present = messages.flatMap(({ content }) => content);
  const tool_input = JSON.stringify(present.find(({ id }) => id === tool_use_id)?.input ?? {});
  const result = { tool_name: row.origin.tool ?? "", tool_input, tool_response: readText(block) };
  const answer = await ask($, "append", { ...about, ...result });
  // After a crash of the client, or after a long pause, a note stands in the place of a result.
  const results = present.filter(
    (each) => each.type === "tool_result" && !/^\[(?:Tool call interrupted|Old tool result)/.test(readText(each) ?? ""),
  );
  const lost = (answer.bases ?? []).filter((id) => !results.some((each) => each.tool_use_id === id));
  if (lost.length === 0) return replaceText(block, answer.text);
  await ask($, "lost_calls", { ...about, tool_input: JSON.stringify(lost) });
  return block;
}

/** Only a result that is one text is shortened: other blocks, such as `tool_reference`, are never touched. */
function readText({ type, content }: Block): string | undefined {
  if (type !== "tool_result" || content === undefined) return undefined;
  if (typeof content === "string") return content;
  return content.length === 1 && content[0]?.type === "text" ? content[0].text : undefined;
}

function replaceText(block: Block, text: string | undefined): Block {
  if (text === undefined) return block;
  const { content } = block;
  return { ...block, content: typeof content === "string" ? text : (content ?? []).map((each) => ({ ...each, text })) };
}

/** With CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC the client refuses a changed request. Then the original is sent, and
 *  after two refusals nothing is changed any more. */
async function changeRequest($: Client, request: Request, next: Next<Request>): Promise<unknown> {
  const { url, init } = request;
  const isTurn =
    next.origin?.plugin === "engine" && /\/v1\/messages(?:\?|$)/.test(url) && typeof init.body === "string";
  const changed = refusals < 2 && isTurn ? await reduceRequest($, request) : undefined;
  if (changed === undefined) return next(request);
  try {
    const answer = await next(changed);
    refusals = 0;
    return answer;
  } catch {
    // If this fails, too, the network is at fault.
    const answer = await next(request);
    refusals++;
    return answer;
  }
}

let refusals = 0;

async function reduceRequest($: Client, request: Request): Promise<Request | undefined> {
  // Models that do not tie thinking to what comes before it. `bindsThinking` has the table; a test compares the
  // two.
  const bindsNothing =
    /claude-(?:\d|v\d|instant|(?:opus|sonnet|haiku)-[34](?!\d)|mythos-preview|(?:opus|sonnet|fable|mythos)-5(?![-.]?\d{1,2}(?!\d)))/;
  try {
    const body = JSON.parse(String(request.init.body));
    const isTurn = Array.isArray(body.tools) && body.tools.length > 0;
    const kept: readonly Message[] =
      chosen.trims && isTurn ? await trimMessages($, request, body.messages) : body.messages;
    // A trim must not change which images are old.
    const images = findOldImages(body.messages);
    const isBound = images.old.size > 0 && !bindsNothing.test(body.model);
    const unbound = isBound ? findUnboundThinking(body.messages, images) : new Set<string>();
    const messages = leaveOutThinking(leaveOutImages(kept, images.old), unbound);
    if (messages === body.messages) return undefined;
    return { ...request, init: { ...request.init, body: JSON.stringify({ ...body, messages }) } };
  } catch {
    return undefined;
  }
}

interface Message {
  readonly content: string | readonly Block[];
}

/** The last request of each agent: its messages as the client has them, and as they were sent. If our process is late,
 *  the next request repeats what was sent and adds what is new. The whole history would no longer match the cache. */
const lastRequests = new Map<string, { readonly own: readonly string[]; readonly sent: readonly Message[] }>();
/** How many requests were sent without an answer of our process: those that repeated the last one, and those that went
 *  whole. Our process gets these numbers with each request. */
let late = { repeated: 0, whole: 0 };
/** Misses in a row. */
let misses = 0;

/** How long a request may wait for our process. If it has nothing to repeat, the whole history would be billed. A process
 *  that is only slow gets more time, so that it can catch up; one that has hung for long must not slow down everything. */
function chooseWait(canRepeat: boolean): number {
  if (!canRepeat) return 5_000;
  if (unanswered === undefined) return Math.min(5_000, 1_500 * 2 ** misses);
  return misses < 3 ? 1_500 : 200;
}

async function trimMessages($: Client, { init }: Request, messages: readonly Message[]): Promise<readonly Message[]> {
  const agent_id = init.headers?.["x-claude-code-agent-id"] ?? "";
  const own = messages.map(describeMessage);
  const last = lastRequests.get(agent_id);
  const isLonger = last?.own.every((text, index) => text === own[index]) ?? false;
  const repeat =
    last !== undefined && isLonger ? [...last.sent.map(unmark), ...messages.slice(last.own.length)] : undefined;
  let sent: readonly Message[];
  try {
    const about = { session_id: await $.session.id(), agent_id, tool_input: JSON.stringify(late) };
    const waitMs = chooseWait(repeat !== undefined);
    const answer = await ask($, "trim", { ...about, tool_response: init.body }, waitMs);
    misses = 0;
    sent = answer.messages?.map((each) => (typeof each === "number" ? messages[each]! : each)) ?? messages;
  } catch {
    misses++;
    late = repeat === undefined ? { ...late, whole: late.whole + 1 } : { ...late, repeated: late.repeated + 1 };
    sent = repeat ?? messages;
  }
  lastRequests.set(agent_id, { own, sent });
  return sent;
}

/** Returns a message for comparing. Cache markers move from request to request, and a message gets blocks for one. */
function describeMessage(message: Message): string {
  const { content } = message;
  return JSON.stringify(
    unmark(typeof content === "string" ? { ...message, content: [{ type: "text", text: content }] } : message),
  );
}

function unmark(message: Message): Message {
  if (typeof message.content === "string") return message;
  return { ...message, content: message.content.map(({ cache_control: _, ...block }) => block) };
}

function listBlocks({ content }: Message): readonly Block[] {
  return typeof content === "string" ? [] : content;
}

function hasImage({ type, content }: Block): boolean {
  return type === "tool_result" && Array.isArray(content) && content.some((each: Block) => each.type === "image");
}

interface LeftOutImages {
  /** The calls whose images are left out. */
  readonly old: ReadonlySet<string | undefined>;
  /** The newest call at the time when they were left out. */
  readonly since: string | undefined;
}

/** Leaves out images in batches as large as the number that stays, because each change of earlier messages costs the
 *  prompt cache. */
function findOldImages(messages: readonly Message[]): LeftOutImages {
  if (chosen.images === 0) return { old: new Set(), since: undefined };
  const calls = messages.flatMap((message) => listBlocks(message).filter(hasImage)).map((block) => block.tool_use_id);
  const rounds = Math.max(0, Math.floor(calls.length / chosen.images) - 1);
  return { old: new Set(calls.slice(0, rounds * chosen.images)), since: calls[(rounds + 1) * chosen.images - 1] };
}

/** Returns the signatures of the thinking that was made with images which are left out now. */
function findUnboundThinking(messages: readonly Message[], { old, since }: LeftOutImages): ReadonlySet<string> {
  const has = (message: Message, isIt: (call: string | undefined) => boolean): boolean =>
    listBlocks(message).some((block) => hasImage(block) && isIt(block.tool_use_id));
  const first = messages.findIndex((message) => has(message, (call) => old.has(call)));
  const last = messages.findIndex((message) => has(message, (call) => call === since));
  return new Set(messages.slice(first, last + 1).flatMap((message) => listBlocks(message).flatMap(readSeals)));
}

function readSeals({ type, signature, data }: Block): string[] {
  if (type !== "thinking" && type !== "redacted_thinking") return [];
  return [signature ?? data ?? ""];
}

function leaveOutThinking(messages: readonly Message[], unbound: ReadonlySet<string>): readonly Message[] {
  if (unbound.size === 0) return messages;
  return messages.map((message) => {
    const blocks = listBlocks(message);
    const left = blocks.filter((block) => !readSeals(block).some((seal) => unbound.has(seal)));
    if (left.length === blocks.length) return message;
    return { ...message, content: left.length > 0 ? left : [{ type: "text", text: "[trimmed]" }] };
  });
}

function leaveOutImages(messages: readonly Message[], old: ReadonlySet<string | undefined>): readonly Message[] {
  if (old.size === 0) return messages;
  const text = "[An image was here. Only the newest images are sent. Call the tool again to see it.]";
  const note = { type: "text", text };
  const replaceImages = (block: Block): Block => {
    if (!hasImage(block) || !old.has(block.tool_use_id)) return block;
    return {
      ...block,
      content: (block.content as readonly Block[]).map((each) => (each.type === "image" ? note : each)),
    };
  };
  return messages.map((message) => {
    const blocks = listBlocks(message);
    return blocks.some(hasImage) ? { ...message, content: blocks.map(replaceImages) } : message;
  });
}

const server = "plugin:plimsoll:plimsoll";
/** A call that was not answered in time, until it ends. */
let unanswered: Promise<unknown> | undefined;

/** Asks our process, which usually answers within 50 ms. While it has not answered an earlier call, it is not asked: the
 *  calls would pile up, and each would slow down the client. Only a request to the model waits for it. */
async function ask($: Client, module_request: string, input: object, waitMs = 400): Promise<Answer> {
  const end = new AbortController();
  const sleep = $.clock.sleep(waitMs, { signal: end.signal }).then(
    () => undefined,
    () => undefined,
  );
  try {
    if (unanswered !== undefined && module_request === "trim") await Promise.race([unanswered, sleep]);
    if (unanswered !== undefined) throw new Error("the process does not answer");
    const call = $.mcp.call(server, "recall", { module_request, ...input });
    const answer = await Promise.race([call, sleep]);
    if (answer === undefined) {
      const ended = call
        .catch(() => undefined)
        .then(() => {
          unanswered = undefined;
        });
      unanswered = ended;
    }
    if (answer === undefined || answer.isError) throw new Error("no answer");
    return JSON.parse(answer.content[0]?.text ?? "{}");
  } finally {
    end.abort();
  }
}
