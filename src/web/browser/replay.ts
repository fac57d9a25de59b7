/** The script of the page of `replay`: a table of windows and policies, the chart of cost against readable history, the
 *  meaning of columns, and the sessions. test/e2e/replay-page.test.ts tests it in a browser. */
import { colour, element, formatDollars, pageTitle, percent, shape, short, swatch, whole } from "./elements.ts";
import type { ReplayFacts, ReplaySession } from "./page-data.ts";
import { countDecimals, drawGrid, type Plot, roundValues, startPlot } from "./plot.ts";
import {
  type Card,
  compareToNone,
  createCard,
  drawCard,
  facts,
  findRun,
  formatRatio,
  formatRefetches,
  state,
} from "./replay-card.ts";
import { terms } from "./replay-terms.data.ts";
import { createSessionList } from "./session-list.ts";

type ResultRow = ReplayFacts["results"][number];

const columns: readonly (readonly [title: string, show: (row: ResultRow) => string])[] = [
  ["window", (row) => whole(row.window)],
  ["policy", (row) => row.policy],
  ["cost", (row) => short(row.cost)],
  ["$", (row) => formatDollars(row.usd)],
  ["\u00d7 none", (row) => formatRatio(row.ratioToNone)],
  ["breaks", (row) => whole(row.breaks)],
  ["over", (row) => whole(row.overWindow)],
  ["invalid", (row) => whole(row.invalid)],
  ["kept", (row) => percent(row.visibleShare)],
  ["quotes", (row) => percent(row.references.quotes.share)],
  ["names far", (row) => percent(row.references.names.far.share)],
  ["edits", (row) => percent(row.references.edits.share)],
  ["re-fetch/100", formatRefetches],
  ["ms/turn", (row) => row.msPerTurn.toFixed(3)],
];

/** One policy beside none leaves nothing to compare. */
const hasBalance = facts.policies.length > 2;
const balance = shape("svg", {
  class: "plot balance",
  role: "img",
  "aria-label": "Cost against kept share, one point a policy",
});
const rows = facts.results.map(createRow);
const choices = [
  ...facts.windows.map((window) => createChoice(short(window), { window })),
  ...facts.policies.map((policy) => createChoice(policy, { policy })),
];
const folder = findFolder();
const list = createSessionList<ReplaySession, Card>({
  cards: facts.sessions.map((session) => createCard(session, session.file.slice(folder.length))),
  drawCard,
  drawOverview,
  orders: [
    ["given", "as given", () => 0],
    ["calls", "most calls", (session) => -findRun(session).calls],
    ["cost", "highest cost", (session) => -findRun(session).cost],
    ["ratio", "lowest \u00d7 none", compareToNone],
    ["breaks", "most breaks", (session) => -findRun(session).breaks],
    ["kept", "least kept", (session) => findRun(session).visibleShare],
  ],
  text: ({ file, title }) => `${file} ${title}`,
  searchHint: "name or words",
  filter: { title: "only trimmed", allows: (session) => findRun(session).epochs > 0 },
  controls: (["window", "policy"] as const).map((name) => {
    const labels = choices.filter(({ change }) => name in change).map(({ label }) => label);
    return element("fieldset", {}, element("legend", {}, name), ...labels);
  }),
});
document
  .getElementById("page")
  ?.append(
    element(
      "header",
      {},
      pageTitle("Plimsoll replay"),
      element("p", { class: "facts dim" }, facts.description + (folder ? ` \u00b7 in ${folder}` : "")),
      element("p", { class: "facts dim" }, `Dollars are for input. ${facts.pricing}.`),
    ),
    element("main", {}, createOverview(), ...list.nodes),
  );
list.update();

function choose(change: Partial<typeof state>): void {
  Object.assign(state, change);
  list.update();
}

function createRow(row: ResultRow, index: number): { readonly row: ResultRow; readonly node: HTMLElement } {
  const choice = { window: row.window, policy: row.policy };
  const pick = (): void => choose(choice);
  const cells = columns.map(([title, show]) => {
    const isAlarm = (title === "over" && row.overWindow > 0) || (title === "invalid" && row.invalid > 0);
    const cell = element("td", { "data-column": title, class: isAlarm ? "alarm" : undefined });
    if (title === "policy") {
      cell.append(element("button", { type: "button", click: pick }, swatch(row.policy), row.policy));
      return cell;
    }
    if (title === "\u00d7 none") {
      const bar = element("span", { class: "bar", "aria-hidden": "true" });
      const max = Math.max(1, ...facts.results.map((each) => each.ratioToNone));
      bar.style.width = `${Math.round((24 * row.ratioToNone) / max)}px`;
      cell.append(bar);
    }
    cell.append(show(row));
    return cell;
  });
  const startsWindow = facts.results[index - 1]?.window !== row.window;
  return { row, node: element("tr", { click: pick, class: startsWindow ? "starts" : undefined }, ...cells) };
}

/** A radio button that chooses a window or a policy. */
function createChoice(title: string, change: Partial<typeof state>) {
  const [[name, value] = ["", ""]] = Object.entries(change);
  const input = element("input", { type: "radio", name, value, change: () => choose(change) });
  const label = element("label", { class: "choice" }, input, element("span", {}, title));
  return { change, input, label };
}

