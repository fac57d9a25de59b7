/** What composing large layers costs, in processor time: three of them, of 10 MB each, to 10,000 tokens. */

import { createCounter } from "../src/core/tokens/index.ts";
import { type ContextLayers, createPromptComposer } from "../src/plans/compose/index.ts";
import { processorTime } from "./tokens/processor-time.ts";
import { type Measurement, measurementOf, timeInTurns } from "./tools/measurement.ts";

export interface ComposeLayersOptions {
  /** Of each layer. */
  readonly megabytes?: number | undefined;
  readonly rounds?: number | undefined;
}

/** What composing may take at most, in processor time. */
export const mostComposeMs = 150;

/** Kinds of layers: what costs most differs. */
const kinds = ["lines and items", "large discoveries", "one line each", "beyond Latin-1"] as const;
type Kind = (typeof kinds)[number];

/** The first row has layers of half the size; the ratio of the second to it is about 2 where the time is linear. */
export async function measureComposeLayers(options: ComposeLayersOptions = {}): Promise<Measurement[]> {
  const { megabytes = 10, rounds = 5 } = options;
  const budget = createPromptComposer({ counter: await createCounter("bytes/4") });
  const cases = [{ kind: kinds[0], size: megabytes / 2 }, ...kinds.map((kind) => ({ kind, size: megabytes }))].map(
    ({ kind, size }) => ({ kind, size, layers: createLayers(kind, size * 1_000_000) }),
  );
  const compose = (layers: ContextLayers) => async () =>
    processorTime(() => {
      const { tokens } = budget.compose(layers);
      if (tokens > budget.maxTokens || tokens < budget.maxTokens * 0.9) throw new Error(`composed ${tokens} tokens`);
    });
  const times = await timeInTurns(
    rounds,
    cases.map(({ layers }) => compose(layers)),
  );
  return cases.map(({ kind, size }, index) => {
    const plain = index === 1 ? times[0] : undefined;
    return measurementOf(`compose 3 layers of ${size} MB, ${kind}`, times[index]!, { plain });
  });
}

function createLayers(kind: Kind, bytes: number): ContextLayers {
  if (kind === "one line each") {
    const line = repeated(() => "a few words of one very long line ", bytes);
    return { project: line, fabric: line, priorWork: line };
  }
  const words =
    kind === "beyond Latin-1" ? "слова, которые занимают по два байта" : "words of a line that people write";
  const text = repeated((at) => `${at}: some ${words}, about a hundred bytes of them in every line.\n`, bytes);
  const titles = ["Entanglements", "Claims", "Discoveries"];
  const [large = "", middle = "", small = ""] = kind === "large discoveries" ? titles.reverse() : titles;
  const section = (title: string, part: number): string =>
    `## ${title}\n${repeated((at) => `- ${title} ${at}: ${words}\n`, part)}\n`;
  const fabric = section(large, bytes * 0.7) + section(middle, bytes * 0.3) + section(small, 2_000);
  return { project: text, fabric, priorWork: text };
}

/** Flat, as a text is that was read. */
function repeated(piece: (at: number) => string, bytes: number): string {
  const pieces: string[] = [];
  for (let size = 0; size < bytes; size += Buffer.byteLength(pieces.at(-1)!)) pieces.push(piece(pieces.length));
  return Buffer.from(pieces.join("")).toString();
}
