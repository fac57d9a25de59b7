// Built from src/clients/plugins/claude-register.ts, which explains it.
export function register(on) {
    on("session.start", async ($, event, next) => {
        void introduce($);
        return next(event);
    });
    const door = "tool-result";
    on("session.append", { door, message: { content: { is_error: true, content: longText } } }, shorten);
    for (const tool of otherTools)
        on("session.append", { door, origin: { tool }, message: { content: { content: longText } } }, shortenOther);
    const hookNote = "1\t[plimsoll shortens this result. To see it, make the same call again.]";
    on("session.append", {
        door,
        origin: { tool: "Read" },
        message: { content: { content: textWith(hookNote) } },
    }, complete);
    // Requests stay as they are.
}
const chosen = { trims: false, images: 0 };
const longText = textWith(/^[\s\S]{600}/);
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
function textWith(text) {
    return [text, { text }];
}
async function introduce($) {
    for (let attempt = 0; attempt < 40; attempt++) {
        try {
            const session_id = await $.session.id();
            await $.mcp.call(server, "recall", { module_request: "module_ready", session_id });
            return;
        }
        catch {
            await $.clock.sleep(250);
        }
    }
}
async function shortenOther($, row, next) {
    return row.message.content.some(({ is_error }) => is_error) ? next(row) : shorten($, row, next);
}
async function shorten($, row, next) {
    return next(await changeRow($, row, "append"));
}
async function complete($, row, next) {
    return next(await changeRow($, row, "complete"));
}
async function changeRow($, row, request) {
    try {
        const content = [];
        for (const block of row.message.content) {
            if (readText(block) === undefined)
                content.push(block);
            else
                content.push(request === "append" ? await shortenBlock($, block, row) : await completeBlock($, block, row));
        }
        return { ...row, message: { ...row.message, content } };
    }
    catch {
        return row;
    }
}
async function completeBlock($, block, row) {
    const { tool_use_id = "" } = block;
    const about = { session_id: await $.session.id(), agent_id: row.agentId ?? "", tool_use_id };
    return replaceText(block, (await ask($, "complete", about)).text);
}
async function shortenBlock($, block, row) {
    const { tool_use_id = "" } = block;
    const about = { session_id: await $.session.id(), agent_id: row.agentId ?? "", tool_use_id };
    const messages = await $.session.messages({
        as: "api",
        ...(row.agentId === undefined ? {} : { agentId: row.agentId }),
    });
    if ("deny" in messages)
        throw new Error(messages.deny);
    const present = messages.flatMap(({ content }) => content);
    const tool_input = JSON.stringify(present.find(({ id }) => id === tool_use_id)?.input ?? {});
    const result = { tool_name: row.origin.tool ?? "", tool_input, tool_response: readText(block) };
    const answer = await ask($, "append", { ...about, ...result });
    const results = present.filter((each) => each.type === "tool_result" && !/^\[(?:Tool call interrupted|Old tool result)/.test(readText(each) ?? ""));
    const lost = (answer.bases ?? []).filter((id) => !results.some((each) => each.tool_use_id === id));
    if (lost.length === 0)
        return replaceText(block, answer.text);
    await ask($, "lost_calls", { ...about, tool_input: JSON.stringify(lost) });
    return block;
}
function readText({ type, content }) {
    if (type !== "tool_result" || content === undefined)
        return undefined;
    if (typeof content === "string")
        return content;
    return content.length === 1 && content[0]?.type === "text" ? content[0].text : undefined;
}
function replaceText(block, text) {
    if (text === undefined)
        return block;
    const { content } = block;
    return { ...block, content: typeof content === "string" ? text : (content ?? []).map((each) => ({ ...each, text })) };
}
async function changeRequest($, request, next) {
    const { url, init } = request;
    const isTurn = next.origin?.plugin === "engine" && /\/v1\/messages(?:\?|$)/.test(url) && typeof init.body === "string";
    const changed = refusals < 2 && isTurn ? await reduceRequest($, request) : undefined;
    if (changed === undefined)
        return next(request);
    try {
        const answer = await next(changed);
        refusals = 0;
        return answer;
    }
    catch {
        const answer = await next(request);
        refusals++;
        return answer;
    }
}
let refusals = 0;
async function reduceRequest($, request) {
    const bindsNothing = /claude-(?:\d|v\d|instant|(?:opus|sonnet|haiku)-[34](?!\d)|mythos-preview|(?:opus|sonnet|fable|mythos)-5(?![-.]?\d{1,2}(?!\d)))/;
    try {
        const body = JSON.parse(String(request.init.body));
        const isTurn = Array.isArray(body.tools) && body.tools.length > 0;
        const kept = chosen.trims && isTurn ? await trimMessages($, request, body.messages) : body.messages;
        const images = findOldImages(body.messages);
        const isBound = images.old.size > 0 && !bindsNothing.test(body.model);
        const unbound = isBound ? findUnboundThinking(body.messages, images) : new Set();
        const messages = leaveOutThinking(leaveOutImages(kept, images.old), unbound);
        if (messages === body.messages)
            return undefined;
        return { ...request, init: { ...request.init, body: JSON.stringify({ ...body, messages }) } };
    }
    catch {
        return undefined;
    }
}
const lastRequests = new Map();
let late = { repeated: 0, whole: 0 };
let misses = 0;
function chooseWait(canRepeat) {
    if (!canRepeat)
        return 5_000;
    if (unanswered === undefined)
        return Math.min(5_000, 1_500 * 2 ** misses);
    return misses < 3 ? 1_500 : 200;
}
async function trimMessages($, { init }, messages) {
    const agent_id = init.headers?.["x-claude-code-agent-id"] ?? "";
    const own = messages.map(describeMessage);
    const last = lastRequests.get(agent_id);
    const isLonger = last?.own.every((text, index) => text === own[index]) ?? false;
    const repeat = last !== undefined && isLonger ? [...last.sent.map(unmark), ...messages.slice(last.own.length)] : undefined;
    let sent;
    try {
        const about = { session_id: await $.session.id(), agent_id, tool_input: JSON.stringify(late) };
        const waitMs = chooseWait(repeat !== undefined);
        const answer = await ask($, "trim", { ...about, tool_response: init.body }, waitMs);
        misses = 0;
        sent = answer.messages?.map((each) => (typeof each === "number" ? messages[each] : each)) ?? messages;
    }
    catch {
        misses++;
        late = repeat === undefined ? { ...late, whole: late.whole + 1 } : { ...late, repeated: late.repeated + 1 };
        sent = repeat ?? messages;
    }
    lastRequests.set(agent_id, { own, sent });
    return sent;
}
function describeMessage(message) {
    const { content } = message;
    return JSON.stringify(unmark(typeof content === "string" ? { ...message, content: [{ type: "text", text: content }] } : message));
}
function unmark(message) {
    if (typeof message.content === "string")
        return message;
    return { ...message, content: message.content.map(({ cache_control: _, ...block }) => block) };
}
function listBlocks({ content }) {
    return typeof content === "string" ? [] : content;
}
function hasImage({ type, content }) {
    return type === "tool_result" && Array.isArray(content) && content.some((each) => each.type === "image");
}
function findOldImages(messages) {
    if (chosen.images === 0)
        return { old: new Set(), since: undefined };
    const calls = messages.flatMap((message) => listBlocks(message).filter(hasImage)).map((block) => block.tool_use_id);
    const rounds = Math.max(0, Math.floor(calls.length / chosen.images) - 1);
    return { old: new Set(calls.slice(0, rounds * chosen.images)), since: calls[(rounds + 1) * chosen.images - 1] };
}
function findUnboundThinking(messages, { old, since }) {
    const has = (message, isIt) => listBlocks(message).some((block) => hasImage(block) && isIt(block.tool_use_id));
    const first = messages.findIndex((message) => has(message, (call) => old.has(call)));
    const last = messages.findIndex((message) => has(message, (call) => call === since));
    return new Set(messages.slice(first, last + 1).flatMap((message) => listBlocks(message).flatMap(readSeals)));
}
function readSeals({ type, signature, data }) {
    if (type !== "thinking" && type !== "redacted_thinking")
        return [];
    return [signature ?? data ?? ""];
}
function leaveOutThinking(messages, unbound) {
    if (unbound.size === 0)
        return messages;
    return messages.map((message) => {
        const blocks = listBlocks(message);
        const left = blocks.filter((block) => !readSeals(block).some((seal) => unbound.has(seal)));
        if (left.length === blocks.length)
            return message;
        return { ...message, content: left.length > 0 ? left : [{ type: "text", text: "[trimmed]" }] };
    });
}
function leaveOutImages(messages, old) {
    if (old.size === 0)
        return messages;
    const text = "[An image was here. Only the newest images are sent. Call the tool again to see it.]";
    const note = { type: "text", text };
    const replaceImages = (block) => {
        if (!hasImage(block) || !old.has(block.tool_use_id))
            return block;
        return {
            ...block,
            content: block.content.map((each) => (each.type === "image" ? note : each)),
        };
    };
    return messages.map((message) => {
        const blocks = listBlocks(message);
        return blocks.some(hasImage) ? { ...message, content: blocks.map(replaceImages) } : message;
    });
}
const server = "plugin:plimsoll:plimsoll";
let unanswered;
async function ask($, module_request, input, waitMs = 400) {
    const end = new AbortController();
    const sleep = $.clock.sleep(waitMs, { signal: end.signal }).then(() => undefined, () => undefined);
    try {
        if (unanswered !== undefined && module_request === "trim")
            await Promise.race([unanswered, sleep]);
        if (unanswered !== undefined)
            throw new Error("the process does not answer");
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
        if (answer === undefined || answer.isError)
            throw new Error("no answer");
        return JSON.parse(answer.content[0]?.text ?? "{}");
    }
    finally {
        end.abort();
    }
}
