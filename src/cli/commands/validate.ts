import { type FormatName, formatOfRequest, validateRequest } from "../../core/messages/index.ts";
import { countNoun, printable } from "../../core/text/index.ts";
import { renderTable } from "../../host/index.ts";
import { type Command, defineCommand } from "../command.ts";
import { formatOption, readMessagesInput } from "../text-input.ts";

export const validateCommand: Command = defineCommand({
  arguments: [{ name: "FILE", optional: true, summary: 'messages as JSON or JSON Lines, or "-" for standard input' }],
  options: {
    ...formatOption,
    strict: {
      summary: "also report what sources disagree about, such as alternating roles",
    },
  },
  details: `Reports what the provider would refuse: results without calls and calls without results, repeated ids,
misplaced roles and blocks, empty texts, unsigned thinking, cache markers, settings that the request's model does
not support.
FILE or standard input holds a list of messages, a request with messages, input or contents, or JSON Lines with one
message per line (a first line with "meta" is ignored). A bare list is a history: it may start with the system prompt
and end with the assistant. A list or JSON Lines of requests is a recording, in the order in which they were sent: it
also shows thinking that is bound to text which a later request changed, on models that refuse it then.
The format is detected unless you set --format. The exit code is 1 if there is a problem.`,
  examples: [
    { line: "plimsoll validate request.json", meaning: "check a request before you send it" },
    { line: "plimsoll validate session.jsonl --strict", meaning: "check a recorded session" },
    { line: "plimsoll validate requests.jsonl", meaning: "check all requests of a conversation together" },
    { line: "plimsoll trim h.json --window 200000 | plimsoll validate", meaning: "check the result of a trim" },
    { line: "plimsoll validate h.json --json | jq -r '.[].rule' | sort | uniq -c", meaning: "JSON for programs" },
  ],
  async run(call) {
    const { format: name = "auto", strict } = call.options;
    const { messages, request, requests } = await readMessagesInput(call.arguments[0], call, { takesRequests: true });
    const options = { format: name === "auto" ? undefined : (name as FormatName), strict };
    const value = request ?? messages ?? [];
    const problems = validateRequest(value, options);
    const subject =
      requests === undefined
        ? `${countNoun(messages?.length ?? 0, "message")}, ${formatOfRequest(value, options)}`
        : countNoun(requests.length, "request");
    call.output.note(
      problems.length === 0 ? `valid: ${subject}` : `${countNoun(problems.length, "problem")} in ${subject}`,
    );
    return {
      json: problems,
      get text() {
        if (problems.length === 0) return "";
        const rows = problems.map(({ path, rule, message }) => [path, rule, printable(message)]);
        const table = [["path", "rule", "message"], ...rows];
        return renderTable(table, ["left", "left", "left"], call.output.style).join("\n");
      },
      failed: problems.length > 0,
    };
  },
});
