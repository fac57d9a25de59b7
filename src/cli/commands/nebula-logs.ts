import { setTimeout as sleep } from "node:timers/promises";
import type { Store } from "../../core/store/index.ts";
import { formatNumber, printable, printableLines } from "../../core/text/index.ts";
import { lookInStore, ownMachine, storePath } from "../../host/index.ts";
import { agentPresets, createEventReader } from "../../plans/agent/index.ts";
import { findPhase, requireNebula } from "../../plans/index.ts";
import {
  type AttemptOutput,
  dollars,
  type NebulaRecord,
  openAttemptOutput,
  openNebulaRecord,
  readChecks,
  storedKey,
} from "../../plans/nebula/index.ts";
import { folderArgument } from "../agent-options.ts";
import { type Command, defineCommand } from "../command.ts";
import { storeOptions } from "../shared-options.ts";

const phaseArgument = { name: "PHASE", summary: "id of a phase" } as const;

export const logsCommand: Command = defineCommand({
  arguments: [folderArgument, phaseArgument],
  options: {
    follow: { summary: "print what comes until the phase ends" },
    raw: { summary: "print the streams as the agent printed them" },
    ...storeOptions,
  },
  details: `Prints what the agent of the phase's last attempt has said and done so far, and how its checks ended. Agents that
are no known ones have no events, so their output is printed as it is, stderr and stdout. The command only reads, so the
nebula may be running. The output of a phase is on the machine that runs it.`,
  examples: [
    { line: "plimsoll nebula logs plan api", meaning: "what the last attempt did" },
    { line: "plimsoll nebula logs plan api --follow", meaning: "watch a running agent, and its next attempts" },
  ],
  async run(call) {
    const { nebula } = await requireNebula(call.arguments[0]!, call);
    const phase = findPhase(nebula, call.arguments[1]!);
    const storeFile = await storePath(call.options.store, call);
    const find = async (): Promise<Found> => {
      const look = async (store: Store) => {
        const key = await storedKey(store, nebula, call.env);
        const record = await openNebulaRecord(store, key).read();
        const run = record && Object.hasOwn(record.phases, phase.id) ? record.phases[phase.id] : undefined;
        return { run, checks: await readChecks(store, { key, phase: phase.id }) };
      };
      return (await lookInStore(storeFile, look)) ?? { run: undefined, checks: [] };
    };
    const found = await find();
    const { run, checks } = found;
    const isHere = run?.machine === undefined || run.machine.id === (await ownMachine(call.env)).id;
    const open = (folder: string | undefined) =>
      openAttemptOutput(folder, { directory: nebula.directory, storeFile, env: call.env });
    const attempt = isHere ? open(run?.attemptFolder) : undefined;
    if (attempt === undefined) {
      call.output.note(
        isHere
          ? `phase ${phase.id} has not run yet, or its output is gone`
          : `phase ${phase.id} ran on ${printable(run!.machine!.name)}, which has its output`,
      );
      return { json: { id: phase.id, stdout: "", stderr: "", ended: true }, text: "", exact: true, failed: true };
    }
    if (call.output.json) {
      const [stdout, stderr] = (["stdout", "stderr"] as const).map((name) => attempt.read(name, 0).toString("utf8"));
      return { json: { id: phase.id, stdout, stderr, ended: attempt.hasEnded(), checks }, text: "" };
    }
    const isKnown = call.options.raw !== true && Object.hasOwn(agentPresets, run?.agent ?? "");
    const agent = isKnown ? run?.agent : undefined;
    const printing = { follow: call.options.follow === true, agent, print: call.output.result };
    await printOutput(attempt, printing);
    const last = printing.follow ? await followAttempts(found, { ...printing, find, open }) : found;
    if (agent !== undefined && attempt.hasEnded())
      for (const { command, output } of last.checks) printing.print(printableLines(`check ${command}\n${output}`));
    return undefined;
  },
});

interface Found {
  readonly run: NebulaRecord["phases"][string] | undefined;
  readonly checks: Awaited<ReturnType<typeof readChecks>>;
}

interface Printing {
  readonly follow: boolean;
  readonly agent: string | undefined;
  print(text: string): void;
}

/** Prints the further attempts of a phase until no run works on it. */
async function followAttempts(
  found: Found,
  {
    find,
    open,
    ...printing
  }: Printing & { find(): Promise<Found>; open(folder: string | undefined): AttemptOutput | undefined },
): Promise<Found> {
  let folder = found.run?.attemptFolder;
  for (;;) {
    const next = await find();
    if (next.run?.claimedBy === undefined) return next;
    const output = next.run.attemptFolder === folder ? undefined : open(next.run.attemptFolder);
    if (output === undefined) {
      await sleep(500);
      continue;
    }
    folder = next.run.attemptFolder;
    printing.print(`── attempt ${next.run.attempts}`);
    await printOutput(output, printing);
  }
}

/** Prints whole lines, so that the two streams do not mix within a line. */
async function printOutput(attempt: AttemptOutput, { follow, agent, print }: Printing): Promise<void> {
  const printer = createPrinter(agent, print);
  const read = { stderr: 0, stdout: 0 };
  for (let isLast = false; !isLast; ) {
    // Asked first, because an agent prints before it ends.
    isLast = !follow || attempt.hasEnded();
    for (const name of ["stderr", "stdout"] as const) {
      const bytes = attempt.read(name, read[name]);
      const end = isLast ? bytes.length : bytes.lastIndexOf(10) + 1;
      read[name] += end;
      if (end > 0) printer.read(name, bytes.toString("utf8", 0, end));
    }
    if (!isLast) await sleep(200);
  }
  printer.sumUp();
}

/** Prints the events of a known agent as sentences, and everything else as it is. */
function createPrinter(agent: string | undefined, print: Printing["print"]) {
  if (agent === undefined) return { read: (_: string, text: string) => print(printableLines(text)), sumUp() {} };
  const reader = createEventReader(agentPresets[agent]!.prints);
  const marks = { says: "", does: "→ ", trouble: "! " };
  return {
    read(name: "stderr" | "stdout", text: string) {
      for (const line of reader.read(name, text)) print(printableLines(`${marks[line.kind]}${line.text}`));
    },
    sumUp() {
      const { usage, costUsd } = reader.report() ?? {};
      if (usage === undefined) return;
      const cost = costUsd === undefined ? "" : `, ${dollars(costUsd)}`;
      print(`${formatNumber(usage.inputTokens)} tokens in, ${formatNumber(usage.outputTokens)} out${cost}`);
    },
  };
}
