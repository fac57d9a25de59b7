/** One phase file by itself: what is wrong between phases is for checks/. */
import type { ContentProblem } from "../../../workspace/index.ts";
import { type AgentSetting, agentSettings } from "./agent-settings.ts";
import { type PhaseFile, phaseSchema } from "./nebula-schema.ts";
import { splitFrontMatter } from "./toml/front-matter.ts";
import { type PartOf, parseTomlDocument } from "./toml/toml-document.ts";

/** As much of a phase as could be read. */
export interface PhaseDraft {
  readonly file: string;
  readonly keys: PartOf<PhaseFile>;
  readonly body: string;
  readonly problems: readonly ContentProblem[];
  readonly agentSettings: readonly AgentSetting[];
  lineOf(path: readonly PropertyKey[]): number;
}

export async function parsePhaseFile(text: string, file: string): Promise<PhaseDraft> {
  const parts = splitFrontMatter(text);
  if ("rule" in parts) {
    const problems = [{ file, severity: "error" as const, ...parts }];
    return { file, keys: {}, body: "", problems, agentSettings: [], lineOf: () => parts.line };
  }
  const { toml, tomlLine, body } = parts;
  const { value, problems, lineOf } = await parseTomlDocument({ toml, firstLine: tomlLine }, phaseSchema);
  const isMalformed = problems.some(({ rule }) => rule === "malformed-toml");
  const keys = isMalformed ? { id: guessId(toml) } : value;
  const told = [...problems, ...idProblems(keys.id, lineOf)].map((problem) => ({ file, ...problem }));
  return { file, keys, body, problems: told, agentSettings: agentSettings(keys, { file, lineOf }), lineOf };
}

/** Else every phase that depends on this one would be told that there is none. */
function guessId(toml: string): string | undefined {
  return /^[ \t]*id[ \t]*=[ \t]*["']([^"'\n]+)["']/m.exec(toml)?.[1];
}

/** It names folders and records. */
const wellFormedId = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

function idProblems(id: string | undefined, lineOf: PhaseDraft["lineOf"]): Omit<ContentProblem, "file">[] {
  if (id === undefined || wellFormedId.test(id)) return [];
  const message = `id ${JSON.stringify(id)} cannot name a file: use at most 100 letters A-Z, digits, dots, dashes and underscores, a letter or digit first`;
  return [{ line: lineOf(["id"]), severity: "error", rule: "invalid-id", message }];
}
