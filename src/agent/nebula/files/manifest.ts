/** nebula.toml: what holds for all phases. */
import type { ContentProblem } from "../../../workspace/index.ts";
import { type AgentSetting, agentSettings } from "./agent-settings.ts";
import type { Nebula, Phase } from "./nebula.ts";
import { type ManifestFile, manifestSchema } from "./nebula-schema.ts";
import { parseTomlDocument, type TomlDocument, type TomlProblem } from "./toml/toml-document.ts";

export interface Manifest extends Omit<Nebula, "directory" | "phases"> {
  readonly defaults: Pick<Phase, "type" | "priority" | "labels" | "assignee">;
  readonly problems: readonly ContentProblem[];
  readonly agentSettings: readonly AgentSetting[];
}

/** Where nothing is said: 1 is the most urgent, and those who write nebulas take 2 for what is not. */
const defaultPriority = 2;

export async function parseManifest(text: string, file: string): Promise<Manifest> {
  const document = await parseTomlDocument(
    { toml: text, firstLine: 1, sections: ["nebula"] },
    manifestSchema,
  );
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
    },
    defaults: {
      type: defaults.type,
      priority: defaults.priority || defaultPriority,
      labels: defaults.labels ?? [],
      assignee: defaults.assignee,
    },
    agentSettings: [
      ...agentSettings(execution, { file, prefix: ["execution"], lineOf: document.lineOf }),
      ...agentSettings(context, { file, prefix: ["context"], lineOf: document.lineOf }),
    ],
    problems: [...document.problems, ...emptyNames(document)].map((problem) => ({ file, ...problem })),
  };
}

/** Nothing acts on them here, so they keep nobody from running. */
function emptyNames({ value, lineOf }: TomlDocument<ManifestFile>): TomlProblem[] {
  const { dependencies = {} } = value;
  return (["requires_beads", "requires_nebulae"] as const).flatMap((key) =>
    (dependencies[key] ?? []).flatMap((name, index): TomlProblem[] => {
      if (name.trim() !== "") return [];
      const line = lineOf(["dependencies", key, index]);
      const message = `"dependencies.${key}[${index}]" is empty`;
      return [{ line, severity: "warning", rule: "invalid-value", message }];
    }),
  );
}
