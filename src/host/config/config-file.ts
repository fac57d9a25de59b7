/** Parses one configuration file: its values, the line of each key, and all mistakes. Loads yaml and zod. */

import { z } from "zod";
import { policyNames } from "../../conversation/history/index.ts";
import { leastAllocation, ledgerTiers } from "../../core/budget/index.ts";
import { verbosities } from "../../core/text/index.ts";
import { counterNames } from "../../core/tokens/index.ts";
import { allowLevels, type CompanyConfig, type ConfigPart, defaultConfig, onOverflows } from "./config.ts";
import { readYaml } from "./read-yaml.ts";
import { explainIssues } from "./yaml-document.ts";

export interface ConfigFile {
  readonly values: ConfigPart;
  readonly problems: readonly { readonly line: number; readonly message: string }[];
  /** Returns the line of a key, or of the nearest key around it. 1-based. */
  lineOf(path: readonly PropertyKey[]): number;
}

export function parseConfigFile(text: string): ConfigFile {
  const { input = {}, problems, lineOf } = readYaml(text);
  if (problems.length > 0) return { values: {}, problems, lineOf };
  const lost = lostKeys(input).map(({ path, message }) => ({ line: lineOf(path), message }));
  if (lost.length > 0) return { values: {}, problems: lost, lineOf };
  const result = configSchema.safeParse(input ?? {}, { reportInput: true });
  if (result.success) return { values: result.data, problems: [], lineOf };
  return { values: {}, problems: explainIssues(result.error.issues, configSchema, lineOf), lineOf };
}

/** zod silently drops this one name from its result. */
function lostKeys(
  value: unknown,
  path: readonly PropertyKey[] = [],
): { readonly path: readonly PropertyKey[]; readonly message: string }[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) => {
    const here = [...path, key];
    const message = `"${here.join(".")}" cannot be used as a name`;
    return key === "__proto__" ? [{ path: here, message }] : lostKeys(child, here);
  });
}

const text = z.string().min(1);
/** A page cannot be smaller. */
const pageTokens = z.int().min(leastAllocation);
const share = z.number().min(0).max(1);
/** Below the repository, without a part that leads out of it. */
const skillFolder = /^(?!\/)(?!(?:.*\/)?\.\.(?:\/|$))[^\\:]+$/;
const budgets = z.record(
  text,
  z.union(
    [z.int().min(1), z.strictObject({ max_tokens: z.int().min(1) }), z.strictObject({ max_bytes: z.int().min(1) })],
    { error: "a number of tokens from 1, { max_tokens: N } or { max_bytes: N }" },
  ),
);

