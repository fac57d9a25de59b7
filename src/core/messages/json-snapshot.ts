/** Compares JSON values without writing them as text. */
import type { Fields } from "../text/index.ts";

/** Whether JSON would write both values the same way. If in doubt, returns false. For a message that was parsed again,
 *  this is several times faster than hashing, because strings compare at the speed of memory. */
export function isSameJson(known: unknown, value: unknown, depth = 0): boolean {
  if (typeof known !== "object" || known === null) return known === value;
  if (typeof value !== "object" || value === null || depth > maxComparedDepth) return false;
  const prototype = Object.getPrototypeOf(known);
  if (prototype !== Object.getPrototypeOf(value)) return false;
  if (Array.isArray(known)) return isSameList(known, value as unknown[], depth);
  // Other objects than plain ones and arrays may have a toJSON.
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

// Below this depth, an object is compared by identity only.
const maxComparedDepth = 32;

/** Records a JSON value. Returns a function that checks whether a later value is the same, also after edits in
 *  place. */
export function takeSnapshot(value: unknown): (later: unknown) => boolean {
  const snapshot: unknown[] = [];
  addToSnapshot(value, snapshot, 0);
  return (later) => matches(later, { snapshot, at: 0 }, 0);
}

function addToSnapshot(value: unknown, snapshot: unknown[], depth: number): void {
  if (isLeaf(value, depth)) {
    snapshot.push(value);
  } else if (Array.isArray(value)) {
    snapshot.push(list);
    for (let index = 0; index < value.length; index++) addToSnapshot(value[index], snapshot, depth + 1);
    snapshot.push(end);
  } else {
    snapshot.push(fields);
    for (const name in value as Fields) {
      snapshot.push(name);
      addToSnapshot((value as Fields)[name], snapshot, depth + 1);
    }
    snapshot.push(end);
  }
}

/** Bytes are compared by identity: an image of a few megabytes would be a million values. */
function isLeaf(value: unknown, depth: number): boolean {
  return typeof value !== "object" || value === null || depth > maxComparedDepth || ArrayBuffer.isView(value);
}

// Marks around lists and objects, so that different values never have equal snapshots.
const list = Symbol("list");
const fields = Symbol("fields");
const end = Symbol("end");

interface Position {
  /** All values of a JSON value in order, with their names. The strings are the owner's own, so that no copy is made and
   *  unchanged strings compare by address. */
  readonly snapshot: readonly unknown[];
  at: number;
}

// Walks exactly as `addToSnapshot` does.
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
