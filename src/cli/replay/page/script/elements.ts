/** The page's data and state, elements, numbers as text. Everything that is shown goes in as text. */
export const elementsScript: string = `
const data = JSON.parse(document.getElementById("data").textContent);
const facts = data.facts;
const state = { window: facts.windows[0], policy: facts.selected, sort: "given", search: "", trimmed: false };
const kindNames = {
  prefix: "prefix", user: "user", assistant: "assistant text", thinking: "thinking",
  calls: "tool calls", results: "tool results", placeholders: "placeholders",
};
const kinds = ["prefix"].concat(facts.kinds);

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
/** The same for a number on an axis, with as many decimals as tell it from the next one. */
function tickLabel(value, step) {
  const [unit, suffix] = [[1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([least]) => value >= least) || [1, ""];
  return Number((value / unit).toFixed(decimalsOf(step / unit))) + suffix;
}
const percent = (share) => (100 * share).toFixed(1) + " %";
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
