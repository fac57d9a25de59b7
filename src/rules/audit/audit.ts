/** Reports the files that each AI tool would load in a folder, their size, and advice. Only reads. */
import { basename, dirname, join, relative } from "node:path";
import { countNoun, textAt } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import { isInside, repositoryAround } from "../../host/index.ts";
import type { Adapter, ToolLimit } from "../adapters/adapter.ts";
import { importedPaths } from "../adapters/targets.ts";
import {
  type Chain,
  createFileReader,
  type FileReader,
  type LoadedFile,
  loadChain,
  type TextFile,
} from "../load-model/load-files.ts";
import { knownTools, type ToolFiles } from "../load-model/tool-files.ts";
import { type Pack, renderContext } from "../packs/index.ts";
import { countsToward, findLimits, reportLimit } from "./audit-limits.ts";
import { type LimitUse, measure } from "./limits.ts";

export interface AuditReport {
  readonly counter: string;
  readonly tools: readonly AuditedTool[];
}

export interface AuditedTool {
  readonly id: string;
  readonly files: readonly AuditedFile[];
  /** All tokens of the files. */
  readonly tokens: number;
  /** The tokens of every session. */
  readonly alwaysTokens: number;
  /** The tokens that the tool loads only for some files or tasks. */
  readonly onDemandTokens: number;
  readonly limits: readonly AuditedLimit[];
  readonly advice: readonly string[];
}

export interface AuditedFile {
  readonly path: string;
  readonly bytes: number;
  readonly tokens: number;
  /** The tokens of every session, if they are fewer than all. */
  readonly alwaysTokens?: number | undefined;
  /** How the tool found it: "project", "user", "import of CLAUDE.md", "link to AGENTS.md", "skill". */
  readonly via: string;
}

export interface AuditedLimit extends Pick<ToolLimit, "value" | "unit" | "kind" | "scope" | "evidence"> {
  /** For a limit on single files, the size of the largest one. */
  readonly used: number;
  readonly exceeded: boolean;
}

export interface AuditOptions {
  readonly adapters: readonly Adapter[];
  /** Absolute, with links resolved. The same holds for `home` and `cwd`. */
  readonly directory: string;
  /** Without it, nothing outside the repository is read. */
  readonly home?: string | undefined;
  /** Paths are shown relative to this folder. */
  readonly cwd: string;
  readonly counter: Counter;
  /** The packs of the project, for advice about Plimsoll's own blocks. */
  readonly packs?: readonly Pack[] | undefined;
  /** The ids that the configuration names. Other tools get advice only about limits that they break. */
  readonly chosen?: readonly string[] | undefined;
  /** Include the tools that load nothing. */
  readonly all: boolean;
}

export async function audit(options: AuditOptions): Promise<AuditReport> {
  const root = repositoryAround(options.directory, options.home)?.root ?? options.directory;
  const reader = createFileReader(options.counter, options.home === undefined ? root : undefined);
  const repetitions = createRepetitionFinder(options.counter);
  const tools: AuditedTool[] = [];
  for (const tool of knownTools(options.adapters)) {
    const audited = await auditTool(tool, { ...options, reader, repetitions, root });
    if (options.all || audited.files.length > 0 || audited.advice.length > 0) tools.push(audited);
  }
  return { counter: options.counter.name, tools };
}

/** Returns the files of the project that a tool loads in every session. Nothing outside of the project is read. */
export async function readProjectFiles(
  id: string,
  { adapters, directory }: Pick<AuditOptions, "adapters" | "directory">,
): Promise<readonly TextFile[]> {
  const tool = knownTools(adapters).find((each) => each.id === id);
  if (tool === undefined) return [];
  const root = repositoryAround(directory)?.root ?? directory;
  const imports = adapters.find((adapter) => adapter.id === id)?.imports === true;
  const { files } = await loadChain(tool, { reader: createFileReader(undefined, root), directory, root, imports });
  return files.filter(({ onDemand }) => !onDemand);
}

