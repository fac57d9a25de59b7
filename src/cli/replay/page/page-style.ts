/** The page's style. Both colour schemes are sets of variables; widths below 720 px are a phone's. */
export const pageStyle: string = `
:root {
  --ground: #f7f7f5; --surface: #ffffff; --ink: #1c2126; --dim: #646b73; --line: #e2e4e6; --soft: #eef0f0;
  --accent: #0a6b62; --accent-ink: #ffffff; --alarm: #c2352b;
  --prefix: #cfd4da; --user: #2f6fb3; --assistant: #3f9c97; --thinking: #8a70c4; --calls: #dd9a26;
  --results: #e7cf9f; --placeholders: #b9577b;
  --none: #8b939b; --rfc: #c2542f; --rfc-headroom: #d28f1c; --economic: #0a6b62; --gentle: #2f6fb3; --frugal: #8a58b8;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14171a; --surface: #1c2024; --ink: #e7e9eb; --dim: #98a0a8; --line: #30363c; --soft: #262b30;
    --accent: #4cc0b1; --accent-ink: #0e1412; --alarm: #ff7b6e;
    --prefix: #464d55; --user: #5b97d6; --assistant: #4fb0aa; --thinking: #a38ddb; --calls: #e0a63f;
    --results: #8f7f5d; --placeholders: #d1769a;
    --none: #8f979f; --rfc: #e8845f; --rfc-headroom: #e2b04f; --economic: #4cc0b1; --gentle: #6aa5e0; --frugal: #b48be0;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 ui-sans-serif, system-ui, "Segoe UI", sans-serif;
  font-variant-numeric: tabular-nums;
}
#page { max-width: 1180px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { margin: 0; font-size: 24px; font-weight: 650; letter-spacing: -0.01em; }
h2 { margin: 0 0 12px; font-size: 16px; font-weight: 650; }
h3 { margin: 0; font: 600 13.5px/1.4 ui-monospace, "SF Mono", Menlo, monospace; overflow-wrap: anywhere; }
p { margin: 0; }
.sign { width: 26px; height: 26px; margin-right: 10px; vertical-align: -4px; fill: none; stroke: var(--accent); stroke-width: 2.4; }
.dim { color: var(--dim); }
.facts { margin-top: 4px; font-size: 13.5px; overflow-wrap: anywhere; }
.panel, .card { background: var(--surface); border: 1px solid var(--line); border-radius: 10px; }
.panel { margin-top: 20px; padding: 20px; }
.overview { display: grid; grid-template-columns: minmax(0, 1fr) 300px; gap: 28px; align-items: start; }
table { width: 100%; border-collapse: collapse; font-size: 13.5px; }
th { padding: 0 10px 6px; color: var(--dim); font-weight: 500; text-align: right; border-bottom: 1px solid var(--line); }
td { padding: 5px 10px; text-align: right; border-bottom: 1px solid var(--soft); white-space: nowrap; }
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
svg .cursor { stroke: var(--ink); stroke-width: 1; } svg .line { fill: none; stroke-width: 1.4; } svg .line.chosen { stroke-width: 2.6; }
svg .name { fill: var(--ink); paint-order: stroke; stroke: var(--surface); stroke-width: 3px; }
.call { margin-top: 8px; font-size: 13.5px; min-height: 1.5em; } .call b { font-weight: 600; }
.kinds { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 2px 18px; margin: 6px 0 0; padding: 0; list-style: none; font-size: 13px; }
.kinds li { display: flex; align-items: baseline; } .kinds .value { margin-left: auto; padding-left: 8px; }
.kinds.single { grid-template-columns: 1fr; } .kinds.single .value + .value { flex: 0 0 5em; margin-left: 0; text-align: right; color: var(--dim); }
.empty { margin-top: 24px; color: var(--dim); }
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
  th:nth-child(-n + 3), th:last-child, td[data-column=window] { display: none; } td { order: 1; }
  tr.starts td[data-column=window] { display: block; margin: 4px 0 2px; grid-column: 1 / -1; order: -1; color: var(--dim); text-align: left; }
  tr.starts td[data-column=window]::before { content: "window "; }
  td:is([data-column=policy], [data-column=cost], [data-column="ms/turn"]) { order: 0; }
  td[data-column=policy], td[data-column="ms/turn"] { grid-column: span 2; }
  td[data-column=cost], td[data-column="ms/turn"] { color: var(--dim); font-size: 11px; } td[data-column=cost] { justify-self: end; }
  td[data-column=cost]::before { content: "cost "; }
  td[data-column="ms/turn"]::after { content: " ms/turn"; }
  .numbers { display: grid; grid-template-columns: repeat(4, 1fr); gap: 6px 8px; }
  .kinds { grid-template-columns: repeat(2, 1fr); gap: 2px 14px; } .call { font-size: 13px; }
  dl.terms { grid-template-columns: 1fr; gap: 0; } dl.terms dd { margin-bottom: 6px; }
}
`;
