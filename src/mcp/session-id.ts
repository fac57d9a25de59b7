import { basename } from "node:path";
import { namedKey } from "../text/index.ts";

/** The id of the session that servers of one thing share: the same in every process, so that tokens hold over restarts, and with a
 *  name in it that people know. `parts` are all that makes the thing what it is. */
export function sessionIdOf(kind: "mcp" | "wrap", name: string, parts: readonly string[]): string {
  return `${kind}-${namedKey(basename(name), JSON.stringify(parts))}`;
}
