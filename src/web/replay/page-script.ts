/** The page's script as text. It runs only in a browser; test/e2e/replay-page.test.ts tests it. */
import { partsScript, scaleScript } from "../page/page-parts.ts";
import { chartScripts } from "./page-charts.ts";

/** The script of the overview: facts, the table of windows and policies, the chart of cost against readable history, the
 *  meaning of columns. */
const overviewScript: string = `
const columns = [
  ["window", (row) => whole(row.window)],
  ["policy", (row) => row.policy],
  ["cost", (row) => short(row.cost)],
  ["$", (row) => dollars(row.usd)],
  ["\\u00d7 none", (row) => times(row.ratioToNone)],
  ["breaks", (row) => whole(row.breaks)],
  ["over", (row) => whole(row.overWindow)],
  ["invalid", (row) => whole(row.invalid)],
  ["kept", (row) => percent(row.visibleShare)],
  ["quotes", (row) => percent(row.references.quotes.share)],
  ["names far", (row) => percent(row.references.names.far.share)],
  ["edits", (row) => percent(row.references.edits.share)],
  ["re-fetch/100", (row) => refetches(row)],
  ["ms/turn", (row) => row.msPerTurn.toFixed(3)],
];
const alarming = { over: (row) => row.overWindow > 0, invalid: (row) => row.invalid > 0 };
const terms = [
  ["cost", "input cost, as full-price tokens: tokens read from the prompt cache count less, tokens written to it a little more"],
  ["$", "the same in dollars; " + facts.pricing],
  ["recorded", "what the client recorded, to compare with the simulated cost; its dollars include the output. A dashed line, if each call has an answer"],
  ["\\u00d7 none", "that cost as a multiple of sending the whole history each time"],
  ["breaks", "calls that read less from the cache than the previous call left there"],
  ["epoch", "a call on which the policy rewrote earlier messages; marked above the timeline"],
  ["over", "calls larger than the window without the reserve; red below the timeline"],
  ["invalid", "calls whose request the provider would refuse"],
  ["kept", "mean share of the history that the model can still read"],
  ["quotes", "lines of earlier results that the next turn repeats: the share that was still in the request"],
  ["names far", "names last seen 10 turns earlier or more that the next turn uses: the share that was still in the request"],
  ["edits", "texts that the next turn replaces: the share whose lines were all still in the request"],
  ["re-fetch/100", "results that a model would have had to read again for its quotes, in a hundred calls"],
  ["ms/turn", "time that the policy took to decide, on the machine that made this page"],
];

function overview(choose) {
  const head = element("tr", {}, ...columns.map(([name]) => element("th", { scope: "col", "data-column": name }, name)));
  const rows = facts.results.map((row, index) => resultRow(row, { index, choose }));
  const plot = shape("svg", { class: "plot balance", role: "img", "aria-label": "Cost against kept share, one point a policy" });
  const balance = element("div", { class: "chart" }, element("h4", {}, "Cost \\u00d7 none against the share kept"), plot);
  // One policy beside none leaves nothing to compare.
  const isWorthIt = facts.policies.length > 2;
  const panel = element("section", { class: "panel" },
    element("h2", {}, "All sessions"),
    element("div", { class: isWorthIt ? "overview" : undefined },
      element("div", {}, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows.map(({ node }) => node))),
        ...facts.notes.map((note) => element("p", { class: "notes dim" }, note)), legend()),
      isWorthIt ? balance : ""));
  const update = () => {
    for (const { node, row } of rows) node.classList.toggle("chosen", row.window === state.window && row.policy === state.policy);
    if (isWorthIt) drawBalance(plot);
  };
  return { panel, update };
}

function resultRow(row, { index, choose }) {
  const pick = () => choose({ window: row.window, policy: row.policy });
  const cells = columns.map(([name, show]) => {
    const alarm = alarming[name] && alarming[name](row);
    const cell = element("td", { "data-column": name, class: alarm ? "alarm" : undefined });
    if (name === "policy") cell.append(element("button", { type: "button", click: pick }, swatch(row.policy), row.policy));
    else if (name === "\\u00d7 none") cell.append(bar(row), show(row));
    else cell.append(show(row));
    return cell;
  });
  const starts = index === 0 || facts.results[index - 1].window !== row.window;
  return { row, node: element("tr", { click: pick, class: starts ? "starts" : undefined }, ...cells) };
}

function bar(row) {
  const node = element("span", { class: "bar", "aria-hidden": "true" });
  const most = Math.max(1, ...facts.results.map((each) => each.ratioToNone));
  node.style.width = Math.round((24 * row.ratioToNone) / most) + "px";
  return node;
}

function legend() {
  const list = terms.flatMap(([term, meaning]) => [element("dt", {}, term), element("dd", {}, meaning)]);
  return element("details", {}, element("summary", {}, "What the columns mean"), element("dl", { class: "terms" }, ...list));
}

/** Draws one point for each policy: further right more stays readable, further down it costs less. The axes cover only the points. */
function drawBalance(svg) {
  const rows = facts.results.filter((row) => row.window === state.window);
  const policies = rows.filter((row) => row.policy !== "none");
  const x = rangeOf(policies.map((row) => row.visibleShare), 1);
  const y = rangeOf(policies.map((row) => row.ratioToNone), Infinity);
  const frame = frameOf(svg, 1);
  const place = {
    x: (share) => frame.left + 8 + ((share - x.from) / (x.to - x.from)) * (frame.right - frame.left - 16),
    y: (ratio) => frame.bottom - 8 - ((ratio - y.from) / (y.to - y.from)) * (frame.bottom - frame.top - 16),
  };
  svg.replaceChildren();
  svg.setAttribute("viewBox", "0 0 " + frame.width + " " + frame.height);
  const ratios = ticksBetween(y.from, y.to, 4);
  for (const value of ratios.values) {
    const at = Math.round(place.y(value)) + 0.5;
    svg.append(shape("line", { class: "grid", x1: frame.left, x2: frame.right, y1: at, y2: at }));
    svg.append(shape("text", { x: frame.left - 6, y: at + 4, "text-anchor": "end" }, value.toFixed(Math.max(2, decimalsOf(ratios.step)))));
  }
  const shares = ticksBetween(x.from, x.to, 4);
  for (const share of shares.values) {
    const label = (100 * share).toFixed(decimalsOf(100 * shares.step)) + " %";
    const isLast = place.x(share) > frame.right - 16;
    const [x, anchor] = isLast ? [frame.right + 4, "end"] : [place.x(share), "middle"];
    svg.append(shape("text", { x, y: frame.bottom + 14, "text-anchor": anchor }, label));
  }
  const points = policies.map((row) => ({ row, x: place.x(row.visibleShare), y: place.y(row.ratioToNone) }));
  const taken = points.map(({ x, y }) => ({ from: x - 6, to: x + 6, y: y + 4 }));
  for (const point of points) drawPoint(svg, { ...point, taken, frame });
}

function rangeOf(values, most) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = Math.max(0.02, (high - low) / 6);
  return { from: Math.max(0, low - room), to: Math.min(most, high + room) };
}

/** Puts the name on the side with room, where it covers no point and no other name. */
function drawPoint(svg, { x, y, row, taken, frame }) {
  svg.append(shape("circle", { cx: x, cy: y, r: row.policy === state.policy ? 6 : 4.5, fill: colour(row.policy) }));
  const width = 7 * row.policy.length;
  const isRight = x + width + 10 > frame.right;
  const [from, to] = isRight ? [x - 10 - width, x - 10] : [x + 10, x + 10 + width];
  const isFree = (at) => taken.every((other) => other.to < from || other.from > to || Math.abs(other.y - at) >= 11);
  const tries = [0, -12, 12, -24, 24, -36, 36].map((offset) => y + 4 + offset);
  const at = tries.find((each) => each > frame.top && each < frame.bottom && isFree(each)) || y + 4;
  taken.push({ from, to, y: at });
  const place = { class: "name", x: isRight ? to : from, y: at, "text-anchor": isRight ? "end" : "start" };
  svg.append(shape("text", place, row.policy));
}
`;

