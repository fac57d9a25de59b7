import { medianOf } from "../tokens/processor-time.ts";
import { type Measurement, measurementOf, timeInTurns } from "./measurement.ts";
import { pageThrough, timeOf } from "./page-through.ts";
import { runPlain } from "./plain-command.ts";
import type { Repository } from "./repository.ts";
import { type ServerCommand, startServer } from "./server-client.ts";

export interface MeasureOptions {
  readonly server: ServerCommand;
  readonly rounds: number;
}

/** `project_files` beside what git needs for the same list: tracked files, and those that it would track. */
export async function measureListing(
  { root, files }: Repository,
  { server, rounds }: MeasureOptions,
): Promise<Measurement[]> {
  const tracked = { program: "git", args: ["ls-files"], cwd: root };
  const all = { ...tracked, args: ["ls-files", "--cached", "--others", "--exclude-standard"] };
  const { lines, peakMegabytes } = await runPlain(all);
  if (lines !== files) throw new Error(`git lists ${lines} files, not ${files}`);
  const client = await startServer(server);
  try {
    const [trackedTimes, allTimes, firstTimes] = (await timeInTurns(rounds, [
      async () => (await runPlain(tracked)).milliseconds,
      async () => (await runPlain(all)).milliseconds,
      () => timeOf(() => client.call("project_files", { mode: "files" })),
    ])) as [number[], number[], number[]];
    const first = measurementOf("project_files, first page", firstTimes, {
      plain: allTimes,
      pages: 1,
      peakMegabytes: client.peakMegabytes(),
    });
    const paged = await pageThrough(client, {
      tool: "project_files",
      args: { mode: "files", include_hidden: true },
      itemsName: "files",
      keyOf: ({ path }) => String(path),
    });
    if (paged.items !== files) throw new Error(`the pages hold ${paged.items} files, not ${files}`);
    return [
      measurementOf("git ls-files", trackedTimes),
      measurementOf("git ls-files, with untracked ones", allTimes, { items: lines, peakMegabytes }),
      first,
      {
        name: "project_files, all pages",
        ...paged,
        ratio: paged.milliseconds / medianOf(allTimes),
        peakMegabytes: client.peakMegabytes(),
      },
    ];
  } finally {
    await client.close();
  }
}
