/** One file that opens without a network: style, script and data inside. The script sets texts, never markup, and a policy lets
 *  nothing else run: whatever a session's name or content holds, it is shown as text. */
import { createHash } from "node:crypto";
import { type ReplayReport, withReference } from "../replay-files.ts";
import { describeRun, resultRows, rounded } from "../report.ts";
import { seriesKinds } from "./call-series.ts";
import { pageStyle } from "./page-style.ts";
import { pageScript } from "./script/page-script.ts";

export function renderPage(report: ReplayReport): string {
  const policy = [
    "default-src 'none'",
    "img-src data:",
    `style-src '${hashOf(pageStyle)}'`,
    `script-src '${hashOf(pageScript)}'`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="plimsoll replay">
<link rel="icon" href="data:,">
<title>Plimsoll replay</title>
<style>${pageStyle}</style>
</head>
<body>
<noscript>This page draws its tables and timelines with a script of its own; allow it to run.</noscript>
<div id="page"></div>
<script type="application/json" id="data">${embedded(pageData(report))}</script>
<script>${pageScript}</script>
</body>
</html>
`;
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

/** JSON that cannot end the element it stands in, nor a line where the two disagree about line ends. */
function embedded(json: string): string {
  return json.replace(
    /[<\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function pageData(report: ReplayReport): string {
  const { settings, sessions, series } = report;
  const policies = withReference(settings.policies);
  const facts = {
    description: describeRun(report),
    reserve: settings.reserve,
    windows: settings.windows,
    policies,
    selected: policies.find((policy) => policy === "economic") ?? policies.at(-1),
    kinds: seriesKinds,
    results: resultRows(report, policies),
    sessions: sessions.map(({ file, title, runs }) => ({ file, title, runs: runs.map(compactRun) })),
  };
  return `{"facts":${JSON.stringify(facts)},"series":[${series.join(",")}]}`;
}

function compactRun({ totals, ...run }: ReplayReport["sessions"][number]["runs"][number]): object {
  const { calls, cost, breaks, overWindow, invalid, visibleShare } = totals;
  const rest = { breaks, overWindow, invalid, visibleShare: rounded(visibleShare, 4) };
  return { ...run, calls, cost: Math.round(cost), ...rest };
}
