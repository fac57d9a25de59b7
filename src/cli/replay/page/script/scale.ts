/** Axes, and the columns that a chart has room for: one a pixel at most, however many calls there are. */
export const scaleScript: string = `
/** Round numbers within a range, and the step between them, which tells how many decimals a label needs. */
function ticksBetween(from, to, wanted) {
  const rough = (to - from) / wanted;
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough);
  // Sums of fractions miss the end by a hair.
  const [first, last] = [Math.ceil(from / step - 1e-6), Math.floor(to / step + 1e-6)];
  return { step, values: Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step) };
}
const decimalsOf = (step) => Math.max(0, -Math.floor(Math.log10(step) + 1e-6));

/** A plot area inside a chart with room for its axes. */
function frameOf(svg, most) {
  const width = Math.max(120, svg.clientWidth);
  const height = Math.max(80, svg.clientHeight);
  const [left, right, top, bottom] = [42, width - 6, 16, height - 20];
  const y = (value) => bottom - (value / most) * (bottom - top);
  return { width, height, left, right, top, bottom, y };
}

function drawAxes(svg, frame, most, calls) {
  const { step, values } = ticksBetween(0, most, 4);
  for (const value of values) {
    const y = Math.round(frame.y(value)) + 0.5;
    svg.append(shape("line", { class: "grid", x1: frame.left, x2: frame.right, y1: y, y2: y }));
    svg.append(shape("text", { x: frame.left - 6, y: y + 4, "text-anchor": "end" }, tickLabel(value, step)));
  }
  const labels = [[frame.left, "start", "call 1"], [frame.right, "end", whole(calls)]];
  for (const [x, anchor, label] of labels)
    svg.append(shape("text", { x, y: frame.bottom + 14, "text-anchor": anchor }, label));
}

/** Calls side by side, each as wide as the others. */
function callScale(frame, calls) {
  const step = (frame.right - frame.left) / Math.max(1, calls);
  return {
    start: (call) => frame.left + call * step,
    middle: (call) => frame.left + (call + 0.5) * step,
    callAt: (x) => Math.max(0, Math.min(calls - 1, Math.floor((x - frame.left) / step))),
  };
}

/** At most one column a pixel; where several calls share one, choose says which of them it shows. */
function columnsOf(frame, calls, choose) {
  const count = Math.min(calls, Math.max(1, Math.floor(frame.right - frame.left)));
  const columns = [];
  for (let column = 0; column < count; column++) {
    const from = Math.floor((column * calls) / count);
    const to = Math.max(from + 1, Math.floor(((column + 1) * calls) / count));
    const width = (frame.right - frame.left) / count;
    columns.push({ x: frame.left + column * width, end: frame.left + (column + 1) * width, call: choose(from, to) });
  }
  return columns;
}
const largestIn = (values) => (from, to) => {
  let best = from;
  for (let call = from + 1; call < to; call++) if (values[call] > values[best]) best = call;
  return best;
};
const lastIn = (from, to) => to - 1;
const fixed = (value) => value.toFixed(1);

/** The upper edge of the columns, one step a column. */
function stepPath(columns, yOf) {
  let path = "";
  for (const { x, end, call } of columns) path += (path ? "V" : "M" + fixed(x) + " ") + fixed(yOf(call)) + "H" + fixed(end);
  return path;
}
`;
