/** The charts of the replay page, as SVG. uPlot was tried: the page would grow from 38 to 91 KB, while the stack, the limits, the
 *  marks and the scatter plot would still be drawn here, and its canvas cannot follow the colours of the style sheet. */

/** The script of one session: numbers, timeline, cost, and the tokens of one call. */
const cardScript: string = `
function createCard(session) {
  const card = { session, call: undefined };
  card.numbers = element("dl", { class: "numbers" });
  card.timeline = shape("svg", { class: "plot timeline", tabindex: "0", role: "slider", "aria-label": "Timeline of " + session.file });
  card.costs = shape("svg", { class: "plot costs", role: "img" });
  card.line = element("p", { class: "call" });
  card.kinds = element("ul", { class: "kinds" });
  card.removed = element("p", { class: "removed" });
  card.costList = element("ul", { class: "kinds single" });
  const chart = (name, ...nodes) => element("div", { class: "chart" }, element("h4", {}, name), ...nodes);
  card.node = element("article", { class: "card" },
    element("h3", { title: session.file }, session.file.slice(folder.length)),
    element("p", { class: "title dim" }, session.title),
    card.numbers,
    element("div", { class: "charts" },
      chart("Tokens sent, call by call", card.timeline, card.line, card.kinds, card.removed),
      chart("Cost so far", card.costs, card.costList)));
  listen(card);
  return card;
}

function drawCard(card) {
  const run = runOf(card.session);
  const numbers = [
    ["calls", whole(run.calls)], ["cost", short(run.cost)], ["$", dollars(run.usd)], ["\\u00d7 none", times(ratioOf(card.session))],
    ["breaks", whole(run.breaks)], ["epochs", whole(run.epochs)], ["over", whole(run.overWindow), run.overWindow > 0],
    ["invalid", whole(run.invalid), run.invalid > 0], ["kept", percent(run.visibleShare)],
    ["quotes", percent(run.references.quotes.share)], ["names far", percent(run.references.names.far.share)],
    ["edits", percent(run.references.edits.share)], ["re-fetch/100", refetches(run)],
  ];
  card.numbers.replaceChildren(...numbers.map(([name, value, isAlarm]) =>
    element("div", {}, element("dt", {}, name), element("dd", { class: isAlarm ? "alarm" : undefined }, value))));
  drawTimeline(card);
  drawCosts(card);
  showCall(card, card.call);
}

/** Shows the numbers of the call under the pointer, or of the last call. */
function showCall(card, call) {
  const run = runOf(card.session);
  const series = seriesOf(run);
  card.call = call;
  const shown = call === undefined ? run.calls - 1 : Math.min(call, run.calls - 1);
  const parts = [
    whole(series.total[shown]) + " tokens", whole(series.read[shown]) + " read from the cache",
    "cost " + whole(series.cost[shown]) + " (" + dollars(dollarsOf(run, series.cost[shown])) + ")", percent(series.kept[shown] / 1000) + " kept",
  ];
  if (series.flags[shown] & 1) parts.push("epoch");
  if (series.flags[shown] & 2) parts.push("cache break");
  if (series.total[shown] > state.window - facts.reserves[state.window]) parts.push("over the window");
  if (series.flags[shown] & 4) parts.push("invalid: " + series.rules[shown]);
  const place = (call === undefined ? "Last call, " : "Call ") + whole(shown + 1) + " of " + whole(run.calls);
  card.line.replaceChildren(element("b", {}, place), ": " + parts.join(", "));
  const tokens = [series.prefix, ...series.tokens.map((column) => column[shown])];
  card.kinds.replaceChildren(...kinds.map((kind, index) => listItem(kind, kindNames[kind], whole(tokens[index]))));
  const spent = (policy) => seriesOf(runOf(card.session, policy)).spent[shown];
  const items = facts.policies.map((policy) =>
    listItem(policy, policy, short(spent(policy)) + " \\u00b7 " + dollars(dollarsOf(runOf(card.session, policy), spent(policy))),
      "\\u00d7 " + times(spent(policy) / (spent("none") || 1))));
  const { recorded } = card.session;
  if (recorded) items.push(listItem("recorded", "recorded",
    short(recorded.cost) + " \\u00b7 " + dollars(recorded.usd), "\\u00d7 " + times(recorded.cost / (runOf(card.session, "none").cost || 1))));
  card.costList.replaceChildren(...items);
  showRemoved(card, series, shown);
  placeCursors(card, call === undefined ? undefined : shown);
  setSlider(card.timeline, { now: shown + 1, most: run.calls, text: place + ": " + parts.join(", ") });
}

const dollarsOf = (run, cost) => (run.cost === 0 ? 0 : (cost * run.usd) / run.cost);

/** Says what the last epoch up to a call removed. */
function showRemoved(card, series, shown) {
  let call = shown;
  while (call >= 0 && !(series.flags[call] & 1)) call--;
  if (call < 0) return card.removed.replaceChildren("Nothing is trimmed up to this call.");
  const found = series.removed && series.removed[call];
  const place = element("b", {}, call === shown ? "This epoch" : "The epoch at call " + whole(call + 1));
  if (!found) return card.removed.replaceChildren(place, series.removed ? " removed nothing." : " is one of too many to list.");
  const kinds = found.kinds.map(({ name, count, tokens }) => whole(count) + " \\u00d7 " + name + " (" + whole(tokens) + ")");
  const largest = found.largest.map(({ name, tokens }) => name + " (" + whole(tokens) + ")");
  card.removed.replaceChildren(place, " removed or shortened " + whole(found.tokens) + " tokens: " + kinds.join(", ") +
    ". Largest: " + largest.join("; ") + ".");
}

function listItem(name, label, ...values) {
  return element("li", {}, swatch(name), label, ...values.map((value) => element("span", { class: "value" }, value)));
}

function placeCursors(card, call) {
  for (const [line, scale] of [[card.cursor, card.scale], [card.costCursor, card.costScale]]) {
    if (!line) continue;
    line.setAttribute("visibility", call === undefined ? "hidden" : "visible");
    if (call === undefined) continue;
    line.setAttribute("x1", fixed(scale.middle(call)));
    line.setAttribute("x2", fixed(scale.middle(call)));
  }
}

function setSlider(node, { now, most, text }) {
  const values = { "aria-valuemin": 1, "aria-valuemax": most, "aria-valuenow": now, "aria-valuetext": text };
  for (const [name, value] of Object.entries(values)) node.setAttribute(name, value);
}

/** Shows a call when the pointer or the keys of a slider reach it. */
function listen(card) {
  const last = () => runOf(card.session).calls - 1;
  const point = (node, scale) => {
    const show = (event) => {
      if (scale()) showCall(card, scale().callAt(event.clientX - node.getBoundingClientRect().left));
    };
    node.addEventListener("pointermove", show);
    node.addEventListener("pointerdown", show);
    // On a touch screen, lifting the finger keeps the call.
    node.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse" && document.activeElement !== card.timeline) showCall(card, undefined);
    });
  };
  point(card.timeline, () => card.scale);
  point(card.costs, () => card.costScale);
  card.timeline.addEventListener("focus", () => showCall(card, card.call === undefined ? last() : card.call));
  card.timeline.addEventListener("blur", () => showCall(card, undefined));
  card.timeline.addEventListener("keydown", (event) => {
    const now = card.call === undefined ? last() : card.call;
    const page = Math.max(2, Math.round(last() / 20));
    const keys = {
      ArrowLeft: now - 1, ArrowDown: now - 1, ArrowRight: now + 1, ArrowUp: now + 1,
      PageDown: now - page, PageUp: now + page, Home: 0, End: last(),
    };
    if (!(event.key in keys) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    showCall(card, Math.max(0, Math.min(last(), keys[event.key])));
  });
}
`;

