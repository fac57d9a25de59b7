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
    on("session.append", {
        door,
        origin: { tool: "Read" },
        message: { content: { content: textWith(hookNote) } },
    }, complete);
    // Requests stay as they are.
}
const chosen = { trims: false, images: 0 };
const hookNote = "1\t[plimsoll shortens this result. To see it, make the same call again.]";
const longText = textWith(/^[\s\S]{600}/);
const otherTools = [
    ...["WebSearch", "TaskOutput", "BashOutput", "ReadMcpResourceTool", "ListMcpResourcesTool", "LSP", "PowerShell"],
    ...["Skill", "Monitor"],
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
    return next(await changed($, row, "append"));
}
async function complete($, row, next) {
    return next(await changed($, row, "complete"));
}
async function changed($, row, request) {
    try {
        const session_id = await $.session.id();
        const content = [];
        for (const block of row.message.content)
            content.push(await changedBlock($, block, { row, session_id, request }));
        return { ...row, message: { ...row.message, content } };
    }
    catch {
        return row;
    }
}
async function changedBlock($, block, { row, session_id, request }) {
    const { tool_use_id = "" } = block;
    const text = textOf(block);
    if (text === undefined)
        return block;
    const about = { session_id, agent_id: row.agentId ?? "", tool_use_id };
    if (request === "complete")
        return withText(block, (await ask($, request, about)).text);
    const present = await presentBlocks($, row.agentId);
    const tool_input = JSON.stringify(present.find(({ id }) => id === tool_use_id)?.input ?? {});
    const input = { ...about, tool_name: row.origin.tool ?? "", tool_input, tool_response: text };
    const answer = await ask($, request, input);
    const results = new Set(present.filter(isPresent).map((each) => each.tool_use_id));
    const lost = (answer.bases ?? []).filter((id) => !results.has(id));
    if (lost.length === 0)
        return withText(block, answer.text);
    await ask($, "lost_calls", { ...about, tool_input: JSON.stringify(lost) });
    return block;
}
function textOf({ type, content }) {
    if (type !== "tool_result" || content === undefined)
        return undefined;
    if (typeof content === "string")
        return content;
    return content.length === 1 && content[0]?.type === "text" ? content[0].text : undefined;
}
function withText(block, text) {
    if (text === undefined)
        return block;
    const { content } = block;
    return { ...block, content: typeof content === "string" ? text : (content ?? []).map((each) => ({ ...each, text })) };
}
async function presentBlocks($, agentId) {
    const messages = await $.session.messages({ as: "api", ...(agentId === undefined ? {} : { agentId }) });
    if ("deny" in messages)
        throw new Error(messages.deny);
    return messages.flatMap(({ content }) => content);
}
function isPresent(block) {
    return block.type === "tool_result" && textOf(block)?.startsWith("[Tool call interrupted") !== true;
}
async function changeRequest($, request, next) {
    const changed = refusals < mostRefusals && isTurn(request, next) ? await changedRequest($, request) : undefined;
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
const mostRefusals = 2;
let refusals = 0;
function isTurn({ url, init }, next) {
    return next.origin?.plugin === "engine" && /\/v1\/messages(?:\?|$)/.test(url) && typeof init.body === "string";
}
async function changedRequest($, request) {
    try {
        const body = JSON.parse(String(request.init.body));
        const kept = (chosen.trims ? await trimmed($, request, body) : undefined) ?? body.messages;
        const { old, since } = oldImages(body.messages);
        const isBound = old.size > 0 && !bindsNothing.test(body.model);
        const unbound = isBound ? unboundThinking(body.messages, old, since) : new Set();
        const messages = withoutThinking(withoutImages(kept, old), unbound);
        if (messages === body.messages)
            return undefined;
        return { ...request, init: { ...request.init, body: JSON.stringify({ ...body, messages }) } };
    }
    catch {
        return undefined;
    }
}
async function trimmed($, { init }, body) {
    const { headers = {} } = init;
    const about = { session_id: await $.session.id(), agent_id: headers["x-claude-code-agent-id"] ?? "" };
    const { messages } = await ask($, "trim", { ...about, tool_response: init.body }, trimPatienceMs);
    return messages?.map((each) => (typeof each === "number" ? body.messages[each] : each));
}
const imageNote = "[An image was here. Only the newest images are sent. Call the tool again to see it.]";
function blocksOf({ content }) {
    return typeof content === "string" ? [] : content;
}
function hasImage({ type, content }) {
    return type === "tool_result" && Array.isArray(content) && content.some((each) => each.type === "image");
}
function oldImages(messages) {
    if (chosen.images === 0)
        return { old: new Set(), since: undefined };
    const calls = messages.flatMap((message) => blocksOf(message).filter(hasImage)).map((block) => block.tool_use_id);
    const rounds = Math.max(0, Math.floor(calls.length / chosen.images) - 1);
    return { old: new Set(calls.slice(0, rounds * chosen.images)), since: calls[(rounds + 1) * chosen.images - 1] };
}
const bindsNothing = /claude-(?:\d|v\d|instant|(?:opus|sonnet|haiku)-[34](?!\d)|mythos-preview|(?:opus|sonnet|fable|mythos)-5(?![-.]?\d{1,2}(?!\d)))/;
function unboundThinking(messages, old, since) {
    const has = (message, isIt) => blocksOf(message).some((block) => hasImage(block) && isIt(block.tool_use_id));
    const first = messages.findIndex((message) => has(message, (call) => old.has(call)));
    const last = messages.findIndex((message) => has(message, (call) => call === since));
    return new Set(messages.slice(first, last + 1).flatMap((message) => blocksOf(message).flatMap(sealOf)));
}
function sealOf({ type, signature, data }) {
    if (type !== "thinking" && type !== "redacted_thinking")
        return [];
    return [signature ?? data ?? ""];
}
function withoutThinking(messages, unbound) {
    if (unbound.size === 0)
        return messages;
    return messages.map((message) => {
        const blocks = blocksOf(message);
        const left = blocks.filter((block) => !sealOf(block).some((seal) => unbound.has(seal)));
        if (left.length === blocks.length)
            return message;
        return { ...message, content: left.length > 0 ? left : [{ type: "text", text: "[trimmed]" }] };
    });
}
function withoutImages(messages, old) {
    if (old.size === 0)
        return messages;
    const note = { type: "text", text: imageNote };
    const shown = (block) => {
        if (!hasImage(block) || !old.has(block.tool_use_id))
            return block;
        return {
            ...block,
            content: block.content.map((each) => (each.type === "image" ? note : each)),
        };
    };
    return messages.map((message) => {
        const blocks = blocksOf(message);
        return blocks.some(hasImage) ? { ...message, content: blocks.map(shown) } : message;
    });
}
const server = "plugin:plimsoll:plimsoll";
const patienceMs = 400;
const trimPatienceMs = 1_500;
const mostFailures = 3;
let failures = 0;
async function ask($, module_request, input, waitMs = patienceMs) {
    if (failures >= mostFailures)
        throw new Error("the process does not answer");
    const end = new AbortController();
    const late = $.clock.sleep(waitMs, { signal: end.signal }).then(() => undefined, () => undefined);
    try {
        const answer = await Promise.race([$.mcp.call(server, "recall", { module_request, ...input }), late]);
        if (answer === undefined || answer.isError)
            throw new Error("no answer");
        const parsed = JSON.parse(answer.content[0]?.text ?? "{}");
        failures = 0;
        return parsed;
    }
    catch (error) {
        failures++;
        throw error;
    }
    finally {
        end.abort();
    }
}
