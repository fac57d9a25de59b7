import { readdir } from "node:fs/promises";
import { basename, join, parse, resolve } from "node:path";
import { usageError } from "../../core/errors.ts";
import { printable, toByteString, wholeNumber } from "../../core/text/index.ts";
import {
  changeFile,
  isInside,
  loadConfig,
  modelForCounter,
  requireTrust,
  shownPath,
  takeEndSignals,
} from "../../host/index.ts";
import { agentPresets, createEventReader } from "../../plans/agent/index.ts";
import { composeContext, findLoadedFiles, generateNebula, readContextSettings } from "../../plans/index.ts";
import { dollars } from "../../plans/nebula/index.ts";
import { agentFor, agentOptions, requireAgent } from "../agent-options.ts";
import { type Command, defineCommand } from "../command.ts";
import { renderProblems } from "../render-problems.ts";
import { counterOptions, trustOption } from "../shared-options.ts";
import { readTextInput } from "../text-input.ts";

const { agent, "agent-command": agentCommand, model } = agentOptions;

export const generateCommand: Command = defineCommand({
  arguments: [
    { name: "PROMPT", summary: 'what the plan should do, or "-" for standard input', isSentence: true },
    { name: "DIR", optional: true, summary: "the folder for the plan (default: plan)" },
  ],
  options: {
    agent,
    "agent-command": agentCommand,
    model,
    "max-budget-usd": { value: "N", summary: "the most that the agent may cost, in dollars (default: 1)" },
    "max-context-tokens": { value: "N", summary: "token budget of the project's snapshot (default: 10000)" },
    counter: counterOptions.counter,
    timeout: { value: "SECONDS", summary: "how long the agent may run (default: 600)" },
    ...trustOption,
  },
  details: `An agent that may only read gets the snapshot of the project and your sentence, and writes the plan: phases,
scopes, checks, dependencies. The plan is validated. If it has errors, the agent is told about them once. A plan with
errors is not written. Nothing is run: read the files first. Commands in "check" need trust before the plan can run.`,
  examples: [
    { line: 'plimsoll nebula generate "Add a search page" --agent claude', meaning: "writes the folder plan" },
    { line: "plimsoll nebula generate - .nebulas/search --agent codex < wish.md", meaning: "a longer text" },
  ],
  async run(call) {
    const { cwd, env, options, output } = call;
    const [given = "", directory = "plan"] = call.arguments;
    const folder = resolve(cwd, directory);
    const taken = (await readdir(folder).catch(() => [])).filter((name) => /^nebula\.toml$|\.md$/i.test(name));
    if (taken.length > 0)
      throw usageError(
        `${printable(directory)} already has ${taken.map(printable).join(", ")}`,
        "Name another folder.",
      );
    // A repository may have a link of that name. Looked at before the agent costs money.
    const place = { root: isInside(folder, cwd) ? cwd : parse(folder).root, env };
    await changeFile(join(folder, "nebula.toml"), { ...place, dryRun: true, change: () => "" });
    const wish = given === "-" ? (await readTextInput("-", call)).text : given;
    if (wish.trim() === "") throw usageError("PROMPT is empty", "Say what the plan should do.");
    const timeoutMs = (wholeNumber(options.timeout, "timeout", 1) ?? 600) * 1000;
    requireTrust((await loadConfig(call)).leftOut, call);
    const chosen = await agentFor(call);
    await requireAgent(chosen, call);
    const budgetUsd = readBudget(options["max-budget-usd"], chosen.keepsLimit(), output.note);
    const { model: used, fallback } = chosen.counting();
    const counting = {
      counter: options.counter,
      model: modelForCounter({ counter: options.counter, model: used }),
      maxContextTokens: wholeNumber(options["max-context-tokens"], "max-context-tokens", 0),
    };
    const settings = await readContextSettings({ ...call, options: counting }, fallback);
    const loadsItself = await findLoadedFiles(chosen, cwd);
    const context = await composeContext({}, { ...settings, snapshot: true, loadsItself }, call);
    const interrupt = new AbortController();
    takeEndSignals(() => interrupt.abort());
    const generated = await generateNebula({
      wish,
      context: context.text,
      name: basename(folder),
      agent: chosen,
      budgetUsd,
      cwd,
      env,
      timeoutMs,
      signal: interrupt.signal,
      onOutput: showActivity(chosen.name, output.progress),
    });
    output.settle();
    const { files, problems, tries, costUsd } = generated;
    const isWrong = problems.some(({ severity }) => severity === "error");
    const cost = costUsd === undefined ? "" : `, ${dollars(costUsd)}`;
    output.note(`the agent answered in ${tries === 1 ? "one try" : `${tries} tries`}${cost}`);
    const shown = renderProblems(problems, { count: Object.keys(files).length - 1, noun: "phase" });
    if (isWrong) {
      output.problem("the plan still has errors, so it was not written. Say more, or write it with nebula init");
      return { json: { files: [], problems, tries, costUsd: costUsd ?? null }, text: shown, failed: true };
    }
    for (const [name, text] of Object.entries(files)) {
      const change = (current: string | undefined) => current ?? toByteString(text);
      await changeFile(join(folder, name), { ...place, change });
    }
    const paths = Object.keys(files).map((name) => shownPath(join(folder, name), cwd, env));
    const text = [
      ...paths.map((path) => `created ${printable(path)}`),
      shown,
      "",
      ...nextSteps(printable(directory), chosen.name),
    ].join("\n");
    return { json: { files: paths, problems, tries, costUsd: costUsd ?? null }, text };
  },
});

function nextSteps(folder: string, agent = "NAME"): string[] {
  return [
    "Nothing has run. Next:",
    `  1. Read these files, above all "check": these commands will run.`,
    `  2. plimsoll trust ${folder}`,
    `  3. plimsoll nebula apply ${folder} --agent ${agent} --worktrees`,
  ];
}

/** An agent that does not report its cost has no limit, and a person who asked for one must know. */
function readBudget(given: string | undefined, isKept: boolean, note: (text: string) => void): number | undefined {
  const amount = given === undefined ? 1 : Number(given);
  if (!(amount > 0)) throw usageError(`--max-budget-usd is ${JSON.stringify(given)}`, "Use dollars, such as 0.5.");
  if (isKept) return amount;
  note("the cost of this agent is unknown, so no limit on it is kept");
  return undefined;
}

function showActivity(agent: string | undefined, progress: (text: string) => void) {
  const preset = agent === undefined ? undefined : agentPresets[agent];
  const reader = preset && createEventReader(preset.prints);
  return (name: "stdout" | "stderr", chunk: Buffer) => {
    const line = reader?.read(name, chunk.toString("utf8")).at(-1);
    if (line !== undefined) progress(printable(line.text));
  };
}
