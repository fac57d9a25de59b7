/** Inputs that are small to write and may be expensive to read: about `bytes` each, in the format of every program and provider. */

import { createHash } from "node:crypto";

/** A conversation that no format has yet. Turns are `{ say }`, `{ answer }`, `{ results }` or `{ system }`. */
const text = (value) => ({ text: value });
const call = (id, name = "Read", input = { file_path: `src/${id}.ts` }) => ({ call: { id: `t${id}`, name, input } });
const result = (id, value = `ok ${id}`) => ({ id: `t${id}`, text: value });
const list = (length, make) => Array.from({ length }, (_, index) => make(index));
const say = (...parts) => ({ say: parts.map(text) });
const answer = (...parts) => ({ answer: parts });
const end = [answer(text("Done.")), say("More."), answer(text("Done again."))];
const repeat = (unit, bytes) => unit.repeat(Math.max(1, Math.floor(bytes / Buffer.byteLength(unit))));
const one = (value) => [say(value), answer(call(0)), { results: [result(0, value)] }, answer(text(value)), ...end];

/** Each makes a conversation of about `bytes`. Names say what there is much of. */
export const conversations = {
  "calls in one message": (bytes) => {
    const count = Math.floor(bytes / 200);
    return [
      say("Go."),
      { answer: list(count, (at) => call(at)) },
      { results: list(count, (at) => result(at)) },
      ...end,
    ];
  },
  "messages of one call": (bytes) => [
    say("Go."),
    ...list(Math.floor(bytes / 200), (at) => [answer(call(at)), { results: [result(at)] }]).flat(),
    ...end,
  ],
  "edits of one file": (bytes) => [
    say("Go."),
    ...list(Math.floor(bytes / 300), (at) => [
      answer(
        call(at, "Edit", {
          file_path: "a.ts",
          old_string: `const value = ${at};`,
          new_string: `const value = ${at + 1};`,
        }),
      ),
      { results: [result(at, `edited const value = ${at + 1};`)] },
    ]).flat(),
    ...end,
  ],
  "texts in one message": (bytes) => [say(...list(Math.floor(bytes / 60), (at) => `part ${at}`)), ...end],
  "texts in one answer": (bytes) => [
    say("Go."),
    { answer: list(Math.floor(bytes / 60), (at) => text(`part ${at}`)) },
    ...end,
  ],
  "tool names": (bytes) => [
    say("Go."),
    ...list(Math.floor(bytes / 200), (at) => [answer(call(at, `tool_${at}`)), { results: [result(at)] }]).flat(),
    ...end,
  ],
  "calls without results": (bytes) => [say("Go."), ...list(Math.floor(bytes / 120), (at) => answer(call(at))), ...end],
  "results without calls": (bytes) => [
    say("Go."),
    { results: list(Math.floor(bytes / 100), (at) => result(at)) },
    ...end,
  ],
  "one id again and again": (bytes) => [
    say("Go."),
    ...list(Math.floor(bytes / 200), () => [answer(call(7)), { results: [result(7)] }]).flat(),
    ...end,
  ],
  "one id in one message": (bytes) => {
    const count = Math.floor(bytes / 200);
    return [say("Go."), { answer: list(count, () => call(7)) }, { results: list(count, () => result(7)) }, ...end];
  },
  "short user messages": (bytes) => [...list(Math.floor(bytes / 60), (at) => say(`${at}`)), ...end],
  "short turns": (bytes) => [
    ...list(Math.floor(bytes / 120), (at) => [say(`${at}`), answer(text(`${at}`))]).flat(),
    ...end,
  ],
  "short answers": (bytes) => [say("Go."), ...list(Math.floor(bytes / 60), (at) => answer(text(`${at}`))), ...end],
  "system messages": (bytes) => [
    ...list(Math.floor(bytes / 60), (at) => ({ system: `rule ${at}` })),
    say("Go."),
    ...end,
  ],
  "one result": (bytes) => one(repeat("lorem ipsum dolor sit amet ", bytes / 3)),
  "short lines": (bytes) => one(repeat("a\n", bytes / 4)),
  "one line again and again": (bytes) => one(repeat("const value = compute(input);\n", bytes / 4)),
  "two lines in turn": (bytes) =>
    one(repeat("const value = compute(input);\nconst other = compute(value);\n", bytes / 4)),
  "different lines": (bytes) =>
    one(list(Math.floor(bytes / 160), (at) => `const value${at} = compute(input${at});`).join("\n")),
  "lines that begin alike": (bytes) => one(list(Math.floor(bytes / 400), (at) => `${"x".repeat(90)}${at}`).join("\n")),
  "one letter": (bytes) => one(repeat("a", bytes / 3)),
  spaces: (bytes) => one(repeat(" ", bytes / 3)),
  "open brackets": (bytes) => one(repeat("[", bytes / 3)),
  "open braces in quotes": (bytes) => one(repeat('{"a":', bytes / 5)),
  "open tags": (bytes) => one(repeat("<system-reminder>", bytes / 3)),
  backticks: (bytes) => one(repeat("`", bytes / 3)),
  slashes: (bytes) => one(repeat("a/", bytes / 3)),
  "combining characters": (bytes) => one(`e${repeat("\u0301", bytes / 3)}`),
  emoji: (bytes) => one(repeat("😀", bytes / 3)),
  "Han characters": (bytes) => one(repeat("漢字", bytes / 3)),
  "results of one text": (bytes) => {
    const value = repeat("const value = compute(input);\n", 2_000);
    return [
      say("Go."),
      ...list(Math.floor(bytes / 2_300), (at) => [
        answer(call(at, "Read", { file_path: "a.ts" })),
        { results: [result(at, value)] },
      ]).flat(),
      ...end,
    ];
  },
  "results that differ in a line": (bytes) => {
    const lines = list(60, (at) => `const value${at} = compute(input${at});`);
    return [
      say("Go."),
      ...list(Math.floor(bytes / 2_600), (at) => [
        answer(call(at, "Read", { file_path: "a.ts" })),
        { results: [result(at, lines.with(at % 60, `changed ${at}`).join("\n"))] },
      ]).flat(),
      ...end,
    ];
  },
  "parallel results of one text": (bytes) => {
    const count = Math.floor(bytes / 600);
    const value = repeat("const value = compute(input);\n", 400);
    return [
      say("Go."),
      { answer: list(count, (at) => call(at, "Read", { file_path: "a.ts" })) },
      { results: list(count, (at) => result(at, value)) },
      ...end,
    ];
  },
  "keys of an input": (bytes) => [
    say("Go."),
    answer(call(0, "Read", Object.fromEntries(list(Math.floor(bytes / 20), (at) => [`key${at}`, at])))),
    { results: [result(0)] },
    ...end,
  ],
  "an input within inputs": (bytes) => {
    let input = {};
    for (let depth = 0; depth < Math.min(400, bytes / 6); depth++) input = { a: input };
    return [say("Go."), answer(call(0, "Read", input)), { results: [result(0)] }, ...end];
  },
  images: (bytes) => [
    say("Go."),
    ...list(Math.floor(bytes / 300), () => ({ say: [text("look"), { image: pixel }] })),
    ...end,
  ],
  thinking: (bytes) => [
    say("Go."),
    ...list(Math.floor(bytes / 300), (at) => [
      answer({ thinking: `hm ${at}` }, call(at)),
      { results: [result(at)] },
    ]).flat(),
    ...end,
  ],
};
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const anthropicPart = (part) => {
  if (part.call) return { type: "tool_use", ...part.call };
  if (part.thinking) return { type: "thinking", thinking: part.thinking, signature: "c2ln" };
  if (part.image) return { type: "image", source: { type: "base64", media_type: "image/png", data: part.image } };
  return { type: "text", text: part.text };
};
const anthropicMessage = (turn) => {
  if (turn.system !== undefined) return { role: "system", content: turn.system };
  if (turn.results) {
    return {
      role: "user",
      content: turn.results.map(({ id, text: content }) => ({ type: "tool_result", tool_use_id: id, content })),
    };
  }
  return { role: turn.say ? "user" : "assistant", content: (turn.say ?? turn.answer).map(anthropicPart) };
};

