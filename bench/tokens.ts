/** Compares token counters: `npm run bench:tokens [-- --corpus DIRECTORY] [--json]`. Without a corpus of labelled `*.jsonl` files it
 *  counts the repository's own. Results go to stdout, progress to stderr. */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { readCorpus } from "./corpus.ts";
import { createBenchCounters } from "./tokens/counters.ts";
import { measureAccuracy } from "./tokens/measure-accuracy.ts";
import { measureRuns } from "./tokens/measure-runs.ts";
import { measureSpeed } from "./tokens/measure-speed.ts";
import { measureTurns } from "./tokens/measure-turns.ts";
import { type Report, renderReport } from "./tokens/render-report.ts";
import { type BenchText, bytesOf, readRepository } from "./tokens/texts.ts";

const { corpus, json } = readArguments();
const report = await measure(corpus);
process.stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : renderReport(report));

function readArguments(): { corpus?: string | undefined; json: boolean } {
  try {
    const options = { corpus: { type: "string" }, json: { type: "boolean", default: false } } as const;
    return parseArgs({ options }).values;
  } catch (error) {
    console.error(`${(error as Error).message}\nusage: npm run bench:tokens [-- --corpus DIRECTORY] [--json]`);
    process.exit(2);
  }
}

async function measure(directory: string | undefined): Promise<Report> {
  const texts = await readTexts(directory);
  const counters = await createBenchCounters();
  // On the repository's files the exact counters are the truth themselves.
  const others = counters.filter(({ name }) => !name.startsWith("exact:"));
  const step = <T>(name: string, work: () => T): T => {
    process.stderr.write(`${name} …\n`);
    return work();
  };
  return {
    texts: {
      source: directory === undefined ? "repository" : "corpus",
      count: texts.length,
      bytes: bytesOf(texts),
    },
    ...step("accuracy", () => measureAccuracy(texts, directory === undefined ? others : counters)),
    speed: step("speed", () => measureSpeed(texts, counters)),
    runs: step("long runs", () => measureRuns(counters)),
    turns: step("turns", () => measureTurns(texts, counters)),
  };
}

async function readTexts(directory: string | undefined): Promise<readonly BenchText[]> {
  if (directory === undefined) return readRepository(fileURLToPath(new URL("../..", import.meta.url)));
  try {
    const texts = readCorpus(directory);
    if (texts.length > 0) return texts;
    console.error(`no labelled texts in ${directory}: it has no *.jsonl files`);
  } catch (error) {
    console.error(`cannot read the corpus in ${directory}: ${(error as Error).message}`);
  }
  process.exit(1);
}
