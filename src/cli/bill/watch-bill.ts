/** Follows running sessions: prints each call as soon as its program has recorded it. */

import { agentNames, type Loss } from "../../bill/index.ts";
import { formatNumber, printable } from "../../text/index.ts";
import type { Call } from "../command.ts";
import { type BillReport, type BillSettings, createBillReport, iso } from "./bill-report.ts";
import { projectName, stamp, usdText } from "./bill-text.ts";
import { type RecordingsReader, usualPlaces } from "./read-recordings.ts";

interface WatchOptions {
  readonly reader: RecordingsReader;
  readonly settings: BillSettings;
  readonly call: Call<object>;
}

const pollMs = 1000;
/** Calls of the running session that are shown at the start. */
const firstCalls = 5;

/** Watches until the process ends. */
export async function watchBill({ reader, settings, call }: WatchOptions): Promise<undefined> {
  const seen = new Set<string>();
  for (let isFirst = true; ; isFirst = false) {
    // A program may record its first session while we watch.
    const paths = call.arguments.length > 0 ? call.arguments : await usualPlaces(call.env);
    const recordings = await reader.read(paths);
    if (isFirst || recordings.bytesRead > 0) {
      const report = createBillReport(recordings, settings);
      for (const placed of newCalls(report, seen, isFirst)) print(placed, report, call);
    }
    if (isFirst) call.output.note("watching for new calls; stop with Ctrl-C");
    call.output.settle();
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

/** At the start, only the last calls of the session that made the last one. */
function newCalls({ calls }: BillReport, seen: Set<string>, isFirst: boolean): BillReport["calls"] {
  const fresh = calls.filter(({ call: { fact } }) => !seen.has(fact.id));
  for (const { call } of fresh) seen.add(call.fact.id);
  const running = calls.at(-1)?.facts;
  return isFirst ? fresh.filter(({ facts }) => facts === running).slice(-firstCalls) : fresh;
}

function print({ call, facts }: BillReport["calls"][number], report: BillReport, { output, env }: Call<object>): void {
  const { fact, usd } = call;
  const index = facts.calls.indexOf(fact);
  const loss = report.losses.find((each) => each.facts === facts && each.call === index);
  const isEarlier = (time: number): boolean => time <= fact.time;
  const own = report.calls.filter((each) => each.facts.session === facts.session && isEarlier(each.call.fact.time));
  const session = own.reduce((sum, placed) => sum + (placed.call.usd ?? 0), 0);
  if (output.json) {
    const { read, write5m, write1h, uncached, output: answer, model } = fact;
    const about = {
      time: iso(fact.time),
      agent: agentNames[facts.agent],
      session: facts.session,
      project: facts.project,
    };
    const tokens = { model, read, write5m, write1h, uncached, output: answer, usd: usd ?? null, sessionUsd: session };
    output.result(JSON.stringify({ ...about, ...tokens, ...(loss && { loss: lossFields(loss) }) }));
    return;
  }
  const cells = [
    stamp(fact.time),
    `${agentNames[facts.agent]} ${facts.session.slice(0, 8)}`,
    projectName(facts.project, env),
    `read ${formatNumber(fact.read)}`,
    `written ${formatNumber(fact.write5m + fact.write1h)}`,
    `fresh ${formatNumber(fact.uncached)}`,
    `output ${formatNumber(fact.output)}`,
    usd === undefined ? "no price" : usdText(usd),
    `session ${usdText(session)}`,
  ];
  output.result(printable(cells.join("  ")));
  if (loss !== undefined) output.result(output.style.bold(printable(`  cache lost: ${describeLoss(loss)}`)));
}

function lossFields({ cause, detail, rewritten, usd }: Loss): object {
  return { cause, detail, rewritten, usd: usd ?? null };
}

function describeLoss({ cause, detail, rewritten, usd }: Loss): string {
  const cost = usd === undefined ? "" : `, ${usdText(usd)} beyond a hit`;
  return `${cause} (${detail}), ${formatNumber(rewritten)} tokens written again${cost}`;
}
