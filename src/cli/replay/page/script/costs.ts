/** What each policy has cost up to a call, side by side; and over all sessions, cost against what stays readable. */
export const costsScript: string = `
function drawCosts(card) {
  const svg = card.costs;
  const runs = facts.policies.map((policy) => runOf(card.session, policy));
  const lines = runs.map((run) => ({ policy: run.policy, spent: seriesOf(run).spent }));
  const calls = lines[0].spent.length;
  const most = 1.04 * Math.max(1, ...lines.map(({ spent }) => spent[calls - 1] || 0));
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
  card.costScale = callScale(frame, calls);
  card.costCursor = shape("line", { class: "cursor", y1: frame.top, y2: frame.bottom, visibility: "hidden" });
  svg.append(card.costCursor);
  svg.setAttribute("aria-label", "Cost so far: " + lines.map(({ policy, spent }) => policy + " " + short(spent[calls - 1])).join(", "));
}
const linePath = (columns, yOf) => {
  const [first] = columns;
  const points = columns.map(({ end, call }) => fixed(end) + " " + fixed(yOf(call)));
  return "M" + [fixed(first.x) + " " + fixed(yOf(first.call)), ...points].join("L");
};

/** One point a policy: to the right more stays readable, further down it costs less. Only as much of the plane as the points need. */
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

/** Names go to the side where there is room, and out of the way of points and of each other. */
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
