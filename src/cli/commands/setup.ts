/** `setup`: everything for the AI clients of this computer in one step, which `undo` takes back. */
import { findClients, pluginClients, type SetupPart, setUpClients } from "../../clients/index.ts";
import { usageError } from "../../core/errors.ts";
import { describeError, findProgram, homeDirectory, recordChanges, shownPath, withJournal } from "../../host/index.ts";
import { type Call, type Command, type CommandResult, defineCommand, type OptionValues } from "../command.ts";
import { createQuestions } from "../questions.ts";
import { dryRunOption } from "../shared-options.ts";

const options = {
  yes: { summary: "do it without a question" },
  ...dryRunOption,
  "no-statusline": { summary: "leave the status line of Claude Code as it is" },
  "no-check": { summary: "do not test the plugins afterwards" },
  "session-usd": { value: "USD", summary: "also stop sessions of Claude Code at this many dollars, with a question" },
} as const;
type SetupCall = Call<OptionValues<typeof options>>;

export const setupCommand: Command = defineCommand({
  arguments: [
    { name: "CLIENT", summary: "only these clients (default: all that are found)", optional: true, repeated: true },
  ],
  options,
  details: `Finds the AI clients of this computer, shows what it would write, and asks. Then it installs the plugin in each,
adds the status line to Claude Code, and tests each plugin with the real client, without a network. Settings that you
chose before stay. "plimsoll undo" takes all of it back, byte for byte.`,
  examples: [
    { line: "plimsoll setup", meaning: "show what would be written, and ask" },
    { line: "plimsoll setup --yes", meaning: "do it" },
    { line: "plimsoll setup claude-code pi --yes", meaning: "only for these two" },
    { line: "plimsoll setup --session-usd 5", meaning: "also with the spend guard" },
    { line: "plimsoll undo", meaning: "take it back" },
  ],
  async run(call) {
    const { env, output, options: given } = call;
    const clients = await chooseClients(call);
    if (clients.length === 0) return { json: { parts: [] }, text: "Found no AI client that can have a plugin." };
    const hasLimit = given["session-usd"] !== undefined;
    const sessionUsd = hasLimit ? Number(given["session-usd"]) : undefined;
    if (sessionUsd !== undefined && !(sessionUsd > 0)) throw usageError("--session-usd must be a number above 0");
    const wanted = { clients, env, hasStatusLine: given["no-statusline"] !== true, sessionUsd };
    const plan = await setUpClients({ ...wanted, dryRun: true });
    if (given["dry-run"] === true || !(await isWanted(plan, call))) return { ...render(plan, call), isReport: false };
    const root = homeDirectory(env);
    const parts = await withJournal({ root, env }, () =>
      recordChanges({ command: "setup", root, env }, () => setUpClients({ ...wanted, dryRun: false })),
    );
    const done = render(parts, call);
    const checks: string[] = [];
    for (const client of given["no-check"] === true ? [] : clients) {
      if ((await findProgram(client.program, env)) === undefined) continue;
      output.progress(`testing ${client.id}`);
      const place = { scope: "user", root, env } as const;
      const { passed, lines } = await client.check(place);
      const silence = client.findSilence?.(place);
      const works = passed && silence === undefined;
      checks.push(`${client.id}: ${works ? "the plugin works" : (silence?.message ?? lines.join("; "))}`);
    }
    const undo = 'To take it back, run "plimsoll undo".';
    return { ...done, text: [done.text, ...checks, undo].join("\n"), json: { ...done.json, checks } };
  },
});

async function chooseClients({ arguments: names, env, output }: SetupCall) {
  const found = await findClients(pluginClients, env);
  if ((await findProgram("codex", env)) !== undefined)
    output.note('codex can have no plugin. "plimsoll mcp install --tool codex-cli" gives it tools that page results.');
  const unknown = names.find((name) => !Object.hasOwn(pluginClients, name));
  if (unknown !== undefined)
    throw usageError(`there is no plugin for "${unknown}"`, `Clients: ${Object.keys(pluginClients).join(", ")}.`);
  const missing = names.find((name) => !found.some(({ id }) => id === name));
  if (missing !== undefined) throw usageError(`${missing} was not found on this computer`, "Install it first.");
  return names.length === 0 ? found : found.filter(({ id }) => names.includes(id));
}

/** Shows the plan and asks, unless the answer was given. Without a terminal nobody can answer. */
async function isWanted(plan: readonly SetupPart[], call: SetupCall): Promise<boolean> {
  const { options: given, output, stdin } = call;
  if (given.yes === true) return true;
  const terminal = stdin as unknown as NodeJS.ReadStream;
  if (terminal.isTTY !== true || output.json) {
    output.note("nothing was written. Run it again with --yes");
    return false;
  }
  output.problem(render(plan, call).text);
  const { signal } = new AbortController();
  return createQuestions({ stdin: terminal, output, signal, onAsking: () => {} })("Write these files?");
}

function render(parts: readonly SetupPart[], { cwd, env, output }: SetupCall) {
  const shown = (path: string) => shownPath(path, cwd, env);
  const problems = parts.flatMap(({ changes }) => changes.flatMap(({ problem }) => problem ?? []));
  for (const problem of problems) output.problem(describeError(problem, shown));
  const rows = parts.map(({ client, part, changes, note }) => {
    const changed = changes.filter(({ change }) => change !== undefined && change.before !== change.after);
    const isWritten = changed.some(({ change }) => change?.written);
    const failed = changes.some(({ problem }) => problem !== undefined);
    const state =
      note ??
      (failed ? "failed" : changed.length === 0 ? "is there already" : isWritten ? "written" : "would be written");
    return { client, part, state, files: changed.map(({ path }) => shown(path)) };
  });
  const lines = rows.flatMap(({ client, part, state, files }) => [
    `${client}: ${part}: ${state}`,
    ...files.map((file) => `  ${file}`),
  ]);
  return { json: { parts: rows }, text: lines.join("\n"), failed: problems.length > 0 } satisfies CommandResult;
}
