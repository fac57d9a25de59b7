/** Parses nebula.toml and phase files. Loads zod. Keys marked as carried are checked but have no effect. */
import { z } from "zod";
import { type Allow, allowLevels } from "../../host/index.ts";
import type { ContentProblem } from "../../rules/index.ts";
import { agentPresets } from "../agent/index.ts";
import { gates, type Nebula, type Phase, type Reviewer, readDuration, type ScopePolicy } from "./nebula.ts";
import {
  type PartOf,
  parseTomlDocument,
  splitFrontMatter,
  type TomlDocument,
  type TomlProblem,
} from "./toml-document.ts";

const text = z.string();
const texts = z.array(z.string());
/** Names of phases and patterns, which must not be empty. */
const names = z.array(z.string().min(1));
const atLeast0 = z.number().min(0);
const whole = z.int().min(0);
/** A time as Go writes it, because other runners of these files do. */
const time = z
  .string()
  .regex(/^(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))+)$/, 'a time such as "90s", "5m" or "1h30m"');

const check = names;
const scopePolicy = z.enum(["warn", "fail"]);
const reviewer = z.strictObject({ agent: z.enum(Object.keys(agentPresets)).optional(), model: text.optional() });

const manifestSchema = z.strictObject({
  nebula: z.strictObject({
    name: z.string(),
    // Carried:
    description: text.optional(),
  }),
  defaults: z
    .strictObject({
      priority: z.int().optional(),
      // Carried:
      type: text.optional(),
      labels: texts.optional(),
      assignee: text.optional(),
    })
    .optional(),
  execution: z
    .strictObject({
      max_workers: whole.optional(),
      max_context_tokens: whole.optional(),
      gate: z.enum(gates).optional(),
      model: text.optional(),
      allow: z.enum(allowLevels).optional(),
      max_budget_usd: atLeast0.optional(),
      max_review_cycles: whole.optional(),
      check: check.optional(),
      check_timeout: time.optional(),
      scope_policy: scopePolicy.optional(),
      reviewer: reviewer.optional(),
      // Carried:
      hail_timeout: time.optional(),
      routing: z
        .strictObject({
          enabled: z.boolean().optional(),
          tiers: z
            .array(
              z.strictObject({
                name: text.optional(),
                model: text.optional(),
                max_score: z.number().optional(),
              }),
            )
            .optional(),
        })
        .optional(),
      auto_decompose: z.boolean().optional(),
      healing: z.boolean().optional(),
      healing_max_attempts: whole.optional(),
      healing_budget_reserve: atLeast0.optional(),
    })
    .optional(),
  context: z
    .strictObject({
      working_dir: text.optional(),
      goals: texts.optional(),
      constraints: texts.optional(),
      // Carried:
      repo: text.optional(),
    })
    .optional(),
  // Carried:
  dependencies: z.strictObject({ requires_beads: texts.optional(), requires_nebulae: texts.optional() }).optional(),
});

type ManifestFile = z.infer<typeof manifestSchema>;

const phaseSchema: z.ZodType<PhaseFile> = z.strictObject({
  id: z.string(),
  title: z.string(),
  priority: z.int().optional(),
  depends_on: names.optional(),
  blocks: names.optional(),
  scope: names.optional(),
  allow_scope_overlap: z.boolean().optional(),
  gate: z.enum(gates).optional(),
  model: text.optional(),
  allow: z.enum(allowLevels).optional(),
  max_budget_usd: atLeast0.optional(),
  max_review_cycles: whole.optional(),
  check: check.optional(),
  check_timeout: time.optional(),
  scope_policy: scopePolicy.optional(),
  reviewer: reviewer.optional(),
  // Carried:
  type: text.optional(),
  labels: texts.optional(),
  assignee: text.optional(),
  decomposed: z.boolean().optional(),
  auto_decompose: z.boolean().optional(),
});

