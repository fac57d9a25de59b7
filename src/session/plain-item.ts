import { messageOf } from "../text/index.ts";

/** What JSON cannot say comes out as null or as a note in its place, never as a throw in the middle of a page. */
export function plainItem(value: unknown): { item: unknown; json: string } {
  try {
    const json = JSON.stringify(value);
    return json === undefined ? { item: null, json: "null" } : { item: value, json };
  } catch (error) {
    const item = `[unreadable item: ${messageOf(error)}]`;
    return { item, json: JSON.stringify(item) };
  }
}
