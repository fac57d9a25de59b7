/** A session on the page of `replay`: numbers, timeline, cost, and the tokens of one call. uPlot was tried for the charts: the
 *  page would grow from 38 to 91 KB, while the stack, the limits, the marks and the scatter plot would still be drawn here,
 *  and its canvas cannot follow the colours of the style sheet. */
import {
  colour,
  element,
  formatDollars,
  numberItems,
  percent,
  readPageData,
  shape,
  short,
  swatch,
  whole,
} from "./elements.ts";
import type { CallSeries, ReplayFacts, ReplaySession, RunTotals, SessionRun } from "./page-data.ts";
import {
  type CallScale,
  type Column,
  createCallScale,
  drawCallAxes,
  findLargestCall,
  fixed,
  makeColumns,
  type Plot,
  startPlot,
} from "./plot.ts";

const data = readPageData<{ readonly facts: ReplayFacts; readonly series: readonly CallSeries[] }>();
export const facts: ReplayFacts = data.facts;

/** What is chosen on the page. */
export const state: { window: number; policy: string } = { window: facts.windows[0]!, policy: facts.selected };

const tokenKinds = ["prefix", ...facts.kinds];

/** Finds the run of a policy with the chosen window. */
export function findRun(session: ReplaySession, policy: string = state.policy): SessionRun {
  return session.runs.find((run) => run.window === state.window && run.policy === policy)!;
}

export function compareToNone(session: ReplaySession): number {
  const none = findRun(session, "none").cost;
  return none === 0 ? 1 : findRun(session).cost / none;
}

export function formatRatio(ratio: number): string {
  return ratio.toFixed(3);
}

export function formatRefetches({ references, calls }: RunTotals): string {
  return ((100 * references.refetches) / Math.max(1, calls)).toFixed(1);
}

/** The tokens of each call, and the cost up to it. */
interface SummedSeries extends CallSeries {
  readonly total: Float64Array;
  readonly spent: Float64Array;
}

const summed = new Map<number, SummedSeries>();

/** Returns what a run sent. The sums are made once. */
function readSeries(run: SessionRun): SummedSeries {
  const known = summed.get(run.series);
  if (known !== undefined) return known;
  const series = data.series[run.series]!;
  const total = Float64Array.from(series.cost, (_, call) =>
    series.tokens.reduce((sum, column) => sum + column[call]!, series.prefix),
  );
  let sum = 0;
  const spent = Float64Array.from(series.cost, (cost) => {
    sum += cost;
    return sum;
  });
  const result = { ...series, total, spent };
  summed.set(run.series, result);
  return result;
}

/** A chart with a line under the pointer. `scale` is set when it is drawn. */
interface Chart {
  readonly svg: SVGSVGElement;
  readonly cursor: SVGLineElement;
  scale?: CallScale;
}

export interface Card {
  readonly session: ReplaySession;
  readonly node: HTMLElement;
  readonly numbers: HTMLElement;
  readonly timeline: Chart;
  readonly costs: Chart;
  readonly line: HTMLElement;
  readonly kindList: HTMLElement;
  readonly removed: HTMLElement;
  readonly costList: HTMLElement;
  /** The call under the pointer. */
  call: number | undefined;
}

/** `name` is the file's name below the folder of all sessions. */
export function createCard(session: ReplaySession, name: string): Card {
  const label = `Timeline of ${session.file}`;
  const slider = { class: "plot timeline", tabindex: "0", role: "slider", "aria-label": label };
  const card: Card = {
    session,
    node: element("article", { class: "card" }),
    numbers: element("dl", { class: "numbers" }),
    timeline: { svg: shape("svg", slider), cursor: shape("line", { class: "cursor" }) },
    costs: { svg: shape("svg", { class: "plot costs", role: "img" }), cursor: shape("line", { class: "cursor" }) },
    line: element("p", { class: "call" }),
    kindList: element("ul", { class: "kinds" }),
    removed: element("p", { class: "removed" }),
    costList: element("ul", { class: "kinds single" }),
    call: undefined,
  };
  const createChart = (title: string, ...nodes: readonly Element[]): HTMLElement =>
    element("div", { class: "chart" }, element("h4", {}, title), ...nodes);
  card.node.append(
    element("h3", { title: session.file }, name),
    element("p", { class: "title dim" }, session.title),
    card.numbers,
    element(
      "div",
      { class: "charts" },
      createChart("Tokens sent, call by call", card.timeline.svg, card.line, card.kindList, card.removed),
      createChart("Cost so far", card.costs.svg, card.costList),
    ),
  );
  for (const chart of [card.timeline, card.costs]) {
    const { svg } = chart;
    const show = ({ clientX }: PointerEvent): void => {
      if (chart.scale) showCall(card, chart.scale.findCall(clientX - svg.getBoundingClientRect().left));
    };
    svg.addEventListener("pointermove", show);
    svg.addEventListener("pointerdown", show);
    // On a touch screen, lifting the finger keeps the call.
    svg.addEventListener("pointerleave", ({ pointerType }) => {
      if (pointerType === "mouse" && document.activeElement !== card.timeline.svg) showCall(card, undefined);
    });
  }
  followKeys(card);
  return card;
}