async function auditTool(
  tool: ToolFiles,
  options: AuditOptions & {
    readonly reader: FileReader;
    readonly repetitions: RepetitionFinder;
    readonly root: string;
  },
): Promise<AuditedTool> {
  const { adapters, counter, home = "~", reader, repetitions, packs = [], chosen } = options;
  const adapter = adapters.find(({ id }) => id === tool.id);
  const imports = adapter?.imports === true;
  const chain = await loadChain(tool, { ...options, imports, skills: adapter?.skills?.paths });
  // A path relative to the current folder. A user's file is shown below `~/`.
  const show = (path: string) => {
    if (isInside(path, options.root) || isInside(path, options.cwd)) return relative(options.cwd, path);
    return isInside(path, home) ? `~/${relative(home, path)}` : path;
  };
  const explainVia = (file: LoadedFile) => {
    if (file.alwaysText !== undefined) return "skill";
    if (file.importer !== undefined) return `import of ${show(file.importer)}`;
    const isAbove = file.scope === "project" && !isInside(file.path, options.root);
    const via = isAbove ? "folder above" : file.isLink ? `link to ${show(file.realPath)}` : file.scope;
    return file.onDemand ? `${via}, on demand` : via;
  };
  const words = { name: tool.name, counter, show };
  const limits = findLimits(tool, adapters).map((limit) => reportLimit(limit, chain.files, { ...words, tool }));
  const advice = await adviseChain(chain, { ...words, tool, imports, reader, repetitions, home });
  const files = chain.files.map((file) => ({
    path: show(file.path),
    bytes: file.bytes,
    tokens: file.tokens,
    ...(file.onDemand && { alwaysTokens: file.alwaysText === undefined ? 0 : counter.count(file.alwaysText) }),
    via: explainVia(file),
  }));
  const tokens = files.reduce((sum, file) => sum + file.tokens, 0);
  const alwaysTokens = files.reduce((sum, file) => sum + (file.alwaysTokens ?? file.tokens), 0);
  const weight = chosen === undefined || chosen.includes(tool.id) ? alwaysTokens : 0;
  const savings = adviseSavings({ ...words, tool, adapters, files: chain.files, limits, weight, packs });
  return {
    id: tool.id,
    files,
    tokens,
    alwaysTokens,
    onDemandTokens: tokens - alwaysTokens,
    limits: limits.map(({ limit, used, exceeded }) => ({
      value: limit.value,
      unit: limit.unit,
      kind: limit.kind,
      scope: limit.scope,
      evidence: limit.evidence,
      used,
      exceeded,
    })),
    advice: [...limits.flatMap((limit) => limit.advice), ...advice, ...savings],
  };
}

/** Input of the advice about the files that a tool loads. */
interface AdviceOptions {
  readonly tool: ToolFiles;
  readonly name: string;
  /** Whether the tool follows `@file` lines. */
  readonly imports: boolean;
  readonly reader: FileReader;
  readonly repetitions: RepetitionFinder;
  readonly home: string;
  show(path: string): string;
}

async function adviseChain(chain: Chain, options: AdviceOptions): Promise<string[]> {
  const { tool, name, show, repetitions, home } = options;
  const empty = chain.files.filter((file) => file.text.trim() === "");
  // A hidden file is not a loss if it repeats the other file or only imports it.
  const losses = chain.hidden.filter(({ file, by }) => {
    const [repetition] = repetitions.find([by, file]);
    const isCopy =
      repetitions.isSameText(file, by) || (repetition !== undefined && repetitions.isShareOf(repetition, file, 0.9));
    const imports = importedPaths(file.text, { file: file.realPath, home }).includes(by.realPath);
    return !isCopy && !imports && file.text.trim() !== "";
  });
  const hidden = [...new Set(losses.map(({ by }) => by))].map((by) => {
    const paths = losses.filter((pair) => pair.by === by).map(({ file }) => show(file.path));
    return `${show(by.path)} hides ${paths.join(" and ")}: ${name} reads only the first that it finds.`;
  });
  const waiting = chain.files.filter((file) => file.onDemand && file.alwaysText === undefined);
  const tokens = waiting.reduce((sum, file) => sum + file.tokens, 0);
  const size = `${countNoun(waiting.length, "file")} with ${countNoun(tokens, "token")}`;
  const onDemand = `${size}: ${name} loads ${waiting.length === 1 ? "it" : "them"} only when a rule applies.`;
  return [
    ...chain.unread.map(({ path, reason }) => `${show(path)} ${reason}, so it is not counted.`),
    ...hidden,
    ...chain.ignored.map((path) => `${show(path)} is ignored by git, and ${name} does not load ignored files.`),
    ...empty.map((file) => `${show(file.path)} is empty.`),
    ...repetitions.find(chain.files).flatMap((repetition) => describeRepetition(repetition, options)),
    ...(options.imports ? await adviseImports(chain, options) : []),
    ...(waiting.length === 0 ? [] : [onDemand]),
    ...(chain.usedOtherwise && tool.otherwiseAdvice !== undefined ? [tool.otherwiseAdvice] : []),
  ];
}