const openaiMessages = (turn) => {
  if (turn.system !== undefined) return [{ role: "system", content: turn.system }];
  if (turn.results) return turn.results.map(({ id, text: content }) => ({ role: "tool", tool_call_id: id, content }));
  if (turn.say) {
    const content = turn.say.map((part) =>
      part.image
        ? { type: "image_url", image_url: { url: `data:image/png;base64,${part.image}` } }
        : { type: "text", text: part.text },
    );
    return [{ role: "user", content }];
  }
  const calls = turn.answer.flatMap(({ call: made }) =>
    made
      ? [{ id: made.id, type: "function", function: { name: made.name, arguments: JSON.stringify(made.input) } }]
      : [],
  );
  const content = turn.answer
    .filter((part) => part.text !== undefined)
    .map((part) => ({ type: "text", text: part.text }));
  return [
    { role: "assistant", content: content.length > 0 ? content : null, ...(calls.length > 0 && { tool_calls: calls }) },
  ];
};

const responsesItems = (turn) => {
  if (turn.system !== undefined)
    return [{ type: "message", role: "developer", content: [{ type: "input_text", text: turn.system }] }];
  if (turn.results)
    return turn.results.map(({ id, text: output }) => ({ type: "function_call_output", call_id: id, output }));
  if (turn.say) {
    const content = turn.say.map((part) =>
      part.image
        ? { type: "input_image", image_url: `data:image/png;base64,${part.image}` }
        : { type: "input_text", text: part.text },
    );
    return [{ type: "message", role: "user", content }];
  }
  return turn.answer.map((part, index) => {
    if (part.call)
      return {
        type: "function_call",
        call_id: part.call.id,
        name: part.call.name,
        arguments: JSON.stringify(part.call.input),
      };
    if (part.thinking)
      return {
        type: "reasoning",
        id: `rs_${index}`,
        summary: [{ type: "summary_text", text: part.thinking }],
        encrypted_content: "c2ln",
      };
    return { type: "message", role: "assistant", content: [{ type: "output_text", text: part.text }] };
  });
};

