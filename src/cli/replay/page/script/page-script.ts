/** The page's script, put together. It is text here and nowhere run but in a browser, where test/e2e/replay-page.test.ts tries it. */
import { cardScript } from "./card.ts";
import { costsScript } from "./costs.ts";
import { elementsScript } from "./elements.ts";
import { overviewScript } from "./overview.ts";
import { scaleScript } from "./scale.ts";
import { timelineScript } from "./timeline.ts";

/** Charts are drawn when they come into view, and drawn anew when something about them changed. */
const startScript = `
const drawn = new Set();
const visible = new Set();
const cards = facts.sessions.map(createCard);
const head = overview(choose);
const list = element("div", { class: "sessions" }, ...cards.map(({ node }) => node));
const empty = element("p", { class: "empty", hidden: true }, "No session matches.");
const shownCount = element("span", { class: "dim", role: "status" });
const choices = [];

function choice(name, values, show) {
  const group = element("fieldset", {}, element("legend", {}, name));
  for (const value of values) {
    const input = element("input", { type: "radio", name, value: String(value), change: () => choose({ [name]: value }) });
    choices.push(() => (input.checked = state[name] === value));
    group.append(element("label", { class: "choice" }, input, element("span", {}, show(value))));
  }
  return group;
}

const orders = {
  given: ["as given", () => 0],
  calls: ["most calls", (session) => -runOf(session).calls],
  cost: ["highest cost", (session) => -runOf(session).cost],
  ratio: ["lowest \\u00d7 none", ratioOf],
  breaks: ["most breaks", (session) => -runOf(session).breaks],
  kept: ["least kept", (session) => runOf(session).visibleShare],
};
function toolbar() {
  const options = Object.entries(orders).map(([value, [name]]) => element("option", { value }, name));
  const sort = element("select", { change: () => choose({ sort: sort.value }) }, ...options);
  const search = element("input", { type: "search", placeholder: "name or words", input: () => choose({ search: search.value }) });
  const trimmed = element("input", { type: "checkbox", change: () => choose({ trimmed: trimmed.checked }) });
  return element("div", { class: "toolbar", role: "group", "aria-label": "What is shown" },
    choice("window", facts.windows, short),
    choice("policy", facts.policies, String),
    element("label", { class: "field" }, "sort", sort),
    element("label", { class: "field" }, "find", search),
    element("label", { class: "field" }, trimmed, "only trimmed"),
    shownCount);
}

function choose(change) {
  Object.assign(state, change);
  for (const update of choices) update();
  head.update();
  arrange();
  drawn.clear();
  for (const card of visible) draw(card);
}

function draw(card) {
  if (drawn.has(card)) return;
  drawn.add(card);
  drawCard(card);
}

function arrange() {
  const key = orders[state.sort][1];
  const keyed = cards.map((card, index) => ({ card, index, key: key(card.session) }));
  keyed.sort((left, right) => left.key - right.key || left.index - right.index);
  const order = keyed.map(({ card }) => card.node);
  if (order.some((node, index) => node !== list.children[index])) list.append(...order);
  const words = state.search.toLowerCase();
  let shown = 0;
  for (const { node, session } of cards) {
    const isFound = (session.file + " " + session.title).toLowerCase().includes(words);
    node.hidden = !isFound || (state.trimmed && runOf(session).epochs === 0);
    if (!node.hidden) shown++;
  }
  empty.hidden = shown > 0;
  shownCount.textContent = shown + " of " + cards.length + (cards.length === 1 ? " session" : " sessions");
}

function loadLine() {
  const parts = [shape("circle", { cx: 12, cy: 12, r: 7 }), shape("path", { d: "M1 12H23" })];
  return shape("svg", { class: "sign", viewBox: "0 0 24 24", "aria-hidden": "true" }, ...parts);
}

document.getElementById("page").append(
  element("header", {},
    element("h1", {}, loadLine(), "Plimsoll replay"),
    element("p", { class: "facts dim" }, facts.description + (folder ? " \\u00b7 in " + folder : ""))),
  element("main", {}, head.panel, toolbar(), list, empty));
const byNode = new Map(cards.map((card) => [card.node, card]));
const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const card = byNode.get(target);
    if (isIntersecting) { visible.add(card); draw(card); }
    else visible.delete(card);
  }
}, { rootMargin: "300px" });
for (const { node } of cards) watcher.observe(node);
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  choose({});
});
choose({});
`;

export const pageScript: string = [
  '(() => {\n"use strict";',
  elementsScript,
  scaleScript,
  timelineScript,
  costsScript,
  overviewScript,
  cardScript,
  startScript,
  "})();",
].join("");
