/** Reads the skills, commands and agents of a pack. They are text that goes into folders of the AI tools. */
import { type Dirent, lstatSync } from "node:fs";
import { basename, join } from "node:path";
import { isPlainObject, oneLine } from "../../core/text/index.ts";
import { loadYaml } from "../../host/index.ts";
import { agentTools, type Prompt, type Skill } from "../packs/index.ts";
import { type ContentScope, listContent, readContentText, report } from "./content-files.ts";

/** Reads the folders in `skills/`. Links in it are not followed: its files are copied into other folders. */
export async function readSkills(
  scope: ContentScope,
  directory: string,
  isRead: (name: string) => boolean = () => true,
): Promise<Skill[]> {
  if (lstatSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  const yaml = await loadYaml();
  return listContent(scope, directory).flatMap((entry) => {
    const folder = join(directory, entry.name);
    const warn = (message: string, file = folder) =>
      report(scope, { file, severity: "warning", rule: "skill", message }) ?? [];
    if (!isRead(entry.name)) return [];
    if (entry.isSymbolicLink()) return warn(linkedSkill);
    if (!entry.isDirectory()) return [];
    const files = Object.fromEntries(readSkillFiles(scope, folder, ""));
    const main = files["SKILL.md"];
    if (main === undefined) return warn("has no SKILL.md, so it is not a skill");
    if (!isSkillName(entry.name)) return warn(`is left out: the name of a skill ${nameRule}`);
    if (main.includes("<!-- plimsoll:files")) {
      return warn("the skill is left out: it has a comment of Plimsoll's own", join(folder, "SKILL.md"));
    }
    const { description } = readFrontMatter(main, yaml);
    if (description === "") {
      return warn("the skill is left out: it needs front matter with a description", join(folder, "SKILL.md"));
    }
    return [{ name: entry.name, description, files }];
  });
}

const linkedSkill = "is a link, and links in skills are not followed. Copy the files instead.";

const nameRule = "has at most 64 lower-case letters, digits and single dashes";

function isSkillName(name: string): boolean {
  return /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name) && name.length <= 64;
}

/** Returns the front matter of a file, its description in one line, and the text below. */
function readFrontMatter(
  text: string,
  { readYaml }: Awaited<ReturnType<typeof loadYaml>>,
): {
  readonly keys: Readonly<Record<string, unknown>>;
  readonly description: string;
  readonly frontMatter: string;
  readonly body: string;
} {
  const [whole = "", frontMatter = ""] = /^---\n([\s\S]*?)\n---(?:\n|$)/.exec(text) ?? [];
  const { input } = readYaml(frontMatter);
  const keys = isPlainObject(input) ? input : {};
  const description = typeof keys.description === "string" ? oneLine(keys.description) : "";
  return { keys, description, frontMatter, body: text.slice(whole.length) };
}

/** Returns the text files of a skill by their path. A file that is not text is left out with a warning. */
function readSkillFiles(scope: ContentScope, folder: string, prefix: string): [string, string][] {
  return listContent(scope, join(folder, prefix)).flatMap((entry): [string, string][] => {
    const name = prefix === "" ? entry.name : `${prefix}/${entry.name}`;
    const file = join(folder, name);
    const warn = (message: string) => report(scope, { file, severity: "warning", rule: "skill", message }) ?? [];
    if (entry.isSymbolicLink()) return warn(linkedSkill);
    if (entry.isDirectory()) return readSkillFiles(scope, folder, name);
    const own: ContentScope = { ...scope, problems: [] };
    const text = readContentText(own, file);
    return text === undefined ? warn(`is left out: ${own.problems[0]?.message}`) : [[name, text]];
  });
}

/** Keys of a SKILL.md that only describe it. Others start programs or allow tools without a question, as `hooks`,
 *  `allowed-tools` and `shell` do in Claude Code 2.1.327. The first five are those of agentskills.io/specification. */
const harmlessKeys: readonly string[] = [
  ...["name", "description", "license", "compatibility", "metadata"],
  ...["argument-hint", "author", "disable-model-invocation", "tags", "user-invocable", "version", "when_to_use"],
];

/** Returns why a repository may not bring this skill: its text would act before a person or a model reads it. Tools also
 *  find a SKILL.md in a folder of a skill. */