/** Finds the folder that all sessions are in. The page names it once, at the top. */
function findFolder(): string {
  const folders = facts.sessions.map(({ file }) => file.slice(0, file.lastIndexOf("/") + 1));
  let common = folders[0] ?? "";
  while (!folders.every((each) => each.startsWith(common))) {
    common = common.slice(0, common.lastIndexOf("/", common.length - 2) + 1);
  }
  return common;
}

function createOverview(): HTMLElement {
  const titles = columns.map(([title]) => element("th", { scope: "col", "data-column": title }, title));
  const head = element("thead", {}, element("tr", {}, ...titles));
  const meanings = terms.flatMap(([term, meaning]) => {
    const text = term === "$" ? `${meaning}; ${facts.pricing}` : meaning;
    return [element("dt", {}, term), element("dd", {}, text)];
  });
  const legend = element(
    "details",
    {},
    element("summary", {}, "What the columns mean"),
    element("dl", { class: "terms" }, ...meanings),
  );
  const results = element(
    "div",
    {},
    element("table", {}, head, element("tbody", {}, ...rows.map(({ node }) => node))),
    ...facts.notes.map((note) => element("p", { class: "notes dim" }, note)),
    legend,
  );
  const title = element("h4", {}, "Cost \u00d7 none against the share kept");
  return element(
    "section",
    { class: "panel" },
    element("h2", {}, "All sessions"),
    element(
      "div",
      { class: hasBalance ? "overview" : undefined },
      results,
      hasBalance ? element("div", { class: "chart" }, title, balance) : "",
    ),
  );
}

function drawOverview(): void {
  const isChosen = ({ window = state.window, policy = state.policy }: Partial<typeof state>): boolean =>
    window === state.window && policy === state.policy;
  for (const { change, input } of choices) input.checked = isChosen(change);
  for (const { node, row } of rows) node.classList.toggle("chosen", isChosen(row));
  if (hasBalance) drawBalance();
}

/** Draws one point for each policy: further right more stays readable, further down it costs less. The axes cover only the points. */
function drawBalance(): void {
  const policies = facts.results.filter((row) => row.window === state.window && row.policy !== "none");
  const plot = startPlot(balance, 1);
  const kept = findRange(
    policies.map((row) => row.visibleShare),
    1,
  );
  const cost = findRange(
    policies.map((row) => row.ratioToNone),
    Number.POSITIVE_INFINITY,
  );
  const x = (share: number): number =>
    plot.left + 8 + ((share - kept.from) / (kept.to - kept.from)) * (plot.right - plot.left - 16);
  const y = (ratio: number): number =>
    plot.bottom - 8 - ((ratio - cost.from) / (cost.to - cost.from)) * (plot.bottom - plot.top - 16);
  drawGrid(plot, { ...cost, y, label: (value, step) => value.toFixed(Math.max(2, countDecimals(step))) });
  const { step, values } = roundValues(kept.from, kept.to);
  for (const share of values) {
    const isLast = x(share) > plot.right - 16;
    const place = { x: isLast ? plot.right + 4 : x(share), y: plot.bottom + 14 };
    const label = `${(100 * share).toFixed(countDecimals(100 * step))} %`;
    balance.append(shape("text", { ...place, "text-anchor": isLast ? "end" : "middle" }, label));
  }
  const points = policies.map(({ policy, visibleShare, ratioToNone }) => ({
    policy,
    x: x(visibleShare),
    y: y(ratioToNone),
  }));
  const taken = points.map((point) => ({ from: point.x - 6, to: point.x + 6, y: point.y + 4 }));
  for (const point of points) drawPoint(plot, point, taken);
}

function findRange(values: readonly number[], limit: number): { readonly from: number; readonly to: number } {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = Math.max(0.02, (high - low) / 6);
  return { from: Math.max(0, low - room), to: Math.min(limit, high + room) };
}

/** Puts the name on the side with room, where it covers no point and no other name. */
function drawPoint(
  { svg, right, top, bottom }: Plot,
  { policy, x, y }: { readonly policy: string; readonly x: number; readonly y: number },
  taken: { from: number; to: number; y: number }[],
): void {
  svg.append(shape("circle", { cx: x, cy: y, r: policy === state.policy ? 6 : 4.5, fill: colour(policy) }));
  const width = 7 * policy.length;
  const isRight = x + width + 10 > right;
  const [from, to] = isRight ? [x - 10 - width, x - 10] : [x + 10, x + 10 + width];
  const isFree = (at: number): boolean =>
    taken.every((other) => other.to < from || other.from > to || Math.abs(other.y - at) >= 11);
  const tries = [0, -12, 12, -24, 24, -36, 36].map((offset) => y + 4 + offset);
  const at = tries.find((each) => each > top && each < bottom && isFree(each)) ?? y + 4;
  taken.push({ from, to, y: at });
  const place = { x: isRight ? to : from, y: at, "text-anchor": isRight ? "end" : "start" };
  svg.append(shape("text", { class: "name", ...place }, policy));
}
