/** What people wrote for those who work in a project. Each text once, whatever links, imports and copies lead to it. */
import { readdir, realpath, stat } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import type { ConventionsFile, ScanProblem } from "../../compose/index.ts";
import { importedNames, isSecretName } from "../../text/index.ts";
import { readRegularText } from "../files/read-regular-file.ts";
import { isGitInternal, isInside } from "../files/resolve-target.ts";
import type { SecretTest } from "../files/secret-files.ts";

export interface Conventions {
  readonly files: readonly ConventionsFile[];
  readonly problems: readonly ScanProblem[];
}

/** The files that hold for the whole project, in this order: the one that most agents read, those of one agent, those for people. Rules
 *  that wait for something (.cursor/rules) and a person's own (CLAUDE.local.md) do not. Upper and lower case are the same. */
const conventionNames: readonly string[] = [
  "AGENTS.md",
  "CLAUDE.md",
  ".claude/CLAUDE.md",
  "GEMINI.md",
  ".github/copilot-instructions.md",
  ".cursorrules",
  ".windsurfrules",
  "CONTRIBUTING.md",
  ".github/CONTRIBUTING.md",
  "docs/CONTRIBUTING.md",
];

/** In these, `@path` imports a file. */
const importing = /(^|\/)(claude|gemini)\.md$/i;
/** As far as Claude Code and Gemini CLI go. */
const mostHops = 5;

export async function readConventions(
  root: string,
  isSecret: SecretTest = isSecretName,
): Promise<Conventions> {
  const found: Found = { root: await realpath(root), isSecret, seen: new Set(), files: [], problems: [] };
  for (const name of conventionNames) {
    const path = await spellingOf(name, found.root);
    if (path !== undefined) await addFile(path, importing.test(path) ? mostHops : 0, found);
  }
  return { files: withoutCopies(found.files), problems: found.problems };
}

interface Found {
  readonly root: string;
  readonly isSecret: SecretTest;
  /** Real paths. */
  readonly seen: Set<string>;
  readonly files: ConventionsFile[];
  readonly problems: ScanProblem[];
}

/** As the file is really written. */
async function spellingOf(name: string, root: string): Promise<string | undefined> {
  const folder = dirname(name);
  const names = (await readdir(join(root, folder)).catch(() => [])).sort();
  const wanted = name.slice(folder === "." ? 0 : folder.length + 1);
  const spelled = names.find((each) => each.toLowerCase() === wanted.toLowerCase());
  return names.includes(wanted) ? name : spelled && join(folder, spelled);
}

/** Adds a file and, `hops` deep, what it imports. */
async function addFile(path: string, hops: number, found: Found): Promise<void> {
  const real = await realpath(join(found.root, path)).catch(() => undefined);
  if (real === undefined || found.seen.has(real)) return;
  found.seen.add(real);
  const text = await readInside(path, real, found);
  if (text === undefined) return;
  const imports = hops > 0 ? await importsOf(text, real, found) : [];
  if (imports.length === 0 || !isOnlyImports(text)) found.files.push({ path, text });
  for (const each of imports) await addFile(each, hops - 1, found);
}

async function readInside(
  path: string,
  real: string,
  { root, isSecret, problems }: Found,
): Promise<string | undefined> {
  if (!isInside(real, root)) {
    problems.push({ path, reason: "is a link out of the project, which is not followed" });
    return undefined;
  }
  const target = relative(root, real).split(sep).join("/");
  if (isGitInternal(target) || isSecret(path) || isSecret(target)) {
    problems.push({
      path,
      reason: `is not read: ${target} ${isGitInternal(target) ? "belongs to git" : "usually holds secrets"}`,
    });
    return undefined;
  }
  // Some tools take a folder of rules by the same name.
  if ((await stat(real).catch(() => undefined))?.isDirectory()) return undefined;
  const read = await readRegularText(real);
  if ("text" in read) return read.text;
  problems.push({ path, reason: read.reason });
  return undefined;
}

/** The Markdown files of the project that a text imports. Anything else, an agent can read by itself. */
async function importsOf(text: string, file: string, { root }: Found): Promise<string[]> {
  const paths: string[] = [];
  for (const name of importedNames(text)) {
    const path = join(dirname(file), name);
    if (!/\.md$/i.test(name) || name.startsWith("~") || !isInside(path, root)) continue;
    if ((await stat(path).catch(() => undefined))?.isFile())
      paths.push(relative(root, path).split(sep).join("/"));
  }
  return paths;
}

function isOnlyImports(text: string): boolean {
  const lines = text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .map((line) => line.trim());
  return lines.every((line) => line === "" || /^@\S+$/.test(line));
}

/** Tools that write one text into many files are common. Of two that are the same the first stays, of two that hold each other the longer. */
function withoutCopies(files: readonly ConventionsFile[]): ConventionsFile[] {
  const texts = files.map(({ text }) => text.replace(/\r\n/g, "\n").trim());
  return files.filter((_, index) => {
    const own = texts[index]!;
    return (
      own !== "" &&
      !texts.some((other, at) => at !== index && other.includes(own) && (other !== own || at < index))
    );
  });
}
