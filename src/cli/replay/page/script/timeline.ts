/** The tokens that each call sends, stacked by kind, with the window, the epochs and what was wrong. */
export const timelineScript: string = `
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

/** From the top of the stack down, each kind over the ones above it: every path needs its upper edge only. */
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

/** What would be sent without trimming, as far as it fits into the picture. */
function drawWhole(svg, frame, session) {
  const none = seriesOf(runOf(session, "none"));
  if (none === seriesOf(runOf(session))) return;
  const columns = columnsOf(frame, none.total.length, largestIn(none.total));
  const inner = shape("svg", { x: 0, y: frame.top, width: frame.width, height: frame.bottom - frame.top });
  inner.append(shape("path", { class: "whole", d: stepPath(columns, (call) => frame.y(none.total[call]) - frame.top) }));
  svg.append(inner);
}

function drawLimits(svg, frame) {
  const limit = state.window - facts.reserve;
  const lines = facts.reserve > 0 ? [["window", state.window], ["reserve", limit]] : [["window", state.window]];
  for (const [name, value] of lines) {
    const y = Math.round(frame.y(value)) + 0.5;
    svg.append(shape("line", { class: name, x1: frame.left, x2: frame.right, y1: y, y2: y }));
  }
}

/** On a ground of its own, over all lines, and on the right: the history without trimming has mostly left the picture by then. */
function drawLimitLabel(svg, frame) {
  const rest = facts.reserve > 0 ? ", " + short(state.window - facts.reserve) + " without the reserve" : "";
  const [x, y] = [frame.right - 6, frame.y(state.window) - 5];
  const text = shape("text", { class: "limit", x, y, "text-anchor": "end" }, "window " + short(state.window) + rest);
  svg.append(text);
  const width = text.getComputedTextLength() + 6;
  text.before(shape("rect", { class: "ground", x: fixed(x - width + 3), y: y - 11, width: fixed(width), height: 14, rx: 2 }));
}

/** Epochs as lines with a mark on top; below the axis, in red, calls that were too large or invalid. */
function drawMarks(svg, frame, series, scale) {
  const limit = state.window - facts.reserve;
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
