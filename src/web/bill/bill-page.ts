/** The page of `bill`: spend over time, causes of cache losses, heavy results, and a timeline of each session. The
 *  script runs only in a browser; test/e2e/bill-page.test.ts tests it. */

import { inputCost } from "../../core/billing/index.ts";
import { countNoun, formatNumber } from "../../core/text/index.ts";
import {
  agentNames,
  type BilledSession,
  type BillReport,
  iso,
  periodOf,
  stamp,
  type WeightRow,
} from "../../recordings/index.ts";
import { renderHtml } from "../page/html-page.ts";
import { partsScript, scaleScript } from "../page/page-parts.ts";

/** A page with more would be slow to open. */
const mostSessions = 400;

export function renderBillPage(report: BillReport): string {
  return renderHtml({ name: "bill", script: billPageScript, data: pageData(report), style: billPageStyle });
}

function pageData(report: BillReport): string {
  const { total, causes, losses, weights, inputUsd, unpriced, recordings, priceMonths } = report;
  const wanted = new Set(report.calls.map(({ call }) => call));
  const sessions = report.sessions
    .map((session) => sessionData(session, { report, isWanted: (call) => wanted.has(call) }))
    .filter(({ calls }) => calls > 0)
    .sort((left, right) => right.usd - left.usd || right.calls - left.calls);
  const shown = sessions.slice(0, mostSessions);
  const facts = {
    ...{ total, causes, inputUsd },
    description: [
      countNoun(sessions.length, "session"),
      countNoun(total.calls, "call"),
      ...(recordings.damaged > 0 ? [`${countNoun(recordings.damaged, "damaged line")} skipped`] : []),
      ...(priceMonths.length > 0 ? [`prices as of ${priceMonths.at(-1)}`] : []),
    ].join(" · "),
    notes: [
      ...unpriced.map(
        ({ key, calls }) => `No price of its own: ${key}, ${countNoun(calls, "call")}, not in the dollars.`,
      ),
      ...(shown.length < sessions.length
        ? [
            `The page shows the ${formatNumber(shown.length)} most expensive of ${formatNumber(sessions.length)} sessions.`,
          ]
        : []),
    ],
    days: spendByDay(report),
    losses: losses.slice(0, 10).map(({ facts: own, cause, time, rewritten, usd, detail }) => ({
      ...{ cause, time: stamp(time), rewritten, usd: usd ?? null, detail },
      ...{ session: own.session, project: own.project, agent: agentNames[own.agent] },
    })),
    weights: { tools: top(weights.tools), files: top(weights.files), servers: top(weights.servers) },
    sessions: shown,
  };
  return JSON.stringify({ facts });
}

function top(rows: readonly WeightRow[]): readonly WeightRow[] {
  return rows.slice(0, 10);
}

/** Dollars by day: read, written, full price, output. */
function spendByDay({ calls }: BillReport): readonly object[] {
  const days = new Map<string, number[]>();
  for (const { call } of calls) {
    const { fact, price, usd } = call;
    if (price === undefined || usd === undefined) continue;
    const day = periodOf(fact.time, "day");
    const sums = days.get(day) ?? [0, 0, 0, 0];
    const none = { read: 0, write5m: 0, write1h: 0, uncached: 0 };
    const read = inputCost({ ...none, read: fact.read }, price).usd;
    const written = inputCost({ ...none, write5m: fact.write5m, write1h: fact.write1h }, price).usd;
    const fresh = inputCost({ ...none, uncached: fact.uncached }, price).usd;
    for (const [at, value] of [read, written, fresh, Math.max(0, usd - read - written - fresh)].entries()) {
      sums[at] = (sums[at] ?? 0) + value;
    }
    days.set(day, sums);
  }
  return [...days].sort(([left], [right]) => (left < right ? -1 : 1)).map(([day, sums]) => ({ day, sums }));
}

interface SessionData {
  readonly calls: number;
  readonly usd: number;
}

