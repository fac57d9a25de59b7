/** Packages that only a benchmark needs, installed into a temporary folder. */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const INSTALL_TIMEOUT_MS = 240_000;

/** The folder's node_modules. Throws where the registry is out of reach. */
export function installPackages(folder: string, packages: readonly string[]): string {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  const options = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1"];
  execFileSync("npm", ["install", ...options, ...packages], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
    timeout: INSTALL_TIMEOUT_MS,
    encoding: "utf8",
  });
  return join(folder, "node_modules");
}

/** Why packages are missing: npm's code alone, since its messages name the machine's registry. */
export function installProblem(error: unknown): string {
  const stderr = String((error as { stderr?: unknown }).stderr ?? "");
  const code = /^npm (?:error|ERR!) code (\w+)/m.exec(stderr)?.[1];
  if (code !== undefined) return `npm could not install it (${code})`;
  return `it could not be installed and started (${(error as NodeJS.ErrnoException).code ?? "no reason given"})`;
}