const aiSdkMessage = (turn) => {
  if (turn.system !== undefined) return { role: "system", content: turn.system };
  if (turn.results) {
    return {
      role: "tool",
      content: turn.results.map(({ id, text: value }) => ({
        type: "tool-result",
        toolCallId: id,
        toolName: "Read",
        output: { type: "text", value },
      })),
    };
  }
  const content = (turn.say ?? turn.answer).map((part) => {
    if (part.call)
      return { type: "tool-call", toolCallId: part.call.id, toolName: part.call.name, input: part.call.input };
    if (part.thinking) return { type: "reasoning", text: part.thinking };
    if (part.image) return { type: "image", image: part.image, mediaType: "image/png" };
    return { type: "text", text: part.text };
  });
  return { role: turn.say ? "user" : "assistant", content };
};

const geminiContent = (turn) => {
  if (turn.system !== undefined) return { role: "user", parts: [{ text: turn.system }] };
  if (turn.results) {
    return {
      role: "user",
      parts: turn.results.map(({ id, text: output }) => ({
        functionResponse: { id, name: "Read", response: { output } },
      })),
    };
  }
  const parts = (turn.say ?? turn.answer).map((part) => {
    if (part.call) return { functionCall: { id: part.call.id, name: part.call.name, args: part.call.input } };
    if (part.thinking) return { text: part.thinking, thought: true };
    if (part.image) return { inlineData: { mimeType: "image/png", data: part.image } };
    return { text: part.text };
  });
  return { role: turn.say ? "user" : "model", parts };
};

