import { closeFence, fitForeignText, printable, printableLines, wellFormed } from "../../text/index.ts";
import { largestWithin } from "../truncate/largest-within.ts";
import { countLines, truncateText, wholeLines } from "../truncate/truncate-text.ts";
import type { FittedSection, SectionLimit } from "./fitted-section.ts";
import type { ConventionsFile } from "./project-scan.ts";

/** The files in order: whole ones, then the beginning of one, then how many are left out. */
export function fitConventions(
  files: readonly ConventionsFile[],
  { limit, tokensWith }: SectionLimit,
): FittedSection {
  const all = files.map(readFile).filter(({ text }) => text !== "");
  if (all.length === 0) return { text: "", omitted: 0 };
  const wholeOnes = (count: number): string => renderConventions(all.slice(0, count), all.length - count);
  const count = largestWithin({
    limit,
    most: all.length,
    first: 1,
    tokensAt: (number) => tokensWith(wholeOnes(number)),
  });
  const next = all[count];
  if (next === undefined) return { text: wholeOnes(count), omitted: 0 };
  const withPart = (text: string): string =>
    renderConventions([...all.slice(0, count), { ...next, text }], all.length - count - 1);
  const part = truncateText(next.text, {
    counter: { name: "", count: (text) => tokensWith(withPart(text)) },
    limit,
    ending: "\n[truncated]",
  });
  const lines = all.slice(count).reduce((sum, { text }) => sum + countLines(text), 0);
  if (part.text !== "")
    return { text: withPart(part.text), omitted: lines - wholeLines(next.text, part.kept) };
  const fits = count > 0 || tokensWith(wholeOnes(0)) <= limit;
  return { text: fits ? wholeOnes(count) : "", omitted: lines };
}

/** As it can stand among other texts: comments are for people and could hide what follows, control characters could steer a terminal,
 *  and what is invisible could say to a model what no person reads. */
function readFile({ path, text }: ConventionsFile): ConventionsFile {
  const visible = fitForeignText(text).text.split("\t").map(printableLines).join("\t");
  return { path: wellFormed(printable(path)), text: closeFence(wellFormed(visible).trim()) };
}

function renderConventions(files: readonly ConventionsFile[], omitted: number): string {
  const marker = `[... truncated, ${omitted === 1 ? "1 file" : `${omitted} files`} omitted]`;
  return [
    "## Conventions",
    ...files.map(({ path, text }) => `### ${path}\n\n${text}`),
    ...(omitted === 0 ? [] : [marker]),
  ].join("\n\n");
}
