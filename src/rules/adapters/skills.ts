/** Skills of packs as folders of the tools, and commands and agents as files. All are text: they are copied, never made
 *  executable. The main file holds our ownership line, and that of a skill a list of the other files with their hashes,
 *  because a script cannot hold a marker. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fromByteString, toByteString, wellFormed } from "../../core/text/index.ts";
import { listForeign, type PlannedChange, readForeignBytes } from "../../host/index.ts";
import { blockHash, readOwnership } from "../files/marked-block.ts";
import { type AgentTool, agentTools, mayReach, type Pack, type Prompt, type Skill, trimPacks } from "../packs/index.ts";
import type { Adapter, AdapterTarget, PromptFiles } from "./adapter.ts";
import type { Served } from "./choose-adapters.ts";
import { emptyDraft, type FileDraft } from "./draft-file.ts";
import {
  explainRefusal,
  type Places,
  placeBody,
  readTargetState,
  resolveTargetPath,
  type TargetFile,
  wholeFile,
} from "./targets.ts";

/** One file of a skill in a folder of the tools, or the file of a command or an agent. */
export interface SkillFile {
  /** Below the project's root. */
  readonly path: string;
  /** Absent if the skill no longer has the file, so it is deleted. */
  readonly text: string | undefined;
  /** The hash of the file as an earlier run wrote it. Absent for SKILL.md, which holds its own hash. */
  readonly written?: string | undefined;
  readonly isMain: boolean;
  /** The skill's name. Absent for a command or an agent. */
  readonly skill?: string | undefined;
  /** A person changed or wrote a file of the skill, so the others stay as they are too. */
  readonly isHeld: boolean;
  readonly pack: Pack;
  readonly adapters: readonly Adapter[];
}

interface SkillOptions {
  readonly packs: readonly Pack[];
  readonly places: Places;
  /** Other adapters of the project. They help to choose the folders, so a run for one tool adds no second copy. */
  readonly standing?: readonly Adapter[] | undefined;
  readonly served?: Served | undefined;
  readonly force?: boolean | undefined;
}

/** Returns the files of all skills, commands and agents, each SKILL.md after the other files of its skill: a run that
 *  is killed in between finds its own files again. If two packs have one of the same name, the first pack's counts. */
export function planSkills(adapters: readonly Adapter[], options: SkillOptions): SkillFile[] {
  const { packs, places, standing = [], served = { run: [], standing: [] }, force } = options;
  const hasAny = packs.some(({ skills, prompts = [] }) => skills.length + prompts.length > 0);
  if (places.scope === "global" || !hasAny) return [];
  const kept = trimPacks(packs, 0, "full").packs;
  const skills = placeEach(kept, ({ skills }) => skills, {
    folders: chooseFolders([...adapters, ...standing], "skills"),
    adapters,
  }).flatMap(({ item, path, ...about }) =>
    planSkill(item, { folder: join(path, item.name), places, force }).map((file) => ({
      ...about,
      skill: item.name,
      ...file,
    })),
  );
  const prompts = (["command", "agent"] as const).flatMap((kind) =>
    placeEach(kept, (pack) => pack.prompts?.filter((each) => each.kind === kind) ?? [], {
      folders: chooseFolders([...adapters, ...standing, ...served.run, ...served.standing], `${kind}s`),
      adapters: [...adapters, ...served.run],
    }).map(({ item, path, owner, ...about }) => ({
      ...about,
      path: path.replace("{name}", item.name),
      text: renderPrompt(item, owner[`${kind}s`]!, owner.id),
      isMain: true,
      isHeld: false,
    })),
  );
  return [...skills, ...prompts];
}

/** Returns each skill, command or agent with each place that it goes to. */
function placeEach<Item extends { readonly name: string }>(
  packs: readonly Pack[],
  list: (pack: Pack) => readonly Item[],
  {
    folders,
    adapters,
  }: { readonly folders: ReadonlyMap<string, readonly Adapter[]>; readonly adapters: readonly Adapter[] },
): {
  readonly item: Item;
  readonly pack: Pack;
  readonly path: string;
  /** The adapter whose format the place has. */
  readonly owner: Adapter;
  readonly adapters: readonly Adapter[];
}[] {
  const items = new Map<string, { readonly item: Item; readonly pack: Pack }>();
  for (const pack of packs)
    for (const item of list(pack)) if (!items.has(item.name)) items.set(item.name, { item, pack });
  return [...folders].flatMap(([path, [owner, ...others]]) => {
    const readers = [owner!, ...others].filter((each) => adapters.includes(each));
    if (readers.length === 0) return [];
    return [...items.values()]
      .filter(({ pack }) => readers.every(({ id }) => mayReach(pack, id)))
      .map((each) => ({ ...each, path, owner: owner!, adapters: readers }));
  });
}