/** The script of the cost charts: the cost of each policy up to a call. */
const costsScript: string = `
function drawCosts(card) {
  const svg = card.costs;
  const runs = facts.policies.map((policy) => runOf(card.session, policy));
  const lines = runs.map((run) => ({ policy: run.policy, spent: seriesOf(run).spent }));
  const calls = lines[0].spent.length;
  const recorded = recordedCosts(card.session, calls);
  const most = 1.04 * Math.max(1, ...lines.map(({ spent }) => spent[calls - 1] || 0), recorded ? recorded[calls - 1] : 0);
  const frame = frameOf(svg, most);
  svg.replaceChildren();
  svg.setAttribute("viewBox", "0 0 " + frame.width + " " + frame.height);
  drawAxes(svg, frame, most, calls);
  const columns = columnsOf(frame, calls, lastIn);
  const chosenLast = [...lines].sort((left) => (left.policy === state.policy ? 1 : -1));
  for (const { policy, spent } of chosenLast) {
    const name = "line" + (policy === state.policy ? " chosen" : "");
    svg.append(shape("path", { class: name, stroke: colour(policy), d: linePath(columns, (call) => frame.y(spent[call])) }));
  }
  drawRecorded(svg, frame, columns, card.session);
  card.costScale = callScale(frame, calls);
  card.costCursor = shape("line", { class: "cursor", y1: frame.top, y2: frame.bottom, visibility: "hidden" });
  svg.append(card.costCursor);
  svg.setAttribute("aria-label", "Cost so far: " + lines.map(({ policy, spent }) => policy + " " + short(spent[calls - 1])).join(", "));
}
/** What the client recorded so far, call by call, if it recorded each call. */
function recordedCosts({ recorded }, calls) {
  if (!recorded || recorded.costs.length !== calls) return undefined;
  let sum = 0;
  return recorded.costs.map((cost) => (sum += cost));
}
function drawRecorded(svg, frame, columns, session) {
  const spent = recordedCosts(session, runOf(session).calls);
  if (!spent) return;
  svg.append(shape("path", { class: "line recorded", stroke: colour("recorded"), d: linePath(columns, (call) => frame.y(spent[call])) }));
}
const linePath = (columns, yOf) => {
  const [first] = columns;
  const points = columns.map(({ end, call }) => fixed(end) + " " + fixed(yOf(call)));
  return "M" + [fixed(first.x) + " " + fixed(yOf(first.call)), ...points].join("L");
};
`;

