/** All that `--version` loads, which is why its spelling stands here and not beside the other options. */
import { readFileSync, writeSync } from "node:fs";
import type { OptionSpec } from "./command.ts";

export const versionOption: OptionSpec & { readonly short: string } = {
  short: "V",
  summary: "show the version",
};

/** The package's version, read from its own package.json: one place to change it. */
export function readVersion(): string {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}

/** Prints the version if nothing else is asked for. Where nobody reads, or the disk is full, it gives up and says no:
 *  the whole program knows what to do about that. */
export function printedVersion([flag = "", ...rest]: readonly string[]): boolean {
  if (rest.length > 0 || (flag !== "--version" && flag !== `-${versionOption.short}`)) return false;
  try {
    writeSync(1, `${readVersion()}\n`);
    return true;
  } catch {
    return false;
  }
}