/** The page's data and state, elements, numbers as text. Everything that is shown goes in as text. */
const elementsScript: string = `
const state = { window: facts.windows[0], policy: facts.selected, sort: "given", search: "", trimmed: false };
const kindNames = {
  prefix: "prefix", user: "user", assistant: "assistant text", thinking: "thinking",
  calls: "tool calls", results: "tool results", placeholders: "placeholders",
};
const kinds = ["prefix"].concat(facts.kinds);

const refetches = (row) => ((100 * row.references.refetches) / Math.max(1, row.calls)).toFixed(1);
const times = (ratio) => ratio.toFixed(3);

/** Where all sessions lie: said once, at the top. */
const folder = (() => {
  const folders = facts.sessions.map(({ file }) => file.slice(0, file.lastIndexOf("/") + 1));
  let common = folders[0] || "";
  while (!folders.every((each) => each.startsWith(common))) common = common.slice(0, common.lastIndexOf("/", common.length - 2) + 1);
  return common;
})();

/** What a run sent, with sums that are made once. */
function seriesOf(run) {
  const series = data.series[run.series];
  if (series.total) return series;
  const length = series.cost.length;
  series.total = new Float64Array(length);
  series.spent = new Float64Array(length);
  for (let call = 0, spent = 0; call < length; call++) {
    let total = series.prefix;
    for (const column of series.tokens) total += column[call];
    series.total[call] = total;
    series.spent[call] = spent += series.cost[call];
  }
  return series;
}
const runOf = (session, policy) =>
  session.runs.find((run) => run.window === state.window && run.policy === (policy || state.policy));
const ratioOf = (session) => {
  const none = runOf(session, "none").cost;
  return none === 0 ? 1 : runOf(session).cost / none;
};
`;

