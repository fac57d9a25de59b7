/** The sessions of a page, one card each: sorted, found and filtered in a toolbar, drawn when they come into view. */
import { element } from "./elements.ts";

interface ListOptions<Session, Card> {
  readonly cards: readonly Card[];
  readonly drawCard: (card: Card) => void;
  /** Draws what is above the sessions. */
  readonly drawOverview: () => void;
  /** The title of each order, and the number that it sorts by. The first order applies at the start. */
  readonly orders: readonly (readonly [value: string, title: string, key: (session: Session) => number])[];
  /** The text that a search looks at. */
  readonly text: (session: Session) => string;
  readonly searchHint: string;
  readonly filter: { readonly title: string; readonly allows: (session: Session) => boolean };
  /** Stands first in the toolbar. */
  readonly controls?: readonly HTMLElement[];
}

/** Returns the toolbar and the list, and `update`, which draws the whole page again. */
export function createSessionList<Session, Card extends { readonly session: Session; readonly node: HTMLElement }>({
  cards,
  drawCard,
  drawOverview,
  orders,
  text,
  searchHint,
  filter,
  controls = [],
}: ListOptions<Session, Card>): { readonly nodes: readonly HTMLElement[]; update(): void } {
  const list = element("div", {}, ...cards.map(({ node }) => node));
  const empty = element("p", { class: "empty", hidden: true }, "No session matches.");
  const count = element("span", { class: "dim", role: "status" });
  const options = orders.map(([value, title]) => element("option", { value }, title));
  const sort = element("select", { change: arrange }, ...options);
  const search = element("input", { type: "search", placeholder: searchHint, input: arrange });
  const onlySome = element("input", { type: "checkbox", change: arrange });
  const toolbar = element(
    "div",
    { class: "toolbar", role: "group", "aria-label": "What is shown" },
    ...controls,
    element("label", { class: "field" }, "sort", sort),
    element("label", { class: "field" }, "find", search),
    element("label", { class: "field" }, onlySome, filter.title),
    count,
  );

  function arrange(): void {
    const [, , key] = orders[sort.selectedIndex]!;
    const sorted = [...cards].sort((left, right) => key(left.session) - key(right.session));
    if (sorted.some(({ node }, index) => node !== list.children[index])) list.append(...sorted.map(({ node }) => node));
    const words = search.value.toLowerCase();
    for (const { node, session } of cards) {
      const isFound = text(session).toLowerCase().includes(words);
      node.hidden = !isFound || (onlySome.checked && !filter.allows(session));
    }
    const shown = cards.filter(({ node }) => !node.hidden).length;
    empty.hidden = shown > 0;
    count.textContent = `${shown} of ${cards.length}${cards.length === 1 ? " session" : " sessions"}`;
  }

  const drawn = new Set<Card>();
  const visible = new Set<Card>();
  function drawVisible(): void {
    for (const card of visible) {
      if (drawn.has(card)) continue;
      drawn.add(card);
      drawCard(card);
    }
  }
  const byNode = new Map<Element, Card>(cards.map((card) => [card.node, card]));
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting) visible.add(byNode.get(target)!);
        else visible.delete(byNode.get(target)!);
      }
      drawVisible();
    },
    { rootMargin: "300px" },
  );
  for (const { node } of cards) watcher.observe(node);

  function update(): void {
    drawOverview();
    arrange();
    drawn.clear();
    drawVisible();
  }
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    update();
  });
  return { nodes: [toolbar, list, empty], update };
}
