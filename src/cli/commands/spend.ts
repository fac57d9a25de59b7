/** The commands that Claude Code runs by itself: its status line, and its guard before each tool call. */

import { guardCall, statusLine, verdictOn } from "../../clients/index.ts";
import { loadConfig, noteLeftOut } from "../../host/index.ts";
import { readSpend } from "../../recordings/index.ts";
import { type Call, type Command, defineCommand } from "../command.ts";
import { trustOption } from "../shared-options.ts";

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
  run: async (call) => statusLine(await readPiped(call), { env: call.env, now: new Date() }),
});

export const guardCommand: Command = defineCommand({
  options: {
    hook: { summary: "answer Claude Code before a tool call; reads the hook's JSON on standard input" },
    transcript: { value: "FILE", summary: "also show the session that this transcript of Claude Code records" },
    ...trustOption,
  },
  details: `Shows what Claude Code spent today, and the limits of the configuration:
  guard: { session_usd: 5, day_usd: 20, on_limit: ask }
With --hook it is a PreToolUse hook: it prints nothing below the limits. At a limit it asks or denies, and in a run that
nobody watches (claude -p) it ends the run. It also asks if a price is not known or a transcript cannot be read.
Dollars are list prices of the API.`,
  examples: [
    { line: "plimsoll guard", meaning: "what was spent today, and the limits" },
    { line: "plimsoll guard --transcript SESSION.jsonl", meaning: "also what one session spent" },
    { line: "plimsoll guard --hook < call.json", meaning: "what the hook answers" },
  ],
  async run(call) {
    const { options, cwd, env } = call;
    const now = new Date();
    if (options.hook) {
      const answer = await guardCall(await readPiped(call), { cwd, env, now });
      return { json: answer ?? {}, text: answer === undefined ? "" : `${JSON.stringify(answer)}\n`, exact: true };
    }
    const config = await loadConfig({ cwd, env });
    noteLeftOut(config.leftOut, call, "guard");
    const { guard, prices } = config.values;
    const { transcript } = options;
    const spend = await readSpend({ transcript, env, now, prices });
    const { decision, reason } = verdictOn(spend, guard, { cwd, env, now });
    const money = (usd: number, limit: number | undefined): string =>
      `$${usd.toFixed(2)}${limit === undefined ? "" : ` of $${limit.toFixed(2)}`}`;
    const lines = [
      ...(transcript === undefined ? [] : [`session  ${money(spend.session.usd, guard.session_usd)}`]),
      `today    ${money(spend.day.usd, guard.day_usd)}`,
      ...(guard.session_usd === undefined && guard.day_usd === undefined ? ["no limits are set"] : []),
      ...(reason === undefined ? [] : [reason]),
    ];
    const session = transcript === undefined ? undefined : spend.session;
    return { json: { session, day: spend.day, guard, decision, reason }, text: lines.join("\n") };
  },
});

/** Returns what Claude Code wrote to standard input, or "" if nothing is piped in. */
async function readPiped({ stdin, stdinKind }: Pick<Call, "stdin" | "stdinKind">): Promise<string> {
  const chunks: Buffer[] = [];
  if (stdinKind === "piped") for await (const chunk of stdin) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
