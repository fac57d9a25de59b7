import { createHash } from "node:crypto";

/** A short name for something, the same in every process: what people call it, as far as a file may be called so, and a hash of all
 *  that makes it what it is. */
export function namedKey(name: string, identity: string): string {
  const hash = createHash("sha256").update(identity).digest("hex").slice(0, 10);
  const shown = name.replaceAll(/[^\w.-]+/g, "-").slice(0, 40);
  return shown === "" ? hash : `${shown}-${hash}`;
}
