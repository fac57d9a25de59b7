/** The script of the page of `bill`: spend over time, causes of cache losses, heavy results, and a timeline of each
 *  session. test/e2e/bill-page.test.ts tests it in a browser. */
import {
  colour,
  element,
  formatDollars,
  numberItems,
  pageTitle,
  percent,
  readPageData,
  shape,
  short,
  swatch,
  whole,
} from "./elements.ts";
import type { BillFacts, BillSession, PageTable } from "./page-data.ts";
import {
  type CallScale,
  countDecimals,
  createCallScale,
  drawCallAxes,
  drawGrid,
  findLargestCall,
  fixed,
  labelEnds,
  makeColumns,
  startPlot,
} from "./plot.ts";
import { createSessionList } from "./session-list.ts";

/** The kinds of tokens, with their titles. Timelines show all but the output. */
const inputKinds = [
  ["read", "read from the cache"],
  ["written", "written to the cache"],
  ["fresh", "full price"],
] as const;
const tokenKinds = [...inputKinds, ["output", "output"]] as const;

const { facts } = readPageData<{ readonly facts: BillFacts }>();
const spendPlot = shape("svg", { class: "plot spend", role: "img", "aria-label": "Dollars by day" });
const list = createSessionList<BillSession, Card>({
  cards: facts.sessions.map(createCard),
  drawCard,
  drawOverview: drawSpend,
  orders: [
    ["usd", "most dollars", (session) => -session.usd],
    ["lost", "most lost", (session) => -session.lossUsd],
    ["calls", "most calls", (session) => -session.calls],
    ["time", "latest", (session) => -(session.times.at(-1) ?? 0)],
  ],
  text: ({ project, session }) => `${project} ${session}`,
  searchHint: "project or session",
  filter: { title: "only with losses", allows: ({ losses }) => losses.length > 0 },
});
document
  .getElementById("page")
  ?.append(
    element("header", {}, pageTitle("Plimsoll bill"), element("p", { class: "facts dim" }, facts.description)),
    element(
      "main",
      {},
      ...[createSpendPanel(), createCausePanel()],
      ...[facts.prefix, facts.whatIf].flatMap((table) => (table === undefined ? [] : createTablePanel(table))),
      ...[createWeightPanel(), ...list.nodes],
    ),
  );
list.update();

function createSpendPanel(): HTMLElement {
  const { total, causes, notes } = facts;
  const numbers = numberItems([
    ["spent", formatDollars(total.usd)],
    ["calls", whole(total.calls)],
    ["read", short(total.read)],
    ["written", short(total.write5m + total.write1h)],
    ["full price", short(total.uncached)],
    ["output", short(total.output)],
    ["lost with the cache", formatDollars(causes.reduce((sum, row) => sum + row.usd, 0))],
  ]);
  return element(
    "section",
    { class: "panel" },
    element("h2", {}, "Spend over time"),
    element("dl", { class: "numbers" }, ...numbers),
    spendPlot,
    createKey(tokenKinds),
    ...notes.map((note) => element("p", { class: "notes dim" }, note)),
  );
}

function createKey(names: readonly (readonly [name: string, title: string])[]): HTMLElement {
  const items = names.map(([name, title]) => element("span", {}, swatch(name), title));
  return element("div", { class: "key dim" }, ...items);
}

function drawSpend(): void {
  const { days } = facts;
  const [first] = days;
  if (first === undefined) return;
  const sums = days.map((day) => day.sums.reduce((sum, each) => sum + each, 0));
  const max = Math.max(...sums) || 1;
  const plot = startPlot(spendPlot, max);
  drawGrid(plot, { to: max, label: (value, step) => `$${Number(value.toFixed(countDecimals(step)))}` });
  const wide = (plot.right - plot.left) / days.length;
  for (const [index, day] of days.entries()) {
    const bar = shape("g", {}, shape("title", {}, `${day.day}: ${formatDollars(sums[index]!)}`));
    let base = 0;
    for (const [at, value] of day.sums.entries()) {
      const rect = shape("rect", {
        x: fixed(plot.left + index * wide + Math.min(2, wide * 0.1)),
        width: fixed(Math.max(1, Math.min(64, wide * 0.85))),
        y: fixed(plot.y(base + value)),
        height: fixed(Math.max(0, plot.y(base) - plot.y(base + value))),
      });
      rect.style.fill = colour(tokenKinds[at]![0]);
      bar.append(rect);
      base += value;
    }
    spendPlot.append(bar);
  }
  labelEnds(plot, first.day, days.length === 1 ? undefined : days.at(-1)?.day);
}

