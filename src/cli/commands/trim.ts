import { policyNames } from "../../history/index.ts";
import { formatNames } from "../../messages/index.ts";
import { counterOptions } from "../choose-counters.ts";
import { type Command, defineCommand } from "../command.ts";
import { runTrim } from "../trim/run-trim.ts";

export const trimCommand: Command = defineCommand({
  arguments: [
    { name: "FILE", optional: true, summary: 'messages as JSON or JSON Lines, or "-" for standard input' },
  ],
  options: {
    window: { value: "N", summary: "the model's limit in tokens" },
    reserve: { value: "N", summary: "tokens kept free for the answer (default: the configuration's, 16000)" },
    "prefix-tokens": {
      value: "N",
      summary: "tokens of system text and tools that are not in the input (default: 0)",
    },
    format: { value: "NAME", choices: ["auto", ...formatNames], summary: "the shape of the messages" },
    policy: {
      ...{ value: "NAME", choices: policyNames },
      summary: "how to trim (default: the configuration's, economic)",
    },
    keep: {
      value: "N",
      summary: "assistant turns that are trimmed last (default: the configuration's, 10)",
    },
    threshold: {
      value: "SHARE",
      summary: "share of the budget at which rfc and rfc-headroom trim (default: the configuration's, 0.8)",
    },
    tools: { value: "FILE", summary: "tool definitions that are sent along, as JSON" },
    ...counterOptions,
    checkpoint: { value: "FILE", summary: "decisions so far: read if it is there, written after" },
    stats: { summary: "tell the numbers on stderr" },
  },
  details: `Prints the messages within window - reserve - prefix tokens: tool results, tool inputs and thinking give way to
placeholders, oldest first. A list gives a list, a request with messages or input the same request with its messages
replaced (its system text and tools are counted), JSON Lines give JSON Lines. What is not trimmed stays as written.
With --checkpoint the next run, on the history that has grown, repeats what was decided and appends what is new, so
that the provider's prompt cache holds until more has to go. Use one checkpoint for each conversation.
If it cannot fit, because of what people wrote, nothing is printed and the exit code is 1; the rfc policies print what
they have and say so. The counter: --counter, else that of --model, else the configuration's, else that of the
request's model, else auto.`,
  examples: [
    { line: "plimsoll trim request.json --window 200000", meaning: "a request that fits" },
    {
      line: "plimsoll trim h.json --window 128000 --checkpoint h.state --stats",
      meaning: "turn by turn, and what happened",
    },
    {
      line: "plimsoll trim run.jsonl --window 64000 --policy frugal | plimsoll validate",
      meaning: "cut deeper, and check the result",
    },
    { line: "plimsoll trim h.json --window 200000 --json | jq .stats", meaning: "for programs" },
  ],
  run: runTrim,
});