function describeRepetition(repetition: Repetition, { repetitions, show }: AdviceOptions): string[] {
  const { file, original, identical } = repetition;
  const tokens = repetitions.tokensOf(repetition);
  const injected = isInjected(file) && isInjected(original);
  // Fewer repeated tokens are not reported, unless the files are identical or the text is Plimsoll's block.
  if (tokens < 50 && !identical && !injected) return [];
  const [a, b] = [show(original.path), show(file.path)];
  if (file.realPath === original.realPath)
    return [a === b ? `${a} is loaded twice.` : `${a} and ${b} are the same file, and both names are loaded.`];
  const size = `about ${countNoun(tokens, "token")}`;
  if (injected) {
    const isOwned = [file, original].some(({ text }) => /^<!-- plimsoll:owns /m.test(text));
    const remedy = isOwned
      ? "inject it into one of them only"
      : "keep your text in one of them, or run plimsoll import --move";
    return [`${a} and ${b} both hold Plimsoll's block (${size} twice): ${remedy}.`];
  }
  if (identical) return [`${a} and ${b} hold the same text (${size} twice), and both are loaded: keep one of them.`];
  return [`${b} repeats ${size} of ${a}, and both are loaded: keep that text in one of them.`];
}

function isInjected({ text }: TextFile): boolean {
  return /^<!-- plimsoll:(?:start:|owns )/m.test(text);
}

/** A copy of AGENTS.md in a tool's own file becomes outdated; an import or a link does not. */
async function adviseImports(chain: Chain, options: AdviceOptions): Promise<string[]> {
  const { reader, show } = options;
  const advice = chain.missingImports.map(
    ({ path, importer }) => `${show(importer)} imports ${show(path)}, which does not exist.`,
  );
  const loaded = new Set(chain.files.map((file) => file.realPath));
  const own = chain.files.filter((file) => file.scope === "project" && file.importer === undefined && !file.isLink);
  for (const file of own) {
    const shared = await reader.read(join(dirname(file.path), "AGENTS.md"));
    if (shared === undefined || !("text" in shared) || loaded.has(shared.realPath)) continue;
    advice.push(...adviseCopy(file, shared, options));
  }
  return advice;
}

/** Advises on a file that holds text of an AGENTS.md that the tool does not load. */
function adviseCopy(file: TextFile, shared: TextFile, { tool, repetitions, name, show }: AdviceOptions): string[] {
  const [repetition] = repetitions.find([shared, file]);
  const identical = repetitions.isSameText(file, shared);
  if (!identical && (repetition === undefined || !repetitions.isShareOf(repetition, file, 0.5))) return [];
  const names = `${show(file.path)} and ${show(shared.path)}`;
  const both = isInjected(file) && isInjected(shared);
  if (tool.imports?.onlyInCurrent) {
    // Two blocks are no fault here: the other one is for other tools. In most folders the tool would follow no import.
    if (both) return [];
    if (identical) return [`${names} hold the same text. Make the first a link to the second.`];
    return [`${names} share much text. Move it into packs with plimsoll import --move.`];
  }
  const line = `the line @${basename(shared.path)}`;
  if (both)
    return [
      `${names} both hold Plimsoll's block. Add ${line} to the first and run plimsoll inject: ${name} follows it.`,
    ];
  if (identical)
    return [`${names} hold the same text. Replace the text of the first with ${line}: ${name} follows it.`];
  return [`${names} share much text. Replace what they share with ${line}: ${name} follows it.`];
}

/** Lines that occur in two files. Copies are seldom complete, so files are compared line by line, in time linear in the
 *  text. */
interface Repetition {
  readonly file: TextFile;
  /** The file with the first occurrence of the lines. */
  readonly original: TextFile;
  readonly lines: readonly string[];
  /** The two files hold nothing else. */
  readonly identical: boolean;
}