const rfcMessage = (turn) => {
  const message = anthropicMessage(turn);
  if (turn.results) return { ...message, role: "tool" };
  const content = Array.isArray(message.content)
    ? message.content.filter(({ type }) => type !== "thinking")
    : message.content;
  return { ...message, content };
};

/** Text of a history in the format of a provider. */
export const histories = {
  anthropic: (turns) => JSON.stringify(turns.map(anthropicMessage)),
  openai: (turns) => JSON.stringify(turns.flatMap(openaiMessages)),
  responses: (turns) => JSON.stringify(turns.flatMap(responsesItems)),
  "ai-sdk": (turns) => JSON.stringify(turns.map(aiSdkMessage)),
  gemini: (turns) => JSON.stringify(turns.map(geminiContent)),
  rfc: (turns) => JSON.stringify(turns.map(rfcMessage)),
};

const start = Date.parse("2026-01-05T10:00:00Z");
const time = (at) => new Date(start + at * 1_000).toISOString();
const jsonLines = (lines) => `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`;

function claudeCode(turns) {
  let parent = null;
  let at = 0;
  const line = (type, message) => {
    const uuid = `u${at}`;
    const made = { type, uuid, parentUuid: parent, sessionId: "s1", timestamp: time(at++), message };
    parent = uuid;
    return made;
  };
  return jsonLines(
    turns.flatMap((turn) => {
      const message = anthropicMessage(turn);
      if (turn.answer === undefined) return [line("user", { ...message, role: "user" })];
      const usage = {
        input_tokens: 10,
        cache_read_input_tokens: 20_000 + 50 * at,
        cache_creation_input_tokens: 50,
        output_tokens: 5,
      };
      const id = `msg_${at}`;
      return message.content.map((block) =>
        line("assistant", { role: "assistant", id, model: "claude-sonnet-4-5", content: [block], usage }),
      );
    }),
  );
}

function codex(turns) {
  let at = 0;
  const line = (type, payload) => ({ timestamp: time(at++), type, payload });
  return jsonLines([
    line("session_meta", { id: "s1", cwd: "/p", base_instructions: { text: "Be brief." } }),
    line("turn_context", { model: "gpt-5-codex" }),
    ...turns.flatMap((turn) => {
      const items = responsesItems(turn).map((item) => line("response_item", item));
      if (turn.answer === undefined) return items;
      const usage = { input_tokens: 3_000 + 50 * at, cached_input_tokens: 2_950 + 50 * at, output_tokens: 5 };
      return [...items, line("token_usage_record", { response_id: `r${at}`, usage })];
    }),
  ]);
}

function geminiCli(turns) {
  const head = { sessionId: "s1", projectHash: "p1", startTime: time(0) };
  const lines = turns.map((turn, at) => {
    const { parts } = geminiContent(turn);
    const line = { id: `g${at}`, timestamp: time(at), type: turn.answer ? "gemini" : "user", content: parts };
    if (turn.answer === undefined) return line;
    return {
      ...line,
      model: "gemini-2.5-pro",
      tokens: { input: 3_000 + 50 * at, cached: 2_950 + 50 * at, output: 5, thoughts: 0 },
    };
  });
  return jsonLines([head, ...lines]);
}

