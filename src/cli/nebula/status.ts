import {
  lastWords,
  type Nebula,
  type NebulaRecord,
  nebulaKey,
  openNebulaRecord,
  type PhaseReport,
  readAnswer,
  standingOf,
} from "../../agent/index.ts";
import { ContextError } from "../../errors.ts";
import type { Store } from "../../store/index.ts";
import { didYouMean, printableLines } from "../../text/index.ts";
import { type Call, type Command, type CommandResult, defineCommand } from "../command.ts";
import { fabricOptions, storePath } from "../fabric/open-fabric.ts";
import { shownPath } from "../shown-path.ts";
import { lookInStore } from "../store-file.ts";
import { describeFailure, duration } from "./apply-progress.ts";
import { renderApplyReport } from "./apply-report.ts";
import { folderArgument, usableNebula } from "./read-nebula.ts";

export const statusCommand: Command = defineCommand({
  arguments: [
    folderArgument,
    { name: "PHASE", optional: true, summary: "id of a phase: print the answer that it gave last" },
  ],
  options: { store: fabricOptions.store },
  details: `Prints the table that "nebula apply" ends with. With PHASE it is the last answer of that phase, whole, as its agent gave it;
to a pipe or a file no line break is added. That the phase has not completed since then is told on stderr, and where it
failed, the file with all that its agent said. The command only reads: the nebula may be running. The exit code is 0
however the phases stand, and 1 where PHASE has given no answer.`,
  examples: [
    { line: "plimsoll nebula status plan", meaning: "what has completed, failed or waits" },
    { line: "plimsoll nebula status plan api > api.md", meaning: "what the agent of a phase answered" },
    {
      line: "plimsoll nebula status plan --json | jq '.phases[] | {id, state}'",
      meaning: "for programs",
    },
  ],
  async run(call) {
    const { nebula } = await usableNebula(call);
    const [, id] = call.arguments;
    if (id !== undefined) checkId(id, nebula);
    const file = await storePath(call);
    const found = await lookInStore(file, (store) => look(nebula, id, store));
    const report = standingOf(nebula, found?.record);
    const phase = report.phases.find((each) => each.id === id);
    if (phase !== undefined) {
      const words = () =>
        lastWords(found?.record?.phases[phase.id]?.attemptFolder, {
          directory: nebula.directory,
          storeFile: file,
          env: call.env,
        });
      return showAnswer(phase, { answer: found?.answer, words }, call);
    }
    if (report.phases.every(({ attempts }) => attempts === 0))
      call.output.note(`there is no run of it in ${shownPath(file, call.cwd, call.env)} yet`);
    return { json: report, text: renderApplyReport(report) };
  },
});

function checkId(id: string, { phases }: Nebula): void {
  const ids = phases.map((phase) => phase.id);
  if (ids.includes(id)) return;
  const hint = [didYouMean(id, ids), `Its phases: ${ids.join(", ")}.`].filter(Boolean).join(" ");
  throw new ContextError("usage", `the nebula has no phase "${id}"`, { hint });
}

interface Found {
  readonly record: NebulaRecord | undefined;
  readonly answer: string | undefined;
}

/** The record first: the answers of what has completed in it are stored by then. */
async function look(nebula: Nebula, id: string | undefined, store: Store): Promise<Found> {
  const key = nebulaKey(nebula.directory);
  const record = await openNebulaRecord(store, key).read();
  return { record, answer: id === undefined ? undefined : await readAnswer(store, { key, phase: id }) };
}

interface Shown {
  readonly answer: string | undefined;
  words(): ReturnType<typeof lastWords>;
}

function showAnswer(phase: PhaseReport, { answer, words }: Shown, call: Call): CommandResult {
  const { id, state } = phase;
  const stand = () => describe(phase, words, call);
  if (answer === undefined) {
    throw new ContextError("unreadable_input", `phase ${id} has not answered yet: it ${stand()}`, {
      hint: `See "plimsoll nebula status ${call.arguments[0]}".`,
    });
  }
  if (state !== "completed")
    call.output.note(`phase ${id} has not completed since it gave this answer: it ${stand()}`);
  else if (answer.trim() === "") call.output.note(`the answer of phase ${id} is empty`);
  return { json: { ...phase, answer }, text: answer, exact: true };
}

/** What is the matter with a phase, as `nebula apply` told it. */
function describe({ state, seconds, error }: PhaseReport, words: Shown["words"], { cwd, env }: Call): string {
  const failure = () => describeFailure({ error, ...words() }, (path) => shownPath(path, cwd, env));
  const stand =
    state === "failed" ? `failed after ${duration(seconds)}. ${failure()}` : `is ${state}. ${error ?? ""}`;
  return printableLines(stand).replace(/\. ?$/, "");
}
