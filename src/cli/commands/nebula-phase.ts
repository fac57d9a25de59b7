/** Commands about one phase of a nebula: its prompt, and the output of its agent. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Store } from "../../core/store/index.ts";
import { countNoun, formatNumber, printable, printableLines } from "../../core/text/index.ts";
import { lookInStore, ownMachine, storePath } from "../../host/index.ts";
import { findPhase, requireNebula, workingDirectory } from "../../plans/index.ts";
import {
  type AttemptOutput,
  type Nebula,
  openAttemptOutput,
  openNebulaRecord,
  type Phase,
  planPrompt,
  storedKey,
} from "../../plans/nebula/index.ts";
import { agentFor, agentOptions, applySettings, contextOptions, folderArgument } from "../agent-options.ts";
import { type Call, type Command, defineCommand } from "../command.ts";
import { layerName, missing } from "../context-notes.ts";
import { storeOptions } from "../shared-options.ts";

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

const logsCommand: Command = defineCommand({
  arguments: [folderArgument, phaseArgument],
  options: { follow: { summary: "print what comes until the agent ends" }, ...storeOptions },
  details: `Prints what the agent of the phase's last attempt has printed so far, stderr and stdout. The command only
reads, so the nebula may be running. The output of a phase is on the machine that runs it.`,
  examples: [
    { line: "plimsoll nebula logs plan api", meaning: "what the last attempt printed" },
    { line: "plimsoll nebula logs plan api --follow", meaning: "watch a running agent" },
  ],
  async run(call) {
    const { nebula } = await requireNebula(call.arguments[0]!, call);
    const phase = findPhase(nebula, call.arguments[1]!);
    const { attempt, machine } = await lastAttempt(nebula, phase, call);
    if (attempt === undefined) {
      const elsewhere = `phase ${phase.id} ran on ${printable(machine ?? "")}, which has its output`;
      const nowhere = `phase ${phase.id} has not run yet, or its output is gone`;
      call.output.note(machine === undefined ? nowhere : elsewhere);
      return { json: { id: phase.id, stdout: "", stderr: "", ended: true }, text: "", exact: true, failed: true };
    }
    if (call.output.json) {
      const [stdout, stderr] = (["stdout", "stderr"] as const).map((name) => attempt.read(name, 0).toString("utf8"));
      return { json: { id: phase.id, stdout, stderr, ended: attempt.hasEnded() }, text: "" };
    }
    await printOutput(attempt, { follow: call.options.follow === true, print: call.output.result });
    return undefined;
  },
});

async function lastAttempt(
  nebula: Nebula,
  { id }: Phase,
  call: Call<{ readonly store?: string | undefined }>,
): Promise<{ readonly attempt?: AttemptOutput | undefined; readonly machine?: string | undefined }> {
  const storeFile = await storePath(call.options.store, call);
  const read = async (store: Store) => openNebulaRecord(store, await storedKey(store, nebula, call.env)).read();
  const record = await lookInStore(storeFile, read);
  const { attemptFolder, machine } = (record && Object.hasOwn(record.phases, id) && record.phases[id]) || {};
  if (machine !== undefined && machine.id !== (await ownMachine(call.env)).id) return { machine: machine.name };
  return { attempt: openAttemptOutput(attemptFolder, { directory: nebula.directory, storeFile, env: call.env }) };
}

interface Printing {
  readonly follow: boolean;
  print(text: string): void;
}

/** Prints whole lines, so that the two streams do not mix within a line. */
async function printOutput(attempt: AttemptOutput, { follow, print }: Printing): Promise<void> {
  const read = { stderr: 0, stdout: 0 };
  for (let isLast = false; !isLast; ) {
    // Asked first, because an agent prints before it ends.
    isLast = !follow || attempt.hasEnded();
    for (const name of ["stderr", "stdout"] as const) {
      const bytes = attempt.read(name, read[name]);
      const end = isLast ? bytes.length : bytes.lastIndexOf(10) + 1;
      read[name] += end;
      if (end > 0) print(printableLines(bytes.toString("utf8", 0, end)));
    }
    if (!isLast) await sleep(200);
  }
}

export const phaseCommands: Readonly<Record<"prompt" | "logs", Command>> = { prompt: promptCommand, logs: logsCommand };