function sessionData(
  { facts, calls }: BilledSession,
  { report, isWanted }: { report: BillReport; isWanted: (call: BilledSession["calls"][number]) => boolean },
): SessionData {
  const own = calls.map((call, index) => ({ call, index })).filter(({ call }) => isWanted(call));
  const placeOf = new Map(own.map(({ index }, place) => [index, place]));
  const losses = report.losses.flatMap((loss) => {
    const place = loss.facts === facts ? placeOf.get(loss.call) : undefined;
    if (place === undefined) return [];
    const { cause, detail, rewritten, usd } = loss;
    return [{ call: place, cause, detail, rewritten, usd: usd ?? null }];
  });
  const column = (read: (call: BilledSession["calls"][number]) => number): number[] =>
    own.map(({ call }) => read(call));
  const data = {
    ...{ session: facts.session, project: facts.project, subAgent: facts.subAgent },
    losses: losses.toSorted((left, right) => left.call - right.call),
    agent: agentNames[facts.agent],
    models: [...new Set(own.map(({ call }) => call.fact.model))],
    start: iso(own[0]?.call.fact.time ?? 0),
    calls: own.length,
    usd: own.reduce((sum, { call }) => sum + (call.usd ?? 0), 0),
    lossUsd: losses.reduce((sum, loss) => sum + (loss.usd ?? 0), 0),
    read: column(({ fact }) => fact.read),
    written: column(({ fact }) => fact.write5m + fact.write1h),
    fresh: column(({ fact }) => fact.uncached),
    output: column(({ fact }) => fact.output),
    cost: column(({ usd }) => Number((usd ?? 0).toFixed(5))),
    times: column(({ fact }) => fact.time),
    tools: own.map(({ call }) => call.fact.tool ?? ""),
  };
  return data;
}

/** Rules that only this page needs. Tables have names on the left, and scroll on a phone. */
const billPageStyle: string = `
:root { --read: #3f9c97; --written: #dd9a26; --fresh: #b9577b; --output: #8a70c4; }
@media (prefers-color-scheme: dark) { :root { --read: #4fb0aa; --written: #e0a63f; --fresh: #d1769a; --output: #a38ddb; } }
.spend { height: 220px; } .key { display: flex; flex-wrap: wrap; gap: 4px 18px; margin-top: 8px; font-size: 13px; }
tbody tr { cursor: default; } .scroll { overflow-x: auto; margin-top: 4px; } .panel h2:not(:first-child) { margin-top: 22px; }
.scroll :is(th, td) { text-align: right; } .scroll :is(th, td).name { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 9em; }
.pair { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 0 28px; }
.card h3 small { font-weight: 400; color: var(--dim); } svg .loss { fill: var(--alarm); } svg .lossline { stroke: var(--alarm); stroke-opacity: 0.45; }
.lossnote { margin-top: 4px; font-size: 13px; } .lossnote b { color: var(--alarm); font-weight: 600; }
@media (max-width: 960px) { .pair { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 720px) {
  .scroll table { display: table; } .scroll thead { display: table-header-group; } .scroll tbody { display: table-row-group; }
  .scroll tr { display: table-row; } .scroll th, .scroll td, .scroll th:nth-child(-n + 4) { display: table-cell; padding: 4px 6px; }
  .scroll th.name, .scroll td.name { min-width: 7.5em; }
}
`;

