import { type Command, defineCommand } from "../command.ts";
import { statusLine } from "../spend/status-line.ts";

export const statuslineCommand: Command = defineCommand({
  options: {},
  details: `Reads the JSON that Claude Code gives to a status line on standard input. Prints one line: tokens in the context, the
share of the newest answers' input that came from the cache, dollars of this session and of today with all sub-agents,
tokens that the plugin saved, and the cause and the price of the last loss of the cache.
Dollars are list prices of the API. To use it, put this into ~/.claude/settings.json:
  "statusLine": { "type": "command", "command": "plimsoll statusline" }`,
  examples: [
    { line: "plimsoll statusline < status.json", meaning: "the line for a saved input" },
    { line: "plimsoll statusline --json < status.json", meaning: "the same numbers for a program" },
  ],
  async run({ stdin, stdinKind, env }) {
    const chunks: Buffer[] = [];
    if (stdinKind === "piped") for await (const chunk of stdin) chunks.push(chunk);
    return statusLine(Buffer.concat(chunks).toString("utf8"), { env, now: new Date() });
  },
});
