/** The object with some fields replaced, and the object itself when they are what it has already. */
export function replaceFields<Body extends object>(body: Body, fields: Partial<Body>): Body {
  const changes = Object.entries(fields).filter(([name, value]) => !isSame(Reflect.get(body, name), value));
  return changes.length === 0 ? body : { ...body, ...Object.fromEntries(changes) };
}

/** Lists are the same when they hold the same objects. */
function isSame(before: unknown, after: unknown): boolean {
  if (before === after) return true;
  if (!Array.isArray(before) || !Array.isArray(after) || before.length !== after.length) return false;
  return before.every((each, index) => each === after[index]);
}
