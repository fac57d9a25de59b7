/** Measures what the AI tools load in a project, so that a move can show that nothing became more expensive. */
import { printable } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import type { Adapter } from "../adapters/adapter.ts";
import { createRepetitionFinder } from "../audit/audit.ts";
import type { ProjectTree } from "../files/project-tree.ts";
import { findFolders } from "../load-model/find-folders.ts";
import { createFileReader, loadChain } from "../load-model/load-files.ts";
import { knownTools } from "../load-model/tool-files.ts";

/** What a tool loads by itself when it is started in a folder. */
export interface LoadedTokens {
  readonly tool: string;
  /** Relative to the root. Empty for the root. */
  readonly folder: string;
  readonly tokens: number;
  /** The tokens of Plimsoll's markers, and of the front matter of its files. */
  readonly markers: number;
  /** Tokens of lines that it loads a second time. */
  readonly repeated: number;
  /** How many files it skips because of another one. */
  readonly hidden: number;
}

export interface MeasureOptions {
  readonly root: string;
  readonly tree: ProjectTree;
  readonly adapters: readonly Adapter[];
  readonly counter: Counter;
}

export async function measureLoads({ root, tree, adapters, counter }: MeasureOptions): Promise<LoadedTokens[]> {
  const outer = tree.repository ?? root;
  const reader = createFileReader(counter, outer);
  const repetitions = createRepetitionFinder(counter);
  const tools = knownTools(adapters);
  const loads: LoadedTokens[] = [];
  for (const directory of await findFolders(tools, { tree, start: root }))
    for (const tool of tools) {
      const imports = adapters.find(({ id }) => id === tool.id)?.imports === true;
      const { files, hidden } = await loadChain(tool, { reader, directory, root: outer, imports });
      const always = files.filter(({ onDemand }) => !onDemand);
      const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
      loads.push({
        tool: tool.id,
        folder: directory === root ? "" : directory.slice(root.length + 1),
        tokens: sum(always.map(({ tokens }) => tokens)),
        markers: sum(always.map(({ text, tokens }) => tokens - counter.count(withoutMarkers(text)))),
        repeated: sum(repetitions.find(always).map((each) => repetitions.tokensOf(each))),
        hidden: hidden.length,
      });
    }
  return loads;
}

function withoutMarkers(text: string): string {
  const owned = /^(?:---\n(?:(?!---\n).*\n)*---\n)?<!-- plimsoll:owns .*-->\n/;
  return text.replace(owned, "").replace(/^<!-- plimsoll:(?:start|end):.*-->\n?/gm, "");
}

/** Returns how a move made something worse, or undefined: a tool loads more text than before. Markers around the text
 *  do not count, and a text that is loaded twice counts twice. A tool may load more if it now finds files that another
 *  file hid from it, because people wrote these for it. */
export function findWorse(before: readonly LoadedTokens[], after: readonly LoadedTokens[]): string | undefined {
  for (const { tool, folder, tokens, markers, hidden } of after) {
    const earlier = before.find((each) => each.tool === tool && each.folder === folder);
    if (earlier === undefined || hidden < earlier.hidden) continue;
    const [text, textBefore] = [tokens - markers, earlier.tokens - earlier.markers];
    const where = folder === "" ? "" : ` in ${folder}`;
    // A heading is needed twice if only some of the texts below it are for every tool.
    if (text > textBefore + 20 + textBefore / 50)
      return `${tool} would load ${tokens} tokens instead of ${earlier.tokens}${where}`;
  }
  return undefined;
}

/** Says which tools load more only because they now find files that another file hid before. */
export function explainUncovered(before: readonly LoadedTokens[], after: readonly LoadedTokens[]): string[] {
  return after.flatMap(({ tool, folder, tokens, markers, hidden }) => {
    const earlier = before.find((each) => each.tool === tool && each.folder === folder);
    const isMore = earlier !== undefined && tokens - markers > earlier.tokens - earlier.markers;
    if (!isMore || hidden >= earlier.hidden) return [];
    return [`${tool} now loads files in ${printable(folder) || "."} that another file hid from it`];
  });
}
