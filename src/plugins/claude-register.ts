/** Runs inside of Claude Code, as a module of our plugin: the build copies this file into its folder. There is no Node
 *  and no import. It sees the text of every tool result before the conversation keeps it, and asks our process for a
 *  shorter one. Whatever fails leaves the text as it is. */

/** The parts of the client's interface (2.1.325, early access) that are used here. */
interface Client {
  readonly mcp: {
    call(server: string, tool: string, input: object): Promise<{ content: { text?: string }[]; isError: boolean }>;
  };
  readonly session: {
    id(): Promise<string>;
    messages(options: object): Promise<readonly { content: readonly Block[] }[] | { deny: string }>;
  };
  readonly clock: { sleep(ms: number, options: { signal: AbortSignal }): Promise<void> };
}

interface Block {
  readonly type: string;
  readonly id?: string;
  readonly name?: string;
  readonly input?: unknown;
  readonly tool_use_id?: string;
  readonly text?: string;
  readonly content?: string | readonly Block[];
}

interface Row {
  readonly message: { readonly content: readonly Block[] };
  readonly agentId?: string;
}

type Next = (row: Row) => Promise<unknown>;
type On = (
  event: "session.append",
  where: { readonly door: "response" | "tool-result" },
  hook: (client: Client, row: Row, next: Next) => Promise<unknown>,
) => void;

interface Answer {
  readonly text?: string;
  readonly bases?: readonly string[];
}

/** The client calls it once, when it loads the plugin. It lets its interface be passed only to functions at the top of
 *  this file, so the state is here, too. */
export function register(on: On): void {
  on("session.append", { door: "response" }, async ($, row, next) => {
    await noteCalls($, row);
    return next(row);
  });
  on("session.append", { door: "tool-result" }, async ($, row, next) => {
    const message = await shortenRow($, row);
    return next(message === row.message ? row : { ...row, message });
  });
}

const calls = new Map<string, { readonly name: string; readonly input: unknown }>();
/** The session in which our process knows that this module is there. Then its hooks leave the results alone. */
let readySession: string | undefined;

async function noteCalls($: Client, { message }: Row): Promise<void> {
  const used = message.content.filter(({ type }) => type === "tool_use");
  for (const { id = "", name = "", input } of used) calls.set(id, { name, input });
  if (used.length === 0) return;
  try {
    const session_id = await $.session.id();
    if (readySession === session_id) return;
    await ask($, "module_ready", { session_id });
    readySession = session_id;
  } catch {
    // The hooks go on without the module.
  }
}

async function shortenRow($: Client, row: Row): Promise<Row["message"]> {
  const { message } = row;
  try {
    const session_id = await $.session.id();
    if (readySession !== session_id) return message;
    const content: Block[] = [];
    for (const block of message.content) content.push(await shortenBlock($, block, { row, session_id }));
    return content.every((block, index) => block === message.content[index]) ? message : { ...message, content };
  } catch {
    return message;
  }
}

async function shortenBlock(
  $: Client,
  block: Block,
  { row, session_id }: { readonly row: Row; readonly session_id: string },
): Promise<Block> {
  const { tool_use_id = "" } = block;
  const text = textOf(block);
  const call = calls.get(tool_use_id);
  calls.delete(tool_use_id);
  if (text === undefined || call === undefined) return block;
  const about = { session_id, agent_id: row.agentId ?? "", tool_use_id };
  const input = { ...about, tool_name: call.name, tool_input: JSON.stringify(call.input), tool_response: text };
  const answer = await ask($, "append", input);
  if (answer.text === undefined) return block;
  const lost = await lostCalls($, answer.bases ?? [], row.agentId);
  if (lost.length > 0) {
    await ask($, "lost_calls", { ...about, tool_input: JSON.stringify(lost) });
    return block;
  }
  return { ...block, content: withText(block, answer.text) };
}

/** Only a result that is one text is shortened: other blocks, such as `tool_reference`, are never touched. */
function textOf({ type, content }: Block): string | undefined {
  if (type !== "tool_result" || content === undefined) return undefined;
  if (typeof content === "string") return content;
  return content.length === 1 && content[0]?.type === "text" ? content[0].text : undefined;
}

function withText({ content }: Block, text: string): string | readonly Block[] {
  return typeof content === "string" ? text : (content ?? []).map((block) => ({ ...block, text }));
}

/** Returns the calls that the context no longer has, after a rewind or because the client cleared them. */
async function lostCalls($: Client, ids: readonly string[], agentId: string | undefined): Promise<string[]> {
  if (ids.length === 0) return [];
  const messages = await $.session.messages({ as: "api", ...(agentId === undefined ? {} : { agentId }) });
  if ("deny" in messages) return [];
  const present = new Set(messages.flatMap(({ content }) => content.map(({ id }) => id)));
  return ids.filter((id) => !present.has(id));
}

const server = "plugin:plimsoll:plimsoll";
/** Our process answers within 50 ms. If it does not, the client must not wait, and not again and again. */
const patienceMs = 400;
const mostFailures = 3;
let failures = 0;

async function ask($: Client, module_request: string, input: object): Promise<Answer> {
  if (failures >= mostFailures) throw new Error("the process does not answer");
  const end = new AbortController();
  const late = $.clock.sleep(patienceMs, { signal: end.signal }).then(
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