const overviewScript = `
const state = { sort: "usd", search: "", lossy: false };
const kinds = [["read", "read from the cache"], ["written", "written to the cache"], ["fresh", "full price"], ["output", "output"]];

function table(headers, rows) {
  const cell = (name, at, content) => element(name, { class: headers[at][1] ? "name" : undefined }, content);
  const head = element("tr", {}, ...headers.map(([title], at) => cell("th", at, title)));
  const body = rows.map((row) => element("tr", {}, ...row.map((content, at) => cell("td", at, content))));
  return element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)));
}
const key = (names) => element("div", { class: "key dim" }, ...names.map(([name, title]) => element("span", {}, swatch(name), title)));

const spendPlot = shape("svg", { class: "plot spend", role: "img", "aria-label": "Dollars by day" });
function spendPanel() {
  const { total } = facts;
  const numbers = [
    ["spent", dollars(total.usd)], ["calls", whole(total.calls)], ["read", short(total.read)],
    ["written", short(total.write5m + total.write1h)], ["full price", short(total.uncached)], ["output", short(total.output)],
    ["lost with the cache", dollars(facts.causes.reduce((sum, row) => sum + row.usd, 0))],
  ];
  return element("section", { class: "panel" }, element("h2", {}, "Spend over time"),
    element("dl", { class: "numbers" }, ...numbers.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)))),
    spendPlot, key(kinds), ...facts.notes.map((note) => element("p", { class: "notes dim" }, note)));
}

function drawSpend() {
  const days = facts.days;
  spendPlot.replaceChildren();
  if (days.length === 0) return;
  const most = Math.max(...days.map(({ sums }) => sums.reduce((sum, each) => sum + each, 0))) || 1;
  const frame = frameOf(spendPlot, most);
  spendPlot.setAttribute("viewBox", "0 0 " + frame.width + " " + frame.height);
  const { step, values } = ticksBetween(0, most, 4);
  for (const value of values) {
    const y = Math.round(frame.y(value)) + 0.5;
    spendPlot.append(shape("line", { class: "grid", x1: frame.left, x2: frame.right, y1: y, y2: y }));
    spendPlot.append(shape("text", { x: frame.left - 6, y: y + 4, "text-anchor": "end" }, "$" + Number(value.toFixed(decimalsOf(step)))));
  }
  const wide = (frame.right - frame.left) / days.length;
  days.forEach(({ day, sums }, index) => {
    const bar = shape("g", {}, shape("title", {}, day + ": " + dollars(sums.reduce((sum, each) => sum + each, 0))));
    let base = 0;
    sums.forEach((value, at) => {
      const rect = shape("rect", { x: fixed(frame.left + index * wide + Math.min(2, wide * 0.1)), width: fixed(Math.max(1, Math.min(64, wide * 0.85))),
        y: fixed(frame.y(base + value)), height: fixed(Math.max(0, frame.y(base) - frame.y(base + value))) });
      rect.style.fill = colour(kinds[at][0]);
      bar.append(rect);
      base += value;
    });
    spendPlot.append(bar);
  });
  const ends = days.length === 1 ? [[frame.left, "start", days[0].day]] : [[frame.left, "start", days[0].day], [frame.right, "end", days.at(-1).day]];
  for (const [x, anchor, label] of ends) spendPlot.append(shape("text", { x, y: frame.bottom + 14, "text-anchor": anchor }, label));
}

const amount = (usd) => (usd === null ? "\\u2013" : dollars(usd));
function causePanel() {
  const panel = element("section", { class: "panel" }, element("h2", {}, "Why the cache was lost"));
  if (facts.causes.length === 0) {
    panel.append(element("p", { class: "dim" }, "No call read less from the cache than the previous call left there."));
    return panel;
  }
  const rows = facts.causes.map((row) => [row.cause, whole(row.events), short(row.rewritten), dollars(row.usd), percent(row.share)]);
  panel.append(table([["cause", true], ["calls"], ["written again"], ["dollars"], ["of input"]], rows));
  const losses = facts.losses.map((loss) => [loss.time, loss.cause, loss.detail, loss.project, loss.session.slice(0, 8), short(loss.rewritten), amount(loss.usd)]);
  panel.append(element("h2", {}, "The most expensive losses"),
    table([["time", true], ["cause", true], ["what happened", true], ["project", true], ["session", true], ["written again"], ["dollars"]], losses));
  return panel;
}

function weightPanel() {
  const groups = [["tool", facts.weights.tools], ["file", facts.weights.files], ["MCP server", facts.weights.servers]].filter(([, rows]) => rows.length > 0);
  if (groups.length === 0) return "";
  const tables = groups.map(([title, rows]) => element("div", {}, table([[title, true], ["results"], ["tokens first sent"], ["times carried"], ["dollars"]],
    rows.map((row) => [row.name, whole(row.results), short(row.tokens), row.results === 0 ? "\\u2013" : (row.carried / row.results).toFixed(1), dollars(row.usd)]))));
  return element("section", { class: "panel" }, element("h2", {}, "What weighs most in the context"), element("div", { class: "pair" }, ...tables));
}
`;