function createTablePanel({ title, header, rows, notes }: PageTable): HTMLElement {
  const [name = "", ...numbers] = header;
  return element(
    "section",
    { class: "panel" },
    element("h2", {}, title),
    createTable({ names: [name], numbers }, rows),
    ...notes.map((note) => element("p", { class: "dim" }, note)),
  );
}

function createCausePanel(): HTMLElement {
  const panel = element("section", { class: "panel" }, element("h2", {}, "Why the cache was lost"));
  if (facts.causes.length === 0) {
    const note = "No call read less from the cache than the previous call left there.";
    panel.append(element("p", { class: "dim" }, note));
    return panel;
  }
  const causes = facts.causes.map((row) => [
    row.cause,
    row.knownFrom,
    whole(row.events),
    short(row.rewritten),
    formatDollars(row.usd),
    percent(row.share),
  ]);
  const losses = facts.losses.map((loss) => [
    loss.time,
    loss.cause,
    loss.confidence,
    loss.detail,
    loss.project,
    loss.session.slice(0, 8),
    short(loss.rewritten),
    formatPrice(loss.usd),
  ]);
  panel.append(
    createTable({ names: ["cause", "known from"], numbers: ["calls", "written again", "dollars", "of input"] }, causes),
    element("h2", {}, "The most expensive losses"),
    createTable(
      {
        names: ["time", "cause", "known from", "what happened", "project", "session"],
        numbers: ["written again", "dollars"],
      },
      losses,
    ),
  );
  return panel;
}

function formatPrice(usd: number | null): string {
  return usd === null ? "\u2013" : formatDollars(usd);
}

/** A table whose first columns are names. */
function createTable(
  { names, numbers }: { readonly names: readonly string[]; readonly numbers: readonly string[] },
  rows: readonly (readonly string[])[],
): HTMLElement {
  const createRow = (tag: "th" | "td", texts: readonly string[]): HTMLElement => {
    const cells = texts.map((text, at) => element(tag, { class: at < names.length ? "name" : undefined }, text));
    return element("tr", {}, ...cells);
  };
  const head = element("thead", {}, createRow("th", [...names, ...numbers]));
  const body = element("tbody", {}, ...rows.map((row) => createRow("td", row)));
  return element("div", { class: "scroll" }, element("table", {}, head, body));
}

function createWeightPanel(): HTMLElement | string {
  const { tools, files, servers } = facts.weights;
  const groups = (
    [
      ["tool", tools],
      ["file", files],
      ["MCP server", servers],
    ] as const
  ).filter(([, rows]) => rows.length > 0);
  if (groups.length === 0) return "";
  const numbers = ["results", "tokens first sent", "times carried", "dollars"];
  const tables = groups.map(([title, rows]) => {
    const cells = rows.map(({ name, results, tokens, carried, usd }) => [
      name,
      whole(results),
      short(tokens),
      results === 0 ? "\u2013" : (carried / results).toFixed(1),
      formatDollars(usd),
    ]);
    return element("div", {}, createTable({ names: [title], numbers }, cells));
  });
  const title = element("h2", {}, "What weighs most in the context");
  return element("section", { class: "panel" }, title, element("div", { class: "pair" }, ...tables));
}

interface Card {
  readonly session: BillSession;
  readonly node: HTMLElement;
  readonly plot: SVGSVGElement;
  readonly note: HTMLElement;
  /** Set when the card is drawn. */
  scale?: CallScale;
  cursor?: SVGLineElement;
}