/** Writes a command or an agent as a tool wants it. */
function renderPrompt({ tools, models, body, ...prompt }: Prompt, form: PromptFiles, tool: string): string {
  const quote = (text: string | undefined) => text && quoteForYaml(text);
  const list = (all: readonly AgentTool[]) => tools && all.flatMap((each) => form.tools?.[each] ?? []).join(", ");
  const values: Readonly<Record<string, string | undefined>> = {
    name: prompt.name,
    description: quote(prompt.description),
    argument_hint: quote(prompt.argumentHint),
    model: quote(models[tool]),
    tools: list(tools ?? []),
    other_tools: list(agentTools.filter((each) => tools?.includes(each) === false)),
  };
  const placeholder = /\{(\w+)\}/g;
  const lines = form.preamble
    .split("\n")
    .filter((line) => [...line.matchAll(placeholder)].every(([, key]) => values[key!]))
    .map((line) => line.replace(placeholder, (_, key: string) => values[key]!));
  return (
    lines.join("\n") + (form.arguments === undefined ? body : body.replaceAll("$ARGUMENTS", () => form.arguments!))
  );
}

/** Claude Code 2.1.327 ends front matter at the first `---`, wherever it is. The keys after it would then be text. */
export function quoteForYaml(text: string): string {
  return JSON.stringify(text).replaceAll("--", "\\u002d\\u002d");
}

/** Chooses the folders for skills, or the paths for commands or agents. Maps each to the adapters that read it, and
 *  lists the adapter first whose own place it is. Chooses few places, because a tool that finds a skill in two of them
 *  may list it twice. */
function chooseFolders(
  all: readonly Adapter[],
  kind: "skills" | "commands" | "agents",
): ReadonlyMap<string, readonly Adapter[]> {
  const folders = new Map<string, readonly Adapter[]>();
  const adapters = [...new Set(all)];
  const pathsOf = (adapter: Adapter) => adapter[kind]?.paths ?? [];
  let open = adapters.filter((each) => pathsOf(each).length > 0).sort((a, b) => (a.id < b.id ? -1 : 1));
  while (open.length > 0) {
    const readersOf = (path: string) => open.filter((each) => pathsOf(each).includes(path));
    // A tool with one folder leaves no choice, so it comes first. Then comes the folder that most tools read.
    const forced = open.find((each) => pathsOf(each).length === 1);
    const [folder] = (forced === undefined ? open.flatMap(pathsOf) : pathsOf(forced)).toSorted(
      (a, b) => readersOf(b).length - readersOf(a).length,
    );
    const isOwn = (each: Adapter) => pathsOf(each)[0] === folder;
    folders.set(
      folder!,
      readersOf(folder!).toSorted((a, b) => Number(isOwn(b)) - Number(isOwn(a))),
    );
    open = open.filter((each) => !pathsOf(each).includes(folder!));
  }
  return folders;
}

function planSkill(
  { files }: Skill,
  { folder, places, force }: Pick<SkillOptions, "places" | "force"> & { readonly folder: string },
): Omit<SkillFile, "pack" | "adapters" | "skill">[] {
  const main = join(folder, mainName);
  const read = (path: string) => readOwn(path, places);
  const earlier = readList(read(main));
  const others = Object.entries(files).filter(([name]) => name !== mainName);
  // Spaces, line breaks and `=` have a meaning in the list.
  const encodeName = (name: string) => wellFormed(name).split("/").map(encodeURIComponent).join("/");
  const gone = [...earlier].filter(([name]) => !Object.hasOwn(files, name));
  const list = others.map(([name, text]) => `${encodeName(name)}=${blockHash(toByteString(text))}`);
  const text = `${files[mainName] ?? ""}${list.length === 0 ? "" : `\n<!-- plimsoll:files ${list.join(" ")} -->\n`}`;
  const planned = [
    ...others.map(([name, text]) => ({ path: join(folder, name), text, written: earlier.get(name), isMain: false })),
    ...gone.map(([name, written]) => ({ path: join(folder, name), text: undefined, written, isMain: false })),
    { path: main, text, isMain: true },
  ];
  const isTaken = (file: (typeof planned)[number]) => {
    const current = read(file.path);
    // A link or a directory is a person's too.
    return (
      isPersons(readState(current, file)) || (current === undefined && existsSync(resolveTargetPath(file.path, places)))
    );
  };
  const isHeld = force !== true && planned.some(isTaken);
  return planned.map((file) => ({ ...file, isHeld }));
}

function isPersons(state: TargetFile): boolean {
  return state === "edited" || state === "foreign";
}

const mainName = "SKILL.md";

/** Returns the other files that our SKILL.md lists, with their hashes. `current` is a byte string. */
function readList(current: string | undefined): ReadonlyMap<string, string> {
  if (current === undefined || readOwnership(current).kind === "foreign") return new Map();
  // The last one is ours, also if a person wrote below it.
  const list = [...fromByteString(current).matchAll(/^<!-- plimsoll:files (.*) -->\s*$/gm)].at(-1)?.[1] ?? "";
  const pairs = list.split(" ").flatMap((entry) => {
    // Earlier versions did not encode `=` in names, and a hash has none.
    const [, name = "", hash] = /^(.*)=(.*)$/.exec(entry) ?? [];
    const path = decodeName(name);
    // A person may have changed the list: nothing outside the skill's folder is ever touched.
    const isInside = name !== "" && !name.startsWith("/") && !path.split(/[\\/]/).includes("..");
    return hash === undefined || !isInside ? [] : [[path, hash] as const];
  });
  return new Map(pairs);
}

