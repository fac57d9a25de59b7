/** Beyond this many a pattern is a mistake or an attack: `{a,b}` twenty times is a million. */
const mostAlternatives = 256;

/** The globs that a glob with braces stands for: `a{b,c}d` is `abd` and `acd`. Braces without a comma of their own, and those behind a
 *  backslash, are part of a name. Undefined when it stands for too many. */
export function expandBraces(pattern: string): string[] | undefined {
  const done: string[] = [];
  const pending = [pattern];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const braces = outerBraces(next);
    if (braces === undefined) done.push(next);
    else pending.push(...opened(next, braces).reverse());
    if (done.length + pending.length > mostAlternatives) return undefined;
  }
  return done;
}

interface Braces {
  readonly start: number;
  /** The commas between the alternatives, then the brace that closes. */
  readonly ends: number[];
}

/** The first pair that has a comma of its own. The outer ones are opened before those inside: the other way round `{a,{b,c}}` would give
 *  `a` twice. */
function outerBraces(pattern: string): Braces | undefined {
  const open: Braces[] = [];
  let found: Braces | undefined;
  for (const { 0: mark, index } of pattern.matchAll(/\\.|[{},]/gs)) {
    if (mark === "{") open.push({ start: index, ends: [] });
    if (mark === ",") open.at(-1)?.ends.push(index);
    const closed = mark === "}" ? open.pop() : undefined;
    if (closed === undefined || closed.ends.length === 0) continue;
    closed.ends.push(index);
    if (found === undefined || closed.start < found.start) found = closed;
    if (open.length === 0) break;
  }
  return found;
}

function opened(pattern: string, { start, ends }: Braces): string[] {
  const before = pattern.slice(0, start);
  const after = pattern.slice((ends.at(-1) ?? start) + 1);
  return ends.map((end, index) => before + pattern.slice((ends[index - 1] ?? start) + 1, end) + after);
}
