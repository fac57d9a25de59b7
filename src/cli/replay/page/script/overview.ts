/** The head of the page: facts, the table of windows and policies, what the words mean. */
export const overviewScript: string = `
const columns = [
  ["window", (row) => whole(row.window)],
  ["policy", (row) => row.policy],
  ["cost", (row) => short(row.cost)],
  ["\\u00d7 none", (row) => times(row.ratioToNone)],
  ["breaks", (row) => whole(row.breaks)],
  ["over", (row) => whole(row.overWindow)],
  ["invalid", (row) => whole(row.invalid)],
  ["kept", (row) => percent(row.visibleShare)],
  ["ms/turn", (row) => row.msPerTurn.toFixed(3)],
];
const alarming = { over: (row) => row.overWindow > 0, invalid: (row) => row.invalid > 0 };
const terms = [
  ["cost", "billed input, in tokens of uncached input: what is read from the prompt cache counts a fraction, what is written to it a little more"],
  ["\\u00d7 none", "that cost as a multiple of sending the whole history each time"],
  ["breaks", "calls that read less from the cache than the call before had left there"],
  ["epoch", "a call on which the policy rewrote earlier messages; marked above the timeline"],
  ["over", "calls larger than the window without the reserve; red below the timeline"],
  ["invalid", "calls whose request the provider would refuse"],
  ["kept", "mean share of the history that the model can still read"],
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
      element("div", {}, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows.map(({ node }) => node))), legend()),
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
  node.style.width = Math.round((56 * row.ratioToNone) / most) + "px";
  return node;
}

function legend() {
  const list = terms.flatMap(([term, meaning]) => [element("dt", {}, term), element("dd", {}, meaning)]);
  return element("details", {}, element("summary", {}, "What the words mean"), element("dl", { class: "terms" }, ...list));
}
`;
