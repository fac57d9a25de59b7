/** The skills of repositories as `sync` pinned them in the project: folders in `fetched/skills/`, with a hash of each in
 *  `index.json`. Inject installs these copies, so it needs no network. */
import { join } from "node:path";
import { compareText } from "../../core/text/index.ts";
import { type SkillSource, withoutPasswords } from "../../host/index.ts";
import type { ContentScope } from "../content/content-files.ts";
import type { ContentProblem } from "../content/load-content.ts";
import { explainPowers, readSkills } from "../content/read-skills.ts";
import { createPackSource, type PackLayer, type Skill } from "../packs/index.ts";
import { hashText, type PinFolder, readPinIndex, type SkillPin } from "./fetched-texts.ts";

/** The pack that brings the skills into a run. */
const packId = "fetched-skills";

/** Returns the layers with the pinned skills. A skill that is missing or was changed is a problem of its own file. */
export async function addPinnedSkills(
  layers: readonly PackLayer[],
  {
    skills,
    folder,
    line,
  }: { readonly skills: readonly SkillSource[]; readonly folder: PinFolder; readonly line: number },
): Promise<{ readonly layers: readonly PackLayer[]; readonly problems: readonly ContentProblem[] }> {
  const config = join(folder.directory, "config.yaml");
  const problems: ContentProblem[] = [];
  const fail = (file: string, message: string, at = 1) =>
    problems.push({ file, line: at, severity: "error", rule: "fetched-skill", message });
  const index = await readPinIndex(folder);
  if ("reason" in index) {
    fail(index.file, index.reason);
    return { layers, problems };
  }
  const stored = await readFetchedSkills(folder);
  const used = new Map<string, Skill>();
  for (const source of skills) {
    const pins = index.skills.filter((pin) => isPinOf(pin, source));
    const absent = explainAbsent(pins, source);
    if (absent !== undefined) fail(config, absent, line);
    for (const pin of pins.filter(({ name }) => isWanted(source, name))) {
      const skill = stored.get(pin.name);
      const problem = await explainPinned(skill, pin);
      if (problem === undefined)
        used.set(pin.name, { ...skill!, path: `.plimsoll/fetched/skills/${pin.name}/SKILL.md` });
      else fail(join(folder.directory, "fetched/skills", pin.name, "SKILL.md"), problem);
    }
  }
  const own = layers.flatMap(({ sources }) => sources).find(({ id }) => id === packId);
  if (own !== undefined)
    fail(join(own.directory, "pack.yaml"), `the id "${packId}" is that of the skills in config.yaml`);
  const source = createPackSource({
    pack: { id: packId, name: "Fetched skills", description: "Skills of git repositories", base: true },
    texts: {},
    skills: [...used.values()],
    directory: join(folder.directory, "fetched"),
  });
  return { layers: [...layers, { layer: "project", sources: [source] }], problems };
}

function explainAbsent(pins: readonly SkillPin[], { source, only }: SkillSource): string | undefined {
  const absent = only?.filter((name) => !pins.some((pin) => pin.name === name)) ?? [];
  if (pins.length > 0 && absent.length === 0) return undefined;
  const what = absent.length > 0 ? `the skill ${absent.join(", ")}` : "the skills";
  return `${what} of ${withoutPasswords(source)} were never fetched. Run \`plimsoll sync\``;
}

async function explainPinned(skill: Skill | undefined, { sha256 }: SkillPin): Promise<string | undefined> {
  if (skill !== undefined && hashSkill(skill) === sha256) {
    const powers = await explainPowers(skill);
    return powers && `the skill is not used: ${powers}`;
  }
  const state = skill === undefined ? "is missing" : "differs from its hash in index.json";
  return `the skill ${state}. Run \`plimsoll sync\` to fetch it again, or restore its files`;
}

/** Returns what identifies the source of a pinned skill. */
export function nameSource({
  source,
  revision = "HEAD",
  path = "skills",
}: SkillSource): Pick<SkillPin, "source" | "revision" | "path"> {
  return { source: withoutPasswords(source), revision, path };
}

export function isPinOf(pin: SkillPin, source: SkillSource): boolean {
  const named = nameSource(source);
  return (["source", "revision", "path"] as const).every((key) => pin[key] === named[key]);
}

export function isWanted({ only }: SkillSource, name: string): boolean {
  return only === undefined || only.includes(name);
}

/** Returns the skills in the folder, pinned or not, by name. */
export async function readFetchedSkills({ directory }: PinFolder): Promise<ReadonlyMap<string, Skill>> {
  const scope: ContentScope = { directory, strictness: "warning", within: directory, problems: [] };
  const skills = await readSkills(scope, join(directory, "fetched/skills"));
  return new Map(skills.map((skill) => [skill.name, skill]));
}

export function hashSkill({ files }: Skill): string {
  const sorted = Object.entries(files).sort(([a], [b]) => compareText(a, b));
  return hashText(JSON.stringify(sorted));
}