const cardScript = `
function createCard(session) {
  const plot = shape("svg", { class: "plot timeline", role: "img", "aria-label": "Tokens of each call" });
  const note = element("p", { class: "call dim" });
  const name = session.agent + (session.subAgent ? ", " + session.subAgent : "");
  const numbers = [["dollars", dollars(session.usd)], ["calls", whole(session.calls)], ["losses", whole(session.losses.length)], ["lost", dollars(session.lossUsd)]];
  const node = element("article", { class: "card" },
    element("h3", {}, session.project || "(unknown)", " ", element("small", {}, session.session)),
    element("p", { class: "title dim" }, [name, session.models.join(", "), session.start ? session.start.slice(0, 16).replace("T", " ") : ""].filter(Boolean).join(" \\u00b7 ")),
    element("dl", { class: "numbers" }, ...numbers.map(([title, value]) => element("div", {}, element("dt", {}, title), element("dd", {}, value)))),
    plot, key(kinds.slice(0, 3).concat([["alarm", "cache lost"]])), note);
  const card = { session, node, plot, note };
  plot.addEventListener("pointermove", (event) => point(card, event.offsetX));
  plot.addEventListener("pointerdown", (event) => point(card, event.offsetX));
  return card;
}

function point(card, x) {
  if (!card.scale) return;
  const call = card.scale.callAt(x);
  const { session, note } = card;
  const loss = session.losses.find((each) => each.call === call);
  const parts = kinds.slice(0, 3).map(([name]) => name + " " + whole(session[name][call]));
  note.replaceChildren("call " + whole(call + 1) + ", " + new Date(session.times[call]).toISOString().slice(0, 16).replace("T", " ") + " UTC: " + parts.join(", ") + ", " + dollars(session.cost[call]) +
    (session.tools[call] ? ", after " + session.tools[call] : ""));
  if (loss) note.append(element("span", { class: "lossnote" }, " \\u2014 ", element("b", {}, loss.cause), " (" + loss.detail + "), " + whole(loss.rewritten) + " tokens written again, " + amount(loss.usd)));
  if (card.cursor) {
    const at = fixed(card.scale.middle(call));
    card.cursor.setAttribute("x1", at);
    card.cursor.setAttribute("x2", at);
  }
}

/** More lines would hide the chart. */
const mostLines = 60;
function drawCard(card) {
  const { session, plot } = card;
  plot.replaceChildren();
  const layers = kinds.slice(0, 3).map(([name]) => session[name]);
  const total = layers[0].map((_, call) => layers.reduce((sum, layer) => sum + layer[call], 0));
  const most = total.reduce((best, each) => Math.max(best, each), 1);
  const frame = frameOf(plot, most);
  plot.setAttribute("viewBox", "0 0 " + frame.width + " " + frame.height);
  drawAxes(plot, frame, most, session.calls);
  const lossAt = new Set(session.losses.map(({ call }) => call));
  // Where several calls share a pixel, show the one that lost the cache.
  const choose = (from, to) => {
    for (let call = from; call < to; call++) if (lossAt.has(call)) return call;
    return largestIn(total)(from, to);
  };
  const columns = columnsOf(frame, session.calls, choose);
  const below = new Float64Array(session.calls);
  layers.forEach((layer, at) => {
    let path = "";
    for (const { x, end, call } of columns) {
      if (layer[call] === 0) continue;
      const [low, high] = [frame.y(below[call]), frame.y(below[call] + layer[call])];
      path += "M" + fixed(x) + " " + fixed(low) + "V" + fixed(high) + "H" + fixed(end) + "V" + fixed(low) + "Z";
    }
    for (let call = 0; call < session.calls; call++) below[call] += layer[call];
    const area = shape("path", { d: path });
    area.style.fill = colour(kinds[at][0]);
    plot.append(area);
  });
  card.scale = callScale(frame, session.calls);
  for (const { call } of session.losses) {
    const x = card.scale.middle(call);
    if (session.losses.length <= mostLines) plot.append(shape("line", { class: "lossline", x1: fixed(x), x2: fixed(x), y1: frame.top, y2: frame.bottom }));
    plot.append(shape("path", { class: "loss", d: "M" + fixed(x - 4) + " " + (frame.top - 8) + "H" + fixed(x + 4) + "L" + fixed(x) + " " + (frame.top - 1) + "Z" }));
  }
  card.cursor = shape("line", { class: "cursor", x1: -9, x2: -9, y1: frame.top, y2: frame.bottom });
  plot.append(card.cursor);
}
`;

