/** One HTML file with style, script and data, which needs no network. Scripts only set text, and a content security
 *  policy blocks everything else, so names and content of recordings are always shown as text. */
import { createHash } from "node:crypto";
import { realpath } from "node:fs/promises";
import { parse, relative, resolve } from "node:path";
import { ContextError, usageError } from "../../core/errors.ts";
import { formatNumber, printable, toByteString } from "../../core/text/index.ts";
import type { Caller } from "../../host/index.ts";
import { changeFile } from "../../host/index.ts";

export interface HtmlPage {
  /** The command that makes the page. */
  readonly name: "replay" | "bill";
  readonly script: string;
  /** JSON that the script reads from the element `data`. */
  readonly data: string;
  /** Rules after those that all pages share. */
  readonly style?: string;
}

export function renderHtml({ name, script, data, style = "" }: HtmlPage): string {
  const styles = `${pageStyle}${style}`;
  const policy = [
    "default-src 'none'",
    "img-src data:",
    `style-src '${hashOf(styles)}'`,
    `script-src '${hashOf(script)}'`,
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
<meta name="generator" content="plimsoll ${name}">
<link rel="icon" href="data:,">
<title>Plimsoll ${name}</title>
<style>${styles}</style>
</head>
<body>
<noscript>This page needs its built-in script to draw tables and timelines.</noscript>
<div id="page"></div>
<script type="application/json" id="data">${embedded(data)}</script>
<script>${script}</script>
</body>
</html>
`;
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

/** Escapes JSON so that it cannot end its script element. */
function embedded(json: string): string {
  return json.replace(/[<\u2028\u2029]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The page's style. Both colour schemes are sets of variables; below 720 px it is laid out for phones. */
const pageStyle: string = `
:root {
  --ground: #f7f7f5; --surface: #ffffff; --ink: #1c2126; --dim: #646b73; --line: #e2e4e6; --soft: #eef0f0;
  --accent: #0a6b62; --accent-ink: #ffffff; --alarm: #c2352b;
  --prefix: #cfd4da; --user: #2f6fb3; --assistant: #3f9c97; --thinking: #8a70c4; --calls: #dd9a26;
  --results: #e7cf9f; --placeholders: #b9577b;
  --recorded: #1c2126; --none: #8b939b; --rfc: #c2542f; --rfc-headroom: #d28f1c; --economic: #0a6b62; --gentle: #2f6fb3; --frugal: #8a58b8;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171a; --surface: #1c2024; --ink: #e7e9eb; --dim: #98a0a8; --line: #30363c; --soft: #262b30;
    --accent: #4cc0b1; --accent-ink: #0e1412; --alarm: #ff7b6e;
    --prefix: #464d55; --user: #5b97d6; --assistant: #4fb0aa; --thinking: #a38ddb; --calls: #e0a63f;
    --results: #8f7f5d; --placeholders: #d1769a;
    --recorded: #e7e9eb; --none: #8f979f; --rfc: #e8845f; --rfc-headroom: #e2b04f; --economic: #4cc0b1; --gentle: #6aa5e0; --frugal: #b48be0;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 ui-sans-serif, system-ui, "Segoe UI", sans-serif;
  font-variant-numeric: tabular-nums;
}
#page { max-width: 1320px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { margin: 0; font-size: 24px; font-weight: 650; letter-spacing: -0.01em; }
h2 { margin: 0 0 12px; font-size: 16px; font-weight: 650; }
h3 { margin: 0; font: 600 13.5px/1.4 ui-monospace, "SF Mono", Menlo, monospace; overflow-wrap: anywhere; }
p { margin: 0; }
.sign { width: 26px; height: 26px; margin-right: 10px; vertical-align: -4px; fill: none; stroke: var(--accent); stroke-width: 2.4; }
.dim { color: var(--dim); }
.facts { margin-top: 4px; font-size: 13.5px; overflow-wrap: anywhere; }
.panel, .card { background: var(--surface); border: 1px solid var(--line); border-radius: 10px; }
.panel { margin-top: 20px; padding: 20px; }
.overview { display: grid; grid-template-columns: minmax(0, 1fr) 230px; gap: 16px; align-items: start; }
table { width: 100%; border-collapse: collapse; font-size: 13.5px; }
th { padding: 0 5px 6px; color: var(--dim); font-weight: 500; text-align: right; border-bottom: 1px solid var(--line); }
td { padding: 5px; text-align: right; border-bottom: 1px solid var(--soft); white-space: nowrap; }
th:first-child, td:first-child { padding-left: 8px; }
th:nth-child(2), td:nth-child(2) { text-align: left; }
tbody tr { cursor: pointer; }
tbody tr:hover { background: var(--soft); }
tr.chosen { background: var(--soft); box-shadow: inset 3px 0 var(--accent); }
tr.starts:not(:first-child) td { border-top: 1px solid var(--line); }
td button { padding: 0; border: 0; background: none; color: inherit; font: inherit; font-weight: 600; cursor: pointer; }
.swatch { display: inline-block; width: 9px; height: 9px; margin-right: 7px; border-radius: 2px; }
.bar { display: inline-block; height: 7px; margin-right: 8px; border-radius: 2px; background: var(--accent); opacity: 0.35; }
.alarm { color: var(--alarm); font-weight: 600; }
details { margin-top: 16px; font-size: 13.5px; }
summary { cursor: pointer; color: var(--dim); }
dl.terms { display: grid; grid-template-columns: max-content 1fr; gap: 4px 16px; margin: 10px 0 0; }
dl.terms dt { font-weight: 600; } dl.terms dd { margin: 0; color: var(--dim); }
.toolbar {
  position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; gap: 10px 18px; align-items: center;
  margin: 24px -8px 0; padding: 10px 8px; background: var(--ground); font-size: 13.5px;
}
fieldset { display: flex; flex-wrap: wrap; gap: 4px; align-items: center; margin: 0; padding: 0; border: 0; min-width: 0; }
legend { float: left; margin-right: 8px; padding: 0; color: var(--dim); }
.choice { position: relative; }
.choice input { position: absolute; inset: 0; margin: 0; opacity: 0; cursor: pointer; }
.choice span { display: block; padding: 3px 10px; border: 1px solid var(--line); border-radius: 6px; background: var(--surface); }
.choice input:checked + span { background: var(--accent); border-color: var(--accent); color: var(--accent-ink); }
.choice input:focus-visible + span, :focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.field { display: flex; gap: 8px; align-items: center; color: var(--dim); }
select, input[type=search] {
  padding: 4px 8px; border: 1px solid var(--line); border-radius: 6px; background: var(--surface); color: var(--ink); font: inherit;
}
input[type=search] { width: 150px; } select { max-width: 136px; }
.card { margin-top: 16px; padding: 16px 20px; content-visibility: auto; contain-intrinsic-size: auto 420px; }
.card .title { font-size: 13.5px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.card[hidden] { display: none; }
.numbers { display: flex; flex-wrap: wrap; gap: 6px 28px; margin: 10px 0 6px; }
.numbers dt { color: var(--dim); font-size: 12px; line-height: 1.3; }
.numbers dd { margin: 0; font-weight: 600; }
.charts { display: grid; grid-template-columns: minmax(0, 2.3fr) minmax(0, 1fr); gap: 24px; }
.chart { min-width: 0; } .chart h4 { margin: 8px 0 2px; font-size: 12px; font-weight: 500; color: var(--dim); }
.plot { display: block; width: 100%; border-radius: 4px; touch-action: pan-y; }
.timeline { height: 210px; cursor: crosshair; } .costs { height: 210px; } .balance { height: 250px; }
svg text { fill: var(--dim); font-size: 11px; }
svg .grid { stroke: var(--line); } svg .window { stroke: var(--alarm); } svg .reserve { stroke: var(--alarm); stroke-dasharray: 4 4; }
svg .limit { fill: var(--alarm); } svg .ground { fill: var(--surface); }
svg .epoch { stroke: var(--ink); stroke-opacity: 0.28; stroke-dasharray: 2 3; } svg .mark { fill: var(--ink); }
svg .whole { fill: none; stroke: var(--none); stroke-width: 1.2; } svg .bad { fill: var(--alarm); }
svg .cursor { stroke: var(--ink); stroke-width: 1; } svg .line { fill: none; stroke-width: 1.4; } svg .line.chosen { stroke-width: 2.6; } svg .line.recorded { stroke-dasharray: 5 3; }
svg .name { fill: var(--ink); paint-order: stroke; stroke: var(--surface); stroke-width: 3px; }
.call { margin-top: 8px; font-size: 13.5px; min-height: 1.5em; } .call b { font-weight: 600; }
.kinds { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 2px 18px; margin: 6px 0 0; padding: 0; list-style: none; font-size: 13px; }
.kinds li { display: flex; align-items: baseline; } .kinds .value { margin-left: auto; padding-left: 8px; }
.kinds.single { grid-template-columns: 1fr; } .kinds.single .value + .value { flex: 0 0 5em; margin-left: 0; text-align: right; color: var(--dim); }
.notes { margin-top: 12px; font-size: 13px; overflow-wrap: anywhere; } .removed { margin-top: 6px; font-size: 13px; color: var(--dim); overflow-wrap: anywhere; min-height: 3em; } .removed b { color: var(--ink); font-weight: 600; }
.empty { margin-top: 24px; color: var(--dim); }
@media (min-width: 961px) { .overview > div { overflow-x: auto; } }
@media (max-width: 960px) { .overview { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 720px) {
  #page { padding: 20px 14px 48px; }
  .panel { padding: 14px; } .card { padding: 14px; }
  .toolbar { position: static; gap: 10px; } .field, input[type=search] { flex: 1 1 auto; } select { min-width: 0; max-width: none; }
  .charts { grid-template-columns: minmax(0, 1fr); gap: 4px; } .timeline { height: 180px; } .costs { height: 140px; }
  table, thead, tbody { display: block; font-size: 12px; }
  tr { display: grid; grid-template-columns: repeat(5, minmax(0, 1fr)); column-gap: 8px; align-items: baseline; padding: 5px 6px; border-bottom: 1px solid var(--soft); }
  thead tr { border-bottom: 1px solid var(--line); } th, td, tr.starts:not(:first-child) td { display: block; min-width: 0; padding: 0; border: 0; }
  td:first-child, th:first-child { padding: 0; }
  th { font-size: 10.5px; } td .bar { display: none; }
  th:nth-child(-n + 4), td[data-column=window] { display: none; } td { order: 1; }
  tr.starts td[data-column=window] { display: block; margin: 4px 0 2px; grid-column: 1 / -1; order: -1; color: var(--dim); text-align: left; }
  tr.starts td[data-column=window]::before { content: "window "; }
  td:is([data-column=policy], [data-column=cost], [data-column="$"]) { order: 0; }
  td[data-column=policy], td[data-column="$"] { grid-column: span 2; }
  td[data-column=cost], td[data-column="$"] { color: var(--dim); font-size: 11px; } td[data-column=cost] { justify-self: end; }
  td[data-column=cost]::before { content: "cost "; }
  :is(th, td):is([data-column="ms/turn"], [data-column=quotes], [data-column="names far"], [data-column=edits], [data-column="re-fetch/100"]) { display: none !important; }
  .numbers dt { overflow-wrap: anywhere; }
  .numbers { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 6px 8px; }
  .kinds { grid-template-columns: repeat(2, 1fr); gap: 2px 14px; } .call { font-size: 13px; }
  dl.terms { grid-template-columns: 1fr; gap: 0; } dl.terms dd { margin-bottom: 6px; }
}
`;

// The page as a file. Whatever happens, what is there is the old file or the whole new one.

/** Throws if the page cannot be written: the target is a directory or one of the sessions. */
export async function checkPageTarget(
  target: string,
  { call, inputs }: { readonly call: Pick<Caller, "cwd" | "env">; readonly inputs: readonly string[] },
): Promise<void> {
  const path = resolve(call.cwd, target);
  const real = (file: string): Promise<string> => realpath(file).catch(() => file);
  const realTarget = await real(path);
  for (const input of inputs) {
    if ((await real(input)) !== realTarget) continue;
    throw usageError(`--html ${printable(target)} would overwrite a session`, "Name another file.");
  }
  await changePage(path, { call, dryRun: true, change: (current) => current ?? "" });
}

/** Writes a page and notes what it has. */
export async function writePage(
  target: string,
  { html, what }: { readonly html: string; readonly what: string },
  call: Caller,
): Promise<void> {
  const path = resolve(call.cwd, target);
  const bytes = toByteString(html);
  await changePage(path, { call, change: () => bytes });
  const size = `${formatNumber(Math.ceil(bytes.length / 1024))} KB`;
  call.output.note(`wrote ${printable(relative(call.cwd, path))}: ${what}, ${size}`);
}

interface PageChange {
  readonly call: Pick<Caller, "cwd" | "env">;
  readonly change: (current: string | undefined) => string;
  readonly dryRun?: boolean;
}

async function changePage(path: string, { call: { cwd, env }, change, dryRun }: PageChange): Promise<void> {
  try {
    await changeFile(path, { root: parse(path).root, env, change, dryRun });
  } catch (error) {
    if (!(error instanceof ContextError)) throw error;
    const { code, message, hint } = error;
    throw new ContextError(code, message, { hint, file: relative(cwd, path) || ".", cause: error });
  }
}