/** The keys of a phase's front matter that have an effect or that programs read. */
export interface PhaseFile {
  id: string;
  title: string;
  type?: string | undefined;
  priority?: number | undefined;
  depends_on?: string[] | undefined;
  blocks?: string[] | undefined;
  labels?: string[] | undefined;
  assignee?: string | undefined;
  scope?: string[] | undefined;
  allow_scope_overlap?: boolean | undefined;
  gate?: (typeof gates)[number] | undefined;
  model?: string | undefined;
  allow?: Allow | undefined;
  max_budget_usd?: number | undefined;
  max_review_cycles?: number | undefined;
  check?: string[] | undefined;
  check_timeout?: string | undefined;
  scope_policy?: ScopePolicy | undefined;
  reviewer?: Reviewer | undefined;
}

/** The schemas that editors use, by the name of their file in schemas/. */
export const nebulaSchemas: Readonly<Record<"nebula" | "phase", z.ZodType>> = {
  nebula: manifestSchema,
  phase: phaseSchema,
};

/** The content of nebula.toml: settings for all phases. */
export interface Manifest extends Omit<Nebula, "directory" | "phases"> {
  readonly defaults: Pick<Phase, "type" | "priority" | "labels" | "assignee">;
  readonly problems: readonly ContentProblem[];
  readonly agentSettings: readonly AgentSetting[];
  /** Its limit on the cost, with its place. */
  readonly limits: readonly AgentSetting[];
}

export async function parseManifest(text: string, file: string): Promise<Manifest> {
  const document = await parseTomlDocument({ toml: text, firstLine: 1, sections: ["nebula"] }, manifestSchema);
  const { nebula = {}, defaults = {}, execution = {}, context = {} } = document.value;
  return {
    name: nebula.name ?? "",
    description: nebula.description ?? "",
    goals: context.goals ?? [],
    constraints: context.constraints ?? [],
    workingDirectory: context.working_dir,
    execution: {
      maxWorkers: execution.max_workers || undefined,
      maxContextTokens: execution.max_context_tokens,
      gate: execution.gate,
      model: execution.model,
      allow: execution.allow,
      maxBudgetUsd: execution.max_budget_usd || undefined,
      check: execution.check,
      checkTimeoutMs: readDuration(execution.check_timeout),
      scopePolicy: execution.scope_policy,
      maxReviewCycles: execution.max_review_cycles,
      reviewer: execution.reviewer,
    },
    defaults: {
      type: defaults.type,
      // 1 is the most urgent.
      priority: defaults.priority || 2,
      labels: defaults.labels ?? [],
      assignee: defaults.assignee,
    },
    limits: pickSettings(execution, ["max_budget_usd"], { file, prefix: ["execution"], lineOf: document.lineOf }),
    agentSettings: [
      ...pickAgentSettings(execution, { file, prefix: ["execution"], lineOf: document.lineOf }),
      ...pickAgentSettings(context, { file, prefix: ["context"], lineOf: document.lineOf }),
    ],
    problems: [...document.problems, ...checkRequirements(document), ...nameUnused(document)].map((problem) => ({
      file,
      ...problem,
    })),
  };
}

/** Warns that `requires_beads` and `requires_nebulae` have no effect: nothing checks them before a run. An empty name
 *  is only a warning, too. */
function checkRequirements({ value, lineOf }: TomlDocument<ManifestFile>): TomlProblem[] {
  const { dependencies = {} } = value;
  return (["requires_beads", "requires_nebulae"] as const).flatMap((key) =>
    (dependencies[key] ?? []).map((name, index): TomlProblem => {
      const place = { line: lineOf(["dependencies", key, index]), severity: "warning" as const };
      const item = `"dependencies.${key}[${index}]"`;
      if (name.trim() === "") return { ...place, rule: "invalid-value", message: `${item} is empty` };
      const message = `${item} has no effect: apply does not check whether ${JSON.stringify(name)} has completed`;
      return { ...place, rule: "not-enforced", message };
    }),
  );
}

/** Warns once about keys that other runners of these files know and that have no effect here. */
function nameUnused({ value, lineOf }: TomlDocument<ManifestFile>): TomlProblem[] {
  const { execution = {} } = value;
  const unused = [
    "hail_timeout",
    "routing",
    "auto_decompose",
    "healing",
    "healing_max_attempts",
    "healing_budget_reserve",
  ].filter((key) => Object.hasOwn(execution, key));
  const [first] = unused;
  if (first === undefined) return [];
  const message = `without effect here: ${unused.map((key) => `execution.${key}`).join(", ")}`;
  return [{ line: lineOf(["execution", first]), severity: "warning", rule: "not-enforced", message }];
}

