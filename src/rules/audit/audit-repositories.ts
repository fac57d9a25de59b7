/** Audits several clones: what their tools load, and what `inject --check` would say in each. Only reads. */
import { realpath } from "node:fs/promises";
import { relative } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { type Caller, describeError, loadConfig, openDirectory, withoutPasswords } from "../../host/index.ts";
import { type InjectChoice, type Prepared, prepareInject } from "../adapters/prepare-inject.ts";
import { injectionStatus, type TargetState } from "../adapters/status.ts";
import { readCompanyCommit } from "../sync/company.ts";
import { audit } from "./audit.ts";

export interface AuditedRepository {
  /** As the person named it. */
  readonly path: string;
  /** Null if the repository names none, or cannot be read. */
  readonly company: {
    readonly source: string;
    readonly revision: string | null;
    /** Null for a folder that is used in place. */
    readonly commit: string | null;
  } | null;
  readonly counter: string | null;
  /** The chosen tools that load a file, with the tokens of every session in the root. Nothing under HOME is counted. */
  readonly tools: readonly { readonly id: string; readonly tokens: number }[];
  /** A tool does not read the block, or a text of people, in some folder. */
  readonly hidden: readonly RepositoryFault[];
  readonly twice: readonly RepositoryFault[];
  /** A limit is exceeded, or packs do not fit. */
  readonly over: readonly RepositoryFault[];
  /** `inject` would change the file, or refuses to. */
  readonly outOfDate: readonly RepositoryFault[];
  /** Ids of packs that the company requires and that a file lacks. */
  readonly required: readonly string[];
  /** Why the repository could not be checked. */
  readonly problem: string | null;
}

export interface RepositoryFault {
  /** Relative to the repository's root. */
  readonly path: string;
  readonly tools: readonly string[];
  readonly state: TargetState["state"] | "does not fit";
}

/** A repository that cannot be read has a `problem` and never stops the others. */
export async function auditRepositories(
  folders: readonly string[],
  choice: Pick<InjectChoice, "counter" | "model" | "tools">,
  caller: Caller,
): Promise<AuditedRepository[]> {
  const repositories: AuditedRepository[] = [];
  for (const path of folders) {
    caller.output.progress(`auditing ${path}`);
    try {
      repositories.push({ ...unread, path, ...(await auditRepository(path, choice, caller)) });
    } catch (error) {
      if (!(error instanceof ContextError)) throw error;
      repositories.push({ ...unread, path, problem: describeError(error) });
    }
  }
  caller.output.settle();
  return repositories;
}

const unread: Omit<AuditedRepository, "path"> = {
  company: null,
  counter: null,
  tools: [],
  hidden: [],
  twice: [],
  over: [],
  outOfDate: [],
  required: [],
  problem: null,
};

async function auditRepository(
  path: string,
  choice: Pick<InjectChoice, "counter" | "model" | "tools">,
  caller: Caller,
): Promise<Partial<AuditedRepository>> {
  const cwd = await openDirectory(path, caller.cwd);
  // Notes of forty repositories would hide the table.
  const quiet = { ...caller, cwd, output: { ...caller.output, note: () => {} } };
  const { engine } = await prepareInject({ ...choice, scope: "project" }, quiet);
  const { root } = engine.places;
  const {
    values: { company },
  } = await loadConfig({ cwd, env: caller.env, projectOnly: true });
  const states = (await injectionStatus(engine)).filter(({ holds }) => !holds);
  const select = (...kinds: readonly ReturnType<typeof classify>[]) =>
    states
      .filter((state) => kinds.includes(classify(state)))
      .map((fault) => ({
        path: relative(root, fault.path) || ".",
        tools: fault.tools,
        state: fault.state === "current" ? ("does not fit" as const) : fault.state,
      }));
  return {
    company:
      company === undefined
        ? null
        : {
            source: withoutPasswords(company.source),
            revision: company.revision ?? null,
            commit: (await readCompanyCommit(company, { root, env: caller.env })) ?? null,
          },
    counter: engine.counter.name,
    tools: await countTools(engine),
    hidden: select("hidden"),
    twice: select("twice"),
    over: select("over"),
    outOfDate: select("out of date"),
    required: [...new Set(states.flatMap(({ missing }) => missing))],
  };
}

/** The column of a state that does not hold. */
function classify({ state, status }: TargetState): "hidden" | "twice" | "over" | "out of date" {
  if (state === "twice") return "twice";
  if (state === "hidden" || state === "not loaded") return "hidden";
  const isUnfit = status === "too small" || status === "over budget";
  // A current file that does not hold lacks packs.
  return isUnfit || state === "over the limit" || state === "current" ? "over" : "out of date";
}

async function countTools({ places, known, ids, counter }: Prepared["engine"]): Promise<AuditedRepository["tools"]> {
  const directory = await realpath(places.root);
  const { tools } = await audit({ adapters: known, directory, cwd: directory, counter, all: false });
  // An adapter of a shared file means all tools that read it.
  const readers = known.filter(({ id }) => ids.includes(id)).flatMap(({ reads }) => reads);
  return tools
    .filter(({ id, files }) => files.length > 0 && (ids.includes(id) || readers.includes(id)))
    .map(({ id, alwaysTokens }) => ({ id, tokens: alwaysTokens }));
}
