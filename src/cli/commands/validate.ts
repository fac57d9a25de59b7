import {
  type FormatName,
  formatNames,
  formatOfRequest,
  type Problem,
  validateRequest,
} from "../../messages/index.ts";
import { countNoun, printable } from "../../text/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { readMessagesInput } from "../messages-input.ts";
import type { Output } from "../output.ts";
import { renderTable } from "../table.ts";

export const validateCommand: Command = defineCommand({
  arguments: [
    { name: "FILE", optional: true, summary: 'messages as JSON or JSON Lines, or "-" for standard input' },
  ],
  options: {
    format: { value: "NAME", choices: ["auto", ...formatNames], summary: "the shape of the messages" },
    strict: {
      summary: "also what sources disagree about, such as alternating roles",
    },
  },
  details: `Tells what the provider would refuse: results without calls and calls without results, ids that come twice, roles and
blocks out of place, empty texts, unsigned thinking, cache markers, settings that the request's model does not take.
FILE, or what is piped in, holds a list of messages, a request with messages or input, or JSON Lines with one message
a line (a first line with "meta" is left out). A bare list is a history: it may start with the system prompt and end
with the assistant. The format is recognised unless --format tells it. The exit code is 1 if there is a problem.`,
  examples: [
    { line: "plimsoll validate request.json", meaning: "a request before it is sent" },
    { line: "plimsoll validate session.jsonl --strict", meaning: "a recorded session" },
    { line: "plimsoll trim h.json --window 200000 | plimsoll validate", meaning: "what a trim gives" },
    { line: "plimsoll validate h.json --json | jq -r '.[].rule' | sort | uniq -c", meaning: "for programs" },
  ],
  async run(call) {
    const { format: name = "auto", strict } = call.options;
    const { messages, request } = await readMessagesInput(call.arguments[0], call);
    const options = { format: name === "auto" ? undefined : (name as FormatName), strict };
    const value = request ?? messages ?? [];
    const problems = validateRequest(value, options);
    const subject = `${countNoun(messages?.length ?? 0, "message")}, ${formatOfRequest(value, options)}`;
    call.output.note(
      problems.length === 0 ? `valid: ${subject}` : `${countNoun(problems.length, "problem")} in ${subject}`,
    );
    return {
      json: problems,
      get text() {
        return renderProblems(problems, call.output);
      },
      failed: problems.length > 0,
    };
  },
});

function renderProblems(problems: readonly Problem[], { style }: Output): string {
  if (problems.length === 0) return "";
  const rows = problems.map(({ path, rule, message }) => [path, rule, printable(message)]);
  const [head, ...lines] = renderTable([["path", "rule", "message"], ...rows], ["left", "left", "left"]);
  return [style.dim(head!), ...lines].join("\n");
}
