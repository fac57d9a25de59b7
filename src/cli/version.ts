import { readFileSync } from "node:fs";

/** The package's version, read from its own package.json: one place to change it. */
export function readVersion(): string {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}