function opencode(turns) {
  const messages = [];
  for (const [at, turn] of turns.entries()) {
    if (turn.results) {
      const waiting = new Map(messages.at(-1)?.parts.map((part) => [part.callID, part]));
      for (const { id, text: output } of turn.results) {
        const part = waiting.get(id);
        if (part !== undefined) part.state = { ...part.state, status: "completed", output };
      }
      continue;
    }
    const parts = (turn.say ?? turn.answer ?? [{ text: turn.system }]).map((part) => {
      if (part.call)
        return {
          type: "tool",
          callID: part.call.id,
          tool: part.call.name,
          state: { status: "running", input: part.call.input },
        };
      if (part.thinking)
        return { type: "reasoning", text: part.thinking, metadata: { anthropic: { signature: "c2ln" } } };
      if (part.image) return { type: "file", mime: "image/png", url: `data:image/png;base64,${part.image}` };
      return { type: "text", text: part.text };
    });
    const tokens = { input: 10, output: 5, reasoning: 0, cache: { read: 3_000 + 50 * at, write: 50 } };
    const created = start + at * 1_000;
    const info = turn.answer
      ? {
          id: `m${at}`,
          role: "assistant",
          modelID: "claude-sonnet-4-5",
          providerID: "anthropic",
          time: { created, completed: created + 900 },
          tokens,
        }
      : { id: `m${at}`, role: "user", time: { created } };
    messages.push({ info, parts });
  }
  return JSON.stringify({ info: { id: "s1", directory: "/p" }, messages });
}

function pi(turns) {
  let parentId = null;
  let at = 0;
  const line = (message) => {
    const id = `e${at}`;
    const made = {
      type: "message",
      id,
      parentId,
      timestamp: time(at),
      message: { ...message, timestamp: start + 1_000 * at++ },
    };
    parentId = id;
    return made;
  };
  const lines = turns.flatMap((turn) => {
    if (turn.results) {
      return turn.results.map(({ id, text: value }) =>
        line({
          role: "toolResult",
          toolCallId: id,
          toolName: "Read",
          content: [{ type: "text", text: value }],
          isError: false,
        }),
      );
    }
    if (turn.answer === undefined) {
      const content = (turn.say ?? [{ text: turn.system }]).map((part) =>
        part.image ? { type: "image", data: part.image, mimeType: "image/png" } : { type: "text", text: part.text },
      );
      return [line({ role: "user", content })];
    }
    const content = turn.answer.map((part) => {
      if (part.call) return { type: "toolCall", id: part.call.id, name: part.call.name, arguments: part.call.input };
      if (part.thinking) return { type: "thinking", thinking: part.thinking, thinkingSignature: "c2ln" };
      return { type: "text", text: part.text };
    });
    const usage = { input: 10, output: 5, cacheRead: 3_000 + 50 * at, cacheWrite: 50 };
    return [
      line({
        role: "assistant",
        content,
        model: "claude-sonnet-4-5",
        provider: "anthropic",
        usage,
        stopReason: "stop",
        responseId: `r${at}`,
      }),
    ];
  });
  return jsonLines([{ type: "session", version: 3, id: "s1", cwd: "/p", timestamp: time(0) }, ...lines]);
}

/** The text of a recording as a client writes it. */
export const recordings = { "claude-code": claudeCode, codex, "gemini-cli": geminiCli, opencode, pi };

/** The shortest messages that a recording can have: thousands of calls in 1 MB. */
export const shortTurns = (bytes) =>
  jsonLines(
    list(Math.floor(bytes / 62), (at) => [
      { role: "user", content: `${at}` },
      { role: "assistant", content: "b" },
    ]).flat(),
  );

/** Turns of Claude Code, about 200 bytes each. `chooseParent` returns the turn that a turn follows. */
function forkedSession(count, chooseParent) {
  const line = (role, uuid, parentUuid, content) => ({ type: role, uuid, parentUuid, message: { role, content } });
  return jsonLines(
    list(count, (at) => [
      line("user", `u${at}`, at === 0 ? null : `a${chooseParent(at)}`, `question ${at}`),
      line("assistant", `a${at}`, `u${at}`, "b"),
    ]).flat(),
  );
}