function createCard(session: BillSession): Card {
  const plot = shape("svg", { class: "plot timeline", role: "img", "aria-label": "Tokens of each call" });
  const note = element("p", { class: "call dim" });
  const agent = session.agent + (session.subAgent ? `, ${session.subAgent}` : "");
  const origin = [agent, session.models.join(", "), formatTime(session.start ?? "")].filter(Boolean);
  const numbers = numberItems([
    ["dollars", formatDollars(session.usd)],
    ["calls", whole(session.calls)],
    ["losses", whole(session.losses.length)],
    ["lost", formatDollars(session.lossUsd)],
  ]);
  const node = element(
    "article",
    { class: "card" },
    element("h3", {}, session.project || "(unknown)", " ", element("small", {}, session.session)),
    element("p", { class: "title dim" }, origin.join(" \u00b7 ")),
    element("dl", { class: "numbers" }, ...numbers),
    plot,
    createKey([...inputKinds, ["alarm", "cache lost"]]),
    note,
  );
  const card: Card = { session, node, plot, note };
  plot.addEventListener("pointermove", (event) => showCall(card, event.offsetX));
  plot.addEventListener("pointerdown", (event) => showCall(card, event.offsetX));
  return card;
}

function formatTime(iso: string): string {
  return iso.slice(0, 16).replace("T", " ");
}

/** Shows the numbers of the call under the pointer. */
function showCall({ session, note, scale, cursor }: Card, x: number): void {
  if (scale === undefined || cursor === undefined) return;
  const call = scale.findCall(x);
  const time = formatTime(new Date(session.times[call]!).toISOString());
  const tokens = inputKinds.map(([kind]) => `${kind} ${whole(session[kind][call]!)}`);
  const tool = session.tools[call];
  const parts = [...tokens, formatDollars(session.cost[call]!), ...(tool ? [`after ${tool}`] : [])];
  note.replaceChildren(`call ${whole(call + 1)}, ${time} UTC: ${parts.join(", ")}`);
  const loss = session.losses.find((each) => each.call === call);
  if (loss !== undefined) {
    const cost = ` (${loss.detail}), ${whole(loss.rewritten)} tokens written again, ${formatPrice(loss.usd)}`;
    note.append(element("span", { class: "lossnote" }, " \u2014 ", element("b", {}, loss.cause), cost));
  }
  cursor.setAttribute("x1", fixed(scale.middle(call)));
  cursor.setAttribute("x2", fixed(scale.middle(call)));
}

function drawCard(card: Card): void {
  const { calls, losses } = card.session;
  const layers = inputKinds.map(([kind]) => ({ kind, tokens: card.session[kind] }));
  const total = Array.from({ length: calls }, (_, call) => layers.reduce((sum, { tokens }) => sum + tokens[call]!, 0));
  const max = total.reduce((best, each) => Math.max(best, each), 1);
  const plot = startPlot(card.plot, max);
  const { svg, top, bottom } = plot;
  drawCallAxes(plot, max, calls);
  const lossAt = new Set(losses.map(({ call }) => call));
  // If several calls share a pixel, show the one that lost the cache.
  const columns = makeColumns(plot, calls, (from, to) => {
    for (let call = from; call < to; call++) if (lossAt.has(call)) return call;
    return findLargestCall(total, from, to);
  });
  const below = columns.map(() => 0);
  for (const { kind, tokens } of layers) {
    let path = "";
    for (const [index, { x, end, call }] of columns.entries()) {
      const [base, height] = [below[index]!, tokens[call]!];
      if (height === 0) continue;
      below[index] = base + height;
      const [low, high] = [fixed(plot.y(base)), fixed(plot.y(base + height))];
      path += `M${fixed(x)} ${low}V${high}H${fixed(end)}V${low}Z`;
    }
    const area = shape("path", { d: path });
    area.style.fill = colour(kind);
    svg.append(area);
  }
  const scale = createCallScale(plot, calls);
  for (const { call } of losses) {
    const x = scale.middle(call);
    // More lines would hide the chart.
    if (losses.length <= 60) {
      svg.append(shape("line", { class: "lossline", x1: fixed(x), x2: fixed(x), y1: top, y2: bottom }));
    }
    svg.append(
      shape("path", { class: "loss", d: `M${fixed(x - 4)} ${top - 8}H${fixed(x + 4)}L${fixed(x)} ${top - 1}Z` }),
    );
  }
  card.scale = scale;
  card.cursor = shape("line", { class: "cursor", x1: -9, x2: -9, y1: top, y2: bottom });
  svg.append(card.cursor);
}
