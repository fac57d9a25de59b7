import { policyNames } from "../../history/index.ts";
import { formatNames } from "../../messages/index.ts";
import { counterOptions } from "../choose-counters.ts";
import { type Command, defineCommand } from "../command.ts";
import { runTrim } from "../run-trim.ts";
import { storeOptions } from "../store-file.ts";

export const trimCommand: Command = defineCommand({
  arguments: [{ name: "FILE", optional: true, summary: 'messages as JSON or JSON Lines, or "-" for standard input' }],
  options: {
    window: { value: "N", summary: "the model's limit in tokens" },
    reserve: {
      value: "N",
      summary: "tokens kept free for the answer (default: from the configuration, 16000, at most half of the window)",
    },
    "prefix-tokens": {
      value: "N",
      summary: "tokens of system text and tools that are not in the input (default: 0)",
    },
    format: { value: "NAME", choices: ["auto", ...formatNames], summary: "the format of the messages" },
    policy: {
      ...{ value: "NAME", choices: policyNames },
      summary: "how to trim (default: from the configuration, economic)",
    },
    keep: {
      value: "N",
      summary: "assistant turns that are trimmed last (default: from the configuration, 10)",
    },
    threshold: {
      value: "SHARE",
      summary: "share of the budget at which rfc and rfc-headroom trim (default: from the configuration, 0.8)",
    },
    tools: { value: "FILE", summary: "JSON file with the tool definitions that you send" },
    ...counterOptions,
    checkpoint: { value: "FILE", summary: "file with the decisions so far; read if it exists, written afterwards" },
    session: { value: "ID", summary: "name of the conversation whose decisions so far are in the store" },
    ...storeOptions,
    stats: { summary: "print token numbers to stderr" },
  },
  details: `Prints messages that fit into window - reserve - prefix tokens. Replaces tool results, tool inputs and
thinking with placeholders, the oldest first. The output has the form of the input: a list, JSON Lines, or the same
request with new messages (its system text and tools are counted). Text that is not trimmed stays as written.
With --checkpoint, the next run on the longer history repeats the earlier decisions and appends what is new, so the
provider's prompt cache stays valid until more must be trimmed. Use one checkpoint for each conversation.
With --session, the decisions are in the store instead, and so is what was trimmed: plimsoll recall ID
prints it. Machines that share a store continue each other's conversations.
If the messages cannot fit because of text that people wrote, nothing is printed and the exit code is 1. The rfc
policies print their result with a warning. The counter is that of --counter, or else of --model, or else of the
configuration, or else of the request's model, or else auto.`,
  examples: [
    { line: "plimsoll trim request.json --window 200000", meaning: "trim a request so that it fits" },
    {
      line: "plimsoll trim h.json --window 128000 --checkpoint h.state --stats",
      meaning: "trim after each turn, and show the numbers",
    },
    {
      line: "plimsoll trim h.json --window 128000 --session build-7",
      meaning: "the same, with the decisions in the store",
    },
    {
      line: "plimsoll trim run.jsonl --window 64000 --policy frugal | plimsoll validate",
      meaning: "trim deeper, and check the result",
    },
    { line: "plimsoll trim h.json --window 200000 --json | jq .stats", meaning: "JSON for programs" },
  ],
  run: runTrim,
});
