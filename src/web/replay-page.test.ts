import { createHash } from "node:crypto";
import { Script } from "node:vm";
import { expect, test } from "vitest";
import type { ReplayReport } from "../recordings/index.ts";
import { renderPage } from "./replay-page.ts";

const hostile = "</script><script>alert(1)</script><!--\u2028\u2029 & \"'";
const none = { found: 0, total: 0, far: { found: 0, total: 0 } };
const references = { quotes: none, names: none, edits: none, refetches: 0, filesNamed: none.far, notes: none.far };
const totals = {
  calls: 1,
  cost: 12.5,
  usd: 0.000025,
  breaks: 0,
  overWindow: 0,
  invalid: 0,
  invalidRules: {},
  visibleShare: 1,
  msPerTurn: 0,
  references,
};
const run = { window: 1_000, policy: "none", totals, epochs: 0, series: 0 } as const;
const report: ReplayReport = {
  settings: {
    ...{ windows: [1_000], policies: ["none"], reserves: { 1000: 0 }, prefixTokens: 0, keep: 10, threshold: 0.8 },
    ...{
      counter: { name: "bytes/4", count: () => 0 },
      hasCounter: false,
      model: hostile,
      ttl: undefined,
      billedAs: hostile,
      pricing: hostile,
      prices: {},
    },
  },
  sessions: [{ file: hostile, title: hostile, prefixTokens: 0, billedAs: hostile, counter: hostile, runs: [run] }],
  series: ['{"prefix":0,"tokens":[[],[],[],[],[],[]],"cost":[10],"read":[0],"kept":[1000],"flags":[0]}'],
  skipped: 0,
  idle: 0,
};
const page = renderPage(report);
const contentOf = (start: string): string =>
  page.slice(page.indexOf(start) + start.length, page.indexOf("</script>", page.indexOf(start)));

test("whatever names hold, the data can neither end its element nor a line, and comes back as it was", () => {
  const data = contentOf('<script type="application/json" id="data">');
  expect(data).not.toMatch(/[<\u2028\u2029]/);
  const { facts, series } = JSON.parse(data);
  expect(facts.sessions[0]).toMatchObject({ file: hostile, title: hostile });
  expect(series[0].cost).toEqual([10]);
  expect(page.match(/<script/g)).toHaveLength(2);
});

test("the policy allows this script and this style, and nothing else", () => {
  const policy = /Content-Security-Policy" content="([^"]+)"/.exec(page)?.[1] ?? "";
  const hash = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const style = /<style>([\s\S]*?)<\/style>/.exec(page)?.[1] ?? "";
  expect(policy.split("; ")).toEqual([
    ...["default-src 'none'", "img-src data:", `style-src ${hash(style)}`],
    ...[`script-src ${hash(contentOf("<script>"))}`, "base-uri 'none'", "form-action 'none'"],
  ]);
});

test("the script is JavaScript, and makes no element from text", () => {
  const script = contentOf("<script>");
  expect(() => new Script(script)).not.toThrow();
  expect(script).not.toMatch(/innerHTML|outerHTML|insertAdjacent|document\.write|eval\(/);
});

test("the page is the same for the same report", () => {
  expect(renderPage(report)).toBe(page);
});
