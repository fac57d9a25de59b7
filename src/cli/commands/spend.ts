/** The commands that Claude Code runs by itself: its status line, and its guard before each tool call. */

import { basename } from "node:path";
import { allowMore, guardCall, listGuardRecords, readGuardRecord, statusLine, verdictOn } from "../../clients/index.ts";
import { usageError } from "../../core/errors.ts";
import { printable } from "../../core/text/index.ts";
import { type Environment, loadConfig, noteLeftOut } from "../../host/index.ts";
import { readSpend } from "../../recordings/index.ts";
import { type Call, type Command, type CommandResult, defineCommand } from "../command.ts";
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
  arguments: [
    { name: "ACTION", choices: ["allow"], summary: "allow: let a session that was stopped spend more", optional: true },
    { name: "USD", summary: "how many dollars more", optional: true },
  ],
  options: {
    hook: { summary: "answer Claude Code before a tool call; reads the hook's JSON on standard input" },
    transcript: { value: "FILE", summary: "also show the session that this transcript of Claude Code records" },
    session: { value: "ID", summary: "with allow: the session (default: the one that was stopped last)" },
    ...trustOption,
  },
  details: `Shows what Claude Code spent today, the limits of the configuration, and what was stopped:
  guard: { session_usd: 5, day_usd: 20, on_limit: ask }
With --hook it is a PreToolUse hook: it prints nothing below the limits. At a limit it asks or denies, and in a run that
nobody watches (claude -p) it stops the run before the tool. After a yes it asks again when as much as the limit was
spent once more. It also asks if a price is not known or a transcript cannot be read.
Dollars are list prices of the API.`,
  examples: [
    { line: "plimsoll guard", meaning: "what was spent today, the limits, and the last stops" },
    { line: "plimsoll guard allow 5", meaning: "let the session that was stopped last spend $5 more" },
    { line: "plimsoll guard --transcript SESSION.jsonl", meaning: "also what one session spent" },
    { line: "plimsoll guard --hook < call.json", meaning: "what the hook answers" },
  ],
  async run(call) {
    const { options, cwd, env } = call;
    const now = new Date();
    const place = { cwd, env, now };
    if (options.hook) {
      const answer = await guardCall(await readPiped(call), place);
      return { json: answer ?? {}, text: answer === undefined ? "" : `${JSON.stringify(answer)}\n`, exact: true };
    }
    const config = await loadConfig({ cwd, env });
    noteLeftOut(config.leftOut, call, "guard");
    const { guard, prices } = config.values;
    const [action, more] = call.arguments;
    if (action === "allow") return allow(Number(more), { sessionId: options.session, guard, place, prices });
    const { transcript } = options;
    const spend = await readSpend({ transcript, env, now, prices });
    const record = transcript === undefined ? undefined : readGuardRecord(env, basename(transcript, ".jsonl"));
    const { decision, reason } = verdictOn(spend, guard, { ...place, record });
    const { stops, lines } = listStops(env);
    const money = (usd: number, limit: number | undefined): string =>
      `$${usd.toFixed(2)}${limit === undefined ? "" : ` of $${limit.toFixed(2)}`}`;
    const text = [
      ...(transcript === undefined ? [] : [`session  ${money(spend.session.usd, guard.session_usd)}`]),
      `today    ${money(spend.day.usd, guard.day_usd)}`,
      ...(guard.session_usd === undefined && guard.day_usd === undefined ? ["no limits are set"] : []),
      ...(reason === undefined ? [] : [reason]),
      ...lines,
    ].join("\n");
    const session = transcript === undefined ? undefined : spend.session;
    return { json: { session, day: spend.day, guard, decision, reason, stops }, text };
  },
});

async function allow(
  usd: number,
  {
    sessionId: named,
    ...rest
  }: Omit<Parameters<typeof allowMore>[1], "sessionId"> & {
    readonly sessionId: string | undefined;
  },
): Promise<CommandResult> {
  if (!(usd > 0)) throw usageError("allow needs a number of dollars above 0", "As in: plimsoll guard allow 5");
  const sessionId = named ?? listGuardRecords(rest.place.env)[0]?.sessionId;
  if (sessionId === undefined) throw usageError("the guard has stopped no session", "Name one with --session.");
  const allowed = await allowMore(usd, { sessionId, ...rest });
  const lines = Object.entries(allowed).map(([key, limit]) => `${key.split("_")[0]} up to $${limit.toFixed(2)}`);
  const text = `session ${printable(sessionId)} may go on: ${lines.join(", ")}`;
  return { json: { session: sessionId, allowed }, text };
}

/** Returns the newest stops of all sessions, and the lines that show them. */
function listStops(env: Environment) {
  const stops = listGuardRecords(env)
    .flatMap(({ sessionId, record }) => record.stops.map((stop) => ({ session: sessionId, ...stop })))
    .sort((left, right) => (left.at < right.at ? 1 : -1))
    .slice(0, 5);
  const lines = stops.map(({ at, session, decision, tool, reason }) => {
    const verb = decision === "ask" ? "asked before" : "denied";
    return `${at.slice(0, 16).replace("T", " ")} ${verb} ${printable(tool)} in session ${printable(session)}: ${printable(reason)}`;
  });
  return { stops, lines: lines.length === 0 ? [] : ["last stops:", ...lines] };
}

/** Returns what Claude Code wrote to standard input, or "" if nothing is piped in. */
async function readPiped({ stdin, stdinKind }: Pick<Call, "stdin" | "stdinKind">): Promise<string> {
  const chunks: Buffer[] = [];
  if (stdinKind === "piped") for await (const chunk of stdin) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
