import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createCounter } from "../tokens/index.ts";
import { withFramedResults } from "./framed-results.ts";
import { type CountedMessage, createMessageLens } from "./lens.ts";
import type { FormatName } from "./message-format.ts";

const counter = await createCounter("bytes/4");
const command = "THOUGHT: I look around.\n\n```bash\nls -la\n```";
const react = "Thought: I look around.\nAction: list_files\nAction Input: src";

/** Writes a user text and the assistant's text before it in each format. */
const formats: Readonly<Record<FormatName, (role: "user" | "assistant", text: string) => object>> = {
  anthropic: (role, text) => ({ role, content: [{ type: "text", text }] }),
  openai: (role, text) => ({ role, content: text }),
  responses: (role, text) => ({
    ...{ type: "message", role },
    content: [{ type: role === "user" ? "input_text" : "output_text", text }],
  }),
  "ai-sdk": (role, text) => ({ role, content: [{ type: "text", text }] }),
  gemini: (role, text) => ({ role: role === "user" ? "user" : "model", parts: [{ text }] }),
  rfc: (role, text) => ({ role, content: [{ type: "text", text }] }),
};

function kindsOf(text: string, said: string = command, format: FormatName = "openai"): string[] {
  const write = formats[format];
  const lens = createMessageLens([], { counter, format });
  const previous = lens.read(write("assistant", said), 0);
  return withFramedResults(lens.read(write("user", text), 1), previous).parts.map(({ kind }) => kind);
}

const tail = "Remember to respond with a markdown code snippet of a json blob with a single action, and NOTHING else.";
/** Each framing around an output. */
const framed: Readonly<Record<string, (output: string) => string>> = {
  "mini-SWE-agent": (output) => `<returncode>1</returncode>\n<output>\n${output}</output>`,
  "mini-SWE-agent, long": (output) =>
    `<returncode>0</returncode>\n<warning>\nThe output of your last command was too long.\n</warning><output_head>\n${output}\n</output_head>\n<elided_chars>\n9 characters elided\n</elided_chars>\n<output_tail>\n${output}\n</output_tail>`,
  "mini-SWE-agent, too late": (output) =>
    `The last command <command>sleep 99</command> timed out and has been killed.\nThe output of the command was:\n<output>\n${output}\n</output>\nPlease try another command and make sure to avoid those requiring interactive input.`,
  aider: (output) => `I ran this command:\n\nnpm test\n\nAnd got this output:\n\n${output}\n`,
  LangChain: (output) =>
    `TOOL RESPONSE: \n---------------------\n${output}\n\nUSER'S INPUT\n--------------------\n${tail}`,
  ReAct: (output) => `Observation: ${output}`,
  "SWE-agent": (output) => `OBSERVATION:\n${output}`,
};
const names = Object.keys(framed);

describe("the results of agents without tool calls", () => {
  it.each(names.flatMap((name) => Object.keys(formats).map((format) => [name, format as FormatName] as const)))(
    "are recognised as %s writes them, in the format %s",
    (name, format) => {
      for (const said of [command, `${react}\n${command}`])
        expect(kindsOf(framed[name]!("total 12\nREADME.md"), said, format)).toEqual(["tool_result"]);
    },
  );

  it("are recognised after the action of ReAct", () => {
    expect(kindsOf("Observation: 3 files", react)).toEqual(["tool_result"]);
    expect(kindsOf("Observation: the build is broken again", "What did you see?")).toEqual(["text"]);
  });

  it.each(names)("are the whole text: words of a person around %s make it the person's", (name) => {
    const text = framed[name]!("total 12");
    expect(kindsOf(`Why this?\n${text}`)).toEqual(["text"]);
    if (!["ReAct", "SWE-agent"].includes(name)) expect(kindsOf(`${text}\nWhy this?`)).toEqual(["text"]);
  });

  it("are the whole text: a question between two of them is the person's", () => {
    const text = framed["mini-SWE-agent"]!("total 12\n");
    expect(kindsOf(`${text}\nWhy this, and not the following?\n${text}`)).toEqual(["text"]);
  });

  it("answer an assistant: the first message and the answer to a tool call are never one", () => {
    const text = framed["mini-SWE-agent"]!("total 12\n");
    const lens = createMessageLens([], { counter, format: "anthropic" });
    const message = lens.read({ role: "user", content: text }, 0);
    const called = { role: "assistant", content: [{ type: "tool_use", id: "a", name: "run", input: {} }] };
    const befores: (CountedMessage | undefined)[] = [undefined, message, lens.read(called, 1)];
    for (const before of befores) expect(withFramedResults(message, before)).toBe(message);
  });

  it("are found part by part, so that a person's words beside one stay theirs", () => {
    const lens = createMessageLens([], { counter, format: "anthropic" });
    const previous = lens.read({ role: "assistant", content: command }, 0);
    const texts = [framed.aider!("ok"), "Go on, please."].map((text) => ({ type: "text", text }));
    const read = withFramedResults(lens.read({ role: "user", content: texts }, 1), previous);
    expect(read.parts.map(({ kind }) => kind)).toEqual(["tool_result", "text"]);
  });

  it("are never found in what a person writes", () => {
    const word = fc.constantFrom(
      "<output>",
      "</output>",
      "<returncode>0</returncode>",
      "\n",
      "fix it",
      "Action:",
      "```",
    );
    const texts = fc.oneof(
      fc.string(),
      fc.string({ unit: "binary" }),
      fc.array(word).map((words) => words.join(" ")),
    );
    fc.assert(
      fc.property(texts, (text) => kindsOf(text).join() === "text"),
      { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 20_000 : 300 },
    );
  });

  it("are read quickly, whatever a text looks like", { tags: ["perf"] }, () => {
    const started = process.cpuUsage();
    for (const start of [
      "<returncode>0</returncode>\n<warning>\n",
      "I ran this command:\n\n",
      "The last command <command>",
    ])
      kindsOf(`${start}${"a\n".repeat(500_000)}`);
    const { user } = process.cpuUsage(started);
    expect(user).toBeLessThan(2_000_000);
  });
});
