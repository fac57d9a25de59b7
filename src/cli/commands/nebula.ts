import { readdir } from "node:fs/promises";
import { basename, join, parse, resolve } from "node:path";
import { ContextError, usageError } from "../../core/errors.ts";
import type { Store } from "../../core/store/index.ts";
import { countNoun, formatNumber, printable, printableLines, toByteString } from "../../core/text/index.ts";
import {
  changeFile,
  chooseCounter,
  lookInStore,
  modelForCounter,
  ownMachine,
  shownPath,
  shownStore,
  storePath,
} from "../../host/index.ts";
import {
  checkProblems,
  findPhase,
  limitProblems,
  phaseRuns,
  readNebula,
  requireNebula,
  workingDirectory,
} from "../../plans/index.ts";
import {
  findOutputFile,
  openNebulaRecord,
  type PhaseReport,
  planPrompt,
  readActivity,
  readAnswer,
  reportStates,
  storedKey,
} from "../../plans/nebula/index.ts";
import { agentFor, agentOptions, applySettings, contextOptions, folderArgument } from "../agent-options.ts";
import {
  type Call,
  type Command,
  type CommandGroup,
  type CommandResult,
  defineCommand,
  subcommand,
} from "../command.ts";
import { layerName, missing } from "../context-notes.ts";
import { describeFailure, duration, renderApplyReport, renderPhaseRuns, showWaves } from "../nebula-report.ts";
import { renderProblems } from "../render-problems.ts";
import { counterOptions, storeOptions } from "../shared-options.ts";

export const nebulaCommand: CommandGroup = {
  subcommands: [
    subcommand("init", "write a small nebula to start from", () => initCommand),
    subcommand("generate", "let an agent write a nebula from a sentence, and check it", () =>
      import("./nebula-generate.ts").then((module) => module.generateCommand),
    ),
    subcommand("validate", "find mistakes in nebula.toml and the phase files", () => validateCommand),
    subcommand("show", "show the phases in waves: a wave is what can run together", () => showCommand),
    subcommand("apply", "run the phases with an agent, each after the phases it depends on", () =>
      import("./nebula-apply.ts").then((module) => module.applyCommand),
    ),
    subcommand("status", "show the state of the last run, or the answer of a phase", () => statusCommand),
    subcommand("prompt", "print what the agent of a phase would read", () => promptCommand),
    subcommand("logs", "print what the agent of a phase has said and done", () =>
      import("./nebula-logs.ts").then((module) => module.logsCommand),
    ),
  ],
  examples: [
    { line: "plimsoll nebula init plan", meaning: "start a nebula in the folder plan" },
    { line: "plimsoll nebula validate plan", meaning: "find mistakes in a nebula" },
    { line: "plimsoll nebula show plan", meaning: "what would run, and in which order" },
    { line: "plimsoll nebula apply plan --agent claude", meaning: "run it" },
    { line: "plimsoll nebula status plan", meaning: "the state of its phases" },
  ],
};

const initCommand: Command = defineCommand({
  arguments: [{ name: "DIR", summary: "the folder to create, such as plan" }],
  options: {},
  details: `Writes nebula.toml and two phases. The second one depends on the first. Edit the text of the phases,
add more files, and run "plimsoll nebula validate DIR". Existing files are never changed.`,
  examples: [{ line: "plimsoll nebula init plan", meaning: "start a nebula in the folder plan" }],
  async run(call) {
    const { cwd, env } = call;
    const folder = resolve(cwd, call.arguments[0]!);
    const taken = (await readdir(folder).catch(() => [])).filter((name) => /^nebula\.toml$|\.md$/i.test(name));
    if (taken.length > 0) {
      const shown = printable(shownPath(folder, cwd, env));
      throw usageError(`${shown} already has ${taken.map(printable).join(", ")}`, "Name another folder.");
    }
    const { starterFiles } = await import("../../plans/nebula/starter-nebula.ts");
    const files = Object.entries(starterFiles(basename(folder)));
    for (const [name, text] of files) {
      const change = (current: string | undefined) => current ?? toByteString(text);
      await changeFile(join(folder, name), { root: parse(folder).root, env, change });
    }
    const paths = files.map(([name]) => shownPath(join(folder, name), cwd, env));
    const named = printable(call.arguments[0]!);
    const next = [
      "Next:",
      "  1. Write your tasks into the phases, and add more files like them.",
      `  2. plimsoll nebula validate ${named}`,
      `  3. plimsoll nebula apply ${named} --agent claude`,
    ];
    return {
      json: { files: paths },
      text: [...paths.map((path) => `created ${printable(path)}`), "", ...next].join("\n"),
    };
  },
});