/** Charts are drawn when they come into view, and again after a change. */
const startScript = `
const drawn = new Set();
const visible = new Set();
const cards = facts.sessions.map(createCard);
const head = overview(choose);
const list = element("div", { class: "sessions" }, ...cards.map(({ node }) => node));
const empty = element("p", { class: "empty", hidden: true }, "No session matches.");
const shownCount = element("span", { class: "dim", role: "status" });
const choices = [];

function choice(name, values, show) {
  const group = element("fieldset", {}, element("legend", {}, name));
  for (const value of values) {
    const input = element("input", { type: "radio", name, value: String(value), change: () => choose({ [name]: value }) });
    choices.push(() => (input.checked = state[name] === value));
    group.append(element("label", { class: "choice" }, input, element("span", {}, show(value))));
  }
  return group;
}

const orders = {
  given: ["as given", () => 0],
  calls: ["most calls", (session) => -runOf(session).calls],
  cost: ["highest cost", (session) => -runOf(session).cost],
  ratio: ["lowest \\u00d7 none", ratioOf],
  breaks: ["most breaks", (session) => -runOf(session).breaks],
  kept: ["least kept", (session) => runOf(session).visibleShare],
};
function toolbar() {
  const options = Object.entries(orders).map(([value, [name]]) => element("option", { value }, name));
  const sort = element("select", { change: () => choose({ sort: sort.value }) }, ...options);
  const search = element("input", { type: "search", placeholder: "name or words", input: () => choose({ search: search.value }) });
  const trimmed = element("input", { type: "checkbox", change: () => choose({ trimmed: trimmed.checked }) });
  return element("div", { class: "toolbar", role: "group", "aria-label": "What is shown" },
    choice("window", facts.windows, short),
    choice("policy", facts.policies, String),
    element("label", { class: "field" }, "sort", sort),
    element("label", { class: "field" }, "find", search),
    element("label", { class: "field" }, trimmed, "only trimmed"),
    shownCount);
}

function choose(change) {
  Object.assign(state, change);
  for (const update of choices) update();
  head.update();
  arrange();
  drawn.clear();
  for (const card of visible) draw(card);
}

function draw(card) {
  if (drawn.has(card)) return;
  drawn.add(card);
  drawCard(card);
}

function arrange() {
  const key = orders[state.sort][1];
  const keyed = cards.map((card, index) => ({ card, index, key: key(card.session) }));
  keyed.sort((left, right) => left.key - right.key || left.index - right.index);
  const order = keyed.map(({ card }) => card.node);
  if (order.some((node, index) => node !== list.children[index])) list.append(...order);
  const words = state.search.toLowerCase();
  let shown = 0;
  for (const { node, session } of cards) {
    const isFound = (session.file + " " + session.title).toLowerCase().includes(words);
    node.hidden = !isFound || (state.trimmed && runOf(session).epochs === 0);
    if (!node.hidden) shown++;
  }
  empty.hidden = shown > 0;
  shownCount.textContent = shown + " of " + cards.length + (cards.length === 1 ? " session" : " sessions");
}

document.getElementById("page").append(
  element("header", {},
    element("h1", {}, loadLine(), "Plimsoll replay"),
    element("p", { class: "facts dim" }, facts.description + (folder ? " \\u00b7 in " + folder : "")),
    element("p", { class: "facts dim" }, "Dollars are for input. " + facts.pricing + ".")),
  element("main", {}, head.panel, toolbar(), list, empty));
const byNode = new Map(cards.map((card) => [card.node, card]));
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
  choose({});
});
choose({});
`;

export const pageScript: string = [
  '(() => {\n"use strict";',
  partsScript,
  elementsScript,
  scaleScript,
  ...chartScripts,
  overviewScript,
  startScript,
  "})();",
].join("");