interface RepetitionFinder {
  /** Compares every file with the files before it. A line counts for the first file that has it. */
  find(files: readonly TextFile[]): Repetition[];
  /** Returns whether the repeated lines make up at least this share of a file's lines. */
  isShareOf(repetition: Repetition, file: TextFile, share: number): boolean;
  isSameText(a: TextFile, b: TextFile): boolean;
  /** Returns the tokens of the repeated lines. */
  tokensOf(repetition: Repetition): number;
}

/** Creates one finder for all tools of an audit: they load the same files, so each text is split and compared only
 *  once. */
export function createRepetitionFinder(counter: Pick<Counter, "count">): RepetitionFinder {
  const { idsOf, lineOf, canonicalOf } = createLineIndex();
  const known = new Map<string, ReturnType<typeof compareLines>>();
  const tokens = new WeakMap<readonly string[], number>();
  const texts = new Map<string, number>();
  const isSameText = (a: TextFile, b: TextFile) =>
    canonicalOf(a.text) !== "" && canonicalOf(a.text) === canonicalOf(b.text);
  return {
    find(files) {
      const numbers = files.map(({ text }) => {
        const number = texts.get(text) ?? texts.size;
        texts.set(text, number);
        return number;
      });
      const key = numbers.join();
      const shared =
        known.get(key) ??
        compareLines(
          files.map(({ text }) => idsOf(text)),
          lineOf,
        );
      known.set(key, shared);
      return shared.map(({ from, to, lines }) => {
        const [original, file] = [files[from]!, files[to]!];
        return { file, original, lines, identical: isSameText(file, original) };
      });
    },
    isShareOf: ({ lines }, { text }, share) => lines.length >= idsOf(text).length * share,
    isSameText,
    tokensOf({ lines }) {
      const count = tokens.get(lines) ?? counter.count(lines.join("\n"));
      tokens.set(lines, count);
      return count;
    },
  };
}

/** Gives each line that counts a number. Equal lines have equal numbers in every text, and a text has no repeats. */
function createLineIndex() {
  const lines: string[] = [];
  const ids = new Map<string, number>();
  const texts = new Map<string, readonly number[]>();
  const canonicals = new Map<string, string>();
  const canonicalOf = (text: string): string => {
    const body = () => text.replace(/\r\n/g, "\n").replace(/^\uFEFF?(?:---\n[\s\S]*?\n---\n)?/, "");
    const known = canonicals.get(text) ?? body().trim();
    canonicals.set(text, known);
    return known;
  };
  // No front matter, headings, comments, rules or our header, since unrelated files share those. Lines of less than 8
  // characters are often equal by chance.
  const counts = (line: string) => line.length >= 8 && !/^(?:#|<!--|```|[-=|: ]+$|Maintained by plimsoll\.)/.test(line);
  const idOf = (line: string) => {
    const known = ids.get(line) ?? lines.length;
    if (known === lines.length) {
      ids.set(line, known);
      lines.push(line);
    }
    return known;
  };
  return {
    canonicalOf,
    lineOf: (id: number): string => lines[id]!,
    idsOf(text: string): readonly number[] {
      const trimmed = () =>
        canonicalOf(text)
          .split("\n")
          .map((line) => line.trim());
      const known = texts.get(text) ?? [...new Set(trimmed().filter(counts).map(idOf))];
      texts.set(text, known);
      return known;
    },
  };
}

/** Returns the lines that two files share. `from` and `to` are indexes in the list of files. */
function compareLines(files: readonly (readonly number[])[], lineOf: (id: number) => string) {
  const firstFile = new Map<number, number>();
  const shared: { readonly from: number; readonly to: number; readonly lines: readonly string[] }[] = [];
  if (files.length < 2) return shared;
  for (const [to, ids] of files.entries()) {
    const byFirst = new Map<number, string[]>();
    for (const id of ids) {
      const from = firstFile.get(id);
      if (from === undefined) firstFile.set(id, to);
      else if (byFirst.get(from)?.push(lineOf(id)) === undefined) byFirst.set(from, [lineOf(id)]);
    }
    for (const [from, lines] of byFirst) shared.push({ from, to, lines });
  }
  return shared;
}

/** More tokens than this in every session are heavy. Third-party: guides advise at most 200 lines, which is less. */
const heavyTokens = 5_000;

/** Advises on a block of Plimsoll that is too large: the line of the configuration that makes it smaller. */
function adviseSavings(input: {
  readonly tool: ToolFiles;
  readonly adapters: readonly Adapter[];
  readonly files: readonly LoadedFile[];
  /** The tool's limits, with how much of each is used. */
  readonly limits: readonly LimitUse[];
  /** The tokens that the tool always loads, or 0 if they do not matter. */
  readonly weight: number;
  readonly packs: readonly Pack[];
  readonly counter: Counter;
  show(path: string): string;
}): string[] {
  const { tool, files, limits, weight, counter, show } = input;
  const ours = files.flatMap((file) => {
    // Our block with its last line end, as inject counts it.
    const inFile = /^<!-- plimsoll:start:[\s\S]*^<!-- plimsoll:end:.*(?:\r?\n)?/m;
    const text = file.onDemand ? "" : file.text;
    const block = /^<!-- plimsoll:owns /m.test(text) ? text : inFile.exec(text)?.[0];
    return block === undefined ? [] : { file, block, tokens: counter.count(block) };
  });
  const largest = ours.sort((a, b) => b.tokens - a.tokens)[0];
  if (largest === undefined) return [];
  const { file, block, tokens } = largest;
  const shares = limits
    .filter(({ limit, exceeded }) => exceeded && countsToward(limit, file, tool))
    .map(({ limit, used }) => computeShare(measure(block, limit.unit, counter), { used, limit: limit.value }));
  if (weight > heavyTokens) shares.push(computeShare(tokens, { used: weight, limit: heavyTokens }));
  if (shares.length === 0) return [];
  const size = `Plimsoll's block in ${show(file.path)} has ${countNoun(tokens, "token")}`;
  const writer = input.adapters.find(({ targets }) => targets.some(({ path }) => path === show(file.path)));
  // Only the budget of the adapter that writes the file has an effect on it.
  const isShared = writer !== undefined && (writer.reads.length > 0 || writer.id !== tool.id);
  // Rounds down to two digits and zeros: nobody wants to read 2,387.
  const exact = tokens * Math.min(...shares);
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, exact))) - 1);
  const budget = Math.floor(exact / step) * step;
  const entry = `${writer?.id ?? tool.id}: ${budget}`;
  const whom = isShared ? `, for every tool that reads ${show(file.path)}` : "";
  const limiting = `Add \`${entry}\` to \`budgets:\` in .plimsoll/config.yaml to limit it${whom}.`;
  // A smaller budget holds no pack.
  const advice = budget >= 100 ? [`${size}. ${limiting}`] : [];
  return [...advice, ...advisePack(block, input, { path: show(file.path), isShared })];
}

