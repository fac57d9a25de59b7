/** Recognises the results of agents that do without tool calls. Such an agent writes its command as text, and its program
 *  puts the result into the next user message. */
import { textsOf } from "./call-input.ts";
import type { CountedMessage, CountedPart } from "./lens.ts";

/** How one program frames a result. A text is a result only if it is the whole frame and nothing else, so that a person
 *  who quotes one keeps every word. */
interface Framing {
  /** What the text starts with. */
  readonly opens: RegExp;
  /** What it ends with, at the earliest place. Absent if the frame has no end. */
  readonly closes?: string;
  /** What the assistant wrote before. Needed if the frame alone is as short as what a person might write. */
  readonly asked?: RegExp;
}

/** A command in a fenced block, or ReAct's action. */
const action = /^```\w*\n|^\s*(?:\*\*)?Action(?: \d+)?(?:\*\*)?:/m;

const framings: readonly Framing[] = [
  // mini-SWE-agent 1.x, config/extra/swebench.yaml, action_observation_template (2025-11)
  { opens: /^<returncode>-?\d+<\/returncode>\n<output>\n/, closes: "</output>" },
  {
    opens: /^<returncode>-?\d+<\/returncode>\n<warning>\n[^<]*<\/warning>\s*<output_head>\n/,
    closes: "</output_tail>",
  },
  // The same file, timeout_template (2025-11)
  {
    opens: /^The last command <command>[\s\S]{0,20000}?<\/command> timed out and has been killed\.\n/,
    closes: "make sure to avoid those requiring interactive input.",
  },
  // aider 0.86, aider/prompts.py, run_output: it ends with a line break (2025-08)
  { opens: /^I ran this command:\n\n[^\n]+(?:\n[^\n]+)*\n\nAnd got this output:\n\n(?=[\s\S]*\n$)/ },
  // LangChain 0.3, agents/conversational_chat/prompt.py, TEMPLATE_TOOL_RESPONSE (2025-05)
  {
    opens: /^TOOL RESPONSE: ?\n-{10,}\n/,
    closes: "Remember to respond with a markdown code snippet of a json blob with a single action, and NOTHING else.",
  },
  // ReAct (Yao et al., 2023) and smolagents 1.x; SWE-agent 1.x, config/default.yaml, next_step_template (2025-05)
  { opens: /^Observation(?: \d+)?:\s/, asked: action },
  { opens: /^OBSERVATION:\n/, asked: action },
];

/** Reads framed texts of a user message as results, if the message answers an assistant that called no tool. Otherwise
 *  returns the same object. The first message of a person answers nobody, so it is never a result. */
export function withFramedResults(message: CountedMessage, previous: CountedMessage | undefined): CountedMessage {
  if (message.role !== "user" || previous?.role !== "assistant") return message;
  if (previous.parts.some(({ kind }) => kind === "tool_call")) return message;
  const parts = message.parts.map(
    (part): CountedPart => (isFramed(part, previous) ? { ...part, kind: "tool_result", isFramed: true } : part),
  );
  return parts.some((part, index) => part !== message.parts[index]) ? { ...message, parts } : message;
}

function isFramed(part: CountedPart, previous: CountedMessage): boolean {
  if (part.kind !== "text") return false;
  const [text = "", ...others] = textsOf(part);
  if (others.length > 0) return false;
  return framings.some(({ opens, closes, asked }) => {
    const [opening] = opens.exec(text) ?? [];
    if (opening === undefined) return false;
    const isWhole =
      closes === undefined || text.indexOf(closes, opening.length) === text.trimEnd().length - closes.length;
    if (!isWhole) return false;
    return asked === undefined || previous.parts.some((each) => textsOf(each).some((said) => asked.test(said)));
  });
}