function decodeName(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Plans the change of one file. `current` and the new content are byte strings. */
export function planSkillFile(
  current: string | undefined,
  file: SkillFile,
  options: { readonly force: boolean; count(text: string): number },
): PlannedChange<FileDraft> {
  const state = readState(current, file);
  const after = file.text === undefined ? undefined : renderFile(current, file);
  const facts = { ...emptyDraft, packs: [file.pack.id], bytes: after?.length ?? 0, state };
  if (file.isHeld && !isPersons(state)) return { after: current, facts: { ...facts, state: "blocked" } };
  const { force } = options;
  const problem = explainRefusal(state, { current, target: wholeFile(file.path), force, skill: file.skill });
  if (problem !== undefined) return { problem, facts };
  const { text = "" } = file;
  return { after, facts: { ...facts, tokens: options.count(text), status: "ok", text, file: after } };
}

function readState(
  current: string | undefined,
  { path, isMain, text, written }: Pick<SkillFile, "path" | "isMain" | "text" | "written">,
): TargetFile {
  if (isMain) return readTargetState(current, wholeFile(path));
  if (current === undefined) return "not found";
  const hash = blockHash(current);
  if (hash === written || (text !== undefined && hash === blockHash(toByteString(text)))) return "injected";
  return written === undefined ? "foreign" : "edited";
}

/** Keeps the line ends of a checkout. */
function renderFile(current: string | undefined, { path, isMain, text = "" }: SkillFile): string {
  if (isMain) return placeBody(current, text, wholeFile(path)).bytes();
  const bytes = toByteString(text);
  return current !== undefined && blockHash(current) === blockHash(bytes) ? current : bytes;
}

/** A file of a skill on the disk that Plimsoll wrote. */
export interface WrittenSkillFile {
  readonly adapter: Adapter;
  readonly target: AdapterTarget;
  /** The skill's folder. */
  readonly folder: string;
  /** Absent for SKILL.md. */
  readonly written?: string | undefined;
  /** A person edited this file, or put a folder in its place. */
  readonly isEdited: boolean;
  /** A person edited a file of the skill, so all of them stay. */
  readonly isHeld: boolean;
}

/** Finds the skills of Plimsoll in the folders of the tools, the SKILL.md after the other files. With `onlyKnown`, looks
 *  only in each tool's own folder: the others belong to other tools. */
export function findSkillFiles(
  known: readonly Adapter[],
  { places, onlyKnown }: { readonly places: Places; readonly onlyKnown?: boolean | undefined },
): WrittenSkillFile[] {
  if (places.scope === "global") return [];
  return known.flatMap((adapter) =>
    (adapter.skills?.paths ?? []).slice(0, onlyKnown ? 1 : undefined).flatMap((path) => {
      const entries = listForeign(resolveTargetPath(path, places));
      const names = (Array.isArray(entries) ? entries : [])
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => name);
      return names.sort().flatMap((name) => {
        const folder = join(path, name);
        const files = readWritten(folder, places);
        const isHeld = files.some(({ isEdited }) => isEdited);
        return files.map(({ path: file, ...rest }) => ({ adapter, target: wholeFile(file), folder, isHeld, ...rest }));
      });
    }),
  );
}

/** Returns the files of a skill that Plimsoll wrote and that are still there. */
function readWritten(
  folder: string,
  places: Places,
): (Pick<WrittenSkillFile, "written" | "isEdited"> & { readonly path: string })[] {
  const read = (path: string) => readOwn(path, places);
  const path = join(folder, mainName);
  const current = read(path);
  const ownership = current === undefined ? undefined : readOwnership(current);
  if (ownership === undefined || ownership.kind === "foreign") return [];
  const others = [...readList(current)]
    .map(([name, written]) => ({ path: join(folder, name), written }))
    .filter((each) => existsSync(resolveTargetPath(each.path, places)))
    .map((each) => ({ ...each, isEdited: blockHash(read(each.path) ?? "") !== each.written }));
  return [...others, { path, isEdited: ownership.edited }];
}

function readOwn(path: string, places: Places): string | undefined {
  return readForeignBytes(resolveTargetPath(path, places), { within: places.root, refuseLink: true });
}

/** Returns the SKILL.md that an instruction file names for tools without skills. */
export function skillPathFor(adapters: readonly Adapter[]): (skill: Skill) => string | undefined {
  const [folder] = chooseFolders(adapters, "skills").keys();
  return ({ name, path }) => (folder === undefined ? path : `${folder}/${name}/${mainName}`);
}