/** Returns the part of our text that has room beside the other texts. */
function computeShare(own: number, { used, limit }: { readonly used: number; readonly limit: number }): number {
  return own === 0 ? 1 : Math.max(0, Math.min(1, (limit - (used - own)) / own));
}

/** Names the largest pack that need not be loaded always. */
function advisePack(
  block: string,
  { tool, adapters, packs, counter }: Parameters<typeof adviseSavings>[0],
  { path, isShared }: { readonly path: string; readonly isShared: boolean },
): string[] {
  const count = (some: readonly Pack[]) => counter.count(renderContext(some, { title: "", verbosity: "full" }));
  const text = block.replaceAll("\r\n", "\n");
  const inBlock = packs
    .filter(({ base, context }) => {
      const core = textAt(context, "minimal").trim();
      return !base && core !== "" && text.includes(core);
    })
    .map((pack) => ({ pack, tokens: count([pack]) - count([]) }))
    .sort((a, b) => b.tokens - a.tokens);
  const [largest] = inBlock;
  if (largest === undefined) return [];
  const { id, globs, layer } = largest.pack;
  const hasRules = adapters.some((adapter) => adapter.id === tool.id && adapter.rules !== undefined);
  const size = `The pack ${id} has up to ${countNoun(largest.tokens, "token")} in ${path}`;
  const leaveOut = `${size}: \`packs: { exclude: [${id}] }\` leaves it out`;
  // A pack stays in a file that others read too, because they may have no scoped rules.
  if (!hasRules || isShared || globs.length > 0) return [`${leaveOut}.`];
  const added = layer === "project" ? "" : ` with \`id: ${id}\` and \`additive: true\``;
  const scope = `\`globs:\` in .plimsoll/packs/${id}/pack.yaml${added}, such as \`globs: ["src/**"]\`,`;
  return [`${leaveOut}, and ${scope} makes ${tool.name} load it only for matching files.`];
}
