/** Describes single calls of a bill, for `bill --watch`. */
import { formatNumber, printable } from "../../core/text/index.ts";
import type { Environment } from "../../host/index.ts";
import { type BillReport, iso } from "./bill-report.ts";
import { projectName, stamp, usdText } from "./bill-text.ts";
import { agentNames } from "./sum-calls.ts";

/** Calls of the running session that are shown at the start. */
const firstCalls = 5;

/** Returns the calls that are not in `seen`, and adds them to it. On the first call, returns only the last few calls of
 *  the most recent session. */
export function newCalls({ calls }: BillReport, seen: Set<string>, isFirst: boolean): BillReport["calls"] {
  const fresh = calls.filter(({ call: { fact } }) => !seen.has(fact.id));
  for (const { call } of fresh) seen.add(call.fact.id);
  const running = calls.at(-1)?.facts;
  return isFirst ? fresh.filter(({ facts }) => facts === running).slice(-firstCalls) : fresh;
}

/** Describes one call of the report: for programs, and as lines for people. The second line is about a cache loss. */
export function describeCall(
  { call, facts }: BillReport["calls"][number],
  report: BillReport,
  env: Environment,
): { readonly json: object; readonly lines: readonly string[] } {
  const { fact, usd } = call;
  const index = facts.calls.findIndex(({ id }) => id === fact.id);
  const loss = report.losses.find((each) => each.facts === facts && each.call === index);
  const isEarlier = (time: number): boolean => time <= fact.time;
  const own = report.calls.filter((each) => each.facts.session === facts.session && isEarlier(each.call.fact.time));
  const session = own.reduce((sum, placed) => sum + (placed.call.usd ?? 0), 0);
  const { read, write5m, write1h, uncached, output, model } = fact;
  const json = {
    time: iso(fact.time),
    agent: agentNames[facts.agent],
    session: facts.session,
    project: facts.project,
    model,
    read,
    write5m,
    write1h,
    uncached,
    output,
    usd: usd ?? null,
    sessionUsd: session,
    ...(loss && {
      loss: {
        cause: loss.cause,
        confidence: loss.confidence,
        detail: loss.detail,
        rewritten: loss.rewritten,
        usd: loss.usd ?? null,
      },
    }),
  };
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
  const lines = [printable(cells.join("  "))];
  if (loss !== undefined) {
    const cost = loss.usd === undefined ? "" : `, ${usdText(loss.usd)} beyond a hit`;
    const what = `${loss.cause} (${loss.detail}), ${formatNumber(loss.rewritten)} tokens written again${cost}`;
    lines.push(printable(`  cache lost: ${what}`));
  }
  return { json, lines };
}
