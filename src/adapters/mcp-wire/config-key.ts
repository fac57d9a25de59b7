/** The names of a dotted key, as TOML writes one: `a.b` are two, `"a.b"` is one. `undefined` for what is no key. */
export function parseConfigKey(text: string): string[] | undefined {
  const names: string[] = [];
  const part = /\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s.'"[\]]+))\s*(\.|$)/y;
  for (let found = part.exec(text); found !== null; found = part.exec(text)) {
    const [, quoted, literal, bare, dot] = found;
    names.push(quoted === undefined ? (literal ?? bare!) : unquote(quoted));
    if (dot === "") return names;
  }
  return undefined;
}

function unquote(quoted: string): string {
  try {
    return JSON.parse(`"${quoted}"`);
  } catch {
    // An escape that only TOML knows: in no name of ours.
    return quoted;
  }
}
