/** Everything that `--version` loads. */
import { existsSync, readFileSync, writeSync } from "node:fs";

/** Reads the version from the package's package.json. */
export function readVersion(): string {
  // The bundled module is one folder deeper.
  const manifests = ["../../package.json", "../../../package.json"];
  const urls = manifests.map((place) => new URL(place, import.meta.url));
  const manifest = readFileSync(urls.find((url) => existsSync(url)) ?? urls[0]!, "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}

/** Prints the version if nothing else is asked for. Returns false if stdout is closed or the disk is full. */
export function printedVersion([flag = "", ...rest]: readonly string[]): boolean {
  if (rest.length > 0 || (flag !== "--version" && flag !== "-V")) return false;
  try {
    writeSync(1, `${readVersion()}\n`);
    return true;
  } catch {
    return false;
  }
}