const validateCommand: Command = defineCommand({
  arguments: [folderArgument],
  options: { ...agentOptions },
  details: `Reports every problem with file and line: missing front matter, malformed TOML, wrong keys and values;
ids that are missing, used twice or not usable as a file name; unknown dependencies; dependency cycles; and scopes
that overlap although two phases could run at the same time and neither sets allow_scope_overlap. Unknown keys are
warnings. The exit code is 1 if there is an error.
Without an error, it shows how each phase would run: where, with which command (see --agent) and with which
permissions. A max_budget_usd that the chosen agent cannot keep is a warning. It starts nothing and needs no trust.`,
  examples: [
    { line: "plimsoll nebula validate .nebulas/search", meaning: "find mistakes in a nebula" },
    {
      line: "plimsoll nebula validate plan --json | jq '.[] | select(.severity == \"error\")'",
      meaning: "JSON for programs",
    },
  ],
  async run(call) {
    const loaded = await readNebula(call.arguments[0]!, call);
    const { problems: found, phases, nebula } = loaded;
    const agent = await agentFor(call, resolve(call.cwd, nebula?.workingDirectory ?? ""));
    const runs = nebula === undefined ? [] : renderPhaseRuns(await phaseRuns(nebula, agent, call.cwd), nebula);
    const problems = [...found, ...(await checkProblems(loaded, call)), ...limitProblems(loaded, agent, call.cwd)];
    const shown = renderProblems(problems, { count: phases, noun: "phase" });
    return {
      json: problems,
      text: [shown, ...(runs.length === 0 ? [] : ["", ...runs])].join("\n"),
      failed: problems.some(({ severity }) => severity === "error"),
    };
  },
});

const showCommand: Command = defineCommand({
  arguments: [folderArgument],
  options: {
    mermaid: { summary: "print the waves as a Mermaid graph" },
    ...agentOptions,
    counter: counterOptions.counter,
  },
  details: `The phases of a wave depend only on phases of earlier waves, so they can run together. Within a wave
the order is by priority, smaller first, then by id. The tokens are those of the task alone: title, goals,
constraints, body and how to report. A run adds context before the task. If the nebula has errors, they are shown
instead.
Below the waves is how each phase would run: where, with which command and with which permissions. The command
depends on --agent or --agent-command. It starts nothing and needs no trust.`,
  examples: [
    { line: "plimsoll nebula show .nebulas/search", meaning: "the phases in waves" },
    { line: "plimsoll nebula show plan --mermaid > plan.mmd", meaning: "as a graph" },
    { line: "plimsoll nebula show plan --json | jq '.waves[0]'", meaning: "the phases that can start first" },
  ],
  async run(call) {
    if (call.options.mermaid === true && call.output.json) {
      throw usageError("--mermaid and --json cannot be used together", "Use one.");
    }
    const { nebula } = await requireNebula(call.arguments[0]!, call);
    const agent = await agentFor(call, resolve(call.cwd, nebula.workingDirectory ?? ""));
    const { model, fallback } = agent.counting(nebula.execution);
    const options = { ...call.options, model: modelForCounter({ ...call.options, model }) };
    const counter = await chooseCounter({ ...call, options }, fallback);
    const { json, mermaid, text } = showWaves(nebula, counter, await phaseRuns(nebula, agent, call.cwd));
    return { json, text: call.options.mermaid === true ? mermaid() : text(call.output.style) };
  },
});

