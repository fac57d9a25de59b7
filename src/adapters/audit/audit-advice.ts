/** What a person could do better about the files that a tool loads, in plain sentences. */
import { basename, dirname, join } from "node:path";
import { countNoun } from "../../text/index.ts";
import { importedPaths } from "../targets/imports.ts";
import type { Chain, LoadedFile } from "./audit-chain.ts";
import type { ToolFiles } from "./audit-files.ts";
import type { FileReader, TextFile } from "./audit-reader.ts";
import type { Repetition, RepetitionFinder } from "./repeated-text.ts";

export interface AdviceOptions {
  readonly tool: ToolFiles;
  readonly name: string;
  /** The tool follows `@file` lines. */
  readonly imports: boolean;
  readonly reader: FileReader;
  readonly repetitions: RepetitionFinder;
  readonly home: string;
  show(path: string): string;
}

export async function adviseChain(chain: Chain, options: AdviceOptions): Promise<string[]> {
  const { tool, name, show } = options;
  const empty = chain.files.filter((file) => file.text.trim() === "");
  return [
    ...chain.unread.map(({ path, reason }) => `${show(path)} ${reason}, so it is not counted.`),
    ...sentencesOfHidden(chain.hidden, options),
    ...chain.ignored.map(
      (path) => `${show(path)} is ignored by git, and ${name} does not load ignored files.`,
    ),
    ...empty.map((file) => `${show(file.path)} is empty.`),
    ...options.repetitions
      .find(chain.files)
      .flatMap((repetition) => sentenceOfRepetition(repetition, options)),
    ...(options.imports ? await adviseImports(chain, options) : []),
    ...sentenceOnDemand(chain.files, options),
    ...(chain.usedOtherwise && tool.otherwiseAdvice !== undefined ? [tool.otherwiseAdvice] : []),
  ];
}

function sentencesOfHidden(hidden: Chain["hidden"], options: AdviceOptions): string[] {
  const { name, show } = options;
  const losses = hidden.filter((pair) => isLoss(pair, options));
  return [...new Set(losses.map(({ by }) => by))].map((by) => {
    const paths = losses.filter((pair) => pair.by === by).map(({ file }) => show(file.path));
    return `${show(by.path)} hides ${paths.join(" and ")}: ${name} reads only the first that it finds.`;
  });
}

/** A hidden file that says nothing else, or only imports the other, is no loss. */
function isLoss({ file, by }: Chain["hidden"][number], { home, repetitions }: AdviceOptions): boolean {
  const [repetition] = repetitions.find([by, file]);
  const isCopy =
    repetitions.isSameText(file, by) ||
    (repetition !== undefined && repetitions.isShareOf(repetition, file, 0.9));
  const imports = importedPaths(file.text, { file: file.realPath, home }).includes(by.realPath);
  return !isCopy && !imports && file.text.trim() !== "";
}

/** Fewer tokens that stand twice are not worth a word, unless the files are alike or the text is ours. */
const leastTokens = 50;

function sentenceOfRepetition(repetition: Repetition, { repetitions, show }: AdviceOptions): string[] {
  const { file, original, identical } = repetition;
  const tokens = repetitions.tokensOf(repetition);
  const injected = isInjected(file) && isInjected(original);
  if (tokens < leastTokens && !identical && !injected) return [];
  const [a, b] = [show(original.path), show(file.path)];
  if (file.realPath === original.realPath)
    return [`${a} and ${b} are the same file, and both names are loaded.`];
  const size = `about ${countNoun(tokens, "token")}`;
  if (injected)
    return [`${a} and ${b} both hold plimsoll's block (${size} twice): inject it into one of them only.`];
  if (identical)
    return [`${a} and ${b} hold the same text (${size} twice), and both are loaded: keep one of them.`];
  return [`${b} repeats ${size} of ${a}, and both are loaded: keep that text in one of them.`];
}

function isInjected({ text }: TextFile): boolean {
  return /^<!-- plimsoll:(?:start:|owns )/m.test(text);
}

/** A copy of AGENTS.md in a tool's own file goes its own way some day; an import does not. */
async function adviseImports(
  chain: Chain,
  { reader, repetitions, name, show }: AdviceOptions,
): Promise<string[]> {
  const advice = chain.missingImports.map(
    ({ path, importer }) => `${show(importer)} imports ${show(path)}, which does not exist.`,
  );
  const loaded = new Set(chain.files.map((file) => file.realPath));
  const own = chain.files.filter(
    (file) => file.scope === "project" && file.importer === undefined && !file.isLink,
  );
  for (const file of own) {
    const shared = await reader.read(join(dirname(file.path), "AGENTS.md"));
    if (shared === undefined || !("text" in shared) || loaded.has(shared.realPath)) continue;
    const [repetition] = repetitions.find([shared, file]);
    const identical = repetitions.isSameText(file, shared);
    if (!identical && (repetition === undefined || !repetitions.isShareOf(repetition, file, 0.5))) continue;
    const same = identical ? "holds the same text as" : "repeats much of";
    const line = `the line @${basename(shared.path)}`;
    advice.push(
      `${show(file.path)} ${same} ${show(shared.path)}: let it hold ${line} instead, which ${name} follows, and the two stay the same.`,
    );
  }
  return advice;
}

function sentenceOnDemand(files: readonly LoadedFile[], { name }: AdviceOptions): string[] {
  const waiting = files.filter((file) => file.onDemand);
  if (waiting.length === 0) return [];
  const tokens = waiting.reduce((sum, file) => sum + file.tokens, 0);
  return [
    `${countNoun(waiting.length, "file")} with ${countNoun(tokens, "token")}: ${name} loads ${waiting.length === 1 ? "it" : "them"} only when a rule applies.`,
  ];
}
