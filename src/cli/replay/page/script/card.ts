/** One session: its numbers, its timeline, its cost, and what one call sent. */
export const cardScript: string = `
function createCard(session) {
  const card = { session, call: undefined };
  card.numbers = element("dl", { class: "numbers" });
  card.timeline = shape("svg", { class: "plot timeline", tabindex: "0", role: "slider", "aria-label": "Timeline of " + session.file });
  card.costs = shape("svg", { class: "plot costs", role: "img" });
  card.line = element("p", { class: "call" });
  card.kinds = element("ul", { class: "kinds" });
  card.costList = element("ul", { class: "kinds single" });
  const chart = (name, ...nodes) => element("div", { class: "chart" }, element("h4", {}, name), ...nodes);
  card.node = element("article", { class: "card" },
    element("h3", { title: session.file }, session.file.slice(folder.length)),
    element("p", { class: "title dim" }, session.title),
    card.numbers,
    element("div", { class: "charts" },
      chart("Tokens sent, call by call", card.timeline, card.line, card.kinds),
      chart("Cost so far", card.costs, card.costList)));
  listen(card);
  return card;
}

function drawCard(card) {
  const run = runOf(card.session);
  const numbers = [
    ["calls", whole(run.calls)], ["cost", short(run.cost)], ["\\u00d7 none", times(ratioOf(card.session))],
    ["breaks", whole(run.breaks)], ["epochs", whole(run.epochs)], ["over", whole(run.overWindow), run.overWindow > 0],
    ["invalid", whole(run.invalid), run.invalid > 0], ["kept", percent(run.visibleShare)],
  ];
  card.numbers.replaceChildren(...numbers.map(([name, value, isAlarm]) =>
    element("div", {}, element("dt", {}, name), element("dd", { class: isAlarm ? "alarm" : undefined }, value))));
  drawTimeline(card);
  drawCosts(card);
  showCall(card, card.call);
}

/** Shows the numbers of a call: the one pointed at, else the last. */
function showCall(card, call) {
  const run = runOf(card.session);
  const series = seriesOf(run);
  card.call = call;
  const shown = call === undefined ? run.calls - 1 : Math.min(call, run.calls - 1);
  const parts = [
    whole(series.total[shown]) + " tokens", whole(series.read[shown]) + " read from the cache",
    "cost " + whole(series.cost[shown]), percent(series.kept[shown] / 1000) + " kept",
  ];
  if (series.flags[shown] & 1) parts.push("epoch");
  if (series.flags[shown] & 2) parts.push("cache break");
  if (series.total[shown] > state.window - facts.reserve) parts.push("over the window");
  if (series.flags[shown] & 4) parts.push("invalid");
  const place = (call === undefined ? "Last call, " : "Call ") + whole(shown + 1) + " of " + whole(run.calls);
  card.line.replaceChildren(element("b", {}, place), ": " + parts.join(", "));
  const tokens = [series.prefix, ...series.tokens.map((column) => column[shown])];
  card.kinds.replaceChildren(...kinds.map((kind, index) => listItem(kind, kindNames[kind], whole(tokens[index]))));
  const spent = (policy) => seriesOf(runOf(card.session, policy)).spent[shown];
  card.costList.replaceChildren(...facts.policies.map((policy) =>
    listItem(policy, policy, short(spent(policy)), "\\u00d7 " + times(spent(policy) / (spent("none") || 1)))));
  placeCursors(card, call === undefined ? undefined : shown);
  setSlider(card.timeline, { now: shown + 1, most: run.calls, text: place + ": " + parts.join(", ") });
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

/** Pointing shows a call, and so do the keys of a slider. */
function listen(card) {
  const last = () => runOf(card.session).calls - 1;
  const point = (node, scale) => {
    const show = (event) => {
      if (scale()) showCall(card, scale().callAt(event.clientX - node.getBoundingClientRect().left));
    };
    node.addEventListener("pointermove", show);
    node.addEventListener("pointerdown", show);
    // A finger that is lifted has not left.
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