/** Makes the timeline a slider for the keyboard. */
function followKeys(card: Card): void {
  const { svg } = card.timeline;
  const findLast = (): number => findRun(card.session).calls - 1;
  svg.addEventListener("focus", () => showCall(card, card.call ?? findLast()));
  svg.addEventListener("blur", () => showCall(card, undefined));
  svg.addEventListener("keydown", (event) => {
    const last = findLast();
    const now = card.call ?? last;
    const page = Math.max(2, Math.round(last / 20));
    const targets: Readonly<Record<string, number>> = {
      ArrowLeft: now - 1,
      ArrowDown: now - 1,
      ArrowRight: now + 1,
      ArrowUp: now + 1,
      PageDown: now - page,
      PageUp: now + page,
      Home: 0,
      End: last,
    };
    const target = targets[event.key];
    if (target === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    showCall(card, Math.max(0, Math.min(last, target)));
  });
}

export function drawCard(card: Card): void {
  const run = findRun(card.session);
  const numbers = numberItems([
    ["calls", whole(run.calls)],
    ["cost", short(run.cost)],
    ["$", formatDollars(run.usd)],
    ["\u00d7 none", formatRatio(compareToNone(card.session))],
    ["breaks", whole(run.breaks)],
    ["epochs", whole(run.epochs)],
    ["over", whole(run.overWindow), run.overWindow > 0],
    ["invalid", whole(run.invalid), run.invalid > 0],
    ["kept", percent(run.visibleShare)],
    ["quotes", percent(run.references.quotes.share)],
    ["names far", percent(run.references.names.far.share)],
    ["edits", percent(run.references.edits.share)],
    ["re-fetch/100", formatRefetches(run)],
  ]);
  card.numbers.replaceChildren(...numbers);
  drawTimeline(card);
  drawCosts(card);
  showCall(card, card.call);
}

/** Draws the tokens of each call by kind, the window, epochs and problems. */
function drawTimeline({ session, timeline }: Card): void {
  const series = readSeries(findRun(session));
  const calls = series.total.length;
  const max = 1.12 * series.total.reduce((left, right) => Math.max(left, right), state.window);
  const plot = startPlot(timeline.svg, max);
  drawCallAxes(plot, max, calls);
  timeline.scale = createCallScale(plot, calls);
  drawStack(plot, series);
  const none = readSeries(findRun(session, "none"));
  if (none !== series) {
    // What would be sent without trimming, as far as it fits into the chart.
    const columns = makeColumns(plot, none.total.length, (from, to) => findLargestCall(none.total, from, to));
    const clip = shape("svg", { x: 0, y: plot.top, width: plot.width, height: plot.bottom - plot.top });
    const d = makeSteps(columns, ({ call }) => plot.y(none.total[call]!) - plot.top);
    clip.append(shape("path", { class: "whole", d }));
    plot.svg.append(clip);
  }
  const reserve = facts.reserves[state.window]!;
  drawLimit(plot, "window", state.window);
  if (reserve > 0) drawLimit(plot, "reserve", state.window - reserve);
  drawMarks(plot, series, timeline.scale);
  // The label has a background and stands on the right: there the untrimmed history is usually above the chart.
  const rest = reserve > 0 ? `, ${short(state.window - reserve)} without the reserve` : "";
  const [x, y] = [plot.right - 6, plot.y(state.window) - 5];
  const text = shape("text", { class: "limit", x, y, "text-anchor": "end" }, `window ${short(state.window)}${rest}`);
  plot.svg.append(text);
  const width = text.getComputedTextLength() + 6;
  const ground = { x: fixed(x - width + 3), y: y - 11, width: fixed(width), height: 14, rx: 2 };
  text.before(shape("rect", { class: "ground", ...ground }));
  addCursor(plot, timeline);
}

/** Draws from the top of the stack down, each kind over the ones above it, so every path needs only its upper edge. */
function drawStack(plot: Plot, { total, tokens }: SummedSeries): void {
  const columns = makeColumns(plot, total.length, (from, to) => findLargestCall(total, from, to));
  const heights = columns.map(({ call }) => total[call]!);
  for (let kind = tokenKinds.length - 1; kind >= 0; kind--) {
    const edge = makeSteps(columns, (_, index) => plot.y(heights[index]!));
    const d = `${edge}V${fixed(plot.bottom)}H${fixed(plot.left)}Z`;
    plot.svg.append(shape("path", { d, fill: colour(tokenKinds[kind]!) }));
    if (kind === 0) return;
    for (const [index, { call }] of columns.entries()) heights[index]! -= tokens[kind - 1]![call]!;
  }
}

/** Returns the upper edge of the columns, one step a column. */
function makeSteps(columns: readonly Column[], y: (column: Column, index: number) => number): string {
  const steps = columns.map((column, index) => `${fixed(y(column, index))}H${fixed(column.end)}`);
  return steps.length === 0 ? "" : `M${fixed(columns[0]!.x)} ${steps.join("V")}`;
}

function drawLimit(plot: Plot, name: "window" | "reserve", tokens: number): void {
  const y = Math.round(plot.y(tokens)) + 0.5;
  plot.svg.append(shape("line", { class: name, x1: plot.left, x2: plot.right, y1: y, y2: y }));
}

/** Draws epochs as lines with a mark on top. Calls that were too large or invalid are red below the axis. */
function drawMarks({ svg, top, bottom }: Plot, { total, flags }: SummedSeries, scale: CallScale): void {
  const limit = state.window - facts.reserves[state.window]!;
  const isBad = (call: number): boolean => total[call]! > limit || (flags[call]! & 4) > 0;
  let bad = "";
  for (let call = 0; call < flags.length; call++) {
    const x = fixed(scale.start(call));
    if (flags[call]! & 1) {
      svg.append(shape("line", { class: "epoch", x1: x, x2: x, y1: top, y2: bottom }));
      svg.append(shape("path", { class: "mark", d: `M${x} ${top - 3}l-4 -6h8z` }));
    }
    if (!isBad(call) || isBad(call - 1)) continue;
    let end = call + 1;
    while (end < flags.length && isBad(end)) end++;
    bad += `M${x} ${bottom}H${fixed(scale.start(end))}v3H${x}z`;
  }
  if (bad !== "") svg.append(shape("path", { class: "bad", d: bad }));
}

function addCursor({ svg, top, bottom }: Plot, { cursor }: Chart): void {
  const attributes = { y1: top, y2: bottom, visibility: "hidden" };
  for (const [name, value] of Object.entries(attributes)) cursor.setAttribute(name, String(value));
  svg.append(cursor);
}

/** Draws the cost of each policy up to a call, and what the client recorded, if it recorded each call. */
function drawCosts({ session, costs }: Card): void {
  const lines = facts.policies.map((policy) => ({ policy, spent: readSeries(findRun(session, policy)).spent }));
  const calls = lines[0]!.spent.length;
  let sum = 0;
  const recorded =
    session.recorded?.costs.length === calls
      ? session.recorded.costs.map((cost) => {
          sum += cost;
          return sum;
        })
      : undefined;
  const max = 1.04 * Math.max(1, ...lines.map(({ spent }) => spent[calls - 1] ?? 0), recorded?.[calls - 1] ?? 0);
  const plot = startPlot(costs.svg, max);
  drawCallAxes(plot, max, calls);
  const columns = makeColumns(plot, calls, (_, to) => to - 1);
  const drawLine = (name: string, stroke: string, spent: ArrayLike<number>): void => {
    const [first] = columns;
    const points = columns.map(({ end, call }) => `${fixed(end)} ${fixed(plot.y(spent[call]!))}`);
    const start = first === undefined ? [] : [`${fixed(first.x)} ${fixed(plot.y(spent[first.call]!))}`];
    plot.svg.append(shape("path", { class: name, stroke: colour(stroke), d: `M${[...start, ...points].join("L")}` }));
  };
  // The first policies over the later ones, and the chosen one over all.
  const isChosen = (line: { readonly policy: string }): boolean => line.policy === state.policy;
  const drawn = [...lines].reverse().sort((left, right) => Number(isChosen(left)) - Number(isChosen(right)));
  for (const line of drawn) drawLine(isChosen(line) ? "line chosen" : "line", line.policy, line.spent);
  if (recorded !== undefined) drawLine("line recorded", "recorded", recorded);
  costs.scale = createCallScale(plot, calls);
  addCursor(plot, costs);
  const ends = lines.map(({ policy, spent }) => `${policy} ${short(spent[calls - 1] ?? 0)}`);
  plot.svg.setAttribute("aria-label", `Cost so far: ${ends.join(", ")}`);
}

/** Shows the numbers of the call under the pointer, or of the last call. */
function showCall(card: Card, call: number | undefined): void {
  const run = findRun(card.session);
  const series = readSeries(run);
  card.call = call;
  const shown = Math.min(call ?? run.calls - 1, run.calls - 1);
  const parts = describeCall(run, series, shown);
  const place = `${call === undefined ? "Last call, " : "Call "}${whole(shown + 1)} of ${whole(run.calls)}`;
  card.line.replaceChildren(element("b", {}, place), `: ${parts}`);
  const tokens = [series.prefix, ...series.tokens.map((column) => column[shown]!)];
  const titles: Readonly<Record<string, string>> = {
    assistant: "assistant text",
    calls: "tool calls",
    results: "tool results",
  };
  card.kindList.replaceChildren(
    ...tokenKinds.map((kind, index) => createItem(kind, titles[kind] ?? kind, whole(tokens[index]!))),
  );
  card.costList.replaceChildren(...listCosts(card.session, shown));
  card.removed.replaceChildren(...describeRemoved(series, shown));
  for (const { cursor, scale } of [card.timeline, card.costs]) {
    cursor.setAttribute("visibility", call === undefined ? "hidden" : "visible");
    if (call === undefined || scale === undefined) continue;
    cursor.setAttribute("x1", fixed(scale.middle(shown)));
    cursor.setAttribute("x2", fixed(scale.middle(shown)));
  }
  const slider = { min: 1, max: run.calls, now: shown + 1, text: `${place}: ${parts}` };
  for (const [name, value] of Object.entries(slider))
    card.timeline.svg.setAttribute(`aria-value${name}`, String(value));
}

function describeCall(run: SessionRun, series: SummedSeries, call: number): string {
  const cost = series.cost[call]!;
  const flags = series.flags[call]!;
  const parts = [
    `${whole(series.total[call]!)} tokens`,
    `${whole(series.read[call]!)} read from the cache`,
    `cost ${whole(cost)} (${formatDollars(convertCost(run, cost))})`,
    `${percent(series.kept[call]! / 1000)} kept`,
  ];
  if (flags & 1) parts.push("epoch");
  if (flags & 2) parts.push("cache break");
  if (series.total[call]! > state.window - facts.reserves[state.window]!) parts.push("over the window");
  if (flags & 4) parts.push(`invalid: ${series.rules[call]}`);
  return parts.join(", ");
}

/** Converts a part of a run's cost into dollars. */
function convertCost(run: SessionRun, cost: number): number {
  return run.cost === 0 ? 0 : (cost * run.usd) / run.cost;
}

/** Lists what each policy cost up to a call, and what the client recorded in all. */
function listCosts(session: ReplaySession, call: number): HTMLElement[] {
  const none = findRun(session, "none");
  const noneSpent = readSeries(none).spent[call]! || 1;
  const items = facts.policies.map((policy) => {
    const run = findRun(session, policy);
    const spent = readSeries(run).spent[call]!;
    const value = `${short(spent)} \u00b7 ${formatDollars(convertCost(run, spent))}`;
    return createItem(policy, policy, value, `\u00d7 ${formatRatio(spent / noneSpent)}`);
  });
  const { recorded } = session;
  if (recorded === undefined) return items;
  const value = `${short(recorded.cost)} \u00b7 ${formatDollars(recorded.usd)}`;
  return [
    ...items,
    createItem("recorded", "recorded", value, `\u00d7 ${formatRatio(recorded.cost / (none.cost || 1))}`),
  ];
}

function createItem(name: string, label: string, ...values: readonly string[]): HTMLElement {
  return element("li", {}, swatch(name), label, ...values.map((value) => element("span", { class: "value" }, value)));
}

/** Says what the last epoch up to a call removed. */
function describeRemoved({ flags, removed }: SummedSeries, shown: number): (Node | string)[] {
  let call = shown;
  while (call >= 0 && !(flags[call]! & 1)) call--;
  if (call < 0) return ["Nothing is trimmed up to this call."];
  const place = element("b", {}, call === shown ? "This epoch" : `The epoch at call ${whole(call + 1)}`);
  if (removed === undefined) return [place, " is one of too many to list."];
  const removal = removed[call];
  if (removal === undefined) return [place, " removed nothing."];
  const byKind = removal.kinds.map(({ name, count, tokens }) => `${whole(count)} \u00d7 ${name} (${whole(tokens)})`);
  const largest = removal.largest.map(({ name, tokens }) => `${name} (${whole(tokens)})`);
  const summary = ` removed or shortened ${whole(removal.tokens)} tokens: ${byKind.join(", ")}.`;
  return [place, `${summary} Largest: ${largest.join("; ")}.`];
}