export const configSchema: z.ZodType<ConfigPart> = z
  .strictObject({
    counter: key(
      z.enum(counterNames),
      "How tokens are counted. The default is auto if a model is set, and for inject and audit.",
    ),
    model: key(text, "The model whose tokens the counter auto estimates, such as claude-sonnet-5 or gpt-5."),
    title: key(
      z.string(),
      "Heading of the block that inject writes. Empty: only packs and notes, without facts about the project.",
    ),
    profile: key(text, "The profile whose packs are used."),
    language: key(text, "Language of the packs."),
    tools: key(z.array(text), "Ids of the AI tools to write for. The default is the tools that are found."),
    own_files: key(z.array(text), "Ids of AI tools that get their own file although they read AGENTS.md."),
    packs: key(
      z.strictObject({
        include: key(z.array(text), "Ids of the packs to use, besides base packs. The default is all packs."),
        exclude: key(z.array(text), "Ids of packs to leave out. Base packs may be among them."),
        built_in: key(z.array(text), "Ids of the built-in packs to use. The default is those that suit the project."),
      }),
      "Which packs are used.",
    ),
    verbosity: key(z.record(text, z.enum(verbosities)), "Maps an adapter's id to a level."),
    budgets: key(
      budgets,
      "Maps a tool's id to the most tokens that it gets, or to { max_bytes: N }. The id * is every tool without a line.",
    ),
    on_overflow: key(z.enum(onOverflows), "What happens to packs that do not fit."),
    on_drop: key(z.enum(["fail", "warn"]), "What inject --check does if a pack does not fit a tool's budget or limit."),
    company: key(
      z.strictObject({
        source: text.meta({ description: "Directory or git URL of the company's packs." }),
        revision: key(text, "Branch, tag or commit of a git URL."),
      }),
      "The company's layer of packs. A value replaces the lower file's value as a whole. In a project it needs trust.",
    ),
    skills: key(
      z.array(
        z.strictObject({
          source: text.meta({ description: "Git URL, or directory of a git repository." }),
          revision: key(text, "Branch, tag or commit. The default is the repository's default branch."),
          path: key(
            z.string().regex(skillFolder, "a folder of the repository, such as skills or ."),
            "The folder that holds one folder for each skill. The default is skills.",
          ),
          only: key(z.array(text), "Names of the skills to take. The default is all."),
        }),
      ),
      "Skills of git repositories. plimsoll sync pins them in the project. Fetching them needs trust.",
    ),
    context: key(
      z.strictObject({
        max_tokens: key(z.int().min(0), "Most tokens of composed context in a prompt; 0 composes nothing."),
        shares: key(
          z.strictObject({
            project: key(share, "Share of the project layer."),
            fabric: key(share, "Share of the fabric layer."),
            prior_work: key(share, "Share of the prior work layer."),
          }),
          "How the layers divide the context. A layer passes unused tokens on to the next one.",
        ),
      }),
      "Composed prompt context.",
    ),
    nebula: key(
      z.strictObject({
        worktrees: key(z.boolean(), "Gives every phase its own git worktree and branch."),
        worktree_copy: key(
          z.array(text),
          "Ignored files and folders that each worktree gets a copy of, such as node_modules.",
        ),
      }),
      "How plans of phases run.",
    ),
    session: key(
      z.strictObject({
        total: key(z.int().min(1), "Tokens of one session."),
        per_tool_call: key(pageTokens, "Most tokens of one tool result."),
        history_max: key(z.int().min(0), "Most tokens of the work log."),
        warning_threshold: key(z.int().min(0), "Warn when fewer tokens than this remain."),
        tools: key(z.record(text, pageTokens), "Maps a tool's name to the most tokens of its result."),
        tiers: z
          .strictObject(Object.fromEntries(ledgerTiers.map((tier) => [tier, z.int().min(0).optional()])))
          .meta({
            description: "Most tokens of single tiers: system, history, tool_results, user, response.",
            default: defaultConfig.session.tiers,
          })
          .optional(),
        hints: key(z.enum(["note", "schema", "off"]), "Where the model reads what the budget allows."),
      }),
      "Budget of one agent run.",
    ),
    history: key(
      z.strictObject({
        policy: key(z.enum([...policyNames, "none"]), "How a history is trimmed."),
        threshold: key(z.number().gt(0).max(1), "Share of the window at which the rfc policies trim."),
        keep: key(z.int().min(0), "The number of newest assistant turns that are not changed."),
        reserve: key(z.int().min(0), "Tokens of the window kept free for the answer, at most half of it."),
      }),
      "Trimming of conversation histories.",
    ),
    deny: key(
      z.array(text),
      "Globs of more files whose contents no tool, snapshot or prompt shows, besides likely secrets.",
    ),
    allow: key(z.array(text), "Globs of files whose contents are shown although they usually hold secrets."),
    run: key(
      z.strictObject({
        agent: key(text, "The agent: claude, codex, opencode, gemini or pi. --agent and --agent-command override it."),
        model: key(text, "The agent's model. --model and the model of a phase override it."),
        allow: key(z.enum(allowLevels), "What the agent may do without asking. --allow overrides it."),
        args: key(z.array(text), "More words for the command line of this agent."),
      }),
      "How run and nebula apply start agents. In a project it needs trust.",
    ),
    guard: key(
      z.strictObject({
        session_usd: key(z.number().gt(0), "Most dollars of one session with its sub-agents, at list prices."),
        day_usd: key(z.number().gt(0), "Most dollars of all sessions of one day, at list prices."),
        on_limit: key(z.enum(["ask", "deny"]), "What happens at a limit: ask a person, or deny."),
      }),
      "Stops tool calls of Claude Code at a limit in dollars. In a project it needs trust.",
    ),
    store: key(
      text,
      "File of the store, or the address of a PostgreSQL database. `default` is the file in the user's state directory. Only for the user's configuration.",
    ),
    retention: key(
      z.string().regex(/^[1-9]\d{0,5}[mhdw]$/, "must be an age such as 30d, 12h or 8w"),
      "How long state is kept after its last use: `30d`. Without it, until you delete it. Only for the user's configuration.",
    ),
    prices: key(
      z.record(text, z.record(text, z.number().min(0))),
      "Maps a model to its prices. Overrides the built-in table.",
    ),
  })
  .meta({ title: "Plimsoll configuration", description: "The file .plimsoll/config.yaml." });

/** The keys are few, because a company must not choose what runs or where a project's state goes. */
export const companyConfigSchema: z.ZodType<CompanyConfig> = z
  .strictObject({
    budgets: key(budgets, "The most that each AI tool gets. A project may set less, not more."),
    required: key(z.array(text), "Ids of packs that a project cannot leave out."),
    tools: key(z.array(text), "Ids of the AI tools to write for in projects without a list of their own."),
  })
  .meta({ title: "A company's configuration", description: "The file config.yaml beside a company's packs." });

/** Returns the schema as JSON Schema: for editors, and to list the allowed keys of an object. */
export function configJsonSchema(): JsonSchema {
  return addDefaults(z.toJSONSchema(configSchema, { io: "input" }) as JsonSchema, defaultConfig);
}

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly enum?: readonly string[];
  readonly [keyword: string]: unknown;
}

/** A default is only shown in an editor. */
function addDefaults(schema: JsonSchema, value: unknown): JsonSchema {
  if (schema.properties === undefined) return value === undefined ? schema : { ...schema, default: value };
  const below = Object.entries(schema.properties).map(([name, each]) => [name, addDefaults(each, Object(value)[name])]);
  return { ...schema, properties: Object.fromEntries(below) };
}

/** Every key may be absent: its value then comes from the layer below. */
function key<Schema extends z.ZodType>(schema: Schema, description: string): z.ZodOptional<Schema> {
  return schema.meta({ description }).optional();
}