/** Charts are drawn when they come into view, and again after a change of the width. */
const startScript = `
const cards = facts.sessions.map(createCard);
const list = element("div", {}, ...cards.map(({ node }) => node));
const empty = element("p", { class: "empty", hidden: true }, "No session matches.");
const shownCount = element("span", { class: "dim", role: "status" });
const orders = {
  usd: ["most dollars", (session) => -session.usd], lost: ["most lost", (session) => -session.lossUsd],
  calls: ["most calls", (session) => -session.calls], time: ["latest", (session) => -(session.times.at(-1) || 0)],
};
function toolbar() {
  const sort = element("select", { change: () => arrange({ sort: sort.value }) },
    ...Object.entries(orders).map(([value, [name]]) => element("option", { value }, name)));
  const search = element("input", { type: "search", placeholder: "project or session", input: () => arrange({ search: search.value }) });
  const lossy = element("input", { type: "checkbox", change: () => arrange({ lossy: lossy.checked }) });
  return element("div", { class: "toolbar", role: "group", "aria-label": "What is shown" },
    element("label", { class: "field" }, "sort", sort), element("label", { class: "field" }, "find", search),
    element("label", { class: "field" }, lossy, "only with losses"), shownCount);
}
function arrange(change) {
  Object.assign(state, change);
  const order = orders[state.sort][1];
  const sorted = cards.slice().sort((left, right) => order(left.session) - order(right.session));
  list.append(...sorted.map(({ node }) => node));
  const words = state.search.toLowerCase();
  let shown = 0;
  for (const { node, session } of cards) {
    node.hidden = !(session.project + " " + session.session).toLowerCase().includes(words) || (state.lossy && session.losses.length === 0);
    if (!node.hidden) shown++;
  }
  empty.hidden = shown > 0;
  shownCount.textContent = shown + " of " + cards.length + (cards.length === 1 ? " session" : " sessions");
}
document.getElementById("page").append(
  element("header", {}, element("h1", {}, loadLine(), "Plimsoll bill"), element("p", { class: "facts dim" }, facts.description)),
  element("main", {}, spendPanel(), causePanel(), weightPanel(), toolbar(), list, empty));
const byNode = new Map(cards.map((card) => [card.node, card]));
const drawn = new Set();
const visible = new Set();
const draw = (card) => { if (!drawn.has(card)) { drawn.add(card); drawCard(card); } };
const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const card = byNode.get(target);
    if (isIntersecting) { visible.add(card); draw(card); }
    else visible.delete(card);
  }
}, { rootMargin: "300px" });
for (const { node } of cards) watcher.observe(node);
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  drawSpend();
  drawn.clear();
  for (const card of visible) draw(card);
});
arrange({});
drawSpend();
`;

const billPageScript: string = [
  '(() => {\n"use strict";',
  partsScript,
  scaleScript,
  overviewScript,
  cardScript,
  startScript,
  "})();",
].join("");
