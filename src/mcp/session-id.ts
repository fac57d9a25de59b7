import { createHash } from "node:crypto";
import { basename } from "node:path";

/** The id of the session that servers of one thing share: the same in every process, so that tokens hold over restarts, and with a
 *  name in it that people know. `parts` are all that makes the thing what it is. */
export function sessionIdOf(kind: "mcp" | "wrap", name: string, parts: readonly string[]): string {
  const hash = createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 10);
  const shown = basename(name)
    .replaceAll(/[^\w.-]+/g, "-")
    .slice(0, 40);
  return [kind, shown, hash].filter((part) => part !== "").join("-");
}