export async function explainPowers({ files }: Skill): Promise<string | undefined> {
  const yaml = await loadYaml();
  for (const [name, text] of Object.entries(files)) {
    if (/[\u202a-\u202e\u2066-\u2069]|[\u{e0000}-\u{e007f}]/u.test(text)) return "it has characters that nobody sees";
    if (!/(?:^|\/)skill\.md$/i.test(name)) continue;
    const { keys, frontMatter } = readFrontMatter(text, yaml);
    const key = Object.keys(keys).find((each) => !harmlessKeys.includes(each));
    if (key !== undefined) return `its key "${key}" could give it more rights`;
    const program = findProgram(text);
    if (program !== undefined) return `AI tools run ${oneLine(program)} before they ask`;
    if (frontMatter.includes("---")) return "its front matter has ---, at which some AI tools end it";
  }
  return undefined;
}

/** Returns a part of a text that AI tools run when they load the text. Looks at front matter too: Claude Code 2.1.327 ends
 *  it at the first `---`, wherever that is, and finds these signs in the middle of a line and across lines. */
function findProgram(text: string): string | undefined {
  return /!`[^`]+`|```!/.exec(text)?.[0];
}

/** Reads `commands/` or `agents/`: one file for each. Only the keys of `Prompt` are read, and a file with any other key is
 *  left out: in some tools such a key starts programs, or allows tools without a question. */
export async function readPrompts(scope: ContentScope, directory: string, kind: Prompt["kind"]): Promise<Prompt[]> {
  if (lstatSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  const yaml = await loadYaml();
  return listContent(scope, directory).flatMap((entry) => {
    const file = join(directory, entry.name);
    const warn = (message: string) =>
      report(scope, { file, severity: "warning", rule: kind, message: `is left out: ${message}` }) ?? [];
    const problem = explainPromptName(entry, kind);
    if (problem !== undefined) return warn(problem);
    const text = readContentText(scope, file);
    if (text === undefined) return [];
    const { keys, description, body } = readFrontMatter(text, yaml);
    if (description === "") return warn("it needs front matter with a description");
    const shape = readPromptKeys(keys, kind);
    if (typeof shape === "string") return warn(shape);
    const program = kind === "command" ? findProgram(text) : undefined;
    if (program !== undefined)
      return warn(`AI tools run ${oneLine(program)} before they ask. Write what the agent should run as a sentence.`);
    return [{ kind, name: basename(entry.name, ".md"), description, body, ...shape }];
  });
}

function explainPromptName(entry: Dirent, kind: Prompt["kind"]): string | undefined {
  const name = basename(entry.name, ".md");
  if (entry.isSymbolicLink()) return "it is a link. Copy the file instead.";
  if (!entry.isFile() || name === entry.name) return `${kind}s/ holds one NAME.md for each ${kind}`;
  if (!isSkillName(name)) return `the name of ${kind === "agent" ? "an agent" : "a command"} ${nameRule}`;
  return kind === "agent" && builtInAgents.includes(name) ? `AI tools have an agent "${name}" of their own` : undefined;
}

/** Names that would replace an agent of a tool. Seen in the first requests of Claude Code 2.1.327 and Copilot CLI 1.0.102
 *  and in \`opencode agent list\` of 1.18.33, 2026-11-18. */
const builtInAgents: readonly string[] = `build code-review compaction explore general general-purpose plan research
  rubber-duck security-review statusline-setup summary task title`.split(/\s+/);

/** Returns what the keys of a command or an agent say, or what is wrong with one. */
function readPromptKeys(
  keys: Readonly<Record<string, unknown>>,
  kind: Prompt["kind"],
): Pick<Prompt, "argumentHint" | "tools" | "models"> | string {
  const known = ["description", "model", kind === "command" ? "argument-hint" : "tools"];
  const unknown = Object.keys(keys).find((key) => !known.includes(key));
  if (unknown !== undefined)
    return `the key "${unknown}" could give a ${kind} more rights. Keys are ${known.join(", ")}.`;
  const { "argument-hint": hint, tools, model = {} } = keys;
  if (hint !== undefined && typeof hint !== "string") return 'argument-hint is a text, such as "[branch]"';
  const isModel = (value: unknown) => typeof value === "string" && /^[\w./:@#[\]-]+$/.test(value);
  if (!isPlainObject(model) || !Object.values(model).every(isModel))
    return "model maps ids of tools to models: { claude-code: haiku }";
  const list: unknown = typeof tools === "string" ? tools.split(/[\s,]+/).filter((tool) => tool !== "") : tools;
  // Without a list, a tool allows everything, so an empty one would give more than it says.
  const isTools = Array.isArray(list) && list.length > 0 && list.every((tool) => agentTools.includes(tool));
  if (list !== undefined && !isTools) return `tools is a list of ${agentTools.join(", ")}`;
  return {
    ...(hint !== undefined && { argumentHint: oneLine(hint) }),
    ...(isTools && { tools: agentTools.filter((tool) => list.includes(tool)) }),
    models: model as Prompt["models"],
  };
}
