/** What foreign JSON looked like when it was read: tells whether anything in there was changed in place since. */
import type { Fields } from "../fields.ts";

/** All values in order with their names. The strings are the owner's own: that costs no copy, and comparing what did not
 *  change is comparing addresses. */
export type Snapshot = readonly unknown[];

export function takeSnapshot(value: unknown): Snapshot {
  const snapshot: unknown[] = [];
  add(value, snapshot, 0);
  return snapshot;
}

export function isUnchanged(value: unknown, snapshot: Snapshot): boolean {
  return matches(value, { snapshot, at: 0 }, 0);
}

/** Whether JSON would write the two alike. In doubt it says no. Strings are compared at the speed of memory, so for a message that was
 *  parsed anew this is several times faster than hashing it. */
export function isSameJson(known: unknown, value: unknown, depth = 0): boolean {
  if (typeof known !== "object" || known === null) return known === value;
  if (typeof value !== "object" || value === null || depth > maxDepth) return false;
  const prototype = Object.getPrototypeOf(known);
  if (prototype !== Object.getPrototypeOf(value)) return false;
  if (Array.isArray(known)) return isSameList(known, value as unknown[], depth);
  // Anything but plain objects and arrays may have a toJSON.
  if (prototype !== Object.prototype && prototype !== null) return false;
  const names = Object.keys(known);
  const others = Object.keys(value);
  if (names.length !== others.length) return false;
  for (let index = 0; index < names.length; index++) {
    const name = names[index] as string;
    if (name !== others[index]) return false;
    if (!isSameJson((known as Fields)[name], (value as Fields)[name], depth + 1)) return false;
  }
  return true;
}

function isSameList(known: readonly unknown[], value: readonly unknown[], depth: number): boolean {
  if (known.length !== value.length) return false;
  for (let index = 0; index < known.length; index++) {
    if (!isSameJson(known[index], value[index], depth + 1)) return false;
  }
  return true;
}

// Further down, an object is known by its identity only.
const maxDepth = 32;
// Around lists and objects, so that no snapshot is also that of another value.
const list = Symbol("list");
const fields = Symbol("fields");
const end = Symbol("end");

function add(value: unknown, snapshot: unknown[], depth: number): void {
  if (isLeaf(value, depth)) {
    snapshot.push(value);
  } else if (Array.isArray(value)) {
    snapshot.push(list);
    for (let index = 0; index < value.length; index++) add(value[index], snapshot, depth + 1);
    snapshot.push(end);
  } else {
    snapshot.push(fields);
    for (const name in value as Fields) {
      snapshot.push(name);
      add((value as Fields)[name], snapshot, depth + 1);
    }
    snapshot.push(end);
  }
}

/** Bytes are known by their identity, too: a picture of some megabytes would be a million values. */
function isLeaf(value: unknown, depth: number): boolean {
  return typeof value !== "object" || value === null || depth > maxDepth || ArrayBuffer.isView(value);
}

interface Position {
  readonly snapshot: Snapshot;
  at: number;
}

// The same walk as above.
function matches(value: unknown, position: Position, depth: number): boolean {
  const { snapshot } = position;
  if (isLeaf(value, depth)) return snapshot[position.at++] === value;
  const isInside = Array.isArray(value)
    ? snapshot[position.at++] === list && matchesList(value, position, depth + 1)
    : snapshot[position.at++] === fields && matchesFields(value as Fields, position, depth + 1);
  return isInside && snapshot[position.at++] === end;
}

function matchesList(values: readonly unknown[], position: Position, depth: number): boolean {
  for (let index = 0; index < values.length; index++) {
    if (!matches(values[index], position, depth)) return false;
  }
  return true;
}

function matchesFields(value: Fields, position: Position, depth: number): boolean {
  for (const name in value) {
    if (position.snapshot[position.at++] !== name || !matches(value[name], position, depth)) return false;
  }
  return true;
}
