/** Reads files of one layer and notes what is wrong with them. A file that cannot be used never throws: the others are looked at too. */
import { type Dirent, readdirSync, readFileSync, realpathSync, type Stats, statSync } from "node:fs";
import { basename, join } from "node:path";
import type { z } from "zod";
import { decodeText, systemReason } from "../files/read-text.ts";
import { isInside } from "../files/resolve-target.ts";
import { parseYamlDocument, type YamlDocument } from "../yaml/yaml-document.ts";
import type { ContentProblem, Severity } from "./content-problem.ts";

/** One layer while it is read. */
export interface ContentScope {
  readonly directory: string;
  /** How bad an unknown key is. */
  readonly strictness: Severity;
  /** Whether links may lead out of the directory: people link their own files together, a repository has no business elsewhere. */
  readonly mayLeave: boolean;
  readonly problems: ContentProblem[];
}

/** A tool that writes more than this into a prompt has no use for it, and a slip of the hand must not fill the memory. */
const maxContentBytes = 5 * 1024 * 1024;

/** Names in a fixed order; hidden ones are left out. A directory that is not there is empty. */
export function listContent(scope: ContentScope, directory: string): Dirent[] {
  try {
    if (leaves(scope, directory)) return report(scope, { file: directory, ...outsideLink }) ?? [];
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries.filter(({ name }) => !name.startsWith(".")).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    report(scope, { file: directory, rule: "unreadable", message: systemReason(error) });
    return [];
  }
}

/** The text with LF line ends and without a byte order mark: it is going to stand in the middle of another file. */
export function readContentText(scope: ContentScope, file: string): string | undefined {
  const stats = statContent(scope, file);
  if (stats === undefined) return undefined;
  if (!stats.isFile()) {
    const message = stats.isDirectory() ? "is a directory, not a file" : "is not a regular file";
    return report(scope, { file, rule: "not-a-file", message });
  }
  if (stats.size > maxContentBytes) {
    const message = `has ${stats.size} bytes, files above ${maxContentBytes} (5 MB) are not read. Split it, or keep it out of the packs.`;
    return report(scope, { file, rule: "too-large", message });
  }
  return decodeContent(scope, file);
}

/** What is at the path behind links; undefined and reported if nothing usable is. */
export function statContent(scope: ContentScope, path: string): Stats | undefined {
  try {
    return leaves(scope, path) ? report(scope, { file: path, ...outsideLink }) : statSync(path);
  } catch (error) {
    return report(scope, { file: path, rule: "unreadable", message: systemReason(error) });
  }
}

function leaves({ mayLeave, directory }: ContentScope, path: string): boolean {
  return !mayLeave && !isInside(realpathSync(path), realpathSync(directory));
}

const outsideLink = {
  rule: "outside-link",
  message: "is a symbolic link that leaves the content directory. Copy what it points to.",
};

function decodeContent(scope: ContentScope, file: string): string | undefined {
  try {
    const read = decodeText(readFileSync(file));
    if ("text" in read) return read.text.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
    const line = Number(/in line (\d+)/.exec(read.reason)?.[1] ?? 1);
    return report(scope, { file, line, rule: "not-text", message: read.reason });
  } catch (error) {
    return report(scope, { file, rule: "unreadable", message: systemReason(error) });
  }
}

/** A YAML file held against its schema; undefined or without a value, and that reported, where it cannot be used. */
export function readContentYaml<Value>(
  scope: ContentScope,
  file: string,
  schema: z.ZodType<Value>,
): YamlDocument<Value> | undefined {
  const text = readContentText(scope, file);
  if (text === undefined) return undefined;
  const document = parseYamlDocument(text, schema);
  for (const { line, rule, message } of document.problems) {
    const severity = rule === "unknown-key" ? scope.strictness : "error";
    report(scope, { file, line, rule, message, severity });
  }
  return document;
}

interface Report {
  readonly file: string;
  readonly line?: number;
  readonly severity?: Severity;
  readonly rule: string;
  readonly message: string;
}

/** Returns nothing, so that a reader can end with it. */
export function report(scope: ContentScope, { line = 1, severity = "error", ...rest }: Report): undefined {
  scope.problems.push({ line, severity, ...rest });
}

export interface ContentEntry {
  readonly name: string;
  readonly path: string;
}

/** The YAML files directly in a folder of the layer. */
export function yamlFilesIn(scope: ContentScope, folder: string): ContentEntry[] {
  const directory = join(scope.directory, folder);
  const entries = listContent(scope, directory).filter((entry) => !entry.isDirectory());
  for (const { name } of entries.filter(({ name }) => name.endsWith(".yml"))) {
    const message = `is not read: rename it to ${basename(name, ".yml")}.yaml`;
    report(scope, { file: join(directory, name), severity: "warning", rule: "unknown-file", message });
  }
  return entries
    .filter(({ name }) => name.endsWith(".yaml"))
    .map(({ name }) => ({ name: basename(name, ".yaml"), path: join(directory, name) }));
}
