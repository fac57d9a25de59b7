/** The parts of scripts that all pages share: elements, numbers as text, scales. Everything that is shown goes in as
 *  text. */

/** Elements and numbers. */
export const partsScript: string = `
const data = JSON.parse(document.getElementById("data").textContent);
const facts = data.facts;
function append(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}
const element = (name, attributes, ...children) => append(document.createElement(name), attributes, children);
const shape = (name, attributes, ...children) =>
  append(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
const colour = (name) => "var(--" + name + ")";
function swatch(name) {
  const node = element("span", { class: "swatch", "aria-hidden": "true" });
  node.style.background = colour(name);
  return node;
}

const thousands = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const whole = (value) => thousands.format(Math.round(value));
function short(value) {
  if (value >= 1e9) return (value / 1e9).toFixed(2) + "G";
  if (value >= 1e6) return (value / 1e6).toFixed(value < 1e7 ? 2 : 1) + "M";
  if (value >= 1e4) return Math.round(value / 1e3) + "k";
  return value >= 1e3 ? (value / 1e3).toFixed(1).replace(".0", "") + "k" : String(Math.round(value));
}
/** The same for a number on an axis, with enough decimals to differ from the next one. */
function tickLabel(value, step) {
  const [unit, suffix] = [[1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([least]) => value >= least) || [1, ""];
  return Number((value / unit).toFixed(decimalsOf(step / unit))) + suffix;
}
const percent = (share) => (share === null ? "\\u2013" : (100 * share).toFixed(1) + " %");
/** Two significant digits below a cent, so that a short session does not cost nothing. */
const dollars = (usd) => "$" + (usd === 0 || usd >= 0.095 ? usd.toFixed(2) : Number(usd.toPrecision(2)));
function loadLine() {
  const parts = [shape("circle", { cx: 12, cy: 12, r: 7 }), shape("path", { d: "M1 12H23" })];
  return shape("svg", { class: "sign", viewBox: "0 0 24 24", "aria-hidden": "true" }, ...parts);
}
`;

/** The script of scales: axes, and at most one column per pixel, however many calls there are. */
export const scaleScript: string = `
/** Round numbers within a range, and the step between them, which sets the decimals of a label. */
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