const statusCommand: Command = defineCommand({
  arguments: [folderArgument, { name: "PHASE", optional: true, summary: "id of a phase: print its last answer" }],
  options: storeOptions,
  details: `Prints the same table as the end of "nebula apply". With PHASE, prints the whole last answer of that
phase as its agent gave it; a pipe or a file gets it without a final line break. If the phase has not completed
since then, a note on stderr says so. If it failed, the note names the file with its output. The command only
reads, so the nebula may be running. The exit code is 1 only if PHASE has no answer.`,
  examples: [
    { line: "plimsoll nebula status plan", meaning: "which phases completed, failed or wait" },
    { line: "plimsoll nebula status plan api > api.md", meaning: "the answer of one phase" },
    {
      line: "plimsoll nebula status plan --json | jq '.phases[] | {id, state}'",
      meaning: "JSON for programs",
    },
  ],
  async run(call) {
    const { nebula } = await requireNebula(call.arguments[0]!, call);
    const [, id] = call.arguments;
    if (id !== undefined) findPhase(nebula, id);
    const file = await storePath(call.options.store, call);
    const found = await lookInStore(file, async (store) => {
      // The record is read first, because answers are stored before phases complete in it.
      const key = await storedKey(store, nebula, call.env);
      const record = await openNebulaRecord(store, key).read();
      return { record, answer: id === undefined ? undefined : await readAnswer(store, { key, phase: id }) };
    });
    const report = reportStates(nebula, found?.record);
    const phase = report.phases.find((each) => each.id === id);
    const { id: machine } = await ownMachine(call.env);
    if (phase !== undefined) {
      const isHere = phase.machine === undefined || phase.machine.id === machine;
      const words = () =>
        findOutputFile(isHere ? found?.record?.phases[phase.id]?.attemptFolder : undefined, {
          directory: nebula.directory,
          storeFile: file,
          env: call.env,
        });
      return showAnswer(phase, { answer: found?.answer, words }, call);
    }
    if (report.phases.every(({ attempts }) => attempts === 0))
      call.output.note(`${shownStore(file, call.cwd, call.env)} has no run of this nebula yet`);
    const place = { directory: nebula.directory, storeFile: file, env: call.env };
    const phases = report.phases.map((each) => {
      const run = each.state === "running" && each.machine?.id === machine ? found?.record?.phases[each.id] : undefined;
      const doing = run && readActivity(run, place);
      return doing === undefined ? each : { ...each, doing };
    });
    return { json: { phases }, text: renderApplyReport({ phases }, { machine, now: new Date() }) };
  },
});

function showAnswer(
  phase: PhaseReport,
  { answer, words }: { readonly answer: string | undefined; words(): ReturnType<typeof findOutputFile> },
  { cwd, env, ...call }: Call,
): CommandResult {
  const { id, state, seconds, error } = phase;
  // As `nebula apply` describes it.
  const stand = () => {
    const failure = () => describeFailure({ error, ...words() }, (path) => shownPath(path, cwd, env));
    const text = state === "failed" ? `failed after ${duration(seconds)}. ${failure()}` : `is ${state}. ${error ?? ""}`;
    return printableLines(text).replace(/\. ?$/, "");
  };
  if (answer === undefined) {
    throw new ContextError("unreadable_input", `phase ${id} has not answered yet: it ${stand()}`, {
      hint: `See "plimsoll nebula status ${call.arguments[0]}".`,
    });
  }
  if (state !== "completed") call.output.note(`phase ${id} has not completed since it gave this answer: it ${stand()}`);
  else if (answer.trim() === "") call.output.note(`the answer of phase ${id} is empty`);
  return { json: { ...phase, answer }, text: answer, exact: true };
}

const phaseArgument = { name: "PHASE", summary: "id of a phase" } as const;

const { agent, "agent-command": agentCommand, model } = agentOptions;

const promptCommand: Command = defineCommand({
  arguments: [folderArgument, phaseArgument],
  options: { agent, "agent-command": agentCommand, model, ...contextOptions, ...storeOptions },
  details: `Prints exactly what the agent of the phase would read if it started now, with --resume or --rerun: the
project, the fabric, the answers of its dependencies, then the task. The agent and its model decide, as in "nebula
apply", how tokens are counted and which convention files are left out. What each layer takes is on stderr. Starts
nothing and writes nothing.`,
  examples: [
    { line: "plimsoll nebula prompt plan api", meaning: "what the agent would read" },
    { line: "plimsoll nebula prompt plan api --json | jq .layers", meaning: "what each layer takes" },
  ],
  async run(call) {
    const { nebula } = await requireNebula(call.arguments[0]!, call);
    const phase = findPhase(nebula, call.arguments[1]!);
    const agent = await agentFor(call, await workingDirectory(nebula, call.cwd));
    const settings = await applySettings(nebula, agent, call);
    const plan = (store?: Store) => planPrompt(nebula, phase, { ...settings, store });
    const planned = (await lookInStore(settings.storeFile, plan)) ?? (await plan());
    const { text, tokens, layers, overflow, counter } = planned;
    const context = layers.reduce((sum, layer) => sum + layer.tokens, 0);
    const account = [
      `prompt: ${countNoun(tokens, "token")} (${counter}), ${formatNumber(context)} of them context`,
      ...layers.map((layer) => {
        const cut = layer.truncated ? `, truncated, ${formatNumber(layer.omitted)} omitted` : "";
        return `${layerName(layer.name)}: ${countNoun(layer.tokens, "token")}${cut}`;
      }),
      ...(overflow > 0 ? [missing(overflow)] : []),
    ];
    for (const line of account) call.output.note(line);
    return { json: { id: phase.id, text, tokens, counter, layers, overflow }, text, exact: true };
  },
});
