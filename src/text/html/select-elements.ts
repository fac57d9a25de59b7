import type { HtmlElement } from "./parse-html.ts";

/** The outermost elements that a selector means, in the order of the page. Understood are a tag, `.class`, `#id`, these together
 *  (`div.note`), descendants (`main .body`) and several by commas; undefined for anything else. */
export function selectElements(root: HtmlElement, selector: string): readonly HtmlElement[] | undefined {
  const paths = selector.split(",").map((each) => each.trim().split(/\s+/).map(parseSimple));
  if (paths.some((path) => path.includes(undefined))) return undefined;
  const found: HtmlElement[] = [];
  visit(root, { paths: paths as Simple[][], matched: paths.map(() => 0), found });
  return found;
}

interface Simple {
  readonly tag: string | undefined;
  readonly id: string | undefined;
  readonly classes: readonly string[];
}

const simplePattern = /^([a-z][\w-]*|\*)?((?:[.#][\w-]+)*)$/i;

function parseSimple(written: string): Simple | undefined {
  const match = simplePattern.exec(written);
  if (match === null || written === "") return undefined;
  const marks = (match[2] ?? "").match(/[.#][^.#]+/g) ?? [];
  return {
    tag: match[1] === "*" ? undefined : match[1]?.toLowerCase(),
    id: marks.find((mark) => mark.startsWith("#"))?.slice(1),
    classes: marks.filter((mark) => mark.startsWith(".")).map((mark) => mark.slice(1)),
  };
}

interface Search {
  readonly paths: readonly (readonly Simple[])[];
  /** How many steps of each path the ancestors have matched; as few ancestors as possible, which is always right for descendants. */
  readonly matched: readonly number[];
  readonly found: HtmlElement[];
}

function visit(element: HtmlElement, { paths, matched, found }: Search): void {
  for (const child of element.children) {
    if (typeof child === "string") continue;
    const isMatch = paths.some(
      (path, index) => matched[index] === path.length - 1 && fits(child, path.at(-1)!),
    );
    if (isMatch) {
      found.push(child);
      continue;
    }
    const now = paths.map((path, index) => {
      const step = matched[index]!;
      return step < path.length - 1 && fits(child, path[step]!) ? step + 1 : step;
    });
    visit(child, { paths, matched: now, found });
  }
}

function fits({ tag, attributes }: HtmlElement, simple: Simple): boolean {
  if (simple.tag !== undefined && simple.tag !== tag) return false;
  if (simple.id !== undefined && simple.id !== attributes.get("id")) return false;
  const classes = attributes.get("class")?.split(/\s+/) ?? [];
  return simple.classes.every((each) => classes.includes(each));
}
