/** All that `--version` loads, which is why its spelling stands here and not beside the other options. */
import { existsSync, readFileSync, writeSync } from "node:fs";
import type { OptionSpec } from "./command.ts";

export const versionOption: OptionSpec & { readonly short: string } = {
  short: "V",
  summary: "show the version",
};

/** Bundled, this module lies a folder deeper. */
const manifests = ["../../package.json", "../../../package.json"];

/** The package's version, read from its own package.json: one place to change it. */
export function readVersion(): string {
  const urls = manifests.map((place) => new URL(place, import.meta.url));
  const manifest = readFileSync(urls.find((url) => existsSync(url)) ?? urls[0]!, "utf8");
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
