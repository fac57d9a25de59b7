/** Runs inside of Claude Code, as a module of our plugin: the build copies this file into its folder. There is no Node
 *  and no import. The hook after each tool shortens most results. This module sees the texts of results before the
 *  conversation keeps them, and does what the hook cannot. Whatever fails leaves the text as it is. */

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
interface RowPattern {
  readonly door: "tool-result";
  readonly origin?: { readonly tool: string };
  readonly message: { readonly content: { readonly is_error?: true; readonly content: Text } };
}
interface On {
  (event: "session.start", hook: Hook<object>): void;
  (event: "session.append", which: RowPattern, hook: Hook<Row>): void;
  (event: "http.fetch", hook: Hook<Request>): void;
}

interface Answer {
  readonly text?: string;
  readonly bases?: readonly string[];
  /** The messages of a request; a number is the index of one that stays. */
  readonly messages?: readonly (Message | number)[];
}

/** The client calls it once, when it loads the plugin. It compares rows with the patterns itself, so that a row which
 *  matches none costs nothing: to come here and back takes longer than our process needs for a result. Its interface may
 *  be passed only to functions at the top of this file, so the state is here, too. */
export function register(on: On): void {
  on("session.start", async ($, event, next) => {
    void introduce($);
    return next(event);
  });
  const door = "tool-result";
  on("session.append", { door, message: { content: { is_error: true, content: longText } } }, shorten);
  for (const tool of otherTools)
    on("session.append", { door, origin: { tool }, message: { content: { content: longText } } }, shortenOther);
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

/** The note that the hook leaves in a result of Read, as the client numbers it. It is always the same, because the client
 *  compares a text at once, and takes 2 ms for an expression. */
const hookNote = "1\t[plimsoll shortens this result. To see it, make the same call again.]";
/** Shorter results are never edited. */
const longText = textWith(/^[\s\S]{600}/);
/** Tools whose answers may be long, and cannot be changed by the hook after each tool (2.1.325). Each has a pattern of its
 *  own: a pattern with an expression for the name would cost every result of every tool 3 ms. */
const otherTools = [
  ...["WebSearch", "TaskOutput", "BashOutput", "ReadMcpResourceTool", "ListMcpResourcesTool", "LSP", "PowerShell"],
  ...["Skill", "Monitor"],
];

/** A result is a text, or blocks. */
function textWith(text: string | RegExp): Text {
  return [text, { text }];
}

/** Tells our process that a result of Read can be completed here. The process starts beside the session. */
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

/** Failures have a pattern of their own. */
async function shortenOther($: Client, row: Row, next: Next<Row>): Promise<unknown> {
  return row.message.content.some(({ is_error }) => is_error) ? next(row) : shorten($, row, next);
}

/** A result that the hook cannot change, because the tool failed or is unknown. */
async function shorten($: Client, row: Row, next: (row: Row) => Promise<unknown>): Promise<unknown> {
  return next(await changed($, row, "append"));
}

/** The hook can show only lines of Read that follow each other. It left a note, and our process has the text. */
async function complete($: Client, row: Row, next: (row: Row) => Promise<unknown>): Promise<unknown> {
  return next(await changed($, row, "complete"));
}

async function changed($: Client, row: Row, request: "append" | "complete"): Promise<Row> {
  try {
    const session_id = await $.session.id();
    const content: Block[] = [];
    for (const block of row.message.content) content.push(await changedBlock($, block, { row, session_id, request }));
    return { ...row, message: { ...row.message, content } };
  } catch {
    return row;
  }
}

interface Asked {
  readonly row: Row;
  readonly session_id: string;
  readonly request: "append" | "complete";
}

async function changedBlock($: Client, block: Block, { row, session_id, request }: Asked): Promise<Block> {
  const { tool_use_id = "" } = block;
  const text = textOf(block);
  if (text === undefined) return block;
  const about = { session_id, agent_id: row.agentId ?? "", tool_use_id };
  if (request === "complete") return withText(block, (await ask($, request, about)).text);
  const present = await presentBlocks($, row.agentId);
  const tool_input = JSON.stringify(present.find(({ id }) => id === tool_use_id)?.input ?? {});
  const input = { ...about, tool_name: row.origin.tool ?? "", tool_input, tool_response: text };
  const answer = await ask($, request, input);
  const results = new Set(present.filter(isPresent).map((each) => each.tool_use_id));
  const lost = (answer.bases ?? []).filter((id) => !results.has(id));
  if (lost.length === 0) return withText(block, answer.text);
  await ask($, "lost_calls", { ...about, tool_input: JSON.stringify(lost) });
  return block;
}

/** Only a result that is one text is shortened: other blocks, such as `tool_reference`, are never touched. */
function textOf({ type, content }: Block): string | undefined {
  if (type !== "tool_result" || content === undefined) return undefined;
  if (typeof content === "string") return content;
  return content.length === 1 && content[0]?.type === "text" ? content[0].text : undefined;
}

function withText(block: Block, text: string | undefined): Block {
  if (text === undefined) return block;
  const { content } = block;
  return { ...block, content: typeof content === "string" ? text : (content ?? []).map((each) => ({ ...each, text })) };
}

/** Returns what the context has. After a rewind, or because the client cleared it, it may lack results. */
async function presentBlocks($: Client, agentId: string | undefined): Promise<Block[]> {
  const messages = await $.session.messages({ as: "api", ...(agentId === undefined ? {} : { agentId }) });
  if ("deny" in messages) throw new Error(messages.deny);
  return messages.flatMap(({ content }) => content);
}

/** Whether a result is there. After a crash of the client, a note stands in its place. */
function isPresent(block: Block): boolean {
  return block.type === "tool_result" && textOf(block)?.startsWith("[Tool call interrupted") !== true;
}

/** With CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC the client refuses a changed request. Then the original is sent, and
 *  after two refusals nothing is changed any more. */
async function changeRequest($: Client, request: Request, next: Next<Request>): Promise<unknown> {
  const changed = refusals < mostRefusals && isTurn(request, next) ? await changedRequest($, request) : undefined;
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

const mostRefusals = 2;
let refusals = 0;

function isTurn({ url, init }: Request, next: Next<Request>): boolean {
  return next.origin?.plugin === "engine" && /\/v1\/messages(?:\?|$)/.test(url) && typeof init.body === "string";
}

async function changedRequest($: Client, request: Request): Promise<Request | undefined> {
  try {
    const body = JSON.parse(String(request.init.body));
    const kept: readonly Message[] = (chosen.trims ? await trimmed($, request, body) : undefined) ?? body.messages;
    // A trim must not change which images are old.
    const { old, since } = oldImages(body.messages);
    const isBound = old.size > 0 && !bindsNothing.test(body.model);
    const unbound = isBound ? unboundThinking(body.messages, old, since) : new Set<string>();
    const messages = withoutThinking(withoutImages(kept, old), unbound);
    if (messages === body.messages) return undefined;
    return { ...request, init: { ...request.init, body: JSON.stringify({ ...body, messages }) } };
  } catch {
    return undefined;
  }
}

interface Message {
  readonly content: string | readonly Block[];
}

async function trimmed(
  $: Client,
  { init }: Request,
  body: { readonly messages: readonly Message[] },
): Promise<readonly Message[] | undefined> {
  const { headers = {} } = init;
  const about = { session_id: await $.session.id(), agent_id: headers["x-claude-code-agent-id"] ?? "" };
  const { messages } = await ask($, "trim", { ...about, tool_response: init.body }, trimPatienceMs);
  return messages?.map((each) => (typeof each === "number" ? body.messages[each]! : each));
}

const imageNote = "[An image was here. Only the newest images are sent. Call the tool again to see it.]";

function blocksOf({ content }: Message): readonly Block[] {
  return typeof content === "string" ? [] : content;
}

function hasImage({ type, content }: Block): boolean {
  return type === "tool_result" && Array.isArray(content) && content.some((each: Block) => each.type === "image");
}

interface LeftOutImages {
  /** The calls whose images are left out. */
  readonly old: ReadonlySet<string | undefined>;
  /** The call that was the newest when they were. */
  readonly since: string | undefined;
}

/** A change of what was sent costs the prompt cache, so as many images as stay are left out at once. */
function oldImages(messages: readonly Message[]): LeftOutImages {
  if (chosen.images === 0) return { old: new Set(), since: undefined };
  const calls = messages.flatMap((message) => blocksOf(message).filter(hasImage)).map((block) => block.tool_use_id);
  const rounds = Math.max(0, Math.floor(calls.length / chosen.images) - 1);
  return { old: new Set(calls.slice(0, rounds * chosen.images)), since: calls[(rounds + 1) * chosen.images - 1] };
}

/** Models that do not tie thinking to what comes before it. `bindsThinking` has the table; a test compares the two. */
const bindsNothing =
  /claude-(?:\d|v\d|instant|(?:opus|sonnet|haiku)-[34](?!\d)|mythos-preview|(?:opus|sonnet|fable|mythos)-5(?![-.]?\d{1,2}(?!\d)))/;

/** Returns the signatures of the thinking that was made with images which are left out now. */
function unboundThinking(
  messages: readonly Message[],
  old: LeftOutImages["old"],
  since: string | undefined,
): ReadonlySet<string> {
  const has = (message: Message, isIt: (call: string | undefined) => boolean): boolean =>
    blocksOf(message).some((block) => hasImage(block) && isIt(block.tool_use_id));
  const first = messages.findIndex((message) => has(message, (call) => old.has(call)));
  const last = messages.findIndex((message) => has(message, (call) => call === since));
  return new Set(messages.slice(first, last + 1).flatMap((message) => blocksOf(message).flatMap(sealOf)));
}

function sealOf({ type, signature, data }: Block): string[] {
  if (type !== "thinking" && type !== "redacted_thinking") return [];
  return [signature ?? data ?? ""];
}

function withoutThinking(messages: readonly Message[], unbound: ReadonlySet<string>): readonly Message[] {
  if (unbound.size === 0) return messages;
  return messages.map((message) => {
    const blocks = blocksOf(message);
    const left = blocks.filter((block) => !sealOf(block).some((seal) => unbound.has(seal)));
    if (left.length === blocks.length) return message;
    return { ...message, content: left.length > 0 ? left : [{ type: "text", text: "[trimmed]" }] };
  });
}

function withoutImages(messages: readonly Message[], old: ReadonlySet<string | undefined>): readonly Message[] {
  if (old.size === 0) return messages;
  const note = { type: "text", text: imageNote };
  const shown = (block: Block): Block => {
    if (!hasImage(block) || !old.has(block.tool_use_id)) return block;
    return {
      ...block,
      content: (block.content as readonly Block[]).map((each) => (each.type === "image" ? note : each)),
    };
  };
  return messages.map((message) => {
    const blocks = blocksOf(message);
    return blocks.some(hasImage) ? { ...message, content: blocks.map(shown) } : message;
  });
}

const server = "plugin:plimsoll:plimsoll";
/** Our process answers within 50 ms. If it does not, the client must not wait, and not again and again. */
const patienceMs = 400;
/** If we give up, the untrimmed request no longer matches the cache and is billed in full. So it may wait this long. */
const trimPatienceMs = 1_500;
const mostFailures = 3;
let failures = 0;

async function ask($: Client, module_request: string, input: object, waitMs: number = patienceMs): Promise<Answer> {
  if (failures >= mostFailures) throw new Error("the process does not answer");
  const end = new AbortController();
  const late = $.clock.sleep(waitMs, { signal: end.signal }).then(
    () => undefined,
    () => undefined,
  );
  try {
    const answer = await Promise.race([$.mcp.call(server, "recall", { module_request, ...input }), late]);
    if (answer === undefined || answer.isError) throw new Error("no answer");
    const parsed = JSON.parse(answer.content[0]?.text ?? "{}");
    failures = 0;
    return parsed;
  } catch (error) {
    failures++;
    throw error;
  } finally {
    end.abort();
  }
}
