import { formatNumber } from "../../src/core/text/index.ts";
import { medianOf } from "../tokens/processor-time.ts";
import type { MeasureOptions } from "./measure-listing.ts";
import { type Measurement, measurementOf, timeInTurns } from "./measurement.ts";
import { pageThrough, timeOf } from "./page-through.ts";
import { type PlainCommand, runPlain } from "./plain-command.ts";
import { type Needle, needlesIn, type Repository } from "./repository.ts";
import { type ServerClient, startServer } from "./server-client.ts";

export interface SearchOptions extends MeasureOptions {
  /** The plain program. */
  readonly ripgrep: string;
}

/** `search_content` beside plain ripgrep, for a word with few matches and for one with many. */
export async function measureSearch(
  repository: Repository,
  { server, rounds, ripgrep }: SearchOptions,
): Promise<Measurement[]> {
  const { few, many } = needlesIn(repository.files - 1);
  const rows: Measurement[] = [];
  for (const needle of [few, many]) {
    const client = await startServer(server);
    const args = ["--ignore-case", "--fixed-strings", "--line-number", "--", needle.word, "."];
    const plain = { program: ripgrep, args, cwd: repository.root };
    try {
      rows.push(...(await measureNeedle(client, { needle, plain, rounds })));
    } finally {
      await client.close();
    }
  }
  return rows;
}

interface NeedleOptions {
  readonly needle: Needle;
  readonly plain: PlainCommand;
  readonly rounds: number;
}

async function measureNeedle(
  client: ServerClient,
  { needle: { word, files }, plain, rounds }: NeedleOptions,
): Promise<Measurement[]> {
  const { lines, peakMegabytes } = await runPlain(plain);
  const matches = `${formatNumber(files)} matches`;
  if (lines !== files) throw new Error(`ripgrep finds ${lines} matches of ${word}, not ${files}`);
  const [plainTimes, firstTimes] = (await timeInTurns(rounds, [
    async () => (await runPlain(plain)).milliseconds,
    () => timeOf(() => client.call("search_content", { pattern: word })),
  ])) as [number[], number[]];
  const first = measurementOf(`search_content, ${matches}, first page`, firstTimes, {
    plain: plainTimes,
    pages: 1,
    peakMegabytes: client.peakMegabytes(),
  });
  const paged = await pageThrough(client, {
    tool: "search_content",
    args: { pattern: word },
    itemsName: "matches",
    keyOf: ({ path, line }) => `${path}:${line}`,
  });
  if (paged.items !== files) throw new Error(`the pages hold ${paged.items} matches, not ${files}`);
  return [
    measurementOf(`rg, ${matches}`, plainTimes, { items: lines, peakMegabytes }),
    first,
    {
      name: `search_content, ${matches}, all pages`,
      ...paged,
      ratio: paged.milliseconds / medianOf(plainTimes),
      peakMegabytes: client.peakMegabytes(),
    },
  ];
}
