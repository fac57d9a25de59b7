/** Lets an agent write a plan: it may only read, answers with the files, and is asked once more if they have mistakes. */
import { mkdtemp, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { ContextError } from "../core/errors.ts";
import { toByteString } from "../core/text/index.ts";
import { changeFile, type Environment, removeTree } from "../host/index.ts";
import {
  type AgentLimits,
  agentPresets,
  defaultAgentLimits,
  type JudgedEnd,
  judgeEnd,
  type SessionTotals,
  startAgent,
} from "./agent/index.ts";
import type { ChosenAgent } from "./choose-agent.ts";
import { loadNebula, type NebulaProblem } from "./nebula/index.ts";

export interface GenerateRequest {
  /** What the plan should do, in a person's words. */
  readonly wish: string;
  /** The project, within a budget. */
  readonly context: string;
  /** The name of the plan. */
  readonly name: string;
  readonly agent: ChosenAgent;
  /** The most that all tries may cost, in dollars. */
  readonly budgetUsd?: number | undefined;
  readonly cwd: string;
  readonly env: Environment;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly onOutput?: AgentLimits["onOutput"];
}

export interface GeneratedNebula {
  /** The texts of the files by their names. */
  readonly files: Readonly<Record<string, string>>;
  /** What `validate` finds in them; the file of each is a name in `files`. */
  readonly problems: readonly NebulaProblem[];
  readonly tries: number;
  readonly costUsd?: number | undefined;
}

/** How often the agent is told about mistakes of its plan. */
const maxTries = 2;

/** Returns the files of a plan, with the problems that are left. Writes nothing into the project. Throws if the agent
 *  fails. */
export async function generateNebula(request: GenerateRequest): Promise<GeneratedNebula> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "plimsoll-generate-")));
  try {
    let prompt = firstPrompt(request);
    let [session, before, spent]: [string?, SessionTotals?, number?] = [];
    for (let tries = 1; ; tries++) {
      const left = (request.budgetUsd ?? Number.POSITIVE_INFINITY) - (spent ?? 0);
      if (left <= 0)
        throw new ContextError(
          "invalid_content",
          `the limit of $${request.budgetUsd} is used up by ${tries - 1} tries`,
        );
      const end = await askAgent(prompt, {
        ...request,
        session,
        before,
        budgetUsd: Number.isFinite(left) ? left : undefined,
        folder: join(folder, `try-${tries}`),
      });
      if (end.costUsd !== undefined) spent = (spent ?? 0) + end.costUsd;
      const files = readFiles(end.answer);
      const problems = await validate(files, join(folder, `plan-${tries}`, request.name));
      const isRight = problems.every(({ severity }) => severity !== "error");
      if (isRight || tries === maxTries) return { files, problems, tries, costUsd: spent };
      [session, before] = [end.session, end.totals];
      prompt = secondPrompt(request, end, problems);
    }
  } finally {
    await removeTree(folder);
  }
}

async function askAgent(
  prompt: string,
  request: GenerateRequest & {
    readonly session: string | undefined;
    readonly before: SessionTotals | undefined;
    readonly folder: string;
  },
): Promise<JudgedEnd> {
  const { agent, session, before, budgetUsd, cwd, env, timeoutMs, signal, onOutput, folder } = request;
  const { end } = startAgent({
    command: agent.line({ allow: "read", session, budgetUsd }) ?? "",
    prompt,
    folder,
    cwd,
    env,
    timeoutMs,
    maxOutputBytes: defaultAgentLimits.maxOutputBytes,
    repeats: agentPresets[agent.name ?? ""]?.repeats,
    signal,
    onOutput,
  });
  const judged = judgeEnd(await end, { agent: agent.name, model: agent.model(), before });
  // What it was not allowed to read does not matter if it has answered.
  if (judged.outcome === "completed" || (judged.outcome === "denied" && judged.answer.trim() !== "")) return judged;
  throw new ContextError("invalid_content", judged.error ?? `the agent ended: ${judged.outcome}`, {
    hint: judged.hint,
  });
}

/** A session that goes on knows the request and its own answer. */
function secondPrompt(
  request: GenerateRequest,
  { session, answer }: JudgedEnd,
  problems: readonly NebulaProblem[],
): string {
  const listed = problems.map(({ file, line, message }) => `- ${file}:${line}: ${message}`).join("\n");
  const told = `The plan has mistakes:\n\n${listed}\n\nAnswer with all files again, in the same form.\n`;
  return session === undefined ? `${firstPrompt(request)}\n\nYour last answer was:\n\n${answer}\n\n${told}` : told;
}

/** Reads the files of an answer: each follows a line with its name. */
function readFiles(answer: string): Record<string, string> {
  const parts = answer.split(/^=== ([\w.-]+) ===[ \t]*\r?\n/m);
  const files: Record<string, string> = {};
  for (let index = 1; index < parts.length; index += 2) {
    const name = parts[index]!;
    // An agent may put each file into a fence.
    const text = parts[index + 1]!.trim().replace(/^(`{3,})\w*\n([\s\S]*?)\n\1$/, "$2");
    if (name === "nebula.toml" || (/\.md$/i.test(name) && !name.startsWith("."))) files[name] = `${text}\n`;
  }
  return files;
}

async function validate(files: Readonly<Record<string, string>>, folder: string): Promise<NebulaProblem[]> {
  if (files["nebula.toml"] === undefined) {
    const message = 'the answer has no file "=== nebula.toml ==="';
    return [{ file: "nebula.toml", line: 1, severity: "error", rule: "missing-file", message }];
  }
  for (const [name, text] of Object.entries(files))
    await changeFile(join(folder, name), { root: "/", env: {}, change: () => toByteString(text) });
  const { problems } = await loadNebula(folder);
  return problems.map((each) => ({ ...each, file: basename(each.file) }));
}

function firstPrompt({ wish, context, name }: Pick<GenerateRequest, "wish" | "context" | "name">): string {
  return `${context === "" ? "" : `${context}\n\n`}# Write a plan

Divide this work into phases, for agents that work one after the other or side by side:

${wish}

Read what you need of the project. Change nothing. A plan is a file nebula.toml and one file for each phase. A phase is a
task that one agent can finish alone, with files that it may change, and commands that show that it is done. Use few
phases. Phases that do not depend on each other must have scopes that do not overlap.

Answer with the files alone, each after a line with its name, in exactly this form:

=== nebula.toml ===
[nebula]
name = ${JSON.stringify(name)}

[execution]
max_workers = 2
max_review_cycles = 3

[context]
goals = ["What the whole plan should achieve"]
constraints = ["A rule for every phase"]
=== first.md ===
+++
id = "first"
title = "Say what this phase makes"
scope = ["src/first/**"]
check = ["npm test"]
+++

Describe the task: what to make, where, and how to see that it works.
=== second.md ===
+++
id = "second"
title = "Say what this phase makes"
depends_on = ["first"]
scope = ["src/second/**"]
check = ["npm test"]
+++

Describe the task.
`;
}
