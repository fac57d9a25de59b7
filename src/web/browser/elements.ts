/** Elements and numbers as text. Everything that is shown goes in as text, so that no name can become markup. */

export function readPageData<Data>(): Data {
  return JSON.parse(document.getElementById("data")?.textContent ?? "");
}

type Attributes = Readonly<Record<string, string | number | boolean | undefined | (() => void)>>;

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes,
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  return fill(document.createElement(name), attributes, children);
}

export function shape<Name extends keyof SVGElementTagNameMap>(
  name: Name,
  attributes: Attributes,
  ...children: readonly (Node | string)[]
): SVGElementTagNameMap[Name] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill<Target extends Element>(
  node: Target,
  attributes: Attributes,
  children: readonly (Node | string)[],
): Target {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children);
  return node;
}

export function colour(name: string): string {
  return `var(--${name})`;
}

export function swatch(name: string): HTMLElement {
  const node = element("span", { class: "swatch", "aria-hidden": "true" });
  node.style.background = colour(name);
  return node;
}

/** Items of a list of numbers: a title, a value, and whether it is alarming. */
export function numberItems(numbers: readonly (readonly [string, string, boolean?])[]): HTMLElement[] {
  return numbers.map(([title, value, isAlarm]) =>
    element("div", {}, element("dt", {}, title), element("dd", { class: isAlarm ? "alarm" : undefined }, value)),
  );
}

/** The title of a page, with the sign of a load line. */
export function pageTitle(title: string): HTMLElement {
  const sign = [shape("circle", { cx: 12, cy: 12, r: 7 }), shape("path", { d: "M1 12H23" })];
  return element(
    "h1",
    {},
    shape("svg", { class: "sign", viewBox: "0 0 24 24", "aria-hidden": "true" }, ...sign),
    title,
  );
}

const thousands = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export function whole(value: number): string {
  return thousands.format(Math.round(value));
}

export function short(value: number): string {
  if (value >= 1e9) return `${(value / 1e9).toFixed(2)}G`;
  if (value >= 1e6) return `${(value / 1e6).toFixed(value < 1e7 ? 2 : 1)}M`;
  if (value >= 1e4) return `${Math.round(value / 1e3)}k`;
  return value >= 1e3 ? `${(value / 1e3).toFixed(1).replace(".0", "")}k` : String(Math.round(value));
}

export function percent(share: number | null): string {
  return share === null ? "\u2013" : `${(100 * share).toFixed(1)} %`;
}

/** Two significant digits below a cent, so that a short session does not cost nothing. */
export function formatDollars(usd: number): string {
  return `$${usd === 0 || usd >= 0.095 ? usd.toFixed(2) : Number(usd.toPrecision(2))}`;
}