/** Sessions of Claude Code that go back to an earlier turn again and again. */
export const forks = {
  // Refused: each of thousands of forks would repeat thousands of messages.
  "to the middle": (bytes) => {
    const middle = Math.floor(bytes / 400);
    return forkedSession(2 * middle, (at) => Math.min(at, middle) - 1);
  },
  // Just what is not yet refused: ten times as many messages as the file has.
  "to a short start": (bytes) => forkedSession(Math.floor(bytes / 200), (at) => Math.min(at, 10) - 1),
  "to a long start": (bytes) => {
    const count = Math.floor(bytes / 200);
    return forkedSession(count, (at) => Math.min(at, count - 9) - 1);
  },
  "from the end to the first turn": (bytes) => {
    const middle = Math.floor(bytes / 400);
    return forkedSession(2 * middle, (at) => (at < middle ? at - 1 : 0));
  },
};

/** Sessions of Claude Code that record their requests. */
export const recordedRequests = {
  "one after an answer of thousands of lines": (bytes) =>
    `${claudeCode(conversations["calls in one message"](bytes))}${jsonLines([{ type: "api-request", id: "r", tail: [] }])}`,
  "one for each answer": (bytes) =>
    jsonLines(
      list(Math.floor(bytes / 620), (at) => {
        const [question, answered] = [`question ${at}`, `answer ${at}`];
        const uuid = `a${at}`;
        const message = { role: "assistant", id: `msg_${at}`, content: [{ type: "text", text: answered }] };
        const tail = [...(at === 0 ? [] : [hashOf("assistant", `answer ${at - 1}`)]), hashOf("user", question)];
        const request = { type: "api-request", id: `r${at}`, tail, timestamp: time(at) };
        return [
          {
            type: "user",
            uuid: `u${at}`,
            parentUuid: at === 0 ? null : `a${at - 1}`,
            message: { role: "user", content: question },
          },
          at === 0 ? request : { ...request, base: `r${at - 1}`, keep: 2 * at - 1 },
          { type: "assistant", uuid, parentUuid: `u${at}`, requestRef: `r${at}`, message, timestamp: time(at) },
        ];
      }).flat(),
    ),
};
const hashOf = (role, value) =>
  createHash("sha256")
    .update(`{"content":[${JSON.stringify({ text: value, type: "text" })}],"role":"${role}"}`)
    .digest("hex");

/** Files that AI tools load, each about `bytes`. */
export const instructions = {
  "one line": (bytes) => repeat("lorem ipsum ", bytes),
  "one letter": (bytes) => repeat("a", bytes),
  fences: (bytes) => repeat("```\n", bytes),
  "open fences": (bytes) => repeat("````js\nx\n", bytes),
  "nested lists": (bytes) => list(Math.floor(Math.sqrt(2 * bytes)), (at) => `${" ".repeat(at)}- a`).join("\n"),
  quotes: (bytes) => repeat(">", bytes),
  headings: (bytes) => repeat("# a\n", bytes),
  "longer and longer code": (bytes) => list(Math.floor(Math.sqrt(2 * bytes)), (at) => "`".repeat(at)).join(" "),
  "imports of missing files": (bytes) => list(Math.floor(bytes / 11), (at) => `@f${at}.md`).join("\n"),
  "one import again and again": (bytes) => repeat("@a.md ", bytes),
  comments: (bytes) => repeat("<!-- a -->\n", bytes),
  "open comments": (bytes) => repeat("<!--", bytes),
  "our markers": (bytes) => repeat("<!-- plimsoll:begin -->\n", bytes),
  "open front matter": (bytes) => `---\n${repeat("a: b\n", bytes)}`,
  "one paragraph": (bytes) => repeat("Always write tests for the code that you change.\n\n", bytes),
  "different lines": (bytes) =>
    list(Math.floor(bytes / 40), (at) => `- Rule ${at}: use ${at * 7}, never ${at}.`).join("\n"),
  links: (bytes) => repeat("[a](", bytes),
  "at signs": (bytes) => repeat("@", bytes),
};