/** The script of the timeline: tokens of each call by kind, the window, epochs and problems. */
const timelineScript: string = `
function drawTimeline(card) {
  const svg = card.timeline;
  const series = seriesOf(runOf(card.session));
  const calls = series.total.length;
  const most = 1.12 * series.total.reduce((left, right) => Math.max(left, right), state.window);
  const frame = frameOf(svg, most);
  svg.replaceChildren();
  svg.setAttribute("viewBox", "0 0 " + frame.width + " " + frame.height);
  drawAxes(svg, frame, most, calls);
  card.scale = callScale(frame, calls);
  card.frame = frame;
  const columns = columnsOf(frame, calls, largestIn(series.total));
  drawStack(svg, frame, columns, series);
  drawWhole(svg, frame, card.session);
  drawLimits(svg, frame);
  drawMarks(svg, frame, series, card.scale);
  drawLimitLabel(svg, frame);
  card.cursor = shape("line", { class: "cursor", y1: frame.top, y2: frame.bottom, visibility: "hidden" });
  svg.append(card.cursor);
}

/** Draws from the top of the stack down, each kind over the ones above it, so every path needs only its upper edge. */
function drawStack(svg, frame, columns, series) {
  const heights = columns.map(({ call }) => series.total[call]);
  for (let kind = kinds.length - 1; kind >= 0; kind--) {
    let column = 0;
    const edge = stepPath(columns, () => frame.y(heights[column++]));
    const path = edge + "V" + fixed(frame.bottom) + "H" + fixed(frame.left) + "Z";
    svg.append(shape("path", { d: path, fill: colour(kinds[kind]) }));
    if (kind > 0) columns.forEach(({ call }, index) => (heights[index] -= series.tokens[kind - 1][call]));
  }
}

/** Draws what would be sent without trimming, as far as it fits into the chart. */
function drawWhole(svg, frame, session) {
  const none = seriesOf(runOf(session, "none"));
  if (none === seriesOf(runOf(session))) return;
  const columns = columnsOf(frame, none.total.length, largestIn(none.total));
  const inner = shape("svg", { x: 0, y: frame.top, width: frame.width, height: frame.bottom - frame.top });
  inner.append(shape("path", { class: "whole", d: stepPath(columns, (call) => frame.y(none.total[call]) - frame.top) }));
  svg.append(inner);
}

function drawLimits(svg, frame) {
  const limit = state.window - facts.reserves[state.window];
  const lines = facts.reserves[state.window] > 0 ? [["window", state.window], ["reserve", limit]] : [["window", state.window]];
  for (const [name, value] of lines) {
    const y = Math.round(frame.y(value)) + 0.5;
    svg.append(shape("line", { class: name, x1: frame.left, x2: frame.right, y1: y, y2: y }));
  }
}

/** Draws the label on a background of its own, on the right: there the untrimmed history is usually above the chart. */
function drawLimitLabel(svg, frame) {
  const rest = facts.reserves[state.window] > 0 ? ", " + short(state.window - facts.reserves[state.window]) + " without the reserve" : "";
  const [x, y] = [frame.right - 6, frame.y(state.window) - 5];
  const text = shape("text", { class: "limit", x, y, "text-anchor": "end" }, "window " + short(state.window) + rest);
  svg.append(text);
  const width = text.getComputedTextLength() + 6;
  text.before(shape("rect", { class: "ground", x: fixed(x - width + 3), y: y - 11, width: fixed(width), height: 14, rx: 2 }));
}

/** Draws epochs as lines with a mark on top. Calls that were too large or invalid are red below the axis. */
function drawMarks(svg, frame, series, scale) {
  const limit = state.window - facts.reserves[state.window];
  const isBad = (call) => series.total[call] > limit || (series.flags[call] & 4) > 0;
  let bad = "";
  for (let call = 0; call < series.flags.length; call++) {
    if (series.flags[call] & 1) drawEpoch(svg, frame, fixed(scale.start(call)));
    if (!isBad(call) || isBad(call - 1)) continue;
    let end = call + 1;
    while (end < series.flags.length && isBad(end)) end++;
    const [from, to] = [fixed(scale.start(call)), fixed(scale.start(end))];
    bad += "M" + from + " " + frame.bottom + "H" + to + "v3H" + from + "z";
  }
  if (bad) svg.append(shape("path", { class: "bad", d: bad }));
}

function drawEpoch(svg, frame, x) {
  svg.append(shape("line", { class: "epoch", x1: x, x2: x, y1: frame.top, y2: frame.bottom }));
  svg.append(shape("path", { class: "mark", d: "M" + x + " " + (frame.top - 3) + "l-4 -6h8z" }));
}
`;

/** The charts of the page. */
export const chartScripts: readonly string[] = [timelineScript, costsScript, cardScript];