// Parsing of one phase file. check-phases.ts checks phases against each other.

/** The part of a phase that could be read. */
export interface PhaseDraft {
  readonly file: string;
  readonly keys: PartOf<PhaseFile>;
  readonly body: string;
  readonly problems: readonly ContentProblem[];
  readonly agentSettings: readonly AgentSetting[];
  readonly limits: readonly AgentSetting[];
  lineOf(path: readonly PropertyKey[]): number;
}

export async function parsePhaseFile(text: string, file: string): Promise<PhaseDraft> {
  const parts = splitFrontMatter(text);
  if ("rule" in parts) {
    const problems = [{ file, severity: "error" as const, ...parts }];
    return { file, keys: {}, body: "", problems, agentSettings: [], limits: [], lineOf: () => parts.line };
  }
  const { toml, tomlLine, body } = parts;
  const { value, problems, lineOf } = await parseTomlDocument({ toml, firstLine: tomlLine }, phaseSchema);
  const isMalformed = problems.some(({ rule }) => rule === "malformed-toml");
  // Finds the id in malformed TOML. Otherwise every phase that depends on this one would report an unknown id.
  const guessId = () => /^[ \t]*id[ \t]*=[ \t]*["']([^"'\n]+)["']/m.exec(toml)?.[1];
  const keys = isMalformed ? { id: guessId() } : value;
  return {
    file,
    keys,
    body,
    problems: [...problems, ...checkId(keys.id, lineOf), ...checkReach(keys.scope, lineOf)].map((problem) => ({
      file,
      ...problem,
    })),
    agentSettings: pickAgentSettings(keys, { file, lineOf }),
    limits: pickSettings(keys, ["max_budget_usd"], { file, lineOf }),
    lineOf,
  };
}

/** An id must be usable as the name of folders and records. */
function checkId(id: string | undefined, lineOf: PhaseDraft["lineOf"]): Omit<ContentProblem, "file">[] {
  if (id === undefined || /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(id)) return [];
  const message = `id ${JSON.stringify(id)} cannot name a file: use at most 100 letters A-Z, digits, dots, dashes and underscores, a letter or digit first`;
  return [{ line: lineOf(["id"]), severity: "error", rule: "invalid-id", message }];
}

/** Warns about a scope that leads out of the folder: no change in it is ever found, so the phase stays unchanged. */
function checkReach(scope: readonly string[] = [], lineOf: PhaseDraft["lineOf"]): Omit<ContentProblem, "file">[] {
  return scope.flatMap((pattern, index) => {
    if (!/^(?:\.?\/)*\.\.(?:\/|$)/.test(pattern)) return [];
    const message = `scope ${JSON.stringify(pattern)} leads out of the folder, where no change counts`;
    return [{ line: lineOf(["scope", index]), severity: "warning" as const, rule: "never-completes", message }];
  });
}

/** A setting of a nebula's files about agents: command, model, folder or permissions. */
export interface AgentSetting {
  /** Absolute. */
  readonly file: string;
  readonly line: number;
  readonly key: string;
  readonly value: unknown;
}

interface SettingFile {
  /** Absolute. */
  readonly file: string;
  /** The table that contains the keys. */
  readonly prefix?: readonly string[] | undefined;
  lineOf(path: readonly PropertyKey[]): number;
}

function pickAgentSettings(table: object, place: SettingFile): AgentSetting[] {
  // Keys of phases and of tables in nebula.toml. Add a key here before it is in the schema.
  const keys = ["model", "agent", "command", "args", "allow", "working_dir", "check", "reviewer"];
  // `allow = "read"` is the smallest permission, so nobody has to trust it.
  return pickSettings(table, keys, place).filter(({ key, value }) => !(key.endsWith("allow") && value === "read"));
}

function pickSettings(
  table: object,
  keys: readonly string[],
  { file, prefix = [], lineOf }: SettingFile,
): AgentSetting[] {
  return Object.entries(table).flatMap(([key, value]) => {
    const path = [...prefix, key];
    return keys.includes(key) ? { file, line: lineOf(path), key: path.join("."), value } : [];
  });
}
